/* test_orthogonal.c - initial values that are not drawn number by number: orthogonal matrices,
 * arrays of the caller's, rows of zeros; what initialisers that don't fit get to hear. */
#include "tests/check.h"

#include <ricci.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE(...)                                                                                 \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* The initial values of the parameter `name`, which the caller frees. */
static void *drawn(ricci_type type, int rank, const int64_t *shape, ricci_init init, int threads)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *p = ricci_param(g, "p", type, rank, shape, init);
	ricci_tensor *y = ricci_op(g, "Y[...] = P[...]", p);
	ricci_options o =
		RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP, .threads = threads, .seed = 7);
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, &o, 0, 1, &y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	void *data = calloc(1, ricci_bytes(p) + 8);
	CHECK_INT(ricci_fetch(s, p, data, ricci_bytes(p)), 0);
	ricci_session_free(s);
	ricci_graph_free(g);
	return data;
}

/* The greatest difference of gain^2 I and the products of vectors that are `step` apart in x, each
 * of n elements `stride` apart. */
static double defect(const double *x, int64_t count, int64_t step, int64_t n, int64_t stride,
		     double gain)
{
	double worst = 0;
	for (int64_t a = 0; a < count; a++)
		for (int64_t b = 0; b <= a; b++) {
			double sum = a == b ? -gain * gain : 0;
			for (int64_t i = 0; i < n; i++)
				sum += x[a * step + i * stride] * x[b * step + i * stride];
			worst = fmax(worst, fabs(sum));
		}
	return worst;
}

/* The shorter side is orthonormal, to the last digits; the threads don't matter. */
static void orthogonal(void)
{
	double *wide = drawn(RICCI_F64, SHAPE(70, 200), ricci_orthogonal(1), 1);
	double *many = drawn(RICCI_F64, SHAPE(70, 200), ricci_orthogonal(1), 3);
	double *tall = drawn(RICCI_F64, SHAPE(90, 40), ricci_orthogonal(0.5), 1);
	double *square = drawn(RICCI_F64, SHAPE(300, 300), ricci_orthogonal(1), 2);
	double *kernel = drawn(RICCI_F64, SHAPE(6, 2, 3, 3), ricci_orthogonal(2), 1);
	double *one = drawn(RICCI_F64, SHAPE(1, 1), ricci_orthogonal(3), 1);
	CHECK(!memcmp(wide, many, sizeof *wide * 70 * 200));
	CHECK_NEAR(defect(wide, 70, 200, 200, 1, 1), 0, 1e-14);
	CHECK_NEAR(defect(tall, 40, 1, 90, 40, 0.5), 0, 1e-14);
	CHECK_NEAR(defect(square, 300, 300, 300, 1, 1), 0, 1e-14);
	CHECK_NEAR(defect(square, 300, 1, 300, 300, 1), 0, 1e-14);
	CHECK_NEAR(defect(kernel, 6, 18, 18, 1, 2), 0, 1e-14);
	CHECK_NEAR(fabs(one[0]), 3, 0);
	/* of a uniformly distributed matrix, the sum of the diagonal is standard normal */
	double trace = 0;
	for (int i = 0; i < 300; i++)
		trace += square[i * 301];
	CHECK(fabs(trace) < 5);
	/* recorded: the same on every processor, and on other architectures but for rounding */
#ifdef __x86_64__
	const double tolerance = 0;
#else
	const double tolerance = 1e-6;
#endif
	const double want[] = {0.12277188486658702, -0.022280101741737873, -0.08964712957848904};
	for (int i = 0; i < 3; i++)
		CHECK_NEAR(wide[i], want[i], tolerance);
	free(wide), free(many), free(tall), free(square), free(kernel), free(one);
}

/* The same matrix in f32 and in 16 bits, rounded. */
static void types(void)
{
	double *x = drawn(RICCI_F64, SHAPE(5, 4), ricci_orthogonal(1), 1);
	float *y = drawn(RICCI_F32, SHAPE(5, 4), ricci_orthogonal(1), 1);
	uint16_t *z = drawn(RICCI_BF16, SHAPE(5, 4), ricci_orthogonal(1), 1);
	for (int i = 0; i < 20; i++) {
		uint32_t bits = (uint32_t)z[i] << 16;
		float v;
		memcpy(&v, &bits, sizeof v);
		CHECK_NEAR(y[i], (double)(float)x[i], 0);
		CHECK_NEAR(v, x[i], fabs(x[i]) / 256);
	}
	free(x), free(y), free(z);
}

/* The graph has a copy of the values; a row may start at 0. */
static void values(void)
{
	double v[6] = {1, 2, 3, 4, 5, 6};
	int32_t n[2] = {-7, 9};
	ricci_graph *g = ricci_graph_new();
	ricci_init init = ricci_values(RICCI_F64, 6, v);
	ricci_tensor *p = ricci_param(g, "p", RICCI_F64, SHAPE(3, 2), init);
	ricci_tensor *q = ricci_param(g, "q", RICCI_F64, SHAPE(3, 2), ricci_zero_row(init, 1));
	ricci_tensor *r = ricci_param(g, "r", RICCI_F64, SHAPE(3, 2), ricci_constant(9));
	ricci_tensor *c = ricci_state(g, "c", RICCI_I32, SHAPE(2), ricci_constant(0));
	CHECK_INT(ricci_set_init(r, init), 0);
	CHECK_INT(ricci_set_init(c, ricci_values(RICCI_I32, 2, n)), 0);
	memset(v, 0, sizeof v);
	n[0] = 0;
	ricci_tensor *y =
		ricci_op(g, "P, Q, R, C -> Y: Y[i,j] = P[i,j]+Q[i,j]+R[i,j]+f64(C[j])", p, q, r, c);
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(
		g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP, .threads = 1), 0, 1, &y);
	double got[6];
	const double want[6] = {3 - 7, 6 + 9, 6 - 7, 8 + 9, 15 - 7, 18 + 9};
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, y, got, sizeof got), 0);
	for (int i = 0; i < 6; i++)
		CHECK_NEAR(got[i], want[i], 0);
	CHECK_INT(ricci_set_init(r, ricci_constant(1)), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_set_init: the graph has sessions and can't change any more");
	ricci_session_free(s);
	ricci_graph_free(g);

	float *z = drawn(RICCI_F32, SHAPE(4, 3), ricci_zero_row(ricci_normal(1), 3), 1);
	for (int i = 0; i < 12; i++)
		CHECK((z[i] == 0) == (i >= 9));
	free(z);
}

#define WRONG(code, message, expression)                                                           \
	do {                                                                                       \
		ricci_graph *g = ricci_graph_new();                                                \
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(2));                        \
		float v[2] = {0};                                                                  \
		(void)x, (void)v;                                                                  \
		(void)(expression);                                                                \
		CHECK_INT(ricci_graph_error(g), code);                                             \
		CHECK_STR(ricci_error_message(), message);                                         \
		ricci_graph_free(g);                                                               \
	} while (0)

static void wrong(void)
{
	WRONG(RICCI_ESHAPE,
	      "ricci_param p: an orthogonal matrix is of floats and has 2 dimensions or more, it "
	      "is "
	      "f32 of 1",
	      ricci_param(g, "p", RICCI_F32, SHAPE(2), ricci_orthogonal(1)));
	WRONG(RICCI_ESHAPE,
	      "ricci_state p: an orthogonal matrix is of floats and has 2 dimensions or more, it "
	      "is "
	      "i32 of 2",
	      ricci_state(g, "p", RICCI_I32, SHAPE(2, 2), ricci_orthogonal(1)));
	WRONG(RICCI_ETYPE, "ricci_param p: the initial values are f32, it is f64",
	      ricci_param(g, "p", RICCI_F64, SHAPE(2), ricci_values(RICCI_F32, 2, v)));
	WRONG(RICCI_ESHAPE, "ricci_param p: 2 initial values are given, it has 6 elements",
	      ricci_param(g, "p", RICCI_F32, SHAPE(2, 3), ricci_values(RICCI_F32, 2, v)));
	WRONG(RICCI_EINVAL, "ricci_param p: the initial values are NULL",
	      ricci_param(g, "p", RICCI_F32, SHAPE(2), ricci_values(RICCI_F32, 2, NULL)));
	WRONG(RICCI_ESHAPE, "ricci_param p: it has no row 2 to be zero",
	      ricci_param(g, "p", RICCI_F32, SHAPE(2), ricci_zero_row(ricci_normal(1), 2)));
	WRONG(RICCI_ESHAPE, "ricci_param p: it has no row -1 to be zero",
	      ricci_param(g, "p", RICCI_F32, SHAPE(2), ricci_zero_row(ricci_normal(1), -3)));
	WRONG(RICCI_EINVAL, "ricci_set_init: 'x' is no parameter and no state",
	      ricci_set_init(x, ricci_constant(0)));
	CHECK_INT(ricci_set_init(NULL, ricci_constant(0)), RICCI_EINVAL);
}

int main(void)
{
	orthogonal();
	types();
	values();
	wrong();
	return check_done();
}
