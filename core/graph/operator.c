/* operator.c - operators from text in the public builder. Input: a text and its operands, in order or
 * by name. Output: handles of the results. Invariant: as graph.c, the first error stays. */
#include "core/graph/graph.h"
#include "core/notation/internal.h"
#include <stdarg.h>

static int check_operands(ricci_graph *g, const char *text, int n, ricci_tensor *const *operands,
			  Node **nodes)
{
	for (int i = 0; i < n; i++) {
		const ricci_tensor *t = operands[i];
		if (t && t->g != g)
			return error_set(&g->ir.err, RICCI_EINVAL,
					 "ricci_op: operand %d (%s) belongs to another graph, in: "
					 "%s",
					 i + 1, t->name, text);
		if (t == &g->nil)
			return error_set(&g->ir.err, RICCI_EINVAL,
					 "ricci_op: operand %d is the result of a failed call",
					 i + 1);
		nodes[i] = t ? t->node : NULL;
	}
	return 0;
}

static int print_roots(Ir *ir, Text *out, int n, Node *const *roots)
{
	IR_ENTER(ir, RICCI_ENOMEM);
	for (int i = 0; i < n; i++) {
		print_equation(out, ir, roots[i], NULL, NULL);
		text_add(out, "    %s, %lld elements\n", type_name((Type)roots[i]->type),
			 (long long)tensor_size(roots[i]));
	}
	IR_LEAVE(ir);
	return 0;
}

/* RICCI_DUMP=parse: the text and what it became. */
static void dump(ricci_graph *g, const char *text, int n, Node *const *roots)
{
	Text out = {0};

	text_add(&out, "%s\n", text);
	print_roots(&g->ir, &out, n, roots);
	env_dump_text("parse", "operator", out.s ? out.s : "");
	text_free(&out);
}

/* names: of the operands, or NULL: they stand in order. Runs under IR_ENTER. */
static int add_program(ricci_graph *g, Program *p, int noperand, const char *const *names,
		       ricci_tensor *const *operands, int *nresult, ricci_tensor **results)
{
	Arena *a = &g->ir.arena;
	Node **nodes = arena_alloc(a, (size_t)(noperand + 1) * sizeof *nodes);
	Node **roots = arena_alloc(a, (size_t)(*nresult + 1) * sizeof *roots);
	int n = 0;

	if (check_operands(g, p->src.text, noperand, operands, nodes))
		return g->ir.err.code;
	if (names)
		names_bind_named(p, noperand, names, nodes);
	else
		names_bind(p, noperand, nodes);
	program_elaborate(p, &n, roots, *nresult);
	for (int k = 0; k < n; k++)
		results[k] = graph_result(g, roots[k], p->result[k]->s);
	*nresult = n;
	if (env_dump("parse"))
		dump(g, p->src.text, n, roots);
	return graph_needs(g);
}

ricci_tensor **operands_given(ricci_graph *g, int n, va_list ap)
{
	ricci_tensor **operand = arena_alloc(&g->ir.arena, sizeof *operand * ((size_t)n + 1));
	for (int i = 0; i < n; i++)
		operand[i] = va_arg(ap, ricci_tensor *);
	return operand;
}

ricci_tensor *ricci_op_counted(ricci_graph *g, int noperand, const char *text, ...)
{
	ricci_tensor *result = NULL;
	int one = 1;

	if (!g)
		return graph_missing("ricci_op"), NULL;
	if (!graph_open(g, "ricci_op"))
		return &g->nil;
	IR_ENTER(&g->ir, &g->nil);
	Program *p = program_parse(&g->ir, text);
	va_list ap;
	va_start(ap, text);
	ricci_tensor **operand = operands_given(g, noperand, ap);
	va_end(ap);
	int code = add_program(g, p, noperand, NULL, operand, &one, &result);
	IR_LEAVE(&g->ir);
	return code ? &g->nil : result;
}

/* names: or NULL. */
static int add_text(ricci_graph *g, const char *text, int noperand, const char *const *names,
		    ricci_tensor *const *operands, int *nresult, ricci_tensor **results)
{
	int room = *nresult;

	*nresult = 0;
	IR_ENTER(&g->ir, g->ir.err.code);
	int code = add_program(g, program_parse(&g->ir, text), noperand, names, operands, &room,
			       results);
	IR_LEAVE(&g->ir);
	if (!code)
		*nresult = room;
	return code;
}

/* Begins a call with arrays; false: it has failed. */
static bool arrays_given(ricci_graph *g, const char *call, int noperand, bool given,
			 const int *nresult, ricci_tensor **results)
{
	for (int i = 0; nresult && results && i < *nresult; i++)
		results[i] = &g->nil;
	if (!graph_open(g, call))
		return false;
	if (noperand < 0 || (noperand && !given) || !nresult || *nresult < 0 || !results)
		error_set(&g->ir.err, RICCI_EINVAL,
			  "%s: operands, nresult and results must be given", call);
	return !g->ir.err.code;
}

int ricci_ops(ricci_graph *g, const char *text, int noperand, ricci_tensor *const *operands,
	      int *nresult, ricci_tensor **results)
{
	if (!g)
		return graph_missing("ricci_ops");
	if (!arrays_given(g, "ricci_ops", noperand, operands, nresult, results))
		return g->ir.err.code;
	return add_text(g, text, noperand, NULL, operands, nresult, results);
}

int ricci_ops_named(ricci_graph *g, const char *text, int noperand, const char *const *names,
		    ricci_tensor *const *operands, int *nresult, ricci_tensor **results)
{
	static const char *const none[1] = {NULL};

	if (!g)
		return graph_missing("ricci_ops_named");
	if (!arrays_given(g, "ricci_ops_named", noperand, names && operands, nresult, results))
		return g->ir.err.code;
	return add_text(g, text, noperand, names ? names : none, operands, nresult, results);
}

ricci_tensor *ricci_op_named_counted(ricci_graph *g, int ngiven, const char *text, ...)
{
	ricci_tensor *result = NULL;
	int one = 1, n = ngiven / 2;

	if (!g)
		return graph_missing("ricci_op_named"), NULL;
	if (!graph_open(g, "ricci_op_named"))
		return &g->nil;
	if (ngiven % 2) {
		error_set(&g->ir.err, RICCI_EINVAL,
			  "ricci_op_named: behind the text stand %d arguments; they are pairs, a "
			  "name and its operand",
			  ngiven);
		return &g->nil;
	}
	IR_ENTER(&g->ir, &g->nil);
	const char **name = arena_alloc(&g->ir.arena, sizeof *name * ((size_t)n + 1));
	ricci_tensor **operand = arena_alloc(&g->ir.arena, sizeof *operand * ((size_t)n + 1));
	va_list ap;
	va_start(ap, text);
	for (int i = 0; i < n; i++) {
		name[i] = va_arg(ap, const char *);
		operand[i] = va_arg(ap, ricci_tensor *);
	}
	va_end(ap);
	int code = add_program(g, program_parse(&g->ir, text), n, name, operand, &one, &result);
	IR_LEAVE(&g->ir);
	return code ? &g->nil : result;
}

ricci_tensor *ricci_integer(ricci_graph *g, int64_t value)
{
	if (!g)
		return graph_missing("ricci_integer"), NULL;
	if (!graph_open(g, "ricci_integer"))
		return &g->nil;
	IR_ENTER(&g->ir, &g->nil);
	Node *n = comp_dense(&g->ir, RED_NONE, 0, 0, NULL, node_int(&g->ir, value));
	ricci_tensor *t = graph_handle(g, n);
	IR_LEAVE(&g->ir);
	return t;
}
