/* cache.c - the function cache in memory: lines, shared by all sessions of the process.
 *
 * A line lives while a session or a tuner uses it. Its kernels change under its lock; launches look
 * at `version` only, and come here when it has changed. While a second kernel is on trial, launches
 * alternate between the two and report their times; the faster stays.
 */
#include "runtime/internal.h"
#include <string.h>

enum { BUCKETS = 256 };

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static Line *bucket[BUCKETS];

static uint64_t line_hash(const char *text, Request r)
{
	uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)r.frozen;

	for (const char *s = r.backend ? r.backend->name : ""; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}

static bool line_is(const Line *l, uint64_t hash, const char *text, Request r)
{
	return l->hash == hash && l->request.backend == r.backend &&
	       l->request.frozen == r.frozen && !strcmp(l->task->text, text);
}

Line *line_get(Task *t, Request r, Error *err)
{
	uint64_t hash = line_hash(t->text, r);
	Line **at = &bucket[hash % BUCKETS], *l;

	pthread_mutex_lock(&cache_lock);
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
	pthread_mutex_unlock(&cache_lock);
	return l;
}

Line *line_ref(Line *l)
{
	pthread_mutex_lock(&cache_lock);
	l->refs++;
	pthread_mutex_unlock(&cache_lock);
	return l;
}

void line_unref(Line *l)
{
	Line **at;

	if (!l)
		return;
	pthread_mutex_lock(&cache_lock);
	if (--l->refs > 0) {
		pthread_mutex_unlock(&cache_lock);
		return;
	}
	for (at = &bucket[l->hash % BUCKETS]; *at != l; at = &(*at)->next)
		;
	*at = l->next;
	pthread_mutex_unlock(&cache_lock);
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
	l->proved = proved;
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
	t.proved = t.which == 1 || l->proved;
	pthread_mutex_unlock(&l->lock);
	return t;
}

void line_prove(Line *l, const Kernel *k)
{
	pthread_mutex_lock(&l->lock);
	if (l->best == k && !l->proved) {
		l->proved = true;
		atomic_fetch_add(&l->version, 1);
	}
	pthread_mutex_unlock(&l->lock);
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
				l->proved = true;
			}
			l->trial = NULL;
			l->seconds = l->least[better];
			atomic_fetch_add(&l->version, 1);
		}
	}
	pthread_mutex_unlock(&l->lock);
	if (loser)
		kernel_unref(loser);
	return loser != NULL;
}
