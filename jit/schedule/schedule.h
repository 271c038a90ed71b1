/* schedule.h - the steps that schedules are made of. */
#ifndef JIT_SCHEDULE_H
#define JIT_SCHEDULE_H

#include "jit/jit.h"

typedef enum StepKind {
#define STEP(name, text, axis, help) STEP_##name,
#include "jit/schedule/steps.def"
#undef STEP
	STEP_COUNT
} StepKind;
enum { NEST_OFFERS = 6 }; /* variants of direct nests, arguments of STEP_ROWS */
bool step_has_axis(int kind);
void schedule_add(Schedule *s, StepKind kind, int axis, int64_t arg);
bool schedule_is_new(const Schedule *offers, int n); /* offers[n] is none of those before it */

#endif
