/* block.c - one block of a contraction: its place, its panels, its products.
 *
 * Input: a Blocking and the numbers of a part's blocks. Output: statements for that part.
 * Invariant: panels of M are as high as a micro-kernel or a little lower, all of them nearly the
 * same, so that no rest of two rows leaves most of its registers empty; and blocks have equal
 * numbers of panels or one more, so that threads which take as many of them are done together. */
#include "jit/contract/internal.h"

#include <stdlib.h>

/* The first row of a panel of M, counted over all blocks; the extent behind the last. */
static Node *panel_start(Contract *c, Node *panel)
{
	/* Rows are multiplied in pairs, tile registers whole. */
	int64_t unit = c->micro->whole ? c->micro->mr : 2, extent = c->m.extent;
	int64_t units = (extent + unit - 1) / unit, count = (extent + c->mr - 1) / c->mr;
	Node *u = node_floordiv(c->ir, node_scale(c->ir, panel, units), count);
	Node *start = node_scale(c->ir, u, unit);
	return extent % unit ? node2(c->ir, OP_MIN, start, contract_int(c, extent)) : start;
}

/* The first panel of a block: the group's panels are dealt out evenly among its blocks. */
static Node *block_start(Contract *c, Node *block, int64_t nblock, int64_t extent, int64_t panel)
{
	int64_t count = (extent + panel - 1) / panel;
	return node_floordiv(c->ir, node_scale(c->ir, block, count), nblock);
}

void block_set(Contract *c, Blocking *h, Node *point, Node *m, Node *n, Node *top, Node *rows)
{
	Ir *ir = c->ir;
	int64_t mr = c->mr, nr = c->micro->nr;
	Node *one = contract_int(c, 1), *m1 = node_add(ir, m, one), *n1 = node_add(ir, n, one);
	h->first = block_start(c, m, h->nmc, c->m.extent, mr);
	h->npanel = node_sub(ir, block_start(c, m1, h->nmc, c->m.extent, mr), h->first);
	h->npanel = node2(c->ir, OP_MIN, contract_int(c, h->mc / mr), h->npanel);
	Node *end = panel_start(c, node_add(ir, h->first, h->npanel));
	c->m.origin = node_add(ir, panel_start(c, h->first), top);
	h->rows = node2(c->ir, OP_MIN, rows, node_sub(ir, end, c->m.origin));
	c->n.origin = node_scale(ir, block_start(c, n, h->nnc, c->n.extent, nr), nr);
	end = node_scale(ir, block_start(c, n1, h->nnc, c->n.extent, nr), nr);
	end = node2(c->ir, OP_MIN, end, contract_int(c, c->n.extent));
	h->cols = node2(c->ir, OP_MIN, contract_int(c, h->nc), node_sub(ir, end, c->n.origin));
	axes_at(ir, point, c->batch.naxis, c->batch.axis, c->batch_value);
}

void block_set_depth(Contract *c, Blocking *h, Node *k)
{
	c->k.origin = node_scale(c->ir, k, h->kc);
	h->depth = node2(c->ir, OP_MIN, contract_int(c, h->kc),
			 node_sub(c->ir, contract_int(c, c->k.extent), c->k.origin));
}

/* Panel ip of the block: its first row there, and how many. */
static Node *panel_row(Contract *c, const Blocking *h, Node *ip)
{
	return node_sub(c->ir, panel_start(c, node_add(c->ir, h->first, ip)), c->m.origin);
}

static Node *panel_rows(Contract *c, const Blocking *h, Node *ip)
{
	Node *next = node_add(c->ir, ip, contract_int(c, 1));
	return node_sub(c->ir, panel_row(c, h, next), panel_row(c, h, ip));
}

/* Where the sums of row i and column j belong. */
static Node *sum_place(Contract *c, const Blocking *h, Node *i, Node *j)
{
	Ir *ir = c->ir;
	if (!h->straight)
		return block_sum(c, h, i, j);
	Node *place = block_sum(c, h, i, contract_int(c, 0));
	Point point = {.n = 1, .group = {&c->n}, .at = {j}};
	Node *em, *en, *base;
	contract_split(c, c->p->out_index[0], &c->m, &c->n, &em, &en, &base);
	if (contract_step(c, &c->n, c->p->out_index[0]) == 1)
		return node_add(ir, node_add(ir, place, c->n.origin), j);
	return node_add(ir, place, contract_tabulate(c, en, &point));
}

static Extent panel_extent(Contract *c, const Blocking *h, Node *ip)
{
	return (Extent){panel_row(c, h, ip), panel_rows(c, h, ip), c->mr};
}

/* The columns of panel jp of the strip that begins at column `from`. */
static Extent column_extent(Contract *c, const Blocking *h, Node *from, Node *jp)
{
	int64_t nr = c->micro->nr;
	Node *j = node_add(c->ir, from, node_scale(c->ir, jp, nr));
	Node *left = node_sub(c->ir, h->cols, j);
	return (Extent){j, node2(c->ir, OP_MIN, contract_int(c, nr), left), nr};
}

/* From a panel of B to the one that is multiplied next; NULL: the same. In place that is the next strip's,
 * behind the last strip the first one's of the next block. */
static Node *b_to_next(Contract *c, const Blocking *h, Node *from)
{
	Ir *ir = c->ir;
	if ((!h->unpacked_b && !h->b_lies) || h->strip == h->nc)
		return h->b_to_next;
	int64_t last = contract_place(c, &c->n, contract_read(&c->b)->src[1], h->nc - h->strip);
	Node *more = node2(ir, OP_LT, node_add(ir, from, contract_int(c, h->strip)), h->cols);
	Node *next = h->b_to_next ? h->b_to_next : contract_int(c, 0);
	return node_select(ir, more, contract_int(c, h->to_strip),
			   node_sub(ir, next, contract_int(c, last)));
}

/* What a tile prefetches of the panel that lies to_next behind `panel`: its share, one of `shares`. Panels
 * that the block packs for itself are in the cache. */
static int next_share(Contract *c, CallArg panel, Node *to_next, Node *depth, Node *share,
		      int64_t lanes, int64_t shares, CallArg *arg)
{
	Ir *ir = c->ir;
	int64_t ahead = to_next ? (lanes + shares - 1) / shares : 0;
	if (to_next) {
		Node *place = node_mul(ir, node_scale(ir, share, ahead), depth);
		panel.value = node_add(ir, panel.value, node_add(ir, to_next, place));
	}
	arg[0] = panel;
	arg[1] = (CallArg){NULL, contract_int(c, ahead)};
	return 2;
}

/* Of the panel of B in place that is multiplied next: the line that panel ip of A prefetches with each element
 * of K, from this one's on. */
static Node *next_line(Contract *c, const Blocking *h, Node *ip, Node *from)
{
	Ir *ir = c->ir;
	int64_t line = LINE / (int64_t)type_size(c->micro->b.held), lines = c->micro->nr / line;
	Node *next = b_to_next(c, h, from);
	next = next ? next : contract_int(c, 0);
	return lines > 1 ? node_add(ir, next, node_scale(ir, node_floormod(ir, ip, lines), line))
			 : next;
}

/* How many follow each other along s in one line of the cache, at most `most`. */
static int64_t in_a_line(const Contract *c, const IndexGroup *s, Node *read, int64_t most)
{
	enum { PLACES = 32 };
	int64_t place[PLACES], size = (int64_t)type_size((Type)read->type), n = 1;
	most = most < PLACES ? most : PLACES;
	if (!contract_places(c, s, read->src[1], most, place))
		return 1;
	while (n < most && llabs(place[n] - place[0]) * size < LINE)
		n++;
	return n;
}

/* What a tile of A in place is told of the panel that comes next: the first one of each panel prefetches it.
 * (Lines that K runs along are prefetched by the processor.) */
static Node *next_rows(Contract *c, const Blocking *h, Node *ip, Node *jp)
{
	Ir *ir = c->ir;
	Node *read = contract_read(&c->a);
	int64_t group = c->micro->a.group, rows = in_a_line(c, &c->m, read, c->mr),
		deep = in_a_line(c, &c->k, read, LINE / (int64_t)type_size((Type)read->type));
	deep = deep < group ? 1 : deep / group;
	Node *next = node_add(ir, ip, contract_int(c, 1));
	Node *end = node_add(ir, panel_row(c, h, next), contract_int(c, c->mr));
	Node *whole = node2(ir, OP_LE, end, h->rows),
	     *first = node2(ir, OP_LT, jp, contract_int(c, 1));
	return node_select(ir, node2(ir, OP_AND, whole, first),
			   contract_int(c, rows << MICRO_AHEAD | deep << MICRO_DEEP),
			   contract_int(c, 0));
}

/* The panel of B that begins with column j. */
static CallArg b_panel(Contract *c, const Blocking *h, Node *from, Node *j)
{
	Ir *ir = c->ir;
	if (!h->b_lies)
		return (CallArg){h->b,
				 node_add(ir, h->b_at,
					  node_scale(ir, h->b_shared ? j : node_sub(ir, j, from),
						     h->b_deep))};
	Node *read = contract_read(&c->b), *es, *ek, *base;
	if (!contract_split(c, read->src[1], &c->n, &c->k, &es, &ek, &base))
		return (CallArg){0};
	Table *t = contract_table(c, &c->n, 1, &es);
	Node *at = t ? buffer_read(c->t, t->buffer, table_index(c, t, j)) : contract_int(c, 0);
	at = node_add(ir, at, node_scale(ir, c->k.origin, c->micro->nr));
	return (CallArg){read->src[0], node_add(ir, base, at)};
}

/* The micro-kernel at panel ip of A and panel jp of the strip that begins at column `from`. */
static Stmt *multiply_tile(Contract *c, const Blocking *h, Node *ip, Node *from, Node *jp,
			   Node *add)
{
	Ir *ir = c->ir;
	int64_t mr = c->mr, nr = c->micro->nr;
	Extent rows = panel_extent(c, h, ip), cols = column_extent(c, h, from, jp);
	Node *i = rows.from, *j = cols.from;
	CallArg a = {h->a, node_add(ir, h->a_at, node_scale(ir, ip, mr * h->a_deep))};
	CallArg b = b_panel(c, h, from, j);
	Node *zero = contract_int(c, 0);
	CallArg arg[12] = {{NULL, rows.count}, {NULL, cols.count}, {NULL, h->depth}};
	int n = 3;
	if (h->unpacked_a) {
		Node *es, *ek, *base;
		if (!contract_split(c, contract_read(&c->a)->src[1], &c->m, &c->k, &es, &ek, &base))
			return NULL;
		Table *ts = contract_table(c, &c->m, 1, &es),
		      *tk = contract_table(c, &c->k, 1, &ek);
		if (!ts || !tk)
			return NULL;
		arg[n++] = (CallArg){contract_read(&c->a)->src[0], base};
		arg[n++] = (CallArg){ts->buffer, table_index(c, ts, i)};
		if (h->skips)
			arg[2] = (CallArg){h->zeros.state, zero};
		else
			arg[n++] = (CallArg){tk->buffer, table_index(c, tk, zero)};
	} else {
		arg[n++] = a;
	}
	arg[n++] = h->unpacked_b ? (CallArg){h->panels, node_scale(ir, jp, 2)} : b;
	arg[n++] = (CallArg){h->c, sum_place(c, h, i, j)};
	arg[n++] = (CallArg){NULL, contract_int(c, h->c_row)};
	int64_t how = (h->straight ? MICRO_EXACT : 0) | (h->a_follows ? MICRO_FOLLOWS : 0);
	Node *told = node_add(ir, add, contract_int(c, how));
	if (h->unpacked_a && !h->unpacked_b && !h->skips && !h->a_follows)
		told = node_add(ir, told, next_rows(c, h, ip, jp));
	arg[n++] = (CallArg){NULL, told};
	if (h->unpacked_b)
		arg[n++] = (CallArg){NULL, next_line(c, h, ip, from)};
	else if (!h->unpacked_a) {
		n += next_share(c, a, h->a_to_next, h->depth, node_floordiv(ir, j, nr), mr,
				h->nc / nr, arg + n);
		n += next_share(c, b, b_to_next(c, h, from), h->depth, ip, nr, h->mc / mr, arg + n);
	}
	return stmt_call(c->t,
			 h->skips	 ? c->micro->listed_symbol
			 : h->unpacked_b ? c->micro->both_symbol
			 : h->unpacked_a ? c->micro->placed_symbol
					 : c->micro->symbol,
			 n, arg);
}

/* Prefetches what the results of that tile need. */
static Stmt *fetch_tile(Contract *c, const Blocking *h, Node *ip, Node *from, Node *jp)
{
	if (!h->by_panel || !h->fetches)
		return NULL;
	Extent m = panel_extent(c, h, ip), n = column_extent(c, h, from, jp);
	return stmt_if(c->t, h->final, fetches_tile(h->fetches, &m, &n), NULL);
}

/* Stores a panel of M behind its last products. */
static Stmt *store_panel(Contract *c, const Blocking *h, Node *ip)
{
	if (!h->by_panel)
		return NULL;
	Extent m = panel_extent(c, h, ip), n = {contract_int(c, 0), h->cols, h->nc};
	return stmt_if(c->t, h->final, block_store(c, h, &m, &n), NULL);
}

/* Number of panels of `size` in e elements. */
static Node *panels(Contract *c, Node *e, int64_t size)
{
	return node_floordiv(c->ir, node_add(c->ir, e, contract_int(c, size - 1)), size);
}

Stmt *block_pack_a(Contract *c, const Blocking *h)
{
	Ir *ir = c->ir;
	int64_t mr = c->mr;
	Node *ip = tree_axis(c->t, h->mc / mr);
	Node *place = node_add(ir, h->a_at, node_scale(ir, ip, mr * h->a_deep));
	Stmt *pack = contract_pack(c, &c->a, &c->m, h->a, panel_row(c, h, ip), place, mr,
				   panel_rows(c, h, ip), h->depth, NULL);
	return stmt_loop(c->t, HOW_SERIAL, ip, NULL, h->npanel, pack);
}

/* The panels of so many columns from column `from` on. */
Stmt *block_pack_b(Contract *c, const Blocking *h, Node *from, Node *cols)
{
	Ir *ir = c->ir;
	int64_t nr = c->micro->nr;
	Node *jp = tree_axis(c->t, (cols->hi + nr - 1) / nr), *at = node_scale(ir, jp, nr);
	Node *place = node_add(ir, h->b_at, node_scale(ir, at, h->b_deep));
	Node *count = node2(c->ir, OP_MIN, contract_int(c, nr), node_sub(ir, cols, at));
	Unpacked unpacked = {h->panels, node_scale(ir, jp, 2), h->seq};
	Stmt *pack = contract_pack(c, &c->b, &c->n, h->b, node_add(ir, from, at), place, nr, count,
				   h->depth, h->unpacked_b ? &unpacked : NULL);
	return stmt_loop(c->t, HOW_SERIAL, jp, NULL, panels(c, cols, nr), pack);
}

Stmt *block_multiply(Contract *c, const Blocking *h, Node *add)
{
	Ir *ir = c->ir;
	Node *ip = tree_axis(c->t, h->mc / c->mr);
	Node *jp = tree_axis(c->t, h->strip / c->micro->nr);
	Node *js = tree_axis(c->t, (h->nc + h->strip - 1) / h->strip);
	Node *from = node_scale(ir, js, h->strip);
	Node *cols = node2(c->ir, OP_MIN, contract_int(c, h->strip), node_sub(ir, h->cols, from));
	Stmt *pack_a = h->unpacked_a || h->a_shared ? NULL : block_pack_a(c, h);
	Stmt *pack_b = h->b_shared || h->b_lies ? NULL : block_pack_b(c, h, from, cols);
	Stmt *run = stmt_loop(
		c->t, HOW_SERIAL, jp, NULL, panels(c, cols, c->micro->nr),
		stmt_seq(fetch_tile(c, h, ip, from, jp), multiply_tile(c, h, ip, from, jp, add)));
	if (h->skips)
		run = stmt_seq(zero_blocks_panel(c, &h->zeros, h->seq, panel_row(c, h, ip),
						 panel_rows(c, h, ip), h->depth),
			       run);
	run = stmt_seq(run, store_panel(c, h, ip));
	run = stmt_loop(c->t, HOW_SERIAL, ip, NULL, h->npanel, run);
	return stmt_seq(pack_a, stmt_loop(c->t, HOW_SERIAL, js, NULL, panels(c, h->cols, h->strip),
					  stmt_seq(pack_b, run)));
}
