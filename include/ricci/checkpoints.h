/* checkpoints.h - files of parameters and states. <ricci_nn.h> includes it. */
#ifndef RICCI_CHECKPOINTS_H
#define RICCI_CHECKPOINTS_H

#include <ricci.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- checkpoints (nn/checkpoint/)
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
/* The code point of each token of the text that ricci_train trained on: how many there are, of which
 * at most `room` are stored; 0: it was no text. Else an error. */
RICCI_API int ricci_saved_alphabet(const char *path, uint32_t *alphabet, int room);

#ifdef __cplusplus
}
#endif
#endif
