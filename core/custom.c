/* custom.c - records of equations that hide others from differentiation (autodiff/custom.c makes
 * and uses them). A graph that is copied over other tensors, as bodies of loops are, takes copies
 * of the records with it. Invariant: result k of record `number` is Z[..] = stop(Y[..]) with that
 * number.
 */
#include "core/fold.h"

const Custom *custom_of(const Ir *ir, const Node *t)
{
	if (t->op != OP_COMP || comp_body(t)->op != OP_STOP)
		return NULL;
	int64_t number = comp_body(t)->u.i;
	return number > 0 && number <= ir->ncustom ? ir->custom[number - 1] : NULL;
}

void custom_add(Ir *ir, Custom *c)
{
	if ((ir->ncustom & (ir->ncustom + 1)) == 0) { /* full: 0, 1, 3, 7.. */
		Custom **old = ir->custom;
		ir->custom = arena_alloc(&ir->arena, sizeof *old * (2 * (size_t)ir->ncustom + 1));
		for (int k = 0; k < ir->ncustom; k++)
			ir->custom[k] = old[k];
	}
	ir->custom[ir->ncustom++] = c;
}

Node *custom_hide(Ir *ir, Node *y, int number)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(y);
	for (int d = 0; d < rank; d++)
		axes[d] = node_axis(ir, d, tensor_extent(y, d));
	Node *read = node_read(ir, y, axes);
	return comp_dense(ir, RED_NONE, rank, rank, axes,
			  node_make(ir, OP_STOP, (Type)y->type, 1, &read, number));
}

int graph_order_hidden(Ir *ir, int nroot, Node *const *root, Node ***order)
{
	int n = nroot, room = nroot + 1;
	uint32_t last = 0;
	for (int k = 0; k < ir->ncustom; k++)
		room += ir->custom[k]->noperand;
	Node **roots = arena_alloc(&ir->arena, sizeof *roots * (size_t)room);
	for (int k = 0; k < nroot; k++) {
		roots[k] = root[k];
		last = root[k]->id > last ? root[k]->id : last;
	}
	for (int k = 0; k < ir->ncustom; k++)
		for (int i = 0; i < ir->custom[k]->noperand; i++)
			if (ir->custom[k]->operand[i]->id < last)
				roots[n++] = ir->custom[k]->operand[i];
	return graph_order(ir, n, roots, order);
}

/* The record of the same equations over these operands, or 0. */
static int find_copy(const Ir *ir, const Custom *origin, Node *const *operand)
{
	for (int k = 0; k < ir->ncustom; k++) {
		const Custom *c = ir->custom[k];
		bool same = c == origin || c->origin == origin;
		for (int i = 0; same && i < c->noperand; i++)
			same = c->operand[i] == operand[i];
		if (same)
			return k + 1;
	}
	return 0;
}

int custom_copy(Ir *ir, const Custom *c, NodeMap *map)
{
	const Custom *origin = c->origin ? c->origin : c;
	Arena *a = &ir->arena;
	Node **operand = arena_alloc(a, sizeof *operand * ((size_t)c->noperand + 1));
	graph_replace(ir, c->noperand, c->operand, map);
	for (int k = 0; k < c->noperand; k++)
		operand[k] = node_map_get(map, c->operand[k]);
	int number = find_copy(ir, origin, operand);
	if (number)
		return number;
	Custom *copy = arena_alloc(a, sizeof *copy);
	*copy = *c;
	copy->origin = origin;
	copy->operand = operand;
	copy->result = arena_alloc(a, sizeof *copy->result * ((size_t)c->nresult + 1));
	custom_add(ir, copy);
	number = ir->ncustom;
	for (int k = 0; k < c->nresult; k++) {
		Node *y = comp_body(c->result[k])->src[0]->src[0];
		graph_replace(ir, 1, &y, map);
		copy->result[k] = custom_hide(ir, node_map_get(map, y), number);
	}
	return number;
}
