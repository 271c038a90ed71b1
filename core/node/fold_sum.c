/* fold_sum.c - the normal form of integer arithmetic.
 * A sum is ((k1*a1 + k2*a2) + ..) + c, atoms distinct, axes by number first, then by hash; k = 1 is
 * not written; a product by a constant is MUL(CONST, atom); in x/c and x%c the coefficients of x
 * lie in 1..c-1. So two affine expressions are equal exactly when they are one node.
 *
 * Sums wrap, so that they may be put in any order and their coefficients wrap with them. Quotients
 * and remainders ask for more: what is divided must not wrap, before and after. */
#include "core/node/internal.h"

static int64_t wrapping_mul(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* A digit of x: x/d % c, or x/d, where c is 0. */
typedef struct Digit {
	Node *x;
	int64_t d, c;
} Digit;

static Digit digit_of(Node *n)
{
	Digit g = {n, 1, 0};
	if (g.x->op == OP_FLOORMOD && node_is_const(g.x->src[1])) {
		g.c = g.x->src[1]->u.i;
		g.x = g.x->src[0];
	}
	if (g.x->op == OP_FLOORDIV && node_is_const(g.x->src[1])) {
		g.d = g.x->src[1]->u.i;
		g.x = g.x->src[0];
	}
	return g;
}

static Node *digit_node(Ir *ir, Digit g)
{
	Node *q = node_floordiv(ir, g.x, g.d);
	return g.c ? node_floormod(ir, q, g.c) : q;
}

/* Makes one digit of a low one and the next: k*(x/d % c) + k*c*(x/(d*c) % e) is k*(x/d % (c*e)). */
static bool sum_join(Ir *ir, Affine *s)
{
	for (int a = 0; a < s->n; a++) {
		Digit low = digit_of(s->atom[a]);
		int64_t place, c;
		if (!low.c || !s->k[a] || __builtin_mul_overflow(low.d, low.c, &place))
			continue;
		for (int b = 0; b < s->n; b++) {
			Digit high = digit_of(s->atom[b]);
			if (high.x != low.x || high.d != place ||
			    s->k[b] != wrapping_mul(s->k[a], low.c) ||
			    __builtin_mul_overflow(low.c, high.c, &c))
				continue;
			int64_t k = s->k[a];
			s->k[a] = s->k[b] = 0;
			affine_add(ir, s, digit_node(ir, (Digit){low.x, low.d, c}), k, true);
			return true;
		}
	}
	return false;
}

static Node *sum_node(Ir *ir, const Affine *s, Type t)
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

/* a + k * b */
static Node *sum_of(Ir *ir, Node *a, Node *b, int64_t k, Type t)
{
	AffineRoom room;
	Affine *s = affine_start(&room);
	affine_add(ir, s, a, 1, true);
	affine_add(ir, s, b, k, true);
	while (sum_join(ir, s)) {
	}
	return sum_node(ir, s, t);
}

Node *fold_int_add(Ir *ir, Type t, Node *a, Node *b)
{
	if (node_is_value(b, 0)) /* an axis stays itself, whatever its extent */
		return a;
	return sum_of(ir, a, b, 1, t);
}

Node *node_add_scaled(Ir *ir, Node *a, Node *b, int64_t k)
{
	if (a->type == RICCI_I64 && !node_is_value(a, 0) && !node_is_value(b, 0))
		return sum_of(ir, a, b, k, RICCI_I64);
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
	AffineRoom room;
	Affine *s = affine_start(&room);
	affine_add(ir, s, b, a->u.i, true);
	return sum_node(ir, s, t);
}

enum { SHIFT_MOST = 1 << 30 };

/* The remainder of k by c: left, or left - c where that is far nearer to 0. */
static int64_t nearest(int64_t k, int64_t c)
{
	int64_t left = int_floor_mod(k, c);
	return c - left <= (left - 1) / 4 ? left - c : left;
}

/* How far below 0 the sum goes where its coefficients are the nearest remainders; -1: none of them is negative, or it
 * goes too far. */
static int64_t below_zero(const Affine *s, int64_t c)
{
	const int64_t most = INT64_MAX / 4; /* no sum of these wraps */
	double least = 0;
	bool negative = false;
	if (c > most || s->c > most || s->c < -most)
		return -1;
	for (int j = 0; j < s->n; j++) {
		double k = (double)nearest(s->k[j], c);
		least += k * (double)(k < 0 ? s->atom[j]->hi : s->atom[j]->lo);
		negative |= k < 0;
	}
	return negative && least <= 0 && least >= -SHIFT_MOST ? (int64_t)-least : -1;
}

/* e = c*whole + rest. The coefficients of rest are the nearest remainders, so that differences stay such, with the least
 * constant by which it is never negative; or all of them are in 0..c-1. */
static void sum_split(Ir *ir, Node *e, int64_t c, Affine *whole, Affine *rest)
{
	AffineRoom room;
	Affine *s = affine_start(&room);
	affine_add(ir, s, e, 1, true);
	int64_t below = below_zero(s, c), shift = below < 0 ? 0 : below;
	for (int j = 0; j < s->n; j++) {
		int64_t left = below < 0 ? int_floor_mod(s->k[j], c) : nearest(s->k[j], c);
		int64_t times = int_floor_div(s->k[j], c) + (left < 0);
		if (times)
			affine_add(ir, whole, s->atom[j], times, true);
		if (left)
			affine_add(ir, rest, s->atom[j], left, true);
	}
	whole->c = int_floor_div(s->c - shift, c);
	rest->c = int_floor_mod(s->c - shift, c) + shift;
}

/* The common divisor of the coefficients of s and c. */
static int64_t sum_gcd(const Affine *s, int64_t c)
{
	for (int j = 0; j < s->n; j++)
		c = int_gcd(c, s->k[j]);
	return c;
}

static void sum_divide(Affine *s, int64_t g)
{
	for (int j = 0; j < s->n; j++)
		s->k[j] /= g;
	s->c = int_floor_div(s->c, g);
}

/* Of a sum e of one atom that has two values only, its quotient, or remainder, by c: a sum, too. NULL: e is no such sum. */
static Node *of_two_values(Ir *ir, Type t, const Affine *e, int64_t (*value)(int64_t, int64_t),
			   int64_t c)
{
	Node *atom = e->n == 1 ? e->atom[0] : NULL;
	if (!atom || atom->lo == atom->hi || atom->hi - 1 != atom->lo)
		return NULL;
	int64_t below = value(e->k[0] * atom->lo + e->c, c);
	int64_t above = value(e->k[0] * atom->hi + e->c, c);
	Node *step =
		node_scale(ir, node_sub(ir, atom, node_const_int(ir, t, atom->lo)), above - below);
	return node_add(ir, node_const_int(ir, t, below), step);
}

Node *fold_floordiv(Ir *ir, Type t, Node *e, int64_t c)
{
	if (c == 1)
		return e;
	if (int_floor_div(e->lo, c) == int_floor_div(e->hi, c))
		return node_const_int(ir, t, int_floor_div(e->lo, c));
	if (t != RICCI_I64 || node_may_wrap(e)) /* parts of a narrow sum may wrap, too */
		return NULL;
	int64_t product;
	if (e->op == OP_FLOORDIV && !__builtin_mul_overflow(e->src[1]->u.i, c, &product))
		return node_floordiv(ir, e->src[0], product);
	AffineRoom rooms[2];
	Affine *whole = affine_start(&rooms[0]), *rest = affine_start(&rooms[1]);
	sum_split(ir, e, c, whole, rest);
	Node *r = sum_node(ir, rest, t), *w = sum_node(ir, whole, t);
	if (node_may_wrap(r) || node_may_wrap(w))
		return NULL;
	if (r->lo >= 0 && r->hi < c)
		return w;
	Node *two = of_two_values(ir, t, rest, int_floor_div, c);
	if (two)
		return node_add(ir, w, two);
	int64_t g = sum_gcd(rest, c);
	if (whole->n == 0 && whole->c == 0 && g == 1)
		return NULL;
	sum_divide(rest, g);
	r = sum_node(ir, rest, t);
	return node_add(ir, w, node_floordiv(ir, r, c / g));
}

Node *fold_floormod(Ir *ir, Type t, Node *e, int64_t c)
{
	if (c == 1)
		return node_const_int(ir, t, 0);
	int64_t q = int_floor_div(e->lo, c);
	if (q == int_floor_div(e->hi, c))
		return node_add(ir, e, node_const_int(ir, t, wrapping_mul(-c, q)));
	if (t != RICCI_I64 || node_may_wrap(e))
		return NULL;
	if (e->op == OP_FLOORMOD && e->src[1]->u.i % c == 0)
		return node_floormod(ir, e->src[0], c);
	AffineRoom rooms[2];
	Affine *whole = affine_start(&rooms[0]), *rest = affine_start(&rooms[1]);
	sum_split(ir, e, c, whole, rest);
	Node *r = sum_node(ir, rest, t);
	if (node_may_wrap(r))
		return NULL;
	if (r->lo >= 0 && r->hi < c)
		return r;
	Node *two = of_two_values(ir, t, rest, int_floor_mod, c);
	if (two)
		return two;
	int64_t g = sum_gcd(rest, c);
	if (g > 1) { /* (g*x + c0) % (g*d) = g*((x + c0/g) % d) + c0 % g */
		int64_t left = int_floor_mod(rest->c, g);
		sum_divide(rest, g);
		Node *m = node_floormod(ir, sum_node(ir, rest, t), c / g);
		return node_add(ir, node_scale(ir, m, g), node_const_int(ir, t, left));
	}
	return r == e ? NULL : node_floormod(ir, r, c);
}
