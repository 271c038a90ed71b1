/* phases.c - a kernel is a list of phases, and all threads meet between two.
 *
 * Input: the sections of each phase: statements for each of so many parts. Output: the tree's root, a
 * parallel loop over the parts of all sections, and where each phase begins. Invariant: a section's
 * body runs once for each of its parts, after all parts of the phases before. */
#include "jit/tree/tree.h"

#include <assert.h>

typedef struct Section {
	int phase;
	Node *part;
	Stmt *body;
} Section;

void phase_section(Tree *t, Node *part, Stmt *body)
{
	t->section = arena_grow(&t->ir->arena, t->section, t->nsection, &t->section_room,
				sizeof *t->section);
	t->section[t->nsection++] = (Section){t->nphase, part, body};
}

void phase_end(Tree *t)
{
	t->nphase++;
}

/* Sets how many parts there are, and where phases begin. */
static void count_parts(Tree *t)
{
	KernelShape *shape = &t->shape;
	int phase = 0;
	shape->parts = 0;
	for (int k = 0; k < t->nsection; k++) {
		if (k && t->section[k].phase > t->section[k - 1].phase) {
			assert(phase < KERNEL_PHASES - 1);
			shape->later[phase++] = shape->parts;
		}
		shape->parts += axis_extent(t->section[k].part);
	}
}

/* The body of section k where its part is number `at` of all; the remainder tells the bounds what the
 * condition around it tells. */
static Stmt *section_at(Tree *t, int k, Node *at, int64_t begin)
{
	Ir *ir = t->ir;
	const Section *s = &t->section[k];
	Node *mine = node_floormod(ir, node_sub(ir, at, node_int(ir, begin)), axis_extent(s->part));
	return s->part == at ? s->body : stmt_replace(t, s->body, 1, &s->part, &mine);
}

void phases_finish(Tree *t, Stmt *before, Stmt *after)
{
	count_parts(t);
	int64_t end = t->shape.parts;
	Node *part = t->nsection == 1 ? t->section[0].part : tree_axis(t, end);
	Stmt *body = NULL;
	for (int k = t->nsection - 1; k >= 0; k--) {
		int64_t begin = end - axis_extent(t->section[k].part);
		Stmt *mine = section_at(t, k, part, begin);
		Node *cond = node2(t->ir, OP_LT, part, node_int(t->ir, end));
		body = k == t->nsection - 1 ? mine : stmt_if(t, cond, mine, body);
		end = begin;
	}
	t->root = stmt_seq(before, stmt_loop(t, HOW_PARALLEL, part, NULL, NULL, body));
	stmt_seq(t->root, after);
}
