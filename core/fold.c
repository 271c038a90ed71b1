/* fold.c - what node_make does before it interns: constants, identities, choices, comparisons
 * decided by bounds. Integer arithmetic has its normal form in fold_sum.c.
 *
 * Every rule keeps the type and the value (floats bit for bit, except the sign of a zero sum) and
 * gives a node that is no larger. */
#include "core/fold.h"

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

/* ---- comparisons, logic, selection ---- */

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
	if (!fold_moderate(a) || !fold_moderate(b))
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

/* a && b where a decides a part of b, and the same of ||: c && d && c is c && d, and c && d && !c
 * is false. */
static Node *fold_chain(Ir *ir, Op op, Node *a, Node *b)
{
	int whole = chain_has(op, a, b);
	if (whole)
		return whole > 0 ? a : node_bool(ir, op == OP_OR);
	for (int k = 0; k < 2 && b->op == op; k++) {
		int part = chain_has(op, a, b->src[k]);
		if (part)
			return part > 0 ? node2(ir, op, a, b->src[1 - k])
					: node_bool(ir, op == OP_OR);
	}
	return NULL;
}

/* a < b or a <= b of floats: what is not so is a comparison of its own, where a NaN may be. */
static bool is_float_order(const Node *c)
{
	return (c->op == OP_LT || c->op == OP_LE) && type_is_float((Type)c->src[0]->type);
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
	return fold_chain(ir, op, a, b);
}

static Node *fold_select(Ir *ir, Node *c, Node *a, Node *b)
{
	if (c->op == OP_CONST)
		return c->u.i ? a : b;
	if (a == b)
		return a;
	if (c->op == OP_NOT && !is_float_order(c->src[0]))
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

/* ---- floats ---- */

/* What constants give. 16-bit arithmetic is done in f32, and constants of 16 bits can't hold all
 * that comes out: then it stays for the run, so that it is the same where an index is fixed (the
 * first row of a nest, say) and where it is not. */
static Node *fold_constants(Ir *ir, Type t, double v)
{
	Node *c = node_const(ir, t, v);
	return type_size(t) < 4 && v == v && c->u.f != v ? NULL : c;
}

static Node *fold_float_binary(Ir *ir, Op op, Type t, Node *a, Node *b)
{
	if (a->op == OP_CONST && b->op == OP_CONST)
		return fold_constants(ir, t, scalar_binary(op, a->u.f, b->u.f));
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
	if (op == OP_STOP)
		return a->op == OP_CONST || a->op == OP_STOP ? a : NULL;
	if (a->op == OP_CONST)
		return fold_constants(ir, t, scalar_unary(op, a->u.f));
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
	case OP_STOP:
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
Node *fold_node(Ir *ir, Op op, Type type, int nsrc, Node *const *src)
{
	switch (op) {
	case OP_CONST:
	case OP_AXIS:
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
