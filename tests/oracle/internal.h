/* internal.h - what the files of tests/oracle share: the syntax tree, an equation with its indices,
 * and the state of a run. Passes in order: text.c, types.c, ranges.c, values.c; program.c puts them
 * together. The first error ends the run by longjmp. */
#ifndef ORACLE_INTERNAL_H
#define ORACLE_INTERNAL_H

#include "tests/oracle/oracle.h"

#include <math.h>
#include <setjmp.h>
#include <stddef.h>

#define COUNT_OF(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* The data types; then what adapts to the other side of an operator: whole numbers; those and index
 * names; numbers with a point and quotients of numbers; comparisons. */
typedef enum {
	F32,
	F64,
	BF16,
	F16,
	I8,
	U8,
	I32,
	I64,
	BOOL,
	TYPES,
	NUMBER = TYPES,
	WHOLE,
	REAL,
	TRUTH
} Kind;

typedef enum {
	X_WHOLE, /* 3 */
	X_REAL,	 /* 0.5 */
	X_INDEX,
	X_TRAINING,
	X_VALUE,  /* a name that stands for an expression: arg[0], in this equation */
	X_SIZE,	  /* A.size(0) */
	X_READ,	  /* A[..] */
	X_PADDED, /* A[..] else x */
	X_CALL,	  /* a function of floats or numbers */
	X_CAST,
	X_DRAW, /* random, normal */
	X_NEG,
	X_NOT,
	X_CHOICE,
	X_OR,
	X_AND,
	X_EQ,
	X_NE,
	X_LT,
	X_LE,
	X_GT,
	X_GE,
	X_ADD,
	X_SUB,
	X_MUL,
	X_DIV,
	X_MOD,
	X_CONVERT /* made by types.c: arg[0] to this type */
} Form;

typedef struct Expr {
	Form form;
	Kind kind, type; /* what it is by itself; the type that it is computed in */
	int n;		 /* of the arguments */
	struct Expr **arg;
	const char *name, *at; /* at: in the text */
	int64_t i;	       /* a whole number, a dimension, an index's place, a function's */
	double f;
	int dots; /* of a read: 1 + the dimensions that `...` is in it, or 0 */
	OracleTensor *tensor;
	struct Expr *definition;     /* of a value, as it was read */
	const struct Equation *seen; /* a definition: the last one that uses it */
	struct Instance *instance;
} Expr;

/* A value in the equation at hand: its definition once for each type that it takes there. */
typedef struct Instance {
	const Expr *definition;
	bool index, settled;
	Expr *root;
	double point; /* where its value is known */
	OracleValue value;
	struct Instance *next;
} Instance;

typedef struct Named {
	const char *name;
	Expr *definition;
	struct Named *next;
} Named;

typedef struct Index {
	const char *name;
	bool left, known;
	Expr *low, *high; /* of `where`, or NULL */
	int64_t first, extent, value;
} Index;

typedef enum { SET, SUM, PRODUCT, GREATEST, LEAST } Assign;

enum { ORACLE_INDICES = 32 };

typedef struct Equation {
	const char *name;
	int rank, nindex;
	Expr *left[2 * ORACLE_RANK], *extent[2 * ORACLE_RANK]; /* extent: or NULL */
	Assign assign;
	Expr *body;
	Index index[ORACLE_INDICES];
	int nrange;
	struct {
		const char *name;
		Expr *low, *high;
	} range[ORACLE_INDICES];
} Equation;

struct Oracle {
	jmp_buf stop;
	char error[400];
	bool gave_up;
	double steps; /* that are left */
	struct Chunk *memory;
	const char *text, *at, *token; /* at: behind the token */
	int length;		       /* of the token */
	OracleTensor *tensor;	       /* in the order of assignment, operands first */
	int ntensor, room;
	Named *named;	    /* values, the newest first */
	Equation *eq;	    /* the one at hand */
	Instance *instance; /* its values */
	double point;	    /* points evaluated so far */
	int64_t element;    /* the number of the point in its domain */
	bool training;
	const char **result; /* by a signature, or NULL */
	int nresult;
	bool inferring; /* indices that aren't known, and data, are lost */
	uint64_t seed;	/* of random numbers: of the step of the loop at hand */
};

/* ---- program.c */
void *take(Oracle *o, size_t bytes); /* zeroed */
_Noreturn void fail(Oracle *o, const char *at, const char *format, ...);
void step(Oracle *o, double n); /* counts n of them, and ends the run when they are used up */
OracleTensor *tensor_find(const Oracle *o, const char *name); /* or NULL */

/* ---- text.c */
void token_next(Oracle *o);
bool token_is(const Oracle *o, const char *what);
bool token_take(Oracle *o, const char *what);
void token_need(Oracle *o, const char *what);
const char *token_name(Oracle *o);
int64_t token_whole(Oracle *o);
Equation *equation_read(Oracle *o);
void named_read(Oracle *o);		   /* name = expr */
Expr *expr_copy(Oracle *o, const Expr *e); /* but for what values in it stand for */

/* ---- types.c */
/* Every Expr.type; conversions where types meet. */
void equation_types(Oracle *o, Equation *q);
bool is_float(Kind type);

/* ---- functions.c: those of floats and of numbers, by their place in a table */
int function_find(const char *name); /* or -1 */
int function_arguments(int i);
bool function_of_floats(int i); /* and of nothing else */
bool function_jumps(int i);
bool function_turns(int i);
double function_float(int i, double a, double b);
__int128 function_whole(int i, __int128 a, __int128 b);
/* The number, or an integer in it, as the type holds it: rounded to the nearest, or clipped. */
double round_float(Kind type, double v);
int64_t clip_float(Kind type, double v);
int64_t clip_whole(Kind type, int64_t v);
int64_t wrap(Kind type, __int128 v);
void range_of(Kind type, int64_t *least, int64_t *greatest);
double largest_of(Kind type); /* of what sums of this type are computed in */
/* Philox 4x32-10: uniform, or standard normal. */
float draw(bool normal, int64_t key, int64_t element, uint64_t seed);
uint64_t seed_of_step(uint64_t seed, int64_t t);

/* ---- values.c */
OracleValue value_of(Oracle *o, const Expr *e);
OracleValue reduce_start(Assign how, Kind type);
OracleValue reduce(Assign how, Kind type, OracleValue v, OracleValue x, double *most);
bool is_lost(OracleValue v);

/* ---- ranges.c */
void equation_ranges(Oracle *o, Equation *q);

#endif
