/* ulps.h - how far an f32 or f64 is from an exact value, and exact values that libm has not, for
 * the tests of mathematics. */
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

__attribute__((unused)) static long double sigmoidl(long double x)
{
	return 1 / (1 + expl(-x));
}

/* The same of an f64, of an exact value with more places. */
__attribute__((unused)) static double ulps_f64(double got, long double exact)
{
	double want = (double)exact, place = nextafter(fabs(want), INFINITY) - fabs(want);
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : INFINITY;
	if (isinf(want) || isinf(got))
		return got == want ? 0 : INFINITY;
	return signbit(got) != signbit(want) ? INFINITY : (double)(fabsl(got - exact) / place);
}

#endif
