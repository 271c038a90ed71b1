/* test_growth.c - differentiation and the printing of gradients take time and memory in proportion
 * to what they are given and to the text they write. Each family of programs is differentiated at
 * two sizes; counted are the nodes and the bytes of the arena, not seconds. */
#include "tests/autodiff/harness.h"

typedef struct Family {
	const char *name;
	void (*write)(Text *out, int n);
	int n;
} Family;

/* ---- one equation with n operations */

/* A chain of calls around X[i]: open and close are written with k. */
static void nest(Text *out, int n, const char *open, const char *close)
{
	text_add(out, "Y[i] = ");
	for (int k = 0; k < n; k++) {
		text_add(out, open, k);
		text_add(out, "%s", k + 1 < n ? "" : "X[i]");
	}
	for (int k = 0; k < n; k++)
		text_add(out, close, k);
}

static void choices(Text *out, int n)
{
	nest(out, n, "(X[i] < %d.5 ? X[i] : ", "*X[i])");
}

static void choices_of_indices(Text *out, int n)
{
	nest(out, n, "(i < %d ? X[i] : ", "*X[i])");
}

static void maxima(Text *out, int n)
{
	nest(out, n, "max(X[i]*%d.5, ", ")");
}

static void calls(Text *out, int n)
{
	nest(out, n, "tanh(X[i]*", ")");
}

static void repeat(Text *out, int n, const char *head, const char *each, const char *tail)
{
	text_add(out, "%s", head);
	for (int k = 0; k < n; k++)
		text_add(out, each, k, k + 1);
	text_add(out, "%s", tail);
}

static void factors(Text *out, int n)
{
	repeat(out, n, "Y[i] = ", "(X[i]+%d.5)*", "X[i]");
}

static void windows(Text *out, int n)
{
	repeat(out, n, "Y[i] = ", "(X[i+%d] else 0)+", "X[i] where i<8");
}

static void conditions(Text *out, int n)
{
	repeat(out, n, "Y[i] = ", "X[i] < %d.5 && ", "X[i] > 0 ? X[i]*X[i] : X[i]");
}

/* ---- n equations */

static void products(Text *out, int n)
{
	repeat(out, n, "T0[i,j] = X[i]*X[j]; ", "T%2$d[i,j] += T%1$d[i,k]*T0[k,j]; ", "Y[i,j] = ");
	text_add(out, "T%d[i,j]", n);
}

static void softmaxes(Text *out, int n)
{
	repeat(out, n, "T0[i,j] = X[i]*X[j]; ",
	       "m%1$d[i] max= T%1$d[i,j]; e%1$d[i,j] = exp(T%1$d[i,j]-m%1$d[i]); "
	       "s%1$d[i] += e%1$d[i,j]; T%2$d[i,j] = e%1$d[i,j]/s%1$d[i]; ",
	       "Y[i,j] = ");
	text_add(out, "T%d[i,j]", n);
}

static void squares(Text *out, int n)
{
	repeat(out, n, "T0[i] = X[i]; ", "T%2$d[i] = T%1$d[i]*T%1$d[i]; ", "Y[i] = ");
	text_add(out, "T%d[i]", n);
}

/* All former ones are read through one tensor. */
static void uses(Text *out, int n)
{
	repeat(out, n, "W[i] = X[i]*X[i]; T0[i] = W[i]; ",
	       "T%2$d[i] = T%1$d[i]*%1$d.5 + W[(i+%1$d)%%8]; ", "Y[i] = ");
	text_add(out, "T%d[i]", n);
}

static const Family families[] = {
	{"choices", choices, 24},
	{"choices of indices", choices_of_indices, 24},
	{"maxima", maxima, 24},
	{"calls", calls, 24},
	{"factors", factors, 60},
	{"windows", windows, 40},
	{"conditions", conditions, 60},
	{"products", products, 100},
	{"softmaxes", softmaxes, 40},
	{"squares", squares, 100},
	{"uses", uses, 100},
};

typedef struct Size {
	double forward, nodes, bytes, printing, text;
} Size;

static void measure(const Family *f, int n, Size *size)
{
	Bench b = {0};
	jmp_buf oom;
	Text program = {0}, out = {0};
	ir_init(&b.ir);
	b.ir.arena.oom = &oom;
	f->write(&program, n);
	if (setjmp(oom)) {
		CHECK_REPORT(false, "%s: %s", f->name, b.ir.err.text);
	} else {
		Node *x = bench_input(&b, "x", RICCI_F64, 1, (int64_t[]){8}), *y, *g = NULL;
		int nresult = 1;
		notation_elaborate(&b.ir, program.s, 1, &x, &nresult, &y, 1);
		CHECK_STR(b.ir.err.text, "");
		size->forward = (double)b.ir.count;
		size->bytes = (double)b.ir.arena.bytes;
		if (!b.ir.err.code)
			CHECK_INT(autodiff_reverse(&b.ir, y, NULL, 1, &x, &g), 0);
		size->nodes = (double)b.ir.count - size->forward;
		size->printing = (double)b.ir.arena.bytes;
		size->bytes = size->printing - size->bytes;
		if (g)
			print_program(&out, &b.ir, 1, &g, (const char *[]){"g"});
		size->printing = (double)b.ir.arena.bytes - size->printing;
		size->text = (double)out.n;
	}
	text_free(&program);
	text_free(&out);
	ir_free(&b.ir);
}

/* The arena grows by chunks. */
enum { CHUNK = 65536 };

static void proportional(const Family *f, const char *what, double one, double two, double slack)
{
	CHECK_REPORT(two < 2.2 * one + slack, "%s: %.0f %s for %d, %.0f for %d", f->name, one, what,
		     f->n, two, 2 * f->n);
}

static void grows_in_proportion(const Family *f)
{
	Size one = {0}, two = {0};
	measure(f, f->n, &one);
	measure(f, 2 * f->n, &two);
	if (getenv("RICCI_TEST_SIZES"))
		fprintf(stderr,
			"%-20s nodes %.0f + %.0f, %.0f + %.0f; bytes %.0f, %.0f; "
			"printing %.0f, %.0f; text %.0f, %.0f\n",
			f->name, one.forward, one.nodes, two.forward, two.nodes, one.bytes,
			two.bytes, one.printing, two.printing, one.text, two.text);
	proportional(f, "nodes", one.nodes, two.nodes, 100);
	proportional(f, "bytes", one.bytes, two.bytes, 8 * CHUNK);
	proportional(f, "bytes to print", one.printing, two.printing, 16 * CHUNK);
}

int main(void)
{
	for (int k = 0; k < COUNT(families); k++)
		grows_in_proportion(&families[k]);
	return check_done();
}
