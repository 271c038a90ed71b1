/* broadcasts.c - results that repeat along a dimension are computed once, and sums that repeat along an axis without it.
 *
 * In: `T[i,j,k] = A[i,j]` and `Y[i,j] += T[l,i,m] * B[l,j,m]`. Out: Y over A, which has no m, so that sums and fusion see
 * what varies along which axis. Invariant: what is drawn for each element, by random(key) or by
 * rounding to bf16, stays so. */
#include "jit/rewrite/rewrite.h"

Node *repeats_counted(Ir *ir, Node *c)
{
	Node *axes[COMP_MAX_AXES], *body = comp_body(c);
	Reduce red = comp_reduce(c);
	double times = 1;
	int n = 0;
	if (!type_is_float((Type)c->type) || (red != RED_ADD && red != RED_MUL))
		return c;
	for (int k = 0; k < comp_naxis(c); k++) {
		Node *axis = comp_axis(c, k);
		bool has = node_has(body, axis);
		for (int d = 0; d < tensor_rank(c) && !has; d++)
			has = node_has(comp_lhs(c, d), axis);
		if (has)
			axes[n++] = axis;
		else
			times *= (double)axis_extent(axis);
	}
	if (n == comp_naxis(c))
		return c;
	body = node2(ir, red == RED_ADD ? OP_MUL : OP_POW, body,
		     node_const(ir, (Type)body->type, times));
	return comp_over(ir, c, red, n, axes, body);
}

/* The dimensions along which c repeats, as bits. One of extent 1 stays: shapes that are alike fuse. (Constants are read as
 * numbers anyway.) */
uint32_t broadcast_dims(Ir *ir, const Node *c)
{
	uint32_t dims = 0;
	bool may = comp_is_dense(c) && comp_body(c)->op != OP_CONST && !body_rounds(ir, c);
	for (int d = 0; may && d < tensor_rank(c); d++)
		if (tensor_extent(c, d) > 1 && !node_has(comp_body(c), comp_axis(c, d)))
			dims |= 1U << d;
	return dims;
}

/* Those of rank nodes that the dimensions in `without` don't have, in order; their number. */
static int dims_left(uint32_t without, int rank, Node *const *of, Node **left)
{
	int n = 0;
	for (int d = 0; d < rank; d++)
		if (!(without >> d & 1))
			left[n++] = of[d];
	return n;
}

Node *broadcast_source(Ir *ir, Node *c, uint32_t without)
{
	Node *axis[COMP_MAX_AXES];
	int rank = tensor_rank(c), naxis = comp_naxis(c);
	int left = dims_left(without, rank, c->src, axis), n = left;
	for (int k = rank; k < naxis; k++)
		axis[n++] = comp_axis(c, k);
	return comp_dense(ir, comp_reduce(c), left, n, axis, comp_body(c));
}

Node *broadcast_read(Ir *ir, Node *once, uint32_t without, Node *const *index, int rank)
{
	Node *left[RICCI_MAX_RANK];
	dims_left(without, rank, index, left);
	return node_read(ir, once, left);
}
