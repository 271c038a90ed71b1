/* test_library_memory.c - vendor libraries where memory ends: OpenBLAS waits without end then, and
 * OpenMP ends the process. Before a library is opened and after, more and more room, one thread and
 * several. */
#include "jit/library/library.h"
#include "tests/check.h"
#include "tests/child.h"
#include <pthread.h>
#include <sys/resource.h>

enum { N = 96, THREADS = 4 };

static LIBRARY_PRODUCT((*product), float);
static float a[N * N], b[N * N], c[THREADS][N * N];

static int which, before;
static long more; /* KB that are left */

static bool limit(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;
	bool good = f && fscanf(f, "%ld", &pages) == 1;
	struct rlimit room = {(rlim_t)pages * 4096 + (rlim_t)more * 1024, RLIM_INFINITY};

	if (f)
		fclose(f);
	return good && !setrlimit(RLIMIT_AS, &room);
}

static void *multiply(void *out)
{
	for (int i = 0; i < 3; i++)
		product(N, N, N, a, N, b, N, 0, out, N, 0);
	return NULL;
}

/* 0: right; 1: the library is not there. */
static int run_limited(void)
{
	char why[300];
	pthread_t t[THREADS];
	int n = 0, wrong = 0;

	alarm(30);
	if (before && !limit())
		return 2;
	if (!library_available(which, why, sizeof why))
		return 1;
	product = library_row(which)->symbols->address;
	for (int i = 0; i < N * N; i++)
		a[i] = b[i] = 1;
	if (!before && !limit())
		return 3;
	while (n < THREADS - 1 && pthread_create(&t[n], NULL, multiply, c[n]) == 0)
		n++;
	multiply(c[n]);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i <= n; i++)
		for (int k = 0; k < N * N; k++)
			wrong += c[i][k] != N;
	return wrong ? 4 : 0;
}

static int run_there(void)
{
	char why[300];

	return library_available(which, why, sizeof why) ? 0 : 1;
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	CHECK_SKIP("a sanitizer needs more room");
	return check_done();
#endif
	static const long room[] = {0,	   64,	   300,	   2000,   20000,
				    60000, 100000, 200000, 600000, 2000000};

	for (which = 0; library_row(which); which++) {
		if (library_row(which)->multiplies) /* on devices */
			continue;
		if (child(run_there)) {
			CHECK_SKIP(library_name(which));
			continue;
		}
		for (before = 0; before < 2; before++)
			for (int i = 0; i < COUNT(room); i++) {
				more = room[i];
				int got = child(run_limited);
				CHECK_REPORT(got == 0 || (before && got == 1), "%s, %ld KB: %d",
					     library_name(which), more, got);
			}
	}
	return check_done();
}
