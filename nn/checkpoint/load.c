/* load.c - a checkpoint is read into a session.
 * Input: a file (internal.h). Output: the session's parameters and states, position, history.
 * Invariant: loading changes nothing before everything was read and found right. */
#include "nn/checkpoint/internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int image_open(const char *path, hid_t *file, Error *err)
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

static size_t history_bytes(const History *h)
{
	return (size_t)h->nrecord * (size_t)(HISTORY_KEYS + h->ncolumn) * sizeof *h->record;
}

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
		bool found = h5_data_there(file, x->path);
		x->there = found || v->part != LOAD_VALUES || x->trained;
		if (!found && x->there)
			status = error_set(err, RICCI_EFORMAT,
					   "%s was saved by another model: it has no dataset %s",
					   v->path, x->path);
		else if (found)
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

int image_load(Loading *v, Error *err)
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
