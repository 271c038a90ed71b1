/* interp.c - the reference interpreter as a backend: slow, and right by definition.
 *
 * Input: a task. Output: a kernel of one part whose module is a copy of the task. Every run copies
 * it again, so runs share nothing and memory does not grow. (Its text would not do: an index that
 * the range of a graph's input keeps inside is not proved there.)
 */
#include "jit/backend/backend.h"

static bool interp_available(char *why, size_t n)
{
	(void)why, (void)n;
	return true;
}

/* One stored member: evaluated in f64 (or int64), then rounded to its type. Of what is stored before
 * it reads what is stored there: kernels that compare the two for equality do so, too. */
static int member_run(Node *member, int nbind, const Binding *bind, const KernelEnv *env, void *out,
		      Error *err)
{
	int64_t n = tensor_size(member);
	void *wide = mem_alloc((size_t)n * 8);
	if (!wide)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	RandomState random = {env->seed, env->step};
	int bad = interp_tensor(member, nbind, bind, random, wide, NULL, err);
	for (int64_t i = 0; i < n && !bad; i++)
		if (type_is_float(member->type))
			type_store(member->type, out, i, ((double *)wide)[i]);
		else
			type_store_int(member->type, out, i, ((int64_t *)wide)[i]);
	mem_free(wide);
	return bad;
}

static void task_run(const Task *task, void *const *buf, const KernelEnv *env, Error *err)
{
	Task *t = task_new(&task->sub, err);
	if (!t)
		return;
	int n = t->sub.ninput, bad = 0;
	Binding *bind = mem_zalloc((size_t)(n + t->sub.nmember + 1) * sizeof *bind);
	if (!bind)
		bad = error_set(err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < n && !bad; i++)
		bind[i] = (Binding){t->sub.input[i], buf[i]};
	for (int k = 0; k < t->sub.nmember && !bad; k++)
		if (t->sub.stored[k]) {
			bad = member_run(t->sub.member[k], n, bind, env, buf[n], err);
			bind[n] = (Binding){t->sub.member[k], buf[n]};
			n++;
		}
	mem_free(bind);
	task_free(t);
}

static void interp_run(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	if (begin < end)
		task_run(env->kernel->module, buf, env, env->err);
}

Kernel *kernel_interp(const Task *t, Error *err)
{
	Kernel *k = kernel_new(&backend_interp, err);
	if (!k)
		return NULL;
	k->module = task_new(&t->sub, err);
	if (!k->module) {
		kernel_unref(k);
		return NULL;
	}
	k->run = interp_run;
	return k;
}

static int interp_compile(const Backend *b, int n, Kernel **kernels, Text *object, Error *err)
{
	(void)b, (void)n, (void)kernels, (void)object, (void)err;
	return 0; /* kernel_interp has done everything */
}

static void interp_release(void *module)
{
	task_free(module);
}

static char *interp_version(void)
{
	static char version[] = "interp " RICCI_VERSION;
	return version;
}

const Backend backend_interp = {
	.name = "interp",
	.available = interp_available,
	.compile = interp_compile,
	.release = interp_release,
	.version = interp_version,
};
