/* pool.c - pooling over windows of images of any number of dimensions.
 * Input: x [b,c,..] and windows. Output: one tensor. Invariant: plain equations. */
#include "nn/layers/internal.h"

static bool pool_window(Window *w, const char *who, ricci_tensor *x,
			const ricci_pool_options *options, ricci_pool_options *o)
{
	const Operand operands[] = {{x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"}};
	*o = RICCI_POOL();
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
	return window_outputs(w, who, x);
}

static ricci_tensor *pool(const char *who, ricci_tensor *x, const ricci_pool_options *options,
			  bool maximum)
{
	ricci_pool_options o;
	Window w;
	if (!pool_window(&w, who, x, options, &o))
		return layer_nil(x);
	for (int d = 0; d < w.dims; d++)
		if (!maximum && w.dilation[d] > 1)
			return layer_fail(x, "%s: average pooling has no dilation, %lld is given",
					  who, (long long)w.dilation[d]);
	Text t = {0};
	window_numbers(&t, &w);
	layer_text(&t, w.dims, maximum ? "S[b,c{,p#}] max= " : "S[b,c{,p#}] += ");
	window_read(&t, &w, "X[b,c", maximum ? "-inf" : "0.0");
	layer_text(&t, w.dims, " where c < X.size(1){, p# < P#, r# < z#}");
	if (!maximum && o.exclude_pad)
		layer_text(&t, w.dims,
			   "; Y[b,c{,p#}] = S[b,c{,p#}] / "
			   "({(min(s#*p#-a#+z#,N#)-max(s#*p#-a#,0))*}1)");
	else if (!maximum)
		layer_text(&t, w.dims, "; Y[b,c{,p#}] = S[b,c{,p#}] / ({z#*}1)");
	return layer_build(&t, 1, &x);
}

/* y[b,c,p] = max over r of x[b,c,s p + d r - a], where that lies in the image. */
ricci_tensor *ricci_max_pool(ricci_tensor *x, const ricci_pool_options *options)
{
	return pool("ricci_max_pool", x, options, true);
}

/* The mean over r of the same, with zeros around the image. */
ricci_tensor *ricci_avg_pool(ricci_tensor *x, const ricci_pool_options *options)
{
	return pool("ricci_avg_pool", x, options, false);
}

ricci_tensor *ricci_max_pool2d(ricci_tensor *x, int size, int stride)
{
	const Operand o[] = {{x, 4, 4, "x [batch, channel, row, column]"}};
	if (!layer_check("ricci_max_pool2d", 1, o))
		return layer_nil(x);
	return pool("ricci_max_pool2d", x,
		    &RICCI_POOL(.kernel = size, .strides = (int[]){stride, stride}), true);
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
