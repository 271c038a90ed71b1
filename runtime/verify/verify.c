/* verify.c - no kernel is trusted: it runs on drawn data and must agree with the interpreter.
 *
 * Input: a task and its kernel. It runs (trial.c) once for each kind of data: numbers of one
 * magnitude, for the tightest bounds; small integers, whose sums have no rounding however long they
 * are, so that one lost term shows; and numbers of many magnitudes and around the equations'
 * constants, so that every branch is taken. Sampled elements of each are compared with the
 * interpreter's, and all with those of an admitted kernel, where there is one (compare.c).
 */
#include "runtime/verify/terms.h"
#include <math.h>
#include <string.h>

/* Points of the domain that a kind of data costs the interpreter, and elements that it checks. */
static const double round_points = 50e3, costly_points = 500e3;
enum { SAMPLE_MOST = 6000, LARGE_MOST = 1500 };
static const RandomState drawn = {7, 3};

typedef struct Round {
	DrawKind kind, other; /* other: where too few results are numbers that can be compared */
} Round;
static const Round rounds[] = {
	{DRAW_WHOLE, DRAW_WHOLE},
	{DRAW_UNIT, DRAW_POSITIVE},
	{DRAW_WIDE, DRAW_WIDE},
};
static const Round again = {DRAW_UNIT, DRAW_POSITIVE};

/* Sums longer than this are checked by few of their terms, where that can be. */
static const double long_points = 1e7;
enum { TERM_ELEMENTS = 8, TERM_POINTS = 512 };
/* Seconds a point that any kernel takes at most. */
static const double slow_point = 2e-8;

/* A maximum shows a mistake only where the lost term is the largest: few of them run more often,
 * until so many were computed. Runs that are checked by all terms are as many as the others. */
enum { MAXIMA = 600, MOST_RUNS = 16, MOST_WHOLE = 3, EXTREME_ELEMENTS = 64, EXTREME_POINTS = 32 };

/* few: by few of their terms. */
static int extra_runs(const Task *t, bool few)
{
	double least = INFINITY;

	for (int m = 0; m < t->sub.nmember; m++) {
		const Node *c = t->sub.member[m];
		Reduce how = comp_reduce(c);

		if (how == RED_MAX || how == RED_MIN)
			least = fmin(least, (double)tensor_size(c));
	}
	return (int)fmin(few ? MOST_RUNS : MOST_WHOLE, MAXIMA / least);
}

/* ---- against an admitted kernel ---- */
static int oracle_reference(Trial *v, const Sample *s, const Checking *how, const Kernel *reference,
			    Error *err)
{
	const Task *t = v->task;
	int in = t->sub.ninput, code = trial_room_kept(v, err);
	void **buf = mem_zalloc(((size_t)v->nbuf + 1) * sizeof *buf);
	Windows *windows = mem_zalloc(((size_t)v->nbuf + 1) * sizeof *windows);
	Error own = {0};
	KernelEnv env = {7,
			 3,
			 buffer_new(reference->shape.scratch),
			 buffer_new(reference->shape.shared),
			 reference,
			 &own};

	if (!code && !(buf && windows && env.scratch && env.shared))
		code = error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	for (int i = 0; i < v->nbuf && !code; i++) {
		buf[i] = i < in ? v->buf[i] : v->kept[i].data;
		if (i >= in)
			windows[i - in] = (Windows){v->fence[i].nwindow, v->fence[i].window};
	}
	if (!code) {
		kernel_run(reference, buf, &env, 0, reference->shape.parts);
		code = own.code ? error_set(err, own.code, "%s", own.text) : 0;
	}
	if (!code) {
		code = results_compare(t, s, how, v->buf, v->buf + in, buf + in, windows, err);
	}
	mem_free(buf);
	mem_free(windows);
	buffer_free(env.scratch);
	buffer_free(env.shared);
	return code;
}

/* ---- rounds ---- */
/* Is what is compared of them exact? */
static bool sample_exact(const Sample *s)
{
	bool exact = s->n > 0;

	for (int m = 0; m < s->nmember; m++)
		for (int e = 0; e < s->count[m]; e++)
			exact = exact && s->bound[m][e] == 0;
	return exact;
}

static Checking round_judging(const Task *t, const Kernel *k, DrawKind kind)
{
	return (Checking){drawn,
			  round_points,
			  INFINITY,
			  trial_large(t) ? LARGE_MOST : SAMPLE_MOST,
			  kind == DRAW_WHOLE ? DRAW_WHOLE_MOST : 0,
			  NULL,
			  1,
			  NULL,
			  schedule_staged(&k->schedule)};
}

/* Draws inputs, and what the sampled results should be. */
static int round_draw(Trial *v, DrawKind kind, Sample *s, Error *err)
{
	Checking how = round_judging(v->task, v->kernel, kind);
	int code = trial_draw(v, 1 + v->runs, kind, NULL, err);

	return code ? code : sample_expect(v->task, v->buf, &how, s, err);
}

/* Can most of them be compared? */
static bool sample_useful(const Sample *s)
{
	int numbers = 0, all = 0;

	for (int m = 0; m < s->nmember; m++)
		for (int e = 0; e < s->count[m]; e++, all++)
			numbers += isfinite(s->value[m][e]) && isfinite(s->bound[m][e]);
	return 2 * numbers >= all;
}

static int round_check(const Trial *v, Sample *s, Error *err)
{
	void *const *out = v->buf + v->task->sub.ninput;
	Error first = {0};
	int code = trial_fences(v, err);

	if (!code)
		code = sample_validate(v->task, v->buf, drawn, s, out, &first, err);
	if (!code && first.code) {
		trial_written(v, err); /* what it never wrote is wrong, and says why */
		code = error_set(err, first.code, "%s", first.text);
	}
	return code;
}

/* Parts may run in any order, and at the same time: none may write or read what another writes. So
 * they leave the same bits one by one, from the first and from the last, as they did together. */
static int round_orders(Trial *v, double limit, Error *err)
{
	static const TrialOrder order[] = {TRIAL_FORWARDS, TRIAL_BACKWARDS};
	int code = trial_ordered(v) ? trial_keep(v, err) : 0;

	for (int i = 0; i < COUNT(order) && trial_ordered(v) && !code; i++) {
		code = trial_run(v, order[i], limit, err);
		if (!code)
			code = trial_fences(v, err);
		if (!code)
			code = trial_same(v, err);
		if (!code)
			code = trial_keep(v, err);
	}
	return code;
}

/* thorough: with all orders of its parts, and against the reference where there is one. exact: set
 * where no checked result rounds. */
static int round_run(Trial *v, const Round *r, bool thorough, const Kernel *reference, double limit,
		     bool *exact, Error *err)
{
	Sample s = {0};
	DrawKind kind = r->kind;
	int code = round_draw(v, kind, &s, err);

	if (!code && r->other != r->kind && !sample_useful(&s)) {
		sample_free(&s);
		kind = r->other;
		code = round_draw(v, kind, &s, err);
	}
	*exact = !code && sample_exact(&s);
	if (!code)
		code = trial_run(v, TRIAL_TOGETHER, limit, err);
	if (!code)
		code = round_check(v, &s, err);
	if (!code && thorough)
		code = round_orders(v, limit, err);
	if (!code && thorough && reference) {
		Checking how = round_judging(v->task, v->kernel, kind);

		code = oracle_reference(v, &s, &how, reference, err);
	}
	sample_free(&s);
	return code;
}

/* ---- long sums ---- */
static double task_longest(const Task *t)
{
	double longest = 0;

	for (int m = 0; m < t->sub.nmember; m++)
		longest = fmax(longest, sample_length(t->sub.member[m]));
	return longest;
}

static int terms_once(Trial *v, Terms *x, TermsKind kind, int run, uint64_t seed, double limit,
		      Error *err)
{
	int code = terms_draw(x, v, kind, run, seed, err);

	if (!code)
		code = trial_run(v, TRIAL_TOGETHER, limit, err);
	if (!code)
		code = trial_fences(v, err);
	return code ? code : sample_check(v->task, &x->s, v->buf + v->task->sub.ninput, err);
}

/* Of all kinds of data that tell something, checked by few terms. */
static int terms_run(Trial *v, Terms *x, uint64_t seed, bool thorough, const Kernel *reference,
		     double limit, Error *err)
{
	Checking how = round_judging(v->task, v->kernel, DRAW_UNIT);
	int code = 0;

	for (TermsKind kind = 0; kind < TERMS_KINDS; kind++)
		for (int run = 0; run < terms_runs(x, kind) && !code; run++) {
			code = terms_once(v, x, kind, run, seed, limit, err);
			if (!code && thorough && run == terms_runs(x, kind) - 1)
				code = round_orders(v, limit, err);
		}
	if (!code && reference) {
		how.limit = long_points;
		code = oracle_reference(v, &x->s, &how, reference, err);
	}
	return code;
}

/* All of a task that is checked so. */
static int terms_verify(const Task *t, const Kernel *k, Terms *x, bool thorough,
			const Kernel *reference, bool isolated, double limit, Error *err)
{
	Places *places = mem_zalloc(((size_t)t->sub.ninput + 1) * sizeof *places);
	Trial v = {0};
	int code = places ? 0 : error_set(err, RICCI_ENOMEM, "out of memory for a verification");

	for (int i = 0; i < t->sub.ninput && !code; i++)
		places[i] = (Places){x->nplace[i], x->place[i]};
	if (!code)
		code = trial_new(&v, t, k, isolated, &x->s, places, err);
	if (!code)
		code = terms_run(&v, x, 1, thorough, reference, limit, err);
	if (!code)
		code = trial_written(&v, err);
	trial_free(&v);
	mem_free(places);
	return code;
}

int verify_terms(const Task *t, const Kernel *k, bool *checked, Error *err)
{
	Terms x;
	int code = terms_new(&x, t, TERM_ELEMENTS, TERM_POINTS, 1, err);

	*checked = !code && terms_usable(&x);
	if (*checked)
		code = terms_verify(t, k, &x, false, NULL, true, verify_seconds(t), err);
	terms_free(&x);
	return code;
}

/* ---- all ---- */
static int rounds_run(Trial *v, const Kernel *reference, double limit, Error *err)
{
	bool costly = task_longest(v->task) > costly_points, exact = false, enough = false;
	int code = 0;

	for (int i = 0; i < COUNT(rounds) && !code && !enough; i++) {
		bool last = rounds[i].kind == DRAW_UNIT || (i == 0 && costly);

		code = round_run(v, &rounds[i], last, reference, limit, &exact, err);
		/* sums that are right to the last bit, and nothing else to see */
		enough = i == 0 && exact && costly;
	}
	return code;
}

static int extremes_run(Trial *v, double limit, Error *err)
{
	bool exact;
	Terms x;
	int code = terms_new(&x, v->task, 1, 2, 1, err);
	bool few = !code && x.usable[TERMS_BASE] && !trial_large(v->task);
	int runs = code ? 0 : extra_runs(v->task, few);

	terms_free(&x);
	for (int i = 0; i < runs && !code; i++) {
		if (!few) {
			code = round_run(v, &again, false, NULL, limit, &exact, err);
			continue;
		}
		code = terms_new(&x, v->task, EXTREME_ELEMENTS, EXTREME_POINTS, 2 + (uint64_t)i,
				 err);
		if (!code)
			code = terms_once(v, &x, TERMS_BASE, 0, 2 + (uint64_t)i, limit, err);
		terms_free(&x);
	}
	return code;
}

/* By all of their terms. */
static int whole_verify(const Task *t, const Kernel *k, const Kernel *reference, bool isolated,
			double limit, Error *err)
{
	Trial v = {0};
	Sample places = {0};
	Checking how = round_judging(t, k, DRAW_UNIT);
	int code =
		!trial_large(t) || sample_choose(t, &how, &places)
			? trial_new(&v, t, k, isolated, trial_large(t) ? &places : NULL, NULL, err)
			: error_set(err, RICCI_ENOMEM, "out of memory for a verification");

	if (!code)
		code = rounds_run(&v, reference, limit, err);
	if (!code)
		code = extremes_run(&v, limit, err);
	if (!code)
		code = trial_written(&v, err);
	trial_free(&v);
	sample_free(&places);
	return code;
}

int verify_within(const Task *t, const Kernel *k, const Kernel *reference, bool isolated,
		  double limit, Error *err)
{
	Terms x = {0};
	int code = 0;
	bool few = false;

	if (task_longest(t) > long_points) {
		code = terms_new(&x, t, TERM_ELEMENTS, TERM_POINTS, 1, err);
		few = !code && terms_usable(&x);
	}
	if (few)
		code = terms_verify(t, k, &x, true, reference, isolated, limit, err);
	terms_free(&x);
	return few || code ? code : whole_verify(t, k, reference, isolated, limit, err);
}

double verify_seconds(const Task *t)
{
	double points = 0;

	for (int m = 0; m < t->sub.nmember; m++)
		points += comp_points(t->sub.member[m]);
	return 10 + slow_point * points;
}

int verify_kernel(const Task *t, const Kernel *k, bool isolated, Error *err)
{
	return verify_within(t, k, NULL, isolated, verify_seconds(t), err);
}
