/* training.h - the training loop. <ricci_nn.h> includes it. */
#ifndef RICCI_TRAINING_H
#define RICCI_TRAINING_H

#include <ricci/data.h>
#include <signal.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the training loop (nn/training/) */
/* An input of the graph, [batch, ...], and the field of the data sets that feeds it: as many
 * elements as a sample has, converted to the input's type as ricci_loaded says; U8 to floats in
 * 0..1. */
typedef struct {
	ricci_tensor *tensor;
	const char *field;
} ricci_fed;
/* A number that is measured while training and in passes over test and validation data. tensor: of
 * any type; a scalar [], which says something of a batch, or [batch, ...], which does of each sample
 * (those that fill up a last batch do not count). mean is that over samples (over batches of
 * scalars, in passes weighted by the samples that count).
 *	RICCI_MEAN		mean
 *	RICCI_SUM		the sum over samples, or over batches
 *	RICCI_PERCENT		mean, a fraction, shown as a percentage
 *	RICCI_PERPLEXITY	exp(mean), of a loss in nats
 *	RICCI_BITS_PER_CHARACTER mean / log 2, of a loss in nats */
typedef enum {
	RICCI_MEAN,
	RICCI_SUM,
	RICCI_PERCENT,
	RICCI_PERPLEXITY,
	RICCI_BITS_PER_CHARACTER
} ricci_metric_kind;
typedef struct {
	const char *name; /* letters, digits and _, at most 40; not "loss" or "error" */
	ricci_tensor *tensor;
	ricci_metric_kind how;
} ricci_metric;
typedef struct {
	size_t size;			 /* by RICCI_TRAINING */
	ricci_tensor *samples, *labels;	 /* inputs fed by the fields of these names, or NULL */
	ricci_tensor *loss;		 /* F32 [] */
	ricci_tensor *misclassified;	 /* I32 [batch], of ricci_misclassified; or NULL */
	ricci_data *train, *test;	 /* test may be NULL */
	const ricci_options *options;	 /* of its sessions; NULL: the usual ones */
	int epochs;			 /* in all, those before a resume included; 0: no limit */
	uint64_t steps;			 /* in all; 0: no limit. Both 0: an error */
	double tune;			 /* seconds of ricci_tune before the first step */
	int evaluate;			 /* only a pass over test (with resume: of those weights) */
	const char *resume, *checkpoint; /* files, or NULL; saved after each epoch and at the end */
	const char *picture;		 /* curves (SVG), drawn after each epoch, or NULL */
	ricci_tensor *rate; /* with resume: keeps its initial value, not the file's; or NULL */
	int compress;	    /* gzip level of checkpoints */
	FILE *lines;	    /* one line an epoch; NULL: none */
	FILE *progress;	    /* a bar when it is a terminal, and warnings; NULL: none */
	const volatile sig_atomic_t *stop; /* set by a signal handler: ends after the step, saved */
	int overwrite; /* 1: `checkpoint` may replace a file that is not `resume` */
	int ninput;    /* inputs beside samples and labels */
	const ricci_fed *input;
	int nmetric; /* at most 14 */
	const ricci_metric *metric;
	ricci_tensor *learning_rate; /* F32 []: recorded with each step; or NULL */
	/* Validation: a pass over data that is in neither train nor test, after each epoch, or in
	 * every validate_every-th step. */
	ricci_data *validation;
	uint64_t validate_every;
	/* The value that decides: a column's name, such as "validation_error"; NULL:
	 * "validation_loss". The least one is the best, with watch_greatest the greatest. */
	const char *watch;
	int watch_greatest;
	int patience; /* ends the training after so many values in a row that are not better; 0: no */
	int keep_best; /* 1: the checkpoint of the best value stays as `checkpoint`.best */
	int keep; /* n: the checkpoints of the last n epochs stay as `checkpoint`.step<number> */
	/* Files of all numbers; a training that resumes continues them behind the step it resumes
	 * from, another one needs `overwrite` where they are. */
	const char *csv; /* comma-separated values, or NULL */
	const char
		*events; /* an event file of TensorBoard ("logs/events.out.tfevents.1"), or NULL */
	FILE *profile;	 /* after the training, where a step's time went; or NULL */
	/* What the net in checkpoints computes; NULL: `misclassified`, or the loss. */
	ricci_tensor *output;
	uint64_t checkpoint_every; /* saves after so many steps, too: for long epochs; 0: no */
	int initial; /* 1: no step is done, the initial state is saved as `checkpoint` */
} ricci_training;
#define RICCI_TRAINING(...) ((ricci_training){.size = sizeof(ricci_training), __VA_ARGS__})
typedef struct {
	size_t size;			      /* by RICCI_REPORT */
	uint64_t step, epoch;		      /* done */
	double loss, train_error, test_error; /* of the last epoch; errors as fractions */
	double images_per_second;	      /* training, evaluation apart */
	int stopped;			      /* by `stop`: what that held; or 0 */
	int exhausted;			      /* 1: `patience` ended the training */
	double best;			      /* of the watched value; NaN: there is none */
	uint64_t best_step;		      /* in which it was measured */
} ricci_report;
#define RICCI_REPORT(...) ((ricci_report){.size = sizeof(ricci_report), __VA_ARGS__})
/* Installs a handler of SIGINT, SIGTERM and SIGHUP that sets the flag it returns, for `stop`, to the
 * signal's number; a second signal, of whichever kind, does what it did before. A program that was
 * stopped so ends with status 128 + that number, as shells have it. */
RICCI_API const volatile sig_atomic_t *ricci_interrupted(void);
/* Trains, or evaluates. The line of an epoch is exactly
 *	epoch 1 loss 0.0123 train_error 1.23% test_error 1.10% images/s 1234
 * (what there is no data or no tensor for is missing; an evaluation prints the test values alone;
 * of a text it is characters/s).
 * Between train_error and images/s stand, in this order, train_<metric> .., test_error,
 * test_<metric> .., validation_loss, validation_error, validation_<metric> ..; test_loss where there
 * is no `misclassified`. A validation within an epoch prints a line "step 500 validation_loss ..".
 * These names, and "loss" and "rate", are the columns that `watch` and files know.
 * Passes over test and validation data use the averages of the parameters where the optimiser
 * keeps some (ricci_averaged); a graph with averages can be given to ricci_train once.
 * A loss that is not finite ends the training with RICCI_EVALUE; nothing is saved of it.
 * report may be NULL. 0 or an error with the message. */
RICCI_API int ricci_train(const ricci_training *t, ricci_report *report);

#ifdef __cplusplus
}
#endif
#endif
