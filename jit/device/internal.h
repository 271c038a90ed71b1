/* internal.h - what the files of this folder share: a device's lock. */
#ifndef JIT_DEVICE_INTERNAL_H
#define JIT_DEVICE_INTERNAL_H

#include "jit/device/device.h"

/* Begins a call that reaches the driver; 0: then device_leave ends it, and returns code. The host needs no
 * lock, which a forked child might find taken. A thread may begin another within. */
int device_enter(Device *d, Error *err);
int device_leave(Device *d, int code);

/* The lock is held: kernels that start from now on draw random numbers of this step. */
int step_tell(Device *d, uint64_t step, Error *err);

#endif
