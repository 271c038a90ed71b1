/* pack.h - packing panels: what the instruction sets' files share. */
#ifndef JIT_CONTRACT_PACK_H
#define JIT_CONTRACT_PACK_H

#include "jit/micro/micro.h"

/* dst[k*lanes + l] = src[ts[l] + tk[k]] where ts[r*ss + l] + tk[r*sk + k] + rest[r-1] >= 0 for all
 * r in 1..nc, else 0; for 0 <= k < nk, 0 <= l < count (at most lanes). Rows 1.. of the tables are
 * the conditions, which repeat after `period` elements of K (0: never). Up to PACK_SLACK elements
 * behind the panel, and lanes from count on, may be overwritten. */
#define PACK(name, T)                                                                              \
	void name(const T *src, T *dst, const int64_t *ts, int64_t ss, const int64_t *tk,          \
		  int64_t sk, int64_t nc, const int64_t *rest, int64_t lanes, int64_t count,       \
		  int64_t nk, int64_t period)
PACK(ricci_pack_plain_f32, float);
PACK(ricci_pack_plain_f64, double);

/* dst[tm[i] + tn[j]] = c[i*ldc + j], by an instruction set's way to do so where tm's values follow
 * each other. */
#define UNPACK_RUN(name, T)                                                                        \
	void name(const T *restrict c, int64_t ldc, T *restrict dst, const int64_t *tn,            \
		  int64_t rows, int64_t cols)
#define UNPACK(name, T, ...)                                                                       \
	void name(const T *restrict c, int64_t ldc, T *restrict dst, const int64_t *tm,            \
		  const int64_t *tn, int64_t rows, int64_t cols __VA_ARGS__)
typedef UNPACK_RUN(UnpackRun_f32, float);
typedef UNPACK_RUN(UnpackRun_f64, double);
UnpackRun_f32 ricci_unpack_run_plain_f32;
UnpackRun_f64 ricci_unpack_run_plain_f64;
UNPACK(ricci_unpack_by_f32, float, , UnpackRun_f32 *unpack_run);
UNPACK(ricci_unpack_by_f64, double, , UnpackRun_f64 *unpack_run);

/* Do v's values follow each other? */
static inline bool in_order(const int64_t *v, int64_t n)
{
	bool ok = true;
	for (int64_t i = 1; i < n; i++)
		ok &= v[i] == v[0] + i;
	return ok;
}

/* How many elements of K from k on have the same conditions as k; tk: rows of conditions. */
static inline int64_t run_length(const int64_t *tk, int64_t sk, int64_t nc, int64_t k, int64_t nk)
{
	int64_t end = nk;
	for (int64_t r = 0; r < nc; r++) {
		const int64_t *t = tk + r * sk;
		int64_t e = k + 1;
		while (e < end && t[e] == t[k])
			e++;
		end = e;
	}
	return end - k;
}

/* Where all conditions hold at one element of K: ok[l], and how many. */
static inline int64_t lanes_good(const int64_t *ts, int64_t ss, const int64_t *tk, int64_t sk,
				 int64_t nc, const int64_t *rest, int64_t lanes, bool *ok)
{
	int64_t good = 0;
	for (int64_t l = 0; l < lanes; l++) {
		int64_t least = 0;
		for (int64_t r = 0; r < nc; r++)
			least |= ts[r * ss + l] + tk[r * sk] + rest[r];
		good += ok[l] = least >= 0;
	}
	return good;
}

/* The same for narrow factors (pack_narrow.c), by name: ricci_pack_FROM_THROUGH_BITS.
 * Elements of type FROM, rounded to THROUGH, go into elements of BITS in groups (PanelForm); behind
 * nk come zeros up to a multiple of `whole`, which is one of group. */
#define PACK_NARROW(name, FROM, TO)                                                                \
	void name(const FROM *src, TO *restrict dst, const int64_t *ts, int64_t ss,                \
		  const int64_t *tk, int64_t sk, int64_t nc, const int64_t *rest, int64_t lanes,   \
		  int64_t count, int64_t nk, int64_t period, int64_t group, int64_t whole)

/* A panel where it lies, when its lanes follow each other and no condition fails for any element of
 * K; else packed into dst. seq: places of packed rows. */
#define PANEL(name, T)                                                                             \
	void name(const T *src, T *dst, const int64_t *ts, int64_t ss, const int64_t *tk,          \
		  int64_t sk, int64_t nc, const int64_t *rest, int64_t lanes, int64_t count,       \
		  int64_t nk, int64_t period, MicroPanel *panel, const int64_t *seq)

static inline bool panel_lies(const int64_t *ts, int64_t ss, const int64_t *tk, int64_t sk,
			      int64_t nc, const int64_t *rest, int64_t lanes, int64_t count,
			      int64_t nk, int64_t period)
{
	int64_t turn = period > 0 && period < nk ? period : nk;
	bool lies = count == lanes && in_order(ts, lanes);
	for (int64_t r = 1; r <= nc && lies; r++) {
		int64_t low = ts[r * ss], deep = tk[r * sk];
		for (int64_t l = 1; l < lanes; l++)
			low = ts[r * ss + l] < low ? ts[r * ss + l] : low;
		for (int64_t k = 1; k < turn; k++)
			deep = tk[r * sk + k] < deep ? tk[r * sk + k] : deep;
		lies = low + deep + rest[r - 1] >= 0;
	}
	return lies;
}

#endif
