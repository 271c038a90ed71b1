/* runtime.h - what nn and the tools may use of the runtime beyond <ricci.h>. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "jit/device/device.h"

/* ---- devices (devices.c): the kinds there are; NULL at the end ---- */
extern const DeviceKind *const device_kinds[];

/* ---- buffers (buffer.c): zeroed, 64-byte aligned, with room behind for a vector read past the
 * end. Large ones are not inherited by forked children, so that verification in a child costs no
 * copies. */
void *buffer_new(size_t bytes);
void buffer_free(void *p);

/* ---- thread pool (pool.c) ---- */
typedef struct Pool Pool;
Pool *pool_new(int threads,
	       Error *err); /* threads counts the caller; 0: as many as the process may run on */
/* The same, each thread, the caller's too until pool_free, on a processor of its own: for measuring. (A thread
 * that was just started, or woken, may share its parent's for 20 ms, though others are idle.) */
Pool *pool_new_apart(int threads, Error *err);
void pool_free(Pool *p);
int pool_threads(const Pool *p);
int pool_spare(const Pool *p); /* processors that it leaves idle */
/* Runs k over its parts, split evenly in contiguous ranges (the same split every time), each thread
 * with its scratch. */
int pool_run(Pool *p, const Kernel *k, void *const *buf, uint64_t seed, uint64_t step, Error *err);

/* ---- the device model (device.c): measured once a process at most, kept in the cache folder ---- */
DeviceModel device_model(double bytes);	 /* of a graph whose tensors have so many in all */
const DeviceModel *device_nominal(void); /* fixed numbers: what static mode decides with */
/* Measures what is kept once more, some 10 ms, and replaces it where that is much better: for the processes
 * to come, this one goes on with its own. Once a process, and a few times in all; not where
 * RICCI_DEVICE gave the model, or nothing can be kept. Any thread. */
void device_again(void);
/* Takes from `again` what is better than in kept; false, and nothing is taken, where no rate is better by a
 * quarter, and no launch by that and a microsecond. */
bool device_improve(DeviceModel *kept, const DeviceModel *again);

/* ---- the memory plan (plan.c) ---- */
typedef struct PlanItem {
	size_t bytes;	 /* > 0 */
	int first, last; /* steps in which it lives, both included */
	size_t offset;	 /* out, a multiple of 64 */
} PlanItem;
int plan_offsets(int n, PlanItem *item, size_t *total, Error *err);

/* ---- the machine (machine.c): what the threads of a pool can do together, the best of as many
 * tries as fit in `seconds`, three at least ---- */
typedef enum { STREAM_READ, STREAM_COPY, STREAM_TRIAD } Stream; /* sum of a; c = a; c = a + 3 b */
/* Operations a second of multiply-adds in registers; F32, F64, or BF16 added up in f32 (0: the
 * processor has no instruction for it). */
double machine_flops(Pool *pool, Type type, double seconds);
/* Bytes a second, each array counted once; `bytes` are all arrays of all threads. 0: no memory. */
double machine_bandwidth(Pool *pool, Stream how, size_t bytes, double seconds);
/* The same in so many bytes of memory that was written, of a buffer. 0: too few of them. */
double machine_stream(Pool *pool, Stream how, void *memory, size_t bytes, double seconds);
double machine_launch(Pool *pool, double seconds); /* seconds that a launch of all threads costs */

/* ---- data to measure kernels with (data.c): a task's buffers, inputs then stored members ---- */
typedef struct TaskData {
	int nbuf;
	void **buf;
} TaskData;
int task_data_new(const Task *t, uint64_t seed, TaskData *d, Error *err);
void task_data_free(TaskData *d);

/* ---- verification (verify.c) ---- */
/* Runs k on random inputs of t's shapes, outputs poisoned and fenced by guard pages, in a child
 * process when `isolated`, and compares with the interpreter within a bound from the length of the
 * sums. 0 or an error that tells the element. */
int verify_kernel(const Task *t, const Kernel *k, bool isolated, Error *err);

/* ---- the function cache (cache.c): in memory and on disk ($RICCI_CACHE, $XDG_CACHE_HOME/ricci,
 * ~/.cache/ricci) ---- */
const char *
cache_folder(void); /* NULL when there is none and none can be made: then nothing is kept */
int cache_check(Error *err); /* 0, or why there is none */
typedef struct CacheReport {
	int entries, broken;
	int64_t bytes;
} CacheReport;
int cache_list(FILE *out, Error *err);
int cache_verify(bool repair, CacheReport *r, Error *err);
int cache_clear(CacheReport *r, Error *err);

/* Error unless the open file is a regular one that nobody but this user and root may have written:
 * what code is loaded from (folder.c). */
int file_trust(int fd, const char *path, Error *err);
/* The library's version, and a checksum of the sources that make kernels (disk.c). */
const char *code_version(void);

/* ---- kernels that come with a net (pack.c): served without a compiler ---- */
typedef struct KernelPack KernelPack;
/* Kernels for all that a dynamic session runs, as bytes: compiled by cc with the schedules that its
 * entries have by now, vendor libraries left out, and each verified. Addresses that a pack asks for
 * in memory are multiples of PACK_ALIGN from its beginning, which has to be one, too. */
enum { PACK_ALIGN = 16 };
int pack_write(const ricci_session *s, Text *out, Error *err);
/* Loads the code; the bytes may go afterwards. NULL on error: RICCI_EFORMAT where they are damaged. */
KernelPack *pack_read(const void *bytes, size_t n, Error *err);
void pack_free(KernelPack *p); /* after the sessions that use it */
/* Where parameters and states of a net lie one behind the other: each at a multiple of 64, with room
 * for vectors read past the end. The bytes of all; offset[k]: of ricci_param_at(g, k); or NULL. */
size_t pack_places(const ricci_graph *g, size_t *offset);
/* A session that computes outputs with the kernels of a pack only: no compiler and no thread that
 * searches is started. Parameters and states are at `data` as pack_places says, read only, and
 * outlive it. NULL on error. */
ricci_session *session_packed(ricci_graph *g, const KernelPack *p, int threads, const char *data,
			      int noutput, ricci_tensor *const *outputs, Error *err);

/* ---- the roofline (roofline.c): what bounds a kernel ---- */
typedef struct KernelTime { /* of a kernel of a graph that ran some times */
	const char *text;   /* its equations */
	const Backend *backend;
	const Schedule *schedule;
	Type type; /* of its arithmetic */
	int threads;
	double launches;	     /* in a run of the graph */
	double seconds;		     /* the least of a launch */
	double flops, read, written; /* of a launch: comp_flops; bytes, each tensor once */
} KernelTime;
typedef struct Level { /* of memory */
	const char *name;
	double room;	    /* bytes that fit there, for all threads; INFINITY: the last */
	double read, write; /* seconds a byte */
} Level;
typedef struct Machine { /* so many threads of it together */
	int threads, nlevel;
	double f32, f64; /* flop/s */
	double launch;	 /* seconds */
	Level level[4];	 /* the nearest first */
} Machine;
/* Some tenths of a second, as `seconds` is for one figure. */
int machine_measure(Machine *m, int threads, double seconds, Error *err);
typedef struct Roofline {
	double gflops, gbytes;		/* a second, as reached */
	double intensity;		/* flop a byte */
	double peak, bandwidth;		/* GFLOP/s and GB/s that bound it */
	double compute, memory, launch; /* seconds that each alone takes */
	const char *bound; /* what takes longest: "compute", a level's name, "launch" */
	double share;	   /* of that limit: the time it takes by the time of a launch */
} Roofline;
/* m is of k's threads. A tensor is taken to come from the level that has room for all of them. */
Roofline roofline_of(const Machine *m, const KernelTime *k);

/* Does integer data keep to the range that the graph's gathers and scatters need? A kernel doesn't
 * ask, so this comes before data that is not our own meets one (session.c). */
int data_check(const ricci_tensor *t, const void *data, Error *err);

/* ---- evaluating once (evaluate.c): tools and tests ---- */
/* Computes roots from bound inputs with a backend (NULL: the best there is now), writing dense
 * results of the roots' types. */
typedef struct Evaluation {
	const Backend *backend;
	int threads;
	uint64_t seed, step;
	int repeat;	   /* >= 1 */
	bool least_memory; /* tensors are computed again where that saves memory, whatever it costs */
	int again;	   /* out: launches of a run that do so */
	/* After the runs, of which there should be 2 or more: each kernel, loops' too, in the order
	 * in which they run; or NULL. What it gets lives as long as the call. */
	void (*kernel)(void *user, const KernelTime *k);
	void *user;
	Text *profile;	       /* after the runs, the table of profile.c; or NULL */
	double median_seconds; /* out */
} Evaluation;
int evaluate(Ir *ir, int nroot, Node *const *roots, int nbind, const Binding *bind,
	     void *const *out, Evaluation *e, Error *err);

/* ---- searching for schedules (tune.c, search.c): tools and sessions ---- */
typedef struct Search Search;
typedef struct Strategy { /* a row of the table; NULL name at the end */
	const char *name, *help;
	void (*propose)(Search *s, Schedule *out);
} Strategy;
extern const Strategy strategies[];
typedef struct TuneReport { /* of one kernel */
	const char *text;   /* of its task; as long as the call */
	Schedule best;
	double first, seconds; /* of a run: before, and of the best so far */
	double share;	       /* of the graph's time before */
	double flops, bytes;   /* of a run */
	int tried, failed;     /* schedules; those refused, wrong or far too slow */
	const char *refused;   /* what the first was refused for whose kernel was made; or "" */
	bool kept;	       /* when done: on disk */
} TuneReport;
typedef struct Tuning {
	const Backend *backend; /* NULL: the best there is; of a GPU's: on the first such device */
	int threads;
	double seconds; /* for the whole search */
	const Strategy *strategy;
	uint64_t seed;
	/* Called after each batch of schedules and once at the end of each kernel (done): number k
	 * of n, the kernels that take most time first; `spent` seconds in all. True ends it. */
	bool (*report)(void *user, int k, int n, double spent, bool done, const TuneReport *r);
	void *user;
} Tuning;
/* Searches schedules for the kernels that compute roots, on random data: what the fastest are goes
 * into the function cache, where every session of the same equations finds them. */
int tune(Ir *ir, int nroot, Node *const *roots, const Tuning *t, Error *err);

#endif
