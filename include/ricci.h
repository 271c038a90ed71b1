/* ricci.h - the public interface of Ricci.
 *
 * A user writes operators as index expressions, asks for gradients, and trains:
 *
 *	ricci_graph *g = ricci_graph_new();
 *	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){32, 784});
 *	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){784, 10},
 *ricci_normal(0.05)); ricci_tensor *y = ricci_op(g, "Y[b,n] += X[b,k] * W[k,n]", x, w);
 *
 * Errors. The graph is sticky: the first error wins, every later call on it does nothing and
 *returns an inert tensor, and one check of ricci_graph_error() at the end is enough. Functions that
 *return int give 0 or a negative ricci_error. Nothing in the library prints, exits or aborts.
 * Ownership. Tensors belong to their graph. Every object with a _new has a _free that accepts NULL.
 * Threads. A graph belongs to one thread at a time; so does a session. Different graphs and
 *sessions are independent.
 */
#ifndef RICCI_H
#define RICCI_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
	RICCI_NTYPES
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
	RICCI_EINTERNAL = -11
} ricci_error;

typedef struct ricci_graph ricci_graph;
typedef struct ricci_tensor ricci_tensor;
typedef struct ricci_session ricci_session;

/* ---- graphs ---- */

RICCI_API const char *ricci_version(void);
/* A new empty graph, or NULL when out of memory. */
RICCI_API ricci_graph *ricci_graph_new(void);
RICCI_API void ricci_graph_free(ricci_graph *g);
/* 0, or the first error of the graph; the message lives until the graph is freed ("" when there is
 * none). */
RICCI_API int ricci_graph_error(const ricci_graph *g);
RICCI_API const char *ricci_error_message(const ricci_graph *g);

/* A tensor whose data the user provides before a step (ricci_feed). Names are unique in a graph and
 * don't begin with %. */
RICCI_API ricci_tensor *ricci_input(ricci_graph *g, const char *name, ricci_type type, int rank,
				    const int64_t *shape);

typedef struct {
	int kind; /* 0 constant, 1 normal, 2 uniform */
	double a, b;
} ricci_init;
RICCI_API ricci_init ricci_constant(double value);
RICCI_API ricci_init ricci_normal(double deviation);	     /* mean 0 */
RICCI_API ricci_init ricci_uniform(double low, double high); /* half open */

/* A tensor that the session keeps between steps: a parameter or a state. It starts from `init`
 * (drawn from the session's seed and the tensor's name, so the order of creation does not matter)
 * and changes by ricci_assign. */
RICCI_API ricci_tensor *ricci_param(ricci_graph *g, const char *name, ricci_type type, int rank,
				    const int64_t *shape, ricci_init init);
/* The same for a tensor that is not trained (moments, running statistics): gradients skip it. */
RICCI_API ricci_tensor *ricci_state(ricci_graph *g, const char *name, ricci_type type, int rank,
				    const int64_t *shape, ricci_init init);

/* Adds the equations of `text` (docs/notation.md) over the operands, bound in the order in which
 * unassigned names first appear, and returns the single result. An error when the program has
 * several results. */
RICCI_API ricci_tensor *ricci_op(ricci_graph *g, const char *text, ...);
/* The same with arrays; results in the order of the text; *nresult: in the room, out the number. 0
 * or an error. */
RICCI_API int ricci_ops(ricci_graph *g, const char *text, int noperand,
			ricci_tensor *const *operands, int *nresult, ricci_tensor **results);

/* Gradients of the sum of y's elements (usually a scalar loss) with respect to wrt[0..n-1]; a
 * tensor that y does not depend on gets a gradient of zeros. `seed` is dL/dy, or NULL for ones. */
RICCI_API int ricci_grad(ricci_graph *g, ricci_tensor *y, ricci_tensor *seed, int n,
			 ricci_tensor *const *wrt, ricci_tensor **grads);
/* The tangent of y, J t: how y changes when each x[k] moves along tangent[k] (of its type and
 * shape). Forward mode, a single pass for one direction; of a gradient it is a Hessian-vector
 * product. Zeros when y depends on no x. 0 or an error; *out is a tensor in either case. */
RICCI_API int ricci_jvp(ricci_graph *g, ricci_tensor *y, int n, ricci_tensor *const *x,
			ricci_tensor *const *tangent, ricci_tensor **out);
/* The same values; no gradient flows through it (stop(x) in texts). */
RICCI_API ricci_tensor *ricci_stop(ricci_tensor *t);
/* ricci_op with a gradient of the user's own. `gradient` is a program that may read the operands of
 * `text` and its results by their names there, and the gradient of result Y as dY; it computes dA
 * for operand A, of A's type and shape. An operand without one gets no gradient. The gradient's
 * equations are differentiated like all others. E.g.
 *	ricci_op_custom(g, "Y[i] = log(1 + exp(A[i]))", "dA[i] = dY[i] * sigmoid(A[i])", a) */
RICCI_API ricci_tensor *ricci_op_custom(ricci_graph *g, const char *text, const char *gradient,
					...);
/* The same with arrays, as ricci_ops. */
RICCI_API int ricci_ops_custom(ricci_graph *g, const char *text, const char *gradient, int noperand,
			       ricci_tensor *const *operands, int *nresult, ricci_tensor **results);
/* A loop over time: a body applied `steps` times, or as often as `length` says at run time. The
 *body is built before, by ordinary calls, over inputs that stand for a step's values (variables;
 *outside of the loop they have none). What it reads beside them (parameters, say) is the same in
 *all steps and computed once. slice	variable is tensor[t, ..] in step t; `tensor` has `steps`
 *rows carry	variable is `initial` in the first step, then the `next` of the step before out
 *tensors of the body of which the steps are stacked */
typedef struct {
	ricci_tensor *variable, *tensor;
} ricci_slice;
typedef struct {
	ricci_tensor *variable, *initial, *next; /* one type and shape */
} ricci_carry;
typedef struct {
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
/* Mixed precision in the sessions over g; called before the first of them. RICCI_BF16: equations
 * that add up products, whatever their indices, read those f32 factors rounded to bf16 of which
 * they use each element eight times or more; so do their gradients. Products and sums, results,
 * parameters and their updates stay f32, and so do all other equations and types. bf16 has f32's
 * exponents, so losses need no scaling (Kalamkar et al. 2019, "A study of BFLOAT16 for deep
 * learning training"). RICCI_F32, the default: no rounding. Another type is an error. 0 or the
 * graph's error. */
RICCI_API int ricci_precision(ricci_graph *g, ricci_type type);
/* How f32 becomes bf16 in the sessions over g, in equations (bf16(x), or a bf16 result) and by
 * ricci_precision; called before the first of them. RICCI_NEAREST, the default: to the nearest, of
 * two to the even one. RICCI_STOCHASTIC: to the one below or above by chance, the nearer the more
 * often, so that the mean of the rounded number is the number, and what is too small to change a
 * bf16 parameter does so now and then (Gupta et al. 2015, "Deep learning with limited numerical
 * precision"). Numbers follow from the session's seed, the step and the element, whatever the
 * threads and schedules. 0 or the graph's error. */
typedef enum { RICCI_NEAREST, RICCI_STOCHASTIC } ricci_rounding_mode;
RICCI_API int ricci_rounding(ricci_graph *g, ricci_rounding_mode mode);

RICCI_API const char *ricci_name(const ricci_tensor *t);
RICCI_API ricci_type ricci_dtype(const ricci_tensor *t);
RICCI_API int ricci_rank(const ricci_tensor *t);
RICCI_API int64_t ricci_extent(const ricci_tensor *t,
			       int dimension); /* 0 when there is no such dimension */
RICCI_API size_t ricci_bytes(const ricci_tensor *t);
RICCI_API ricci_graph *ricci_graph_of(const ricci_tensor *t);
/* Parameters and states in the order of their creation: count, and the i-th (NULL outside).
 * trained: 1 parameter. */
RICCI_API int ricci_param_count(const ricci_graph *g);
RICCI_API ricci_tensor *ricci_param_at(const ricci_graph *g, int i, int *trained);
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
	ricci_backend backend; /* AUTO: tcc at once, cc as its kernels become ready */
	int threads;	       /* 0: as many as the process may run on */
	int static_mode; /* 1: everything compiled and tuned before the first step, same bits in
			    every run */
	uint64_t seed;
} ricci_options;

/* Compiles what `outputs` and (when train) the graph's assignments need. The graph is frozen from
 * now on and must outlive the session. NULL on error, with the message in err[0..nerr-1] (err may
 * be NULL). */
RICCI_API ricci_session *ricci_session_new(ricci_graph *g, const ricci_options *options, int train,
					   int noutput, ricci_tensor *const *outputs, char *err,
					   size_t nerr);
RICCI_API void ricci_session_free(ricci_session *s);
/* A second session over the same graph that shares the first one's parameters and states, e.g. to
 * evaluate. */
RICCI_API ricci_session *ricci_session_share(ricci_session *s, int train, int noutput,
					     ricci_tensor *const *outputs, char *err, size_t nerr);
RICCI_API const char *ricci_session_error(const ricci_session *s);
/* Copies data of an input, parameter or state in (dense, C order, the tensor's type), checked for
 * the range that gathers need. */
RICCI_API int ricci_feed(ricci_session *s, const ricci_tensor *t, const void *data);
/* Copies data of an input, parameter, state or output (as of the last step) out. */
RICCI_API int ricci_fetch(ricci_session *s, const ricci_tensor *t, void *data);
/* Runs everything once; in a training session the assignments take effect at the end, all at once.
 */
RICCI_API int ricci_step(ricci_session *s);
/* Steps done; random draws depend on seed and step only. */
RICCI_API uint64_t ricci_step_count(const ricci_session *s);
RICCI_API void ricci_set_step(ricci_session *s, uint64_t step);
RICCI_API uint64_t ricci_seed(const ricci_session *s);
/* Dynamic mode: waits until the background threads have nothing left to try (tests, benchmarks). */
RICCI_API int ricci_settle(ricci_session *s);
/* Dynamic mode: searches for faster schedules of the session's kernels for so many seconds, those
 * first that take most of a step (as steps before have shown): before a long training, or where a
 * net is made ready for use. Kernels are timed on random data with all of the session's threads;
 * no parameter, state, output or step count changes, and every kernel that is taken was verified.
 * What is found stays in the function cache, for other sessions and processes too. It ends a little
 * late, with the batch of schedules that is under way. `report` (NULL: none) is called on this
 * thread after each batch: the seconds spent, and how long a step's kernels take of what they took
 * before (1: nothing is won yet); other than 0 ends the search. 0 or an error, such as in static
 * mode, where schedules are fixed.
 */
typedef int ricci_tune_report(void *user, double spent, double part);
RICCI_API int ricci_tune(ricci_session *s, double seconds, ricci_tune_report *report, void *user);

/* ---- nn: layers and losses (nn/layers.c, nn/losses.c)
 * Each is a few equations added to the graph of its first operand, so gradients, fusion and kernels
 * come from those alone; ricci_show prints them. f32 or f64 throughout, labels I32. They return
 * one tensor of that graph, or the inert tensor after an error (kept by the graph, like
 * ricci_op's); NULL only when the first operand is NULL. Same rule on threads as the graph. */

/* x [b,k], w [n,k], bias [n] or NULL -> [b,n]: x w' + bias. */
RICCI_API ricci_tensor *ricci_linear(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias);
/* x [b,c,h,w], w [k,c,r,s], bias [k] or NULL -> [b,k,p,q], p = (h + 2 pad - r) / stride + 1 and q
 * likewise; zeros around the image. */
RICCI_API ricci_tensor *ricci_conv2d(ricci_tensor *x, ricci_tensor *w, ricci_tensor *bias,
				     int stride, int pad);
/* A convolution of matrices: x [b,c,h,w,i,t], w [k,c,r,s,t,j] -> [b,k,p,q,i,j], the sum over c, r,
 * s of x's pose times w's. Without padding. */
RICCI_API ricci_tensor *ricci_capsule_conv(ricci_tensor *x, ricci_tensor *w, int stride);
/* The channels of x [b,c*i*t,h,w] as capsules of i x t matrices: [b,c,h,w,i,t]. */
RICCI_API ricci_tensor *ricci_capsules(ricci_tensor *x, int rows, int columns);
/* v |v|^2 / (1 + |v|^2) / sqrt(|v|^2 + 1e-7), |v| over the last `dims` dimensions (Sabour, Frosst,
 * Hinton 2017, equation 1). */
RICCI_API ricci_tensor *ricci_squash(ricci_tensor *x, int dims);
/* x [b,c,h,w,i,t], w [c*h*w,m,t,j] -> [b,n,m,i,j]: what each of the n = c*h*w capsules expects each
 * of the m to be. */
RICCI_API ricci_tensor *ricci_votes(ricci_tensor *x, ricci_tensor *w);
/* votes [b,n,m,i,j] -> [b,m,i,j], squashed: dynamic routing by agreement (the same, procedure 1),
 * differentiated through. iterations >= 1. */
RICCI_API ricci_tensor *ricci_routing(ricci_tensor *votes, int iterations);
RICCI_API ricci_tensor *ricci_relu(ricci_tensor *x);
/* Over the last dimension. */
RICCI_API ricci_tensor *ricci_softmax(ricci_tensor *x);
/* x [b,c,h,w] -> [b,c,p,q], windows of size x size inside the image. */
RICCI_API ricci_tensor *ricci_max_pool2d(ricci_tensor *x, int size, int stride);
/* [b,c,h,w] -> [b,c]: the mean over the places. */
RICCI_API ricci_tensor *ricci_mean_pool2d(ricci_tensor *x);

/* Losses: one number, the mean over the batch. */
/* logits [b,m], labels [b] with 0 <= label < m. */
RICCI_API ricci_tensor *ricci_cross_entropy(ricci_tensor *logits, ricci_tensor *labels);
/* poses [b,m,...], labels [b]: sum over m of T max(0, .9-|v|)^2 + .5 (1-T) max(0, |v|-.1)^2, T = 1
 * for the label; |v| is sqrt(sum v^2 + 1e-7) over the rest (Sabour et al., equation 4). */
RICCI_API ricci_tensor *ricci_margin_loss(ricci_tensor *poses, ricci_tensor *labels);
/* Of two tensors of one shape: the mean over all elements. */
RICCI_API ricci_tensor *ricci_mean_squared_error(ricci_tensor *a, ricci_tensor *b);
/* I32 [b]: 1 where the label's score is not strictly the greatest (ties and NaN are errors), else
 * 0. The score of scores [b,m,...] is the length over the rest; of [b,m] the number itself. */
RICCI_API ricci_tensor *ricci_errors(ricci_tensor *scores, ricci_tensor *labels);

/* Initialisers: normal with deviation 1/sqrt(fan_in) and sqrt(2/fan_in) (He et al. 2015, for what a
 * relu follows), uniform in +-sqrt(6/(fan_in+fan_out)) (Glorot & Bengio 2010). */
RICCI_API ricci_init ricci_fan_in(int64_t fan_in);
RICCI_API ricci_init ricci_he(int64_t fan_in);
RICCI_API ricci_init ricci_glorot(int64_t fan_in, int64_t fan_out);

/* ---- nn: optimisers (nn/optimisers.c)
 * Each takes the gradient of `loss` with respect to every parameter of its graph (not to states)
 * and assigns the parameters' next values; moments are states named after the parameter
 * ("votes.moment1"). `rate` is a scalar tensor, usually ricci_learning_rate. Called once a graph,
 * after the loss is built. 0 or the graph's error. */

/* The state "learning_rate", f32 []; ricci_feed changes it between steps without compiling anew. */
RICCI_API ricci_tensor *ricci_learning_rate(ricci_graph *g, double value);
RICCI_API int ricci_sgd(ricci_tensor *loss, ricci_tensor *rate);
/* v = momentum v + g; p -= rate v. */
RICCI_API int ricci_momentum(ricci_tensor *loss, ricci_tensor *rate, double momentum);
/* Adam with bias correction (Kingma & Ba 2015, algorithm 1): usually .9, .999, 1e-8. */
RICCI_API int ricci_adam(ricci_tensor *loss, ricci_tensor *rate, double beta1, double beta2,
			 double epsilon);

/* ---- nn: data (nn/dataset.c, nn/idx.c, nn/digits.c)
 * Labelled samples of bytes in memory. Large files are unpacked, and digits drawn, while training
 * already uses the first of them. Errors: NULL, with the message in err[0..nerr-1] (err may be
 * NULL). A data set may feed several loaders; it must outlive them. */
typedef struct ricci_data ricci_data;
/* Samples and labels from two IDX files of unsigned bytes, plain or gzip-compressed: any rank,
 * first dimension the samples; labels of rank 1. */
RICCI_API ricci_data *ricci_idx(const char *samples, const char *labels, char *err, size_t nerr);
/* MNIST's files by their usual names, with or without ".gz", in a folder: the test set or the
 * other.
 */
RICCI_API ricci_data *ricci_mnist(const char *folder, int test, char *err, size_t nerr);
/* `count` drawn digits of 28 x 28, turned, scaled, shifted and with noise; the same for the same
 * seed. */
RICCI_API ricci_data *ricci_digits(int64_t count, uint64_t seed, char *err, size_t nerr);
RICCI_API void ricci_data_free(ricci_data *d);
RICCI_API int64_t ricci_data_count(const ricci_data *d);
/* Elements of a sample. */
RICCI_API int64_t ricci_data_size(const ricci_data *d);
/* Copies sample i out: `pixels` (ricci_data_size bytes, may be NULL) and its label. Waits for it
 * when it is still being unpacked. 0, or RICCI_EFORMAT/EIO with the message. */
RICCI_API int ricci_data_get(ricci_data *d, int64_t i, uint8_t *pixels, int *label, char *err,
			     size_t nerr);

/* Batches made ahead by a thread of its own. With `shuffle` each epoch has an order of its own,
 * which depends on seed and epoch only; a last part smaller than a batch is left out then, and
 * without shuffle filled up with the first samples. One thread at a time. */
typedef struct ricci_loader ricci_loader;
RICCI_API ricci_loader *ricci_loader_new(ricci_data *d, int batch, int shuffle, uint64_t seed,
					 char *err, size_t nerr);
RICCI_API void ricci_loader_free(ricci_loader *l);
/* The next batch: samples as f32 in 0..1 (bytes / 255), labels, and how many of them count (batch,
 * less in a filled-up one); 0 at the end of an epoch, after which the next epoch begins. The arrays
 * live until the next call. Negative: an error. */
RICCI_API int ricci_loader_next(ricci_loader *l, const float **samples, const int32_t **labels,
				char *err, size_t nerr);
/* Continues with sample `index` (a multiple of the batch) of an epoch, counted from 0; its batches
 * are made from now on, the first asked for or not. */
RICCI_API int ricci_loader_seek(ricci_loader *l, uint64_t epoch, int64_t index);

/* ---- nn: checkpoints (nn/checkpoint.c)
 * HDF5 files, chunked and checksummed: /parameters/<name>, /state/<name>, and attributes. Written
 * beside the old file, flushed, renamed, so that the old one stays whole whatever happens. */
typedef struct {
	uint64_t step, seed;   /* of the session: all the random state there is */
	uint64_t epoch, index; /* the position in the data: epochs done, samples of this one done */
	double loss_sum;       /* of the running epoch, over `batches` */
	uint64_t batches, wrong;
} ricci_position;
/* Saves parameters and states of s. model: an output whose equations are part of the fingerprint.
 * p: step and seed are taken from s; may be NULL. compress: gzip level 0..9. */
RICCI_API int ricci_save(ricci_session *s, const ricci_tensor *model, const char *path,
			 const ricci_position *p, int compress, char *err, size_t nerr);
/* Loads into s, after everything was checked: on an error s is as it was. weights: parameters only,
 * by name and shape, into any model that has them; else the model must be the same, and s gets the
 * step. */
RICCI_API int ricci_load(ricci_session *s, const ricci_tensor *model, const char *path, int weights,
			 ricci_position *p, char *err, size_t nerr);
/* The position alone, without a session. */
RICCI_API int ricci_peek(const char *path, ricci_position *p, char *err, size_t nerr);

/* ---- nn: the training loop (nn/train.c) */
typedef struct {
	ricci_tensor *samples, *labels; /* inputs: F32 [batch,...], I32 [batch] */
	ricci_tensor *loss, *errors;	/* F32 [], I32 [batch] (ricci_errors) */
	ricci_data *train, *test;	/* test may be NULL */
	ricci_options options;
	int epochs;			 /* in all, those before a resume included; 0: no limit */
	uint64_t steps;			 /* in all; 0: no limit. Both 0: an error */
	double tune;			 /* seconds of ricci_tune before the first step */
	int evaluate;			 /* only a pass over test (with resume: of those weights) */
	const char *resume, *checkpoint; /* files, or NULL; saved after each epoch and at the end */
	const char *picture;		 /* the loss curve (SVG), drawn after each epoch, or NULL */
	ricci_tensor *rate; /* with resume: keeps its initial value, not the file's; or NULL */
	int compress;	    /* gzip level of checkpoints */
	FILE *lines;	    /* one line an epoch; NULL: none */
	FILE *progress;	    /* a bar when it is a terminal, and warnings; NULL: none */
	const volatile sig_atomic_t *stop; /* set by a signal handler: ends after the step, saved */
} ricci_training;
typedef struct {
	uint64_t step, epoch;		      /* done */
	double loss, train_error, test_error; /* of the last epoch; errors as fractions */
	double images_per_second;	      /* training, evaluation apart */
	int stopped;			      /* 1: by `stop` */
} ricci_report;
/* Installs a handler of SIGINT that sets the flag it returns, for `stop`; a second signal ends the
 * process as usual. */
RICCI_API const volatile sig_atomic_t *ricci_interrupted(void);
/* Trains, or evaluates. The line of an epoch is exactly
 *	epoch 1 loss 0.0123 train_error 1.23% test_error 1.10% images/s 1234
 * (without test data the pair test_error is missing; an evaluation prints that pair alone).
 * report may be NULL. 0 or an error with the message. */
RICCI_API int ricci_train(const ricci_training *t, ricci_report *report, char *err, size_t nerr);

#ifdef __cplusplus
}
#endif
#endif
