/* verify.c - no kernel is trusted: it runs on random data with fences around every buffer.
 *
 * Each buffer ends at a page that can't be touched (as close as its alignment lets it), begins
 * after another, and has a pattern in what is left between; inputs can't be written; outputs are
 * poisoned, so that an element that is never written shows. Isolated, the kernel runs in a forked
 * child, which does nothing else: a crash or an endless loop ends the child only. Its parts run one
 * at a time from the last to the first, so that none may rely on another.
 */
#define _GNU_SOURCE
#include "runtime/internal.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANARY = 0xa7, POISON_FLOAT = 0xff, POISON_INT = 0xa5 };
static const double sample_points = 150e3, limit_points = 1e7;
enum { SAMPLE_MOST = 1500, PATIENCE = 5 };

typedef struct Fence {
	char *map, *data;
	size_t mapped, inner, bytes; /* inner: between the guard pages */
	bool output;
	Type type;
} Fence;

typedef struct Trial {
	const Task *task;
	const Kernel *kernel;
	int nbuf;
	Fence *fence; /* of each buffer, the scratch, the shared memory, the child's report */
	void **buf;
	Sample sample;
} Trial;

static bool fence_new(Fence *f, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	f->bytes = bytes;
	f->inner = (align_up(bytes) + page - 1) / page * page + page;
	f->mapped = f->inner + 2 * page;
	f->map = mmap(NULL, f->mapped, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->map == MAP_FAILED) {
		f->map = NULL;
		return false;
	}
	if (mprotect(f->map + page, f->inner, PROT_READ | PROT_WRITE))
		return false;
	f->data = f->map + page + f->inner - align_up(bytes);
	/* The page before the data and the rest of its first page, and the few bytes behind. */
	memset(f->map + page, CANARY, (size_t)(f->data - f->map) - page);
	memset(f->data + bytes, CANARY, align_up(bytes) - bytes);
	return true;
}

static void fence_free(Fence *f)
{
	if (f->map)
		munmap(f->map, f->mapped);
}

static bool fence_whole(const Fence *f)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (const char *s = f->map + page; s < f->data; s++)
		if ((unsigned char)*s != CANARY)
			return false;
	for (size_t i = f->bytes; i < align_up(f->bytes); i++)
		if ((unsigned char)f->data[i] != CANARY)
			return false;
	return true;
}

static void trial_free(Trial *v)
{
	for (int i = 0; v->fence && i < v->nbuf + 3; i++)
		fence_free(&v->fence[i]);
	mem_free(v->fence);
	mem_free(v->buf);
	sample_free(&v->sample);
}

static int trial_init(Trial *v, const Task *t, const Kernel *k, Error *err)
{
	int n = task_nbuf(t);

	*v = (Trial){.task = t, .kernel = k, .nbuf = n};
	v->fence = mem_zalloc(((size_t)n + 3) * sizeof *v->fence);
	v->buf = mem_zalloc((size_t)n * sizeof *v->buf);
	if (!v->fence || !v->buf)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	for (int i = 0; i < n + 3; i++) {
		Fence *f = &v->fence[i];
		size_t bytes = i < n	    ? tensor_bytes(task_tensor(t, i))
			       : i == n	    ? k->scratch
			       : i == n + 1 ? k->shared
					    : 64;

		if (!fence_new(f, bytes))
			return error_set(err, RICCI_ENOMEM,
					 "out of memory for a kernel's verification");
		if (i == n || i == n + 1)
			memset(f->data, POISON_FLOAT, f->bytes);
		if (i >= n)
			continue;
		v->buf[i] = f->data;
		f->type = (Type)task_tensor(t, i)->type;
		f->output = i >= t->sub.ninput;
		if (f->output)
			memset(f->data, type_is_float(f->type) ? POISON_FLOAT : POISON_INT,
			       f->bytes);
	}
	return 0;
}

/* The kernel's part of the work; in the child, all it does. */
static void trial_run(const Trial *v)
{
	const Fence *extra = v->fence + v->nbuf;
	KernelEnv env = {7, 3, extra[0].data, extra[1].data, v->kernel, NULL};

	/* Ranges as a launch hands them out, the later one first: parts depend on no order. */
	for (int phase = 0; phase < 2; phase++) {
		int64_t begin, end;

		if (!kernel_phase(v->kernel, phase, &begin, &end))
			continue;
		int64_t half = begin + (end - begin) / 2;

		v->kernel->run(v->buf, &env, half, end);
		if (half > begin)
			v->kernel->run(v->buf, &env, begin, half);
	}
	*(volatile char *)extra[2].data = 1;
}

static bool trial_done(const Trial *v)
{
	return *(volatile char *)v->fence[v->nbuf + 2].data == 1;
}

static void child_main(const Trial *v)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM};
	struct rlimit none = {0, 0};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	for (int i = 0; i < COUNT(signals); i++)
		signal(signals[i], SIG_DFL);
	signal(SIGINT, SIG_IGN);
	for (int i = 0; i < v->task->sub.ninput; i++)
		mprotect(v->fence[i].map + page, v->fence[i].inner, PROT_READ);
	trial_run(v);
	_exit(0);
}

/* Of the processor's time that the child has had. */
static double child_seconds(pid_t pid)
{
	clockid_t clock;
	struct timespec t;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The limit is one of the child's own time, and of so many times that for waiting, in which only
 * naps count: neither a loaded machine nor a process that was stopped makes a kernel a wrong one.
 */
static int child_wait(const Trial *v, pid_t pid, double limit, Error *err)
{
	double waited = 0;
	struct timespec nap = {0, 100000};
	int status = 0;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && child_seconds(pid) < limit &&
	       waited < PATIENCE * limit) {
		nanosleep(&nap, NULL);
		waited += 1e-9 * (double)nap.tv_nsec;
		if (nap.tv_nsec < 2000000)
			nap.tv_nsec *= 2;
	}
	if (got == 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		return error_set(err, RICCI_ECOMPILE,
				 "a kernel has not finished after %.1f seconds", limit);
	}
	if (trial_done(v))
		return 0;
	if (got == pid && WIFSIGNALED(status))
		return error_set(
			err, RICCI_ECOMPILE,
			WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS
				? "a kernel reads or writes outside its tensors (signal %d)"
				: "a kernel crashes (signal %d)",
			WTERMSIG(status));
	return error_set(err, RICCI_ECOMPILE, "a kernel ends its process");
}

/* ---- looking at the whole output ---- */
static bool poisoned(const Fence *f, size_t i)
{
	size_t n = type_size(f->type);
	const unsigned char *s = (const unsigned char *)f->data + i * n;
	int poison = type_is_float(f->type) ? POISON_FLOAT : POISON_INT;

	for (size_t k = 0; k < n; k++)
		if (s[k] != poison)
			return false;
	return true;
}

static int judge_written(const Trial *v, Error *err)
{
	for (int i = v->nbuf; i < v->nbuf + 2; i++)
		if (!fence_whole(&v->fence[i]))
			return error_set(err, RICCI_ECOMPILE,
					 "a kernel writes outside its scratch memory");
	for (int i = 0; i < v->nbuf; i++) {
		const Fence *f = &v->fence[i];
		size_t n = f->bytes / type_size(f->type);

		if (!fence_whole(f))
			return error_set(err, RICCI_ECOMPILE,
					 "a kernel writes outside its tensors, near buffer %d", i);
		if (!f->output || type_size(f->type) < 4)
			continue;
		for (size_t e = 0; e < n; e++)
			if (poisoned(f, e))
				return error_set(err, RICCI_ECOMPILE,
						 "a kernel never writes element %zu of result %d",
						 e, i - v->task->sub.ninput);
	}
	return 0;
}

/* All elements against those of an admitted kernel. A few may differ where an expression jumps, and
 * those that are not compared. */
static int judge_reference(const Trial *v, const Kernel *reference, Error *err)
{
	const Task *t = v->task;
	void **buf = mem_zalloc(((size_t)v->nbuf + 1) * sizeof *buf);
	KernelEnv env = {
		7,	   3,	buffer_new(reference->scratch), buffer_new(reference->shared),
		reference, NULL};
	bool good = buf && env.scratch && env.shared;
	int code = 0;

	for (int i = 0; i < v->nbuf && good; i++)
		buf[i] = i < t->sub.ninput ? v->buf[i] : buffer_new(v->fence[i].bytes);
	for (int i = 0; i < v->nbuf && good; i++)
		good = buf[i] != NULL;
	if (good)
		reference->run(buf, &env, 0, reference->parts);
	else
		code = error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	for (int i = t->sub.ninput, m = 0; i < v->nbuf && !code; i++, m++) {
		const Fence *f = &v->fence[i];
		size_t n = f->bytes / type_size(f->type), bad = 0;
		double bound = 0, lost = 0;

		while (!t->sub.stored[m])
			m++;
		for (int e = 0; e < v->sample.count[m]; e++)
			if (isinf(v->sample.bound[m][e]))
				lost += (double)n / v->sample.count[m];
			else
				bound = fmax(bound, v->sample.bound[m][e]);
		for (size_t e = 0; e < n && v->sample.count[m]; e++) {
			double a = type_load(f->type, f->data, e),
			       b = type_load(f->type, buf[i], e);

			bad += !(fabs(a - b) <= 8 * bound + 1e-4 * fabs(b) ||
				 (isnan(a) && isnan(b)) || a == b);
		}
		if ((double)bad > (double)n / 500 + 2 * lost)
			code = error_set(err, RICCI_ECOMPILE,
					 "a kernel differs from the one it would replace in %zu of "
					 "%zu elements of result %d",
					 bad, n, i - t->sub.ninput);
	}
	for (int i = t->sub.ninput; buf && i < v->nbuf; i++)
		buffer_free(buf[i]);
	mem_free(buf);
	buffer_free(env.scratch);
	buffer_free(env.shared);
	return code;
}

static int trial_judge(Trial *v, const Kernel *reference, Error *err)
{
	static const RandomState rs = {7, 3};
	int code = judge_written(v, err);
	Error first = {0};

	if (!code && sample_judge(v->task, &v->sample, v->buf + v->task->sub.ninput, &first)) {
		code = sample_widen(v->task, v->buf, rs, &v->sample, err);
		if (!code)
			code = sample_judge(v->task, &v->sample, v->buf + v->task->sub.ninput, err);
	}
	if (!code && reference && v->sample.n)
		code = judge_reference(v, reference, err);
	return code;
}

/* Draws inputs for which most of the sampled results are numbers that can be compared. */
static int trial_draw(Trial *v, Error *err)
{
	static const double low[] = {-1, 0.25};
	int code = 0;

	for (int i = 0; i < COUNT(low) && !code; i++) {
		int numbers = 0, all = 0;

		sample_free(&v->sample);
		code = task_draw(v->task, 1, low[i], v->buf, err);
		if (!code)
			code = sample_expect(v->task, v->buf, (RandomState){7, 3}, sample_points,
					     limit_points, SAMPLE_MOST, &v->sample, err);
		for (int m = 0; m < v->task->sub.nmember && !code; m++)
			for (int e = 0; e < v->sample.count[m]; e++, all++)
				numbers += isfinite(v->sample.value[m][e]) &&
					   isfinite(v->sample.bound[m][e]);
		if (2 * numbers >= all)
			break;
	}
	return code;
}

int verify_within(const Task *t, const Kernel *k, const Kernel *reference, bool isolated,
		  double limit, Error *err)
{
	Trial v;
	int code = trial_init(&v, t, k, err);
	pid_t pid;

	if (!code)
		code = trial_draw(&v, err);
	if (!code && isolated) {
		pid = fork();
		if (pid == 0)
			child_main(&v);
		code = pid < 0 ? error_set(err, RICCI_EUNSUPPORTED,
					   "no process for a kernel's verification: %s",
					   strerror(errno))
			       : child_wait(&v, pid, limit, err);
	} else if (!code) {
		trial_run(&v);
	}
	if (!code)
		code = trial_judge(&v, reference, err);
	trial_free(&v);
	return code;
}

int verify_kernel(const Task *t, const Kernel *k, bool isolated, Error *err)
{
	return verify_within(t, k, NULL, isolated, 10, err);
}
