/* interp_compile.c - from the body of an equation to a register program.
 *
 * A node is `total` when nothing below it can fail: no read whose index may leave its tensor. Total
 * nodes are computed unconditionally, each once, at the level of the last axis they depend on. In
 * the branches of SELECT, AND and OR the others are computed under a mask, again in each branch
 * that wants them, and not before the mask is known. */
#include "core/interp/internal.h"

#include <string.h>

enum { CODE_LIMIT = 1 << 20 };

typedef struct Entry { /* of a node */
	int reg;       /* -1: not computed, or not at this place */
	uint16_t level;
	bool total, walked;
	double limit; /* in magnitudes: how far the arithmetic's roundings may move it */
} Entry;

typedef struct Compiler {
	Ir *scratch; /* only its arena is used: no nodes are made */
	Program *p;
	NodeMap table; /* Entry of each node */
	int axis_level[COMP_MAX_AXES];
	Node **undo; /* nodes computed inside the open branches */
	int nundo, undo_room;
	int mask, mask_level; /* register of the open branch's mask, or -1, and its level */
	int emitted;
	bool too_long, stray, open; /* stray: an axis that is not comp's; open: TRAINING */
	Type (*stored)(void *user, Node *t);
	void *user;
} Compiler;

/* ---- the table of nodes ---- */

static Entry *entry_find(const Compiler *c, const Node *n)
{
	return node_map_get(&c->table, n);
}

static Entry *entry_add(Compiler *c, Node *n, int reg, int level, bool total)
{
	Entry *e = arena_alloc(&c->scratch->arena, sizeof *e);
	*e = (Entry){.reg = reg, .level = (uint16_t)level, .total = total};
	node_map_put(c->scratch, &c->table, n, e);
	return e;
}

/* Some roundings in the arithmetic, one to the type itself. */
static double compare_limit(Type t)
{
	Type arithmetic = type_accumulator(t);
	return 32 * type_epsilon(arithmetic) + (arithmetic == t ? 0 : type_epsilon(t));
}

static int first_source(const Node *n)
{
	return n->op == OP_READ;
}

static bool index_safe(const Node *index, const Node *tensor, int d)
{
	return index->lo >= 0 && index->hi < tensor_extent(tensor, d);
}

/* Levels and totality of n and what is below. */
static const Entry *analyse(Compiler *c, Node *n)
{
	Entry *known = entry_find(c, n);
	if (known)
		return known;
	int level = 0;
	bool total = true, computed = n->op != OP_CONST && n->op != OP_AXIS && n->op != OP_READ &&
				      n->op != OP_TRAINING;
	double limit = computed && type_is_float((Type)n->type) ? compare_limit((Type)n->type) : 0;
	if (n->op != OP_CONST && n->op != OP_AXIS)
		for (int k = first_source(n); k < n->nsrc; k++) {
			const Entry *e = analyse(c, n->src[k]);
			level = e->level > level ? e->level : level;
			total &= e->total;
			limit = computed && e->limit > limit ? e->limit : limit;
			if (n->op == OP_READ)
				total &= index_safe(n->src[k], n->src[0], k - 1);
		}
	Entry *e = entry_add(c, n, -1, level, total);
	e->limit = limit;
	return e;
}

/* ---- emission ---- */

/* The level of code at hand that depends on `level`: not before the mask is known. */
static int level_here(const Compiler *c, int level)
{
	return level > c->mask_level ? level : c->mask_level;
}

static Instr *emit(Compiler *c, int level, Code code, int dst, int a, int b)
{
	Level *l = &c->p->level[level_here(c, level)];
	l->at = arena_grow(&c->scratch->arena, l->at, l->n, &l->room, sizeof *l->at);
	c->too_long |= ++c->emitted > CODE_LIMIT;
	l->at[l->n] = (Instr){
		.code = code, .dst = dst, .a = a, .b = b, .mask = c->mask, .limit = DBL_MAX};
	return &l->at[l->n++];
}

static int fresh(Compiler *c)
{
	return c->p->nreg++;
}

static int constant(Compiler *c, int64_t v)
{
	int r = fresh(c), level = c->mask_level;
	c->mask_level = 0;
	emit(c, 0, CODE_CONST, r, 0, 0)->imm.i = v;
	c->mask_level = level;
	return r;
}

static int slot_of(Compiler *c, Node *tensor)
{
	Program *p = c->p;
	for (int k = 0; k < p->nslot; k++)
		if (p->slot[k].tensor == tensor)
			return k;
	p->slot = arena_grow(&c->scratch->arena, p->slot, p->nslot, &p->room, sizeof *p->slot);
	p->slot[p->nslot] = (Slot){.tensor = tensor, .stored = c->stored(c->user, tensor)};
	return p->nslot++;
}

static int compile(Compiler *c, Node *n);

static Code load_code(Type stored)
{
	switch (stored) {
	case RICCI_F32:
		return CODE_LOAD_F32;
	case RICCI_F64:
		return CODE_LOAD_F64;
	case RICCI_I64:
		return CODE_LOAD_I64;
	default:
		return type_is_float(stored) ? CODE_LOAD_FLOAT : CODE_LOAD_INT;
	}
}

/* One part of a flat offset: coefficient times register, known from a level on. */
typedef struct Part {
	int reg, level;
	int64_t k;
} Part;

static int parts_add(Part *part, int n, Part add)
{
	int at = n;
	for (int k = 0; k < n; k++)
		if (part[k].reg == add.reg) {
			part[k].k = (int64_t)((uint64_t)part[k].k + (uint64_t)add.k);
			return n;
		}
	for (; at > 0 && part[at - 1].level > add.level; at--)
		part[at] = part[at - 1];
	part[at] = add;
	return n + 1;
}

/* The flat offset of a read as a sum, its parts ordered by level. Products are wrapping: only
 * indices that have been checked, or cannot leave the tensor, count. */
static int offset_parts(Compiler *c, Node *read, Part **part, int64_t *base)
{
	Node *tensor = read->src[0];
	int rank = tensor_rank(tensor), n = 0, most = 0;
	Affine index[RICCI_MAX_RANK];
	for (int d = 0; d < rank; d++) {
		Node *e = read->src[1 + d];
		if (index_safe(e, tensor, d)) {
			index[d] = affine_of(c->scratch, e);
		} else {
			static const int64_t one = 1;
			index[d] = (Affine){.n = 1, .k = (int64_t *)&one};
			index[d].atom = arena_alloc(&c->scratch->arena, sizeof *index[d].atom);
			index[d].atom[0] = e;
		}
		most += index[d].n;
	}
	*part = arena_alloc(&c->scratch->arena, (size_t)(most + 1) * sizeof **part);
	*base = 0;
	uint64_t stride = 1, sum = 0;
	for (int d = rank - 1; d >= 0; d--) {
		sum += stride * (uint64_t)index[d].c;
		for (int i = 0; i < index[d].n; i++) {
			Node *atom = index[d].atom[i];
			int reg = compile(c, atom);
			n = parts_add(*part, n,
				      (Part){reg, entry_find(c, atom)->level,
					     (int64_t)(stride * (uint64_t)index[d].k[i])});
		}
		stride *= (uint64_t)tensor_extent(tensor, d);
	}
	*base = (int64_t)sum;
	return n;
}

static int compile_read(Compiler *c, Node *n, int level)
{
	Node *tensor = n->src[0];
	int slot = slot_of(c, tensor);
	for (int d = 0; d < tensor_rank(tensor); d++) {
		if (index_safe(n->src[1 + d], tensor, d))
			continue;
		int index = compile(c, n->src[1 + d]);
		Instr *in = emit(c, entry_find(c, n->src[1 + d])->level, CODE_CHECK, 0, index, d);
		in->c = slot;
		in->imm.i = tensor_extent(tensor, d);
	}
	Part *part;
	int64_t base;
	int count = offset_parts(c, n, &part, &base), sum = constant(c, base);
	for (int k = 0; k < count - 1; k++) {
		int next = fresh(c);
		emit(c, part[k].level, CODE_STEP, next, sum, part[k].reg)->imm.i = part[k].k;
		sum = next;
	}
	int dst = fresh(c);
	Instr *in = emit(c, level, load_code(c->p->slot[slot].stored), dst, sum, sum);
	in->c = slot;
	if (count) {
		in->b = part[count - 1].reg;
		in->imm.i = part[count - 1].k;
	}
	return dst;
}

/* Compiles n where the mask at hand and code(mask, when) hold. */
static int compile_branch(Compiler *c, Node *n, int level, int when, bool holds)
{
	int mask = c->mask, mask_level = c->mask_level, mark = c->nundo, inner = fresh(c);
	if (mask >= 0)
		emit(c, level, holds ? CODE_BAND : CODE_BANDNOT, inner, mask, when);
	else
		emit(c, level, holds ? CODE_MOVE : CODE_BNOT, inner, when, 0);
	c->mask_level = level_here(c, level);
	c->mask = inner;
	int value = compile(c, n);
	/* What was computed here is not known outside. */
	while (c->nundo > mark)
		entry_find(c, c->undo[--c->nundo])->reg = -1;
	c->mask = mask;
	c->mask_level = mask_level;
	return value;
}

static int emit_pick(Compiler *c, int level, const Node *n, int when, int a, int b)
{
	int dst = fresh(c);
	Instr *in = emit(c, level, CODE_PICK, dst, when, a);
	in->c = b;
	in->limit = type_epsilon(type_accumulator((Type)n->type));
	return dst;
}

static int compile_lazy(Compiler *c, Node *n, int level)
{
	int when = compile(c, n->src[0]), at = entry_find(c, n->src[0])->level;
	int a = compile_branch(c, n->src[1], at, when, n->op != OP_OR), b = 0;
	if (n->op == OP_SELECT)
		b = compile_branch(c, n->src[2], at, when, false);
	if (n->op == OP_SELECT)
		return emit_pick(c, level, n, when, a, b);
	int dst = fresh(c);
	emit(c, level, n->op == OP_AND ? CODE_BAND : CODE_BOR, dst, when, a);
	return dst;
}

static int compile_cast(Compiler *c, Node *n, int level, int a)
{
	Type from = (Type)n->src[0]->type, to = (Type)n->type;
	int dst = fresh(c);
	if (to == RICCI_BOOL) {
		emit(c, level, type_is_float(from) ? CODE_FTOBOOL : CODE_ITOBOOL, dst, a, a);
	} else if (!type_is_float(to)) {
		emit(c, level, type_is_float(from) ? CODE_FTOINT : CODE_ISATURATE, dst, a, a)
			->imm.i = to;
	} else {
		emit(c, level, type_is_float(from) ? CODE_MOVE : CODE_INTTOF, dst, a, 0);
		if (to != RICCI_F64) {
			int exact = dst;
			dst = fresh(c);
			emit(c, level, CODE_FROUND, dst, exact, 0)->imm.i = to;
		}
	}
	return dst;
}

static const struct {
	uint8_t is_float, is_int;
	bool wraps;
} op_code[OP_COUNT] = {
	[OP_ADD] = {CODE_FADD, CODE_IADD, true},
	[OP_SUB] = {CODE_FSUB, CODE_ISUB, true},
	[OP_MUL] = {CODE_FMUL, CODE_IMUL, true},
	[OP_DIV] = {CODE_FDIV, 0, false},
	[OP_NEG] = {CODE_FNEG, CODE_INEG, true},
	[OP_FLOORDIV] = {0, CODE_IDIV, false},
	[OP_FLOORMOD] = {0, CODE_IMOD, false},
	[OP_LT] = {CODE_FLT, CODE_ILT, false},
	[OP_LE] = {CODE_FLE, CODE_ILE, false},
	[OP_EQ] = {CODE_FEQ, CODE_IEQ, false},
	[OP_NE] = {CODE_FNE, CODE_INE, false},
	[OP_AND] = {0, CODE_BAND, false},
	[OP_OR] = {0, CODE_BOR, false},
	[OP_NOT] = {0, CODE_BNOT, false},
	[OP_MIN] = {CODE_FBINARY, CODE_IMIN, false},
	[OP_MAX] = {CODE_FBINARY, CODE_IMAX, false},
	[OP_POW] = {CODE_FBINARY, 0, false},
	[OP_EXP] = {CODE_FUNARY, 0, false},
	[OP_EXPM1] = {CODE_FUNARY, 0, false},
	[OP_LOG] = {CODE_FUNARY, 0, false},
	[OP_LOG1P] = {CODE_FUNARY, 0, false},
	[OP_SQRT] = {CODE_FUNARY, 0, false},
	[OP_RSQRT] = {CODE_FUNARY, 0, false},
	[OP_SIN] = {CODE_FUNARY, 0, false},
	[OP_COS] = {CODE_FUNARY, 0, false},
	[OP_TAN] = {CODE_FUNARY, 0, false},
	[OP_TANH] = {CODE_FUNARY, 0, false},
	[OP_SIGMOID] = {CODE_FUNARY, 0, false},
	[OP_ERF] = {CODE_FUNARY, 0, false},
	[OP_ABS] = {CODE_FUNARY, CODE_IABS, true},
	[OP_SIGN] = {CODE_FUNARY, CODE_ISIGN, false},
	[OP_FLOOR] = {CODE_FUNARY, CODE_MOVE, false},
	[OP_CEIL] = {CODE_FUNARY, CODE_MOVE, false},
	[OP_ROUND] = {CODE_FUNARY, CODE_MOVE, false},
	[OP_TF32] = {CODE_FUNARY, 0, false},
	[OP_STOP] = {CODE_MOVE, CODE_MOVE, false},
	[OP_RANDOM] = {CODE_UNIFORM, 0, false},
	[OP_NORMAL] = {CODE_NORMAL, 0, false},
};

static bool compares_floats(const Node *n)
{
	return op_compares((Op)n->op) && type_is_float((Type)n->src[0]->type);
}

/* A comparison looks at f32 values as kernels have them: of one operation, rounded. In f64 a
 * product would never equal the stored one, which is how extrema are found again. */
static int compared(Compiler *c, const Node *n, int level, int value)
{
	if (!compares_floats(n) || n->src[0]->type != RICCI_F32)
		return value;
	int rounded = fresh(c);
	emit(c, level, CODE_FROUND, rounded, value, 0)->imm.i = RICCI_F32;
	return rounded;
}

static int compile_plain(Compiler *c, Node *n, int level)
{
	int a = compile(c, n->src[0]), b = n->nsrc > 1 ? compile(c, n->src[1]) : a;
	a = compared(c, n, level, a);
	b = compared(c, n, level, b);
	if (n->op == OP_CAST)
		return compile_cast(c, n, level, a);
	bool draw = node_draws(n);
	bool is_float = draw || type_is_float((Type)n->src[0]->type);
	int dst = fresh(c);
	Code code = is_float ? op_code[n->op].is_float : op_code[n->op].is_int;
	Instr *in = emit(c, level, code, dst, a, b);
	in->imm.i = n->op;
	if (type_is_float((Type)n->type))
		in->limit = type_largest(type_accumulator((Type)n->type));
	if (compares_floats(n))
		in->limit = fmax(compare_limit((Type)n->src[0]->type), entry_find(c, n)->limit);
	if (is_float || !op_code[n->op].wraps || n->type == RICCI_I64)
		return dst;
	int wrapped = fresh(c);
	emit(c, level, CODE_IWRAP, wrapped, dst, dst)->imm.i = n->type;
	return wrapped;
}

static int compile_pick(Compiler *c, Node *n, int level)
{
	int a = compile(c, n->src[0]), b = compile(c, n->src[1]), d = compile(c, n->src[2]);
	return emit_pick(c, level, n, a, b, d);
}

static int compile(Compiler *c, Node *n)
{
	const Entry *e = analyse(c, n);
	if (e->reg >= 0)
		return e->reg;
	int level = e->level, reg;
	bool total = e->total, lazy = n->op == OP_SELECT || n->op == OP_AND || n->op == OP_OR;
	c->stray |= n->op == OP_AXIS;
	c->open |= n->op == OP_TRAINING;
	if (n->op == OP_CONST || n->op == OP_AXIS || n->op == OP_TRAINING)
		reg = constant(c, n->u.i);
	else if (n->op == OP_READ)
		reg = compile_read(c, n, level);
	else if (lazy && !total)
		reg = compile_lazy(c, n, level);
	else if (n->op == OP_SELECT)
		reg = compile_pick(c, n, level);
	else
		reg = compile_plain(c, n, level);
	entry_find(c, n)->reg = reg;
	if (c->mask >= 0 && n->op != OP_CONST) {
		c->undo = arena_grow(&c->scratch->arena, c->undo, c->nundo, &c->undo_room,
				     sizeof *c->undo);
		c->undo[c->nundo++] = n;
	}
	return reg;
}

/* Computes all total nodes below n before any mask is set. */
static void compile_total(Compiler *c, Node *n)
{
	if (analyse(c, n)->total) {
		compile(c, n);
		return;
	}
	Entry *e = entry_find(c, n);
	if (e->walked)
		return;
	e->walked = true;
	for (int k = first_source(n); k < n->nsrc; k++)
		compile_total(c, n->src[k]);
}

/* The lane axes: of a scatter all, else the left ones, and reduced ones while elements are few. */
static void choose_lanes(Compiler *c, int64_t elements)
{
	Program *p = c->p;
	for (int k = 0; k < p->naxis; k++) {
		bool lane = k < p->rank || elements < LANES;
		if (k >= p->rank && lane && elements)
			elements *= axis_extent(comp_axis(p->comp, k));
		if (lane)
			p->lane[p->nlane++] = k;
		else
			p->loop[p->nloop++] = k;
		c->axis_level[k] = lane ? 1 : 1 + p->nloop;
	}
}

int program_compile(Ir *scratch, Node *comp, int64_t elements, Type (*stored)(void *user, Node *t),
		    void *user, Program *p, Error *err)
{
	Compiler c = {.scratch = scratch, .p = p, .mask = -1, .stored = stored, .user = user};
	*p = (Program){.comp = comp, .naxis = comp_naxis(comp), .rank = tensor_rank(comp)};
	choose_lanes(&c, elements);
	for (int k = 0; k < p->naxis; k++)
		entry_add(&c, comp_axis(comp, k), p->nreg++, c.axis_level[k], true);
	for (int d = 0; d < p->rank; d++)
		compile_total(&c, comp_lhs(comp, d));
	compile_total(&c, comp_body(comp));
	for (int d = 0; d < p->rank; d++)
		p->lhs[d] = compile(&c, comp_lhs(comp, d));
	p->body = compile(&c, comp_body(comp));
	for (int k = 0; k < 2 + p->nloop; k++)
		emit(&c, k, CODE_END, 0, 0, 0);
	if (c.stray)
		return error_set(err, RICCI_EINTERNAL, "an equation uses an axis that it lacks");
	if (c.open)
		return error_set(err, RICCI_EINVAL,
				 "an equation depends on training, which sessions alone know");
	if (c.too_long)
		return error_set(err, RICCI_EUNSUPPORTED,
				 "an equation is too large to evaluate (over %d operations)",
				 CODE_LIMIT);
	return 0;
}
