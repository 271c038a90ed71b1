/* test_hdf5_memory.c - checkpoints where memory ends inside HDF5 and the libraries that it brings
 * along, which crash then: an error or a success here. The C library's malloc is replaced by one
 * that fails from some call on, theirs included. */
#include "nn/nn.h"
#include "tests/check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
int main(void)
{
	CHECK_SKIP("malloc can't be replaced here");
	return check_done();
}
#else
#define OPEN __attribute__((visibility("default")))
extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t m);
extern void *__libc_realloc(void *p, size_t n);

static long left = -1; /* calls that succeed; < 0: all */
static bool single;    /* one fails, and all after it succeed again */

static bool fails(void)
{
	if (left < 0)
		return false;
	if (left > 0) {
		left--;
		return false;
	}
	if (single)
		left = -1;
	return true;
}

OPEN void *malloc(size_t n)
{
	return fails() ? NULL : __libc_malloc(n);
}

OPEN void *calloc(size_t n, size_t m)
{
	return fails() ? NULL : __libc_calloc(n, m);
}

OPEN void *realloc(void *p, size_t n)
{
	return fails() ? NULL : __libc_realloc(p, n);
}

static char path[200];

static int saved(ricci_session *s, const ricci_tensor *t)
{
	return ricci_save(s, t, path, NULL, 0);
}

static int loaded(ricci_session *s, const ricci_tensor *t)
{
	ricci_position p = RICCI_POSITION();

	return ricci_load(s, t, path, 0, &p);
}

/* Opening HDF5 takes some thousand calls. */
static void check_failures(ricci_session *s, const ricci_tensor *t,
			   int (*work)(ricci_session *, const ricci_tensor *))
{
	int failed = 0, lost = 0;

	for (int n = 0; n < 9000; n += n < 40 ? 1 : 173) {
		left = n;
		int code = work(s, t);
		left = -1;
		CHECK(code <= 0);
		failed += code != 0;
		lost += code && strstr(ricci_error_message(), "HDF5 crashed (signal ") != NULL;
	}
	CHECK(failed > 0);
	CHECK(single || lost > 0); /* the test reaches what it is for */
	CHECK_INT(work(s, t), 0);
}

int main(void)
{
	long live = mem_live();

	snprintf(path, sizeof path, "%s/ricci-test-%ld.h5", env_text("TMPDIR", "/tmp"),
		 (long)getpid());
	setenv("RICCI_CACHE", "off", 1);
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){4, 8});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){8, 3}, ricci_constant(2));
	ricci_tensor *y = ricci_op(g, "Y[b,n] += X[b,k] * W[k,n]", x, w);
	ricci_options o = RICCI_OPTIONS(.threads = 1, .backend = RICCI_BACKEND_INTERP);
	ricci_session *s = ricci_session_new(g, &o, 0, 1, &y);
	CHECK(s != NULL);
	if (saved(s, y) == RICCI_EUNSUPPORTED) {
		CHECK_SKIP(ricci_error_message());
	} else {
		for (int k = 0; k < 2; k++) {
			single = k;
			check_failures(s, y, saved);
			check_failures(s, y, loaded);
		}
	}
	ricci_session_free(s);
	ricci_graph_free(g);
	CHECK_INT(mem_live(), live);
	unlink(path);
	return check_done();
}
#endif
