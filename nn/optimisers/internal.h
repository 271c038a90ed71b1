/* internal.h - what the files of nn/optimisers/ share: formulas over a parameter, the rules. */
#ifndef OPTIMISERS_INTERNAL_H
#define OPTIMISERS_INTERNAL_H

#include "nn/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* RICCI_EINVAL, the graph's error: "function: what is wrong". */
int optimiser_refuse(ricci_graph *g, const char *function, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- formulas (formula.c): programs of the notation whose operands are found by name. Each is a
 * tensor, or a number that becomes a scalar of the formula's type. Names live as long as the formula.
 */
enum { FORMULA_ROOM = 48 };
typedef struct Formula {
	ricci_graph *g;
	ricci_type type; /* of the numbers */
	int n;
	struct {
		const char *name;
		ricci_tensor *t; /* NULL: the number */
		double value;
	} operand[FORMULA_ROOM];
} Formula;
/* In place of an older one of that name. */
void formula_set(Formula *f, const char *name, ricci_tensor *t);
void formula_number(Formula *f, const char *name, double value);
/* The inert tensor where there is none. */
ricci_tensor *formula_get(const Formula *f, const char *name);
/* Adds the program's equations and sets its results; 0 or the graph's error. */
int formula_run(Formula *f, const char *text);
/* Is the name an operand of the program? */
bool formula_reads(ricci_graph *g, const char *text, const char *name);
/* What follows is computed in f64 for an f64 parameter, else in f32: numbers, and the scalars that
 * the formula has so far in f64. */
void formula_over(Formula *f, const ricci_tensor *p);
/* The tensor of that type, itself where it has it. */
ricci_tensor *formula_cast(ricci_tensor *t, ricci_type type);
/* A state named prefix + p's name + suffix, of p's shape and formula_over's type, that starts at zero. */
ricci_tensor *formula_state(ricci_tensor *p, const char *prefix, const char *suffix);
/* The sum in f64 of n scalars of any float types. */
ricci_tensor *scalars_total(ricci_graph *g, int n, ricci_tensor *const *part);

/* ---- loss scaling (scaling.c) */
typedef struct Scaling {
	ricci_graph *g;
	ricci_scaling o;
	ricci_tensor *scale, *steps; /* states: the scale; steps since it changed */
} Scaling;
/* Makes the states; 0 or the graph's error. */
int scaling_begin(Scaling *s, ricci_graph *g, const ricci_scaling *options);
/* Divides gradients, computed with the scale as seed, by it, and assigns its next value. Bool []: all are
 * finite. Inert tensors after an error. */
ricci_tensor *scaling_end(const Scaling *s, int n, ricci_tensor **grad);

/* ---- rules (rules.c) */
enum { RULE_RMSPROP_MOMENTUM = RICCI_AMSGRADW + 1, RULE_COUNT, RULE_STATES = 3 };
typedef struct Rule {
	const char *name;      /* in messages and in the name of its count of updates */
	bool decay;	       /* `update` reads decay; if not, it is added to the gradient */
	ricci_optimiser usual; /* of beta1, beta2, epsilon, momentum, decay */
	const char *scalars;   /* of t, the number of this update, once a step, in f64; or NULL */
	struct {
		const char *name, *suffix; /* X in the programs, and "parameter.suffix" */
		const char *update;	   /* gives X1, its next value */
	} state[RULE_STATES];
	const char *update; /* gives N, the parameter's next value */
} Rule;
extern const Rule optimiser_rule[RULE_COUNT];

/* ---- averages (averages.c) */
#define AVERAGE_PREFIX "ema." /* of a parameter's name */

#endif
