/* openblas.c - OpenBLAS's matrix products. Its own threads are set to one, for the whole
 * process. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "jit/library/library.h"

#ifndef RICCI_WITHOUT_OPENBLAS
#include <pthread.h>
#include <sched.h>

enum { ROW_MAJOR = 101, AS_IS = 111, TURNED = 112 }; /* of <cblas.h> */

static struct {
	void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
		      int lda, const float *b, int ldb, float beta, float *c, int ldc);
	void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
		      int lda, const double *b, int ldb, double beta, double *c, int ldc);
	void (*set_threads)(int n);
	int (*get_parallel)(void); /* 0: built for one thread, and not safe in several */
	char *(*get_config)(void);
} blas;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char reason[256]; /* why there is none; "" when there is */

/* As it is opened, OpenBLAS starts a thread for each processor that the opening one may use, and
 * ends the process where it gets none, or waits without end for such a thread's memory (0.3.21,
 * under `ulimit -u`, `-v`). Ours needs none of them: it may use one processor meanwhile. */
static bool open_alone(int n, const LibrarySymbol *want)
{
	cpu_set_t all, one;
	int cpu = sched_getcpu();
	bool alone = cpu >= 0 && cpu < CPU_SETSIZE && !sched_getaffinity(0, sizeof all, &all);

	CPU_ZERO(&one);
	if (alone) {
		CPU_SET(cpu, &one);
		alone = !sched_setaffinity(0, sizeof one, &one);
	}
	bool good =
		library_open("RICCI_OPENBLAS", "libopenblas.so.0", n, want, reason, sizeof reason);
	if (alone)
		sched_setaffinity(0, sizeof all, &all);
	return good;
}

static void blas_open(void)
{
	static const LibrarySymbol want[] = {{"cblas_sgemm", &blas.sgemm},
					     {"cblas_dgemm", &blas.dgemm},
					     {"openblas_set_num_threads", &blas.set_threads},
					     {"openblas_get_parallel", &blas.get_parallel},
					     {"openblas_get_config", &blas.get_config}};
	if (!open_alone(COUNT(want), want))
		return;
	if (blas.get_parallel() == 0)
		snprintf(reason, sizeof reason, "OpenBLAS is built for one thread only");
	else
		blas.set_threads(1);
}

static bool available(char *why, size_t n)
{
	pthread_once(&once, blas_open);
	if (*reason && n)
		snprintf(why, n, "%s", reason);
	return !*reason;
}

static const char *version(void)
{
	return blas.get_config();
}

static LIBRARY_PRODUCT(product_f32, float)
{
	blas.sgemm(ROW_MAJOR, turned & 1 ? TURNED : AS_IS, turned & 2 ? TURNED : AS_IS, (int)m,
		   (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, add ? 1 : 0, c, (int)ldc);
}

static LIBRARY_PRODUCT(product_f64, double)
{
	blas.dgemm(ROW_MAJOR, turned & 1 ? TURNED : AS_IS, turned & 2 ? TURNED : AS_IS, (int)m,
		   (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, add ? 1 : 0, c, (int)ldc);
}

#define PRODUCT_F32 "ricci_openblas_f32"
#define PRODUCT_F64 "ricci_openblas_f64"
static const JitSymbol symbols[] = {{PRODUCT_F32, (const void *)product_f32},
				    {PRODUCT_F64, (const void *)product_f64},
				    {NULL, NULL}};
const Library library_openblas = {"OpenBLAS",
				  "openblas",
				  available,
				  version,
				  {[RICCI_F32] = PRODUCT_F32, [RICCI_F64] = PRODUCT_F64},
				  symbols};
#else
const Library library_openblas = {.name = "OpenBLAS", .part = "openblas"};
#endif
