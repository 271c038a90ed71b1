/* Affine forms: of sums in any shape, their coefficients, and back to nodes. */
#include "tests/check.h"
#include "core/core.h"

Node *node_raw(Ir *ir, Op op, Type type, int nsrc, Node *const *src, int64_t i, const char *s);

/* An index that is put together again of its digits is itself, and of some of them a remainder. */
static void test_digits(Ir *ir)
{
	Node *x = node_axis(ir, 0, 512), *y = node_axis(ir, 1, 9);
	Node *low = node_floormod(ir, x, 4), *mid = node_floormod(ir, node_floordiv(ir, x, 4), 8);
	Node *high = node_floordiv(ir, x, 32), *lower = node_add(ir, low, node_scale(ir, mid, 4));
	CHECK(lower == node_floormod(ir, x, 32));
	CHECK(node_add(ir, mid, node_scale(ir, high, 8)) == node_floordiv(ir, x, 4));
	Node *sum = node_add(ir, node_scale(ir, mid, 12), node_scale(ir, high, 96));
	sum = node_add(ir, node_add(ir, sum, y), node_scale(ir, low, 3));
	CHECK(sum == node_add(ir, node_scale(ir, x, 3), y));
	/* Neither other places nor other coefficients fit. */
	Node *two = node_floormod(ir, node_floordiv(ir, x, 2), 8);
	CHECK(affine_of(ir, node_add(ir, low, node_scale(ir, two, 4))).n == 2);
	CHECK(affine_of(ir, node_add(ir, low, node_scale(ir, mid, 5))).n == 2);
}

static int test(Ir *ir)
{
	IR_ENTER(ir, -1);
	Node *x = node_axis(ir, 0, 10), *y = node_axis(ir, 1, 10), *q = node_floordiv(ir, x, 3);
	Node *e = node_add(ir, node_scale(ir, x, 3), node_add(ir, node_scale(ir, y, -2), q));
	e = node_add(ir, e, node_int(ir, 7));
	Affine a = affine_of(ir, e);
	CHECK_INT(a.n, 3);
	CHECK_INT(a.c, 7);
	CHECK_INT(affine_coefficient(&a, x), 3);
	CHECK_INT(affine_coefficient(&a, y), -2);
	CHECK_INT(affine_coefficient(&a, q), 1);
	CHECK_INT(affine_coefficient(&a, e), 0);
	CHECK(affine_node(ir, &a) == e);
	for (int k = 1; k < a.n; k++)
		CHECK(a.atom[k - 1]->id < a.atom[k]->id);
	/* Not in normal form: (2*(x + 5) + y*4) + -2*x, made past folding. */
	Node *five[2] = {x, node_int(ir, 5)},
	     *s = node_raw(ir, OP_ADD, RICCI_I64, 2, five, 0, NULL);
	Node *two[2] = {node_int(ir, 2), s}, *four[2] = {y, node_int(ir, 4)};
	Node *less[2] = {node_int(ir, -2), x};
	Node *l = node_raw(ir, OP_MUL, RICCI_I64, 2, two, 0, NULL);
	Node *m = node_raw(ir, OP_MUL, RICCI_I64, 2, four, 0, NULL);
	Node *n = node_raw(ir, OP_MUL, RICCI_I64, 2, less, 0, NULL);
	Node *lm = node_raw(ir, OP_ADD, RICCI_I64, 2, (Node *[]){l, m}, 0, NULL);
	a = affine_of(ir, node_raw(ir, OP_ADD, RICCI_I64, 2, (Node *[]){lm, n}, 0, NULL));
	CHECK_INT(a.n, 1);
	CHECK_INT(a.c, 10);
	CHECK_INT(affine_coefficient(&a, y), 4);
	/* A constant, and a product of variables. */
	a = affine_of(ir, node_int(ir, -3));
	CHECK_INT(a.n, 0);
	CHECK_INT(a.c, -3);
	CHECK(affine_node(ir, &a) == node_int(ir, -3));
	Node *xy = node_mul(ir, x, y);
	a = affine_of(ir, node_scale(ir, xy, 5));
	CHECK_INT(a.n, 1);
	CHECK_INT(affine_coefficient(&a, xy), 5);
	/* What leaves int64 stays whole. */
	Node *huge[2] = {node_int(ir, INT64_MAX), s};
	Node *big = node_raw(ir, OP_MUL, RICCI_I64, 2, huge, 0, NULL);
	a = affine_of(ir, big);
	CHECK_INT(a.n, 1);
	CHECK_INT(a.c, 0);
	CHECK(a.atom[0] == big);
	/* So does a sum of bytes that may wrap. */
	Node *in = node_input(ir, "T", RICCI_I8, 1, (int64_t[]){10});
	Node *byte = node_read(ir, in, &x);
	a = affine_of(ir, node_add(ir, byte, node_const_int(ir, RICCI_I8, 1)));
	CHECK_INT(a.n, 1);
	CHECK_INT(a.c, 0);
	test_digits(ir);
	IR_LEAVE(ir);
	return 0;
}

static int64_t random_below(uint64_t *state, int64_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(*state >> 33) % n;
}

/* What the normal form takes out of a quotient costs nothing of its bounds: those of (e)/c are e's
 * by c, whatever the coefficients, and so are those of a quotient in a sum. */
static int test_bounds(Ir *ir)
{
	static uint64_t state = 5;
	IR_ENTER(ir, -1);
	Node *axis[3] = {node_axis(ir, 0, 2), node_axis(ir, 1, 5), node_axis(ir, 2, 9)};
	for (int round = 0; round < 2000; round++) {
		Node *e = node_int(ir, random_below(&state, 21) - 10);
		int64_t c = 2 + random_below(&state, 8);
		for (int k = 0; k < 3; k++) {
			int64_t by = random_below(&state, 15) - 7;
			e = node_add_scaled(ir, e, axis[k], by);
		}
		int64_t lo = (e->lo - (e->lo < 0 ? c - 1 : 0)) / c;
		int64_t hi = (e->hi - (e->hi < 0 ? c - 1 : 0)) / c;
		Node *q = node_floordiv(ir, e, c), *s = node_add(ir, q, node_int(ir, 3));
		CHECK_INT(q->lo, lo);
		CHECK_INT(q->hi, hi);
		CHECK_INT(s->lo, lo + 3);
		CHECK_INT(s->hi, hi + 3);
		CHECK(node_add_scaled(ir, e, q, -c) == node_add(ir, e, node_scale(ir, q, -c)));
	}
	/* where the c parts of k begin, in rows of 100 */
	for (int64_t c = 2; c < 12; c++)
		for (int64_t k = 1; k < 4 * c; k++) {
			Node *first = node_floordiv(ir, node_scale(ir, node_axis(ir, 3, c), k), c);
			Node *s = node_add(ir, node_scale(ir, first, 100), axis[2]);
			CHECK_INT(s->lo, 0);
			CHECK_INT(s->hi, 100 * ((c - 1) * k / c) + 8);
		}
	IR_LEAVE(ir);
	return 0;
}

/* Nodes of an operator: each once, what others are made of first; beyond the first room of a list, too. */
static int test_collect(Ir *ir)
{
	enum { READS = 100 };
	IR_ENTER(ir, -1);
	Node **list, *a = node_input(ir, "A", RICCI_I64, 1, &(int64_t){READS});
	Node *sum = node_int(ir, 0), *first = node_read(ir, a, (Node *[]){node_int(ir, 0)});
	Node *of = node_read(ir, a, &first); /* A[A[0]] */
	CHECK_INT(node_collect(ir, sum, OP_READ, &list), 0);
	CHECK_INT(node_collect(ir, node2(ir, OP_MAX, of, first), OP_READ, &list), 2);
	CHECK(list[0] == first && list[1] == of);
	for (int k = 0; k < READS; k++) {
		Node *at = node_int(ir, k), *read = node_read(ir, a, &at);
		sum = node2(ir, OP_MAX, sum, node2(ir, OP_MIN, read, node_int(ir, k + 1)));
	}
	CHECK_INT(node_collect(ir, sum, OP_READ, &list), READS);
	for (int k = 1; k < READS; k++)
		for (int j = 0; j < k; j++)
			CHECK(list[j] != list[k] && list[k]->op == OP_READ);
	IR_LEAVE(ir);
	return 0;
}

int main(void)
{
	Ir ir;
	ir_init(&ir);
	CHECK_INT(test(&ir), 0);
	CHECK_INT(test_bounds(&ir), 0);
	CHECK_INT(test_collect(&ir), 0);
	ir_free(&ir);
	CHECK_INT(mem_live(), 0);
	return check_done();
}
