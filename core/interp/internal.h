/* interp.h - between the interpreter's compiler, its machine and its driver.
 *
 * An equation becomes a flat program of instructions without jumps. Every register holds LANES
 * values, one for each of LANES points that run side by side: points differ in their lane axes (the
 * left ones, which make the element, and more where there are few elements); the other axes are
 * looped over. Level 0 of the code runs once, level 1 for each set of lanes, level 2 + j whenever
 * loop axis j changes. Register k holds axis k. What stands in a branch of a lazy operator runs for
 * all lanes, but its reads look at memory only where the branch's mask register is not 0. */
#ifndef CORE_INTERP_INTERNAL_H
#define CORE_INTERP_INTERNAL_H

#include "core/interp/interp.h"

#include <float.h>
#include <math.h>

typedef union Cell {
	double f;
	int64_t i;
} Cell;

/* A tensor's values as the program finds them: doubles and int64 where the interpreter computed
 * them, the tensor's own type where the user gave them. */
typedef struct Slot {
	Node *tensor;
	const void *data;
	Type stored;
	const double *magnitude; /* NULL: the values are exact */
	const uint8_t *lost;	 /* NULL, or which of them may be anything */
} Slot;

/* The instructions, and the part of the machine that runs them. */
#define CODES(X)                                                                                   \
	X(END, END)                                                                                \
	X(CHECK, CHECK)	  /* index a of slot c, dimension b, must be in 0..imm-1 where mask */     \
	X(LOAD_F32, LOAD) /* dst = slot c at a + imm * b where mask, else at 0 */                  \
	X(LOAD_F64, LOAD)                                                                          \
	X(LOAD_FLOAT, LOAD)                                                                        \
	X(LOAD_I64, LOAD)                                                                          \
	X(LOAD_INT, LOAD)                                                                          \
	X(CONST, FLOAT) /* dst = imm */                                                            \
	X(MOVE, FLOAT)	/* dst = a */                                                              \
	X(PICK, FLOAT)	/* dst = a ? b : c */                                                      \
	X(FADD, FLOAT)                                                                             \
	X(FSUB, FLOAT)                                                                             \
	X(FMUL, FLOAT)                                                                             \
	X(FDIV, FLOAT)                                                                             \
	X(FNEG, FLOAT)                                                                             \
	X(FBINARY, FLOAT) /* scalar_binary(imm) */                                                 \
	X(FUNARY, FLOAT)  /* scalar_unary(imm) */                                                  \
	X(FROUND, FLOAT)  /* to float type imm */                                                  \
	X(INTTOF, FLOAT)                                                                           \
	X(UNIFORM, FLOAT) /* key a, element b */                                                   \
	X(NORMAL, FLOAT)                                                                           \
	X(STEP, INTEGER) /* dst = a + imm * b */                                                   \
	X(FLT, INTEGER)                                                                            \
	X(FLE, INTEGER)                                                                            \
	X(FEQ, INTEGER)                                                                            \
	X(FNE, INTEGER)                                                                            \
	X(FTOINT, INTEGER) /* to integer type imm */                                               \
	X(FTOBOOL, INTEGER)                                                                        \
	X(ITOBOOL, INTEGER)                                                                        \
	X(ISATURATE, INTEGER) /* to integer type imm */                                            \
	X(IWRAP, INTEGER)     /* to integer type imm */                                            \
	X(IADD, INTEGER)                                                                           \
	X(ISUB, INTEGER)                                                                           \
	X(IMUL, INTEGER)                                                                           \
	X(INEG, INTEGER)                                                                           \
	X(IDIV, INTEGER)                                                                           \
	X(IMOD, INTEGER)                                                                           \
	X(IMIN, INTEGER)                                                                           \
	X(IMAX, INTEGER)                                                                           \
	X(IABS, INTEGER)                                                                           \
	X(ISIGN, INTEGER)                                                                          \
	X(ILT, INTEGER)                                                                            \
	X(ILE, INTEGER)                                                                            \
	X(IEQ, INTEGER)                                                                            \
	X(INE, INTEGER)                                                                            \
	X(BAND, INTEGER)                                                                           \
	X(BOR, INTEGER)                                                                            \
	X(BANDNOT, INTEGER) /* a and not b */                                                      \
	X(BNOT, INTEGER)

typedef enum Code {
#define CODE(name, part) CODE_##name,
	CODES(CODE)
#undef CODE
} Code;

typedef struct Instr {
	Code code;
	int32_t dst, a, b, c, mask; /* mask: -1 for all lanes */
	Cell imm;
	/* Of a float: the largest number of the type that kernels compute it in. Of a comparison of
	 * floats: how near in magnitudes they are in doubt. Of PICK: the type's epsilon. */
	double limit;
} Instr;

typedef struct Level {
	Instr *at;
	int n, room;
} Level;

enum { LANES = 32 };

typedef struct Program {
	Node *comp;
	int naxis, rank, nreg;
	int body;		 /* register of the body's value */
	int lhs[RICCI_MAX_RANK]; /* registers of the left indices (scatters) */
	int nlane, lane[COMP_MAX_AXES], nloop, loop[COMP_MAX_AXES]; /* axes */
	Level level[COMP_MAX_AXES + 2];
	Slot *slot;
	int nslot, room;
} Program;

/* Compiles comp for so many elements (0: a scatter) into scratch's arena (its oom set); no nodes
 * are made. stored tells how a tensor's values will lie in memory; the slots' data are the caller's
 * to fill in. 0, or an error in err. */
int program_compile(Ir *scratch, Node *comp, int64_t elements, Type (*stored)(void *user, Node *t),
		    void *user, Program *p, Error *err);

/* An accumulator: the value so far and its magnitude. Of `*=` also a bound of the product of any of
 * the factors, since kernels multiply them in any order. */
typedef struct Sum {
	Cell v;
	double magnitude, most;
} Sum;

/* May kernels have anything there? */
static inline bool is_lost(double magnitude)
{
	return magnitude == INFINITY;
}

static inline bool is_finite(double v)
{
	return fabs(v) <= DBL_MAX;
}

/* The magnitude of v where numbers end at `largest`. (NaN: zero times one that is lost.) */
static inline double magnitude_within(double largest, double v, double magnitude)
{
	return !(magnitude <= largest) ? INFINITY : is_finite(v) ? magnitude : 0;
}

/* The magnitude of what is lost of a number too small for a type with this largest number. */
static inline double magnitude_least(double largest)
{
	return largest >= DBL_MAX ? DBL_MIN / DBL_EPSILON : FLT_MIN / FLT_EPSILON;
}

typedef struct Machine {
	const Program *p;
	Cell *r;	   /* LANES of each register */
	double *magnitude; /* the same of the float values' magnitudes, or NULL */
	bool doubt;	   /* some comparison was in doubt */
	Sum *whole;	   /* of a scatter: one for each element of the result */
	RandomState random;
	Error *err;
} Machine;

/* Runs one level; 0 or an error in m->err. */
int machine_run(Machine *m, int level);

/* ---- interp_comp.c: the whole program; 0 or an error in m->err ---- */
/* `count` elements of a dense equation: at[], or all where at is NULL. */
int machine_dense(Machine *m, int64_t count, const int64_t *at, Cell *out, double *magnitude);
int machine_scatter(Machine *m, Cell *out, double *magnitude);

/* ---- interp_plan.c: graphs ----
 * A plan holds what has to be computed, sources first; it can run again and again. */
typedef struct Known Known;
typedef struct Interp {
	Ir *scratch; /* its arena holds everything but the caller's arrays; it makes no nodes */
	RandomState random;
	bool magnitudes;
	NodeMap known; /* of tensors */
	Known **plan;
	int nplan, plan_room;
	struct ScanRun *run; /* all, the latest first */
	Error *err;
} Interp;

/* A tensor whose values are known, or will be. */
struct Known {
	Slot slot;
	Program *program; /* of a COMP; NULL: given */
	Machine machine;
	struct ScanRun *run; /* that this SCAN leads: it computes all results of its loop */
	int nread, next;     /* sources, and the next one to look after while planning */
	Known *below;	     /* who waits for it */
};
Known *known_find(Interp *s, const Node *t);
Known *known_add(Interp *s, Slot slot);
/* A Known for t and all that it needs, in the plan. NULL: an error in s->err. */
Known *plan_tensor(Interp *s, Node *t);
int plan_run(Interp *s);
/* Elements from .. from + n - 1 of a slot, widened. */
void slot_copy(const Slot *slot, int64_t from, int64_t n, Cell *out, double *magnitude);
/* A program's registers. */
void machine_new(Interp *s, const Program *p, Machine *m);
/* How the values of t lie in memory; user: an Interp. */
Type stored_as(void *user, Node *t);

#endif
