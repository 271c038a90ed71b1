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
#include "runtime/verify/trial.h"
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

enum { PATIENCE = 5, PIECES = 8 };
/* Parts that run one by one are called so often at most, and find as many new stacks. */
enum { CALLS = 16384, STACKS = 64 };
/* Parts that run one by one find these bytes in all memory that is no result's. */
enum { ALONE = 0x3c };
/* The byte of run 1, 2, ..: as floats a NaN, a negative number, a positive one. */
static uint8_t run_poison(uint32_t run)
{
	static const uint8_t byte[] = {0xff, 0xa5, 0x5b};

	return byte[(run - 1) % COUNT(byte)];
}

/* ---- memory ---- */
size_t trial_room = (size_t)256 << 20;

bool trial_large(const Task *t)
{
	size_t bytes = 0;

	for (int i = 0; i < task_nbuf(t); i++)
		bytes += tensor_bytes(task_tensor(t, i));
	return bytes > trial_room;
}

static size_t fence_bytes(const Trial *v, int i)
{
	bool grid = backend_grid(v->kernel->backend); /* whose shared memory is the device's */

	return i == v->nbuf		      ? (grid ? 0 : v->kernel->shape.shared)
	       : i <= v->nbuf + TRIAL_WORKERS ? v->kernel->shape.scratch
					      : sizeof(TrialState);
}

/* Is member m read by a later one where rows that have no memory of their own would matter? */
static bool member_needed(const Task *t, int m)
{
	const Subgraph *s = &t->sub;
	bool needed = false;

	for (int k = m + 1; k < s->nmember; k++)
		needed = needed || s->fold[k] || !type_is_float(s->member[m]->type);
	return needed;
}

/* Of large tensors only a part has memory of its own: of a result what the sample looks at. */
static bool fence_part(Fence *f, const Task *t, int i, const Sample *s, const Places *of_input)
{
	Type type = (Type)task_tensor(t, i)->type;
	size_t bytes = tensor_bytes(task_tensor(t, i));
	int m = task_member(t, i), n = m >= 0 ? s->count[m] : of_input ? of_input[i].n : 0;
	const int64_t *at = m >= 0 ? s->at[m] : of_input ? of_input[i].at : NULL;
	Window *w = mem_alloc(((size_t)n + 1) * sizeof *w);
	bool good = w != NULL;

	for (int k = 0; k < n && good; k++)
		w[k] = at[k] < 0 ? (Window){0, 1} : (Window){at[k], at[k] + 1};
	good = good && fence_new_windows(f, bytes, type, trial_room / 16, n, w);
	mem_free(w);
	return good;
}

static bool buffer_fence(Trial *v, int i, const Sample *s, const Places *of_input)
{
	const Task *t = v->task;
	Fence *f = &v->fence[i];
	int m = task_member(t, i);
	bool part = s && trial_large(t) && tensor_bytes(task_tensor(t, i)) > trial_room / 8 &&
		    (m < 0 || !member_needed(t, m));

	if (!(part ? fence_part(f, t, i, s, of_input)
		   : fence_new(f, tensor_bytes(task_tensor(t, i)), (Type)task_tensor(t, i)->type)))
		return false;
	f->output = m >= 0;
	v->buf[i] = f->data;
	return true;
}

int trial_new(Trial *v, const Task *t, const Kernel *k, bool isolated, const Sample *s,
	      const Places *of_input, Error *err)
{
	int n = task_nbuf(t), nfence = n + TRIAL_WORKERS + 2;
	bool good;

	/* The driver of a device does not survive a fork. */
	*v = (Trial){.task = t,
		     .kernel = k,
		     .nbuf = n,
		     .workers = k->shape.parts > 1 ? TRIAL_WORKERS : 1,
		     .isolated = isolated && !backend_grid(k->backend)};
	v->fence = mem_zalloc((size_t)nfence * sizeof *v->fence);
	v->buf = mem_zalloc(((size_t)n + 1) * sizeof *v->buf);
	good = v->fence && v->buf;
	if (good)
		v->nfence = nfence;
	for (int i = 0; i < nfence && good; i++)
		good = i < n ? buffer_fence(v, i, s, of_input)
			     : fence_new(&v->fence[i], fence_bytes(v, i), RICCI_BOOL);
	if (!good)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	v->state = (TrialState *)v->fence[nfence - 1].data;
	return 0;
}

int trial_draw(Trial *v, uint64_t seed, DrawKind kind, const bool *but, Error *err)
{
	int in = v->task->sub.ninput, code;
	Drawn *drawn = mem_zalloc(((size_t)in + 1) * sizeof *drawn);

	if (!drawn)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	for (int i = 0; i < in; i++) {
		const Fence *f = &v->fence[i];
		int64_t n = tensor_size(v->task->sub.input[i]);

		drawn[i] = (Drawn){but && but[i] ? 0 : n, 0, false};
		if (drawn[i].head && f->repeated &&
		    f->nwindow > 1) { /* windows between the ends stay as they are */
			drawn[i].tail = n - f->window[f->nwindow - 1].from;
			drawn[i].head =
				f->window[0].to + (int64_t)(f->repeated / type_size(f->type));
			if (drawn[i].head + drawn[i].tail > n)
				drawn[i] = (Drawn){n, 0, false};
		}
	}
	code = task_draw_part(v->task, seed, kind, v->buf, drawn, err);
	mem_free(drawn);
	return code;
}

void trial_fill(Trial *v, int i, double value)
{
	fence_fill(&v->fence[i], value);
}

/* The results, the shared memory and the scratch, before a run. */
static void trial_poison(Trial *v, TrialOrder order)
{
	for (int i = 0; i < v->nfence - 1; i++)
		if (i >= v->nbuf)
			fence_poison(&v->fence[i],
				     order == TRIAL_TOGETHER ? run_poison(v->runs) : ALONE);
		else if (v->fence[i].output)
			fence_poison(&v->fence[i], run_poison(v->runs));
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
	kernel_run(v->kernel, v->buf, env, begin, end);
}

static void phase_run(const Trial *v, const KernelEnv *env, int64_t begin, int64_t end)
{
	int64_t piece = (end - begin + PIECES - 1) / PIECES;

	for (int64_t i = begin; i < end; i += piece)
		kernel_poisoned(v, env, i, i + piece < end ? i + piece : end);
}

/* What a part that shares memory with others leaves there, in lanes that are no results too, is then
 * its own doing.
 */
static void part_alone(const Trial *v, const KernelEnv *env, int64_t begin, int64_t end)
{
	fence_poison(&v->fence[v->nbuf + 1], ALONE);
	stack_poison(ALONE);
	kernel_run(v->kernel, v->buf, env, begin, end);
}

/* Part by part. */
static void phase_run_each(const Trial *v, const KernelEnv *env, int64_t begin, int64_t end,
			   TrialOrder order)
{
	int64_t piece = (end - begin + CALLS - 1) / CALLS, n = (end - begin + piece - 1) / piece;

	for (int64_t i = 0; i < n; i++) {
		int64_t at = begin + piece * (order == TRIAL_BACKWARDS ? n - 1 - i : i);
		int64_t to = at + piece < end ? at + piece : end;

		if (v->kernel->shape.shared)
			part_alone(v, env, at, to);
		else if (n <= STACKS || i % (n / STACKS) == 0)
			kernel_poisoned(v, env, at, to);
		else
			kernel_run(v->kernel, v->buf, env, at, to);
	}
}

/* Waits for the other children: at a run's beginning, and between its phases. */
static void children_meet(const Trial *v, uint32_t run, int phase)
{
	uint32_t meetings = (uint32_t)kernel_phases(v->kernel), met;
	uint32_t all = (uint32_t)v->workers * (meetings * (run - 1) + (uint32_t)phase + 1);

	if (!v->isolated)
		return;
	atomic_fetch_add(&v->state->met, 1);
	state_wake(&v->state->met);
	while ((met = atomic_load(&v->state->met)) < all)
		state_wait(&v->state->met, met, NULL);
}

/* Worker w of n. */
static void worker_run(const Trial *v, int w, int n, uint32_t run, TrialOrder order, Error *err)
{
	KernelEnv env = {7,	    3,	v->fence[v->nbuf + 1 + w].data, v->fence[v->nbuf].data,
			 v->kernel, err};

	int64_t begin, end;

	for (int phase = 0; kernel_phase(v->kernel, phase, &begin, &end); phase++) {
		int64_t half = begin + (end - begin) / 2;

		children_meet(v, run, phase);
		if (n > 1 && order == TRIAL_TOGETHER)
			phase_run(v, &env, w ? half : begin, w ? end : half);
		else if (w == 0 && order == TRIAL_TOGETHER)
			kernel_poisoned(v, &env, begin, end);
		else if (w == 0)
			phase_run_each(v, &env, begin, end, order);
	}
}

static void child_main(const Trial *v, int w, pid_t parent)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	/* What is sent to all of a group the parent handles. */
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
	struct rlimit none = {0, 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it was killed before that */
		_exit(1);
	setrlimit(RLIMIT_CORE, &none);
	for (int i = 0; i < COUNT(signals); i++)
		signal(signals[i], SIG_DFL);
	for (int i = 0; i < COUNT(ending); i++)
		signal(ending[i], SIG_IGN);
	for (int i = 0; i < v->task->sub.ninput; i++)
		fence_seal(&v->fence[i]);
	library_rehearse();
	for (uint32_t run = 1;; run++) {
		while (atomic_load(&v->state->run) != run)
			state_wait(&v->state->run, run - 1, NULL);
		worker_run(v, w, v->workers, run, atomic_load(&v->state->order), NULL);
		atomic_fetch_add(&v->state->done, 1);
		state_wake(&v->state->done);
	}
}

/* ---- the children, from outside ---- */
typedef struct Birth {
	Trial *v;
	int w;
	pid_t parent;
	bool back; /* who asks stands back, so the child does */
} Birth;

static void call_fork(void *arg)
{
	const Birth *b = arg;

	b->v->child[b->w] = fork_bare();
	if (b->v->child[b->w])
		return;
	if (b->back)
		thread_stand_back(NULL);
	child_main(b->v, b->w, b->parent);
}

static int children_start(Trial *v, Error *err)
{
	for (int w = 0; w < v->workers; w++) {
		Birth b = {v, w, getpid(), thread_stands_back()};

		front_call(call_fork, &b);
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
	for (int i = 0; v->kept && i <= v->nbuf; i++)
		fence_free(&v->kept[i]);
	mem_free(v->kept);
	mem_free(v->fence);
	mem_free(v->buf);
}

/* Of the processor's time that the children have had, the busier one. */
static double children_seconds(const Trial *v)
{
	double most = 0;

	for (int w = 0; w < TRIAL_WORKERS; w++) {
		double s = v->child[w] ? process_seconds(v->child[w]) : 0;

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
/* Does any of elements w of f have all bits of the poison? */
static bool window_poisoned(const Fence *f, Window w, size_t size, uint8_t poison)
{
	const uint8_t *s = (const uint8_t *)f->data;
	uint32_t word, found = 0;
	size_t n = (size_t)w.to;

	memset(&word, poison, sizeof word);
	if (size % sizeof word)
		return true;
	for (size_t e = (size_t)w.from; e < n && !found; e += 1024) /* no branch for each */
		for (size_t i = e; i < e + 1024 && i < n; i++)
			found |= *(const uint32_t *)(s + i * size) == word;
	return found;
}

static bool window_look(Fence *f, Window w, size_t size, uint32_t run)
{
	if (run == 1 && !window_poisoned(f, w, size, run_poison(run)))
		return true;
	if (!f->left && !(f->left = mem_zalloc(f->bytes / size)))
		return false;
	for (size_t e = (size_t)w.from, k; e < (size_t)w.to; e++) {
		const uint8_t *s = (const uint8_t *)f->data + e * size;

		for (k = 0; k < size && s[k] == run_poison(run); k++)
			;
		f->left[e] = k == size && (run == 1 || f->left[e]);
	}
	return true;
}

/* Marks the elements of f that have kept the poison of all runs so far. */
static int fence_look(Fence *f, uint32_t run, Error *err)
{
	size_t size = type_size(f->type);

	/* A byte holds every poison now and then, unless it is a truth value. */
	if (!f->output || (size < 2 && f->type != RICCI_BOOL) || (run > 1 && !f->left))
		return 0;
	for (int w = 0; w < f->nwindow; w++)
		if (!window_look(f, f->window[w], size, run))
			return error_set(err, RICCI_ENOMEM,
					 "out of memory for a kernel's verification");
	return 0;
}

typedef struct Here {
	const Trial *v;
	TrialOrder order;
	bool back;
} Here;

static void *here_main(void *arg)
{
	Here *h = arg;

	if (h->back)
		thread_stand_back(NULL);
	worker_run(h->v, 1, h->v->workers, h->v->runs, h->order, NULL);
	return NULL;
}

/* In this process: the second worker is a thread, where there is one. An error of a device says what
 * failed: the kernel may be right. There a run can't be ended, but it is the last where it took too long. */
static int trial_here(Trial *v, TrialOrder order, double limit, Error *err)
{
	double start = clock_seconds();
	bool grid = backend_grid(v->kernel->backend);
	Error own = {0};

	Here h = {v, order, thread_stands_back()};
	pthread_t second;
	bool two = order == TRIAL_TOGETHER && v->kernel->shape.parts > 1 &&
		   kernel_phases(v->kernel) == 1 && !grid &&
		   thread_start(&second, here_main, &h) == 0;

	worker_run(v, 0, two ? v->workers : 1, v->runs, order, grid ? &own : NULL);
	if (two)
		pthread_join(second, NULL);
	if (grid && !own.code && clock_seconds() - start > limit)
		error_set(&own, RICCI_ECOMPILE, "a kernel takes more than %.1f seconds", limit);
	return own.code ? error_set(err, own.code, "%s", own.text) : 0;
}

int trial_run(Trial *v, TrialOrder order, double limit, Error *err)
{
	int code = 0;

	v->runs++;
	trial_poison(v, order);
	atomic_store(&v->state->order, order);
	if (v->isolated) {
		if (v->runs == 1)
			code = children_start(v, err);
		atomic_store(&v->state->run, v->runs);
		state_wake(&v->state->run);
		if (!code)
			code = children_wait(v, limit, err);
	}
	if (!code && (!v->isolated || schedule_library(&v->kernel->schedule))) {
		trial_poison(v, order);
		code = trial_here(v, order, limit, err);
	}
	for (int i = 0; i < v->nbuf && !code; i++)
		code = fence_look(&v->fence[i], v->runs, err);
	return code;
}

bool trial_ordered(const Trial *v)
{
	return v->workers > 1 && !backend_grid(v->kernel->backend);
}

int trial_room_kept(Trial *v, Error *err)
{
	bool good = true;

	if (v->kept)
		return 0;
	v->kept = mem_zalloc(((size_t)v->nbuf + 1) * sizeof *v->kept);
	for (int i = v->task->sub.ninput; v->kept && i <= v->nbuf && good; i++)
		good = fence_like(&v->kept[i], &v->fence[i]);
	return v->kept && good
		       ? 0
		       : error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
}

int trial_keep(Trial *v, Error *err)
{
	int code = trial_room_kept(v, err);

	for (int i = v->task->sub.ninput; i <= v->nbuf && !code; i++)
		memcpy(v->kept[i].memory, v->fence[i].memory, v->fence[i].own);
	v->kept_run = v->runs;
	v->kept_alone = atomic_load(&v->state->order) != TRIAL_TOGETHER;
	return code;
}

int trial_same(const Trial *v, Error *err)
{
	int64_t at;

	for (int i = v->task->sub.ninput; i < v->nbuf; i++)
		if (fence_differs(&v->fence[i], run_poison(v->runs), &v->kept[i],
				  run_poison(v->kept_run), &at))
			return error_set(err, RICCI_ECOMPILE,
					 "a kernel's parts write or read what others write: "
					 "element %lld of result %d depends on their order",
					 (long long)at, i - v->task->sub.ninput);
	if (v->kept_alone &&
	    fence_differs(&v->fence[v->nbuf], ALONE, &v->kept[v->nbuf], ALONE, &at))
		return error_set(err, RICCI_ECOMPILE,
				 "a kernel's parts write or read what others write: byte %lld of "
				 "what they share depends on their order",
				 (long long)at);
	return 0;
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
