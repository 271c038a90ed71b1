/* profile.c - where the time of a step goes, by kernel and by layer, and its memory.
 * Input: a session whose kernels were timed. Output: a table of kernels, one of layers: the
 * scopes of the parameters' names ("stage1.block0.conv" of "stage1.block0.conv.weight"), and one of
 * what is kept and what is computed again. */
#include "nn/training/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct Layer {
	char name[64];
	double share;
} Layer;

static int layer_order(const void *a, const void *b)
{
	double x = ((const Layer *)a)->share, y = ((const Layer *)b)->share;
	return (x < y) - (x > y);
}

static void layer_name(const char *parameter, char *out, size_t n)
{
	const char *point = strrchr(parameter, '.');
	int length = point ? (int)(point - parameter) : (int)strlen(parameter);
	snprintf(out, n, "%.*s", length, *parameter ? parameter : "");
	if (!*out)
		snprintf(out, n, "(no parameter)");
}

static void layers_print(const ricci_profile *f, Layer *layer, FILE *out)
{
	int n = 0;
	double step = ricci_profile_step(f);
	for (int i = 0; i < ricci_profile_count(f); i++) {
		const ricci_kernel_time *k = ricci_profile_at(f, i);
		Layer own = {.share = k->share};
		int at = 0;
		if (k->is_loop)
			continue; /* its kernels have rows of their own */
		layer_name(k->parameter, own.name, sizeof own.name);
		while (at < n && strcmp(layer[at].name, own.name))
			at++;
		if (at == n)
			layer[n++] = own;
		else
			layer[at].share += own.share;
	}
	qsort(layer, (size_t)n, sizeof *layer, layer_order);
	fprintf(out, "%8s %9s  %s\n", "share", "ms", "layer");
	for (int i = 0; i < n; i++)
		fprintf(out, "%7.1f%% %9.3f  %s\n", 100 * layer[i].share,
			1e3 * layer[i].share * step, layer[i].name);
}

int layers_profile(ricci_session *s, FILE *out, Error *err)
{
	ricci_profile *f = ricci_profile_new(s);
	if (!f)
		return RICCI_EINVAL;
	ricci_memory *m = ricci_memory_new(s);
	char *text = ricci_profile_text(f), *memory = ricci_memory_text(m);
	Layer *layer = mem_alloc((size_t)(ricci_profile_count(f) + 1) * sizeof *layer);
	int status = 0;
	if (text && memory && layer) {
		fprintf(out, "%s\n", text);
		layers_print(f, layer, out);
		fprintf(out, "\n%s", memory);
		fflush(out);
	} else {
		status = error_set(err, RICCI_ENOMEM, "out of memory");
	}
	mem_free(layer);
	ricci_free_text(text);
	ricci_free_text(memory);
	ricci_memory_free(m);
	ricci_profile_free(f);
	return status;
}
