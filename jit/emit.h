/* emit.h - the emitter's two halves: statements (emit.c) and expressions (emit_expr.c). */
#ifndef JIT_EMIT_H
#define JIT_EMIT_H

#include "jit/internal.h"

enum {
	READS_NOTHING = 1,
	READS_SAFE,	/* inside its tensor for all values of the axes */
	READS_GUARDED,	/* valid under the conditions around it only */
	READS_CHANGING, /* memory that the kernel writes */
};

typedef struct Scope {
	Text *text;
	Node *axis;   /* the loop's variable, or NULL */
	bool guarded; /* its statements may not run at all: reads must not leave it */
	int nnamed, room;
	uint32_t *named; /* ids of nodes that have a local variable here */
} Scope;

typedef struct NodeNote {
	const char *name; /* local variable that holds it, in an open scope */
	uint32_t stamp;	  /* of the statement for which level and uses were computed */
	int16_t level;
	uint16_t uses;
	uint8_t reads; /* READS_*, the worst below; 0: not known yet */
} NodeNote;

typedef struct Emit {
	const Tree *tree;
	Ir *ir;
	const Dialect *d;
	int depth, nname;
	Scope scope[EMIT_MAX_SCOPES];
	NodeNote *note;
	uint32_t room, stamp;
	bool uses_math;
} Emit;

/* The value of n as a C expression in the current scope. lazy: it may not be evaluated, so nothing
 * that reads memory may be computed ahead of it. */
const char *emit_value(Emit *e, Node *n, bool lazy);
/* The place buffer[index] as an lvalue. */
const char *emit_place(Emit *e, Node *buffer, Node *index, bool lazy);
/* Counts uses below n for the statement that comes next (stamp is new). */
void emit_count(Emit *e, Node *n);
void emit_statement(Emit *e); /* a new stamp */

/* Drops the names of a scope: all, or those that depend on memory that changes. */
void emit_forget(Emit *e, int depth, bool only_changing);

#endif
