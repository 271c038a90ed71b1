/* rules.c - the table of optimisers: what a rule keeps for each parameter, and its equations.
 * In the equations p, g are the parameter and its gradient, X the state of that letter, X1 its next
 * value, N the parameter's next value, rate the parameter's learning rate, and t the number of this
 * update, from 1. Names without brackets are the options of ricci_optimiser; rest1 and rest2 are
 * 1 - beta1 and 1 - beta2. Invariant: a new rule is a row here and a name in ricci_rule; nothing
 * else knows the rules.
 *
 * Bias corrections 1/(1 - beta^t) are taken with expm1, against the cancellation of 1 - .999. */
#include "nn/optimisers/internal.h"

/* clang-format off */
#define MOMENT_STATES {{"M", ".moment1"}, {"V", ".moment2"}}
#define CORRECTIONS \
	"b[] = -1.0 / expm1(f64(t[]) * log(beta1)); c[] = -1.0 / expm1(f64(t[]) * log(beta2))"
#define SQUARES "V1[@] = beta2 * V[@] + rest2 * g[@] * g[@];"
#define MOMENTS "M1[@] = beta1 * M[@] + rest1 * g[@];" SQUARES
#define ADAPTED "$(b[]) * (M1[@] / (sqrt(V1[@] * $(c[])) + epsilon))"

const Rule optimiser_rule[RULE_COUNT] = {
	[RICCI_SGD] = {"sgd",
		.equations = "N[@] = p[@] - rate[] * g[@]"},
	/* Polyak 1964, with the rate outside of the sum, as Sutskever et al. 2013 discuss */
	[RICCI_MOMENTUM] = {"momentum",
		.usual = {.momentum = 0.9},
		.state = {{"M", ".moment"}},
		.equations = "M1[@] = momentum * M[@] + g[@];"
			     "N[@] = p[@] - rate[] * M1[@]"},
	/* Sutskever, Martens, Dahl, Hinton 2013, in the form of PyTorch */
	[RICCI_NESTEROV] = {"nesterov",
		.usual = {.momentum = 0.9},
		.state = {{"M", ".moment"}},
		.equations = "M1[@] = momentum * M[@] + g[@];"
			     "N[@] = p[@] - rate[] * (g[@] + momentum * M1[@])"},
	/* Kingma, Ba 2015, algorithm 1 */
	[RICCI_ADAM] = {"adam",
		.usual = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
		.state = MOMENT_STATES,
		.scalars = CORRECTIONS,
		.equations = MOMENTS
			     "N[@] = p[@] - rate[] * " ADAPTED},
	/* Loshchilov, Hutter 2019, algorithm 2; the decay is multiplied by the rate, as in PyTorch */
	[RICCI_ADAMW] = {"adamw", .decay = true,
		.usual = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.01},
		.state = MOMENT_STATES,
		.scalars = CORRECTIONS,
		.equations = MOMENTS
			     "N[@] = p[@] - rate[] * decay * p[@] - rate[] * " ADAPTED},
	/* You et al. 2020, algorithm 2, with phi(z) = z; the ratio is 1 where a norm is 0 */
	[RICCI_LAMB] = {"lamb", .decay = true,
		.usual = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6},
		.state = MOMENT_STATES,
		.scalars = CORRECTIONS,
		.equations = MOMENTS
			     "U[@] = " ADAPTED " + decay * p[@];"
			     "A[] += p[@] * p[@]; B[] += U[@] * U[@];"
			     "Q[] = A[] > 0 && B[] > 0 ? sqrt(A[]) / sqrt(B[]) : 1;"
			     "N[@] = p[@] - rate[] * Q[] * U[@]"},
	/* Tieleman, Hinton 2012 (lecture 6e); epsilon outside of the root, as in PyTorch */
	[RICCI_RMSPROP] = {"rmsprop",
		.usual = {.beta2 = 0.99, .epsilon = 1e-8},
		.state = {{"V", ".moment2"}},
		.equations = SQUARES
			     "N[@] = p[@] - rate[] * (g[@] / (sqrt(V1[@]) + epsilon))"},
	[RULE_RMSPROP_MOMENTUM] = {"rmsprop",
		.usual = {.beta2 = 0.99, .epsilon = 1e-8},
		.state = {{"V", ".moment2"}, {"M", ".moment"}},
		.equations = SQUARES
			     "M1[@] = momentum * M[@] + g[@] / (sqrt(V1[@]) + epsilon);"
			     "N[@] = p[@] - rate[] * M1[@]"},
	/* Duchi, Hazan, Singer 2011, diagonal; epsilon as in PyTorch */
	[RICCI_ADAGRAD] = {"adagrad",
		.usual = {.epsilon = 1e-10},
		.state = {{"V", ".sum"}},
		.equations = "V1[@] = V[@] + g[@] * g[@];"
			     "N[@] = p[@] - rate[] * (g[@] / (sqrt(V1[@]) + epsilon))"},
};
/* clang-format on */
