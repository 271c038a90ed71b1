/* grid.c - a contraction on a grid: each block multiplies a tile of M and N, block of K by block.
 *
 * Input: a problem that is a contraction, the sizes of its tiles. The threads of a block load the operands'
 * elements of a block of K into its memory together, as any expression with any index functions, zero where
 * padding is or a tile passes an end; each has a tile of sums in registers. While one block of K is multiplied
 * the next ones are loaded (grid_load.c) into other stages of the memory: one barrier for each block. Where
 * there are few tiles K is cut into pieces, whose sums another phase adds up. Output: the tree.
 * Invariant: the order of a sum depends on the schedule only. */
#include "jit/contract/grid.h"

/* Neighbours of a tile's rows (d 0) or columns that a thread has. */
static int64_t tile_neighbours(const GridTiles *h, int d)
{
	int64_t most = h->fragments ? 2 : VECTOR;
	return h->own[d] % most ? 1 : most;
}

/* Of the thread's element number e of a tile's n: the place in a tile of `size`. Threads read VECTOR
 * neighbours at once. */
static Node *tile_place(const GridTiles *h, int d, Node *e)
{
	Ir *ir = h->c->ir;
	int64_t vector = tile_neighbours(h, d), across = h->size[d] / h->own[d];
	if (h->fragments) { /* of fragments of 16 x 8, or 64 x 8 of a group: rows 8 apart, neighbours of a row */
		int64_t size = d ? 8 : h->groups ? GROUP_ROWS : 16, step = d ? 1 : 8;
		Node *first = node_scale(ir, node_floordiv(ir, e, 2), size);
		first = node_add(ir, h->place[d], first);
		return node_add(ir, first, node_scale(ir, node_floormod(ir, e, 2), step));
	}
	Node *at = node_scale(ir, node_floordiv(ir, e, vector), across * vector);
	at = node_add(ir, at, node_scale(ir, h->place[d], vector));
	return node_add(ir, at, node_floormod(ir, e, vector));
}

/* ---- multiplying ---- */

/* The elements of k that the thread multiplies. */
static Stmt *part_read(const GridTiles *h, int d, Node *k)
{
	Contract *c = h->c;
	const TileOperand *o = &h->of[d];
	Node *e = tree_axis(c->t, h->own[d]);
	Node *at = node_add(c->ir, node_scale(c->ir, k, o->pitch), tile_place(h, d, e));
	return stmt_loop(c->t, HOW_UNROLL, e, NULL, NULL,
			 stmt_store(c->t, o->part, e, buffer_read(c->t, o->memory, at), RED_NONE));
}

static Stmt *tile_multiply(const GridTiles *h, Node *stage)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Tree *t = c->t;
	Node *kk = tree_axis(t, h->size[2]), *i = tree_axis(t, h->own[0]);
	Node *j = tree_axis(t, h->own[1]);
	Node *k = node_add(ir, node_scale(ir, stage, h->size[2]), kk);
	Node *v = node2(ir, OP_MUL, buffer_read(t, h->of[0].part, i),
			buffer_read(t, h->of[1].part, j));
	Node *at = node_add(ir, node_scale(ir, i, h->own[1]), j);
	Stmt *s = stmt_loop(t, HOW_UNROLL, j, NULL, NULL, stmt_store(t, h->acc, at, v, RED_ADD));
	s = stmt_loop(t, HOW_UNROLL, i, NULL, NULL, s);
	s = stmt_seq(stmt_seq(part_read(h, 0, k), part_read(h, 1, k)), s);
	return stmt_loop(t, HOW_UNROLL, kk, NULL, NULL, s);
}

/* Stores into the thread's sums at each place: 0, or (RED_ADD) what is there in others. */
static Stmt *sums_store(const GridTiles *h, Node *sums, Node *others)
{
	Contract *c = h->c;
	Tree *t = c->t;
	Node *i = tree_axis(t, h->own[0]), *j = tree_axis(t, h->own[1]);
	Node *at = node_add(c->ir, node_scale(c->ir, i, h->own[1]), j);
	Node *v = others ? buffer_read(t, others, at)
			 : node_identity(c->ir, RED_ADD, c->p->acc, c->p->acc);
	Stmt *s = stmt_store(t, sums, at, v, others ? RED_ADD : RED_NONE);
	s = stmt_loop(t, HOW_UNROLL, j, NULL, NULL, s);
	return stmt_loop(t, HOW_UNROLL, i, NULL, NULL, s);
}

/* Fragment number e of operand d, 16 by 32 bytes of K, into registers; (k, at) is its first element. */
static Stmt *fragment_read(const GridTiles *h, int d, Node *stage, Node *e, Node *k)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	const TileOperand *o = &h->of[d];
	const char *name = arena_printf(&ir->arena, "ricci_fragment_%s%c%s", h->fragments->read,
					d ? 'b' : 'a', o->k_last ? "" : "_across");
	Node *at = node_add(ir, h->warp[d], node_scale(ir, e, 16));
	CallArg arg[] = {{o->part, node_scale(ir, e, 4)},
			 {o->memory, memory_place(h, o, stage, at, k)},
			 {NULL, contract_int(c, o->pitch)}};
	return stmt_loop(c->t, HOW_UNROLL, e, NULL, NULL, stmt_call(c->t, name, COUNT(arg), arg));
}

/* The products of a block of K by the tensor cores of each warp, fragment by fragment. */
static Stmt *fragments_block(const GridTiles *h, Node *stage, Node *sums)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Tree *t = c->t;
	int64_t size = h->fragments->deep;
	Node *k = tree_axis(t, h->size[2] / size), *deep = node_scale(ir, k, size);
	Node *i = tree_axis(t, h->own[0] / 2), *j = tree_axis(t, h->own[1] / 2);
	Node *at = node_add(ir, node_scale(ir, i, 2 * h->own[1]), node_scale(ir, j, 2));
	CallArg arg[] = {{sums, at},
			 {NULL, contract_int(c, h->own[1])},
			 {h->of[0].part, node_scale(ir, i, 4)},
			 {h->of[1].part, node_scale(ir, j, 2)}};
	const char *name = arena_printf(&ir->arena, "ricci_mma_%s", h->fragments->name);
	Stmt *s = stmt_call(t, name, COUNT(arg), arg);
	s = stmt_loop(t, HOW_UNROLL, j, NULL, NULL, s);
	s = stmt_loop(t, HOW_UNROLL, i, NULL, NULL, s);
	Stmt *read = fragment_read(h, 0, stage, tree_axis(t, h->own[0] / 2), deep);
	read = stmt_seq(read, fragment_read(h, 1, stage, tree_axis(t, h->own[1] / 4), deep));
	return stmt_loop(t, HOW_UNROLL, k, NULL, NULL, stmt_seq(read, s));
}

/* Tensor cores cut sums off, they don't round them (Ootomo and Yokota 2022): over a long sum of f32 that would add
 * up, so each block of K has its own, which the threads add. */
static Stmt *fragments_multiply(const GridTiles *h, Node *stage)
{
	if (!h->fragments->parts)
		return fragments_block(h, stage, h->acc);
	Tree *t = h->c->t;
	Node *sums = tree_buffer(t, SPACE_LOCAL, "part", h->c->p->acc, h->own[0] * h->own[1]);
	Stmt *s = stmt_seq(stmt_alloc(t, sums), sums_store(h, sums, NULL));
	s = stmt_seq(s, fragments_block(h, stage, sums));
	return stmt_seq(s, sums_store(h, h->acc, sums));
}

/* An operand's place at element `deep` of K and row or column `at`, the distance of its panels in elements, and
 * whether lines are of K. */
static void group_operand(const GridTiles *h, int d, Node *stage, Node *at, Node *deep,
			  CallArg arg[3])
{
	Contract *c = h->c;
	const TileOperand *o = &h->of[d];
	at = node_add(c->ir, h->warp[d], at);
	arg[0] = (CallArg){o->memory, memory_place(h, o, stage, at, deep)};
	arg[1] = (CallArg){NULL, contract_int(c, o->pitch)};
	arg[2] = (CallArg){NULL, contract_int(c, o->k_last)};
}

/* Ends the products of groups, all but those of the `later` last blocks of K. */
static Stmt *groups_wait(const GridTiles *h, int64_t later)
{
	CallArg arg[] = {{NULL, contract_int(h->c, later)}};
	return stmt_call(h->c->t, "ricci_group_wait", COUNT(arg), arg);
}

/* Ends all products of groups: the sums are there. */
static Stmt *groups_finish(const GridTiles *h)
{
	Contract *c = h->c;
	CallArg arg[] = {{h->acc, contract_int(c, 0)},
			 {NULL, contract_int(c, h->own[0] * h->own[1])}};
	return h->groups ? stmt_seq(groups_wait(h, 0),
				    stmt_call(c->t, "ricci_group_sums", COUNT(arg), arg))
			 : NULL;
}

/* The same by groups of four warps. The products of one block of K are under way when this ends; those of the
 * blocks before are done. */
static Stmt *groups_multiply(const GridTiles *h, Node *stage)
{
	enum { FLYING = 1 };
	Contract *c = h->c;
	Ir *ir = c->ir;
	Tree *t = c->t;
	int64_t size = h->fragments->deep;
	Node *k = tree_axis(t, h->size[2] / size), *i = tree_axis(t, h->own[0] / 2);
	Node *deep = node_scale(ir, k, size);
	CallArg arg[7] = {{h->acc, node_scale(ir, i, 2 * h->own[1])}};
	group_operand(h, 0, stage, node_scale(ir, i, GROUP_ROWS), deep, arg + 1);
	group_operand(h, 1, stage, contract_int(c, 0), deep, arg + 4);
	const char *name = arena_printf(&ir->arena, "ricci_group_mma_%s_%d", h->fragments->name,
					(int)(4 * h->own[1]));
	Stmt *s = stmt_loop(t, HOW_UNROLL, i, NULL, NULL, stmt_call(t, name, COUNT(arg), arg));
	s = stmt_loop(t, HOW_UNROLL, k, NULL, NULL, s);
	s = stmt_seq(s, stmt_call(t, "ricci_group_end", 0, NULL));
	s = stmt_seq(stmt_call(t, "ricci_group_begin", 0, NULL), s);
	return stmt_seq(s, groups_wait(h, FLYING));
}

/* Behind it products see what the thread stored or copied, once all threads have met. */
static Stmt *groups_see(const GridTiles *h)
{
	return h->groups ? stmt_call(h->c->t, "ricci_group_see", 0, NULL) : NULL;
}

/* The sums over the piece's blocks of K. A stage is loaded while those before it are multiplied; of groups one
 * more, whose products may still be under way. */
static Stmt *tile_sums(const GridTiles *h)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Tree *t = c->t;
	int64_t ahead = h->stages - (h->groups ? 2 : 1);
	Node *kb = tree_axis(t, h->per_piece), *hi = NULL;
	if (h->pieces * h->per_piece > h->count[2])
		hi = node2(c->ir, OP_MIN, contract_int(c, h->per_piece),
			   node_sub(ir, contract_int(c, h->count[2]), h->first));
	Stmt *s = sums_store(h, h->acc, NULL);
	for (int64_t k = 0; k < ahead; k++) {
		Node *stage = contract_int(c, k);
		s = stmt_seq(s, tiles_load(h, node_add(ir, h->first, stage), stage));
		s = stmt_seq(s, tiles_keep(h, stage));
	}
	Node *next = node_add(ir, kb, contract_int(c, ahead));
	Node *stage = node_floormod(ir, kb, h->stages), *free = node_floormod(ir, next, h->stages);
	Stmt *body = stmt_seq(stmt_seq(tiles_wait(h, ahead - 1), groups_see(h)), stmt_sync(t));
	body = stmt_seq(body, tiles_load(h, node_add(ir, h->first, next), free));
	body = stmt_seq(body, h->groups	     ? groups_multiply(h, stage)
			      : h->fragments ? fragments_multiply(h, stage)
					     : tile_multiply(h, stage));
	body = stmt_seq(body, tiles_keep(h, free));
	s = stmt_seq(s, stmt_loop(t, HOW_SERIAL, kb, NULL, hi, body));
	return stmt_seq(stmt_seq(s, groups_finish(h)), tiles_wait(h, 0));
}

/* ---- storing ---- */

/* The members at these elements of M and N, of the sum there. */
static Stmt *members_store(Contract *c, Node *batch, Node *m, Node *n, Node *sum)
{
	Node *from[COMP_MAX_AXES], *to[COMP_MAX_AXES];
	int count = group_at(c, &c->m, m, 0, from, to);
	count = group_at(c, &c->n, n, count, from, to);
	count = group_at(c, &c->batch, batch, count, from, to);
	return problem_store(c->p, count, from, to, sum);
}

static Stmt *piece_store(const GridTiles *h, Node *piece, Node *m, Node *n, Node *sum)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Node *at = node_add(ir, node_scale(ir, piece, c->batch.extent), h->batch);
	at = node_add(ir, node_scale(ir, at, c->m.extent), m);
	at = node_add(ir, node_scale(ir, at, c->n.extent), n);
	return stmt_store(c->t, h->sums, at, sum, RED_NONE);
}

static Stmt *tile_store(const GridTiles *h, Node *piece)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	int64_t beside = tile_neighbours(h, 1);
	bool together = c->n.extent % beside == 0; /* all end where one ends */
	Node *i = tree_axis(c->t, h->own[0]), *j = tree_axis(c->t, h->own[1] / beside);
	Node *next = tree_axis(c->t, beside), *begin = node_scale(ir, j, beside);
	Node *e = node_add(ir, begin, next);
	Node *m = node_add(ir, h->of[0].origin, tile_place(h, 0, i));
	Node *n = node_add(ir, h->of[1].origin, tile_place(h, 1, e));
	Node *first = node_add(ir, h->of[1].origin, tile_place(h, 1, begin));
	Node *sum = buffer_read(c->t, h->acc, node_add(ir, node_scale(ir, i, h->own[1]), e));
	Stmt *s = h->pieces > 1 ? piece_store(h, piece, m, n, sum)
				: members_store(c, h->batch, m, n, sum);
	if (!together)
		s = stmt_if(c->t, below(c, n, c->n.extent), s, NULL);
	s = stmt_loop(c->t, HOW_UNROLL, next, NULL, NULL, s);
	if (together)
		s = stmt_if(c->t, below(c, first, c->n.extent), s, NULL);
	s = stmt_loop(c->t, HOW_UNROLL, j, NULL, NULL, s);
	s = stmt_if(c->t, below(c, m, c->m.extent), s, NULL);
	return stmt_loop(c->t, HOW_UNROLL, i, NULL, NULL, s);
}

static Stmt *piece_sum(void *user, Node *at, Node *sum)
{
	Contract *c = user;
	Ir *ir = c->ir;
	Node *m = node_floordiv(ir, at, c->n.extent), *n = node_floormod(ir, at, c->n.extent);
	Node *batch = node_floordiv(ir, m, c->m.extent);
	return members_store(c, batch, node_floormod(ir, m, c->m.extent), n, sum);
}

/* ---- the whole ---- */

static Stmt *operand_alloc(GridTiles *h, int d)
{
	Tree *t = h->c->t;
	TileOperand *o = &h->of[d];
	o->memory =
		tree_buffer(t, SPACE_BLOCK, d ? "tb" : "ta", h->type, h->stages * tile_room(h, o));
	Stmt *s = stmt_alloc(t, o->memory);
	if (!h->groups) {
		o->part = tree_buffer(t, SPACE_LOCAL, d ? "rb" : "ra",
				      h->fragments ? RICCI_I32 : h->type,
				      h->fragments ? h->own[d] * (d ? 1 : 2) : h->own[d]);
		s = stmt_seq(s, stmt_alloc(t, o->part));
	}
	if (o->copied)
		return s;
	o->held = tree_buffer(t, SPACE_LOCAL, d ? "lb" : "la", h->type,
			      o->extent * h->size[2] / h->threads);
	return stmt_seq(s, stmt_alloc(t, o->held));
}

/* Each warp has 8 x 4 times the tile of a thread; each group of four the same columns and 4 times the rows, its
 * warps 16 of each 64. */
static void warp_places(GridTiles *h)
{
	Ir *ir = h->c->ir;
	int64_t warps = h->groups ? 4 : 1;
	Node *lane = node_floormod(ir, h->thread, WARP);
	Node *warp = node_floordiv(ir, h->thread, warps * WARP);
	Node *of = node_floormod(ir, node_floordiv(ir, h->thread, WARP), warps);
	int64_t rows = 8 * warps * h->own[0], cols = 4 * h->own[1], across = h->size[1] / cols;
	h->warp[0] = node_scale(ir, node_floordiv(ir, warp, across), rows);
	h->warp[1] = node_scale(ir, node_floormod(ir, warp, across), cols);
	h->place[0] = node_add(ir, h->warp[0], node_scale(ir, of, 16));
	h->place[0] = node_add(ir, h->place[0], node_floordiv(ir, lane, 4));
	h->place[1] = node_add(ir, h->warp[1], node_scale(ir, node_floormod(ir, lane, 4), 2));
}

/* The threads of a warp have 4 x 8 neighbouring places where they can: they read few places of both operands. */
static void thread_places(GridTiles *h)
{
	enum { ROWS = 4, COLS = 8 };
	Ir *ir = h->c->ir;
	int64_t down = h->size[0] / h->own[0], across = h->size[1] / h->own[1];
	h->place[0] = node_floordiv(ir, h->thread, across);
	h->place[1] = node_floormod(ir, h->thread, across);
	if (down % ROWS || across % COLS)
		return;
	Node *warp = node_floordiv(ir, h->thread, WARP), *lane = node_floormod(ir, h->thread, WARP);
	h->place[0] = node_add(ir, node_scale(ir, node_floordiv(ir, warp, across / COLS), ROWS),
			       node_floordiv(ir, lane, COLS));
	h->place[1] = node_add(ir, node_scale(ir, node_floormod(ir, warp, across / COLS), COLS),
			       node_floormod(ir, lane, COLS));
}

/* Block `block` of the grid: tiles of N run fastest, then those of M, the batch, the pieces of K. */
static Stmt *tile_body(GridTiles *h, Node *block)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Node *n = node_floormod(ir, block, h->count[1]);
	Node *rest = node_floordiv(ir, block, h->count[1]);
	Node *m = node_floormod(ir, rest, h->count[0]);
	rest = node_floordiv(ir, rest, h->count[0]);
	Node *piece = node_floordiv(ir, rest, c->batch.extent);
	h->batch = node_floormod(ir, rest, c->batch.extent);
	h->first = node_scale(ir, piece, h->per_piece);
	(h->fragments ? warp_places : thread_places)(h);
	h->acc = tree_buffer(c->t, SPACE_LOCAL, "acc", c->p->acc, h->own[0] * h->own[1]);
	Stmt *s = stmt_seq(operand_alloc(h, 0), operand_alloc(h, 1));
	h->of[0].origin = node_scale(ir, m, h->size[0]);
	h->of[1].origin = node_scale(ir, n, h->size[1]);
	s = stmt_seq(s, stmt_alloc(c->t, h->acc));
	s = stmt_seq(s, tile_sums(h));
	return stmt_seq(s, tile_store(h, piece));
}

static int tiles_read(GridTiles *h, const Schedule *s, Error *err)
{
	h->pieces = 1;
	for (int k = 0; k < s->n; k++) {
		const ScheduleStep *step = &s->step[k];
		if (step->kind == STEP_BLOCK && step->axis >= 0 && step->axis < 3)
			h->size[step->axis] = step->arg;
		else if (step->kind == STEP_TILE && step->axis >= 0 && step->axis < 2)
			h->own[step->axis] = step->arg;
		else if (step->kind == STEP_RFACTOR)
			h->pieces = step->arg;
		else if (step->kind == STEP_THREADS && step->arg <= GRID_THREADS_MOST)
			h->threads = (int)step->arg;
		else if (step->kind != STEP_TENSORISE)
			return schedule_misfit(err, "step %d does not fit a contraction on a grid",
					       k + 1);
	}
	return 0;
}

/* What groups of warps multiply at once (jit/dialect/cuda_groups.inc has them). */
static bool group_columns(int64_t n)
{
	return n == 64 || n == 128 || n == 256;
}

static int tiles_check(const GridTiles *h, Error *err)
{
	const Contract *c = h->c;
	enum { SIZE_MOST = 1024 };
	for (int d = 0; d < 3; d++)
		if (h->size[d] < 1 || h->size[d] > SIZE_MOST)
			return schedule_misfit(err,
					       "a contraction on a grid needs sizes of its blocks");
	for (int d = 0; d < 2; d++) {
		if (h->own[d] < 1 || h->size[d] % h->own[d])
			return schedule_misfit(err, "a block's tile is no multiple of a thread's");
		if (h->threads < 1 || h->size[d] * h->size[2] % h->threads)
			return schedule_misfit(err,
					       "the threads of a block load unlike many elements");
	}
	if (h->fragments && (h->own[0] % 2 || h->own[1] % 4 || h->size[2] % h->fragments->deep ||
			     h->size[0] % (8 * h->own[0]) || h->size[1] % (4 * h->own[1])))
		return schedule_misfit(err, "a tile is no multiple of the warps' fragments");
	if (h->groups && (h->size[0] % (4 * 8 * h->own[0]) || h->size[2] % GROUP_LINE ||
			  !group_columns(4 * h->own[1])))
		return schedule_misfit(err, "a tile is no multiple of those of groups of warps");
	if (h->threads != h->size[0] / h->own[0] * (h->size[1] / h->own[1]))
		return schedule_misfit(err, "a block has another number of threads than its tile");
	bool twice = h->fragments && h->fragments->parts; /* sums of a block of K, too */
	if (h->own[0] * h->own[1] * (int64_t)type_size(c->p->acc) * (1 + twice) > GRID_TILE_BYTES)
		return schedule_misfit(err,
				       "a tile has no room in registers or in the block's memory");
	if (h->pieces < 1 || h->pieces > (c->k.extent + h->size[2] - 1) / h->size[2] ||
	    (h->pieces > 1 && (double)h->pieces * (double)c->p->main_size > GRID_SUMS))
		return schedule_misfit(err, "K can't be cut into so many pieces");
	return 0;
}

/* How the operands are loaded; as many stages as the block's memory has room for. */
static int tiles_plan(GridTiles *h, Error *err)
{
	int64_t stage = 0;
	for (int d = 0; d < 2; d++) {
		operand_plan(h, d);
		stage += tile_room(h, &h->of[d]) * (int64_t)type_size(h->type);
	}
	bool copied = h->of[0].copied || h->of[1].copied;
	bool more = h->fragments && h->dynamic;
	int64_t room = h->groups ? GRID_GROUP_BYTES : more ? GRID_FRAGMENT_BYTES : GRID_BLOCK_BYTES;
	h->stages = room / stage;
	h->stages = h->stages < STAGES_MOST ? h->stages : STAGES_MOST;
	if (h->stages < (h->groups ? 3 : 2))
		return schedule_misfit(err,
				       "a tile has no room in registers or in the block's memory");
	h->stages = copied || h->groups ? h->stages : 2;
	if (h->stages * stage > GRID_BLOCK_BYTES)
		h->c->t->shape.block = (size_t)(h->stages * stage);
	return 0;
}

/* Has it no more bits than tf32? */
static bool is_tf32(const Node *v)
{
	return v->op == OP_TF32 || (v->op == OP_CAST && type_size((Type)v->src[0]->type) <= 2);
}

const Fragments *contract_fragments(const Contract *c)
{
	static const Fragments narrow[] = {{RICCI_BF16, "", "bf16", 16, 1, false},
					   {RICCI_F16, "", "f16", 16, 1, false}};
	static const Fragments words = {RICCI_F32, "tf32_", "tf32", 8, 0.9, false};
	static const Fragments parts = {RICCI_F32, "f32_", "f32", 8, 1, true};
	Source a, b;
	if (c->p->acc != RICCI_F32)
		return NULL;
	bool same =
		contract_source(&c->a, &a) && contract_source(&c->b, &b) && a.through == b.through;
	for (int k = 0; same && k < COUNT(narrow); k++)
		if (a.through == narrow[k].type)
			return &narrow[k];
	return is_tf32(c->a.value) && is_tf32(c->b.value) ? &words : &parts;
}

int lower_contract_grid(Problem *p, const Schedule *s, const Capabilities *caps, Error *err)
{
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	GridTiles h = {.c = c, .copies = caps->copies, .dynamic = caps->block_memory};
	const ScheduleStep *step = schedule_find(s, STEP_TENSORISE);
	int way = step ? (int)step->arg : 0;
	if (!contract_find(c, p, target_grid(false), way))
		return schedule_misfit(
			err, "on a grid tensorise needs a sum of products whose operands share "
			     "reduced indices and each have indices of their own");
	h.type = p->acc;
	if (way & TENSORISE_NARROW) {
		h.fragments = caps->fragments ? contract_fragments(c) : NULL;
		if (!h.fragments)
			return schedule_misfit(
				err, "tensor cores need operands that are bf16, f16 or tf32, and "
				     "a device that has some");
		h.type = h.fragments->type;
		h.groups = way & TENSORISE_GROUPS;
		if (h.groups && (!caps->groups || type_size(h.type) != 2))
			return schedule_misfit(
				err,
				"groups of warps multiply bf16 or f16, on a device where they can");
	}
	if (tiles_read(&h, s, err) || tiles_check(&h, err) || tiles_plan(&h, err))
		return err->code;
	const int64_t extent[] = {c->m.extent, c->n.extent, c->k.extent};
	for (int d = 0; d < 3; d++)
		h.count[d] = (extent[d] + h.size[d] - 1) / h.size[d];
	h.per_piece = (h.count[2] + h.pieces - 1) / h.pieces;
	h.pieces = (h.count[2] + h.per_piece - 1) / h.per_piece;
	int64_t points = c->batch.extent * c->m.extent * c->n.extent;
	c->t->shape.threads = h.threads;
	h.thread = tree_axis(c->t, h.threads);
	if (h.pieces > 1)
		h.sums = tree_buffer(c->t, SPACE_SHARED, "sums", p->acc, h.pieces * points);
	Node *block = tree_axis(c->t, h.pieces * c->batch.extent * h.count[0] * h.count[1]);
	phase_grid(c->t, block, h.thread, tile_body(&h, block));
	if (h.pieces > 1) {
		phase_end(c->t);
		sums_section(c->t, h.sums, RED_ADD, h.pieces, points, piece_sum, c);
	}
	phases_finish(c->t, NULL, NULL);
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}
