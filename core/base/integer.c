/* integer.c - arithmetic of int64 that C has no operator for. */
#include "core/base/base.h"

int64_t int_gcd(int64_t a, int64_t b)
{
	uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a, y = b < 0 ? -(uint64_t)b : (uint64_t)b;
	while (y) {
		uint64_t r = x % y;
		x = y;
		y = r;
	}
	return x > INT64_MAX ? 1 : (int64_t)x;
}
