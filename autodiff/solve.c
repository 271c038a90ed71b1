/* solve.c - integer linear systems by unimodular column operations (Hermite normal form).
 *
 * Input: a small integer matrix. Output: all integer solutions as particular part and lattice
 * basis. The basis is itself brought to echelon form over the unknowns of least weight, so that a
 * box of these unknowns becomes a box of the free variables: iterating it meets every solution
 * once, with the strides that divide a residue class already divided out (Schrijver, Theory of
 * Linear and Integer Programming, chapter 4). Invariant: nothing wraps; an entry that leaves
 * +-LIMIT is reported as overflow.
 */
#include "autodiff/internal.h"
#include <stdlib.h>
#include <string.h>

#define LIMIT ((int64_t)1 << 40)

/* column to -= q * column from, in an m x n matrix */
static bool column_subtract(int m, int n, int64_t *a, int to, int from, int64_t q)
{
	for (int i = 0; i < m; i++) {
		int64_t p, r;
		if (__builtin_mul_overflow(q, a[i * n + from], &p) ||
		    __builtin_sub_overflow(a[i * n + to], p, &r) || r > LIMIT || r < -LIMIT)
			return false;
		a[i * n + to] = r;
	}
	return true;
}

/* Swaps columns j and k; column j changes its sign. */
static void column_swap(int m, int n, int64_t *a, int j, int k, int64_t sign)
{
	for (int i = 0; i < m; i++) {
		int64_t t = a[i * n + j];
		a[i * n + j] = sign * a[i * n + k];
		if (j != k)
			a[i * n + k] = t;
	}
}

/* Euclid over columns first.. of one row: leaves at most one entry, positive, in column first.
 * 1: an entry, 0: none, -1: overflow. The last of equal entries is taken as the divisor, so that
 * earlier unknowns stay out of the particular solution. */
static int row_reduce(int row, int m, int n, int64_t *a, int first)
{
	for (;;) {
		int best = -1, others = 0;
		for (int j = first; j < n; j++) {
			int64_t v = llabs(a[row * n + j]);
			if (!v)
				continue;
			others++;
			if (best < 0 || v <= llabs(a[row * n + best]))
				best = j;
		}
		if (best < 0)
			return 0;
		if (others == 1) {
			column_swap(m, n, a, first, best, a[row * n + best] < 0 ? -1 : 1);
			return 1;
		}
		for (int j = first; j < n; j++)
			if (j != best && a[row * n + j] &&
			    !column_subtract(m, n, a, j, best, a[row * n + j] / a[row * n + best]))
				return -1;
	}
}

/* Makes column `rank` the pivot column of the row and reduces the row's earlier entries by it. */
static int row_pivot(int row, int m, int n, int64_t *a, int rank)
{
	int got = row_reduce(row, m, n, a, rank);
	for (int j = 0; got > 0 && j < rank; j++) {
		int64_t q = int_floor_div(a[row * n + j], a[row * n + rank]);
		if (q && !column_subtract(m, n, a, j, rank, q))
			return -1;
	}
	return got;
}

int hermite_columns(int m, int below, int n, int64_t *a, int *pivot)
{
	int rank = 0;
	for (int row = 0; row < m && rank < n; row++) {
		int got = row_pivot(row, m + below, n, a, rank);
		if (got < 0)
			return -1;
		if (got)
			pivot[rank++] = row;
	}
	return rank;
}

static int64_t row_gcd(int row, int n, const int64_t *a, int first)
{
	int64_t g = 0;
	for (int j = first; j < n; j++)
		g = int_gcd(g, a[row * n + j]);
	return g;
}

/* The row that runs over the fewest values once its stride in the lattice is divided out; of equal
 * ones the larger stride, then the later row. */
static int row_choose(int n, int nfree, const int64_t *basis, int first, const int64_t *extent)
{
	int best = -1;
	int64_t cost = 0, stride = 0;
	for (int i = 0; i < n; i++) {
		int64_t g = row_gcd(i, nfree, basis, first);
		if (!g)
			continue;
		int64_t c = (extent[i] + g - 1) / g;
		if (best < 0 || c < cost || (c == cost && g >= stride)) {
			best = i;
			cost = c;
			stride = g;
		}
	}
	return best;
}

static int64_t *columns_copy(Arena *arena, int m, int n, const int64_t *a, int from, int to)
{
	int64_t *r = arena_alloc(arena, sizeof *r * (size_t)(m * (to - from) + 1));
	for (int i = 0; i < m; i++)
		for (int j = from; j < to; j++)
			r[i * (to - from) + j - from] = a[i * n + j];
	return r;
}

bool solve_system(Arena *arena, int m, int n, const int64_t *matrix, const int64_t *extent,
		  Solution *s)
{
	int64_t *a = arena_alloc(arena, sizeof *a * (size_t)((m + n) * n + 1)), *u = a + m * n;
	memcpy(a, matrix, sizeof *a * (size_t)(m * n));
	for (int i = 0; i < n; i++)
		u[i * n + i] = 1;
	*s = (Solution){.m = m, .n = n};
	s->pivot = arena_alloc(arena, sizeof(int) * (size_t)(n + 1));
	s->rank = hermite_columns(m, n, n, a, s->pivot);
	if (s->rank < 0)
		return false;
	s->nfree = n - s->rank;
	s->h = columns_copy(arena, m, n, a, 0, s->rank);
	s->u = columns_copy(arena, n, n, u, 0, s->rank);
	s->basis = columns_copy(arena, n, n, u, s->rank, n);
	s->pick = arena_alloc(arena, sizeof(int) * (size_t)(n + 1));
	for (int j = 0; j < s->nfree; j++) {
		s->pick[j] = row_choose(n, s->nfree, s->basis, j, extent);
		if (row_pivot(s->pick[j], n, s->nfree, s->basis, j) <= 0)
			return false;
	}
	return true;
}
