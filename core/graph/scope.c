/* scope.c - names in scopes: what is made between ricci_scope_begin and ricci_scope_end has the
 * names of the open scopes in front, with points between. Input: names as users give them. Output:
 * full names. Invariant: no two named tensors of a graph have one full name. */
#include "core/graph/graph.h"
#include "core/notation/internal.h"
#include <string.h>

typedef struct Scope {
	const char *prefix; /* of all open scopes, with the last point */
	struct Scope *outer;
} Scope;

static const char *scope_prefix(const ricci_graph *g)
{
	return g->scope ? g->scope->prefix : "";
}

static int check_length(ricci_graph *g, const char *call, const char *name)
{
	if (strlen(scope_prefix(g)) + strlen(name) <= NOTATION_MAX_NAME)
		return 0;
	return error_set(&g->ir.err, RICCI_EINVAL, "%s: a name has at most %d characters%s", call,
			 NOTATION_MAX_NAME, g->scope ? ", those of its scopes included" : "");
}

const char *scope_name(ricci_graph *g, const char *name)
{
	return g->scope ? arena_printf(&g->ir.arena, "%s%s", g->scope->prefix, name) : name;
}

int scope_check(ricci_graph *g, const char *call, const char *name)
{
	char full[NOTATION_MAX_NAME + 1];

	if (check_length(g, call, name))
		return g->ir.err.code;
	strcpy(full, scope_prefix(g));
	strcat(full, name);
	if (graph_find(g, full))
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "%s: the graph has a tensor named %s already", call, full);
	return 0;
}

int ricci_scope_begin(ricci_graph *g, const char *name)
{
	if (!g)
		return graph_missing("ricci_scope_begin");
	if (!graph_open(g, "ricci_scope_begin"))
		return g->ir.err.code;
	if (!name || !*name)
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_scope_begin: a scope needs a name");
	if (*name == '%')
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_scope_begin %s: names that begin with %% are those of "
				 "variables in loops",
				 name);
	if (check_length(g, "ricci_scope_begin", name))
		return g->ir.err.code;
	IR_ENTER(&g->ir, g->ir.err.code);
	Scope *s = arena_alloc(&g->ir.arena, sizeof *s);
	*s = (Scope){arena_printf(&g->ir.arena, "%s%s.", scope_prefix(g), name), g->scope};
	g->scope = s;
	IR_LEAVE(&g->ir);
	return 0;
}

int ricci_scope_end(ricci_graph *g)
{
	if (!g)
		return graph_missing("ricci_scope_end");
	if (!graph_open(g, "ricci_scope_end"))
		return g->ir.err.code;
	if (!g->scope)
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_scope_end: no scope is open: each end belongs to a "
				 "ricci_scope_begin before it");
	g->scope = g->scope->outer;
	return 0;
}

ricci_tensor *ricci_param_find(const ricci_graph *g, const char *name)
{
	ricci_tensor *t = g && name ? graph_find(g, name) : NULL;

	return t && (t->role == ROLE_PARAM || t->role == ROLE_STATE) ? t : NULL;
}
