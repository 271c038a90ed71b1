/* device.c - the device model: bytes and operations a second, seconds of a launch.
 *
 * Partitioning weighs traffic, computation and launches with them. Measured once in a few
 * milliseconds and kept in the cache folder, because other numbers can mean another partition, and
 * another partition means other kernels to compile. RICCI_DEVICE="bytes/s,flop/s,s" replaces them.
 */
#include "runtime/folder.h"
#include "runtime/internal.h"

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

static bool device_name(char *name, size_t n, int threads)
{
	return (size_t)snprintf(name, n, "ricci-device-2-%s-%d", target_host()->key, threads) < n;
}

static bool device_read(const char *name, DeviceModel *m)
{
	size_t n;
	char *text = folder_read(name, &n);
	bool good = device_parse(text, m);

	mem_free(text);
	return good;
}

static void device_write(const char *name, const DeviceModel *m)
{
	char text[200];
	int n = snprintf(text, sizeof text, "%.4g,%.4g,%.4g\n", m->pd, m->pc, m->launch);

	folder_write(name, text, (size_t)n);
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
	char name[128];
	bool keep;

	model = *device_nominal();
	if (device_parse(env_text("RICCI_DEVICE", NULL), &model))
		return;
	pool = pool_new(0, NULL);
	if (!pool)
		return;
	keep = device_name(name, sizeof name, pool_threads(pool));
	if (!keep || !device_read(name, &model)) {
		device_measure(&model, pool);
		if (keep)
			device_write(name, &model);
	}
	pool_free(pool);
}

const DeviceModel *device_model(void)
{
	pthread_once(&once, device_make);
	return &model;
}
