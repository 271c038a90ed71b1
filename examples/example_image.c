/* example_image.c - what nets of images share. */
#include "examples/example.h"

ricci_tensor *example_conv_norm(ricci_tensor *x, const char *conv, const char *norm, int out,
				int kernel, int stride, int groups)
{
	ricci_init init = ricci_he(kernel * kernel * out / groups);
	x = ricci_conv_layer(x, conv,
			     &RICCI_CONV(.out = out, .kernel = kernel, .stride = stride,
					 .pad = kernel / 2, .groups = groups, .no_bias = 1,
					 .init = &init));
	return ricci_norm_layer(x, norm, &RICCI_NORM());
}
