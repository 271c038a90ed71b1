/* npy.c - numpy's .npy files, versions 1 to 3, in C order and little-endian: a header is read here,
 * the elements by raw.c. Source: numpy's NEP 1 and numpy/lib/format.py. Invariant: the file has
 * exactly the elements that its header promises. */
#include "nn/data/data.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 4096 }; /* bytes of a header that can be read; numpy's has some 120 */

typedef struct Npy {
	const char *path;
	char text[HEADER + 1]; /* the dictionary */
	int64_t at, data;      /* bytes before it; bytes before the elements */
	Type type;
	int rank;
	int64_t shape[RICCI_MAX_RANK];
} Npy;

static const struct {
	const char *descr;
	Type type;
} types[] = {
	{"|b1", RICCI_BOOL}, {"|u1", RICCI_U8},	 {"|i1", RICCI_I8},  {"<i4", RICCI_I32},
	{"<i8", RICCI_I64},  {"<f2", RICCI_F16}, {"<f4", RICCI_F32}, {"<f8", RICCI_F64},
};

/* What the header has at s is not what should be there. */
static int npy_wrong(const Npy *f, const char *s, const char *want, Error *err)
{
	return error_set(err, RICCI_EFORMAT, "%s is damaged at byte %lld: its header needs %s",
			 f->path, (long long)(f->at + (s - f->text)), want);
}

/* Behind "'key':" and blanks; NULL: there is no such key. */
static const char *npy_value(const Npy *f, const char *key)
{
	char quoted[40];
	const char *s;
	snprintf(quoted, sizeof quoted, "'%s'", key);
	s = strstr(f->text, quoted);
	if (!s)
		return NULL;
	s += strlen(quoted);
	s += strspn(s, " ");
	return *s == ':' ? s + 1 + strspn(s + 1, " ") : NULL;
}

static int npy_type(Npy *f, Error *err)
{
	const char *s = npy_value(f, "descr");
	if (!s || (*s != '\'' && *s != '"'))
		return npy_wrong(f, s ? s : f->text, "'descr': a type such as '<f4'", err);
	size_t n = strcspn(++s, "'\"");
	for (int k = 0; k < COUNT(types); k++)
		if (n == 3 && !strncmp(s, types[k].descr, 3)) {
			f->type = types[k].type;
			return 0;
		}
	return error_set(err, RICCI_EUNSUPPORTED,
			 "%s, byte %lld: elements of type '%.*s'; |b1 |u1 |i1 <i4 <i8 <f2 <f4 <f8 "
			 "can be read: save a.astype('<f4'), say",
			 f->path, (long long)(f->at + (s - f->text)), n < 40 ? (int)n : 40, s);
}

static int npy_shape(Npy *f, Error *err)
{
	const char *s = npy_value(f, "shape");
	if (!s || *s++ != '(')
		return npy_wrong(f, s ? s : f->text, "'shape': extents in parentheses", err);
	while (*(s += strspn(s, " ")) != ')') {
		char *end;
		errno = 0;
		long long n = isdigit((unsigned char)*s) ? strtoll(s, &end, 10) : -1;
		if (n < 1 || errno)
			return npy_wrong(f, s, "extents of 1 or more", err);
		if (f->rank == RICCI_MAX_RANK)
			return npy_wrong(f, s, "at most 16 dimensions", err);
		f->shape[f->rank++] = n;
		s = end + strspn(end, " ");
		if (*s == ',')
			s++;
		else if (*s != ')')
			return npy_wrong(f, s, "a comma between two extents", err);
	}
	if (!f->rank)
		return npy_wrong(f, s, "one dimension or more, the samples first", err);
	if (shape_size(f->rank, f->shape) < 0)
		return npy_wrong(f, s, "at most 2^48 elements", err);
	return 0;
}

static int npy_order(const Npy *f, Error *err)
{
	const char *s = npy_value(f, "fortran_order");
	if (!s || (strncmp(s, "False", 5) && strncmp(s, "True", 4)))
		return npy_wrong(f, s ? s : f->text, "'fortran_order': True or False", err);
	if (*s == 'T' && f->rank > 1)
		return error_set(err, RICCI_EUNSUPPORTED,
				 "%s, byte %lld: its elements are in Fortran's order: save "
				 "numpy.ascontiguousarray(a)",
				 f->path, (long long)(f->at + (s - f->text)));
	return 0;
}

/* The bytes before the dictionary, and it. */
static int npy_read(Npy *f, FILE *in, Error *err)
{
	uint8_t b[12] = {0};
	size_t n = fread(b, 1, 8, in), length;
	if (n < 8 || memcmp(b, "\x93NUMPY", 6))
		return error_set(err, ferror(in) ? RICCI_EIO : RICCI_EFORMAT,
				 "%s is not an .npy file: it doesn't begin with \\x93NUMPY and a "
				 "version",
				 f->path);
	if (b[6] < 1 || b[6] > 3)
		return error_set(err, RICCI_EUNSUPPORTED,
				 "%s, byte 6: version %d of .npy; 1, 2 and 3 can be read", f->path,
				 b[6]);
	f->at = b[6] == 1 ? 10 : 12;
	n = fread(b + 8, 1, (size_t)f->at - 8, in);
	length = (size_t)b[8] | (size_t)b[9] << 8 | (size_t)b[10] << 16 | (size_t)b[11] << 24;
	if (n == (size_t)f->at - 8 && length > HEADER)
		return error_set(err, RICCI_EFORMAT,
				 "%s is damaged at byte 8: a header of %zu bytes; there are at "
				 "most %d",
				 f->path, length, HEADER);
	size_t got = fread(f->text, 1, length, in);
	if (n < (size_t)f->at - 8 || got < length)
		return error_set(err, RICCI_EFORMAT, "%s is cut short at byte %lld, in its header",
				 f->path, (long long)(8 + n + got));
	f->data = f->at + (int64_t)length;
	if (memchr(f->text, 0, length))
		return npy_wrong(f, f->text + strlen(f->text), "text without zeros", err);
	return 0;
}

int ricci_data_npy(ricci_data *d, const char *field, const char *path)
{
	if (data_admits(d, field))
		return d ? d->err.code : RICCI_EINVAL;
	Npy *f = path ? mem_zalloc(sizeof *f) : NULL;
	if (!f)
		return DATA_FAIL(d, path ? RICCI_ENOMEM : RICCI_EINVAL, "field '%s': %s", field,
				 path ? "out of memory" : "no path given");
	f->path = path;
	FILE *in = fopen(path, "rbe");
	int status = in ? npy_read(f, in, &d->err)
			: DATA_FAIL(d, RICCI_EIO, "cannot open %s: %s", path, strerror(errno));
	if (in)
		fclose(in);
	if (!status)
		status = npy_type(f, &d->err);
	if (!status)
		status = npy_shape(f, &d->err);
	if (!status)
		status = npy_order(f, &d->err);
	if (!status) {
		Field to = {.name = (char *)field, .type = f->type, .rank = f->rank - 1};
		memcpy(to.shape, f->shape + 1, (size_t)to.rank * sizeof *to.shape);
		int64_t sample = shape_size(to.rank, to.shape) * (int64_t)type_size(f->type);
		status = raw_add(d, &to, 1, &(RawFile){path, f->shape[0]},
				 (RecordLayout){f->data, sample, 0});
	}
	mem_free(f);
	return status;
}
