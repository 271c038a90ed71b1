/* open.c - what vendor libraries have in common: opening them, whether they may be used, rehearsals. */
#include "jit/library/library.h"
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

static bool symbols_take(void *library, const char *file, int n, const LibrarySymbol *want,
			 char *why, size_t room)
{
	for (int k = 0; k < n; k++) {
		void *found = dlsym(library, want[k].name);
		memcpy(want[k].at, &found, sizeof found);
		if (!found) {
			message_print(why, room, "%s has no %s", file, want[k].name);
			return false;
		}
	}
	return true;
}

bool library_open(const char *variable, const char *file, int n, const LibrarySymbol *want,
		  char *why, size_t room)
{
	file = env_text(variable, file);
	if (!strcmp(file, "off")) {
		message_print(why, room, "%s is off", variable);
		return false;
	}
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *what = dlerror();
		message_print(why, room, "%s", what ? what : file);
		return false;
	}
	return symbols_take(library, file, n, want, why, room);
}

void *cuda_library(const char *const *name)
{
	const char *folder[] = {env_text("RICCI_CUDA", ""), "/usr/local/cuda", ""};
	for (int d = 0; d < COUNT(folder); d++)
		for (int i = 0; name[i] && (d || *folder[d]); i++) {
			char path[1024];
			snprintf(path, sizeof path, "%.900s%s%s", folder[d],
				 *folder[d] ? "/lib64/" : "", name[i]);
			void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
			if (library)
				return library;
		}
	return NULL;
}

static bool cuda_symbols(CudaLibrary *l, int n, const LibrarySymbol *want)
{
	const char *name = l->file[0];
	if (*env_text(l->variable, ""))
		return library_open(l->variable, name, n, want, l->reason, sizeof l->reason);
	void *library = cuda_library(l->file);
	if (library)
		return symbols_take(library, name, n, want, l->reason, sizeof l->reason);
	message_print(
		l->reason, sizeof l->reason,
		"%s is neither in $RICCI_CUDA/lib64, /usr/local/cuda/lib64 nor on the library "
		"path: it comes with NVIDIA's %s",
		name, l->package);
	return false;
}

void cuda_library_open(CudaLibrary *l, int n, const LibrarySymbol *want,
		       int (*const *property)(int, int *))
{
	int status = 0;
	l->generation = fork_generation();
	if (!cuda_symbols(l, n, want))
		return;
	for (int k = 0; k < COUNT(l->part) && !status; k++)
		status = (*property)(k, &l->part[k]);
	snprintf(l->version, sizeof l->version, "%s %d.%d.%d", l->title, l->part[0], l->part[1],
		 l->part[2]);
	if (status)
		snprintf(l->reason, sizeof l->reason, "%s does not tell its version (error %d)",
			 l->title, status);
	else if (l->part[0] < l->oldest)
		snprintf(l->reason, sizeof l->reason, "%s is too old: %d.0 or newer is needed",
			 l->version, l->oldest);
}

int64_t cuda_library_number(const CudaLibrary *l)
{
	return ((int64_t)l->part[0] * 1000 + l->part[1]) * 1000 + l->part[2];
}

bool library_room(void)
{
	static const size_t room = (size_t)1 << 29;
	void *p = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p != MAP_FAILED && munmap(p, room) == 0;
}

bool library_usable(const char *reason, unsigned generation, char *why, size_t n)
{
	if (!*reason && generation != fork_generation())
		reason = "it was opened before this process was forked, and may hold locks";
	if (*reason && n)
		message_print(why, n, "%s", reason);
	return !*reason;
}

/* ---- rehearsals: a product's reads and writes without its values ---- */
static bool rehearsing;

void library_rehearse(void)
{
	rehearsing = true;
}

static void rows_read(const char *at, int64_t rows, size_t stride, size_t bytes)
{
	for (int64_t i = 0; i < rows; i++, at += stride)
		for (size_t k = 0; k < bytes; k++)
			(void)*(const volatile char *)(at + k);
}

bool library_rehearsed(size_t element, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
		       const void *b, int64_t ldb, int64_t turned, void *c, int64_t ldc)
{
	if (!rehearsing)
		return false;
	rows_read(a, turned & 1 ? k : m, (size_t)lda * element,
		  (size_t)(turned & 1 ? m : k) * element);
	rows_read(b, turned & 2 ? n : k, (size_t)ldb * element,
		  (size_t)(turned & 2 ? k : n) * element);
	for (int64_t i = 0; i < m; i++)
		memset((char *)c + (size_t)(i * ldc) * element, 0, (size_t)n * element);
	return true;
}
