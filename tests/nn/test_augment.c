/* Augmentation against a plain reference given the same draws, over many steps and backends; how the
 * draws are distributed; evaluation changes nothing; messages. */
#include "nn/nn.h"
#include "tests/check.h"

#include <stdlib.h>

enum { B = 6, C = 3, H = 7, W = 9, STEPS = 200, KEY = 11 };
enum { CROP, SHIFT, FLIP, CUTOUT, NKIND };
static const double mean[C] = {0.5, 0.25, 0.125}, deviation[C] = {2, 3, 0.5};

typedef float Image[C][H][W];

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *x, *y, *draws;
	int rows, columns;
} Net;

/* Sessions that train have something to assign. */
static void trainable(ricci_graph *g)
{
	ricci_tensor *n = ricci_state(g, "n", RICCI_F32, 0, NULL, ricci_constant(0));
	ricci_assign(g, n, ricci_op(g, "M[] = N[] + 1", n));
	CHECK_GRAPH(g);
}

static Net net_new(int kind)
{
	Net n = {.g = ricci_graph_new(), .rows = H, .columns = W};
	char text[64];
	n.x = ricci_input(n.g, "x", RICCI_F32, 4, (int64_t[]){B, C, H, W});
	if (kind == CROP) {
		n.rows = 5;
		n.columns = 10;
	}
	n.y = kind == CROP    ? ricci_random_crop(n.x, 2, 5, 10, KEY)
	      : kind == SHIFT ? ricci_random_shift(n.x, 2, KEY)
	      : kind == FLIP  ? ricci_random_flip(n.x, KEY)
			      : ricci_cutout(n.x, 4, KEY);
	snprintf(text, sizeof text, "U[e:%d] = random(%d, e)", 2 * B, KEY);
	n.draws = ricci_op(n.g, text);
	trainable(n.g);
	return n;
}

static float pixel(Image x, int c, int i, int j)
{
	return i < 0 || j < 0 || i >= H || j >= W ? 0 : x[c][i][j];
}

/* What element c, i, j of a sample should be; r, s: its draws, r < 0: no training. */
static float wanted(int kind, Image x, int c, int i, int j, float r, float s)
{
	int y, z;
	switch (kind) {
	case CROP: /* 7 places by 4 */
		y = r < 0 ? 3 : (int)(r * 7);
		z = r < 0 ? 1 : (int)(s * 4);
		return pixel(x, c, i + y - 2, j + z - 2);
	case SHIFT:
		y = r < 0 ? 2 : (int)(r * 5);
		z = r < 0 ? 2 : (int)(s * 5);
		return pixel(x, c, i + y - 2, j + z - 2);
	case FLIP:
		return r >= 0.5f ? x[c][i][W - 1 - j] : x[c][i][j];
	default:
		y = r < 0 ? -100 : (int)(r * H);
		z = r < 0 ? -100 : (int)(s * W);
		return i >= y - 2 && i < y + 2 && j >= z - 2 && j < z + 2 ? 0 : x[c][i][j];
	}
}

/* Differences from the reference in a step. */
static int judge(ricci_session *s, const Net *n, int kind, bool train, float *draw)
{
	static Image x[B];
	static float y[B * C * H * (W + 1)];
	int wrong = 0, at = 0;
	for (int k = 0; k < B * C * H * W; k++)
		(&x[0][0][0][0])[k] = (float)(rand() % 1000 + 1);
	if (ricci_feed(s, n->x, x, sizeof x) || ricci_step(s) ||
	    ricci_fetch(s, n->y, y, ricci_bytes(n->y)) ||
	    ricci_fetch(s, n->draws, draw, 2 * B * sizeof *draw))
		return -1;
	for (int b = 0; b < B; b++)
		for (int c = 0; c < C; c++)
			for (int i = 0; i < n->rows; i++)
				for (int j = 0; j < n->columns; j++, at++)
					wrong += y[at] != wanted(kind, x[b], c, i, j,
								 train ? draw[2 * b] : -1,
								 draw[2 * b + 1]);
	return wrong;
}

static void against_reference(int kind, ricci_backend backend)
{
	Net n = net_new(kind);
	ricci_tensor *out[] = {n.y, n.draws};
	float draw[2 * B];
	double sum[2] = {0, 0};
	for (int train = 0; train < 2; train++) {
		ricci_options o = RICCI_OPTIONS(.backend = backend, .threads = 1, .seed = 5);
		ricci_session *s = ricci_session_new(n.g, &o, train, 2, out);
		CHECK_REPORT(s != NULL, "%s", ricci_error_message());
		int steps = backend == RICCI_BACKEND_INTERP ? 5 : STEPS;
		for (int k = 0; k < steps; k++) {
			CHECK_INT(judge(s, &n, kind, train, draw), 0);
			for (int b = 0; b < 2 * B; b++)
				sum[b % 2] += train ? draw[b] / (B * steps) : 0;
		}
		ricci_session_free(s);
	}
	/* uniform: within five deviations of the mean */
	if (backend != RICCI_BACKEND_INTERP)
		for (int k = 0; k < 2; k++)
			CHECK_NEAR(sum[k], 0.5, 5 * sqrt(1.0 / 12 / (B * STEPS)));
	ricci_graph_free(n.g);
}

/* Each place of a shift comes about as often as the others, and for each sample on its own. */
static void distribution(void)
{
	enum { N = 1000, ROUNDS = 10 };
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){N, 5, 5});
	ricci_tensor *y = ricci_random_shift(x, 2, 3);
	trainable(g);
	ricci_session *s =
		ricci_session_new(g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC), 1, 1, &y);
	static float in[N][25], out[N][25];
	int count[25] = {0};
	for (int b = 0; b < N; b++)
		in[b][12] = 1; /* the centre */
	for (int k = 0; k < ROUNDS; k++) {
		CHECK_INT(ricci_feed(s, x, in, sizeof in), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, y, out, sizeof out), 0);
		for (int b = 0; b < N; b++)
			for (int at = 0; at < 25; at++)
				count[at] += out[b][at] == 1;
	}
	double chi = 0, want = N * ROUNDS / 25.0;
	for (int at = 0; at < 25; at++)
		chi += (count[at] - want) * (count[at] - want) / want;
	CHECK_REPORT(chi > 5 && chi < 60, "chi-squared %g of 24 degrees of freedom", chi);
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void normalised(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){2, C, 4});
	ricci_tensor *y = ricci_normalise(x, C, mean, deviation);
	trainable(g);
	for (int train = 0; train < 2; train++) {
		ricci_session *s = ricci_session_new(
			g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC), train, 1, &y);
		float in[24], out[24];
		for (int k = 0; k < 24; k++)
			in[k] = (float)k / 7;
		CHECK(!ricci_feed(s, x, in, sizeof in) && !ricci_step(s) &&
		      !ricci_fetch(s, y, out, sizeof out));
		for (int k = 0; k < 24; k++)
			CHECK_NEAR(out[k], (in[k] - mean[k / 4 % 3]) / deviation[k / 4 % 3], 1e-6);
		ricci_session_free(s);
	}
	ricci_graph_free(g);
}

/* The layer of one kind fails with this message. */
static void refused(int rank, int which, const char *why)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, rank, (int64_t[]){2, 3, 4, 5});
	if (which == 0)
		ricci_random_crop(x, 1, 7, 5, 0);
	else if (which == 1)
		ricci_random_shift(x, -1, 0);
	else if (which == 2)
		ricci_random_flip(x, 0);
	else if (which == 3)
		ricci_cutout(x, 0, 0);
	else if (which == 4)
		ricci_normalise(x, 2, mean, deviation);
	else
		ricci_normalise(x, 3, mean, (double[]){1, 0, 1});
	CHECK_INT(ricci_graph_error(g), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(), why);
	ricci_graph_free(g);
}

int main(void)
{
	for (int kind = 0; kind < NKIND; kind++) {
		against_reference(kind, RICCI_BACKEND_TCC);
		against_reference(kind, RICCI_BACKEND_INTERP);
	}
	distribution();
	normalised();
	refused(4, 0,
		"ricci_random_crop: 7 x 5 does not fit an image of 4 x 5 with a padding of 1");
	refused(4, 1, "ricci_random_shift: most is -1, it must be 0 or more");
	refused(2, 2,
		"ricci_random_flip: x [batch, .., row, column] expected, 'x' has 2 dimensions");
	refused(4, 3, "ricci_cutout: a square of 0; it must be 1 or more");
	refused(4, 4,
		"ricci_normalise: a mean and a deviation for each of the 3 channels (at most 64) "
		"are needed, not 2");
	refused(4, 5,
		"ricci_normalise: channel 1 has mean 0.25 and deviation 0; the deviation is "
		"greater than 0");
	CHECK(!ricci_random_flip(NULL, 0));
	return check_done();
}
