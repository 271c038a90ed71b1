/* lower_harness.h - runs every offered schedule of every equation of a program on a backend and
 * compares with the interpreter. For the tests of lowering. */
#ifndef LOWER_HARNESS_H
#define LOWER_HARNESS_H

#include "jit/lower.h"
#include "tests/check.h"
#include "tests/usual_device.h"

#include <stdlib.h>

#define HARNESS_MAX_OPERANDS 8
#define HARNESS_MOST	     12 /* of those that the library offers */
#define HARNESS_OFFERS	     20

typedef struct Case {
	const char *text, *operands; /* "A=3x4:f32 B=5" */
} Case;

#define HARNESS_MAX_OUTPUTS 8
/* A task with the data that it reads and what it must give. */
typedef struct Trial {
	const char *text;
	Task task;
	Ir *ir;
	void *in[64];
	int nout;
	Node *out[HARNESS_MAX_OUTPUTS];
	double *want[HARNESS_MAX_OUTPUTS], *magnitude[HARNESS_MAX_OUTPUTS];
	int noffer;
	Schedule offer[HARNESS_OFFERS];
	struct Trial *next;
} Trial;

static uint64_t harness_seed = 88172645463325252u;
static double harness_random(void)
{
	harness_seed ^= harness_seed << 13;
	harness_seed ^= harness_seed >> 7;
	harness_seed ^= harness_seed << 17;
	return (double)(harness_seed >> 11) * 0x1p-53;
}

/* Reads one operand's declaration; returns what follows it, or NULL at the end. */
static const char *harness_operand(Ir *ir, const char *s, Node **out)
{
	char name[32], type[8] = "f32";
	int64_t shape[RICCI_MAX_RANK];
	int rank = 0;
	s += strspn(s, " ");
	size_t n = strcspn(s, "=");
	if (!*s || n >= sizeof name)
		return NULL;
	memcpy(name, s, n);
	name[n] = 0;
	s += n + 1;
	while (*s >= '0' && *s <= '9') {
		char *end;
		shape[rank++] = strtoll(s, &end, 10);
		s = *end == 'x' ? end + 1 : end;
	}
	if (*s == ':') {
		n = strcspn(++s, " ");
		memcpy(type, s, n);
		type[n] = 0;
		s += n;
	}
	Type t = RICCI_F32;
	CHECK(type_parse(type, &t));
	*out = node_input(ir, name, t, rank, shape);
	return s;
}

/* What trials hold lives until harness_done. */
static Arena harness_memory;
static struct HarnessIr {
	Ir ir;
	struct HarnessIr *next;
} * harness_irs;

static void *harness_alloc(size_t n)
{
	return arena_alloc(&harness_memory, n);
}

/* 64-byte aligned. */
static void *harness_buffer(size_t n)
{
	uintptr_t p = (uintptr_t)harness_alloc(n + 127);
	return (void *)((p + 63) & ~(uintptr_t)63);
}

/* The end of a test program: its exit status. */
static int harness_done(void)
{
	for (struct HarnessIr *h = harness_irs; h; h = h->next)
		ir_free(&h->ir);
	arena_free(&harness_memory);
	return check_done();
}

/* Small integers for integer types (gathers stay inside), else about [-1, 1]. */
static void *harness_data(Node *t)
{
	int64_t n = tensor_size(t);
	char *p = harness_buffer(tensor_bytes(t));
	for (int64_t i = 0; i < n; i++) {
		double r = harness_random();
		if (type_is_float(t->type))
			type_store(t->type, p, (size_t)i, 2 * r - 1);
		else
			type_store_int(t->type, p, (size_t)i,
				       (int64_t)(r * (t->type == RICCI_BOOL ? 2 : 3)));
	}
	return p;
}

typedef struct Known {
	Node *node;
	void *data;
} Known;

/* Results are interpreted; not in tests that compare schedules or trees and run nothing. */
static bool harness_values = true;

/* Evaluates one stored member, which later subgraphs may read. */
static void harness_output(Trial *t, Node *comp, Known *known, int *nknown)
{
	Binding bind[64];
	Error err = {0};
	RandomState rs = {7, 3};
	t->out[t->nout] = comp;
	if (!harness_values) {
		t->nout++;
		return;
	}
	for (int k = 0; k < t->task.sub.ninput; k++)
		bind[k] = (Binding){t->task.sub.input[k], t->in[k]};
	size_t n = (size_t)tensor_size(comp);
	double *want = harness_alloc(n * 8), *magnitude = harness_alloc(n * 8);
	int code = interp_tensor(comp, t->task.sub.ninput, bind, rs, want,
				 type_is_float(comp->type) ? magnitude : NULL, &err);
	CHECK_REPORT(code == 0, "%s: interpreter: %s", t->text, err.text);
	void *data = harness_buffer(tensor_bytes(comp));
	for (size_t i = 0; i < n; i++) {
		if (type_is_float(comp->type))
			type_store(comp->type, data, i, want[i]);
		else
			type_store_int(comp->type, data, i, ((int64_t *)want)[i]);
	}
	known[(*nknown)++] = (Known){comp, data};
	t->want[t->nout] = want;
	t->magnitude[t->nout++] = magnitude;
}

static bool harness_grid; /* the trials are for a backend whose parts are threads of a grid */

static const char *harness_backend = "nvrtc"; /* which, of a grid */

static const Target *harness_target(void)
{
	return backend_target(harness_grid ? backend_find(harness_backend) : NULL);
}

/* All direct nests that there are for the task. */
static int harness_variants(Ir *ir, const Task *t, Schedule *all)
{
	IR_ENTER(ir, 0);
	Problem *p = t->sub.rows ? NULL : problem_new(tree_new(ir), &t->sub, NULL);
	RowOffer r;
	double price;
	bool rough;
	int n = 0;
	if (!harness_grid &&
	    stages_offer(ir, &t->sub, target_host(), INFINITY, &all[0], &price, &rough))
		n++;
	if (t->sub.rows && rows_offer(ir, &t->sub, target_host(), false, &r))
		for (int v = 0; v < NEST_OFFERS; v++)
			rows_variant(ir, &r, v, &all[n++]);
	else if (p)
		for (int v = 0; v < NEST_OFFERS; v++)
			nest_offer(p, target_host(), v, &all[n++]);
	IR_LEAVE(ir);
	return n;
}

/* Adds those that are not offered because they cost too much: they must be right, too. */
static void harness_nests(Trial *t)
{
	Ir ir;
	Schedule all[NEST_OFFERS + 1];
	ir_init(&ir);
	int n = harness_variants(&ir, &t->task, all);
	ir_free(&ir);
	for (int k = 0; k < n && t->noffer < HARNESS_OFFERS; k++) {
		t->offer[t->noffer] = all[k];
		t->noffer += schedule_is_new(t->offer, t->noffer);
	}
}

/* The trial of one subgraph, whose inputs are known already. */
static Trial *harness_trial(Ir *ir, const Subgraph *sub, const char *text, Known *known,
			    int *nknown)
{
	Trial *t = harness_alloc(sizeof *t);
	t->text = text;
	t->ir = ir;
	t->task.sub = *sub;
	if (sub->rows)
		subgraph_loops(ir, &t->task.sub);
	for (int k = 0; k < sub->ninput; k++)
		for (int j = 0; j < *nknown; j++)
			if (known[j].node == sub->input[k])
				t->in[k] = known[j].data;
	for (int m = 0; m < sub->nmember; m++)
		if (sub->stored[m])
			harness_output(t, sub->member[m], known, nknown);
	t->noffer = schedule_offers(&t->task, harness_target(), HARNESS_MOST, t->offer);
	CHECK(t->noffer > 0);
	if (harness_grid) { /* the best, and the last: there a kernel takes a process to compile */
		enum { FIRST = 3 };
		if (t->noffer > FIRST + 1) {
			t->offer[FIRST] = t->offer[t->noffer - 1];
			t->noffer = FIRST + 1;
		}
		return t;
	}
	const ScheduleStep *first = &t->offer[0].step[0];
	bool panels =
		t->offer[0].n && (first->kind == STEP_TENSORISE || first->kind == STEP_LIBRARY);
	if (t->noffer < HARNESS_OFFERS && !panels) { /* small results are streamed here only */
		Schedule *s = &t->offer[t->noffer++];
		*s = t->offer[0];
		schedule_insert(s, t->task.sub.rows ? 1 : s->n, STEP_STREAM, 0, 1);
	}
	harness_nests(t);
	return t;
}

static Subgraph *harness_single(Ir *ir, Node *comp)
{
	Subgraph *s = harness_alloc(sizeof *s);
	s->nmember = 1;
	s->member = harness_alloc(sizeof(Node *));
	s->member[0] = comp;
	s->stored = harness_alloc(sizeof(bool));
	s->stored[0] = true;
	s->ninput = comp_reads(ir, comp, &s->input);
	return s;
}

/* A trial for each equation, or (fused) for each subgraph of the partition. */
static Trial *harness_build(Ir *ir, const Case *c, bool fused, Trial *list)
{
	Node *operand[HARNESS_MAX_OPERANDS], *result[8], **order;
	Known known[128];
	int n = 0, nresult = 8, nknown = 0, nsub = 0;
	Subgraph *subs;
	const char *s = c->operands;
	while ((s = harness_operand(ir, s, &operand[n])))
		n++;
	if (notation_elaborate(ir, c->text, n, operand, &nresult, result, 8) ||
	    (fused && fuse_partition(ir, nresult, result, &usual_device, &nsub, &subs))) {
		CHECK_REPORT(false, "%s: %s", c->text, ir->err.text);
		return list;
	}
	int count = graph_order(ir, nresult, result, &order);
	for (int k = 0; k < count; k++) {
		if (order[k]->op == OP_INPUT) {
			known[nknown++] = (Known){order[k], harness_data(order[k])};
		} else if (!fused) {
			Trial *t = harness_trial(ir, harness_single(ir, order[k]), c->text, known,
						 &nknown);
			t->next = list;
			list = t;
		}
	}
	for (int k = 0; k < nsub; k++) {
		Trial *t = harness_trial(ir, &subs[k], c->text, known, &nknown);
		t->next = list;
		list = t;
	}
	return list;
}

__attribute__((unused)) static Trial *harness_trials(const Case *c, bool fused, Trial *list)
{
	struct HarnessIr *h = harness_alloc(sizeof *h);
	ir_init(&h->ir);
	h->next = harness_irs;
	harness_irs = h;
	IR_ENTER(&h->ir, NULL);
	Trial *all = harness_build(&h->ir, c, fused, list);
	IR_LEAVE(&h->ir);
	return all;
}

/* All equations in one subgraph; only the results are stored. */
static Subgraph harness_whole(Ir *ir, const Case *c)
{
	Node *operand[HARNESS_MAX_OPERANDS], *result[8], **order;
	int n = 0, nresult = 8;
	Subgraph s = {0};
	const char *text = c->operands;
	while ((text = harness_operand(ir, text, &operand[n])))
		n++;
	CHECK_INT(notation_elaborate(ir, c->text, n, operand, &nresult, result, 8), 0);
	int count = graph_order(ir, nresult, result, &order);
	s.member = harness_alloc((size_t)count * sizeof(Node *));
	s.input = harness_alloc((size_t)count * sizeof(Node *));
	s.stored = harness_alloc((size_t)count);
	for (int k = 0; k < count; k++) {
		if (order[k]->op == OP_INPUT) {
			s.input[s.ninput++] = order[k];
			continue;
		}
		for (int r = 0; r < nresult; r++)
			s.stored[s.nmember] |= result[r] == order[k];
		s.member[s.nmember++] = order[k];
	}
	CHECK(subgraph_rows(ir, &s) && s.rows > 0);
	return s;
}

/* The trial of one kernel that runs row by row. */
__attribute__((unused)) static Trial *harness_rows(const Case *c)
{
	struct HarnessIr *h = harness_alloc(sizeof *h);
	Known known[64];
	int nknown = 0;
	ir_init(&h->ir);
	h->next = harness_irs;
	harness_irs = h;
	IR_ENTER(&h->ir, NULL);
	Subgraph s = harness_whole(&h->ir, c);
	for (int k = 0; k < s.ninput; k++)
		known[nknown++] = (Known){s.input[k], harness_data(s.input[k])};
	Trial *t = harness_trial(&h->ir, &s, c->text, known, &nknown);
	IR_LEAVE(&h->ir);
	return t;
}

static double harness_step(Type t)
{
	return t == RICCI_F64	 ? 0x1p-50
	       : t == RICCI_F32	 ? 0x1p-21
	       : t == RICCI_BF16 ? 0x1p-7
				 : 0x1p-9;
}

/* Compares output number o; false after the first difference, which is reported. */
static bool harness_compare(const Trial *t, const Kernel *k, const char *sched, int o,
			    const unsigned char *got_data)
{
	Node *c = t->out[o];
	size_t n = (size_t)tensor_size(c);
	for (size_t i = 0; i < n; i++) {
		bool good;
		double got, want = t->want[o][i];
		if (type_is_float(c->type)) {
			double tol =
				harness_step(c->type) *
					(8 + sqrt(comp_points(t->task.sub.member[0]) / (double)n)) *
					(t->magnitude[o][i] + fabs(want)) +
				1e-30;
			got = type_load(c->type, got_data, i);
			good = got == want || (isnan(got) && isnan(want)) ||
			       fabs(got - want) <= tol;
		} else {
			int64_t x = type_load_int(c->type, got_data, i);
			good = x == ((int64_t *)t->want[o])[i];
			got = (double)x;
			want = (double)((int64_t *)t->want[o])[i];
		}
		if (!good) {
			CHECK_REPORT(false,
				     "%s [%s] %s: output %d, element %zu is %.9g, should be %.9g",
				     t->text, sched, k->backend->name, o, i, got, want);
			return false;
		}
	}
	check_passed++;
	return true;
}

static void harness_run(const Trial *t, const Kernel *k)
{
	void *scratch =
		k->shape.scratch ? aligned_alloc(64, (k->shape.scratch + 63) & ~(size_t)63) : NULL;
	void *shared =
		k->shape.shared ? aligned_alloc(64, (k->shape.shared + 63) & ~(size_t)63) : NULL;
	void *buf[64 + HARNESS_MAX_OUTPUTS];
	unsigned char *out[HARNESS_MAX_OUTPUTS];
	Error err = {0};
	KernelEnv env = {.seed = 7,
			 .step = 3,
			 .scratch = scratch,
			 .shared = shared,
			 .kernel = k,
			 .err = &err};
	Text sched = {0};
	memcpy(buf, t->in, sizeof(void *) * (size_t)t->task.sub.ninput);
	for (int o = 0; o < t->nout; o++) { /* 64 bytes before and after that must stay */
		size_t room = (tensor_bytes(t->out[o]) + 64 + 64 + 63) & ~(size_t)63;
		out[o] = aligned_alloc(64, room);
		memset(out[o], 0x7f, room);
		buf[t->task.sub.ninput + o] = out[o] + 64;
	}
	schedule_print(&sched, &k->schedule);
	int64_t begin, end;
	for (int phase = 0; kernel_phase(k, phase, &begin, &end); phase++) {
		int64_t third = begin + (end - begin) / 3;
		k->run(buf, &env, third, end);
		k->run(buf, &env, begin, third);
	}
	CHECK_REPORT(!err.code, "%s [%s] %s: %s", t->text, sched.s, k->backend->name, err.text);
	for (int o = 0; o < t->nout; o++) {
		bool fence = true;
		for (size_t i = 0; i < 64; i++)
			fence &= out[o][i] == 0x7f &&
				 out[o][64 + tensor_bytes(t->out[o]) + i] == 0x7f;
		CHECK_REPORT(fence, "%s [%s] %s: writes outside its output", t->text, sched.s,
			     k->backend->name);
		harness_compare(t, k, sched.s, o, out[o] + 64);
	}
	for (int o = 0; o < t->nout; o++)
		free(out[o]);
	text_free(&sched);
	free(scratch);
	free(shared);
}

static int harness_prefetch; /* kernels that ask for memory early */

/* Rows ask for what the second cache doesn't hold: here it holds little. */
static Kernel *harness_lower(const Trial *t, int offer, const Backend *b)
{
	Error err = {0};
	Target small = *target_host();
	small.l2 = 1 << 12;
	const Target *target = t->task.sub.rows && !harness_grid ? &small : harness_target();
	Kernel *made = kernel_lower(&t->task, &t->offer[offer], b, target, &err);
	CHECK_REPORT(made, "%s: %s", t->text, err.text);
	harness_prefetch += made && made->source && strstr(made->source, "__builtin_prefetch");
	return made;
}

/* Has another schedule of the trial given the same text? On a grid many do. */
static bool harness_repeats(const Kernel *made, const Trial *t, int n, Kernel *const *kernel,
			    Trial *const *of)
{
	bool repeats = false;
	for (int k = 0; k < n && harness_grid; k++)
		repeats |= of[k] == t && !strcmp(kernel[k]->source, made->source);
	return repeats;
}

/* Lowers all offers of all trials, compiles them in batches, runs and compares. */
__attribute__((unused)) static void harness_check(Trial *list, const Backend *b, int batch)
{
	Kernel *kernel[256];
	Trial *of[256];
	int n = 0;
	char why[256];
	if (!b->available(why, sizeof why)) {
		CHECK_SKIP(why);
		return;
	}
	for (Trial *t = list; t; t = t->next) {
		for (int k = 0; k < t->noffer; k++) {
			Kernel *made = harness_lower(t, k, b);
			if (made && harness_repeats(made, t, n, kernel, of)) {
				kernel_unref(made);
			} else if (made) {
				of[n] = t;
				kernel[n++] = made;
			}
		}
		if (n == 0 || (t->next && n < batch))
			continue;
		Error err = {0};
		int code = b->compile(b, n, kernel, NULL, &err);
		CHECK_REPORT(code == 0, "%s", err.text);
		for (int k = 0; k < n; k++) {
			if (code == 0)
				harness_run(of[k], kernel[k]);
			kernel_unref(kernel[k]);
		}
		n = 0;
	}
}

#endif
