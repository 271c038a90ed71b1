/* internal.h - direct nests: the loops of a schedule (replay.c) and the tree made of them
 * (nest.c). */
#ifndef JIT_NEST_INTERNAL_H
#define JIT_NEST_INTERNAL_H

#include "jit/lower.h"
#include "jit/rewrite/rewrite.h"

#define MAX_LOOPS	48
#define MAX_GUARDS	32
#define MAX_CACHE_READS 4

/* Neighbours of the lanes that are so far apart pay for a tile; on a grid an element of it stays free behind so many,
 * so that lines and columns lie in all banks. */
enum { ACROSS_LEAST = 2, BANKS = 32 };

typedef struct Loop {
	int axis; /* of the problem */
	int64_t stride, extent;
	bool reduced;
	How how;
	Node *var, *val; /* the loop variable, and what stands for it now (NULL: not open) */
	bool tile;	 /* a dimension of the accumulator */
} Loop;

/* A read that is copied to a local tile: SELECT(conditions, read, fill), see cache_read.c, or one
 * across the lanes, see transposed.c. */
typedef struct CacheRead {
	const ProblemRead *read;
	Node *fill, *buffer, *place; /* place: an axis that stands for the index in the tile */
	int ncond;
	Node *cond[MAX_GUARDS];
	int lanes; /* the dimension along the vector loop */
	bool inner[RICCI_MAX_RANK];
	int64_t low[RICCI_MAX_RANK], span[RICCI_MAX_RANK], pitch[RICCI_MAX_RANK];
	int64_t phases, len; /* of the lanes: element t is at t % phases * len + t / phases */
	Node *transposed; /* across the lanes, or the threads of a grid: the read; NULL: padded */
	int along;	  /* the loop that it moves along by one */
	int64_t step;	  /* and by so much along the lanes */
} CacheRead;

/* A reduction that goes on from one element of the results to the next: carry.c. */
typedef struct Carry {
	Running r;   /* r.axis -1: nothing is carried */
	Node *head;  /* what is in before the first element, over all of the axes; NULL: nothing */
	int at;	     /* the place of the first loop along the axis, or where lanes along it begin */
	bool open;   /* inside of that */
	bool single; /* the sum is one number, which lanes are added to; else it is the tile */
	Node *sum;   /* single: its buffer */
} Carry;

typedef struct Build {
	Problem *p;
	Ir *ir;
	Tree *t;
	const Capabilities *caps;
	int nloop, order[MAX_LOOPS], nparallel, nouter;
	int nrfactor;	/* of the parallel loops, the outermost, are reduced: rfactor.c */
	int64_t nblock; /* their iterations: blocks that are summed apart */
	Node *sums;	/* of all blocks */
	int lanes; /* the vector loop's place in the order, -1: none; loops inside are written out
		    */
	int cache_read_at; /* the place before which reads are cached, -1: none are */
	int ncache_read;
	bool filled;			 /* the tiles are, here */
	int64_t stream;			 /* results of so many bytes are written past the caches */
	Node *line[PROBLEM_MAX_MEMBERS]; /* theirs of the lanes; NULL: stored where it belongs */
	CacheRead cache_read[MAX_CACHE_READS];
	Loop loop[MAX_LOOPS];
	bool full[COMP_MAX_AXES]; /* the bounds of this axis hold by themselves here */
	Node *acc, *body, *value[PROBLEM_MAX_MEMBERS]; /* of the stored members */
	int nguard;
	Node *guard[MAX_GUARDS];
	bool placed[MAX_GUARDS];
	bool reducing; /* building the loops around the main statement */
	Carry carry;
	/* on a grid (grid.c): */
	int threads;	      /* of a block */
	int64_t parts_each;   /* parts of a thread, a block's apart */
	int nthread;	      /* loops behind the parallel ones that run along them, */
	int together;	      /* with so many iterations */
	bool apart;	      /* those of a part are no neighbours */
	bool atomic;	      /* a scatter's parts combine in memory */
	Node *block, *repeat; /* the block; which of a thread's parts */
	Node *inside;	      /* has the thread a part at all? */
	GridThreads grid;
} Build;

/* ---- the loops while they are open (loops.c) */
/* e where the open loops are now. */
Node *nest_point(Build *b, Node *e);
/* The loop's bound here: its extent, or less at the axis's end. */
Node *nest_hi(Build *b, const Loop *l);
/* The loop's statement, without a body; it is open then. */
Stmt *nest_open(Build *b, Loop *l);
/* Iterations of the parallel loops together. */
int64_t nest_parts(const Build *b);
/* The place in its block's tiles of the open part of a grid. */
Node *nest_part_place(Build *b);
/* Opens n loops, from place `first` of the order on, at iteration number `at` of them together. */
void nest_open_at(Build *b, int first, int n, Node *at);
/* Do the axis's loops cover it without going past its end? */
bool nest_exact(const Build *b, int axis);
/* What is left of the axis below the open loops. */
Node *nest_rest(Build *b, int axis);

/* ---- on a grid (grid.c) */
/* Orders the loops for a grid, and refuses what it can't do. */
int grid_replay(Build *b, Error *err);
/* Opens the parallel and the thread loops, of block b->block. */
void grid_open(Build *b, Node *thread);
/* `body` for each of the thread's parts. */
Stmt *grid_repeat(Build *b, Stmt *body);
/* What follows the loops of a part's reduction where several threads have a share. */
Stmt *grid_combine(Build *b, Stmt *reduce);
/* Is this the thread that stores the part's results? */
Node *grid_first(Build *b);
/* Cached reads of a block's parts: can this one be? The statements that fill the block's tiles. */
bool grid_read_init(Build *b, CacheRead *s, Node *read);
Stmt *grid_read_fill(Build *b);

/* Applies the steps of s to the problem's axes; refuses orders that would change the result. */
int nest_replay(Build *b, const Schedule *s, Error *err);
/* ---- the accumulator tile (tile.c) */
/* Says which loops are its dimensions. */
void tile_find(Build *b);
/* Where the loops begin that may be. */
int tile_first(const Build *b);
/* The place of the open tile loops. */
Node *tile_index(Build *b);
int64_t tile_size(const Build *b);
/* The loops over its dimensions that are not open around leaf, from place k of the order on. */
typedef Stmt *LeafFn(Build *b);
Stmt *tile_loops(Build *b, int k, bool lanes, LeafFn *leaf);
/* What runs innermost of it. */
const Loop *tile_lanes_loop(const Build *b);
/* The lanes of the tile from base on as one value, *sum, behind the statements. */
Stmt *tile_combined(Build *b, Node *base, Node **sum);

/* ---- what results hold first (fill.c) */
/* What the problem's reduction starts from, in this type. */
Node *nest_identity(Build *b, Type t);
/* b->acc becomes what a scatter adds to: the result, or something wider. */
void fill_sums(Build *b);
/* The open part's places of b->acc hold what the reduction starts from; or, convert: those of the result its sums,
 * made narrow. */
Stmt *fill_part(Build *b, bool convert);
/* So do all places of a result that is not reached everywhere. */
Stmt *fill_partial(Build *b);
/* The same on a grid, in phases of their own before the nest and behind it. */
void fill_grid(Build *b);
void convert_grid(Build *b);

/* ---- running reductions (carry.c) */
/* Can the reduction be carried along this axis? *c: how. */
bool carry_find(const Problem *p, int axis, Carry *c);
/* Makes p the problem of what is new in each element. */
void carry_apply(Problem *p, Carry *c);
/* Finds the places of the loops, once b->nouter is known; refuses what would change the result. */
int carry_place(Build *b, Error *err);
/* What lanes along the results add becomes their running sums. */
Stmt *carry_lanes(Build *b);
/* What is in before the first element, from loop number k on: added to the tile or the one sum. */
Stmt *carry_head(Build *b, int k);
/* The sum with its factors. */
Node *carry_value(const Problem *p, const Carry *c, Node *sum);

/* ---- guards (guards.c) */
/* Takes the conditions off b->body that the lanes need not evaluate. */
void guards_init(Build *b);
/* Those that the open loops decide, not placed further out, as one; NULL: none. */
Node *guards_take(Build *b, uint64_t *taken);
void guards_return(Build *b, uint64_t taken);

/* ---- sums in blocks (rfactor.c) */
/* Can the first nrfactor loops be blocks? */
int rfactor_check(const Build *b, Error *err);
/* Makes room for the sums. */
void rfactor_init(Build *b);
/* Stores the sum of the open block at the open spatial point. */
Stmt *rfactor_store(Build *b, Node *sum);
/* The phase that adds the blocks up and stores the members. */
void rfactor_phase(Build *b);

/* ---- streamed results (stream.c) */
/* Finds those whose lanes are contiguous, and makes their lines. */
void stream_find(Build *b);
/* `lanes`, the vector loop at the open point, and then its lines go where they belong. */
Stmt *stream_lines(Build *b, Stmt *lanes);

/* ---- cached reads (cache_read.c) */
/* Finds what can be cached before place b->cache_read_at and puts reads of tiles into b->body and
 * b->value. */
void cache_read_find(Build *b);
/* Conditions go where tiles and predicates want them: SELECT(conditions, a * read, 0), with the
 * conditions that the read needs, is a * SELECT(conditions, read, 0) for a sum. */
Node *cache_read_conditions(Build *b, Node *body);
/* The statements that fill the tiles. */
Stmt *cache_read_fill(Build *b);
/* The same of a read across the lanes (transposed.c); transposed_init: can it be transposed? */
bool transposed_init(Build *b, CacheRead *s, Node *read);
Stmt *transposed_fill(Build *b, const CacheRead *s);

/* ---- the order of loops in offers (order.c) */
/* Parts that are enough for every thread. */
enum { MIN_PARTS = 64 };
/* The fewest outermost loops that give every thread something; extents in loop order. */
int offer_parallel(int n, const int64_t *extent);
/* Splits loop `axis` by arg. Returns the inner loop, number (*loops)++, which stands behind it in the order now[]. */
int offer_split(Schedule *s, int axis, int64_t arg, int *loops, int *now);
/* The largest divisor of n, at most so large. */
int64_t offer_divisor(int64_t n, int64_t most);
/* Moves loops until they stand in the order `want`. */
void offer_order(Schedule *s, int n, const int *want, int *now);

/* ---- offers for windows (windows.c) */
/* Lanes along the last spatial axis; inside them some of its rows and the whole window, written
 * out; padded reads are cached where `cache` says so, or they must be. false: no window. */
bool window_offer(const Problem *p, const Target *target, int64_t rows, bool cache, Schedule *s);

/* Lanes of so many vectors along a reduced axis; inside them the sums at all of a window's points,
 * written out. false: no such. */
bool taps_offer(const Problem *p, const Target *target, int64_t vectors, Schedule *s);

/* ---- register tiles (register_tile.c) */
/* Vectors of sums along a spatial axis, for some places of another that shares what they read, or along a reduced one,
 * for places of two. transposed: a spatial one, along which something is transposed first. false: none does. */
bool register_tile_offer(const Problem *p, const Target *target, bool transposed, Schedule *s);

/* ---- short axes that are written out (written.c) */
typedef struct WrittenPart { /* an axis, or of one that is split by it, the period */
	int axis;
	int64_t period;
} WrittenPart;
typedef struct Written { /* axes, in their order */
	int n;
	WrittenPart part[COMP_MAX_AXES];
	bool inside; /* within the lanes; or around them */
	int lanes;   /* the axis that has them */
} Written;
/* The axes with conditions that each value decides, as many as may be written out together. */
void written_find(const Problem *p, Written *w);
/* Do the statements that are written out for them read the same elements? */
bool written_share(const Problem *p, int n, const WrittenPart *w);

/* ---- polyphase offers (polyphase.c) */
/* How many lanes along axis k, at most so many: as many as the period of its conditions, where
 * that is long, for then lines of the reads are whole. */
int64_t polyphase_lanes(const Problem *p, int k, int64_t most);
/* Steps for a pointwise problem with quotients and remainders of its axes, all but the
 * parallel loops, the first of which have the extents extent[]. Returns how many these are; 0: no
 * steps. */
int polyphase_offer(const Problem *p, int64_t *extent, Schedule *s);

#endif
