/* cost.h - the price of a loop tree (cost.c). */
#ifndef JIT_COST_H
#define JIT_COST_H

#include "jit/tree/tree.h"

/* Cycles of one core for all parts of the kernel, where a compiler makes vectors of its loops, times what
 * is lost where threads get unequal shares. *calls: it calls functions, whose cost is not known and left out. Runs
 * under IR_ENTER of the tree's Ir. */
double tree_cost(const Tree *t, const Target *target, bool *calls);
/* How much longer than its share the thread with most parts works, on average over machines. */
double cost_imbalance(double parts);

#endif
