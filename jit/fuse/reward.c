/* reward.c - what decisions of the partition go by: what one saves, how it is told
 * (RICCI_DUMP=fuse), and which reads there are. */
#include "jit/fuse/internal.h"

#include <string.h>

double fuse_reward(const Fuse *f, double bytes, double flops, double launches)
{
	return bytes / f->pd + flops / f->dev->pc + launches * f->dev->launch;
}

void fuse_say(Fuse *f, const char *what, const Node *c, double bytes, double flops, double launches,
	      const char *verdict)
{
	if (f->dumping)
		text_add(&f->dump, "%-8s #%u dT %.0f dC %.0f dK %.0f R %.3g us: %s\n", what, c->id,
			 bytes, flops, launches, 1e6 * fuse_reward(f, bytes, flops, launches),
			 verdict);
}

/* A list with room for more than n items: the old one, or a copy in twice the room. */
static void *list_grow(Arena *a, void *old, int n, int *room, size_t size)
{
	if (n < *room)
		return old;
	*room = *room ? 2 * *room : 4;
	void *list = arena_alloc(a, (size_t)*room * size);
	if (n)
		memcpy(list, old, (size_t)n * size);
	return list;
}

static void see_read(void *user, Node *n)
{
	Reads *r = user;
	if (n->op != OP_READ || (r->tensor && n->src[0] != r->tensor))
		return;
	r->read = list_grow(&r->ir->arena, r->read, r->n, &r->room, sizeof *r->read);
	r->read[r->n++] = n;
}

Reads fuse_reads_in(Ir *ir, Node *e)
{
	Reads r = {.ir = ir};
	node_walk(ir, e, see_read, &r);
	return r;
}

Reads fuse_reads(Ir *ir, const Node *c, Node *tensor)
{
	Reads r = {.ir = ir, .tensor = tensor};
	node_walk(ir, comp_body(c), see_read, &r);
	for (int d = 0; d < tensor_rank(c); d++)
		node_walk(ir, comp_lhs(c, d), see_read, &r);
	return r;
}

Use **fuse_uses(Ir *ir, int n, Node *const *order)
{
	Use **uses = arena_alloc(&ir->arena, ir->count * sizeof *uses);
	for (int k = 0; k < n; k++) {
		Node **reads;
		int m = comp_reads(ir, order[k], &reads);
		for (int j = 0; j < m; j++) {
			Use *u = arena_alloc(&ir->arena, sizeof *u);
			*u = (Use){order[k], uses[reads[j]->id]};
			uses[reads[j]->id] = u;
		}
	}
	return uses;
}

bool fuse_reads_own(Ir *ir, const Node *c, Node *t)
{
	Reads r = fuse_reads(ir, c, t);
	for (int k = 0; k < r.n; k++)
		for (int d = 0; d < tensor_rank(t); d++)
			if (r.read[k]->src[1 + d] != comp_axis(c, d))
				return false;
	return true;
}
