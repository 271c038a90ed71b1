/* test_choices.c - indices that are chosen (?:, &&, ||, else, max, min, abs, sign, conditions as
 * numbers), nested and in several dimensions: gradients against differences, by the interpreter
 * and by tcc, without any read that the choices around it exclude; piecewise affine ones gather. */
#include "tests/autodiff/program.h"

/* Operands by first letter: X and W floats, S in 0..4, T in -1..2. */
typedef struct Case {
	const char *text;
	int rank; /* of X, of extents 5 */
	bool scatters;
} Case;

static const Case cases[] = {
	{"Y[i] = X[S[i] > 0 ? (T[S[i]-1] > 0 ? i : i+1) : i]*W[i]", 1, false},
	{"Y[i] = X[S[i] <= 0 ? i : T[S[i]-1] > 0 ? i : i+1]*W[i]", 1, false},
	{"Y[i] = X[S[i] > 0 && T[S[i]-1] > 0 ? i : i+1]*W[i]", 1, false},
	{"Y[i] = X[S[i] <= 0 || T[S[i]-1] > 0 ? i : i+1]*W[i]", 1, false},
	{"Y[i] = X[(T[S[i]-1] else 1) > 0 ? i : i+1]*W[i]", 1, false},
	{"Y[i] = (X[S[i] > 0 ? (T[S[i]-1] > 0 ? i-1 : i+3) : i] else 0)*W[i]", 1, false},
	{"Y[i] = S[i] > 0 ? X[T[S[i]-1] > 0 ? i : i+1]*W[i] : X[i] where i<4", 1, false},
	{"Y[i] = X[max(S[i] > 0 ? (T[S[i]-1] > 0 ? i : i+1) : i, 2)]*W[i]", 1, false},
	{"Y[i] = X[abs(S[i] > 0 ? (T[S[i]-1] > 0 ? i-3 : 1-i) : i)]*W[i]", 1, false},
	{"Y[i] = X[S[i] > 0 ? (T[S[i]-1] > 0 ? i : i+1) : i,"
	 " S[i] > 0 ? (T[S[i]-1] > 1 ? 0 : 1) : 2]*W[i]",
	 2, false},
	{"Y[i] += X[S[j] > 0 ? (T[S[j]-1] > 0 ? i : j) : i+1]*W[j] where i<4", 1, false},
	{"Y[i] = S[i] > 0 ? X[(T[S[i]-1]+1)%5]*W[i] : 0", 1, true},
	{"Y[i] = X[S[i] > 0 ? (T[S[i]-1]+1)%5 : i]*W[i]", 1, true},
	{"Y[i] = i > 0 ? X[T[min(max(S[i-1]-1, 0), 3)] > 0 ? i-1 : i]*W[i] : 0", 1, false},
	{"Y[i] += X[abs(i-2)]*W[i]", 1, false},
	{"Y[i] += X[abs(i-j)]*W[j] where i<4", 1, false},
	{"Y[i] = X[sign(i-2)+1]*W[i]", 1, false},
	{"Y[i] = X[i+(i<2)]*W[i]", 1, false},
	{"Y[i] = X[i*(i<2)]*W[i]", 1, false},
	{"Y[i] = X[max(min(abs(i-3), 4), 1)*2%5]*W[i]", 1, false},
	/* tables of few points, that several axes choose */
	{"Y[i] += X[i == j ? 0 : i == 0 ? j : j == 0 ? i : 6-i-j]*W[j] where i<4, j<4", 1, false},
	{"Y[i,k] += (X[i < j ? j-i : i == j ? 0 : i, k+1] else 0)*W[j] where k<5, i<5", 2, false},
	{"Y[i,j] = X[i < j ? 1 : 2, j == 2 || i < 2 ? i : j]*W[i]", 2, false},
	{"Y[i] max= X[i < j ? j-i : 4, j]*W[i]", 2, false},
	{"Y[i,j] = (X[abs(2*i-3)-1, min(max(i, j), 3)] else 0)*W[i]*W[j]", 2, false},
};

static Node *integers(Bench *b, const char *name, int64_t low, int64_t range)
{
	Node *t = bench_input(b, name, RICCI_I64, 1, (int64_t[]){4});
	for (int k = 0; k < 4; k++)
		((int64_t *)(uintptr_t)b->bind[b->n - 1].data)[k] = low + draw(range);
	return t;
}

/* The operands in the order of the text. */
static int operands(Bench *b, const char *text, int rank, Node **operand)
{
	static const int64_t shape[] = {5, 5};
	const char **name;
	int n = notation_operands(&b->ir, text, &name);
	for (int k = 0; k < n; k++)
		operand[k] = *name[k] == 'S'   ? integers(b, "S", 0, 5)
			     : *name[k] == 'T' ? integers(b, "T", -1, 4)
			     : *name[k] == 'X' ? filled(b, rank, shape, 0.3, 1.3)
					       : filled(b, 1, (int64_t[]){4}, 0.3, 1.3);
	return n;
}

static bool any_scatters(Bench *b, int n, Node *const *roots)
{
	Node **order;
	int norder = graph_order(&b->ir, n, roots, &order);
	bool any = false;
	for (int k = 0; k < norder; k++)
		any |= order[k]->op == OP_COMP && !comp_is_dense(order[k]);
	return any;
}

static bool judge(Bench *b, const char *text, int rank, bool *scatters)
{
	Node *operand[MAX_OPERANDS], *y, *grads[MAX_OPERANDS];
	int n = operands(b, text, rank, operand), nresult = 1, nfloat = 0;
	int64_t shape[RICCI_MAX_RANK];
	notation_elaborate(&b->ir, text, n, operand, &nresult, &y, 1);
	CHECK_REPORT(!b->ir.err.code, "%s: %s", text, b->ir.err.text);
	if (b->ir.err.code)
		return false;
	for (int d = 0; d < tensor_rank(y); d++)
		shape[d] = tensor_extent(y, d);
	y = inner(&b->ir, y, filled(b, tensor_rank(y), shape, 0.5, 1.5));
	for (int k = 0; k < b->n; k++)
		nfloat += b->bind[k].tensor->type == RICCI_F64;
	bool right = differences_agree(b, y, 1e-4, 1e-7, 30, grads) &&
		     kernels_agree(b, "tcc", nfloat, grads);
	*scatters = any_scatters(b, nfloat, grads);
	if (!right)
		fprintf(stderr, "in %s\n", text);
	return right;
}

static void text_case(Bench *b, int which)
{
	const Case *c = &cases[which];
	bool scatters = false;
	if (judge(b, c->text, c->rank, &scatters))
		CHECK_REPORT(scatters == c->scatters, "%s: it scatters: %d", c->text, scatters);
}

/* ---- random ones, as text: known: S[i] > 0 holds here */

static void random_choice(Text *t, int depth, bool known);

static void random_affine(Text *t)
{
	static const char *const leaf[] = {"i", "(i+1)", "(3-i)", "i/2", "(i+1)%3", "2", "(2*i-2)"};
	text_add(t, "%s", leaf[draw(COUNT(leaf))]);
}

/* Does it say that S[i] > 0 in the first branch, or (-1) in the second? */
static int random_condition(Text *t, bool known)
{
	static const char *const any[] = {"i < 2",
					  "S[i] > 0",
					  "S[i] <= 0",
					  "i%2 == 0",
					  "S[i] <= 0 || T[S[i]-1] > 0",
					  "S[i] > 0 && T[S[i]-1] > 1",
					  "(T[S[i]-1] else 1) > 0",
					  "T[i] > 0"};
	static const char *const inside[] = {"T[S[i]-1] > 0", "T[S[i]-1] <= i", "W[S[i]-1] < 0.8",
					     "S[S[i]-1] > T[S[i]-1]"};
	static const int says[COUNT(any)] = {0, 1, -1, 0, -1, 1, 0, 0};
	if (known && draw(3)) {
		text_add(t, "%s", inside[draw(COUNT(inside))]);
		return 0;
	}
	int k = (int)draw(COUNT(any));
	text_add(t, "%s", any[k]);
	return says[k];
}

static void random_two(Text *t, const char *open, const char *between, const char *close, int depth,
		       bool known)
{
	text_add(t, "%s", open);
	random_choice(t, depth, known);
	text_add(t, "%s", between);
	random_choice(t, depth, known);
	text_add(t, "%s", close);
}

static void random_choice(Text *t, int depth, bool known)
{
	if (depth == 0) {
		random_affine(t);
		return;
	}
	switch (draw(7)) {
	case 0:
		random_two(t, "max(", ", ", ")", depth - 1, known);
		return;
	case 1:
		random_two(t, "min(", ", ", ")", depth - 1, known);
		return;
	case 2:
		random_two(t, "(abs(", "-2) + ", ")/2", depth - 1, known);
		return;
	case 3:
		text_add(t, "(i < 3)*");
		random_affine(t);
		return;
	default:
		break;
	}
	text_add(t, "(");
	int says = random_condition(t, known);
	text_add(t, " ? ");
	random_choice(t, depth - 1, known || says > 0);
	text_add(t, " : ");
	random_choice(t, depth - 1, known || says < 0);
	text_add(t, ")");
}

static void random_case(Bench *b, int which)
{
	Text t = {0};
	int rank = 1 + which % 2;
	bool scatters;
	text_add(&t, "Y[i] = (X[");
	for (int d = 0; d < rank; d++) {
		random_choice(&t, (int)draw(4 - rank) + 1, false);
		text_add(&t, d + 1 < rank ? ", " : "] else 0.5)*W[i] where i<4");
	}
	judge(b, arena_strdup(&b->ir.arena, t.s), rank, &scatters);
	text_free(&t);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, bad = 0;
	for (int k = 0; k < COUNT(cases); k++)
		in_bench(text_case, k);
	for (int k = 0; k < rounds && bad < 5; k++)
		bad += !in_bench(random_case, k);
	return check_done();
}
