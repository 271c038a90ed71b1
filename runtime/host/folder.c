/* folder.c - the folder of the function cache: where it is, whether it can be trusted, its files,
 * its size.
 *
 * $RICCI_CACHE, else $XDG_CACHE_HOME/ricci, else ~/.cache/ricci; RICCI_CACHE=off keeps nothing.
 * Code is loaded from it, so nobody else may write there: the folder and each file belong to this
 * user or to root, and to nobody else's pen. What does not is refused, never mended. The folder is
 * opened once and checked by its descriptor, and all files are reached from that: whoever may rename
 * the folders around it changes nothing. A folder that can't be written to is read.
 * Only names of our making (ricci-<32 digits>.entry and .o, ricci-device-*, ricci-work-*) are ever
 * touched.
 */
#define _GNU_SOURCE
#include "runtime/host/folder.h"
#include "runtime/host/host.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[3800]; /* "": there is none */
static int folder_fd = -1;
static bool writable;
static char refused[4200]; /* why it is not used, where it is there */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void folder_make(char *path)
{
	for (char *s = path + 1; *s; s++)
		if (*s == '/') {
			*s = 0;
			mkdir(path, 0700);
			*s = '/';
		}
	mkdir(path, 0700);
}

static bool owner_trusted(const struct stat *st)
{
	return st->st_uid == geteuid() || st->st_uid == 0;
}

static bool others_write(const struct stat *st)
{
	return (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

static void folder_open(void)
{
	struct stat st;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (!owner_trusted(&st))
		message_print(refused, sizeof refused, "%s belongs to another user (%ld)", folder,
			      (long)st.st_uid);
	else if (others_write(&st))
		message_print(refused, sizeof refused,
			      "others may write to %s (mode %o): chmod go-w, and clear it", folder,
			      (unsigned)st.st_mode & 07777);
	if (*refused) {
		close(fd);
		return;
	}
	folder_fd = fd;
	writable = faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
	if (writable) {
		work_within(fd);
		work_sweep(fd);
	}
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
	if (m > 0 && (size_t)m < n) {
		folder_make(folder);
		folder_open();
	}
	if (folder_fd < 0)
		*folder = 0;
}

const char *cache_folder(void)
{
	pthread_once(&once, folder_choose);
	return *folder ? folder : NULL;
}

bool folder_writable(void)
{
	return cache_folder() && writable;
}

int cache_check(Error *err)
{
	const char *own = env_text("RICCI_CACHE", NULL);

	if (cache_folder())
		return 0;
	if (*refused)
		return error_set(err, RICCI_EIO, "there is no cache folder: %s", refused);
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

/* ---- files ---- */
int file_trust(int fd, const char *path, Error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_set(err, RICCI_EIO, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, RICCI_EINVAL, "%s is not a regular file", path);
	if (!owner_trusted(&st))
		return error_set(err, RICCI_EINVAL,
				 "%s belongs to another user (%ld), and code is loaded from it: "
				 "make a copy of your own",
				 path, (long)st.st_uid);
	if (others_write(&st))
		return error_set(err, RICCI_EINVAL,
				 "others may write to %s (mode %o), and code is loaded from it: "
				 "chmod go-w",
				 path, (unsigned)st.st_mode & 07777);
	return 0;
}

void folder_name(uint64_t a, uint64_t b, const char *suffix, char name[NAME_ROOM])
{
	snprintf(name, NAME_ROOM, "ricci-%016llx%016llx%s", (unsigned long long)a,
		 (unsigned long long)b, suffix);
}

char *folder_read(const char *name, size_t *n)
{
	/* What is no file (a FIFO, a link) is not waited for, and not followed. */
	static const int how = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = cache_folder() ? openat(folder_fd, name, how) : -1;
	struct stat st;
	Text t = {0};
	bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && owner_trusted(&st) &&
		    !others_write(&st) && file_take(fd, &t, NULL) == 0;

	if (fd >= 0)
		close(fd);
	if (good && !t.s)
		text_put(&t, "", 0);
	if (!good || t.failed)
		text_free(&t);
	*n = t.n;
	return t.s;
}

bool folder_write(const char *name, const char *s, size_t n)
{
	WorkFolder w;
	bool good;

	if (!folder_writable() || work_open(&w, folder_fd, NULL))
		return false;
	good = work_write(&w, "new", s, n, NULL) == 0 &&
	       renameat(w.fd, "new", folder_fd, name) == 0;
	work_close(&w);
	return good;
}

void folder_remove(const char *name)
{
	unlinkat(folder_fd, name, 0);
}

void folder_sweep(void)
{
	if (folder_writable())
		work_sweep(folder_fd);
}

bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && !strcmp(s + n - m, suffix);
}

static bool name_ours(const char *s)
{
	static const char mark[] = "ricci-", device[] = "ricci-device-";
	size_t n = sizeof mark - 1;

	if (!strncmp(s, device, sizeof device - 1))
		return true;
	return !strncmp(s, mark, n) && strspn(s + n, "0123456789abcdef") == 32 &&
	       (!strcmp(s + n + 32, ".entry") || !strcmp(s + n + 32, ".o"));
}

int folder_each(bool (*f)(void *user, const File *file), void *user, Error *err)
{
	const char *at = cache_folder();
	int fd = at ? openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	File file;

	if (!at)
		return cache_check(err);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return error_set(err, RICCI_EIO, "%s: %s", at, strerror(errno));
	}
	while ((e = readdir(d))) {
		file.name = e->d_name;
		if (name_ours(e->d_name) &&
		    fstatat(folder_fd, e->d_name, &file.st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !S_ISDIR(file.st.st_mode) && !f(user, &file))
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

	Age *age = mem_grow(a->age, a->n, &a->room, sizeof *age);

	if (!age)
		return false;
	a->age = age;
	a->age[a->n++] = (Age){file_time(f), f->st.st_size};
	a->bytes += f->st.st_size;
	return true;
}

static bool ages_remove(void *user, const File *f)
{
	Ages *a = user;

	if (file_time(f) <= a->before &&
	    (has_suffix(f->name, ".entry") || has_suffix(f->name, ".o")))
		folder_remove(f->name);
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

	if (atomic_fetch_add(&calls, 1) % 64)
		return;
	folder_sweep();
	if (folder_each(ages_add, &a, NULL) || a.bytes <= bound) {
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
