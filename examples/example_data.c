/* example_data.c - the data of the examples: files of a folder, or digits that are drawn.
 * Input: e->folder, or NULL. Output: e->training's train and test. */
#include "examples/example.h"

#include <stdlib.h>

enum { DRAWN = 28, TRAIN = 6000, TEST = 1000, MOST_BYTES = 64 << 20 };

int example_digits(example *e)
{
	ricci_training *t = &e->training;
	t->train = e->folder ? ricci_mnist(e->folder, 0) : ricci_digits(TRAIN, 1);
	t->test = !t->train ? NULL : e->folder ? ricci_mnist(e->folder, 1) : ricci_digits(TEST, 2);
	return t->test ? 0 : RICCI_EIO;
}

/* A digit in one colour on a ground of another: out [3,side,side]. The colours follow from n. */
static void digit_paint(const uint8_t *digit, int64_t n, int side, uint8_t *out)
{
	int margin = side / 16, inside = side - 2 * margin;
	uint32_t hash = (uint32_t)n * 2654435761u;
	for (int c = 0; c < 3; c++) {
		int ground = hash >> (5 * c) & 127, ink = 128 + (hash >> (5 * c + 12) & 127);
		for (int y = 0; y < side; y++)
			for (int x = 0; x < side; x++) {
				int i = (y - margin) * DRAWN, j = (x - margin) * DRAWN;
				int in = i >= 0 && j >= 0 && i < inside * DRAWN &&
					 j < inside * DRAWN;
				int value = in ? digit[i / inside * DRAWN + j / inside] : 0;
				*out++ = (uint8_t)(ground + (ink - ground) * value / 255);
			}
	}
}

/* Digits in colours, `count` of them. NULL on an error. */
static ricci_data *digits_paint(example *e, int64_t count, uint64_t seed, int side)
{
	size_t size = 3 * (size_t)side * (size_t)side;
	if (count > (int64_t)(MOST_BYTES / size))
		count = (int64_t)(MOST_BYTES / size);
	uint8_t digit[DRAWN * DRAWN];
	uint8_t *image = example_own(e, (size_t)count * size);
	uint8_t *label = example_own(e, (size_t)count);
	ricci_data *digits = ricci_digits(count, seed), *d = ricci_data_new();
	int status = image && label && digits && d ? 0 : RICCI_ENOMEM;
	for (int64_t i = 0; i < count && !status; i++) {
		status = ricci_data_get(digits, "samples", i, digit, sizeof digit);
		if (!status)
			status = ricci_data_get(digits, "labels", i, &label[i], 1);
		digit_paint(digit, i, side, image + (size_t)i * size);
	}
	ricci_data_free(digits);
	if (!status)
		status =
			ricci_data_array(d, "samples", RICCI_U8, DIMS(count, 3, side, side), image);
	if (!status)
		status = ricci_data_array(d, "labels", RICCI_U8, DIMS(count), label);
	if (status) {
		ricci_data_free(d);
		return NULL;
	}
	return d;
}

static int digits_painted(example *e, int side)
{
	ricci_training *t = &e->training;
	t->train = digits_paint(e, TRAIN, 1, side);
	t->test = t->train ? digits_paint(e, TEST, 2, side) : NULL;
	return t->test ? 0 : RICCI_ENOMEM;
}

int example_images(example *e)
{
	ricci_training *t = &e->training;
	if (!e->folder)
		return digits_painted(e, 32);
	t->train = ricci_cifar10(e->folder, 0);
	t->test = t->train ? ricci_cifar10(e->folder, 1) : NULL;
	return t->test ? 0 : RICCI_EIO;
}

static ricci_data *npy_pair(const char *folder, const char *part)
{
	ricci_data *d = ricci_data_new();
	char path[4096];
	int status = d ? 0 : RICCI_ENOMEM;
	for (int k = 0; k < 2 && !status; k++) {
		snprintf(path, sizeof path, "%s/%s-%s.npy", folder, part, k ? "labels" : "images");
		status = ricci_data_npy(d, k ? "labels" : "samples", path);
	}
	if (status) {
		ricci_data_free(d);
		return NULL;
	}
	return d;
}

int example_large_images(example *e)
{
	ricci_training *t = &e->training;
	if (!e->folder)
		return digits_painted(e, 224);
	t->train = npy_pair(e->folder, "train");
	t->test = t->train ? npy_pair(e->folder, "test") : NULL;
	return t->test ? 0 : RICCI_EIO;
}

ricci_tensor *example_augmented(const example *e, ricci_tensor *x)
{
	if (!e->augment)
		return x;
	int64_t side = ricci_extent(x, 2);
	return ricci_random_crop(ricci_random_flip(x, 1), (int)side / 8, side, side, 2);
}
