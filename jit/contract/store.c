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

/* The block's sums column by column, in a buffer of their own; *line: from one to the next. */
static Stmt *transposed_sums(Contract *c, const Blocking *h, Node **sums, int64_t *line)
{
	Type type = (Type)h->c->type;
	*line = contract_pitch(h->mc + 1, type, 256); /* a row more: see sums_room */
	*sums = tree_buffer(c->t, SPACE_SCRATCH, "pt", type, h->nc * *line);
	return stmt_transpose(c->t, (CallArg){*sums, contract_int(c, 0)}, *line,
			      (CallArg){h->c, h->c_at}, h->c_row, h->cols, h->rows);
}

/* Do all that the members read lie evenly along so many of the group's elements side by side? */
static bool reads_lie_evenly(Contract *c, const IndexGroup *s, int64_t elements)
{
	Node **read;
	int64_t stride;
	for (int k = 0; k < c->p->nout; k++) {
		int n = node_collect(c->ir, c->p->out_value[k], OP_READ, &read);
		for (int i = 0; i < n; i++)
			for (int d = 1; d < read[i]->nsrc; d++)
				if (!contract_even(c, s, read[i]->src[d], elements, &stride) &&
				    stride != INT64_MIN)
					return false;
	}
	return true;
}

/* The elements of a line that are stored by one vector loop: the most along which also all reads are even, so that
 * none is gathered; where these are too few, all that lie together. */
static int64_t lines_run(Contract *c, const IndexGroup *s)
{
	int64_t all = contract_run(c, s, c->p->index, 1), elements = 1, best = 0;
	for (int k = s->naxis - 1; k >= 0; k--) {
		elements *= axis_extent(s->axis[k]);
		if (all % elements == 0 && elements >= 2 * LANES_RUN &&
		    reads_lie_evenly(c, s, elements))
			best = elements;
	}
	return best ? best : all;
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
	/* Lanes run along the results' lines, and so must the sums. */
	bool down = block_stores_down(c);
	IndexGroup *in = down ? &c->m : &c->n, *out = down ? &c->n : &c->m;
	const Extent *part = down ? m : n, *across = down ? n : m;
	Node *sums = h->c, *from = block_sum(c, h, m->from, n->from);
	int64_t line = h->c_row;
	if (down) {
		transpose = transposed_sums(c, h, &sums, &line);
		from = contract_int(c, 0);
	}
	Node *y = tree_axis(c->t, across->most);
	Point point = {.n = 2, .group = {in, out}, .at = {NULL, node_add(ir, across->from, y)}};
	Lanes lanes = lanes_along(c, part, lines_run(c, in), &point);
	/* Elements past the end are not visited: a single axis needs no table. */
	c->m.direct = c->m.naxis == 1;
	c->n.direct = c->n.naxis == 1;
	Node *place = node_add(ir, from, node_add(ir, node_scale(ir, y, line), lanes.at));
	Stmt *body = store_element(c, sums, place, &point);
	c->m.direct = c->n.direct = false;
	body = lanes_loops(c, &lanes, NULL, body);
	return stmt_seq(transpose, stmt_loop(c->t, HOW_SERIAL, y, NULL, across->count, body));
}
