/* internal.h - between the files of core/node: node.c, which interns, and what prepares a node for
 * it, fold.c, fold_sum.c, bounds.c (one unit, recursive by nature: nodes fold while they are
 * interned); then tensors, equations, loops, and the walks above them. */
#ifndef CORE_NODE_INTERNAL_H
#define CORE_NODE_INTERNAL_H

#include "core/node/node.h"

/* The node of exactly these parts, not folded (s: an INPUT's name, else NULL). */
Node *node_raw(Ir *ir, Op op, Type type, int nsrc, Node *const *src, int64_t i, const char *s);

/* node_map.c */
uint32_t map_oldest(const NodeMap *m); /* the least id of its keys; UINT32_MAX without any */

/* walk.c: what t reads, and what the gradient reads that a user gave for it. */
int tensor_sources(Ir *ir, const Node *t, Node ***list);
/* graph_order by those, without entering what has a value in stop, nor ids below floor. */
int graph_order_to(Ir *ir, int nroot, Node *const *roots, const NodeMap *stop, uint32_t floor,
		   Node ***order);

/* The COMP c with from[k] replaced by to[k] in its body and left indices. */
Node *comp_replaced(Ir *ir, Node *c, int n, Node *const *from, Node *const *to);

/* ---- scan.c ---- */
Scan *scan_intern(Ir *ir, const Scan *scan);
/* r with its loop's body copied into ir by copy(user, n). */
const ScanResult *scan_import(Ir *ir, const ScanResult *r, Node *(*copy)(void *user, Node *n),
			      void *user);

/* The folded node, or NULL when (op, src) stays as it is. */
Node *fold_node(Ir *ir, Op op, Type type, int nsrc, Node *const *src);
/* Sets lo, hi, mul of a node just made; floats keep 0, 0, 1. */
void fold_bounds(Node *n);

/* ---- affine.c: forms under construction, whose coefficients may be 0. Most have few atoms: these
 * need no memory but their own. Moved by address only. */
typedef struct AffineRoom {
	Affine a;
	int64_t k[16];
	Node *atom[16];
} AffineRoom;
Affine *affine_start(AffineRoom *r);
/* Adds k * e. wraps: modulo 2^64, whatever may wrap in e; constants may be any nodes of one value.
 * Otherwise false when a number leaves int64. false too when there is no room and ir is NULL. */
bool affine_add(Ir *ir, Affine *a, Node *e, int64_t k, bool wraps);

/* ---- fold_sum.c: NULL when it stays as it is ---- */
Node *fold_int_add(Ir *ir, Type t, Node *a, Node *b);
Node *fold_int_mul(Ir *ir, Type t, Node *a, Node *b);
Node *fold_floordiv(Ir *ir, Type t, Node *e, int64_t c);
Node *fold_floormod(Ir *ir, Type t, Node *e, int64_t c);

#endif
