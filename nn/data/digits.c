/* digits.c - drawn digits: a data set that needs no download.
 * Each digit is a few strokes; a sample jitters their points, turns, scales, slants and shifts
 * them, draws them with a pen of some width, and adds noise. Invariant: sample i of a seed is the
 * same whenever and wherever it is drawn (basic arithmetic, sqrt and a fixed generator only). */
#include "nn/data/data.h"

#include <math.h>
#include <string.h>

#define SIDE 28
#define MOST 24 /* points of a stroke */

/* Points x, y in 0..99 with y downwards, two digits each; '~' a smooth curve through them, '-'
 * straight lines; strokes of a digit follow each other. */
static const char *const glyph[10] = {
	"~5005 7515 8550 7585 5095 2585 1550 2515 5005",
	"-3522 5205 5295",
	"~1828 3008 5504 7818 7640 5066 1894 -1894 8494",
	"~2014 4504 7212 7630 6045 4248 ~4248 7054 8272 7090 4296 1886",
	"-6295 6205 1468 8668",
	"-7806 2806 2446 ~2446 5038 7650 8072 6492 3896 1886",
	"~7208 4420 2448 2074 3494 5895 7680 7258 5050 2862 2176",
	"-1606 8406 4295",
	"~5048 2836 2616 5005 7416 7236 5048 2462 2082 5096 8082 7662 5048",
	"~7828 6208 3808 2426 3046 5252 7242 7924 ~7924 7660 6495",
};

typedef struct Pen {
	float image[SIDE * SIDE];
	double a, b, c, d, x, y; /* the unit square to pixels */
	double width;
} Pen;

/* Coverage falls off over one pixel at the rim of the pen; what is all inside or outside needs no
 * root. */
static void pen_line(Pen *p, double x0, double y0, double x1, double y1)
{
	double rim = p->width + 0.5, core = p->width - 0.5, dx = x1 - x0, dy = y1 - y0;
	double len = dx * dx + dy * dy, scale = len > 0 ? 1 / len : 0;
	int left = (int)fmax(0, fmin(x0, x1) - rim + 1);
	int right = (int)fmin(SIDE - 1, fmax(x0, x1) + rim);
	int top = (int)fmax(0, fmin(y0, y1) - rim + 1);
	int bottom = (int)fmin(SIDE - 1, fmax(y0, y1) + rim);
	for (int y = top; y <= bottom; y++) {
		for (int x = left; x <= right; x++) {
			double t = ((x - x0) * dx + (y - y0) * dy) * scale;
			t = t < 0 ? 0 : t > 1 ? 1 : t;
			double ex = x - x0 - t * dx, ey = y - y0 - t * dy, far = ex * ex + ey * ey;
			float *at = &p->image[y * SIDE + x];
			if (far >= rim * rim)
				continue;
			float v = far <= core * core ? 1 : (float)(rim - sqrt(far));
			*at = v > *at ? v : *at;
		}
	}
}

/* A point of the Catmull-Rom curve through b and c. */
static double curve(double a, double b, double c, double d, double t)
{
	return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

static void pen_stroke(Pen *p, int n, double (*at)[2], bool smooth)
{
	int parts = smooth ? 3 : 1;
	double x0 = at[0][0], y0 = at[0][1];
	for (int i = 0; i + 1 < n; i++) {
		const double *a = at[i ? i - 1 : 0], *b = at[i], *c = at[i + 1];
		const double *d = at[i + 2 < n ? i + 2 : n - 1];
		for (int k = 1; k <= parts; k++) {
			double t = (double)k / parts;
			double x1 = curve(a[0], b[0], c[0], d[0], t);
			double y1 = curve(a[1], b[1], c[1], d[1], t);
			pen_line(p, x0, y0, x1, y1);
			x0 = x1;
			y0 = y1;
		}
	}
}

static void pen_glyph(Pen *p, const char *s, Rng *r)
{
	while (*s) {
		bool smooth = *s++ == '~';
		double at[MOST][2];
		int n = 0;
		for (; *s && *s != '~' && *s != '-'; s += 4 + (s[4] == ' ')) {
			double x = (s[0] - '0') * 10 + (s[1] - '0') - 50 + rng_range(r, -5, 5);
			double y = (s[2] - '0') * 10 + (s[3] - '0') - 50 + rng_range(r, -5, 5);
			at[n][0] = p->a * x + p->b * y + p->x;
			at[n++][1] = p->c * x + p->d * y + p->y;
		}
		pen_stroke(p, n, at, smooth);
	}
}

/* Which digit it is: the first draw of a sample. */
static uint8_t digit_label(Rng *r)
{
	return (uint8_t)rng_below(r, 10);
}

static void digit_draw(uint8_t *out, uint64_t seed, int64_t i)
{
	Rng r = rng_make(seed, (uint64_t)i);
	int digit = digit_label(&r);
	Pen p = {0};
	/* a rotation from its half-angle tangent: exact arithmetic everywhere */
	double t = rng_range(&r, -0.15, 0.15), co = (1 - t * t) / (1 + t * t),
	       si = 2 * t / (1 + t * t);
	double w = rng_range(&r, 0.15, 0.21), h = rng_range(&r, 0.17, 0.22);
	double slant = rng_range(&r, -0.2, 0.2);
	p.a = co * w;
	p.b = (co * -slant - si) * h;
	p.c = si * w;
	p.d = (co - si * slant) * h;
	p.x = (SIDE - 1) / 2.0 + rng_range(&r, -2.5, 2.5);
	p.y = (SIDE - 1) / 2.0 + rng_range(&r, -2.5, 2.5);
	p.width = rng_range(&r, 0.8, 1.5);
	pen_glyph(&p, glyph[digit], &r);
	int noise = (int)rng_below(&r, 40);
	uint64_t bits = 0;
	for (int k = 0; k < SIDE * SIDE; k++, bits >>= 16) {
		if (k % 4 == 0)
			bits = rng_next(&r);
		int v = (int)(255 * p.image[k]) + noise * (int16_t)bits / 32768;
		out[k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
	}
}

static int digits_fill(void *filler, void *out, int64_t from, int64_t n, Error *err)
{
	(void)err;
	for (int64_t i = 0; i < n; i++)
		digit_draw((uint8_t *)out + i * SIDE * SIDE, *(uint64_t *)filler, from + i);
	return 0;
}

static int labels_fill(void *filler, void *out, int64_t from, int64_t n, Error *err)
{
	(void)err;
	for (int64_t i = 0; i < n; i++) {
		Rng r = rng_make(*(uint64_t *)filler, (uint64_t)(from + i));
		((uint8_t *)out)[i] = digit_label(&r);
	}
	return 0;
}

typedef int Fill(void *filler, void *out, int64_t from, int64_t n, Error *err);

static int digits_add(ricci_data *d, int64_t count, uint64_t seed, Field f, Fill *fill)
{
	uint64_t *filler = mem_alloc(sizeof *filler);
	if (!filler)
		return DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	*filler = seed;
	int status = filled_source(count, shape_size(f.rank, f.shape),
				   (Filler){fill, mem_free, filler}, false, &f.source, &d->err);
	return status ? status : data_add(d, count, &f);
}

ricci_data *ricci_digits(int64_t count, uint64_t seed)
{
	Field samples = {.name = "samples", .type = RICCI_U8, .rank = 2, .shape = {SIDE, SIDE}};
	Field labels = {.name = "labels", .type = RICCI_U8};
	if (count < 1 || count > UINT32_MAX) {
		error_set(ERROR_TELL, RICCI_EINVAL, "cannot draw %lld digits", (long long)count);
		return NULL;
	}
	ricci_data *d = ricci_data_new();
	int status = d ? digits_add(d, count, seed, samples, digits_fill) : RICCI_ENOMEM;
	if (!status)
		status = digits_add(d, count, seed, labels, labels_fill);
	return data_finish(d, status);
}
