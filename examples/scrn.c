/* scrn.c - a model of characters: a recurrent net with a context that changes slowly.
 * Mikolov, Joulin, Chopra, Mathieu, Ranzato 2014, "Learning longer memory in recurrent neural
 * networks", equations 3 to 5: the context is a mean of what was read, fading by 5% a step. (ricci_scrn()
 * is this cell; here it is written out, as you would write one of your own.) */
#include "examples/example.h"

/* X: a row of the input; H, S: hidden state and context of the step before; N, E: the next ones. */
static const ricci_cell cell = {
	.size = sizeof cell,
	.name = "scrn",
	.states = "h c",
	.parameters = "weight_ih[h,n] weight_hh[h,h] bias_ih[h] weight_ic[c,n] weight_ch[h,c]",
	.text = "X, H, S, W, U, B, V, P -> N, E:"
		"K[b,j] += X[b,k] * V[j,k];"
		"E[b,j] = 0.05 * K[b,j] + 0.95 * S[b,j];"
		"Q[b,j] += E[b,k] * P[j,k]; A[b,j] += X[b,k] * W[j,k]; R[b,j] += H[b,k] * U[j,k];"
		"N[b,j] = sigmoid(Q[b,j] + A[b,j] + B[j] + R[b,j])",
};

static void network(example *e)
{
	int hidden = example_size(e, "hidden", 1024), context = example_size(e, "context", 256);
	ricci_tensor *x = example_sequence(e, example_size(e, "length", 16), hidden);
	ricci_tensor *states[2]; /* of all steps */
	ricci_recurrent(x, "cell",
			&RICCI_RECURRENT(.cell = &cell, .hidden = hidden, .context = context,
					 .states = states));
	int out = e->bench ? hidden : example_vocabulary(e);
	ricci_tensor *u = ricci_linear_layer(states[0], "head", &RICCI_LINEAR(.out = out));
	ricci_tensor *v = ricci_linear_layer(states[1], "head_context",
					     &RICCI_LINEAR(.out = out, .no_bias = 1));
	example_predict_sequence(e, ricci_op(e->graph, "Y[t,b,k] = U[t,b,k] + V[t,b,k]", u, v));
	example_optimise(e, RICCI_OPTIMISER(.rule = RICCI_ADAM, .clip_norm = 1));
}

int main(int argc, char **argv)
{
	example_option own[] = {
		{"hidden", "N", "numbers that it remembers", NULL, 'n', 1, 256, NULL},
		{"context", "N", "numbers of the slow context", NULL, 'n', 1, 64, NULL},
		{"length", "N", "characters of a sample", NULL, 'n', 1, 64, NULL},
		{0}};
	return example_main(
		argc, argv,
		&(example){.name = "scrn",
			   .about = "Trains an SCRN to continue a text, character by character.",
			   .data = "a text, plain or .gz; without it: sums in words",
			   .batch = 32,
			   .bench_batch = 16,
			   .epochs = 5,
			   .lr = 0.002,
			   .option = own,
			   .load = example_text,
			   .network = network});
}
