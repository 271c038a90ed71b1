/* contract_pack.c - what contractions call around micro-kernels, compiled ahead: packing a panel
 * through index tables, storing a block, clearing one. Generated code reaches them by name. */
#include "jit/contract_pack.h"

#include <string.h>

void ricci_zero(void *p, int64_t bytes)
{
	memset(p, 0, (size_t)bytes);
}

/* Within groups of some size? */
static inline bool in_groups(const int64_t *v, int64_t n, int64_t size)
{
	bool ok = n % size == 0;
	for (int64_t i = 0; i < n && ok; i += size)
		ok = in_order(v + i, size);
	return ok;
}

/* How many elements of K from k on have the same conditions as k; tk: rows of conditions. */
static int64_t run_length(const int64_t *tk, int64_t sk, int64_t nc, int64_t k, int64_t nk)
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

#define LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)

#define T float
#define t f32
#define V f32x4
#include "jit/contract_pack.inc"

#define T double
#define t f64
#define V f64x4
#include "jit/contract_pack.inc"

/* dst[i] = the sum of src[i + s*stride] over s < pieces, in that order. */
#define ADD(name, T)                                                                               \
	static void name(T *restrict dst, const T *restrict src, int64_t pieces, int64_t stride,   \
			 int64_t n)                                                                \
	{                                                                                          \
		memcpy(dst, src, (size_t)n * sizeof(T));                                           \
		for (int64_t s = 1; s < pieces; s++)                                               \
			for (int64_t i = 0; i < n; i++)                                            \
				dst[i] += src[s * stride + i];                                     \
	}
ADD(ricci_add_f32, float)
ADD(ricci_add_f64, double)
ADD(ricci_add_i32, unsigned) /* sums wrap */

const JitSymbol pack_symbols[] = {
	{"ricci_zero", (const void *)ricci_zero},
	{"ricci_unpack_f32", (const void *)ricci_unpack_f32},
	{"ricci_unpack_f64", (const void *)ricci_unpack_f64},
	{"ricci_add_f32", (const void *)ricci_add_f32},
	{"ricci_add_f64", (const void *)ricci_add_f64},
	{"ricci_add_i32", (const void *)ricci_add_i32},
	{"ricci_gather_f32", (const void *)ricci_gather_f32},
	{"ricci_gather_f64", (const void *)ricci_gather_f64},
	{"ricci_scatter_f32", (const void *)ricci_scatter_f32},
	{"ricci_scatter_f64", (const void *)ricci_scatter_f64},
	{NULL, NULL},
};

const JitSymbol panel_symbols_plain[] = {
	{"ricci_pack_f32", (const void *)ricci_pack_plain_f32},
	{"ricci_pack_f64", (const void *)ricci_pack_plain_f64},
	{"ricci_panel_f32", (const void *)ricci_panel_plain_f32},
	{"ricci_panel_f64", (const void *)ricci_panel_plain_f64},
	{NULL, NULL},
};
