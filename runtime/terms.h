/* terms.h - long sums judged by few of their terms (terms.c), for validation (verify.c). */
#ifndef TERMS_H
#define TERMS_H

#include "runtime/trial.h"

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
	int n, nelement;	  /* chosen terms; elements that are judged */
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

#endif
