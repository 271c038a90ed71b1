/* internal.h - what the files of jit/ share with each other and with nobody else. */
#ifndef JIT_INTERNAL_H
#define JIT_INTERNAL_H

#include "jit/jit.h"

/* ---- micro-kernels (microkernel.c and microkernel_<isa>.c): built ahead for several instruction
 * sets; c[i*ldc + j] = (add ? c[i*ldc + j] : 0) + sum_k A(i, k) * b[k*nr + j], for 0 <= i < rows
 * (at most mr), 0 <= j < cols (at most nr). A(i, k) is a[k*mr + i] or, placed, a[ts[i] + tk[k]];
 * both: b is a MicroPanel, whose elements are at[tk[k] + j], packed or not. c is any memory. Rows
 * are rounded up to even numbers and columns to whole vectors: a, ts, b and c reach that far.
 *
 * Narrow ones take panels of 8- or 16-bit elements, of which instructions add up several products
 * at once: `group` elements of K lie together, so that element (k, i) of a panel of n lanes is at
 * k/group*group*n + i*group + k%group. K is filled up with zeros to whole groups of both. */
typedef void MicroFn(int64_t rows, int64_t cols, int64_t k, const void *a, const void *b, void *c,
		     int64_t ldc, int64_t add);
typedef void MicroPlacedFn(int64_t rows, int64_t cols, int64_t k, const void *a, const int64_t *ts,
			   const int64_t *tk, const void *b, void *c, int64_t ldc, int64_t add);
typedef struct MicroPanel {
	const void *at;
	const int64_t *tk;
} MicroPanel;
/* What a micro-kernel wants of a factor's panels. */
typedef struct PanelForm {
	unsigned from; /* bits 1 << Type: of which elements; 0: of the sum's type */
	Type held;     /* as large as an element of the panel */
	int group;
} PanelForm;
typedef struct Micro {
	/* the names by which generated code calls them; narrow ones have the first only */
	const char *symbol, *placed_symbol, *both_symbol;
	MicroFn *fn;
	MicroPlacedFn *placed, *both;
	Type type; /* of c, and of the sums */
	int mr, nr;
	unsigned isa; /* needs these bits */
	PanelForm a, b;
	int speed; /* multiply-adds for one of a vector of `type` */
} Micro;
/* The best for sums of that type which the target runs; never NULL for F32, F64 and I32. */
const Micro *micro_pick(const Target *t, Type type);
/* The best narrow one for factors of types a and b; NULL: none. */
const Micro *micro_pick_narrow(const Target *t, Type type, Type a, Type b);

/* Functions that generated code may call by name: micro-kernels, math, Philox. tcc gets them by
 * tcc_add_symbol. */
typedef struct JitSymbol {
	const char *name;
	const void *address;
} JitSymbol;

/* ---- loops over time (rewrite_scan.c): the first part of rewrite_graph, and their bodies' */
void rewrite_scans(Ir *ir, int nroot, Node **roots);
/* Stacks of the same values are one (rewrite_stacks.c). */
void rewrite_stacks(Ir *ir, int nroot, Node **roots);

/* ---- loop trees (loop.c)
 * Mutable statements in an arena over immutable index expressions. Every tensor in a tree is a
 * Buffer: a one-dimensional INPUT node of a scratch Ir, read by READ with a flat index. Loop
 * variables are AXIS nodes whose numbers are unique in the tree; a node may appear in several
 * disjoint loops. */
typedef enum { STMT_LOOP, STMT_IF, STMT_STORE, STMT_ALLOC, STMT_CALL, STMT_SYNC } StmtKind;
typedef enum { HOW_SERIAL, HOW_UNROLL, HOW_VECTOR, HOW_PARALLEL, HOW_BLOCK, HOW_THREAD } How;
typedef enum { SPACE_PARAM, SPACE_LOCAL, SPACE_SCRATCH, SPACE_TABLE, SPACE_SHARED } Space;

/* TABLE: scratch that is written before the parallel loop only. SHARED: one for all threads. */
typedef struct Buffer {
	Node *node; /* INPUT of rank 1 */
	Space space;
	bool output;   /* PARAM: written, never read before */
	int param;     /* PARAM: its place in buf[] */
	size_t offset; /* SCRATCH, TABLE, SHARED: bytes from the start of that memory */
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
	Node *buffer, *index, *value; /* STORE: buffer[index] red= value; ALLOC: buffer */
	Reduce red;
	const char *symbol; /* CALL: its arguments are addresses in buffers and integers */
	int narg;
	CallArg *arg;
};

typedef struct Tree {
	Ir *ir;
	int nbuffer, room, next_axis;
	Buffer *buffer; /* moves when it grows */
	Stmt *root;
	int64_t parts; /* extent of the PARALLEL loop at the root */
	int64_t first; /* see Kernel */
	size_t scratch, shared;
} Tree;

Node *tree_buffer(Tree *t, Space space, const char *name, Type type, int64_t size);
const Buffer *tree_find(const Tree *t, const Node *node);
Node *tree_axis(Tree *t, int64_t extent); /* a fresh loop variable */
Stmt *stmt_loop(Tree *t, How how, Node *axis, Node *lo, Node *hi, Stmt *body);
Stmt *stmt_if(Tree *t, Node *cond, Stmt *body, Stmt *otherwise);
Stmt *stmt_store(Tree *t, Node *buffer, Node *index, Node *value, Reduce red);
Stmt *stmt_alloc(Tree *t, Node *buffer);
Stmt *stmt_call(Tree *t, const char *symbol, int narg, const CallArg *arg);
/* n elements of `line` go to buffer[index..] past the caches; others see it after stmt_seen. */
Stmt *stmt_stream(Tree *t, Node *buffer, Node *index, Node *line, Node *n);
Stmt *stmt_seen(Tree *t);
Stmt *stmt_seq(Stmt *a, Stmt *b); /* a then b; either may be NULL; changes a */
Node *buffer_read(Tree *t, Node *buffer, Node *index);
void tree_print(Text *out, const Tree *t);

/* ---- problems (lower_problem.c): a task's subgraph with flat indices and collapsed axes
 * main: out[0][index] red= body over axes; afterwards, at each spatial point, every member's value.
 * Spatial axes come first, by falling stride of the output; then the reduced ones. `result` stands
 * for main's finished value in the members' values. */
#define PROBLEM_MAX_MEMBERS 64
#define PROBLEM_MAX_READS   32
/* A read of main's body as it was written: dimension by dimension. Where axes were merged a
 * dimension may run past its end; the flat index is right. */
typedef struct ProblemRead {
	Node *read;
	int rank;
	Node *dim[RICCI_MAX_RANK];
	int64_t stride[RICCI_MAX_RANK];
} ProblemRead;
typedef struct Problem {
	Tree *tree;
	Ir *ir;
	const Subgraph *sub;
	int naxis, nspatial;
	Node *axis[COMP_MAX_AXES];
	Reduce red;
	Type type, acc; /* of main: stored and accumulated */
	bool scatter; /* the left side is not one-to-one: serial read-modify-write of the output */
	bool partial; /* one-to-one, but not every element is written: fill first */
	bool row;     /* a row's share of a subgraph: it has no parts of its own */
	Node *body, *result;
	int nread; /* the first PROBLEM_MAX_READS of the body */
	ProblemRead read[PROBLEM_MAX_READS];
	Node *index; /* main's flat left side over its axes */
	int nout;    /* members that are stored, main included where it is */
	Node *out[PROBLEM_MAX_MEMBERS], *out_index[PROBLEM_MAX_MEMBERS],
		*out_value[PROBLEM_MAX_MEMBERS];
	int64_t main_size;
	Reduce out_red[PROBLEM_MAX_MEMBERS]; /* how: = or, of a fold, added to what is there */
	Node *main_out;			     /* main's buffer, NULL when it is not stored */
	int nfree; /* scatter: axes that stand bare in one left dimension only */
	Node *free_axis[COMP_MAX_AXES];
	int rank; /* scatter: of main, with its shape and left indices */
	int64_t shape[RICCI_MAX_RANK];
	Node *lhs[RICCI_MAX_RANK];
} Problem;
int problem_init(Problem *p, Tree *tree, const Subgraph *sub);
/* Where an equation of a subgraph with rows finds its tensors, and the row that it computes. */
typedef struct Rows {
	int rows, ntensor;
	Node *index[RICCI_MAX_RANK]; /* the row, dimension by dimension */
	Node **tensor, **buffer;
	bool *local; /* the buffer holds one row */
	Node **sums; /* NULL, or what a fold adds to in place of its buffer: its place `block` */
	Node *block;
	Node **streamed; /* NULL, or where rows of the buffer are written past the caches */
} Rows;
/* some: one equation, or several that are pointwise over the places of a row. */
int problem_init_row(Problem *p, Tree *tree, const Subgraph *some, const Rows *rows);
/* The coefficient of axis in the flat index e; INT64_MIN when e is not affine in it. */
int64_t problem_stride(Ir *ir, Node *e, Node *axis);
/* The accumulated value v as one of the result's type: integers wrap. */
Node *problem_narrow(const Problem *p, Node *v);
/* Splits SELECT(cond, x, identity) factors off body: the conjuncts go to guard[], the rest is
 * returned. */
Node *problem_guards(Ir *ir, Reduce red, Node *body, int room, int *nguard, Node **guard);

typedef struct Dialect Dialect;

/* ---- rounding by chance (rounding_key.c) */
typedef struct RoundingKeys RoundingKeys;
/* Of the graph whose tensors are order[]; casts in its equations have a key. */
RoundingKeys *rounding_keys(Ir *ir, const Within *in, int n, Node *const *order);
uint32_t rounding_key(const RoundingKeys *d, const Node *cast);

/* ---- schedules */
typedef enum StepKind {
#define STEP(name, text, axis, help) STEP_##name,
#include "jit/steps.def"
#undef STEP
	STEP_COUNT
} StepKind;
bool step_has_axis(int kind);
void schedule_add(Schedule *s, StepKind kind, int axis, int64_t arg);
bool schedule_is_new(const Schedule *offers, int n); /* offers[n] is none of those before it */
enum { NEST_OFFERS = 6 };
/* The default of a direct nest (variant 0), or another. */
void nest_offer(const Problem *p, int variant, Schedule *s);
/* Steps for a pointwise problem that asks for quotients and remainders of its axes (residues.c),
 * all but the parallel loops, the first of which have the extents extent[]. Returns how many these
 * are; 0: no steps. */
int residues_offer(const Problem *p, int64_t *extent, Schedule *s);

/* ---- lowering: problem + schedule -> tree->root, parts, scratch. 0 or an error. */
int lower_nest(Problem *p, const Schedule *s, const Target *target, const Dialect *d, Error *err);
/* Rows of subgraphs (rows.c). Do all these equations run well row by row, where folds can be
 * had? */
bool subgraph_rows_suit(Ir *ir, int n, Node *const *member, bool folds);
/* The axis of member k that runs over the rows' dimension d. */
/* The member that t is, -1: none. */
int subgraph_member(const Subgraph *s, const Node *t);
Node *rows_axis(const Subgraph *s, int k, int d);
int lower_rows(Tree *tree, const Subgraph *sub, const Schedule *s, const Target *target,
	       const Dialect *d, Error *err);
/* Cuts vector loops where conditions hold for most lanes, of which `width` make a vector
 * (lower_inside.c). */
void lower_inside(Tree *t, Stmt *s, int64_t width);
/* sums[from..from+n-1] red= those of the blocks behind the first, `size` apart (lower_sums.c). */
Stmt *sums_add(Tree *t, Node *sums, Reduce red, int64_t nblock, int64_t size, Node *from, Node *n);
int lower_contract(Problem *p, const Schedule *s, const Target *target, const Dialect *d,
		   Error *err);
/* *first: they are better than direct nests, by structure and sizes. */
int contract_offers(Problem *p, const Target *target, int room, Schedule *out, bool *first);
/* The same by calls of a library (lower_library.c), which is opened for it. */
int lower_library(Problem *p, const Schedule *s, const Target *target, Error *err);
int library_offers(Problem *p, const Target *target, int room, Schedule *out);
extern const JitSymbol pack_symbols[]; /* contract_pack.c; ends with NULL */
/* Packing of panels, for the instruction set in the name. */
extern const JitSymbol panel_symbols_plain[], panel_symbols_avx2[];
extern const JitSymbol pack_narrow_plain[], pack_narrow_avx2[];
extern const JitSymbol move_symbols_plain[], move_symbols_avx2[]; /* moves.inc */
enum { PACK_SLACK = 16 }; /* elements behind a panel that packing may overwrite */

/* ---- dialects and the emitter (dialect.c, emit.c) */
struct Dialect {
	const char *backend; /* its row in backends[] */
	const char *prelude; /* types and helpers, once a file */
	const char *math;    /* functions of the operators: declarations or definitions */
	const char *before_math, *after_math; /* lines around them; NULL: none */
	const char *restrict_;		      /* how a pointer says that it is not aliased */
	const char *vector, *unroll; /* lines before such loops; unroll takes the count as %d */
	const char *align;	     /* of local arrays */
	const char *sync;
	bool versions; /* full tiles get their own code with constant bounds */
	bool grid;     /* parts are threads of a grid */
	int chunk;     /* vector loops are calls of functions over so many elements; 0: loops */
};
const Dialect *dialect_find(const char *backend);
extern const char *const dialect_ctype[RICCI_NTYPES];	/* how an element is stored */
extern const char *const dialect_compute[RICCI_NTYPES]; /* the type of a value in an expression */
#define EMIT_MAX_SCOPES 96
typedef struct EmitTexts { /* owned by the caller, so that running out of memory leaks nothing */
	Text scope[EMIT_MAX_SCOPES];
} EmitTexts;
int emit_tree(Text *out, EmitTexts *texts, const Tree *t, const Dialect *d, const char *name,
	      Error *err);

/* Text of static inline functions with the names of the math symbols (mathlib.c). */
extern const char jit_math_prelude[];

#endif
