/* check.c - the first launch of a kernel that nobody has judged yet.
 *
 * Kernels of the first iteration are too many and the iteration too short to run each on random
 * data first. Instead some elements are computed by the interpreter from the step's own data before
 * the launch, and compared after it. A kernel that fails is replaced by the interpreter's and its
 * launch repeated; where the user asked for that backend, it is an error. The step's data may be
 * unlucky (all terms of a long sum alike): a kernel that is right on random data is given more
 * room.
 */
#include "runtime/internal.h"
#include <string.h>

static const double check_points = 3000, check_limit = 40000;
enum { CHECK_MOST = 24 };

/* Results in place would overwrite what a repeated launch reads: they go beside first. */
static int run_beside(Run *r, Pool *pool, RandomState rs, void **buf, bool *beside, Error *err)
{
	*beside = false;
	memcpy(buf, r->buf, (size_t)r->nbuf * sizeof *buf);
	for (int o = r->ninput; o < r->nbuf; o++)
		for (int i = 0; i < r->ninput; i++)
			if (r->buf[o] == r->buf[i] && buf[o] == r->buf[o]) {
				buf[o] = buffer_new(tensor_bytes(task_tensor(r->line->task, o)));
				*beside = true;
				if (!buf[o])
					return error_set(err, RICCI_ENOMEM, "out of memory");
			}
	return pool_launch(pool, r->kernel, buf, &rs, r->wide, err);
}

static void beside_end(Run *r, void **buf, bool keep)
{
	for (int o = r->ninput; o < r->nbuf; o++)
		if (buf[o] && buf[o] != r->buf[o]) {
			if (keep)
				memcpy(r->buf[o], buf[o],
				       tensor_bytes(task_tensor(r->line->task, o)));
			buffer_free(buf[o]);
		}
}

/* The interpreter in place of a wrong kernel. */
static int run_replace(Run *r, Pool *pool, RandomState rs, const Error *why, Error *err)
{
	Schedule none = {0};
	Kernel *k;

	env_dump_text("kernels", "replaced by the interpreter", why->text);
	if (r->line->request.backend)
		return error_set(err, why->code, "%s, made by %s for\n%.600s", why->text,
				 r->kernel->backend->name, r->line->task->text);
	k = kernel_make(r->line->task, &none, backend_find("interp"), target_host(), err);
	if (!k)
		return err ? err->code : RICCI_ECOMPILE;
	kernel_unref(r->kernel);
	r->kernel = kernel_ref(k);
	line_put(r->line, k, NULL, 0, true);
	return pool_launch(pool, r->kernel, r->buf, &rs, r->wide, err);
}

int run_checked(Run *r, Pool *pool, RandomState rs, Error *err)
{
	const Task *t = r->line->task;
	void **buf = mem_zalloc(((size_t)r->nbuf + 1) * sizeof *buf);
	Sample s = {0};
	Error wrong = {0};
	bool beside = false;
	int code;

	if (!buf)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	code = sample_expect(t, r->buf, rs, check_points, check_limit, CHECK_MOST, &s, err);
	if (!code)
		code = run_beside(r, pool, rs, buf, &beside, err);
	if (!code && s.n && sample_judge(t, &s, buf + r->ninput, NULL)) {
		code = sample_widen(t, r->buf, rs, &s, err);
		if (!code && sample_judge(t, &s, buf + r->ninput, &wrong) &&
		    !verify_kernel(t, r->kernel, false, NULL)) {
			sample_one_way(t, &s);
			error_clear(&wrong);
			sample_judge(t, &s, buf + r->ninput, &wrong);
		}
	}
	if (beside)
		beside_end(r, buf, !code && !wrong.code);
	mem_free(buf);
	sample_free(&s);
	if (code)
		return code;
	if (wrong.code)
		return run_replace(r, pool, rs, &wrong, err);
	line_prove(r->line, r->kernel);
	r->proved = true;
	return 0;
}
