/* Fields of data sets from arrays, .npy, raw records, CIFAR-10 and texts: values against what was
 * written, exact messages for damaged files, conversion in batches, memory that ends. */
#include "nn/data/data.h"
#include "tests/check.h"
#include "tests/memory_check.h"
#include "tests/nn/folder.h"

#include <zlib.h>

static const char *file_write(const char *name, const void *data, size_t n)
{
	const char *path = in_folder(name);
	FILE *f = fopen(path, "wb");
	fwrite(data, 1, n, f);
	fclose(f);
	return path;
}

/* The last message less the folder. */
static const char *brief(void)
{
	static char text[1024];
	size_t n = 0, cut = strlen(folder) + 1;
	for (const char *s = ricci_error_message(); *s; s++) {
		if (!strncmp(s, folder, cut - 1))
			s += cut;
		text[n++] = *s;
	}
	text[n] = 0;
	return text;
}

static void arrays(void)
{
	float x[6][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}}, one[2];
	int64_t y[6] = {5, -4, 3, 2, 1, INT64_C(1) << 40}, number;
	ricci_data *d = ricci_data_new();
	CHECK_INT(ricci_data_array(d, "x", RICCI_F32, 2, (int64_t[]){6, 2}, x), 0);
	CHECK_INT(ricci_data_array(d, "y", RICCI_I64, 1, (int64_t[]){6}, y), 0);
	CHECK_INT(ricci_data_count(d), 6);
	CHECK_INT(ricci_data_get(d, "x", 4, one, sizeof one), 0);
	CHECK(one[0] == 8 && one[1] == 9);
	CHECK_INT(ricci_data_get(d, "y", 1, &number, 8), 0);
	CHECK_INT(number, -4);
	/* y as i32 and f64, x as f16 and as it is; the last y doesn't fit */
	ricci_loaded want[] = {
		{"y", RICCI_I32, 0}, {"x", RICCI_F16, 0}, {"x", RICCI_F32, 0}, {"y", RICCI_F64, 0}};
	const void *field[4];
	ricci_loader *l =
		ricci_loader_open(d, &RICCI_LOADING(.batch = 3, .nfield = 4, .field = want));
	CHECK_INT(ricci_loader_batch(l, field), 3);
	CHECK_INT(((const int32_t *)field[0])[1], -4);
	CHECK_NEAR(type_load(RICCI_F16, field[1], 5), 5, 0);
	CHECK_NEAR(((const float *)field[2])[4], 4, 0);
	CHECK_NEAR(((const double *)field[3])[1], -4, 0);
	CHECK_INT(ricci_loader_batch(l, field), RICCI_EVALUE);
	CHECK_STR(ricci_error_message(),
		  "field 'y', sample 5, element 0: 1099511627776 does not fit the type i32");
	ricci_loader_free(l);
	/* the first error stays */
	CHECK_INT(ricci_data_array(d, "z", RICCI_U8, 1, (int64_t[]){5}, x), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(), "field 'z' has 5 samples, field 'x' has 6");
	CHECK_INT(ricci_data_array(d, "z", RICCI_U8, 1, (int64_t[]){6}, x), RICCI_ESHAPE);
	CHECK(!ricci_loader_open(d, &RICCI_LOADING(.batch = 1)));
	CHECK_STR(ricci_error_message(), "field 'z' has 5 samples, field 'x' has 6");
	CHECK_INT(ricci_data_error(d), RICCI_ESHAPE);
	ricci_data_free(d);
	d = ricci_data_new();
	CHECK_INT(ricci_data_error(d), 0);
	ricci_data_array(d, "x", RICCI_F32, 2, (int64_t[]){6, 2}, x);
	CHECK_INT(ricci_data_array(d, "x", RICCI_F32, 2, (int64_t[]){6, 2}, x), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "the data set has a field 'x' already");
	ricci_data_free(d);
	CHECK_INT(ricci_data_array(NULL, "x", RICCI_F32, 1, (int64_t[]){6}, x), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "no data set given");
}

/* ---- .npy */

/* A file with this dictionary, version, and n bytes of elements 0, 1, 2, .. */
static const char *npy_write(const char *dictionary, int version, int n)
{
	uint8_t b[1024] = "\x93NUMPY";
	size_t at = version == 1 ? 10 : 12, length = strlen(dictionary);
	b[6] = (uint8_t)version;
	b[8] = (uint8_t)length;
	memcpy(b + at, dictionary, length);
	for (int i = 0; i < n; i++)
		b[at + length + (size_t)i] = (uint8_t)i;
	return file_write("n", b, at + length + (size_t)n);
}

#define NPY(descr, order, shape)                                                                   \
	"{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

static void npy(void)
{
	for (int version = 1; version <= 3; version++) {
		uint8_t got[6];
		ricci_data *d = ricci_data_new();
		ricci_field f = RICCI_FIELD();
		CHECK_INT(ricci_data_npy(d, "a",
					 npy_write(NPY("|u1", "False", "(4, 2, 3)"), version, 24)),
			  0);
		CHECK_INT(ricci_data_field(d, 0, &f), 0);
		CHECK(f.type == RICCI_U8 && f.rank == 2 && f.shape[0] == 2 && f.shape[1] == 3);
		CHECK_INT(ricci_data_count(d), 4);
		CHECK_INT(ricci_data_get(d, "a", 3, got, 6), 0);
		CHECK_INT(got[0], 18);
		CHECK_INT(got[5], 23);
		ricci_data_free(d);
	}
	ricci_data *d = ricci_data_new();
	int32_t number;
	CHECK_INT(ricci_data_npy(d, "a", npy_write(NPY("<i4", "True", "(3,)"), 1, 12)), 0);
	CHECK_INT(ricci_data_get(d, "a", 1, &number, 4), 0);
	CHECK_INT(number, 0x07060504);
	CHECK_INT(truncate(in_folder("n"), 68), 0);
	CHECK_INT(ricci_data_get(d, "a", 2, &number, 4), RICCI_EFORMAT);
	CHECK_STR(brief(), "n has no byte 75: it was cut short after it was opened");
	ricci_data_free(d);
}

static void npy_bad(const char *dictionary, int version, int n, int code, const char *why)
{
	ricci_data *d = ricci_data_new();
	CHECK_INT(ricci_data_npy(d, "a", npy_write(dictionary, version, n)), code);
	CHECK_STR(brief(), why);
	ricci_data_free(d);
}

static void npy_damaged(void)
{
	npy_bad(NPY("<f4", "False", "(4, 2)"), 1, 31, RICCI_EFORMAT,
		"n is cut short at byte 101: 4 samples of 8 bytes from byte 70 on end at byte 102");
	npy_bad(NPY("<f4", "False", "(4, 2)"), 1, 33, RICCI_EFORMAT,
		"n has 1 bytes too many: 4 samples of 8 bytes from byte 70 on end at byte 102");
	npy_bad(NPY(">f4", "False", "(4,)"), 1, 16, RICCI_EUNSUPPORTED,
		"n, byte 21: elements of type '>f4'; |b1 |u1 |i1 <i4 <i8 <f2 <f4 <f8 can be read: "
		"save a.astype('<f4'), say");
	npy_bad(NPY("<f4", "True", "(4, 2)"), 1, 32, RICCI_EUNSUPPORTED,
		"n, byte 44: its elements are in Fortran's order: save "
		"numpy.ascontiguousarray(a)");
	npy_bad(NPY("<f4", "Maybe", "(4, 2)"), 1, 32, RICCI_EFORMAT,
		"n is damaged at byte 44: its header needs 'fortran_order': True or False");
	npy_bad(NPY("<f4", "False", "(4, -2)"), 1, 32, RICCI_EFORMAT,
		"n is damaged at byte 64: its header needs extents of 1 or more");
	npy_bad(NPY("<f4", "False", "()"), 1, 4, RICCI_EFORMAT,
		"n is damaged at byte 61: its header needs one dimension or more, the samples "
		"first");
	npy_bad(NPY("<f4", "False", "(4 2)"), 1, 32, RICCI_EFORMAT,
		"n is damaged at byte 63: its header needs a comma between two extents");
	npy_bad(NPY("<f4", "False", "(99999999999999999999,)"), 1, 32, RICCI_EFORMAT,
		"n is damaged at byte 61: its header needs extents of 1 or more");
	npy_bad(NPY("<f4", "False", "(9999999999, 9999999999)"), 1, 32, RICCI_EFORMAT,
		"n is damaged at byte 83: its header needs at most 2^48 elements");
	npy_bad(NPY("<f4", "False", "(4"), 1, 32, RICCI_EFORMAT,
		"n is damaged at byte 64: its header needs extents of 1 or more");
	npy_bad("{}\n", 1, 0, RICCI_EFORMAT,
		"n is damaged at byte 10: its header needs 'descr': a type such as '<f4'");
	npy_bad("{}\n", 4, 0, RICCI_EUNSUPPORTED,
		"n, byte 6: version 4 of .npy; 1, 2 and 3 can be read");
	ricci_data *d = ricci_data_new();
	CHECK_INT(ricci_data_npy(d, "a", file_write("n", "\x93NUMPY\1\0\xff\1{'descr'", 18)),
		  RICCI_EFORMAT);
	CHECK_STR(brief(), "n is cut short at byte 18, in its header");
	ricci_data_free(d);
	d = ricci_data_new();
	CHECK_INT(ricci_data_npy(d, "a", file_write("n", "PK\3\4, a zip", 11)), RICCI_EFORMAT);
	CHECK_STR(brief(), "n is not an .npy file: it doesn't begin with \\x93NUMPY and a version");
	ricci_data_free(d);
	d = ricci_data_new();
	CHECK_INT(ricci_data_npy(d, "a", in_folder("none")), RICCI_EIO);
	CHECK_STR(brief(), "cannot open none: No such file or directory");
	ricci_data_free(d);
}

/* ---- records */

static void raw(void)
{
	uint8_t b[5 + 4 * 10];
	for (int i = 0; i < COUNT(b); i++)
		b[i] = (uint8_t)i;
	const char *path = file_write("r", b, sizeof b);
	ricci_data *d = ricci_data_new();
	int64_t shape[] = {3};
	ricci_raw l = RICCI_RAW(.type = RICCI_U8, .rank = 1, .shape = shape, .offset = 5,
				.record = 10, .within = 7);
	uint8_t got[3];
	CHECK_INT(ricci_data_raw(d, "a", path, &l), 0);
	CHECK_INT(ricci_data_count(d), 4);
	CHECK_INT(ricci_data_get(d, "a", 3, got, 3), 0);
	CHECK(got[0] == 5 + 30 + 7 && got[2] == 5 + 30 + 9);
	l.within = 8;
	CHECK_INT(ricci_data_raw(d, "b", path, &l), RICCI_EINVAL);
	CHECK_STR(brief(), "field 'b': a raw file has a type, 0 to 16 dimensions, extents of 1 or "
			   "more, an offset of 0 or more, and samples that lie within their "
			   "records");
	ricci_data_free(d);
	d = ricci_data_new();
	l.within = 0;
	l.offset = 4;
	CHECK_INT(ricci_data_raw(d, "a", path, &l), RICCI_EFORMAT);
	CHECK_STR(brief(),
		  "r has 1 bytes too many: 4 samples of 10 bytes from byte 4 on end at byte 44");
	ricci_data_free(d);
	d = ricci_data_new();
	l.offset = 40;
	CHECK_INT(ricci_data_raw(d, "a", path, &l), RICCI_EFORMAT);
	CHECK_STR(brief(), "r is cut short at byte 45: 1 samples of 10 bytes from byte 40 on end "
			   "at byte 50");
	ricci_data_free(d);
	d = ricci_data_new();
	CHECK_INT(ricci_data_raw(d, "a", folder, &l), RICCI_EIO);
	CHECK(strstr(ricci_error_message(), " is no regular file"));
	ricci_data_free(d);
}

/* The binary version, with fewer images a file. */
static void cifar(void)
{
	static uint8_t b[3 * 3073];
	const char *name[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
			      "data_batch_4.bin", "data_batch_5.bin"};
	for (int k = 0; k < 5; k++) {
		for (int i = 0; i < 3; i++) {
			b[i * 3073] = (uint8_t)(k + i);
			memset(b + i * 3073 + 1, 10 * k + i, 3072);
		}
		file_write(name[k], b, sizeof b);
	}
	ricci_data *d = ricci_cifar10(folder, 0);
	uint8_t image[3072], label;
	CHECK_REPORT(d != NULL, "%s", ricci_error_message());
	CHECK_INT(ricci_data_count(d), 15);
	for (int i = 0; i < 15; i++) {
		ricci_data_get(d, "samples", i, image, 3072);
		ricci_data_get(d, "labels", i, &label, 1);
		CHECK_INT(label, i / 3 + i % 3);
		CHECK(image[0] == 10 * (i / 3) + i % 3 && image[3071] == image[0]);
	}
	ricci_data_free(d);
	CHECK_INT(truncate(in_folder(name[3]), 2 * 3073 + 100), 0);
	CHECK(!ricci_cifar10(folder, 0));
	CHECK_STR(brief(), "data_batch_4.bin has 100 bytes too many: 2 samples of 3073 bytes from "
			   "byte 0 on end at byte 6146");
	CHECK(!ricci_cifar10(folder, 1));
	CHECK_STR(brief(), "cannot open cifar10-t1k-images-idx4-ubyte.gz: No such file or "
			   "directory");
}

/* ---- texts */

static void text_windows(void)
{
	const char *path = file_write("t", "hällo, hällo wörld", 21); /* 18 characters */
	ricci_data *d = ricci_text(path, &RICCI_READING(.length = 5));
	int32_t x[5], y[5];
	int n;
	CHECK_REPORT(d != NULL, "%s", ricci_error_message());
	const uint32_t *alphabet = ricci_text_alphabet(d, &n);
	const uint32_t want[] = {' ', ',', 'd', 'h', 'l', 'o', 'r', 'w', 0xe4, 0xf6};
	CHECK_INT(n, COUNT(want));
	CHECK(!memcmp(alphabet, want, sizeof want));
	CHECK_INT(ricci_data_count(d), 3);
	ricci_data_get(d, "samples", 1, x, sizeof x); /* ", häl" */
	ricci_data_get(d, "targets", 1, y, sizeof y);
	CHECK(!memcmp(x, (int32_t[]){1, 0, 3, 8, 4}, sizeof x));
	CHECK(!memcmp(y, (int32_t[]){0, 3, 8, 4, 4}, sizeof y));
	CHECK_INT(ricci_text_encode(d, "wöd", x, 5), 3);
	CHECK(!memcmp(x, (int32_t[]){7, 9, 2}, 12));
	CHECK_INT(ricci_text_encode(d, "ho!", x, 5), RICCI_EVALUE);
	CHECK_STR(ricci_error_message(),
		  "byte 2 of the text begins no character of the data set's alphabet");
	ricci_data_free(d);
	/* every window, a part, bytes */
	d = ricci_text(path, &RICCI_READING(.length = 5, .stride = 1));
	CHECK_INT(ricci_data_count(d), 13);
	ricci_data_get(d, "targets", 12, y, sizeof y);
	CHECK(!memcmp(y, (int32_t[]){7, 9, 6, 4, 2}, sizeof y));
	ricci_data_free(d);
	d = ricci_text(path, &RICCI_READING(.length = 5, .from = 0.5, .to = 1));
	CHECK_INT(ricci_data_count(d), 1);
	ricci_data_get(d, "samples", 0, x, sizeof x); /* "llo w": the same alphabet */
	CHECK(!memcmp(x, (int32_t[]){4, 4, 5, 0, 7}, sizeof x));
	ricci_data_free(d);
	d = ricci_text(path, &RICCI_READING(.length = 5, .bytes = 1));
	CHECK_INT(ricci_data_count(d), 4);
	ricci_data_get(d, "samples", 0, x, sizeof x);
	CHECK(!memcmp(x, (int32_t[]){'h', 0xc3, 0xa4, 'l', 'l'}, sizeof x));
	ricci_text_alphabet(d, &n);
	CHECK_INT(n, 256);
	CHECK_INT(ricci_text_encode(d, "ä", x, 5), 2);
	ricci_data_free(d);
}

/* Batch k of b streams goes on in each where batch k-1 ended. */
static void text_streams(void)
{
	uint8_t b[200];
	for (int i = 0; i < 200; i++)
		b[i] = (uint8_t)i;
	const char *path = file_write("t", b, sizeof b);
	ricci_data *d = ricci_text(path, &RICCI_READING(.length = 6, .bytes = 1, .streams = 4));
	CHECK_INT(ricci_data_count(d), 32);
	ricci_loader *l = ricci_loader_open(d, &RICCI_LOADING(.batch = 4));
	const void *field[2];
	for (int k = 0; k < 8; k++) {
		CHECK_INT(ricci_loader_batch(l, field), 4);
		const int32_t *x = field[0], *y = field[1];
		for (int s = 0; s < 4; s++)
			for (int j = 0; j < 6; j++) {
				CHECK_INT(x[s * 6 + j], s * 48 + k * 6 + j);
				CHECK_INT(y[s * 6 + j], s * 48 + k * 6 + j + 1);
			}
	}
	CHECK_INT(ricci_loader_batch(l, field), 0);
	ricci_loader_free(l);
	CHECK(!ricci_loader_open(d, &RICCI_LOADING(.batch = 4, .shuffle = 1)));
	CHECK(!ricci_loader_open(d, &RICCI_LOADING(.batch = 8)));
	CHECK_STR(ricci_error_message(),
		  "a text in 4 streams is loaded in its order, in batches of 4");
	ricci_data_free(d);
}

static void text_bad(const void *s, size_t n, ricci_reading how, const char *why)
{
	CHECK(!ricci_text(file_write("t", s, n), &how));
	CHECK_STR(brief(), why);
}

static void text_damaged(void)
{
	ricci_reading how = RICCI_READING(.length = 4);
	text_bad("abc\xff"
		 "defg",
		 8, how, "t is not UTF-8 at byte 3 (ff); its bytes can be the tokens");
	text_bad("ab\xc3", 3, how, "t is not UTF-8 at byte 2 (c3); its bytes can be the tokens");
	text_bad("a\xed\xa0\x80", 4, how,
		 "t is not UTF-8 at byte 1 (ed); its bytes can be the tokens");
	text_bad("a\xe0\x80\x80", 4, how,
		 "t is not UTF-8 at byte 1 (e0); its bytes can be the tokens");
	text_bad("abcd", 4, how,
		 "t is too short: windows of 4 tokens need 5, and there are 4 (from token 0 to 4)");
	text_bad("", 0, how, "t is empty");
	text_bad("abcdefg", 7, RICCI_READING(.length = 0),
		 "ricci_text: a window has a length of 1 or more, not 0");
	text_bad("abcdefg", 7, RICCI_READING(.length = 1, .from = 0.5),
		 "ricci_text: the part from 0.5 to 0 is not within 0 and 1");
	gzFile f = gzopen(in_folder("t"), "wb");
	for (int i = 0; i < 100000; i++)
		gzputc(f, (i % 1000) * (i % 1000) % 97);
	gzclose(f);
	CHECK_INT(truncate(in_folder("t"), 100), 0);
	CHECK(!ricci_text(in_folder("t"), &how));
	CHECK(strstr(ricci_error_message(), "t is cut short at byte "));
	CHECK(!ricci_text(in_folder("none"), &how));
	CHECK_STR(brief(), "cannot open none: No such file or directory");
}

/* ---- real files */

static void real(void)
{
	const char *place = getenv("RICCI_DATA");
	char path[400];
	uint8_t label;
	int n = 0, count[10] = {0};
	place = place ? place : "../shared/data";
	ricci_data *d = ricci_cifar10(place, 1);
	snprintf(path, sizeof path, "%s/tinyshakespeare.txt.gz", place);
	ricci_data *t = ricci_text(path, &RICCI_READING(.length = 64));
	if (!d || !t) {
		CHECK_SKIP("no CIFAR-10 or tinyshakespeare in $RICCI_DATA or ../shared/data");
	} else {
		ricci_field f = RICCI_FIELD();
		CHECK_INT(ricci_data_count(d), 1000);
		CHECK_INT(ricci_data_field(d, 0, &f), 0);
		CHECK(f.rank == 3 && f.shape[0] == 3 && f.shape[1] == 32 && f.shape[2] == 32);
		for (int i = 0; i < 1000; i++) {
			ricci_data_get(d, "labels", i, &label, 1);
			CHECK(label < 10);
			count[label % 10]++;
		}
		for (int k = 0; k < 10; k++)
			CHECK(count[k] > 70 && count[k] < 130);
		ricci_text_alphabet(t, &n);
		CHECK_INT(n, 65); /* characters, of 1,115,394 */
		CHECK_INT(ricci_data_count(t), (1115394 - 1 - 64) / 64 + 1);
	}
	ricci_data_free(d);
	ricci_data_free(t);
}

/* ---- memory */

static int build(void)
{
	int64_t shape[] = {6};
	ricci_data *d = ricci_data_new(), *t = NULL;
	ricci_loader *l = NULL;
	const void *field[3];
	int code = RICCI_ENOMEM;
	if (d && !ricci_data_array(d, "x", RICCI_U8, 1, shape, "abcdef") &&
	    !ricci_data_npy(d, "n", in_folder("n")) &&
	    !ricci_data_raw(d, "r", in_folder("r"),
			    &RICCI_RAW(.type = RICCI_U8, .rank = 1, .shape = (int64_t[]){2})) &&
	    (l = ricci_loader_open(d, &RICCI_LOADING(.batch = 2, .shuffle = 1))) &&
	    ricci_loader_batch(l, field) == 2 &&
	    (t = ricci_text(in_folder("t"), &RICCI_READING(.length = 2))))
		code = 0;
	ricci_loader_free(l);
	ricci_data_free(d);
	ricci_data_free(t);
	return code;
}

static void no_memory(void)
{
	npy_write(NPY("<i4", "False", "(6, 1)"), 1, 24);
	file_write("r", "0123456789AB", 12);
	file_write("t", "some text", 9);
	check_memory(build);
}

int main(void)
{
	if (!folder_make("fields"))
		return 1;
	arrays();
	npy();
	npy_damaged();
	raw();
	cifar();
	text_windows();
	text_streams();
	text_damaged();
	real();
	no_memory();
	folder_remove();
	return check_done();
}
