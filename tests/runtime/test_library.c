/* test_library.c - a kernel that calls a library is kept in the cache like any other; where the
 * library is gone, its entry is as good as none. Every step is a process of its own. */
#include "jit/library/library.h"
#include "jit/lower.h"
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/child.h"

enum { N = 48, WRONG = 1, OURS = 2, LIBRARYS = 3 };

/* Each library, and what switches it off. */
static const char *const variable[] = {"RICCI_OPENBLAS", "RICCI_ONEDNN", "RICCI_CUBLASLT",
				       "RICCI_CUDNN"};
static int library;

/* Puts a kernel of the library in the place of the line's. */
static int put_library(CacheEntry *l)
{
	Candidate c = {.entry = l, .backend = backend_find("tcc")}, *list = &c;

	schedule_add(&c.schedule, STEP_LIBRARY, 0, library);
	candidates_make(1, &list, 1);
	CHECK_STR(c.err.text, "");
	if (!c.kernel || verify_kernel(l->task, c.kernel, true, &c.err))
		return -1;
	entry_put(l, c.kernel, &c.origin, 1e-6, true);
	disk_store(l);
	return 0;
}

/* A product in a session: whose kernel it has, or WRONG. */
static int product(bool put)
{
	static float a[N * N], y[N * N];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){N, N});
	ricci_tensor *r = ricci_op(g, "Y[i,j] += X[i,k] * X[j,k]", x);
	ricci_options o = RICCI_OPTIONS(.threads = 2);
	ricci_session *s = ricci_session_new(g, &o, 0, 1, &r);
	CacheEntry *l;
	int bad = !s, code = WRONG;

	for (int i = 0; i < N * N; i++)
		a[i] = (float)(i % 7) - 3;
	if (!bad)
		bad = ricci_feed(s, x, a, ricci_bytes(x)) || session_entries(s, &l, 1) != 1 ||
		      (put && put_library(l)) || ricci_step(s) ||
		      ricci_fetch(s, r, y, ricci_bytes(r));
	for (int i = 0; i < N && !bad; i++)
		for (int j = 0; j < N; j++) {
			float sum = 0;

			for (int k = 0; k < N; k++)
				sum += a[i * N + k] * a[j * N + k];
			bad += y[i * N + j] != sum; /* small integers: no rounding */
		}
	if (!bad)
		code = l->best->schedule.step[0].kind == STEP_LIBRARY ? LIBRARYS : OURS;
	ricci_session_free(s);
	ricci_graph_free(g);
	return code;
}

static int run_put(void)
{
	return product(true);
}

static int run(void)
{
	return product(false);
}

static int run_without(void)
{
	setenv(variable[library], "off", 1);
	return product(false);
}

static int is_there(void)
{
	return library_available(library, NULL, 0);
}

int main(void)
{
	for (; library_name(library); library++) {
		char folder[] = "/tmp/ricci-test-library-XXXXXX", command[100];

		if (library_row(library)->multiplies) /* on devices: test_device_library */
			continue;
		CHECK(mkdtemp(folder) != NULL);
		setenv("RICCI_CACHE", folder, 1);
		CHECK_INT(child(run), OURS);
		CHECK_INT(child(run_without), OURS);
		if (child(is_there)) { /* not opened here, because children should decide */
			CHECK_INT(child(run_put), LIBRARYS);
			CHECK_INT(child(run), LIBRARYS);
			CHECK_INT(child(run_without), OURS);
		} else {
			CHECK_SKIP(library_name(library));
		}
		snprintf(command, sizeof command, "rm -rf %s", folder);
		CHECK(system(command) == 0);
	}
	CHECK_INT(library, COUNT(variable));
	return check_done();
}
