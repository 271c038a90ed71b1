/* tree.h - loop trees. */
#ifndef JIT_TREE_H
#define JIT_TREE_H

#include "jit/jit.h"

/* ---- loop trees (tree.c)
 * Mutable statements in an arena over immutable index expressions. Every tensor in a tree is a
 * Buffer: a one-dimensional INPUT node of a scratch Ir, read by READ with a flat index. Loop
 * variables are AXIS nodes whose numbers are unique in the tree; a node may appear in several
 * disjoint loops. */
typedef enum {
	STMT_LOOP,
	STMT_IF,
	STMT_STORE,
	STMT_ALLOC,
	STMT_CALL,
	STMT_SYNC,
	STMT_PREFETCH
} StmtKind;
typedef enum {
	HOW_SERIAL,
	HOW_UNROLL,
	HOW_VECTOR,
	HOW_PARALLEL,
	HOW_BLOCK,
	HOW_THREAD,
	HOW_LANES
} How;
typedef enum {
	SPACE_PARAM,
	SPACE_LOCAL,
	SPACE_LANES,
	SPACE_SCRATCH,
	SPACE_TABLE,
	SPACE_SHARED,
	SPACE_BLOCK
} Space;

/* LANES: a local variable of one vector, which LANES loops access at their lanes. TABLE: scratch
 * that is written before the parallel loop only. SHARED: one for all threads. BLOCK: one for the
 * threads of a block, gone with it. */
typedef struct Buffer {
	Node *node; /* INPUT of rank 1 */
	Space space;
	bool output;   /* PARAM: written, never read before */
	int param;     /* PARAM: its place in buf[] */
	size_t offset; /* SCRATCH, TABLE, SHARED: bytes from the start of that memory */
	bool ready;    /* filled before this equation's phases */
	int64_t used; /* LANES: lanes that stores reach, behind which others may hold anything; 0: not known */
} Buffer;

typedef struct CallArg {
	Node *buffer; /* NULL: the integer value, else the address of buffer[value] */
	Node *value;
} CallArg;
typedef struct Stmt Stmt;
struct Stmt {
	StmtKind kind;
	How how;
	Stmt *next;
	Stmt *body, *otherwise; /* LOOP, IF */
	Node *axis, *lo, *hi;	/* LOOP: lo <= axis < hi; may be empty when `maybe` */
	bool maybe;
	Node *cond;		      /* IF */
	Node *buffer, *index, *value; /* STORE: buffer[index] red= value; ALLOC: buffer; PREFETCH:
				       * buffer[index], which need not exist */
	Reduce red;
	bool atomic;	    /* STORE: other threads may combine with the same element meanwhile */
	const char *symbol; /* CALL: its arguments are addresses in buffers and integers */
	int narg;
	CallArg *arg;
};

/* What can be made of a tree. Lowering depends on this, never on how a dialect spells it. */
typedef struct Capabilities {
	bool grid;	      /* phases are grids of blocks and their threads; no scratch memory */
	bool branch_barriers; /* barriers under conditions that all threads of a block share */
	bool fragments; /* CALLs of ricci_mma_*: warps of a grid multiply tiles of 16 bits, tf32, f32 */
	bool groups; /* CALLs of ricci_group_*: groups of four warps multiply tiles in a block's memory */
	bool block_memory; /* more than GRID_BLOCK_BYTES of a block's memory */
	int atomics; /* of a grid: stores combine elements of 4 bytes, or of up to 8, atomically; 0: none */
	bool copies; /* CALLs of ricci_copy: into a block's memory past the registers */
	bool vectors; /* LANES loops, under masks; of the VECTOR loops left a compiler makes vectors */
	bool specialises; /* code is cheap: full tiles and the inside of padding get their own */
	bool prefetches;  /* PREFETCH statements */
	bool calls;	  /* of a grid: phases that are a call (phase_call) */
	int chunk; /* VECTOR loops are calls of functions over so many elements; 0: they are loops
		    */
} Capabilities;

typedef struct Tree {
	Ir *ir;
	int nbuffer, room, next_axis;
	Buffer *buffer; /* moves when it grows */
	Stmt *root;
	KernelShape shape; /* its parts are those of the PARALLEL loop at the root; of a grid, the
			      blocks of the BLOCK loops, one for each phase */
	struct Section *section;
	int nsection, section_room, nphase;
	int nbound, bound_room;
	struct Bound *bound; /* tensors that have a buffer already */
	bool more; /* the phases of further equations follow: phases_finish ends one of them */
	Stmt *before, *after;
} Tree;

/* An empty tree in the arena of ir. */
Tree *tree_new(Ir *ir);
Node *tree_buffer(Tree *t, Space space, const char *name, Type type, int64_t size);
/* The caller's buffer number `param`, which holds `tensor`. */
Node *tree_param(Tree *t, const Node *tensor, int param, bool output);
/* From now on the tensor is in this buffer, whatever parameter it would be. */
void tree_bind(Tree *t, const Node *tensor, Node *buffer);
const Buffer *tree_find(const Tree *t, const Node *node);
/* Is it one of the function's own variables? */
static inline bool buffer_is_local(const Buffer *b)
{
	return b->space == SPACE_LOCAL || b->space == SPACE_LANES;
}
Node *tree_axis(Tree *t, int64_t extent); /* a fresh loop variable */
/* The axes' values at element number `at` of their space, in which the last runs fastest. The first goes on where
 * `at` is past the end. */
void axes_at(Ir *ir, Node *at, int n, Node *const *axis, Node **value);
Stmt *stmt_loop(Tree *t, How how, Node *axis, Node *lo, Node *hi, Stmt *body);
Stmt *stmt_if(Tree *t, Node *cond, Stmt *body, Stmt *otherwise);
Stmt *stmt_store(Tree *t, Node *buffer, Node *index, Node *value, Reduce red);
Stmt *stmt_alloc(Tree *t, Node *buffer);
Stmt *stmt_call(Tree *t, const char *symbol, int narg, const CallArg *arg);
/* n elements of `line` go to buffer[index..] past the caches; others see it after stmt_seen. */
Stmt *stmt_stream(Tree *t, Node *buffer, Node *index, Node *line, Node *n);
Stmt *stmt_seen(Tree *t);
/* to[r*line + c] = from[c*step + r] for so many rows r and columns c, of elements of 4 or 8 bytes, in registers. */
Stmt *stmt_transpose(Tree *t, CallArg to, int64_t line, CallArg from, int64_t step, Node *rows,
		     Node *cols);
bool stmt_transposes(const Stmt *s);
/* Prefetches the line of buffer[index], which may be outside. */
Stmt *stmt_prefetch(Tree *t, Node *buffer, Node *index);
Stmt *stmt_sync(Tree *t);
Stmt *stmt_seq(Stmt *a, Stmt *b); /* a then b; either may be NULL; changes a */
Node *buffer_read(Tree *t, Node *buffer, Node *index);
/* Is the read inside its buffer whatever stands around it? */
bool read_inside(const Node *read);
/* Are all reads of e? */
bool reads_inside(Ir *ir, Node *e);
/* Are they wherever path holds, under the conditions in e alone? */
bool reads_guarded(Ir *ir, Node *e, Polyhedron *path);
void tree_print(Text *out, const Tree *t);
/* Copies of s and what follows it, with nodes replaced as node_replace does, without branches that are
 * never taken then. */
Stmt *stmt_replace(Tree *t, const Stmt *s, int n, Node *const *from, Node *const *to);

/* Is the buffer read or stored to in the statements from s on, but for what `except` (NULL: none) stores? */
bool stmt_uses(const Stmt *s, const Stmt *except, Node *buffer);

/* `all` stands where *s stood, in front of what follows it. Returns the last of them. */
Stmt *stmt_instead(Stmt *s, Stmt *all);

/* What is wrong with a tree that is not well formed; NULL: nothing (check.c). */
const char *tree_fault(const Tree *t);
/* With RICCI_CHECK=trees: ends the process where there is something. */
void tree_check(const Tree *t, const char *pass);

/* ---- phases (phases.c) */
/* Adds a section to the phase that is open: `body` for each value of `part`, in any order and beside
 * the phase's other sections. */
void phase_section(Tree *t, Node *part, Stmt *body);
/* Ends the phase: what is added now runs when all of it is done. */
void phase_end(Tree *t);
/* The same of a kernel for a grid: `body` runs in each of `thread` threads of a block, which all phases
 * have as many of (shape.threads); `block` is the block's number. A barrier (SYNC) in it is for the
 * threads of a block, and all of them must come to it. */
void phase_grid(Tree *t, Node *block, Node *thread, Stmt *body);
/* The same, of a phase that is a statement which the host runs: the tree's shape tells how (shape.call). */
void phase_call(Tree *t, Stmt *call);
/* Makes the root of the sections: `before` runs before the parts that a thread takes, `after` behind
 * them. */
void phases_finish(Tree *t, Stmt *before, Stmt *after);

/* Of the statements from s on: neighbouring loops that fill tiles with the same become one
 * (share.c). */
void lower_share(Tree *t, Stmt *s);
/* ---- index-set splitting (index_sets.c) */
/* Cuts vector loops of plain stores, from s on, where a quotient in them steps once, where a condition
 * changes far from the ends, or where conditions hold for most lanes; `width` lanes make a vector. */
typedef enum { SPLIT_QUOTIENTS, SPLIT_CHANGES, SPLIT_CONDITIONS } SplitRule;
void split_loops(Tree *t, Stmt *s, SplitRule rule, int64_t width);
/* Where e >= 0: from *lo on, or before *hi, the other one is NULL; false: that isn't known, e NULL. */
bool slack_bound(Ir *ir, Node *e, Node *axis, Node **lo, Node **hi);
/* lo <= axis < hi is where the condition holds, too, whatever the others say; false: not an
 * interval. */
bool cond_interval(Ir *ir, Node *cond, Node *axis, Node **lo, Node **hi);
/* Cuts serial loops, from s on, where the conditions of IFs in them hold (inside.c). */
void split_inside(Tree *t, Stmt *s);
/* Cuts up serial loops, from s on, around sums of short rows: calls of functions over `chunk` elements take several rows
 * (expand.c). */
void expand_sums(Tree *t, Stmt *s, int64_t chunk);
/* Makes vectors of vector loops (predicates.c). */
void lower_predicates(Tree *t, Stmt *s, const Target *target);
/* Are there vectors of that type? */
bool predicates_type(Type t);
/* The type of vectors that hold elements of type t: elements of 8 and 16 bits are widened to 32. */
Type lanes_type(Type t);
/* Tiles of few vectors become variables (registers.c). */
void lower_registers(Tree *t, Stmt *s);
/* Loops of so many elements and fewer are short, on this processor. */
int64_t predicates_most(const Target *target, Type t);
/* Is n an operator that all lanes take at once? */
bool predicates_take(const Node *n);
/* Are elements of which lanes of vectors of `width` take every step-th read one by one? */
bool lanes_apart(Type t, int64_t width, int64_t step);
/* Do this store of the loop and the next take turns in the elements of a line? */
bool lanes_interleave(Ir *ir, const Stmt *loop, const Stmt *s);

/* ---- what differs between a loop's lanes (lanes.c) */
/* Is the buffer, of one element, one for each lane of a LANES loop? */
bool lanes_own(const Stmt *loop, const Node *buffer);
/* Does n read what the loop allocates, or stores? */
bool lanes_access(Node *n, const Stmt *loop, StmtKind kind);
/* Is n a read at places that lie in no regular steps? */
bool lanes_look_up(Ir *ir, const Node *n, const Stmt *loop);
/* Is there such a read in n? */
bool lanes_look_up_any(Ir *ir, Node *n, const Stmt *loop);
/* Does n differ between the lanes? */
bool lanes_vary(Node *n, const Stmt *loop);
typedef struct LaneIndex { /* common + the sum of all k[] * atom[] */
	Node *common;	   /* the same for all lanes */
	int n;
	int64_t *k; /* in ir's arena */
	Node **atom;
} LaneIndex;
/* Parts of an index that differ between lanes are cut off at so much where they are compared. */
#define LANE_INDEX_MOST (INT64_C(1) << 30)
/* place: n is where a read is, of which 32 bits do, so that its sums may wrap. */
LaneIndex lane_index(Ir *ir, Node *n, const Stmt *loop, bool place);
bool lane_index_cut(const Node *atom); /* may be larger than that */
/* Do 32 bits hold it? */
bool lane_index_exact(const LaneIndex *x);
typedef struct LaneQuotient { /* n / by == n * times >> shift, in 32 bits */
	Node *of;
	int32_t by, times;
	int shift;
} LaneQuotient;
/* Is the part of an index, of which 32 bits do, a quotient, or a remainder, that lanes compute by a product and a shift
 * (Granlund, Montgomery 1994)? */
bool lane_quotient(const Node *atom, LaneQuotient *q);
/* Do a and b compare as they are in 32 bits, or (where they aren't exact) once what is larger is cut off? */
bool lane_index_compares(const LaneIndex *a, const LaneIndex *b);

/* How the lanes decide a condition: all in the same way; it holds in an interval of them; it asks for the loop's axis
 * alone (k%4 < 3), so that where that is a lane, the lanes for which it holds are known; they have to compare values. */
typedef enum { LANES_AGREE, LANES_INTERVAL, LANES_LISTED, LANES_COMPARE } LanesDecide;
LanesDecide lanes_decide(Ir *ir, Node *cond, const Stmt *loop);

#endif
