/* vectors.h - reads vectors.txt, what PyTorch gives (vectors.py): cases, which are arrays one behind
 * the other, each with a name and a shape. And operands that both sides compute alike. */
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

/* An array of the file: "part/case/array". */
typedef struct Vector {
	char name[112];
	const char *array; /* its part of the name */
	int rank;
	int64_t shape[RICCI_MAX_RANK], size;
	double *value;
} Vector;

/* A line "name: shape"; false: it is none. */
static bool vector_head(const char *line, Vector *v)
{
	const char *end = strrchr(line, ':');
	int used;
	if (!end || end - line >= (long)sizeof v->name)
		return false;
	*v = (Vector){.size = 1};
	memcpy(v->name, line, (size_t)(end - line));
	for (end++; v->rank < RICCI_MAX_RANK &&
		    sscanf(end, "%" SCNd64 "%n", &v->shape[v->rank], &used) == 1;
	     end += used)
		v->size *= v->shape[v->rank++];
	return strchr(v->name, '/') != NULL;
}

/* All arrays of the file, read once. */
static const Vector *vectors(int *n)
{
	static Vector *all;
	static int count;
	char line[256];
	FILE *f = all ? NULL : fopen("tests/nn/vectors.txt", "r");
	CHECK(all || f);
	while (f && fgets(line, sizeof line, f)) {
		Vector v;
		int64_t got = 0;
		if (count % 256 == 0)
			all = realloc(all, sizeof *all * (size_t)(count + 256));
		if (!vector_head(line, &v))
			continue;
		v.value = calloc((size_t)v.size + 1, sizeof *v.value);
		while (got < v.size && fscanf(f, "%lf ", &v.value[got]) == 1)
			got++;
		CHECK_REPORT(got == v.size, "vectors.txt: %s has %d numbers", v.name, (int)got);
		all[count++] = v;
	}
	for (int k = 0; k < count && f; k++) /* the list has moved */
		all[k].array = strrchr(all[k].name, '/') + 1;
	if (f)
		fclose(f);
	*n = count;
	return all;
}

/* The first array of a case, "part/case", and how many it has; NULL, 0, and a failed check: it is not
 * in the file. */
__attribute__((unused)) static const Vector *vectors_of(const char *name, int *n)
{
	size_t length = strlen(name);
	int count, first = 0;
	const Vector *v = vectors(&count);
	while (first < count && (strncmp(v[first].name, name, length) ||
				 v[first].array != v[first].name + length + 1))
		first++;
	for (*n = 0; first + *n < count && !strncmp(v[first + *n].name, name, length) &&
		     v[first + *n].array == v[first + *n].name + length + 1;)
		++*n;
	CHECK_REPORT(*n, "vectors.txt has no case %s", name);
	return *n ? v + first : NULL;
}

/* The n numbers of "part/case/array"; fails where there are not n of them. */
__attribute__((unused)) static void vector_read(const char *name, int n, double *x)
{
	int count, k = 0;
	const Vector *v = vectors(&count);
	while (k < count && strcmp(v[k].name, name))
		k++;
	int64_t size = k < count ? v[k].size : -1;
	CHECK_REPORT(size == n, "vectors.txt has %d numbers of %s, should be %d", (int)size, name,
		     n);
	for (int i = 0; i < n; i++)
		x[i] = size == n ? v[k].value[i] : NAN;
}

/* Are the numbers those of that name, within tol times (1 + their size)? */
__attribute__((unused)) static void vector_check(const char *name, int n, const double *got,
						 double tol)
{
	double *want = calloc((size_t)n, sizeof *want);
	vector_read(name, n, want);
	for (int i = 0; i < n; i++)
		CHECK_REPORT(check_near(got[i], want[i], tol * (1 + fabs(want[i]))),
			     "%s[%d] is %.17g, should be %.17g", name, i, got[i], want[i]);
	free(want);
}

/* values() of vectors.py. */
__attribute__((unused)) static void values(double seed, int n, double *x)
{
	for (int i = 0; i < n; i++)
		x[i] = 1.5 * sin(seed + 0.73 * i + 0.11 * i * i);
}

#endif
