/* custom.c - records of equations that hide others from differentiation (autodiff/custom.c makes
 * and uses them). A graph that is copied over other tensors, as bodies of loops are, takes copies
 * of the records with it. Invariant: result k of record `number` is Z[..] = stop_gradient(Y[..]) with that
 * number.
 */
#include "core/node/internal.h"

const Custom *custom_of(const Ir *ir, const Node *t)
{
	if (t->op != OP_COMP || comp_body(t)->op != OP_STOP)
		return NULL;
	int64_t number = comp_body(t)->u.i;
	return number > 0 && number <= ir->ncustom ? ir->custom[number - 1] : NULL;
}

void custom_add(Ir *ir, Custom *c)
{
	ir->custom = arena_grow(&ir->arena, ir->custom, ir->ncustom, &ir->custom_room,
				sizeof *ir->custom);
	ir->custom[ir->ncustom++] = c;
}

Node *custom_hide(Ir *ir, Node *y, int number)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(y);
	tensor_axes(ir, y, axes);
	Node *read = node_read(ir, y, axes);
	return comp_dense(ir, RED_NONE, rank, rank, axes,
			  node_make(ir, OP_STOP, (Type)y->type, 1, &read, number));
}
