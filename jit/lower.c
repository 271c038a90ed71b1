/* lower.c - a task and a schedule become a loop tree, and a price.
 *
 *	subgraph --problem_new--> problem --lower_nest | _contract | _library--> loop tree --passes--> loop tree
 *
 * Input: a task, one of its schedules, what can be made of a tree. Output: the tree behind all passes; what it
 * costs. Invariant: tasks are only read. */
#include "jit/lower.h"
#include "jit/tree/cost.h"

#include <math.h>

static void passes(Tree *t, const Target *target, const Capabilities *caps)
{
	int64_t width = target->vector_bytes / 4;
	tree_check(t, "lowering");
	if (caps->chunk) {
		expand_sums(t, t->root, caps->chunk);
		tree_check(t, "expanding sums");
	}
	if (!caps->specialises)
		return;
	split_loops(t, t->root, SPLIT_QUOTIENTS, width);
	tree_check(t, "splitting at quotients");
	split_loops(t, t->root, SPLIT_CHANGES, width);
	tree_check(t, "splitting at changes");
	if (caps->vectors) {
		lower_predicates(t, t->root, target);
		tree_check(t, "predicates");
		lower_registers(t, t->root);
		tree_check(t, "registers");
	}
	split_loops(t, t->root, SPLIT_CONDITIONS, width);
	tree_check(t, "splitting at conditions");
	if (caps->vectors) { /* of loops that had conditions in the way, the pieces without */
		lower_predicates(t, t->root, target);
		tree_check(t, "predicates of pieces");
	}
}

static Tree *task_tree(Ir *ir, const Task *t, const Schedule *s, const Capabilities *caps,
		       const Target *target, Error *err)
{
	Tree *tree = tree_new(ir);
	bool stages = schedule_staged(s);
	Problem *p = stages || t->sub.rows ? NULL : problem_new(tree, &t->sub, NULL);
	int code;
	if (stages)
		code = lower_stages(tree, &t->sub, s, target, caps, err);
	else if (t->sub.rows)
		code = lower_rows(tree, &t->sub, s, target, caps, err);
	else if (!p)
		code = error_set(err, ir->err.code, "%s", ir->err.text);
	else if (caps->grid && schedule_find(s, STEP_LIBRARY))
		code = lower_library_grid(p, s, target, caps, err);
	else if (schedule_find(s, STEP_LIBRARY))
		code = lower_library(p, s, target, err);
	else if (caps->grid && schedule_find(s, STEP_TENSORISE))
		code = lower_contract_grid(p, s, caps, err);
	else if (schedule_find(s, STEP_TENSORISE))
		code = lower_contract(p, s, target, caps, err);
	else
		code = lower_nest(p, s, caps, err);
	if (code)
		return NULL;
	passes(tree, target, caps);
	return tree;
}

/* Its price is that before the last pass, for prices know how often conditions hold, but not that the pieces of a
 * loop share what they read. */
Tree *lower_tree(Ir *ir, const Task *t, const Schedule *s, const Capabilities *caps,
		 const Target *target, Error *err)
{
	Tree *tree = task_tree(ir, t, s, caps, target, err);
	if (tree && caps->specialises && !caps->grid) {
		split_inside(tree, tree->root);
		tree_check(tree, "cutting out the inside");
	}
	return tree;
}

/* What a price is of: a task, or (row != NULL) loop k of its rows under schedule i. */
typedef struct Priced {
	const Task *task;
	const Schedule *schedule;
	const RowOffer *row;
	int k;
	bool around; /* but for its calls */
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
			    : task_tree(ir, p->task, p->schedule, caps, target, err);
	bool calls = false;
	double price = tree ? tree_cost(tree, target, &calls) : INFINITY;
	IR_LEAVE(ir);
	return calls && !p->around ? INFINITY : price;
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

double lower_price_around(const Task *t, const Schedule *s, const Target *target)
{
	return price_of(&(Priced){.task = t, .schedule = s, .around = true}, target);
}

double lower_loop_price(const Task *t, const RowOffer *r, int k, int i, const Target *target)
{
	return price_of(&(Priced){t, &r->loop[k].schedule[i], r, k, false}, target);
}
