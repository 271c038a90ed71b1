/* test_front.c - calls of threads that stand back are made by their front, at the user's priority. */
#define _GNU_SOURCE
#include "core/core.h"
#include "tests/check.h"
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Call {
	Front *front;
	pid_t self, caller; /* threads: who asks, who calls */
	int policy, asker, child, error;
} Call;

static void call_look(void *arg)
{
	Call *c = arg;

	c->caller = (pid_t)syscall(SYS_gettid);
	c->policy = sched_getscheduler(c->caller);
	errno = EDOM;
}

static void call_child(void *arg)
{
	Call *c = arg;
	int status = 0;
	pid_t child = fork_bare();

	if (child == 0) {
		thread_stand_back(NULL);
		front_call(call_look, c); /* by itself */
		_exit(c->caller == getpid() ? sched_getscheduler(0) : 99);
	}
	waitpid(child, &status, 0);
	c->child = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *stands_back(void *arg)
{
	Call *c = arg;

	thread_stand_back(c->front);
	c->self = (pid_t)syscall(SYS_gettid);
	c->asker = sched_getscheduler(0);
	CHECK(thread_stands_back());
	for (int i = 0; i < 1000; i++) {
		errno = 0;
		c->caller = 0;
		front_call(call_look, c);
		CHECK(c->caller && c->caller != c->self && errno == EDOM);
	}
	c->error = errno;
	front_call(call_child, c);
	char *p = pages_map(1 << 20, PROT_NONE, MAP_PRIVATE);
	CHECK(p && !pages_protect(p, 4096, PROT_READ | PROT_WRITE));
	if (p)
		p[4095] = 1;
	CHECK_INT(pages_unmap(p, 1 << 20), 0);
	errno = 0;
	CHECK(!pages_map((size_t)1 << 60, PROT_NONE, MAP_PRIVATE) && errno == ENOMEM);
	return NULL;
}

int main(void)
{
	enum { THREADS = 4 };
	Call c[THREADS] = {{0}};
	pthread_t t[THREADS];
	Front f;
	int mine = sched_getscheduler(0), n = 0;

	CHECK(front_start(&f) && !thread_stands_back());
	for (; n < THREADS; n++) {
		c[n].front = &f;
		if (thread_start(&t[n], stands_back, &c[n]))
			break;
	}
	CHECK_INT(n, THREADS);
	for (int i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
		CHECK_INT(c[i].asker, SCHED_IDLE);
		CHECK_INT(c[i].policy, mine);
		CHECK_INT(c[i].child, SCHED_IDLE);
		CHECK(c[i].caller == c[0].caller);
	}
	front_end(&f);
	/* Who does not stand back makes its calls itself. */
	front_call(call_look, &c[0]);
	CHECK(c[0].caller == (pid_t)syscall(SYS_gettid));
	CHECK_INT(mem_live(), 0);
	return check_done();
}
