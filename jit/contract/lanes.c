/* lanes.c - loops along the lanes of a panel, or of results' lines.
 *
 * Input: elements of an index group, of which `run` at a time lie together in memory (the group's last axes).
 * Output: a vector loop in each run that they meet, in which places grow by one from lane to lane, so that
 * vectors are loaded and stored as they lie and not gathered. */
#include "jit/contract/internal.h"

/* The loop over all runs that the part meets: *first is the run's first element in the part, *n how
 * many it has there. */
static Stmt *run_loop(Contract *c, const IndexGroup *s, const Extent *part, int64_t run,
		      Node **first, Node **n)
{
	Ir *ir = c->ir;
	Node *number = tree_axis(c->t, (part->most + run - 2) / run + 1);
	Node *origin = node_add(ir, s->origin, part->from);
	Node *before = node_floordiv(ir, origin, run);
	Node *at = node_sub(ir, node_scale(ir, node_add(ir, before, number), run), origin);
	Node *behind = node_add(ir, node_add(ir, origin, part->count), contract_int(c, run - 1));
	*first = node2(ir, OP_MIN, node2(ir, OP_MAX, at, contract_int(c, 0)),
		       contract_int(c, part->most - 1));
	*n = node_sub(ir, node2(ir, OP_MIN, node_add(ir, at, contract_int(c, run)), part->count),
		      *first);
	return stmt_loop(c->t, HOW_SERIAL, number, NULL,
			 node_sub(ir, node_floordiv(ir, behind, run), before), NULL);
}

/* Is the part in one run, wherever in the group it begins? */
static bool one_run(Contract *c, const IndexGroup *s, const Extent *part, int64_t run)
{
	Node *origin = node_add(c->ir, s->origin, part->from);
	return run == s->extent || (run % part->most == 0 && origin->mul % part->most == 0);
}

Lanes lanes_along(Contract *c, const Extent *part, int64_t run, Point *point)
{
	const IndexGroup *s = point->group[0];
	bool runs = run >= LANES_RUN, many = runs && !one_run(c, s, part, run);
	Lanes l = {.x = tree_axis(c->t, many && run < part->most ? run : part->most),
		   .count = part->count};
	Node *first = contract_int(c, 0);
	if (many)
		l.runs = run_loop(c, s, part, run, &first, &l.count);
	l.at = node_add(c->ir, first, l.x);
	point->at[0] = node_add(c->ir, part->from, runs ? first : l.x);
	point->lane = runs ? l.x : NULL;
	point->run = run;
	return l;
}

Stmt *lanes_loops(Contract *c, const Lanes *l, Stmt *between, Stmt *body)
{
	body = stmt_loop(c->t, HOW_VECTOR, l->x, NULL, l->count, body);
	if (between) {
		between->body = body;
		body = between;
	}
	if (!l->runs)
		return body;
	l->runs->body = body;
	return l->runs;
}
