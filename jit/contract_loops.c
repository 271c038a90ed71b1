/* contract_loops.c - the loops of a contraction around a micro-kernel.
 *
 *	for each part (batch point, M block, N block):
 *		C = 0
 *		for each K block: pack A's panels; for each panel of B: pack it, run it against A's
 *		store C through the members
 *
 * Packing evaluates a factor through its index functions, so that nothing is ever unfolded in
 * memory. Plain reads, also under affine conditions, are packed by functions compiled ahead
 * (contract_pack.c); other factors by generated loops. */
#include "jit/contract.h"

typedef struct Shape {
	int64_t mb, nb, kb, nmb, nnb, nkb;
	Node *a, *b, *c;	   /* buffers: A's panels, one panel of B, the block of C */
	Node *rows, *cols, *depth; /* of this block */
	Node *blocks;		   /* of K; NULL: nkb */
} Shape;

static Node *num(Contract *c, int64_t v)
{
	return node_int(c->ir, v);
}

static Node *least(Contract *c, Node *a, Node *b)
{
	return a->hi <= b->lo ? a : b->hi <= a->lo ? b : node2(c->ir, OP_MIN, a, b);
}

/* ---- packing ---- */

/* cond as e >= 0, one or two of them; 0 when it is none such. */
static int as_inequalities(Contract *c, Node *g, Node *e[2])
{
	Ir *ir = c->ir;
	if (g->nsrc != 2 || g->src[0]->type != RICCI_I64)
		return 0;
	Node *d = node_sub(ir, g->src[1], g->src[0]);
	e[0] = g->op == OP_LT ? node_sub(ir, d, num(c, 1)) : d;
	e[1] = node_scale(ir, d, -1);
	return g->op == OP_LT || g->op == OP_LE ? 1 : g->op == OP_EQ ? 2 : 0;
}

/* A plain read under affine conditions: one call of a packing function for a panel. */
static Stmt *pack_read(Contract *c, const Factor *f, Side *s, Node *dst, Node *at, Node *panel,
		       int64_t lanes, Node *depth)
{
	Node *read = f->value, *row_s[CONTRACT_MAX_GUARDS + 1], *row_k[CONTRACT_MAX_GUARDS + 1];
	Node *rest[CONTRACT_MAX_GUARDS + 1], *base;
	int n = 1;
	if (read->op != OP_READ || read->type != c->p->acc ||
	    !contract_split(c, read->src[1], s, &c->k, &row_s[0], &row_k[0], &base))
		return NULL;
	for (int g = 0; g < f->nguard; g++) {
		Node *e[2];
		int count = as_inequalities(c, f->guard[g], e);
		if (count == 0 || n + count > CONTRACT_MAX_GUARDS)
			return NULL;
		for (int k = 0; k < count; k++, n++) {
			if (!contract_split(c, e[k], s, &c->k, &row_s[n], &row_k[n], &rest[n - 1]))
				return NULL;
		}
	}
	Table *ts = contract_table(c, s, n, row_s), *tk = contract_table(c, &c->k, n, row_k);
	if (!ts || !tk)
		return NULL;
	Node *zero = num(c, 0), *more = tree_buffer(c->t, SPACE_SCRATCH, "rest", RICCI_I64, n);
	if (!more)
		return NULL;
	for (int r = 0; r + 1 < n; r++) /* what the conditions owe to the batch: once a part */
		c->setup = stmt_seq(c->setup, stmt_store(c->t, more, num(c, r), rest[r], RED_NONE));
	CallArg arg[] = {{read->src[0], base},
			 {dst, panel},
			 {ts->buffer, table_index(c, ts, at)},
			 {NULL, num(c, ts->stride)},
			 {tk->buffer, table_index(c, tk, zero)},
			 {NULL, num(c, tk->stride)},
			 {NULL, num(c, n - 1)},
			 {more, zero},
			 {NULL, num(c, lanes)},
			 {NULL, depth}};
	return stmt_call(c->t, read->type == RICCI_F64 ? "ricci_pack_f64" : "ricci_pack_f32",
			 COUNT(arg), arg);
}

static Stmt *pack_expression(Contract *c, const Factor *f, Side *s, Node *dst, Node *at,
			     Node *panel, int64_t lanes, Node *depth)
{
	Ir *ir = c->ir;
	Node *l = tree_axis(c->t, lanes), *k = tree_axis(c->t, c->k.block), *cond = NULL;
	Point point = {2, {s, &c->k}, {node_add(ir, at, l), k}};
	for (int g = 0; g < f->nguard; g++)
		cond = cond ? node2(ir, OP_AND, cond, f->guard[g]) : f->guard[g];
	Node *value = f->value;
	if (cond)
		value = node_select(ir, cond, value, node_const(ir, value->type, 0));
	value = contract_tabulate(c, value, &point);
	if (value->type != c->p->acc)
		value = node_cast(ir, c->p->acc, value);
	Node *place = node_add(ir, panel, node_add(ir, node_scale(ir, k, lanes), l));
	Stmt *body = stmt_loop(c->t, HOW_VECTOR, l, NULL, NULL,
			       stmt_store(c->t, dst, place, value, RED_NONE));
	return stmt_loop(c->t, HOW_SERIAL, k, NULL, depth, body);
}

/* Fills panel number `panel` (of `lanes` elements of s) of dst. */
static Stmt *pack(Contract *c, const Factor *f, Side *s, Node *dst, Node *number, Node *place,
		  int64_t lanes, Node *depth)
{
	Node *at = node_scale(c->ir, number, lanes);
	Stmt *call = pack_read(c, f, s, dst, at, place, lanes, depth);
	return call ? call : pack_expression(c, f, s, dst, at, place, lanes, depth);
}

/* ---- one block ---- */

static Stmt *multiply_block(Contract *c, const Shape *h)
{
	Ir *ir = c->ir;
	int64_t mr = c->micro->mr, nr = c->micro->nr;
	Node *ip = tree_axis(c->t, h->mb / mr), *jp = tree_axis(c->t, h->nb / nr);
	Node *mp = node_floordiv(ir, node_add(ir, h->rows, num(c, mr - 1)), mr);
	Node *np = node_floordiv(ir, node_add(ir, h->cols, num(c, nr - 1)), nr);
	Node *zero = num(c, 0), *a_at = node_scale(ir, ip, mr * h->kb);
	Node *c_at = node_add(ir, node_scale(ir, ip, mr * h->nb), node_scale(ir, jp, nr));
	Stmt *pack_a = stmt_loop(c->t, HOW_SERIAL, ip, NULL, mp,
				 pack(c, &c->a, &c->m, h->a, ip, a_at, mr, h->depth));
	CallArg arg[] = {
		{NULL, h->depth}, {h->a, a_at}, {h->b, zero}, {h->c, c_at}, {NULL, num(c, h->nb)}};
	Stmt *run = stmt_loop(c->t, HOW_SERIAL, ip, NULL, mp,
			      stmt_call(c->t, c->micro->symbol, COUNT(arg), arg));
	Stmt *panel = stmt_seq(pack(c, &c->b, &c->n, h->b, jp, zero, nr, h->depth), run);
	return stmt_seq(pack_a, stmt_loop(c->t, HOW_SERIAL, jp, NULL, np, panel));
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
	Node *zero = num(c, 0);
	CallArg arg[] = {{h->c, zero},
			 {NULL, num(c, h->nb)},
			 {p->out[0], base},
			 {tm->buffer, table_index(c, tm, zero)},
			 {tn->buffer, table_index(c, tn, zero)},
			 {NULL, h->rows},
			 {NULL, h->cols}};
	return stmt_call(c->t, p->acc == RICCI_F64 ? "ricci_unpack_f64" : "ricci_unpack_f32",
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
	if (p->acc != p->type)
		result = node_cast(ir, p->type, result);
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

static int read_steps(const Schedule *s, const Contract *c, Shape *h, Error *err)
{
	int64_t *block[3] = {&h->mb, &h->nb, &h->kb};
	const int64_t unit[3] = {c->micro->mr, c->micro->nr, 1};
	const int64_t extent[3] = {c->m.extent, c->n.extent, c->k.extent};
	for (int k = 0; k < 3; k++)
		*block[k] = 128;
	for (int k = 0; k < s->n; k++) {
		const ScheduleStep *step = &s->step[k];
		if (step->kind == STEP_TENSORISE)
			continue;
		if (step->kind != STEP_BLOCK || step->axis < 0 || step->axis > 2 || step->arg < 1 ||
		    step->arg > 1 << 20)
			return error_set(err, RICCI_EINVAL,
					 "schedule: step %d does not fit a tensorised contraction",
					 k + 1);
		*block[step->axis] = step->arg;
	}
	for (int k = 0; k < 3; k++) {
		int64_t most = (extent[k] + unit[k] - 1) / unit[k] * unit[k];
		*block[k] = (*block[k] + unit[k] - 1) / unit[k] * unit[k];
		*block[k] = *block[k] < most ? *block[k] : most;
	}
	h->nmb = (c->m.extent + h->mb - 1) / h->mb;
	h->nnb = (c->n.extent + h->nb - 1) / h->nb;
	h->nkb = (c->k.extent + h->kb - 1) / h->kb;
	return 0;
}

static void set_blocks(Contract *c, Shape *h, Node *part, Node *k_block)
{
	Ir *ir = c->ir;
	Node *mn = node_floormod(ir, part, h->nmb * h->nnb);
	Node *point = node_floordiv(ir, part, h->nmb * h->nnb);
	c->m.block = h->mb, c->n.block = h->nb, c->k.block = h->kb;
	c->m.origin = node_scale(ir, node_floordiv(ir, mn, h->nnb), h->mb);
	c->n.origin = node_scale(ir, node_floormod(ir, mn, h->nnb), h->nb);
	c->k.origin = node_scale(ir, k_block, h->kb);
	h->rows = least(c, num(c, h->mb), node_sub(ir, num(c, c->m.extent), c->m.origin));
	h->cols = least(c, num(c, h->nb), node_sub(ir, num(c, c->n.extent), c->n.origin));
	h->depth = least(c, num(c, h->kb), node_sub(ir, num(c, c->k.extent), c->k.origin));
	Side *side[3] = {&c->m, &c->n, &c->k};
	for (int k = 0; k < 3; k++)
		side[k]->whole = side[k]->extent <= 1 << 15;
	if (c->k.compact) {
		c->count = tree_buffer(c->t, SPACE_LOCAL, "count", RICCI_I64, 1);
		if (!c->count)
			return;
		Node *count = buffer_read(c->t, c->count, num(c, 0));
		h->depth = node2(ir, OP_MIN, num(c, h->kb), node_sub(ir, count, c->k.origin));
		h->blocks = node_floordiv(ir, node_add(ir, count, num(c, h->kb - 1)), h->kb);
	}
	int64_t below = c->batch.extent;
	for (int k = 0; k < c->batch.naxis; k++) {
		below /= axis_extent(c->batch.axis[k]);
		c->batch_value[k] = node_floormod(ir, node_floordiv(ir, point, below),
						  axis_extent(c->batch.axis[k]));
	}
	Type t = c->p->acc;
	h->a = tree_buffer(c->t, SPACE_SCRATCH, "pa", t, h->mb * h->kb);
	h->b = tree_buffer(c->t, SPACE_SCRATCH, "pb", t, c->micro->nr * h->kb);
	h->c = tree_buffer(c->t, SPACE_SCRATCH, "pc", t, h->mb * h->nb);
}

int lower_contract(Problem *p, const Schedule *s, const Target *target, const Dialect *d,
		   Error *err)
{
	Ir *ir = p->ir;
	Contract *c = arena_alloc(&ir->arena, sizeof *c);
	Shape h = {0};
	bool swap = false;
	(void)d;
	for (int k = 0; k < s->n; k++)
		if (s->step[k].kind == STEP_TENSORISE)
			swap = s->step[k].arg != 0;
	if (!contract_find(c, p, target, swap))
		return error_set(err, RICCI_EINVAL,
				 "schedule: tensorise needs a sum of products whose factors share "
				 "reduced indices and each have indices of their own");
	if (read_steps(s, c, &h, err))
		return err->code;
	int64_t parts = c->batch.extent * h.nmb * h.nnb;
	Node *part = tree_axis(p->tree, parts), *kb = tree_axis(p->tree, h.nkb);
	set_blocks(c, &h, part, kb);
	if (ir->err.code)
		return error_set(err, ir->err.code, "%s", ir->err.text);
	CallArg zero[] = {{h.c, num(c, 0)},
			  {NULL, num(c, h.mb * h.nb * (int64_t)type_size(p->acc))}};
	Stmt *multiply = multiply_block(c, &h);
	Stmt *loop = stmt_loop(p->tree, HOW_SERIAL, kb, NULL, h.blocks,
			       stmt_seq(contract_fill(c, &c->k), multiply));
	loop->maybe = h.blocks != NULL;
	if (c->k.compact)
		loop = stmt_seq(contract_choose(c), loop);
	Stmt *store = store_block(c, &h);
	Stmt *body = stmt_seq(contract_fill(c, &c->m), contract_fill(c, &c->n));
	body = stmt_seq(body, c->setup);
	body = stmt_seq(body, stmt_call(p->tree, "ricci_zero", COUNT(zero), zero));
	body = stmt_seq(body, stmt_seq(loop, store));
	p->tree->parts = parts;
	p->tree->root = stmt_seq(contract_fill(c, NULL),
				 stmt_loop(p->tree, HOW_PARALLEL, part, NULL, NULL, body));
	return error_set(err, ir->err.code, "%s", ir->err.text);
}
