/* test_values.c - values, names for parts of expressions: what they mean, what is refused; and that
 * a text is as long as its expression has nodes, and gives the same tensor again. */
#include "tests/core/operands.h"

#include <stdlib.h>
#include <string.h>

static Node *result_of(Ir *ir, const char *text, int n, Node *const *operand)
{
	Node *result[8] = {NULL};
	int nresult = 0;
	CHECK_INT(notation_elaborate(ir, text, n, operand, &nresult, result, COUNT(result)), 0);
	CHECK_STR(ir->err.text, "");
	return result[0];
}

/* ---- meaning: the same tensor as with the expression in each place ---- */

static void test_meaning(void)
{
	static const struct {
		const char *with, *without;
	} m[] = {
		{"v = A[i] * 2; Y[i] = v * v + i", "Y[i] = A[i] * 2 * (A[i] * 2) + i"},
		{"v = A[i] - A[j]; Y[i] += v * v", "Y[i] += (A[i] - A[j]) * (A[i] - A[j])"},
		/* Names of indices are those of the equation that uses it. */
		{"v = A[i] + A[k]; L[i] max= v; Y[k,i] = v - L[k]",
		 "L[i] max= A[i] + A[k]; Y[k,i] = A[i] + A[k] - L[k]"},
		{"a = A[i] * 3; b = a * a; c = b - a; Y[i] = c * c",
		 "Y[i] = (A[i]*3*(A[i]*3) - A[i]*3) * (A[i]*3*(A[i]*3) - A[i]*3)"},
		/* Conditions around a use count there. */
		{"v = A[i-1]; Y[i] = i > 0 ? v : 0", "Y[i] = i > 0 ? A[i-1] : 0"},
		{"v = A[i-1]; Y[i] = (i > 0 ? v : 0) + (i >= 1 ? v : 1)",
		 "Y[i] = (i > 0 ? A[i-1] : 0) + (i >= 1 ? A[i-1] : 1)"},
		{"v = 3; Y[i] = A[i+v]", "Y[i] = A[i+3]"},
		{"v = 2*i + j; Y[i,j] = A[v] * v where i<3, j<2",
		 "Y[i,j] = A[2*i+j] * (2*i+j) where i<3, j<2"},
		{"v = 0.5; Y[i] = v * A[i] + v; ", "Y[i] = 0.5 * A[i] + 0.5"},
		{"v = A[i] else 7; Y[i] = v * (i - 1 < 0 ? v : 2) where i<12",
		 "Y[i] = (A[i] else 7) * (i - 1 < 0 ? (A[i] else 7) : 2) where i<12"},
	};
	for (int k = 0; k < COUNT(m); k++) {
		Ir ir;
		ir_init(&ir);
		IR_ENTER(&ir, );
		Node *a = node_input(&ir, "A", RICCI_F32, 1, (int64_t[]){10});
		Node *with = result_of(&ir, m[k].with, 1, &a);
		Node *without = result_of(&ir, m[k].without, 1, &a);
		CHECK_REPORT(with == without, "%s\n%s", m[k].with, m[k].without);
		IR_LEAVE(&ir);
		ir_free(&ir);
	}
}

/* ---- what is refused ---- */

static void test_refused(void)
{
	static const struct {
		const char *text, *operands, *message;
	} m[] = {
		{"v = A[i]; Y[i] = A[i]", "A",
		 "equation: the value v is not used\n  v = A[i]; Y[i] = A[i]\n      ^"},
		{"v = A[i]; v = A[i]; Y[i] = v", "A",
		 "equation: the value v is given twice\n  v = A[i]; v = A[i]; Y[i] = v\n           "
		 " "
		 "^"},
		{"v = v * A[i]; Y[i] = v", "A",
		 "equation: the value of v depends on v\n  v = v * A[i]; Y[i] = v\n  ^"},
		{"Y[v] = A[v]; v = A[i]; Z[i] = v", "A",
		 "equation: v is used before its value is given\n  Y[v] = A[v]; v = A[i]; Z[i] = "
		 "v\n    ^"},
		{"v = A[i]; Y[i] = v[i]", "A",
		 "equation: v is a value: it has no indices and no size\n  v = A[i]; Y[i] = "
		 "v[i]\n                   ^"},
		{"A = B[i]; A[i] = A", "B",
		 "equation: A is a value and can't be a tensor\n  A = B[i]; A[i] = A\n            "
		 "^"},
		{"Y[i] = A[i]; A = Y[i]; Z[i] = A", "A",
		 "equation: A is a tensor and can't be a value\n  Y[i] = A[i]; A = Y[i]; Z[i] = "
		 "A\n               ^"},
		{"v = A[i]", "A",
		 "equation: expected an operator or ';' after a value, but the text ends\n  v = "
		 "A[i]\n          ^"},
		{"v = A[i];", "A",
		 "equation: expected the name of a tensor, but the text ends\n  v = A[i];\n        "
		 "   "
		 "^"},
		{"v = T[i]; Y[i] = A[v] * f32(v)", "TA",
		 "equation: the value T[i] indexes, in 64 bits, and is used as i32, too: write it "
		 "where it indexes\n  v = T[i]; Y[i] = A[v] * f32(v)\n      ^"},
		{"v = 7/2; Y[i] = A[i+v] * v", "A",
		 "equation: the value 7/2 indexes, in 64 bits, and is used as a float, too: write "
		 "it where it indexes\n  v = 7/2; Y[i] = A[i+v] * v\n      ^"},
	};
	for (int k = 0; k < COUNT(m); k++) {
		Ir ir;
		ir_init(&ir);
		CHECK(elaborate(&ir, m[k].text, m[k].operands) < 0);
		CHECK_STR(ir.err.text, m[k].message);
		ir_free(&ir);
	}
}

/* ---- texts of shared parts ---- */

static const char *own_name(void *user, Node *t)
{
	return t->op == OP_INPUT ? t->u.s : user;
}

/* n steps of a*(1-a): 2^n terms, 2n nodes. */
static Node *logistic(Ir *ir, int n)
{
	Node *x = node_input(ir, "X", RICCI_F32, 1, (int64_t[]){4});
	Node *axis = node_axis(ir, 0, 4), *a = node_read(ir, x, &axis);
	for (int k = 0; k < n; k++)
		a = node2(ir, OP_MUL, a, node2(ir, OP_SUB, node_const(ir, RICCI_F32, 1), a));
	return comp_dense(ir, RED_NONE, 1, 1, &axis, a);
}

static size_t printed_length(int n)
{
	Ir ir;
	size_t length = 0;
	ir_init(&ir);
	IR_ENTER(&ir, 0);
	Node *y = logistic(&ir, n), *x = node_input(&ir, "X", RICCI_F32, 1, (int64_t[]){4});
	Text t = {0};
	for (int ranged = 0; ranged < 2; ranged++) {
		text_free(&t);
		if (ranged)
			print_equation_ranged(&t, &ir, y, own_name, "Y");
		else
			print_equation(&t, &ir, y, own_name, "Y");
		CHECK(result_of(&ir, t.s, 1, &x) == y);
		length = t.n;
	}
	text_free(&t);
	print_program(&t, &ir, 1, &y, NULL);
	CHECK(result_of(&ir, t.s, 1, &x) == y);
	text_free(&t);
	IR_LEAVE(&ir);
	ir_free(&ir);
	return length;
}

static void test_length(void)
{
	size_t once = printed_length(100), twice = printed_length(200);
	CHECK_REPORT(twice < 2.2 * (double)once, "%zu %zu", once, twice);
	CHECK(printed_length(900) < 20 * once); /* numbers grow longer */
}

/* Equations of equal beginnings never print alike. */
static void check_tails(int n)
{
	Ir ir;
	ir_init(&ir);
	IR_ENTER(&ir, );
	Text a = {0}, b = {0};
	Node *y = logistic(&ir, n), *axis = comp_axis(y, 0);
	Node *s = node1(&ir, OP_SIN, comp_body(y)), *c = node1(&ir, OP_COS, comp_body(y));
	print_equation(&a, &ir, comp_dense(&ir, RED_NONE, 1, 1, &axis, s), own_name, "Y");
	print_equation(&b, &ir, comp_dense(&ir, RED_NONE, 1, 1, &axis, c), own_name, "Y");
	CHECK(strcmp(a.s, b.s) != 0);
	text_free(&a);
	text_free(&b);
	IR_LEAVE(&ir);
	ir_free(&ir);
}

static void test_tails(void)
{
	for (int n = 1; n < 60; n++)
		check_tails(n);
}

/* What is short is printed where it stands. */
static void test_short(void)
{
	Ir ir;
	ir_init(&ir);
	IR_ENTER(&ir, );
	Text t = {0};
	Node *y = logistic(&ir, 2);
	print_equation(&t, &ir, y, own_name, "Y");
	CHECK_STR(t.s, "Y[i] = X[i]*(1 - X[i])*(1 - X[i]*(1 - X[i]))");
	text_free(&t);
	IR_LEAVE(&ir);
	ir_free(&ir);
}

int main(void)
{
	test_meaning();
	test_refused();
	test_length();
	test_tails();
	test_short();
	return check_done();
}
