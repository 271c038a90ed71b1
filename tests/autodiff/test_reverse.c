/* test_reverse.c - reverse mode over graphs: what is asked of it at the edges (unrelated tensors, y
 * itself, several uses, constants), determinism, size and time on 10,000 equations, the public call
 * and its errors, memory running out anywhere. */
#include "tests/autodiff/harness.h"

static Node *element(Ir *ir, Node *t, Node *i)
{
	return node_read(ir, t, &i);
}

static Node *pointwise(Ir *ir, Op op, Node *a, Node *b)
{
	Node *i = node_axis(ir, 0, tensor_extent(a, 0));
	Node *x = element(ir, a, i);
	return comp_dense(ir, RED_NONE, 1, 1, &i,
			  b ? node2(ir, op, x, element(ir, b, i)) : node1(ir, op, x));
}

/* A chain of n equations, every third with a second, older operand. */
static Node *chain(Ir *ir, Node *x, Node *w, int n)
{
	Node *y = x, *old = x;
	for (int k = 0; k < n; k++) {
		y = k % 3 == 0	 ? pointwise(ir, OP_MUL, y, w)
		    : k % 3 == 1 ? pointwise(ir, OP_TANH, y, NULL)
				 : pointwise(ir, OP_ADD, y, old);
		if (k % 7 == 0)
			old = y;
	}
	return y;
}

static void edges(Bench *b)
{
	Ir *ir = &b->ir;
	Node *x = bench_input(b, "x", RICCI_F64, 1, (int64_t[]){3});
	Node *z = bench_input(b, "z", RICCI_F64, 2, (int64_t[]){2, 2});
	Node *t = bench_input(b, "t", RICCI_I64, 1, (int64_t[]){3}), *g[4];
	for (int k = 0; k < 3; k++)
		bench_data(b, 0)[k] = k + 1;
	Node *square = pointwise(ir, OP_MUL, x, x), *y = pointwise(ir, OP_ADD, square, x);
	CHECK_INT(autodiff_reverse(ir, y, NULL, 4, (Node *[]){x, z, y, square}, g), 0);
	for (int k = 0; k < 3; k++)
		CHECK_NEAR(bench_value(b, g[0])[k], 2 * (k + 1) + 1, 0);
	CHECK_INT(tensor_rank(g[1]), 2);
	for (int k = 0; k < 4; k++)
		CHECK_NEAR(bench_value(b, g[1])[k], 0, 0);
	for (int k = 0; k < 3; k++) {
		CHECK_NEAR(bench_value(b, g[2])[k], 1, 0);
		CHECK_NEAR(bench_value(b, g[3])[k], 1, 0);
	}
	Node *ones = tensor_rank(g[2]) == 1 ? g[2] : NULL, *again[1];
	CHECK_INT(autodiff_reverse(ir, y, ones, 1, &x, again), 0);
	CHECK(again[0] == g[0]);
	CHECK_INT(autodiff_reverse(ir, y, NULL, 0, NULL, NULL), 0);
	CHECK_INT(autodiff_reverse(ir, y, NULL, 1, &t, g), RICCI_ETYPE);
	CHECK_STR(ir->err.text, "gradient by a tensor of type i64: only floats have one");
}

/* Gradients have the types of their tensors; integers are passed over. */
static void types(Bench *b)
{
	Ir *ir = &b->ir;
	Node *in[4] = {bench_input(b, "x", RICCI_BF16, 2, (int64_t[]){3, 2}),
		       bench_input(b, "w", RICCI_F32, 1, (int64_t[]){2}),
		       bench_input(b, "t", RICCI_I64, 1, (int64_t[]){3}),
		       bench_input(b, "d", RICCI_F64, 1, (int64_t[]){3})};
	Node *y, *g[3];
	int n = 1;
	notation_elaborate(ir, "Y[i] max= f64(f32(X[i,j])*W[j] + f32(T[i])) + D[i]", 4, in, &n, &y,
			   1);
	CHECK_STR(ir->err.text, "");
	CHECK_INT(autodiff_reverse(ir, y, NULL, 3, (Node *[]){in[0], in[1], in[3]}, g), 0);
	CHECK_INT(g[0]->type, RICCI_BF16);
	CHECK_INT(g[1]->type, RICCI_F32);
	CHECK_INT(g[2]->type, RICCI_F64);
	for (int k = 0; k < 3; k++)
		CHECK_NEAR(bench_value(b, g[2])[k], 1, 0);
}

/* A long product with none, one and two zeros. */
static void long_product(Bench *b)
{
	Node *x = bench_input(b, "x", RICCI_F64, 2, (int64_t[]){3, 40}), *y, *g;
	int n = 1;
	for (int k = 0; k < 120; k++)
		bench_data(b, 0)[k] = k == 45 || k == 85 || k == 99 ? 0 : k % 2 ? 2 : 0.5;
	notation_elaborate(&b->ir, "Y[i] *= X[i,j]", 1, &x, &n, &y, 1);
	CHECK_INT(autodiff_reverse(&b->ir, y, NULL, 1, &x, &g), 0);
	double *got = bench_value(b, g);
	for (int k = 0; k < 120; k++)
		CHECK_NEAR(got[k], k < 40 ? (k % 2 ? 0.5 : 2) : k == 45 ? 0.5 : 0, 1e-12);
}

/* Products for each element of a tensor that has all dimensions there can be. */
static void wide_product(Bench *b)
{
	int64_t shape[RICCI_MAX_RANK];
	Node *in[2], *y, *g[2];
	int n = 1;
	for (int d = 0; d < RICCI_MAX_RANK; d++)
		shape[d] = d == 2 ? 3 : d == 9 ? 2 : 1;
	in[0] = bench_input(b, "a", RICCI_F64, RICCI_MAX_RANK, shape);
	in[1] = bench_input(b, "b", RICCI_F64, 1, (int64_t[]){5});
	for (int k = 0; k < 6; k++)
		bench_data(b, 0)[k] = k - 2;
	for (int k = 0; k < 5; k++)
		bench_data(b, 1)[k] = k - 1;
	notation_elaborate(
		&b->ir,
		"Y[c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r] *= A[c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r]+B[s]", 2,
		in, &n, &y, 1);
	CHECK_STR(b->ir.err.text, "");
	CHECK_INT(autodiff_reverse(&b->ir, y, NULL, 2, in, g), 0);
	double want[5] = {0};
	for (int a = 0; a < 6; a++) {
		double all = 0;
		for (int k = 0; k < 5; k++) {
			double others = 1;
			for (int j = 0; j < 5; j++)
				others *= j == k ? 1 : a - 2 + j - 1;
			all += others;
			want[k] += others;
		}
		CHECK_NEAR(bench_value(b, g[0])[a], all, 1e-12);
	}
	for (int k = 0; k < 5; k++)
		CHECK_NEAR(bench_value(b, g[1])[k], want[k], 1e-12);
}

static char *gradient_text(int n, size_t *nodes)
{
	Bench b = {0};
	jmp_buf oom;
	Text text = {0};
	ir_init(&b.ir);
	b.ir.arena.oom = &oom;
	if (!setjmp(oom)) {
		Node *wrt[2] = {bench_input(&b, "x", RICCI_F64, 1, (int64_t[]){4}),
				bench_input(&b, "w", RICCI_F64, 1, (int64_t[]){4})};
		Node *g[2], *y = chain(&b.ir, wrt[0], wrt[1], n);
		size_t before = b.ir.count;
		CHECK_INT(autodiff_reverse(&b.ir, y, NULL, 2, wrt, g), 0);
		*nodes = b.ir.count - before;
		print_program(&text, &b.ir, 2, g, (const char *[]){"dx", "dw"});
	}
	ir_free(&b.ir);
	return text.s;
}

static void test_deterministic_and_linear(void)
{
	size_t few, more, same;
	char *a = gradient_text(100, &few), *b = gradient_text(100, &same),
	     *c = gradient_text(200, &more);
	CHECK_STR(a, b);
	CHECK_INT(few, same);
	CHECK(more < 2 * few + few / 5);
	mem_free(a);
	mem_free(b);
	mem_free(c);
}

/* 10,000 equations, and one tensor used 10,000 times. */
static void long_graphs(Bench *b)
{
	Ir *ir = &b->ir;
	Node *wrt[2] = {bench_input(b, "x", RICCI_F64, 1, (int64_t[]){4}),
			bench_input(b, "w", RICCI_F64, 1, (int64_t[]){4})};
	Node *g[2], *y = chain(ir, wrt[0], wrt[1], 10000), *sum = wrt[0];
	CHECK_INT(autodiff_reverse(ir, y, NULL, 2, wrt, g), 0);
	for (int k = 0; k < 10000; k++) {
		Node *i = node_axis(ir, 0, 4), *factor = node_const(ir, RICCI_F64, k % 10);
		Node *part = node_mul(ir, element(ir, wrt[1], i), factor);
		sum = comp_dense(ir, RED_NONE, 1, 1, &i, node_add(ir, element(ir, sum, i), part));
	}
	bench_data(b, 1)[0] = 0.5;
	CHECK_INT(autodiff_reverse(ir, sum, NULL, 2, wrt, g), 0);
	CHECK_NEAR(bench_value(b, g[1])[0], 45000, 0);
	Node *f = wrt[0], **order, **reads; /* what flows into w is summed in stages */
	for (int k = 0; k < 1000; k++)
		f = pointwise(ir, OP_MUL, pointwise(ir, OP_TANH, f, NULL), wrt[1]);
	CHECK_INT(autodiff_reverse(ir, f, NULL, 2, wrt, g), 0);
	int n = graph_order(ir, 2, g, &order);
	for (int k = 0; k < n; k++)
		CHECK(comp_reads(ir, order[k], &reads) <= 100);
}

static void in_bench(void (*f)(Bench *b))
{
	Bench b = {0};
	jmp_buf oom;
	ir_init(&b.ir);
	b.ir.arena.oom = &oom;
	if (setjmp(oom))
		CHECK_REPORT(false, "jump: %s", b.ir.err.text);
	else
		f(&b);
	ir_free(&b.ir);
}

/* ---- choices in choices */

/* The equation of the gradient by x, as it prints. */
static void check_gradient(const char *text, int n, const char *gradient)
{
	static const char *const names[] = {"a", "b", "t", "x"};
	static const ricci_type types[] = {RICCI_I32, RICCI_F32, RICCI_I32, RICCI_F32};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *operand[4], *y, *dx;
	int results = 1;
	for (int k = 0; k < n; k++) /* the first ones, and x */
		operand[k] = ricci_input(g, names[k < n - 1 ? k : 3], types[k < n - 1 ? k : 3], 1,
					 (int64_t[]){8});
	CHECK_INT(ricci_ops(g, text, n, operand, &results, &y), 0);
	ricci_grad(g, y, NULL, 1, &operand[n - 1], &dx);
	CHECK_GRAPH(g);
	char *shown = ricci_show(dx);
	CHECK_STR(shown, gradient);
	ricci_free_text(shown);
	ricci_graph_free(g);
}

/* What can't be reached has no term, and what is known there is not asked again. */
static void test_guards(void)
{
	check_gradient("Y[i] = A[i] < 2 ? (B[i] > 0 ? X[i] : (A[i] < 2 ? 2*X[i] : X[7-i])) : 1.0",
		       3, "t4[i] = a[i] < 2 ? 0 < b[i] ? 1.0 : 2.0 : 0.0;\n");
	check_gradient(
		"Y[i] = A[i] < 2 && B[i] > 0 && T[i] < 8 ? (A[i] < 2 ? 3.0 : X[T[i]]) : X[i]", 4,
		"t5[i] = a[i] < 2 && 0 < b[i] && t[i] < 8 ? 0.0 : 1.0;\n");
	check_gradient("Y[i] = (A[i] < 2 ? X[i] : 1.0)*(A[i] < 2 ? 2.0 : 3.0)", 2,
		       "t3[i] = a[i] < 2 ? 2.0 : 0.0;\n");
	check_gradient("Y[i] = f32(A[i])*X[(A[i] < 2 ? i : 7-i) + (A[i] < 2 ? 0 : -i%2)]", 2,
		       "T1[i] += 2 <= a[-2*i+j+6] ? f32(a[-2*i+j+6]) : 0 where i<4;\n"
		       "t3[i] = (a[i] < 2 ? f32(a[i]) : 0) + (i%2 == 1 ? T1[i/2] : 0);\n");
}

/* ---- the public call */

static const int64_t two[2] = {2, 2};

static void test_api(void)
{
	ricci_graph *g = ricci_graph_new(), *other = ricci_graph_new();
	ricci_tensor *a = ricci_input(g, "a", RICCI_F32, 2, two);
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, two, ricci_constant(1)), *grads[2];
	ricci_tensor *y = ricci_op(g, "Y[] += A[i,k]*W[k,i]", a, w);
	ricci_tensor *wrt[2] = {a, w};
	CHECK_INT(ricci_grad(g, y, NULL, 2, wrt, grads), 0);
	char *text = ricci_show(grads[1]);
	CHECK(text && strstr(text, "a[j,i]"));
	ricci_free_text(text);
	CHECK_INT(ricci_dtype(grads[0]), RICCI_F32);
	CHECK_INT(ricci_extent(grads[0], 1), 2);
	CHECK_INT(ricci_grad(g, y, y, 2, wrt, grads), 0); /* any tensor of y's shape is a seed */
	CHECK_INT(ricci_graph_error(g), 0);
	CHECK_INT(ricci_grad(g, y, a, 2, wrt, grads), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(),
		  "ricci_grad: the seed must have the type and the shape of y");
	CHECK(grads[0] && ricci_rank(grads[0]) == 0);
	CHECK_INT(ricci_grad(g, y, NULL, 2, wrt, grads), RICCI_ESHAPE); /* sticky */
	CHECK_INT(ricci_grad(NULL, y, NULL, 2, wrt, grads), RICCI_EINVAL);
	ricci_tensor *foreign = ricci_input(other, "f", RICCI_I32, 0, NULL);
	CHECK_INT(ricci_grad(other, foreign, NULL, 1, &a, grads), RICCI_ETYPE);
	CHECK_STR(ricci_error_message(), "ricci_grad: y is i32; only floats have gradients");
	ricci_graph_free(other);
	other = ricci_graph_new();
	foreign = ricci_input(other, "f", RICCI_F32, 0, NULL);
	CHECK_INT(ricci_grad(other, foreign, NULL, 1, &a, grads), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_grad: wrt[0] is not a tensor of this graph");
	ricci_graph_free(other);
	ricci_graph_free(g);
}

/* A sum that a window does not look at is taken before its residues, where it is long and what it
 * leaves is not many times as large as the operands. */
static void test_windows(void)
{
	static const struct {
		int64_t k, taps, places;
		const char *start;
	} test[] = {{32, 3, 5, "T1[i,j] += dy[k,j]*w[k,i];\n"},
		    {31, 3, 5, "T1[i] += 0 <= i - j"},
		    {32, 201, 1000, "T1[i] += 0 <= i - j"}};
	for (int k = 0; k < COUNT(test); k++) {
		ricci_graph *g = ricci_graph_new();
		int64_t size = 2 * test[k].places + test[k].taps - 2;
		int64_t dims[2] = {test[k].k, test[k].taps}, result[2] = {dims[0], test[k].places};
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, &size), *d;
		ricci_tensor *w = ricci_input(g, "w", RICCI_F32, 2, dims);
		ricci_tensor *dy = ricci_input(g, "dy", RICCI_F32, 2, result);
		ricci_tensor *y = ricci_op(g, "Y[k,p] += X[2*p+r]*W[k,r]", x, w);
		CHECK_INT(ricci_grad(g, y, dy, 1, &x, &d), 0);
		char *text = ricci_show(d);
		CHECK(strstr(text, test[k].start) == text);
		ricci_free_text(text);
		ricci_graph_free(g);
	}
}

static int convolution(long fail_at)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){9, 9}), *grads[3];
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){3, 3}, ricci_normal(1));
	ricci_tensor *v = ricci_param(g, "v", RICCI_F32, 3, (int64_t[]){40, 3, 3}, ricci_normal(1));
	ricci_tensor *y = ricci_op(g,
				   "Y[p,q] max= X[2*p+r,2*q+s]*W[r,s];"
				   "Z[k,p,q] += Y[2*p+r,q+s]*V[k,r,s] where p<1, q<2",
				   x, w, v);
	mem_fail_at(fail_at);
	int code = ricci_grad(g, y, NULL, 3, (ricci_tensor *[]){x, w, v}, grads);
	mem_fail_at(0);
	CHECK_INT(ricci_graph_error(g), code);
	CHECK(grads[0] && grads[1] && grads[2]);
	ricci_graph_free(g);
	return code;
}

static void test_memory(void)
{
	long before = mem_live();
	int failures = 0;
	for (long n = 1; convolution(n) != 0 && n < 10000; n++)
		failures++;
	CHECK(failures > 0);
	CHECK_INT(convolution(0), 0);
	CHECK_INT(mem_live(), before);
}

int main(void)
{
	in_bench(edges);
	in_bench(types);
	in_bench(long_product);
	in_bench(wide_product);
	test_deterministic_and_linear();
	in_bench(long_graphs);
	test_guards();
	test_api();
	test_windows();
	test_memory();
	return check_done();
}
