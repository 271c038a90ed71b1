/* derive.c - reverse mode through one scalar expression: from the adjoint of an equation's body to
 * a term for each read in it.
 *
 * Input: the body, a graph of shared nodes. Output: Terms. Time and size are linear in the body:
 * each node has one adjoint, the sum of what its users give it. A SELECT is lazy, so a branch may
 * hold what is invalid outside it (reads out of bounds, logarithms). So an adjoint is a pair
 * (guard, value), and value is evaluated under the guard only; what several users give under
 * different guards is joined as (g1 || g2, (g1 ? v1 : 0) + (g2 ? v2 : 0)).
 */
#include "autodiff/internal.h"

/* ---- the table */

#define NONE	      NULL
#define K(v)	      node_const(ir, y->type, v)
#define ADD(p, q)     node2(ir, OP_ADD, p, q)
#define SUB(p, q)     node2(ir, OP_SUB, p, q)
#define MUL(p, q)     node2(ir, OP_MUL, p, q)
#define DIV(p, q)     node2(ir, OP_DIV, p, q)
#define POW(p, q)     node2(ir, OP_POW, p, q)
#define EQ(p, q)      node2(ir, OP_EQ, p, q)
#define LE(p, q)      node2(ir, OP_LE, p, q)
#define AND(p, q)     node2(ir, OP_AND, p, q)
#define NEG(p)	      node1(ir, OP_NEG, p)
#define EXP(p)	      node1(ir, OP_EXP, p)
#define LOG(p)	      node1(ir, OP_LOG, p)
#define SIN(p)	      node1(ir, OP_SIN, p)
#define COS(p)	      node1(ir, OP_COS, p)
#define SIGN(p)	      node1(ir, OP_SIGN, p)
#define CAST(p)	      node_cast(ir, a->type, p)
#define PICK(c, p, q) node_select(ir, c, p, q)
/* g where less < more, half of it where they are equal; g stands in it once, so that chains of
 * maxima stay linear when they are written out */
#define SHARE(less, more) PICK(LE(less, more), MUL(PICK(EQ(less, more), K(0.5), K(1)), g), K(0))

#define DERIVE(name, left, right)                                                                  \
	static Node *left_##name(Ir *ir, Node *a, Node *b, Node *y, Node *g)                       \
	{                                                                                          \
		(void)ir, (void)a, (void)b, (void)y, (void)g;                                      \
		return left;                                                                       \
	}                                                                                          \
	static Node *right_##name(Ir *ir, Node *a, Node *b, Node *y, Node *g)                      \
	{                                                                                          \
		(void)ir, (void)a, (void)b, (void)y, (void)g;                                      \
		return right;                                                                      \
	}
#include "autodiff/derive.def"
#undef DERIVE

/* An operator without a line in derive.def is an undeclared left_NAME here. */
static const struct Rule {
	Node *(*side[2])(Ir *ir, Node *a, Node *b, Node *y, Node *g);
} rules[OP_COUNT] = {
#define OP(name, text, nsrc, form) [OP_##name] = {{left_##name, right_##name}},
#include "core/ops.def"
#undef OP
};

/* ---- the walk */

typedef struct Adjoint {
	Node *node, *guard, *value; /* guard NULL: everywhere; value NULL: nothing came yet */
} Adjoint;

typedef struct Walk {
	Tape *tape;
	Ir *ir;
	int n, room, nseen, seen_room;
	Adjoint *adj; /* active nodes, sources first; node n's is adj[slot[n->id] - 1] */
	Node **seen;  /* every node whose slot was set */
} Walk;

static void see(Walk *w, Node *n, int slot)
{
	if (w->nseen == w->seen_room) {
		Node **old = w->seen;
		w->seen_room = w->seen_room * 2 + 32;
		w->seen = arena_alloc(&w->ir->arena, sizeof *w->seen * (size_t)w->seen_room);
		for (int k = 0; k < w->nseen; k++)
			w->seen[k] = old[k];
	}
	w->seen[w->nseen++] = n;
	w->tape->slot[n->id] = slot;
}

static void push(Walk *w, Node *n)
{
	if (w->n == w->room) {
		Adjoint *old = w->adj;
		w->room = w->room * 2 + 16;
		w->adj = arena_alloc(&w->ir->arena, sizeof *w->adj * (size_t)w->room);
		for (int k = 0; k < w->n; k++)
			w->adj[k] = old[k];
	}
	w->adj[w->n++] = (Adjoint){.node = n};
	see(w, n, w->n);
}

/* Is n active, does a wanted tensor flow into it? Lists the active nodes below it, sources first.
 */
static bool activate(Walk *w, Node *n)
{
	if (!type_is_float(n->type) || n->nsrc == 0)
		return false;
	int slot = w->tape->slot[n->id];
	if (slot)
		return slot > 0;
	bool active = false;
	if (n->op == OP_READ)
		active = w->tape->wanted[n->src[0]->id];
	else
		for (int k = 0; k < n->nsrc; k++)
			active |= activate(w, n->src[k]);
	if (active)
		push(w, n);
	else
		see(w, n, -1);
	return active;
}

static Node *under(Ir *ir, Node *guard, Node *value)
{
	return guard ? node_select(ir, guard, value, node_const(ir, value->type, 0)) : value;
}

static Node *both(Ir *ir, Node *guard, Node *cond)
{
	return guard ? node2(ir, OP_AND, guard, cond) : cond;
}

/* What guard says beyond `start`; NULL: nothing. A guard that does not begin with it is returned
 * whole. */
static Node *beyond(Ir *ir, Node *start, Node *guard)
{
	if (!guard || guard == start)
		return NULL;
	if (!start || guard->op != OP_AND)
		return guard;
	Node *rest = beyond(ir, start, guard->src[0]);
	return rest == guard->src[0] ? guard : both(ir, rest, guard->src[1]);
}

/* The longest beginning of a that b begins with too; NULL: none. */
static Node *common(Node *a, Node *b)
{
	for (Node *x = a; x; x = x->op == OP_AND ? x->src[0] : NULL)
		for (Node *y = b; y; y = y->op == OP_AND ? y->src[0] : NULL)
			if (x == y)
				return x;
	return NULL;
}

/* to += the part; what both guards begin with is kept as the guard, branches of one choice become
 * it again. */
static void join(Ir *ir, Adjoint *to, Node *guard, Node *value)
{
	Node *start = common(to->guard, guard);
	Node *a = beyond(ir, start, to->guard), *b = beyond(ir, start, guard);
	if (a && b && node_not(ir, a) == b) {
		to->value = node_select(ir, a, to->value, value);
		to->guard = start;
	} else {
		to->value = node_add(ir, under(ir, a, to->value), under(ir, b, value));
		to->guard = a && b ? both(ir, start, node2(ir, OP_OR, a, b)) : start;
	}
}

/* Adds value, valid under guard, to n's adjoint. */
static void give(Walk *w, Node *n, Node *guard, Node *value)
{
	int slot = w->tape->slot[n->id];
	if (!value || slot <= 0)
		return;
	Adjoint *to = &w->adj[slot - 1];
	if (to->value) {
		join(w->ir, to, guard, value);
	} else {
		to->guard = guard;
		to->value = value;
	}
}

static void derive_select(Walk *w, const Adjoint *from)
{
	Node *cond = from->node->src[0];
	give(w, from->node->src[1], both(w->ir, from->guard, cond), from->value);
	give(w, from->node->src[2], both(w->ir, from->guard, node_not(w->ir, cond)), from->value);
}

static void derive_node(Walk *w, const Adjoint *from, Node *value)
{
	Node *n = from->node;
	Node *a = n->src[0], *b = n->nsrc > 1 ? n->src[1] : NULL;
	for (int k = 0; k < n->nsrc && k < 2; k++)
		if (w->tape->slot[n->src[k]->id] > 0)
			give(w, n->src[k], from->guard,
			     rules[n->op].side[k](w->ir, a, b, value, from->value));
}

int derive_body(Tape *tape, Node *body, Node *root, Node *seed, Term **terms)
{
	Walk w = {.tape = tape, .ir = tape->ir};
	int n = 0;

	*terms = NULL;
	if (activate(&w, body)) {
		*terms = arena_alloc(&w.ir->arena, sizeof **terms * (size_t)w.n);
		give(&w, body, NULL, seed);
	}
	for (int k = w.n - 1; k >= 0; k--) {
		const Adjoint *at = &w.adj[k];
		if (!at->value)
			continue;
		if (at->node->op == OP_READ)
			(*terms)[n++] = (Term){at->node, at->guard, at->value};
		else if (at->node->op == OP_SELECT)
			derive_select(&w, at);
		else
			derive_node(&w, at, at->node == body ? root : at->node);
	}
	for (int k = 0; k < w.nseen; k++)
		tape->slot[w.seen[k]->id] = 0;
	return n;
}
