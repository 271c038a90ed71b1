/* memory.c - the library's only allocator, and arenas over it.
 * Invariant: every block of the library is counted here; mem_fail_at makes the n-th allocation
 * fail, for tests. */
#define _GNU_SOURCE
#include "core/base/base.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_long live_blocks;
static atomic_long fail_countdown; /* 0: off; 1: the next allocation and all after it fail */

void mem_fail_at(long n)
{
	atomic_store(&fail_countdown, n);
}

long mem_live(void)
{
	return atomic_load(&live_blocks);
}

static bool must_fail(void)
{
	long n = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
	if (n == 0)
		return false;
	if (n > 1) {
		atomic_fetch_sub(&fail_countdown, 1);
		return false;
	}
	return true;
}

void *mem_alloc(size_t n)
{
	void *p = must_fail() ? NULL : malloc(n ? n : 1);
	if (p)
		atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
	return p;
}

void *mem_zalloc(size_t n)
{
	void *p = must_fail() ? NULL : calloc(1, n ? n : 1);
	if (p)
		atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
	return p;
}

void *mem_realloc(void *old, size_t n)
{
	if (!old)
		return mem_alloc(n);
	return must_fail() ? NULL : realloc(old, n ? n : 1);
}

void *mem_grow(void *items, int n, int *room, size_t size)
{
	int more = 2 * *room + 8;
	if (n < *room)
		return items;
	items = mem_realloc(items, (size_t)more * size);
	if (items)
		*room = more;
	return items;
}

void mem_free(void *p)
{
	if (!p)
		return;
	atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
	free(p);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MAPS = 0 }; /* the sanitizer watches over what malloc gives */
#else
enum { MAPS = 1 };
#endif

void *mem_map(size_t n)
{
	if (!MAPS)
		return mem_zalloc(n);
	void *p = must_fail() ? NULL : pages_map(n, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	if (!p)
		return NULL;
	atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
	return p;
}

void mem_unmap(void *p, size_t n)
{
	if (!MAPS)
		mem_free(p);
	else if (p && !pages_unmap(p, n))
		atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
}

char *mem_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = mem_alloc(n);
	return p ? memcpy(p, s, n) : NULL;
}

/* ---- arenas ---- */

struct ArenaChunk {
	ArenaChunk *next;
	size_t used, room;
	_Alignas(16) char data[];
};

enum { CHUNK_FIRST = 1 << 12, CHUNK_LARGEST = 1 << 18, CHUNK_MAPPED = 1 << 20 };

static ArenaChunk *chunk_new(Arena *a, size_t n)
{
	size_t room = a->bytes < CHUNK_FIRST ? CHUNK_FIRST : a->bytes;
	if (room > CHUNK_LARGEST)
		room = CHUNK_LARGEST;
	if (room < n)
		room = n;
	size_t all = sizeof(ArenaChunk) + room;
	ArenaChunk *c = room < CHUNK_MAPPED ? mem_zalloc(all) : mem_map(all);
	if (!c)
		return NULL;
	c->room = room;
	c->next = a->head;
	a->head = c;
	a->bytes += room;
	return c;
}

void *arena_alloc(Arena *a, size_t n)
{
	ArenaChunk *c = a->head;
	bool absurd = n > (size_t)PTRDIFF_MAX / 2;
	n = (n + 15) & ~(size_t)15;
	if (!absurd && (!c || c->room - c->used < n))
		c = chunk_new(a, n);
	if (absurd || !c) {
		if (a->oom)
			longjmp(*a->oom, 1);
		return NULL;
	}
	void *p = c->data + c->used;
	c->used += n;
	return p;
}

void *arena_grow(Arena *a, void *items, int n, int *room, size_t size)
{
	int more = 2 * *room + 8;
	if (n < *room)
		return items;
	void *copy = arena_alloc(a, (size_t)more * size);
	if (!copy)
		return NULL;
	if (n)
		memcpy(copy, items, (size_t)n * size);
	*room = more;
	return copy;
}

char *arena_strdup(Arena *a, const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = arena_alloc(a, n);
	return p ? memcpy(p, s, n) : NULL;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

void arena_free(Arena *a)
{
	for (ArenaChunk *c = a->head, *next; c; c = next) {
		next = c->next;
		if (c->room < CHUNK_MAPPED)
			mem_free(c);
		else
			mem_unmap(c, sizeof *c + c->room);
	}
	a->head = NULL;
	a->bytes = 0;
}
