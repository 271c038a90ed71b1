/* onednn.c - oneDNN's matrix products. It divides its work by OpenMP, whose number of
 * threads is a property of the calling thread: one during the call. */
#include "jit/library/library.h"

#ifndef RICCI_WITHOUT_ONEDNN
#include <pthread.h>

typedef struct DnnlVersion { /* dnnl_version_t */
	int major, minor, patch;
	const char *hash;
	unsigned cpu_runtime, gpu_runtime;
} DnnlVersion;

enum { RUNTIME_SEQUENTIAL = 1, RUNTIME_OMP = 2 };

static struct {
	int (*sgemm)(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
		     int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
	const DnnlVersion *(*version)(void);
	void (*set_threads)(int n);
	int (*max_threads)(void);
} dnnl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char reason[256];    /* why there is none; "" when there is */
static unsigned generation; /* of forks, when it was opened */
static char version_text[64];

/* oneDNN makes its code as it is first needed, and throws where there is no memory for it: each kind
 * of product once, while there is. */
static bool prepare(void)
{
	enum { LARGEST = 80 };
	static const int64_t size[] = {1, 16, LARGEST};
	float *m = library_room() ? mem_zalloc(3 * LARGEST * LARGEST * sizeof *m) : NULL;
	int threads = dnnl.max_threads();
	if (!m)
		return false;
	dnnl.set_threads(1);
	for (int kind = 0; kind < 8; kind++)
		for (int i = 0; i < COUNT(size); i++)
			dnnl.sgemm(kind & 1 ? 'T' : 'N', kind & 2 ? 'T' : 'N', size[i], size[i],
				   size[i], 1, m, LARGEST, m + LARGEST * LARGEST, LARGEST,
				   kind & 4 ? 1 : 0, m + 2 * LARGEST * LARGEST, LARGEST);
	dnnl.set_threads(threads);
	mem_free(m);
	return true;
}

static void dnnl_open(void)
{
	generation = fork_generation();
	static const LibrarySymbol want[] = {{"dnnl_sgemm", &dnnl.sgemm},
					     {"dnnl_version", &dnnl.version},
					     {"omp_set_num_threads", &dnnl.set_threads},
					     {"omp_get_max_threads", &dnnl.max_threads}};
	if (!library_open("RICCI_ONEDNN", "libdnnl.so.2", COUNT(want), want, reason, sizeof reason))
		return;
	const DnnlVersion *v = dnnl.version();
	snprintf(version_text, sizeof version_text, "oneDNN %d.%d.%d", v->major, v->minor,
		 v->patch);
	if (v->cpu_runtime != RUNTIME_OMP && v->cpu_runtime != RUNTIME_SEQUENTIAL)
		snprintf(reason, sizeof reason, "%s does not run on OpenMP", version_text);
	else if (!prepare())
		snprintf(reason, sizeof reason, "%s finds no memory", version_text);
}

static bool available(char *why, size_t n)
{
	pthread_once(&once, dnnl_open);
	return library_usable(reason, generation, why, n);
}

static const char *version(void)
{
	return version_text;
}

/* What dnnl_sgemm was to do: it fails where it gets no memory. */
static void product_by_hand(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
			    const float *b, int64_t ldb, int64_t turned, float *c, int64_t ldc,
			    int64_t add)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			float sum = add ? c[i * ldc + j] : 0;
			for (int64_t p = 0; p < k; p++)
				sum += a[turned & 1 ? p * lda + i : i * lda + p] *
				       b[turned & 2 ? j * ldb + p : p * ldb + j];
			c[i * ldc + j] = sum;
		}
}

static LIBRARY_PRODUCT(product_f32, float)
{
	if (library_rehearsed(sizeof(float), m, n, k, a, lda, b, ldb, turned, c, ldc))
		return;
	/* libgomp ends the process where it finds no memory for a thread's settings: here is some,
	 * free again. */
	void *room = mem_alloc(1 << 16);
	if (!room) {
		product_by_hand(m, n, k, a, lda, b, ldb, turned, c, ldc, add);
		return;
	}
	mem_free(room);
	int threads = dnnl.max_threads();
	dnnl.set_threads(1);
	int status = dnnl.sgemm(turned & 1 ? 'T' : 'N', turned & 2 ? 'T' : 'N', m, n, k, 1, a, lda,
				b, ldb, add ? 1 : 0, c, ldc);
	dnnl.set_threads(threads);
	if (status)
		product_by_hand(m, n, k, a, lda, b, ldb, turned, c, ldc, add);
}

#define PRODUCT_F32 "ricci_onednn_f32"
static const JitSymbol symbols[] = {{PRODUCT_F32, (const void *)product_f32}, {NULL, NULL}};
const Library library_onednn = {.name = "oneDNN",
				.part = "onednn",
				.available = available,
				.version = version,
				.product = {[RICCI_F32] = PRODUCT_F32},
				.symbols = symbols};
#else
const Library library_onednn = {.name = "oneDNN", .part = "onednn"};
#endif
