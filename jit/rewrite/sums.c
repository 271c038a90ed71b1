/* sums.c - a reduction of what another one makes, as one reduction.
 *
 * In: an equation `Y red= T[..]` that reads no element of T twice, where the same reduction makes T and
 * nothing else reads it. Out: `Y red= ` what T reduces, over the axes of both. It takes no more
 * points, and T, which can be the largest tensor of all (each step's part of a weight's gradient),
 * needs no memory. */
#include "jit/rewrite/rewrite.h"

int rewrite_place(Node *const *list, int n, const Node *x)
{
	for (int k = 0; k < n; k++)
		if (list[k] == x)
			return k;
	return -1;
}

/* Is each index another axis of c, in its range, and is each axis among them? */
static bool reads_once(const Node *c, const Node *t)
{
	Node *const *index = comp_body(c)->src + 1;
	int rank = tensor_rank(t), naxis = comp_naxis(c), used = 0;
	for (int d = 0; d < rank; d++) {
		if (node_is_const(index[d])) /* of an axis of one element */
			continue;
		if (rewrite_place(c->src, naxis, index[d]) < 0 ||
		    rewrite_place(index, d, index[d]) >= 0 ||
		    axis_extent(index[d]) > tensor_extent(t, d))
			return false;
		used++;
	}
	for (int k = 0; k < naxis; k++)
		used += axis_extent(comp_axis(c, k)) == 1 &&
			rewrite_place(index, rank, comp_axis(c, k)) < 0;
	return used == naxis;
}

static bool can_join(const Node *c, const Node *t)
{
	return t->op == OP_COMP && comp_reduce(t) == comp_reduce(c) && comp_is_dense(t) &&
	       type_accumulator((Type)t->type) == (Type)t->type && reads_once(c, t) &&
	       comp_naxis(c) + comp_naxis(t) - tensor_rank(t) <= COMP_MAX_AXES;
}

Node *reductions_joined(Ir *ir, Node *c)
{
	Node *body = comp_body(c), *axes[COMP_MAX_AXES], *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
	if (comp_reduce(c) == RED_NONE || body->op != OP_READ || !can_join(c, body->src[0]))
		return c;
	Node *t = body->src[0];
	int n = comp_naxis(c), rank = tensor_rank(t), d = 0;
	for (int k = 0; k < n; k++)
		axes[k] = comp_axis(c, k);
	for (; d < comp_naxis(t); d++) {
		from[d] = comp_axis(t, d);
		to[d] = d < rank ? body->src[1 + d]
				 : node_axis(ir, COMP_MAX_AXES + d, axis_extent(from[d]));
		if (d >= rank)
			axes[n++] = to[d];
	}
	int64_t shape[RICCI_MAX_RANK];
	for (int k = 0; k < tensor_rank(c); k++)
		shape[k] = tensor_extent(c, k);
	Node *all = node_replace(ir, comp_body(t), d, from, to);
	Node *joined = comp_make(ir, comp_reduce(c), tensor_rank(c), shape, c->src + comp_naxis(c),
				 n, axes, all);
	/* (Running sums take fewer points apart.) */
	return comp_work(ir, joined, 0) <= comp_work(ir, c, 0) + comp_work(ir, t, 0) ? joined : c;
}
