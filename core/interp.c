/* interp.c - the reference interpreter: evaluates equations straight from their definition.
 *
 * Input: tensors, and the data of the inputs (or of tensors already known). Output: doubles and
 * int64. Each equation that is needed is compiled to a register program (interp_compile.c) and run
 * over its whole domain (interp_run.c), once. Equations on the way keep double precision: only a
 * cast rounds to f32, bf16 or f16. Integers wrap to their type. max and min give NaN if any value
 * is NaN. The Ir is not written to, so threads may interpret over one frozen graph. */
#include "core/interp.h"

#include <math.h>
#include <string.h>

/* A tensor whose values are known, or being computed. */
typedef struct Known {
	Slot slot;
	Program *program;    /* NULL: bound */
	int next;	     /* the next slot of the program to look after */
	struct Known *below; /* who waits for it */
} Known;

typedef struct Interp {
	Ir scratch; /* its arena holds everything but the caller's arrays; it makes no nodes */
	int nbind;
	const Binding *bind;
	RandomState random;
	bool magnitudes;
	Known **table; /* open addressing by tensor */
	size_t count, room;
	Error *err;
} Interp;

static void *interp_alloc(Interp *s, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 2 / size)
		longjmp(*s->scratch.arena.oom, 1);
	return arena_alloc(&s->scratch.arena, n * size);
}

/* ---- the table of tensors ---- */

static size_t known_slot(Known **table, size_t room, const Node *t)
{
	size_t at = ((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u >> 20 & (room - 1);
	while (table[at] && table[at]->slot.tensor != t)
		at = (at + 1) & (room - 1);
	return at;
}

static Known *known_find(Interp *s, const Node *t)
{
	return s->room ? s->table[known_slot(s->table, s->room, t)] : NULL;
}

static Known *known_add(Interp *s, Slot slot)
{
	if (s->count * 2 >= s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		Known **table = interp_alloc(s, room, sizeof *table);
		for (size_t i = 0; i < s->room; i++)
			if (s->table[i])
				table[known_slot(table, room, s->table[i]->slot.tensor)] =
					s->table[i];
		s->table = table, s->room = room;
	}
	Known *k = interp_alloc(s, 1, sizeof *k);
	k->slot = slot;
	s->table[known_slot(s->table, s->room, slot.tensor)] = k;
	s->count++;
	return k;
}

/* Tensors computed on the way are stored wide. */
static Type stored_as(void *user, Node *t)
{
	Interp *s = user;
	Known *k = known_find(s, t);
	if (k)
		return k->slot.stored;
	return type_is_float((Type)t->type) ? RICCI_F64 : RICCI_I64;
}

static void bind_all(Interp *s)
{
	for (int k = 0; k < s->nbind; k++)
		if (!known_find(s, s->bind[k].tensor))
			known_add(s, (Slot){.tensor = s->bind[k].tensor,
					    .data = s->bind[k].data,
					    .stored = (Type)s->bind[k].tensor->type});
}

/* ---- one equation ---- */

static void machine_new(Interp *s, const Program *p, Machine *m)
{
	*m = (Machine){.p = p, .random = s->random, .err = s->err};
	m->r = interp_alloc(s, (size_t)p->nreg * LANES, sizeof *m->r);
	if (s->magnitudes)
		m->magnitude = interp_alloc(s, (size_t)p->nreg * LANES, sizeof *m->magnitude);
}

/* An accumulator: the value so far and its magnitude. */
typedef struct Sum {
	Cell v;
	double magnitude;
} Sum;

static Sum sum_first(const Node *comp)
{
	Sum s = {0};
	Type t = (Type)comp->type;
	if (type_is_float(t))
		s.v.f = reduce_identity(comp_reduce(comp), t);
	else
		s.v.i = reduce_identity_int(comp_reduce(comp), t);
	return s;
}

static void sum_float(Sum *s, Reduce red, double v, double magnitude)
{
	double old = s->v.f;
	switch (red) {
	case RED_ADD:
		s->v.f += v;
		s->magnitude += magnitude;
		break;
	case RED_MUL:
		s->v.f *= v;
		/* The identity has no magnitude of its own. */
		s->magnitude = s->magnitude == 0 && old == 1
				       ? magnitude
				       : fmax(fabs(old) * magnitude, s->magnitude * fabs(v));
		break;
	case RED_MAX:
	case RED_MIN:
		s->v.f = scalar_binary(red == RED_MAX ? OP_MAX : OP_MIN, old, v);
		s->magnitude = fmax(s->magnitude, magnitude);
		break;
	default:
		s->v.f = v;
		s->magnitude = magnitude;
	}
}

static void sum_integer(Sum *s, Reduce red, int64_t v)
{
	int64_t old = s->v.i;
	switch (red) {
	case RED_ADD:
		s->v.i = (int64_t)((uint64_t)old + (uint64_t)v);
		break;
	case RED_MUL:
		s->v.i = (int64_t)((uint64_t)old * (uint64_t)v);
		break;
	case RED_MAX:
		s->v.i = v > old ? v : old;
		break;
	case RED_MIN:
		s->v.i = v < old ? v : old;
		break;
	default:
		s->v.i = v;
	}
}

/* Adds what another accumulator of the same element holds. */
static void sum_take(Sum *s, const Node *comp, Cell v, double magnitude)
{
	if (type_is_float((Type)comp->type))
		sum_float(s, comp_reduce(comp), v.f, magnitude);
	else
		sum_integer(s, comp_reduce(comp), v.i);
}

/* The body's present values to each lane's accumulator. */
static void lanes_take(const Machine *m, Sum *sum)
{
	const Node *comp = m->p->comp;
	const Cell *v = m->r + m->p->body * LANES;
	const double *g = m->magnitude ? m->magnitude + m->p->body * LANES : NULL;
	if (type_is_float((Type)comp->type) && comp_reduce(comp) == RED_ADD) {
		for (int i = 0; i < LANES; i++)
			sum[i].v.f += v[i].f;
		for (int i = 0; i < LANES && g; i++)
			sum[i].magnitude += g[i];
		return;
	}
	for (int i = 0; i < LANES; i++)
		sum_take(&sum[i], comp, v[i], g ? g[i] : 0);
}

static void sum_store(const Sum *s, Type t, Cell *out, double *magnitude)
{
	if (type_is_float(t)) {
		out->f = s->v.f;
		if (magnitude)
			*magnitude = s->magnitude;
	} else {
		out->i = type_wrap(t, s->v.i);
		if (magnitude)
			*magnitude = fabs((double)out->i);
	}
}

/* ---- lanes ---- */

static void axis_set(Machine *m, int axis, int64_t v)
{
	Cell *r = m->r + axis * LANES;
	for (int i = 0; i < LANES; i++)
		r[i].i = v;
}

/* Puts the loop axes from j on at 0 and runs their levels. */
static int loop_first(Machine *m, int j, int64_t *at)
{
	int status = 0;
	for (; j < m->p->nloop && !status; j++) {
		at[j] = 0;
		axis_set(m, m->p->loop[j], 0);
		status = machine_run(m, 2 + j);
	}
	return status;
}

/* The next point of the loop axes, the last one fastest: 1, or 0 at the end, or an error. */
static int loop_next(Machine *m, int64_t *at)
{
	for (int j = m->p->nloop - 1; j >= 0; j--) {
		int axis = m->p->loop[j];
		if (++at[j] >= axis_extent(comp_axis(m->p->comp, axis)))
			continue;
		axis_set(m, axis, at[j]);
		int status = machine_run(m, 2 + j);
		if (!status)
			status = loop_first(m, j + 1, at);
		return status ? status : 1;
	}
	return 0;
}

/* Sums over the loop axes for all lanes, whose axes are set. */
static int lanes_run(Machine *m, Sum *sum)
{
	int64_t at[COMP_MAX_AXES];
	for (int i = 0; i < LANES; i++)
		sum[i] = sum_first(m->p->comp);
	int status = machine_run(m, 1);
	if (!status)
		status = loop_first(m, 0, at);
	while (!status) {
		lanes_take(m, sum);
		status = loop_next(m, at);
		if (status == 0)
			break;
		status = status < 0 ? status : 0;
	}
	return status;
}

/* Sets lane i's axes from `from` to `to` (exclusive, in the order of p->lane) to the digits of v.
 */
static void lane_set(Machine *m, int i, int from, int to, int64_t v)
{
	for (int k = to - 1; k >= from; k--) {
		int axis = m->p->lane[k];
		int64_t extent = axis_extent(comp_axis(m->p->comp, axis));
		m->r[axis * LANES + i].i = v % extent;
		v /= extent;
	}
}

/* The product of the extents of lane axes from..to-1. */
static int64_t lane_points(const Program *p, int from, int to)
{
	int64_t n = 1;
	for (int k = from; k < to; k++)
		n *= axis_extent(comp_axis(p->comp, p->lane[k]));
	return n;
}

/* `count` elements of a dense equation: at[], or all where at is NULL. A lane is an element, or,
 * where these are few, a part of one: the lanes of an element are neighbours. Lanes past the end
 * repeat the last one. */
static int dense_run(Machine *m, int64_t count, const int64_t *at, Cell *out, double *magnitude)
{
	const Program *p = m->p;
	int64_t parts = lane_points(p, p->rank, p->nlane), end = count * parts;
	Sum sum[LANES], whole = sum_first(p->comp);
	int status = machine_run(m, 0);
	for (int64_t t = 0; t < end && !status; t += LANES) {
		for (int i = 0; i < LANES; i++) {
			int64_t lane = t + i < end ? t + i : end - 1, e = lane / parts;
			lane_set(m, i, 0, p->rank, at ? at[e] : e);
			lane_set(m, i, p->rank, p->nlane, lane % parts);
		}
		status = lanes_run(m, sum);
		for (int i = 0; i < LANES && t + i < end; i++) {
			int64_t e = (t + i) / parts;
			sum_take(&whole, p->comp, sum[i].v, sum[i].magnitude);
			if ((t + i + 1) % parts)
				continue;
			sum_store(&whole, (Type)p->comp->type, out + e,
				  magnitude ? magnitude + e : NULL);
			whole = sum_first(p->comp);
		}
	}
	return status;
}

/* The flat position that lane i's left indices name; an error when they leave the result. */
static int scatter_position(const Machine *m, int i, int64_t *at)
{
	const Program *p = m->p;
	*at = 0;
	for (int d = 0; d < p->rank; d++) {
		int64_t index = m->r[p->lhs[d] * LANES + i].i, extent = tensor_extent(p->comp, d);
		if (index < 0 || index >= extent)
			return error_set(m->err, RICCI_EVALUE,
					 "index %lld leaves dimension %d of the result, whose "
					 "extent is %lld; 0 to %lld would be right",
					 (long long)index, d, (long long)extent,
					 (long long)extent - 1);
		*at = *at * extent + index;
	}
	return 0;
}

static int scatter_run(Interp *s, Machine *m, Cell *out, double *magnitude)
{
	const Program *p = m->p;
	int64_t size = tensor_size(p->comp), end = lane_points(p, 0, p->nlane), at;
	Sum *whole = interp_alloc(s, (size_t)size, sizeof *whole), sum[LANES];
	for (int64_t i = 0; i < size; i++)
		whole[i] = sum_first(p->comp);
	int status = machine_run(m, 0);
	for (int64_t t = 0; t < end && !status; t += LANES) {
		for (int i = 0; i < LANES; i++)
			lane_set(m, i, 0, p->nlane, t + i < end ? t + i : end - 1);
		status = lanes_run(m, sum);
		for (int i = 0; i < LANES && t + i < end && !status; i++) {
			status = scatter_position(m, i, &at);
			if (!status)
				sum_take(&whole[at], p->comp, sum[i].v, sum[i].magnitude);
		}
	}
	for (int64_t i = 0; i < size && !status; i++)
		sum_store(&whole[i], (Type)p->comp->type, out + i,
			  magnitude ? magnitude + i : NULL);
	return status;
}

/* ---- graphs ---- */

static int input_missing(Interp *s, const Node *t)
{
	return error_set(s->err, RICCI_EINVAL, "input %s has no data", t->u.s);
}

/* Puts t, a COMP that is not bound, on the stack of what is being computed. */
static int stack_push(Interp *s, Known **top, Node *t, void *out, double *magnitude)
{
	Slot slot = {.tensor = t, .data = out, .magnitude = magnitude};
	slot.stored = type_is_float((Type)t->type) ? RICCI_F64 : RICCI_I64;
	if (t->op == OP_SCAN)
		return error_set(s->err, RICCI_EUNSUPPORTED, "loops are not evaluated yet");
	Known *k = known_add(s, slot);
	k->program = interp_alloc(s, 1, sizeof *k->program);
	k->below = *top;
	*top = k;
	int64_t elements = comp_is_dense(t) ? tensor_size(t) : 0;
	return program_compile(&s->scratch, t, elements, stored_as, s, k->program, s->err);
}

/* The next tensor that k reads and that nobody has computed, or NULL. */
static Node *next_unknown(Interp *s, Known *k)
{
	while (k->next < k->program->nslot) {
		Node *t = k->program->slot[k->next++].tensor;
		if (!known_find(s, t))
			return t;
	}
	return NULL;
}

static int known_run(Interp *s, Known *k)
{
	Machine m;
	for (int i = 0; i < k->program->nslot; i++)
		k->program->slot[i] = known_find(s, k->program->slot[i].tensor)->slot;
	machine_new(s, k->program, &m);
	Cell *out = (Cell *)k->slot.data;
	double *magnitude = (double *)k->slot.magnitude;
	if (!comp_is_dense(k->slot.tensor))
		return scatter_run(s, &m, out, magnitude);
	return dense_run(&m, tensor_size(k->slot.tensor), NULL, out, magnitude);
}

/* Evaluates t and what it needs, sources first. */
static int graph_run(Interp *s, Node *t, void *out, double *magnitude)
{
	Known *top = NULL;
	int status = stack_push(s, &top, t, out, magnitude);
	while (!status && top) {
		Node *source = next_unknown(s, top);
		if (!source) {
			status = known_run(s, top);
			top = top->below;
		} else if (source->op == OP_INPUT) {
			status = input_missing(s, source);
		} else {
			size_t n = (size_t)tensor_size(source);
			void *data = interp_alloc(s, n, sizeof(Cell));
			double *g = s->magnitudes ? interp_alloc(s, n, sizeof *g) : NULL;
			status = stack_push(s, &top, source, data, g);
		}
	}
	return status;
}

/* A bound tensor's values, widened. */
static void copy_values(const Slot *slot, void *out, double *magnitude)
{
	Type t = slot->stored;
	for (int64_t i = 0; i < tensor_size(slot->tensor); i++) {
		double v;
		if (type_is_float(t)) {
			v = ((double *)out)[i] = type_load(t, slot->data, (size_t)i);
		} else {
			((int64_t *)out)[i] = type_load_int(t, slot->data, (size_t)i);
			v = (double)((int64_t *)out)[i];
		}
		if (magnitude)
			magnitude[i] = fabs(v);
	}
}

static int tensor_run(Interp *s, Node *t, void *out, double *magnitude)
{
	bind_all(s);
	Known *k = known_find(s, t);
	if (k) {
		copy_values(&k->slot, out, magnitude);
		return 0;
	}
	return t->op == OP_INPUT ? input_missing(s, t) : graph_run(s, t, out, magnitude);
}

static int elements_run(Interp *s, Node *c, int count, const int64_t *at, Cell *out,
			double *magnitude)
{
	Machine m;
	Program p;
	bind_all(s);
	int status = program_compile(&s->scratch, c, count, stored_as, s, &p, s->err);
	for (int i = 0; i < p.nslot && !status; i++) {
		Known *k = known_find(s, p.slot[i].tensor);
		if (!k)
			return error_set(s->err, RICCI_EINVAL,
					 "a tensor that the equation reads has no data");
		p.slot[i] = k->slot;
	}
	if (status)
		return status;
	machine_new(s, &p, &m);
	return dense_run(&m, count, at, out, magnitude);
}

/* Runs with memory failures caught; everything allocated is in the scratch arena. */
static int interp_guard(Interp *s, Node *t, int count, const int64_t *at, void *out,
			double *magnitude)
{
	jmp_buf jump;
	s->scratch.arena.oom = &jump;
	if (setjmp(jump))
		return error_set(s->err, RICCI_ENOMEM, "out of memory");
	return at ? elements_run(s, t, count, at, out, magnitude)
		  : tensor_run(s, t, out, magnitude);
}

int interp_tensor(Ir *ir, Node *t, int nbind, const Binding *bind, RandomState rs, void *out,
		  double *magnitude, Error *err)
{
	Interp s = {
		.nbind = nbind, .bind = bind, .random = rs, .magnitudes = magnitude, .err = err};
	(void)ir;
	int status = interp_guard(&s, t, 0, NULL, out, magnitude);
	arena_free(&s.scratch.arena);
	return status;
}

int interp_elements(Ir *ir, Node *c, int nbind, const Binding *bind, RandomState rs, int count,
		    const int64_t *at, void *out, double *magnitude, Error *err)
{
	Interp s = {
		.nbind = nbind, .bind = bind, .random = rs, .magnitudes = magnitude, .err = err};
	(void)ir;
	if (count == 0)
		return 0;
	if (!comp_is_dense(c))
		return error_set(err, RICCI_EINVAL,
				 "single elements of a scatter can not be evaluated");
	int status = interp_guard(&s, c, count, at, out, magnitude);
	arena_free(&s.scratch.arena);
	return status;
}
