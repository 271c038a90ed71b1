/* guards.c - a function of what is 0 outside of a condition, and 0 there itself, is under that condition; and so is what
 * is multiplied by that.
 *
 * In: the body of a sum, `max(X[i+r-1] else 0, 0)*W[r]`. Out: `(0 <= i+r-1 && .. ? max(X[i+r-1], 0) : 0)*W[r]`, so that
 * the condition is the factor's, and the sum's. Of `x*sigmoid(x)`, x being `X[i+r-1] else 0`, both factors are under it.
 * Invariant: what is computed has the same value, under conditions that hold wherever it was needed before. */
#include "jit/rewrite/rewrite.h"

enum { GUARDS_MOST = 32 };

/* The choices in e by this condition; what they are where it holds, and where not. */
typedef struct Chosen {
	int n;
	Node **choice, **holds, **fails;
} Chosen;

static Chosen chosen_by(Ir *ir, const Node *cond, int n, Node *const *choice)
{
	Chosen c = {0};
	c.choice = arena_alloc(&ir->arena, 3 * ((size_t)n + 1) * sizeof *c.choice);
	c.holds = c.choice + n + 1;
	c.fails = c.holds + n + 1;
	for (int k = 0; k < n; k++)
		if (choice[k]->src[0] == cond) {
			c.choice[c.n] = choice[k];
			c.holds[c.n] = choice[k]->src[1];
			c.fails[c.n++] = choice[k]->src[2];
		}
	return c;
}

/* e where the condition of its choices holds, else 0. */
static Node *under(Ir *ir, Node *cond, Node *e, const Chosen *c)
{
	return node_select(ir, cond, node_replace(ir, e, c->n, c->choice, c->holds),
			   node_const(ir, (Type)e->type, 0));
}

/* The factor e under the first condition outside of which it is 0. */
static Node *factor_guarded(Ir *ir, Node *e)
{
	Node **choice;
	int n = node_collect(ir, e, OP_SELECT, &choice);
	for (int k = 0; k < n; k++) {
		if (!node_is_const(choice[k]->src[2]))
			continue;
		Node *cond = choice[k]->src[0];
		Chosen c = chosen_by(ir, cond, n, choice);
		if (node_is_value(node_replace(ir, e, c.n, c.choice, c.fails), 0))
			return under(ir, cond, e, &c);
	}
	return e;
}

/* Is each part of the condition among the guards? */
static bool all_hold(Ir *ir, Node *cond, int nguard, Node *const *guard)
{
	Node **part;
	int n = node_parts(ir, cond, OP_AND, &part), found = 0;
	for (int k = 0; k < n; k++)
		found += rewrite_place(guard, nguard, part[k]) >= 0;
	return found == n;
}

/* e, which is multiplied by a factor, under that factor's condition where it is a function of what is chosen by that. */
static Node *guarded_beside(Ir *ir, Node *e, Node *factor)
{
	Node *guard[GUARDS_MOST], **choice;
	int nguard, n = node_collect(ir, e, OP_SELECT, &choice);
	if (!n || e->op == OP_SELECT)
		return e;
	reduce_guards(ir, RED_ADD, factor, GUARDS_MOST, &nguard, guard);
	for (int k = 0; k < n; k++) {
		Node *cond = choice[k]->src[0];
		Chosen c = chosen_by(ir, cond, n, choice);
		if (all_hold(ir, cond, nguard, guard) &&
		    node_is_const(node_replace(ir, e, c.n, c.choice, c.fails)))
			return under(ir, cond, e, &c);
	}
	return e;
}

/* seen: what was made of expressions, which share parts. */
static Node *outside(Ir *ir, NodeMap *seen, Node *e)
{
	Node *src[3], *known = node_map_get(seen, e);
	bool product = e->op == OP_MUL || e->op == OP_DIV || e->op == OP_NEG;
	if (known || !type_is_float((Type)e->type))
		return known ? known : e;
	if (!product && e->op != OP_SELECT)
		return factor_guarded(ir, e);
	for (int k = 0; k < e->nsrc; k++) {
		bool factor = product ? k == 0 || e->op == OP_MUL : k == 1;
		src[k] = factor ? outside(ir, seen, e->src[k]) : e->src[k];
	}
	if (e->op == OP_MUL) {
		src[0] = guarded_beside(ir, src[0], src[1]);
		src[1] = guarded_beside(ir, src[1], src[0]);
	}
	Node *now = e->op == OP_SELECT ? node_select(ir, src[0], src[1], src[2])
				       : node_make(ir, e->op, e->type, e->nsrc, src, 0);
	node_map_put(ir, seen, e, now);
	return now;
}

Node *guards_outside(Ir *ir, Node *e)
{
	NodeMap seen = {0};
	return outside(ir, &seen, e);
}
