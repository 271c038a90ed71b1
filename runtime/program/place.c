/* place.c - where tensors live, and how assigned values become states.
 *
 * Temporaries share one arena by their lives. An assigned value is computed in place when nothing
 * can notice: its kernel reads the old value at the element it writes and for nothing else, and
 * nobody reads the old value later. Otherwise it is computed beside, and the two blocks change
 * places at the end of the step; a value that is no kernel's own result is copied there.
 */
#include "runtime/program/program.h"
#include <string.h>

/* ---- in place? ---- */
/* Is every read of x within e at c's own element? Axes of a "=" equation stand bare on the left. */
typedef struct Reads {
	const Node *tensor, *comp;
	bool own, any;
} Reads;

static void reads_visit(void *user, Node *n)
{
	Reads *r = user;

	if (n->op != OP_READ || n->src[0] != r->tensor)
		return;
	r->any = true;
	for (int d = 0; d + 1 < n->nsrc; d++)
		r->own = r->own && (n->src[d + 1] == comp_lhs(r->comp, d) ||
				    (tensor_extent(r->tensor, d) == 1));
}

static Reads reads_of(Ir *ir, const Node *tensor, Node *comp)
{
	Reads r = {tensor, comp, true, false};

	IR_ENTER(ir, ((Reads){tensor, comp, false, true}));
	node_walk(ir, comp_body(comp), reads_visit, &r);
	for (int d = 0; d < tensor_rank(comp); d++)
		node_walk(ir, comp_lhs(comp, d), reads_visit, &r);
	IR_LEAVE(ir);
	if (r.any && (comp_reduce(comp) != RED_NONE || tensor_rank(comp) != tensor_rank(tensor)))
		r.own = false;
	return r;
}

/* May run `at` write cell c over state x? What is computed from x or c besides c stays within the
 * kernel: for another result a compiler may make a loop of its own, after c's. */
static bool run_in_place(const Program *p, Ir *ir, int at, const Cell *c, Node *x)
{
	const Subgraph *s = p->run[at].sub;
	uint64_t touched = 0; /* members that depend on x or c */
	bool reads = false;

	for (int k = 0; k < s->ninput; k++) {
		if (cell_whole(&p->cell[p->run[at].cell[k]])->node != x)
			continue;
		if (s->input[k] != x) /* a view */
			return false;
		reads = true;
	}
	if (!reads)
		return true;
	if (p->run[at].loop || s->nmember > 64 ||
	    s->rows) /* rows are read again after c's are written */
		return false;
	for (int k = 0; k < s->nmember; k++) {
		Reads r = reads_of(ir, x, s->member[k]);
		bool depends = r.any || s->member[k] == c->node;

		for (int j = 0; j < k && !depends; j++)
			depends = touched >> j & 1 && reads_of(ir, s->member[j], s->member[k]).any;
		if (!r.own || (depends && s->stored[k] && s->member[k] != c->node))
			return false;
		touched |= (uint64_t)depends << k;
	}
	return true;
}

/* cell_of: by the id of a node, -1: none. */
static bool assign_in_place(const Program *p, const ProgramSpec *s, const int *cell_of, int a)
{
	const Storage *st = s->assigned[a];
	const Cell *c = &p->cell[p->root[s->noutput + a]];
	int now = cell_of[st->node->id];

	/* Read by a later run, an output, or the next value of another? */
	if (st->kept || (now >= 0 && (p->cell[now].last > c->first || p->cell[now].root)))
		return false;
	/* A step that fails changes nothing. */
	if (!p->inner && p->last_failing >= c->first)
		return false;
	return run_in_place(p, s->ir, c->first, c, st->node);
}

static void assign_place(Program *p, const ProgramSpec *s, const int *cell_of, int a)
{
	Storage *st = s->assigned[a];
	Cell *c = &p->cell[p->root[s->noutput + a]];

	st->used = true;
	if (c->kind == CELL_TEMP) {
		bool in_place = assign_in_place(p, s, cell_of, a);

		c->kind = CELL_NEXT;
		c->storage = st;
		c->in_place = c->could = in_place;
	}
}

/* ---- the arena ---- */
/* Temporaries, and what each loop needs while it runs. */
static int place_temporaries(Program *p, Error *err)
{
	PlanItem *item = mem_zalloc(((size_t)p->ncell + (size_t)p->nrun + 1) * sizeof *item);
	int n = 0, code;

	if (!item)
		return error_set(err, RICCI_ENOMEM, "out of memory for the memory plan");
	for (int i = 0; i < p->ncell; i++)
		if (p->cell[i].kind == CELL_TEMP)
			item[n++] = (PlanItem){tensor_bytes(p->cell[i].node), p->cell[i].first,
					       p->cell[i].last, 0};
	for (int i = 0; i < p->nrun; i++)
		if (p->run[i].loop)
			item[n++] = (PlanItem){loop_bytes(p->run[i].loop), i, i, 0};
	code = plan_offsets(n, item, &p->arena_bytes, err);
	n = 0;
	for (int i = 0; i < p->ncell && !code; i++)
		if (p->cell[i].kind == CELL_TEMP)
			p->cell[i].offset = item[n++].offset;
	for (int i = 0; i < p->nrun && !code; i++)
		if (p->run[i].loop)
			p->run[i].offset = item[n++].offset;
	mem_free(item);
	return code;
}

void program_bind(Program *p, char *arena)
{
	for (int i = 0; i < p->ncell; i++)
		if (p->cell[i].kind == CELL_TEMP)
			p->cell[i].data = arena + p->cell[i].offset;
	for (int i = 0; i < p->nrun; i++)
		if (p->run[i].loop)
			loop_bind(p->run[i].loop, arena + p->run[i].offset);
}

int program_place(Program *p, const ProgramSpec *s, const int *cell_of, Error *err)
{
	int code = 0;

	for (int i = 0; i < p->nroot; i++)
		p->cell[p->root[i]].root = true;
	p->last_failing = -1;
	for (int i = 0; i < p->nrun && !p->inner; i++)
		if (p->run[i].loop && loop_may_fail(p, &p->run[i]))
			p->last_failing = i;
	for (int i = 0; i < s->noutput && !code; i++) {
		Cell *c = &p->cell[p->root[i]];

		if (c->kind != CELL_TEMP)
			continue;
		c->kind = CELL_OUTPUT;
		if (!p->inner && !(c->data = device_alloc(p->device, tensor_bytes(c->node),
							  MEMORY_OUTPUTS, "an output", err)))
			code = RICCI_ENOMEM;
	}
	for (int a = 0; a < s->nassign && !code; a++)
		assign_place(p, s, cell_of, a);
	if (!code)
		code = place_temporaries(p, err);
	p->unlimited_bytes = p->arena_bytes + program_beside(p, s);
	if (code || p->inner || !s->memory_limit || p->unlimited_bytes <= s->memory_limit)
		return code;
	code = program_limit(p, s, cell_of, err);
	return code ? code : place_temporaries(p, err);
}

/* ---- the end of a step ---- */
static bool assign_copies(const Program *p, const ProgramSpec *s, int a)
{
	const Cell *c = &p->cell[p->root[s->noutput + a]];

	return c->kind == CELL_OUTPUT || c->storage != s->assigned[a];
}

static bool assign_swaps(const Program *p, const ProgramSpec *s, int a)
{
	const Cell *c = &p->cell[p->root[s->noutput + a]];

	return assign_copies(p, s, a) || (c->kind == CELL_NEXT && !c->in_place);
}

bool assign_beside(const Program *p, const ProgramSpec *s, int a)
{
	const Cell *c = &p->cell[p->root[s->noutput + a]];

	return assign_copies(p, s, a) || (c->kind == CELL_NEXT && !c->could);
}

int program_reserve(const Program *p, const ProgramSpec *s, Error *err)
{
	for (int a = 0; a < s->nassign; a++) {
		Storage *st = s->assigned[a];

		if (assign_swaps(p, s, a) && !st->spare &&
		    !(st->spare = device_alloc(p->device, st->bytes, MEMORY_STATES,
					       "the next value of a state", err)))
			return RICCI_ENOMEM;
	}
	return 0;
}

/* Integer states that index must keep to the range their gathers need. data: on the host. */
static int range_check(const Storage *st, const void *data, Error *err)
{
	const ricci_tensor *t = st->tensor;
	int64_t n = tensor_size(st->node);

	for (int64_t i = 0; i < n; i++) {
		int64_t v = type_load_int((Type)st->node->type, data, (size_t)i);

		if (v < t->need_lo || v > t->need_hi)
			return error_set(err, RICCI_EVALUE,
					 "'%s' would become %lld at element %lld, but the graph "
					 "indexes with it and needs %lld..%lld",
					 t->name, (long long)v, (long long)i, (long long)t->need_lo,
					 (long long)t->need_hi);
	}
	return 0;
}

static bool range_needed(const Storage *st)
{
	const ricci_tensor *t = st->tensor;
	Type type = (Type)st->node->type;
	int64_t lo, hi;

	if (!t || !type_is_int(type))
		return false;
	type_range(type, &lo, &hi);
	return t->need_lo > lo || t->need_hi < hi;
}

static int assign_check(Device *d, const Storage *st, const void *data, Error *err)
{
	void *copy = NULL;
	int code;

	if (!range_needed(st))
		return 0;
	if (!d->kind->launch)
		return range_check(st, data, err);
	if (!(copy = mem_alloc(st->bytes)))
		return error_set(err, RICCI_ENOMEM, "out of memory");
	code = device_copy(d, COPY_OUT, copy, data, st->bytes, err);
	if (!code)
		code = range_check(st, copy, err);
	mem_free(copy);
	return code;
}

int program_commit(Program *p, const ProgramSpec *s, Error *err)
{
	int code = 0;

	for (int a = 0; a < s->nassign && !code; a++)
		code = assign_check(p->device, s->assigned[a],
				    cell_data(&p->cell[p->root[s->noutput + a]]), err);
	for (int a = 0; a < s->nassign && !code; a++)
		if (assign_copies(p, s, a))
			code = device_copy(p->device, COPY_WITHIN, s->assigned[a]->spare,
					   cell_data(&p->cell[p->root[s->noutput + a]]),
					   s->assigned[a]->bytes, err);
	if (code)
		return code;
	for (int a = 0; a < s->nassign; a++)
		if (assign_swaps(p, s, a)) {
			Storage *st = s->assigned[a];
			void *data = st->data;

			st->data = st->spare;
			st->spare = data;
		}
	return 0;
}
