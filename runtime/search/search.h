/* search.h - faster kernels: threads that explore and compile, trials, searches. */
#ifndef RUNTIME_SEARCH_H
#define RUNTIME_SEARCH_H

#include "runtime/cache/cache.h"

/* ---- the background (explore.c, generate.c): exploration and code generation threads ---- */
Tuner *tuner_new(int generators, Error *err); /* threads that make kernels */
int tuner_add(Tuner *t, int n, CacheEntry **entries, Error *err);
void tuner_start(Tuner *t);
bool tuner_busy(const Tuner *t); /* something is left to try */
/* Waits until nothing is left to try, no longer than until then (clock_seconds). */
int tuner_settle(Tuner *t, Pool *pool, double until, Error *err);
void tuner_free(Tuner *t);

/* ---- measuring (measure.c) ---- */
typedef struct Bench { /* random data for the kernels of an entry, and who runs them */
	Pool *pool;
	Device *device; /* NULL: the pool */
	int nbuf;
	TaskData data;
	void **there; /* the data, on the device */
	int runs;     /* of a kernel at a time, there */
} Bench;
/* Has the device memory for the data, and as much again for others? True on the processor. */
bool bench_fits(const CacheEntry *e, Error *err);
/* pool: of no use on a device. bench_free after errors too. */
int bench_new(Bench *b, const CacheEntry *e, Pool *pool, Error *err);
void bench_free(Bench *b);
int bench_run(Bench *b, const Kernel *k, double *seconds, Error *err);
/* Seconds that a run of a candidate has in its validation, where the best kernel takes so many (0: not known), on so
 * many threads. */
double candidate_seconds(const CacheEntry *e, double best, int threads);
/* Decides the entry's trial, if there is one. */
int trial_settle(CacheEntry *e, Pool *pool, Error *err);

/* ---- searching (tune.c) ---- */
/* Searches schedules for these entries' kernels; t->backend and t->threads are not looked at. */
int entries_tune(int nentry, CacheEntry *const *entry, Pool *pool, const Tuning *t, Error *err);

#endif
