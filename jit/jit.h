/* jit.h - from equations to kernels: rewrites, fusion, schedules, loop trees, emitters, backends.
 *
 *	roots --rewrite_graph--> roots --fuse_partition--> subgraphs --task_new--> tasks
 *	task + schedule --lower--> loop tree --emit--> text --backend--> kernel
 */
#ifndef JIT_H
#define JIT_H

#include "core/core.h"
#include <stdatomic.h>

/* ---- the target (target.c): what the processor is, read from CPUID/XGETBV bits, never from model
 * names -------------- */
enum {
	ISA_SSE2 = 1,
	ISA_AVX2 = 2,
	ISA_FMA = 4,
	ISA_AVX512 = 8,
	ISA_F16C = 16,
	ISA_NEON = 32,
	ISA_AVX512BF16 = 64,
	ISA_AMX = 128,
	ISA_AVX512VNNI = 256
};
typedef struct Target {
	unsigned isa;	  /* bits above; RICCI_ISA=sse2|avx2|avx512 lowers it */
	int vector_bytes; /* 16, 32, 64 */
	bool masks;	  /* and vectors may have masks */
	bool spills;	  /* the compiler knows no vectors: they are in memory between operations */
	bool wide_fma;	  /* multiply-adds of 64 bytes start as often as those of 32 */
	size_t l1, l2, l3; /* bytes */
	char flags[256];   /* what cc is given: -mavx2 -mfma ... */
	char key[128];	   /* the bits as text, part of every cache key */
	int units;	   /* of a device that runs grids: its multiprocessors; 0: a processor */
	bool fragments;	   /* and its warps multiply tiles of 16 bits, */
	bool groups; /* and groups of four warps do, from a block's memory (compute capability 9.0) */
	bool calls;   /* and vendor libraries compute phases */
	int atomics;  /* and its threads combine elements of up to so many bytes atomically */
	bool ordered; /* sums of floats have one order, so the same bits in every run */
} Target;
const Target *target_host(void);
/* For compilers of scalar code. */
const Target *target_unmasked(void);
/* A device that runs grids: what all of compute capability 8.0 and more have, or allow. */
const Target *target_grid(bool fragments);
/* Those of compute capability 9.0, whose groups of warps multiply. */
const Target *target_groups(void);
/* The same device with `ordered`; other targets are that already. */
const Target *target_ordered(const Target *t);

/* ---- many random numbers (builtin/draws.c) ---- */
typedef struct Distribution {
	bool normal;	     /* standard normal; else uniform in [0,1) */
	double shift, scale; /* what is drawn is shift + scale * that, rounded to f32 */
	uint64_t key, seed, step;
} Distribution;
enum { DRAW_CHUNK = 1024 };
/* Elements 4*block .. 4*block+DRAW_CHUNK-1: Philox by counter, the four words of a block making four
 * numbers (philox_uniform; pairs of Box and Muller). Equal on all processors within some units in
 * the last place, where they have the same instructions to the last bit. */
void draw_chunk(const Distribution *d, uint64_t block, float *dst);
/* The same by the instructions that all processors of the architecture have, so equal to the last
 * bit. */
void draw_chunk_plain(const Distribution *d, uint64_t block, float *dst);

/* ---- equations to equations (rewrite/) ---- */
/* Constants, identities, common subexpressions, dead code, zero gradients: roots are replaced in
 * place by equal, cheaper ones (same type and shape); such a graph may be rewritten again. Runs
 * under IR_ENTER. 0 or an error in ir->err. */
int rewrite_graph(Ir *ir, int nroot, Node **roots);
/* Mixed precision, after that: f32 factors of long sums are read rounded to a 16-bit type
 * (rewrite/precision.c). */
int rewrite_precision(Ir *ir, Type type, int nroot, Node **roots);
/* The loop whose body a graph is: one of its results, in the graph around it. */
typedef struct Within {
	const Node *scan;
	const struct Within *around; /* NULL: that is no body */
} Within;
/* After that: f32 is rounded to bf16 by chance, without bias (rewrite/rounding.c). The roots are of
 * the body `in`, or of no body (NULL). */
int rewrite_rounding(Ir *ir, const Within *in, int nroot, Node **roots);
/* The last: constants of loops are copied into the layout that their steps read fastest
 * (rewrite/layouts.c). */
int rewrite_layouts(Ir *ir, int nroot, Node **roots);

/* ---- subgraphs (fuse/) ---- */
/* What one kernel computes. member[0] is the main equation (any COMP); the others are "=" equations
 * over the same space (main's spatial axes) that read earlier members only at their own axes.
 * Elementwise producers have been substituted into bodies already. Inputs: all tensors read that
 * are not members. Or a loop: the results of one run of it (SCAN nodes), over its operands. Or
 * (rows > 0) any dense equations whose first `rows` dimensions are the same and which read each
 * other at their own index there only: they run row by row, in order. Among these may be folds,
 * whose first reduced axes run over the rows; they are ready after the last row and read by no
 * member. */
typedef struct
	RowLoops {	/* one loop over the places of a row computes member k and those after it */
	int *end;	/* that come before member end[k]; */
	bool *outlives; /* others need member k, too */
} RowLoops;
typedef struct Subgraph {
	int nmember, ninput, rows;
	Node **member, **input;
	int best;     /* rows > 0: with so many of them each equation runs as well as by itself */
	bool *stored; /* member k is needed outside: an output buffer, in member order */
	bool *fold;   /* rows > 0: member k is one */
	int *lead;    /* rows > 0: the first dimension of member k that is a row's; 0 of folds */
	const RowLoops *loops; /* rows > 0, of a task: [d-1], with d dimensions as rows */
} Subgraph;
/* Lanes along an axis that quotients and remainders are of are split into so many phases. */
enum { PHASES_MOST = 4 };
typedef struct DeviceModel {
	double pd, pc, launch; /* bytes/s, flop/s, s: Pd, Pc and L of NeoFlow's eq. 4, measured on
				  the device once and kept */
	double pd_far, near;   /* Pd of graphs whose tensors have more than `near` bytes in all; of
				  smaller ones pd_far may be 0 */
	double pd_core, core;  /* the rate of all threads' own caches, and the bytes of one */
	int threads;	       /* that share out a kernel's parts */
} DeviceModel;
/* The bytes of all tensors that roots need. Runs under IR_ENTER. */
double graph_bytes(Ir *ir, int nroot, Node **roots);
/* Splits everything that roots need (not inputs) into subgraphs in an order that can run; greedy by
 * R = dT/Pd + dC/Pc + dK*L. Equations that took in their producers are new nodes: roots[] is
 * updated to them. Arrays in ir's arena. RICCI_DUMP=fuse prints each decision with R and its parts,
 * or why it is not legal. Runs under IR_ENTER. */
int fuse_partition(Ir *ir, int nroot, Node **roots, const DeviceModel *dev, int *nsub,
		   Subgraph **subs);
/* Finds rows and folds of these members; rows is 0 where they are a main equation and pointwise
 * ones. False: nothing that one kernel can do. */
bool subgraph_rows(Ir *ir, Subgraph *s);
/* Finds which members of rows share a loop, for each number of dimensions that are rows. */
void subgraph_loops(Ir *ir, Subgraph *s);
int64_t subgraph_row_count(const Subgraph *s);
/* A row of member k consists of places: the elements over the dimensions that are no row's. How many such
 * dimensions there are, and which one of the tensor is the d-th; all of a fold's are. */
int rows_places(const Subgraph *s, int k);
int rows_place(const Subgraph *s, int k, int d);
/* Of member k, no fold: the element at this place of the row; and the row and place of an element. */
int64_t rows_element(const Subgraph *s, int k, int64_t row, int64_t place);
void rows_split(const Subgraph *s, int k, int64_t element, int64_t *row, int64_t *place);
/* What n alone costs, by what an addition does: operators on numbers, and roundings to 16 bits. */
double node_flops(const Node *n);
/* Is n a function of floats that costs more than an addition? */
bool node_is_function(const Node *n);
/* What one evaluation of e costs, transcendental functions weighed; common parts once. */
double expr_flops(Ir *ir, Node *e);
/* Its arithmetic alone, the same weights; comparisons, choices, casts and indices are none. */
double expr_arithmetic(Ir *ir, Node *e);
/* Is n a number where its sources are, as long as no sum or product leaves its type? */
bool node_stays_finite(const Node *n);
/* Arithmetic of an equation's whole domain. */
double comp_flops(Ir *ir, Node *comp);

/* An extent that may be smaller, of one dimension in each tensor that has it: results are then those of a larger
 * batch at the indices below, whose further rows (elements at one index there) are zeros, or (not `zeros`) repeat
 * others (batch.c). */
enum { TASK_BATCHES = 6 };
typedef struct TaskBatch {
	int64_t extent;
	int *input, *member; /* which dimension of each tensor it is; -1: none */
	int *axis;	     /* of each member: which of its axes runs over it; -1: none */
	bool zeros;	     /* a member sums over it */
} TaskBatch;
/* In the order of the first member's axes; arrays in ir's arena. Returns how many there are. */
int subgraph_batches(Ir *ir, const Subgraph *s, TaskBatch found[TASK_BATCHES]);

/* A subgraph made canonical: own Ir, inputs named "a0", "a1".. in the order of Subgraph.input, so
 * that equal subgraphs have equal text. Immutable after task_new: threads may share it when each
 * takes its own scratch Ir (task_copy). */
typedef struct Task {
	Ir ir;
	Subgraph sub;
	char *text; /* canonical program text with input declarations: the key, and enough to
		       rebuild the task (task_parse) */
	double cost, flops; /* of one run: expr_flops, comp_flops */
	double read, bytes; /* each tensor once: the inputs; the stored ones too */
	int nbatch;
	TaskBatch batch[TASK_BATCHES];
} Task;
Task *task_new(const Subgraph *sub, Error *err); /* NULL on error */
/* The text with ? for the extent of batch b: tasks that differ in it alone are a family. */
void task_family(Text *out, const Task *t, int b);
Task *task_parse(const char *text, Error *err);
void task_free(Task *t);

/* ---- schedules (schedule/): data that replays from text ---- */
typedef struct ScheduleStep {
	int64_t kind : 8, axis : 8, arg : 48; /* a row of jit/schedule/steps.def, and its numbers */
} ScheduleStep;
/* Room for every axis of an equation and some splits to be moved and unrolled once, or for the
 * members of rows. */
enum { SCHEDULE_STEPS = 512 };
typedef struct Schedule {
	int n;
	ScheduleStep step[SCHEDULE_STEPS];
} Schedule;
/* For a processor, or (target->units) for a grid. The default from the equation's structure
 * first, then a handful of others worth trying; returns the count. */
int schedule_offers(const Task *t, const Target *target, int room, Schedule *out);
/* The first of them; for an optimising compiler (optimised) stages, where they should be faster. */
void schedule_default(const Task *t, const Target *target, bool optimised, Schedule *s);
/* A direct nest without calls, whose lanes run along results where there are any, since sums keep
 * their order. tile: with a register tile for sums, which may not fit the task. */
void schedule_direct(const Task *t, const Target *target, bool tile, Schedule *out);
/* Loops of the task, of one member where it has rows, before any step. */
int schedule_axes(const Task *t);
bool schedule_staged(const Schedule *s); /* it computes other equations in stages (stages/) */
/* A random neighbour, in place, of a task of so many axes; it may not fit it (schedule/mutate.c).
 */
void schedule_mutate(Schedule *s, int naxis, uint64_t *state);
/* Steps of the same kind at the same place, or all of a member's, are taken from either. */
void schedule_cross(Schedule *s, const Schedule *other, uint64_t *state);
uint64_t random_below(uint64_t *state, uint64_t n); /* of a search's own random numbers */
void schedule_print(Text *out, const Schedule *s);  /* "split 1 16; vectorise 4; parallel 0" */
int schedule_parse(const char *text, Schedule *s, Error *err);

/* ---- vendor libraries (library/): opened when first asked for; why: a reason when there is none
 * ---- */
const char *library_name(int library); /* 0.. is the argument of their step; NULL: no more */
bool library_available(int library, char *why, size_t n);
const char *library_version(int library);   /* of one that is available */
bool schedule_available(const Schedule *s); /* all that it calls is there */
bool schedule_library(const Schedule *s);   /* it calls one */
/* ---- calls of vendor libraries on a device (library/call.c) ----
 * What is written of one here is all that there is: it is kept on disk as these numbers, in this order. */
enum { CALL_RANK = 5, CALL_WINDOWS = CALL_RANK - 2, CALL_LOOPS = 4 };
/* What is computed of tensors A and B, into D. A convolution is between images x[n, g*C + c, ..], filters
 * w[g*K + k, c, ..] and maps y[n, g*K + k, ..], which have `windows` dimensions more: y[n, g*K + k, p] is the sum of
 * x[n, g*C + c, p*stride + r*dilation - before] * w[g*K + k, c, r] over c and r, without what lies outside of x. */
typedef enum CallKind {
	CALL_NONE,
	CALL_PRODUCT, /* D[h,i,j] = sum of A[h,i,l] * B[h,l,j] over l */
	CALL_FORWARD, /* A is x, B is w, D is y */
	CALL_DATA,    /* A is y, B is w, D is x: its gradient, from that of y */
	CALL_WEIGHTS, /* A is x, B is y, D is w: the same */
	CALL_KINDS
} CallKind;
enum { CALL_A, CALL_B, CALL_D, CALL_TENSORS };
typedef struct CallTensor {
	int64_t type, buf; /* which buffer of the launch; -1: the memory
							* that all threads share */
	int64_t at;	   /* its first element */
	int64_t extent[CALL_RANK],
		stride[CALL_RANK]; /* in elements; of further dimensions 1 and 0 */
	int64_t loop[CALL_LOOPS];  /* elements from one call to the next */
} CallTensor;
typedef struct CallWindow {
	int64_t stride, dilation, before, after; /* padding of x */
} CallWindow;
/* For each point of the loops, one call. Where a loop steps over no elements of D its calls add to what its first
 * one has stored. */
typedef struct KernelCall {
	int64_t kind;		  /* CallKind; CALL_NONE: there is no call, and all else is 0 */
	int64_t library;	  /* the argument of its step */
	int64_t version;	  /* of the library */
	int64_t phase;		  /* of the kernel, in which nothing else is */
	int64_t work_at, work;	  /* memory of the library's own: bytes in what all threads share */
	int64_t ordered;	  /* the same bits in every run */
	int64_t rounded;	  /* A and B hold nothing that floats of 16 bits would not hold */
	int64_t loop[CALL_LOOPS]; /* how many; 1: one */
	int64_t windows;
	CallWindow window[CALL_WINDOWS];
	CallTensor tensor[CALL_TENSORS];
} KernelCall;
/* Which tensors of a convolution are x, w and y. */
enum { ROLE_X, ROLE_W, ROLE_Y };
const int *call_roles(CallKind kind);
void call_print(Text *out, const KernelCall *c); /* one line, without its end */
/* What call_print wrote; returns what follows it. NULL: it is no such text. */
const char *call_parse(const char *s, KernelCall *c);
/* Is the library there that it was made for, in that version? Or is there no call? */
bool call_available(const KernelCall *c);
/* Is it one that can be, and does it touch only what is inside of these buffers, of which it writes none of the
 * first ninput? */
bool call_inside(const KernelCall *c, int ninput, int nbuf, const size_t *bytes, size_t shared);
/* From now on their products touch what they would read and write, and compute nothing. For a
 * forked child: another thread may have held a library's lock when it was forked. */
void library_rehearse(void);

/* ---- kernels (source.c, kernel.c, backends.c, emit/, backend/) ---- */
typedef struct KernelEnv {
	uint64_t seed, step; /* of random draws */
	void *scratch;	     /* the calling thread's, 64-byte aligned */
	void *shared;	     /* all threads', the same */
	const struct Kernel
		*kernel; /* the one that runs (interp and those of grids find their module here) */
	Error *err; /* the calling thread's; interp and grids set it; emitted code never fails */
} KernelEnv;
/* Runs parts begin..end-1, all of one phase. buf: inputs in Subgraph.input order,
 * then stored members. */
typedef void KernelFn(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end);
typedef struct Backend Backend;
/* What a launch does: phases one after the other, between which all threads meet. A phase's parts may
 * run in any order. */
enum { KERNEL_PHASES = 8 };
typedef struct KernelShape {
	int64_t parts;		      /* of all phases */
	int64_t later[KERNEL_PHASES]; /* the first part of each phase but the first; 0: no more */
	size_t scratch, shared;	      /* bytes: of each thread, of all */
	size_t block; /* bytes that the launch gives each block of a grid, for all arrays of a phase; 0: the
		       * arrays have memory of their own */
	int threads; /* of a block of a grid, whose blocks are the parts; 0: it runs on no grid */
	int64_t blocks; /* the last phase's parts are, in order, so many blocks of main's first dimension, each
			 * as long as the others or less; 0: not known */
	KernelCall
		call; /* of a grid: a phase of one part that is no code, but a call of a library */
} KernelShape;
typedef struct Kernel {
	KernelFn *run;
	KernelShape shape;
	const Backend *backend;
	void *module; /* the backend's: code memory */
	char *source; /* emitted text (NULL for interp) */
	Schedule schedule;
	int refs;	  /* atomic; kernel_ref / kernel_unref */
	int device;	  /* of a grid's: which of its backend's devices it is made for */
	int ninput, nbuf; /* kernel_sizes fills these for grids, which move data themselves */
	size_t *bytes;	  /* of each buffer, inputs first */
	struct Kernel
		*whole; /* of a larger batch, whose code it runs (fewer.c); NULL: it has its own */
	struct Fewer *fewer; /* how */
} Kernel;
struct Backend {
	const char *name;
	bool (*available)(char *why, size_t n); /* why: a reason when not */
	/* Makes kernels of n sources (functions named kernel_0..kernel_{n-1} after emission) in one
	 * go; fills run and module. Each kernel has its own reference to the module. object: NULL,
	 * or an empty text for the compiled object, which the cache keeps. */
	int (*compile)(const Backend *b, int n, Kernel **kernels, Text *object, Error *err);
	int (*load)(const Backend *b, int n, Kernel **kernels, const void *object, size_t size,
		    Error *err); /* from the bytes of a kept object; NULL: none */
	void (*release)(void *module);
	char *(*version)(void); /* part of the cache key: compiler and flags; static text */
	bool (*groups)(void);	/* its devices have what target_groups has; NULL: they don't */
};
extern const Backend *const backends[]; /* interp, tcc, cc, nvrtc, opencl; NULL at the end */
const Backend *backend_find(const char *name);
bool backend_grid(const Backend *b); /* parts are threads of a grid; NULL: they are not */
const Target *backend_target(const Backend *b); /* what schedules for it are offered for */
/* Compilers that the calling thread waits for are ended when *flag becomes true (NULL: never), and so is what else of its
 * work asks backend_stopped (references: runtime/verify/oracle.c). */
void backend_stop_when(const atomic_bool *flag);
bool backend_stopped(void); /* it has */

/* k->run, with 0 for results of float operations that would be subnormal: a processor may take a hundred
 * times as long for an operation on such numbers. The thread computes as before when it returns. */
void kernel_run(const Kernel *k, void *const *buf, const KernelEnv *env, int64_t begin,
		int64_t end);

/* The parts of a phase, counted from 0; false: there is no such phase. */
static inline bool kernel_phase(const Kernel *k, int phase, int64_t *begin, int64_t *end)
{
	const KernelShape *s = &k->shape;
	*begin = phase ? s->later[phase - 1] : 0;
	*end = s->later[phase] ? s->later[phase] : s->parts;
	return phase == 0 || *begin > 0;
}

static inline int kernel_phases(const Kernel *k)
{
	int n = 1;
	while (k->shape.later[n - 1])
		n++;
	return n;
}
/* The call that a phase is; NULL: it is code. */
static inline const KernelCall *kernel_call(const Kernel *k, int phase)
{
	const KernelCall *c = &k->shape.call;
	return c->kind && c->phase == phase ? c : NULL;
}
/* Is there no code in it at all? */
static inline bool kernel_codeless(const Kernel *k)
{
	return kernel_phases(k) == 1 && kernel_call(k, 0);
}
/* How a GPU launches a phase of a kernel: blocks of a grid, threads of a block, bytes of dynamic
 * shared memory (of a block). */
typedef struct KernelGrid {
	unsigned blocks[3], threads[3];
	size_t block_memory;
} KernelGrid;
KernelGrid kernel_grid(const Kernel *k, int phase);
int kernel_sizes(Kernel *k, const Subgraph *sub, Error *err); /* ninput, nbuf, bytes */
/* Of a kernel that was kept: are its phases in order, and its memory less than all there is? */
bool kernel_shape_sound(const KernelShape *s);

/* Lowers and emits: source, parts, scratch; not compiled yet. interp kernels are ready at once.
 * NULL on error. */
Kernel *kernel_lower(const Task *t, const Schedule *s, const Backend *b, const Target *target,
		     Error *err);
/* Prints the loop tree that it emits, of a backend that emits text. */
int kernel_tree(const Task *t, const Schedule *s, const Backend *b, const Target *target, Text *out,
		Error *err);
/* The source of a kernel as C99 that stands alone behind portable_prelude, a function kernel_0; with
 * the schedule of a direct nest whose lanes run along results. It can't be run here. */
Kernel *kernel_portable(const Task *t, Error *err);
void portable_prelude(Text *out);
/* lower + compile of one. */
Kernel *kernel_make(const Task *t, const Schedule *s, const Backend *b, const Target *target,
		    Error *err);
Kernel *kernel_ref(Kernel *k);
/* A kernel for t with the code of k, whose task differs from t's in batch b alone, which has `all` rows there, more
 * than t's. NULL on error, or where it would compute more than four times the rows. */
Kernel *kernel_fewer(Kernel *k, const Task *t, int b, int64_t all, Error *err);
void kernel_unref(Kernel *k);

#endif
