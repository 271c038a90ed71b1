/* sums.c - sums of tensors of the same form as the sum of fewer.
 *
 * A1[i,k]*B1[k,j] and A2[i,k]*B2[k,j], which only an addition reads, are one contraction that runs over both.
 * Linear equations between, such as the phases of a strided gradient, are then computed once, of sums. */
#include "jit/fuse/siblings.h"

#include <string.h>

enum { TERMS_MOST = 256, ALIKE_MOST = 16 };

typedef struct Alike { /* tensors of one form, whose sum is computed */
	Node **t;
	bool joined; /* by an equation that runs over all; else by a linear one of sums */
	Node *sum;
} Alike;

typedef struct Sum {   /* of terms of one form; terms[0]: those themselves */
	const Node *c; /* that adds them */
	int n, nalike;
	bool dropped; /* it doesn't pay */
	Alike alike[ALIKE_MOST];
	struct Sum *next; /* of the same c */
} Sum;

typedef struct Terms {
	const Node *c;
	int n;
	Node *t[TERMS_MOST]; /* read by c at its own element */
	Node *rest;	     /* of other terms; NULL: there are none */
} Terms;

typedef struct Added { /* an equation that adds */
	Sum *sums;
	Node *rest;
} Added;

/* ---- which terms ---- */

static Node *plus(Ir *ir, Node *sum, Node *t, Node *const *axes)
{
	Node *read = node_read(ir, t, axes);
	return sum ? node2(ir, OP_ADD, sum, read) : read;
}

static bool is_own(const Siblings *s, const Node *c, Node *t)
{
	return t->op == OP_COMP && comp_is_dense(t) && tensor_same_shape(c, t) &&
	       fuse_reads_own(s->ir, c, t);
}

static bool is_sum(const Node *c)
{
	return c->op == OP_COMP && comp_reduce(c) == RED_NONE && comp_is_dense(c) &&
	       comp_body(c)->op == OP_ADD && type_is_float((Type)c->type);
}

typedef struct Parts {
	int n;
	Node *e[TERMS_MOST];
} Parts;

static void parts_add(Parts *p, Node *e)
{
	if (e->op == OP_ADD) {
		parts_add(p, e->src[0]);
		parts_add(p, e->src[1]);
	} else if (p->n < TERMS_MOST)
		p->e[p->n++] = e;
}

/* c with those of its terms as equations of their own that are of one form. */
static Node *terms_apart(Ir *ir, Node *c)
{
	Parts parts = {0};
	Node *axes[RICCI_MAX_RANK], *body = NULL, *term[TERMS_MOST];
	bool alike[TERMS_MOST] = {false}, any = false;
	int rank = tensor_rank(c);
	parts_add(&parts, comp_body(c));
	tensor_axes(ir, c, axes);
	for (int k = 0; k < parts.n && parts.n < TERMS_MOST; k++) {
		Node *e = parts.e[k];
		bool plain = e->op == OP_READ || !node_reads(ir, e);
		term[k] = plain ? NULL : comp_dense(ir, RED_NONE, rank, rank, axes, e);
		for (int i = 0; i < k && term[k]; i++) {
			Form form;
			Node *both[] = {term[i], term[k]};
			bool like = term[i] && term[i] != term[k] && form_find(ir, 2, both, &form);
			for (int r = 0; like && r < form.nrow; r++)
				if (form_row_differs(&form, r))
					any = alike[i] = alike[k] = true;
		}
	}
	for (int k = 0; k < parts.n && any; k++) {
		Node *e = alike[k] ? node_read(ir, term[k], axes) : parts.e[k];
		body = body ? node2(ir, OP_ADD, body, e) : e;
	}
	return any ? comp_with(ir, c, RED_NONE, body) : c;
}

static Node *sum_apart(void *user, Node *was, Node *whole)
{
	(void)was;
	Siblings *s = user;
	Node *c = is_sum(whole) ? terms_apart(s->ir, whole) : whole;
	if (c != whole)
		node_map_put(s->ir, &s->whole, c, whole);
	return c;
}

void sums_apart(Siblings *s, int nroot, Node **roots)
{
	graph_change(s->ir, nroot, roots, sum_apart, s);
}

/* Adds those of e, a part of the body of `reader`, c or an equation that only c's sum reads. */
static void terms_add(Siblings *s, Terms *terms, const Node *reader, Node *e)
{
	Node *t = e->op == OP_READ ? e->src[0] : NULL;
	bool own = t && is_own(s, reader, t);
	for (int k = 0; k < terms->n && own; k++)
		own = terms->t[k] != t;
	if (e->op == OP_ADD) {
		terms_add(s, terms, reader, e->src[0]);
		terms_add(s, terms, reader, e->src[1]);
	} else if (own && is_sum(t) && !s->root[t->id] && !s->uses[t->id]->next) {
		s->inside[t->id] = terms->c;
		terms_add(s, terms, t, comp_body(t));
	} else if (own && terms->n < TERMS_MOST) {
		terms->t[terms->n++] = t;
	} else
		terms->rest = terms->rest ? node2(s->ir, OP_ADD, terms->rest, e) : e;
}

/* Moves terms of the form of number `from` behind it; how many they are with it. */
static int terms_alike(const Siblings *s, Terms *terms, int from)
{
	int n = 1;
	for (int k = from + 1; k < terms->n && n < SIBLINGS_MOST; k++) {
		Node *both[] = {terms->t[from], terms->t[k]};
		Form form;
		if (!form_find(s->ir, 2, both, &form))
			continue;
		terms->t[k] = terms->t[from + n];
		terms->t[from + n++] = both[1];
	}
	return n;
}

/* ---- what becomes of them ---- */

static const Alike *alike_find(const Sum *sum, Node *const *t)
{
	for (int k = 0; k < sum->nalike; k++)
		if (!memcmp(sum->alike[k].t, t, (size_t)sum->n * sizeof *t))
			return &sum->alike[k];
	return NULL;
}

/* Can the sum of t[] be computed without each of them? */
static bool sum_plan(Siblings *s, Sum *sum, Node *const *t, int depth)
{
	Form form;
	int before = sum->nalike;
	if (alike_find(sum, t))
		return true;
	if (depth == DEPTH_MOST || before == ALIKE_MOST || t[0]->op != OP_COMP ||
	    comp_naxis(t[0]) == COMP_MAX_AXES || !form_find(s->ir, sum->n, t, &form))
		return false;
	for (int k = 0; k < sum->n; k++)
		if (s->root[t[k]->id] || s->summand[t[k]->id])
			return false;
	Alike *alike = &sum->alike[sum->nalike++];
	alike->t = arena_alloc(&s->ir->arena, (size_t)sum->n * sizeof *t);
	memcpy(alike->t, t, (size_t)sum->n * sizeof *t);
	bool linear = form_is_linear(&form, t[0]);
	for (int i = 0; i < form.nrow && linear; i++) {
		Node *row[SIBLINGS_MOST];
		form_row(&form, i, row);
		linear = !form_row_differs(&form, i) || sum_plan(s, sum, row, depth + 1);
	}
	alike->joined = !linear;
	if (linear)
		return true;
	sum->nalike = comp_reduce(t[0]) == RED_ADD ? before + 1 : before;
	return comp_reduce(t[0]) == RED_ADD;
}

/* Does nothing else read what the sum is to be computed without? */
static bool sum_is_closed(const Siblings *s, const Sum *sum)
{
	for (int i = 0; i < sum->nalike; i++)
		for (int k = 0; k < sum->n; k++)
			for (Use *u = s->uses[sum->alike[i].t[k]->id]; u; u = u->next) {
				bool adds =
					u->reader == sum->c || s->inside[u->reader->id] == sum->c;
				if (s->summand[u->reader->id] != sum && !(i == 0 && adds))
					return false;
			}
	return true;
}

static void sum_mark(Siblings *s, const Sum *sum, const void *mark)
{
	for (int i = 0; i < sum->nalike; i++)
		for (int k = 0; k < sum->n; k++)
			s->summand[sum->alike[i].t[k]->id] = mark;
}

static Sum *sum_of(Siblings *s, const Node *c, int n, Node *const *t)
{
	Sum *sum = arena_alloc(&s->ir->arena, sizeof *sum);
	*sum = (Sum){.c = c, .n = n};
	if (!sum_plan(s, sum, t, 0))
		return NULL;
	sum_mark(s, sum, sum);
	if (sum_is_closed(s, sum))
		return sum;
	sum_mark(s, sum, NULL);
	return NULL;
}

static void look_at(Siblings *s, Node *c)
{
	Terms terms = {.c = c};
	Added added = {0};
	Node *axes[RICCI_MAX_RANK];
	tensor_axes(s->ir, c, axes);
	terms_add(s, &terms, c, comp_body(c));
	for (int from = 0, n; from < terms.n; from += n) {
		n = terms_alike(s, &terms, from);
		Sum *sum = n > 1 ? sum_of(s, c, n, terms.t + from) : NULL;
		for (int k = 0; k < n && !sum; k++)
			added.rest = plus(s->ir, added.rest, terms.t[from + k], axes);
		if (sum) {
			sum->next = added.sums;
			added.sums = sum;
		}
	}
	if (!added.sums)
		return;
	if (terms.rest)
		added.rest = added.rest ? node2(s->ir, OP_ADD, added.rest, terms.rest) : terms.rest;
	Added *kept = arena_alloc(&s->ir->arena, sizeof *kept);
	*kept = added;
	node_map_put(s->ir, &s->sums, c, kept);
}

void sums_find(Siblings *s)
{
	for (int k = s->n - 1; k >= 0; k--) /* readers first */
		if (is_sum(s->order[k]) && !s->inside[s->order[k]->id])
			look_at(s, s->order[k]);
}

/* ---- whether it pays ---- */

/* order[k]: the place in row[] of tensor k of the stack; false: it has others. */
static bool order_find(const Stack *stack, int n, Node *const *row, int *order)
{
	for (int k = 0; k < n; k++) {
		order[k] = -1;
		for (int i = 0; i < n; i++)
			if (row[i] == stack->t[k])
				order[k] = i;
		if (order[k] < 0)
			return false;
	}
	return true;
}

/* The terms in the order of a stack that there is of what they read, if there is one. */
static void sum_sort(Siblings *s, Sum *sum, const Alike *joined)
{
	Node *row[SIBLINGS_MOST];
	int order[SIBLINGS_MOST];
	bool found = false;
	Form form;
	form_find(s->ir, sum->n, joined->t, &form);
	for (int i = 0; i < form.nrow && !found; i++) {
		form_row(&form, i, row);
		for (int k = 0; k < sum->n && !found; k++)
			for (Stack *t = node_map_get(&s->stacks, row[k]); t && !found; t = t->next)
				found = t->n == sum->n && order_find(t, t->n, row, order);
	}
	for (int i = 0; i < sum->nalike && found; i++) {
		memcpy(row, sum->alike[i].t, (size_t)sum->n * sizeof *row);
		for (int k = 0; k < sum->n; k++)
			sum->alike[i].t[k] = row[order[k]];
	}
}

static void sum_decide(Siblings *s, Sum *sum)
{
	int made = s->nmade;
	double bytes = 0;
	for (int i = 0; i < sum->nalike; i++) {
		const Alike *a = &sum->alike[i];
		Form form;
		bytes += (sum->n - 1) * 2 * (double)tensor_bytes(a->t[0]);
		if (a->joined)
			sum_sort(s, sum, a);
		if (a->joined && form_find(s->ir, sum->n, a->t, &form))
			bytes -= stacks_take(s, &form, 0);
	}
	if (!stacks_decide(s, "sum", sum->c, sum->n, bytes, made)) {
		sum_mark(s, sum, NULL);
		sum->dropped = true;
	}
}

void sums_decide(Siblings *s)
{
	for (int k = 0; k < s->n; k++) {
		const Added *added = node_map_get(&s->sums, s->order[k]);
		for (Sum *sum = added ? added->sums : NULL; sum; sum = sum->next)
			sum_decide(s, sum);
	}
}

/* ---- the graph as it is then ---- */

static Node *alike_sum(Siblings *s, Sum *sum, Alike *a)
{
	Form form;
	if (a->sum)
		return a->sum;
	if (a->joined)
		return a->sum = stacks_join(s, sum->n, a->t, true);
	form_find(s->ir, sum->n, a->t, &form);
	Node **tensor = arena_alloc(&s->ir->arena, (size_t)(form.nrow + 1) * sizeof *tensor);
	for (int i = 0; i < form.nrow; i++) {
		Node *row[SIBLINGS_MOST];
		form_row(&form, i, row);
		if (form_row_differs(&form, i))
			tensor[i] = alike_sum(s, sum, (Alike *)alike_find(sum, row));
	}
	return a->sum = tensor_over(s->ir, form_over(s->ir, &form, a->t[0], tensor), &s->now);
}

Node *sum_now(Siblings *s, Node *c)
{
	const Added *added = node_map_get(&s->sums, c);
	Node *axes[RICCI_MAX_RANK], *body = added ? added->rest : NULL;
	bool any = false;
	tensor_axes(s->ir, c, axes);
	for (Sum *sum = added ? added->sums : NULL; sum; sum = sum->next) {
		any |= !sum->dropped;
		if (!sum->dropped)
			body = plus(s->ir, body, alike_sum(s, sum, &sum->alike[0]), axes);
		for (int k = 0; sum->dropped && k < sum->n; k++)
			body = plus(s->ir, body, sum->alike[0].t[k], axes);
	}
	if (any)
		return tensor_over(s->ir, comp_with(s->ir, c, RED_NONE, body), &s->now);
	Node *whole = node_map_get(&s->whole, c);
	return whole ? tensor_over(s->ir, whole, &s->now) : NULL;
}
