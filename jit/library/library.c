/* library.c - the vendor libraries that kernels may call, opened when a schedule first asks for
 * one. Nothing else knows of them: another is a row here and a file of functions. */
#include "jit/library/library.h"

static const Library *const libraries[] = {&library_openblas, &library_onednn, &library_cublaslt,
					   &library_cudnn};

const Library *library_row(int i)
{
	return i >= 0 && i < COUNT(libraries) ? libraries[i] : NULL;
}

const char *library_name(int library)
{
	const Library *l = library_row(library);
	return l ? l->name : NULL;
}

bool library_ready(const Library *l, char *why, size_t n)
{
	if (!l->available && n)
		message_print(why, n, "left out by ./configure --without-%s", l->part);
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

bool schedule_library(const Schedule *s)
{
	return schedule_find(s, STEP_LIBRARY) != NULL;
}

bool schedule_available(const Schedule *s)
{
	const ScheduleStep *step = schedule_find(s, STEP_LIBRARY);
	const Library *l = step ? library_row((int)step->arg) : NULL;
	return !step || (l && library_ready(l, NULL, 0));
}
