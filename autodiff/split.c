/* split.c - an index that is chosen, X[i < 2 ? 2-i : i-2] or X[max(i-1, 0)], as several reads.
 *
 * Input: the terms of an equation. Output: the same with each such term replaced by one for each
 * choice, under the condition of that choice, whose index is quasi-affine and can be inverted.
 * Invariant: the terms' sums are the same. An index that holds what can't be inverted anyway (a
 * gather, a product) is left as it is.
 */
#include "autodiff/internal.h"

/* Reads that one read may become. */
#define SPLIT_MAX 32

typedef struct Split {
	Ir *ir;
	int n, room;
	Term *terms;
} Split;

static bool is_choice(const Node *e)
{
	return e->op == OP_SELECT || e->op == OP_MAX || e->op == OP_MIN;
}

/* How many quasi-affine indices the choices in e lead to; 0 where one is not, or for too many. */
static int count_choices(const Node *e)
{
	int n = is_choice(e) ? 0 : 1;
	bool known = e->op == OP_ADD || e->op == OP_FLOORDIV || e->op == OP_FLOORMOD ||
		     (e->op == OP_MUL && (node_is_const(e->src[0]) || node_is_const(e->src[1])));
	if (e->op == OP_AXIS || e->op == OP_CONST)
		return 1;
	if (!known && !is_choice(e))
		return 0;
	for (int k = e->op == OP_SELECT ? 1 : 0; k < e->nsrc; k++) {
		int m = count_choices(e->src[k]);
		if (!m)
			return 0;
		n = is_choice(e) ? n + m : n * m;
		if (n > SPLIT_MAX)
			return 0;
	}
	return n;
}

/* The innermost choice in e that comes first. */
static Node *find_choice(Node *e)
{
	for (int k = e->op == OP_SELECT ? 1 : 0; k < e->nsrc; k++) {
		Node *found = find_choice(e->src[k]);
		if (found)
			return found;
	}
	return is_choice(e) ? e : NULL;
}

static void put(Split *s, Term t)
{
	if (t.guard && node_is_value(t.guard, 0)) /* choices that exclude each other */
		return;
	if (s->n == s->room) {
		Term *old = s->terms;
		s->room = s->room * 2 + 8;
		s->terms = arena_alloc(&s->ir->arena, sizeof *s->terms * (size_t)s->room);
		for (int k = 0; k < s->n; k++)
			s->terms[k] = old[k];
	}
	s->terms[s->n++] = t;
}

/* t where cond holds and its choice is `taken`. */
static Term choose(Ir *ir, Term t, Node *choice, Node *cond, Node *taken)
{
	Node *index[RICCI_MAX_RANK], *tensor = t.read->src[0];
	for (int d = 0; d < tensor_rank(tensor); d++)
		index[d] = node_replace(ir, t.read->src[1 + d], 1, &choice, &taken);
	t.read = node_read(ir, tensor, index);
	t.value = node_replace(ir, t.value, 1, &choice, &taken);
	Node *before = t.guard ? node_replace(ir, t.guard, 1, &choice, &taken) : NULL;
	t.guard = before ? node2(ir, OP_AND, before, cond) : cond;
	return t;
}

static void split_term(Split *s, Term t)
{
	Ir *ir = s->ir;
	Node *choice = NULL;
	for (int d = 0; d < tensor_rank(t.read->src[0]) && !choice; d++)
		choice = find_choice(t.read->src[1 + d]);
	if (!choice) {
		put(s, t);
		return;
	}
	Node *a = choice->src[0], *b = choice->src[1], *cond = a;
	if (choice->op == OP_SELECT) {
		a = choice->src[1];
		b = choice->src[2];
	} else {
		cond = choice->op == OP_MAX ? node2(ir, OP_LE, b, a) : node2(ir, OP_LE, a, b);
	}
	if (!node_is_value(cond, 0))
		split_term(s, choose(ir, t, choice, cond, a));
	if (!node_is_value(cond, 1))
		split_term(s, choose(ir, t, choice, node_not(ir, cond), b));
}

int terms_split(Ir *ir, int n, Term **terms)
{
	Split s = {.ir = ir};
	for (int k = 0; k < n; k++) {
		Term t = (*terms)[k];
		int choices = 1;
		for (int d = 0; d < tensor_rank(t.read->src[0]) && choices; d++) {
			choices *= count_choices(t.read->src[1 + d]);
			choices = choices > SPLIT_MAX ? 0 : choices;
		}
		if (choices > 1)
			split_term(&s, t);
		else
			put(&s, t);
	}
	*terms = s.terms;
	return s.n;
}
