/* products.h - products as lists of factors (products.c). */
#ifndef JIT_REWRITE_PRODUCTS_H
#define JIT_REWRITE_PRODUCTS_H

#include "jit/rewrite/rewrite.h"

typedef struct Factor { /* cond ? value / divisor : 0; NULL stands for true, or 1 */
	Node *value, *divisor, *cond;
	uint32_t axes; /* bit k: it has axis k of the equation */
	double flops;  /* of one evaluation */
} Factor;

typedef struct Factors {
	Ir *ir;
	Type type; /* of all values */
	int n, room;
	Factor *f;   /* in ir's arena */
	Node *given; /* while it is made: the conditions around what is looked at; NULL: none */
} Factors;

/* Bit k: e, which may be NULL, has axis k of c. */
uint32_t product_axes(const Node *c, Node *e);
/* The axes of c's left side. */
uint32_t product_left(const Node *c);
/* Is n a float that may be infinite, or none, though all data are numbers? Under a condition it stays. */
bool product_unsafe(const Node *n);
/* The axis along which elements of the result lie side by side. */
uint32_t product_last(Ir *ir, const Node *c);
/* Points of the box of these axes. */
double product_points(const Node *c, uint32_t axes);
/* Of a float expression e in the domain of c: of products, quotients and what terms of sums have in common. What isn't
 * safe without a condition around all of it stays in one factor with that. */
Factors product_split(Ir *ir, const Node *c, Node *e);
Node *product_of(const Factors *l, int n, const Factor *f);
Factors factors_copy(const Factors *l);
/* Is the condition one of several, of what is chosen, or of data: none under which panels are packed? */
bool condition_chooses(Ir *ir, Node *cond);
/* Those that have any of the axes come first: how many there are. */
int product_part(Factors *l, uint32_t axes);
/* Factor k goes into factor i; the last one is factor k then. */
void product_combine(Factors *l, int i, int k);
/* Does the sum c of products, which reads something several times, add in vectors, side by side, for all that it reads
 * differs along the result's last axis, or has no axis that this doesn't have? Of other products the factors are packed
 * into panels. */
bool product_beside(Ir *ir, const Node *c);
/* c's sum of another product: its left side, over the axes that are left of its own. */
Node *product_sum(Ir *ir, const Node *c, Node *body);
/* c, the product of l, as a sum over *first, a partial sum that depends on the indices of factor k's read; NULL: there is
 * none. */
typedef Node *FirstFn(Ir *ir, const Node *c, const Factors *l, int k, Node **first);
/* A sum over axes that are no part of the window or the gathered index, for each element of the tensor (window_sums.c). */
FirstFn window_sum;
/* A segment sum: terms with the same gathered index are added up before the product (segment_sums.c). */
FirstFn segment_sum_of_gather;
/* The same for the index of c, a scatter. */
Node *segment_sum_of_scatter(Ir *ir, const Node *c, const Factors *l, Node **first);

/* The sum c over products of its factors that have few points (invariants.c). */
Node *products_apart(Ir *ir, Node *c);
/* The sum c otherwise, so that it may have other partial sums; NULL: there is no such way. */
typedef Node *OtherFn(Ir *ir, const Node *c);
/* Over one more axis, along which it reads what a table of a few axes chooses (tables.c). */
OtherFn table_along;
/* Over two axes in place of one of which it reads a quotient (quotients.c). */
OtherFn quotient_apart;
/* Over what a tensor that it reads repeats (repeats.c). */
OtherFn repeats_read;
/* A factor that is a sum, or one of several by place (terms.c). */
enum { TERMS_MOST = 8 };
typedef struct Terms {
	int at, n; /* factor number `at` */
	Node *term[TERMS_MOST];
	Node *cond[TERMS_MOST]; /* of a choice: where it is this one; NULL: it is a sum */
	bool minus[TERMS_MOST];
} Terms;
/* Is a factor of c's product a sum of products, or a choice, whose terms may be summed apart? */
bool terms_find(const Node *c, const Factors *l, Terms *t);
/* The function e of choices by place as a choice of functions; e itself where there are none, or too many. */
Node *choice_outside(Ir *ir, Node *e);
/* A sum of one term: the elements from first[] on of `whole`, which is c without those dimensions along which the term
 * repeats (bits). */
typedef struct Part {
	Node *sum, *whole;
	int64_t first[RICCI_MAX_RANK];
	uint32_t without;
} Part;
/* c with term k in place of all; c as the sum of such parts. */
Part terms_one(const Node *c, const Factors *l, const Terms *t, int k);
Node *terms_joined(Ir *ir, const Node *c, const Terms *t, const Part *part);

#endif
