/* test_threads.c - sessions of one graph in several threads, in ten configurations: made, stepped
 * and freed at the same time, alone or sharing parameters, the graph freed before them. Under
 * `make check-tsan` this is what finds races. */
#include "runtime/session.h"
#include "tests/check.h"

enum { B = 16, K = 24, N = 20, USERS = 4 };

typedef struct Config {
	ricci_backend backend;
	int static_mode, threads; /* of each session */
	int users, rounds, steps;
	bool shared; /* all share the parameters of one that trains meanwhile */
	bool early;  /* the graph is freed while they step */
} Config;

static const Config config[] = {
	{RICCI_BACKEND_INTERP, 0, 1, 4, 4, 2, false, false},
	{RICCI_BACKEND_TCC, 1, 1, 4, 6, 6, false, false},
	{RICCI_BACKEND_TCC, 0, 1, 2, 3, 40, false, true},
	{RICCI_BACKEND_TCC, 0, 2, 3, 3, 20, true, false},
	{RICCI_BACKEND_TCC, 1, 2, 4, 4, 10, true, true},
	{RICCI_BACKEND_AUTO, 0, 1, 4, 2, 60, false, false},
	{RICCI_BACKEND_AUTO, 0, 2, 2, 2, 100, false, true},
	{RICCI_BACKEND_AUTO, 0, 2, 4, 3, 40, true, false},
	{RICCI_BACKEND_AUTO, 0, 1, 3, 4, 30, true, true},
	{RICCI_BACKEND_INTERP, 0, 2, 3, 3, 3, true, true},
};

typedef struct Net {
	const Config *c;
	ricci_graph *g;
	ricci_tensor *x, *y, *w;
	ricci_session *base; /* shared: trains */
	pthread_barrier_t made;
} Net;

/* W moves by 1/4 a step; Y = X W, with X of ones: all elements of Y are K times one of W. */
static void net_make(Net *n, const Config *c)
{
	n->c = c;
	n->g = ricci_graph_new();
	n->x = ricci_input(n->g, "x", RICCI_F32, 2, (int64_t[]){B, K});
	n->w = ricci_param(n->g, "w", RICCI_F32, 2, (int64_t[]){K, N}, ricci_constant(0.5));
	n->y = ricci_op(n->g, "H[b,n] += X[b,k] * W[k,n]; Y[b,n] = max(H[b,n], 0)", n->x, n->w);
	ricci_assign(n->g, n->w, ricci_op(n->g, "V[k,n] = W[k,n] + 0.25", n->w));
	CHECK_GRAPH(n->g);
	pthread_barrier_init(&n->made, NULL, (unsigned)c->users + 1);
}

static ricci_options net_options(const Net *n)
{
	return RICCI_OPTIONS(.backend = n->c->backend, .threads = n->c->threads,
			     .static_mode = n->c->static_mode, .seed = 1);
}

static int net_feed(const Net *n, ricci_session *s)
{
	float ones[B * K];

	for (int i = 0; i < B * K; i++)
		ones[i] = 1;
	return ricci_feed(s, n->x, ones, ricci_bytes(n->x));
}

/* All elements are those of one state of W, and of the one that is right where nobody else trains.
 */
static int net_judge(const Net *n, ricci_session *s)
{
	float y[B * N];
	int wrong = ricci_fetch(s, n->y, y, ricci_bytes(n->y)) != 0;
	float want = n->c->shared ? y[0] : K * (0.5f + 0.25f * (float)(ricci_step_count(s) - 1));

	for (int i = 0; i < B * N && !wrong; i++)
		wrong += y[i] != want;
	return wrong + (fmodf(y[0], K * 0.25f) != 0);
}

static void *user_main(void *user)
{
	Net *n = user;
	long wrong = 0;

	for (int k = 0; k < n->c->rounds; k++) {
		ricci_options o = net_options(n);
		bool last = k + 1 == n->c->rounds;
		ricci_session *s = n->c->shared ? ricci_session_share(n->base, 0, 1, &n->y)
						: ricci_session_new(n->g, &o, 1, 1, &n->y);

		if (last)
			pthread_barrier_wait(&n->made);
		if (!s) {
			fprintf(stderr, "%s\n", ricci_error_message());
			wrong++;
			continue;
		}
		wrong += net_feed(n, s) != 0;
		for (int i = 0; i < n->c->steps; i++)
			wrong += ricci_step(s) != 0 || net_judge(n, s);
		ricci_session_free(s);
	}
	return (char *)NULL + wrong;
}

static void test_config(const Config *c)
{
	pthread_t t[USERS];
	void *wrong;
	Net n = {0};

	net_make(&n, c);
	if (c->shared) {
		ricci_options o = net_options(&n);

		n.base = ricci_session_new(n.g, &o, 1, 1, &n.y);
		CHECK_REPORT(n.base != NULL, "%s", ricci_error_message());
		CHECK_INT(net_feed(&n, n.base), 0);
	}
	for (int i = 0; i < c->users; i++)
		CHECK_INT(pthread_create(&t[i], NULL, user_main, &n), 0);
	for (int i = 0; c->shared && i < c->steps; i++)
		CHECK_INT(ricci_step(n.base) || net_judge(&n, n.base), 0);
	pthread_barrier_wait(&n.made);
	if (c->early)
		ricci_graph_free(n.g);
	if (c->shared)
		ricci_session_free(n.base);
	for (int i = 0; i < c->users; i++) {
		pthread_join(t[i], &wrong);
		CHECK(!wrong);
	}
	if (!c->early)
		ricci_graph_free(n.g);
	pthread_barrier_destroy(&n.made);
}

int main(void)
{
	for (int i = 0; i < COUNT(config); i++)
		test_config(&config[i]);
	CHECK_INT(mem_live(), 0);
	return check_done();
}
