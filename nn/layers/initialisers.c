/* initialisers.c - distributions of initial values by the fan-in and fan-out of a parameter.
 * Invariant: a fan below 1 counts as 1. */
#include "nn/nn.h"

#include <math.h>

static ricci_init normal(double numerator, int64_t fan)
{
	return ricci_normal(sqrt(numerator / (double)(fan > 0 ? fan : 1)));
}

/* Uniform with the same deviation. */
static ricci_init uniform(double numerator, int64_t fan)
{
	double a = sqrt(3 * numerator / (double)(fan > 0 ? fan : 1));
	return ricci_uniform(-a, a);
}

ricci_init ricci_lecun(int64_t fan_in)
{
	return normal(1, fan_in);
}

ricci_init ricci_lecun_uniform(int64_t fan_in)
{
	return uniform(1, fan_in);
}

ricci_init ricci_he(int64_t fan_in)
{
	return normal(2, fan_in);
}

ricci_init ricci_he_uniform(int64_t fan_in)
{
	return uniform(2, fan_in);
}

ricci_init ricci_glorot(int64_t fan_in, int64_t fan_out)
{
	return uniform(2, fan_in + fan_out);
}

ricci_init ricci_glorot_normal(int64_t fan_in, int64_t fan_out)
{
	return normal(2, fan_in + fan_out);
}

ricci_init ricci_uniform_fan_in(int64_t fan_in)
{
	return uniform(1.0 / 3, fan_in);
}
