/* lltm.c - a model of characters: a cell without a forget gate, whose memory only grows.
 * The long-long-term memory of PyTorch's tutorial on extensions in C++ (Goldsborough 2018), which is
 * there to show what a cell of one's own takes: here it is four equations. (ricci_lltm() is the same.) */
#include "examples/example.h"

/* X: a row of the input; H, C: output and memory of the step before; N, E: the next ones. The gates
 * are parts of one product: input, output, new, the last through an elu. */
static const ricci_cell cell = {
	.size = sizeof cell,
	.name = "lltm",
	.states = "h h",
	.parameters = "weight_ih[3h,n] weight_hh[3h,h] bias_ih[3h]",
	.text = "X, H, C, W, U, B -> N, E:"
		"A[b,g] += X[b,k] * W[g,k]; R[b,g] += H[b,k] * U[g,k];"
		"G[b,g] = A[b,g] + R[b,g] + B[g]; s = C.size(1);"
		"u = G[b,2*s+j] > 0 ? G[b,2*s+j] : expm1(G[b,2*s+j]);"
		"E[b,j] = C[b,j] + u * sigmoid(G[b,j]) where j < s;"
		"N[b,j] = tanh(E[b,j]) * sigmoid(G[b,s+j]) where j < s",
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
		&(example){.name = "lltm",
			   .about = "Trains an LLTM to continue a text, character by character.",
			   .data = "a text, plain or .gz; without it: sums in words",
			   .batch = 32,
			   .bench_batch = 16,
			   .epochs = 5,
			   .lr = 0.002,
			   .option = own,
			   .load = example_text,
			   .network = network});
}
