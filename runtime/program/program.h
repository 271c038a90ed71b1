/* program.h - graphs ready to run.
 *
 * The way of a program: program_new (rewrite, partition, a CacheEntry per subgraph or a Loop with a
 * program of its own, cells for all tensors; program_place: memory; entries_fill: a kernel for every
 * entry, from the cache or made now) -> program_run. A CacheEntry is what the function cache has of one
 * task: its best kernel, and at times a second one on trial.
 */
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include "runtime/search/search.h"

/* ---- the memory plan (plan.c): runtime.h ---- */
/* plan_many.c: the same of items that are in order, the largest first; *total is 0. */
int plan_many(int n, PlanItem **item, size_t *total, Error *err);

/* ---- kernels that come with a net (pack.c) ---- */
/* Gives every entry its kernel of the pack; an error where one is missing. */
int pack_fill(const KernelPack *p, int n, CacheEntry **entries, Error *err);
const DeviceModel *pack_device(const KernelPack *p);

/* ---- programs (program.c, place.c; step.c runs them) ---- */
typedef struct Storage { /* of an input, parameter or state; sessions share the last two */
	const ricci_tensor *tensor;
	Node *node;
	size_t bytes;
	void *data, *spare; /* on its device; spare: where the next value is computed; commit swaps
			       them */
	bool used;	    /* by a program */
	bool drawn;	    /* a parameter or state has its initial value, or was fed */
	bool borrowed;	    /* data is somebody else's, and never written to */
	bool kept;	    /* its old value is wanted after the step: never in place */
} Storage;
/* draw.c: the first values of a parameter or state, whose data are zeros. */
int storage_draw(Storage *st, uint64_t seed, Pool *pool, Error *err);
/* orthogonal.c: of a float matrix, drawn from `key`. */
int storage_orthogonal(Storage *st, uint64_t seed, uint64_t key, Pool *pool, Error *err);

/* profile.c: seconds of launches, or of steps. Of many, some at even distances are kept. */
enum { TIMES_KEPT = 32 };
typedef struct Times {
	int n;
	int64_t count, stride, at; /* of `stride` launches number `at` is kept */
	float seconds[TIMES_KEPT];
	double least;
} Times;
void times_add(Times *t, double seconds);
double times_median(const Times *t); /* 0: of none */
typedef enum { CELL_TEMP, CELL_OUTPUT, CELL_STATE, CELL_NEXT, CELL_VIEW } CellKind;
typedef struct Cell { /* a tensor's place */
	Node *node;
	CellKind kind;
	int first, last;  /* the runs that write and last read it */
	Storage *storage; /* STATE: its data; NEXT: its spare, or its data when in place */
	bool in_place, root;
	bool could;		     /* NEXT: in_place, but for program_check_finite */
	const ricci_tensor *next_of; /* the state whose next value it is; or NULL */
	struct Cell *of;	     /* VIEW: of what it is a part, or another shape; else NULL */
	size_t offset;		     /* TEMP: in the arena; VIEW: in `of` */
	void *data;		     /* TEMP, OUTPUT */
} Cell;
typedef struct Loop Loop;
typedef struct Run {   /* one kernel of the plan, or one loop */
	Loop *loop;    /* NULL: a kernel */
	size_t offset; /* of the loop's memory, in the arena */
	const Subgraph *sub;
	CacheEntry *entry;
	Kernel *kernel;
	unsigned seen; /* the entry's version */
	bool wide, checked;
	bool untested;		 /* the kernel is the entry's on trial, which may turn out wrong */
	const struct Run *again; /* it computes again what that run has computed; or NULL */
	bool repeated;		 /* another run does so */
	/* Of a repeated kernel, or one within a repeated loop: by which (references) the step has the results of each
	 * of its launches, in the order of Program.turn; NULL: of another. */
	Kernel **used;
	int64_t nused, turn; /* how many that are; the present launch */
	int64_t launches;    /* while they are timed */
	Times times;	     /* of those by `timed`, the entry's best kernel */
	Kernel *timed;	     /* a reference; NULL: a loop, or none yet */
	double before; /* seconds of the kernel that was there before `timed`; 0: none, or not timed */
	const char *name;	 /* for traces; NULL: none yet */
	int ninput, nbuf, *cell; /* the cell of each buffer */
	void **buf;
} Run;
typedef struct Finite Finite;
typedef struct Records Records;
typedef struct Program {
	int nrun, ncell, nroot, nentry;
	DeviceModel device_model; /* it was partitioned for */
	Run *run;
	Cell *cell;
	int *root;		     /* the cell of each root */
	CacheEntry **entry;	     /* of its kernels and of its loops' */
	unsigned *told;		     /* of each: its wrong kernels that the user knows of */
	bool inner;		     /* a loop's body */
	int looks;		     /* steps on a device whose launches were timed for the tuner */
	bool looking;		     /* this one is */
	const struct Program *outer; /* inner: the program around it, and */
	const Run *at;		     /* the run that it is the body of */
	int64_t iteration;	     /* inner: the one that runs, */
	int64_t turn;	   /* counted over all loops around, within a step; 0: outermost */
	bool again;	   /* inner: what runs was computed before in the step */
	Finite *finite;	   /* NULL: results are not looked at */
	bool may_overflow; /* they may be infinite where no output or state is */
	int last_failing;  /* the last run that may find a wrong length; -1: none */
	bool timing;	   /* every launch is timed */
	bool named;	   /* its runs are */
	int64_t steps;	   /* since then */
	Times times;	   /* of them */
	void *arena;	   /* NULL: inner */
	size_t arena_bytes;
	size_t unlimited_bytes; /* what a step would take if nothing were computed again */
	Device *device;
	Records *records; /* NULL: its steps are not recorded */
	Arena memory;	  /* of the arrays */
} Program;
typedef struct ProgramSpec {
	Ir *ir;
	int noutput, nassign;
	Node **root; /* outputs, then assigned values; replaced by what rewrites make of them */
	Storage **assigned; /* the storage whose next value root[noutput + i] is */
	Storage *(*find)(void *user, Node *input);
	void *user;
	Request request;
	int threads;
	Device *device;	     /* that the data are on; NULL: the processor */
	bool train;	     /* what `training` is in the equations */
	bool timing;	     /* every launch is timed, as with RICCI_TIME=2 */
	Type precision;	     /* of the factors of long sums of f32: that, or rounded */
	bool by_chance;	     /* f32 is rounded to bf16 so */
	bool may_overflow;   /* what is not finite is an error in outputs and states alone */
	size_t memory_limit; /* of what a step takes (limit.c); 0: none */
	bool memory_least; /* where it can't be met, the least that is found instead of an error */
	/* A loop's body: who runs it provides memory, and gets the kernels made. NULL: none. */
	const Within *within;
} ProgramSpec;
/* Storages by their nodes: a spec's `find` and `user`. */
typedef struct Storages {
	int n;
	Storage *st;
} Storages;
Storage *storages_find(void *user, Node *input);
Program *program_new(const ProgramSpec *spec, Error *err);
void program_free(Program *p);
int program_run(Program *p, Pool *pool, RandomState rs, Tuner *tuner, Error *err);
/* What program_run starts once it is known that it may: all runs, one by one. */
int program_start(Program *p, Pool *pool, RandomState rs, Tuner *tuner, bool timing, Error *err);
/* After a run: the assigned values become the states', all at once. */
int program_commit(Program *p, const ProgramSpec *spec, Error *err);
/* pack.c: what pack_write makes of a session's program. */
int program_pack(const Program *p, Text *out, Error *err);
void *cell_data(const Cell *c);
const Cell *cell_whole(const Cell *c); /* what it is a view of, or itself */

/* ---- record.c: steps that are started by one call ----
 * Gives p its records, where its device can record and its steps are known before they run. */
int records_new(Program *p, Error *err);
void records_free(Records *r);
void records_drop(Records *r); /* all that was recorded; NULL: nothing */
/* program_start, or a replay of what it has started before, unless it is timed; after loops_check. */
int records_run(Program *p, Pool *pool, RandomState rs, Tuner *tuner, bool timing, Error *err);

/* ---- finite.c: which kernel makes the first NaN ----
 * Looks at the results of each launch of p (and of its loops) from now on, or no longer. Needs memory
 * for the next values of states: program_reserve comes after it. */
int program_check_finite(Program *p, bool on, Error *err);
int finite_begin(Program *p, RandomState rs, Error *err); /* before a step */
int finite_before(Finite *f, const Run *r, Error *err);	  /* a launch of a kernel */
int finite_after(const Program *p, const Run *r, RandomState rs, Error *err); /* and after it */
int finite_end(const Program *p, Error *err);				      /* after a step */

/* ---- names.c ---- */
typedef struct Naming { /* begins with an arena that has a jump for its end, and zeros */
	Arena *arena;
	int nnode, room;
	const Node **node; /* those without a name of their own: T1, T2 .. */
} Naming;
/* The input, parameter or state that n is, or a part of, or an iteration's row of; NULL: n is computed. */
const char *node_base(const Program *p, const Node *n, const ricci_tensor **t);
/* How equations name n: w' is the next value of w, x(t) the value or row that a loop's iteration has of
 * x, view(x) another shape of x, or a part. */
const char *node_name(Naming *m, const Program *p, const Node *n);
/* All equations of a kernel, a line each. NULL: no memory. */
const char *run_equations(Naming *m, const Program *p, const Run *r);
/* That of tensor n, which r computes; of a loop's result, behind what loop it is; NULL: that alone. NULL: no memory. */
const char *tensor_equation(Naming *m, const Program *p, const Run *r, const Node *n);
/* Gives p's runs their names, once: the first equation, as far as there is room for it. */
void runs_name(Program *p);
const char *run_name(const Run *r); /* "a kernel": it has none yet */

/* profile.c: begins to time launches, or ends it; forgets what was timed. */
void program_time(Program *p, bool on);
/* What was timed (the caller frees it by ricci_profile_free); NULL: no memory. */
ricci_profile *profile_make(const Program *p, Error *err);
void profile_print(Text *out, const ricci_profile *f);

/* ---- order.c ---- */
/* Puts subgraphs that compute next values of states behind who reads the present ones, where they can
 * be there. */
int program_order(const ProgramSpec *spec, int nsub, Subgraph *sub, Error *err);

/* ---- limit.c: a program's memory limit ---- */
/* When it is known what is computed in place: runs are done again so that the step takes no more than
 * spec's limit. An error where they can't be made to fit. cell_of: as program_place has it. */
int program_limit(Program *p, const ProgramSpec *spec, const int *cell_of, Error *err);
/* Bytes of outputs and of next values that are not computed in place, which are not in the arena. */
size_t program_beside(const Program *p, const ProgramSpec *spec);

/* memory_report.c: what the memory of a step is used for (the caller frees it by ricci_memory_free);
 * NULL: no memory. */
ricci_memory *memory_make(const Program *p, const ProgramSpec *spec, Error *err);

/* place.c: memory for the next values of states, which other sessions may use, too: under the lock
 * of their data. */
int program_reserve(const Program *p, const ProgramSpec *s, Error *err);
/* Has the next value of state number `a` to be elsewhere than the state until the step's end? */
bool assign_beside(const Program *p, const ProgramSpec *s, int a);
/* The plan; then, for the temporaries, the memory. cell_of: by the id of a node, -1: none. */
int program_place(Program *p, const ProgramSpec *spec, const int *cell_of, Error *err);
void program_bind(Program *p, char *arena);
/* loop.c */
Loop *loop_new(const ProgramSpec *outer, const Subgraph *sub, Error *err);
void loop_free(Loop *l);
Program *loop_program(Loop *l);
size_t loop_bytes(const Loop *l); /* what it needs while it runs */
void loop_bind(Loop *l, char *arena);
/* Finds the lengths that are known before p runs. Are they right? */
int loops_check(const Program *p, Error *err);
/* Is the length of r's loop, and of all within, known before a step? */
bool loop_known(const Program *p, const Run *r);
int64_t loop_steps(const Loop *l); /* its length, where it is known */
/* Can the loop find a wrong length after loops_check? */
bool loop_may_fail(const Program *p, const Run *r);
int loop_run(const Program *p, Run *r, Pool *pool, RandomState rs, Tuner *tuner, Error *err);
/* check.c: a launch of a kernel that is not checked, checked on the step's own data */
int run_checked(Run *r, Pool *pool, RandomState rs, Error *err);
/* Remembers for who repeats r that the step has k's results. */
void run_used(Run *r, Kernel *k);
/* How often r runs its kernels in one of its launches, at most: 1, or the steps of a loop. */
int64_t run_steps(const Run *r);
/* What of the body is stacked as the result r, or its last value; NULL: a variable. */
const Cell *loop_cell(const Loop *l, const ScanResult *r);
/* The first launch of a trial: beside the best kernel, on the step's own data; dropped where it is
 * wrong. */
int run_trial(Run *r, Pool *pool, RandomState rs, Error *err);

/* RICCI_TIME: seconds since *from for a stage; sets *from to now. */
void time_stage(const char *stage, double *from);

#endif
