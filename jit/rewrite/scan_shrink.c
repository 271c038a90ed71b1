/* scan_shrink.c - loops lose what nobody needs. Input: the roots of a graph. Output: roots of the
 * same values. Reverse mode and users make loops of everything that may be asked for; which states,
 * slices and constants that takes is known when the roots are. Bodies are left as they are: they
 * are graphs for another call. Invariant: results of one run stay results of one run.
 */
#include "jit/rewrite/rewrite.h"

typedef struct Shrink {
	Ir *ir;
	const Scan *scan;
	int nresult;
	Node **result; /* those of the run that the graph needs */
	bool *needed;  /* states */
	bool *ends;    /* states of which the graph needs what is between the steps */
	int *number;   /* of a needed state in the new loop, or -1: it became a constant */
} Shrink;

/* Marks the states that `root` reads; true when there is a new one. */
static bool mark_states(Shrink *s, Node *root)
{
	Node **order;
	int n = graph_order(s->ir, 1, &root, &order);
	bool more = false;
	for (int k = 0; k < s->scan->nstate; k++)
		for (int i = 0; i < n && !s->needed[k]; i++)
			if (order[i] == s->scan->var[s->scan->nslice + k])
				more = s->needed[k] = true;
	return more;
}

static void find_needed(Shrink *s)
{
	for (int k = 0; k < s->nresult; k++) {
		const ScanResult *r = s->result[k]->u.result;
		int ends = scan_ends_of(r);
		if (ends >= 0)
			s->needed[ends] = s->ends[ends] = true;
		else if (r->final >= 0)
			s->needed[r->final] = true;
		else
			mark_states(s, r->value);
	}
	for (bool more = true; more;) {
		more = false;
		for (int k = 0; k < s->scan->nstate; k++)
			more |= s->needed[k] && mark_states(s, s->scan->next[k]);
	}
}

/* The needed parts as a loop over operand[]: slices, states that change, constants. */
static ScanCall close_needed(Shrink *s, Node *const *operand)
{
	const Scan *scan = s->scan;
	Arena *a = &s->ir->arena;
	int nvar = scan->nslice + scan->nstate + scan->nconst, n = 0, nstacked = 0;
	Node **given = arena_alloc(a, sizeof *given * ((size_t)nvar + 2));
	Node **stacked = arena_alloc(a, sizeof *stacked * ((size_t)s->nresult + 1));
	Scan spec = *scan;
	spec.nstate = spec.nconst = 0;
	spec.var = arena_alloc(a, sizeof *spec.var * ((size_t)nvar + 1));
	spec.next = arena_alloc(a, sizeof *spec.next * ((size_t)scan->nstate + 1));
	if (scan->has_length)
		given[0] = *operand++;
	for (int pass = 0; pass < 3; pass++) /* slices, states, constants */
		for (int k = 0; k < nvar; k++) {
			int state = k - scan->nslice;
			bool is_state = state >= 0 && state < scan->nstate;
			bool moves =
				is_state && (s->ends[state] || scan->next[state] != scan->var[k]);
			int kind = state < 0 ? 0 : moves ? 1 : 2;
			if (kind != pass || (is_state && !s->needed[state]))
				continue;
			if (moves) {
				s->number[state] = spec.nstate;
				spec.next[spec.nstate++] = scan->next[state];
			}
			spec.nconst += kind == 2;
			given[scan->has_length + n] = operand[k];
			spec.var[n++] = scan->var[k];
		}
	for (int k = 0; k < s->nresult; k++)
		if (scan_is_stack(s->result[k]->u.result))
			stacked[nstacked++] = s->result[k]->u.result->value;
	return scan_close(s->ir, &spec, given, nstacked, stacked, true);
}

/* Puts the new results of the run of order[at] into map, which has its operands. */
static bool shrink_run(Ir *ir, int n, Node *const *order, int at, NodeMap *map)
{
	ScanRun run = scan_run(ir, n, order, at, map);
	const Scan *scan = run.scan;
	Arena *a = &ir->arena;
	size_t states = (size_t)scan->nstate + 1;
	Shrink s = {.ir = ir, .scan = scan, .nresult = run.nresult, .result = run.result};
	s.needed = arena_alloc(a, states);
	s.ends = arena_alloc(a, states);
	s.number = arena_alloc(a, sizeof *s.number * states);
	for (int k = 0; k < scan->nstate; k++)
		s.number[k] = -1;
	find_needed(&s);
	ScanCall call = close_needed(&s, run.operand);
	for (int k = 0, stacked = 0; k < s.nresult; k++) {
		const ScanResult *r = s.result[k]->u.result;
		Node *out = r->ends	   ? scan_ends(ir, &call, s.number[scan_ends_of(r)])
			    : r->final < 0 ? scan_stack(ir, &call, call.result[stacked++])
			    : s.number[r->final] >= 0
				    ? scan_final(ir, &call, s.number[r->final])
				    : run.operand[scan->has_length + scan->nslice + r->final];
		node_map_put(ir, map, s.result[k], out);
	}
	return true;
}

void scans_shrink(Ir *ir, int nroot, Node **roots)
{
	scans_each(ir, nroot, roots, shrink_run);
}
