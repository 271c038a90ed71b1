/* api.c - ricci_grad, ricci_jvp, ricci_stop_gradient: check the arguments of the public calls and give the
 * results their handles. Invariant: after a failure the graph holds the error and every result is
 * its inert tensor. */
#include "autodiff/internal.h"

static bool belongs(const ricci_graph *g, const ricci_tensor *t)
{
	return t && t->g == g && t->node;
}

/* y and the n tensors of `list`, called `what`: floats of g. */
static int check(ricci_graph *g, const char *call, const ricci_tensor *y, int n,
		 ricci_tensor *const *list, const char *what)
{
	Error *e = &g->ir.err;
	if (e->code)
		return e->code;
	if (graph_frozen(g))
		return error_set(e, RICCI_EINVAL, "%s: the graph is frozen by a session over it",
				 call);
	if (!belongs(g, y))
		return error_set(e, RICCI_EINVAL, "%s: y is not a tensor of this graph", call);
	if (!type_is_float(y->node->type))
		return error_set(e, RICCI_ETYPE, "%s: y is %s; only floats have gradients", call,
				 type_name(y->node->type));
	for (int k = 0; k < n; k++) {
		if (!belongs(g, list[k]))
			return error_set(e, RICCI_EINVAL,
					 "%s: %s[%d] is not a tensor of this graph", call, what, k);
		if (!type_is_float(list[k]->node->type))
			return error_set(e, RICCI_ETYPE,
					 "%s: %s[%d] is %s; only floats have gradients", call, what,
					 k, type_name(list[k]->node->type));
	}
	return 0;
}

static int check_seed(ricci_graph *g, const ricci_tensor *y, const ricci_tensor *seed)
{
	if (seed->g != g)
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_grad: the seed belongs to another graph");
	if (!seed->node || !tensor_alike(y->node, seed->node))
		return error_set(&g->ir.err, RICCI_ESHAPE,
				 "ricci_grad: the seed must have the type and the shape of y");
	return 0;
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
		return graph_missing("ricci_grad");
	if (n < 0 || (n > 0 && (!wrt || !grads)))
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_grad: no room given for the gradients");
	int code = check(g, "ricci_grad", y, n, wrt, "wrt");
	if (!code && seed)
		code = check_seed(g, y, seed);
	if (!code)
		code = differentiate(g, y, seed, n, wrt, grads);
	for (int k = 0; k < n && code; k++)
		grads[k] = &g->nil;
	return code;
}

static int push_forward(ricci_graph *g, ricci_tensor *y, int n, ricci_tensor *const *x,
			ricci_tensor *const *tangent, ricci_tensor **out)
{
	Ir *ir = &g->ir;
	IR_ENTER(ir, ir->err.code);
	Node **at = arena_alloc(&ir->arena, sizeof *at * (size_t)(n + 1));
	Node **along = arena_alloc(&ir->arena, sizeof *along * (size_t)(n + 1)), *result;
	for (int k = 0; k < n; k++) {
		at[k] = x[k]->node;
		along[k] = tangent[k]->node;
	}
	if (!autodiff_forward(ir, y->node, n, at, along, &result))
		*out = graph_handle(g, result);
	IR_LEAVE(ir);
	return ir->err.code;
}

int ricci_jvp(ricci_graph *g, ricci_tensor *y, int n, ricci_tensor *const *x,
	      ricci_tensor *const *tangent, ricci_tensor **out)
{
	if (!g)
		return graph_missing("ricci_jvp");
	if (n < 0 || !out || (n > 0 && (!x || !tangent)))
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_jvp: x, tangent and out must be given");
	*out = &g->nil;
	int code = check(g, "ricci_jvp", y, n, x, "x");
	for (int k = 0; k < n && !code; k++)
		if (!belongs(g, tangent[k]) || !tensor_alike(tangent[k]->node, x[k]->node))
			code = error_set(
				&g->ir.err, RICCI_ESHAPE,
				"ricci_jvp: tangent[%d] must be a tensor of this graph, of "
				"the type and the shape of x[%d]",
				k, k);
	return code ? code : push_forward(g, y, n, x, tangent, out);
}

ricci_tensor *ricci_stop_gradient(ricci_tensor *t)
{
	if (!t || !t->node || !type_is_float(t->node->type) || t->g->ir.err.code)
		return t && t->g->ir.err.code ? &t->g->nil : t;
	ricci_graph *g = t->g;
	Ir *ir = &g->ir;
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(t->node);
	if (graph_frozen(g)) {
		error_set(&ir->err, RICCI_EINVAL,
			  "ricci_stop_gradient: the graph is frozen by a session over it");
		return &g->nil;
	}
	IR_ENTER(ir, &g->nil);
	tensor_axes(ir, t->node, axes);
	Node *body = node1(ir, OP_STOP, node_read(ir, t->node, axes));
	ricci_tensor *stopped = graph_handle(g, comp_dense(ir, RED_NONE, rank, rank, axes, body));
	IR_LEAVE(ir);
	return stopped;
}
