/* store.c - the results of a block of a contraction: its sums through the members.
 *
 * Input: a block's sums; the rows and columns of them that are done. Output: statements that store what
 * the members make of each. Invariant: a transposed copy of the sums is of the whole block. */
#include "jit/contract/internal.h"

Node *block_sum(Contract *c, const Blocking *h, Node *i, Node *j)
{
	return node_add(c->ir, node_add(c->ir, h->c_at, node_scale(c->ir, i, h->c_row)), j);
}

/* What is stored is the sums as they are: by a function compiled ahead. */
static Stmt *store_plain(Contract *c, const Blocking *h, const Extent *m, const Extent *n)
{
	Problem *p = c->p;
	Node *em, *en, *base;
	if (p->nout != 1 || p->out_value[0] != p->result || p->acc != p->type ||
	    !contract_split(c, p->out_index[0], &c->m, &c->n, &em, &en, &base))
		return NULL;
	Table *tm = contract_table(c, &c->m, 1, &em), *tn = contract_table(c, &c->n, 1, &en);
	if (!tm || !tn)
		return NULL;
	CallArg arg[] = {{h->c, block_sum(c, h, m->from, n->from)},
			 {NULL, contract_int(c, h->c_row)},
			 {p->out[0], base},
			 {tm->buffer, table_index(c, tm, m->from)},
			 {tn->buffer, table_index(c, tn, n->from)},
			 {NULL, m->count},
			 {NULL, n->count}};
	return stmt_call(c->t, contract_moves_f64(c) ? "ricci_unpack_f64" : "ricci_unpack_f32",
			 COUNT(arg), arg);
}

/* The members' values of the sum at `place` of a buffer, stored. */
static Stmt *store_element(Contract *c, Node *sums, Node *place, const Point *point)
{
	Ir *ir = c->ir;
	Problem *p = c->p;
	Stmt *body = NULL;
	Node *result = problem_narrow(p, buffer_read(c->t, sums, place));
	for (int k = 0; k < p->nout; k++) {
		Node *value = contract_tabulate(c, p->out_value[k], point);
		value = node_replace(ir, value, 1, &p->result, &result);
		body = stmt_seq(body, stmt_store(c->t, p->out[k],
						 contract_tabulate(c, p->out_index[k], point),
						 value, RED_NONE));
	}
	return body;
}

/* One group's part of what is stored. */
typedef struct Along {
	IndexGroup *s;
	Extent part;
	int64_t run; /* so many results are contiguous; 0: lanes need not know */
} Along;

static Along along(Contract *c, IndexGroup *s, const Extent *part)
{
	enum { SHORT = 8 };
	Along a = {s, *part, contract_run(c, s, c->p->index, 1)};
	if (a.run < SHORT || a.run >= s->extent)
		a.run = 0;
	return a;
}

/* The loop over all runs that the part meets: *first is the run's first element in the part, *n how
 * many it has there. */
static Stmt *run_loop(Contract *c, const Along *a, Node **first, Node **n)
{
	Ir *ir = c->ir;
	int64_t run = a->run, most = a->part.most;
	Node *number = tree_axis(c->t, (most + run - 2) / run + 1);
	Node *origin = node_add(ir, a->s->origin, a->part.from);
	Node *before = node_floordiv(ir, origin, run);
	Node *at = node_sub(ir, node_scale(ir, node_add(ir, before, number), run), origin);
	Node *behind = node_add(ir, node_add(ir, origin, a->part.count), contract_int(c, run - 1));
	*first = node2(c->ir, OP_MIN, node2(ir, OP_MAX, at, contract_int(c, 0)),
		       contract_int(c, most - 1));
	*n = node_sub(ir,
		      node2(c->ir, OP_MIN, node_add(ir, at, contract_int(c, run)), a->part.count),
		      *first);
	return stmt_loop(c->t, HOW_SERIAL, number, NULL,
			 node_sub(ir, node_floordiv(ir, behind, run), before), NULL);
}

/* The block's sums column by column, in a buffer of their own; *line: from one to the next. */
static Stmt *transposed_sums(Contract *c, const Blocking *h, Node **sums, int64_t *line)
{
	Type type = (Type)h->c->type;
	*line = contract_pitch(h->mc + 1, type, 256); /* a row more: see sums_room */
	*sums = tree_buffer(c->t, SPACE_SCRATCH, "pt", type, h->nc * *line);
	return stmt_transpose(c->t, (CallArg){*sums, contract_int(c, 0)}, *line,
			      (CallArg){h->c, h->c_at}, h->c_row, h->cols, h->rows);
}

bool block_stores_down(const Contract *c)
{
	const Problem *p = c->p;
	return contract_run(c, &c->m, p->index, 1) > contract_run(c, &c->n, p->index, 1);
}

Stmt *block_store(Contract *c, const Blocking *h, const Extent *m, const Extent *n)
{
	Ir *ir = c->ir;
	Stmt *plain = store_plain(c, h, m, n), *transpose = NULL;
	if (plain)
		return plain;
	Along rows = along(c, &c->m, m), cols = along(c, &c->n, n);
	/* Lanes run along the results' lines, and so must the sums. */
	bool down = block_stores_down(c);
	Along in = down ? rows : cols, out = down ? cols : rows;
	Node *sums = h->c, *from = block_sum(c, h, m->from, n->from);
	int64_t line = h->c_row;
	if (down) {
		transpose = transposed_sums(c, h, &sums, &line);
		from = contract_int(c, 0);
	}
	Node *x = tree_axis(c->t, in.run && in.run < in.part.most ? in.run : in.part.most), *at = x;
	Node *y = tree_axis(c->t, out.part.most), *count = in.part.count;
	Point point = {.n = 2, .group = {in.s, out.s}, .at = {x, node_add(ir, out.part.from, y)}};
	Stmt *runs = NULL;
	if (in.run) {
		runs = run_loop(c, &in, &point.at[0], &count);
		point.lane = x;
		point.run = in.run;
		at = node_add(ir, point.at[0], x);
	}
	point.at[0] = node_add(ir, in.part.from, point.at[0]);
	/* Elements past the end are not visited: a single axis needs no table. */
	c->m.direct = c->m.naxis == 1;
	c->n.direct = c->n.naxis == 1;
	Node *place = node_add(ir, from, node_add(ir, node_scale(ir, y, line), at));
	Stmt *body = store_element(c, sums, place, &point);
	c->m.direct = c->n.direct = false;
	body = stmt_loop(c->t, HOW_VECTOR, x, NULL, count, body);
	if (runs) {
		runs->body = body;
		body = runs;
	}
	return stmt_seq(transpose, stmt_loop(c->t, HOW_SERIAL, y, NULL, out.part.count, body));
}
