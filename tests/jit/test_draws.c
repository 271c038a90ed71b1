/* test_draws.c - initial values by every instruction set that the processor has, against Philox and
 * Box-Muller in double; a value is the same to the last bit wherever a chunk begins. */
#include "jit/builtin/draws.h"
#include "tests/check.h"
#include <math.h>

static double number(const Distribution *d, uint64_t block, int k)
{
	uint32_t w[4];
	const uint32_t *p = w + k / 2 * 2;

	philox(block, d->key, d->seed, d->step, w);
	if (!d->normal)
		return d->shift + d->scale * (double)(w[k] >> 8) * 0x1p-24;
	double radius = sqrt(-2 * log((double)((p[0] >> 8) + 1) * 0x1p-24));
	double angle = 2 * M_PI * ((double)(p[1] >> 8) * 0x1p-24);

	return d->shift + d->scale * radius * (k % 2 ? sin(angle) : cos(angle));
}

static void test_set(const char *name, DrawFn *draw)
{
	static const uint64_t first[] = {0, 12345, UINT32_MAX - 100, (uint64_t)1 << 60};
	static float v[DRAW_CHUNK], moved[DRAW_CHUNK];

	for (int at = 0; at < COUNT(first); at++)
		for (int normal = 0; normal < 2; normal++) {
			Distribution d = {normal, -0.25, 3, 0x123456789abcdefu, 77, UINT64_MAX};
			double worst = 0;

			draw(&d, first[at], v);
			for (int i = 0; i < DRAW_CHUNK; i++)
				worst = fmax(worst,
					     fabs((double)v[i] -
						  number(&d, first[at] + (uint64_t)i / 4, i % 4)));
			CHECK_REPORT(worst < (normal ? 6e-6 : 3e-7), "%s, normal %d: %g", name,
				     normal, worst);
			draw(&d, first[at] + 3, moved);
			CHECK(!memcmp(v + 12, moved, (DRAW_CHUNK - 12) * sizeof *v));
		}
}

int main(void)
{
	const Target *t = target_host();

	test_set("plain", draw_chunk_plain);
#if defined(__x86_64__)
	if (t->isa & ISA_AVX2 && t->isa & ISA_FMA)
		test_set("AVX2", draw_chunk_avx2);
	if (t->isa & ISA_AVX512)
		test_set("AVX-512", draw_chunk_avx512);
#endif
	(void)t;
	test_set("the best", draw_chunk);
	return check_done();
}
