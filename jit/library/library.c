/* library.c - the vendor libraries that kernels may call, opened when a schedule first asks for
 * one. Nothing else knows of them: another is a row here and a file of functions. */
#include "jit/library/library.h"
#include <dlfcn.h>
#include <string.h>

static const Library *const libraries[] = {&library_openblas, &library_onednn};

const Library *library_row(int i)
{
	return i >= 0 && i < COUNT(libraries) ? libraries[i] : NULL;
}

bool library_open(const char *variable, const char *file, int n, const LibrarySymbol *want,
		  char *why, size_t room)
{
	file = env_text(variable, file);
	if (!strcmp(file, "off")) {
		snprintf(why, room, "%s is off", variable);
		return false;
	}
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *what = dlerror();
		snprintf(why, room, "%s", what ? what : file);
		return false;
	}
	for (int k = 0; k < n; k++) {
		void *found = dlsym(library, want[k].name);
		memcpy(want[k].at, &found, sizeof found);
		if (!found) {
			snprintf(why, room, "%s has no %s", file, want[k].name);
			return false;
		}
	}
	return true;
}

const char *library_name(int library)
{
	const Library *l = library_row(library);
	return l ? l->name : NULL;
}

bool library_ready(const Library *l, char *why, size_t n)
{
	if (!l->available && n)
		snprintf(why, n, "left out by ./configure --without-%s", l->part);
	return l->available && l->available(why, n);
}

bool library_available(int library, char *why, size_t n)
{
	return library_ready(library_row(library), why, n);
}

const char *library_version(int library)
{
	return library_row(library)->version();
}

const ScheduleStep *library_step(const Schedule *s)
{
	for (int k = 0; k < s->n; k++)
		if (s->step[k].kind == STEP_LIBRARY)
			return &s->step[k];
	return NULL;
}

bool schedule_available(const Schedule *s)
{
	const ScheduleStep *step = library_step(s);
	const Library *l = step ? library_row((int)step->arg) : NULL;
	return !step || (l && library_ready(l, NULL, 0));
}
