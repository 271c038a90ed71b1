/* ulps.h - how far an f32 is from an exact value, and exact values that libm has not, for the tests
 * of mathematics. */
#ifndef ULPS_H
#define ULPS_H

#include <math.h>

__attribute__((unused)) static double sigmoid(double x)
{
	return x < -700 ? exp(x) : 1 / (1 + exp(-x));
}
__attribute__((unused)) static double rsqrt(double x)
{
	return 1 / sqrt(x);
}
__attribute__((unused)) static double sign(double x)
{
	return x > 0 ? 1 : x < 0 ? -1 : x;
}

/* The distance of got from the exact value, in units of the last place of its f32. */
__attribute__((unused)) static double ulps(float got, double exact)
{
	float want = (float)exact;
	if (isnan(exact) || isnan(got))
		return isnan(exact) && isnan(got) ? 0 : INFINITY;
	if (got == want)
		return isinf(want) ? 0
				   : fabs(got - exact) /
					     (nextafterf(fabsf(want), INFINITY) - fabsf(want));
	if (isinf(want) || isinf(got)) /* one of them may have been rounded over the edge */
		return fabs(exact) >= 0x1.fffffdp127 && fabsf(got) >= 0x1.fffffcp127f ? 1
										      : INFINITY;
	return fabs(got - exact) / (nextafterf(fabsf(want), INFINITY) - fabsf(want));
}

#endif
