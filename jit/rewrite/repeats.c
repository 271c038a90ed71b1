/* repeats.c - sums over a tensor that repeats another one's elements read that one.
 *
 * In: `U[p] = X[p/2]` and a sum `Y[p] += U[p+r] * W[r]`. Out: `Y[p] += X[(p+r)/2] * W[r]`, whose partial sums have as many
 * elements as X (window_sums.c, quotients.c). A convolution behind an upsampling is such.
 * Invariant: X has fewer elements than U. */
#include "jit/rewrite/products.h"

/* (Where data say which elements, each of them would look there.) */
static bool is_repeat(Ir *ir, const Node *t)
{
	Node *body = t->op == OP_COMP && comp_reduce(t) == RED_NONE ? comp_body(t) : NULL;
	if (!body || !comp_is_dense(t) || body->op != OP_READ ||
	    tensor_size(body->src[0]) >= tensor_size(t))
		return false;
	for (int d = 1; d < body->nsrc; d++)
		if (node_reads(ir, body->src[d]))
			return false;
	return true;
}

Node *repeats_read(Ir *ir, const Node *c)
{
	Node **read, *body = comp_body(c);
	int n = node_collect(ir, body, OP_READ, &read);
	for (int k = n - 1; k >= 0; k--) { /* those in others' indices later */
		Node *t = read[k]->src[0];
		if (!is_repeat(ir, t))
			continue;
		Node *from =
			node_replace(ir, comp_body(t), tensor_rank(t), t->src, read[k]->src + 1);
		body = node_replace(ir, body, 1, &read[k], &from);
	}
	return body != comp_body(c) ? comp_with(ir, c, RED_ADD, body) : NULL;
}
