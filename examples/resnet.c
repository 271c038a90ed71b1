/* resnet.c - a residual network that names what is in an image.
 * He, Zhang, Ren, Sun 2016, "Deep residual learning for image recognition": 18 layers for images of
 * 32 x 32 (a stem of 3x3 without pooling), or 50 for 224 x 224, with the stride in the bottleneck's
 * 3x3 (Goyal et al. 2017). Names of parameters are those of torchvision.models.resnet. */
#include "examples/example.h"

/* Two convolutions of 3x3, or 1x1, 3x3, 1x1 with four times the channels at the end, added to x. */
static ricci_tensor *block(ricci_tensor *x, int width, int stride, int bottleneck)
{
	int out = bottleneck ? 4 * width : width;
	ricci_tensor *y = x;
	if (bottleneck) {
		y = ricci_relu(example_conv_norm(y, "conv1", "bn1", width, 1, 1, 1));
		y = ricci_relu(example_conv_norm(y, "conv2", "bn2", width, 3, stride, 1));
		y = example_conv_norm(y, "conv3", "bn3", out, 1, 1, 1);
	} else {
		y = ricci_relu(example_conv_norm(y, "conv1", "bn1", out, 3, stride, 1));
		y = example_conv_norm(y, "conv2", "bn2", out, 3, 1, 1);
	}
	if (stride > 1 || ricci_extent(x, 1) != out)
		x = example_conv_norm(x, "downsample.0", "downsample.1", out, 1, stride, 1);
	return ricci_relu(
		ricci_op(ricci_graph_of(x), "Z[b,c,p,q] = X[b,c,p,q] + Y[b,c,p,q]", x, y));
}

static void network(example *e)
{
	static const int counts[2][4] = {{2, 2, 2, 2}, {3, 4, 6, 3}};
	ricci_graph *g = e->graph;
	ricci_training *t = &e->training;
	int deep = (int)example_option_of(e, "depth")->value; /* 0: 18, 1: 50 */
	int width = (int)example_option_of(e, "width")->value, side = deep ? 224 : 32;
	e->batch = example_size(e, "batch", deep ? 1 : 16);
	ricci_tensor *image = ricci_input(g, "image", e->type, DIMS(e->batch, 3, side, side));
	ricci_tensor *label = ricci_input(g, "label", RICCI_I32, DIMS(e->batch));

	ricci_tensor *x = example_augmented(e, image);
	x = ricci_relu(example_conv_norm(x, "conv1", "bn1", width, deep ? 7 : 3, deep ? 2 : 1, 1));
	if (deep)
		x = ricci_max_pool(x, &RICCI_POOL(.kernel = 3, .stride = 2, .pad = 1));
	for (int stage = 0; stage < 4; stage++)
		for (int i = 0; i < counts[deep][stage]; i++) {
			char name[24];
			snprintf(name, sizeof name, "layer%d.%d", stage + 1, i);
			ricci_scope_begin(g, name);
			x = block(x, width << stage, stage && !i ? 2 : 1, deep);
			ricci_scope_end(g);
		}
	x = ricci_linear_layer(ricci_global_avg_pool(x), "fc",
			       &RICCI_LINEAR(.out = deep ? 1000 : 10));

	e->output = x;
	e->net = deep ? "resnet50" : "resnet18";
	t->samples = image;
	t->labels = label;
	t->loss = ricci_cross_entropy(x, label);
	t->misclassified = ricci_misclassified(x, label);
	example_optimise(e,
			 RICCI_OPTIMISER(.rule = RICCI_MOMENTUM, .momentum = 0.9, .decay = 5e-4));
}

static int load(example *e)
{
	return example_option_of(e, "depth")->value > 0 ? example_large_images(e)
							: example_images(e);
}

int main(int argc, char **argv)
{
	example_option own[] = {
		{"depth", "N", "layers; 50 for images of 224 x 224", "18 50", 0, 0, 0, NULL},
		{"width", "N", "channels of the first stage", NULL, 'n', 1, 64, NULL},
		{0}};
	return example_main(
		argc, argv,
		&(example){.name = "resnet",
			   .about = "Trains a residual network on drawn digits, or on images.",
			   .data = "CIFAR-10; with --depth 50 train-images.npy, train-labels.npy, "
				   "test-..; without it digits are drawn",
			   .batch = 64,
			   .epochs = 3,
			   .lr = 0.05,
			   .augments = 1,
			   .option = own,
			   .load = load,
			   .network = network});
}
