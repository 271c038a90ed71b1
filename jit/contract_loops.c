/* contract_loops.c - the loops of a contraction around a micro-kernel.
 *
 *	for each part (batch point, M block, N block):
 *		for each K block: pack A's panels; for each strip of B: pack its panels, run them
 *			against A's
 *		store C through the members, where tiles are not stored straight
 *
 * A that is a plain read may stay where it lies. Where blocks are few and K is long, parts are
 * pieces of K too: they leave their sums in shared memory, and a second phase adds them up in the
 * order of K and stores. */
#include "jit/contract.h"

enum { WANTED_SLICES = 8, MOST_WHOLE = 1 << 15 };
static const double MOST_SPREAD = 1 << 25; /* elements of all pieces' sums */

typedef struct Shape {
	int64_t mb, nb, kb, strip, nmb, nnb, nkb;
	int64_t pieces, per_piece; /* of K's blocks: pieces that run in parallel */
	bool in_place;		   /* A is read where it lies */
	bool b_in_place;	   /* and B's panels that lie in lines */
	Node *a, *b, *c;	   /* buffers: A's panels, a strip of B's, the block of C */
	Node *panels, *seq;	   /* where the strip's panels lie; places of packed rows */
	Node *c_at;		   /* where the block begins in c, */
	int64_t c_row;		   /* and from row to row */
	Node *rows, *cols, *depth; /* of this block */
	Node *blocks;		   /* of K, in this part; NULL: per_piece */
} Shape;

/* ---- one block ---- */

/* The micro-kernel at panel ip of A and panel jp of the strip that begins at column `from`. */
static Stmt *multiply_tile(Contract *c, const Shape *h, Node *ip, Node *from, Node *jp, Node *add)
{
	Ir *ir = c->ir;
	int64_t mr = c->micro->mr, nr = c->micro->nr;
	Node *i = node_scale(ir, ip, mr), *j = node_add(ir, from, node_scale(ir, jp, nr));
	Node *rows = contract_least(c, contract_int(c, mr), node_sub(ir, h->rows, i));
	Node *cols = contract_least(c, contract_int(c, nr), node_sub(ir, h->cols, j));
	Node *b_at = node_scale(ir, jp, nr * h->kb);
	Node *c_at = node_add(ir, h->c_at, node_add(ir, node_scale(ir, i, h->c_row), j));
	CallArg arg[10] = {{NULL, rows}, {NULL, cols}, {NULL, h->depth}};
	int n = 3;
	if (h->in_place) {
		Node *es, *ek, *base;
		if (!contract_split(c, c->a.value->src[1], &c->m, &c->k, &es, &ek, &base))
			return NULL;
		Table *ts = contract_table(c, &c->m, 1, &es),
		      *tk = contract_table(c, &c->k, 1, &ek);
		if (!ts || !tk)
			return NULL;
		arg[n++] = (CallArg){c->a.value->src[0], base};
		arg[n++] = (CallArg){ts->buffer, table_index(c, ts, i)};
		arg[n++] = (CallArg){tk->buffer, table_index(c, tk, contract_int(c, 0))};
	} else {
		arg[n++] = (CallArg){h->a, node_scale(ir, ip, mr * h->kb)};
	}
	arg[n++] =
		h->b_in_place ? (CallArg){h->panels, node_scale(ir, jp, 2)} : (CallArg){h->b, b_at};
	arg[n++] = (CallArg){h->c, c_at};
	arg[n++] = (CallArg){NULL, contract_int(c, h->c_row)};
	arg[n++] = (CallArg){NULL, add};
	return stmt_call(c->t,
			 h->b_in_place ? c->micro->both_symbol
			 : h->in_place ? c->micro->placed_symbol
				       : c->micro->symbol,
			 n, arg);
}

/* Number of panels of `size` in e elements. */
static Node *panels(Contract *c, Node *e, int64_t size)
{
	return node_floordiv(c->ir, node_add(c->ir, e, contract_int(c, size - 1)), size);
}

static Stmt *multiply_block(Contract *c, const Shape *h, Node *add)
{
	Ir *ir = c->ir;
	int64_t mr = c->micro->mr, nr = c->micro->nr;
	Node *ip = tree_axis(c->t, h->mb / mr), *jp = tree_axis(c->t, h->strip / nr);
	Node *js = tree_axis(c->t, (h->nb + h->strip - 1) / h->strip);
	Node *mp = panels(c, h->rows, mr), *from = node_scale(ir, js, h->strip);
	Node *np = panels(
		c, contract_least(c, contract_int(c, h->strip), node_sub(ir, h->cols, from)), nr);
	Stmt *pack_a = NULL;
	if (!h->in_place)
		pack_a = stmt_loop(c->t, HOW_SERIAL, ip, NULL, mp,
				   contract_pack(c, &c->a, &c->m, h->a, ip,
						 node_scale(ir, ip, mr * h->kb), mr, h->rows,
						 h->depth, NULL));
	Node *panel = node_add(ir, node_scale(ir, js, h->strip / nr), jp);
	Lying lying = {h->panels, node_scale(ir, jp, 2), h->seq};
	Stmt *pack_b = stmt_loop(c->t, HOW_SERIAL, jp, NULL, np,
				 contract_pack(c, &c->b, &c->n, h->b, panel,
					       node_scale(ir, jp, nr * h->kb), nr, h->cols,
					       h->depth, h->b_in_place ? &lying : NULL));
	Stmt *run =
		stmt_loop(c->t, HOW_SERIAL, jp, NULL, np, multiply_tile(c, h, ip, from, jp, add));
	run = stmt_loop(c->t, HOW_SERIAL, ip, NULL, mp, run);
	return stmt_seq(pack_a, stmt_loop(c->t, HOW_SERIAL, js, NULL, panels(c, h->cols, h->strip),
					  stmt_seq(pack_b, run)));
}

static Stmt *store_plain(Contract *c, const Shape *h)
{
	Problem *p = c->p;
	Node *em, *en, *base;
	if (p->nout != 1 || p->out_value[0] != p->result || p->acc != p->type ||
	    !contract_split(c, p->out_index[0], &c->m, &c->n, &em, &en, &base))
		return NULL;
	Table *tm = contract_table(c, &c->m, 1, &em), *tn = contract_table(c, &c->n, 1, &en);
	if (!tm || !tn)
		return NULL;
	Node *zero = contract_int(c, 0);
	CallArg arg[] = {{h->c, h->c_at},
			 {NULL, contract_int(c, h->nb)},
			 {p->out[0], base},
			 {tm->buffer, table_index(c, tm, zero)},
			 {tn->buffer, table_index(c, tn, zero)},
			 {NULL, h->rows},
			 {NULL, h->cols}};
	return stmt_call(c->t, contract_moves_f64(c) ? "ricci_unpack_f64" : "ricci_unpack_f32",
			 COUNT(arg), arg);
}

static Stmt *store_block(Contract *c, const Shape *h)
{
	Ir *ir = c->ir;
	Problem *p = c->p;
	Stmt *plain = store_plain(c, h), *body = NULL;
	if (plain)
		return plain;
	Node *i = tree_axis(c->t, h->mb), *j = tree_axis(c->t, h->nb);
	Node *result = buffer_read(c->t, h->c, node_add(ir, node_scale(ir, i, h->nb), j));
	result = problem_narrow(p, result);
	/* Elements past the end are not visited: a single axis needs no table. */
	c->m.direct = c->m.naxis == 1;
	c->n.direct = c->n.naxis == 1;
	Point point = {2, {&c->m, &c->n}, {i, j}};
	for (int k = 0; k < p->nout; k++) {
		Node *value = contract_tabulate(c, p->out_value[k], &point);
		value = node_replace(ir, value, 1, &p->result, &result);
		body = stmt_seq(body, stmt_store(c->t, p->out[k],
						 contract_tabulate(c, p->out_index[k], &point),
						 value, RED_NONE));
	}
	c->m.direct = c->n.direct = false;
	return stmt_loop(c->t, HOW_SERIAL, i, NULL, h->rows,
			 stmt_loop(c->t, HOW_VECTOR, j, NULL, h->cols, body));
}

/* ---- the whole ---- */

static int read_steps(const Schedule *s, Contract *c, Shape *h, Error *err)
{
	int64_t *block[4] = {&h->mb, &h->nb, &h->kb, &h->strip};
	const int64_t unit[4] = {c->micro->mr, c->micro->nr, contract_group(c), c->micro->nr};
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
		else if (step->kind == STEP_SPREAD && step->arg >= 1)
			h->pieces = step->arg;
		else if (step->kind == STEP_IN_PLACE)
			h->in_place = step->arg > 0, h->b_in_place = step->arg > 1;
		else if (step->kind != STEP_TENSORISE)
			return error_set(err, RICCI_EINVAL,
					 "schedule: step %d does not fit a tensorised contraction",
					 k + 1);
	}
	for (int k = 0; k < 4; k++) {
		int64_t most = (extent[k] + unit[k] - 1) / unit[k] * unit[k];
		*block[k] = (*block[k] + unit[k] - 1) / unit[k] * unit[k];
		*block[k] = *block[k] < most ? *block[k] : most;
	}
	h->strip = h->strip < h->nb ? h->strip : h->nb;
	h->nmb = (c->m.extent + h->mb - 1) / h->mb;
	h->nnb = (c->n.extent + h->nb - 1) / h->nb;
	h->nkb = (c->k.extent + h->kb - 1) / h->kb;
	if (h->in_place && !contract_in_place(c, false))
		return error_set(err, RICCI_EINVAL,
				 "schedule: the first factor can't be read in place, only a plain "
				 "read of the sum's type without conditions can");
	if (h->b_in_place && !contract_in_place(c, true))
		return error_set(err, RICCI_EINVAL,
				 "schedule: the second factor can't be read in place, only a plain "
				 "read of the sum's type under affine conditions can");
	return 0;
}

/* Pieces of K have equal numbers of blocks; what all would write must not become too much. */
static int spread(const Contract *c, Shape *h, Error *err)
{
	h->pieces = c->k.compact ? 1 : h->pieces < h->nkb ? h->pieces : h->nkb;
	h->per_piece = (h->nkb + h->pieces - 1) / h->pieces;
	h->pieces = (h->nkb + h->per_piece - 1) / h->per_piece;
	if (h->pieces > 1 && (double)h->pieces * (double)c->batch.extent *
					     (double)(h->nmb * h->mb) * (double)(h->nnb * h->nb) >
				     MOST_SPREAD)
		return error_set(err, RICCI_EINVAL,
				 "schedule: the sums of %lld pieces of K are too large",
				 (long long)h->pieces);
	return 0;
}

/* This part is of block (m, n) at a point of the batch; m: its first row. */
static void set_block(Contract *c, Shape *h, Node *point, Node *m, Node *rows, Node *n)
{
	Ir *ir = c->ir;
	c->m.origin = m;
	c->n.origin = node_scale(ir, n, h->nb);
	h->rows = contract_least(c, rows, node_sub(ir, contract_int(c, c->m.extent), c->m.origin));
	h->cols = contract_least(c, contract_int(c, h->nb),
				 node_sub(ir, contract_int(c, c->n.extent), c->n.origin));
	int64_t below = c->batch.extent;
	for (int k = 0; k < c->batch.naxis; k++) {
		below /= axis_extent(c->batch.axis[k]);
		c->batch_value[k] = node_floormod(ir, node_floordiv(ir, point, below),
						  axis_extent(c->batch.axis[k]));
	}
}

/* Tables of a whole side are filled for each range of parts that a thread takes, those of a block
 * in each part, with divisions. */
static void set_sides(Contract *c, const Shape *h)
{
	Side *side[3] = {&c->m, &c->n, &c->k};
	int64_t block[3] = {h->mb, h->nb, h->kb};
	int64_t times[3] = {h->nnb * h->pieces, h->nmb * h->pieces, h->nmb * h->nnb};
	for (int k = 0; k < 3; k++) {
		side[k]->block = block[k];
		side[k]->whole = side[k]->compact || /* listed once, whatever the blocks */
				 (side[k]->extent <= MOST_WHOLE &&
				  (side[k]->extent <= 256 || times[k] * c->batch.extent >= 5));
	}
}

/* The sums of a block over this part's share of K, in h->c. */
static Stmt *multiply(Contract *c, Shape *h, Node *piece)
{
	Ir *ir = c->ir;
	Type t = c->p->acc;
	Node *kb = tree_axis(c->t, h->per_piece);
	Node *k_block = node_add(ir, node_scale(ir, piece, h->per_piece), kb);
	c->k.origin = node_scale(ir, k_block, h->kb);
	h->depth = contract_least(c, contract_int(c, h->kb),
				  node_sub(ir, contract_int(c, c->k.extent), c->k.origin));
	if (h->pieces > 1)
		h->blocks = contract_least(
			c, contract_int(c, h->per_piece),
			node_sub(ir, contract_int(c, h->nkb), node_scale(ir, piece, h->per_piece)));
	if (c->k.compact) {
		c->count = tree_buffer(c->t, SPACE_LOCAL, "count", RICCI_I64, 1);
		Node *count = buffer_read(c->t, c->count, contract_int(c, 0));
		h->depth =
			node2(ir, OP_MIN, contract_int(c, h->kb), node_sub(ir, count, c->k.origin));
		h->blocks =
			node_floordiv(ir, node_add(ir, count, contract_int(c, h->kb - 1)), h->kb);
	}
	if (!h->in_place)
		h->a = tree_buffer(c->t, SPACE_SCRATCH, "pa", c->micro->a.held,
				   h->mb * h->kb + PACK_SLACK);
	h->b = tree_buffer(c->t, SPACE_SCRATCH, "pb", c->micro->b.held,
			   h->strip * h->kb + PACK_SLACK);
	if (h->b_in_place) {
		h->panels = tree_buffer(c->t, SPACE_SCRATCH, "lie", RICCI_I64,
					2 * (h->strip / c->micro->nr));
		h->seq = tree_buffer(c->t, SPACE_TABLE, "seq", RICCI_I64, h->kb);
	}
	if (ir->err.code)
		return NULL;
	/* The first block of K stores, the others add; where K is a list, there may be none. */
	Node *add = c->k.compact ? contract_int(c, 1) : node2(ir, OP_MIN, kb, contract_int(c, 1));
	Stmt *block = multiply_block(c, h, add);
	Stmt *loop = stmt_loop(c->t, HOW_SERIAL, kb, NULL, h->blocks,
			       stmt_seq(contract_fill(c, &c->k), block));
	loop->maybe = c->k.compact;
	if (c->k.compact) {
		CallArg zero[] = {{h->c, h->c_at},
				  {NULL, contract_int(c, h->mb * h->nb * (int64_t)type_size(t))}};
		loop = stmt_seq(contract_choose(c), loop);
		loop = stmt_seq(stmt_call(c->t, "ricci_zero", COUNT(zero), zero), loop);
	}
	return stmt_seq(c->setup, loop);
}

/* What this part's statements read of tables, then they. */
static Stmt *with_tables(Contract *c, Stmt *body)
{
	return stmt_seq(stmt_seq(contract_fill(c, &c->m), contract_fill(c, &c->n)), body);
}

/* Can tiles be stored where they belong? What is stored must be the sums as they are, all of K in
 * one block, and whole panels in lines of N. Then h->c is the result. */
static bool stores_straight(Contract *c, Shape *h)
{
	const Problem *p = c->p;
	Node *em, *en, *base;
	if (h->nkb > 1 || c->k.compact || p->nout != 1 || p->out_value[0] != p->result ||
	    p->acc != p->type || c->n.extent % c->micro->nr || c->m.extent % 2 ||
	    contract_step(c, &c->n, p->out_index[0]) != 1 ||
	    !contract_split(c, p->out_index[0], &c->m, &c->n, &em, &en, &base))
		return false;
	h->c_row = contract_step(c, &c->m, p->out_index[0]);
	h->c = p->out[0];
	h->c_at = node_add(c->ir, node_scale(c->ir, c->m.origin, h->c_row), c->n.origin);
	h->c_at = node_add(c->ir, h->c_at, base);
	return h->c_row > 0;
}

/* Part number `part` of a sum over all of K: its block is stored at once. */
static Stmt *whole_part(Contract *c, Shape *h, Node *part)
{
	Ir *ir = c->ir;
	Node *block = node_floormod(ir, part, h->nmb * h->nnb);
	Node *m = node_scale(ir, node_floordiv(ir, block, h->nnb), h->mb);
	set_block(c, h, node_floordiv(ir, part, h->nmb * h->nnb), m, contract_int(c, h->mb),
		  node_floormod(ir, block, h->nnb));
	if (stores_straight(c, h))
		return with_tables(c, multiply(c, h, contract_int(c, 0)));
	h->c = tree_buffer(c->t, SPACE_SCRATCH, "pc", c->p->acc, h->mb * h->nb);
	h->c_at = contract_int(c, 0);
	h->c_row = h->nb;
	Stmt *sums = multiply(c, h, contract_int(c, 0));
	return with_tables(c, stmt_seq(sums, store_block(c, h)));
}

/* First phase: the sums over one piece of K, each part's at its own place in h->c. */
static Stmt *piece_part(Contract *c, Shape *h, Node *part)
{
	Ir *ir = c->ir;
	int64_t blocks = h->nmb * h->nnb;
	Node *block = node_floormod(ir, part, blocks), *piece = node_floordiv(ir, part, blocks);
	set_block(c, h, node_floordiv(ir, piece, h->pieces),
		  node_scale(ir, node_floordiv(ir, block, h->nnb), h->mb), contract_int(c, h->mb),
		  node_floormod(ir, block, h->nnb));
	h->c_at = node_scale(ir, part, h->mb * h->nb);
	h->c_row = h->nb;
	return with_tables(c, multiply(c, h, node_floormod(ir, piece, h->pieces)));
}

/* Second phase: a few rows of a block, added up in the order of K and stored. */
static Stmt *sum_part(Contract *c, Shape *h, int64_t height, Node *part)
{
	Ir *ir = c->ir;
	int64_t per_block = (h->mb + height - 1) / height, size = h->mb * h->nb;
	Node *slice = node_floormod(ir, part, per_block),
	     *block = node_floordiv(ir, part, per_block);
	Node *point = node_floordiv(ir, block, h->nmb * h->nnb);
	Node *mn = node_floormod(ir, block, h->nmb * h->nnb), *top = node_scale(ir, slice, height);
	Node *m = node_scale(ir, node_floordiv(ir, mn, h->nnb), h->mb);
	Node *rows = contract_least(c, contract_int(c, height),
				    node_sub(ir, contract_int(c, h->mb), top));
	set_block(c, h, point, node_add(ir, m, top), rows, node_floormod(ir, mn, h->nnb));
	Node *sum = tree_buffer(c->t, SPACE_SCRATCH, "pc", c->p->acc, height * h->nb);
	Node *from = node_add(ir, node_scale(ir, point, h->pieces * h->nmb * h->nnb), mn);
	from = node_add(ir, node_scale(ir, from, size), node_scale(ir, top, h->nb));
	CallArg arg[] = {{sum, contract_int(c, 0)},
			 {h->c, from},
			 {NULL, contract_int(c, h->pieces)},
			 {NULL, contract_int(c, h->nmb * h->nnb * size)},
			 {NULL, node_scale(ir, rows, h->nb)}};
	const char *name = arena_printf(&ir->arena, "ricci_add_%s", type_name(c->p->acc));
	Stmt *add = stmt_call(c->t, name, COUNT(arg), arg);
	h->c = sum;
	h->c_at = contract_int(c, 0);
	return with_tables(c, stmt_seq(add, store_block(c, h)));
}

/* Places of packed rows of B, once a call. */
static Stmt *fill_sequence(Contract *c, const Shape *h)
{
	if (!h->b_in_place)
		return NULL;
	Node *k = tree_axis(c->t, h->kb);
	return stmt_loop(c->t, HOW_SERIAL, k, NULL, NULL,
			 stmt_store(c->t, h->seq, k, node_scale(c->ir, k, c->micro->nr), RED_NONE));
}

/* Both phases; sets how many parts there are. */
static Stmt *spread_parts(Contract *c, Shape *h, Node **part)
{
	Ir *ir = c->ir;
	Tree *t = c->t;
	int64_t blocks = c->batch.extent * h->nmb * h->nnb, first = blocks * h->pieces;
	int64_t slices = (WANTED_SLICES + blocks - 1) / blocks;
	int64_t height = (h->mb + slices - 1) / slices;
	int64_t second = blocks * ((h->mb + height - 1) / height);
	t->parts = first + second;
	t->first = first;
	*part = tree_axis(t, t->parts);
	h->c = tree_buffer(t, SPACE_SHARED, "sums", c->p->acc, first * h->mb * h->nb);
	/* The remainders say to the bounds what the condition says. */
	Stmt *piece = piece_part(c, h, node_floormod(ir, *part, first));
	Stmt *sum =
		sum_part(c, h, height,
			 node_floormod(ir, node_sub(ir, *part, contract_int(c, first)), second));
	return stmt_if(t, node2(ir, OP_LT, *part, contract_int(c, first)), piece, sum);
}

int lower_contract(Problem *p, const Schedule *s, const Target *target, const Dialect *d,
		   Error *err)
{
	Ir *ir = p->ir;
	Contract *c = arena_alloc(&ir->arena, sizeof *c);
	Shape h = {0};
	int way = 0;
	(void)d;
	for (int k = 0; k < s->n; k++)
		if (s->step[k].kind == STEP_TENSORISE)
			way = (int)s->step[k].arg;
	if (!contract_find(c, p, target, way))
		return error_set(err, RICCI_EINVAL,
				 way & CONTRACT_NARROW
					 ? "schedule: narrow panels need factors of 8 or 16 bits "
					   "that this processor multiplies"
					 : "schedule: tensorise needs a sum of products whose "
					   "factors share reduced indices and each have indices of "
					   "their own");
	if (way & CONTRACT_NARROW && !contract_packs(c))
		return error_set(err, RICCI_EINVAL,
				 "schedule: narrow panels need factors that are plain reads under "
				 "affine conditions");
	if (read_steps(s, c, &h, err) || spread(c, &h, err))
		return err->code;
	set_sides(c, &h);
	Tree *t = p->tree;
	Node *part;
	Stmt *body;
	if (h.pieces > 1) {
		body = spread_parts(c, &h, &part);
	} else {
		t->parts = c->batch.extent * h.nmb * h.nnb;
		part = tree_axis(t, t->parts);
		body = whole_part(c, &h, part);
	}
	if (ir->err.code)
		return error_set(err, ir->err.code, "%s", ir->err.text);
	t->root = stmt_seq(stmt_seq(contract_fill(c, NULL), fill_sequence(c, &h)),
			   stmt_loop(t, HOW_PARALLEL, part, NULL, NULL, body));
	return error_set(err, ir->err.code, "%s", ir->err.text);
}
