/* reward.c - what decisions of the partition go by: what one saves, how it is told
 * (RICCI_DUMP=fuse), and which reads there are. */
#include "jit/fuse/internal.h"

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

Reads fuse_reads_in(Ir *ir, Node *e)
{
	Reads r;
	r.n = node_collect(ir, e, OP_READ, &r.read);
	return r;
}

Reads fuse_reads(Ir *ir, const Node *c, Node *tensor)
{
	Reads own = {0};
	int room = 0;
	for (int d = -1; d < tensor_rank(c); d++) {
		Reads r = fuse_reads_in(ir, d < 0 ? comp_body(c) : comp_lhs(c, d));
		for (int k = 0; k < r.n; k++) {
			if (r.read[k]->src[0] != tensor)
				continue;
			own.read = arena_grow(&ir->arena, own.read, own.n, &room, sizeof *own.read);
			own.read[own.n++] = r.read[k];
		}
	}
	return own;
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
