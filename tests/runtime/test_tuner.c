/* test_tuner.c - the background threads while training runs, wrong kernels in a first step,
 * sessions on several threads at once, and every allocation failing. */
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/runtime/told.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { B = 40, K = 64, N = 48 };

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *w, *h, *l;
	ricci_session *s;
} Net;

/* W moves by the mean of X; L = sum of (X W)^2. With train_only no session is made. */
static int net_make(Net *n, ricci_options o)
{
	ricci_graph *g = n->g = ricci_graph_new();

	n->s = NULL;
	if (!g)
		return RICCI_ENOMEM;
	n->x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){B, K});
	n->w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){K, N}, ricci_constant(0.5));
	n->h = ricci_op(g, "H[b,n] += X[b,k] * W[k,n]", n->x, n->w);
	n->l = ricci_op(g, "L[] += H[b,n] * H[b,n]", n->h);
	ricci_assign(g, n->w, ricci_op(g, "V[k,n] = W[k,n] + 0.25", n->w));
	n->s = ricci_session_new(g, &o, 1, 1, &n->l);
	return n->s ? 0 : RICCI_ENOMEM;
}

static void net_free(Net *n)
{
	ricci_session_free(n->s);
	ricci_graph_free(n->g);
}

static int net_feed(Net *n)
{
	float xs[B * K];

	for (int i = 0; i < B * K; i++)
		xs[i] = 0.125f;
	return ricci_feed(n->s, n->x, xs, ricci_bytes(n->x));
}

static float net_want(uint64_t step) /* after so many steps */
{
	float w = 0.5f + 0.25f * (float)(step - 1), h = 0.125f * K * w;

	return (float)B * N * h * h;
}

/* Steps until the background has nothing left; the loss is right in every step. Between steps training waits, as for
 * data: kernels then take a small part of the time on a loaded machine, too, and nothing further pays. */
static int net_train(Net *n, double patience)
{
	double until = clock_seconds() + patience;
	int wrong = 0, least = 30;
	CacheEntry *l[8];

	session_entries(n->s, l, 1);
	while (least-- > 0 || clock_seconds() < until) {
		uint64_t step;
		float loss = 0;
		bool idle = true;

		wrong += ricci_step(n->s) != 0;
		step = ricci_step_count(n->s);
		if (step > 2000)
			ricci_set_step(n->s, 2000);
		wrong += ricci_fetch(n->s, n->l, &loss, ricci_bytes(n->l)) != 0;
		if (step < 500)
			wrong += !(fabsf(loss - net_want(step)) <= 1e-4f * net_want(step));
		for (int i = session_entries(n->s, l, 8) - 1; i >= 0; i--) {
			pthread_mutex_lock(&l[i]->lock);
			idle = idle && !l[i]->trial && l[i]->offered > 0;
			pthread_mutex_unlock(&l[i]->lock);
		}
		if (idle && least < 0)
			break;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return wrong;
}

/* The most schedules that any of the net's entries has had. */
static int most_offered(const Net *n)
{
	CacheEntry *l[8];
	int most = 0;

	for (int i = session_entries(n->s, l, 8) - 1; i >= 0; i--) {
		pthread_mutex_lock(&l[i]->lock);
		most = l[i]->offered > most ? l[i]->offered : most;
		pthread_mutex_unlock(&l[i]->lock);
	}
	return most;
}

/* What launches cost at the speed of the kernel that there is now. */
static void test_cost(const Net *n)
{
	CacheEntry *l[8];
	int nl = session_entries(n->s, l, 8);

	CHECK(nl > 0);
	if (nl == 0)
		return;
	CacheEntry *e = l[0];
	double launches = (double)atomic_load(&e->launches);

	CHECK(launches > 0 && entry_roof(e) > 0);
	entry_put(e, entry_best(e), NULL, 0, true);
	CHECK_NEAR(entry_cost(e), entry_roof(e), 0);
	entry_launched(e, 0.25);
	entry_launched(e, 0.75);
	CHECK_NEAR(entry_cost(e), 0.5 * (launches + 2), 1e-6 * launches);
}

static void test_background(void)
{
	Net n;
	char why[256];
	CacheEntry *l[8];
	int ncc = 0, nl;

	if (!backend_find("cc")->available(why, sizeof why)) {
		CHECK_SKIP(why);
		return;
	}
	CHECK_INT(net_make(&n, RICCI_OPTIONS(.threads = 2)), 0);
	CHECK_INT(net_feed(&n), 0);
	CHECK_INT(net_train(&n, 20), 0);
	nl = session_entries(n.s, l, 8);
	for (int i = 0; i < nl; i++) {
		pthread_mutex_lock(&l[i]->lock);
		/* cc's is the best, or was no faster in its trial, as on a loaded machine */
		ncc += !strcmp(l[i]->best->backend->name, "cc") ||
		       (l[i]->runs[1] > 0 && l[i]->least[1] >= 0.9 * l[i]->least[0]);
		pthread_mutex_unlock(&l[i]->lock);
	}
	CHECK_INT(ncc, nl); /* training went on while they came */
	/* further schedules wait until what they may gain pays, but for who waits for them */
	CHECK_INT(most_offered(&n), 1);
	CHECK_INT(ricci_settle(n.s), 0);
	CHECK(most_offered(&n) > 1);
	test_cost(&n);
	net_free(&n);
}

/* A search changes no step, and finds no slower kernels. */
static void test_tune(void)
{
	Told all = {0}, few = {.stop_at = 1};
	float loss = 0;
	Net n;

	CHECK_INT(net_make(&n, RICCI_OPTIONS(.threads = 2, .backend = RICCI_BACKEND_TCC)), 0);
	CHECK_INT(net_feed(&n), 0);
	CHECK_INT(ricci_step(n.s), 0);
	CHECK_INT(ricci_settle(n.s), 0); /* not of the search's time */
	CHECK_INT(ricci_tune(n.s, 1.5, told, &all), 0);
	CHECK(all.calls > 1 && !all.wrong && all.part <= 1);
	CHECK_INT((int64_t)ricci_step_count(n.s), 1);
	CHECK_INT(ricci_step(n.s), 0);
	CHECK_INT(ricci_fetch(n.s, n.l, &loss, ricci_bytes(n.l)), 0);
	CHECK_NEAR(loss, net_want(2), 1e-4 * net_want(2));
	CHECK_INT(ricci_tune(n.s, 1000, told, &few), 0); /* or tests/run ends it */
	CHECK(few.calls <= 2);
	CHECK_INT(ricci_tune(n.s, -1, NULL, NULL), RICCI_EINVAL);
	CHECK(strstr(ricci_error_message(), "0 seconds or more, not -1") != NULL);
	CHECK_INT(ricci_tune(NULL, 1, NULL, NULL), RICCI_EINVAL);
	net_free(&n);
	CHECK_INT(net_make(&n, RICCI_OPTIONS(.threads = 1, .static_mode = 1)), 0);
	CHECK_INT(ricci_tune(n.s, 1, NULL, NULL), RICCI_EINVAL);
	CHECK(strstr(ricci_error_message(), "fixed") != NULL);
	net_free(&n);
}

/* Of many kernels, none of which takes a hundredth of a step, as many are searched as there is time for. */
static void test_tune_small(void)
{
	enum { KERNELS = 160 };
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *y[KERNELS], *x;
	Told all = {0};

	for (int i = 0; i < KERNELS; i++) {
		int64_t shape[] = {64, 64 + i};
		char name[16];

		snprintf(name, sizeof name, "x%d", i);
		x = ricci_param(g, name, RICCI_F32, 2, shape, ricci_uniform(0, 1));
		y[i] = ricci_op(g, "s[j] += exp(x[i,j])", x);
	}
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC), 0, KERNELS, y);
	CHECK_GRAPH(g);
	CHECK(s && !ricci_step(s) && !ricci_settle(s));
	CHECK_INT(ricci_tune(s, 1.5, told, &all), 0);
	CHECK(all.spent > 1.2 && !all.wrong);
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void *user_main(void *arg)
{
	Net n;
	long wrong = 0;

	wrong += net_make(&n, RICCI_OPTIONS(.threads = 2)) != 0;
	wrong += net_feed(&n) != 0;
	wrong += net_train(&n, 1.5);
	net_free(&n);
	return (char *)arg + wrong;
}

/* Sessions of several threads use the same lines. */
static void test_users(void)
{
	pthread_t t[3];
	void *wrong;

	for (int i = 0; i < COUNT(t); i++)
		pthread_create(&t[i], NULL, user_main, NULL);
	for (int i = 0; i < COUNT(t); i++) {
		pthread_join(t[i], &wrong);
		CHECK(!wrong);
	}
}

/* A session is closed in the middle of the background's work. */
static void test_close(void)
{
	for (int i = 0; i < 5; i++) {
		double start;
		Net n;

		CHECK_INT(net_make(&n, RICCI_OPTIONS(.threads = 2)), 0);
		CHECK_INT(net_feed(&n), 0);
		CHECK_INT(ricci_step(n.s), 0);
		for (start = clock_seconds(); clock_seconds() - start < 0.013 * i;)
			;
		net_free(&n);
	}
}

static void wrong_run(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)buf, (void)env, (void)begin, (void)end;
}

/* A first kernel that computes nonsense: AUTO recovers, a backend asked for by name is an error. */
static void test_wrong(ricci_backend backend)
{
	Net n;
	CacheEntry *l[8];
	float loss = 0;
	int nl;

	CHECK_INT(net_make(&n, RICCI_OPTIONS(.threads = 1, .backend = backend)), 0);
	CHECK_INT(net_feed(&n), 0);
	nl = session_entries(n.s, l, 8);
	for (int i = 0; i < nl; i++) {
		Kernel *k = mem_zalloc(sizeof *k);

		k->run = wrong_run;
		k->shape.parts = 1;
		k->refs = 1;
		k->backend = backend_find("tcc");
		entry_put(l[i], k, NULL, 0, false);
	}
	if (backend == RICCI_BACKEND_AUTO) {
		CHECK_INT(ricci_step(n.s), 0);
		ricci_fetch(n.s, n.l, &loss, ricci_bytes(n.l));
		CHECK_NEAR(loss, net_want(1), 1e-4 * net_want(1));
		for (int i = 0; i < nl; i++)
			CHECK_STR(l[i]->best->backend->name, "interp");
	} else {
		CHECK_INT(ricci_step(n.s), RICCI_ECOMPILE);
		CHECK(strstr(ricci_error_message(), "a kernel computes a wrong value") != NULL);
		CHECK(strstr(ricci_error_message(), "made by tcc for") != NULL);
		CHECK_INT((int64_t)ricci_step_count(n.s), 0);
	}
	net_free(&n);
}

/* Whatever allocation fails: an error, nothing lost, nothing broken. */
static void test_memory(void)
{
	long n, failed = 0;

	for (n = 1; n < 5000; n += 1 + n / 50) {
		Net net;
		int code;
		float loss = 0;

		mem_fail_at(n);
		code = net_make(&net, RICCI_OPTIONS(.threads = 1, .backend = RICCI_BACKEND_TCC));
		if (!code)
			code = net_feed(&net);
		if (!code)
			code = ricci_step(net.s);
		mem_fail_at(0);
		failed += code != 0;
		if (!code) {
			ricci_fetch(net.s, net.l, &loss, ricci_bytes(net.l));
			CHECK_NEAR(loss, net_want(1), 1e-4 * net_want(1));
		}
		net_free(&net);
		CHECK_INT(mem_live(), 0);
		if (!code)
			break;
	}
	CHECK(failed > 20);
	CHECK(n < 5000);
}

int main(void)
{
	setenv("RICCI_COMPILERS", "3", 0); /* as on a machine with idle processors */
	setenv("RICCI_CACHE", "off", 1);
	setenv("RICCI_DEVICE", "2e10,5e10,3e-6", 1);
	test_memory();
	test_wrong(RICCI_BACKEND_AUTO);
	test_wrong(RICCI_BACKEND_TCC);
	test_background();
	test_tune();
	test_tune_small();
	test_users();
	test_close();
	CHECK_INT(mem_live(), 0);
	return check_done();
}
