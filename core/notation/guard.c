/* guard.c - the conditions under which parts of an expression are evaluated. */
#include "core/notation/internal.h"
#include <string.h>

Guard *guard_push(Ir *ir, Guard *next, Node *cond, bool truth)
{
	Guard *g = arena_alloc(&ir->arena, sizeof *g);

	*g = (Guard){cond, truth, next ? next->depth + 1 : 1, next};
	return g;
}

static bool guards_same(const Guard *a, const Guard *b)
{
	while (a != b && a && b && a->cond == b->cond && a->truth == b->truth) {
		a = a->next;
		b = b->next;
	}
	return a == b;
}

/* Does a hold wherever b does, being some of its conditions? */
static bool case_covers(const Case *a, const Case *b)
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
	return a && b && a->cond == b->cond && a->truth != b->truth && a->depth == b->depth &&
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

/* ---- which conditions matter ---- */

static char several, yes, no;

void decided_by(Ir *ir, Decisions *d, Node *cond, const void *by)
{
	while (cond->op == OP_NOT) /* it decides as cond does */
		cond = cond->src[0];
	const void *other = node_map_get(&d->by, cond);
	if (other != by)
		node_map_put(ir, &d->by, cond, other ? &several : (void *)(uintptr_t)by);
}

/* Does n hold a comparison of integers, or the float of an index? */
static bool says_indices(Ir *ir, Decisions *d, Node *n)
{
	const void *known = node_map_get(&d->indices, n);
	bool compare = n->op == OP_LT || n->op == OP_LE || n->op == OP_EQ || n->op == OP_NE;

	if (known || node_is_tensor(n))
		return known == &yes;
	bool says =
		(compare && !type_is_float((Type)n->src[0]->type)) ||
		(n->op == OP_CAST && type_is_float((Type)n->type) && n->src[0]->type == RICCI_I64);
	for (int k = 0; k < n->nsrc && !says; k++)
		says = says_indices(ir, d, n->src[k]);
	node_map_put(ir, &d->indices, n, says ? &yes : &no);
	return says;
}

static bool decides_again(Ir *ir, Decisions *d, Node *c)
{
	const void *known = node_map_get(&d->again, c);

	if (known)
		return known == &yes;
	bool again = node_map_get(&d->by, c) == &several;
	for (int i = 0; (c->op == OP_AND || c->op == OP_OR || c->op == OP_NOT) && i < c->nsrc; i++)
		again = again || decides_again(ir, d, c->src[i]);
	node_map_put(ir, &d->again, c, again ? &yes : &no);
	return again;
}

bool decision_matters(Ir *ir, Decisions *d, Node *cond)
{
	return says_indices(ir, d, cond) || decides_again(ir, d, cond);
}

Case case_and(Ir *ir, Case c, Node *cond, bool truth)
{
	return node_is_value(cond, truth) ? c : (Case){guard_push(ir, c.guard, cond, truth), true};
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
