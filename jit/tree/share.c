/* share.c - tiles that hold the same are filled once: of two neighbouring loops that fill such
 * tiles the second runs inside the first.
 *
 * Input: statements one after another. Output: the same; of two loops over as many iterations that
 * begin with the same statements, but for the tile that they fill, the second's body follows the
 * first's, without what it would fill again. Invariant: of what the first writes the second reads
 * only what the same iteration or an earlier one has written, and it writes nothing that the first
 * touches nor what may take the place of an input. A tile that isn't filled any more is this list's
 * own, which nobody else reads, and has held nothing before. */
#include "jit/tree/problem.h"

/* ---- are two statements the same? */

enum { NESTED_MOST = 16 };

typedef struct Twin { /* nodes of the second, and what they are in the first */
	Ir *ir;
	const Node *tile[2];
	int n;
	Node *from[NESTED_MOST], *to[NESTED_MOST];
} Twin;

static bool same_node(const Twin *w, const Node *a, Node *b)
{
	return a == b || (a && b && a == node_replace(w->ir, b, w->n, w->from, w->to));
}

static bool same_list(Twin *w, const Stmt *a, const Stmt *b);

static bool same_stmt(Twin *w, const Stmt *a, const Stmt *b)
{
	if (a->kind != b->kind || a->how != b->how || a->maybe != b->maybe || a->red != b->red ||
	    !same_node(w, a->lo, b->lo) || !same_node(w, a->hi, b->hi) || w->n == NESTED_MOST)
		return false;
	bool same = false;
	if (a->kind == STMT_LOOP) {
		w->from[w->n] = b->axis;
		w->to[w->n++] = a->axis;
		same = same_list(w, a->body, b->body);
		w->n--;
	} else if (a->kind == STMT_IF) {
		same = same_node(w, a->cond, b->cond) && same_list(w, a->body, b->body) &&
		       same_list(w, a->otherwise, b->otherwise);
	} else if (a->kind == STMT_STORE) {
		same = a->buffer == w->tile[0] && b->buffer == w->tile[1] &&
		       same_node(w, a->index, b->index) && same_node(w, a->value, b->value);
	}
	return same;
}

static bool same_list(Twin *w, const Stmt *a, const Stmt *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (!same_stmt(w, a, b))
			return false;
	return a == b;
}

/* The buffer of the first store in s and what follows it. */
static Node *first_written(const Stmt *s)
{
	Node *found = NULL;
	for (; s && !found; s = s->next) {
		found = s->kind == STMT_STORE ? s->buffer : first_written(s->body);
		found = found ? found : first_written(s->otherwise);
	}
	return found;
}

/* Do a and b, b in the iteration `to` where a is in `from`, fill tiles with the same? */
static bool same_fill(Ir *ir, const Stmt *a, const Stmt *b, Node *from, Node *to)
{
	Twin w = {.ir = ir, .n = 1, .from = {from}, .to = {to}};
	w.tile[0] = first_written(a);
	w.tile[1] = first_written(b);
	return w.tile[0] && w.tile[1] && tensor_size(w.tile[0]) == tensor_size(w.tile[1]) &&
	       same_stmt(&w, a, b);
}

/* ---- what statements touch */

typedef struct Touch { /* of a buffer: the places step * axis + lo..hi */
	Ir *ir;
	Node *buffer, *axis;
	bool written, odd; /* odd: other places, too */
	int touched;	   /* so often */
	int64_t step, lo, hi;
} Touch;

static void touch_place(Touch *h, Node *index)
{
	int64_t k = affine_stride(h->ir, index, h->axis);
	h->odd |= k == INT64_MIN || (h->touched && k != h->step);
	if (!h->odd) {
		Node *rest = node_sub(h->ir, index, node_scale(h->ir, h->axis, k));
		h->lo = !h->touched || rest->lo < h->lo ? rest->lo : h->lo;
		h->hi = !h->touched || rest->hi > h->hi ? rest->hi : h->hi;
		h->step = k;
	}
	h->touched++;
}

static void touch_read(void *user, Node *n)
{
	Touch *h = user;
	if (n->op == OP_READ && n->src[0] == h->buffer)
		touch_place(h, n->src[1]);
}

static void touch_stmt(Touch *h, const Stmt *s)
{
	Node *part[] = {s->lo, s->hi, s->cond, s->index, s->value};
	for (int k = 0; k < COUNT(part); k++)
		if (part[k])
			node_walk(h->ir, part[k], touch_read, h);
	if (s->kind == STMT_STORE && s->buffer == h->buffer) {
		touch_place(h, s->index);
		h->written = true;
	}
	for (int k = 0; s->kind == STMT_CALL && k < s->narg; k++)
		if (s->arg[k].buffer == h->buffer) {
			h->written = h->odd = true;
			h->touched++;
		}
	for (const Stmt *k = s->body; k; k = k->next)
		touch_stmt(h, k);
	for (const Stmt *k = s->otherwise; k; k = k->next)
		touch_stmt(h, k);
}

static Touch touch_of(Tree *t, Node *buffer, Node *axis, const Stmt *s)
{
	Touch h = {.ir = t->ir, .buffer = buffer, .axis = axis};
	touch_stmt(&h, s);
	return h;
}

/* May b's body run right after a's, in each iteration? */
static bool may_follow(Tree *t, const Stmt *a, const Stmt *b)
{
	for (int k = 0; k < t->nbuffer; k++) {
		const Buffer *buffer = &t->buffer[k];
		Touch x = touch_of(t, buffer->node, a->axis, a);
		Touch y = touch_of(t, buffer->node, b->axis, b);
		if (y.written && (x.touched || buffer->space == SPACE_PARAM))
			return false;
		if (x.written && y.touched &&
		    (x.odd || y.odd || x.step < 0 || x.step != y.step || y.hi >= x.lo + x.step))
			return false;
	}
	return true;
}

/* Does a statement from s on, before `end`, write the buffer? */
static bool is_written(Tree *t, Node *buffer, const Stmt *s, const Stmt *end)
{
	bool written = false;
	for (; s != end && !written; s = s->next) {
		Touch h = touch_of(t, buffer, node_int(t->ir, 0), s);
		written = h.written;
	}
	return written;
}

static int touches(Tree *t, Node *buffer, const Stmt *s)
{
	int n = 0;
	for (; s; s = s->next)
		n += touch_of(t, buffer, node_int(t->ir, 0), s).touched;
	return n;
}

/* Is the buffer touched by these statements only, and by none of them before s? */
static bool is_new(Tree *t, Node *buffer, const Stmt *all, const Stmt *s)
{
	Space space = tree_find(t, buffer)->space;
	return (space == SPACE_LOCAL || space == SPACE_SCRATCH) &&
	       touches(t, buffer, all) == touches(t, buffer, s);
}

/* Does twin, further on, fill its tile with what `fill` has put into another, which stays as it is?
 */
static bool is_twin(Tree *t, const Stmt *all, const Stmt *fill, const Stmt *twin)
{
	Node *tile = first_written(fill), *zero = node_int(t->ir, 0);
	if (fill->kind != STMT_LOOP || !same_fill(t->ir, fill, twin, zero, zero))
		return false;
	for (int k = 0; k < t->nbuffer; k++) {
		Node *buffer = t->buffer[k].node;
		bool read = touch_of(t, buffer, zero, fill).touched;
		if (read && is_written(t, buffer, fill->next, buffer == tile ? NULL : twin))
			return false;
	}
	return is_new(t, first_written(twin), all, twin) &&
	       !is_written(t, first_written(twin), twin->next, NULL);
}

/* ---- the change */

/* What is filled twice among s and what follows it, a list within `all`, is filled once. */
static void drop_twins(Tree *t, const Stmt *all, Stmt *s)
{
	for (; s; s = s->next)
		for (Stmt *before = s, *twin; (twin = before->next);) {
			if (!is_twin(t, all, s, twin)) {
				before = twin;
				continue;
			}
			Node *from = first_written(twin), *to = first_written(s);
			before->next = stmt_replace(t, twin->next, 1, &from, &to);
		}
}

static bool loops_share(Tree *t, const Stmt *a, const Stmt *b)
{
	return a->kind == STMT_LOOP && b->kind == STMT_LOOP && a->how == HOW_SERIAL &&
	       b->how == HOW_SERIAL && a->lo == b->lo && a->hi == b->hi && a->body && b->body &&
	       same_fill(t->ir, a->body, b->body, b->axis, a->axis) && may_follow(t, a, b);
}

void lower_share(Tree *t, Stmt *s)
{
	for (Stmt *a = s; a; a = a->next)
		while (a->next && loops_share(t, a, a->next)) {
			Stmt *b = a->next;
			stmt_seq(a->body, stmt_replace(t, b->body, 1, &b->axis, &a->axis));
			a->next = b->next;
			drop_twins(t, s, a->body);
		}
	drop_twins(t, s, s);
}
