/* lanes_load.c - vectors of LANES loops: their types, their masks, and what they load.
 *
 * Input: what a LANES loop reads, and the conditions that it reads it under. Output: names of vectors and masks.
 * Invariant: nothing is read where a lane is no iteration, or where its conditions do not hold. What is
 * loaded is kept to the loop's end: the loop writes none of what it reads. */
#include "jit/emit/lanes.h"

#include <string.h>

/* What is loaded has no type there; what a read of truth values is as a mask has one. */
static bool same_type(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

const char *lane_kept(const Lanes *v, Kept key)
{
	for (int k = 0; k < v->nkept; k++) {
		const Kept *i = &v->kept[k];
		if (i->read == key.read && i->cond == key.cond && i->step == key.step &&
		    i->from == key.from && same_type(i->type, key.type))
			return i->name;
	}
	return NULL;
}

/* ---- types ---- */

int64_t lane_width(const Lanes *v)
{
	return axis_extent(v->loop->axis);
}

void lane_declare(Emit *e, const char *name, const char *text)
{
	emit_declare(e, arena_printf(&e->ir->arena, "#ifndef %s\n#define %s %s\n%s\n#endif", name,
				     name, name, text));
}

/* The integer type of the elements' size, and of what they are added up as. */
static const char *const integer_of[RICCI_NTYPES] = {[RICCI_F32] = "int",
						     [RICCI_F64] = "long long",
						     [RICCI_I32] = "int",
						     [RICCI_I64] = "long long"};
const char *const lane_added_as[RICCI_NTYPES] = {[RICCI_F32] = "float",
						 [RICCI_F64] = "double",
						 [RICCI_I32] = "unsigned",
						 [RICCI_I64] = "uint64_t"};

const char *emit_vector_type(Emit *e, Type t, int64_t lanes)
{
	Arena *m = &e->ir->arena;
	t = lanes_type(t);
	const char *suffix = emit_suffix(t), *c = dialect_compute[t];
	long long n = lanes;
	const char *name = arena_printf(m, "%sx%lld", suffix, n);
	const char *text =
		arena_printf(m, "RK_VECTOR(%s, %s, %s, %s, %lld) RK_%s(%s, %s, %s, %lld)", name, c,
			     integer_of[t], lane_added_as[t], n,
			     type_is_float(t) ? "REAL" : "WHOLE", name, suffix, c, n);
	e->uses_lanes = true;
	lane_declare(e, name, text);
	return name;
}

const char *lane_type(Lanes *v, Type t)
{
	return emit_vector_type(v->e, t, lane_width(v));
}

/* The functions of masks for vectors of that type. */
static void declare_masks(Lanes *v, Type t)
{
	Arena *m = &v->e->ir->arena;
	const char *name = lane_type(v, t);
	t = lanes_type(t);
	bool wide = type_size(t) == 8;
	lane_declare(v->e, arena_printf(m, "%s_m", name),
		     arena_printf(m, "RK_MASKED(%s, %s, %s, %s, %lld, %lld)", name,
				  dialect_compute[t], wide ? "double" : "float", wide ? "pd" : "ps",
				  (long long)lane_width(v),
				  (long long)(lane_width(v) * (int64_t)type_size(t))));
}

const char *lane_access(Lanes *v, Type t, const char *what, bool some)
{
	Emit *e = v->e;
	Arena *m = &e->ir->arena;
	const char *name = lane_type(v, t), *from = type_name(t);
	if (some)
		declare_masks(v, t);
	const char *suffix = some ? "_some" : "";
	if (lanes_type(t) == t)
		return arena_printf(m, "%s_%s%s", name, what, suffix);
	const char *narrow = arena_printf(m, "%s_%s", name, from);
	e->uses_math |= type_is_float(t);
	lane_declare(e, narrow,
		     arena_printf(m, "RK_NARROW(%s, %s, %s, %lld)", name, dialect_ctype[t], from,
				  (long long)lane_width(v)));
	if (some)
		lane_declare(e, arena_printf(m, "%s_some", narrow),
			     arena_printf(m, "RK_NARROW_SOME(%s, %s, %s, %lld, %s, %d)", name,
					  dialect_ctype[t], from, (long long)lane_width(v),
					  type_size(t) == 2 ? "hi" : "qi",
					  lane_width(v) * (int64_t)type_size(t) > 16 ? 256 : 128));
	return arena_printf(m, "%s_%s%s", narrow, what, suffix);
}

/* ---- masks ---- */

const char *lane_keep(Lanes *v, const char *type, Kept key, const char *text)
{
	Emit *e = v->e;
	key.name = arena_printf(&e->ir->arena, "t%d", e->nname++);
	emit_line(e, "const %s %s = %s;", type, key.name, text);
	v->kept = arena_grow(&e->ir->arena, v->kept, v->nkept, &v->room, sizeof *v->kept);
	v->kept[v->nkept++] = key;
	return key.name;
}

/* The lanes for which a condition on their number alone holds, by bits. */
static uint64_t listed_lanes(Lanes *v, Node *cond)
{
	Ir *ir = v->e->ir;
	uint64_t bits = 0;
	for (int64_t k = 0; k < lane_width(v); k++) {
		Node *lane = node_int(ir, k);
		Node *holds = node_replace(ir, cond, 1, &v->loop->axis, &lane);
		bits |= (uint64_t)(holds->u.i != 0) << k;
	}
	return bits;
}

/* The lanes lo..hi-1, of these bits, for which the parts of cond that differ between lanes hold, and the rest of
 * it. */
static void mask_parts(Lanes *v, Node *cond, Node **lo, Node **hi, uint64_t *bits, Node **common)
{
	Ir *ir = v->e->ir;
	Node **part;
	int n = node_parts(ir, cond, OP_AND, &part);
	for (int k = 0; k < n; k++)
		switch (lanes_decide(ir, part[k], v->loop)) {
		case LANES_AGREE:
			*common = node_and(ir, *common, part[k]);
			break;
		case LANES_INTERVAL:
			cond_interval(ir, part[k], v->loop->axis, lo, hi);
			break;
		case LANES_LISTED:
			*bits &= listed_lanes(v, part[k]);
			break;
		case LANES_COMPARE:
			break;
		}
}

/* Of every step-th element, or backwards, from number `from` on: those of these lanes. */
static uint64_t bits_of_elements(const Lanes *v, uint64_t lanes, int64_t step, int64_t from)
{
	uint64_t bits = 0;
	for (int64_t k = 0; k < lane_width(v); k++)
		bits |= (from + k) % step ? 0 : (lanes >> (from + k) / step & 1) << k;
	return bits;
}

const char *lane_uniform(Lanes *v, Node *n)
{
	bool unwanted = v->e->unwanted;
	v->e->unwanted = true;
	const char *text = emit_value(v->e, n, false);
	v->e->unwanted = unwanted;
	return text;
}

const char *lane_mask(Lanes *v, Type t, Node *cond, int64_t step, int64_t from)
{
	Emit *e = v->e;
	Ir *ir = e->ir;
	const char *name = lane_type(v, t);
	Kept key = {.cond = cond, .step = step, .from = from, .type = name};
	Node *lo = v->loop->lo, *hi = v->loop->hi, *common = NULL;
	const char *known = lane_kept(v, key);
	uint64_t all = ~UINT64_C(0) >> (64 - lane_width(v)), bits = all;
	if (known)
		return known;
	if (cond)
		mask_parts(v, cond, &lo, &hi, &bits, &common);
	Node *first = node_scale(ir, lo, step),
	     *last = node_scale(ir, node_sub(ir, hi, node_int(ir, 1)), step);
	lo = node_sub(ir, step > 0 ? first : last, node_int(ir, from));
	hi = node_sub(ir, step > 0 ? last : first, node_int(ir, from - 1));
	if (!common && bits == all && lo->hi <= 0 && hi->lo >= lane_width(v))
		return NULL;
	declare_masks(v, t);
	const char *text = arena_printf(&ir->arena, "%s_lanes(%s, %s)", name,
					emit_value(e, lo, false), emit_value(e, hi, false));
	if (bits != all)
		text = arena_printf(&ir->arena, "%s_among(0x%llxu, %s)", name,
				    (unsigned long long)bits_of_elements(v, bits, step, from),
				    text);
	if (common)
		text = arena_printf(&ir->arena, "%s_where(%s, %s)", name, lane_uniform(v, common),
				    text);
	return lane_keep(v, arena_printf(&ir->arena, "%s_m", name), key, text);
}

const char *lane_place(Lanes *v, Node *buffer, Node *index)
{
	Node *axis = v->loop->axis, *zero = node_int(v->e->ir, 0);
	return emit_place(v->e, buffer, node_replace(v->e->ir, index, 1, &axis, &zero), false);
}

bool lane_variable(const Lanes *v, const Node *buffer)
{
	return tree_find(v->e->tree, buffer)->space == SPACE_LANES || lanes_own(v->loop, buffer);
}

bool lane_room(const Lanes *v, Node *buffer, const Node *index)
{
	return lane_variable(v, buffer) || (tree_find(v->e->tree, buffer)->space == SPACE_LOCAL &&
					    index->hi < tensor_size(buffer));
}

static const char *load_part(Lanes *v, Node *n, Node *cond, int64_t step, int64_t from)
{
	Ir *ir = v->e->ir;
	Node *index = node_add(ir, n->src[1], node_int(ir, from));
	bool whole = !cond && step == 1 && lane_room(v, n->src[0], n->src[1]);
	const char *mask = lane_mask(v, n->type, cond, step, from), *t = lane_type(v, n->type);
	const char *at = lane_place(v, n->src[0], index);
	const char *name = lane_access(v, n->type, "load", mask && !whole);
	if (mask && whole) /* what was never written may be subnormal, which is slow */
		return arena_printf(&ir->arena, "%s_pick(%s, %s(&%s), %s_all(0))", t, mask, name,
				    at, t);
	return mask ? arena_printf(&ir->arena, "%s(&%s, %s)", name, at, mask)
		    : arena_printf(&ir->arena, "%s(&%s)", name, at);
}

/* The function that reads elements apart under a mask. */
static const char *gather_some(Lanes *v, Type t)
{
	Arena *m = &v->e->ir->arena;
	bool narrow = lanes_type(t) != t;
	const char *name = lane_access(v, t, "gather", true), *vector = lane_type(v, t);
	long long n = lane_width(v);
	lane_declare(v->e, name,
		     narrow ? arena_printf(m, "RK_NARROW_GATHER_SOME(%s, %s, %s, %lld)", vector,
					   dialect_ctype[t], type_name(t), n)
			    : arena_printf(m, "RK_GATHER_SOME(%s, %s, %lld)", vector,
					   dialect_compute[t], n));
	return name;
}

/* Element by element: what lanes that are no iteration read is what the last one does. */
static const char *gather(Lanes *v, Node *n, Node *cond, int64_t step)
{
	Arena *m = &v->e->ir->arena;
	const char *mask = cond && !read_inside(n) ? lane_mask(v, n->type, cond, 1, 0) : NULL;
	const char *at = lane_place(v, n->src[0], n->src[1]);
	return mask ? arena_printf(m, "%s(&%s, %lldL, %s)", gather_some(v, n->type), at,
				   (long long)step, mask)
		    : arena_printf(m, "%s(&%s, %lldL, %s)",
				   lane_access(v, n->type, "gather", false), at, (long long)step,
				   emit_value(v->e, v->loop->hi, false));
}

/* Every count-th element of as many vectors from `from` on. */
static const char *load_parts(Lanes *v, Node *n, Node *cond, int64_t step, int64_t from,
			      int64_t count)
{
	int64_t half = count / 2;
	if (count == 1)
		return load_part(v, n, cond, step, from);
	const char *low = load_parts(v, n, cond, step, from, half);
	const char *high = load_parts(v, n, cond, step, from + half * lane_width(v), half);
	return arena_printf(&v->e->ir->arena, "%s_even(%s, %s)", lane_type(v, n->type), low, high);
}

/* The same from the last lane's element on. */
static const char *load_reversed(Lanes *v, Node *n, Node *cond, int64_t step)
{
	const char *text = load_parts(v, n, cond, step, step * (lane_width(v) - 1), -step);
	return arena_printf(&v->e->ir->arena, "%s_reversed(%s)", lane_type(v, n->type), text);
}

const char *lane_load(Lanes *v, Node *n, Node *cond)
{
	Ir *ir = v->e->ir;
	Kept key = {.read = n, .cond = cond};
	const char *known = lane_kept(v, key);
	if (known)
		return known;
	if (lane_variable(v, n->src[0]))
		return n->src[0]->u.s;
	int64_t step = affine_stride(ir, n->src[1], v->loop->axis);
	bool apart = lanes_apart(n->type, lane_width(v), step);
	const char *text = apart      ? gather(v, n, cond, step)
			   : step < 0 ? load_reversed(v, n, cond, step)
				      : load_parts(v, n, cond, step, 0, step);
	return lane_keep(v, lane_type(v, n->type), key, text);
}

bool lane_loaded(const Lanes *v, Node *n)
{
	return n->op == OP_READ && !lane_variable(v, n->src[0]) && lanes_vary(n, v->loop) &&
	       !lanes_apart(n->type, lane_width(v),
			    affine_stride(v->e->ir, n->src[1], v->loop->axis));
}
