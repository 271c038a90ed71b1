/* decisions.c - which conditions decide: in how many places, and whether about indices. Input: each
 * node that decides, told first. One on data alone that decides once says nothing about what stands
 * under it: only a second one may stand in the first one's dead branch. */
#include "core/algebra/algebra.h"

static char several, yes, no;

/* The one of cond and its opposite that stands for both. */
static Node *decision(Ir *ir, Node *cond)
{
	Node *not = node_not(ir, cond);
	return not ->id < cond->id ? not : cond;
}

void decided_by(Ir *ir, Decisions *d, Node *cond, const Node *by)
{
	Node *c = decision(ir, cond);
	const void *other = node_map_get(&d->by, c);
	if (other != by)
		node_map_put(ir, &d->by, c, other ? (void *)&several : (void *)(uintptr_t)by);
}

/* Does n hold a comparison of integers, or the float of an index? */
static bool says_indices(Ir *ir, Decisions *d, Node *n)
{
	const void *known = node_map_get(&d->indices, n);

	if (known || node_is_tensor(n))
		return known == &yes;
	bool says = node_compares_int(n) || (n->op == OP_CAST && type_is_float((Type)n->type) &&
					     n->src[0]->type == RICCI_I64);
	for (int k = 0; k < n->nsrc && !says; k++)
		says = says_indices(ir, d, n->src[k]);
	node_map_put(ir, &d->indices, n, says ? &yes : &no);
	return says;
}

bool decides_again(Ir *ir, Decisions *d, Node *c)
{
	const void *known = node_map_get(&d->again, c);

	if (known)
		return known == &yes;
	bool again = node_map_get(&d->by, decision(ir, c)) == &several;
	for (int i = 0; (c->op == OP_AND || c->op == OP_OR || c->op == OP_NOT) && i < c->nsrc; i++)
		again = again || decides_again(ir, d, c->src[i]);
	node_map_put(ir, &d->again, c, again ? &yes : &no);
	return again;
}

bool decision_matters(Ir *ir, Decisions *d, Node *cond)
{
	return says_indices(ir, d, cond) || decides_again(ir, d, cond);
}
