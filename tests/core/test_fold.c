/* Each rule of core/node/fold.def by itself: random nodes over values that include the ends of types
 * are given to one rule at a time; what it makes of them has their type and, at every point, their
 * value, judged by an evaluation of the nodes as ops.def defines them. A new rule is tried without
 * a word here; one that is never met fails. fold.c is compiled into this file, its rules counted. */
#define fold_node fold_once
#define RULE(text, when, then)                                                                     \
	if ((level > 1 || only == __LINE__ || !only) && (when))                                    \
		return then;
static int level, only;
#include "core/node/fold.c"
#undef RULE
#undef GROUP
#undef END
#undef CONST
#undef INT
#undef FLOAT
#undef TRUTH
#undef fold_node

#include "tests/check.h"
#include "tests/core/integer_value.h"

static const struct Rule {
	int line;
	const char *text;
} rules[] = {
#define GROUP(name)
#define RULE(text, when, then) {__LINE__, text},
#define END
#include "core/node/fold.def"
};

/* node_make's. Within what a rule makes all rules hold. */
Node *fold_node(Ir *ir, Op op, Type type, int nsrc, Node *const *src);
Node *fold_node(Ir *ir, Op op, Type type, int nsrc, Node *const *src)
{
	level++;
	Node *out = fold_once(ir, op, type, nsrc, src);
	level--;
	return out;
}

enum { ROWS = 8, POOL = 24, ROUNDS = 4000, DRAWS = 150, LEAST = 10, MOST = 300 };

static Ir *ir;
static Node *axis[2], *table[RICCI_NTYPES], *pool[RICCI_NTYPES][POOL];
static int npool[RICCI_NTYPES], met[COUNT(rules)];
static int64_t at[2], ints[RICCI_NTYPES][ROWS];
static double floats[ROWS];

/* ---- values ---- */

typedef union Value {
	double f;
	int64_t i;
} Value;

static Value evaluate(const Node *n);

static Value float_value(const Node *n, double a, double b)
{
	Value v;
	switch (n->op) {
	case OP_LT:
		v.i = a < b;
		return v;
	case OP_LE:
		v.i = a <= b;
		return v;
	case OP_EQ:
		v.i = a == b;
		return v;
	case OP_NE:
		v.i = a != b;
		return v;
	case OP_STOP:
		v.f = a;
		return v;
	default:
		v.f = n->nsrc == 2 ? scalar_binary((Op)n->op, a, b) : scalar_unary((Op)n->op, a);
		return v;
	}
}

static Value cast_value(const Node *n, Value a)
{
	Type from = (Type)n->src[0]->type, t = (Type)n->type;
	Value v = {0};
	double f = type_is_float(from) ? a.f : (double)a.i;
	if (type_is_float(t)) {
		v.f = f;
	} else if (t == RICCI_BOOL) {
		v.i = type_is_float(from) ? a.f != 0 : a.i != 0;
	} else {
		int64_t lo, hi;
		type_range(t, &lo, &hi);
		if (type_is_float(from))
			v.i = f != f ? 0 : f >= (double)hi ? hi : f <= (double)lo ? lo : (int64_t)f;
		else
			v.i = a.i < lo ? lo : a.i > hi ? hi : a.i;
	}
	return v;
}

static Value evaluate(const Node *n)
{
	Value v = {0}, a, b = {0};
	switch (n->op) {
	case OP_CONST:
		if (type_is_float((Type)n->type))
			v.f = n->u.f;
		else
			v.i = n->u.i;
		return v;
	case OP_AXIS:
		v.i = at[n->u.i];
		return v;
	case OP_READ:
		if (type_is_float((Type)n->type))
			v.f = floats[at[n->src[1]->u.i]];
		else
			v.i = ints[n->type][at[n->src[1]->u.i]];
		return v;
	case OP_SELECT:
		return evaluate(n->src[evaluate(n->src[0]).i ? 1 : 2]);
	default:
		break;
	}
	a = evaluate(n->src[0]);
	if (n->nsrc > 1)
		b = evaluate(n->src[1]);
	if (n->op == OP_CAST)
		return cast_value(n, a);
	if (type_is_float((Type)n->src[0]->type))
		return float_value(n, a.f, b.f);
	v.i = integer_value(n->op, (Type)n->type, a.i, b.i);
	return v;
}

/* ---- random nodes ---- */

static Node *number(Type t)
{
	static const double some[] = {0, 1, -1, 2, 0.5, -3, 1e300, INFINITY};
	if (type_is_float(t))
		return node_const(ir, t, some[draw(COUNT(some))]);
	if (t == RICCI_BOOL)
		return node_const_int(ir, t, draw(2));
	return node_const_int(ir, t, draw(2) ? number_near_end(t) : draw(7) - 3);
}

static void keep(Node *n)
{
	int t = n->type;
	if (n->depth < 7)
		pool[t][npool[t] < POOL ? npool[t]++ : 2 + draw(POOL - 2)] = n;
}

/* A node of the type that is there, or one within it. */
static Node *some_node(Type t)
{
	if (draw(5) == 0)
		return number(t);
	Node *n = pool[t][draw(npool[t])];
	for (int k = 0; k < 2 && draw(3) == 0; k++)
		if (n->nsrc && n->op != OP_READ && n->src[n->nsrc - 1]->type == t)
			n = n->src[draw(2) ? n->nsrc - 1 : n->src[0]->type == t ? 0 : n->nsrc - 1];
	return n;
}

static const Type types[] = {RICCI_I64, RICCI_I32, RICCI_I8, RICCI_U8, RICCI_F64, RICCI_BOOL};

static bool is_unary(Op op)
{
	return op_info[op].nsrc == 1;
}

/* An operator on sources that suit it. */
static int draw_node(Op *op, Type *type, Node **src)
{
	Type t = types[draw(COUNT(types))];
	bool real = type_is_float(t);
	do
		*op = (Op)draw(OP_COUNT);
	while (op_info[*op].nsrc < 1 || *op == OP_RANDOM || *op == OP_NORMAL ||
	       (*op >= OP_EXP && *op <= OP_ERF && draw(8)));
	bool logic = *op == OP_AND || *op == OP_OR || *op == OP_NOT;
	bool whole = *op == OP_FLOORDIV || *op == OP_FLOORMOD;
	bool any = *op == OP_ADD || *op == OP_SUB || *op == OP_MUL || *op == OP_NEG ||
		   *op == OP_MIN || *op == OP_MAX || *op == OP_ABS || *op == OP_SIGN ||
		   *op == OP_FLOOR || *op == OP_CEIL || *op == OP_ROUND || *op == OP_STOP;
	if (*op == OP_SELECT || *op == OP_CAST) {
		*type = t;
	} else if (logic) {
		*type = t = RICCI_BOOL;
	} else if (op_compares(*op)) {
		*type = RICCI_BOOL;
	} else {
		if (t == RICCI_BOOL || (whole && real) || (!whole && !any && !real))
			t = whole ? RICCI_I64 : RICCI_F64;
		*type = t;
	}
	if (*op == OP_SELECT) {
		src[0] = some_node(RICCI_BOOL);
		src[1] = some_node(t);
		src[2] = draw(4) ? some_node(t) : src[1]->op == OP_SELECT ? src[1]->src[2] : src[1];
		Node *inner = src[1 + draw(2)]; /* the same condition again */
		if (inner->op == OP_SELECT && draw(3) == 0)
			src[0] = inner->src[0];
		return 3;
	}
	src[0] = some_node(*op == OP_CAST ? types[draw(COUNT(types))] : t);
	if (is_unary(*op))
		return 1;
	src[1] = draw(8) ? some_node(t) : src[0];
	if (op_compares(*op) && t == RICCI_I64 &&
	    draw(8) == 0) { /* places in steps, with one of them */
		int side = draw(2);
		src[side] = node_add(ir, node_scale(ir, axis[draw(2)], 2 + draw(5)),
				     node_int(ir, draw(21) - 10));
		src[!side] = node_int(ir, draw(41) - 10);
	}
	if (logic && src[1]->op == *op && draw(3) == 0)
		src[0] = node_not(ir, src[1]->src[draw(2)]);
	if (whole) {
		int64_t v = draw(2) ? number_near_end(t) : 1 + draw(9);
		src[1] = node_const_int(ir, t, v > 0 ? v : v < -1 ? -(v + 1) : 1);
	}
	if (whole && src[1]->u.i < 1)
		src[1] = node_const_int(ir, t, 1);
	return 2;
}

static bool same_value(Type t, Value a, Value b)
{
	return type_is_float(t) ? a.f == b.f || (isnan(a.f) && isnan(b.f)) ||
					  fabs(a.f - b.f) <= 1e-15 * fabs(a.f)
				: a.i == b.i;
}

/* What rule made of the node, against the node itself. */
static void check_rule(const struct Rule *rule, const Node *n, const Node *out)
{
	CHECK_REPORT(out->type == n->type, "%s: another type", rule->text);
	for (int p = 0; p < ROWS * ROWS; p++) {
		at[0] = p / ROWS, at[1] = p % ROWS;
		Value v = evaluate(n), w = evaluate(out);
		CHECK_REPORT(same_value((Type)n->type, v, w),
			     "%s (%s of %s): %lld = %g became %lld = %g", rule->text,
			     op_info[n->op].name, type_name((Type)n->src[0]->type), (long long)v.i,
			     v.f, (long long)w.i, w.f);
		if (type_is_float((Type)n->type))
			continue;
		CHECK_REPORT(w.i >= out->lo && w.i <= out->hi, "%s: %lld is not in %lld..%lld",
			     rule->text, (long long)w.i, (long long)out->lo, (long long)out->hi);
		if (n->type != RICCI_BOOL)
			CHECK_REPORT(out->mul ? w.i % out->mul == 0 : w.i == 0,
				     "%s: %lld is no multiple of %lld", rule->text, (long long)w.i,
				     (long long)out->mul);
	}
}

static void try_rules(Op op, Type type, int nsrc, Node *const *src)
{
	Node *raw = node_raw(ir, op, type, nsrc, src, 0, NULL);
	for (int k = 0; k < COUNT(rules); k++) {
		only = rules[k].line;
		Node *out = fold_node(ir, op, type, nsrc, src);
		only = 0;
		if (out && met[k]++ < MOST)
			check_rule(&rules[k], raw, out);
	}
}

static void start_pool(void)
{
	for (int k = 0; k < 2; k++)
		axis[k] = node_axis(ir, k, ROWS);
	for (int k = 0; k < COUNT(types); k++) {
		Type t = types[k];
		table[t] = node_input(ir, type_name(t), t, 1, (int64_t[]){ROWS});
		for (int row = 0; row < ROWS; row++)
			ints[t][row] = t == RICCI_BOOL ? draw(2)
				       : draw(2)       ? number_near_end(t)
						       : type_wrap(t, draw(11) - 5);
		npool[t] = 0;
		keep(node_read(ir, table[t], &axis[0]));
		keep(node_read(ir, table[t], &axis[1]));
		keep(number(t));
	}
	for (int row = 0; row < ROWS; row++)
		floats[row] = draw(3) ? (draw(21) - 10) * 0.25
				      : (double[]){0, -0.0, NAN, INFINITY, -1e300}[draw(5)];
	keep(axis[0]);
	keep(axis[1]);
}

static int round_of_draws(Ir *here)
{
	IR_ENTER(here, -1);
	ir = here;
	start_pool();
	for (int k = 0; k < DRAWS; k++) {
		Op op;
		Type type;
		Node *src[3];
		int nsrc = draw_node(&op, &type, src);
		try_rules(op, type, nsrc, src);
		keep(node_make(ir, op, type, nsrc, src, 0));
	}
	IR_LEAVE(here);
	return 0;
}

int main(void)
{
	for (int k = 0; k < ROUNDS && check_failed < 20; k++) {
		Ir here;
		ir_init(&here);
		CHECK_INT(round_of_draws(&here), 0);
		ir_free(&here);
	}
	for (int k = 0; k < COUNT(rules); k++)
		CHECK_REPORT(met[k] >= LEAST, "%s: met %d times only", rules[k].text, met[k]);
	return check_done();
}
