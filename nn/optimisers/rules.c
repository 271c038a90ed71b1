/* rules.c - the table of optimisers: what a rule keeps for each parameter, and its equations.
 * In the programs p, g are the parameter and its gradient, X a state, X1 its next value, which
 * later states read, N the parameter's next value, and scalars: rate, the parameter's learning
 * rate; t, the number of this update, from 1; b, c, what `scalars` gives; the options of
 * ricci_optimiser; rest1 and rest2, which are 1 - beta1 and 1 - beta2. Invariant: a new rule is a
 * row here and a name in ricci_rule; nothing else knows the rules.
 *
 * Bias corrections 1/(1 - beta^t) are taken with expm1, against the cancellation of 1 - .999. */
#include "nn/optimisers/internal.h"

/* clang-format off */
#define CORRECTIONS \
	"b[] = -1.0 / expm1(f64(t[]) * log(beta1[])); c[] = -1.0 / expm1(f64(t[]) * log(beta2[]))"
#define MEAN {"M", ".moment1", "M1[...] = beta1[] * M[...] + rest1[] * g[...]"}
#define SQUARE {"V", ".moment2", "V1[...] = beta2[] * V[...] + rest2[] * g[...] * g[...]"}
#define ADAPTED "b[] * (M1[...] / (sqrt(V1[...] * c[]) + epsilon[]))"
#define GREATEST {"H", ".moment2_max", "H1[...] = max(H[...], V1[...])"}
#define BOUNDED "b[] * (M1[...] / (sqrt(H1[...] * c[]) + epsilon[]))"
#define MOMENT(update) {"M", ".moment", "M1[...] = momentum[] * M[...] + " update}
#define SCALED "g[...] / (sqrt(V1[...]) + epsilon[])"

const Rule optimiser_rule[RULE_COUNT] = {
	[RICCI_SGD] = {"sgd",
		.update = "N[...] = p[...] - rate[] * g[...]"},
	/* Polyak 1964, with the rate outside of the sum, as Sutskever et al. 2013 discuss */
	[RICCI_MOMENTUM] = {"momentum",
		.usual = {.momentum = 0.9},
		.state = {MOMENT("g[...]")},
		.update = "N[...] = p[...] - rate[] * M1[...]"},
	/* Sutskever, Martens, Dahl, Hinton 2013, in the form of PyTorch */
	[RICCI_NESTEROV] = {"nesterov",
		.usual = {.momentum = 0.9},
		.state = {MOMENT("g[...]")},
		.update = "N[...] = p[...] - rate[] * (g[...] + momentum[] * M1[...])"},
	/* Kingma, Ba 2015, algorithm 1 */
	[RICCI_ADAM] = {"adam",
		.usual = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
		.scalars = CORRECTIONS,
		.state = {MEAN, SQUARE},
		.update = "N[...] = p[...] - rate[] * " ADAPTED},
	/* Loshchilov, Hutter 2019, algorithm 2; the decay is multiplied by the rate, as in PyTorch */
	[RICCI_ADAMW] = {"adamw", .decay = true,
		.usual = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.01},
		.scalars = CORRECTIONS,
		.state = {MEAN, SQUARE},
		.update = "N[...] = p[...] - rate[] * decay[] * p[...] - rate[] * " ADAPTED},
	/* You et al. 2020, algorithm 2, with phi(z) = z; the ratio is 1 where a norm is 0 */
	[RICCI_LAMB] = {"lamb", .decay = true,
		.usual = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6},
		.scalars = CORRECTIONS,
		.state = {MEAN, SQUARE},
		.update = "U[...] = " ADAPTED " + decay[] * p[...];"
			  "A[] += p[...] * p[...]; B[] += U[...] * U[...];"
			  "Q[] = A[] > 0 && B[] > 0 ? sqrt(A[]) / sqrt(B[]) : 1;"
			  "N[...] = p[...] - rate[] * Q[] * U[...]"},
	/* Tieleman, Hinton 2012 (lecture 6e); epsilon outside of the root, as in PyTorch */
	[RICCI_RMSPROP] = {"rmsprop",
		.usual = {.beta2 = 0.99, .epsilon = 1e-8},
		.state = {SQUARE},
		.update = "N[...] = p[...] - rate[] * (" SCALED ")"},
	[RULE_RMSPROP_MOMENTUM] = {"rmsprop",
		.usual = {.beta2 = 0.99, .epsilon = 1e-8},
		.state = {SQUARE, MOMENT(SCALED)},
		.update = "N[...] = p[...] - rate[] * M1[...]"},
	/* Duchi, Hazan, Singer 2011, diagonal; epsilon as in PyTorch */
	[RICCI_ADAGRAD] = {"adagrad",
		.usual = {.epsilon = 1e-10},
		.state = {{"V", ".sum", "V1[...] = V[...] + g[...] * g[...]"}},
		.update = "N[...] = p[...] - rate[] * (" SCALED ")"},
	/* Reddi, Kale, Kumar 2018, algorithm 2, the corrections as in PyTorch */
	[RICCI_AMSGRAD] = {"amsgrad",
		.usual = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
		.scalars = CORRECTIONS,
		.state = {MEAN, SQUARE, GREATEST},
		.update = "N[...] = p[...] - rate[] * " BOUNDED},
	[RICCI_AMSGRADW] = {"amsgradw", .decay = true,
		.usual = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.01},
		.scalars = CORRECTIONS,
		.state = {MEAN, SQUARE, GREATEST},
		.update = "N[...] = p[...] - rate[] * decay[] * p[...] - rate[] * " BOUNDED},
};
/* clang-format on */
