/* test_vectors.c - values, gradients and second-order products of real operators against numbers
 * that PyTorch recorded (make_vectors.py, vectors.txt), and the text of their gradient equations
 * against gradients.golden (RICCI_BLESS=1 writes it anew); all of them by compiled kernels too. */
#include "tests/autodiff/costs.h"
#include "tests/autodiff/shape.h"

#include <ctype.h>

typedef struct Reader {
	FILE *f;
	char *line;
	size_t room;
	Arena *arena; /* of the current case */
	Text golden;
} Reader;

/* The next line without its end; "" at the end of the file. */
static char *line_next(Reader *r)
{
	ssize_t n = getline(&r->line, &r->room, r->f);
	if (n < 0)
		return "";
	if (n > 0 && r->line[n - 1] == '\n')
		r->line[n - 1] = 0;
	return r->line;
}

typedef struct Record {
	char kind[16];
	int rank;
	int64_t shape[RICCI_MAX_RANK], size;
	double *value;
} Record;

static Record record_next(Reader *r, char *head)
{
	Record a = {.size = 1};
	int used = 0, more;
	sscanf(head, "%15s %d%n", a.kind, &a.rank, &used);
	for (int d = 0; d < a.rank; d++) {
		long n = 0;
		sscanf(head + used, "%ld%n", &n, &more);
		used += more;
		a.shape[d] = n;
		a.size *= n;
	}
	char *at = line_next(r);
	a.value = arena_alloc(r->arena, sizeof *a.value * (size_t)(a.size + 1));
	for (int64_t k = 0; k < a.size; k++)
		a.value[k] = strtod(at, &at);
	while (isspace((unsigned char)*at))
		at++;
	CHECK_REPORT(*at == 0, "vectors.txt: a %s line has too many numbers", a.kind);
	return a;
}

static Node *operand(Bench *b, const Record *a)
{
	Type type = strcmp(a->kind, "i64") ? RICCI_F64 : RICCI_I64;
	const char *name = arena_printf(&b->ir.arena, "o%d", b->n);
	Node *t = bench_input(b, name, type, a->rank, a->shape);
	for (int64_t k = 0; k < a->size; k++) {
		if (type == RICCI_F64)
			bench_data(b, b->n - 1)[k] = a->value[k];
		else
			((int64_t *)(uintptr_t)b->bind[b->n - 1].data)[k] = (int64_t)a->value[k];
	}
	return t;
}

static bool agrees(Bench *b, const char *name, const char *what, int k, Node *t, const Record *want)
{
	int before = check_failed;
	double *got = bench_value(b, t);
	CHECK_INT(tensor_size(t), want->size);
	CHECK_INT(tensor_rank(t), want->rank);
	for (int64_t e = 0; got && e < want->size && check_failed == before; e++)
		CHECK_REPORT(check_near(got[e], want->value[e], 1e-9 * (1 + fabs(want->value[e]))),
			     "%s: %s %d at %d is %.12g, should be %.12g", name, what, k, (int)e,
			     got[e], want->value[e]);
	return check_failed == before;
}

/* Multiply-adds: of the equations and how many a gradient may take, of each gradient, of all
 * together and how many those may take. */
static void golden_costs(Reader *r, Bench *b, const char *name, Node *y, int n, Node *const *wrt,
			 Node *const *grads, int nforward, Node *const *forward)
{
	double points = 0, there = costs_of(b, 1, &y, 0, NULL, &points);
	double all = costs_of(b, n, grads, nforward, forward, &points), most = 0;
	for (int k = 0; k < n; k++) {
		double bound = costs_bound(b, y, wrt[k]);
		double back = costs_of(b, 1, &grads[k], nforward, forward, &points);
		text_add(&r->golden, "%s%.0f for %s", k ? ", " : "multiply-adds ", back,
			 wrt[k]->u.s);
		CHECK_REPORT(back <= bound,
			     "%s: the gradient by %s takes %.0f multiply-adds, of %.0f that it may",
			     name, wrt[k]->u.s, back, bound);
		most += bound;
	}
	CHECK_REPORT(all <= most,
		     "%s: the gradients take %.0f multiply-adds, of %.0f that they may", name, all,
		     most);
	text_add(&r->golden, "; %.0f in all, %.0f forward\n", all, there);
}

/* The case's gradients as text, with the number of points that each side runs over. */
static void golden_put(Reader *r, Bench *b, const char *name, Node *y, int n, Node *const *wrt,
		       Node *const *grads)
{
	const char *names[MAX_OPERANDS];
	Node **forward;
	int nforward = graph_order(&b->ir, 1, &y, &forward);
	for (int k = 0; k < n; k++)
		names[k] = arena_printf(&b->ir.arena, "d_%s", wrt[k]->u.s);
	double there = 0, back = 0;
	costs_of(b, 1, &y, 0, NULL, &there);
	costs_of(b, n, grads, nforward, forward, &back);
	text_add(&r->golden, "%s: points %.0f, gradients %.0f\n", name, there, back);
	golden_costs(r, b, name, y, n, wrt, grads, nforward, forward);
	check_shape(b, name, n, grads, nforward, forward);
	print_program(&r->golden, &b->ir, 1, &y, (const char *[]){"y"});
	text_add(&r->golden, "\n");
	print_program(&r->golden, &b->ir, n, grads, names);
	text_add(&r->golden, "\n");
}

/* One case whose text and name are known; returns the head of the next one. */
static char *run_case(Reader *r, Bench *b, const char *name, const char *text)
{
	Node *operands[MAX_OPERANDS], *wrt[MAX_OPERANDS], *grads[MAX_OPERANDS], *y[1];
	Node *products[MAX_OPERANDS], *seconds[MAX_OPERANDS];
	Record want[MAX_OPERANDS];
	int nresult = 1, noperand = 0, n = 0, nwant = 0;
	char *head = line_next(r);
	while (head[0] == 'f' || head[0] == 'i') {
		Record a = record_next(r, head);
		Node *t = operand(b, &a);
		operands[noperand++] = t;
		if (t->type == RICCI_F64)
			wrt[n++] = t;
		head = line_next(r);
	}
	Record value = record_next(r, head), seed = record_next(r, line_next(r));
	for (head = line_next(r); head[0] == 'g' || head[0] == 'u' || head[0] == 's';
	     head = line_next(r))
		want[nwant++] = record_next(r, head);
	CHECK_INT(nwant, 3 * n);
	notation_elaborate(&b->ir, text, noperand, operands, &nresult, y, 1);
	CHECK_REPORT(!b->ir.err.code && nresult == 1, "%s: %s", name, b->ir.err.text);
	if (b->ir.err.code)
		return head;
	int before = check_failed;
	agrees(b, name, "value", 0, y[0], &value);
	Node *dy = operand(b, &seed);
	CHECK_INT(autodiff_reverse(&b->ir, y[0], dy, n, wrt, grads), 0);
	CHECK_INT(autodiff_reverse(&b->ir, y[0], dy, n, wrt, seconds), 0);
	for (int k = 0; k < n; k++)
		CHECK_REPORT(grads[k] == seconds[k], "%s: another gradient at the second time",
			     name);
	for (int k = 0; k < n; k++) {
		agrees(b, name, "gradient", k, grads[k], &want[3 * k]);
		products[k] = inner(&b->ir, grads[k], operand(b, &want[3 * k + 1]));
	}
	Node *all = scalar_sum(&b->ir, n, products);
	CHECK_INT(autodiff_reverse(&b->ir, all, NULL, n, wrt, seconds), 0);
	for (int k = 0; k < n; k++)
		agrees(b, name, "second", k, seconds[k], &want[3 * k + 2]);
	Node *roots[3 * MAX_OPERANDS];
	for (int k = 0; k < n; k++) {
		roots[k] = grads[k];
		roots[n + k] = seconds[k];
	}
	roots[2 * n] = y[0];
	kernels_agree(b, "tcc", 2 * n + 1, roots);
	golden_put(r, b, name, y[0], n, wrt, grads);
	if (check_failed != before) {
		fprintf(stderr, "---- %s\n", name);
		print_on_failure(b, 1, y);
		print_on_failure(b, n, grads);
	}
	return head;
}

static char *guarded_case(Reader *r, const char *name, const char *text)
{
	Bench b = {0};
	jmp_buf oom;
	char *volatile head = "";
	ir_init(&b.ir);
	b.ir.arena.oom = &oom;
	r->arena = &b.ir.arena;
	if (setjmp(oom))
		CHECK_REPORT(false, "%s: %s", name, b.ir.err.text);
	else
		head = run_case(r, &b, name, text);
	ir_free(&b.ir);
	return head;
}

/* Line by line, so that a difference is named by its lines. */
static void check_golden(const char *path, const char *text)
{
	if (getenv("RICCI_BLESS")) {
		FILE *out = fopen(path, "w");
		CHECK(out && fputs(text, out) >= 0 && fclose(out) == 0);
		return;
	}
	Reader r = {.f = fopen(path, "r")};
	CHECK(r.f != NULL);
	if (!r.f)
		return;
	int before = check_failed;
	while (*text && check_failed == before) {
		size_t n = strcspn(text, "\n");
		char *got = strndup(text, n);
		CHECK_STR(got, line_next(&r));
		free(got);
		text += n + (text[n] != 0);
	}
	CHECK_STR(line_next(&r), "");
	fclose(r.f);
	free(r.line);
}

int main(void)
{
	Reader r = {.f = fopen("tests/autodiff/vectors.txt", "r")};
	int cases = 0, expected = -1;
	CHECK(r.f != NULL);
	if (!r.f)
		return check_done();
	char *head = line_next(&r);
	while (!strncmp(head, "case ", 5)) {
		char *name = strdup(head + 5), *text = strdup(line_next(&r));
		head = guarded_case(&r, name, text);
		free(name);
		free(text);
		cases++;
	}
	sscanf(head, "end %d", &expected);
	CHECK_INT(cases, expected);
	check_golden("tests/autodiff/gradients.golden", r.golden.s ? r.golden.s : "");
	fclose(r.f);
	free(r.line);
	text_free(&r.golden);
	return check_done();
}
