/* cudnn.c - NVIDIA's cuDNN, opened at run time: its calls, its version, what it convolves. It needs no device before
 * a handle is made (jit/device/cudnn.c). */
#include "jit/library/library.h"

#ifndef RICCI_WITHOUT_CUDNN
#include <pthread.h>

CuDnn cudnn;
static const char *const file[] = {"libcudnn.so.9", NULL};
static CudaLibrary dnn = {
	.title = "cuDNN", .package = "cuDNN", .variable = "RICCI_CUDNN", .file = file, .oldest = 9};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void dnn_open(void)
{
	static const LibrarySymbol want[] = {
#define CUDNN(result, name, symbol, parameters) {symbol, &cudnn.name},
#include "jit/library/cudnn_api.def"
#undef CUDNN
	};
	cuda_library_open(&dnn, COUNT(want), want, &cudnn.property);
}

static bool available(char *why, size_t n)
{
	pthread_once(&once, dnn_open);
	return library_usable(dnn.reason, dnn.generation, why, n);
}

static const char *version(void)
{
	return dnn.version;
}

/* Sums are of f32, of f64 those of f64. It has no engine whose results are wider than the factors. */
static bool multiplies(Type factor, Type result)
{
	return factor == result && (factor == RICCI_F64 || factor == RICCI_F32 ||
				    factor == RICCI_BF16 || factor == RICCI_F16);
}

const Library library_cudnn = {.name = "cuDNN",
			       .part = "cudnn",
			       .available = available,
			       .version = version,
			       .calls = 1 << CALL_FORWARD | 1 << CALL_DATA | 1 << CALL_WEIGHTS,
			       .multiplies = multiplies,
			       .cuda = &dnn};
#else
CuDnn cudnn;
const Library library_cudnn = {.name = "cuDNN", .part = "cudnn"};
#endif
