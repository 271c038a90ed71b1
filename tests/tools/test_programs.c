/* test_programs.c - random programs and their gradients, and those that once failed (programs.txt):
 * program_judge.h tells what is judged. A program that fails is made smaller while it fails, and
 * printed. tests/tools/fuzz_programs.c runs them without end. */
#include "tests/tools/program_shrink.h"

#ifdef __SANITIZE_ADDRESS__ /* other ones */
enum { PROGRAMS = 80, OTHERS = 20, FIRST = 240 };
#else
enum { PROGRAMS = 240, OTHERS = 40, FIRST = 0 };
#endif
/* Each kernel is verified in processes forked from the one that holds the programs: few at a time. */
enum { BATCH = 8, KEPT = 160 };

static int nbackend = 1;
static const char *const compilers[] = {"tcc", "cc"};

/* False where nothing is wrong with it. */
static bool program_alone(RandomProgram *p)
{
	Text why = {0}, text = {0};
	Verdict v = verdict_apart(1, p, nbackend, compilers, &why);
	text_free(&why);
	if (v == GOOD)
		return false;
	v = program_shrink(p, nbackend, compilers, &why);
	program_print(&text, p);
	CHECK_REPORT(v == GOOD, "program %llu, %s: %s\n%s", (unsigned long long)p->number,
		     verdict_text[v], text.s, why.s ? why.s : "");
	text_free(&why);
	text_free(&text);
	return true;
}

/* cc takes most of the time: it has every tenth batch */
static void batch_run(int n, RandomProgram *p, bool with_cc)
{
	Text why = {0};
	bool found = false;
	Verdict v = verdict_apart(n, p, with_cc ? nbackend : 1, compilers, &why);
	if (v == GOOD)
		check_passed += n;
	for (int i = 0; i < n && v != GOOD; i++)
		found |= program_alone(&p[i]);
	CHECK_REPORT(v == GOOD || found, "programs from %llu on fail together, not alone: %s\n%s",
		     (unsigned long long)p->number, verdict_text[v], why.s ? why.s : "");
	for (int i = 0; i < n; i++)
		program_free(&p[i]);
	text_free(&why);
}

static void numbers_run(uint64_t first, int count)
{
	static RandomProgram p[BATCH];
	for (int done = 0, n; done < count && check_failed < 5; done += n) {
		for (n = 0; n < BATCH && done + n < count; n++)
			random_program(&p[n], first + (uint64_t)(done + n));
		batch_run(n, p, done / BATCH % 10 == 4);
	}
}

static void case_print(const Case *c, Ir *ir, Text *text)
{
	IR_ENTER(ir, );
	for (int k = 0; k < c->nroot; k++)
		print_program(text, ir, 1, &c->root[k]->node, NULL);
	IR_LEAVE(ir);
}

/* The equations of all roots of a program. */
static Text case_text(const RandomProgram *p)
{
	Case c;
	Text text = {0};
	ricci_graph *g = ricci_graph_new();
	CHECK_INT(case_open(&c, g, p), 0);
	case_print(&c, &g->ir, &text);
	case_close(&c);
	ricci_graph_free(g);
	return text;
}

/* What is kept of a program is the program. */
static void number_keep(uint64_t number)
{
	RandomProgram p, again;
	FILE *file = tmpfile();
	CHECK(file != NULL);
	if (!file)
		return;
	random_program(&p, number);
	program_write(file, &p, "nobody");
	rewind(file);
	CHECK(program_read(file, &again));
	fclose(file);
	Text was = case_text(&p), is = case_text(&again);
	CHECK_STR(is.s, was.s);
	CHECK(again.type == p.type && again.by_chance == p.by_chance);
	text_free(&was);
	text_free(&is);
	program_free(&p);
	program_free(&again);
}

/* A value of bools meets a bool: none is a number, which the notation would refuse. */
static void value_meets_bool(uint64_t number)
{
	RandomProgram p = {.number = number, .state = mix(number), .type = RICCI_BOOL};
	Text value = {0};
	const Operand *x = operand_new(&p, RICCI_BOOL, 0);
	axes_new(&p, 2, 2, 4);
	random_value(&p, &value, 2);
	add_left(&p, local_new(&p, p.left, p.extent));
	text_add(&p.text, " = %s[] != %s", x->name, value.s);
	add_where(&p);
	Text equations = case_text(&p);
	CHECK(equations.n > 0);
	text_free(&equations);
	text_free(&value);
	program_free(&p);
}

int main(void)
{
	static RandomProgram p[BATCH];
	char why[256];
	int n = 0;
	if (backend_find("cc")->available(why, sizeof why))
		nbackend = 2;
	else
		CHECK_SKIP(why);
	FILE *kept = fopen("tests/tools/programs.txt", "r");
	CHECK(kept != NULL);
	while (kept && program_read(kept, &p[n]))
		if (++n == BATCH)
			batch_run(n, p, true), n = 0;
	if (n)
		batch_run(n, p, true);
	if (kept)
		fclose(kept);
	numbers_run(1 + FIRST, PROGRAMS);
	for (uint64_t kind = 1; kind < 7; kind++)
		numbers_run(kind * KIND + FIRST, OTHERS);
	for (uint64_t k = 0; k < 8 * KEPT; k++)
		value_meets_bool(k);
	for (uint64_t k = 0; k < KEPT; k++)
		number_keep(k % 7 * KIND + k / 7);
	return check_done();
}
