/* problem.h - what a loop tree is made for: a subgraph with flat indices. */
#ifndef JIT_PROBLEM_H
#define JIT_PROBLEM_H

#include "jit/tree/tree.h"

/* ---- problems (problem.c): a task's subgraph with flat indices and collapsed axes
 * main: out[0][index] red= body over axes; afterwards, at each spatial point, every member's value.
 * Spatial axes come first, by falling stride of the output; then the reduced ones. `result` stands
 * for main's finished value in the members' values. */
#define PROBLEM_MAX_MEMBERS 64
/* A read of main's body as it was written: dimension by dimension. Where axes were merged a
 * dimension may run past its end; the flat index is right. */
typedef struct ProblemRead {
	Node *read;
	int rank;
	Node *dim[RICCI_MAX_RANK];
	int64_t stride[RICCI_MAX_RANK];
} ProblemRead;
typedef struct Problem {
	Tree *tree;
	Ir *ir;
	const Subgraph *sub;
	int naxis, nspatial;
	Node *axis[COMP_MAX_AXES];
	Reduce red;
	Type type, acc; /* of main: stored and accumulated */
	bool scatter; /* the left side is not one-to-one: serial read-modify-write of the output */
	bool partial; /* one-to-one, but not every element is written: fill first */
	const struct Rows
		*rows; /* NULL, or a row's share of a subgraph: it has no parts of its own */
	Node *body, *result;
	int nread, read_room; /* of the body */
	ProblemRead *read;
	Node *index; /* main's flat left side over its axes */
	int nout;    /* members that are stored, main included where it is */
	Node *out[PROBLEM_MAX_MEMBERS], *out_index[PROBLEM_MAX_MEMBERS],
		*out_value[PROBLEM_MAX_MEMBERS];
	int64_t main_size;
	Reduce out_red[PROBLEM_MAX_MEMBERS]; /* how: = or, of a fold, added to what is there */
	Node *main_out;			     /* main's buffer, NULL when it is not stored */
	int nfree; /* scatter: axes of dimensions whose places they number, and of no others */
	Node *free_axis[COMP_MAX_AXES];
	int rank; /* scatter: of main, with its shape and left indices */
	int64_t shape[RICCI_MAX_RANK];
	Node *lhs[RICCI_MAX_RANK]; /* rows come first */
} Problem;
/* Where an equation of a subgraph with rows finds its tensors, and the row that it computes. */
typedef struct Rows {
	int rows, ntensor;
	Node *index[RICCI_MAX_RANK]; /* the row, dimension by dimension */
	Node **tensor, **buffer;
	bool *local; /* the buffer holds one row */
	int *lead;   /* the dimension of the tensor that rows begin at */
	Node **sums; /* NULL, or what a fold adds to in place of its buffer: its place `block` */
	Node *block;
	Node *outer[2];	 /* the axes that the row's number is made of */
	Node **streamed; /* NULL, or where rows of the buffer are written past the caches */
} Rows;
/* The problem of a subgraph; or (rows) of one row of one equation, or of several that are pointwise over the
 * places of a row. NULL with an error in tree->ir. */
Problem *problem_new(Tree *tree, const Subgraph *sub, const Rows *rows);
/* Stores the members at the point where these axes are `at`, of main's accumulated value there. */
Stmt *problem_store(const Problem *p, int n, Node *const *axis, Node *const *at, Node *value);
/* Replaces axes wherever the problem has them. */
void problem_replace(Problem *p, int n, Node *const *from, Node *const *to);
/* Axis number `axis` of as many as there were before becomes two, the inner one of so many places. */
typedef struct ProblemCut {
	int axis;
	int64_t places;
} ProblemCut;
/* A copy with an axis for each quotient and remainder of one (quotients.c); NULL: there are none. cut[0 .. *ncut - 1],
 * which has COMP_MAX_AXES or is NULL: how, one after the other. */
Problem *problem_cut(const Problem *p, int *ncut, ProblemCut *cut);
/* A copy with one axis in place of number `at` and the next one, which are both spatial or both reduced (quotients.c);
 * NULL: they are not. */
Problem *problem_joined(const Problem *p, int at);
/* A copy in which merged axes that run past the end of a read's dimension are apart again (quotients.c). */
Problem *problem_unmerged(const Problem *p);
/* The axes that number the places of dimension d of a scatter, one that stands bare in it or several that no other
 * dimension has: how many; 0: no axes do. */
int problem_place_axes(const Problem *p, int d, Node **axis);
/* What is remembered of a read of main's body; NULL: nothing. */
const ProblemRead *problem_read(const Problem *p, const Node *read);
/* Is the element at these coordinates inside the tensor wherever cond holds? */
bool problem_read_inside(const Problem *p, const ProblemRead *r, Node *const *at, Node *cond);
/* Is e a number wherever all elements of tensors are numbers, as long as no sum or product leaves its type?
 * Then it may be multiplied by zero where a condition leaves it out. */
bool stays_finite(const Tree *t, Node *e);
/* The accumulated value v as one of the result's type: integers wrap. */
Node *problem_narrow(const Problem *p, Node *v);

#endif
