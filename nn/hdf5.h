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
#include "nn/hdf5.def"
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
void h5_result_free(H5Result *r);
/* Writes all to the result; 0 or RICCI_EIO. */
int h5_put(int out, const void *data, size_t n, Error *err);
/* The innermost thing that HDF5 says of its last error; room for 160 bytes. */
const char *h5_reason(char *room);

#endif
