/* fold_sum.c - the normal form of integer arithmetic.
 * A sum is ((k1*a1 + k2*a2) + ..) + c, atoms distinct, axes by number first, then by hash; k = 1 is
 * not written; a product by a constant is MUL(CONST, atom); in x/c and x%c the coefficients of x
 * lie in 1..c-1. So two affine expressions are equal exactly when they are one node.
 *
 * Sums wrap, so that they may be put in any order and their coefficients wrap with them. Quotients
 * and remainders ask for more: what is divided must not wrap, before and after. */
#include "core/node/internal.h"

/* ---- the normal form of integer sums ---- */

enum { FEW_ATOMS = 12 };

/* Most have few atoms: these need no memory but their own. Moved by address only. */
typedef struct Sum {
	int n, room;
	int64_t c;
	int64_t *k, few_k[FEW_ATOMS];
	Node **atom, *few_atom[FEW_ATOMS];
} Sum;

static void sum_start(Sum *s)
{
	s->n = 0;
	s->c = 0;
	s->room = FEW_ATOMS;
	s->k = s->few_k;
	s->atom = s->few_atom;
}

static int64_t wrapping_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t wrapping_mul(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

static bool atom_before(const Node *a, const Node *b)
{
	bool x = a->op == OP_AXIS, y = b->op == OP_AXIS;
	if (x != y)
		return x;
	if (x && a->u.i != b->u.i)
		return a->u.i < b->u.i;
	return a->hash != b->hash ? a->hash < b->hash : a->id < b->id;
}

static void sum_put(Ir *ir, Sum *s, Node *atom, int64_t k)
{
	int at = 0;
	while (at < s->n && s->atom[at] != atom && atom_before(s->atom[at], atom))
		at++;
	if (at < s->n && s->atom[at] == atom) {
		s->k[at] = wrapping_add(s->k[at], k);
		return;
	}
	if (s->n == s->room) {
		s->room *= 2;
		int64_t *k = arena_alloc(&ir->arena, (size_t)s->room * sizeof *k);
		Node **atoms = arena_alloc(&ir->arena, (size_t)s->room * sizeof *atoms);
		for (int j = 0; j < s->n; j++)
			k[j] = s->k[j], atoms[j] = s->atom[j];
		s->k = k, s->atom = atoms;
	}
	for (int j = s->n++; j > at; j--)
		s->k[j] = s->k[j - 1], s->atom[j] = s->atom[j - 1];
	s->k[at] = k;
	s->atom[at] = atom;
}

static void sum_add(Ir *ir, Sum *s, Node *e, int64_t k)
{
	if (e->lo == e->hi) { /* constants, and axes of extent 1 */
		s->c = wrapping_add(s->c, wrapping_mul(e->lo, k));
	} else if (e->op == OP_ADD) {
		sum_add(ir, s, e->src[0], k);
		sum_add(ir, s, e->src[1], k);
	} else if (e->op == OP_MUL && e->src[0]->op == OP_CONST) {
		sum_add(ir, s, e->src[1], wrapping_mul(e->src[0]->u.i, k));
	} else {
		sum_put(ir, s, e, k);
	}
}

/* k*(x % c) + k*c*(x / c) is k*x. */
static bool sum_join(Ir *ir, Sum *s)
{
	for (int a = 0; a < s->n; a++) {
		Node *m = s->atom[a];
		if (m->op != OP_FLOORMOD || s->k[a] == 0)
			continue;
		for (int b = 0; b < s->n; b++) {
			Node *q = s->atom[b];
			if (q->op != OP_FLOORDIV || q->src[0] != m->src[0] ||
			    q->src[1] != m->src[1] ||
			    s->k[b] != wrapping_mul(s->k[a], m->src[1]->u.i))
				continue;
			int64_t k = s->k[a];
			s->k[a] = s->k[b] = 0;
			sum_add(ir, s, m->src[0], k);
			return true;
		}
	}
	return false;
}

static Node *sum_node(Ir *ir, const Sum *s, Type t)
{
	Node *out = NULL;
	for (int j = 0; j < s->n; j++) {
		int64_t k = type_wrap(t, s->k[j]); /* a narrow type's 255 * 255 is 1 */
		if (k == 0)
			continue;
		Node *term = s->atom[j];
		if (k != 1) {
			Node *src[2] = {node_const_int(ir, t, k), term};
			term = node_raw(ir, OP_MUL, t, 2, src, 0, NULL);
		}
		Node *src[2] = {out, term};
		out = out ? node_raw(ir, OP_ADD, t, 2, src, 0, NULL) : term;
	}
	if (!out)
		return node_const_int(ir, t, s->c);
	Node *src[2] = {out, NULL};
	if (type_wrap(t, s->c)) {
		src[1] = node_const_int(ir, t, s->c);
		out = node_raw(ir, OP_ADD, t, 2, src, 0, NULL);
	}
	return out->lo == out->hi && out->op != OP_AXIS ? node_const_int(ir, t, out->lo) : out;
}

/* s = k * e */
static void sum_of(Ir *ir, Sum *s, Node *e, int64_t k)
{
	sum_start(s);
	sum_add(ir, s, e, k);
}

Node *fold_int_add(Ir *ir, Type t, Node *a, Node *b)
{
	if (node_is_value(b, 0)) /* an axis stays itself, whatever its extent */
		return a;
	Sum s;
	sum_of(ir, &s, a, 1);
	sum_add(ir, &s, b, 1);
	while (sum_join(ir, &s)) {
	}
	return sum_node(ir, &s, t);
}

Node *node_add_scaled(Ir *ir, Node *a, Node *b, int64_t k)
{
	if (a->type == RICCI_I64 && !node_is_value(a, 0) && !node_is_value(b, 0)) {
		Sum s;
		sum_of(ir, &s, a, 1);
		sum_add(ir, &s, b, k);
		while (sum_join(ir, &s)) {
		}
		return sum_node(ir, &s, RICCI_I64);
	}
	return node_add(ir, a, node_scale(ir, b, k));
}

Node *fold_int_mul(Ir *ir, Type t, Node *a, Node *b)
{
	if (b->op == OP_CONST) {
		Node *c = a;
		a = b;
		b = c;
	}
	if (a->op != OP_CONST)
		return NULL;
	Sum s;
	sum_of(ir, &s, b, a->u.i);
	return sum_node(ir, &s, t);
}

/* e = c*whole + rest, the coefficients of rest in 0..c-1. */
static void sum_split(Ir *ir, Node *e, int64_t c, Sum *whole, Sum *rest)
{
	Sum s;
	sum_of(ir, &s, e, 1);
	sum_start(whole);
	sum_start(rest);
	for (int j = 0; j < s.n; j++) {
		if (int_floor_div(s.k[j], c))
			sum_put(ir, whole, s.atom[j], int_floor_div(s.k[j], c));
		if (int_floor_mod(s.k[j], c))
			sum_put(ir, rest, s.atom[j], int_floor_mod(s.k[j], c));
	}
	whole->c = int_floor_div(s.c, c);
	rest->c = int_floor_mod(s.c, c);
}

/* The common divisor of the coefficients of s and c. */
static int64_t sum_gcd(const Sum *s, int64_t c)
{
	for (int j = 0; j < s->n; j++)
		c = int_gcd(c, s->k[j]);
	return c;
}

static void sum_divide(Sum *s, int64_t g)
{
	for (int j = 0; j < s->n; j++)
		s->k[j] /= g;
	s->c = int_floor_div(s->c, g);
}

Node *fold_floordiv(Ir *ir, Type t, Node *e, int64_t c)
{
	if (c == 1)
		return e;
	if (e->op == OP_CONST)
		return node_const_int(ir, t, int_floor_div(e->u.i, c));
	if (int_floor_div(e->lo, c) == int_floor_div(e->hi, c))
		return node_const_int(ir, t, int_floor_div(e->lo, c));
	if (t != RICCI_I64 || node_may_wrap(e)) /* parts of a narrow sum may wrap, too */
		return NULL;
	int64_t product;
	if (e->op == OP_FLOORDIV && !__builtin_mul_overflow(e->src[1]->u.i, c, &product))
		return node_floordiv(ir, e->src[0], product);
	Sum whole, rest;
	sum_split(ir, e, c, &whole, &rest);
	Node *r = sum_node(ir, &rest, t), *w = sum_node(ir, &whole, t);
	if (node_may_wrap(r) || node_may_wrap(w))
		return NULL;
	if (r->lo >= 0 && r->hi < c)
		return w;
	int64_t g = sum_gcd(&rest, c);
	if (whole.n == 0 && whole.c == 0 && g == 1)
		return NULL;
	sum_divide(&rest, g);
	r = sum_node(ir, &rest, t);
	return node_add(ir, w, node_floordiv(ir, r, c / g));
}

Node *fold_floormod(Ir *ir, Type t, Node *e, int64_t c)
{
	if (c == 1)
		return node_const_int(ir, t, 0);
	if (e->op == OP_CONST)
		return node_const_int(ir, t, int_floor_mod(e->u.i, c));
	int64_t q = int_floor_div(e->lo, c);
	if (q == int_floor_div(e->hi, c))
		return node_add(ir, e, node_const_int(ir, t, wrapping_mul(-c, q)));
	if (t != RICCI_I64 || node_may_wrap(e))
		return NULL;
	if (e->op == OP_FLOORMOD && e->src[1]->u.i % c == 0)
		return node_floormod(ir, e->src[0], c);
	Sum whole, rest;
	sum_split(ir, e, c, &whole, &rest);
	Node *r = sum_node(ir, &rest, t);
	if (node_may_wrap(r))
		return NULL;
	if (r->lo >= 0 && r->hi < c)
		return r;
	int64_t g = sum_gcd(&rest, c);
	if (g > 1) { /* (g*x + c0) % (g*d) = g*((x + c0/g) % d) + c0 % g */
		int64_t left = int_floor_mod(rest.c, g);
		sum_divide(&rest, g);
		Node *m = node_floormod(ir, sum_node(ir, &rest, t), c / g);
		return node_add(ir, node_scale(ir, m, g), node_const_int(ir, t, left));
	}
	return r == e ? NULL : node_floormod(ir, r, c);
}
