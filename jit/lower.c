/* lower.c - a task and a schedule become the source of a kernel.
 *
 *	subgraph --problem_new--> problem --lower_nest | _contract | _library--> loop tree
 *	loop tree --emit--> text
 *
 * Everything happens in a scratch Ir that is dropped at the end, so that tasks are only read. */
#include "jit/backend/backend.h"
#include "jit/lower.h"
#include "jit/tree/cost.h"

#include <math.h>
#include <string.h>

static void dump_schedule(const Task *t, const Schedule *s)
{
	if (!env_dump("sched"))
		return;
	Text text = {0};
	text_add(&text, "%s\n", t->text ? t->text : "");
	schedule_print(&text, s);
	text_add(&text, "\n");
	env_dump_text("sched", "schedule", text.s ? text.s : "");
	text_free(&text);
}

static void dump_tree(const Tree *tree)
{
	if (!env_dump("lower"))
		return;
	Text text = {0};
	tree_print(&text, tree);
	env_dump_text("lower", "loop tree", text.s ? text.s : "");
	text_free(&text);
}

static void passes(Tree *t, const Target *target, const Capabilities *caps)
{
	int64_t width = target->vector_bytes / 4;
	tree_check(t, "lowering");
	if (!caps->specialises)
		return;
	split_loops(t, t->root, SPLIT_QUOTIENTS, width);
	tree_check(t, "splitting at quotients");
	if (caps->vectors) {
		lower_predicates(t, t->root, target);
		tree_check(t, "predicates");
		lower_registers(t, t->root);
		tree_check(t, "registers");
	}
	split_loops(t, t->root, SPLIT_CONDITIONS, width);
	tree_check(t, "splitting at conditions");
}

/* Steps for a processor say nothing of a grid, and the default is taken. */
static const Schedule *fit_schedule(const Task *t, const Schedule *s, const Capabilities *caps,
				    Schedule *room)
{
	if (!caps->grid || schedule_find(s, STEP_THREADS))
		return s;
	schedule_offers(t, target_grid(caps->fragments), 1, room);
	return room;
}

/* The tree behind all passes; NULL on error. */
static Tree *make_tree(Ir *ir, const Task *t, const Schedule *s, const Capabilities *caps,
		       const Target *target, Error *err)
{
	Tree *tree = tree_new(ir);
	Problem *p = t->sub.rows ? NULL : problem_new(tree, &t->sub, NULL);
	int code;
	if (t->sub.rows)
		code = lower_rows(tree, &t->sub, s, target, caps, err);
	else if (!p)
		code = error_set(err, ir->err.code, "%s", ir->err.text);
	else if (schedule_find(s, STEP_LIBRARY))
		code = lower_library(p, s, target, err);
	else if (caps->grid && schedule_find(s, STEP_TENSORISE))
		code = lower_contract_grid(p, s, caps, err);
	else if (schedule_find(s, STEP_TENSORISE))
		code = lower_contract(p, s, target, err);
	else
		code = lower_nest(p, s, caps, err);
	if (code)
		return NULL;
	passes(tree, target, caps);
	return tree;
}

/* Emitter state lives in *texts so that nothing leaks when memory runs out. */
static int lower(Ir *ir, const Task *t, const Schedule *s, const Dialect *d, const Target *target,
		 Kernel *k, EmitTexts *texts, Text *out, Error *err)
{
	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	Tree *tree = make_tree(ir, t, s, &d->caps, target, err);
	if (tree)
		dump_tree(tree);
	int code = tree ? emit_tree(out, texts, tree, d, "kernel_0", err) : err->code;
	if (tree)
		k->shape = tree->shape;
	IR_LEAVE(ir);
	return code;
}

/* What a price is of: a task, or (row != NULL) loop k of its rows under schedule i. */
typedef struct Priced {
	const Task *task;
	const Schedule *schedule;
	const RowOffer *row;
	int k;
} Priced;

static Tree *loop_tree(Ir *ir, const Priced *p, const Capabilities *caps, const Target *target,
		       Error *err)
{
	Tree *tree = tree_new(ir);
	if (row_loop_tree(tree, &p->task->sub, p->row->dims, p->row->loop[p->k].member, p->schedule,
			  target, caps, err))
		return NULL;
	passes(tree, target, caps);
	return tree;
}

static double price_in(Ir *ir, const Priced *p, const Target *target, Error *err)
{
	IR_ENTER(ir, INFINITY);
	const Capabilities *caps = &dialect_find("cc")->caps;
	Tree *tree = p->row ? loop_tree(ir, p, caps, target, err)
			    : make_tree(ir, p->task, p->schedule, caps, target, err);
	double price = tree ? tree_cost(tree, target) : INFINITY;
	IR_LEAVE(ir);
	return price;
}

static double price_of(const Priced *p, const Target *target)
{
	Ir ir;
	Error err = {0};
	ir_init(&ir);
	double price = price_in(&ir, p, target, &err);
	ir_free(&ir);
	error_clear(&err);
	return price;
}

double lower_price(const Task *t, const Schedule *s, const Target *target)
{
	return price_of(&(Priced){.task = t, .schedule = s}, target);
}

double lower_loop_price(const Task *t, const RowOffer *r, int k, int i, const Target *target)
{
	return price_of(&(Priced){t, &r->loop[k].schedule[i], r, k}, target);
}

static int tree_text(Ir *ir, const Task *t, const Schedule *s, const Capabilities *caps,
		     const Target *target, Text *out, Error *err)
{
	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	Tree *tree = make_tree(ir, t, s, caps, target, err);
	if (tree)
		tree_print(out, tree);
	IR_LEAVE(ir);
	return tree ? 0 : err->code;
}

int kernel_tree(const Task *t, const Schedule *s, const Backend *b, const Target *target, Text *out,
		Error *err)
{
	Ir ir;
	Schedule room;
	const Capabilities *caps = &dialect_find(b->name)->caps;
	ir_init(&ir);
	int code = tree_text(&ir, t, fit_schedule(t, s, caps, &room), caps, target, out, err);
	ir_free(&ir);
	return code;
}

static int lower_source(Kernel *k, const Task *t, const Schedule *s, const Dialect *d,
			const Target *target, Error *err)
{
	Ir ir;
	EmitTexts *texts = mem_zalloc(sizeof *texts);
	Text out = {0};
	if (!texts)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	ir_init(&ir);
	int code = lower(&ir, t, s, d, target, k, texts, &out, err);
	ir_free(&ir);
	for (int j = 0; j < COUNT(texts->scope); j++)
		text_free(&texts->scope[j]);
	mem_free(texts);
	if (code) {
		text_free(&out);
		return code;
	}
	env_dump_text("emit", d->backend, out.s);
	k->source = out.s;
	return 0;
}

Kernel *kernel_lower(const Task *t, const Schedule *s, const Backend *b, const Target *target,
		     Error *err)
{
	const Dialect *d = dialect_find(b->name);
	if (!d)
		return kernel_interp(t, err);
	Kernel *k = kernel_new(b, err);
	if (!k)
		return NULL;
	Schedule room;
	s = fit_schedule(t, s, &d->caps, &room);
	k->schedule = *s;
	dump_schedule(t, s);
	if (lower_source(k, t, s, d, target, err) ||
	    (d->caps.grid && kernel_sizes(k, &t->sub, err))) {
		kernel_unref(k);
		return NULL;
	}
	return k;
}
