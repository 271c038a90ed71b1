/* lstm.c - a recurrent network that reads digits row by row: a loop over time on a page.
 *	lstm              draws its own digits and learns them
 *	lstm --data DIR   learns MNIST from the IDX files in DIR
 * An LSTM (Hochreiter, Schmidhuber 1997; with forget gates, Gers et al. 2000) sees one row of the
 * image a step, and says after the last which digit it was. The cell is two equations of sums and
 * two of gates; ricci_scan repeats it, and its gradient is a loop backwards. */
#include <ricci_nn.h>

#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define DIMS(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
/* clang-format on */
#define INPUT(name, ...)       ricci_input(g, name, RICCI_F32, DIMS(__VA_ARGS__))
#define PARAM(name, init, ...) ricci_param(g, name, RICCI_F32, DIMS(__VA_ARGS__), init)

enum { STEPS = 28, PIXELS = 28, CLASSES = 10 };

/* rows [STEPS, batch, PIXELS] -> [batch, hidden], what the cell remembers after the last. */
static ricci_tensor *lstm(ricci_graph *g, ricci_tensor *rows, int batch, int hidden)
{
	ricci_tensor *w = PARAM("cell_w", ricci_lecun(PIXELS), PIXELS, 4, hidden);
	ricci_tensor *u = PARAM("cell_u", ricci_lecun(hidden), hidden, 4, hidden);
	ricci_tensor *bias = PARAM("cell_c", ricci_constant(0), 4, hidden);
	char text[64];
	snprintf(text, sizeof text, "Z[b,j] = 0.0 where b<%d, j<%d", batch, hidden);
	ricci_tensor *none = ricci_op(g, text);

	/* a step: inputs stand for its row, and for what the step before left */
	ricci_tensor *x = INPUT("x", batch, PIXELS), *h = INPUT("h", batch, hidden);
	ricci_tensor *c = INPUT("c", batch, hidden);
	ricci_tensor *gates =
		ricci_op(g,
			 "A[b,n,j] += X[b,i] * W[i,n,j]; R[b,n,j] += H[b,k] * U[k,n,j];"
			 "G[b,n,j] = A[b,n,j] + R[b,n,j] + C[n,j]",
			 x, w, h, u, bias);
	ricci_tensor *cell = ricci_op(g,
				      "N[b,j] = sigmoid(G[b,0,j]) * tanh(G[b,1,j])"
				      " + sigmoid(G[b,2,j] + 1) * C[b,j]",
				      gates, c);
	ricci_tensor *out = ricci_op(g, "N[b,j] = sigmoid(G[b,3,j]) * tanh(C[b,j])", gates, cell);

	ricci_tensor *last[2];
	ricci_loop loop =
		RICCI_LOOP(.steps = STEPS, .nslice = 1, .slice = (ricci_slice[]){{x, rows}},
			   .ncarry = 2, .carry = (ricci_carry[]){{h, none, out}, {c, none, cell}});
	ricci_scan(g, &loop, last, NULL);
	return last[0];
}

/* Fills in the tensors of t, and the optimiser's assignments. */
static void network(ricci_graph *g, ricci_training *t, int batch, int hidden, double lr)
{
	t->samples = INPUT("image", batch, STEPS, PIXELS);
	t->labels = ricci_input(g, "label", RICCI_I32, DIMS(batch));
	ricci_tensor *rows = ricci_op(g, "R[t,b,i] = X[b,t,i]", t->samples);
	ricci_tensor *w = PARAM("out_w", ricci_lecun(hidden), CLASSES, hidden);
	ricci_tensor *bias = PARAM("out_c", ricci_constant(0), CLASSES);
	ricci_tensor *scores = ricci_linear(lstm(g, rows, batch, hidden), w, bias);

	t->loss = ricci_cross_entropy(scores, t->labels);
	t->misclassified = ricci_misclassified(scores, t->labels);
	t->output = scores;
	t->rate = ricci_learning_rate(g, lr);
	ricci_adam(t->loss, t->rate, 0.9, 0.999, 1e-8);
}

static const char usage[] =
	"usage: lstm [options]\n"
	"  --data DIR      MNIST's IDX files, plain or .gz (without it: drawn digits)\n"
	"  --batch N       samples a step (64)\n"
	"  --hidden N      what the cell remembers (128)\n"
	"  --epochs N      passes over the data (5)\n"
	"  --steps N       end after this step\n"
	"  --lr X          learning rate of Adam (0.002)\n"
	"  --threads N     (0: as many as there are)\n"
	"  --static        tune everything before the first step\n"
	"  --help\n";
static const char *const option[] = {"--batch",	  "--hidden", "--epochs", "--steps", "--lr",
				     "--threads", "--static", "--data",	  "--help"};
enum { BATCH, HIDDEN, EPOCHS, TRAIN, LR, THREADS, STATIC, DATA, HELP, OPTIONS };

/* Reads the options; 0, or 2 for wrong usage. */
static int arguments(int argc, char **argv, double *value, const char **data)
{
	for (int i = 1, k; i < argc; i++) {
		for (k = 0; k < OPTIONS && strcmp(argv[i], option[k]);)
			k++;
		if (k == OPTIONS)
			return fprintf(stderr, "lstm: what is %s?\n%s", argv[i], usage), 2;
		value[k] = 1;
		if (k == STATIC || k == HELP)
			continue;
		if (++i == argc)
			return fprintf(stderr, "lstm: %s of what?\n%s", option[k], usage), 2;
		if (k == DATA) {
			*data = argv[i];
			continue;
		}
		char *end;
		double v = value[k] = strtod(argv[i], &end);
		int fits = v <= 1e9 && (k == LR ? v > 0 : v >= (k < TRAIN) && v == (double)(int)v);
		if (end == argv[i] || *end || !fits)
			return fprintf(stderr, "lstm: %s %s?\n%s", option[k], argv[i], usage), 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	double value[OPTIONS] = {[BATCH] = 64, [HIDDEN] = 128, [EPOCHS] = 5, [LR] = 0.002};
	const char *data = NULL;
	int status = arguments(argc, argv, value, &data);

	if (status || value[HELP])
		return status ? status : fputs(usage, stdout) < 0;
	ricci_training t = RICCI_TRAINING(.lines = stdout, .progress = stderr);
	t.options =
		&RICCI_OPTIONS(.threads = (int)value[THREADS], .static_mode = (int)value[STATIC]);
	t.epochs = (int)value[EPOCHS];
	t.steps = (uint64_t)value[TRAIN];
	t.stop = ricci_interrupted();

	ricci_graph *g = ricci_graph_new();
	t.train = data ? ricci_mnist(data, 0) : ricci_digits(6000, 1);
	if (t.train)
		t.test = data ? ricci_mnist(data, 1) : ricci_digits(1000, 2);
	int failed = 1;
	ricci_report report = RICCI_REPORT();
	if (g && t.test) {
		network(g, &t, (int)value[BATCH], (int)value[HIDDEN], value[LR]);
		failed = ricci_train(&t, &report) != 0;
	}
	if (failed)
		fprintf(stderr, "lstm: %s\n", ricci_error_message());
	ricci_graph_free(g);
	ricci_data_free(t.train);
	ricci_data_free(t.test);
	return report.stopped && !failed ? 128 + report.stopped : failed;
}
