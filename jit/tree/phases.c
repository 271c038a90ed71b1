/* phases.c - a kernel is a list of phases, and all threads meet between two.
 *
 * Input: the sections of each phase: statements for each of so many parts. Output: the tree's root, a
 * parallel loop over the parts of all sections, or a grid for each phase, and where each phase begins.
 * Invariant: a section's body runs once for each of its parts, after all parts of the phases before. */
#include "jit/tree/tree.h"

#include <assert.h>

typedef struct Section {
	int phase;
	Node *part, *thread; /* of a grid: the block, and the thread in it */
	Stmt *body;
} Section;

void phase_section(Tree *t, Node *part, Stmt *body)
{
	t->section = arena_grow(&t->ir->arena, t->section, t->nsection, &t->section_room,
				sizeof *t->section);
	t->section[t->nsection++] = (Section){t->nphase, part, NULL, body};
}

void phase_grid(Tree *t, Node *block, Node *thread, Stmt *body)
{
	assert(axis_extent(thread) == t->shape.threads);
	phase_section(t, block, body);
	t->section[t->nsection - 1].thread = thread;
}

void phase_call(Tree *t, Stmt *call)
{
	t->shape.call.phase = t->nphase;
	phase_section(t, tree_axis(t, 1), call);
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

/* The sections first..end-1, which have `parts` parts together: the one that part number `at` is of. */
static Stmt *sections_select(Tree *t, int first, int end, Node *at, int64_t parts)
{
	Stmt *body = NULL;
	for (int k = end - 1; k >= first; k--) {
		int64_t begin = parts - axis_extent(t->section[k].part);
		Stmt *mine = section_at(t, k, at, begin);
		Node *cond = node2(t->ir, OP_LT, at, node_int(t->ir, parts));
		body = k == end - 1 ? mine : stmt_if(t, cond, mine, body);
		parts = begin;
	}
	return body;
}

/* The sections first..end-1, which are a phase, as a grid: blocks choose their section, so barriers are
 * met by all of a block's threads. */
static Stmt *phase_root(Tree *t, int first, int end)
{
	int64_t blocks = 0;
	Section *s = t->section;
	if (!s[first].thread) {
		assert(end == first + 1);
		return s[first].body;
	}
	for (int k = first; k < end; k++) {
		blocks += axis_extent(s[k].part);
		if (k > first)
			s[k].body = stmt_replace(t, s[k].body, 1, &s[k].thread, &s[first].thread);
	}
	Node *block = end == first + 1 ? s[first].part : tree_axis(t, blocks);
	Stmt *body = sections_select(t, first, end, block, blocks);
	body = stmt_loop(t, HOW_THREAD, s[first].thread, NULL, NULL, body);
	return stmt_loop(t, HOW_BLOCK, block, NULL, NULL, body);
}

static void grids_finish(Tree *t)
{
	for (int k = 0, end; k < t->nsection; k = end) {
		for (end = k; end < t->nsection && t->section[end].phase == t->section[k].phase;)
			end++;
		t->root = stmt_seq(t->root, phase_root(t, k, end));
	}
}

void phases_finish(Tree *t, Stmt *before, Stmt *after)
{
	before = t->before = stmt_seq(t->before, before);
	after = t->after = stmt_seq(t->after, after);
	if (t->more) {
		phase_end(t);
		return;
	}
	count_parts(t);
	if (t->shape.threads) {
		grids_finish(t);
		return;
	}
	Node *part = t->nsection == 1 ? t->section[0].part : tree_axis(t, t->shape.parts);
	Stmt *body = sections_select(t, 0, t->nsection, part, t->shape.parts);
	t->root = stmt_seq(before, stmt_loop(t, HOW_PARALLEL, part, NULL, NULL, body));
	stmt_seq(t->root, after);
}
