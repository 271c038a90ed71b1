/* graph.h - the state of the public builder, read by autodiff, runtime and nn. */
#ifndef CORE_GRAPH_H
#define CORE_GRAPH_H

#include "core/notation/notation.h"

#include <stdarg.h>

/* ---- graphs (graph.c): the public builder's state, read by runtime and nn ---- */
typedef enum {
	ROLE_INPUT,
	ROLE_PARAM,
	ROLE_STATE,
	ROLE_COMP,
	ROLE_VARIABLE /* an input that stands for a step's value in a loop: it has no data */
} Role;
struct ricci_tensor {
	ricci_graph *g;
	Node *node;
	const char *name;
	Role role;
	ricci_init init;
	/* Of integer inputs that index (gathers): the range that their data must keep. */
	int64_t need_lo, need_hi;
	ricci_tensor *assign; /* PARAM, STATE: the value after the step, or NULL */
	ricci_tensor *next;   /* all handles of the graph, in order of creation */
	ricci_tensor *same;   /* with a name: the next one of the same bucket */
};
struct ricci_graph {
	Ir ir;
	ricci_tensor *first, *last, nil; /* nil: the inert tensor that failed calls return */
	NodeMap handle;			 /* from nodes to ricci_tensor */
	ricci_tensor **bucket;		 /* of names; nbucket is a power of 2 */
	size_t nbucket;
	ricci_tensor **kept; /* parameters and states */
	int nkept, kept_room, nnamed;
	int refs;		      /* atomic: its owner's, and its sessions' */
	Type precision;		      /* of factors, in its sessions */
	ricci_rounding_mode rounding; /* of f32 to bf16, there */
	size_t memory_limit;	      /* of a step, there; 0: none */
	bool may_overflow; /* a training step leaves out updates by gradients that are not finite */
	int ntensor;
	struct NameScope *scope; /* the innermost open one, or NULL */
};
/* The tensor of that full name, or NULL. */
ricci_tensor *graph_find(const ricci_graph *g, const char *name);
/* The handle of a node, made when there is none. */
ricci_tensor *graph_handle(ricci_graph *g, Node *n);
/* The same; a new one of a computed tensor has this name. */
ricci_tensor *graph_result(ricci_graph *g, Node *n, const char *name);
void graph_ref(ricci_graph *g);		 /* ricci_graph_free takes it back */
bool graph_frozen(const ricci_graph *g); /* it has sessions, so it refuses changes */
/* Gives inputs the contracts of what was elaborated (ir->need). */
int graph_needs(ricci_graph *g);
/* ---- what parameters and states start from (initial.c) ---- */
enum {
	INIT_CONSTANT,
	INIT_NORMAL,
	INIT_UNIFORM,
	INIT_TRUNCATED,
	INIT_ORTHOGONAL,
	INIT_VALUES,
	INIT_COUNT
}; /* ricci_init.kind */
/* Does it fit a tensor of that type and shape? 0 or the sticky error, which begins with the call
 * and the name. */
int init_check(ricci_graph *g, const char *call, const char *name, Type type, int rank,
	       const int64_t *shape, const ricci_init *init);
/* The same with its values in the arena. Under IR_ENTER. */
ricci_init init_kept(ricci_graph *g, const ricci_init *init);
/* ---- names (names.c) ---- */
typedef struct NameScope {
	const char *prefix; /* of all open scopes, with the last point */
	struct NameScope *outer;
} NameScope;
const char *scope_prefix(const ricci_graph *g); /* "": no scope is open */
/* Is the name short enough with the open scopes before it? 0 or the sticky error. */
int scope_fits(ricci_graph *g, const char *call, const char *name);
/* A new tensor, which may be found by its name from now on. Under IR_ENTER. */
void names_add(ricci_graph *g, ricci_tensor *t);
/* May a new tensor have this name in the open scopes? 0 or the sticky error. */
int scope_check(ricci_graph *g, const char *call, const char *name);
/* The name with the open scopes before it, in the arena. Under IR_ENTER. */
const char *scope_name(ricci_graph *g, const char *name);
/* The error of a call without a graph. */
int graph_missing(const char *call);
/* The n operands of a variadic call, in the arena. Under IR_ENTER. */
ricci_tensor **operands_given(ricci_graph *g, int n, va_list ap);
/* May g be changed? Sets the sticky error when not. */
bool graph_open(ricci_graph *g, const char *call);

/* As ricci_precision takes it; NULL: it does not. */
const char *precision_name(Type t);

/* ---- nets as text (net_print.c, net_read.c) ----
 * A graph's inference part: what `noutput` tensors need, with `training` = 0. One line each:
 *	ricci net 1
 *	precision bf16				or f16, tf32, where it is not f32
 *	rounding stochastic			where it is not to the nearest
 *	input NAME TYPE SHAPE [LOW..HIGH] "name"	the range that its data must keep
 *	param NAME TYPE SHAPE "name"		and `state`
 *	equations and loops, as print_program_ranged
 *	output NAME "name"
 * NAME is the equations' name of the tensor that the graph calls "name". */
/* Appends the text. name[k] (or name: NULL) is what outputs are called; else their own names. 0 or an
 * error. */
int net_print(Text *out, int noutput, ricci_tensor *const *output, const char *const *name,
	      Error *err);
/* A net that was read: a graph of its own, which ricci_graph_free frees with all that is here. */
typedef struct ReadNet {
	ricci_graph *g;
	int noutput;
	ricci_tensor **output;
	const char **name; /* of the outputs */
} ReadNet;
/* 0, or RICCI_EFORMAT with the line that is wrong, or RICCI_ENOMEM; then there is no graph. */
int net_read(ReadNet *net, const char *text, Error *err);

#endif
