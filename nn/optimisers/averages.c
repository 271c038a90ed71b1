/* averages.c - a net with the averages of its parameters in their places.
 * Input: a tensor of a graph whose optimiser keeps averages. Output: the tensor that the same
 * equations make of the averages. Invariant: parameters without an average, and states (running
 * statistics), stay what they are; before the first update so do all. */
#include "nn/optimisers/internal.h"

static ricci_tensor *average_find(ricci_graph *g, const ricci_tensor *p)
{
	Text name = {0};
	ricci_tensor *t = NULL;
	text_add(&name, AVERAGE_PREFIX "%s", ricci_name(p));
	if (name.failed)
		error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		t = ricci_param_find(g, name.s);
	text_free(&name);
	return t;
}

/* What stands in the place of each parameter that has an average; how many there are. */
static int averages(ricci_graph *g, ricci_tensor *count, ricci_tensor **from, ricci_tensor **to)
{
	int n = 0, trained;
	ricci_tensor *p;
	for (int i = 0, all = ricci_param_count(g); i < all; i++) {
		p = ricci_param_at(g, i, &trained);
		ricci_tensor *average = trained ? average_find(g, p) : NULL;
		if (!average)
			continue;
		from[n] = p;
		to[n++] = ricci_op_named(g, "Y[...] = a[] > 0 ? E[...] : P[...]", "a", count, "E",
					 formula_cast(average, ricci_dtype(p)), "P", p);
	}
	return n;
}

static ricci_tensor *replace(ricci_tensor *y, int n, ricci_tensor **from, ricci_tensor **to)
{
	ricci_graph *g = y->g;
	NodeMap map = {0};
	IR_ENTER(&g->ir, &g->nil);
	for (int k = 0; k < n; k++)
		node_map_put(&g->ir, &map, from[k]->node, to[k]->node);
	graph_replace(&g->ir, 1, &y->node, &map);
	ricci_tensor *t = graph_handle(g, node_map_get(&map, y->node));
	IR_LEAVE(&g->ir);
	return t;
}

ricci_tensor *ricci_averaged(ricci_tensor *y)
{
	ricci_graph *g = y ? ricci_graph_of(y) : NULL;
	if (!g)
		return graph_missing("ricci_averaged"), NULL;
	if (!graph_open(g, "ricci_averaged"))
		return &g->nil;
	ricci_tensor *count = ricci_param_find(g, AVERAGE_COUNT);
	if (!count) {
		error_set(&g->ir.err, RICCI_EINVAL,
			  "ricci_averaged: the graph has no averages; ricci_optimise with average "
			  "keeps them");
		return &g->nil;
	}
	size_t all = (size_t)ricci_param_count(g);
	ricci_tensor **from = mem_zalloc(2 * all * sizeof *from), *t = &g->nil;
	if (!from) {
		error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
		return t;
	}
	int n = averages(g, count, from, from + all);
	if (!ricci_graph_error(g))
		t = replace(y, n, from, from + all);
	mem_free(from);
	return t;
}
