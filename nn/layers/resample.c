/* resample.c - images of other extents: upsampling, and windows as columns.
 * Input: x [b,c,..], extents or windows. Output: one tensor. Invariant: plain equations, whose
 * positions are integers and quotients of integers, so that no rounding moves one. */
#include "nn/layers/internal.h"

/* x [b,c,..] and an extent of 1 or more for each dimension of the image? */
static bool image_check(const char *who, ricci_tensor *x, const int64_t *out)
{
	const Operand o[] = {{x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"}};
	if (!layer_check(who, 1, o))
		return false;
	for (int d = 2; d < ricci_rank(x); d++)
		if (!out || out[d - 2] < 1 || out[d - 2] > INT32_MAX) {
			layer_fail(x, "%s: an extent of %lld along dimension %d", who,
				   out ? (long long)out[d - 2] : 0LL, d);
			return false;
		}
	return true;
}

/* y[b,c,i] = x[b,c,floor(i N / O)]. */
ricci_tensor *ricci_upsample_nearest(ricci_tensor *x, const int64_t *out)
{
	if (!image_check("ricci_upsample_nearest", x, out))
		return layer_nil(x);
	int dims = ricci_rank(x) - 2;
	int64_t extent[RICCI_MAX_RANK];
	for (int d = 0; d < dims; d++)
		extent[d] = ricci_extent(x, d + 2);
	Text t = {0};
	layer_integers(&t, "N", dims, extent);
	layer_integers(&t, "O", dims, out);
	layer_text(&t, dims, "Y[b,c{,p#:O#}] = X[b,c{,p#*N#/O#}]");
	return layer_build(&t, 1, &x);
}

/* Dimension `at` of x gets `out` elements: element i is at n/m of the old ones, n and m integers,
 * and interpolated between floor(n/m) and the next one. */
static ricci_tensor *linear(ricci_tensor *x, int at, int64_t out, bool align_corners)
{
	int64_t extent = ricci_extent(x, at);
	Text t = {0};
	layer_integer(&t, "N", extent);
	layer_integer(&t, "O", out);
	layer_integer(&t, "m", !align_corners ? 2 * out : out > 1 ? out - 1 : 1);
	text_add(&t, "n = %s; ", align_corners ? "i*(N-1)" : "max((2*i+1)*N-O,0)");
	text_add(&t, "f = (n%%m)*(1.0/m); Y[");
	for (int d = 0; d < ricci_rank(x); d++)
		text_add(&t, d == at ? "%si:O" : "%sj%d", d ? "," : "", d);
	text_add(&t, "] = ");
	for (int next = 0; next < 2; next++) {
		text_add(&t, next ? " + f*X[" : "(1-f)*X[");
		for (int d = 0; d < ricci_rank(x); d++)
			if (d != at)
				text_add(&t, "%sj%d", d ? "," : "", d);
			else
				text_add(&t, next ? "%smin(n/m+1,N-1)" : "%sn/m", d ? "," : "");
		text_add(&t, "]");
	}
	return layer_build(&t, 1, &x);
}

/* Along one dimension after the other. */
ricci_tensor *ricci_upsample_linear(ricci_tensor *x, const int64_t *out, int align_corners)
{
	if (!image_check("ricci_upsample_linear", x, out))
		return layer_nil(x);
	ricci_tensor *y = x;
	for (int d = 2; d < ricci_rank(x) && !ricci_graph_error(ricci_graph_of(x)); d++)
		y = linear(y, d, out[d - 2], align_corners != 0);
	return y;
}

static bool columns_window(Window *w, const char *who, ricci_tensor *x, int dims,
			   const int64_t *extent, const ricci_conv_options *options)
{
	ricci_conv_options o = RICCI_CONV();
	return layer_options(x, &o, sizeof o, options, "ricci_conv_options") &&
	       window_over(w, who, x, dims, extent, (Given){o.kernel, o.kernels},
			   (Given){o.stride, o.strides}, (Given){o.pad, o.pads},
			   (Given){o.dilation, o.dilations}) &&
	       window_outputs(w, who, x);
}

/* u[b,c,r..,p..] = x[b,c,s p + d r - a], in the shape [b, c r.., p..]. */
ricci_tensor *ricci_unfold(ricci_tensor *x, const ricci_conv_options *options)
{
	const char *who = "ricci_unfold";
	const Operand o[] = {{x, 3, RICCI_MAX_RANK / 2 + 1, "x [batch, channel, ...]"}};
	if (!layer_check(who, 1, o))
		return layer_nil(x);
	Window w;
	int64_t extent[RICCI_MAX_RANK], shape[3] = {ricci_extent(x, 0), ricci_extent(x, 1), 1};
	for (int d = 2; d < ricci_rank(x); d++)
		extent[d - 2] = ricci_extent(x, d);
	if (!columns_window(&w, who, x, ricci_rank(x) - 2, extent, options))
		return layer_nil(x);
	for (int d = 0; d < w.dims; d++) {
		shape[1] *= w.size[d];
		shape[2] *= w.outputs[d];
	}
	Text t = {0};
	window_numbers(&t, &w);
	layer_text(&t, w.dims, "U[b,c{,r#}{,p#}] = ");
	window_read(&t, &w, "X[b,c", "0");
	layer_text(&t, w.dims, " where c < X.size(1){, p# < P#, r# < z#}");
	return ricci_reshape(layer_build(&t, 1, &x), 3, shape);
}

/* y[b,c,s p + d r - a] += u[b,c,r..,p..], over the padded image, of which the image is a part. */
ricci_tensor *ricci_fold(ricci_tensor *x, int dims, const int64_t *shape,
			 const ricci_conv_options *options)
{
	const char *who = "ricci_fold";
	const Operand o[] = {{x, 3, 3, "x [batch, channel * window, position]"}};
	if (!layer_check(who, 1, o))
		return layer_nil(x);
	if (dims < 1 || dims > RICCI_MAX_RANK / 2 - 1 || !shape)
		return layer_fail(x, "%s: an image of %d dimensions", who, dims);
	Window w;
	if (!columns_window(&w, who, x, dims, shape, options))
		return layer_nil(x);
	int64_t room[RICCI_MAX_RANK], apart[RICCI_MAX_RANK], size = 1, positions = 1;
	for (int d = 0; d < dims; d++) {
		size *= w.size[d];
		positions *= w.outputs[d];
		room[d] = w.extent[d] + 2 * w.pad[d];
		apart[2 + d] = w.size[d];
		apart[2 + dims + d] = w.outputs[d];
	}
	if (ricci_extent(x, 1) % size || ricci_extent(x, 2) != positions)
		return layer_fail(x,
				  "%s: %lld columns of %lld elements, there are %lld windows of "
				  "%lld",
				  who, (long long)ricci_extent(x, 2), (long long)ricci_extent(x, 1),
				  (long long)positions, (long long)size);
	apart[0] = ricci_extent(x, 0);
	apart[1] = ricci_extent(x, 1) / size;
	ricci_tensor *u = ricci_reshape(x, 2 + 2 * dims, apart);
	Text t = {0};
	window_numbers(&t, &w);
	layer_integers(&t, "M", dims, room);
	layer_text(&t, dims, "F[b,c{,s#*p#+d#*r#:M#}] += U[b,c{,r#}{,p#}]; ");
	layer_text(&t, dims, "Y[b,c{,h#:N#}] = F[b,c{,h#+a#}]");
	return layer_build(&t, 1, &u);
}
