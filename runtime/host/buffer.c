/* buffer.c - memory for tensors: zeroed, aligned for vectors, padded behind.
 *
 * The header before the data remembers the block. All but small blocks are marked so that a forked child (a
 * kernel being verified) does not inherit them: otherwise every page that training writes meanwhile
 * would be copied. Large ones are mapped, and of large pages where the system has such: packing and transposing walk
 * through more small ones than the processor keeps addresses of.
 */
#define _GNU_SOURCE
#include "runtime/host/host.h"
#include <sys/mman.h>
#include <unistd.h>

enum { PRIVATE = 1 << 17, LARGE = 1 << 20 };

typedef struct Header {
	void *block, *keep; /* keep..keep+kept: the pages that children do not get */
	size_t bytes, kept;
} Header;

static void pages_inside(void *block, size_t n, Header *h)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)block + 2 * page) & ~(page - 1);
	uintptr_t to = ((uintptr_t)block + n) & ~(page - 1);

	h->keep = (void *)from;
	h->kept = n >= PRIVATE && to > from ? to - from : 0;
}

void *buffer_new(size_t bytes)
{
	size_t n = align_up(bytes) + 4 * ALIGNMENT;
	char *block = n > bytes ? (n < LARGE ? mem_zalloc(n) : mem_map(n)) : NULL;
	Header *h;
	char *data;

	if (!block)
		return NULL;
	data = (char *)(((uintptr_t)block + sizeof *h + ALIGNMENT - 1) & ~(ALIGNMENT - 1));
	h = (Header *)(void *)data - 1;
	h->block = block;
	h->bytes = n;
	pages_inside(block, n, h);
	if (h->kept) {
		madvise(h->keep, h->kept, MADV_DONTFORK);
		if (n >= LARGE) /* refused where there are none */
			madvise(h->keep, h->kept, MADV_HUGEPAGE);
	}
	return data;
}

void buffer_free(void *p)
{
	Header *h;

	if (!p)
		return;
	h = (Header *)p - 1;
	if (h->kept) /* the pages may be malloc's, large ones too (mem_map under a sanitizer) */
		madvise(h->keep, h->kept, MADV_DOFORK);
	if (h->bytes >= LARGE)
		mem_unmap(h->block, h->bytes);
	else
		mem_free(h->block);
}
