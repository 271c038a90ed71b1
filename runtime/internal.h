/* internal.h - what the files of runtime/ share with each other and with nobody else.
 *
 * The way of a program: program_new (rewrite, partition, a CacheEntry per subgraph or a Loop with a
 * program of its own, cells for all tensors; program_place: memory; entries_fill: a kernel for every
 * entry, from the cache or made now) -> program_run. A CacheEntry is what the function cache has of one
 * task: its best kernel, and at times a second one on trial.
 */
#ifndef RUNTIME_INTERNAL_H
#define RUNTIME_INTERNAL_H

#include "runtime/runtime.h"
#include <pthread.h>
#include <stdatomic.h>

#define ALIGNMENT ((size_t)64)

static inline size_t align_up(size_t n)
{
	return (n + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/* ---- buffers (buffer.c): zeroed, 64-byte aligned, with room behind for a vector read past the
 * end. Large ones are not inherited by forked children, so that verification in a child costs no
 * copies. */
void *buffer_new(size_t bytes);
void buffer_free(void *p);

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

/* ---- the memory plan (plan.c): runtime.h ---- */
/* plan_many.c: the same of items that are in order, the largest first; *total is 0. */
int plan_many(int n, PlanItem **item, size_t *total, Error *err);

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
} Checking;
/* Where member k is as it was stored; NULL: it is computed. */
const void *checking_given(const Checking *how, const Task *t, int k);
/* sample.c: elements at corners and edges, then at random; of folds a few elements, where what they
 * need of all rows costs no more than the limit. False: no memory. */
bool sample_choose(const Task *t, const Checking *how, Sample *s);
bool sample_like(const Sample *s, Sample *out); /* the same elements */
bool sample_one(Sample *s, int64_t n);		/* room for n elements of one member */
/* A long scatter that adds: its elements are sums over all that may meet there; axes that stand by
 * themselves on the left need no sum. */
bool sample_gathers(const Node *c);
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
/* Widens the bounds by what the results change under rounding errors of the inputs. */
int sample_widen(const Task *t, void *const *input, RandomState rs, Sample *s, Error *err);
void sample_one_way(const Task *t, Sample *s);
/* Compares what a kernel stored (buffers of the stored members, in order) with them. */
int sample_check(const Task *t, const Sample *s, void *const *stored, Error *err);
/* The indices of c's element `at`: "0,1,114". */
void element_name(const Node *c, int64_t at, char *out, size_t n);
void sample_free(Sample *s);
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

/* ---- the function cache (cache.c, disk.c) ---- */
typedef struct Request {
	const Backend *backend; /* NULL: the best */
	bool frozen;		/* static mode: the default schedule, never changed */
	int threads;		/* that run it, for which it is tuned; 0 when frozen */
	const KernelPack *pack; /* frozen: the only kernels there are; NULL: they are made */
	Device *device;		/* whose kernels they are; NULL: the processor's */
	bool ordered; /* of a device: the same bits each time, since it is static, or computes again */
} Request;
typedef struct Origin {	  /* where a kernel's compiled code is kept */
	char object[48];  /* a file of the cache's folder; "" when it is not kept */
	int index, count; /* which of the object's functions */
} Origin;
enum { TRIAL_RUNS = 4, TRIAL_MOST = 24, OFFERS = 8 };
typedef struct CacheEntry {
	struct CacheEntry *next;
	int refs; /* under the cache's lock */
	Request request;
	Task *task;
	uint64_t hash, family;	   /* of the task's text; of its family's, 0: it has none */
	atomic_llong launches;	   /* while they were timed, trials' not counted */
	atomic_llong timed, spent; /* of best: so many of them, and nanoseconds in them */
	atomic_llong quickest;	   /* of best: nanoseconds of its quickest launch; 0: not known */
	atomic_uint version;	   /* changes whenever a launch has to look at the entry */
	pthread_mutex_t lock;	   /* of what follows */
	bool checked;		   /* best was right on the data of a step, or is validated */
	bool validated;		   /* best has passed verify_within */
	bool unseen;		   /* best's first launch was too long to be checked */
	bool tested;		   /* the trial agreed with best on the data of a step */
	atomic_uint wrongs;	   /* kernels that were found wrong after they had been used */
	Error wrong;		   /* what the last of them did */
	struct Tuner *tuner;	   /* that works on it; or NULL */
	int offered;		   /* schedules of schedule_offers that have been tried */
	Kernel *best, *trial;
	Kernel *former; /* which best has replaced after a trial, until that proves to be right; or NULL */
	Origin origin, trial_origin, former_origin;
	long long former_quickest; /* `quickest` of former */
	int runs[2];		   /* timed launches of best, trial since the trial began */
	double least[2];	   /* and the least time of one */
} CacheEntry;
/* Takes the task. The entry of an equal task and request where there is one. */
CacheEntry *entry_get(Task *t, Request r, Error *err);
CacheEntry *entry_ref(CacheEntry *e);
const Target *entry_target(const CacheEntry *e,
			   const Backend *b); /* of its kernels by b (codegen.c) */
void entry_unref(CacheEntry *e);
bool entry_ready(CacheEntry *e); /* it has a kernel */
/* May it have the kernel of a larger batch, until its own is made? */
bool entry_borrows(const CacheEntry *e);
/* Kernel k, of a task that differs from e's in its larger batch, for e; NULL: it isn't worth it. */
Kernel *entry_fewer(const CacheEntry *e, Kernel *k);
/* The same of an entry that is in memory; *o: where its code is kept. NULL: there is none. */
Kernel *entry_lend(const CacheEntry *e, Origin *o);
/* The first equation of its task, in s[0..room-1]. */
void entry_title(const CacheEntry *e, char *s, size_t room);
/* Takes k as the best, of which a launch takes so many seconds at least (0: not known). */
void entry_put(CacheEntry *e, Kernel *k, const Origin *o, double seconds, bool checked);
/* Takes k as the one on trial. */
void entry_try(CacheEntry *e, Kernel *k, const Origin *o);
/* The kernel to launch now (a new reference). */
typedef struct Taken {
	Kernel *kernel;
	unsigned seen; /* the version for which this answer holds */
	int which;     /* -1; or 0 best, 1 trial: then time the launch and tell entry_timed */
	bool checked;  /* else run_checked launches it, or run_trial */
} Taken;
Taken entry_take(CacheEntry *e);
bool entry_take_now(CacheEntry *e, Taken *t); /* false: somebody has the lock */
/* The same where there is a trial, for who times it: whose turn it is. Launches of a device don't take part in
 * trials, so entry_take is the best there. */
Taken entry_turn(CacheEntry *e);
Kernel *entry_best(CacheEntry *e); /* a new reference */
/* What entry_condemn has said last. */
int entry_wrong(CacheEntry *e, Error *err);
/* A launch of its best kernel took so long. */
void entry_launched(CacheEntry *e, double seconds);
void entry_counted(CacheEntry *e, int64_t launches); /* and so many were not timed */
/* Seconds of a launch of its best kernel; 0: not known. */
double entry_seconds(const CacheEntry *e);
/* Seconds that its launches so far take at the present speed; as entry_roof until best's are timed. */
double entry_cost(const CacheEntry *e);
/* And what of that no kernel can save: arithmetic, memory and launches at the device's rates. 0: no launches
 * were timed. */
double entry_roof(const CacheEntry *e);
/* k was right on the data of a step, as far as results could be seen. */
void entry_checked(CacheEntry *e, const Kernel *k, bool seen);
/* The trial's results on the data of a step were right; or not: then it ends. */
void entry_tested(CacheEntry *e, const Kernel *k, bool good);
/* The best kernel, where it has to be validated still (unseen: and no result of it could be checked
 * by then), or NULL; then its validation's outcome. */
Kernel *entry_unvalidated(CacheEntry *e, bool unseen);
void entry_validate(CacheEntry *e, const Kernel *k);
void entry_condemn(CacheEntry *e, const Kernel *k, const Error *why);
/* The interpreter's kernel in place of one that is wrong. */
int entry_interpret(CacheEntry *e, const Kernel *wrong, Error *err);
bool entry_timed(CacheEntry *e, const Kernel *k, int which,
		 double seconds); /* true: the trial ended */
/* Has best, which won its trial, been slower since than what it replaced? That is on trial again (true). */
bool entry_revise(CacheEntry *e);
bool entry_revises(CacheEntry *e); /* will that be asked? */

/* Keeps the entry's best; false: it can't be. */
bool disk_store(CacheEntry *e);
/* What is kept of an entry; false: nothing. */
typedef struct Kept {
	const Backend *backend;
	Schedule schedule;
	Origin origin;
	KernelShape shape;
	double seconds;
	int offered;
	bool lent; /* it was made for a larger batch */
} Kept;
bool disk_find(const CacheEntry *e, Kept *k);
/* The same of the largest batch of e's family that is kept. */
bool disk_lend(const CacheEntry *e, Kept *k);
/* Kernels of kept objects for entries[i] with kept[i].origin; entries that stay without a best are to
 * be made. */
void disk_load(int n, CacheEntry **entries, const Kept *kept);
/* Takes a compiled object into the folder and names it; false: it is not kept. */
bool disk_keep(const Text *object, char name[48]);

/* ---- making kernels (codegen.c) ---- */
typedef struct Candidate {
	struct Candidate *next;
	struct Job *job; /* a tuner's */
	CacheEntry *entry;
	const Backend *backend;
	Schedule schedule;
	bool usual; /* the schedule is still to be chosen: the first one offered */
	Kernel *kernel;
	bool validates; /* kernel is the entry's, of the first iteration: only to be validated */
	bool urgent;	/* worth the processor; else training goes before */
	Origin origin;
	Error err;
} Candidate;
/* Lowers (those that are not) and compiles candidates of one backend together, in as many parts as
 * threads; each gets a kernel or an error. */
void candidates_make(int n, Candidate **c, int threads);
/* The backend that schedules of the entry are tried on; NULL: none. */
const Backend *entry_tuning(const CacheEntry *e);
/* Gives every entry a kernel: from memory, from disk, or made now by `threads` threads. */
int entries_fill(int n, CacheEntry **entries, int threads, Error *err);

/* ---- kernels that come with a net (pack.c) ---- */
/* Gives every entry its kernel of the pack; an error where one is missing. */
int pack_fill(const KernelPack *p, int n, CacheEntry **entries, Error *err);
const DeviceModel *pack_device(const KernelPack *p);

/* ---- the background (explore.c, generate.c): exploration and code generation threads ---- */
typedef struct Tuner Tuner;
Tuner *tuner_new(int generators, Error *err); /* threads that make kernels */
int tuner_add(Tuner *t, int n, CacheEntry **entries, Error *err);
void tuner_start(Tuner *t);
void tuner_poke(Tuner *t);	 /* a trial ended; takes no lock */
bool tuner_busy(const Tuner *t); /* something is left to try */
int tuner_settle(Tuner *t, Pool *pool, Error *err);
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

/* ---- programs (program.c, place.c): graphs ready to run ---- */
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
	Kernel *used;		 /* repeated: whose results the step has (a reference), or NULL */
	int64_t launches;	 /* while they are timed */
	Times times;		 /* of those by `timed`, the entry's best kernel */
	Kernel *timed;		 /* a reference; NULL: a loop, or none yet */
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
	int64_t iteration;	     /* inner: the one that runs */
	Finite *finite;		     /* NULL: results are not looked at */
	int last_failing;	     /* the last run that may find a wrong length; -1: none */
	bool timing;		     /* every launch is timed */
	bool named;		     /* its runs are */
	int64_t steps;		     /* since then */
	Times times;		     /* of them */
	void *arena;		     /* NULL: inner */
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
	size_t memory_limit; /* of what a step takes (limit.c); 0: none */
	bool memory_least; /* where it can't be met, the least that is found instead of an error */
	/* A loop's body: who runs it provides memory, and gets the kernels made. NULL: none. */
	const Within *within;
} ProgramSpec;
Program *program_new(const ProgramSpec *spec, Error *err);
void program_free(Program *p);
int program_run(Program *p, Pool *pool, RandomState rs, Tuner *tuner, Error *err);
/* What program_run starts once it is known that it may: all runs, one by one. */
int program_start(Program *p, Pool *pool, RandomState rs, Tuner *tuner, bool timing, Error *err);
/* After a run: the assigned values become the states', all at once. */
int program_commit(Program *p, const ProgramSpec *spec, Error *err);
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
/* That of tensor n, which r computes. NULL: no memory. */
const char *tensor_equation(Naming *m, const Program *p, const Run *r, const Node *n);
/* Gives p's runs their names, once: the first equation, as far as there is room for it. */
void runs_name(Program *p);
const char *run_name(const Run *r); /* "a kernel": it has none yet */

/* ---- trace.c: the events of ricci_trace_begin ---- */
bool trace_on(void);
void trace_thread(const char *name); /* what this thread does, from now on; never freed */
/* It did `name` since `from` (clock_seconds); kind: a word; detail: "": none. */
void trace_span(const char *kind, const char *name, double from, const char *detail);
void trace_mark(const char *kind, const char *name, const char *detail); /* now */

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
/* The first launch of a trial: beside the best kernel, on the step's own data; dropped where it is
 * wrong. */
int run_trial(Run *r, Pool *pool, RandomState rs, Error *err);

const Program *session_program(const ricci_session *s);
/* session.c: the entries of a session's kernels, in order; how many */
int session_entries(const ricci_session *s, CacheEntry **entries, int room);
/* Has the parameter or state t been drawn, or fed? */
bool session_drawn(const ricci_session *s, const ricci_tensor *t);
/* What the tensors between a step's kernels take. */
size_t session_bytes(const ricci_session *s);

/* RICCI_TIME: seconds since *from for a stage; sets *from to now. */
void time_stage(const char *stage, double *from);

#endif
