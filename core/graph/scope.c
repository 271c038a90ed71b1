/* scope.c - scopes of names: what is made between ricci_scope_begin and ricci_scope_end has the names of
 * the open scopes in front, with points between (names.c). */
#include "core/graph/graph.h"
#include "core/notation/internal.h"
#include <string.h>

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
	if (scope_fits(g, "ricci_scope_begin", name))
		return g->ir.err.code;
	IR_ENTER(&g->ir, g->ir.err.code);
	NameScope *s = arena_alloc(&g->ir.arena, sizeof *s);
	*s = (NameScope){arena_printf(&g->ir.arena, "%s%s.", scope_prefix(g), name), g->scope};
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
