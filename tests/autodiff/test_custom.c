/* test_custom.c - stop gradients, gradients that the user gives, and second orders of both, through
 * the public interface: values by kernels, messages to the letter. */
#include "core/core.h"
#include "tests/check.h"

#include <ricci.h>
#include <stdlib.h>

enum { N = 5 };
static const double data[N] = {-1.5, -0.25, 0.5, 1, 2};

static ricci_tensor *vector(ricci_graph *g, const char *name)
{
	return ricci_input(g, name, RICCI_F64, 1, (int64_t[]){N});
}

/* The values of t where every input holds `data`. */
static void values_of(ricci_graph *g, ricci_tensor *t, int ninput, ricci_tensor *const *input,
		      double *out)
{
	char err[512] = "";
	ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1);
	memset(out, 0, ricci_bytes(t));
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, &o, 0, 1, &t);
	CHECK_STR(err, "");
	if (!s)
		return;
	for (int k = 0; k < ninput; k++)
		CHECK_INT(ricci_feed(s, input[k], data, ricci_bytes(input[k])), 0);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, t, out, ricci_bytes(t)), 0);
	ricci_session_free(s);
}

static ricci_tensor *grad(ricci_graph *g, ricci_tensor *y, ricci_tensor *x)
{
	ricci_tensor *d;
	ricci_grad(g, y, NULL, 1, &x, &d);
	return d;
}

static ricci_tensor *jvp(ricci_graph *g, ricci_tensor *y, ricci_tensor *x, ricci_tensor *t)
{
	ricci_tensor *d;
	ricci_jvp(g, y, 1, &x, &t, &d);
	return d;
}

/* ---- stop */

static void test_stop(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = vector(g, "x"), *s = ricci_stop_gradient(x);
	ricci_tensor *a = ricci_op(g, "Y[i] = X[i]*stop_gradient(X[i]*X[i])", x);
	ricci_tensor *b = ricci_op(g, "Y[i] = X[i]*S[i]*S[i]", x, s);
	ricci_tensor *c = ricci_op(
		g, "Y[i] = stop_gradient(exp(stop_gradient(X[i])*X[i])) + stop_gradient(2.0)", x);
	ricci_tensor *d[6] = {grad(g, a, x), grad(g, b, x), grad(g, c, x), jvp(g, b, x, x), a, c};
	ricci_tensor *count = ricci_input(g, "n", RICCI_I32, 0, NULL);
	CHECK(s != x);
	CHECK(ricci_stop_gradient(count) == count);
	CHECK(ricci_stop_gradient(NULL) == NULL);
	char *text = ricci_show(a);
	CHECK_STR(text, "Y[i] = x[i]*stop_gradient(x[i]*x[i]);\n");
	ricci_free_text(text);
	for (int k = 0; k < 6; k++) {
		double out[N];
		values_of(g, d[k], 1, &x, out);
		for (int i = 0; i < N; i++) {
			double v = data[i];
			double want[6] = {v * v, v * v, 0, v * v * v, v * v * v, exp(v * v) + 2};
			CHECK_NEAR(out[i], want[k], 1e-12 * fabs(want[k]));
		}
	}
	ricci_graph_free(g);
}

/* ---- custom gradients */

#define SOFTPLUS "Y[i] = log(1 + exp(A[i]))"

/* First and second order, backwards and forwards; equal equations without it keep their own. */
static void test_softplus(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = vector(g, "x");
	ricci_tensor *y = ricci_op_custom(g, SOFTPLUS, "dA[i] = 3*dY[i]*sigmoid(A[i])", x);
	ricci_tensor *plain = ricci_op(g, SOFTPLUS, x), *dy = grad(g, y, x);
	ricci_tensor *d[] = {
		y, plain, grad(g, plain, x), dy, grad(g, dy, x), jvp(g, y, x, x), jvp(g, dy, x, x)};
	CHECK(y != plain);
	CHECK_STR(ricci_name(y), "Y");
	for (int k = 0; k < COUNT(d); k++) {
		double out[N];
		values_of(g, d[k], 1, &x, out);
		for (int i = 0; i < N; i++) {
			double v = data[i], s = 1 / (1 + exp(-v)), f = log1p(exp(v));
			double want[] = {
				f, f, s, 3 * s, 3 * s * (1 - s), 3 * s * v, 3 * s * (1 - s) * v};
			CHECK_NEAR(out[i], want[k], 1e-12);
		}
	}
	ricci_graph_free(g);
}

/* Two results and three operands, one without a gradient, one that folding removes; the gradient
 * reads a result, and dA is read again. */
static void test_several(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *a = vector(g, "a"), *b = vector(g, "b"), *c = vector(g, "c"), *y[3];
	ricci_tensor *in[3] = {a, b, c}, *d[7], *loss;
	int n = 3;
	CHECK_INT(ricci_ops_custom(g, "P[i] = A[i]*B[i]; Q[i] = exp(A[i]) + C[i]*0*C[i]",
				   "dA[i] = dP[i]*B[i] + dQ[i]*Q[i]; dB[i] = 2*dA[i]", 3, in, &n,
				   y),
		  0);
	CHECK_INT(n, 2);
	CHECK_STR(ricci_name(y[1]), "Q");
	loss = ricci_op(g, "L[i] = P[i] + 5*Q[i] + A[i]", y[0], y[1], a);
	CHECK_INT(ricci_grad(g, loss, NULL, 3, in, d), 0);
	d[3] = grad(g, y[0], a);	     /* one of the results only */
	d[4] = grad(g, d[3], b);	     /* B */
	d[5] = grad(g, grad(g, y[1], a), a); /* through Q in the gradient: by the same rule */
	d[6] = jvp(g, loss, b, b);
	for (int k = 0; k < 7; k++) {
		double out[N];
		values_of(g, d[k], 3, in, out);
		for (int i = 0; i < N; i++) {
			double v = data[i], e = exp(v), s = v + 5 * e;
			double want[7] = {s + 1, 2 * s, 0, v, 1, e, 2 * s * v};
			CHECK_NEAR(out[i], want[k], 1e-12 * (1 + fabs(want[k])));
		}
	}
	ricci_graph_free(g);
}

/* L = S Q, S the sum of x, Q that of x^3/3: the gradient S x^2 + Q, the Hessian x_i^2 + x_j^2 and
 * on the diagonal 2 S x more. A penalty |dL|^2, and H x three ways. */
static void test_second_order(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = vector(g, "x");
	ricci_tensor *loss = ricci_op(g, "S[] += X[i]; Q[] += X[i]*X[i]*X[i]/3; L[] = S[]*Q[]", x);
	ricci_tensor *d = grad(g, loss, x), *d2;
	ricci_tensor *total = ricci_op(g, "T[] += (i == 0 ? L[] : 0) + D[i]*D[i]", loss, d);
	ricci_tensor *product = ricci_op(g, "P[] += D[i]*stop_gradient(X[i])", d, x);
	ricci_grad(g, d, x, 1, &x, &d2); /* H is symmetric */
	ricci_tensor *out[] = {d, grad(g, total, x), jvp(g, d, x, x), grad(g, product, x), d2};
	double got[N], dl[N], sum = 0, cubes = 0;
	for (int i = 0; i < N; i++) {
		sum += data[i];
		cubes += data[i] * data[i] * data[i] / 3;
	}
	for (int i = 0; i < N; i++)
		dl[i] = sum * data[i] * data[i] + cubes;
	for (int k = 0; k < COUNT(out); k++) {
		values_of(g, out[k], 1, &x, got);
		for (int i = 0; i < N; i++) {
			double want[] = {dl[i], dl[i], 0, 0, 0};
			for (int j = 0; j < N; j++) {
				double h = data[i] * data[i] + data[j] * data[j] +
					   (i == j ? 2 * sum * data[i] : 0);
				want[1] += 2 * h * dl[j];
				for (int way = 2; way < 5; way++)
					want[way] += h * data[j];
			}
			CHECK_NEAR(got[i], want[k], 1e-10);
		}
	}
	ricci_graph_free(g);
}

/* Many in a chain, each over the last: in time linear in their number. */
static void test_chain(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = vector(g, "x"), *y = x;
	double out[N];
	for (int k = 0; k < 100; k++)
		y = ricci_op_custom(g, "Y[i] = A[i]*0.5", "dA[i] = dY[i]", y);
	values_of(g, grad(g, y, x), 1, &x, out);
	for (int i = 0; i < N; i++)
		CHECK_NEAR(out[i], 1, 0);
	ricci_graph_free(g);
}

static void test_errors(void)
{
	static const struct {
		const char *text, *gradient, *message;
		int code;
	} bad[] = {
		{SOFTPLUS, "dA[i] = dY[i]*B[i]",
		 "ricci_op_custom: the gradient reads B; what it may read is A, Y, dY",
		 RICCI_EINVAL},
		{SOFTPLUS, "dB[i] = dY[i]",
		 "ricci_op_custom: the gradient computes dB, which is no operand's gradient: that "
		 "of A is dA",
		 RICCI_EINVAL},
		{SOFTPLUS, "dA[i,j] = dY[i]*Y[j]",
		 "ricci_op_custom: dA is f64 [5,5], but A is f64 [5]", RICCI_ESHAPE},
		{SOFTPLUS, "dA[i] = f32(dY[i])", "ricci_op_custom: dA is f32 [5], but A is f64 [5]",
		 RICCI_ETYPE},
		{"Y[i] = i32(A[i])", "dA[i] = dY[i]",
		 "ricci_op_custom: Y is i32; only floats have gradients", RICCI_ETYPE},
		{"Y[i] = dY[i]", "ddY[i] = dY[i]",
		 "ricci_op_custom: dY is the gradient of Y, so no operand can have that name",
		 RICCI_EINVAL},
		{"Y[i] = A[i]; Z[i] = A[i]", "dA[i] = dY[i]",
		 "ricci_op_custom: the text has 2 results, there is room for 1", RICCI_EINVAL},
		{SOFTPLUS, NULL, "ricci_op_custom: the text or that of the gradient is NULL",
		 RICCI_EINVAL},
	};
	for (int k = 0; k < COUNT(bad); k++) {
		ricci_graph *g = ricci_graph_new();
		ricci_tensor *x = vector(g, "x");
		ricci_tensor *y = ricci_op_custom(g, bad[k].text, bad[k].gradient, x);
		CHECK(y && ricci_rank(y) == 0);
		CHECK_STR(ricci_error_message(), bad[k].message);
		CHECK_INT(ricci_graph_error(g), bad[k].code);
		ricci_graph_free(g);
	}
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = vector(g, "x"), *y, *d;
	y = ricci_op_custom(g, SOFTPLUS, "dA[i] = dY[i]*dY[i]", x);
	CHECK_INT(ricci_jvp(g, y, 1, &x, &x, &d), RICCI_EUNSUPPORTED);
	CHECK_STR(ricci_error_message(), "ricci_jvp: the custom gradient 'dA[i] = dY[i]*dY[i]' "
					 "isn't linear in dY, so it has no forward mode");
	ricci_graph_free(g);
	CHECK(ricci_op_custom(NULL, SOFTPLUS, SOFTPLUS) == NULL);
}

static int failing(long fail_at)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = vector(g, "x"), *d[2];
	mem_fail_at(fail_at);
	ricci_tensor *y = ricci_op_custom(g, SOFTPLUS, "dA[i] = dY[i]*sigmoid(A[i])", x);
	y = ricci_stop_gradient(ricci_op(g, "Y[i] = stop_gradient(A[i])*A[i]", y));
	int code = ricci_grad(g, y, NULL, 1, &x, d);
	if (!code)
		code = ricci_jvp(g, y, 1, &x, &x, d + 1);
	mem_fail_at(0);
	CHECK_INT(ricci_graph_error(g), code);
	ricci_graph_free(g);
	return code;
}

static void test_memory(void)
{
	long before = mem_live();
	int failures = 0;
	for (long n = 1; failing(n) != 0 && n < 10000; n++)
		failures++;
	CHECK(failures > 0);
	CHECK_INT(failing(0), 0);
	CHECK_INT(mem_live(), before);
}

int main(void)
{
	test_stop();
	test_softplus();
	test_several();
	test_second_order();
	test_chain();
	test_errors();
	test_memory();
	return check_done();
}
