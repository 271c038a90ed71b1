/* cublaslt.c - NVIDIA's cuBLASLt, opened at run time: its calls, its version, what it multiplies. It needs no
 * device before a handle is made (jit/device/cublaslt.c). */
#include "jit/library/library.h"

#ifndef RICCI_WITHOUT_CUBLASLT
#include <pthread.h>

CublasLt cublaslt;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char reason[256];    /* why there is none; "" when there is */
static unsigned generation; /* of forks, when it was opened */
static int part[3];	    /* of the version: major, minor, patch */
static char version_text[64];

/* The numbers of its types, attributes and ways to compute are those of all versions from this one on. */
enum { OLDEST = 11 };

static void lt_open(void)
{
	static const char *const name[] = {"libcublasLt.so.13", "libcublasLt.so.12",
					   "libcublasLt.so.11", NULL};
	static const LibrarySymbol want[] = {
#define CUBLASLT(name, symbol, parameters) {symbol, &cublaslt.name},
#include "jit/library/cublaslt_api.def"
#undef CUBLASLT
	};
	generation = fork_generation();
	if (!cuda_library_open("RICCI_CUBLASLT", name, COUNT(want), want, reason, sizeof reason))
		return;
	int status = 0;
	for (int k = 0; k < COUNT(part) && !status; k++)
		status = cublaslt.property(k, &part[k]);
	snprintf(version_text, sizeof version_text, "cuBLASLt %d.%d.%d", part[0], part[1], part[2]);
	if (status)
		snprintf(reason, sizeof reason, "cuBLASLt does not tell its version (error %d)",
			 status);
	else if (part[0] < OLDEST)
		snprintf(reason, sizeof reason, "%s is too old: %d.0 or newer is needed",
			 version_text, OLDEST);
}

static bool available(char *why, size_t n)
{
	pthread_once(&once, lt_open);
	return library_usable(reason, generation, why, n);
}

static const char *version(void)
{
	return version_text;
}

static int64_t number(void)
{
	return ((int64_t)part[0] * 1000 + part[1]) * 1000 + part[2];
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
				  .multiplies = multiplies,
				  .number = number};
#else
CublasLt cublaslt;
const Library library_cublaslt = {.name = "cuBLASLt", .part = "cublaslt"};
#endif
