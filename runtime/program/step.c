/* step.c - a program's step: its runs, one after the other.
 *
 * Input: a program, where its cells are. Output: its results; what its launches took. Launches read a
 * kernel from their Run; when its entry has news they fetch the new kernel first, and never wait for
 * one.
 */
#include "runtime/program/program.h"
#include <string.h>

/* Says that the run has another kernel from now on. */
static void trace_swap(const Run *r, const Taken *t)
{
	char text[80];

	if (t->which == 1 || !r->timed || r->timed == t->kernel || !trace_on())
		return;
	message_print(text, sizeof text, "%s instead of %s", t->kernel->backend->name,
		      r->timed->backend->name);
	trace_mark("swap", run_name(r), text);
}

/* While a thread of the background has the lock, which may not run for seconds, the kernel of the launch
 * before will do, unless it was tested by that launch, or some kernel was wrong. */
static void run_take(Run *r, int *which)
{
	bool waits = !r->kernel || r->untested || atomic_load(&r->entry->wrongs);
	Taken t;

	if (waits)
		t = entry_take(r->entry);
	else if (!entry_take_now(r->entry, &t))
		return;
	trace_swap(r, &t);
	if (r->kernel)
		kernel_unref(r->kernel);
	r->kernel = t.kernel;
	r->seen = t.seen;
	r->checked = t.checked;
	r->untested = t.which == 1 && !t.checked;
	*which = t.which;
}

static bool run_stale(const Run *r)
{
	return !r->kernel ||
	       atomic_load_explicit(&r->entry->version, memory_order_acquire) != r->seen;
}

/* A launch by the entry's best kernel took so long. A new one begins anew; what it gains is told when
 * some launches have shown it. */
static void run_timed(Run *r, double seconds)
{
	enum { SHOWN = 8 };

	if (r->timed != r->kernel) {
		if (r->timed)
			kernel_unref(r->timed);
		r->timed = r->kernel ? kernel_ref(r->kernel) : NULL;
		r->before = times_median(&r->times);
		r->times = (Times){0};
	}
	times_add(&r->times, seconds);
	if (r->before > 0 && r->times.count == SHOWN && trace_on()) {
		char text[80];

		message_print(text, sizeof text, "%.1f us instead of %.1f",
			      1e6 * times_median(&r->times), 1e6 * r->before);
		trace_mark("gain", run_name(r), text);
	}
}

void run_used(Run *r, Kernel *k)
{
	if (!r->used || r->used[r->turn] == k)
		return;
	kernel_unref(r->used[r->turn]);
	r->used[r->turn] = kernel_ref(k);
}

/* A device's kernels were all validated before they came here. Timed ones are waited for; the first launch
 * meets cold caches, and says nothing of the kernel's speed. */
static int run_start(Run *r, Device *d, RandomState rs, bool timing, Error *err)
{
	double start = timing ? clock_seconds() : 0, seconds = 0;
	int code = timing ? device_time(d, r->kernel, r->nbuf, r->buf, rs, 1, &seconds, err)
			  : device_launch(d, r->kernel, r->nbuf, r->buf, rs, err);

	if (code || !timing || r->again || r->launches == 1)
		entry_counted(r->entry, 1);
	else
		entry_launched(r->entry, seconds);
	if (code || !timing)
		return code;
	trace_span("kernel", run_name(r), start, r->kernel->backend->name);
	run_timed(r, seconds);
	return 0;
}

/* Launches k on the host's threads, and says how long it took; best: it is the entry's best kernel. */
static int launch_timed(Run *r, Kernel *k, Pool *pool, RandomState rs, const char *kind, bool best,
			double *seconds, Error *err)
{
	double start = clock_seconds();
	int code = pool_launch(pool, k, r->buf, &rs, r->wide, err);

	*seconds = clock_seconds() - start;
	trace_span(kind, run_name(r), start, k->backend->name);
	if (best) {
		run_timed(r, *seconds);
		entry_launched(r->entry, *seconds);
	}
	return code;
}

/* Computes again what `first`, itself in a loop, has, by the same kernel: two kernels may round differently, and who
 * compares both results for equality (the ties of max=) would find none. */
static int run_again(Run *r, const Run *first, const Program *p, Pool *pool, RandomState rs,
		     bool timing, Error *err)
{
	Kernel *own = r->kernel, *k = kernel_ref(first->used[p->turn]);
	const Device *d = p->device;
	double seconds;
	int code;

	r->kernel = k;
	r->launches++;
	if (d->kind->launch)
		code = run_start(r, p->device, rs, timing, err);
	else
		code = timing ? launch_timed(r, k, pool, rs, "kernel", k == first->timed, &seconds,
					     err)
			      : pool_launch(pool, k, r->buf, &rs, r->wide, err);
	r->kernel = r == first ? own : k;
	kernel_unref(r == first ? k : own);
	return code;
}

static int run_launch(Run *r, const Program *p, Pool *pool, RandomState rs, bool timing, Error *err)
{
	Device *d = p->device;
	int which = -1, code = 0;
	double seconds;

	if (r->again || p->again)
		return run_again(r, r->again ? r->again : r, p, pool, rs, timing, err);
	r->turn = p->turn;
	if (!d->kind->launch && run_stale(r))
		run_take(r, &which);
	r->launches++;
	if (d->kind->launch) {
		run_used(r, r->kernel);
		return run_start(r, d, rs, timing, err);
	}
	if (!r->checked) {
		code = which == 1 ? run_trial(r, pool, rs, err) : run_checked(r, pool, rs, err);
		if (which != 1)
			run_used(r, r->kernel);
		return code;
	}
	run_used(r, r->kernel);
	if (!timing && which < 0)
		return pool_launch(pool, r->kernel, r->buf, &rs, r->wide, err);
	code = launch_timed(r, r->kernel, pool, rs, which == 1 ? "trial" : "kernel", which != 1,
			    &seconds, err);
	if (which >= 0)
		entry_timed(r->entry, r->kernel, which, seconds);
	return code;
}

static int loop_launch(const Program *p, Run *r, Pool *pool, RandomState rs, Tuner *tuner,
		       Error *err)
{
	double t = p->timing || trace_on() ? clock_seconds() : 0;
	int code = loop_run(p, r, pool, rs, tuner, err);

	r->launches++;
	trace_span("loop", run_name(r), t, "");
	if (p->timing)
		run_timed(r, clock_seconds() - t);
	return code;
}

/* Says once of each kernel that was used and is wrong, as has been found since: before anything runs,
 * so that states are as the step before left them. */
static int program_tell(Program *p, Error *err)
{
	int code = 0;

	for (int i = 0; i < p->nentry && !p->inner; i++) {
		unsigned wrongs = atomic_load_explicit(&p->entry[i]->wrongs, memory_order_acquire);

		if (wrongs != p->told[i])
			code = entry_wrong(p->entry[i], err);
		p->told[i] = wrongs;
	}
	return code;
}

int program_start(Program *p, Pool *pool, RandomState rs, Tuner *tuner, bool timing, Error *err)
{
	int code = 0;

	for (int i = 0; i < p->nrun && !code; i++) {
		Run *r = &p->run[i];

		for (int k = 0; k < r->nbuf; k++)
			r->buf[k] = cell_data(&p->cell[r->cell[k]]);
		if (p->finite && !r->loop)
			code = finite_before(p->finite, r, err);
		if (!code)
			code = r->loop ? loop_launch(p, r, pool, rs, tuner, err)
				       : run_launch(r, p, pool, rs, timing, err);
		if (p->finite && !r->loop && !code)
			code = finite_after(p, r, rs, err);
	}
	return code;
}

/* ---- on a device: kernels change between steps */
static bool program_stale(const Program *p)
{
	bool stale = false;

	for (int i = 0; i < p->nrun && !stale; i++)
		if (p->run[i].loop)
			stale = program_stale(loop_program(p->run[i].loop));
		else if (!p->run[i].again)
			stale = run_stale(&p->run[i]);
	return stale;
}

static void program_take(Program *p)
{
	int which;

	for (int i = 0; i < p->nrun; i++)
		if (p->run[i].loop)
			program_take(loop_program(p->run[i].loop));
		else if (!p->run[i].again && run_stale(&p->run[i]))
			run_take(&p->run[i], &which);
}

/* Are this step's launches timed? All of them are while the tuner works; on a device, where each is waited for
 * then, those of a few steps. */
static bool program_look(Program *p, Tuner *tuner)
{
	enum { LOOKS = 3 };
	bool looks = tuner && tuner_busy(tuner);

	if (p->inner && p->device->kind->launch)
		looks = p->outer->looking;
	else if (p->device->kind->launch && looks)
		looks = p->looks < LOOKS && ++p->looks;
	return p->looking = looks;
}

int program_run(Program *p, Pool *pool, RandomState rs, Tuner *tuner, Error *err)
{
	bool timing = p->timing || program_look(p, tuner) || trace_on();
	double start = p->timing ? clock_seconds() : 0;
	int code = program_tell(p, err);

	if (p->device->kind->launch && !p->inner && program_stale(p)) {
		records_drop(p->records);
		program_take(p);
	}

	if (trace_on())
		runs_name(p);
	if (!code)
		code = loops_check(p, err);
	if (p->finite && !p->inner && !code)
		code = finite_begin(p, rs, err);
	if (!code)
		code = p->records && !p->finite ? records_run(p, pool, rs, tuner, timing, err)
						: program_start(p, pool, rs, tuner, timing, err);
	if (p->finite && !p->inner && !code)
		code = finite_end(p, err);
	if (p->timing && !code && !p->inner)
		code = device_finish(p->device, err);
	if (p->timing && !code) {
		times_add(&p->times, clock_seconds() - start);
		p->steps++;
	}
	return code;
}
