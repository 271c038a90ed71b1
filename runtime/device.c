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
	static const DeviceModel nominal = {.pd = 20e9, .pc = 50e9, .launch = 3e-6};

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

	return folder && (size_t)snprintf(path, n, "%s/device-2-%s-%d", folder, target_host()->key,
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

/* Of a few milliseconds in all. Operations that do not come in pairs run at half the rate of
 * multiply-adds. */
static void device_measure(DeviceModel *m, Pool *pool)
{
	static const double each = 1e-3;
	static const size_t bytes = 8 << 20; /* beyond the second level of cache */
	double pd = machine_bandwidth(pool, STREAM_COPY, bytes, each);
	double pc = machine_flops(pool, RICCI_F32, each) / 2;

	*m = *device_nominal();
	m->pd = pd > 0 ? pd : m->pd;
	m->pc = pc > 0 ? pc : m->pc;
	m->launch = machine_launch(pool, each);
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
