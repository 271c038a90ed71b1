/* points.c - a reduction whose condition says where one of its axes is has one point along it.
 *
 * In: `Y[i] += A[i,j] * (j == T[i] ? 1.0 : 0)`. Out: `Y[i] += 0 <= T[i] && T[i] < J ? A[i,T[i]] : 0`, with no axis j.
 * Invariant: at all other points the body is what the reduction starts from. */
#include "jit/rewrite/rewrite.h"

enum { CONDITIONS_MOST = 32 };

/* What is compared, as an index. */
static Node *as_index(Ir *ir, Node *e)
{
	Node *from = cast_keeps(e) ? e->src[0] : e;
	return from->type == RICCI_I64 ? from : node_cast(ir, RICCI_I64, from);
}

/* Where the axis is by the condition; NULL: it doesn't say so. */
static Node *place_of(Ir *ir, Node *cond, Node *axis)
{
	if (cond->op != OP_EQ || !node_has(cond, axis) ||
	    (cond->src[0]->type != RICCI_I64 && cond->src[0]->type != RICCI_I32))
		return NULL;
	return index_placed(ir, as_index(ir, cond->src[0]), as_index(ir, cond->src[1]), axis);
}

/* The axis, of number from .. n-1, that one of the conditions places: which one, and where; -1: none. */
static int placed_axis(Ir *ir, int ncond, Node *const *cond, int from, int n, Node *const *axes,
		       int *by, Node **place)
{
	for (*by = 0; *by < ncond; ++*by)
		for (int k = from; k < n; k++)
			if ((*place = place_of(ir, cond[*by], axes[k])))
				return k;
	return -1;
}

/* The other conditions with the axis in its place: where the place may be read is known before it is, and that it lies inside
 * before anything is read there. */
static Node *conditions_at(Ir *ir, int n, Node *const *cond, int by, Node *axis, Node *place)
{
	Node *last = node_int(ir, axis_extent(axis) - 1), *all = node_const_int(ir, RICCI_BOOL, 1);
	for (int c = 0; c < by; c++)
		if (!node_has(cond[c], axis))
			all = node2(ir, OP_AND, all, cond[c]);
	all = node2(ir, OP_AND, all, node2(ir, OP_LE, node_int(ir, 0), place));
	all = node2(ir, OP_AND, all, node2(ir, OP_LE, place, last));
	for (int c = 0; c < n; c++)
		if (c != by && (c > by || node_has(cond[c], axis)))
			all = node2(ir, OP_AND, all, node_replace(ir, cond[c], 1, &axis, &place));
	return all;
}

Node *points_found(Ir *ir, Reduce red, Node *body, int *naxis, Node **axes, int nkeep)
{
	Node *cond[CONDITIONS_MOST], *place;
	int n, at, by;
	Node *value = reduce_guards(ir, red, body, CONDITIONS_MOST, &n, cond);
	if ((at = placed_axis(ir, n, cond, nkeep, *naxis, axes, &by, &place)) < 0)
		return body;
	Node *axis = axes[at], *all = conditions_at(ir, n, cond, by, axis, place);
	for ((*naxis)--; at < *naxis; at++)
		axes[at] = axes[at + 1];
	Type type = (Type)body->type;
	body = node_select(ir, all, node_replace(ir, value, 1, &axis, &place),
			   node_identity(ir, red, type, type));
	return points_found(ir, red, body, naxis, axes, nkeep);
}
