/* test_notation_random.c - random programs: what elaborates prints to text that elaborates to the
 * same node, in the same Ir and in a fresh one; and so do its gradients. */
#include "autodiff/autodiff.h"
#include "tests/check.h"
#include <stdlib.h>

typedef struct Gen {
	uint64_t state;
	Text t;
	int depth;
	const char *names; /* letters of indices in play */
} Gen;

static int pick(Gen *g, int n)
{
	g->state = g->state * 6364136223846793005u + 1442695040888963407u;
	return (int)((g->state >> 33) % (uint64_t)n);
}

static const struct {
	const char *name;
	Type type;
	int rank;
	int64_t shape[3];
} tensors[] = {
	{"A", RICCI_F32, 2, {5, 6, 0}},	 {"B", RICCI_F32, 3, {4, 3, 6}},
	{"C", RICCI_F32, 1, {6, 0, 0}},	 {"S", RICCI_F32, 0, {0, 0, 0}},
	{"T", RICCI_I32, 1, {6, 0, 0}},	 {"L", RICCI_I64, 2, {4, 4, 0}},
	{"U", RICCI_U8, 1, {5, 0, 0}},	 {"D", RICCI_F64, 1, {6, 0, 0}},
	{"M", RICCI_BOOL, 1, {6, 0, 0}}, {"H", RICCI_F16, 2, {4, 4, 0}},
};
enum { NTENSOR = sizeof tensors / sizeof *tensors };

#define ADD(...) text_add(&g->t, __VA_ARGS__)

static void gen_name(Gen *g)
{
	ADD("%c", g->names[pick(g, (int)strlen(g->names))]);
}

static void gen_index(Gen *g, int64_t extent)
{
	switch (pick(g, 12)) {
	case 0:
		gen_name(g);
		ADD("+");
		gen_name(g);
		break;
	case 1:
		ADD("2*");
		gen_name(g);
		ADD("+");
		gen_name(g);
		ADD("-%d", pick(g, 3));
		break;
	case 2:
		gen_name(g);
		ADD("/%d", 1 + pick(g, 3));
		break;
	case 3:
		ADD("(");
		gen_name(g);
		ADD("+%d*", pick(g, 5));
		gen_name(g);
		ADD(")%%%d", (int)extent);
		break;
	case 4:
		ADD("%d-", (int)extent - 1);
		gen_name(g);
		break;
	case 5:
		ADD("T[");
		gen_name(g);
		ADD("]");
		break;
	case 6:
		ADD("min(max(");
		gen_name(g);
		ADD("-");
		gen_name(g);
		ADD(",0),%d)", (int)extent - 1);
		break;
	case 7:
		ADD("%d", pick(g, (int)extent));
		break;
	default:
		gen_name(g);
	}
}

static void gen_expr(Gen *g, Type t);

static void gen_access(Gen *g, Type t)
{
	int k;
	bool padded = pick(g, 3) == 0;

	do
		k = pick(g, NTENSOR);
	while (tensors[k].type != t);
	if (padded)
		ADD("(");
	ADD("%s[", tensors[k].name);
	for (int d = 0; d < tensors[k].rank; d++) {
		ADD(d ? "," : "");
		gen_index(g, tensors[k].shape[d]);
	}
	ADD("]");
	if (padded) {
		ADD(" else ");
		gen_expr(g, t);
		ADD(")");
	}
}

static void gen_condition(Gen *g)
{
	static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};

	switch (pick(g, 6)) {
	case 0:
		gen_name(g);
		ADD(" %s ", compare[pick(g, 6)]);
		if (pick(g, 3))
			gen_index(g, 5);
		else
			ADD("%d/2", pick(g, 9) - 2);
		break;
	case 1:
		gen_access(g, RICCI_BOOL);
		break;
	case 2:
		ADD("!(");
		gen_condition(g);
		ADD(")");
		break;
	case 3:
		ADD("(");
		gen_condition(g);
		ADD(pick(g, 2) ? " && " : " || ");
		gen_condition(g);
		ADD(")");
		break;
	default:
		gen_expr(g, pick(g, 3) ? RICCI_F32 : RICCI_I32);
		ADD(" %s ", compare[pick(g, 6)]);
		ADD("%d", pick(g, 4));
	}
}

static void gen_literal(Gen *g, Type t)
{
	static const char *const floats[] = {"0.5",  "1e-7",   "-2.25",	     "inf",	     "-inf",
					     "3e30", "0.1",    "-0.0",	     "nan",	     "7",
					     "1e9",  "(1/12)", "(2*(-7/2))", "(A.size(1)/2)"};

	if (type_is_float(t))
		ADD("%s", floats[pick(g, COUNT(floats))]);
	else
		ADD("%d", pick(g, 9));
}

static void gen_float(Gen *g, Type t)
{
	static const char *const calls[] = {"exp",  "log",  "log1p", "expm1",	"sqrt", "rsqrt",
					    "sin",  "cos",  "tan",   "tanh",	"erf",	"abs",
					    "sign", "ceil", "floor", "sigmoid", "round"};

	if (pick(g, 3) == 0) {
		ADD("%s(", pick(g, 2) ? "min" : pick(g, 2) ? "max" : "pow");
		gen_expr(g, t);
		ADD(", ");
		gen_expr(g, t);
	} else {
		ADD("%s(", calls[pick(g, COUNT(calls))]);
		gen_expr(g, t);
	}
	ADD(")");
}

static void gen_expr(Gen *g, Type t)
{
	static const char *const ops[] = {"+", "-", "*", "/"};
	bool is_float = type_is_float(t);

	if (++g->depth > 6) {
		gen_access(g, t);
		g->depth--;
		return;
	}
	switch (pick(g, 12)) {
	case 0:
		gen_literal(g, t);
		break;
	case 1:
		ADD("%s(", type_name(t));
		gen_name(g);
		ADD("%s)", pick(g, 2) ? "*2+1" : "");
		break;
	case 2:
		ADD("(");
		gen_condition(g);
		ADD(" ? ");
		gen_expr(g, t);
		ADD(" : ");
		gen_expr(g, t);
		ADD(")");
		break;
	case 3:
		if (is_float) {
			gen_float(g, t);
		} else {
			ADD("%s(", pick(g, 3) ? type_name(t) : "");
			gen_expr(g, t);
			ADD(")%s%d", pick(g, 2) ? "/" : "%%", 1 + pick(g, 5));
		}
		break;
	case 4:
		ADD("-(");
		gen_expr(g, t);
		ADD(")");
		break;
	case 5:
		ADD("%s(", type_name(t));
		gen_expr(g, pick(g, 2) ? RICCI_F32 : RICCI_I32);
		ADD(")");
		break;
	case 6:
		if (t == RICCI_F32) {
			ADD("%s(%d)", pick(g, 2) ? "random" : "normal", pick(g, 3));
			break;
		} /* fall through */
	case 7:
	case 8:
		ADD("(");
		gen_expr(g, t);
		ADD(" %s ", ops[pick(g, is_float ? 4 : 3)]);
		gen_expr(g, t);
		ADD(")");
		break;
	case 9:
		gen_name(g);
		break;
	default:
		gen_access(g, t);
	}
	g->depth--;
}

static void gen_program(Gen *g)
{
	static const char *const assign[] = {"+=", "max=", "min=", "*=", "+="};
	static const Type types[] = {RICCI_F32, RICCI_F32, RICCI_F32, RICCI_I32,
				     RICCI_I64, RICCI_F64, RICCI_F16, RICCI_U8};
	static const char *const sets[] = {"i", "ij", "ijk", "ijkl", "ijklm"};
	Type t = types[pick(g, COUNT(types))];
	int left = pick(g, 4);

	text_free(&g->t);
	g->depth = pick(g, 5);
	g->names = sets[left ? left - 1 : 0];
	ADD("Y[");
	for (int d = 0; d < left; d++)
		ADD("%s%c", d ? "," : "", g->names[d]);
	bool scatter = pick(g, 8) == 0 && left < 3;
	const char *sign = left && pick(g, 3) == 0 ? "=" : assign[pick(g, scatter ? 3 : 5)];
	if (*sign != '=')
		g->names = sets[left + pick(g, 2)];
	if (*sign != '=' && scatter) {
		ADD("%s", left ? "," : "");
		gen_index(g, 12);
		ADD(":12");
	}
	ADD("] %s ", sign);
	gen_expr(g, t);
	for (int k = 0, n = 0; g->names[k]; k++) {
		if (pick(g, 2))
			continue;
		ADD("%s%c<%d", n++ ? ", " : " where ", g->names[k], 1 + pick(g, 5));
	}
}

static const char *own_name(void *user, Node *t)
{
	return t->op == OP_INPUT ? t->u.s : user;
}

static Node *elaborate(Ir *ir, const char *text)
{
	const char **names;
	int n = notation_operands(ir, text, &names), nresult;
	Node *operand[NTENSOR], *result = NULL;

	for (int i = 0; i < n; i++)
		for (int k = 0; k < NTENSOR; k++)
			if (!strcmp(names[i], tensors[k].name))
				operand[i] = node_input(ir, names[i], tensors[k].type,
							tensors[k].rank, tensors[k].shape);
	if (n < 0 || notation_elaborate(ir, text, n, operand, &nresult, &result, 1))
		return NULL;
	return result;
}

static int round_trip(const char *text)
{
	Ir a, b;
	Text first = {0}, second = {0}, ranged = {0};

	ir_init(&a);
	ir_init(&b);
	IR_ENTER(&a, 0);
	b.arena.oom = a.arena.oom;
	Node *n = elaborate(&a, text);
	if (n) {
		print_equation(&first, &a, n, own_name, "Y");
		Node *again = elaborate(&a, first.s);
		CHECK_REPORT(again == n, "%s\nprints as\n%s\n%s", text, first.s, a.err.text);
		Node *other = elaborate(&b, first.s);
		CHECK_REPORT(other != NULL, "%s\nprints as\n%s\n%s", text, first.s, b.err.text);
		if (other) {
			print_equation(&second, &b, other, own_name, "Y");
			CHECK_REPORT(elaborate(&b, second.s) == other, "%s\nprints as\n%s", first.s,
				     second.s);
		}
		print_equation_ranged(&ranged, &a, n, own_name, "Y");
		CHECK_REPORT(elaborate(&a, ranged.s) == n, "%s\nprints as\n%s\n%s", text, ranged.s,
			     a.err.text);
	}
	text_free(&first);
	text_free(&second);
	text_free(&ranged);
	ir_free(&a);
	ir_free(&b);
	return n != NULL;
}

static bool is_float(const Node *n)
{
	return type_is_float((Type)n->type);
}

/* The gradients by all float operands, each a program of its own. */
static int gradients_trip(const char *text)
{
	Ir ir;
	Text t = {0};
	Node *wrt[NTENSOR], *grad[NTENSOR], **reads;
	static const char *const name = "G";
	int n = 0, code = -1;

	ir_init(&ir);
	IR_ENTER(&ir, 0);
	Node *y = elaborate(&ir, text);
	int nread = y && is_float(y) ? comp_reads(&ir, y, &reads) : 0;
	for (int i = 0; i < nread; i++)
		if (is_float(reads[i]))
			wrt[n++] = reads[i];
	if (n)
		code = autodiff_reverse(&ir, y, NULL, n, wrt, grad);
	for (int i = 0; i < n && !code; i++) {
		if (grad[i]->op == OP_INPUT)
			continue;
		text_free(&t);
		print_program(&t, &ir, 1, &grad[i], &name);
		Node *again = elaborate(&ir, t.s);
		CHECK_REPORT(again == grad[i], "a gradient of\n%s\nprints as\n%s\n%s", text, t.s,
			     ir.err.text);
		if (!again)
			break;
	}
	text_free(&t);
	ir_free(&ir);
	return !code;
}

int main(int argc, char **argv)
{
	Gen g = {.state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
	int good = 0, grads = 0, count = argc > 2 ? atoi(argv[2]) : 6000;

	for (int i = 0; i < count; i++) {
		gen_program(&g);
		good += round_trip(g.t.s);
		if (i % 5 == 0)
			grads += gradients_trip(g.t.s);
	}
	text_free(&g.t);
	CHECK(good > count / 20 && grads > count / 100);
	if (argc > 1)
		printf("%d of %d programs elaborate, %d have gradients\n", good, count, grads);
	return check_done();
}
