/* device.c - what devices of all kinds have: opening, memory, the way of a launch.
 *
 * Invariant: everything that reaches a driver was asked for by the process that opened it. Blocks
 * that are freed stay with the device until a request finds no memory beside them: drivers wait for
 * kernels when they take and give memory.
 */
#include "jit/device/internal.h"

#include <string.h>
#include <time.h>

enum { DEVICES = 32 };

static Device *opened[DEVICES];

/* ---- opening */

/* Who records takes it again for each launch. */
static void lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t how;
	pthread_mutexattr_init(&how);
	pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(lock, &how);
	pthread_mutexattr_destroy(&how);
}

static Device *device_new(const DeviceKind *kind, int index, Error *err)
{
	Device *d = mem_zalloc(sizeof *d);
	if (!d) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	d->kind = kind;
	d->index = index;
	d->generation = fork_generation();
	snprintf(d->name, sizeof d->name, "%s:%d", kind->name, index);
	lock_init(&d->lock);
	if (kind->open(d, err)) {
		pthread_mutex_destroy(&d->lock);
		mem_free(d);
		return NULL;
	}
	return d;
}

/* Error where the process was forked since it was opened. */
static int device_check(const Device *d, Error *err)
{
	if (!d->kind->launch || d->generation == fork_generation())
		return 0;
	return error_set(err, RICCI_EUNSUPPORTED,
			 "%s was opened before this process was forked: no driver survives that",
			 d->name);
}

Device *device_open(const DeviceKind *kind, int index, Error *err)
{
	Device *d = NULL;
	int k = 0;
	lock_take(LOCK_DEVICES);
	for (; k < DEVICES && opened[k] && !d; k++)
		if (opened[k]->kind == kind && opened[k]->index == index)
			d = opened[k];
	if (!d && k == DEVICES)
		error_set(err, RICCI_EUNSUPPORTED, "%d devices are in use already", DEVICES);
	else if (!d)
		d = opened[k] = device_new(kind, index, err);
	lock_leave(LOCK_DEVICES);
	return d && device_check(d, err) ? NULL : d;
}

int device_enter(Device *d, Error *err)
{
	int code = device_check(d, err);
	if (!code && d->kind->launch) {
		atomic_fetch_add(&d->waiting, 1);
		pthread_mutex_lock(&d->lock);
		atomic_fetch_sub(&d->waiting, 1);
	}
	return code;
}

int device_leave(Device *d, int code)
{
	if (d->kind->launch)
		pthread_mutex_unlock(&d->lock);
	return code;
}

/* ---- memory */

/* The smallest kept block of `bytes` or a little more. */
static Block **block_fit(Device *d, size_t bytes)
{
	Block **best = NULL;
	for (Block **b = &d->kept; *b; b = &(*b)->next)
		if ((*b)->bytes >= bytes && (*b)->bytes - bytes <= bytes / 4 + 256 &&
		    (!best || (*b)->bytes < (*best)->bytes))
			best = b;
	return best;
}

static void kept_release(Device *d)
{
	for (Block *b; (b = d->kept); mem_free(b)) {
		d->kept = b->next;
		d->kind->free(d, b->memory);
	}
}

static Block *block_new(Device *d, size_t bytes, Error *err)
{
	Block **fit = block_fit(d, bytes), *b = fit ? *fit : NULL;
	if (b) {
		*fit = b->next;
		return b;
	}
	if (!(b = mem_zalloc(sizeof *b)))
		return NULL;
	b->bytes = bytes;
	int code = d->kind->alloc(d, bytes, &b->memory, err);
	if (code == RICCI_ENOMEM && d->kept) {
		kept_release(d);
		code = d->kind->alloc(d, bytes, &b->memory, err);
	}
	if (code)
		mem_free(b);
	return code ? NULL : b;
}

static void memory_refuse(Device *d, size_t bytes, const char *what, Error *err)
{
	static const char *const use[MEMORY_USES] = {
		[MEMORY_STATES] = "for parameters, states and inputs",
		[MEMORY_STEP] = "for tensors of steps",
		[MEMORY_OUTPUTS] = "for outputs",
		[MEMORY_KERNELS] = "of kernels' own",
	};
	Text t = {0};
	size_t left, all;
	text_add(&t, "%s has no %zu bytes left for %s", d->name, bytes, what);
	if (d->kind->room && d->kind->room(d, &left, &all))
		text_add(&t, " (%zu of %zu are free)", left, all);
	text_add(&t, "; this process holds there");
	for (int i = 0; i < MEMORY_USES; i++)
		text_add(&t, "%s %zu bytes %s", i ? "," : "", d->held[i], use[i]);
	error_set(err, RICCI_ENOMEM, "%s",
		  t.failed || !t.s ? "out of memory" : t.s); /* the host's, too */
	text_free(&t);
}

/* The lock is held. */
static Block *block_take(Device *d, size_t bytes, MemoryUse use, const char *what, Error *err)
{
	Error why = {0};
	Block *b = block_new(d, bytes ? bytes : 1, &why);
	if (b) {
		b->use = use;
		d->held[use] += b->bytes;
		b->next = d->used;
		d->used = b;
	} else if (why.code) {
		error_set(err, why.code, "%s", why.text);
	} else {
		memory_refuse(d, bytes, what, err);
	}
	return b;
}

void *device_alloc(Device *d, size_t bytes, MemoryUse use, const char *what, Error *err)
{
	void *memory = NULL;
	if (!d->kind->pooled) {
		if (d->kind->alloc(d, bytes, &memory, err))
			error_set(err, RICCI_ENOMEM, "out of memory for %s", what);
		return memory;
	}
	if (device_enter(d, err))
		return NULL;
	Block *b = block_take(d, bytes, use, what, err);
	device_leave(d, 0);
	return b ? b->memory : NULL;
}

/* The lock is held. */
static void memory_free(Device *d, void *memory)
{
	Block **at = &d->used, *b;
	while (*at && (*at)->memory != memory)
		at = &(*at)->next;
	if (!(b = *at))
		return;
	*at = b->next;
	d->held[b->use] -= b->bytes;
	b->next = d->kept;
	d->kept = b;
}

bool device_spare(Device *d, size_t bytes)
{
	size_t left, all, kept = 0;
	if (!d->kind->room || device_enter(d, NULL))
		return false;
	bool known = d->kind->room(d, &left, &all);
	for (const Block *b = d->kept; b; b = b->next)
		kept += b->bytes;
	device_leave(d, 0);
	return known && bytes <= (left + kept) / 2;
}

void device_free(Device *d, void *memory)
{
	if (memory && !d->kind->pooled) {
		d->kind->free(d, memory);
	} else if (memory && !device_enter(d, NULL)) {
		memory_free(d, memory);
		device_leave(d, 0);
	}
}

void device_trim(Device *d)
{
	if (device_enter(d, NULL))
		return;
	if (d->shared)
		memory_free(d, d->shared);
	d->shared = NULL;
	d->shared_bytes = 0;
	if (d->step)
		memory_free(d, d->step);
	d->step = NULL;
	d->step_known = false;
	kept_release(d);
	device_leave(d, 0);
}

/* A thread that takes a lock again at once leaves none of it to those who wait. */
static void others_first(Device *d)
{
	const struct timespec nap = {0, 20000};
	while (atomic_load(&d->waiting) > 0)
		nanosleep(&nap, NULL);
}

/* Between the host and the device piece by piece, so that a step need not wait for data of a trial. */
int device_copy(Device *d, CopyWay way, void *to, const void *from, size_t bytes, Error *err)
{
	const size_t piece = way == COPY_WITHIN ? bytes : 4 << 20;
	bool recording = false; /* then the lock is this thread's all the time */
	int code = 0;
	for (size_t at = 0; at < bytes && !code; at += piece) {
		size_t n = bytes - at < piece ? bytes - at : piece;
		if (at && !recording)
			others_first(d);
		if ((code = device_enter(d, err)))
			break;
		recording = d->recording;
		code = device_leave(
			d, d->kind->copy(d, way, (char *)to + at, (const char *)from + at, n, err));
	}
	return code;
}

int device_zero(Device *d, void *to, size_t bytes, Error *err)
{
	int code = bytes ? device_enter(d, err) : 0;
	if (code || !bytes)
		return code;
	return device_leave(d, d->kind->zero(d, to, bytes, err));
}

/* ---- launches */

static int shared_reserve(Device *d, size_t bytes, Error *err)
{
	if (d->shared_bytes >= bytes)
		return 0;
	Block *b = block_take(d, bytes, MEMORY_KERNELS, "a kernel's own memory", err);
	if (!b)
		return RICCI_ENOMEM;
	memory_free(d, d->shared);
	d->shared = b->memory;
	d->shared_bytes = b->bytes;
	return 0;
}

int step_tell(Device *d, uint64_t step, Error *err)
{
	if (d->step_known && d->step_now == step)
		return 0;
	if (d->recording)
		return error_set(err, RICCI_EINTERNAL, "a recording is of one step");
	if (!d->step) {
		Block *b = block_take(d, sizeof step, MEMORY_KERNELS, "a step's number", err);
		if (!b)
			return RICCI_ENOMEM;
		d->step = b->memory;
	}
	int code = d->kind->copy(d, COPY_IN, d->step, &step, sizeof step, err);
	d->step_known = !code;
	d->step_now = step;
	return code;
}

/* The lock is held. What a kernel needs on the device, before it starts. */
static int launch_prepare(Device *d, const Kernel *k, RandomState rs, Error *err)
{
	int code = k->shape.shared ? shared_reserve(d, k->shape.shared, err) : 0;
	if (!code)
		code = step_tell(d, rs.step, err);
	for (int phase = 0; phase < kernel_phases(k) && !code; phase++)
		code = d->kind->load(d, k, phase, err);
	return code;
}

static int launch_phases(Device *d, const Kernel *k, int nbuf, void *const *buf, RandomState rs,
			 Error *err)
{
	bool shares = k->shape.shared > 0;
	void **pointer = mem_alloc(((size_t)nbuf + 2) * sizeof *pointer);
	Arguments a = {nbuf + shares + 1, pointer, rs.seed};
	int code = pointer ? 0 : error_set(err, RICCI_ENOMEM, "out of memory");
	if (code)
		return code;
	memcpy(pointer, buf, (size_t)nbuf * sizeof *pointer);
	pointer[nbuf] = d->shared;
	pointer[nbuf + shares] = d->step;
	for (int phase = 0; phase < kernel_phases(k) && !code; phase++)
		code = d->kind->launch(d, k, phase, &a, err);
	mem_free(pointer);
	return code;
}

int device_launch(Device *d, const Kernel *k, int nbuf, void *const *buf, RandomState rs,
		  Error *err)
{
	int code = device_enter(d, err);
	if (code)
		return code;
	code = launch_prepare(d, k, rs, err);
	return device_leave(d, code ? code : launch_phases(d, k, nbuf, buf, rs, err));
}

/* ---- waiting */

/* Not under the lock: others start kernels meanwhile. */
int device_finish(Device *d, Error *err)
{
	void *end = NULL;
	int code = d->kind->mark ? device_enter(d, err) : 0;
	if (code || !d->kind->mark)
		return code;
	code = device_leave(d, d->kind->mark(d, &end, err));
	if (!code)
		code = d->kind->reach(d, end, err);
	if (end)
		d->kind->unmark(d, end);
	return code;
}

static int launches_mark(Device *d, const Kernel *k, int nbuf, void *const *buf, RandomState rs,
			 int runs, void *mark[2], Error *err)
{
	int code = device_enter(d, err);
	if (code)
		return code;
	code = launch_prepare(d, k, rs, err);
	if (!code)
		code = d->kind->mark(d, &mark[0], err);
	for (int i = 0; i < runs && !code; i++)
		code = launch_phases(d, k, nbuf, buf, rs, err);
	if (!code)
		code = d->kind->mark(d, &mark[1], err);
	return device_leave(d, code);
}

int device_time(Device *d, const Kernel *k, int nbuf, void *const *buf, RandomState rs, int runs,
		double *seconds, Error *err)
{
	void *mark[2] = {NULL, NULL};
	int code = launches_mark(d, k, nbuf, buf, rs, runs, mark, err);
	if (!code)
		code = d->kind->reach(d, mark[1], err);
	if (!code)
		code = d->kind->between(d, mark[0], mark[1], seconds, err);
	if (!code)
		*seconds /= runs;
	for (int i = 0; i < 2; i++)
		if (mark[i])
			d->kind->unmark(d, mark[i]);
	return code;
}
