/* cost.h - the price of a loop tree (cost.c). */
#ifndef JIT_COST_H
#define JIT_COST_H

#include "jit/tree/tree.h"

/* Cycles of one core for all parts of the kernel, where a compiler makes vectors of its loops, times what
 * is lost where threads get unequal shares. INFINITY: it calls functions, whose cost is not known. Runs
 * under IR_ENTER of the tree's Ir. */
double tree_cost(const Tree *t, const Target *target);
/* The same without its calls: what is computed around micro-kernels. */
double tree_cost_around(const Tree *t, const Target *target);
/* How much longer than its share the thread with most parts works, on average over machines. */
double cost_imbalance(double parts);

#endif
