/* trial.h - a kernel on memory of its own, for validation (trial.c, verify.c). */
#ifndef TRIAL_H
#define TRIAL_H

#include "runtime/verify/verify.h"
#include <sys/types.h>

enum { TRIAL_WORKERS = 2 };

/* ---- memory (fence.c) ---- */
typedef struct Fence {
	char *map, *data;
	size_t mapped, inner, bytes; /* inner: between the guard pages */
	char *memory;		     /* all that it has: first the part that repeats, if any */
	size_t own, repeated;	     /* bytes of it; repeated 0: nothing repeats */
	int nwindow;
	Window *window, all; /* elements that nothing else shares the memory of */
	bool output;
	Type type;
	uint8_t *left; /* elements that have kept the poison of every run; NULL: none has */
} Fence;
/* False: no memory; fence_free frees what there is. */
bool fence_new(Fence *f, size_t bytes, Type type);
/* Only these elements, some around them and both ends have memory of their own. */
bool fence_new_windows(Fence *f, size_t bytes, Type type, size_t repeated, int n, const Window *w);
bool fence_like(Fence *f, const Fence *of);
void fence_free(Fence *f);
bool fence_whole(const Fence *f); /* nothing beside the data was written */
void fence_poison(Fence *f, uint8_t poison);
void fence_fill(Fence *f, double value); /* in all elements */
void fence_seal(Fence *f);		 /* read-only, in this process */
/* Do they differ in an element of the windows, poison of each run apart? */
bool fence_differs(const Fence *f, uint8_t poison, const Fence *g, uint8_t other, int64_t *at);

/* ---- runs (trial.c) ---- */
/* How the parts of a phase run: each half by a worker of its own at the same time, a few parts at a
 * time as launches do; or one by one, by one worker, from the first or from the last. */
typedef enum TrialOrder { TRIAL_TOGETHER, TRIAL_FORWARDS, TRIAL_BACKWARDS } TrialOrder;

/* Shared with the children. */
typedef struct TrialState {
	_Atomic uint32_t run, order; /* the number of the run to do, from 1 */
	_Atomic uint32_t done;	     /* workers that have ended a run, all runs together */
	_Atomic uint32_t met;	     /* workers at a phase's beginning, the same */
} TrialState;

typedef struct Trial {
	const Task *task;
	const Kernel *kernel;
	int nbuf;
	Fence *fence; /* of each buffer, the shared memory, each worker's scratch, the state */
	int nfence;
	Fence *kept; /* of each result, then the shared memory: what another run left; NULL: none */
	uint32_t kept_run;
	bool kept_alone; /* of parts that ran one by one */
	void **buf;
	TrialState *state;
	uint32_t runs;
	int workers;		    /* where a kernel is one part, one */
	pid_t child[TRIAL_WORKERS]; /* 0: none */
	bool isolated;
} Trial;

/* Memory for the task's buffers: inputs first, then results. Where they are larger than trial_room, a
 * part of it repeats (fence.c), and of results the elements of s have some of their own, and of inputs those of of_input (NULL: none). */
extern size_t trial_room;
bool trial_large(const Task *t);
typedef struct Places { /* elements of one input; < 0: none */
	int n;
	const int64_t *at;
} Places;
int trial_new(Trial *v, const Task *t, const Kernel *k, bool isolated, const Sample *s,
	      const Places *of_input, Error *err);
/* Draws the inputs but those marked (NULL: all); stores one number in all elements of one. */
int trial_draw(Trial *v, uint64_t seed, DrawKind kind, const bool *but, Error *err);
void trial_fill(Trial *v, int i, double value);
void trial_free(Trial *v);
/* Poisons the results and runs the kernel on the inputs, isolated in the children for at most
 * `limit` seconds of a processor's time. 0, or an error that tells how it ended. */
int trial_run(Trial *v, TrialOrder order, double limit, Error *err);
/* Do the parts run in several orders? */
bool trial_ordered(const Trial *v);
/* Memory like the results' and the shared memory's, in v->kept; and the last run's in it. */
int trial_room_kept(Trial *v, Error *err);
int trial_keep(Trial *v, Error *err);
/* After a run of the same data: its results are those that were kept, to the last bit; and what the
 * parts share, where both ran them one by one: lanes there that are no results depend on what was in
 * memory.
 */
int trial_same(const Trial *v, Error *err);
/* After a run: it wrote nothing outside its memory. */
int trial_fences(const Trial *v, Error *err);
/* After all runs: no element has kept every run's poison. */
int trial_written(const Trial *v, Error *err);

#endif
