/* fence.c - memory for a tensor between pages that can't be touched.
 *
 * It ends at such a page (as close as its alignment lets it), begins after another, and has a
 * pattern in what is left between. Children forked later share it. A large tensor's memory repeats:
 * only the windows have pages of their own, all others stand for the same few. Reads find the same
 * values again and again; of what is written elsewhere the last remains. So a kernel runs on its
 * real shape, while memory is needed for the windows alone.
 */
#define _GNU_SOURCE
#include "runtime/verify/trial.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0xa7 };
/* Into how many mappings what repeats is cut at most (the system has 65530 for a process). */
enum { MAPPINGS = 8192 };

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Between the guard pages: a page of the pattern at least, then the data. */
static char *fence_begin(const Fence *f)
{
	return f->map + page_size();
}

static void fence_pattern(Fence *f)
{
	memset(fence_begin(f), CANARY, (size_t)(f->data - fence_begin(f)));
	memset(f->data + f->bytes, CANARY, align_up(f->bytes) - f->bytes);
}

static bool fence_reserve(Fence *f, int protect, int flags)
{
	size_t page = page_size();

	f->inner = (align_up(f->bytes) + page - 1) / page * page + page;
	f->mapped = f->inner + 2 * page;
	f->map = pages_map(f->mapped, protect, flags | MAP_NORESERVE);
	if (!f->map)
		return false;
	f->data = f->map + page + f->inner - align_up(f->bytes);
	return true;
}

bool fence_new(Fence *f, size_t bytes, Type type)
{
	*f = (Fence){.bytes = bytes, .type = type};
	if (!fence_reserve(f, PROT_NONE, MAP_SHARED) ||
	    pages_protect(fence_begin(f), f->inner, PROT_READ | PROT_WRITE))
		return false;
	f->memory = fence_begin(f);
	f->own = f->inner;
	fence_pattern(f);
	f->all = (Window){0, (int64_t)(bytes / type_size(type))};
	f->window = &f->all;
	f->nwindow = 1;
	return true;
}

/* ---- memory that repeats ---- */
/* Maps n bytes of the memory from `at` on once more, at a place between the guard pages. */
static bool fence_map(Fence *f, size_t place, size_t at, size_t n)
{
	return mremap(f->memory + at, 0, n, MREMAP_MAYMOVE | MREMAP_FIXED,
		      fence_begin(f) + place) != MAP_FAILED;
}

/* All from place to `end` is what repeats. */
static bool fence_repeat(Fence *f, size_t place, size_t end)
{
	bool good = true;

	for (size_t n; place < end && good; place += n) {
		n = end - place < f->repeated ? end - place : f->repeated;
		good = fence_map(f, place, 0, n);
	}
	return good;
}

/* The pages of elements from..to, in bytes from fence_begin on. */
static Window window_pages(const Fence *f, Window w)
{
	int64_t page = (int64_t)page_size(), size = (int64_t)type_size(f->type);
	int64_t before = (int64_t)f->inner - (int64_t)align_up(f->bytes);

	return (Window){(before + w.from * size) / page * page,
			(before + w.to * size + page - 1) / page * page};
}

/* The elements that lie whole in these pages. */
static Window window_elements(const Fence *f, Window w)
{
	int64_t size = (int64_t)type_size(f->type);
	int64_t before = (int64_t)f->inner - (int64_t)align_up(f->bytes);
	int64_t from = w.from - before, to = w.to - before;

	return (Window){from < 0 ? 0 : from / size,
			to > (int64_t)f->bytes ? (int64_t)f->bytes / size : to / size};
}

static int window_order(const void *a, const void *b)
{
	const Window *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Sorted, and those that meet become one; in pages. */
static int windows_merge(int n, Window *w)
{
	int kept = 0;

	qsort(w, (size_t)n, sizeof *w, window_order);
	for (int i = 0; i < n; i++)
		if (kept && w[i].from <= w[kept - 1].to)
			w[kept - 1].to = w[i].to > w[kept - 1].to ? w[i].to : w[kept - 1].to;
		else
			w[kept++] = w[i];
	return kept;
}

/* Maps the windows and what repeats between them. */
static bool fence_map_all(Fence *f, int n, const Window *w)
{
	size_t place = 0, at = f->repeated;
	bool good = true;

	for (int i = 0; i < n && good; i++) {
		size_t room = (size_t)(w[i].to - w[i].from);

		good = fence_repeat(f, place, (size_t)w[i].from) &&
		       fence_map(f, (size_t)w[i].from, at, room);
		place = (size_t)w[i].to;
		at += room;
	}
	return good && fence_repeat(f, place, f->inner);
}

typedef struct Repeating {
	Fence *f;
	int n;
	const Window *w;
	bool good;
} Repeating;

static void call_map_all(void *arg)
{
	Repeating *r = arg;

	r->good = fence_map_all(r->f, r->n, r->w);
}

bool fence_new_windows(Fence *f, size_t bytes, Type type, size_t repeated, int n, const Window *w)
{
	size_t page = page_size(), pages;
	Window *own = mem_alloc(((size_t)n + 2) * sizeof *own);

	*f = (Fence){.bytes = bytes, .type = type, .window = own, .nwindow = 0};
	if (!own || !fence_reserve(f, PROT_NONE, MAP_PRIVATE))
		return false;
	for (int i = 0; i < n; i++)
		own[i] = window_pages(f, w[i]);
	/* The pattern has pages of its own, and so have the ends. */
	own[n] = (Window){0, 2 * (int64_t)page};
	own[n + 1] = (Window){(int64_t)(f->inner - page), (int64_t)f->inner};
	n = windows_merge(n + 2, own);
	/* An odd number of pages: lines of a tensor seldom lie in the same place of them. */
	pages = f->inner / page / MAPPINGS > repeated / page ? f->inner / page / MAPPINGS
							     : repeated / page;
	f->repeated = (pages | 1) * page;
	f->own = f->repeated;
	for (int i = 0; i < n; i++)
		f->own += (size_t)(own[i].to - own[i].from);
	f->memory = pages_map(f->own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE);
	Repeating r = {f, n, own, false};
	if (f->memory)
		front_call(call_map_all, &r);
	if (!r.good)
		return false;
	fence_pattern(f);
	for (int i = 0; i < n; i++)
		own[i] = window_elements(f, own[i]);
	f->nwindow = n;
	return true;
}

bool fence_like(Fence *f, const Fence *of)
{
	return of->repeated ? fence_new_windows(f, of->bytes, of->type, of->repeated, of->nwindow,
						of->window)
			    : fence_new(f, of->bytes, of->type);
}

void fence_free(Fence *f)
{
	if (f->repeated && f->memory)
		pages_unmap(f->memory, f->own);
	if (f->map)
		pages_unmap(f->map, f->mapped);
	if (f->window != &f->all)
		mem_free(f->window);
	mem_free(f->left);
}

/* ---- what a run leaves there ---- */
bool fence_whole(const Fence *f)
{
	for (const char *s = fence_begin(f); s < f->data; s++)
		if ((unsigned char)*s != CANARY)
			return false;
	for (size_t i = f->bytes; i < align_up(f->bytes); i++)
		if ((unsigned char)f->data[i] != CANARY)
			return false;
	return true;
}

void fence_poison(Fence *f, uint8_t poison)
{
	if (!f->repeated) {
		memset(f->data, poison, f->bytes);
		return;
	}
	memset(f->memory, poison, f->own);
	fence_pattern(f);
}

void fence_fill(Fence *f, double value)
{
	size_t size = type_size(f->type), n = (f->repeated ? f->own : f->bytes) / size, done = 1;
	char *to = f->repeated ? f->memory : f->data;

	if (type_is_float(f->type))
		type_store(f->type, to, 0, value);
	else
		type_store_int(f->type, to, 0, (int64_t)value);
	for (; done < n; done += done)
		memcpy(to + done * size, to, (n - done < done ? n - done : done) * size);
	fence_pattern(f);
}

void fence_seal(Fence *f)
{
	mprotect(fence_begin(f), f->inner, PROT_READ);
}

bool fence_differs(const Fence *f, uint8_t poison, const Fence *g, uint8_t other, int64_t *at)
{
	size_t size = type_size(f->type);

	for (int w = 0; w < f->nwindow; w++) {
		size_t from = (size_t)f->window[w].from, to = (size_t)f->window[w].to;

		if (!memcmp(f->data + from * size, g->data + from * size, (to - from) * size))
			continue;
		for (size_t e = from, k; e < to; e++) {
			const uint8_t *a = (const uint8_t *)f->data + e * size;
			const uint8_t *b = (const uint8_t *)g->data + e * size;

			if (!memcmp(a, b, size))
				continue;
			for (k = 0; k < size && a[k] == poison && b[k] == other; k++)
				;
			*at = (int64_t)e;
			if (k < size)
				return true;
		}
	}
	return false;
}
