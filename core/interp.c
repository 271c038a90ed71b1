/* interp.c - the reference interpreter: evaluates equations straight from their definition.
 *
 * Input: tensors, and the data of the inputs (or of tensors already known). Output: doubles and
 * int64. What is needed is planned first, sources first: each equation is compiled to a register
 * program (interp_compile.c), each loop's body to a plan of its own (interp_scan.c). Then the plan
 * is run (interp_comp.c, interp_run.c), each tensor once over its whole domain. Equations on the
 * way keep double precision: only a cast rounds to f32, bf16 or f16. Integers wrap to their type.
 * max and min give NaN if any value is NaN. The Ir is not written to, so threads may interpret over
 * one frozen graph. */
#include "core/interp.h"

#include <math.h>
#include <string.h>

void *interp_alloc(Interp *s, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 2 / size)
		longjmp(*s->scratch->arena.oom, 1);
	return arena_alloc(&s->scratch->arena, n * size);
}

/* ---- the table of tensors ---- */

static size_t known_slot(Known **table, size_t room, const Node *t)
{
	size_t at = ((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u >> 20 & (room - 1);
	while (table[at] && table[at]->slot.tensor != t)
		at = (at + 1) & (room - 1);
	return at;
}

Known *known_find(Interp *s, const Node *t)
{
	return s->room ? s->table[known_slot(s->table, s->room, t)] : NULL;
}

Known *known_add(Interp *s, Slot slot)
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

Slot slot_wide(Interp *s, Node *t)
{
	size_t n = (size_t)tensor_size(t);
	Slot slot = {.tensor = t, .data = interp_alloc(s, n, sizeof(Cell))};
	slot.stored = type_is_float((Type)t->type) ? RICCI_F64 : RICCI_I64;
	slot.magnitude = s->magnitudes ? interp_alloc(s, n, sizeof(double)) : NULL;
	return slot;
}

void slot_copy(const Slot *slot, int64_t from, int64_t n, Cell *out, double *magnitude)
{
	Type t = slot->stored;
	for (int64_t i = 0; i < n; i++) {
		size_t at = (size_t)(from + i);
		double v;
		if (type_is_float(t)) {
			v = out[i].f = type_load(t, slot->data, at);
		} else {
			out[i].i = type_load_int(t, slot->data, at);
			v = (double)out[i].i;
		}
		if (magnitude)
			magnitude[i] = slot->magnitude ? slot->magnitude[at] : fabs(v);
	}
}

static void bind_all(Interp *s, int nbind, const Binding *bind)
{
	for (int k = 0; k < nbind; k++)
		if (!known_find(s, bind[k].tensor))
			known_add(s, (Slot){.tensor = bind[k].tensor,
					    .data = bind[k].data,
					    .stored = (Type)bind[k].tensor->type});
}

/* ---- plans ---- */

static Type stored_as(void *user, Node *t)
{
	Known *k = known_find(user, t);
	if (k)
		return k->slot.stored;
	return type_is_float((Type)t->type) ? RICCI_F64 : RICCI_I64;
}

static void machine_new(Interp *s, const Program *p, Machine *m)
{
	*m = (Machine){.p = p, .random = s->random, .err = s->err};
	m->r = interp_alloc(s, (size_t)p->nreg * LANES, sizeof *m->r);
	if (s->magnitudes)
		m->magnitude = interp_alloc(s, (size_t)p->nreg * LANES, sizeof *m->magnitude);
	if (!comp_is_dense(p->comp))
		m->whole = interp_alloc(s, (size_t)tensor_size(p->comp), sizeof *m->whole);
}

static int input_missing(Interp *s, const Node *t)
{
	return error_set(s->err, RICCI_EINVAL, "input %s has no data", t->u.s);
}

/* Puts t, which is not known, on the stack of what waits for its sources. */
static int stack_push(Interp *s, Known **top, Node *t)
{
	if (t->op == OP_INPUT)
		return input_missing(s, t);
	Known *k = known_add(s, slot_wide(s, t));
	k->below = *top;
	*top = k;
	if (t->op == OP_SCAN) {
		k->nread = scan_noperand(scan_of(t));
		return 0;
	}
	int64_t elements = comp_is_dense(t) ? tensor_size(t) : 0;
	k->program = interp_alloc(s, 1, sizeof *k->program);
	int status = program_compile(s->scratch, t, elements, stored_as, s, k->program, s->err);
	k->nread = k->program->nslot;
	return status;
}

/* The next tensor that k needs and that is not known, or NULL. */
static Node *next_unknown(Interp *s, Known *k)
{
	while (k->next < k->nread) {
		int i = k->next++;
		Node *t =
			k->program ? k->program->slot[i].tensor : scan_operands(k->slot.tensor)[i];
		if (!known_find(s, t))
			return t;
	}
	return NULL;
}

static int plan_add(Interp *s, Known *k)
{
	if (s->nplan == s->plan_room) {
		s->plan_room = s->plan_room * 2 + 16;
		Known **more = interp_alloc(s, (size_t)s->plan_room, sizeof *more);
		if (s->nplan)
			memcpy(more, s->plan, (size_t)s->nplan * sizeof *more);
		s->plan = more;
	}
	s->plan[s->nplan++] = k;
	if (!k->program)
		return scan_plan(s, k);
	machine_new(s, k->program, &k->machine);
	return 0;
}

Known *plan_tensor(Interp *s, Node *t)
{
	Known *known = known_find(s, t), *top = NULL;
	int status = known ? 0 : stack_push(s, &top, t);
	while (!status && top) {
		Node *source = next_unknown(s, top);
		if (source) {
			status = stack_push(s, &top, source);
		} else {
			status = plan_add(s, top);
			top = top->below;
		}
	}
	return status ? NULL : known_find(s, t);
}

static int comp_run(Interp *s, Known *k)
{
	Cell *out = (Cell *)k->slot.data;
	double *magnitude = (double *)k->slot.magnitude;
	k->machine.random = s->random;
	for (int i = 0; i < k->program->nslot; i++)
		k->program->slot[i] = known_find(s, k->program->slot[i].tensor)->slot;
	if (k->machine.whole)
		return machine_scatter(&k->machine, out, magnitude);
	return machine_dense(&k->machine, tensor_size(k->slot.tensor), NULL, out, magnitude);
}

int plan_run(Interp *s)
{
	int status = 0;
	for (int i = 0; i < s->nplan && !status; i++) {
		Known *k = s->plan[i];
		if (k->program)
			status = comp_run(s, k);
		else if (k->run)
			status = scan_run(s, k->run);
	}
	return status;
}

/* ---- the calls ---- */

static int tensor_run(Interp *s, Node *t, Cell *out, double *magnitude)
{
	Known *k = plan_tensor(s, t);
	int status = k ? plan_run(s) : s->err->code;
	if (!status)
		slot_copy(&k->slot, 0, tensor_size(t), out, magnitude);
	return status;
}

static int elements_run(Interp *s, Node *c, int count, const int64_t *at, Cell *out,
			double *magnitude)
{
	Machine m;
	Program p;
	int status = program_compile(s->scratch, c, count, stored_as, s, &p, s->err);
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
	return machine_dense(&m, count, at, out, magnitude);
}

/* What a call asks for: all of t, or the elements at[]. */
typedef struct Want {
	Node *t;
	int count;
	const int64_t *at;
	Cell *out;
	double *magnitude;
} Want;

/* Runs with memory failures caught; everything allocated is in the scratch arena. */
static int interp_guard(Interp *s, int nbind, const Binding *bind, const Want *w)
{
	jmp_buf jump;
	s->scratch->arena.oom = &jump;
	if (setjmp(jump))
		return error_set(s->err, RICCI_ENOMEM, "out of memory");
	bind_all(s, nbind, bind);
	return w->at ? elements_run(s, w->t, w->count, w->at, w->out, w->magnitude)
		     : tensor_run(s, w->t, w->out, w->magnitude);
}

static int interp_call(int nbind, const Binding *bind, RandomState rs, const Want *w, Error *err)
{
	Error own = {0};
	Ir scratch = {0};
	Interp s = {.scratch = &scratch, .random = rs, .magnitudes = w->magnitude, .err = &own};
	int status = interp_guard(&s, nbind, bind, w);
	arena_free(&scratch.arena);
	if (status)
		error_set(err, status, "%s", own.text);
	return status;
}

int interp_tensor(Ir *ir, Node *t, int nbind, const Binding *bind, RandomState rs, void *out,
		  double *magnitude, Error *err)
{
	(void)ir;
	return interp_call(nbind, bind, rs, &(Want){.t = t, .out = out, .magnitude = magnitude},
			   err);
}

int interp_elements(Ir *ir, Node *c, int nbind, const Binding *bind, RandomState rs, int count,
		    const int64_t *at, void *out, double *magnitude, Error *err)
{
	(void)ir;
	if (count == 0)
		return 0;
	if (c->op != OP_COMP || !comp_is_dense(c))
		return error_set(err, RICCI_EINVAL,
				 "only of dense equations single elements can be evaluated");
	return interp_call(nbind, bind, rs, &(Want){c, count, at, out, magnitude}, err);
}
