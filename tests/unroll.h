/* unroll.h - a loop as the equations of its steps, one after the other: what it computes by
 * definition. */
#ifndef UNROLL_H
#define UNROLL_H

#include "core/core.h"

__attribute__((unused)) static Node *row_of(Ir *ir, Node *x, int64_t t)
{
	Node *index[RICCI_MAX_RANK] = {node_int(ir, t)};
	int rank = tensor_rank(x) - 1;
	for (int d = 0; d < rank; d++)
		index[d + 1] = node_axis(ir, d, tensor_extent(x, d + 1));
	return comp_dense(ir, RED_NONE, rank, rank, index + 1, node_read(ir, x, index));
}

/* stack with row t, or zeros for stack NULL. */
__attribute__((unused)) static Node *with_row(Ir *ir, Node *stack, int64_t rows, int64_t t,
					      Node *row)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(row) + 1;
	axes[0] = node_axis(ir, 0, rows);
	for (int d = 1; d < rank; d++)
		axes[d] = node_axis(ir, d, tensor_extent(row, d - 1));
	Node *zero = node_const(ir, (Type)row->type, 0);
	Node *body = !stack ? zero
			    : node_select(ir, node2(ir, OP_EQ, axes[0], node_int(ir, t)),
					  node_read(ir, row, axes + 1), node_read(ir, stack, axes));
	return comp_dense(ir, RED_NONE, rank, rank, axes, body);
}

/* final[k] and stacked[k] as ricci_scan gives them, when `length` steps are done. */
__attribute__((unused)) static void unroll(Ir *ir, const ricci_loop *l, int64_t length,
					   Node **final, Node **stacked)
{
	enum { MOST_ROOTS = 64 };
	for (int k = 0; k < l->ncarry; k++)
		final[k] = l->carry[k].initial->node;
	for (int k = 0; k < l->nout; k++)
		stacked[k] = with_row(ir, NULL, l->steps, 0, l->out[k]->node);
	for (int64_t i = 0; i < length; i++) {
		int64_t t = l->backwards ? length - 1 - i : i;
		NodeMap map = {0};
		Node *root[MOST_ROOTS];
		int n = 0;
		for (int k = 0; k < l->nslice; k++)
			node_map_put(ir, &map, l->slice[k].variable->node,
				     row_of(ir, l->slice[k].tensor->node, t));
		for (int k = 0; k < l->ncarry; k++) {
			node_map_put(ir, &map, l->carry[k].variable->node, final[k]);
			root[n++] = l->carry[k].next->node;
		}
		for (int k = 0; k < l->nout; k++)
			root[n++] = l->out[k]->node;
		graph_replace(ir, n, root, &map);
		for (int k = 0; k < l->ncarry; k++)
			final[k] = node_map_get(&map, root[k]);
		for (int k = 0; k < l->nout; k++)
			stacked[k] = with_row(ir, stacked[k], l->steps, t,
					      node_map_get(&map, root[l->ncarry + k]));
	}
}

#endif
