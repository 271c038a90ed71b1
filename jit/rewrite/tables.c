/* tables.c - what is read at a place that several axes choose, read along an axis of its own.
 *
 * In: a sum `Y[u,p] += W[v] * X[u == v ? 0 : u + v,p]`. Out: `Y[u,p] += w == (u == v ? 0 : u + v) ? W[v] * X[w,p] : 0`, in
 * which the choice is a factor without p: what it leaves of W is a partial sum (summation.c). A product of quaternions
 * is such, of any algebra, a convolution over a group.
 * Invariant: each term stands at one place of the new axis. */
#include "jit/rewrite/products.h"

/* c with dimension d of the read along a new axis. */
static Node *along_axis(Ir *ir, const Node *c, Node *read, int d)
{
	Node *axis[COMP_MAX_AXES];
	int n = comp_naxis(c);
	for (int k = 0; k < n; k++)
		axis[k] = comp_axis(c, k);
	axis[n] = node_axis(ir, n, tensor_extent(read->src[0], d));
	Node *is = node2(ir, OP_EQ, axis[n], read->src[1 + d]);
	Node *to = read_along(ir, read, d, axis[n]);
	Node *body = node_select(ir, is, node_replace(ir, comp_body(c), 1, &read, &to),
				 node_const(ir, (Type)c->type, 0));
	return comp_over(ir, c, RED_ADD, n + 1, axis, body);
}

Node *table_along(Ir *ir, const Node *c)
{
	Node **read;
	int n = node_collect(ir, comp_body(c), OP_READ, &read);
	for (int k = 0; k < n && comp_naxis(c) < COMP_MAX_AXES; k++)
		for (int d = 0; d < tensor_rank(read[k]->src[0]); d++)
			if (index_is_table(ir, read[k]->src[1 + d],
					   tensor_extent(read[k]->src[0], d)))
				return along_axis(ir, c, read[k], d);
	return NULL;
}
