/* test_precision.c - mixed precision: which factors are rounded, that all else stays as it was, in
 * graphs, gradients and loops; rounding by chance, without bias, the same whatever the threads. */
#include "runtime/session.h"
#include "tests/check.h"

#include <math.h>
#include <ricci.h>
#include <stdlib.h>

enum { M = 24, N = 20, K = 40 };

static ricci_type narrow = RICCI_BF16; /* what factors are rounded to */

static float rounded(float x)
{
	unsigned char two[2];
	if (narrow == RICCI_TF32)
		return (float)type_tf32(x);
	type_store((Type)narrow, two, 0, x);
	return (float)type_load((Type)narrow, two, 0);
}

static void fill(float *x, int n, unsigned seed)
{
	for (int i = 0; i < n; i++)
		x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
}

/* Runs the graph of one output over a [M,K] and b [K,N] (or what of them there is). */
static void run(ricci_graph *g, ricci_tensor *y, ricci_tensor *a, ricci_tensor *b, const float *da,
		const float *db, float *out)
{
	ricci_options o =
		RICCI_OPTIONS(.threads = 2, .static_mode = 1, .backend = RICCI_BACKEND_TCC);
	ricci_session *s = ricci_session_new(g, &o, 0, 1, &y);
	CHECK_REPORT(s, "%s", ricci_error_message());
	if (!s)
		return;
	CHECK_INT(ricci_feed(s, a, da, ricci_bytes(a)), 0);
	if (b)
		CHECK_INT(ricci_feed(s, b, db, ricci_bytes(b)), 0);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, y, out, ricci_bytes(y)), 0);
	ricci_session_free(s);
}

/* The largest difference of got from the product of a' (K x M when turned) and b. */
static double off(const float *got, const float *a, const float *b, bool round)
{
	double most = 0;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int k = 0; k < K; k++)
				sum += round ? (double)rounded(a[i * K + k]) * rounded(b[k * N + j])
					     : (double)a[i * K + k] * b[k * N + j];
			most = fmax(most, fabs(got[i * N + j] - sum));
		}
	return most;
}

static float da[M * K], db[K * N], dy[M * N];

static ricci_graph *graph(ricci_type precision, ricci_tensor **a, ricci_tensor **b)
{
	ricci_graph *g = ricci_graph_new();
	*a = ricci_input(g, "a", RICCI_F32, 2, (int64_t[]){M, K});
	*b = ricci_input(g, "b", RICCI_F32, 2, (int64_t[]){K, N});
	CHECK_INT(ricci_precision(g, precision), 0);
	return g;
}

static void test_product(void)
{
	for (int how = 0; how < 2; how++) {
		ricci_tensor *a, *b;
		ricci_graph *g = graph(how ? narrow : RICCI_F32, &a, &b);
		run(g, ricci_op(g, "Y[i,j] += A[i,k] * B[k,j]", a, b), a, b, da, db, dy);
		CHECK_REPORT(off(dy, da, db, how) < 1e-5, "%d: off by %g", how,
			     off(dy, da, db, how));
		CHECK(off(dy, da, db, !how) > (narrow != RICCI_BF16 ? 2e-4 : 1e-3));
		ricci_graph_free(g);
	}
}

/* d/da of sum (a b)^2 / 2 is (a b) b': rounded factors in both products, and an f32 result. */
static void test_gradient(void)
{
	static float got[M * K];
	ricci_tensor *a, *b, *ga;
	ricci_graph *g = graph(narrow, &a, &b);
	ricci_tensor *y = ricci_op(g, "Y[i,j] += A[i,k] * B[k,j]", a, b);
	ricci_tensor *z = ricci_op(g, "Z[] += 0.5*Y[i,j]*Y[i,j]", y);
	CHECK_INT(ricci_grad(g, z, NULL, 1, &a, &ga), 0);
	CHECK_INT(ricci_dtype(ga), RICCI_F32);
	run(g, ga, a, b, da, db, got);
	double most = 0;
	for (int i = 0; i < M; i++)
		for (int k = 0; k < K; k++) {
			double sum = 0;
			for (int j = 0; j < N; j++) {
				double v = 0;
				for (int l = 0; l < K; l++)
					v += (double)rounded(da[i * K + l]) *
					     rounded(db[l * N + j]);
				sum += (double)rounded((float)v) * rounded(db[k * N + j]);
			}
			most = fmax(most, fabs(got[i * K + k] - sum));
		}
	/* a sum that is near the middle of two narrow numbers may be rounded to the other */
	CHECK_REPORT(most < (narrow != RICCI_BF16 ? 0.0025 : 0.02), "off by %g", most);
	ricci_graph_free(g);
}

/* What multiplies no two tensors, uses its elements a few times only, or is no f32 stays exact: the
 * same bits as without. */
static void test_rest(void)
{
	static const char *const same[] = {
		"Y[i,k] = A[i,k] * A[i,k]",
		"Y[i] += A[i,k]",
		"Y[] += A[i,k] * A[i,k]",
		"Y[i] += A[i,k] * B[k,0]",
		"Y[i] += exp(A[i,k]) * exp(B[k,0])",
		"Y[i,j] max= A[i,k] * B[k,j]",
		"Y[i,j] += f64(A[i,k]) * f64(B[k,j])",
	};
	static double out[2][M * K];
	for (int t = 0; t < COUNT(same); t++) {
		memset(out, 0, sizeof out);
		for (int how = 0; how < 2; how++) {
			ricci_tensor *a, *b;
			ricci_graph *g = graph(how ? narrow : RICCI_F32, &a, &b);
			bool two = strchr(same[t], 'B');
			ricci_tensor *y =
				two ? ricci_op(g, same[t], a, b) : ricci_op(g, same[t], a);
			run(g, y, a, b, da, db, (float *)out[how]);
			ricci_graph_free(g);
		}
		CHECK_REPORT(!memcmp(out[0], out[1], sizeof out[0]), "%s", same[t]);
	}
}

enum { STEPS = 3, ROWS = 16, D = 32 };
static float xs[STEPS * ROWS * D], ws[2 * D * D], h[ROWS * D], next[ROWS * D];

/* h = x_t w0 + h w1 / 8, factors rounded. */
static void step_expected(int t)
{
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < D; j++) {
			double sum = 0, more = 0;
			for (int k = 0; k < D; k++) {
				sum += (double)rounded(xs[(t * ROWS + i) * D + k]) *
				       rounded(ws[k * D + j]);
				more += (double)rounded(h[i * D + k]) *
					rounded(ws[(D + k) * D + j]);
			}
			next[i * D + j] = (float)(sum + more / 8);
		}
	memcpy(h, next, sizeof h);
}

/* What a loop computes in its steps, and what leaves it. */
static void test_loop(void)
{
	static float got[ROWS * D];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){STEPS, ROWS, D});
	ricci_tensor *w = ricci_input(g, "w", RICCI_F32, 3, (int64_t[]){2, D, D});
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 2, (int64_t[]){ROWS, D});
	ricci_tensor *ht = ricci_input(g, "ht", RICCI_F32, 2, (int64_t[]){ROWS, D});
	ricci_tensor *zero = ricci_op(g, "Z[i,j] = 0*X[0,i,j]", x), *last;
	ricci_tensor *u = ricci_op(g, "U[i,j] += X[i,k] * W[0,k,j]", xt, w);
	ricci_tensor *v = ricci_op(g, "V[i,j] += H[i,k] * W[1,k,j]", ht, w);
	ricci_slice slice = {xt, x};
	ricci_carry carry = {ht, zero, ricci_op(g, "N[i,j] = U[i,j] + V[i,j]/8", u, v)};
	ricci_loop loop = RICCI_LOOP(.steps = STEPS, .nslice = 1, .slice = &slice, .ncarry = 1,
				     .carry = &carry);
	CHECK_INT(ricci_scan(g, &loop, &last, NULL), 0);
	CHECK_INT(ricci_precision(g, narrow), 0);
	memset(h, 0, sizeof h);
	run(g, last, x, w, xs, ws, got);
	for (int t = 0; t < STEPS; t++)
		step_expected(t);
	float most = 0;
	for (int i = 0; i < ROWS * D; i++)
		most = fmaxf(most, fabsf(got[i] - h[i]));
	/* a state near the middle of two narrow numbers may be rounded to the other */
	CHECK_REPORT(most < (narrow != RICCI_BF16 ? 0.0005 : 0.004), "off by %g", (double)most);
	ricci_graph_free(g);
}

/* What f16 can't hold becomes infinite or zero, before the product. */
static void test_range(void)
{
	static float big[M * K], one[K * N], y[M * N];
	for (int i = 0; i < K * N; i++)
		one[i] = i < N;
	for (int i = 0; i < M; i++)
		big[i * K] = i % 3 == 0 ? 65519 : i % 3 == 1 ? 65520 : 0x1p-25f;
	ricci_tensor *a, *b;
	ricci_graph *g = graph(RICCI_F16, &a, &b);
	run(g, ricci_op(g, "Y[i,j] += A[i,k] * B[k,j]", a, b), a, b, big, one, y);
	for (int i = 0; i < M * N; i++)
		CHECK(y[i] == (i / N % 3 == 0 ? 65504 : i / N % 3 == 1 ? INFINITY : 0));
	ricci_graph_free(g);
}

/* Kernels of vectors convert all of f16, and f32 near each of them, as the type does. */
static void test_conversions(void)
{
	enum { N = 65536 };
	static uint16_t half[N], out[N];
	static float wide[N], back[N];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *h = ricci_input(g, "h", RICCI_F16, 1, (int64_t[]){N});
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){N});
	ricci_tensor *y[] = {ricci_op(g, "Y[i] = f32(H[i])*1.0", h),
			     ricci_op(g, "Y[i] = f16(X[i])", x)};
	ricci_options o =
		RICCI_OPTIONS(.threads = 1, .static_mode = 1, .backend = RICCI_BACKEND_CC);
	ricci_session *s = ricci_session_new(g, &o, 0, 2, y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	/* in 2^13ths of the distance to the next: the number, before, on, and behind the middle */
	static const uint32_t beyond[] = {0, 0xfff, 0x1000, 0x1001};
	for (int k = 0; s && k < COUNT(beyond); k++) {
		int wrong = 0;
		for (int i = 0; i < N; i++) {
			uint32_t bits;
			half[i] = (uint16_t)i;
			wide[i] = (float)type_load(RICCI_F16, half, (size_t)i);
			memcpy(&bits, &wide[i], 4);
			bits += beyond[k];
			memcpy(&wide[i], &bits, 4);
		}
		CHECK_INT(ricci_feed(s, h, half, sizeof half), 0);
		CHECK_INT(ricci_feed(s, x, wide, sizeof wide), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, y[0], back, sizeof back), 0);
		CHECK_INT(ricci_fetch(s, y[1], out, sizeof out), 0);
		for (int i = 0; i < N; i++) {
			float want = (float)type_load(RICCI_F16, half, (size_t)i);
			uint16_t bits;
			type_store(RICCI_F16, &bits, 0, wide[i]);
			wrong += !(back[i] == want || (isnan(want) && isnan(back[i])));
			wrong += isnan(wide[i]) ? !isnan(type_load(RICCI_F16, out, (size_t)i))
						: out[i] != bits;
		}
		CHECK_REPORT(!wrong, "%d: %d are wrong", k, wrong);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* ---- stochastic rounding ---- */

enum { DRAWN = 4096, TIMES = 64 };

/* Rounds `x` in a session of that seed and so many threads, step after step. */
static void round_steps(const float *x, float (*out)[DRAWN], int steps, int threads, uint64_t seed)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *a = ricci_input(g, "a", RICCI_F32, 1, (int64_t[]){DRAWN});
	ricci_tensor *y = ricci_op(g, "Y[i] = f32(bf16(A[i]))", a);
	ricci_options o =
		RICCI_OPTIONS(.threads = threads, .seed = seed, .backend = RICCI_BACKEND_TCC);
	CHECK_INT(ricci_rounding(g, RICCI_STOCHASTIC), 0);
	ricci_session *s = ricci_session_new(g, &o, 0, 1, &y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	if (s)
		CHECK_INT(ricci_feed(s, a, x, ricci_bytes(a)), 0);
	for (int k = 0; s && k < steps; k++) {
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, y, out[k], ricci_bytes(y)), 0);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* Both neighbours come, and on average the number; the same seed gives the same bits. */
static void test_by_chance(void)
{
	static float x[DRAWN], out[TIMES][DRAWN], same[2][DRAWN];
	static const float exact[] = {0, -0.0f, 1, -2.5f, INFINITY, -INFINITY, NAN, 0x1p-149f};
	double bias = 0, differ = 0;
	int wrong = 0;
	fill(x, DRAWN, 5);
	for (int i = 0; i < DRAWN; i++) /* of many sizes */
		x[i] = ldexpf(x[i], i % 60 - 30);
	memcpy(x, exact, sizeof exact);
	round_steps(x, out, TIMES, 1, 7);
	for (int i = COUNT(exact); i < DRAWN; i++) {
		float y = rounded(x[i]), up = ldexpf(1, ilogbf(x[i]) - 7);
		double mean = 0;
		for (int k = 0; k < TIMES; k++) {
			wrong += rounded(out[k][i]) != out[k][i] || fabsf(out[k][i] - x[i]) >= up;
			differ += out[k][i] != y;
			mean += out[k][i] / TIMES;
		}
		bias += (mean - x[i]) / up / DRAWN;
	}
	CHECK_INT(wrong, 0);
	/* a quarter goes to the farther side; the mean of 2^18 draws is off by less than 5 sigma */
	CHECK_NEAR(differ / DRAWN / TIMES, 0.25, 0.01);
	CHECK_NEAR(bias, 0, 5 * 0.41 / 512);
	for (int i = 0; i < COUNT(exact); i++) {
		float y = rounded(exact[i]);
		CHECK(out[0][i] == y || (isnan(y) && isnan(out[0][i])));
	}
	round_steps(x, same, 2, 2, 7);
	CHECK(!memcmp(same[0] + 8, out[0] + 8, sizeof *same - 32));
	CHECK(!memcmp(same[1] + 8, out[1] + 8, sizeof *same - 32) &&
	      memcmp(same[0] + 8, same[1] + 8, sizeof *same - 32));
	round_steps(x, same, 1, 1, 8);
	CHECK(memcmp(same[0] + 8, out[0] + 8, sizeof *same - 32));
}

/* Factors of a product go both ways too: it is neither that of f32 nor that of the nearest, and as
 * near as such factors are. */
static void test_factors_by_chance(void)
{
	ricci_tensor *a, *b;
	ricci_graph *g = graph(RICCI_BF16, &a, &b);
	CHECK_INT(ricci_rounding(g, RICCI_STOCHASTIC), 0);
	run(g, ricci_op(g, "Y[i,j] += A[i,k] * B[k,j]", a, b), a, b, da, db, dy);
	CHECK(off(dy, da, db, false) > 1e-3);
	CHECK(off(dy, da, db, true) > 1e-3);
	CHECK(off(dy, da, db, false) < 0.08); /* 40 products, each off by 2^-7 at most twice */
	ricci_graph_free(g);
}

/* A bf16 parameter of 1 that shall become 2 by steps of 2^-10: half a place is 2^-8, so the nearest
 * is where it was. */
static float steps_of_a_parameter(ricci_rounding_mode mode)
{
	float mean = 0;
	uint16_t w[64];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *p = ricci_param(g, "p", RICCI_BF16, 1, (int64_t[]){64}, ricci_constant(1));
	ricci_tensor *next = ricci_op(g, "N[i] = bf16(f32(P[i]) + 0.0009765625)", p);
	ricci_assign(g, p, next);
	CHECK_INT(ricci_rounding(g, mode), 0);
	ricci_options o = RICCI_OPTIONS(.threads = 1, .backend = RICCI_BACKEND_TCC);
	ricci_session *s = ricci_session_new(g, &o, 1, 0, NULL);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int k = 0; s && k < 512; k++)
		CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, p, w, ricci_bytes(p)), 0);
	for (int i = 0; i < 64; i++)
		mean += (float)type_load(RICCI_BF16, w, (size_t)i) / 64;
	ricci_session_free(s);
	ricci_graph_free(g);
	return mean;
}

static void test_small_steps(void)
{
	CHECK_NEAR(steps_of_a_parameter(RICCI_NEAREST), 1, 0);
	CHECK_NEAR(steps_of_a_parameter(RICCI_STOCHASTIC), 1.5, 0.02);
}

/* A state that is rounded in each step, s = bf16(s/2 + x), and e = w bf16(.7 s + x), where w is 1:
 * by w, the gradient of e is the e that it computed again. */
enum { CELL_STEPS = 7, CELLS = 64 };

static void cells_run(const ricci_loop *way, bool region, float (*out)[CELL_STEPS * CELLS])
{
	float data[2][CELL_STEPS * CELLS];
	ricci_graph *g = ricci_graph_new();
	ricci_loop loop = *way;
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){CELL_STEPS, CELLS});
	ricci_tensor *w = ricci_input(g, "w", RICCI_F32, 2, (int64_t[]){CELL_STEPS, CELLS});
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 1, (int64_t[]){CELLS});
	ricci_tensor *wt = ricci_input(g, "wt", RICCI_F32, 1, (int64_t[]){CELLS});
	ricci_tensor *st = ricci_input(g, "st", RICCI_F32, 1, (int64_t[]){CELLS});
	ricci_tensor *in[] = {st, xt, wt}, *next, *result[2], *outputs[2], *final;
	next = ricci_op(g, "N[i] = f32(bf16(0.5*S[i] + X[i]))", st, xt);
	result[0] = next;
	result[1] = ricci_op(g, "E[i] = f32(bf16(0.7*N[i] + X[i]))*W[i]", next, xt, wt);
	if (region)
		ricci_recompute(g, 3, in, 2, result, result);
	loop.steps = CELL_STEPS;
	loop.nslice = 2;
	loop.slice = (ricci_slice[]){{xt, x}, {wt, w}};
	loop.ncarry = loop.nout = 1;
	loop.carry = &(ricci_carry){st, ricci_op(g, "Z[i] = 0.0 where i<64"), result[0]};
	loop.out = &result[1];
	ricci_scan(g, &loop, &final, outputs);
	ricci_grad(g, outputs[0], NULL, 1, &w, &outputs[1]);
	CHECK_INT(ricci_rounding(g, RICCI_STOCHASTIC), 0);
	ricci_options o = RICCI_OPTIONS(.threads = 1, .static_mode = 1,
					.backend = RICCI_BACKEND_TCC, .seed = 3);
	ricci_session *s = ricci_session_new(g, &o, 0, 2, outputs);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	fill(data[0], COUNT(data[0]), 9);
	for (int i = 0; i < COUNT(data[1]); i++)
		data[1][i] = 1;
	if (s) {
		CHECK_INT(ricci_feed(s, x, data[0], ricci_bytes(x)), 0);
		CHECK_INT(ricci_feed(s, w, data[1], ricci_bytes(w)), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, outputs[0], out[0], ricci_bytes(outputs[0])), 0);
		CHECK_INT(ricci_fetch(s, outputs[1], out[1], ricci_bytes(outputs[1])), 0);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* A step that is computed again for its gradient is rounded as it was, however that is done. */
static void test_rounded_again(void)
{
	const ricci_loop way[] = {RICCI_LOOP(.recompute = 0),
				  RICCI_LOOP(.recompute = 1),
				  RICCI_LOOP(.segment = 3),
				  RICCI_LOOP(.backwards = 1),
				  RICCI_LOOP(.backwards = 1, .recompute = 1),
				  RICCI_LOOP(.backwards = 1, .segment = 2)};
	static float out[2][CELL_STEPS * CELLS];
	for (int k = 0; k < 2 * COUNT(way); k++) {
		int other = 0;
		memset(out, 0, sizeof out);
		cells_run(&way[k / 2], k & 1, out);
		for (int i = 0; i < COUNT(out[0]); i++)
			other += out[0][i] != out[1][i];
		CHECK_REPORT(other == 0, "way %d: %d of %d are rounded otherwise", k, other,
			     COUNT(out[0]));
	}
}

static void test_errors(void)
{
	ricci_graph *g = ricci_graph_new();
	CHECK_INT(ricci_precision(g, RICCI_F64), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_precision: factors are f32, or rounded to bf16, f16 "
		  "or tf32; f64 is none of these");
	ricci_graph_free(g);
	g = ricci_graph_new();
	CHECK_INT(ricci_precision(g, (ricci_type)77), RICCI_EINVAL);
	ricci_graph_free(g);
	CHECK_INT(ricci_precision(NULL, RICCI_BF16), RICCI_EINVAL);
	g = ricci_graph_new();
	CHECK_INT(ricci_rounding(g, (ricci_rounding_mode)5), RICCI_EINVAL);
	CHECK_STR(
		ricci_error_message(),
		"ricci_rounding: the mode is 5; RICCI_NEAREST and RICCI_STOCHASTIC are those that "
		"there are");
	ricci_graph_free(g);
	CHECK_INT(ricci_rounding(NULL, RICCI_NEAREST), RICCI_EINVAL);
}

int main(void)
{
	fill(da, COUNT(da), 1);
	fill(db, COUNT(db), 2);
	fill(xs, COUNT(xs), 3);
	fill(ws, COUNT(ws), 4);
	static const ricci_type to[] = {RICCI_F16, RICCI_TF32, RICCI_BF16};
	for (int k = 0; k < COUNT(to); k++) {
		narrow = to[k];
		test_product();
		test_gradient();
		test_rest();
		test_loop();
	}
	test_range();
	test_conversions();
	test_by_chance();
	test_factors_by_chance();
	test_small_steps();
	test_rounded_again();
	test_errors();
	return check_done();
}
