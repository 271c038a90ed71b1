/* test_losses.c - losses, their gradients and metrics against PyTorch (vectors.py), finite
 * differences and plain C; what they say to wrong operands. */
#include "tests/nn/vectors.h"
#include "tests/memory_check.h"

enum { ROOM = 512 };

typedef struct Net {
	ricci_graph *g;
	ricci_tensor *input[6];
	double *data[6]; /* of f64 inputs; NULL for the others */
	void *labels[6];
	int n;
} Net;

static ricci_tensor *input(Net *net, double seed, double factor, int rank, const int64_t *shape)
{
	char name[8];
	snprintf(name, sizeof name, "x%d", net->n);
	ricci_tensor *t = ricci_input(net->g, name, RICCI_F64, rank, shape);
	size_t count = ricci_bytes(t) / sizeof(double);
	double *x = calloc(count, sizeof *x);
	values(seed, (int)count, x);
	for (size_t i = 0; i < count; i++)
		x[i] *= factor;
	net->data[net->n] = x;
	net->input[net->n++] = t;
	return t;
}

static ricci_tensor *labels(Net *net, const int *label, int rank, const int64_t *shape)
{
	char name[8];
	snprintf(name, sizeof name, "x%d", net->n);
	ricci_tensor *t = ricci_input(net->g, name, RICCI_I32, rank, shape);
	int32_t *copy = malloc(ricci_bytes(t));
	memcpy(copy, label, ricci_bytes(t));
	net->labels[net->n] = copy;
	net->input[net->n++] = t;
	return t;
}

/* One step over the outputs. Its status. */
static int run(Net *net, ricci_backend backend, int n, ricci_tensor **y, void **out)
{
	ricci_options o = RICCI_OPTIONS(.backend = backend, .threads = 1);
	ricci_session *s = ricci_session_new(net->g, &o, 0, n, y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	int status = s ? 0 : RICCI_EINVAL;
	for (int i = 0; i < net->n && !status; i++)
		status = ricci_feed(s, net->input[i],
				    net->data[i] ? (void *)net->data[i] : net->labels[i],
				    ricci_bytes(net->input[i]));
	if (!status)
		status = ricci_step(s);
	for (int i = 0; i < n && !status; i++)
		CHECK_INT(ricci_fetch(s, y[i], out[i], ricci_bytes(y[i])), 0);
	ricci_session_free(s);
	return status;
}

static void net_free(Net *net)
{
	for (int i = 0; i < net->n; i++) {
		free(net->data[i]);
		free(net->labels[i]);
	}
	ricci_graph_free(net->g);
}

/* The loss and its gradient with respect to the first input as PyTorch has them, on two backends. */
static void judge(Net *net, const char *name, ricci_tensor *loss)
{
	static double gradient[ROOM];
	char text[64];
	double value = 0;
	ricci_tensor *y[2] = {loss};
	CHECK_GRAPH(net->g);
	CHECK_INT(ricci_rank(loss), 0);
	ricci_grad(net->g, loss, NULL, 1, &net->input[0], &y[1]);
	CHECK_GRAPH(net->g);
	for (int k = 0; k < 2; k++) {
		CHECK_INT(run(net, k ? RICCI_BACKEND_TCC : RICCI_BACKEND_INTERP, 2, y,
			      (void *[]){&value, gradient}),
			  0);
		snprintf(text, sizeof text, "losses/%s/value", name);
		vector_check(text, 1, &value, 1e-12);
		snprintf(text, sizeof text, "losses/%s/gradient", name);
		vector_check(text, (int)(ricci_bytes(y[1]) / sizeof(double)), gradient, 1e-12);
	}
	net_free(net);
}

static const int label[] = {0, 4, 2, 1, 1, 3}, negative[] = {0, -100, 2, 1, -100, 3};

static void cross_entropy(const char *name, double factor, ricci_cross_entropy_options o,
			  const int *which, int weighted)
{
	Net net = {.g = ricci_graph_new()};
	ricci_tensor *x = input(&net, 5, factor, SHAPE(2, 3, 5));
	ricci_tensor *t = labels(&net, which, SHAPE(2, 3));
	if (weighted) {
		static const double weight[] = {0.5, 1, 2, 0.25, 1.5};
		o.weights = input(&net, 0, 1, SHAPE(5));
		memcpy(net.data[2], weight, sizeof weight);
	}
	judge(&net, name, ricci_cross_entropy_with(x, t, &o));
}

static void classes(void)
{
	cross_entropy("cross_entropy", 1, RICCI_CROSS_ENTROPY(), label, 0);
	cross_entropy("cross_entropy_large", 400, RICCI_CROSS_ENTROPY(), label, 0);
	cross_entropy("smoothing", 1, RICCI_CROSS_ENTROPY(.smoothing = 0.1), label, 0);
	cross_entropy("ignored", 1, RICCI_CROSS_ENTROPY(.ignored = &(int32_t){-100}), negative, 0);
	cross_entropy("ignored_class", 1, RICCI_CROSS_ENTROPY(.ignored = &(int32_t){1}), label, 0);
	cross_entropy("weights", 1, RICCI_CROSS_ENTROPY(), label, 1);
	cross_entropy("all_options", 1,
		      RICCI_CROSS_ENTROPY(.ignored = &(int32_t){-100}, .smoothing = 0.2), negative,
		      1);
	Net net = {.g = ricci_graph_new()};
	ricci_tensor *x = input(&net, 5, 1, SHAPE(2, 3, 5));
	judge(&net, "hinge", ricci_hinge_loss(x, labels(&net, label, SHAPE(2, 3)), 0.75));
}

/* Where no label counts the loss is 0, and so is its gradient. */
static void none_counts(void)
{
	Net net = {.g = ricci_graph_new()};
	double value = 1, gradient[10];
	ricci_tensor *x = input(&net, 5, 1, SHAPE(2, 5)), *y[2];
	ricci_tensor *t = labels(&net, (int[]){-1, -1}, SHAPE(2));
	y[0] = ricci_cross_entropy_with(
		x, t, &RICCI_CROSS_ENTROPY(.ignored = &(int32_t){-1}, .smoothing = 0.1));
	ricci_grad(net.g, y[0], NULL, 1, &x, &y[1]);
	CHECK_INT(run(&net, RICCI_BACKEND_INTERP, 2, y, (void *[]){&value, gradient}), 0);
	CHECK_NEAR(value, 0, 0);
	for (int i = 0; i < 10; i++)
		CHECK_NEAR(gradient[i], 0, 0);
	/* a label out of range is no ignored one */
	((int32_t *)net.labels[1])[0] = 5;
	CHECK_INT(run(&net, RICCI_BACKEND_INTERP, 2, y, (void *[]){&value, gradient}),
		  RICCI_EVALUE);
	((int32_t *)net.labels[1])[0] = -2;
	CHECK_INT(run(&net, RICCI_BACKEND_INTERP, 2, y, (void *[]){&value, gradient}),
		  RICCI_EVALUE);
	net_free(&net);
}

static void pair(const char *name, int kind)
{
	Net net = {.g = ricci_graph_new()};
	ricci_tensor *a = input(&net, 6, 1, SHAPE(3, 4)), *b = input(&net, 7, 1, SHAPE(3, 4));
	judge(&net, name,
	      kind == 0	  ? ricci_mean_squared_error(a, b)
	      : kind == 1 ? ricci_mean_absolute_error(a, b)
	      : kind == 2 ? ricci_huber_loss(a, b, 0.75)
			  : ricci_smooth_l1_loss(a, b, 0.375));
}

static void pairs(void)
{
	pair("squared", 0);
	pair("absolute", 1);
	pair("huber", 2);
	pair("smooth_l1", 3);
	Net net = {.g = ricci_graph_new()};
	ricci_tensor *z = input(&net, 8, 40, SHAPE(3, 4)), *t = input(&net, 9, 1, SHAPE(3, 4));
	for (int i = 0; i < 12; i++)
		net.data[1][i] = 1 / (1 + exp(-net.data[1][i]));
	net.data[0][0] = 0;
	judge(&net, "binary", ricci_binary_cross_entropy(z, t));

	net = (Net){.g = ricci_graph_new()};
	ricci_tensor *q = input(&net, 6, 1, SHAPE(3, 4)), *p = input(&net, 9, 1, SHAPE(2, 3, 4));
	for (int i = 0; i < 24; i += 4) {
		double sum = 0, *row = net.data[1] + i;
		for (int m = 0; m < 4; m++)
			sum += row[m] = exp(row[m]);
		for (int m = 0; m < 4; m++)
			row[m] /= sum;
	}
	net.data[1][0] = 0;
	q = ricci_op(net.g, "Y[b,i,j] = A[i,j] where b < 2", q);
	judge(&net, "kl", ricci_kl_divergence(q, p));
}

static ricci_tensor *ctc_net(Net *net, double factor, int shift, int counted, int blank)
{
	static const int mark[] = {1, 1, 2, 3, 4, 1, 2, 1, 1, 4, 4, 4};
	int own[12];
	for (int i = 0; i < 12; i++)
		own[i] = mark[i] - shift;
	ricci_tensor *x = input(net, 11, factor, SHAPE(8, 4, 5));
	ricci_tensor *t = labels(net, own, SHAPE(4, 3));
	ricci_tensor *steps = counted ? labels(net, (int[]){8, 6, 7, 5}, SHAPE(4)) : NULL;
	ricci_tensor *lengths = counted ? labels(net, (int[]){3, 2, 1, 3}, SHAPE(4)) : NULL;
	return ricci_ctc_loss(x, t, steps, lengths, blank);
}

static void ctc(void)
{
	Net net = {.g = ricci_graph_new()};
	judge(&net, "ctc", ctc_net(&net, 1, 0, 1, 0));
	net = (Net){.g = ricci_graph_new()};
	judge(&net, "ctc_full", ctc_net(&net, 20, 0, 0, 0));
	net = (Net){.g = ricci_graph_new()};
	judge(&net, "ctc_blank", ctc_net(&net, 1, 1, 1, 4));

	/* finite differences */
	net = (Net){.g = ricci_graph_new()};
	double gradient[160], up, down;
	ricci_tensor *y[2] = {ctc_net(&net, 1, 0, 1, 0)};
	ricci_grad(net.g, y[0], NULL, 1, &net.input[0], &y[1]);
	run(&net, RICCI_BACKEND_INTERP, 2, y, (void *[]){&up, gradient});
	for (int i = 0; i < 160; i += 23) {
		double x = net.data[0][i], h = 1e-5;
		net.data[0][i] = x + h;
		run(&net, RICCI_BACKEND_INTERP, 1, y, (void *[]){&up});
		net.data[0][i] = x - h;
		run(&net, RICCI_BACKEND_INTERP, 1, y, (void *[]){&down});
		net.data[0][i] = x;
		CHECK_NEAR(gradient[i], (up - down) / (2 * h), 1e-8);
	}
	/* labels that repeat need a blank between them: 3 equal ones take 5 steps */
	((int32_t *)net.labels[2])[3] = 4;
	CHECK_INT(run(&net, RICCI_BACKEND_INTERP, 2, y, (void *[]){&up, gradient}), 0);
	CHECK(isinf(up));
	for (int i = 0; i < 160; i++)
		CHECK(i / 5 % 4 == 3 ? gradient[i] == 0 : isfinite(gradient[i]));
	/* what is counted is checked */
	((int32_t *)net.labels[2])[3] = 9;
	CHECK_INT(run(&net, RICCI_BACKEND_INTERP, 2, y, (void *[]){&up, gradient}), RICCI_EVALUE);
	((int32_t *)net.labels[2])[3] = 5;
	((int32_t *)net.labels[3])[3] = 4;
	CHECK_INT(run(&net, RICCI_BACKEND_INTERP, 2, y, (void *[]){&up, gradient}), RICCI_EVALUE);
	net_free(&net);
}

static void metrics(void)
{
	Net net = {.g = ricci_graph_new()};
	static const double score[6][4] = {{0, 1, 2, 3},   {3, 2, 2, 0},     {5, 5, 5, 5},
					   {0, NAN, 9, 1}, {-1, -2, -3, -4}, {1, 2, 0, 3}};
	static const int class[6] = {1, 2, 0, 2, 0, 1};
	ricci_tensor *x = input(&net, 0, 1, SHAPE(2, 3, 4));
	ricci_tensor *t = labels(&net, class, SHAPE(2, 3));
	memcpy(net.data[0], score, sizeof score);
	int32_t top[3][6], table[4][4];
	double nats = 1.25, perplexity, bits;
	ricci_tensor *y[] = {ricci_misclassified_top(x, t, 1), ricci_misclassified_top(x, t, 2),
			     ricci_misclassified_top(x, t, 3), ricci_confusion(x, t)};
	CHECK_GRAPH(net.g);
	CHECK_INT(ricci_rank(y[0]), 2);
	for (int backend = 0; backend < 2; backend++) {
		CHECK_INT(run(&net, backend ? RICCI_BACKEND_TCC : RICCI_BACKEND_INTERP, 4, y,
			      (void *[]){top[0], top[1], top[2], table}),
			  0);
		for (int k = 1; k <= 3; k++)
			for (int i = 0; i < 6; i++) {
				int before = 0;
				for (int m = 0; m < 4; m++)
					before += m != class[i] &&
						  !(score[i][class[i]] > score[i][m]);
				CHECK_INT(top[k - 1][i], before >= k);
			}
		static const int want[4][4] = {{2, 0, 0, 0}, {0, 0, 0, 2}, {1, 0, 0, 0}};
		for (int i = 0; i < 16; i++)
			CHECK_INT(table[i / 4][i % 4], want[i / 4][i % 4]);
	}
	net_free(&net);

	net = (Net){.g = ricci_graph_new()};
	ricci_tensor *l = input(&net, 0, 1, 0, NULL);
	net.data[0][0] = nats;
	run(&net, RICCI_BACKEND_INTERP, 2, (ricci_tensor *[]){ricci_perplexity(l), ricci_bits(l)},
	    (void *[]){&perplexity, &bits});
	CHECK_NEAR(perplexity, exp(nats), 1e-14);
	CHECK_NEAR(bits, nats / log(2), 1e-14);
	net_free(&net);
}

#define WRONG(code, message, expression)                                                           \
	do {                                                                                       \
		ricci_graph *g = ricci_graph_new();                                                \
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(2, 3, 4));                  \
		ricci_tensor *v = ricci_input(g, "v", RICCI_F32, SHAPE(3));                        \
		ricci_tensor *t = ricci_input(g, "t", RICCI_I32, SHAPE(2, 3));                     \
		(void)v, (void)t;                                                                  \
		ricci_tensor *y_ = (expression);                                                   \
		CHECK(y_ != NULL);                                                                 \
		CHECK_INT(ricci_graph_error(g), code);                                             \
		CHECK_STR(ricci_error_message(), message);                                         \
		CHECK(ricci_relu(x) == y_);                                                        \
		ricci_graph_free(g);                                                               \
	} while (0)

static void wrong(void)
{
	WRONG(RICCI_ESHAPE,
	      "ricci_cross_entropy: labels [batch, ...] expected, 'v' has 1 dimensions",
	      ricci_cross_entropy(x, v));
	WRONG(RICCI_EINVAL, "ricci_cross_entropy_with: smoothing is 1.5, it must be 0 to 1",
	      ricci_cross_entropy_with(x, t, &RICCI_CROSS_ENTROPY(.smoothing = 1.5)));
	WRONG(RICCI_EINVAL, "ricci_cross_entropy_with: label 4 is ignored, there are 4 classes",
	      ricci_cross_entropy_with(x, t, &RICCI_CROSS_ENTROPY(.ignored = &(int32_t){4})));
	WRONG(RICCI_ESHAPE, "ricci_cross_entropy_with: weights [class] of 4 classes expected",
	      ricci_cross_entropy_with(x, t, &RICCI_CROSS_ENTROPY(.weights = v)));
	WRONG(RICCI_ESHAPE, "ricci_hinge_loss: the margin is nan", ricci_hinge_loss(x, t, NAN));
	WRONG(RICCI_ESHAPE, "ricci_huber_loss: delta is 0, it must be finite, and more than 0",
	      ricci_huber_loss(x, x, 0));
	WRONG(RICCI_ESHAPE, "ricci_smooth_l1_loss: beta is -1, it must be finite, and more than 0",
	      ricci_smooth_l1_loss(x, x, -1));
	WRONG(RICCI_ESHAPE, "ricci_mean_absolute_error: the two tensors differ in shape",
	      ricci_mean_absolute_error(x, v));
	WRONG(RICCI_ESHAPE, "ricci_binary_cross_entropy: no tensor given for logits and targets",
	      ricci_binary_cross_entropy(x, NULL));
	WRONG(RICCI_ESHAPE, "ricci_kl_divergence: the two tensors differ in shape",
	      ricci_kl_divergence(x, v));
	WRONG(RICCI_ESHAPE,
	      "ricci_ctc_loss: logits [step, batch, class] expected, 'v' has 1 dimensions",
	      ricci_ctc_loss(v, t, NULL, NULL, 0));
	WRONG(RICCI_ESHAPE, "ricci_ctc_loss: the blank is class 4, there are 4 classes",
	      ricci_ctc_loss(x, t, NULL, NULL, 4));
	WRONG(RICCI_ESHAPE, "ricci_misclassified_top: k is 0, it must be 1 or more",
	      ricci_misclassified_top(x, t, 0));
	WRONG(RICCI_ESHAPE, "ricci_nll_loss: labels [batch, ...] expected, 'v' has 1 dimensions",
	      ricci_nll_loss(x, v));
	WRONG(RICCI_ESHAPE, "ricci_ranking_loss: the two tensors differ in shape",
	      ricci_ranking_loss(x, x, v, 0));
	WRONG(RICCI_ESHAPE, "ricci_ranking_loss: the margin is inf, it must be finite",
	      ricci_ranking_loss(x, x, x, INFINITY));
	WRONG(RICCI_ESHAPE, "ricci_poisson_nll_loss: the two tensors differ in shape",
	      ricci_poisson_nll_loss(x, v));
	WRONG(RICCI_ESHAPE, "ricci_gaussian_nll_loss: no tensor given for means and variances",
	      ricci_gaussian_nll_loss(x, x, NULL));
	WRONG(RICCI_ESHAPE,
	      "ricci_cosine_similarity: epsilon is -1, it must be finite, and 0 or more",
	      ricci_cosine_similarity(x, x, -1));
	WRONG(RICCI_ESHAPE,
	      "ricci_pairwise_distance: the power is 0.5, it must be finite, and 1 or more",
	      ricci_pairwise_distance(x, x, 0.5, 0));
	WRONG(RICCI_ESHAPE,
	      "ricci_triplet_loss: the margin is -1, it must be finite, and 0 or more",
	      ricci_triplet_loss(x, x, x, -1));
	WRONG(RICCI_ESHAPE, "ricci_triplet_loss: the two tensors differ in shape",
	      ricci_triplet_loss(x, x, v, 1));
	WRONG(RICCI_ESHAPE,
	      "ricci_cosine_embedding_loss: the margin is -2, it must be finite, and -1 or more",
	      ricci_cosine_embedding_loss(x, x, v, -2));
	WRONG(RICCI_ESHAPE, "ricci_cosine_embedding_loss: no tensor given for targets [...]",
	      ricci_cosine_embedding_loss(x, x, NULL, 0));
	CHECK(!ricci_triplet_loss(NULL, NULL, NULL, 1) && !ricci_nll_loss(NULL, NULL));
	CHECK(!ricci_ctc_loss(NULL, NULL, NULL, NULL, 0));
	CHECK(!ricci_binary_cross_entropy(NULL, NULL));
	CHECK(!ricci_cross_entropy_with(NULL, NULL, NULL));
	CHECK(!ricci_huber_loss(NULL, NULL, 1));
	CHECK(!ricci_confusion(NULL, NULL));
	CHECK(!ricci_bits(NULL));
}

static int build(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(2, 3, 4));
	ricci_tensor *t = ricci_input(g, "t", RICCI_I32, SHAPE(2, 3));
	ricci_tensor *n = ricci_input(g, "n", RICCI_I32, SHAPE(3));
	ricci_tensor *m = ricci_input(g, "m", RICCI_I32, SHAPE(3, 2));
	ricci_cross_entropy_with(x, t,
				 &RICCI_CROSS_ENTROPY(.smoothing = 0.1, .ignored = &(int32_t){-1}));
	ricci_huber_loss(x, x, 1);
	ricci_binary_cross_entropy(x, x);
	ricci_confusion(x, t);
	ricci_ctc_loss(x, m, n, n, 0);
	int code = g ? ricci_graph_error(g) : RICCI_ENOMEM;
	ricci_graph_free(g);
	return code;
}

static void initialisers(void)
{
	const ricci_init init[] = {
		ricci_lecun(8),		 ricci_lecun_uniform(8), ricci_he(8),
		ricci_he_uniform(8),	 ricci_glorot(8, 24),	 ricci_glorot_normal(8, 24),
		ricci_uniform_fan_in(16)};
	/* kind, and the deviation or bound as their papers and PyTorch have it */
	const struct {
		int kind;
		double a;
	} want[] = {{1, sqrt(1. / 8)},	{2, sqrt(3. / 8)},  {1, sqrt(2. / 8)}, {2, sqrt(6. / 8)},
		    {2, sqrt(6. / 32)}, {1, sqrt(2. / 32)}, {2, 0.25}};
	for (int i = 0; i < 7; i++) {
		CHECK_INT(init[i].kind, want[i].kind);
		CHECK_NEAR(init[i].kind == 1 ? init[i].a : init[i].b, want[i].a, 1e-15);
		CHECK(init[i].kind == 1 || init[i].a == -init[i].b);
	}
}

/* The moments of 100,000 numbers, and their bound; the same whatever the threads. */
static void truncated(void)
{
	enum { N = 100000 };
	static float x[2][N];
	double sum = 0, square = 0, most = 0;
	for (int k = 0; k < 2; k++) {
		ricci_graph *g = ricci_graph_new();
		ricci_tensor *p =
			ricci_param(g, "p", RICCI_F32, SHAPE(N), ricci_truncated_normal(0.5, 1));
		ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1 + k);
		ricci_tensor *y = ricci_op(g, "Y[i] = P[i] * 1.0", p);
		ricci_session *s = ricci_session_new(g, &o, 0, 1, &y);
		CHECK_REPORT(s != NULL, "%s", ricci_error_message());
		CHECK_INT(ricci_fetch(s, p, x[k], sizeof x[k]), 0);
		ricci_session_free(s);
		ricci_graph_free(g);
	}
	CHECK(!memcmp(x[0], x[1], sizeof x[0]));
	for (int i = 0; i < N; i++) {
		sum += x[0][i];
		square += (double)x[0][i] * x[0][i];
		most = fmax(most, fabs(x[0][i]));
	}
	/* of a normal within two deviations: 1 - 4 phi(2) / (2 Phi(2) - 1) */
	double inside = erf(sqrt(2)), variance = 1 - 4 * exp(-2) / sqrt(2 * acos(-1)) / inside;
	CHECK_NEAR(sum / N, 0, 5 * 0.5 / sqrt(N));
	CHECK_NEAR(square / N, 0.25 * variance, 0.25 * 0.02);
	CHECK(most <= 1 && most > 0.99);

	ricci_graph *g = ricci_graph_new();
	ricci_param(g, "p", RICCI_F32, SHAPE(2), ricci_truncated_normal(1, 0.01));
	CHECK_INT(ricci_graph_error(g), RICCI_EINVAL);
	CHECK_STR(
		ricci_error_message(),
		"ricci_param p: a truncated normal of deviation 1 within 0.01; the deviation must "
		"be positive, the bound at least a tenth of it");
	ricci_graph_free(g);
}

int main(void)
{
	classes();
	none_counts();
	pairs();
	ctc();
	metrics();
	wrong();
	initialisers();
	truncated();
	check_memory(build);
	return check_done();
}
