/* registers.c - tiles of whole vectors become variables: a compiler leaves an array in memory where
 * loops over it are not unrolled, or masks and functions are in the way.
 *
 * Input: a loop tree with LANES loops. Output: the same; a local tile of which they access one vector
 * at a time, at places that are known once short loops around them are written out, is a buffer of
 * SPACE_LANES for each of its vectors. Invariant: the order of statements is kept. */
#include "jit/tree/problem.h"

enum { VECTORS_MOST = 32, WRITTEN_MOST = 64, LOOPS_MOST = 16 };

typedef struct Tile {
	Tree *t;
	Node *buffer;
	int64_t width;			/* lanes of a vector */
	const Stmt *around[LOOPS_MOST]; /* the loops that are open, from the tile's scope on */
	Node *written[LOOPS_MOST];	/* axes of loops to be written out */
	int naround, nwritten;
	bool fits;
	Node *vector[VECTORS_MOST]; /* NULL: not accessed */
} Tile;

/* ---- does it fit? ---- */

static bool is_short(const Stmt *loop)
{
	return (loop->how == HOW_UNROLL || loop->how == HOW_SERIAL) && node_is_const(loop->lo) &&
	       node_is_const(loop->hi) && loop->hi->u.i - loop->lo->u.i <= VECTORS_MOST;
}

static void mark_written(Tile *x, Node *axis)
{
	for (int k = 0; k < x->nwritten; k++)
		if (x->written[k] == axis)
			return;
	x->fits &= x->nwritten < LOOPS_MOST;
	if (x->fits)
		x->written[x->nwritten++] = axis;
}

/* An access inside LANES loop `lanes`, NULL: another. Which loops must be written out for it? */
static void find_access(Tile *x, Node *index, const Stmt *lanes)
{
	Ir *ir = x->t->ir;
	int64_t times = 1;
	if (lanes && !x->width)
		x->width = axis_extent(lanes->axis);
	x->fits &= lanes && axis_extent(lanes->axis) == x->width;
	/* A row's last vectors may stand under conditions that never hold and reach beyond the tile. */
	x->fits &= index->lo >= 0 && index->hi < tensor_size(x->buffer);
	if (!x->fits)
		return;
	Node *place = node_sub(ir, index, lanes->axis);
	for (int k = 0; k < x->naround && x->fits; k++) {
		const Stmt *l = x->around[k];
		if (!node_has(place, l->axis))
			continue;
		int64_t stride = affine_stride(ir, place, l->axis);
		x->fits &= is_short(l) && stride != INT64_MIN && stride % x->width == 0;
		if (!x->fits)
			return;
		times *= l->hi->u.i - l->lo->u.i;
		mark_written(x, l->axis);
		place = node_replace(ir, place, 1, &l->axis, &l->lo);
	}
	x->fits &= times <= WRITTEN_MOST && node_is_const(place) && place->u.i % x->width == 0;
}

/* The reads of x->buffer in e. */
static int reads_of(const Tile *x, Node *e, Node ***read)
{
	bool has = e && node_has(e, x->buffer);
	int all = has ? node_collect(x->t->ir, e, OP_READ, read) : 0, n = 0;
	for (int k = 0; k < all; k++)
		if ((*read)[k]->src[0] == x->buffer)
			(*read)[n++] = (*read)[k];
	return n;
}

static void find_reads(Tile *x, Node *e, const Stmt *lanes)
{
	Node **read;
	int n = reads_of(x, e, &read);
	for (int k = 0; k < n && x->fits; k++)
		find_access(x, read[k]->src[1], lanes);
}

static void find_all(Tile *x, const Stmt *s, const Stmt *lanes)
{
	for (; s && x->fits; s = s->next) {
		Node *outside[] = {s->lo, s->hi, s->cond, s->index};
		for (int k = 0; k < COUNT(outside); k++)
			find_reads(x, outside[k], NULL);
		find_reads(x, s->value, lanes);
		for (int k = 0; k < s->narg; k++) {
			x->fits &= s->arg[k].buffer != x->buffer;
			find_reads(x, s->arg[k].value, NULL);
		}
		if (s->kind == STMT_PREFETCH)
			x->fits &= s->buffer != x->buffer;
		if (s->kind == STMT_STORE && s->buffer == x->buffer)
			find_access(x, s->index, lanes);
		if (s->kind == STMT_IF) {
			find_all(x, s->body, lanes);
			find_all(x, s->otherwise, lanes);
		}
		if (s->kind != STMT_LOOP)
			continue;
		x->fits &= x->naround < LOOPS_MOST;
		if (!x->fits)
			return;
		x->around[x->naround++] = s;
		find_all(x, s->body, s->how == HOW_LANES ? s : NULL);
		x->naround--;
	}
}

/* ---- loops written out ---- */

/* Accesses of x->buffer become those of x->vector[0] at the same places (lanes NULL, width 0), or of
 * each vector at its lanes. */
static void move_access(const Tile *x, Node **buffer, Node **index, const Stmt *lanes)
{
	int64_t k = x->width ? node_sub(x->t->ir, *index, lanes->axis)->u.i / x->width : 0;
	*buffer = x->vector[k];
	*index = x->width ? lanes->axis : *index;
}

static Node *move_reads(const Tile *x, Node *e, const Stmt *lanes)
{
	Node **read;
	int n = reads_of(x, e, &read);
	Node **to = arena_alloc(&x->t->ir->arena, (size_t)(n + 1) * sizeof *to);
	for (int k = 0; k < n; k++) {
		Node *buffer, *index = read[k]->src[1];
		move_access(x, &buffer, &index, lanes);
		to[k] = buffer_read(x->t, buffer, index);
	}
	return n ? node_replace(x->t->ir, e, n, read, to) : e;
}

static void move_all(const Tile *x, Stmt *s, const Stmt *lanes)
{
	for (; s; s = s->next) {
		Node **part[] = {&s->lo, &s->hi, &s->cond, &s->index, &s->value};
		for (int k = 0; k < COUNT(part); k++)
			*part[k] = move_reads(x, *part[k], lanes);
		for (int k = 0; k < s->narg; k++)
			s->arg[k].value = move_reads(x, s->arg[k].value, lanes);
		if (s->kind == STMT_STORE && s->buffer == x->buffer)
			move_access(x, &s->buffer, &s->index, lanes);
		move_all(x, s->body, s->how == HOW_LANES ? s : lanes);
		move_all(x, s->otherwise, lanes);
	}
}

/* A copy's variables are its own. */
static void rename_variables(Tree *t, Stmt *copy)
{
	for (Stmt *s = copy; s; s = s->next) {
		if (s->kind != STMT_ALLOC)
			continue;
		Tile own = {.t = t, .buffer = s->buffer};
		own.vector[0] = tree_buffer(t, tree_find(t, s->buffer)->space, "var",
					    (Type)s->buffer->type, tensor_size(s->buffer));
		move_all(&own, s->next, NULL);
		s->buffer = own.vector[0];
	}
}

static bool has_large(const Stmt *body)
{
	for (; body; body = body->next)
		if (body->kind == STMT_ALLOC && tensor_size(body->buffer) > 1)
			return true;
	return false;
}

static bool is_written(const Tile *x, const Stmt *s)
{
	for (int k = 0; k < x->nwritten; k++)
		if (s->kind == STMT_LOOP && s->axis == x->written[k])
			return true;
	return false;
}

/* (Each copy would have arrays of its own: only variables may stand in it.) */
static bool can_write(const Tile *x, const Stmt *s)
{
	bool can = true;
	for (; s && can; s = s->next)
		can = !(is_written(x, s) && has_large(s->body)) && can_write(x, s->body) &&
		      can_write(x, s->otherwise);
	return can;
}

static void write_out(const Tile *x, Stmt *s)
{
	for (; s; s = s->next) {
		write_out(x, s->body);
		write_out(x, s->otherwise);
		if (!is_written(x, s))
			continue;
		Stmt *all = NULL;
		for (int64_t i = s->lo->u.i; i < s->hi->u.i; i++) {
			Node *value = node_int(x->t->ir, i);
			Stmt *copy = stmt_replace(x->t, s->body, 1, &s->axis, &value);
			rename_variables(x->t, copy);
			all = stmt_seq(all, copy);
		}
		s->body = NULL; /* stays where no copy has a statement */
		s = all ? stmt_instead(s, all) : s;
	}
}

/* ---- the whole ---- */

static bool is_tile(const Tree *t, const Stmt *s)
{
	return s->kind == STMT_ALLOC && tensor_size(s->buffer) > 1 &&
	       tree_find(t, s->buffer)->space == SPACE_LOCAL;
}

static bool is_small(const Tile *x)
{
	int64_t size = tensor_size(x->buffer);
	return x->width && size % x->width == 0 && size / x->width <= VECTORS_MOST;
}

/* How many lanes of the n variables, the tree's buffers from `first` on, stores reach. */
static void find_used(const Tile *x, int first, int n, const Stmt *s, const Stmt *lanes)
{
	for (; s; s = s->next) {
		for (int k = 0; s->kind == STMT_STORE && k < n; k++) {
			int64_t *used = &x->t->buffer[first + k].used;
			if (s->buffer == x->vector[k] && lanes->hi->hi > *used)
				*used = lanes->hi->hi;
		}
		find_used(x, first, n, s->body, s->how == HOW_LANES ? s : lanes);
		find_used(x, first, n, s->otherwise, lanes);
	}
}

/* The alloc becomes those of the vectors. */
static void make_variables(Tile *x, Stmt *alloc)
{
	Stmt *all = NULL;
	write_out(x, alloc->next);
	int first = x->t->nbuffer, n = (int)(tensor_size(x->buffer) / x->width);
	for (int k = 0; k < n; k++) {
		x->vector[k] = tree_buffer(x->t, SPACE_LANES, "v", (Type)x->buffer->type, x->width);
		all = stmt_seq(all, stmt_alloc(x->t, x->vector[k]));
	}
	move_all(x, alloc->next, NULL);
	find_used(x, first, n, alloc->next, NULL);
	stmt_instead(alloc, all);
}

void lower_registers(Tree *t, Stmt *s)
{
	for (; s; s = s->next) {
		lower_registers(t, s->body);
		lower_registers(t, s->otherwise);
		if (!is_tile(t, s))
			continue;
		Tile x = {.t = t, .buffer = s->buffer, .fits = true};
		find_all(&x, s->next, NULL);
		if (x.fits && is_small(&x) && can_write(&x, s->next))
			make_variables(&x, s);
	}
}
