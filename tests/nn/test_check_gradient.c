/* ricci_check_gradient: it agrees with right gradients, names the worst element of wrong ones, and
 * passes over kinks; what it says to wrong arguments. */
#include "nn/nn.h"
#include "tests/check.h"

#define SHAPE(...)                                                                                 \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* A small net: gathers, a convolution, kinks, a loop, dropout. */
static void right(ricci_type type)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *t = ricci_input(g, "t", RICCI_I32, SHAPE(4, 2));
	ricci_tensor *e = ricci_param(g, "e", type, SHAPE(7, 3), ricci_normal(1));
	ricci_tensor *b = ricci_param(g, "b", type, SHAPE(3), ricci_constant(0));
	ricci_tensor *x =
		ricci_op(g, "T, E, B -> X: X[t,b,j] = max(E[T[t,b],j] + B[j], 0.0)", t, e, b);
	ricci_tensor *y = ricci_recurrent(
		x, "",
		&RICCI_RECURRENT(.cell = ricci_gru(), .hidden = 2, .layers = 2, .dropout = 0.3));
	ricci_tensor *loss = ricci_op(g, "L[] += Y[...] * Y[...]", y);
	for (int train = 0; train < 2; train++) {
		ricci_gradient_report report = RICCI_GRADIENT_REPORT();
		int code = ricci_check_gradient(loss, 0, NULL,
						&RICCI_GRADIENT_CHECK(.train = train), &report);
		CHECK_REPORT(!code, "%s", ricci_error_message());
		CHECK_INT(report.checked + report.skipped,
			  21 + 3 + 6 * 3 + 2 * 6 + 6 * 2 + 6 * 2 + 2 * 6 + 2 * 6);
		CHECK(report.skipped < 3 && report.tensor && report.error < 1e-6);
	}
	CHECK_INT(ricci_graph_error(g), 0);
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.threads = 1), 0, 1, &loss);
	CHECK(s != NULL);
	CHECK_INT(ricci_check_gradient(loss, 0, NULL, NULL, NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: the graph has sessions; check before they are made");
	ricci_session_free(s);
	CHECK_INT(ricci_check_gradient(loss, 1, &b, NULL, NULL), 0);
	ricci_graph_free(g);
}

/* A gradient of a user's that is wrong in one element. */
static void wrong_gradient(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F64, SHAPE(2, 3));
	ricci_tensor *w = ricci_param(g, "w", RICCI_F64, SHAPE(2, 3), ricci_constant(1));
	ricci_tensor *y =
		ricci_op_custom(g, "Y[i,j] = W[i,j]*W[i,j]",
				"dW[i,j] = dY[i,j]*W[i,j]*(i == 1 && j == 2 ? 1.5 : 2.0)", w);
	ricci_tensor *loss = ricci_op(g, "L[] += Y[i,j]*X[i,j]", y, x);
	const double xs[] = {1, 2, 3, 4, 5, 6}, ws[] = {1, 1, 1, 1, 1, 2};
	ricci_value values[] = {{x, xs, sizeof xs}, {w, ws, sizeof ws}};
	ricci_gradient_check o = RICCI_GRADIENT_CHECK(.nvalue = 2, .value = values);
	ricci_gradient_report r = RICCI_GRADIENT_REPORT();
	CHECK_INT(ricci_check_gradient(loss, 0, NULL, &o, &r), RICCI_EVALUE);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: the derivative by w[1,2] is 18 by the gradient, 24 by "
		  "differences: a relative error of 0.25, the tolerance is 1e-06");
	CHECK_INT(r.checked, 6);
	CHECK(r.tensor == w);
	CHECK_INT(r.element[0], 1);
	CHECK_INT(r.element[1], 2);
	CHECK_NEAR(r.gradient, 18, 1e-12);
	CHECK_NEAR(r.difference, 24, 1e-6);
	CHECK_NEAR(r.error, 0.25, 1e-7);
	o.tolerance = 0.3;
	CHECK_INT(ricci_check_gradient(loss, 0, NULL, &o, NULL), 0);
	CHECK_INT(ricci_check_gradient(loss, 1, &x, NULL, NULL), 0);
	CHECK_INT(ricci_graph_error(g), 0);
	ricci_graph_free(g);
}

/* A forgotten factor that is zero, or no number, is no agreement. */
static void zero_and_nan(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, SHAPE(2), ricci_uniform(1, 2));
	ricci_tensor *none = ricci_op_custom(g, "Y[i] = W[i]*W[i]", "dW[i] = 0*dY[i]", w);
	CHECK_INT(ricci_check_gradient(none, 0, NULL, NULL, NULL), RICCI_EVALUE);
	ricci_tensor *nan = ricci_op_custom(g, "Y[i] = W[i]*W[i]", "dW[i] = dY[i]*sqrt(-W[i])", w);
	ricci_gradient_report r = RICCI_GRADIENT_REPORT();
	CHECK_INT(ricci_check_gradient(nan, 0, NULL, NULL, &r), RICCI_EVALUE);
	CHECK(isinf(r.error) && isnan(r.gradient));
	/* one that it does not depend on */
	ricci_tensor *other = ricci_param(g, "other", RICCI_F32, SHAPE(2), ricci_constant(0));
	CHECK_INT(ricci_check_gradient(w, 1, &other, NULL, &r), 0);
	CHECK_INT(r.checked, 0);
	ricci_graph_free(g);
}

/* Kinks and jumps: elements beside one are passed over, but not all of them. */
static void kinks(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F64, SHAPE(3));
	ricci_tensor *loss = ricci_op(g, "L[] += abs(X[i])*X[i] + abs(X[i])", x);
	double values[] = {1e-8, 0.5, -0.5};
	ricci_value value = {x, values, sizeof values};
	ricci_gradient_check o = RICCI_GRADIENT_CHECK(.nvalue = 1, .value = &value);
	ricci_gradient_report r = RICCI_GRADIENT_REPORT();
	CHECK_INT(ricci_check_gradient(loss, 1, &x, &o, &r), 0);
	CHECK_INT(r.checked, 2);
	CHECK_INT(r.skipped, 1);
	ricci_tensor *jump = ricci_op(g, "L[] += X[i] > 0 ? 1.0 + X[i] : X[i]", x);
	values[0] = values[1] = values[2] = 1e-7;
	CHECK_INT(ricci_check_gradient(jump, 1, &x, &o, &r), RICCI_EVALUE);
	CHECK_INT(r.skipped, 3);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: differences don't converge at any of 3 elements: the loss "
		  "jumps, has kinks, or is rounded to 16 bits");
	ricci_graph_free(g);
}

/* Of a large tensor a sample, which reaches from its first part to its last. */
static void samples(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(100));
	ricci_tensor *y = ricci_op(g, "Y[i] = X[i]*X[i]", x);
	ricci_gradient_report r = RICCI_GRADIENT_REPORT();
	CHECK_INT(ricci_check_gradient(y, 1, &x, NULL, &r), 0);
	CHECK_INT(r.checked, 32);
	CHECK_INT(ricci_check_gradient(y, 1, &x, &RICCI_GRADIENT_CHECK(.samples = 200), &r), 0);
	CHECK_INT(r.checked, 100);
	ricci_graph_free(g);
}

static void arguments(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(2));
	ricci_tensor *i = ricci_input(g, "i", RICCI_I32, SHAPE(2));
	ricci_tensor *y = ricci_op(g, "Y[i] = X[i]*2", x);
	ricci_value value = {x, "", 1};
	CHECK_INT(ricci_check_gradient(NULL, 0, NULL, NULL, NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: no loss, or no tensors to differentiate by");
	CHECK_INT(ricci_check_gradient(y, 0, NULL, NULL, NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: the graph has no parameters; name the "
		  "tensors to differentiate by");
	CHECK_INT(ricci_check_gradient(i, 1, &x, NULL, NULL), RICCI_ETYPE);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: the loss is i32, it must be a float");
	CHECK_INT(ricci_check_gradient(y, 1, &i, NULL, NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: wrt[0] must be an input, a parameter "
		  "or a state of the loss's graph, f32 or f64");
	CHECK_INT(ricci_check_gradient(y, 1, &x, &RICCI_GRADIENT_CHECK(.step = -1), NULL),
		  RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: step, tolerance, samples and nvalue "
		  "must not be negative");
	CHECK_INT(ricci_check_gradient(y, 1, &x,
				       &RICCI_GRADIENT_CHECK(.nvalue = 1, .value = &value), NULL),
		  RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_check_gradient: value 0 needs a tensor, and as many "
		  "bytes as that has");
	CHECK_INT(ricci_graph_error(g), 0);
	ricci_graph_free(g);
}

/* Every allocation that fails is an ordinary error, and nothing leaks. */
static void memory(void)
{
	long before = mem_live();
	for (long n = 1;; n++) {
		ricci_graph *g = ricci_graph_new();
		ricci_tensor *w = ricci_param(g, "w", RICCI_F64, SHAPE(3), ricci_constant(1));
		ricci_tensor *y = ricci_op(g, "Y[i] = W[i]*W[i]", w);
		mem_fail_at(n);
		int code = ricci_check_gradient(y, 0, NULL, NULL, NULL);
		mem_fail_at(0);
		ricci_graph_free(g);
		if (!code)
			break;
		CHECK_INT(code, RICCI_ENOMEM);
	}
	CHECK_INT(mem_live(), before);
}

int main(void)
{
	right(RICCI_F32);
	right(RICCI_F64);
	wrong_gradient();
	zero_and_nan();
	kinks();
	samples();
	arguments();
	memory();
	return check_done();
}
