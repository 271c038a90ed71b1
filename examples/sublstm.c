/* sublstm.c - a model of characters: an LSTM whose gates subtract, as inhibition in the cortex does.
 * Costa, Assael, Shillingford, de Freitas, Vogels 2017, "Cortical microcircuits as gated-recurrent
 * neural networks", equation 4. (ricci_sublstm() is this cell; here it is written out, as you would
 * write one of your own.) */
#include "examples/example.h"

/* X: a row of the input; H, C: output and memory of the step before; N, E: the next ones. The gates
 * are parts of one product: input, forget, new, output, all through the logistic function. */
static const ricci_cell cell = {
	.size = sizeof cell,
	.name = "sublstm",
	.states = "h h",
	.parameters = "weight_ih[4h,n] weight_hh[4h,h] bias_ih[4h]",
	.text = "X, H, C, W, U, B -> N, E:"
		"A[b,g] += X[b,k] * W[g,k]; R[b,g] += H[b,k] * U[g,k];"
		"G[b,g] = sigmoid(A[b,g] + R[b,g] + B[g]); s = C.size(1);"
		"E[b,j] = G[b,s+j] * C[b,j] + G[b,2*s+j] - G[b,j] where j < s;"
		"N[b,j] = sigmoid(E[b,j]) - G[b,3*s+j] where j < s",
};

static void network(example *e)
{
	int hidden = example_size(e, "hidden", 1024);
	ricci_tensor *x = example_sequence(e, example_size(e, "length", 16), hidden);
	ricci_tensor *y =
		ricci_recurrent(x, "cell", &RICCI_RECURRENT(.cell = &cell, .hidden = hidden));
	if (!e->bench)
		y = ricci_linear_layer(y, "head", &RICCI_LINEAR(.out = example_vocabulary(e)));
	example_predict_sequence(e, y);
	example_optimise(e, RICCI_OPTIMISER(.rule = RICCI_ADAM, .clip_norm = 1));
}

int main(int argc, char **argv)
{
	example_option own[] = {
		{"hidden", "N", "numbers that it remembers", NULL, 'n', 1, 256, NULL},
		{"length", "N", "characters of a sample", NULL, 'n', 1, 64, NULL},
		{0}};
	return example_main(
		argc, argv,
		&(example){.name = "sublstm",
			   .about = "Trains a subLSTM to continue a text, character by character.",
			   .data = "a text, plain or .gz; without it: sums in words",
			   .batch = 32,
			   .bench_batch = 16,
			   .epochs = 5,
			   .lr = 0.002,
			   .option = own,
			   .load = example_text,
			   .network = network});
}
