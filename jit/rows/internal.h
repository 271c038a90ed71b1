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
	bool folds, grid;	 /* grid: the rows are one */
	int64_t stream;		 /* results of so many bytes are written past the caches */
	Rows r;
	Node *line, *from, *row; /* a row of a block, the block's first, the row's number */
	Stmt *alloc;		 /* of rows of tensors */
} RowKernel;

/* dims: the first dimensions, which are rows. */
void row_kernel_init(RowKernel *b, Tree *tree, const Subgraph *sub, int dims, bool grid,
		     int64_t stream);
/* The problem of the loop that begins with member k, for one row. 0 or an error. */
int row_problem(const RowKernel *b, int k, Problem *p);

/* The statements of a row prefetch the next one, as far as it is of tensors of `least` bytes and
 * more. */
void rows_prefetch(const RowKernel *b, size_t least, Stmt *body);

#endif
