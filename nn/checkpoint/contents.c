/* contents.c - what a checkpoint holds beside tensors: the position in the data and the history.
 * Input and output: an open HDF5 file. */
#include "nn/checkpoint/internal.h"

#include <string.h>

/* ---- writing */

/* The numbers of a position, in one place for both directions. */
typedef struct Field {
	const char *name;
	size_t offset;
	bool real;
} Field;
#define FIELD(name, real)                                                                          \
	{                                                                                          \
#name, offsetof(ricci_position, name), real                                        \
	}
static const Field field[] = {FIELD(step, false),  FIELD(seed, false),	  FIELD(epoch, false),
			      FIELD(index, false), FIELD(loss_sum, true), FIELD(batches, false),
			      FIELD(wrong, false)};

bool put_position(hid_t file, const ricci_position *p, uint64_t fingerprint)
{
	char hex[24];
	uint64_t random[2] = {p->seed, p->step};
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)fingerprint);
	bool ok = h5_text_put(file, "ricci_version", ricci_version()) &&
		  h5_text_put(file, "fingerprint", hex) &&
		  h5_attribute_put(file, "random_state", *h5.T_NATIVE_UINT64, 2, random);
	for (int i = 0; i < COUNT(field) && ok; i++)
		ok = h5_attribute_put(file, field[i].name,
				      field[i].real ? *h5.T_NATIVE_DOUBLE : *h5.T_NATIVE_UINT64, 1,
				      (const char *)p + field[i].offset);
	return ok;
}

static bool put_curve(hid_t file, const char *name, const Curve *c)
{
	char path[48];
	snprintf(path, sizeof path, "/history/%s", name);
	hsize_t points[2] = {(hsize_t)c->npoint, 2};
	double open[3] = {c->every, c->sum, c->count};
	snprintf(path, sizeof path, "history_%s", name);
	bool ok = h5_attribute_put(file, path, *h5.T_NATIVE_DOUBLE, 3, open);
	snprintf(path, sizeof path, "/history/%s", name);
	return ok && (!c->npoint || h5_data_put(file, path, RICCI_F64, 2, points, c->point, 0));
}

bool put_history(hid_t file, const History *h)
{
	char names[COLUMNS * (COLUMN_NAME + 1) + 16];
	size_t n = (size_t)snprintf(names, sizeof names, "epoch,step");
	hsize_t records[2] = {(hsize_t)h->nrecord, (hsize_t)(HISTORY_KEYS + h->ncolumn)};
	for (int i = 0; i < h->ncolumn; i++)
		n += (size_t)snprintf(names + n, sizeof names - n, ",%s", h->column[i]);
	const double watch[4] = {h->watch.best, h->watch.step, h->watch.since, h->watch.validated};
	bool ok =
		put_curve(file, "loss", &h->loss) && put_curve(file, "rate", &h->rate) &&
		h5_text_put(file, "history_columns", names) &&
		h5_attribute_put(file, "watch", *h5.T_NATIVE_DOUBLE, 4, watch) &&
		h5_attribute_put(file, "metric_sums", *h5.T_NATIVE_DOUBLE, METRICS, h->sums.sum) &&
		h5_attribute_put(file, "metric_counts", *h5.T_NATIVE_DOUBLE, METRICS,
				 h->sums.count);
	if (h->nrecord && ok)
		ok = h5_data_put(file, "/history/records", RICCI_F64, 2, records, h->record, 0);
	return ok;
}

/* ---- reading */

int get_position(hid_t file, const char *path, ricci_position *p, char hex[24], Error *err)
{
	const char *missing = h5_text_get(file, "fingerprint", hex, 24) ? NULL : "fingerprint";
	uint64_t random[2];
	if (!missing && !h5_attribute_get(file, "random_state", *h5.T_NATIVE_UINT64, 2, random))
		missing = "random_state";
	for (int i = 0; i < COUNT(field) && !missing; i++)
		if (!h5_attribute_get(file, field[i].name,
				      field[i].real ? *h5.T_NATIVE_DOUBLE : *h5.T_NATIVE_UINT64, 1,
				      (char *)p + field[i].offset))
			missing = field[i].name;
	if (!missing && (random[0] != p->seed || random[1] != p->step))
		missing = "random_state that fits seed and step";
	if (missing)
		return error_set(err, RICCI_EFORMAT,
				 "%s is not a checkpoint: it has no attribute %s", path, missing);
	return 0;
}

static void get_curve(hid_t file, const char *name, Curve *c)
{
	char path[48];
	double open[3];
	snprintf(path, sizeof path, "/history/%s", name);
	double *points = h5_rows_get(file, path, 2, HISTORY_POINTS, &c->npoint);
	if (points)
		memcpy(c->point, points, (size_t)c->npoint * sizeof *c->point);
	mem_free(points);
	snprintf(path, sizeof path, "history_%s", name);
	if (h5_attribute_get(file, path, *h5.T_NATIVE_DOUBLE, 3, open) && open[0] >= 1) {
		c->every = open[0];
		c->sum = open[1];
		c->count = open[2];
	}
}

void get_history(hid_t file, History *h)
{
	char names[COLUMNS * (COLUMN_NAME + 1) + 16], *rest = names;
	double watch[4];
	get_curve(file, "loss", &h->loss);
	get_curve(file, "rate", &h->rate);
	h5_text_get(file, "history_columns", names, sizeof names);
	for (int i = 0; rest && h->ncolumn < COLUMNS; i++) {
		char *name = rest, *end = strchr(rest, ',');
		rest = end ? end + 1 : NULL;
		if (end)
			*end = 0;
		if (i >= HISTORY_KEYS)
			snprintf(h->column[h->ncolumn++], COLUMN_NAME, "%.*s", COLUMN_NAME - 1,
				 name);
	}
	h->record = h5_rows_get(file, "/history/records", (hsize_t)(HISTORY_KEYS + h->ncolumn),
				1 << 24, &h->nrecord);
	h->room = h->nrecord;
	if (h5_attribute_get(file, "watch", *h5.T_NATIVE_DOUBLE, 4, watch))
		h->watch = (Watch){watch[0], watch[1], watch[2], watch[3]};
	h5_attribute_get(file, "metric_sums", *h5.T_NATIVE_DOUBLE, METRICS, h->sums.sum);
	h5_attribute_get(file, "metric_counts", *h5.T_NATIVE_DOUBLE, METRICS, h->sums.count);
}
