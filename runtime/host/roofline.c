/* roofline.c - what bounds a kernel: arithmetic, memory or its launch (Williams, Waterman,
 * Patterson 2009, with a roof for each level of memory).
 *
 * Input: a kernel's time with the arithmetic and the bytes that its equations need, and figures of
 * the machine for as many threads. Output: the time that each resource alone would take; the
 * longest of them is what bounds the kernel, and by how much of the measured time it explains that,
 * one sees how far from the limit it runs.
 */
#include "runtime/host/host.h"
#include <math.h>

/* A level is measured half full, the last one well beyond what the caches hold. */
static bool levels_measure(Machine *m, Pool *pool, double seconds)
{
	const Target *t = target_host();
	double n = m->threads;
	const struct {
		const char *name;
		double room;
	} row[] = {{"L1", n * (double)t->l1},
		   {"L2", n * (double)t->l2},
		   {"L3", (double)t->l3},
		   {"memory", INFINITY}};
	double last = fmax(4 * fmax(row[1].room, row[2].room), 64 << 20);

	for (int i = 0; i < COUNT(row); i++) {
		Level *l = &m->level[m->nlevel];
		size_t bytes = (size_t)(isfinite(row[i].room) ? row[i].room / 2 : last);
		double read, copy;

		if (m->nlevel && row[i].room <= l[-1].room) /* it is not there */
			continue;
		read = machine_bandwidth(pool, STREAM_READ, bytes, seconds);
		copy = machine_bandwidth(pool, STREAM_COPY, bytes, seconds);
		if (!(read > 0 && copy > 0))
			return false;
		/* A copy reads and writes; what reading does not explain is the writing. */
		*l = (Level){row[i].name, row[i].room, 1 / read, fmax(2 / copy - 1 / read, 0)};
		m->nlevel++;
	}
	return true;
}

int machine_measure(Machine *m, int threads, double seconds, Error *err)
{
	Pool *pool = pool_new(threads, err);
	bool good;

	*m = (Machine){0};
	if (!pool)
		return RICCI_ENOMEM;
	m->threads = pool_threads(pool);
	m->f32 = machine_flops(pool, RICCI_F32, seconds);
	m->f64 = machine_flops(pool, RICCI_F64, seconds);
	m->launch = machine_launch(pool, seconds);
	good = levels_measure(m, pool, seconds);
	pool_free(pool);
	return good ? 0 : error_set(err, RICCI_ENOMEM, "out of memory to measure bandwidth");
}

Roofline roofline_of(const Machine *m, const KernelTime *k)
{
	double bytes = k->read + k->written, peak = k->type == RICCI_F64 ? m->f64 : m->f32;
	const Level *l = m->level;
	Roofline r = {.gflops = 1e-9 * k->flops / k->seconds,
		      .gbytes = 1e-9 * bytes / k->seconds,
		      .intensity = k->flops / bytes,
		      .peak = 1e-9 * peak,
		      .compute = k->flops / peak,
		      .launch = m->launch,
		      .bound = "launch"};
	double longest = r.launch;

	while (bytes > l->room)
		l++;
	r.memory = k->read * l->read + k->written * l->write;
	r.bandwidth = 1e-9 * bytes / r.memory;
	if (r.memory > longest) {
		longest = r.memory;
		r.bound = l->name;
	}
	if (r.compute > longest) {
		longest = r.compute;
		r.bound = "compute";
	}
	r.share = longest / k->seconds;
	return r;
}
