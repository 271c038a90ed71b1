/* test_rounding.c - a small model whose weights are bf16 alone learns digits as one of f32 weights
 * does, by stochastic rounding, at a rate of which rounding to the nearest loses most; the same
 * numbers in every run. */
#include "nn/nn.h"
#include "tests/check.h"

enum { BATCH = 20, IMAGES = 200, PIXELS = 784 };

/* One layer by plain gradient descent; the loss of the last epoch. */
static double trained(ricci_type type, ricci_rounding_mode mode, int epochs)
{
	char step[80];
	ricci_report report = RICCI_REPORT();
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){BATCH, PIXELS}), *grad;
	ricci_tensor *y = ricci_input(g, "y", RICCI_I32, 1, (int64_t[]){BATCH});
	ricci_tensor *w =
		ricci_param(g, "w", type, 2, (int64_t[]){10, PIXELS}, ricci_lecun(PIXELS));
	ricci_tensor *z = ricci_op(g, "Z[b,n] += X[b,k] * f32(W[n,k])", x, w);
	ricci_training t =
		RICCI_TRAINING(.samples = x, .labels = y,
			       .misclassified = ricci_misclassified(z, y),
			       .loss = ricci_cross_entropy(z, y), .train = ricci_digits(IMAGES, 1),
			       .options = &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1,
							 .static_mode = 1, .seed = 42),
			       .epochs = epochs);
	ricci_grad(g, t.loss, NULL, 1, &w, &grad);
	snprintf(step, sizeof step, "N[n,k] = %s(f32(W[n,k]) - 0.001*f32(G[n,k]))",
		 type == RICCI_BF16 ? "bf16" : "f32");
	ricci_assign(g, w, ricci_op(g, step, w, grad));
	CHECK_INT(ricci_rounding(g, mode), 0);
	CHECK_REPORT(ricci_train(&t, &report) == 0, "%s", ricci_error_message());
	ricci_data_free(t.train);
	ricci_graph_free(g);
	return report.loss;
}

int main(void)
{
	enum { EPOCHS = 12 };
	double start = trained(RICCI_F32, RICCI_NEAREST, 1);
	double wide = trained(RICCI_F32, RICCI_NEAREST, EPOCHS);
	double nearest = trained(RICCI_BF16, RICCI_NEAREST, EPOCHS);
	double chance = trained(RICCI_BF16, RICCI_STOCHASTIC, EPOCHS);
	CHECK_REPORT(wide < start - 0.1, "f32: from %g to %g", start, wide);
	CHECK_REPORT(fabs(chance - wide) < 0.1 * (start - wide), "by chance: %g, f32: %g", chance,
		     wide);
	CHECK_REPORT(nearest > wide + 0.3 * (start - wide), "to the nearest: %g, f32: %g", nearest,
		     wide);
	CHECK(trained(RICCI_BF16, RICCI_STOCHASTIC, EPOCHS) == chance);
	return check_done();
}
