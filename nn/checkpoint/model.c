/* model.c - the net of a checkpoint, without the program that trained it.
 * Input: a file (internal.h). Output: the graph that its text describes, and the values of all
 * parameters and states; the alphabet of its text. */
#include "nn/checkpoint/internal.h"

#include <string.h>

/* Is there a row of elements of this type? *n: how many. */
static bool row_there(hid_t file, const char *path, const char *name, Type type, hsize_t *n)
{
	H5Dataset d;
	*n = 0;
	if (h5_data_describe(file, path, name, &d, NULL) || d.rank != 1 || d.type != type)
		return false;
	*n = d.shape[0];
	return true;
}

/* Its elements, and `behind` zero bytes. */
static int row_copy(hid_t file, const char *path, const char *name, Type type, hsize_t n,
		    size_t behind, int out, Error *err)
{
	size_t size = (size_t)n * type_size(type) + behind;
	char *data = mem_zalloc(size);
	if (!data)
		return error_set(err, RICCI_ENOMEM, "out of memory for %s", path);
	int status = h5_data_get(file, path, name, type, 1, &n, data, err);
	return status ? status : h5_put(out, data, size, err);
}

static int checkpoint_open(const char *path, hid_t *file, Error *err)
{
	ricci_position at;
	char hex[24];
	int status = image_open(path, file, err);
	return status ? status : get_position(*file, path, &at, hex, err);
}

static int net_image_read(void *user, int out, Error *err)
{
	const char *path = user;
	hid_t file;
	hsize_t n;
	if (checkpoint_open(path, &file, err))
		return err->code;
	if (!row_there(file, path, "/net", RICCI_U8, &n))
		return error_set(err, RICCI_EFORMAT,
				 "%s holds no equations: an older version saved it; load it in its "
				 "program and save it again, or call ricci_export there",
				 path);
	return row_copy(file, path, "/net", RICCI_U8, n, 1, out, err);
}

static int alphabet_read(void *user, int out, Error *err)
{
	const char *path = user;
	hid_t file;
	hsize_t n;
	if (checkpoint_open(path, &file, err))
		return err->code;
	if (!row_there(file, path, "/alphabet", RICCI_I32, &n) || !n)
		return 0;
	return row_copy(file, path, "/alphabet", RICCI_I32, n, 0, out, err);
}

int checkpoint_alphabet(const char *path, uint32_t **alphabet, int *n, Error *err)
{
	H5Result r;
	*alphabet = NULL;
	*n = 0;
	int status = h5_run(alphabet_read, (void *)(uintptr_t)path, &r, err);
	if (status)
		return status;
	if (r.n && !(*alphabet = mem_alloc(r.n)))
		status = error_set(err, RICCI_ENOMEM, "out of memory for %s", path);
	if (*alphabet) {
		memcpy(*alphabet, r.data, r.n);
		*n = (int)(r.n / sizeof **alphabet);
	}
	h5_result_free(&r);
	return status;
}

int ricci_saved_alphabet(const char *path, uint32_t *alphabet, int room)
{
	Error *err = ERROR_TELL;
	uint32_t *all;
	int n;
	if (!path || room < 0 || (room && !alphabet))
		return error_set(err, RICCI_EINVAL,
				 "ricci_saved_alphabet needs a path and room for the alphabet");
	if (checkpoint_alphabet(path, &all, &n, err))
		return err->code;
	for (int k = 0; k < n && k < room; k++)
		alphabet[k] = all[k];
	mem_free(all);
	return n;
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
