/* runtime.h - what nn and the tools may use of the runtime beyond <ricci.h>. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "jit/jit.h"

/* ---- thread pool (pool.c) ---- */
typedef struct Pool Pool;
Pool *pool_new(int threads,
	       Error *err); /* threads counts the caller; 0: as many as the process may run on */
void pool_free(Pool *p);
int pool_threads(const Pool *p);
/* Runs k over its parts, split evenly in contiguous ranges (the same split every time), each thread
 * with its scratch. */
int pool_run(Pool *p, const Kernel *k, void *const *buf, uint64_t seed, uint64_t step, Error *err);

/* ---- the device model (device.c): measured once, kept in the cache folder ---- */
const DeviceModel *device_model(void);

/* ---- verification (verify.c) ---- */
/* Runs k on random inputs of t's shapes, outputs poisoned and fenced by guard pages, in a child
 * process when `isolated`, and compares with the interpreter within a bound from the length of the
 * sums. 0 or an error that tells the element. */
int verify_kernel(const Task *t, const Kernel *k, bool isolated, Error *err);

/* ---- the function cache (cache.c): in memory and on disk ($RICCI_CACHE, $XDG_CACHE_HOME/ricci,
 * ~/.cache/ricci) ---- */
const char *
cache_folder(void); /* NULL when there is none and none can be made: then nothing is kept */
typedef struct CacheReport {
	int entries, broken;
	int64_t bytes;
} CacheReport;
int cache_list(FILE *out, Error *err);
int cache_verify(bool repair, CacheReport *r, Error *err);
int cache_clear(CacheReport *r, Error *err);

/* ---- evaluating once (evaluate.c): tools and tests ---- */
/* Computes roots from bound inputs with a backend (NULL: the best there is now), writing dense
 * results of the roots' types. */
typedef struct Evaluation {
	const Backend *backend;
	int threads;
	uint64_t seed, step;
	int repeat;	       /* >= 1 */
	double median_seconds; /* out */
} Evaluation;
int evaluate(Ir *ir, int nroot, Node *const *roots, int nbind, const Binding *bind,
	     void *const *out, Evaluation *e, Error *err);

#endif
