/* terms.h - long sums checked by few of their terms (terms.c; terms_places.c, which terms and what they
 * read; terms_values.c, their values; terms_draw.c, data), for validation (verify.c). */
#ifndef TERMS_H
#define TERMS_H

#include "runtime/verify/trial.h"

enum { TERM_READS = 32 };
typedef enum TermsKind { TERMS_ZEROS, TERMS_ONES, TERMS_BASE, TERMS_KINDS } TermsKind;

typedef struct Terms {
	const Task *task;
	TaskCopy copy;
	bool usable[TERMS_KINDS];
	double base, exact; /* of TERMS_BASE; as exact_members has it */
	bool *marked;	    /* of each input: each term reads an element of its own */
	bool *filled;	    /* and which hold the base, in the kind of data drawn last */
	Node *read[TERM_READS];
	int nread;
	bool many, varies;	  /* more reads than that; what body_of_base has found */
	int n, nelement;	  /* chosen terms; elements that are checked */
	int64_t *point, *element; /* their places on the reduced axes, on the others */
	Node *points, *elements;  /* the same as tensors of the copy */
	/* Of each input that is marked: what is read, term by term of each element, by one read after
	 * the other; -1: nothing, beyond an edge. */
	int64_t **place;
	int *nplace;
	Sample s; /* the elements, and what they should be */
} Terms;

/* At most `nelement` elements by n terms. Nothing is usable where terms can't be told apart. */
int terms_new(Terms *x, const Task *t, int nelement, int n, uint64_t seed, Error *err);
void terms_free(Terms *x);
bool terms_usable(const Terms *x);
/* How many runs a kind of data needs. */
int terms_runs(const Terms *x, TermsKind kind);
/* Draws a trial's inputs, and says in x->s what the results should be. */
int terms_draw(Terms *x, Trial *v, TermsKind kind, int run, uint64_t seed, Error *err);

/* ---- between its files, in IR_ENTER of the copy ---- */
/* Chooses x->nelement elements and x->n terms, or fewer where there are not so many, and makes room
 * for what x->read[] read there. */
void terms_choose(Terms *x, uint64_t seed);
/* Adds what `read` reads to its input's places. */
int terms_places(Terms *x, const Node *read, Error *err);
/* An expression at each of the chosen elements: of each chosen term, of these together as the
 * equation does it, or of any one, where all are alike. */
typedef enum TermsOf { TERMS_EACH, TERMS_TOGETHER, TERMS_ANY } TermsOf;
/* Its values, and (NULL: not wanted) the magnitudes of what they are made of. input: the task's
 * data, or NULL where it reads none. */
int terms_values(Terms *x, Node *body, TermsOf how, void *const *input, double *v, double *mag,
		 Error *err);
/* The marked inputs hold the base, or all of floats. */
void terms_fill(Terms *x, bool all);
/* The body with every number of such inputs being v; NULL: terms differ still. */
Node *terms_base_body(Terms *x, double v);
int terms_input(const Terms *x, const Node *tensor); /* -1: none */
double terms_count(const Terms *x);		     /* of one result */

#endif
