/* file.c - files replaced whole or not at all.
 * Invariant of file_replace: at every moment, also after a crash, the path names the old file or
 * the complete new one. Whoever writes a temporary file holds a lock on it, so that one
 * without is what a killed process left, in whatever container that ran. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "nn/nn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

/* The folder of a path, in room of the path's length + 2. */
static void folder_of(const char *path, char *out)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + (slash == path) : 1;
	memcpy(out, slash ? path : ".", n);
	out[n] = 0;
}

/* A file over the process's size limit raises SIGXFSZ, which would end it: the signal is held back
 * from this thread and discarded, so that write() tells. */
typedef struct Held {
	sigset_t old;
	bool mine;
} Held;

static Held signal_hold(void)
{
	Held h;
	sigset_t set, pending;
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigpending(&pending);
	h.mine = !sigismember(&pending, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, &h.old);
	return h;
}

static void signal_release(Held *h)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	if (h->mine)
		while (sigtimedwait(&set, NULL, &(struct timespec){0}) > 0)
			;
	pthread_sigmask(SIG_SETMASK, &h->old, NULL);
}

static int write_all(int fd, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, data, n < 1 << 26 ? n : 1 << 26);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k ? errno : ENOSPC;
		data += k;
		n -= (size_t)k;
	}
	return 0;
}

int file_write_at(int fd, const void *data, size_t n, int64_t at)
{
	if (lseek(fd, (off_t)at, SEEK_SET) < 0)
		return errno;
	Held held = signal_hold();
	int e = write_all(fd, data, n);
	signal_release(&held);
	return e;
}

int file_read(const char *path, char **data, size_t *n, Error *err)
{
	*data = NULL;
	*n = 0;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), e = fd < 0 || fstat(fd, &st) ? errno : 0;
	if (e == ENOENT)
		return 0;
	size_t size = e ? 0 : (size_t)st.st_size;
	if (!e && !(*data = mem_alloc(size + 1)))
		e = ENOMEM;
	for (ssize_t k = 1; !e && *n < size && k; *n += (size_t)k) {
		k = read(fd, *data + *n, size - *n);
		if (k < 0 && errno != EINTR)
			e = errno;
		k = k < 0 ? 0 : k;
	}
	if (fd >= 0)
		close(fd);
	if (!e)
		return 0;
	mem_free(*data);
	*data = NULL;
	if (e == ENOMEM)
		return error_set(err, RICCI_ENOMEM, "out of memory for %s", path);
	return error_set(err, RICCI_EIO, "cannot read %s: %s", path, strerror(e));
}

/* ---- temporary files: <path>.<process>-<number>.tmp, beside the file */

static bool temp_like(const char *name, const char *base)
{
	size_t n = strlen(base);
	if (strncmp(name, base, n) || name[n] != '.')
		return false;
	name += n + 1;
	n = strspn(name, "0123456789abcdef-");
	return n > 0 && !strcmp(name + n, ".tmp");
}

/* A lock of the open file, which no thread of this process shares. HDF5 has locks of another kind
 * (flock) on what it reads. 0, or -1 and errno. */
static int temp_lock(int fd, short type, bool wait)
{
	struct flock all = {.l_type = type, .l_whence = SEEK_SET};
	int status;
	do
		status = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &all);
	while (status && errno == EINTR);
	return status;
}

/* Removes what killed processes left beside the file. */
static void temps_sweep(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char *folder = mem_alloc(strlen(path) + 2);
	if (folder)
		folder_of(path, folder);
	DIR *d = folder ? opendir(folder) : NULL;
	for (struct dirent *e; d && (e = readdir(d));) {
		int fd = temp_like(e->d_name, base)
				 ? openat(dirfd(d), e->d_name,
					  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
				 : -1;
		if (fd < 0)
			continue;
		if (!temp_lock(fd, F_RDLCK, false))
			unlinkat(dirfd(d), e->d_name, 0);
		close(fd);
	}
	if (d)
		closedir(d);
	mem_free(folder);
}

/* An open and locked one, with the permissions that `old` has (NULL: there is none); -1 and errno.
 */
static int temp_open(const char *temp, const struct stat *old)
{
	for (int tries = 0; tries < 100; tries++) {
		struct stat st;
		int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0)
			return -1;
		/* Before it was locked another process may have taken it for a stale one. */
		temp_lock(fd, F_WRLCK, true);
		if (fstat(fd, &st) || !st.st_nlink) {
			unlink(temp);
			close(fd);
			continue;
		}
		if (old) {
			if (fchown(fd, old->st_uid, old->st_gid)) {
				/* only root may give a file away; its permissions are kept */
			}
			fchmod(fd, old->st_mode & 07777);
		}
		return fd;
	}
	errno = EAGAIN;
	return -1;
}

/* 0 or errno. */
static int temp_fill(int fd, const Bytes *part, int n)
{
	Held held = signal_hold();
	int e = 0;
	for (int i = 0; i < n && !e; i++)
		e = write_all(fd, part[i].data, part[i].n);
	signal_release(&held);
	if (!e && fsync(fd) && errno != EINVAL && errno != EROFS)
		e = errno;
	return e;
}

/* ---- replacing */

/* What a path names, links followed, in memory that the caller frees. The file need not exist. */
static char *path_follow(const char *path)
{
	char *at = mem_strdup(path), to[4096];
	for (int links = 0; at && links < 40; links++) {
		ssize_t n = readlink(at, to, sizeof to - 1);
		if (n < 0)
			break;
		to[n] = 0;
		size_t room = strlen(at) + (size_t)n + 3;
		char *next = mem_alloc(room);
		if (next && *to != '/') {
			folder_of(at, next);
			snprintf(next + strlen(next), room - strlen(next), "/%s", to);
		} else if (next) {
			memcpy(next, to, (size_t)n + 1);
		}
		mem_free(at);
		at = next;
	}
	return at;
}

/* The file gets a second name, path.prev, which a former one loses. Nothing happens where the file
 * system has no such names. */
static void file_keep(const char *path, char *temp, size_t room, const char *number)
{
	char *kept = mem_alloc(room);
	if (!kept)
		return;
	snprintf(kept, room, "%s.prev", path);
	snprintf(temp, room, "%s.%s-0.tmp", path, number);
	if (!link(path, temp) && rename(temp, kept))
		unlink(temp);
	unlink(temp); /* rename leaves it where both names are of one file */
	mem_free(kept);
}

static void folder_sync(const char *path, char *room)
{
	folder_of(path, room);
	int fd = open(room, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd); /* some file systems refuse; the file itself is safe */
	close(fd);
}

/* 0 or errno. */
static int file_put(const char *path, char *temp, size_t room, bool keep, const Bytes *part, int n)
{
	struct stat old;
	struct timespec now;
	char number[48];
	bool is = !stat(path, &old) && S_ISREG(old.st_mode);
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(number, sizeof number, "%ld-%lx", (long)getpid(), (unsigned long)now.tv_nsec);
	snprintf(temp, room, "%s.%s.tmp", path, number);
	int fd = temp_open(temp, is ? &old : NULL);
	if (fd < 0)
		return errno;
	int e = temp_fill(fd, part, n);
	if (!e && keep && is) {
		file_keep(path, temp, room, number);
		snprintf(temp, room, "%s.%s.tmp", path, number);
	}
	if (!e && rename(temp, path))
		e = errno;
	if (e)
		unlink(temp);
	if (close(fd) && !e)
		e = errno;
	if (!e)
		folder_sync(path, temp);
	return e;
}

int file_replace(const char *path, bool keep, const Bytes *part, int n, Error *err)
{
	char *to = path_follow(path);
	size_t room = to ? strlen(to) + 80 : 0;
	char *temp = to ? mem_alloc(room) : NULL;
	int e = temp ? 0 : ENOMEM;
	if (!e) {
		temps_sweep(to);
		e = file_put(to, temp, room, keep, part, n);
	}
	mem_free(temp);
	mem_free(to);
	if (e == ENOMEM)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	return e ? error_set(err, RICCI_EIO, "cannot write %s: %s", path, strerror(e)) : 0;
}

/* ---- seals */
static const char seal_magic[] = "ricci-crc32 ";
enum { SEAL = 16 };

static void seal_make(char *seal, uLong crc)
{
	memcpy(seal, seal_magic, 12);
	for (int i = 0; i < 4; i++)
		seal[12 + i] = (char)(crc >> 8 * i & 255);
}

int file_seal(const char *path, const void *data, size_t n, Error *err)
{
	char seal[SEAL];
	seal_make(seal, crc32_z(crc32(0, NULL, 0), data, n));
	return file_replace(path, true, (Bytes[]){{data, n}, {seal, SEAL}}, 2, err);
}

int file_sealed(const char *path, Error *err)
{
	char seal[SEAL], want[SEAL];
	struct stat st;
	FILE *f = fopen(path, "rbe");
	int cause = errno;
	if (f && !fstat(fileno(f), &st) && S_ISDIR(st.st_mode)) {
		fclose(f);
		f = NULL;
		cause = EISDIR;
	}
	char *room = mem_alloc(1 << 16);
	int status = !f ? RICCI_EIO : !room ? RICCI_ENOMEM : 0;
	if (status)
		error_set(err, status, "cannot read %s: %s", path,
			  f ? "out of memory" : strerror(cause));
	bool sealed = !status && !fseek(f, -SEAL, SEEK_END) && fread(seal, 1, SEAL, f) == SEAL &&
		      !memcmp(seal, seal_magic, 12);
	long left = sealed ? ftell(f) - SEAL : 0;
	uLong crc = crc32(0, NULL, 0);
	if (sealed)
		rewind(f);
	while (left > 0) {
		size_t n = fread(room, 1, left < 1 << 16 ? (size_t)left : 1 << 16, f);
		if (!n)
			break;
		crc = crc32(crc, (const Bytef *)room, (uInt)n);
		left -= (long)n;
	}
	seal_make(want, crc);
	if (sealed && memcmp(seal, want, SEAL))
		status = error_set(err, RICCI_EFORMAT, "%s is damaged: its checksum differs", path);
	mem_free(room);
	if (f)
		fclose(f);
	return status;
}

int file_check(const char *path, Error *err)
{
	struct stat st;
	char *to = path_follow(path), *folder = to ? mem_alloc(strlen(to) + 2) : NULL;
	if (!folder) {
		mem_free(to);
		return error_set(err, RICCI_ENOMEM, "out of memory");
	}
	folder_of(to, folder);
	int e = 0;
	if (!*path || path[strlen(path) - 1] == '/' || (!stat(path, &st) && S_ISDIR(st.st_mode)))
		e = EISDIR;
	else if (access(folder, W_OK | X_OK))
		e = errno;
	int code = e ? error_set(err, RICCI_EIO, "cannot write %s: %s%s%s", path, strerror(e),
				 e == EISDIR ? "" : ": ", e == EISDIR ? "" : folder)
		     : 0;
	mem_free(folder);
	mem_free(to);
	return code;
}

bool file_there(const char *path, const char *other)
{
	struct stat a, b;
	if (stat(path, &a) || !S_ISREG(a.st_mode) || !a.st_size)
		return false;
	return !other || stat(other, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino;
}
