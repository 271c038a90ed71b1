/* eliminate.h - systems of linear integer constraints, the arithmetic under polyhedron.c. */
#ifndef CORE_ALGEBRA_INTERNAL_H
#define CORE_ALGEBRA_INTERNAL_H

#include "core/algebra/algebra.h"

enum { SYSTEM_MAX_VARS = 48 };

/* Rows row[0] + sum row[1 + v] * x_v >= 0 (or = 0 where equal), `width` cells apart, cells past
 * nvar zero. */
typedef struct System {
	int nvar, nrow, width, room;
	int64_t *cell;
	bool *equal;
} System;

static inline int64_t *system_row(const System *s, int r)
{
	return s->cell + (size_t)r * (size_t)s->width;
}

/* DROP: says nothing, or would leave int64 when negated. */
typedef enum { ROW_DROP, ROW_FALSE, ROW_LIVE } RowKind;
/* Divides by the gcd of the coefficients, the constant rounded down: no integer point is lost. */
RowKind row_tighten(int64_t *row, int nvar, bool equal);

/* Proved to hold no integer point? start >= 0: only what is connected with the rows from `start` on
 * is looked at. */
bool system_is_empty(const System *s, int start);
/* Bounds of variable z by elimination of all others; start as above. An empty system gives lo 1,
 * hi 0. */
void system_bounds(const System *s, int z, int start, bool *has_lo, int64_t *lo, bool *has_hi,
		   int64_t *hi);
/* The Ir that p's nodes live in (polyhedron.c). */
Ir *poly_ir(const Polyhedron *p);

#endif
