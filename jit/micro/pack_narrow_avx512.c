/* pack_narrow_avx512.c - packing factors of 8 and 16 bits with AVX-512: masked loads of
 * runs, so that borders cost a mask and nothing outside a tensor is read.
 *
 * Input, output: PACK_NARROW of pack.h. A panel consists of words of 32 bits: a lane's element, or
 * a few of them along K. Vectors of 16 words are loaded along the lanes or along K, wherever memory
 * has longer runs, and stored as the panel wants them, by way of squares of 16 x 16 where that is
 * the other direction. What lies in no runs is left to the plain functions. */
#if defined(__AVX512BW__)
#include "jit/micro/pack_narrow.inc"

#include <immintrin.h>

enum {
	WORDS = 16, /* of a vector */
	MOST_BLOCKS = 4,
	MOST_LANES = MOST_BLOCKS * WORDS,
	MOST_RUNS = 16,
	MOST_CONDITIONS = 24,
	MOST_PERIOD = 256,
	MOST_LINE = 64, /* elements of a vector */
	AHEAD = 512	/* bytes */
};

/* Elements of a vector whose places are `step` apart: element i's is at + step*i. */
typedef struct Run {
	int64_t at;
	uint64_t used;
} Run;

typedef struct Panel {
	const int64_t *ts, *tk;
	int64_t ss, sk, nc, lanes, count, nk, words; /* words: of a lane */
	bool tall;			    /* words lie in groups of 16 along K, else one by one */
	bool joined;			    /* the elements of a word lie together in memory */
	int nblock, first[MOST_BLOCKS + 1]; /* runs of block b: first[b] .. first[b+1]-1 */
	Run run[MOST_BLOCKS * MOST_RUNS];
	int32_t lane[MOST_CONDITIONS][MOST_LANES];
	int64_t period; /* masks of so many elements of K are known: all that differ, or none (0) */
	uint64_t mask[MOST_PERIOD];
} Panel;

static inline uint64_t low_bits(int64_t n)
{
	return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

/* At most `most` runs of n elements; 0: there are more. */
static int find_runs(const int64_t *place, int64_t n, int step, Run *run, int most)
{
	int found = 0;
	if (step == 1 && in_order(place, n)) {
		*run = (Run){place[0], low_bits(n)};
		return 1;
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t at = place[i] - step * i;
		if (i == 0 || at != run[found - 1].at) {
			if (found == most)
				return 0;
			run[found++] = (Run){.at = at};
		}
		run[found - 1].used |= (uint64_t)1 << i;
	}
	return found;
}

/* The lanes' runs; false when there are too many for their loads to pay. */
static bool find_lanes(Panel *p, int step, int most)
{
	int n = 0;
	for (int b = 0; b < p->nblock; b++) {
		int64_t left = p->count - b * WORDS;
		p->first[b] = n;
		if (left <= 0)
			continue;
		int found = find_runs(p->ts + b * WORDS, left < WORDS ? left : WORDS, step,
				      p->run + n, most);
		if (!found)
			return false;
		n += found;
	}
	p->first[p->nblock] = n;
	return true;
}

/* False for numbers too large for the sums of two. Lanes not in use fail. */
static bool find_conditions(Panel *p, const int64_t *rest)
{
	uint64_t large = 0;
	for (int r = 0; r < p->nc; r++) {
		for (int64_t l = 0; l < MOST_LANES; l++) {
			int64_t x =
				l < p->count ? p->ts[(r + 1) * p->ss + l] + rest[r] : -(1 << 29);
			large |= (uint64_t)(x ^ x >> 63);
			p->lane[r][l] = (int32_t)x;
		}
	}
	return large < 1 << 30;
}

/* At which lanes no condition fails for element k. */
static uint64_t lanes_mask(const Panel *p, int64_t k)
{
	uint64_t mask = 0;
	for (int b = 0; b < p->nblock; b++) {
		__m512i x = _mm512_setzero_si512();
		for (int r = 0; r < p->nc; r++) {
			__m512i at = _mm512_set1_epi32((int)p->tk[(r + 1) * p->sk + k]);
			__m512i lane = _mm512_loadu_si512(&p->lane[r][b * WORDS]);
			x = _mm512_or_si512(x, _mm512_add_epi32(lane, at));
		}
		mask |= (uint64_t)(uint16_t)~_mm512_movepi32_mask(x) << b * WORDS;
	}
	return mask;
}

static void find_period(Panel *p)
{
	for (int64_t k = 0; k < p->period && k < p->nk; k++)
		p->mask[k] = lanes_mask(p, k);
}

/* Do the elements of each word lie together, under the same conditions? */
static bool words_lie(const Panel *p, int group)
{
	if (p->nk % group)
		return false;
	for (int64_t k = 0; k < p->nk; k += group)
		for (int i = 1; i < group; i++)
			if (p->tk[k + i] != p->tk[k] + i)
				return false;
	for (int r = 1; r <= p->nc; r++)
		for (int64_t k = 0; k < p->nk; k += group)
			for (int i = 1; i < group; i++)
				if (p->tk[r * p->sk + k + i] != p->tk[r * p->sk + k])
					return false;
	return true;
}

/* The masks of n elements from k on; of those behind nk: none. */
static void find_masks(const Panel *p, int64_t k, int64_t n, uint64_t *mask)
{
	int64_t at = p->period ? k % p->period : 0;
	for (int64_t i = 0; i < n; i++, k++) {
		mask[i] = k >= p->nk ? 0 : p->period ? p->mask[at] : lanes_mask(p, k);
		at = at + 1 == p->period ? 0 : at + 1;
	}
}

/* The conditions of n elements of K from k on. */
typedef struct Depth {
	int32_t at[MOST_CONDITIONS][MOST_LINE];
} Depth;

static void find_depth(const Panel *p, int64_t k, int64_t n, Depth *d)
{
	for (int r = 0; r < p->nc; r++)
		for (int64_t i = 0; i < n; i++)
			d->at[r][i] = (int32_t)p->tk[(r + 1) * p->sk + k + i];
}

/* At which of n of them no condition fails for lane l. */
static uint64_t depth_mask(const Panel *p, const Depth *d, int64_t l, int64_t n)
{
	uint64_t mask = 0;
	for (int64_t i = 0; i < n; i += WORDS) {
		__m512i x = _mm512_setzero_si512();
		for (int r = 0; r < p->nc; r++) {
			__m512i at = _mm512_loadu_si512(d->at[r] + i);
			x = _mm512_or_si512(x,
					    _mm512_add_epi32(at, _mm512_set1_epi32(p->lane[r][l])));
		}
		mask |= (uint64_t)(uint16_t)~_mm512_movepi32_mask(x) << i;
	}
	return mask;
}

/* ---- vectors of words ---- */

/* row[i][j] becomes row[j][i]. */
static inline __attribute__((always_inline)) void turn(__m512i *row)
{
	__m512i half[WORDS];
	for (int i = 0; i < WORDS; i += 4) {
		__m512i ab = _mm512_unpacklo_epi32(row[i], row[i + 1]),
			AB = _mm512_unpackhi_epi32(row[i], row[i + 1]);
		__m512i cd = _mm512_unpacklo_epi32(row[i + 2], row[i + 3]),
			CD = _mm512_unpackhi_epi32(row[i + 2], row[i + 3]);
		half[i] = _mm512_unpacklo_epi64(ab, cd);
		half[i + 1] = _mm512_unpackhi_epi64(ab, cd);
		half[i + 2] = _mm512_unpacklo_epi64(AB, CD);
		half[i + 3] = _mm512_unpackhi_epi64(AB, CD);
	}
	for (int i = 0; i < 4; i++) { /* columns i, i+4, i+8, i+12 */
		__m512i a = _mm512_shuffle_i32x4(half[i], half[i + 4], 0x88),
			A = _mm512_shuffle_i32x4(half[i], half[i + 4], 0xdd);
		__m512i b = _mm512_shuffle_i32x4(half[i + 8], half[i + 12], 0x88),
			B = _mm512_shuffle_i32x4(half[i + 8], half[i + 12], 0xdd);
		row[i] = _mm512_shuffle_i32x4(a, b, 0x88);
		row[i + 8] = _mm512_shuffle_i32x4(a, b, 0xdd);
		row[i + 4] = _mm512_shuffle_i32x4(A, B, 0x88);
		row[i + 12] = _mm512_shuffle_i32x4(A, B, 0xdd);
	}
}

/* Word w of the lanes of block b. Where rows are shorter than a vector, its rest is overwritten by
 * the next row. */
static inline __attribute__((always_inline)) void put_row(const Panel *p, void *dst, int64_t w,
							  int64_t b, __m512i x)
{
	int *at = (int *)dst + w * p->lanes + b * WORDS;
	int64_t left = p->lanes - b * WORDS;
	if (left >= WORDS || (p->nblock == 1 && (p->words - w) * p->lanes >= WORDS))
		_mm512_storeu_si512(at, x);
	else
		_mm512_mask_storeu_epi32(at, (__mmask16)low_bits(left), x);
}

/* 16 words of lane l from word w on. */
static inline __attribute__((always_inline)) void put_line(const Panel *p, void *dst, int64_t w,
							   int64_t l, __m512i x)
{
	if (l < p->lanes)
		_mm512_storeu_si512((int *)dst + w * p->lanes + l * WORDS, x);
}

/* 16 elements in the low bits of words, those of the mask, `step` apart; else 0. */
static inline __attribute__((always_inline)) __m512i load_8(const void *src, __mmask16 m, int step)
{
	if (step == 1)
		return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(m, src));
	return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi8(_pdep_u32(m, 0x55555555), src));
}

static inline __attribute__((always_inline)) __m512i load_16(const void *src, __mmask16 m, int step)
{
	if (step == 1)
		return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, src));
	return _mm512_maskz_loadu_epi16(_pdep_u32(m, 0x55555555), src);
}

static inline __attribute__((always_inline)) __m512i load_32(const void *src, __mmask16 m, int step)
{
	const __m512i even =
		_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
	uint32_t spread = _pdep_u32(m, 0x55555555);
	if (step == 1)
		return _mm512_maskz_loadu_epi32(m, src);
	return _mm512_permutex2var_epi32(
		_mm512_maskz_loadu_epi32((__mmask16)spread, src), even,
		_mm512_maskz_loadu_epi32((__mmask16)(spread >> 16), (const int *)src + WORDS));
}

/* ---- conversions of elements in words ---- */

static inline __m512i sign_8(__m512i x)
{
	return _mm512_srai_epi32(_mm512_slli_epi32(x, 24), 24);
}

static inline __m512i sign_8_16(__m512i x)
{
	return _mm512_and_si512(sign_8(x), _mm512_set1_epi32(0xffff));
}

static inline __m512i bf16_f32(__m512i x)
{
	return _mm512_slli_epi32(x, 16);
}

static inline __m512i f32_bf16(__m512i x)
{
	__m512i odd = _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1));
	__m512i up = _mm512_add_epi32(_mm512_add_epi32(x, _mm512_set1_epi32(0x7fff)), odd);
	__m512 f = _mm512_castsi512_ps(x);
	__mmask16 nan = _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q);
	up = _mm512_mask_or_epi32(up, nan, x, _mm512_set1_epi32(0x400000));
	return _mm512_srli_epi32(up, 16);
}

static inline __m512i f32_through_bf16(__m512i x)
{
	return bf16_f32(f32_bf16(x));
}

static inline __m512i f16_f32(__m512i x)
{
	return _mm512_castps_si512(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(x)));
}

static inline __m512i f32_through_f16(__m512i x)
{
	__m256i h = _mm512_cvtps_ph(_mm512_castsi512_ps(x), _MM_FROUND_TO_NEAREST_INT);
	return _mm512_castps_si512(_mm512_cvtph_ps(h));
}

#define WORD(x) (x)

#define NAME	bf16_bf16_32
#define FROM	uint16_t
#define TO	float
#define LOAD	load_16
#define CONVERT bf16_f32
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	f32_bf16_32
#define FROM	float
#define TO	float
#define LOAD	load_32
#define CONVERT f32_through_bf16
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	bf16_bf16_16
#define FROM	uint16_t
#define TO	uint16_t
#define LOAD	load_16
#define CONVERT WORD
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	f32_bf16_16
#define FROM	float
#define TO	uint16_t
#define LOAD	load_32
#define CONVERT f32_bf16
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	f16_f16_32
#define FROM	uint16_t
#define TO	float
#define LOAD	load_16
#define CONVERT f16_f32
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	f32_f16_32
#define FROM	float
#define TO	float
#define LOAD	load_32
#define CONVERT f32_through_f16
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	i8_i8_32
#define FROM	int8_t
#define TO	int32_t
#define LOAD	load_8
#define CONVERT sign_8
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	u8_u8_32
#define FROM	uint8_t
#define TO	int32_t
#define LOAD	load_8
#define CONVERT WORD
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	i8_i8_16
#define FROM	int8_t
#define TO	int16_t
#define LOAD	load_8
#define CONVERT sign_8_16
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	u8_u8_16
#define FROM	uint8_t
#define TO	int16_t
#define LOAD	load_8
#define CONVERT WORD
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	i8_i8_8
#define FROM	int8_t
#define TO	int8_t
#define LOAD	load_8
#define CONVERT WORD
#include "jit/micro/pack_narrow_avx512.inc"

#define NAME	u8_u8_8
#define FROM	uint8_t
#define TO	uint8_t
#define LOAD	load_8
#define CONVERT WORD
#include "jit/micro/pack_narrow_avx512.inc"

#define SYMBOL(name)                                                                               \
	{                                                                                          \
		"ricci_pack_" #name, (const void *)wide_##name                                     \
	}
const JitSymbol pack_narrow_avx512[] = {
	SYMBOL(bf16_bf16_32), SYMBOL(f32_bf16_32), SYMBOL(bf16_bf16_16), SYMBOL(f32_bf16_16),
	SYMBOL(f16_f16_32),   SYMBOL(f32_f16_32),  SYMBOL(i8_i8_32),	 SYMBOL(u8_u8_32),
	SYMBOL(i8_i8_16),     SYMBOL(u8_u8_16),	   SYMBOL(i8_i8_8),	 SYMBOL(u8_u8_8),
	{NULL, NULL},
};
#endif
