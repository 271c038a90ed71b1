/* cublaslt.c - NVIDIA's cuBLASLt, opened at run time: its calls, its version, what it multiplies. It needs no
 * device before a handle is made (jit/device/cublaslt.c). */
#include "jit/library/library.h"

#ifndef RICCI_WITHOUT_CUBLASLT
#include <pthread.h>

CublasLt cublaslt;
static const char *const file[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11",
				   NULL};
static CudaLibrary lt = {.title = "cuBLASLt",
			 .package = "CUDA toolkit",
			 .variable = "RICCI_CUBLASLT",
			 .file = file,
			 .oldest = 11};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void lt_open(void)
{
	static const LibrarySymbol want[] = {
#define CUBLASLT(name, symbol, parameters) {symbol, &cublaslt.name},
#include "jit/library/cublaslt_api.def"
#undef CUBLASLT
	};
	cuda_library_open(&lt, COUNT(want), want, &cublaslt.property);
}

static bool available(char *why, size_t n)
{
	pthread_once(&once, lt_open);
	return library_usable(lt.reason, lt.generation, why, n);
}

static const char *version(void)
{
	return lt.version;
}

/* Sums are of f32, of f64 those of f64; results are rounded once, to the factors' type. */
static bool multiplies(Type factor, Type result)
{
	switch (factor) {
	case RICCI_F64:
	case RICCI_F32:
		return result == factor;
	case RICCI_BF16:
	case RICCI_F16:
		return result == factor || result == RICCI_F32;
	default:
		return false;
	}
}

const Library library_cublaslt = {.name = "cuBLASLt",
				  .part = "cublaslt",
				  .available = available,
				  .version = version,
				  .calls = 1 << CALL_PRODUCT,
				  .multiplies = multiplies,
				  .cuda = &lt};
#else
CublasLt cublaslt;
const Library library_cublaslt = {.name = "cuBLASLt", .part = "cublaslt"};
#endif
