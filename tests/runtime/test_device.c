/* test_device.c - sessions on devices: what they compute is what they compute on the processor.
 *
 * cuda:0 is a stand-in for NVRTC and the driver (tests/jit/fake_cuda.c), which also fails each call in
 * turn; opencl:0 is the first OpenCL device, where there is one. $RICCI_TEST_DEVICE names another one to
 * test, alone.
 */
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/child.h"
#include "tests/jit/cuda_stand_in.h"

enum { STEPS = 7, B = 4, D = 6, V = 9, ROUNDS = 5 };

/* ---- a net with most of what a step can have */
typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *token, *length, *loss, *value;
	ricci_tensor *w, *u, *e, *m, *k;
} Net;

static ricci_tensor *net_loop(Net *n, ricci_tensor **stacked)
{
	ricci_graph *g = n->g;
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 2, (int64_t[]){B, D});
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, 2, (int64_t[]){B, D});
	ricci_tensor *next = ricci_op(
		g, "A[b,d] += X[b,k]*W[k,d]; C[b,d] += H[b,k]*U[k,d]; N[b,d] = tanh(A[b,d]+C[b,d])",
		xt, n->w, h, n->u);
	ricci_slice slice = {xt, n->x};
	ricci_carry carry = {h, NULL, next};
	ricci_tensor *last = NULL;
	ricci_loop l = RICCI_LOOP(.steps = STEPS, .length = n->length, .nslice = 1, .slice = &slice,
				  .ncarry = 1, .carry = &carry, .nout = 1, .out = &next);

	ricci_scan(g, &l, &last, stacked);
	return last;
}

/* A loop of a length given at run time, a gather and its scatter, random numbers, states beside the
 * parameters, of floats and of integers. */
static Net net_new(void)
{
	Net n = {.g = ricci_graph_new()};
	ricci_graph *g = n.g;
	const int64_t square[] = {D, D};
	ricci_tensor *stacked = NULL, *grad[3], *last, *rate;

	n.x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){STEPS, B, D});
	n.token = ricci_input(g, "token", RICCI_I32, 1, (int64_t[]){B});
	n.length = ricci_input(g, "length", RICCI_I32, 0, NULL);
	n.w = ricci_param(g, "w", RICCI_F32, 2, square, ricci_normal(0.5));
	n.u = ricci_param(g, "u", RICCI_F32, 2, square, ricci_orthogonal(1));
	n.e = ricci_param(g, "e", RICCI_F32, 2, (int64_t[]){V, D}, ricci_uniform(-1, 1));
	n.m = ricci_state(g, "m", RICCI_F32, 2, square, ricci_constant(0));
	n.k = ricci_state(g, "k", RICCI_I32, 0, NULL, ricci_constant(1));
	last = net_loop(&n, &stacked);
	n.value = ricci_op(g,
			   "Y[b,d] = H[b,d] + E[T[b],d]; Z[b,d] = training ? (random(5, 6*b+d) < "
			   "0.8 ? Y[b,d]*1.25 : 0) : Y[b,d]",
			   last, n.e, n.token);
	n.loss = ricci_op(
		g,
		"A[] += (Z[b,d]-0.3)*(Z[b,d]-0.3); S[] += N[t,b,d]*N[t,b,d]; L[] = A[] + 0.01*S[]",
		n.value, stacked);
	ricci_grad(g, n.loss, NULL, 3, (ricci_tensor *[]){n.w, n.u, n.e}, grad);
	rate = ricci_op(g, "R[] = 0.1/f32(1+K[])", n.k);
	ricci_assign(g, n.m, ricci_op(g, "N[i,j] = 0.9*M[i,j] + G[i,j]", n.m, grad[0]));
	ricci_assign(g, n.w,
		     ricci_op(g, "N[i,j] = W[i,j] - R[]*(0.9*M[i,j] + G[i,j])", n.w, rate, n.m,
			      grad[0]));
	ricci_assign(g, n.u, ricci_op(g, "N[i,j] = U[i,j] - R[]*G[i,j]", n.u, rate, grad[1]));
	ricci_assign(g, n.e, ricci_op(g, "N[i,j] = E[i,j] - R[]*G[i,j]", n.e, rate, grad[2]));
	ricci_assign(g, n.k, ricci_op(g, "N[] = (K[]+1)%4", n.k));
	CHECK_GRAPH(g);
	return n;
}

static ricci_session *session(const Net *n, const char *device)
{
	ricci_options o = RICCI_OPTIONS(.seed = 11, .device = device);

	return ricci_session_new(n->g, &o, 1, 1, (ricci_tensor *[]){n->loss});
}

static int net_feed(const Net *n, ricci_session *s, int round)
{
	static const int32_t length[ROUNDS] = {STEPS, 3, 0, 5, STEPS};
	float x[STEPS * B * D];
	int32_t token[B];

	for (int i = 0; i < COUNT(x); i++)
		x[i] = sinf((float)(i + 31 * round) * 1.7f);
	for (int i = 0; i < B; i++)
		token[i] = (i * i + round) % V; /* some twice */
	return ricci_feed(s, n->x, x, sizeof x) || ricci_feed(s, n->token, token, sizeof token) ||
	       ricci_feed(s, n->length, &length[round], 4);
}

typedef struct Record { /* of a training */
	float loss[ROUNDS], w[D * D], u[D * D], e[V * D], m[D * D], value[B * D];
	int32_t k;
} Record;

/* 0 or an error's code. */
static int train(const Net *n, ricci_session *s, Record *r)
{
	int code = 0;

	for (int i = 0; i < ROUNDS && !code; i++) {
		code = net_feed(n, s, i);
		if (!code)
			code = ricci_step(s);
		if (!code)
			code = ricci_fetch(s, n->loss, &r->loss[i], 4);
	}
	if (code)
		return code;
	return ricci_fetch(s, n->w, r->w, sizeof r->w) || ricci_fetch(s, n->u, r->u, sizeof r->u) ||
	       ricci_fetch(s, n->e, r->e, sizeof r->e) || ricci_fetch(s, n->m, r->m, sizeof r->m) ||
	       ricci_fetch(s, n->k, &r->k, sizeof r->k);
}

static void check_close(const char *what, const float *got, const float *want, int n)
{
	double worst = 0;

	for (int i = 0; i < n; i++) {
		double far = fabs((double)got[i] - (double)want[i]);

		worst = isfinite(far) ? fmax(worst, far) : INFINITY;
	}
	CHECK_REPORT(worst < 1e-4, "%s is off by %g", what, worst);
}

static void check_record(const Record *got, const Record *want)
{
	check_close("loss", got->loss, want->loss, ROUNDS);
	check_close("w", got->w, want->w, D * D);
	check_close("u", got->u, want->u, D * D);
	check_close("e", got->e, want->e, V * D);
	check_close("m", got->m, want->m, D * D);
	check_close("value", got->value, want->value, B * D);
	CHECK_INT(got->k, want->k);
}

/* Trains there, then measures with a session that shares the parameters. */
static void record(const char *device, Record *r)
{
	Net n = net_new();
	ricci_session *s = session(&n, device);
	ricci_session *t = s ? ricci_session_share(s, 0, 1, &n.value) : NULL;

	memset(r, 0, sizeof *r);
	CHECK_REPORT(s && t && !train(&n, s, r), "%s: %s", device, ricci_error_message());
	if (t) {
		net_feed(&n, t, 1);
		CHECK_INT(ricci_step(t), 0);
		CHECK_INT(ricci_fetch(t, n.value, r->value, sizeof r->value), 0);
	}
	ricci_session_free(t);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

/* ---- on one device */

/* The second half of a training, from parameters that were fetched and fed. */
static void test_resume(const char *device, const Record *want)
{
	Net n = net_new();
	ricci_session *s = session(&n, device);
	Record r = {0}, middle = {0};

	CHECK(s);
	if (!s)
		return;
	for (int i = 0; i < 2; i++) {
		net_feed(&n, s, i);
		CHECK_INT(ricci_step(s), 0);
	}
	CHECK_INT(ricci_fetch(s, n.w, middle.w, sizeof r.w), 0);
	CHECK_INT(ricci_fetch(s, n.u, middle.u, sizeof r.u), 0);
	CHECK_INT(ricci_fetch(s, n.e, middle.e, sizeof r.e), 0);
	CHECK_INT(ricci_fetch(s, n.m, middle.m, sizeof r.m), 0);
	CHECK_INT(ricci_fetch(s, n.k, &middle.k, sizeof r.k), 0);
	ricci_session_free(s);
	s = session(&n, device);
	ricci_feed(s, n.w, middle.w, sizeof r.w);
	ricci_feed(s, n.u, middle.u, sizeof r.u);
	ricci_feed(s, n.e, middle.e, sizeof r.e);
	ricci_feed(s, n.m, middle.m, sizeof r.m);
	ricci_feed(s, n.k, &middle.k, sizeof r.k);
	ricci_set_step(s, 2);
	for (int i = 2; i < ROUNDS; i++) {
		net_feed(&n, s, i);
		CHECK_INT(ricci_step(s), 0);
	}
	CHECK_INT(ricci_fetch(s, n.w, r.w, sizeof r.w), 0);
	check_close("w, resumed", r.w, want->w, D * D);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

/* A wrong length, a NaN: the processor's errors. */
static void test_refusals(const char *device)
{
	char want[3][1000], got[3][1000];

	for (int run = 0; run < 2; run++) {
		Net n = net_new();
		ricci_session *s = session(&n, run ? device : "cpu");
		const int32_t far = STEPS + 1;
		float w[D * D] = {0}, e[V * D];
		char(*text)[1000] = run ? got : want;

		CHECK(s);
		net_feed(&n, s, 0);
		ricci_feed(s, n.length, &far, sizeof far);
		CHECK_INT(ricci_step(s), RICCI_EVALUE);
		snprintf(text[0], sizeof *text, "%s", ricci_error_message());
		net_feed(&n, s, 0);
		w[7] = NAN;
		CHECK_INT(ricci_feed(s, n.w, w, sizeof w), 0);
		CHECK_INT(ricci_check_finite(s, 1), 0);
		CHECK_INT(ricci_step(s), RICCI_EVALUE);
		snprintf(text[1], sizeof *text, "%s", ricci_error_message());
		w[7] = 0;
		for (int i = 0; i < V * D; i++)
			e[i] = 1e30f; /* squared in the loss */
		CHECK_INT(ricci_feed(s, n.w, w, sizeof w), 0);
		CHECK_INT(ricci_feed(s, n.e, e, sizeof e), 0);
		CHECK_INT(ricci_step(s), RICCI_EVALUE);
		snprintf(text[2], sizeof *text, "%s", ricci_error_message());
		ricci_session_free(s);
		ricci_graph_free(n.g);
	}
	for (int i = 0; i < COUNT(got); i++)
		CHECK_STR(got[i], want[i]);
}

static void test_profile(const char *device, const char *backend)
{
	Net n = net_new();
	ricci_session *s = session(&n, device);
	ricci_profile *f;
	double share = 0;

	CHECK(s && !ricci_time_kernels(s, 1));
	for (int i = 0; i < 3; i++) {
		net_feed(&n, s, 0);
		CHECK_INT(ricci_step(s), 0);
	}
	f = ricci_profile_new(s);
	CHECK(ricci_profile_count(f) > 3);
	for (int i = 0; i < ricci_profile_count(f); i++) {
		const ricci_kernel_time *k = ricci_profile_at(f, i);

		share += k->loop < 0 ? k->share : 0;
		CHECK(k->seconds > 0);
		CHECK_STR(k->backend, k->is_loop ? "" : backend);
	}
	CHECK_REPORT(share > 0.01 && share < 3, "%s: the shares add up to %g", device, share);
	ricci_profile_free(f);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

static void test_device(const char *device, const char *backend, const Record *want)
{
	Record got;

	record(device, &got);
	check_record(&got, want);
	test_resume(device, want);
	test_refusals(device);
	test_profile(device, backend);
}

/* ---- errors of names */
static void check_name(const Net *n, ricci_options o, int code, const char *text)
{
	ricci_session *s = ricci_session_new(n->g, &o, 1, 1, (ricci_tensor *[]){n->loss});

	(void)code;
	CHECK(!s);
	CHECK_STR(ricci_error_message(), text);
	ricci_session_free(s);
}

static void test_names(void)
{
	static const char *const wrong[] = {"gpu",     "cuda:", "cuda:-1",
					    "cuda:0x", "cpu:0", "opencl 0"};
	Net n = net_new();
	char text[200];

	for (int i = 0; i < COUNT(wrong); i++) {
		message_print(text, sizeof text,
			      "there is no device '%s': it is one of cpu, cuda:0, opencl:0 ..",
			      wrong[i]);
		check_name(&n, RICCI_OPTIONS(.device = wrong[i]), RICCI_EINVAL, text);
	}
	check_name(&n, RICCI_OPTIONS(.device = "cuda:3"), RICCI_EINVAL,
		   "there is no device cuda:3: the last is cuda:1");
	check_name(&n, RICCI_OPTIONS(.device = "cuda", .backend = RICCI_BACKEND_CC), RICCI_EINVAL,
		   "cuda:0 has kernels of backend nvrtc: leave options.backend at "
		   "RICCI_BACKEND_AUTO");
	ricci_graph_free(n.g);
}

/* ---- a driver that fails */
static int live_now(int (*live)(void))
{
	Device *d = device_open(&device_cuda, 0, NULL);

	if (d)
		device_trim(d);
	return live();
}

/* A session and a training while `call` fails from the at-th time on: an error, and nothing stays.
 * True: it did not come to that call so often. */
static bool fail_once(const char *call, int at, int (*live)(void))
{
	Net n = net_new();
	Record got;
	int before = live_now(live), code;
	char fails[64];

	snprintf(fails, sizeof fails, "%s:%d", call, at);
	setenv("FAKE_CUDA_FAIL", fails, 1);
	ricci_session *s = session(&n, "cuda:0");
	code = s ? train(&n, s, &got) : -1;
	unsetenv("FAKE_CUDA_FAIL");
	CHECK_REPORT(!code || *ricci_error_message(), "%s: no error", fails);
	ricci_session_free(s);
	/* a driver that takes no call takes nothing back */
	CHECK_REPORT(live_now(live) == before || !strcmp(call, "current"), "%s: something stays",
		     fails);
	ricci_graph_free(n.g);
	return !code;
}

static void test_failures(int (*live)(void), const Record *want)
{
	static const char *const call[] = {"load",	 "function",  "alloc",	 "launch",
					   "finish",	 "within",    "current", "to_device",
					   "to_host",	 "fill",      "event",	 "event_record",
					   "event_wait", "event_time"};
	Record got;

	for (int i = 0; i < COUNT(call); i++) {
		CHECK(!fail_once(call[i], 1, live));
		for (int at = 2; at < 2000 && !fail_once(call[i], at, live); at *= 2)
			;
	}
	record("cuda:0", &got);
	check_record(&got, want);
}

/* The compiler's calls, in a process that finds no kept kernels and has not opened the driver. */
static int (*live_count)(void);

static int compiler_failures(void)
{
	setenv("RICCI_CACHE", "off", 1);
	CHECK(!fail_once("create", 1, live_count));
	CHECK(!fail_once("compile", 2, live_count));
	CHECK(!fail_once("cubin", 4, live_count));
	/* a kernel that writes beside its tensors, or does nothing, is found before it is used */
	CHECK(!fail_once("stray", 1, live_count));
	CHECK_REPORT(
		strstr(ricci_error_message(), "a kernel writes outside its tensors, near buffer 0"),
		"%s", ricci_error_message());
	CHECK(!fail_once("run", 1, live_count));
	CHECK_REPORT(strstr(ricci_error_message(), "a kernel never writes element 0 of result 0"),
		     "%s", ricci_error_message());
	return check_failed;
}

/* What the errors say. */
static void test_messages(void)
{
	static const struct {
		const char *call, *text;
	} fail[] = {
		{"launch", "CUDA: starting a kernel failed: the fake was told to (error 1)"},
		{"finish", "CUDA: a kernel or a copy failed: the fake was told to (error 1)"},
		{"alloc", "cuda:0 has no 672 bytes left for 'x' (1000000000 of 2000000000 are "
			  "free); this process holds "
			  "there "},
	};
	Net n = net_new();
	ricci_session *s = session(&n, "cuda:0");

	CHECK_REPORT(s, "%s", ricci_error_message());
	for (int i = COUNT(fail) - 1; i >= 0; i--) {
		setenv("FAKE_CUDA_FAIL", fail[i].call, 1);
		int code = net_feed(&n, s, 0) ? -1 : ricci_step(s);
		unsetenv("FAKE_CUDA_FAIL");
		CHECK(code < 0);
		CHECK_REPORT(!strncmp(ricci_error_message(), fail[i].text, strlen(fail[i].text)),
			     "%s: %s", fail[i].call, ricci_error_message());
		CHECK_INT(net_feed(&n, s, 0), 0);
	}
	CHECK_INT((int64_t)ricci_step_count(s), 0);
	CHECK_INT(ricci_step(s), 0);
	ricci_session_free(s);
	ricci_graph_free(n.g);
}

/* A second start compiles nothing: the compiler would fail. */
static void test_kept(const Record *want)
{
	Record got;

	record("cuda:0", &got);
	setenv("FAKE_CUDA_FAIL", "create", 1);
	record("cuda:0", &got);
	unsetenv("FAKE_CUDA_FAIL");
	check_record(&got, want);
}

/* ---- forks */
static Net fork_net;
static ricci_session *fork_session;

static int forked(void)
{
	const char *text =
		"cuda:0 was opened before this process was forked: no driver survives that";
	Net n = net_new();
	ricci_session *s;

	ricci_session_free(fork_session);
	if (session(&n, "cuda:0") || strcmp(ricci_error_message(), text))
		return 1;
#ifndef __SANITIZE_THREAD__ /* it allows a child no threads */
	if (!(s = session(&n, "cpu")))
		return 2;
	ricci_session_free(s);
#else
	(void)s;
#endif
	ricci_graph_free(n.g);
	return 0;
}

static void test_fork(void)
{
	fork_net = net_new();
	fork_session = session(&fork_net, "cuda:0");
	CHECK(fork_session);
	CHECK_INT(child(forked), 0);
	net_feed(&fork_net, fork_session, 0);
	CHECK_INT(ricci_step(fork_session), 0);
	ricci_session_free(fork_session);
	ricci_graph_free(fork_net.g);
}

/* One that is there. */
static int main_real(const char *name)
{
	Error err = {0};
	Device *d = device_named(name, &err);
	Record want;

	record("cpu", &want);
	CHECK_REPORT(d, "%s", err.text);
	if (d)
		test_device(name, d->kind->backend, &want);
	return check_done();
}

int main(void)
{
	const char *real = getenv("RICCI_TEST_DEVICE");

	setenv("RICCI_DEVICE", "20e9,50e9,2e-6", 1); /* both devices' nets are fused alike */
	if (real && *real)
		return main_real(real);
	void *fake = cuda_stand_in();
	int (*live)(void) = fake ? (int (*)(void))dlsym(fake, "fake_cuda_live") : NULL;
	char why[256];
	Record want;

	live_count = live;
	if (live)
		CHECK_INT(child(compiler_failures), 0);
	record("cpu", &want);
	CHECK_REPORT(live, "the stand-in for CUDA isn't there: %s", dlerror());
	if (live) {
		test_device("cuda:0", "nvrtc", &want);
		test_device("cuda:1", "nvrtc", &want);
		test_names();
		test_kept(&want);
		test_messages();
		test_failures(live, &want);
		test_fork();
	}
	if (device_opencl.count(why, sizeof why) > 0)
		test_device("opencl:0", "opencl", &want);
	else
		CHECK_SKIP(why);
	return check_done();
}
