/* trial.c - runs a kernel on memory of its own, where nothing that it does wrong can hurt.
 *
 * Each buffer ends at a page that can't be touched (as close as its alignment lets it), begins
 * after another, and has a pattern in what is left between; inputs can't be written. Results are
 * poisoned, each run with other bits: an element that has kept all of them was never written, while
 * one run's poison may well be a number, or a NaN that some instruction makes. Isolated, the kernel
 * runs in forked children, which do nothing else: a crash or an endless loop ends the child only.
 * Two children share the results, so that parts run at the same time without a thread, which a
 * forked child may not start. What calls a vendor library runs twice: in the children, where the
 * library's products only touch their operands (it may have held a lock when they were forked), and
 * then here, where nothing but the library itself can fail.
 */
#define _GNU_SOURCE
#include "runtime/trial.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANARY = 0xa7, PATIENCE = 5, PIECES = 8 };
/* The byte of run 1, 2, ..: as floats a NaN, a negative number, a positive one. */
static uint8_t run_poison(uint32_t run)
{
	static const uint8_t byte[] = {0xff, 0xa5, 0x5b};

	return byte[(run - 1) % COUNT(byte)];
}

/* ---- memory ---- */
static bool fence_new(Fence *f, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	f->bytes = bytes;
	f->inner = (align_up(bytes) + page - 1) / page * page + page;
	f->mapped = f->inner + 2 * page;
	f->map =
		mmap(NULL, f->mapped, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
	mem_free(f->left);
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

static size_t fence_bytes(const Trial *v, int i)
{
	return i < v->nbuf		      ? tensor_bytes(task_tensor(v->task, i))
	       : i == v->nbuf		      ? v->kernel->shared
	       : i <= v->nbuf + TRIAL_WORKERS ? v->kernel->scratch
					      : sizeof(TrialState);
}

int trial_new(Trial *v, const Task *t, const Kernel *k, bool isolated, Error *err)
{
	int n = task_nbuf(t), nfence = n + TRIAL_WORKERS + 2;

	/* The driver of a device does not survive a fork. */
	*v = (Trial){.task = t,
		     .kernel = k,
		     .nbuf = n,
		     .workers = k->parts > 1 ? TRIAL_WORKERS : 1,
		     .isolated = isolated && !backend_grid(k->backend)};
	v->fence = mem_zalloc((size_t)nfence * sizeof *v->fence);
	v->buf = mem_zalloc(((size_t)n + 1) * sizeof *v->buf);
	if (!v->fence || !v->buf)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	v->nfence = nfence;
	for (int i = 0; i < nfence; i++) {
		Fence *f = &v->fence[i];

		if (!fence_new(f, fence_bytes(v, i)))
			return error_set(err, RICCI_ENOMEM,
					 "out of memory for a kernel's verification");
		if (i >= n)
			continue;
		v->buf[i] = f->data;
		f->type = (Type)task_tensor(t, i)->type;
		f->output = i >= t->sub.ninput;
	}
	v->state = (TrialState *)v->fence[nfence - 1].data;
	return 0;
}

/* The results, the shared memory and the scratch, before a run. */
static void trial_poison(Trial *v)
{
	for (int i = 0; i < v->nfence - 1; i++)
		if (i >= v->nbuf || v->fence[i].output)
			memset(v->fence[i].data, run_poison(v->runs), v->fence[i].bytes);
}

/* ---- a worker's part of a run ---- */
static void state_wait(_Atomic uint32_t *at, uint32_t value, const struct timespec *most)
{
	syscall(SYS_futex, at, FUTEX_WAIT, value, most, NULL, 0);
}

static void state_wake(_Atomic uint32_t *at)
{
	syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* What a kernel has not set on its stack is no zero. */
static __attribute__((noinline)) void stack_poison(uint8_t byte)
{
	uint8_t room[1 << 15];

	memset(room, byte, sizeof room);
	__asm__ volatile("" ::"r"(room) : "memory");
}

static void kernel_poisoned(const Trial *v, const KernelEnv *env, int64_t begin, int64_t end)
{
	stack_poison(run_poison(atomic_load(&v->state->run) % 3 + 1));
	v->kernel->run(v->buf, env, begin, end);
}

static void phase_run(const Trial *v, const KernelEnv *env, int64_t begin, int64_t end)
{
	int64_t piece = (end - begin + PIECES - 1) / PIECES;

	for (int64_t i = begin; i < end; i += piece)
		kernel_poisoned(v, env, i, i + piece < end ? i + piece : end);
}

/* Waits for the other children: at a run's beginning, and between its phases. */
static void children_meet(const Trial *v, uint32_t run, int phase)
{
	uint32_t meetings = v->kernel->first ? 2 : 1, met;
	uint32_t all = (uint32_t)v->workers * (meetings * (run - 1) + (uint32_t)phase + 1);

	if (!v->isolated)
		return;
	atomic_fetch_add(&v->state->met, 1);
	state_wake(&v->state->met);
	while ((met = atomic_load(&v->state->met)) < all)
		state_wait(&v->state->met, met, NULL);
}

/* Worker w of n. */
static void worker_run(const Trial *v, int w, int n, uint32_t run, TrialOrder order)
{
	KernelEnv env = {7,	    3,	 v->fence[v->nbuf + 1 + w].data, v->fence[v->nbuf].data,
			 v->kernel, NULL};

	for (int phase = 0; phase < 2; phase++) {
		int64_t begin, end, half;

		if (!kernel_phase(v->kernel, phase, &begin, &end))
			continue;
		half = begin + (end - begin) / 2;
		children_meet(v, run, phase);
		if (n > 1 && order == TRIAL_TOGETHER) {
			phase_run(v, &env, w ? half : begin, w ? end : half);
		} else if (w == 0) {
			kernel_poisoned(v, &env, half, end);
			if (half > begin)
				kernel_poisoned(v, &env, begin, half);
		}
	}
}

static void child_main(const Trial *v, int w)
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
	library_rehearse();
	for (uint32_t run = 1;; run++) {
		while (atomic_load(&v->state->run) != run)
			state_wait(&v->state->run, run - 1, NULL);
		worker_run(v, w, v->workers, run, atomic_load(&v->state->order));
		atomic_fetch_add(&v->state->done, 1);
		state_wake(&v->state->done);
	}
}

/* ---- the children, from outside ---- */
static int children_start(Trial *v, Error *err)
{
	for (int w = 0; w < v->workers; w++) {
		v->child[w] = fork_bare();
		if (v->child[w] == 0)
			child_main(v, w);
		if (v->child[w] < 0) {
			v->child[w] = 0;
			return error_set(err, RICCI_EUNSUPPORTED,
					 "no process for a kernel's verification: %s",
					 strerror(errno));
		}
	}
	return 0;
}

static void child_end(Trial *v, int w)
{
	int status;

	if (!v->child[w])
		return;
	kill(v->child[w], SIGKILL);
	while (waitpid(v->child[w], &status, 0) < 0 && errno == EINTR)
		;
	v->child[w] = 0;
}

void trial_free(Trial *v)
{
	for (int w = 0; w < TRIAL_WORKERS; w++)
		child_end(v, w);
	for (int i = 0; i < v->nfence; i++)
		fence_free(&v->fence[i]);
	mem_free(v->fence);
	mem_free(v->buf);
}

/* Of the processor's time that the children have had, the busier one. */
static double children_seconds(const Trial *v)
{
	double most = 0;

	for (int w = 0; w < TRIAL_WORKERS; w++) {
		clockid_t clock;
		struct timespec t;

		if (!v->child[w] || clock_getcpuclockid(v->child[w], &clock) ||
		    clock_gettime(clock, &t))
			continue;
		double s = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;

		most = s > most ? s : most;
	}
	return most;
}

/* Has a child ended? It should not, before it is told to. */
static int children_look(Trial *v, Error *err)
{
	for (int w = 0; w < TRIAL_WORKERS; w++) {
		int status, signal;

		if (!v->child[w] || waitpid(v->child[w], &status, WNOHANG) != v->child[w])
			continue;
		v->child[w] = 0;
		signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		if (!signal)
			return error_set(err, RICCI_ECOMPILE, "a kernel ends its process");
		return error_set(
			err, RICCI_ECOMPILE,
			signal == SIGSEGV || signal == SIGBUS
				? "a kernel reads or writes outside its tensors (signal %d)"
				: "a kernel crashes (signal %d)",
			signal);
	}
	return 0;
}

/* The limit is one of a child's own time, and of so many times that for waiting, in which only naps
 * count: neither a loaded machine nor a process that was stopped makes a kernel a wrong one.
 */
static int children_wait(Trial *v, double limit, Error *err)
{
	double waited = 0, before = children_seconds(v);
	struct timespec nap = {0, 1000000};
	uint32_t all = v->runs * (uint32_t)v->workers, done;
	int code = 0;

	while ((done = atomic_load(&v->state->done)) < all && !code) {
		code = children_look(v, err);
		if (!code && (children_seconds(v) - before >= limit || waited >= PATIENCE * limit))
			code = error_set(err, RICCI_ECOMPILE,
					 "a kernel has not finished after %.1f seconds", limit);
		if (!code)
			state_wait(&v->state->done, done, &nap);
		waited += 1e-9 * (double)nap.tv_nsec;
	}
	return code;
}

/* ---- runs ---- */
/* Does any element of f have all bits of the poison? */
static bool fence_poisoned(const Fence *f, size_t size, size_t n, uint8_t poison)
{
	const uint8_t *s = (const uint8_t *)f->data;
	uint32_t word, found = 0;

	memset(&word, poison, sizeof word);
	if (size % sizeof word)
		return true;
	for (size_t e = 0; e < n && !found; e += 1024) /* without a branch for each */
		for (size_t i = e; i < e + 1024 && i < n; i++)
			found |= *(const uint32_t *)(s + i * size) == word;
	return found;
}

/* Marks the elements of f that have kept the poison of all runs so far. */
static int fence_look(Fence *f, uint32_t run, Error *err)
{
	size_t size = type_size(f->type), n = f->bytes / size;

	/* A byte holds every poison now and then, unless it is a truth value. */
	if (!f->output || (size < 2 && f->type != RICCI_BOOL) || (run > 1 && !f->left))
		return 0;
	if (run == 1 && !fence_poisoned(f, size, n, run_poison(run)))
		return 0;
	for (size_t e = 0, k; e < n; e++) {
		const uint8_t *s = (const uint8_t *)f->data + e * size;

		for (k = 0; k < size && s[k] == run_poison(run); k++)
			;
		if (k == size && run == 1 && !f->left && !(f->left = mem_zalloc(n)))
			return error_set(err, RICCI_ENOMEM,
					 "out of memory for a kernel's verification");
		if (f->left)
			f->left[e] = k == size && (run == 1 || f->left[e]);
	}
	return 0;
}

typedef struct Here {
	const Trial *v;
	TrialOrder order;
} Here;

static void *here_main(void *arg)
{
	Here *h = arg;

	worker_run(h->v, 1, h->v->workers, h->v->runs, h->order);
	return NULL;
}

/* In this process: the second worker is a thread, where there is one. */
static void trial_here(Trial *v, TrialOrder order)
{
	Here h = {v, order};
	pthread_t second;
	bool two = order == TRIAL_TOGETHER && v->kernel->parts > 1 && !v->kernel->first &&
		   !backend_grid(v->kernel->backend) && thread_start(&second, here_main, &h) == 0;

	worker_run(v, 0, two ? v->workers : 1, v->runs, order);
	if (two)
		pthread_join(second, NULL);
}

int trial_run(Trial *v, TrialOrder order, double limit, Error *err)
{
	int code = 0;

	v->runs++;
	trial_poison(v);
	if (v->isolated) {
		if (v->runs == 1)
			code = children_start(v, err);
		atomic_store(&v->state->order, order);
		atomic_store(&v->state->run, v->runs);
		state_wake(&v->state->run);
		if (!code)
			code = children_wait(v, limit, err);
	}
	if (!code && (!v->isolated || schedule_library(&v->kernel->schedule))) {
		trial_poison(v);
		trial_here(v, order);
	}
	for (int i = 0; i < v->nbuf && !code; i++)
		code = fence_look(&v->fence[i], v->runs, err);
	return code;
}

int trial_fences(const Trial *v, Error *err)
{
	for (int i = v->nbuf; i < v->nfence - 1; i++)
		if (!fence_whole(&v->fence[i]))
			return error_set(err, RICCI_ECOMPILE,
					 "a kernel writes outside its scratch memory");
	for (int i = 0; i < v->nbuf; i++)
		if (!fence_whole(&v->fence[i]))
			return error_set(err, RICCI_ECOMPILE,
					 "a kernel writes outside its tensors, near buffer %d", i);
	return 0;
}

int trial_written(const Trial *v, Error *err)
{
	for (int i = 0; i < v->nbuf; i++) {
		const Fence *f = &v->fence[i];
		size_t n = f->bytes / type_size(f->type);

		for (size_t e = 0; f->left && e < n; e++)
			if (f->left[e])
				return error_set(err, RICCI_ECOMPILE,
						 "a kernel never writes element %zu of result %d",
						 e, i - v->task->sub.ninput);
	}
	return 0;
}
