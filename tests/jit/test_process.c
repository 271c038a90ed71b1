/* test_process.c - other programs, and work in a child: what they say, their status, and how they end. */
#define _GNU_SOURCE
#include "jit/backend/process.h"
#include "jit/jit.h"
#include "tests/check.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 1 << 20 }; /* more than a pipe holds, and than is kept of what a program says */

static int run(const char *script, double seconds, Text *said, Error *err)
{
	const char *const arg[] = {"sh", "-c", script, NULL};
	text_free(said);
	*said = (Text){0};
	error_clear(err);
	return process_run("/bin/sh", arg, -1, seconds, said, err);
}

static void test_run(void)
{
	Text said = {0};
	Error err = {0};
	CHECK_INT(run("echo out; echo err >&2; exit 3", 30, &said, &err), 3);
	CHECK_STR(said.s, "out\nerr\n");
	CHECK_INT(run("yes | head -c 200000", 30, &said, &err), 0);
	CHECK_INT((int)said.n, 65536);
	CHECK(run("kill -KILL $$", 30, &said, &err) < 0);
	CHECK_STR(err.text, "/bin/sh crashed (Killed)");
	CHECK(run("sleep 60", 0.2, &said, &err) < 0);
	CHECK_STR(err.text, "/bin/sh took longer than 0 seconds and was stopped");
	text_free(&said);
	error_clear(&err);
}

static int work_large(void *user, Text *out)
{
	for (int i = 0; i < LARGE; i++)
		text_put(out, user, 1);
	return 0;
}

static int work_status(void *user, Text *out)
{
	text_add(out, "status %d", *(int *)user);
	return *(int *)user;
}

static int work_crash(void *user, Text *out)
{
	(void)user, (void)out;
	return raise(SIGKILL);
}

static int work_long(void *user, Text *out)
{
	(void)user, (void)out;
	return (int)sleep(60);
}

static int work_exit(void *user, Text *out)
{
	(void)user, (void)out;
	_exit(0);
}

/* The result behind what is there, 0 or the status. */
static void test_fork(void)
{
	Text out = {0};
	Error err = {0};
	int status = 7;
	text_add(&out, "before ");
	CHECK_INT(process_fork("work", work_status, &status, 30, &out, &err), 7);
	CHECK_STR(out.s, "before status 7");
	text_free(&out);
	out = (Text){0};
	CHECK_INT(process_fork("work", work_large, "x", 30, &out, &err), 0);
	CHECK_INT((int)out.n, LARGE);
	CHECK(out.s && strspn(out.s, "x") == LARGE);
	text_free(&out);
}

/* Waits for good where it is the first, as for a lock that nobody releases. */
static int work_second(void *user, Text *out)
{
	int first = atomic_fetch_add((atomic_int *)user, 1);
	if (!first)
		pause();
	text_add(out, "%d before", first);
	return 0;
}

/* A child that waits without end is stopped and forked again, long before its time is up. */
static void test_stalled(void)
{
	Text out = {0};
	Error err = {0};
	atomic_int *started = mmap(NULL, sizeof *started, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(started != MAP_FAILED);
	CHECK_INT(process_fork("work", work_second, started, 1000, &out, &err), 0);
	CHECK_STR(out.s, "1 before");
	munmap(started, sizeof *started);
	text_free(&out);
}

static void check_end(int (*work)(void *, Text *), double seconds, const char *want)
{
	Text out = {0};
	Error err = {0};
	CHECK(process_fork("work", work, NULL, seconds, &out, &err) < 0);
	CHECK_STR(err.text, want);
	CHECK_INT((int)out.n, 0);
	text_free(&out);
	error_clear(&err);
}

static void test_ends(void)
{
	atomic_bool stop = true;
	check_end(work_crash, 30, "work crashed (Killed)");
	check_end(work_exit, 30, "work ended without a result");
	check_end(work_long, 0.2, "work took longer than 0 seconds and was stopped");
	backend_stop_when(&stop);
	check_end(work_long, 30, "work was stopped");
	backend_stop_when(NULL);
}

/* A host that lets the system reap its children: their status is lost, their result is not. */
static void test_unreaped(void)
{
	Text out = {0};
	Error err = {0};
	int status = 2;
	signal(SIGCHLD, SIG_IGN);
	CHECK_INT(process_fork("work", work_status, &status, 30, &out, &err), 2);
	CHECK_STR(out.s, "status 2");
	check_end(work_crash, 30, "work ended without a result");
	signal(SIGCHLD, SIG_DFL);
	text_free(&out);
}

static int work_after_host(void *user, Text *out)
{
	usleep(200000);
	return work_large(user, out);
}

/* The child of a host that was killed writes to nobody, and ends. */
static void test_host_killed(void)
{
	int alive[2];
	CHECK(!pipe(alive));
	pid_t host = fork();
	if (!host) {
		Text out = {0};
		Error err = {0};
		process_fork("work", work_after_host, "x", 30, &out, &err);
		_exit(0);
	}
	usleep(50000);
	kill(host, SIGKILL);
	waitpid(host, NULL, 0);
	close(alive[1]);
	CHECK_INT(poll(&(struct pollfd){.fd = alive[0], .events = POLLIN}, 1, 20000), 1);
	close(alive[0]);
}

int main(void)
{
	test_run();
	test_fork();
	test_stalled();
	test_ends();
	test_unreaped();
	test_host_killed();
	return check_done();
}
