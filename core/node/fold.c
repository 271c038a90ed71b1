/* fold.c - what node_make does before it interns: constants, identities, choices, comparisons
 * decided by bounds. Input: an operator and its sources. Output: the simpler node, by the first rule
 * of fold.def that applies. Integer arithmetic has its normal form in fold_sum.c. */
#include "core/node/internal.h"

#include <math.h>
#include <string.h>

/* ---- constants ---- */

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
	case OP_TF32:
		return type_tf32(a);
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

/* ---- what the rules ask ---- */

typedef struct Fold {
	Ir *ir;
	Op op;
	Type type;
	Node *a, *b, *c; /* its sources; NULL past the last */
	Node *d;	 /* comparisons of integers: b - a, which may have wrapped */
	__int128 lo, hi; /* and its bounds, unwrapped */
} Fold;

static bool holds(Op op, double x, double y)
{
	return op == OP_LT ? x < y : op == OP_LE ? x <= y : op == OP_EQ ? x == y : x != y;
}

static void compare_prepare(Fold *f)
{
	Node *a = f->a, *b = f->b;
	f->lo = (__int128)b->lo - a->hi;
	f->hi = (__int128)b->hi - a->lo;
	if (a->type == RICCI_BOOL || a == b)
		return;
	f->d = node_sub(f->ir, b, a);
	if (a->type == RICCI_I64 && f->lo >= INT64_MIN && f->hi <= INT64_MAX) {
		f->lo = f->d->lo > f->lo ? f->d->lo : f->lo;
		f->hi = f->d->hi < f->hi ? f->d->hi : f->hi;
	}
}

/* Is d never 0, even where it wraps? Of a divisor only the power of two is left then. */
static bool never_zero(const Node *d)
{
	if (d->lo > 0 || d->hi < 0)
		return true;
	if (d->op != OP_ADD || d->src[1]->op != OP_CONST || d->src[0]->mul <= 1)
		return false;
	int64_t m = d->src[0]->mul;
	return d->src[1]->u.i % (d->type == RICCI_I64 ? m : m & -m) != 0;
}

/* The largest number that divides all coefficients of a place; 1 where it may wrap, or has none. */
static int64_t divisor(Ir *ir, Node *x)
{
	AffineRoom room;
	Affine *s = affine_start(&room);
	Node *rest = x->op == OP_ADD && x->src[1]->op == OP_CONST ? x->src[0] : x;
	int64_t g = 0;
	if (x->type != RICCI_I64 || x->op == OP_CONST || rest->mul <= 1 || node_may_wrap(x) ||
	    !affine_add(ir, s, rest, 1, false))
		return 1;
	for (int k = 0; k < s->n; k++)
		g = int_gcd(g, s->k[k]);
	return g > 1 ? g : 1;
}

/* A comparison of l with k*x + r, 0 <= r < k, as one of x with (l - r) / k, rounded. */
static Node *divided(const Fold *f, Node *x, Node *l, int64_t k)
{
	bool left = x == f->a;
	bool constant = x->op == OP_ADD && x->src[1]->op == OP_CONST;
	int64_t r = constant ? int_floor_mod(x->src[1]->u.i, k) : 0, d;
	if (__builtin_sub_overflow(l->u.i, r, &d))
		return NULL;
	bool between = int_floor_mod(d, k) != 0;
	if (between && (f->op == OP_EQ || f->op == OP_NE))
		return node_const_int(f->ir, RICCI_BOOL, f->op == OP_NE);
	bool up = between && (f->op == OP_LT) == left;
	Node *to = node_int(f->ir, int_floor_div(d, k) + up), *q = node_floordiv(f->ir, x, k);
	return left ? node2(f->ir, f->op, q, to) : node2(f->ir, f->op, to, q);
}

bool node_opposite(const Node *a, const Node *b)
{
	bool order = (a->op == OP_LT && b->op == OP_LE) || (a->op == OP_LE && b->op == OP_LT);
	bool equal = (a->op == OP_EQ && b->op == OP_NE) || (a->op == OP_NE && b->op == OP_EQ);
	if (a->op == OP_NOT || b->op == OP_NOT)
		return a->op == OP_NOT ? a->src[0] == b : b->src[0] == a;
	if (order) /* not of floats: a NaN is neither */
		return !type_is_float((Type)a->src[0]->type) && a->src[0] == b->src[1] &&
		       a->src[1] == b->src[0];
	return equal && a->src[0] == b->src[0] && a->src[1] == b->src[1];
}

/* Is x among the parts of the chain c of `op` (1), is its opposite (-1), or neither (0)? Parts
 * past a number are not looked at. */
static int chain_has(Op op, const Node *c, const Node *x)
{
	enum { PARTS = 64 };
	for (int k = 0; k < PARTS; k++, c = c->src[0]) {
		const Node *part = c->op == op ? c->src[1] : c;
		if (part == x || node_opposite(part, x))
			return part == x ? 1 : -1;
		if (c->op != op)
			break;
	}
	return 0;
}

/* a < b or a <= b of floats: what is not so is a comparison of its own, where a NaN may be. */
static bool is_float_order(const Node *c)
{
	return (c->op == OP_LT || c->op == OP_LE) && type_is_float((Type)c->src[0]->type);
}

/* What constants give. 16-bit arithmetic is done in f32, and constants of 16 bits can't hold all
 * that comes out: then it stays for the run, so that it is the same where an index is fixed (the
 * first row of a nest, say) and where it is not. */
static Node *constant(Ir *ir, Type t, double v)
{
	Node *c = node_const(ir, t, v);
	return type_size(t) < 4 && v == v && c->u.f != v ? NULL : c;
}

static Node *cast_constant(Ir *ir, Type t, const Node *a)
{
	if (type_is_float(t))
		return node_const(ir, t, type_is_float(a->type) ? a->u.f : (double)a->u.i);
	int64_t v[1];
	if (type_is_float(a->type))
		type_store(t, v, 0, a->u.f);
	else
		type_store_int(t, v, 0, a->u.i);
	return node_const_int(ir, t, type_load_int(t, v, 0));
}

/* ---- the rules ---- */

#define CONST(x)    ((x)->op == OP_CONST)
#define IS(x, name) ((x)->op == OP_##name)
#define ZERO(x)	    node_is_value(x, 0)
#define ONE(x)	    node_is_value(x, 1)
#define EQUALITY    (op == OP_EQ || op == OP_NE)
#define DECIDES(k)  (((k)->u.i != 0) == (op == OP_OR))
#define BOOLS(x, y) ((x)->type == RICCI_BOOL && CONST(x) && CONST(y))
#define A0	    a->src[0]
#define A1	    a->src[1]
#define B0	    b->src[0]
#define B1	    b->src[1]
#define C0	    c->src[0]

#define TRUTH(v)	 node_const_int(ir, RICCI_BOOL, v)
#define INT(v)		 node_const_int(ir, t, v)
#define FLOAT(v)	 node_const(ir, t, v)
#define CONSTANTS	 constant(ir, t, scalar_binary(op, a->u.f, b->u.f))
#define MAKE(name, x, y) node2(ir, OP_##name, x, y)

#define GROUP(name)                                                                                \
	static Node *fold_##name(const Fold *f)                                                    \
	{                                                                                          \
		Ir *const ir = f->ir;                                                              \
		const Op op = f->op;                                                               \
		const Type t = f->type;                                                            \
		Node *const a = f->a, *const b = f->b, *const c = f->c;                            \
		(void)ir, (void)op, (void)t, (void)b, (void)c;
#ifndef RULE /* tests try them one by one */
#define RULE(text, when, then)                                                                     \
	if (when)                                                                                  \
		return then;
#endif
#define END                                                                                        \
	return NULL;                                                                               \
	}
#include "core/node/fold.def"

static Node *fold_float(const Fold *f)
{
	switch (f->op) {
	case OP_ADD:
		return fold_float_add(f);
	case OP_SUB:
		return fold_float_sub(f);
	case OP_MUL:
		return fold_float_mul(f);
	case OP_DIV:
		return fold_float_div(f);
	case OP_POW:
		return fold_float_pow(f);
	case OP_MIN:
	case OP_MAX:
		return fold_float_extreme(f);
	default:
		return fold_float_unary(f);
	}
}

/* The folded node, or NULL when (op, src) stays as it is. */
Node *fold_node(Ir *ir, Op op, Type type, int nsrc, Node *const *src)
{
	Fold f = {.ir = ir, .op = op, .type = type};
	f.a = nsrc > 0 ? src[0] : NULL;
	f.b = nsrc > 1 ? src[1] : NULL;
	f.c = nsrc > 2 ? src[2] : NULL;
	switch (op) {
	case OP_CONST:
	case OP_AXIS:
	case OP_TRAINING:
	case OP_INPUT:
	case OP_COMP:
	case OP_SCAN:
	case OP_READ:
	case OP_RANDOM:
	case OP_NORMAL:
		return NULL;
	case OP_LT:
	case OP_LE:
	case OP_EQ:
	case OP_NE:
		if (type_is_float(f.a->type))
			return fold_compare_float(&f);
		compare_prepare(&f);
		return fold_compare_int(&f);
	case OP_AND:
	case OP_OR:
		return fold_logic(&f);
	case OP_NOT:
		return fold_not(&f);
	case OP_SELECT:
		return fold_select(&f);
	case OP_CAST:
		return fold_cast(&f);
	default:
		return type_is_float(type) ? fold_float(&f)
		       : nsrc == 2	   ? fold_int_binary(&f)
					   : fold_int_unary(&f);
	}
}
