/* Data sets: IDX files good and bad, drawn digits, the order of samples, loaders that stop and
 * continue. Real MNIST when $RICCI_DATA or ../shared/data has it. */
#include "nn/nn.h"
#include "tests/check.h"
#include "tests/nn/folder.h"

#include <zlib.h>

/* A file of a header and `bytes` elements 0, 1, 2, ..; "wb" packed by zlib, "wbT" plain. */
static const char *idx_write(const char *name, const char *mode, int type, int rank,
			     const int *extent, int bytes)
{
	const char *path = in_folder(name);
	gzFile f = gzopen(path, mode);
	gzputc(f, 0);
	gzputc(f, 0);
	gzputc(f, type);
	gzputc(f, rank);
	for (int d = 0; d < rank; d++)
		for (int s = 24; s >= 0; s -= 8)
			gzputc(f, extent[d] >> s & 255);
	for (int i = 0; i < bytes; i++)
		gzputc(f, (i * 7 + i / 256) & 255);
	gzclose(f);
	return path;
}

static void file_cut(const char *path, const char *to, long less)
{
	FILE *in = fopen(path, "rb"), *out = fopen(to, "wb");
	fseek(in, 0, SEEK_END);
	long n = ftell(in) - less;
	rewind(in);
	for (long i = 0; i < n; i++)
		fputc(fgetc(in), out);
	fclose(in);
	fclose(out);
}

static void good(const char *mode)
{
	const char *x = idx_write("x", mode, 8, 3, (int[]){1000, 5, 6}, 30000);
	const char *y = idx_write("y", mode, 8, 1, (int[]){1000}, 1000);
	ricci_data *d = ricci_idx(x, y);
	CHECK(d);
	CHECK_REPORT(d != NULL, "%s", ricci_error_message());
	CHECK_INT(ricci_data_count(d), 1000);
	CHECK_INT(ricci_data_size(d), 30);
	uint8_t pixels[30];
	int label, wrong = 0;
	for (int i = 999; i >= 0; i -= 37) {
		CHECK_INT(ricci_data_get(d, i, pixels, &label), 0);
		wrong += label != ((i * 7 + i / 256) & 255);
		for (int k = 0; k < 30; k++) {
			int at = i * 30 + k;
			wrong += pixels[k] != ((at * 7 + at / 256) & 255);
		}
	}
	CHECK_INT(wrong, 0);
	CHECK_INT(ricci_data_get(d, 1000, pixels, &label), RICCI_EINVAL);
	ricci_data_free(d);
}

/* The message of opening x (and good labels y), less the folder. */
static void bad(const char *x, const char *y, const char *want)
{
	char brief[512];
	ricci_data *d = ricci_idx(x, y);
	CHECK(!d);
	ricci_data_free(d);
	size_t n = 0, cut = strlen(folder) + 1;
	for (const char *s = ricci_error_message(); *s; s++) {
		if (!strncmp(s, folder, cut - 1))
			s += cut;
		brief[n++] = *s;
	}
	brief[n] = 0;
	CHECK_STR(brief, want);
}

static void bad_files(void)
{
	const char *y = strdup(idx_write("y", "wb", 8, 1, (int[]){100}, 100));
	const char *x = strdup(idx_write("x", "wb", 8, 2, (int[]){100, 300}, 30000));
	const char *cut = strdup(in_folder("cut"));
	file_cut(x, cut, 9);
	bad(cut, y,
	    "cut is cut short: its header promises 30000 bytes of elements, there are 30000");
	file_cut(x, cut, 100);
	ricci_data *d = ricci_idx(cut, y);
	CHECK(!d && strstr(ricci_error_message(), "cut short"));
	bad(in_folder("none"), y, "cannot open none: No such file or directory");
	bad(x, in_folder("none"), "cannot open none: No such file or directory");
	bad(idx_write("a", "wbT", 8, 2, (int[]){100, 10}, 900), y,
	    "a is cut short: its header promises 1000 bytes of elements, the file has 912 in all");
	bad(idx_write("a", "wb", 8, 2, (int[]){100, 10}, 900), y,
	    "a is cut short: its header promises 1000 bytes of elements, there are 900");
	bad(idx_write("a", "wb", 8, 2, (int[]){100, 10}, 1001), y,
	    "a is longer than its header says (1000 bytes of elements)");
	bad(idx_write("a", "wb", 13, 2, (int[]){100, 10}, 4000), y,
	    "a holds elements of type 0d; unsigned bytes (08) are what can be read");
	bad(idx_write("a", "wb", 8, 9, (int[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, 1), y,
	    "a is not an IDX file: it begins with 00 00 08 09, not with 00 00 08 and a number of "
	    "dimensions");
	bad(idx_write("a", "wb", 8, 2, (int[]){100, 0}, 0), y,
	    "a is not an IDX file: dimension 1 has an extent of 0");
	bad(idx_write("a", "wb", 8, 3, (int[]){0x7fffffff, 0x7fffffff, 0x7fffffff}, 0), y,
	    "a is not an IDX file: dimension 1 has an extent of 2147483647");
	bad(idx_write("a", "wb", 8, 2, (int[]){0x7fffffff, 1000}, 10), y,
	    "a is cut short: its header promises 2147483647000 bytes of elements, the file has 42 "
	    "in "
	    "all");
	bad(idx_write("a", "wb", 8, 2, (int[]){101, 10}, 1010), y,
	    "y has 100 labels, a has 101 samples");
	bad(x, x, "x has 2 dimensions; labels have one");
	FILE *f = fopen(in_folder("a"), "w");
	fputs("hi", f);
	fclose(f);
	bad(in_folder("a"), y, "a is not an IDX file: it has 2 bytes");
	f = fopen(in_folder("a"), "w");
	fputs("#!/bin/sh\nexit\n", f);
	fclose(f);
	bad(in_folder("a"), y,
	    "a is not an IDX file: it begins with 23 21 2f 62, not with 00 00 08 and a number of "
	    "dimensions");
	free((void *)x);
	free((void *)y);
	free((void *)cut);
}

static void orders(void)
{
	enum { N = 5000 };
	static uint32_t a[N], b[N];
	static char seen[N];
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		rng_order(5, epoch, N, a);
		memset(seen, 0, N);
		int same = 0, twice = 0;
		double sum = 0;
		for (int i = 0; i < N; i++) {
			twice += seen[a[i]]++;
			same += a[i] == (uint32_t)i;
			sum += i < N / 2 ? a[i] : 0;
		}
		CHECK_INT(twice, 0);
		CHECK(same < 20);
		CHECK_NEAR(sum / (N / 2), N / 2, epoch ? 200 : 400);
		rng_order(5, epoch, N, b);
		CHECK(!memcmp(a, b, sizeof a));
		rng_order(6, epoch, N, b);
		CHECK(memcmp(a, b, sizeof a));
		rng_order(5, epoch + 1, N, b);
		CHECK(memcmp(a, b, sizeof a));
	}
	rng_order(5, 0, N, a);
	uint32_t most = 0;
	for (int i = 0; i < 32; i++)
		most = a[i] > most ? a[i] : most;
	CHECK(most < 256); /* the first batch need not wait for the whole file */
	rng_order(1, 0, 1, a);
	CHECK_INT(a[0], 0);
}

static void digits(void)
{
	ricci_data *d = ricci_digits(500, 3), *e = ricci_digits(700, 3);
	ricci_data *other = ricci_digits(500, 4);
	uint8_t a[784], b[784], c[784];
	int la, lb, lc, count[10] = {0}, differ = 0, ink = 0;
	for (int i = 0; i < 500; i++) {
		CHECK_INT(ricci_data_get(d, i, a, &la), 0);
		ricci_data_get(e, i, b, &lb);
		ricci_data_get(other, i, c, &lc);
		differ += la != lb || memcmp(a, b, 784);
		ink += memcmp(a, c, 784) != 0;
		count[la]++;
		int bright = 0;
		for (int k = 0; k < 784; k++)
			bright += a[k] > 200;
		CHECK(bright > 15 && bright < 350);
	}
	CHECK_INT(differ, 0);
	CHECK_INT(ink, 500);
	for (int k = 0; k < 10; k++)
		CHECK(count[k] > 20 && count[k] < 80);
	ricci_data_free(d);
	ricci_data_free(e);
	ricci_data_free(other);
	CHECK(!ricci_digits(0, 1));
	CHECK_STR(ricci_error_message(), "cannot draw 0 digits");
}

/* Batches of a loader that is started anew at each of some positions equal those of one that never
 * stopped. */
static void loaders(void)
{
	ricci_data *d = ricci_digits(100, 1);
	ricci_loader *whole = ricci_loader_new(d, 16, 1, 9);
	ricci_loader *part = ricci_loader_new(d, 16, 1, 9);
	const float *x, *u;
	const int32_t *y, *v;
	for (int epoch = 0; epoch < 3; epoch++) {
		for (int k = 0; k < 6; k++) {
			CHECK_INT(ricci_loader_seek(part, (uint64_t)epoch, 16 * k), 0);
			CHECK_INT(ricci_loader_next(whole, &x, &y), 16);
			CHECK_INT(ricci_loader_next(part, &u, &v), 16);
			CHECK(!memcmp(x, u, 16 * 784 * sizeof *x) && !memcmp(y, v, 16 * sizeof *y));
		}
		CHECK_INT(ricci_loader_next(whole, &x, &y), 0);
		CHECK_INT(ricci_loader_next(whole, NULL, &y), RICCI_EINVAL);
		CHECK_INT(ricci_loader_next(NULL, &x, &y), RICCI_EINVAL);
		CHECK_STR(ricci_error_message(),
			  "ricci_loader_next: loader, samples and labels must be given");
	}
	CHECK_INT(ricci_loader_seek(part, 0, 7), RICCI_EINVAL);
	CHECK_INT(ricci_loader_seek(part, 0, 112), RICCI_EINVAL);
	ricci_loader_free(whole);
	ricci_loader_free(part);
	ricci_loader *plain = ricci_loader_new(d, 32, 0, 0);
	int want[] = {32, 32, 32, 4, 0, 32}, at = 0, differ = 0;
	uint8_t pixels[784];
	for (int k = 0; k < 6; k++) {
		int n = ricci_loader_next(plain, &x, &y);
		CHECK_INT(n, want[k]);
		for (int i = 0; i < n && k < 4; i++, at++) {
			int label;
			ricci_data_get(d, at, pixels, &label);
			differ += label != y[i];
			for (int j = 0; j < 784; j++)
				differ += x[i * 784 + j] != (float)pixels[j] * (1.0f / 255);
		}
	}
	CHECK_INT(at, 100);
	CHECK_INT(differ, 0);
	ricci_loader_free(plain);
	CHECK(!ricci_loader_new(d, 101, 1, 0));
	CHECK_STR(ricci_error_message(), "batches of 101 cannot be made of 100 samples");
	ricci_data_free(d);
}

static void mnist(void)
{
	const char *place = getenv("RICCI_DATA");
	ricci_data *d = ricci_mnist(place ? place : "../shared/data", 1);
	if (!d && !place) {
		CHECK_SKIP("no MNIST in $RICCI_DATA or ../shared/data");
		return;
	}
	CHECK(d);
	CHECK_INT(ricci_data_count(d), 10000);
	CHECK_INT(ricci_data_size(d), 784);
	int label, first[] = {7, 2, 1, 0, 4};
	for (int i = 0; i < 5; i++) {
		CHECK_INT(ricci_data_get(d, i, NULL, &label), 0);
		CHECK_INT(label, first[i]);
	}
	ricci_data_free(d);
}

static void no_memory(void)
{
	const char *x = strdup(idx_write("x", "wb", 8, 2, (int[]){100, 30}, 3000));
	const char *y = strdup(idx_write("y", "wb", 8, 1, (int[]){100}, 100));
	long before = mem_live();
	bool done = false;
	for (int n = 1; n < 40 && !done; n++) {
		mem_fail_at(n);
		ricci_data *d = ricci_idx(x, y);
		ricci_loader *l = d ? ricci_loader_new(d, 10, 1, 1) : NULL;
		done = l != NULL;
		mem_fail_at(0);
		ricci_loader_free(l);
		ricci_data_free(d);
		CHECK_INT(mem_live(), before);
	}
	CHECK(done);
	free((void *)x);
	free((void *)y);
}

int main(void)
{
	if (!folder_make("data"))
		return 1;
	good("wb");
	good("wbT");
	bad_files();
	orders();
	digits();
	loaders();
	mnist();
	no_memory();
	const char *names[] = {"x", "y", "a", "cut"};
	folder_close(COUNT(names), names);
	return check_done();
}
