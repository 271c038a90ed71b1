/* prefetch.c - while the products of a panel of M are computed, what its results are computed from,
 * and where they are stored, is prefetched: behind the products, arithmetic would wait for it.
 *
 * Input: a contraction's members; later the place of a tile in a block. Output: statements that
 * prefetch the tile's share. Invariant: no value changes. */
#include "jit/contract/internal.h"

enum { FETCHES_MOST = 8 };

typedef struct Fetch {
	Node *buffer, *index;
	bool down; /* lines of the cache run along M, not N */
} Fetch;

struct Fetches {
	Contract *c;
	size_t least; /* bytes of a tensor */
	int n;
	Fetch of[FETCHES_MOST];
};

/* Does a line hold only elements that follow each other along s? */
static bool runs_along(const Contract *c, const IndexGroup *s, Node *buffer, Node *index)
{
	return contract_run(c, s, index, 1) * (int64_t)type_size((Type)buffer->type) >= LINE;
}

static void add_fetch(Fetches *f, Node *buffer, Node *index)
{
	Contract *c = f->c;
	bool down = !runs_along(c, &c->n, buffer, index);
	if (tensor_bytes(buffer) < f->least || f->n == FETCHES_MOST ||
	    (down && !runs_along(c, &c->m, buffer, index)))
		return;
	for (int k = 0; k < f->n; k++)
		if (f->of[k].buffer == buffer && f->of[k].index == index)
			return;
	f->of[f->n++] = (Fetch){buffer, index, down};
}

static void see_read(void *user, Node *n)
{
	if (n->op == OP_READ)
		add_fetch(user, n->src[0], n->src[1]);
}

Fetches *fetches_find(Contract *c, const Target *target)
{
	const Problem *p = c->p;
	Fetches *f = arena_alloc(&c->ir->arena, sizeof *f);
	*f = (Fetches){.c = c, .least = target->l2};
	for (int k = 0; k < p->nout; k++) {
		node_walk(c->ir, p->out_value[k], see_read, f);
		add_fetch(f, p->out[k], p->out_index[k]);
	}
	return f->n ? f : NULL;
}

/* The tile's lines of one tensor. */
static Stmt *fetch_lines(Contract *c, const Fetch *f, const Extent *m, const Extent *n)
{
	Ir *ir = c->ir;
	const Extent *in = f->down ? m : n, *out = f->down ? n : m;
	int64_t line = LINE / (int64_t)type_size((Type)f->buffer->type);
	Node *y = tree_axis(c->t, out->most), *last = node_sub(ir, in->count, contract_int(c, 1));
	Stmt *lines = NULL;
	for (int64_t e = 0; e < in->most; e += line) {
		Node *x = node2(ir, OP_MIN, contract_int(c, e), last);
		Point point = {.n = 2,
			       .group = {&c->m, &c->n},
			       .at = {node_add(ir, m->from, f->down ? x : y),
				      node_add(ir, n->from, f->down ? y : x)}};
		Node *place = contract_tabulate(c, f->index, &point);
		lines = stmt_seq(lines, stmt_prefetch(c->t, f->buffer, place));
	}
	return stmt_loop(c->t, HOW_SERIAL, y, NULL, out->count, lines);
}

Stmt *fetches_tile(const Fetches *f, const Extent *m, const Extent *n)
{
	Stmt *all = NULL;
	for (int k = 0; k < f->n; k++)
		all = stmt_seq(all, fetch_lines(f->c, &f->of[k], m, n));
	return all;
}
