/* hdf5.c - opening HDF5's library, in a child process for each piece of work.
 * RICCI_HDF5_LIBRARY is the name that ./configure found programs to be linked against; the variable
 * RICCI_HDF5 names another. Invariant: this process never calls HDF5, so whatever happens there is
 * an error message here. */
#define _GNU_SOURCE
#include "nn/hdf5/hdf5.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

Hdf5 h5;

/* Seconds in which a child that needs the processor gets none of it, and is started again, or the
 * last time killed. It may wait for a slow disk; or for a lock that another thread held at the fork
 * (that of an allocator that knows no forks), and then for ever. */
double h5_patience[3] = {5, 20, 120};

/* A program that uses HDF5 itself may have copies of its variables (copy relocations), which the
 * library then sets in place of its own. */
static void h5_copied(void)
{
	hid_t *copy;
#define FUNCTION(name)
#define VARIABLE(name, symbol)                                                                     \
	if (*h5.name <= 0 && (copy = dlsym(RTLD_DEFAULT, #symbol)) && *copy > 0)                   \
		h5.name = copy;
#include "nn/hdf5/hdf5.def"
#undef FUNCTION
#undef VARIABLE
}

static int h5_open(Error *err)
{
	const char *name = env_text("RICCI_HDF5", RICCI_HDF5_LIBRARY);
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *at = library;
	const char *missing = NULL;
	char why[512] = "";
#define TAKE(name, symbol)                                                                         \
	if (at && !(at = h5.name = dlsym(library, #symbol)))                                       \
		missing = #symbol;
#define FUNCTION(name)	       TAKE(name, H5##name)
#define VARIABLE(name, symbol) TAKE(name, symbol)
#include "nn/hdf5/hdf5.def"
	if (!library)
		message_print(why, sizeof why, "%s", dlerror());
	else if (missing)
		message_print(why, sizeof why, "%s has no %s", name, missing);
	else if (h5.open() < 0)
		message_print(why, sizeof why, "%s does not start", name);
	if (*why)
		return error_set(err, RICCI_EUNSUPPORTED,
				 "HDF5's library is needed (Debian: libhdf5-103-1): %s", why);
	h5.Eset_auto2(H5E_DEFAULT, NULL, NULL);
	h5_copied();
	return 0;
}

static herr_t innermost(unsigned n, const H5E_error2_t *e, void *out)
{
	if (!n && e->desc)
		message_print(out, 160, "%s", e->desc);
	return 0;
}

const char *h5_reason(char *room)
{
	message_print(room, 160, "no reason given");
	h5.Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, room);
	return room;
}

int h5_put(int out, const void *data, size_t n, Error *err)
{
	for (const char *s = data; n;) {
		ssize_t k = write(out, s, n < 1 << 26 ? n : 1 << 26);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return error_set(err, RICCI_EIO, "no room for a checkpoint: %s",
					 strerror(k ? errno : ENOSPC));
		s += k;
		n -= (size_t)k;
	}
	return 0;
}

/* ---- the child */

typedef struct Report { /* in memory that both see */
	Error err;
	bool done;
} Report;

/* end: its parent's, and its own, which shows when the other one is gone. A parent may have ended
 * before its child could ask to be told. */
static _Noreturn void child_main(H5Work *work, void *user, const int end[2], pid_t parent,
				 Report *r, bool lasting)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	close(end[0]);
	if (!lasting) { /* (of one that lasts, the end of the thread that started it is none) */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	for (int fd = 1; fd <= 2 && nothing >= 0; fd++)
		dup2(nothing, fd); /* libraries print as they are opened */
	if (!h5_open(&r->err))
		work(user, end[1], &r->err);
	r->done = true;
	_exit(0); /* HDF5's own end is not called: nothing of it is open elsewhere */
}

/* No signal is handled in the child: the host's handlers are not for it. */
static pid_t child_start(H5Work *work, void *user, const int end[2], Report *r, bool lasting)
{
	sigset_t all, old;
	pid_t parent = getpid();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid_t pid = fork();
	if (pid == 0)
		child_main(work, user, end, parent, r, lasting);
	int cause = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = cause;
	return pid;
}

/* What the child writes, until it ends; it is killed where it stands still for so long (*stuck). A
 * pipe: limits of file sizes are none of its. */
static int result_read(pid_t pid, int in, double patience, H5Result *r, bool *stuck, Error *err)
{
	double still = 0, before = -1;
	size_t room = 0;
	for (;;) {
		struct pollfd p = {.fd = in, .events = POLLIN};
		int ready = poll(&p, 1, 100);
		if (ready == 0) {
			double now = process_seconds(pid);
			still = now > before ? 0 : still + 0.1;
			before = now;
			if (still > patience) {
				*stuck = true;
				kill(pid, SIGKILL);
				return error_set(err, RICCI_EIO, "HDF5 stood still for %.3g s",
						 patience);
			}
		}
		if (ready <= 0)
			continue;
		if (r->n == room) {
			room = room ? 2 * room : 1 << 20;
			void *more = mem_realloc(r->data, room);
			if (!more) {
				kill(pid, SIGKILL);
				return error_set(err, RICCI_ENOMEM, "out of memory for HDF5");
			}
			r->data = more;
		}
		ssize_t k = read(in, (char *)r->data + r->n, room - r->n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return 0;
		r->n += (size_t)k;
	}
}

void h5_result_free(H5Result *r)
{
	mem_free(r->data);
	*r = (H5Result){0};
}

/* The result is read, the child has ended or will: what became of it? */
static int run_end(pid_t pid, const Report *report, Error *err)
{
	int status = -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (report->done)
		return report->err.code ? error_set(err, report->err.code, "%s", report->err.text)
					: 0;
	if (status != -1 && WIFSIGNALED(status))
		return error_set(err, RICCI_ENOMEM,
				 "HDF5 crashed (signal %d): it does so where it finds no memory",
				 WTERMSIG(status));
	return error_set(err, RICCI_EIO, "HDF5 ended its process");
}

static int run_once(H5Work *work, void *user, Report *report, double patience, H5Result *r,
		    bool *stuck, Error *err)
{
	int end[2];
	if (pipe2(end, O_CLOEXEC))
		return error_set(err, RICCI_EIO, "no pipe for HDF5: %s", strerror(errno));
	pid_t pid = child_start(work, user, end, report, false);
	int cause = errno;
	close(end[1]);
	int status = pid < 0 ? error_set(err, RICCI_EUNSUPPORTED, "no process for HDF5: %s",
					 strerror(cause))
			     : result_read(pid, end[0], patience, r, stuck, err);
	close(end[0]);
	if (pid >= 0 && !status)
		status = run_end(pid, report, err);
	else if (pid >= 0)
		run_end(pid, report, NULL);
	return status;
}

int h5_run(H5Work *work, void *user, H5Result *r, Error *err)
{
	*r = (H5Result){0};
	Report *report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED)
		return error_set(err, RICCI_ENOMEM, "out of memory for HDF5");
	int status = 0;
	bool stuck = true;
	Error why;
	for (int n = 0; n < COUNT(h5_patience) && stuck; n++) {
		h5_result_free(r);
		*report = (Report){0};
		why = (Error){0};
		stuck = false;
		status = run_once(work, user, report, h5_patience[n], r, &stuck, &why);
	}
	munmap(report, sizeof *report);
	if (status)
		error_set(err, status, "%s", why.text);
	if (status || !r->n)
		h5_result_free(r);
	return status;
}

/* ---- a child that serves */

/* Nothing but its end of the channel stays open: other servers' ends in particular, which would not
 * see theirs closed otherwise. */
typedef struct Serving {
	H5Work *work;
	void *user;
} Serving;

static int serve_work(void *user, int out, Error *err)
{
	const Serving *s = user;
	int channel = dup2(out, 3) == 3 ? 3 : out;
#ifdef SYS_close_range
	if (channel == 3)
		syscall(SYS_close_range, 4, ~0u, 0);
#endif
	return s->work(s->user, channel, err);
}

int h5_serve(H5Work *work, void *user, H5Server *s, Error *err)
{
	int end[2];
	Report *report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED)
		return error_set(err, RICCI_ENOMEM, "out of memory for HDF5");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end)) {
		munmap(report, sizeof *report);
		return error_set(err, RICCI_EIO, "no sockets for HDF5: %s", strerror(errno));
	}
	s->pid = child_start(serve_work, &(Serving){work, user}, end, report, true);
	int cause = errno;
	close(end[1]);
	s->channel = end[0];
	s->report = report;
	if (s->pid >= 0)
		return 0;
	h5_serve_end(s, NULL);
	return error_set(err, RICCI_EUNSUPPORTED, "no process for HDF5: %s", strerror(cause));
}

int h5_serve_end(H5Server *s, Error *err)
{
	shutdown(s->channel, SHUT_RDWR);
	close(s->channel);
	int status = s->pid >= 0 ? run_end(s->pid, s->report, err) : 0;
	munmap(s->report, sizeof(Report));
	return status;
}
