/* schedule.h - the steps that schedules are made of. */
#ifndef JIT_SCHEDULE_H
#define JIT_SCHEDULE_H

#include "jit/jit.h"

typedef enum StepKind {
#define STEP(name, text, axis, arg, help) STEP_##name,
#include "jit/schedule/steps.def"
#undef STEP
	STEP_COUNT
} StepKind;
/* Bits of STEP_TENSORISE's argument, how a problem is read: which operand is that of M; panels as
 * the operands are, of 8 or 16 bits, not of the sum's type; padded operands are copied first, with
 * their padding; others whose lanes are apart in memory are transposed first. */
enum {
	TENSORISE_SWAP = 1,
	TENSORISE_NARROW = 2,
	TENSORISE_PADDED = 4,
	TENSORISE_TRANSPOSED = 8,
	TENSORISE_WAYS = 16, /* of a processor */
	TENSORISE_GROUPS =
		16 /* on a grid, with NARROW: groups of four warps multiply from the blocks' memory */
};
enum { NEST_OFFERS = 9 }; /* variants of direct nests */
enum { GRID_OFFERS = 4 }; /* and of those on a grid */
bool step_has_axis(int kind);
void schedule_add(Schedule *s, StepKind kind, int axis, int64_t arg);
/* A member's steps, or a stage's, behind the step that says whose they are; false: there is no room. */
bool schedule_append(Schedule *s, StepKind whose, int axis, const Schedule *own);
/* Before step number `at`; false: there is no room. */
bool schedule_insert(Schedule *s, int at, StepKind kind, int axis, int64_t arg);
/* The first step of that kind; NULL: there is none. */
const ScheduleStep *schedule_find(const Schedule *s, StepKind kind);
/* The error of a schedule that does not fit its task: "schedule: " and why. */
int schedule_misfit(Error *err, const char *why, ...) __attribute__((format(printf, 2, 3)));
bool schedule_is_new(const Schedule *offers, int n); /* offers[n] is none of those before it */

#endif
