/* notation.h - text to equations, and back. */
#ifndef CORE_NOTATION_H
#define CORE_NOTATION_H

#include "core/algebra/algebra.h"

/* ---- notation (lex.c, parse.c, elaborate.c, print.c) ---- */
/* Parses and elaborates `text` into ir. noperand: the number of operands given; they bind
 * unassigned names in the order of the signature, else of first appearance; integers among them as
 * docs/notation.md says. Result tensors in the order of the signature, else of the text. Errors go
 * to ir->err: message, the line of the text, a caret under the place. hint (may be NULL) receives
 * axis names for printing. Returns 0 or the error. */
int notation_elaborate(Ir *ir, const char *text, int noperand, Node *const *operands, int *nresult,
		       Node **results, int room);
/* The operands' names of a text in that order (integers only by a signature), NUL-separated in the arena; -1
 * and ir->err on error. */
int notation_operands(Ir *ir, const char *text, const char ***names);
/* The same in two steps, by name (program.c): the unassigned names in order of first appearance and
 * what each equation assigns, then the equations' tensors. Under IR_ENTER; errors jump. */
typedef struct Notation {
	struct Program *program;
	int noperand, nequation;
	const char **operand, **assigned;
	int nresult;
	const char **result; /* in the order of the signature, else of the text */
	bool *is_result;     /* of what is assigned */
	Node **tensor;	     /* by notation_bind */
} Notation;
void notation_parse(Ir *ir, const char *text, Notation *out);
/* Where the text has `name` without brackets and tensor is a known integer (tensor_integer), it
 * stands for that. Before notation_bind. */
void notation_integer(Notation *n, const char *name, const Node *tensor);
void notation_bind(Notation *n, Node *const *operands);
/* Prints the equation of c (or the declaration of an input or a loop's result). Tensors are named
 * by name(user, t); the text parses back to the same node when the names are bound to the same
 * tensors. "Y[i,j] += A[i,k]*B[k,j] where i<4, j<5, k<6". A long part that stands in several places
 * is printed once, as a value before the equation, "v1 = ..; Y[i] = v1*v1": the text is as long as
 * the equation has nodes. */
void print_equation(Text *out, Ir *ir, Node *c, const char *(*name)(void *user, Node *t),
		    void *user);
/* The same with the range of every axis, whether inference would find it or not: what machines read
 * and write, ten times as fast. */
void print_equation_ranged(Text *out, Ir *ir, Node *c, const char *(*name)(void *user, Node *t),
			   void *user);
/* An expression of a loop tree, for people: axis number 7 is i7. */
void print_expr(Text *out, Ir *ir, Node *e, const char *(*name)(void *user, Node *t), void *user);
/* All equations that roots need, in order, one a line, with locals named T1, T2..; inputs by their
 * own names. The result names are rootname[i] (NULL: R, R_2..). A loop is a block of its variables
 * (V1, V2..), its body's equations, and what comes of them, printed where the first of its results
 * would stand. */
void print_program(Text *out, Ir *ir, int nroot, Node *const *roots, const char *const *rootname);
/* With all ranges written. */
void print_program_ranged(Text *out, Ir *ir, int nroot, Node *const *roots,
			  const char *const *rootname);
/* The same. Returns the names that inputs and roots have in the text, by id, in ir's arena. */
const char **print_program_named(Text *out, Ir *ir, int nroot, Node *const *roots,
				 const char *const *rootname);

#endif
