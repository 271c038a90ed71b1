/* example_dump.c - the batches that a training will see, for other programs that train the same net.
 * Input: an example's training. Output: <field>.npy for each of its inputs, [batches, batch, ..], of
 * the input's type (bytes of images as 0..1), in a folder that exists. The order of samples is that
 * of ricci_train: it follows from the seed and the epoch. */
#include "examples/example.h"

#include <errno.h>
#include <string.h>

enum { FIELDS = 10 };

typedef struct {
	int n;
	ricci_fed input[FIELDS];
	FILE *file[FIELDS];
} Dump;

static void input_add(Dump *d, ricci_tensor *t, const char *field)
{
	if (t && d->n < FIELDS)
		d->input[d->n++] = (ricci_fed){t, field};
}

/* The header of a .npy file, version 1, filled up to a multiple of 64. */
static int header_write(FILE *f, const ricci_tensor *t, int64_t batches)
{
	static const char *const types[RICCI_NTYPES] = {
		[RICCI_F32] = "<f4", [RICCI_F64] = "<f8", [RICCI_I32] = "<i4", [RICCI_I64] = "<i8"};
	char text[512], shape[256];
	int n = snprintf(shape, sizeof shape, "%lld", (long long)batches);
	for (int i = 0; i < ricci_rank(t); i++)
		n += snprintf(shape + n, sizeof shape - (size_t)n, ", %lld",
			      (long long)ricci_extent(t, i));
	n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
		     types[ricci_dtype(t)], shape);
	int length = (n + 1 + 10 + 63) / 64 * 64 - 10;
	memset(text + n, ' ', (size_t)(length - n - 1));
	text[length - 1] = '\n';
	unsigned char begin[10] = {0x93,
				   'N',
				   'U',
				   'M',
				   'P',
				   'Y',
				   1,
				   0,
				   (unsigned char)length,
				   (unsigned char)(length >> 8)};
	return fwrite(begin, 1, 10, f) != 10 ||
	       fwrite(text, 1, (size_t)length, f) != (size_t)length;
}

static int file_open(example *e, Dump *d, int k, const char *folder, int64_t batches)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s.npy", folder, d->input[k].field);
	d->file[k] = fopen(path, "wb");
	if (d->file[k] && !header_write(d->file[k], d->input[k].tensor, batches))
		return 0;
	fprintf(stderr, "%s: cannot write %s: %s\n", e->name, path, strerror(errno));
	return 1;
}

static ricci_loader *loader_open(const example *e, const Dump *d)
{
	ricci_loaded loaded[FIELDS];
	ricci_field field = RICCI_FIELD();
	for (int k = 0; k < d->n; k++) {
		ricci_type type = ricci_dtype(d->input[k].tensor);
		loaded[k] = (ricci_loaded){d->input[k].field, type, 0};
		for (int i = 0; !ricci_data_field(e->training.train, i, &field); i++)
			if (!strcmp(field.name, d->input[k].field))
				loaded[k].unit = field.type == RICCI_U8 &&
						 (type == RICCI_F32 || type == RICCI_F64);
	}
	return ricci_loader_open(e->training.train,
				 &RICCI_LOADING(.batch = e->batch, .shuffle = 1,
						.seed = e->options.seed, .nfield = d->n,
						.field = loaded));
}

int example_dump(example *e, const char *folder, int64_t batches)
{
	const ricci_training *t = &e->training;
	Dump d = {0};
	const void *values[FIELDS];
	int status = 0, samples = 0;
	input_add(&d, t->samples, "samples");
	input_add(&d, t->labels, "labels");
	for (int k = 0; k < t->ninput; k++)
		input_add(&d, t->input[k].tensor, t->input[k].field);
	for (int k = 0; k < d.n && !status; k++)
		status = file_open(e, &d, k, folder, batches);
	ricci_loader *l = status ? NULL : loader_open(e, &d);
	for (int64_t i = 0; i < batches && l && !status && samples >= 0; i += samples > 0) {
		samples = ricci_loader_batch(l, values); /* 0: an epoch ends, the next one begins */
		for (int k = 0; k < d.n && samples > 0; k++) {
			size_t bytes = ricci_bytes(d.input[k].tensor);
			status |= fwrite(values[k], 1, bytes, d.file[k]) != bytes;
		}
	}
	if (!status && (!l || samples < 0))
		status = (fprintf(stderr, "%s: %s\n", e->name, ricci_error_message()), 1);
	else if (status && l)
		fprintf(stderr, "%s: cannot write to %s: %s\n", e->name, folder, strerror(errno));
	ricci_loader_free(l);
	for (int k = 0; k < d.n; k++)
		if (d.file[k] && fclose(d.file[k]) && !status)
			status = (fprintf(stderr, "%s: cannot write to %s: %s\n", e->name, folder,
					  strerror(errno)),
				  1);
	return status;
}
