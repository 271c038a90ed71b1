/* tree.c - constructors and the printed form of loop trees.
 * Input: statements over index nodes. Output: trees in the arena of the tree's Ir; RICCI_DUMP=lower
 * prints them. Invariant: every buffer is an INPUT node of rank 1 and stands in Tree.buffer. */
#include "jit/tree/problem.h"

#include <string.h>

/* Axes of problems that come from elsewhere have smaller numbers. */
enum { FIRST_AXIS = 64 };

Tree *tree_new(Ir *ir)
{
	Tree *t = arena_alloc(&ir->arena, sizeof *t);
	t->ir = ir;
	t->next_axis = FIRST_AXIS;
	return t;
}

Node *tree_buffer(Tree *t, Space space, const char *name, Type type, int64_t size)
{
	Ir *ir = t->ir;
	t->buffer = arena_grow(&ir->arena, t->buffer, t->nbuffer, &t->room, sizeof *t->buffer);
	int64_t shape[1] = {size < 1 ? 1 : size};
	Buffer *b = &t->buffer[t->nbuffer];
	b->node =
		node_input(ir, arena_printf(&ir->arena, "%s%d", name, t->nbuffer), type, 1, shape);
	b->space = space;
	t->nbuffer++;
	size_t *top = space == SPACE_SCRATCH || space == SPACE_TABLE ? &t->shape.scratch
		      : space == SPACE_SHARED			     ? &t->shape.shared
								     : NULL;
	if (top) {
		b->offset = *top;
		*top += ((size_t)shape[0] * type_size(type) + 63) & ~(size_t)63;
	}
	return b->node;
}

typedef struct Bound {
	const Node *tensor;
	Node *buffer;
} Bound;

void tree_bind(Tree *t, const Node *tensor, Node *buffer)
{
	t->bound = arena_grow(&t->ir->arena, t->bound, t->nbound, &t->bound_room, sizeof *t->bound);
	t->bound[t->nbound++] = (Bound){tensor, buffer};
	for (int k = 0; k < t->nbuffer; k++)
		t->buffer[k].ready |= t->buffer[k].node == buffer;
}

Node *tree_param(Tree *t, const Node *tensor, int param, bool output)
{
	for (int k = 0; k < t->nbound; k++)
		if (t->bound[k].tensor == tensor)
			return t->bound[k].buffer;
	Node *buffer = tree_buffer(t, SPACE_PARAM, output ? "y" : "a", (Type)tensor->type,
				   tensor_size(tensor));
	Buffer *info = &t->buffer[t->nbuffer - 1];
	info->param = param;
	info->output = output;
	return buffer;
}

const Buffer *tree_find(const Tree *t, const Node *node)
{
	for (int k = 0; k < t->nbuffer; k++)
		if (t->buffer[k].node == node)
			return &t->buffer[k];
	return NULL;
}

Node *tree_axis(Tree *t, int64_t extent)
{
	return node_axis(t->ir, t->next_axis++, extent < 1 ? 1 : extent);
}

void axes_at(Ir *ir, Node *at, int n, Node *const *axis, Node **value)
{
	for (int k = n - 1; k >= 0; k--) {
		int64_t extent = axis_extent(axis[k]);
		value[k] = k ? node_floormod(ir, at, extent) : at;
		at = node_floordiv(ir, at, extent);
	}
}

Node *buffer_read(Tree *t, Node *buffer, Node *index)
{
	return node_read(t->ir, buffer, &index);
}

bool read_inside(const Node *read)
{
	return read->src[1]->lo >= 0 && read->src[1]->hi < tensor_size(read->src[0]);
}

static bool is_unproved(const Node *n)
{
	return n->op == OP_READ && !read_inside(n);
}

bool reads_inside(Ir *ir, Node *e)
{
	return !node_any(ir, e, is_unproved);
}

/* So many nodes reads_guarded looks at: what several share, it meets again under each one's conditions. */
enum { GUARDED_MOST = 256 };

static bool guarded_under(Ir *ir, Node *e, Polyhedron *path, int *left)
{
	int64_t lo, hi;
	bool good = --*left >= 0;
	if (reads_inside(ir, e) || !good)
		return good;
	if (e->op == OP_READ)
		good = read_inside(e) || (poly_bounds(path, e->src[1], &lo, &hi) && lo >= 0 &&
					  hi < tensor_size(e->src[0]));
	for (int k = 0; k < e->nsrc && good; k++) {
		Polyhedron *p = path;
		if (e->op == OP_SELECT && k > 0) {
			p = poly_copy(path);
			poly_assume(p, k == 1 ? e->src[0] : node1(ir, OP_NOT, e->src[0]));
		}
		good = guarded_under(ir, e->src[k], p, left);
	}
	return good;
}

bool reads_guarded(Ir *ir, Node *e, Polyhedron *path)
{
	int left = GUARDED_MOST;
	return guarded_under(ir, e, path, &left);
}

static Stmt *stmt_new(Tree *t, StmtKind kind)
{
	Stmt *s = arena_alloc(&t->ir->arena, sizeof *s);
	s->kind = kind;
	return s;
}

Stmt *stmt_loop(Tree *t, How how, Node *axis, Node *lo, Node *hi, Stmt *body)
{
	Stmt *s = stmt_new(t, STMT_LOOP);
	s->how = how;
	s->axis = axis;
	s->lo = lo ? lo : node_int(t->ir, 0);
	s->hi = hi ? hi : node_int(t->ir, axis_extent(axis));
	s->body = body;
	return s;
}

Stmt *stmt_if(Tree *t, Node *cond, Stmt *body, Stmt *otherwise)
{
	if (node_is_const(cond))
		return cond->u.i ? body : otherwise;
	Stmt *s = stmt_new(t, STMT_IF);
	s->cond = cond;
	s->body = body;
	s->otherwise = otherwise;
	return s;
}

Stmt *stmt_store(Tree *t, Node *buffer, Node *index, Node *value, Reduce red)
{
	Stmt *s = stmt_new(t, STMT_STORE);
	s->buffer = buffer;
	s->index = index;
	s->value = value;
	s->red = red;
	return s;
}

Stmt *stmt_alloc(Tree *t, Node *buffer)
{
	Stmt *s = stmt_new(t, STMT_ALLOC);
	s->buffer = buffer;
	return s;
}

Stmt *stmt_call(Tree *t, const char *symbol, int narg, const CallArg *arg)
{
	Stmt *s = stmt_new(t, STMT_CALL);
	s->symbol = symbol;
	s->narg = narg;
	s->arg = arena_alloc(&t->ir->arena, (size_t)narg * sizeof *arg);
	if (narg)
		memcpy(s->arg, arg, (size_t)narg * sizeof *arg);
	return s;
}

Stmt *stmt_stream(Tree *t, Node *buffer, Node *index, Node *line, Node *n)
{
	Node *bytes = node_scale(t->ir, n, (int64_t)type_size((Type)line->type));
	CallArg arg[] = {{buffer, index}, {line, node_int(t->ir, 0)}, {NULL, bytes}};
	return stmt_call(t, "ricci_stream", COUNT(arg), arg);
}

Stmt *stmt_seen(Tree *t)
{
	return stmt_call(t, "ricci_seen", 0, NULL);
}

Stmt *stmt_transpose(Tree *t, CallArg to, int64_t line, CallArg from, int64_t step, Node *rows,
		     Node *cols)
{
	bool narrow = type_size((Type)from.buffer->type) == 4;
	CallArg arg[] = {to,	       {NULL, node_int(t->ir, line)},
			 from,	       {NULL, node_int(t->ir, step)},
			 {NULL, rows}, {NULL, cols}};
	return stmt_call(t, narrow ? "ricci_transpose_4" : "ricci_transpose_8", COUNT(arg), arg);
}

bool stmt_transposes(const Stmt *s)
{
	return s->kind == STMT_CALL && strncmp(s->symbol, "ricci_transpose_", 16) == 0;
}

Stmt *stmt_prefetch(Tree *t, Node *buffer, Node *index)
{
	Stmt *s = stmt_new(t, STMT_PREFETCH);
	s->buffer = buffer;
	s->index = index;
	return s;
}

Stmt *stmt_sync(Tree *t)
{
	return stmt_new(t, STMT_SYNC);
}

Stmt *stmt_seq(Stmt *a, Stmt *b)
{
	if (!a)
		return b;
	Stmt *last = a;
	while (last->next)
		last = last->next;
	last->next = b;
	return a;
}

/* An IF without the branch that is never taken; NULL: nothing is left. The other one keeps its scope,
 * for the sake of what it allocates. */
static Stmt *taken_branch(Tree *t, Stmt *s)
{
	if (s->kind != STMT_IF || !node_is_const(s->cond))
		return s;
	s->body = s->cond->u.i ? s->body : s->otherwise;
	s->otherwise = NULL;
	s->cond = node_const_int(t->ir, RICCI_BOOL, 1);
	return s->body ? s : NULL;
}

Stmt *stmt_replace(Tree *t, const Stmt *s, int n, Node *const *from, Node *const *to)
{
	Stmt *all = NULL, **end = &all;
	for (; s; s = s->next) {
		*end = arena_alloc(&t->ir->arena, sizeof **end);
		**end = *s;
		(*end)->next = NULL;
		Node **part[] = {&(*end)->lo, &(*end)->hi, &(*end)->cond, &(*end)->index,
				 &(*end)->value};
		for (int k = 0; k < COUNT(part); k++)
			if (*part[k])
				*part[k] = node_replace(t->ir, *part[k], n, from, to);
		if (s->narg)
			(*end)->arg = arena_alloc(&t->ir->arena, (size_t)s->narg * sizeof *s->arg);
		for (int k = 0; k < s->narg; k++)
			(*end)->arg[k] =
				(CallArg){s->arg[k].buffer,
					  node_replace(t->ir, s->arg[k].value, n, from, to)};
		(*end)->body = stmt_replace(t, s->body, n, from, to);
		(*end)->otherwise = stmt_replace(t, s->otherwise, n, from, to);
		*end = taken_branch(t, *end);
		end = *end ? &(*end)->next : end;
	}
	return all;
}

bool stmt_uses(const Stmt *s, const Stmt *except, Node *buffer)
{
	for (; s; s = s->next) {
		Node *part[] = {s->lo, s->hi, s->cond, s->index, s->value};
		if ((s != except && s->buffer == buffer) || stmt_uses(s->body, except, buffer) ||
		    stmt_uses(s->otherwise, except, buffer))
			return true;
		for (int k = 0; k < COUNT(part); k++)
			if (part[k] && node_has(part[k], buffer))
				return true;
		for (int k = 0; k < s->narg; k++)
			if (s->arg[k].buffer == buffer || node_has(s->arg[k].value, buffer))
				return true;
	}
	return false;
}

Stmt *stmt_instead(Stmt *s, Stmt *all)
{
	Stmt *last = all;
	while (last->next)
		last = last->next;
	last->next = s->next;
	*s = *all;
	return last == all ? s : last;
}

/* ---- printing ---- */

static const char *const how_text[] = {"for",	"unroll", "vector", "parallel",
				       "block", "thread", "lanes"};

static const char *tree_name(void *user, Node *t)
{
	(void)user;
	return t->op == OP_INPUT ? t->u.s : "?";
}

static void tree_expr(Text *out, const Tree *t, Node *e)
{
	print_expr(out, t->ir, e, tree_name, NULL);
}

static void stmt_print(Text *out, const Tree *t, const Stmt *s, int depth)
{
	for (; s; s = s->next) {
		text_add(out, "%*s", 2 * depth, "");
		switch (s->kind) {
		case STMT_LOOP:
			text_add(out, "%s i%d in ", how_text[s->how], (int)s->axis->u.i);
			tree_expr(out, t, s->lo);
			text_add(out, "..");
			tree_expr(out, t, s->hi);
			text_add(out, "\n");
			stmt_print(out, t, s->body, depth + 1);
			break;
		case STMT_IF:
			text_add(out, "if ");
			tree_expr(out, t, s->cond);
			text_add(out, "\n");
			stmt_print(out, t, s->body, depth + 1);
			if (s->otherwise) {
				text_add(out, "%*selse\n", 2 * depth, "");
				stmt_print(out, t, s->otherwise, depth + 1);
			}
			break;
		case STMT_STORE:
			text_add(out, "%s%s[", s->atomic ? "atomic " : "", s->buffer->u.s);
			tree_expr(out, t, s->index);
			text_add(out, "] %s ", reduce_text[s->red]);
			tree_expr(out, t, s->value);
			text_add(out, "\n");
			break;
		case STMT_ALLOC:
			text_add(out, "alloc %s %s[%lld]\n", type_name(s->buffer->type),
				 s->buffer->u.s, (long long)tensor_size(s->buffer));
			break;
		case STMT_CALL:
			text_add(out, "call %s(", s->symbol);
			for (int k = 0; k < s->narg; k++) {
				text_add(out, "%s%s", k ? ", " : "",
					 s->arg[k].buffer ? s->arg[k].buffer->u.s : "");
				text_add(out, s->arg[k].buffer ? " + " : "");
				tree_expr(out, t, s->arg[k].value);
			}
			text_add(out, ")\n");
			break;
		case STMT_SYNC:
			text_add(out, "sync\n");
			break;
		case STMT_PREFETCH:
			text_add(out, "prefetch %s[", s->buffer->u.s);
			tree_expr(out, t, s->index);
			text_add(out, "]\n");
			break;
		}
	}
}

void tree_print(Text *out, const Tree *t)
{
	stmt_print(out, t, t->root, 0);
}
