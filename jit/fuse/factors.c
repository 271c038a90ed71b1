/* factors.c - factors that a contraction doesn't run over leave it.
 *
 * Y[i,j] += 2 * S[i] * A[i,k] * B[k,j] becomes T[i,j] += A[i,k] * B[k,j], with Y[i,j] = 2 * S[i] * T[i,j] as its
 * epilogue: an operand that is read as it lies may stay unpacked. In: the graph after inlining, which brings such
 * factors (a gradient's 2 * R). Out: roots of the same values, rounded otherwise. */
#include "jit/fuse/internal.h"

enum { SHORT = 8 }; /* terms of a sum that is none of the micro-kernels */

/* e = factor * rest; NULL is 1. */
typedef struct Split {
	Node *factor, *rest;
} Split;

static Node *times(Ir *ir, Node *a, Node *b)
{
	return a && b ? node2(ir, OP_MUL, a, b) : a ? a : b;
}

static bool runs_over(const Node *c, Node *e)
{
	for (int k = tensor_rank(c); k < comp_naxis(c); k++)
		if (node_has(e, comp_axis(c, k)))
			return true;
	return false;
}

static Node *one(Ir *ir, const Node *e)
{
	return node_const(ir, (Type)e->type, 1);
}

static bool is_unsafe(const Node *n)
{
	return n->op == OP_READ ? !read_stays(n)
				: type_is_float((Type)n->type) && !node_stays_finite(n);
}

bool expr_is_safe(Ir *ir, Node *e)
{
	return !node_any(ir, e, is_unsafe);
}

/* Of e, a part of c's body. What leaves a condition may then be evaluated where that never holds: it is
 * safe there, or takes the condition with it. */
static Split split(Ir *ir, const Node *c, Node *e)
{
	if (!runs_over(c, e))
		return (Split){e, NULL};
	if (e->op == OP_MUL) {
		Split a = split(ir, c, e->src[0]), b = split(ir, c, e->src[1]);
		return (Split){times(ir, a.factor, b.factor), times(ir, a.rest, b.rest)};
	}
	if (e->op == OP_NEG) {
		Split a = split(ir, c, e->src[0]);
		return (Split){node1(ir, OP_NEG, a.factor ? a.factor : one(ir, e)), a.rest};
	}
	if (e->op == OP_DIV && !runs_over(c, e->src[1])) {
		Split a = split(ir, c, e->src[0]);
		return (Split){node2(ir, OP_DIV, a.factor ? a.factor : one(ir, e), e->src[1]),
			       a.rest};
	}
	if (e->op == OP_SELECT && node_is_value(e->src[2], 0)) {
		Split a = split(ir, c, e->src[1]);
		bool safe = !a.factor || expr_is_safe(ir, a.factor);
		bool same = !runs_over(c, e->src[0]);
		if (!safe && same)
			a.factor = node_select(ir, e->src[0], a.factor, e->src[2]);
		if (a.rest && (safe || same))
			return (Split){a.factor, node_select(ir, e->src[0], a.rest, e->src[2])};
	}
	return (Split){NULL, e};
}

/* c, or what has the factors of a sum of products. */
static Node *without_factors(void *user, Node *was, Node *c)
{
	(void)was;
	Ir *ir = user;
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(c);
	if (c->op != OP_COMP || !comp_is_dense(c) || comp_reduce(c) != RED_ADD ||
	    comp_points(c) <= SHORT * (double)tensor_size(c) || !type_is_float((Type)c->type) ||
	    type_accumulator((Type)c->type) != (Type)c->type)
		return c;
	Split s = split(ir, c, comp_body(c));
	if (!s.factor || !s.rest)
		return c;
	tensor_axes(ir, c, axes);
	const Node *guarded = s.rest->op == OP_SELECT ? s.rest->src[1] : s.rest;
	if (guarded->op != OP_MUL)
		return c;
	Node *sum = node_read(ir, comp_with(ir, c, RED_ADD, s.rest), axes);
	return comp_dense(ir, RED_NONE, rank, rank, axes, node2(ir, OP_MUL, s.factor, sum));
}

void fuse_factors(Fuse *f, int nroot, Node **roots)
{
	graph_change(f->ir, nroot, roots, without_factors, f->ir);
}
