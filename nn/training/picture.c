/* picture.c - the curves of a training as SVG.
 * Input: a history and its columns. Output: panels, one below the other, over one axis of steps:
 * loss, errors, each metric, learning rate, time of a step. A panel without values is left out. */
#include "nn/training/internal.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 800, LEFT = 80, RIGHT = 30, TOP = 50, PANEL = 240, GAP = 60 };

typedef struct Axis {
	double low, high, tick; /* of the values */
	double from, to;	/* in the picture */
	bool log; /* ticks are then 1, 2, 5, 10, 20, .. times the lowest power of ten */
} Axis;

/* Ticks of 1, 2 or 5 times a power of ten, about five of them; the axis ends on one. */
static Axis axis_make(double low, double high, double from, double to)
{
	double range = high > low ? high - low : 1, tick = pow(10, floor(log10(range / 5)));
	while (range / tick > 6)
		tick *= range / tick > 30 ? 5 : 2;
	return (Axis){low, low + ceil(range / tick - 1e-9) * tick, tick, from, to, false};
}

/* The next tick after v. */
static double axis_next(const Axis *a, double v)
{
	if (!a->log)
		return v + a->tick;
	double power = pow(10, floor(log10(v * 1.01))), first = v / power;
	return power * (first < 1.5 ? 2 : first < 3 ? 5 : 10);
}

/* For values of a wide range, all positive: from tick to tick. */
static Axis axis_make_log(double low, double high, double from, double to)
{
	Axis a = {pow(10, floor(log10(low))), 0, 0, from, to, true};
	while (axis_next(&a, a.low) <= low)
		a.low = axis_next(&a, a.low);
	for (a.high = a.low; a.high < high;)
		a.high = axis_next(&a, a.high);
	return a;
}

static double axis_at(const Axis *a, double v)
{
	double t = a->log ? log(v / a->low) / log(a->high / a->low)
			  : (v - a->low) / (a->high - a->low);
	t = t < 0 ? 0 : t > 1 ? 1 : t;
	return a->from + t * (a->to - a->from);
}

/* ---- panels */
enum { PANELS = METRICS + 2, SERIES = 3 };
typedef struct Panel {
	char title[COLUMN_NAME + 32];
	const char *unit;
	double scale;	    /* of values to what is shown */
	const Curve *curve; /* or NULL */
	bool smooth;	    /* the curve, and its mean over neighbours */
	int column[SERIES]; /* of records; -1: none. Of training, test and validation */
} Panel;
typedef struct Range {
	double low, high; /* low > high: there are no values */
} Range;
static const char *const series_name[SERIES] = {"train", "test", "validation"};

static double record_step(const History *h, int i)
{
	return h->record[(size_t)i * (size_t)(HISTORY_KEYS + h->ncolumn) + 1];
}

static double record_value(const History *h, int i, int column)
{
	return h->record[(size_t)i * (size_t)(HISTORY_KEYS + h->ncolumn) + HISTORY_KEYS +
			 (size_t)column];
}

static void range_add(Range *r, double v)
{
	if (!isfinite(v))
		return;
	r->low = fmin(r->low, v);
	r->high = fmax(r->high, v);
}

static Range panel_range(const Panel *p, const History *h)
{
	Range r = {INFINITY, -INFINITY};
	for (int i = 0; p->curve && i < p->curve->npoint; i++)
		range_add(&r, p->scale * p->curve->point[i][1]);
	for (int s = 0; s < SERIES; s++)
		for (int i = 0; p->column[s] >= 0 && i < h->nrecord; i++)
			range_add(&r, p->scale * record_value(h, i, p->column[s]));
	return r;
}

/* Logarithmic where all is positive and of a wide range; else with 0, unless far from it. */
static Axis panel_axis(Range r, double from, double to)
{
	if (r.low > 0 && r.high > 8 * r.low)
		return axis_make_log(r.low, r.high, from, to);
	double margin = r.high - r.low;
	if (r.low >= 0 && r.low <= 2 * margin)
		return axis_make(0, r.high > 0 ? r.high : 1, from, to);
	Axis a = axis_make(r.low, r.high, from, to);
	double low = floor(r.low / a.tick) * a.tick;
	return axis_make(low, r.high, from, to);
}

static void draw_frame(Text *t, const Axis *x, const Axis *y, const Panel *p)
{
	text_add(t, "<text x=\"%d\" y=\"%.0f\" class=\"title\">%s</text>\n", LEFT, y->to - 14,
		 p->title);
	for (double v = y->low; v <= y->high + 1e-9 * (fabs(y->high) + y->tick);
	     v = axis_next(y, v)) {
		double shown = fabs(v) < 1e-9 * y->tick ? 0 : v;
		text_add(t,
			 "<path d=\"M%d %.1fH%d\" class=\"grid\"/><text x=\"%d\" y=\"%.1f\" "
			 "text-anchor=\"end\">%g%s</text>\n",
			 LEFT, axis_at(y, v), WIDTH - RIGHT, LEFT - 8, axis_at(y, v) + 4, shown,
			 p->unit);
	}
	for (double v = x->low; v <= x->high * (1 + 1e-9); v = axis_next(x, v))
		text_add(t,
			 "<path d=\"M%.1f %.1fv6\" class=\"axis\"/><text x=\"%.1f\" y=\"%.1f\" "
			 "text-anchor=\"middle\">%.0f</text>\n",
			 axis_at(x, v), y->from, axis_at(x, v), y->from + 20, v);
	text_add(t, "<path d=\"M%d %.1fV%.1fH%d\" class=\"axis\"/>\n", LEFT, y->to, y->from,
		 WIDTH - RIGHT);
}

/* Each point the mean of up to `reach` points on either side. */
static void draw_curve(Text *t, const Panel *p, const char *class, int reach, const Axis *x,
		       const Axis *y)
{
	const Curve *c = p->curve;
	text_add(t, "<polyline class=\"%s\" points=\"", class);
	for (int i = 0; i < c->npoint; i++) {
		int most = i < reach ? i : reach;
		double sum = 0;
		if (c->npoint - 1 - i < most)
			most = c->npoint - 1 - i;
		for (int k = i - most; k <= i + most; k++)
			sum += c->point[k][1];
		text_add(t, "%.1f,%.1f ", axis_at(x, c->point[i][0]),
			 axis_at(y, p->scale * sum / (2 * most + 1)));
	}
	text_add(t, "\"/>\n");
}

/* false: there are no values. */
static bool draw_series(Text *t, const Panel *p, int s, const History *h, const Axis *x,
			const Axis *y, int place)
{
	int n = 0;
	for (int pass = 0; pass < 2; pass++) {
		if (!pass)
			text_add(t, "<polyline class=\"%s\" points=\"", series_name[s]);
		for (int i = 0; i < h->nrecord; i++) {
			double v = p->scale * record_value(h, i, p->column[s]);
			if (!isfinite(v))
				continue;
			n++;
			double left = axis_at(x, record_step(h, i)), top = axis_at(y, v);
			if (!pass)
				text_add(t, "%.1f,%.1f ", left, top);
			else
				text_add(t,
					 "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" "
					 "r=\"3\"/>\n",
					 series_name[s], left, top);
		}
		if (!pass)
			text_add(t, "\"/>\n");
	}
	if (n)
		text_add(t,
			 "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\" "
			 "class=\"%s-name\">%s</text>\n",
			 WIDTH - RIGHT - 80 * place, y->to - 14, series_name[s], series_name[s]);
	return n > 0;
}

static void panel_draw(Text *t, const Panel *p, const History *h, const Axis *x, Range r,
		       double from)
{
	Axis y = panel_axis(r, from, from - PANEL);
	int place = 0;
	draw_frame(t, x, &y, p);
	if (p->curve && p->curve->npoint) {
		draw_curve(t, p, p->smooth ? "pale" : "train", 0, x, &y);
		if (p->smooth)
			draw_curve(t, p, "train", 4, x, &y);
	}
	for (int s = SERIES; s--;)
		if (p->column[s] >= 0 && draw_series(t, p, s, h, x, &y, place))
			place++;
}

static int panels_make(Panel *panel, const History *h, const Columns *c, const Measures *m)
{
	int n = 0;
	for (int i = 0; i < m->n; i++) {
		bool percent = m->m[i].how == RICCI_PERCENT, loss = !strcmp(m->m[i].name, "loss");
		Panel *p = &panel[n++];
		*p = (Panel){.unit = percent ? "%" : "", .scale = percent ? 100 : 1};
		snprintf(p->title, sizeof p->title, "%s", loss ? "loss" : m->m[i].name);
		if (!strcmp(m->m[i].name, "error"))
			snprintf(p->title, sizeof p->title, "errors");
		for (int s = 0; s < SERIES; s++)
			p->column[s] = column_of(c, (Occasion)s, i);
		if (!loss)
			continue;
		p->curve = &h->loss;
		p->smooth = true;
		p->column[DURING_TRAINING] = -1; /* the curve has its steps */
	}
	Panel none = {.unit = "", .scale = 1, .column = {-1, -1, -1}};
	panel[n] = panel[n + 1] = none;
	snprintf(panel[n].title, sizeof panel[n].title, "learning rate");
	panel[n++].curve = &h->rate;
	snprintf(panel[n].title, sizeof panel[n].title, "time of a step");
	panel[n].unit = " ms";
	panel[n].scale = 1e3;
	panel[n].smooth = true;
	panel[n++].curve = &h->seconds;
	return n;
}

static double last_step(const History *h)
{
	double last = h->loss.npoint ? h->loss.point[h->loss.npoint - 1][0] : 1;
	return h->nrecord ? fmax(last, record_step(h, h->nrecord - 1)) : last;
}

int picture_draw(const History *h, const Columns *c, const Measures *m, const char *path,
		 Error *err)
{
	Panel panel[PANELS];
	Range range[PANELS];
	int n = 0, all = panels_make(panel, h, c, m);
	for (int i = 0; i < all; i++) {
		range[n] = panel_range(&panel[i], h);
		if (range[n].low <= range[n].high)
			panel[n++] = panel[i];
	}
	int height = TOP + n * (PANEL + GAP) - GAP + 50;
	Text t = {0};
	text_add(&t,
		 "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		 "height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n<style>"
		 "text{fill:#444}.title{font-size:15px;font-weight:bold}"
		 ".grid{stroke:#e4e4e4}.axis{stroke:#444;fill:none}polyline{fill:none;stroke-width:"
		 "2}polyline.pale{stroke:#b9d0ea;stroke-width:1}"
		 "polyline.train{stroke:#1f5fa8}polyline.test{stroke:#c8501e}"
		 "polyline.validation{stroke:#2e8b57}circle.train,.train-name{fill:#1f5fa8}"
		 "circle.test,.test-name{fill:#c8501e}"
		 "circle.validation,.validation-name{fill:#2e8b57}"
		 "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		 WIDTH, height, WIDTH, height, WIDTH, height);
	double last = last_step(h);
	Axis x = axis_make(0, last, LEFT, WIDTH - RIGHT);
	x.high = last > 0 ? last : 1; /* the curve fills the width; the last tick may lie inside */
	for (int i = 0; i < n; i++)
		panel_draw(&t, &panel[i], h, &x, range[i], TOP + PANEL + i * (PANEL + GAP));
	text_add(&t, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n</svg>\n",
		 (LEFT + WIDTH - RIGHT) / 2, height - 8);
	int status = t.failed ? error_set(err, RICCI_ENOMEM, "out of memory")
			      : file_replace(path, false, &(Bytes){t.s, t.n}, 1, err);
	text_free(&t);
	return status;
}
