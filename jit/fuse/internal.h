/* internal.h - the parts of the partition (partition.c): what is inlined (inline.c) and what becomes
 * one kernel (group.c), by what it saves (reward.c). */
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
	double pd;		   /* dev's, for this graph */
	bool inlines, tiles, axes; /* the depths of fusion that are on (RICCI_UNFUSED) */
	size_t nid;		   /* ids of the original graph */
	Use **uses;		   /* by id */
	bool *root;		   /* by id */
	Node **now;		   /* by id: the equation as it is now; its body when inlined */
	bool *inlined;		   /* by id: substituted into its readers */
	int *group_of;		   /* by id of the equation as it is now; -1 none */
	size_t group_ids;
	Group *group;
	int ngroup;
	Node ***reads; /* by id of the equation as it is now: comp_reads, once known */
	int *nread;
	Text dump;
	bool dumping;
} Fuse;

typedef struct Reads { /* the READ nodes of one tensor in an expression, sources first */
	Ir *ir;
	Node *tensor; /* NULL: of all */
	Node **read;
	int n, room;
} Reads;

double fuse_reward(const Fuse *f, double bytes, double flops, double launches);
void fuse_say(Fuse *f, const char *what, const Node *c, double bytes, double flops, double launches,
	      const char *verdict);
/* All reads in e; c's reads of the tensor. */
Reads fuse_reads_in(Ir *ir, Node *e);
Reads fuse_reads(Ir *ir, const Node *c, Node *tensor);
void fuse_inline(Fuse *f, int nroot, Node **roots);
/* Equations to kernels, in an order that can run. */
void fuse_group(Fuse *f, int nroot, Node *const *roots, int *nsub, Subgraph **subs);

#endif
