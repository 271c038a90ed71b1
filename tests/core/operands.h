/* operands.h - equations over operands of one letter, for tests of what is refused. */
#ifndef OPERANDS_H
#define OPERANDS_H

#include "core/core.h"
#include "tests/check.h"

static const struct {
	const char *name;
	Type type;
	int rank;
	int64_t shape[2];
} tensors[] = {
	{"A", RICCI_F32, 1, {10}},    {"B", RICCI_F32, 1, {10}}, {"M", RICCI_F32, 2, {10, 8}},
	{"P", RICCI_F32, 2, {4, 15}}, {"W", RICCI_F32, 1, {3}},	 {"T", RICCI_I32, 1, {10}},
	{"S", RICCI_I32, 1, {10}},    {"D", RICCI_F64, 1, {10}}, {"H", RICCI_F16, 1, {10}},
	{"F", RICCI_BOOL, 1, {10}},   {"U", RICCI_U8, 1, {10}},	 {"G", RICCI_F32, 1, {10}},
	{"E", RICCI_F32, 1, {5}},
};

/* text over operands, one letter each */
static int elaborate(Ir *ir, const char *text, const char *operands)
{
	Node *operand[16], *result[8];
	int n = 0, nresult;

	IR_ENTER(ir, RICCI_ENOMEM);
	for (const char *c = operands; *c; c++)
		for (int k = 0; k < COUNT(tensors); k++)
			if (*c == *tensors[k].name)
				operand[n++] = node_input(ir, tensors[k].name, tensors[k].type,
							  tensors[k].rank, tensors[k].shape);
	int code = notation_elaborate(ir, text, n, operand, &nresult, result, COUNT(result));
	IR_LEAVE(ir);
	return code;
}

#endif
