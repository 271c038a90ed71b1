/* pack_avx2.c - packing panels with AVX2; compiled with -mavx2. Masks are vectors. */
#include "jit/micro/pack_vector.h"

#if defined(__AVX2__)

#define VECTOR	       32
#define SET_LANE(m, l) ((m)[l] = -1)
#define SPREAD(half)   (M) _mm256_cvtepu32_epi64(half)

#define T	  float
#define t	  f32
#define LANES	  8
#define Bits	  int32_t
#define Mask	  I
#define L	  Int8
#define PASSED(x) ((x) >= 0)
/* The even lanes of a, then the odd ones of b. */
#define EVEN_ODD(a, b)	  __builtin_shufflevector(PICK(a, b), PICK(a, b), 0, 1, 4, 5, 2, 3, 6, 7)
#define PICK(a, b)	  __builtin_shufflevector(a, b, 0, 2, 9, 11, 4, 6, 13, 15)
#define EVEN(a, b)	  __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define SPREAD_LOW(m)	  SPREAD(_mm256_castsi256_si128((__m256i)(m)))
#define SPREAD_HIGH(m)	  SPREAD(_mm256_extracti128_si256((__m256i)(m), 1))
#define LOAD_MASKED(p, m) (V) _mm256_maskload_ps(p, (__m256i)(m))
#define GATHER_MASKED(p, i, m)                                                                     \
	(V) _mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, (__m256i)(i), (__m256)(m), 4)
#define SQUARE	       8
#define Row	       Row8
#define SL	       Int8
#define LOAD_ROW(p, x) (Row) _mm256_maskload_ps(p, (__m256i)((x) >= 0))
#include "jit/micro/pack_vector.inc"

#define T		  double
#define t		  f64
#define LANES		  4
#define Bits		  int64_t
#define Mask		  I
#define L		  Int4
#define WIDEN(x)	  _mm256_cvtepi32_epi64((__m128i)(x))
#define PASSED(x)	  ((I)WIDEN(x) >= 0)
#define EVEN_ODD(a, b)	  __builtin_shufflevector(a, b, 0, 2, 5, 7)
#define EVEN(a, b)	  __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define SPREAD_LOW(m)	  __builtin_shufflevector(m, (I){0}, 0, 4, 1, 5)
#define SPREAD_HIGH(m)	  __builtin_shufflevector(m, (I){0}, 2, 4, 3, 5)
#define LOAD_MASKED(p, m) (V) _mm256_maskload_pd(p, (__m256i)(m))
#define GATHER_MASKED(p, i, m)                                                                     \
	(V) _mm256_mask_i64gather_pd(_mm256_setzero_pd(), p, (__m256i)(i), (__m256d)(m), 8)
#define SQUARE	       4
#define Row	       Row4
#define SL	       Int4
#define LOAD_ROW(p, x) (Row) _mm256_maskload_pd(p, WIDEN((x) >= 0))
#include "jit/micro/pack_vector.inc"

PANEL_SYMBOLS(avx2)
#endif
