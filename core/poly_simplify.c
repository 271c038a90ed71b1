/* poly_simplify.c - expressions simplified under what a polyhedron knows.
 *
 * Comparisons that are implied or excluded become constants; quotients, remainders, minima and
 * maxima that the constraints decide go; what stands behind a SELECT, AND or OR is simplified under
 * the condition that leads there. Work is bounded: past VISIT_LIMIT nodes stay as they are. */
#include "core/eliminate.h"

enum { VISIT_LIMIT = 20000 };

typedef struct Simplify {
	Ir *ir;
	int visits;
} Simplify;

static Node *simplify(Simplify *s, Polyhedron *p, NodeMap *m, Node *e);

/* e under p and c (or not c); m: what is known under p. */
static Node *simplify_under(Simplify *s, Polyhedron *p, NodeMap *m, Node *c, bool holds, Node *e)
{
	NodeMap inner = {0};
	if (!node_compares_int(s->ir, c))
		return simplify(s, p, m, e);
	Polyhedron *q = poly_copy(p);
	if (holds)
		poly_assume(q, c);
	else
		poly_assume_not(q, c);
	return simplify(s, q, &inner, e);
}

static Node *simplify_lazy(Simplify *s, Polyhedron *p, NodeMap *m, Node *e)
{
	Node *c = simplify(s, p, m, e->src[0]);
	if (e->op == OP_SELECT) {
		if (node_is_const(c))
			return simplify(s, p, m, e->src[c->u.i ? 1 : 2]);
		return node_select(s->ir, c, simplify_under(s, p, m, c, true, e->src[1]),
				   simplify_under(s, p, m, c, false, e->src[2]));
	}
	bool and = e->op == OP_AND;
	if (node_is_const(c))
		return (c->u.i != 0) == and? simplify(s, p, m, e->src[1]) : c;
	return node2(s->ir, (Op)e->op, c, simplify_under(s, p, m, c, and, e->src[1]));
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
	return simplify(&s, p, &m, e);
}
