/* interp_scan.c - the interpreter runs loops. Input: SCAN nodes whose operands are known. Output:
 * their values. The body is a plan over the variables, run once a step. All results of one run come
 * of one loop; the first of them in the plan around it leads: it runs the loop for all. */
#include "core/interp.h"

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

/* ---- planning ---- */

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

int scan_plan(Interp *s, Known *k)
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

/* ---- running ---- */

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

int scan_run(Interp *s, ScanRun *run)
{
	const Scan *scan = scan_of(run->scan);
	int64_t length;
	int status = run_length(s, run, &length);
	if (status)
		return status;
	run_begin(run);
	for (int64_t i = 0; i < length && !status; i++) {
		int64_t t = scan->backwards ? length - 1 - i : i;
		run->body.random = random_step(s->random, scan, t);
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
