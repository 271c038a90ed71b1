/* test_forward.c - forward mode: <dy, J dx> = <J' dy, dx> against reverse mode on every operator,
 * on fixed equations and on random programs, against differences along a line, and the public call.
 */
#include "tests/autodiff/program.h"

/* An input like t with drawn data. */
static Node *filled_like(Bench *b, const Node *t)
{
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < tensor_rank(t); d++)
		shape[d] = tensor_extent(t, d);
	return filled(b, tensor_rank(t), shape, -1, 1);
}

/* y along x + s * t, at the first 20 elements where it is smooth. */
static void check_line(Bench *b, Node *y, int n, const int *x, const int *t, const double *tangent,
		       double tolerance)
{
	static const double at[4] = {1, -1, 2, -2};
	const double step = 1e-5;
	double *value[4];
	for (int k = 0; k < 4; k++) {
		for (int side = 1; side >= 0; side--) { /* there and back */
			for (int i = 0; i < n; i++)
				for (int64_t e = 0; e < tensor_size(b->bind[x[i]].tensor); e++)
					bench_data(b, x[i])[e] += (side ? 1 : -1) * step * at[k] *
								  bench_data(b, t[i])[e];
			if (side && !(value[k] = bench_value(b, y)))
				return;
		}
	}
	for (int64_t e = 0; e < tensor_size(y) && e < 20; e++) {
		double want = (value[0][e] - value[1][e]) / (2 * step);
		double wide = (value[2][e] - value[3][e]) / (4 * step);
		double scale = fmax(1, fmax(fabs(want), fabs(value[0][e])));
		double bend = value[0][e] + value[1][e] - (value[2][e] + value[3][e]) / 2;
		if (check_near(wide, want, tolerance * scale / 8) &&
		    fabs(bend) <= tolerance * scale * step)
			CHECK_REPORT(check_near(tangent[e], want, tolerance * scale),
				     "tangent[%d] is %.12g, differences give %.12g", (int)e,
				     tangent[e], want);
	}
}

/* exact: of <dy, J dx> and <J' dy, dx> to one another */
static bool check_forward(Bench *b, Node *y, double exact, double tolerance)
{
	Ir *ir = &b->ir;
	Node *x[MAX_OPERANDS], *t[MAX_OPERANDS], *grad[MAX_OPERANDS], *part[MAX_OPERANDS], *ty;
	int n = 0, xat[MAX_OPERANDS], tat[MAX_OPERANDS], operands = b->n, before = check_failed;
	for (int k = 0; k < operands && 2 * n < MAX_OPERANDS - operands - 2; k++)
		if (b->bind[k].tensor->type == RICCI_F64) {
			xat[n] = k;
			x[n] = b->bind[k].tensor;
			tat[n] = b->n;
			t[n++] = filled_like(b, b->bind[k].tensor);
		}
	Node *u = filled_like(b, y);
	CHECK_INT(autodiff_forward(ir, y, n, x, t, &ty), 0);
	CHECK_INT(autodiff_reverse(ir, y, u, n, x, grad), 0);
	CHECK_INT(ty->type, y->type);
	CHECK_INT(tensor_rank(ty), tensor_rank(y));
	for (int k = 0; k < n; k++)
		part[k] = inner(ir, grad[k], t[k]);
	double *forward = bench_value(b, inner(ir, ty, u)), *tangent = bench_value(b, ty);
	double *reverse = bench_value(b, scalar_sum(ir, n, part));
	if (forward && reverse && tangent) {
		CHECK_NEAR(*forward, *reverse, exact * fmax(1, fabs(*reverse)));
		check_line(b, y, n, xat, tat, tangent, tolerance);
	}
	if (check_failed != before)
		print_on_failure(b, 2, (Node *[]){y, ty});
	return check_failed == before;
}

static void scalar_operator(Bench *b, int op)
{
	Ir *ir = &b->ir;
	int64_t shape[1] = {6};
	Node *i = node_axis(ir, 0, 6), *x = node_read(ir, filled(b, 1, shape, 0.3, 0.9), &i);
	Node *z = node_read(ir, filled(b, 1, shape, 0.3, 0.9), &i);
	Node *y = op_info[op].nsrc == 2 ? node2(ir, op, x, z) : node1(ir, op, x);
	check_forward(b, comp_dense(ir, RED_NONE, 1, 1, &i, node_mul(ir, y, x)), 1e-9, 2e-5);
}

static const char *const texts[] = {
	"Y[i,j] += A[i,k]*B[k,j]",
	"Y[i] max= A[i,j]*B[j,i]",
	"Y[i] min= A[i,j] + exp(B[j,k])",
	"Y[i] *= A[i,j]*B[j,k]",
	"Y[] *= A[i,j]*B[j,k]",
	"Y[i+j:7] max= A[i,j]*B[j,i]",
	"Y[2*i+j:11] += A[i,j]*B[j,0]",
	"Y[i,j] = i<j ? A[i,j]*B[j,i] : sqrt(A[i,j])",
	"Y[i,k] += (A[i+r-1,k] else 2)*B[k,i] where r<3",
	"I[i] = i64(floor(B[i,0]*5)); Y[i] = (A[I[i],i] else 0.5)*B[i,1]",
	"m[i] max= A[i,j]; e[i,j] = exp(A[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]*B[i,j]",
	"Y[i,j] = f64(f32(A[i,j])) * B[i,j]",
};

static void text_case(Bench *b, int which)
{
	static const int64_t shape[2] = {4, 4};
	Node *operand[2] = {filled(b, 2, shape, 0.3, 1.3), filled(b, 2, shape, 0.3, 1.3)}, *y;
	int n = 1;
	notation_elaborate(&b->ir, texts[which], 2, operand, &n, &y, 1);
	CHECK_REPORT(!b->ir.err.code, "%s: %s", texts[which], b->ir.err.text);
	bool narrow = strstr(texts[which], "f32") != NULL;
	if (!b->ir.err.code && !check_forward(b, y, narrow ? 1e-6 : 1e-9, narrow ? 1 : 2e-5))
		fprintf(stderr, "in %s\n", texts[which]);
}

/* Equal extrema share equally, zero factors are no trouble. */
static void ties(Bench *b, int which)
{
	static const char *const text[] = {"Y[] max= A[i]", "Y[] *= A[i]"};
	static const double data[2][4] = {{3, 1, 3, 2}, {2, 0, 3, 4}}, want[] = {20, 48};
	Node *x = filled(b, 1, (int64_t[]){4}, 0, 1), *t = filled(b, 1, (int64_t[]){4}, 0, 1), *y;
	Node *ty;
	int n = 1;
	for (int k = 0; k < 4; k++) {
		bench_data(b, 0)[k] = data[which][k];
		bench_data(b, 1)[k] = which ? k + 1 : 10 * (k + 1);
	}
	notation_elaborate(&b->ir, text[which], 1, &x, &n, &y, 1);
	CHECK_INT(autodiff_forward(&b->ir, y, 1, &x, &t, &ty), 0);
	CHECK_NEAR(*bench_value(b, ty), want[which], 1e-12);
}

/* An inner tensor as x keeps what flows into it; y itself; nothing at all. */
static void edges(Bench *b, int which)
{
	Node *x = filled(b, 1, (int64_t[]){3}, 0, 1), *t = filled(b, 1, (int64_t[]){3}, 0, 1),
	     *y[2];
	Node *out;
	int n = 1;
	(void)which;
	notation_elaborate(&b->ir, "M[i] = A[i]*A[i]", 1, &x, &n, &y[0], 1);
	notation_elaborate(&b->ir, "Y[i] = M[i]*3", 1, &y[0], &n, &y[1], 1);
	autodiff_forward(&b->ir, y[1], 2, (Node *[]){x, y[0]}, (Node *[]){t, t}, &out);
	double *got = bench_value(b, out), *a = bench_data(b, 0), *d = bench_data(b, 1);
	for (int k = 0; k < 3; k++)
		CHECK_NEAR(got[k], 3 * (2 * a[k] + 1) * d[k], 1e-12);
	autodiff_forward(&b->ir, x, 2, (Node *[]){x, x}, (Node *[]){t, t}, &out);
	for (int k = 0; k < 3; k++)
		CHECK_NEAR(bench_value(b, out)[k], 2 * d[k], 1e-12);
	autodiff_forward(&b->ir, x, 1, &y[1], &t, &out);
	for (int k = 0; k < 3; k++)
		CHECK_NEAR(bench_value(b, out)[k], 0, 0);
}

static void random_program(Bench *b, int which)
{
	(void)which;
	check_forward(b, random_chain(b), 1e-9, 1e-4);
}

/* ---- the public call */

static void test_api(void)
{
	static const int64_t two[2] = {2, 2};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, two), *out, *again;
	ricci_tensor *t = ricci_input(g, "t", RICCI_F32, 2, two);
	ricci_tensor *y = ricci_op(g, "Y[i] += X[i,j]*X[j,i]", x), *grad;
	CHECK_INT(ricci_jvp(g, y, 1, &x, &t, &out), 0);
	CHECK_INT(ricci_rank(out), 1);
	CHECK_INT(ricci_jvp(g, y, 1, &x, &t, &again), 0);
	CHECK(out == again);
	CHECK_INT(ricci_grad(g, y, NULL, 1, &x, &grad), 0);
	CHECK_INT(ricci_jvp(g, grad, 1, &x, &t, &out), 0);
	CHECK_INT(ricci_rank(out), 2);
	CHECK_INT(ricci_jvp(g, y, 1, &x, &y, &out), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(), "ricci_jvp: tangent[0] must be a tensor of this graph, of "
					 "the type and the shape of x[0]");
	CHECK(out && ricci_rank(out) == 0);
	CHECK_INT(ricci_jvp(g, y, 1, &x, &t, &out), RICCI_ESHAPE); /* sticky */
	CHECK_INT(ricci_jvp(NULL, y, 1, &x, &t, &out), RICCI_EINVAL);
	ricci_graph_free(g);
}

static int product(long fail_at)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){9, 9}), *out;
	ricci_tensor *t = ricci_input(g, "t", RICCI_F32, 2, (int64_t[]){9, 9});
	ricci_tensor *y = x;
	for (int k = 0; k < 60; k++) /* more than the arena has room for already */
		y = ricci_op(g, "Y[i,j] = X[i,j]*tanh(X[j,i])", y);
	y = ricci_op(g, "Y[p] max= X[2*p+r,r]*X[r,p] where p<3", y);
	mem_fail_at(fail_at);
	int code = ricci_jvp(g, y, 1, &x, &t, &out);
	mem_fail_at(0);
	CHECK_INT(ricci_graph_error(g), code);
	CHECK(out);
	ricci_graph_free(g);
	return code;
}

static void test_memory(void)
{
	long before = mem_live();
	int failures = 0;
	for (long n = 1; product(n) != 0 && n < 10000; n++)
		failures++;
	CHECK(failures > 0);
	CHECK_INT(product(0), 0);
	CHECK_INT(mem_live(), before);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 300, bad = 0;
	for (int op = 0; op < OP_COUNT; op++)
		if (program_differentiable(op) && !in_bench(scalar_operator, op))
			fprintf(stderr, "in operator %s\n", op_info[op].name);
	for (int k = 0; k < COUNT(texts); k++)
		in_bench(text_case, k);
	in_bench(ties, 0);
	in_bench(ties, 1);
	in_bench(edges, 0);
	for (int k = 0; k < rounds && bad < 5; k++)
		if (!in_bench(random_program, k)) {
			fprintf(stderr, "in random program %d\n", k);
			bad++;
		}
	test_api();
	test_memory();
	return check_done();
}
