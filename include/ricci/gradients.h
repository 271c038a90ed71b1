/* gradients.h - gradients against differences. <ricci_nn.h> includes it. */
#ifndef RICCI_GRADIENTS_H
#define RICCI_GRADIENTS_H

#include <ricci.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gradients against differences (nn/check_gradient.c) */
typedef struct {
	const ricci_tensor *tensor;
	const void *data; /* dense, C order, the tensor's type */
	size_t bytes;
} ricci_value;
typedef struct {
	size_t size;	  /* by RICCI_GRADIENT_CHECK */
	double step;	  /* of differences, times max(1, |x|); 0: 1e-3 */
	double tolerance; /* of relative errors; 0: 1e-6 */
	int64_t samples;  /* at most so many elements of each tensor; 0: 32 */
	uint64_t seed;	  /* of drawn values, of samples and of random() in texts */
	int train;	  /* the value of `training` in texts */
	/* Values of inputs, parameters and states. The others are drawn: what begins with a number as
	 * that number plus -1/2..1/2, other parameters and states from a range like their
	 * initialiser's, floats from -1..1, integers from the first ten that they may be. */
	int nvalue;
	const ricci_value *value;
} ricci_gradient_check;
#define RICCI_GRADIENT_CHECK(...)                                                                  \
	((ricci_gradient_check){.size = sizeof(ricci_gradient_check), __VA_ARGS__})
typedef struct {
	size_t size;		  /* by RICCI_GRADIENT_REPORT */
	int64_t checked, skipped; /* elements; skipped: the loss has a kink or a jump beside it */
	ricci_tensor *tensor;	  /* the worst element's; NULL: nothing was checked */
	int64_t element[RICCI_MAX_RANK];
	double gradient, difference; /* its derivative, by ricci_grad and by differences */
	double error; /* |gradient - difference| divided by the greater of both or, where that is
			 more, by the mean of the tensor's |gradient| */
} ricci_gradient_report;
#define RICCI_GRADIENT_REPORT(...)                                                                 \
	((ricci_gradient_report){.size = sizeof(ricci_gradient_report), __VA_ARGS__})
/* Compares the gradient of the sum of loss's elements with respect to wrt[0..n-1] (inputs,
 * parameters or states, f32 or f64; n = 0: all parameters) with central differences. Everything is
 * computed by the reference interpreter, in f64 whatever the graph's types are: it is slow, so give it
 * a small net, before it has sessions. The graph gets the gradients' equations. 0 when all errors are within
 * the tolerance; RICCI_EVALUE and a message with the worst element when not; or another error.
 * options and report may be NULL. */
RICCI_API int ricci_check_gradient(ricci_tensor *loss, int n, ricci_tensor *const *wrt,
				   const ricci_gradient_check *options,
				   ricci_gradient_report *report);

#ifdef __cplusplus
}
#endif
#endif
