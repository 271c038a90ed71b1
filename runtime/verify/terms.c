/* terms.c - checks long sums (products, maxima) by few of their terms.
 *
 * Input: a task of one dense equation that reduces. Some of its terms are chosen: the first and last
 * of every axis, those around multiples of powers of two, and random ones. Inputs that each term
 * reads an element of its own of ("marked") hold one number, the base, except in chosen terms. So
 * all other terms of a result are alike, or zero, and the interpreter computes the chosen ones and
 * one of the others, however long the sum is. Three kinds of data: TERMS_ZEROS, the base is 0 and so
 * are all other terms, while unmarked inputs are random, so that whatever the chosen terms read
 * shows; TERMS_ONES, all inputs are 1 elsewhere and sums still exact, so that each lost term shows;
 * TERMS_BASE, where the others are neither: the base that makes them count least. What is done under
 * IR_ENTER owns arena memory only.
 */
#include "runtime/verify/terms.h"
#include <math.h>

static const double bases[] = {0, 1, 0.5, -16, 16};

/* ---- which inputs are marked ---- */
/* Is each reduced axis an index of this read by itself? */
static bool read_plain(const Node *c, const Node *read)
{
	bool plain = true;

	for (int a = tensor_rank(c); a < comp_naxis(c); a++) {
		bool found = false;

		for (int d = 1; d < read->nsrc; d++)
			found = found || read->src[d] == comp_axis(c, a);
		plain = plain && found;
	}
	return plain;
}

typedef struct IndexReads { /* what an index reads */
	Terms *x;
	bool any;
} IndexReads;

/* What an index reads keeps its data. */
static void see_index_read(void *user, Node *n)
{
	IndexReads *r = user;

	if (n->op != OP_READ)
		return;
	r->x->marked[terms_input(r->x, n->src[0])] = false;
	r->any = true;
}

static void see_unmarked(void *user, Node *n)
{
	Terms *x = user;
	int i = n->op == OP_READ ? terms_input(x, n->src[0]) : -1;
	IndexReads r = {x, false};

	if (i < 0)
		return;
	for (int d = 1; d < n->nsrc; d++)
		node_walk(&x->copy.ir, n->src[d], see_index_read, &r);
	/* the element that is read may depend on what an index reads */
	if (!read_plain(x->copy.member[0], n) || n->type == RICCI_BOOL || r.any)
		x->marked[i] = false;
}

static void see_read(void *user, Node *n)
{
	Terms *x = user;
	int i = n->op == OP_READ ? terms_input(x, n->src[0]) : -1;

	if (i >= 0 && x->nread < TERM_READS)
		x->read[x->nread++] = n;
	x->many = x->many || (i >= 0 && x->nread == TERM_READS);
}

/* The dimension in which reduced axis a is an index by itself; -1: none. */
static int plain_dimension(const Node *c, const Node *read, int a)
{
	int d = read->nsrc - 2;

	while (d >= 0 && read->src[1 + d] != comp_axis(c, a))
		d--;
	return d;
}

/* Two reads of an input that have a reduced axis in other dimensions, X[i,k]*X[k,i]: what a chosen term of one element
 * reads, another element's term that was not chosen may read, too. */
static void reads_crossed(Terms *x)
{
	const Node *c = x->copy.member[0];

	for (int r = 0; r < x->nread; r++)
		for (int q = 0; q < r; q++)
			for (int a = tensor_rank(c); a < comp_naxis(c); a++)
				if (x->read[r]->src[0] == x->read[q]->src[0] &&
				    plain_dimension(c, x->read[r], a) !=
					    plain_dimension(c, x->read[q], a))
					x->marked[terms_input(x, x->read[r]->src[0])] = false;
}

/* ---- are the other terms alike? ---- */
typedef struct Zeros { /* the nodes that are zero wherever the marked inputs are */
	Terms *x;
	NodeMap nodes;
} Zeros;

/* Is n such a node, by what its sources are? The other inputs are finite. */
static bool zero_by_sources(const Zeros *z, const Node *n)
{
	bool s[3] = {false};
	int i;

	for (int k = 0; k < n->nsrc && k < COUNT(s); k++)
		s[k] = node_map_get(&z->nodes, n->src[k]) != NULL;
	switch (n->op) {
	case OP_READ:
		i = terms_input(z->x, n->src[0]);
		return i >= 0 && z->x->marked[i];
	case OP_CONST:
		return node_is_value(n, 0);
	case OP_MUL:
		return s[0] || s[1];
	case OP_ADD:
	case OP_SUB:
	case OP_MIN:
	case OP_MAX:
		return s[0] && s[1];
	case OP_SELECT:
		return s[1] && s[2];
	case OP_DIV:
	case OP_NEG:
	case OP_ABS:
	case OP_STOP:
	case OP_CAST:
	case OP_SIGN:
	case OP_TF32:
		return s[0];
	default:
		return false;
	}
}

static void see_zero(void *user, Node *n)
{
	Zeros *z = user;

	if (zero_by_sources(z, n))
		node_map_put(&z->x->copy.ir, &z->nodes, n, n);
}

static bool zero_elsewhere(Terms *x, Node *e)
{
	Zeros z = {.x = x};

	node_walk(&x->copy.ir, e, see_zero, &z);
	return node_map_get(&z.nodes, e) != NULL;
}

/* ---- which kinds of data tell something ---- */
/* What one of the other terms is, at each element; false: they differ, or are no numbers. */
static bool base_values(Terms *x, double base, double *v, double *mag, Error *err)
{
	Node *e = terms_base_body(x, base);
	bool good = e && !terms_values(x, e, TERMS_ANY, NULL, v, mag, err);

	for (int i = 0; i < x->nelement && good; i++)
		good = isfinite(v[i]) && isfinite(mag[i]);
	return good;
}

/* How much the others count in a result: less is better. */
static double base_weight(const Terms *x, const double *v)
{
	Reduce how = comp_reduce(x->copy.member[0]);
	double most = -INFINITY;

	for (int i = 0; i < x->nelement; i++)
		most = fmax(most, how == RED_ADD   ? fabs(v[i])
				  : how == RED_MAX ? v[i]
				  : how == RED_MIN ? -v[i]
				  : v[i] == 1	   ? 0
						   : INFINITY);
	return most;
}

static void kinds_find(Terms *x, double *v, double *mag, Error *err)
{
	Node *c = x->copy.member[0];
	double least = INFINITY;
	bool sums = comp_reduce(c) == RED_ADD;

	x->usable[TERMS_ZEROS] = sums && x->exact > 0 && zero_elsewhere(x, comp_body(c));
	terms_fill(x, true);
	if (sums && x->exact > 0 && base_values(x, 1, v, mag, err)) {
		double most = 0;

		for (int i = 0; i < x->nelement; i++)
			most = fmax(most, mag[i] * terms_count(x));
		x->usable[TERMS_ONES] = most > 0 && most <= x->exact / 2;
	}
	for (int b = 0; b < COUNT(bases); b++)
		if (base_values(x, bases[b], v, mag, err) && base_weight(x, v) < least) {
			least = base_weight(x, v);
			x->base = bases[b];
			x->usable[TERMS_BASE] = true;
		}
}

bool terms_usable(const Terms *x)
{
	return x->usable[TERMS_ZEROS] || x->usable[TERMS_ONES] || x->usable[TERMS_BASE];
}

static bool terms_memory(Terms *x, int nelement, int n)
{
	Arena *a = &x->copy.ir.arena;
	size_t in = (size_t)x->task->sub.ninput + 1;

	x->nelement = nelement;
	x->n = n;
	x->marked = arena_alloc(a, in * sizeof *x->marked);
	x->filled = arena_alloc(a, in * sizeof *x->filled);
	x->place = arena_alloc(a, in * sizeof *x->place);
	x->nplace = arena_alloc(a, in * sizeof *x->nplace);
	x->point = arena_alloc(a, (size_t)(n * COMP_MAX_AXES) * sizeof *x->point);
	x->element = arena_alloc(a, (size_t)(nelement * COMP_MAX_AXES) * sizeof *x->element);
	return sample_one(&x->s, nelement);
}

/* In IR_ENTER of the copy. */
static int terms_find(Terms *x, int nelement, int n, uint64_t seed, Error *err)
{
	Ir *ir = &x->copy.ir;
	const Node *c = x->copy.member[0];
	int code = 0;
	bool any = false;

	if (!terms_memory(x, nelement, n))
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	for (int i = 0; i < x->task->sub.ninput; i++)
		x->marked[i] = true;
	node_walk(ir, comp_body(c), see_unmarked, x);
	node_walk(ir, comp_body(c), see_read, x);
	reads_crossed(x);
	for (int r = 0; r < x->nread; r++)
		any = any || x->marked[terms_input(x, x->read[r]->src[0])];
	if (x->many || !any)
		return 0;
	terms_choose(x, seed);
	for (int r = 0; r < x->nread && !code; r++)
		if (x->marked[terms_input(x, x->read[r]->src[0])])
			code = terms_places(x, x->read[r], err);
	if (!code)
		kinds_find(x, x->s.value[0], x->s.bound[0], err);
	return code;
}

int terms_new(Terms *x, const Task *t, int nelement, int n, uint64_t seed, Error *err)
{
	Node *c = t->sub.member[0];
	int code;

	*x = (Terms){.task = t};
	if (t->sub.nmember > 1 || !comp_is_dense(c) || !comp_reduce(c) || sample_length(c) < 2)
		return 0;
	if (task_copy(t, &x->copy, err))
		return err ? err->code : RICCI_ENOMEM;
	code = exact_members(&x->copy, t, DRAW_WHOLE_MOST, &x->exact);
	if (code)
		return code;
	IR_ENTER(&x->copy.ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	code = terms_find(x, nelement, n, seed, err);
	IR_LEAVE(&x->copy.ir);
	return code;
}

void terms_free(Terms *x)
{
	sample_free(&x->s);
	task_copy_free(&x->copy);
}
