/* recompute.h - what a step computes again to fit into a limit, of numbers only: recompute.c decides,
 * limit.c turns a program into them and back. */
#ifndef RECOMPUTE_H
#define RECOMPUTE_H

#include "runtime/runtime.h"
#include <limits.h>

/* A run of the step. Tensors are numbers; one run writes a tensor, others read it behind that. */
typedef struct StepRun {
	int nread, nwrite;
	const int *read, *write; /* each tensor once */
	size_t bytes;		 /* it takes itself while it runs */
	double seconds;		 /* it takes to run again */
	int until;  /* it may run again before run number `until` at the latest; -1: never */
	bool stays; /* it writes something besides, so it can't be run later instead */
} StepRun;
typedef struct Step {
	int nrun, ntensor;
	const StepRun *run;
	const size_t *bytes; /* of tensors, multiples of 64 */
} Step;
typedef struct Launch {
	int run, *read, *write; /* copies, in the order of the run's tensors */
	bool due;		/* in its own turn, not for a tensor that is gone */
	bool needed, seen;	/* recompute.c's own */
} Launch;
/* It lives from launch `first` to launch `last`; first < 0: it was given up. */
typedef struct TensorCopy {
	int tensor, first, last;
	bool read;
} TensorCopy;
typedef struct LaunchPlan {
	int nlaunch, ncopy;
	Launch *launch;
	TensorCopy *copy;
	size_t bytes; /* of one piece of memory for the copies and for what runs take */
} LaunchPlan;
/* Launches that need no more than the limit; where none are found, those found that need least:
 * out->bytes tells. In the arena, which has a jump. 0 or RICCI_ENOMEM. */
int step_fit(const Step *s, size_t limit, Arena *a, LaunchPlan *out, Error *err);

#endif
