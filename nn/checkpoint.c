/* checkpoint.c - the state of a training in an HDF5 file.
 *	/parameters/<name> /state/<name>   datasets of the tensors' shapes and types (nn/hdf5/)
 *	/net                               u8 [n], the text of the net for inference (net_print)
 *	/history/loss /history/rate        f64 [n,2]: step, mean over steps up to it
 *	/history/records                   f64 [n,k]: the columns that history_columns names
 *	attributes of /: ricci_version fingerprint step seed random_state epoch index loss_sum
 *	                 batches wrong history_loss history_rate history_columns watch
 *	                 metric_sums metric_counts
 * The file is put together in memory (HDF5's core driver) and written by file_replace, so that a
 * full disk meets our own write() and never HDF5, which cannot close a file that it could not
 * flush. Invariant: loading changes nothing before everything was read and found right. */
#include "nn/hdf5/hdf5.h"
#include "nn/nn.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* What a tensor of the session is in the file. */
typedef struct Item {
	const ricci_tensor *t;
	Type type;
	int rank;
	bool trained, there; /* there: in the file */
	hsize_t shape[RICCI_MAX_RANK];
	void *data;
	char *path;
} Item;
typedef struct Items {
	int n;
	Item *item;
	uint64_t fingerprint;
} Items;

static void items_free(Items *s)
{
	for (int i = 0; i < s->n; i++) {
		mem_free(s->item[i].data);
		mem_free(s->item[i].path);
	}
	mem_free(s->item);
	*s = (Items){0};
}

/* FNV-1a, 64 bits. */
static uint64_t hash_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return (h ^ 0xff) * 0x100000001b3u;
}

static bool item_make(Item *x, const ricci_tensor *t, bool trained)
{
	Text path = {0};
	text_add(&path, "/%s/%s", trained ? "parameters" : "state", ricci_name(t));
	*x = (Item){.t = t,
		    .type = ricci_dtype(t),
		    .rank = ricci_rank(t),
		    .trained = trained,
		    .there = true,
		    .path = path.s};
	for (int d = 0; d < x->rank; d++)
		x->shape[d] = (hsize_t)ricci_extent(t, d);
	x->data = mem_zalloc(ricci_bytes(t) ? ricci_bytes(t) : 1);
	return !path.failed && x->data;
}

/* The parameters and (unless weights) states of the model's graph, with room for their values. */
static int items_make(Items *s, const ricci_tensor *model, bool weights, Error *err)
{
	*s = (Items){0};
	ricci_graph *g = model ? ricci_graph_of(model) : NULL;
	if (!g)
		return error_set(err, RICCI_EINVAL,
				 "a checkpoint needs a session and an output of "
				 "its graph");
	int count = ricci_param_count(g), trained;
	char *text = ricci_show(model);
	s->item = mem_zalloc((size_t)(count + 1) * sizeof *s->item);
	bool ok = text && s->item;
	s->fingerprint = hash_text(0xcbf29ce484222325u, text ? text : "");
	ricci_free_text(text);
	for (int i = 0; i < count && ok; i++) {
		const ricci_tensor *t = ricci_param_at(g, i, &trained);
		if (weights && !trained)
			continue;
		Item *x = &s->item[s->n++];
		ok = item_make(x, t, trained);
		if (!ok)
			break;
		char shape[24];
		s->fingerprint = hash_text(s->fingerprint, x->path);
		s->fingerprint = hash_text(s->fingerprint, type_name(x->type));
		for (int d = 0; d < x->rank; d++) {
			snprintf(shape, sizeof shape, "%llu", (unsigned long long)x->shape[d]);
			s->fingerprint = hash_text(s->fingerprint, shape);
		}
	}
	if (ok)
		return 0;
	items_free(s);
	return error_set(err, RICCI_ENOMEM, "out of memory for a checkpoint");
}

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

static bool put_position(hid_t file, const ricci_position *p, uint64_t fingerprint)
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

static bool put_history(hid_t file, const History *h)
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

typedef struct Saving {
	const char *path;
	const Items *items;
	const ricci_position *at;
	const History *history; /* or NULL */
	const Text *net;
	int compress;
} Saving;

/* The whole file in HDF5's memory, then out of it. Nothing is closed: the child ends. */
static int image_make(void *user, int out, Error *err)
{
	const Saving *v = user;
	const Items *s = v->items;
	char why[160];
	hid_t access = h5.Pcreate(*h5.P_FILE_ACCESS), create = h5.Pcreate(*h5.P_FILE_CREATE), file;
	h5.Pset_obj_track_times(create, false); /* the same state, the same file */
	h5.Pset_fapl_core(access, 1 << 20, 0);
	h5.Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
	file = h5.Fcreate(v->path, H5F_ACC_TRUNC, create, access);
	bool ok = file >= 0 && put_position(file, v->at, s->fingerprint) &&
		  h5_group_put(file, "parameters") && h5_group_put(file, "state") &&
		  h5_data_put(file, "/net", RICCI_U8, 1, (hsize_t[]){v->net->n}, v->net->s,
			      v->compress) &&
		  (!v->history || (h5_group_put(file, "history") && put_history(file, v->history)));
	for (int i = 0; i < s->n && ok; i++) {
		const Item *x = &s->item[i];
		ok = h5_data_put(file, x->path, x->type, x->rank, x->shape, x->data, v->compress);
	}
	ok = ok && h5.Fflush(file, H5F_SCOPE_GLOBAL) >= 0;
	void **memory = NULL;
	ssize_t size = ok ? h5.Fget_file_image(file, NULL, 0) : 0;
	if (ok && size > 0 && h5.Fget_vfd_handle(file, access, (void **)&memory) >= 0)
		return h5_put(out, *memory, (size_t)size, err);
	return error_set(err, RICCI_EIO, "cannot make the checkpoint %s: %s", v->path,
			 h5_reason(why));
}

static int image_write(Saving v, Error *err)
{
	H5Result image;
	int status = h5_run(image_make, &v, &image, err);
	if (!status)
		status = file_seal(v.path, image.data, image.n, err);
	h5_result_free(&image);
	return status;
}

static int opened(void *user, int out, Error *err)
{
	(void)user, (void)out, (void)err;
	return 0;
}

int checkpoint_check(const char *path, Error *err)
{
	H5Result nothing;
	int status = h5_run(opened, NULL, &nothing, err);
	return status ? status : file_check(path, err);
}

/* The first that shows that the training has diverged: a parameter that is not finite, a state that
 * is no number; NULL: none. */
static const Item *items_diverged(const Items *s, double *value)
{
	for (const Item *x = s->item; x < s->item + s->n; x++) {
		size_t n = type_is_float(x->type) ? ricci_bytes(x->t) / type_size(x->type) : 0;
		for (size_t i = 0; i < n; i++) {
			*value = type_load(x->type, x->data, i);
			if (x->trained ? !isfinite(*value) : isnan(*value))
				return x;
		}
	}
	return NULL;
}

int checkpoint_save(ricci_session *s, const ricci_tensor *model, ricci_tensor *output,
		    const char *path, const ricci_position *p, const History *h, int compress,
		    bool sound, Error *err)
{
	static const char *const called = "output";
	Items items;
	ricci_position now = p ? *p : RICCI_POSITION();
	if (!s || !path)
		return error_set(err, RICCI_EINVAL, "a checkpoint needs a session and a path");
	if (compress < 0 || compress > 9)
		return error_set(err, RICCI_EINVAL, "compress is a level of gzip, 0..9, not %d",
				 compress);
	now.step = ricci_step_count(s);
	now.seed = ricci_seed(s);
	int status = items_make(&items, model, false, err);
	for (int i = 0; i < items.n && !status; i++)
		if (ricci_fetch(s, items.item[i].t, items.item[i].data,
				ricci_bytes(items.item[i].t)))
			status = error_set(err, RICCI_EINVAL, "cannot save %s: %s",
					   items.item[i].path, ricci_error_message());
	double value;
	const Item *bad = sound && !status ? items_diverged(&items, &value) : NULL;
	if (bad)
		status =
			error_set(err, RICCI_EVALUE,
				  "%s holds %f after step %llu: the training diverged; %s stays as "
				  "it was",
				  bad->path, value, (unsigned long long)now.step, path);
	Text net = {0};
	if (!status)
		status = net_print(&net, 1, &output, &called, err);
	if (!status)
		status = image_write((Saving){path, &items, &now, h, &net, compress}, err);
	text_free(&net);
	items_free(&items);
	return status;
}

int ricci_save(ricci_session *s, const ricci_tensor *model, const char *path,
	       const ricci_position *p, int compress)
{
	Error *err = ERROR_TELL;
	ricci_position own;
	if (p && struct_take(&own, sizeof own, p, "ricci_position", err))
		return err->code;
	return checkpoint_save(s, model, (ricci_tensor *)(uintptr_t)model, path, p ? &own : NULL,
			       NULL, compress, false, err);
}

/* ---- reading */

static int get_position(hid_t file, const char *path, ricci_position *p, char hex[24], Error *err)
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

static int image_open(const char *path, hid_t *file, Error *err)
{
	char why[160];
	*file = -1;
	if (access(path, R_OK))
		return error_set(err, RICCI_EIO, "cannot read %s: %s", path, strerror(errno));
	int status = file_sealed(path, err);
	if (status)
		return status;
	*file = h5.Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (*file < 0)
		return error_set(err, RICCI_EFORMAT, "%s is not a whole HDF5 file: %s", path,
				 h5_reason(why));
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

/* Curves and records are no state of the training: what is odd is left out. */
static void get_history(hid_t file, History *h)
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

static size_t history_bytes(const History *h)
{
	return (size_t)h->nrecord * (size_t)(HISTORY_KEYS + h->ncolumn) * sizeof *h->record;
}

typedef struct Loading {
	const char *path;
	Items *items; /* NULL: the position alone */
	LoadPart part;
	ricci_position at;
	History *history; /* or NULL */
} Loading;

/* Everything that loading needs, read and checked, and written to `out` in this order: the position,
 * the history and its epochs, the items' data. */
static int image_read(void *user, int out, Error *err)
{
	Loading *v = user;
	Items *s = v->items;
	char hex[24] = "", mine[24];
	hid_t file;
	int status = image_open(v->path, &file, err);
	if (!status)
		status = get_position(file, v->path, &v->at, hex, err);
	for (int i = 0; s && i < s->n && !status; i++) {
		Item *x = &s->item[i];
		x->there = v->part != LOAD_VALUES || x->trained || h5_data_there(file, x->path);
		if (x->there)
			status = h5_data_get(file, v->path, x->path, x->type, x->rank, x->shape,
					     x->data, err);
	}
	if (s && v->part == LOAD_ALL && !status) {
		snprintf(mine, sizeof mine, "%016llx", (unsigned long long)s->fingerprint);
		if (strcmp(hex, mine))
			status = error_set(
				err, RICCI_EFORMAT,
				"%s was saved by another model (its fingerprint is %s, this one's "
				"%s): the equations, the batch or the optimiser differ",
				v->path, hex, mine);
	}
	if (!status)
		status = h5_put(out, &v->at, sizeof v->at, err);
	if (v->history && !status) {
		History *h = v->history;
		get_history(file, h);
		status = h5_put(out, h, sizeof *h, err);
		if (!status)
			status = h5_put(out, h->record, history_bytes(h), err);
	}
	for (int i = 0; s && i < s->n && !status; i++) {
		status = h5_put(out, &s->item[i].there, sizeof s->item[i].there, err);
		if (!status)
			status = h5_put(out, s->item[i].data, ricci_bytes(s->item[i].t), err);
	}
	return status;
}

/* The next n bytes of a result; false: it has not so many. */
static bool result_take(const H5Result *r, size_t *used, void *to, size_t n)
{
	if (r->n - *used < n)
		return false;
	if (n)
		memcpy(to, (const char *)r->data + *used, n);
	*used += n;
	return true;
}

static bool item_take(const H5Result *r, size_t *used, Item *x)
{
	return result_take(r, used, &x->there, sizeof x->there) &&
	       result_take(r, used, x->data, ricci_bytes(x->t));
}

static bool history_take(const H5Result *r, size_t *used, History *h)
{
	if (!result_take(r, used, h, sizeof *h))
		return false;
	size_t n = history_bytes(h);
	h->record = n ? mem_alloc(n) : NULL;
	h->room = h->nrecord;
	if (!n || (h->record && result_take(r, used, h->record, n)))
		return true;
	history_free(h);
	return false;
}

static int image_load(Loading *v, Error *err)
{
	H5Result r;
	size_t used = 0;
	int status = h5_run(image_read, v, &r, err);
	if (status)
		return status;
	bool good = result_take(&r, &used, &v->at, sizeof v->at);
	for (int i = -1; good && i < (v->items ? v->items->n : 0); i++)
		if (i >= 0)
			good = item_take(&r, &used, &v->items->item[i]);
		else if (v->history)
			good = history_take(&r, &used, v->history);
	h5_result_free(&r);
	return good ? 0 : error_set(err, RICCI_ENOMEM, "out of memory for a checkpoint");
}

int checkpoint_load(ricci_session *s, const ricci_tensor *model, const char *path, LoadPart part,
		    ricci_position *p, History *h, Error *err)
{
	Items items;
	ricci_position at;
	if (!s || !path)
		return error_set(err, RICCI_EINVAL, "a checkpoint needs a session and a path");
	int status = items_make(&items, model, part == LOAD_PARAMETERS, err);
	if (status)
		return status;
	Loading v = {path, &items, part, {0}, h};
	if (h)
		history_start(h);
	status = image_load(&v, err);
	at = v.at;
	if (!status && part == LOAD_ALL && at.seed != ricci_seed(s))
		status = error_set(err, RICCI_EINVAL,
				   "%s was saved with seed %llu, the session has seed %llu", path,
				   (unsigned long long)at.seed, (unsigned long long)ricci_seed(s));
	for (int i = 0; i < items.n && !status; i++)
		if (items.item[i].there && ricci_feed(s, items.item[i].t, items.item[i].data,
						      ricci_bytes(items.item[i].t)))
			status = error_set(err, RICCI_EVALUE, "%s: %s: %s", path,
					   items.item[i].path, ricci_error_message());
	if (!status && part == LOAD_ALL)
		ricci_set_step(s, at.step);
	if (!status && p)
		*p = at;
	items_free(&items);
	return status;
}

int ricci_load(ricci_session *s, const ricci_tensor *model, const char *path, int weights,
	       ricci_position *p)
{
	Error *err = ERROR_TELL;
	ricci_position own;
	if (p && struct_take(&own, sizeof own, p, "ricci_position", err))
		return err->code;
	int status = checkpoint_load(s, model, path, weights ? LOAD_PARAMETERS : LOAD_ALL, &own,
				     NULL, err);
	if (!status && p)
		struct_give(p, &own, sizeof own);
	return status;
}

int ricci_peek(const char *path, ricci_position *p)
{
	Error *err = ERROR_TELL;
	if (!path || !p)
		return error_set(err, RICCI_EINVAL, "ricci_peek needs a path and a position");
	Loading v = {path, NULL, LOAD_PARAMETERS, RICCI_POSITION(), NULL};
	if (struct_take(&v.at, sizeof v.at, p, "ricci_position", err))
		return err->code;
	int status = image_load(&v, err);
	if (!status)
		struct_give(p, &v.at, sizeof v.at);
	return status;
}

/* ---- the net, without its program */

static int net_image_read(void *user, int out, Error *err)
{
	const char *path = user;
	ricci_position at;
	H5Dataset net;
	char hex[24];
	hid_t file;
	int status = image_open(path, &file, err);
	if (!status)
		status = get_position(file, path, &at, hex, err);
	if (status)
		return status;
	if (h5_data_describe(file, path, "/net", &net, NULL) || net.rank != 1 ||
	    net.type != RICCI_U8)
		return error_set(err, RICCI_EFORMAT,
				 "%s holds no equations: an older version saved it; load it in its "
				 "program and save it again, or call ricci_export there",
				 path);
	char *text = mem_zalloc((size_t)net.shape[0] + 1);
	if (!text)
		return error_set(err, RICCI_ENOMEM, "out of memory for the net of %s", path);
	status = h5_data_get(file, path, "/net", RICCI_U8, 1, net.shape, text, err);
	return status ? status : h5_put(out, text, (size_t)net.shape[0] + 1, err);
}

/* The values of all parameters and states, in the order of ricci_param_at. */
static int net_values(const char *path, ReadNet *m, void **data, Error *err)
{
	Items items;
	int status = items_make(&items, m->output[0], false, err);
	if (status)
		return status;
	Loading v = {.path = path, .items = &items, .part = LOAD_PARAMETERS};
	status = image_load(&v, err);
	for (int i = 0; i < items.n && !status; i++) {
		data[i] = items.item[i].data;
		items.item[i].data = NULL;
	}
	items_free(&items);
	return status;
}

int checkpoint_model(const char *path, ReadNet *m, void ***data, Error *err)
{
	H5Result text;
	*data = NULL;
	*m = (ReadNet){0};
	int status = h5_run(net_image_read, (void *)(uintptr_t)path, &text, err);
	if (status)
		return status;
	Error own = {0};
	status = net_read(m, text.data, &own);
	h5_result_free(&text);
	if (status)
		return error_set(err, status, "%s: %s", path, own.text);
	*data = mem_zalloc(((size_t)ricci_param_count(m->g) + 1) * sizeof **data);
	status = *data ? net_values(path, m, *data, err)
		       : error_set(err, RICCI_ENOMEM, "out of memory for %s", path);
	if (status)
		checkpoint_model_free(m, *data);
	return status;
}

void checkpoint_model_free(ReadNet *m, void **data)
{
	for (int i = 0; data && i < ricci_param_count(m->g); i++)
		mem_free(data[i]);
	mem_free(data);
	ricci_graph_free(m->g);
	*m = (ReadNet){0};
}
