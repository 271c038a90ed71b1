/* finite.c - which expressions are numbers where their operands are.
 * In: a node. Out: can it be infinite, or NaN, as long as no sum or product leaves its type? The signs of operands decide
 * some: exp(-abs(x)) is at most 1. */
#include "jit/jit.h"

#include <math.h>

enum { DEPTH = 6 }; /* operators that are looked through */

/* Is n, a number, 0 or more; or `negative`, 0 or less? */
static bool has_sign(const Node *n, bool negative, int depth)
{
	const Node *a = n->nsrc > 0 ? n->src[0] : NULL, *b = n->nsrc > 1 ? n->src[1] : NULL;
	if (n->type == RICCI_I64)
		return negative ? n->hi <= 0 : n->lo >= 0;
	if (depth == 0 || !type_is_float((Type)n->type))
		return false;
	switch ((Op)n->op) {
	case OP_CONST:
		return negative ? n->u.f <= 0 : n->u.f >= 0;
	case OP_ABS:
	case OP_EXP:
	case OP_SQRT:
	case OP_SIGMOID:
		return !negative;
	case OP_NEG:
		return has_sign(a, !negative, depth - 1);
	case OP_CAST:
		return has_sign(a, negative, depth - 1);
	case OP_ADD:
		return has_sign(a, negative, depth - 1) && has_sign(b, negative, depth - 1);
	case OP_SUB:
		return has_sign(a, negative, depth - 1) && has_sign(b, !negative, depth - 1);
	case OP_SELECT:
		return has_sign(b, negative, depth - 1) && has_sign(n->src[2], negative, depth - 1);
	case OP_MUL:
	case OP_DIV:
		if (a == b)
			return !negative;
		return (has_sign(a, false, depth - 1) && has_sign(b, negative, depth - 1)) ||
		       (has_sign(a, true, depth - 1) && has_sign(b, !negative, depth - 1));
	case OP_MAX:
	case OP_MIN:
		if ((n->op == OP_MIN) == negative)
			return has_sign(a, negative, depth - 1) || has_sign(b, negative, depth - 1);
		return has_sign(a, negative, depth - 1) && has_sign(b, negative, depth - 1);
	default:
		return false;
	}
}

bool node_stays_finite(const Node *n)
{
	switch ((Op)n->op) {
	case OP_CONST:
		return !type_is_float((Type)n->type) || isfinite(n->u.f);
	case OP_DIV:
		return node_is_const(n->src[1]) && n->src[1]->u.f != 0;
	case OP_EXP:
	case OP_EXPM1:
		return has_sign(n->src[0], true, DEPTH);
	case OP_LOG1P:
	case OP_SQRT:
		return has_sign(n->src[0], false, DEPTH);
	case OP_POW:
	case OP_LOG:
	case OP_RSQRT:
	case OP_TAN:
		return false;
	default:
		return true;
	}
}
