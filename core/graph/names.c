/* names.c - the names of a graph's tensors. Input: names as users give them. Output: full names, with
 * the open scopes in front; tensors by their full names. Invariant: no two tensors that may be found
 * have one full name. */
#include "core/graph/graph.h"
#include "core/notation/internal.h"
#include <string.h>

static ricci_tensor **bucket_of(const ricci_graph *g, const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return &g->bucket[h & (g->nbucket - 1)];
}

static void bucket_put(ricci_graph *g, ricci_tensor *t)
{
	ricci_tensor **at = bucket_of(g, t->name);

	t->same = *at;
	*at = t;
}

/* Of two tensors that may be found by name, no two have the same one. */
void names_add(ricci_graph *g, ricci_tensor *t)
{
	if ((size_t)g->nnamed++ >= g->nbucket) {
		size_t n = g->nbucket ? 2 * g->nbucket : 64;

		g->bucket = arena_alloc(&g->ir.arena, n * sizeof *g->bucket);
		g->nbucket = n; /* only now: the allocation may have jumped away */
		for (ricci_tensor *old = g->first; old; old = old->next)
			if (old->role != ROLE_COMP)
				bucket_put(g, old);
	}
	bucket_put(g, t);
}

ricci_tensor *graph_find(const ricci_graph *g, const char *name)
{
	ricci_tensor *t = g->nbucket ? *bucket_of(g, name) : NULL;

	while (t && strcmp(t->name, name))
		t = t->same;
	return t;
}

const char *scope_prefix(const ricci_graph *g)
{
	return g->scope ? g->scope->prefix : "";
}

int scope_fits(ricci_graph *g, const char *call, const char *name)
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

	if (scope_fits(g, call, name))
		return g->ir.err.code;
	strcpy(full, scope_prefix(g));
	strcat(full, name);
	if (graph_find(g, full))
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "%s: the graph has a tensor named %s already", call, full);
	return 0;
}
