/* optimisers.h - optimisers and learning rates. <ricci_nn.h> includes it. */
#ifndef RICCI_OPTIMISERS_H
#define RICCI_OPTIMISERS_H

#include <ricci.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimisers (nn/optimisers/)
 * An optimiser takes the gradient of a scalar `loss` with respect to the parameters of its graph
 * (not to states) and assigns their next values. What it keeps of a parameter is a state named
 * after it ("votes.moment1"), f32, or f64 for f64 parameters. A parameter on which the loss does
 * not depend keeps its value, as in PyTorch. `rate` is a scalar tensor: ricci_learning_rate or
 * ricci_schedule. Called after the loss is built. 0 or the graph's error. */

/* The state "learning_rate", f32 []; ricci_feed changes it between steps, nothing is compiled anew. */
RICCI_API ricci_tensor *ricci_learning_rate(ricci_graph *g, double value);

/* p: parameter, g: its gradient, r: rate, d: decay. Sources: nn/optimisers/rules.c. */
typedef enum {
	RICCI_SGD,	/* p -= r g; with `momentum` it is RICCI_MOMENTUM */
	RICCI_MOMENTUM, /* v = momentum v + g; p -= r v */
	RICCI_NESTEROV, /* v likewise; p -= r (g + momentum v) */
	RICCI_ADAM,	/* Kingma & Ba 2015, algorithm 1 */
	RICCI_ADAMW,	/* the same, and p -= r d p (Loshchilov & Hutter 2019) */
	RICCI_LAMB,	/* You et al. 2020, algorithm 2 */
	RICCI_RMSPROP,	/* s = beta2 s + (1 - beta2) g^2; p -= r g / (sqrt(s) + epsilon); with
			 * `momentum` p -= r v, v = momentum v + g / (sqrt(s) + epsilon) */
	RICCI_ADAGRAD,	/* s += g^2; p -= r g / (sqrt(s) + epsilon) */
	RICCI_AMSGRAD,	/* Adam, its second moment the greatest so far (Reddi, Kale, Kumar 2018,
			 * algorithm 2, with Adam's corrections as in PyTorch) */
	RICCI_AMSGRADW	/* the same, and p -= r d p */
} ricci_rule;

/* In place of an option's usual value: zero. */
#define RICCI_NONE (-1.0)

/* Parameters with options of their own. A parameter belongs to the first group that has it, or to
 * none. Both names and match NULL: all. A group that has no parameter is an error. */
typedef struct {
	const char *names; /* a pattern as shells have it: "*.bias", "stage1.*"; NULL: any */
	int (*match)(const ricci_tensor *parameter, void *user); /* other than 0: has it */
	void *user;
	double rate;  /* factor of the rate; 0: 1 */
	double decay; /* 0: that of the optimiser; RICCI_NONE: none */
	int frozen;   /* 1: not trained */
} ricci_group;

/* Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training", 3.2, by the rules of
 * PyTorch's GradScaler): gradients are computed of the loss times a scale, so that fewer are too
 * small for the factors that ricci_precision rounds to f16, and divided by it in f32. A step with a
 * gradient that is infinite or NaN divides the scale by `factor` and updates nothing; `period` steps
 * without one multiply it. Scales are powers of two, so gradients that neither vanish nor overflow are
 * what they are without. In f32 and bf16 it changes nothing else. An option is 0 for its usual value;
 * one out of range, or no power of two, is RICCI_EINVAL. */
typedef struct {
	size_t size;	/* by RICCI_SCALING */
	double initial; /* scale of the first step; usually 2^16 */
	double least,
		greatest; /* it stays within; usually 1 and 2^24 (or `initial`, where that is out of
				 these); both the same: it doesn't change. From 2^-120 to 2^120 */
	double factor;	  /* usually 2 */
	int period;	  /* steps; usually 2000 */
	const char *name; /* of the states: the scale, "loss_scale", f32 [], and the steps since it
				 * changed, "loss_scale.steps", i32 []. Two scales of a graph need two
				 * names */
} ricci_scaling;
#define RICCI_SCALING(...) ((ricci_scaling){.size = sizeof(ricci_scaling), __VA_ARGS__})

/* Options are 0 for the usual value (PyTorch's), RICCI_NONE for zero; one that the rule doesn't
 * have is an error. In this order a step divides gradients by the loss's scale, adds them up, clips by
 * value, clips by norm, adds the decay, applies the rule, updates the averages. */
typedef struct {
	size_t size; /* by RICCI_OPTIMISER */
	ricci_rule rule;
	double beta1, beta2; /* usually .9 and .999; RMSprop's beta2 .99 */
	double epsilon;	     /* usually 1e-8; LAMB 1e-6, Adagrad 1e-10 */
	double momentum;     /* of RICCI_MOMENTUM and _NESTEROV usually .9 */
	double decay; /* weight decay: AdamW's, AMSGradW's and LAMB's own (LAMB usually none, the others
				 .01); in others
				 g + d p takes g's place (usually none) */
	double clip_norm;  /* gradients times min(1, clip_norm / (norm + 1e-6)), norm being that
				 of all gradients together; 0: none */
	double clip_value; /* gradients clipped to -clip_value..clip_value; 0: none */
	int accumulate;	   /* n: an update in every n-th step only, with the mean of n gradients;
				 the sums are states ("w.gradient"); 0 or 1: in every step */
	double average;	   /* a: states "ema.w" = a ema + (1 - a) w after each update, the first of
				 which copies w; 0: none. See ricci_averaged */
	int ngroup;
	const ricci_group *group;
	const char *name; /* of its counters ("adam.step"); NULL: the rule's. Two optimisers of one
			     graph, each with frozen groups, need two names */
	int maximise;	  /* 1: the loss is made great, not small: the gradient of -loss is taken */
	/* Loss scaling; NULL: none. A step whose gradients are not finite changes neither parameters
	 * nor the optimiser's states, counts and averages. With `accumulate` the scale changes after
	 * any batch, and one such batch among n leaves out the update ("adam.overflow" remembers it).
	 * A ricci_schedule counts steps, whether they update or not. */
	const ricci_scaling *scaling;
} ricci_optimiser;
#define RICCI_OPTIMISER(...) ((ricci_optimiser){.size = sizeof(ricci_optimiser), __VA_ARGS__})
/* options may be NULL: SGD. E.g. AdamW without decay of biases:
 *	ricci_group bias = {.names = "*.bias", .decay = RICCI_NONE};
 *	ricci_optimise(loss, rate, &RICCI_OPTIMISER(.rule = RICCI_ADAMW, .clip_norm = 1,
 *						    .ngroup = 1, .group = &bias)); */
RICCI_API int ricci_optimise(ricci_tensor *loss, ricci_tensor *rate,
			     const ricci_optimiser *options);
/* Loss scaling for an update of one's own: grads[0..n-1] are the gradients of the scalar `loss` with
 * respect to wrt[], computed with the scale and divided by it: f64 of f64 tensors, f32 of others, of
 * wrt's shapes. *finite, bool []: are all of them finite? The next scale is assigned; the states are
 * named in the scope that is open. What the caller assigns should keep its value where *finite is
 * false:
 *	ricci_scaled_grad(loss, NULL, 1, &w, &dw, &finite);
 *	ricci_assign(g, w, ricci_op(g, "N[...] = F[] ? W[...] - 0.1*D[...] : W[...]", finite, w, dw));
 * options NULL: the usual ones. Before the first session. 0 or the graph's error, and inert tensors. */
RICCI_API int ricci_scaled_grad(ricci_tensor *loss, const ricci_scaling *options, int n,
				ricci_tensor *const *wrt, ricci_tensor **grads,
				ricci_tensor **finite);
/* Short forms. */
RICCI_API int ricci_sgd(ricci_tensor *loss, ricci_tensor *rate);
RICCI_API int ricci_momentum(ricci_tensor *loss, ricci_tensor *rate, double momentum);
RICCI_API int ricci_adam(ricci_tensor *loss, ricci_tensor *rate, double beta1, double beta2,
			 double epsilon);
/* y computed with the averages in place of the parameters that have one (before the first update:
 * with the parameters), for evaluation: an output of a session that doesn't train, shared with the
 * one that does. Called after ricci_optimise with `average`, before the first session. One tensor
 * of the graph, or its inert tensor after an error. */
RICCI_API ricci_tensor *ricci_averaged(ricci_tensor *y);

/* The rate as a function of the step. Each is PyTorch's (torch.optim.lr_scheduler), t its count of
 * steps: 0 in the first. */
typedef enum {
	RICCI_CONSTANT, /* rate */
	RICCI_STEPS,	/* rate gamma^floor(t / period); with milestones gamma^(those <= t) */
	RICCI_COSINE,	/* least + (rate - least) (1 + cos(pi t / steps)) / 2; from t = steps on
			  * least (Loshchilov & Hutter 2017, equation 5, without restarts) */
	RICCI_LINEAR,	/* from rate to least within `steps` */
	RICCI_ONE_CYCLE /* rate/25 to rate by a cosine over warmup (usually .3 steps), then to
			  * rate/250000 (Smith & Topin 2019; OneCycleLR's usual values) */
} ricci_schedule_kind;
typedef struct {
	size_t size; /* by RICCI_SCHEDULE */
	ricci_schedule_kind kind;
	double rate;  /* the greatest one, more than 0 */
	double least; /* COSINE, LINEAR: the last one (0) */
	/* Steps: the rate times (t + 1) / warmup while t < warmup, then the schedule from its begin;
	 * ONE_CYCLE: those that rise. */
	int64_t warmup;
	int64_t steps;		   /* COSINE, LINEAR, ONE_CYCLE: in all, warm-up included */
	int64_t period;		   /* STEPS */
	double gamma;		   /* STEPS: usually .1 */
	int nmilestone;		   /* STEPS: steps at which the rate falls, rising */
	const int64_t *milestones; /* counted after the warm-up, as t is */
	int accumulate;		   /* as of ricci_optimiser: t counts updates */
} ricci_schedule_options;
#define RICCI_SCHEDULE(...)                                                                        \
	((ricci_schedule_options){.size = sizeof(ricci_schedule_options), __VA_ARGS__})
/* The rate of the step, f32 [], computed in f64 from the state "schedule.step". One in a graph. It
 * is a few scalar equations, so nothing is compiled anew. The inert tensor after an error. */
RICCI_API ricci_tensor *ricci_schedule(ricci_graph *g, const ricci_schedule_options *options);

#ifdef __cplusplus
}
#endif
#endif
