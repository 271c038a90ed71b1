/* backends.c - the table of backends: what makes code of a kernel's text. */
#include "jit/backend/backend.h"
#include <string.h>

const Backend *const backends[] = {&backend_interp,
				   &backend_tcc,
				   &backend_cc,
#ifndef RICCI_WITHOUT_CUDA
				   &backend_nvrtc,
#endif
#ifndef RICCI_WITHOUT_OPENCL
				   &backend_opencl,
#endif
				   NULL};

const Backend *backend_find(const char *name)
{
	for (int i = 0; backends[i]; i++)
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	return NULL;
}
