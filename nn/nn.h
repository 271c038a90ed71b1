/* nn.h - what the rooms of nn/ share: the history of a training, files, checkpoints, how equations
 * are built. Everything else they offer is public (ricci_nn.h). */
#ifndef NN_H
#define NN_H

#include "core/core.h"

#include <ricci_nn.h>

/* ---- history of a training (training/history.c): what a checkpoint holds of the past */
#define HISTORY_POINTS 512
/* A value of each step, as means over `every` steps: at most HISTORY_POINTS of them. */
typedef struct Curve {
	double point[HISTORY_POINTS][2]; /* the last step, the mean */
	int npoint;
	double every, sum, count; /* of the next point: sum and count so far */
} Curve;
void curve_add(Curve *c, uint64_t step, double value);

enum { METRICS = 16, COLUMNS = 64, COLUMN_NAME = 64 };
/* What a pass or a running epoch adds up for each metric. */
typedef struct Sums {
	double sum[METRICS], count[METRICS];
} Sums;
/* Of the watched value (training/watch.c). */
typedef struct Watch {
	double best, step; /* NaN: none yet; the step in which it was measured */
	double since;	   /* how many values were not better since then */
	double validated;  /* the last step whose validation was due and is done */
} Watch;
typedef struct History {
	Curve loss, rate;
	Curve seconds; /* of a step; in no checkpoint, since times are not reproducible */
	int ncolumn;
	char column[COLUMNS][COLUMN_NAME];
	double *record; /* [nrecord][HISTORY_KEYS + ncolumn]: epoch, step, values; NaN: none */
	int nrecord, room;
	Watch watch;
	Sums sums; /* of the running epoch */
} History;
#define HISTORY_KEYS 2
/* An empty one without columns. */
void history_start(History *h);
int column_named(const History *h, const char *name); /* -1: none */
/* Adds a record of value[0..ncolumn-1]. 0 or RICCI_ENOMEM. */
int history_record(History *h, uint64_t epoch, uint64_t step, const double *value);
/* Takes over what `old`, with other columns, holds; values of columns of equal name. 0 or
 * RICCI_ENOMEM. */
int history_adopt(History *h, const History *old);
void history_free(History *h);

/* ---- files (file.c) */
/* Replaces the file by these bytes, one part after the other: all, or the old one stays (temporary
 * file in the same folder, fsync, rename, fsync of the folder). Its permissions stay, and so do
 * links that lead to it. keep: the old one stays as path.prev. */
typedef struct Bytes {
	const void *data;
	size_t n;
} Bytes;
int file_replace(const char *path, bool keep, const Bytes *part, int n, Error *err);
/* The same, the old one kept, and sealed: behind the data stand 16 bytes, "ricci-crc32 " and the
 * CRC-32 of all before them, little-endian. A program that changes the file by rules of its format
 * cuts them off. */
int file_seal(const char *path, const void *data, size_t n, Error *err);
/* Is there a file with something in it, and not the same as `other` (NULL: none)? */
bool file_there(const char *path, const char *other);
/* 0 when the file can be read and its seal fits, or there is none. */
int file_sealed(const char *path, Error *err);
/* Writes n bytes at this place of an open file: 0 or errno, also where the process's file size is
 * limited. */
int file_write_at(int fd, const void *data, size_t n, int64_t at);
/* The whole file in memory that the caller frees; *data = NULL, 0: there is none. */
int file_read(const char *path, char **data, size_t *n, Error *err);
/* Could file_replace make a file of this name? Tells a mistaken path before the work, not after it.
 */
int file_check(const char *path, Error *err);

/* ---- checkpoints (checkpoint/), with the history */
/* Before a long training: could one be saved there? */
int checkpoint_check(const char *path, Error *err);
/* What stands in a checkpoint beside the session's tensors. */
typedef struct Contents {
	ricci_tensor *output;	  /* what the net in the file computes */
	const ricci_position *at; /* or NULL; step and seed are the session's */
	const History *history;	  /* or NULL */
	const uint32_t *alphabet; /* the code point of each token of a text, or NULL */
	int nalphabet;
	int compress; /* a level of gzip */
} Contents;
/* With `sound` nothing is written where the training has diverged: RICCI_EVALUE. */
int checkpoint_save(ricci_session *s, const ricci_tensor *model, const char *path,
		    const Contents *c, bool sound, Error *err);
/* What is loaded: all of the same model; or of any model parameters alone, or with them those states
 * (running statistics, averages) that the file has. */
typedef enum { LOAD_ALL, LOAD_PARAMETERS, LOAD_VALUES } LoadPart;
int checkpoint_load(ricci_session *s, const ricci_tensor *model, const char *path, LoadPart part,
		    ricci_position *p, History *h, Error *err);

/* The alphabet of a checkpoint in memory that the caller frees; NULL, *n = 0: it has none. */
int checkpoint_alphabet(const char *path, uint32_t **alphabet, int *n, Error *err);

/* The net of a checkpoint, and the values of ricci_param_at(m->g, 0 ..). After an error there is
 * nothing to free. */
int checkpoint_model(const char *path, ReadNet *m, void ***data, Error *err);
void checkpoint_model_free(ReadNet *m, void **data);

/* ---- averages of parameters (optimisers/): the state that counts the updates they hold */
#define AVERAGE_COUNT "ema.step"

/* ---- building equations (layers/build.c) */
/* The graph of the first operand, or NULL when it has an error already or an operand is missing or
 * its rank is not within low..high (then the graph gets an error that names `who` and `layout`). */
typedef struct Operand {
	ricci_tensor *t;
	int low, high;	    /* the ranks it may have */
	const char *layout; /* "x [batch, channel, row, column]" */
} Operand;
bool layer_check(const char *who, int n, const Operand *operands);
/* Copies a user's options over *to, which holds the usual ones; NULL: those stay. false: the
 * graph of x has an error. */
bool layer_options(ricci_tensor *x, void *to, size_t size, const void *options, const char *type);
ricci_tensor *layer_fail(ricci_tensor *x, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
ricci_tensor *layer_nil(ricci_tensor *x); /* the inert tensor of x's graph; NULL for NULL */
/* Adds the text's equations, frees the text. */
ricci_tensor *layer_build(Text *text, int n, ricci_tensor *const *operands);

#endif
