/* evaluate.c - a graph computed once (or a few times, for the clock) from bound data. */
#include "runtime/program/program.h"
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* ---- the time of each kernel ---- */
static void times_report(const Program *p, int runs, const Pool *pool, const Evaluation *e)
{
	for (int i = 0; i < p->nrun; i++) {
		const Run *r = &p->run[i];

		if (r->loop)
			times_report(loop_program(r->loop), runs, pool, e);
		if (r->loop || !r->times.count)
			continue;
		const Task *t = r->entry->task;
		const char *text = strstr(t->text, "\nkeep "), *local = strstr(t->text, "\nlocal ");
		bool wide = r->wide && r->kernel->shape.parts > 1;
		KernelTime k = {.text = (text && (!local || text < local) ? text : local) + 1,
				.backend = r->kernel->backend,
				.schedule = &r->kernel->schedule,
				.type = type_accumulator((Type)t->sub.member[0]->type),
				.threads = wide ? pool_threads(pool) : 1,
				.launches = (double)r->launches / runs,
				.seconds = r->times.least,
				.flops = t->flops,
				.read = t->read,
				.written = t->bytes - t->read};
		e->kernel(e->user, &k);
	}
}

static int evaluate_profile(const Program *p, const Evaluation *e, Error *err)
{
	ricci_profile *f = profile_make(p, err);

	if (!f)
		return RICCI_ENOMEM;
	profile_print(e->profile, f);
	ricci_profile_free(f);
	return 0;
}

static int evaluate_runs(Program *p, Pool *pool, Evaluation *e, Error *err)
{
	int n = e->repeat > 1 ? e->repeat : 1, code = 0;
	double *time = mem_alloc((size_t)n * sizeof *time);

	if (!time)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	for (int i = n > 1 ? -1 : 0; i < n && !code; i++) { /* the first of many does not count */
		double start = clock_seconds();

		if (i == 0)
			program_time(p, p->timing);
		code = program_run(p, pool, (RandomState){e->seed, e->step}, NULL, err);
		if (i >= 0)
			time[i] = clock_seconds() - start;
	}
	if (!code) {
		qsort(time, (size_t)n, sizeof *time, by_value);
		e->median_seconds = time[n / 2];
		if (e->kernel)
			times_report(p, n, pool, e);
		if (e->profile)
			code = evaluate_profile(p, e, err);
	}
	mem_free(time);
	return code;
}

static int evaluate_with(ProgramSpec *spec, void *const *out, Evaluation *e, Error *err)
{
	Pool *pool = pool_new(e->threads, err);
	Program *p = NULL;
	int code = pool ? 0 : RICCI_ENOMEM;

	if (!code) {
		spec->threads = spec->request.threads = pool_threads(pool);
		p = program_new(spec, err);
		code = p ? evaluate_runs(p, pool, e, err) : RICCI_ECOMPILE;
	}
	e->again = 0;
	for (int i = 0; p && i < p->nrun; i++)
		e->again += p->run[i].again != NULL;
	for (int i = 0; i < spec->noutput && !code; i++)
		memcpy(out[i], cell_data(&p->cell[p->root[i]]),
		       tensor_bytes(p->cell[p->root[i]].node));
	program_free(p);
	pool_free(pool);
	return code;
}

int evaluate(Ir *ir, int nroot, Node *const *roots, int nbind, const Binding *bind,
	     void *const *out, Evaluation *e, Error *err)
{
	Storages b = {nbind, mem_zalloc(((size_t)nbind + 1) * sizeof *b.st)};
	Node **root = mem_alloc(((size_t)nroot + 1) * sizeof *root);
	ProgramSpec spec = {.ir = ir,
			    .noutput = nroot,
			    .root = root,
			    .find = storages_find,
			    .user = &b,
			    .request = {.backend = e->backend, .own = true},
			    .timing = e->kernel || e->profile,
			    .memory_limit = e->least_memory,
			    .memory_least = e->least_memory};
	Error own = {0};
	char why[256] = "";

	if (!b.st || !root)
		error_set(&own, RICCI_ENOMEM, "out of memory");
	else if (e->backend && !e->backend->available(why, sizeof why))
		error_set(&own, RICCI_ECOMPILE, "backend %s can't be used: %s", e->backend->name,
			  why);
	for (int i = 0; i < nbind && !own.code; i++) {
		b.st[i].node = bind[i].tensor;
		b.st[i].data = (void *)(uintptr_t)bind[i].data; /* read only: it is an input */
		if (bind[i].tensor->op != OP_INPUT)
			error_set(&own, RICCI_EUNSUPPORTED,
				  "only inputs can be bound to data here, not computed tensors");
	}
	if (!own.code) {
		memcpy(root, roots, (size_t)nroot * sizeof *root);
		evaluate_with(&spec, out, e, &own);
	}
	mem_free(b.st);
	mem_free(root);
	return own.code ? error_set(err, own.code, "%s", own.text) : 0;
}
