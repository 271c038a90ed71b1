/* fold.h - between node.c, which interns, and what prepares a node for it: fold.c, fold_sum.c,
 * bounds.c. */
#ifndef FOLD_H
#define FOLD_H

#include "core/core.h"

/* The node of exactly these parts, not folded (s: an INPUT's name, else NULL). */
Node *node_raw(Ir *ir, Op op, Type type, int nsrc, Node *const *src, int64_t i, const char *s);

/* comp.c: what t reads, and what the gradient reads that a user gave for it. */
int tensor_sources(Ir *ir, const Node *t, Node ***list);
/* graph_order by those, without entering what has a value in stop, nor ids below floor. */
int graph_order_to(Ir *ir, int nroot, Node *const *roots, const NodeMap *stop, uint32_t floor,
		   Node ***order);
uint32_t map_oldest(const NodeMap *m); /* the least id of its keys; UINT32_MAX without any */
/* custom.c: the number of c's record over what map has for what it is over. */
int custom_copy(Ir *ir, const Custom *c, NodeMap *map);

/* ---- scan.c ---- */
uint32_t scan_result_hash(const ScanResult *r); /* of its content */
/* r with its loop's body copied into ir by copy(user, n). */
const ScanResult *scan_import(Ir *ir, const ScanResult *r, Node *(*copy)(void *user, Node *n),
			      void *user);

/* The folded node, or NULL when (op, src) stays as it is. */
Node *fold_node(Ir *ir, Op op, Type type, int nsrc, Node *const *src);
/* Sets lo, hi, mul of a node just made; floats keep 0, 0, 1. */
void fold_bounds(Node *n);

/* An operator on constants, as the interpreter computes it too; NaN where it has no float value. */
double scalar_unary(Op op, double a);
double scalar_binary(Op op, double a, double b);

/* ---- fold_sum.c: NULL when it stays as it is ---- */
Node *fold_int_add(Ir *ir, Type t, Node *a, Node *b);
Node *fold_int_mul(Ir *ir, Type t, Node *a, Node *b);
Node *fold_floordiv(Ir *ir, Type t, Node *e, int64_t c);
Node *fold_floormod(Ir *ir, Type t, Node *e, int64_t c);
/* Is nothing near the ends of int64? Then reassociation can't change a value. */
bool fold_moderate(const Node *e);

#endif
