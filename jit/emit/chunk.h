/* chunk.h - vector loops as calls of functions over chunks: values (chunk.c) and stores
 * (chunk_loop.c). */
#ifndef JIT_EMIT_CHUNK_H
#define JIT_EMIT_CHUNK_H

#include "jit/emit/internal.h"

enum { MAX_MEMO = 256, MAX_TEMPS = 48, FIRST_START = 1 << 20 };

/* Element i of row r is at[r * line + i * stride]; without rows `line` is 0. */
typedef struct Operand {
	const char *at; /* address of the first element */
	int64_t stride;
	int kind, temp; /* temp: its number, -1 when it is none */
	int64_t line;
} Operand;

typedef struct Known {
	Node *n;
	Operand v;
} Known;

/* from..to-1 of a chunk's elements, or of a box's rows: as text. */
typedef struct Span {
	const char *from, *to;
} Span;

/* Some columns of some rows of a box. */
typedef struct Part {
	Span rows, columns;
} Part;

typedef struct Vector {
	Emit *e;
	Arena *m;
	Node *axis, *start; /* start stands for the axis's value at the chunk's first element */
	const Stmt *loop;   /* over axis; NULL: its bounds aren't known */
	const char *count;  /* elements of the chunk: a name */
	int nknown;
	Known known[MAX_MEMO];
	bool (*busy)[MAX_TEMPS];
	/* A box: `count` elements are `rows` (a name) values of the axis `row` from row_start on, of `width`
	 * elements each, and temporaries hold row behind row. NULL: a line. */
	Node *row, *row_start;
	const char *rows;
	const char *columns; /* elements of a row, as text; of a line all of them */
	int64_t width;	     /* their number where it is known; else, and of a line, 0 */
	const Part *part;    /* where reads may be valid only; NULL: all of it */
} Vector;

/* The part of a chunk for which a condition holds; `other` is the value of all around. */
typedef struct Interval {
	Vector in;
	Part part;
	int scopes;
	Operand other;
} Interval;

extern const char *const chunk_name[CHUNK_KINDS], *const chunk_type[CHUNK_KINDS];

void chunk_operands(Vector *v, int n, const Operand *o, const char **args, const char **types);
void chunk_call_some(Vector *v, const char *name, int kind, const char *count, const char *dst,
		     int n, const Operand *o);
void chunk_call(Vector *v, const char *name, int kind, const char *dst, int n, const Operand *o);
Operand chunk_temp(Vector *v, int kind);
void chunk_free(Vector *v, const Operand *o);
/* The elements of n over the chunk, in one line: its stride is that of the whole box. A read may be asked for as it
 * is (chunk_read). */
Operand chunk_value(Vector *v, Node *n, const char *want);
Operand chunk_read(Vector *v, Node *n);
/* What doesn't change over the chunk. */
Operand chunk_uniform(Vector *v, Node *n);
/* Is it a line as it is? */
bool chunk_flat(const Vector *v, const Operand *o);
/* Is n SELECT(an interval of each axis, x, what changes with none)? */
bool chunk_is_interval(Vector *v, Node *n);
/* Of such a node: opens a scope in which i->in computes x there, of a box products of reads (chunk_read) only. False:
 * n is none, and nothing was emitted. */
bool chunk_interval_open(Vector *v, Node *n, Interval *i);
void chunk_interval_close(Interval *i);
Node *chunk_entry(Ir *ir, Node *index, Node *axis, Node **rest);
const char *chunk_place(Vector *v, Node *buffer, Node *index);
int chunk_kind(Type t);
/* Is an element of memory as functions over chunks have it, without conversion? */
bool chunk_is_full(const Node *n);

#endif
