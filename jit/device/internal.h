/* internal.h - what the files of this folder share: a device's lock. */
#ifndef JIT_DEVICE_INTERNAL_H
#define JIT_DEVICE_INTERNAL_H

#include "jit/device/device.h"
#include "jit/library/library.h"

/* Begins a call that reaches the driver; 0: then device_leave ends it, and returns code. The host needs no
 * lock, which a forked child might find taken. A thread may begin another within. */
int device_enter(Device *d, Error *err);
int device_leave(Device *d, int code);

/* ---- phases that are calls of vendor libraries (calls.c), with the device's lock, where its context is the
 * thread's */
/* Where a call's tensors lie at a point of its loops. */
typedef struct CallPlace {
	void *tensor[CALL_TENSORS], *work;
	bool aligned; /* all at multiples of CALL_ALIGNED bytes */
	bool adds;    /* to what is there */
} CallPlace;
enum { CALL_ALIGNED = 16 };
/* A library's row: a handle for the device; what a call needs before it first runs; the call at one point. Which
 * memory a plan has is the host's. */
typedef struct DeviceLibrary {
	const Library *library;
	int (*open)(Device *d, void **handle, Error *err);
	int (*plan)(void *handle, const KernelCall *c, void **plan, Error *err);
	int (*launch)(Device *d, void *handle, const void *plan, const KernelCall *c,
		      const CallPlace *place, Error *err);
	void (*forget)(void *plan);
} DeviceLibrary;
extern const DeviceLibrary device_cublaslt, device_cudnn;
int call_plan(Device *d, Binary *b, const KernelCall *c, Error *err);
int call_launch(Device *d, const Binary *b, const KernelCall *c, const Arguments *a, Error *err);
void call_forget(Binary *b);

/* The lock is held: kernels that start from now on draw random numbers of this step. */
int step_tell(Device *d, uint64_t step, Error *err);

#endif
