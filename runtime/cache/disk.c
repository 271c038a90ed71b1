/* disk.c - the function cache on disk.
 *
 * An entry is kept as a text file named by the hash of its key: what the kernel was made for and
 * with, how it is launched, and the name of the object that holds its code (objects are named by
 * their contents, because several kernels are compiled together). The kernel of the largest batch of each family is
 * kept under the family's text, too. The bytes that are loaded are
 * those whose name was checked. Files appear whole (folder_write), so that any number of processes
 * may share the folder; an entry that does not read back exactly is as good as none, and is made
 * again.
 */
#define _GNU_SOURCE
#include "runtime/cache/cache.h"
#include "runtime/host/folder.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#ifndef RICCI_CODE
#define RICCI_CODE "0" /* the Makefile's checksum of the code generator's sources */
#endif

const char *code_version(void)
{
	return RICCI_VERSION " " RICCI_CODE;
}

static const char *compiler_version(const CacheEntry *e)
{
	const Backend *b = e->request.backend ? e->request.backend : backend_find("cc");
	char why[200];

	return b && b->available(why, sizeof why) && b->version ? b->version() : "none";
}

/* "cpu", or what the driver says of a device: two of a kind have the same kernels. */
static void device_print(Text *t, const CacheEntry *e)
{
	const Device *d = e->request.device;

	text_add(t, "device %s ", d ? d->kind->name : "cpu");
	if (d)
		d->kind->describe(d->index, t, NULL);
	text_add(t, "\n");
}

/* The lines that say what an entry is for: its task, or all of its family. What is best, and what is left to
 * try, depends on the threads and the caches of the machine, too. */
static void key_print(Text *t, const CacheEntry *e, const char *task)
{
	const Target *host = target_host();

	text_add(t, "ricci-cache 1 %s %s\n", RICCI_VERSION, RICCI_CODE);
	device_print(t, e);
	text_add(t,
		 "for %s %s\ncompiler %s\ntarget %s caches %zu %zu %zu "
		 "threads %d\ntask %zu\n%s\n",
		 e->request.backend ? e->request.backend->name : "auto",
		 e->request.frozen    ? "static"
		 : e->request.ordered ? "ordered"
				      : "dynamic",
		 compiler_version(e), host->key, host->l1, host->l2, host->l3, e->request.threads,
		 strlen(task), task);
}

static bool entry_file(const Text *key, char name[NAME_ROOM])
{
	uint64_t a;

	if (key->failed || !cache_folder())
		return false;
	a = hash_bytes(key->s, key->n, 0);
	folder_name(a, hash_bytes(key->s, key->n, a), ".entry", name);
	return true;
}

/* kept_parse and upkeep.c read this. */
static void kept_print(Text *t, const CacheEntry *e, int64_t rows)
{
	const Kernel *k = e->best;

	text_add(t, "kernel %s %zu %zu %zu %d %lld %lld %lld", k->backend->name, k->shape.scratch,
		 k->shape.shared, k->shape.block, k->shape.threads, (long long)rows,
		 (long long)k->shape.blocks, (long long)k->shape.parts);
	for (int i = 0; k->shape.later[i]; i++)
		text_add(t, " %lld", (long long)k->shape.later[i]);
	if (k->shape.call.kind) {
		text_add(t, "\ncall ");
		call_print(t, &k->shape.call);
	}
	text_add(t, "\ntime %.9g %d\nobject %s %d %d\nschedule ",
		 1e-9 * (double)atomic_load(&e->quickest), e->offered,
		 *e->origin.object ? e->origin.object : "-", e->origin.index, e->origin.count);
	schedule_print(t, &k->schedule);
	text_add(t, "\n");
}

/* Under this text, of a task or of its family, where it has so many rows (else 0); a kernel that is lent is not the
 * entry's to keep. */
static bool kept_write(CacheEntry *e, const char *task, int64_t rows)
{
	Text t = {0};
	char name[NAME_ROOM];
	bool good;

	key_print(&t, e, task);
	good = entry_file(&t, name);
	pthread_mutex_lock(&e->lock);
	good &= !e->best->fewer;
	kept_print(&t, e, rows);
	pthread_mutex_unlock(&e->lock);
	if (!t.failed)
		text_add(&t, "checksum %016llx\n", (unsigned long long)hash_bytes(t.s, t.n, 0));
	good = good && !t.failed && folder_write(name, t.s, t.n);
	text_free(&t);
	return good;
}

/* The numbers up to the line's end; NULL: not so many. */
static char *phases_parse(char *s, KernelShape *k)
{
	int n = 0;

	k->parts = strtoll(s, &s, 10);
	for (; *s == ' ' && n < KERNEL_PHASES - 1; n++)
		k->later[n] = strtoll(s, &s, 10);
	return *s == '\n' ? s : NULL;
}

/* The line of a library's call, where there is one; NULL: one that can't be made here. */
static char *kept_call(char *s, KernelCall *c)
{
	const char *line = "\ncall ", *end;

	if (strncmp(s, line, strlen(line)))
		return s;
	end = call_parse(s + strlen(line), c);
	return end && c->kind && call_available(c) ? s + (end - s) : NULL;
}

/* The part after the key. */
static bool kept_parse(char *s, Kept *k)
{
	char backend[32], object[sizeof k->origin.object];
	char *line;
	int used = 0;

	if (sscanf(s, "kernel %31s %zu %zu %zu %d %" SCNd64 " %" SCNd64 "%n", backend,
		   &k->shape.scratch, &k->shape.shared, &k->shape.block, &k->shape.threads,
		   &k->rows, &k->shape.blocks, &used) != 7 ||
	    !(s = phases_parse(s + used, &k->shape)) || !(s = kept_call(s, &k->shape.call)) ||
	    sscanf(s, " time %lf %d object %47s %d %d%n", &k->seconds, &k->offered, object,
		   &k->origin.index, &k->origin.count, &used) != 5)
		return false;
	line = strstr(s + used, "\nschedule ");
	if (line != s + used)
		return false;
	line += strlen("\nschedule ");
	line[strcspn(line, "\n")] = 0;
	if (strcmp(object, "-"))
		memcpy(k->origin.object, object, sizeof object);
	k->backend = backend_find(backend);
	return k->backend && kernel_shape_sound(&k->shape) && k->origin.index >= 0 &&
	       k->origin.index <= k->origin.count && k->origin.count <= 4096 &&
	       schedule_parse(line, &k->schedule, NULL) == 0 && schedule_available(&k->schedule);
}

bool entry_undamaged(char *s, size_t n)
{
	size_t tail = strlen("checksum 0123456789abcdef\n");
	char sum[32];

	if (n < tail || strlen(s) != n)
		return false;
	snprintf(sum, sizeof sum, "checksum %016llx\n",
		 (unsigned long long)hash_bytes(s, n - tail, 0));
	if (strcmp(s + n - tail, sum))
		return false;
	s[n - tail] = 0;
	return true;
}

static bool kept_find(const CacheEntry *e, const char *task, Kept *k)
{
	Text key = {0};
	char name[NAME_ROOM], *s = NULL;
	size_t n = 0;
	bool good;

	memset(k, 0, sizeof *k);
	if (!cache_folder())
		return false;
	key_print(&key, e, task);
	good = entry_file(&key, name) && (s = folder_read(name, &n)) && entry_undamaged(s, n) &&
	       n > key.n && !memcmp(s, key.s, key.n) && kept_parse(s + key.n, k);
	mem_free(s);
	text_free(&key);
	return good;
}

bool disk_find(const CacheEntry *e, Kept *k)
{
	return kept_find(e, e->task->text, k);
}

bool disk_lend(const CacheEntry *e, Kept *k)
{
	for (int b = 0; b < e->task->nbatch && e->family[b] && !k->lent; b++) {
		Text family = {0};

		task_family(&family, e->task, b);
		k->lent = !family.failed && kept_find(e, family.s, k) &&
			  k->rows > e->task->batch[b].extent;
		k->batch = b;
		text_free(&family);
	}
	if (!k->lent)
		*k = (Kept){0};
	return k->lent;
}

/* Of batch b's family, unless one of more rows is. */
static void family_store(CacheEntry *e, int b)
{
	int64_t rows = e->task->batch[b].extent;
	Text family = {0};
	Kept k;

	task_family(&family, e->task, b);
	if (!family.failed && (!kept_find(e, family.s, &k) || k.rows <= rows))
		kept_write(e, family.s, rows);
	text_free(&family);
}

bool disk_store(CacheEntry *e)
{
	bool good = folder_writable() && kept_write(e, e->task->text, 0);

	for (int b = 0; b < e->task->nbatch && good && e->family[b]; b++)
		family_store(e, b);
	folder_trim();
	return good;
}

static Kernel *kept_kernel(const CacheEntry *e, const Kept *k)
{
	Kernel *n = mem_zalloc(sizeof *n);

	if (n) {
		n->backend = k->backend;
		n->schedule = k->schedule;
		n->shape = k->shape;
		n->device = e->request.device ? e->request.device->index : 0;
		n->refs = 1;
	}
	if (n && backend_grid(n->backend) && kernel_sizes(n, &e->task->sub, NULL)) {
		kernel_unref(n);
		return NULL;
	}
	return n;
}

static void object_name(const void *bytes, size_t n, char name[NAME_ROOM])
{
	folder_name(hash_bytes(bytes, n, 0), hash_bytes(bytes, n, n), ".o", name);
}

char *object_read(const char *name, size_t *n)
{
	char want[NAME_ROOM], *s = folder_read(name, n);

	if (!s)
		return NULL;
	object_name(s, *n, want);
	if (!strcmp(want, name))
		return s;
	mem_free(s);
	return NULL;
}

/* Gives e the kernel that was kept, or one for e that runs it. */
static void kept_put(CacheEntry *e, const Kept *kept, Kernel *k)
{
	Kernel *own = kept->lent ? entry_fewer(e, k, kept->batch, kept->rows) : kernel_ref(k);

	if (!own)
		return;
	entry_put(e, own, &kept->origin, kept->lent ? 0 : kept->seconds, !kept->lent);
	e->offered = kept->lent ? 0 : kept->offered;
}

/* Is it the function that was kept? What a library computes beside it may be something else. */
static bool kept_is(const Kept *kept, const Origin *o, const Kernel *k)
{
	return !strcmp(kept->origin.object, o->object) && kept->origin.count == o->count &&
	       !memcmp(&kept->shape.call, &k->shape.call, sizeof k->shape.call);
}

/* Loads the object of entries[at] and gives its kernels to all entries that want one of them. */
static void object_load(int n, CacheEntry **entries, const Kept *kept, int at)
{
	const Origin *o = &kept[at].origin;
	Kernel **k = mem_zalloc((size_t)o->count * sizeof *k);
	size_t size = 0;
	char *bytes = object_read(o->object, &size);
	bool good = k && bytes;

	for (int i = at; i < n && good; i++)
		if (!strcmp(kept[i].origin.object, o->object) && kept[i].origin.count == o->count &&
		    !k[kept[i].origin.index])
			good = (k[kept[i].origin.index] = kept_kernel(entries[i], &kept[i])) !=
			       NULL;
	for (int i = 0; i < o->count && good; i++)
		if (!k[i]) /* a function that nobody wants now; the loader fills all */
			good = (k[i] = kept_kernel(entries[at], &kept[at])) != NULL;
	good = good &&
	       kept[at].backend->load(kept[at].backend, o->count, k, bytes, size, NULL) == 0;
	for (int i = at; i < n && good; i++)
		if (!entry_ready(entries[i]) && kept[i].origin.index < o->count &&
		    kept_is(&kept[i], o, k[kept[i].origin.index]))
			kept_put(entries[i], &kept[i], k[kept[i].origin.index]);
	for (int i = 0; k && i < o->count; i++)
		if (k[i])
			kernel_unref(k[i]);
	mem_free(k);
	mem_free(bytes);
}

void disk_load(int n, CacheEntry **entries, const Kept *kept)
{
	for (int i = 0; i < n; i++)
		if (!entry_ready(entries[i]) && kept[i].backend && *kept[i].origin.object &&
		    kept[i].origin.index < kept[i].origin.count && kept[i].backend->load)
			object_load(n, entries, kept, i);
}

bool disk_keep(const Text *object, char name[NAME_ROOM])
{
	object_name(object->s, object->n, name);
	if (folder_write(name, object->s, object->n))
		return true;
	*name = 0;
	return false;
}
