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

/* Modules: the same net with its compiled kernels and its weights in one file (`path`, any name), for
 * programs that link this library and serve without a compiler. Kernels are the fastest that the
 * function cache knows for so many threads (0: as many as the process may run on), and what is
 * missing is compiled and tried now, which takes a C compiler and some seconds. A module runs where
 * it was made or on processors with the same instructions, with the same build of the library.
 * Otherwise as ricci_export, but for random draws, which a module makes as a session with seed 0. */
RICCI_API int ricci_export_module(ricci_session *s, int n, ricci_tensor *const *output,
				  const char *const *name, int threads, const char *path);
RICCI_API int ricci_export_module_checkpoint(const char *checkpoint, int threads, const char *path);
typedef struct ricci_module ricci_module;
/* Loads one: no compiler is started, and no thread but the workers (threads in all; 0: as above).
 * Code is loaded from the file, so it has to be a regular file (links are followed) of this user or
 * root that nobody else may write to; it may be replaced by another, but not written to while it is
 * in use. NULL on error: RICCI_EFORMAT (no module, cut or damaged: checksums are checked),
 * RICCI_EUNSUPPORTED (another version of the library, or instructions that this processor lacks),
 * RICCI_EINVAL (not trusted), RICCI_EIO, RICCI_ENOMEM. A module is used by one thread at a time;
 * modules are independent, and those of one file share the memory of its weights. */
RICCI_API ricci_module *ricci_module_load(const char *path, int threads);
RICCI_API void ricci_module_free(ricci_module *m);
typedef struct { /* an input or output; fields may be added at the end */
	const char *name;
	ricci_type type;
	int rank;
	const int64_t *shape;
	size_t bytes;
} ricci_port;
/* The k-th, in the order of the net, NULL outside; it lives as long as the module. */
RICCI_API const ricci_port *ricci_module_input(const ricci_module *m, int k);
RICCI_API const ricci_port *ricci_module_output(const ricci_module *m, int k);
/* Copies an input in (dense, C order), checked for the range that gathers need; it stays until it is
 * fed again. bytes: of data; it must be the port's. 0 or an error. */
RICCI_API int ricci_module_feed(ricci_module *m, const char *name, const void *data, size_t bytes);
/* Computes all outputs; every input has to be fed before. 0 or an error. */
RICCI_API int ricci_module_run(ricci_module *m);
/* Copies an output of the last run out. 0 or an error. */
RICCI_API int ricci_module_fetch(ricci_module *m, const char *name, void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
