/* check.c - the first launch of a kernel, checked on the step's own data.
 *
 * Kernels of the first iteration are too many and the iteration too short to run each on random
 * data first. Instead some elements are computed by the interpreter from the step's own data before
 * the launch, and compared after it. A kernel that fails is replaced by the interpreter's and its
 * launch repeated; where the user asked for that backend, it is an error. The step's data may be
 * unlucky (all terms of a long sum alike): a kernel that is right on random data is given more
 * room. Longer sums are checked by few of their terms first, on other data (terms.c). What could not
 * be checked is validated in the background soon (generate.c). A kernel on
 * trial, which is validated, runs beside the best one, and all their results are compared.
 */
#include "runtime/program/program.h"
#include "runtime/verify/trial.h"
#include <string.h>

/* Points for all elements, for one; for the one of a long sum, and where few terms don't tell. */
static const double check_points = 3000, check_limit = 40000, long_limit = 1e6, odd_limit = 1e7;
enum { CHECK_MOST = 24, COMPARED_BYTES = 256 << 20 };

/* Launches k. Results in place would overwrite what a repeated launch reads: these, or all, go to
 * buffers of their own first. */
static int run_beside(Run *r, Kernel *k, Pool *pool, RandomState rs, bool all, void **buf,
		      Error *err)
{
	memcpy(buf, r->buf, (size_t)r->nbuf * sizeof *buf);
	for (int o = r->ninput; o < r->nbuf; o++) {
		bool beside = all;

		for (int i = 0; i < r->ninput; i++)
			beside = beside || r->buf[o] == r->buf[i];
		if (beside && !(buf[o] = buffer_new(tensor_bytes(task_tensor(r->entry->task, o)))))
			return error_set(err, RICCI_ENOMEM, "out of memory");
	}
	double start = clock_seconds();
	int code = pool_launch(pool, k, buf, &rs, r->wide, err);
	trace_span("kernel", run_name(r), start, k->backend->name);
	return code;
}

static void beside_end(Run *r, void **buf, bool keep)
{
	for (int o = r->ninput; buf && o < r->nbuf; o++)
		if (buf[o] && buf[o] != r->buf[o]) {
			if (keep)
				memcpy(r->buf[o], buf[o],
				       tensor_bytes(task_tensor(r->entry->task, o)));
			buffer_free(buf[o]);
		}
	mem_free(buf);
}

/* Are the results right? `wrong` says why not. */
static int step_check(Run *r, RandomState rs, bool validated, Sample *s, void *const *buf,
		      Error *wrong, Error *err)
{
	const Task *t = r->entry->task;
	void *const *out = buf + r->ninput;
	double start = clock_seconds();
	int code = s->n ? sample_validate(t, r->buf, rs, s, out, wrong, err) : 0;

	trace_span("check", "some elements", start, run_name(r));
	if (code || !wrong->code)
		return code;
	if (validated || !verify_kernel(t, r->kernel, false, NULL)) {
		sample_one_way(t, s);
		error_clear(wrong);
		sample_check(t, s, out, wrong);
	}
	return 0;
}

static Checking step_judging(const Run *r, RandomState rs, int threads, void *const *stored)
{
	return (Checking){.rs = rs,
			  .points = check_points,
			  .limit = check_limit,
			  .most = CHECK_MOST,
			  .threads = threads,
			  .stored = stored,
			  .staged = schedule_staged(&r->kernel->schedule)};
}

/* What the results should be, where the interpreter tells soon enough; of long sums one. stored: NULL, or
 * the results that later ones follow from. */
static int step_expect(Run *r, RandomState rs, double limit, int threads, void *const *stored,
		       Sample *s, Error *err)
{
	const Task *t = r->entry->task;
	Checking how = step_judging(r, rs, threads, stored), one = how;
	double start = clock_seconds();
	int code = sample_expect(t, r->buf, &how, s, err);

	one.points = one.most = 1;
	one.limit = limit;
	if (!code && !sample_complete(t, s)) {
		sample_free(s);
		code = sample_expect(t, r->buf, &one, s, err);
	}
	trace_span("check", "what some elements should be", start, run_name(r));
	return code;
}

/* The interpreter in place of a wrong kernel. */
static int run_replace(Run *r, Pool *pool, RandomState rs, const Error *why, Error *err)
{
	env_dump_text("kernels", "replaced by the interpreter", why->text);
	if (r->entry->request.backend) {
		char task[600];

		message_print(task, sizeof task, "%s", r->entry->task->text);
		return error_set(err, why->code, "%s, made by %s for\n%s", why->text,
				 r->kernel->backend->name, task);
	}
	if (entry_interpret(r->entry, r->kernel, err))
		return err ? err->code : RICCI_ECOMPILE;
	kernel_unref(r->kernel);
	r->kernel = entry_best(r->entry);
	return pool_launch(pool, r->kernel, r->buf, &rs, r->wide, err);
}

/* Where the step's data would cost too much: on other data, of which few terms count. *seen: it could
 * be checked so. */
static void long_check(const Run *r, bool *seen, Error *wrong)
{
	Error why = {0};
	double start = clock_seconds();

	if (verify_terms(r->entry->task, r->kernel, seen, &why) && why.code != RICCI_ECOMPILE)
		*seen = false; /* there was no memory, or no process */
	else if (why.code)
		error_set(wrong, why.code, "%s", why.text);
	error_clear(&why);
	trace_span("check", "few terms of long sums", start, run_name(r));
}

/* Results in place that are too large for a copy: a kernel that is wrong leaves nothing to repeat its
 * launch from. */
static bool run_once_only(const Run *r)
{
	size_t bytes = 0;

	for (int o = r->ninput; o < r->nbuf; o++)
		for (int i = 0; i < r->ninput; i++)
			if (r->buf[o] == r->buf[i])
				bytes += tensor_bytes(task_tensor(r->entry->task, o));
	return bytes > trial_room;
}

/* Such a kernel is validated before its first launch, on memory of which most repeats. */
static int run_validated(Run *r, Pool *pool, RandomState rs, Error *err)
{
	Error wrong = {0};
	int code = verify_kernel(r->entry->task, r->kernel, true, &wrong);

	if (code == RICCI_ECOMPILE)
		code = run_replace(r, pool, rs, &wrong, err);
	else if (code)
		code = error_set(err, code, "%s", wrong.text);
	else {
		entry_checked(r->entry, r->kernel, true);
		entry_validate(r->entry, r->kernel);
		r->checked = true;
		code = pool_launch(pool, r->kernel, r->buf, &rs, r->wide, err);
	}
	error_clear(&wrong);
	return code;
}

/* Several equations: each result is held against what follows from those stored before it, so a long
 * chain costs no more than its kernels would if they were apart. good: all are right so; else nobody
 * knows yet, as the kernel may have rounded otherwise than it stored. */
static int run_follows(Run *r, Pool *pool, RandomState rs, bool *good, Error *err)
{
	const Task *t = r->entry->task;
	void **buf = mem_zalloc(((size_t)r->nbuf + 1) * sizeof *buf);
	Sample s = {0};
	int code = buf ? run_beside(r, r->kernel, pool, rs, false, buf, err)
		       : error_set(err, RICCI_ENOMEM, "out of memory");

	*good = !code &&
		!step_expect(r, rs, long_limit, pool_threads(pool), buf + r->ninput, &s, NULL) &&
		sample_complete(t, &s) && !sample_check(t, &s, buf + r->ninput, NULL);
	beside_end(r, buf, *good);
	sample_free(&s);
	return code;
}

int run_checked(Run *r, Pool *pool, RandomState rs, Error *err)
{
	bool good = false;

	if (run_once_only(r))
		return run_validated(r, pool, rs, err);
	if (r->entry->task->sub.nmember > 1) {
		int code = run_follows(r, pool, rs, &good, err);

		if (good) {
			entry_checked(r->entry, r->kernel, true);
			r->checked = true;
		}
		if (code || good)
			return code;
	}

	void **buf = mem_zalloc(((size_t)r->nbuf + 1) * sizeof *buf);
	Sample s = {0};
	Error wrong = {0};
	int code = buf ? step_expect(r, rs, long_limit, pool_threads(pool), NULL, &s, err)
		       : error_set(err, RICCI_ENOMEM, "out of memory");
	bool seen = !code && sample_complete(r->entry->task, &s);

	if (!code && !seen)
		long_check(r, &seen, &wrong);
	if (!code && !seen && !wrong.code) {
		sample_free(&s);
		code = step_expect(r, rs, odd_limit, pool_threads(pool), NULL, &s, err);
		seen = !code && sample_complete(r->entry->task, &s);
	}
	if (!code && !wrong.code)
		code = run_beside(r, r->kernel, pool, rs, false, buf, err);
	if (!code && !wrong.code)
		code = step_check(r, rs, false, &s, buf, &wrong, err);
	beside_end(r, buf, !code && !wrong.code);
	sample_free(&s);
	if (code)
		return code;
	if (wrong.code)
		return run_replace(r, pool, rs, &wrong, err);
	entry_checked(r->entry, r->kernel, seen);
	r->checked = true;
	return 0;
}

static size_t results_bytes(const Run *r)
{
	size_t bytes = 0;

	for (int o = r->ninput; o < r->nbuf; o++)
		bytes += tensor_bytes(task_tensor(r->entry->task, o));
	return bytes;
}

/* Small results of both are compared, and the step takes the best kernel's; of large ones, which
 * would take as much memory again, a sample is checked. */
int run_trial(Run *r, Pool *pool, RandomState rs, Error *err)
{
	if (run_once_only(r)) { /* it is validated */
		entry_tested(r->entry, r->kernel, true);
		run_used(r, r->kernel);
		return pool_launch(pool, r->kernel, r->buf, &rs, r->wide, err);
	}
	bool small = results_bytes(r) <= COMPARED_BYTES;
	void **got = mem_zalloc(((size_t)r->nbuf + 1) * sizeof *got);
	void **buf = mem_zalloc(((size_t)r->nbuf + 1) * sizeof *buf);
	Checking how = step_judging(r, rs, 1, NULL);
	Kernel *best = entry_best(r->entry);
	Sample s = {0};
	Error wrong = {0};
	int code = got && buf ? step_expect(r, rs, long_limit, pool_threads(pool), NULL, &s, err)
			      : error_set(err, RICCI_ENOMEM, "out of memory");

	if (!code)
		code = run_beside(r, r->kernel, pool, rs, small, got, err);
	if (!code)
		code = step_check(r, rs, true, &s, got, &wrong, err);
	if (!code && small)
		code = run_beside(r, best, pool, rs, false, buf, err);
	if (!code && small && !wrong.code)
		results_compare(r->entry->task, &s, &how, r->buf, got + r->ninput, buf + r->ninput,
				NULL, &wrong);
	beside_end(r, got, !code && !small && !wrong.code);
	beside_end(r, buf, !code);
	sample_free(&s);
	if (!code && !small && wrong.code)
		code = pool_launch(pool, best, r->buf, &rs, r->wide, err);
	if (wrong.code)
		env_dump_text("kernels", "refused on a step's data", wrong.text);
	if (!code)
		entry_tested(r->entry, r->kernel, !wrong.code);
	run_used(r, small || wrong.code ? best : r->kernel);
	kernel_unref(best);
	return code;
}
