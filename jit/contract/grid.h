/* grid.h - the tiles of a contraction on a grid: what grid.c multiplies and grid_load.c loads. */
#ifndef JIT_CONTRACT_GRID_H
#define JIT_CONTRACT_GRID_H

#include "jit/contract/internal.h"

/* Neighbours that a thread reads at once; threads; blocks of K in memory. */
enum { VECTOR = 4, WARP = 32, STAGES_MOST = 4 };
/* Of what groups of warps multiply from memory: elements of a line, of its parts, lines whose parts differ in order;
 * rows of a group's tile. */
enum { GROUP_LINE = 64, GROUP_PART = 8, GROUP_TURN = 8, GROUP_ROWS = 64 };

/* An operand's tile of a block of K in the block's memory, once for each stage: element (k, s) is at
 * k * pitch + s, of k_last at s * pitch + k. For groups of warps it is
 * cut into panels of GROUP_LINE elements, `pitch` apart, and part c of line l (of a panel) is at c XOR l, of GROUP_TURN: what is read
 * across lines is in all banks. */
typedef struct TileOperand {
	const Operand *f;
	const IndexGroup *group;
	Node *memory, *held,
		*part; /* of the block; a thread's next elements; those it multiplies */
	int64_t extent, pitch;
	bool along_k;	/* neighbouring threads load neighbours of K */
	bool k_last;	/* neighbours of K are neighbours in the block's memory */
	int64_t vector; /* elements that are loaded at once */
	bool copied;	/* past the registers, by asynchronous copies of vectors */
	Node *origin;	/* the tile's first element */
} TileOperand;

typedef struct GridTiles {
	Contract *c;
	int64_t size[3], own[2]; /* of a tile: M, N, K; of a thread: M, N */
	int64_t count[3];	 /* tiles */
	int64_t pieces, per_piece;
	int64_t stages; /* blocks of K in the block's memory */
	int threads;
	Type type;		    /* of the elements in the block's memory */
	const Fragments *fragments; /* warps multiply them; NULL: threads do */
	bool groups;		    /* groups of four warps do, asynchronously, from memory */
	bool dynamic;		    /* a launch can give blocks more memory than GRID_BLOCK_BYTES */
	bool copies;		    /* the device copies into a block's memory asynchronously */
	Node *thread, *sums, *acc;
	Node *place[2]; /* the thread's among those of the tile; of fragments its first element's */
	Node *warp[2];	/* of fragments: the first element of the warp's tile */
	Node *batch;	/* its point */
	Node *first;	/* the piece's first block of K */
	TileOperand of[2];
} GridTiles;

/* Elements of an operand's tile in memory. */
int64_t tile_room(const GridTiles *h, const TileOperand *o);
/* Axes of the group at element `at`, behind the n that are there. */
int group_at(Contract *c, const IndexGroup *g, Node *at, int n, Node **from, Node **to);
static inline Node *below(Contract *c, Node *at, int64_t extent)
{
	return node2(c->ir, OP_LT, at, contract_int(c, extent));
}

/* How operand d is loaded, and lies in memory. */
void operand_plan(GridTiles *h, int d);
/* Where element (k, at) of stage `stage` is in the block's memory. */
Node *memory_place(const GridTiles *h, const TileOperand *o, Node *stage, Node *at, Node *k);
/* Begins to load block number `block` of K of both operands into a stage: copies are under way, other elements
 * in registers. tiles_keep stores these, and tiles_wait ends the copies of all stages but the `later` last
 * begun; then, behind a barrier, all threads see them. Blocks behind the last are zero. */
Stmt *tiles_load(const GridTiles *h, Node *block, Node *stage);
Stmt *tiles_keep(const GridTiles *h, Node *stage);
Stmt *tiles_wait(const GridTiles *h, int64_t later);

#endif
