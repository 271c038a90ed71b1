/* guard.c - the conditions under which parts of an expression are evaluated. */
#include "core/notation/internal.h"

Guard *guard_push(Ir *ir, Guard *next, Node *cond)
{
	Guard *g = arena_alloc(&ir->arena, sizeof *g);

	*g = (Guard){cond, next};
	return g;
}

Guard *guard_replace(Ir *ir, const Guard *g, int n, Node *const *from, Node *const *to)
{
	if (!g)
		return NULL;
	Guard *rest = guard_replace(ir, g->next, n, from, to);
	return guard_push(ir, rest, node_replace(ir, g->cond, n, from, to));
}

bool guard_is_dead(const Guard *g)
{
	while (g && !node_is_value(g->cond, 0))
		g = g->next;
	return g;
}

/* An inequality says most when the others have said where its ends are. */
Polyhedron *guard_polyhedron(Ir *ir, const Guard *g)
{
	Polyhedron *p = poly_new(ir);

	for (int last = 0; last < 2; last++)
		for (const Guard *k = g; k; k = k->next)
			if ((k->cond->op == OP_NE) == last)
				poly_assume(p, k->cond);
	return p;
}
