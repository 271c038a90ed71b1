/* save.c - a checkpoint is written.
 * Input: a session and what stands beside its tensors. Output: a file (internal.h). It is put
 * together in memory (HDF5's core driver) and written by file_replace, so that a full disk meets our
 * own write() and never HDF5, which cannot close a file that it could not flush. */
#include "nn/checkpoint/internal.h"

typedef struct Saving {
	const char *path;
	const Items *items;
	const Contents *with;
	const ricci_position *at;
	const Text *net;
} Saving;

/* The whole file in HDF5's memory, then out of it. Nothing is closed: the child ends. */
static int image_make(void *user, int out, Error *err)
{
	const Saving *v = user;
	const Items *s = v->items;
	const Contents *with = v->with;
	int compress = with->compress;
	char why[160];
	hid_t access = h5.Pcreate(*h5.P_FILE_ACCESS), create = h5.Pcreate(*h5.P_FILE_CREATE), file;
	h5.Pset_obj_track_times(create, false); /* the same state, the same file */
	h5.Pset_fapl_core(access, 1 << 20, 0);
	h5.Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
	file = h5.Fcreate(v->path, H5F_ACC_TRUNC, create, access);
	bool ok = file >= 0 && put_position(file, v->at, s->fingerprint) &&
		  h5_group_put(file, "parameters") && h5_group_put(file, "state") &&
		  h5_data_put(file, "/net", RICCI_U8, 1, (hsize_t[]){v->net->n}, v->net->s,
			      compress) &&
		  (!with->alphabet ||
		   h5_data_put(file, "/alphabet", RICCI_I32, 1,
			       (hsize_t[]){(hsize_t)with->nalphabet}, with->alphabet, compress)) &&
		  (!with->history ||
		   (h5_group_put(file, "history") && put_history(file, with->history)));
	for (int i = 0; i < s->n && ok; i++) {
		const Item *x = &s->item[i];
		ok = h5_data_put(file, x->path, x->type, x->rank, x->shape, x->data, compress);
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

int checkpoint_save(ricci_session *s, const ricci_tensor *model, const char *path,
		    const Contents *c, bool sound, Error *err)
{
	static const char *const called = "output";
	Items items;
	ricci_position now = c->at ? *c->at : RICCI_POSITION();
	if (!s || !path)
		return error_set(err, RICCI_EINVAL, "a checkpoint needs a session and a path");
	if (c->compress < 0 || c->compress > 9)
		return error_set(err, RICCI_EINVAL, "compress is a level of gzip, 0..9, not %d",
				 c->compress);
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
		status = net_print(&net, 1, &c->output, &called, err);
	if (!status)
		status = image_write((Saving){path, &items, c, &now, &net}, err);
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
	Contents c = {.output = (ricci_tensor *)(uintptr_t)model,
		      .at = p ? &own : NULL,
		      .compress = compress};
	return checkpoint_save(s, model, path, &c, false, err);
}
