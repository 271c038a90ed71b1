/* collections.c - the files of well-known collections of images, as people download them.
 * Input: a folder. Output: a data set with fields "samples" and "labels". Nothing else in the
 * library knows these names. */
#include "nn/data/data.h"

#include <sys/stat.h>

enum { PATH = 4096 };

ricci_data *ricci_idx(const char *samples, const char *labels)
{
	ricci_data *d = ricci_data_new();
	if (!d)
		return NULL;
	if (!samples || !labels)
		return data_finish(
			d, DATA_FAIL(d, RICCI_EINVAL, "ricci_idx needs the paths of two files"));
	int status = ricci_data_idx(d, "samples", samples);
	if (!status)
		status = ricci_data_idx(d, "labels", labels);
	if (!status && d->field[1].rank)
		status = DATA_FAIL(d, RICCI_EFORMAT, "%s has %d dimensions; labels have one",
				   labels, d->field[1].rank + 1);
	return data_finish(d, status);
}

ricci_data *ricci_mnist(const char *folder, int test)
{
	Error *err = ERROR_TELL;
	char samples[PATH], labels[PATH];
	if (data_path(samples, PATH, folder,
		      test ? "t10k-images-idx3-ubyte" : "train-images-idx3-ubyte", err) ||
	    data_path(labels, PATH, folder,
		      test ? "t10k-labels-idx1-ubyte" : "train-labels-idx1-ubyte", err))
		return NULL;
	return ricci_idx(samples, labels);
}

/* Records of a label and 3 x 32 x 32 bytes, 10,000 a file. */
static ricci_data *cifar_batches(int nfile, char (*path)[PATH])
{
	ricci_data *d = ricci_data_new();
	Field label = {.name = "labels", .type = RICCI_U8};
	Field image = {.name = "samples", .type = RICCI_U8, .rank = 3, .shape = {3, 32, 32}};
	int64_t record = 1 + 3 * 32 * 32;
	RawFile file[5];
	for (int k = 0; k < nfile; k++)
		file[k] = (RawFile){path[k], -1};
	int status =
		d ? raw_add(d, &image, nfile, file, (RecordLayout){0, record, 1}) : RICCI_ENOMEM;
	if (!status)
		status = raw_add(d, &label, nfile, file, (RecordLayout){0, record, 0});
	return data_finish(d, status);
}

ricci_data *ricci_cifar10(const char *folder, int test)
{
	Error *err = ERROR_TELL;
	char path[5][PATH], name[48];
	struct stat st;
	int nfile = test ? 1 : 5;
	bool there = false;
	for (int k = 0; k < nfile; k++) {
		snprintf(name, sizeof name, "data_batch_%d.bin", k + 1);
		if (snprintf(path[k], PATH, "%s/%s", folder ? folder : ".",
			     test ? "test_batch.bin" : name) >= PATH) {
			error_set(err, RICCI_EINVAL, "the path of the folder is too long");
			return NULL;
		}
		there = there || stat(path[k], &st) == 0;
	}
	if (there)
		return cifar_batches(nfile, path);
	snprintf(name, sizeof name, "cifar10-%s-images-idx4-ubyte", test ? "t1k" : "train");
	int status = data_path(path[0], PATH, folder, name, err);
	snprintf(name, sizeof name, "cifar10-%s-labels-idx1-ubyte", test ? "t1k" : "train");
	if (status || data_path(path[1], PATH, folder, name, err))
		return NULL;
	return ricci_idx(path[0], path[1]);
}
