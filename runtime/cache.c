/* cache.c - the function cache in memory: lines, shared by all sessions of the process.
 *
 * A line lives while a session or a tuner uses it. Its kernels change under its lock; launches look
 * at `version` only, and come here when it has changed. While a second kernel is on trial, launches
 * alternate between the two and report their times; the faster stays.
 */
#include "runtime/internal.h"
#include <string.h>

enum { BUCKETS = 256 };

static Line *bucket[BUCKETS];

/* Takes the lock. A forked child begins with an empty table: the parent's threads may have held the
 * locks of its lines, and their kernels may call libraries that are no longer to be called. */
static void table_take(void)
{
	static unsigned generation;

	lock_take(LOCK_CACHE);
	if (generation != fork_generation())
		memset(bucket, 0, sizeof bucket);
	generation = fork_generation();
}

static uint64_t line_hash(const char *text, Request r)
{
	uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)r.frozen ^ (uint64_t)r.threads << 8;

	for (const char *s = r.backend ? r.backend->name : ""; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}

static bool line_is(const Line *l, uint64_t hash, const char *text, Request r)
{
	return l->hash == hash && l->request.backend == r.backend &&
	       l->request.frozen == r.frozen && l->request.threads == r.threads &&
	       l->request.pack == r.pack && !strcmp(l->task->text, text);
}

Line *line_get(Task *t, Request r, Error *err)
{
	uint64_t hash = line_hash(t->text, r);
	Line **at = &bucket[hash % BUCKETS], *l;

	table_take();
	for (l = *at; l && !line_is(l, hash, t->text, r); l = l->next)
		;
	if (l) {
		l->refs++;
		task_free(t);
	} else if ((l = mem_zalloc(sizeof *l))) {
		l->refs = 1;
		l->request = r;
		l->task = t;
		l->hash = hash;
		atomic_init(&l->version, 1);
		pthread_mutex_init(&l->lock, NULL);
		l->next = *at;
		*at = l;
	} else {
		task_free(t);
		error_set(err, RICCI_ENOMEM, "out of memory");
	}
	lock_leave(LOCK_CACHE);
	return l;
}

Line *line_ref(Line *l)
{
	lock_take(LOCK_CACHE);
	l->refs++;
	lock_leave(LOCK_CACHE);
	return l;
}

void line_unref(Line *l)
{
	Line **at;

	if (!l)
		return;
	lock_take(LOCK_CACHE);
	if (--l->refs > 0) {
		lock_leave(LOCK_CACHE);
		return;
	}
	for (at = &bucket[l->hash % BUCKETS]; *at != l; at = &(*at)->next)
		;
	*at = l->next;
	lock_leave(LOCK_CACHE);
	if (l->best)
		kernel_unref(l->best);
	if (l->trial)
		kernel_unref(l->trial);
	pthread_mutex_destroy(&l->lock);
	task_free(l->task);
	mem_free(l);
}

bool line_ready(Line *l)
{
	bool ready;

	pthread_mutex_lock(&l->lock);
	ready = l->best != NULL;
	pthread_mutex_unlock(&l->lock);
	return ready;
}

void line_put(Line *l, Kernel *k, const Origin *o, double seconds, bool proved)
{
	Kernel *old;

	pthread_mutex_lock(&l->lock);
	old = l->best;
	l->best = k;
	l->origin = o ? *o : (Origin){0};
	l->seconds = seconds;
	l->proved = l->validated = proved;
	l->unseen = false;
	atomic_fetch_add(&l->version, 1);
	pthread_mutex_unlock(&l->lock);
	if (old)
		kernel_unref(old);
}

void line_try(Line *l, Kernel *k, const Origin *o)
{
	Kernel *old;

	pthread_mutex_lock(&l->lock);
	old = l->trial;
	l->trial = k;
	l->trial_origin = *o;
	l->tested = false;
	for (int i = 0; i < 2; i++) {
		l->runs[i] = 0;
		l->least[i] = 1e30;
	}
	atomic_fetch_add(&l->version, 1);
	pthread_mutex_unlock(&l->lock);
	if (old)
		kernel_unref(old);
}

Taken line_take(Line *l)
{
	Taken t = {.which = -1};

	pthread_mutex_lock(&l->lock);
	t.seen = atomic_load(&l->version);
	if (l->trial) {
		t.which = l->runs[1] < l->runs[0];
		t.seen -= 1;
	}
	t.kernel = kernel_ref(t.which == 1 ? l->trial : l->best);
	t.proved = t.which == 1 ? l->tested : l->proved;
	pthread_mutex_unlock(&l->lock);
	return t;
}

int line_wrong(Line *l, Error *err)
{
	pthread_mutex_lock(&l->lock);
	int code = l->wrong.code ? error_set(err, l->wrong.code, "%s", l->wrong.text) : 0;
	pthread_mutex_unlock(&l->lock);
	return code;
}

Kernel *line_best(Line *l)
{
	pthread_mutex_lock(&l->lock);
	Kernel *k = kernel_ref(l->best);
	pthread_mutex_unlock(&l->lock);
	return k;
}

void line_prove(Line *l, const Kernel *k, bool seen)
{
	pthread_mutex_lock(&l->lock);
	if (l->best == k && !l->proved) {
		l->proved = true;
		l->unseen = !seen;
		atomic_fetch_add(&l->version, 1);
	}
	pthread_mutex_unlock(&l->lock);
}

void line_tested(Line *l, const Kernel *k, bool good)
{
	Kernel *loser = NULL;

	pthread_mutex_lock(&l->lock);
	if (l->trial == k && good) {
		l->tested = true;
	} else if (l->trial == k) {
		loser = l->trial;
		l->trial = NULL;
		atomic_fetch_add(&l->version, 1);
		if (l->tuner)
			tuner_poke(l->tuner);
	}
	pthread_mutex_unlock(&l->lock);
	if (loser)
		kernel_unref(loser);
}

Kernel *line_unvalidated(Line *l, bool unseen)
{
	Kernel *k = NULL;

	pthread_mutex_lock(&l->lock);
	if (!l->validated && strcmp(l->best->backend->name, "interp") && (l->unseen || !unseen))
		k = kernel_ref(l->best);
	pthread_mutex_unlock(&l->lock);
	return k;
}

void line_validate(Line *l, const Kernel *k)
{
	pthread_mutex_lock(&l->lock);
	l->validated = l->validated || l->best == k;
	pthread_mutex_unlock(&l->lock);
}

int line_interpret(Line *l, const Kernel *wrong, Error *err)
{
	Schedule none = {0};
	Kernel *k = kernel_make(l->task, &none, backend_find("interp"), target_host(), err);
	Kernel *best = line_best(l);
	bool still = best == wrong;

	kernel_unref(best);
	if (!k)
		return err ? err->code : RICCI_ECOMPILE;
	if (still)
		line_put(l, k, NULL, 0, true);
	else
		kernel_unref(k);
	return 0;
}

void line_condemn(Line *l, const Kernel *k, const Error *why)
{
	pthread_mutex_lock(&l->lock);
	error_clear(&l->wrong);
	error_set(&l->wrong, why->code,
		  "results of the steps so far may be wrong: %s, made by %s for\n%.600s", why->text,
		  k->backend->name, l->task->text);
	pthread_mutex_unlock(&l->lock);
	line_interpret(l, k, NULL);
	atomic_fetch_add(&l->wrongs, 1);
}

/* Enough seen? A clear difference needs two runs each only. */
static bool trial_over(const Line *l)
{
	int fewer = l->runs[0] < l->runs[1] ? l->runs[0] : l->runs[1];
	double a = l->least[0], b = l->least[1];

	return fewer >= TRIAL_RUNS || (fewer >= 2 && (a > 1.5 * b || b > 1.5 * a)) ||
	       (fewer >= 1 && b > 5 * a);
}

bool line_timed(Line *l, const Kernel *k, int which, double seconds)
{
	Kernel *loser = NULL;

	pthread_mutex_lock(&l->lock);
	if (l->trial && k == (which ? l->trial : l->best)) {
		l->runs[which]++;
		if (seconds < l->least[which])
			l->least[which] = seconds;
		if (trial_over(l)) {
			bool better = l->least[1] < 0.98 * l->least[0];

			loser = better ? l->best : l->trial;
			if (better) {
				l->best = l->trial;
				l->origin = l->trial_origin;
				l->proved = l->validated = true;
			}
			l->trial = NULL;
			l->seconds = l->least[better];
			atomic_fetch_add(&l->version, 1);
			if (l->tuner)
				tuner_poke(l->tuner);
		}
	}
	pthread_mutex_unlock(&l->lock);
	if (loser)
		kernel_unref(loser);
	return loser != NULL;
}
