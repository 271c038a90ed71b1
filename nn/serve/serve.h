/* serve.h - trained nets as C: what the files of nn/serve/ share. A net comes as text (core/graph,
 * net_print), so that what is exported needs no program.
 *
 *	text --net_read--> ReadNet --serve_plan--> ServePlan --serve_source--> C and header */
#ifndef NN_SERVE_H
#define NN_SERVE_H

#include "runtime/runtime.h"

/* Where a tensor lies in the exported program. */
typedef enum {
	SPOT_INPUT,  /* a member of `in` */
	SPOT_WEIGHT, /* an array, or a place in the file of weights */
	SPOT_OUTPUT, /* a member of `out` */
	SPOT_SCRATCH,
	SPOT_POINTER /* a variable of a loop: what it points at changes from step to step */
} SpotKind;
typedef struct Spot {
	Node *node;
	SpotKind kind;
	int number;	 /* INPUT, WEIGHT, OUTPUT: which; POINTER: the variable's number */
	size_t offset;	 /* SCRATCH: absolute when the plan is ready */
	int first, last; /* launches between which it lives */
} Spot;
typedef struct ServeLoop ServeLoop;
typedef struct Launch { /* of a kernel, or of a loop */
	const Subgraph *sub;
	int number;	 /* of the kernel in the plan, or of the loop */
	ServeLoop *loop; /* NULL: a kernel */
	int ninput, nbuf, *spot;
} Launch;
typedef struct Stage { /* the graph, or a loop's body */
	int nlaunch, nspot, nroot;
	Launch *launch;
	Spot *spot;
	int *root;    /* the spot of each */
	size_t bytes; /* of scratch */
} Stage;
struct ServeLoop {
	const Scan *scan;
	Stage body;
	int nstacked; /* the body's first roots are stacked, the others the states' next values */
	int *stacked; /* the buffer of the launch for each of those */
	int pointer;  /* the number of the first variable */
	size_t bytes, offset, *state, *next; /* offsets in scratch; next: SIZE_MAX: not needed */
};
typedef struct ServeTensor { /* an input, a weight, an output */
	const char *name;    /* the user's */
	const char *ident;   /* an identifier of C */
	const ricci_tensor *t;
	size_t offset; /* of a weight in the file */
} ServeTensor;
typedef struct ServePlan {
	Ir *ir; /* the model's */
	const ReadNet *model;
	int ninput, nweight, noutput, nkernel, nloop, npointer, kernel_room;
	ServeTensor *input, *weight, *output;
	Kernel **kernel;
	Stage stage;
	size_t scratch, shared, bytes; /* offsets of the kernels' memory; all of it */
	size_t weight_bytes;
} ServePlan;
/* Makes the plan of a model, in its arena. serve_plan_free in any case. */
int serve_plan(ServePlan *p, ReadNet *m, Error *err);
void serve_plan_free(ServePlan *p);

typedef struct ServeText {
	const char *prefix;  /* of all public names */
	const char *header;  /* the file's name, for #include */
	const char *weights; /* the name of the file beside, or NULL: they are arrays */
	/* The values of weight k. */
	const void *(*data)(void *user, const ricci_tensor *t);
	void *user;
} ServeText;
int serve_source(const ServePlan *p, const ServeText *how, Text *c, Text *h, Error *err);
/* The file of the weights. */
int serve_weights(const ServePlan *p, const ServeText *how, Text *out, Error *err);

/* checksum.c: XXH64 with seed 0. */
uint64_t serve_checksum(const void *data, size_t n);
/* export.c: outputs of a session as a model of its own with the session's values. name: or NULL.
 * checkpoint_model_free frees it; after an error there is nothing to free. */
int serve_model(ricci_session *s, int n, ricci_tensor *const *output, const char *const *name,
		ReadNet *m, void ***data, Error *err);

#endif
