/* trial.h - a kernel on memory of its own, for validation (trial.c, verify.c). */
#ifndef TRIAL_H
#define TRIAL_H

#include "runtime/internal.h"
#include <sys/types.h>

enum { TRIAL_WORKERS = 2 };

typedef struct Fence {
	char *map, *data;
	size_t mapped, inner, bytes; /* inner: between the guard pages */
	bool output;
	Type type;
	uint8_t *left; /* elements that have kept the poison of every run; NULL: none has */
} Fence;

/* How the parts of a phase run: the later half first, by one worker (parts depend on no order); or
 * each half by a worker of its own at the same time, a few parts at a time as launches do. */
typedef enum TrialOrder { TRIAL_BACKWARDS, TRIAL_TOGETHER } TrialOrder;

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
	void **buf;
	TrialState *state;
	uint32_t runs;
	int workers;		    /* where a kernel is one part, one */
	pid_t child[TRIAL_WORKERS]; /* 0: none */
	bool isolated;
} Trial;

/* Memory for the task's buffers: inputs first, then results. */
int trial_new(Trial *v, const Task *t, const Kernel *k, bool isolated, Error *err);
void trial_free(Trial *v);
/* Poisons the results and runs the kernel on the inputs, isolated in the children for at most
 * `limit` seconds of a processor's time. 0, or an error that tells how it ended. */
int trial_run(Trial *v, TrialOrder order, double limit, Error *err);
/* After a run: it wrote nothing outside its memory. */
int trial_fences(const Trial *v, Error *err);
/* After all runs: no element has kept every run's poison. */
int trial_written(const Trial *v, Error *err);

#endif
