/* internal.h - the parts of a checkpoint: tensors (items.c), what stands beside them (contents.c), both
 * as a file (save.c, load.c), and the net without its program (model.c).
 *
 *	/parameters/<name> /state/<name>   datasets of the tensors' shapes and types (nn/hdf5/)
 *	/net                               u8 [n], the text of the net for inference (net_print)
 *	/alphabet                          i32 [n], the code point of each token, of a net of texts
 *	/history/loss /history/rate        f64 [n,2]: step, mean over steps up to it
 *	/history/records                   f64 [n,k]: the columns that history_columns names
 *	attributes of /: ricci_version fingerprint step seed random_state epoch index loss_sum
 *	                 batches wrong history_loss history_rate history_columns watch
 *	                 metric_sums metric_counts
 *
 * Invariant: HDF5 runs in a child (h5_run), all else in the caller. */
#ifndef CHECKPOINT_INTERNAL_H
#define CHECKPOINT_INTERNAL_H

#include "nn/hdf5/hdf5.h"
#include "nn/nn.h"

/* ---- tensors (items.c) */
/* What a tensor of the session is in the file. */
typedef struct Item {
	const ricci_tensor *t;
	Type type;
	int rank;
	bool trained, there; /* there: in the file */
	hsize_t shape[RICCI_MAX_RANK];
	void *data;
	char *path;
} Item;
typedef struct Items {
	int n;
	Item *item;
	uint64_t fingerprint;
} Items;
/* The parameters and (unless weights) states of the model's graph, with room for their values. */
int items_make(Items *s, const ricci_tensor *model, bool weights, Error *err);
void items_free(Items *s);
/* The first that shows that the training has diverged: a parameter that is not finite, a state that
 * is no number; NULL: none. */
const Item *items_diverged(const Items *s, double *value);

/* ---- what stands beside them (contents.c), in work of h5_run only */
bool put_position(hid_t file, const ricci_position *p, uint64_t fingerprint);
bool put_history(hid_t file, const History *h);
int get_position(hid_t file, const char *path, ricci_position *p, char hex[24], Error *err);
/* Curves and records are no state of the training: what is odd is left out. */
void get_history(hid_t file, History *h);

/* ---- files (load.c) */
/* Opens it, whole and of a right checksum; in work of h5_run only. */
int image_open(const char *path, hid_t *file, Error *err);
typedef struct Loading {
	const char *path;
	Items *items; /* NULL: the position alone */
	LoadPart part;
	ricci_position at;
	History *history; /* or NULL */
} Loading;
/* Fills what v asks for. */
int image_load(Loading *v, Error *err);

#endif
