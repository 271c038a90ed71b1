/* shape.c - the same elements at other places.
 * Input: tensors and integers. Output: one tensor. Invariant: plain equations, which fusion takes
 * into their readers where it can. */
#include "nn/layers/internal.h"

static bool any_rank(const char *who, ricci_tensor *x, int least)
{
	const Operand o[] = {{x, least, RICCI_MAX_RANK, "x of more dimensions"}};
	return layer_check(who, 1, o);
}

/* The axis counted from 0, where axis -1 is the last; -1 with an error. */
static int axis_of(const char *who, ricci_tensor *x, int axis)
{
	int rank = ricci_rank(x);
	if (axis >= -rank && axis < rank)
		return axis < 0 ? axis + rank : axis;
	layer_fail(x, "%s: x of %d dimensions has no dimension %d", who, rank, axis);
	return -1;
}

/* "[i0,..,at,..]": the bare indices of so many dimensions, but `at` for one of them. */
static void access_at(Text *t, const char *name, int rank, int axis, const char *at)
{
	text_add(t, "%s[", name);
	for (int d = 0; d < rank; d++)
		text_add(t, d == axis ? "%s%s" : "%si%s%d", d ? "," : "", d == axis ? at : "", d);
	text_add(t, "]");
}

ricci_tensor *ricci_transpose(ricci_tensor *x, const int *order)
{
	if (!any_rank("ricci_transpose", x, 0))
		return layer_nil(x);
	int rank = ricci_rank(x), seen = 0;
	Text t = {0};
	text_add(&t, "Y[");
	for (int d = 0; d < rank; d++) {
		if (!order || order[d] < 0 || order[d] >= rank || seen >> order[d] & 1) {
			text_free(&t);
			return layer_fail(x,
					  "ricci_transpose: the order does not hold each of 0..%d "
					  "once",
					  rank - 1);
		}
		seen |= 1 << order[d];
		text_add(&t, "%si%d", d ? "," : "", order[d]);
	}
	layer_text(&t, rank, "] = X[{,i#}]");
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_slice_axis(ricci_tensor *x, int axis, int64_t start, int64_t count,
			       int64_t step)
{
	const char *who = "ricci_slice_axis";
	if (!any_rank(who, x, 1) || (axis = axis_of(who, x, axis)) < 0)
		return layer_nil(x);
	int64_t n = ricci_extent(x, axis);
	if (start < 0 || start >= n || step < 1 || step > n || count < 1 ||
	    count > (n - start + step - 1) / step)
		return layer_fail(x,
				  "%s: %lld elements from %lld with step %lld leave dimension %d "
				  "of extent %lld",
				  who, (long long)count, (long long)start, (long long)step, axis,
				  (long long)n);
	Text t = {0};
	layer_integer(&t, "start", start);
	layer_integer(&t, "step", step);
	access_at(&t, "Y", ricci_rank(x), axis, "j");
	text_add(&t, " = ");
	access_at(&t, "X", ricci_rank(x), axis, "start+step*j");
	text_add(&t, " where j < %lld", (long long)count);
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_pad(ricci_tensor *x, const int64_t *before, const int64_t *after, double value)
{
	if (!any_rank("ricci_pad", x, 1))
		return layer_nil(x);
	int rank = ricci_rank(x);
	int64_t extent[RICCI_MAX_RANK], low[RICCI_MAX_RANK];
	for (int d = 0; d < rank; d++) {
		int64_t high = after ? after[d] : 0;
		low[d] = before ? before[d] : 0;
		if (low[d] < 0 || high < 0)
			return layer_fail(x,
					  "ricci_pad: %lld before and %lld behind dimension %d, "
					  "they must be 0 or more",
					  (long long)low[d], (long long)high, d);
		extent[d] = low[d] + ricci_extent(x, d) + high;
	}
	Text t = {0};
	layer_integers(&t, "a", rank, low);
	layer_integers(&t, "N", rank, extent);
	layer_text(&t, rank, "Y[{,j#:N#}] = X[{,j#-a#}] else ");
	text_add(&t, "(%.17g)", value);
	return layer_build(&t, 1, &x);
}

/* The index inside that element j of the padded dimension, of extent N before, is a copy of. */
static const char *const beyond[] = {
	[RICCI_REFLECT] = "min(max(j#-a#,a#-j#),2*N#-2-max(j#-a#,a#-j#))",
	[RICCI_REPLICATE] = "min(max(j#-a#,0),N#-1)",
	[RICCI_CIRCULAR] = "(j#-a#+N#)%N#",
};

ricci_tensor *ricci_pad_copied(ricci_tensor *x, const int64_t *before, const int64_t *after,
			       ricci_padding kind)
{
	const char *who = "ricci_pad_copied";
	if (!any_rank(who, x, 1))
		return layer_nil(x);
	if ((int)kind < 0 || kind > RICCI_CIRCULAR)
		return layer_fail(x, "%s: unknown kind %d", who, (int)kind);
	int rank = ricci_rank(x);
	int64_t in[RICCI_MAX_RANK], out[RICCI_MAX_RANK], low[RICCI_MAX_RANK];
	Text t = {0}, place = {0};
	for (int d = 0; d < rank; d++) {
		int64_t high = after ? after[d] : 0;
		low[d] = before ? before[d] : 0;
		in[d] = ricci_extent(x, d);
		out[d] = low[d] + in[d] + high;
		int64_t most = kind == RICCI_REFLECT ? in[d] - 1 : in[d];
		if (low[d] < 0 || high < 0 ||
		    (kind != RICCI_REPLICATE && (low[d] > most || high > most)))
			return layer_fail(x,
					  "%s: %lld before and %lld behind dimension %d of extent "
					  "%lld",
					  who, (long long)low[d], (long long)high, d,
					  (long long)in[d]);
	}
	layer_integers(&t, "a", rank, low);
	layer_integers(&t, "N", rank, in);
	layer_integers(&t, "M", rank, out);
	text_add(&place, "Y[{,j#:M#}] = X[{,%s}]", beyond[kind]);
	t.failed |= place.failed;
	if (place.s)
		layer_text(&t, rank, place.s);
	text_free(&place);
	return layer_build(&t, 1, &x);
}

/* j < n0 ? X0[.., j, ..] : j < n0+n1 ? X1[.., j-n0, ..] : .. */
ricci_tensor *ricci_concat(int n, ricci_tensor *const *x, int axis)
{
	const char *who = "ricci_concat";
	if (n < 1 || !x || !any_rank(who, x[0], 1) || (axis = axis_of(who, x[0], axis)) < 0)
		return n < 1 || !x ? NULL : layer_nil(x[0]);
	int rank = ricci_rank(x[0]);
	int64_t from = 0;
	Text t = {0};
	access_at(&t, "Y", rank, axis, "j");
	text_add(&t, " = ");
	for (int k = 0; k < n; k++) {
		int64_t shape[RICCI_MAX_RANK];
		char name[32], at[32];
		for (int d = 0; d < rank; d++)
			shape[d] = ricci_extent(x[d == axis && x[k] ? k : 0], d);
		snprintf(name, sizeof name, "tensor %d", k);
		if (!x[k] || !layer_shape(x[0], who, name, x[k], rank, shape)) {
			text_free(&t);
			return x[k] ? layer_nil(x[0])
				    : layer_fail(x[0], "%s: tensor %d is NULL", who, k);
		}
		snprintf(name, sizeof name, "X%d", k);
		snprintf(at, sizeof at, "j-%lld", (long long)from);
		from += shape[axis];
		if (k < n - 1)
			text_add(&t, "j < %lld ? ", (long long)from);
		access_at(&t, name, rank, axis, at);
		text_add(&t, k < n - 1 ? " : " : "");
	}
	text_add(&t, " where j < %lld", (long long)from);
	for (int d = 0; d < rank; d++)
		if (d != axis)
			text_add(&t, ", i%d < %lld", d, (long long)ricci_extent(x[0], d));
	return layer_build(&t, n, x);
}

/* Appends the indices into dimensions from..to-1 of the extents `in`, of the element whose number
 * among those of dimensions p..q-1 of `out` is that of i<p>, .., i<q-1>. */
static void regroup(Text *t, const int64_t *in, int from, int to, const int64_t *out, int p, int q)
{
	Text number = {0};
	int64_t size = 1, stride = 1;
	for (int d = q - 1; d >= p; d--) {
		if (out[d] > 1) {
			text_add(&number, "%s", number.n ? "+" : "");
			if (size > 1)
				text_add(&number, "%lld*", (long long)size);
			text_add(&number, "i%d", d);
		}
		size *= out[d];
	}
	for (int d = from; d < to; d++)
		stride *= in[d];
	for (int d = from; d < to; d++) {
		text_add(t, d ? "," : "");
		stride /= in[d];
		if (in[d] == 1)
			text_add(t, "0");
		else if (in[d] == size)
			text_add(t, "%s", number.s);
		else if (stride == 1)
			text_add(t, "(%s)%%%lld", number.s, (long long)in[d]);
		else
			text_add(t, "(%s)/%lld%%%lld", number.s, (long long)stride,
				 (long long)in[d]);
	}
	t->failed |= number.failed;
	text_free(&number);
}

/* Dimensions are split and merged in the smallest parts of equal size, so that those which stay have
 * bare indices. */
static ricci_tensor *reshape(ricci_tensor *x, int rank, const int64_t *out)
{
	int64_t in[RICCI_MAX_RANK];
	int from = 0, p = 0, n = ricci_rank(x);
	for (int d = 0; d < n; d++)
		in[d] = ricci_extent(x, d);
	Text t = {0};
	layer_integers(&t, "N", rank, out);
	layer_text(&t, rank, "Y[{,i#:N#}] = X[");
	while (from < n || p < rank) {
		int to = from, q = p;
		int64_t a = 1, b = 1;
		do {
			if (to < n && (a <= b || q == rank))
				a *= in[to++];
			else
				b *= out[q++];
		} while (a != b);
		regroup(&t, in, from, to, out, p, q);
		from = to;
		p = q;
	}
	text_add(&t, "]");
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_reshape(ricci_tensor *x, int rank, const int64_t *shape)
{
	if (!any_rank("ricci_reshape", x, 0))
		return layer_nil(x);
	int64_t out[RICCI_MAX_RANK], total = 1, known = 1;
	int open = -1;
	for (int d = 0; d < ricci_rank(x); d++)
		total *= ricci_extent(x, d);
	for (int d = 0; d < rank && rank <= RICCI_MAX_RANK; d++) {
		out[d] = shape[d];
		if (out[d] == -1 && open < 0)
			open = d;
		else if (out[d] < 1 || out[d] > total / known)
			known = total + 1; /* it can't fit */
		else
			known *= out[d];
	}
	if (open >= 0 && total % known == 0) {
		out[open] = total / known;
		known = total;
	}
	if (rank < 0 || rank > RICCI_MAX_RANK || known != total)
		return layer_fail(x,
				  "ricci_reshape: %lld elements do not fit the shape of %d "
				  "dimensions",
				  (long long)total, rank);
	return reshape(x, rank, out);
}

ricci_tensor *ricci_flatten(ricci_tensor *x, int first, int last)
{
	const char *who = "ricci_flatten";
	if (!any_rank(who, x, 1) || (first = axis_of(who, x, first)) < 0 ||
	    (last = axis_of(who, x, last)) < 0)
		return layer_nil(x);
	if (first > last)
		return layer_fail(x, "%s: dimensions %d to %d", who, first, last);
	int64_t out[RICCI_MAX_RANK], rank = 0;
	for (int d = 0; d < ricci_rank(x); d++)
		if (d > first && d <= last)
			out[rank - 1] *= ricci_extent(x, d);
		else
			out[rank++] = ricci_extent(x, d);
	return reshape(x, (int)rank, out);
}

/* y[b,c,s p + h,..] = x[b,(c s + h) s + ..,p,..] (Shi et al. 2016, equation 4; channels in the
 * order of PyTorch's pixel_shuffle). */
ricci_tensor *ricci_depth_to_space(ricci_tensor *x, int block)
{
	if (!any_rank("ricci_depth_to_space", x, 3))
		return layer_nil(x);
	int dims = ricci_rank(x) - 2;
	int64_t size = 1, channels = ricci_extent(x, 1), extent[RICCI_MAX_RANK];
	for (int d = 0; d < dims; d++) {
		extent[d] = block * ricci_extent(x, d + 2);
		size *= block > 0 && size <= channels ? block : 1;
	}
	if (block < 1 || channels % size)
		return layer_fail(x, "ricci_depth_to_space: %lld channels are not blocks of %d",
				  (long long)channels, block);
	Text t = {0};
	layer_integer(&t, "s", block);
	layer_integer(&t, "C", channels / size);
	layer_integers(&t, "N", dims, extent);
	layer_text(&t, dims, "Y[b,c:C{,p#:N#}] = X[b,");
	for (int d = 0; d < dims; d++)
		text_add(&t, "(");
	text_add(&t, "c");
	layer_text(&t, dims, "{)*s+p#%s}{,p#/s}]");
	return layer_build(&t, 1, &x);
}

/* The inverse. */
ricci_tensor *ricci_space_to_depth(ricci_tensor *x, int block)
{
	if (!any_rank("ricci_space_to_depth", x, 3))
		return layer_nil(x);
	int dims = ricci_rank(x) - 2;
	int64_t size = 1, extent[RICCI_MAX_RANK], part[RICCI_MAX_RANK];
	for (int d = dims - 1; d >= 0; d--) {
		if (block < 1 || ricci_extent(x, d + 2) % block)
			return layer_fail(
				x,
				"ricci_space_to_depth: an extent of %lld is not blocks of "
				"%d",
				(long long)ricci_extent(x, d + 2), block);
		extent[d] = ricci_extent(x, d + 2) / block;
		part[d] = size;
		size *= block;
	}
	Text t = {0};
	layer_integer(&t, "s", block);
	layer_integer(&t, "S", size);
	layer_integer(&t, "C", size * ricci_extent(x, 1));
	layer_integers(&t, "D", dims, part);
	layer_integers(&t, "N", dims, extent);
	layer_text(&t, dims, "Y[b,c:C{,p#:N#}] = X[b,c/S{,s*p#+c/D#%s}]");
	return layer_build(&t, 1, &x);
}

/* Channels as a matrix of groups, transposed (Zhang et al. 2018, "ShuffleNet", section 3.1). */
ricci_tensor *ricci_channel_shuffle(ricci_tensor *x, int groups)
{
	if (!any_rank("ricci_channel_shuffle", x, 2))
		return layer_nil(x);
	int64_t channels = ricci_extent(x, 1);
	if (groups < 1 || channels % groups)
		return layer_fail(
			x, "ricci_channel_shuffle: %lld channels can't be divided into %d groups",
			(long long)channels, groups);
	Text t = {0};
	layer_integer(&t, "G", groups);
	layer_integer(&t, "K", channels / groups);
	layer_text(&t, ricci_rank(x) - 2, "Y[b,c:G*K{,p#}] = X[b,c%G*K+c/G{,p#}]");
	return layer_build(&t, 1, &x);
}
