/* work.c - private folders for work in progress.
 *
 * A folder has an unguessable name, is made by mkdir (so it is new) and used by its descriptor only
 * (so it stays the same one, whoever may rename the folders around it). Its maker holds a lock on
 * it as long as it lives. Invariant: what nobody locks was left by a process that was killed, and
 * the next one that works there removes it.
 */
#define _GNU_SOURCE
#include "core/base/base.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "ricci-work-";

static atomic_int within = -1;

void work_within(int folder)
{
	atomic_store(&within, folder);
}

/* Removes the files of a folder, and the folder. */
static void work_remove(int base, int fd, const char *name)
{
	DIR *d = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	for (struct dirent *e; d && (e = readdir(d));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			unlinkat(fd, e->d_name, 0);
	if (d)
		closedir(d);
	unlinkat(base, name, AT_REMOVEDIR);
}

static int folder_at(int base, const char *name)
{
	return openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void work_sweep(int base)
{
	int top = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = top < 0 ? NULL : fdopendir(top);
	struct stat st;
	for (struct dirent *e; d && (e = readdir(d));) {
		if (strncmp(e->d_name, prefix, sizeof prefix - 1))
			continue;
		int fd = folder_at(base, e->d_name);
		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB))
			work_remove(base, fd, e->d_name);
		close(fd);
	}
	if (d)
		closedir(d);
	else if (top >= 0)
		close(top);
}

/* Leftovers of $TMPDIR go once in a process; a cache's folder is swept by who opens it. */
static void temp_sweep(void)
{
	int base = open(env_text("TMPDIR", "/tmp"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base >= 0) {
		work_sweep(base);
		close(base);
	}
}

static int base_open(int base)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (base < 0)
		base = atomic_load(&within);
	if (base >= 0)
		return fcntl(base, F_DUPFD_CLOEXEC, 0);
	pthread_once(&once, temp_sweep);
	return open(env_text("TMPDIR", "/tmp"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Ours, locked, and still there: a sweep that came between mkdir and the lock took it. (Where
 * there are no locks nothing is swept either.) */
static bool work_hold(WorkFolder *w)
{
	struct stat st;
	w->fd = folder_at(w->base, w->name);
	if (w->fd < 0)
		return false;
	bool taken = flock(w->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
	if (!taken && !fstat(w->fd, &st) && st.st_nlink && st.st_uid == geteuid() &&
	    !fchmod(w->fd, 0700))
		return true;
	close(w->fd);
	return false;
}

int work_open(WorkFolder *w, int base, Error *err)
{
	int cause = 0;
	*w = (WorkFolder){.base = base_open(base), .fd = -1};
	for (int try = 0; w->base >= 0 && try < 16; try++) {
		uint64_t random;
		if (getrandom(&random, sizeof random, 0) != sizeof random)
			continue;
		snprintf(w->name, sizeof w->name, "%s%016llx", prefix, (unsigned long long)random);
		/* The mode that other umasks leave is mended before anything is put there. */
		if (!mkdirat(w->base, w->name, 0700) && work_hold(w))
			return 0;
		cause = errno;
		if (cause != EEXIST && cause != ENOENT && cause != EWOULDBLOCK)
			break;
	}
	if (w->base < 0)
		cause = errno;
	else
		close(w->base);
	return error_set(err, RICCI_EIO, "can't make a folder to work in (%s): %s",
			 base < 0 && atomic_load(&within) < 0 ? env_text("TMPDIR", "/tmp")
							      : "the cache's",
			 strerror(cause));
}

void work_close(WorkFolder *w)
{
	work_remove(w->base, w->fd, w->name);
	close(w->fd);
	close(w->base);
}

int work_write(const WorkFolder *w, const char *name, const void *s, size_t n, Error *err)
{
	int fd = openat(w->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int cause = fd < 0 ? errno : 0;
	for (const char *at = s; n && !cause;) {
		ssize_t k = write(fd, at, n);
		if (k > 0) {
			at += k;
			n -= (size_t)k;
		} else if (k == 0 || errno != EINTR) {
			cause = k ? errno : ENOSPC;
		}
	}
	if (fd >= 0 && close(fd) && !cause)
		cause = errno;
	return cause ? error_set(err, RICCI_EIO, "can't write %s: %s", name, strerror(cause)) : 0;
}

int file_take(int fd, Text *out, Error *err)
{
	char part[16384];
	for (;;) {
		ssize_t n = read(fd, part, sizeof part);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, RICCI_EIO, "can't read: %s", strerror(errno));
		if (n == 0)
			break;
		text_put(out, part, (size_t)n);
	}
	return out->failed ? error_set(err, RICCI_ENOMEM, "out of memory") : 0;
}

int work_read(const WorkFolder *w, const char *name, Text *out, Error *err)
{
	int fd = openat(w->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, RICCI_EIO, "can't read %s: %s", name, strerror(errno));
	int bad = file_take(fd, out, err);
	close(fd);
	return bad;
}
