/* library.c - OpenBLAS, opened when a schedule first asks for it.
 *
 * Output: matrix products that generated code calls by name, and whether there are any. The library
 * runs on the thread that calls it and starts none: parts are what kernels are split into. Nothing
 * else knows of it; oneDNN would be another table of functions here and another number of the
 * step. RICCI_OPENBLAS names another file, or `off`.
 */
#include "jit/library.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#ifndef RICCI_WITHOUT_OPENBLAS
#define RICCI_OPENBLAS_FILE "libopenblas.so.0"

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

static void blas_open(void)
{
	static const struct {
		const char *name;
		void *at;
	} want[] = {{"cblas_sgemm", &blas.sgemm},
		    {"cblas_dgemm", &blas.dgemm},
		    {"openblas_set_num_threads", &blas.set_threads},
		    {"openblas_get_parallel", &blas.get_parallel},
		    {"openblas_get_config", &blas.get_config}};
	const char *file = env_text("RICCI_OPENBLAS", RICCI_OPENBLAS_FILE);
	if (!strcmp(file, "off")) {
		snprintf(reason, sizeof reason, "RICCI_OPENBLAS is off");
		return;
	}
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *what = dlerror();
		snprintf(reason, sizeof reason, "%s", what ? what : file);
		return;
	}
	for (int k = 0; k < COUNT(want) && !*reason; k++) {
		void *found = dlsym(library, want[k].name);
		memcpy(want[k].at, &found, sizeof found);
		if (!found)
			snprintf(reason, sizeof reason, "%s has no %s", file, want[k].name);
	}
	if (!*reason && blas.get_parallel() == 0)
		snprintf(reason, sizeof reason, "%s is built for one thread only", file);
	if (!*reason)
		blas.set_threads(1);
}

bool library_available(char *why, size_t n)
{
	pthread_once(&once, blas_open);
	if (*reason && n)
		snprintf(why, n, "%s", reason);
	return !*reason;
}

const char *library_version(void)
{
	return library_available(NULL, 0) ? blas.get_config() : "none";
}

static void product_f32(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
			const float *b, int64_t ldb, int64_t turned, float *c, int64_t ldc,
			int64_t add)
{
	blas.sgemm(ROW_MAJOR, turned & 1 ? TURNED : AS_IS, turned & 2 ? TURNED : AS_IS, (int)m,
		   (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, add ? 1 : 0, c, (int)ldc);
}

static void product_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda,
			const double *b, int64_t ldb, int64_t turned, double *c, int64_t ldc,
			int64_t add)
{
	blas.dgemm(ROW_MAJOR, turned & 1 ? TURNED : AS_IS, turned & 2 ? TURNED : AS_IS, (int)m,
		   (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, add ? 1 : 0, c, (int)ldc);
}

const JitSymbol library_symbols[] = {{LIBRARY_PRODUCT_F32, (const void *)product_f32},
				     {LIBRARY_PRODUCT_F64, (const void *)product_f64},
				     {NULL, NULL}};
#else
bool library_available(char *why, size_t n)
{
	if (n)
		snprintf(why, n, "left out by ./configure --without-openblas");
	return false;
}

const char *library_version(void)
{
	return "none";
}

const JitSymbol library_symbols[] = {{NULL, NULL}};
#endif

bool schedule_available(const Schedule *s)
{
	for (int k = 0; k < s->n; k++)
		if (s->step[k].kind == STEP_LIBRARY)
			return library_available(NULL, 0);
	return true;
}
