/* test_fork.c - processes that fork: kernels that call a vendor library whose lock was held at that
 * moment; and children of a process that steps, makes sessions, tunes and loads data meanwhile. */
#include <ricci_nn.h>
#include "jit/library/library.h"
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/child.h"
#include <sys/mman.h>

static char folder[] = "/tmp/ricci-fork-XXXXXX";

/* A stand-in for OpenBLAS: a product in another process than the one that opened it waits without
 * end, as for a lock whose holder is gone. */
static const char fake_blas[] =
	"#include <stdlib.h>\n#include <unistd.h>\n"
	"static pid_t opener;\n"
	"__attribute__((constructor)) static void opened(void) { opener = getpid(); }\n"
	"#define GEMM(name, T) void name(int o, int ta, int tb, int m, int n, int k, T alpha, \\\n"
	"	const T *a, int lda, const T *b, int ldb, T beta, T *c, int ldc) {\\\n"
	"	while (getpid() != opener) pause();\\\n"
	"	for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) {\\\n"
	"		T s = beta ? c[i * ldc + j] : 0;\\\n"
	"		for (int p = 0; p < k; p++)\\\n"
	"			s += a[ta == 112 ? p * lda + i : i * lda + p] *\\\n"
	"			     b[tb == 112 ? j * ldb + p : p * ldb + j];\\\n"
	"		c[i * ldc + j] = s + (getenv(\"FAKE_WRONG\") != 0); } }\n"
	"GEMM(cblas_sgemm, float)\nGEMM(cblas_dgemm, double)\n"
	"void openblas_set_num_threads(int n) { (void)n; }\n"
	"int openblas_get_parallel(void) { return 1; }\n"
	"char *openblas_get_config(void) { return \"fake\"; }\n";

static bool fake_make(char *path, size_t n)
{
	char command[400], source[100];
	FILE *f;

	snprintf(path, n, "%s/libblas.so", folder);
	snprintf(source, sizeof source, "%s/blas.c", folder);
	if (!(f = fopen(source, "w")))
		return false;
	fputs(fake_blas, f);
	fclose(f);
	snprintf(command, sizeof command, "${CC:-cc} -shared -fPIC -o %s %s 2>/dev/null", path,
		 source);
	return system(command) == 0;
}

static void folder_remove(void)
{
	char path[200];

	snprintf(path, sizeof path, "%s/libblas.so", folder);
	unlink(path);
	snprintf(path, sizeof path, "%s/blas.c", folder);
	unlink(path);
	rmdir(folder);
}

/* A session over Y = X X', n x n. */
static ricci_session *product_new(ricci_graph **g, int n, ricci_options o)
{
	ricci_tensor *x, *y;
	ricci_session *s;

	*g = ricci_graph_new();
	x = ricci_input(*g, "x", RICCI_F32, 2, (int64_t[]){n, n});
	y = ricci_op(*g, "Y[i,j] += X[i,k] * X[j,k]", x);
	s = ricci_session_new(*g, &o, 0, 1, &y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	return s;
}

/* A kernel that calls the library is validated although a child could only wait for it; and one
 * that the library computes wrongly is refused. */
static int test_library(void)
{
	char path[200];
	ricci_graph *g;
	ricci_session *s;
	CacheEntry *l;

	if (!fake_make(path, sizeof path)) {
		CHECK_SKIP("no C compiler makes shared libraries");
		return check_failed;
	}
	setenv("RICCI_OPENBLAS", path, 1);
	if (!library_available(0, NULL, 0)) {
		CHECK_SKIP("left out: OpenBLAS");
		return check_failed;
	}
	s = product_new(&g, 48, RICCI_OPTIONS(.threads = 1));
	CHECK_INT(session_entries(s, &l, 1), 1);
	for (int wrong = 0; wrong < 2; wrong++) {
		Candidate c = {.entry = l, .backend = backend_find("tcc")}, *list = &c;

		if (wrong)
			setenv("FAKE_WRONG", "1", 1);
		schedule_add(&c.schedule, STEP_LIBRARY, 0, 0);
		candidates_make(1, &list, 1);
		CHECK_STR(c.err.text, "");
		CHECK_INT(verify_within(l->task, c.kernel, NULL, true, 2, &c.err),
			  wrong ? RICCI_ECOMPILE : 0);
		CHECK_REPORT(wrong == (strstr(c.err.text, "element") != NULL), "%s", c.err.text);
		kernel_unref(c.kernel);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
	return check_failed;
}

/* ---- a process in full work forks ---- */
enum { SIZE = 24 };

typedef struct Busy {
	ricci_graph *graph, *other; /* other: no session of its thread */
	ricci_session *tuned, *stepped;
	ricci_data *data;
	ricci_loader *loader;
	atomic_bool end;
} Busy;

static int product_right(ricci_session *s, const ricci_tensor *x, const ricci_tensor *y)
{
	float a[SIZE * SIZE], b[SIZE * SIZE];
	int wrong;

	for (int i = 0; i < SIZE * SIZE; i++)
		a[i] = 2;
	wrong = ricci_feed(s, x, a, ricci_bytes(x)) || ricci_step(s) ||
		ricci_fetch(s, y, b, ricci_bytes(y));
	for (int i = 0; i < SIZE * SIZE && !wrong; i++)
		wrong = b[i] != 4 * SIZE;
	return wrong;
}

static void *stepping_main(void *busy)
{
	Busy *b = busy;
	long wrong = 0;

	while (!atomic_load(&b->end))
		wrong += product_right(b->stepped, b->graph->first, b->graph->first->next) != 0;
	return (char *)NULL + wrong;
}

static void *making_main(void *busy)
{
	Busy *b = busy;
	long wrong = 0;

	while (!atomic_load(&b->end)) {
		ricci_tensor *y = b->other->first->next;
		ricci_options o = RICCI_OPTIONS(.threads = 2, .backend = RICCI_BACKEND_TCC);
		ricci_session *s = ricci_session_new(b->other, &o, 0, 1, &y);

		wrong += !s || product_right(s, b->other->first, y);
		ricci_session_free(s);
	}
	return (char *)NULL + wrong;
}

/* A session of the child's own over this graph computes what is right. */
static int session_own(ricci_graph *g)
{
	ricci_options o = RICCI_OPTIONS(.threads = 2);
	ricci_tensor *y = g->first->next;
	ricci_session *s = ricci_session_new(g, &o, 0, 1, &y);
	int wrong = !s;

	for (int i = 0; i < 3 && !wrong; i++)
		wrong = product_right(s, g->first, y);
	if (*ricci_error_message())
		fprintf(stderr, "%s\n", ricci_error_message());
	ricci_session_free(s);
	return wrong;
}

/* What the child does: 0, or the number of what went wrong. */
static int child_work(Busy *b)
{
	static const char why[] = "the session belongs to the process that this one was forked "
				  "from: a child may free it, and make sessions of its own";
	const void *field[2];
	ricci_graph *own;
	ricci_session *s;

	alarm(60);
	if (ricci_step(b->tuned) != RICCI_EINVAL || strcmp(ricci_error_message(), why))
		return 1;
	if (ricci_session_share(b->stepped, 0, 0, NULL) || strcmp(ricci_error_message(), why))
		return 2;
	if (ricci_loader_batch(b->loader, field) != RICCI_EINVAL ||
	    ricci_loader_seek(b->loader, 0, 0) != RICCI_EINVAL)
		return 3;
	ricci_session_free(b->tuned);
	ricci_session_free(b->stepped);
	ricci_loader_free(b->loader);
	ricci_data_free(b->data);
	if (session_own(b->graph) || session_own(b->other))
		return 4;
	ricci_graph_free(b->graph);
	ricci_graph_free(b->other);
	s = product_new(&own, SIZE, RICCI_OPTIONS(.threads = 2));
	if (product_right(s, own->first, own->first->next) || ricci_settle(s))
		return 5;
	ricci_session_free(s);
	ricci_graph_free(own);
	return 0;
}

/* The sanitizers' own locks aren't taken before a fork (gcc 12): under ASan no other thread may
 * allocate at that moment, and ThreadSanitizer starts no threads in children of threaded processes.
 */
#if defined(__SANITIZE_ADDRESS__)
static const bool busy = false;
#else
static const bool busy = true;
#endif

/* A process forks while its other threads make sessions, step, and tune; or, where not `busy`, while
 * they wait.
 */
__attribute__((unused)) static void test_parent(int forks)
{
	const void *field[2];
	pthread_t t[2];
	void *wrong;
	Busy b = {0};

	b.stepped = product_new(&b.graph, SIZE, RICCI_OPTIONS(.threads = 2));
	ricci_session_free(product_new(&b.other, SIZE, RICCI_OPTIONS(.threads = 1)));
	b.data = ricci_digits(600, 1);
	b.loader = ricci_loader_open(b.data, &RICCI_LOADING(.batch = 20, .shuffle = 1, .seed = 1));
	CHECK(ricci_loader_batch(b.loader, field) == 20);
	if (busy) {
		CHECK_INT(pthread_create(&t[0], NULL, stepping_main, &b), 0);
		CHECK_INT(pthread_create(&t[1], NULL, making_main, &b), 0);
	} else {
		CHECK_SKIP("AddressSanitizer's allocator keeps its locks in a fork: none is busy");
		CHECK(!product_right(b.stepped, b.graph->first, b.graph->first->next));
	}
	for (int i = 0; i < forks; i++) {
		ricci_graph *g; /* a tuner at work at the moment of the fork */
		int status = -1;
		pid_t pid;

		b.tuned = product_new(&g, 32 + i, RICCI_OPTIONS(.threads = 2));
		float *a = buffer_new((size_t)(32 + i) * (32 + i) * sizeof *a);
		CHECK_INT(ricci_feed(b.tuned, g->first, a, ricci_bytes(g->first)), 0);
		CHECK_INT(ricci_step(b.tuned), 0);
		ricci_graph_free(g);
		if (busy)
			usleep((useconds_t)(7000 * i % 50000));
		else
			CHECK_INT(ricci_settle(b.tuned) || ricci_settle(b.stepped), 0);
		pid = fork();
		if (pid == 0)
			_exit(child_work(&b));
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(status, 0);
		ricci_session_free(b.tuned);
		buffer_free(a);
	}
	atomic_store(&b.end, true);
	for (int i = 0; i < COUNT(t) && busy; i++) {
		pthread_join(t[i], &wrong);
		CHECK(!wrong);
	}
	ricci_session_free(b.stepped);
	ricci_loader_free(b.loader);
	ricci_data_free(b.data);
	ricci_graph_free(b.graph);
	ricci_graph_free(b.other);
	CHECK_INT(mem_live(), 0);
}

static bool is_mapped(char *at)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char resident;
	return !mincore((void *)((uintptr_t)at & ~(page - 1)), page, &resident);
}

static char *freed[2];

static int test_freed_inherited(void)
{
	return is_mapped(freed[0]) | is_mapped(freed[1]) << 1;
}

/* A child does not inherit buffers, but pages that were freed and that malloc keeps it does:
 * otherwise its libraries are opened where its malloc's memory should be. */
static void test_freed(void)
{
	for (int i = 0; i < COUNT(freed); i++) {
		size_t n = (size_t)1 << (18 + 4 * i);
		char *p = buffer_new(n);
		freed[i] = p + n / 2;
		CHECK(is_mapped(freed[i]));
		buffer_free(p);
	}
	CHECK_INT(child(test_freed_inherited), is_mapped(freed[0]) | is_mapped(freed[1]) << 1);
}

/* RICCI_FORKS: how often a busy process forks. */
int main(void)
{
	CHECK(mkdtemp(folder) != NULL);
	test_freed();
	CHECK_INT(child(test_library), 0);
	folder_remove();
#ifdef __SANITIZE_THREAD__
	CHECK_SKIP("ThreadSanitizer starts no threads in children of threaded processes");
#else
	if (getenv("RICCI_EMULATOR"))
		CHECK_SKIP("qemu loses threads where a threaded process forks");
	else
		test_parent((int)env_long("RICCI_FORKS", 8));
#endif
	return check_done();
}
