/* interp_plan.c - what the interpreter has to compute, sources first, and running it: equations are
 * compiled to programs; a loop's body is a plan of its own over the variables, run once a step. All
 * results of one run of a loop come together: the first of them in the plan around it leads. Input:
 * tensors, and the data of some. Output: the values of all that is planned. */
#include "core/interp/internal.h"

#include <math.h>
#include <string.h>

typedef struct RunResult {
	Known *k;     /* the SCAN */
	Known *value; /* in the body */
	struct RunResult *next;
} RunResult;

typedef struct ScanRun {
	const Node *scan; /* the leader's node */
	Interp body;
	Known **operand, **var, **next;
	Cell **fresh; /* the states' next values, while all are computed from the present ones */
	double **fresh_magnitude;
	RunResult *result;
	struct ScanRun *below;
} ScanRun;

static void *interp_alloc(Interp *s, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 2 / size)
		longjmp(*s->scratch->arena.oom, 1);
	return arena_alloc(&s->scratch->arena, n * size);
}

/* ---- the table of tensors ---- */

Known *known_find(Interp *s, const Node *t)
{
	return node_map_get(&s->known, t);
}

Known *known_add(Interp *s, Slot slot)
{
	Known *k = interp_alloc(s, 1, sizeof *k);
	k->slot = slot;
	node_map_put(s->scratch, &s->known, slot.tensor, k);
	return k;
}

/* Where the values of t can be computed to. */
static Slot slot_wide(Interp *s, Node *t)
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

/* ---- planning loops ---- */

static void plan_variables(Interp *s, ScanRun *run, const Scan *scan)
{
	int nvar = scan->nslice + scan->nstate + scan->nconst;
	int noperand = scan_noperand(scan);
	run->operand = interp_alloc(s, (size_t)noperand + 1, sizeof *run->operand);
	run->var = interp_alloc(s, (size_t)nvar + 1, sizeof *run->var);
	for (int k = 0; k < noperand; k++)
		run->operand[k] = known_find(s, scan_operands(run->scan)[k]);
	for (int k = 0; k < nvar; k++) {
		bool state = k >= scan->nslice && k < scan->nslice + scan->nstate;
		Slot slot = run->operand[scan->has_length + k]->slot;
		slot.tensor = scan->var[k];
		run->var[k] = known_add(&run->body, state ? slot_wide(s, scan->var[k]) : slot);
	}
}

static int plan_states(Interp *s, ScanRun *run, const Scan *scan)
{
	size_t room = (size_t)scan->nstate + 1;
	run->next = interp_alloc(s, room, sizeof *run->next);
	run->fresh = interp_alloc(s, room, sizeof *run->fresh);
	run->fresh_magnitude = interp_alloc(s, room, sizeof *run->fresh_magnitude);
	for (int k = 0; k < scan->nstate; k++) {
		Slot slot = slot_wide(s, scan->next[k]);
		run->fresh[k] = (Cell *)slot.data;
		run->fresh_magnitude[k] = (double *)slot.magnitude;
		run->next[k] = plan_tensor(&run->body, scan->next[k]);
		if (!run->next[k])
			return s->err->code;
	}
	return 0;
}

static int run_new(Interp *s, Known *k)
{
	const Scan *scan = scan_of(k->slot.tensor);
	ScanRun *run = interp_alloc(s, 1, sizeof *run);
	*run = (ScanRun){.scan = k->slot.tensor, .below = s->run};
	run->body = (Interp){.scratch = s->scratch, .magnitudes = s->magnitudes, .err = s->err};
	s->run = k->run = run;
	plan_variables(s, run, scan);
	return plan_states(s, run, scan);
}

/* Makes k, a SCAN whose operands are planned, a result of the run of its loop: of one that exists,
 * or of a new one, which k then leads. 0 or an error in s->err. */
static int scan_plan(Interp *s, Known *k)
{
	ScanRun *run = s->run;
	while (run && !scan_same_run(run->scan, k->slot.tensor))
		run = run->below;
	if (!run && run_new(s, k))
		return s->err->code;
	run = run ? run : s->run;
	RunResult *r = interp_alloc(s, 1, sizeof *r);
	*r = (RunResult){k, plan_tensor(&run->body, k->slot.tensor->u.result->value), run->result};
	run->result = r;
	return r->value ? 0 : s->err->code;
}

/* ---- planning ---- */

Type stored_as(void *user, Node *t)
{
	Known *k = known_find(user, t);
	if (k)
		return k->slot.stored;
	return type_is_float((Type)t->type) ? RICCI_F64 : RICCI_I64;
}

void machine_new(Interp *s, const Program *p, Machine *m)
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
	s->plan = arena_grow(&s->scratch->arena, s->plan, s->nplan, &s->plan_room, sizeof *s->plan);
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

/* ---- running loops ---- */

static int run_length(Interp *s, const ScanRun *run, int64_t *length)
{
	const Scan *scan = scan_of(run->scan);
	Cell c = {.i = scan->bound};
	if (scan->has_length)
		slot_copy(&run->operand[0]->slot, 0, 1, &c, NULL);
	*length = c.i;
	return scan_length_check(scan, c.i, NULL, s->err);
}

/* States at their initial values, constants, stacks of zeros. */
static void run_begin(const ScanRun *run)
{
	const Scan *scan = scan_of(run->scan);
	for (int k = scan->nslice; k < scan->nslice + scan->nstate + scan->nconst; k++) {
		Slot *v = &run->var[k]->slot, *from = &run->operand[scan->has_length + k]->slot;
		if (k < scan->nslice + scan->nstate) {
			slot_copy(from, 0, tensor_size(v->tensor), (Cell *)v->data,
				  (double *)v->magnitude);
		} else {
			v->data = from->data;
			v->magnitude = from->magnitude;
		}
	}
	for (RunResult *r = run->result; r; r = r->next) {
		size_t n = (size_t)tensor_size(r->k->slot.tensor);
		memset((void *)r->k->slot.data, 0, n * sizeof(Cell));
		if (r->k->slot.magnitude)
			memset((void *)r->k->slot.magnitude, 0, n * sizeof(double));
	}
}

static void put_row(const RunResult *r, int64_t t)
{
	int64_t n = tensor_size(r->value->slot.tensor);
	double *g = (double *)r->k->slot.magnitude;
	slot_copy(&r->value->slot, 0, n, (Cell *)r->k->slot.data + t * n, g ? g + t * n : NULL);
}

static int run_step(ScanRun *run, int64_t t)
{
	const Scan *scan = scan_of(run->scan);
	for (int k = 0; k < scan->nslice; k++) {
		Slot *v = &run->var[k]->slot, *from = &run->operand[scan->has_length + k]->slot;
		size_t at = (size_t)(t * tensor_size(v->tensor));
		v->data = (const char *)from->data + at * type_size(v->stored);
		v->magnitude = from->magnitude ? from->magnitude + at : NULL;
	}
	int status = plan_run(&run->body);
	for (RunResult *r = run->result; r && !status; r = r->next)
		if (r->k->slot.tensor->u.result->final < 0)
			put_row(r, scan_row(r->k->slot.tensor->u.result, t));
	for (int k = 0; k < scan->nstate && !status; k++)
		slot_copy(&run->next[k]->slot, 0, tensor_size(scan->next[k]), run->fresh[k],
			  run->fresh_magnitude[k]);
	return status;
}

/* The next values become the states. */
static void run_advance(const ScanRun *run)
{
	const Scan *scan = scan_of(run->scan);
	for (int k = 0; k < scan->nstate; k++) {
		Slot *v = &run->var[scan->nslice + k]->slot;
		Cell *now = (Cell *)v->data;
		double *magnitude = (double *)v->magnitude;
		v->data = run->fresh[k];
		v->magnitude = run->fresh_magnitude[k];
		run->fresh[k] = now;
		run->fresh_magnitude[k] = magnitude;
	}
}

static int scan_run(Interp *s, ScanRun *run)
{
	const Scan *scan = scan_of(run->scan);
	int64_t length;
	int status = run_length(s, run, &length);
	if (status)
		return status;
	run_begin(run);
	for (int64_t i = 0; i < length && !status; i++) {
		int64_t t = scan->backwards ? length - 1 - i : i;
		run->body.random = random_step(s->random, scan->bound, t);
		status = run_step(run, t);
		run_advance(run);
	}
	for (RunResult *r = run->result; r && !status; r = r->next) {
		const ScanResult *result = r->k->slot.tensor->u.result;
		int state = result->final;
		if (result->ends)
			put_row(r, scan->backwards ? 0 : length);
		if (state >= 0)
			slot_copy(&run->var[scan->nslice + state]->slot, 0,
				  tensor_size(r->k->slot.tensor), (Cell *)r->k->slot.data,
				  (double *)r->k->slot.magnitude);
	}
	return status;
}

/* ---- running ---- */

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
