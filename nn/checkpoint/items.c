/* items.c - the tensors of a checkpoint.
 * Input: an output of a graph. Output: its graph's parameters and states with room for their values,
 * and the fingerprint of equations, names, types and shapes, by which a model is known again. */
#include "nn/checkpoint/internal.h"

#include <math.h>

void items_free(Items *s)
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

int items_make(Items *s, const ricci_tensor *model, bool weights, Error *err)
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

const Item *items_diverged(const Items *s, double *value)
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
