/* npy.h - NumPy's .npy files: versions 1 to 3, C and Fortran order, either byte order; written as
 * version 1, C order, little endian. bf16, which NumPy lacks, travels as "<V2", as the package
 * ml_dtypes writes it. */
#ifndef NPY_H
#define NPY_H

#include "core/core.h"

typedef struct Npy {
	Type type;
	int rank;
	int64_t shape[RICCI_MAX_RANK];
	size_t bytes;
	void *data; /* dense, C order, this machine's byte order; buffer_free it */
} Npy;

int npy_read(const char *path, Npy *out, Error *err); /* *out is untouched on error */
int npy_write(const char *path, Type type, int rank, const int64_t *shape, const void *data,
	      Error *err);

#endif
