/* rounding.c - stochastic rounding: what is rounded from f32 to bf16 goes up or down by
 * chance.
 *
 * In: roots of a cleaned-up graph. Out: roots of the same types and shapes, in which the casts of
 * f32 to bf16 within equations (those of precision.c too) round to either neighbour, to the
 * nearer one more often: its mean is the number itself (Gupta et al. 2015, "Deep learning with
 * limited numerical precision"). Equations like others: with y the nearest bf16 and z the one on
 * the other side of x,
 *	random(key, element) < (x - y)/(z - y) ? z : y
 * whose quotient is exact, z - y being a power of two. The number drawn follows from the session's
 * seed, the step, what is rounded (rounding_key.c) and the point of the equation's domain, so
 * neither schedule nor threads change it, and what a gradient computes again is rounded again as it
 * was. Zeros, what bf16 holds exactly, denormals, infinities and NaNs are rounded as ever.
 */
#include "jit/rewrite/rewrite.h"

/* From any bf16 number of 8 bits less than a place, and more than half of one, towards either side.
 */
#define BESIDE (5. / 1024)

static bool is_rounding(const Node *cast)
{
	const Node *x = cast->src[0];
	return cast->type == RICCI_BF16 && x->type == RICCI_F32 &&
	       (x->op != OP_CAST || x->src[0]->type != RICCI_BF16);
}

/* The point of the equation's domain as a number. */
static Node *point_of(Ir *ir, const Node *c)
{
	Node *at = node_int(ir, 0);
	for (int k = 0; k < comp_naxis(c); k++)
		at = node_add(ir, node_scale(ir, at, axis_extent(comp_axis(c, k))),
			      comp_axis(c, k));
	return at;
}

/* x as bf16. Users' keys are smaller. */
static Node *rounded(Ir *ir, uint32_t content, Node *x, Node *point)
{
	Node *key = node_int(ir, (int64_t)1 << 40 | content);
	Node *near = node_cast(ir, RICCI_BF16, x), *y = node_cast(ir, RICCI_F32, near);
	Node *off = node2(ir, OP_SUB, x, y);
	Node *side = node2(ir, OP_MUL, node1(ir, OP_ABS, y), node1(ir, OP_SIGN, off));
	side = node2(ir, OP_MUL, node_const(ir, RICCI_F32, BESIDE), side);
	Node *far = node_cast(ir, RICCI_BF16, node2(ir, OP_ADD, y, side));
	Node *gap = node2(ir, OP_SUB, node_cast(ir, RICCI_F32, far), y);
	Node *draw = node_make(ir, OP_RANDOM, RICCI_F32, 2, (Node *[]){key, point}, 0);
	Node *share = node2(ir, OP_DIV, off, gap);
	return node_select(ir, node2(ir, OP_LT, draw, share), far, near);
}

static Node *comp_rounding(Ir *ir, RoundingKeys *keys, Node *c)
{
	Node **cast, *point = point_of(ir, c);
	int all = node_collect(ir, comp_body(c), OP_CAST, &cast), n = 0;
	Node **to = arena_alloc(&ir->arena, (size_t)all * sizeof *to);
	for (int k = 0; k < all; k++) { /* sources come first */
		if (!is_rounding(cast[k]))
			continue;
		Node *x = node_replace(ir, cast[k]->src[0], n, cast, to);
		cast[n] = cast[k];
		to[n++] = rounded(ir, rounding_key(keys, cast[k]), x, point);
	}
	return n ? comp_with(ir, c, comp_reduce(c), node_replace(ir, comp_body(c), n, cast, to))
		 : c;
}

int rewrite_rounding(Ir *ir, const Within *in, int nroot, Node **roots)
{
	Node **order;
	NodeMap now = {0};
	int n = graph_order(ir, nroot, roots, &order);
	RoundingKeys *keys = rounding_keys(ir, in, n, order);
	for (int k = 0; k < n; k++) {
		Node *c = order[k]->op == OP_COMP ? comp_rounding(ir, keys, order[k]) : order[k];
		node_map_put(ir, &now, order[k], tensor_over(ir, c, &now));
	}
	for (int k = 0; k < nroot; k++)
		roots[k] = node_map_get(&now, roots[k]);
	return ir->err.code;
}
