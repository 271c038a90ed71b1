/* raw.c - arrays in uncompressed files: a field is a stretch of bytes in each of many records of one
 * size. Samples are read when they are asked for (the system keeps in memory what it has room for),
 * so files may be larger than memory. Invariant: what was opened had the size that its records
 * need; a file that shrinks later is an error of the read. */
#define _GNU_SOURCE
#include "nn/data/data.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Part {
	int fd;
	char *path;
	int64_t first, end; /* samples */
} Part;

typedef struct Raw {
	RecordLayout at;
	int64_t bytes; /* of a sample */
	int npart;
	Part part[];
} Raw;

static void raw_free(void *source)
{
	Raw *r = source;
	for (int k = 0; k < r->npart; k++) {
		if (r->part[k].fd >= 0)
			close(r->part[k].fd);
		mem_free(r->part[k].path);
	}
	mem_free(r);
}

static int part_read(const Part *p, char *out, int64_t n, int64_t at, Error *err)
{
	while (n > 0) {
		ssize_t k = pread(p->fd, out, n < 1 << 26 ? (size_t)n : 1u << 26, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return error_set(err, RICCI_EIO, "cannot read %s at byte %lld: %s", p->path,
					 (long long)at, strerror(errno));
		if (k == 0)
			return error_set(
				err, RICCI_EFORMAT,
				"%s has no byte %lld: it was cut short after it was opened",
				p->path, (long long)at);
		out += k;
		at += k;
		n -= k;
	}
	return 0;
}

/* Samples that follow each other without gaps are read at once. */
static int raw_read(void *source, const uint32_t *index, int64_t n, void *out, Error *err)
{
	const Raw *r = source;
	for (int64_t i = 0, run; i < n; i += run) {
		const Part *p = r->part;
		while (index[i] >= p->end)
			p++;
		for (run = 1; i + run < n && r->at.record == r->bytes &&
			      index[i + run] == index[i] + run && index[i + run] < p->end;)
			run++;
		int status = part_read(
			p, (char *)out + i * r->bytes, run * r->bytes,
			r->at.offset + r->at.within + (index[i] - p->first) * r->at.record, err);
		if (status)
			return status;
	}
	return 0;
}

/* Opens it; *count: the records in it. */
static int part_open(Part *p, const RawFile *f, RecordLayout l, int64_t *count, Error *err)
{
	struct stat st;
	int64_t end;
	p->path = mem_strdup(f->path);
	if (!p->path)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	p->fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (p->fd < 0 || fstat(p->fd, &st))
		return error_set(err, RICCI_EIO, "cannot open %s: %s", f->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, RICCI_EIO, "%s is no regular file", f->path);
	int64_t size = (int64_t)st.st_size, there = (size - l.offset) / l.record;
	*count = f->count >= 0 ? f->count : there < 1 ? 1 : there;
	if (__builtin_mul_overflow(*count, l.record, &end) ||
	    __builtin_add_overflow(end, l.offset, &end))
		end = INT64_MAX;
	if (size < end)
		return error_set(err, RICCI_EFORMAT,
				 "%s is cut short at byte %lld: %lld samples of %lld bytes from "
				 "byte %lld on end at byte %lld",
				 f->path, (long long)size, (long long)*count, (long long)l.record,
				 (long long)l.offset, (long long)end);
	if (size > end)
		return error_set(err, RICCI_EFORMAT,
				 "%s has %lld bytes too many: %lld samples of %lld bytes from byte "
				 "%lld on end at byte %lld",
				 f->path, (long long)(size - end), (long long)*count,
				 (long long)l.record, (long long)l.offset, (long long)end);
	return 0;
}

int raw_add(ricci_data *d, const Field *f, int n, const RawFile *file, RecordLayout at)
{
	Field own = *f;
	Raw *r = mem_zalloc(sizeof *r + (size_t)n * sizeof *r->part);
	int64_t first = 0, count = 0;
	int status = 0;
	if (!r)
		return DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	r->at = at;
	r->bytes = shape_size(f->rank, f->shape) * (int64_t)type_size(f->type);
	for (int k = 0; k < n && !status; k++) {
		Part *p = &r->part[r->npart++];
		p->fd = -1;
		status = part_open(p, &file[k], at, &count, &d->err);
		p->first = first;
		p->end = first = status ? 0 : first + count;
	}
	if (status) {
		raw_free(r);
		return status;
	}
	own.source = (Source){.read = raw_read, .free = raw_free, .source = r};
	return data_add(d, first, &own);
}

int ricci_data_raw(ricci_data *d, const char *field, const char *path, const ricci_raw *layout)
{
	ricci_raw l;
	int64_t bytes = -1, end;
	if (data_admits(d, field))
		return d ? d->err.code : RICCI_EINVAL;
	if (!path || !layout)
		return DATA_FAIL(d, RICCI_EINVAL, "field '%s': no path or no layout given", field);
	if (struct_take(&l, sizeof l, layout, "ricci_raw", &d->err))
		return d->err.code;
	Field f = {.name = (char *)field, .type = l.type, .rank = l.rank};
	if ((unsigned)l.type < RICCI_NTYPES && l.rank >= 0 && l.rank <= RICCI_MAX_RANK &&
	    (l.shape || !l.rank))
		bytes = shape_size(l.rank, l.shape) * (int64_t)type_size(l.type);
	if (!l.record)
		l.record = bytes;
	if (bytes < 1 || l.offset < 0 || l.within < 0 ||
	    __builtin_add_overflow(l.within, bytes, &end) || end > l.record)
		return DATA_FAIL(d, RICCI_EINVAL,
				 "field '%s': a raw file has a type, 0 to %d dimensions, extents "
				 "of 1 or more, an offset of 0 or more, and samples that lie "
				 "within their records",
				 field, RICCI_MAX_RANK);
	if (l.rank)
		memcpy(f.shape, l.shape, (size_t)l.rank * sizeof *l.shape);
	return raw_add(d, &f, 1, &(RawFile){path, -1},
		       (RecordLayout){l.offset, l.record, l.within});
}
