/* program.c - a graph made ready to run: runs (kernels in order) over cells (places of tensors).
 *
 * Input: roots of a frozen graph. The roots are rewritten and partitioned; each subgraph becomes a
 * task and finds its entry in the function cache; each tensor that crosses kernels becomes a cell.
 */
#include "runtime/program/program.h"
#include <string.h>

void time_stage(const char *stage, double *from)
{
	double now = clock_seconds();

	if (env_long("RICCI_TIME", 0) > 0)
		fprintf(stderr, "ricci: %-10s %8.3f ms\n", stage, 1e3 * (now - *from));
	trace_span("session", stage, *from, "");
	*from = now;
}

/* ---- building ---- */
typedef struct Build {
	const ProgramSpec *spec;
	Program *p;
	int nsub, room;
	Subgraph *sub;
	int *cell_of; /* by node id; -1: none */
	Error *err;
	double clock;
} Build;

/* The time of loops' bodies is their program's. */
static void build_stage(Build *b, const char *stage)
{
	if (!b->spec->within)
		time_stage(stage, &b->clock);
}

static int build_partition(Build *b)
{
	const ProgramSpec *s = b->spec;
	int nroot = s->noutput + s->nassign, code;
	const Request *r = &s->request;
	DeviceModel dev;

	IR_ENTER(s->ir, error_set(b->err, RICCI_ENOMEM, "out of memory"));
	if (!s->within)
		graph_set_training(s->ir, nroot, s->root, s->train);
	/* A body was cleaned up with the graph around it. */
	code = s->within ? 0 : rewrite_graph(s->ir, nroot, s->root);
	if (!code && s->precision != RICCI_F32)
		code = rewrite_precision(s->ir, s->precision, nroot, s->root);
	if (!code && s->by_chance)
		code = rewrite_rounding(s->ir, s->within, nroot, s->root);
	if (!code)
		code = rewrite_layouts(s->ir, nroot, s->root);
	build_stage(b, "rewrite");
	dev = r->pack	  ? *pack_device(r->pack)
	      : r->device ? r->device->kind->model
	      : r->frozen ? *device_nominal()
			  : device_model(graph_bytes(s->ir, nroot, s->root));
	if (!r->pack && !r->device && !r->frozen && s->threads > 0)
		dev.threads = s->threads;
	b->p->device_model = dev;
	build_stage(b, "device");
	if (!code)
		code = fuse_partition(s->ir, nroot, s->root, &dev, &b->nsub, &b->sub);
	build_stage(b, "fuse");
	IR_LEAVE(s->ir);
	if (code)
		error_set(b->err, code, "%s", s->ir->err.text);
	return code;
}

static int cell_add(Build *b, Node *n, CellKind kind, int at)
{
	Program *p = b->p;

	p->cell[p->ncell] = (Cell){.node = n, .kind = kind, .first = at, .last = at};
	b->cell_of[n->id] = p->ncell;
	return p->ncell++;
}

static void cell_last(Cell *c, int at)
{
	for (; c; c = c->of)
		c->last = c->last < at ? at : c->last;
}

/* The cell of a tensor that is read in run `at`; -1 with an error. */
static int cell_read(Build *b, Node *n, int at)
{
	Program *p = b->p;
	int c = b->cell_of[n->id];

	if (c < 0 && n->op == OP_INPUT) {
		Storage *st = b->spec->find(b->spec->user, n);

		if (!st) {
			error_set(b->err, RICCI_EINVAL,
				  "the graph reads '%s', which has no data (a loop's variable has "
				  "none outside of its loop)",
				  n->u.s);
			return -1;
		}
		st->used = true;
		c = cell_add(b, n, CELL_STATE, 0);
		p->cell[c].storage = st;
	}
	if (c < 0) {
		error_set(b->err, RICCI_EINTERNAL, "a tensor is read before it is computed");
		return -1;
	}
	cell_last(&p->cell[c], at);
	return c;
}

static int build_arrays(Build *b)
{
	Program *p = b->p;
	int nroot = b->spec->noutput + b->spec->nassign;
	size_t nodes = b->spec->ir->count, cells = (size_t)nroot + 1, bufs = 1;

	for (int i = 0; i < b->nsub; i++)
		bufs += (size_t)b->sub[i].ninput + (size_t)b->sub[i].nmember;
	cells += bufs;
	p->run = arena_alloc(&p->memory, ((size_t)b->nsub + 1) * sizeof *p->run);
	p->cell = arena_alloc(&p->memory, cells * sizeof *p->cell);
	p->root = arena_alloc(&p->memory, ((size_t)nroot + 1) * sizeof *p->root);
	b->cell_of = mem_alloc((nodes + 1) * sizeof *b->cell_of);
	if (!p->run || !p->cell || !p->root || !b->cell_of)
		return error_set(b->err, RICCI_ENOMEM, "out of memory");
	memset(b->cell_of, -1, (nodes + 1) * sizeof *b->cell_of);
	return 0;
}

/* The cells of what run i reads and writes. */
static int build_cells(Build *b, Run *r, const Subgraph *s, int i)
{
	Program *p = b->p;

	r->ninput = s->ninput;
	r->nbuf = s->ninput;
	for (int k = 0; k < s->nmember; k++)
		r->nbuf += s->stored[k];
	r->cell = arena_alloc(&p->memory, ((size_t)r->nbuf + 1) * sizeof *r->cell);
	r->buf = arena_alloc(&p->memory, ((size_t)r->nbuf + 1) * sizeof *r->buf);
	if (!r->cell || !r->buf)
		return error_set(b->err, RICCI_ENOMEM, "out of memory");
	for (int k = 0; k < s->ninput; k++)
		if ((r->cell[k] = cell_read(b, s->input[k], i)) < 0)
			return b->err->code;
	for (int k = 0, out = s->ninput; k < s->nmember; k++)
		if (s->stored[k])
			r->cell[out++] = cell_add(b, s->member[k], CELL_TEMP, i);
	return 0;
}

/* The element's place in memory, from the indices of its dimensions. */
static Node *flat_index(Ir *ir, const Node *t, Node *const *index)
{
	Node *at = node_int(ir, 0);

	for (int d = 0; d < tensor_rank(t); d++)
		at = node_add(ir, node_scale(ir, at, tensor_extent(t, d)), index[d]);
	return at;
}

/* Bytes from where t begins to where c, which only reads it, finds its elements one after the
 * other; -1: elsewhere. */
static int64_t view_offset(Ir *ir, const Node *c, const Node *read)
{
	IR_ENTER(ir, -1);
	const Node *from = node_sub(ir, flat_index(ir, read->src[0], read->src + 1),
				    flat_index(ir, c, c->src + comp_naxis(c)));
	IR_LEAVE(ir);
	return node_is_const(from) ? from->u.i * (int64_t)type_size((Type)c->type) : -1;
}

/* The tensor of which s is only a part, or another shape, and where in it that begins, in bytes;
 * NULL: it computes something. */
static Node *view_of(Ir *ir, const Subgraph *s, int64_t *offset)
{
	const Node *c = s->member[0];

	if (s->nmember != 1 || c->op != OP_COMP || comp_reduce(c) != RED_NONE ||
	    comp_body(c)->op != OP_READ)
		return NULL;
	*offset = view_offset(ir, c, comp_body(c));
	return *offset >= 0 ? comp_body(c)->src[0] : NULL;
}

/* Makes s a view where it is one; results are none: states may have moved when those are fetched.
 */
static bool build_view(Build *b, const Subgraph *s)
{
	Program *p = b->p;
	int64_t offset = 0;
	Node *t = view_of(b->spec->ir, s, &offset), *c = s->member[0];
	Cell *view;
	int cell;

	for (int k = 0; k < b->spec->noutput + b->spec->nassign && t; k++)
		if (b->spec->root[k] == c)
			t = NULL;
	cell = t ? cell_read(b, t, p->nrun - 1) : -1;
	if (cell < 0)
		return false;
	view = &p->cell[cell_add(b, c, CELL_VIEW, p->nrun - 1)];
	view->of = &p->cell[cell];
	view->offset = (size_t)offset;
	return true;
}

/* What is computed again, under a limit on memory and by loops going back, has to be what it was: maxima are looked
 * for by comparing. */
static Request build_request(const ProgramSpec *s)
{
	Request r = s->request;

	r.ordered = r.device && (r.frozen || s->memory_limit || s->memory_least || s->within);
	return r;
}

static int build_run(Build *b, const Subgraph *s)
{
	Program *p = b->p;
	int i = p->nrun;
	Run *r = &p->run[i];
	Task *t;

	if (build_view(b, s))
		return 0;
	p->nrun = i + 1;
	r->sub = s;
	if (s->member[0]->op == OP_SCAN) {
		if (!(r->loop = loop_new(b->spec, s, b->err)))
			return b->err->code;
		loop_program(r->loop)->outer = p;
		loop_program(r->loop)->at = r;
		return build_cells(b, r, s, i);
	}
	t = task_new(s, b->err);
	if (!t || !(r->entry = entry_get(t, build_request(b->spec), b->err)))
		return b->err->code;
	/* Splitting a launch costs a few microseconds. */
	r->wide = r->entry->task->cost / 4e9 > 8e-6 || r->entry->task->bytes / 8e9 > 8e-6;
	return build_cells(b, r, s, i);
}

/* All entries, loops' included, so that their kernels are made together. */
static int build_lines(Build *b)
{
	Program *p = b->p;
	size_t n = 0;

	for (int i = 0; i < p->nrun; i++)
		n += p->run[i].loop ? (size_t)loop_program(p->run[i].loop)->nentry : 1;
	p->entry = arena_alloc(&p->memory, (n + 1) * sizeof(CacheEntry *));
	p->told = arena_alloc(&p->memory, (n + 1) * sizeof *p->told);
	if (!p->entry || !p->told)
		return error_set(b->err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < p->nrun; i++) {
		const Run *r = &p->run[i];
		const Program *body = r->loop ? loop_program(r->loop) : NULL;

		if (!body)
			p->entry[p->nentry++] = r->entry;
		for (int k = 0; body && k < body->nentry; k++)
			p->entry[p->nentry++] = body->entry[k];
	}
	for (int i = 0; i < p->nentry; i++)
		p->told[i] = atomic_load(&p->entry[i]->wrongs);
	return 0;
}

static int build_memory(Build *b)
{
	Program *p = b->p;
	int code = program_place(p, b->spec, b->cell_of, b->err);

	if (code || p->inner)
		return code;
	if (!(p->arena = device_alloc(p->device, p->arena_bytes, MEMORY_STEP,
				      "the tensors of a step", b->err)))
		return RICCI_ENOMEM;
	program_bind(p, p->arena);
	return 0;
}

/* Everything but the kernels. Nodes are made in the graph meanwhile. */
static int build_graph(Build *b)
{
	const ProgramSpec *s = b->spec;
	Program *p = b->p;
	int code = build_partition(b);

	if (!code)
		code = program_order(s, b->nsub, b->sub, b->err);
	if (!code)
		code = build_arrays(b);
	for (int i = 0; i < b->nsub && !code; i++)
		code = build_run(b, &b->sub[i]);
	p->nroot = s->noutput + s->nassign;
	for (int i = 0; i < p->nroot && !code; i++)
		if ((p->root[i] = cell_read(b, s->root[i], -1)) < 0)
			code = b->err->code;
	for (int i = 0; i < s->nassign && !code; i++)
		if (p->cell[p->root[s->noutput + i]].kind != CELL_STATE)
			p->cell[p->root[s->noutput + i]].next_of = s->assigned[i]->tensor;
	if (!code)
		code = build_lines(b);
	build_stage(b, "tasks");
	if (!code)
		code = build_memory(b);
	build_stage(b, "plan");
	return code;
}

static int build_all(Build *b)
{
	const ProgramSpec *s = b->spec;
	Program *p = b->p;
	int code;

	p->inner = s->within != NULL;
	p->device = s->device ? s->device : device_host();
	p->timing = s->timing || env_long("RICCI_TIME", 0) >= 2;
	p->may_overflow = s->may_overflow;
	if (p->inner) /* its loop's program is being built */
		return build_graph(b);
	lock_take(LOCK_GRAPHS);
	code = build_graph(b);
	lock_leave(LOCK_GRAPHS);
	if (!code && s->request.pack)
		code = pack_fill(s->request.pack, p->nentry, p->entry, b->err);
	else if (!code)
		code = entries_fill(p->nentry, p->entry, s->threads, b->err);
	if (!code)
		code = records_new(p, b->err);
	build_stage(b, "kernels");
	return code;
}

static void dump_program(const Program *p)
{
	Text t = {0};

	if (!env_dump("plan"))
		return;
	text_add(&t, "%s%d runs, %d tensors between them, %zu bytes of temporaries\n",
		 p->inner ? "the body of a loop: " : "", p->nrun, p->ncell, p->arena_bytes);
	for (int i = 0; i < p->ncell; i++) {
		static const char *const kind[] = {"temporary", "output", "state", "next", "view"};
		const Cell *c = &p->cell[i];

		text_add(&t, "cell %d %s%s %zu bytes, runs %d..%d", i, kind[c->kind],
			 c->in_place ? " in place" : "", tensor_bytes(c->node), c->first, c->last);
		if (c->kind == CELL_TEMP)
			text_add(&t, ", offset %zu", c->offset);
		text_add(&t, "\n");
	}
	env_dump_text("plan", "memory", t.s);
	text_free(&t);
}

Program *program_new(const ProgramSpec *spec, Error *err)
{
	Error own = {0};
	Build b = {.spec = spec, .err = &own, .clock = clock_seconds()};

	b.p = mem_zalloc(sizeof *b.p);
	if (!b.p)
		error_set(&own, RICCI_ENOMEM, "out of memory");
	else if (build_all(&b) && !own.code)
		error_set(&own, RICCI_EINTERNAL, "a program could not be made");
	mem_free(b.cell_of);
	if (own.code) {
		error_set(err, own.code, "%s", own.text);
		program_free(b.p);
		return NULL;
	}
	dump_program(b.p);
	return b.p;
}

/* RICCI_TIME: the profile of a program whose end this is. */
static void dump_profile(const Program *p)
{
	ricci_profile *f;
	Text t = {0};

	if (p->inner || !p->steps || env_long("RICCI_TIME", 0) < 2)
		return;
	f = profile_make(p, NULL);
	if (f)
		profile_print(&t, f);
	if (t.s && !t.failed)
		fprintf(stderr, "%s", t.s);
	text_free(&t);
	ricci_profile_free(f);
}

void program_free(Program *p)
{
	if (!p)
		return;
	dump_profile(p);
	program_check_finite(p, false, NULL);
	records_free(p->records);
	for (int i = 0; i < p->nrun; i++) {
		if (!p->run[i].again)
			loop_free(p->run[i].loop);
		if (p->run[i].timed)
			kernel_unref(p->run[i].timed);
		if (p->run[i].kernel)
			kernel_unref(p->run[i].kernel);
		for (int64_t k = 0; k < p->run[i].nused; k++)
			kernel_unref(p->run[i].used[k]);
		entry_unref(p->run[i].entry);
	}
	for (int i = 0; i < p->ncell; i++)
		if (p->cell[i].kind == CELL_OUTPUT && !p->inner)
			device_free(p->device, p->cell[i].data);
	device_free(p->device, p->arena);
	arena_free(&p->memory);
	mem_free(p);
}

Storage *storages_find(void *user, Node *input)
{
	Storages *s = user;

	for (int i = 0; i < s->n; i++)
		if (s->st[i].node == input)
			return &s->st[i];
	return NULL;
}

const Cell *cell_whole(const Cell *c)
{
	while (c->of)
		c = c->of;
	return c;
}

void *cell_data(const Cell *c)
{
	if (c->kind == CELL_STATE)
		return c->storage->data;
	if (c->kind == CELL_VIEW)
		return (char *)cell_data(c->of) + c->offset;
	if (c->kind == CELL_NEXT)
		return c->in_place ? c->storage->data : c->storage->spare;
	return c->data;
}
