/* explore.c - the exploration thread: which schedule of which kernel to try next.
 *
 * Each line gets its offers one after the other: into the schedule queue; made and verified by the
 * code generation threads; timed by the launches of the training that runs meanwhile; then the
 * next. First comes the default schedule of every line in the order of the time it takes, so that
 * the kernels that cost most become fast first; further schedules are tried only where they can
 * matter. The outcome of each trial is kept on disk.
 */
#define _GNU_SOURCE
#include "runtime/tuner.h"
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const double worth = 0.01; /* of the step's time: less is not explored */

Tuner *tuner_new(int generators, Error *err)
{
	Tuner *t = mem_zalloc(sizeof *t);

	if (!t) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->change, NULL);
	t->tail = &t->queue;
	generators = (int)env_long("RICCI_COMPILERS", generators);
	t->generators = generators < 1		       ? 1
			: generators > MOST_GENERATORS ? MOST_GENERATORS
						       : generators;
	return t;
}

static bool line_claim(Line *l, int *offered)
{
	bool mine;

	pthread_mutex_lock(&l->lock);
	mine = !l->claimed;
	l->claimed = true;
	*offered = l->offered;
	pthread_mutex_unlock(&l->lock);
	return mine;
}

static int job_add(Tuner *t, Line *l, Error *err)
{
	Job *j;

	if (t->njob == t->room) {
		int room = t->room ? 2 * t->room : 64;
		Job *more = mem_realloc(t->job, (size_t)room * sizeof *more);

		if (!more)
			return error_set(err, RICCI_ENOMEM, "out of memory");
		t->job = more;
		t->room = room;
	}
	j = &t->job[t->njob];
	*j = (Job){.line = l};
	if (!line_tuning(l) || !line_claim(l, &j->next))
		return 0;
	line_ref(l);
	t->njob++;
	t->left++;
	atomic_store(&t->busy, true);
	return 0;
}

int tuner_add(Tuner *t, int n, Line **lines, Error *err)
{
	int code = 0;

	pthread_mutex_lock(&t->lock);
	for (int i = 0; i < n && !code; i++)
		code = job_add(t, lines[i], err);
	pthread_cond_broadcast(&t->change);
	pthread_mutex_unlock(&t->lock);
	return code;
}

static void *explore_main(void *tuner);

void tuner_start(Tuner *t)
{
	int n = 0;

	pthread_mutex_lock(&t->lock);
	if (!t->started && t->left > 0 && thread_start(&t->explore, explore_main, t) == 0) {
		while (n < t->generators && thread_start(&t->generate[n], generate_main, t) == 0)
			n++;
		t->generators = n;
		t->started = n > 0;
		if (n == 0) {
			atomic_store(&t->quit, true);
			pthread_cond_broadcast(&t->change);
			pthread_mutex_unlock(&t->lock);
			pthread_join(t->explore, NULL);
			return;
		}
	}
	pthread_mutex_unlock(&t->lock);
}

void tuner_poke(Tuner *t)
{
	pthread_mutex_lock(&t->lock);
	pthread_cond_broadcast(&t->change);
	pthread_mutex_unlock(&t->lock);
}

bool tuner_busy(const Tuner *t)
{
	return atomic_load_explicit(&t->busy, memory_order_relaxed);
}

void tuner_free(Tuner *t)
{
	if (!t)
		return;
	atomic_store(&t->quit, true);
	tuner_poke(t);
	if (t->started) {
		pthread_join(t->explore, NULL);
		for (int i = 0; i < t->generators; i++)
			pthread_join(t->generate[i], NULL);
	}
	for (Candidate *c = t->queue, *next; c; c = next) {
		next = c->next;
		mem_free(c);
	}
	for (int i = 0; i < t->njob; i++) {
		Line *l = t->job[i].line;

		pthread_mutex_lock(&l->lock);
		l->claimed = false;
		pthread_mutex_unlock(&l->lock);
		line_unref(l);
		mem_free(t->job[i].offer);
	}
	mem_free(t->job);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->change);
	mem_free(t);
}

/* ---- the thread ---- */
static bool job_offers(Job *j)
{
	j->offer = mem_alloc(OFFERS * sizeof *j->offer);
	if (!j->offer)
		return false;
	j->noffer = schedule_offers(j->line->task, target_host(), OFFERS, j->offer);
	return true;
}

static double job_share(const Tuner *t, const Job *j)
{
	long long all = 0;

	for (int i = 0; i < t->njob; i++)
		all += atomic_load(&t->job[i].line->spent);
	return all ? (double)atomic_load(&j->line->spent) / (double)all : 1;
}

static void job_end(Tuner *t, Job *j)
{
	j->state = JOB_DONE;
	mem_free(j->offer);
	j->offer = NULL;
	t->left--;
}

static void job_queue(Tuner *t, Job *j)
{
	Candidate *c = mem_zalloc(sizeof *c);

	if (!c) {
		job_end(t, j);
		return;
	}
	c->line = j->line;
	c->backend = line_tuning(j->line);
	c->schedule = j->offer[j->next];
	j->state = JOB_QUEUED;
	j->candidate = c;
	*t->tail = c;
	t->tail = &c->next;
	pthread_cond_broadcast(&t->change);
}

void tuner_outcome(Tuner *t, Candidate *c, JobState state)
{
	for (int i = 0; i < t->njob; i++)
		if (t->job[i].candidate == c) {
			t->job[i].state = state;
			t->job[i].candidate = NULL;
			t->job[i].next++;
		}
	pthread_cond_broadcast(&t->change);
}

/* Was the trial decided? Then the line goes to disk with what it has learnt. */
static bool trial_over(Job *j)
{
	Line *l = j->line;
	bool over;

	pthread_mutex_lock(&l->lock);
	over = l->trial == NULL;
	if (over)
		l->offered = j->next;
	pthread_mutex_unlock(&l->lock);
	return over;
}

static int by_time(const void *a, const void *b)
{
	long long x = atomic_load(&(*(Job *const *)a)->line->spent);
	long long y = atomic_load(&(*(Job *const *)b)->line->spent);

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Idle jobs into the queue, those that take most time first; first offers before others. */
static void explore_idle(Tuner *t, Job **order)
{
	int n = 0;

	for (int i = 0; i < t->njob; i++)
		if (t->job[i].state == JOB_IDLE)
			order[n++] = &t->job[i];
	qsort(order, (size_t)n, sizeof *order, by_time);
	for (int i = 0; i < n; i++) {
		Job *j = order[i];

		if (!j->offer && !job_offers(j))
			job_end(t, j);
		else if (j->next >= j->noffer || (j->next > 0 && job_share(t, j) < worth))
			job_end(t, j);
		else
			job_queue(t, j);
	}
}

/* One look at all jobs. The disk is written outside the lock. */
static void explore_round(Tuner *t)
{
	Job **order = mem_alloc((size_t)t->njob * sizeof *order);
	Line **keep = mem_alloc((size_t)t->njob * sizeof *keep);
	int n = 0;

	for (int i = 0; i < t->njob && keep; i++)
		if (t->job[i].state == JOB_TRYING && trial_over(&t->job[i])) {
			t->job[i].state = JOB_IDLE;
			keep[n++] = t->job[i].line;
		}
	if (order)
		explore_idle(t, order);
	atomic_store(&t->busy, t->left > 0);
	pthread_mutex_unlock(&t->lock);
	for (int i = 0; i < n; i++)
		disk_store(keep[i]);
	pthread_mutex_lock(&t->lock);
	mem_free(order);
	mem_free(keep);
}

static void background(void)
{
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
}

static void *explore_main(void *arg)
{
	Tuner *t = arg;
	struct timespec until;

	background();
	pthread_mutex_lock(&t->lock);
	while (!atomic_load(&t->quit)) {
		if (t->njob)
			explore_round(t);
		if (t->left == 0)
			pthread_cond_broadcast(&t->change);
		if (atomic_load(&t->quit))
			break;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 1;
		pthread_cond_timedwait(&t->change, &t->lock, &until);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* ---- waiting for the end ---- */
/* Times a line's trial on random data: no training runs that would do it. */
static int settle_line(Line *l, Pool *pool, Error *err)
{
	TaskData d = {0};
	RandomState rs = {1, 1};
	bool over = false;
	int code = task_data_new(l->task, 1, &d, err);

	for (int i = 0; i < 64 && !over && !code; i++) {
		Taken k = line_take(l);
		double start = clock_seconds();

		over = k.which < 0;
		if (!over)
			code = pool_launch(pool, k.kernel, d.buf, &rs, true, err);
		if (!over && !code && i >= 2) /* the first two meet cold data */
			over = line_timed(l, k.kernel, k.which, clock_seconds() - start);
		kernel_unref(k.kernel);
	}
	task_data_free(&d);
	return code;
}

static Line *settle_find(Tuner *t)
{
	Line *found = NULL;

	for (int i = 0; i < t->njob && !found; i++)
		if (t->job[i].state == JOB_TRYING) {
			Line *l = t->job[i].line;

			pthread_mutex_lock(&l->lock);
			found = l->trial ? l : NULL;
			pthread_mutex_unlock(&l->lock);
		}
	return found ? line_ref(found) : NULL;
}

int tuner_settle(Tuner *t, Pool *pool, Error *err)
{
	int code = 0;

	tuner_start(t);
	pthread_mutex_lock(&t->lock);
	while (t->started && t->left > 0 && !code) {
		Line *l = settle_find(t);

		if (!l) {
			pthread_cond_wait(&t->change, &t->lock);
			continue;
		}
		pthread_mutex_unlock(&t->lock);
		code = settle_line(l, pool, err);
		line_unref(l);
		pthread_mutex_lock(&t->lock);
		pthread_cond_broadcast(&t->change);
		/* The exploration thread takes note of the outcome. */
		pthread_mutex_unlock(&t->lock);
		sched_yield();
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return code;
}
