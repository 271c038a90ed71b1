/* Data sets: IDX files good and bad, drawn digits, the order of samples, loaders that stop and
 * continue. Real MNIST when $RICCI_DATA or ../shared/data has it. */
#include "nn/data/data.h"
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
	ricci_field f = RICCI_FIELD();
	CHECK_INT(ricci_data_field(d, 0, &f), 0);
	CHECK(!strcmp(f.name, "samples") && f.type == RICCI_U8 && f.rank == 2 && f.shape[0] == 5 &&
	      f.shape[1] == 6);
	CHECK_INT(ricci_data_field(d, 1, &f), 0);
	CHECK(!strcmp(f.name, "labels") && f.type == RICCI_U8 && f.rank == 0);
	CHECK_INT(ricci_data_field(d, 2, &f), RICCI_EINVAL);
	uint8_t pixels[30], label;
	int wrong = 0;
	for (int i = 999; i >= 0; i -= 37) {
		CHECK_INT(ricci_data_get(d, "samples", i, pixels, 30), 0);
		CHECK_INT(ricci_data_get(d, "labels", i, &label, 1), 0);
		wrong += label != ((i * 7 + i / 256) & 255);
		for (int k = 0; k < 30; k++) {
			int at = i * 30 + k;
			wrong += pixels[k] != ((at * 7 + at / 256) & 255);
		}
	}
	CHECK_INT(wrong, 0);
	CHECK_INT(ricci_data_get(d, "samples", 1000, pixels, 30), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "no sample 1000: there are 1000");
	CHECK_INT(ricci_data_get(d, "samples", 0, pixels, 29), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(),
		  "a sample of field 'samples' has 30 bytes, the room has 29");
	CHECK_INT(ricci_data_get(d, "sample", 0, pixels, 30), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "the data set has no field 'sample'");
	ricci_data_free(d);
}

/* Elements of more than one byte are big-endian. */
static void typed(void)
{
	const char *path = idx_write("a", "wb", 0x0d, 2, (int[]){100, 3}, 1200);
	ricci_data *d = ricci_data_new();
	float x[3], want;
	CHECK_INT(ricci_data_idx(d, "targets", path), 0);
	for (int i = 0; i < 100; i += 33) {
		CHECK_INT(ricci_data_get(d, "targets", i, x, sizeof x), 0);
		for (int k = 0; k < 3; k++) {
			uint32_t bits = 0;
			for (int at = (i * 3 + k) * 4, b = 0; b < 4; b++, at++)
				bits = bits << 8 | ((at * 7 + at / 256) & 255);
			memcpy(&want, &bits, 4);
			CHECK(!memcmp(&x[k], &want, 4));
		}
	}
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
	bad(cut, y, "cut is cut short at byte 30012: its header promises 30000 bytes of elements");
	file_cut(x, cut, 100);
	ricci_data *d = ricci_idx(cut, y);
	CHECK(!d && strstr(ricci_error_message(), "cut short at byte"));
	bad(in_folder("none"), y, "cannot open none: No such file or directory");
	bad(x, in_folder("none"), "cannot open none: No such file or directory");
	bad(idx_write("a", "wbT", 8, 2, (int[]){100, 10}, 900), y,
	    "a is cut short: its header promises 1000 bytes of elements, the file has 912 in all");
	bad(idx_write("a", "wb", 8, 2, (int[]){100, 10}, 900), y,
	    "a is cut short at byte 912: its header promises 1000 bytes of elements");
	bad(idx_write("a", "wb", 8, 2, (int[]){100, 10}, 1001), y,
	    "a is longer than its header says: its 1000 bytes of elements end at byte 1012");
	bad(idx_write("a", "wb", 11, 2, (int[]){100, 10}, 2000), y,
	    "a, byte 2: elements of type 0b; 08 (u8), 09 (i8), 0c (i32), 0d (f32) and 0e (f64) can "
	    "be read");
	bad(idx_write("a", "wb", 8, 9, (int[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, 1), y,
	    "a is not an IDX file: it begins with 00 00 08 09, not with 00 00 and a type and a "
	    "number of dimensions (08 03, say)");
	bad(idx_write("a", "wb", 8, 2, (int[]){100, 0}, 0), y,
	    "a is not an IDX file: at byte 8, dimension 1 has an extent of 0");
	bad(idx_write("a", "wb", 8, 3, (int[]){0x7fffffff, 0x7fffffff, 0x7fffffff}, 0), y,
	    "a is not an IDX file: at byte 8, dimension 1 has an extent of 2147483647");
	bad(idx_write("a", "wb", 8, 2, (int[]){0x7fffffff, 1000}, 10), y,
	    "a is cut short: its header promises 2147483647000 bytes of elements, the file has 42 "
	    "in all");
	bad(idx_write("a", "wb", 8, 2, (int[]){101, 10}, 1010), y,
	    "field 'labels' has 100 samples, field 'samples' has 101");
	bad(x, x, "x has 2 dimensions; labels have one");
	FILE *f = fopen(in_folder("a"), "w");
	fputs("hi", f);
	fclose(f);
	bad(in_folder("a"), y, "a is not an IDX file: it has 2 bytes");
	f = fopen(in_folder("a"), "wb");
	fwrite("\0\0\10\2\0\0\0", 1, 7, f);
	fclose(f);
	bad(in_folder("a"), y, "a is cut short at byte 7: its header has 12 bytes");
	f = fopen(in_folder("a"), "w");
	fputs("#!/bin/sh\nexit\n", f);
	fclose(f);
	bad(in_folder("a"), y,
	    "a is not an IDX file: it begins with 23 21 2f 62, not with 00 00 and a type and a "
	    "number of dimensions (08 03, say)");
	f = fopen(x, "r+b"); /* a bit of the packed elements */
	fseek(f, 200, SEEK_SET);
	int c = fgetc(f);
	fseek(f, 200, SEEK_SET);
	fputc(c ^ 0x55, f);
	fclose(f);
	CHECK(!ricci_idx(x, y) && strstr(ricci_error_message(), "x is damaged at byte "));
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
		rng_order(5, epoch, N, 1, a);
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
		rng_order(5, epoch, N, 1, b);
		CHECK(!memcmp(a, b, sizeof a));
		rng_order(6, epoch, N, 1, b);
		CHECK(memcmp(a, b, sizeof a));
		rng_order(5, epoch + 1, N, 1, b);
		CHECK(memcmp(a, b, sizeof a));
	}
	rng_order(5, 0, N, 1, a);
	uint32_t most = 0;
	for (int i = 0; i < 32; i++)
		most = a[i] > most ? a[i] : most;
	CHECK(most < 256); /* the first batch need not wait for the whole file */
	rng_order(1, 0, 1, 1, a);
	CHECK_INT(a[0], 0);
}

static void digits(void)
{
	ricci_data *d = ricci_digits(500, 3), *e = ricci_digits(700, 3);
	ricci_data *other = ricci_digits(500, 4);
	uint8_t a[784], b[784], c[784], la, lb;
	int count[10] = {0}, differ = 0, ink = 0;
	for (int i = 0; i < 500; i++) {
		CHECK_INT(ricci_data_get(d, "samples", i, a, 784), 0);
		ricci_data_get(d, "labels", i, &la, 1);
		ricci_data_get(e, "samples", i, b, 784);
		ricci_data_get(e, "labels", i, &lb, 1);
		ricci_data_get(other, "samples", i, c, 784);
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

static const ricci_loaded image[] = {{"samples", RICCI_F32, 1}, {"labels", RICCI_I32, 0}};

static ricci_loader *loader(ricci_data *d, int batch, int shuffle, uint64_t seed)
{
	return ricci_loader_open(d, &RICCI_LOADING(.batch = batch, .shuffle = shuffle, .seed = seed,
						   .nfield = 2, .field = image));
}

/* Batches of a loader that is started anew at each of some positions equal those of one that never
 * stopped. */
static void seeking(ricci_data *d)
{
	ricci_loader *whole = loader(d, 16, 1, 9), *part = loader(d, 16, 1, 9);
	const void *x[2], *u[2];
	for (int epoch = 0; epoch < 3; epoch++) {
		for (int k = 0; k < 6; k++) {
			CHECK_INT(ricci_loader_seek(part, (uint64_t)epoch, 16 * k), 0);
			CHECK_INT(ricci_loader_batch(whole, x), 16);
			CHECK_INT(ricci_loader_batch(part, u), 16);
			CHECK(!memcmp(x[0], u[0], 16 * 784 * sizeof(float)) &&
			      !memcmp(x[1], u[1], 16 * sizeof(int32_t)));
		}
		CHECK_INT(ricci_loader_batch(whole, x), 0);
		CHECK_INT(ricci_loader_batch(whole, NULL), RICCI_EINVAL);
		CHECK_INT(ricci_loader_batch(NULL, x), RICCI_EINVAL);
		CHECK_STR(ricci_error_message(),
			  "ricci_loader_batch: loader and fields must be given");
	}
	CHECK_INT(ricci_loader_seek(part, 0, 7), RICCI_EINVAL);
	CHECK_INT(ricci_loader_seek(part, 0, 112), RICCI_EINVAL);
	ricci_loader_free(whole);
	ricci_loader_free(part);
}

static void no_loader(ricci_data *d, const ricci_loading *how, const char *why)
{
	CHECK(!ricci_loader_open(d, how));
	CHECK_STR(ricci_error_message(), why);
}

static void loaders(void)
{
	ricci_data *d = ricci_digits(100, 1);
	seeking(d);
	ricci_loader *plain = loader(d, 32, 0, 0);
	int want[] = {32, 32, 32, 4, 0, 32}, at = 0, differ = 0;
	uint8_t pixels[784], label;
	for (int k = 0; k < 6; k++) {
		const void *field[2];
		int n = ricci_loader_batch(plain, field);
		CHECK_INT(n, want[k]);
		for (int i = 0; i < n && k < 4; i++, at++) {
			const float *x = (const float *)field[0] + (size_t)i * 784;
			ricci_data_get(d, "samples", at, pixels, 784);
			ricci_data_get(d, "labels", at, &label, 1);
			differ += label != ((const int32_t *)field[1])[i];
			for (int j = 0; j < 784; j++)
				differ += x[j] != (float)pixels[j] * (1.0f / 255);
		}
	}
	CHECK_INT(at, 100);
	CHECK_INT(differ, 0);
	ricci_loader_free(plain);
	no_loader(d, &RICCI_LOADING(.batch = 101, .shuffle = 1),
		  "batches of 101 cannot be made of 100 samples");
	no_loader(NULL, &RICCI_LOADING(.batch = 1), "a loader needs a data set");
	no_loader(d, NULL, "ricci_loader_open needs a ricci_loading");
	ricci_loaded wrong[] = {{"labels", RICCI_BOOL, 0}, {"labels", RICCI_I32, 1}, {"ink", 0, 0}};
	ricci_loading how = RICCI_LOADING(.batch = 1, .nfield = 1);
	const char *why[] = {"field 'labels' has elements of type u8, which can't be made bool",
			     "field 'labels' has elements of type u8, which can't be made i32 in "
			     "0..1 (u8 can be)",
			     "the data set has no field 'ink'; it has 'samples', 'labels'"};
	for (int k = 0; k < 3; k++) {
		how.field = &wrong[k];
		no_loader(d, &how, why[k]);
	}
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
	uint8_t label, first[] = {7, 2, 1, 0, 4};
	for (int i = 0; i < 5; i++) {
		CHECK_INT(ricci_data_get(d, "labels", i, &label, 1), 0);
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
		ricci_loader *l = d ? loader(d, 10, 1, 1) : NULL;
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
	typed();
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
