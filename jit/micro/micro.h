/* micro.h - register micro-kernels, and packing panels for them: compiled ahead for each
 * instruction set. */
#ifndef JIT_MICRO_H
#define JIT_MICRO_H

#include "jit/builtin/builtin.h"

/* ---- micro-kernels (micro.c and kernel_<isa>.c): built ahead for several instruction
 * sets; c[i*ldc + j] = (add ? c[i*ldc + j] : 0) + sum_k A(i, k) * b[k*nr + j], for 0 <= i < rows
 * (at most mr), 0 <= j < cols (at most nr). A(i, k) is a[k*mr + i] or, placed, a[ts[i] + tk[k]];
 * both: b is a MicroPanel, whose elements are at[tk[k] + j], packed or not; with each, what lies b_next
 * elements behind the first may be prefetched. Listed: the sum is
 * over so many elements of K, of A at a[ts[i] + list->a[k]], of B at b[list->b[k] + j]. c is any
 * memory. Rows
 * are rounded up to even numbers and columns to whole vectors: a, ts and b reach that far, and so
 * does c, unless `add` has MICRO_EXACT. With MICRO_FOLLOWS places along K follow each other in A: tk[k] is
 * tk[0] + k.
 *
 * Narrow ones take panels of 8- or 16-bit elements, of which instructions add up several products
 * at once: `group` elements of K lie together, so that element (k, i) of a panel of n lanes is at
 * k/group*group*n + i*group + k%group. K is filled up with zeros to whole groups of both. Placed and
 * listed ones read the first place of each group of K, whose elements follow it in A. Some want
 * calls of `enter` before and `leave` after any number of calls on the same thread. */
enum { MICRO_ADD_UP = 1, MICRO_EXACT = 2, MICRO_FOLLOWS = 4 }; /* bits of `add` */
/* And two numbers, of placed ones: where the first isn't 0, the rows of the panel that comes next follow in ts, as
 * many as this one's, and may be prefetched to L2: each so manyth row at each so manyth group of K, which
 * are all its lines. */
enum { MICRO_AHEAD = 8, MICRO_DEEP = 16, MICRO_EACH = 255 }; /* their first bits, and the most */
/* For each element of K it may prefetch to L2 the next a_ahead elements of panels from a_next on, and
 * b_ahead from b_next on: what is multiplied next. The places may be any. */
typedef void MicroFn(int64_t rows, int64_t cols, int64_t k, const void *a, const void *b, void *c,
		     int64_t ldc, int64_t add, const void *a_next, int64_t a_ahead,
		     const void *b_next, int64_t b_ahead);
typedef void MicroPlacedFn(int64_t rows, int64_t cols, int64_t k, const void *a, const int64_t *ts,
			   const int64_t *tk, const void *b, void *c, int64_t ldc, int64_t add);
typedef void MicroBothFn(int64_t rows, int64_t cols, int64_t k, const void *a, const int64_t *ts,
			 const int64_t *tk, const void *panel, void *c, int64_t ldc, int64_t add,
			 int64_t b_next);
typedef void MicroStateFn(void);
typedef void MicroFinishFn(void *panel, int64_t k);
typedef struct MicroPanel {
	const void *at;
	const int64_t *tk;
} MicroPanel;
typedef struct MicroList {
	int64_t k;
	const int64_t *a, *b;
} MicroList;
typedef void MicroListedFn(int64_t rows, int64_t cols, const MicroList *list, const void *a,
			   const int64_t *ts, const void *b, void *c, int64_t ldc, int64_t add);
/* What a micro-kernel wants of a factor's panels. */
typedef struct PanelForm {
	unsigned from; /* bits 1 << Type: of which elements; 0: of the sum's type */
	Type held;     /* as large as an element of the panel */
	int group;
	/* called on each panel after packing it: changes it, or puts `more` elements for each lane
	 * behind its last group */
	int more;
	const char *finish_symbol; /* NULL: none */
	MicroFinishFn *finish;
} PanelForm;
typedef struct Micro {
	/* the names by which generated code calls them; narrow ones have the first only, some
	 * placed and listed ones */
	const char *symbol, *placed_symbol, *both_symbol, *listed_symbol;
	const char *enter_symbol, *leave_symbol; /* NULL: none */
	MicroFn *fn;
	MicroPlacedFn *placed;
	MicroBothFn *both;
	MicroListedFn *listed;
	MicroStateFn *enter, *leave;
	Type type; /* of c, and of the sums */
	int mr, nr;
	unsigned isa; /* needs these bits */
	PanelForm a, b;
	int speed;	/* multiply-adds for one of a vector of `type` */
	bool whole;	/* multiplies mr rows and nr columns, whatever an edge holds */
	bool streams_a; /* reads A past L1, which holds a panel of B; else one of A, and B streams */
} Micro;
/* The best for sums of that type which the target runs; never NULL for F32, F64 and I32. */
const Micro *micro_pick(const Target *t, Type type);
/* The best narrow one for factors of types a and b; NULL: none. */
const Micro *micro_pick_narrow(const Target *t, Type type, Type a, Type b);
extern const JitSymbol micro_state_symbols[]; /* all of enter and leave; ends with NULL */
const Micro *micro_at(int i); /* all of them, NULL at the end; some need more than the host has */

/* ---- packing */
extern const JitSymbol pack_symbols[]; /* pack.c; ends with NULL */
/* Packing of panels, for the instruction set in the name. */
extern const JitSymbol panel_symbols_plain[], panel_symbols_avx2[], panel_symbols_avx512[];
extern const JitSymbol pack_narrow_plain[], pack_narrow_avx2[], pack_narrow_avx512[];
enum {
	ZERO_BLOCKS_CONDITIONS = 32,
	ZERO_BLOCKS_STATE = 5
};			  /* most of ricci_zero_blocks; words before theirs */
enum { PACK_SLACK = 16 }; /* elements behind a panel that packing may overwrite */

#endif
