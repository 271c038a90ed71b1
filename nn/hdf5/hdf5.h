/* hdf5.h - HDF5 as checkpoints use it: in a process of its own. Its library (and some thirty others
 * that it brings along) crashes, prints or ends the process where it finds no memory, and holds one
 * lock for all threads of a host that uses it, too. Opening it costs 7 ms, once a checkpoint. */
#ifndef NN_HDF5_H
#define NN_HDF5_H

#include "core/core.h"

#include <hdf5.h>

/* H5F_ACC_* would start the library and end the process where its version differs. */
#undef H5OPEN
#undef H5CHECK
#define H5OPEN
#define H5CHECK

typedef struct Hdf5 {
#define FUNCTION(name)	       __typeof__(H5##name) *name;
#define VARIABLE(name, symbol) hid_t *name;
#include "nn/hdf5/hdf5.def"
#undef FUNCTION
#undef VARIABLE
} Hdf5;
extern Hdf5 h5; /* in work of h5_run only */

/* Runs work in a child process, which sees this one's memory as it is now and changes none of it;
 * what work writes to `out` is the result. Returns what work returned, with its message; or an error
 * where there is no HDF5, no process, or the child was lost. */
typedef struct H5Result {
	void *data; /* NULL: nothing was written */
	size_t n;
} H5Result;
typedef int H5Work(void *user, int out, Error *err);
int h5_run(H5Work *work, void *user, H5Result *r, Error *err);
/* So many seconds a child may stand still, the first time, the second and the last. */
extern double h5_patience[3];
void h5_result_free(H5Result *r);
/* Writes all to the result; 0 or RICCI_EIO. */
int h5_put(int out, const void *data, size_t n, Error *err);
/* The innermost thing that HDF5 says of its last error; room for 160 bytes. */
const char *h5_reason(char *room);

/* Runs work in a child that serves requests: `out` is its end of a channel of messages (recv, send),
 * which it serves until the other end is closed. The memory that both see is what was shared before
 * (mmap). */
typedef struct H5Server {
	pid_t pid;
	int channel;
	void *report;
} H5Server;
int h5_serve(H5Work *work, void *user, H5Server *s, Error *err);
/* Closes the channel and waits for the child: 0, or what it died of. */
int h5_serve_end(H5Server *s, Error *err);

/* ---- datasets and attributes (hdf5_data.c), in work of h5_run only. false: HDF5 failed ---- */
/* The dataset `path` with the elements of `data`, and the groups around it. compress: 0, or a level
 * of gzip. */
bool h5_data_put(hid_t file, const char *path, Type type, int rank, const hsize_t *shape,
		 const void *data, int compress);
/* An attribute of the root: a scalar, or n numbers. */
bool h5_attribute_put(hid_t file, const char *name, hid_t type, int n, const void *value);
bool h5_text_put(hid_t file, const char *name, const char *value);
bool h5_group_put(hid_t file, const char *name);
/* The dataset `path` of the file called `of` into data, if it is there with that shape and type of
 * element; else RICCI_EFORMAT with a message that says what is there. */
int h5_data_get(hid_t file, const char *of, const char *path, Type element, int rank,
		const hsize_t *shape, void *data, Error *err);
/* What a dataset is. */
typedef struct H5Dataset {
	Type type;
	int rank;
	hsize_t shape[H5S_MAX_RANK];
	hsize_t rows; /* of a chunk, along the first dimension; 1 where there are none */
} H5Dataset;
int h5_data_describe(hid_t file, const char *of, const char *path, H5Dataset *d, Error *err);
/* Rows from..from+n-1 along the first dimension, of a type of this library. */
int h5_data_rows(hid_t file, const char *of, const char *path, Type element, hsize_t from,
		 hsize_t n, void *data, Error *err);
/* The f64 dataset `name` of *n rows, 1..most, into memory that the caller frees; NULL, *n = 0: there
 * is none of so many columns, or no memory. */
double *h5_rows_get(hid_t file, const char *name, hsize_t columns, hsize_t most, int *n);
/* Is there a dataset of that path? */
bool h5_data_there(hid_t file, const char *path);
/* What h5_attribute_put put there: of the same class of type, and as many. */
bool h5_attribute_get(hid_t file, const char *name, hid_t type, int n, void *value);
/* The same of a text, cut to n bytes; "" where there is none. */
bool h5_text_get(hid_t file, const char *name, char *to, size_t n);

#endif
