/* example.h - what the examples share, so that an example is its network: options, data, training,
 * benchmark, gradient check. An example fills in an `example` and calls example_main:
 *
 *	static void network(example *e);
 *	int main(int argc, char **argv)
 *	{
 *		return example_main(argc, argv, &(example){.name = "lstm", .about = "..",
 *			.batch = 64, .epochs = 5, .lr = 0.002, .load = example_digits,
 *			.network = network});
 *	}
 *
 * Only the public headers are used; a program of your own can begin as a copy of this. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <ricci_nn.h>

/* Rank and shape in a call: ricci_input(g, "image", RICCI_F32, DIMS(batch, 28, 28)) */
#define DIMS(...)                                                                                  \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* An option. One without `argument` is a flag. */
typedef struct {
	const char *name, *argument, *help;
	const char *choices; /* the words allowed, with spaces between; NULL: see kind */
	int kind;	     /* of a number: 'n' whole, 'x' any, 'b' bytes; 0: a text */
	double least;	     /* of a number */
	double value;	     /* a number, a choice's place, 1 of a flag; before: the usual one */
	const char *text;    /* as it was given, "" of a flag; NULL: it was not given */
} example_option;

typedef struct example example;
struct example {
	/* Written by the example. */
	const char *name, *about; /* of the program; a line or more for --help */
	const char *data;	  /* what --data takes, for --help */
	int batch, epochs;	  /* the usual values, then the options' */
	double lr;
	int augments;		/* 1: `network` looks at `augment`, and there is --augment */
	int bench_batch;	/* the batch of --bench; 0: the usual one */
	example_option *option; /* its own ones, the last without a name; or NULL */
	/* Fills in training.train and .test: 0, or an error in ricci_error_message(). */
	int (*load)(example *e);
	/* Builds the graph: fills in `output` and training's samples, labels, loss, misclassified,
	 * input, metric; calls example_optimise. Errors stay in the graph. */
	void (*network)(example *e);
	/* Called in place of the training where an option of the example asks for something else
	 * (a text to be written, say), or NULL: 0, or an error; *done: 1 if so. `load` and `act`:
	 * more than 0, the exit status, where the error was told on stderr already. */
	int (*act)(example *e, int *done);
	/* Called after a training that came to its end, or NULL: the exit status. */
	int (*finish)(example *e);
	/* In place of all of these: a program of its own, its exit status; with `common`, names of
	 * the common options that it has, spaces around each. */
	int (*program)(example *e);
	const char *common;

	/* Filled in before `load` and `network` are called. */
	ricci_graph *graph;
	ricci_type type;    /* of floats: F32, or F64 by --precision f64 */
	const char *folder; /* of --data; NULL: data is drawn */
	int augment;	    /* --augment */
	int bench;	    /* --bench: data of training is not loaded */
	int check;	    /* --check-gradients */

	/* Filled in by `network` and `load`. */
	ricci_tensor *output; /* what inference computes */
	const char *net;      /* its name in --bench; NULL: the program's */
	ricci_training training;

	ricci_options options; /* of sessions */
	void *owned[8];	       /* freed at the end: see example_own */
};

/* The whole program: its exit status. 0: done; 1: failed, 2: wrong usage, both said on stderr;
 * 128 + n: stopped by signal n, and saved. */
int example_main(int argc, char **argv, example *e);
/* The option of this name, one of the example's own or a common one. */
const example_option *example_option_of(const example *e, const char *name);
/* Optimises e->training.loss as `how` says, at the rate of --lr and --schedule, with averages by
 * --average, with a scaled loss for --precision f16. In --bench it is plain SGD, as in what it is
 * compared with. */
void example_optimise(example *e, ricci_optimiser how);

/* ---- data (examples/example_data.c): values of `load` */

/* MNIST from the folder, or drawn digits: samples u8 [28,28], labels u8 []. */
int example_digits(example *e);
/* CIFAR-10 from the folder, or drawn digits in colours: samples u8 [3,32,32], labels u8 []. */
int example_images(example *e);
/* Images of 224 x 224 from train-images.npy, train-labels.npy, test-images.npy, test-labels.npy in
 * the folder, or drawn digits in colours: samples u8 [3,224,224], labels []. */
int example_large_images(example *e);
/* The image x [batch,3,side,side] as --augment has it: flipped and cropped by chance. */
ricci_tensor *example_augmented(const example *e, ricci_tensor *x);
/* Memory that is freed at the end of the program. NULL: there is none, which
 * ricci_error_message() does not know. */
void *example_own(example *e, size_t bytes);

/* ---- models of characters (examples/example_text.c). The example has an option "length". */

/* A value of `load`: windows of --length characters of the text --data, plain or .gz, or of sums in
 * words. Fields samples and targets, the characters that follow: i32 [length]. The last tenth is the
 * test set. */
int example_text(example *e);
/* The number of an option; with --bench, unless it was given, `bench` where that is not 0. */
int example_size(const example *e, const char *option, int bench);
/* How many characters the text knows. */
int example_vocabulary(const example *e);
/* The input, as vectors by parameters "embedding": [batch,steps,width]. */
ricci_tensor *example_characters(example *e, int steps, int width);
/* Fills in the output, the loss of y [batch,steps,vocabulary], scores of the next characters, and
 * bits per character. */
void example_predict(example *e, ricci_tensor *y);
/* The same for recurrent nets, [steps,batch,..]. With --bench the input is such vectors itself, of a
 * normal distribution, and the loss the mean squared error of y. */
ricci_tensor *example_sequence(example *e, int steps, int width);
void example_predict_sequence(example *e, ricci_tensor *y);

/* ---- images (examples/example_image.c) */

/* A convolution without bias, padded to keep the size at stride 1, from He's initial values by its
 * outputs, and a batch norm. */
ricci_tensor *example_conv_norm(ricci_tensor *x, const char *conv, const char *norm, int out,
				int kernel, int stride, int groups);

/* ---- what is done in place of a training: 0 or 1, said on stderr or stdout */

/* Numbers for all inputs: floats in -1..1, integers 0..9. 0 or an error. */
int example_fill(const example *e, ricci_session *s);
/* examples/example_bench.c: times steps for so many seconds, after a search of `tune` seconds for
 * faster kernels; `start` of the program is by example_now(), in seconds. */
int example_bench(example *e, double start, double seconds, double tune);
/* Its training steps from `start` on for so many seconds, while kernels are made: lines of CSV in `file`, when a
 * step ended and how long it took. */
int example_curve(example *e, double start, double seconds, const char *file);
double example_now(void);
int example_check(example *e);					   /* examples/example_check.c */
int example_dump(example *e, const char *folder, int64_t batches); /* examples/example_dump.c */

#endif
