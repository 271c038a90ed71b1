/* terms_draw.c - a trial's data, of which few terms tell what the results should be.
 *
 * Input: a usable kind of a Terms, a trial, a run's number. Output: the trial's inputs, and in x->s
 * what the results at the chosen elements should be, with their bounds. */
#include "runtime/verify/terms.h"
#include <math.h>

enum { POOL = 1021, FEW = 16 };

/* Of extremes and products those that must show in one term alone come before the last run, which is
 * of numbers of many magnitudes: few of them, the last, the first. */
int terms_runs(const Terms *x, TermsKind kind)
{
	if (!x->usable[kind])
		return 0;
	if (comp_reduce(x->copy.member[0]) != RED_ADD)
		return 5;
	return kind == TERMS_BASE && !x->usable[TERMS_ZEROS] ? 2 : 1;
}

static bool term_marked(const Terms *x, int run, int t)
{
	bool few = t % (1 + x->n / FEW) == 0;

	switch (comp_reduce(x->copy.member[0])) {
	case RED_ADD:
		return true;
	case RED_MUL: /* of more the product leaves what numbers hold */
		return run < 2 || run > 3 ? few : t == (run == 2 ? x->n - 1 : 0);
	default:
		return run == 0 || run > 3 || (run == 1 ? few : t == (run == 2 ? x->n - 1 : 0));
	}
}

/* Numbers of all inputs for the chosen terms; each is an array of POOL. */
static int numbers_draw(const Terms *x, DrawKind kind, uint64_t seed, void **number, Error *err)
{
	int in = x->task->sub.ninput;
	Drawn *drawn = mem_zalloc(((size_t)in + 1) * sizeof *drawn);
	bool good = drawn != NULL;
	int code;

	for (int i = 0; i < in && good; i++) {
		drawn[i] = (Drawn){x->marked[i] ? POOL : 0, 0, true};
		if (x->marked[i])
			good = (number[i] = mem_zalloc(POOL * sizeof(double))) != NULL;
	}
	code = good ? task_draw_part(x->task, seed, kind, number, drawn, err)
		    : error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	mem_free(drawn);
	return code;
}

static void numbers_free(int n, void **number)
{
	for (int i = 0; number && i < n; i++)
		mem_free(number[i]);
	mem_free(number);
}

/* The number for place `at` of input i; 0 would not show. */
static void mark(const Terms *x, int i, int64_t at, uint64_t seed, const void *number, void *buf)
{
	Type t = (Type)x->task->sub.input[i]->type;
	uint64_t state = ((uint64_t)at * 16 + (uint64_t)i) * 0x9e3779b97f4a7c15u + seed;
	size_t from = (sample_next(&state), sample_next(&state)) % POOL;

	if (type_is_float(t)) {
		double v = type_load(t, number, from);

		type_store(t, buf, (size_t)at, v == 0 ? 1 : v);
	} else {
		int64_t v = type_load_int(t, number, from);

		type_store_int(t, buf, (size_t)at, v == 0 ? 1 : v);
	}
}

/* From all chosen terms together and one of the others. */
static void terms_total(Terms *x, double value, double mag, double other, double omag, double eps,
			double exact, int e)
{
	const Node *c = x->copy.member[0];
	double rest = terms_count(x) - x->n;

	switch (rest > 0 ? comp_reduce(c) : RED_NONE) {
	case RED_ADD:
		value += rest * other;
		mag += rest * omag;
		break;
	case RED_MAX:
	case RED_MIN:
		value = scalar_binary(comp_reduce(c) == RED_MAX ? OP_MAX : OP_MIN, value, other);
		mag = fmax(mag, omag);
		break;
	default: /* of a product the others are 1 */
		break;
	}
	x->s.value[0][e] = value;
	/* zeros are added without rounding */
	x->s.bound[0][e] =
		result_bound(c, rest * omag == 0 ? x->n : terms_count(x), eps, exact, value, mag);
	if (x->s.bound[0][e] != 0 && comp_reduce(c) == RED_ADD) /* like terms round one way */
		x->s.bound[0][e] += 4 * eps * terms_count(x) * rest * omag;
}

static int terms_expect(Terms *x, TermsKind kind, double base, void *const *input, Error *err)
{
	Node *c = x->copy.member[0], *e = kind == TERMS_ZEROS ? NULL : terms_base_body(x, base);
	size_t m = (size_t)x->nelement;
	double *v = arena_alloc(&x->copy.ir.arena, 4 * m * sizeof *v), *other = v + 2 * m;
	double eps = arithmetic_epsilon(&x->copy.ir, c);
	int code = terms_values(x, comp_body(c), TERMS_TOGETHER, input, v, v + m, err);

	if (!code && e)
		code = terms_values(x, e, TERMS_ANY, input, other, other + m, err);
	for (size_t i = 0; i < m && !code; i++)
		terms_total(x, v[i], v[m + i], other[i], other[m + i], eps,
			    kind == TERMS_BASE ? 0 : x->exact, (int)i);
	return code;
}

/* Can the elements be compared? */
static bool terms_finite(const Terms *x)
{
	bool finite = true;

	for (int e = 0; e < x->nelement; e++)
		finite = finite && isfinite(x->s.value[0][e]) && isfinite(x->s.bound[0][e]);
	return finite;
}

static int terms_draw_marks(Terms *x, Trial *v, TermsKind kind, DrawKind numbers, int run,
			    uint64_t seed, Error *err)
{
	int in = x->task->sub.ninput, code;
	double base = kind == TERMS_BASE ? x->base : kind == TERMS_ONES;
	void **number = mem_zalloc(((size_t)in + 1) * sizeof *number);

	if (!number)
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's verification");
	code = numbers_draw(x, numbers, seed, number, err);
	for (int i = 0; i < in && !code; i++) {
		if (x->filled[i])
			trial_fill(v, i, base);
		for (int k = 0; x->marked[i] && k < x->nplace[i]; k++)
			if (x->place[i][k] >= 0 && term_marked(x, run, k % x->n))
				mark(x, i, x->place[i][k], seed, number[i], v->buf[i]);
	}
	numbers_free(in, number);
	if (code)
		return code;
	IR_ENTER(&x->copy.ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	code = terms_expect(x, kind, base, v->buf, err);
	IR_LEAVE(&x->copy.ir);
	return code;
}

int terms_draw(Terms *x, Trial *v, TermsKind kind, int run, uint64_t seed, Error *err)
{
	DrawKind numbers = kind != TERMS_BASE		    ? DRAW_WHOLE
			   : run == terms_runs(x, kind) - 1 ? DRAW_WIDE
							    : DRAW_UNIT;
	int code;

	terms_fill(x, kind != TERMS_ZEROS);
	code = trial_draw(v, seed, DRAW_WHOLE, x->filled, err);
	if (!code)
		code = terms_draw_marks(x, v, kind, numbers, run, seed, err);
	if (!code && numbers == DRAW_UNIT && !terms_finite(x))
		code = terms_draw_marks(x, v, kind, DRAW_POSITIVE, run, seed, err);
	return code;
}
