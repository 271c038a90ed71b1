/* grid.h - trees for grids of blocks and threads: what all ways to lower for one share. */
#ifndef JIT_GRID_H
#define JIT_GRID_H

#include "jit/tree/tree.h"

/* Threads of a block; bytes of its memory, of a thread's tile of sums; sums of pieces of K; parts of a thread. */
enum {
	GRID_THREADS_MOST = 1024,
	GRID_BLOCK_BYTES = 48 << 10,
	GRID_TILE_BYTES = 512,
	GRID_SUMS = 1 << 25,
	GRID_EACH_MOST = 16
};
/* Bytes of dynamic shared memory of a block that uses tensor cores: every device that has such allows them; and of
 * one whose groups of warps do. */
enum { GRID_FRAGMENT_BYTES = 96 << 10, GRID_GROUP_BYTES = 227 << 10 };

/* ---- threads that share a part (grid.c) */
/* The threads of a block: `own` parts of `together` threads each, `step` apart. */
typedef struct GridThreads {
	int64_t own, together, step;
	Node *thread, *part, *of; /* its number; its part in the block; which of the part's it is */
	Node *busy;		  /* some may have no part */
} GridThreads;
/* apart: the threads of a part aren't neighbours, those of neighbouring parts are. */
GridThreads grid_threads(Ir *ir, Node *thread, int64_t together, bool apart);
/* Combines *value of all threads of a part; behind the statements it is the whole for the first of them.
 * All threads of the block come here. */
Stmt *block_combine(Tree *t, const GridThreads *g, Reduce red, Node **value);

/* ---- sums in blocks, of processors and grids (sums.c) */
/* What is stored of sum number `at`. */
typedef Stmt *SumStore(void *user, Node *at, Node *sum);
/* Adds a section that combines nblock blocks of `size` sums each, and stores what is made of each sum. */
void sums_section(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size, SumStore *store,
		  void *user);

#endif
