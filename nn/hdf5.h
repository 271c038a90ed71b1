/* hdf5.h - HDF5 as checkpoints use it: opened when the first one is saved or read, because its
 * library brings some thirty others along, which would cost each start of a program 7 ms. Whoever
 * calls h5.* is between h5_enter and h5_leave. */
#ifndef NN_HDF5_H
#define NN_HDF5_H

#include <hdf5.h>
#include <stddef.h>

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
extern Hdf5 h5;

/* What the host had told HDF5 to do with errors. */
typedef struct Quiet {
	H5E_auto2_t print;
	void *data;
} Quiet;
/* Takes the one lock (HDF5 of most distributions is not thread-safe) and keeps HDF5 from printing.
 * 0, or RICCI_EUNSUPPORTED with the message where there is no HDF5; then nothing is held. */
int h5_enter(Quiet *q, char *err, size_t nerr);
void h5_leave(Quiet q);
/* The innermost thing that HDF5 says of its last error; room for 160 bytes. */
const char *h5_reason(char *room);

#endif
