/* contract_pack.h - packing panels: what the instruction sets' files share. */
#ifndef JIT_CONTRACT_PACK_H
#define JIT_CONTRACT_PACK_H

#include "jit/internal.h"

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

/* Do v's values follow each other? */
static inline bool in_order(const int64_t *v, int64_t n)
{
	bool ok = true;
	for (int64_t i = 1; i < n; i++)
		ok &= v[i] == v[0] + i;
	return ok;
}

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
