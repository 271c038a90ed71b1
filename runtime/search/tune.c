/* tune.c - searching for schedules with all the time there is: what `ricci tune` and ricci_tune do.
 *
 * Input: a program's entries. Each of its kernels gets a part of the time, by its share of the program's, the first
 * of them one batch at least; a strategy proposes schedules, batches of them are compiled together, verified like every
 * kernel, and timed on random data by the pool or the device that would run them. At the end the fastest are timed again in turns,
 * so that a moment's noise does not decide. The best stays in the function cache and on disk.
 * Invariant: at any moment the cache holds kernels that are validated, and none slower than when
 * the search began.
 */
#include "runtime/host/folder.h"
#include "runtime/search/strategy.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 6, RUNS = 12, FINALISTS = 5 };
enum { SEEN = 512 };	       /* sources that are known again */
enum { SOURCE_MOST = 100000 }; /* bytes: loops written out can keep a compiler busy for minutes */
/* Seconds that a kernel is timed for, at least and at most (two runs: three times that); for a
 * look, or one slow run. */
static const double run_least = 0.004, run_limit = 0.03, run_short = 0.005;
/* What the final takes: of a kernel's part of the time, and at most, in seconds. */
static const double final_share = 0.2, final_most = 0.5;

/* ---- one kernel ---- */
typedef struct Finalist {
	Kernel *kernel;
	Origin origin;
	double seconds; /* of its fastest run */
	double rank;	/* the same, where the machine was slow meanwhile put right */
} Finalist;
typedef struct Tuned {
	CacheEntry *entry;
	int times; /* that the program launches it, loops aside */
	Pool *pool;
	Bench bench; /* while it is its turn */
	Search search;
	TuneReport report;
	Error refused; /* the first that a kernel was refused for */
	bool stop;     /* the caller has had enough */
	int nseen;
	uint64_t seen[SEEN]; /* of the last sources */
	int nfinal;
	Finalist final[FINALISTS]; /* the fastest */
} Tuned;

/* The least time of a few runs. One that is far too slow ends it. The first meets cold data: it can
 * take many times as long as the next, so it ends it only where it is long as well. */
static int kernel_time(Tuned *u, const Kernel *k, double most, double *seconds, Error *err)
{
	double begin = clock_seconds(), all = 0, limit = 3 * u->report.seconds;
	int code = 0;

	*seconds = INFINITY;
	for (int i = 0; !code && (i <= RUNS || all < run_least); i++) {
		double run;

		code = bench_run(&u->bench, k, &run, err);
		all = clock_seconds() - begin;
		bool slow = run > limit && (i > 0 || run > run_short);
		if (i > 0 || slow)
			*seconds = fmin(*seconds, run);
		if (slow || (i > 2 && all > most) || (i > 0 && all > 3 * most))
			break;
	}
	return code;
}

static Finalist *final_fastest(Tuned *u)
{
	Finalist *best = u->final;

	for (int i = 1; i < u->nfinal; i++)
		best = u->final[i].seconds < best->seconds ? &u->final[i] : best;
	return best;
}

/* As kernel_time. Rank: as if the machine were as fast now as it was for the fastest; where that
 * one takes longer than it did by more than `noise`, k's time by its time at this moment tells. No
 * rank put right so passes the fastest: the final tells. */
static int kernel_rank(Tuned *u, const Kernel *k, double *seconds, double *rank, Error *err)
{
	static const double noise = 1.1, close = 2;
	const Finalist *best = final_fastest(u);
	double now, again;
	int code = kernel_time(u, k, run_limit, seconds, err);

	*rank = *seconds;
	if (code || *seconds < best->seconds || *seconds > close * best->seconds)
		return code;
	code = kernel_time(u, best->kernel, run_short, &now, err);
	if (code || now < noise * best->seconds)
		return code;
	code = kernel_time(u, k, run_short, &again, err);
	*seconds = fmin(*seconds, again);
	*rank = fmin(*seconds, fmax(again / now, 1) * best->seconds);
	return code;
}

/* Takes the kernel; the one of the worst rank gives way. */
static void final_add(Tuned *u, Finalist f)
{
	Finalist *worst = u->final;

	if (u->nfinal < FINALISTS) {
		u->final[u->nfinal++] = f;
		return;
	}
	for (int i = 1; i < u->nfinal; i++)
		worst = u->final[i].rank > worst->rank ? &u->final[i] : worst;
	if (f.rank < worst->rank) {
		Finalist out = *worst;

		*worst = f;
		f = out;
	}
	kernel_unref(f.kernel);
}

/* A run of every finalist's; the first of two meets what the one before it left in the caches. */
static int final_turn(Tuned *u, Error *err)
{
	int code = 0;

	for (Finalist *f = u->final; !code && f < u->final + u->nfinal; f++)
		for (int warm = 0; !code && warm < 2; warm++) {
			double run;

			code = bench_run(&u->bench, f->kernel, &run, err);
			if (warm)
				f->seconds = fmin(f->seconds, run);
		}
	return code;
}

/* Times the finalists in turns for so long, and makes that of the fastest run, then or before, the
 * entry's. */
static int final_run(Tuned *u, double seconds, Error *err)
{
	double turn = 0, until = clock_seconds() + seconds;
	int code = 0;

	for (int i = 0; i < u->nfinal; i++)
		turn += 2 * u->final[i].seconds;
	while (!code && u->nfinal > 1 && clock_seconds() + turn < until)
		code = final_turn(u, err);
	const Finalist *best = final_fastest(u);
	if (!code) {
		u->report.seconds = best->seconds;
		u->report.best = best->kernel->schedule;
		entry_put(u->entry, kernel_ref(best->kernel), &best->origin, best->seconds, true);
	}
	return code;
}

/* A candidate with a kernel: is it right, how long does it take, is it the best? */
static int candidate_try(Tuned *u, Candidate *c, Error *err)
{
	double seconds = INFINITY, rank = INFINITY;
	double limit = candidate_seconds(u->entry, u->report.seconds, pool_threads(u->pool));
	int code = 0;

	if (c->kernel && !verify_within(u->entry->task, c->kernel, NULL, true, limit, &c->err))
		code = kernel_rank(u, c->kernel, &seconds, &rank, err);
	if (!code)
		code = search_report(&u->search, &c->schedule, rank, err);
	if (c->err.code) {
		env_dump_text("kernels", "refused", c->err.text);
		error_set(&u->refused, c->err.code, "%s", c->err.text);
	}
	u->report.failed += !isfinite(seconds);
	if (!code && seconds < u->report.seconds) {
		u->report.seconds = seconds;
		u->report.best = c->schedule;
		entry_put(u->entry, kernel_ref(c->kernel), &c->origin, seconds, true);
	}
	if (!code && isfinite(seconds))
		final_add(u, (Finalist){c->kernel, c->origin, seconds, rank});
	else if (c->kernel)
		kernel_unref(c->kernel);
	return code;
}

/* The next schedule: an offer that was not timed yet, then the strategy's. False: none came up. */
static bool schedule_next(Tuned *u, const Strategy *how, Schedule *out)
{
	if (u->report.tried >= u->search.noffer)
		return search_next(&u->search, how, out);
	*out = u->search.tried[u->report.tried].schedule;
	return true;
}

/* Was the same text made of another schedule? Blocks beyond an extent, for one, are all alike. */
static bool source_seen(Tuned *u, const Kernel *k)
{
	uint64_t hash = hash_bytes(k->source, strlen(k->source), (uint64_t)k->shape.parts);

	for (int i = 0; i < u->nseen && i < SEEN; i++)
		if (u->seen[i] == hash)
			return true;
	u->seen[u->nseen++ % SEEN] = hash;
	return false;
}

/* Candidates that fit the task; what does not is noted as tried. */
static int batch_fill(Tuned *u, const Strategy *how, Candidate *room, Candidate **c)
{
	int n = 0;

	for (int i = 0; i < 20 * BATCH && n < BATCH; i++) {
		Candidate *k = c[n] = &room[n];

		*k = (Candidate){.entry = u->entry, .backend = entry_tuning(u->entry)};
		if (!schedule_next(u, how, &k->schedule) ||
		    search_report(&u->search, &k->schedule, INFINITY, &k->err))
			break;
		k->kernel = kernel_lower(u->entry->task, &k->schedule, k->backend,
					 backend_target(k->backend), &k->err);
		if (k->kernel && k->kernel->source &&
		    (strlen(k->kernel->source) > SOURCE_MOST || source_seen(u, k->kernel))) {
			kernel_unref(k->kernel);
			k->kernel = NULL;
		}
		u->report.tried++;
		u->report.failed += k->kernel == NULL;
		n += k->kernel != NULL;
	}
	return n;
}

/* How long the entry's kernel takes now. */
static int tuned_measure(Tuned *u, Error *err)
{
	Taken now = entry_take(u->entry);
	int code = bench_new(&u->bench, u->entry, u->pool, err);

	u->report.best = now.kernel->schedule;
	u->report.seconds = INFINITY;
	if (!code)
		code = kernel_time(u, now.kernel, run_limit, &u->report.seconds, err);
	u->report.first = u->report.seconds;
	bench_free(&u->bench);
	kernel_unref(now.kernel);
	return code;
}

static int tuned_open(Tuned *u, uint64_t seed, Error *err)
{
	CacheEntry *e = u->entry;
	int code = bench_new(&u->bench, e, u->pool, err);

	if (code)
		return code;
	u->report.refused = u->refused.text;
	pthread_mutex_lock(&e->lock);
	Finalist first = {kernel_ref(e->best), e->origin, u->report.first, u->report.first};
	pthread_mutex_unlock(&e->lock);
	final_add(u, first);
	return search_init(&u->search, e->task, entry_target(e, entry_tuning(e)), seed, err);
}

static void tuned_close(Tuned *u)
{
	while (u->nfinal > 0)
		kernel_unref(u->final[--u->nfinal].kernel);
	bench_free(&u->bench);
	search_free(&u->search);
}

static int entry_tune(Tuned *u, const Tuning *t, int k, int n, double begin, double until,
		      Error *err)
{
	Candidate room[BATCH], *c[BATCH];
	double left = until - clock_seconds(), final = fmin(final_share * left, final_most);
	int code = 0, got = 1;

	while (!code && got > 0 && !u->stop &&
	       (!u->report.tried || clock_seconds() < until - final)) {
		got = batch_fill(u, t->strategy, room, c);
		candidates_make(got, c, pool_threads(u->pool));
		for (int i = 0; i < got; i++)
			if (!code)
				code = candidate_try(u, c[i], err);
			else if (c[i]->kernel)
				kernel_unref(c[i]->kernel);
		u->stop = t->report(t->user, k, n, clock_seconds() - begin, false, &u->report);
	}
	if (!code)
		code = final_run(u, final, err);
	pthread_mutex_lock(&u->entry->lock);
	u->entry->offered = OFFERS; /* a training need not begin again */
	pthread_mutex_unlock(&u->entry->lock);
	u->report.kept = disk_store(u->entry);
	u->stop |= t->report(t->user, k, n, clock_seconds() - begin, true, &u->report);
	return code;
}

/* ---- the whole ---- */
static int by_share(const void *a, const void *b)
{
	double x = ((const Tuned *)a)->report.share, y = ((const Tuned *)b)->report.share;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Shares of a step by what launches took so far, where all have run; else by a launch each. */
static void find_shares(Tuned *u, int n)
{
	bool ran = true;
	double all = 0;

	for (int i = 0; i < n; i++)
		ran = ran && entry_cost(u[i].entry) > 0;
	for (int i = 0; i < n; i++) {
		u[i].report.share = ran ? entry_cost(u[i].entry) : u[i].report.first * u[i].times;
		all += u[i].report.share;
	}
	for (int i = 0; i < n; i++)
		u[i].report.share /= all;
	qsort(u, (size_t)n, sizeof *u, by_share);
}

/* The kernels that take most time first, each with its data only while it is its turn. What one leaves of
 * its part the others have; the small ones are searched as long as there is time. */
static int all_tune(Tuned *u, int n, const Tuning *t, Error *err)
{
	double begin = clock_seconds(), end = begin + t->seconds, shares = 1;
	int code = 0;

	find_shares(u, n);
	for (int i = 0; i < n && !code; i++) {
		double now = clock_seconds(), share = u[i].report.share;
		double until = now + fmax(0, end - now) * fmin(1, share / shares);

		if (now >= end && i > 0)
			break;
		shares -= share;
		code = tuned_open(&u[i], t->seed, err);
		if (!code)
			code = entry_tune(&u[i], t, i, n, begin, until, err);
		tuned_close(&u[i]);
		if (u[i].stop)
			break;
	}
	return code;
}

int entries_tune(int nentry, CacheEntry *const *entry, Pool *pool, const Tuning *t, Error *err)
{
	Tuned *u = mem_zalloc(((size_t)nentry + 1) * sizeof *u);
	int n = 0, code = 0;

	if (!u)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < nentry && !code; i++) {
		const Task *task = entry[i]->task;
		int k = 0;

		if (!entry_tuning(entry[i]) || !bench_fits(entry[i], NULL))
			continue;
		while (k < n && u[k].entry != entry[i])
			k++;
		u[k].times++;
		if (k < n)
			continue;
		u[n].entry = entry[i];
		u[n].pool = pool;
		u[n].report = (TuneReport){
			.text = task->text, .flops = task->flops, .bytes = task->bytes};
		code = tuned_measure(&u[n++], err);
	}
	if (!code)
		code = all_tune(u, n, t, err);
	mem_free(u);
	return code;
}
