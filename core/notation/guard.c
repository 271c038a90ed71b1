/* guard.c - the conditions under which parts of an expression are evaluated. */
#include "core/notation/internal.h"
#include <string.h>

Guard *guard_push(Ir *ir, Guard *next, Node *cond)
{
	Guard *g = arena_alloc(&ir->arena, sizeof *g);

	*g = (Guard){cond, next ? next->depth + 1 : 1, next};
	return g;
}

static bool guards_same(const Guard *a, const Guard *b)
{
	while (a != b && a && b && a->cond == b->cond) {
		a = a->next;
		b = b->next;
	}
	return a == b;
}

bool case_covers(const Case *a, const Case *b)
{
	int depth = a->guard ? a->guard->depth : 0;
	const Guard *g = b->guard;

	if (a->conditional && !b->conditional)
		return false;
	while (g && g->depth > depth)
		g = g->next;
	return guards_same(a->guard, g);
}

/* Do the two differ in the truth of their last condition only? */
static bool guards_complement(const Guard *a, const Guard *b)
{
	return a && b && node_opposite(a->cond, b->cond) && a->depth == b->depth &&
	       guards_same(a->next, b->next);
}

static void case_remove(Cases *x, int k)
{
	memmove(x->list + k, x->list + k + 1, (size_t)(--x->n - k) * sizeof *x->list);
}

/* Few cases stay as they are, each with all its conditions for the proofs. */
enum { CASES_FEW = 8 };

bool cases_add(Ir *ir, Cases *x, Case c)
{
	for (int k = x->n - 1; k >= 0; k--) {
		if (case_covers(&x->list[k], &c))
			return true;
		if (case_covers(&c, &x->list[k]))
			case_remove(x, k);
	}
	if (x->n == CASES_FEW && !x->many) {
		Case old[CASES_FEW];
		memcpy(old, x->list, sizeof old);
		x->n = 0;
		x->many = true;
		for (int k = 0; k < CASES_FEW; k++)
			cases_add(ir, x, old[k]);
		return cases_add(ir, x, c);
	}
	for (int k = 0; x->many && k < x->n; k++)
		if (guards_complement(x->list[k].guard, c.guard)) {
			case_remove(x, k);
			return cases_add(ir, x, (Case){c.guard->next, true});
		}
	if (x->n == CASES_MOST)
		return false;
	x->list = arena_grow(&ir->arena, x->list, x->n, &x->room, sizeof *x->list);
	x->list[x->n++] = c;
	return true;
}

Case case_and(Ir *ir, Case c, Node *cond)
{
	return node_is_value(cond, 1) ? c : (Case){guard_push(ir, c.guard, cond), true};
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

Polyhedron *guard_polyhedron(Ir *ir, const Guard *g)
{
	Polyhedron *p = poly_new(ir);
	Node *all = node_const_int(ir, RICCI_BOOL, 1);

	for (const Guard *k = g; k; k = k->next)
		all = node2(ir, OP_AND, all, k->cond);
	poly_assume(p, all);
	return p;
}
