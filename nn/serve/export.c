/* export.c - ricci_export: trained nets as files of C. Input: a session, or a checkpoint. Output: the
 * source, its header, and the weights where they lie beside. Invariant: the net goes through its text,
 * so that both inputs give the same files. */
#include "nn/nn.h"
#include "nn/serve/serve.h"
#include <string.h>

typedef struct Values {
	const ricci_graph *g;
	void **data; /* of ricci_param_at(g, 0 ..) */
} Values;

static const void *value_of(void *user, const ricci_tensor *t)
{
	const Values *v = user;
	int k = 0;

	while (v->g->kept[k] != t)
		k++;
	return v->data[k];
}

/* "dir/net.c" -> "net", an identifier; *stem: bytes before the ending. */
static int names_of(const char *path, char prefix[128], size_t *stem, Error *err)
{
	const char *slash = path ? strrchr(path, '/') : NULL, *base = slash ? slash + 1 : path;
	size_t n = base ? strlen(base) : 0;

	if (n < 3 || strcmp(base + n - 2, ".c"))
		return error_set(err, RICCI_EINVAL, "%s should be a file name that ends with .c",
				 path ? path : "NULL");
	if (n - 2 > 100)
		return error_set(err, RICCI_EINVAL, "%s: the name is too long for functions of C",
				 path);
	*stem = strlen(path) - 2;
	snprintf(prefix, 128, "%s%.*s", *base >= '0' && *base <= '9' ? "_" : "", (int)(n - 2),
		 base);
	for (char *c = prefix; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		      (*c >= '0' && *c <= '9')))
			*c = '_';
	return 0;
}

typedef struct Texts {
	Text c, h, weights;
} Texts;

static int texts_write(const Texts *t, const char *path, size_t stem, const char *weights,
		       Error *err)
{
	Text header = {0};

	text_put(&header, path, stem);
	text_add(&header, ".h");
	int code = header.failed ? error_set(err, RICCI_ENOMEM, "out of memory") : 0;
	if (!code && weights)
		code = file_replace(weights, false, &(Bytes){t->weights.s, t->weights.n}, 1, err);
	if (!code)
		code = file_replace(header.s, false, &(Bytes){t->h.s, t->h.n}, 1, err);
	if (!code)
		code = file_replace(path, false, &(Bytes){t->c.s, t->c.n}, 1, err);
	text_free(&header);
	return code;
}

static int model_export(ReadNet *m, void **data, const char *path, const char *weights, Error *err)
{
	Values v = {m->g, data};
	Texts t = {0};
	ServePlan plan = {0};
	char prefix[128], header[160];
	size_t stem = 0;
	int code = names_of(path, prefix, &stem, err);

	if (code)
		return code;
	const char *slash = strrchr(path, '/');
	snprintf(header, sizeof header, "%.*s.h",
		 (int)(stem - (slash ? (size_t)(slash + 1 - path) : 0)), slash ? slash + 1 : path);
	ServeText how = {prefix, header, weights, value_of, &v};
	code = serve_plan(&plan, m, err);
	if (!code)
		code = serve_source(&plan, &how, &t.c, &t.h, err);
	if (!code && weights)
		code = serve_weights(&plan, &how, &t.weights, err);
	if (!code)
		code = texts_write(&t, path, stem, weights, err);
	serve_plan_free(&plan);
	text_free(&t.c);
	text_free(&t.h);
	text_free(&t.weights);
	return code;
}

/* The values of the model's parameters and states, from the session that has them by the same names. */
static int session_values(ricci_session *s, const ricci_graph *g, const ReadNet *m, void **data,
			  Error *err)
{
	for (int k = 0; k < ricci_param_count(m->g); k++) {
		const ricci_tensor *mine = ricci_param_at(m->g, k, NULL);
		const ricci_tensor *t = ricci_param_find(g, ricci_name(mine));
		data[k] = mem_zalloc(ricci_bytes(mine));
		if (!data[k])
			return error_set(err, RICCI_ENOMEM, "out of memory for '%s'",
					 ricci_name(mine));
		if (ricci_fetch(s, t, data[k], ricci_bytes(mine)))
			return error_set(err, RICCI_EINVAL, "ricci_export: %s",
					 ricci_error_message());
	}
	return 0;
}

int serve_model(ricci_session *s, int n, ricci_tensor *const *output, const char *const *name,
		ReadNet *m, void ***data, Error *err)
{
	Text text = {0};

	*data = NULL;
	int code = net_print(&text, n, output, name, err);
	if (!code)
		code = net_read(m, text.s, err);
	text_free(&text);
	if (code)
		return code;
	*data = mem_zalloc(((size_t)ricci_param_count(m->g) + 1) * sizeof **data);
	if (!*data)
		code = error_set(err, RICCI_ENOMEM, "out of memory for a net's weights");
	if (!code)
		code = session_values(s, output[0]->g, m, *data, err);
	if (code)
		checkpoint_model_free(m, *data);
	return code;
}

int ricci_export(ricci_session *s, int n, ricci_tensor *const *output, const char *const *name,
		 const char *path, const char *weights)
{
	Error *err = ERROR_TELL;
	ReadNet m = {0};
	void **data;

	if (!s)
		return error_set(err, RICCI_EINVAL, "ricci_export needs a session");
	int code = serve_model(s, n, output, name, &m, &data, err);
	if (code)
		return code;
	code = model_export(&m, data, path, weights, err);
	checkpoint_model_free(&m, data);
	return code;
}

int ricci_export_checkpoint(const char *checkpoint, const char *path, const char *weights)
{
	Error *err = ERROR_TELL;
	ReadNet m;
	void **data;

	if (!checkpoint)
		return error_set(err, RICCI_EINVAL, "ricci_export_checkpoint needs a checkpoint");
	int code = checkpoint_model(checkpoint, &m, &data, err);
	if (code)
		return code;
	code = model_export(&m, data, path, weights, err);
	checkpoint_model_free(&m, data);
	return code;
}
