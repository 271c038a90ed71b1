/* idx.c - IDX files (the format of MNIST: 00 00 type rank, big-endian extents, elements), plain or
 * gzip-compressed, as fields.
 * The header is read at once, and so are small files; the elements of others while training already
 * runs, unless the file's length says that something is wrong, which then shows at once too. Byte
 * offsets in messages count unpacked bytes. */
#include "nn/data/data.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { SMALL = 1 << 20 }; /* bytes that are read at once */

typedef struct Idx {
	gzFile file;
	char *path;
	Type type;
	int rank;
	int64_t extent[8];
	int64_t size, done; /* bytes of elements: in all, read */
	bool certain;	    /* the file's length fits its header */
} Idx;

static const struct {
	uint8_t code;
	Type type;
} types[] = {
	{0x08, RICCI_U8}, {0x09, RICCI_I8}, {0x0c, RICCI_I32}, {0x0d, RICCI_F32}, {0x0e, RICCI_F64},
};

static void idx_close(void *filler)
{
	Idx *f = filler;
	if (!f)
		return;
	if (f->file)
		gzclose(f->file);
	mem_free(f->path);
	mem_free(f);
}

static int64_t idx_header_bytes(const Idx *f)
{
	return 4 + 4 * f->rank;
}

/* zlib gave fewer bytes than asked for, at this offset. */
static int idx_read_error(Idx *f, int64_t at, Error *err)
{
	int code = 0, saved = errno;
	const char *why = gzerror(f->file, &code);
	if (code == Z_ERRNO)
		return error_set(err, RICCI_EIO, "cannot read %s at byte %lld: %s", f->path,
				 (long long)at, strerror(saved));
	if (code && code != Z_BUF_ERROR)
		return error_set(err, RICCI_EFORMAT, "%s is damaged at byte %lld: %s", f->path,
				 (long long)at, why);
	if (at < idx_header_bytes(f))
		return error_set(err, RICCI_EFORMAT,
				 "%s is cut short at byte %lld: its header has %lld bytes", f->path,
				 (long long)at, (long long)idx_header_bytes(f));
	return error_set(err, RICCI_EFORMAT,
			 "%s is cut short at byte %lld: its header promises %lld bytes of elements",
			 f->path, (long long)at, (long long)f->size);
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
	int64_t header = idx_header_bytes(f), total = (int64_t)st.st_size, most = total;
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
		return error_set(err, RICCI_EFORMAT,
				 "%s is cut short: its header promises %lld bytes of elements, the "
				 "file has %lld in all",
				 f->path, (long long)f->size, (long long)total);
	return 0;
}

static int idx_extents(Idx *f, Error *err)
{
	uint8_t b[32];
	int n = gzread(f->file, b, (unsigned)(4 * f->rank));
	if (n != 4 * f->rank)
		return idx_read_error(f, 4 + (n < 0 ? 0 : n), err);
	f->size = (int64_t)type_size(f->type);
	for (int d = 0; d < f->rank; d++) {
		const uint8_t *e = b + 4 * d;
		f->extent[d] = (int64_t)e[0] << 24 | e[1] << 16 | e[2] << 8 | e[3];
		if (!f->extent[d] || __builtin_mul_overflow(f->size, f->extent[d], &f->size) ||
		    f->size > INT64_C(1) << 48)
			return error_set(err, RICCI_EFORMAT,
					 "%s is not an IDX file: at byte %d, dimension %d has an "
					 "extent of %lld",
					 f->path, 4 + 4 * d, d, (long long)f->extent[d]);
	}
	return idx_measure(f, err);
}

static int idx_header(Idx *f, Error *err)
{
	uint8_t b[4];
	int n = gzread(f->file, b, 4), t = 0;
	if (n < 0 || (n < 4 && gzeof(f->file) == 0))
		return idx_read_error(f, n < 0 ? 0 : n, err);
	if (n < 4)
		return error_set(err, RICCI_EFORMAT, "%s is not an IDX file: it has %d bytes",
				 f->path, n);
	if (b[0] || b[1] || b[3] == 0 || b[3] > 8)
		return error_set(
			err, RICCI_EFORMAT,
			"%s is not an IDX file: it begins with %02x %02x %02x %02x, not with 00 00 "
			"and a type and a number of dimensions (08 03, say)",
			f->path, b[0], b[1], b[2], b[3]);
	while (t < COUNT(types) && types[t].code != b[2])
		t++;
	if (t == COUNT(types))
		return error_set(err, RICCI_EUNSUPPORTED,
				 "%s, byte 2: elements of type %02x; 08 (u8), 09 (i8), 0c (i32), "
				 "0d (f32) and 0e (f64) can be read",
				 f->path, b[2]);
	f->type = types[t].type;
	f->rank = b[3];
	return idx_extents(f, err);
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
	int code = 0;
	while (n > 0) {
		int got = gzread(f->file, out, n < 1 << 24 ? (unsigned)n : 1u << 24);
		if (got > 0) {
			f->done += got;
			out += got;
			n -= got;
		}
		gzerror(f->file, &code);
		if (got <= 0 || (code && code != Z_BUF_ERROR))
			return idx_read_error(f, idx_header_bytes(f) + f->done, err);
	}
	uint8_t beyond;
	if (f->done < f->size)
		return 0;
	int got = gzread(f->file, &beyond, 1);
	gzerror(f->file, &code);
	if (got < 0 || code)
		return idx_read_error(f, idx_header_bytes(f) + f->done, err);
	if (got)
		return error_set(err, RICCI_EFORMAT,
				 "%s is longer than its header says: its %lld bytes of elements "
				 "end at byte %lld",
				 f->path, (long long)f->size,
				 (long long)(idx_header_bytes(f) + f->size));
	return 0;
}

/* Elements are big-endian. */
static void swap(uint8_t *p, size_t element, int64_t n)
{
	for (int64_t i = 0; i < n; i++, p += element)
		for (size_t a = 0, b = element - 1; a < b; a++, b--) {
			uint8_t t = p[a];
			p[a] = p[b];
			p[b] = t;
		}
}

static int idx_fill(void *filler, void *out, int64_t from, int64_t n, Error *err)
{
	Idx *f = filler;
	(void)from;
	int64_t bytes = n * (f->size / f->extent[0]);
	int status = idx_read(f, out, bytes, err);
	if (!status)
		swap(out, type_size(f->type), bytes / (int64_t)type_size(f->type));
	return status;
}

int ricci_data_idx(ricci_data *d, const char *field, const char *path)
{
	if (data_admits(d, field))
		return d ? d->err.code : RICCI_EINVAL;
	if (!path)
		return DATA_FAIL(d, RICCI_EINVAL, "field '%s': no path given", field);
	Idx *x = idx_open(path, &d->err);
	if (!x)
		return d->err.code;
	int64_t count = x->extent[0];
	Field f = {.name = (char *)field, .type = x->type, .rank = x->rank - 1};
	memcpy(f.shape, x->extent + 1, (size_t)f.rank * sizeof *f.shape);
	/* the filler may be gone when the source is made */
	bool all = !x->certain || x->size <= SMALL;
	if (filled_source(count, x->size / count, (Filler){idx_fill, idx_close, x}, all, &f.source,
			  &d->err))
		return d->err.code;
	return data_add(d, count, &f);
}
