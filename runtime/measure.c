/* measure.c - how long a kernel takes on random data: the median of a few runs after a first one.
 */
#include "runtime/internal.h"
#include <stdlib.h>

enum { RUNS = 9 };
static const double patience = 0.05; /* seconds, after which three runs must do */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int measure_kernel(const Task *t, const Kernel *k, Pool *pool, double *seconds, Error *err)
{
	double time[RUNS], start = clock_seconds();
	TaskData d;
	int code = task_data_new(t, 1, &d, err), n = 0;

	for (int i = -1; i < RUNS && !code; i++) {
		double now = clock_seconds();

		code = pool_run(pool, k, d.buf, 1, 1, err);
		if (i >= 0)
			time[n++] = clock_seconds() - now;
		if (n >= 3 && clock_seconds() - start > patience)
			break;
	}
	task_data_free(&d);
	if (code)
		return code;
	qsort(time, (size_t)n, sizeof *time, by_value);
	*seconds = time[n / 2];
	return 0;
}
