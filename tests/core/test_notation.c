/* test_notation.c - what equations mean (values, by the interpreter), how they print, which ranges
 * are inferred, contracts of gathers, and that running out of memory anywhere is an error. */
#include "core/core.h"
#include "tests/check.h"
#include "tests/memory_check.h"
#include <stdlib.h>

typedef struct Given {
	const char *name, *shape; /* "2x3:f32" */
} Given;

static Node *make_input(Ir *ir, const Given *g)
{
	int64_t shape[RICCI_MAX_RANK];
	int rank = 0;
	Type t = RICCI_F32;
	char *s = (char *)g->shape;

	while (*s && *s != ':') {
		shape[rank++] = strtoll(s, &s, 10);
		s += *s == 'x';
	}
	if (*s == ':')
		type_parse(s + 1, &t);
	return node_input(ir, g->name, t, rank, shape);
}

static const char *own_name(void *user, Node *t)
{
	return t->op == OP_INPUT ? t->u.s : user;
}

/* The result of text over those of the operands that it names. */
static Node *elaborate(Ir *ir, const char *text, int n, Node *const *operand)
{
	const char **names;
	Node *bound[4], *result = NULL;
	int count = notation_operands(ir, text, &names), m;

	for (int i = 0; i < count; i++)
		for (int k = 0; k < n; k++)
			if (!strcmp(names[i], operand[k]->u.s))
				bound[i] = operand[k];
	if (count < 0 || notation_elaborate(ir, text, count, bound, &m, &result, 1))
		return NULL;
	return result;
}

/* ---- printing ---- */

static const struct {
	const char *text;
	Given given[4];
	const char *printed;
} prints[] = {
	{"Y[i,j] += A[i,k]*B[k,j]", {{"A", "4x5"}, {"B", "5x6"}}, "Y[i,j] += A[i,k]*B[k,j]"},
	/* Of different extents where chooses. */
	{"Y[i] = A[i] - B[i] where i<4", {{"A", "4"}, {"B", "6"}}, "Y[i] = A[i] - B[i] where i<4"},
	{"Y[i] = A[i] - B[i] where i<3", {{"A", "4"}, {"B", "6"}}, "Y[i] = A[i] - B[i] where i<3"},
	{"Y[i] = A[i+1] - A[i]", {{"A", "9"}}, "Y[i] = A[i+1] - A[i]"},
	{"V[b,p] += P[b,2*p+r] * W[r]", {{"P", "2x15"}, {"W", "3"}}, "Y[i,j] += P[i,2*j+k]*W[k]"},
	{"V[b,p] += P[b,2*p+r] * W[r] where p < 5",
	 {{"P", "2x15"}, {"W", "3"}},
	 "Y[i,j] += P[i,2*j+k]*W[k] where j<5"},
	{"Y[b,p,q,c] = X[b, p/2, q/2, 4*c + 2*(p%2) + q%2]",
	 {{"X", "2x3x3x8"}},
	 "Y[i,j,k,l] = X[i,j/2,k/2,4*l+2*(j%2)+k%2]"},
	{"Y[b,o,p] += (X[b,c,2*p+r-2] else 0) * W[o,c,r] where p < 14",
	 {{"X", "2x3x28"}, {"W", "6x3x5"}},
	 "Y[i,j,k] += (X[i,m,2*k+l-2] else 0)*W[j,m,l] where k<14"},
	/* A reduced index from another lower bound is shifted. */
	{"Y[i] += X[i+r+1] where r in -1..2", {{"X", "10"}}, "Y[i] += X[i+j] where i<8"},
	{"Y[i] max= (X[i+r] else -inf) where r in -1..2, i < X.size(0)",
	 {{"X", "10"}},
	 "Y[i] max= X[i+j-1] else -inf where i<10, j<3"},
	/* Ranges over other indices become conditions. */
	{"Y[i] += X[j] where j < i+1, i < X.size(0)",
	 {{"X", "6"}},
	 "Y[i] += j < i + 1 ? X[j] : 0 where i<6"},
	{"Y[i] max= X[j] where j in i..6, i < 6",
	 {{"X", "6"}},
	 "Y[i] max= i <= j ? X[j] : -inf where i<6"},
	{"Y[i,j] = j <= i ? S[i,j] : -inf", {{"S", "4x4"}}, "Y[i,j] = j <= i ? S[i,j] : -inf"},
	{"Y[i] = i < 5 ? A[i] : B[i-5]",
	 {{"A", "5"}, {"B", "10"}},
	 "Y[i] = A[i] else B[i-5] where i<15"},
	{"Y[i] = A[A.size(0)-1-i]", {{"A", "7"}}, "Y[i] = A[-i+6]"},
	{"Y[i] = A[i,i] where i<A.size(0)", {{"A", "4x6"}}, "Y[i] = A[i,i] where i<4"},
	{"Y[i] = A[i,i]", {{"A", "4x4"}}, "Y[i] = A[i,i]"},
	/* A padded access beside another says an extent, too. */
	{"Y[i] = A[i] + (B[i] else 0) where i<A.size(0)",
	 {{"A", "5"}, {"B", "3"}},
	 "Y[i] = A[i] + (B[i] else 0) where i<5"},
	{"Y[i] = i < 3 ? A[i] : B[i]", {{"A", "3"}, {"B", "8"}}, "Y[i] = A[i] else B[i] where i<8"},
	{"Y[T[i]:10, d] += X[i,d]", {{"T", "5:i32"}, {"X", "5x3"}}, "Y[T[j]:10,i] += X[j,i]"},
	{"Y[2*i+j:20] += A[i,j]", {{"A", "9x3"}}, "Y[2*i+j:20] += A[i,j]"},
	{"Y[i,d] = X[T[i],d]", {{"X", "9x3"}, {"T", "5:i64"}}, "Y[i,j] = X[T[i],j]"},
	{"Y[i] = X[min(max(T[i]-1,0),8)]",
	 {{"X", "9"}, {"T", "5:i32"}},
	 "Y[i] = X[min(max(T[i]-1, 0), 8)]"},
	{"Y[i] = X[i64(T[i])+i] where i<5", {{"X", "9"}, {"T", "5:bool"}}, "Y[i] = X[i+i64(T[i])]"},
	{"Y[] += A[i] * A[i]", {{"A", "4"}}, "Y[] += A[i]*A[i]"},
	{"Y[] += A[]", {{"A", ""}}, "Y[] = A[]"},
	/* Types. */
	{"Y[i] = i where i < 3", {{0}}, "Y[i] = f32(i) where i<3"},
	{"Y[i] = i64(i) where i < 3", {{0}}, "Y[i] = i64(i) where i<3"},
	{"Y[i] = 0.1 where i < 3", {{0}}, "Y[i] = 0.1 where i<3"},
	{"Y[i] = f64(0.1) where i < 3", {{0}}, "Y[i] = f64(0.1) where i<3"},
	{"Y[i] = D[i] + 0.1", {{"D", "3:f64"}}, "Y[i] = D[i] + 0.1"},
	{"Y[i] = H[i] + 0.1", {{"H", "3:f16"}}, "Y[i] = H[i] + 0.1"},
	{"Y[i] = A[i] > 0.5", {{"A", "3"}}, "Y[i] = 0.5 < A[i]"},
	{"Y[i] += f32(A[i,j] > 0)", {{"A", "3x4"}}, "Y[i] += f32(0 < A[i,j])"},
	{"Y[i] += (A[i,j] > 0) * A[i,j]", {{"A", "3x4"}}, "Y[i] += f32(0 < A[i,j])*A[i,j]"},
	{"Y[i] = T[i] ? 1 : 0", {{"T", "3:i32"}}, "Y[i] = f32(T[i] != 0 ? 1 : 0)"},
	{"Y[i] = T[i]*2 - 1", {{"T", "3:i32"}}, "Y[i] = 2*T[i] - 1"},
	/* A quotient of numbers is a float; of an integer expression it is none. */
	{"Y[i] = i64(A[i] > 0 ? 3 : 1)/2 + 1", {{"A", "3"}}, "Y[i] = i64(0 < A[i] ? 3 : 1)/2 + 1"},
	{"Y[i] = (A[i] > 0 ? 3 : 1)/2", {{"A", "3"}}, "Y[i] = f32(0 < A[i] ? 3 : 1)/2"},
	{"Y[i] = A[i]*(i < 7/2 ? 3/4 : i/2)",
	 {{"A", "9"}},
	 "Y[i] = A[i]*(i < 4 ? 0.75 : f32(i/2))"},
	{"Y[i] = T[i]/2 + T[i]%2", {{"T", "3:i32"}}, "Y[i] = T[i]%2 + T[i]/2"},
	{"Y[i] = M[i] || !N[i]", {{"M", "3:bool"}, {"N", "3:bool"}}, "Y[i] = M[i] || !N[i]"},
	{"Y[i] = nan where i < 2", {{0}}, "Y[i] = nan where i<2"},
	{"Y[i] = -A[i] * -2.5", {{"A", "3"}}, "Y[i] = 2.5*A[i]"},
	{"Y[i] = -(A[i] - B[i])", {{"A", "3"}, {"B", "3"}}, "Y[i] = B[i] - A[i]"},
	{"Y[i] = A[i] - (B[i] - A[i])", {{"A", "3"}, {"B", "3"}}, "Y[i] = A[i] - (B[i] - A[i])"},
	{"Y[i] = A[i] / (B[i] * A[i])", {{"A", "3"}, {"B", "3"}}, "Y[i] = A[i]/(B[i]*A[i])"},
	{"Y[i] = pow(A[i], 3) + max(A[i], 0)", {{"A", "3"}}, "Y[i] = pow(A[i], 3) + max(A[i], 0)"},
	{"Y[i] = random(1) where i < 3", {{0}}, "Y[i] = random(1, i) where i<3"},
	{"Y[i,j] = normal(1) where i < 3, j < 4",
	 {{0}},
	 "Y[i,j] = normal(1, 4*i+j) where i<3, j<4"},
	/* An index that only repeats. */
	{"Y[i] += j >= 0 ? A[i] : 0 where j < 5",
	 {{"A", "4"}},
	 "Y[i] += j >= 0 ? A[i] : 0 where j<5"},
	{"Y[i] += A[i+j]*B[i]*W[j]",
	 {{"A", "10"}, {"B", "10"}, {"W", "3"}},
	 "Y[i] += A[i+j]*B[i]*W[j]"},
};

static int given_operands(Ir *ir, const Given *given, Node **operand)
{
	int n = 0;

	for (; n < 4 && given[n].name; n++)
		operand[n] = make_input(ir, &given[n]);
	return n;
}

static int check_print(Ir *ir, int i)
{
	Text t = {0};
	Node *operand[4], *result;
	int m = 1;

	IR_ENTER(ir, ir->err.code);
	int n = given_operands(ir, prints[i].given, operand);
	int code = notation_elaborate(ir, prints[i].text, n, operand, &m, &result, 1);
	if (!code) {
		print_equation(&t, ir, result, own_name, "Y");
		CHECK_STR(t.s, prints[i].printed);
		CHECK_REPORT(elaborate(ir, t.s, n, operand) == result, "%s differs", t.s);
	}
	text_free(&t);
	IR_LEAVE(ir);
	return code;
}

/* ---- ranges ---- */

static const struct {
	const char *text;
	Given given[4];
	const char *shape;
} ranges[] = {
	/* Conditional accesses don't shrink what others give, and are proved. */
	{"Y[t,d] = Q[t,d]*C[d] + (d%2 == 0 ? -Q[t,d+1] : Q[t,d-1])*S[d]",
	 {{"Q", "6x8"}, {"C", "8"}, {"S", "8"}},
	 "6x8"},
	{"Y[i] = Q[i] + (i/2%2 == 0 ? Q[i+2] : Q[i-2])", {{"Q", "8"}}, "8"},
	{"Y[i] = Q[i] + (i%4 < 2 && i%2 == 0 ? Q[i+3] : i%4 >= 2 && i%2 == 1 ? Q[i-3] : 0)",
	 {{"Q", "8"}},
	 "8"},
	{"Y[i] = Q[i] + (!(i%2 == 0) ? Q[i-1] : i%2 == 1 || i > 3 ? 0 : Q[i+4])",
	 {{"Q", "8"}},
	 "8"},
	{"Y[i,j] = Q[i,j] + (i+j < 3 ? R[i+j] : 0)", {{"Q", "4x5"}, {"R", "3"}}, "4x5"},
	{"Y[i,j] = Q[i,j] + (i <= j && j < 4 && (i+j)%2 == 0 ? R[(i+j)/2] : 0)",
	 {{"Q", "4x5"}, {"R", "4"}},
	 "4x5"},
	{"Y[i] = A[i] + (i < 3 ? B[i] : 0)", {{"A", "5"}, {"B", "3"}}, "5"},
	{"Y[i] = A[i] + (i < 3 ? B[i] : 0)", {{"A", "5"}, {"B", "9"}}, "5"},
	{"Y[i] = A[i] + (i >= B.size(0) || B[i] > 0 ? 1 : 0)", {{"A", "5"}, {"B", "3"}}, "5"},
	{"Y[i] = (A[i-5] else B[i]) + C[i]", {{"A", "3"}, {"B", "5"}, {"C", "8"}}, "8"},
	{"Y[i] = i < 3 ? A[i] : B[i]", {{"A", "3"}, {"B", "8"}}, "8"},
	/* Alone they go as far as all of them stay inside. */
	{"Y[i] = i%2 == 0 ? -Q[i+1] : Q[i-1]", {{"Q", "8"}}, "8"},
	{"Y[i] = i%2 == 0 ? -Q[i+1] : Q[i-1]", {{"Q", "7"}}, "6"},
	{"Y[i] = i > 0 ? X[i-1] : 0", {{"X", "9"}}, "10"},
	/* Quotients and remainders as well. */
	{"Y[i] = Q[i] + Q[i+1-2*(i%2)]", {{"Q", "8"}}, "8"},
	{"Y[i] = Q[i+1-2*(i%2)]", {{"Q", "8"}}, "8"},
	{"Y[j] = Q[j-j%2]", {{"Q", "3"}}, "4"},
	{"Y[i] = Q[-(i == 0 ? i : 0)+1, i]", {{"Q", "2 3"}}, "3"},
	{"Y[i] = Q[min(-i+i%2+2, 1)]", {{"Q", "2"}}, "4"},
	{"Y[i,j] = Q[i*j]*X[j]", {{"Q", "9"}, {"X", "4"}}, "3x4"},
	{"Y[i/2*2:4] += Q[max(i-i%3, 2)]", {{"Q", "5"}}, "4"},
	{"Y[i] = Q[i/2*2] + Q[i/2*2+1]", {{"Q", "8"}}, "8"},
	{"Y[i] = Q[i+(i+1)%2]", {{"Q", "8"}}, "8"},
	{"Y[i] = Q[3*(i/3) + 2 - i%3]", {{"Q", "9"}}, "9"},
	{"Y[i] = Q[i%2*4 + i/2] + Q[i]", {{"Q", "8"}}, "8"},
	{"Y[i] = Q[(i+1)/2] + Q[max(i/3-1, 0)] + Q[abs(i-2)]", {{"Q", "8"}}, "10"},
	/* What is not bare may be shorter. */
	{"Y[i] = A[i+1] - A[i]", {{"A", "9"}}, "8"},
	{"Y[b,p] += P[b,2*p+r] * W[r] * B[p]", {{"P", "2x15"}, {"W", "3"}, {"B", "7"}}, "2x7"},
	/* A scatter may have more room, a left extent of '=' is a range. */
	{"Y[i:12] += A[i]", {{"A", "10"}}, "12"},
	{"Y[i:8] = A[i] + B[i]", {{"A", "10"}, {"B", "9"}}, "8"},
};

static int check_range(Ir *ir, int i)
{
	Node *operand[4], *y;
	char shape[80] = "";
	int m;

	IR_ENTER(ir, ir->err.code);
	int n = given_operands(ir, ranges[i].given, operand);
	if (!notation_elaborate(ir, ranges[i].text, n, operand, &m, &y, 1))
		for (int d = 0; d < tensor_rank(y); d++)
			snprintf(shape + strlen(shape), 20, d ? "x%lld" : "%lld",
				 (long long)tensor_extent(y, d));
	CHECK_STR(shape, ranges[i].shape);
	IR_LEAVE(ir);
	return ir->err.code;
}

static void test_ranges(void)
{
	for (int i = 0; i < COUNT(ranges); i++) {
		Ir ir;

		ir_init(&ir);
		CHECK_REPORT(!check_range(&ir, i), "%s: %s", ranges[i].text, ir.err.text);
		ir_free(&ir);
	}
}

static void test_prints(void)
{
	for (int i = 0; i < COUNT(prints); i++) {
		Ir ir;

		ir_init(&ir);
		CHECK_REPORT(!check_print(&ir, i), "%s: %s", prints[i].text, ir.err.text);
		ir_free(&ir);
	}
}

/* ---- values ---- */

static const float a_data[] = {1, -2, 3, -4, 5, -6}; /* 2x3 */
static const float b_data[] = {0.5f, 2, -1};
static const int32_t t_data[] = {2, 0, 1, -7};

static const struct {
	const char *text, *operands; /* letters: A 2x3, B 3, T 4:i32 */
	int n;
	double want[8];
} values[] = {
	{"Y[i] += A[i,j]*B[j]", "AB", 2, {-6.5, 14}},
	{"Y[i] max= A[i,j]", "A", 2, {3, 5}},
	{"Y[i] min= A[i,j]", "A", 2, {-2, -6}},
	{"Y[i] *= A[i,j]", "A", 2, {-6, 120}},
	{"Y[j,i] = A[i,j]", "A", 6, {1, -4, -2, 5, 3, -6}},
	{"Y[i] = B[i+1] else B[0] where i < 3", "B", 3, {2, -1, 0.5}},
	{"Y[i] = (B[i-1] else 0) * 2 where i < 5", "B", 5, {0, 1, 4, -2, 0}},
	{"Y[i] = B[i-1] else 0 * 2 where i < 3", "B", 3, {0, 1, 4}},
	{"Y[i] += B[j] where j < i+1, i < 3", "B", 3, {0.5, 2.5, 1.5}},
	{"Y[i:4] = i", "", 4, {0, 1, 2, 3}},
	{"Y[i:4] += B[i]", "B", 4, {0.5, 2, -1, 0}},
	{"Y[i] = B[i] where i in 0..2", "B", 2, {0.5, 2}},
	{"Y[] += B[j+1] * j where j in -1..2", "B", 1, {-1.5}},
	{"Y[i] += B[j] where j in i..3, i < 3", "B", 3, {1.5, 1, -1}},
	{"Y[i] = i/2*10 + i%2 where i < 5", "", 5, {0, 1, 10, 11, 20}},
	{"Y[i] = i32(i-3)/2 where i < 5", "", 5, {-2, -1, -1, 0, 0}},
	{"Y[i] = (i-3)%3 where i < 5", "", 5, {0, 1, 2, 0, 1}},
	/* Numbers alone are f32. */
	{"Y[i] = B[i] * (1/4)", "B", 3, {0.125, 0.5, -0.25}},
	{"Y[] = 8/5 + -7/2 + 9/3", "", 1, {1.1}},
	{"Y[] = sqrt(1/16) + max(1/4, 2) + abs(-1/2) + floor(7/2)", "", 1, {5.75}},
	{"Y[] += A[i,j] / (A.size(0)*A.size(1))", "A", 1, {-0.5}},
	{"Y[] = B[1/2] * (1/A.size(0))", "BA", 1, {0.25}},
	{"Y[i] = i + 1/2 where i < 2", "", 2, {0.5, 1.5}},
	{"Y[i] = (B[i] > 0)/2", "B", 3, {0.5, 0.5, 0}},
	{"Y[i] = i*3/2 + 3/2*i where i < 4/2", "", 2, {0, 2.5}},
	{"Y[i] = T[i] + i32(7/2)*0 + 7%4 where i < 2", "T", 2, {5, 3}},
	{"Y[i] = i32(-7/2) where i < 1", "", 1, {-3}},
	{"Y[i] = i32(-7)/2 where i < 1", "", 1, {-4}},
	/* An index beside a float number: exact. */
	{"Y[i] = i < 7/2 ? 1 : 0 where i < 5", "", 5, {1, 1, 1, 1, 0}},
	{"Y[i] = (i <= 3/2) + 2*(5/2 <= i) + 4*(1/2 < i) where i < 4", "", 4, {1, 5, 4, 6}},
	{"Y[i] = (i == 4/2) + 2*(i != 5/2) + 4*(i == 5/2) where i < 4", "", 4, {2, 2, 3, 2}},
	{"Y[i] = (i < inf) + 2*(i > -inf) + 4*(i != nan) + 8*(i < nan) where i < 1", "", 1, {7}},
	{"Y[i] = i < B.size(0)/2 ? B[i] : B[i-B.size(0)/2] where i < 3", "B", 3, {0.5, 2, 2}},
	{"Y[i] = 1 - 2 - 3 + i where i < 1", "", 1, {-4}},
	{"Y[i] = 2 + 3 * 4 == 14 && !(1 > 2) || 0 ? 7 : 8 where i < 1", "", 1, {7}},
	{"Y[i] = i < 1 ? 10 : i < 2 ? 20 : 30 where i < 3", "", 3, {10, 20, 30}},
	{"Y[i] = 1 < 2 == 1 where i < 1", "", 1, {1}},
	{"Y[i] = -B[i]*-2", "B", 3, {1, 4, -2}},
	{"Y[i] = T[i]/3 where i<4", "T", 4, {0, 0, 0, -3}},
	{"Y[i] = T[i]%3", "T", 4, {2, 0, 1, 2}},
	{"Y[i] = f32(T[i])/3 > 0.5", "T", 4, {1, 0, 0, 0}},
	{"Y[i] = B[T[i]] else 9", "BT", 4, {-1, 0.5, 2, 9}},
	{"Y[T[i]:3] += B[i] where i < 3", "TB", 3, {2, -1, 0.5}},
	{"Y[i/2:2] max= B[i]", "B", 2, {2, -1}},
	{"Y[] += 1.5 * (i >= 0) where i < 4", "", 1, {6}},
	{"m[i] max= A[i,j]; e[i,j] = A[i,j] - m[i]; Y[i] += e[i,j]", "A", 2, {-7, -20}},
	{"Y[i] += A[i,j] * (A[i,j] > 0)", "A", 2, {4, 5}},
	{"Y[i] = min(max(B[i], 0), 1) + abs(B[i]) + sign(B[i])", "B", 3, {2, 4, 0}},
	{"Y[i] = pow(B[i], 2) + floor(B[i]) + ceil(B[i]) + round(B[i])", "B", 3, {1.25, 10, -2}},
};

static void test_values(void)
{
	static union {
		double f[8];
		int64_t i[8];
	} got;
	static const RandomState state = {1, 2};
	static const int64_t a_shape[] = {2, 3}, b_shape[] = {3}, t_shape[] = {4};

	for (int i = 0; i < COUNT(values); i++) {
		Ir ir;
		ir_init(&ir);
		jmp_buf out;
		ir.arena.oom = &out;
		if (setjmp(out)) {
			CHECK_REPORT(false, "%s jumped: %s", values[i].text, ir.err.text);
			continue;
		}
		Binding bind[3] = {{node_input(&ir, "A", RICCI_F32, 2, a_shape), a_data},
				   {node_input(&ir, "B", RICCI_F32, 1, b_shape), b_data},
				   {node_input(&ir, "T", RICCI_I32, 1, t_shape), t_data}};
		Node *operand[3], *y;
		int n = 0, m;
		for (const char *c = values[i].operands; *c; c++)
			operand[n++] = bind[strchr("ABT", *c) - "ABT"].tensor;
		volatile int code = notation_elaborate(&ir, values[i].text, n, operand, &m, &y, 1);
		CHECK_REPORT(!code, "%s", ir.err.text);
		memset(&got, 0, sizeof got);
		static Error err;
		error_clear(&err);
		if (!code && tensor_size(y) <= 8)
			code = interp_tensor(y, 3, bind, state, &got, NULL, &err);
		CHECK_REPORT(!code, "%s: %s", values[i].text, err.text);
		for (int k = 0; !code && k < values[i].n; k++) {
			double v = type_is_float((Type)y->type) ? got.f[k] : (double)got.i[k];
			CHECK_REPORT(fabs(v - values[i].want[k]) < 1e-6,
				     "%s: element %d is %g, not %g", values[i].text, k, v,
				     values[i].want[k]);
		}
		CHECK_INT(code ? values[i].n : tensor_size(y), values[i].n);
		ir_free(&ir);
	}
}

/* ---- contracts, several results, programs ---- */

static void test_needs(void)
{
	static const struct {
		const char *text;
		int64_t lo, hi;
	} needs[] = {
		{"Y[i] = X[T[i]]", 0, 9},
		{"Y[i] = X[T[i]-3]", 3, 12},
		{"Y[i] = X[2*T[i]+1]", 0, 4},
		{"Y[i] = X[9-T[i]]", 0, 9},
		{"Y[i] += X[T[i]+j] where j < 4", 0, 6},
		{"Y[i] = T[i] >= 0 ? X[T[i]] : 0", INT32_MIN, 9},
		{"Y[i] = T[i] < 5 ? X[T[i]] : 0", 0, INT32_MAX},
		{"Y[i] = X[T[i]] + X[T[i]+3]", 0, 6},
	};
	Given x = {"X", "10"}, t = {"T", "4:i32"};

	for (int i = 0; i < COUNT(needs); i++) {
		Ir ir;
		ir_init(&ir);
		jmp_buf out;
		ir.arena.oom = &out;
		if (setjmp(out)) {
			CHECK(false);
			continue;
		}
		bool first = *strpbrk(needs[i].text + 4, "XT") == 'X';
		Node *nx = make_input(&ir, &x), *nt = make_input(&ir, &t), *y;
		Node *operand[2] = {first ? nx : nt, first ? nt : nx};
		int m;
		CHECK_INT(notation_elaborate(&ir, needs[i].text, 2, operand, &m, &y, 1), 0);
		CHECK(ir.need && ir.need->input == nt && !ir.need->next);
		CHECK_INT(ir.need ? ir.need->lo : 77, needs[i].lo);
		CHECK_INT(ir.need ? ir.need->hi : 77, needs[i].hi);
		ir_free(&ir);
	}
}

static void test_program(void)
{
	static const char text[] = "m[i] max= X[i,j];\n e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j];"
				   "Y[i,j] = e[i,j]/s[i]; Z[i] = log(s[i]) + m[i]";
	static const char printed[] = "T1[i] max= x_in_1[i,j];\n"
				      "T2[i,j] = exp(x_in_1[i,j] - T1[i]);\n"
				      "T3[i] += T2[i,j];\n"
				      "Y[i,j] = T2[i,j]/T3[i];\n"
				      "Z[i] = log(T3[i]) + T1[i];\n";
	static const char *const names[] = {"Y", "Z"};
	Given x = {"x-in.1", "4x5"};
	Ir ir;
	Text t = {0};

	ir_init(&ir);
	jmp_buf out;
	ir.arena.oom = &out;
	if (setjmp(out)) {
		CHECK(false);
		return;
	}
	Node *operand = make_input(&ir, &x), *y[4], *again[4];
	int n;
	CHECK_INT(notation_elaborate(&ir, text, 1, &operand, &n, y, 4), 0);
	CHECK_INT(n, 2);
	print_program(&t, &ir, 2, y, names);
	CHECK_STR(t.s, printed);
	CHECK_INT(notation_elaborate(&ir, t.s, 1, &operand, &n, again, 4), 0);
	CHECK(n == 2 && again[0] == y[0] && again[1] == y[1]);
	CHECK_INT(notation_elaborate(&ir, text, 1, &operand, &n, y, 1), RICCI_EINVAL);
	const char **operands;
	error_clear(&ir.err);
	CHECK_INT(
		notation_operands(&ir, "Y[T[i]:4] += A[i]*B.size(0); Z[i] = Y[i]*C[i]", &operands),
		4);
	CHECK_STR(operands[0], "T");
	CHECK_STR(operands[2], "B");
	text_free(&t);
	ir_free(&ir);
}

/* ---- memory ---- */

static int build_all(void)
{
	Ir ir;
	Given x = {"X", "4x5"}, w = {"W", "3:i32"};
	Node *y[4];
	int n, code;

	ir_init(&ir);
	jmp_buf out;
	ir.arena.oom = &out;
	if (setjmp(out)) {
		ir_free(&ir);
		return RICCI_ENOMEM;
	}
	Node *operand[2] = {make_input(&ir, &x), make_input(&ir, &w)};
	code = notation_elaborate(&ir,
				  "m[i] max= (X[i,j+r-1] else 0) where r < 3, j < 5;"
				  "Y[i] = i < 3 ? X[W[i],1] - m[i] : 0 where i < 4",
				  2, operand, &n, y, 4);
	ir_free(&ir);
	return code;
}

int main(void)
{
	test_prints();
	test_ranges();
	test_values();
	test_needs();
	test_program();
	check_memory(build_all);
	return check_done();
}
