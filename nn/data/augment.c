/* augment.c - augmentation of images as index expressions, in the graph of the net.
 * Input: a batch of images. Output: the same, changed at random in training sessions, one draw a
 * sample; in other sessions (`training` is 0) the images as they are. Invariant: the draws of sample
 * b follow from seed, step, key and b only, so that a resumed run and an image's mask see the same
 * ones. */
#include "nn/nn.h"

#include <math.h>

/* Whether x is a batch of images [batch, .., row, column]. */
static bool images(const char *who, ricci_tensor *x, int low)
{
	Operand o = {x, low, RICCI_MAX_RANK,
		     low == 2 ? "x [batch, channel, ..]" : "x [batch, .., row, column]"};
	return layer_check(who, 1, &o);
}

/* "D[b:B] = .." : an integer of 0..n-1 for each sample; draw: which of two. */
static void draw(Text *t, const char *name, const ricci_tensor *x, int64_t key, int which,
		 int64_t n)
{
	text_add(t, "%s[b:%lld] = i32(floor(random(%lld, 2*b+%d) * %lld)); ", name,
		 (long long)ricci_extent(x, 0), (long long)key, which, (long long)n);
}

ricci_tensor *ricci_random_crop(ricci_tensor *x, int pad, int64_t rows, int64_t columns,
				int64_t key)
{
	if (!images("ricci_random_crop", x, 3))
		return layer_nil(x);
	int r = ricci_rank(x);
	/* how many positions there are, and the one in the centre */
	int64_t ny = ricci_extent(x, r - 2) + 2 * (int64_t)pad - rows + 1;
	int64_t nx = ricci_extent(x, r - 1) + 2 * (int64_t)pad - columns + 1;
	if (pad < 0 || rows < 1 || columns < 1 || ny < 1 || nx < 1)
		return layer_fail(x,
				  "ricci_random_crop: %lld x %lld does not fit an image of %lld x "
				  "%lld with a padding of %d",
				  (long long)rows, (long long)columns,
				  (long long)ricci_extent(x, r - 2),
				  (long long)ricci_extent(x, r - 1), pad);
	Text t = {0};
	draw(&t, "R", x, key, 0, ny);
	draw(&t, "C", x, key, 1, nx);
	text_add(&t, "Y[b,...,i,j] = training ? (X[b,...,i+R[b]-%d,j+C[b]-%d] else 0) : ", pad,
		 pad);
	text_add(&t, "(X[b,...,i+%lld,j+%lld] else 0) where i<%lld, j<%lld",
		 (long long)((ny - 1) / 2 - pad), (long long)((nx - 1) / 2 - pad), (long long)rows,
		 (long long)columns);
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_random_shift(ricci_tensor *x, int most, int64_t key)
{
	if (!images("ricci_random_shift", x, 3))
		return layer_nil(x);
	int r = ricci_rank(x);
	if (most < 0)
		return layer_fail(x, "ricci_random_shift: most is %d, it must be 0 or more", most);
	return ricci_random_crop(x, most, ricci_extent(x, r - 2), ricci_extent(x, r - 1), key);
}

ricci_tensor *ricci_random_flip(ricci_tensor *x, int64_t key)
{
	if (!images("ricci_random_flip", x, 3))
		return layer_nil(x);
	Text t = {0};
	draw(&t, "F", x, key, 0, 2);
	text_add(&t, "Y[b,...,i,j] = training && F[b] > 0 ? X[b,...,i,%lld-j] : X[b,...,i,j]",
		 (long long)ricci_extent(x, ricci_rank(x) - 1) - 1);
	return layer_build(&t, 1, &x);
}

ricci_tensor *ricci_cutout(ricci_tensor *x, int size, int64_t key)
{
	if (!images("ricci_cutout", x, 3))
		return layer_nil(x);
	if (size < 1)
		return layer_fail(x, "ricci_cutout: a square of %d; it must be 1 or more", size);
	int r = ricci_rank(x), half = size / 2;
	Text t = {0};
	draw(&t, "R", x, key, 0, ricci_extent(x, r - 2));
	draw(&t, "C", x, key, 1, ricci_extent(x, r - 1));
	text_add(&t,
		 "Y[b,...,i,j] = training && i >= R[b]-%d && i < R[b]+%d && j >= C[b]-%d && "
		 "j < C[b]+%d ? 0 : X[b,...,i,j]",
		 half, size - half, half, size - half);
	return layer_build(&t, 1, &x);
}

/* "c == 0 ? .. : c == 1 ? .. : .." */
static void by_channel(Text *t, int n, const double *value)
{
	for (int c = 0; c + 1 < n; c++)
		text_add(t, "c == %d ? %.17g : ", c, value[c]);
	text_add(t, "%.17g", value[n - 1]);
}

ricci_tensor *ricci_normalise(ricci_tensor *x, int channels, const double *mean,
			      const double *deviation)
{
	enum { MOST = 64 };
	if (!images("ricci_normalise", x, 2))
		return layer_nil(x);
	if (channels < 1 || channels > MOST || channels != ricci_extent(x, 1) || !mean ||
	    !deviation)
		return layer_fail(x,
				  "ricci_normalise: a mean and a deviation for each of the %lld "
				  "channels (at most %d) are needed, not %d",
				  (long long)ricci_extent(x, 1), MOST, channels);
	for (int c = 0; c < channels; c++)
		if (!isfinite(mean[c]) || !(deviation[c] > 0) || !isfinite(deviation[c]))
			return layer_fail(x,
					  "ricci_normalise: channel %d has mean %g and deviation "
					  "%g; the deviation is greater than 0",
					  c, mean[c], deviation[c]);
	Text t = {0};
	text_add(&t, "Y[b,c,...] = (X[b,c,...] - (");
	by_channel(&t, channels, mean);
	text_add(&t, ")) / (");
	by_channel(&t, channels, deviation);
	text_add(&t, ")");
	return layer_build(&t, 1, &x);
}
