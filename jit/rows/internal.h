/* internal.h - a kernel of several equations that run row by row: its buffers and its loops (rows.c),
 * the schedules offered for it (offer.c), the memory of the next row (prefetch.c). */
#ifndef JIT_ROWS_INTERNAL_H
#define JIT_ROWS_INTERNAL_H

#include "jit/fuse/subgraph.h"
#include "jit/lower.h"

typedef struct RowKernel {
	const Subgraph *sub; /* with as many dimensions as rows as the schedule says */
	const RowLoops *loops;
	Tree *tree;
	int64_t rows, n, height; /* n blocks of height rows; without folds a row each */
	bool folds;
	int64_t stream;	    /* results of so many bytes are written past the caches */
	int threads;	    /* of a block of a grid; 0: there is none */
	bool single;	    /* a thread for each row; else a block */
	Node *thread;	    /* its number in the block */
	size_t block_bytes; /* of its memory, for rows */
	Rows r;
	Node *line, *from, *row; /* a row of a block, the block's first, the row's number */
	Stmt *alloc;		 /* of rows of tensors */
} RowKernel;

/* What the steps before the members say. */
typedef struct RowsHead {
	int dims;	/* the first dimensions, which are rows */
	int64_t stream; /* results of so many bytes are written past the caches */
	int threads;	/* of a block; 0: there is no grid */
	bool single;	/* a thread for each row; else a block */
} RowsHead;
void row_kernel_init(RowKernel *b, Tree *tree, const Subgraph *sub, RowsHead head);
/* The problem of the loop that begins with member k, for one row. NULL: an error. */
Problem *row_problem(const RowKernel *b, int k);

/* The statements of a row prefetch the next one, as far as it is of tensors of `least` bytes and
 * more. */
void rows_prefetch(const RowKernel *b, size_t least, Stmt *body);

#endif
