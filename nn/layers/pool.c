/* pool.c - pooling over windows of images of any number of dimensions.
 * Input: x [b,c,..] and windows. Output: one tensor. Invariant: plain equations. */
#include "nn/layers/internal.h"

#include <math.h>

static bool pool_window(Window *w, const char *who, ricci_tensor *x,
			const ricci_pool_options *options, ricci_pool_options *o)
{
	const Operand operands[] = {{x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"}};
	if (!layer_check(who, 1, operands) ||
	    !layer_options(x, o, sizeof *o, options, "ricci_pool_options"))
		return false;
	Given size = {o->kernel, o->kernels}, stride = {o->stride, o->strides};
	if (!stride.all && !stride.each)
		stride = size;
	if (!window_make(w, who, x, size, stride, (Given){o->pad, o->pads},
			 (Given){o->dilation, o->dilations}))
		return false;
	for (int d = 0; d < w->dims; d++)
		if (2 * w->pad[d] > w->size[d]) {
			layer_fail(x,
				   "%s: the padding is %lld, it must be at most half of the "
				   "window's size %lld",
				   who, (long long)w->pad[d], (long long)w->size[d]);
			return false;
		}
	w->partial = o->ceil_mode != 0;
	return window_outputs(w, who, x);
}

/* What is computed of a window's elements; `power` is of NORM. */
typedef enum { MAXIMUM, MEAN, NORM } Kind;

/* A[b,c,p]: the first place, counted over the image, that has the maximum S[b,c,p]. */
static void places_add(Text *t, const Window *w)
{
	layer_text(t, w->dims, "; A[b,c{,p#}] min= ");
	layer_text(t, w->dims, "{s#*p#+d#*r#-a# >= 0 && s#*p#+d#*r#-a# < N# && }");
	layer_text(t, w->dims, "X[b,c{,s#*p#+d#*r#-a#}] == S[b,c{,p#}] ? i64({(}0");
	layer_text(t, w->dims, "{)*N#+s#*p#+d#*r#-a#}) : i64(1{*N#})");
	layer_text(t, w->dims, " where c < X.size(1){, p# < P#, r# < z#}");
}

static void sums_add(Text *t, const Window *w, Kind kind, double power)
{
	layer_text(t, w->dims, kind == MAXIMUM ? "S[b,c{,p#}] max= " : "S[b,c{,p#}] += ");
	text_add(t, kind == NORM ? "pow(abs(" : "");
	window_read(t, w, "X[b,c", kind == MAXIMUM ? "-inf" : "0.0");
	if (kind == NORM)
		text_add(t, "), %#.17g)", power);
	layer_text(t, w->dims, " where c < X.size(1){, p# < P#, r# < z#}");
}

/* The mean over the elements of a window that lie in the image, or in it and its padding. */
static void means_add(Text *t, const Window *w, bool exclude_pad)
{
	layer_text(t, w->dims, "; Y[b,c{,p#}] = S[b,c{,p#}] / (");
	layer_text(t, w->dims,
		   exclude_pad	? "{(min(s#*p#-a#+z#,N#)-max(s#*p#-a#,0))*}1)"
		   : w->partial ? "{(min(z#,N#+2*a#-s#*p#))*}1)"
				: "{z#*}1)");
}

static bool kind_check(ricci_tensor *x, const char *who, const Window *w, Kind kind, double power,
		       const ricci_pool_options *o)
{
	for (int d = 0; d < w->dims; d++)
		if (kind == MEAN && w->dilation[d] > 1)
			layer_fail(x, "%s: average pooling has no dilation, %lld is given", who,
				   (long long)w->dilation[d]);
	if (kind != MAXIMUM && o->indices)
		layer_fail(x, "%s: only ricci_max_pool has .indices", who);
	if (kind == NORM && !(power >= 1 && isfinite(power)))
		layer_fail(x, "%s: the norm's power is %g, it must be finite, and 1 or more", who,
			   power);
	return !ricci_graph_error(ricci_graph_of(x));
}

static ricci_tensor *pool(const char *who, ricci_tensor *x, const ricci_pool_options *options,
			  Kind kind, double power)
{
	ricci_pool_options o = RICCI_POOL();
	Window w;
	bool good = pool_window(&w, who, x, options, &o) && kind_check(x, who, &w, kind, power, &o);
	if (o.indices)
		*o.indices = layer_nil(x);
	if (!good)
		return layer_nil(x);
	Text t = {0};
	ricci_tensor *y[2];
	if (o.indices)
		text_add(&t, "X -> S, A: ");
	window_numbers(&t, &w);
	sums_add(&t, &w, kind, power);
	if (kind == MEAN)
		means_add(&t, &w, o.exclude_pad);
	if (kind == NORM)
		layer_text(&t, w.dims, "; Y[b,c{,p#}] = S[b,c{,p#}] > 0 ? pow(S[b,c{,p#}], 1.0/(");
	if (kind == NORM)
		text_add(&t, "%.17g)) : 0.0", power);
	if (o.indices)
		places_add(&t, &w);
	layer_results(&t, 1, &x, o.indices ? 2 : 1, y);
	if (o.indices)
		*o.indices = y[1];
	return y[0];
}

/* y[b,c,p] = max over r of x[b,c,s p + d r - a], where that lies in the image. */
ricci_tensor *ricci_max_pool(ricci_tensor *x, const ricci_pool_options *options)
{
	return pool("ricci_max_pool", x, options, MAXIMUM, 0);
}

/* The mean over r of the same, with zeros around the image. */
ricci_tensor *ricci_avg_pool(ricci_tensor *x, const ricci_pool_options *options)
{
	return pool("ricci_avg_pool", x, options, MEAN, 0);
}

/* (sum over r of |x|^power)^(1/power) of the same; the gradient is 0 where all of them are. */
ricci_tensor *ricci_lp_pool(ricci_tensor *x, double power, const ricci_pool_options *options)
{
	return pool("ricci_lp_pool", x, options, NORM, power);
}

/* y[b,c,i[b,c,p]] += x[b,c,p], over a flat image, which then gets its shape. */
ricci_tensor *ricci_max_unpool(ricci_tensor *x, ricci_tensor *indices, const int64_t *shape)
{
	const char *who = "ricci_max_unpool";
	const Operand o[] = {{x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"},
			     {indices, 3, RICCI_MAX_RANK, "indices [batch, channel, ...]"}};
	if (!layer_check(who, 2, o))
		return layer_nil(x);
	int rank = ricci_rank(x);
	int64_t out[RICCI_MAX_RANK], size = 1;
	for (int d = 0; d < rank; d++)
		out[d] = ricci_extent(x, d);
	if (!layer_shape(x, who, "the tensor of indices", indices, rank, out))
		return layer_nil(x);
	for (int d = 2; d < rank; d++) {
		if (!shape || shape[d - 2] < 1 || shape[d - 2] > INT64_MAX / size)
			return layer_fail(x, "%s: an image of %lld along dimension %d", who,
					  shape ? (long long)shape[d - 2] : 0LL, d);
		size *= out[d] = shape[d - 2];
	}
	Text t = {0};
	text_add(&t, "X, I -> Y: ");
	layer_integer(&t, "N", size);
	layer_text(&t, rank - 2, "Y[b,c,min(max(I[b,c{,p#}],0),N-1):N] += X[b,c{,p#}]");
	ricci_tensor *flat = layer_build(&t, 2, (ricci_tensor *[]){x, indices});
	return ricci_reshape(flat, rank, out);
}

ricci_tensor *ricci_max_pool2d(ricci_tensor *x, int size, int stride)
{
	const Operand o[] = {{x, 4, 4, "x [batch, channel, row, column]"}};
	if (!layer_check("ricci_max_pool2d", 1, o))
		return layer_nil(x);
	return pool("ricci_max_pool2d", x,
		    &RICCI_POOL(.kernel = size, .strides = (int[]){stride, stride}), MAXIMUM, 0);
}

/* Window p of O over N elements: from floor(p N / O) to before ceil((p+1) N / O). */
static ricci_tensor *adaptive(const char *who, ricci_tensor *x, const int64_t *out, bool maximum)
{
	const Operand o[] = {{x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"}};
	if (!layer_check(who, 1, o))
		return layer_nil(x);
	int dims = ricci_rank(x) - 2;
	int64_t extent[RICCI_MAX_RANK], longest[RICCI_MAX_RANK];
	for (int d = 0; d < dims; d++) {
		int64_t n = extent[d] = ricci_extent(x, d + 2);
		if (!out || out[d] < 1 || out[d] > n)
			return layer_fail(x, "%s: %lld windows over an extent of %lld", who,
					  out ? (long long)out[d] : 0LL, (long long)n);
		longest[d] = 1;
		for (int64_t p = 0; p < out[d]; p++) {
			int64_t size = ((p + 1) * n + out[d] - 1) / out[d] - p * n / out[d];
			longest[d] = size > longest[d] ? size : longest[d];
		}
	}
	Text t = {0};
	layer_integers(&t, "N", dims, extent);
	layer_integers(&t, "O", dims, out);
	layer_integers(&t, "R", dims, longest);
	layer_text(&t, dims, maximum ? "S[b,c{,p#}] max= " : "S[b,c{,p#}] += ");
	layer_text(&t, dims, "{p#*N#/O#+r# < ((p#+1)*N#+O#-1)/O# && }1 ? X[b,c{,p#*N#/O#+r#}] : ");
	text_add(&t, maximum ? "-inf" : "0.0");
	layer_text(&t, dims, " where c < X.size(1){, p# < O#, r# < R#}");
	if (!maximum)
		layer_text(&t, dims,
			   "; Y[b,c{,p#}] = S[b,c{,p#}] / "
			   "({(((p#+1)*N#+O#-1)/O#-p#*N#/O#)*}1)");
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_adaptive_max_pool(ricci_tensor *x, const int64_t *out)
{
	return adaptive("ricci_adaptive_max_pool", x, out, true);
}

ricci_tensor *ricci_adaptive_avg_pool(ricci_tensor *x, const int64_t *out)
{
	return adaptive("ricci_adaptive_avg_pool", x, out, false);
}

ricci_tensor *ricci_global_max_pool(ricci_tensor *x)
{
	const Operand o[] = {{x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"}};
	if (!layer_check("ricci_global_max_pool", 1, o))
		return layer_nil(x);
	return layer_of(ricci_rank(x) - 2, "Y[b,c] max= X[b,c{,p#}]", 1, &x);
}

static ricci_tensor *global_mean(const char *who, ricci_tensor *x)
{
	const Operand o[] = {{x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"}};
	if (!layer_check(who, 1, o))
		return layer_nil(x);
	Text t = {0};
	layer_text(&t, ricci_rank(x) - 2, "S[b,c] += X[b,c{,p#}]; Y[b,c] = S[b,c] / (1");
	for (int d = 2; d < ricci_rank(x); d++)
		text_add(&t, "*X.size(%d)", d);
	text_add(&t, ")");
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_global_avg_pool(ricci_tensor *x)
{
	return global_mean("ricci_global_avg_pool", x);
}

ricci_tensor *ricci_global_avg_pool2d(ricci_tensor *x)
{
	const Operand o[] = {{x, 4, 4, "x [batch, channel, row, column]"}};
	if (!layer_check("ricci_global_avg_pool2d", 1, o))
		return layer_nil(x);
	return global_mean("ricci_global_avg_pool2d", x);
}
