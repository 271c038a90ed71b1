/* generate.c - the code generation threads: compile what the schedule queue holds, and verify it.
 *
 * Several candidates go to the compiler together. One that passes verification replaces a first,
 * quickly made kernel at once, and otherwise goes on trial against the present one.
 */
#define _GNU_SOURCE
#include "runtime/tuner.h"
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Seconds: a kernel that has run steps ends. */
static const double used_limit = 1000;

/* Is a candidate for the threads that stand back? Not where someone waits for all of them. */
static bool for_back(const Tuner *t, const Candidate *c)
{
	return !c->urgent && atomic_load(&t->both) && atomic_load(&t->settling) == 0;
}

/* The first candidates of one backend that are for those who ask. */
static int queue_take(Tuner *t, Candidate **c, bool back)
{
	Candidate **at = &t->queue;
	int n = 0;

	while (*at) {
		Candidate *k = *at;
		bool take = n < BATCH && for_back(t, k) == back &&
			    (n == 0 || k->backend == c[0]->backend);

		if (take) {
			c[n++] = k;
			*at = k->next;
		} else {
			at = &k->next;
		}
	}
	t->tail = at;
	return n;
}

/* Is the entry's kernel one of the first iteration's, from another backend or made for a larger batch? */
static Kernel *entry_present(CacheEntry *e, bool *first, const Candidate *c)
{
	Kernel *k;

	pthread_mutex_lock(&e->lock);
	k = kernel_ref(e->best);
	*first = e->best->backend != c->backend || e->best->fewer;
	pthread_mutex_unlock(&e->lock);
	return k;
}

static void verify_trace(const CacheEntry *e, double start, const char *refused)
{
	char title[120];

	if (!trace_on())
		return;
	entry_title(e, title, sizeof title);
	trace_span("verify", title, start, refused);
}

/* Validates a kernel of the first iteration, which has been in use since. */
static void present_validate(CacheEntry *e, Kernel *k)
{
	Error why = {0};
	double start = clock_seconds();

	if (!verify_within(e->task, k, NULL, true, used_limit, &why))
		entry_validate(e, k);
	else if (why.code == RICCI_ECOMPILE)
		entry_condemn(e, k, &why);
	verify_trace(e, start, why.text);
	kernel_unref(k);
}

/* A kernel that is refused costs speed, never values: who looks at times is told. */
static void candidate_refuse(const Candidate *c, const char *how)
{
	env_dump_text("kernels", how, c->err.text);
	if (env_long("RICCI_TIME", 0) > 0)
		fprintf(stderr, "ricci: a kernel is %s: %s\n", how, c->err.text);
}

static JobState candidate_place(Candidate *c)
{
	bool first;
	Kernel *best = entry_present(c->entry, &first, c), *k = c->kernel;
	const Kernel *reference = strcmp(best->backend->name, "interp") ? best : NULL;
	Kernel *unseen = entry_unvalidated(c->entry, true);

	if (unseen)
		present_validate(c->entry, unseen);
	double start = clock_seconds();
	bool bad = verify_within(c->entry->task, k, reference, true, verify_seconds(c->entry->task),
				 &c->err) != 0;
	verify_trace(c->entry, start, bad ? c->err.text : "");

	kernel_unref(best);
	if (bad) {
		candidate_refuse(c, "refused");
		return JOB_IDLE;
	}
	c->kernel = NULL;
	if (!first) {
		entry_try(c->entry, k, &c->origin);
		return JOB_TRYING;
	}
	pthread_mutex_lock(&c->entry->lock);
	if (c->entry->offered == 0)
		c->entry->offered = 1;
	pthread_mutex_unlock(&c->entry->lock);
	entry_put(c->entry, k, &c->origin, 0, true);
	disk_store(c->entry);
	return JOB_IDLE;
}

static void candidate_end(Tuner *t, Candidate *c, JobState state)
{
	tuner_outcome(t, c, state);
	if (c->kernel)
		kernel_unref(c->kernel);
	mem_free(c);
}

static void batch_work(Tuner *t, int n, Candidate **c)
{
	candidates_make(n, c, 1);
	for (int i = 0; i < n; i++) {
		JobState state = JOB_IDLE;

		if (c[i]->validates) {
			present_validate(c[i]->entry, c[i]->kernel);
			c[i]->kernel = NULL;
		} else if (c[i]->kernel && !atomic_load(&t->quit))
			state = candidate_place(c[i]);
		else if (c[i]->err.code)
			candidate_refuse(c[i], "not made");
		candidate_end(t, c[i], state);
	}
}

/* From now on this thread, and the compilers that it starts, run where nothing else would: of a thread that is
 * only nice to others a training thread that wakes waits for some milliseconds, and all others for it. */
static void stand_back(void)
{
	const struct sched_param none = {0};
	pid_t self = (pid_t)syscall(SYS_gettid);

	if (sched_setscheduler(self, SCHED_IDLE, &none))
		setpriority(PRIO_PROCESS, (id_t)self, 10);
}

/* The first threads work at the user's priority, as many more stand back: from there a thread can't return. */
void *generate_main(void *arg)
{
	Tuner *t = arg;
	Candidate *c[BATCH];
	bool back = atomic_fetch_add(&t->begun, 1) >= t->generators;

	backend_stop_when(&t->quit);
	trace_thread(back ? "makes kernels, behind training" : "makes kernels");
	if (back)
		stand_back();
	pthread_mutex_lock(&t->lock);
	while (!atomic_load(&t->quit)) {
		int n = queue_take(t, c, back);

		if (n == 0) {
			pthread_cond_wait(&t->change, &t->lock);
			continue;
		}
		pthread_mutex_unlock(&t->lock);
		batch_work(t, n, c);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}
