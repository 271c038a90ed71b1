/* serving.h - nets without the library. <ricci_nn.h> includes it. */
#ifndef RICCI_SERVING_H
#define RICCI_SERVING_H

#include <ricci.h>

#ifdef __cplusplus
extern "C" {
#endif

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
