/* bounds.c - conditions that say whether a read lies inside of its tensor are written as the read's own bounds.
 *
 * In: `0 <= k+n-1 ? X[2*k+n-1] : 0` where n < 2. Out: `X[2*k+n-1] else 0`, which panels are packed from, and padding is
 * found in. Invariant: a condition is replaced by one that holds at the same points. */
#include "jit/rewrite/rewrite.h"

/* a >= 0 just where b >= 0, both integers: b = times*a + rest, where 0 <= rest < times. */
static bool same_sign(Ir *ir, Node *a, Node *b)
{
	Affine of_a = affine_of(ir, a), of_b = affine_of(ir, b);
	int64_t times = of_a.n ? affine_coefficient(&of_b, of_a.atom[0]) / of_a.k[0] : 0;
	if (times < 1)
		return false;
	Node *rest = node_sub(ir, b, node_scale(ir, a, times));
	return rest->lo >= 0 && rest->hi < times;
}

/* What says the same as `cond` of a place of the read's, or cond where it is that; NULL: nothing does. */
static Node *as_bound(Ir *ir, Node *cond, const Node *read)
{
	Node *slack = condition_slack(ir, cond);
	for (int d = 0; slack && d + 1 < read->nsrc; d++) {
		Node *at = read->src[1 + d], *extent = node_int(ir, tensor_extent(read->src[0], d));
		Node *bound[] = {node2(ir, OP_LE, node_int(ir, 0), at),
				 node2(ir, OP_LT, at, extent)};
		for (int k = 0; k < 2; k++) {
			Node *e = condition_slack(ir, bound[k]);
			if (e && same_sign(ir, slack, e))
				return e == slack ? cond : bound[k];
		}
	}
	return NULL;
}

Node *bounds_read(Ir *ir, Node *e)
{
	Node **read, **part, *all = NULL;
	if (e->op != OP_SELECT)
		return e;
	int nread = node_collect(ir, e->src[1], OP_READ, &read);
	int n = node_parts(ir, e->src[0], OP_AND, &part);
	for (int k = 0; k < n; k++) {
		Node *bound = NULL;
		for (int i = 0; i < nread && !bound; i++)
			bound = as_bound(ir, part[k], read[i]);
		bound = bound ? bound : part[k];
		all = node_and(ir, all, bound);
	}
	return node_select(ir, all, e->src[1], e->src[2]);
}
