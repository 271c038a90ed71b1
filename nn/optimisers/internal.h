/* internal.h - what the files of nn/optimisers/ share: formulas over a parameter, the rules. */
#ifndef OPTIMISERS_INTERNAL_H
#define OPTIMISERS_INTERNAL_H

#include "nn/nn.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---- formulas (formula.c): equations whose operands are found by name.
 * A text is equations of the notation, separated by ';'. '@' stands for the indices of the
 * parameter, '$' for the type in which its update is computed. The names that an equation reads are
 * tensors or numbers of the formula; its left name becomes a tensor of it, in place of an older one
 * of that name. */
enum { FORMULA_ROOM = 32, FORMULA_NAME = 16 };
typedef struct Formula {
	ricci_graph *g;
	int rank;	 /* of the parameter */
	ricci_type type; /* f64 for f64 parameters, else f32 */
	int n, nnumber;
	struct {
		char name[FORMULA_NAME];
		ricci_tensor *t;
	} operand[FORMULA_ROOM];
	struct {
		const char *name;
		double value;
	} number[FORMULA_ROOM];
} Formula;
void formula_set(Formula *f, const char *name, ricci_tensor *t);
void formula_number(Formula *f, const char *name, double value);
/* The inert tensor where there is none. */
ricci_tensor *formula_get(const Formula *f, const char *name);
/* Adds the equations; 0 or the graph's error. */
int formula_run(Formula *f, const char *text);
/* Does the text read this name? */
bool formula_reads(const char *text, const char *name);
/* The names of p's dimensions and its type of computation for what follows. */
void formula_over(Formula *f, const ricci_tensor *p);

/* ---- rules (rules.c) */
enum { RULE_RMSPROP_MOMENTUM = RICCI_ADAGRAD + 1, RULE_COUNT, RULE_STATES = 2 };
typedef struct Rule {
	const char *name;      /* in messages and in the name of its count of updates */
	bool decay;	       /* `equations` read decay; if not, it is added to the gradient */
	ricci_optimiser usual; /* of beta1, beta2, epsilon, momentum, decay */
	struct {
		const char *letter, *suffix; /* X in the equations, and "parameter.suffix" */
	} state[RULE_STATES];
	const char *scalars;   /* of t[], the number of this update, once a step, in f64; or NULL */
	const char *equations; /* N[@], and X1[@] for state X */
} Rule;
extern const Rule optimiser_rule[RULE_COUNT];

/* ---- averages (averages.c) */
#define AVERAGE_PREFIX "ema." /* of a parameter's name */
/* A state named prefix + p's name + suffix, of p's shape and f's type, that starts at zero. */
ricci_tensor *formula_state(Formula *f, ricci_tensor *p, const char *prefix, const char *suffix);

#endif
