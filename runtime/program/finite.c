/* finite.c - which kernel makes the first NaN or infinity of a step.
 *
 * Input: a program's launches, one by one. Output: an error for the first result that holds a NaN or
 * an infinity although all that the kernel read was finite, constants of its equations included (an
 * attention mask's -infinity makes infinities rightly). A NaN that comes otherwise, of infinities or
 * from a fed NaN, is remembered, and becomes the error when it reaches an output or a state of the
 * step; so is the first of all in a step that leaves out updates which overflow. Invariant: states are not written in place meanwhile, so a step that ends with an error
 * leaves them as they were.
 */
#include "runtime/program/program.h"
#include <math.h>
#include <string.h>

typedef struct Range { /* of a tensor's elements; least > most: none is finite */
	double least, most;
	int64_t nan, infinity; /* the first one; -1: none */
} Range;

struct Finite {
	Error suspect;
	bool may_overflow; /* as of the program */
	Device *device;
	void *copy; /* of what is looked at, where the host can't */
	size_t copy_bytes;
	int room;
	Range *input; /* of the kernel that runs: those that its results overwrite */
	bool *known;
};

/* The bits of an exponent that infinities and NaNs have; 0: no float. */
static uint64_t exponent_bits(Type t)
{
	switch (t) {
	case RICCI_F64:
		return 0x7ff0000000000000u;
	case RICCI_F32:
		return 0x7f800000u;
	case RICCI_BF16:
		return 0x7f80u;
	case RICCI_F16:
		return 0x7c00u;
	default:
		return 0;
	}
}

#define SCAN(T)                                                                                    \
	for (int64_t i = 0; i < n; i++)                                                            \
		odd |= (((const T *)data)[i] & (T)e) == (T)e;

static bool all_finite(Type t, const void *data, int64_t n)
{
	uint64_t e = exponent_bits(t);
	bool odd = false;

	if (!e)
		return true;
	if (type_size(t) == 8)
		SCAN(uint64_t)
	else if (type_size(t) == 4)
		SCAN(uint32_t)
	else
		SCAN(uint16_t)
	return !odd;
}

static Range range_of(Type t, const void *data, int64_t n)
{
	Range r = {INFINITY, -INFINITY, -1, -1};

	for (int64_t i = 0; i < n; i++) {
		double v = type_is_float(t)  ? type_load(t, data, (size_t)i)
			   : t == RICCI_BOOL ? ((const uint8_t *)data)[i]
					     : (double)type_load_int(t, data, (size_t)i);

		if (isnan(v))
			r.nan = r.nan < 0 ? i : r.nan;
		else if (isinf(v))
			r.infinity = r.infinity < 0 ? i : r.infinity;
		else
			r = (Range){fmin(r.least, v), fmax(r.most, v), r.nan, r.infinity};
	}
	return r;
}

static Range node_range(const Node *n, const void *data)
{
	return range_of((Type)n->type, data, tensor_size(n));
}

static bool node_finite(const Node *n, const void *data)
{
	return all_finite((Type)n->type, data, tensor_size(n));
}

/* n's data where the host can read them, until the next call; NULL on error. */
static const void *on_host(Finite *f, const Node *n, const void *data, Error *err)
{
	size_t bytes = tensor_bytes(n);

	if (!f->device->kind->launch)
		return data;
	if (f->copy_bytes < bytes) {
		mem_free(f->copy);
		f->copy = mem_alloc(bytes);
		f->copy_bytes = f->copy ? bytes : 0;
	}
	if (!f->copy) {
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	return device_copy(f->device, COPY_OUT, f->copy, data, bytes, err) ? NULL : f->copy;
}

/* ---- switching it on ---- */
static void in_place(Program *p, bool on)
{
	for (int i = 0; i < p->ncell; i++)
		if (p->cell[i].kind == CELL_NEXT && p->cell[i].could)
			p->cell[i].in_place = on;
}

static void program_share(Program *p, Finite *f)
{
	p->finite = f;
	for (int i = 0; i < p->nrun; i++)
		if (p->run[i].loop)
			program_share(loop_program(p->run[i].loop), f);
}

int program_check_finite(Program *p, bool on, Error *err)
{
	Finite *f = p->finite;

	if (p->inner || on == (f != NULL))
		return 0;
	if (on && !(f = mem_zalloc(sizeof *f)))
		return error_set(err, RICCI_ENOMEM, "out of memory");
	if (on) {
		f->device = p->device;
		f->may_overflow = p->may_overflow;
	}
	program_share(p, on ? f : NULL);
	in_place(p, !on);
	if (!on) {
		mem_free(f->input);
		mem_free(f->known);
		mem_free(f->copy);
		mem_free(f);
	}
	return 0;
}

/* ---- messages ---- */
static void range_print(Text *out, const char *name, Range r)
{
	text_add(out, "\n%s is ", name);
	if (r.least <= r.most)
		text_add(out, "%.6g..%.6g", r.least, r.most);
	if (r.infinity >= 0)
		text_add(out, r.least <= r.most ? " and infinities" : "infinite");
	if (r.nan >= 0)
		text_add(out, r.least <= r.most || r.infinity >= 0 ? " and NaN" : "NaN");
}

/* Of loops around p, the outermost first. */
static void iterations_print(Text *out, const Program *p)
{
	if (!p->inner)
		return;
	iterations_print(out, p->outer);
	text_add(out, ", iteration %lld", (long long)p->iteration);
}

/* A result of a launch: which, and what it holds. */
typedef struct Found {
	const Program *p;
	const Run *r;
	int buffer;
	Range range;
	const Range *input;
	bool clean; /* all operands are finite */
} Found;

static const Node *run_node(const Program *p, const Run *r, int buffer)
{
	return p->cell[r->cell[buffer]].node;
}

static void found_print(Text *out, Naming *m, const Found *f, RandomState rs)
{
	const Node *n = run_node(f->p, f->r, f->buffer);
	const char *equations;
	char place[200];

	text_add(out, "step %llu", (unsigned long long)rs.step);
	iterations_print(out, f->p);
	/* Names of T1, T2 .. are given in the order of the equations. */
	equations = run_equations(m, f->p, f->r);
	element_name(n, f->range.nan >= 0 ? f->range.nan : f->range.infinity, place, sizeof place);
	text_add(out, ": '%s' becomes %s at [%s]", node_name(m, f->p, n),
		 f->range.nan >= 0 ? "NaN" : "infinite", place);
	text_add(out, ", though all that it is computed from %s\n%s",
		 f->clean ? "is finite" : "holds no NaN, only infinities",
		 equations ? equations : "");
	for (int i = 0; i < f->r->ninput; i++)
		range_print(out, node_name(m, f->p, run_node(f->p, f->r, i)), f->input[i]);
}

static int found_error(const Found *f, RandomState rs, Error *err)
{
	Arena arena = {0};
	Naming m = {.arena = &arena};
	Text out = {0};
	Text *volatile text = &out;
	jmp_buf oom;

	if (setjmp(oom)) {
		arena_free(&arena);
		text_free(text);
		return error_set(err, RICCI_ENOMEM, "out of memory for a message");
	}
	arena.oom = &oom;
	found_print(text, &m, f, rs);
	arena_free(&arena);
	if (out.failed || !out.s)
		error_set(err, RICCI_ENOMEM, "out of memory for a message");
	else
		error_set(err, RICCI_EVALUE, "%s", out.s);
	text_free(&out);
	return err->code;
}

/* ---- launches ---- */
static bool overwritten(const Run *r, int input)
{
	for (int o = r->ninput; o < r->nbuf; o++)
		if (r->buf[o] == r->buf[input])
			return true;
	return false;
}

int finite_before(Finite *f, const Run *r, Error *err)
{
	if (r->ninput > f->room) {
		size_t n = (size_t)r->ninput;

		mem_free(f->input);
		mem_free(f->known);
		f->input = mem_alloc(n * sizeof *f->input);
		f->known = mem_alloc(n * sizeof *f->known);
		f->room = f->input && f->known ? r->ninput : 0;
		if (!f->room)
			return error_set(err, RICCI_ENOMEM, "out of memory");
	}
	for (int i = 0; i < r->ninput; i++) {
		f->known[i] = overwritten(r, i);
		if (f->known[i]) {
			const void *data = on_host(f, r->sub->input[i], r->buf[i], err);

			if (!data)
				return err->code;
			f->input[i] = node_range(r->sub->input[i], data);
		}
	}
	return 0;
}

static void see_constant(void *user, Node *n)
{
	if (n->op == OP_CONST && type_is_float(n->type) && !isfinite(n->u.f))
		*(bool *)user = true;
}

/* Has an equation of the kernel an infinite constant? */
static bool run_infinite(const Run *r, Error *err)
{
	TaskCopy c;
	bool found = false;

	if (task_copy(r->entry->task, &c, err))
		return false;
	for (int k = 0; k < r->sub->nmember; k++) {
		IR_ENTER(&c.ir,
			 (task_copy_free(&c), error_set(err, RICCI_ENOMEM, "out of memory")));
		node_walk(&c.ir, comp_body(c.member[k]), see_constant, &found);
		IR_LEAVE(&c.ir);
	}
	task_copy_free(&c);
	return found;
}

static int found_check(const Program *p, Found *f, RandomState rs, Error *err)
{
	Finite *finite = p->finite;
	Error own = {0};
	bool nan = false, infinite = run_infinite(f->r, &own);

	if (own.code)
		return error_set(err, own.code, "%s", own.text);
	for (int i = 0; i < f->r->ninput; i++) {
		if (!finite->known[i]) {
			const Node *x = f->r->sub->input[i];
			const void *data = on_host(finite, x, f->r->buf[i], err);

			if (!data)
				return err->code;
			finite->input[i] = node_range(x, data);
		}
		nan = nan || finite->input[i].nan >= 0;
		infinite = infinite || finite->input[i].infinity >= 0;
	}
	f->input = finite->input;
	f->clean = !nan && !infinite;
	if (f->clean && !finite->may_overflow)
		return found_error(f, rs, err);
	if ((f->clean || (!nan && f->range.nan >= 0)) && !finite->suspect.code &&
	    found_error(f, rs, &finite->suspect) == RICCI_ENOMEM)
		return error_set(err, RICCI_ENOMEM, "%s", finite->suspect.text);
	return 0;
}

int finite_after(const Program *p, const Run *r, RandomState rs, Error *err)
{
	int code = 0;

	for (int o = r->ninput; o < r->nbuf && !code; o++) {
		const Node *n = run_node(p, r, o);
		Found f = {.p = p, .r = r, .buffer = o};
		const void *data = on_host(p->finite, n, r->buf[o], err);

		if (!data)
			return err->code;
		if (node_finite(n, data))
			continue;
		f.range = node_range(n, data);
		code = found_check(p, &f, rs, err);
	}
	return code;
}

/* ---- steps ---- */
int finite_begin(Program *p, RandomState rs, Error *err)
{
	Error *e = &p->finite->suspect;

	error_clear(e);
	for (int i = 0; i < p->ncell && !e->code; i++) {
		const Cell *c = &p->cell[i];
		const void *data;
		Range r;

		if (c->kind != CELL_STATE)
			continue;
		if (!(data = on_host(p->finite, c->node, c->storage->data, err)))
			return err->code;
		if (node_finite(c->node, data))
			continue;
		r = node_range(c->node, data);
		if (r.nan >= 0) {
			char place[200];

			element_name(c->node, r.nan, place, sizeof place);
			error_set(e, RICCI_EVALUE, "step %llu: '%s' is NaN at [%s] before the step",
				  (unsigned long long)rs.step, c->node->u.s, place);
		}
	}
	return 0;
}

int finite_end(const Program *p, Error *err)
{
	const Error *e = &p->finite->suspect;

	for (int i = 0; i < p->nroot && e->code; i++) {
		const Cell *c = &p->cell[p->root[i]];
		const void *data = on_host(p->finite, c->node, cell_data(c), err);

		if (!data)
			return err->code;
		if (!node_finite(c->node, data) &&
		    (p->finite->may_overflow || node_range(c->node, data).nan >= 0))
			return error_set(err, e->code, "%s", e->text);
	}
	return 0;
}
