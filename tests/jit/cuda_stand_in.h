/* cuda_stand_in.h - opens the stand-in for NVRTC and the driver (fake_cuda.c) of tests/jit, for tests in
 * any folder beside it. */
#ifndef CUDA_STAND_IN_H
#define CUDA_STAND_IN_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The toolkit is looked for in $RICCI_CUDA first. */
static void *cuda_stand_in(void)
{
	char folder[1000], path[1100];
	ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 20);
	folder[n < 0 ? 0 : n] = 0;
	char *end = strrchr(folder, '/');
	if (!end)
		return NULL;
	strcpy(end, "/../jit/cuda");
	setenv("RICCI_CUDA", folder, 1);
	snprintf(path, sizeof path, "%s/lib64/libcuda.so.1", folder);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The call fails from now on, as $FAKE_CUDA_FAIL has it, in threads that run too; "": none. */
static inline void stand_in_fails(void *fake, const char *call)
{
	void (*fail)(const char *) = (void (*)(const char *))dlsym(fake, "fake_cuda_fail");
	if (fail)
		fail(call);
}

#endif
