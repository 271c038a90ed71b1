/* tiles.h - pairs of axes along which one factor slides over the other, and tiles of them by fewer products. */
#ifndef JIT_STAGES_TILES_H
#define JIT_STAGES_TILES_H

#include "jit/jit.h"

enum {
	INPUTS = 4,
	PRODUCTS = 4,
	TILE_MOST = 3, /* results, taps */
	GUARDS_MOST = 16,
	WINDOW_AXES = 5 /* that a window has of its own */
};

/* `results` sums y[p] of the terms x[p + r] * w[r] over `taps` of r, by products of sums:
 * y = back ((a x) * (b w)). */
typedef struct TileWay {
	int results, taps;
	int8_t b[PRODUCTS][TILE_MOST], back[TILE_MOST][PRODUCTS]; /* b in halves: 2 is 1 */
} TileWay;

/* A depends on the place, p + sign*r + a constant, from 0 on, and on neither axis else; B on r. */
typedef struct Window {
	Node *p, *r;
	int sign;
	const TileWay *way;
	bool spreads; /* tiles are of A's places, what they add to overlaps: the way's transposed */
	int64_t first;		   /* then: the first place where A isn't 0 */
	int64_t np, nr;		   /* tiles */
	Node *u, *tile_r;	   /* 0 where there is one */
	Node *tile_p, *block, *in; /* block * lanes + in */
	int64_t lanes;
	Node *place;
} Window;

/* The window of the axes p and r whose products are the fewest, by which a slides over b; its own axes are numbered
 * from `number` on. false: none saves any. */
bool tiles_find(Ir *ir, Node *a, Node *p, Node *r, int number, Window *w);
/* Its axes, with tiles in blocks of w->lanes. */
void tiles_open(Ir *ir, Window *w, int number);

/* e, which depends on p and r by the place, as it depends on that. */
Node *tiles_place(Ir *ir, Node *e, const Window *w);
/* e at the window's place, at r, or of tiles and u: factors of products, of which the last are, and the results. */
Node *tiles_of_a(Ir *ir, Node *e, const Window *w);
Node *tiles_of_b(Ir *ir, Node *e, const Window *w);
Node *tiles_back(Ir *ir, Node *e, const Window *w);

#endif
