/* microkernel.c - the table of register micro-kernels and the choice among them.
 *
 * Input: a target. Output: the widest micro-kernel that it runs. The plain one at the end serves
 * processors that no other row knows; it is also what the others are tested against.
 */
#include "jit/microkernel.h"

#define PLAIN(name, T)                                                                             \
	static void name(int64_t k, const void *pa, const void *pb, void *pc, int64_t ldc)         \
	{                                                                                          \
		const T *a = pa, *b = pb;                                                          \
		T *c = pc;                                                                         \
		for (; k > 0; k--, a += 4, b += 4)                                                 \
			for (int i = 0; i < 4; i++)                                                \
				for (int j = 0; j < 4; j++)                                        \
					c[i * ldc + j] += a[i] * b[j];                             \
	}
PLAIN(plain_f32, float)
PLAIN(plain_f64, double)

enum { FMA2 = ISA_AVX2 | ISA_FMA };
/* Widest first. */
static const Micro micro[] = {
#if defined(__x86_64__)
	{"ricci_micro_f32_avx512", ricci_micro_f32_avx512, RICCI_F32, 14, 32, ISA_AVX512},
	{"ricci_micro_f64_avx512", ricci_micro_f64_avx512, RICCI_F64, 14, 16, ISA_AVX512},
	{"ricci_micro_f32_avx2", ricci_micro_f32_avx2, RICCI_F32, 6, 16, FMA2},
	{"ricci_micro_f64_avx2", ricci_micro_f64_avx2, RICCI_F64, 6, 8, FMA2},
	{"ricci_micro_f32_sse2", ricci_micro_f32_sse2, RICCI_F32, 4, 8, ISA_SSE2},
	{"ricci_micro_f64_sse2", ricci_micro_f64_sse2, RICCI_F64, 4, 4, ISA_SSE2},
#elif defined(__aarch64__)
	{"ricci_micro_f32_neon", ricci_micro_f32_neon, RICCI_F32, 8, 12, ISA_NEON},
	{"ricci_micro_f64_neon", ricci_micro_f64_neon, RICCI_F64, 8, 6, ISA_NEON},
#endif
	{"ricci_micro_f32_plain", plain_f32, RICCI_F32, 4, 4, 0},
	{"ricci_micro_f64_plain", plain_f64, RICCI_F64, 4, 4, 0},
};

const Micro *micro_at(int i)
{
	return i < COUNT(micro) ? micro + i : NULL;
}

const Micro *micro_pick(const Target *t, Type type)
{
	for (int i = 0; i < COUNT(micro); i++)
		if (micro[i].type == type && (t->isa & micro[i].isa) == micro[i].isa)
			return micro + i;
	return NULL;
}
