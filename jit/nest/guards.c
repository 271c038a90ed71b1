/* guards.c - conditions of a nest's body that become IFs as far out as they can.
 *
 * Input: the body and the loops of a schedule. Output: the guards, and at each loop those that are
 * decided there. Invariant: a condition that reads stays under those that stood before it. */
#include "jit/nest/internal.h"

static bool guard_ready(const Build *b, const Node *g)
{
	const Problem *p = b->p;
	for (int j = 0; j < b->nloop; j++)
		if (!b->loop[j].val && node_has((Node *)g, p->axis[b->loop[j].axis]))
			return false;
	return true;
}

Node *guards_take(Build *b, uint64_t *taken)
{
	Node *all = NULL;
	bool earlier = true; /* all before this one are placed: it may rely on them */
	*taken = 0;
	for (int g = 0; b->reducing && g < b->nguard; g++) {
		if (!b->placed[g] && guard_ready(b, b->guard[g]) &&
		    (earlier || !node_reads(b->ir, b->guard[g]))) {
			Node *c = nest_point(b, b->guard[g]);
			all = node_and(b->ir, all, c);
			b->placed[g] = true;
			*taken |= (uint64_t)1 << g;
		}
		earlier &= b->placed[g];
	}
	return all;
}

void guards_return(Build *b, uint64_t taken)
{
	for (int g = 0; g < b->nguard; g++)
		if (taken >> g & 1)
			b->placed[g] = false;
}

void guards_init(Build *b)
{
	Problem *p = b->p;
	b->body = reduce_guards(b->ir, p->red, b->body, MAX_GUARDS, &b->nguard, b->guard);
	/* Conditions of the vector loop stay in the body: lanes decide for themselves. */
	if (b->lanes < 0)
		return;
	int n = 0;
	Node *inside = NULL;
	for (int g = 0; g < b->nguard; g++) {
		bool lanes = false;
		for (int k = b->lanes; k < b->nloop; k++)
			lanes |= node_has(b->guard[g], p->axis[b->loop[b->order[k]].axis]);
		for (int k = 0; k < b->ncache_read; k++)
			lanes |= node_has(b->guard[g], b->cache_read[k].place);
		if (!lanes && !(inside && node_reads(b->ir, b->guard[g]))) {
			b->guard[n++] = b->guard[g];
			continue;
		}
		inside = node_and(b->ir, inside, b->guard[g]);
	}
	b->nguard = n;
	Type t = b->body->type;
	if (!inside)
		return;
	b->body = node_select(b->ir, inside, b->body, node_identity(b->ir, p->red, t, t));
	/* Where lanes may become vectors under masks (jit/tree/predicates.c), these are a read's. */
	if (b->caps->vectors && !b->ncache_read)
		b->body = cache_read_conditions(b, b->body);
}
