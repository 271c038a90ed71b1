/* loader.c - batches made before they are needed.
 * A thread fills a ring of slots: sample numbers from the epoch's order, elements converted to the
 * types asked for. The reader owns the slot it got until it asks for the next one.
 * Invariant: slots [taken, made) of the ring are full, counted without end; the order of batches
 * depends on seed, epoch and index only. */
#include "nn/data/data.h"

#include <pthread.h>
#include <string.h>

enum { SLOTS = 3 };

typedef struct Slot {
	void *out[DATA_FIELDS];
	int count; /* that count; 0: the end of an epoch; negative: an error */
	Error err;
} Slot;

typedef struct Wanted {
	const Field *field;
	Type type;
	bool unit;
} Wanted;

struct ricci_loader {
	ricci_data *data;
	int batch, nwanted;
	Wanted wanted[DATA_FIELDS];
	bool shuffle;
	uint64_t seed;
	int64_t block; /* of the source that is read in blocks and has the largest samples */
	int64_t block_bytes;
	uint32_t *order, *pick;
	void *raw;	/* samples before conversion */
	uint64_t epoch; /* where the thread begins */
	int64_t index;
	Slot slot[SLOTS];
	uint64_t made, taken; /* under the lock */
	bool quit, started, holding;
	unsigned generation; /* of forks: the process that it belongs to */
	pthread_mutex_t lock;
	pthread_cond_t change;
	pthread_t thread;
};

static int wanted_read(ricci_loader *l, const Wanted *w, void *out, Error *err)
{
	const Field *f = w->field;
	bool same = w->type == f->type;
	void *to = same ? out : l->raw;
	int status = f->source.read(f->source.source, l->pick, l->batch, to, err);
	if (status || same)
		return status;
	int64_t bad = convert(f->type, to, w->type, out, l->batch * f->size, w->unit);
	if (bad < 0)
		return 0;
	return error_set(err, RICCI_EVALUE,
			 "field '%s', sample %u, element %lld: %lld does not fit the type %s",
			 f->name, l->pick[bad / f->size], (long long)(bad % f->size),
			 (long long)type_load_int(f->type, to, (size_t)bad), type_name(w->type));
}

static int slot_fill(ricci_loader *l, Slot *s, int64_t index)
{
	int64_t count = l->data->count, left = count - index;
	int64_t window = l->batch + ORDER_POOL * l->block;
	if (left <= 0 || (l->shuffle && left < l->batch))
		return 0;
	for (int i = 0; i < l->batch; i++)
		l->pick[i] = l->order[i < left ? index + i : (i - left) % count];
	for (int k = 0; k < l->nwanted; k++) {
		const Source *from = &l->wanted[k].field->source;
		if (from->prefetch)
			from->prefetch(from->source, l->order + index,
				       left < window ? left : window);
	}
	for (int k = 0; k < l->nwanted; k++) {
		int status = wanted_read(l, &l->wanted[k], s->out[k], &s->err);
		if (status)
			return status;
	}
	return left < l->batch ? (int)left : l->batch;
}

static void order_make(ricci_loader *l, uint64_t epoch)
{
	if (l->shuffle)
		rng_order(l->seed, epoch, l->data->count, l->block, l->order);
	else
		for (int64_t i = 0; i < l->data->count; i++)
			l->order[i] = (uint32_t)i;
}

static void *loader_run(void *arg)
{
	ricci_loader *l = arg;
	uint64_t epoch = l->epoch;
	int64_t index = l->index;
	order_make(l, epoch);
	for (;;) {
		pthread_mutex_lock(&l->lock);
		while (!l->quit && l->made - l->taken == SLOTS)
			pthread_cond_wait(&l->change, &l->lock);
		bool quit = l->quit;
		Slot *s = &l->slot[l->made % SLOTS];
		pthread_mutex_unlock(&l->lock);
		if (quit)
			return NULL;
		s->count = slot_fill(l, s, index);
		index += l->batch;
		if (s->count == 0) {
			index = 0;
			order_make(l, ++epoch);
		}
		pthread_mutex_lock(&l->lock);
		l->made++;
		quit = s->count < 0;
		pthread_cond_broadcast(&l->change);
		pthread_mutex_unlock(&l->lock);
		if (quit)
			return NULL;
	}
}

static int wanted_take(ricci_loader *l, const ricci_loaded *w, Error *err)
{
	const Field *f = data_find(l->data, w->field);
	Text names = {0};
	if (!f) {
		for (int k = 0; k < l->data->nfield; k++)
			text_add(&names, "%s'%s'", k ? ", " : "", l->data->field[k].name);
		error_set(err, RICCI_EINVAL, "the data set has no field '%s'; it has %s",
			  w->field ? w->field : "", names.s ? names.s : "none");
		text_free(&names);
		return err->code;
	}
	if ((unsigned)w->type >= RICCI_NTYPES || !convert_possible(f->type, w->type, w->unit))
		return error_set(err, RICCI_ETYPE,
				 "field '%s' has elements of type %s, which can't be made %s%s",
				 f->name, type_name(f->type),
				 (unsigned)w->type < RICCI_NTYPES ? type_name(w->type) : "that",
				 w->unit ? " in 0..1 (u8 can be)" : "");
	l->wanted[l->nwanted++] = (Wanted){f, w->type, w->unit};
	if (f->source.block > 1 && f->bytes > l->block_bytes) {
		l->block = f->source.block;
		l->block_bytes = f->bytes;
	}
	return 0;
}

static int loader_check(const ricci_data *d, const ricci_loading *how, Error *err)
{
	if (!d)
		return error_set(err, RICCI_EINVAL, "a loader needs a data set");
	if (d->err.code)
		return error_set(err, d->err.code, "%s", d->err.text);
	if (how->batch < 1 || !d->count || (how->shuffle && how->batch > d->count))
		return error_set(err, RICCI_EINVAL, "batches of %d cannot be made of %lld samples",
				 how->batch, (long long)d->count);
	if (d->streams && (d->streams != how->batch || how->shuffle))
		return error_set(err, RICCI_EINVAL,
				 "a text in %d streams is loaded in its order, in batches of %d",
				 d->streams, d->streams);
	if (how->nfield < 0 || how->nfield > DATA_FIELDS || (how->nfield && !how->field))
		return error_set(err, RICCI_EINVAL, "a batch has at most %d fields", DATA_FIELDS);
	return 0;
}

static int loader_fields(ricci_loader *l, const ricci_loading *how, Error *err)
{
	ricci_data *d = l->data;
	int n = how->nfield ? how->nfield : d->nfield;
	size_t raw = 1;
	for (int k = 0; k < n; k++) {
		ricci_loaded own = {d->field[k % d->nfield].name, d->field[k % d->nfield].type, 0};
		if (wanted_take(l, how->nfield ? &how->field[k] : &own, err))
			return err->code;
		const Wanted *w = &l->wanted[k];
		if (w->type != w->field->type && (size_t)w->field->bytes > raw)
			raw = (size_t)w->field->bytes;
	}
	bool ok = (l->order = mem_alloc((size_t)d->count * sizeof *l->order)) &&
		  (l->pick = mem_alloc((size_t)l->batch * sizeof *l->pick)) &&
		  (l->raw = mem_alloc((size_t)l->batch * raw));
	for (int i = 0; i < SLOTS * n && ok; i++) {
		const Wanted *w = &l->wanted[i % n];
		size_t sample = (size_t)w->field->size * type_size(w->type);
		ok = (l->slot[i / n].out[i % n] = mem_alloc((size_t)l->batch * sample));
	}
	return ok ? 0 : error_set(err, RICCI_ENOMEM, "out of memory for batches of %d", l->batch);
}

ricci_loader *ricci_loader_open(ricci_data *d, const ricci_loading *loading)
{
	Error *err = ERROR_TELL;
	ricci_loading how;
	if (!loading) {
		error_set(err, RICCI_EINVAL, "ricci_loader_open needs a ricci_loading");
		return NULL;
	}
	if (struct_take(&how, sizeof how, loading, "ricci_loading", err) ||
	    loader_check(d, &how, err))
		return NULL;
	ricci_loader *l = mem_zalloc(sizeof *l);
	if (!l) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->change, NULL);
	l->data = d;
	l->batch = how.batch;
	l->shuffle = how.shuffle;
	l->seed = how.seed;
	l->generation = fork_generation();
	if (loader_fields(l, &how, err)) {
		ricci_loader_free(l);
		return NULL;
	}
	return l;
}

static void loader_stop(ricci_loader *l)
{
	pthread_mutex_lock(&l->lock);
	l->quit = true;
	pthread_cond_broadcast(&l->change);
	pthread_mutex_unlock(&l->lock);
	if (l->started)
		pthread_join(l->thread, NULL);
	l->started = l->quit = l->holding = false;
	l->made = l->taken = 0;
	for (int i = 0; i < SLOTS; i++)
		error_clear(&l->slot[i].err);
}

void ricci_loader_free(ricci_loader *l)
{
	if (!l || l->generation != fork_generation())
		return;
	loader_stop(l);
	for (int i = 0; i < SLOTS; i++)
		for (int k = 0; k < l->nwanted; k++)
			mem_free(l->slot[i].out[k]);
	mem_free(l->raw);
	mem_free(l->pick);
	mem_free(l->order);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->change);
	mem_free(l);
}

static bool loader_start(ricci_loader *l)
{
	if (!l->started)
		l->started = !pthread_create(&l->thread, NULL, loader_run, l);
	return l->started;
}

int ricci_loader_batch(ricci_loader *l, const void **fields)
{
	Error *err = ERROR_TELL;
	if (!l || !fields)
		return error_set(err, RICCI_EINVAL,
				 "ricci_loader_batch: loader and fields must be given");
	if (l->generation != fork_generation())
		return error_set(err, RICCI_EINVAL,
				 "the loader belongs to the process that this one was forked from: "
				 "a child may free it, and make one of its own");
	if (!loader_start(l))
		return error_set(err, RICCI_ENOMEM, "cannot start a thread");
	pthread_mutex_lock(&l->lock);
	Slot *s = &l->slot[l->taken % SLOTS];
	if (l->holding && s->count >= 0) {
		l->taken++;
		pthread_cond_broadcast(&l->change);
	}
	while (l->made == l->taken)
		pthread_cond_wait(&l->change, &l->lock);
	l->holding = true;
	s = &l->slot[l->taken % SLOTS];
	pthread_mutex_unlock(&l->lock);
	if (s->count < 0)
		return error_set(err, s->count, "%s", s->err.text);
	for (int k = 0; k < l->nwanted; k++)
		fields[k] = s->out[k];
	return s->count;
}

int ricci_loader_seek(ricci_loader *l, uint64_t epoch, int64_t index)
{
	if (!l || l->generation != fork_generation() || index < 0 || index > l->data->count ||
	    index % l->batch)
		return RICCI_EINVAL;
	loader_stop(l);
	l->epoch = epoch;
	l->index = index;
	loader_start(l); /* where that fails, the next batch says so */
	return 0;
}
