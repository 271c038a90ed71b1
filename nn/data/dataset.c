/* dataset.c - data sets: lists of named fields with one number of samples.
 * Input: sources that other files make. Output: fields by name, single samples. Invariant: all
 * fields have `count` samples; after an error nothing is added any more. */
#include "nn/data/data.h"

#include <string.h>
#include <sys/stat.h>

ricci_data *ricci_data_new(void)
{
	ricci_data *d = mem_zalloc(sizeof *d);
	if (!d) {
		error_set(ERROR_TELL, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	d->err.tell = true;
	d->generation = fork_generation();
	return d;
}

void ricci_data_free(ricci_data *d)
{
	if (!d || d->generation != fork_generation())
		return;
	for (int k = 0; k < d->nfield; k++) {
		d->field[k].source.free(d->field[k].source.source);
		mem_free(d->field[k].name);
	}
	mem_free(d->alphabet);
	mem_free(d);
}

ricci_data *data_finish(ricci_data *d, int status)
{
	if (d && !status && !d->err.code)
		return d;
	ricci_data_free(d);
	return NULL;
}

int64_t shape_size(int rank, const int64_t *shape)
{
	int64_t n = 1;
	for (int k = 0; k < rank; k++)
		if (shape[k] < 1 || __builtin_mul_overflow(n, shape[k], &n) || n > INT64_C(1) << 48)
			return -1;
	return n;
}

const Field *data_find(const ricci_data *d, const char *name)
{
	for (int k = 0; d && name && k < d->nfield; k++)
		if (!strcmp(d->field[k].name, name))
			return &d->field[k];
	return NULL;
}

int data_admits(ricci_data *d, const char *name)
{
	if (!d)
		return DATA_FAIL(d, RICCI_EINVAL, "no data set given");
	if (d->err.code)
		return error_tell(&d->err);
	if (!name || !*name)
		return DATA_FAIL(d, RICCI_EINVAL, "a field of a data set needs a name");
	if (data_find(d, name))
		return DATA_FAIL(d, RICCI_EINVAL, "the data set has a field '%s' already", name);
	if (d->nfield == DATA_FIELDS)
		return DATA_FAIL(d, RICCI_EINVAL, "field '%s': a data set has at most %d fields",
				 name, DATA_FIELDS);
	return 0;
}

static int field_check(ricci_data *d, int64_t count, const Field *f)
{
	if (data_admits(d, f->name))
		return d ? d->err.code : RICCI_EINVAL;
	if ((unsigned)f->type >= RICCI_NTYPES || f->rank < 0 || f->rank > RICCI_MAX_RANK ||
	    shape_size(f->rank, f->shape) < 0)
		return DATA_FAIL(d, RICCI_ESHAPE,
				 "field '%s': a sample has a type, 0 to %d dimensions, and "
				 "extents of 1 or more",
				 f->name, RICCI_MAX_RANK);
	if (count < 1 || count > UINT32_MAX)
		return DATA_FAIL(d, count < 1 ? RICCI_EINVAL : RICCI_EUNSUPPORTED,
				 "field '%s' has %lld samples; 1 to 2^32-1 are possible", f->name,
				 (long long)count);
	if (d->nfield && d->count != count)
		return DATA_FAIL(d, RICCI_ESHAPE,
				 "field '%s' has %lld samples, field '%s' has %lld", f->name,
				 (long long)count, d->field[0].name, (long long)d->count);
	return 0;
}

int data_add(ricci_data *d, int64_t count, const Field *f)
{
	int status = field_check(d, count, f);
	char *name = status ? NULL : mem_strdup(f->name);
	if (!status && !name)
		status = DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	if (status) {
		f->source.free(f->source.source);
		return status;
	}
	Field *to = &d->field[d->nfield++];
	*to = *f;
	to->name = name;
	to->size = shape_size(f->rank, f->shape);
	to->bytes = to->size * (int64_t)type_size(f->type);
	d->count = count;
	return 0;
}

int64_t ricci_data_count(const ricci_data *d)
{
	return d ? d->count : 0;
}

int ricci_data_error(const ricci_data *d)
{
	return d ? error_tell(&d->err) : RICCI_EINVAL;
}

int ricci_data_field(const ricci_data *d, int i, ricci_field *out)
{
	Error *err = ERROR_TELL;
	ricci_field f = {.size = sizeof f}, theirs;
	if (!d || !out || i < 0 || i >= d->nfield)
		return error_set(err, RICCI_EINVAL, "no field %d: the data set has %d", i,
				 d ? d->nfield : 0);
	if (struct_take(&theirs, sizeof theirs, out, "ricci_field", err))
		return err->code;
	f.name = d->field[i].name;
	f.type = d->field[i].type;
	f.rank = d->field[i].rank;
	memcpy(f.shape, d->field[i].shape, sizeof f.shape);
	struct_give(out, &f, sizeof f);
	return 0;
}

int ricci_data_get(ricci_data *d, const char *field, int64_t i, void *out, size_t bytes)
{
	Error *err = ERROR_TELL;
	const Field *f = data_find(d, field);
	if (d && d->err.code)
		return error_tell(&d->err);
	if (!f || !out)
		return error_set(err, RICCI_EINVAL, "the data set has no field '%s'",
				 field ? field : "");
	if (i < 0 || i >= d->count)
		return error_set(err, RICCI_EINVAL, "no sample %lld: there are %lld", (long long)i,
				 (long long)d->count);
	if ((int64_t)bytes != f->bytes)
		return error_set(err, RICCI_ESHAPE,
				 "a sample of field '%s' has %lld bytes, the room has %zu", field,
				 (long long)f->bytes, bytes);
	return f->source.read(f->source.source, &(uint32_t){(uint32_t)i}, 1, out, err);
}

/* ---- arrays in memory */

typedef struct Array {
	const char *values;
	size_t bytes;
} Array;

static int array_read(void *source, const uint32_t *index, int64_t n, void *out, Error *err)
{
	const Array *a = source;
	(void)err;
	for (int64_t i = 0; i < n; i++)
		memcpy((char *)out + (size_t)i * a->bytes, a->values + index[i] * a->bytes,
		       a->bytes);
	return 0;
}

int ricci_data_array(ricci_data *d, const char *field, ricci_type type, int rank,
		     const int64_t *shape, const void *values)
{
	if (data_admits(d, field))
		return d ? d->err.code : RICCI_EINVAL;
	if (!shape || !values || rank < 1 || rank > RICCI_MAX_RANK ||
	    (unsigned)type >= RICCI_NTYPES || shape_size(rank, shape) < 0)
		return DATA_FAIL(d, RICCI_EINVAL,
				 "field '%s': an array has values, a type, 1 to %d dimensions and "
				 "extents of 1 or more, the samples first",
				 field, RICCI_MAX_RANK);
	Array *a = mem_alloc(sizeof *a);
	if (!a)
		return DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	*a = (Array){values, (size_t)shape_size(rank - 1, shape + 1) * type_size(type)};
	Field f = {.name = (char *)field, .type = type, .rank = rank - 1};
	memcpy(f.shape, shape + 1, (size_t)(rank - 1) * sizeof *shape);
	f.source = (Source){.read = array_read, .free = mem_free, .source = a};
	return data_add(d, shape[0], &f);
}

int data_path(char *out, size_t room, const char *folder, const char *name, Error *err)
{
	struct stat st;
	int n = snprintf(out, room, "%s/%s", folder ? folder : ".", name);
	if (n > (int)room - 4)
		return error_set(err, RICCI_EINVAL, "the path of the folder is too long");
	if (stat(out, &st))
		strcat(out, ".gz");
	return 0;
}
