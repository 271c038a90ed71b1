/* split.c - a piecewise affine index, X[i < 2 ? 2-i : i-2], X[max(i-1, 0)] or X[abs(i-2)], as
 * several reads.
 *
 * Input: the terms of an equation. Output: the same with each such term replaced by one for each
 * choice, under the condition of that choice, whose index is quasi-affine and can be inverted. One that few points of
 * several axes choose, a table of products, X[u == v ? 0 : ..], becomes an axis that the term's condition holds to it.
 * Invariant: the terms' sums are the same, and no condition is evaluated where it was not before
 * (an outer choice protects the inner ones). An index that holds what can't be inverted anyway (a
 * gather, a product) is left as it is.
 */
#include "autodiff/internal.h"

/* Reads that one read may become. */
#define SPLIT_MAX 32

typedef struct Split {
	Ir *ir;
	int n, room, most;
	Term *terms;
	NodeMap plain; /* those without a choice */
} Split;

/* A choice is `yes` where cond holds and `no` elsewhere. */
typedef struct Choice {
	Node *cond, *yes, *no;
} Choice;

static Choice choice_of(Ir *ir, const Node *e)
{
	Node *a = e->src[0], *b = e->nsrc > 1 ? e->src[1] : NULL, *zero = node_int(ir, 0);
	switch (e->op) {
	case OP_SELECT:
		return (Choice){a, b, e->src[2]};
	case OP_MAX:
		return (Choice){node2(ir, OP_LE, b, a), a, b};
	case OP_MIN:
		return (Choice){node2(ir, OP_LE, a, b), a, b};
	case OP_ABS:
		return (Choice){node2(ir, OP_LE, zero, a), a, node_scale(ir, a, -1)};
	case OP_SIGN:
		return (Choice){node2(ir, OP_LT, zero, a), node_int(ir, 1),
				node_select(ir, node2(ir, OP_LT, a, zero), node_int(ir, -1), zero)};
	default: /* a condition as a number */
		return (Choice){a, node_int(ir, 1), zero};
	}
}

/* The first choice in e to be made: one whose operands are chosen before the operands, since its
 * condition may protect theirs, but what is compared (max, abs) after what it is made of. */
static Node *find_choice(Split *s, Node *e)
{
	bool whole = e->op == OP_SELECT || e->op == OP_CAST || e->op == OP_READ;
	if (node_map_get(&s->plain, e))
		return NULL;
	for (int k = 0; k < e->nsrc && !whole; k++) {
		Node *found = find_choice(s, e->src[k]);
		if (found)
			return found;
	}
	if (index_is_choice(e))
		return e;
	node_map_put(s->ir, &s->plain, e, e);
	return NULL;
}

/* Nodes whose values are known, and those. */
typedef struct Known {
	Node *from[3], *to[3];
} Known;

/* Puts the conditions of `guard` behind *all, and cond before the first that compares the choice:
 * earlier ones may protect cond, which may protect what is the choice's value only there. */
static void guard_put(Ir *ir, Node **all, Node **cond, Node *guard, const Known *known)
{
	if (*cond && node_compares_index(guard)) {
		Affine a = affine_of(ir, node_sub(ir, guard->src[1], guard->src[0]));
		if (affine_coefficient(&a, known->from[0])) {
			*all = node2(ir, OP_AND, *all, *cond);
			*cond = NULL;
		}
	}
	if (!*cond)
		guard = node_replace(ir, guard, COUNT(known->from), known->from, known->to);
	*all = node2(ir, OP_AND, *all, guard);
}

/* t where cond holds and its choice is `taken`. */
static Term choose(Ir *ir, Term t, Node *choice, Node *cond, Node *taken)
{
	Node *index[RICCI_MAX_RANK], *tensor = t.read->src[0], **part;
	Node *yes = node_const_int(ir, RICCI_BOOL, 1), *guard = yes;
	Known k = {{choice, cond, node_not(ir, cond)}, {taken, yes, node_not(ir, yes)}};
	for (int d = 0; d < tensor_rank(tensor); d++)
		index[d] = node_replace(ir, t.read->src[1 + d], COUNT(k.from), k.from, k.to);
	t.read = node_read(ir, tensor, index);
	t.value = node_replace(ir, t.value, COUNT(k.from), k.from, k.to);
	int n = t.guard ? node_parts(ir, t.guard, OP_AND, &part) : 0;
	for (int j = 0; j < n; j++)
		guard_put(ir, &guard, &cond, part[j], &k);
	t.guard = node_and(ir, guard, cond);
	return t;
}

/* t over one more axis, in place of index d, to which the guard holds it. */
static Term over_table(Ir *ir, Term t, int d)
{
	Node *axis[RICCI_MAX_RANK];
	int n = comp_naxis(t.comp);
	for (int k = 0; k < n; k++)
		axis[k] = comp_axis(t.comp, k);
	axis[n] = node_axis(ir, n, tensor_extent(t.read->src[0], d));
	Node *is = node2(ir, OP_EQ, axis[n], t.read->src[1 + d]);
	t.guard = node_and(ir, t.guard, is);
	t.read = read_along(ir, t.read, d, axis[n]);
	t.comp = comp_dense(ir, RED_NONE, n + 1, n + 1, axis, value_where(ir, t.guard, t.value));
	return t;
}

/* Puts the terms that t becomes; false where one can't be inverted, or for too many. */
static bool split_term(Split *s, Term t)
{
	Ir *ir = s->ir;
	Node *choice = NULL;
	if (t.guard && node_is_value(t.guard, 0)) /* choices that exclude each other */
		return true;
	for (int d = 0; d < tensor_rank(t.read->src[0]) && !choice; d++)
		choice = find_choice(s, t.read->src[1 + d]);
	if (choice) {
		Choice c = choice_of(ir, choice);
		Node *no = node_not(ir, c.cond);
		return (node_is_value(c.cond, 0) ||
			split_term(s, choose(ir, t, choice, c.cond, c.yes))) &&
		       (node_is_value(c.cond, 1) || split_term(s, choose(ir, t, choice, no, c.no)));
	}
	if (s->n == s->most || index_obstacle(ir, &t))
		return false;
	s->terms = arena_grow(&s->ir->arena, s->terms, s->n, &s->room, sizeof t);
	s->terms[s->n++] = t;
	return true;
}

int terms_split(Ir *ir, int n, Term **terms)
{
	Split s = {.ir = ir};
	for (int k = 0; k < n; k++) {
		Term t = (*terms)[k];
		int first = s.n;
		for (int d = 0; d < tensor_rank(t.read->src[0]); d++)
			if (comp_naxis(t.comp) < RICCI_MAX_RANK &&
			    index_is_table(ir, t.read->src[1 + d],
					   tensor_extent(t.read->src[0], d)))
				t = over_table(ir, t, d);
		s.most = first + SPLIT_MAX;
		if (split_term(&s, t))
			continue;
		s.n = first; /* as it is */
		s.terms = arena_grow(&ir->arena, s.terms, s.n, &s.room, sizeof t);
		s.terms[s.n++] = t;
	}
	*terms = s.terms;
	return s.n;
}
