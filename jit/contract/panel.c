/* panel.c - filling the panels that a contraction's micro-kernel reads.
 *
 * Input: an operand and the index group along which its panels' lanes run. Output: statements that fill one
 * panel. An operand is evaluated through its index functions, so that nothing is ever unfolded in
 * memory: plain reads, also under affine conditions and from narrower types, by functions compiled
 * ahead (contract_pack*.c); other operands by generated loops. */
#include "jit/contract/internal.h"
#include "jit/symbols.h"

#include <string.h>

static const double MOST_SHARED = 1 << 25; /* elements */

/* cond as e >= 0, one or two of them; 0 when it is none such. */
static int as_inequalities(Contract *c, Node *g, Node *e[2])
{
	Ir *ir = c->ir;
	e[0] = condition_slack(ir, g);
	if (e[0])
		return 1;
	if (g->op != OP_EQ || g->src[0]->type != RICCI_I64)
		return 0;
	e[0] = node_sub(ir, g->src[1], g->src[0]);
	e[1] = node_scale(ir, e[0], -1);
	return 2;
}

bool contract_part(Contract *c, int nguard, Node *const *guard, IndexGroup *s, Parted *r)
{
	Node *e[2];
	for (int g = 0; g < nguard; g++) {
		int count = as_inequalities(c, guard[g], e);
		if (count == 0 || r->n + count > CONTRACT_MAX_GUARDS)
			return false;
		for (int k = 0; k < count; k++, r->n++)
			if (!contract_split(c, e[k], s, &c->k, &r->s[r->n], &r->k[r->n],
					    &r->rest[r->n]))
				return false;
	}
	return true;
}

/* A plain read under affine conditions: its place in row 0, which lies at rest[0]. */
static bool split_read(Contract *c, const Operand *f, IndexGroup *s, Parted *r)
{
	Source source;
	r->n = 1;
	return contract_source(f, &source) &&
	       contract_split(c, source.read->src[1], s, &c->k, &r->s[0], &r->k[0], &r->rest[0]) &&
	       contract_part(c, f->nguard, f->guard, s, r);
}

Node *contract_rest(Contract *c, int n, Node *const *rest)
{
	Node *more = tree_buffer(c->t, SPACE_SCRATCH, "rest", RICCI_I64, n + 1);
	for (int r = 0; r < n; r++)
		c->setup = stmt_seq(c->setup,
				    stmt_store(c->t, more, contract_int(c, r), rest[r], RED_NONE));
	return more;
}

bool contract_places(const Contract *c, const IndexGroup *s, Node *index, int64_t n, int64_t *place)
{
	int64_t below = 1;
	memset(place, 0, (size_t)n * sizeof *place);
	for (int k = s->naxis - 1; k >= 0; k--) {
		int64_t end = below * axis_extent(s->axis[k]);
		int64_t stride = affine_stride(c->ir, index, s->axis[k]);
		if (stride == INT64_MIN)
			return false;
		for (int64_t i = below; i < n && i < end; i++)
			place[i] = place[i - below] + stride;
		below = end;
	}
	return true;
}

int64_t contract_place(const Contract *c, const IndexGroup *s, Node *index, int64_t i)
{
	int64_t place = 0;
	for (int k = s->naxis - 1; k >= 0; k--) {
		int64_t extent = axis_extent(s->axis[k]);
		int64_t stride = affine_stride(c->ir, index, s->axis[k]);
		if (stride == INT64_MIN)
			return 0;
		place += i % extent * stride;
		i /= extent;
	}
	return place;
}

/* Rows whose lines are so far apart that they meet in one set of L1, more of them than it has ways,
 * drive each other out before the next element of K has used them. Two ways are the panel's and the sums', but
 * less than 8 rows lose more. */
void contract_rows(Contract *c, const Target *target, bool unpacked_a)
{
	enum { SETS = PAGE / LINE, ROWS = 32, LEAST = 8, OTHERS = 2 };
	const Node *read = unpacked_a ? contract_read(&c->a) : NULL;
	int64_t place[ROWS], used[SETS] = {0};
	int64_t ways = (int64_t)target->l1 / PAGE, rows = 0;
	ways -= ways >= LEAST + OTHERS ? OTHERS : 0;
	c->mr = c->micro->mr;
	if (!read || c->micro->whole || c->mr > ROWS ||
	    !contract_places(c, &c->m, read->src[1], c->mr, place))
		return;
	int64_t size = (int64_t)type_size(read->type);
	for (; rows < c->mr; rows++) {
		int64_t line = place[rows] * size / LINE, first = rows;
		while (first > 0 && place[first - 1] * size / LINE == line)
			first--;
		int64_t *set = &used[(line % SETS + SETS) % SETS];
		if (first == rows && ++*set > ways)
			break;
	}
	c->mr = rows < 4 ? 4 : rows / 2 * 2;
}

static const PanelForm *form_of(const Contract *c, const IndexGroup *s)
{
	return s == &c->n ? &c->micro->b : &c->micro->a;
}

/* Does each group of elements of K lie together in A, in padding or not, listed or not as one? */
static bool groups_lie(const Contract *c, Node *read)
{
	int group = contract_group(c), k = c->k.naxis - 1;
	while (k > 0 && axis_extent(c->k.axis[k]) == 1)
		k--;
	if (group == 1)
		return true;
	if (axis_extent(c->k.axis[k]) % group ||
	    affine_stride(c->ir, read->src[1], c->k.axis[k]) != 1)
		return false;
	for (int g = 0; g < c->a.npadded; g++)
		if (node_has(c->a.padded[g], c->k.axis[k]))
			return false;
	for (int g = 0; g < c->nchoice; g++)
		if (node_has(c->choice[g], c->k.axis[k]))
			return false;
	return true;
}

bool contract_unpacked(Contract *c, bool b)
{
	Parted r;
	Source s;
	const Operand *f = b ? &c->b : &c->a;
	const PanelForm *form = form_of(c, b ? &c->n : &c->m);
	if ((b ? !c->micro->both : !c->micro->placed) || !contract_source(f, &s) ||
	    (f->value != s.read && (Type)f->value->type != c->p->acc) || s.through != s.from ||
	    type_size(s.from) != type_size(form->held) ||
	    (form->from ? !(form->from >> s.from & 1) : s.from != c->p->acc))
		return false;
	return b ? split_read(c, f, &c->n, &r)
		 : split_read(c, f, &c->m, &r) && r.n == 1 && groups_lie(c, s.read);
}

bool contract_lies(Contract *c)
{
	const PanelForm *form = &c->micro->b;
	const Node *read = c->b.value;
	int64_t nr = c->micro->nr;
	if (!contract_plain(c, &c->b) || (Type)read->type != form->held || c->b.nguard ||
	    c->k.compact || contract_group(c) != 1 || form->finish_symbol)
		return false;
	return contract_run(c, &c->n, read->src[1], 1) % nr == 0 &&
	       contract_step(c, &c->k, read->src[1]) == nr;
}

/* The packing function for an operand's type and its panels'; NULL: there is none. */
static const char *pack_name(const Contract *c, const Operand *f, const IndexGroup *s)
{
	Type held = form_of(c, s)->held;
	Source source;
	const char *name;
	if (contract_plain(c, f))
		return contract_moves_f64(c) ? "ricci_pack_f64" : "ricci_pack_f32";
	/* what is packed stays what it is: f32(i8) is made by generated code */
	if (!contract_source(f, &source) ||
	    type_is_float(source.through) != type_is_float(c->p->acc))
		return NULL;
	name = arena_printf(&c->ir->arena, "ricci_pack_%s_%s_%d", type_name(source.from),
			    type_name(source.through), 8 * (int)type_size(held));
	return jit_symbol(name) ? name : NULL;
}

bool contract_packs(Contract *c)
{
	Parted r;
	return pack_name(c, &c->a, &c->m) && pack_name(c, &c->b, &c->n) &&
	       split_read(c, &c->a, &c->m, &r) && split_read(c, &c->b, &c->n, &r);
}

/* What a micro-kernel does to packed panels. */
static Stmt *finish(Contract *c, const IndexGroup *s, Node *dst, Node *panel, Node *depth)
{
	const char *name = form_of(c, s)->finish_symbol;
	CallArg arg[] = {{dst, panel}, {NULL, depth}};
	return name ? stmt_call(c->t, name, COUNT(arg), arg) : NULL;
}

/* A plain read under affine conditions: one call of a packing function for a panel. */
static Stmt *pack_read(Contract *c, const Operand *f, IndexGroup *s, Node *dst, Node *at,
		       Node *panel, int64_t lanes, Node *count, Node *depth,
		       const Unpacked *unpacked)
{
	Parted rows;
	Source source;
	const char *name = pack_name(c, f, s);
	if (!name || !contract_source(f, &source) || !split_read(c, f, s, &rows))
		return NULL;
	int n = rows.n;
	Table *ts = contract_table(c, s, n, rows.s), *tk = contract_table(c, &c->k, n, rows.k);
	if (!ts || !tk)
		return NULL;
	Node *zero = contract_int(c, 0), *more = contract_rest(c, n - 1, rows.rest + 1);
	CallArg arg[14] = {{source.read->src[0], rows.rest[0]},
			   {dst, panel},
			   {ts->buffer, table_index(c, ts, at)},
			   {NULL, contract_int(c, ts->stride)},
			   {tk->buffer, table_index(c, tk, zero)},
			   {NULL, contract_int(c, tk->stride)},
			   {NULL, contract_int(c, n - 1)},
			   {more, zero},
			   {NULL, contract_int(c, lanes)},
			   {NULL, count},
			   {NULL, depth},
			   {NULL, contract_int(c, c->period)}};
	if (!contract_plain(c, f)) {
		arg[12] = (CallArg){NULL, contract_int(c, form_of(c, s)->group)};
		arg[13] = (CallArg){NULL, contract_int(c, contract_group(c))};
		return stmt_seq(stmt_call(c->t, name, 14, arg), finish(c, s, dst, panel, depth));
	}
	if (!unpacked)
		return stmt_call(c->t, name, 12, arg);
	arg[12] = (CallArg){unpacked->panels, unpacked->at};
	arg[13] = (CallArg){unpacked->seq, zero};
	return stmt_call(c->t, contract_moves_f64(c) ? "ricci_panel_f64" : "ricci_panel_f32", 14,
			 arg);
}

/* Of the elements that an expression is made of: how many lie together along a group. */
typedef struct LongRun {
	Contract *c;
	const IndexGroup *s;
	int64_t run;
} LongRun;

static void shorten(void *user, Node *n)
{
	LongRun *l = user;
	int64_t run = n->op == OP_READ ? contract_run(l->c, l->s, n->src[1], 1) : 1;
	if (run > 1 && (l->run == 1 || run < l->run))
		l->run = run;
}

/* Elements of the group in which the operand's conditions see one axis that grows from one to the next, and else none
 * that changes: axes beyond are quotients and remainders of the lanes. */
static int64_t guarded_run(const Operand *f, const IndexGroup *s)
{
	int64_t run = 1;
	for (int k = s->naxis - 1; k >= 0; k--) {
		bool seen = false;
		for (int g = 0; g < f->nguard; g++)
			seen |= node_has(f->guard[g], s->axis[k]);
		if (seen && run > 1)
			break;
		run *= axis_extent(s->axis[k]);
		if (seen)
			break;
	}
	return run;
}

int64_t contract_lies_along(Contract *c, const Operand *f, const IndexGroup *s)
{
	LongRun l = {c, s, 1};
	node_walk(c->ir, f->value, shorten, &l);
	int64_t run = guarded_run(f, s);
	return run < l.run && run >= LANES_RUN ? run : l.run;
}

/* The operand at a point. */
static Node *value_at(Contract *c, const Operand *f, const Point *point)
{
	Ir *ir = c->ir;
	Node *value = f->value, *cond = NULL;
	for (int g = 0; g < f->nguard; g++)
		cond = node_and(ir, cond, f->guard[g]);
	if (cond)
		value = node_select(ir, cond, value, node_const(ir, value->type, 0));
	value = contract_tabulate(c, value, point);
	return value->type == c->p->acc ? value : node_cast(ir, c->p->acc, value);
}

/* An expression whose elements lie together along the lanes. */
static Stmt *pack_lanes(Contract *c, const Operand *f, IndexGroup *s, Node *dst, const Extent *part,
			Node *panel, Node *depth)
{
	Ir *ir = c->ir;
	Node *k = tree_axis(c->t, c->k.block);
	Point point = {.n = 2, .group = {s, &c->k}, .at = {NULL, k}};
	Lanes l = lanes_along(c, part, contract_lies_along(c, f, s), &point);
	Node *place = node_add(ir, panel, node_add(ir, node_scale(ir, k, part->most), l.at));
	return lanes_loops(c, &l, stmt_loop(c->t, HOW_SERIAL, k, NULL, depth, NULL),
			   stmt_store(c->t, dst, place, value_at(c, f, &point), RED_NONE));
}

/* One whose elements lie together along K: rows of a few elements of K, which are then transposed. */
static Stmt *pack_rows(Contract *c, const Operand *f, IndexGroup *s, Node *dst, const Extent *part,
		       Node *panel, Node *depth, int64_t run)
{
	enum { DEEP = 64 };
	Ir *ir = c->ir;
	Node *rows = tree_buffer(c->t, SPACE_SCRATCH, "rows", c->p->acc, part->most * DEEP);
	Node *piece = tree_axis(c->t, (c->k.block + DEEP - 1) / DEEP);
	Node *row = tree_axis(c->t, part->most), *from = node_scale(ir, piece, DEEP);
	Node *n = node2(ir, OP_MIN, node_sub(ir, depth, from), contract_int(c, DEEP));
	Node *pieces = node_floordiv(ir, node_add(ir, depth, contract_int(c, DEEP - 1)), DEEP);
	Extent deep = {from, n, DEEP};
	Point point = {.n = 2, .group = {&c->k, s}, .at = {NULL, node_add(ir, part->from, row)}};
	Lanes l = lanes_along(c, &deep, run, &point);
	Node *place = node_add(ir, node_scale(ir, row, DEEP), l.at);
	Stmt *fill = lanes_loops(c, &l, NULL,
				 stmt_store(c->t, rows, place, value_at(c, f, &point), RED_NONE));
	fill = stmt_loop(c->t, HOW_SERIAL, row, NULL, part->count, fill);
	Node *to = node_add(ir, panel, node_scale(ir, from, part->most));
	Stmt *turn = stmt_transpose(c->t, (CallArg){dst, to}, part->most,
				    (CallArg){rows, contract_int(c, 0)}, DEEP, n, part->count);
	return stmt_loop(c->t, HOW_SERIAL, piece, NULL, pieces, stmt_seq(fill, turn));
}

/* Lanes past the part's are left as they are: nobody looks at their products. */
static Stmt *pack_expression(Contract *c, const Operand *f, IndexGroup *s, Node *dst,
			     const Extent *part, Node *panel, Node *depth)
{
	int64_t deep = c->k.compact ? 1 : contract_lies_along(c, f, &c->k);
	if (deep >= LANES_RUN && contract_lies_along(c, f, s) < LANES_RUN)
		return pack_rows(c, f, s, dst, part, panel, depth, deep);
	return pack_lanes(c, f, s, dst, part, panel, depth);
}

Stmt *contract_pack(Contract *c, const Operand *f, IndexGroup *s, Node *dst, Node *at, Node *place,
		    int64_t lanes, Node *count, Node *depth, const Unpacked *unpacked)
{
	Stmt *call = pack_read(c, f, s, dst, at, place, lanes, count, depth, unpacked);
	return call ? call
		    : pack_expression(c, f, s, dst, &(Extent){at, count, lanes}, place, depth);
}

int64_t contract_points(const Contract *c, const Operand *f)
{
	for (int k = 0; k < c->p->naxis; k++)
		for (int b = 0; b < c->batch.naxis; b++)
			if (c->batch.axis[b] == c->p->axis[k] && f->mask >> k & 1)
				return c->batch.extent;
	return 1;
}

int64_t contract_close(const Contract *c)
{
	int64_t n = 1, line = LINE / (int64_t)type_size(c->p->type);
	for (int k = c->batch.naxis - 1; k >= 0; k--) {
		int64_t step = affine_stride(c->ir, c->p->index, c->batch.axis[k]);
		if (step <= 0 || step >= line)
			break;
		n *= axis_extent(c->batch.axis[k]);
	}
	return n;
}

bool contract_shares(const Contract *c, bool b)
{
	const Operand *f = b ? &c->b : &c->a;
	double size = (double)(b ? c->n.extent : c->m.extent) * (double)c->k.extent *
		      (double)contract_points(c, f);
	Source source;
	if (c->k.compact || !contract_source(f, &source))
		return false;
	/* Copies are not there yet where panels are shared. */
	const Buffer *from = tree_find(c->t, source.read->src[0]);
	return (!from || from->space != SPACE_SHARED || from->ready) &&
	       size <= (double)tensor_size(source.read->src[0]) && size <= MOST_SHARED;
}
