/* log.c - files that grow by a row at a time.
 * Input: rows, appended to `pending`. Output: the file. Invariant: the file is a whole number of
 * rows whenever a write has failed: what was written in part is cut off and written again later,
 * so that a disk that was full for a while loses nothing. */
#include "nn/training/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int log_open(Log *l, const char *path, bool resumed, uint64_t step, LogCut *cut, const void *user,
	     const Text *head, Error *err)
{
	char *data = NULL;
	size_t n = 0;
	int status = resumed ? file_read(path, &data, &n, err) : 0;
	int64_t kept = n ? cut(data, n, user, step, err) : 0;
	if (kept < 0)
		status = err->code;
	Bytes part = kept > 0 ? (Bytes){data, (size_t)kept} : (Bytes){head->s, head->n};
	if (!status && (!n || kept != (int64_t)n))
		status = file_replace(path, false, &part, 1, err);
	mem_free(data);
	if (status)
		return status;
	l->path = path;
	l->size = (int64_t)part.n;
	l->fd = open(path, O_WRONLY | O_CLOEXEC);
	return l->fd < 0 ? error_set(err, RICCI_EIO, "cannot write %s: %s", path, strerror(errno))
			 : 0;
}

int log_flush(Log *l, bool now, Error *err)
{
	double time = clock_seconds();
	if (l->fd < 0 || !l->pending.n || (!now && time - l->written < 1))
		return 0;
	l->written = time;
	int e = l->pending.failed ? ENOMEM
				  : file_write_at(l->fd, l->pending.s, l->pending.n, l->size);
	if (!e) {
		l->size += (int64_t)l->pending.n;
		l->failing = false;
		text_free(&l->pending);
		return 0;
	}
	bool told = l->failing;
	l->failing = true;
	if (ftruncate(l->fd, (off_t)l->size))
		e = errno; /* the next write begins at the same place */
	if (told)
		return 0;
	return error_set(err, e == ENOMEM ? RICCI_ENOMEM : RICCI_EIO, "cannot write %s: %s",
			 l->path, strerror(e));
}

void log_close(Log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	text_free(&l->pending);
}
