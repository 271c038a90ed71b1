/* tune.c - `ricci tune`: searches schedules for an expression's kernels, shows how it goes, and
 * draws the best so far. What it finds stays in the cache. */
#include "tools/tool.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 760, HEIGHT = 400, LEFT = 60, TOP = 40, BOTTOM = 50, RIGHT = 20 };

typedef struct Mark { /* the best of a kernel at a time */
	int kernel;
	double spent, part; /* part of the time it took at first */
} Mark;
typedef struct Show {
	bool terminal;
	bool lost; /* the best of some kernel could not be kept */
	double seconds;
	int n, room;
	Mark *mark;
	Text out;
} Show;

static void show_bar(const Show *s, int k, int n, double spent, const TuneReport *r)
{
	char bar[41];
	int full = (int)(fmin(1, spent / s->seconds) * 40);

	memset(bar, '.', sizeof bar - 1);
	memset(bar, '#', (size_t)full);
	bar[40] = 0;
	fprintf(stderr, "\rkernel %d of %d [%s] %3.0f s  %d schedules, %.4g -> %.4g ms\033[K",
		k + 1, n, bar, spent, r->tried, 1e3 * r->first, 1e3 * r->seconds);
}

static void show_kernel(Show *s, int k, int n, const TuneReport *r)
{
	text_add(
		&s->out,
		"kernel %d of %d, %.0f%% of the time: %.4g -> %.4g ms, %.4g GFLOP/s, %.4g GB/s; %d "
		"schedules, %d of no use\n\t",
		k + 1, n, 100 * r->share, 1e3 * r->first, 1e3 * r->seconds,
		r->flops / r->seconds * 1e-9, r->bytes / r->seconds * 1e-9, r->tried, r->failed);
	schedule_print(&s->out, &r->best);
	text_add(&s->out, "\n");
	if (r->failed == r->tried && *r->refused)
		text_add(&s->out, "\tnone could be used, the first because: %s\n", r->refused);
	s->lost |= !r->kept;
}

static bool show(void *user, int k, int n, double spent, bool done, const TuneReport *r)
{
	Show *s = user;

	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 256;
		s->mark = take(mem_realloc(s->mark, (size_t)s->room * sizeof *s->mark));
	}
	s->mark[s->n++] = (Mark){k, spent, r->seconds / r->first};
	if (s->terminal)
		show_bar(s, k, n, spent, r);
	if (done)
		show_kernel(s, k, n, r);
	return false;
}

/* Each kernel's best time, as a part of the time that it took at first, over the seconds spent. */
static void draw(const Show *s, Text *t)
{
	double last = s->n ? s->mark[s->n - 1].spent : 1;
	double wide = WIDTH - LEFT - RIGHT, high = HEIGHT - TOP - BOTTOM;

	text_add(
		t,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n<style>text{fill:#444}"
		"path{fill:none;stroke:#ddd}polyline{fill:none;stroke:#1f5fa8;stroke-width:2}</"
		"style>"
		"\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"24\" "
		"font-weight=\"bold\">best time of each kernel, of its first</text>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
	for (int i = 0; i <= 4; i++)
		text_add(t,
			 "<path d=\"M%d %.0fH%d\"/><text x=\"%d\" y=\"%.0f\" "
			 "text-anchor=\"end\">%d%%</text><text x=\"%.0f\" y=\"%d\" "
			 "text-anchor=\"middle\">%.3g s</text>\n",
			 LEFT, TOP + high * i / 4, WIDTH - RIGHT, LEFT - 8, TOP + high * i / 4 + 4,
			 100 - 25 * i, LEFT + wide * i / 4, HEIGHT - BOTTOM + 20, last * i / 4);
	for (int i = 0; i < s->n; i++) {
		const Mark *m = &s->mark[i];
		bool first = !i || m[-1].kernel != m->kernel;
		double before = first ? 1 : m[-1].part, x = LEFT + wide * m->spent / last;

		if (first)
			text_add(t, "<polyline points=\"%.1f,%d ",
				 LEFT + wide * (i ? m[-1].spent : 0) / last, TOP);
		text_add(t, "%.1f,%.1f %.1f,%.1f ", x, TOP + high * (1 - before), x,
			 TOP + high * (1 - m->part));
		if (i + 1 == s->n || m[1].kernel != m->kernel)
			text_add(t, "\"/>\n");
	}
	text_add(t, "</svg>\n");
}

/* Before a search, not behind it. */
static void picture_check(const char *path)
{
	FILE *f = fopen(path, "a");

	if (!f || fclose(f))
		die(STATUS_WRONG, "%s: %s", path, strerror(errno));
}

static void picture_write(const char *path, const Text *t)
{
	FILE *f = t->failed ? NULL : fopen(path, "w");
	bool good = f && fwrite(t->s, 1, t->n, f) == t->n;

	if (f && fclose(f))
		good = false;
	if (!good)
		die(STATUS_WRONG, "%s: %s", path, t->failed ? "out of memory" : strerror(errno));
}

/* What may be other than expected, on stderr: the search is of less use than it could be. */
static void remark(const char *what, const char *why)
{
	fprintf(stderr, "ricci: %s: %s\n", what, why);
}

static void remark_lost(void)
{
	Error e = {0};

	if (cache_check(&e))
		remark("what was found is not kept", e.text);
	else
		remark("what was found can't be kept in", cache_folder());
}

int command_tune(const Options *o)
{
	Job j;
	Gradient d = {0};
	Error e = {0};
	Show s = {.terminal = isatty(STDERR_FILENO), .seconds = o->seconds};
	Tuning t = {o->backend, o->threads, o->seconds, o->strategy, 1, show, &s};
	char why[256] = "";

	job_open(&j, o);
	if (o->grad.n)
		gradient_open(&d, &j, &o->grad);
	if (o->backend && !o->backend->available(why, sizeof why))
		die(STATUS_WRONG, "backend %s can't be used: %s", o->backend->name, why);
	if (!o->backend && !backend_find("cc")->available(why, sizeof why))
		remark("backend cc, whose kernels are the fastest, can't be used", why);
	if (o->picture)
		picture_check(o->picture);
	Node **roots = nodes_of(o->grad.n ? d.n : j.nresult, o->grad.n ? d.value : j.result);
	check(tune(&j.g->ir, o->grad.n ? d.n : j.nresult, roots, &t, &e), &e);
	if (s.terminal)
		fputs("\r\033[K", stderr);
	if (s.lost)
		remark_lost();
	if (!s.n)
		text_add(&s.out, "nothing to search: the backend has no schedules\n");
	if (o->picture) {
		Text picture = {0};
		draw(&s, &picture);
		picture_write(o->picture, &picture);
		text_free(&picture);
	}
	mem_free(roots);
	mem_free(s.mark);
	gradient_close(&d);
	job_close(&j);
	report_flush(&s.out);
	return STATUS_OK;
}
