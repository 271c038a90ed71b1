/* test_pool.c - every part runs exactly once, on every number of threads; and the memory plan. */
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/child.h"
#include <stdlib.h>
#include <sys/resource.h>

enum { PARTS = 1000 };
static atomic_int seen[PARTS];
static atomic_long scratch_bad;

static void count_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	if ((uintptr_t)env->scratch % 64 || env->seed != 5 || env->step != 6 || buf)
		atomic_fetch_add(&scratch_bad, 1);
	for (int i = 0; i < 100; i++)
		((char *)env->scratch)[i] = (char)begin;
	for (int64_t i = begin; i < end; i++)
		atomic_fetch_add(&seen[i], 1);
	for (int i = 0; i < 100; i++)
		if (((char *)env->scratch)[i] != (char)begin)
			atomic_fetch_add(&scratch_bad, 1);
}

static void fail_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)buf;
	if (begin <= 3 && 3 < end)
		error_set(env->err, RICCI_EVALUE, "part three is wrong");
}

static void test_pool(int threads)
{
	Error err = {0};
	Pool *p = pool_new(threads, &err);
	Kernel k = {.run = count_parts, .shape.scratch = 100},
	       bad = {.run = fail_parts, .shape.parts = 9};

	CHECK(p != NULL);
	if (!p)
		return;
	CHECK_INT(pool_threads(p), threads);
	for (int round = 0; round < 300; round++) {
		int wrong = 0;

		k.shape.parts = round % 7 ? round % 40 : PARTS;
		for (int i = 0; i < PARTS; i++)
			atomic_store(&seen[i], 0);
		CHECK_INT(pool_run(p, &k, NULL, 5, 6, &err), 0);
		for (int i = 0; i < PARTS; i++)
			wrong += atomic_load(&seen[i]) != (i < k.shape.parts);
		CHECK_INT(wrong, 0);
	}
	CHECK_INT(atomic_load(&scratch_bad), 0);
	CHECK_INT(pool_run(p, &bad, NULL, 0, 0, &err), RICCI_EVALUE);
	CHECK_STR(err.text, "part three is wrong");
	error_clear(&err);
	CHECK_INT(pool_run(p, &k, NULL, 5, 6, &err), 0); /* it is as good as new */
	pool_free(p);
}

/* Room for a few stacks only: those threads that start do all the work. */
__attribute__((unused)) static int run_poor(void)
{
	struct rlimit room = {0};
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;
	Kernel k = {.run = count_parts, .shape.scratch = 100, .shape.parts = PARTS};
	Pool *p;
	int n, wrong = 0;

	if (!f || fscanf(f, "%ld", &pages) != 1)
		return 1;
	fclose(f);
	room.rlim_cur = room.rlim_max = (rlim_t)pages * 4096 + (40 << 20);
	if (setrlimit(RLIMIT_AS, &room) || !(p = pool_new(64, NULL)))
		return 2;
	n = pool_threads(p);
	if (n < 1 || n > 32 || pool_run(p, &k, NULL, 5, 6, NULL))
		return 3;
	for (int i = 0; i < PARTS; i++)
		wrong += atomic_load(&seen[i]) != 1;
	pool_free(p);
	return wrong ? 4 : 0;
}

static void *pool_user(void *pool)
{
	Kernel k = {.run = count_parts, .shape.scratch = 100, .shape.parts = PARTS};

	for (int i = 0; i < 200; i++)
		pool_run(pool, &k, NULL, 5, 6, NULL);
	return NULL;
}

/* Several threads may use one pool. */
static void test_users(void)
{
	Pool *p = pool_new(3, NULL);
	pthread_t t[4];
	int wrong = 0;

	for (int i = 0; i < PARTS; i++)
		atomic_store(&seen[i], 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, pool_user, p);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < PARTS; i++)
		wrong += atomic_load(&seen[i]) != 800;
	CHECK_INT(wrong, 0);
	pool_free(p);
}

/* ---- the plan: random lives never overlap in memory, and it is not wasteful ---- */
static uint64_t state = 1;

static int draw(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (unsigned)n);
}

/* Offsets by plan_many, whatever n is. */
static int offsets_of_many(int n, PlanItem *item, size_t *total)
{
	PlanItem **order = mem_zalloc((size_t)n * sizeof *order);
	int code;

	*total = 0;
	for (int i = 0; i < n; i++) {
		int at = i;
		for (; at > 0 && order[at - 1]->bytes < item[i].bytes; at--)
			order[at] = order[at - 1];
		order[at] = &item[i];
	}
	code = plan_many(n, order, total, NULL);
	mem_free(order);
	return code;
}

static void test_plan(int n, int steps, bool many)
{
	PlanItem *item = mem_zalloc((size_t)n * sizeof *item);
	size_t total, least = 0, sum = 0;
	int meet = 0;

	for (int i = 0; i < n; i++) {
		item[i].bytes = 1 + (size_t)draw(draw(4) ? 100 : 100000);
		item[i].first = draw(steps);
		item[i].last = item[i].first + draw(draw(5) ? 4 : steps);
		sum += align_up(item[i].bytes);
	}
	CHECK_INT(many ? offsets_of_many(n, item, &total) : plan_offsets(n, item, &total, NULL), 0);
	for (int i = 0; i < n; i++) {
		const PlanItem *a = &item[i];

		meet += a->offset % ALIGNMENT || a->offset + a->bytes > total;
		for (int k = 0; k < i; k++) {
			const PlanItem *b = &item[k];

			meet += a->first <= b->last && b->first <= a->last &&
				a->offset < b->offset + b->bytes &&
				b->offset < a->offset + a->bytes;
		}
	}
	for (int s = 0; s < 2 * steps; s++) {
		size_t live = 0;

		for (int i = 0; i < n; i++)
			live += item[i].first <= s && s <= item[i].last ? align_up(item[i].bytes)
									: 0;
		least = live > least ? live : least;
	}
	CHECK_INT(meet, 0);
	CHECK(total >= least && total <= sum);
	CHECK(total <= 2 * least);
	mem_free(item);
}

/* Layers whose values live from the way forward to the way back, and gradients from one layer to the
 * next: the plan wastes nothing. */
static void test_layers(int n)
{
	PlanItem *item = mem_zalloc(2 * (size_t)n * sizeof *item);
	size_t total;

	for (int k = 0; k < n; k++) {
		item[k] = (PlanItem){.bytes = 256, .first = k, .last = 2 * n - k};
		item[n + k] = (PlanItem){.bytes = 1024, .first = n + k, .last = n + k + 1};
	}
	CHECK_INT(plan_offsets(2 * n, item, &total, NULL), 0);
	CHECK(total <= (size_t)n * 256 + 2 * 1024);
	mem_free(item);
}

int main(void)
{
	static const int threads[] = {1, 2, 3, 8};
	size_t total = 1;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (getenv("RICCI_EMULATOR"))
		CHECK_SKIP("qemu limits no program's memory");
	else
		CHECK_INT(child(run_poor), 0);
#endif
	for (int i = 0; i < COUNT(threads); i++)
		test_pool(threads[i]);
	test_users();
	for (int i = 0; i < 60; i++)
		test_plan(1 + draw(120), 1 + draw(60), i % 2);
	test_layers(20000);
	CHECK_INT(plan_offsets(0, NULL, &total, NULL), 0);
	CHECK_INT(total, 0);
	CHECK_INT(mem_live(), 0);
	return check_done();
}
