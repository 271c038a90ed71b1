/* hdf5_data.c - datasets and attributes of an open HDF5 file, in a child of h5_run.
 * Datasets are chunked, checksummed (Fletcher 32), gzip-compressed when asked for, and carry no
 * times: the same data make the same file. Invariant: every identifier that is opened here is closed
 * here, also after a call that failed (closing what was not opened does nothing). */
#include "nn/hdf5/hdf5.h"

#include <string.h>

/* The file's type of an element, stored just as it lies in memory. The caller closes it. */
static hid_t type_of(Type t)
{
	static const char *const name[2] = {"FALSE", "TRUE"};
	hid_t h;
	switch (t) {
	case RICCI_F32:
		return h5.Tcopy(*h5.T_NATIVE_FLOAT);
	case RICCI_F64:
		return h5.Tcopy(*h5.T_NATIVE_DOUBLE);
	case RICCI_I8:
		return h5.Tcopy(*h5.T_NATIVE_INT8);
	case RICCI_U8:
		return h5.Tcopy(*h5.T_NATIVE_UINT8);
	case RICCI_I32:
		return h5.Tcopy(*h5.T_NATIVE_INT32);
	case RICCI_I64:
		return h5.Tcopy(*h5.T_NATIVE_INT64);
	case RICCI_BOOL: /* as h5py has it */
		h = h5.Tenum_create(*h5.T_NATIVE_INT8);
		for (signed char v = 0; v < 2; v++)
			h5.Tenum_insert(h, name[v], &v);
		return h;
	case RICCI_F16:
	case RICCI_BF16:
		h = h5.Tcopy(*h5.T_NATIVE_FLOAT);
		if (t == RICCI_F16) {
			h5.Tset_fields(h, 15, 10, 5, 0, 10);
			h5.Tset_precision(h, 16);
			h5.Tset_size(h, 2);
			h5.Tset_ebias(h, 15);
		} else {
			h5.Tset_fields(h, 15, 7, 8, 0, 7);
			h5.Tset_precision(h, 16);
			h5.Tset_size(h, 2);
			h5.Tset_ebias(h, 127);
		}
		return h;
	case RICCI_NTYPES:
	case RICCI_TF32:
		break;
	}
	return -1;
}

/* ---- writing */

/* Chunks of at most 1 MiB: outer dimensions are split first. */
static hid_t chunking(int rank, const hsize_t *shape, size_t element, int compress)
{
	hsize_t chunk[RICCI_MAX_RANK], bytes = element;
	hid_t p = h5.Pcreate(*h5.P_DATASET_CREATE);
	h5.Pset_obj_track_times(p, false);
	for (int d = 0; d < rank; d++)
		bytes *= chunk[d] = shape[d];
	if (!rank || !bytes)
		return p;
	for (int d = 0; d < rank && bytes > 1 << 20; d++) {
		hsize_t inner = bytes / chunk[d];
		chunk[d] = inner > 1 << 20 ? 1 : (1 << 20) / inner;
		bytes = inner * chunk[d];
	}
	h5.Pset_chunk(p, rank, chunk);
	if (compress > 0) {
		h5.Pset_shuffle(p);
		h5.Pset_deflate(p, (unsigned)compress);
	}
	h5.Pset_fletcher32(p);
	return p;
}

bool h5_data_put(hid_t file, const char *path, Type type, int rank, const hsize_t *shape,
		 const void *data, int compress)
{
	hid_t t = type_of(type), create = chunking(rank, shape, type_size(type), compress);
	hid_t space = rank ? h5.Screate_simple(rank, shape, NULL) : h5.Screate(H5S_SCALAR);
	hid_t links = h5.Pcreate(*h5.P_LINK_CREATE);
	h5.Pset_create_intermediate_group(links, 1);
	hid_t d = h5.Dcreate2(file, path, t, space, links, create, H5P_DEFAULT);
	bool ok = d >= 0 && h5.Dwrite(d, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
	h5.Dclose(d);
	h5.Pclose(links);
	h5.Sclose(space);
	h5.Pclose(create);
	h5.Tclose(t);
	return ok;
}

bool h5_attribute_put(hid_t file, const char *name, hid_t type, int n, const void *value)
{
	hsize_t extent = (hsize_t)n;
	hid_t space = n > 1 ? h5.Screate_simple(1, &extent, NULL) : h5.Screate(H5S_SCALAR);
	hid_t a = h5.Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	bool ok = a >= 0 && h5.Awrite(a, type, value) >= 0;
	h5.Aclose(a);
	h5.Sclose(space);
	return ok;
}

/* Texts are UTF-8 of variable length, which h5py gives as str. */
static hid_t text_type(void)
{
	hid_t t = h5.Tcopy(*h5.T_C_S1);
	h5.Tset_size(t, H5T_VARIABLE);
	h5.Tset_cset(t, H5T_CSET_UTF8);
	return t;
}

bool h5_text_put(hid_t file, const char *name, const char *value)
{
	hid_t t = text_type();
	bool ok = h5_attribute_put(file, name, t, 1, &value);
	h5.Tclose(t);
	return ok;
}

bool h5_group_put(hid_t file, const char *name)
{
	hid_t create = h5.Pcreate(*h5.P_GROUP_CREATE);
	h5.Pset_obj_track_times(create, false);
	hid_t g = h5.Gcreate2(file, name, H5P_DEFAULT, create, H5P_DEFAULT);
	h5.Gclose(g);
	h5.Pclose(create);
	return g >= 0;
}

/* ---- reading */

bool h5_attribute_get(hid_t file, const char *name, hid_t type, int n, void *value)
{
	hid_t a = h5.Aopen(file, name, H5P_DEFAULT), space = h5.Aget_space(a), t = h5.Aget_type(a);
	bool ok = a >= 0 && h5.Sget_simple_extent_npoints(space) == n &&
		  h5.Tget_class(t) == h5.Tget_class(type) &&
		  h5.Tis_variable_str(t) == h5.Tis_variable_str(type) &&
		  h5.Aread(a, type, value) >= 0;
	h5.Tclose(t);
	h5.Sclose(space);
	h5.Aclose(a);
	return ok;
}

bool h5_text_get(hid_t file, const char *name, char *to, size_t n)
{
	char *text = NULL;
	hid_t t = text_type();
	bool ok = h5_attribute_get(file, name, t, 1, &text) && text;
	h5.Tclose(t);
	snprintf(to, n, "%s", ok ? text : "");
	h5.free_memory(text);
	return ok;
}

bool h5_data_there(hid_t file, const char *path)
{
	hid_t d = h5.Dopen2(file, path, H5P_DEFAULT);
	if (d < 0)
		return false;
	h5.Dclose(d);
	return true;
}

static void shape_text(char *out, size_t n, int rank, const hsize_t *shape)
{
	size_t at = 0;
	snprintf(out, n, "[]");
	for (int d = 0; d < rank && at < n - 24; d++)
		at += (size_t)snprintf(out + at, n - at, "%c%llu%s", d ? ',' : '[',
				       (unsigned long long)shape[d], d + 1 == rank ? "]" : "");
}

int h5_data_get(hid_t file, const char *of, const char *path, Type element, int rank,
		const hsize_t *shape, void *data, Error *err)
{
	char why[160], is[256], want[256];
	hsize_t there[H5S_MAX_RANK] = {0};
	hid_t d = h5.Dopen2(file, path, H5P_DEFAULT);
	if (d < 0)
		return error_set(err, RICCI_EFORMAT, "%s has no dataset %s", of, path);
	hid_t space = h5.Dget_space(d), type = h5.Dget_type(d), mine = type_of(element);
	int has = h5.Sget_simple_extent_dims(space, there, NULL), status = 0;
	if (has != rank || memcmp(there, shape, (size_t)rank * sizeof *shape)) {
		shape_text(is, sizeof is, has, there);
		shape_text(want, sizeof want, rank, shape);
		status =
			error_set(err, RICCI_EFORMAT, "%s: %s has the shape %s, the model needs %s",
				  of, path, is, want);
	} else if (h5.Tequal(type, mine) <= 0) {
		status = error_set(err, RICCI_EFORMAT,
				   "%s: %s has elements of another type, the model needs %s", of,
				   path, type_name(element));
	} else if (h5.Dread(d, mine, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) {
		status = error_set(err, RICCI_EFORMAT, "%s: %s is damaged: %s", of, path,
				   h5_reason(why));
	}
	h5.Tclose(mine);
	h5.Tclose(type);
	h5.Sclose(space);
	h5.Dclose(d);
	return status;
}

/* RICCI_NTYPES: none of ours. */
static Type type_in_file(hid_t type)
{
	Type t = 0;
	for (bool same = false; t < RICCI_NTYPES; t += !same) {
		hid_t mine = type_of(t);
		same = h5.Tequal(type, mine) > 0;
		h5.Tclose(mine);
		if (same)
			break;
	}
	return t;
}

int h5_data_describe(hid_t file, const char *of, const char *path, H5Dataset *out, Error *err)
{
	hsize_t chunk[H5S_MAX_RANK];
	hid_t d = h5.Dopen2(file, path, H5P_DEFAULT);
	if (d < 0)
		return error_set(err, RICCI_EFORMAT, "%s has no dataset %s", of, path);
	hid_t space = h5.Dget_space(d), type = h5.Dget_type(d), create = h5.Dget_create_plist(d);
	out->rank = h5.Sget_simple_extent_dims(space, out->shape, NULL);
	out->type = type_in_file(type);
	out->rows = 1;
	if (h5.Pget_layout(create) == H5D_CHUNKED &&
	    h5.Pget_chunk(create, H5S_MAX_RANK, chunk) == out->rank && out->rank > 0)
		out->rows = chunk[0];
	h5.Pclose(create);
	h5.Tclose(type);
	h5.Sclose(space);
	h5.Dclose(d);
	if (out->type == RICCI_NTYPES)
		return error_set(err, RICCI_EUNSUPPORTED,
				 "%s: %s has elements of a type that can't be read; bool, 8 to 64 "
				 "bits of integers (u8 and signed), f16, bf16, f32, f64, "
				 "little-endian, can",
				 of, path);
	return 0;
}

int h5_data_rows(hid_t file, const char *of, const char *path, Type element, hsize_t from,
		 hsize_t n, void *data, Error *err)
{
	char why[160];
	hsize_t count[H5S_MAX_RANK] = {0}, start[H5S_MAX_RANK] = {from};
	hid_t d = h5.Dopen2(file, path, H5P_DEFAULT), space = h5.Dget_space(d);
	hid_t mine = type_of(element);
	int rank = h5.Sget_simple_extent_dims(space, count, NULL), status = 0;
	count[0] = n;
	hid_t room = rank > 0 ? h5.Screate_simple(rank, count, NULL) : -1;
	if (h5.Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
	    h5.Dread(d, mine, room, space, H5P_DEFAULT, data) < 0)
		status = error_set(err, RICCI_EFORMAT,
				   "%s: %s is damaged in samples %llu to %llu: %s", of, path,
				   (unsigned long long)from, (unsigned long long)(from + n - 1),
				   h5_reason(why));
	h5.Sclose(room);
	h5.Tclose(mine);
	h5.Sclose(space);
	h5.Dclose(d);
	return status;
}

double *h5_rows_get(hid_t file, const char *name, hsize_t columns, hsize_t most, int *n)
{
	*n = 0;
	hid_t d = h5.Dopen2(file, name, H5P_DEFAULT);
	if (d < 0)
		return NULL;
	hid_t space = h5.Dget_space(d);
	hsize_t shape[H5S_MAX_RANK] = {0};
	double *rows = NULL;
	if (h5.Sget_simple_extent_ndims(space) == 2 &&
	    h5.Sget_simple_extent_dims(space, shape, NULL) == 2 && shape[1] == columns &&
	    shape[0] && shape[0] <= most)
		rows = mem_alloc((size_t)(shape[0] * columns) * sizeof *rows);
	if (rows && h5.Dread(d, *h5.T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) < 0) {
		mem_free(rows);
		rows = NULL;
	}
	if (rows)
		*n = (int)shape[0];
	h5.Sclose(space);
	h5.Dclose(d);
	return rows;
}
