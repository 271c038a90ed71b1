/* pack.c - kernels that come with a net, so that it is served without a compiler.
 *
 * Input: a program; or the bytes that were made of one. Output: bytes: which kernels there are (by
 * the hash of their task's text), how each is launched, and the objects that hold their code; or
 * entries with these kernels. Partition depends on the device model, which is therefore part of them.
 * Invariant: every kernel was verified when the pack was written; every offset is checked when it
 * is read.
 */
#include "runtime/host/folder.h"
#include "runtime/program/program.h"
#include <math.h>
#include <string.h>

enum { PACK_BATCH = 6, PACK_MOST = 1 << 16 };

typedef struct PackHead {
	uint64_t kernels, objects, bytes;		    /* bytes: of all */
	double pd, pc, launch, pd_far, near, pd_core, core; /* of the device model */
	uint64_t threads;
} PackHead;
typedef struct PackKernel {
	uint64_t key[2];
	KernelShape shape;
	uint32_t object, index; /* its object's number, and which of that one's functions it is */
} PackKernel;
typedef struct PackObject {
	uint64_t offset, bytes, functions;
} PackObject;
struct KernelPack {
	DeviceModel device;
	int n;
	PackKernel *entry;
	Kernel **kernel;
};

static void task_key(const Task *t, uint64_t key[2])
{
	size_t n = strlen(t->text);

	key[0] = hash_bytes(t->text, n, 0);
	key[1] = hash_bytes(t->text, n, key[0]);
}

size_t pack_places(const ricci_graph *g, size_t *offset)
{
	size_t at = 0;

	for (int k = 0; k < ricci_param_count(g); k++) {
		if (offset)
			offset[k] = at;
		at += align_up(ricci_bytes(ricci_param_at(g, k, NULL))) + 4 * ALIGNMENT;
	}
	return at;
}

/* ---- writing ---- */
typedef struct Writing {
	int n, nobject;
	CacheEntry **cached; /* each once */
	PackKernel *entry;
	PackObject *object;
	Text code; /* the objects, one behind the other */
	Error *err;
} Writing;

static int writing_entries(Writing *w, const Program *p)
{
	size_t room = (size_t)p->nentry + 1;

	w->cached = mem_alloc(room * sizeof *w->cached);
	w->entry = mem_zalloc(room * sizeof *w->entry);
	w->object = mem_zalloc(room * sizeof *w->object);
	if (!w->cached || !w->entry || !w->object)
		return error_set(w->err, RICCI_ENOMEM, "out of memory for a net's kernels");
	for (int i = 0; i < p->nentry; i++) {
		int k = 0;

		while (k < w->n && w->cached[k] != p->entry[i])
			k++;
		if (k == w->n)
			w->cached[w->n++] = p->entry[i];
	}
	return 0;
}

/* That of the entry's kernel where cc made it, else the first one offered; none that calls a vendor's
 * library, which a serving machine may not have. */
static void entry_schedule(CacheEntry *e, Schedule *s)
{
	Schedule offer[OFFERS];
	Kernel *best = entry_best(e);
	bool good = !strcmp(best->backend->name, "cc") && !schedule_library(&best->schedule);
	int n = good ? 0 : schedule_offers(e->task, target_host(), OFFERS, offer), k = 0;

	*s = best->schedule;
	kernel_unref(best);
	while (k < n && schedule_library(&offer[k]))
		k++;
	if (!good && k < n)
		*s = offer[k];
	else if (!good)
		s->n = 0;
}

static int batch_lower(const Writing *w, int at, int n, Kernel **k)
{
	const Backend *cc = backend_find("cc");
	int code = 0;

	for (int i = 0; i < n && !code; i++) {
		Schedule s;

		entry_schedule(w->cached[at + i], &s);
		k[i] = kernel_lower(w->cached[at + i]->task, &s, cc, target_host(), w->err);
		code = k[i] ? 0 : w->err->code;
	}
	return code;
}

static void object_put(Writing *w, const Text *object, int functions)
{
	static const char zero[PACK_ALIGN];

	w->object[w->nobject++] =
		(PackObject){w->code.n, object->n, (uint64_t)functions}; /* offset: from the code */
	text_put(&w->code, object->s, object->n);
	text_put(&w->code, zero, -object->n % PACK_ALIGN);
}

/* Kernels of entries at..at+n-1 in one object. */
static int batch_write(Writing *w, int at, int n)
{
	const Backend *cc = backend_find("cc");
	Kernel *k[PACK_BATCH] = {0};
	Text object = {0};
	int code = batch_lower(w, at, n, k);

	if (!code)
		code = cc->compile(cc, n, k, &object, w->err);
	for (int i = 0; i < n && !code; i++) {
		const Task *t = w->cached[at + i]->task;
		PackKernel *e = &w->entry[at + i];

		code = verify_within(t, k[i], NULL, true, verify_seconds(t), w->err);
		task_key(t, e->key);
		e->shape = k[i]->shape;
		memset(&e->shape.call, 0, sizeof e->shape.call);
		e->object = (uint32_t)w->nobject;
		e->index = (uint32_t)i;
	}
	if (!code)
		object_put(w, &object, n);
	for (int i = 0; i < n; i++)
		kernel_unref(k[i]);
	text_free(&object);
	return code;
}

static int writing_text(Writing *w, const Program *p, Text *out)
{
	const DeviceModel d = p->device_model;
	size_t entries = (size_t)w->n * sizeof *w->entry;
	size_t objects = (size_t)w->nobject * sizeof *w->object;
	size_t head = sizeof(PackHead) + entries + objects, gap = -head % PACK_ALIGN;
	static const char zero[PACK_ALIGN];
	PackHead h = {(uint64_t)w->n,
		      (uint64_t)w->nobject,
		      head + gap + w->code.n,
		      d.pd,
		      d.pc,
		      d.launch,
		      d.pd_far > 0 ? d.pd_far : d.pd,
		      d.near,
		      d.pd_core,
		      d.core,
		      (uint64_t)d.threads};

	for (int i = 0; i < w->nobject; i++)
		w->object[i].offset += head + gap;
	text_put(out, (const char *)&h, sizeof h);
	text_put(out, (const char *)w->entry, entries);
	text_put(out, (const char *)w->object, objects);
	text_put(out, zero, gap);
	if (w->code.n)
		text_put(out, w->code.s, w->code.n);
	return out->failed || w->code.failed
		       ? error_set(w->err, RICCI_ENOMEM, "out of memory for a net's kernels")
		       : 0;
}

int program_pack(const Program *p, Text *out, Error *err)
{
	char why[256];
	Error own = {0};
	Writing w = {.err = &own};
	int code = 0;

	if (!backend_find("cc")->available(why, sizeof why))
		return error_set(err, RICCI_ECOMPILE,
				 "a module's kernels are made by a C compiler: %s", why);
	code = writing_entries(&w, p);
	for (int at = 0; at < w.n && !code; at += PACK_BATCH)
		code = batch_write(&w, at, w.n - at < PACK_BATCH ? w.n - at : PACK_BATCH);
	if (!code)
		code = writing_text(&w, p, out);
	mem_free(w.cached);
	mem_free(w.entry);
	mem_free(w.object);
	text_free(&w.code);
	return code ? error_set(err, code, "%s", own.text) : 0;
}

/* ---- reading ---- */
static int broken(Error *err)
{
	return error_set(err, RICCI_EFORMAT, "the kernels are damaged");
}

static Kernel *entry_kernel(const PackKernel *e)
{
	Kernel *k = mem_zalloc(sizeof *k);

	if (k)
		*k = (Kernel){.backend = backend_find("cc"), .shape = e->shape, .refs = 1};
	return k;
}

/* Kernels of a processor are code alone. */
static bool pack_entry_sound(const PackKernel *e, const PackObject *object, uint64_t objects)
{
	static const KernelCall none;

	return !e->shape.threads && !memcmp(&e->shape.call, &none, sizeof none) &&
	       e->object < objects && e->index < object[e->object].functions &&
	       kernel_shape_sound(&e->shape);
}

/* The kernels of object `number`: as many entries as it has functions, in their order. */
static int object_load(KernelPack *p, const char *base, const PackObject *o, int number, int *at,
		       Error *err)
{
	const Backend *cc = backend_find("cc");
	int n = (int)o->functions, first = *at;

	for (int i = 0; i < n; i++) {
		const PackKernel *e = &p->entry[first + i];

		if (first + i >= p->n || (int)e->object != number || (int)e->index != i)
			return broken(err);
		if (!(p->kernel[first + i] = entry_kernel(e)))
			return error_set(err, RICCI_ENOMEM, "out of memory for a net's kernels");
	}
	*at += n;
	return cc->load(cc, n, p->kernel + first, base + o->offset, o->bytes, err);
}

static int pack_load(KernelPack *p, const char *base, const PackHead *h, Error *err)
{
	const PackObject *object =
		(const void *)(base + sizeof *h + h->kernels * sizeof(PackKernel));
	size_t table = sizeof *h + h->kernels * sizeof(PackKernel) + h->objects * sizeof *object;
	int code = 0, at = 0;

	if (table > h->bytes)
		return broken(err);
	for (uint64_t i = 0; i < h->kernels; i++)
		if (!pack_entry_sound(&p->entry[i], object, h->objects))
			return broken(err);
	for (uint64_t i = 0; i < h->objects && !code; i++) {
		const PackObject *o = &object[i];

		if (o->offset % PACK_ALIGN || o->offset > h->bytes ||
		    o->bytes > h->bytes - o->offset || !o->functions ||
		    o->functions > (uint64_t)(p->n - at))
			return broken(err);
		code = object_load(p, base, o, (int)i, &at, err);
	}
	return code ? code : at == p->n ? 0 : broken(err);
}

/* Rates and sizes that a device can have, seconds that a launch can take? */
static bool device_sound(const PackHead *h)
{
	const double rate[] = {h->pd, h->pc, h->pd_far, h->pd_core};
	const double size[] = {h->near, h->core};

	for (int k = 0; k < COUNT(rate); k++)
		if (!(rate[k] >= 1e3 && rate[k] <= 1e18))
			return false;
	for (int k = 0; k < COUNT(size); k++)
		if (!(size[k] >= 0 && size[k] <= 1e15 && size[k] == floor(size[k])))
			return false;
	return h->launch > 0 && h->launch <= 1 && h->threads > 0 && h->threads <= 1 << 16;
}

KernelPack *pack_read(const void *bytes, size_t n, Error *err)
{
	const PackHead *h = bytes;
	KernelPack *p;

	if (n < sizeof *h || h->bytes != n || h->kernels > PACK_MOST || h->objects > PACK_MOST ||
	    h->kernels * sizeof(PackKernel) > n - sizeof *h || !device_sound(h)) {
		broken(err);
		return NULL;
	}
	size_t room = (size_t)h->kernels + 1;
	if ((p = mem_zalloc(sizeof *p))) {
		p->entry = mem_zalloc(room * sizeof *p->entry);
		p->kernel = mem_zalloc(room * sizeof *p->kernel);
	}
	if (!p || !p->entry || !p->kernel) {
		pack_free(p);
		error_set(err, RICCI_ENOMEM, "out of memory for a net's kernels");
		return NULL;
	}
	p->device = (DeviceModel){.pd = h->pd,
				  .pc = h->pc,
				  .launch = h->launch,
				  .pd_far = h->pd_far,
				  .near = h->near,
				  .pd_core = h->pd_core,
				  .core = h->core,
				  .threads = (int)h->threads};
	p->n = (int)h->kernels;
	memcpy(p->entry, h + 1, (size_t)p->n * sizeof *p->entry);
	if (pack_load(p, bytes, h, err)) {
		pack_free(p);
		return NULL;
	}
	return p;
}

void pack_free(KernelPack *p)
{
	if (!p)
		return;
	for (int i = 0; p->kernel && i < p->n; i++)
		kernel_unref(p->kernel[i]);
	mem_free(p->entry);
	mem_free(p->kernel);
	mem_free(p);
}

const DeviceModel *pack_device(const KernelPack *p)
{
	return &p->device;
}

int pack_fill(const KernelPack *p, int n, CacheEntry **entries, Error *err)
{
	for (int i = 0; i < n; i++) {
		uint64_t key[2];
		int k = 0;

		if (entry_ready(entries[i]))
			continue;
		task_key(entries[i]->task, key);
		while (k < p->n && memcmp(p->entry[k].key, key, sizeof key) != 0)
			k++;
		if (k == p->n)
			return error_set(err, RICCI_EFORMAT, "there is no kernel for\n%.600s",
					 entries[i]->task->text);
		entry_put(entries[i], kernel_ref(p->kernel[k]), NULL, 0, true);
	}
	return 0;
}
