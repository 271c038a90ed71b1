/* ricci_nn.h - layers, losses, optimisers, data, checkpoints and the training loop of Ricci, all of
 * them made of what ricci.h offers. Errors, ownership and threads: as there. */
#ifndef RICCI_NN_H
#define RICCI_NN_H

#include <ricci.h>
#include <signal.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers and losses (nn/layers.c, nn/losses/)
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
RICCI_API ricci_tensor *ricci_global_avg_pool2d(ricci_tensor *x);

/* ---- losses and metrics (nn/losses/)
 * Losses are one number, the mean over what counts. */
/* logits [b,...,m], labels [b,...] with 0 <= label < m: the mean of log sum exp(x) - x[label]. */
RICCI_API ricci_tensor *ricci_cross_entropy(ricci_tensor *logits, ricci_tensor *labels);
/* PyTorch's cross_entropy: with a target of 1 - smoothing for the label plus smoothing / m for each
 * class (Szegedy et al. 2016, section 7), class weights, and labels that don't count. The sum is
 * divided by the weights of the labels that count; 0 where none does. */
typedef struct {
	size_t size;		/* by RICCI_CROSS_ENTROPY */
	double smoothing;	/* 0..1 */
	ricci_tensor *weights;	/* [m], of logits' type; NULL: 1 */
	const int32_t *ignored; /* a label that doesn't count; when negative, such as -100, those
				   above it and below 0 don't count either. NULL: all count */
} ricci_cross_entropy_options;
#define RICCI_CROSS_ENTROPY(...)                                                                   \
	((ricci_cross_entropy_options){.size = sizeof(ricci_cross_entropy_options), __VA_ARGS__})
RICCI_API ricci_tensor *ricci_cross_entropy_with(ricci_tensor *logits, ricci_tensor *labels,
						 const ricci_cross_entropy_options *options);
/* poses [b,m,...], labels [b]: sum over m of T max(0, .9-|v|)^2 + .5 (1-T) max(0, |v|-.1)^2, T = 1
 * for the label; |v| is sqrt(sum v^2 + 1e-7) over the rest (Sabour et al., equation 4). */
RICCI_API ricci_tensor *ricci_margin_loss(ricci_tensor *poses, ricci_tensor *labels);
/* scores [b,...,m], labels [b,...]: the mean over the batch of sum over m != label of max(0, margin
 * - x[label] + x[m]) / m (PyTorch's multi_margin_loss with p = 1; Crammer & Singer 2001). */
RICCI_API ricci_tensor *ricci_hinge_loss(ricci_tensor *scores, ricci_tensor *labels, double margin);
/* Of two tensors of one shape: the mean over all elements, d = a - b. */
RICCI_API ricci_tensor *ricci_mean_squared_error(ricci_tensor *a, ricci_tensor *b);
RICCI_API ricci_tensor *ricci_mean_absolute_error(ricci_tensor *a, ricci_tensor *b);
/* d^2/2 where |d| < delta, else delta (|d| - delta/2) (Huber 1964). delta > 0. */
RICCI_API ricci_tensor *ricci_huber_loss(ricci_tensor *a, ricci_tensor *b, double delta);
/* Huber's, divided by beta (Girshick 2015). beta > 0. */
RICCI_API ricci_tensor *ricci_smooth_l1_loss(ricci_tensor *a, ricci_tensor *b, double beta);
/* -(z log s + (1-z) log(1-s)), s = sigmoid(logits), as max(x,0) - x z + log(1 + exp(-|x|)), finite
 * for all finite x. targets: z in 0..1, of logits' shape. The mean over all elements. */
RICCI_API ricci_tensor *ricci_binary_cross_entropy(ricci_tensor *logits, ricci_tensor *targets);
/* log_q, p [b,...,m]: sum over m of p (log p - log_q), 0 where p is; the mean over the rest
 * (PyTorch's kl_div with "batchmean"). */
RICCI_API ricci_tensor *ricci_kl_divergence(ricci_tensor *log_q, ricci_tensor *p);
/* Connectionist temporal classification (Graves et al. 2006, equations 5 to 8, with logarithms):
 * logits [t,b,m] of each step, before the softmax, labels [b,s] without blanks, 0 <= label < m.
 * steps, lengths: I32 [b], how many of t and of s count for each sample, or NULL: all. Elements of
 * `labels` behind the length are any labels. The mean over the batch of loss / max(length, 1), as
 * PyTorch's ctc_loss has it; a sample whose labels can't come of its steps has an infinite loss
 * and no gradient. The loop over t is ricci_scan's. */
RICCI_API ricci_tensor *ricci_ctc_loss(ricci_tensor *logits, ricci_tensor *labels,
				       ricci_tensor *steps, ricci_tensor *lengths, int blank);

/* I32 [b]: 1 where the label's score is not strictly the greatest (ties and NaN are errors), else
 * 0. The score of scores [b,m,...] is the length over the rest; of [b,m] the number itself. */
RICCI_API ricci_tensor *ricci_misclassified(ricci_tensor *scores, ricci_tensor *labels);
/* scores [b,...,m], labels [b,...] -> I32 [b,...]: 1 where the label is not among the k best scores
 * (k others are as great or greater, or NaN), else 0. */
RICCI_API ricci_tensor *ricci_misclassified_top(ricci_tensor *scores, ricci_tensor *labels, int k);
/* scores [b,...,m], labels [b,...] -> I32 [m,m]: how many samples of class i have their greatest
 * score at j (the first of equal ones). Samples with a NaN are in no place. */
RICCI_API ricci_tensor *ricci_confusion(ricci_tensor *scores, ricci_tensor *labels);
/* Of a mean loss in nats, such as ricci_cross_entropy: exp(loss); loss / log 2, which of a model of
 * characters is bits per character. */
RICCI_API ricci_tensor *ricci_perplexity(ricci_tensor *loss);
RICCI_API ricci_tensor *ricci_bits(ricci_tensor *loss);

/* ---- initialisers (nn/initialisers.c)
 * By the products added up for an element of the result (fan_in) or of the gradient (fan_out): of a
 * convolution, channels times window. Normal with deviation 1/sqrt(fan_in) (LeCun et al. 1998),
 * sqrt(2/fan_in) (He et al. 2015, for what a relu follows), sqrt(2/(fan_in+fan_out)) (Glorot &
 * Bengio 2010); _uniform: uniform with that deviation, so in +-sqrt(3) times it. ricci_glorot is
 * the uniform one. */
RICCI_API ricci_init ricci_lecun(int64_t fan_in);
RICCI_API ricci_init ricci_lecun_uniform(int64_t fan_in);
RICCI_API ricci_init ricci_he(int64_t fan_in);
RICCI_API ricci_init ricci_he_uniform(int64_t fan_in);
RICCI_API ricci_init ricci_glorot(int64_t fan_in, int64_t fan_out);
RICCI_API ricci_init ricci_glorot_normal(int64_t fan_in, int64_t fan_out);
/* Uniform in +-1/sqrt(fan_in): what PyTorch's linear and convolution layers start from, weights
 * (kaiming_uniform_ with a = sqrt(5)) and biases. */
RICCI_API ricci_init ricci_uniform_fan_in(int64_t fan_in);

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
	RICCI_ADAGRAD	/* s += g^2; p -= r g / (sqrt(s) + epsilon) */
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

/* Options are 0 for the usual value (PyTorch's), RICCI_NONE for zero; one that the rule doesn't
 * have is an error. In this order a step adds up gradients, clips by value, clips by norm, adds the
 * decay, applies the rule, updates the averages. */
typedef struct {
	size_t size; /* by RICCI_OPTIMISER */
	ricci_rule rule;
	double beta1, beta2; /* usually .9 and .999; RMSprop's beta2 .99 */
	double epsilon;	     /* usually 1e-8; LAMB 1e-6, Adagrad 1e-10 */
	double momentum;     /* of RICCI_MOMENTUM and _NESTEROV usually .9 */
	double decay;	     /* weight decay: AdamW's and LAMB's own (AdamW usually .01); in others
				 g + d p takes g's place (usually none) */
	double clip_norm;    /* gradients times min(1, clip_norm / (norm + 1e-6)), norm being that
				 of all gradients together; 0: none */
	double clip_value;   /* gradients clipped to -clip_value..clip_value; 0: none */
	int accumulate;	     /* n: an update in every n-th step only, with the mean of n gradients;
				 the sums are states ("w.gradient"); 0 or 1: in every step */
	double average; /* a: states "ema.w" = a ema + (1 - a) w after each update, the first of
				 which copies w; 0: none. See ricci_averaged */
	int ngroup;
	const ricci_group *group;
	const char *name; /* of its counters ("adam.step"); NULL: the rule's. Two optimisers of one
			     graph, each with frozen groups, need two names */
} ricci_optimiser;
#define RICCI_OPTIMISER(...) ((ricci_optimiser){.size = sizeof(ricci_optimiser), __VA_ARGS__})
/* options may be NULL: SGD. E.g. AdamW without decay of biases:
 *	ricci_group bias = {.names = "*.bias", .decay = RICCI_NONE};
 *	ricci_optimise(loss, rate, &RICCI_OPTIMISER(.rule = RICCI_ADAMW, .clip_norm = 1,
 *						    .ngroup = 1, .group = &bias)); */
RICCI_API int ricci_optimise(ricci_tensor *loss, ricci_tensor *rate,
			     const ricci_optimiser *options);
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
	double rate;	/* the greatest one, more than 0 */
	double least;	/* COSINE, LINEAR: the last one (0) */
	int64_t warmup; /* steps: the rate times (t + 1) / warmup while t < warmup, then the
			   schedule from its begin; ONE_CYCLE: those that rise */
	int64_t steps;	/* COSINE, LINEAR, ONE_CYCLE: in all, warm-up included */
	int64_t period; /* STEPS */
	double gamma;	/* STEPS: usually .1 */
	int nmilestone; /* STEPS: steps at which the rate falls, rising */
	const int64_t *milestones; /* counted after the warm-up, as t is */
	int accumulate;		   /* as of ricci_optimiser: t counts updates */
} ricci_schedule_options;
#define RICCI_SCHEDULE(...)                                                                        \
	((ricci_schedule_options){.size = sizeof(ricci_schedule_options), __VA_ARGS__})
/* The rate of the step, f32 [], computed in f64 from the state "schedule.step". One in a graph. It
 * is a few scalar equations, so nothing is compiled anew. The inert tensor after an error. */
RICCI_API ricci_tensor *ricci_schedule(ricci_graph *g, const ricci_schedule_options *options);

/* ---- data (nn/data/)
 * A data set is a list of named fields with one number of samples, 1 to 2^32-1; a field has a type
 * and a shape of its own: images u8 [28,28], labels u8 [], masks, targets f32 [4], tokens i32 [64].
 * Either a function below makes a whole data set, or ricci_data_new an empty one, to which
 * ricci_data_* add one field each:
 *	ricci_data *d = ricci_data_new();
 *	ricci_data_npy(d, "samples", "images.npy");
 *	ricci_data_hdf5(d, "masks", "masks.h5", "/train/masks");
 * These return 0 or a negative ricci_error, and the first error stays: loaders and ricci_train
 * refuse the data set with its message, so one check at the end is enough. A damaged file is an
 * error that names it and the byte. A data set may feed several loaders; it must outlive them. */
typedef struct ricci_data ricci_data;
RICCI_API ricci_data *ricci_data_new(void); /* NULL: out of memory */
RICCI_API void ricci_data_free(ricci_data *d);
/* 0, or the first error, whose message becomes ricci_error_message(). */
RICCI_API int ricci_data_error(const ricci_data *d);
/* An array in memory, dense, in C order, the samples its first dimension: shape[0..rank-1]. It is
 * not copied, so it must outlive the data set. */
RICCI_API int ricci_data_array(ricci_data *d, const char *field, ricci_type type, int rank,
			       const int64_t *shape, const void *values);
/* An IDX file (the format of MNIST), plain or gzip-compressed, of any rank, the first dimension the
 * samples; elements u8, i8, i32, f32, f64. Unpacked into memory while training already uses the
 * first samples. */
RICCI_API int ricci_data_idx(ricci_data *d, const char *field, const char *path);
/* A .npy file, version 1 to 3, the first dimension the samples; elements bool, u8, i8, i32, i64, f16,
 * f32, f64, little-endian, in C order. Read sample by sample when needed. */
RICCI_API int ricci_data_npy(ricci_data *d, const char *field, const char *path);
/* An uncompressed file of records of one size, each with a sample somewhere in it; little-endian.
 * The file must end with a whole record. Read sample by sample when needed. */
typedef struct {
	size_t size;	      /* by RICCI_RAW */
	ricci_type type;      /* of an element */
	int rank;	      /* of a sample */
	const int64_t *shape; /* of a sample */
	int64_t offset;	      /* bytes before the first record */
	int64_t record;	      /* bytes of a record; 0: as many as a sample has */
	int64_t within;	      /* where in its record a sample begins */
} ricci_raw;
#define RICCI_RAW(...) ((ricci_raw){.size = sizeof(ricci_raw), __VA_ARGS__})
RICCI_API int ricci_data_raw(ricci_data *d, const char *field, const char *path,
			     const ricci_raw *layout);

/* A dataset of an HDF5 file, of any size, its first dimension the samples; elements bool (as h5py has
 * it), u8, i8, i32, i64, f16, bf16, f32, f64, little-endian. Streamed: a process of its own reads and
 * unpacks blocks of samples shortly before they are used; at most 18 blocks are in memory, of 1 to
 * 8 MB each (or one sample, where that is larger). The file's chunks should be that small, and hold
 * whole samples. */
RICCI_API int ricci_data_hdf5(ricci_data *d, const char *field, const char *path,
			      const char *dataset);

/* Samples and labels from two IDX files, as the fields "samples" and "labels"; labels of rank 1.
 * These three and ricci_digits return NULL on an error. */
RICCI_API ricci_data *ricci_idx(const char *samples, const char *labels);
/* MNIST's files by their usual names, with or without ".gz", in a folder: the test set or the
 * other. samples u8 [28,28], labels u8 []. */
RICCI_API ricci_data *ricci_mnist(const char *folder, int test);
/* CIFAR-10 (Krizhevsky 2009): its binary version, data_batch_1.bin to _5 and test_batch.bin, or
 * IDX files cifar10-train-images-idx4-ubyte, ..labels-idx1-ubyte, cifar10-t1k-.., with or without
 * ".gz". samples u8 [3,32,32] (channel, row, column), labels u8 []. */
RICCI_API ricci_data *ricci_cifar10(const char *folder, int test);
/* `count` drawn digits, turned, scaled, shifted and with noise; the same for the same seed. samples
 * u8 [28,28], labels u8 []. */
RICCI_API ricci_data *ricci_digits(int64_t count, uint64_t seed);

/* A text, plain or gzip-compressed, as windows of `length` tokens: samples i32 [length], and targets
 * i32 [length], the tokens that follow each of them. Tokens are the characters of the file (UTF-8),
 * numbered in the order of their code points from 0, or its bytes. In memory, 1 byte a token (4
 * where the file has more than 256 different characters). NULL on an error. */
typedef struct {
	size_t size;	 /* by RICCI_READING */
	int64_t length;	 /* of a window, 1 or more */
	int64_t stride;	 /* from a window's beginning to the next one's; 0: length */
	int bytes;	 /* 1: tokens are bytes, 0..255 */
	double from, to; /* the part, as fractions of the tokens; both 0: all. Same alphabet */
	/* b > 0: for recurrent nets that keep their state from batch to batch. The text is cut into
	 * b streams; batch k, of b samples in this order, has window k of each. Never shuffled. */
	int streams;
} ricci_reading;
#define RICCI_READING(...) ((ricci_reading){.size = sizeof(ricci_reading), __VA_ARGS__})
RICCI_API ricci_data *ricci_text(const char *path, const ricci_reading *reading);
/* The code point (or byte) of each token, and how many there are; the data set's. NULL, 0 for
 * another data set. */
RICCI_API const uint32_t *ricci_text_alphabet(const ricci_data *d, int *n);
/* A text as tokens of d's alphabet: how many it has, of which at most `room` are stored, or
 * RICCI_EVALUE where a character is not in the alphabet. */
RICCI_API int64_t ricci_text_encode(const ricci_data *d, const char *text, int32_t *tokens,
				    int64_t room);

RICCI_API int64_t ricci_data_count(const ricci_data *d); /* samples */
typedef struct {
	size_t size;	  /* by RICCI_FIELD */
	const char *name; /* the data set's */
	ricci_type type;
	int rank; /* of a sample */
	int64_t shape[RICCI_MAX_RANK];
} ricci_field;
#define RICCI_FIELD(...) ((ricci_field){.size = sizeof(ricci_field), __VA_ARGS__})
/* Describes field i, counted from 0 in the order in which they were added; RICCI_EINVAL behind the
 * last one. */
RICCI_API int ricci_data_field(const ricci_data *d, int i, ricci_field *out);
/* Copies sample i of a field out, as it is stored; bytes: of the room, exactly the sample's. Waits
 * for it when it is still being unpacked. */
RICCI_API int ricci_data_get(ricci_data *d, const char *field, int64_t i, void *out, size_t bytes);

/* Batches made before they are needed, by a thread of its own. With `shuffle` each epoch has an
 * order of its own, which depends on seed and epoch only; a last part smaller than a batch is left
 * out then, and without shuffle filled up with the first samples. Of fields that are streamed from
 * compressed files, blocks of samples are shuffled, and then the samples of eight blocks at a time.
 * A loader is used by one thread at a time. */
typedef struct ricci_loader ricci_loader;
typedef struct {
	const char *field;
	/* Of the batch. Integers become integers that hold their values (RICCI_EVALUE where one
	 * does not) or floats, floats become floats. */
	ricci_type type;
	int unit; /* 1, for U8 as a float: divided by 255, so that it is in 0..1 */
} ricci_loaded;
typedef struct {
	size_t size; /* by RICCI_LOADING */
	int batch;
	int shuffle;
	uint64_t seed;
	int nfield; /* 0: all fields of the data set, as they are stored */
	const ricci_loaded *field;
} ricci_loading;
#define RICCI_LOADING(...) ((ricci_loading){.size = sizeof(ricci_loading), __VA_ARGS__})
RICCI_API ricci_loader *ricci_loader_open(ricci_data *d, const ricci_loading *loading);
RICCI_API void ricci_loader_free(ricci_loader *l);
/* The next batch: a pointer for each field loaded, to [batch, shape of a sample], and how many of
 * its samples count (batch, less in a filled-up one); 0 at the end of an epoch, after which the next
 * epoch begins. The arrays live until the next call. Negative: an error. */
RICCI_API int ricci_loader_batch(ricci_loader *l, const void **fields);
/* Continues with sample `index` (a multiple of the batch) of an epoch, counted from 0; its batches
 * are made from now on, the first asked for or not. */
RICCI_API int ricci_loader_seek(ricci_loader *l, uint64_t epoch, int64_t index);

/* ---- augmentation (nn/data/augment.c)
 * Layers for images [batch, .., row, column] of f32 or f64: each sample is changed by draws of its
 * own in training sessions; others see it as it is. Draws follow from the session's seed, the step,
 * the sample's place in the batch and `key` (0 or more): two layers with equal keys draw the same
 * (an image and its mask, say), so independent ones need different keys. Threads and errors as
 * layers. */
/* Zeros all around, `pad` wide; then a window of rows x columns at a random place, in other sessions
 * the one in the centre. With pad 4 and the image's own size: He et al. 2016, section 4.2. */
RICCI_API ricci_tensor *ricci_random_crop(ricci_tensor *x, int pad, int64_t rows, int64_t columns,
					  int64_t key);
/* By -most..most rows and columns, each equally often; zeros move in. */
RICCI_API ricci_tensor *ricci_random_shift(ricci_tensor *x, int most, int64_t key);
/* Columns reversed, of every second sample on average. */
RICCI_API ricci_tensor *ricci_random_flip(ricci_tensor *x, int64_t key);
/* Zeros in a square of size x size around a random place, cut at the edges (DeVries & Taylor 2017,
 * "Improved regularization of convolutional neural networks with cutout"). */
RICCI_API ricci_tensor *ricci_cutout(ricci_tensor *x, int size, int64_t key);
/* (x - mean[c]) / deviation[c] for channel c of x [batch, channel, ..], in all sessions. */
RICCI_API ricci_tensor *ricci_normalise(ricci_tensor *x, int channels, const double *mean,
					const double *deviation);

/* ---- checkpoints (nn/checkpoint.c)
 * HDF5 files, chunked and checksummed: /parameters/<name>, /state/<name>, and attributes. Written
 * beside the old file, flushed, renamed, so that the old one stays whole whatever happens; it stays
 * as path.prev. Permissions of the old file and links to it are kept. ricci_train saves nothing when
 * a parameter is infinite or no number. */
typedef struct {
	size_t size;	       /* by RICCI_POSITION */
	uint64_t step, seed;   /* of the session: all the random state there is */
	uint64_t epoch, index; /* the position in the data: epochs done, samples of this one done */
	double loss_sum;       /* of the running epoch, over `batches` */
	uint64_t batches, wrong;
} ricci_position;
#define RICCI_POSITION(...) ((ricci_position){.size = sizeof(ricci_position), __VA_ARGS__})
/* Saves parameters and states of s. model: an output whose equations are part of the fingerprint.
 * p: step and seed are taken from s; may be NULL. compress: gzip level 0..9. */
RICCI_API int ricci_save(ricci_session *s, const ricci_tensor *model, const char *path,
			 const ricci_position *p, int compress);
/* Loads into s, after everything was checked: on an error s is as it was. weights: parameters only,
 * by name and shape, into any model that has them; else the model must be the same, and s gets the
 * step. */
RICCI_API int ricci_load(ricci_session *s, const ricci_tensor *model, const char *path, int weights,
			 ricci_position *p);
/* The position alone, without a session. */
RICCI_API int ricci_peek(const char *path, ricci_position *p);

/* ---- the training loop (nn/train.c, nn/feed.c) */
/* An input of the graph, [batch, ...], and the field of the data sets that feeds it: as many
 * elements as a sample has, converted to the input's type as ricci_loaded says; U8 to floats in
 * 0..1. */
typedef struct {
	ricci_tensor *tensor;
	const char *field;
} ricci_fed;
typedef struct {
	size_t size;			 /* by RICCI_TRAINING */
	ricci_tensor *samples, *labels;	 /* inputs fed by the fields of these names, or NULL */
	ricci_tensor *loss;		 /* F32 [] */
	ricci_tensor *misclassified;	 /* I32 [batch], of ricci_misclassified */
	ricci_data *train, *test;	 /* test may be NULL */
	const ricci_options *options;	 /* of its sessions; NULL: the usual ones */
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
	int overwrite; /* 1: `checkpoint` may replace a file that is not `resume` */
	int ninput;    /* inputs beside samples and labels */
	const ricci_fed *input;
	ricci_tensor *output; /* what the net in checkpoints computes; NULL: `misclassified` */
} ricci_training;
#define RICCI_TRAINING(...) ((ricci_training){.size = sizeof(ricci_training), __VA_ARGS__})
typedef struct {
	size_t size;			      /* by RICCI_REPORT */
	uint64_t step, epoch;		      /* done */
	double loss, train_error, test_error; /* of the last epoch; errors as fractions */
	double images_per_second;	      /* training, evaluation apart */
	int stopped;			      /* by `stop`: what that held; or 0 */
} ricci_report;
#define RICCI_REPORT(...) ((ricci_report){.size = sizeof(ricci_report), __VA_ARGS__})
/* Installs a handler of SIGINT, SIGTERM and SIGHUP that sets the flag it returns, for `stop`, to the
 * signal's number; a second signal, of whichever kind, does what it did before. A program that was
 * stopped so ends with status 128 + that number, as shells have it. */
RICCI_API const volatile sig_atomic_t *ricci_interrupted(void);
/* Trains, or evaluates. The line of an epoch is exactly
 *	epoch 1 loss 0.0123 train_error 1.23% test_error 1.10% images/s 1234
 * (without test data the pair test_error is missing; an evaluation prints that pair alone).
 * report may be NULL. 0 or an error with the message. */
RICCI_API int ricci_train(const ricci_training *t, ricci_report *report);

/* ---- serving (nn/serve; docs/serving.md) */
/* Writes the net that computes output[0..n-1] as C99 that needs libm only: `path`, which ends with
 * ".c", and a header beside it, whose comment shows the use. Names begin with the file's ("net.c":
 * net_run, net_size, struct net_in, struct net_out). `training` is 0; parameters and states are
 * those of s. name[k]: of output k in the structs, or name NULL: their own. weights: a file for
 * them, which net_load reads; NULL: they are arrays in the source. A net that draws random numbers
 * where `training` is 0 is RICCI_EUNSUPPORTED. 0 or an error; then the files are as they were. */
RICCI_API int ricci_export(ricci_session *s, int n, ricci_tensor *const *output,
			   const char *const *name, const char *path, const char *weights);
/* The same of a checkpoint, without the program of its net. It computes the `model` of ricci_save,
 * or `output` of ricci_train, as "output". RICCI_EFORMAT where the file holds no equations. */
RICCI_API int ricci_export_checkpoint(const char *checkpoint, const char *path,
				      const char *weights);

#ifdef __cplusplus
}
#endif
#endif
