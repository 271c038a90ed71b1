/* siblings.c - contractions of the same form become one, and what reads them with them.
 *
 * In: roots of a cleaned graph. Out: roots of the same values. NeoFlow's parallel fusion (section IV.C), with
 * superword-level parallelism's way of finding what goes together (Larsen and Amarasinghe 2000): it begins with
 * contractions that share an operand (eight convolutions of one input; the products of gates), whose other
 * operands are stacked: Y[g,i,j] += X[i,k] * S[g,k,j]. Readers of the same form follow, so that they stay
 * epilogues; a reader of another form reads Y[2,i,j]. And a sum of contractions of the same form (the gradient of
 * X) is one, over g too. What must be copied to be stacked is weighed against what is no longer loaded.
 *
 * Equations become one only where the longest paths that lead to them are equally long. So none depends on
 * another, and no circle can arise. */
#include "jit/fuse/siblings.h"

#include <stdlib.h>
#include <string.h>

/* ---- what reads them ---- */

static bool is_epilogue(const Siblings *s, const Node *c, Node *t)
{
	return c->op == OP_COMP && comp_reduce(c) == RED_NONE && comp_is_dense(c) &&
	       tensor_same_shape(c, t) && fuse_reads_own(s->ir, c, t);
}

/* A reader of t that is like r and reads t where r reads `first`; NULL: there is none. */
static Node *reader_like(const Siblings *s, Node *r, const Node *first, const Node *t, int n,
			 Node *const *taken)
{
	for (Use *u = s->uses[t->id]; u; u = u->next) {
		Node *both[] = {r, u->reader};
		bool fits = u->reader != r;
		Form form;
		for (int k = 0; k < n; k++)
			fits &= taken[k] != u->reader;
		if (!fits || !stack_may_join(s, 2, both, &form))
			continue;
		for (int i = 0; i < form.nrow; i++)
			if ((form.read[2 * i]->src[0] == first) !=
			    (form.read[2 * i + 1]->src[0] == t))
				fits = false;
		if (fits)
			return u->reader;
	}
	return NULL;
}

static bool readers_of(const Siblings *s, const Stack *stack, Node *r, Node **reader, Form *form)
{
	reader[0] = r;
	for (int k = 1; k < stack->n; k++) {
		reader[k] = reader_like(s, r, stack->t[0], stack->t[k], k, reader);
		if (!reader[k])
			return false;
	}
	return stack_may_join(s, stack->n, reader, form);
}

/* What n reductions as one save, that would have a kernel each, as bytes. */
static double launches_as_bytes(const Siblings *s, const Node *c, int n)
{
	return comp_reduce(c) == RED_NONE ? 0 : (n - 1) * s->f->dev->launch * s->f->pd;
}

/* Makes equations that read the stack's tensors one, too, where that pays. What it saves, in bytes; less than 0
 * where epilogues of the stack's equations must become kernels. */
static double readers_take(Siblings *s, const Stack *stack, int depth)
{
	double saved = 0;
	bool apart = false, many = false;
	for (Use *u = s->uses[stack->t[0]->id]; u; u = u->next) {
		Node *reader[SIBLINGS_MOST];
		int made = s->nmade;
		Form form;
		bool epilogue = is_epilogue(s, u->reader, stack->t[0]);
		many |= u->next != NULL;
		if (s->of[u->reader->id] || depth == DEPTH_MOST)
			continue;
		if (!readers_of(s, stack, u->reader, reader, &form)) {
			apart |= epilogue;
			continue;
		}
		double won = epilogue ? 2 * stack_bytes(stack->n, stack->t)
				      : launches_as_bytes(s, u->reader, stack->n);
		double slices = stack_slices_copied(s, stack->n, reader);
		Stack *next = stack_add(s, stack->n, reader, true);
		double cost = slices + stacks_take(s, &form, depth + 1);
		cost -= readers_take(s, next, depth + 1);
		if (cost > won) {
			stacks_drop(s, made);
			apart |= epilogue;
		} else
			saved += (epilogue ? 0 : won) - cost;
	}
	return saved - (apart ? (many ? 1 : 2) * stack_bytes(stack->n, stack->t) : 0);
}

/* ---- contractions that share an operand ---- */

/* One equation of these, which read `shared` alike? */
static void look_at(Siblings *s, const Node *shared, int n, Node *const *c)
{
	Form form;
	int made = s->nmade;
	double bytes = (n - 1) * (double)tensor_bytes(shared);
	if (!stack_may_join(s, n, c, &form))
		return;
	bytes -= stack_slices_copied(s, n, c);
	Stack *stack = stack_add(s, n, c, true);
	bytes -= stacks_take(s, &form, 0);
	bytes += readers_take(s, stack, 0);
	bool joined = stacks_decide(s, "sibling", c[0], n, bytes, made);
	for (int k = 0; k < n; k++)
		s->apart[c[k]->id] |= !joined;
}

/* c, and other contractions of its form that have this read, too. */
static int siblings_of(const Siblings *s, Node *c, Node *read, Node **sibling)
{
	int n = 0;
	sibling[n++] = c;
	for (Use *u = s->uses[read->src[0]->id]; u && n < SIBLINGS_MOST; u = u->next) {
		Node *both[] = {c, u->reader};
		Form form;
		if (u->reader == c || !stack_may_join(s, 2, both, &form))
			continue;
		for (int i = 0; i < form.nrow; i++)
			if (form.read[2 * i] == read && form.read[2 * i + 1] == read) {
				sibling[n++] = u->reader;
				break;
			}
	}
	return n;
}

static int by_id(const void *a, const void *b)
{
	const Node *x = *(Node *const *)a, *y = *(Node *const *)b;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void contraction_look(Siblings *s, Node *c)
{
	Reads all = fuse_reads_in(s->ir, comp_body(c));
	for (int k = 0; k < all.n && !s->of[c->id] && !s->apart[c->id]; k++) {
		Node *sibling[SIBLINGS_MOST];
		int n = siblings_of(s, c, all.read[k], sibling);
		if (n < 2)
			continue;
		qsort(sibling, (size_t)n, sizeof *sibling, by_id);
		look_at(s, all.read[k]->src[0], n, sibling);
	}
}

/* ---- the graph as it is then ---- */

static Node *tensor_now(Siblings *s, Node *c)
{
	Stack *k = s->of[c->id];
	for (int i = 0; k && i < k->n; i++)
		if (k->t[i] == c)
			return stack_slice(s->ir, stack_tensor(s, k), i);
	Node *sum = sum_now(s, c);
	return sum ? sum : tensor_over(s->ir, c, &s->now);
}

static void find_levels(Siblings *s)
{
	for (int k = 0; k < s->n; k++) {
		Node **read;
		int m = comp_reads(s->ir, s->order[k], &read), *level = &s->level[s->order[k]->id];
		for (int i = 0; i < m && s->order[k]->op != OP_INPUT; i++)
			*level = *level <= s->level[read[i]->id] ? s->level[read[i]->id] + 1
								 : *level;
	}
}

/* Sources first, and all of one level before the next: a stack is made when its first equation's turn comes. */
static Node **by_levels(Siblings *s)
{
	int deepest = 0, at = 0;
	Node **sorted = arena_alloc(&s->ir->arena, (size_t)(s->n + 1) * sizeof *sorted);
	for (int k = 0; k < s->n; k++)
		deepest = s->level[s->order[k]->id] > deepest ? s->level[s->order[k]->id] : deepest;
	int *first = arena_alloc(&s->ir->arena, (size_t)(deepest + 2) * sizeof *first);
	for (int k = 0; k < s->n; k++)
		first[s->level[s->order[k]->id] + 1]++;
	for (int l = 0; l <= deepest; l++)
		first[l + 1] += first[l];
	for (int k = 0; k < s->n; k++, at++)
		sorted[first[s->level[s->order[k]->id]]++] = s->order[k];
	return sorted;
}

void fuse_siblings(Fuse *f, int nroot, Node **roots)
{
	Siblings s = {.f = f, .ir = f->ir};
	Arena *a = &f->ir->arena;
	size_t ids;
	if (!f->siblings)
		return;
	Node **before = arena_alloc(a, (size_t)(nroot + 1) * sizeof *before);
	memcpy(before, roots, (size_t)nroot * sizeof *roots);
	sums_apart(&s, nroot, roots);
	s.n = graph_order(f->ir, nroot, roots, &s.order);
	ids = f->ir->count;
	s.uses = fuse_uses(f->ir, s.n, s.order);
	s.root = arena_alloc(a, ids);
	s.apart = arena_alloc(a, ids);
	s.inside = arena_alloc(a, ids * sizeof *s.inside);
	s.summand = arena_alloc(a, ids * sizeof *s.summand);
	s.level = arena_alloc(a, ids * sizeof *s.level);
	s.of = arena_alloc(a, ids * sizeof *s.of);
	for (int k = 0; k < nroot; k++)
		s.root[roots[k]->id] = true;
	find_levels(&s);
	sums_find(&s);
	for (int k = 0; k < s.n; k++)
		if (s.order[k]->op == OP_COMP && fuse_is_contraction(f->ir, s.order[k]))
			contraction_look(&s, s.order[k]);
	sums_decide(&s);
	if (!s.nmade) {
		memcpy(roots, before, (size_t)nroot * sizeof *roots);
		return;
	}
	Node **sorted = by_levels(&s);
	for (int k = 0; k < s.n; k++)
		if (sorted[k]->op != OP_INPUT)
			node_map_put(f->ir, &s.now, sorted[k], tensor_now(&s, sorted[k]));
	for (int k = 0; k < nroot; k++)
		roots[k] = stack_now(&s, roots[k]);
}
