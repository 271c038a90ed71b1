/* parameter.c - layers that make their parameters: what they begin with, and those parameters.
 * Input: the arguments of a layer; then parts of names and shapes. Output: parameters and states "<name>.<part>" in the open scopes, or those that an earlier layer has made.
 * Invariant: what is shared has the type and shape that the layer needs. */
#include "nn/layers/internal.h"

bool layer_begin(Layer *l, const Operand *x, void *to, size_t size, const void *options,
		 const char *type)
{
	if (!layer_check(l->call, 1, x))
		return false;
	l->x = x->t;
	l->type = ricci_dtype(x->t);
	if (!l->name || !options) {
		error_set(&ricci_graph_of(l->x)->ir.err, RICCI_EINVAL, "%s: no %s given", l->call,
			  l->name ? "options" : "name");
		return false;
	}
	return layer_options(l->x, to, size, options, type);
}

bool layer_positive(const Layer *l, const char *what, int64_t n)
{
	if (n < 1)
		layer_fail(l->x, "%s: %s is %lld, it must be 1 or more", l->call, what,
			   (long long)n);
	return n >= 1;
}

/* The parameter of this name in the open scopes; *full: its whole name. */
static ricci_tensor *found(ricci_graph *g, const char *name, const char **full)
{
	IR_ENTER(&g->ir, &g->nil);
	*full = scope_name(g, name);
	ricci_tensor *t = ricci_param_find(g, *full);
	IR_LEAVE(&g->ir);
	return t;
}

static ricci_tensor *shared(const Layer *l, const char *name, int rank, const int64_t *shape)
{
	const char *full = name;
	ricci_tensor *t = found(ricci_graph_of(l->x), name, &full);
	if (!t)
		return layer_fail(l->x, "%s: nothing to share: the graph has no parameter %s",
				  l->call, full);
	if (ricci_dtype(t) != l->type)
		return layer_fail(l->x, "%s: the shared %s is %s, x is %s", l->call, full,
				  type_name((Type)ricci_dtype(t)), type_name((Type)l->type));
	return layer_shape(l->x, l->call, full, t, rank, shape) ? t : layer_nil(l->x);
}

/* "<name>.<part>" */
static Text name_of(const Layer *l, const char *part)
{
	Text t = {0};
	text_add(&t, *l->name ? "%s.%s" : "%s%s", l->name, part);
	if (t.failed)
		error_set(&ricci_graph_of(l->x)->ir.err, RICCI_ENOMEM, "out of memory");
	return t;
}

ricci_tensor *layer_parameter(const Layer *l, const char *part, int rank, const int64_t *shape,
			      ricci_init init)
{
	ricci_graph *g = ricci_graph_of(l->x);
	ricci_tensor *y = layer_nil(l->x);
	Text t = name_of(l, part);
	if (!ricci_graph_error(g))
		y = l->share ? shared(l, t.s, rank, shape)
			     : ricci_param(g, t.s, l->type, rank, shape, init);
	text_free(&t);
	return y;
}

ricci_tensor *layer_state(const Layer *l, const char *part, int rank, const int64_t *shape,
			  ricci_init init)
{
	ricci_graph *g = ricci_graph_of(l->x);
	ricci_tensor *y = layer_nil(l->x);
	Text t = name_of(l, part);
	if (!ricci_graph_error(g))
		y = ricci_state(g, t.s, l->type, rank, shape, init);
	text_free(&t);
	return y;
}
