/* net_print.c - a trained net as text. Input: outputs of one graph. Output: declarations of the inputs,
 * parameters and states that they need, their equations with `training` = 0, their names. Invariant:
 * net_read of the text makes a graph that computes the same values. */
#include "core/graph/graph.h"
#include <string.h>

static void print_shape(Text *out, const Node *t)
{
	text_add(out, " %s ", type_name((Type)t->type));
	for (int d = 0; d < tensor_rank(t); d++)
		text_add(out, d ? "x%lld" : "%lld", (long long)tensor_extent(t, d));
	text_add(out, tensor_rank(t) ? "" : "scalar");
}

/* Between quotes; what would end the line or the quotes is octal. */
static void print_quoted(Text *out, const char *s)
{
	text_add(out, " \"");
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == '"' || *s == '\\')
			text_add(out, "\\%03o", (unsigned char)*s);
		else
			text_put(out, s, 1);
	text_add(out, "\"\n");
}

static int print_input(Text *out, const ricci_tensor *t, const char *name, Error *err)
{
	static const char *const role[] = {
		[ROLE_INPUT] = "input", [ROLE_PARAM] = "param", [ROLE_STATE] = "state"};
	Type type = (Type)t->node->type;
	int64_t lo, hi;

	if (t->role == ROLE_VARIABLE)
		return error_set(
			err, RICCI_EINVAL,
			"the net reads '%s', a loop's variable, which has no value outside "
			"of its loop",
			t->name);
	text_add(out, "%s %s", role[t->role], name);
	print_shape(out, t->node);
	if (!type_is_float(type)) {
		type_range(type, &lo, &hi);
		if (t->need_lo > lo || t->need_hi < hi)
			text_add(out, " %lld..%lld", (long long)t->need_lo, (long long)t->need_hi);
	}
	print_quoted(out, t->name);
	return 0;
}

/* The declarations before the equations, which are in `equations`. */
static int print_net(Text *out, ricci_graph *g, int n, Node **root, const char *const *name,
		     Text *equations, Error *err)
{
	Ir *ir = &g->ir;
	Node **order;
	int code = 0;

	graph_set_training(ir, n, root, false);
	const char **known = print_program_named(equations, ir, n, root, name);
	int norder = graph_order(ir, n, root, &order);
	text_add(out, "ricci net 1\n");
	if (g->precision != RICCI_F32)
		text_add(out, "precision %s\n", precision_name(g->precision));
	if (g->rounding == RICCI_STOCHASTIC)
		text_add(out, "rounding stochastic\n");
	for (int k = 0; k < norder && !code; k++)
		if (order[k]->op == OP_INPUT)
			code = print_input(out, graph_handle(g, order[k]), known[order[k]->id],
					   err);
	if (equations->n)
		text_put(out, equations->s, equations->n);
	for (int k = 0; k < n; k++) {
		text_add(out, "output %s", known[root[k]->id]);
		print_quoted(out, name[k]);
	}
	return code;
}

static int print_entered(Text *out, ricci_graph *g, int n, ricci_tensor *const *output,
			 const char *const *name, Text *equations, Error *err)
{
	IR_ENTER(&g->ir, RICCI_ENOMEM);
	Node **root = arena_alloc(&g->ir.arena, ((size_t)n + 1) * sizeof *root);
	const char **called = arena_alloc(&g->ir.arena, ((size_t)n + 1) * sizeof *called);
	for (int k = 0; k < n; k++) {
		root[k] = output[k]->node;
		called[k] = name ? name[k] : output[k]->name;
	}
	int code = print_net(out, g, n, root, called, equations, err);
	IR_LEAVE(&g->ir);
	return code;
}

int net_print(Text *out, int noutput, ricci_tensor *const *output, const char *const *name,
	      Error *err)
{
	ricci_graph *g = noutput > 0 && output[0] ? output[0]->g : NULL;
	Text equations = {0};

	for (int k = 0; k < noutput && g; k++)
		if (!output[k] || !output[k]->node || output[k]->g != g)
			g = NULL;
	if (!g)
		return error_set(err, RICCI_EINVAL,
				 "a net needs outputs, one or more, of one graph");
	if (g->ir.err.code)
		return error_set(err, g->ir.err.code, "%s", g->ir.err.text);
	lock_take(LOCK_GRAPHS); /* another thread may make a session */
	Error before = g->ir.err;
	int code = print_entered(out, g, noutput, output, name, &equations, err);
	g->ir.err = before;
	lock_leave(LOCK_GRAPHS);
	if (!code && (out->failed || equations.failed))
		code = RICCI_ENOMEM;
	text_free(&equations);
	return code == RICCI_ENOMEM ? error_set(err, code, "out of memory for the text of a net")
				    : code;
}
