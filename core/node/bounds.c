/* bounds.c - the bounds lo, hi and the known divisor mul of a node, from those of its sources.
 * Invariant: every value the node can take lies in lo..hi and is a multiple of mul; a result that
 * may leave its type wraps, so that its bounds are the type's. */
#include "core/node/internal.h"

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
	n->mul = int_gcd(a->mul, c);
}

/* ---- sums with quotients
 *
 * The normal form takes what it can out of a quotient: (2*i - 2*j + 3)/5 is (2*i + 3*j + 3)/5 - j,
 * and term by term that has wider bounds than what was written. With x/c = (x - r)/c, 0 <= r < c,
 * the sum S = R + m*(x/c) is (c*R + m*x - m*r)/c, where what R and x share is met once: the bounds
 * of the quotient that was written, exactly. */

enum { SUM_DEPTH = 3 };
#define SUM_MOST ((int64_t)1 << 40) /* coefficients: 16 terms stay far inside 128 bits */

/* c times t with term q, a quotient by c, opened; false where that shares no atom with the rest, or
 * there are too many terms or too large numbers. */
static bool sum_open(const Affine *t, int q, Affine *to)
{
	int64_t c = t->atom[q]->src[1]->u.i, v;
	bool shares = false;
	if (!affine_add(NULL, to, t->atom[q]->src[0], t->k[q], false))
		return false;
	for (int k = 0; k < t->n && !shares; k++)
		shares = k != q && affine_coefficient(to, t->atom[k]);
	if (!shares || __builtin_mul_overflow(t->c, c, &v) ||
	    __builtin_add_overflow(to->c, v, &to->c))
		return false;
	for (int k = 0; k < t->n; k++)
		if (k != q && (__builtin_mul_overflow(t->k[k], c, &v) ||
			       !affine_add(NULL, to, t->atom[k], v, false)))
			return false;
	for (int k = 0; k < to->n; k++)
		if (to->k[k] >= SUM_MOST || to->k[k] <= -SUM_MOST)
			return false;
	return true;
}

static bool is_quotient(const Node *e)
{
	return e->op == OP_FLOORDIV && e->src[1]->op == OP_CONST;
}

/* Of t the term q, a quotient, and those that share an atom with what it divides, by their common divisor g; 1: there is
 * none. The others, and the constant, are left in *rest. */
static int64_t sum_part(const Affine *t, int q, Affine *part, Affine *rest)
{
	AffineRoom room;
	Affine *divided = affine_start(&room);
	int64_t g = t->k[q];
	bool shares = false;
	if (g == 1 || g == -1 || !affine_add(NULL, divided, t->atom[q]->src[0], 1, false))
		return 1;
	for (int k = 0; k < t->n; k++)
		if (affine_coefficient(divided, t->atom[k])) {
			g = int_gcd(g, t->k[k]);
			shares = true;
		}
	if (!shares)
		return 1;
	for (int k = 0; k < t->n && g > 1; k++) {
		bool in = k == q || affine_coefficient(divided, t->atom[k]);
		if (!affine_add(NULL, in ? part : rest, t->atom[k], in ? t->k[k] / g : t->k[k],
				false))
			return 1;
	}
	rest->c = t->c;
	return g;
}

static void sum_bounds(const Affine *t, int depth, __int128 *lo, __int128 *hi);

/* The bounds by such a part: a sum of multiples of g is one, which its bounds in numbers that were divided need not be. */
static void part_bounds(const Affine *t, int q, int depth, __int128 *lo, __int128 *hi)
{
	AffineRoom rooms[2];
	Affine *part = affine_start(&rooms[0]), *rest = affine_start(&rooms[1]);
	__int128 l, h, around[2];
	int64_t g = sum_part(t, q, part, rest);
	if (g <= 1)
		return;
	sum_bounds(part, depth, &l, &h);
	sum_bounds(rest, 0, &around[0], &around[1]);
	*lo = g * l + around[0] > *lo ? g * l + around[0] : *lo;
	*hi = g * h + around[1] < *hi ? g * h + around[1] : *hi;
}

static void sum_bounds(const Affine *t, int depth, __int128 *lo, __int128 *hi)
{
	*lo = *hi = t->c;
	for (int k = 0; k < t->n; k++) {
		const Node *x = t->atom[k];
		*lo += (__int128)t->k[k] * (t->k[k] > 0 ? x->lo : x->hi);
		*hi += (__int128)t->k[k] * (t->k[k] > 0 ? x->hi : x->lo);
	}
	for (int q = 0; q < t->n && depth; q++) {
		AffineRoom room;
		Affine *open = affine_start(&room);
		__int128 l, h, c, m = t->k[q];
		if (!m || !is_quotient(t->atom[q]))
			continue;
		part_bounds(t, q, depth, lo, hi);
		if (!sum_open(t, q, open))
			continue;
		c = t->atom[q]->src[1]->u.i;
		sum_bounds(open, depth - 1, &l, &h);
		l -= m > 0 ? m * (c - 1) : 0;
		h -= m < 0 ? m * (c - 1) : 0;
		l = l / c + (l % c > 0);
		h = h / c - (h % c < 0);
		*lo = l > *lo ? l : *lo;
		*hi = h < *hi ? h : *hi;
	}
}

static void bounds_add(Node *n)
{
	const Node *a = n->src[0], *b = n->src[1];
	AffineRoom room;
	Affine *t = affine_start(&room);
	n->mul = int_gcd(a->mul, b->mul);
	bounds_set(n, (__int128)a->lo + b->lo, (__int128)a->hi + b->hi);
	if (n->type != RICCI_I64 || node_may_wrap(n) || !affine_add(NULL, t, n, 1, false))
		return;
	bool quotient = false;
	for (int k = 0; k < t->n; k++)
		quotient |= is_quotient(t->atom[k]);
	if (!quotient)
		return;
	__int128 lo, hi;
	sum_bounds(t, SUM_DEPTH, &lo, &hi);
	n->lo = lo > n->lo ? (int64_t)lo : n->lo;
	n->hi = hi < n->hi ? (int64_t)hi : n->hi;
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
	case OP_TRAINING:
		bounds_set(n, 0, 1);
		break;
	case OP_COMP:
		bounds_comp(n);
		break;
	case OP_READ:
		n->lo = a->lo;
		n->hi = a->hi;
		break;
	case OP_ADD:
		bounds_add(n);
		break;
	case OP_MUL:
		bounds_mul(n, a, b);
		break;
	case OP_FLOORDIV:
		n->lo = int_floor_div(a->lo, b->u.i);
		n->hi = int_floor_div(a->hi, b->u.i);
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
		n->mul = int_gcd(b->mul, n->src[2]->mul);
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
