/* internal.h - the parts of the emitter: scopes (scope.c), scalar expressions (expr.c), vectors under masks
 * (lanes.c), chunks as calls (chunk.h), stores of neighbours (wide.c), statements and the function
 * (emit.c). */
#ifndef JIT_EMIT_INTERNAL_H
#define JIT_EMIT_INTERNAL_H

#include "jit/emit/emit.h"

/* Of what a node reads: flags. */
enum {
	READS_KNOWN = 1,
	READS_GUARDED = 2,  /* valid under the conditions around it only */
	READS_CHANGING = 4, /* memory that the kernel writes */
};

typedef struct Scope {
	Text *text;
	Node *axis;	  /* the loop's variable, or NULL */
	bool guarded;	  /* its statements may not run at all: reads must not leave it */
	bool lanes;	  /* a loop of which a compiler makes vectors */
	const Stmt *body; /* of a loop that is a loop here; NULL: not known */
	int nnamed, room;
	uint32_t *named; /* ids of nodes that have a local variable here */
} Scope;

typedef struct NodeNote {
	const char *name; /* local variable that holds it, in an open scope */
	uint32_t stamp;	  /* of the statement for which uses were counted */
	uint32_t scopes;  /* of the open scopes for which level was computed */
	int16_t level;
	uint16_t uses;
	uint8_t reads;	/* READS_*, of all below; 0: not known yet */
	uint8_t narrow; /* 1: it is a C int, 2: it isn't; 0: not known yet */
} NodeNote;

enum { WIDE_STORES = 8 };
/* A store whose steps of a loop go into a variable first. */
typedef struct Wide {
	const Stmt *store;
	const char *name, *type;
} Wide;

#define EMIT_MAX_CALLS 160
enum { CHUNK_F32, CHUNK_F64, CHUNK_U8, CHUNK_U16, CHUNK_KINDS }; /* element types of temporaries */

typedef struct Emit {
	const Tree *tree;
	Ir *ir;
	const Dialect *d;
	int depth, nname;
	Scope scope[EMIT_MAX_SCOPES];
	NodeNote *note;
	uint32_t room, stamp, scopes;
	bool uses_lanes, calls, atomics;
	bool uses_math, too_large; /* too_large: more temporaries than there are */
	int ncall; /* functions of vectors and chunks that are called: declarations */
	const char *call[EMIT_MAX_CALLS];
	int ntemp[CHUNK_KINDS], nstart;
	int nwide; /* of the loop that is open */
	Wide wide[WIDE_STORES];
	bool unwanted; /* a value is being named that may not be evaluated where it stands */
} Emit;

/* A value with a longer text is named where it is shared: it may be written once only. */
enum { TEXT_LONG = 400 };

/* The type of a variable that holds n. */
const char *emit_ctype(Emit *e, Node *n);
/* The value of n as a C expression in the current scope. lazy: it may not be evaluated, so nothing
 * that reads memory may be computed ahead of it. */
const char *emit_value(Emit *e, Node *n, bool lazy);
/* In the current scope the value of n is called so. */
void emit_name(Emit *e, Node *n, const char *name);
/* The function of a cast that no conversion of C does; NULL: one does. */
const char *emit_cast_function(Emit *e, const Node *n);
/* The value of n as a term of a sum, which rounds it anyway: a quotient is a product. */
const char *emit_term(Emit *e, Node *n);
/* Is c such that x/c is better computed from 1/c? (Of a power of two compilers know.) */
bool emit_inverts(const Node *c);
/* The place buffer[index] as an lvalue. */
const char *emit_place(Emit *e, Node *buffer, Node *index, bool lazy);
/* Its address. */
const char *emit_address(Emit *e, Node *buffer, Node *index);
/* Counts uses below n for the statement that comes next (stamp is new). */
void emit_count(Emit *e, Node *n);
void emit_statement(Emit *e); /* a new stamp */

/* Does the store read the buffer? */
static inline bool store_reads(const Stmt *s, Node *buffer)
{
	return node_has(s->value, buffer) || node_has(s->index, buffer);
}
/* What stands before the type of what is in the device's memory. */
static inline const char *emit_memory(const Emit *e)
{
	return e->d->memory ? e->d->memory : "";
}
/* A line that stands before the kernel, once. */
void emit_declare(Emit *e, const char *text);
/* One line of code in the current scope, and scopes themselves. */
void emit_line(Emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void emit_open(Emit *e, Node *axis, bool guarded);
void emit_close(Emit *e);
/* How bad the memory reads below n are: READS_*. */
int emit_reads(Emit *e, Node *n);
/* In how many places of the counted statements n stands. */
int emit_uses(Emit *e, const Node *n);
/* A vector loop as calls of functions over chunks (chunk_loop.c); false: it is none of that kind,
 * and nothing was emitted. */
bool emit_vector(Emit *e, const Stmt *s);
/* The same of a loop that does nothing but such a short one. */
bool emit_box(Emit *e, const Stmt *s);
/* Around a loop whose stores go to neighbours: variables that it fills, and one store of each (wide.c); false: it is
 * none of that kind. */
bool emit_wide_begin(Emit *e, const Stmt *loop);
void emit_wide_end(Emit *e, const Stmt *loop);
/* Where the store of a step goes in its variable; NULL: it has none. */
const char *emit_wide_place(const Emit *e, const Stmt *s, const Node *axis);
/* How functions of values of that type end. */
const char *emit_suffix(Type t);
/* The type of a vector (lanes.c). */
const char *emit_vector_type(Emit *e, Type t, int64_t lanes);
/* A LANES loop. */
void emit_lanes(Emit *e, const Stmt *loop);
/* Drops the names of a scope: all, or those that depend on memory that changes. */
void emit_forget(Emit *e, int depth, bool only_changing);
/* In all open scopes: memory changes here. */
void emit_forget_changing(Emit *e);

#endif
