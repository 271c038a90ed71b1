/* rows.c - tensors of rows of positions, read and made by position.
 *
 * Input: the axes that tell the rows apart. Output: tensors whose last axis is the position, and
 * their elements. Invariant: no position that a tensor lacks is read. */
#include "autodiff/internal.h"

Node *rows_position(const Rows *r, int64_t n)
{
	return node_axis(r->ir, r->rank, n);
}

Node *rows_tensor(const Rows *r, int64_t n, Node *value)
{
	Node *axes[RICCI_MAX_RANK];
	for (int k = 0; k < r->rank; k++)
		axes[k] = r->axes[k];
	axes[r->rank] = rows_position(r, n);
	return tensor_source(comp_dense(r->ir, RED_NONE, r->rank + 1, r->rank + 1, axes, value));
}

Node *rows_read(const Rows *r, Node *tensor, Node *x, double beyond)
{
	Ir *ir = r->ir;
	Node *at[RICCI_MAX_RANK];
	for (int k = 0; k < r->rank; k++)
		at[k] = r->axes[k];
	at[r->rank] = x;
	Node *end = node_int(ir, tensor_extent(tensor, r->rank));
	Node *inside =
		node2(ir, OP_AND, node2(ir, OP_LE, node_int(ir, 0), x), node2(ir, OP_LT, x, end));
	return node_select(ir, inside, node_read(ir, tensor, at),
			   node_const(ir, tensor->type, beyond));
}
