/* test_layer_parameters.c - layers that make their parameters: names, shapes and initial values as
 * PyTorch's modules have; sharing and freezing; the summary; dropout; errors of wrong arguments. */
#include "tests/memory_check.h"

#include <ricci_nn.h>
#include <stdlib.h>

#define SHAPE(...)                                                                                 \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* A small net with one of each layer; its logits [4,10]. */
static ricci_tensor *net(ricci_graph *g)
{
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(4, 3, 8, 8));
	x = ricci_conv_layer(x, "conv1", &RICCI_CONV(.out = 6, .kernel = 3, .pad = 1));
	ricci_scope_begin(g, "stage1");
	x = ricci_norm_layer(x, "bn", &RICCI_NORM());
	x = ricci_max_pool(ricci_relu(x), &RICCI_POOL(.kernel = 2));
	ricci_scope_begin(g, "block0");
	x = ricci_conv_layer(
		x, "conv",
		&RICCI_CONV(.out = 12, .kernels = (int[]){1, 3}, .groups = 3, .no_bias = 1));
	ricci_scope_end(g);
	ricci_scope_end(g);
	x = ricci_conv_layer(x, "up",
			     &RICCI_CONV(.out = 4, .kernel = 2, .groups = 2, .transposed = 1));
	x = ricci_norm_layer(x, "gn", &RICCI_NORM(.kind = RICCI_GROUP_NORM, .groups = 2));
	return ricci_linear_layer(ricci_flatten(x, 1, -1), "fc", &RICCI_LINEAR(.out = 10));
}

/* As PyTorch's state_dict has them; each with its bound of initial values, 0: constant. */
static const struct {
	const char *name, *shape;
	int trained;
	double bound, constant;
} want[] = {{"conv1.weight", "6,3,3,3,", 1, 0.19245008972987526, 0},
	    {"conv1.bias", "6,", 1, 0.19245008972987526, 0},
	    {"stage1.bn.weight", "6,", 1, 0, 1},
	    {"stage1.bn.bias", "6,", 1, 0, 0},
	    {"stage1.bn.running_mean", "6,", 0, 0, 0},
	    {"stage1.bn.running_var", "6,", 0, 0, 1},
	    {"stage1.block0.conv.weight", "12,2,1,3,", 1, 0.40824829046386302, 0},
	    {"up.weight", "12,2,2,2,", 1, 0.35355339059327379, 0},
	    {"up.bias", "4,", 1, 0.35355339059327379, 0},
	    {"gn.weight", "4,", 1, 0, 1},
	    {"gn.bias", "4,", 1, 0, 0},
	    {"fc.weight", "10,60,", 1, 0.12909944487358055, 0},
	    {"fc.bias", "10,", 1, 0.12909944487358055, 0}};
enum { NWANT = sizeof want / sizeof *want };

static void layers(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *y = net(g);
	CHECK_GRAPH(g);
	CHECK_INT(ricci_rank(y), 2);
	CHECK_INT(ricci_extent(y, 1), 10);
	CHECK_INT(ricci_param_count(g), NWANT);
	CHECK_INT(ricci_param_elements(g),
		  6 * 27 + 6 + 12 + 12 * 6 + 12 * 8 + 4 + 8 + 10 * 60 + 10);
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.seed = 5), 0, 1, &y);
	CHECK(s != NULL);
	for (int i = 0; i < ricci_param_count(g) && i < NWANT && s; i++) {
		int trained;
		ricci_tensor *t = ricci_param_at(g, i, &trained);
		char shape[64] = "";
		float v[1024], most = 0;
		for (int d = 0; d < ricci_rank(t); d++)
			sprintf(shape + strlen(shape), "%d,", (int)ricci_extent(t, d));
		CHECK_STR(ricci_name(t), want[i].name);
		CHECK_STR(shape, want[i].shape);
		CHECK_INT(trained, want[i].trained);
		CHECK_INT(ricci_fetch(s, t, v, ricci_bytes(t)), 0);
		for (size_t k = 0; k < ricci_bytes(t) / 4; k++) {
			if (want[i].bound == 0)
				CHECK_NEAR(v[k], want[i].constant, 0);
			most = fmaxf(most, fabsf(v[k]));
		}
		if (want[i].bound > 0)
			CHECK_REPORT(most <= want[i].bound && most > 0.4 * want[i].bound,
				     "%s: the largest initial value is %g of %g", want[i].name,
				     most, want[i].bound);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* Norms and embeddings that the net does not have. */
static void more_layers(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *t = ricci_input(g, "t", RICCI_I32, SHAPE(2, 5));
	ricci_tensor *x = ricci_embedding_layer(t, "wte", &RICCI_EMBEDDING(.count = 7, .out = 6));
	x = ricci_norm_layer(x, "ln", &RICCI_NORM(.kind = RICCI_LAYER_NORM, .dims = 2));
	x = ricci_norm_layer(x, "rms", &RICCI_NORM(.kind = RICCI_RMS_NORM));
	x = ricci_norm_layer(x, "in", &RICCI_NORM(.kind = RICCI_INSTANCE_NORM, .plain = 1));
	x = ricci_norm_layer(x, "", &RICCI_NORM(.kind = RICCI_LAYER_NORM, .no_bias = 1));
	CHECK_GRAPH(g);
	static const char *const names[] = {"wte.weight", "ln.weight", "ln.bias", "rms.weight",
					    "weight"};
	CHECK_INT(ricci_param_count(g), 5);
	for (int i = 0; i < 5; i++)
		CHECK_STR(ricci_name(ricci_param_at(g, i, NULL)), names[i]);
	CHECK_INT(ricci_extent(ricci_param_find(g, "ln.weight"), 0), 5);
	CHECK_INT(ricci_rank(ricci_param_find(g, "ln.bias")), 2);
	CHECK_INT(ricci_extent(ricci_param_find(g, "rms.weight"), 0), 6);
	ricci_graph_free(g);
}

/* A parameter that two layers read gets the sum of their gradients; one behind stop_gradient none. */
static void sharing(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F64, SHAPE(1, 2));
	ricci_tensor *y = ricci_linear_layer(x, "a", &RICCI_LINEAR(.out = 2, .no_bias = 1));
	ricci_tensor *a = ricci_param_find(g, "a.weight"), *grad[2], *out[3];
	ricci_tensor *b = ricci_param(g, "b", RICCI_F64, SHAPE(2, 2), ricci_constant(2));
	y = ricci_linear(ricci_linear(y, a, NULL), ricci_stop_gradient(b), NULL);
	CHECK_INT(ricci_grad(g, y, NULL, 2, (ricci_tensor *[]){a, b}, grad), 0);
	out[0] = y, out[1] = grad[0], out[2] = grad[1];
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP), 0, 3, out);
	/* y = x A' A' B', B = 2: the sum of all is 4 (1 1) A A x */
	double v[2] = {3, 5}, w[4] = {1, 2, -1, 3}, d[4], got = 0;
	CHECK_INT(ricci_feed(s, x, v, sizeof v), 0);
	CHECK_INT(ricci_feed(s, a, w, sizeof w), 0);
	CHECK_INT(ricci_step(s), 0);
	ricci_fetch(s, y, d, 2 * sizeof *d);
	/* A x = (13, 12), A A x = (37, 23) */
	CHECK_NEAR(d[0] + d[1], 4 * (37 + 23), 1e-12);
	ricci_fetch(s, grad[0], d, sizeof d);
	/* 4 (u_i (A x)_j + (A' u)_i x_j), u = (1 1), A' u = (0, 5) */
	const double right[4] = {4 * (13 + 0), 4 * (12 + 0), 4 * (13 + 15), 4 * (12 + 25)};
	for (int i = 0; i < 4; i++)
		CHECK_NEAR(d[i], right[i], 1e-12);
	ricci_fetch(s, grad[1], d, sizeof d);
	for (int i = 0; i < 4; i++)
		got += fabs(d[i]);
	CHECK_NEAR(got, 0, 0);
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* The table of what computes y; the caller frees. */
static char *table(ricci_tensor *y)
{
	char *got = calloc(1, 4096);
	FILE *f = tmpfile();
	CHECK_INT(ricci_summary(y, f), 0);
	rewind(f);
	got[fread(got, 1, 4095, f)] = 0;
	fclose(f);
	return got;
}

/* A line of it, as far as it is given. */
static void line(const char *table, const char *want)
{
	CHECK_REPORT(strstr(table, want), "no line\n%s\nin\n%s", want, table);
}

static void summary(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *y = net(g);
	char *got = table(y);
	line(got, "layer               output                       parameters        GFLOP\n"
		  "conv1               [4,6,8,8]                           168 ");
	line(got, "\nstage1.bn           [4,6,4,4]                            12 ");
	/* 384 elements of 6 multiply-adds */
	line(got, "\nstage1.block0.conv  [4,12,4,2]                           72    4.608e-06\n");
	line(got, "\nup                  [4,4,5,3]                           100 ");
	line(got, "\ngn                  [4,60]                                8 ");
	/* 40 of 60 multiply-adds and one addition */
	line(got, "\nfc                  [4,10]                              610     4.84e-06\n");
	line(got, "\ntotal                                                   970 ");
	free(got);
	FILE *f;
	CHECK_INT(ricci_summary(y, NULL), RICCI_EINVAL);
	CHECK_INT(ricci_summary(NULL, stdout), RICCI_EINVAL);
	if ((f = fopen("/dev/full", "w"))) {
		CHECK_INT(ricci_summary(y, f), RICCI_EIO);
		fclose(f);
	}
	ricci_graph_free(g);
}

/* Layers and the table; the last error. */
static int net_and_table(void)
{
	ricci_graph *g = ricci_graph_new();
	FILE *f = fopen("/dev/null", "w");
	int code = RICCI_ENOMEM;
	if (g && f) {
		ricci_tensor *y = net(g), *z = ricci_pad(y, NULL, (int64_t[]){1, 2}, 0);
		y = ricci_concat(2, (ricci_tensor *[]){z, ricci_reshape(z, 2, (int64_t[]){5, -1})},
				 0);
		code = ricci_graph_error(g);
		code = code ? code : ricci_summary(y, f);
	}
	if (f)
		fclose(f);
	ricci_graph_free(g);
	return code;
}

/* Of a loop all steps count: 2 * 3 multiply-adds and 2 additions in each of 5. */
static void summary_of_loop(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(5, 3)), *last;
	ricci_tensor *w = ricci_param(g, "cell.w", RICCI_F32, SHAPE(2, 3), ricci_constant(1));
	ricci_tensor *v = ricci_input(g, "v", RICCI_F32, SHAPE(3));
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, SHAPE(2));
	ricci_tensor *zero = ricci_input(g, "zero", RICCI_F32, SHAPE(2));
	ricci_tensor *next = ricci_op(g, "L[n] += X[k]*W[n,k]; Y[n] = L[n] + H[n]", v, w, h);
	CHECK_INT(ricci_scan(g,
			     &RICCI_LOOP(.steps = 5, .nslice = 1, .slice = &(ricci_slice){v, x},
					 .ncarry = 1, .carry = &(ricci_carry){h, zero, next}),
			     &last, NULL),
		  0);
	char *got = table(last);
	line(got, "\ncell   [2]                                   6        7e-08\n");
	free(got);
	ricci_graph_free(g);
}

/* Zeros with probability p and the rest scaled while training; other draws in each call and step;
 * nothing otherwise. */
static void dropout(void)
{
	enum { N = 20000 };
	static float x[N], y[N], z[N], again[N];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *tx = ricci_input(g, "x", RICCI_F32, SHAPE(N)), *out[2];
	ricci_tensor *count = ricci_state(g, "count", RICCI_F32, 0, NULL, ricci_constant(0));
	ricci_assign(g, count, ricci_op(g, "Y[] = C[] + 1.0", count));
	out[0] = ricci_dropout(tx, 0.25);
	out[1] = ricci_dropout(tx, 0.25);
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, NULL, 1, 2, out);
	ricci_session *e = ricci_session_share(s, 0, 2, out);
	int zeros = 0, differ = 0, renewed = 0, scaled = 0, kept = 0;
	for (int i = 0; i < N; i++)
		x[i] = (float)(i + 1);
	CHECK_INT(ricci_feed(s, tx, x, sizeof x), 0);
	CHECK_INT(ricci_step(s), 0);
	ricci_fetch(s, out[0], y, sizeof y);
	ricci_fetch(s, out[1], z, sizeof z);
	CHECK_INT(ricci_step(s), 0);
	ricci_fetch(s, out[0], again, sizeof again);
	CHECK_INT(ricci_feed(e, tx, x, sizeof x), 0);
	CHECK_INT(ricci_step(e), 0);
	for (int i = 0; i < N; i++) {
		zeros += y[i] == 0;
		scaled += y[i] == 0 || fabsf(y[i] - x[i] / 0.75f) <= 1e-6f * x[i];
		differ += (y[i] == 0) != (z[i] == 0);
		renewed += (y[i] == 0) != (again[i] == 0);
	}
	CHECK_INT(scaled, N);
	CHECK_NEAR(zeros, N * 0.25, 250); /* four deviations */
	CHECK_NEAR(differ, N * 0.375, 280);
	CHECK_NEAR(renewed, N * 0.375, 280);
	ricci_fetch(e, out[0], y, sizeof y);
	for (int i = 0; i < N; i++)
		kept += y[i] == x[i];
	CHECK_INT(kept, N);
	ricci_session_free(e);
	ricci_session_free(s);
	ricci_graph_free(g);
}

#define WRONG(code, message, expression)                                                           \
	do {                                                                                       \
		ricci_graph *g = ricci_graph_new();                                                \
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(2, 6, 5, 4));               \
		ricci_tensor *w = ricci_input(g, "w", RICCI_F32, SHAPE(4, 6, 3, 3));               \
		ricci_tensor *b = ricci_input(g, "b", RICCI_F32, SHAPE(3));                        \
		(void)w, (void)b;                                                                  \
		ricci_tensor *y_ = (expression);                                                   \
		CHECK(y_ &&y_ == ricci_relu(x)); /* the inert tensor */                            \
		CHECK_INT(ricci_graph_error(g), code);                                             \
		CHECK_STR(ricci_error_message(), message);                                         \
		ricci_graph_free(g);                                                               \
	} while (0)
#define BAD(message, expression) WRONG(RICCI_ESHAPE, message, expression)

static void wrong_windows(void)
{
	BAD("ricci_conv: 6 channels in 2 groups do not fit weights of 4 by 6 channels",
	    ricci_conv(x, w, NULL, &RICCI_CONV(.groups = 2)));
	BAD("ricci_conv: -1 groups", ricci_conv(x, w, NULL, &RICCI_CONV(.groups = -1)));
	BAD("ricci_conv: the dilation is -2, it must be 1 or more",
	    ricci_conv(x, w, NULL, &RICCI_CONV(.dilation = -2)));
	BAD("ricci_conv: a window of 5 with stride 1 and padding 0 does not fit an image of 4",
	    ricci_conv(x, w, NULL, &RICCI_CONV(.dilation = 2)));
	BAD("ricci_conv: weights of 3 dimensions do not fit x of 4",
	    ricci_conv(x, ricci_reshape(w, 3, (int64_t[]){4, 6, 9}), NULL, NULL));
	BAD("ricci_conv: 6 channels in 1 groups do not fit weights of 4",
	    ricci_conv(x, w, NULL, &RICCI_CONV(.transposed = 1)));
	BAD("ricci_max_pool: the padding is 2, it must be at most half of the window's size 3",
	    ricci_max_pool(x, &RICCI_POOL(.kernel = 3, .pad = 2)));
	BAD("ricci_max_pool: a window's size is 0, it must be 1 or more", ricci_max_pool(x, NULL));
	BAD("ricci_avg_pool: average pooling has no dilation, 2 is given",
	    ricci_avg_pool(x, &RICCI_POOL(.kernel = 2, .dilation = 2)));
	BAD("ricci_max_pool: a window of 6 with stride 6 and padding 0 does not fit an image of 5",
	    ricci_max_pool(x, &RICCI_POOL(.kernel = 6, .ceil_mode = 1)));
	BAD("ricci_avg_pool: only ricci_max_pool has .indices",
	    ricci_avg_pool(x, &RICCI_POOL(.kernel = 2, .indices = &w)));
	BAD("ricci_lp_pool: the norm's power is 0.5, it must be finite, and 1 or more",
	    ricci_lp_pool(x, 0.5, &RICCI_POOL(.kernel = 2)));
	BAD("ricci_max_unpool: the tensor of indices is [4,6,3,3], it must be [2,6,5,4]",
	    ricci_max_unpool(x, w, (int64_t[]){9, 9}));
	BAD("ricci_max_unpool: an image of 0 along dimension 3",
	    ricci_max_unpool(x, x, (int64_t[]){9, 0}));
	WRONG(RICCI_ETYPE,
	      "equation: I indexes, so it must hold integers, but it is f32: write "
	      "i32(I[b,c,p0,p1])\n"
	      "  X, I -> Y: N = 81; Y[b,c,min(max(I[b,c,p0,p1],0),N-1):N] += X[b,c,p0,p1]\n"
	      "                                   ^",
	      ricci_max_unpool(x, x, (int64_t[]){9, 9}));
	BAD("ricci_adaptive_avg_pool: 9 windows over an extent of 4",
	    ricci_adaptive_avg_pool(x, (int64_t[]){2, 9}));
	BAD("ricci_global_avg_pool: x [batch, channel, ...] expected, 'b' has 1 dimensions",
	    ricci_global_avg_pool(b));
	BAD("ricci_conv_layer: out is 0, it must be 1 or more",
	    ricci_conv_layer(x, "c", &RICCI_CONV(.kernel = 3)));
	BAD("ricci_conv_layer: 6 channels and 8 of the result can't be divided into 4 groups",
	    ricci_conv_layer(x, "c", &RICCI_CONV(.kernel = 3, .out = 8, .groups = 4)));
	WRONG(RICCI_EINVAL, "ricci_conv_layer: no options given", ricci_conv_layer(x, "c", NULL));
	WRONG(RICCI_EINVAL, "ricci_linear_layer: no name given",
	      ricci_linear_layer(x, NULL, &RICCI_LINEAR(.out = 1)));
}

static void wrong_others(void)
{
	BAD("ricci_group_norm: the weight is [3], it must be [6]",
	    ricci_group_norm(x, b, NULL, 2, 1e-5));
	BAD("ricci_group_norm: 6 channels can't be divided into 4 groups",
	    ricci_group_norm(x, NULL, NULL, 4, 1e-5));
	BAD("ricci_layer_norm: the bias is [3], it must be [5,4]",
	    ricci_layer_norm(x, NULL, b, 2, 1e-5));
	BAD("ricci_rms_norm: x has 4 dimensions, not 5", ricci_rms_norm(x, NULL, 5, 1e-5));
	BAD("ricci_batch_norm: no tensor given for the running variance [channel]",
	    ricci_batch_norm(x, NULL, NULL, b, NULL, 0.1, 1e-5));
	BAD("ricci_batch_norm: the running mean is [3], it must be [6]",
	    ricci_batch_norm(x, NULL, NULL, b, b, 0.1, 1e-5));
	BAD("ricci_norm_layer: x has 1 dimensions, not 2", ricci_norm_layer(b, "n", &RICCI_NORM()));
	BAD("ricci_dropout: the probability is 1, it must be in [0, 1)", ricci_dropout(x, 1));
	BAD("ricci_elu: the number nan is not finite", ricci_elu(x, NAN));
	BAD("ricci_concat: tensor 1 is [4,6,3,3], it must be [2,6,3,4]",
	    ricci_concat(2, (ricci_tensor *[]){x, w}, 2));
	BAD("ricci_concat: x of 4 dimensions has no dimension 4", ricci_concat(1, &x, 4));
	BAD("ricci_slice_axis: 3 elements from 1 with step 2 leave dimension 2 of extent 5",
	    ricci_slice_axis(x, -2, 1, 3, 2));
	BAD("ricci_pad: -1 before and 0 behind dimension 0, they must be 0 or more",
	    ricci_pad(x, (int64_t[]){-1, 0, 0, 0}, NULL, 0));
	BAD("ricci_reshape: 240 elements do not fit the shape of 2 dimensions",
	    ricci_reshape(x, 2, (int64_t[]){7, -1}));
	BAD("ricci_reshape: 240 elements do not fit the shape of 2 dimensions",
	    ricci_reshape(x, 2, (int64_t[]){-1, -1}));
	BAD("ricci_flatten: dimensions 2 to 1", ricci_flatten(x, 2, 1));
	BAD("ricci_transpose: the order does not hold each of 0..3 once",
	    ricci_transpose(x, (int[]){0, 1, 1, 3}));
	BAD("ricci_depth_to_space: 6 channels are not blocks of 2", ricci_depth_to_space(x, 2));
	BAD("ricci_space_to_depth: an extent of 5 is not blocks of 2", ricci_space_to_depth(x, 2));
	BAD("ricci_channel_shuffle: 6 channels can't be divided into 4 groups",
	    ricci_channel_shuffle(x, 4));
	BAD("ricci_embedding_padded: the padding is row 5 of 5",
	    ricci_embedding_padded(ricci_input(g, "t", RICCI_I32, SHAPE(2)),
				   ricci_input(g, "e", RICCI_F32, SHAPE(5, 2)), 5));
	BAD("ricci_param e.weight: it has no row -1 to be zero",
	    ricci_embedding_layer(
		    ricci_input(g, "t", RICCI_I32, SHAPE(2)), "e",
		    &RICCI_EMBEDDING(.count = 5, .out = 2, .padding = &(int64_t){-6})));
	CHECK(!ricci_conv(NULL, NULL, NULL, NULL));
	CHECK(!ricci_instance_norm(NULL, NULL, NULL, 0));
	CHECK(!ricci_norm_layer(NULL, "n", &RICCI_NORM()));
	CHECK(!ricci_concat(0, NULL, 0));
	CHECK_INT(ricci_param_elements(NULL), 0);
}

static void wrong_images(void)
{
	BAD("ricci_upsample_nearest: an extent of 0 along dimension 3",
	    ricci_upsample_nearest(x, (int64_t[]){3, 0}));
	BAD("ricci_upsample_linear: an extent of 0 along dimension 2",
	    ricci_upsample_linear(x, NULL, 0));
	BAD("ricci_unfold: a window's size is 0, it must be 1 or more", ricci_unfold(x, NULL));
	BAD("ricci_unfold: a window of 6 with stride 1 and padding 0 does not fit an image of 5",
	    ricci_unfold(x, &RICCI_CONV(.kernel = 6)));
	BAD("ricci_fold: x [batch, channel * window, position] expected, 'x' has 4 dimensions",
	    ricci_fold(x, 2, (int64_t[]){3, 3}, &RICCI_CONV(.kernel = 2)));
	BAD("ricci_fold: 20 columns of 6 elements, there are 4 windows of 4",
	    ricci_fold(ricci_flatten(x, 2, 3), 2, (int64_t[]){3, 3}, &RICCI_CONV(.kernel = 2)));
	BAD("ricci_fold: an image of 0 dimensions",
	    ricci_fold(ricci_flatten(x, 2, 3), 0, NULL, NULL));
	BAD("ricci_pad_copied: 5 before and 0 behind dimension 2 of extent 5",
	    ricci_pad_copied(x, (int64_t[]){0, 0, 5, 0}, NULL, RICCI_REFLECT));
	BAD("ricci_pad_copied: 0 before and 5 behind dimension 3 of extent 4",
	    ricci_pad_copied(x, NULL, (int64_t[]){0, 0, 0, 5}, RICCI_CIRCULAR));
	BAD("ricci_pad_copied: -1 before and 0 behind dimension 0 of extent 2",
	    ricci_pad_copied(x, (int64_t[]){-1, 0, 0, 0}, NULL, RICCI_REPLICATE));
	BAD("ricci_pad_copied: unknown kind 3", ricci_pad_copied(x, NULL, NULL, 3));
	BAD("ricci_local_response_norm: 0 channels, alpha 1, beta 1, k 1",
	    ricci_local_response_norm(x, 0, 1, 1, 1));
	BAD("ricci_prelu: x has 6 channels, w 3", ricci_prelu(x, b));
	BAD("ricci_glu: dimension 2 of x has no two halves", ricci_glu(x, 2));
	BAD("ricci_glu: dimension 4 of x has no two halves", ricci_glu(x, 4));
	BAD("ricci_celu: alpha is 0, it must be more than 0", ricci_celu(x, 0));
	BAD("ricci_clip: from 1 to 0", ricci_clip(x, 1, 0));
	BAD("ricci_bilinear: w [out, in of x, in of z] expected, 'w' has 4 dimensions",
	    ricci_bilinear(x, x, w, NULL));
	CHECK(!ricci_unfold(NULL, NULL) && !ricci_glu(NULL, 0) && !ricci_celu(NULL, 0));
	CHECK(!ricci_fold(NULL, 1, NULL, NULL) && !ricci_bilinear(NULL, NULL, NULL, NULL));
}

int main(void)
{
	layers();
	more_layers();
	sharing();
	summary();
	summary_of_loop();
	check_memory(net_and_table);
	dropout();
	wrong_windows();
	wrong_others();
	wrong_images();
	return check_done();
}
