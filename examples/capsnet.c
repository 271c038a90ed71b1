/* capsnet.c - a capsule network that learns to read digits.
 * After Sabour, Frosst, Hinton 2017, "Dynamic routing between capsules", with 4x4 matrices as poses:
 * two convolutions, two convolutions of capsules, votes, routing by agreement, margin loss. */
#include "examples/example.h"

#define PARAM(name, init, ...) ricci_param(g, name, e->type, DIMS(__VA_ARGS__), init)

static void network(example *e)
{
	ricci_graph *g = e->graph;
	ricci_training *t = &e->training;
	ricci_tensor *image = ricci_input(g, "image", e->type, DIMS(e->batch, 1, 28, 28));
	ricci_tensor *label = ricci_input(g, "label", RICCI_I32, DIMS(e->batch));
	int capsules = (int)example_option_of(e, "capsules")->value; /* types in a layer */
	ricci_tensor *stem = PARAM("stem_w", ricci_he(25), 64, 1, 5, 5);
	ricci_tensor *stem_c = PARAM("stem_c", ricci_constant(0), 64);
	ricci_tensor *primary = PARAM("primary_w", ricci_he(64), 256, 64, 1, 1);
	ricci_tensor *primary_c = PARAM("primary_c", ricci_constant(0), 256);
	ricci_tensor *caps1 = PARAM("caps1", ricci_lecun(16 * 36), capsules, 16, 3, 3, 4, 4);
	ricci_tensor *caps2 =
		PARAM("caps2", ricci_lecun(capsules * 36), capsules, capsules, 3, 3, 4, 4);
	ricci_tensor *votes = PARAM("votes", ricci_lecun(4), 16 * capsules, 10, 4, 4);

	ricci_tensor *x = e->augment ? ricci_random_shift(image, 2, 1) : image;
	x = ricci_relu(ricci_conv2d(x, stem, stem_c, 2, 2));
	x = ricci_capsules(ricci_conv2d(x, primary, primary_c, 1, 0), 4, 4);
	/* a layer is nothing but equations: this is ricci_capsule_conv(x, caps1, 2) */
	x = ricci_op(g, "Y[b,k,p,q,i,j] += X[b,c,2*p+r,2*q+s,i,t] * W[k,c,r,s,t,j]", x, caps1);
	x = ricci_squash(x, 2);
	x = ricci_squash(ricci_capsule_conv(x, caps2, 1), 2);
	x = ricci_routing(ricci_votes(x, votes), 3);

	e->output = x;
	t->samples = image;
	t->labels = label;
	t->loss = ricci_margin_loss(x, label);
	t->misclassified = ricci_misclassified(x, label);
	example_optimise(e, RICCI_OPTIMISER(.rule = RICCI_ADAM));
}

int main(int argc, char **argv)
{
	example_option own[] = {
		{"capsules", "N", "types of capsules in each layer", NULL, 'n', 1, 32, NULL}, {0}};
	return example_main(
		argc, argv,
		&(example){.name = "capsnet",
			   .about = "Trains a capsule network on drawn digits, or on MNIST.",
			   .data = "MNIST's IDX files, plain or .gz; without it digits are drawn",
			   .batch = 32,
			   .epochs = 3,
			   .lr = 1e-3,
			   .augments = 1,
			   .option = own,
			   .load = example_digits,
			   .network = network});
}
