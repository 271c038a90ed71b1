/* compare.c - all results of a kernel against another kernel's of the same inputs.
 *
 * Neither is taken for right: elements that differ by more than what sampled ones may be wrong by
 * are checked by the interpreter, as many as the points allow, spread over all that differ. So where
 * an expression jumps, or the other kernel is the wrong one, nothing is held against this one.
 */
#include "runtime/verify/verify.h"
#include <math.h>
#include <string.h>

enum { MOST = 200 };

typedef struct Differing { /* every stride-th element that differs, and the one that does most */
	int64_t n, stride, at[MOST + 1];
	int kept, room;
	double most;
} Differing;

static void differing_add(Differing *d, int64_t at, double by)
{
	if (d->n++ % d->stride == 0) {
		if (d->kept == d->room) { /* every second of them stays */
			for (int i = 0; 2 * i < d->kept; i++)
				d->at[i] = d->at[2 * i];
			d->kept = (d->kept + 1) / 2;
			d->stride *= 2;
		}
		if ((d->n - 1) % d->stride == 0)
			d->at[d->kept++] = at;
	}
	if (!(by <= d->most)) {
		d->most = isnan(by) ? INFINITY : by;
		d->at[MOST] = at;
	}
}

/* What elements of member m may differ by: twice the largest bound of a sampled one. */
static double sample_distance(const Sample *s, int m)
{
	double bound = 0;

	for (int e = 0; e < s->count[m]; e++)
		if (isfinite(s->bound[m][e]))
			bound = fmax(bound, 2 * s->bound[m][e]);
	return bound;
}

static void differing_find(const Node *c, const void *got, const void *other, Window w,
			   double distance, Differing *d)
{
	Type type = (Type)c->type;
	size_t size = type_size(type), from = (size_t)w.from, n = (size_t)w.to;
	bool differ = memcmp((const char *)got + from * size, (const char *)other + from * size,
			     (n - from) * size);

	for (size_t e = from; e < n && differ; e++) {
		bool real = type_is_float(type);
		double a = real ? type_load(type, got, e) : (double)type_load_int(type, got, e);
		double b = real ? type_load(type, other, e) : (double)type_load_int(type, other, e);

		if (a != b && !(fabs(a - b) <= distance) && !(isnan(a) && isnan(b)))
			differing_add(d, (int64_t)e, fabs(a - b));
	}
}

/* Points that an element of member m costs: those of its row where there are rows. */
static double element_points(const Subgraph *s, int m)
{
	double points = 0;

	for (int k = 0; k < s->nmember; k++)
		points +=
			comp_points(s->member[k]) / (double)(!s->rows ? tensor_size(s->member[k])
							     : s->fold[m] ? 1
									  : subgraph_row_count(s));
	return points < 1 ? 1 : points;
}

/* Are they as follows from the results that were stored before them? What differs because those do is
 * right by itself. */
static bool differing_follow(const Task *t, Checking these, void *const *input, void *const *got)
{
	Sample s = {0};
	bool right;

	these.stored = got;
	right = t->sub.nmember > 1 && !sample_expect(t, input, &these, &s, NULL) &&
		!sample_check(t, &s, got, NULL);
	sample_free(&s);
	return right;
}

static int differing_check(const Task *t, int m, const Differing *d, const Checking *how,
			   void *const *input, void *const *got, Error *err)
{
	int64_t at[MOST + 1];
	Chosen chosen = {m, 0, at};
	Checking these = *how;
	Sample s = {0};
	Error wrong = {0};
	int code;

	for (int i = 0; i < d->kept; i++)
		at[chosen.n++] = d->at[i];
	at[chosen.n++] = d->at[MOST];
	these.chosen = &chosen;
	if (differing_follow(t, these, input, got))
		return 0;
	code = sample_expect(t, input, &these, &s, err);
	if (!code)
		code = sample_validate(t, input, how->rs, &s, got, &wrong, err);
	if (!code && wrong.code)
		code = error_set(err, wrong.code, "%s", wrong.text);
	sample_free(&s);
	return code;
}

int results_compare(const Task *t, const Sample *s, const Checking *how, void *const *input,
		    void *const *got, void *const *other, const Windows *in, Error *err)
{
	int code = 0;

	for (int m = 0, out = 0; m < t->sub.nmember && !code; m++) {
		double points = element_points(&t->sub, m);
		Differing d = {.stride = 1, .room = (int)fmax(2, fmin(MOST, how->points / points))};

		if (!t->sub.stored[m])
			continue;
		Window all = {0, tensor_size(t->sub.member[m])};
		Windows w = in ? in[out] : (Windows){1, &all};

		for (int i = 0; i < w.n && points <= how->limit; i++)
			differing_find(t->sub.member[m], got[out], other[out], w.at[i],
				       s->count ? sample_distance(s, m) : 0, &d);
		if (d.n)
			code = differing_check(t, m, &d, how, input, got, err);
		out++;
	}
	return code;
}
