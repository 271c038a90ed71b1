/* generate.c - the code generation threads: compile what the schedule queue holds, and verify it.
 *
 * Several candidates go to the compiler together. One that passes verification replaces a first,
 * quickly made kernel at once, and otherwise goes on trial against the present one.
 */
#include "runtime/search/tuner.h"
#include <string.h>

/* Seconds: a kernel that has run steps ends. */
static const double used_limit = 1000;

/* Is a candidate for these threads? Urgent ones are not for those that stand back; where someone waits for all of
 * them, each thread takes what there is. */
static bool is_for(const Tuner *t, const Candidate *c, bool back)
{
	bool behind = !c->urgent && atomic_load(&t->both);

	return behind == back || atomic_load(&t->settling) > 0;
}

/* The first candidates of one backend that are for those who ask. */
static int queue_take(Tuner *t, Candidate **c, bool back)
{
	Candidate **at = &t->queue;
	int n = 0;

	while (*at) {
		Candidate *k = *at;
		bool take =
			n < BATCH && is_for(t, k, back) && (n == 0 || k->backend == c[0]->backend);

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

/* Steps of a device are replayed as they were recorded, so nothing in them alternates: the trial is decided
 * here, between their launches. What fails ends it; training is told where it is its own launch. Takes a
 * reference of k, which the trial may drop. */
static void trial_device(CacheEntry *e, Kernel *k)
{
	Error why = {0};

	if (trial_settle(e, NULL, &why)) {
		env_dump_text("kernels", "not tried", why.text);
		entry_tested(e, k, false);
	}
	kernel_unref(k);
	error_clear(&why);
}

static bool candidate_verify(Candidate *c, const Kernel *best)
{
	CacheEntry *e = c->entry;
	const Kernel *reference = strcmp(best->backend->name, "interp") ? best : NULL;
	double limit = e->request.device ? candidate_seconds(e, entry_seconds(e), 1)
					 : verify_seconds(e->task);
	double start = clock_seconds();
	bool good = bench_fits(e, &c->err) &&
		    !verify_within(e->task, c->kernel, reference, true, limit, &c->err);

	verify_trace(e, start, good ? "" : c->err.text);
	return good;
}

static JobState candidate_place(Candidate *c)
{
	bool first;
	Kernel *best = entry_present(c->entry, &first, c), *k = c->kernel;
	Kernel *unseen = entry_unvalidated(c->entry, true);

	if (unseen)
		present_validate(c->entry, unseen);
	bool good = candidate_verify(c, best);

	kernel_unref(best);
	if (!good) {
		candidate_refuse(c, "refused");
		return JOB_IDLE;
	}
	if (!first) {
		if (c->entry->request.device)
			kernel_ref(k);
		c->kernel = NULL;
		entry_try(c->entry, k, &c->origin);
		if (c->entry->request.device)
			trial_device(c->entry, k);
		return JOB_TRYING;
	}
	c->kernel = NULL;
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

/* The first threads work at the user's priority, as many more stand back: from there a thread can't return. */
void *generate_main(void *arg)
{
	Tuner *t = arg;
	Candidate *c[BATCH];
	bool back = atomic_fetch_add(&t->begun, 1) >= t->generators;

	backend_stop_when(&t->quit);
	trace_thread(back ? "makes kernels, behind training" : "makes kernels");
	if (back) /* a thread that is only nice to others keeps one that wakes waiting for some ms */
		thread_stand_back(&t->front);
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
