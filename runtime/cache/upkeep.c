/* upkeep.c - listing, verifying and clearing the function cache: entries (disk.c) as files of a
 * folder (folder.c). */
#include "runtime/cache/cache.h"
#include "runtime/host/folder.h"
#include <stdlib.h>
#include <string.h>

static void file_field(const char *s, const char *name, char *out, size_t n)
{
	char start[40];
	const char *at;

	snprintf(start, sizeof start, "\n%s ", name);
	at = strstr(s, start);
	*out = 0;
	if (at)
		snprintf(out, n, "%.*s", (int)strcspn(at + strlen(start), "\n"),
			 at + strlen(start));
}

static bool list_one(void *user, const File *f)
{
	char kernel[200], took[200], schedule[400], what[200], *s;
	size_t n;

	if (!has_suffix(f->name, ".entry") || !(s = folder_read(f->name, &n)))
		return true;
	file_field(s, "kernel", kernel, sizeof kernel);
	file_field(s, "schedule", schedule, sizeof schedule);
	file_field(s, "for", what, sizeof what);
	file_field(s, "time", took, sizeof took);
	fprintf(user, "%.16s  %-5.*s %10.3f us  (%s)  %s\n", f->name, (int)strcspn(kernel, " "),
		kernel, 1e6 * strtod(took, NULL), what, schedule);
	mem_free(s);
	return true;
}

int cache_list(FILE *out, Error *err)
{
	return folder_each(list_one, out, err);
}

static bool object_sound(const char *name)
{
	size_t n;
	char *s = object_read(name, &n);

	mem_free(s);
	return s != NULL;
}

typedef struct Check {
	CacheReport *r;
	bool repair;
} Check;

static bool check_one(void *user, const File *f)
{
	Check *c = user;
	char object[200], *s;
	size_t n = 0;
	bool good = (s = folder_read(f->name, &n)) != NULL;

	c->r->bytes += f->st.st_size;
	if (has_suffix(f->name, ".o"))
		good = good && object_sound(f->name);
	if (has_suffix(f->name, ".entry")) {
		c->r->entries++;
		good = good && entry_undamaged(s, n);
		if (good) {
			file_field(s, "object", object, sizeof object);
			object[strcspn(object, " ")] = 0;
			good = !strcmp(object, "-") || object_sound(object);
		}
	}
	mem_free(s);
	c->r->broken += !good;
	if (!good && c->repair)
		folder_remove(f->name);
	return true;
}

int cache_verify(bool repair, CacheReport *r, Error *err)
{
	Check c = {r, repair};

	memset(r, 0, sizeof *r);
	if (repair)
		folder_sweep();
	return folder_each(check_one, &c, err);
}

static bool clear_one(void *user, const File *f)
{
	CacheReport *r = user;

	r->entries += has_suffix(f->name, ".entry");
	r->bytes += f->st.st_size;
	folder_remove(f->name);
	return true;
}

int cache_clear(CacheReport *r, Error *err)
{
	memset(r, 0, sizeof *r);
	folder_sweep();
	return folder_each(clear_one, r, err);
}
