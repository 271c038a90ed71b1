/* verify.h - is a kernel right? Data for it, what it should store, and memory of its own to run on. */
#ifndef RUNTIME_VERIFY_H
#define RUNTIME_VERIFY_H

#include "runtime/host/host.h"

typedef struct TaskCopy { /* a thread's own copy of a task's nodes */
	Ir ir;
	Node **member, **input;
} TaskCopy;

/* ---- checking kernels (oracle.c, verify.c) ---- */
/* Expected values at some elements of each member: all at the same ones, or (subgraphs with rows)
 * at whole rows, the same ones too. */
typedef struct Sample {
	int nmember, n; /* n: the most of any member */
	int *count;
	int64_t **at;
	double **value, **bound; /* [member][element] */
	bool staged;		 /* as Checking has it */
	Arena arena;
} Sample;
/* Elements from..to-1 of a tensor. */
typedef struct Window {
	int64_t from, to;
} Window;
typedef struct Windows {
	int n;
	const Window *at;
} Windows;
typedef struct Chosen { /* elements of one member */
	int member, n;
	const int64_t *at;
} Chosen;
/* Which elements are checked, and on what data: its floats are integers, or multiples of 2^draw_whole_unit, of
 * magnitude `whole` at most (0: any numbers), so that results which no rounding meets are exact. */
typedef struct Checking {
	RandomState rs;
	double points; /* of the domain, for all elements together */
	double limit;  /* for one: results that cost more have no element; INFINITY: all have one */
	int most;      /* elements */
	double whole;
	const Chosen *chosen; /* these, or their rows, whatever they cost; NULL: as below */
	int threads;	      /* that interpret */
	/* NULL, or what the kernel stored (buffers of the stored members, in order): later members
	 * are then computed from those of f32, f64 and integers, as if they were inputs. */
	void *const *stored;
	/* The kernel computes in stages: the results of a tile from the same transformed elements, so that one of
	 * small terms takes on the roundings of its neighbours. */
	bool staged;
} Checking;
/* Where member k is as it was stored; NULL: it is computed. */
const void *checking_given(const Checking *how, const Task *t, int k);
/* sample.c: elements at corners and edges, then at random; of folds a few elements, where what they
 * need of all rows costs no more than the limit. False: no memory. */
bool sample_choose(const Task *t, const Checking *how, Sample *s);
bool sample_like(const Sample *s, Sample *out); /* the same elements */
bool sample_one(Sample *s, int64_t n);		/* room for n elements of one member */
/* A long scatter that adds: its elements are evaluated as sums over all terms that may meet there. */
bool sample_gathers(const Node *c);
/* gathered.c: these sums, and how many terms each has. */
Node *scatter_gathered(Ir *ir, Node *c);
double scatter_terms(const Node *c);
bool sample_complete(const Task *t, const Sample *s); /* each stored member has elements */
double sample_length(const Node *c);		      /* terms of a result's sum */
uint64_t sample_next(uint64_t *state);
/* oracle.c: what is right there. input: the task's data. */
int sample_expect(const Task *t, void *const *input, const Checking *how, Sample *s, Error *err);
/* The coarsest rounding in c's arithmetic, c being in ir; how far a result of so many terms may be from its
 * value, where their magnitudes add up to mag, and those up to `exact` meet no rounding. */
double arithmetic_epsilon(Ir *ir, const Node *c);
double result_bound(const Node *c, double length, double eps, double exact, double value,
		    double mag);
/* exact.c: how member k rounds in c, a copy of the task, where floats of the inputs are of DRAW_WHOLE, of
 * magnitude `whole` at most. Of a member that is exact, the sum of its terms' magnitudes up to
 * which it is; 0: it rounds. */
int exact_members(TaskCopy *c, const Task *t, double whole, double *exact);
/* Compares what a kernel stored (buffers of the stored members, in order) with them. */
int sample_check(const Task *t, const Sample *s, void *const *stored, Error *err);
/* The indices of c's element `at`: "0,1,114". */
void element_name(const Node *c, int64_t at, char *out, size_t n);
void sample_free(Sample *s);
/* Adds so many times the distance of what another way of computing gives: infinity where only one is NaN. */
void bound_widen(double *bound, double value, double other, double times);
/* Values and bounds of the elements in s, of the task or of a copy that `change` (NULL: none) has changed. */
typedef int CopyChangeFn(TaskCopy *copy, const Task *t, const void *arg, Error *err);
int sample_values(const Task *t, void *const *input, const Checking *how, CopyChangeFn *change,
		  const void *arg, Sample *s, Error *err);
/* widen.c: bounds that rounding errors of a sum over like terms ask for, all of one sign. */
void sample_one_way(const Task *t, Sample *s);
/* sample_check, in *wrong; where elements differ, the bounds are widened before by what results change under rounding errors
 * of the inputs and of what is computed, larger and larger ones while that is too little. Where a kernel is staged all
 * bounds of a member are then as wide as the widest. */
int sample_validate(const Task *t, void *const *input, RandomState rs, Sample *s,
		    void *const *stored, Error *wrong, Error *err);
/* compare.c: results against another kernel's, each in its windows (NULL: all of them); what differs is
 * checked by the interpreter, `how` tells how many points of it; members whose elements cost more than
 * its limit are not compared. */
int results_compare(const Task *t, const Sample *s, const Checking *how, void *const *input,
		    void *const *got, void *const *other, const Windows *in, Error *err);
/* A dense sum (product, maximum) by few of its terms, in the time of two or three launches however long
 * it is; checked: false, it can't be. */
int verify_terms(const Task *t, const Kernel *k, bool *checked, Error *err);
double verify_seconds(const Task *t); /* seconds: a kernel that takes longer has no end */
/* verify_kernel with a limit in seconds of the processor's time, against an admitted kernel in full
 * when `reference` is given. */
int verify_within(const Task *t, const Kernel *k, const Kernel *reference, bool isolated,
		  double limit, Error *err);

/* ---- data to verify with (data.c; runtime.h) ---- */
int task_copy(const Task *t, TaskCopy *c, Error *err);
void task_copy_free(TaskCopy *c);
int task_nbuf(const Task *t);
Node *task_tensor(const Task *t, int i); /* of buffer i */
int task_member(const Task *t, int i);	 /* of buffer i; -1: an input */
/* What floats are drawn from; integers are small, and near the equations' constants and large where
 * floats are (WHOLE, WIDE), unless the task's indices need a range. */
typedef enum DrawKind {
	DRAW_UNIT,     /* -1 .. 1 */
	DRAW_POSITIVE, /* 0.25 .. 2.25 */
	DRAW_WHOLE,    /* small integers, or multiples of 2^draw_whole_unit: sums are exact */
	DRAW_WIDE      /* many magnitudes, and around every constant of the equations */
} DrawKind;
enum { DRAW_WHOLE_MOST = 100, DRAW_MOST_INT = 1 << 20 }; /* no larger number is drawn */
/* 0, or less where constants of the equations are such fractions, so that they are drawn, too. In
 * IR_ENTER of the copy. */
int draw_whole_unit(TaskCopy *c, const Task *t);
int task_draw(const Task *t, uint64_t seed, DrawKind kind, void *const *buf, Error *err);
/* Of each input only the first `head` and the last `tail` elements have memory of their own; the others
 * are in the same places as some of the first. Head 0: it is not drawn. */
typedef struct Drawn {
	int64_t head, tail;
	bool alone; /* there are no others */
} Drawn;
int task_draw_part(const Task *t, uint64_t seed, DrawKind kind, void *const *buf,
		   const Drawn *drawn, Error *err);

#endif
