/* shufflenet.c - a small network of grouped convolutions that names what is in an image.
 * Zhang, Zhou, Lin, Sun 2018, "ShuffleNet: an extremely efficient convolutional neural network for
 * mobile devices", table 1 with 3 groups, and a stem of stride 1 without pooling for images of
 * 32 x 32. */
#include "examples/example.h"

enum { GROUPS = 3 };

/* Figure 2: 1x1 in groups, a shuffle, 3x3 of each channel by itself, 1x1 in groups. With stride 1 it
 * is added to x, with 2 it stands beside the mean of x. */
static ricci_tensor *unit(ricci_tensor *x, int out, int stride, int groups)
{
	int in = (int)ricci_extent(x, 1), inner = out / 4;
	ricci_tensor *y = ricci_relu(example_conv_norm(x, "conv1", "bn1", inner, 1, 1, groups));
	y = ricci_channel_shuffle(y, GROUPS);
	y = example_conv_norm(y, "conv2", "bn2", inner, 3, stride, inner);
	y = example_conv_norm(y, "conv3", "bn3", stride > 1 ? out - in : out, 1, 1, GROUPS);
	if (stride == 1)
		return ricci_relu(
			ricci_op(ricci_graph_of(x), "Z[b,c,p,q] = X[b,c,p,q] + Y[b,c,p,q]", x, y));
	x = ricci_avg_pool(x, &RICCI_POOL(.kernel = 3, .stride = 2, .pad = 1));
	return ricci_relu(ricci_concat(2, (ricci_tensor *[]){x, y}, 1));
}

static void network(example *e)
{
	static const int counts[3] = {4, 8, 4};
	ricci_graph *g = e->graph;
	ricci_training *t = &e->training;
	int width = (int)example_option_of(e, "width")->value;
	ricci_tensor *image = ricci_input(g, "image", e->type, DIMS(e->batch, 3, 32, 32));
	ricci_tensor *label = ricci_input(g, "label", RICCI_I32, DIMS(e->batch));

	ricci_tensor *x = example_augmented(e, image);
	x = ricci_relu(example_conv_norm(x, "conv1", "bn1", 24, 3, 1, 1));
	for (int stage = 0; stage < 3; stage++)
		for (int i = 0; i < counts[stage]; i++) {
			char name[24];
			snprintf(name, sizeof name, "stage%d.%d", stage + 2, i);
			ricci_scope_begin(g, name);
			/* the first 1x1 has few channels, so no groups (section 3.2) */
			x = unit(x, width << stage, i ? 1 : 2, stage || i ? GROUPS : 1);
			ricci_scope_end(g);
		}
	x = ricci_linear_layer(ricci_global_avg_pool(x), "fc", &RICCI_LINEAR(.out = 10));

	e->output = x;
	t->samples = image;
	t->labels = label;
	t->loss = ricci_cross_entropy(x, label);
	t->misclassified = ricci_misclassified(x, label);
	example_optimise(e,
			 RICCI_OPTIMISER(.rule = RICCI_MOMENTUM, .momentum = 0.9, .decay = 4e-5));
}

int main(int argc, char **argv)
{
	example_option own[] = {{"width", "N",
				 "channels of the first stage, a multiple of 12 from 36 on", NULL,
				 'n', 36, 240, NULL},
				{0}};
	return example_main(
		argc, argv,
		&(example){.name = "shufflenet",
			   .about = "Trains ShuffleNet on drawn digits, or on CIFAR-10.",
			   .data = "CIFAR-10, binary or IDX; without it digits are drawn",
			   .batch = 64,
			   .bench_batch = 16,
			   .epochs = 3,
			   .lr = 0.05,
			   .augments = 1,
			   .option = own,
			   .load = example_images,
			   .network = network});
}
