/* quotients.c - a summed axis of which a product reads quotients, as two axes.
 *
 * In: a sum `Y[r] += X[(p+r+1)/2] * D[p]`. Out: `Y[r] += X[u] * (0 <= 2*u+e-r-1 < P ? D[2*u+e-r-1] : 0)` where e < 2, in
 * which X has no part in e: what is summed over that is a partial sum (summation.c). The weights' gradient of a
 * convolution over an enlarged image is such.
 * Invariant: each point of p is one of u and e. */
#include "jit/rewrite/products.h"

/* What is added to the axis in the quotient n; NULL: it has the axis otherwise, or not. */
static Node *added_to(Ir *ir, Node *n, Node *axis)
{
	if (n->type != RICCI_I64 || !node_has(n, axis))
		return NULL;
	Node *rest = node_sub(ir, n->src[0], axis);
	return node_has(rest, axis) || node_reads(ir, rest) ? NULL : rest;
}

/* Conditions of e that hold for a whole line of the axis, or for none of its elements, without the axis. */
static Node *lines_decided(Ir *ir, Node *e, Node *axis)
{
	Node **cond, *to;
	for (int way = 0; way < 2; way++)
		for (int k = node_collect(ir, e, way ? OP_LE : OP_LT, &cond) - 1; k >= 0; k--) {
			Node *a = cond[k]->src[0], *b = cond[k]->src[1];
			if (a->type != RICCI_I64 || !node_has(cond[k], axis))
				continue;
			Node *more = node_sub(ir, node_sub(ir, b, a), node_int(ir, way ? 0 : 1));
			to = node_floordiv(ir, more, axis_extent(axis));
			if (node_has(to, axis))
				continue;
			to = node2(ir, OP_LE, node_int(ir, 0), to);
			e = node_replace(ir, e, 1, &cond[k], &to);
		}
	return e;
}

/* c over u and e, divisor * u + e - rest in place of axis number k. */
static Node *over_both(Ir *ir, const Node *c, int k, int64_t divisor, Node *rest)
{
	Node *axis[COMP_MAX_AXES], *p = comp_axis(c, k);
	int64_t extent = axis_extent(p);
	int64_t first = int_floor_div(rest->lo, divisor);
	int n = comp_naxis(c);
	for (int i = 0; i < n; i++)
		axis[i] = comp_axis(c, i);
	axis[k] = node_axis(ir, (int)p->u.i,
			    int_floor_div(extent - 1 + rest->hi, divisor) - first + 1);
	axis[n] = node_axis(ir, n, divisor);
	Node *u = node_add(ir, axis[k], node_int(ir, first));
	Node *place = node_sub(ir, node_add(ir, node_scale(ir, u, divisor), axis[n]), rest);
	Node *body = node_replace(ir, comp_body(c), 1, &p, &place);
	Node *inside = NULL, *zero = node_const(ir, (Type)c->type, 0);
	if (body->op == OP_SELECT && node_is_value(body->src[2], 0) &&
	    !node_reads(ir, body->src[0])) { /* (what that reads is read inside) */
		inside = body->src[0];
		body = body->src[1];
	}
	inside = node_and(ir, inside, node2(ir, OP_LE, node_int(ir, 0), place));
	inside = node_and(ir, inside, node2(ir, OP_LE, place, node_int(ir, extent - 1)));
	body = node_select(ir, inside, body, zero);
	body = lines_decided(ir, body, axis[n]);
	return comp_over(ir, c, RED_ADD, n + 1, axis, body);
}

static Node *one_apart(Ir *ir, const Node *c)
{
	Node **quotient;
	int n = node_collect(ir, comp_body(c), OP_FLOORDIV, &quotient);
	uint32_t left = product_left(c);
	for (int k = 0; k < comp_naxis(c) && comp_naxis(c) < COMP_MAX_AXES; k++)
		for (int i = 0; i < n && !(left >> k & 1); i++) {
			int64_t divisor = quotient[i]->src[1]->u.i;
			Node *rest = added_to(ir, quotient[i], comp_axis(c, k));
			if (rest && divisor < axis_extent(comp_axis(c, k)))
				return over_both(ir, c, k, divisor, rest);
		}
	return NULL;
}

Node *quotient_apart(Ir *ir, const Node *c)
{
	int64_t first[RICCI_MAX_RANK];
	Node *one = one_apart(ir, c);
	for (Node *more = one; more; more = one_apart(ir, one))
		one = more;
	Node *part = one ? range_narrowed(ir, one, first) : NULL;
	return part && tensor_same_shape(part, one) ? part : one;
}
