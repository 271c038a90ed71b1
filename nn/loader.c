/* loader.c - batches made ahead of their use.
 * A thread fills a ring of slots: indices from the epoch's order, bytes to f32, labels to i32. The
 * reader owns the slot it got until it asks for the next one.
 * Invariant: slots [taken, made) of the ring are full, counted without end; the order of batches
 * depends on seed, epoch and index only. */
#include "nn/nn.h"

#include <pthread.h>

#define SLOTS 3

typedef struct Slot {
	float *samples;
	int32_t *labels;
	int count; /* that count; 0: the end of an epoch; negative: an error */
	Error err;
} Slot;

struct ricci_loader {
	ricci_data *data;
	int batch;
	bool shuffle;
	uint64_t seed;
	uint32_t *order;
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

static int slot_fill(ricci_loader *l, Slot *s, int64_t index)
{
	ricci_data *d = l->data;
	int64_t left = d->count - index, size = d->size, need = 0;
	if (left <= 0 || (l->shuffle && left < l->batch))
		return 0;
	for (int i = 0; i < l->batch; i++) {
		int64_t k = l->order[i < left ? index + i : (i - left) % d->count];
		need = k >= need ? k + 1 : need;
	}
	int status = data_wait(d, need, &s->err);
	if (status)
		return status;
	for (int i = 0; i < l->batch; i++) {
		int64_t k = l->order[i < left ? index + i : (i - left) % d->count];
		const uint8_t *from = d->samples + k * size;
		float *to = s->samples + i * size;
		for (int64_t j = 0; j < size; j++)
			to[j] = (float)from[j] * (1.0f / 255);
		s->labels[i] = d->labels[k];
	}
	return left < l->batch ? (int)left : l->batch;
}

static void order_make(ricci_loader *l, uint64_t epoch)
{
	if (l->shuffle)
		rng_order(l->seed, epoch, l->data->count, l->order);
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

ricci_loader *ricci_loader_new(ricci_data *d, int batch, int shuffle, uint64_t seed)
{
	Error *err = ERROR_TELL;
	if (!d || batch < 1 || (shuffle && batch > d->count)) {
		error_set(err, RICCI_EINVAL, "batches of %d cannot be made of %lld samples", batch,
			  (long long)ricci_data_count(d));
		return NULL;
	}
	ricci_loader *l = mem_zalloc(sizeof *l);
	if (!l) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->change, NULL);
	l->data = d;
	l->batch = batch;
	l->shuffle = shuffle;
	l->seed = seed;
	l->generation = fork_generation();
	bool ok = (l->order = mem_alloc((size_t)d->count * sizeof *l->order));
	for (int i = 0; i < SLOTS && ok; i++) {
		l->slot[i].samples = mem_alloc((size_t)batch * (size_t)d->size * sizeof(float));
		l->slot[i].labels = mem_alloc((size_t)batch * sizeof(int32_t));
		ok = l->slot[i].samples && l->slot[i].labels;
	}
	if (!ok) {
		ricci_loader_free(l);
		error_set(err, RICCI_ENOMEM, "out of memory for batches of %d", batch);
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
}

void ricci_loader_free(ricci_loader *l)
{
	if (!l || l->generation != fork_generation())
		return;
	loader_stop(l);
	for (int i = 0; i < SLOTS; i++) {
		mem_free(l->slot[i].samples);
		mem_free(l->slot[i].labels);
	}
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

int ricci_loader_next(ricci_loader *l, const float **samples, const int32_t **labels)
{
	Error *err = ERROR_TELL;
	if (!l || !samples || !labels)
		return error_set(err, RICCI_EINVAL,
				 "ricci_loader_next: loader, samples and labels must be given");
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
	*samples = s->samples;
	*labels = s->labels;
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
