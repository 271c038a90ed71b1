/* philox.c - counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011).
 *
 * Counter words: element low, element high, key low, key high. Key words: the low and high half of
 * seed ^ mix(step), where mix is the 64-bit finaliser of MurmurHash3 (mix(0) = 0). random() takes
 * word 0, normal() words 0 and 1. Kernels call these very functions or repeat their arithmetic in
 * float, so that every backend and every schedule draws the same numbers. */
#include "core/base/base.h"
#include <math.h>

static uint64_t step_mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
	return x ^ x >> 33;
}

void philox(uint64_t element, uint64_t key, uint64_t seed, uint64_t step, uint32_t out[4])
{
	uint64_t mixed = seed ^ step_mix(step);
	uint32_t k0 = (uint32_t)mixed, k1 = (uint32_t)(mixed >> 32);
	uint32_t c0 = (uint32_t)element, c1 = (uint32_t)(element >> 32);
	uint32_t c2 = (uint32_t)key, c3 = (uint32_t)(key >> 32);

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* The seed moves along the stream of SplitMix64 (Steele, Lea, Flood 2014) and is mixed, so that
 * step s of an outer and t of an inner loop differ from t and s. */
RandomState random_step(RandomState rs, int64_t steps, int64_t t)
{
	if (steps == 1)
		return rs;
	return (RandomState){step_mix(rs.seed + ((uint64_t)t + 1) * 0x9e3779b97f4a7c15u), rs.step};
}

float philox_uniform(uint32_t w)
{
	return (float)(w >> 8) * 0x1p-24f;
}

float philox_normal(uint32_t a, uint32_t b)
{
	/* 1 - u lies in (0,1], so the logarithm is finite. */
	float radius = sqrtf(-2.0f * logf((float)((a >> 8) + 1) * 0x1p-24f));
	return radius * cosf(6.28318530717958648f * philox_uniform(b));
}
