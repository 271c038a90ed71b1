/* sums.c - a reduction of what another one makes, as one reduction.
 *
 * In: an equation `Y red= T[..]` that reads no element of T twice, where the same reduction makes T and
 * nothing else reads it. Out: `Y red= ` what T reduces, over the axes of both. It takes no more
 * points, and T, which can be the largest tensor of all (each step's part of a weight's gradient),
 * needs no memory. Where Y reads T at sums of axes, `T[2*u+e]`, only if that has cheaper partial sums: so is the gradient of
 * a convolution behind an upsampling. */
#include "jit/rewrite/rewrite.h"

/* Do all of c's points read other elements of t? *bare: each index is an axis, or of one element. */
static bool reads_once(Ir *ir, const Node *c, const Node *t, bool *bare)
{
	Node *axis[COMP_MAX_AXES], *const *index = comp_body(c)->src + 1;
	bool has[COMP_MAX_AXES];
	int rank = tensor_rank(t), naxis = comp_naxis(c);
	for (int k = 0; k < naxis; k++)
		axis[k] = comp_axis(c, k);
	if (!indices_one_to_one(ir, naxis, axis, rank, index, has))
		return false;
	for (int k = 0; k < naxis; k++)
		if (!has[k] && axis_extent(axis[k]) > 1)
			return false;
	*bare = true;
	for (int d = 0; d < rank; d++)
		*bare &= node_is_const(index[d]) || index[d]->op == OP_AXIS;
	return read_stays(comp_body(c));
}

static bool can_join(Ir *ir, const Node *c, const Node *t, bool *bare)
{
	return t->op == OP_COMP && comp_reduce(t) == comp_reduce(c) && comp_is_dense(t) &&
	       type_accumulator((Type)t->type) == (Type)t->type && reads_once(ir, c, t, bare) &&
	       comp_naxis(c) + comp_naxis(t) - tensor_rank(t) <= COMP_MAX_AXES;
}

Node *reductions_joined(Ir *ir, Node *c)
{
	Node *body = comp_body(c), *axes[COMP_MAX_AXES], *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
	bool bare;
	if (comp_reduce(c) == RED_NONE || body->op != OP_READ ||
	    !can_join(ir, c, body->src[0], &bare))
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
	Node *joined = comp_over(ir, c, comp_reduce(c), n, axes,
				 node_replace(ir, comp_body(t), d, from, to));
	/* (Running sums take fewer points apart.) */
	if (comp_work(ir, joined, 0) > comp_work(ir, c, 0) + comp_work(ir, t, 0))
		return c;
	return bare || sum_costs_less(ir, joined, t) ? joined : c;
}
