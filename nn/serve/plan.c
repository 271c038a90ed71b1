/* plan.c - an exported net's kernels, their order, and the place of each tensor. Input: a model of its
 * own. Output: a plan: the graph rewritten and fused as sessions do it, a kernel of C99 for each
 * subgraph, offsets in one block of scratch memory by liveness. Invariant: a net that draws random
 * numbers is refused. */
#include "nn/serve/serve.h"
#include <string.h>

typedef struct Planner {
	ServePlan *p;
	Ir *ir;
	Error *err;
} Planner;
typedef struct Body { /* of a stage under construction */
	Stage *s;
	const Within *within;
	int *spot_of; /* by the id of a node; -1: none */
} Body;

static int stage_build(Planner *b, Stage *s, int nroot, Node **root, Body *body);

static int refuse_draws(Planner *b, const Node *c)
{
	Text t = {0};

	if (c->op != OP_COMP || !node_any(b->ir, comp_body(c), node_draws))
		return 0;
	print_equation(&t, b->ir, (Node *)c, NULL, NULL);
	error_set(
		b->err, RICCI_EUNSUPPORTED,
		"the net draws random numbers where `training` is 0, which can't be exported: %s; "
		"write training ? .. : .. around what only training draws",
		t.s ? t.s : "");
	text_free(&t);
	return b->err->code;
}

static int spot_add(Body *body, Node *n, SpotKind kind, int number, int at)
{
	Stage *s = body->s;

	s->spot[s->nspot] =
		(Spot){.node = n, .kind = kind, .number = number, .first = at, .last = at};
	body->spot_of[n->id] = s->nspot;
	return s->nspot++;
}

/* The spot of a tensor that launch `at` reads. */
static int spot_read(Body *body, Node *n, int at)
{
	int k = body->spot_of[n->id];

	if (k >= 0 && body->s->spot[k].last < at)
		body->s->spot[k].last = at;
	return k;
}

/* ---- loops ---- */

/* Roots of the body: the stacked values, then the next states. */
static int loop_roots(ServeLoop *l, const Subgraph *sub, Node **root)
{
	int n = 0;

	for (int k = 0; k < sub->nmember; k++) {
		const ScanResult *r = sub->member[k]->u.result;
		if (r->final < 0) {
			l->stacked[n] = sub->ninput + k;
			root[n++] = r->value;
		}
	}
	l->nstacked = n;
	for (int k = 0; k < l->scan->nstate; k++)
		root[n++] = l->scan->next[k];
	return n;
}

static size_t align(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

/* The states' places; a next value that is no scratch of the body is copied before states change. */
static void loop_place(ServeLoop *l)
{
	const Scan *s = l->scan;

	l->bytes = l->body.bytes;
	for (int k = 0; k < s->nstate; k++) {
		const Spot *next = &l->body.spot[l->body.root[l->nstacked + k]];
		size_t bytes = align(tensor_bytes(s->var[s->nslice + k]));
		l->state[k] = l->bytes;
		l->bytes += bytes;
		l->next[k] = SIZE_MAX;
		if (next->kind == SPOT_POINTER) {
			l->next[k] = l->bytes;
			l->bytes += bytes;
		}
	}
}

static int loop_build(Planner *b, Launch *launch, const Within *around)
{
	Arena *a = &b->ir->arena;
	const Subgraph *sub = launch->sub;
	ServeLoop *l = launch->loop = arena_alloc(a, sizeof *l);
	const Scan *s = l->scan = scan_of(sub->member[0]);
	Within within = {sub->member[0], around};
	int nvar = scan_nvar(s);
	Body body = {.within = &within};
	Node **root = arena_alloc(a, sizeof *root * (size_t)(sub->nmember + s->nstate + 1));

	l->stacked = arena_alloc(a, sizeof(int) * ((size_t)sub->nmember + 1));
	l->state = arena_alloc(a, sizeof *l->state * ((size_t)s->nstate + 1));
	l->next = arena_alloc(a, sizeof *l->next * ((size_t)s->nstate + 1));
	launch->number = b->p->nloop++;
	l->pointer = b->p->npointer;
	b->p->npointer += nvar;
	int code = stage_build(b, &l->body, loop_roots(l, sub, root), root, &body);
	if (!code)
		loop_place(l);
	return code;
}

/* ---- kernels ---- */

static int kernel_build(Planner *b, Launch *launch)
{
	ServePlan *p = b->p;

	for (int k = 0; k < launch->sub->nmember; k++)
		if (refuse_draws(b, launch->sub->member[k]))
			return b->err->code;
	p->kernel = arena_grow(&b->ir->arena, p->kernel, p->nkernel, &p->kernel_room,
			       sizeof *p->kernel);
	Task *t = task_new(launch->sub, b->err);
	Kernel *k = t ? kernel_portable(t, b->err) : NULL;
	task_free(t);
	if (!k)
		return b->err->code;
	p->scratch = p->scratch > k->shape.scratch ? p->scratch : k->shape.scratch;
	p->shared = p->shared > k->shape.shared ? p->shared : k->shape.shared;
	launch->number = p->nkernel;
	p->kernel[p->nkernel++] = k;
	return 0;
}

/* ---- stages ---- */

static int stage_partition(Planner *b, const Body *body, int nroot, Node **root, int *nsub,
			   Subgraph **sub)
{
	const ricci_graph *g = b->p->model->g;
	int code = 0;

	if (!body->within) {
		graph_set_training(b->ir, nroot, root, false);
		code = rewrite_graph(b->ir, nroot, root);
	}
	if (!code && g->precision != RICCI_F32)
		code = rewrite_precision(b->ir, g->precision, nroot, root);
	if (!code && g->rounding == RICCI_STOCHASTIC)
		code = rewrite_rounding(b->ir, body->within, nroot, root);
	if (!code)
		code = fuse_partition(b->ir, nroot, root, device_nominal(), nsub, sub);
	return code ? error_set(b->err, code, "%s", b->ir->err.text) : 0;
}

static int launch_build(Planner *b, Body *body, const Subgraph *sub)
{
	Stage *s = body->s;
	int at = s->nlaunch++, code;
	Launch *l = &s->launch[at];

	*l = (Launch){.sub = sub, .ninput = sub->ninput, .nbuf = sub->ninput};
	for (int k = 0; k < sub->nmember; k++)
		l->nbuf += sub->stored[k];
	l->spot = arena_alloc(&b->ir->arena, sizeof(int) * ((size_t)l->nbuf + 1));
	code = sub->member[0]->op == OP_SCAN ? loop_build(b, l, body->within) : kernel_build(b, l);
	if (code)
		return code;
	for (int k = 0; k < sub->ninput; k++)
		if ((l->spot[k] = spot_read(body, sub->input[k], at)) < 0)
			return error_set(b->err, RICCI_EINTERNAL,
					 "a tensor is read before it is computed");
	for (int k = 0, out = sub->ninput; k < sub->nmember; k++)
		if (sub->stored[k])
			l->spot[out++] = spot_add(body, sub->member[k], SPOT_SCRATCH, 0, at);
	return 0;
}

/* Offsets of what lies in scratch: tensors, and the memory of each loop while it runs. */
static int stage_place(Planner *b, Stage *s)
{
	size_t room = (size_t)(s->nspot + s->nlaunch + 1);
	PlanItem *item = arena_alloc(&b->ir->arena, room * sizeof *item);
	int n = 0;

	for (int k = 0; k < s->nspot; k++)
		if (s->spot[k].kind == SPOT_SCRATCH)
			item[n++] = (PlanItem){.bytes = tensor_bytes(s->spot[k].node),
					       .first = s->spot[k].first,
					       .last = s->spot[k].last};
	for (int k = 0; k < s->nlaunch; k++)
		if (s->launch[k].loop)
			item[n++] = (PlanItem){
				.bytes = s->launch[k].loop->bytes + 1, .first = k, .last = k};
	int code = plan_offsets(n, item, &s->bytes, b->err);
	n = 0;
	for (int k = 0; k < s->nspot; k++)
		if (s->spot[k].kind == SPOT_SCRATCH)
			s->spot[k].offset = item[n++].offset;
	for (int k = 0; k < s->nlaunch; k++)
		if (s->launch[k].loop)
			s->launch[k].loop->offset = item[n++].offset;
	return code;
}

/* What a stage finds in its surroundings: the model's inputs and weights, or a loop's variables. */
static void stage_given(Planner *b, Body *body)
{
	const ServePlan *p = b->p;

	if (!body->within) {
		for (int k = 0; k < p->ninput; k++)
			spot_add(body, p->input[k].t->node, SPOT_INPUT, k, 0);
		for (int k = 0; k < p->nweight; k++)
			spot_add(body, p->weight[k].t->node, SPOT_WEIGHT, k, 0);
		return;
	}
	const Scan *scan = scan_of(body->within->scan);
	int first = p->npointer - scan_nvar(scan);
	for (int k = 0; k < scan_nvar(scan); k++)
		spot_add(body, scan->var[k], SPOT_POINTER, first + k, 0);
}

static int stage_build(Planner *b, Stage *s, int nroot, Node **root, Body *body)
{
	Arena *a = &b->ir->arena;
	Subgraph *sub;
	int nsub = 0, code = stage_partition(b, body, nroot, root, &nsub, &sub);
	size_t spots = (size_t)(b->p->ninput + b->p->nweight) + 1;

	if (code)
		return code;
	body->s = s;
	body->spot_of = arena_alloc(a, b->ir->count * sizeof *body->spot_of);
	memset(body->spot_of, -1, b->ir->count * sizeof *body->spot_of);
	for (int k = 0; k < nsub; k++)
		spots += (size_t)sub[k].nmember;
	if (body->within)
		spots += (size_t)scan_nvar(scan_of(body->within->scan));
	s->spot = arena_alloc(a, spots * sizeof *s->spot);
	s->launch = arena_alloc(a, ((size_t)nsub + 1) * sizeof *s->launch);
	s->root = arena_alloc(a, ((size_t)nroot + 1) * sizeof *s->root);
	stage_given(b, body);
	for (int k = 0; k < nsub && !code; k++)
		code = launch_build(b, body, &sub[k]);
	s->nroot = nroot;
	for (int k = 0; k < nroot && !code; k++)
		if ((s->root[k] = spot_read(body, root[k], nsub)) < 0)
			code = error_set(b->err, RICCI_EINTERNAL, "a result is not computed");
	for (int k = 0; k < nroot && !code && !body->within; k++)
		if (s->spot[s->root[k]].kind == SPOT_SCRATCH) {
			s->spot[s->root[k]].kind = SPOT_OUTPUT;
			s->spot[s->root[k]].number = k;
		}
	return code ? code : stage_place(b, s);
}

/* Offsets become absolute. */
static void stage_bind(Stage *s, size_t base)
{
	for (int k = 0; k < s->nspot; k++)
		s->spot[k].offset += base;
	for (int i = 0; i < s->nlaunch; i++) {
		ServeLoop *l = s->launch[i].loop;
		if (!l)
			continue;
		l->offset += base;
		stage_bind(&l->body, l->offset);
		for (int k = 0; k < l->scan->nstate; k++) {
			l->state[k] += l->offset;
			l->next[k] += l->next[k] == SIZE_MAX ? 0 : l->offset;
		}
	}
}

/* ---- names ---- */

/* An identifier made of the name that no other of the list has. */
static const char *ident_of(Ir *ir, const char *name, int n, const ServeTensor *others)
{
	static const char *const word[] = {
		"auto",	   "break",    "case",	   "char",   "const",	 "continue", "default",
		"do",	   "double",   "else",	   "enum",   "extern",	 "float",    "for",
		"goto",	   "if",       "inline",   "int",    "long",	 "register", "restrict",
		"return",  "short",    "signed",   "sizeof", "static",	 "struct",   "switch",
		"typedef", "union",    "unsigned", "void",   "volatile", "while",    "class",
		"new",	   "template", "this",	   "bool",   "true",	 "false",    "operator"};
	Arena *a = &ir->arena;
	char *s = arena_printf(a, "%s%s", *name >= '0' && *name <= '9' ? "_" : "", name);

	for (char *c = s; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		      (*c >= '0' && *c <= '9')))
			*c = '_';
	for (int k = 0; k < COUNT(word); k++)
		if (!strcmp(s, word[k]) || !*s)
			s = arena_printf(a, "%s_", s);
	const char *tried = s;
	for (int i = 0, round = 2; i < n; i++)
		if (!strcmp(others[i].ident, tried)) {
			tried = arena_printf(a, "%s_%d", s, round++);
			i = -1;
		}
	return tried;
}

static void tensors_list(ServePlan *p)
{
	Arena *a = &p->ir->arena;
	size_t n = (size_t)(p->model->g->ntensor + p->model->noutput + 1);

	p->input = arena_alloc(a, n * sizeof *p->input);
	p->weight = arena_alloc(a, n * sizeof *p->weight);
	p->output = arena_alloc(a, n * sizeof *p->output);
	for (const ricci_tensor *t = p->model->g->first; t; t = t->next)
		if (t->role == ROLE_INPUT) {
			p->input[p->ninput] = (ServeTensor){
				t->name, ident_of(p->ir, t->name, p->ninput, p->input), t, 0};
			p->ninput++;
		} else if (t->role == ROLE_PARAM || t->role == ROLE_STATE) {
			p->weight[p->nweight++] = (ServeTensor){
				t->name, arena_printf(a, "w%d", p->nweight), t, p->weight_bytes};
			p->weight_bytes += align(tensor_bytes(t->node));
		}
	for (int k = 0; k < p->model->noutput; k++) {
		const char *name = p->model->name[k];
		p->output[k] = (ServeTensor){name, ident_of(p->ir, name, k, p->output),
					     p->model->output[k], 0};
		p->noutput++;
	}
}

static int plan_entered(Planner *b)
{
	ServePlan *p = b->p;

	IR_ENTER(b->ir, error_set(b->err, RICCI_ENOMEM, "out of memory for a net's plan"));
	tensors_list(p);
	Node **root = arena_alloc(&b->ir->arena, ((size_t)p->noutput + 1) * sizeof *root);
	Body body = {0};
	for (int k = 0; k < p->noutput; k++)
		root[k] = p->output[k].t->node;
	int code = stage_build(b, &p->stage, p->noutput, root, &body);
	if (!code)
		stage_bind(&p->stage, 0);
	IR_LEAVE(b->ir);
	return code;
}

int serve_plan(ServePlan *p, ReadNet *m, Error *err)
{
	*p = (ServePlan){.ir = &m->g->ir, .model = m};
	Planner b = {p, p->ir, err};
	int code = plan_entered(&b);
	size_t scratch = align(p->scratch), shared = align(p->shared);

	p->scratch = align(p->stage.bytes);
	p->shared = p->scratch + scratch;
	p->bytes = p->shared + shared;
	return code;
}

void serve_plan_free(ServePlan *p)
{
	for (int k = 0; k < p->nkernel; k++)
		kernel_unref(p->kernel[k]);
	p->nkernel = 0;
}
