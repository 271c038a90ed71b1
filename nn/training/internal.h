/* internal.h - what the files of nn/training/ share: a run, what it measures, its files. */
#ifndef TRAINING_INTERNAL_H
#define TRAINING_INTERNAL_H

#include "nn/nn.h"

/* ---- what feeds batches to a training (feed.c) */
typedef struct Feed {
	int n;
	ricci_fed input[16];
	ricci_loader *loader;
	int64_t batch;
} Feed;
/* Which inputs there are, all with one first extent, the batch. 0 or an error. */
int feed_inputs(Feed *f, const ricci_training *t, Error *err);
/* Does the data set have what the inputs need? */
int feed_check(const Feed *f, const ricci_data *d, Error *err);
/* Opens a loader. shuffle: unless the data set has an order. */
int feed_open(Feed *f, ricci_data *d, bool shuffle, uint64_t seed);
/* Feeds the next batch: how many of its samples count, 0 at the end of an epoch, or an error. */
int feed_next(Feed *f, ricci_session *s);
void feed_close(Feed *f);

/* ---- the progress bar (progress.c) */
typedef struct Progress {
	FILE *out; /* NULL: silent */
	double shown;
	bool drawn;
} Progress;
Progress progress_start(FILE *out); /* silent unless out is a terminal */
typedef struct Bar {
	const char *label, *values; /* "epoch 1/3", "loss 0.1" */
	const char *unit;	    /* of done; NULL: no rate is shown */
	int64_t first, done, total; /* first: where `seconds` begin */
	int64_t all;		    /* left behind `total`, in the whole training; 0: not known */
	double seconds;
} Bar;
/* At most ten times a second, unless done == total. */
void progress_show(Progress *p, const Bar *b);
void progress_clear(Progress *p);

/* ---- what is measured (measure.c) */
typedef struct Measure {
	char name[COLUMN_NAME];
	ricci_tensor *tensor;
	ricci_metric_kind how;
	int64_t each; /* values of a sample; 0: one value of the batch */
	void *values; /* of the tensor, as fetched */
} Measure;
typedef struct Measures {
	int n;
	Measure m[METRICS]; /* the loss and the error first, where there are any */
} Measures;
int measures_make(Measures *s, const ricci_training *t, int64_t batch, Error *err);
void measures_free(Measures *s);
int measure_find(const Measures *s, const char *name); /* -1: none */
/* Adds what the last step of the session gave for the first n samples of a batch; scalars count as
 * `weight` values. */
int measures_add(Measures *s, ricci_session *session, int64_t n, double weight, Sums *sums);
/* NaN where nothing was added. */
double measure_value(const Measure *m, const Sums *sums, int i);

/* ---- columns of records (columns.c) */
typedef enum { DURING_TRAINING, DURING_TEST, DURING_VALIDATION, RATE } Occasion;
typedef struct Column {
	Occasion when;
	int measure; /* -1: the learning rate */
	bool percent;
} Column;
typedef struct Columns {
	int n;
	Column column[COLUMNS];
} Columns;
/* Also names them in the history, which is empty. */
void columns_make(Columns *c, const ricci_training *t, const Measures *m, History *h);
int column_of(const Columns *c, Occasion when, int measure);

/* ---- files that grow (log.c) */
typedef struct Log {
	const char *path;
	int fd;	      /* -1: none */
	int64_t size; /* of what is in the file for sure */
	Text pending; /* not written yet */
	double written;
	bool failing;
} Log;
/* Where a resumed training continues a file: how many bytes of its data to keep, from the step it
 * resumes from back; or -1 with an error. */
typedef int64_t LogCut(const char *data, size_t n, const void *user, uint64_t step, Error *err);
/* Opens the file: what cut keeps of it where `resumed`, else the first n bytes of `head`. */
int log_open(Log *l, const char *path, bool resumed, uint64_t step, LogCut *cut, const void *user,
	     const Text *head, Error *err);
/* Writes what is pending: at most once a second, or now. 0, or an error the first time that it
 * fails; what could not be written stays pending. */
int log_flush(Log *l, bool now, Error *err);
void log_close(Log *l);

typedef struct Entry {	/* a row of the files */
	const char *of; /* "step", "epoch" or "validation" */
	uint64_t epoch, step;
	const double *value; /* of the columns; NaN: none */
	double seconds;	     /* a step's; NaN: none */
} Entry;
int csv_open(Log *l, const char *path, bool resumed, uint64_t step, History *h, Error *err);
void csv_add(Log *l, const History *h, const Entry *e);
int events_open(Log *l, const char *path, bool resumed, uint64_t step, Error *err);
void events_add(Log *l, const History *h, const Entry *e);

/* The curves as SVG, written beside `path` and renamed. */
int picture_draw(const History *h, const Columns *c, const Measures *m, const char *path,
		 Error *err);
/* Where the time of the session's steps went: kernels, then layers. */
int layers_profile(ricci_session *s, FILE *out, Error *err);

/* ---- a run */
typedef struct Run {
	const ricci_training *t;
	ricci_report *report;
	ricci_session *session, *evaluation;
	Feed feed, tests, validation;
	ricci_options options;
	ricci_position at;
	History history;
	Measures measures,
		evaluated; /* in training; in passes: of the averages, where there are any */
	Columns columns;
	int loss, error; /* their measures; -1: none */
	int watched;	 /* column; -1: none */
	bool improved;	 /* the watched value, since the best checkpoint was saved */
	Log csv, events;
	const char *saved; /* the last state in a file; NULL: the first one */
	uint64_t saved_step;
	bool saved_here; /* by this run */
	Progress bar;
	int batch;
	int64_t per_epoch; /* samples */
	uint64_t first;	   /* the step this run began with */
	double seconds;	   /* training, of this epoch in this run */
	int64_t measured;  /* samples in that time */
	Error err;	   /* of this call, or of a file that is tried again later */
} Run;
#define FAIL(r, code, ...) error_set(&(r)->err, code, __VA_ARGS__)
int run_stopped(const Run *r); /* what `stop` holds */
int run_check(Run *r);	       /* (check.c) */
ricci_tensor *run_model(const Run *r);

/* What the session computes, each tensor once: how many. */
int run_outputs(const Run *r, ricci_tensor **outputs);
/* Loads r->saved into s; with `rate`, that keeps its initial value in the first state. */
int run_restore(Run *r, ricci_session *s, ricci_position *at, History *old, Error *err);
/* Adds to the run's error which tensor was not finite first (diverged.c). RICCI_EVALUE. */
int run_diverged(Run *r);

/* Passes (evaluate.c). *done: false where it was stopped. The values of all columns of `when`. */
int run_evaluate(Run *r, Occasion when, double *value, bool *done);
/* The evaluated tensors, before the first session. */
int run_evaluated(Run *r);

/* What a run writes (report.c). */
int run_files_open(Run *r);
void run_log_step(Run *r, double loss, double rate, double seconds);
int run_record(Run *r, const char *of, uint64_t epoch, const double *value);
void run_line(Run *r, const double *value, bool whole);
void run_show(Run *r, int64_t limit);
void run_warn(Run *r, int status);
void run_flush(Run *r, bool now);

/* Checkpoints (keep.c): the last one, the last n, the best one. */
int run_save(Run *r);
int run_keep(Run *r); /* the last one, which is there, among the last n */
int run_save_best(Run *r);
/* Sets watch, improved and the report's best from a record. */
void run_watch(Run *r, const double *value);
bool run_exhausted(const Run *r);

#endif
