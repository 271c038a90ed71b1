/* code.c - memory that holds machine code.
 *
 * Output: pages that are either writable or executable, never both, freed with the last kernel in
 * them.
 */
#include "jit/backend/backend.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

Code *code_new(size_t bytes, Error *err)
{
	Code *c = mem_zalloc(sizeof *c);
	if (!c) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	c->base = pages_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	if (!c->base) {
		error_set(err, RICCI_ENOMEM, "no memory for %zu bytes of code: %s", bytes,
			  strerror(errno));
		mem_free(c);
		return NULL;
	}
	c->bytes = bytes;
	c->refs = 1;
	return c;
}

int code_seal(Code *c, size_t executable, Error *err)
{
	if (pages_protect(c->base, executable, PROT_READ | PROT_EXEC))
		return error_set(err, RICCI_ECOMPILE,
				 "this system does not let memory become executable: %s",
				 strerror(errno));
	__builtin___clear_cache((char *)c->base, (char *)c->base + executable);
	return 0;
}

void code_release(void *code)
{
	Code *c = code;
	if (c && __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) == 0) {
		pages_unmap(c->base, c->bytes);
		mem_free(c);
	}
}
