/* internal.h - the parts of the partition (partition.c): which equations become one (siblings.c), what is
 * inlined (inline.c) and what becomes one kernel (group.c), by what it saves (reward.c). */
#ifndef JIT_FUSE_INTERNAL_H
#define JIT_FUSE_INTERNAL_H

#include "jit/fuse/subgraph.h"

enum { INPUTS_MOST = 24, MEMBERS_MOST = 64 };

typedef struct Use { /* one reader of a tensor */
	Node *reader;
	struct Use *next;
} Use;

enum { GROUPS_BACK = 64 }; /* what is new may join one of so many latest groups */

typedef struct Group {
	Node **member;
	int nmember, room;
	/* Which of the latest groups must run before this one: group k's bit is k % GROUPS_BACK; as
	 * of when there were `known` groups. */
	uint64_t before;
	int known;
	int *after; /* the groups that read what this one computes */
	int nafter, after_room;
} Group;

typedef struct Fuse {
	Ir *ir;
	const DeviceModel *dev;
	double pd;			     /* dev's, for this graph */
	bool siblings, inlines, tiles, axes; /* the depths of fusion that are on (RICCI_UNFUSED) */
	size_t nid;			     /* ids of the original graph */
	Use **uses;			     /* by id */
	bool *root;			     /* by id */
	Node **now;    /* by id: the equation as it is now; its body when inlined */
	bool *inlined; /* by id: substituted into its readers */
	int *group_of; /* by id of the equation as it is now; -1 none */
	size_t group_ids;
	Group *group;
	int ngroup;
	Node ***reads; /* by id of the equation as it is now: comp_reads, once known */
	int *nread;
	Text dump;
	bool dumping;
} Fuse;

typedef struct Reads { /* READ nodes in an expression, sources first */
	Node **read;
	int n;
} Reads;

double fuse_reward(const Fuse *f, double bytes, double flops, double launches);
void fuse_say(Fuse *f, const char *what, const Node *c, double bytes, double flops, double launches,
	      const char *verdict);
/* Who reads each tensor of order[], by id. */
Use **fuse_uses(Ir *ir, int n, Node *const *order);
/* A sum of products: its factors may be gathered into panels, each element a few times, not once a
 * multiplication. */
bool fuse_is_contraction(Ir *ir, const Node *c);
/* Does c read t at its own element only? */
bool fuse_reads_own(Ir *ir, const Node *c, Node *t);
/* All reads in e; c's reads of the tensor. */
Reads fuse_reads_in(Ir *ir, Node *e);
Reads fuse_reads(Ir *ir, const Node *c, Node *tensor);
/* Equations of the same form that share an operand become one (siblings.c). */
void fuse_siblings(Fuse *f, int nroot, Node **roots);
void fuse_inline(Fuse *f, int nroot, Node **roots);
/* Sums of products get the order of dimensions in which they are read (dimensions.c). */
void fuse_dimensions(Fuse *f, int nroot, Node **roots);
/* Factors that a sum doesn't run over leave it (factors.c). */
void fuse_factors(Fuse *f, int nroot, Node **roots);
/* What is read across short lines is read from a transposed copy (short_lines.c). */
void fuse_short_lines(Fuse *f, int nroot, Node **roots);
/* Does the reader ask whether what it reads equals another float (the ties of max=)? Computed
 * again, in another kernel, a value may be rounded otherwise and equal nothing. */
bool fuse_compares_equal(Fuse *f, const Node *reader, const Reads *reads);
/* ---- groups (group.c) ---- */
/* comp_reads of an equation as it is now, found once. */
static inline int group_reads(Fuse *f, const Node *c, Node ***reads)
{
	if (!f->reads[c->id])
		f->nread[c->id] = comp_reads(f->ir, c, &f->reads[c->id]);
	*reads = f->reads[c->id];
	return f->nread[c->id];
}
/* The number of the tensor's group, of the group's member; -1: none. */
static inline int group_of(const Fuse *f, const Node *t)
{
	return t->id < f->group_ids ? f->group_of[t->id] : -1;
}
static inline int group_member(const Group *g, const Node *t)
{
	for (int k = 0; k < g->nmember; k++)
		if (g->member[k] == t)
			return k;
	return -1;
}
static inline void group_add(Fuse *f, Group *g, Node *c)
{
	/* A loop may have any number of results. */
	g->member = arena_grow(&f->ir->arena, g->member, g->nmember, &g->room, sizeof *g->member);
	g->member[g->nmember++] = c;
}
/* Other groups than t's own that use it compute it themselves, where all of them can for nothing but arithmetic, and
 * less than it saves (repeat.c). */
void fuse_repeat(Fuse *f, const Use *uses, Node *t);
/* Equations to kernels, in an order that can run. */
void fuse_group(Fuse *f, int nroot, Node *const *roots, int *nsub, Subgraph **subs);

/* ---- equations of the same form (form.c) ---- */
/* Bodies of the same form: the i-th distinct READ of the first one is row i, of which read[i * n + k] stands
 * in body k at its place. */
typedef struct Form {
	int n, nrow, room;
	Node **read;
} Form;
/* False: the n equations differ in more than what they read. */
bool form_find(Ir *ir, int n, Node *const *comp, Form *form);
/* The tensors of row i. */
void form_row(const Form *form, int i, Node **t);
/* Is the first one's body linear in the rows that differ, and all of these read at the same indices? */
bool form_is_linear(const Form *form, const Node *first);
/* The first one with tensor[i] in row i; NULL: as it is. */
Node *form_over(Ir *ir, const Form *form, const Node *first, Node *const *tensor);
/* Do the reads of row i name different tensors? */
bool form_row_differs(const Form *form, int i);
/* The equations as one: T[g, ..], which is comp[g], or with `summed` their sum. tensor[i]: what has the tensors of
 * row i, [g, ..]; NULL where they are the same. */
Node *form_stack(Ir *ir, const Form *form, const Node *first, Node *const *tensor, bool summed);
/* T[g, ..] = t[g][..], copied. */
Node *stack_copy(Ir *ir, int n, Node *const *t);
/* V[..] = stack[k, ..] */
Node *stack_slice(Ir *ir, Node *stack, int k);

#endif
