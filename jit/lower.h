/* lower.h - the ways to make a loop tree, and the schedules that each offers. */
#ifndef JIT_LOWER_H
#define JIT_LOWER_H

#include "jit/emit/emit.h"
#include "jit/schedule/schedule.h"
#include "jit/tree/problem.h"

/* What a kernel of direct nests costs in cycles (tree/cost.c), where a compiler makes vectors; INFINITY: it
 * can't be made so. */
double lower_price(const Task *t, const Schedule *s, const Target *target);

/* problem + schedule -> the phases of a kernel. 0 or an error. */
int lower_nest(Problem *p, const Schedule *s, const Capabilities *caps, Error *err);
/* The same as a piece of another tree, in whose loops it may stand: what runs before the parts that
 * a thread takes, buffers to allocate around it, and its statements. The schedule has no parallel
 * loops, and nothing that takes a phase of its own. */
typedef struct Piece {
	Stmt *before, *alloc, *body;
} Piece;
int nest_piece(Problem *p, const Schedule *s, const Capabilities *caps, Piece *out, Error *err);
/* The default of a direct nest (variant 0), or another of NEST_OFFERS. */
void nest_offer(const Problem *p, const Target *target, int variant, Schedule *s);
/* Do the schedules offered for p carry its reduction from one result to the next? */
bool nest_carries(const Problem *p);
/* sums[from..from+n-1] red= those of the blocks behind the first, `size` apart. */
Stmt *rfactor_add(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size, Node *from,
		  Node *n);
/* ---- on a grid (nest/grid.c) */
/* Threads of a block; bytes of its memory, of a thread's tile of sums; sums of pieces of K. */
enum { GRID_THREADS_MOST = 1024, GRID_BLOCK_BYTES = 48 << 10, GRID_TILE_BYTES = 512 };
/* Bytes of dynamic shared memory of a block that uses tensor cores: every device that has such allows them. */
enum { GRID_FRAGMENT_BYTES = 96 << 10 };
enum { GRID_SUMS = 1 << 25, GRID_EACH_MOST = 16 };
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
/* A section that combines element `at` of nblock blocks of `size` sums, and stores what is made of it. */
typedef Stmt *GridStore(void *user, Node *at, Node *sum);
void grid_sums(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size, GridStore *store,
	       void *user);
/* A piece for the threads of a block, which share it. */
int nest_block_piece(Problem *p, const Schedule *s, const Capabilities *caps, Node *thread,
		     Piece *out, Error *err);
/* A contraction in tiles (contract/grid.c); offers for it as contract_offers. */
int lower_contract_grid(Problem *p, const Schedule *s, const Capabilities *caps, Error *err);
int contract_grid_offers(Problem *p, const Target *target, int room, Schedule *out, double *price);
/* The default of a direct nest on a grid (variant 0), or another of GRID_OFFERS. */
void grid_offer(const Problem *p, const Target *target, int variant, Schedule *s);
/* The same for the threads of one block. */
void grid_piece_offer(const Problem *p, int threads, Schedule *s);
/* Rows of subgraphs (fuse/subgraph.h), of each equation a piece. */
int lower_rows(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
	       const Capabilities *caps, Error *err);
/* The schedules that each loop over the places of a row may have. */
typedef struct RowLoop {
	int member; /* it begins with */
	int n;
	Schedule *schedule;
	int variant[NEST_OFFERS]; /* of these: that of each variant of nests */
} RowLoop;
typedef struct RowOffer {
	int dims, n; /* dimensions that are rows; loops */
	RowLoop *loop;
} RowOffer;
/* lower_price of one loop: loop k of the offer under its schedule i, for all rows. */
double lower_loop_price(const Task *t, const RowOffer *r, int k, int i, const Target *target);
/* direct: nests only. False: there is nothing that one kernel can do. Runs under IR_ENTER. */
bool rows_offer(Ir *ir, const Subgraph *sub, const Target *target, bool direct, RowOffer *r);
/* Of the whole, with schedule pick[k] of loop k; or with the same variant of all nests. */
void rows_schedule(const RowOffer *r, const int *pick, Schedule *s);
void rows_variant(Ir *ir, const RowOffer *r, int variant, Schedule *s);
int grid_rows_offers(Ir *ir, const Subgraph *sub, const Target *target, int room, Schedule *out);
/* The tree of one loop by itself for all rows, that of member k: only its price is of use. */
int row_loop_tree(Tree *tree, const Subgraph *sub, int dims, int k, const Schedule *s,
		  const Target *target, const Capabilities *caps, Error *err);
/* Around micro-kernels. */
int lower_contract(Problem *p, const Schedule *s, const Target *target, const Capabilities *caps,
		   Error *err);
int contract_piece(Problem *p, const Schedule *s, const Target *target, Piece *out, Error *err);
/* *price: of the first, in cycles; INFINITY: there is none. */
int contract_offers(Problem *p, const Target *target, int room, Schedule *out, double *price);
/* One for a piece; false: direct nests are better. */
bool contract_piece_offer(Problem *p, const Target *target, Schedule *s);
/* The same by calls of a vendor library, which is opened for it. */
int lower_library(Problem *p, const Schedule *s, const Target *target, Error *err);
int library_offers(Problem *p, const Target *target, int room, Schedule *out);

#endif
