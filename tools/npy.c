/* npy.c - reads and writes .npy files (numpy.lib.format).
 * Input of npy_read: any file at all. Invariant: nothing is believed before it is checked against
 * the file's size, so a hostile header costs no memory and reads nothing outside. */
#include "tools/npy.h"
#include "runtime/runtime.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define HEADER_MAX 65536 /* a header that describes one dense array of ours is far shorter */

static const struct {
	Type type;
	const char *descr;
} npy_types[] = {
	{RICCI_F32, "<f4"},  {RICCI_F64, "<f8"}, {RICCI_F16, "<f2"},
	{RICCI_BF16, "<V2"}, {RICCI_I8, "|i1"},	 {RICCI_U8, "|u1"},
	{RICCI_I32, "<i4"},  {RICCI_I64, "<i8"}, {RICCI_BOOL, "|b1"},
};
_Static_assert(COUNT(npy_types) == RICCI_NTYPES, "each type has its descr");

/* What the header says. */
typedef struct Header {
	Npy npy;
	bool fortran, swap, has_descr, has_order, has_shape;
} Header;

static void skip_blanks(const char **p)
{
	while (isspace((unsigned char)**p))
		++*p;
}

static bool take(const char **p, char c)
{
	skip_blanks(p);
	if (**p != c)
		return false;
	++*p;
	return true;
}

/* 'text' or "text" into out, which holds room characters. */
static bool take_string(const char **p, char *out, size_t room)
{
	skip_blanks(p);
	char quote = **p;
	if (quote != '\'' && quote != '"')
		return false;
	const char *end = strchr(*p + 1, quote);
	if (!end || (size_t)(end - *p) > room)
		return false;
	size_t n = (size_t)(end - *p) - 1;
	memcpy(out, *p + 1, n);
	out[n] = 0;
	*p = end + 1;
	return true;
}

static bool take_word(const char **p, const char *word)
{
	skip_blanks(p);
	size_t n = strlen(word);
	if (strncmp(*p, word, n) || isalnum((unsigned char)(*p)[n]))
		return false;
	*p += n;
	return true;
}

static int read_descr(const char **p, Header *h, const char *path, Error *err)
{
	char descr[16] = "";
	if (!take_string(p, descr, sizeof descr))
		return error_set(err, RICCI_EFORMAT, "%s: a type that is not one plain number",
				 path);
	for (int k = 0; k < COUNT(npy_types); k++) {
		const char *known = npy_types[k].descr;
		bool one = known[2] == '1';
		if (strcmp(descr + 1, known + 1) || !strchr(one ? "|<>=" : "<>=|", descr[0]))
			continue;
		h->npy.type = npy_types[k].type;
		h->swap =
			!one && descr[0] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
		h->has_descr = true;
		return 0;
	}
	return error_set(
		err, RICCI_EFORMAT,
		"%s: its numbers are '%s'; f4 f8 f2 i1 u1 i4 i8 b1 and V2 (bf16) can be read", path,
		descr);
}

static int read_shape(const char **p, Header *h, const char *path, Error *err)
{
	if (!take(p, '('))
		return error_set(err, RICCI_EFORMAT, "%s: its header has no shape", path);
	while (!take(p, ')')) {
		if (!isdigit((unsigned char)**p))
			return error_set(err, RICCI_EFORMAT, "%s: its header has no shape", path);
		int64_t n = 0;
		for (; isdigit((unsigned char)**p); ++*p)
			if (__builtin_mul_overflow(n, (int64_t)10, &n) ||
			    __builtin_add_overflow(n, (int64_t)(**p - '0'), &n))
				return error_set(err, RICCI_EFORMAT, "%s: its shape is too large",
						 path);
		if (h->npy.rank == RICCI_MAX_RANK)
			return error_set(err, RICCI_ESHAPE, "%s: more than %d dimensions", path,
					 RICCI_MAX_RANK);
		if (!n)
			return error_set(
				err, RICCI_ESHAPE,
				"%s: its dimension %d has size 0; a tensor has none of those", path,
				h->npy.rank);
		h->npy.shape[h->npy.rank++] = n;
		if (!take(p, ',')) {
			if (take(p, ')'))
				break;
			return error_set(err, RICCI_EFORMAT, "%s: its header has no shape", path);
		}
	}
	h->has_shape = true;
	return 0;
}

/* The header's text is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2,
 * 3), } */
static int read_header(const char *p, size_t n, Header *h, const char *path, Error *err)
{
	const char *end = p + n;
	if (!take(&p, '{'))
		return error_set(err, RICCI_EFORMAT, "%s: its header is no dictionary", path);
	while (!take(&p, '}')) {
		char key[32];
		int code = 0;
		if (!take_string(&p, key, sizeof key) || !take(&p, ':'))
			return error_set(err, RICCI_EFORMAT, "%s: its header is damaged", path);
		bool *has = !strcmp(key, "descr")	    ? &h->has_descr
			    : !strcmp(key, "shape")	    ? &h->has_shape
			    : !strcmp(key, "fortran_order") ? &h->has_order
							    : NULL;
		if (has && *has)
			return error_set(err, RICCI_EFORMAT, "%s: its header has two keys '%s'",
					 path, key);
		if (!strcmp(key, "descr")) {
			code = read_descr(&p, h, path, err);
		} else if (!strcmp(key, "shape")) {
			code = read_shape(&p, h, path, err);
		} else if (!strcmp(key, "fortran_order")) {
			h->fortran = take_word(&p, "True");
			if (!h->fortran && !take_word(&p, "False"))
				code = error_set(err, RICCI_EFORMAT,
						 "%s: its header has no fortran_order", path);
			h->has_order = true;
		} else {
			code = error_set(err, RICCI_EFORMAT, "%s: unknown key '%s' in its header",
					 path, key);
		}
		if (code)
			return code;
		if (!take(&p, ',') && *p != '}')
			return error_set(err, RICCI_EFORMAT, "%s: its header is damaged", path);
	}
	skip_blanks(&p);
	if (p != end)
		return error_set(err, RICCI_EFORMAT, "%s: its header goes on behind the dictionary",
				 path);
	if (!h->has_descr || !h->has_order || !h->has_shape)
		return error_set(err, RICCI_EFORMAT,
				 "%s: its header lacks descr, fortran_order or shape", path);
	h->npy.bytes = type_size(h->npy.type);
	for (int d = 0; d < h->npy.rank; d++)
		if (__builtin_mul_overflow(h->npy.bytes, (size_t)h->npy.shape[d], &h->npy.bytes) ||
		    h->npy.bytes > INT64_MAX)
			return error_set(err, RICCI_EFORMAT, "%s: its shape is too large", path);
	return 0;
}

/* The magic, the version and the header's text; leaves f at the data. */
static int read_start(FILE *f, Header *h, const char *path, Error *err)
{
	unsigned char b[12];
	if (fread(b, 1, 10, f) != 10 || memcmp(b, "\x93NUMPY", 6))
		return error_set(err, RICCI_EFORMAT, "%s: not a .npy file", path);
	if (b[6] < 1 || b[6] > 3 || b[7])
		return error_set(err, RICCI_EFORMAT,
				 "%s: .npy version %d.%d; 1.0, 2.0 and 3.0 can be read", path, b[6],
				 b[7]);
	size_t n = b[8] | (size_t)b[9] << 8;
	if (b[6] > 1) {
		if (fread(b + 10, 1, 2, f) != 2)
			return error_set(err, RICCI_EFORMAT, "%s: cut short", path);
		n |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
	}
	if (n > HEADER_MAX)
		return error_set(err, RICCI_EFORMAT, "%s: a header of %zu bytes", path, n);
	char *text = mem_zalloc(n + 1);
	if (!text)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	int code = fread(text, 1, n, f) == n ? read_header(text, n, h, path, err)
					     : error_set(err, RICCI_EFORMAT, "%s: cut short", path);
	mem_free(text);
	return code;
}

static void swap_bytes(char *p, size_t bytes, size_t size)
{
	for (size_t i = 0; i < bytes; i += size)
		for (size_t a = i, b = i + size - 1; a < b; a++, b--) {
			char c = p[a];
			p[a] = p[b];
			p[b] = c;
		}
}

/* Fortran order (first index fastest) to C order. */
static void transpose(const Npy *a, const char *from, char *to)
{
	size_t size = type_size(a->type), stride[RICCI_MAX_RANK], at = 0;
	int64_t index[RICCI_MAX_RANK] = {0};
	for (int d = 0; d < a->rank; d++)
		stride[d] = d ? stride[d - 1] * (size_t)a->shape[d - 1] : size;
	for (size_t i = 0; i < a->bytes; i += size) {
		memcpy(to + i, from + at, size);
		for (int d = a->rank - 1; d >= 0; d--) {
			at += stride[d];
			if (++index[d] < a->shape[d])
				break;
			at -= stride[d] * (size_t)a->shape[d];
			index[d] = 0;
		}
	}
}

static int read_data(FILE *f, Header *h, const char *path, Error *err)
{
	Npy *a = &h->npy;
	struct stat st;
	long at = ftell(f);
	if (at >= 0 && !fstat(fileno(f), &st) && S_ISREG(st.st_mode) &&
	    a->bytes > (size_t)st.st_size - (size_t)at)
		return error_set(err, RICCI_EFORMAT,
				 "%s: cut short: its shape needs %zu bytes, %zu are there", path,
				 a->bytes, (size_t)st.st_size - (size_t)at);
	a->data = buffer_new(a->bytes);
	if (!a->data)
		return error_set(err, RICCI_ENOMEM, "%s: no memory for its %zu bytes", path,
				 a->bytes);
	if (fread(a->data, 1, a->bytes, f) != a->bytes)
		return error_set(err, ferror(f) ? RICCI_EIO : RICCI_EFORMAT, "%s: cut short", path);
	if (h->swap)
		swap_bytes(a->data, a->bytes, type_size(a->type));
	if (a->type == RICCI_BOOL)
		for (size_t i = 0; i < a->bytes; i++)
			((unsigned char *)a->data)[i] = ((unsigned char *)a->data)[i] != 0;
	if (!h->fortran || a->rank < 2)
		return 0;
	void *c = buffer_new(a->bytes);
	if (!c)
		return error_set(err, RICCI_ENOMEM, "%s: no memory for its %zu bytes", path,
				 a->bytes);
	transpose(a, a->data, c);
	buffer_free(a->data);
	a->data = c;
	return 0;
}

int npy_read(const char *path, Npy *out, Error *err)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return error_set(err, RICCI_EIO, "%s: %s", path, strerror(errno));
	Header h = {0};
	int code = read_start(f, &h, path, err);
	if (!code)
		code = read_data(f, &h, path, err);
	fclose(f);
	if (code) {
		buffer_free(h.npy.data);
		return code;
	}
	*out = h.npy;
	return 0;
}

int npy_write(const char *path, Type type, int rank, const int64_t *shape, const void *data,
	      Error *err)
{
	Text dict = {0};
	size_t bytes = type_size(type);
	for (int k = 0; k < COUNT(npy_types); k++)
		if (npy_types[k].type == type)
			text_add(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (",
				 npy_types[k].descr);
	for (int d = 0; d < rank; d++) {
		text_add(&dict, d ? " %lld," : "%lld,", (long long)shape[d]);
		bytes *= (size_t)shape[d];
	}
	/* (2,) keeps its comma, (2, 3,) reads the same as (2, 3). The data start at a multiple
	 * of 64. */
	text_add(&dict, "), }");
	while ((10 + dict.n + 1) % 64)
		text_put(&dict, " ", 1);
	text_put(&dict, "\n", 1);
	if (dict.failed) {
		text_free(&dict);
		return error_set(err, RICCI_ENOMEM, "out of memory");
	}
	unsigned char start[10] = {0x93, 'N', 'U', 'M',		 'P',
				   'Y',	 1,   0,   dict.n & 255, dict.n >> 8 & 255};
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(start, 1, 10, f) == 10 && fwrite(dict.s, 1, dict.n, f) == dict.n &&
		  fwrite(data, 1, bytes, f) == bytes && !fflush(f);
	int why = errno;
	if (f && fclose(f) && ok) {
		ok = false;
		why = errno;
	}
	text_free(&dict);
	return ok ? 0 : error_set(err, RICCI_EIO, "%s: %s", path, strerror(why));
}
