/* test_subnormals.c - what kernels compute is 0 where it would be subnormal, by all backends and in all
 * threads; the calling thread's own arithmetic keeps such numbers. */
#include "tests/check.h"

#include <float.h>
#include <ricci.h>

enum { N = 40000, STEPS = 1200 };

static float data[N], got[N];

static bool caller_keeps_them(void)
{
	volatile float small = 1e-20f;
	volatile float product = small * small;
	return product > 0;
}

static ricci_session *session_new(ricci_graph *g, int train, ricci_tensor *y, ricci_backend backend)
{
	ricci_options o = RICCI_OPTIONS(.backend = backend, .threads = 3);
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, &o, train, 1, &y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	return s;
}

/* All elements of `text` where X's are x; `text` makes Y of X. */
static void check_all(ricci_backend backend, const char *text, float x, float want)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *in = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){N});
	ricci_tensor *y = ricci_op(g, text, in);
	ricci_session *s = session_new(g, 0, y, backend);
	int wrong = 0;
	for (int i = 0; i < N; i++)
		data[i] = x;
	CHECK_INT(ricci_feed(s, in, data, sizeof data), 0);
	CHECK_REPORT(ricci_step(s) == 0, "%s", ricci_error_message());
	CHECK(caller_keeps_them());
	CHECK_INT(ricci_fetch(s, y, got, sizeof got), 0);
	for (int i = 0; i < N; i++)
		wrong += got[i] != want;
	CHECK_REPORT(wrong == 0, "%s of %g: %d of %d are not %g, the first is %g", text, x, wrong,
		     N, want, got[0]);
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void check_backend(ricci_backend backend)
{
	check_all(backend, "Y[i] = X[i] * X[i]", 1e-20f, 0);
	check_all(backend, "Y[i] = 1e-30 * X[i] == 0 ? 1 : 2", 1e-10f, 1);
	check_all(backend, "Y[i] = sqrt(X[i] * X[i])", 1e-20f, 0);
	check_all(backend, "Y[i] = log(X[i] * X[i])", 1e-20f, -INFINITY);
	check_all(backend, "Y[i] = exp(X[i])", -95, 0);
	check_all(backend, "Y[i] = X[i]", FLT_MIN, FLT_MIN);
	check_all(backend, "Y[i] = X[i] * 0.5", 4 * FLT_MIN, 2 * FLT_MIN);
}

/* A momentum without gradients goes to zero: 0.9 of the least subnormal number is that number, for ever. */
static void check_decay(ricci_backend backend)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *m = ricci_state(g, "m", RICCI_F32, 1, (int64_t[]){N}, ricci_constant(1));
	ricci_tensor *y = ricci_op(g, "Y[i] = 0.9 * M[i]", m);
	ricci_assign(g, m, y);
	ricci_session *s = session_new(g, 1, y, backend);
	int left = 0;
	for (int i = 0; i < STEPS; i++)
		CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, m, got, sizeof got), 0);
	for (int i = 0; i < N; i++)
		left += got[i] != 0;
	CHECK_REPORT(left == 0, "%d of %d are not 0, the first is %g", left, N, got[0]);
	ricci_session_free(s);
	ricci_graph_free(g);
}

int main(void)
{
	static const ricci_backend backends[] = {RICCI_BACKEND_TCC, RICCI_BACKEND_CC};
	for (int i = 0; i < 2; i++) {
		check_backend(backends[i]);
		check_decay(backends[i]);
	}
	return check_done();
}
