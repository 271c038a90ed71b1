/* Fields streamed from HDF5: every sample once an epoch with its values, less memory than the
 * dataset has, the same order after a seek, damaged files named, a lost child, a fork. */
#include "nn/data/data.h"
#include "tests/check.h"
#include "tests/child.h"
#include "tests/memory_check.h"
#include "tests/nn/folder.h"

#include <hdf5.h>
#include <signal.h>

enum { SAMPLES = 20000, SIZE = 1024, CHUNK = 100 }; /* 80 MB of i32, in chunks of 400 KB */

static int32_t value(int64_t i, int64_t j)
{
	return (int32_t)(i * 7 + (j & 15));
}

/* /x i32 [n, SIZE], packed and checksummed; /group/y f32 [n]. */
static const char *file_make(const char *name, hsize_t n)
{
	const char *path = in_folder(name);
	hsize_t shape[2] = {n, SIZE}, chunk[2] = {CHUNK, SIZE}, count[2] = {CHUNK, SIZE};
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t p = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, shape, NULL);
	H5Pset_chunk(p, 2, chunk);
	H5Pset_deflate(p, 1);
	H5Pset_fletcher32(p);
	hid_t d = H5Dcreate2(f, "x", H5T_NATIVE_INT32, space, H5P_DEFAULT, p, H5P_DEFAULT);
	hid_t room = H5Screate_simple(2, count, NULL);
	static int32_t x[CHUNK][SIZE];
	for (hsize_t at[2] = {0, 0}; at[0] < n; at[0] += CHUNK) {
		for (int i = 0; i < CHUNK; i++)
			for (int j = 0; j < SIZE; j++)
				x[i][j] = value((int64_t)at[0] + i, j);
		H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, count, NULL);
		H5Dwrite(d, H5T_NATIVE_INT32, room, space, H5P_DEFAULT, x);
	}
	H5Dclose(d);
	float *y = malloc(n * sizeof *y);
	for (hsize_t i = 0; i < n; i++)
		y[i] = (float)i;
	hid_t group = H5Gcreate2(f, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	hid_t line = H5Screate_simple(1, shape, NULL);
	d = H5Dcreate2(f, "group/y", H5T_NATIVE_FLOAT, line, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
	H5Dclose(d);
	d = H5Dcreate2(f, "big", H5T_IEEE_F32BE, line, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dclose(d);
	H5Gclose(group);
	H5Sclose(line);
	H5Sclose(room);
	H5Sclose(space);
	H5Pclose(p);
	H5Fclose(f);
	free(y);
	return path;
}

static ricci_data *both(const char *path)
{
	ricci_data *d = ricci_data_new();
	CHECK_INT(ricci_data_hdf5(d, "x", path, "/x"), 0);
	CHECK_INT(ricci_data_hdf5(d, "y", path, "/group/y"), 0);
	CHECK_REPORT(!ricci_data_error(d), "%s", ricci_error_message());
	return d;
}

/* Bytes of memory that the process has. */
static long resident(void)
{
	long all = 0, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%ld %ld", &all, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static void epoch(const char *path)
{
	static char seen[SAMPLES];
	static int32_t first[100];
	long before = resident();
	ricci_data *d = both(path);
	ricci_loader *l =
		ricci_loader_open(d, &RICCI_LOADING(.batch = 32, .shuffle = 1, .seed = 3));
	const void *field[2];
	int wrong = 0, twice = 0, n, moved = 0, batches = 0;
	CHECK_INT(ricci_data_count(d), SAMPLES);
	for (; (n = ricci_loader_batch(l, field)) > 0; batches++)
		for (int i = 0; i < n; i++) {
			const int32_t *x = (const int32_t *)field[0] + (size_t)i * SIZE;
			int sample = (int)((const float *)field[1])[i];
			twice += seen[sample]++;
			moved += sample != batches * 32 + i;
			first[batches % 100] = sample;
			for (int j = 0; j < SIZE; j++)
				wrong += x[j] != value(sample, j);
		}
	CHECK_REPORT(n == 0, "%s", ricci_error_message());
	CHECK_INT(batches, SAMPLES / 32);
	CHECK_INT(wrong, 0);
	CHECK_INT(twice, 0);
	CHECK(moved > SAMPLES * 9 / 10);
	/* 18 blocks of 800 KB, not 80 MB; sanitizers' own memory is not counted */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	CHECK_REPORT(resident() - before < 40 << 20, "%ld bytes more", resident() - before);
#endif
	CHECK(before > 0);
	/* from the middle, again */
	CHECK_INT(ricci_loader_seek(l, 0, 32 * 590), 0);
	for (int k = 590; k < 595; k++) {
		n = ricci_loader_batch(l, field);
		CHECK(n == 32 && (int)((const float *)field[1])[31] == first[k % 100]);
	}
	ricci_loader_free(l);
	ricci_data_free(d);
}

/* In the file's order, batches larger than a block and than all slots. */
static void large_batches(const char *path)
{
	ricci_data *d = both(path);
	ricci_loader *l = ricci_loader_open(d, &RICCI_LOADING(.batch = 7000));
	const void *field[2];
	int want[] = {7000, 7000, 6000, 0}, at = 0, wrong = 0;
	for (int k = 0; k < 4; k++) {
		int n = ricci_loader_batch(l, field);
		CHECK_INT(n, want[k]);
		for (int i = 0; i < n; i++, at++)
			wrong += ((const int32_t *)field[0])[(size_t)i * SIZE] != value(at, 0);
	}
	CHECK_INT(wrong, 0);
	ricci_loader_free(l);
	ricci_data_free(d);
}

static void bad(const char *path, const char *dataset, int code, const char *why)
{
	ricci_data *d = ricci_data_new();
	CHECK_INT(ricci_data_hdf5(d, "a", path, dataset), code);
	CHECK_REPORT(strstr(ricci_error_message(), why) != NULL, "%s", ricci_error_message());
	ricci_data_free(d);
}

static void damaged(const char *path)
{
	bad(in_folder("none"), "x", RICCI_EIO, "/none: No such file or directory");
	bad(path, "z", RICCI_EFORMAT, "/f.h5 has no dataset z");
	bad(path, "group", RICCI_EFORMAT, "/f.h5 has no dataset group");
	bad(path, "big", RICCI_EUNSUPPORTED, "/f.h5: big has elements of a type that can't be");
	FILE *f = fopen(in_folder("text"), "w");
	fputs("no HDF5 at all", f);
	fclose(f);
	bad(in_folder("text"), "x", RICCI_EFORMAT, "/text is not an HDF5 file, or damaged: ");
	/* a byte in the midst of the packed chunks */
	const char *small = file_make("small.h5", 2000);
	f = fopen(small, "r+b");
	fseek(f, 0, SEEK_END);
	long middle = ftell(f) / 2;
	fseek(f, middle, SEEK_SET);
	int c = fgetc(f);
	fseek(f, middle, SEEK_SET);
	fputc(c ^ 0x5a, f);
	fclose(f);
	ricci_data *d = both(small);
	ricci_loader *l = ricci_loader_open(d, &RICCI_LOADING(.batch = 10));
	const void *field[2];
	int n;
	while ((n = ricci_loader_batch(l, field)) > 0)
		;
	CHECK_INT(n, RICCI_EFORMAT);
	CHECK_REPORT(strstr(ricci_error_message(), "/small.h5: /x is damaged in samples ") != NULL,
		     "%s", ricci_error_message());
	ricci_loader_free(l);
	ricci_data_free(d);
}

/* The child that reads is killed: an error, no hang. */
static void lost(const char *path)
{
	char name[64];
	int pid = 0, n = 0, last = 0;
	ricci_data *d = both(path);
	snprintf(name, sizeof name, "/proc/self/task/%d/children", getpid());
	FILE *f = fopen(name, "r");
	while (f && fscanf(f, "%d", &pid) == 1) {
		kill(pid, SIGKILL);
		n++;
	}
	if (f)
		fclose(f);
	if (n) {
		float y;
		last = ricci_data_get(d, "y", 5, &y, 4);
		CHECK(last == RICCI_EIO || last == RICCI_ENOMEM);
		CHECK(strstr(ricci_error_message(), "HDF5"));
		CHECK_INT(ricci_data_get(d, "y", 5, &y, 4), last);
	} else {
		CHECK_SKIP("no list of children here");
	}
	ricci_data_free(d);
}

static ricci_data *inherited;

static int in_child(void)
{
	float y;
	int wrong = ricci_data_get(inherited, "y", 5, &y, 4) != RICCI_EUNSUPPORTED;
	ricci_data_free(inherited);
	_exit(wrong);
}

static void forks(const char *path)
{
	float y = 0;
	inherited = both(path);
	CHECK_INT(child(in_child), 0);
	CHECK_INT(ricci_data_get(inherited, "y", 5, &y, 4), 0);
	CHECK_NEAR(y, 5, 0);
	ricci_data_free(inherited);
}

static int build(void)
{
	ricci_data *d = ricci_data_new();
	float y;
	int code = d ? ricci_data_hdf5(d, "y", in_folder("f.h5"), "/group/y") : RICCI_ENOMEM;
	if (!code)
		code = ricci_data_get(d, "y", 5, &y, 4);
	ricci_data_free(d);
	return code;
}

int main(void)
{
	if (!folder_make("stream"))
		return 1;
	const char *path = strdup(file_make("f.h5", SAMPLES));
	epoch(path);
	large_batches(path);
	damaged(path);
	lost(path);
	forks(path);
	check_memory(build);
	free((void *)path);
	folder_remove();
	return check_done();
}
