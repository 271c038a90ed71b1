/* widen.c - error bounds of ill-conditioned elements, so that an expression's condition is not held against a kernel.
 *
 * Input: sampled elements with their bounds (oracle.c), and what a kernel stored. Output: the verdict; where an element is
 * beyond its bound, the bound after widening. The oracle evaluates the equations again with their inputs, and what is
 * computed of these, changed by a rounding error; a bound grows by the change of the result. Invariant: exact elements
 * keep a bound of 0. */
#include "runtime/verify/verify.h"
#include <float.h>
#include <math.h>
#include <string.h>

typedef struct Move {
	double by;
	bool onto; /* values move onto numbers of fewer bits, and inputs the other way; else away */
} Move;

/* Inputs are moved where they are read: a copy would take as much memory as they. */
typedef struct Moving {
	Ir *ir;
	const TaskCopy *copy;
	const Task *task;
	Move move;
	Node **to; /* by id, what each node of a body becomes */
} Moving;

/* A number from 0 to PRIME - 1 that looks random, of the place that is read: its cube, which is
 * one-to-one, as 3 does not divide PRIME - 1. */
enum { PRIME = 65519 };

static Node *read_mixed(Ir *ir, const Node *read)
{
	const Node *x = read->src[0];
	Node *at = node_int(ir, 1), *square;

	for (int d = 0; d < tensor_rank(x); d++)
		at = node_add(ir, node_scale(ir, at, tensor_extent(x, d)), read->src[1 + d]);
	at = node_floormod(ir, at, PRIME);
	square = node_floormod(ir, node_mul(ir, at, at), PRIME);
	return node_floormod(ir, node_mul(ir, square, at), PRIME);
}

static bool reads_input(const Moving *m, const Node *n)
{
	bool input = false;

	for (int i = 0; n->op == OP_READ && i < m->task->sub.ninput; i++)
		input = input || n->src[0] == m->copy->input[i];
	return input && (n->type == RICCI_F32 || n->type == RICCI_F64);
}

static Node *read_moved(const Moving *m, Node *read)
{
	Ir *ir = m->ir;
	Type type = (Type)read->type;
	Node *up = node2(ir, OP_LT, read_mixed(ir, read), node_int(ir, PRIME / 2));

	double by = m->move.onto ? -m->move.by : m->move.by;
	return node2(
		ir, OP_MUL, read,
		node_select(ir, up, node_const(ir, type, 1 + by), node_const(ir, type, 1 - by)));
}

/* Is it what kernels compute and round to 24 bits, by arithmetic or a function? */
static bool is_rounded(const Node *n)
{
	bool arithmetic = n->op >= OP_ADD && n->op <= OP_DIV;

	return n->type == RICCI_F32 && (arithmetic || (n->op >= OP_POW && n->op <= OP_ERF));
}

/* x moved as far as it is from the next number of fewer bits, a share of `by` at most, away from it or onto it, as
 * decides what a number just below an integer is: what has few bits stays, no later rounding undoes it, and what is
 * computed alike stays alike. */
static Node *value_moved(const Moving *m, Node *x)
{
	Ir *ir = m->ir;
	Node *large = node2(ir, OP_MUL, x, node_const(ir, (Type)x->type, 0x1p52 * m->move.by));
	Node *near = node2(ir, OP_SUB, large, node2(ir, OP_SUB, large, x));
	Node *finite = node2(ir, OP_EQ, near, near); /* it is NaN where x is infinite */
	Node *away = node2(ir, OP_ADD, x, node2(ir, OP_SUB, x, near));

	return node_select(ir, finite, m->move.onto ? near : away, x);
}

/* x, or 0 where kernels may take it for that (kernel_run): what has the exponents of f32 only. */
static Node *value_flushed(const Moving *m, Node *x)
{
	Ir *ir = m->ir;
	Type type = (Type)x->type;

	if (type != RICCI_F32)
		return x;
	Node *small = node2(ir, OP_LT, node1(ir, OP_ABS, x), node_const(ir, type, FLT_MIN));
	return node_select(ir, small, node_const(ir, type, 0), x);
}

static void see_moving(void *user, Node *n)
{
	Moving *m = user;
	Node **src = arena_alloc(&m->ir->arena, ((size_t)n->nsrc + 1) * sizeof *src), *to = n;
	bool changed = false;

	for (int k = 0; k < n->nsrc && !node_is_tensor(n); k++) {
		src[k] = m->to[n->src[k]->id];
		changed |= src[k] != n->src[k];
	}
	if (changed)
		to = node_make(m->ir, n->op, (Type)n->type, n->nsrc, src, n->u.i);
	if (reads_input(m, n))
		to = value_flushed(m, read_moved(m, to));
	else if (is_rounded(n))
		to = value_flushed(m, value_moved(m, to));
	m->to[n->id] = to;
}

/* c with the indices on its left side and its body moved. */
static Node *comp_moved(Moving *m, Node *c)
{
	Ir *ir = m->ir;
	Node *place[RICCI_MAX_RANK], *body = comp_body(c);
	int64_t shape[RICCI_MAX_RANK];
	int rank = tensor_rank(c);

	m->to = arena_alloc(&ir->arena, ((size_t)c->id + 1) * sizeof *m->to);
	for (int d = 0; d < rank; d++) {
		shape[d] = tensor_extent(c, d);
		node_walk(ir, comp_lhs(c, d), see_moving, m);
		place[d] = m->to[comp_lhs(c, d)->id];
	}
	node_walk(ir, body, see_moving, m);
	return comp_make(ir, comp_reduce(c), rank, shape, place, comp_naxis(c), c->src,
			 m->to[body->id]);
}

/* The members read each input's elements moved by a share of `by`, up or down, and what they compute
 * is moved, too, since no move of a changes a - (a + 1). What is subnormal becomes 0. (What reads a
 * member is bound to the one before.) */
static int copy_move(TaskCopy *copy, const Task *t, const void *arg, Error *err)
{
	const Move *move = arg;
	Ir *ir = &copy->ir;

	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	for (int k = 0; k < t->sub.nmember; k++) {
		Moving m = {ir, copy, t, *move, NULL};

		copy->member[k] = comp_moved(&m, copy->member[k]);
	}
	IR_LEAVE(ir);
	return 0;
}

/* base: the bounds before any were widened. Those of s are what the worst of all moves asks for. */
static int widen_once(const Task *t, void *const *input, RandomState rs, Move move,
		      double *const *base, Sample *s, Error *err)
{
	Sample moved;
	int code;

	if (!sample_like(s, &moved)) {
		sample_free(&moved);
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	}
	const Checking how = {.rs = rs};
	code = sample_values(t, input, &how, copy_move, &move, &moved, err);
	for (int k = 0; k < s->nmember && !code; k++)
		for (int i = 0; i < s->count[k]; i++) {
			double bound = base[k][i];

			if (bound == 0) /* what is exact stays so */
				continue;
			bound_widen(&bound, s->value[k][i], moved.value[k][i], 4);
			s->bound[k][i] = fmax(s->bound[k][i], bound);
		}
	sample_free(&moved);
	return code;
}

static double **bounds_copy(Sample *s)
{
	double **base = arena_alloc(&s->arena, ((size_t)s->nmember + 1) * sizeof *base);

	for (int k = 0; base && k < s->nmember; k++) {
		size_t bytes = (size_t)s->count[k] * sizeof **base;

		base[k] = arena_alloc(&s->arena, bytes + 1);
		if (!base[k])
			return NULL;
		memcpy(base[k], s->bound[k], bytes);
	}
	return base;
}

static void bounds_share(Sample *s)
{
	for (int k = 0; k < s->nmember; k++) {
		double widest = 0;

		for (int i = 0; i < s->count[k]; i++)
			if (isfinite(s->bound[k][i]))
				widest = fmax(widest, s->bound[k][i]);
		for (int i = 0; i < s->count[k]; i++)
			if (s->bound[k][i] != 0) /* what is exact stays so */
				s->bound[k][i] = fmax(s->bound[k][i], widest);
	}
}

/* Roundings of a sum over like terms all go one way: then they grow with the terms' number itself.
 */
void sample_one_way(const Task *t, Sample *s)
{
	for (int k = 0; k < s->nmember; k++)
		for (int i = 0; i < s->count[k]; i++)
			s->bound[k][i] *= sqrt(sample_length(t->sub.member[k]));
}

int sample_validate(const Task *t, void *const *input, RandomState rs, Sample *s,
		    void *const *stored, Error *wrong, Error *err)
{
	bool differs = sample_check(t, s, stored, NULL);
	double **base = differs ? bounds_copy(s) : NULL;

	if (differs && !base)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	/* What lies a rounding below a number of fewer bits is found by the least move, a bad condition by larger ones. */
	for (double by = 0x1p-22; by < 0x1p-15 && differs; by *= 8) {
		Move move = {by, by == 0x1p-22};
		int code = widen_once(t, input, rs, move, base, s, err);

		if (code)
			return code;
		if (s->staged)
			bounds_share(s);
		differs = sample_check(t, s, stored, NULL);
	}
	if (differs)
		sample_check(t, s, stored, wrong);
	return 0;
}
