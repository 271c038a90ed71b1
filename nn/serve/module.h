/* module.h - the file of a module: what module_write.c writes and module.c loads.
 *
 *	head | the net's text, a NUL | kernels, at a multiple of PACK_ALIGN | weights, of MODULE_PAGE
 *
 * Integers are of the machine that wrote it. */
#ifndef NN_SERVE_MODULE_H
#define NN_SERVE_MODULE_H

#include "nn/serve/serve.h"

enum { MODULE_FORMAT = 1, MODULE_PAGE = 1 << 16, MODULE_MOST = 1 << 30 };
#define MODULE_MAGIC "ricci module\n"
typedef struct ModuleHead {
	char magic[16];
	uint32_t format,
		order;	  /* order: MODULE_ORDER, unless another machine's bytes are swapped */
	char version[64]; /* code_version */
	uint32_t isa, vector_bytes; /* of the target */
	char isa_names[128];
	uint64_t text, kernels, weights; /* bytes of each; text with its NUL */
	uint64_t kernels_at, weights_at; /* offsets */
	uint64_t body_sum;		 /* of all between head and weights */
	uint64_t weights_sum, head_sum;	 /* head_sum: of the head before it */
} ModuleHead;
enum { MODULE_ORDER = 0x01020304 };

#endif
