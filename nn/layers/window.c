/* window.c - windows that slide over an image of any number of dimensions.
 * Input: what a user gives for each dimension. Output: a checked Window, and parts of texts that
 * read through it. Invariant: after success every window lies in the padded image; a partial one
 * begins there, before the padding at the end. */
#include "nn/layers/internal.h"

static int64_t given(Given g, int d)
{
	return g.each ? g.each[d] : g.all;
}

bool window_check(const Window *w, const char *who, ricci_tensor *x)
{
	const struct {
		const char *what;
		const int64_t *value;
		int64_t least;
	} number[] = {{"the stride", w->stride, 1},
		      {"the padding", w->pad, 0},
		      {"the dilation", w->dilation, 1},
		      {"a window's size", w->size, 1}};
	for (int d = 0; d < w->dims; d++)
		for (int i = 0; i < COUNT(number); i++)
			if (number[i].value[d] < number[i].least) {
				layer_fail(x, "%s: %s is %lld, it must be %lld or more", who,
					   number[i].what, (long long)number[i].value[d],
					   (long long)number[i].least);
				return false;
			}
	return true;
}

bool window_over(Window *w, const char *who, ricci_tensor *x, int dims, const int64_t *extent,
		 Given size, Given stride, Given pad, Given dilation)
{
	*w = (Window){.dims = dims};
	for (int d = 0; d < w->dims; d++) {
		w->extent[d] = extent[d];
		w->size[d] = given(size, d);
		w->stride[d] = stride.each || stride.all ? given(stride, d) : 1;
		w->pad[d] = given(pad, d);
		w->dilation[d] = dilation.each || dilation.all ? given(dilation, d) : 1;
	}
	return window_check(w, who, x);
}

bool window_make(Window *w, const char *who, ricci_tensor *x, Given size, Given stride, Given pad,
		 Given dilation)
{
	int64_t extent[RICCI_MAX_RANK];
	for (int d = 2; d < ricci_rank(x); d++)
		extent[d - 2] = ricci_extent(x, d);
	return window_over(w, who, x, ricci_rank(x) - 2, extent, size, stride, pad, dilation);
}

bool window_outputs(Window *w, const char *who, ricci_tensor *x)
{
	for (int d = 0; d < w->dims; d++) {
		int64_t size = (w->size[d] - 1) * w->dilation[d] + 1;
		int64_t room = w->extent[d] + 2 * w->pad[d] - size;
		if (room < 0) {
			layer_fail(
				x,
				"%s: a window of %lld with stride %lld and padding %lld does not "
				"fit an image of %lld",
				who, (long long)size, (long long)w->stride[d], (long long)w->pad[d],
				(long long)w->extent[d]);
			return false;
		}
		w->outputs[d] = room / w->stride[d] + 1;
		/* one more for the rest, whose window must begin before the padding at the end */
		if (w->partial && room % w->stride[d] &&
		    w->outputs[d] * w->stride[d] < w->extent[d] + w->pad[d])
			w->outputs[d]++;
	}
	return true;
}

void window_numbers(Text *t, const Window *w)
{
	layer_integers(t, "s", w->dims, w->stride);
	layer_integers(t, "d", w->dims, w->dilation);
	layer_integers(t, "a", w->dims, w->pad);
	layer_integers(t, "z", w->dims, w->size);
	layer_integers(t, "P", w->dims, w->outputs);
	layer_integers(t, "N", w->dims, w->extent);
}

/* Does a window reach beyond the image along dimension d? */
static bool reaches_out(const Window *w, int d)
{
	int64_t last = (w->outputs[d] - 1) * w->stride[d] + (w->size[d] - 1) * w->dilation[d];
	return w->pad[d] || last >= w->extent[d];
}

void window_read(Text *t, const Window *w, const char *lead, const char *outside)
{
	bool padded = false;
	for (int d = 0; d < w->dims; d++)
		padded = padded || reaches_out(w, d);
	text_add(t, "%s%s", padded ? "(" : "", lead);
	layer_text(t, w->dims, "{,s#*p#+d#*r#-a#}]");
	if (padded)
		text_add(t, " else %s)", outside);
}
