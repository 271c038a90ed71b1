/* pack.c - what contractions call around micro-kernels, compiled ahead: packing a panel
 * through index tables, storing a block, clearing one, listing what a panel needs
 * of K. Generated code reaches them by name. */
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

/* What ricci_zero_blocks keeps for the next panel; behind it the most that rows of the panel have which
 * the lists were made for, by condition. */
typedef struct TrimState {
	MicroList list;
	int64_t origin, listed;
	int64_t most[];
} TrimState;
_Static_assert(sizeof(TrimState) == ZERO_BLOCKS_STATE * sizeof(int64_t),
	       "as generated code lays it out");

/* The most that any row of the panel has of each condition; which of them fail for some of K. */
static int64_t trim_failing(const int64_t *ts, int64_t ss, int64_t nc, const int64_t *rest,
			    int64_t rows, int64_t *most, int64_t *which)
{
	int64_t fails = 0;
	for (int64_t r = 0; r < nc; r++) {
		int64_t x = ts[r * ss];
		for (int64_t i = 1; i < rows; i++)
			x = ts[r * ss + i] > x ? ts[r * ss + i] : x;
		most[r] = x + rest[r] < rest[nc + r] ? x + rest[r] : rest[nc + r];
		if (most[r] < rest[nc + r])
			which[fails++] = r;
	}
	return fails;
}

/* The elements of K, of `depth` from `origin` on, at which all conditions hold for some of a
 * panel's rows, in state->list: places in A as in tables `place`, in B as in `seq`; a and b have
 * room for others. Conditions stand in tables as for PACK; rest[nc..] says how much suffices for
 * all of K. */
static void ricci_zero_blocks(const int64_t *ts, int64_t ss, const int64_t *tk, int64_t sk,
			      int64_t nc, const int64_t *rest, int64_t rows, int64_t origin,
			      int64_t depth, const int64_t *place, const int64_t *seq,
			      int64_t *restrict a, int64_t *restrict b, TrimState *state)
{
	int64_t most[ZERO_BLOCKS_CONDITIONS], which[ZERO_BLOCKS_CONDITIONS], n = 0;
	int64_t fails = trim_failing(ts, ss, nc, rest, rows, most, which);
	size_t size = (size_t)nc * sizeof *most;
	state->list =
		(MicroList){fails ? state->listed : depth, fails ? a : place, fails ? b : seq};
	if (!fails ||
	    (state->listed >= 0 && state->origin == origin && memcmp(most, state->most, size) == 0))
		return;
	memset(b, 0, (size_t)depth * sizeof *b);
	for (int64_t f = 0; f < fails; f++) {
		const int64_t *t = tk + which[f] * sk, x = most[which[f]];
		for (int64_t k = 0; k < depth; k++)
			b[k] |= x + t[k];
	}
	for (int64_t k = 0; k < depth; k++) {
		int64_t holds = b[k] >= 0;
		a[n] = place[k];
		b[n] = seq[k];
		n += holds;
	}
	state->list.k = state->listed = n;
	state->origin = origin;
	memcpy(state->most, most, size);
}

const JitSymbol pack_symbols[] = {
	{"ricci_zero_blocks", (const void *)ricci_zero_blocks},
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
