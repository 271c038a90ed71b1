/* internal.h - what the files of this folder share: a device's lock. */
#ifndef JIT_DEVICE_INTERNAL_H
#define JIT_DEVICE_INTERNAL_H

#include "jit/device/device.h"

/* Begins a call that reaches the driver; 0: then device_leave ends it, and returns code. The host needs no
 * lock, which a forked child might find taken. A thread may begin another within. */
int device_enter(Device *d, Error *err);
int device_leave(Device *d, int code);

/* Products of cuBLASLt's (cublaslt.c), with the device's lock, where its context is the thread's: what a phase
 * needs before it first runs, into b->plan; the phase itself. Which memory a plan has is the host's. */
int cublaslt_plan(Device *d, Binary *b, const KernelProduct *p, Error *err);
int cublaslt_launch(Device *d, const Binary *b, const KernelProduct *p, const Arguments *a,
		    Error *err);
void cublaslt_forget(void *plan);

/* The lock is held: kernels that start from now on draw random numbers of this step. */
int step_tell(Device *d, uint64_t step, Error *err);

#endif
