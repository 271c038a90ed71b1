/* test_device_library.c - sessions on cuda:0 take cuBLASLt's products where they are faster, and keep them: tried,
 * recorded, shared, failing, kept on disk, gone. On the stand-ins for NVIDIA's libraries (tests/jit/fake_cuda.c,
 * fake_cublaslt.c), whose products are faster than its kernels. */
#include "jit/schedule/schedule.h"
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/child.h"
#include "tests/jit/cuda_stand_in.h"

enum { N = 44, MOST = 20, STEPS = 30 };

static void *fake;
static int (*live)(void), (*replays)(void), (*products)(void), (*compiled)(void);

/* ---- a net of two products, with a state whose next value takes another place */
typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *w, *u, *m, *l;
	ricci_session *s;
} Net;

static bool net_make(Net *n, const char *device)
{
	const int64_t square[] = {N, N};
	ricci_options o = RICCI_OPTIONS(.device = device, .seed = 5, .threads = 1);
	ricci_graph *g = n->g = ricci_graph_new();
	ricci_tensor *h, *d, *grad;

	n->x = ricci_input(g, "x", RICCI_F32, 2, square);
	n->w = ricci_param(g, "w", RICCI_F32, 2, square, ricci_uniform(-1, 1));
	n->u = ricci_param(g, "u", RICCI_F32, 2, square, ricci_uniform(-1, 1));
	n->m = ricci_state(g, "m", RICCI_F32, 2, square, ricci_constant(0));
	h = ricci_op(g, "C[i,j] += X[i,k]*W[k,j]; H[i,j] = tanh(0.1*C[i,j])", n->x, n->w);
	d = ricci_op(g, "D[i,j] += X[k,i]*U[k,j]", n->x, n->u);
	n->l = ricci_op(g, "L[] += (H[i,j] - 0.5)*(H[i,j] - 0.5) + 0.01*D[i,j]*D[i,j]", h, d);
	ricci_grad(g, n->l, NULL, 1, &n->w, &grad);
	/* its transpose is read: beside */
	ricci_assign(g, n->m, ricci_op(g, "V[i,j] = 0.5*M[j,i] + G[i,j]", n->m, grad));
	ricci_assign(g, n->w, ricci_op(g, "V[i,j] = W[i,j] - 0.001*G[i,j]", n->w, grad));
	n->s = ricci_session_new(g, &o, 1, 1, &n->l);
	CHECK_REPORT(n->s, "%s", ricci_error_message());
	return n->s;
}

static void net_free(Net *n)
{
	ricci_session_free(n->s);
	ricci_graph_free(n->g);
}

static int step(const Net *n, ricci_session *s, float *loss)
{
	float x[N * N];

	for (int e = 0; e < N * N; e++)
		x[e] = sinf((float)e + 0.1f * (float)ricci_step_count(n->s));
	int code = ricci_feed(s, n->x, x, sizeof x);
	if (!code)
		code = ricci_step(s);
	return code ? code : ricci_fetch(s, n->l, loss, sizeof *loss);
}

static float want[STEPS + 1]; /* the processor's loss after so many steps */

static void make_want(void)
{
	Net n;

	if (net_make(&n, "cpu"))
		for (int i = 1; i <= STEPS; i++)
			CHECK_INT(step(&n, n.s, &want[i]), 0);
	net_free(&n);
	CHECK(isfinite(want[STEPS]) && want[1] != want[STEPS]);
}

static void check_train(const Net *n, int steps)
{
	float loss = NAN;

	for (int i = 0; i < steps; i++)
		CHECK_REPORT(!step(n, n->s, &loss), "%s", ricci_error_message());
	uint64_t done = ricci_step_count(n->s);
	CHECK(done <= STEPS);
	CHECK_NEAR(loss, want[done], 1e-4 * want[done] + 1e-5);
}

/* How many of its kernels are the library's. */
static int called(const Net *n)
{
	CacheEntry *e[MOST];
	int calls = 0;

	for (int i = session_entries(n->s, e, MOST) - 1; i >= 0; i--)
		calls += schedule_library(&e[i]->best->schedule);
	return calls;
}

/* A kernel of the library in the place of an entry's; false: it fits none. */
static bool product_put(CacheEntry *e, const char *schedule)
{
	Candidate c = {.entry = e, .backend = backend_find("nvrtc")}, *list = &c;

	schedule_parse(schedule, &c.schedule, &c.err);
	candidates_make(1, &list, 1);
	if (!c.kernel)
		return false;
	CHECK_REPORT(!verify_kernel(e->task, c.kernel, false, &c.err), "%s", c.err.text);
	entry_put(e, c.kernel, &c.origin, 1e-6, true);
	disk_store(e);
	return true;
}

/* What is faster depends on the machine's mood, so the products are put where they fit: of what lies in matrices, and
 * of copies. How many. */
static int products_put(const Net *n)
{
	CacheEntry *e[MOST];
	int put = 0;

	for (int i = session_entries(n->s, e, MOST) - 1; i >= 0; i--)
		put += product_put(e[i], "library 2; threads 128") ||
		       product_put(e[i], "library 2; share 3; threads 64");
	CHECK(put >= 3);
	CHECK_INT(called(n), put);
	return put;
}

static int live_now(void)
{
	Device *d = device_open(&device_cuda, 0, NULL);

	if (d)
		device_trim(d);
	return live();
}

/* Products are tried: validated, at least. */
static void test_tried(void)
{
	int multiplied = products();
	Net n;

	if (!net_make(&n, "cuda:0"))
		return;
	check_train(&n, 3);
	CHECK_INT(products() - multiplied, 0);
	CHECK_INT(ricci_settle(n.s), 0);
	CHECK(products() - multiplied >= 3); /* on three kinds of numbers */
	check_train(&n, 3);
	net_free(&n);
}

/* Steps with products are recorded, and a session that shares the parameters has them, too. */
static void test_taken(void)
{
	float seen = NAN;
	Net n;

	if (!net_make(&n, "cuda:0"))
		return;
	check_train(&n, 4);
	int taken = products_put(&n);
	check_train(&n, 4);
	int replayed = replays(), multiplied = products();
	check_train(&n, 6);
	CHECK_INT(replays() - replayed, 6);
	CHECK_INT(products() - multiplied, taken * 6);
	ricci_session *other = ricci_session_share(n.s, 0, 1, &n.l);
	multiplied = products();
	CHECK(other && !step(&n, other, &seen));
	CHECK(products() - multiplied >= 2);
	check_train(&n, 1);
	CHECK_NEAR(seen, want[15], 1e-4 * want[15] + 1e-5);
	ricci_session_free(other);
	net_free(&n);
}

/* What multiplies wrongly is refused. */
static void test_wrong(void)
{
	Net n;

	if (!net_make(&n, "cuda:0"))
		return;
	check_train(&n, 3);
	stand_in_fails(fake, "lt_wrong");
	CHECK_INT(ricci_settle(n.s), 0);
	stand_in_fails(fake, "");
	CHECK_INT(called(&n), 0);
	check_train(&n, 3);
	net_free(&n);
}

/* A call that fails ends the trial, not the training, and nothing stays. */
static void test_trials(void)
{
	static const char *const call[] = {"lt_layout:2", "lt_none", "lt_run:3"};

	for (int i = 0; i < COUNT(call); i++) {
		int before = live_now();
		Net n;

		if (!net_make(&n, "cuda:0"))
			return;
		check_train(&n, 3);
		stand_in_fails(fake, call[i]);
		CHECK_REPORT(!ricci_settle(n.s), "%s: %s", call[i], ricci_error_message());
		stand_in_fails(fake, "");
		CHECK_INT(called(&n), 0);
		check_train(&n, 3);
		net_free(&n);
		CHECK_REPORT(live_now() == before, "%s: something stays", call[i]);
	}
}

/* In a step it is an error; the step can be done again. */
static void test_steps(void)
{
	static const char *const call[] = {"lt_run", "lt_multiply"};

	for (int i = 0; i < COUNT(call); i++) {
		float loss;
		Net n;

		if (!net_make(&n, "cuda:0"))
			return;
		check_train(&n, 3);
		products_put(&n);
		check_train(&n, i ? 1 : 6); /* begin to record, or replay */
		stand_in_fails(fake, call[i]);
		CHECK_INT(step(&n, n.s, &loss), RICCI_EDEVICE);
		CHECK(strstr(ricci_error_message(), "(error "));
		stand_in_fails(fake, "");
		CHECK_INT(step(&n, n.s, &loss), 0); /* parameters may be between two steps */
		net_free(&n);
	}
}

/* ---- on disk: each in a process of its own, the first of which makes what the others find */

static int kept;

/* How many products it has taken; 0: something is wrong. */
static int put(void)
{
	int taken = 0;
	Net n;

	make_want();
	if (net_make(&n, "cuda:0")) {
		check_train(&n, 2);
		taken = products_put(&n);
		check_train(&n, 2);
	}
	net_free(&n);
	return check_failed ? 0 : taken;
}

static int again(void)
{
	Net n;

	make_want();
	int before = products();
	stand_in_fails(fake, "create"); /* nothing is compiled */
	if (net_make(&n, "cuda:0")) {
		CHECK_INT(called(&n), kept);
		check_train(&n, 3);
		CHECK_INT(products() - before, 3 * kept);
	}
	net_free(&n);
	return check_failed;
}

/* Its entries are as good as none. */
static int ours(void)
{
	Net n;

	make_want();
	int before = products();
	if (net_make(&n, "cuda:0")) {
		CHECK_INT(called(&n), 0);
		CHECK(compiled() > 0);
		check_train(&n, 3);
		CHECK_INT(products() - before, 0);
	}
	net_free(&n);
	return check_failed;
}

static int without(void)
{
	setenv("RICCI_CUBLASLT", "off", 1);
	return ours();
}

static int with_another(void)
{
	setenv("FAKE_CUBLASLT", "12", 1); /* its version */
	return ours();
}

/* In the folder's entries, number `which` of their products' line becomes another. */
static void entries_change(const char *folder, const char *program)
{
	char command[300];

	snprintf(command, sizeof command, "cd %s && for f in *.entry; do sed -i '%s' $f; done",
		 folder, program);
	CHECK_INT(system(command), 0);
}

static void test_kept(void)
{
	char folder[] = "/tmp/ricci-library-XXXXXX", command[100];

	CHECK(mkdtemp(folder));
	setenv("RICCI_CACHE", folder, 1);
	CHECK((kept = child(put)) > 0);
	CHECK_INT(child(again), 0);
	snprintf(command, sizeof command,
		 "grep -l '^product library 2' %s/*.entry | grep -c . >/dev/null", folder);
	CHECK_INT(system(command), 0);
	CHECK_INT(child(with_another), 0);
	snprintf(command, sizeof command, "rm -r %s/*", folder);
	CHECK_INT(system(command), 0);
	CHECK(child(put) > 0);
	CHECK_INT(child(without), 0);
	snprintf(command, sizeof command, "rm -r %s/*", folder);
	CHECK_INT(system(command), 0);
	CHECK(child(put) > 0);
	entries_change(folder, "s/^product library 2/product library 3/"); /* the checksum, too */
	CHECK_INT(child(ours), 0);
	setenv("RICCI_CACHE", "off", 1);
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_INT(system(command), 0);
}

int main(void)
{
	setenv("RICCI_CACHE", "off", 1);
	fake = cuda_stand_in();
	live = fake ? (int (*)(void))dlsym(fake, "fake_cuda_live") : NULL;
	replays = fake ? (int (*)(void))dlsym(fake, "fake_cuda_replays") : NULL;
	compiled = fake ? (int (*)(void))dlsym(fake, "fake_cuda_compiled") : NULL;
	products = fake ? (int (*)(void))dlsym(fake, "fake_cublaslt_products") : NULL;
	CHECK_REPORT(live && replays && compiled && products,
		     "the stand-in for CUDA isn't there: %s", dlerror());
	if (!live || !replays || !compiled || !products)
		return check_done();
#ifdef RICCI_WITHOUT_CUBLASLT
	CHECK_SKIP("left out by ./configure");
	return check_done();
#endif
	test_kept(); /* before the driver is opened */
	make_want();
	test_tried();
	test_taken();
	test_wrong();
	test_trials();
	test_steps();
	return check_done();
}
