/* test_layer_options.c - what options of layers do beyond the numbers of test_layers_torch.c: the
 * places of maxima among ties and NaN; the row of an embedding that pads. */
#include "tests/memory_check.h"

#include <ricci_nn.h>

#define SHAPE(...)                                                                                 \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static ricci_session *session(ricci_graph *g, ricci_backend backend, int n,
			      ricci_tensor *const *out)
{
	CHECK_GRAPH(g);
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = backend, .threads = 1), 0, n, out);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	return s;
}

/* The first of equal maxima, where all are -inf too; none with NaN, which unpools to the last. */
static void places(ricci_backend backend)
{
	enum { N = 3 };
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(1, 1, N, N)), *at, *out[3];
	out[0] = ricci_max_pool(
		x, &RICCI_POOL(.kernel = 2, .stride = 1, .pad = 1, .ceil_mode = 1, .indices = &at));
	out[1] = at;
	out[2] = ricci_max_unpool(out[0], at, (int64_t[]){N, N});
	CHECK_INT(ricci_dtype(at), RICCI_I64);
	ricci_session *s = session(g, backend, 3, out);
	float v[N * N] = {2, 2, 1, 2, 2, -INFINITY, 0, 0, -INFINITY}, y[16], back[N * N];
	int64_t i[16];
	const int64_t want[16] = {0, 0, 1, 2, 0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8};
	CHECK_INT(ricci_feed(s, x, v, sizeof v), 0);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, at, i, sizeof i), 0);
	for (int k = 0; k < 16; k++)
		CHECK_INT(i[k], want[k]);
	v[4] = NAN;
	CHECK_INT(ricci_feed(s, x, v, sizeof v), 0);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, out[0], y, sizeof y), 0);
	CHECK_INT(ricci_fetch(s, at, i, sizeof i), 0);
	CHECK_INT(ricci_fetch(s, out[2], back, sizeof back), 0);
	CHECK(isnan(y[5]));
	CHECK_INT(i[5], N * N);
	CHECK_INT(i[4], 0);
	CHECK(isnan(back[N * N - 1]));
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* Training moves all rows but the one that pads, which is zero. */
static void padding(void)
{
	enum { ROWS = 4, OUT = 3 };
	const int32_t index[5] = {2, 0, 3, 2, 1};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *t = ricci_input(g, "t", RICCI_I32, SHAPE(5)), *w;
	ricci_tensor *y = ricci_embedding_layer(
		t, "e", &RICCI_EMBEDDING(.count = ROWS, .out = OUT, .padding = &(int64_t){-2}));
	ricci_tensor *loss = ricci_op(g, "L[] += (Y[i,j] - 1)*(Y[i,j] - 1)", y);
	ricci_sgd(loss, ricci_learning_rate(g, 0.125));
	CHECK_GRAPH(g);
	w = ricci_param_find(g, "e.weight");
	ricci_session *s = ricci_session_new(
		g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1), 1, 1, &loss);
	float before[ROWS * OUT], after[ROWS * OUT];
	CHECK_INT(ricci_fetch(s, w, before, sizeof before), 0);
	CHECK_INT(ricci_feed(s, t, index, sizeof index), 0);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, w, after, sizeof after), 0);
	for (int k = 0; k < ROWS * OUT; k++) {
		bool pads = k / OUT == 2;
		CHECK((before[k] == 0) == pads);
		CHECK((before[k] == after[k]) == pads);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

static int build(void)
{
	ricci_graph *g = ricci_graph_new();
	if (!g)
		return RICCI_ENOMEM;
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(1, 2, 5, 4)), *at;
	ricci_tensor *y = ricci_max_pool(x, &RICCI_POOL(.kernel = 2, .indices = &at));
	y = ricci_max_unpool(y, at, (int64_t[]){5, 4});
	ricci_lp_pool(y, 3, &RICCI_POOL(.kernel = 2));
	ricci_embedding_layer(ricci_input(g, "t", RICCI_I32, SHAPE(2)), "e",
			      &RICCI_EMBEDDING(.count = 20, .out = 2, .padding = &(int64_t){0}));
	ricci_set_init(ricci_param_find(g, "e.weight"),
		       ricci_values(RICCI_F32, 40, (float[40]){1}));
	ricci_upsample_linear(x, (int64_t[]){3, 7}, 0);
	ricci_pad_copied(x, NULL, (int64_t[]){0, 0, 1, 1}, RICCI_REFLECT);
	y = ricci_fold(ricci_unfold(x, &RICCI_CONV(.kernel = 2)), 2, (int64_t[]){5, 4},
		       &RICCI_CONV(.kernel = 2));
	ricci_cosine_embedding_loss(x, y, ricci_input(g, "s", RICCI_F32, SHAPE(1, 2, 5)), 0);
	ricci_triplet_loss(x, y, ricci_glu(ricci_concat(2, (ricci_tensor *[]){x, y}, 1), 1), 1);
	ricci_recurrent(ricci_input(g, "r", RICCI_F32, SHAPE(2, 1, 3)), "r",
			&RICCI_RECURRENT(.cell = ricci_lstm(), .hidden = 3, .projection = 2));
	int code = ricci_graph_error(g);
	ricci_graph_free(g);
	return code;
}

int main(void)
{
	const ricci_backend backends[] = {RICCI_BACKEND_INTERP, RICCI_BACKEND_TCC};
	for (int k = 0; k < 2; k++)
		places(backends[k]);
	padding();
	check_memory(build);
	return check_done();
}
