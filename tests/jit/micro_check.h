/* micro_check.h - micro-kernels against plain loops over the definition in jit/micro/micro.h. */
#ifndef MICRO_CHECK_H
#define MICRO_CHECK_H

#include "jit/micro/micro.h"
#include "jit/symbols.h"
#include "tests/check.h"
#include <stdlib.h>

enum { MICRO_DEPTH = 150, MICRO_EDGE = 3, MICRO_GUARD = 7 };

/* Every sum is exact in f32: small integers. Bytes reach the ends of their range. */
static double micro_value(Type t, int64_t i)
{
	static const int byte[] = {-128, 127, 3, -1, 0, 100, -77};
	static const int unsigned_byte[] = {255, 0, 128, 7, 127, 200};
	if (t == RICCI_I8)
		return byte[i % 7];
	if (t == RICCI_U8)
		return unsigned_byte[i % 6];
	return (double)(i * 7 % 15 - 7);
}

/* One panel in its form, and the values of its elements in plain order: [k * lanes + lane]. */
static void micro_panel(const PanelForm *form, Type from, int64_t lanes, int64_t k, void *panel,
			double *plain)
{
	int64_t deep = (k + form->group - 1) / form->group * form->group, g = form->group;
	size_t size = type_size(form->held);
	for (int64_t p = 0; p < deep; p++)
		for (int64_t l = 0; l < lanes; l++) {
			double v = p < k ? micro_value(from, p * lanes + l) : 0;
			size_t at = (size_t)(p / g * g * lanes + l * g + p % g);
			bool pair = size == 2 && from != RICCI_BF16;
			if (p < k)
				plain[p * lanes + l] = v;
			if (pair)
				((int16_t *)panel)[at] = (int16_t)v;
			else
				type_store(size == 1 ? from : form->held, panel, at, v);
		}
}

/* Is it no sum's place, but one that may be overwritten? A tile with fewer rows or columns may
 * write a row and part of a vector more, where it is not to be exact. */
static bool micro_may_write(const Micro *m, int add, int64_t row, int64_t col, int64_t rows,
			    int64_t cols)
{
	return !(add & MICRO_EXACT) && row < m->mr && col < m->nr && (row >= rows || col >= cols);
}

static void micro_check_tile(const Micro *m, Type ta, Type tb, int64_t rows, int64_t cols,
			     int64_t k, int64_t ldc, int add)
{
	static double a[MICRO_DEPTH * 64], b[MICRO_DEPTH * 64], want[64 * 64];
	static _Alignas(64) char pa[MICRO_DEPTH * 64 * 16], pb[MICRO_DEPTH * 64 * 16],
		c[64 * 64 * 8];
	int64_t nc = m->mr * ldc + 2 * MICRO_GUARD, wrong = 0;
	micro_panel(&m->a, ta, m->mr, k, pa, a);
	micro_panel(&m->b, tb, m->nr, k, pb, b);
	if (m->a.finish)
		m->a.finish(pa, k);
	if (m->b.finish)
		m->b.finish(pb, k);
	for (int64_t i = 0; i < nc; i++)
		type_store(m->type, c, (size_t)i, want[i] = (double)(i % 11));
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++) {
			double sum = add & MICRO_ADD_UP ? want[MICRO_EDGE + i * ldc + j] : 0;
			for (int64_t p = 0; p < k; p++)
				sum += a[p * m->mr + i] * b[p * m->nr + j];
			want[MICRO_EDGE + i * ldc + j] = sum;
		}
	if (m->enter)
		m->enter();
	m->fn(rows, cols, k, pa, pb, c + MICRO_EDGE * type_size(m->type), ldc, add, pa, add, pb,
	      2 * add);
	if (m->leave)
		m->leave();
	for (int64_t i = 0; i < nc; i++) {
		int64_t row = (i - MICRO_EDGE) / ldc, col = (i - MICRO_EDGE) % ldc;
		bool edge = micro_may_write(m, add, row, col, rows, cols) && i >= MICRO_EDGE;
		wrong += !edge && type_load(m->type, c, (size_t)i) != want[i];
	}
	CHECK_REPORT(!wrong, "%s: %ld elements differ, %ldx%ld, k %ld, ldc %ld, add %d", m->symbol,
		     (long)wrong, (long)rows, (long)cols, (long)k, (long)ldc, add);
}

enum { MICRO_PLACED, MICRO_BOTH, MICRO_LISTED, MICRO_PLACES };

/* What half of the tiles are told of the next panel. */
static int64_t micro_ahead(int64_t rows, int64_t cols)
{
	int64_t each = 1 + cols % 7, deep = 1 + rows % 3 * 8;
	return (rows + cols) % 2 ? each << MICRO_AHEAD | deep << MICRO_DEEP : 0;
}

/* Factors in place. Small integers, so that every order of summation is exact. c begins at an odd
 * place in its memory. */
static void micro_check_in_place(const Micro *m, int64_t rows, int64_t cols, int64_t k, int64_t ldc,
				 int place, int add)
{
	static const char *const name[] = {"_placed", "_both", "_listed"};
	size_t size = type_size(m->type);
	Type of_a = m->a.held, of_b = m->b.held;
	int64_t nc = m->mr * ldc + 2 * MICRO_GUARD, group = m->a.group;
	k = k / group * group;
	char *a = aligned_alloc(64, (m->mr * k * size + 64) & -64),
	     *b = aligned_alloc(64, (m->nr * k * size + 64) & -64);
	char *c = aligned_alloc(64, (nc * size + 64) & -64);
	double *want = calloc(nc, sizeof *want);
	for (int64_t i = 0; i < m->mr * k; i++)
		type_store(of_a, a, (size_t)i, (double)(i * 7 % 15 - 7));
	for (int64_t i = 0; i < m->nr * k; i++)
		type_store(of_b, b, (size_t)i, (double)(i * 5 % 13 - 6));
	for (int64_t i = 0; i < nc; i++)
		type_store(m->type, c, (size_t)i, want[i] = (double)(i % 11));
	int64_t ts[64], tk[MICRO_DEPTH + 1] = {0}, wrong = 0;
	bool follows = add & MICRO_FOLLOWS;
	for (int64_t i = 0; i < m->mr; i++) { /* rows in another order: still inside a */
		int64_t row = m->mr - 1 - (follows && cols % 3 == 1 && i < 2 ? 1 - i : i);
		ts[i] = ts[m->mr + i] = (follows ? k : group) * row; /* and the next panel's */
	}
	for (int64_t p = 0; p < k; p++)
		tk[p] = follows ? p : m->mr * (k - group - p / group * group) + p % group;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++) {
			double sum = add & MICRO_ADD_UP ? want[MICRO_EDGE + i * ldc + j] : 0;
			for (int64_t p = 0; p < k; p++)
				sum += type_load(of_a, a, (size_t)(ts[i] + tk[p])) *
				       type_load(of_b, b,
						 (size_t)(p / group * group * m->nr + j * group +
							  p % group));
			want[MICRO_EDGE + i * ldc + j] = sum;
		}
	int64_t tb[MICRO_DEPTH + 1];
	for (int64_t p = 0; p < k; p++)
		tb[p] = p * m->nr;
	MicroPanel panel = {b, tb};
	MicroList list = {k, tk, tb};
	if (place == MICRO_LISTED)
		m->listed(rows, cols, &list, a, ts, b, c + MICRO_EDGE * size, ldc, add);
	else if (place == MICRO_BOTH)
		m->both(rows, cols, k, a, ts, tk, &panel, c + MICRO_EDGE * size, ldc, add,
			m->nr * k);
	else
		m->placed(rows, cols, k, a, ts, tk, b, c + MICRO_EDGE * size, ldc,
			  add | micro_ahead(rows, cols));
	for (int64_t i = 0; i < nc; i++) {
		int64_t row = (i - MICRO_EDGE) / ldc, col = (i - MICRO_EDGE) % ldc;
		bool edge = micro_may_write(m, add, row, col, rows, cols) && i >= MICRO_EDGE;
		wrong += !edge && type_load(m->type, c, (size_t)(i)) != want[i];
	}
	CHECK_REPORT(!wrong, "%s%s: %ld elements differ, %ldx%ld, k %ld, ldc %ld, add %d",
		     m->symbol, name[place], (long)wrong, (long)rows, (long)cols, (long)k,
		     (long)ldc, add);
	free(a);
	free(b);
	free(c);
	free(want);
}

/* All edges and depths; packed panels of every type that m takes, and factors in place. */
static void micro_check(const Micro *m)
{
	for (int ta = 0; ta < RICCI_NTYPES; ta++)
		for (int tb = 0; tb < RICCI_NTYPES; tb++) {
			unsigned a = m->a.from ? m->a.from : 1u << m->type;
			unsigned b = m->b.from ? m->b.from : 1u << m->type;
			if (!(a >> ta & 1) || !(b >> tb & 1))
				continue;
			for (int64_t k = 0; k < MICRO_DEPTH; k += k < 6 ? 1 : 13)
				for (int add = 0; add < 4; add++)
					micro_check_tile(m, ta, tb, m->mr, m->nr, k, m->nr + 5,
							 add);
			for (int64_t rows = 1; rows <= m->mr; rows++)
				for (int64_t cols = 1; cols <= m->nr; cols += 1 + m->nr / 20)
					micro_check_tile(m, ta, tb, rows, cols, 9, m->nr + 1,
							 (int)(rows + cols) % 4);
		}
	for (int way = 0; m->placed && way < 8 * MICRO_PLACES; way++) {
		int place = way % MICRO_PLACES, add = way / MICRO_PLACES;
		if (place == MICRO_BOTH && !m->both)
			continue;
		for (int64_t k = 0; k < MICRO_DEPTH; k += k < 6 ? 1 : 13)
			micro_check_in_place(m, m->mr, m->nr, k, m->nr + 5, place, add);
		for (int64_t rows = 1; rows <= m->mr; rows++)
			for (int64_t cols = 1; cols <= m->nr; cols++)
				micro_check_in_place(m, rows, cols, 9, m->nr + 1, place, add);
	}
}

#endif
