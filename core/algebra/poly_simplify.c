/* poly_simplify.c - expressions simplified under what a polyhedron knows.
 *
 * Comparisons that are implied or excluded become constants; quotients, remainders, minima and
 * maxima that the constraints decide go; what stands behind a SELECT, AND or OR is simplified under
 * the condition that leads there, of data too where it comes again. Work is bounded: past
 * VISIT_LIMIT nodes stay as they are. */
#include "core/algebra/internal.h"

enum { VISIT_LIMIT = 20000 };

/* A condition that holds, or not, where an expression stands. */
typedef struct Fact {
	const Node *cond;
	bool holds;
	const struct Fact *outer;
} Fact;

typedef struct Simplify {
	Ir *ir;
	int visits;
	Decisions decisions;
	const Fact *facts;
} Simplify;

static Node *simplify(Simplify *s, Polyhedron *p, NodeMap *m, Node *e);

static void see_decision(void *user, Node *n)
{
	Simplify *s = user;
	int nsrc = n->op == OP_SELECT ? 1 : n->op == OP_AND || n->op == OP_OR ? 2 : 0;
	for (int k = 0; k < nsrc; k++)
		decided_by(s->ir, &s->decisions, n->src[k], n);
}

/* Puts the parts of c, which holds or not, that come again before the facts. */
static void assume_parts(Simplify *s, NodeMap *seen, Node *c, bool holds)
{
	if (node_map_get(seen, c))
		return;
	node_map_put(s->ir, seen, c, c);
	if (c->op == (holds ? OP_AND : OP_OR)) {
		assume_parts(s, seen, c->src[0], holds);
		assume_parts(s, seen, c->src[1], holds);
	}
	if (!decides_again(s->ir, &s->decisions, c))
		return;
	Fact *f = arena_alloc(&s->ir->arena, sizeof *f);
	*f = (Fact){c, holds, s->facts};
	s->facts = f;
}

/* Source k of e, which its first decides to look at when that holds, or not; c: the first one,
 * simple already; m: what is known under p. */
static Node *simplify_under(Simplify *s, Polyhedron *p, NodeMap *m, const Node *e, Node *c,
			    bool holds, int k)
{
	NodeMap inner = {0}, parts = {0};
	const Fact *outer = s->facts;
	bool ints = node_any(s->ir, c, node_compares_int);
	assume_parts(s, &parts, e->src[0], holds);
	if (!ints && s->facts == outer)
		return simplify(s, p, m, e->src[k]);
	Polyhedron *q = ints ? poly_copy(p) : p;
	if (ints)
		poly_assume(q, holds ? c : node_not(s->ir, c));
	Node *out = simplify(s, q, &inner, e->src[k]);
	s->facts = outer;
	return out;
}

/* What the facts say of e: 1, 0, or -1 for nothing. */
static int facts_say(const Simplify *s, const Node *e)
{
	for (const Fact *f = s->facts; f && e->type == RICCI_BOOL; f = f->outer)
		if (f->cond == e || node_opposite(f->cond, e))
			return (f->cond == e) == f->holds;
	return -1;
}

static Node *simplify_lazy(Simplify *s, Polyhedron *p, NodeMap *m, Node *e)
{
	Node *c = simplify(s, p, m, e->src[0]);
	if (e->op == OP_SELECT) {
		if (node_is_const(c))
			return simplify(s, p, m, e->src[c->u.i ? 1 : 2]);
		return node_select(s->ir, c, simplify_under(s, p, m, e, c, true, 1),
				   simplify_under(s, p, m, e, c, false, 2));
	}
	bool and = e->op == OP_AND;
	if (node_is_const(c))
		return (c->u.i != 0) == and? simplify(s, p, m, e->src[1]) : c;
	return node2(s->ir, (Op)e->op, c, simplify_under(s, p, m, e, c, and, 1));
}

/* A node of integers or truth values whose sources are simple already. */
static Node *simplify_integer(Simplify *s, Polyhedron *p, Node *e)
{
	int64_t lo, hi;
	if (e->type == RICCI_BOOL && e->op != OP_CONST && e->op != OP_AND && e->op != OP_OR) {
		if (poly_implies(p, e))
			return node_const_int(s->ir, RICCI_BOOL, 1);
		if (poly_implies(p, node_not(s->ir, e)))
			return node_const_int(s->ir, RICCI_BOOL, 0);
	} else if ((e->op == OP_FLOORDIV || e->op == OP_FLOORMOD) && node_is_const(e->src[1])) {
		int64_t c = e->src[1]->u.i;
		if (poly_bounds(p, node_floordiv(s->ir, e->src[0], c), &lo, &hi) && lo == hi) {
			Type t = (Type)e->type;
			if (e->op == OP_FLOORDIV)
				return node_const_int(s->ir, t, lo);
			int64_t off;
			if (!__builtin_mul_overflow(lo, -c, &off))
				return node_add(s->ir, e->src[0], node_const_int(s->ir, t, off));
		}
	} else if ((e->op == OP_MIN || e->op == OP_MAX) && !type_is_float((Type)e->type)) {
		if (poly_implies(p, node2(s->ir, OP_LE, e->src[0], e->src[1])))
			return e->src[e->op == OP_MIN ? 0 : 1];
		if (poly_implies(p, node2(s->ir, OP_LE, e->src[1], e->src[0])))
			return e->src[e->op == OP_MIN ? 1 : 0];
	}
	return e;
}

static Node *simplify_plain(Simplify *s, Polyhedron *p, NodeMap *m, Node *e)
{
	Node *small[8],
		**src = e->nsrc <= 8 ? small : arena_alloc(&s->ir->arena, e->nsrc * sizeof *src);
	bool changed = false;
	for (int k = 0; k < e->nsrc; k++) {
		src[k] = simplify(s, p, m, e->src[k]);
		changed |= src[k] != e->src[k];
	}
	if (changed)
		e = node_make(s->ir, (Op)e->op, (Type)e->type, e->nsrc, src, e->u.i);
	return simplify_integer(s, p, e);
}

static Node *simplify(Simplify *s, Polyhedron *p, NodeMap *m, Node *e)
{
	if (node_is_tensor(e) || e->op == OP_CONST || e->op == OP_AXIS)
		return e;
	int truth = facts_say(s, e);
	if (truth >= 0)
		return node_const_int(s->ir, RICCI_BOOL, truth);
	Node *known = node_map_get(m, e);
	if (known)
		return known;
	if (++s->visits > VISIT_LIMIT)
		return e;
	bool lazy = e->op == OP_SELECT || e->op == OP_AND || e->op == OP_OR;
	Node *out = lazy ? simplify_lazy(s, p, m, e) : simplify_plain(s, p, m, e);
	node_map_put(s->ir, m, e, out);
	return out;
}

Node *poly_simplify(Polyhedron *p, Node *e)
{
	Simplify s = {.ir = poly_ir(p)};
	NodeMap m = {0};
	node_walk(s.ir, e, see_decision, &s);
	return simplify(&s, p, &m, e);
}
