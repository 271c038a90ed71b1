/* idx.c - IDX files (the format of MNIST: 00 00 type rank, big-endian extents, elements), plain or
 * gzip-compressed, as data sets.
 * Labels and both headers are read at once; the samples while training already runs, unless the
 * file's length says that something is wrong, which then shows at once too. */
#include "nn/nn.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

typedef struct Idx {
	gzFile file;
	char *path;
	int rank;
	int64_t extent[8];
	int64_t size, done; /* bytes of elements: in all, read */
	bool certain;	    /* the file's length fits its header */
} Idx;

static void idx_close(void *source)
{
	Idx *f = source;
	if (!f)
		return;
	if (f->file)
		gzclose(f->file);
	mem_free(f->path);
	mem_free(f);
}

static int idx_read_error(Idx *f, int64_t got, int64_t want, Error *err)
{
	int code = 0, saved = errno;
	const char *why = gzerror(f->file, &code);
	if (code == Z_ERRNO)
		return error_set(err, RICCI_EIO, "cannot read %s: %s", f->path, strerror(saved));
	if (code && code != Z_BUF_ERROR)
		return error_set(err, RICCI_EFORMAT, "%s is damaged after %lld bytes: %s", f->path,
				 (long long)got, why);
	return error_set(
		err, RICCI_EFORMAT,
		"%s is cut short: its header promises %lld bytes of elements, there are %lld",
		f->path, (long long)want, (long long)got);
}

/* The length of the elements from the file's own: plain files exactly, gzip's from its trailer.
 * Compares with what the header promises, before memory for it is asked. */
static int idx_measure(Idx *f, Error *err)
{
	struct stat st;
	FILE *raw = fopen(f->path, "rb");
	uint8_t b[4] = {0};
	if (!raw || fstat(fileno(raw), &st)) {
		if (raw)
			fclose(raw);
		return error_set(err, RICCI_EIO, "cannot read %s: %s", f->path, strerror(errno));
	}
	int64_t header = 4 + 4 * f->rank, total = (int64_t)st.st_size, most = total;
	if (!gzdirect(f->file)) {
		most = total * 1100; /* deflate packs at most 1032 to 1 */
		if (fseek(raw, -4, SEEK_END) || fread(b, 1, 4, raw) != 4)
			memset(b, 0, 4);
		f->certain = ((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
			      (uint32_t)b[3] << 24) == (uint32_t)(f->size + header);
	} else {
		f->certain = total == f->size + header;
	}
	fclose(raw);
	if (f->size > most)
		return error_set(
			err, RICCI_EFORMAT,
			"%s is cut short: its header promises %lld bytes of elements, the file "
			"has %lld in all",
			f->path, (long long)f->size, (long long)total);
	return 0;
}

static int idx_header(Idx *f, Error *err)
{
	uint8_t b[32];
	int n = gzread(f->file, b, 4);
	if (n < 0 || (n < 4 && n >= 0 && gzeof(f->file) == 0))
		return idx_read_error(f, 0, 4, err);
	if (n < 4)
		return error_set(err, RICCI_EFORMAT, "%s is not an IDX file: it has %d bytes",
				 f->path, n);
	if (b[0] || b[1] || b[3] == 0 || b[3] > 8)
		return error_set(
			err, RICCI_EFORMAT,
			"%s is not an IDX file: it begins with %02x %02x %02x %02x, not with 00 00 "
			"08 and a number of dimensions",
			f->path, b[0], b[1], b[2], b[3]);
	if (b[2] != 0x08)
		return error_set(
			err, RICCI_EUNSUPPORTED,
			"%s holds elements of type %02x; unsigned bytes (08) are what can be read",
			f->path, b[2]);
	f->rank = b[3];
	n = gzread(f->file, b, (unsigned)(4 * f->rank));
	if (n != 4 * f->rank)
		return idx_read_error(f, n < 0 ? 0 : n, 4 * f->rank, err);
	f->size = 1;
	for (int d = 0; d < f->rank; d++) {
		const uint8_t *e = b + 4 * d;
		f->extent[d] = (int64_t)e[0] << 24 | e[1] << 16 | e[2] << 8 | e[3];
		if (!f->extent[d] || __builtin_mul_overflow(f->size, f->extent[d], &f->size) ||
		    f->size > INT64_C(1) << 48)
			return error_set(
				err, RICCI_EFORMAT,
				"%s is not an IDX file: dimension %d has an extent of %lld",
				f->path, d, (long long)f->extent[d]);
	}
	return idx_measure(f, err);
}

static Idx *idx_open(const char *path, Error *err)
{
	Idx *f = mem_zalloc(sizeof *f);
	if (!f || !(f->path = mem_strdup(path))) {
		idx_close(f);
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	errno = 0;
	f->file = gzopen(path, "rbe");
	if (!f->file) {
		error_set(err, RICCI_EIO, "cannot open %s: %s", path,
			  errno ? strerror(errno) : "out of memory");
		idx_close(f);
		return NULL;
	}
	gzbuffer(f->file, 1 << 16);
	if (idx_header(f, err)) {
		idx_close(f);
		return NULL;
	}
	return f;
}

/* n bytes; after the last one the file must end, which also makes zlib check its sum. */
static int idx_read(Idx *f, uint8_t *out, int64_t n, Error *err)
{
	while (n > 0) {
		int got = gzread(f->file, out, n < 1 << 24 ? (unsigned)n : 1u << 24);
		if (got > 0) {
			f->done += got;
			out += got;
			n -= got;
		}
		int code = 0;
		gzerror(f->file, &code);
		if (got <= 0 || (code && code != Z_BUF_ERROR))
			return idx_read_error(f, f->done, f->size, err);
	}
	uint8_t beyond;
	if (f->done < f->size)
		return 0;
	int got = gzread(f->file, &beyond, 1), code = 0;
	gzerror(f->file, &code);
	if (got < 0 || code)
		return idx_read_error(f, f->done, f->size, err);
	if (got)
		return error_set(err, RICCI_EFORMAT,
				 "%s is longer than its header says (%lld bytes of elements)",
				 f->path, (long long)f->size);
	return 0;
}

static int idx_fill(void *source, ricci_data *d, int64_t from, int64_t n, Error *err)
{
	return idx_read(source, d->samples + from * d->size, n * d->size, err);
}

static int idx_labels(Idx *l, const char *samples, int64_t count, ricci_data *d, Error *err)
{
	if (l->rank != 1)
		return error_set(err, RICCI_EFORMAT, "%s has %d dimensions; labels have one",
				 l->path, l->rank);
	if (l->size != count)
		return error_set(err, RICCI_EFORMAT, "%s has %lld labels, %s has %lld samples",
				 l->path, (long long)l->size, samples, (long long)count);
	return idx_read(l, d->labels, count, err);
}

ricci_data *ricci_idx(const char *samples, const char *labels)
{
	Error *err = ERROR_TELL;
	if (!samples || !labels) {
		error_set(err, RICCI_EINVAL, "ricci_idx needs the paths of two files");
		return NULL;
	}
	Idx *s = idx_open(samples, err);
	Idx *l = s ? idx_open(labels, err) : NULL;
	if (!l) {
		idx_close(s);
		return NULL;
	}
	int64_t count = s->extent[0];
	bool certain = s->certain;
	if (count > UINT32_MAX) {
		error_set(err, RICCI_EUNSUPPORTED, "%s has more than 2^32-1 samples", samples);
		idx_close(s);
		idx_close(l);
		return NULL;
	}
	DataSource source = {idx_fill, idx_close, s};
	ricci_data *d = data_new(count, s->size / count, source, err);
	if (d &&
	    (idx_labels(l, samples, count, d, err) || (!certain && data_wait(d, count, err)))) {
		ricci_data_free(d);
		d = NULL;
	}
	idx_close(l);
	return d;
}

ricci_data *ricci_mnist(const char *folder, int test)
{
	Error *err = ERROR_TELL;
	const char *part[2] = {"images-idx3-ubyte", "labels-idx1-ubyte"};
	char path[2][4096];
	for (int i = 0; i < 2; i++) {
		struct stat st;
		int n = snprintf(path[i], sizeof path[i], "%s/%s-%s", folder ? folder : ".",
				 test ? "t10k" : "train", part[i]);
		if (n > (int)sizeof path[i] - 4) {
			error_set(err, RICCI_EINVAL, "the path of the folder is too long");
			return NULL;
		}
		if (stat(path[i], &st))
			strcat(path[i], ".gz");
	}
	return ricci_idx(path[0], path[1]);
}
