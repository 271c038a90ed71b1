/* test_step.c - kernels that training launches are judged on the data of its steps: a first one, one
 * on trial beside the best; and a first one is validated in the background later. */
#include "runtime/session.h"
#include "runtime/verify/trial.h"
#include "tests/check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 100000, LONG = 2000000, LONGEST = 10000019, LOST = 54321 };

static void right(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++)
		((float *)buf[1])[i] = 3 * ((float *)buf[0])[i];
}

static void wrong(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++)
		((float *)buf[1])[i] = 3 * ((float *)buf[0])[i] + (i == LOST ? 0.01f : 0);
}

static void lost_end(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end && i < MANY - 1; i++)
		((float *)buf[1])[i] = 3 * ((float *)buf[0])[i];
}

/* The sum of all but the last 100 elements. */
static int64_t terms;

static void short_sum(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const float *a = buf[0];
	double s = 0;

	(void)env, (void)begin, (void)end;
	for (int64_t i = 0; i < terms - 100; i++)
		s += (double)a[i];
	*(float *)buf[1] = (float)s;
}

static CacheEntry *entry_of(const char *format, int64_t n)
{
	char text[300];
	Error err = {0};

	snprintf(text, sizeof text, format, (long long)n, (long long)n);
	Task *t = task_parse(text, &err);
	CHECK_REPORT(t, "%s", err.text);
	CacheEntry *l = entry_get(t, (Request){.threads = 1}, &err);
	CHECK_REPORT(l, "%s", err.text);
	return l;
}

static Kernel kernel_of(KernelFn *run, int64_t parts)
{
	return (Kernel){
		.run = run, .shape.parts = parts, .refs = 1000, .backend = backend_find("tcc")};
}

/* In place and beside. */
static void test_trial(Pool *pool, bool in_place)
{
	static float a[MANY], b[MANY];
	Kernel best = kernel_of(right, MANY), good = best, bad = kernel_of(wrong, MANY);
	void *buf[] = {a, in_place ? a : b};
	RandomState rs = {1, 1};
	Error err = {0};

	for (int fault = 0; fault < 2; fault++) {
		CacheEntry *l = entry_of(
			"ricci-task 1\ninput f32 %lld\nkeep m0[i] = a0[i]*3 where i<%lld\n", MANY);
		Kernel *k = fault ? &bad : &good;
		Run r = {.entry = l, .kernel = k, .ninput = 1, .nbuf = 2, .buf = buf};

		for (int i = 0; i < MANY; i++)
			a[i] = (float)(i % 1000) / 999;
		entry_put(l, kernel_ref(&best), NULL, 0, true);
		entry_try(l, kernel_ref(k), &(Origin){0});
		while (entry_take(l).which != 1)
			entry_timed(l, &best, 0, 1);
		CHECK(!entry_take(l).checked);
		CHECK_INT(run_trial(&r, pool, rs, &err), 0);
		CHECK_STR(err.text, "");
		float want = 3 * ((float)(LOST % 1000) / 999);
		CHECK_NEAR(((float *)buf[1])[LOST], want, 1e-6);
		CHECK(fault ? l->trial == NULL : l->trial == k && entry_take(l).checked);
		entry_unref(l);
	}
}

/* A trial that so many pairs of launches decide; 0: not `most` of them. */
static int pairs(CacheEntry *e, double best, double trial, int most)
{
	Kernel *b = e->best, *t = e->trial;
	for (int i = 1; i <= most; i++)
		if (entry_timed(e, b, 0, best) | entry_timed(e, t, 1, trial))
			return i;
	return 0;
}

/* What disturbs the processor doesn't decide, and what won by chance is looked at again. */
static void test_disturbed(void)
{
	Kernel old = kernel_of(right, MANY), new = old;
	CacheEntry *e =
		entry_of("ricci-task 1\ninput f32 %lld\nkeep m0[i] = a0[i]*5 where i<%lld\n", MANY);
	entry_put(e, kernel_ref(&old), NULL, 0, true);
	entry_launched(e, 1);

	entry_try(e, kernel_ref(&new), &(Origin){0});
	CHECK_INT(pairs(e, 1.09, 1.05, 100), TRIAL_RUNS);
	CHECK(e->best == &new && e->former == &old);
	/* It never is as fast as the old one was. */
	for (int i = 0; i < 100; i++) {
		CHECK(!entry_revise(e) || i >= 60);
		entry_launched(e, 1.1);
	}
	CHECK(e->trial == &old && !e->former && entry_take(e).checked);
	CHECK_INT(pairs(e, 1.1, 1, 100), TRIAL_RUNS);
	CHECK(e->best == &old && e->former == &new);
	for (int i = 0; i < 100; i++)
		entry_launched(e, 1);
	CHECK(!entry_revise(e) && !e->former && !e->trial);

	/* Both are slow, then neither is. */
	entry_try(e, kernel_ref(&new), &(Origin){0});
	CHECK_INT(pairs(e, 2, 1.5, TRIAL_MOST - 1), 0);
	CHECK_INT(pairs(e, 1, 1.2, 1), 1);
	CHECK(e->best == &old && !e->trial);
	/* They stay slow: only a clear difference counts. */
	entry_try(e, kernel_ref(&new), &(Origin){0});
	CHECK_INT(pairs(e, 2, 1.9, 100), TRIAL_MOST);
	CHECK(e->best == &old);
	entry_try(e, kernel_ref(&new), &(Origin){0});
	CHECK_INT(pairs(e, 2, 1.7, 100), TRIAL_MOST);
	CHECK(e->best == &new);
	/* What is far too slow is not run on. */
	entry_try(e, kernel_ref(&old), &(Origin){0});
	CHECK_INT(pairs(e, 1.7, 9, 100), 1);
	entry_unref(e);
}

static const char sum_text[] = "ricci-task 1\ninput f32 %lld\nkeep m0[] += a0[i] where i<%lld\n";
/* No terms are alike, and none can be zero. */
static const char odd_text[] = "ricci-task 1\ninput f32 %lld\n"
			       "keep m0[] += 2 + sin(a0[i] + f32(i%%7)) where i<%lld\n";

static CacheEntry *sum_run(const char *text, int64_t n, Run *r, Kernel *k, float *a, Pool *pool)
{
	static float y;
	static void *buf[2];
	RandomState rs = {1, 1};
	Error err = {0};
	CacheEntry *l = entry_of(text, n);

	terms = n;
	buf[0] = a, buf[1] = &y;
	for (int64_t i = 0; i < n; i++)
		a[i] = (float)(i % 5);
	entry_put(l, kernel_ref(k), NULL, 0, false);
	*r = (Run){.entry = l, .kernel = kernel_ref(k), .ninput = 1, .nbuf = 2, .buf = buf};
	CHECK_INT(run_checked(r, pool, rs, &err), 0);
	CHECK_STR(err.text, "");
	return l;
}

/* Sums that are too long for a sample have one element judged, longer ones few terms; where that can't
 * be, one element again, up to ten million; the longest are validated later. */
static void test_first(Pool *pool)
{
	static float a[LONGEST];
	Kernel k = kernel_of(short_sum, 1);
	Error err = {0};
	Run r;
	CacheEntry *l = sum_run(sum_text, MANY, &r, &k, a, pool);

	CHECK(!strcmp(r.kernel->backend->name, "interp"));
	CHECK_NEAR(*(float *)r.buf[1], 2 * MANY, 0.5);
	kernel_unref(r.kernel);
	entry_unref(l);

	l = sum_run(sum_text, LONG, &r, &k, a, pool);
	CHECK(!strcmp(r.kernel->backend->name, "interp") && !l->unseen);
	CHECK_NEAR(*(float *)r.buf[1], 2 * LONG, 0.5);
	kernel_unref(r.kernel);
	entry_unref(l);

	l = sum_run(odd_text, LONG, &r, &k, a, pool);
	CHECK(!strcmp(r.kernel->backend->name, "interp"));
	kernel_unref(r.kernel);
	entry_unref(l);

	l = sum_run(odd_text, LONGEST, &r, &k, a, pool);
	CHECK(r.kernel == &k && l->unseen);
	l->offered = 1;
	Tuner *t = tuner_new(1, &err);
	CHECK_INT(tuner_add(t, 1, &l, &err), 0);
	tuner_start(t);
	for (int i = 0; i < 30000 && !atomic_load(&l->wrongs); i++)
		usleep(1000);
	tuner_free(t);
	CHECK_INT(entry_wrong(l, &err), RICCI_ECOMPILE);
	CHECK_REPORT(strstr(err.text,
			    "results of the steps so far may be wrong: a kernel computes a "
			    "wrong value: element [] of result 0 is"),
		     "%s", err.text);
	error_clear(&err);
	CHECK(!strcmp(l->best->backend->name, "interp"));
	kernel_unref(r.kernel);
	entry_unref(l);
}

/* What is too large to be copied is validated before it overwrites what it reads. */
static void test_in_place(Pool *pool)
{
	static float a[MANY];
	Kernel bad = kernel_of(wrong, MANY);
	RandomState rs = {1, 1};
	Error err = {0};
	void *buf[] = {a, a};
	size_t room = trial_room;
	CacheEntry *l =
		entry_of("ricci-task 1\ninput f32 %lld\nkeep m0[i] = a0[i]*3 where i<%lld\n", MANY);
	Run r = {.entry = l, .kernel = kernel_ref(&bad), .ninput = 1, .nbuf = 2, .buf = buf};

	for (int i = 0; i < MANY; i++)
		a[i] = 1;
	trial_room = MANY;
	entry_put(l, kernel_ref(&bad), NULL, 0, false);
	bad.run = lost_end;
	CHECK_INT(run_checked(&r, pool, rs, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(!strcmp(r.kernel->backend->name, "interp"));
	CHECK_NEAR(a[0], 3, 0);
	CHECK_NEAR(a[MANY - 1], 3, 0);
	trial_room = room;
	kernel_unref(r.kernel);
	entry_unref(l);
}

/* Several equations. 1: the first is wrong, and the second follows from it; 2: the second is wrong; 3: the
 * first is stored rounded otherwise than the second one found it, which is no fault. */
static int chain_fault;

static void chain(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++) {
		((float *)buf[1])[i] = chain_fault == 1	  ? 3.25f
				       : chain_fault == 3 ? 0x1.7ffffep1f
							  : 3;
		((float *)buf[2])[i] = chain_fault == 2 ? 9 : 3;
	}
}

static void test_chain(Pool *pool)
{
	static float a[MANY], b[MANY], c[MANY];
	RandomState rs = {1, 1};
	void *buf[] = {a, b, c};
	Error err = {0};

	for (int i = 0; i < MANY; i++)
		a[i] = 1;
	for (chain_fault = 0; chain_fault < 4; chain_fault++) {
		Kernel k = kernel_of(chain, MANY);
		CacheEntry *l = entry_of("ricci-task 1\ninput f32 %lld\n"
					 "keep m0[i] = a0[i]*3 where i<%lld\n"
					 "keep m1[i] = floor(m0[i]) where i<100000\n",
					 MANY);
		Run r = {.entry = l, .kernel = kernel_ref(&k), .ninput = 1, .nbuf = 3, .buf = buf};
		bool bad = chain_fault == 1 || chain_fault == 2;

		entry_put(l, kernel_ref(&k), NULL, 0, false);
		CHECK_INT(run_checked(&r, pool, rs, &err), 0);
		CHECK_STR(err.text, "");
		CHECK_STR(r.kernel->backend->name, bad ? "interp" : "tcc");
		CHECK(r.checked == !bad);
		CHECK_NEAR(b[MANY / 2], 3, 1e-6);
		CHECK_NEAR(c[MANY / 2], 3, 0);
		kernel_unref(r.kernel);
		entry_unref(l);
	}
}

/* Long scatters are judged element by element: the last row is lost. */
enum { ROWS = 4000, WIDE = 300, PLACES = 9 };

static void short_scatter(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env, (void)begin, (void)end;
	memset(buf[2], 0, PLACES * WIDE * sizeof(float));
	for (int i = 0; i < ROWS - 1; i++)
		for (int j = 0; j < WIDE; j++)
			((float *)buf[2])[((int *)buf[1])[i] * WIDE + j] +=
				((float *)buf[0])[i * WIDE + j];
}

static void test_scatter(Pool *pool)
{
	static float e[ROWS * WIDE], y[PLACES * WIDE];
	static int to[ROWS];
	void *buf[] = {e, to, y};
	Kernel k = kernel_of(short_scatter, 1);
	RandomState rs = {1, 1};
	Error err = {0};
	Task *t = task_parse("ricci-task 1\ninput f32 4000x300\ninput i32 4000 0..8\n"
			     "keep m0[a1[i]:9,j] += a0[i,j] where i<4000, j<300\n",
			     &err);

	CHECK_REPORT(t, "%s", err.text);
	CacheEntry *l = entry_get(t, (Request){.threads = 1}, &err);
	Run r = {.entry = l, .kernel = kernel_ref(&k), .ninput = 2, .nbuf = 3, .buf = buf};

	for (int i = 0; i < ROWS * WIDE; i++)
		e[i] = 1;
	for (int i = 0; i < ROWS; i++)
		to[i] = (ROWS - 1 - i) % PLACES;
	entry_put(l, kernel_ref(&k), NULL, 0, false);
	CHECK_INT(run_checked(&r, pool, rs, &err), 0);
	CHECK(!strcmp(r.kernel->backend->name, "interp"));
	CHECK_NEAR(y[0], (ROWS + PLACES - 1) / PLACES, 0);
	kernel_unref(r.kernel);
	entry_unref(l);
}

/* A kernel that was used is found wrong: the next step of each session that may have used it says so,
 * once, and leaves the states alone; then training goes on. */
static void test_told(void)
{
	enum { N = 40, SESSIONS = 3 };
	ricci_session *s[SESSIONS];
	ricci_graph *g[SESSIONS];
	ricci_tensor *out[SESSIONS];
	CacheEntry *l[4];
	Error why = {0};

	for (int i = 0; i < SESSIONS; i++) {
		g[i] = ricci_graph_new();
		ricci_tensor *x =
			ricci_state(g[i], "x", RICCI_F32, 1, (int64_t[]){N}, ricci_constant(1));
		ricci_tensor *y = ricci_op(g[i], "Y[i] = X[i] + 1", x);

		ricci_assign(g[i], x, y);
		CHECK_INT(ricci_graph_error(g[i]), 0);
		out[i] = y;
		s[i] = ricci_session_new(
			g[i], &RICCI_OPTIONS(.threads = 1, .backend = RICCI_BACKEND_TCC), 1, 1, &y);
		CHECK_REPORT(s[i], "%s", ricci_error_message());
		CHECK_INT(ricci_step(s[i]), 0);
		if (i != 1) /* the last is made later */
			continue;
		CHECK_INT(session_entries(s[0], l, COUNT(l)), 1);
		Kernel *used = entry_best(l[0]);
		error_set(&why, RICCI_ECOMPILE, "it adds 2");
		entry_condemn(l[0], used, &why);
		kernel_unref(used);
		CHECK(!strcmp(l[0]->best->backend->name, "interp"));
	}
	for (int i = 0; i < SESSIONS; i++) {
		float y[N] = {0};

		if (i < 2) {
			CHECK_INT(ricci_step(s[i]), RICCI_ECOMPILE);
			CHECK_REPORT(strstr(ricci_error_message(),
					    "results of the steps so far may be wrong: it adds 2"),
				     "%s", ricci_error_message());
		}
		CHECK_INT(ricci_step(s[i]), 0);
		CHECK_INT(ricci_fetch(s[i], out[i], y, sizeof y), 0);
		CHECK_NEAR(y[0], 3, 0);
		ricci_session_free(s[i]);
		ricci_graph_free(g[i]);
	}
}

int main(void)
{
	Error err = {0};

	setenv("RICCI_CACHE", "off", 1);
	Pool *pool = pool_new(1, &err);
	CHECK_REPORT(pool, "%s", err.text);
	test_disturbed();
	test_trial(pool, false);
	test_trial(pool, true);
	test_first(pool);
	if (getenv("RICCI_EMULATOR"))
		CHECK_SKIP("qemu maps no memory a second time");
	else
		test_in_place(pool);
	test_scatter(pool);
	test_chain(pool);
	test_told();
	pool_free(pool);
	return check_done();
}
