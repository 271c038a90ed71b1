/* module_write.c - ricci_export_module: a trained net as a file that is loaded and run. Input: a
 * session, or a checkpoint. Output: the net's text, its kernels, its weights, in one file. Invariant:
 * kernels are those of the net as it is read from the text, which is what loading does, too. */
#include "nn/nn.h"
#include "nn/serve/module.h"
#include <string.h>

static size_t up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* The kernels of a net: a session over it finds the best schedules that the cache has, and tries
 * those that are offered. */
static int kernels_write(const ReadNet *m, int threads, Text *out, Error *err)
{
	ricci_session *s = ricci_session_new(m->g, &RICCI_OPTIONS(.threads = threads), 0,
					     m->noutput, m->output);
	int code = s ? 0 : error_set(err, RICCI_EINTERNAL, "%s", ricci_error_message());

	if (!code && ricci_settle(s))
		code = error_set(err, RICCI_EINTERNAL, "%s", ricci_error_message());
	if (!code)
		code = pack_write(s, out, err);
	ricci_session_free(s);
	return code;
}

/* Where their places are in the file: pack_places. Caller frees. */
static char *weights_make(const ricci_graph *g, void *const *data, size_t *bytes, Error *err)
{
	size_t n = (size_t)ricci_param_count(g) + 1;
	size_t *offset = mem_alloc(n * sizeof *offset);
	*bytes = pack_places(g, offset);
	char *all = offset ? mem_zalloc(*bytes + 1) : NULL;

	if (!all)
		error_set(err, RICCI_ENOMEM, "out of memory for a net's weights");
	for (int k = 0; all && k < ricci_param_count(g); k++)
		memcpy(all + offset[k], data[k], ricci_bytes(ricci_param_at(g, k, NULL)));
	mem_free(offset);
	return all;
}

static int module_put(const char *path, Text *body, size_t text, size_t kernels_at,
		      const char *weights, size_t bytes, Error *err)
{
	static const char zero[MODULE_PAGE];
	const Target *host = target_host();
	ModuleHead h = {.format = MODULE_FORMAT,
			.order = MODULE_ORDER,
			.isa = host->isa,
			.vector_bytes = (uint32_t)host->vector_bytes,
			.text = text,
			.kernels = body->n - (kernels_at - sizeof h),
			.weights = bytes,
			.kernels_at = kernels_at,
			.weights_at = up(sizeof h + body->n, MODULE_PAGE)};

	text_put(body, zero, h.weights_at - sizeof h - body->n);
	if (body->failed)
		return error_set(err, RICCI_ENOMEM, "out of memory for a module");
	snprintf(h.magic, sizeof h.magic, "%s", MODULE_MAGIC);
	snprintf(h.version, sizeof h.version, "%s", code_version());
	snprintf(h.isa_names, sizeof h.isa_names, "%s", host->key);
	h.body_sum = serve_checksum(body->s, body->n);
	h.weights_sum = serve_checksum(weights, bytes);
	h.head_sum = serve_checksum(&h, offsetof(ModuleHead, head_sum));
	return file_replace(path, false,
			    (Bytes[]){{&h, sizeof h}, {body->s, body->n}, {weights, bytes}}, 3,
			    err);
}

/* m's values are data; its text is read again, as loading does. */
static int module_write(const ReadNet *m, void *const *data, int threads, const char *path,
			Error *err)
{
	static const char zero[PACK_ALIGN];
	Text body = {0}, kernels = {0};
	ReadNet own = {0};
	char *weights = NULL;
	size_t bytes = 0;
	int code = net_print(&body, m->noutput, m->output, m->name, err);

	if (!code)
		code = net_read(&own, body.s, err);
	size_t text = body.n + 1;
	size_t kernels_at = up(sizeof(ModuleHead) + text, PACK_ALIGN);
	text_put(&body, zero, kernels_at - sizeof(ModuleHead) - body.n);
	if (!code)
		code = kernels_write(&own, threads, &kernels, err);
	if (!code && kernels.n)
		text_put(&body, kernels.s, kernels.n);
	text_free(&kernels);
	if (!code && !(weights = weights_make(m->g, data, &bytes, err)))
		code = RICCI_ENOMEM;
	if (!code)
		code = module_put(path, &body, text, kernels_at, weights, bytes, err);
	ricci_graph_free(own.g);
	mem_free(weights);
	text_free(&body);
	return code;
}

int ricci_export_module(ricci_session *s, int n, ricci_tensor *const *output,
			const char *const *name, int threads, const char *path)
{
	Error *err = ERROR_TELL;
	ReadNet m = {0};
	void **data = NULL;

	if (!s || !path)
		return error_set(err, RICCI_EINVAL, "ricci_export_module needs a %s",
				 s ? "path" : "session");
	int code = serve_model(s, n, output, name, &m, &data, err);
	if (code)
		return code;
	code = module_write(&m, data, threads, path, err);
	checkpoint_model_free(&m, data);
	return code;
}

int ricci_export_module_checkpoint(const char *checkpoint, int threads, const char *path)
{
	Error *err = ERROR_TELL;
	ReadNet m;
	void **data;

	if (!checkpoint || !path)
		return error_set(err, RICCI_EINVAL, "ricci_export_module_checkpoint needs a %s",
				 checkpoint ? "path" : "checkpoint");
	int code = checkpoint_model(checkpoint, &m, &data, err);
	if (code)
		return code;
	code = module_write(&m, data, threads, path, err);
	checkpoint_model_free(&m, data);
	return code;
}
