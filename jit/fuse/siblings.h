/* siblings.h - equations of the same form that become one (siblings.c), sums of them too (sums.c). */
#ifndef JIT_SIBLINGS_H
#define JIT_SIBLINGS_H

#include "jit/fuse/internal.h"

enum { SIBLINGS_MOST = 64, DEPTH_MOST = 8 };

typedef struct Stack { /* of n tensors t[] as one */
	int n;
	Node **t;
	bool computed; /* by one equation; else copied */
	Node *tensor;  /* once it is made */
	struct Stack *next;
} Stack;

typedef struct Siblings {
	Fuse *f;
	Ir *ir;
	int n;
	Node **order;
	Use **uses;
	bool *root;	      /* by id */
	bool *apart;	      /* by id: with its siblings, it stays an equation of its own */
	int *level;	      /* by id: equations on the longest path that leads there */
	Stack **of;	      /* by id: the stack that is computed in its place */
	const Node **inside;  /* by id: the longer sum that its terms belong to */
	const void **summand; /* by id: the sum that it might be computed for alone */
	NodeMap stacks;	      /* lists, by the first tensor */
	Stack **made;	      /* all, in the order of their making */
	int nmade, room;
	NodeMap whole; /* what sums_apart took apart, as it was */
	NodeMap sums;  /* by the equation that adds them (sums.c) */
	NodeMap now;
} Siblings;

/* ---- stacks (stacks.c) */
Stack *stack_add(Siblings *s, int n, Node *const *t, bool computed);
/* Forgets all stacks but the first so many. */
void stacks_drop(Siblings *s, int most);
double stack_bytes(int n, Node *const *t);
/* May these be computed by one equation? */
bool stack_may_join(const Siblings *s, int n, Node *const *c, Form *form);
/* Bytes that are copied because tensors of their own are needed of what one equation computes now. */
double stack_slices_copied(const Siblings *s, int n, Node *const *t);
/* Stacks all that the rows name; the bytes that this copies. */
double stacks_take(Siblings *s, const Form *form, int depth);
/* Does it pay to compute n equations as one, with so many bytes less? If not, only the first `made` stacks are
 * kept. */
bool stacks_decide(Siblings *s, const char *what, const Node *first, int n, double bytes, int made);
/* The equations as one; its stacks are there or are made. */
Node *stacks_join(Siblings *s, int n, Node *const *c, bool summed);
Node *stack_tensor(Siblings *s, Stack *k);
/* What the tensor is now. */
Node *stack_now(const Siblings *s, Node *t);

/* ---- sums (sums.c) */
/* Terms of one form of a sum become equations of their own. */
void sums_apart(Siblings *s, int nroot, Node **roots);
/* Finds sums of tensors of the same form, which may be the sum of fewer. */
void sums_find(Siblings *s);
void sums_decide(Siblings *s);
/* c as it is now, where it is such a sum, or was one with its terms in it; else NULL. */
Node *sum_now(Siblings *s, Node *c);

#endif
