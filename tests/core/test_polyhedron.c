/* Polyhedra against counting: thousands of random small systems with quotients, remainders, minima
 * and selections. What is claimed (empty, implied, bounds, simplified expressions)
 * must hold at every point; and what holds is found often enough. Then the cases that index checks
 * need. */
#include "tests/check.h"
#include "core/core.h"

static uint64_t state = 1;

static int draw(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (uint64_t)n);
}

enum { AXES = 3 };
static Node *axis[AXES];
static int64_t value[AXES];

static int64_t floor_divide(int64_t a, int64_t c)
{
	return a / c - (a % c < 0);
}

/* The definition of nodes, at the point in value[]. */
static int64_t evaluate(const Node *n)
{
	switch (n->op) {
	case OP_CONST:
		return n->u.i;
	case OP_AXIS:
		return value[n->u.i];
	case OP_ADD:
		return evaluate(n->src[0]) + evaluate(n->src[1]);
	case OP_MUL:
		return evaluate(n->src[0]) * evaluate(n->src[1]);
	case OP_FLOORDIV:
		return floor_divide(evaluate(n->src[0]), n->src[1]->u.i);
	case OP_FLOORMOD: {
		int64_t a = evaluate(n->src[0]), c = n->src[1]->u.i;
		return a - c * floor_divide(a, c);
	}
	case OP_MIN:
	case OP_MAX: {
		int64_t a = evaluate(n->src[0]), b = evaluate(n->src[1]);
		return (a < b) == (n->op == OP_MIN) ? a : b;
	}
	case OP_ABS: {
		int64_t a = evaluate(n->src[0]);
		return a < 0 ? -a : a;
	}
	case OP_LT:
		return evaluate(n->src[0]) < evaluate(n->src[1]);
	case OP_LE:
		return evaluate(n->src[0]) <= evaluate(n->src[1]);
	case OP_EQ:
		return evaluate(n->src[0]) == evaluate(n->src[1]);
	case OP_NE:
		return evaluate(n->src[0]) != evaluate(n->src[1]);
	case OP_AND:
		return evaluate(n->src[0]) && evaluate(n->src[1]);
	case OP_OR:
		return evaluate(n->src[0]) || evaluate(n->src[1]);
	case OP_NOT:
		return !evaluate(n->src[0]);
	case OP_SELECT:
		return evaluate(n->src[evaluate(n->src[0]) ? 1 : 2]);
	default:
		CHECK_REPORT(false, "unexpected %s", op_info[n->op].name);
		return 0;
	}
}

static Node *random_condition(Ir *ir, int depth);

static Node *random_index(Ir *ir, int depth)
{
	if (depth == 0)
		return draw(4) ? axis[draw(AXES)] : node_int(ir, draw(15) - 7);
	Node *a = random_index(ir, depth - 1), *b;
	switch (draw(11)) {
	case 0:
	case 1:
	case 2:
	case 3:
		b = random_index(ir, depth - 1);
		return node_add(ir, node_scale(ir, a, draw(7) - 3), node_scale(ir, b, draw(5) - 2));
	case 4:
	case 5:
		return node_floordiv(ir, a, 1 + draw(5));
	case 6:
	case 7:
		return node_floormod(ir, a, 1 + draw(5));
	case 8:
		return node2(ir, draw(2) ? OP_MIN : OP_MAX, a, random_index(ir, depth - 1));
	case 9:
		return draw(3) ? node_add(ir, a, node_int(ir, draw(9) - 4)) : node1(ir, OP_ABS, a);
	default:
		b = random_index(ir, depth - 1);
		return draw(3) ? b : node_select(ir, random_condition(ir, 1), a, b);
	}
}

static Node *random_condition(Ir *ir, int depth)
{
	static const Op compares[] = {OP_LE, OP_LT, OP_EQ, OP_NE, OP_LE};
	if (depth > 1 && draw(3) == 0) {
		Node *a = random_condition(ir, depth - 1);
		int what = draw(3);
		if (what == 2)
			return node_not(ir, a);
		return node2(ir, what ? OP_AND : OP_OR, a, random_condition(ir, depth - 1));
	}
	Node *a = random_index(ir, draw(3)), *b = random_index(ir, draw(2));
	return node2(ir, compares[draw(COUNT(compares))], a, b);
}

static bool next_point(void)
{
	for (int k = 0; k < AXES; k++) {
		if (++value[k] < axis_extent(axis[k]))
			return true;
		value[k] = 0;
	}
	return false;
}

/* How often something was true, and how often of these it was found. */
static int could[4], found[4];

static void count(int what, bool truth, bool claim)
{
	CHECK_REPORT(truth || !claim, "claim %d is wrong", what);
	could[what] += truth;
	found[what] += truth && claim;
}

static void check_simplified(Polyhedron *p, int n, Node *const *given, Node *e)
{
	Node *simple = poly_simplify(p, e);
	for (int k = 0; k < AXES; k++)
		value[k] = 0;
	do {
		bool inside = true;
		for (int k = 0; k < n; k++)
			inside &= evaluate(given[k]) != 0;
		if (inside)
			CHECK_INT(evaluate(simple), evaluate(e));
	} while (next_point());
}

static int random_system(Ir *ir)
{
	IR_ENTER(ir, -1);
	for (int k = 0; k < AXES; k++) {
		axis[k] = node_axis(ir, k, 1 + draw(k == 0 ? 12 : 6));
		value[k] = 0;
	}
	Node *given[4], *asked = random_condition(ir, 3), *e = random_index(ir, 2);
	int n = draw(4), points = 0;
	for (int k = 0; k < n; k++)
		given[k] = random_condition(ir, 2);
	bool always = true, never = true;
	int64_t lo = INT64_MAX, hi = INT64_MIN;
	do {
		bool inside = true;
		for (int k = 0; k < n; k++)
			inside &= evaluate(given[k]) != 0;
		int64_t v = evaluate(e);
		CHECK_REPORT(v >= e->lo && v <= e->hi, "bounds of a node are wrong");
		if (!inside)
			continue;
		points++;
		(evaluate(asked) ? &never : &always)[0] = false;
		lo = v < lo ? v : lo;
		hi = v > hi ? v : hi;
	} while (next_point());
	Polyhedron *p = poly_new(ir);
	for (int k = 0; k < n; k++)
		poly_assume(p, given[k]);
	Polyhedron *copy = poly_copy(p);
	count(0, points == 0, poly_is_empty(copy));
	count(1, always, poly_implies(p, asked));
	Polyhedron *q = poly_copy(p);
	poly_assume(q, asked);
	count(2, never, poly_is_empty(q));
	int64_t l, h;
	poly_bounds(p, e, &l, &h);
	CHECK(points == 0 || (l <= lo && h >= hi));
	bool tighter = points && (lo > e->lo || hi < e->hi);
	count(3, tighter, tighter && l == lo && h == hi);
	if (n < 3) {
		check_simplified(p, n, given, asked);
		check_simplified(p, n, given, e);
	}
	IR_LEAVE(ir);
	return 0;
}

static int test_indices(Ir *ir)
{
	IR_ENTER(ir, -1);
	Node *p = node_axis(ir, 0, 14), *r = node_axis(ir, 1, 5), *k = node_axis(ir, 2, 28);
	Node *zero = node_int(ir, 0), *e;
	Polyhedron *all = poly_new(ir);
	/* 2p + r - 2 leaves 0..27, but not under its condition. */
	e = node_add(ir, node_scale(ir, p, 2), node_add(ir, r, node_int(ir, -2)));
	Node *low = node2(ir, OP_LE, zero, e), *high = node2(ir, OP_LT, e, node_int(ir, 28));
	Node *inside = node2(ir, OP_AND, low, high);
	CHECK(!poly_implies(all, low));
	CHECK(!poly_implies(all, high));
	Polyhedron *q = poly_copy(all);
	poly_assume(q, inside);
	CHECK(poly_implies(q, low));
	CHECK(poly_implies(q, high));
	CHECK(poly_implies(q, inside));
	CHECK(!poly_is_empty(q));
	int64_t lo, hi;
	CHECK(poly_bounds(q, e, &lo, &hi));
	CHECK_INT(lo, 0);
	CHECK_INT(hi, 27);
	CHECK(poly_simplify(q, inside) == node_const_int(ir, RICCI_BOOL, 1));
	/* Phases: k = 2u + h. */
	Node *u = node_floordiv(ir, k, 2), *h = node_floormod(ir, k, 2);
	CHECK(poly_implies(all, node2(ir, OP_EQ, k, node_add(ir, node_scale(ir, u, 2), h))));
	CHECK(poly_implies(all, node2(ir, OP_LT, u, node_int(ir, 14))));
	q = poly_copy(all);
	poly_assume(q, node2(ir, OP_EQ, h, zero));
	poly_assume(q, node2(ir, OP_EQ, k, node_add(ir, node_scale(ir, p, 2), node_int(ir, 1))));
	CHECK(poly_is_empty(q));
	/* Nested quotients, and a selection that keeps an index inside. */
	Node *nested = node_floordiv(ir, node_add(ir, u, node_int(ir, 1)), 3);
	CHECK(poly_implies(all, node2(ir, OP_LE, nested, node_int(ir, 4))));
	Node *clamped = node2(ir, OP_MIN, node_add(ir, k, r), node_int(ir, 27));
	CHECK(poly_implies(all, node2(ir, OP_LT, clamped, node_int(ir, 28))));
	Node *sum = node_add(ir, k, r);
	Node *wrapped = node_select(ir, node2(ir, OP_LT, sum, node_int(ir, 28)), sum,
				    node_sub(ir, sum, node_int(ir, 28)));
	CHECK(poly_implies(all, node2(ir, OP_LT, wrapped, node_int(ir, 28))));
	CHECK(poly_implies(all, node2(ir, OP_LE, zero, wrapped)));
	CHECK(!poly_implies(all, node2(ir, OP_LT, wrapped, node_int(ir, 27))));
	/* A condition on data is a fact like others. */
	Node *in = node_input(ir, "B", RICCI_BOOL, 1, (int64_t[]){28});
	Node *flag = node_read(ir, in, &k);
	Node *c = node_select(ir, flag, node_select(ir, flag, p, k), node_select(ir, flag, k, r));
	CHECK(poly_simplify(all, c) == node_select(ir, flag, p, r));
	Node *f = node_input(ir, "F", RICCI_F32, 1, (int64_t[]){28});
	Node *positive = node2(ir, OP_LT, node_const(ir, RICCI_F32, 0), node_read(ir, f, &k));
	Node *both = node_select(ir, positive, node_select(ir, node_not(ir, positive), p, k), r);
	CHECK(poly_simplify(all, both) == node_select(ir, positive, k, r));
	/* Equalities without unit coefficients: 6x + 10y + 15z = 1 has solutions, 6x + 10y = 7 not.
	 */
	Node *z = node_axis(ir, 3, 40);
	Node *mixed = node_add(ir, node_scale(ir, p, 6), node_scale(ir, k, -10));
	q = poly_copy(all);
	poly_assume(q,
		    node2(ir, OP_EQ, node_add(ir, mixed, node_scale(ir, z, 15)), node_int(ir, 1)));
	CHECK(!poly_is_empty(q));
	q = poly_copy(all);
	Node *third = node_floordiv(ir, k, 3), *half = node_floordiv(ir, p, 2);
	poly_assume(q, node2(ir, OP_EQ, node_scale(ir, third, 3), k));
	poly_assume(q, node2(ir, OP_EQ, node_scale(ir, half, 2), p));
	poly_assume(q, node2(ir, OP_EQ, k, node_add(ir, node_scale(ir, p, 3), node_int(ir, 1))));
	CHECK(poly_is_empty(q));
	IR_LEAVE(ir);
	return 0;
}

/* 0 <= x < 9 */
static Node *inside(Ir *ir, Node *x)
{
	return node2(ir, OP_AND, node2(ir, OP_LE, node_int(ir, 0), x),
		     node2(ir, OP_LT, x, node_int(ir, 9)));
}

/* Conditions on choices say something of their parts, however many they are and wherever what
 * decides the choices stands. */
static int test_choices(Ir *ir)
{
	IR_ENTER(ir, -1);
	Node *i = node_axis(ir, 0, 9), *zero = node_int(ir, 0);
	Node *some = node2(ir, OP_NE, i, zero), *none = node_not(ir, some);
	Node *ends = node2(ir, OP_OR, node2(ir, OP_LT, node_int(ir, 2), i), none);
	Node *t = node_input(ir, "T", RICCI_I64, 1, (int64_t[]){9}), *x = node_read(ir, t, &i);
	Node *few = node2(ir, OP_LT, x, node_int(ir, 3));
	Node *a = node_add(ir, node_scale(ir, i, 2), node_int(ir, -5)), *b = node_add(ir, i, x);
	Node *c = node_add(ir, node_scale(ir, i, 3), node_int(ir, -6));
	Polyhedron *p = poly_new(ir);
	poly_assume(p, node2(ir, OP_LE, zero, node_select(ir, some, node_int(ir, -1), zero)));
	CHECK(poly_implies(p, none));
	Node *all = node2(ir, OP_AND, inside(ir, node_select(ir, some, a, zero)),
			  inside(ir, node_select(ir, few, b, zero)));
	all = node2(ir, OP_AND, all, inside(ir, node_select(ir, ends, c, zero)));
	p = poly_new(ir);
	poly_assume(p, node2(ir, OP_AND, all, some));
	CHECK(poly_implies(p, inside(ir, a)));
	CHECK(!poly_implies(p, inside(ir, b)));
	CHECK(!poly_implies(p, inside(ir, node_add(ir, a, node_int(ir, -2)))));
	p = poly_new(ir);
	poly_assume(p, node2(ir, OP_AND, node2(ir, OP_AND, all, few), ends));
	CHECK(poly_implies(p, inside(ir, b)));
	CHECK(poly_implies(p, inside(ir, c)));
	CHECK(poly_implies(p, inside(ir, a))); /* i is 3 or 4 */
	CHECK(!poly_implies(p, node2(ir, OP_EQ, i, node_int(ir, 3))));
	IR_LEAVE(ir);
	return 0;
}

/* The borders of a window, again and again: what one proof leaves behind helps no other. */
static int test_windows(Ir *ir)
{
	IR_ENTER(ir, -1);
	Node *p = node_axis(ir, 0, 14), *r = node_axis(ir, 1, 5), *s = node_axis(ir, 2, 5);
	Node *q = node_axis(ir, 3, 14), *zero = node_int(ir, 0), *limit = node_int(ir, 28);
	Node *e = node_add(ir, node_scale(ir, p, 2), node_sub(ir, r, node_int(ir, 2)));
	Node *f = node_add(ir, node_scale(ir, q, 2), node_sub(ir, s, node_int(ir, 2)));
	enum { N = 1000 };
	for (int k = 0; k < N; k++) {
		Polyhedron *d = poly_new(ir);
		poly_assume(d, node2(ir, OP_AND, node2(ir, OP_LE, zero, e),
				     node2(ir, OP_LT, e, limit)));
		poly_assume(d, node2(ir, OP_AND, node2(ir, OP_LE, zero, f),
				     node2(ir, OP_LT, f, limit)));
		CHECK(poly_implies(d, node2(ir, OP_LE, zero, e)));
		CHECK(poly_implies(d, node2(ir, OP_LT, f, limit)));
	}
	IR_LEAVE(ir);
	return 0;
}

/* Values that may be anything bring no rows: a copy of a polyhedron of such alone has room for all. */
static int test_copy_without_rows(Ir *ir)
{
	enum { VALUES = 40 };
	IR_ENTER(ir, -1);
	Node *t = node_input(ir, "T", RICCI_I64, 1, (int64_t[]){VALUES});
	Polyhedron *p = poly_new(ir);
	for (int k = 0; k < VALUES; k++) {
		Node *x = node_read(ir, t, (Node *[]){node_int(ir, k)});
		CHECK(!poly_implies(p, node2(ir, OP_LE, x, node_int(ir, 5))));
	}
	Polyhedron *q = poly_copy(p);
	Node *first = node_read(ir, t, (Node *[]){node_int(ir, 0)});
	poly_assume(q, node2(ir, OP_LT, first, node_int(ir, 3)));
	CHECK(poly_implies(q, node2(ir, OP_LE, first, node_int(ir, 5))));
	CHECK(!poly_implies(p, node2(ir, OP_LE, first, node_int(ir, 5))));
	/* first + 1 < 4 says nothing of first, which may be the greatest number there is */
	Polyhedron *w = poly_new(ir);
	poly_assume(w, node2(ir, OP_LT, node_add(ir, first, node_int(ir, 1)), node_int(ir, 4)));
	CHECK(!poly_implies(w, node2(ir, OP_LE, first, node_int(ir, 5))));
	poly_assume(w, node2(ir, OP_LT, first, node_int(ir, 100)));
	CHECK(poly_implies(
		w, node2(ir, OP_LT, node_add(ir, first, node_int(ir, 1)), node_int(ir, 4))));
	IR_LEAVE(ir);
	return 0;
}

int main(void)
{
	Ir ir;
	for (int k = 0; k < 6000; k++) {
		ir_init(&ir);
		int before = check_failed;
		CHECK_INT(random_system(&ir), 0);
		if (check_failed > before)
			fprintf(stderr, "system %d\n", k);
		ir_free(&ir);
	}
	static const char *const what[] = {"empty", "implied", "excluded", "bounds"};
	for (int k = 0; k < COUNT(what); k++) {
		fprintf(stderr, "%s: %d of %d found\n", what[k], found[k], could[k]);
		CHECK(found[k] * 10 >= could[k] * 7);
	}
	ir_init(&ir);
	CHECK_INT(test_indices(&ir), 0);
	CHECK_INT(test_choices(&ir), 0);
	CHECK_INT(test_copy_without_rows(&ir), 0);
	CHECK_INT(test_windows(&ir), 0);
	ir_free(&ir);
	CHECK_INT(mem_live(), 0);
	return check_done();
}
