/* penalty.c - a gradient penalty: training whose loss holds a gradient (double backpropagation,
 * Drucker and LeCun 1992).
 *
 * A small classifier of drawn digits is trained twice: on its cross entropy alone, and with the sum
 * of squares of that loss's gradient by the pixels added. Then both are attacked: each test image
 * moves a little along the sign of that gradient. The penalised one resists. */
#include "examples/example.h"

enum { BATCH = 50, SIDE = 28, HIDDEN = 64, CLASSES = 10, STEPS = 600, TESTS = 1000 };

typedef struct {
	ricci_graph *g;
	ricci_tensor *image, *label, *loss, *errors, *attacked;
} Model;

static Model model_new(double penalty)
{
	const int64_t pixels[] = {BATCH, SIDE, SIDE}, batch[] = {BATCH};
	const int64_t w1[] = {HIDDEN, SIDE, SIDE}, w2[] = {CLASSES, HIDDEN};
	Model m = {.g = ricci_graph_new()};
	ricci_graph *g = m.g;

	m.image = ricci_input(g, "image", RICCI_F32, 3, pixels);
	m.label = ricci_input(g, "label", RICCI_I32, 1, batch);
	ricci_tensor *hidden = ricci_param(g, "hidden", RICCI_F32, 3, w1, ricci_he(SIDE * SIDE));
	ricci_tensor *out = ricci_param(g, "out", RICCI_F32, 2, w2, ricci_lecun(HIDDEN));
	/* tanh: a penalty differentiates twice, and relu's second derivative is zero */
	const char *network = "Z[b,n] += X[b,y,x] * W[n,y,x]; H[b,n] = tanh(Z[b,n]);"
			      "S[b,m] += H[b,n] * V[m,n]";
	ricci_tensor *scores = ricci_op(g, network, m.image, hidden, out);
	ricci_tensor *entropy = ricci_cross_entropy(scores, m.label), *slope;
	ricci_grad(g, entropy, NULL, 1, &m.image, &slope);
	ricci_tensor *squares = ricci_op(g, "Q[] += D[b,y,x] * D[b,y,x]", slope);
	ricci_tensor *weight =
		ricci_state(g, "penalty", RICCI_F32, 0, NULL, ricci_constant(penalty * BATCH));
	m.loss = ricci_op(g, "L[] = E[] + P[] * Q[]", entropy, weight, squares);
	m.errors = ricci_misclassified(scores, m.label);
	/* the same network on images that were moved against it */
	ricci_tensor *moved =
		ricci_op(g, "A[b,y,x] = X[b,y,x] + 0.05 * sign(D[b,y,x])", m.image, slope);
	m.attacked = ricci_misclassified(ricci_op(g, network, moved, hidden, out), m.label);
	ricci_adam(m.loss, ricci_learning_rate(g, 1e-3), .9, .999, 1e-8);
	return m;
}

/* The next batch into s. 0 at the end of the data, negative after an error. */
static int feed(ricci_session *s, const Model *m, ricci_loader *l)
{
	const void *field[2];
	int n = ricci_loader_batch(l, field);

	if (n > 0 && (ricci_feed(s, m->image, field[0], ricci_bytes(m->image)) ||
		      ricci_feed(s, m->label, field[1], ricci_bytes(m->label))))
		n = -1;
	return n;
}

/* Trains, then counts errors on the test set as it is and attacked. */
static int run(const example *e, double penalty, ricci_data *train, ricci_data *test)
{
	Model m = model_new(penalty);
	ricci_tensor *judged[] = {m.errors, m.attacked};
	ricci_loaded fields[] = {{"samples", RICCI_F32, 1}, {"labels", RICCI_I32, 0}};
	ricci_loading loading = RICCI_LOADING(.batch = BATCH, .nfield = 2, .field = fields);
	ricci_loader *judge = ricci_loader_open(test, &loading);
	loading.shuffle = 1;
	ricci_loader *learn = ricci_loader_open(train, &loading);
	ricci_session *s = ricci_session_new(m.g, &e->options, 1, 1, &m.loss), *t = NULL;
	int ok = learn && judge && s, wrong[2] = {0, 0};
	int32_t errors[BATCH];

	for (int step = 0; ok && step < STEPS; step++) {
		int n = feed(s, &m, learn);
		ok = n >= 0 && (n == 0 || ricci_step(s) == 0);
	}
	ok = ok && (t = ricci_session_share(s, 0, 2, judged));
	while (ok && feed(t, &m, judge) > 0) {
		ok = ricci_step(t) == 0;
		for (int k = 0; ok && k < 2; k++) {
			ricci_fetch(t, judged[k], errors, ricci_bytes(judged[k]));
			for (int i = 0; i < BATCH; i++)
				wrong[k] += errors[i];
		}
	}
	if (ok)
		printf("penalty %-5g test error %5.1f%%  attacked %5.1f%%\n", penalty,
		       100. * wrong[0] / TESTS, 100. * wrong[1] / TESTS);
	ricci_session_free(t);
	ricci_session_free(s);
	ricci_loader_free(judge);
	ricci_loader_free(learn);
	ricci_graph_free(m.g);
	return ok;
}

static int program(example *e)
{
	ricci_data *train = ricci_digits(6000, 1);
	ricci_data *test = ricci_digits(TESTS, 2);
	int ok = train && test && run(e, 0, train, test) && run(e, 3, train, test);

	if (!ok)
		fprintf(stderr, "penalty: %s\n", ricci_error_message());
	ricci_data_free(test);
	ricci_data_free(train);
	return !ok;
}

int main(int argc, char **argv)
{
	return example_main(argc, argv,
			    &(example){.name = "penalty",
				       .about =
					       "Trains on drawn digits without and with a gradient "
					       "penalty, and attacks both.",
				       .common = " seed threads backend device static help ",
				       .program = program});
}
