/* wide.c - neighbours in memory that one instruction stores.
 *
 * Input: an unrolled loop of 2 to 8 steps that does nothing but store, each step beside the one before. Output: the
 * places in a variable of that many elements (of the dialect's type `wide`), which the loop fills and one
 * assignment stores behind it. Invariant: the first place is at a multiple of what is stored at once, and no store reads
 * what the loop stores. */
#include "jit/emit/internal.h"

enum { WIDE_BYTES = 16 };

static Node *first_place(Emit *e, const Stmt *loop, const Stmt *s)
{
	Node *zero = node_int(e->ir, 0);
	return node_replace(e->ir, s->index, 1, &loop->axis, &zero);
}

static bool is_wide(Emit *e, const Stmt *loop, const Stmt *s)
{
	const Buffer *b = s->kind == STMT_STORE ? tree_find(e->tree, s->buffer) : NULL;
	int64_t n = loop->hi->u.i;
	if (!b || (b->space != SPACE_PARAM && b->space != SPACE_SHARED) || s->red != RED_NONE ||
	    s->atomic || n * (int64_t)type_size((Type)s->buffer->type) > WIDE_BYTES ||
	    affine_stride(e->ir, s->index, loop->axis) != 1 ||
	    first_place(e, loop, s)->mul % n != 0)
		return false;
	for (const Stmt *i = loop->body; i; i = i->next)
		if (store_reads(i, s->buffer))
			return false;
	return true;
}

bool emit_wide_begin(Emit *e, const Stmt *loop)
{
	bool counted = loop->how == HOW_UNROLL && node_is_const(loop->lo) &&
		       node_is_const(loop->hi) && loop->lo->u.i == 0;
	int64_t n = counted ? loop->hi->u.i : 0;
	int count = 0;
	if (!e->d->wide || n < 2 || (n & (n - 1)) != 0 || !loop->body)
		return false;
	for (const Stmt *s = loop->body; s; s = s->next)
		if (++count > WIDE_STORES || !is_wide(e, loop, s))
			return false;
	for (const Stmt *s = loop->body; s; s = s->next) {
		Type t = (Type)s->buffer->type;
		Wide *w = &e->wide[e->nwide++];
		w->store = s;
		w->type = arena_printf(&e->ir->arena, "Wide_%s_%d", type_name(t), (int)n);
		w->name = arena_printf(&e->ir->arena, "w%d", e->nname++);
		emit_declare(e, arena_printf(&e->ir->arena, e->d->wide,
					     (int)(n * (int64_t)type_size(t)), dialect_ctype[t],
					     (int)n, w->type));
		emit_line(e, "%s %s;", w->type, w->name);
	}
	return true;
}

const char *emit_wide_place(const Emit *e, const Stmt *s, const Node *axis)
{
	for (int k = 0; k < e->nwide; k++)
		if (e->wide[k].store == s)
			return arena_printf(&e->ir->arena, "%s.v[i%d]", e->wide[k].name,
					    (int)axis->u.i);
	return NULL;
}

void emit_wide_end(Emit *e, const Stmt *loop)
{
	for (int k = 0; k < e->nwide; k++) {
		const Wide *w = &e->wide[k];
		Node *index = first_place(e, loop, w->store);
		emit_statement(e);
		emit_count(e, index);
		emit_line(e, "*(%s%s *)(%s) = %s;", emit_memory(e), w->type,
			  emit_address(e, w->store->buffer, index), w->name);
	}
	e->nwide = 0;
	emit_forget_changing(e);
}
