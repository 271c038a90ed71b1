/* subgraph.h - subgraphs that run row by row. */
#ifndef JIT_SUBGRAPH_H
#define JIT_SUBGRAPH_H

#include "jit/jit.h"
#include "jit/rewrite/rewrite.h"

/* Where all these equations run well row by row on the device: how much longer than its share a thread
 * works that has most rows, 1 or more. Else 0. (rows.c) */
double subgraph_rows_suit(Ir *ir, int n, Node *const *member, const DeviceModel *dev);
/* Does a member read within its rows from line to line, of each of which a row has one element? (rows.c) */
bool rows_go_across(Ir *ir, const Subgraph *s);
/* Finds what its equations read of others, each tensor once; of a loop the operands. */
void subgraph_inputs(Ir *ir, Subgraph *s);
/* The member that t is, -1: none. */
int subgraph_member(const Subgraph *s, const Node *t);
/* The axis of member k that runs over the rows' dimension d. */
Node *rows_axis(const Subgraph *s, int k, int d);
/* How many rows there are with so many dimensions as rows. */
int64_t rows_count(const Subgraph *s, int dims);

#endif
