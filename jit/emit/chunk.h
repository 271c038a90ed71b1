/* chunk.h - vector loops as calls of functions over chunks: operands, choices, values, and stores (chunk_loop.c). */
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

typedef struct Vector Vector;
struct Vector {
	Emit *e;
	Arena *m;
	Operand (*value)(Vector *v, Node *n,
			 const char *want); /* chunk_value: choices compute their sides by it */
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
};

/* The part of a chunk for which a condition holds; `other` is the value of all around. */
typedef struct Interval {
	Vector in;
	Part part;
	int scopes;
	Operand other;
} Interval;

/* ---- what functions over chunks take (chunk_operand.c) */

extern const char *const chunk_name[CHUNK_KINDS], *const chunk_type[CHUNK_KINDS];

int chunk_kind(Type t);
/* Is an element of memory as functions over chunks have it, without conversion? */
bool chunk_is_full(const Node *n);
/* The function over chunks for an operator, without its type; NULL when there is none. */
const char *chunk_function(const Node *n);
/* The arguments of operands and their declaration, both starting with a comma. */
void chunk_operands(Vector *v, int n, const Operand *o, const char **args, const char **types);
void chunk_call_some(Vector *v, const char *name, int kind, const char *count, const char *dst,
		     int n, const Operand *o);
void chunk_call(Vector *v, const char *name, int kind, const char *dst, int n, const Operand *o);
Operand chunk_temp(Vector *v, int kind);
void chunk_free(Vector *v, const Operand *o);
/* Frees what is known, at the end of what v covers. */
void chunk_known_free(Vector *v);
/* Where a result goes: the wanted place, or a temporary. */
Operand chunk_target(Vector *v, int kind, const char *want);
/* n for the chunk's first element. */
Node *chunk_start(Vector *v, Node *n);
/* Does n change over the chunk? */
bool chunk_varies(const Vector *v, Node *n);
/* Is it a line as it is? */
bool chunk_flat(const Vector *v, const Operand *o);
/* Row behind row. */
Operand chunk_flatten(Vector *v, Operand in, const char *want);
/* Row behind row, with `other` around a part. */
Operand chunk_padded(Vector *v, Operand in, const Operand *other, const Part *part,
		     const char *want);
/* What doesn't change over the chunk. */
Operand chunk_uniform(Vector *v, Node *n);
/* Opens a plain loop over an axis of the chunk: emit_line("}") and emit_close close it. */
void chunk_plain_open(Vector *v, Node *axis, Node *from, const char *count);
/* Anything: plain loops. */
Operand chunk_plain(Vector *v, Node *n, const char *want);
/* Where a read lies that steps evenly with the axes; false when it does not. */
bool chunk_address(Vector *v, Node *read, Operand *out);
/* An index that is a table's entry for each element, plus what does not depend on the axis (*rest); NULL: it is none. */
Node *chunk_entry(Ir *ir, Node *index, Node *axis, Node **rest);
/* The address of the chunk's first element. */
const char *chunk_place(Vector *v, Node *buffer, Node *index);

/* ---- choices (chunk_choice.c) */

Operand chunk_select(Vector *v, Node *n, const char *want);
/* Does n read what only the condition makes valid? Not what the condition reads itself, in any case. */
bool chunk_is_guarded(Vector *v, Node *cond, Node *n);
/* Is n SELECT(an interval of each axis, x, what changes with none)? */
bool chunk_is_interval(Vector *v, Node *n);
/* Of such a node: opens a scope in which i->in computes x there, of a box products of reads (chunk_read) only. False:
 * n is none, and nothing was emitted. */
bool chunk_interval_open(Vector *v, Node *n, Interval *i);
void chunk_interval_close(Interval *i);

/* ---- values (chunk.c) */

/* The elements of n over the chunk, in one line: its stride is that of the whole box. A node met twice is computed
 * once. */
Operand chunk_value(Vector *v, Node *n, const char *want);
/* Of a read: as it lies, which may be no line. */
Operand chunk_read(Vector *v, Node *n);

#endif
