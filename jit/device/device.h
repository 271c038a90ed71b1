/* device.h - GPUs: memory, copies, and launches of kernels whose parts are threads of a grid.
 *
 * A kind of device is a row (cuda.c, opencl.c; the runtime has the processor's). What is the same for
 * all of them, the pool of memory, the lock, the way of a launch, is in device.c. Drivers are opened
 * at run time. Memory is addressed by pointers which the host may add to, but not follow. All that a
 * process asks of one device is done in the order in which it was asked for.
 */
#ifndef JIT_DEVICE_H
#define JIT_DEVICE_H

#include "jit/jit.h"
#include <pthread.h>

typedef struct Device Device;
typedef enum { COPY_IN, COPY_OUT, COPY_WITHIN } CopyWay;
/* What memory is for: a message says who holds it. */
typedef enum { MEMORY_STATES, MEMORY_STEP, MEMORY_OUTPUTS, MEMORY_KERNELS, MEMORY_USES } MemoryUse;

/* Kernel.module where parts are threads of a grid: what the driver loads. */
typedef struct Binary {
	const struct DeviceKind *kind;
	Device *device;		       /* that has loaded it; NULL: none yet */
	void *loaded;		       /* the driver's module */
	void *function[KERNEL_PHASES]; /* found when they first run */
	const struct DeviceLibrary
		*library; /* of the phase that is its call, once that is planned: */
	void *plan;	  /* how it is computed */
	size_t size;
	char bytes[];
} Binary;

typedef struct Arguments { /* of a launch: pointers, then a number */
	int npointer;
	void *const *pointer; /* the last: to the step */
	uint64_t seed;
} Arguments;

typedef struct DeviceKind {
	const char *name;    /* "cuda": its devices are cuda:0, cuda:1 .. */
	const char *backend; /* what makes kernels for it; NULL: any but those of other kinds */
	DeviceModel model;   /* nominal */
	bool pooled; /* memory is counted, and freed blocks are kept for the next allocation */
	/* How many there are. None: `why` says what is missing and how to get it. */
	int (*count)(char *why, size_t n);
	/* The name and what kernels for it depend on; an error where there is no such device. */
	int (*describe)(int index, Text *out, Error *err);
	int (*open)(Device *d, Error *err);
	/* RICCI_ENOMEM without a message: there is no memory left. */
	int (*alloc)(Device *d, size_t bytes, void **memory, Error *err);
	void (*free)(Device *d, void *memory);
	/* Bytes that are free, and all; NULL: nobody knows. */
	bool (*room)(Device *d, size_t *left, size_t *all);
	/* From the host, once these return, `from` may change; to the host, the data is there. */
	int (*copy)(Device *d, CopyWay way, void *to, const void *from, size_t bytes, Error *err);
	int (*zero)(Device *d, void *to, size_t bytes, Error *err);
	/* Starts a phase; NULL: kernels run on the host's threads. Its code is loaded by then, or
	 * was before by `load`, and a library's call is planned. */
	int (*launch)(Device *d, const Kernel *k, int phase, const Arguments *a, Error *err);
	int (*load)(Device *d, const Kernel *k, int phase, Error *err);
	void (*unload)(Binary *b);
	/* Where what was started ends now. `reach` waits until all before it is done, an error of any of
	 * it; `between`: the seconds of the device from one mark to another, both reached. Only `mark`
	 * needs the lock. */
	int (*mark)(Device *d, void **mark, Error *err);
	int (*reach)(Device *d, void *mark, Error *err);
	int (*between)(Device *d, void *from, void *to, double *seconds, Error *err);
	void (*unmark)(Device *d, void *mark);
	/* All four or none. What is started after `record` is not run, but recorded, until `recorded`,
	 * which makes something of it for `replay` to start, if it is to be kept; NULL otherwise, and
	 * on errors. RICCI_EUNSUPPORTED: this driver can't. */
	int (*record)(Device *d, Error *err);
	int (*recorded)(Device *d, bool keep, void **recording, Error *err);
	int (*replay)(Device *d, void *recording, Error *err);
	void (*forget)(Device *d, void *recording);
} DeviceKind;
extern const DeviceKind device_cuda, device_opencl;

typedef struct Block { /* memory of a device */
	struct Block *next;
	void *memory;
	size_t bytes;
	MemoryUse use;
} Block;

enum { DEVICE_LIBRARIES = 2 };
struct Device {
	const DeviceKind *kind;
	int index;
	char name[24];
	unsigned generation;  /* of forks: no driver survives one */
	pthread_mutex_t lock; /* of what follows, and of a launch or recording as a whole */
	atomic_int waiting;   /* threads that want it */
	Block *used, *kept;   /* kept: freed, for the next */
	size_t held[MEMORY_USES];
	void *shared; /* of KernelShape.shared bytes and more; one kernel runs at a time */
	size_t shared_bytes;
	void *step; /* where kernels read which step random numbers are for; NULL: nowhere yet */
	uint64_t step_now; /* what is there */
	bool step_known, recording;
	void *context, *queue, *platform; /* the driver's */
	void *library[DEVICE_LIBRARIES];  /* vendor libraries' handles; NULL: none yet */
};

/* Device `index` of a kind, opened once a process and never closed. NULL on error. */
Device *device_open(const DeviceKind *kind, int index, Error *err);

/* Memory for `what`; NULL with an error that says who holds the rest. Its contents are anything
 * (zeros on the host). */
void *device_alloc(Device *d, size_t bytes, MemoryUse use, const char *what, Error *err);
void device_free(Device *d, void *memory); /* NULL: nothing */
void device_trim(Device *d);		   /* gives back what no session holds */
int device_copy(Device *d, CopyWay way, void *to, const void *from, size_t bytes, Error *err);
int device_zero(Device *d, void *to, size_t bytes, Error *err);
/* Starts all phases of a kernel of the device's backend; buf: addresses on the device. Whether they
 * end well is known after device_finish. */
int device_launch(Device *d, const Kernel *k, int nbuf, void *const *buf, RandomState rs,
		  Error *err);
/* Waits for all that was started; an error of any of it. Others may start more meanwhile. */
int device_finish(Device *d, Error *err);
/* Launches k `runs` times, and waits: the device's seconds of one, code loaded before. */
int device_time(Device *d, const Kernel *k, int nbuf, void *const *buf, RandomState rs, int runs,
		double *seconds, Error *err);
/* Could so many bytes be taken beside sessions, leaving them as many again? Nothing is taken. */
bool device_spare(Device *d, size_t bytes);

/* ---- recordings: launches, copies within the device and device_zero, to be started at once */
typedef struct Recording Recording;
/* From now on this thread records what it starts on the device, instead of running it, until
 * device_recorded; others wait. Nothing else may be asked for. `step`: of all launches. Error: nothing began;
 * RICCI_EUNSUPPORTED: the device can't. */
int device_record(Device *d, uint64_t step, Error *err);
/* Ends it. NULL: with an error, or it is not to be kept. The caller frees it before the kernels in it. */
Recording *device_recorded(Device *d, bool keep, Error *err);
/* Starts all that was recorded, for another step. 1: nothing was started, because memory of the device's own
 * has moved since: record it again. */
int device_replay(Device *d, const Recording *r, uint64_t step, Error *err);
void recording_free(Recording *r); /* NULL: nothing */

/* ---- kernels of a grid (binary.c) */
Binary *binary_new(const DeviceKind *kind, size_t size, Error *err);
void binary_release(void *module);
/* The name of a phase's function. */
void phase_name(int phase, char name[32]);
/* What Backend.compile does: each kernel by `one`, all or none; their binaries as one object, where one is
 * asked for. And from that; Kernel.run is device_run then. */
int binaries_make(int n, Kernel **kernels, int (*one)(Kernel *k, Error *err), Text *object,
		  Error *err);
int binary_unpack(const DeviceKind *kind, int n, Kernel **kernels, const void *object, size_t size,
		  Error *err);
/* Kernel.run on the host's memory: copies to the device Kernel.device and back. It runs all phases
 * for the caller that has the first part, and nothing for others. */
void device_run(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end);

/* ---- cuda.c */
int cuda_arch(int index); /* 90: sm_90; 80 without such a device */
/* Of this capability groups of warps multiply; code that lets them runs on no other. */
enum { CUDA_ARCH_GROUPS = 90 };
/* NVRTC's for our texts and all instructions of that device. The first is in `room`. */
enum { CUDA_OPTIONS = 4, CUDA_OPTION_ROOM = 40 };
void cuda_options(int arch, char room[CUDA_OPTION_ROOM], const char *option[CUDA_OPTIONS]);

/* ---- opencl.c: the calls, where opencl_devices gives some */
typedef struct OpenCl {
#define OPENCL(result, name, parameters) result(*name) parameters;
#include "jit/device/opencl_api.def"
#undef OPENCL
} OpenCl;
extern OpenCl opencl;
int opencl_error(int status, const char *what, int code, Error *err);

#endif
