/* random_index.h - random programs' state, and random index expressions over the axes of an equation:
 * affine forms of any sign, nested quotients and remainders, choices, clamps, gathers, known
 * integers. Invariant: an index comes with the interval of its values. */
#ifndef RANDOM_INDEX_H
#define RANDOM_INDEX_H

#include "core/core.h"

#include <string.h>

enum { PROGRAM_TENSORS = 36, PROGRAM_OPERANDS = 12, PROGRAM_DIMS = 6, PROGRAM_AXES = 8 };

/* What an operand is in the body of a loop: the same in all steps, a row of one that has a row for
 * each step, or what the step before left. */
typedef enum { CONSTANT, SLICE, STATE } LoopRole;

typedef struct Operand {
	char name[8];
	Type type;
	int rank;
	int64_t shape[PROGRAM_DIMS]; /* of a slice: of a step's row */
	int64_t low, high;	     /* integers: the range of the data */
	bool local;		     /* assigned by an equation, no operand */
	bool index;		     /* it indexes, so its data must stay in that range */
	bool integer;		     /* a known integer, `low`, which stands without brackets */
	LoopRole role;
	char next[8]; /* of a state: the tensor that it becomes */
} Operand;

/* The loop around the equations of a program: `steps` is 0 where there is none. */
typedef struct RandomLoop {
	int steps, length;		   /* length: of the steps that are done; -1: all */
	int segment, repeat;		   /* repeat: so often, by a loop around it; 0: alone */
	bool backwards, recompute, region; /* region: the body is a region that is recomputed */
	char counter[8];		   /* a state of whole numbers, which indexes too; or "" */
} RandomLoop;

typedef struct RandomProgram {
	uint64_t number, state;
	Type type; /* of all values; indices apart */
	int n, noperand;
	Operand tensor[PROGRAM_TENSORS];
	int naxis, left; /* of the equation at hand; the first `left` stand on the left */
	int64_t first[PROGRAM_AXES],
		extent[PROGRAM_AXES]; /* an axis: first .. first + extent - 1 */
	bool used[PROGRAM_AXES];
	bool wide;	/* integers near the ends of their types, in data and numbers */
	bool lengthy;	/* an axis of an equation is as long as some vectors */
	bool special;	/* operands hold values that arithmetic treats apart */
	bool names;	/* it has a signature, so integers may be operands */
	bool by_chance; /* f32 becomes bf16 by stochastic rounding; values do so now and then */
	RandomLoop loop;
	Text text;  /* of a program with a loop: its body */
	Text after; /* what is computed of the loop's results; or nothing */
} RandomProgram;

__attribute__((unused)) static void program_free(RandomProgram *r)
{
	text_free(&r->text);
	text_free(&r->after);
}

static uint64_t mix(uint64_t z) /* splitmix64 */
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int draw(RandomProgram *r, int n) /* 0 .. n-1 */
{
	return (int)((mix(r->state += 0x9e3779b97f4a7c15u) >> 33) % (uint64_t)n);
}

/* Near an end of the type, a half, a third .. of the way there, or a power of two. */
static int64_t integer_near_end(RandomProgram *r, Type type)
{
	int64_t lo, hi;
	type_range(type, &lo, &hi);
	int64_t part = 1 + draw(r, 4);
	uint64_t v = (uint64_t)(draw(r, 2) ? hi / part : lo / part);
	if (draw(r, 4) == 0)
		v = (uint64_t)1 << draw(r, 63);
	return type_wrap(type, (int64_t)(v + (uint64_t)draw(r, 5) - 2));
}

static Operand *operand_new(RandomProgram *r, Type type, int rank)
{
	Operand *x = &r->tensor[r->n++];
	*x = (Operand){.type = type, .rank = rank, .low = -5, .high = 9};
	snprintf(x->name, sizeof x->name, "%c", 'A' + r->noperand++);
	if (type == RICCI_U8 || type == RICCI_BOOL)
		x->low = 0;
	if (type == RICCI_BOOL)
		x->high = 1;
	if (r->wide && type_is_int(type) && draw(r, 2))
		type_range(type, &x->low, &x->high);
	return x;
}

static bool operand_room(const RandomProgram *r)
{
	return r->noperand < PROGRAM_OPERANDS - 2 && r->n < PROGRAM_TENSORS - 12;
}

static char letter(int k)
{
	return "ijklpqrs"[k];
}

/* ---- indices */

typedef struct Range {
	int64_t lo, hi;
} Range;

static int64_t floor_quotient(int64_t a, int64_t c)
{
	return a / c - (a % c < 0);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static Range axis_any(RandomProgram *r, Text *t)
{
	int k = draw(r, r->naxis);
	r->used[k] = true;
	text_add(t, "%c", letter(k));
	return (Range){r->first[k], r->first[k] + r->extent[k] - 1};
}

/* A positive number: as it is, or a known integer of that value. */
static void random_factor(RandomProgram *r, Text *t, int v)
{
	Operand *x = NULL;
	if (!r->names || !operand_room(r) || draw(r, 4)) {
		text_add(t, "%d", v);
		return;
	}
	for (int k = 0; k < r->n; k++)
		if (r->tensor[k].integer && r->tensor[k].low == v)
			x = &r->tensor[k];
	if (!x) {
		x = operand_new(r, RICCI_I64, 0);
		x->integer = true;
		x->low = x->high = v;
	}
	text_add(t, "%s", x->name);
}

/* a*x + b*y + c */
static Range random_affine(RandomProgram *r, Text *t)
{
	static const int factors[] = {1, 1, 1, 2, 2, 3, 4, -1, -2};
	Range s = {0, 0};
	for (int k = 1 + draw(r, 3); k > 0; k--) {
		int f = factors[draw(r, COUNT(factors))];
		if (f > 0)
			random_factor(r, t, f);
		else
			text_add(t, "%d", f);
		text_add(t, "*");
		Range x = axis_any(r, t);
		text_add(t, "%s", k > 1 ? "+" : "");
		s.lo += f > 0 ? f * x.lo : f * x.hi;
		s.hi += f > 0 ? f * x.hi : f * x.lo;
	}
	int c = draw(r, 4);
	if (c)
		text_add(t, "%+d", c - 2);
	return c ? (Range){s.lo + c - 2, s.hi + c - 2} : s;
}

static Range random_quotient(RandomProgram *r, Text *t, int c, Range x)
{
	text_add(t, ")/");
	random_factor(r, t, c);
	return (Range){floor_quotient(x.lo, c), floor_quotient(x.hi, c)};
}

static Range random_remainder(RandomProgram *r, Text *t, int c, Range x)
{
	text_add(t, ")%%");
	random_factor(r, t, c);
	return x.lo >= 0 && x.hi < c ? x : (Range){0, c - 1};
}

/* An index expression and what it lies in. */
static Range random_index(RandomProgram *r, Text *t, int depth)
{
	Range x, y;
	if (*r->loop.counter && draw(r, 8) == 0) {
		int most = 1 + draw(r, 4);
		text_add(t, "(%s[]%%%d)", r->loop.counter, most);
		return (Range){0, most - 1};
	}
	int how = depth > 0 ? draw(r, 9) : 8, c = 1 + draw(r, 5), factor;
	switch (how) {
	case 0:
	case 1:
		text_add(t, "(");
		return random_quotient(r, t, c, random_index(r, t, depth - 1));
	case 2:
	case 3:
		text_add(t, "(");
		return random_remainder(r, t, c, random_index(r, t, depth - 1));
	case 4:
		factor = 1 + draw(r, 3);
		text_add(t, "%d*((", factor);
		x = random_remainder(r, t, c, random_index(r, t, depth - 1));
		text_add(t, ")-(");
		y = random_index(r, t, depth - 1);
		text_add(t, ")");
		return (Range){factor * x.lo - y.hi, factor * x.hi - y.lo};
	case 5:
		text_add(t, draw(r, 2) ? "max(" : "min(");
		x = random_index(r, t, depth - 1);
		text_add(t, ",");
		y = random_index(r, t, depth - 1);
		text_add(t, ")");
		return (Range){least(x.lo, y.lo), greatest(x.hi, y.hi)};
	case 6:
		text_add(t, "(");
		axis_any(r, t);
		text_add(t, draw(r, 2) ? "<%d ? " : "%%2==%d ? ", c % 2);
		x = random_index(r, t, depth - 1);
		text_add(t, " : ");
		y = random_index(r, t, depth - 1);
		text_add(t, ")");
		return (Range){least(x.lo, y.lo), greatest(x.hi, y.hi)};
	case 7:
		return axis_any(r, t);
	default:
		return random_affine(r, t);
	}
}

/* An index expression with values 0 .. *most; most of them are bare axes. */
static void random_place(RandomProgram *r, Text *t, int64_t *most)
{
	int how = draw(r, 16);
	Text own = {0};
	Range x =
		how < 9 ? axis_any(r, &own) : random_index(r, &own, how < 13 ? 0 : 1 + draw(r, 3));
	if (x.hi - x.lo > 40)
		text_add(t, "(%s)%%%d", own.s, 7), x = (Range){0, 6};
	else if (x.lo)
		text_add(t, "%s%+lld", own.s, (long long)-x.lo);
	else
		text_add(t, "%s", own.s);
	*most = x.hi - x.lo;
	text_free(&own);
}

/* A read of a new integer operand with data low..high. */
static void random_table(RandomProgram *r, Text *t, int64_t low, int64_t high)
{
	static const Type types[] = {RICCI_I32, RICCI_I64, RICCI_I32, RICCI_I8};
	Operand *x = operand_new(r, types[draw(r, 4)], 1);
	int64_t most;
	x->low = low;
	x->high = high;
	x->index = true;
	text_add(t, "%s[", x->name);
	random_place(r, t, &most);
	x->shape[0] = most + 1;
	text_add(t, "]");
}

#endif
