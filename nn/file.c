/* file.c - messages, and files replaced whole or not at all.
 * Invariant of file_replace: at every moment, also after a crash, the path names the old file or
 * the complete new one. */
#include "nn/nn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

int nn_fail(char *err, size_t nerr, int code, const char *fmt, ...)
{
	if (err && nerr) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(err, nerr, fmt, ap);
		va_end(ap);
	}
	return code;
}

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

/* The new file beside the old one: path + "." + process + ".tmp". 0 or errno. */
static int write_beside(const char *temp, const Bytes *part, int n)
{
	int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	Held held = signal_hold();
	int e = 0;
	for (int i = 0; i < n && !e; i++)
		e = write_all(fd, part[i].data, part[i].n);
	signal_release(&held);
	if (!e && fsync(fd) && errno != EINVAL && errno != EROFS)
		e = errno;
	if (close(fd) && !e)
		e = errno;
	if (e)
		unlink(temp);
	return e;
}

int file_replace(const char *path, const Bytes *part, int n, char *err, size_t nerr)
{
	size_t room = strlen(path) + 48;
	char *temp = mem_alloc(room);
	if (!temp)
		return nn_fail(err, nerr, RICCI_ENOMEM, "out of memory");
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(temp, room, "%s.%ld-%lx.tmp", path, (long)getpid(), (unsigned long)now.tv_nsec);
	int e = write_beside(temp, part, n);
	if (!e && rename(temp, path)) {
		e = errno;
		unlink(temp);
	}
	if (!e) {
		folder_of(path, temp);
		int fd = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0) {
			fsync(fd); /* some file systems refuse; the file itself is safe */
			close(fd);
		}
	}
	mem_free(temp);
	return e ? nn_fail(err, nerr, RICCI_EIO, "cannot write %s: %s", path, strerror(e)) : 0;
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

int file_seal(const char *path, const void *data, size_t n, char *err, size_t nerr)
{
	char seal[SEAL];
	seal_make(seal, crc32_z(crc32(0, NULL, 0), data, n));
	return file_replace(path, (Bytes[]){{data, n}, {seal, SEAL}}, 2, err, nerr);
}

int file_sealed(const char *path, char *err, size_t nerr)
{
	char seal[SEAL], want[SEAL];
	FILE *f = fopen(path, "rbe");
	int cause = errno;
	char *room = mem_alloc(1 << 16);
	int status = !f ? RICCI_EIO : !room ? RICCI_ENOMEM : 0;
	if (status)
		nn_fail(err, nerr, status, "cannot read %s: %s", path,
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
		status = nn_fail(err, nerr, RICCI_EFORMAT, "%s is damaged: its checksum differs",
				 path);
	mem_free(room);
	if (f)
		fclose(f);
	return status;
}

int file_check(const char *path, char *err, size_t nerr)
{
	struct stat st;
	char *folder = mem_alloc(strlen(path) + 2);
	if (!folder)
		return nn_fail(err, nerr, RICCI_ENOMEM, "out of memory");
	folder_of(path, folder);
	int e = 0;
	if (!*path || path[strlen(path) - 1] == '/' || (!stat(path, &st) && S_ISDIR(st.st_mode)))
		e = EISDIR;
	else if (access(folder, W_OK | X_OK))
		e = errno;
	int code = e ? nn_fail(err, nerr, RICCI_EIO, "cannot write %s: %s%s%s", path, strerror(e),
			       e == EISDIR ? "" : ": ", e == EISDIR ? "" : folder)
		     : 0;
	mem_free(folder);
	return code;
}
