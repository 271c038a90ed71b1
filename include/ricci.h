/* ricci.h - the public interface of Ricci.
 *
 * A user writes operators as index expressions, asks for gradients, and trains:
 *
 *	ricci_graph *g = ricci_graph_new();
 *	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){32, 784});
 *	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){784, 10}, ricci_normal(0.05));
 *	ricci_tensor *y = ricci_op(g, "Y[b,n] += X[b,k] * W[k,n]", x, w);
 *
 * Layers, losses, optimisers, data and the training loop are in ricci_nn.h.
 *
 * Errors. Functions that return int give 0 or a negative ricci_error, makers of objects NULL;
 * ricci_error_message() then says what is wrong, where, and what would be right. A graph is sticky:
 * its first error wins, every later call on it does nothing and returns an inert tensor, and one
 * check of ricci_graph_error() at the end is enough. Nothing in the library prints, exits or aborts.
 * Ownership. Tensors belong to their graph. Every object with a _new has a _free that accepts NULL.
 * A graph that is freed before its sessions lives as long as the last of them, its tensors too.
 * Threads. A graph is built by one thread at a time, and so is every other object used. Sessions are
 * independent, also those that share a graph or parameters: several threads may make, step and free
 * them at once; a step is done as a whole before another session sees the parameters.
 * Forks. A forked child may free everything that it inherits (which does nothing: that memory is its
 * parent's until it is written to), and may open sessions of its own, over inherited graphs too.
 * Inherited sessions and loaders do no work there: RICCI_EINVAL. CUDA and vendor libraries that the
 * parent has opened are not used in the child.
 * Structs that may grow begin with their size. RICCI_OPTIONS(.threads = 2) and its kin fill it in;
 * what is not written is 0, the usual value. */
#ifndef RICCI_H
#define RICCI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RICCI_VERSION  "0.1.0"
#define RICCI_MAX_RANK 16

#if defined(__GNUC__)
#define RICCI_API __attribute__((visibility("default")))
#else
#define RICCI_API
#endif

typedef enum {
	RICCI_F32,
	RICCI_F64,
	RICCI_BF16,
	RICCI_F16,
	RICCI_I8,
	RICCI_U8,
	RICCI_I32,
	RICCI_I64,
	RICCI_BOOL,
	RICCI_NTYPES,
	RICCI_TF32 = 64 /* no type of a tensor, but a precision: ricci_precision */
} ricci_type;

typedef enum {
	RICCI_OK = 0,
	RICCI_ENOMEM = -1,   /* out of memory */
	RICCI_ESYNTAX = -2,  /* the text of an equation is wrong */
	RICCI_ESHAPE = -3,   /* shapes, ranges or indices do not fit */
	RICCI_ETYPE = -4,    /* data types do not fit */
	RICCI_EINVAL = -5,   /* a wrong argument */
	RICCI_EIO = -6,	     /* a file could not be read or written */
	RICCI_EFORMAT = -7,  /* a file is not what it should be */
	RICCI_ECOMPILE = -8, /* no kernel could be made */
	RICCI_EVALUE = -9,   /* data outside the range that the graph needs of it */
	RICCI_EUNSUPPORTED = -10,
	RICCI_EINTERNAL = -11,
	RICCI_EDEVICE = -12 /* a device or its driver failed; its memory may be lost */
} ricci_error;

typedef struct ricci_graph ricci_graph;
typedef struct ricci_tensor ricci_tensor;
typedef struct ricci_session ricci_session;

/* ---- graphs ---- */

RICCI_API const char *ricci_version(void);
/* What a ricci_error means in general ("out of memory"); never NULL. */
RICCI_API const char *ricci_strerror(int code);
/* What the last call on this thread that failed had to say; "" before the first. The text lives until
 * the next failure on this thread. */
RICCI_API const char *ricci_error_message(void);
/* A new empty graph, or NULL when out of memory. */
RICCI_API ricci_graph *ricci_graph_new(void);
RICCI_API void ricci_graph_free(ricci_graph *g);
/* 0, or the first error of the graph, whose message becomes ricci_error_message(). */
RICCI_API int ricci_graph_error(const ricci_graph *g);

/* Names in scopes: until the matching end, the names of inputs, parameters and states that are made
 * get `name` and a point in front, "stage1.block0.w" in two scopes. An end without a begin is an
 * error. 0 or the graph's error. */
RICCI_API int ricci_scope_begin(ricci_graph *g, const char *name);
RICCI_API int ricci_scope_end(ricci_graph *g);

/* A tensor whose data the user provides before a step (ricci_feed). Names are unique in a graph and
 * don't begin with %. */
RICCI_API ricci_tensor *ricci_input(ricci_graph *g, const char *name, ricci_type type, int rank,
				    const int64_t *shape);

typedef struct {
	int kind; /* 0 constant, 1 normal, 2 uniform, 3 truncated normal, 4 orthogonal, 5 values */
	double a, b;
	ricci_type type; /* values: their type, how many, where */
	int64_t count;
	const void *values;
	int64_t zero; /* 1 + the row that starts at 0; 0: none */
} ricci_init;
RICCI_API ricci_init ricci_constant(double value);
RICCI_API ricci_init ricci_normal(double deviation);	     /* mean 0 */
RICCI_API ricci_init ricci_uniform(double low, double high); /* half open */
/* Normal of mean 0, drawn anew where it is outside of -bound..bound. deviation > 0, bound at least
 * a tenth of it; 2 deviations are usual. */
RICCI_API ricci_init ricci_truncated_normal(double deviation, double bound);
/* Of a float tensor of 2 dimensions or more, as a matrix of its first dimension by the others:
 * `gain` times a matrix whose shorter side is orthonormal, the Q of the QR factorisation of drawn
 * normals with R's diagonal positive, so uniformly distributed (Saxe, McClelland, Ganguli 2014;
 * Mezzadri 2007). The same on all processors of an architecture and for any number of threads. */
RICCI_API ricci_init ricci_orthogonal(double gain);
/* An array of the caller's, in C order: type and count are those of the tensor that starts from it.
 * The graph copies it when ricci_param, ricci_state, ricci_set_init or a layer is called. */
RICCI_API ricci_init ricci_values(ricci_type type, int64_t count, const void *values);
/* The same initialiser, but for a row of the first dimension, which starts at 0. */
RICCI_API ricci_init ricci_zero_row(ricci_init init, int64_t row);

/* A tensor that the session keeps between steps: a parameter or a state. It starts from `init`
 * (drawn from the session's seed and the tensor's name, so the order of creation does not matter)
 * and changes by ricci_assign. The initial value is drawn when a step or ricci_fetch first reads it;
 * what is fed or loaded before is never drawn. */
RICCI_API ricci_tensor *ricci_param(ricci_graph *g, const char *name, ricci_type type, int rank,
				    const int64_t *shape, ricci_init init);
/* The same for a tensor that is not trained (moments, running statistics): gradients skip it. */
RICCI_API ricci_tensor *ricci_state(ricci_graph *g, const char *name, ricci_type type, int rank,
				    const int64_t *shape, ricci_init init);
/* Another initialiser for a parameter or state, such as one that a layer has made, before the graph
 * has sessions: ricci_set_init(ricci_param_find(g, "weight_hh_l0"), ricci_orthogonal(1)). 0 or the
 * graph's error. */
RICCI_API int ricci_set_init(ricci_tensor *t, ricci_init init);

/* How many pointers are written there. */
#define RICCI_COUNT(...) ((int)(sizeof((const void *const[]){__VA_ARGS__}) / sizeof(const void *)))

/* Adds the equations of `text` (docs/notation.md) over the operands and returns the single result:
 *	ricci_op(g, "X, W -> Y: Y[b,n] += X[b,k] * W[n,k]", x, w)
 * They are bound in the order of the text's signature; without one, in the order in which unassigned
 * names first appear. An error when the program has several results. */
#define ricci_op(g, ...) ricci_op_counted(g, RICCI_COUNT(__VA_ARGS__) - 1, __VA_ARGS__)
/* ricci_op(g, text, operands ..): counts what it was given, so that the text can be held against it.
 */
RICCI_API ricci_tensor *ricci_op_counted(ricci_graph *g, int noperand, const char *text, ...);
/* The same with arrays; results in the order of the text; *nresult: in the room, out the number. 0
 * or an error. */
RICCI_API int ricci_ops(ricci_graph *g, const char *text, int noperand,
			ricci_tensor *const *operands, int *nresult, ricci_tensor **results);

/* The same with operands by their names in the text, in any order:
 *	ricci_op_named(g, "Y[b,n] += X[b,k] * W[n,k]", "W", w, "X", x)
 * Every operand has to be given, once. */
#define ricci_op_named(g, ...) ricci_op_named_counted(g, RICCI_COUNT(__VA_ARGS__) - 1, __VA_ARGS__)
/* ngiven: the arguments behind the text, names and operands. */
RICCI_API ricci_tensor *ricci_op_named_counted(ricci_graph *g, int ngiven, const char *text, ...);
/* The same with arrays, as ricci_ops: names[k] is that of operands[k]. */
RICCI_API int ricci_ops_named(ricci_graph *g, const char *text, int noperand,
			      const char *const *names, ricci_tensor *const *operands, int *nresult,
			      ricci_tensor **results);
/* An integer as an operand, which stands in the text without brackets, in indices, ranges and
 * conditions: its number is put there before ranges are inferred.
 *	ricci_op(g, "Y[b,k] = X[b,k*G]", x, ricci_integer(g, 3))
 * Without a signature, or names, it stands for the names that can be no index (docs/notation.md,
 * "Operands"). It is a scalar I64 tensor, too: G[]. */
RICCI_API ricci_tensor *ricci_integer(ricci_graph *g, int64_t value);

/* Gradients of the sum of y's elements (usually a scalar loss) with respect to wrt[0..n-1]; a
 * tensor that y does not depend on gets a gradient of zeros. `seed` is dL/dy, or NULL for ones. */
RICCI_API int ricci_grad(ricci_graph *g, ricci_tensor *y, ricci_tensor *seed, int n,
			 ricci_tensor *const *wrt, ricci_tensor **grads);
/* The tangent of y, J t: how y changes when each x[k] moves along tangent[k] (of its type and
 * shape). Forward mode, a single pass for one direction; of a gradient it is a Hessian-vector
 * product. Zeros when y depends on no x. 0 or an error; *out is a tensor in either case. */
RICCI_API int ricci_jvp(ricci_graph *g, ricci_tensor *y, int n, ricci_tensor *const *x,
			ricci_tensor *const *tangent, ricci_tensor **out);
/* The same values; no gradient flows through it (stop_gradient(x) in texts). */
RICCI_API ricci_tensor *ricci_stop_gradient(ricci_tensor *t);
/* ricci_op with a gradient of the user's own. `gradient` is a program that may read the operands of
 * `text` and its results by their names there, and the gradient of result Y as dY; it computes dA
 * for operand A, of A's type and shape. An operand without one gets no gradient. The gradient's
 * equations are differentiated like all others. E.g.
 *	ricci_op_custom(g, "Y[i] = log(1 + exp(A[i]))", "dA[i] = dY[i] * sigmoid(A[i])", a) */
#define ricci_op_custom(g, text, ...)                                                              \
	ricci_op_custom_counted(g, text, RICCI_COUNT(__VA_ARGS__) - 1, __VA_ARGS__)
RICCI_API ricci_tensor *ricci_op_custom_counted(ricci_graph *g, const char *text, int noperand,
						const char *gradient, ...);
/* The same with arrays, as ricci_ops. */
RICCI_API int ricci_ops_custom(ricci_graph *g, const char *text, const char *gradient, int noperand,
			       ricci_tensor *const *operands, int *nresult, ricci_tensor **results);
/* A loop over time: a body applied `steps` times, or as often as `length` says at run time. The
 * body is built before, by ordinary calls, over inputs that stand for a step's values (variables;
 * outside of the loop they have none). What it reads beside them (parameters, say) is the same in
 * all steps and computed once.
 *	slice	variable is tensor[t, ..] in step t; `tensor` has `steps` rows
 *	carry	variable is `initial` (NULL: zeros) in the first step, then `next` of the one before
 *	out	tensors of the body of which the steps are stacked */
typedef struct {
	ricci_tensor *variable, *tensor;
} ricci_slice;
typedef struct {
	ricci_tensor *variable, *initial, *next; /* one type and shape */
} ricci_carry;
typedef struct {
	size_t size;	      /* by RICCI_LOOP */
	int64_t steps;	      /* at most, 1 or more */
	ricci_tensor *length; /* a scalar I32 or I64, 0..steps: the steps to do; NULL: all */
	int backwards;	      /* 1: from the last step, steps-1 or length-1, down to 0 */
	int nslice;
	const ricci_slice *slice;
	int ncarry;
	const ricci_carry *carry;
	int nout;
	ricci_tensor *const *out;
	/* What gradients find of the steps again (docs/loops.md): the states and what sums gave;
	 * with recompute the states only; with segment = k the states of every k-th step only. The
	 * rest is computed again. */
	int recompute;
	int64_t segment;
} ricci_loop;
#define RICCI_LOOP(...) ((ricci_loop){.size = sizeof(ricci_loop), __VA_ARGS__})
/* Adds a loop. final[k]: carry k after the last step (its initial value when there was none);
 * stacked[k]: [steps, ..], the values of out[k], zeros in rows that `length` leaves out. final may
 * be NULL. A length outside 0..steps is RICCI_EVALUE when the session runs. Gradients, also of
 * gradients, and ricci_jvp go through it. 0 or the graph's error, and inert tensors. */
RICCI_API int ricci_scan(ricci_graph *g, const ricci_loop *loop, ricci_tensor **final,
			 ricci_tensor **stacked);
/* The values of y[0..n-1]; what lies between from[] and them is not kept for gradients but computed
 * again from from[] then: memory for time. 0 or the graph's error, and inert tensors. */
RICCI_API int ricci_recompute(ricci_graph *g, int nfrom, ricci_tensor *const *from, int n,
			      ricci_tensor *const *y, ricci_tensor **results);
/* The value that a parameter or state takes at the end of each training step: same type and shape.
 */
RICCI_API int ricci_assign(ricci_graph *g, ricci_tensor *state, ricci_tensor *value);
/* Mixed precision in the sessions over g; called before the first of them. RICCI_BF16, RICCI_F16:
 * equations that add up products, whatever their indices, read those f32 factors rounded to that
 * type of which they use each element eight times or more; so do their gradients. Products and sums,
 * results, parameters and their updates stay f32, and so do all other equations and types. bf16 has
 * f32's exponents, so losses need no scaling (Kalamkar et al. 2019, "A study of BFLOAT16 for deep
 * learning training"). f16 has three more bits, and is 0 below 2^-25, infinite from 65520 on: its
 * gradients need a scaled loss (ricci_optimiser.scaling). RICCI_TF32: factors stay f32 and are rounded to
 * tf32 as they are multiplied, f32's exponents with 11 significant bits (`tf32(x)` in equations; to the
 * nearest, of two to the larger one): the tensor cores of NVIDIA's GPUs multiply them so, other devices take
 * the same numbers, and no time is won there. RICCI_F32, the default: no rounding.
 * Another type is an error. 0 or the graph's error. */
RICCI_API int ricci_precision(ricci_graph *g, ricci_type type);
/* How f32 becomes bf16 in the sessions over g, in equations (bf16(x), or a bf16 result) and by
 * ricci_precision; called before the first of them. f16 is always the nearest. RICCI_NEAREST, the default: to the nearest, of
 * two to the even one. RICCI_STOCHASTIC: to the one below or above by chance, the nearer the more
 * often, so that the mean of the rounded number is the number, and what is too small to change a
 * bf16 parameter does so now and then (Gupta et al. 2015, "Deep learning with limited numerical
 * precision"). Numbers follow from the session's seed, the step and the element, whatever the
 * threads and schedules. 0 or the graph's error. */
typedef enum { RICCI_NEAREST, RICCI_STOCHASTIC } ricci_rounding_mode;
RICCI_API int ricci_rounding(ricci_graph *g, ricci_rounding_mode mode);
/* The most bytes that a step may take in each of the sessions over g; called before the first of
 * them. 0, the default: no limit. What counts is what a step takes beside inputs, parameters and
 * states: the tensors between its kernels, what its loops need while they run, outputs, and next
 * values of states that can't be written over the old ones (not the copies that ricci_check_finite
 * makes). Where that is more than the limit, tensors are computed again when they are read later
 * instead of kept until then, by the same kernels, so results are the same (in static mode to the
 * bit); those first that cost least time by the bytes that they free. A loop is run again as a
 * whole; what it keeps of its steps is not changed (see ricci_loop.recompute). A session whose step
 * can't fit is not made: the error (RICCI_ENOMEM) says the least that was found, which is a limit
 * that can be met, and what takes most. 0 or the graph's error. */
RICCI_API int ricci_memory_limit(ricci_graph *g, size_t bytes);

RICCI_API const char *ricci_name(const ricci_tensor *t);
RICCI_API ricci_type ricci_dtype(const ricci_tensor *t);
RICCI_API int ricci_rank(const ricci_tensor *t);
/* 0 when there is no such dimension. */
RICCI_API int64_t ricci_extent(const ricci_tensor *t, int dimension);
RICCI_API size_t ricci_bytes(const ricci_tensor *t);
RICCI_API ricci_graph *ricci_graph_of(const ricci_tensor *t);
/* Parameters and states in the order of their creation: count, and the i-th (NULL outside).
 * trained: 1 parameter. */
RICCI_API int ricci_param_count(const ricci_graph *g);
RICCI_API ricci_tensor *ricci_param_at(const ricci_graph *g, int i, int *trained);
/* The parameter or state of this full name ("stage1.block0.w"); NULL when there is none. */
RICCI_API ricci_tensor *ricci_param_find(const ricci_graph *g, const char *name);
/* The equations that compute t, as text that ricci_op would take. Caller frees with
 * ricci_free_text. NULL: no memory. */
RICCI_API char *ricci_show(const ricci_tensor *t);
RICCI_API void ricci_free_text(char *text);

/* ---- sessions: graphs that run ---- */

typedef enum {
	RICCI_BACKEND_AUTO,
	RICCI_BACKEND_INTERP,
	RICCI_BACKEND_TCC,
	RICCI_BACKEND_CC
} ricci_backend;

typedef struct {
	size_t size;	       /* by RICCI_OPTIONS */
	ricci_backend backend; /* AUTO: tcc at once, cc as its kernels become ready */
	int threads;	       /* 0: as many as the process may run on */
	/* 1: everything compiled and tuned before the first step, same bits in every run */
	int static_mode;
	uint64_t seed;
	int check_finite; /* 1: as ricci_check_finite from the first step on; RICCI_CHECK=nan too */
	/* Where parameters, states and all tensors live, and kernels run: "cpu" (NULL too), "cuda:0",
	 * "opencl:0", or the same with another number; `ricci info` lists them. Data are copied by
	 * feed and fetch only. On a GPU each kernel is compiled and validated before the first step;
	 * faster ones are looked for and kept as on the processor; backend has to be AUTO then. No
	 * such device, or a library that is missing: an error that says so, and how to get it.
	 * RICCI_EDEVICE of a step: the driver failed; what the device held may be lost, or between
	 * two steps. A forked child can't use a device that its parent has used. */
	const char *device;
} ricci_options;
#define RICCI_OPTIONS(...) ((ricci_options){.size = sizeof(ricci_options), __VA_ARGS__})

/* train: 1 for a training session, in which assignments are done and `training` in texts is 1 (else
 * 0). Compiles what `outputs` and (when train) the graph's assignments need. The graph is frozen from
 * now on. options may be NULL: the usual ones. NULL on error. */
RICCI_API ricci_session *ricci_session_new(ricci_graph *g, const ricci_options *options, int train,
					   int noutput, ricci_tensor *const *outputs);
RICCI_API void ricci_session_free(ricci_session *s);
/* A second session over the same graph that shares the first one's parameters and states, e.g. to
 * evaluate. */
RICCI_API ricci_session *ricci_session_share(ricci_session *s, int train, int noutput,
					     ricci_tensor *const *outputs);
/* Copies data of an input, parameter or state in (dense, C order, the tensor's type), checked for
 * the range that gathers need. bytes: of data; it must be ricci_bytes(t). */
RICCI_API int ricci_feed(ricci_session *s, const ricci_tensor *t, const void *data, size_t bytes);
/* Copies data of an input, parameter, state or output (as of the last step) out. bytes: as above. */
RICCI_API int ricci_fetch(ricci_session *s, const ricci_tensor *t, void *data, size_t bytes);
/* Runs everything once; in a training session the assignments take effect at the end, all at once.
 */
RICCI_API int ricci_step(ricci_session *s);
/* Steps done; random draws depend on seed and step only. */
RICCI_API uint64_t ricci_step_count(const ricci_session *s);
RICCI_API void ricci_set_step(ricci_session *s, uint64_t step);
RICCI_API uint64_t ricci_seed(const ricci_session *s);
/* Dynamic mode: waits until the background threads have nothing left to try (tests, benchmarks), on
 * the processor or on the session's device. In static mode there is nothing to wait for. 0 or an
 * error. */
RICCI_API int ricci_settle(ricci_session *s);
/* Dynamic mode: searches for faster schedules of the session's kernels for so many seconds, those
 * first that take most of a step (as steps before have shown): before a long training, or where a
 * net is made ready for use. Kernels are timed on random data with all of the session's threads, or
 * on its device (kernels stay as they are whose tensors take more than half of the memory that is
 * left there); no parameter, state, output or step count changes, and every kernel that is taken was
 * verified.
 * What is found stays in the function cache, for other sessions and processes too. First, within that time, the
 * background threads finish what they have left. It ends a little late, with the batch of schedules that is under way. `report` (NULL: none) is called on this
 * thread after each batch: the seconds spent, and how long a step's kernels take of what they took
 * before (1: nothing is won yet); other than 0 ends the search. 0 or an error, such as in static
 * mode, where schedules are fixed.
 */
typedef int ricci_tune_report(void *user, double spent, double part);
RICCI_API int ricci_tune(ricci_session *s, double seconds, ricci_tune_report *report, void *user);

/* Looks (on: 1) at all results of each of the session's kernels from the next step on, or no longer
 * (0). A step then ends with RICCI_EVALUE at the first tensor that holds a NaN or an infinity although
 * all that it is computed from is finite, constants of the equations included; the message names
 * tensor, element, equations, step, and the ranges of the operands. Where a NaN reaches an output or
 * a state otherwise, it names what was fed or stored as NaN, or the first kernel that made one of
 * infinities. Parameters and states stay as they were, and so does the step count, so that after
 * ricci_feed of the state before a divergence (and ricci_set_step) the same step is done again. It
 * takes another copy of what steps assign, and reads all results once more. 0 or an error. */
RICCI_API int ricci_check_finite(ricci_session *s, int on);

/* ---- profiles: where a step's time goes ---- */

/* Times each launch of the session's kernels from the next step on (on: 1), or no longer (0);
 * forgets what was timed before. It costs about 50 ns a launch. RICCI_TIME=2 begins it with the
 * session. 0 or an error. */
RICCI_API int ricci_time_kernels(ricci_session *s, int on);
typedef struct ricci_profile ricci_profile;
typedef struct {	       /* a kernel, or a loop; fields may be added at the end */
	const char *equations; /* all of them, a line each, with the graph's names. w' is the next
				  value of w, x(t) what an iteration has of x, view(x) x in another
				  shape; tensors without a name are T1, T2 .. */
	/* Names of the inputs, parameters and states that are read or assigned. */
	int ntensor;
	const char *const *tensor;
	/* To which the time may be counted: the largest parameter that it assigns, else reads; else
	 * that of a neighbour, who assigns the gradient computed here, computed what is read here,
	 * or reads it. "": there is none. */
	const char *parameter;
	const char *backend; /* "cc"; "" of loops */
	int is_loop;	     /* 1: seconds are those of all its iterations, in rows of their own */
	int loop;	     /* the row of the loop that it runs in; -1: of none */
	double launches;     /* in a step */
	double seconds; /* of a launch: the median, without first and trial launches; 0: none yet */
	double share;	/* launches * seconds by the median time of a step */
	double flops, bytes; /* of a launch: arithmetic; memory, each tensor once */
} ricci_kernel_time;
/* What was timed since ricci_time_kernels; it outlives the session. The caller frees it. NULL on
 * error, such as when nothing was timed. */
RICCI_API ricci_profile *ricci_profile_new(ricci_session *s);
RICCI_API void ricci_profile_free(ricci_profile *f);
/* Rows, the largest shares first; NULL outside. They live as long as the profile. */
RICCI_API int ricci_profile_count(const ricci_profile *f);
RICCI_API const ricci_kernel_time *ricci_profile_at(const ricci_profile *f, int i);
RICCI_API double ricci_profile_step(const ricci_profile *f); /* median seconds of a step */
/* All of it as a table. The caller frees it by ricci_free_text. NULL: no memory. */
RICCI_API char *ricci_profile_text(const ricci_profile *f);

/* ---- memory: what a step keeps, and what it computes again ---- */

typedef struct ricci_memory ricci_memory;
typedef struct {	  /* of a step, in bytes; fields may be added at the end */
	size_t bytes;	  /* what it takes beside inputs, parameters and states: see
			     ricci_memory_limit */
	size_t unlimited; /* what it would take if nothing were computed again */
	size_t limit;	  /* 0: none */
	size_t beside; /* of `bytes`: outputs, and next values that are not written over the old ones */
	int launches; /* of kernels, and of loops as a whole */
	int again;    /* of these: compute again what was computed before in the step */
	/* arithmetic of all launches, of loops at their full length; and of those */
	double flops, flops_again;
} ricci_memory_use;
typedef struct { /* a tensor between kernels; fields may be added at the end */
	/* That computes it, with the names of ricci_kernel_time; of a loop's result "a loop of .. steps
	 * at most: " and that of a step, where it is none of the step's variables. */
	const char *equation;
	size_t bytes;
	int times; /* that it is computed in a step; 1: it is kept from there to its last reader */
	int at_peak;  /* 1: it is there while the step takes most */
	double flops; /* of its kernel or loop, each time */
} ricci_memory_tensor;
/* What the step of a session takes; it outlives the session. The caller frees it. NULL on error. */
RICCI_API ricci_memory *ricci_memory_new(ricci_session *s);
RICCI_API void ricci_memory_free(ricci_memory *m);
RICCI_API const ricci_memory_use *ricci_memory_sum(const ricci_memory *m); /* NULL of NULL */
/* The tensors that are computed again and those that are kept at the peak, the former first, the
 * largest first among each; NULL outside. They live as long as m. */
RICCI_API int ricci_memory_count(const ricci_memory *m);
RICCI_API const ricci_memory_tensor *ricci_memory_at(const ricci_memory *m, int i);
/* All of it as a table. The caller frees it by ricci_free_text. NULL: no memory. */
RICCI_API char *ricci_memory_text(const ricci_memory *m);

/* ---- traces: what every thread does, over time ---- */

/* Writes what the process does from now on into the file `path`, which is replaced, until
 * ricci_trace_end: the steps of all sessions, each launch of a kernel with its first equation and
 * backend, the stages of a session's making, what the background threads compile, verify and look
 * for, and each kernel that is replaced by a faster one, with its gain. ui.perfetto.dev and
 * chrome://tracing open it ("Trace Event Format", as JSON). A launch costs about 1 us more, and
 * 200 bytes of the file. Any thread may call both; one trace at a time; a forked child writes none
 * of its parent's. 0 or an error, of ricci_trace_end such that the file is not whole. */
RICCI_API int ricci_trace_begin(const char *path);
RICCI_API int ricci_trace_end(void); /* 0, too, where none was begun */

#ifdef __cplusplus
}
/* C++ counts with templates. */
#undef ricci_op
#undef ricci_op_named
#undef ricci_op_custom
template <class... T> ricci_tensor *ricci_op(ricci_graph *g, const char *text, T... operand)
{
	return ricci_op_counted(g, (int)sizeof...(operand), text, operand...);
}
template <class... T> ricci_tensor *ricci_op_named(ricci_graph *g, const char *text, T... given)
{
	return ricci_op_named_counted(g, (int)sizeof...(given), text, given...);
}
template <class... T>
ricci_tensor *ricci_op_custom(ricci_graph *g, const char *text, const char *gradient, T... operand)
{
	return ricci_op_custom_counted(g, text, (int)sizeof...(operand), gradient, operand...);
}
#endif
#endif
