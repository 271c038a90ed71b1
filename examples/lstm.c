/* lstm.c - a recurrent network that reads digits row by row: a loop over time on a page.
 * An LSTM (Hochreiter, Schmidhuber 1997; with forget gates, Gers et al. 2000) sees one row of the
 * image a step, and says after the last which digit it was. The cell is two equations of sums and
 * two of gates; ricci_scan repeats it, and its gradient is a loop backwards. (ricci_recurrent has
 * this cell and others ready.) */
#include "examples/example.h"

#define INPUT(name, ...)       ricci_input(g, name, e->type, DIMS(__VA_ARGS__))
#define PARAM(name, init, ...) ricci_param(g, name, e->type, DIMS(__VA_ARGS__), init)

enum { STEPS = 28, PIXELS = 28, CLASSES = 10 };

/* rows [STEPS, batch, PIXELS] -> [batch, hidden], what the cell remembers after the last. */
static ricci_tensor *lstm(const example *e, ricci_tensor *rows, int hidden)
{
	ricci_graph *g = e->graph;
	ricci_tensor *w = PARAM("cell_w", ricci_lecun(PIXELS), PIXELS, 4, hidden);
	ricci_tensor *u = PARAM("cell_u", ricci_lecun(hidden), hidden, 4, hidden);
	ricci_tensor *bias = PARAM("cell_c", ricci_constant(0), 4, hidden);

	/* a step: inputs stand for its row, and for what the step before left */
	ricci_tensor *x = INPUT("x", e->batch, PIXELS), *h = INPUT("h", e->batch, hidden);
	ricci_tensor *c = INPUT("c", e->batch, hidden);
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
			   .ncarry = 2, .carry = (ricci_carry[]){{h, NULL, out}, {c, NULL, cell}});
	ricci_scan(g, &loop, last, NULL);
	return last[0];
}

static void network(example *e)
{
	ricci_graph *g = e->graph;
	ricci_training *t = &e->training;
	int hidden = (int)example_option_of(e, "hidden")->value;
	t->samples = INPUT("image", e->batch, STEPS, PIXELS);
	t->labels = ricci_input(g, "label", RICCI_I32, DIMS(e->batch));
	ricci_tensor *rows = ricci_op(g, "R[t,b,i] = X[b,t,i]", t->samples);
	ricci_tensor *w = PARAM("out_w", ricci_lecun(hidden), CLASSES, hidden);
	ricci_tensor *bias = PARAM("out_c", ricci_constant(0), CLASSES);

	e->output = ricci_linear(lstm(e, rows, hidden), w, bias);
	t->loss = ricci_cross_entropy(e->output, t->labels);
	t->misclassified = ricci_misclassified(e->output, t->labels);
	example_optimise(e, RICCI_OPTIMISER(.rule = RICCI_ADAM));
}

int main(int argc, char **argv)
{
	example_option own[] = {{"hidden", "N", "what the cell remembers", NULL, 'n', 1, 128, NULL},
				{0}};
	return example_main(
		argc, argv,
		&(example){.name = "lstm",
			   .about = "Trains an LSTM that reads drawn digits, or MNIST, by rows.",
			   .data = "MNIST's IDX files, plain or .gz; without it digits are drawn",
			   .batch = 64,
			   .epochs = 5,
			   .lr = 0.002,
			   .option = own,
			   .load = example_digits,
			   .network = network});
}
