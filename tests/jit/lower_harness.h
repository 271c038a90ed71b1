/* lower_harness.h - runs every offered schedule of every equation of a program on a backend and
 * compares with the interpreter. For the tests of lowering. */
#ifndef LOWER_HARNESS_H
#define LOWER_HARNESS_H

#include "jit/internal.h"
#include "tests/check.h"

#include <stdlib.h>

#define HARNESS_MAX_OPERANDS 8
#define HARNESS_OFFERS	     12

typedef struct Case {
	const char *text, *operands; /* "A=3x4:f32 B=5" */
} Case;

/* A task of one equation with the data that it reads and what it must give. */
typedef struct Trial {
	const char *text;
	Task task;
	Ir *ir;
	void *in[64];
	double *want, *magnitude;
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

/* Small integers for integer types (gathers stay inside), else about [-1, 1]. */
static void *harness_data(Node *t)
{
	int64_t n = tensor_size(t);
	char *p = aligned_alloc(64, (tensor_bytes(t) + 127) & ~(size_t)63);
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

/* The trial of one equation: its inputs are known already. */
static Trial *harness_trial(Ir *ir, Node *comp, const char *text, Known *known, int *nknown)
{
	Trial *t = calloc(1, sizeof *t);
	Binding bind[64];
	Error err = {0};
	RandomState rs = {7, 3};
	t->text = text;
	t->ir = ir;
	t->task.sub.nmember = 1;
	t->task.sub.member = malloc(sizeof(Node *));
	t->task.sub.member[0] = comp;
	t->task.sub.stored = malloc(sizeof(bool));
	t->task.sub.stored[0] = true;
	t->task.sub.ninput = comp_reads(ir, comp, &t->task.sub.input);
	for (int k = 0; k < t->task.sub.ninput; k++)
		for (int j = 0; j < *nknown; j++)
			if (known[j].node == t->task.sub.input[k])
				t->in[k] = known[j].data;
	for (int k = 0; k < t->task.sub.ninput; k++)
		bind[k] = (Binding){t->task.sub.input[k], t->in[k]};
	size_t n = (size_t)tensor_size(comp);
	t->want = malloc(n * 8);
	t->magnitude = calloc(n, 8);
	int code = interp_tensor(ir, comp, t->task.sub.ninput, bind, rs, t->want,
				 type_is_float(comp->type) ? t->magnitude : NULL, &err);
	CHECK_REPORT(code == 0, "%s: interpreter: %s", text, err.text);
	void *data = aligned_alloc(64, (tensor_bytes(comp) + 127) & ~(size_t)63);
	for (size_t i = 0; i < n; i++) {
		if (type_is_float(comp->type))
			type_store(comp->type, data, i, t->want[i]);
		else
			type_store_int(comp->type, data, i, ((int64_t *)t->want)[i]);
	}
	known[(*nknown)++] = (Known){comp, data};
	t->noffer = schedule_offers(&t->task, target_host(), HARNESS_OFFERS, t->offer);
	CHECK(t->noffer > 0);
	return t;
}

static Trial *harness_trials(const Case *c, Trial *list)
{
	Ir *ir = calloc(1, sizeof *ir);
	Node *operand[HARNESS_MAX_OPERANDS], *result[8], **order;
	Known known[64];
	int n = 0, nresult = 0, nknown = 0;
	ir_init(ir);
	IR_ENTER(ir, list);
	const char *s = c->operands;
	while ((s = harness_operand(ir, s, &operand[n])))
		n++;
	if (notation_elaborate(ir, c->text, n, operand, &nresult, result, 8)) {
		CHECK_REPORT(false, "%s: %s", c->text, ir->err.text);
		return list;
	}
	int count = graph_order(ir, nresult, result, &order);
	for (int k = 0; k < count; k++) {
		if (order[k]->op == OP_INPUT) {
			known[nknown++] = (Known){order[k], harness_data(order[k])};
			continue;
		}
		Trial *t = harness_trial(ir, order[k], c->text, known, &nknown);
		t->next = list;
		list = t;
	}
	IR_LEAVE(ir);
	return list;
}

static double harness_step(Type t)
{
	return t == RICCI_F64	 ? 0x1p-50
	       : t == RICCI_F32	 ? 0x1p-21
	       : t == RICCI_BF16 ? 0x1p-7
				 : 0x1p-9;
}

static void harness_run(const Trial *t, const Kernel *k)
{
	Node *c = t->task.sub.member[0];
	size_t bytes = tensor_bytes(c), n = (size_t)tensor_size(c), room = bytes + 256;
	unsigned char *out = aligned_alloc(64, (room + 63) & ~(size_t)63);
	memset(out, 0x7f, room);
	void *scratch = k->scratch ? aligned_alloc(64, (k->scratch + 63) & ~(size_t)63) : NULL;
	void *buf[65];
	memcpy(buf, t->in, sizeof(void *) * (size_t)t->task.sub.ninput);
	buf[t->task.sub.ninput] = out + 64;
	Error err = {0};
	KernelEnv env = {.seed = 7, .step = 3, .scratch = scratch, .kernel = k, .err = &err};
	Text sched = {0};
	schedule_print(&sched, &k->schedule);
	int64_t half = k->parts / 3;
	k->run(buf, &env, half, k->parts);
	k->run(buf, &env, 0, half);
	bool fence = true, good = true;
	for (size_t i = 0; i < 64; i++)
		fence &= out[i] == 0x7f && out[64 + bytes + i] == 0x7f;
	CHECK_REPORT(fence, "%s [%s] %s: writes outside its output", t->text, sched.s,
		     k->backend->name);
	for (size_t i = 0; i < n && good; i++) {
		if (!type_is_float(c->type)) {
			good = type_load_int(c->type, out + 64, i) == ((int64_t *)t->want)[i];
			if (!good)
				CHECK_REPORT(good,
					     "%s [%s] %s: element %zu is %lld, should be %lld",
					     t->text, sched.s, k->backend->name, i,
					     (long long)type_load_int(c->type, out + 64, i),
					     (long long)((int64_t *)t->want)[i]);
			continue;
		}
		double got = type_load(c->type, out + 64, i), want = t->want[i];
		double tol = harness_step(c->type) * (4 + sqrt(comp_points(c) / (double)n)) *
				     (t->magnitude[i] + fabs(want)) +
			     1e-30;
		good = got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tol;
		if (!good)
			CHECK_REPORT(good, "%s [%s] %s: element %zu is %.9g, should be %.9g",
				     t->text, sched.s, k->backend->name, i, got, want);
	}
	if (good)
		check_passed++;
	text_free(&sched);
	free(out);
	free(scratch);
}

/* Lowers all offers of all trials, compiles them in batches, runs and compares. */
static void harness_check(Trial *list, const Backend *b, int batch)
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
			Error err = {0};
			Kernel *made = kernel_lower(&t->task, &t->offer[k], b, target_host(), &err);
			CHECK_REPORT(made, "%s: %s", t->text, err.text);
			if (made) {
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
