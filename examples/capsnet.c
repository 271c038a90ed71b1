/* capsnet.c - a capsule network that learns to read digits: the whole way of Ricci on a page.
 *	capsnet              draws its own digits and learns them
 *	capsnet --data DIR   learns MNIST from the IDX files in DIR
 * After Sabour, Frosst, Hinton 2017, with 4x4 matrices as poses: two convolutions, two convolutions
 * of capsules, votes, routing by agreement, margin loss. */
#include <ricci_nn.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define DIMS(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
/* clang-format on */
#define PARAM(name, init, ...) ricci_param(g, name, RICCI_F32, DIMS(__VA_ARGS__), init)

/* Fills in the tensors of t, and the optimiser's assignments. */
static void network(ricci_graph *g, ricci_training *t, int batch, double lr)
{
	ricci_tensor *image = ricci_input(g, "image", RICCI_F32, DIMS(batch, 1, 28, 28));
	ricci_tensor *label = ricci_input(g, "label", RICCI_I32, DIMS(batch));
	ricci_tensor *stem = PARAM("stem_w", ricci_he(25), 64, 1, 5, 5);
	ricci_tensor *stem_c = PARAM("stem_c", ricci_constant(0), 64);
	ricci_tensor *primary = PARAM("primary_w", ricci_he(64), 256, 64, 1, 1);
	ricci_tensor *primary_c = PARAM("primary_c", ricci_constant(0), 256);
	ricci_tensor *caps1 = PARAM("caps1", ricci_lecun(16 * 36), 32, 16, 3, 3, 4, 4);
	ricci_tensor *caps2 = PARAM("caps2", ricci_lecun(32 * 36), 32, 32, 3, 3, 4, 4);
	ricci_tensor *votes = PARAM("votes", ricci_lecun(4), 512, 10, 4, 4);

	ricci_tensor *x = ricci_relu(ricci_conv2d(image, stem, stem_c, 2, 2));
	x = ricci_capsules(ricci_conv2d(x, primary, primary_c, 1, 0), 4, 4);
	/* a layer is nothing but equations: this is ricci_capsule_conv(x, caps1, 2) */
	x = ricci_op(g, "Y[b,k,p,q,i,j] += X[b,c,2*p+r,2*q+s,i,t] * W[k,c,r,s,t,j]", x, caps1);
	x = ricci_squash(x, 2);
	x = ricci_squash(ricci_capsule_conv(x, caps2, 1), 2);
	x = ricci_routing(ricci_votes(x, votes), 3);

	t->samples = image;
	t->labels = label;
	t->loss = ricci_margin_loss(x, label);
	t->misclassified = ricci_misclassified(x, label);
	t->output = x;
	t->rate = ricci_learning_rate(g, lr);
	ricci_adam(t->loss, t->rate, 0.9, 0.999, 1e-8);
}

/* clang-format off */
enum { BATCH, EPOCHS, STEPS, LR, SEED, TUNE, THREADS, DATA, BACKEND, CHECKPOINT, RESUME, STATIC, BF16, EVAL, OVERWRITE, HELP };
#define OPTION(name, id) {name, id < STATIC, NULL, id}
static const struct option options[] = {
	OPTION("batch", BATCH), OPTION("epochs", EPOCHS), OPTION("steps", STEPS), OPTION("lr", LR),
	OPTION("seed", SEED), OPTION("tune", TUNE), OPTION("threads", THREADS), OPTION("data", DATA),
	OPTION("backend", BACKEND), OPTION("checkpoint", CHECKPOINT), OPTION("resume", RESUME),
	OPTION("static", STATIC), OPTION("bf16", BF16), OPTION("eval", EVAL),
	OPTION("overwrite", OVERWRITE),
	OPTION("help", HELP), {0}};
/* clang-format on */
static const char usage[] =
	"usage: capsnet [options]\n"
	"  --data DIR      MNIST's IDX files, plain or .gz (without it: drawn digits)\n"
	"  --batch N       samples a step (32)\n"
	"  --epochs N      passes over the data, in all (3)\n"
	"  --steps N       end after this step\n"
	"  --lr X          learning rate of Adam (0.001)\n"
	"  --seed N        of initial values and of the order of samples (0)\n"
	"  --tune S        search S seconds for faster kernels before the first step (0)\n"
	"  --threads N     (0: as many as there are)\n"
	"  --backend NAME  auto, interp, tcc or cc (auto)\n"
	"  --static        tune everything before the first step: same bits in every run\n"
	"  --checkpoint F  save there after each epoch, at the end and on ctrl-C; the one before "
	"is\n"
	"                  kept as F.prev\n"
	"  --overwrite     where the checkpoint exists and is not resumed from\n"
	"  --resume F      continue from that checkpoint\n"
	"  --bf16          long sums multiply numbers rounded to bf16\n"
	"  --eval          only measure the error on the test set\n"
	"  --help\n";

/* Reads the options into text and value; 0, or 2 for wrong usage. */
static int arguments(int argc, char **argv, const char **text, double *value)
{
	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (o == '?')
			return fputs(usage, stderr), 2;
		text[o] = optarg ? optarg : "";
		if (o > THREADS)
			continue;
		char *end;
		double v = value[o] = strtod(optarg, &end);
		int fits = v <= 1e9 && (o == LR ? v > 0 : v >= (o < LR) && v == (double)(int64_t)v);
		if (end == optarg || *end || !fits)
			return fprintf(stderr, "capsnet: --%s %s?\n%s", options[o].name, optarg,
				       usage),
			       2;
	}
	if (optind < argc)
		return fprintf(stderr, "capsnet: what is %s?\n%s", argv[optind], usage), 2;
	if (text[STEPS] && !text[EPOCHS])
		value[EPOCHS] = 0; /* no limit */
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const backends[] = {"auto", "interp", "tcc", "cc"};
	const char *text[HELP + 1] = {[BACKEND] = "auto"}, *data;
	double value[HELP + 1] = {[BATCH] = 32, [EPOCHS] = 3, [LR] = 1e-3};
	int backend = 0, status = arguments(argc, argv, text, value);
	if (status || text[HELP])
		return status ? status : fputs(usage, stdout) < 0;
	while (backend < 4 && strcmp(text[BACKEND], backends[backend]))
		backend++;
	if (backend == 4)
		return fprintf(stderr, "capsnet: no backend %s\n%s", text[BACKEND], usage), 2;

	ricci_report report = RICCI_REPORT();
	ricci_training t =
		RICCI_TRAINING(.lines = stdout, .progress = stderr, .picture = "loss.svg");
	t.options = &RICCI_OPTIONS(.backend = backend, .threads = (int)value[THREADS],
				   .static_mode = !!text[STATIC], .seed = (uint64_t)value[SEED]);
	t.epochs = (int)value[EPOCHS];
	t.steps = (uint64_t)value[STEPS];
	t.tune = value[TUNE];
	t.evaluate = !!text[EVAL];
	t.resume = text[RESUME];
	t.checkpoint = text[CHECKPOINT];
	t.overwrite = !!text[OVERWRITE];
	t.stop = ricci_interrupted(); /* ctrl-C ends the training, saved; a second one at once */

	ricci_graph *g = ricci_graph_new();
	data = text[DATA];
	t.train = data ? ricci_mnist(data, 0) : ricci_digits(6000, 1);
	if (t.train)
		t.test = data ? ricci_mnist(data, 1) : ricci_digits(1000, 2);
	status = 1;
	if (g && t.test) {
		network(g, &t, (int)value[BATCH], value[LR]);
		ricci_precision(g, text[BF16] ? RICCI_BF16 : RICCI_F32);
		if (!text[LR])
			t.rate = NULL; /* on resume, the rate of the file */
		status = ricci_train(&t, &report) != 0;
	}
	if (status)
		fprintf(stderr, "capsnet: %s\n", ricci_error_message());
	else if (report.stopped)
		fprintf(stderr, "capsnet: stopped after step %d\n", (int)report.step);
	ricci_graph_free(g);
	ricci_data_free(t.train);
	ricci_data_free(t.test);
	return report.stopped && !status ? 128 + report.stopped : status;
}
