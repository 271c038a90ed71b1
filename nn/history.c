/* history.c - what happened in a training, and its picture.
 * Input: the loss of each step, the errors of each epoch. Output: loss.svg.
 * Invariant: at most HISTORY_POINTS points however long the training: when they are full,
 * neighbours are merged and each point stands for twice as many steps. */
#include "nn/nn.h"

#include <math.h>
#include <string.h>

void history_add(History *h, uint64_t step, double loss)
{
	if (h->every < 1)
		h->every = 1;
	h->sum += loss;
	h->count++;
	if (h->count < h->every)
		return;
	if (h->npoint == HISTORY_POINTS) {
		for (int i = 0; i < HISTORY_POINTS / 2; i++) {
			h->point[i][0] = h->point[2 * i + 1][0];
			h->point[i][1] = (h->point[2 * i][1] + h->point[2 * i + 1][1]) / 2;
		}
		h->npoint = HISTORY_POINTS / 2;
		h->every *= 2;
		if (h->count < h->every)
			return;
	}
	h->point[h->npoint][0] = (double)step;
	h->point[h->npoint++][1] = h->sum / h->count;
	h->sum = h->count = 0;
}

int history_epoch(History *h, HistoryEpoch e)
{
	HistoryEpoch *epoch = mem_grow(h->epoch, h->nepoch, &h->room, sizeof *epoch);
	if (!epoch)
		return RICCI_ENOMEM;
	h->epoch = epoch;
	h->epoch[h->nepoch++] = e;
	return 0;
}

void history_free(History *h)
{
	mem_free(h->epoch);
	*h = (History){0};
}

/* ---- the picture: two panels over one axis of steps */
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

static void draw_frame(Text *t, const Axis *x, const Axis *y, const char *title, const char *unit)
{
	text_add(t, "<text x=\"%d\" y=\"%.0f\" class=\"title\">%s</text>\n", LEFT, y->to - 14,
		 title);
	for (double v = y->low; v <= y->high * (1 + 1e-9); v = axis_next(y, v))
		text_add(t,
			 "<path d=\"M%d %.1fH%d\" class=\"grid\"/><text x=\"%d\" y=\"%.1f\" "
			 "text-anchor=\"end\">%g%s</text>\n",
			 LEFT, axis_at(y, v), WIDTH - RIGHT, LEFT - 8, axis_at(y, v) + 4, v, unit);
	for (double v = x->low; v <= x->high * (1 + 1e-9); v = axis_next(x, v))
		text_add(t,
			 "<path d=\"M%.1f %.1fv6\" class=\"axis\"/><text x=\"%.1f\" y=\"%.1f\" "
			 "text-anchor=\"middle\">%.0f</text>\n",
			 axis_at(x, v), y->from, axis_at(x, v), y->from + 20, v);
	text_add(t, "<path d=\"M%d %.1fV%.1fH%d\" class=\"axis\"/>\n", LEFT, y->to, y->from,
		 WIDTH - RIGHT);
}

static void draw_losses(Text *t, const History *h, const Axis *x)
{
	double top = 0, least = INFINITY;
	for (int i = 0; i < h->npoint; i++) {
		top = fmax(top, h->point[i][1]);
		least = fmin(least, h->point[i][1]);
	}
	Axis y = least > 0 && top > 8 * least ? axis_make_log(least, top, TOP + PANEL, TOP)
					      : axis_make(0, top > 0 ? top : 1, TOP + PANEL, TOP);
	draw_frame(t, x, &y, "loss", "");
	text_add(t, "<polyline class=\"pale\" points=\"");
	for (int i = 0; i < h->npoint; i++)
		text_add(t, "%.1f,%.1f ", axis_at(x, h->point[i][0]), axis_at(&y, h->point[i][1]));
	text_add(t, "\"/>\n<polyline class=\"loss\" points=\"");
	for (int i = 0; i < h->npoint; i++) { /* the mean of up to nine points around it */
		int reach = i < 4 ? i : h->npoint - 1 - i < 4 ? h->npoint - 1 - i : 4;
		double sum = 0;
		for (int k = i - reach; k <= i + reach; k++)
			sum += h->point[k][1];
		text_add(t, "%.1f,%.1f ", axis_at(x, h->point[i][0]),
			 axis_at(&y, sum / (2 * reach + 1)));
	}
	text_add(t, "\"/>\n");
}

static double epoch_error(const HistoryEpoch *e, bool test)
{
	return test ? e->test_error : e->train_error;
}

static void draw_series(Text *t, const History *h, const Axis *x, const Axis *y, bool test)
{
	const char *name = test ? "test" : "train";
	text_add(t, "<polyline class=\"%s\" points=\"", name);
	for (int i = 0; i < h->nepoch; i++)
		if (epoch_error(&h->epoch[i], test) >= 0)
			text_add(t, "%.1f,%.1f ", axis_at(x, h->epoch[i].step),
				 axis_at(y, 100 * epoch_error(&h->epoch[i], test)));
	text_add(t, "\"/>\n");
	for (int i = 0; i < h->nepoch; i++)
		if (epoch_error(&h->epoch[i], test) >= 0)
			text_add(t, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
				 name, axis_at(x, h->epoch[i].step),
				 axis_at(y, 100 * epoch_error(&h->epoch[i], test)));
	text_add(t, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\" class=\"%s-name\">%s</text>\n",
		 WIDTH - RIGHT - (test ? 0 : 50), y->to - 14, name, name);
}

static void draw_errors(Text *t, const History *h, const Axis *x)
{
	double top = 0, from = TOP + 2 * PANEL + GAP;
	for (int i = 0; i < h->nepoch; i++)
		top = fmax(top, 100 * fmax(h->epoch[i].train_error, h->epoch[i].test_error));
	Axis y = axis_make(0, top > 0 ? top : 1, from, from - PANEL);
	draw_frame(t, x, &y, "errors after each epoch", "%");
	draw_series(t, h, x, &y, false);
	draw_series(t, h, x, &y, true);
}

int history_draw(const History *h, const char *path, Error *err)
{
	double last = h->npoint ? h->point[h->npoint - 1][0] : 1;
	int height = TOP + PANEL + 50 + (h->nepoch ? PANEL + GAP : 0);
	Text t = {0};
	text_add(&t,
		 "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		 "height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n<style>"
		 "text{fill:#444}.title{font-size:15px;font-weight:bold}"
		 ".grid{stroke:#e4e4e4}.axis{stroke:#444;fill:none}polyline{fill:none;stroke-width:"
		 "2}"
		 ".pale{stroke:#b9d0ea;stroke-width:1}.loss{stroke:#1f5fa8}"
		 "polyline.train{stroke:#1f5fa8}polyline.test{stroke:#c8501e}"
		 "circle.train,.train-name{fill:#1f5fa8}circle.test,.test-name{fill:#c8501e}"
		 "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		 WIDTH, height, WIDTH, height, WIDTH, height);
	Axis x = axis_make(0, last, LEFT, WIDTH - RIGHT);
	x.high = last > 0 ? last : 1; /* the curve fills the width; the last tick may lie inside */
	draw_losses(&t, h, &x);
	if (h->nepoch)
		draw_errors(&t, h, &x);
	text_add(&t, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n</svg>\n",
		 (LEFT + WIDTH - RIGHT) / 2, height - 8);
	int status = t.failed ? error_set(err, RICCI_ENOMEM, "out of memory")
			      : file_replace(path, false, &(Bytes){t.s, t.n}, 1, err);
	text_free(&t);
	return status;
}
