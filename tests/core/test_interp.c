/* The interpreter against plain C loops, Philox against its published vectors, errors of data. */
#include "tests/check.h"
#include "core/core.h"

#include <float.h>

#include <stdlib.h>

static const RandomState nothing = {0, 0};

static void test_philox(void)
{
	uint32_t w[4];
	philox(0, 0, 0, 0, w);
	CHECK_INT(w[0], 0x6627e8d5);
	CHECK_INT(w[1], 0xe169c58d);
	CHECK_INT(w[2], 0xbc57ac4c);
	CHECK_INT(w[3], 0x9b00dbd8);
	philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, w);
	CHECK_INT(w[0], 0x408f276d);
	CHECK_INT(w[1], 0x41c83b0e);
	CHECK_INT(w[2], 0xa20bc7c6);
	CHECK_INT(w[3], 0x6d5451fd);
	/* Digits of pi as counter and key. */
	philox(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, 0, w);
	CHECK_INT(w[0], 0xd16cfe09);
	CHECK_INT(w[1], 0x94fdcceb);
	CHECK_INT(w[2], 0x5001e420);
	CHECK_INT(w[3], 0x24126ea1);
	CHECK(philox_uniform(0) == 0.0f);
	CHECK(philox_uniform(UINT32_MAX) < 1.0f);
	double sum = 0, square = 0, uniform = 0;
	enum { N = 100000 };
	for (int i = 0; i < N; i++) {
		philox((uint64_t)i, 7, 1, 2, w);
		float v = philox_normal(w[0], w[1]);
		sum += v;
		square += v * v;
		uniform += philox_uniform(w[0]);
	}
	CHECK_NEAR(sum / N, 0, 0.015);
	CHECK_NEAR(square / N, 1, 0.02);
	CHECK_NEAR(uniform / N, 0.5, 0.005);
	/* Steps of loops, inner and outer ones, draw apart. */
	RandomState rs = {1, 2}, a = random_step(random_step(rs, 9, 3), 9, 4);
	RandomState b = random_step(random_step(rs, 9, 4), 9, 3), c = random_step(rs, 9, 0);
	CHECK(a.step == 2 && a.seed != b.seed && a.seed != rs.seed);
	CHECK(c.seed != rs.seed && c.seed != a.seed);
	CHECK(random_step(rs, 1, 0).seed == rs.seed);
	philox(5, 7, 1, 2, w);
	uint32_t first = w[0];
	philox(5, 7, 1, 3, w);
	CHECK(first != w[0]);
}

static int run(Node *t, int n, const Binding *b, void *out, double *magnitude, Error *err)
{
	error_clear(err);
	return interp_tensor(t, n, b, nothing, out, magnitude, err);
}

/* Y[i,j] += A[i,k] * B[k,j] with its magnitudes, and single elements of it. */
static int test_product(Ir *ir)
{
	IR_ENTER(ir, -1);
	enum { I = 3, J = 4, K = 5 };
	float a[I * K], b[K * J];
	for (int k = 0; k < I * K; k++)
		a[k] = 0.1f * (float)k - 0.7f;
	for (int k = 0; k < K * J; k++)
		b[k] = 1.3f - 0.2f * (float)k;
	Node *A = node_input(ir, "A", RICCI_F32, 2, (int64_t[]){I, K});
	Node *B = node_input(ir, "B", RICCI_F32, 2, (int64_t[]){K, J});
	Node *v[3] = {node_axis(ir, 0, I), node_axis(ir, 1, J), node_axis(ir, 2, K)};
	Node *body = node_mul(ir, node_read(ir, A, (Node *[]){v[0], v[2]}),
			      node_read(ir, B, (Node *[]){v[2], v[1]}));
	Node *y = comp_dense(ir, RED_ADD, 2, 3, v, body);
	Binding bind[2] = {{A, a}, {B, b}};
	double out[I * J], mag[I * J];
	Error err = {0};
	CHECK_INT(run(y, 2, bind, out, mag, &err), 0);
	CHECK_STR(err.text, "");
	for (int i = 0; i < I; i++)
		for (int j = 0; j < J; j++) {
			double want = 0, size = 0;
			for (int k = 0; k < K; k++) {
				double t = (double)a[i * K + k] * b[k * J + j];
				want += t;
				size += fabs(t);
			}
			CHECK_NEAR(out[i * J + j], want, 1e-14);
			CHECK_NEAR(mag[i * J + j], size, 1e-14);
		}
	int64_t at[] = {11, 0, 6};
	double some[3], some_mag[3];
	CHECK_INT(interp_elements(y, 2, bind, NULL, nothing, 3, at, some, some_mag, &err), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_NEAR(some[i], out[at[i]], 0);
		CHECK_NEAR(some_mag[i], mag[at[i]], 0);
	}
	/* What may be anything makes elements that need it so. */
	const uint8_t marks[I * K] = {[K] = 1}, *lost[2] = {marks};
	CHECK_INT(interp_elements(y, 2, bind, lost, nothing, 3, at, some, some_mag, &err), 0);
	for (int i = 0; i < 3; i++)
		CHECK(isinf(some_mag[i]) == (at[i] == 6));
	/* A second equation over y; y computed, then bound. */
	Node *w[2] = {node_axis(ir, 0, I), node_axis(ir, 1, J)};
	Node *z = comp_dense(ir, RED_MAX, 1, 2, w, node_read(ir, y, w));
	double best[I], again[I], one[1];
	CHECK_INT(run(z, 2, bind, best, NULL, &err), 0);
	for (int i = 0; i < I; i++) {
		double want = -INFINITY;
		for (int j = 0; j < J; j++)
			want = fmax(want, out[i * J + j]);
		CHECK_NEAR(best[i], want, 0);
	}
	float known[I * J];
	for (int i = 0; i < I * J; i++)
		known[i] = (float)i;
	CHECK_INT(run(z, 1, &(Binding){y, known}, again, NULL, &err), 0);
	CHECK_NEAR(again[1], 7, 0);
	CHECK_INT(run(z, 1, bind, again, NULL, &err), RICCI_EINVAL);
	CHECK_STR(err.text, "input B has no data");
	error_clear(&err);
	CHECK_INT(interp_elements(z, 1, bind, NULL, nothing, 1, at + 1, one, NULL, &err),
		  RICCI_EINVAL);
	IR_LEAVE(ir);
	return 0;
}

/* Padded reads, lazy selection, gathers in and out of range, a scatter. */
static int test_indices(Ir *ir)
{
	IR_ENTER(ir, -1);
	Error err = {0};
	int32_t x[4] = {10, 20, 30, 40};
	int64_t t[3] = {2, 0, 3}, out[8];
	Node *X = node_input(ir, "X", RICCI_I32, 1, (int64_t[]){4});
	Node *T = node_input(ir, "T", RICCI_I64, 1, (int64_t[]){3});
	Node *i = node_axis(ir, 0, 6);
	/* X[i-1] inside, else -1: the read must not happen outside. */
	Node *at = node_sub(ir, i, node_int(ir, 1));
	Node *inside = node2(ir, OP_AND, node2(ir, OP_LE, node_int(ir, 1), i),
			     node2(ir, OP_LE, i, node_int(ir, 4)));
	Node *body =
		node_select(ir, inside, node_read(ir, X, &at), node_const_int(ir, RICCI_I32, -1));
	Binding bind[2] = {{X, x}, {T, t}};
	CHECK_INT(run(comp_dense(ir, RED_NONE, 1, 1, &i, body), 2, bind, out, NULL, &err), 0);
	for (int k = 0; k < 6; k++)
		CHECK_INT(out[k], k >= 1 && k <= 4 ? x[k - 1] : -1);
	/* The same with a condition that is itself lazy: X[i-1] > 10 && .. */
	Node *deep =
		node2(ir, OP_AND, inside,
		      node2(ir, OP_LT, node_const_int(ir, RICCI_I32, 15), node_read(ir, X, &at)));
	Node *flag = node_cast(ir, RICCI_I32, deep);
	CHECK_INT(run(comp_dense(ir, RED_NONE, 1, 1, &i, flag), 2, bind, out, NULL, &err), 0);
	for (int k = 0; k < 6; k++)
		CHECK_INT(out[k], k >= 2 && k <= 4);
	/* Y[j] = X[T[j]] */
	Node *j = node_axis(ir, 0, 3), *index = node_read(ir, T, &j);
	Node *gather = comp_dense(ir, RED_NONE, 1, 1, &j, node_read(ir, X, &index));
	CHECK_INT(run(gather, 2, bind, out, NULL, &err), 0);
	CHECK_INT(out[0], 30);
	CHECK_INT(out[1], 10);
	CHECK_INT(out[2], 40);
	t[1] = 4;
	CHECK_INT(run(gather, 2, bind, out, NULL, &err), RICCI_EVALUE);
	CHECK_STR(err.text, "index 4 leaves dimension 0 of X, whose extent is 4; 0 to 3 would be "
			    "right");
	t[1] = -1;
	CHECK_INT(run(gather, 2, bind, out, NULL, &err), RICCI_EVALUE);
	/* S[T[j]] += X[j], extent 4, with a repeated place. */
	t[1] = 2;
	Node *scatter =
		comp_make(ir, RED_ADD, 1, (int64_t[]){4}, &index, 1, &j, node_read(ir, X, &j));
	CHECK_INT(run(scatter, 2, bind, out, NULL, &err), 0);
	CHECK_INT(out[0], 0);
	CHECK_INT(out[1], 0);
	CHECK_INT(out[2], 30);
	CHECK_INT(out[3], 30);
	t[0] = 9;
	CHECK_INT(run(scatter, 2, bind, out, NULL, &err), RICCI_EVALUE);
	CHECK_STR(err.text, "index 9 leaves dimension 0 of the result, whose extent is 4; 0 to 3 "
			    "would be right");
	IR_LEAVE(ir);
	return 0;
}

/* Every type in, through a cast, and out; wrapping sums; reductions of integers and NaN. */
static int test_types(Ir *ir)
{
	IR_ENTER(ir, -1);
	Error err = {0};
	for (int from = 0; from < RICCI_NTYPES; from++) {
		Type t = (Type)from;
		double data[8];
		for (int k = 0; k < 8; k++)
			type_store(t, data, (size_t)k, 0.5 + k);
		Node *X = node_input(ir, type_name(t), t, 1, (int64_t[]){8});
		Node *i = node_axis(ir, 0, 8), *read = node_read(ir, X, &i);
		Node *wide = comp_dense(ir, RED_NONE, 1, 1, &i, node_cast(ir, RICCI_F64, read));
		Node *whole = comp_dense(ir, RED_NONE, 1, 1, &i, node_cast(ir, RICCI_I64, read));
		double f[8];
		int64_t n[8];
		CHECK_INT(run(wide, 1, &(Binding){X, data}, f, NULL, &err), 0);
		CHECK_INT(run(whole, 1, &(Binding){X, data}, n, NULL, &err), 0);
		for (int k = 0; k < 8; k++) {
			CHECK_NEAR(f[k], type_load(t, data, (size_t)k), 0);
			CHECK_INT(n[k], (int64_t)type_load(t, data, (size_t)k));
		}
	}
	uint8_t u[3] = {200, 100, 3};
	int64_t out[3];
	Node *U = node_input(ir, "U", RICCI_U8, 1, (int64_t[]){3}), *i = node_axis(ir, 0, 3);
	Node *body = node_read(ir, U, &i);
	const struct {
		Reduce red;
		int64_t want;
	} cases[] = {{RED_ADD, 303 & 255}, {RED_MUL, 60000 & 255}, {RED_MAX, 200}, {RED_MIN, 3}};
	for (int k = 0; k < COUNT(cases); k++) {
		Node *y = comp_dense(ir, cases[k].red, 0, 1, &i, body);
		CHECK_INT(run(y, 1, &(Binding){U, u}, out, NULL, &err), 0);
		CHECK_INT(out[0], cases[k].want);
	}
	Node *twice = comp_dense(ir, RED_NONE, 1, 1, &i, node_scale(ir, body, 2));
	CHECK_INT(run(twice, 1, &(Binding){U, u}, out, NULL, &err), 0);
	CHECK_INT(out[0], 400 & 255);
	double x[3] = {1, NAN, 2}, y[1];
	Node *X = node_input(ir, "X", RICCI_F64, 1, (int64_t[]){3});
	for (int red = RED_ADD; red < RED_COUNT; red++) {
		Node *c = comp_dense(ir, (Reduce)red, 0, 1, &i, node_read(ir, X, &i));
		CHECK_INT(run(c, 1, &(Binding){X, x}, y, NULL, &err), 0);
		CHECK(isnan(y[0]));
	}
	x[1] = -4;
	const double want[RED_COUNT] = {0, -1, -8, 2, -4};
	for (int red = RED_ADD; red < RED_COUNT; red++) {
		Node *c = comp_dense(ir, (Reduce)red, 0, 1, &i, node_read(ir, X, &i));
		CHECK_INT(run(c, 1, &(Binding){X, x}, y, NULL, &err), 0);
		CHECK_NEAR(y[0], want[red], 0);
	}
	/* A cast rounds, everything else keeps doubles. */
	Node *sum =
		comp_dense(ir, RED_NONE, 1, 1, &i, node_cast(ir, RICCI_BF16, node_read(ir, X, &i)));
	x[0] = 1.00390625;
	double rounded[3];
	CHECK_INT(run(sum, 1, &(Binding){X, x}, rounded, NULL, &err), 0);
	CHECK_NEAR(rounded[0], 1, 0);
	IR_LEAVE(ir);
	return 0;
}

/* Draws are the same whatever asks for them. */
static int test_random(Ir *ir)
{
	IR_ENTER(ir, -1);
	Error err = {0};
	Node *i = node_axis(ir, 0, 5), *src[2] = {node_int(ir, 3), i};
	RandomState rs = {11, 4};
	double u[5], n[5], one;
	Node *uniform = node_make(ir, OP_RANDOM, RICCI_F32, 2, src, 0);
	Node *normal = node_make(ir, OP_NORMAL, RICCI_F32, 2, src, 0);
	Node *cu = comp_dense(ir, RED_NONE, 1, 1, &i, uniform);
	Node *cn = comp_dense(ir, RED_NONE, 1, 1, &i, normal);
	CHECK_INT(interp_tensor(cu, 0, NULL, rs, u, NULL, &err), 0);
	CHECK_INT(interp_tensor(cn, 0, NULL, rs, n, NULL, &err), 0);
	for (int k = 0; k < 5; k++) {
		uint32_t w[4];
		philox((uint64_t)k, 3, 11, 4, w);
		CHECK_NEAR(u[k], philox_uniform(w[0]), 0);
		CHECK_NEAR(n[k], philox_normal(w[0], w[1]), 0);
	}
	int64_t at = 3;
	CHECK_INT(interp_elements(cu, 0, NULL, NULL, rs, 1, &at, &one, NULL, &err), 0);
	CHECK_NEAR(one, u[3], 0);
	IR_LEAVE(ir);
	return 0;
}

/* Scalars, chains of many tensors, and every allocation failing once. */
static int test_chain(Ir *ir)
{
	IR_ENTER(ir, -1);
	Error err = {0};
	float x = 1;
	double out, mag;
	Node *X = node_input(ir, "X", RICCI_F32, 0, NULL), *t = X;
	enum { N = 5000 };
	for (int k = 0; k < N; k++)
		t = comp_dense(ir, RED_NONE, 0, 0, NULL,
			       node_add(ir, node_read(ir, t, NULL), node_const(ir, RICCI_F32, 1)));
	CHECK_INT(run(t, 1, &(Binding){X, &x}, &out, &mag, &err), 0);
	CHECK_NEAR(out, N + 1, 0);
	CHECK_NEAR(mag, N + 1, 0);
	long live = mem_live();
	int failed = 0;
	for (long at = 1; at < 1000; at++) {
		mem_fail_at(at);
		int status = run(t, 1, &(Binding){X, &x}, &out, NULL, &err);
		mem_fail_at(0);
		CHECK_INT(mem_live(), live);
		if (!status)
			break;
		CHECK_INT(status, RICCI_ENOMEM);
		failed++;
	}
	CHECK(failed > 3 && failed < 900);
	IR_LEAVE(ir);
	return 0;
}

/* Cancellation shows in the magnitude: exp(x - m) with large x and m. */
static int test_magnitude(Ir *ir)
{
	IR_ENTER(ir, -1);
	Error err = {0};
	float x[2] = {100.0f, 99.0f};
	double out[1], mag[1];
	Node *X = node_input(ir, "X", RICCI_F32, 1, (int64_t[]){2});
	Node *zero = node_int(ir, 0), *one = node_int(ir, 1);
	Node *d = node_sub(ir, node_read(ir, X, &one), node_read(ir, X, &zero));
	Node *c = comp_dense(ir, RED_NONE, 0, 0, NULL, node1(ir, OP_EXP, d));
	CHECK_INT(run(c, 1, &(Binding){X, x}, out, mag, &err), 0);
	CHECK_NEAR(out[0], exp(-1), 1e-15);
	CHECK_NEAR(mag[0], 199 * exp(-1), 1e-12);
	IR_LEAVE(ir);
	return 0;
}

static Node *vector_input(Ir *ir, Type type)
{
	IR_ENTER(ir, NULL);
	Node *x = node_input(ir, "X", type, 1, (int64_t[]){4});
	IR_LEAVE(ir);
	return x;
}

/* Each factor's error is one of the product's: all of them add up, but for those times 0. */
static int test_factors(Ir *ir)
{
	static const struct {
		float x[4];
		double magnitude;
	} c[] = {{{2, 2, 2, 2}, 64}, {{1, -1, 3, 1}, 12}, {{2, 0, 2, 2}, 0}};
	for (int k = 0; k < COUNT(c); k++) {
		Error err = {0};
		Node *X = vector_input(ir, RICCI_F32), *Y;
		double out, mag;
		int n = 1;
		CHECK_INT(notation_elaborate(ir, "Y[] *= X[i]", 1, &X, &n, &Y, 1), 0);
		CHECK_INT(run(Y, 1, &(Binding){X, c[k].x}, &out, &mag, &err), 0);
		CHECK_NEAR(mag, c[k].magnitude, 1e-12);
	}
	return 0;
}

/* What kernels of the type can't hold on the way has no magnitude, whatever comes of it; what no
 * order of the factors can lose has one; an infinity is exact. */
static int test_range(Ir *ir)
{
	static const struct {
		const char *text;
		Type type;
		float x[4];
		bool lost;
	} c[] = {{"Y[] *= X[i]", RICCI_F32, {1e20f, 1e20f, 0, 1}, true},
		 {"Y[] *= X[i]", RICCI_F64, {1e20f, 1e20f, 0, 1}, false},
		 {"Y[] *= X[i]", RICCI_F32, {1e20f, 1e10f, 0, 1}, false},
		 {"Y[] *= X[i] * X[i]", RICCI_F32, {1e20f, 1, 0, 1}, true},
		 {"Y[] += X[i] * X[0] * 0", RICCI_F32, {1e20f, 1, 0, 1}, true},
		 {"Y[] += X[i] > 10 ? 0 : X[i] * X[i]", RICCI_F32, {1e20f, 1, 0, 1}, false},
		 {"Y[] += X[i]", RICCI_F32, {3e38f, 3e38f, -3e38f, -3e38f}, true},
		 {"Y[] += X[i] * X[3]", RICCI_F32, {INFINITY, 1, 2, 0}, true},
		 {"Y[] += X[i] * X[3]", RICCI_F32, {INFINITY, 1, 2, 3}, false},
		 {"Y[] += X[i] * X[3]", RICCI_F32, {-INFINITY, INFINITY, 2, 3}, true},
		 /* 1e-40 may be zero there */
		 {"Y[] += X[i] * X[0]*X[0] * X[1]", RICCI_F32, {1e-20f, INFINITY, 1, 1}, true},
		 {"Y[] += X[i] * X[0]*X[0] * X[1]", RICCI_F64, {1e-20f, INFINITY, 1, 1}, false},
		 {"Y[] += X[i]", RICCI_F32, {NAN, INFINITY, -INFINITY, 3}, false},
		 {"Y[] = min(log(X[0]), 1)", RICCI_F32, {0}, false},
		 {"Y[] += exp(-1/X[i])", RICCI_F32, {0}, false},
		 {"T[i] = X[i] * X[i]; Y[] += tanh(T[i])", RICCI_F16, {300, 1, 2, 3}, true}};
	for (int k = 0; k < COUNT(c); k++) {
		Error err = {0};
		Node *X = vector_input(ir, c[k].type), *Y;
		double x[4], out, mag;
		int n = 1;
		for (int i = 0; i < 4; i++)
			type_store(c[k].type, x, (size_t)i, c[k].x[i]);
		CHECK_INT(notation_elaborate(ir, c[k].text, 1, &X, &n, &Y, 1), 0);
		CHECK_INT(run(Y, 1, &(Binding){X, x}, &out, &mag, &err), 0);
		CHECK_REPORT(isinf(mag) == c[k].lost && !isnan(mag), "%s: magnitude %g", c[k].text,
			     mag);
	}
	return 0;
}

/* Where rounding decides a comparison, what depends on it does so visibly. */
static int test_doubt(Ir *ir)
{
	static const struct {
		const char *text;
		float x[4];
		double least, most; /* the magnitude */
	} c[] = {{"Y[] = X[0] < X[1]", {1, 1 + 2 * FLT_EPSILON}, INFINITY, INFINITY},
		 {"Y[] = X[0] < X[1]", {1, 1}, 0, 1},
		 {"Y[] = X[0] < X[1]", {1, 1.001f}, 0, 1},
		 {"Y[] = !(X[0] == X[1]) && X[3] > 2",
		  {1, 1 + FLT_EPSILON, 0, 3},
		  INFINITY,
		  INFINITY},
		 {"Y[] = X[3] > 2 && X[0] == X[1]", {1, 1 + FLT_EPSILON, 0, 1}, 0, 1},
		 {"Y[] = X[3] > 2 || X[0] == X[1]", {1, 1 + FLT_EPSILON, 0, 3}, 0, 1},
		 {"T[] = X[0] == X[1]; Y[] = i32(T[]) + 1",
		  {1, 1 + FLT_EPSILON},
		  INFINITY,
		  INFINITY},
		 {"T[i] = X[i] - X[0]; Y[] max= T[i] >= T[1]",
		  {1, 0, FLT_EPSILON},
		  INFINITY,
		  INFINITY},
		 {"T[] = i64(X[0] < X[1]); Y[] = X[T[]]", {1, 1 + FLT_EPSILON}, INFINITY, INFINITY},
		 {"Y[] = X[0] < X[1] ? 2.0 : 5.0",
		  {1, 1 + FLT_EPSILON},
		  3 / FLT_EPSILON,
		  4 / FLT_EPSILON},
		 {"Y[] = X[0] < X[1] ? 5 : 5 + 0 * X[2]", {1, 1 + FLT_EPSILON}, 5, 5},
		 {"Y[] = X[0] < X[1] ? X[0] : X[1]", {1, 1 + FLT_EPSILON}, 1, 3}};
	for (int k = 0; k < COUNT(c); k++) {
		Error err = {0};
		Node *X = vector_input(ir, RICCI_F32), *Y;
		double out, mag;
		int n = 1;
		CHECK_INT(notation_elaborate(ir, c[k].text, 1, &X, &n, &Y, 1), 0);
		CHECK_INT(run(Y, 1, &(Binding){X, c[k].x}, &out, &mag, &err), 0);
		CHECK_REPORT(mag >= c[k].least && mag <= c[k].most, "%s: magnitude %g", c[k].text,
			     mag);
	}
	return 0;
}

int main(void)
{
	int (*const tests[])(Ir *) = {test_product, test_indices, test_types,
				      test_random,  test_chain,	  test_magnitude,
				      test_factors, test_range,	  test_doubt};
	test_philox();
	for (int k = 0; k < COUNT(tests); k++) {
		Ir ir;
		ir_init(&ir);
		CHECK_INT(tests[k](&ir), 0);
		ir_free(&ir);
	}
	CHECK_INT(mem_live(), 0);
	return check_done();
}
