/* device.c - the device model: bytes and operations a second, seconds of a launch.
 *
 * Partitioning weighs traffic, computation and launches with them. Measured once in a few
 * milliseconds and kept in the cache folder, because other numbers can mean another partition, and
 * another partition means other kernels to compile. RICCI_DEVICE="bytes/s,flop/s,s" replaces them.
 */
#define _GNU_SOURCE
#include "runtime/internal.h"
#include <string.h>
#include <unistd.h>

static DeviceModel model;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const DeviceModel *device_nominal(void)
{
	static const DeviceModel nominal = {20e9, 50e9, 3e-6};

	return &nominal;
}

static bool device_parse(const char *text, DeviceModel *m)
{
	return text && sscanf(text, "%lf,%lf,%lf", &m->pd, &m->pc, &m->launch) == 3 && m->pd > 0 &&
	       m->pc > 0 && m->launch > 0;
}

static bool device_path(char *path, size_t n, int threads)
{
	const char *folder = cache_folder();

	return folder && (size_t)snprintf(path, n, "%s/device-%s-%d", folder, target_host()->key,
					  threads) < n;
}

static bool device_read(const char *path, DeviceModel *m)
{
	char text[200];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	return device_parse(text, m);
}

static void device_write(const char *path, const DeviceModel *m)
{
	char temp[4200];
	FILE *f;
	bool good;

	if ((size_t)snprintf(temp, sizeof temp, "%s.%ld", path, (long)getpid()) >= sizeof temp)
		return;
	f = fopen(temp, "w");
	if (!f)
		return;
	good = fprintf(f, "%.4g,%.4g,%.4g\n", m->pd, m->pc, m->launch) > 0;
	good = fclose(f) == 0 && good;
	if (!good || rename(temp, path))
		unlink(temp);
}

/* What the measuring kernels work on: buf[0] from, buf[1] to, each `bytes` long. */
static const size_t part_bytes = 1 << 18;

static void copy_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t p = begin; p < end; p++)
		memcpy((char *)buf[1] + (size_t)p * part_bytes,
		       (char *)buf[0] + (size_t)p * part_bytes, part_bytes);
}

/* Eight chains of vector operations, as independent as a kernel's inner loop: 8 * 4 lanes * 2 each
 * round. */
static void flop_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	typedef float Lanes __attribute__((vector_size(16)));
	Lanes acc[8] = {{0}}, a = {1.0f, 0.9f, 0.8f, 0.7f};

	(void)env;
	for (int64_t p = begin; p < end; p++)
		for (int round = 0; round < 4096; round++)
			for (int i = 0; i < 8; i++)
				acc[i] = acc[i] * a + a;
	for (int i = 0; i < 8; i++)
		((float *)buf[1])[begin * 16] += acc[i][0] + acc[i][3];
}

static void nothing_parts(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)buf, (void)env, (void)begin, (void)end;
}

static double least_seconds(Pool *pool, KernelFn *fn, int64_t parts, int times, void *const *buf)
{
	Kernel k = {.run = fn, .parts = parts};
	double least = 1e30;

	for (int i = 0; i < times; i++) {
		double t = clock_seconds();

		pool_run(pool, &k, buf, 0, 0, NULL);
		t = clock_seconds() - t;
		least = t < least ? t : least;
	}
	return least > 1e-9 ? least : 1e-9;
}

static void device_measure(DeviceModel *m, Pool *pool)
{
	int64_t parts = 16; /* 4 MB each way: beyond the second level of cache */
	size_t bytes = part_bytes * (size_t)parts;
	void *buf[2] = {buffer_new(bytes), buffer_new(bytes)};
	int threads = pool_threads(pool);

	*m = *device_nominal();
	if (buf[0] && buf[1]) {
		double flops = 4096.0 * 8 * 4 * 2 * 4 * threads;
		int wider = target_host()->vector_bytes / 16;

		m->pd = 2.0 * (double)bytes / least_seconds(pool, copy_parts, parts, 3, buf);
		m->pc = flops / least_seconds(pool, flop_parts, 4 * threads, 3, buf) *
			(wider > 1 ? wider : 1);
		m->launch = least_seconds(pool, nothing_parts, threads, 50, buf);
	}
	buffer_free(buf[0]);
	buffer_free(buf[1]);
}

static void device_make(void)
{
	Pool *pool;
	char path[4096];
	bool keep;

	model = *device_nominal();
	if (device_parse(env_text("RICCI_DEVICE", NULL), &model))
		return;
	pool = pool_new(0, NULL);
	if (!pool)
		return;
	keep = device_path(path, sizeof path, pool_threads(pool));
	if (!keep || !device_read(path, &model)) {
		device_measure(&model, pool);
		if (keep)
			device_write(path, &model);
	}
	pool_free(pool);
}

const DeviceModel *device_model(void)
{
	pthread_once(&once, device_make);
	return &model;
}
