/* eliminate.h - systems of linear integer constraints, the arithmetic under polyhedron.c. */
#ifndef ELIMINATE_H
#define ELIMINATE_H

#include "core/core.h"

enum { SYSTEM_MAX_VARS = 48, SYSTEM_CELLS = 16384 };

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

typedef enum { ROW_TRUE, ROW_FALSE, ROW_LIVE } RowKind;
/* Divides by the gcd of the coefficients, the constant rounded down: no integer point is lost. */
RowKind row_tighten(int64_t *row, int nvar, bool equal);

/* Proved to hold no integer point? start >= 0: only what is connected with the rows from `start` on
 * is looked at. */
bool system_is_empty(const System *s, int start);
/* Bounds of variable z by elimination of all others; start as above. An empty system gives lo 1,
 * hi 0. */
void system_bounds(const System *s, int z, int start, bool *has_lo, int64_t *lo, bool *has_hi,
		   int64_t *hi);
/* The exact integer projection along the variables that are `gone`; rows with x that others imply
 * are left out. cell (SYSTEM_CELLS) and equal (SYSTEM_CELLS / 2) belong to the caller and hold the
 * result. false: not found. */
bool system_project(const System *s, int x, const bool *gone, int64_t *cell, bool *equal,
		    System *out);

/* The Ir that p's nodes live in (polyhedron.c). */
Ir *poly_ir(const Polyhedron *p);

#endif
