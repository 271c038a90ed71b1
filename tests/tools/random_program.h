/* random_program.h - random programs of the notation for tests: equations of every kind
 * (random_equation.h) over gathers, quotients and remainders, padded reads, integer arithmetic, all
 * data types; some within loops over time (random_loop.h), some that are rounded by chance. Every
 * program is valid; its operands' names, types and shapes come with it, and their data are a
 * function of name and element. A program is a function of its number: numbers from KIND on have
 * loops, from 2 KIND on stochastic rounding, from 3 KIND on both, from 4 KIND on integers near the
 * ends of their types, from 5 KIND on loops with these, from 6 KIND on operands with values that
 * arithmetic treats apart, from 7 KIND on loops with a long axis, from 8 KIND on long axes without loops. */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include "tests/tools/random_loop.h"

#include <math.h>

#define KIND 1000000000000u

/* Of a wide range half lie near its ends or near 0. */
static int64_t integer_between(int64_t low, int64_t high, uint64_t z)
{
	uint64_t range = (uint64_t)high - (uint64_t)low, near = z >> 8 & 3;
	if (range > 200 && z & 1)
		return (int64_t)(z >> 1 & 1   ? (uint64_t)high - near
				 : z >> 2 & 1 ? (uint64_t)low + near
				 : low < 0    ? near - 1
					      : near);
	return (int64_t)((uint64_t)low + (range + 1 ? z % (range + 1) : z));
}

/* A value that arithmetic treats apart. */
static double value_special(Type type, uint64_t z)
{
	const double sign = z & 1 ? -1 : 1, largest = type_largest(type);
	const double least = type == RICCI_F64 ? 0x1p-1074 : type == RICCI_F16 ? 0x1p-24 : 0x1p-133;
	const double value[] = {INFINITY, NAN, 0, least, largest, largest / 2, 1};

	return sign * value[(z >> 1) % COUNT(value)];
}

/* Element i of an operand. Floats keep to multiples that all types hold, and away from 0; where the
 * program is special, a fifth of them don't. */
__attribute__((unused)) static void operand_fill(const Operand *x, const RandomProgram *p,
						 int64_t n, void *data)
{
	uint64_t key = p->number;
	for (const char *s = x->name; *s; s++)
		key = mix(key + (unsigned char)*s);
	for (int64_t i = 0; i < n; i++) {
		uint64_t z = mix(key + (uint64_t)i * 0x9e3779b97f4a7c15u);
		double v = (double)(z >> 40) * 0x1p-23 - 1;
		if (type_is_float(x->type))
			type_store(x->type, data, (size_t)i,
				   p->special && z % 5 == 0 ? value_special(x->type, z / 5)
							    : v + (v < 0 ? -0.0625 : 0.0625));
		else
			type_store_int(x->type, data, (size_t)i,
				       integer_between(x->low, x->high, z));
	}
}

static Type random_type(RandomProgram *r)
{
	static const Type rest[] = {RICCI_F16, RICCI_BF16, RICCI_I8,  RICCI_U8,
				    RICCI_I32, RICCI_I64,  RICCI_BOOL};
	int how = draw(r, 12);
	return how < 5 ? RICCI_F64 : how < 9 ? RICCI_F32 : rest[draw(r, COUNT(rest))];
}

static void random_plain(RandomProgram *r)
{
	bool narrow = type_size(r->type) < 4; /* rounding errors of chains are hard to judge */
	for (int k = narrow ? 1 : 1 + draw(r, 3); k > 0; k--) {
		if (r->noperand < 8 && draw(r, 8) == 0) {
			equation_dots(r);
			continue;
		}
		switch (draw(r, 10)) {
		case 0:
		case 1:
			if (r->type != RICCI_BOOL && r->noperand < 8) {
				equation_contraction(r);
				break;
			} /* fall through */
		case 2:
		case 3:
			if (r->type != RICCI_BOOL && r->noperand < 8) {
				equation_window(r);
				break;
			} /* fall through */
		case 4:
			equation_scatter(r);
			break;
		case 5:
			if (type_is_float(r->type) && !narrow && r->noperand < 8) {
				equation_softmax(r);
				break;
			} /* fall through */
		case 6:
			if (type_is_float(r->type) && !narrow && r->noperand < 8 && r->n < 18 &&
			    draw(r, 3) == 0) {
				equation_rows(r);
				break;
			} /* fall through */
		default:
			equation_any(r);
		}
	}
}

/* How the program begins: its operands in another order, and its results, with some of the tensors
 * that others read. */
static void add_signature(RandomProgram *r)
{
	Text all = {0};
	const char *before = "";
	for (int k = r->n - 1; k >= 0; k--)
		if (!r->tensor[k].local && operand_used(r, &r->tensor[k])) {
			text_add(&all, "%s%s", before, r->tensor[k].name);
			before = ", ";
		}
	before = " -> ";
	for (int pass = 0; pass < 2; pass++) /* what is read, then what is not */
		for (int k = 0; k < r->n; k++) {
			const Operand *y = &r->tensor[k];
			bool read = name_count(r->text.s, y->name) > 1;
			if (!y->local || read == pass || (read && draw(r, 3)))
				continue;
			text_add(&all, "%s%s", before, y->name);
			before = ", ";
		}
	text_add(&all, ": %s", r->text.s);
	text_free(&r->text);
	r->text = all;
}

/* Kernels may multiply by zero what a condition leaves out (docs/notation.md): not a number for
 * infinities. */
static bool text_leaves_out(const char *s)
{
	bool products = strstr(s, "+=") && strchr(s, '*');

	return products && (strchr(s, '?') || strstr(s, "else") || strstr(s, "where"));
}

__attribute__((unused)) static void random_program(RandomProgram *r, uint64_t number)
{
	*r = (RandomProgram){.number = number, .state = mix(number)};
	uint64_t kind = number / KIND;
	r->by_chance = kind == 2 || kind == 3;
	r->wide = kind == 4 || kind == 5;
	r->lengthy = kind >= 7;
	r->type = r->wide ? integer_any(r) : random_type(r);
	if (r->by_chance)
		r->type = RICCI_F32;
	if (kind == 6 && !type_is_float(r->type))
		r->type = number % 2 ? RICCI_F32 : RICCI_F64;
	r->names = kind % 2 == 0 && !r->by_chance && mix(number) % 4 == 0;
	if (kind % 2)
		random_loop(r);
	else
		random_plain(r);
	if (r->names)
		add_signature(r);
	r->special = kind == 6 && !text_leaves_out(r->text.s);
}

#endif
