/* library_grid.h - a contraction on a grid that a vendor library computes: what library_grid.c makes phases of,
 * the ways to read it as a call (library_product.c, library_window.c), and what these share (library_call.c). */
#ifndef JIT_CONTRACT_LIBRARY_GRID_H
#define JIT_CONTRACT_LIBRARY_GRID_H

#include "jit/contract/grid.h"
#include "jit/library/library.h"

enum { AXIS_M, AXIS_N, AXIS_K, AXIS_BATCH, AXIS_ROLES };
enum { OF_A, OF_B, OF_D, TENSORS };

/* An order of elements: that of these axes, the last one fastest. */
typedef struct Places {
	int naxis;
	Node *axis[COMP_MAX_AXES];
} Places;
int64_t places_count(const Places *s);

/* Axes of one role that are one in all tensors. */
typedef struct Dimension {
	int role;
	int64_t extent, stride[TENSORS]; /* 0: it has no part in that one */
} Dimension;

/* A contraction, what its call's tensors are, and the call. */
typedef struct GridCall {
	Contract *c;
	const Library *library;
	Operand operand[2];	/* over the axes of its copy, where it has one */
	Node *read[2];		/* what it is an element of: a tensor, or its copy */
	int64_t first[TENSORS]; /* the place where all axes are 0 */
	bool copied[2], direct; /* direct: results go at once into the result, */
	Places place[TENSORS];	/* else into memory in this order, as copies */
	Type type[TENSORS];
	int of[CALL_TENSORS]; /* which of these each of the call's tensors is */
	KernelCall call;      /* as far as sizes and steps go */
	double calls;	      /* 0: it fits no library */
	int ndim;
	Dimension dim[COMP_MAX_AXES];
} GridCall;

/* Is it a tensor that is there, or else memory of the kernel's own? */
bool call_lies(const GridCall *g, int x);
/* How far apart neighbours along the axis are in a tensor. */
int64_t call_stride(const GridCall *g, int x, Node *axis);
/* Adds a group's axes, by falling strides in a tensor. */
void places_add(const GridCall *g, Places *s, const IndexGroup *group, int tensor);
/* The type of what both operands have been rounded to, as it is in memory; else that of the sums. */
Type call_type(const Contract *c);
/* The operands are of this type, elements of tensors or of copies whose order isn't known yet; false: they are not. */
bool call_operands(GridCall *g, Type type);
/* Results go into the result; false: they can't, or members follow. Or into sums, whose order isn't known yet. */
bool call_direct(GridCall *g);
void call_sums(GridCall *g);
/* A call of that kind without dimensions. */
void call_begin(GridCall *g, CallKind kind);
/* Adds a group's axes; false where a place does not grow evenly along one, or falls. Then makes one of those that
 * are one in all tensors. */
bool dimensions_add(GridCall *g, int role, const IndexGroup *group);
void dimensions_merge(GridCall *g);
/* All extents, strides and types of the call; false: there is none. g->c is found, and which operands are copied. */
bool product_find(GridCall *g);
bool window_find(GridCall *g);

#endif
