/* text.c - texts as windows of tokens, each with the token that follows.
 * Input: a file of UTF-8 or of any bytes, plain or gzip-compressed. Output: fields "samples" and
 * "targets", i32 [length]: targets are the samples one token later. Tokens are bytes, or the
 * characters of the file numbered in the order of their code points. Invariant: the alphabet is that
 * of the whole file, whatever part of it the data set has, so that parts agree. */
#include "nn/data/data.h"
#include "nn/nn.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

enum { CODES = 0x110000 }; /* of Unicode */

typedef struct Tokens {
	int users; /* fields */
	bool wide; /* tokens are uint32_t, else uint8_t */
	void *token;
	int64_t n;		       /* of the file, then of the part */
	int64_t first, length, stride; /* where the part begins; of a window; between windows */
	int64_t streams, per_stream;   /* 1 or more; windows in each */
} Tokens;

typedef struct Window { /* the source of a field */
	Tokens *tokens;
	int shift; /* 1: targets */
} Window;

static void tokens_release(Tokens *t)
{
	if (t && --t->users <= 0) {
		mem_free(t->token);
		mem_free(t);
	}
}

static void window_free(void *source)
{
	tokens_release(((Window *)source)->tokens);
	mem_free(source);
}

/* Sample k of streams is window k / streams of stream k % streams. */
static int window_read(void *source, const uint32_t *index, int64_t n, void *out, Error *err)
{
	const Window *w = source;
	const Tokens *t = w->tokens;
	int32_t *to = out;
	(void)err;
	for (int64_t i = 0; i < n; i++, to += t->length) {
		int64_t stream = index[i] % t->streams, k = index[i] / t->streams;
		int64_t at = t->first + (stream * t->per_stream + k) * t->stride + w->shift;
		for (int64_t j = 0; j < t->length; j++)
			to[j] = t->wide ? (int32_t)((uint32_t *)t->token)[at + j]
					: ((uint8_t *)t->token)[at + j];
	}
	return 0;
}

/* ---- reading */

static int text_read(const char *path, char **out, int64_t *n, Error *err)
{
	size_t room = 1 << 20, done = 0;
	int got = 1, code = 0;
	errno = 0;
	gzFile f = gzopen(path, "rbe");
	char *s = f ? mem_alloc(room) : NULL;
	if (!f)
		return error_set(err, RICCI_EIO, "cannot open %s: %s", path,
				 errno ? strerror(errno) : "out of memory");
	while (s && got > 0) {
		if (done == room) {
			char *more = mem_realloc(s, room *= 2);
			if (!more)
				mem_free(s);
			s = more;
		}
		got = s ? gzread(f, s + done,
				 (unsigned)(room - done < 1 << 26 ? room - done : 1 << 26))
			: 0;
		done += got > 0 ? (size_t)got : 0;
	}
	const char *why = gzerror(f, &code);
	int cause = errno, status = s ? 0 : error_set(err, RICCI_ENOMEM, "out of memory");
	if (!status && code == Z_ERRNO)
		status = error_set(err, RICCI_EIO, "cannot read %s at byte %zu: %s", path, done,
				   strerror(cause));
	else if (!status && code)
		status = error_set(err, RICCI_EFORMAT, "%s is %s at byte %zu%s%s", path,
				   code == Z_BUF_ERROR ? "cut short" : "damaged", done,
				   code == Z_BUF_ERROR ? "" : ": ", code == Z_BUF_ERROR ? "" : why);
	gzclose(f);
	if (status)
		mem_free(s);
	*out = status ? NULL : s;
	*n = (int64_t)done;
	return status;
}

/* The code point at s, of n bytes; *used: its bytes, 0 where there is none. */
static uint32_t character(const uint8_t *s, int64_t n, int *used)
{
	static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
	int k = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
	uint32_t c = k == 1 ? *s : *s & (0xff >> (k + 1));
	*used = 0;
	if (!k || k > n)
		return 0;
	for (int i = 1; i < k; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[k] || c >= CODES || (c >= 0xd800 && c < 0xe000))
		return 0;
	*used = k;
	return c;
}

/* Marks the characters of a text; returns their number, or -1 with the error. */
static int64_t characters_mark(const char *path, const uint8_t *s, int64_t n, uint8_t *seen,
			       Error *err)
{
	int64_t count = 0;
	int used;
	for (int64_t at = 0; at < n; at += used, count++) {
		uint32_t c = character(s + at, n - at, &used);
		if (!used) {
			error_set(err, RICCI_EFORMAT,
				  "%s is not UTF-8 at byte %lld (%02x); its bytes can be the "
				  "tokens",
				  path, (long long)at, s[at]);
			return -1;
		}
		seen[c] = 1;
	}
	return count;
}

/* seen: the characters, or NULL: bytes. */
static int alphabet_make(ricci_data *d, const char *path, const uint8_t *seen)
{
	int n = seen ? 0 : 256;
	for (int c = 0; seen && c < CODES; c++)
		n += seen[c];
	if (!n)
		return DATA_FAIL(d, RICCI_EFORMAT, "%s is empty", path);
	d->alphabet = mem_alloc((size_t)n * sizeof *d->alphabet);
	if (!d->alphabet)
		return DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	for (uint32_t c = 0; d->nalphabet < n; c++)
		if (!seen || seen[c])
			d->alphabet[d->nalphabet++] = c;
	return 0;
}

/* The token of a character; -1: not in the alphabet. */
static int64_t token_of(const ricci_data *d, uint32_t c)
{
	int low = 0, high = d->nalphabet;
	while (low < high) {
		int middle = (low + high) / 2;
		if (d->alphabet[middle] < c)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->nalphabet && d->alphabet[low] == c ? low : -1;
}

/* That of a checkpoint; RICCI_EFORMAT where it has none, or one of another kind. */
static int alphabet_load(ricci_data *d, const char *checkpoint)
{
	if (checkpoint_alphabet(checkpoint, &d->alphabet, &d->nalphabet, &d->err))
		return d->err.code;
	for (int k = 0; k < d->nalphabet; k++)
		if (d->alphabet[k] >= CODES || (k && d->alphabet[k] <= d->alphabet[k - 1]))
			return DATA_FAIL(d, RICCI_EFORMAT,
					 "%s: /alphabet is no rising row of code points",
					 checkpoint);
	return d->nalphabet
		       ? 0
		       : DATA_FAIL(d, RICCI_EFORMAT,
				   "%s holds no alphabet: ricci_train saves one where it trains "
				   "on a text",
				   checkpoint);
}

/* Does d's alphabet have all characters of the text? */
static int characters_known(ricci_data *d, const char *path, const char *checkpoint,
			    const uint8_t *s, int64_t n)
{
	int used;
	for (int64_t at = 0; at < n; at += used) {
		uint32_t c = character(s + at, n - at, &used);
		if (token_of(d, c) < 0)
			return DATA_FAIL(
				d, RICCI_EVALUE,
				"%s: the character U+%04X at byte %lld is not in the alphabet "
				"of %s",
				path, c, (long long)at, checkpoint);
	}
	return 0;
}

/* Bytes as characters: s becomes t's tokens, or is freed. */
static int tokens_of_characters(ricci_data *d, Tokens *t, const char *path, const char *checkpoint,
				char *s, int64_t n)
{
	uint8_t *seen = mem_zalloc(CODES);
	int64_t count = seen ? characters_mark(path, (uint8_t *)s, n, seen, &d->err)
			     : DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	int status = count < 0 ? d->err.code : 0, used;
	if (!status)
		status = checkpoint ? alphabet_load(d, checkpoint) : alphabet_make(d, path, seen);
	if (!status && checkpoint)
		status = characters_known(d, path, checkpoint, (uint8_t *)s, n);
	mem_free(seen);
	if (!status) {
		t->wide = d->nalphabet > 256;
		t->token = mem_alloc((size_t)(count ? count : 1) * (t->wide ? 4 : 1));
		if (!t->token)
			status = DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	}
	for (int64_t at = 0; at < n && !status; at += used) {
		uint32_t c = character((uint8_t *)s + at, n - at, &used);
		int64_t k = token_of(d, c);
		if (t->wide)
			((uint32_t *)t->token)[t->n++] = (uint32_t)k;
		else
			((uint8_t *)t->token)[t->n++] = (uint8_t)k;
	}
	mem_free(s);
	return status;
}

/* ---- the data set */

static int tokens_read(ricci_data *d, Tokens *t, const char *path, const ricci_reading *how)
{
	char *s = NULL;
	int64_t n = 0;
	if (text_read(path, &s, &n, &d->err))
		return d->err.code;
	if (!how->bytes)
		return tokens_of_characters(d, t, path, how->alphabet_of, s, n);
	t->token = s;
	t->n = n;
	d->bytes = true;
	return alphabet_make(d, path, NULL);
}

/* Which part, and the windows in it. */
static int tokens_cut(ricci_data *d, Tokens *t, const char *path, const ricci_reading *how)
{
	double to = how->from == 0 && how->to == 0 ? 1 : how->to;
	int64_t end = (int64_t)((double)t->n * to);
	t->first = (int64_t)((double)t->n * how->from);
	t->n = end - t->first;
	t->length = how->length;
	t->stride = how->stride ? how->stride : how->length;
	t->streams = how->streams ? how->streams : 1;
	int64_t windows = t->n > t->length ? (t->n - 1 - t->length) / t->stride + 1 : 0;
	t->per_stream = windows / t->streams;
	if (t->per_stream < 1)
		return DATA_FAIL(d, RICCI_EINVAL,
				 "%s is too short: windows of %lld tokens need %lld, and there are "
				 "%lld (from token %lld to %lld)",
				 path, (long long)t->length,
				 (long long)((t->streams - 1) * t->stride + t->length + 1),
				 (long long)t->n, (long long)t->first, (long long)end);
	d->streams = how->streams;
	return 0;
}

static int window_add(ricci_data *d, Tokens *t, const char *name, int shift)
{
	Window *w = mem_alloc(sizeof *w);
	if (!w)
		return DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	*w = (Window){t, shift};
	t->users++;
	Field f = {.name = (char *)name, .type = RICCI_I32, .rank = 1, .shape = {t->length}};
	f.source = (Source){.read = window_read, .free = window_free, .source = w};
	return data_add(d, t->streams * t->per_stream, &f);
}

static int reading_check(const ricci_reading *how, Error *err)
{
	if (how->length < 1 || how->length > INT32_MAX)
		return error_set(err, RICCI_EINVAL,
				 "ricci_text: a window has a length of 1 or more, not %lld",
				 (long long)how->length);
	if (how->stride < 0 || how->streams < 0 || (how->streams && how->stride))
		return error_set(err, RICCI_EINVAL,
				 "ricci_text: stride %lld and %d streams: neither is less than 0, "
				 "and windows of streams follow each other without one",
				 (long long)how->stride, how->streams);
	if (how->bytes && how->alphabet_of)
		return error_set(
			err, RICCI_EINVAL,
			"ricci_text: bytes are tokens by themselves, they take no alphabet_of");
	if (!(how->from >= 0 && how->from <= how->to && how->to <= 1))
		return error_set(err, RICCI_EINVAL,
				 "ricci_text: the part from %g to %g is not within 0 and 1",
				 how->from, how->to);
	return 0;
}

ricci_data *ricci_text(const char *path, const ricci_reading *reading)
{
	Error *err = ERROR_TELL;
	ricci_reading how;
	if (!path || !reading) {
		error_set(err, RICCI_EINVAL, "ricci_text needs a path and a ricci_reading");
		return NULL;
	}
	if (struct_take(&how, sizeof how, reading, "ricci_reading", err) ||
	    reading_check(&how, err))
		return NULL;
	ricci_data *d = ricci_data_new();
	Tokens *t = d ? mem_zalloc(sizeof *t) : NULL;
	int status = t || !d ? 0 : DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	if (t) {
		t->users = 1;
		status = tokens_read(d, t, path, &how);
		if (!status)
			status = tokens_cut(d, t, path, &how);
		if (!status)
			status = window_add(d, t, "samples", 0);
		if (!status)
			status = window_add(d, t, "targets", 1);
		tokens_release(t);
	}
	return data_finish(d, status);
}

const uint32_t *ricci_text_alphabet(const ricci_data *d, int *n)
{
	if (n)
		*n = d ? d->nalphabet : 0;
	return d ? d->alphabet : NULL;
}

int64_t ricci_text_encode(const ricci_data *d, const char *text, int32_t *tokens, int64_t room)
{
	Error *err = ERROR_TELL;
	int64_t n = 0, length = text ? (int64_t)strlen(text) : 0;
	if (!d || !d->alphabet || !text || (!tokens && room))
		return error_set(err, RICCI_EINVAL,
				 "ricci_text_encode needs a data set of ricci_text and a text");
	for (int64_t at = 0, used; at < length; at += used, n++) {
		int k = 1;
		uint32_t c = d->bytes ? (uint8_t)text[at]
				      : character((const uint8_t *)text + at, length - at, &k);
		int64_t token = k ? token_of(d, c) : -1;
		if (token < 0)
			return error_set(err, RICCI_EVALUE,
					 "byte %lld of the text begins no character of the data "
					 "set's alphabet",
					 (long long)at);
		if (n < room)
			tokens[n] = (int32_t)token;
		used = k;
	}
	return n;
}
