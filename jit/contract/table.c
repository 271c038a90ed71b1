/* table.c - index arithmetic of packed panels, and functions of one index, tabulated.
 *
 * Packing walks two long indices, each standing for several axes. An integer expression that is a
 * sum of a part over the one's axes and a part over the other's becomes table[i] + table[k], so
 * that inner loops divide nothing; a function of the one's axes that reads nothing, pow(2, f32(i)),
 * table[i]. Invariant: table entries past the end of an extent repeat valid ones, so that reads
 * through them stay inside. */
#include "jit/contract/internal.h"

#include <string.h>

static bool index_group_holds(const IndexGroup *s, Node *e)
{
	for (int k = 0; k < s->naxis; k++)
		if (node_has(e, s->axis[k]))
			return true;
	return false;
}

/* Does e depend on the batch, or on loops around the contraction? Tables hold none of it. */
static bool outer_holds(const Contract *c, Node *e)
{
	const Rows *rows = c->p->rows;
	for (int k = 0; rows && k < COUNT(rows->outer); k++)
		if (node_has(e, rows->outer[k]))
			return true;
	return index_group_holds(&c->batch, e);
}

static int64_t index_group_entries(const IndexGroup *s)
{
	if (!s->whole)
		return s->block;
	return (s->extent + s->block - 1) / s->block * s->block;
}

Table *contract_table(Contract *c, IndexGroup *s, int nrow, Node *const *row)
{
	for (int k = 0; k < c->ntable; k++)
		if (c->table[k].group == s && c->table[k].nrow == nrow &&
		    memcmp(c->table[k].row, row, (size_t)nrow * sizeof *row) == 0)
			return &c->table[k];
	if (c->ntable == CONTRACT_MAX_TABLES) {
		error_set(&c->ir->err, RICCI_EUNSUPPORTED, "a contraction of more than %d tables",
			  CONTRACT_MAX_TABLES);
		return NULL;
	}
	Table *t = &c->table[c->ntable++];
	t->group = s;
	t->nrow = nrow;
	memcpy(t->row, row, (size_t)nrow * sizeof *row);
	t->stride = index_group_entries(s);
	t->buffer = tree_buffer(c->t, s->whole && !s->compact ? SPACE_TABLE : SPACE_SCRATCH, "tab",
				(Type)row[0]->type, t->stride * nrow);
	if (type_is_float((Type)row[0]->type))
		return t;
	/* Entries have the rows' bounds: sums with them are known not to overflow. */
	t->buffer->lo = row[0]->lo;
	t->buffer->hi = row[0]->hi;
	for (int r = 1; r < nrow; r++) {
		t->buffer->lo = row[r]->lo < t->buffer->lo ? row[r]->lo : t->buffer->lo;
		t->buffer->hi = row[r]->hi > t->buffer->hi ? row[r]->hi : t->buffer->hi;
	}
	return t;
}

Node *table_index(Contract *c, const Table *t, Node *at)
{
	return t->group->whole ? node_add(c->ir, t->group->origin, at) : at;
}

/* ---- filling ---- */

static Node *batch_part(Contract *c, Node *e)
{
	return node_replace(c->ir, e, c->batch.naxis, c->batch.axis, c->batch_value);
}

static Stmt *fill_rows(Contract *c, const Table *t, Node *at, int n, Node *const *from,
		       Node *const *to)
{
	Stmt *s = NULL;
	for (int r = 0; r < t->nrow; r++) {
		Node *index = node_add(c->ir, at, node_int(c->ir, r * t->stride));
		s = stmt_seq(s, stmt_store(c->t, t->buffer, index,
					   node_replace(c->ir, t->row[r], n, from, to), RED_NONE));
	}
	return s;
}

/* Loops over the group's axes themselves; then entries past the end, which repeat the first. */
static Stmt *fill_whole(Contract *c, Table *t)
{
	const IndexGroup *s = t->group;
	Node *var[COMP_MAX_AXES], *at = node_int(c->ir, 0), *zero = at;
	for (int k = 0; k < s->naxis; k++) {
		var[k] = tree_axis(c->t, axis_extent(s->axis[k]));
		at = node_add(c->ir, node_scale(c->ir, at, axis_extent(s->axis[k])), var[k]);
	}
	Stmt *body = fill_rows(c, t, at, s->naxis, s->axis, var);
	for (int k = s->naxis - 1; k >= 0; k--)
		body = stmt_loop(c->t, HOW_SERIAL, var[k], NULL, NULL, body);
	if (t->stride == s->extent)
		return body;
	Node *x = tree_axis(c->t, t->stride), *none[COMP_MAX_AXES];
	for (int k = 0; k < s->naxis; k++)
		none[k] = zero;
	return stmt_seq(body, stmt_loop(c->t, HOW_SERIAL, x, node_int(c->ir, s->extent), NULL,
					fill_rows(c, t, x, s->naxis, s->axis, none)));
}

static Stmt *fill_block(Contract *c, Table *t)
{
	const IndexGroup *s = t->group;
	Node *x = tree_axis(c->t, s->block), *to[COMP_MAX_AXES];
	Node *element =
		node2(c->ir, OP_MIN, node_add(c->ir, s->origin, x), node_int(c->ir, s->extent - 1));
	axes_at(c->ir, element, s->naxis, s->axis, to);
	return stmt_loop(c->t, HOW_SERIAL, x, NULL, NULL,
			 fill_rows(c, t, x, s->naxis, s->axis, to));
}

Stmt *contract_fill(Contract *c, IndexGroup *s)
{
	Stmt *all = NULL;
	for (int k = 0; k < c->ntable; k++) {
		Table *t = &c->table[k];
		if (t->group->compact)
			continue;
		if (s ? t->group == s && !s->whole : t->group->whole)
			all = stmt_seq(all, (s ? fill_block : fill_whole)(c, t));
	}
	return all;
}

/* Loops over K's axes from number k on; what is known to fail is left as early as possible. */
static Stmt *choose_loops(Contract *c, int k, Node **var)
{
	const IndexGroup *s = &c->k;
	Node *cond = NULL, *zero = node_int(c->ir, 0), *count = buffer_read(c->t, c->count, zero);
	Stmt *body = NULL;
	for (int g = 0; g < c->nchoice; g++) {
		bool ready = true, before = k > 0;
		for (int j = k; j < s->naxis; j++)
			ready &= !node_has(c->choice[g], s->axis[j]);
		for (int j = k - 1; j < s->naxis && before; j++)
			before &= !node_has(c->choice[g], s->axis[j]);
		if (!ready || before)
			continue;
		Node *x = node_replace(c->ir, batch_part(c, c->choice[g]), s->naxis, s->axis, var);
		cond = node_and(c->ir, cond, x);
	}
	if (k < s->naxis) {
		body = stmt_loop(c->t, HOW_SERIAL, var[k], NULL, NULL, choose_loops(c, k + 1, var));
	} else {
		for (int t = 0; t < c->ntable; t++)
			if (c->table[t].group == s)
				body = stmt_seq(body, fill_rows(c, &c->table[t], count, s->naxis,
								s->axis, var));
		body = stmt_seq(body,
				stmt_store(c->t, c->count, zero, node_int(c->ir, 1), RED_ADD));
	}
	return cond ? stmt_if(c->t, cond, body, NULL) : body;
}

Stmt *contract_choose(Contract *c)
{
	Node *var[COMP_MAX_AXES], *zero = node_int(c->ir, 0);
	for (int k = 0; k < c->k.naxis; k++)
		var[k] = tree_axis(c->t, axis_extent(c->k.axis[k]));
	Stmt *s = stmt_seq(stmt_alloc(c->t, c->count),
			   stmt_store(c->t, c->count, zero, zero, RED_NONE));
	return stmt_seq(s, choose_loops(c, 0, var));
}

/* ---- splitting and rewriting ---- */

bool contract_split(Contract *c, Node *e, IndexGroup *s, IndexGroup *k, Node **es, Node **ek,
		    Node **rest)
{
	Affine a = affine_of(c->ir, e);
	Node *zero = node_int(c->ir, 0);
	*es = *ek = zero;
	*rest = node_int(c->ir, a.c);
	for (int j = 0; j < a.n; j++) {
		bool in_s = index_group_holds(s, a.atom[j]), in_k = index_group_holds(k, a.atom[j]);
		bool in_b = outer_holds(c, a.atom[j]);
		if (in_s + in_k + in_b > 1 || node_reads(c->ir, a.atom[j]))
			return false;
		Node **to = in_s ? es : in_k ? ek : rest;
		*to = node_add(c->ir, *to, node_scale(c->ir, a.atom[j], a.k[j]));
	}
	*rest = batch_part(c, *rest);
	return true;
}

/* The group's axis that runs fastest; NULL: it has one element. */
static Node *last_axis(const IndexGroup *s)
{
	for (int k = s->naxis - 1; k >= 0; k--)
		if (axis_extent(s->axis[k]) > 1)
			return s->axis[k];
	return NULL;
}

int64_t contract_run(const Contract *c, const IndexGroup *s, Node *e, int64_t stride)
{
	int64_t run = 1;
	for (int k = s->naxis - 1; k >= 0; k--) {
		if (axis_extent(s->axis[k]) == 1)
			continue;
		if (affine_stride(c->ir, e, s->axis[k]) != stride)
			break;
		run *= axis_extent(s->axis[k]);
		stride *= axis_extent(s->axis[k]);
	}
	return run;
}

bool contract_even(const Contract *c, const IndexGroup *s, Node *e, int64_t run, int64_t *stride)
{
	Node *last = last_axis(s);
	*stride = last ? affine_stride(c->ir, e, last) : 0;
	return *stride != INT64_MIN && contract_run(c, s, e, *stride) % run == 0;
}

int64_t contract_step(Contract *c, const IndexGroup *s, Node *e)
{
	int64_t step = 0, next = 0;
	for (int k = s->naxis - 1; k >= 0; k--) {
		int64_t stride = affine_stride(c->ir, e, s->axis[k]);
		if (axis_extent(s->axis[k]) == 1)
			continue;
		if (next && stride != next)
			return 0;
		step = step ? step : stride;
		next = stride > 0 ? stride * axis_extent(s->axis[k]) : -1;
	}
	return step > 0 ? step : 0;
}

typedef struct Rewrite {
	Contract *c;
	const Point *point;
	Node **memo;
	uint32_t room;
} Rewrite;

static Node *rewrite(Rewrite *w, Node *e);

/* What e, which depends on the group, grows by from lane to lane; *even: it grows evenly. */
static Node *along_lanes(Rewrite *w, const IndexGroup *s, Node *e, bool *even)
{
	Contract *c = w->c;
	int64_t stride;
	*even = contract_even(c, s, e, w->point->run, &stride);
	return *even ? node_scale(c->ir, w->point->lane, stride) : w->point->lane;
}

/* Entry `at` of the table of what e is along the group. */
static Node *table_read(Contract *c, IndexGroup *s, Node *e, Node *at)
{
	Table *t = contract_table(c, s, 1, &e);
	return t ? buffer_read(c->t, t->buffer, table_index(c, t, at))
		 : node_const(c->ir, e->type, 0);
}

static Node *from_table(Rewrite *w, int group, Node *e)
{
	Contract *c = w->c;
	IndexGroup *s = w->point->group[group];
	Node *at = w->point->at[group], *more = NULL;
	bool even = false;
	if (group == 0 && w->point->lane) {
		more = along_lanes(w, s, e, &even);
		at = even ? at : node_add(c->ir, at, more);
	}
	if (s->direct) {
		Node *x = node_add(c->ir, s->origin, at);
		e = node_replace(c->ir, e, 1, s->axis, &x);
	} else {
		/* Of 32 bits, so that vectors have as many places as elements. */
		bool narrow = e->lo >= INT32_MIN && e->hi <= INT32_MAX;
		e = table_read(c, s, narrow ? node_cast(c->ir, RICCI_I32, e) : e, at);
		e = node_cast(c->ir, RICCI_I64, e);
	}
	return even ? node_add(c->ir, e, more) : e;
}

/* Of how many groups e has axes; *group: the last of them. */
static int groups_of(const Rewrite *w, Node *e, int *group)
{
	int n = 0;
	for (int k = 0; k < w->point->n; k++)
		if (index_group_holds(w->point->group[k], e)) {
			*group = k;
			n++;
		}
	return n;
}

static Node *rebuild(Rewrite *w, Node *e)
{
	Node *src[4];
	for (int k = 0; k < e->nsrc && k < 4; k++)
		src[k] = node_is_tensor(e->src[k]) ? e->src[k] : rewrite(w, e->src[k]);
	return node_make(w->c->ir, e->op, e->type, e->nsrc, src, e->u.i);
}

/* A sum: one table for each group's terms; terms of several groups are taken apart. */
static Node *rewrite_index(Rewrite *w, Node *e)
{
	Contract *c = w->c;
	Affine a = affine_of(c->ir, e);
	Node *part[2] = {NULL, NULL}, *sum = node_int(c->ir, a.c);
	for (int j = 0; j < a.n; j++) {
		Node *atom = a.atom[j], *term = node_scale(c->ir, atom, a.k[j]);
		int group, n = groups_of(w, atom, &group);
		if (n == 0) {
			sum = node_add(c->ir, sum, batch_part(c, term));
		} else if (n == 1 && !node_reads(c->ir, atom) && !outer_holds(c, atom)) {
			part[group] = part[group] ? node_add(c->ir, part[group], term) : term;
		} else {
			sum = node_add(c->ir, sum, node_scale(c->ir, rebuild(w, atom), a.k[j]));
		}
	}
	for (int k = 0; k < w->point->n; k++)
		if (part[k])
			sum = node_add(c->ir, sum, from_table(w, k, part[k]));
	return sum;
}

/* Is e a function of one group alone, which reads and draws nothing? There is room for its table. */
static bool is_tabular(const Rewrite *w, Node *e, int *group)
{
	const Contract *c = w->c;
	return node_is_function(e) && !outer_holds(c, e) && !node_reads(c->ir, e) &&
	       !node_any(c->ir, e, node_draws) && groups_of(w, e, group) == 1 &&
	       c->ntable < CONTRACT_MAX_TABLES / 2;
}

static Node *function_from_table(Rewrite *w, int group, Node *e)
{
	const Point *p = w->point;
	Node *at = p->at[group];
	if (group == 0 && p->lane)
		at = node_add(w->c->ir, at, p->lane);
	return table_read(w->c, p->group[group], e, at);
}

static Node *rewrite(Rewrite *w, Node *e)
{
	if (e->nsrc == 0 && e->op != OP_AXIS)
		return e;
	if (e->id < w->room && w->memo[e->id])
		return w->memo[e->id];
	int group;
	Node *out = is_tabular(w, e, &group) ? function_from_table(w, group, e)
		    : e->type == RICCI_I64 && e->op != OP_READ && e->op != OP_CAST
			    ? rewrite_index(w, e)
			    : rebuild(w, e);
	if (e->id < w->room)
		w->memo[e->id] = out;
	return out;
}

Node *contract_tabulate(Contract *c, Node *e, const Point *point)
{
	Rewrite w = {c, point, NULL, (uint32_t)c->ir->count + 1};
	if (node_is_tensor(e))
		return e;
	w.memo = arena_alloc(&c->ir->arena, w.room * sizeof *w.memo);
	return rewrite(&w, e);
}
