/* process.c - runs another program without a shell, or work in a child, without disturbing the host.
 *
 * The child has its own process group (a Ctrl-C meant for the training does not reach it, and a
 * time limit ends its children too), default signals, no input, and one pipe for what it says. The
 * host may ignore SIGCHLD or reap all children itself: then the status is lost, and the end of the
 * pipe and the files written must tell.
 */
#define _GNU_SOURCE
#include "jit/backend/process.h"
#include "jit/jit.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

bool process_find(const char *name, char *path, size_t room)
{
	if (strchr(name, '/'))
		return (size_t)snprintf(path, room, "%s", name) < room && access(path, X_OK) == 0;
	for (const char *p = env_text("PATH", "/usr/local/bin:/usr/bin:/bin"); *p;) {
		int n = strcspn(p, ":");
		if (n && (size_t)snprintf(path, room, "%.*s/%s", n, p, name) < room &&
		    access(path, X_OK) == 0)
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

/* This process's environment with $TMPDIR as the folder that the child works in. NULL: no memory.
 */
static char **environment_here(void)
{
	static char here[] = "TMPDIR=.";
	int n = 0, m = 0;
	while (environ && environ[n])
		n++;
	char **e = mem_alloc(((size_t)n + 2) * sizeof *e);
	for (int i = 0; e && i < n; i++)
		if (strncmp(environ[i], "TMPDIR=", 7))
			e[m++] = environ[i];
	if (e) {
		e[m++] = here;
		e[m] = NULL;
	}
	return e;
}

static int spawn_with(pid_t *child, const char *path, const char *const *arg, char *const *with,
		      int folder, int out)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawn_file_actions_init(&files))
		return ENOMEM;
	if (posix_spawnattr_init(&how)) {
		posix_spawn_file_actions_destroy(&files);
		return ENOMEM;
	}
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
					       POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&how, 0);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &all);
	int bad = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (!bad)
		bad = posix_spawn_file_actions_adddup2(&files, out, 1);
	if (!bad)
		bad = posix_spawn_file_actions_adddup2(&files, out, 2);
	if (!bad && folder >= 0)
		bad = posix_spawn_file_actions_addfchdir_np(&files, folder);
	if (!bad)
		bad = posix_spawn(child, path, &files, &how, (char *const *)arg, with);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return bad;
}

static int spawn(pid_t *child, const char *path, const char *const *arg, int folder, int out)
{
	char full[8192];
	if (folder < 0)
		return spawn_with(child, path, arg, environ, folder, out);
	if (*path != '/') { /* relative to where this process is */
		if (!getcwd(full, sizeof full / 2))
			return errno;
		size_t n = strlen(full);
		if ((size_t)snprintf(full + n, sizeof full - n, "/%s", path) >= sizeof full - n)
			return ENAMETOOLONG;
		path = full;
	}
	char **with = environment_here();
	int bad = with ? spawn_with(child, path, arg, with, folder, out) : ENOMEM;
	mem_free(with);
	return bad;
}

/* Where this process is killed nobody ends the child: then the system does. */
static void limit_time(pid_t child, double seconds)
{
	rlim_t most = (rlim_t)seconds + 1;
	prlimit(child, RLIMIT_CPU, &(struct rlimit){most, most + 1}, NULL);
}

static _Thread_local const atomic_bool *stop_flag;

void backend_stop_when(const atomic_bool *flag)
{
	stop_flag = flag;
}

bool backend_stopped(void)
{
	return stop_flag && atomic_load(stop_flag);
}

/* A forked child has the locks that other threads held at the fork, and nobody in it to release them: one that
 * its allocator waits for (AddressSanitizer's of gcc 12 has no handlers for forks) uses no processor time. */
enum { STALL_SECONDS = 3, FORK_TRIES = 3, STALLED = 256 /* no exit status */ };

typedef struct Progress {
	pid_t child;
	double used, since; /* seconds of processor time, and when it had used them */
} Progress;

static bool child_stalled(Progress *p)
{
	double now = clock_seconds(), used = process_seconds(p->child);
	if (used > p->used)
		*p = (Progress){p->child, used, now};
	return used >= 0 && now - p->since > STALL_SECONDS;
}

/* Reads until the pipe ends or time is up (or the caller's thread was told to stop, or p's child stalled); false: it
 * is. Keeps the first `room` bytes. */
static bool listen_until(int from, double end, size_t room, Progress *p, Text *said)
{
	char part[4096];
	for (;;) {
		double left = end - clock_seconds();
		bool go_on = left > 0 && !backend_stopped() && !(p && child_stalled(p));
		struct pollfd pipe_end = {.fd = from, .events = POLLIN};
		int nap = left > 0.03 ? 30 : (int)(left * 1e3) + 1;
		int ready = go_on ? poll(&pipe_end, 1, nap) : 0;
		if (go_on && (ready == 0 || (ready < 0 && errno == EINTR)))
			continue;
		if (ready <= 0)
			return false;
		ssize_t n = read(from, part, sizeof part);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		size_t keep = (size_t)n < room ? (size_t)n : room;
		text_put(said, part, keep);
		room -= keep;
	}
}

/* Waits for the child until `end`; -2 when it lives on, -1 when someone else took its status. */
static int child_wait(pid_t child, double end)
{
	int status;
	for (struct timespec nap = {0, 50000};;) {
		pid_t got = waitpid(child, &status, WNOHANG);
		if (got == child)
			return status;
		if (got < 0 && errno != EINTR)
			return -1;
		if (clock_seconds() >= end)
			return -2;
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < 5000000)
			nap.tv_nsec *= 2;
	}
}

static int cannot_run(const char *path, int number, Error *err)
{
	int code = number == ENOMEM ? RICCI_ENOMEM : RICCI_ECOMPILE;
	return error_set(err, code, "can't run %s: %s", path, strerror(number));
}

/* Hears a child that writes into that pipe to its end, and takes its status; with `watch` a child that stalls is
 * stopped, STALLED. */
static int child_hear(pid_t child, int from, const char *what, double seconds, size_t room,
		      bool watch, Text *said, Error *err)
{
	double start = clock_seconds(), end = start + seconds;
	Progress progress = {.child = child, .used = -1, .since = start};
	limit_time(child, seconds);
	bool late = !listen_until(from, end, room, watch ? &progress : NULL, said);
	close(from);
	int status = late ? -2 : child_wait(child, end);
	if (status == -2) {
		double stopped_at = clock_seconds();
		kill(-child, SIGKILL);
		child_wait(child, stopped_at + 1);
		if (backend_stopped())
			return error_set(err, RICCI_ECOMPILE, "%s was stopped", what);
		if (watch && stopped_at < end)
			return STALLED;
		return error_set(err, RICCI_ECOMPILE,
				 "%s took longer than %.0f seconds and was stopped", what, seconds);
	}
	if (said->failed)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	if (status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return 0;
	if (WIFSIGNALED(status))
		return error_set(err, RICCI_ECOMPILE, "%s crashed (%s)", what,
				 strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status);
}

int process_run(const char *path, const char *const *arg, int folder, double seconds, Text *said,
		Error *err)
{
	enum { SAID = 65536 };
	int pipes[2];
	pid_t child;
	if (pipe2(pipes, O_CLOEXEC))
		return cannot_run(path, errno, err);
	int bad = spawn(&child, path, arg, folder, pipes[1]);
	close(pipes[1]);
	if (bad) {
		close(pipes[0]);
		return cannot_run(path, bad, err);
	}
	return child_hear(child, pipes[0], path, seconds, SAID, false, said, err);
}

/* In the child: what work returns, and its result behind it, for the host may take the child's status. */
static _Noreturn void work_do(int (*work)(void *user, Text *out), void *user, int to)
{
	Text out = {0};
	int status = 0;
	setpgid(0, 0);
	text_put(&out, (const char *)&status, sizeof status);
	status = work(user, &out);
	if (out.failed)
		_exit(1);
	memcpy(out.s, &status, sizeof status);
	for (size_t at = 0; at < out.n;) {
		ssize_t n = write(to, out.s + at, out.n - at);
		if (n < 0 && errno != EINTR)
			_exit(1);
		at += n > 0 ? (size_t)n : 0;
	}
	_exit(0);
}

/* The status of a child's work, what it wrote in got. */
static int fork_once(const char *what, int (*work)(void *user, Text *out), void *user,
		     double seconds, bool watch, Text *got, Error *err)
{
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC))
		return cannot_run(what, errno, err);
	pid_t child = fork();
	if (child == 0) {
		close(pipes[0]); /* where the host dies, the child's next write fails */
		work_do(work, user, pipes[1]);
	}
	close(pipes[1]);
	if (child < 0) {
		close(pipes[0]);
		return cannot_run(what, errno, err);
	}
	setpgid(child, child); /* whichever comes first */
	return child_hear(child, pipes[0], what, seconds, SIZE_MAX, watch, got, err);
}

int process_fork(const char *what, int (*work)(void *user, Text *out), void *user, double seconds,
		 Text *out, Error *err)
{
	Text got = {0};
	int status = 0, code = STALLED;
	for (int tries = FORK_TRIES; code == STALLED; tries--) {
		text_free(&got);
		got = (Text){0};
		code = fork_once(what, work, user, seconds, tries > 1, &got, err);
	}
	if (code > 0 || (!code && got.n < sizeof status))
		code = error_set(err, RICCI_ECOMPILE, "%s ended without a result", what);
	if (!code) {
		memcpy(&status, got.s, sizeof status);
		text_put(out, got.s + sizeof status, got.n - sizeof status);
		code = out->failed ? error_set(err, RICCI_ENOMEM, "out of memory") : status;
	}
	text_free(&got);
	return code;
}
