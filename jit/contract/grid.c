/* grid.c - a contraction on a grid: each block multiplies a tile of M and N, block of K by block.
 *
 * Input: a problem that is a contraction, the sizes of its tiles. The threads of a block load the operands'
 * elements of a block of K into its memory together, as any expression with any index functions, zero where
 * padding is or a tile passes an end; each has a tile of sums in registers. While one block of K is multiplied
 * the next is loaded into registers, and then stored into the other half of the memory: one barrier for each
 * block. Where there are few tiles K is cut into pieces, whose sums another phase adds up. Output: the tree.
 * Invariant: the order of a sum depends on the schedule only. */
#include "jit/contract/internal.h"

enum {
	VECTOR = 4,
	WARP = 32,
	FRAGMENT_K = 16
}; /* neighbours that a thread reads at once; threads; elements of K */

/* An operand's tile of a block of K in the block's memory, twice: element (k, s) is at k * pitch + s. */
typedef struct TileOperand {
	const Operand *f;
	const IndexGroup *group;
	Node *memory, *held,
		*part; /* of the block; a thread's next elements; those it multiplies */
	int64_t extent, pitch;
	bool along_k; /* neighbouring threads load neighbours of K */
	Node *origin; /* the tile's first element */
	bool k_last;  /* element (k, s) is at s * pitch + k */
} TileOperand;

typedef struct GridTiles {
	Contract *c;
	int64_t size[3], own[2]; /* of a tile: M, N, K; of a thread: M, N */
	int64_t count[3];	 /* tiles */
	int64_t pieces, per_piece;
	int threads;
	Type type;	/* of the elements in the block's memory */
	bool fragments; /* warps multiply them: `type` has 16 bits */
	Node *thread, *sums, *acc;
	Node *place[2]; /* the thread's among those of the tile; of fragments its first element's */
	Node *lane[2];	/* of fragments: of eight, of four */
	Node *batch;	/* its point */
	Node *first;	/* the piece's first block of K */
	TileOperand of[2];
} GridTiles;

/* ---- which element is where ---- */

/* Axes of the group at element `at`, behind the n that are there. */
static int group_at(Contract *c, const IndexGroup *g, Node *at, int n, Node **from, Node **to)
{
	for (int k = g->naxis - 1; k >= 0; k--, n++) {
		int64_t extent = axis_extent(g->axis[k]);
		from[n] = g->axis[k];
		to[n] = k ? node_floormod(c->ir, at, extent) : at;
		at = node_floordiv(c->ir, at, extent);
	}
	return n;
}

static Node *below(Contract *c, Node *at, int64_t extent)
{
	return node2(c->ir, OP_LT, at, contract_int(c, extent));
}

/* The operand's element at these of its group and K; zero behind the end of either, and in padding. */
static Node *element(const GridTiles *h, const TileOperand *o, Node *at, Node *k, Node *inside)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Type type = h->type;
	Node *from[COMP_MAX_AXES], *to[COMP_MAX_AXES], *v = o->f->value;
	if (h->fragments && v->op == OP_CAST) /* of what has 16 bits, see contract_fragments */
		v = v->src[0];
	v = v->type == type ? v : node_cast(ir, type, v);
	Node *zero = node_identity(ir, RED_ADD, type, type);
	int n = group_at(c, o->group, at, 0, from, to);
	n = group_at(c, &c->k, k, n, from, to);
	n = group_at(c, &c->batch, h->batch, n, from, to);
	Node *cond = node2(ir, OP_AND, inside, below(c, at, o->group->extent));
	for (int g = 0; g < o->f->nguard; g++)
		cond = node2(ir, OP_AND, cond, node_replace(ir, o->f->guard[g], n, from, to));
	return node_select(ir, cond, node_replace(ir, v, n, from, to), zero);
}

/* Of the thread's element number e of a tile's n: the place in a tile of `size`. Threads read VECTOR
 * neighbours at once. */
static Node *tile_place(const GridTiles *h, int d, Node *e)
{
	Ir *ir = h->c->ir;
	int64_t own = h->own[d], vector = own % VECTOR ? 1 : VECTOR;
	int64_t across = h->size[d] / own;
	if (h->fragments) { /* of fragments of 16 x 8: rows 8 apart, neighbours of a row */
		int64_t size = d ? 8 : 16, step = d ? 1 : 8;
		Node *first = node_scale(ir, node_floordiv(ir, e, 2), size);
		first = node_add(ir, h->place[d], first);
		return node_add(ir, first, node_scale(ir, node_floormod(ir, e, 2), step));
	}
	Node *at = node_scale(ir, node_floordiv(ir, e, vector), across * vector);
	at = node_add(ir, at, node_scale(ir, h->place[d], vector));
	return node_add(ir, at, node_floormod(ir, e, vector));
}

static void see_read(void *user, Node *n)
{
	Node **read = user;
	if (n->op == OP_READ && !*read)
		*read = n;
}

/* How far apart the group's neighbours are in what the operand reads first. */
static int64_t step_of(Contract *c, const Operand *f, const IndexGroup *g)
{
	Node *read = contract_read(f);
	if (!read)
		node_walk(c->ir, f->value, see_read, &read);
	int64_t step = read ? affine_stride(c->ir, read->src[1], g->axis[g->naxis - 1]) : 0;
	return step == INT64_MIN ? INT64_MAX : step < 0 ? -step : step;
}

/* ---- loading ---- */

/* The thread's elements of block number `block` of K, into `held`. */
static Stmt *tile_load(const GridTiles *h, const TileOperand *o, Node *block)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Stmt *all = NULL;
	int64_t each = o->extent * h->size[2] / h->threads, deep = h->size[2];
	bool even = c->k.extent % deep == 0;
	for (int64_t l = 0; l < each; l++) {
		Node *e = node_add(ir, h->thread, contract_int(c, l * h->threads));
		Node *at =
			o->along_k ? node_floordiv(ir, e, deep) : node_floormod(ir, e, o->extent);
		Node *k = o->along_k ? node_floormod(ir, e, deep) : node_floordiv(ir, e, o->extent);
		k = node_add(ir, node_scale(ir, block, deep), k);
		Node *inside = even ? below(c, block, h->count[2]) : below(c, k, c->k.extent);
		Node *v = element(h, o, node_add(ir, o->origin, at), k, inside);
		all = stmt_seq(all, stmt_store(c->t, o->held, contract_int(c, l), v, RED_NONE));
	}
	return all;
}

/* Element (k, at) of a half of the memory. */
static Node *memory_place(const GridTiles *h, const TileOperand *o, Node *half, Node *at, Node *k)
{
	Ir *ir = h->c->ir;
	Node *slow = o->k_last ? at : k, *fast = o->k_last ? k : at;
	slow = node_add(ir, node_scale(ir, half, o->k_last ? o->extent : h->size[2]), slow);
	return node_add(ir, node_scale(ir, slow, o->pitch), fast);
}

/* And from there to half `half` of the memory. */
static Stmt *tile_keep(const GridTiles *h, const TileOperand *o, Node *half)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Stmt *all = NULL;
	int64_t each = o->extent * h->size[2] / h->threads, deep = h->size[2];
	for (int64_t l = 0; l < each; l++) {
		Node *e = node_add(ir, h->thread, contract_int(c, l * h->threads));
		Node *at =
			o->along_k ? node_floordiv(ir, e, deep) : node_floormod(ir, e, o->extent);
		Node *k = o->along_k ? node_floormod(ir, e, deep) : node_floordiv(ir, e, o->extent);
		at = memory_place(h, o, half, at, k);
		all = stmt_seq(all, stmt_store(c->t, o->memory, at,
					       buffer_read(c->t, o->held, contract_int(c, l)),
					       RED_NONE));
	}
	return all;
}

static Stmt *both_load(const GridTiles *h, Node *block)
{
	return stmt_seq(tile_load(h, &h->of[0], block), tile_load(h, &h->of[1], block));
}

static Stmt *both_keep(const GridTiles *h, Node *half)
{
	return stmt_seq(tile_keep(h, &h->of[0], half), tile_keep(h, &h->of[1], half));
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

static Stmt *tile_multiply(const GridTiles *h, Node *half)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Tree *t = c->t;
	Node *kk = tree_axis(t, h->size[2]), *i = tree_axis(t, h->own[0]);
	Node *j = tree_axis(t, h->own[1]);
	Node *k = node_add(ir, node_scale(ir, half, h->size[2]), kk);
	Node *v = node2(ir, OP_MUL, buffer_read(t, h->of[0].part, i),
			buffer_read(t, h->of[1].part, j));
	Node *at = node_add(ir, node_scale(ir, i, h->own[1]), j);
	Stmt *s = stmt_loop(t, HOW_UNROLL, j, NULL, NULL, stmt_store(t, h->acc, at, v, RED_ADD));
	s = stmt_loop(t, HOW_UNROLL, i, NULL, NULL, s);
	s = stmt_seq(stmt_seq(part_read(h, 0, k), part_read(h, 1, k)), s);
	return stmt_loop(t, HOW_UNROLL, kk, NULL, NULL, s);
}

static Stmt *tile_fill(const GridTiles *h)
{
	Contract *c = h->c;
	Tree *t = c->t;
	Node *i = tree_axis(t, h->own[0]), *j = tree_axis(t, h->own[1]);
	Node *at = node_add(c->ir, node_scale(c->ir, i, h->own[1]), j);
	Node *zero = node_identity(c->ir, RED_ADD, c->p->acc, c->p->acc);
	Stmt *s =
		stmt_loop(t, HOW_UNROLL, j, NULL, NULL, stmt_store(t, h->acc, at, zero, RED_NONE));
	return stmt_loop(t, HOW_UNROLL, i, NULL, NULL, s);
}

/* The same by the tensor cores of each warp, fragment by fragment. */
static Stmt *fragments_multiply(const GridTiles *h, Node *half)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Tree *t = c->t;
	const TileOperand *a = &h->of[0], *b = &h->of[1];
	Node *k = tree_axis(t, h->size[2] / FRAGMENT_K);
	Node *i = tree_axis(t, h->own[0] / 2), *j = tree_axis(t, h->own[1] / 2);
	Node *deep = node_add(ir, node_scale(ir, k, FRAGMENT_K), node_scale(ir, h->lane[1], 2));
	Node *row = node_add(ir, h->place[0], node_scale(ir, i, 16));
	Node *col = node_sub(ir, h->place[1], node_scale(ir, h->lane[1], 2));
	col = node_add(ir, node_add(ir, col, node_scale(ir, j, 8)), h->lane[0]);
	Node *at = node_add(ir, node_scale(ir, i, 2 * h->own[1]), node_scale(ir, j, 2));
	CallArg arg[] = {{h->acc, at},
			 {NULL, contract_int(c, h->own[1])},
			 {a->memory, memory_place(h, a, half, row, deep)},
			 {b->memory, memory_place(h, b, half, col, deep)},
			 {NULL, contract_int(c, a->pitch)}};
	const char *name = h->type == RICCI_BF16 ? "ricci_mma_bf16" : "ricci_mma_f16";
	Stmt *s = stmt_call(t, name, COUNT(arg), arg);
	s = stmt_loop(t, HOW_UNROLL, j, NULL, NULL, s);
	s = stmt_loop(t, HOW_UNROLL, i, NULL, NULL, s);
	return stmt_loop(t, HOW_UNROLL, k, NULL, NULL, s);
}

/* The sums over the piece's blocks of K. */
static Stmt *tile_sums(const GridTiles *h)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	Tree *t = c->t;
	Node *zero = contract_int(c, 0), *one = contract_int(c, 1);
	Node *kb = tree_axis(t, h->per_piece), *hi = NULL;
	Node *next = node_add(ir, node_add(ir, h->first, kb), one);
	if (h->pieces * h->per_piece > h->count[2])
		hi = contract_least(c, contract_int(c, h->per_piece),
				    node_sub(ir, contract_int(c, h->count[2]), h->first));
	Stmt *s = both_load(h, h->first);
	s = stmt_seq(s, tile_fill(h));
	s = stmt_seq(stmt_seq(s, both_keep(h, zero)), stmt_sync(t));
	Node *half = node_floormod(ir, kb, 2);
	Stmt *products = (h->fragments ? fragments_multiply : tile_multiply)(h, half);
	Stmt *body = stmt_seq(both_load(h, next), products);
	body = stmt_seq(body, both_keep(h, node_sub(ir, one, half)));
	body = stmt_seq(body, stmt_sync(t));
	return stmt_seq(s, stmt_loop(t, HOW_SERIAL, kb, NULL, hi, body));
}

/* ---- storing ---- */

/* The members at these elements of M and N, of the sum there. */
static Stmt *members_store(Contract *c, Node *batch, Node *m, Node *n, Node *sum)
{
	Problem *p = c->p;
	Ir *ir = c->ir;
	Node *from[COMP_MAX_AXES + 1], *to[COMP_MAX_AXES + 1];
	Stmt *all = NULL;
	int count = group_at(c, &c->m, m, 0, from, to);
	count = group_at(c, &c->n, n, count, from, to);
	count = group_at(c, &c->batch, batch, count, from, to);
	from[count] = p->result;
	to[count] = problem_narrow(p, sum);
	for (int k = 0; k < p->nout; k++)
		all = stmt_seq(all,
			       stmt_store(c->t, p->out[k],
					  node_replace(ir, p->out_index[k], count, from, to),
					  node_replace(ir, p->out_value[k], count + 1, from, to),
					  p->out_red[k]));
	return all;
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
	Node *i = tree_axis(c->t, h->own[0]), *j = tree_axis(c->t, h->own[1]);
	Node *m = node_add(ir, h->of[0].origin, tile_place(h, 0, i));
	Node *n = node_add(ir, h->of[1].origin, tile_place(h, 1, j));
	Node *at = node_add(ir, node_scale(ir, i, h->own[1]), j);
	Node *sum = buffer_read(c->t, h->acc, at);
	Stmt *s = h->pieces > 1 ? piece_store(h, piece, m, n, sum)
				: members_store(c, h->batch, m, n, sum);
	s = stmt_if(c->t, below(c, n, c->n.extent), s, NULL);
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
	Contract *c = h->c;
	TileOperand *o = &h->of[d];
	Type type = h->type;
	o->f = d ? &c->b : &c->a;
	o->group = d ? &c->n : &c->m;
	o->extent = h->size[d];
	o->along_k = step_of(c, o->f, &c->k) < step_of(c, o->f, o->group);
	o->k_last = h->fragments;
	o->pitch = o->k_last ? h->size[2] : o->extent;
	if (o->along_k || o->k_last) /* neighbours of the slower one are in other banks */
		o->pitch += GRID_ALIGN / (int64_t)type_size(type);
	o->memory = tree_buffer(c->t, SPACE_BLOCK, d ? "tb" : "ta", type,
				2 * (o->k_last ? o->extent : h->size[2]) * o->pitch);
	o->held = tree_buffer(c->t, SPACE_LOCAL, d ? "lb" : "la", type,
			      o->extent * h->size[2] / h->threads);
	o->part = tree_buffer(c->t, SPACE_LOCAL, d ? "rb" : "ra", type, h->own[d]);
	return stmt_seq(stmt_seq(stmt_alloc(c->t, o->memory), stmt_alloc(c->t, o->held)),
			stmt_alloc(c->t, o->part));
}

/* Each warp has 8 x 4 times the tile of a thread. */
static void warp_places(GridTiles *h)
{
	Ir *ir = h->c->ir;
	Node *warp = node_floordiv(ir, h->thread, WARP);
	int64_t rows = 8 * h->own[0], cols = 4 * h->own[1], across = h->size[1] / cols;
	h->lane[0] = node_floormod(ir, node_floordiv(ir, h->thread, 4), 8);
	h->lane[1] = node_floormod(ir, h->thread, 4);
	h->place[0] =
		node_add(ir, node_scale(ir, node_floordiv(ir, warp, across), rows), h->lane[0]);
	h->place[1] = node_add(ir, node_scale(ir, node_floormod(ir, warp, across), cols),
			       node_scale(ir, h->lane[1], 2));
}

/* Block `block` of the grid: tiles of N run fastest, then those of M, the batch, the pieces of K. */
static Stmt *tile_body(GridTiles *h, Node *block)
{
	Contract *c = h->c;
	Ir *ir = c->ir;
	int64_t across = h->size[1] / h->own[1];
	Node *n = node_floormod(ir, block, h->count[1]);
	Node *rest = node_floordiv(ir, block, h->count[1]);
	Node *m = node_floormod(ir, rest, h->count[0]);
	rest = node_floordiv(ir, rest, h->count[0]);
	Node *piece = node_floordiv(ir, rest, c->batch.extent);
	h->batch = node_floormod(ir, rest, c->batch.extent);
	h->first = node_scale(ir, piece, h->per_piece);
	h->place[0] = node_floordiv(ir, h->thread, across);
	h->place[1] = node_floormod(ir, h->thread, across);
	if (h->fragments)
		warp_places(h);
	h->acc = tree_buffer(c->t, SPACE_LOCAL, "acc", c->p->acc, h->own[0] * h->own[1]);
	Stmt *s = stmt_seq(operand_alloc(h, 0), operand_alloc(h, 1));
	h->of[0].origin = node_scale(ir, m, h->size[0]);
	h->of[1].origin = node_scale(ir, n, h->size[1]);
	s = stmt_seq(s, stmt_alloc(c->t, h->acc));
	s = stmt_seq(s, tile_sums(h));
	return stmt_seq(s, tile_store(h, piece));
}

static int misfit(Error *err, const char *why)
{
	return error_set(err, RICCI_EINVAL, "schedule: %s", why);
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
			return error_set(err, RICCI_EINVAL,
					 "schedule: step %d does not fit a contraction on a grid",
					 k + 1);
	}
	return 0;
}

static int tiles_check(const GridTiles *h, Error *err)
{
	const Contract *c = h->c;
	enum { SIZE_MOST = 1024 };
	int64_t element = (int64_t)type_size(h->type), memory = 0;
	for (int d = 0; d < 3; d++)
		if (h->size[d] < 1 || h->size[d] > SIZE_MOST)
			return misfit(err, "a contraction on a grid needs sizes of its blocks");
	for (int d = 0; d < 2; d++) {
		if (h->own[d] < 1 || h->size[d] % h->own[d])
			return misfit(err, "a block's tile is no multiple of a thread's");
		if (h->threads < 1 || h->size[d] * h->size[2] % h->threads)
			return misfit(err, "the threads of a block load unlike many elements");
		int64_t slow = h->fragments ? h->size[d] : h->size[2];
		int64_t fast = h->fragments ? h->size[2] : h->size[d];
		memory += 2 * slow * (fast + GRID_ALIGN / element) * element;
	}
	if (h->fragments && (h->own[0] % 2 || h->own[1] % 2 || h->size[2] % FRAGMENT_K ||
			     h->size[0] % (8 * h->own[0]) || h->size[1] % (4 * h->own[1])))
		return misfit(err, "a tile is no multiple of the warps' fragments");
	if (h->threads != h->size[0] / h->own[0] * (h->size[1] / h->own[1]))
		return misfit(err, "a block has another number of threads than its tile");
	if (h->own[0] * h->own[1] * (int64_t)type_size(c->p->acc) > GRID_TILE_BYTES ||
	    memory > GRID_BLOCK_BYTES)
		return misfit(err, "a tile has no room in registers or in the block's memory");
	if (h->pieces < 1 || h->pieces > (c->k.extent + h->size[2] - 1) / h->size[2] ||
	    (h->pieces > 1 && (double)h->pieces * (double)c->p->main_size > GRID_SUMS))
		return misfit(err, "K can't be cut into so many pieces");
	return 0;
}

Type contract_fragments(const Contract *c)
{
	Source a, b;
	bool same = c->p->acc == RICCI_F32 && contract_source(&c->a, &a) &&
		    contract_source(&c->b, &b) && a.through == b.through;
	return same && (a.through == RICCI_BF16 || a.through == RICCI_F16) ? a.through : c->p->acc;
}

int lower_contract_grid(Problem *p, const Schedule *s, const Capabilities *caps, Error *err)
{
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	GridTiles h = {.c = c};
	int way = 0;
	for (int k = 0; k < s->n; k++)
		if (s->step[k].kind == STEP_TENSORISE)
			way = (int)s->step[k].arg;
	if (!contract_find(c, p, target_grid(false), way))
		return misfit(err,
			      "on a grid tensorise needs a sum of products whose operands share "
			      "reduced indices and each have indices of their own");
	h.type = p->acc;
	if (way & TENSORISE_NARROW) {
		h.type = contract_fragments(c);
		h.fragments = caps->fragments && h.type != p->acc;
		if (!h.fragments)
			return misfit(err, "tensor cores need operands that are bf16 or f16, and a "
					   "device that has some");
	}
	if (tiles_read(&h, s, err) || tiles_check(&h, err))
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
		grid_sums(c->t, h.sums, RED_ADD, h.pieces, points, piece_sum, c);
	}
	phases_finish(c->t, NULL, NULL);
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}
