/* conv.c - convolutions of any number of dimensions.
 * Input: x [b,c,..], weights, options. Output: one tensor. Invariant: plain equations; a group is an
 * index of its own, so that each contraction is dense. */
#include "nn/layers/internal.h"

/* The options, checked, but for the window. */
static bool take_options(ricci_conv_options *o, const ricci_conv_options *given, const char *who,
			 ricci_tensor *x)
{
	*o = RICCI_CONV();
	if (!layer_options(x, o, sizeof *o, given, "ricci_conv_options"))
		return false;
	if (o->groups < 0)
		layer_fail(x, "%s: %d groups", who, o->groups);
	if (!o->groups)
		o->groups = 1;
	return o->groups > 0;
}

/* y[b,k,p] = sum over c, r of x[b,c,s p + d r - a] w[k,c,r], for each group of channels. */
static ricci_tensor *forward(const char *who, ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
			     const ricci_conv_options *o, Window *win)
{
	int64_t in = ricci_extent(x, 1), out = ricci_extent(w, 0), g = o->groups;
	if (in != ricci_extent(w, 1) * g || out % g)
		return layer_fail(x,
				  "%s: %lld channels in %lld groups do not fit weights of %lld by "
				  "%lld channels",
				  who, (long long)in, (long long)g, (long long)out,
				  (long long)ricci_extent(w, 1));
	if (!window_outputs(win, who, x))
		return layer_nil(x);
	Text t = {0};
	int n = win->dims;
	bool split = g > 1 && out > g; /* a group of one output needs no index of its own */
	window_numbers(&t, win);
	layer_integer(&t, "G", g);
	layer_integer(&t, "C", in / g);
	layer_integer(&t, "K", out / g);
	layer_text(&t, n, split ? "L[b,g,k{,p#}] += " : "L[b,k{,p#}] += ");
	window_read(&t, win, split ? "X[b,C*g+c" : g > 1 ? "X[b,C*k+c" : "X[b,c", "0.0");
	layer_text(&t, n,
		   split ? " * W[K*g+k,c{,r#}] where g < G, k < K{, p# < P#}"
			 : " * W[k,c{,r#}] where k < G*K{, p# < P#}");
	if (split)
		layer_text(&t, n, "; Y[b,n{,p#}] = L[b,n/K,n%K{,p#}]");
	else if (bias)
		layer_text(&t, n, "; Y[b,n{,p#}] = L[b,n{,p#}]");
	text_add(&t, bias ? " + B[n]" : "");
	text_add(&t, split ? " where n < G*K" : "");
	return layer_build(&t, bias ? 3 : 2, (ricci_tensor *[]){x, w, bias});
}

/* The gradient of forward by x: y[b,k,s p + d r - a] += x[b,c,p] w[c,k,r]. With o + a = s u + h the
 * taps that meet an element are those at s r + h, and p = u - r: a dense sum for each phase h, from
 * which elements are picked. Dilated weights get zeros between their taps. */
static ricci_tensor *transposed(const char *who, ricci_tensor *x, ricci_tensor *w,
				ricci_tensor *bias, const ricci_conv_options *o, Window *win)
{
	int64_t in = ricci_extent(x, 1), g = o->groups, k = ricci_extent(w, 1);
	int64_t taps[RICCI_MAX_RANK], steps[RICCI_MAX_RANK], units[RICCI_MAX_RANK];
	bool dilated = false;
	if (in != ricci_extent(w, 0) || in % g)
		return layer_fail(x, "%s: %lld channels in %lld groups do not fit weights of %lld",
				  who, (long long)in, (long long)g, (long long)ricci_extent(w, 0));
	for (int d = 0; d < win->dims; d++) {
		int64_t more = o->output_pads ? o->output_pads[d] : o->output_pad;
		taps[d] = (win->size[d] - 1) * win->dilation[d] + 1;
		win->outputs[d] =
			(win->extent[d] - 1) * win->stride[d] - 2 * win->pad[d] + taps[d] + more;
		if (more < 0 || more >= win->stride[d] || win->outputs[d] < 1)
			return layer_fail(x,
					  "%s: an output padding of %lld with stride %lld and an "
					  "extent of %lld",
					  who, (long long)more, (long long)win->stride[d],
					  (long long)win->outputs[d]);
		steps[d] = (taps[d] + win->stride[d] - 1) / win->stride[d];
		units[d] = (win->outputs[d] - 1 + win->pad[d]) / win->stride[d] + 1;
		dilated = dilated || win->dilation[d] > 1;
	}
	Text t = {0};
	int n = win->dims;
	window_numbers(&t, win);
	layer_integers(&t, "t", n, taps);
	layer_integers(&t, "R", n, steps);
	layer_integers(&t, "U", n, units);
	layer_integer(&t, "G", g);
	layer_integer(&t, "C", in / g);
	layer_integer(&t, "K", k);
	if (dilated)
		layer_text(&t, n,
			   "D[c,k{,j#}] = {j#%d# == 0 && }1 ? W[c,k{,j#/d#}] : 0.0 where c < "
			   "G*C{, j# < t#}; ");
	layer_text(&t, n, "L[b,g,k{,u#}{,h#}] += (X[b,C*g+c{,u#-r#}] else 0.0) * (");
	layer_text(&t, n, dilated ? "D[C*g+c,k{,s#*r#+h#}]" : "W[C*g+c,k{,s#*r#+h#}]");
	layer_text(&t, n,
		   " else 0.0) where g < G, c < C{, u# < U#, h# < s#, r# < R#}; "
		   "Y[b,n{,o#}] = L[b,n/K,n%K{,(o#+a#)/s#}{,(o#+a#)%s#}]");
	text_add(&t, bias ? " + B[n]" : "");
	layer_text(&t, n, " where n < G*K{, o# < P#}");
	ricci_tensor *operands[] = {dilated ? w : x, dilated ? x : w, bias};
	return layer_build(&t, bias ? 3 : 2, operands);
}

static ricci_tensor *conv(const char *who, ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
			  const ricci_conv_options *options)
{
	const Operand operands[] = {{x, 3, RICCI_MAX_RANK, "x [batch, channel, ...]"},
				    {w, 3, RICCI_MAX_RANK, "w [out, in, ...]"},
				    {bias, 1, 1, "bias [out]"}};
	ricci_conv_options o;
	Window win;
	int size[RICCI_MAX_RANK];
	if (!layer_check(who, bias ? 3 : 2, operands) || !take_options(&o, options, who, x))
		return layer_nil(x);
	if (ricci_rank(w) != ricci_rank(x))
		return layer_fail(x, "%s: weights of %d dimensions do not fit x of %d", who,
				  ricci_rank(w), ricci_rank(x));
	for (int d = 2; d < ricci_rank(w); d++)
		size[d - 2] = (int)ricci_extent(w, d);
	if (!window_make(&win, who, x, (Given){0, size}, (Given){o.stride, o.strides},
			 (Given){o.pad, o.pads}, (Given){o.dilation, o.dilations}))
		return layer_nil(x);
	return o.transposed ? transposed(who, x, w, bias, &o, &win)
			    : forward(who, x, w, bias, &o, &win);
}

ricci_tensor *ricci_conv(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
			 const ricci_conv_options *options)
{
	return conv("ricci_conv", x, w, bias, options);
}

ricci_tensor *ricci_conv2d(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias, int stride,
			   int pad)
{
	const Operand o[] = {{x, 4, 4, "x [batch, channel, row, column]"},
			     {w, 4, 4, "w [out, in, row, column]"},
			     {bias, 1, 1, "bias [out]"}};
	if (!layer_check("ricci_conv2d", bias ? 3 : 2, o))
		return layer_nil(x);
	return conv("ricci_conv2d", x, w, bias,
		    &RICCI_CONV(.strides = (int[]){stride, stride}, .pad = pad));
}
