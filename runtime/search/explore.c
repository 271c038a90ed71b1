/* explore.c - the exploration thread: which schedule of which kernel to try next.
 *
 * Each entry gets its offers one after the other: into the schedule queue; made and verified by the
 * code generation threads; timed by the launches of the training that runs meanwhile; then the
 * next. First comes the default schedule of every entry, those first whose kernels are farthest from
 * what the device can do, in seconds. Further schedules are tried only where they can matter, and not before what
 * they may gain, had it been gained from the beginning, pays for trying: so the search never takes a
 * good part of a training's time, short or long. The outcome of each trial is kept on disk.
 */
#define _GNU_SOURCE
#include "runtime/search/tuner.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>

static const double worth = 0.01; /* of the step's time: less is not explored */
/* What replaces a quickly made kernel is urgent, worth the processor, where that wastes this part of a step. All else runs
 * where training leaves the processor. */
static const double urgent = 0.015;
/* What part of what a kernel wastes a further schedule gains, on average; seconds of training that trying one takes;
 * what part of all training goes there at most. */
static const double gained = 0.1, trying = 0.15, most = 0.03;
/* Seconds: between looks for what pays; that launches of all entries are waited for. */
static const double look = 0.3, untimed = 1;

Tuner *tuner_new(int generators, Error *err)
{
	Tuner *t = mem_zalloc(sizeof *t);

	if (!t) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->change, NULL);
	sem_init(&t->news, 0, 0);
	t->tail = &t->queue;
	generators = (int)env_long("RICCI_COMPILERS", generators);
	t->generators = generators < 1		       ? 1
			: generators > MOST_GENERATORS ? MOST_GENERATORS
						       : generators;
	return t;
}

/* False: another tuner has it. */
static bool entry_claim(CacheEntry *e, Tuner *t, int *offered)
{
	bool mine;

	pthread_mutex_lock(&e->lock);
	mine = !e->tuner;
	if (mine)
		e->tuner = t;
	*offered = e->offered;
	pthread_mutex_unlock(&e->lock);
	return mine;
}

static void entry_unclaim(CacheEntry *e)
{
	pthread_mutex_lock(&e->lock);
	e->tuner = NULL;
	pthread_mutex_unlock(&e->lock);
}

static int job_add(Tuner *t, CacheEntry *e, Error *err)
{
	Job *j = entry_tuning(e) ? mem_zalloc(sizeof *j) : NULL;

	if (!entry_tuning(e))
		return 0;
	if (!j)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	if (!entry_claim(e, t, &j->next)) {
		mem_free(j);
		return 0;
	}
	j->entry = entry_ref(e);
	atomic_fetch_add(&t->left, 1);
	j->older = atomic_load(&t->newest);
	while (!atomic_compare_exchange_weak(&t->newest, &j->older, j))
		;
	return 0;
}

int tuner_add(Tuner *t, int n, CacheEntry **entries, Error *err)
{
	int code = 0;

	for (int i = 0; i < n && !code; i++)
		code = job_add(t, entries[i], err);
	tuner_poke(t);
	return code;
}

/* Whoever waits under the lock looks again. */
static void tuner_tell(Tuner *t)
{
	pthread_mutex_lock(&t->lock);
	pthread_cond_broadcast(&t->change);
	pthread_mutex_unlock(&t->lock);
}

static void *explore_main(void *tuner);

static void tuner_join(Tuner *t)
{
	atomic_store(&t->quit, true);
	tuner_poke(t);
	tuner_tell(t);
	while (t->running > 1)
		pthread_join(t->generate[--t->running - 1], NULL);
	if (t->running)
		pthread_join(t->explore, NULL);
	t->running = 0;
	if (t->fronted)
		front_end(&t->front);
	t->fronted = false;
}

void tuner_start(Tuner *t)
{
	if (atomic_load(&t->started) || atomic_exchange(&t->started, true))
		return;
	if (thread_start(&t->explore, explore_main, t) == 0)
		t->running = 1;
	t->fronted = t->running && front_start(&t->front);
	while (t->running && t->running <= (t->fronted ? 2 : 1) * t->generators &&
	       thread_start(&t->generate[t->running - 1], generate_main, t) == 0)
		t->running++;
	atomic_store(&t->both, t->running > 2 * t->generators);
	if (t->running > 1)
		return;
	tuner_join(t); /* nothing is tuned without threads */
	tuner_tell(t);
}

void tuner_poke(Tuner *t)
{
	sem_post(&t->news);
}

bool tuner_busy(const Tuner *t)
{
	return atomic_load_explicit(&t->left, memory_order_relaxed) > 0 && !atomic_load(&t->quit);
}

void tuner_free(Tuner *t)
{
	if (!t)
		return;
	tuner_join(t);
	for (Candidate *c = t->queue, *next; c; c = next) {
		next = c->next;
		if (c->kernel)
			kernel_unref(c->kernel);
		mem_free(c);
	}
	for (Job *j = atomic_load(&t->newest), *older; j; j = older) {
		older = j->older;
		entry_unclaim(j->entry);
		entry_unref(j->entry);
		mem_free(j->offer);
		mem_free(j);
	}
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->change);
	sem_destroy(&t->news);
	mem_free(t);
}

/* ---- the thread ---- */
static bool job_offers(Job *j)
{
	j->offer = mem_alloc(OFFERS * sizeof *j->offer);
	if (!j->offer)
		return false;
	j->noffer = schedule_offers(j->entry->task, entry_target(j->entry, entry_tuning(j->entry)),
				    OFFERS, j->offer);
	return true;
}

static void job_end(Tuner *t, Job *j)
{
	mem_free(j->offer);
	j->offer = NULL;
	atomic_store(&j->state, JOB_DONE);
	atomic_fetch_sub(&t->left, 1);
}

/* Has none been tried yet, or one in stages only? That may lose to the quickly made kernel, whose schedule comes next. */
static bool job_begins(const Job *j)
{
	return j->next == 0 || (j->next == 1 && j->offer && schedule_staged(&j->offer[0]));
}

/* Seconds of training that a further schedule takes. On a device it runs there before it is taken, and on
 * trial beside the best one. */
static double price_of(const Job *j)
{
	enum { DEVICE_RUNS = 24 };

	return j->entry->request.device ? fmax(trying, DEVICE_RUNS * entry_seconds(j->entry))
					: trying;
}

/* The next offer, or the entry's own kernel to be validated (a reference). */
static void job_queue(Tuner *t, Job *j, Kernel *validated)
{
	Candidate *c = mem_zalloc(sizeof *c);

	if (!c) {
		if (validated)
			kernel_unref(validated);
		job_end(t, j);
		return;
	}
	c->entry = j->entry;
	c->backend = entry_tuning(j->entry);
	if (!validated)
		c->schedule = j->offer[j->next];
	c->kernel = validated;
	c->validates = validated != NULL;
	c->urgent = j->urgent;
	c->job = j;
	t->room--;
	t->paid += !validated && !job_begins(j) ? price_of(j) : 0;
	atomic_store(&j->state, JOB_QUEUED);
	pthread_mutex_lock(&t->lock);
	*t->tail = c;
	t->tail = &c->next;
	pthread_cond_broadcast(&t->change);
	pthread_mutex_unlock(&t->lock);
}

void tuner_outcome(Tuner *t, Candidate *c, JobState state)
{
	c->job->next += !c->validates;
	atomic_store(&c->job->state, state);
	tuner_poke(t);
	tuner_tell(t);
}

/* Was the trial decided? Then the entry goes to disk with what it has learnt. */
static bool trial_over(Job *j)
{
	CacheEntry *e = j->entry;
	bool over;

	pthread_mutex_lock(&e->lock);
	over = e->trial == NULL;
	if (over)
		e->offered = j->next;
	pthread_mutex_unlock(&e->lock);
	return over;
}

static int by_waste(const void *a, const void *b)
{
	const Job *p = *(Job *const *)a, *q = *(Job *const *)b;

	return p->waste < q->waste ? 1 : p->waste > q->waste ? -1 : 0;
}

/* Is it time to try a further schedule? */
static bool pays(const Tuner *t, const Job *j, double all)
{
	double price = price_of(j);

	return j->waste * gained >= price && t->paid + price <= most * all;
}

/* What to do with an idle job; all: the time that all entries take. True: it waits. */
static bool job_continue(Tuner *t, Job *j, double all)
{
	bool settling = atomic_load(&t->settling) > 0, more = !job_begins(j);
	/* Of one that no launch has timed yet the cost is the least it could be. */
	bool known = j->cost > 0 && (settling || entry_seconds(j->entry) > 0);
	bool matters = known ? j->cost >= worth * all : !settling;
	Kernel *validated;

	if (!settling && ((t->room <= 0 && !j->urgent) || entry_revises(j->entry)))
		return true;
	validated = more && !j->validated ? entry_unvalidated(j->entry, false) : NULL;
	j->validated = j->validated || validated;
	if (validated)
		job_queue(t, j, validated);
	else if (!j->offer && !job_offers(j))
		job_end(t, j);
	else if (j->next >= j->noffer || (more && !matters))
		job_end(t, j);
	else if (more && !settling && !pays(t, j, all))
		return true;
	else
		job_queue(t, j, NULL);
	return false;
}

/* Looks at all jobs: trials that are over, costs, room in the queue. False: not all that are run have been yet.
 */
static bool jobs_look(Tuner *t, double *all)
{
	Job *newest = atomic_load(&t->newest);
	bool timed = true;

	*all = 0;
	t->room = 2 * BATCH * t->generators;
	for (Job *j = newest; j; j = j->older) {
		if (atomic_load(&j->state) == JOB_TRYING && trial_over(j)) {
			disk_store(j->entry);
			atomic_store(&j->state, JOB_IDLE);
		} else if (atomic_load(&j->state) == JOB_IDLE && entry_revise(j->entry)) {
			atomic_store(&j->state, JOB_TRYING);
		}
		j->cost = entry_cost(j->entry);
		j->waste = j->cost > 0 ? j->cost - entry_roof(j->entry) : 0;
		*all += j->cost;
		timed = timed && j->cost > 0;
		t->room -= atomic_load(&j->state) == JOB_QUEUED;
	}
	for (Job *j = newest; j; j = j->older)
		if (atomic_load(&j->state) == JOB_IDLE)
			j->urgent = job_begins(j) && j->waste >= urgent * *all;
	return timed || clock_seconds() - t->began > untimed || atomic_load(&t->settling) > 0;
}

/* Idle jobs into the queue, those that waste most time first; what isn't urgent as far as there is room,
 * so that what is found meanwhile can go before. Without memory nothing more is tried. True: some wait. */
static bool explore_round(Tuner *t)
{
	Job *newest = atomic_load(&t->newest), **idle;
	double all;
	bool wait = false;
	size_t n = 0, at;

	if (atomic_load(&t->measuring) > 0 || !jobs_look(t, &all))
		return true;
	for (Job *j = newest; j; j = j->older)
		n += atomic_load(&j->state) == JOB_IDLE;
	at = n;
	idle = mem_alloc(n * sizeof *idle);
	for (Job *j = newest; j && n; j = j->older) {
		if (atomic_load(&j->state) != JOB_IDLE)
			continue;
		if (idle && at > 0)
			idle[--at] = j; /* in the order in which they came */
		else if (!idle)
			job_end(t, j);
	}
	double start = clock_seconds();
	if (idle) {
		qsort(idle + at, n - at, sizeof *idle, by_waste);
		for (size_t i = at; i < n && !atomic_load(&t->quit); i++)
			wait |= job_continue(t, idle[i], all);
	}
	mem_free(idle);
	if (n)
		trace_span("explore", "looks for what to try", start, "");
	tuner_tell(t);
	return wait;
}

/* The time of day in so many seconds; less than 0 is now. */
static struct timespec time_in(double seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_nsec += (long)(1e9 * fmax(0, seconds));
	now.tv_sec += now.tv_nsec / 1000000000;
	now.tv_nsec %= 1000000000;
	return now;
}

/* For news; `wait`: and no longer than until others may pay. */
static void explore_wait(Tuner *t, bool wait)
{
	bool soon = clock_seconds() - t->began < untimed;
	struct timespec until = time_in(soon ? look / 10 : look);

	while ((wait ? sem_timedwait(&t->news, &until) : sem_wait(&t->news)) && errno == EINTR)
		;
	while (sem_trywait(&t->news) == 0)
		;
}

static void *explore_main(void *arg)
{
	Tuner *t = arg;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
	trace_thread("explores");
	t->began = clock_seconds();
	while (!atomic_load(&t->quit))
		explore_wait(t, explore_round(t));
	return NULL;
}

/* ---- waiting for the end ---- */
static bool on_trial(CacheEntry *e)
{
	pthread_mutex_lock(&e->lock);
	bool trial = e->trial != NULL;
	pthread_mutex_unlock(&e->lock);
	return trial;
}

/* Is all that is left on trial? Then nothing is compiled or verified, which would take the processor from what is
 * timed. */
static bool settle_quiet(const Tuner *t)
{
	bool quiet = true;

	for (Job *j = atomic_load(&t->newest); j && quiet; j = j->older) {
		JobState state = atomic_load(&j->state);
		quiet = state == JOB_DONE || (state == JOB_TRYING && on_trial(j->entry));
	}
	return quiet;
}

/* Decides all trials; meanwhile exploration queues nothing. */
static int settle_trials(Tuner *t, Pool *pool, Error *err)
{
	int code = 0;

	atomic_fetch_add(&t->measuring, 1);
	for (Job *j = atomic_load(&t->newest); j && !code; j = j->older)
		if (atomic_load(&j->state) == JOB_TRYING)
			code = trial_settle(j->entry, pool, err);
	atomic_fetch_sub(&t->measuring, 1);
	tuner_poke(t);
	return code;
}

int tuner_settle(Tuner *t, Pool *pool, double until, Error *err)
{
	int code = 0;

	tuner_start(t);
	atomic_fetch_add(&t->settling, 1);
	tuner_poke(t);
	pthread_mutex_lock(&t->lock);
	while (tuner_busy(t) && !code && clock_seconds() < until) {
		if (!settle_quiet(t)) {
			struct timespec at = time_in(fmin(look, until - clock_seconds()));

			pthread_cond_timedwait(&t->change, &t->lock, &at);
			continue;
		}
		pthread_mutex_unlock(&t->lock);
		code = settle_trials(t, pool, err);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	atomic_fetch_sub(&t->settling, 1);
	return code;
}
