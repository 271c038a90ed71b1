/* repeat.c - what is cheap is computed again, where all it is made of is read anyway.
 *
 * In: groups of equations, and a pointwise one, T = f(X, ..), that other groups than its own read. Out: where each of
 * them reads X, .. too and runs by rows, T is a member of it as well, and is neither stored nor loaded. The output of
 * batch norm and relu, say, is made of what its gradient reads. Invariant: who compares for equality (the ties of max=)
 * reads what was compared first; computed again it may be rounded otherwise. */
#include "jit/fuse/internal.h"

#include <string.h>

/* The first member that reads the tensor; nmember: none does. */
static int first_reader(Fuse *f, const Group *h, const Node *t)
{
	for (int k = 0; k < h->nmember; k++) {
		Node **reads;
		int n = group_reads(f, h->member[k], &reads);
		for (int i = 0; i < n; i++)
			if (reads[i] == t)
				return k;
	}
	return h->nmember;
}

/* t as a member before number `at` of n, and room for it. */
static void insert(Node **member, int n, int at, Node *t)
{
	memmove(member + at + 1, member + at, (size_t)(n - at) * sizeof *member);
	member[at] = t;
}

/* Could the group, of rows, compute t itself, from what it reads anyway? */
static bool may_repeat(Fuse *f, const Group *h, Node *t)
{
	Node **reads, *all[MEMBERS_MOST + 1];
	int n = group_reads(f, t, &reads);
	bool has = h->member[0]->op == OP_COMP && h->nmember < MEMBERS_MOST;
	for (int i = 0; i < n && has; i++)
		has = first_reader(f, h, reads[i]) < h->nmember && group_member(h, reads[i]) < 0;
	for (int k = 0; k < h->nmember && has; k++) {
		Reads r = fuse_reads_in(f->ir, comp_body(h->member[k]));
		has = !fuse_compares_equal(f, h->member[k], &r);
	}
	if (!has)
		return false;
	memcpy(all, h->member, (size_t)h->nmember * sizeof *all);
	insert(all, h->nmember, first_reader(f, h, t), t);
	return subgraph_rows_suit(f->ir, h->nmember + 1, all, f->dev) > 0;
}

/* t as a member of the group, before who reads it. */
static void group_repeat(Fuse *f, Group *h, Node *t)
{
	int at = first_reader(f, h, t);
	group_add(f, h, t); /* room */
	insert(h->member, h->nmember - 1, at, t);
}

/* Groups other than its own that read the tensor; -1: more than `most`. */
static int other_groups(const Fuse *f, const Use *uses, const Node *t, int most, int *group)
{
	int n = 0;
	for (const Use *u = uses; u; u = u->next) {
		int at = group_of(f, u->reader);
		bool known = at == group_of(f, t);
		for (int k = 0; k < n; k++)
			known |= group[k] == at;
		if (known)
			continue;
		if (n == most)
			return -1;
		group[n++] = at;
	}
	return n;
}

void fuse_repeat(Fuse *f, const Use *uses, Node *t)
{
	enum { GROUPS_MOST = 4 };
	int group[GROUPS_MOST];
	if (t->op != OP_COMP || comp_reduce(t) != RED_NONE || !comp_is_dense(t))
		return;
	/* Its own group goes on to compute it for who reads it there; else that would be for nobody. */
	const Group *own = &f->group[group_of(f, t)];
	if (first_reader(f, own, t) == own->nmember)
		return;
	int n = other_groups(f, uses, t, GROUPS_MOST, group);
	double bytes = (double)tensor_bytes(t), flops = comp_flops(f->ir, t);
	if (n <= 0 || fuse_reward(f, (n + 1) * bytes, -n * flops, 0) <= 0)
		return;
	for (int k = 0; k < n; k++)
		if (group[k] < 0 || !may_repeat(f, &f->group[group[k]], t))
			return;
	for (int k = 0; k < n; k++)
		group_repeat(f, &f->group[group[k]], t);
	fuse_say(f, "repeat", t, (n + 1) * bytes, -n * flops, 0, "yes");
}
