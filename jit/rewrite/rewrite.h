/* rewrite.h - the parts of rewriting a graph (graph.c). */
#ifndef JIT_REWRITE_H
#define JIT_REWRITE_H

#include "jit/jit.h"

/* ---- loops over time (scan.c): the first part of rewrite_graph, and their bodies' */
void rewrite_scans(Ir *ir, int nroot, Node **roots);
/* Stacks of the same values are one (stacks.c). */
void rewrite_stacks(Ir *ir, int nroot, Node **roots);
/* A reduction that runs along two axes as two equations (running.c). */
Node *running_apart(Ir *ir, Node *c);

/* ---- rounding by chance (rounding_key.c) */
typedef struct RoundingKeys RoundingKeys;
/* Of the graph whose tensors are order[]; casts in its equations have a key. */
RoundingKeys *rounding_keys(Ir *ir, const Within *in, int n, Node *const *order);
uint32_t rounding_key(const RoundingKeys *d, const Node *cast);

#endif
