/* interp.c - the reference interpreter: evaluates equations straight from their definition.
 *
 * Input: tensors, and the data of the inputs (or of tensors already known). Output: doubles and
 * int64. What is needed is planned first, sources first: each equation is compiled to a register
 * program (interp_compile.c), each loop's body to a plan of its own (interp_plan.c). Then the plan
 * is run (interp_comp.c, interp_run.c), each tensor once over its whole domain. Equations on the
 * way keep double precision: only a cast rounds to f32, bf16 or f16. Integers wrap to their type.
 * max and min give NaN if any value is NaN. The Ir is not written to, so threads may interpret over
 * one frozen graph. */
#include "core/interp/internal.h"

static void bind_all(Interp *s, int nbind, const Binding *bind, const uint8_t *const *lost)
{
	for (int k = 0; k < nbind; k++)
		if (!known_find(s, bind[k].tensor))
			known_add(s, (Slot){.tensor = bind[k].tensor,
					    .data = bind[k].data,
					    .stored = (Type)bind[k].tensor->type,
					    .lost = lost ? lost[k] : NULL});
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
	const uint8_t *const *lost;
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
	bind_all(s, nbind, bind, w->lost);
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

int interp_tensor(Node *t, int nbind, const Binding *bind, RandomState rs, void *out,
		  double *magnitude, Error *err)
{
	return interp_call(nbind, bind, rs, &(Want){.t = t, .out = out, .magnitude = magnitude},
			   err);
}

int interp_elements(Node *c, int nbind, const Binding *bind, const uint8_t *const *lost,
		    RandomState rs, int count, const int64_t *at, void *out, double *magnitude,
		    Error *err)
{
	if (count == 0)
		return 0;
	if (c->op != OP_COMP || !comp_is_dense(c))
		return error_set(err, RICCI_EINVAL,
				 "only of dense equations single elements can be evaluated");
	return interp_call(nbind, bind, rs, &(Want){c, lost, count, at, out, magnitude}, err);
}
