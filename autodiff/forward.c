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

/* w * d; where w is a choice, d is evaluated only where it counts. */
Node *weighted(Ir *ir, Node *w, Node *d)
{
	if (w->op == OP_SELECT && node_is_value(w->src[2], 0))
		return node_select(ir, w->src[0], node_mul(ir, w->src[1], d), w->src[2]);
	return node_mul(ir, w, d);
}

static Node *equation_tangent(Forward *f, Node *c)
{
	Ir *ir = f->ir;
	Node *d = derive_forward(f, comp_body(c), equation_root(ir, c));
	if (!d || running_tangent(f, c, &d))
		return d;
	d = weighted(ir, equation_seed(ir, c, node_const(ir, c->type, 1)), d);
	return comp_with(ir, c, comp_reduce(c) == RED_NONE ? RED_NONE : RED_ADD, d);
}

/* All results of c at once, at the first of them that y needs. */
static int visit_custom(Forward *f, const Custom *c, size_t room, Node **computed, bool *done)
{
	Arena *a = &f->ir->arena;
	Node **toperand = arena_alloc(a, sizeof *toperand * ((size_t)c->noperand + 1));
	Node **tresult = arena_alloc(a, sizeof *tresult * (size_t)c->nresult);
	bool any = false;
	for (int k = 0; k < c->noperand; k++) {
		toperand[k] = f->tangent[c->operand[k]->id];
		any |= toperand[k] != NULL;
	}
	if (any && custom_tangents(f->ir, c, toperand, tresult))
		return f->ir->err.code;
	for (int k = 0; k < c->nresult; k++)
		if (c->result[k]->id < room) {
			computed[c->result[k]->id] = tresult[k];
			done[c->result[k]->id] = true;
		}
	return 0;
}

/* All results of order[at]'s run of its loop, of which it is the first. */
static int visit_scan(Forward *f, int norder, Node *const *order, int at, Node **computed,
		      bool *done)
{
	Arena *a = &f->ir->arena;
	int n = 0, noperand = scan_noperand(scan_of(order[at]));
	Node **result = arena_alloc(a, sizeof *result * (size_t)norder);
	Node **tresult = arena_alloc(a, sizeof *tresult * (size_t)norder);
	Node **toperand = arena_alloc(a, sizeof *toperand * ((size_t)noperand + 1));
	bool any = false;
	for (int k = at; k < norder; k++)
		if (order[k]->op == OP_SCAN && scan_same_run(order[k], order[at]))
			result[n++] = order[k];
	for (int k = 0; k < noperand; k++) {
		toperand[k] = f->tangent[scan_operands(order[at])[k]->id];
		any |= toperand[k] != NULL;
	}
	if (any && scan_tangents(f->ir, n, result, toperand, tresult))
		return f->ir->err.code;
	for (int k = 0; k < n; k++) {
		computed[result[k]->id] = tresult[k];
		done[result[k]->id] = true;
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
		const Custom *c = custom_of(ir, t);
		if (c && !done[t->id] && visit_custom(&f, c, room, computed, done))
			return ir->err.code;
		if (t->op == OP_SCAN && !done[t->id] &&
		    visit_scan(&f, norder, order, k, computed, done))
			return ir->err.code;
		if (!c && t->op == OP_COMP && type_is_float(t->type))
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
