/* random_value.h - random expressions over the axes of an equation: indices (affine forms of any
 * sign, nested quotients and remainders, choices, clamps, gathers), reads of new operands and of
 * tensors that are there (padded or not), conditions, arithmetic of every type. Invariant: an index
 * comes with the interval of its values, so that every read is valid. */
#ifndef RANDOM_VALUE_H
#define RANDOM_VALUE_H

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

/* ---- reads */

static const char *number_of(RandomProgram *r, Type type)
{
	static const char *const floats[] = {"0.5", "1.25", "2.0", "0.75", "0.0"};
	static const char *const ints[] = {"2", "1", "3", "5", "0"};
	/* casts: numbers alone, -(2) in u8, are refused where they don't fit */
	static const char *const bytes[][5] = {{"u8(2)", "u8(1)", "u8(3)", "u8(5)", "u8(0)"},
					       {"i8(2)", "i8(1)", "i8(3)", "i8(5)", "i8(0)"}};
	if (type == RICCI_BOOL)
		return draw(r, 2) ? "bool(1)" : "bool(0)";
	if (type == RICCI_U8 || type == RICCI_I8)
		return bytes[type == RICCI_I8][draw(r, 5)];
	return (type_is_float(type) ? floats : ints)[draw(r, 5)];
}

static const char *random_number(RandomProgram *r)
{
	static char text[32];
	if (!r->wide || draw(r, 2))
		return number_of(r, r->type);
	int64_t v = integer_near_end(r, r->type);
	if (v == INT64_MIN) /* no number of the notation */
		v++;
	/* of the type: numbers alone don't wrap, but are refused where they don't fit */
	snprintf(text, sizeof text, "%s(%lld)", type_name(r->type), (long long)v);
	return text;
}

/* A tensor that is there, of the values' type, or NULL. */
static const Operand *tensor_any(RandomProgram *r)
{
	const Operand *x = r->n ? &r->tensor[draw(r, r->n)] : NULL;
	return x && x->type == r->type && x->rank ? x : NULL;
}

static bool random_padded(RandomProgram *r, Text *t)
{
	int64_t most;
	const Operand *x = tensor_any(r);
	if (!x)
		return false;
	text_add(t, "(%s[", x->name);
	for (int d = 0; d < x->rank; d++) {
		text_add(t, d ? "," : "");
		if (draw(r, 12) == 0 && operand_room(r)) {
			random_table(r, t, -1, x->shape[d]);
			continue;
		}
		random_place(r, t, &most);
		text_add(t, "%s", draw(r, 2) ? "" : "-1");
	}
	text_add(t, "] else %s)", random_number(r));
	return true;
}

/* x once more, by another map that stays inside. */
static void tensor_again(RandomProgram *r, Text *t, const Operand *x)
{
	int64_t most;
	text_add(t, "%s[", x->name);
	for (int d = 0; d < x->rank; d++) {
		Text own = {0};
		text_add(t, d ? "," : "");
		random_place(r, &own, &most);
		if (most < x->shape[d])
			text_add(t, "%s", own.s);
		else if (draw(r, 2))
			text_add(t, "(%s)%%%lld", own.s, (long long)x->shape[d]);
		else
			text_add(t, "min(%s,%s.size(%d)-1)", own.s, x->name, d);
		text_free(&own);
	}
	text_add(t, "]");
}

static bool random_again(RandomProgram *r, Text *t)
{
	const Operand *x = tensor_any(r);
	if (x)
		tensor_again(r, t, x);
	return x != NULL;
}

/* A new operand of a type, exactly as large as its indices need, or a little larger. */
static void random_operand(RandomProgram *r, Text *t, Type type)
{
	int64_t most;
	Operand *x = operand_new(r, type, draw(r, 4));
	Text index = {0};
	for (int d = 0; d < x->rank; d++) {
		text_add(&index, d ? "," : "");
		if (draw(r, 12) == 0 && operand_room(r)) {
			x->shape[d] = 1 + draw(r, 5);
			random_table(r, &index, 0, x->shape[d] - 1);
			continue;
		}
		random_place(r, &index, &most);
		x->shape[d] = most + 1 + (draw(r, 6) == 0);
	}
	text_add(t, "%s[%s]", x->name, index.s ? index.s : "");
	text_free(&index);
}

static Type type_any(RandomProgram *r)
{
	static const Type types[] = {RICCI_F64, RICCI_F32, RICCI_F16, RICCI_BF16, RICCI_I8,
				     RICCI_U8,	RICCI_I32, RICCI_I64, RICCI_BOOL};
	return types[draw(r, COUNT(types))];
}

static Type integer_any(RandomProgram *r)
{
	static const Type types[] = {RICCI_I64, RICCI_I32, RICCI_I64,
				     RICCI_I32, RICCI_I8,  RICCI_U8};
	return types[draw(r, COUNT(types))];
}

/* The values' own type, or one that is cast to it. */
static Type type_narrow(RandomProgram *r)
{
	static const Type types[] = {RICCI_BF16, RICCI_F16, RICCI_I8, RICCI_U8};
	bool wide = r->type == RICCI_F32 || r->type == RICCI_I32;
	return wide && draw(r, 6) == 0 ? types[draw(r, 2) + (r->type == RICCI_F32 ? draw(r, 3) : 2)]
				       : r->type;
}

static void random_read(RandomProgram *r, Text *t)
{
	int how = draw(r, 12);
	if (how < 3 && random_padded(r, t))
		return;
	if (how < 6 && random_again(r, t))
		return;
	if (!operand_room(r)) {
		text_add(t, "%s", random_number(r));
		return;
	}
	if (how < (r->wide ? 9 : 11)) {
		random_operand(r, t, r->type);
		return;
	}
	text_add(t, "%s(", type_name(r->type));
	random_operand(r, t, r->wide ? integer_any(r) : type_any(r));
	text_add(t, ")");
}

static void random_condition(RandomProgram *r, Text *t, int depth)
{
	static const char *const compare[] = {"<", "<=", "==", "!=", ">", ">="};
	int how = draw(r, depth > 0 ? 8 : 5);
	if (!r->by_chance && draw(r, 12) == 0) {
		text_add(t, draw(r, 2) ? "(training)" : "(!training)");
		return;
	}
	text_add(t, how == 5 ? "!(" : "(");
	switch (how) {
	case 0:
		axis_any(r, t);
		text_add(t, "%%2 == %d", draw(r, 2));
		break;
	case 1: /* data: exact ones, so that rounding does not decide */
		if (operand_room(r)) {
			random_operand(r, t, r->type);
			text_add(t, " %s ", compare[draw(r, 6)]);
			text_add(t, "%s", random_number(r));
			break;
		} /* fall through */
	case 2:
		axis_any(r, t);
		text_add(t, " %s ", compare[draw(r, 6)]);
		axis_any(r, t);
		break;
	case 3:
		axis_any(r, t);
		text_add(t, " %s %d", compare[draw(r, 6)], draw(r, 3));
		break;
	case 4:
		random_index(r, t, 1);
		text_add(t, " %s %d", compare[draw(r, 6)], draw(r, 5));
		break;
	case 5:
		random_condition(r, t, depth - 1);
		break;
	default:
		random_condition(r, t, depth - 1);
		text_add(t, how == 6 ? " && " : " || ");
		random_condition(r, t, depth - 1);
	}
	text_add(t, ")");
}

/* ---- values */

static void random_value(RandomProgram *r, Text *t, int depth);

static void random_pair(RandomProgram *r, Text *t, const char *before, const char *between,
			const char *after, int depth)
{
	text_add(t, "%s", before);
	random_value(r, t, depth);
	text_add(t, "%s", between);
	random_value(r, t, depth);
	text_add(t, "%s", after);
}

/* Steps of exact values only: elsewhere rounding would decide. */
static void random_steps(RandomProgram *r, Text *t)
{
	static const char *const steps[] = {"sign(", "floor(2.0*", "ceil(4.0*", "round(2.0*"};
	text_add(t, "%s", steps[draw(r, COUNT(steps))]);
	if (operand_room(r))
		random_operand(r, t, r->type);
	else
		text_add(t, "0.75");
	text_add(t, ")");
}

static void random_float(RandomProgram *r, Text *t, int depth)
{
	bool rounded = r->by_chance && draw(r, 4) == 0;
	/* what could leave a function's domain, or all numbers, is kept from it */
	static const char *const calls[][2] = {{"tanh(", ")"},
					       {"sigmoid(", ")"},
					       {"sin(", ")"},
					       {"exp(min(2.0, ", "))"},
					       {"erf(", ")"},
					       {"sqrt(0.5+abs(", "))"},
					       {"log(0.5+abs(", "))"},
					       {"rsqrt(0.5+abs(", "))"},
					       {"cos(", ")"},
					       {"log1p(0.05*abs(", "))"},
					       {"expm1(min(1.0, ", "))"},
					       {"abs(", ")"},
					       {"stop_gradient(", ")"},
					       {"tan(tanh(", "))"},
					       {"-(", ")"}};
	static const char *const rounding[] = {"f32(bf16(", "))"};
	const char *const *call = rounded ? rounding : calls[draw(r, COUNT(calls))];
	switch (rounded ? 11 : draw(r, 12)) {
	case 0:
	case 1:
		random_pair(r, t, "(", " / (2.5 + sin(", ")))", depth);
		break;
	case 2:
	case 3:
		random_pair(r, t, draw(r, 2) ? "pow(abs(" : "pow(1.5+abs(", ")+0.5, 0.5*sin(", "))",
			    depth);
		break;
	case 4:
		random_steps(r, t);
		break;
	case 5:
		text_add(t, "%s(%s(%d))", type_name(r->type), draw(r, 2) ? "random" : "normal",
			 draw(r, 3));
		break;
	default:
		text_add(t, "%s", call[0]);
		random_value(r, t, depth);
		text_add(t, "%s", call[1]);
	}
}

static void random_integer(RandomProgram *r, Text *t, int depth)
{
	static const char *const calls[] = {"abs(", "sign(", "-("};
	if (draw(r, 3) == 0) {
		text_add(t, "%s", calls[draw(r, COUNT(calls))]);
		random_value(r, t, depth);
		text_add(t, ")");
		return;
	}
	text_add(t, "(%s(", type_name(r->type)); /* numbers alone would be floats */
	random_value(r, t, depth);
	int64_t by = 1 + draw(r, 5);
	if (r->wide && draw(r, 2)) {
		by = integer_near_end(r, r->type);
		by = by > 0 ? by : by < -1 ? -(by + 1) : 1;
	}
	text_add(t, ")%s%lld)", draw(r, 2) ? "/" : "%", (long long)by);
}

static void random_bool(RandomProgram *r, Text *t, int depth)
{
	switch (draw(r, 4)) {
	case 0:
		random_pair(r, t, "(", " && ", ")", depth);
		break;
	case 1:
		random_pair(r, t, "(", draw(r, 2) ? " || " : " != ", ")", depth);
		break;
	case 2:
		random_condition(r, t, 1);
		break;
	default:
		text_add(t, "!(");
		random_value(r, t, depth);
		text_add(t, ")");
	}
}

static void random_value(RandomProgram *r, Text *t, int depth)
{
	static const char *const infix[] = {" + ", " - ", " * ", " * "};
	int how = depth > 0 ? draw(r, 14) : 11;
	if (how == 12)
		text_add(t, "%s", random_number(r));
	else if (how == 13 && r->type != RICCI_BOOL) { /* an index as a number */
		text_add(t, "%s(", type_name(r->type));
		if (!r->by_chance && draw(r, 4) == 0)
			text_add(t, "2*training - 1");
		else
			random_index(r, t, 1);
		text_add(t, ")");
	} else if (how >= 9) {
		random_read(r, t);
	} else if (how == 8) {
		text_add(t, "(");
		random_condition(r, t, 1);
		random_pair(r, t, " ? ", " : ", ")", depth - 1);
	} else if (r->type == RICCI_BOOL) {
		random_bool(r, t, depth - 1);
	} else if (how < 4) {
		random_pair(r, t, "(", infix[how], ")", depth - 1);
	} else if (how == 4) {
		random_pair(r, t, draw(r, 2) ? "min(" : "max(", ", ", ")", depth - 1);
	} else if (type_is_float(r->type)) {
		random_float(r, t, depth - 1);
	} else {
		random_integer(r, t, depth - 1);
	}
}

#endif
