/* chunk.h - vector loops as calls of functions over chunks: values (chunk.c) and stores
 * (chunk_loop.c). */
#ifndef JIT_EMIT_CHUNK_H
#define JIT_EMIT_CHUNK_H

#include "jit/emit/internal.h"

enum { MAX_MEMO = 256, MAX_TEMPS = 48, FIRST_START = 1 << 20 };

typedef struct Operand {
	const char *at; /* address of the first element */
	int64_t stride;
	int kind, temp; /* temp: its number, -1 when it is none */
} Operand;

typedef struct Known {
	Node *n;
	Operand v;
} Known;

typedef struct Vector {
	Emit *e;
	Arena *m;
	Node *axis, *start; /* start stands for the axis's value at the chunk's first element */
	const char *count;  /* elements of the chunk: a name */
	int nknown;
	Known known[MAX_MEMO];
	struct Vector *outer;
	bool (*busy)[MAX_TEMPS];
} Vector;

extern const char *const chunk_name[CHUNK_KINDS], *const chunk_type[CHUNK_KINDS];

void chunk_operands(Vector *v, int n, const Operand *o, const char **args, const char **types);
void chunk_call(Vector *v, const char *name, int kind, const char *dst, int n, const Operand *o);
Operand chunk_temp(Vector *v, int kind);
void chunk_free(Vector *v, const Operand *o);
Operand chunk_value(Vector *v, Node *n, const char *want);
Node *chunk_entry(Ir *ir, Node *index, Node *axis, Node **rest);
const char *chunk_place(Vector *v, Node *buffer, Node *index);
int chunk_kind(Type t);

#endif
