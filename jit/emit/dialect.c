/* dialect.c - the dialects in which a loop tree is printed (jit/dialect/), and how C spells types.
 *
 * Invariant: the text of a kernel includes no headers. */
#include "jit/emit/emit.h"

#include <string.h>

const char *const dialect_ctype[RICCI_NTYPES] = {
	[RICCI_F32] = "float",
	[RICCI_F64] = "double",
	[RICCI_BF16] = "unsigned short",
	[RICCI_F16] = "unsigned short",
	[RICCI_I8] = "signed char",
	[RICCI_U8] = "unsigned char",
	[RICCI_I32] = "int",
	[RICCI_I64] = "int64_t",
	[RICCI_BOOL] = "unsigned char",
};

const char *const dialect_compute[RICCI_NTYPES] = {
	[RICCI_F32] = "float", [RICCI_F64] = "double",	[RICCI_BF16] = "float",
	[RICCI_F16] = "float", [RICCI_I8] = "int",	[RICCI_U8] = "int",
	[RICCI_I32] = "int",   [RICCI_I64] = "int64_t", [RICCI_BOOL] = "int",
};

static const Dialect *const dialects[] = {&dialect_tcc, &dialect_cc, &dialect_c99, &dialect_cuda,
					  &dialect_opencl};

const Dialect *dialect_find(const char *backend)
{
	for (int k = 0; k < COUNT(dialects); k++)
		if (strcmp(dialects[k]->backend, backend) == 0)
			return dialects[k];
	return NULL;
}

const Target *backend_target(const Backend *b)
{
	const Dialect *d = b ? dialect_find(b->name) : NULL;
	if (!d || !d->caps.grid)
		return d && !d->caps.vectors ? target_unmasked() : target_host();
	return b->groups && b->groups() ? target_groups() : target_grid(d->caps.fragments);
}

bool backend_grid(const Backend *b)
{
	const Dialect *d = b ? dialect_find(b->name) : NULL;
	return d && d->caps.grid;
}
