/* node.c - interned nodes: creation, replacement, import, walks.
 * Invariant: within an Ir two nodes are equal exactly when their pointers are; hashes depend on
 * content only, never on the order of creation, so they agree between Irs. */
#include "core/node/internal.h"

#include <string.h>

const OpInfo op_info[OP_COUNT] = {
#define OP(name, text, nsrc, form) [OP_##name] = {#name, text, nsrc, FORM_##form},
#include "core/node/ops.def"
#undef OP
};

void ir_init(Ir *ir)
{
	memset(ir, 0, sizeof *ir);
}

void ir_free(Ir *ir)
{
	arena_free(&ir->arena);
	ir_init(ir);
}

/* ---- interning ---- */

static uint32_t mix(uint32_t h, uint64_t v)
{
	uint64_t x = (h ^ v) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(x ^ x >> 32) * 0x85ebca6bu;
}

static uint32_t hash_text(const char *s)
{
	uint32_t h = 2166136261u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static uint32_t node_hash(Op op, Type type, int nsrc, Node *const *src, uint64_t payload)
{
	uint32_t h = mix(mix((uint32_t)op * 64 + type, (uint64_t)nsrc), payload);
	for (int k = 0; k < nsrc; k++)
		h = mix(h, src[k]->hash);
	return h;
}

static bool node_same(const Node *n, Op op, Type type, int nsrc, Node *const *src, int64_t i,
		      const char *s)
{
	if (n->op != op || n->type != type || n->nsrc != nsrc)
		return false;
	if (s ? strcmp(n->u.s, s) != 0 : n->u.i != i)
		return false;
	return nsrc == 0 || !memcmp(n->src, src, (size_t)nsrc * sizeof *src);
}

/* Beside the table stand the nodes' hashes, so that a probe that fails touches no node. 0 marks a
 * place that is free. */
static uint32_t tag_of(uint32_t hash)
{
	return hash ? hash : 1;
}

static size_t slot_free(const uint32_t *tag, size_t room, uint32_t hash)
{
	size_t at = hash & (room - 1);
	while (tag[at])
		at = (at + 1) & (room - 1);
	return at;
}

static void table_grow(Ir *ir)
{
	size_t room = ir->room ? ir->room * 2 : 256;
	Node **table = arena_alloc(&ir->arena, room * sizeof *table);
	uint32_t *tag = arena_alloc(&ir->arena, room * sizeof *tag);
	for (size_t k = 0; k < ir->room; k++)
		if (ir->table[k]) {
			size_t at = slot_free(tag, room, ir->tag[k]);
			tag[at] = ir->tag[k];
			table[at] = ir->table[k];
		}
	ir->table = table;
	ir->tag = tag;
	ir->room = room;
}

static Node *intern_find(Ir *ir, uint32_t h, Op op, Type type, int nsrc, Node *const *src,
			 int64_t i, const char *s)
{
	if (!ir->room)
		return NULL;
	for (size_t at = tag_of(h) & (ir->room - 1); ir->tag[at]; at = (at + 1) & (ir->room - 1))
		if (ir->tag[at] == tag_of(h) && node_same(ir->table[at], op, type, nsrc, src, i, s))
			return ir->table[at];
	return NULL;
}

static Node *intern_add(Ir *ir, uint32_t h, Op op, Type type, int nsrc, Node *const *src, int64_t i,
			const char *s)
{
	if (ir->count * 2 >= ir->room)
		table_grow(ir);
	unsigned depth = 0;
	for (int k = 0; k < nsrc && op != OP_COMP; k++)
		if (src[k]->depth > depth && !node_is_tensor(src[k]))
			depth = src[k]->depth;
	if (depth >= NODE_MAX_DEPTH) {
		error_set(&ir->err, RICCI_EINVAL, "expression nested deeper than %d operators",
			  NODE_MAX_DEPTH);
		longjmp(*ir->arena.oom, 1);
	}
	if (depth >= STACK_DEPTH_ANY && depth >= (unsigned)stack_levels()) {
		error_set(&ir->err, RICCI_EINVAL,
			  "expression nested deeper than %d operators, for which this thread's "
			  "stack has room",
			  stack_levels());
		longjmp(*ir->arena.oom, 1);
	}
	Node *n = arena_alloc(&ir->arena, sizeof *n + (size_t)nsrc * sizeof *src);
	n->op = op;
	n->type = type;
	n->nsrc = (uint16_t)nsrc;
	n->depth = (uint16_t)(depth + 1);
	n->hash = h;
	n->u.i = i;
	if (s)
		n->u.s = arena_strdup(&ir->arena, s);
	if (nsrc)
		memcpy(n->src, src, (size_t)nsrc * sizeof *src);
	n->id = (uint32_t)ir->count;
	fold_bounds(n);
	size_t at = slot_free(ir->tag, ir->room, tag_of(h));
	ir->table[at] = n;
	ir->tag[at] = tag_of(h);
	ir->count++;
	return n;
}

static bool commutes(Op op)
{
	return op == OP_ADD || op == OP_MUL || op == OP_MIN || op == OP_MAX || op == OP_EQ ||
	       op == OP_NE;
}

/* The node of exactly these parts, not folded. A commuted twin that exists already is taken
 * instead. */
Node *node_raw(Ir *ir, Op op, Type type, int nsrc, Node *const *src, int64_t i, const char *s)
{
	uint64_t payload = s		   ? hash_text(s)
			   : op == OP_SCAN ? ((const ScanResult *)(uintptr_t)i)->hash
					   : (uint64_t)i;
	uint32_t h = node_hash(op, type, nsrc, src, payload);
	Node *n = intern_find(ir, h, op, type, nsrc, src, i, s);
	if (!n && commutes(op)) {
		Node *twin[2] = {src[1], src[0]};
		n = intern_find(ir, node_hash(op, type, 2, twin, payload), op, type, 2, twin, i, s);
	}
	return n ? n : intern_add(ir, h, op, type, nsrc, src, i, s);
}

Node *node_make(Ir *ir, Op op, Type type, int nsrc, Node *const *src, int64_t i)
{
	Node *folded = fold_node(ir, op, type, nsrc, src);
	return folded ? folded : node_raw(ir, op, type, nsrc, src, i, NULL);
}

/* ---- makers ---- */

Node *node_const_int(Ir *ir, Type t, int64_t v)
{
	if (type_is_float(t))
		return node_const(ir, t, (double)v);
	return node_raw(ir, OP_CONST, t, 0, NULL, type_wrap(t, v), NULL);
}

Node *node_int(Ir *ir, int64_t v)
{
	return node_const_int(ir, RICCI_I64, v);
}

Node *node_const(Ir *ir, Type t, double v)
{
	union {
		double f;
		int64_t i;
	} u = {.f = v};
	if (!type_is_float(t))
		return node_const_int(ir, t, (int64_t)v);
	if (t != RICCI_F64) {
		double rounded[1];
		type_store(t, rounded, 0, v);
		u.f = type_load(t, rounded, 0);
	}
	if (u.f != u.f)
		u.f = __builtin_nan("");
	return node_raw(ir, OP_CONST, t, 0, NULL, u.i, NULL);
}

/* The extent is part of an axis' identity, beside its number. */
Node *node_axis(Ir *ir, int number, int64_t extent)
{
	uint32_t h =
		node_hash(OP_AXIS, RICCI_I64, 0, NULL, (uint64_t)extent << 12 ^ (uint64_t)number);
	if (ir->room)
		for (size_t at = tag_of(h) & (ir->room - 1); ir->tag[at];
		     at = (at + 1) & (ir->room - 1)) {
			Node *n = ir->table[at];
			if (ir->tag[at] == tag_of(h) && n->op == OP_AXIS && n->u.i == number &&
			    n->hi == extent - 1)
				return n;
		}
	Node *n = intern_add(ir, h, OP_AXIS, RICCI_I64, 0, NULL, number, NULL);
	n->hi = extent - 1;
	return n;
}

Node *node_training(Ir *ir)
{
	if (!ir->training)
		ir->training = node_raw(ir, OP_TRAINING, RICCI_I64, 0, NULL, 0, NULL);
	return ir->training;
}

Node *node_input(Ir *ir, const char *name, Type t, int rank, const int64_t *shape)
{
	Node *src[RICCI_MAX_RANK];
	for (int d = 0; d < rank; d++)
		src[d] = node_int(ir, shape[d]);
	return node_raw(ir, OP_INPUT, t, rank, src, 0, name);
}

Node *node_read(Ir *ir, Node *tensor, Node *const *index)
{
	Node *src[RICCI_MAX_RANK + 1] = {tensor};
	int rank = tensor_rank(tensor);
	if (rank)
		memcpy(src + 1, index, (size_t)rank * sizeof *index);
	return node_make(ir, OP_READ, tensor->type, rank + 1, src, 0);
}

Node *read_along(Ir *ir, const Node *read, int d, Node *index)
{
	Node *at[RICCI_MAX_RANK];
	int rank = tensor_rank(read->src[0]);
	for (int k = 0; k < rank; k++)
		at[k] = k == d ? index : read->src[1 + k];
	return node_read(ir, read->src[0], at);
}

Node *node1(Ir *ir, Op op, Node *a)
{
	return node_make(ir, op, op_is_logic(op) ? RICCI_BOOL : a->type, 1, &a, 0);
}

Node *node2(Ir *ir, Op op, Node *a, Node *b)
{
	Node *src[2] = {a, b};
	return node_make(ir, op, op_is_logic(op) ? RICCI_BOOL : a->type, 2, src, 0);
}

Node *node_select(Ir *ir, Node *c, Node *a, Node *b)
{
	Node *src[3] = {c, a, b};
	return node_make(ir, OP_SELECT, a->type, 3, src, 0);
}

Node *node_cast(Ir *ir, Type t, Node *a)
{
	return node_make(ir, OP_CAST, t, 1, &a, 0);
}

Node *node_not(Ir *ir, Node *a)
{
	return node1(ir, OP_NOT, a);
}

Node *node_and(Ir *ir, Node *a, Node *b)
{
	return !a ? b : !b ? a : node2(ir, OP_AND, a, b);
}

Node *node_add(Ir *ir, Node *a, Node *b)
{
	return node2(ir, OP_ADD, a, b);
}

Node *node_scale(Ir *ir, Node *a, int64_t k)
{
	return node2(ir, OP_MUL, node_const_int(ir, a->type, k), a);
}

Node *node_sub(Ir *ir, Node *a, Node *b)
{
	return type_is_float(a->type) ? node2(ir, OP_SUB, a, b) : node_add_scaled(ir, a, b, -1);
}

Node *node_mul(Ir *ir, Node *a, Node *b)
{
	return node2(ir, OP_MUL, a, b);
}

Node *node_floordiv(Ir *ir, Node *a, int64_t c)
{
	return node2(ir, OP_FLOORDIV, a, node_const_int(ir, a->type, c));
}

Node *node_floormod(Ir *ir, Node *a, int64_t c)
{
	return node2(ir, OP_FLOORMOD, a, node_const_int(ir, a->type, c));
}

bool node_is_const(const Node *n)
{
	return n->op == OP_CONST;
}

bool node_is_value(const Node *n, double v)
{
	return n->op == OP_CONST && (type_is_float(n->type) ? n->u.f : (double)n->u.i) == v;
}

/* ---- walks ---- */

/* Begins a walk: room for marks of all present nodes, and a fresh mark. Walks do not nest. */
static uint32_t walk_begin(Ir *ir)
{
	if (ir->memo_room < ir->count) {
		size_t room = ir->count * 2 + 256;
		ir->stamp = arena_alloc(&ir->arena, room * sizeof *ir->stamp);
		ir->memo = arena_alloc(&ir->arena, room * sizeof *ir->memo);
		ir->memo_room = room;
		ir->now = 0;
	}
	return ++ir->now;
}

static Node *replace(Ir *ir, Node *n)
{
	if (ir->stamp[n->id] == ir->now)
		return ir->memo[n->id];
	Node *out = n;
	if (!node_is_tensor(n) && n->nsrc) {
		Node *small[8], **src = n->nsrc <= 8
						? small
						: arena_alloc(&ir->arena, n->nsrc * sizeof *src);
		bool changed = false;
		for (int k = 0; k < n->nsrc; k++) {
			src[k] = replace(ir, n->src[k]);
			changed |= src[k] != n->src[k];
		}
		if (changed)
			out = node_make(ir, n->op, n->type, n->nsrc, src, n->u.i);
	}
	ir->stamp[n->id] = ir->now;
	ir->memo[n->id] = out;
	return out;
}

Node *node_replace(Ir *ir, Node *n, int count, Node *const *from, Node *const *to)
{
	uint32_t now = walk_begin(ir);
	for (int k = 0; k < count; k++) {
		ir->stamp[from[k]->id] = now;
		ir->memo[from[k]->id] = to[k];
	}
	return replace(ir, n);
}

static void collect(Ir *ir, Node *n, Node ***list, int *count, int *room)
{
	if (ir->stamp[n->id] == ir->now)
		return;
	ir->stamp[n->id] = ir->now;
	if (!node_is_tensor(n))
		for (int k = 0; k < n->nsrc; k++)
			collect(ir, n->src[k], list, count, room);
	*list = arena_grow(&ir->arena, *list, *count, room, sizeof **list);
	(*list)[(*count)++] = n;
}

void node_walk(Ir *ir, Node *n, void (*f)(void *user, Node *n), void *user)
{
	Node **list = ir->walked;
	int count = 0, room = ir->walked_room;
	ir->walked = NULL; /* f may walk */
	ir->walked_room = 0;
	walk_begin(ir);
	collect(ir, n, &list, &count, &room);
	for (int k = 0; k < count; k++)
		f(user, list[k]);
	if (room > ir->walked_room) {
		ir->walked = list;
		ir->walked_room = room;
	}
}

int node_collect(Ir *ir, Node *n, Op op, Node ***list)
{
	int count = 0, found = 0;
	walk_begin(ir);
	collect(ir, n, &ir->walked, &count, &ir->walked_room);
	*list = arena_alloc(&ir->arena, (size_t)count * sizeof **list);
	for (int k = 0; k < count; k++)
		if (ir->walked[k]->op == op)
			(*list)[found++] = ir->walked[k];
	return found;
}

/* Puts n among open[], which are distinct and in the order of their ids; false: there is no room. */
static bool open_put(Node **open, int *nopen, int room, Node *n)
{
	int at = *nopen;
	while (at && open[at - 1]->id > n->id)
		at--;
	if (at && open[at - 1] == n)
		return true;
	if (*nopen == room)
		return false;
	memmove(open + at + 1, open + at, (size_t)(*nopen - at) * sizeof *open);
	open[at] = n;
	++*nopen;
	return true;
}

/* Sources have smaller ids: who takes the greatest of the open nodes, again and again, meets each
 * node once, and needs no marks. */
bool node_has(Node *n, Node *x)
{
	Node *open[64];
	int nopen = 0;
	open[nopen++] = n;
	while (nopen) {
		n = open[--nopen];
		if (n == x)
			return true;
		for (int k = 0; k < n->nsrc && !node_is_tensor(n); k++)
			if (n->src[k]->id >= x->id &&
			    !open_put(open, &nopen, COUNT(open), n->src[k]) &&
			    node_has(n->src[k], x))
				return true;
	}
	return false;
}

static Node *find(Ir *ir, Node *n, bool (*is)(const Node *n), bool (*within)(const Node *n))
{
	Node *found = NULL;
	if (ir->stamp[n->id] == ir->now)
		return NULL;
	ir->stamp[n->id] = ir->now;
	if (is(n))
		return n;
	for (int k = 0; k < n->nsrc && !found && within(n); k++)
		found = find(ir, n->src[k], is, within);
	return found;
}

static bool no_tensor(const Node *n)
{
	return !node_is_tensor(n);
}

Node *node_find(Ir *ir, Node *n, bool (*is)(const Node *n), bool (*within)(const Node *n))
{
	walk_begin(ir);
	return find(ir, n, is, within ? within : no_tensor);
}

bool node_any(Ir *ir, Node *n, bool (*is)(const Node *n))
{
	return node_find(ir, n, is, NULL) != NULL;
}

typedef struct Axes {
	Node **axis;
	int n;
} Axes;

static void see_axis(void *user, Node *n)
{
	Axes *a = user;
	int k = 0;
	while (k < a->n && a->axis[k] != n)
		k++;
	if (n->op == OP_AXIS && k == a->n && k < COMP_MAX_AXES)
		a->axis[a->n++] = n;
}

int node_axes(Ir *ir, int nroot, Node *const *root, Node **axes)
{
	Axes a = {.axis = axes};
	for (int k = 0; k < nroot; k++)
		node_walk(ir, root[k], see_axis, &a);
	return a.n;
}

static bool is_read(const Node *n)
{
	return n->op == OP_READ;
}

bool node_reads(Ir *ir, Node *n)
{
	return node_any(ir, n, is_read);
}

typedef struct Parts {
	Ir *ir;
	Op op;
	Node **list;
	int n, room;
} Parts;

static void parts_put(Parts *p, Node *n)
{
	if (p->ir->stamp[n->id] == p->ir->now)
		return;
	p->ir->stamp[n->id] = p->ir->now;
	if (n->op == p->op) {
		for (int k = 0; k < n->nsrc; k++)
			parts_put(p, n->src[k]);
		return;
	}
	p->list = arena_grow(&p->ir->arena, p->list, p->n, &p->room, sizeof *p->list);
	p->list[p->n++] = n;
}

int node_parts(Ir *ir, Node *n, Op op, Node ***part)
{
	Parts p = {.ir = ir, .op = op};
	walk_begin(ir);
	parts_put(&p, n);
	*part = p.list;
	return p.n;
}
