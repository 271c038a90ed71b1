/* test_device_library.c - sessions on cuda:0 take calls of vendor libraries where they are faster, and keep them: tried,
 * recorded, shared, failing, kept on disk, gone. On the stand-ins for NVIDIA's libraries (tests/jit/fake_cuda.c,
 * fake_cublaslt.c, fake_cudnn.c), which are faster than its kernels. */
#include "jit/library/library.h"
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/child.h"
#include "tests/jit/cuda_stand_in.h"

enum { N = 44, MOST = 20, STEPS = 30 };

static void *fake;
static int (*live)(void), (*replays)(void), (*computed)(void), (*compiled)(void);

/* ---- a net of two calls, with a state whose next value takes another place */
typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *w, *u, *m, *l;
	ricci_session *s;
} Net;

static ricci_tensor *loss_products(const Net *n)
{
	ricci_tensor *h =
		ricci_op(n->g, "C[i,j] += X[i,k]*W[k,j]; H[i,j] = tanh(0.1*C[i,j])", n->x, n->w);
	ricci_tensor *d = ricci_op(n->g, "D[i,j] += X[k,i]*U[k,j]", n->x, n->u);

	return ricci_op(n->g, "L[] += (H[i,j] - 0.5)*(H[i,j] - 0.5) + 0.01*D[i,j]*D[i,j]", h, d);
}

static ricci_tensor *loss_convolutions(const Net *n)
{
	ricci_tensor *h = ricci_op(n->g,
				   "C[b,k,p,q] += (X[b,c,p+r-1,q+s-1] else 0)*W[k,c,r,s] "
				   "where p<11, q<11; H[b,k,p,q] = tanh(C[b,k,p,q])",
				   n->x, n->w);
	ricci_tensor *d = ricci_op(n->g, "D[b,k,p,q] += H[b,c,p+r,q+s]*U[k,c,r,s]", h, n->u);

	return ricci_op(n->g, "L[] += 0.01*D[b,k,p,q]*D[b,k,p,q]", d);
}

/* A library, and what a net of its calls is. */
typedef struct Tested {
	int number;
	const char *computed; /* the stand-in's function that counts its calls */
	const char *variable, *other, *version, *another;
	const char *wrong, *trial[3], *step[2];
	const char *kept,
		*changed; /* its lines in the cache, and sed's program that makes it another's */
	int rank;	  /* of the net's tensors */
	int64_t x[4], w[4], u[4];
	ricci_tensor *(*loss)(const Net *n);
	const char *m, *w_next;
} Tested;
static const Tested tested[] = {
	{2,
	 "fake_cublaslt_products",
	 "RICCI_CUBLASLT",
	 "RICCI_CUDNN",
	 "FAKE_CUBLASLT",
	 "12",
	 "lt_wrong",
	 {"lt_layout:2", "lt_none", "lt_run:3"},
	 {"lt_run", "lt_multiply"},
	 "^call 1 2 ",
	 "s/^call 1 2 /call 1 3 /",
	 2,
	 {N, N},
	 {N, N},
	 {N, N},
	 loss_products,
	 "V[i,j] = 0.5*M[j,i] + G[i,j]",
	 "V[i,j] = W[i,j] - 0.001*G[i,j]"},
	{3,
	 "fake_cudnn_convolutions",
	 "RICCI_CUDNN",
	 "RICCI_CUBLASLT",
	 "FAKE_CUDNN",
	 "10",
	 "dnn_wrong",
	 {"dnn_tensor:2", "dnn_none", "dnn_run:3"},
	 {"dnn_run", "dnn_execute"},
	 "^call [234] 3 ",
	 "s/^call . 3 /call 1 3 /",
	 4,
	 {4, 4, 11, 11},
	 {8, 4, 3, 3},
	 {4, 8, 3, 3},
	 loss_convolutions,
	 "V[k,c,r,s] = 0.5*M[k,c,s,r] + G[k,c,r,s]",
	 "V[k,c,r,s] = W[k,c,r,s] - 0.001*G[k,c,r,s]"},
};
static const Tested *now;

static bool net_make(Net *n, const char *device)
{
	ricci_options o = RICCI_OPTIONS(.device = device, .seed = 5, .threads = 1);
	ricci_graph *g = n->g = ricci_graph_new();
	ricci_tensor *grad;
	int rank = now->rank;

	n->x = ricci_input(g, "x", RICCI_F32, rank, now->x);
	n->w = ricci_param(g, "w", RICCI_F32, rank, now->w, ricci_uniform(-1, 1));
	n->u = ricci_param(g, "u", RICCI_F32, rank, now->u, ricci_uniform(-1, 1));
	n->m = ricci_state(g, "m", RICCI_F32, rank, now->w, ricci_constant(0));
	n->l = now->loss(n);
	ricci_grad(g, n->l, NULL, 1, &n->w, &grad);
	/* its transpose is read: beside */
	ricci_assign(g, n->m, ricci_op(g, now->m, n->m, grad));
	ricci_assign(g, n->w, ricci_op(g, now->w_next, n->w, grad));
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
static bool call_put(CacheEntry *e, const char *schedule)
{
	Candidate c = {.entry = e, .backend = backend_find("nvrtc")}, *list = &c;
	char text[60];

	snprintf(text, sizeof text, "library %d; %s", now->number, schedule);
	schedule_parse(text, &c.schedule, &c.err);
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
static int calls_put(const Net *n)
{
	CacheEntry *e[MOST];
	int put = 0;

	for (int i = session_entries(n->s, e, MOST) - 1; i >= 0; i--)
		put += call_put(e[i], "threads 128") || call_put(e[i], "share 3; threads 64");
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
	int multiplied = computed();
	Net n;

	if (!net_make(&n, "cuda:0"))
		return;
	check_train(&n, 3);
	CHECK_INT(computed() - multiplied, 0);
	CHECK_INT(ricci_settle(n.s), 0);
	CHECK(computed() - multiplied >= 3); /* on three kinds of numbers */
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
	int taken = calls_put(&n);
	check_train(&n, 4);
	int replayed = replays(), multiplied = computed();
	check_train(&n, 6);
	CHECK_INT(replays() - replayed, 6);
	CHECK_INT(computed() - multiplied, taken * 6);
	ricci_session *other = ricci_session_share(n.s, 0, 1, &n.l);
	multiplied = computed();
	CHECK(other && !step(&n, other, &seen));
	CHECK(computed() - multiplied >= 2);
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
	stand_in_fails(fake, now->wrong);
	CHECK_INT(ricci_settle(n.s), 0);
	stand_in_fails(fake, "");
	CHECK_INT(called(&n), 0);
	check_train(&n, 3);
	net_free(&n);
}

/* A call that fails ends the trial, not the training, and nothing stays. */
static void test_trials(void)
{
	for (int i = 0; i < COUNT(now->trial); i++) {
		int before = live_now();
		Net n;

		if (!net_make(&n, "cuda:0"))
			return;
		check_train(&n, 3);
		stand_in_fails(fake, now->trial[i]);
		CHECK_REPORT(!ricci_settle(n.s), "%s: %s", now->trial[i], ricci_error_message());
		stand_in_fails(fake, "");
		CHECK_INT(called(&n), 0);
		check_train(&n, 3);
		net_free(&n);
		CHECK_REPORT(live_now() == before, "%s: something stays", now->trial[i]);
	}
}

/* In a step it is an error; the step can be done again. */
static void test_steps(void)
{
	for (int i = 0; i < COUNT(now->step); i++) {
		float loss;
		Net n;

		if (!net_make(&n, "cuda:0"))
			return;
		check_train(&n, 3);
		calls_put(&n);
		check_train(&n, i ? 1 : 6); /* begin to record, or replay */
		stand_in_fails(fake, now->step[i]);
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
		taken = calls_put(&n);
		check_train(&n, 2);
	}
	net_free(&n);
	return check_failed ? 0 : taken;
}

static int again(void)
{
	Net n;

	make_want();
	int before = computed();
	stand_in_fails(fake, "create"); /* nothing is compiled */
	if (net_make(&n, "cuda:0")) {
		CHECK_INT(called(&n), kept);
		check_train(&n, 3);
		CHECK_INT(computed() - before, 3 * kept);
	}
	net_free(&n);
	return check_failed;
}

/* Its entries are as good as none. */
static int ours(void)
{
	Net n;

	make_want();
	int before = computed();
	if (net_make(&n, "cuda:0")) {
		CHECK_INT(called(&n), 0);
		CHECK(compiled() > 0);
		check_train(&n, 3);
		CHECK_INT(computed() - before, 0);
	}
	net_free(&n);
	return check_failed;
}

static int without(void)
{
	setenv(now->variable, "off", 1);
	return ours();
}

static int with_another(void)
{
	setenv(now->version, now->another, 1); /* its version */
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
	snprintf(command, sizeof command, "grep -l '%s' %s/*.entry | grep -c . >/dev/null",
		 now->kept, folder);
	CHECK_INT(system(command), 0);
	CHECK_INT(child(with_another), 0);
	snprintf(command, sizeof command, "rm -r %s/*", folder);
	CHECK_INT(system(command), 0);
	CHECK(child(put) > 0);
	CHECK_INT(child(without), 0);
	snprintf(command, sizeof command, "rm -r %s/*", folder);
	CHECK_INT(system(command), 0);
	CHECK(child(put) > 0);
	entries_change(folder, now->changed); /* the checksum, too */
	CHECK_INT(child(ours), 0);
	setenv("RICCI_CACHE", "off", 1);
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_INT(system(command), 0);
}

static int test_library(void)
{
	setenv(now->other, "off", 1);
	computed = (int (*)(void))dlsym(fake, now->computed);
	CHECK_REPORT(computed, "%s", dlerror());
	if (!computed)
		return 1;
	test_kept(); /* before the driver is opened */
	make_want();
	test_tried();
	test_taken();
	test_wrong();
	test_trials();
	test_steps();
	return check_failed > 0;
}

int main(void)
{
	setenv("RICCI_CACHE", "off", 1);
	fake = cuda_stand_in();
	live = fake ? (int (*)(void))dlsym(fake, "fake_cuda_live") : NULL;
	replays = fake ? (int (*)(void))dlsym(fake, "fake_cuda_replays") : NULL;
	compiled = fake ? (int (*)(void))dlsym(fake, "fake_cuda_compiled") : NULL;
	CHECK_REPORT(live && replays && compiled, "the stand-in for CUDA isn't there: %s",
		     dlerror());
	for (int k = 0; k < COUNT(tested) && live && replays && compiled; k++) {
		now = &tested[k];
		if (library_row(now->number)->available)
			CHECK_INT(child(test_library), 0);
		else
			CHECK_SKIP("left out by ./configure");
	}
	return check_done();
}
