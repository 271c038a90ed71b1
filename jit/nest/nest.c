/* nest.c - direct nests: a problem and a schedule become loops around one statement.
 *
 * Input: Problem, the loops of its schedule. Output: the tree's root.
 * The loops before the first reduced one are the outer region; inside it every spatial loop and
 * every vectorised reduced loop is a dimension of an accumulator tile, which is filled before,
 * and stored through the members after the reductions. Invariant: whatever the schedule, each
 * point of the domain contributes exactly once, and reads stay under their conditions. */
#include "jit/nest/internal.h"

/* Are `span` elements of the axis left? Of one open loop a bound is written, which gcc splits the loop
 * by (-fsplit-loops): versions inside of it hinder its vectors. */
static Node *axis_covers(Build *b, int axis, int64_t span)
{
	const Loop *open = NULL;
	int n = 0;
	for (int j = 0; j < b->nloop; j++)
		if (b->loop[j].val && b->loop[j].axis == axis) {
			open = &b->loop[j];
			n++;
		}
	if (n != 1)
		return node2(b->ir, OP_LE, node_int(b->ir, span), nest_rest(b, axis));
	int64_t last = int_floor_div(axis_extent(b->p->axis[axis]) - span, open->stride);
	return node2(b->ir, OP_LE, open->val, node_int(b->ir, last));
}

/* ---- statements ---- */

static Stmt *store_members(Build *b, Node *result)
{
	Problem *p = b->p;
	Stmt *all = NULL;
	for (int k = 0; k < p->nout; k++) {
		Node *value = b->value[k], *to = p->out[k], *at = nest_point(b, p->out_index[k]);
		if (result)
			value = node_replace(b->ir, value, 1, &p->result, &result);
		if (b->line[k]) {
			to = b->line[k];
			at = b->loop[b->order[b->lanes]].val;
		}
		all = stmt_seq(all, stmt_store(b->t, to, at, nest_point(b, value), p->out_red[k]));
	}
	return all;
}

/* The tiles and lines of a part. */
static Stmt *local_buffers(Build *b)
{
	Stmt *all = NULL;
	for (int k = 0; k < b->ncache_read; k++)
		all = stmt_seq(all, stmt_alloc(b->t, b->cache_read[k].buffer));
	for (int k = 0; k < b->p->nout; k++)
		if (b->line[k])
			all = stmt_seq(all, stmt_alloc(b->t, b->line[k]));
	return all;
}

static Stmt *leaf_fill(Build *b)
{
	return stmt_store(b->t, b->acc, tile_index(b), nest_identity(b, b->p->acc), RED_NONE);
}

/* The members of the running sum; `sum` is that, or what the lanes add to it. */
static Stmt *leaf_carried(Build *b, Node *sum)
{
	const Carry *c = &b->carry;
	Stmt *add = NULL;
	if (c->single && tile_lanes_loop(b)->reduced) {
		Node *zero = node_int(b->ir, 0);
		add = stmt_store(b->t, c->sum, zero, sum, b->p->red);
		sum = buffer_read(b->t, c->sum, zero);
	}
	return stmt_seq(add, store_members(b, problem_narrow(b->p, carry_value(b->p, c, sum))));
}

static Stmt *leaf_store(Build *b)
{
	Node *sum;
	Stmt *halve = tile_combined(b, tile_index(b), &sum);
	if (b->carry.r.axis >= 0)
		return stmt_seq(halve, leaf_carried(b, sum));
	return stmt_seq(halve, b->nrfactor ? rfactor_store(b, sum)
					   : store_members(b, problem_narrow(b->p, sum)));
}

/* What the open point adds to the accumulator. */
static Node *leaf_value(Build *b)
{
	Node *v = nest_point(b, b->body);
	return b->p->acc != b->p->type ? node_cast(b->ir, b->p->acc, v) : v;
}

/* Is there one new point for each of the lanes that run along the results? */
static bool adds_once(const Build *b)
{
	if (b->carry.r.axis < 0 || !b->carry.single || b->nguard || tile_lanes_loop(b)->reduced)
		return false;
	for (int k = 0; k < b->nloop; k++)
		if (b->loop[k].reduced && b->loop[k].extent > 1)
			return false;
	return true;
}

static Stmt *leaf_main(Build *b)
{
	Problem *p = b->p;
	if (p->scatter) {
		Stmt *s = stmt_store(b->t, b->acc, nest_point(b, p->index), leaf_value(b), p->red);
		s->atomic = b->atomic;
		return s;
	}
	if (p->red == RED_NONE)
		return store_members(b, NULL);
	return stmt_store(b->t, b->acc, tile_index(b), leaf_value(b),
			  adds_once(b) ? RED_NONE : p->red);
}

/* ---- loops ---- */

static Stmt *nest(Build *b, int k);

/* A reduced loop whose last iteration is short: the full ones, then the last with its own bounds.
 */
static Stmt *nest_peeled(Build *b, int k)
{
	Loop *l = &b->loop[b->order[k]];
	Node *rest = nest_rest(b, l->axis);
	int64_t full = rest->u.i / l->stride;
	Stmt *head = NULL;
	if (full) { /* a variable that ends there, so that bounds know it */
		Node *var = tree_axis(b->t, full);
		b->full[l->axis] = true;
		l->val = var;
		head = stmt_loop(b->t, l->how, var, NULL, NULL, NULL);
		head->body = nest(b, k + 1);
		b->full[l->axis] = false;
	}
	l->val = node_int(b->ir, full);
	Stmt *tail = nest(b, k + 1);
	l->val = NULL;
	return stmt_seq(head, tail);
}

static bool wants_peel(Build *b, int k)
{
	Loop *l = &b->loop[b->order[k]];
	if (!l->reduced || b->full[l->axis] || nest_exact(b, l->axis) || l->stride == 1)
		return false;
	Node *rest = nest_rest(b, l->axis);
	return node_is_const(rest) && rest->u.i % l->stride != 0 &&
	       rest->u.i / l->stride < l->extent;
}

enum { WRITTEN_MOST = 128 };

static bool few_written(const Build *b)
{
	int64_t n = 1;
	for (int k = 0; k < b->nloop && n <= WRITTEN_MOST; k++)
		if (b->loop[k].how == HOW_UNROLL)
			n *= b->loop[k].extent;
	return n <= WRITTEN_MOST;
}

/* Each iteration on its own: of loops inside the lanes, and of an unrolled loop of plain stores,
 * where conditions on its number are decided, and what then is not needed is gone. */
static bool wants_writing(const Build *b, int k)
{
	const Loop *l = &b->loop[b->order[k]];
	if (b->lanes >= 0 && k > b->lanes)
		return true;
	return l->how == HOW_UNROLL && b->p->red == RED_NONE && !b->p->scatter &&
	       nest_exact(b, l->axis) && few_written(b);
}

/* Is the loop a line of a window of which the extremum is sought, and no condition left? */
static bool is_line(const Build *b, int k)
{
	bool open = false;
	for (int g = 0; g < b->nguard; g++)
		open |= !b->placed[g];
	return k == b->nloop - 1 && b->loop[b->order[k]].reduced && !b->p->scatter && !open &&
	       (b->p->red == RED_MAX || b->p->red == RED_MIN);
}

/* Its points are compared with each other first, in any order: windows that share the line share
 * its extremum. */
static Stmt *nest_line(Build *b, Loop *l)
{
	Node *v = NULL;
	for (int64_t i = 0; i < l->extent; i++) {
		l->val = node_int(b->ir, i);
		v = v ? node_combine(b->ir, b->p->red, v, leaf_value(b)) : leaf_value(b);
	}
	l->val = NULL;
	return stmt_store(b->t, b->acc, tile_index(b), v, b->p->red);
}

static Stmt *nest_written(Build *b, int k)
{
	Loop *l = &b->loop[b->order[k]];
	Stmt *all = NULL;
	if (is_line(b, k))
		return nest_line(b, l);
	for (int64_t i = 0; i < l->extent; i++) {
		l->val = node_int(b->ir, i);
		all = stmt_seq(all, nest(b, k + 1));
	}
	l->val = NULL;
	return all;
}

static Stmt *region(Build *b);
static Stmt *region_rest(Build *b);
static Stmt *carry_open(Build *b);

static Stmt *nest(Build *b, int k)
{
	Problem *p = b->p;
	if (k == b->cache_read_at && b->ncache_read && !b->filled) {
		Stmt *fill = cache_read_fill(b);
		b->filled = true;
		fill = stmt_seq(fill, nest(b, k));
		b->filled = false;
		return fill;
	}
	if (k == b->carry.at && b->carry.r.axis >= 0 && !b->carry.open)
		return carry_open(b);
	if (k == b->nouter && b->carry.open && !b->carry.single && !b->reducing)
		return region_rest(b);
	if (k == b->nouter && !b->reducing && p->red != RED_NONE && !p->scatter)
		return region(b);
	uint64_t taken;
	Node *cond = guards_take(b, &taken);
	Stmt *s;
	if (k == b->nloop) {
		s = leaf_main(b);
	} else if ((b->loop[b->order[k]].axis == b->carry.r.over && b->carry.r.step == 1) ||
		   b->loop[b->order[k]].how == HOW_THREAD) { /* open already */
		s = nest(b, k + 1);
	} else if (wants_peel(b, k)) {
		s = nest_peeled(b, k);
	} else if (wants_writing(b, k)) {
		s = nest_written(b, k);
	} else {
		Loop *l = &b->loop[b->order[k]];
		s = nest_open(b, l);
		s->body = nest(b, k + 1);
		l->val = NULL;
		if (k == b->lanes)
			s = stream_lines(b, s);
	}
	if (cond)
		s = stmt_if(b->t, cond, s, NULL);
	guards_return(b, taken);
	return s;
}

/* Is each lane a region of its own? */
static bool inside_lanes(const Build *b)
{
	return b->lanes >= 0 && b->lanes < b->nouter;
}

/* Into the tile, and from there to the results. */
static Stmt *region_rest(Build *b)
{
	b->reducing = true;
	Stmt *s = nest(b, b->nouter);
	b->reducing = false;
	if (b->nthread)
		s = grid_combine(b, s);
	s = stmt_seq(s, carry_lanes(b));
	Stmt *store = tile_loops(b, tile_first(b), false, leaf_store);
	return stmt_seq(s, b->nthread ? stmt_if(b->t, grid_first(b), store, NULL) : store);
}

/* The loops along the carried axis, in each place of those outside of them. */
static Stmt *carry_open(Build *b)
{
	Carry *c = &b->carry;
	if (!c->single)
		return region(b);
	Stmt *s = stmt_alloc(b->t, c->sum);
	s = stmt_seq(s, stmt_store(b->t, c->sum, node_int(b->ir, 0), nest_identity(b, b->p->acc),
				   RED_NONE));
	if (c->head)
		s = stmt_seq(s, carry_head(b, c->at));
	c->open = true;
	s = stmt_seq(s, nest(b, c->at));
	c->open = false;
	return s;
}

static Stmt *region_once(Build *b)
{
	if (inside_lanes(b)) /* written out: each its own */
		b->acc = tree_buffer(b->t, SPACE_LOCAL, "acc", b->p->acc, tile_size(b));
	Stmt *s = stmt_alloc(b->t, b->acc);
	if (!adds_once(b))
		s = stmt_seq(s, tile_loops(b, tile_first(b), true, leaf_fill));
	if (b->carry.r.axis < 0 || b->carry.single)
		return stmt_seq(s, region_rest(b));
	if (b->carry.head)
		s = stmt_seq(s, carry_head(b, tile_first(b)));
	b->carry.open = true;
	s = stmt_seq(s, nest(b, b->carry.at));
	b->carry.open = false;
	return s;
}

/* Are there blocks of the axis, the last of them smaller? */
static bool is_block(const Build *b, int axis)
{
	for (int k = 0; k < b->nrfactor; k++)
		if (b->loop[b->order[k]].axis == axis)
			return true;
	return false;
}

/* Accumulate and store one tile; full tiles get a version with constant bounds. */
static Stmt *region(Build *b)
{
	Node *cond = NULL;
	bool edge[COMP_MAX_AXES] = {false};
	bool along = b->carry.r.axis >= 0 && !b->carry.single;
	for (int k = tile_first(b); b->caps->specialises && k < b->nloop; k++) {
		Loop *l = &b->loop[b->order[k]];
		if ((along && l->axis == b->carry.r.axis) || edge[l->axis] ||
		    nest_exact(b, l->axis) || (l->reduced && !is_block(b, l->axis)))
			continue;
		int64_t span = 1;
		for (int j = k; j < b->nloop; j++)
			if (b->loop[b->order[j]].axis == l->axis)
				span += b->loop[b->order[j]].stride *
					(b->loop[b->order[j]].extent - 1);
		Node *c = axis_covers(b, l->axis, span);
		cond = node_and(b->ir, cond, c);
		edge[l->axis] = true;
	}
	if (!cond)
		return region_once(b);
	for (int a = 0; a < b->p->naxis; a++)
		b->full[a] |= edge[a];
	Stmt *full = region_once(b);
	for (int a = 0; a < b->p->naxis; a++)
		b->full[a] &= !edge[a];
	return stmt_if(b->t, cond, full, region_once(b));
}

/* Sums in memory: filled, added to, and made narrow where they are wider than the result. */
static Stmt *scatter(Build *b, int k)
{
	Problem *p = b->p;
	Stmt *s = NULL;
	bool phases = b->caps->grid && !p->rows, wide = p->acc != p->type && !phases;
	if (!phases) {
		fill_sums(b);
		s = fill_part(b, false);
	}
	b->reducing = true;
	s = stmt_seq(s, nest(b, k));
	b->reducing = false;
	return wide ? stmt_seq(s, fill_part(b, true)) : s;
}

/* ---- the whole ---- */

static void find_region(Build *b)
{
	b->nouter = 0;
	while (b->nouter < b->nloop &&
	       (b->nouter < b->nrfactor || b->atomic || !b->loop[b->order[b->nouter]].reduced))
		b->nouter++;
	if (b->nparallel > b->nouter)
		b->nparallel = b->nouter;
}

/* Decides everything that the schedule and the problem say before a statement is made. */
static int prepare(Build *b, const Schedule *s, Error *err)
{
	if (nest_replay(b, s, err))
		return err->code;
	Problem *p = b->p;
	find_region(b);
	if (carry_place(b, err))
		return err->code;
	tile_find(b);
	if (b->carry.r.axis >= 0 && b->carry.single) /* (of two elements: it has an address) */
		b->carry.sum = tree_buffer(b->t, SPACE_LOCAL, "sum", p->acc, 2);
	if (p->partial && !b->caps->grid)
		b->nparallel = 0;
	if (b->cache_read_at >= 0 && b->cache_read_at < b->nparallel && !b->caps->grid)
		b->cache_read_at = b->nparallel;
	cache_read_find(b);
	stream_find(b);
	guards_init(b);
	for (int k = 0; k < b->nloop; k++)
		b->loop[b->order[k]].var = tree_axis(p->tree, b->loop[b->order[k]].extent);
	return 0;
}

/* One part, where the parallel loops are open. */
static Piece part_piece(Build *b)
{
	Problem *p = b->p;
	if (p->red != RED_NONE && !p->scatter && !inside_lanes(b))
		b->acc = tree_buffer(p->tree, SPACE_LOCAL, "acc", p->acc, tile_size(b));
	Stmt *body = p->scatter ? scatter(b, b->nparallel) : nest(b, b->nparallel);
	if (b->caps->grid)
		return (Piece){.alloc = local_buffers(b),
			       .body = b->nthread ? body : stmt_if(b->t, b->inside, body, NULL)};
	for (int k = 0; k < b->nparallel; k++) { /* parts past the end of an axis */
		Loop *l = &b->loop[b->order[k]];
		if (l->stride == 1 && !nest_exact(b, l->axis))
			body = stmt_if(
				b->t,
				node2(b->ir, OP_LT, node_int(b->ir, 0), nest_rest(b, l->axis)),
				body, NULL);
	}
	if (p->partial)
		body = stmt_seq(fill_partial(b), body);
	return (Piece){.alloc = local_buffers(b), .body = body};
}

static Build *build_new(Problem *p, const Capabilities *caps)
{
	Build *b = arena_alloc(&p->ir->arena, sizeof *b);
	b->p = p;
	b->ir = p->ir;
	b->t = p->tree;
	b->caps = caps;
	return b;
}

int nest_piece(Problem *p, const Schedule *s, const Capabilities *caps, Piece *out, Error *err)
{
	Build *b = build_new(p, caps);
	if (prepare(b, s, err))
		return err->code;
	if (b->nparallel || b->nrfactor)
		return schedule_misfit(err, "a piece of a tree has no parts");
	*out = part_piece(b);
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}

int nest_block_piece(Problem *p, const Schedule *s, const Capabilities *caps, Node *thread,
		     Piece *out, Error *err)
{
	Build *b = build_new(p, caps);
	b->threads = (int)axis_extent(thread);
	if (prepare(b, s, err))
		return err->code;
	if (b->nrfactor)
		return schedule_misfit(err, "a piece of a tree has no phases");
	grid_open(b, thread);
	Piece piece = part_piece(b);
	Stmt *body = stmt_seq(piece.alloc, grid_repeat(b, piece.body));
	*out = (Piece){.body = stmt_loop(b->t, HOW_SERIAL, b->block, NULL, NULL, body)};
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}

static int nest_grid(Build *b, Error *err)
{
	Problem *p = b->p;
	Node *thread = tree_axis(b->t, b->threads);
	b->t->shape.threads = b->threads;
	fill_grid(b);
	if (b->nrfactor)
		rfactor_init(b);
	grid_open(b, thread);
	b->filled = true;
	Piece piece = part_piece(b);
	b->filled = false;
	Stmt *body = stmt_seq(grid_read_fill(b), grid_repeat(b, piece.body));
	phase_grid(b->t, b->block, thread, stmt_seq(piece.alloc, body));
	if (b->nrfactor)
		rfactor_phase(b);
	if (p->scatter && p->acc != p->type)
		convert_grid(b);
	phases_finish(b->t, NULL, NULL);
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}

/* Parts go along main's first dimension where the slowest loop of axis 0 is the slowest of all. */
static int64_t nest_blocks(const Build *b)
{
	const Problem *p = b->p;
	const Loop *l = &b->loop[b->order[0]];
	if (!b->nparallel || b->nrfactor || p->scatter || p->partial || l->axis)
		return 0;
	int64_t extent = axis_extent(p->axis[0]);
	bool slowest = l->stride * l->extent >= extent;
	bool first = affine_stride(b->ir, p->index, p->axis[0]) * extent == p->main_size;
	return slowest && first ? l->extent : 0;
}

int lower_nest(Problem *p, const Schedule *s, const Capabilities *caps, Error *err)
{
	Build *b = build_new(p, caps);
	bool streams = false;
	if (prepare(b, s, err))
		return err->code;
	if (caps->grid)
		return nest_grid(b, err);
	if (b->nrfactor)
		rfactor_init(b);
	Node *part = tree_axis(p->tree, nest_parts(b));
	nest_open_at(b, 0, b->nparallel, part);
	Piece piece = part_piece(b);
	phase_section(p->tree, part, stmt_seq(piece.alloc, piece.body));
	p->tree->shape.blocks = nest_blocks(b);
	if (b->nrfactor)
		rfactor_phase(b);
	for (int k = 0; k < p->nout; k++)
		streams |= b->line[k] != NULL;
	phases_finish(p->tree, NULL, streams ? stmt_seen(p->tree) : NULL);
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}
