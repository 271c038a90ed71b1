/* fold.c - what node_make does before it interns: constants, identities, the normal form of integer
 * arithmetic, comparisons decided by bounds; and the bounds of a new node.
 *
 * Every rule keeps the type and the value (floats bit for bit, except the sign of a zero sum) and
 * gives a node that is no larger. Integers: a sum is ((k1*a1 + k2*a2) + ..) + c, atoms distinct,
 * axes by number first, then by hash; k = 1 is not written; a product by a constant is MUL(CONST,
 * atom). in x/c and x%c the coefficients of x lie in 1..c-1. */
#include "core/core.h"

#include <math.h>
#include <string.h>

Node *node_raw(Ir *ir, Op op, Type type, int nsrc, Node *const *src, int64_t i,
	       const char *s); /* node.c */

/* ---- constants
 * -----------------------------------------------------------------------------------------------
 */

double scalar_unary(Op op, double a)
{
	switch (op) {
	case OP_NEG:
		return -a;
	case OP_EXP:
		return exp(a);
	case OP_EXPM1:
		return expm1(a);
	case OP_LOG:
		return log(a);
	case OP_LOG1P:
		return log1p(a);
	case OP_SQRT:
		return sqrt(a);
	case OP_RSQRT:
		return 1 / sqrt(a);
	case OP_SIN:
		return sin(a);
	case OP_COS:
		return cos(a);
	case OP_TAN:
		return tan(a);
	case OP_TANH:
		return tanh(a);
	case OP_SIGMOID:
		return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a));
	case OP_ERF:
		return erf(a);
	case OP_ABS:
		return fabs(a);
	case OP_SIGN:
		return a > 0 ? 1 : a < 0 ? -1 : a;
	case OP_FLOOR:
		return floor(a);
	case OP_CEIL:
		return ceil(a);
	case OP_ROUND:
		return nearbyint(a);
	default:
		return NAN;
	}
}

double scalar_binary(Op op, double a, double b)
{
	switch (op) {
	case OP_ADD:
		return a + b;
	case OP_SUB:
		return a - b;
	case OP_MUL:
		return a * b;
	case OP_DIV:
		return a / b;
	case OP_MIN:
		return a != a ? a : b < a || b != b ? b : a;
	case OP_MAX:
		return a != a ? a : b > a || b != b ? b : a;
	case OP_POW:
		return pow(a, b);
	default:
		return NAN;
	}
}

static int64_t floor_div(int64_t a, int64_t c)
{
	return a / c - (a % c < 0);
}

static int64_t floor_mod(int64_t a, int64_t c)
{
	return a % c + (a % c < 0 ? c : 0);
}

static int64_t gcd(int64_t a, int64_t b)
{
	uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
	while (y) {
		uint64_t r = x % y;
		x = y;
		y = r;
	}
	return x > INT64_MAX ? 1 : (int64_t)x;
}

/* ---- the normal form of integer sums
 * -------------------------------------------------------------------------- */

typedef struct Sum {
	int n, room;
	int64_t c;
	int64_t *k;
	Node **atom;
	bool overflow;
} Sum;

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
		s->overflow |= __builtin_add_overflow(s->k[at], k, &s->k[at]);
		return;
	}
	if (s->n == s->room) {
		Sum old = *s;
		s->room = s->room * 2 + 6;
		s->k = arena_alloc(&ir->arena, (size_t)s->room * sizeof *s->k);
		s->atom = arena_alloc(&ir->arena, (size_t)s->room * sizeof *s->atom);
		for (int j = 0; j < old.n; j++)
			s->k[j] = old.k[j], s->atom[j] = old.atom[j];
	}
	for (int j = s->n++; j > at; j--)
		s->k[j] = s->k[j - 1], s->atom[j] = s->atom[j - 1];
	s->k[at] = k;
	s->atom[at] = atom;
}

static void sum_add(Ir *ir, Sum *s, Node *e, int64_t k)
{
	int64_t kk;
	if (e->lo == e->hi) { /* constants, and axes of extent 1 */
		s->overflow |= __builtin_mul_overflow(e->lo, k, &kk) ||
			       __builtin_add_overflow(s->c, kk, &s->c);
	} else if (e->op == OP_ADD) {
		sum_add(ir, s, e->src[0], k);
		sum_add(ir, s, e->src[1], k);
	} else if (e->op == OP_MUL && e->src[0]->op == OP_CONST) {
		s->overflow |= __builtin_mul_overflow(e->src[0]->u.i, k, &kk);
		sum_add(ir, s, e->src[1], kk);
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
			int64_t kc;
			if (q->op != OP_FLOORDIV || q->src[0] != m->src[0] ||
			    q->src[1] != m->src[1] ||
			    __builtin_mul_overflow(s->k[a], m->src[1]->u.i, &kc) || s->k[b] != kc)
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

static Sum sum_of(Ir *ir, Node *e, int64_t k)
{
	Sum s = {0};
	sum_add(ir, &s, e, k);
	return s;
}

static Node *fold_int_add(Ir *ir, Type t, Node *a, Node *b)
{
	if (node_is_value(b, 0)) /* an axis stays itself, whatever its extent */
		return a;
	Sum s = sum_of(ir, a, 1);
	sum_add(ir, &s, b, 1);
	while (sum_join(ir, &s)) {
	}
	return s.overflow ? NULL : sum_node(ir, &s, t);
}

static Node *fold_int_mul(Ir *ir, Type t, Node *a, Node *b)
{
	if (b->op == OP_CONST) {
		Node *c = a;
		a = b;
		b = c;
	}
	if (a->op != OP_CONST)
		return NULL;
	Sum s = sum_of(ir, b, a->u.i);
	return s.overflow ? NULL : sum_node(ir, &s, t);
}

/* e = c*whole + rest, the coefficients of rest in 0..c-1. */
static void sum_split(Ir *ir, Node *e, int64_t c, Sum *whole, Sum *rest)
{
	Sum s = sum_of(ir, e, 1);
	for (int j = 0; j < s.n; j++) {
		if (floor_div(s.k[j], c))
			sum_put(ir, whole, s.atom[j], floor_div(s.k[j], c));
		if (floor_mod(s.k[j], c))
			sum_put(ir, rest, s.atom[j], floor_mod(s.k[j], c));
	}
	whole->c = floor_div(s.c, c);
	rest->c = floor_mod(s.c, c);
}

/* The common divisor of the coefficients of s and c. */
static int64_t sum_gcd(const Sum *s, int64_t c)
{
	for (int j = 0; j < s->n; j++)
		c = gcd(c, s->k[j]);
	return c;
}

static void sum_divide(Sum *s, int64_t g)
{
	for (int j = 0; j < s->n; j++)
		s->k[j] /= g;
	s->c = floor_div(s->c, g);
}

/* Is nothing that these rules touch near the ends of int64? Then reassociation can't change a
 * value. */
static bool moderate(const Node *e)
{
	return e->lo > INT64_MIN / 4 && e->hi < INT64_MAX / 4;
}

static Node *fold_floordiv(Ir *ir, Type t, Node *e, int64_t c)
{
	if (c == 1)
		return e;
	if (e->op == OP_CONST)
		return node_const_int(ir, t, floor_div(e->u.i, c));
	if (t != RICCI_I64) /* parts of a narrow sum may wrap where the sum does not */
		return e->lo >= 0 && e->hi < c ? node_const_int(ir, t, 0) : NULL;
	if (!moderate(e))
		return NULL;
	if (e->op == OP_FLOORDIV && e->src[1]->u.i < INT32_MAX && c < INT32_MAX)
		return node_floordiv(ir, e->src[0], e->src[1]->u.i * c);
	Sum whole = {0}, rest = {0};
	sum_split(ir, e, c, &whole, &rest);
	Node *r = sum_node(ir, &rest, t), *w = sum_node(ir, &whole, t);
	if (r->lo >= 0 && r->hi < c)
		return w;
	int64_t g = sum_gcd(&rest, c);
	if (whole.n == 0 && whole.c == 0 && g == 1)
		return NULL;
	sum_divide(&rest, g);
	r = sum_node(ir, &rest, t);
	return node_add(ir, w, node_floordiv(ir, r, c / g));
}

static Node *fold_floormod(Ir *ir, Type t, Node *e, int64_t c)
{
	if (c == 1)
		return node_const_int(ir, t, 0);
	if (e->op == OP_CONST)
		return node_const_int(ir, t, floor_mod(e->u.i, c));
	if (t != RICCI_I64)
		return e->lo >= 0 && e->hi < c ? e : NULL;
	if (!moderate(e))
		return NULL;
	if (e->op == OP_FLOORMOD && e->src[1]->u.i % c == 0)
		return node_floormod(ir, e->src[0], c);
	Sum whole = {0}, rest = {0};
	sum_split(ir, e, c, &whole, &rest);
	Node *r = sum_node(ir, &rest, t);
	if (r->lo >= 0 && r->hi < c)
		return r;
	int64_t g = sum_gcd(&rest, c);
	if (g > 1) { /* (g*x + c0) % (g*d) = g*((x + c0/g) % d) + c0 % g */
		int64_t left = floor_mod(rest.c, g);
		sum_divide(&rest, g);
		Node *m = node_floormod(ir, sum_node(ir, &rest, t), c / g);
		return node_add(ir, node_scale(ir, m, g), node_const_int(ir, t, left));
	}
	return r == e ? NULL : node_floormod(ir, r, c);
}

/* ---- comparisons, logic, selection
 * ----------------------------------------------------------------------------- */

static Node *node_bool(Ir *ir, bool v)
{
	return node_const_int(ir, RICCI_BOOL, v);
}

static Node *fold_compare_int(Ir *ir, Op op, Node *a, Node *b)
{
	if (a->type == RICCI_BOOL) {
		if (a->op == OP_CONST && b->op == OP_CONST)
			return node_bool(ir, op == OP_EQ   ? a->u.i == b->u.i
					     : op == OP_NE ? a->u.i != b->u.i
					     : op == OP_LT ? a->u.i < b->u.i
							   : a->u.i <= b->u.i);
		return NULL;
	}
	if (!moderate(a) || !moderate(b))
		return a == b ? node_bool(ir, op == OP_EQ || op == OP_LE) : NULL;
	Node *d = node_sub(ir, b, a);
	bool never_equal = d->lo > 0 || d->hi < 0;
	if (!never_equal && d->op == OP_ADD && d->src[1]->op == OP_CONST && d->src[0]->mul > 1) {
		int64_t m = d->src[0]->mul; /* of what may wrap only the power of two is left */
		never_equal = d->src[1]->u.i % (a->type == RICCI_I64 ? m : m & -m) != 0;
	}
	if ((op == OP_LT || op == OP_LE) && a->type != RICCI_I64) { /* d may have wrapped */
		bool strict = op == OP_LT;
		if (a == b || (strict ? a->hi < b->lo : a->hi <= b->lo))
			return node_bool(ir, a != b || !strict);
		return (strict ? a->lo >= b->hi : a->lo > b->hi) ? node_bool(ir, false) : NULL;
	}
	switch (op) {
	case OP_LT:
		return d->lo > 0 ? node_bool(ir, true) : d->hi <= 0 ? node_bool(ir, false) : NULL;
	case OP_LE:
		return d->lo >= 0 ? node_bool(ir, true) : d->hi < 0 ? node_bool(ir, false) : NULL;
	default:
		if (never_equal)
			return node_bool(ir, op == OP_NE);
		return d->lo == 0 && d->hi == 0 ? node_bool(ir, op == OP_EQ) : NULL;
	}
}

static Node *fold_compare(Ir *ir, Op op, Node *a, Node *b)
{
	if (!type_is_float(a->type))
		return fold_compare_int(ir, op, a, b);
	if (a->op != OP_CONST || b->op != OP_CONST)
		return NULL;
	double x = a->u.f, y = b->u.f;
	return node_bool(ir, op == OP_LT   ? x < y
			     : op == OP_LE ? x <= y
			     : op == OP_EQ ? x == y
					   : x != y);
}

static Node *fold_logic(Ir *ir, Op op, Node *const *src)
{
	Node *a = src[0];
	if (op == OP_NOT) {
		if (a->op == OP_CONST)
			return node_bool(ir, !a->u.i);
		if (a->op == OP_NOT)
			return a->src[0];
		if (a->op == OP_EQ || a->op == OP_NE)
			return node2(ir, a->op == OP_EQ ? OP_NE : OP_EQ, a->src[0], a->src[1]);
		if ((a->op == OP_LT || a->op == OP_LE) && !type_is_float(a->src[0]->type))
			return node2(ir, a->op == OP_LT ? OP_LE : OP_LT, a->src[1], a->src[0]);
		return NULL;
	}
	Node *b = src[1];
	bool absorbing = op == OP_OR; /* the constant that decides */
	if (a->op == OP_CONST)
		return (a->u.i != 0) == absorbing ? a : b;
	if (b->op == OP_CONST && (b->u.i != 0) != absorbing)
		return a;
	if (b->op == OP_CONST && (b->u.i != 0) == absorbing)
		return b;
	return a == b ? a : NULL;
}

static Node *fold_select(Ir *ir, Node *c, Node *a, Node *b)
{
	if (c->op == OP_CONST)
		return c->u.i ? a : b;
	if (a == b)
		return a;
	if (c->op == OP_NOT)
		return node_select(ir, c->src[0], b, a);
	/* c ? (c ? x : y) : z */
	if (a->op == OP_SELECT && a->src[0] == c)
		return node_select(ir, c, a->src[1], b);
	if (b->op == OP_SELECT && b->src[0] == c)
		return node_select(ir, c, a, b->src[2]);
	if (a->type == RICCI_BOOL && a->op == OP_CONST && b->op == OP_CONST)
		return a->u.i ? c : node_not(ir, c);
	/* c ? (d ? x : y) : y is c && d ? x : y */
	if (a->op == OP_SELECT && a->src[2] == b)
		return node_select(ir, node2(ir, OP_AND, c, a->src[0]), a->src[1], b);
	return NULL;
}

/* ---- floats
 * ----------------------------------------------------------------------------------------------------
 */

static Node *fold_float_binary(Ir *ir, Op op, Type t, Node *a, Node *b)
{
	if (a->op == OP_CONST && b->op == OP_CONST)
		return node_const(ir, t, scalar_binary(op, a->u.f, b->u.f));
	switch (op) {
	case OP_ADD:
		if (node_is_value(a, 0))
			return b;
		if (node_is_value(b, 0))
			return a;
		if (b->op == OP_NEG)
			return node2(ir, OP_SUB, a, b->src[0]);
		if (a->op == OP_NEG)
			return node2(ir, OP_SUB, b, a->src[0]);
		if (a == b)
			return node2(ir, OP_MUL, node_const(ir, t, 2), a);
		return a->op == OP_CONST ? node2(ir, OP_ADD, b, a) : NULL;
	case OP_SUB:
		if (node_is_value(b, 0))
			return a;
		if (node_is_value(a, 0))
			return node1(ir, OP_NEG, b);
		if (b->op == OP_NEG)
			return node2(ir, OP_ADD, a, b->src[0]);
		return b->op == OP_CONST ? node2(ir, OP_ADD, a, node_const(ir, t, -b->u.f)) : NULL;
	case OP_MUL:
		if (b->op == OP_CONST)
			return node2(ir, OP_MUL, b, a);
		if (node_is_value(a, 1))
			return b;
		if (node_is_value(a, -1))
			return node1(ir, OP_NEG, b);
		if (a->op == OP_NEG && b->op == OP_NEG)
			return node2(ir, OP_MUL, a->src[0], b->src[0]);
		if (a->op == OP_CONST && b->op == OP_NEG)
			return node2(ir, OP_MUL, node_const(ir, t, -a->u.f), b->src[0]);
		if (a->op == OP_NEG || b->op == OP_NEG)
			return node1(ir, OP_NEG,
				     node2(ir, OP_MUL, a->op == OP_NEG ? a->src[0] : a,
					   b->op == OP_NEG ? b->src[0] : b));
		return NULL;
	case OP_DIV:
		if (node_is_value(b, 1))
			return a;
		return node_is_value(b, -1) ? node1(ir, OP_NEG, a) : NULL;
	case OP_POW:
		if (node_is_value(b, 1))
			return a;
		if (node_is_value(b, 0))
			return node_const(ir, t, 1);
		return node_is_value(b, 2) ? node2(ir, OP_MUL, a, a) : NULL;
	default: /* MIN, MAX */
		return a == b ? a : NULL;
	}
}

static Node *fold_float_unary(Ir *ir, Op op, Type t, Node *a)
{
	if (a->op == OP_CONST)
		return node_const(ir, t, scalar_unary(op, a->u.f));
	if (op == OP_NEG && a->op == OP_NEG)
		return a->src[0];
	if (op == OP_NEG && a->op == OP_SUB)
		return node2(ir, OP_SUB, a->src[1], a->src[0]);
	if (op == OP_NEG && a->op == OP_MUL && a->src[0]->op == OP_CONST)
		return node2(ir, OP_MUL, node_const(ir, t, -a->src[0]->u.f), a->src[1]);
	return op == OP_ABS && a->op == OP_ABS ? a : NULL;
}

static Node *fold_cast(Ir *ir, Type t, Node *a)
{
	if (a->type == t)
		return a;
	if (a->op != OP_CONST)
		return NULL;
	if (type_is_float(t))
		return node_const(ir, t, type_is_float(a->type) ? a->u.f : (double)a->u.i);
	int64_t v[1];
	if (type_is_float(a->type))
		type_store(t, v, 0, a->u.f);
	else
		type_store_int(t, v, 0, a->u.i);
	return node_const_int(ir, t, type_load_int(t, v, 0));
}

static Node *fold_int_unary(Ir *ir, Op op, Type t, Node *a)
{
	switch (op) {
	case OP_NEG:
		return node_scale(ir, a, -1);
	case OP_ABS:
		return a->lo >= 0			 ? a
		       : a->hi <= 0 && a->lo > INT64_MIN ? node_scale(ir, a, -1)
							 : NULL;
	case OP_SIGN:
		return a->lo > 0	   ? node_const_int(ir, t, 1)
		       : a->hi < 0	   ? node_const_int(ir, t, -1)
		       : a->op == OP_CONST ? node_const_int(ir, t, 0)
					   : NULL;
	case OP_FLOOR:
	case OP_CEIL:
	case OP_ROUND:
		return a;
	default:
		return NULL;
	}
}

static Node *fold_int_binary(Ir *ir, Op op, Type t, Node *a, Node *b)
{
	switch (op) {
	case OP_ADD:
		return fold_int_add(ir, t, a, b);
	case OP_SUB:
		return fold_int_add(ir, t, a, node_scale(ir, b, -1));
	case OP_MUL:
		return fold_int_mul(ir, t, a, b);
	case OP_FLOORDIV:
		return fold_floordiv(ir, t, a, b->u.i);
	case OP_FLOORMOD:
		return fold_floormod(ir, t, a, b->u.i);
	case OP_MIN:
		return a == b || a->hi <= b->lo ? a : b->hi <= a->lo ? b : NULL;
	case OP_MAX:
		return a == b || a->lo >= b->hi ? a : b->lo >= a->hi ? b : NULL;
	default:
		return NULL;
	}
}

/* The folded node, or NULL when (op, src) stays as it is. */
Node *fold_node(Ir *ir, Op op, Type type, int nsrc, Node *const *src, int64_t i)
{
	(void)i;
	switch (op) {
	case OP_CONST:
	case OP_AXIS:
	case OP_INPUT:
	case OP_COMP:
	case OP_READ:
	case OP_RANDOM:
	case OP_NORMAL:
		return NULL;
	case OP_LT:
	case OP_LE:
	case OP_EQ:
	case OP_NE:
		return fold_compare(ir, op, src[0], src[1]);
	case OP_AND:
	case OP_OR:
	case OP_NOT:
		return fold_logic(ir, op, src);
	case OP_SELECT:
		return fold_select(ir, src[0], src[1], src[2]);
	case OP_CAST:
		return fold_cast(ir, type, src[0]);
	default:
		break;
	}
	if (type_is_float(type))
		return nsrc == 2 ? fold_float_binary(ir, op, type, src[0], src[1])
				 : fold_float_unary(ir, op, type, src[0]);
	return nsrc == 2 ? fold_int_binary(ir, op, type, src[0], src[1])
			 : fold_int_unary(ir, op, type, src[0]);
}

/* ---- bounds
 * ----------------------------------------------------------------------------------------------------
 */

static int64_t clamp128(__int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

/* Bounds in wide arithmetic; a result that may leave the type wraps, so it may be anything, and of
 * its divisor (set before) only the power of two is left. */
static void bounds_set(Node *n, __int128 lo, __int128 hi)
{
	int64_t tlo, thi;
	type_range((Type)n->type, &tlo, &thi);
	bool fits = lo >= tlo && hi <= thi;
	n->lo = fits ? clamp128(lo) : tlo;
	n->hi = fits ? clamp128(hi) : thi;
	if (!fits)
		n->mul &= -n->mul;
}

static void bounds_mul(Node *n, const Node *a, const Node *b)
{
	__int128 p[4] = {(__int128)a->lo * b->lo, (__int128)a->lo * b->hi, (__int128)a->hi * b->lo,
			 (__int128)a->hi * b->hi};
	__int128 lo = p[0], hi = p[0];
	for (int k = 1; k < 4; k++) {
		lo = p[k] < lo ? p[k] : lo;
		hi = p[k] > hi ? p[k] : hi;
	}
	int64_t m;
	n->mul = a->mul == 0 || b->mul == 0		      ? 0
		 : __builtin_mul_overflow(a->mul, b->mul, &m) ? 1
							      : m;
	bounds_set(n, lo, hi);
}

static void bounds_floormod(Node *n, const Node *a, int64_t c)
{
	n->lo = 0;
	n->hi = c - 1;
	if (a->lo >= 0 && a->hi < c) {
		n->lo = a->lo;
		n->hi = a->hi;
	}
	n->mul = gcd(a->mul, c);
}

static void bounds_comp(Node *c)
{
	const Node *body = comp_body(c);
	double points = comp_points(c);
	Reduce red = comp_reduce(c);
	if (red == RED_NONE || ((red == RED_MAX || red == RED_MIN) && comp_is_dense(c))) {
		c->lo = body->lo;
		c->hi = body->hi;
	} else if (red == RED_ADD && points < 0x1p62) {
		bounds_set(c, (__int128)(body->lo < 0 ? body->lo : 0) * (int64_t)points,
			   (__int128)(body->hi > 0 ? body->hi : 0) * (int64_t)points);
	}
}

/* Sets lo, hi, mul of a node just made; floats keep 0, 0, 1. */
void fold_bounds(Node *n)
{
	n->mul = 1;
	if (type_is_float((Type)n->type))
		return;
	type_range((Type)n->type, &n->lo, &n->hi);
	const Node *a = n->nsrc > 0 ? n->src[0] : NULL, *b = n->nsrc > 1 ? n->src[1] : NULL;
	switch (n->op) {
	case OP_CONST:
		n->lo = n->hi = n->u.i;
		n->mul = n->u.i < 0 ? (n->u.i == INT64_MIN ? 1 : -n->u.i) : n->u.i;
		break;
	case OP_AXIS:
		n->lo = 0; /* hi is the maker's */
		break;
	case OP_COMP:
		bounds_comp(n);
		break;
	case OP_READ:
		n->lo = a->lo;
		n->hi = a->hi;
		break;
	case OP_ADD:
		n->mul = gcd(a->mul, b->mul);
		bounds_set(n, (__int128)a->lo + b->lo, (__int128)a->hi + b->hi);
		break;
	case OP_MUL:
		bounds_mul(n, a, b);
		break;
	case OP_FLOORDIV:
		n->lo = floor_div(a->lo, b->u.i);
		n->hi = floor_div(a->hi, b->u.i);
		break;
	case OP_FLOORMOD:
		bounds_floormod(n, a, b->u.i);
		break;
	case OP_MIN:
		n->lo = a->lo < b->lo ? a->lo : b->lo;
		n->hi = a->hi < b->hi ? a->hi : b->hi;
		break;
	case OP_MAX:
		n->lo = a->lo > b->lo ? a->lo : b->lo;
		n->hi = a->hi > b->hi ? a->hi : b->hi;
		break;
	case OP_SELECT:
		n->lo = b->lo < n->src[2]->lo ? b->lo : n->src[2]->lo;
		n->hi = b->hi > n->src[2]->hi ? b->hi : n->src[2]->hi;
		n->mul = gcd(b->mul, n->src[2]->mul);
		break;
	case OP_ABS:
		if (a->lo > INT64_MIN)
			bounds_set(n, 0, a->hi > -a->lo ? a->hi : -a->lo);
		break;
	case OP_SIGN:
		n->lo = a->lo >= 0 ? 0 : -1;
		n->hi = a->hi <= 0 ? 0 : 1;
		break;
	case OP_CAST:
		if (type_is_float((Type)a->type))
			break;
		if (n->type == RICCI_BOOL) {
			n->lo = a->lo > 0 || a->hi < 0;
			n->hi = a->lo != 0 || a->hi != 0;
		} else { /* saturates */
			n->lo = a->lo < n->lo ? n->lo : a->lo > n->hi ? n->hi : a->lo;
			n->hi = a->hi > n->hi ? n->hi : a->hi < n->lo ? n->lo : a->hi;
		}
		break;
	default:
		break;
	}
}
