/* program_tasks.h - a random program as the tasks that kernels are made for: rewritten and fused, those of
 * loops' bodies too. */
#ifndef PROGRAM_TASKS_H
#define PROGRAM_TASKS_H

#include "tests/tools/program_case.h"
#include "tests/usual_device.h"

enum { MOST_TASKS = 256 };
typedef struct TaskList {
	int n;
	Task *task[MOST_TASKS];
} TaskList;

static void tasks_make(TaskList *all, Ir *ir, int nroot, Node **root);

/* Those of a loop's body. */
static void tasks_inside(TaskList *all, Ir *ir, const Subgraph *loop)
{
	const Scan *s = scan_of(loop->member[0]);
	int n = 0;
	Node **root = arena_alloc(&ir->arena, (size_t)(s->nstate + loop->nmember) * sizeof *root);
	for (int k = 0; k < s->nstate + loop->nmember; k++) {
		Node *t = k < s->nstate ? s->next[k] : loop->member[k - s->nstate]->u.result->value;
		if (t->op != OP_INPUT)
			root[n++] = t;
	}
	tasks_make(all, ir, n, root);
}

/* What the rewritten roots are cut into. */
static void tasks_make(TaskList *all, Ir *ir, int nroot, Node **root)
{
	Subgraph *subs = NULL;
	int n = 0;
	if (fuse_partition(ir, nroot, root, &usual_device, &n, &subs))
		return;
	for (int k = 0; k < n && all->n < MOST_TASKS; k++) {
		Error err = {0};
		Task *t = NULL;
		if (subs[k].member[0]->op == OP_SCAN)
			tasks_inside(all, ir, &subs[k]);
		else
			t = task_new(&subs[k], &err);
		if (t)
			all->task[all->n++] = t;
	}
}

static void case_tasks(TaskList *all, Ir *ir, const Case *c)
{
	Node *root[ROOTS];
	for (int k = 0; k < c->nroot; k++)
		root[k] = c->root[k]->node;
	IR_ENTER(ir, );
	if (!rewrite_graph(ir, c->nroot, root))
		tasks_make(all, ir, c->nroot, root);
	IR_LEAVE(ir);
}

static void tasks_free(TaskList *all)
{
	for (int k = 0; k < all->n; k++)
		task_free(all->task[k]);
	all->n = 0;
}

#endif
