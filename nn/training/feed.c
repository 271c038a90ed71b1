/* feed.c - what feeds the batches of data sets to the inputs of a training.
 * Input: the inputs that a ricci_training names, and data sets with those fields. Output: sessions
 * whose inputs hold the next batch. Invariant: every field that is loaded has as many elements as
 * its input takes for a sample. */
#include "nn/training/internal.h"

#include "nn/data/data.h"

static int feed_add(Feed *f, ricci_tensor *t, const char *field, Error *err)
{
	if (!t || !field)
		return error_set(err, RICCI_EINVAL,
				 "input %d of a training needs a tensor and a field's name", f->n);
	if (f->n == COUNT(f->input))
		return error_set(err, RICCI_EINVAL, "a training has at most %d inputs",
				 COUNT(f->input));
	int64_t batch = ricci_extent(t, 0);
	if (batch < 1 || batch > INT32_MAX)
		return error_set(err, RICCI_ESHAPE,
				 "the input '%s' needs the batch as its first dimension",
				 ricci_name(t));
	if (!f->n)
		f->batch = batch;
	if (batch != f->batch)
		return error_set(err, RICCI_ESHAPE,
				 "the input '%s' has a batch of %lld, the input '%s' has %lld",
				 ricci_name(t), (long long)batch, ricci_name(f->input[0].tensor),
				 (long long)f->batch);
	f->input[f->n++] = (ricci_fed){t, field};
	return 0;
}

int feed_inputs(Feed *f, const ricci_training *t, Error *err)
{
	if (t->samples && feed_add(f, t->samples, "samples", err))
		return err->code;
	if (t->labels && feed_add(f, t->labels, "labels", err))
		return err->code;
	if (t->ninput < 0 || (t->ninput && !t->input))
		return error_set(err, RICCI_EINVAL, "ninput is %d, and input is missing",
				 t->ninput);
	for (int k = 0; k < t->ninput; k++)
		if (feed_add(f, t->input[k].tensor, t->input[k].field, err))
			return err->code;
	return f->n ? 0
		    : error_set(err, RICCI_EINVAL,
				"a training needs inputs: samples and labels, or others");
}

static ricci_loaded feed_loaded(const ricci_fed *input, Type type)
{
	Type to = ricci_dtype(input->tensor);
	return (ricci_loaded){input->field, to, type == RICCI_U8 && type_is_float(to)};
}

int feed_check(const Feed *f, const ricci_data *d, Error *err)
{
	if (d->err.code)
		return error_set(err, d->err.code, "%s", d->err.text);
	for (int k = 0; k < f->n; k++) {
		const ricci_tensor *t = f->input[k].tensor;
		const Field *field = data_find(d, f->input[k].field);
		int64_t size = (int64_t)(ricci_bytes(t) / type_size(ricci_dtype(t))) / f->batch;
		if (!field)
			return error_set(err, RICCI_EINVAL,
					 "the data set has no field '%s', which feeds the input "
					 "'%s'",
					 f->input[k].field, ricci_name(t));
		if (field->size != size)
			return error_set(
				err, RICCI_ESHAPE,
				"a sample of the field '%s' has %lld elements, the input '%s' "
				"takes %lld",
				field->name, (long long)field->size, ricci_name(t),
				(long long)size);
		if (!convert_possible(field->type, ricci_dtype(t), false))
			return error_set(err, RICCI_ETYPE,
					 "the field '%s' has elements of type %s, the input '%s' "
					 "takes %s",
					 field->name, type_name(field->type), ricci_name(t),
					 type_name(ricci_dtype(t)));
	}
	return 0;
}

int feed_open(Feed *f, ricci_data *d, bool shuffle, uint64_t seed)
{
	ricci_loaded loaded[COUNT(f->input)];
	for (int k = 0; k < f->n; k++)
		loaded[k] = feed_loaded(&f->input[k], data_find(d, f->input[k].field)->type);
	f->loader = ricci_loader_open(
		d, &RICCI_LOADING(.batch = (int)f->batch, .shuffle = shuffle && !d->streams,
				  .seed = seed, .nfield = f->n, .field = loaded));
	return f->loader ? 0 : RICCI_EINVAL;
}

int feed_next(Feed *f, ricci_session *s)
{
	const void *field[COUNT(f->input)];
	int n = ricci_loader_batch(f->loader, field), status = 0;
	for (int k = 0; k < f->n && n > 0 && !status; k++) {
		const ricci_tensor *t = f->input[k].tensor;
		status = ricci_feed(s, t, field[k], ricci_bytes(t));
	}
	return status ? status : n;
}

void feed_close(Feed *f)
{
	ricci_loader_free(f->loader);
}
