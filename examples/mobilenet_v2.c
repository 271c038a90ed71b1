/* mobilenet_v2.c - a small network that names what is in an image.
 * Sandler et al. 2018, "MobileNetV2: inverted residuals and linear bottlenecks", table 2, with
 * strides of 1 in the stem and the second row, for images of 32 x 32. Names of parameters are those
 * of torchvision.models.mobilenet_v2. */
#include "examples/example.h"

/* 1x1 to more channels, 3x3 of each channel by itself, 1x1 to few again; added to x where it fits. */
static ricci_tensor *block(ricci_tensor *x, int expand, int out, int stride)
{
	int in = (int)ricci_extent(x, 1), inner = in * expand;
	ricci_tensor *y = x;
	if (expand > 1) {
		y = ricci_relu6(example_conv_norm(y, "conv.0.0", "conv.0.1", inner, 1, 1, 1));
		y = ricci_relu6(
			example_conv_norm(y, "conv.1.0", "conv.1.1", inner, 3, stride, inner));
		y = example_conv_norm(y, "conv.2", "conv.3", out, 1, 1, 1);
	} else {
		y = ricci_relu6(
			example_conv_norm(y, "conv.0.0", "conv.0.1", inner, 3, stride, inner));
		y = example_conv_norm(y, "conv.1", "conv.2", out, 1, 1, 1);
	}
	if (stride > 1 || in != out)
		return y;
	return ricci_op(ricci_graph_of(x), "Z[b,c,p,q] = X[b,c,p,q] + Y[b,c,p,q]", x, y);
}

/* Channels times the width, a multiple of 8, at least 8. */
static int scaled(const example *e, int channels)
{
	int n = (int)(channels * example_option_of(e, "width")->value / 8 + 0.5) * 8;
	return n > 8 ? n : 8;
}

static void network(example *e)
{
	static const struct {
		int expand, out, count, stride;
	} rows[] = {{1, 16, 1, 1}, {6, 24, 2, 1},  {6, 32, 3, 2}, {6, 64, 4, 2},
		    {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
	ricci_graph *g = e->graph;
	ricci_training *t = &e->training;
	ricci_tensor *image = ricci_input(g, "image", e->type, DIMS(e->batch, 3, 32, 32));
	ricci_tensor *label = ricci_input(g, "label", RICCI_I32, DIMS(e->batch));
	int n = 1;

	ricci_tensor *x = example_augmented(e, image);
	x = ricci_relu6(
		example_conv_norm(x, "features.0.0", "features.0.1", scaled(e, 32), 3, 1, 1));
	for (int r = 0; r < 7; r++)
		for (int i = 0; i < rows[r].count; i++, n++) {
			char name[24];
			snprintf(name, sizeof name, "features.%d", n);
			ricci_scope_begin(g, name);
			x = block(x, rows[r].expand, scaled(e, rows[r].out),
				  i ? 1 : rows[r].stride);
			ricci_scope_end(g);
		}
	x = ricci_relu6(
		example_conv_norm(x, "features.18.0", "features.18.1", scaled(e, 1280), 1, 1, 1));
	x = ricci_linear_layer(ricci_global_avg_pool(x), "classifier.1", &RICCI_LINEAR(.out = 10));

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
	example_option own[] = {{"width", "X", "factor of all channels", NULL, 'x', 0.01, 1, NULL},
				{0}};
	return example_main(
		argc, argv,
		&(example){.name = "mobilenet_v2",
			   .about = "Trains MobileNetV2 on drawn digits, or on CIFAR-10.",
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
