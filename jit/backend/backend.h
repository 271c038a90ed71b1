/* backend.h - what backends and the things behind them (code memory, objects) share. */
#ifndef JIT_BACKEND_H
#define JIT_BACKEND_H

#include "jit/jit.h"

extern const Backend backend_interp, backend_tcc, backend_cc, backend_nvrtc, backend_opencl;

Kernel *kernel_new(const Backend *b, Error *err); /* one reference, one part, nothing else */
Kernel *kernel_interp(const Task *t,
		      Error *err); /* ready to run: what kernel_lower gives for interp */

/* ---- code memory (code.c): compiled kernels of one compilation, shared by its kernels */
typedef struct Code {
	void *base;
	size_t bytes;
	int refs; /* atomic */
} Code;
/* Readable and writable pages; code_seal makes them executable and no longer writable. */
Code *code_new(size_t bytes, Error *err);
int code_seal(Code *c, size_t executable, Error *err);
void code_release(void *code); /* one reference */

/* ---- loading an object (elf_object.c): a relocatable ELF file, as gcc -c writes it, into memory
 */
/* Symbols not defined in it come from jit_symbol. find[k] receives the address of name[k]. */
Code *elf_load(const void *file, size_t n, int count, const char *const *name, void **find,
	       Error *err);

#endif
