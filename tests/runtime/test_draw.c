/* test_draw.c - initial values: drawn when they are first read and not before, the same ones whoever
 * reads them when, by their definition (Philox, Box-Muller, computed here in double). */
#include "runtime/session.h"
#include "tests/check.h"
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 10007, SEED = 42 };

static uint64_t key_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return h;
}

/* Element i of a standard normal, or of 0..1. */
static double value_at(const char *name, uint64_t seed, int64_t i, bool normal)
{
	uint32_t w[4];
	const uint32_t *p = w + i % 4 / 2 * 2;

	philox((uint64_t)i / 4, key_of(name), seed, UINT64_MAX, w);
	if (!normal)
		return (double)(w[i % 4] >> 8) * 0x1p-24;
	double radius = sqrt(-2 * log((double)((p[0] >> 8) + 1) * 0x1p-24));
	double angle = 2 * M_PI * ((double)(p[1] >> 8) * 0x1p-24);

	return i % 2 ? radius * sin(angle) : radius * cos(angle);
}

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *w, *u, *h, *x, *loss;
} Net;

static Net net_new(void)
{
	Net n = {.g = ricci_graph_new()};
	ricci_tensor *d;

	n.w = ricci_param(n.g, "w", RICCI_F32, 1, (int64_t[]){N}, ricci_normal(0.5));
	n.u = ricci_param(n.g, "u", RICCI_F64, 1, (int64_t[]){N}, ricci_uniform(-2, 3));
	n.h = ricci_state(n.g, "h", RICCI_BF16, 1, (int64_t[]){N}, ricci_normal(4));
	n.x = ricci_state(n.g, "x", RICCI_F32, 1, (int64_t[]){N}, ricci_constant(-1.5));
	n.loss = ricci_op(n.g, "L[] += 0.5*W[i]*W[i]", n.w);
	ricci_grad(n.g, n.loss, NULL, 1, &n.w, &d);
	ricci_assign(n.g, n.w, ricci_op(n.g, "N[i] = W[i] - 0.25*D[i]", n.w, d));
	CHECK_GRAPH(n.g);
	return n;
}

static ricci_session *session(Net n, int threads, int train)
{
	ricci_session *s = ricci_session_new(
		n.g, &RICCI_OPTIONS(.seed = SEED, .threads = threads, .backend = RICCI_BACKEND_TCC),
		train, 1, &n.loss);

	CHECK_REPORT(s, "%s", ricci_error_message());
	return s;
}

static void check_w(ricci_session *s, Net n, double scale)
{
	static float w[N];
	double worst = 0;

	CHECK_INT(ricci_fetch(s, n.w, w, sizeof w), 0);
	for (int i = 0; i < N; i++)
		worst = fmax(worst, fabs((double)w[i] - scale * value_at("w", SEED, i, true)));
	CHECK_NEAR(worst, 0, 1e-6);
}

static void check_others(ricci_session *s, Net n)
{
	static double u[N];
	static uint16_t h[N];
	static float x[N];

	CHECK_INT(ricci_fetch(s, n.u, u, sizeof u), 0);
	CHECK_INT(ricci_fetch(s, n.h, h, sizeof h), 0);
	CHECK_INT(ricci_fetch(s, n.x, x, sizeof x), 0);
	for (int i = 0; i < N; i += i < 100 ? 1 : 97) {
		double v = 4 * value_at("h", SEED, i, true);

		CHECK_NEAR(u[i], -2 + 5 * value_at("u", SEED, i, false), 1e-12);
		CHECK_NEAR(type_load(RICCI_BF16, h, (size_t)i), v, fabs(v) / 256 + 1e-6);
		CHECK_NEAR(x[i], -1.5, 0);
	}
}

/* Fetched at once, after a step, by another session, with any number of threads. */
static void test_values(void)
{
	Net n = net_new();

	for (int threads = 1; threads <= 3; threads++) {
		ricci_session *s = session(n, threads, 1);
		ricci_session *t = ricci_session_share(s, 0, 1, &n.loss);
		float loss, want = 0;

		check_others(threads % 2 ? s : t, n);
		check_w(t, n, 0.5);
		CHECK_INT(ricci_step(t), 0);
		CHECK_INT(ricci_fetch(t, n.loss, &loss, sizeof loss), 0);
		for (int i = 0; i < N; i++)
			want += (float)pow(0.5 * value_at("w", SEED, i, true), 2) / 2;
		CHECK_NEAR(loss, want, 1e-3 * (double)want);
		ricci_session_free(t);
		ricci_session_free(s);
		s = session(n, threads, 1);
		t = ricci_session_share(s, 0, 1, &n.loss);
		CHECK_INT(ricci_step(s), 0); /* first, and in place */
		check_w(threads % 2 ? s : t, n, 0.5 * 0.75);
		check_others(s, n);
		CHECK_INT(ricci_step(t), 0);
		CHECK_INT(ricci_step(s), 0);
		check_w(t, n, 0.5 * 0.75 * 0.75);
		ricci_session_free(s);
		check_others(t, n);
		ricci_session_free(t);
	}
	ricci_graph_free(n.g);
}

/* What is fed before anyone reads it, and what nobody reads, is never drawn. */
static void test_fed(void)
{
	static float f[N] = {3}, got[N];
	Net n = net_new();
	ricci_session *s = session(n, 2, 1), *t = ricci_session_share(s, 0, 1, &n.x);

	CHECK(!session_drawn(s, n.w) && !session_drawn(s, n.u) && !session_drawn(t, n.h));
	CHECK_INT(ricci_step(t), 0); /* x is its output */
	CHECK(session_drawn(s, n.x));
	CHECK(!session_drawn(s, n.w) && !session_drawn(s, n.u) && !session_drawn(s, n.h));
	CHECK_INT(ricci_feed(t, n.w, f, sizeof f - 4), RICCI_EINVAL);
	CHECK(!session_drawn(s, n.w));
	CHECK_INT(ricci_feed(t, n.w, f, sizeof f), 0);
	CHECK(session_drawn(s, n.w));
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, n.w, got, sizeof got), 0);
	for (int i = 0; i < N; i++)
		CHECK_NEAR(got[i], 0.75 * (double)f[i], 1e-6);
	CHECK(!session_drawn(s, n.u) && !session_drawn(s, n.h));
	check_others(s, n);
	CHECK(session_drawn(t, n.u) && session_drawn(t, n.h));
	ricci_session_free(s);
	ricci_session_free(t);
	ricci_graph_free(n.g);
}

/* Several threads meet values that nobody has drawn. */
typedef struct Reader {
	Net n;
	ricci_session *s;
	bool steps;
	float loss, w[N];
	double u[N];
} Reader;

static void *reader_main(void *user)
{
	Reader *r = user;

	if (!r->steps)
		CHECK_INT(ricci_fetch(r->s, r->n.w, r->w, sizeof r->w), 0);
	CHECK_INT(ricci_step(r->s), 0);
	CHECK_INT(ricci_fetch(r->s, r->n.loss, &r->loss, sizeof r->loss), 0);
	CHECK_INT(ricci_fetch(r->s, r->n.w, r->w, sizeof r->w), 0);
	CHECK_INT(ricci_fetch(r->s, r->n.u, r->u, sizeof r->u), 0);
	return NULL;
}

static void test_threads(void)
{
	enum { READERS = 3 };
	static Reader r[READERS];
	Net n = net_new();
	pthread_t thread[READERS];

	for (int i = 0; i < READERS; i++)
		r[i] = (Reader){.n = n, .steps = i % 2, .s = r[0].s};
	r[0].s = session(n, 2, 0);
	for (int i = 1; i < READERS; i++)
		r[i].s = ricci_session_share(r[0].s, 0, 1, &n.loss);
	for (int i = 0; i < READERS; i++)
		CHECK_INT(pthread_create(&thread[i], NULL, reader_main, &r[i]), 0);
	for (int i = 0; i < READERS; i++)
		CHECK_INT(pthread_join(thread[i], NULL), 0);
	for (int i = 0; i < READERS; i++) {
		CHECK_NEAR(r[i].loss, r[0].loss, 1e-5 * (double)r[0].loss);
		CHECK(!memcmp(r[i].w, r[0].w, sizeof r[i].w));
		CHECK(!memcmp(r[i].u, r[0].u, sizeof r[i].u));
		CHECK_NEAR(r[i].w[N - 1], 0.5 * value_at("w", SEED, N - 1, true), 1e-6);
		CHECK_NEAR(r[i].u[N - 1], -2 + 5 * value_at("u", SEED, N - 1, false), 1e-12);
	}
	for (int i = 0; i < READERS; i++)
		ricci_session_free(r[i].s);
	ricci_graph_free(n.g);
}

/* A child draws for a session of its own, over the graph that it inherits. */
static void test_fork(void)
{
	Net n = net_new();
	ricci_session *s = session(n, 2, 1);
	int status = 1;
	pid_t child = fork();

	if (!child) {
		ricci_session *own = session(n, 1, 1);
		int before = check_failed;
		float w;

		check_w(own, n, 0.5);
		check_others(own, n);
		CHECK_INT(ricci_fetch(s, n.w, &w, sizeof w), RICCI_EINVAL);
		ricci_session_free(own);
		_exit(check_failed != before);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_INT(status, 0);
	check_w(s, n, 0.5);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

int main(void)
{
	test_values();
	test_fed();
	test_threads();
	test_fork();
	return check_done();
}
