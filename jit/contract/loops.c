/* loops.c - the loops of a contraction around a micro-kernel.
 *
 *	for each part (batch point or several whose results share lines, M block, N block):
 *		for each K block: pack A's panels; for each strip of B: pack its panels, run them
 *			against A's
 *		store C through the members, where tiles are not stored straight
 *
 * A plain read as A may stay unpacked. Operands of which many parts use the same panels may be packed
 * before, once, into shared memory, in a phase of their own. Where blocks are few and K is long, parts
 * are pieces of K too: they leave their sums in shared memory, and one more phase adds them up in the
 * order of K and stores. */
#include "jit/contract/internal.h"

enum { WANTED_SLICES = 8, MOST_WHOLE = 1 << 15 };
static const double MOST_SPLIT = 1 << 25; /* elements of all pieces' sums */

static int read_steps(const Schedule *s, Contract *c, Blocking *h, const Target *target, Error *err)
{
	int64_t *block[4] = {&h->mc, &h->nc, &h->kc, &h->strip};
	const int64_t extent[4] = {c->m.extent, c->n.extent, c->k.extent, c->n.extent};
	h->pieces = 1;
	for (int k = 0; k < 4; k++)
		*block[k] = k < 3 ? 128 : c->micro->nr;
	for (int k = 0; k < s->n; k++) {
		const ScheduleStep *step = &s->step[k];
		bool block_step = step->kind == STEP_BLOCK && step->axis >= 0 && step->axis <= 3 &&
				  step->arg >= 1 && step->arg <= 1 << 20;
		if (block_step)
			*block[step->axis] = step->arg;
		else if (step->kind == STEP_RFACTOR && step->arg >= 1)
			h->pieces = step->arg;
		else if (step->kind == STEP_UNPACKED)
			h->unpacked_a = step->arg > 0, h->unpacked_b = step->arg > 1;
		else if (step->kind == STEP_SHARE)
			h->a_shared = step->arg & 1, h->b_shared = step->arg >> 1 & 1;
		else if (step->kind != STEP_TENSORISE)
			return schedule_misfit(err, "step %d does not fit a tensorised contraction",
					       k + 1);
	}
	contract_rows(c, target, h->unpacked_a);
	const int64_t unit[4] = {c->mr, c->micro->nr, contract_group(c), c->micro->nr};
	for (int k = 0; k < 4; k++) {
		int64_t most = (extent[k] + unit[k] - 1) / unit[k] * unit[k];
		*block[k] = (*block[k] + unit[k] - 1) / unit[k] * unit[k];
		*block[k] = *block[k] < most ? *block[k] : most;
	}
	h->strip = h->strip < h->nc ? h->strip : h->nc;
	h->nmc = (c->m.extent + h->mc - 1) / h->mc;
	h->nnc = (c->n.extent + h->nc - 1) / h->nc;
	h->nkc = (c->k.extent + h->kc - 1) / h->kc;
	h->a_deep = h->kc + c->micro->a.more;
	h->b_deep = h->kc + c->micro->b.more;
	h->c_row = contract_pitch(h->nc, c->p->acc, 0);
	/* Pieces of K have equal numbers of blocks. */
	h->pieces = c->k.compact ? 1 : h->pieces < h->nkc ? h->pieces : h->nkc;
	h->per_piece = (h->nkc + h->pieces - 1) / h->pieces;
	h->pieces = (h->nkc + h->per_piece - 1) / h->per_piece;
	return 0;
}

/* Can it be done so? */
static int check(Contract *c, const Blocking *h, Error *err)
{
	double sums = (double)h->pieces * (double)(c->batch.extent * h->nmc * h->mc) *
		      (double)(h->nnc * h->nc);
	if (h->unpacked_a && !contract_unpacked(c, false))
		return schedule_misfit(
			err, "the first operand can't stay unpacked, only a plain "
			     "read of the type that is multiplied, without conditions, can");
	if (h->unpacked_b && !contract_unpacked(c, true))
		return schedule_misfit(err, "the second operand can't stay unpacked, only a plain "
					    "read of the sum's type under affine conditions can");
	if (h->pieces > 1 && sums > MOST_SPLIT)
		return schedule_misfit(err, "the sums of %lld pieces of K are too large",
				       (long long)h->pieces);
	if ((h->a_shared && (h->unpacked_a || !contract_shares(c, false))) ||
	    (h->b_shared && (h->unpacked_b || !contract_shares(c, true))))
		return schedule_misfit(err, "shared panels have to be packed, of a plain read that "
					    "they don't unfold");
	return 0;
}

/* Tables of a whole group are filled for each range of parts that a thread takes, those of a block
 * in each part, with divisions. */
static void set_groups(Contract *c, const Blocking *h)
{
	IndexGroup *group[3] = {&c->m, &c->n, &c->k};
	int64_t block[3] = {h->mc, h->nc, h->kc};
	int64_t times[3] = {h->nnc * h->pieces, h->nmc * h->pieces, h->nmc * h->nnc};
	for (int k = 0; k < 3; k++) {
		group[k]->block = block[k];
		group[k]->whole = group[k]->compact || /* listed once, whatever the blocks */
				  (group[k]->extent <= MOST_WHOLE &&
				   (group[k]->extent <= 256 || times[k] * c->batch.extent >= 5));
	}
}

/* ---- panels ---- */

/* Elements that a block's panels of one operand take, and what packing overwrites behind them. */
static int64_t panel_room(const Blocking *h, bool b)
{
	return round_up((b ? h->nc * h->b_deep : h->mc * h->a_deep) + PACK_SLACK, LINE);
}

/* How many blocks of shared panels there are. */
static int64_t shared_blocks(const Contract *c, const Blocking *h, bool b)
{
	if (!(b ? h->b_shared : h->a_shared))
		return 0;
	return contract_points(c, b ? &c->b : &c->a) * (b ? h->nnc : h->nmc) * h->nkc;
}

static void panel_buffers(Contract *c, Blocking *h)
{
	Type a = c->micro->a.held, b = c->micro->b.held;
	h->a_at = h->b_at = contract_int(c, 0);
	if (h->a_shared)
		h->a = tree_buffer(c->t, SPACE_SHARED, "pa", a,
				   shared_blocks(c, h, false) * panel_room(h, false));
	else if (!h->unpacked_a)
		h->a = tree_buffer(c->t, SPACE_SCRATCH, "pa", a, panel_room(h, false));
	if (h->b_shared)
		h->b = tree_buffer(c->t, SPACE_SHARED, "pb", b,
				   shared_blocks(c, h, true) * panel_room(h, true));
	else if (!h->b_lies)
		h->b = tree_buffer(c->t, SPACE_SCRATCH, "pb", b, h->strip * h->b_deep + PACK_SLACK);
	h->skips = h->unpacked_a && !h->unpacked_b && zero_blocks_make(c, h->kc, &h->zeros);
	if (h->unpacked_b)
		h->panels = tree_buffer(c->t, SPACE_SCRATCH, "lie", RICCI_I64,
					2 * (h->strip / c->micro->nr));
	if (h->unpacked_b || h->skips)
		h->seq = tree_buffer(c->t, SPACE_TABLE, "seq", RICCI_I64, h->kc);
}

/* Where the shared panels of block x of its index group begin, at block k of K. */
static Node *shared_place(Contract *c, const Blocking *h, bool b, Node *point, Node *x, Node *k)
{
	Ir *ir = c->ir;
	Node *block = contract_points(c, b ? &c->b : &c->a) > 1
			      ? node_add(ir, node_scale(ir, point, b ? h->nnc : h->nmc), x)
			      : x;
	return node_scale(ir, node_add(ir, node_scale(ir, block, h->nkc), k), panel_room(h, b));
}

/* Packs one block of shared panels. */
static Stmt *shared_part(Contract *c, Blocking *h, bool b, Node *part)
{
	Ir *ir = c->ir;
	int64_t blocks = b ? h->nnc : h->nmc;
	Node *block = node_floordiv(ir, part, h->nkc), *zero = contract_int(c, 0);
	Node *point = node_floordiv(ir, block, blocks), *x = node_floormod(ir, block, blocks);
	Node *k = node_floormod(ir, part, h->nkc);
	block_set(c, h, point, b ? zero : x, b ? x : zero, zero, contract_int(c, h->mc));
	block_set_depth(c, h, k);
	*(b ? &h->b_at : &h->a_at) = shared_place(c, h, b, point, x, k);
	c->setup = NULL;
	Stmt *pack = b ? block_pack_b(c, h, zero, h->cols) : block_pack_a(c, h);
	Stmt *tables = stmt_seq(contract_fill(c, b ? &c->n : &c->m), contract_fill(c, &c->k));
	return stmt_seq(stmt_seq(tables, c->setup), pack);
}

/* ---- sums ---- */

/* The elements of K that there are in this part; how many blocks they make. */
static Node *listed_blocks(Contract *c, Blocking *h)
{
	Ir *ir = c->ir;
	c->count = tree_buffer(c->t, SPACE_LOCAL, "count", RICCI_I64, 1);
	Node *count = buffer_read(c->t, c->count, contract_int(c, 0));
	h->depth = node2(ir, OP_MIN, contract_int(c, h->kc), node_sub(ir, count, c->k.origin));
	return node_floordiv(ir, node_add(ir, count, contract_int(c, h->kc - 1)), h->kc);
}

/* From an operand's panels to those that are multiplied next: of the next block of K, by `step`, and behind
 * the last one, number kc of its piece, the first one of the next part, whose panels lie `part` behind this
 * part's. NULL: they are the same. */
static Node *to_next(Contract *c, const Blocking *h, Node *kc, int64_t step, int64_t part)
{
	Ir *ir = c->ir;
	int64_t back = h->per_piece - 1, jump = part - back * step;
	if (back == 0 || jump == step)
		return jump ? contract_int(c, jump) : NULL;
	Node *last = node2(ir, OP_EQ, kc, contract_int(c, back));
	return node_select(ir, last, contract_int(c, jump), contract_int(c, step));
}

/* The same for panels of B in place. */
static void block_in_place(Contract *c, Blocking *h, Node *kc)
{
	Node *index = contract_read(&c->b)->src[1];
	int64_t part = h->nnc > 1 ? contract_place(c, &c->n, index, h->nc) : 0;
	h->to_strip = contract_place(c, &c->n, index, h->strip);
	h->b_to_next = to_next(c, h, kc, contract_place(c, &c->k, index, h->kc), part);
}

/* The panels of block kc of a piece of K that begins with block `before`. Parts go along N. */
static void panels_block(Contract *c, Blocking *h, Node *before, Node *kc)
{
	Ir *ir = c->ir;
	Node *k = node_add(ir, before, kc);
	int64_t a_room = panel_room(h, false), b_room = panel_room(h, true);
	if (h->a_shared) {
		h->a_at = node_add(ir, h->a_at, node_scale(ir, k, a_room));
		h->a_to_next = to_next(c, h, kc, a_room, h->nnc == 1 ? h->nkc * a_room : 0);
	}
	if (h->b_shared) {
		h->b_at = node_add(ir, h->b_at, node_scale(ir, k, b_room));
		h->b_to_next = to_next(c, h, kc, b_room, h->nnc > 1 ? h->nkc * b_room : 0);
	}
	if (h->unpacked_b || h->b_lies)
		block_in_place(c, h, kc);
}

/* The sums of a block over this part's share of K, in h->c. */
static Stmt *multiply(Contract *c, Blocking *h, Node *piece)
{
	Ir *ir = c->ir;
	Node *kc = tree_axis(c->t, h->per_piece), *blocks = NULL;
	Node *before = node_scale(ir, piece, h->per_piece), *k = node_add(ir, before, kc);
	block_set_depth(c, h, k);
	if (h->pieces > 1)
		blocks = node2(c->ir, OP_MIN, contract_int(c, h->per_piece),
			       node_sub(ir, contract_int(c, h->nkc), before));
	if (c->k.compact)
		blocks = listed_blocks(c, h);
	panels_block(c, h, before, kc);
	if (ir->err.code)
		return NULL;
	Node *end = blocks ? blocks : contract_int(c, h->per_piece);
	h->final = node2(ir, OP_EQ, node_add(ir, kc, contract_int(c, 1)), end);
	/* The first block of K stores, the others add; where K is a list, there may be none. */
	Node *add = c->k.compact ? contract_int(c, 1) : node2(ir, OP_MIN, kc, contract_int(c, 1));
	Stmt *block = block_multiply(c, h, add);
	Stmt *loop = stmt_loop(c->t, HOW_SERIAL, kc, NULL, blocks,
			       stmt_seq(contract_fill(c, &c->k), block));
	loop->maybe = c->k.compact;
	if (c->k.compact) {
		int64_t bytes = h->mc * h->c_row * (int64_t)type_size(c->p->acc);
		CallArg zero[] = {{h->c, h->c_at}, {NULL, contract_int(c, bytes)}};
		loop = stmt_seq(contract_choose(c), loop);
		loop = stmt_seq(stmt_call(c->t, "ricci_zero", COUNT(zero), zero), loop);
	}
	const Micro *micro = c->micro;
	if (micro->enter)
		loop = stmt_seq(stmt_seq(stmt_call(c->t, micro->enter_symbol, 0, NULL), loop),
				stmt_call(c->t, micro->leave_symbol, 0, NULL));
	return stmt_seq(c->setup, loop);
}

/* Of so many rows, and one more: the bounds of a run of results are known as those of its first
 * element and of its length (block_store). */
static int64_t sums_room(const Blocking *h, int64_t rows)
{
	return (rows + 1) * h->c_row;
}

/* What this part's statements read of tables, then they. */
static Stmt *with_tables(Contract *c, Stmt *body)
{
	return stmt_seq(stmt_seq(contract_fill(c, &c->m), contract_fill(c, &c->n)), body);
}

/* Can tiles be stored where they belong? What is stored must be the sums as they are, and a panel
 * of N a part of a line. Then h->c is the result. */
static bool stores_straight(Contract *c, Blocking *h)
{
	const Problem *p = c->p;
	Node *em, *en, *base;
	int64_t row = contract_step(c, &c->m, p->index);
	int64_t run = contract_run(c, &c->n, p->index, 1);
	if (c->k.compact || p->nout != 1 || p->out_value[0] != p->result || p->acc != p->type ||
	    (run % c->micro->nr && run != c->n.extent) || !row ||
	    !contract_split(c, p->out_index[0], &c->m, &c->n, &em, &en, &base))
		return false;
	h->straight = true;
	h->c_row = row;
	h->c = p->out[0];
	h->c_at = node_add(c->ir, base, node_scale(c->ir, c->m.origin, row));
	return true;
}

/* This part is of block (m, n) at a point of the batch. */
static void set_block(Contract *c, Blocking *h, Node *point, Node *m, Node *n)
{
	Node *zero = contract_int(c, 0);
	c->setup = NULL;
	block_set(c, h, point, m, n, zero, contract_int(c, h->mc));
	h->a_at = h->a_shared ? shared_place(c, h, false, point, m, zero) : zero;
	h->b_at = h->b_shared ? shared_place(c, h, true, point, n, zero) : zero;
}

static Stmt *store_block(Contract *c, const Blocking *h, int64_t height)
{
	Extent m = {contract_int(c, 0), h->rows, height}, n = {contract_int(c, 0), h->cols, h->nc};
	return block_store(c, h, &m, &n);
}

/* Parts that store results: points of the batch whose results share lines are in one part. */
static int64_t results_parts(const Contract *c, const Blocking *h)
{
	return c->batch.extent / contract_close(c) * h->nmc * h->nnc;
}

typedef struct Place { /* of a block of the result */
	Node *point, *m, *n;
	Node *near; /* the loop's axis over the points of a part; NULL: there is one */
} Place;

static Place place_of(const Contract *c, const Blocking *h, Node *part)
{
	Ir *ir = c->ir;
	int64_t close = contract_close(c), blocks = h->nmc * h->nnc;
	Node *mn = node_floormod(ir, part, blocks), *point = node_floordiv(ir, part, blocks);
	Place at = {point, node_floordiv(ir, mn, h->nnc), node_floormod(ir, mn, h->nnc), NULL};
	if (close > 1) {
		at.near = tree_axis(c->t, close);
		at.point = node_add(ir, node_scale(ir, point, close), at.near);
	}
	return at;
}

static Stmt *at_each(const Contract *c, Place at, Stmt *body)
{
	return at.near ? stmt_loop(c->t, HOW_SERIAL, at.near, NULL, NULL, body) : body;
}

/* Part number `part` of a sum over all of K: its block is stored at once. */
static Stmt *whole_part(Contract *c, Blocking *h, Node *part)
{
	Node *zero = contract_int(c, 0);
	Place at = place_of(c, h, part);
	set_block(c, h, at.point, at.m, at.n);
	if (stores_straight(c, h))
		return at_each(c, at, with_tables(c, multiply(c, h, zero)));
	h->c = tree_buffer(c->t, SPACE_SCRATCH, "pc", c->p->acc, sums_room(h, h->mc));
	h->c_at = zero;
	/* A list of K may be empty, and then has no last block. */
	h->by_panel = h->strip == h->nc && !c->k.compact && !block_stores_down(c);
	Stmt *sums = multiply(c, h, zero);
	sums = h->by_panel ? sums : stmt_seq(sums, store_block(c, h, h->mc));
	return at_each(c, at, with_tables(c, sums));
}

/* What parts need that are made for all of them at once: padded copies, transposed ones, shared
 * panels; a phase of their own. */
static void copies_phases(Contract *c, Blocking *h)
{
	for (int k = 0; k < c->npadded; k++) {
		Node *part = tree_axis(c->t, padded_copy_parts(&c->padded[k]));
		phase_section(c->t, part, padded_copy_fill(c, &c->padded[k], part));
	}
	for (int k = 0; k < c->ntransposed; k++) {
		Node *part = tree_axis(c->t, transposed_copy_parts(&c->transposed[k]));
		phase_section(c->t, part, transposed_copy_fill(c, &c->transposed[k], part));
	}
	for (int b = 0; b < 2; b++)
		if (b ? h->b_shared : h->a_shared) {
			Node *part = tree_axis(c->t, shared_blocks(c, h, b));
			phase_section(c->t, part, shared_part(c, h, b, part));
		}
	phase_end(c->t);
}

/* Blocks of main's first dimension, in the order of the parts. */
static int64_t row_blocks(Contract *c, const Blocking *h)
{
	const Problem *p = c->p;
	Node *first = p->axis[0];
	if (affine_stride(c->ir, p->index, first) * axis_extent(first) != p->main_size)
		return 0;
	if (c->batch.naxis)
		return c->batch.axis[0] == first && contract_close(c) < c->batch.extent
			       ? axis_extent(first)
			       : 0;
	if (c->m.naxis && c->m.axis[0] == first)
		return h->nmc;
	return c->n.naxis && c->n.axis[0] == first && h->nmc == 1 ? h->nnc : 0;
}

static void whole_phase(Contract *c, Blocking *h)
{
	c->t->shape.blocks = row_blocks(c, h);
	Node *part = tree_axis(c->t, results_parts(c, h));
	phase_section(c->t, part, whole_part(c, h, part));
}

/* ---- K in pieces ---- */

/* The sums over one piece of K, each part's at its own place in h->c. */
static Stmt *piece_part(Contract *c, Blocking *h, Node *part)
{
	Ir *ir = c->ir;
	int64_t blocks = h->nmc * h->nnc;
	Node *mn = node_floormod(ir, part, blocks), *piece = node_floordiv(ir, part, blocks);
	set_block(c, h, node_floordiv(ir, piece, h->pieces), node_floordiv(ir, mn, h->nnc),
		  node_floormod(ir, mn, h->nnc));
	h->c_at = node_scale(ir, part, h->mc * h->c_row);
	return with_tables(c, multiply(c, h, node_floormod(ir, piece, h->pieces)));
}

/* A few rows of a block, added up in the order of K and stored. */
static Stmt *sum_part(Contract *c, Blocking *h, int64_t height, Node *part)
{
	Ir *ir = c->ir;
	int64_t per_block = (h->mc + height - 1) / height, size = h->mc * h->c_row;
	Node *slice = node_floormod(ir, part, per_block),
	     *block = node_floordiv(ir, part, per_block);
	Node *top = node_scale(ir, slice, height);
	Node *rows = node2(c->ir, OP_MIN, contract_int(c, height),
			   node_sub(ir, contract_int(c, h->mc), top));
	Place at = place_of(c, h, block);
	block_set(c, h, at.point, at.m, at.n, top, rows);
	Node *sum = tree_buffer(c->t, SPACE_SCRATCH, "pc", c->p->acc, sums_room(h, height));
	Node *from = node_add(ir, node_scale(ir, at.point, h->pieces * h->nmc * h->nnc),
			      node_add(ir, node_scale(ir, at.m, h->nnc), at.n));
	from = node_add(ir, node_scale(ir, from, size), node_scale(ir, top, h->c_row));
	CallArg arg[] = {{sum, contract_int(c, 0)},
			 {h->c, from},
			 {NULL, contract_int(c, h->pieces)},
			 {NULL, contract_int(c, h->nmc * h->nnc * size)},
			 {NULL, node_scale(ir, rows, h->c_row)}};
	const char *name = arena_printf(&ir->arena, "ricci_add_%s", type_name(c->p->acc));
	Stmt *add = stmt_call(c->t, name, COUNT(arg), arg);
	h->c = sum;
	h->c_at = contract_int(c, 0);
	return at_each(c, at, with_tables(c, stmt_seq(add, store_block(c, h, height))));
}

/* Places of packed rows of B, once a call. */
static Stmt *fill_sequence(Contract *c, const Blocking *h)
{
	if (!h->seq)
		return NULL;
	Node *k = tree_axis(c->t, h->kc);
	return stmt_loop(c->t, HOW_SERIAL, k, NULL, NULL,
			 stmt_store(c->t, h->seq, k, node_scale(c->ir, k, c->micro->nr), RED_NONE));
}

/* A phase that sums over the pieces of K, and one that adds them up. */
static void pieces_phases(Contract *c, Blocking *h)
{
	Tree *t = c->t;
	int64_t blocks = c->batch.extent * h->nmc * h->nnc;
	int64_t slices = (WANTED_SLICES + blocks - 1) / blocks;
	int64_t height = (h->mc + slices - 1) / slices;
	Node *piece = tree_axis(t, blocks * h->pieces);
	Node *slice = tree_axis(t, results_parts(c, h) * ((h->mc + height - 1) / height));
	h->c = tree_buffer(t, SPACE_SHARED, "sums", c->p->acc,
			   blocks * h->pieces * h->mc * h->c_row);
	phase_section(t, piece, piece_part(c, h, piece));
	phase_end(t);
	phase_section(t, slice, sum_part(c, h, height, slice));
}

static bool takes_one_phase(const Contract *c, const Blocking *h)
{
	return !contract_copies(c) && !h->a_shared && !h->b_shared && h->pieces == 1;
}

static const char *not_found(int way)
{
	return way >= TENSORISE_WAYS	    ? "groups of warps are a GPU's"
	       : way & TENSORISE_TRANSPOSED ? "transposed copies are for operands that are "
					      "plain reads without "
					      "conditions, with lanes apart in memory"
	       : way & TENSORISE_PADDED
		       ? "padded copies are for operands that one read tells, under "
			 "conditions on its indices"
	       : way & TENSORISE_NARROW
		       ? "narrow panels need operands of 8 or 16 bits that this "
			 "processor "
			 "multiplies"
		       : "tensorise needs a sum of products whose operands share reduced "
			 "indices and each have indices of their own";
}

/* Reads p as a contraction in blocks, and makes their buffers. */
static int contract_open(Contract *c, Blocking *h, Problem *p, const Schedule *s,
			 const Target *target, Error *err)
{
	const ScheduleStep *step = schedule_find(s, STEP_TENSORISE);
	int way = step ? (int)step->arg : 0;
	if (!contract_find(c, p, target, way))
		return schedule_misfit(err, "%s", not_found(way));
	if (way & TENSORISE_NARROW && !contract_packs(c))
		return schedule_misfit(err,
				       "narrow panels need operands that are plain reads under "
				       "affine conditions");
	if (read_steps(s, c, h, target, err) || check(c, h, err))
		return err->code;
	h->b_lies = contract_lies(c);
	h->unpacked_b &= !h->b_lies;
	h->b_shared &= !h->b_lies;
	set_groups(c, h);
	panel_buffers(c, h);
	/* What is listed of K is not, whatever all of it is. */
	h->a_follows = h->unpacked_a && !c->k.compact && !h->skips &&
		       contract_run(c, &c->k, contract_read(&c->a)->src[1], 1) == c->k.extent;
	return 0;
}

/* What is filled once for all parts that a thread takes. */
static Stmt *before_parts(Contract *c, const Blocking *h)
{
	Stmt *before = stmt_seq(contract_fill(c, NULL), fill_sequence(c, h));
	return h->skips ? stmt_seq(before, zero_blocks_begin(c, &h->zeros)) : before;
}

int contract_piece(Problem *p, const Schedule *s, const Target *target, Piece *out, Error *err)
{
	Contract *c = arena_alloc(&p->ir->arena, sizeof *c);
	Blocking h = {0};
	if (contract_open(c, &h, p, s, target, err))
		return err->code;
	if (!takes_one_phase(c, &h))
		return schedule_misfit(err, "a piece of a tree has no phases: no copies, no shared "
					    "panels, K in one piece");
	Node *part = tree_axis(c->t, results_parts(c, &h));
	Stmt *body = stmt_loop(c->t, HOW_SERIAL, part, NULL, NULL, whole_part(c, &h, part));
	*out = (Piece){.before = before_parts(c, &h), .body = body};
	return error_set(err, p->ir->err.code, "%s", p->ir->err.text);
}

int lower_contract(Problem *p, const Schedule *s, const Target *target, const Capabilities *caps,
		   Error *err)
{
	Ir *ir = p->ir;
	Contract *c = arena_alloc(&ir->arena, sizeof *c);
	Blocking h = {0};
	if (contract_open(c, &h, p, s, target, err))
		return err->code;
	if (caps->prefetches)
		h.fetches = fetches_find(c, target);
	copies_phases(c, &h);
	(h.pieces > 1 ? pieces_phases : whole_phase)(c, &h);
	if (ir->err.code)
		return error_set(err, ir->err.code, "%s", ir->err.text);
	phases_finish(p->tree, before_parts(c, &h), NULL);
	return error_set(err, ir->err.code, "%s", ir->err.text);
}
