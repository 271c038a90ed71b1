/* tensor.c - reads and sums of tensors that may be numbers, tensors of numbers, and what a copy
 * copies. */
#include "autodiff/internal.h"

Node *tensor_read(Ir *ir, Node *t, Node *const *index)
{
	if (t->op == OP_CONST)
		return t;
	if (t->op == OP_COMP && comp_reduce(t) == RED_NONE && node_is_const(comp_body(t)))
		return comp_body(t);
	return node_read(ir, t, index);
}

Node *tensor_source(Node *t)
{
	Node *same = tensor_copied(t);
	return same ? same : t;
}

Node *tensor_fill(Ir *ir, const Node *like, double value)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(like);
	tensor_axes(ir, like, axes);
	return comp_dense(ir, RED_NONE, rank, rank, axes, node_const(ir, like->type, value));
}

Node *tensor_sum(Ir *ir, Node *a, Node *b)
{
	Node *axes[RICCI_MAX_RANK];
	if (!a || !b)
		return a ? a : b;
	int rank = tensor_rank(a);
	tensor_axes(ir, a, axes);
	return comp_dense(ir, RED_NONE, rank, rank, axes,
			  node_add(ir, tensor_read(ir, a, axes), tensor_read(ir, b, axes)));
}

Node *tensor_variable(Ir *ir, const char *name, Type type, const Node *like)
{
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < tensor_rank(like); d++)
		shape[d] = tensor_extent(like, d);
	return node_input(ir, name, type, tensor_rank(like), shape);
}

bool tensor_alike(const Node *a, const Node *b)
{
	return a->type == b->type && tensor_same_shape(a, b);
}

Node *value_where(Ir *ir, Node *cond, Node *value)
{
	return cond ? node_select(ir, cond, value, node_const(ir, value->type, 0)) : value;
}

Node *weighted(Ir *ir, Node *w, Node *d)
{
	if (w->op == OP_SELECT && node_is_value(w->src[2], 0))
		return node_select(ir, w->src[0], node_mul(ir, w->src[1], d), w->src[2]);
	return node_mul(ir, w, d);
}
