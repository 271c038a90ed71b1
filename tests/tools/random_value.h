/* random_value.h - random expressions over the axes of an equation: reads of new operands and of
 * tensors that are there (padded or not), conditions, arithmetic of every type. Invariant: every
 * read is valid, by the intervals of random_index.h. */
#ifndef RANDOM_VALUE_H
#define RANDOM_VALUE_H

#include "tests/tools/random_index.h"

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
	case 2: /* `training` alone is a number, which meets no bool */
		text_add(t, "bool(");
		random_condition(r, t, 1);
		text_add(t, ")");
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
