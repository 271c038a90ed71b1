/* test_scaling.c - loss scaling: gradients are those without it, and don't vanish in f16; one that
 * overflows leaves out exactly one update, whatever the rule, and halves the scale; growth, bounds,
 * accumulation, checkpoints, updates of one's own, a device's recorded steps. */
#include "tests/check.h"
#include "tests/jit/cuda_stand_in.h"
#include "tests/memory_check.h"
#include "tests/nn/folder.h"

#include <math.h>
#include <ricci_nn.h>

#define SHAPE(...)                                                                                 \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define LENGTH(a) ((int)(sizeof(a) / sizeof *(a)))

enum { B = 32, K = 24, H = 16, WHOLE = H * K + 2 * H };

/* Two layers, long sums in each: size sum (tanh(X W' + b) V')^2. */
typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *w, *b, *v, *loss;
	ricci_session *s;
} Net;

static Net net_new(double size)
{
	Net n = {.g = ricci_graph_new()};
	char text[300];
	snprintf(text, sizeof text,
		 "A[i,j] += X[i,k] * W[j,k]; Y[i,j] = tanh(A[i,j] + B[j]);"
		 "Z[i,j] += Y[i,k] * V[j,k]; L[] += %g * Z[i,j] * Z[i,j]",
		 size);
	n.x = ricci_input(n.g, "x", RICCI_F32, SHAPE(B, K));
	n.w = ricci_param(n.g, "w", RICCI_F32, SHAPE(H, K), ricci_normal(0.25));
	n.b = ricci_param(n.g, "b", RICCI_F32, SHAPE(H), ricci_normal(0.25));
	n.v = ricci_param(n.g, "v", RICCI_F32, SHAPE(H, H), ricci_normal(0.25));
	n.loss = ricci_op(n.g, text, n.x, n.w, n.b, n.v);
	return n;
}

static int session_open(Net *n, const char *device, ricci_tensor *output)
{
	ricci_options o = RICCI_OPTIONS(.threads = 1, .static_mode = 1, .seed = 5, .device = device,
					.backend = device ? RICCI_BACKEND_AUTO : RICCI_BACKEND_TCC);
	n->s = ricci_session_new(n->g, &o, 1, 1, &output);
	CHECK_REPORT(n->s != NULL, "%s", ricci_error_message());
	return n->s != NULL;
}

static Net net_optimised(ricci_optimiser o, const char *device)
{
	Net n = net_new(0.5);
	ricci_tensor *rate = ricci_learning_rate(n.g, 0.03125);
	CHECK_REPORT(!ricci_optimise(n.loss, rate, &o), "%s", ricci_error_message());
	session_open(&n, device, n.loss);
	return n;
}

static void net_free(Net *n)
{
	ricci_session_free(n->s);
	ricci_graph_free(n->g);
}

/* One step on batch k; its first element is `first`, where that is not 0. */
static void step(Net *n, int k, float first)
{
	float x[B * K];
	for (int i = 0; i < B * K; i++)
		x[i] = sinf((float)(i + 37 * k) * 1.3f);
	x[0] = first != 0 ? first : x[0];
	CHECK_INT(ricci_feed(n->s, n->x, x, sizeof x), 0);
	CHECK_REPORT(!ricci_step(n->s), "%s", ricci_error_message());
}

/* One whose gradients are no numbers, whatever the scale. */
static void overflow(Net *n, int k)
{
	step(n, k, k % 2 ? INFINITY : NAN);
}

static float number(Net *n, const char *name)
{
	float x = 0;
	int32_t k = 0;
	ricci_tensor *t = ricci_param_find(n->g, name);
	CHECK_REPORT(t != NULL, "%s is missing", name);
	if (!t)
		return NAN;
	CHECK_INT(ricci_fetch(n->s, t, ricci_dtype(t) == RICCI_I32 ? (void *)&k : &x, 4), 0);
	return ricci_dtype(t) == RICCI_I32 ? (float)k : x;
}

/* ---- all states of a graph but the scale's */

typedef struct Values {
	int n;
	char name[32][32];
	float x[32][H * K];
} Values;

static void values_take(Net *n, Values *v)
{
	ricci_tensor *p;
	memset(v, 0, sizeof *v);
	for (int i = 0; (p = ricci_param_at(n->g, i, NULL)); i++) {
		const char *name = ricci_name(p);
		if (!strncmp(name, "loss_scale", 10) || strstr(name, ".overflow"))
			continue;
		snprintf(v->name[v->n], sizeof *v->name, "%s", name);
		CHECK_INT(ricci_fetch(n->s, p, v->x[v->n++], ricci_bytes(p)), 0);
	}
}

static void values_same(const Values *a, const Values *b, const char *what)
{
	CHECK_INT(a->n, b->n);
	for (int i = 0; i < a->n; i++)
		CHECK_REPORT(!memcmp(a->x[i], b->x[i], sizeof *a->x), "%s: %s differs", what,
			     a->name[i]);
}

/* How many of them are other bits. */
static int values_changed(const Values *a, const Values *b)
{
	int n = 0;
	for (int i = 0; i < a->n; i++)
		n += memcmp(a->x[i], b->x[i], sizeof *a->x) != 0;
	return n;
}

/* ---- gradients */

enum { PLAIN, SCALED };

/* The gradients by w, b, v of one batch. */
static void gradients(ricci_type precision, int how, double size, float *out)
{
	Net n = net_new(size);
	ricci_tensor *wrt[] = {n.w, n.b, n.v}, *grad[3], *finite = NULL, *all;
	CHECK_INT(ricci_precision(n.g, precision), 0);
	if (how == SCALED)
		CHECK_INT(ricci_scaled_grad(n.loss, NULL, 3, wrt, grad, &finite), 0);
	else
		CHECK_INT(ricci_grad(n.g, n.loss, NULL, 3, wrt, grad), 0);
	all = ricci_op(n.g,
		       "Y[i] = i < 384 ? W[i/24,i%24] : i < 400 ? B[i-384] : V[0,i-400] where "
		       "i<416",
		       grad[0], grad[1], grad[2]);
	ricci_assign(n.g, n.b, ricci_op(n.g, "Y[j] = B[j] - G[j]", n.b, grad[1]));
	CHECK_GRAPH(n.g);
	if (session_open(&n, NULL, all)) {
		step(&n, 0, 0);
		CHECK_INT(ricci_fetch(n.s, all, out, sizeof(float) * WHOLE), 0);
	}
	net_free(&n);
}

/* The greatest difference relative to the greatest element. */
static double difference(const float *a, const float *b)
{
	double most = 0, size = 0;
	for (int i = 0; i < WHOLE; i++) {
		most = fmax(most, fabs((double)a[i] - b[i]));
		size = fmax(size, fabs((double)b[i]));
	}
	return most / size;
}

static void test_gradients(void)
{
	static float plain[WHOLE], scaled[WHOLE], exact[WHOLE];
	static const ricci_type type[] = {RICCI_F32, RICCI_BF16, RICCI_F16};
	/* in range of all types: the same, up to the order of sums and what that rounds otherwise */
	for (int k = 0; k < LENGTH(type); k++) {
		static const double tol[] = {1e-6, 4e-3, 5e-4};
		gradients(type[k], PLAIN, 0x1p-8, plain);
		gradients(type[k], SCALED, 0x1p-8, scaled);
		CHECK_REPORT(difference(scaled, plain) < tol[k], "type %d is off by %g", k,
			     difference(scaled, plain));
	}
	/* about 2^-27: all of them vanish in f16, none when scaled */
	gradients(RICCI_F32, PLAIN, 0x1p-28, exact);
	gradients(RICCI_F16, PLAIN, 0x1p-28, plain);
	gradients(RICCI_F16, SCALED, 0x1p-28, scaled);
	CHECK_REPORT(difference(plain, exact) > 0.5, "vanished: %g", difference(plain, exact));
	CHECK_REPORT(difference(scaled, exact) < 2e-3, "scaled: %g", difference(scaled, exact));
}

/* ---- updates */

/* An update that is left out leaves all as it was; what follows is as if it had not been. */
static void skipped(ricci_optimiser o, const char *device)
{
	static Values before, after, want;
	o.scaling = &RICCI_SCALING(.initial = 1024, .period = 100);
	Net a = net_optimised(o, device), b = net_optimised(o, device);
	char what[80];
	snprintf(what, sizeof what, "rule %d", (int)o.rule);
	for (int k = 0; k < 3; k++) {
		step(&a, k, 0);
		step(&b, k, 0);
	}
	values_take(&a, &before);
	CHECK_INT(number(&a, "loss_scale.steps"), 3);
	overflow(&a, (int)o.rule);
	values_take(&a, &after);
	values_same(&after, &before, what);
	CHECK_NEAR(number(&a, "loss_scale"), 512, 0);
	CHECK_INT(number(&a, "loss_scale.steps"), 0);
	for (int k = 3; k < 8; k++) {
		step(&a, k, 0);
		step(&b, k, 0);
	}
	CHECK_NEAR(number(&a, "loss_scale"), 512, 0);
	CHECK_NEAR(number(&b, "loss_scale"), 1024, 0);
	values_take(&a, &after);
	values_take(&b, &want);
	values_same(&after, &want, what); /* a power of two changes no bit */
	CHECK(values_changed(&after, &before) > 2);
	net_free(&a);
	net_free(&b);
}

static void test_skipped(void)
{
	for (int rule = RICCI_SGD; rule <= RICCI_AMSGRADW; rule++)
		skipped(RICCI_OPTIMISER(.rule = (ricci_rule)rule, .average = 0.9), NULL);
	skipped(RICCI_OPTIMISER(.rule = RICCI_ADAMW, .clip_norm = 0.5, .clip_value = 0.25), NULL);
}

/* Scaled gradients that f16 can't hold: steps are left out until the scale is small enough. */
static void test_overflow_of_scale(void)
{
	Net n = net_new(4);
	static Values before, after;
	int left_out = 0;
	CHECK_INT(ricci_precision(n.g, RICCI_F16), 0);
	CHECK_INT(ricci_optimise(n.loss, ricci_learning_rate(n.g, 0x1p-12),
				 &RICCI_OPTIMISER(.scaling = &RICCI_SCALING())),
		  0);
	session_open(&n, NULL, n.loss);
	for (int k = 0; k < 12; k++) {
		float scale = number(&n, "loss_scale");
		values_take(&n, &before);
		step(&n, 0, 0);
		values_take(&n, &after);
		bool less = number(&n, "loss_scale") < scale;
		CHECK_INT(values_changed(&after, &before), less ? 0 : 3);
		CHECK_REPORT(!less || left_out == k, "step %d is left out, not the one before", k);
		left_out += less;
	}
	CHECK_REPORT(left_out > 1 && left_out < 10, "%d steps are left out", left_out);
	net_free(&n);
}

static void test_growth(void)
{
	/* scale after each of 16 steps, 4 and 5 of which overflow */
	static const float want[] = {4, 4, 32, 32, 4, 1, 1, 1, 8, 8, 8, 32, 32, 32, 32, 32};
	Net n = net_optimised(
		RICCI_OPTIMISER(.scaling = &RICCI_SCALING(.initial = 4, .factor = 8, .greatest = 32,
							  .period = 3)),
		NULL);
	for (int k = 0; k < LENGTH(want); k++) {
		if (k == 4 || k == 5)
			overflow(&n, k);
		else
			step(&n, k, 0);
		CHECK_NEAR(number(&n, "loss_scale"), want[k], 0);
	}
	net_free(&n);
	/* one that doesn't change */
	n = net_optimised(
		RICCI_OPTIMISER(.scaling = &RICCI_SCALING(.least = 128, .greatest = 128,
							  .period = 1, .name = "constant")),
		NULL);
	for (int k = 0; k < 4; k++) {
		if (k % 2)
			overflow(&n, k);
		else
			step(&n, k, 0);
		CHECK_NEAR(number(&n, "constant"), 128, 0);
	}
	net_free(&n);
}

/* ---- accumulation */

/* Three batches an update; a batch of the second three overflows. */
static void accumulated(int lost)
{
	static Values before, after, want;
	ricci_optimiser o = RICCI_OPTIMISER(.rule = RICCI_ADAM, .accumulate = 3, .clip_norm = 1);
	Net plain = net_optimised(o, NULL);
	o.scaling = &RICCI_SCALING();
	Net n = net_optimised(o, NULL);
	for (int k = 0; k < 3; k++) {
		step(&plain, k, 0);
		step(&n, k, 0);
	}
	values_take(&n, &before);
	for (int k = 3; k < 6; k++) {
		if (k == 3 + lost)
			overflow(&n, k);
		else
			step(&n, k, 0);
		CHECK_INT(number(&n, "adam.overflow"), k < 5 && k >= 3 + lost);
		CHECK_NEAR(number(&n, "loss_scale"), k < 3 + lost ? 65536 : 32768, 0);
	}
	values_take(&n, &after);
	values_same(&after, &before, "accumulated");
	for (int k = 6; k < 9; k++) {
		step(&plain, k, 0);
		step(&n, k, 0);
	}
	values_take(&n, &after);
	values_take(&plain, &want);
	CHECK_INT(after.n, want.n);
	for (int i = 0; i < after.n; i++)
		for (int j = 0; j < H * K; j++)
			CHECK_REPORT(fabsf(after.x[i][j] - want.x[i][j]) < 1e-5f,
				     "accumulated: %s is %g, not %g", after.name[i],
				     (double)after.x[i][j], (double)want.x[i][j]);
	CHECK(values_changed(&after, &before) > 3);
	net_free(&plain);
	net_free(&n);
}

/* ---- looking for what is not finite */

/* A scaled gradient that overflows is no error where updates are left out by it; what reaches the loss
 * or a parameter is, and the message names what made it. */
static void test_check_finite(void)
{
	static Values before, after;
	Net n = net_new(4);
	float w[H * H];
	CHECK_INT(ricci_precision(n.g, RICCI_F16), 0);
	CHECK_INT(ricci_optimise(n.loss, ricci_learning_rate(n.g, 0x1p-12),
				 &RICCI_OPTIMISER(.scaling = &RICCI_SCALING())),
		  0);
	session_open(&n, NULL, n.loss);
	CHECK_INT(ricci_check_finite(n.s, 1), 0);
	step(&n, 0, 0);
	CHECK_NEAR(number(&n, "loss_scale"), 32768, 0);
	values_take(&n, &before);
	for (int i = 0; i < H * H; i++)
		w[i] = 1e38f; /* too great for f16 */
	CHECK_INT(ricci_feed(n.s, n.v, w, sizeof w), 0);
	CHECK_INT(ricci_step(n.s), RICCI_EVALUE);
	CHECK_REPORT(strstr(ricci_error_message(), "step 1: ") &&
			     strstr(ricci_error_message(), "though all that it is computed from is "
							   "finite"),
		     "%s", ricci_error_message());
	CHECK_NEAR(number(&n, "loss_scale"), 32768, 0);
	CHECK_INT(ricci_feed(n.s, n.v, before.x[2], sizeof w), 0);
	/* an update of finite gradients that overflows by itself */
	CHECK_INT(ricci_feed(n.s, ricci_param_find(n.g, "learning_rate"), &(float){3e38f}, 4), 0);
	for (int k = 0; k < 8; k++) {
		bool good = !ricci_step(n.s);
		if (!good)
			break;
		CHECK_REPORT(k < 7, "no error");
	}
	CHECK_REPORT(strstr(ricci_error_message(), "becomes infinite"), "%s",
		     ricci_error_message());
	values_take(&n, &after);
	CHECK(!memcmp(after.x[0], before.x[0], sizeof *after.x));
	net_free(&n);
}

/* ---- checkpoints */

static void test_resume(void)
{
	static Values one, two;
	ricci_optimiser o = RICCI_OPTIMISER(.rule = RICCI_ADAM, .average = 0.9, .accumulate = 2,
					    .scaling = &RICCI_SCALING(.period = 4));
	Net a = net_optimised(o, NULL), b = net_optimised(o, NULL);
	CHECK(folder_make("scaling"));
	for (int k = 0; k < 5; k++)
		step(&a, k, 0);
	overflow(&a, 5);
	step(&a, 6, 0);
	int status = ricci_save(a.s, a.loss, in_folder("a.h5"), NULL, 0);
	if (status == RICCI_EUNSUPPORTED) {
		CHECK_SKIP("no HDF5");
	} else {
		CHECK_REPORT(!status, "%s", ricci_error_message());
		CHECK_INT(ricci_load(b.s, b.loss, in_folder("a.h5"), 0, NULL), 0);
		CHECK_NEAR(number(&b, "loss_scale"), 65536, 0); /* it grew once, and fell */
		CHECK_INT(number(&b, "loss_scale.steps"), 1);
		for (int k = 7; k < 12; k++) {
			step(&a, k, 0);
			step(&b, k, 0);
		}
		CHECK_NEAR(number(&b, "loss_scale"), 131072, 0);
		CHECK_INT(number(&b, "loss_scale.steps"), 2);
		values_take(&a, &one);
		values_take(&b, &two);
		values_same(&two, &one, "resumed");
	}
	folder_remove();
	net_free(&a);
	net_free(&b);
}

/* ---- an update of one's own */

static void test_own_update(void)
{
	for (ricci_type type = RICCI_F32; type <= RICCI_F16; type++) {
		ricci_graph *g = ricci_graph_new();
		Net n = {.g = g, .x = ricci_input(g, "x", RICCI_F32, 0, NULL)};
		unsigned char kept[8];
		ricci_tensor *w = ricci_param(g, "w", type, 0, NULL, ricci_constant(2));
		ricci_tensor *dw, *finite;
		ricci_options o = RICCI_OPTIONS(.threads = 1, .backend = RICCI_BACKEND_TCC);
		n.loss = ricci_op(g, "L[] = f32(W[]) * X[]", w, n.x);
		CHECK_INT(ricci_scaled_grad(n.loss, NULL, 1, &w, &dw, &finite), 0);
		CHECK_INT(ricci_dtype(dw), type == RICCI_F64 ? RICCI_F64 : RICCI_F32);
		CHECK_INT(ricci_dtype(finite), RICCI_BOOL);
		char next[80];
		static const char *const name[] = {"f32", "f64", "bf16", "f16"};
		snprintf(next, sizeof next, "N[] = F[] ? %s(%s(W[]) - 0.5 * D[]) : W[]", name[type],
			 type == RICCI_F64 ? "f64" : "f32");
		ricci_assign(g, w, ricci_op(g, next, finite, w, dw));
		CHECK_GRAPH(g);
		n.s = ricci_session_new(g, &o, 1, 1, &n.loss);
		CHECK_REPORT(n.s != NULL, "%s", ricci_error_message());
		/* the last one, scaled, is 2^127: finite, but not in f16 */
		bool f16 = type == RICCI_F16;
		const float x[] = {0.75, INFINITY, 0.25, 1, 0x1p112f};
		const float end[] = {1.625, 1.625, 1.5, 1, f16 ? 1 : -0x1p111f};
		for (int k = 0; k < LENGTH(x); k++) {
			float y = 0;
			CHECK_INT(ricci_feed(n.s, n.x, &x[k], 4), 0);
			CHECK_INT(ricci_step(n.s), 0);
			CHECK_INT(ricci_fetch(n.s, w, kept, ricci_bytes(w)), 0);
			y = (float)type_load((Type)type, kept, 0);
			CHECK_REPORT(y == end[k], "%s: step %d: %g, not %g", name[type], k,
				     (double)y, (double)end[k]);
		}
		CHECK_NEAR(number(&n, "loss_scale"), f16 ? 16384 : 32768, 0);
		net_free(&n);
	}
}

/* ---- devices */

static void device_steps(const char *device, Values *v, int *replayed, int (*replays)(void))
{
	int before = replays();
	ricci_optimiser o = RICCI_OPTIMISER(.rule = RICCI_ADAM, .accumulate = 2,
					    .scaling = &RICCI_SCALING(.period = 5));
	Net n = net_new(0x1p-20);
	CHECK_INT(ricci_precision(n.g, RICCI_F16), 0);
	CHECK_INT(ricci_optimise(n.loss, ricci_learning_rate(n.g, 0.03125), &o), 0);
	if (!session_open(&n, device, n.loss))
		return;
	for (int k = 0; k < 20; k++) {
		if (k == 7 || k == 12)
			overflow(&n, k);
		else
			step(&n, k, 0);
	}
	values_take(&n, v);
	CHECK_NEAR(number(&n, "loss_scale"), 65536, 0); /* 2 2 / 2 2 / 2: after 5, 12, 17 */
	CHECK_INT(number(&n, "loss_scale.steps"), 2);
	net_free(&n);
	*replayed = replays() - before;
}

static int none(void)
{
	return 0;
}

static void test_device(void)
{
	static Values want, got;
	void *fake = cuda_stand_in();
	int (*replays)(void) = fake ? (int (*)(void))dlsym(fake, "fake_cuda_replays") : NULL;
	int replayed;
	CHECK_REPORT(replays != NULL, "the stand-in for CUDA isn't there: %s", dlerror());
	device_steps(NULL, &want, &replayed, none);
	if (!replays)
		return;
	device_steps("cuda:0", &got, &replayed, replays);
	CHECK_REPORT(replayed > 5, "%d steps are replayed", replayed);
	CHECK_INT(got.n, want.n);
	for (int i = 0; i < got.n; i++)
		for (int j = 0; j < H * K; j++)
			CHECK_REPORT(fabsf(got.x[i][j] - want.x[i][j]) < 1e-3f,
				     "the device: %s is %g, not %g", got.name[i],
				     (double)got.x[i][j], (double)want.x[i][j]);
}

/* ---- errors */

static void wrong_option(ricci_scaling o, const char *message)
{
	Net n = net_new(1);
	ricci_tensor *dw = NULL, *finite = NULL;
	CHECK_INT(ricci_scaled_grad(n.loss, &o, 1, &n.w, &dw, &finite), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), message);
	CHECK(dw && finite && ricci_rank(dw) == 0);
	ricci_graph_free(n.g);
	n = net_new(1);
	ricci_tensor *rate = ricci_learning_rate(n.g, 1);
	CHECK_INT(ricci_optimise(n.loss, rate, &RICCI_OPTIMISER(.scaling = &o)), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), message);
	ricci_graph_free(n.g);
}

static void test_errors(void)
{
	wrong_option(RICCI_SCALING(.initial = 1000),
		     "ricci_scaling: initial is 1000, it must be a power of two");
	wrong_option(RICCI_SCALING(.initial = -2),
		     "ricci_scaling: initial is -2, it must be a power of two");
	wrong_option(RICCI_SCALING(.initial = INFINITY),
		     "ricci_scaling: initial is inf, it must be a power of two");
	wrong_option(RICCI_SCALING(.initial = 0.5, .least = 1),
		     "ricci_scaling: initial is 0.5, it must be in 1..1.67772e+07");
	wrong_option(RICCI_SCALING(.greatest = 0.5),
		     "ricci_scaling: greatest is 0.5, it must be in 1..1.32923e+36");
	wrong_option(RICCI_SCALING(.factor = 1),
		     "ricci_scaling: factor is 1, it must be in 2..1.32923e+36");
	wrong_option(RICCI_SCALING(.factor = 3),
		     "ricci_scaling: factor is 3, it must be a power of two");
	wrong_option(RICCI_SCALING(.period = -1),
		     "ricci_scaling: period is -1 steps, it must be 0 (usual: 2000) or more, and "
		     "below 2147483647");
	Net n = net_new(1);
	ricci_tensor *dw, *finite;
	CHECK_INT(ricci_scaled_grad(n.x, NULL, 1, &n.w, &dw, &finite), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(),
		  "ricci_scaled_grad: the loss has 2 dimensions, it must be a scalar");
	ricci_graph_free(n.g);
	n = net_new(1);
	CHECK_INT(ricci_scaled_grad(n.loss, NULL, 0, NULL, NULL, NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_scaled_grad: wrt, grads and finite must be given");
	ricci_graph_free(n.g);
	CHECK_INT(ricci_scaled_grad(NULL, NULL, 0, NULL, NULL, NULL), RICCI_EINVAL);
	/* two scales need two names */
	n = net_new(1);
	CHECK_INT(ricci_scaled_grad(n.loss, NULL, 1, &n.w, &dw, &finite), 0);
	CHECK_INT(ricci_scaled_grad(n.loss, NULL, 1, &n.v, &dw, &finite), RICCI_EINVAL);
	ricci_graph_free(n.g);
	n = net_new(1);
	CHECK_INT(ricci_scaled_grad(n.loss, NULL, 1, &n.w, &dw, &finite), 0);
	CHECK_INT(ricci_scaled_grad(n.loss, &RICCI_SCALING(.name = "other"), 1, &n.v, &dw, &finite),
		  0);
	CHECK(ricci_param_find(n.g, "other") && ricci_param_find(n.g, "other.steps"));
	ricci_graph_free(n.g);
}

static int build(void)
{
	Net n = net_new(1);
	ricci_optimise(n.loss, ricci_learning_rate(n.g, 1),
		       &RICCI_OPTIMISER(.accumulate = 2, .scaling = &RICCI_SCALING()));
	int code = n.g ? ricci_graph_error(n.g) : RICCI_ENOMEM;
	ricci_graph_free(n.g);
	return code;
}

int main(void)
{
	test_gradients();
	test_skipped();
	test_overflow_of_scale();
	test_growth();
	for (int lost = 0; lost < 3; lost++)
		accumulated(lost);
	test_check_finite();
	test_resume();
	test_own_update();
	test_device();
	test_errors();
	check_memory(build);
	return check_done();
}
