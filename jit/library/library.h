/* library.h - vendor libraries as steps of schedules: what contract/library.c calls, and whether it
 * is there. */
#ifndef JIT_LIBRARY_H
#define JIT_LIBRARY_H

#include "jit/builtin/builtin.h"
#include "jit/schedule/schedule.h"

/* product[t], a function in `symbols`: c[i*ldc + j] = sum_k a(i,k) b(k,j), added to what is there
 * when `add` is not 0; a(i,k) is a[i*lda + k], or a[k*lda + i] when `turned` has bit 0; b(k,j)
 * likewise with bit 1. Leading dimensions are at least as long as the rows they step over. It runs
 * on the calling thread and starts none: parts are what kernels are split into. */
#define LIBRARY_PRODUCT(name, T)                                                                   \
	void name(int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b,            \
		  int64_t ldb, int64_t turned, T *c, int64_t ldc, int64_t add)

typedef struct Library {
	const char *name, *part; /* part: of ./configure's options */
	/* Opens it the first time; NULL where it is left out, with all that follows. */
	bool (*available)(char *why, size_t n);
	const char *(*version)(void);	   /* of one that is available */
	const char *product[RICCI_NTYPES]; /* by the type of a, b and c; NULL: it has none */
	const JitSymbol *symbols;	   /* ends with NULL; NULL: there are none */
	/* Of a device's library, whose calls are phases of kernels: a bit for each CallKind that it has; of
	 * such factors, with such results? And what opening it found. */
	unsigned calls;
	bool (*multiplies)(Type factor, Type result);
	const struct CudaLibrary *cuda;
} Library;

extern const Library library_openblas, library_onednn, library_cublaslt, library_cudnn;
const Library *library_row(int i); /* the argument of STEP_LIBRARY; NULL: no such library */
bool library_ready(const Library *l, char *why, size_t n);
/* What `available` says: reason is "" where the library was opened, in that generation. */
bool library_usable(const char *reason, unsigned generation, char *why, size_t n);
/* In place of a product of elements of so many bytes; false: it is to be computed. */
bool library_rehearsed(size_t element, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
		       const void *b, int64_t ldb, int64_t turned, void *c, int64_t ldc);

/* What `file` (RICCI_<name>, or as given) defines, for `available`: false and why when it can't be
 * opened or lacks something. */
typedef struct LibrarySymbol {
	const char *name;
	void *at; /* of the pointer */
} LibrarySymbol;
/* Is there more memory than a library needs to prepare itself? Where they find none they crash or
 * hang, so they are prepared when they are opened, and are not used where there is less. */
bool library_room(void);
bool library_open(const char *variable, const char *file, int n, const LibrarySymbol *want,
		  char *why, size_t room);

/* ---- NVIDIA's libraries */
/* The first of these files that can be opened, in $RICCI_CUDA/lib64, /usr/local/cuda/lib64 or on the library
 * path; NULL: none. name: ended by NULL. */
void *cuda_library(const char *const *name);
/* One that kernels' phases are left to: what it is called, what it comes with, where it may lie, the oldest major
 * version whose types, attributes and ways to compute have the numbers that we know. */
typedef struct CudaLibrary {
	const char *title, *package, *variable, *const *file;
	int oldest;
	/* What opening it found: why it can't be used ("": it can), its version. */
	char reason[320], version[64];
	int part[3];	     /* major, minor, patch */
	unsigned generation; /* of forks, when it was opened */
} CudaLibrary;
/* Takes what is wanted out of it; *property, one of these, tells a part of the version. */
void cuda_library_open(CudaLibrary *l, int n, const LibrarySymbol *want,
		       int (*const *property)(int, int *));
int64_t cuda_library_number(const CudaLibrary *l); /* its version, as one number */

/* cublaslt.c, cudnn.c: the calls, where the library is available; 0 is success */
typedef struct CublasLt {
#define CUBLASLT(name, symbol, parameters) int(*name) parameters;
#include "jit/library/cublaslt_api.def"
#undef CUBLASLT
} CublasLt;
extern CublasLt cublaslt;
typedef struct CuDnn {
#define CUDNN(result, name, symbol, parameters) result(*name) parameters;
#include "jit/library/cudnn_api.def"
#undef CUDNN
} CuDnn;
extern CuDnn cudnn;

#endif
