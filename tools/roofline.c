/* roofline.c - `--time --roofline`: each kernel against what the machine can do, as a table and in
 * the JSON. The figures of the machine are measured just after the kernels ran. */
#include "tools/tool.h"

#include <string.h>

static const double each = 0.05; /* seconds for a figure of the machine */

typedef struct Row {
	KernelTime time;
	char *text;
	Text schedule;
} Row;
struct RooflineReport {
	int n;
	Row *row;
	Machine machine[2]; /* one thread; all */
};

RooflineReport *roofline_open(void)
{
	return take(mem_zalloc(sizeof(RooflineReport)));
}

void roofline_add(void *report, const KernelTime *k)
{
	RooflineReport *r = report;
	r->row = take(mem_realloc(r->row, (size_t)(r->n + 1) * sizeof *r->row));
	Row *row = &r->row[r->n++];
	*row = (Row){.time = *k, .text = take(mem_strdup(k->text))};
	schedule_print(&row->schedule, k->schedule);
	row->time.text = row->text;
	row->time.schedule = NULL;
}

void roofline_close(RooflineReport *r)
{
	for (int k = 0; k < r->n; k++) {
		mem_free(r->row[k].text);
		text_free(&r->row[k].schedule);
	}
	mem_free(r->row);
	mem_free(r);
}

static const Machine *machine_of(RooflineReport *r, int threads)
{
	Machine *m = &r->machine[threads > 1];
	Error e = {0};
	if (!m->threads)
		check(machine_measure(m, threads, each, &e), &e);
	return m;
}

static void put_machine(Text *out, const Machine *m)
{
	text_add(out, "%d thread%s: %.4g GFLOP/s f32, %.4g f64; launch %.3g us; GB/s read, copied:",
		 m->threads, m->threads > 1 ? "s" : "", 1e-9 * m->f32, 1e-9 * m->f64,
		 1e6 * m->launch);
	for (int k = 0; k < m->nlevel; k++)
		text_add(out, "%s %s %.3g, %.3g", k ? ";" : "", m->level[k].name,
			 1e-9 / m->level[k].read, 2e-9 / (m->level[k].read + m->level[k].write));
	text_add(out, "\n");
}

/* The lines of the equations, each after a tab. */
static void put_equations(Text *out, const char *s)
{
	for (; *s; s += strcspn(s, "\n"), s += *s == '\n')
		text_add(out, "\t%.*s\n", (int)strcspn(s, "\n"), s);
}

void roofline_table(Text *out, RooflineReport *r)
{
	text_add(out,
		 "kernel   launches         ms    GFLOP/s       GB/s  flop/byte  bound by   of "
		 "it  backend, threads\n");
	for (int k = 0; k < r->n; k++) {
		const KernelTime *t = &r->row[k].time;
		Roofline f = roofline_of(machine_of(r, t->threads), t);
		text_add(out, "%6d %10.4g %10.4g %10.4g %10.4g %10.4g  %-8s %4.0f%%  %s, %d\n",
			 k + 1, t->launches, 1e3 * t->seconds, f.gflops, f.gbytes, f.intensity,
			 f.bound, 100 * f.share, t->backend->name, t->threads);
		put_equations(out, t->text);
		if (r->row[k].schedule.n)
			text_add(out, "\t(%s)\n", r->row[k].schedule.s);
	}
	for (int k = 0; k < 2; k++)
		if (r->machine[k].threads)
			put_machine(out, &r->machine[k]);
}

static void put_string(Text *out, const char *s)
{
	text_add(out, "\"");
	for (; *s; s++)
		if (*s == '\n')
			text_add(out, "\\n");
		else
			text_add(out, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	text_add(out, "\"");
}

static void put_machine_json(Text *out, const Machine *m)
{
	text_add(out,
		 "{\"threads\": %d, \"f32_gflops\": %.5g, \"f64_gflops\": %.5g, \"launch_us\": "
		 "%.4g, \"levels\": [",
		 m->threads, 1e-9 * m->f32, 1e-9 * m->f64, 1e6 * m->launch);
	for (int k = 0; k < m->nlevel; k++)
		text_add(out,
			 "%s{\"name\": \"%s\", \"read_gbytes_per_s\": %.4g, "
			 "\"copy_gbytes_per_s\": %.4g}",
			 k ? ", " : "", m->level[k].name, 1e-9 / m->level[k].read,
			 2e-9 / (m->level[k].read + m->level[k].write));
	text_add(out, "]}");
}

void roofline_json(Text *out, RooflineReport *r)
{
	text_add(out, ", \"kernels\": [");
	for (int k = 0; k < r->n; k++) {
		const KernelTime *t = &r->row[k].time;
		Roofline f = roofline_of(machine_of(r, t->threads), t);
		text_add(out, "%s{\"equations\": ", k ? ", " : "");
		put_string(out, t->text);
		text_add(out, ", \"schedule\": ");
		put_string(out, r->row[k].schedule.s ? r->row[k].schedule.s : "");
		text_add(
			out,
			", \"backend\": \"%s\", \"threads\": %d, \"launches\": %.6g, \"ms\": %.6g, "
			"\"flops\": %.15g, \"read\": %.15g, \"written\": %.15g, \"gflops\": %.4g, "
			"\"gbytes_per_s\": %.4g, \"flops_per_byte\": %.4g, \"bound\": \"%s\", "
			"\"share\": %.4g}",
			t->backend->name, t->threads, t->launches, 1e3 * t->seconds, t->flops,
			t->read, t->written, f.gflops, f.gbytes, f.intensity, f.bound, f.share);
	}
	text_add(out, "], \"machine\": [");
	for (int k = 0, n = 0; k < 2; k++)
		if (r->machine[k].threads) {
			text_add(out, n++ ? ", " : "");
			put_machine_json(out, &r->machine[k]);
		}
	text_add(out, "]");
}
