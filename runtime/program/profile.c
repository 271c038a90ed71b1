/* profile.c - where a step's time goes: a row for each kernel and each loop, with its equations.
 *
 * Input: a program whose launches were timed. Output: rows, those first that take most of a step.
 * Times are medians over launches of the kernels in use, first and trial launches left out. Names
 * of tensors are names.c's.
 * Invariant: a profile owns all that it points to, so it outlives its session.
 */
#include "runtime/program/program.h"
#include <stdlib.h>
#include <string.h>

/* ---- times ---- */
/* Which of them differs from one `stride` to the next: a kernel of a loop would else be seen in the same step
 * of it all the time. */
void times_add(Times *t, double seconds)
{
	if (!t->count)
		t->stride = 1;
	t->least = t->count && t->least < seconds ? t->least : seconds;
	if (t->count % t->stride == 0)
		t->at = (int64_t)((uint64_t)t->count * 0x9e3779b97f4a7c15u >> 32) % t->stride;
	if (t->count++ % t->stride != t->at)
		return;
	if (t->n == TIMES_KEPT) {
		t->n /= 2;
		t->stride *= 2;
		for (int i = 0; i < t->n; i++)
			t->seconds[i] = t->seconds[2 * i];
	}
	t->seconds[t->n++] = (float)seconds;
}

static int by_time(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

double times_median(const Times *t)
{
	float s[TIMES_KEPT];

	memcpy(s, t->seconds, sizeof s);
	qsort(s, (size_t)t->n, sizeof *s, by_time);
	return t->n ? ((double)s[(t->n - 1) / 2] + (double)s[t->n / 2]) / 2 : 0;
}

void program_time(Program *p, bool on)
{
	p->timing = on;
	p->steps = 0;
	p->times = (Times){0};
	for (int i = 0; i < p->nrun; i++) {
		p->run[i].launches = 0;
		p->run[i].times = (Times){0};
		if (p->run[i].loop)
			program_time(loop_program(p->run[i].loop), on);
	}
}

/* ---- a profile ---- */
typedef struct Row {
	ricci_kernel_time of;
	const char **tensor;
	const ricci_tensor
		*param; /* that it reads or assigns; NULL: none, or another's is nearest */
	bool assigns;
} Row;

struct ricci_profile {
	int n, room;
	Row *row;
	double step;
	int64_t steps;
	Arena arena;
};

typedef struct Making {
	ricci_profile *f;
	Naming names;
} Making;

/* ---- rows ---- */
static void row_touch(Making *m, Row *row, const char *name, const ricci_tensor *t, bool assigned)
{
	bool known = false, param = t && t->role == ROLE_PARAM;

	for (int i = 0; i < row->of.ntensor; i++)
		known = known || !strcmp(row->tensor[i], name);
	if (!known)
		row->tensor[row->of.ntensor++] = arena_strdup(&m->f->arena, name);
	if (param &&
	    (!row->param || (assigned && !row->assigns) ||
	     (assigned == row->assigns && tensor_size(t->node) > tensor_size(row->param->node)))) {
		row->param = t;
		row->assigns = row->assigns || assigned;
	}
}

/* The names of what the run reads and assigns. */
static void row_tensors(Making *m, const Program *p, const Run *r, Row *row)
{
	row->tensor = arena_alloc(&m->f->arena, ((size_t)r->nbuf + 1) * sizeof *row->tensor);
	for (int i = 0; i < r->nbuf; i++) {
		const Cell *c = &p->cell[r->cell[i]];
		const ricci_tensor *t = i < r->ninput ? NULL : c->next_of;
		const char *name = t ? t->name : NULL;

		if (i < r->ninput)
			name = node_base(p, c->node, &t);
		if (name)
			row_touch(m, row, name, t, i >= r->ninput);
	}
}

static Row *row_add(Making *m)
{
	ricci_profile *f = m->f;

	f->row = arena_grow(&f->arena, f->row, f->n, &f->room, sizeof *f->row);
	f->row[f->n] = (Row){.of = {.loop = -1, .parameter = "", .backend = ""}};
	return &f->row[f->n++];
}

static bool run_reads(const Run *r, int cell, const Program *p)
{
	for (int i = 0; i < r->ninput; i++)
		if (cell_whole(&p->cell[r->cell[i]]) == &p->cell[cell])
			return true;
	return false;
}

/* Does a read what b computes? */
static bool run_needs(const Program *p, const Run *a, const Run *b)
{
	for (int o = b->ninput; o < b->nbuf; o++)
		if (run_reads(a, b->cell[o], p))
			return true;
	return false;
}

/* Runs without a parameter get a neighbour's: of who assigns what they computed (gradients), else of who
 * computed what they read, else of who reads it. row[i]: of run i. */
static void rows_near(const Program *p, Row *const *row)
{
	for (int i = p->nrun - 1; i >= 0; i--)
		for (int k = i + 1; k < p->nrun && !row[i]->param; k++)
			if (row[k]->assigns && run_needs(p, &p->run[k], &p->run[i])) {
				row[i]->param = row[k]->param;
				row[i]->assigns = true;
			}
	for (int i = 0; i < p->nrun; i++)
		for (int k = i - 1; k >= 0 && !row[i]->param; k--)
			if (row[k]->param && run_needs(p, &p->run[i], &p->run[k]))
				row[i]->param = row[k]->param;
	for (int i = p->nrun - 1; i >= 0; i--)
		for (int k = i + 1; k < p->nrun && !row[i]->param; k++)
			if (row[k]->param && run_needs(p, &p->run[k], &p->run[i]))
				row[i]->param = row[k]->param;
}

static bool program_rows(Making *m, const Program *p, int loop, int64_t steps);

static bool run_row(Making *m, const Program *p, const Run *r, int loop, int64_t steps)
{
	int at = m->f->n;
	ricci_kernel_time *of = &row_add(m)->of;

	of->loop = loop;
	of->is_loop = r->loop != NULL;
	of->launches = steps ? (double)r->launches / (double)steps : 0;
	of->seconds = times_median(&r->times);
	row_tensors(m, p, r, &m->f->row[at]);
	if (r->loop) {
		of->equations = arena_printf(&m->f->arena, "a loop of %lld steps at most",
					     (long long)scan_of(r->sub->member[0])->bound);
		/* the body's launches are those of all runs of it */
		return r->again || program_rows(m, loop_program(r->loop), at, steps);
	}
	of->backend = r->kernel ? r->kernel->backend->name : "";
	of->flops = r->entry->task->flops;
	of->bytes = r->entry->task->bytes;
	of->equations = run_equations(&m->names, p, r);
	return of->equations != NULL;
}

static bool program_rows(Making *m, const Program *p, int loop, int64_t steps)
{
	int *at = arena_alloc(&m->f->arena, ((size_t)p->nrun + 1) * sizeof *at);
	Row **row = arena_alloc(&m->f->arena, ((size_t)p->nrun + 1) * sizeof(Row *));

	for (int i = 0; i < p->nrun; i++) {
		at[i] = m->f->n;
		if (!run_row(m, p, &p->run[i], loop, steps))
			return false;
	}
	for (int i = 0; i < p->nrun; i++)
		row[i] = &m->f->row[at[i]];
	rows_near(p, row);
	return true;
}

static int by_share(const void *a, const void *b)
{
	const ricci_kernel_time *x = &((const Row *)a)->of, *y = &((const Row *)b)->of;

	return x->share != y->share ? (x->share > y->share ? -1 : 1)
				    : strcmp(x->equations, y->equations);
}

/* Shares, and the order by them; is_loop holds a loop's old number until all have new ones. */
static void rows_sort(ricci_profile *f)
{
	int *at = arena_alloc(&f->arena, ((size_t)f->n + 1) * sizeof *at);

	for (int i = 0; i < f->n; i++) {
		ricci_kernel_time *of = &f->row[i].of;

		of->share = f->step > 0 ? of->launches * of->seconds / f->step : 0;
		of->tensor = f->row[i].tensor;
		if (f->row[i].param)
			of->parameter = arena_strdup(&f->arena, f->row[i].param->name);
		of->is_loop = of->is_loop ? i + 1 : 0;
	}
	if (f->n)
		qsort(f->row, (size_t)f->n, sizeof *f->row, by_share);
	for (int i = 0; i < f->n; i++)
		if (f->row[i].of.is_loop)
			at[f->row[i].of.is_loop - 1] = i;
	for (int i = 0; i < f->n; i++) {
		ricci_kernel_time *of = &f->row[i].of;

		of->loop = of->loop >= 0 ? at[of->loop] : -1;
		of->is_loop = of->is_loop != 0;
	}
}

ricci_profile *profile_make(const Program *p, Error *err)
{
	ricci_profile *f = mem_zalloc(sizeof *f);
	Making m = {.f = f};
	jmp_buf oom;

	if (!f || setjmp(oom)) {
		ricci_profile_free(f);
		error_set(err, RICCI_ENOMEM, "out of memory for a profile");
		return NULL;
	}
	f->arena.oom = &oom;
	m.names.arena = &f->arena;
	f->steps = p->steps;
	f->step = times_median(&p->times);
	if (!program_rows(&m, p, -1, p->steps))
		longjmp(oom, 1);
	rows_sort(f);
	f->arena.oom = NULL;
	return f;
}

/* ---- the table ---- */
static void print_row(Text *out, const ricci_profile *f, int i)
{
	const ricci_kernel_time *r = &f->row[i].of;
	const char *s = r->equations;
	double t = r->seconds > 0 ? 1e-9 / r->seconds : 0;

	text_add(out, "%4d %5.1f%% %9.3f %9.5g %11.2f ", i + 1, 100 * r->share,
		 1e3 * r->launches * r->seconds, r->launches, 1e6 * r->seconds);
	if (r->is_loop)
		text_add(out, "%9s %8s  loop", "", "");
	else
		text_add(out, "%9.4g %8.4g  %s", r->flops * t, r->bytes * t, r->backend);
	if (r->loop >= 0)
		text_add(out, " (in %d)", r->loop + 1);
	text_add(out, *r->parameter ? ", %s\n" : "\n", r->parameter);
	for (; *s; s += strcspn(s, "\n"), s += *s == '\n') {
		char line[160];

		message_print(line, sizeof line, "%.*s", (int)strcspn(s, "\n"), s);
		text_add(out, "     %s\n", line);
	}
}

void profile_print(Text *out, const ricci_profile *f)
{
	double kernels = 0;

	for (int i = 0; i < f->n; i++)
		if (f->row[i].of.loop < 0)
			kernels += f->row[i].of.share;
	text_add(out, "a step takes %.3f ms (median of %lld), kernels and loops %.1f%% of it\n",
		 1e3 * f->step, (long long)f->steps, 100 * kernels);
	text_add(out, "%4s %6s %9s %9s %11s %9s %8s  %s\n", "row", "share", "ms", "launches",
		 "us/launch", "GFLOP/s", "GB/s", "made by (in loop), parameter");
	for (int i = 0; i < f->n; i++)
		print_row(out, f, i);
}

/* ---- public ---- */
void ricci_profile_free(ricci_profile *f)
{
	if (!f)
		return;
	arena_free(&f->arena);
	mem_free(f);
}

int ricci_profile_count(const ricci_profile *f)
{
	return f ? f->n : 0;
}

const ricci_kernel_time *ricci_profile_at(const ricci_profile *f, int i)
{
	return f && i >= 0 && i < f->n ? &f->row[i].of : NULL;
}

double ricci_profile_step(const ricci_profile *f)
{
	return f ? f->step : 0;
}

char *ricci_profile_text(const ricci_profile *f)
{
	Text out = {0};

	if (!f)
		return NULL;
	profile_print(&out, f);
	return text_take(&out);
}
