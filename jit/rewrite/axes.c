/* axes.c - two axes of a sum that are one.
 *
 * In: `Y[k] += X[2*k+2*m+n-1] * W[2*m+n] where n < 2, m < 2`. Out: `Y[k] += X[2*k+m-1] * W[m] where m < 4`. Invariant: the
 * same points, each once. */
#include "jit/rewrite/rewrite.h"

/* The body over one axis in place of `outer` and `inner`, which it has only as outer * (inner's extent) + inner;
 * NULL: it has one of them otherwise. */
static Node *body_over_both(Ir *ir, Node *body, Node *outer, Node *inner, Node *both)
{
	Node *rest = node_sub(ir, both, node_scale(ir, outer, axis_extent(inner)));
	Node *e = node_replace(ir, body, 1, &inner, &rest);
	return node_has(e, outer) || node_has(e, inner) ? NULL : e;
}

/* One pair of c's reduced axes that are one; NULL: there is none. */
static Node *pair_joined(Ir *ir, Node *c)
{
	int n = comp_naxis(c), rank = tensor_rank(c);
	Node *axis[COMP_MAX_AXES];
	for (int a = rank; a < n; a++)
		for (int b = rank; b < n; b++) {
			Node *outer = comp_axis(c, a), *inner = comp_axis(c, b);
			if (a == b || axis_extent(outer) < 2 || axis_extent(inner) < 2)
				continue;
			Node *both = node_axis(ir, (int)outer->u.i,
					       axis_extent(outer) * axis_extent(inner));
			Node *body = body_over_both(ir, comp_body(c), outer, inner, both);
			if (!body)
				continue;
			int m = 0;
			for (int k = 0; k < n; k++)
				if (k != b)
					axis[m++] = k == a ? both : comp_axis(c, k);
			return comp_dense(ir, comp_reduce(c), rank, m, axis, body);
		}
	return NULL;
}

Node *axes_joined(Ir *ir, Node *c)
{
	if (comp_reduce(c) == RED_NONE || !comp_is_dense(c))
		return c;
	for (Node *now = c; now; now = pair_joined(ir, c))
		c = now;
	return c;
}
