/* data.h - data sets, loaders, augmentation. <ricci_nn.h> includes it. */
#ifndef RICCI_DATA_H
#define RICCI_DATA_H

#include <ricci.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data (nn/data/)
 * A data set is a list of named fields with one number of samples, 1 to 2^32-1; a field has a type
 * and a shape of its own: images u8 [28,28], labels u8 [], masks, targets f32 [4], tokens i32 [64].
 * Either a function below makes a whole data set, or ricci_data_new an empty one, to which
 * ricci_data_* add one field each:
 *	ricci_data *d = ricci_data_new();
 *	ricci_data_npy(d, "samples", "images.npy");
 *	ricci_data_hdf5(d, "masks", "masks.h5", "/train/masks");
 * These return 0 or a negative ricci_error, and the first error stays: loaders and ricci_train
 * refuse the data set with its message, so one check at the end is enough. A damaged file is an
 * error that names it and the byte; of HDF5 the file, the dataset and the samples that could not be
 * read. A data set may feed several loaders; it must outlive them. */
typedef struct ricci_data ricci_data;
RICCI_API ricci_data *ricci_data_new(void); /* NULL: out of memory */
RICCI_API void ricci_data_free(ricci_data *d);
/* 0, or the first error, whose message becomes ricci_error_message(). */
RICCI_API int ricci_data_error(const ricci_data *d);
/* An array in memory, dense, in C order, the samples its first dimension: shape[0..rank-1]. It is
 * not copied, so it must outlive the data set. */
RICCI_API int ricci_data_array(ricci_data *d, const char *field, ricci_type type, int rank,
			       const int64_t *shape, const void *values);
/* An IDX file (the format of MNIST), plain or gzip-compressed, of any rank, the first dimension the
 * samples; elements u8, i8, i32, f32, f64. Unpacked into memory while training already uses the
 * first samples. */
RICCI_API int ricci_data_idx(ricci_data *d, const char *field, const char *path);
/* A .npy file, version 1 to 3, the first dimension the samples; elements bool, u8, i8, i32, i64, f16,
 * f32, f64, little-endian, in C order. Read sample by sample when needed. */
RICCI_API int ricci_data_npy(ricci_data *d, const char *field, const char *path);
/* An uncompressed file of records of one size, each with a sample somewhere in it; little-endian.
 * The file must end with a whole record. Read sample by sample when needed. */
typedef struct {
	size_t size;	      /* by RICCI_RAW */
	ricci_type type;      /* of an element */
	int rank;	      /* of a sample */
	const int64_t *shape; /* of a sample */
	int64_t offset;	      /* bytes before the first record */
	int64_t record;	      /* bytes of a record; 0: as many as a sample has */
	int64_t within;	      /* where in its record a sample begins */
} ricci_raw;
#define RICCI_RAW(...) ((ricci_raw){.size = sizeof(ricci_raw), __VA_ARGS__})
RICCI_API int ricci_data_raw(ricci_data *d, const char *field, const char *path,
			     const ricci_raw *layout);

/* A dataset of an HDF5 file, of any size, its first dimension the samples; elements bool (as h5py has
 * it), u8, i8, i32, i64, f16, bf16, f32, f64, little-endian. Streamed: a process of its own reads and
 * unpacks blocks of samples shortly before they are used; at most 18 blocks are in memory, of 1 to
 * 8 MB each (or one sample, where that is larger). The file's chunks should be that small, and hold
 * whole samples. */
RICCI_API int ricci_data_hdf5(ricci_data *d, const char *field, const char *path,
			      const char *dataset);

/* Samples and labels from two IDX files, as the fields "samples" and "labels"; labels of rank 1.
 * These three and ricci_digits return NULL on an error. */
RICCI_API ricci_data *ricci_idx(const char *samples, const char *labels);
/* MNIST's files by their usual names, with or without ".gz", in a folder: the test set or the
 * other. samples u8 [28,28], labels u8 []. */
RICCI_API ricci_data *ricci_mnist(const char *folder, int test);
/* CIFAR-10 (Krizhevsky 2009): its binary version, data_batch_1.bin to _5 and test_batch.bin, or
 * IDX files cifar10-train-images-idx4-ubyte, ..labels-idx1-ubyte, cifar10-t1k-.., with or without
 * ".gz". samples u8 [3,32,32] (channel, row, column), labels u8 []. */
RICCI_API ricci_data *ricci_cifar10(const char *folder, int test);
/* `count` drawn digits, rotated, scaled, shifted and with noise; the same for the same seed. samples
 * u8 [28,28], labels u8 []. */
RICCI_API ricci_data *ricci_digits(int64_t count, uint64_t seed);

/* A text, plain or gzip-compressed, as windows of `length` tokens: samples i32 [length], and targets
 * i32 [length], the tokens that follow each of them. Tokens are the characters of the file (UTF-8),
 * numbered in the order of their code points from 0, or its bytes. In memory, 1 byte a token (4
 * where the file has more than 256 different characters). NULL on an error. */
typedef struct {
	size_t size;	 /* by RICCI_READING */
	int64_t length;	 /* of a window, 1 or more */
	int64_t stride;	 /* from a window's beginning to the next one's; 0: length */
	int bytes;	 /* 1: tokens are bytes, 0..255 */
	double from, to; /* the part, as fractions of the tokens; both 0: all. Same alphabet */
	/* b > 0: for recurrent nets that keep their state from batch to batch. The text is cut into
	 * b streams; batch k, of b samples in this order, has window k of each. Never shuffled. */
	int streams;
	/* A checkpoint of ricci_train: tokens are numbered as in the text that it was trained on, and
	 * a character that this text had not is an error (RICCI_EVALUE). NULL: as above. */
	const char *alphabet_of;
} ricci_reading;
#define RICCI_READING(...) ((ricci_reading){.size = sizeof(ricci_reading), __VA_ARGS__})
RICCI_API ricci_data *ricci_text(const char *path, const ricci_reading *reading);
/* The code point (or byte) of each token, and how many there are; the data set's. NULL, 0 for
 * another data set. */
RICCI_API const uint32_t *ricci_text_alphabet(const ricci_data *d, int *n);
/* A text as tokens of d's alphabet: how many it has, of which at most `room` are stored, or
 * RICCI_EVALUE where a character is not in the alphabet. */
RICCI_API int64_t ricci_text_encode(const ricci_data *d, const char *text, int32_t *tokens,
				    int64_t room);

RICCI_API int64_t ricci_data_count(const ricci_data *d); /* samples */
typedef struct {
	size_t size;	  /* by RICCI_FIELD */
	const char *name; /* the data set's */
	ricci_type type;
	int rank; /* of a sample */
	int64_t shape[RICCI_MAX_RANK];
} ricci_field;
#define RICCI_FIELD(...) ((ricci_field){.size = sizeof(ricci_field), __VA_ARGS__})
/* Describes field i, counted from 0 in the order in which they were added; RICCI_EINVAL behind the
 * last one. */
RICCI_API int ricci_data_field(const ricci_data *d, int i, ricci_field *out);
/* Copies sample i of a field out, as it is stored; bytes: of the room, exactly the sample's. Waits
 * for it when it is still being unpacked. */
RICCI_API int ricci_data_get(ricci_data *d, const char *field, int64_t i, void *out, size_t bytes);

/* Batches made before they are needed, by a thread of its own. With `shuffle` each epoch has an
 * order of its own, which depends on seed and epoch only; a last part smaller than a batch is left
 * out then, and without shuffle filled up with the first samples. Of fields that are streamed from
 * compressed files, blocks of samples are shuffled, and then the samples of eight blocks at a time.
 * A loader is used by one thread at a time. */
typedef struct ricci_loader ricci_loader;
typedef struct {
	const char *field;
	/* Of the batch. Integers become integers that hold their values (RICCI_EVALUE where one
	 * does not) or floats, floats become floats. */
	ricci_type type;
	int unit; /* 1, for U8 as a float: divided by 255, so that it is in 0..1 */
} ricci_loaded;
typedef struct {
	size_t size; /* by RICCI_LOADING */
	int batch;
	int shuffle;
	uint64_t seed;
	int nfield; /* 0: all fields of the data set, as they are stored */
	const ricci_loaded *field;
} ricci_loading;
#define RICCI_LOADING(...) ((ricci_loading){.size = sizeof(ricci_loading), __VA_ARGS__})
RICCI_API ricci_loader *ricci_loader_open(ricci_data *d, const ricci_loading *loading);
RICCI_API void ricci_loader_free(ricci_loader *l);
/* The next batch: a pointer for each field loaded, to [batch, shape of a sample], and how many of
 * its samples count (batch, less in a filled-up one); 0 at the end of an epoch, after which the next
 * epoch begins. The arrays live until the next call. Negative: an error. */
RICCI_API int ricci_loader_batch(ricci_loader *l, const void **fields);
/* Continues with sample `index` (a multiple of the batch) of an epoch, counted from 0; its batches
 * are made from now on, the first asked for or not. */
RICCI_API int ricci_loader_seek(ricci_loader *l, uint64_t epoch, int64_t index);

/* ---- augmentation (nn/data/augment.c)
 * Layers for images [batch, .., row, column] of f32 or f64: each sample is changed by draws of its
 * own in training sessions; others see it as it is. Draws follow from the session's seed, the step,
 * the sample's position in the batch and `key` (0 or more): two layers with equal keys draw the same
 * (an image and its mask, say), so independent ones need different keys. Threads and errors as
 * layers. */
/* Zeros all around, `pad` wide; then a window of rows x columns at a random position, in other sessions
 * the one in the centre. With pad 4 and the image's own size: He et al. 2016, section 4.2. */
RICCI_API ricci_tensor *ricci_random_crop(ricci_tensor *x, int pad, int64_t rows, int64_t columns,
					  int64_t key);
/* By -most..most rows and columns, each equally often; zeros move in. */
RICCI_API ricci_tensor *ricci_random_shift(ricci_tensor *x, int most, int64_t key);
/* Columns reversed, of every second sample on average. */
RICCI_API ricci_tensor *ricci_random_flip(ricci_tensor *x, int64_t key);
/* Zeros in a square of size x size around a random position, cut at the edges (DeVries & Taylor 2017,
 * "Improved regularization of convolutional neural networks with cutout"). */
RICCI_API ricci_tensor *ricci_cutout(ricci_tensor *x, int size, int64_t key);
/* (x - mean[c]) / deviation[c] for channel c of x [batch, channel, ..], in all sessions. */
RICCI_API ricci_tensor *ricci_normalise(ricci_tensor *x, int channels, const double *mean,
					const double *deviation);

#ifdef __cplusplus
}
#endif
#endif
