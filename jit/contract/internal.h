/* internal.h - the parts of lowering a contraction: finding it (contract.c), schedules for it
 * (offer.c), padded copies (padded.c) and transposed ones (transposed.c), tables of indices (table.c),
 * panels (panel.c), their lanes (lanes.c), what they leave out of K (zero_blocks.c), blocks (block.c), their
 * results (store.c) and what these need, prefetched (prefetch.c), the loops (loops.c). */
#ifndef JIT_CONTRACT_INTERNAL_H
#define JIT_CONTRACT_INTERNAL_H

#include "jit/lower.h"
#include "jit/micro/micro.h"

#define CONTRACT_MAX_GUARDS 24
#define CONTRACT_MAX_TABLES 64
#define CONTRACT_MAX_COPIES 2 /* one of each operand */

enum { PAGE = 4096, LINE = 64 }; /* bytes */

/* Indices of one role, run through as one long index. */
typedef struct IndexGroup {
	int naxis;
	Node *axis[COMP_MAX_AXES];
	int64_t extent, block;
	bool whole;   /* its tables cover the whole extent and are filled once a call */
	bool compact; /* only the elements that meet Contract.choice, listed anew in each part */
	bool direct;  /* a single axis: its value is the element's number, no table needed */
	Node *origin; /* the first element of the current block */
} IndexGroup;

/* A row for each integer expression over one group's axes; an entry for each element. */
typedef struct Table {
	IndexGroup *group;
	int nrow;
	Node *row[CONTRACT_MAX_GUARDS + 1];
	Node *buffer;
	int64_t stride; /* from row to row */
} Table;

typedef struct Operand {
	Node *value;
	uint64_t mask; /* the problem's axes it depends on */
	int nguard;
	Node *guard[CONTRACT_MAX_GUARDS]; /* zero where one is false */
	int npadded;
	Node *padded[CONTRACT_MAX_GUARDS]; /* those that became the padding of a copy */
} Operand;

/* A padded copy of an operand's tensor (padded.c): the element at coord[] is value where the
 * condition on its row, all coordinates but the last, holds, and the last is in lo..hi-1, else 0.
 */
typedef struct PaddedCopy {
	int rank;
	Node *buffer, *coord[RICCI_MAX_RANK], *row, *lo, *hi, *value;
	int64_t pitch[RICCI_MAX_RANK];
} PaddedCopy;

/* A transposed copy of a tensor (transposed.c): `count` matrices of so many rows and columns, rows contiguous
 * in it: from column to column `line` elements, from matrix to matrix `plane`. */
typedef struct TransposedCopy {
	Node *from, *buffer;
	int64_t count, rows, cols, line, plane;
} TransposedCopy;

typedef struct Contract {
	Problem *p;
	Ir *ir;
	Tree *t;
	const Micro *micro;
	int64_t mr;   /* rows of a panel of M, at most: see contract_rows */
	Operand a, b; /* of M and of N */
	IndexGroup m, n, k, batch;
	int npadded, ntransposed;
	PaddedCopy padded[CONTRACT_MAX_COPIES];
	TransposedCopy transposed[CONTRACT_MAX_COPIES];
	int ntable;
	Table table[CONTRACT_MAX_TABLES];
	Node *batch_value[COMP_MAX_AXES]; /* of its axes; while none is known, they themselves */
	Stmt *setup;			  /* at the start of a part */
	int64_t period; /* conditions repeat after so many elements of K; 0: they do not */
	int nchoice; /* conditions on K and batch only: elements of K that fail them are left out */
	Node *choice[CONTRACT_MAX_GUARDS], *count;
} Contract;

static inline int64_t round_up(int64_t x, int64_t to)
{
	return (x + to - 1) / to * to;
}

/* Reads p as a contraction, in a way of TENSORISE_*; false when it is none (or none that
 * micro-kernels can do). */
bool contract_find(Contract *c, Problem *p, const Target *target, int way);

/* An operand that is nothing but an element of a tensor, made a value of the sum's type: its type in
 * memory, and the narrowest that it is rounded to on its way. */
typedef struct Source {
	Node *read;
	Type from, through;
} Source;
bool contract_source(const Operand *f, Source *s);
/* The element of a tensor that a plain operand is; NULL: it is none. */
Node *contract_read(const Operand *f);

/* An element of a tensor as it is? */
bool contract_plain(const Contract *c, const Operand *f);
/* f becomes an element of a padded copy; false: it has no padding, or can't. narrow: elements of other
 * types than the sum's can, too. */
bool contract_padded(Contract *c, Operand *f, bool narrow);
/* In how many parts a copy is filled; one of them. */
int64_t padded_copy_parts(const PaddedCopy *b);
Stmt *padded_copy_fill(Contract *c, const PaddedCopy *b, Node *part);
/* f, whose panels' lanes are s, becomes an element of a transposed copy; false: its lanes are contiguous, or
 * it can't.
 */
bool contract_transposed(Contract *c, Operand *f, const IndexGroup *s);
int64_t transposed_copy_parts(const TransposedCopy *t);
Stmt *transposed_copy_fill(Contract *c, const TransposedCopy *t, Node *part);
/* Is there anything to copy before panels are packed? */
static inline bool contract_copies(const Contract *c)
{
	return c->npadded || c->ntransposed;
}
/* From line to line, or plane to plane, of a copy, where they are at least so many bytes: an odd
 * number of lines of the cache. After a power of two they would meet in one set of it. */
int64_t contract_pitch(int64_t size, Type type, int64_t least);

/* How much more edges cost than what they hold: 1 nothing. */
double contract_padding(const Contract *c);
/* Can the operand of M stay unpacked? b: that of N, in panels without padding? Its elements are such
 * as the micro-kernel multiplies; a group of them of K lies together, inside or in padding as one. */
bool contract_unpacked(Contract *c, bool b);
/* Does B lie in memory as its panels would, each in one piece? Then nothing is packed. */
bool contract_lies(Contract *c);
/* How high panels of M are: as the micro-kernel; lower where A is unpacked and its rows meet in L1. */
void contract_rows(Contract *c, const Target *target, bool unpacked_a);
/* The places of the group's first n elements, relative to the first; false: it varies. */
bool contract_places(const Contract *c, const IndexGroup *s, Node *index, int64_t n,
		     int64_t *place);
/* The place of the group's element i so; 0: it varies. */
int64_t contract_place(const Contract *c, const IndexGroup *s, Node *index, int64_t i);
/* Can both operands be packed by functions compiled ahead? */
bool contract_packs(Contract *c);

/* Affine expressions, taken apart: over an index group, over K, and over the batch. */
typedef struct Parted {
	int n;
	Node *s[CONTRACT_MAX_GUARDS + 1], *k[CONTRACT_MAX_GUARDS + 1];
	Node *rest[CONTRACT_MAX_GUARDS + 1];
} Parted;
/* Adds what must not be negative where the conditions hold; false: they are none such, or too many.
 */
bool contract_part(Contract *c, int nguard, Node *const *guard, IndexGroup *s, Parted *r);
/* The batch's shares for functions compiled ahead, stored once a part. */
Node *contract_rest(Contract *c, int n, Node *const *rest);

/* ---- on a grid (grid.c) ---- */

enum { GRID_ALIGN = 16 }; /* bytes between lines of a tile in a block's memory */
/* What tensor cores multiply: the operands' type in a block's memory, what they are read and taken as, so many
 * elements of K (32 bytes) at once; products in the time of one of 16 bits (of parts: the
 * offers' shapes have rates of their own). */
typedef struct Fragments {
	Type type;
	const char *read, *name;
	int deep;
	double rate;
	bool parts; /* of words as they are: each is the sum of two that tensor cores take */
} Fragments;
/* What both operands are exactly: the same type of 16 bits, or tf32; else f32 in parts. NULL: sums of another type. */
const Fragments *contract_fragments(const Contract *c);

/* ---- zero-block skipping (zero_blocks.c) ---- */

/* The elements of K at which a panel of A has anything but padding, in a MicroList. */
typedef struct ZeroBlocks {
	uint64_t which;	     /* of A's conditions */
	Node *a, *b, *state; /* lists of places, and what ricci_zero_blocks knows of them */
} ZeroBlocks;
/* The share of the products that is zero, since panels of A have nothing but padding there. */
double zero_blocks_share(Contract *c);
/* False: not worth it. deep: elements of a block of K. */
bool zero_blocks_make(Contract *c, int64_t deep, ZeroBlocks *t);
/* Before all parts that a thread takes; before the products of a panel. */
Stmt *zero_blocks_begin(Contract *c, const ZeroBlocks *t);
Stmt *zero_blocks_panel(Contract *c, const ZeroBlocks *t, Node *seq, Node *at, Node *rows,
			Node *depth);

/* What K is filled up to in panels. */
static inline int contract_group(const Contract *c)
{
	return c->micro->a.group > c->micro->b.group ? c->micro->a.group : c->micro->b.group;
}

/* What only moves elements goes by their size: i32 as f32. */
static inline bool contract_moves_f64(const Contract *c)
{
	return type_size(c->p->acc) == 8;
}

static inline Node *contract_int(Contract *c, int64_t v)
{
	return node_int(c->ir, v);
}

/* Where an unpacked panel's descriptor goes (MicroPanel), and the places of packed rows. */
typedef struct Unpacked {
	Node *panels, *at, *seq;
} Unpacked;
/* Fills the panel of `lanes` lanes at `place` of dst with `count` elements of s, from element `at`
 * of the block on, and `depth` of K. unpacked: or only describes it. */
Stmt *contract_pack(Contract *c, const Operand *f, IndexGroup *s, Node *dst, Node *at, Node *place,
		    int64_t lanes, Node *count, Node *depth, const Unpacked *unpacked);

/* e with every integer index replaced by table entries: x of group s is element at[x] of its block.
 * Groups not given are the batch. lane, NULL or a loop variable: the element is at[0] + lane, where
 * at[0] begins `run` elements that differ in group 0's last axes only. Expressions that grow evenly
 * along such elements are read from the table once for all of them. */
typedef struct Point {
	int n;
	IndexGroup *group[2];
	Node *at[2]; /* element of the block */
	Node *lane;
	int64_t run;
} Point;
Node *contract_tabulate(Contract *c, Node *e, const Point *point);
/* A table of several rows one after the other, for the packing functions. rest[r]: what depends on
 * the batch only; false when an expression does not split. */
Table *contract_table(Contract *c, IndexGroup *s, int nrow, Node *const *row);
bool contract_split(Contract *c, Node *e, IndexGroup *s, IndexGroup *k, Node **es, Node **ek,
		    Node **rest);
/* At how many points of the batch the operand differs: all or one. */
int64_t contract_points(const Contract *c, const Operand *f);
/* Of how many neighbours of the batch do results share lines of the cache? */
int64_t contract_close(const Contract *c);
/* How many elements side by side along the group the operand is computed from. */
int64_t contract_lies_along(Contract *c, const Operand *f, const IndexGroup *s);
/* Can all panels of the operand (b: of N) be kept for all parts? Not where they would unfold its
 * tensor. */
bool contract_shares(const Contract *c, bool b);
/* How many neighbours along the group, its last axes, are `stride` apart in memory, where e is a
 * flat index. */
int64_t contract_run(const Contract *c, const IndexGroup *s, Node *e, int64_t stride);
/* Does e grow evenly, by *stride, from each element to the next in runs of so many? Where it isn't affine, *stride is
 * INT64_MIN. */
bool contract_even(const Contract *c, const IndexGroup *s, Node *e, int64_t run, int64_t *stride);
/* By how much the flat index e grows from each element of the group to the next; 0: it varies. */
int64_t contract_step(Contract *c, const IndexGroup *s, Node *e);
/* The place of the entry of row 0 for element `at` of the block. */
Node *table_index(Contract *c, const Table *t, Node *at);
/* Lists the elements of K that meet the choice: count and tables. */
Stmt *contract_choose(Contract *c);
/* Statements that fill the tables of group s (NULL: of all whole groups). */
Stmt *contract_fill(Contract *c, IndexGroup *s);

/* ---- lanes (lanes.c) ---- */

enum { LANES_RUN = 8 }; /* elements side by side that are worth a loop of their own */
/* Elements of a block from `from` on. */
typedef struct Extent {
	Node *from, *count;
	int64_t most;
} Extent;
typedef struct Lanes {
	Node *x, *at; /* the vector loop's variable; the element of the part that it stands for */
	Node *count;  /* of the loop */
	Stmt *runs;   /* the loop around it; NULL: there is none */
} Lanes;
/* Lanes along a part of group 0 of the point, of which `run` elements lie together; sets at[0], lane and run of
 * the point. */
Lanes lanes_along(Contract *c, const Extent *part, int64_t run, Point *point);
/* body in the vector loop, that in the loop `between` (NULL: there is none), and all in the loop over runs. */
Stmt *lanes_loops(Contract *c, const Lanes *l, Stmt *between, Stmt *body);

/* ---- what results need, prefetched (prefetch.c) ---- */

typedef struct Fetches Fetches;
/* The tensors that results are computed from and go to, where they are larger than L2; NULL: there are none. */
Fetches *fetches_find(Contract *c, const Target *target);
/* Prefetches what a tile's results need. */
Stmt *fetches_tile(const Fetches *f, const Extent *m, const Extent *n);

/* ---- blocks (block.c) ---- */

/* How a schedule blocks a contraction, and its buffers. Panels of M differ by a row or
 * two; blocks are whole panels. */
typedef struct Blocking {
	int64_t mc, nc, kc, strip, nmc, nnc, nkc;
	int64_t a_deep, b_deep;	     /* elements of K that panels have room for */
	int64_t pieces, per_piece;   /* of K's blocks: pieces that run in parallel */
	bool unpacked_a;	     /* A is not packed; */
	bool a_follows;		     /* along K it is contiguous */
	bool unpacked_b;	     /* nor are B's contiguous panels */
	bool b_lies;		     /* B lies in memory as its panels would */
	bool a_shared, b_shared;     /* packed once for all parts, before them */
	bool straight;		     /* tiles are stored where they belong, in c */
	Node *a, *b, *c;	     /* buffers: A's panels, B's, the block of sums */
	Node *a_at, *b_at;	     /* where this block's begin */
	Node *a_to_next, *b_to_next; /* from there to what is multiplied next; NULL: the same */
	int64_t to_strip;	     /* and within the block, where B is in place */
	bool skips;		     /* unpacked panels of A skip zero blocks: */
	ZeroBlocks zeros;
	Node *panels, *seq;	   /* of a strip: panels' places; those of packed rows */
	Node *c_at;		   /* where the block begins in c, */
	int64_t c_row;		   /* and from row to row */
	bool by_panel;		   /* each panel of M is stored behind its last products, */
	Node *final;		   /* where this is true: in the last block of K; */
	const Fetches *fetches;	   /* NULL, or what is prefetched beside them */
	Node *first, *npanel;	   /* of this block: its first panel of M, how many it has, */
	Node *rows, *cols, *depth; /* and its elements */
} Blocking;

/* The part is of block (m, n) at a point of the batch; of the block's rows those from `top` on, at
 * most `rows`. */
void block_set(Contract *c, Blocking *h, Node *point, Node *m, Node *n, Node *top, Node *rows);
/* and of block number k of K. */
void block_set_depth(Contract *c, Blocking *h, Node *k);
Stmt *block_pack_a(Contract *c, const Blocking *h);
Stmt *block_pack_b(Contract *c, const Blocking *h, Node *from, Node *cols);
/* Packs what is not shared, and multiplies. */
Stmt *block_multiply(Contract *c, const Blocking *h, Node *add);
/* Where in c the sum of row i and column j lies. */
Node *block_sum(Contract *c, const Blocking *h, Node *i, Node *j);
/* Stores these rows and columns of the sums in c through the members. */
Stmt *block_store(Contract *c, const Blocking *h, const Extent *m, const Extent *n);
/* Do lanes run down the columns of the sums, since results' lines do? */
bool block_stores_down(const Contract *c);

#endif
