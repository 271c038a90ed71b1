/* lower.h - the ways to make a loop tree, and the schedules that each offers. lower.c and offer.c put them
 * together. A way makes a kernel's phases (0 or an error), or a piece of another tree. */
#ifndef JIT_LOWER_H
#define JIT_LOWER_H

#include "jit/emit/emit.h"
#include "jit/schedule/schedule.h"
#include "jit/tree/grid.h"
#include "jit/tree/problem.h"

/* A piece of another tree, in whose loops it may stand: what runs before the parts that a thread takes,
 * buffers to allocate around it, and its statements. Its schedule has no parallel loops, and nothing that
 * takes a phase of its own. */
typedef struct Piece {
	Stmt *before, *alloc, *body;
} Piece;

/* ---- direct nests (nest/) */
int lower_nest(Problem *p, const Schedule *s, const Capabilities *caps, Error *err);
int nest_piece(Problem *p, const Schedule *s, const Capabilities *caps, Piece *out, Error *err);
/* A piece for the threads of a block, which share it. */
int nest_block_piece(Problem *p, const Schedule *s, const Capabilities *caps, Node *thread,
		     Piece *out, Error *err);
/* The default of a direct nest (variant 0), or another of NEST_OFFERS. */
void nest_offer(const Problem *p, const Target *target, int variant, Schedule *s);
/* On a grid: of GRID_OFFERS; for the threads of one block. */
void nest_grid_offer(const Problem *p, const Target *target, int variant, Schedule *s);
void nest_block_offer(const Problem *p, int threads, Schedule *s);
/* Do the schedules offered for p carry its reduction from one result to the next? */
bool nest_carries(const Problem *p);

/* ---- contractions (contract/): around micro-kernels; on a grid in tiles; by calls of a vendor library, which is
 * opened for it */
int lower_contract(Problem *p, const Schedule *s, const Target *target, const Capabilities *caps,
		   Error *err);
int contract_piece(Problem *p, const Schedule *s, const Target *target, Piece *out, Error *err);
int lower_contract_grid(Problem *p, const Schedule *s, const Capabilities *caps, Error *err);
int lower_library(Problem *p, const Schedule *s, const Target *target, Error *err);
int lower_library_grid(Problem *p, const Schedule *s, const Target *target,
		       const Capabilities *caps, Error *err);
/* Returns how many there are. *price: of the first, in cycles, on a grid in products of a multiprocessor;
 * INFINITY: there is none. */
int contract_offers(Problem *p, const Target *target, int room, Schedule *out, double *price);
int contract_grid_offers(Problem *p, const Target *target, int room, Schedule *out, double *price);
int library_offers(Problem *p, const Target *target, int room, Schedule *out);
int library_grid_offers(Problem *p, const Target *target, int room, Schedule *out);
/* One for a piece; false: direct nests are better. *price: its cycles. */
bool contract_piece_offer(Problem *p, const Target *target, Schedule *s, double *price);

/* ---- rows of subgraphs (rows/; fuse/subgraph.h): of each loop over the places of a row a piece */
int lower_rows(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
	       const Capabilities *caps, Error *err);
/* The schedules that each loop may have. */
typedef struct RowLoop {
	int member; /* it begins with */
	int n;
	Schedule *schedule;
	int variant[NEST_OFFERS]; /* of these: that of each variant of nests */
	bool panels;		  /* the first is by panels, */
	double price;		  /* which take so many cycles for all rows */
} RowLoop;
typedef struct RowOffer {
	int dims, n; /* dimensions that are rows; loops */
	RowLoop *loop;
} RowOffer;
/* direct: nests only. False: there is nothing that one kernel can do. Runs under IR_ENTER. */
bool rows_offer(Ir *ir, const Subgraph *sub, const Target *target, bool direct, RowOffer *r);
/* Of the whole, with schedule pick[k] of loop k; or with the same variant of all nests. */
void rows_schedule(const RowOffer *r, const int *pick, Schedule *s);
void rows_variant(Ir *ir, const RowOffer *r, int variant, Schedule *s);
int rows_grid_offers(Ir *ir, const Subgraph *sub, const Target *target, int room, Schedule *out);
/* The tree of one loop by itself for all rows, that of member k: only its price is of use. */
int row_loop_tree(Tree *tree, const Subgraph *sub, int dims, int k, const Schedule *s,
		  const Target *target, const Capabilities *caps, Error *err);

/* ---- equations in place of one, in stages (stages/) */
int lower_stages(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
		 const Capabilities *caps, Error *err);
/* False: there are none that take at most so many cycles. *price: their cycles; *rough: elements are moved by less than
 * half a vector, so that it may be much too low. Runs under IR_ENTER. */
bool stages_offer(Ir *ir, const Subgraph *sub, const Target *target, double most, Schedule *s,
		  double *price, bool *rough);

/* ---- trees and their prices (lower.c) */
/* The tree behind all passes; NULL: an error. */
Tree *lower_tree(Ir *ir, const Task *t, const Schedule *s, const Capabilities *caps,
		 const Target *target, Error *err);
/* What a kernel of direct nests costs in cycles (tree/cost.c), where a compiler makes vectors; INFINITY: it
 * can't be made so. Around calls of micro-kernels: what the rest costs. Of one loop of rows: loop k of the offer under its
 * schedule i, for all rows. */
double lower_price(const Task *t, const Schedule *s, const Target *target);
double lower_price_around(const Task *t, const Schedule *s, const Target *target);
double lower_loop_price(const Task *t, const RowOffer *r, int k, int i, const Target *target);

#endif
