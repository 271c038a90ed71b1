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

/* ---- graphs
 * -----------------------------------------------------------------------------------------------------
 */

RICCI_API const char *ricci_version(void);
/* A new empty graph, or NULL when out of memory. */
RICCI_API ricci_graph *ricci_graph_new(void);
RICCI_API void ricci_graph_free(ricci_graph *g);
/* 0, or the first error of the graph; the message lives until the graph is freed ("" when there is
 * none). */
RICCI_API int ricci_graph_error(const ricci_graph *g);
RICCI_API const char *ricci_error_message(const ricci_graph *g);

/* A tensor whose data the user provides before a step (ricci_feed). Names are unique in a graph. */
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
/* The value that a parameter or state takes at the end of each training step: same type and shape.
 */
RICCI_API int ricci_assign(ricci_graph *g, ricci_tensor *state, ricci_tensor *value);

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

/* ---- sessions: graphs that run
 * ---------------------------------------------------------------------------------- */

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

#ifdef __cplusplus
}
#endif
#endif
