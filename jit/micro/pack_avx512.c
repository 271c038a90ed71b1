/* pack_avx512.c - packing panels with AVX-512; compiled with -mavx512f and so on. Masks are bits.
 */
#include "jit/micro/pack_vector.h"

#if defined(__AVX512F__)

#define VECTOR	       64
#define SET_LANE(m, l) ((m) |= (M)(1u << (l)))

typedef int32_t Int16 __attribute__((vector_size(64), aligned(4), may_alias));

#define T	  float
#define t	  f32
#define LANES	  16
#define Bits	  int32_t
#define Mask	  __mmask16
#define L	  Int16
#define PASSED(x) _mm512_cmpge_epi32_mask((__m512i)(x), _mm512_setzero_si512())
/* The even lanes of a, then the odd ones of b. */
#define EVEN_ODD(a, b)                                                                             \
	__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
#define EVEN(a, b)                                                                                 \
	__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define SPREAD_LOW(m)	  (M) _pdep_u32((m)&0xff, 0x5555)
#define SPREAD_HIGH(m)	  (M) _pdep_u32((m) >> 8, 0x5555)
#define LOAD_MASKED(p, m) (V) _mm512_maskz_loadu_ps(m, p)
#define GATHER_MASKED(p, i, m)                                                                     \
	(V) _mm512_mask_i32gather_ps(_mm512_setzero_ps(), m, (__m512i)(i), p, 4)
#define SQUARE 8
#define Row    Row8
#define SL     Int8
#define LOAD_ROW(p, x)                                                                             \
	(Row) _mm256_maskz_loadu_ps(_mm256_cmpge_epi32_mask((__m256i)(x), _mm256_setzero_si256()), \
				    p)
#include "jit/micro/pack_vector.inc"

#define T		  double
#define t		  f64
#define LANES		  8
#define Bits		  int64_t
#define Mask		  __mmask8
#define L		  Int8
#define PASSED(x)	  _mm256_cmpge_epi32_mask((__m256i)(x), _mm256_setzero_si256())
#define EVEN_ODD(a, b)	  __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15)
#define EVEN(a, b)	  __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define SPREAD_LOW(m)	  (M) _pdep_u32((m)&0xf, 0x55)
#define SPREAD_HIGH(m)	  (M) _pdep_u32((m) >> 4, 0x55)
#define LOAD_MASKED(p, m) (V) _mm512_maskz_loadu_pd(m, p)
#define GATHER_MASKED(p, i, m)                                                                     \
	(V) _mm512_mask_i64gather_pd(_mm512_setzero_pd(), m, (__m512i)(i), p, 8)
#define SQUARE 4
#define Row    Row4
#define SL     Int4
#define LOAD_ROW(p, x)                                                                             \
	(Row) _mm256_maskz_loadu_pd(_mm_cmpge_epi32_mask((__m128i)(x), _mm_setzero_si128()), p)
#include "jit/micro/pack_vector.inc"

PANEL_SYMBOLS(avx512)
#endif
