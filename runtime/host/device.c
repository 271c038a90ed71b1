/* device.c - the device model: bytes and operations a second, seconds of a launch.
 *
 * Partitioning weighs traffic, computation and launches with them. Measured in a few milliseconds
 * and kept in the cache folder, because other numbers can mean another partition, and another
 * partition means other kernels to compile. What was measured in a bad moment is put right by later
 * processes, a few times, when a training has ended; a process decides with one model all its life.
 * RICCI_DEVICE="bytes/s,flop/s,s" replaces them.
 */
#include "runtime/host/folder.h"
#include "runtime/host/host.h"
#include <string.h>

static DeviceModel model; /* pd_far: 0 unless it was kept */
static double far;
static atomic_int measured; /* how often what is kept was, as far as this process knows */
static pthread_once_t once = PTHREAD_ONCE_INIT, far_once = PTHREAD_ONCE_INIT;

const DeviceModel *device_nominal(void)
{
	static const DeviceModel nominal = {.pd = 20e9,
					    .pc = 50e9,
					    .launch = 3e-6,
					    .pd_far = 20e9,
					    .pd_core = 80e9,
					    .core = 1 << 20,
					    .threads = 8};

	return &nominal;
}

/* Three, five or seven numbers. Without the others the first is the rate of all memory, and caches of
 * threads are as nominal ones beside it. */
static bool device_parse(const char *text, DeviceModel *m)
{
	int n = text ? sscanf(text, "%lf,%lf,%lf,%lf,%lf,%lf,%lf", &m->pd, &m->pc, &m->launch,
			      &m->pd_far, &m->near, &m->pd_core, &m->core)
		     : 0;
	const DeviceModel *nominal = device_nominal();
	m->pd_far = n == 3 ? m->pd : m->pd_far;
	if (n < 7) {
		m->pd_core = m->pd * nominal->pd_core / nominal->pd;
		m->core = nominal->core;
	}
	return (n == 3 || n == 5 || n == 7) && m->pd > 0 && m->pc > 0 && m->launch > 0 &&
	       m->pd_far >= 0 && m->pd_core > 0 && m->core >= 0;
}

static bool device_name(char *name, size_t n, int threads)
{
	return (size_t)snprintf(name, n, "ricci-device-4-%s-%d", target_host()->key, threads) < n;
}

/* How often it was measured; 0: there is none. */
static int device_read(const char *name, DeviceModel *m)
{
	size_t n;
	char *text = folder_read(name, &n);
	int times = 1;
	bool good = device_parse(text, m);

	if (good)
		sscanf(text, "%*[^;];%d", &times);
	mem_free(text);
	return good ? times : 0;
}

static void device_write(const char *name, const DeviceModel *m, int times)
{
	char text[200];
	int n = snprintf(text, sizeof text, "%.4g,%.4g,%.4g,%.4g,%.4g,%.4g,%.4g;%d\n", m->pd, m->pc,
			 m->launch, m->pd_far, m->near, m->pd_core, m->core, times);

	folder_write(name, text, (size_t)n);
}

static double greatest(double a, double b)
{
	return a > b ? a : b;
}

enum { NEAR = 4 << 20, FAR = 64 << 20 }; /* beyond L2; more than a program has of an L3 */
static const double each = 2.5e-4;	 /* seconds of one measurement */

/* More than this leaves the last cache, or what a program has of one that many share. */
static size_t near_bytes(void)
{
	size_t l3 = target_host()->l3;

	return l3 < NEAR ? NEAR : l3 > FAR ? FAR : l3;
}

/* In so many bytes the rate of what is far is measured: no more than it takes to leave L2 where L3 is large. */
static size_t far_bytes(void)
{
	return target_host()->l3 > FAR ? FAR / 4 : near_bytes();
}

/* In some five milliseconds in all. The best of two tries, in the same memory, as new pages take longer than
 * all measurements: another program may run. Launches are timed last, when all threads are awake. Operations
 * that do not come in pairs run at half the rate of multiply-adds. */
static void device_measure(DeviceModel *m, Pool *pool)
{
	enum { TRIES = 2 };
	double pd = 0, pc = 0, launch = 1, core = 0;
	size_t own = target_host()->l2, all = own * (size_t)pool_threads(pool) / 2;
	size_t room = all > NEAR ? all : NEAR;
	void *memory = buffer_new(room);

	if (memory)
		memset(memory, 0x11, room);
	for (int k = 0; k < TRIES && memory; k++) {
		pc = greatest(pc, machine_flops(pool, RICCI_F32, each) / 2);
		core = greatest(core, machine_stream(pool, STREAM_COPY, memory, all, each));
		pd = greatest(pd, machine_stream(pool, STREAM_COPY, memory, NEAR, each));
		double t = machine_launch(pool, each);
		launch = t < launch ? t : launch;
	}
	buffer_free(memory);
	*m = *device_nominal();
	m->pd = pd > 0 ? pd : m->pd;
	m->pc = pc > 0 ? pc : m->pc;
	m->launch = memory ? launch : m->launch;
	m->pd_far = 0;
	m->near = (double)near_bytes();
	m->pd_core = greatest(core, m->pd);
	m->core = (double)own;
}

static void device_make(void)
{
	Pool *pool;
	char name[128];
	bool keep;

	model = *device_nominal();
	if (device_parse(env_text("RICCI_DEVICE", NULL), &model))
		return;
	pool = pool_new_apart(0, NULL);
	if (!pool)
		return;
	keep = device_name(name, sizeof name, pool_threads(pool));
	if (!keep || !(measured = device_read(name, &model))) {
		device_measure(&model, pool);
		if (keep)
			device_write(name, &model, measured = 1);
	}
	pool_free(pool);
}

/* Memory that was never used takes longest to come: it is asked for only where a graph is so large. */
static void far_make(void)
{
	char name[128];
	DeviceModel all = model;
	Pool *pool = model.pd_far > 0 ? NULL : pool_new_apart(0, NULL);

	far = model.pd_far > 0 ? model.pd_far : model.pd;
	if (!pool)
		return;
	double rate = machine_bandwidth(pool, STREAM_COPY, far_bytes(), each);
	all.pd_far = far = rate > 0 ? rate : far;
	if (measured && device_name(name, sizeof name, pool_threads(pool)))
		device_write(name, &all, measured);
	pool_free(pool);
}

/* By so much a rate is another one, and by so many seconds a launch, which takes less than one. */
static const double other = 1.25, other_launch = 1e-6;

bool device_improve(DeviceModel *kept, const DeviceModel *again)
{
	bool far = kept->pd_far > 0 && again->pd_far > 0;
	bool better = again->pd > other * kept->pd || again->pc > other * kept->pc ||
		      again->pd_core > other * kept->pd_core ||
		      (far && again->pd_far > other * kept->pd_far) ||
		      (kept->launch > other * again->launch &&
		       kept->launch - again->launch > other_launch);

	if (!better)
		return false;
	kept->pd = greatest(kept->pd, again->pd);
	kept->pc = greatest(kept->pc, again->pc);
	kept->launch = again->launch < kept->launch ? again->launch : kept->launch;
	kept->pd_far = far ? greatest(kept->pd_far, again->pd_far) : kept->pd_far;
	kept->pd_core = greatest(greatest(kept->pd_core, again->pd_core), kept->pd);
	return true;
}

/* What is kept may have been written by others meanwhile. */
void device_again(void)
{
	enum { TIMES = 5 };
	static atomic_flag done = ATOMIC_FLAG_INIT;
	char name[128];
	DeviceModel kept, again;

	if (measured < 1 || measured >= TIMES || !folder_writable() ||
	    atomic_flag_test_and_set(&done))
		return;
	Pool *pool = pool_new_apart(0, NULL);

	if (!pool)
		return;
	int times =
		device_name(name, sizeof name, pool_threads(pool)) ? device_read(name, &kept) : 0;
	if (times > 0 && times < TIMES) {
		device_measure(&again, pool);
		if (kept.pd_far > 0)
			again.pd_far = machine_bandwidth(pool, STREAM_COPY, far_bytes(), each);
		device_improve(&kept, &again);
		device_write(name, &kept, times + 1);
	}
	pool_free(pool);
}

DeviceModel device_model(double bytes)
{
	pthread_once(&once, device_make);
	DeviceModel m = model;
	if (bytes > m.near) {
		pthread_once(&far_once, far_make);
		m.pd_far = far;
	}
	return m;
}
