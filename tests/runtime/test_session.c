/* test_session.c - sessions on every backend: results, training, assignments, shared states, data.
 */
#include "runtime/session.h"
#include "tests/check.h"
#include <stdlib.h>

static const ricci_backend all_backends[] = {RICCI_BACKEND_INTERP, RICCI_BACKEND_TCC,
					     RICCI_BACKEND_CC, RICCI_BACKEND_AUTO};

static bool backend_here(ricci_backend b)
{
	char why[256];

	return b != RICCI_BACKEND_CC || backend_find("cc")->available(why, sizeof why);
}

static void fill(float *x, int n, unsigned seed)
{
	for (int i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
	}
}

static ricci_session *session(ricci_graph *g, ricci_options o, int train, int n,
			      ricci_tensor *const *out)
{
	ricci_session *s = ricci_session_new(g, &o, train, n, out);

	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	return s;
}

/* A small network's outputs and gradients, on one backend. */
static void forward(ricci_backend backend, int threads, float *y, float *dw)
{
	enum { B = 5, K = 37, N = 19 };
	static float xs[B * K], ws[K * N];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){B, K});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){K, N}, ricci_constant(0));
	ricci_tensor *h = ricci_op(g, "H[b,n] += X[b,k] * W[k,n]", x, w);
	ricci_tensor *p = ricci_op(
		g,
		"m[b] max= H[b,n]; e[b,n] = exp(H[b,n]-m[b]); s[b] += e[b,n]; P[b,n] = e[b,n]/s[b]",
		h);
	ricci_tensor *l = ricci_op(g, "L[] += P[b,n] * P[b,n]", p);
	ricci_tensor *d;
	ricci_session *s;

	ricci_grad(g, l, NULL, 1, &w, &d);
	CHECK_GRAPH(g);
	s = session(g, RICCI_OPTIONS(.backend = backend, .threads = threads), 0, 2,
		    (ricci_tensor *[]){p, d});
	if (s) {
		fill(xs, B * K, 1);
		fill(ws, K * N, 2);
		CHECK(ricci_step(s) < 0); /* x has not been fed */
		CHECK_INT(ricci_feed(s, x, xs, ricci_bytes(x)), 0);
		CHECK_INT(ricci_feed(s, w, ws, ricci_bytes(w)), 0);
		CHECK(ricci_fetch(s, p, y, ricci_bytes(p)) < 0);
		for (int i = 0; i < 3; i++)
			CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, p, y, ricci_bytes(p)), 0);
		CHECK_INT(ricci_fetch(s, d, dw, ricci_bytes(d)), 0);
		CHECK(ricci_fetch(s, h, y, ricci_bytes(h)) < 0);
		CHECK_INT((int64_t)ricci_step_count(s), 3);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void test_backends(void)
{
	static float want[2][1000], got[2][1000];

	forward(RICCI_BACKEND_INTERP, 1, want[0], want[1]);
	for (int i = 1; i < COUNT(all_backends); i++) {
		if (!backend_here(all_backends[i]))
			continue;
		memset(got, 0, sizeof got);
		forward(all_backends[i], 1 + i % 2, got[0], got[1]);
		for (int k = 0; k < 5 * 19; k++)
			CHECK_NEAR(got[0][k], want[0][k], 1e-6);
		for (int k = 0; k < 37 * 19; k++)
			CHECK_NEAR(got[1][k], want[1][k], 1e-6);
	}
}

/* Linear regression finds the line that made the data. */
static void regression(ricci_backend backend, int static_mode)
{
	enum { B = 64, K = 3 };
	static const float truth[K] = {1.5f, -2, 0.25f};
	float xs[B * K], ys[B], w[K];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){B, K});
	ricci_tensor *y = ricci_input(g, "y", RICCI_F32, 1, (int64_t[]){B});
	ricci_tensor *v = ricci_param(g, "w", RICCI_F32, 1, (int64_t[]){K}, ricci_normal(0.1));
	ricci_tensor *p = ricci_op(g, "P[b] += X[b,k] * W[k]", x, v);
	ricci_tensor *l = ricci_op(g, "L[] += (P[b]-Y[b]) * (P[b]-Y[b])", p, y), *d;
	ricci_session *s;

	ricci_grad(g, l, NULL, 1, &v, &d);
	ricci_assign(g, v, ricci_op(g, "N[k] = W[k] - 0.02 * D[k]", v, d));
	CHECK_GRAPH(g);
	s = session(g, RICCI_OPTIONS(.backend = backend, .threads = 2, .static_mode = static_mode),
		    1, 1, &l);
	fill(xs, B * K, 7);
	for (int b = 0; b < B; b++) {
		ys[b] = 0;
		for (int k = 0; k < K; k++)
			ys[b] += xs[b * K + k] * truth[k];
	}
	if (s) {
		ricci_feed(s, x, xs, ricci_bytes(x));
		ricci_feed(s, y, ys, ricci_bytes(y));
		for (int i = 0; i < 300; i++)
			CHECK_INT(ricci_step(s), 0);
		ricci_fetch(s, v, w, ricci_bytes(v));
		for (int k = 0; k < K; k++)
			CHECK_NEAR(w[k], truth[k], 1e-3);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void test_training(void)
{
	for (int i = 0; i < COUNT(all_backends); i++)
		if (backend_here(all_backends[i]))
			for (int mode = 0; mode < 2; mode++)
				regression(all_backends[i], mode);
}

/* All values are computed from the old states and take effect together. */
static void test_assign(ricci_backend backend)
{
	ricci_graph *g = ricci_graph_new();
	int64_t shape[] = {40};
	ricci_tensor *a = ricci_state(g, "a", RICCI_F32, 1, shape, ricci_constant(1));
	ricci_tensor *b = ricci_state(g, "b", RICCI_F32, 1, shape, ricci_constant(2));
	ricci_tensor *c = ricci_state(g, "c", RICCI_F32, 1, shape, ricci_constant(3));
	ricci_tensor *d = ricci_state(g, "d", RICCI_F32, 1, shape, ricci_constant(4));
	ricci_tensor *e = ricci_state(g, "e", RICCI_F32, 1, shape, ricci_constant(5));
	ricci_tensor *r = ricci_state(g, "r", RICCI_F32, 1, shape, ricci_constant(0));
	ricci_tensor *sum = ricci_op(g, "S[i] = A[i] + C[i]", a, c);
	ricci_tensor *y = ricci_op(g, "Y[] += A[i] + 10*B[i]", a, b);
	ricci_session *s;
	float v[40], total;

	/* a and b change places; c and d both become a+c; e doubles; r turns round by the old r. */
	CHECK_INT(ricci_assign(g, a, b), 0);
	CHECK_INT(ricci_assign(g, b, a), 0);
	CHECK_INT(ricci_assign(g, c, sum), 0);
	CHECK_INT(ricci_assign(g, d, sum), 0);
	CHECK_INT(ricci_assign(g, e, ricci_op(g, "N[i] = 2*E[i]", e)), 0);
	CHECK_INT(ricci_assign(g, r, ricci_op(g, "N[i] = R[39-i] + 1.0", r)), 0);
	CHECK_GRAPH(g);
	s = session(g, RICCI_OPTIONS(.backend = backend), 1, 2, (ricci_tensor *[]){y, sum});
	if (s) {
		fill(v, 40, 3);
		for (int i = 0; i < 40; i++)
			v[i] = (float)i;
		ricci_feed(s, r, v, ricci_bytes(r));
		for (int step = 0; step < 3; step++) {
			float want = step % 2 ? 2 * 40 + 10 * 40 : 40 + 20 * 40;

			CHECK_INT(ricci_step(s), 0);
			ricci_fetch(s, y, &total, ricci_bytes(y));
			CHECK_NEAR(total, want, 1e-3);
		}
		/* a: 2 1 2; b: 1 2 1; c = a+c: 4 6 7; d the same; e: 40 */
		ricci_fetch(s, a, v, ricci_bytes(a));
		CHECK_NEAR(v[7], 2, 0);
		ricci_fetch(s, b, v, ricci_bytes(b));
		CHECK_NEAR(v[39], 1, 0);
		ricci_fetch(s, c, v, ricci_bytes(c));
		CHECK_NEAR(v[0], 7, 0);
		ricci_fetch(s, d, v, ricci_bytes(d));
		CHECK_NEAR(v[11], 7, 0);
		ricci_fetch(s, sum, v, ricci_bytes(sum));
		CHECK_NEAR(v[11], 7, 0);
		ricci_fetch(s, e, v, ricci_bytes(e));
		CHECK_NEAR(v[20], 40, 0);
		ricci_fetch(s, r, v, ricci_bytes(r));
		CHECK_NEAR(v[1], 38 + 3, 0);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void test_share(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){8});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 1, (int64_t[]){8}, ricci_uniform(1, 2));
	ricci_tensor *y = ricci_op(g, "Y[i] = X[i]*W[i]", x, w);
	ricci_session *s, *e;
	float v[8] = {1, 1, 1, 1, 1, 1, 1, 1}, a[8], b[8];

	ricci_assign(g, w, ricci_op(g, "N[i] = W[7-i] + X[i]", w, x));
	s = session(g, RICCI_OPTIONS(.seed = 5), 1, 1, &y);
	e = ricci_session_share(s, 0, 1, &y);
	CHECK_REPORT(e != NULL, "%s", ricci_error_message());
	ricci_feed(s, x, v, ricci_bytes(x));
	ricci_feed(e, x, v, ricci_bytes(x));
	ricci_fetch(s, w, a, ricci_bytes(w));
	for (int i = 0; i < 8; i++)
		CHECK(a[i] >= 1 && a[i] < 2);
	CHECK(a[0] != a[1]);
	for (int i = 0; i < 3; i++)
		CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_step(e), 0);
	ricci_fetch(e, y, b, ricci_bytes(y));
	for (int i = 0; i < 8; i++)
		CHECK_NEAR(b[i], a[7 - i] + 3, 1e-5);
	CHECK_INT((int64_t)ricci_step_count(e), 1);
	ricci_session_free(s); /* the states live on */
	CHECK_INT(ricci_step(e), 0);
	ricci_fetch(e, w, a, ricci_bytes(w));
	CHECK_NEAR(a[3], b[3], 0);
	ricci_session_free(e);
	ricci_graph_free(g);
}

/* First values depend on seed and name, not on the order of creation. */
static void test_seed(void)
{
	float v[3][10];

	for (int k = 0; k < 3; k++) {
		ricci_graph *g = ricci_graph_new();
		ricci_tensor *w = NULL, *other = NULL;
		ricci_session *s;

		for (int i = 0; i < 2; i++)
			if (i == k % 2)
				w = ricci_param(g, "w", RICCI_F32, 1, (int64_t[]){10},
						ricci_normal(1));
			else
				other = ricci_param(g, "other", RICCI_F32, 1, (int64_t[]){10},
						    ricci_normal(1));
		s = session(g, RICCI_OPTIONS(.seed = k == 2 ? 9 : 8), 0, 1, &w);
		ricci_fetch(s, w, v[k], ricci_bytes(w));
		CHECK(ricci_dtype(other) == RICCI_F32);
		CHECK_INT((int64_t)ricci_seed(s), k == 2 ? 9 : 8);
		CHECK_INT(ricci_step(s), 0); /* a graph without equations */
		ricci_session_free(s);
		ricci_graph_free(g);
	}
	CHECK(!memcmp(v[0], v[1], sizeof v[0]));
	CHECK(memcmp(v[0], v[2], sizeof v[0]));
}

static void test_contract(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *e = ricci_param(g, "e", RICCI_F32, 2, (int64_t[]){6, 4}, ricci_constant(1));
	ricci_tensor *t = ricci_input(g, "t", RICCI_I32, 1, (int64_t[]){3});
	ricci_tensor *y = ricci_op(g, "Y[i,d] = E[T[i],d]", e, t);
	ricci_session *s = session(g, RICCI_OPTIONS(), 0, 1, &y);
	int32_t good[] = {0, 5, 3}, bad[] = {0, 6, 3};
	float v[12];

	if (s) {
		CHECK_INT(ricci_feed(s, t, bad, ricci_bytes(t)), RICCI_EVALUE);
		CHECK_STR(ricci_error_message(), "'t': element 1 is 6, but the graph indexes with "
						 "it and needs 0..5");
		CHECK_INT(ricci_feed(s, t, good, ricci_bytes(t)), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, y, v, ricci_bytes(y)), 0);
		CHECK_NEAR(v[11], 1, 0);
		CHECK_INT(ricci_feed(s, y, v, ricci_bytes(y)), RICCI_EINVAL);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* What is NULL is named; a graph that is freed first lives as long as its session. */
static void test_order(void)
{
	float in[3] = {1, 2, 3}, out[3];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){3});
	ricci_tensor *y = ricci_op(g, "Y[i] = X[i] + 1", x);
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC), 0, 1, &y);

	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	ricci_graph_free(g);
	CHECK_INT(ricci_feed(s, x, NULL, ricci_bytes(x)), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "'x' is fed from NULL");
	CHECK_INT(ricci_feed(s, x, in, ricci_bytes(x)) || ricci_step(s) ||
			  ricci_fetch(s, y, out, ricci_bytes(y)),
		  0);
	CHECK(out[0] == 2 && out[2] == 4);
	CHECK_INT(ricci_fetch(s, y, NULL, ricci_bytes(y)), RICCI_EINVAL);
	CHECK(strstr(ricci_error_message(), "' is fetched to NULL") != NULL);
	CHECK_INT(ricci_fetch(s, NULL, out, sizeof out), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "not a tensor of the session's graph");
	ricci_session *t = ricci_session_share(s, 0, 1, &y);
	ricci_session_free(s);
	CHECK_INT(ricci_feed(t, x, in, ricci_bytes(x)) || ricci_step(t) ||
			  ricci_fetch(t, y, out, ricci_bytes(y)),
		  0);
	ricci_session_free(t);
}

static void test_errors(void)
{
	ricci_graph *g = ricci_graph_new(), *h = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){3});
	ricci_tensor *z = ricci_input(h, "z", RICCI_F32, 1, (int64_t[]){3});

	CHECK(!ricci_session_new(NULL, NULL, 0, 0, NULL));
	CHECK_STR(ricci_error_message(), "a session needs a graph and its outputs");
	CHECK(!ricci_session_new(g, NULL, 0, 1, &z));
	CHECK_STR(ricci_error_message(), "output 0 is not a tensor of this graph");
	CHECK(!ricci_session_new(g, &RICCI_OPTIONS(.backend = (ricci_backend)9), 0, 1, &x));
	CHECK_STR(ricci_error_message(), "there is no backend number 9");
	ricci_options bare = RICCI_OPTIONS(.threads = 1);
	bare.size = 0;
	CHECK(!ricci_session_new(g, &bare, 0, 1, &x));
	CHECK_STR(ricci_error_message(),
		  "ricci_options.size is 0, not sizeof(ricci_options): begin with RICCI_OPTIONS()");
	float data[3] = {1, 2, 3};
	ricci_session *s = ricci_session_new(h, NULL, 0, 1, &z);
	CHECK_INT(ricci_feed(s, z, data, sizeof *data), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_feed: 'z' is f32 [3], 12 bytes, not 4");
	CHECK_INT(ricci_feed(s, z, data, sizeof data), 0);
	CHECK_INT(ricci_fetch(s, z, data, 16), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_fetch: 'z' is f32 [3], 12 bytes, not 16");
	CHECK_INT(ricci_feed(NULL, z, data, sizeof data), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_feed: the session is NULL");
	ricci_session_free(s);
	CHECK(!ricci_session_new(g, &RICCI_OPTIONS(.threads = -7), 0, 1, &x));
	CHECK_STR(ricci_error_message(), "-7 threads: 0 means as many as the process may run on");
	CHECK(!ricci_session_new(g, NULL, 1, 1, &x));
	CHECK_STR(ricci_error_message(),
		  "a training session needs assignments, of an optimiser (ricci_adam) or by "
		  "ricci_assign; the graph has none");
	ricci_op(g, "Y[i] = X[j]", x);
	CHECK(!ricci_session_new(g, NULL, 0, 1, &x));
	const char *said = ricci_error_message();
	CHECK_INT(ricci_graph_error(g), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(), said);
	CHECK(ricci_step(NULL) < 0);
	ricci_session_free(NULL);
	ricci_graph_free(g);
	ricci_graph_free(h);
}

int main(void)
{
	setenv("RICCI_CACHE", "off", 1);
	setenv("RICCI_DEVICE", "2e10,5e10,3e-6", 1);
	test_backends();
	test_training();
	for (int i = 0; i < COUNT(all_backends); i++)
		if (backend_here(all_backends[i]))
			test_assign(all_backends[i]);
	test_share();
	test_seed();
	test_contract();
	test_order();
	test_errors();
	CHECK_INT(mem_live(), 0);
	return check_done();
}
