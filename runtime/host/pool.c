/* pool.c - threads that run the parts of a kernel.
 *
 * A kernel has one or two phases (Kernel.first), launched one after the other with the same memory.
 * A launch splits the parts evenly in contiguous ranges, one for each thread, the same every time;
 * a thread takes its range in a few pieces, and then pieces that others have not begun, because
 * another process (a compiler, say) may hold their processor. Parts are independent, so who runs
 * them changes no result. The caller takes part, and waits only for threads that are inside the
 * launch: `open` lets them in, `active` counts them, and the job's fields are written only while
 * both are zero. Workers spin shortly for the next launch and then sleep.
 */
#define _GNU_SOURCE
#include "runtime/host/host.h"
#include <sched.h>

enum { SPINS = 1500, MAX_THREADS = 256, PIECES = 8, COPIES_KEPT = 2000 };

typedef struct Worker {
	Pool *pool;
	int index;
	pthread_t thread;
	bool started;
	void *scratch;
	size_t room;
	Error err;
	_Alignas(64) atomic_llong next; /* of its range */
	int64_t end, piece;
} Worker;

struct Pool {
	int n;
	bool apart;	/* each thread has a processor of its own */
	cpu_set_t all;	/* where the caller may run else */
	int cpu;	/* the caller's */
	Worker *worker; /* worker[0] is the caller */
	pthread_mutex_t use, lock;
	pthread_cond_t wake, done;
	atomic_uint generation;
	atomic_int active, sleepers, waiting;
	atomic_bool open, quit;
	const Kernel *kernel;
	void *const *buf;
	RandomState rs;
	void *shared; /* all workers' */
	size_t shared_room;
	int copies; /* held a larger batch's (fewer.c) until so many launches from now; 0: it did not */
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Its range of the parts from..from+n-1. */
static void worker_range(Worker *w, int threads, int64_t from, int64_t n)
{
	int64_t k = w->index, rest = n % threads;
	int64_t begin = n / threads * k + (rest < k ? rest : k), size = n / threads + (k < rest);

	atomic_store_explicit(&w->next, from + begin, memory_order_relaxed);
	w->end = from + begin + size;
	w->piece = (size + PIECES - 1) / PIECES;
}

/* Runs pieces of owner's range until there are none. */
static void worker_take(Worker *w, Worker *owner, const KernelEnv *env)
{
	Pool *p = w->pool;

	while (atomic_load_explicit(&owner->next, memory_order_relaxed) < owner->end) {
		int64_t begin = atomic_fetch_add(&owner->next, owner->piece);
		int64_t end = begin + owner->piece < owner->end ? begin + owner->piece : owner->end;

		if (begin < end)
			kernel_run(p->kernel, p->buf, env, begin, end);
	}
}

static void worker_work(Worker *w, int threads)
{
	Pool *p = w->pool;
	KernelEnv env = {p->rs.seed, p->rs.step, w->scratch, p->shared, p->kernel, &w->err};

	for (int i = 0; i < threads; i++)
		worker_take(w, &p->worker[(w->index + i) % threads], &env);
}

/* Waits for a generation other than `seen`. */
static unsigned worker_wait(Pool *p, unsigned seen)
{
	for (int i = 0; i < SPINS; i++) {
		unsigned now = atomic_load(&p->generation);

		if (now != seen)
			return now;
		relax();
	}
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add(&p->sleepers, 1);
	while (atomic_load(&p->generation) == seen)
		pthread_cond_wait(&p->wake, &p->lock);
	atomic_fetch_sub(&p->sleepers, 1);
	pthread_mutex_unlock(&p->lock);
	return atomic_load(&p->generation);
}

/* Puts the calling thread on the processor that is `skip` behind the caller's of `all`. */
static void pin(const Pool *p, int skip)
{
	int cpu = p->cpu;
	cpu_set_t own;

	for (skip %= CPU_COUNT(&p->all); skip > 0; skip -= CPU_ISSET(cpu, &p->all) != 0)
		cpu = (cpu + 1) % CPU_SETSIZE;
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	sched_setaffinity(0, sizeof own, &own);
}

static void *worker_main(void *arg)
{
	Worker *w = arg;
	Pool *p = w->pool;
	unsigned seen = 0;

	if (p->apart)
		pin(p, w->index);
	for (;;) {
		seen = worker_wait(p, seen);
		if (atomic_load(&p->quit))
			return NULL;
		atomic_fetch_add(&p->active, 1);
		if (atomic_load(&p->open))
			worker_work(w, p->n);
		if (atomic_fetch_sub(&p->active, 1) == 1 && atomic_load(&p->waiting)) {
			pthread_mutex_lock(&p->lock);
			pthread_cond_signal(&p->done);
			pthread_mutex_unlock(&p->lock);
		}
	}
}

static void pool_publish(Pool *p)
{
	atomic_fetch_add(&p->generation, 1);
	if (atomic_load(&p->sleepers) > 0) {
		pthread_mutex_lock(&p->lock);
		pthread_cond_broadcast(&p->wake);
		pthread_mutex_unlock(&p->lock);
	}
}

static void pool_join(Pool *p)
{
	for (int i = 0; i < 4 * SPINS; i++) {
		if (atomic_load(&p->active) == 0)
			return;
		relax();
	}
	pthread_mutex_lock(&p->lock);
	atomic_store(&p->waiting, 1);
	while (atomic_load(&p->active) != 0)
		pthread_cond_wait(&p->done, &p->lock);
	atomic_store(&p->waiting, 0);
	pthread_mutex_unlock(&p->lock);
}

void threads_work(int threads, void *(*work)(void *), void *arg)
{
	pthread_t helper[16];
	int n = 0;

	while (n < threads - 1 && n < COUNT(helper) && !thread_start(&helper[n], work, arg))
		n++;
	work(arg);
	while (n > 0)
		pthread_join(helper[--n], NULL);
}

static int host_threads(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) == 0)
		return CPU_COUNT(&set);
	return 1;
}

static Pool *pool_make(int threads, bool apart, Error *err)
{
	Pool *p = mem_zalloc(sizeof *p);

	if (threads <= 0)
		threads = (int)env_long("RICCI_THREADS", 0);
	if (threads <= 0)
		threads = host_threads();
	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	if (!p || !(p->worker = buffer_new((size_t)threads * sizeof *p->worker))) {
		mem_free(p);
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&p->use, NULL);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	pthread_cond_init(&p->done, NULL);
	p->n = threads;
	p->cpu = sched_getcpu();
	p->apart = apart && p->cpu >= 0 && !sched_getaffinity(0, sizeof p->all, &p->all) &&
		   CPU_ISSET(p->cpu, &p->all);
	if (p->apart)
		pin(p, 0);
	for (int i = 0; i < threads; i++) {
		Worker *w = &p->worker[i];

		w->pool = p;
		w->index = i;
		if (i == 0)
			continue;
		if (thread_start(&w->thread, worker_main, w)) {
			p->n = i; /* where no more can start, these do the work */
			break;
		}
		w->started = true;
	}
	return p;
}

Pool *pool_new(int threads, Error *err)
{
	return pool_make(threads, false, err);
}

Pool *pool_new_apart(int threads, Error *err)
{
	return pool_make(threads, true, err);
}

void pool_free(Pool *p)
{
	if (!p)
		return;
	if (p->apart)
		sched_setaffinity(0, sizeof p->all, &p->all);
	atomic_store(&p->quit, true);
	pool_publish(p);
	for (int i = 0; i < p->n; i++) {
		if (p->worker[i].started)
			pthread_join(p->worker[i].thread, NULL);
		buffer_free(p->worker[i].scratch);
	}
	pthread_mutex_destroy(&p->use);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->wake);
	pthread_cond_destroy(&p->done);
	buffer_free(p->worker);
	buffer_free(p->shared);
	mem_free(p);
}

int pool_spare(const Pool *p)
{
	return host_threads() > p->n ? host_threads() - p->n : 0;
}

int pool_threads(const Pool *p)
{
	return p->n;
}

static int reserve(void **memory, size_t *room, size_t bytes, Error *err)
{
	if (*room >= bytes)
		return 0;
	buffer_free(*memory);
	*memory = buffer_new(bytes);
	*room = *memory ? bytes : 0;
	return *memory ? 0 : error_set(err, RICCI_ENOMEM, "out of memory for a kernel's scratch");
}

/* Copies for a larger batch may need more than all else; soon no kernel makes them any more. */
static int reserve_shared(Pool *p, const Kernel *k, Error *err)
{
	if (k->fewer)
		p->copies = COPIES_KEPT;
	else if (p->copies && --p->copies == 0) {
		buffer_free(p->shared);
		p->shared = NULL;
		p->shared_room = 0;
	}
	return reserve(&p->shared, &p->shared_room, k->shape.shared, err);
}

/* The first worker's error, where a kernel set one. */
static int pool_error(Pool *p, int threads, Error *err)
{
	for (int i = 0; i < threads; i++)
		if (p->worker[i].err.code) {
			int code =
				error_set(err, p->worker[i].err.code, "%s", p->worker[i].err.text);

			for (; i < threads; i++)
				error_clear(&p->worker[i].err);
			return code;
		}
	return 0;
}

static void pool_phase(Pool *p, int threads, int64_t begin, int64_t end)
{
	for (int i = 0; i < threads; i++)
		worker_range(&p->worker[i], threads, begin, end - begin);
	if (threads > 1) {
		atomic_store(&p->open, true);
		pool_publish(p);
	}
	worker_work(&p->worker[0], threads);
	if (threads > 1) {
		atomic_store(&p->open, false);
		pool_join(p);
	}
}

int pool_launch(Pool *p, const Kernel *k, void *const *buf, const RandomState *rs, bool wide,
		Error *err)
{
	int threads = wide && k->shape.parts > 1 ? p->n : 1, code = 0;
	int64_t begin, end;

	pthread_mutex_lock(&p->use);
	code = reserve_shared(p, k, err);
	for (int i = 0; i < threads && !code; i++)
		code = reserve(&p->worker[i].scratch, &p->worker[i].room, k->shape.scratch, err);
	if (!code) {
		p->kernel = k;
		p->buf = buf;
		p->rs = *rs;
		for (int phase = 0; kernel_phase(k, phase, &begin, &end); phase++)
			pool_phase(p, threads, begin, end);
		code = pool_error(p, threads, err);
	}
	pthread_mutex_unlock(&p->use);
	return code;
}

int pool_run(Pool *p, const Kernel *k, void *const *buf, uint64_t seed, uint64_t step, Error *err)
{
	return pool_launch(p, k, buf, &(RandomState){seed, step}, true, err);
}
