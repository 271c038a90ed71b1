/* test_tcc.c - libtcc where memory ends: an error, nothing printed, nothing kept, and the next
 * kernel is compiled as if nothing had been. */
#define _GNU_SOURCE
#include "jit/backend/backend.h"
#include "jit/backend/tcc_host.h"
#include "tests/child.h"
#include "tests/memory_check.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

extern void *ricci_tcc_malloc(size_t n), *ricci_tcc_realloc(void *old, size_t n);
extern _Noreturn void ricci_tcc_exit(int status);
extern _Noreturn void ricci_tcc_assert(const char *what, const char *file, unsigned line,
				       const char *in);

static const char source[] =
	"static float square(float x) { float twice = x + x; return twice * x / 2; }\n"
	"void kernel_0(void **b, void *env, long begin, long end)\n"
	"{\n"
	"	float *x = b[0], *y = b[1];\n"
	"	for (long i = begin; i < end; i++)\n"
	"		y[i] = square(x[i]);\n"
	"}\n";

static int build_source(const char *text)
{
	Error err = {0};
	Kernel *k = kernel_new(&backend_tcc, &err);

	if (k && !(k->source = mem_strdup(text)))
		error_set(&err, RICCI_ENOMEM, "out of memory");
	if (k && !err.code)
		backend_tcc.compile(&backend_tcc, 1, &k, NULL, &err);
	if (k && !err.code) {
		float x[2] = {2, 3}, y[2] = {0};
		k->run((void *[]){x, y}, NULL, 0, 2);
		if (y[0] != 4 || y[1] != 9)
			error_set(&err, RICCI_ECOMPILE, "wrong values");
	}
	if (k)
		kernel_unref(k);
	return err.code;
}

static int build(void)
{
	return build_source(source);
}

/* A text of many functions, so that libtcc asks for memory again and again. */
static char *long_source(int n)
{
	Text t = {0};

	for (int i = 0; i < n; i++)
		text_add(&t, "static float f%d(float x) { return x * %d + %d.5f; }\n", i, i, i);
	text_put(&t, source, strlen(source));
	return t.s;
}

static char *big;

static int build_big(void)
{
	return build_source(big);
}

/* Less and less room, all of it taken but for some pages: 0, or the code of the first thing that
 * was neither a success nor an error. */
static int build_in_little(void)
{
	struct rlimit room = {0};
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!f || fscanf(f, "%ld", &pages) != 1)
		return 100;
	fclose(f);
	for (int more = 0; more < 2048; more += 16) {
		room.rlim_cur = room.rlim_max = RLIM_INFINITY;
		room.rlim_cur = ((rlim_t)pages + (rlim_t)more) * 4096;
		if (setrlimit(RLIMIT_AS, &room))
			return 101;
		int code = build_big();
		if (code && code != RICCI_ENOMEM)
			return 102;
	}
	room.rlim_cur = RLIM_INFINITY;
	return setrlimit(RLIMIT_AS, &room) || build_big() ? 103 : 0;
}

static void take_all(void *user)
{
	(void)user;
	ricci_tcc_malloc(SIZE_MAX / 8);
}

static void give_up(void *user)
{
	user ? ricci_tcc_exit(1) : ricci_tcc_assert("x", "y", 1, "z");
}

static void grow(void *user)
{
	char *s = ricci_tcc_realloc(NULL, 3);

	memcpy(s, "abc", 3);
	s = ricci_tcc_realloc(s, 100000);
	*(bool *)user = !memcmp(s, "abc", 3);
}

static void check_ends(void)
{
	Error err = {0};
	bool grown = false;

#ifndef __SANITIZE_ADDRESS__ /* which ends the process there */
	CHECK_INT(tcc_run_work(take_all, NULL, &err), RICCI_ENOMEM);
	CHECK_STR(err.text, "out of memory for tcc");
	error_clear(&err);
#else
	(void)take_all;
#endif
	for (int i = 0; i < 2; i++) {
		CHECK_INT(tcc_run_work(give_up, i ? &err : NULL, &err), RICCI_ECOMPILE);
		CHECK_STR(err.text, "tcc gave up on a kernel");
		error_clear(&err);
	}
	CHECK_INT(tcc_run_work(grow, &grown, &err), 0);
	CHECK(grown);
}

int main(void)
{
	long live = mem_live();

	check_memory(build);
	check_ends();
	big = long_source(200); /* for ARM libtcc asks four times for each function */
	check_memory(build_big);
	mem_free(big);
	big = long_source(2000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	CHECK_INT(child(build_in_little), 0);
#endif
	mem_free(big);
	CHECK_INT(mem_live(), live);
	return check_done();
}
