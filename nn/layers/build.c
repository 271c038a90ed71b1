/* build.c - layers from texts of equations.
 * Input: operands and what ranks they may have, templates of equations. Output: a tensor of the
 * first operand's graph. Invariant: after an error nothing is added, and the result is the graph's
 * inert tensor. */
#include "nn/layers/internal.h"

#include <stdarg.h>
#include <string.h>

ricci_tensor *layer_nil(ricci_tensor *x)
{
	ricci_graph *g = x ? ricci_graph_of(x) : NULL;
	return g ? &g->nil : NULL;
}

ricci_tensor *layer_fail(ricci_tensor *x, const char *fmt, ...)
{
	ricci_graph *g = x ? ricci_graph_of(x) : NULL;
	char message[1024];
	va_list ap;
	va_start(ap, fmt);
	message_vprint(message, sizeof message, fmt, ap);
	va_end(ap);
	if (g && !ricci_graph_error(g))
		error_set(&g->ir.err, RICCI_ESHAPE, "%s", message);
	return layer_nil(x);
}

bool layer_check(const char *who, int n, const Operand *operands)
{
	ricci_tensor *x = operands[0].t;
	if (!x || ricci_graph_error(ricci_graph_of(x)))
		return false;
	for (int k = 0; k < n; k++) {
		const Operand *o = &operands[k];
		if (!o->t) {
			layer_fail(x, "%s: no tensor given for %s", who, o->layout);
			return false;
		}
		if (ricci_rank(o->t) < o->low || ricci_rank(o->t) > o->high) {
			layer_fail(x, "%s: %s expected, '%s' has %d dimensions", who, o->layout,
				   ricci_name(o->t) ? ricci_name(o->t) : "", ricci_rank(o->t));
			return false;
		}
	}
	return true;
}

bool layer_options(ricci_tensor *x, void *to, size_t size, const void *options, const char *type)
{
	return !options || !struct_take(to, size, options, type, &ricci_graph_of(x)->ir.err);
}

/* Does the name s[0..n-1] occur in text? */
static bool reads(const char *text, const char *s, size_t n)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_";
	for (size_t word; *text; text += word ? word : 1) {
		word = strspn(text, letters);
		if (word == n && !memcmp(text, s, n))
			return true;
	}
	return false;
}

/* The text without those of its first values that are numbers and that no equation reads. */
static Text used(const Text *text)
{
	Text t = {0};
	const char *s = text->s, *end;
	for (size_t n; n = strcspn(s, " ["), !strncmp(s + n, " = ", 3); s = end + 2) {
		end = strchr(s, ';');
		if (!end || strspn(s + n + 3, "-0123456789.e+") != (size_t)(end - s) - n - 3)
			break;
		if (reads(end, s, n))
			text_put(&t, s, (size_t)(end - s) + 2);
	}
	text_put(&t, s, strlen(s));
	return t;
}

void layer_results(Text *text, int n, ricci_tensor *const *operands, int nresult,
		   ricci_tensor **results)
{
	ricci_graph *g = ricci_graph_of(operands[0]);
	Text t = text->s ? used(text) : (Text){0};
	int failed = text->failed || t.failed || !t.s;
	if (failed)
		error_set(&g->ir.err, RICCI_ENOMEM, "out of memory");
	else
		failed = ricci_ops(g, t.s, n, operands, &(int){nresult}, results);
	for (int k = 0; k < nresult && failed; k++)
		results[k] = &g->nil;
	text_free(&t);
	text_free(text);
}

ricci_tensor *layer_build(Text *text, int n, ricci_tensor *const *operands)
{
	ricci_tensor *y;
	layer_results(text, n, operands, 1, &y);
	return y;
}

/* Appends the n characters at s, without a comma behind "[". */
static void put(Text *t, const char *s, size_t n)
{
	if (n && *s == ',' && t->n && t->s[t->n - 1] == '[')
		s++, n--;
	if (n)
		text_put(t, s, n);
}

/* A part of a template for dimension d. */
static void put_numbered(Text *t, const char *s, const char *end, int d)
{
	for (const char *hash; s < end; s = hash + 1) {
		hash = memchr(s, '#', (size_t)(end - s));
		if (!hash)
			hash = end;
		put(t, s, (size_t)(hash - s));
		if (hash < end)
			text_add(t, "%d", d);
	}
}

void layer_text(Text *t, int dims, const char *template)
{
	for (const char *s = template; *s;) {
		size_t n = strcspn(s, "{");
		put(t, s, n);
		s += n;
		if (*s) {
			const char *end = strchr(s, '}');
			for (int d = 0; d < dims; d++)
				put_numbered(t, s + 1, end, d);
			s = end + 1;
		}
	}
}

void layer_integer(Text *t, const char *name, int64_t v)
{
	text_add(t, "%s = %lld; ", name, (long long)v);
}

void layer_integers(Text *t, const char *name, int dims, const int64_t *v)
{
	for (int d = 0; d < dims; d++)
		text_add(t, "%s%d = %lld; ", name, d, (long long)v[d]);
}

void layer_real(Text *t, const char *name, double v)
{
	text_add(t, "%s = %.17g; ", name, v);
}

ricci_tensor *layer_of(int dims, const char *template, int n, ricci_tensor *const *operands)
{
	Text t = {0};
	layer_text(&t, dims, template);
	return layer_build(&t, n, operands);
}

bool layer_shape(ricci_tensor *x, const char *who, const char *what, const ricci_tensor *t,
		 int rank, const int64_t *shape)
{
	bool same = ricci_rank(t) == rank;
	Text want = {0}, got = {0};
	for (int d = 0; d < rank; d++)
		same = same && ricci_extent(t, d) == shape[d];
	for (int d = 0; d < rank && !same; d++)
		text_add(&want, "%s%lld", d ? "," : "", (long long)shape[d]);
	for (int d = 0; d < ricci_rank(t) && !same; d++)
		text_add(&got, "%s%lld", d ? "," : "", (long long)ricci_extent(t, d));
	if (!same)
		layer_fail(x, "%s: %s is [%s], it must be [%s]", who, what, got.s ? got.s : "",
			   want.s ? want.s : "");
	text_free(&want);
	text_free(&got);
	return same;
}
