/* host.h - what runs kernels and keeps files: memory, threads, devices, the cache's folder, traces. */
#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

#include "runtime/runtime.h"

#define ALIGNMENT ((size_t)64)

static inline size_t align_up(size_t n)
{
	return (n + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/* ---- devices.c: where sessions live ---- */
Device *device_host(void); /* the processor */
/* "cpu", "cuda:0", "opencl:1"; NULL on error. */
Device *device_named(const char *name, Error *err);

/* ---- pool.c ---- */
/* work(arg) by this thread and up to threads - 1 others, as far as they can be started; they share out
 * the work among themselves. Returns when all are done. */
void threads_work(int threads, void *(*work)(void *), void *arg);
/* As pool_run; wide false: on the calling thread alone. */
int pool_launch(Pool *p, const Kernel *k, void *const *buf, const RandomState *rs, bool wide,
		Error *err);

/* ---- trace.c: the events of ricci_trace_begin ---- */
bool trace_on(void);
void trace_thread(const char *name); /* what this thread does, from now on; never freed */
/* It did `name` since `from` (clock_seconds); kind: a word; detail: "": none. */
void trace_span(const char *kind, const char *name, double from, const char *detail);
void trace_mark(const char *kind, const char *name, const char *detail); /* now */

#endif
