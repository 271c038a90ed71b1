/* measure.c - how long a kernel takes on random data, where no training runs that would tell.
 *
 * Input: an entry, whose kernels they are. On the processor a pool runs them, by the host's clock; on a device
 * they run between those of steps, by the device's own marks. Invariant: nothing of a training is read or
 * written.
 */
#include "runtime/search/search.h"
#include <math.h>

/* Seconds of a device that a run takes: a short kernel runs several times, as starting it costs as much. */
static const double slice = 1e-4;
enum { MOST_RUNS = 16 };

bool bench_fits(const CacheEntry *e, Error *err)
{
	Device *d = e->request.device;
	size_t bytes = 0;

	for (int i = 0; i < task_nbuf(e->task); i++)
		bytes += tensor_bytes(task_tensor(e->task, i));
	if (!d || device_spare(d, bytes))
		return true;
	error_set(err, RICCI_ENOMEM, "%s has too little memory left to try a kernel on", d->name);
	return false;
}

/* The data move to the device. */
static int bench_move(Bench *b, const Task *t, Error *err)
{
	int code = 0;

	if (!(b->there = mem_zalloc(((size_t)b->nbuf + 1) * sizeof *b->there)))
		return error_set(err, RICCI_ENOMEM, "out of memory for a kernel's test data");
	for (int i = 0; i < b->nbuf && !code; i++) {
		size_t bytes = tensor_bytes(task_tensor(t, i));

		b->there[i] =
			device_alloc(b->device, bytes, MEMORY_KERNELS, "a kernel's test data", err);
		code = b->there[i] ? device_copy(b->device, COPY_IN, b->there[i], b->data.buf[i],
						 bytes, err)
				   : RICCI_ENOMEM;
	}
	task_data_free(&b->data);
	return code;
}

int bench_new(Bench *b, const CacheEntry *e, Pool *pool, Error *err)
{
	*b = (Bench){
		.pool = pool, .device = e->request.device, .nbuf = task_nbuf(e->task), .runs = 1};
	int code = task_data_new(e->task, 1, &b->data, err);

	return code || !b->device ? code : bench_move(b, e->task, err);
}

void bench_free(Bench *b)
{
	for (int i = 0; b->there && i < b->nbuf; i++)
		device_free(b->device, b->there[i]);
	mem_free(b->there);
	b->there = NULL;
	task_data_free(&b->data);
}

int bench_run(Bench *b, const Kernel *k, double *seconds, Error *err)
{
	RandomState rs = {1, 1};
	double start = clock_seconds();
	int code;

	if (b->device) {
		code = device_time(b->device, k, b->nbuf, b->there, rs, b->runs, seconds, err);
		if (!code)
			b->runs = (int)fmax(1, fmin(MOST_RUNS, slice / fmax(*seconds, 1e-9)));
		return code;
	}
	code = pool_launch(b->pool, k, b->data.buf, &rs, true, err);
	*seconds = clock_seconds() - start;
	return code;
}

/* Validation runs on one thread; on a device its data are copied there and back. */
double candidate_seconds(const CacheEntry *e, double best, int threads)
{
	static const double least = 0.5, patience = 6, copied = 5e8; /* copied: bytes a second */
	double most = verify_seconds(e->task), own = patience * best * threads;

	if (e->request.device)
		own = patience * best + e->task->bytes / copied;
	return best > 0 ? fmin(most, least + own) : most;
}

int trial_settle(CacheEntry *e, Pool *pool, Error *err)
{
	Bench b;
	bool over = false;
	int code = bench_new(&b, e, pool, err);

	for (int i = 0; i < 64 && !over && !code; i++) {
		Taken k = entry_turn(e);
		double seconds;

		over = k.which < 0;
		if (!over)
			code = bench_run(&b, k.kernel, &seconds, err);
		if (!over && !code && i >= 2) /* the first two meet cold data */
			over = entry_timed(e, k.kernel, k.which, seconds);
		kernel_unref(k.kernel);
	}
	bench_free(&b);
	return code;
}
