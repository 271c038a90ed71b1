/* vectors.h - vectors.txt, what PyTorch gives (vectors.py), and the inputs it was given. */
#ifndef NN_VECTORS_H
#define NN_VECTORS_H

#include "tests/check.h"

#include <ricci_nn.h>
#include <stdlib.h>

#define SHAPE(...)                                                                                 \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* values() of vectors.py. */
static void values(double seed, int n, double *x)
{
	for (int i = 0; i < n; i++)
		x[i] = 1.5 * sin(seed + 0.73 * i + 0.11 * i * i);
}

/* The numbers of that name; fails where there are not n of them. */
static void vector_read(const char *name, int n, double *x)
{
	FILE *f = fopen("tests/nn/vectors.txt", "r");
	char line[128];
	int count = -1;
	while (f && fscanf(f, "%127s %d", line, &count) == 2 && strcmp(line, name)) {
		while (count-- > 0 && fscanf(f, "%*s") != EOF)
			;
		count = -1;
	}
	CHECK_REPORT(count == n, "vectors.txt has %d numbers of %s, should be %d", count, name, n);
	for (int i = 0; i < n; i++)
		if (count != n || fscanf(f, "%lf", &x[i]) != 1)
			x[i] = NAN;
	if (f)
		fclose(f);
}

/* Are the numbers those of that name, within tol times (1 + their size)? */
static void vector_check(const char *name, int n, const double *got, double tol)
{
	double *want = calloc((size_t)n, sizeof *want);
	vector_read(name, n, want);
	for (int i = 0; i < n; i++)
		CHECK_REPORT(check_near(got[i], want[i], tol * (1 + fabs(want[i]))),
			     "%s[%d] is %.17g, should be %.17g", name, i, got[i], want[i]);
	free(want);
}

#endif
