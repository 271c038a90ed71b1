/* rfactor.c - sums in blocks: each part sums a block of the points for itself, and a second
 * phase adds the blocks up.
 *
 * Input: a direct nest whose outermost loops are reduced and yet run in parallel (the step
 * `rfactor`). Output: what its region stores instead of the members, and the parts of the second
 * phase. Invariant: the blocks are added in their order, and how many they are depends on the
 * schedule only, never on the threads. */
#include "jit/nest/internal.h"

enum { BLOCKS_MOST = 1024, SUMS_BYTES = 1 << 24 };

static int64_t points_of(const Problem *p)
{
	int64_t n = 1;
	for (int k = 0; k < p->nspatial; k++)
		n *= axis_extent(p->axis[k]);
	return n;
}

int rfactor_check(const Build *b, Error *err)
{
	const Problem *p = b->p;
	int64_t blocks = 1, room = SUMS_BYTES / (int64_t)type_size(p->acc) / points_of(p);
	if (b->nrfactor == 0)
		return 0;
	if (p->red == RED_NONE || p->scatter || p->partial)
		return schedule_misfit(err,
				       "there is no reduction in this nest that can run in blocks");
	if (b->nrfactor < 0 || b->nrfactor > b->nparallel)
		return schedule_misfit(err, "%d loops can't be blocks, only %d run in parallel",
				       b->nrfactor, b->nparallel);
	for (int k = 0; k < b->nrfactor; k++) {
		const Loop *l = &b->loop[b->order[k]];
		if (!l->reduced || l->how == HOW_VECTOR ||
		    (l->stride == 1 && !nest_exact(b, l->axis)))
			return schedule_misfit(err,
					       "loop %d can't be blocks, it is not a reduced "
					       "one without lanes that ends with its axis",
					       b->order[k]);
		blocks *= l->extent < BLOCKS_MOST ? l->extent : BLOCKS_MOST + 1;
		if (blocks > BLOCKS_MOST || blocks > room)
			return schedule_misfit(err, "there is no room for so many blocks of sums");
	}
	return 0;
}

void rfactor_init(Build *b)
{
	int64_t points = points_of(b->p);
	b->nblock = 1;
	for (int k = 0; k < b->nrfactor; k++)
		b->nblock *= b->loop[b->order[k]].extent;
	b->sums = tree_buffer(b->t, SPACE_SHARED, "sums", b->p->acc, b->nblock * points);
}

Stmt *rfactor_store(Build *b, Node *sum)
{
	const Problem *p = b->p;
	Node *at = node_int(b->ir, 0), *point = at;
	for (int k = 0; k < b->nrfactor; k++) {
		const Loop *l = &b->loop[b->order[k]];
		at = node_add(b->ir, node_scale(b->ir, at, l->extent), l->val);
	}
	for (int k = 0; k < p->nspatial; k++) {
		point = node_scale(b->ir, point, axis_extent(p->axis[k]));
		point = node_add(b->ir, point, p->axis[k]);
	}
	at = node_add(b->ir, node_scale(b->ir, at, points_of(p)), nest_point(b, point));
	return stmt_store(b->t, b->sums, at, sum, RED_NONE);
}

/* The members at point number `at`, of the sum there. */
static Stmt *point_store(void *user, Node *at, Node *sum)
{
	Build *b = user;
	Problem *p = b->p;
	Node *to[COMP_MAX_AXES];
	axes_at(b->ir, at, p->nspatial, p->axis, to);
	if (p->nspatial) /* the last piece's bound is not known */
		to[0] = node_floormod(b->ir, to[0], axis_extent(p->axis[0]));
	return problem_store(p, p->nspatial, p->axis, to, sum);
}

void rfactor_phase(Build *b)
{
	phase_end(b->t);
	sums_section(b->t, b->sums, b->p->red, b->nblock, points_of(b->p), point_store, b);
}
