/* points.c - a reduction whose condition says where one of its axes is has one point along it.
 *
 * In: `Y[i] += A[i,j] * (j == T[i] ? 1.0 : 0)`. Out: `Y[i] += 0 <= T[i] && T[i] < J ? A[i,T[i]] : 0`, with no axis j.
 * Invariant: at all other points the body is what the reduction starts from. */
#include "jit/rewrite/rewrite.h"

enum { CONDITIONS_MOST = 32 };

/* Where the axis is by the condition; NULL: it doesn't say so. */
static Node *place_of(Ir *ir, Node *cond, Node *axis)
{
	if (cond->op != OP_EQ || cond->src[0]->type != RICCI_I64 || !node_has(cond, axis))
		return NULL;
	Node *e = node_sub(ir, cond->src[0], cond->src[1]);
	int64_t k = affine_stride(ir, e, axis);
	if (k != 1 && k != -1)
		return NULL;
	return node_scale(ir, node_sub(ir, e, node_scale(ir, axis, k)), -k);
}

/* The axis, of number from .. n-1, that one of the conditions places, and where; -1: none. */
static int placed_axis(Ir *ir, int ncond, Node *const *cond, int from, int n, Node *const *axes,
		       Node **place)
{
	for (int c = 0; c < ncond; c++)
		for (int k = from; k < n; k++)
			if ((*place = place_of(ir, cond[c], axes[k])))
				return k;
	return -1;
}

Node *points_found(Ir *ir, Reduce red, Node *body, int *naxis, Node **axes, int nkeep)
{
	Node *cond[CONDITIONS_MOST], *place;
	int n, at;
	Node *value = reduce_guards(ir, red, body, CONDITIONS_MOST, &n, cond);
	if ((at = placed_axis(ir, n, cond, nkeep, *naxis, axes, &place)) < 0)
		return body;
	Node *axis = axes[at], *last = node_int(ir, axis_extent(axis) - 1);
	Node *all = node2(ir, OP_AND, node2(ir, OP_LE, node_int(ir, 0), place),
			  node2(ir, OP_LE, place, last));
	for (int c = 0; c < n; c++)
		all = node2(ir, OP_AND, all, node_replace(ir, cond[c], 1, &axis, &place));
	for ((*naxis)--; at < *naxis; at++)
		axes[at] = axes[at + 1];
	Type type = (Type)body->type;
	body = node_select(ir, all, node_replace(ir, value, 1, &axis, &place),
			   node_identity(ir, red, type, type));
	return points_found(ir, red, body, naxis, axes, nkeep);
}
