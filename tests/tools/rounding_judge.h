/* rounding_judge.h - a random program whose f32 becomes bf16 by chance, judged in sessions: each
 * result and gradient, rounded, is one of its two neighbours, on average the number itself; the
 * same seed gives the same bits, whatever the number of threads, and another seed others; the
 * interpreter draws the same numbers.
 *
 * Input: a program of random_program.h. Output: a Verdict with a message. */
#ifndef ROUNDING_JUDGE_H
#define ROUNDING_JUDGE_H

#include "tests/tools/program_compare.h"

enum { CHANCE_STEPS = 12, CHANCES = 8 };

/* A tensor of the program, and what it is rounded to. */
typedef struct Chance {
	int root;
	ricci_tensor *exact, *rounded;
	double bias, variance; /* in gaps, summed over elements and steps */
	double spread;	       /* the sum over steps of a step's bias^2 by its variance */
	float *x, *first;      /* of the last step, and of the first one */
	uint16_t *y, *first_y;
} Chance;

typedef struct Chances {
	Case c;
	ricci_graph *g;
	int n;
	Chance at[CHANCES];
	ricci_tensor *output[2 * CHANCES];
	bool stopped; /* by an error of a session */
	Text *why;
} Chances;

static int64_t chance_size(const Chance *a)
{
	return tensor_size(a->exact->node);
}

static int chances_open(Chances *h, const RandomProgram *p)
{
	Case *c = &h->c;
	int code = case_open(c, h->g, p);
	ricci_tensor *step = ricci_state(h->g, "step", RICCI_F32, 0, NULL, ricci_constant(0));
	if (!code) /* steps of training draw anew, and training assigns something */
		code = ricci_assign(h->g, step, ricci_op(h->g, "T[] = S[] + 1", step));
	if (!code)
		code = ricci_rounding(h->g, RICCI_STOCHASTIC);
	if (!code && p->number % 3 == 0)
		code = ricci_precision(h->g, RICCI_BF16);
	for (int k = 0; k < c->nresult + c->nwrt && h->n < CHANCES && !code; k++) {
		char text[60];
		ricci_tensor *t = c->root[k];
		if (t->node->type != RICCI_F32)
			continue;
		Chance *a = &h->at[h->n];
		size_t n = (size_t)tensor_size(t->node);
		const char *at = index_text[ricci_rank(t)];
		snprintf(text, sizeof text, "Q[%s] = bf16(A[%s])", at, at);
		*a = (Chance){.root = k, .exact = t, .rounded = ricci_op(h->g, text, t)};
		a->x = calloc(n, sizeof *a->x);
		a->first = calloc(n, sizeof *a->first);
		a->y = calloc(n, sizeof *a->y);
		a->first_y = calloc(n, sizeof *a->first_y);
		h->output[2 * h->n] = a->exact;
		h->output[2 * h->n++ + 1] = a->rounded;
		code = ricci_graph_error(h->g);
	}
	c->rounded = RICCI_BF16;
	return code;
}

static void chances_close(Chances *h)
{
	for (int k = 0; k < h->n; k++) {
		free(h->at[k].x);
		free(h->at[k].first);
		free(h->at[k].y);
		free(h->at[k].first_y);
	}
	case_close(&h->c);
	ricci_graph_free(h->g);
}

static ricci_session *chances_session(Chances *h, ricci_backend backend, int threads, uint64_t seed)
{
	ricci_options o = RICCI_OPTIONS(.backend = backend, .threads = threads, .static_mode = 1,
					.seed = seed);
	ricci_session *s = ricci_session_new(h->g, &o, 1, 2 * h->n, h->output);
	if (!s)
		text_add(h->why, "%s\n", ricci_error_message());
	h->stopped = !s;
	for (int k = 0; k < h->c.nbind && !h->stopped; k++)
		h->stopped = ricci_feed(s, h->c.handle[k], h->c.bind[k].data,
					ricci_bytes(h->c.handle[k])) != 0;
	return s;
}

static bool chances_step(Chances *h, ricci_session *s)
{
	bool ok = !h->stopped && !ricci_step(s);
	for (int k = 0; k < h->n && ok; k++)
		ok = !ricci_fetch(s, h->at[k].exact, h->at[k].x, ricci_bytes(h->at[k].exact)) &&
		     !ricci_fetch(s, h->at[k].rounded, h->at[k].y, ricci_bytes(h->at[k].rounded));
	if (!ok)
		text_add(h->why, "%s\n", ricci_error_message());
	h->stopped = !ok;
	return ok;
}

static float bf16_value(uint16_t bits)
{
	return (float)type_load(RICCI_BF16, &bits, 0);
}

/* The bf16 numbers on both sides of x, which lies in the range of normal ones. */
static void bf16_sides(float x, float *below, float *above)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	float near = bf16_value((uint16_t)(bits >> 16)); /* towards 0 */
	float far = near == x ? x : bf16_value((uint16_t)((bits >> 16) + 1));
	*below = x < 0 ? far : near;
	*above = x < 0 ? near : far;
}

static bool chance_permitted(Chances *h, Chance *a)
{
	double bias = 0, variance = 0;
	for (int64_t i = 0; i < chance_size(a); i++) {
		float x = a->x[i], y = bf16_value(a->y[i]), below, above;
		if (isnan(x) ? isnan(y) : !isfinite(x) ? x == y : fabsf(x) < 0x1p-126f)
			continue;
		bf16_sides(x, &below, &above);
		if (!isfinite(x) || (y != below && y != above)) {
			text_add(h->why, "%s (root %d), element %lld: %.9g is rounded to %.9g\n",
				 root_kind(&h->c, a->root), a->root, (long long)i, x, y);
			return false;
		}
		double gap = (double)above - below, up = gap > 0 ? (x - (double)below) / gap : 0;
		if (!isfinite(gap) || (i && x == a->x[i - 1]))
			continue; /* constants are rounded when graphs are made, to the nearest */
		bias += (y == above ? 1 : 0) - (gap > 0 ? up : 1);
		variance += up * (1 - up);
	}
	a->bias += bias;
	a->variance += variance;
	a->spread += variance > 10 ? bias * bias / variance : 1;
	return true;
}

/* The mean of so many draws is off by less than 6 sigma, and those of a step don't go together:
 * chi^2 of CHANCE_STEPS degrees of freedom. */
static bool chances_fair(Chances *h)
{
	for (int k = 0; k < h->n; k++) {
		const Chance *a = &h->at[k];
		if (fabs(a->bias) <= 3 + 6 * sqrt(a->variance) && a->spread < 5 * CHANCE_STEPS)
			continue;
		text_add(h->why,
			 "%s (root %d): rounding is off by %g gaps, sigma is %g, chi^2 %g\n",
			 root_kind(&h->c, a->root), a->root, a->bias, sqrt(a->variance), a->spread);
		return false;
	}
	return true;
}

/* By one thread, for some steps. */
static bool chances_drawn(Chances *h)
{
	ricci_session *s = chances_session(h, RICCI_BACKEND_TCC, 1, h->c.p->number);
	bool ok = s != NULL;
	for (int t = 0; t < CHANCE_STEPS && ok; t++) {
		ok = chances_step(h, s);
		for (int k = 0; k < h->n && ok; k++) {
			Chance *a = &h->at[k];
			ok = chance_permitted(h, a);
			if (t)
				continue;
			memcpy(a->first, a->x, ricci_bytes(a->exact));
			memcpy(a->first_y, a->y, ricci_bytes(a->rounded));
		}
	}
	ricci_session_free(s);
	return ok && chances_fair(h);
}

/* By two threads the same bits, by another seed others. */
static bool chances_again(Chances *h, uint64_t seed)
{
	bool other = seed != h->c.p->number;
	ricci_session *s = chances_session(h, RICCI_BACKEND_TCC, 2, seed);
	bool ok = s && chances_step(h, s);
	for (int k = 0; k < h->n && ok; k++) {
		const Chance *a = &h->at[k];
		bool same = !memcmp(a->x, a->first, ricci_bytes(a->exact)) &&
			    !memcmp(a->y, a->first_y, ricci_bytes(a->rounded));
		/* each element is the same again with a probability of 1 - 2 up (1 - up) */
		ok = other ? !same || a->variance / CHANCE_STEPS < 20 : same;
		if (!ok)
			text_add(h->why, "%s (root %d): %s\n", root_kind(&h->c, a->root), a->root,
				 other ? "another seed changes nothing"
				       : "two threads round otherwise than one");
	}
	ricci_session_free(s);
	return ok;
}

/* Is it what the judge or the interpreter's session says? The session's kernels don't round what they
 * keep to themselves, so that of two parts of a graph one may find a term equal to its maximum, and
 * the other not; in loops the judge knows nothing of roundings by chance. */
static bool chance_interpreted(Chances *h, const Chance *a)
{
	Case *c = &h->c;
	Text judged = {0};
	memcpy(c->got[a->root], a->first, ricci_bytes(a->exact));
	bool ok = root_agrees(c, a->root, &judged);
	text_free(&judged);
	for (int64_t i = 0; i < chance_size(a); i++)
		c->want[a->root][i] = a->x[i];
	return ok || root_agrees(c, a->root, h->why);
}

/* The judge draws as sessions do in their first step: what is rounded decides which branch is taken,
 * and with it which elements overflow. */
static int chances_judge(Chances *h, Error *err)
{
	Case *c = &h->c;
	Type coarse = c->rounded;
	int code = case_round(c, h->g, h->g->precision, true);
	c->rounded = coarse;
	return code ? error_set(err, code, "%s", h->g->ir.err.text)
		    : case_judge(c, (RandomState){c->p->number, 0}, err);
}

/* The interpreter's first step. */
static bool chances_interpreted(Chances *h)
{
	Error err = {0};
	Case *c = &h->c;
	ricci_session *s = chances_session(h, RICCI_BACKEND_INTERP, 1, c->p->number);
	bool ok = s && chances_step(h, s) && !chances_judge(h, &err);
	for (int k = 0; k < h->n && ok; k++)
		ok = chance_interpreted(h, &h->at[k]);
	if (err.code)
		text_add(h->why, "%s\n", err.text);
	ricci_session_free(s);
	return ok;
}

static Verdict rounding_verdict(const RandomProgram *p, Text *why)
{
	Chances h = {.g = ricci_graph_new(), .why = why};
	Verdict v = GOOD;
	if (chances_open(&h, p)) {
		v = h.c.nwrt ? NO_GRADIENT : INVALID;
		text_add(why, "%s\n", ricci_error_message());
	} else if (h.n && !(chances_drawn(&h) && chances_again(&h, p->number) &&
			    chances_again(&h, p->number + 1) && chances_interpreted(&h))) {
		v = h.stopped ? NO_RESULT : WRONG_ROUNDING;
	}
	chances_close(&h);
	return v;
}

#endif
