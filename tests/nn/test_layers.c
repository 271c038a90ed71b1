/* Layers, losses and optimisers against plain C loops, evaluated by the reference interpreter; and
 * what they say to wrong operands. */
#include "nn/data/data.h"
#include "nn/nn.h"
#include "tests/check.h"

#include <stdlib.h>

#define SHAPE(...)                                                                                 \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* Inputs of a graph with values, for the interpreter. */
typedef struct Bench {
	ricci_graph *g;
	Binding bind[16];
	int n;
} Bench;

static Bench bench_new(void)
{
	return (Bench){.g = ricci_graph_new()};
}

static float *bench_values(Bench *b, ricci_tensor *t, uint64_t seed)
{
	size_t n = ricci_bytes(t) / sizeof(float);
	float *v = malloc((n ? n : 1) * sizeof *v);
	Rng r = rng_make(seed, 0);
	for (size_t i = 0; i < n; i++)
		v[i] = (float)rng_range(&r, -1, 1);
	b->bind[b->n++] = (Binding){t->node, v};
	return v;
}

static ricci_tensor *bench_input(Bench *b, const char *name, float **v, int rank,
				 const int64_t *shape)
{
	ricci_tensor *t = ricci_input(b->g, name, RICCI_F32, rank, shape);
	*v = bench_values(b, t, (uint64_t)b->n + 1);
	return t;
}

static ricci_tensor *bench_labels(Bench *b, const char *name, int32_t *v, int64_t n)
{
	ricci_tensor *t = ricci_input(b->g, name, RICCI_I32, 1, &n);
	int32_t *copy = malloc((size_t)n * sizeof *v);
	memcpy(copy, v, (size_t)n * sizeof *v);
	b->bind[b->n++] = (Binding){t->node, copy};
	return t;
}

/* Values of y: doubles, or int64 for integers. The caller frees. */
static void *bench_run(Bench *b, ricci_tensor *y)
{
	Error e = {0};
	double *out = calloc((size_t)tensor_size(y->node), sizeof *out);
	CHECK_GRAPH(b->g);
	CHECK_INT(interp_tensor(y->node, b->n, b->bind, (RandomState){1, 0}, out, NULL, &e), 0);
	CHECK_STR(e.text, "");
	return out;
}

static void bench_free(Bench *b)
{
	for (int i = 0; i < b->n; i++)
		free((void *)b->bind[i].data);
	ricci_graph_free(b->g);
}

static void linear(void)
{
	Bench b = bench_new();
	float *x, *w, *c;
	ricci_tensor *tx = bench_input(&b, "x", &x, SHAPE(3, 7));
	ricci_tensor *tw = bench_input(&b, "w", &w, SHAPE(5, 7));
	ricci_tensor *tc = bench_input(&b, "c", &c, SHAPE(5));
	double *y = bench_run(&b, ricci_relu(ricci_linear(tx, tw, tc)));
	for (int i = 0; i < 3; i++)
		for (int n = 0; n < 5; n++) {
			double s = c[n];
			for (int k = 0; k < 7; k++)
				s += (double)x[i * 7 + k] * w[n * 7 + k];
			CHECK_NEAR(y[i * 5 + n], s > 0 ? s : 0, 1e-6);
		}
	free(y);
	bench_free(&b);
}

static void conv(int stride, int pad)
{
	enum { B = 2, C = 3, H = 8, W = 7, K = 4, R = 3, S = 2 };
	Bench b = bench_new();
	float *x, *w, *c;
	ricci_tensor *tx = bench_input(&b, "x", &x, SHAPE(B, C, H, W));
	ricci_tensor *tw = bench_input(&b, "w", &w, SHAPE(K, C, R, S));
	ricci_tensor *tc = bench_input(&b, "c", &c, SHAPE(K));
	ricci_tensor *ty = ricci_conv2d(tx, tw, tc, stride, pad);
	int P = (H + 2 * pad - R) / stride + 1, Q = (W + 2 * pad - S) / stride + 1;
	CHECK_INT(ricci_extent(ty, 2), P);
	CHECK_INT(ricci_extent(ty, 3), Q);
	double *y = bench_run(&b, ty), most = 0;
	for (int i = 0; i < B * K * P * Q; i++) {
		int q = i % Q, p = i / Q % P, k = i / (P * Q) % K, n = i / (P * Q * K);
		double s = c[k];
		for (int d = 0; d < C * R * S; d++) {
			int ch = d / (R * S), r = d / S % R, t = d % S;
			int row = stride * p + r - pad, col = stride * q + t - pad;
			if (row >= 0 && row < H && col >= 0 && col < W)
				s += (double)x[((n * C + ch) * H + row) * W + col] *
				     w[((k * C + ch) * R + r) * S + t];
		}
		most = fmax(most, fabs(y[i] - s));
	}
	CHECK_NEAR(most, 0, 1e-6);
	free(y);
	bench_free(&b);
}

static void squash_of(const double *v, int n, double *out)
{
	double s = 0;
	for (int i = 0; i < n; i++)
		s += v[i] * v[i];
	for (int i = 0; i < n; i++)
		out[i] = v[i] * s / (1 + s) / sqrt(s + 1e-7);
}

static void capsules(void)
{
	enum { B = 2, C = 3, H = 7, K = 2, P = 3 };
	Bench b = bench_new();
	float *x, *w;
	ricci_tensor *tx = bench_input(&b, "x", &x, SHAPE(B, C * 16, H, H));
	ricci_tensor *tw = bench_input(&b, "w", &w, SHAPE(K, C, 3, 3, 4, 4));
	ricci_tensor *ty = ricci_squash(ricci_capsule_conv(ricci_capsules(tx, 4, 4), tw, 2), 2);
	CHECK_INT(ricci_extent(ty, 3), P);
	double *y = bench_run(&b, ty), most = 0;
	for (int at = 0; at < B * K * P * P; at++) {
		int q = at % P, p = at / P % P, k = at / (P * P) % K, n = at / (P * P * K);
		double pose[16] = {0}, want[16];
		for (int e = 0; e < 16; e++)
			for (int d = 0; d < C * 9 * 4; d++) {
				int c = d / 36, r = d / 12 % 3, s = d / 4 % 3, t = d % 4;
				int channel = 16 * c + 4 * (e / 4) + t;
				pose[e] += (double)x[((n * C * 16 + channel) * H + 2 * p + r) * H +
						     2 * q + s] *
					   w[((((k * C + c) * 3 + r) * 3 + s) * 4 + t) * 4 + e % 4];
			}
		squash_of(pose, 16, want);
		for (int e = 0; e < 16; e++)
			most = fmax(most, fabs(want[e] - y[at * 16 + e]));
	}
	CHECK_NEAR(most, 0, 1e-6);
	free(y);
	bench_free(&b);
}

/* u [B,N,M,D] -> v [B,M,D], as the procedure is written. */
static void route(int B, int N, int M, int D, int iterations, const double *u, double *v)
{
	double *logit = calloc((size_t)(B * N * M), sizeof *logit), s[16];
	for (int it = 0; it < iterations; it++) {
		for (int b = 0; b < B; b++)
			for (int m = 0; m < M; m++) {
				memset(s, 0, sizeof s);
				for (int n = 0; n < N; n++) {
					double z = 0, *l = logit + (b * N + n) * M;
					for (int k = 0; k < M; k++)
						z += exp(l[k]);
					for (int d = 0; d < D; d++)
						s[d] += exp(l[m]) / z *
							u[((b * N + n) * M + m) * D + d];
				}
				squash_of(s, D, v + (b * M + m) * D);
			}
		for (int i = 0; i < B * N * M; i++)
			for (int d = 0; d < D; d++)
				logit[i] += u[i * D + d] * v[(i / (N * M) * M + i % M) * D + d];
	}
	free(logit);
}

static void routing(int iterations)
{
	enum { B = 2, C = 3, H = 2, W = 3, N = C * H * W, M = 5 };
	Bench b = bench_new();
	float *x, *w;
	ricci_tensor *tx = bench_input(&b, "x", &x, SHAPE(B, C, H, W, 4, 4));
	ricci_tensor *tw = bench_input(&b, "w", &w, SHAPE(N, M, 4, 4));
	ricci_tensor *tu = ricci_votes(tx, tw), *tv = ricci_routing(tu, iterations);
	double *u = bench_run(&b, tu), *v = bench_run(&b, tv), most = 0;
	for (int at = 0; at < B * N * M * 16; at++) {
		int j = at % 4, i = at / 4 % 4, m = at / 16 % M, n = at / (16 * M) % N;
		double s = 0;
		for (int t = 0; t < 4; t++)
			s += (double)x[(at / (16 * M * N) * N + n) * 16 + 4 * i + t] *
			     w[((n * M + m) * 4 + t) * 4 + j];
		most = fmax(most, fabs(s - u[at]));
	}
	CHECK_NEAR(most, 0, 1e-6);
	double want[B * M * 16];
	route(B, N, M, 16, iterations, u, want);
	most = 0;
	for (int i = 0; i < B * M * 16; i++)
		most = fmax(most, fabs(want[i] - v[i]));
	CHECK_NEAR(most, 0, 1e-9);
	free(u);
	free(v);
	bench_free(&b);
}

static void pools(void)
{
	Bench b = bench_new();
	float *x;
	ricci_tensor *tx = bench_input(&b, "x", &x, SHAPE(2, 3, 5, 7));
	double *y = bench_run(&b, ricci_max_pool2d(tx, 3, 2));
	for (int at = 0; at < 2 * 3 * 2 * 3; at++) {
		double most = -2;
		for (int d = 0; d < 9; d++) {
			int row = 2 * (at / 3 % 2) + d / 3, col = 2 * (at % 3) + d % 3;
			most = fmax(most, x[(at / 6 * 5 + row) * 7 + col]);
		}
		CHECK_NEAR(y[at], most, 0);
	}
	free(y);
	y = bench_run(&b, ricci_global_avg_pool2d(tx));
	for (int at = 0; at < 6; at++) {
		double sum = 0;
		for (int k = 0; k < 35; k++)
			sum += x[at * 35 + k];
		CHECK_NEAR(y[at], sum / 35, 1e-7);
	}
	free(y);
	y = bench_run(&b, ricci_softmax(tx));
	for (int at = 0; at < 30; at++) {
		double z = 0;
		for (int k = 0; k < 7; k++)
			z += exp(x[at * 7 + k]);
		for (int k = 0; k < 7; k++)
			CHECK_NEAR(y[at * 7 + k], exp(x[at * 7 + k]) / z, 1e-7);
	}
	free(y);
	bench_free(&b);
}

static void losses(void)
{
	enum { B = 4, M = 5, D = 6 };
	Bench b = bench_new();
	float *v, *z, *a;
	int32_t label[B] = {3, 0, 4, 1};
	ricci_tensor *tv = bench_input(&b, "v", &v, SHAPE(B, M, 2, 3));
	ricci_tensor *tz = bench_input(&b, "z", &z, SHAPE(B, M));
	ricci_tensor *ta = bench_input(&b, "a", &a, SHAPE(B, M));
	ricci_tensor *tl = bench_labels(&b, "label", label, B);
	for (int i = 0; i < B * M * D; i++)
		v[i] *= 0.6f;
	z[0] = 90; /* exp of it is no f32: the losses must not care */
	double margin = 0, cross = 0, square = 0;
	for (int i = 0; i < B; i++) {
		double sum = 0;
		for (int m = 0; m < M; m++) {
			double n = 1e-7;
			for (int d = 0; d < D; d++)
				n += (double)v[(i * M + m) * D + d] * v[(i * M + m) * D + d];
			n = sqrt(n);
			margin += m == label[i] ? pow(fmax(0, 0.9 - n), 2)
						: 0.5 * pow(fmax(0, n - 0.1), 2);
			sum += exp((double)z[i * M + m]);
			square += pow((double)z[i * M + m] - a[i * M + m], 2);
		}
		cross += log(sum) - z[i * M + label[i]];
	}
	double *y = bench_run(&b, ricci_margin_loss(tv, tl));
	CHECK_NEAR(y[0], margin / B, 1e-6);
	free(y);
	y = bench_run(&b, ricci_cross_entropy(tz, tl));
	CHECK_NEAR(y[0], cross / B, 1e-5);
	free(y);
	y = bench_run(&b, ricci_mean_squared_error(tz, ta));
	CHECK_NEAR(y[0], square / (B * M), 1e-3);
	free(y);
	bench_free(&b);
}

static void errors(void)
{
	enum { B = 5, M = 3 };
	Bench b = bench_new();
	float *z, *v;
	int32_t label[B] = {2, 0, 1, 1, 0};
	float scores[B][M] = {{0, 1, 2}, {0, 1, 2}, {1, 1, 0}, {0, NAN, 0}, {5, -9, 1}};
	int64_t want[B] = {0, 1, 1, 1, 0}, length[B] = {0, 1, 1, 1, 1};
	ricci_tensor *tz = bench_input(&b, "z", &z, SHAPE(B, M));
	ricci_tensor *tv = bench_input(&b, "v", &v, SHAPE(B, M, 1, 1));
	ricci_tensor *tl = bench_labels(&b, "label", label, B);
	memcpy(z, scores, sizeof scores);
	memcpy(v, scores, sizeof scores);
	ricci_tensor *te = ricci_misclassified(tz, tl);
	CHECK_INT(ricci_dtype(te), RICCI_I32);
	int64_t *y = bench_run(&b, te), *n = bench_run(&b, ricci_misclassified(tv, tl));
	for (int i = 0; i < B; i++) {
		CHECK_INT(y[i], want[i]);
		CHECK_INT(n[i], length[i]);
	}
	free(y);
	free(n);
	bench_free(&b);
}

/* Three steps on loss = sum (p - a)^2 / 2, whose gradient is p - a. */
static void optimiser(int kind)
{
	enum { N = 4, STEPS = 3 };
	Bench b = bench_new();
	ricci_tensor *p = ricci_param(b.g, "p", RICCI_F32, 1, (int64_t[]){N}, ricci_constant(0));
	float *pv = bench_values(&b, p, 1), *a;
	ricci_tensor *ta = bench_input(&b, "a", &a, SHAPE(N));
	ricci_tensor *loss = ricci_op(b.g, "D[i] = P[i] - A[i]; L[] += D[i] * D[i] * 0.5", p, ta);
	ricci_tensor *rate = ricci_learning_rate(b.g, 0.1);
	double lr = 0.1, want[N], m[N] = {0}, v[N] = {0};
	int status = kind == 0	 ? ricci_sgd(loss, rate)
		     : kind == 1 ? ricci_momentum(loss, rate, 0.9)
				 : ricci_adam(loss, rate, 0.9, 0.999, 1e-8);
	CHECK_INT(status, 0);
	CHECK_GRAPH(b.g);
	/* the states' values, kept in buffers that the interpreter reads and we write */
	int first = b.n, trained;
	for (int i = 0; i < ricci_param_count(b.g); i++) {
		ricci_tensor *s = ricci_param_at(b.g, i, &trained);
		if (trained)
			continue;
		void *data = calloc(1, ricci_bytes(s));
		if (!strcmp(ricci_name(s), "learning_rate"))
			*(float *)data = 0.1f;
		b.bind[b.n++] = (Binding){s->node, data};
	}
	CHECK_INT(b.n - first, kind == 0 ? 1 : kind == 1 ? 2 : 4);
	for (int i = 0; i < N; i++)
		want[i] = pv[i];
	for (int step = 1; step <= STEPS && p->assign; step++) {
		double *next[16] = {0};
		for (int i = 0; i < ricci_param_count(b.g); i++) {
			ricci_tensor *s = ricci_param_at(b.g, i, &trained);
			next[i] = s->assign ? bench_run(&b, s->assign) : NULL;
		}
		for (int i = 0; i < ricci_param_count(b.g); i++) {
			ricci_tensor *s = ricci_param_at(b.g, i, &trained);
			for (int k = 0; k < b.n && next[i]; k++)
				for (int64_t j = 0;
				     b.bind[k].tensor == s->node && j < tensor_size(s->node); j++)
					if (ricci_dtype(s) == RICCI_I32)
						((int32_t *)b.bind[k].data)[j] =
							(int32_t)((int64_t *)next[i])[j];
					else
						((float *)b.bind[k].data)[j] = (float)next[i][j];
			free(next[i]);
		}
		for (int i = 0; i < N; i++) {
			double g = want[i] - a[i];
			if (kind == 0) {
				want[i] -= lr * g;
			} else if (kind == 1) {
				m[i] = 0.9 * m[i] + g;
				want[i] -= lr * m[i];
			} else {
				m[i] = 0.9 * m[i] + 0.1 * g;
				v[i] = 0.999 * v[i] + 0.001 * g * g;
				want[i] -= lr * m[i] / (1 - pow(0.9, step)) /
					   (sqrt(v[i] / (1 - pow(0.999, step))) + 1e-8);
			}
			CHECK_NEAR(pv[i], want[i], 1e-5);
		}
	}
	bench_free(&b);
}

#define WRONG(message, expression)                                                                 \
	do {                                                                                       \
		ricci_graph *g = ricci_graph_new();                                                \
		ricci_tensor *x2 = ricci_input(g, "x2", RICCI_F32, SHAPE(3, 4));                   \
		ricci_tensor *x4 = ricci_input(g, "x4", RICCI_F32, SHAPE(2, 6, 5, 5));             \
		ricci_tensor *w4 = ricci_input(g, "w4", RICCI_F32, SHAPE(2, 6, 7, 3));             \
		(void)x2, (void)x4, (void)w4;                                                      \
		ricci_tensor *y_ = (expression);                                                   \
		CHECK(y_ == &g->nil);                                                              \
		CHECK_INT(ricci_graph_error(g), RICCI_ESHAPE);                                     \
		CHECK_STR(ricci_error_message(), message);                                         \
		CHECK(ricci_relu(x2) == &g->nil);                                                  \
		ricci_graph_free(g);                                                               \
	} while (0)

static void wrong(void)
{
	WRONG("ricci_linear: w [out, in] expected, 'x4' has 4 dimensions",
	      ricci_linear(x2, x4, NULL));
	WRONG("ricci_linear: no tensor given for w [out, in]", ricci_linear(x2, NULL, NULL));
	WRONG("ricci_conv2d: a window of 7 with stride 1 and padding 0 does not fit an image of 5",
	      ricci_conv2d(x4, w4, NULL, 1, 0));
	WRONG("ricci_conv2d: the stride is 0, it must be 1 or more",
	      ricci_conv2d(x4, w4, NULL, 0, 1));
	WRONG("ricci_capsules: 6 channels are not capsules of 4 x 4", ricci_capsules(x4, 4, 4));
	WRONG("ricci_squash: x has 2 dimensions, not 3", ricci_squash(x2, 3));
	WRONG("ricci_routing: votes [batch, capsule, class, i, j] expected, 'x2' has 2 dimensions",
	      ricci_routing(x2, 3));
	WRONG("ricci_mean_squared_error: the two tensors differ in shape",
	      ricci_mean_squared_error(x4, w4));
	CHECK(!ricci_relu(NULL));
	CHECK_INT(ricci_sgd(NULL, NULL), RICCI_EINVAL);
}

int main(void)
{
	linear();
	conv(1, 0);
	conv(2, 1);
	conv(3, 2);
	capsules();
	for (int k = 1; k <= 3; k++)
		routing(k);
	pools();
	losses();
	errors();
	for (int kind = 0; kind < 3; kind++)
		optimiser(kind);
	wrong();
	return check_done();
}
