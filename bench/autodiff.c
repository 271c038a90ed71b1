/* autodiff.c - times differentiation itself, and counts what it makes.
 *
 * usage: autodiff [--rounds N] [--out FILE.json]        (in the source folder)
 *
 * The programs are those of tests/autodiff/vectors.txt, all float operands wanted, and chains of 10
 * to 10,000 equations. Each round differentiates in a context of its own, so that nothing is known
 * from before; the median of the processor's time counts. Multiply-adds are as
 * tests/autodiff/costs.h counts them; `ideal` is one for each point of each equation that reduces,
 * for each tensor it reads that a wanted one flows into, and one for each point of a read that
 * repeats elements. A table in Markdown goes to standard output. No peer: those differentiate while
 * they run, node by node.
 */
#include "tests/autodiff/costs.h"
#include "tests/autodiff/vectors.h"

#include <getopt.h>
#include <time.h>

enum { MAX_ROUNDS = 1001 };

typedef struct Row {
	char name[64];
	int equations, made; /* before, and by differentiation */
	double us;	     /* the median of all gradients of the program */
	double forward, gradients, ideal;
} Row;

typedef struct Table {
	int rounds, n;
	Row row[512];
} Table;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(int n, double *values)
{
	qsort(values, (size_t)n, sizeof *values, by_value);
	return values[n / 2];
}

static int count_equations(Ir *ir, int nroot, Node *const *roots)
{
	Node **order;
	int n = graph_order(ir, nroot, roots, &order), equations = 0;
	for (int k = 0; k < n; k++)
		equations += order[k]->op == OP_COMP;
	return equations;
}

/* ---- one differentiation */

typedef struct Program {
	Node *y, *seed, *wrt[MAX_OPERANDS], *grads[MAX_OPERANDS];
	int n;
} Program;

static double cpu_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static double differentiate(Bench *b, Program *p)
{
	double start = cpu_us();
	int code = autodiff_reverse(&b->ir, p->y, p->seed, p->n, p->wrt, p->grads);
	double end = cpu_us();
	CHECK_REPORT(code == 0, "%s", b->ir.err.text);
	return end - start;
}

/* The program's text over copies of the operands in a context of its own. */
static double differentiate_anew(const char *text, int noperand, Node *const *operands,
				 const Node *seed, Row *row)
{
	Bench b = {0};
	jmp_buf oom;
	volatile double us = 0;
	ir_init(&b.ir);
	b.ir.arena.oom = &oom;
	if (!setjmp(oom)) {
		Node *in[MAX_OPERANDS];
		Program p = {0};
		int nresult = 1;
		for (int k = 0; k < noperand; k++) {
			in[k] = node_import(&b.ir, operands[k], NULL, NULL);
			if (type_is_float(in[k]->type))
				p.wrt[p.n++] = in[k];
		}
		notation_elaborate(&b.ir, text, noperand, in, &nresult, &p.y, 1);
		CHECK_REPORT(!b.ir.err.code, "%s", b.ir.err.text);
		p.seed = seed ? node_import(&b.ir, (Node *)(uintptr_t)seed, NULL, NULL) : NULL;
		us = differentiate(&b, &p);
		Node *all[MAX_OPERANDS + 1];
		for (int k = 0; k < p.n; k++)
			all[k] = p.grads[k];
		all[p.n] = p.y;
		row->equations = count_equations(&b.ir, 1, &p.y);
		row->made = count_equations(&b.ir, p.n + 1, all) - row->equations;
	}
	ir_free(&b.ir);
	return us;
}

/* ---- the recorded cases */

static char *case_row(void *user, Bench *b, Reader *r, const char *name, const char *text)
{
	Table *t = user;
	Row *row = &t->row[t->n++];
	Case c;
	char *head = case_next(r, b, &c);
	double us[MAX_ROUNDS], points = 0;
	Program p = {.seed = operand(b, &c.seed), .n = c.n};
	Node **forward;
	int nresult = 1;
	snprintf(row->name, sizeof row->name, "%s", name);
	for (int k = 0; k < t->rounds; k++)
		us[k] = differentiate_anew(text, c.noperand, c.operand, p.seed, row);
	row->us = median(t->rounds, us);
	notation_elaborate(&b->ir, text, c.noperand, c.operand, &nresult, &p.y, 1);
	for (int k = 0; k < c.n; k++)
		p.wrt[k] = c.wrt[k];
	differentiate(b, &p);
	int nforward = graph_order(&b->ir, 1, &p.y, &forward);
	row->forward = costs_of(b, 1, &p.y, 0, NULL, &points);
	row->gradients = costs_of(b, p.n, p.grads, nforward, forward, &points);
	row->ideal = costs_way(b, p.y, p.n, p.wrt).ideal;
	return head;
}

/* ---- chains */

typedef struct Chain {
	const char *name, *each; /* T<k> from T<k-1> and the operand X, a matrix */
	int equations;		 /* in each */
} Chain;

static const Chain chains[] = {
	{"products with functions", "T%2$d[i,j] = tanh(T%1$d[i,j])*X[i,j]; ", 1},
	{"matrix products", "T%2$d[i,j] += T%1$d[i,k]*X[k,j]; ", 1},
	{"strided windows", "T%2$d[i,j] += (T%1$d[2*i+r-1,j] else 0)*X[r,j] where i<8, r<3; ", 1},
	{"softmax",
	 "m%1$d[i] max= T%1$d[i,j]; e%1$d[i,j] = exp(T%1$d[i,j]-m%1$d[i]); s%1$d[i] += e%1$d[i,j]; "
	 "T%2$d[i,j] = e%1$d[i,j]/s%1$d[i]; ",
	 4},
};

static void chain_row(Table *t, const Chain *c, int equations)
{
	Row *row = &t->row[t->n++];
	Text text = {0};
	int n = equations / c->equations, rounds = equations > 1000 ? 3 : t->rounds;
	double us[MAX_ROUNDS];
	Bench b = {0};
	jmp_buf oom;
	text_add(&text, "T0[i,j] = X[i,j]*X[i,j]; ");
	for (int k = 0; k < n; k++)
		text_add(&text, c->each, k, k + 1);
	text_add(&text, "Y[] += T%d[i,j]", n);
	snprintf(row->name, sizeof row->name, "chain of %d: %s", equations, c->name);
	ir_init(&b.ir);
	b.ir.arena.oom = &oom;
	if (!setjmp(oom)) {
		Node *x = bench_input(&b, "x", RICCI_F64, 2, (int64_t[]){8, 8});
		for (int k = 0; k < rounds; k++)
			us[k] = differentiate_anew(text.s, 1, &x, NULL, row);
		row->us = median(rounds, us);
	}
	ir_free(&b.ir);
	text_free(&text);
}

/* ---- what comes out */

static void print_table(const Table *t)
{
	printf("| program | equations | made | us | us each | forward | gradients | ideal |\n");
	printf("|---|---|---|---|---|---|---|---|\n");
	for (int k = 0; k < t->n; k++) {
		const Row *r = &t->row[k];
		printf("| %s | %d | %d | %.0f | %.1f | %.0f | %.0f | %.0f |\n", r->name,
		       r->equations, r->made, r->us, r->us / r->equations, r->forward, r->gradients,
		       r->ideal);
	}
}

static bool write_json(const Table *t, const char *path)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return false;
	for (int k = 0; k < t->n; k++) {
		const Row *r = &t->row[k];
		fprintf(f,
			"%s {\"program\": \"%s\", \"equations\": %d, \"made\": %d, \"us\": %.2f, "
			"\"forward\": %.0f, \"gradients\": %.0f, \"ideal\": %.0f}",
			k ? ",\n" : "[\n", r->name, r->equations, r->made, r->us, r->forward,
			r->gradients, r->ideal);
	}
	fprintf(f, "\n]\n");
	return fclose(f) == 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
						{"out", required_argument, NULL, 'o'},
						{0}};
	static Table table = {.rounds = 21};
	const char *out = NULL;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'r')
			table.rounds = atoi(optarg);
		else if (c == 'o')
			out = optarg;
		else
			return 2;
	}
	if (table.rounds < 1 || table.rounds > MAX_ROUNDS || optind != argc) {
		fprintf(stderr, "usage: autodiff [--rounds 1..%d] [--out FILE.json]\n", MAX_ROUNDS);
		return 2;
	}
	if (cases_run("tests/autodiff/vectors.txt", case_row, &table) < 0) {
		fprintf(stderr, "autodiff: tests/autodiff/vectors.txt can't be read here\n");
		return 1;
	}
	for (int k = 0; k < COUNT(chains); k++)
		for (int n = 10; n <= 10000; n *= 10)
			chain_row(&table, &chains[k], n);
	print_table(&table);
	if (out && !write_json(&table, out)) {
		fprintf(stderr, "autodiff: %s can't be written\n", out);
		return 1;
	}
	return check_failed > 0;
}
