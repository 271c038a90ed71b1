/* test_step.c - kernels that training launches are judged on the data of its steps: a first one, one
 * on trial beside the best; and a first one is validated in the background later. */
#include "runtime/internal.h"
#include "tests/check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 100000, LONG = 2000000, LOST = 54321 };

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

static Line *line_of(const char *format, int64_t n)
{
	char text[300];
	Error err = {0};

	snprintf(text, sizeof text, format, (long long)n, (long long)n);
	Task *t = task_parse(text, &err);
	CHECK_REPORT(t, "%s", err.text);
	Line *l = line_get(t, (Request){.threads = 1}, &err);
	CHECK_REPORT(l, "%s", err.text);
	return l;
}

static Kernel kernel_of(KernelFn *run, int64_t parts)
{
	return (Kernel){.run = run, .parts = parts, .refs = 1000, .backend = backend_find("tcc")};
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
		Line *l = line_of(
			"ricci-task 1\ninput f32 %lld\nkeep m0[i] = a0[i]*3 where i<%lld\n", MANY);
		Kernel *k = fault ? &bad : &good;
		Run r = {.line = l, .kernel = k, .ninput = 1, .nbuf = 2, .buf = buf};

		for (int i = 0; i < MANY; i++)
			a[i] = (float)(i % 1000) / 999;
		line_put(l, kernel_ref(&best), NULL, 0, true);
		line_try(l, kernel_ref(k), &(Origin){0});
		while (line_take(l).which != 1)
			line_timed(l, &best, 0, 1);
		CHECK(!line_take(l).proved);
		CHECK_INT(run_trial(&r, pool, rs, &err), 0);
		CHECK_STR(err.text, "");
		float want = 3 * ((float)(LOST % 1000) / 999);
		CHECK_NEAR(((float *)buf[1])[LOST], want, 1e-6);
		CHECK(fault ? l->trial == NULL : l->trial == k && line_take(l).proved);
		line_unref(l);
	}
}

static const char sum_text[] = "ricci-task 1\ninput f32 %lld\nkeep m0[] += a0[i] where i<%lld\n";
/* No terms are alike, and none can be zero. */
static const char odd_text[] = "ricci-task 1\ninput f32 %lld\n"
			       "keep m0[] += 2 + sin(a0[i] + f32(i%%7)) where i<%lld\n";

static Line *sum_run(const char *text, int64_t n, Run *r, Kernel *k, float *a, Pool *pool)
{
	static float y;
	static void *buf[2];
	RandomState rs = {1, 1};
	Error err = {0};
	Line *l = line_of(text, n);

	terms = n;
	buf[0] = a, buf[1] = &y;
	for (int64_t i = 0; i < n; i++)
		a[i] = (float)(i % 5);
	line_put(l, kernel_ref(k), NULL, 0, false);
	*r = (Run){.line = l, .kernel = kernel_ref(k), .ninput = 1, .nbuf = 2, .buf = buf};
	CHECK_INT(run_checked(r, pool, rs, &err), 0);
	CHECK_STR(err.text, "");
	return l;
}

static bool line_is_wrong(Line *l)
{
	Taken t = line_take(l);

	kernel_unref(t.kernel);
	return t.wrong;
}

/* Sums that are too long for a sample have one element judged, longer ones few terms; where that can't
 * be, they are validated later, and the next step says what was wrong, once. */
static void test_first(Pool *pool)
{
	static float a[LONG];
	Kernel k = kernel_of(short_sum, 1);
	Error err = {0};
	Run r;
	Line *l = sum_run(sum_text, MANY, &r, &k, a, pool);

	CHECK(!strcmp(r.kernel->backend->name, "interp"));
	CHECK_NEAR(*(float *)r.buf[1], 2 * MANY, 0.5);
	kernel_unref(r.kernel);
	line_unref(l);

	l = sum_run(sum_text, LONG, &r, &k, a, pool);
	CHECK(!strcmp(r.kernel->backend->name, "interp") && !l->unseen);
	CHECK_NEAR(*(float *)r.buf[1], 2 * LONG, 0.5);
	kernel_unref(r.kernel);
	line_unref(l);

	l = sum_run(odd_text, LONG, &r, &k, a, pool);
	CHECK(r.kernel == &k && l->unseen);
	l->offered = 1;
	Tuner *t = tuner_new(1, &err);
	CHECK_INT(tuner_add(t, 1, &l, &err), 0);
	tuner_start(t);
	for (int i = 0; i < 30000 && !line_is_wrong(l); i++)
		usleep(1000);
	tuner_free(t);
	CHECK_INT(line_wrong(l, &err), RICCI_ECOMPILE);
	CHECK_REPORT(strstr(err.text,
			    "results of the steps so far may be wrong: a kernel computes a "
			    "wrong value: element [] of result 0 is"),
		     "%s", err.text);
	error_clear(&err);
	CHECK_INT(line_wrong(l, &err), 0);
	CHECK(!strcmp(l->best->backend->name, "interp"));
	kernel_unref(r.kernel);
	line_unref(l);
}

int main(void)
{
	Error err = {0};

	setenv("RICCI_CACHE", "off", 1);
	Pool *pool = pool_new(1, &err);
	CHECK_REPORT(pool, "%s", err.text);
	test_trial(pool, false);
	test_trial(pool, true);
	test_first(pool);
	pool_free(pool);
	return check_done();
}
