/* product.c - a library's matrix product on a device, as numbers: written, read, and what it touches.
 *
 * Invariant: a text that is read was perhaps written by no one we know; product_inside judges it. */
#include "jit/library/library.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of a matrix: its buffer and place, the elements from one to the next. */
static void matrix_print(Text *out, const ProductMatrix *x)
{
	text_add(out, ", %s %d %" PRId64 " by %" PRId64 " %" PRId64 " %" PRId64, type_name(x->type),
		 x->buf, x->at, x->row, x->col, x->batch);
	for (int k = 0; k < PRODUCT_LOOPS; k++)
		text_add(out, " %" PRId64, x->loop[k]);
}

void product_print(Text *out, const KernelProduct *p)
{
	text_add(out,
		 "library %d %" PRId64 " phase %d size %" PRId64 " %" PRId64 " %" PRId64
		 " times %" PRId64,
		 p->library, p->version, p->phase, p->m, p->n, p->k, p->batch);
	for (int k = 0; k < PRODUCT_LOOPS; k++)
		text_add(out, " %" PRId64, p->loop[k]);
	text_add(out, " work %" PRId64 " %" PRId64, p->work_at, p->work);
	matrix_print(out, &p->a);
	matrix_print(out, &p->b);
	matrix_print(out, &p->d);
}

/* ---- reading: *s moves behind what was read, and is NULL from the first thing on that is none */

static void read_word(const char **s, const char *word)
{
	size_t n = strlen(word);
	if (*s)
		*s = strncmp(*s, word, n) ? NULL : *s + n;
}

static int64_t read_number(const char **s)
{
	char *end = NULL;
	long long v = *s ? strtoll(*s, &end, 10) : 0;
	*s = end == *s ? NULL : end;
	return v;
}

static int read_int(const char **s)
{
	int64_t v = read_number(s);
	if (v != (int)v)
		*s = NULL;
	return (int)v;
}

static void read_matrix(const char **s, ProductMatrix *x)
{
	char type[8] = "";
	read_word(s, ", ");
	size_t n = *s ? strcspn(*s, " ") : 0;
	if (*s && n < sizeof type)
		memcpy(type, *s, n);
	*s = *s && type_parse(type, &x->type) ? *s + n : NULL;
	x->buf = read_int(s);
	x->at = read_number(s);
	read_word(s, " by");
	x->row = read_number(s);
	x->col = read_number(s);
	x->batch = read_number(s);
	for (int k = 0; k < PRODUCT_LOOPS; k++)
		x->loop[k] = read_number(s);
}

const char *product_parse(const char *s, KernelProduct *p)
{
	memset(p, 0, sizeof *p);
	read_word(&s, "library ");
	p->library = read_int(&s);
	p->version = read_number(&s);
	read_word(&s, " phase");
	p->phase = read_int(&s);
	read_word(&s, " size");
	p->m = read_number(&s);
	p->n = read_number(&s);
	p->k = read_number(&s);
	read_word(&s, " times");
	p->batch = read_number(&s);
	for (int k = 0; k < PRODUCT_LOOPS; k++)
		p->loop[k] = read_number(&s);
	read_word(&s, " work");
	p->work_at = read_number(&s);
	p->work = read_number(&s);
	read_matrix(&s, &p->a);
	read_matrix(&s, &p->b);
	read_matrix(&s, &p->d);
	return s;
}

/* ---- judging */

bool product_available(const KernelProduct *p)
{
	const Library *l = library_row(p->library);
	return !p->m ||
	       (l && l->multiplies && library_ready(l, NULL, 0) && l->number() == p->version);
}

/* As far as sizes and steps go that no device has memory for. */
static bool is_size(int64_t v)
{
	return v >= 1 && v < INT32_MAX;
}

static bool reach_add(int64_t *last, int64_t extent, int64_t stride)
{
	int64_t more;
	return is_size(extent) && stride >= 0 &&
	       !__builtin_mul_overflow(extent - 1, stride, &more) &&
	       !__builtin_add_overflow(*last, more, last);
}

/* A matrix of so many rows and columns, one of which lies in one piece: elements of lines don't meet. */
static bool matrix_inside(const KernelProduct *p, const ProductMatrix *x, int64_t rows,
			  int64_t cols, int nbuf, const size_t *bytes, size_t shared)
{
	bool down = x->row == 1 && x->col >= rows, along = x->col == 1 && x->row >= cols;
	int64_t last = x->at;
	if (x->buf < -1 || x->buf >= nbuf || x->at < 0 || !(down || along) || !is_size(x->row) ||
	    !is_size(x->col))
		return false;
	bool good = reach_add(&last, rows, x->row) && reach_add(&last, cols, x->col) &&
		    reach_add(&last, p->batch, x->batch);
	for (int k = 0; k < PRODUCT_LOOPS; k++)
		good = good && reach_add(&last, p->loop[k], x->loop[k]);
	size_t room = (x->buf < 0 ? shared : bytes[x->buf]) / type_size(x->type);
	return good && (uint64_t)last < room;
}

bool product_inside(const KernelProduct *p, int ninput, int nbuf, const size_t *bytes,
		    size_t shared)
{
	const Library *l = library_row(p->library);
	if (!p->m)
		return true;
	bool types =
		l && l->multiplies && p->a.type == p->b.type && l->multiplies(p->a.type, p->d.type);
	bool work = p->work >= 0 && p->work_at >= 0 && (uint64_t)p->work <= shared &&
		    (uint64_t)p->work_at <= shared - (uint64_t)p->work;
	return types && work && (p->d.buf < 0 || p->d.buf >= ninput) &&
	       matrix_inside(p, &p->a, p->m, p->k, nbuf, bytes, shared) &&
	       matrix_inside(p, &p->b, p->k, p->n, nbuf, bytes, shared) &&
	       matrix_inside(p, &p->d, p->m, p->n, nbuf, bytes, shared);
}
