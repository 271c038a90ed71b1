/* contract_pack.c - what contractions call around micro-kernels, compiled ahead: packing a panel
 * through index tables, storing a block, clearing one. Generated code reaches them by name. */
#include "jit/internal.h"

#include <string.h>

void ricci_zero(void *p, int64_t bytes)
{
	memset(p, 0, (size_t)bytes);
}

/* How many elements from k on have the same conditions as k. */
static int64_t run_length(const int64_t *tk, int64_t sk, int64_t nc, int64_t k, int64_t nk)
{
	int64_t end = nk;
	for (int64_t r = 1; r <= nc; r++) {
		const int64_t *t = tk + r * sk;
		int64_t e = k + 1;
		while (e < end && t[e] == t[k])
			e++;
		end = e;
	}
	return end - k;
}

/* dst[k*lanes + l] = src[ts[l] + tk[k]] where ts[r*ss + l] + tk[r*sk + k] + rest[r-1] >= 0 for all
 * r in 1..nc, else 0. Rows 1.. of the tables are the conditions. Written once, specialised by
 * constant lanes. Conditions are looked at once for a run of elements that share them. */
#define PACK_BODY(T)                                                                               \
	bool contiguous = true;                                                                    \
	for (int64_t l = 1; l < lanes; l++)                                                        \
		contiguous &= ts[l] == ts[0] + l;                                                  \
	for (int64_t k = 0; k < nk;) {                                                             \
		int64_t end = k + (nc ? run_length(tk, sk, nc, k, nk) : nk), good = 0;             \
		bool ok[64];                                                                       \
		for (int64_t l = 0; nc && l < lanes; l++) {                                        \
			int64_t least = 0;                                                         \
			for (int64_t r = 1; r <= nc; r++)                                          \
				least |= ts[r * ss + l] + tk[r * sk + k] + rest[r - 1];            \
			good += ok[l] = least >= 0;                                                \
		}                                                                                  \
		if (nc && good == 0) {                                                             \
			memset(dst, 0, (size_t)((end - k) * lanes) * sizeof(T));                   \
			dst += (end - k) * lanes;                                                  \
		} else if (nc && good < lanes) {                                                   \
			for (; k < end; k++, dst += lanes)                                         \
				for (int64_t l = 0; l < lanes; l++)                                \
					dst[l] = ok[l] ? src[ts[l] + tk[k]] : 0;                   \
		} else if (contiguous) {                                                           \
			for (const T *s = src + ts[0]; k < end; k++, dst += lanes)                 \
				for (int64_t l = 0; l < lanes; l++)                                \
					dst[l] = s[tk[k] + l];                                     \
		} else {                                                                           \
			for (; k < end; k++, dst += lanes)                                         \
				for (int64_t l = 0; l < lanes; l++)                                \
					dst[l] = src[ts[l] + tk[k]];                               \
		}                                                                                  \
		k = end;                                                                           \
	}

#define PACK(T, name)                                                                              \
	static inline __attribute__((always_inline)) void name##_any(                              \
		const T *src, T *restrict dst, const int64_t *ts, int64_t ss, const int64_t *tk,   \
		int64_t sk, int64_t nc, const int64_t *rest, int64_t lanes, int64_t nk)            \
	{                                                                                          \
		PACK_BODY(T)                                                                       \
	}                                                                                          \
	void name(const T *src, T *restrict dst, const int64_t *ts, int64_t ss, const int64_t *tk, \
		  int64_t sk, int64_t nc, const int64_t *rest, int64_t lanes, int64_t nk)          \
	{                                                                                          \
		switch (lanes) {                                                                   \
		case 4:                                                                            \
			return name##_any(src, dst, ts, ss, tk, sk, nc, rest, 4, nk);              \
		case 6:                                                                            \
			return name##_any(src, dst, ts, ss, tk, sk, nc, rest, 6, nk);              \
		case 8:                                                                            \
			return name##_any(src, dst, ts, ss, tk, sk, nc, rest, 8, nk);              \
		case 14:                                                                           \
			return name##_any(src, dst, ts, ss, tk, sk, nc, rest, 14, nk);             \
		case 16:                                                                           \
			return name##_any(src, dst, ts, ss, tk, sk, nc, rest, 16, nk);             \
		case 32:                                                                           \
			return name##_any(src, dst, ts, ss, tk, sk, nc, rest, 32, nk);             \
		default:                                                                           \
			name##_any(src, dst, ts, ss, tk, sk, nc, rest, lanes, nk);                 \
		}                                                                                  \
	}
PACK(float, ricci_pack_f32)
PACK(double, ricci_pack_f64)

/* dst[tm[i] + tn[j]] = c[i*ldc + j]. */
#define UNPACK(T, name)                                                                            \
	void name(const T *restrict c, int64_t ldc, T *restrict dst, const int64_t *tm,            \
		  const int64_t *tn, int64_t rows, int64_t cols)                                   \
	{                                                                                          \
		bool contiguous = true;                                                            \
		for (int64_t j = 1; j < cols; j++)                                                 \
			contiguous &= tn[j] == tn[0] + j;                                          \
		for (int64_t i = 0; i < rows; i++, c += ldc) {                                     \
			T *d = dst + tm[i];                                                        \
			if (contiguous)                                                            \
				memcpy(d + tn[0], c, (size_t)cols * sizeof(T));                    \
			else                                                                       \
				for (int64_t j = 0; j < cols; j++)                                 \
					d[tn[j]] = c[j];                                           \
		}                                                                                  \
	}
UNPACK(float, ricci_unpack_f32)
UNPACK(double, ricci_unpack_f64)

/* Lanes whose places stand in a table: for the members of a block with several indices in a row. */
#define INDEXED(T, t)                                                                              \
	void ricci_gather_##t(int64_t n, T *restrict dst, const T *src, const int64_t *at)         \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++)                                                    \
			dst[i] = src[at[i]];                                                       \
	}                                                                                          \
	void ricci_scatter_##t(int64_t n, T *dst, const int64_t *at, const T *restrict src)        \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++)                                                    \
			dst[at[i]] = src[i];                                                       \
	}
INDEXED(float, f32)
INDEXED(double, f64)

const JitSymbol pack_symbols[] = {
	{"ricci_zero", (const void *)ricci_zero},
	{"ricci_pack_f32", (const void *)ricci_pack_f32},
	{"ricci_pack_f64", (const void *)ricci_pack_f64},
	{"ricci_unpack_f32", (const void *)ricci_unpack_f32},
	{"ricci_unpack_f64", (const void *)ricci_unpack_f64},
	{"ricci_gather_f32", (const void *)ricci_gather_f32},
	{"ricci_gather_f64", (const void *)ricci_gather_f64},
	{"ricci_scatter_f32", (const void *)ricci_scatter_f32},
	{"ricci_scatter_f64", (const void *)ricci_scatter_f64},
	{NULL, NULL},
};
