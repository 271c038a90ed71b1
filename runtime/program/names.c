/* names.c - what messages and profiles call a program's tensors, and the equations of its kernels.
 *
 * Input: a node or a run of a program. Output: text in an arena. Equations are a task's, whose members and
 * inputs are the run's in the same order, with the graph's names in place of the task's own.
 */
#include "runtime/program/program.h"
#include <string.h>

enum { TITLE = 100 };

/* What n is in the surroundings of p, from which a loop's body takes it; NULL: n is the body's own. */
static Node *outer_node(const Program *p, const Node *n)
{
	const Scan *scan = p->at ? scan_of(p->at->sub->member[0]) : NULL;

	for (int k = 0; scan && k < scan->nslice + scan->nstate + scan->nconst; k++)
		if (scan->var[k] == n)
			return p->at->sub->input[scan->has_length + k];
	return NULL;
}

static const Cell *node_cell(const Program *p, const Node *n)
{
	for (int i = 0; i < p->ncell; i++)
		if (p->cell[i].node == n)
			return &p->cell[i];
	return NULL;
}

const char *node_base(const Program *p, const Node *n, const ricci_tensor **t)
{
	const Cell *c = node_cell(p, n);

	if (c)
		c = cell_whole(c);
	if (c)
		n = c->node;
	if (n->op == OP_INPUT && outer_node(p, n))
		return node_base(p->outer, outer_node(p, n), t);
	*t = c && c->kind == CELL_STATE ? c->storage->tensor : NULL;
	return n->op == OP_INPUT ? n->u.s : NULL;
}

static const char *local_name(Naming *m, const Node *n)
{
	int k = 0;

	while (k < m->nnode && m->node[k] != n)
		k++;
	if (k == m->nnode) {
		m->node = arena_grow(m->arena, m->node, m->nnode, &m->room, sizeof *m->node);
		m->node[m->nnode++] = n;
	}
	return arena_printf(m->arena, "T%d", k + 1);
}

const char *node_name(Naming *m, const Program *p, const Node *n)
{
	Arena *a = m->arena;
	const Cell *c = node_cell(p, n);
	const Node *outer = n->op == OP_INPUT ? outer_node(p, n) : NULL;

	if (c && c->of)
		return arena_printf(a, "view(%s)", node_name(m, p, c->of->node));
	if (c && c->next_of)
		return arena_printf(a, "%s'", c->next_of->name);
	if (outer) {
		const Scan *scan = scan_of(p->at->sub->member[0]);
		const char *name = node_name(m, p->outer, outer);
		bool same = false;

		for (int k = scan->nslice + scan->nstate;
		     k < scan->nslice + scan->nstate + scan->nconst; k++)
			same = same || scan->var[k] == n;
		return same ? name : arena_printf(a, "%s(t)", name);
	}
	return n->op == OP_INPUT ? n->u.s : local_name(m, n);
}

typedef struct Printed { /* of a copy of a task */
	const Task *task;
	TaskCopy copy;
	const char **input, **member;
} Printed;

static const char *copy_name(void *user, Node *n)
{
	Printed *g = user;

	for (int i = 0; i < g->task->sub.nmember; i++)
		if (g->copy.member[i] == n)
			return g->member[i];
	for (int i = 0; i < g->task->sub.ninput; i++)
		if (g->copy.input[i] == n)
			return g->input[i];
	return "?";
}

static int printed_text(Printed *g, Text *out)
{
	Error *const err = NULL;

	IR_ENTER(&g->copy.ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	for (int i = 0; i < g->task->sub.nmember; i++) {
		if (i)
			text_add(out, "\n");
		print_equation(out, &g->copy.ir, g->copy.member[i], copy_name, g);
	}
	IR_LEAVE(&g->copy.ir);
	return out->failed ? RICCI_ENOMEM : 0;
}

const char *run_equations(Naming *m, const Program *p, const Run *r)
{
	Arena *a = m->arena;
	Printed g = {.task = r->entry->task};
	Text out = {0};
	const char *text = NULL;

	g.input = arena_alloc(a, ((size_t)r->sub->ninput + 1) * sizeof *g.input);
	g.member = arena_alloc(a, ((size_t)r->sub->nmember + 1) * sizeof *g.member);
	for (int i = 0; i < r->sub->ninput; i++)
		g.input[i] = node_name(m, p, r->sub->input[i]);
	for (int i = 0; i < r->sub->nmember; i++)
		g.member[i] = node_name(m, p, r->sub->member[i]);
	if (task_copy(g.task, &g.copy, NULL))
		return NULL;
	if (!printed_text(&g, &out))
		text = out.s ? out.s : "";
	task_copy_free(&g.copy);
	if (text) {
		jmp_buf *oom = a->oom; /* not past the text */

		a->oom = NULL;
		text = arena_strdup(a, text);
		a->oom = oom;
	}
	text_free(&out);
	return text;
}

static const char *loop_title(Naming *m, const Run *r)
{
	return arena_printf(m->arena, "a loop of %lld steps at most",
			    (long long)scan_of(r->sub->member[0])->bound);
}

static const char *loop_equation(Naming *m, const Run *r, const Node *n)
{
	const Program *body = loop_program(r->loop);
	const Cell *c = n ? loop_cell(r->loop, n->u.result) : NULL;
	const char *title = loop_title(m, r), *text;

	if (!c)
		return title;
	text = tensor_equation(m, body, &body->run[c->first], c->node);
	return text ? arena_printf(m->arena, "%s: %s", title, text) : NULL;
}

const char *tensor_equation(Naming *m, const Program *p, const Run *r, const Node *n)
{
	const char *text = r->loop ? loop_equation(m, r, n) : run_equations(m, p, r);

	if (!text || r->loop)
		return text;
	for (int k = 0; r->sub->member[k] != n; k++) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return arena_printf(m->arena, "%.*s", (int)strcspn(text, "\n"), text);
}

static const char *title_of(Naming *m, const Program *p, const Run *r)
{
	const char *text = r->loop ? loop_title(m, r) : run_equations(m, p, r);
	char title[TITLE];

	if (!text)
		return NULL;
	message_print(title, sizeof title, "%.*s", (int)strcspn(text, "\n"), text);
	return arena_strdup(m->arena, title);
}

void runs_name(Program *p)
{
	Naming m = {.arena = &p->memory};
	jmp_buf oom;

	if (p->named)
		return;
	p->named = true;
	if (!setjmp(oom)) {
		p->memory.oom = &oom;
		for (int i = 0; i < p->nrun; i++)
			p->run[i].name = title_of(&m, p, &p->run[i]);
	}
	p->memory.oom = NULL;
}

const char *run_name(const Run *r)
{
	return r->name ? r->name : "a kernel";
}
