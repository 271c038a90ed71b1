/* fake_cuda.h - what the stand-ins for NVIDIA's libraries have in common (fake_cuda.c, fake_cublaslt.c,
 * fake_cudnn.c). */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

/* Is the call of that name to fail now? ($FAKE_CUDA_FAIL) */
int fake_fails(const char *call);
/* Counts what is taken from the libraries, and given back. */
void fake_live_add(int n);
/* Is it a part of the device's memory? */
int fake_inside(uint64_t address, size_t n);
/* Runs what a stream is given, on a copy of `data`; or notes it, where a capture is under way. Its status. */
int fake_call(int (*call)(const void *data), const void *data, size_t n);

/* Element i of what is at `at`, of one of CUDA's types (cudaDataType_t); and stored, rounded. */
enum { R_32F, R_64F, R_16F, R_16BF = 14 };
double fake_element(const char *at, int type, int64_t i);
void fake_element_put(char *at, int type, int64_t i, double v);

#endif
