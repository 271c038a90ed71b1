/* front.c - what threads that stand back let a thread of the user's priority do for them.
 *
 * A thread that stands back runs where no other thread of the machine would (SCHED_IDLE): between
 * two of its instructions seconds may pass. A fork or a mapping holds the lock of the process's
 * memory, for which every thread waits that touches a new page, or one that a child shares: training
 * would wait for those seconds. So the calls that take it are made by another thread, its front.
 * Input: calls, one at a time. Invariant: a thread without a front makes its calls itself.
 */
#define _GNU_SOURCE
#include "core/base/base.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local Front *front;
static _Thread_local bool back;

static void wait_for(sem_t *s)
{
	while (sem_wait(s) && errno == EINTR)
		;
}

static void *front_main(void *arg)
{
	Front *f = arg;

	for (;;) {
		wait_for(&f->asked);
		if (f->quit)
			return NULL;
		f->call(f->arg);
		f->error = errno;
		sem_post(&f->done);
	}
}

int thread_start(pthread_t *t, void *(*main)(void *), void *arg)
{
	sigset_t all, old;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(t, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return code;
}

bool front_start(Front *f)
{
	*f = (Front){0};
	sem_init(&f->free, 0, 1);
	sem_init(&f->asked, 0, 0);
	sem_init(&f->done, 0, 0);
	return thread_start(&f->thread, front_main, f) == 0;
}

void front_end(Front *f)
{
	f->quit = true;
	sem_post(&f->asked);
	pthread_join(f->thread, NULL);
	sem_destroy(&f->free);
	sem_destroy(&f->asked);
	sem_destroy(&f->done);
}

void thread_stand_back(Front *f)
{
	const struct sched_param none = {0};
	pid_t self = (pid_t)syscall(SYS_gettid);

	front = f;
	back = true;
	if (sched_setscheduler(self, SCHED_IDLE, &none))
		setpriority(PRIO_PROCESS, (id_t)self, 10);
}

bool thread_stands_back(void)
{
	return back;
}

void front_call(void (*call)(void *arg), void *arg)
{
	Front *f = front;

	if (!f) {
		call(arg);
		return;
	}
	wait_for(&f->free);
	f->call = call;
	f->arg = arg;
	sem_post(&f->asked);
	wait_for(&f->done);
	int error = f->error;
	sem_post(&f->free);
	errno = error;
}

/* ---- memory ---- */
typedef struct Mapping {
	void *at;
	size_t n;
	int protect, flags, code;
} Mapping;

static void call_map(void *arg)
{
	Mapping *m = arg;

	m->at = mmap(NULL, m->n, m->protect, m->flags | MAP_ANONYMOUS, -1, 0);
	if (m->at == MAP_FAILED)
		m->at = NULL;
}

static void call_protect(void *arg)
{
	Mapping *m = arg;

	m->code = mprotect(m->at, m->n, m->protect);
}

static void call_unmap(void *arg)
{
	Mapping *m = arg;

	m->code = munmap(m->at, m->n);
}

void *pages_map(size_t n, int protect, int flags)
{
	Mapping m = {NULL, n, protect, flags, 0};

	front_call(call_map, &m);
	return m.at;
}

int pages_protect(void *at, size_t n, int protect)
{
	Mapping m = {at, n, protect, 0, 0};

	front_call(call_protect, &m);
	return m.code;
}

int pages_unmap(void *at, size_t n)
{
	Mapping m = {at, n, 0, 0, 0};

	front_call(call_unmap, &m);
	return m.code;
}
