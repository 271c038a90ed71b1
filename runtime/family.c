/* family.c - what sessions that share parameters have together: the storage of the states, the threads
 * and the tuner.
 *
 * Input: a graph and options. Memory of states is there from the beginning; their initial values are
 * drawn when they are first read, so that those which are fed or loaded before never are. Invariant:
 * a value that anyone sees does not depend on when, or whether others, were drawn.
 */
#include "runtime/family.h"
#include <stdlib.h>
#include <string.h>

/* ---- storage ---- */
bool tensor_kept(const ricci_tensor *t)
{
	return t->role == ROLE_PARAM || t->role == ROLE_STATE;
}

static int by_node(const void *a, const void *b)
{
	const Storage *x = a, *y = b;

	return x->node->id < y->node->id ? -1 : x->node->id > y->node->id;
}

Storage *storage_find(int n, Storage *list, const Node *x)
{
	const Storage key = {.node = (Node *)x};
	Storage *st = n ? bsearch(&key, list, (size_t)n, sizeof *list, by_node) : NULL;

	return st && st->node == x ? st : NULL;
}

void storage_free(Device *d, int n, Storage *list)
{
	for (int i = 0; list && i < n; i++) {
		if (!list[i].borrowed)
			device_free(d, list[i].data);
		device_free(d, list[i].spare);
	}
	mem_free(list);
}

int storage_list(const ricci_graph *g, bool kept, int *n, Storage **list, Error *err)
{
	*n = 0;
	*list = mem_zalloc(((size_t)g->ntensor + 1) * sizeof **list);
	if (!*list)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	for (const ricci_tensor *t = g->first; t; t = t->next)
		if (kept ? tensor_kept(t) : t->role == ROLE_INPUT)
			(*list)[(*n)++] = (Storage){
				.tensor = t, .node = t->node, .bytes = tensor_bytes(t->node)};
	qsort(*list, (size_t)*n, sizeof **list, by_node);
	return 0;
}

int storage_reserve(Device *d, Storage *st, Error *err)
{
	char what[100];

	if (st->data)
		return 0;
	message_print(what, sizeof what, "'%s'", st->tensor->name);
	st->data = device_alloc(d, st->bytes, MEMORY_STATES, what, err);
	return st->data ? 0 : RICCI_ENOMEM;
}

int data_check(const ricci_tensor *t, const void *data, Error *err)
{
	Type type = (Type)t->node->type;
	size_t n = (size_t)tensor_size(t->node);
	int64_t lo = t->need_lo, hi = t->need_hi, all_lo, all_hi;

	if (type_is_float(type))
		return 0;
	type_range(type, &all_lo, &all_hi);
	if (type != RICCI_BOOL && lo <= all_lo && hi >= all_hi)
		return 0;
	for (size_t i = 0; i < n; i++) {
		int64_t v = type == RICCI_BOOL ? ((const uint8_t *)data)[i]
					       : type_load_int(type, data, i);

		if (type == RICCI_BOOL && v > 1)
			return error_set(err, RICCI_EVALUE,
					 "'%s': element %zu is %lld, but a bool is 0 or 1", t->name,
					 i, (long long)v);
		if (type != RICCI_BOOL && (v < lo || v > hi))
			return error_set(err, RICCI_EVALUE,
					 "'%s': element %zu is %lld, but the graph indexes with it "
					 "and needs %lld..%lld",
					 t->name, i, (long long)v, (long long)lo, (long long)hi);
	}
	return 0;
}

/* ---- families ---- */
void family_unref(Family *f)
{
	static const double settled = 2; /* seconds: who waited less would notice it */

	if (!f || __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	bool again = f->tuner && clock_seconds() - f->began > settled;

	tuner_free(f->tuner);
	pool_free(f->pool);
	if (again)
		device_again();
	storage_free(f->device, f->nstate, f->state);
	if (f->device && f->device->kind->pooled)
		device_trim(f->device);
	ricci_graph_free(f->g);
	pthread_mutex_destroy(&f->lock);
	mem_free(f);
}

/* The backend of a device that makes kernels of its own. */
static int request_device(const ricci_options *o, Device *d, Request *r, Error *err)
{
	char why[256] = "it is not part of this build";

	if (o->backend != RICCI_BACKEND_AUTO)
		return error_set(err, RICCI_EINVAL,
				 "%s has kernels of backend %s: leave options.backend at "
				 "RICCI_BACKEND_AUTO",
				 d->name, d->kind->backend);
	r->device = d;
	r->backend = backend_find(d->kind->backend);
	if (!r->backend || !r->backend->available(why, sizeof why))
		return error_set(err, RICCI_ECOMPILE, "%s can't be used: %s", d->name, why);
	return 0;
}

static int request_make(const ricci_options *o, Device *d, Request *r, Error *err)
{
	static const char *const name[] = {NULL, "interp", "tcc", "cc"};
	char why[256] = "it is not part of this build";

	*r = (Request){.frozen = o->static_mode != 0};
	if ((int)o->backend < 0 || (int)o->backend >= COUNT(name))
		return error_set(err, RICCI_EINVAL, "there is no backend number %d",
				 (int)o->backend);
	if (o->threads < 0)
		return error_set(err, RICCI_EINVAL,
				 "%d threads: 0 means as many as the process may run on",
				 o->threads);
	if (d->kind->backend)
		return request_device(o, d, r, err);
	if (!name[o->backend])
		return 0;
	r->backend = backend_find(name[o->backend]);
	if (!r->backend || !r->backend->available(why, sizeof why))
		return error_set(err, RICCI_ECOMPILE, "backend %s can't be used: %s",
				 name[o->backend], why);
	return 0;
}

/* Parameters and states are where they were given. */
static int family_borrow(Family *f, const Given *given, Error *err)
{
	int n = f->nstate, code = 0;
	size_t *offset = mem_alloc(((size_t)n + 1) * sizeof *offset);

	if (!offset)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	pack_places(f->g, offset);
	for (int i = 0; i < n && !code; i++) {
		ricci_tensor *t = ricci_param_at(f->g, i, NULL);
		Storage *st = storage_find(n, f->state, t->node);

		st->data = (char *)given->data + offset[i];
		st->borrowed = st->drawn = true;
		code = data_check(t, st->data, err);
	}
	mem_free(offset);
	return code;
}

static int family_fill(Family *f, const ricci_options *o, const Given *given, Error *err)
{
	bool tunes;
	int code;

	if (!(f->device = o->device ? device_named(o->device, err) : device_host()))
		return RICCI_EINVAL;
	code = request_make(o, f->device, &f->request, err);
	tunes = !f->request.frozen;
	f->request.pack = given ? given->pack : NULL;
	f->seed = o->seed;
	f->check_finite = o->check_finite || env_check("nan");
	if (!code && !(f->pool = pool_new(o->threads, err)))
		return RICCI_ENOMEM;
	if (!code && tunes && !f->request.device)
		f->request.threads = pool_threads(f->pool);
	if (!code && tunes && !(f->tuner = tuner_new(pool_spare(f->pool), err)))
		return RICCI_ENOMEM;
	if (!code)
		code = storage_list(f->g, true, &f->nstate, &f->state, err);
	if (!code && given)
		return family_borrow(f, given, err);
	for (int i = 0; i < f->nstate && !code; i++)
		code = storage_reserve(f->device, &f->state[i], err);
	return code;
}

/* On the host, which every device gets the same values from. */
int family_draw(Family *f, Storage *st, Error *err)
{
	bool far = f->device->kind->launch != NULL;
	Storage here = *st;
	int code = 0;

	if (st->drawn)
		return 0;
	if (far && !(here.data = buffer_new(st->bytes)))
		return error_set(err, RICCI_ENOMEM, "out of memory for '%s'", st->tensor->name);
	code = storage_draw(&here, f->seed, f->pool, err);
	if (!code)
		code = data_check(st->tensor, here.data, err);
	if (!code && far)
		code = device_copy(f->device, COPY_IN, st->data, here.data, st->bytes, err);
	if (far)
		buffer_free(here.data);
	st->drawn = !code;
	return code;
}

int family_check(const Family *f, Error *err)
{
	return f->generation == fork_generation()
		       ? 0
		       : error_set(err, RICCI_EINVAL,
				   "the session belongs to the process that this one was forked "
				   "from: a child may free it, and make sessions of its own");
}

Family *family_new(ricci_graph *g, const ricci_options *o, const Given *given, Error *err)
{
	ricci_options own = RICCI_OPTIONS();
	Family *f;

	if (o && struct_take(&own, sizeof own, o, "ricci_options", err))
		return NULL;
	if (!(f = mem_zalloc(sizeof *f))) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	f->refs = 1;
	f->began = clock_seconds();
	f->generation = fork_generation();
	f->g = g;
	graph_ref(g);
	pthread_mutex_init(&f->lock, NULL);
	if (family_fill(f, &own, given, err)) {
		family_unref(f);
		return NULL;
	}
	return f;
}
