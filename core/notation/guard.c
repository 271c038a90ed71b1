/* guard.c - the conditions under which parts of an expression are evaluated. */
#include "core/notation/internal.h"

Guard *guard_push(Ir *ir, Guard *next, Node *cond, bool truth)
{
	Guard *g = arena_alloc(&ir->arena, sizeof *g);

	*g = (Guard){cond, truth, next};
	return g;
}

Guard *guard_replace(Ir *ir, const Guard *g, Node *from, Node *to)
{
	if (!g)
		return NULL;
	Guard *rest = guard_replace(ir, g->next, from, to);
	return guard_push(ir, rest, node_replace(ir, g->cond, 1, &from, &to), g->truth);
}

bool guard_is_dead(const Guard *g)
{
	for (; g; g = g->next)
		if (node_is_const(g->cond) && (g->cond->u.i != 0) != g->truth)
			return true;
	return false;
}

/* That says most when the others have said where its ends are. */
static bool says_unequal(const Guard *g)
{
	return g->cond->op == (g->truth ? OP_NE : OP_EQ);
}

Polyhedron *guard_polyhedron(Ir *ir, const Guard *g)
{
	Polyhedron *p = poly_new(ir);

	for (int last = 0; last < 2; last++)
		for (const Guard *k = g; k; k = k->next)
			if (says_unequal(k) != last)
				continue;
			else if (k->truth)
				poly_assume(p, k->cond);
			else
				poly_assume_not(p, k->cond);
	return p;
}
