/* interp.h - between the interpreter's compiler, its machine and its driver.
 *
 * An equation becomes a flat program of instructions on registers, split into levels: level 0 runs
 * once, level k + 1 whenever axis k changes. Register k holds axis k. */
#ifndef INTERP_H
#define INTERP_H

#include "core/core.h"

/* What scalar folding and the interpreter share (fold.c). */
double scalar_unary(Op op, double a);
double scalar_binary(Op op, double a, double b);

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
} Slot;

#define CODES(X)                                                                                   \
	X(END)                                                                                     \
	X(CONST)    /* dst = imm */                                                                \
	X(MOVE)	    /* dst = a */                                                                  \
	X(JUMP)	    /* to imm */                                                                   \
	X(UNLESS)   /* to imm when a is 0 */                                                       \
	X(WHEN)	    /* to imm when a is not 0 */                                                   \
	X(PICK)	    /* dst = a ? b : c */                                                          \
	X(STEP)	    /* dst = a + imm * b */                                                        \
	X(CHECK)    /* index a of slot c, dimension b, must be in 0..imm-1 */                      \
	X(LOAD_F32) /* dst = slot c at a + imm * b */                                              \
	X(LOAD_F64)                                                                                \
	X(LOAD_FLOAT)                                                                              \
	X(LOAD_I64)                                                                                \
	X(LOAD_INT)                                                                                \
	X(FADD)                                                                                    \
	X(FSUB)                                                                                    \
	X(FMUL)                                                                                    \
	X(FDIV)                                                                                    \
	X(FNEG)                                                                                    \
	X(FBINARY) /* scalar_binary(imm) */                                                        \
	X(FUNARY)  /* scalar_unary(imm) */                                                         \
	X(FLT)                                                                                     \
	X(FLE)                                                                                     \
	X(FEQ)                                                                                     \
	X(FNE)                                                                                     \
	X(FROUND) /* to float type imm */                                                          \
	X(FTOINT) /* to integer type imm */                                                        \
	X(FTOBOOL)                                                                                 \
	X(INTTOF)                                                                                  \
	X(ITOBOOL)                                                                                 \
	X(ISATURATE) /* to integer type imm */                                                     \
	X(IWRAP)     /* to integer type imm */                                                     \
	X(IADD)                                                                                    \
	X(ISUB)                                                                                    \
	X(IMUL)                                                                                    \
	X(INEG)                                                                                    \
	X(IDIV)                                                                                    \
	X(IMOD)                                                                                    \
	X(IMIN)                                                                                    \
	X(IMAX)                                                                                    \
	X(IPOW)                                                                                    \
	X(IABS)                                                                                    \
	X(ISIGN)                                                                                   \
	X(ILT)                                                                                     \
	X(ILE)                                                                                     \
	X(IEQ)                                                                                     \
	X(INE)                                                                                     \
	X(BAND)                                                                                    \
	X(BOR)                                                                                     \
	X(BNOT)                                                                                    \
	X(UNIFORM) /* key a, element b */                                                          \
	X(NORMAL)

typedef enum Code {
#define CODE(name) CODE_##name,
	CODES(CODE)
#undef CODE
} Code;

typedef struct Instr {
	uint16_t code;
	uint16_t level;
	int32_t dst, a, b, c;
	Cell imm;
} Instr;

typedef struct Level {
	Instr *at;
	int n, room;
} Level;

typedef struct Program {
	Node *comp;
	int naxis, rank, nreg;
	int body;		 /* register of the body's value */
	int lhs[RICCI_MAX_RANK]; /* registers of the left indices (scatters) */
	Level level[COMP_MAX_AXES + 1];
	Slot *slot;
	int nslot, room;
} Program;

/* Compiles comp into scratch's arena (its oom set); no nodes are made. stored tells how a tensor's
 * values will lie in memory; the slots' data are the caller's to fill in. 0, or an error in err. */
int program_compile(Ir *scratch, Node *comp, Type (*stored)(void *user, Node *t), void *user,
		    Program *p, Error *err);

typedef struct Machine {
	const Program *p;
	Cell *r;
	double *magnitude; /* of each register's float value, or NULL */
	RandomState random;
	Error *err;
} Machine;

/* Runs one level; 0 or an error in m->err. */
int machine_run(Machine *m, int level);

#endif
