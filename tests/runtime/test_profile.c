/* test_profile.c - profiles of sessions: every equation of every kernel, in and out of loops, medians
 * without trials, the parameters that time is counted to, memory that ends. */
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/memory_check.h"
#include <stdlib.h>
#include <time.h>

enum { T = 7, B = 8, H = 16 };

static void test_times(void)
{
	Times t = {0};
	double sum = 0;

	CHECK_NEAR(times_median(&t), 0, 0);
	for (int i = 1; i <= 5; i++)
		times_add(&t, i * i);
	CHECK_NEAR(times_median(&t), 9, 0);
	CHECK_NEAR(t.least, 1, 0);
	times_add(&t, 0.5);
	CHECK_NEAR(times_median(&t), 6.5, 0);
	CHECK_NEAR(t.least, 0.5, 0);
	/* Of many, those that are kept are spread over all. */
	t = (Times){0};
	for (int i = 0; i < 100000; i++)
		times_add(&t, i);
	CHECK(t.n > TIMES_KEPT / 2 && t.n <= TIMES_KEPT);
	CHECK_INT(t.count, 100000);
	for (int i = 0; i < t.n; i++)
		sum += (double)t.seconds[i] / t.n;
	CHECK_NEAR(sum, 50000, 4000);
	CHECK_NEAR(times_median(&t), 50000, 4000);
	/* And over the steps of a loop, the first of which takes longest. */
	t = (Times){0};
	for (int i = 0; i < 16 * 200; i++)
		times_add(&t, i % 16 ? 1 : 100);
	CHECK_NEAR(times_median(&t), 1, 0);
}

/* A recurrent layer and a linear one, trained by gradient descent. */
typedef struct Net {
	ricci_graph *g;
	ricci_session *s;
} Net;

static Net net_new(int train)
{
	Net n = {ricci_graph_new(), NULL};
	ricci_graph *g = n.g;
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){T, B, H});
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 2, (int64_t[]){B, H});
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, 2, (int64_t[]){B, H}), *last, *d[2];
	ricci_tensor *h0 = ricci_state(g, "h0", RICCI_F32, 2, (int64_t[]){B, H}, ricci_constant(0));
	ricci_tensor *w =
		ricci_param(g, "rnn.w", RICCI_F32, 2, (int64_t[]){H, H}, ricci_normal(0.1));
	ricci_tensor *v =
		ricci_param(g, "out.w", RICCI_F32, 2, (int64_t[]){H, H}, ricci_normal(0.1));
	ricci_tensor *next =
		ricci_op(g, "p[b,j] += h[b,k]*w[j,k]; y[b,j] = tanh(p[b,j] + x[b,j])", h, w, xt);
	ricci_loop loop = RICCI_LOOP(.steps = T, .nslice = 1, .slice = &(ricci_slice){xt, x},
				     .ncarry = 1, .carry = &(ricci_carry){h, h0, next});
	ricci_scan(g, &loop, &last, NULL);
	ricci_tensor *y = ricci_op(g, "Y[b,j] += H[b,k]*V[k,j]", last, v);
	ricci_tensor *l = ricci_op(g, "L[] += (Y[b,j] - 1)*(Y[b,j] - 1)", y);
	ricci_grad(g, l, NULL, 2, (ricci_tensor *[]){w, v}, d);
	ricci_assign(g, w, ricci_op(g, "N[i,j] = W[i,j] - 0.01*D[i,j]", w, d[0]));
	ricci_assign(g, v, ricci_op(g, "N[i,j] = W[i,j] - 0.01*D[i,j]", v, d[1]));
	float *data = calloc((size_t)T * B * H, sizeof *data);
	for (int i = 0; i < T * B * H; i++)
		data[i] = (float)(i * 37 % 101) / 50 - 1;
	if (!ricci_graph_error(g))
		n.s = ricci_session_new(g,
					&RICCI_OPTIONS(.threads = 1, .static_mode = 1,
						       .backend = RICCI_BACKEND_TCC),
					train, 1, &l);
	if (n.s)
		ricci_feed(n.s, x, data, ricci_bytes(x));
	free(data);
	return n;
}

static void net_free(Net n)
{
	ricci_session_free(n.s);
	ricci_graph_free(n.g);
}

static const ricci_kernel_time *row_with(const ricci_profile *f, const char *text)
{
	for (int i = 0; i < ricci_profile_count(f); i++)
		if (strstr(ricci_profile_at(f, i)->equations, text))
			return ricci_profile_at(f, i);
	CHECK_REPORT(false, "no row has %s", text);
	return NULL;
}

static bool row_names(const ricci_kernel_time *r, const char *name)
{
	for (int i = 0; i < r->ntensor; i++)
		if (!strcmp(r->tensor[i], name))
			return true;
	return false;
}

/* Gradients and updates are told apart and both shown; what a loop's iterations run is in its rows. */
static void check_rows(const ricci_profile *f)
{
	const ricci_kernel_time *r;
	double outside = 0;
	int loops = 0;

	for (int i = 0; i < ricci_profile_count(f); i++) {
		r = ricci_profile_at(f, i);
		loops += r->is_loop;
		outside += r->loop < 0 ? r->share : 0;
		CHECK(r->seconds > 0 && r->share > 0);
		CHECK(r->is_loop || (!strcmp(r->backend, "tcc") && r->bytes > 0));
		CHECK(i == 0 || r[0].share <= ricci_profile_at(f, i - 1)->share);
		CHECK_NEAR(r->launches, r->loop < 0 ? 1 : T, 0);
		CHECK(r->loop < 0 || ricci_profile_at(f, r->loop)->is_loop);
	}
	CHECK_INT(loops, 2);
	CHECK(outside > 0.2 && outside < 1.5);
	if ((r = row_with(f, "h0(t)[i,k]*rnn.w[j,k]"))) {
		CHECK(r->loop >= 0);
		CHECK(strstr(r->equations, "tanh("));
		CHECK(row_names(r, "x") && row_names(r, "h0") && row_names(r, "rnn.w"));
		CHECK_INT(r->ntensor, 3);
		CHECK_STR(r->parameter, "rnn.w");
		CHECK(r->flops >= 2.0 * B * H * H);
	}
	if ((r = row_with(f, "rnn.w'[i,j] = rnn.w[i,j] - 0.01*"))) {
		CHECK(strstr(r->equations, " += "));
		CHECK_STR(r->parameter, "rnn.w");
		CHECK_INT(r->loop, -1);
	}
	if ((r = row_with(f, "out.w'[i,j] = out.w[i,j] - 0.01*"))) {
		CHECK(strstr(r->equations, " += "));
		CHECK(row_names(r, "out.w"));
		CHECK_STR(r->parameter, "out.w");
	}
	/* The loss reads no parameter. */
	if ((r = row_with(f, "[] += "))) {
		CHECK_INT(r->ntensor, 0);
		CHECK_STR(r->parameter, "out.w");
	}
}

static void test_session(void)
{
	Net n = net_new(1);
	ricci_profile *f;
	char *text;

	CHECK_REPORT(n.s, "%s", ricci_error_message());
	if (!n.s)
		return;
	CHECK(!ricci_profile_new(n.s));
	CHECK_STR(ricci_error_message(),
		  "no step was timed: ricci_time_kernels(s, 1) comes first, then steps");
	CHECK_INT(ricci_time_kernels(NULL, 1), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_time_kernels: the session is NULL");
	CHECK(!ricci_profile_new(NULL));
	CHECK_INT(ricci_step(n.s), 0);
	CHECK(!ricci_profile_new(n.s));
	CHECK_INT(ricci_time_kernels(n.s, 1), 0);
	for (int i = 0; i < 40; i++)
		CHECK_INT(ricci_step(n.s), 0);
	f = ricci_profile_new(n.s);
	CHECK_REPORT(f, "%s", ricci_error_message());
	CHECK_INT(ricci_time_kernels(n.s, 0), 0);
	CHECK_INT(ricci_step(n.s), 0);
	CHECK(!ricci_profile_new(n.s));
	net_free(n);
	CHECK(ricci_profile_step(f) > 0);
	check_rows(f);
	CHECK(!ricci_profile_at(f, -1) && !ricci_profile_at(f, ricci_profile_count(f)));
	text = ricci_profile_text(f);
	CHECK(text && strstr(text, "a step takes ") && strstr(text, "(median of 40)"));
	CHECK(text && strstr(text, "a loop of 7 steps at most"));
	CHECK(text && strstr(text, "\n     out.w'[i,j] = out.w[i,j] - 0.01*"));
	CHECK(text && !strstr(text, " \n"));
	ricci_free_text(text);
	ricci_profile_free(f);
	ricci_profile_free(NULL);
	CHECK_INT(ricci_profile_count(NULL), 0);
	CHECK(!ricci_profile_text(NULL));
}

static Net memory_net;

static int profile_once(void)
{
	ricci_profile *f = ricci_profile_new(memory_net.s);
	char *text = ricci_profile_text(f);
	int code = text ? 0 : RICCI_ENOMEM;

	ricci_free_text(text);
	ricci_profile_free(f);
	return code;
}

static void test_memory(void)
{
	memory_net = net_new(0);
	if (memory_net.s) {
		ricci_time_kernels(memory_net.s, 1);
		ricci_step(memory_net.s);
		check_memory(profile_once);
	}
	net_free(memory_net);
}

/* ---- trials ---- */
static void quick(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++)
		((float *)buf[1])[i] = 3 * ((float *)buf[0])[i];
}

static void slow(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	quick(buf, env, begin, end);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* The launches of a kernel on trial are in no median; when it wins, those of the old one go. */
static void test_trials(Pool *pool)
{
	enum { N = 64 };
	Error err = {0};
	Task *t = task_parse("ricci-task 1\ninput f32 64\nkeep m0[i] = a0[i]*3 where i<64\n", &err);
	CacheEntry *l = t ? entry_get(t, (Request){.threads = 1}, &err) : NULL;

	CHECK_REPORT(l, "%s", err.text);
	if (!l)
		return;
	for (int wins = 0; wins < 2; wins++) {
		static Kernel kernel[2][2]; /* the line keeps them */
		Kernel *best = &kernel[wins][0], *trial = &kernel[wins][1];
		float a[N] = {1}, b[N];
		Storage st[2] = {{.data = a}, {.data = b}};
		Cell cell[2] = {{.kind = CELL_STATE, .storage = &st[0]},
				{.kind = CELL_STATE, .storage = &st[1]}};
		void *buf[2];
		int of[2] = {0, 1};
		Run r = {.entry = l, .ninput = 1, .nbuf = 2, .cell = of, .buf = buf};
		Program p = {.nrun = 1,
			     .run = &r,
			     .ncell = 2,
			     .cell = cell,
			     .timing = true,
			     .device = device_host()};

		*best = *trial =
			(Kernel){.shape.parts = N, .refs = 1000, .backend = backend_find("tcc")};
		best->run = wins ? slow : quick;
		trial->run = wins ? quick : slow;
		entry_put(l, kernel_ref(best), NULL, 0, true);
		entry_try(l, kernel_ref(trial), &(Origin){0});
		for (int i = 0; i < 20; i++)
			CHECK_INT(program_run(&p, pool, (RandomState){0, 0}, NULL, &err), 0);
		CHECK_INT(r.launches, 20);
		CHECK_INT(p.steps, 20);
		CHECK(l->trial == NULL);
		CHECK(r.timed == (wins ? trial : best));
		CHECK(r.times.count > 0 && r.times.count < 20);
		for (int i = 0; i < r.times.n; i++)
			CHECK((double)r.times.seconds[i] < 0.02);
		if (r.kernel)
			kernel_unref(r.kernel);
		if (r.timed)
			kernel_unref(r.timed);
	}
	entry_unref(l);
}

int main(void)
{
	Error err = {0};
	Pool *pool = pool_new(1, &err);

	test_times();
	test_session();
	test_memory();
	test_trials(pool);
	pool_free(pool);
	return check_done();
}
