/* pack.c - what contractions call around micro-kernels, compiled ahead: packing a panel
 * through index tables, storing a block, clearing one. Generated code reaches them by name. */
#include "jit/micro/pack.h"

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

#define LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)

#define T float
#define t f32
#define V f32x4
#include "jit/micro/pack.inc"

#define T double
#define t f64
#define V f64x4
#include "jit/micro/pack.inc"

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
	{"ricci_unpack_f32", (const void *)unpack_f32},
	{"ricci_unpack_f64", (const void *)unpack_f64},
	{NULL, NULL},
};
