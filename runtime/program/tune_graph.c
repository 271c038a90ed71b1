/* tune_graph.c - searching schedules for a graph's kernels, as `ricci tune` does.
 *
 * Input: a graph's roots. It becomes a program as for a run, whose entries are tuned (search/tune.c);
 * nothing is run, so its inputs have no data.
 */
#include "runtime/program/program.h"
#include <string.h>

/* All inputs of the graph; data they need none. */
static int inputs_make(Ir *ir, int nroot, Node *const *roots, Storages *in, Error *err)
{
	Node **order;
	int n;

	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	n = graph_order(ir, nroot, roots, &order);
	IR_LEAVE(ir);
	in->st = mem_zalloc(((size_t)n + 1) * sizeof *in->st);
	if (!in->st)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < n; i++)
		if (order[i]->op == OP_INPUT)
			in->st[in->n++] = (Storage){.node = order[i]};
	return 0;
}

/* The first device of those that a backend makes kernels for. */
static int backend_device(const Backend *b, Device **device, Error *err)
{
	*device = NULL;
	for (int k = 0; b && device_kinds[k] && !*device; k++)
		if (device_kinds[k]->backend && !strcmp(device_kinds[k]->backend, b->name) &&
		    !(*device = device_named(device_kinds[k]->name, err)))
			return RICCI_EINVAL;
	return 0;
}

int tune(Ir *ir, int nroot, Node *const *roots, const Tuning *t, Error *err)
{
	Storages in = {0};
	Node **root = mem_alloc(((size_t)nroot + 1) * sizeof *root);
	ProgramSpec spec = {.ir = ir,
			    .noutput = nroot,
			    .root = root,
			    .find = storages_find,
			    .user = &in,
			    .request = {.backend = t->backend}};
	Pool *pool = pool_new(t->threads, err);
	Program *p = NULL;
	int code = pool && root ? inputs_make(ir, nroot, roots, &in, err) : RICCI_ENOMEM;

	if (!code)
		code = backend_device(t->backend, &spec.request.device, err);
	if (!code) {
		memcpy(root, roots, (size_t)nroot * sizeof *root);
		spec.threads = pool_threads(pool);
		spec.request.threads = spec.request.device ? 0 : spec.threads;
		spec.device = spec.request.device;
		p = program_new(&spec, err);
		code = p ? entries_tune(p->nentry, p->entry, pool, t, err) : RICCI_ECOMPILE;
	}
	program_free(p);
	pool_free(pool);
	mem_free(root);
	mem_free(in.st);
	return code;
}
