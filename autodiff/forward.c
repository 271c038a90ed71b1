/* forward.c - forward mode over a graph of equations: Jacobian-vector products.
 *
 * Input: y, tensors x with their tangents. Output: the tangent of y, as an equation. Tensors are
 * visited in the order of their ids; the tangent of Y[lhs(v)] op= body(v) is
 *	tY[lhs(v)] += w(v) * t body(v)
 * where w is what reverse mode gives the body for a gradient of ones (equation.c): 1 for sums, the
 * equal shares of extrema, the product of the other factors. Invariant: a tangent is a tensor of
 * its tensor's type and shape, or NULL for zeros.
 */
#include "autodiff/internal.h"

static Node *equation_tangent(Forward *f, Node *c)
{
	Ir *ir = f->ir;
	Node *d = derive_forward(f, comp_body(c), equation_root(ir, c));
	if (!d || running_tangent(f, c, &d))
		return d;
	d = weighted(ir, equation_seed(ir, c, node_const(ir, c->type, 1)), d);
	return comp_with(ir, c, comp_reduce(c) == RED_NONE ? RED_NONE : RED_ADD, d);
}

/* The tangents of all results of t's run, at the first of them. */
static int visit_run(Forward *f, Node *t, int norder, Node *const *order, size_t room,
		     Node **computed, bool *done)
{
	Ir *ir = f->ir;
	Run run = run_of(ir, t, norder, order);
	Node **toperand = arena_alloc(&ir->arena, sizeof *toperand * ((size_t)run.noperand + 1));
	Node **tresult = arena_alloc(&ir->arena, sizeof *tresult * (size_t)run.nresult);
	bool any = false;
	for (int k = 0; k < run.noperand; k++) {
		toperand[k] = f->tangent[run.operand[k]->id];
		any |= toperand[k] != NULL;
	}
	if (any && (run.custom ? custom_tangents(ir, run.custom, toperand, tresult)
			       : scan_tangents(ir, run.nresult, run.result, toperand, tresult)))
		return ir->err.code;
	for (int k = 0; k < run.nresult; k++)
		if (run.result[k]->id < room) {
			computed[run.result[k]->id] = tresult[k];
			done[run.result[k]->id] = true;
		}
	return 0;
}

int forward_graph(Ir *ir, int nroot, Node *const *root, int n, Node *const *x, Node *const *tangent,
		  Node **out)
{
	Node **order;
	int norder = graph_order_hidden(ir, nroot, root, &order);
	size_t room = 1;
	for (int k = 0; k < norder; k++)
		room = order[k]->id >= room ? order[k]->id + 1u : room;
	Forward f = {.ir = ir};
	f.tangent = arena_alloc(&ir->arena, sizeof *f.tangent * room);
	f.memo = arena_alloc(&ir->arena, sizeof *f.memo * room);
	f.seen = arena_alloc(&ir->arena, sizeof *f.seen * room);
	Node **computed = arena_alloc(&ir->arena, sizeof *computed * room);
	bool *done = arena_alloc(&ir->arena, sizeof *done * room);
	for (int k = 0; k < n; k++)
		if (x[k]->id < room)
			f.tangent[x[k]->id] = tensor_sum(ir, f.tangent[x[k]->id], tangent[k]);
	for (int k = 0; k < norder; k++) {
		Node *t = order[k];
		bool runs = is_of_run(ir, t);
		if (runs && !done[t->id] && visit_run(&f, t, norder, order, room, computed, done))
			return ir->err.code;
		if (!runs && t->op == OP_COMP && type_is_float(t->type))
			computed[t->id] = equation_tangent(&f, t);
		f.tangent[t->id] = tensor_sum(ir, f.tangent[t->id], computed[t->id]);
	}
	for (int k = 0; k < nroot; k++)
		out[k] = f.tangent[root[k]->id];
	return ir->err.code;
}

int autodiff_forward(Ir *ir, Node *y, int n, Node *const *x, Node *const *tangent, Node **out)
{
	if (forward_graph(ir, 1, &y, n, x, tangent, out))
		return ir->err.code;
	*out = *out ? *out : tensor_fill(ir, y, 0);
	return 0;
}
