/* integer_value.h - integer operators by their definitions in ops.def, without the library's
 * arithmetic, and the integers on which folding goes wrong; for the tests of it. */
#ifndef INTEGER_VALUE_H
#define INTEGER_VALUE_H

#include "core/core.h"

static uint64_t state = 1;

static int draw(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (uint64_t)n);
}

static int64_t wrap(Type t, uint64_t v)
{
	return t == RICCI_I8	 ? (int8_t)v
	       : t == RICCI_U8	 ? (uint8_t)v
	       : t == RICCI_I32	 ? (int32_t)v
	       : t == RICCI_BOOL ? v != 0
				 : (int64_t)v;
}

/* Of type t and of one or two integers. What divides is positive, or this part is not evaluated. */
static int64_t integer_value(int op, Type t, int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;
	switch (op) {
	case OP_ADD:
		return wrap(t, x + y);
	case OP_SUB:
		return wrap(t, x - y);
	case OP_MUL:
		return wrap(t, x * y);
	case OP_NEG:
		return wrap(t, -x);
	case OP_ABS:
		return wrap(t, a < 0 ? -x : x);
	case OP_SIGN:
		return (a > 0) - (a < 0);
	case OP_FLOORDIV:
		return b > 0 ? a / b - (a % b < 0) : 0;
	case OP_FLOORMOD:
		return b > 0 ? a % b + (a % b < 0 ? b : 0) : a;
	case OP_MIN:
		return a < b ? a : b;
	case OP_MAX:
		return a > b ? a : b;
	case OP_LT:
		return a < b;
	case OP_LE:
		return a <= b;
	case OP_EQ:
		return a == b;
	case OP_NE:
		return a != b;
	case OP_AND:
		return a && b;
	case OP_OR:
		return a || b;
	case OP_NOT:
		return !a;
	default: /* FLOOR and its kin, STOP */
		return a;
	}
}

/* Near an end of the type, a half, a third .. of the way to it, or a power of two. */
static int64_t number_near_end(Type type)
{
	int64_t lo, hi;
	type_range(type, &lo, &hi);
	int64_t part = 1 + draw(4), off = draw(5) - 2;
	int64_t v = draw(4) == 0 ? (int64_t)1 << draw(63) : draw(2) ? hi / part : lo / part;
	return wrap(type, (uint64_t)v + (uint64_t)off);
}

#endif
