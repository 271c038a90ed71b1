/* factors.c - factors that a sum doesn't run over leave it.
 *
 * Y[i,j] += 2 * S[i] * A[i,k] * B[k,j] becomes T[i,j] += A[i,k] * B[k,j], with Y[i,j] = 2 * S[i] * T[i,j] as its
 * epilogue: an operand that is read as it lies may stay unpacked. In: the graph after inlining, which brings such
 * factors (a gradient's 2 * R). Out: roots of the same values, rounded otherwise. */
#include "jit/fuse/internal.h"
#include "jit/rewrite/products.h"

enum { SHORT = 16 }; /* terms of a sum that gains nothing as a contraction */

/* c, or what has the factors of a sum of products. What leaves a condition may be evaluated where that never holds: it
 * is safe there, or takes the condition with it. */
static Node *without_factors(void *user, Node *was, Node *c)
{
	(void)was;
	Ir *ir = user;
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(c), n;
	if (c->op != OP_COMP || !comp_is_dense(c) || comp_reduce(c) != RED_ADD ||
	    comp_points(c) <= SHORT * (double)tensor_size(c) || !type_is_float((Type)c->type) ||
	    type_accumulator((Type)c->type) != (Type)c->type)
		return c;
	Factors l = product_split(ir, c, comp_body(c));
	n = product_part(&l, ~0U << rank);
	bool varies = n > 1; /* a constant stays with what is not multiplied otherwise */
	for (int k = n; k < l.n; k++)
		varies |= l.f[k].axes != 0;
	if (n < 1 || n == l.n || !varies)
		return c;
	tensor_axes(ir, c, axes);
	Node *sum = comp_with(ir, c, RED_ADD, product_of(&l, n, l.f));
	l.f[--n] = (Factor){.value = node_read(ir, sum, axes)};
	return comp_dense(ir, RED_NONE, rank, rank, axes, product_of(&l, l.n - n, l.f + n));
}

void fuse_factors(Fuse *f, int nroot, Node **roots)
{
	graph_change(f->ir, nroot, roots, without_factors, f->ir);
}
