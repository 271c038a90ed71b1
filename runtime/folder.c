/* folder.c - the folder of the function cache: where it is, its files, its size.
 *
 * $RICCI_CACHE, else $XDG_CACHE_HOME/ricci, else ~/.cache/ricci; RICCI_CACHE=off keeps nothing.
 * Only the library's own names (*.entry, *.o, device-*, *.tmp) are ever touched.
 */
#define _GNU_SOURCE
#include "runtime/internal.h"
#include "runtime/folder.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[3800];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool folder_make(char *path)
{
	for (char *s = path + 1; *s; s++)
		if (*s == '/') {
			*s = 0;
			mkdir(path, 0777);
			*s = '/';
		}
	mkdir(path, 0777);
	return access(path, R_OK | W_OK | X_OK) == 0;
}

static void folder_choose(void)
{
	const char *own = env_text("RICCI_CACHE", NULL), *xdg = env_text("XDG_CACHE_HOME", NULL);
	const char *home = env_text("HOME", NULL);
	size_t n = sizeof folder;
	int m = 0;

	if (own && !strcmp(own, "off"))
		return;
	if (own)
		m = snprintf(folder, n, "%s", own);
	else if (xdg && *xdg == '/')
		m = snprintf(folder, n, "%s/ricci", xdg);
	else if (home)
		m = snprintf(folder, n, "%s/.cache/ricci", home);
	if (m <= 0 || (size_t)m >= n || !folder_make(folder))
		*folder = 0;
}

const char *cache_folder(void)
{
	pthread_once(&once, folder_choose);
	return *folder ? folder : NULL;
}

int cache_check(Error *err)
{
	const char *own = env_text("RICCI_CACHE", NULL);

	if (cache_folder())
		return 0;
	if (own && !strcmp(own, "off"))
		return error_set(err, RICCI_EIO, "there is no cache folder: RICCI_CACHE is off");
	if (own)
		return error_set(err, RICCI_EIO,
				 "there is no cache folder: RICCI_CACHE names %s, which can't be "
				 "written to",
				 own);
	return error_set(err, RICCI_EIO,
			 "there is no cache folder: set RICCI_CACHE, XDG_CACHE_HOME or HOME to a "
			 "place that can be written");
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
	const unsigned char *s = p;
	uint64_t h = 0xcbf29ce484222325u ^ seed;

	for (size_t i = 0; i < n; i++)
		h = (h ^ s[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

char *folder_read(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	char *s = NULL;

	*n = 0;
	if (!f)
		return NULL;
	if (fstat(fileno(f), &st) == 0 && st.st_size >= 0 &&
	    (s = mem_alloc((size_t)st.st_size + 1))) {
		*n = fread(s, 1, (size_t)st.st_size, f);
		s[*n] = 0;
	}
	fclose(f);
	return s;
}

bool folder_temp(const char *suffix, char *path, size_t n)
{
	static atomic_uint count;

	return cache_folder() &&
	       (size_t)snprintf(path, n, "%s/%ld-%u.%s.tmp", cache_folder(), (long)getpid(),
				atomic_fetch_add(&count, 1), suffix) < n;
}

bool folder_write(const char *path, const char *s, size_t n)
{
	char temp[4200];
	FILE *f;
	bool good;

	if (!folder_temp("entry", temp, sizeof temp) || !(f = fopen(temp, "wb")))
		return false;
	good = fwrite(s, 1, n, f) == n;
	good = fclose(f) == 0 && good && rename(temp, path) == 0;
	if (!good)
		unlink(temp);
	return good;
}

bool object_sound(const char *name)
{
	char path[4200], want[40], *s;
	size_t n;

	snprintf(path, sizeof path, "%s/%s", cache_folder(), name);
	s = folder_read(path, &n);
	if (!s)
		return false;
	snprintf(want, sizeof want, "%016llx%016llx.o", (unsigned long long)hash_bytes(s, n, 0),
		 (unsigned long long)hash_bytes(s, n, n));
	mem_free(s);
	return !strcmp(want, name);
}

bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && !strcmp(s + n - m, suffix);
}

static bool name_ours(const char *s)
{
	return has_suffix(s, ".entry") || has_suffix(s, ".o") || has_suffix(s, ".tmp") ||
	       !strncmp(s, "device-", 7);
}

int folder_each(bool (*f)(void *user, const File *file), void *user, Error *err)
{
	const char *at = cache_folder();
	DIR *d = at ? opendir(at) : NULL;
	struct dirent *e;
	File file;

	if (!at)
		return cache_check(err);
	if (!d)
		return error_set(err, RICCI_EIO, "%s: %s", at, strerror(errno));
	while ((e = readdir(d))) {
		snprintf(file.path, sizeof file.path, "%s/%s", at, e->d_name);
		file.name = e->d_name;
		if (name_ours(e->d_name) && stat(file.path, &file.st) == 0 &&
		    S_ISREG(file.st.st_mode) && !f(user, &file))
			break;
	}
	closedir(d);
	return 0;
}

/* ---- the bound ---- */
typedef struct Age {
	int64_t when; /* nanoseconds */
	off_t bytes;
} Age;
typedef struct Ages {
	int64_t bytes;
	int n, room;
	Age *age;
	int64_t before;
} Ages;

static int64_t file_time(const File *f)
{
	return (int64_t)f->st.st_mtim.tv_sec * 1000000000 + f->st.st_mtim.tv_nsec;
}

static bool ages_add(void *user, const File *f)
{
	Ages *a = user;

	if (a->n == a->room) {
		int room = a->room ? 2 * a->room : 64;
		Age *more = mem_realloc(a->age, (size_t)room * sizeof *more);

		if (!more)
			return false;
		a->age = more;
		a->room = room;
	}
	a->age[a->n++] = (Age){file_time(f), f->st.st_size};
	a->bytes += f->st.st_size;
	return true;
}

static bool ages_remove(void *user, const File *f)
{
	Ages *a = user;

	if (file_time(f) <= a->before && strncmp(f->name, "device-", 7))
		unlink(f->path);
	return true;
}

static int age_order(const void *a, const void *b)
{
	const Age *x = a, *y = b;

	return x->when < y->when ? -1 : x->when > y->when;
}

void folder_trim(void)
{
	static atomic_uint calls;
	int64_t bound = (int64_t)env_long("RICCI_CACHE_MB", 256) << 20, rest;
	Ages a = {0};

	if (atomic_fetch_add(&calls, 1) % 64 || folder_each(ages_add, &a, NULL) ||
	    a.bytes <= bound) {
		mem_free(a.age);
		return;
	}
	qsort(a.age, (size_t)a.n, sizeof *a.age, age_order);
	rest = a.bytes;
	for (int i = 0; i < a.n && rest > bound / 2; i++) {
		rest -= a.age[i].bytes;
		a.before = a.age[i].when;
	}
	folder_each(ages_remove, &a, NULL);
	mem_free(a.age);
}
