/* api.c - ricci_grad: checks the arguments of the public call and gives the gradients their
 * handles. Invariant: after a failure the graph holds the error and every result is its inert
 * tensor. */
#include "autodiff/autodiff.h"

static int check_seed(ricci_graph *g, const ricci_tensor *y, const ricci_tensor *seed)
{
	const Node *a = y->node, *b = seed->node;
	if (seed->g != g)
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_grad: the seed belongs to another graph");
	bool same = a->type == b->type && tensor_rank(a) == tensor_rank(b);
	for (int d = 0; same && d < tensor_rank(a); d++)
		same = tensor_extent(a, d) == tensor_extent(b, d);
	if (!same)
		return error_set(&g->ir.err, RICCI_ESHAPE,
				 "ricci_grad: the seed must have the type and the shape of y");
	return 0;
}

static int check(ricci_graph *g, ricci_tensor *y, ricci_tensor *seed, int n,
		 ricci_tensor *const *wrt)
{
	Error *e = &g->ir.err;
	if (e->code)
		return e->code;
	if (g->frozen)
		return error_set(e, RICCI_EINVAL,
				 "ricci_grad: the graph is frozen by a session over it");
	if (!y || y->g != g || !y->node)
		return error_set(e, RICCI_EINVAL, "ricci_grad: y is not a tensor of this graph");
	if (!type_is_float(y->node->type))
		return error_set(e, RICCI_ETYPE, "ricci_grad: y is %s; only floats have gradients",
				 type_name(y->node->type));
	for (int k = 0; k < n; k++) {
		if (!wrt[k] || wrt[k]->g != g || !wrt[k]->node)
			return error_set(e, RICCI_EINVAL,
					 "ricci_grad: wrt[%d] is not a tensor of this graph", k);
		if (!type_is_float(wrt[k]->node->type))
			return error_set(e, RICCI_ETYPE,
					 "ricci_grad: wrt[%d] is %s; only floats have gradients", k,
					 type_name(wrt[k]->node->type));
	}
	return seed ? check_seed(g, y, seed) : 0;
}

static int differentiate(ricci_graph *g, ricci_tensor *y, ricci_tensor *seed, int n,
			 ricci_tensor *const *wrt, ricci_tensor **grads)
{
	Ir *ir = &g->ir;
	IR_ENTER(ir, ir->err.code);
	Node **from = arena_alloc(&ir->arena, sizeof *from * (size_t)(n + 1));
	Node **to = arena_alloc(&ir->arena, sizeof *to * (size_t)(n + 1));
	for (int k = 0; k < n; k++)
		from[k] = wrt[k]->node;
	int code = autodiff_reverse(ir, y->node, seed ? seed->node : NULL, n, from, to);
	for (int k = 0; k < n && !code; k++)
		grads[k] = graph_handle(g, to[k]);
	IR_LEAVE(ir);
	return ir->err.code;
}

int ricci_grad(ricci_graph *g, ricci_tensor *y, ricci_tensor *seed, int n, ricci_tensor *const *wrt,
	       ricci_tensor **grads)
{
	if (!g)
		return RICCI_EINVAL;
	if (n < 0 || (n > 0 && (!wrt || !grads)))
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_grad: no room given for the gradients");
	int code = check(g, y, seed, n, wrt);
	if (!code)
		code = differentiate(g, y, seed, n, wrt, grads);
	for (int k = 0; k < n && code; k++)
		grads[k] = &g->nil;
	return code;
}
