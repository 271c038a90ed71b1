/* memory_report.c - what the memory of a step is used for: a row for each tensor between kernels that
 * is computed more than once, or is there when the step takes most.
 *
 * Input: a program. Output: rows and sums. Invariant: a report owns all that it points to, so it
 * outlives its session.
 */
#include "runtime/program/program.h"
#include <stdlib.h>
#include <string.h>

struct ricci_memory {
	ricci_memory_use use;
	int n;
	ricci_memory_tensor *row;
	Arena arena;
};

typedef struct Making {
	ricci_memory *m;
	const Program *p;
	Naming names;
	int peak; /* the run at which temporaries take most */
} Making;

static int find_peak(Making *g)
{
	const Program *p = g->p;
	size_t *live = arena_alloc(&g->m->arena, ((size_t)p->nrun + 2) * sizeof *live), sum = 0,
	       most = 0;
	int at = 0;

	for (int i = 0; i < p->ncell; i++)
		if (p->cell[i].kind == CELL_TEMP) {
			live[p->cell[i].first] += align_up(tensor_bytes(p->cell[i].node));
			live[p->cell[i].last + 1] -= align_up(tensor_bytes(p->cell[i].node));
		}
	for (int i = 0; i < p->nrun; i++) {
		size_t loop = p->run[i].loop ? align_up(loop_bytes(p->run[i].loop)) : 0;

		sum += live[i];
		at = sum + loop > most ? i : at;
		most = sum + loop > most ? sum + loop : most;
	}
	return at;
}

/* Of a kernel, or of all in a loop. */
static double run_flops(const Run *r)
{
	const Program *body = r->loop ? loop_program(r->loop) : NULL;
	double flops = body ? 0 : r->entry->task->flops;

	for (int i = 0; body && i < body->nrun; i++)
		flops += run_flops(&body->run[i]);
	return (double)run_steps(r) * flops;
}

static void sum_up(Making *g, const ProgramSpec *spec)
{
	const Program *p = g->p;
	ricci_memory_use *u = &g->m->use;

	u->beside = program_beside(p, spec);
	u->bytes = p->arena_bytes + u->beside;
	u->unlimited = p->unlimited_bytes;
	u->limit = spec->memory_limit;
	u->launches = p->nrun;
	for (int i = 0; i < p->nrun; i++) {
		const Run *r = &p->run[i];
		double flops = run_flops(r);

		u->again += r->again != NULL;
		u->flops += flops;
		u->flops_again += r->again ? flops : 0;
	}
}

/* The row of what run r writes into cell c, if it has one. */
static bool cell_row(Making *g, const Run *r, const Cell *c, ricci_memory_tensor *row)
{
	const Program *p = g->p;

	if (c->kind != CELL_TEMP)
		return false;
	row->bytes = tensor_bytes(c->node);
	row->flops = run_flops(r);
	for (int i = 0; i < p->ncell; i++)
		if (p->cell[i].node == c->node) {
			row->times++;
			row->at_peak |= p->cell[i].kind == CELL_TEMP &&
					p->cell[i].first <= g->peak && g->peak <= p->cell[i].last;
		}
	if (row->times == 1 && !row->at_peak)
		return false;
	row->equation = tensor_equation(&g->names, p, r, c->node);
	return true;
}

static int by_use(const void *a, const void *b)
{
	const ricci_memory_tensor *x = a, *y = b;

	if ((x->times > 1) != (y->times > 1))
		return x->times > 1 ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->equation, y->equation);
}

/* False: no memory. */
static bool rows_make(Making *g)
{
	const Program *p = g->p;
	ricci_memory *m = g->m;

	m->row = arena_alloc(&m->arena, ((size_t)p->ncell + 1) * sizeof *m->row);
	for (int i = 0; i < p->nrun; i++) {
		const Run *r = &p->run[i];

		for (int k = r->ninput; k < r->nbuf && !r->again; k++) {
			m->row[m->n] = (ricci_memory_tensor){0};
			if (!cell_row(g, r, &p->cell[r->cell[k]], &m->row[m->n]))
				continue;
			if (!m->row[m->n++].equation)
				return false;
		}
	}
	if (m->n)
		qsort(m->row, (size_t)m->n, sizeof *m->row, by_use);
	return true;
}

ricci_memory *memory_make(const Program *p, const ProgramSpec *spec, Error *err)
{
	ricci_memory *m = mem_zalloc(sizeof *m);
	Making g = {.m = m, .p = p};
	jmp_buf oom;

	if (!m || setjmp(oom)) {
		ricci_memory_free(m);
		error_set(err, RICCI_ENOMEM, "out of memory for a report");
		return NULL;
	}
	m->arena.oom = &oom;
	g.names.arena = &m->arena;
	g.peak = find_peak(&g);
	sum_up(&g, spec);
	if (!rows_make(&g))
		longjmp(oom, 1);
	m->arena.oom = NULL;
	return m;
}

static void memory_print(Text *out, const ricci_memory *m)
{
	const ricci_memory_use *u = &m->use;

	text_add(out, "a step takes %zu bytes beside inputs, parameters and states", u->bytes);
	if (u->limit)
		text_add(out, "; the limit is %zu", u->limit);
	text_add(out,
		 "\n%zu of them are outputs and next values of states; without a limit it takes "
		 "%zu\n",
		 u->beside, u->unlimited);
	text_add(out, "%d of %d launches compute again, %.2f%% of the operations\n", u->again,
		 u->launches, u->flops > 0 ? 100 * u->flops_again / u->flops : 0);
	text_add(out, "%12s %5s %9s %8s  %s\n", "bytes", "times", "at peak", "Mflop", "equation");
	for (int i = 0; i < m->n; i++) {
		const ricci_memory_tensor *r = &m->row[i];
		char line[120];

		message_print(line, sizeof line, "%s", r->equation);
		text_add(out, "%12zu %5d %9s %8.4g  %s\n", r->bytes, r->times,
			 r->at_peak ? "yes" : "no", 1e-6 * r->flops, line);
	}
}

/* ---- public ---- */
void ricci_memory_free(ricci_memory *m)
{
	if (!m)
		return;
	arena_free(&m->arena);
	mem_free(m);
}

const ricci_memory_use *ricci_memory_sum(const ricci_memory *m)
{
	return m ? &m->use : NULL;
}

int ricci_memory_count(const ricci_memory *m)
{
	return m ? m->n : 0;
}

const ricci_memory_tensor *ricci_memory_at(const ricci_memory *m, int i)
{
	return m && i >= 0 && i < m->n ? &m->row[i] : NULL;
}

char *ricci_memory_text(const ricci_memory *m)
{
	Text out = {0};

	if (!m)
		return NULL;
	memory_print(&out, m);
	return text_take(&out);
}
