/* filled.c - samples in memory, filled in the background.
 * A thread keeps a little ahead of what was asked for, so that it does not compete with the first
 * steps of a training, in which everything else starts too. Invariant: samples [0, ready) are final;
 * `ready` only grows, under the lock; after an error it grows no more. Whoever has seen ready >= n
 * may read the first n without the lock. */
#include "nn/data/data.h"

#include <pthread.h>
#include <string.h>

typedef struct Filled {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	bool started, quit;
	int64_t count, bytes, part; /* part: samples filled at a time */
	uint8_t *data;
	int64_t ready, want; /* filled; asked for, and a part more */
	Error err;
	Filler filler;
	unsigned generation; /* of forks: the process that fills it */
} Filled;

static void filler_release(Filler *f)
{
	if (f->free)
		f->free(f->filler);
	f->free = NULL;
}

static void *filled_run(void *arg)
{
	Filled *f = arg;
	Error err = {0};
	int64_t at = 0;
	bool quit = false;
	while (at < f->count && !err.code && !quit) {
		int64_t n = f->count - at < f->part ? f->count - at : f->part;
		f->filler.fill(f->filler.filler, f->data + at * f->bytes, at, n, &err);
		at += n;
		pthread_mutex_lock(&f->lock);
		if (!err.code)
			f->ready = at;
		else
			f->err = err;
		pthread_cond_broadcast(&f->more);
		while (!f->quit && !err.code && f->ready >= f->want && at < f->count)
			pthread_cond_wait(&f->more, &f->lock);
		quit = f->quit;
		pthread_mutex_unlock(&f->lock);
	}
	filler_release(&f->filler);
	return NULL;
}

/* Returns when samples [0, n) are there: 0 or the error that ended the filling. */
static int filled_wait(Filled *f, int64_t n, Error *err)
{
	if (f->generation != fork_generation()) {
		if (f->ready >= n) /* what was there at the fork */
			return 0;
		return error_set(err, RICCI_EUNSUPPORTED,
				 "the data set is filled by the process that this one was forked "
				 "from: a child opens one of its own");
	}
	pthread_mutex_lock(&f->lock);
	if (!f->started && !f->err.code) {
		f->started = !pthread_create(&f->thread, NULL, filled_run, f);
		if (!f->started)
			error_set(&f->err, RICCI_ENOMEM, "cannot start a thread");
	}
	if (n + f->part > f->want) {
		f->want = n + f->part;
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

static int filled_read(void *source, const uint32_t *index, int64_t n, void *out, Error *err)
{
	Filled *f = source;
	size_t bytes = (size_t)f->bytes;
	int64_t need = 0;
	for (int64_t i = 0; i < n; i++)
		need = index[i] >= need ? (int64_t)index[i] + 1 : need;
	int status = filled_wait(f, need, err);
	if (status)
		return status;
	for (int64_t i = 0; i < n; i++)
		memcpy((char *)out + (size_t)i * bytes, f->data + index[i] * bytes, bytes);
	return 0;
}

static void filled_free(void *source)
{
	Filled *f = source;
	pthread_mutex_lock(&f->lock);
	f->quit = true;
	pthread_cond_broadcast(&f->more);
	pthread_mutex_unlock(&f->lock);
	if (f->started)
		pthread_join(f->thread, NULL);
	filler_release(&f->filler);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->more);
	mem_free(f->data);
	mem_free(f);
}

int filled_source(int64_t count, int64_t bytes, Filler filler, bool all, Source *out, Error *err)
{
	Filled *f = mem_zalloc(sizeof *f);
	int64_t total;
	if (f && !__builtin_mul_overflow(count, bytes, &total))
		f->data = mem_alloc((size_t)total);
	if (!f || !f->data) {
		mem_free(f);
		filler_release(&filler);
		return error_set(err, RICCI_ENOMEM, "out of memory for %lld samples of %lld bytes",
				 (long long)count, (long long)bytes);
	}
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->more, NULL);
	f->count = count;
	f->bytes = bytes;
	f->part = bytes < 1024 ? 65536 / bytes : 64;
	f->filler = filler;
	f->generation = fork_generation();
	*out = (Source){.read = filled_read, .free = filled_free, .source = f};
	int status = all ? filled_wait(f, count, err) : 0;
	if (status)
		filled_free(f);
	return status;
}
