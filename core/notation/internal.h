/* internal.h - what core's files share among themselves: the notation's tokens, syntax tree and
 * inference of ranges. Everything here lives in the arena of an Ir; errors leave by notation_fail,
 * which jumps to the caller's IR_ENTER. */
#ifndef CORE_NOTATION_INTERNAL_H
#define CORE_NOTATION_INTERNAL_H

#include "core/notation/notation.h"

/* ---- lex.c ---- */
#define NOTATION_MAX_TEXT   (1 << 20) /* bytes of a program */
#define NOTATION_MAX_DEPTH  256	      /* nested parentheses, brackets, signs and choices */
#define NOTATION_MAX_HEIGHT 600	      /* of an expression's tree: a sum of 600 terms */
#define NOTATION_MAX_VALUES (2 * NODE_MAX_DEPTH) /* the same with values in their places */
#define NOTATION_MAX_NAME   255
#define RANGE_MAX	    ((int64_t)1 << 40)

typedef enum Tok {
#define TOK(name, text, level) TOK_##name,
#include "core/notation/tokens.def"
#undef TOK
	TOK_COUNT
} Tok;

/* How tightly operators bind: C's precedence. */
enum {
	LEVEL_CHOICE,
	LEVEL_OR,
	LEVEL_AND,
	LEVEL_EQUAL,
	LEVEL_ORDER,
	LEVEL_SUM,
	LEVEL_PRODUCT,
	LEVEL_SIGN,
	LEVEL_VALUE
};
extern const uint8_t tok_level[TOK_COUNT]; /* of binary operators; LEVEL_CHOICE: none */

/* A name of the program, interned: one record for all its places. */
typedef struct Name {
	const char *s;
	int len;
	uint32_t hash;
	bool is_tensor;	   /* stands before '[' or '.' somewhere */
	int assigned;	   /* number of its equation, -1 for none */
	int first_read;	   /* position of the first reading, -1 for none */
	int operand;	   /* number as an operand, -1 for none */
	Node *tensor;	   /* once bound or computed */
	int slot, slot_of; /* as an index: its place in equation slot_of */
	int first_bare;	   /* position of the first use as an index or a value, -1 for none */
	struct Ast *value; /* what it stands for, or NULL */
	bool is_index;	   /* it has a range, or stands alone in a dimension somewhere */
	bool is_result;
	bool is_number; /* an operand that is a known integer */
	int64_t number;
	bool is_dots; /* one of those that `...` stands for */
} Name;

typedef struct Source {
	Ir *ir;
	const char *text;
	int len;
	Name **table; /* open addressing */
	int room, count;
	unsigned walk, typing, pass; /* the present ones' numbers: marks of syntax trees */
} Source;

typedef struct Lexer {
	Source *src;
	int pos; /* behind the current token */
	Tok tok;
	int start, stop; /* the current token's bytes */
	int last;	 /* where the previous token stopped */
	Name *name;
	uint64_t i;
	double f;
	bool overflow; /* an integer literal too large for uint64 */
} Lexer;

void source_init(Source *s, Ir *ir, const char *text);
/* Sets ir->err to "equation: <message>", the line of the text and a caret under pos, and jumps. */
_Noreturn void notation_fail(Source *s, int code, int pos, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with carets under two places. */
_Noreturn void notation_fail_both(Source *s, int code, int pos, int other, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void lex_next(Lexer *l);

/* ---- parse.c ---- */
typedef enum AstKind {
	AST_INT,
	AST_FLOAT,
	AST_NAME, /* an index as a value */
	AST_SIZE, /* name.size(i) */
	AST_TRAINING,
	AST_DOTS,   /* ... in an access, until it is expanded */
	AST_ACCESS, /* name[arg..] */
	AST_ELSE,   /* arg[0] an access, arg[1] the value outside */
	AST_CALL,   /* name(arg..) */
	AST_UNARY,  /* op: TOK_MINUS, TOK_BANG */
	AST_BINARY, /* op */
	AST_SELECT  /* arg[0] ? arg[1] : arg[2] */
} AstKind;

/* What a part of an expression is: one of the Types, or a value that adapts to the other side: an
 * integer made of numbers and sizes alone, one with index names in it, a float, a comparison. */
enum { KIND_NUMBER = RICCI_NTYPES, KIND_INT, KIND_FLOAT, KIND_LOGIC, KIND_NONE };

/* Values make a tree a graph: what is the value of a name stands once, in all its places, and is
 * walked, typed and elaborated once. */
typedef struct Ast Ast;
typedef struct Shared {
	unsigned typed[2]; /* the typing that found kind[]: as a value, as an index */
	uint8_t kind[2];
	unsigned pass; /* that made it, and found these */
	struct Cases *cases;
} Shared;
typedef struct Made { /* the node of a tree, of type want, that a pass has made */
	unsigned pass;
	Type want;
	Node *node;
	struct Made *next;
} Made;
struct Ast {
	uint8_t kind, op, value; /* value: a KIND or Type, filled by typing */
	unsigned walk;		 /* that saw it last */
	Shared *shared;		 /* of a name's value; else NULL */
	Made *made;
	int pos, end, mark; /* bytes in the text; mark: the operator, where a caret helps most */
	int height, n;
	int dots,
		ndots; /* of an access: 1 + the place of `...`, 0: none; what it stands for, -1: not yet */
	Name *name;
	union {
		int64_t i;
		double f;
	} u;
	Ast *arg[];
};

typedef struct RangeAst {
	Name *name;
	int pos;
	Ast *low, *high; /* low NULL: 0 */
} RangeAst;

typedef struct Equation {
	int number, pos, mark; /* mark: the assignment sign */
	Name *name;
	Reduce red;
	int nleft;
	Ast **left, **extent; /* extent[d] NULL: not written */
	const Ast *dots;      /* `...` on the left, or NULL, and its place */
	int dots_at;
	Ast *body;
	int nrange;
	RangeAst *range;
} Equation;

/* "X, W -> Y:" before a program. */
typedef struct Signature {
	int noperand, nresult;
	Name **operand, **result;
	int *operand_at, *result_at; /* places in the text */
} Signature;

typedef struct Program {
	Source src;
	int nequation, noperand, nresult, nbare;
	Equation **equation;
	Name **operand, **result;   /* in their order */
	Name **bare;		    /* names without brackets, by their first places */
	Signature *signature;	    /* or NULL */
	Name *dots[RICCI_MAX_RANK]; /* indices that `...` stands for, made when needed */
} Program;

Program *program_parse(Ir *ir, const char *text);
/* Is a seen for the first time in the present walk, which ++s->walk began? */
static inline bool ast_enter(const Source *s, Ast *a)
{
	bool first = a->walk != s->walk;
	a->walk = s->walk;
	return first;
}
/* ---- signature.c ---- */
/* Reads a signature where the text begins with one. l: at the first token. */
void signature_parse(Program *p, Lexer *l);
/* The order of operands and results, when all is parsed. seen: the tensors read, in the order of
 * their first places. */
void signature_order(Program *p, int nseen, Name *const *seen);

/* ---- bind.c: what operands the names stand for ---- */
/* In the program's order. */
void names_bind(Program *p, int noperand, Node *const *operands);
void names_bind_named(Program *p, int noperand, const char *const *names, Node *const *operands);
/* The bare name, if the program has it, is the integer in `tensor`. */
void names_bind_integer(Program *p, const char *name, const Node *tensor);
/* Before q is elaborated: its integers become numbers, `...` the indices that it stands for. */
void equation_expand(Program *p, Equation *q);

const char *ast_text(Source *s, const Ast *a); /* the words of the text, shortened */

/* ---- guard.c ---- */
typedef struct Guard { /* a condition under which a part is evaluated */
	Node *cond;
	int depth; /* how many there are, with this one */
	struct Guard *next;
} Guard;
Polyhedron *guard_polyhedron(Ir *ir, const Guard *g);
bool guard_is_dead(const Guard *g); /* never evaluated */
Guard *guard_push(Ir *ir, Guard *next, Node *cond);
Guard *guard_replace(Ir *ir, const Guard *g, int n, Node *const *from, Node *const *to);

/* All the conditions under which a part is evaluated. Invariant: no case holds wherever another
 * does. Where there are many, two that differ in the truth of one condition become one, so parts
 * below choice after choice have few. */
typedef struct Case {
	Guard *guard;
	bool conditional; /* there are conditions beside where's */
} Case;
typedef struct Cases {
	Case *list;
	int n, room;
	bool many;
} Cases;
enum { CASES_MOST = 256 };
/* Does a hold wherever b does, being some of its conditions? */
bool case_covers(const Case *a, const Case *b);
/* Returns false when there are CASES_MOST already. */
bool cases_add(Ir *ir, Cases *x, Case c);
/* c and cond. */
Case case_and(Ir *ir, Case c, Node *cond);

/* ---- infer.c: ranges of indices ---- */

typedef struct Constraint { /* 0 <= index < extent where that holds */
	Node *index;
	int64_t extent;
	Case when;
	const Ast *access; /* for messages; NULL of the left side */
	int dimension;
	enum {
		SIDE_READ,
		SIDE_SCATTER,
		SIDE_RANGE
	} side;	       /* left of '=': an extent says the range */
	uint32_t mask; /* infer's: the spans that index holds */
	bool gather;   /* infer's: index holds a READ */
} Constraint;

typedef struct Span {	  /* an index name */
	Node *axis;	  /* provisional: of extent RANGE_MAX */
	int64_t off;	  /* the name's value is axis + off while provisional */
	bool left;	  /* stands bare on the left */
	Node *low, *high; /* from where: low <= name < high, over provisional axes; NULL: none */
	bool known;
	int64_t lo, extent;
} Span;

typedef enum {
	INFER_OK,
	INFER_UNKNOWN,
	INFER_EMPTY,
	INFER_LONG,
	INFER_AMBIGUOUS, /* bare in dimensions of different extents */
	INFER_UNPROVED,	 /* neither that a longer range holds nor that it does not */
	INFER_RETURNS	 /* inside again beyond the range that would be found */
} InferCode;
typedef struct InferFault {
	int which;		       /* of the spans */
	const Constraint *why, *other; /* which stop it, or NULL; other: of AMBIGUOUS ones */
	int64_t top;		       /* of RETURNS: the last value of that range */
} InferFault;
/* Finds lo and extent of every span. */
InferCode infer_ranges(Ir *ir, int nspan, Span *span, int ncon, Constraint *con, InferFault *fault);
Node *span_value(Ir *ir, const Span *s);
/* The condition under which every index lies inside the tensor, as far as the nodes' bounds leave
 * it open. */
Node *inside_condition(Ir *ir, Node *tensor, Node *const *index);

/* ---- print.c, print_program.c ---- */
typedef struct Printer {
	Text *out;
	Ir *ir;
	const char *(*name)(void *user, Node *t);
	void *user;
	int naxis;
	Node *axis[COMP_MAX_AXES];
	const char *axis_name[COMP_MAX_AXES];
	bool all_ranges;     /* write each axis' range */
	const char *between; /* behind the definition of a value */
	NodeMap part;	     /* of the equation that is printed: what is known of its nodes */
	Node **value;	     /* shared parts that are printed once */
	int nvalue, nnamed;  /* nnamed: in all equations */
} Printer;
/* Names that others may not have. */
typedef struct Names {
	const char **list;
	int n;
} Names;
bool names_have(const Names *t, const char *s);
/* What the text around an expression says about its type: all of it; that it is the type of a float
 * without more; nothing. */
typedef enum { NEED_NOTHING, NEED_FLOAT, NEED_TYPE } TypeNeed;
const char *print_name(Printer *p, Node *t);
void print_value(Printer *p, Node *n, int level, TypeNeed need, bool index);
void print_body(Printer *p, Node *n, int level);
/* Before anything below root[] is printed: which parts become values, and their names. */
void print_find_values(Printer *p, int nroot, Node *const *root, const Names *taken);
void print_values(Printer *p, const char *between); /* "v1 = ..; v2 = ..; " */

/* ---- typing.c ---- */
/* What to write in place of a name or sign of other notations (hint.c). */
typedef struct Hint {
	const char *name, *text;
} Hint;
const Hint *hint_row(int i);			    /* NULL: no more */
const char *hint_text(Source *s, const char *name); /* "; write .."; "" when there is none */

Op call_find(const char *name); /* of a function; 0: there is none */
/* Fills a->value everywhere below a; index: a is an integer index expression. */
int typing_check(Source *s, Ast *a, bool index);
int typing_join(Source *s, Ast *a, Ast *x, Ast *y, bool logic); /* the common kind of x and y */

/* ---- elaborate.c, expression.c ---- */
#define NOTATION_MAX_INDEX COMP_MAX_AXES
typedef struct Index {
	Name *name;
	int pos;
	bool right; /* stands in the body or in a left expression */
	const RangeAst *where;
	Node *value; /* over provisional axes while collecting, then over the true ones */
} Index;

typedef struct Root {
	Ast *part;
	Case c;
} Root;

typedef struct Elab {
	Source *src;
	Ir *ir;
	Equation *eq;
	int n;
	Index index[NOTATION_MAX_INDEX];
	Span span[NOTATION_MAX_INDEX];
	bool collecting; /* first pass: constraints are collected, nothing is proved */
	Decisions decisions;
	Ast **value; /* the values that this pass has made, those that others are made of first */
	int nvalue, value_room;
	Root *root; /* what accesses_end looks at first */
	int nroot, root_room;
	Constraint *con;
	int ncon, room;
	Node *element; /* of random draws */
} Elab;

/* The node of a; each distinct part is made once a pass. */
Node *elab_expr(Elab *e, Ast *a, Type want);
Node *elab_condition(Elab *e, Ast *a); /* of type BOOL */
/* ---- accesses.c: accesses are constrained while collecting, else proved ---- */
/* Begins a pass. */
void accesses_begin(Elab *e, bool collecting);
/* elab_expr(e, a, want), which is evaluated in case c. */
Node *accesses_of(Elab *e, Ast *a, Type want, Case c);
/* When all is made. */
void accesses_end(Elab *e);
/* Collects a constraint, of what is read unless side is another. */
Constraint *elab_constrain(Elab *e, Case c, Node *index, int64_t extent, const Ast *access,
			   int dimension);
/* access.c: proves 0 <= index < extent under g, or accepts a contract, or fails. */
void access_prove(Elab *e, Guard *g, const Ast *access, const Ast *index_text, int dimension,
		  Node *index, int64_t extent);
/* The proof alone. */
bool access_is_inside(Ir *ir, Node *index, int64_t extent, Guard *g);
/* Fails where the index, computed from indices alone, can leave 64 bits. */
void access_check_wrap(Elab *e, const Ast *access, const Ast *index_text, Node *index);
/* Adds lo..hi to the contract on an input; false when nothing is left. */
bool need_add(Ir *ir, Node *input, int64_t lo, int64_t hi);
/* program: parsed and bound; the rest as in notation_elaborate; errors jump. */
void program_elaborate(Program *p, int *nresult, Node **results, int room);
/* Of a program of one equation, whose operands are bound and whose ranges, all `name < number`, say
 * what they would say anyway: needed[k] where range k can't be left out. Errors jump. */
void program_needed(Program *p, bool *needed);

#endif
