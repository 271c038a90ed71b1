/* choices.c - a sum of what is chosen by conditions of which at most one holds is one choice.
 *
 * In: `Y[i] = (i < 4 ? A : 0) + (4 <= i ? B : 0)`, as the gradients of slices and of what is put side by side are. Out:
 * `Y[i] = i < 4 ? A : B`, so that a kernel computes one of them where it knows which.
 * Invariant: the conditions are on places, and exclude each other for all of them. */
#include "jit/rewrite/rewrite.h"

/* Can't both hold? So it is if a part of one is e >= 0, a part of the other f >= 0, and e + f below 0. */
static bool exclude_each_other(Ir *ir, Node *a, Node *b)
{
	Node **of_a, **of_b;
	int na = node_parts(ir, a, OP_AND, &of_a), nb = node_parts(ir, b, OP_AND, &of_b);
	for (int i = 0; i < na; i++)
		for (int k = 0; k < nb; k++) {
			Node *e = condition_slack(ir, of_a[i]), *f = condition_slack(ir, of_b[k]);
			if (e && f && node_add(ir, e, f)->hi < 0)
				return true;
		}
	return false;
}

/* Does none of the conditions by which e is other than 0 hold together with c? */
static bool excludes_all(Ir *ir, Node *c, const Node *e)
{
	bool all = e->op == OP_SELECT;
	for (; e->op == OP_SELECT && all; e = e->src[2])
		all = exclude_each_other(ir, c, e->src[0]);
	return all && node_is_value(e, 0);
}

/* a + b as one choice; NULL: it is none. */
static Node *joined(Ir *ir, Node *a, Node *b)
{
	if (node_is_value(a, 0))
		return b;
	if (a->op != OP_SELECT || !excludes_all(ir, a->src[0], b))
		return NULL;
	Node *otherwise = joined(ir, a->src[2], b);
	return otherwise ? node_select(ir, a->src[0], a->src[1], otherwise) : NULL;
}

Node *choices_joined(Ir *ir, Node *e)
{
	Node **sum;
	int nsum = node_collect(ir, e, OP_ADD, &sum), n = 0;
	Node **from = arena_alloc(&ir->arena, ((size_t)nsum + 1) * 2 * sizeof *from);
	Node **to = from + nsum + 1;
	for (int k = 0; k < nsum; k++) { /* sources first */
		if (!type_is_float((Type)sum[k]->type))
			continue;
		Node *now = n ? node_replace(ir, sum[k], n, from, to) : sum[k];
		Node *one = now->op == OP_ADD ? joined(ir, now->src[0], now->src[1]) : NULL;
		from[n] = sum[k];
		to[n] = one;
		n += one != NULL;
	}
	return n ? node_replace(ir, e, n, from, to) : e;
}
