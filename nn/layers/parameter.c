/* parameter.c - parameters of layers that may be used by several of them.
 * Input: a name within the open scopes, a shape. Output: a new parameter, or the one that an earlier
 * layer has made. Invariant: what is shared has the type and shape that the layer needs. */
#include "nn/layers/internal.h"

static ricci_tensor *found(ricci_graph *g, const char *name, const char **full)
{
	IR_ENTER(&g->ir, &g->nil);
	*full = scope_name(g, name);
	ricci_tensor *t = graph_find(g, *full);
	IR_LEAVE(&g->ir);
	return t;
}

ricci_tensor *layer_parameter(ricci_tensor *x, const char *who, bool share, const char *name,
			      int rank, const int64_t *shape, ricci_init init)
{
	ricci_graph *g = ricci_graph_of(x);
	const char *full = name;
	if (!share || ricci_graph_error(g))
		return ricci_param(g, name, ricci_dtype(x), rank, shape, init);
	ricci_tensor *t = found(g, name, &full);
	if (!t || (t->role != ROLE_PARAM && t->role != ROLE_STATE))
		return layer_fail(x, "%s: nothing to share: the graph has no parameter %s", who,
				  full);
	if (ricci_dtype(t) != ricci_dtype(x))
		return layer_fail(x, "%s: the shared %s is %s, x is %s", who, full,
				  type_name((Type)ricci_dtype(t)), type_name((Type)ricci_dtype(x)));
	return layer_shape(x, who, full, t, rank, shape) ? t : layer_nil(x);
}
