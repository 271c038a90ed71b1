/* tensor.c - reads of tensors that may be numbers, tensors of numbers, and what a copy copies. */
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
	const Node *body = t->op == OP_COMP ? comp_body(t) : t;
	if (body->op != OP_READ || comp_reduce(t) != RED_NONE ||
	    tensor_rank(body->src[0]) != tensor_rank(t))
		return t;
	for (int d = 0; d < tensor_rank(t); d++)
		if (body->src[1 + d] != comp_axis(t, d) ||
		    tensor_extent(body->src[0], d) != tensor_extent(t, d))
			return t;
	return body->src[0];
}

Node *tensor_fill(Ir *ir, Node *like, double value)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(like);
	tensor_axes(ir, like, axes);
	return comp_dense(ir, RED_NONE, rank, rank, axes, node_const(ir, like->type, value));
}
