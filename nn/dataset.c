/* dataset.c - data sets in memory, filled in the background.
 * It keeps a little ahead of what was asked for, so that it does not compete with the first steps
 * of a training, in which everything else starts too. Invariant: samples and labels [0, ready) are
 * final; `ready` only grows, under the lock; after `status` is set it grows no more. Whoever has
 * seen ready >= n may read the first n without it. */
#include "nn/nn.h"

#include <pthread.h>
#include <string.h>

#define PART 64 /* samples filled in at a time */

typedef struct Filling {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	bool started, quit;
	int64_t ready, want; /* filled; asked for, and a part more */
	Error err;
	DataSource source;
	unsigned generation; /* of forks: the process that fills it */
} Filling;

ricci_data *data_new(int64_t count, int64_t size, DataSource source, Error *err)
{
	ricci_data *d = mem_zalloc(sizeof *d);
	Filling *f = mem_zalloc(sizeof *f);
	uint8_t *samples = NULL, *labels = NULL;
	int64_t bytes;
	if (d && f && !__builtin_mul_overflow(count, size, &bytes)) {
		samples = mem_alloc((size_t)bytes);
		labels = mem_alloc((size_t)count);
	}
	if (!samples || !labels) {
		mem_free(samples);
		mem_free(labels);
		mem_free(f);
		mem_free(d);
		source.free(source.source);
		error_set(err, RICCI_ENOMEM, "out of memory for %lld samples of %lld bytes",
			  (long long)count, (long long)size);
		return NULL;
	}
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->more, NULL);
	f->source = source;
	f->generation = fork_generation();
	*d = (ricci_data){count, size, samples, labels, f};
	return d;
}

static void filling_release(Filling *f)
{
	if (f->source.free)
		f->source.free(f->source.source);
	f->source.free = NULL;
}

static void *filling_run(void *arg)
{
	ricci_data *d = arg;
	Filling *f = d->filling;
	Error err = {0};
	int64_t at = 0;
	int status = 0;
	bool quit = false;
	while (at < d->count && !status && !quit) {
		int64_t n = d->count - at < PART ? d->count - at : PART;
		status = f->source.fill(f->source.source, d, at, n, &err);
		at += n;
		pthread_mutex_lock(&f->lock);
		if (!status)
			f->ready = at;
		else
			f->err = err;
		pthread_cond_broadcast(&f->more);
		while (!f->quit && !status && f->ready >= f->want && at < d->count)
			pthread_cond_wait(&f->more, &f->lock);
		quit = f->quit;
		pthread_mutex_unlock(&f->lock);
	}
	filling_release(f);
	return NULL;
}

int data_wait(ricci_data *d, int64_t n, Error *err)
{
	Filling *f = d->filling;
	if (f->generation != fork_generation()) {
		if (f->ready >= n) /* what was there at the fork */
			return 0;
		return error_set(err, RICCI_EUNSUPPORTED,
				 "the data set is filled by the process that this one was forked "
				 "from: a child opens one of its own");
	}
	pthread_mutex_lock(&f->lock);
	if (!f->started && !f->err.code) {
		if (pthread_create(&f->thread, NULL, filling_run, d)) {
			error_set(&f->err, RICCI_ENOMEM, "cannot start a thread");
		} else {
			f->started = true;
		}
	}
	if (n + PART > f->want) {
		f->want = n + PART;
		pthread_cond_broadcast(&f->more);
	}
	while (f->ready < n && !f->err.code)
		pthread_cond_wait(&f->more, &f->lock);
	int status = f->ready < n ? f->err.code : 0;
	if (status)
		error_set(err, status, "%s", f->err.text);
	pthread_mutex_unlock(&f->lock);
	return status;
}

void ricci_data_free(ricci_data *d)
{
	if (!d || d->filling->generation != fork_generation())
		return;
	Filling *f = d->filling;
	pthread_mutex_lock(&f->lock);
	f->quit = true;
	pthread_cond_broadcast(&f->more);
	pthread_mutex_unlock(&f->lock);
	if (f->started)
		pthread_join(f->thread, NULL);
	filling_release(f);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->more);
	mem_free(d->samples);
	mem_free(d->labels);
	mem_free(f);
	mem_free(d);
}

int64_t ricci_data_count(const ricci_data *d)
{
	return d ? d->count : 0;
}

int64_t ricci_data_size(const ricci_data *d)
{
	return d ? d->size : 0;
}

int ricci_data_get(ricci_data *d, int64_t i, uint8_t *pixels, int *label)
{
	Error *err = ERROR_TELL;
	if (!d || i < 0 || i >= d->count)
		return error_set(err, RICCI_EINVAL, "no sample %lld: there are %lld", (long long)i,
				 (long long)ricci_data_count(d));
	int status = data_wait(d, i + 1, err);
	if (status)
		return status;
	if (pixels)
		memcpy(pixels, d->samples + i * d->size, (size_t)d->size);
	if (label)
		*label = d->labels[i];
	return 0;
}
