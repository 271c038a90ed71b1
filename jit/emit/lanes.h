/* lanes.h - LANES loops as vectors under masks: types, masks and loads (lanes_load.c), values and stores (lanes.c). */
#ifndef JIT_EMIT_LANES_H
#define JIT_EMIT_LANES_H

#include "jit/emit/internal.h"

typedef struct Kept {
	const Node *read, *cond; /* read: or another value; NULL: the mask */
	int64_t step, from;
	const char *type, *name; /* type: of a mask */
} Kept;

typedef struct Lanes {
	Emit *e;
	const Stmt *loop;
	Kept *kept;
	int nkept, room;
} Lanes;

/* The name of what is kept; NULL: nothing. */
const char *lane_kept(const Lanes *v, Kept key);
/* Keeps the text's value under a name. */
const char *lane_keep(Lanes *v, const char *type, Kept key, const char *text);
int64_t lane_width(const Lanes *v);
/* Once in a file, in which other kernels may ask for the same. */
void lane_declare(Emit *e, const char *name, const char *text);
/* What elements are added up as. */
extern const char *const lane_added_as[RICCI_NTYPES];
const char *lane_type(Lanes *v, Type t);
/* The function that accesses elements of type t in memory; some: under a mask. */
const char *lane_access(Lanes *v, Type t, const char *what, bool some);
/* What all lanes share, and compute whether or not one wants it: it reads inside of its buffers. */
const char *lane_uniform(Lanes *v, Node *n);
/* Where lanes take every step-th element: the mask of those from `from` on that the lanes take for
 * which cond (NULL: nothing) holds, and of what lies between them; NULL: all. */
const char *lane_mask(Lanes *v, Type t, Node *cond, int64_t step, int64_t from);
/* The address of the first lane's element. */
const char *lane_place(Lanes *v, Node *buffer, Node *index);
bool lane_variable(const Lanes *v, const Node *buffer);
/* May whole vectors be read and written there, whatever the lanes are? */
bool lane_room(const Lanes *v, Node *buffer, const Node *index);
/* The READ n in the lanes where cond (NULL: nothing) holds. */
const char *lane_load(Lanes *v, Node *n, Node *cond);
/* Is it zero where a mask leaves it out? */
bool lane_loaded(const Lanes *v, Node *n);

#endif
