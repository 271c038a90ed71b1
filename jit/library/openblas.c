/* openblas.c - OpenBLAS's matrix products. Its own threads are set to one, for the whole
 * process. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "jit/library/library.h"

#ifndef RICCI_WITHOUT_OPENBLAS
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

enum { ROW_MAJOR = 101, AS_IS = 111, TURNED = 112 }; /* of <cblas.h> */

static struct {
	void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
		      int lda, const float *b, int ldb, float beta, float *c, int ldc);
	void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
		      int lda, const double *b, int ldb, double beta, double *c, int ldc);
	void (*set_threads)(int n);
	int (*get_parallel)(void); /* 0: built for one thread, and not safe in several */
	char *(*get_config)(void);
	void *(*memory_alloc)(int procedure); /* a call's buffer, of 128 MB of addresses or so */
	void (*memory_free)(void *p);
} blas;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char reason[256];    /* why there is none; "" when there is */
static unsigned generation; /* of forks, when it was opened */

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

/* Each call needs a buffer, which stays for later ones; where OpenBLAS gets no memory for one it
 * tries again without end. So as many as there are processors are made when it is opened, where
 * there surely is room, and only so many calls run at a time. One more is for threads that stand
 * back, which no other then waits for. */
enum { BUFFERS_MOST = 64 };
static sem_t buffers, back_buffers;
static bool apart; /* they have one of their own */

static int buffers_make(void)
{
	void *at[BUFFERS_MOST];
	long want = sysconf(_SC_NPROCESSORS_ONLN) + 1;
	int n = 0;

	for (; n < BUFFERS_MOST && n < want; n++) {
		if (!library_room() || !(at[n] = blas.memory_alloc(0)))
			break;
	}
	for (int i = 0; i < n; i++)
		blas.memory_free(at[i]);
	return n;
}

static sem_t *buffers_mine(void)
{
	return apart && thread_stands_back() ? &back_buffers : &buffers;
}

static void buffer_take(void)
{
	while (sem_wait(buffers_mine()) && errno == EINTR)
		;
}

static void buffer_leave(void)
{
	sem_post(buffers_mine());
}

static void blas_open(void)
{
	generation = fork_generation();
	static const LibrarySymbol want[] = {{"cblas_sgemm", &blas.sgemm},
					     {"cblas_dgemm", &blas.dgemm},
					     {"openblas_set_num_threads", &blas.set_threads},
					     {"openblas_get_parallel", &blas.get_parallel},
					     {"openblas_get_config", &blas.get_config},
					     {"blas_memory_alloc", &blas.memory_alloc},
					     {"blas_memory_free", &blas.memory_free}};
	if (!open_alone(COUNT(want), want))
		return;
	if (blas.get_parallel() == 0) {
		snprintf(reason, sizeof reason, "OpenBLAS is built for one thread only");
		return;
	}
	blas.set_threads(1);
	int n = buffers_make();
	if (!n)
		snprintf(reason, sizeof reason, "OpenBLAS finds no memory for its buffers");
	apart = n > 1;
	sem_init(&buffers, 0, (unsigned)(n - apart));
	sem_init(&back_buffers, 0, apart);
}

static bool available(char *why, size_t n)
{
	pthread_once(&once, blas_open);
	return library_usable(reason, generation, why, n);
}

static const char *version(void)
{
	return blas.get_config();
}

static LIBRARY_PRODUCT(product_f32, float)
{
	if (library_rehearsed(sizeof(float), m, n, k, a, lda, b, ldb, turned, c, ldc))
		return;
	buffer_take();
	blas.sgemm(ROW_MAJOR, turned & 1 ? TURNED : AS_IS, turned & 2 ? TURNED : AS_IS, (int)m,
		   (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, add ? 1 : 0, c, (int)ldc);
	buffer_leave();
}

static LIBRARY_PRODUCT(product_f64, double)
{
	if (library_rehearsed(sizeof(double), m, n, k, a, lda, b, ldb, turned, c, ldc))
		return;
	buffer_take();
	blas.dgemm(ROW_MAJOR, turned & 1 ? TURNED : AS_IS, turned & 2 ? TURNED : AS_IS, (int)m,
		   (int)n, (int)k, 1, a, (int)lda, b, (int)ldb, add ? 1 : 0, c, (int)ldc);
	buffer_leave();
}

#define PRODUCT_F32 "ricci_openblas_f32"
#define PRODUCT_F64 "ricci_openblas_f64"
static const JitSymbol symbols[] = {{PRODUCT_F32, (const void *)product_f32},
				    {PRODUCT_F64, (const void *)product_f64},
				    {NULL, NULL}};
const Library library_openblas = {.name = "OpenBLAS",
				  .part = "openblas",
				  .available = available,
				  .version = version,
				  .product = {[RICCI_F32] = PRODUCT_F32, [RICCI_F64] = PRODUCT_F64},
				  .symbols = symbols};
#else
const Library library_openblas = {.name = "OpenBLAS", .part = "openblas"};
#endif
