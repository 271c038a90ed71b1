/* eliminate.c - deciding systems of linear integer constraints.
 *
 * Equalities go first: a variable with a unit coefficient is substituted; where there is none,
 * Euclid's algorithm on the columns (x_k := t - sum q_j x_j, unimodular, so exact) makes one. Then
 * Fourier-Motzkin elimination, the variable with the fewest new rows first, each row divided by its
 * gcd and rounded. The real shadow contains the integer one, so an empty shadow is a proof. Rows
 * that leave int64 are dropped, and too many rows end the search: both only lose proofs. Invariant:
 * no cell of a Work is INT64_MIN, so each can be negated. */
#include "core/algebra/internal.h"

#include <stdlib.h>
#include <string.h>

enum { WORK_ROWS = 400, WORK_CELLS = 16384, WORK_STEPS = 6000, TAKE_CELLS = 4096 };

typedef struct Work {
	int nvar, width, nrow, room;
	int steps;		  /* rows that may still be made */
	bool contradiction;	  /* a row was false: no integer points */
	int var[SYSTEM_MAX_VARS]; /* column -> variable of the system */
	int kept;		  /* the column that is not eliminated; -1: none */
	bool equal[WORK_ROWS];
	uint64_t key[WORK_ROWS]; /* linear in the coefficients: -key means opposite rows */
	int64_t cell[WORK_CELLS];
} Work;

static int64_t *work_row(Work *w, int r)
{
	return w->cell + (size_t)r * (size_t)w->width;
}

RowKind row_tighten(int64_t *row, int nvar, bool equal)
{
	int64_t g = 0;
	for (int v = 1; v <= nvar; v++) {
		if (row[v] == INT64_MIN)
			return ROW_DROP;
		if (row[v] && g != 1)
			g = int_gcd(row[v], g);
	}
	if (g == 0)
		return (equal ? row[0] == 0 : row[0] >= 0) ? ROW_DROP : ROW_FALSE;
	if (row[0] == INT64_MIN)
		return ROW_DROP;
	if (g == 1)
		return ROW_LIVE;
	if (equal && row[0] % g)
		return ROW_FALSE;
	row[0] = int_floor_div(row[0], g);
	for (int v = 1; v <= nvar; v++)
		row[v] /= g;
	return ROW_LIVE;
}

static uint64_t row_key(const int64_t *row, int nvar)
{
	uint64_t key = 0;
	for (int v = 1; v <= nvar; v++)
		key = (key + (uint64_t)row[v]) * 0x9e3779b97f4a7c15u;
	return key;
}

static bool rows_parallel(const int64_t *a, const int64_t *b, int nvar, int sign)
{
	for (int v = 1; v <= nvar; v++)
		if ((uint64_t)a[v] != (sign > 0 ? (uint64_t)b[v] : -(uint64_t)b[v]))
			return false;
	return true;
}

static void work_remove(Work *w, int r)
{
	int last = --w->nrow;
	if (r != last)
		memcpy(work_row(w, r), work_row(w, last), (size_t)w->width * sizeof(int64_t));
	w->equal[r] = w->equal[last];
	w->key[r] = w->key[last];
}

/* 1 where old row r has the coefficients of row, -1 where they are opposite, else 0. */
static int work_parallel(Work *w, int r, const int64_t *row, uint64_t key)
{
	if (w->key[r] == key && rows_parallel(work_row(w, r), row, w->nvar, 1))
		return 1;
	return w->key[r] == -key && rows_parallel(work_row(w, r), row, w->nvar, -1) ? -1 : 0;
}

/* Takes the row that stands after the last one into the system, tightened and merged with its
 * parallels: at most one row a direction stays, and opposite rows that touch are an equality. */
static void work_accept(Work *w, bool equal)
{
	int64_t row[SYSTEM_MAX_VARS + 1], gap;
	memcpy(row, work_row(w, w->nrow), (size_t)w->width * sizeof *row);
	RowKind kind = row_tighten(row, w->nvar, equal);
	w->contradiction |= kind == ROW_FALSE;
	if (kind != ROW_LIVE)
		return;
	uint64_t key = row_key(row, w->nvar);
	for (int r = 0; r < w->nrow; r++) {
		int sign = work_parallel(w, r, row, key);
		int64_t old = work_row(w, r)[0];
		bool old_equal = w->equal[r];
		if (!sign)
			continue;
		/* The slack that the one leaves to the other. */
		if (sign < 0 ? __builtin_add_overflow(row[0], old, &gap)
		    : equal  ? __builtin_sub_overflow(old, row[0], &gap)
			     : __builtin_sub_overflow(row[0], old, &gap))
			continue;
		if (old_equal && equal ? gap != 0 : gap < 0 && (old_equal || equal || sign < 0)) {
			w->contradiction = true;
			return;
		}
		if (old_equal || (!equal && sign > 0 && gap >= 0))
			return;
		if (!equal && sign < 0 && gap > 0)
			continue;
		equal |= sign < 0;
		work_remove(w, r--);
	}
	memcpy(work_row(w, w->nrow), row, (size_t)w->width * sizeof *row);
	w->equal[w->nrow] = equal;
	w->key[w->nrow++] = key;
}

/* Moves the rows with column v into rows[], at most `most`, the last ones first; returns the count.
 * What does not fit stays. */
static int work_take(Work *w, int v, int64_t *rows, bool *equal, int most)
{
	int n = 0;
	for (int r = w->nrow - 1; r >= 0 && n < most; r--) {
		if (!work_row(w, r)[1 + v])
			continue;
		equal[n] = w->equal[r];
		memcpy(rows + n++ * w->width, work_row(w, r), (size_t)w->width * sizeof *rows);
		work_remove(w, r);
	}
	return n;
}

/* Copies what is connected with the rows from start on (all when start < 0). false: too large. */
static bool work_begin(Work *w, const System *s, int start)
{
	bool row_in[WORK_ROWS], var_in[SYSTEM_MAX_VARS];
	if (s->nrow > WORK_ROWS)
		return false;
	for (int r = 0; r < s->nrow; r++)
		row_in[r] = start < 0 || r >= start;
	memset(var_in, start < 0, sizeof var_in);
	for (bool grown = start >= 0; grown;) {
		grown = false;
		for (int r = 0; r < s->nrow; r++) {
			const int64_t *row = system_row(s, r);
			for (int v = 0; v < s->nvar && !row_in[r]; v++)
				row_in[r] = row[1 + v] && var_in[v];
			for (int v = 0; v < s->nvar && row_in[r]; v++)
				if (row[1 + v] && !var_in[v])
					var_in[v] = grown = true;
		}
	}
	w->nvar = 0;
	for (int v = 0; v < s->nvar; v++)
		if (var_in[v])
			w->var[w->nvar++] = v;
	w->kept = -1;
	w->width = w->nvar + 1;
	w->nrow = 0;
	w->room = WORK_CELLS / w->width - 1;
	if (w->room > WORK_ROWS - 1)
		w->room = WORK_ROWS - 1;
	w->steps = WORK_STEPS;
	w->contradiction = false;
	for (int r = 0; r < s->nrow; r++) {
		if (!row_in[r])
			continue;
		if (w->nrow >= w->room)
			return false;
		int64_t *to = work_row(w, w->nrow);
		const int64_t *row = system_row(s, r);
		to[0] = row[0];
		for (int c = 0; c < w->nvar; c++)
			to[1 + c] = row[1 + w->var[c]];
		work_accept(w, s->equal[r]);
	}
	return true;
}

/* to = a*x + b*y; false when that leaves int64. */
static bool row_combine(int64_t *to, const int64_t *x, int64_t a, const int64_t *y, int64_t b,
			int nvar)
{
	for (int v = 0; v <= nvar; v++) {
		int64_t s, t;
		if (__builtin_mul_overflow(x[v], a, &s) || __builtin_mul_overflow(y[v], b, &t) ||
		    __builtin_add_overflow(s, t, &to[v]))
			return false;
	}
	return true;
}

/* ---- equalities ---- */

/* Substitutes column v by equality e, whose coefficient there is 1 or -1. */
static void work_substitute(Work *w, int e, int v)
{
	int64_t eq[SYSTEM_MAX_VARS + 1], rows[TAKE_CELLS];
	bool equal[WORK_ROWS];
	memcpy(eq, work_row(w, e), (size_t)w->width * sizeof *eq);
	work_remove(w, e);
	for (int n; (n = work_take(w, v, rows, equal, TAKE_CELLS / w->width)) > 0;)
		for (int i = 0; i < n; i++) {
			const int64_t *row = rows + i * w->width;
			int64_t k = row[1 + v];
			if (row_combine(work_row(w, w->nrow), row, 1, eq, eq[1 + v] > 0 ? -k : k,
					w->nvar))
				work_accept(w, equal[i]);
		}
}

/* x_k := t - sum q_j x_j, so that the other coefficients of equality e become remainders by k's. */
static bool work_euclid(Work *w, int e, int k)
{
	int64_t q[SYSTEM_MAX_VARS];
	const int64_t *eq = work_row(w, e);
	for (int v = 0; v < w->nvar; v++)
		q[v] = v == k ? 0 : int_floor_div(eq[1 + v], eq[1 + k]);
	for (int r = 0; r < w->nrow; r++) {
		int64_t *row = work_row(w, r), part;
		for (int v = 0; row[1 + k] && v < w->nvar; v++)
			if (q[v] && (__builtin_mul_overflow(q[v], row[1 + k], &part) ||
				     __builtin_sub_overflow(row[1 + v], part, &row[1 + v]) ||
				     row[1 + v] == INT64_MIN))
				return false;
		w->key[r] = row_key(row, w->nvar);
	}
	return true;
}

/* Removes equality e with one variable; false when only kept variables stop it or numbers overflow.
 */
static bool work_solve(Work *w, int e)
{
	for (;;) {
		const int64_t *eq = work_row(w, e);
		int best = -1, others = 0;
		for (int v = 0; v < w->nvar; v++) {
			if (eq[1 + v] && v != w->kept &&
			    (best < 0 || llabs(eq[1 + v]) < llabs(eq[1 + best])))
				best = v;
		}
		if (best < 0)
			return false;
		int64_t k = eq[1 + best];
		if (k == 1 || k == -1) {
			work_substitute(w, e, best);
			return true;
		}
		for (int v = 0; v < w->nvar; v++)
			others += v != best && v != w->kept && eq[1 + v];
		if (!others)
			return false;
		if (!work_euclid(w, e, best)) {
			/* Columns are half changed: nothing can be said any more. */
			w->nrow = 0;
			return false;
		}
	}
}

static void work_equalities(Work *w)
{
	for (int e = 0; e < w->nrow && !w->contradiction;) {
		if (w->equal[e] && work_solve(w, e))
			e = 0;
		else
			e++;
	}
}

/* ---- inequalities ---- */

/* The column to eliminate with the fewest new rows, or -1. An equality that could not be solved
 * counts on both sides. */
static int work_choose(Work *w, long *cost)
{
	int best = -1;
	for (int v = 0; v < w->nvar; v++) {
		long up = 0, down = 0;
		if (v == w->kept)
			continue;
		for (int r = 0; r < w->nrow; r++) {
			int64_t k = work_row(w, r)[1 + v];
			up += k > 0 || (k && w->equal[r]);
			down += k < 0 || (k && w->equal[r]);
		}
		if (up + down && (best < 0 || up * down - up - down < *cost)) {
			best = v;
			*cost = up * down - up - down;
		}
	}
	return best;
}

/* Combines lower row x and upper row y in column v into a new row at the end. */
static void work_pair(Work *w, const int64_t *x, const int64_t *y, int v)
{
	int64_t *to = work_row(w, w->nrow), a = x[1 + v], b = -y[1 + v];
	int64_t g = int_gcd(a, b);
	if (row_combine(to, x, b / g, y, a / g, w->nvar))
		work_accept(w, false);
}

/* Fourier-Motzkin on column v; false when there is no room or no time for it. */
static bool work_eliminate(Work *w, int v)
{
	int64_t rows[TAKE_CELLS];
	bool equal[WORK_ROWS];
	int most = TAKE_CELLS / w->width / 2, n = work_take(w, v, rows, equal, most), taken = n;
	for (int i = 0; i < taken; i++) {
		if (!equal[i])
			continue;
		for (int c = 0; c < w->width; c++)
			rows[n * w->width + c] = -rows[i * w->width + c];
		n++;
	}
	if (taken == most)
		return false;
	for (int i = 0; i < n && !w->contradiction; i++)
		for (int k = 0; k < n; k++) {
			const int64_t *x = rows + i * w->width, *y = rows + k * w->width;
			if (x[1 + v] < 0 || y[1 + v] > 0)
				continue;
			if (w->nrow >= w->room || --w->steps < 0)
				return false;
			work_pair(w, x, y, v);
		}
	return true;
}

/* Eliminates every column but the kept one; false when the work limit stops it. */
static bool work_run(Work *w)
{
	while (!w->contradiction) {
		long cost = 0;
		work_equalities(w);
		int v = work_choose(w, &cost);
		if (v < 0 || w->contradiction)
			return true;
		if (!work_eliminate(w, v))
			return w->contradiction;
	}
	return true;
}

/* ---- questions ---- */

bool system_is_empty(const System *s, int start)
{
	Work w;
	if (!work_begin(&w, s, start))
		return false;
	work_run(&w);
	return w.contradiction;
}

void system_bounds(const System *s, int z, int start, bool *has_lo, int64_t *lo, bool *has_hi,
		   int64_t *hi)
{
	Work w;
	*has_lo = *has_hi = false;
	*lo = *hi = 0;
	if (!work_begin(&w, s, start))
		return;
	for (int c = 0; c < w.nvar; c++)
		if (w.var[c] == z)
			w.kept = c;
	if (w.kept < 0 || !work_run(&w))
		return;
	if (w.contradiction) {
		*has_lo = *has_hi = true;
		*lo = 1;
		return;
	}
	for (int r = 0; r < w.nrow; r++) {
		const int64_t *row = work_row(&w, r);
		int64_t k = row[1 + w.kept];
		bool both = w.equal[r];
		if (k != 1 && k != -1)
			continue;
		int64_t end = k > 0 ? -row[0] : row[0];
		if ((k > 0 || both) && (!*has_lo || end > *lo)) {
			*has_lo = true;
			*lo = end;
		}
		if ((k < 0 || both) && (!*has_hi || end < *hi)) {
			*has_hi = true;
			*hi = end;
		}
	}
}
