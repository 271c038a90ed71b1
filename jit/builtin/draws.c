/* draws.c - initial values by the widest vectors that the processor has. */
#define DRAW draw_chunk_plain
#include "jit/builtin/draws.inc"

static DrawFn *draw_best(const Target *t)
{
#if defined(__x86_64__)
	if (t->isa & ISA_AVX512)
		return draw_chunk_avx512;
	if (t->isa & ISA_AVX2 && t->isa & ISA_FMA)
		return draw_chunk_avx2;
#endif
	(void)t;
	return draw_chunk_plain;
}

void draw_chunk(const Distribution *d, uint64_t first, float *dst)
{
	draw_best(target_host())(d, first, dst);
}
