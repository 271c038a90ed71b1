/* oracle.h - a second definition of the notation: an evaluator of its texts that tests judge the
 * library by. It is written from docs/notation.md and docs/loops.md and includes nothing of the
 * library: its own parser, its own rules of types, ranges found by trying, a walk over the syntax
 * tree for each point of an equation's domain, nothing simplified and nothing assumed.
 *
 * Integers are exact and wrap to their type. Floats are doubles that casts alone round. Each value
 * comes with its magnitude: to first order, rounding every operation by a relative eps moves the
 * value by at most eps times that. It is infinite (lost) where rounding decides. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stdint.h>

enum { ORACLE_RANK = 16 };

/* What a datum has by its type: a float, or an integer (bool: 0 and 1). */
typedef struct OracleValue {
	union {
		double f;
		int64_t i;
	};
	double magnitude;
	bool exact; /* no operation on the way has rounded it */
} OracleValue;

typedef struct OracleTensor {
	const char *name;
	int type; /* oracle_type */
	int rank;
	int64_t shape[ORACLE_RANK], size;
	OracleValue *at;
	bool assigned, read; /* by an equation */
	int64_t points;	     /* of its domain */
} OracleTensor;

typedef struct Oracle Oracle;

/* The number of a type's name, or -1. */
int oracle_type(const char *name);
bool oracle_is_float(int type);
/* The values of the program `text` over the operands, scalar integers among them, which a text may
 * have without brackets; training: what that stands for. NULL where memory is short. oracle_error:
 * what is wrong with the text, or NULL. The program is given up after `most` steps, which is no
 * error, but oracle_tensor finds nothing then. */
Oracle *oracle_run(const char *text, bool training, int noperand, const OracleTensor *operand,
		   double most);
const char *oracle_error(const Oracle *o);
bool oracle_gave_up(const Oracle *o);
/* A tensor that the program assigns, or an operand; NULL where there is none of this name. */
const OracleTensor *oracle_tensor(const Oracle *o, const char *name);
/* The k-th result: by the signature, else of the tensors that are assigned and not read; or NULL. */
const OracleTensor *oracle_result(const Oracle *o, int k);
void oracle_free(Oracle *o);

#endif
