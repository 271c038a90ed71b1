/* test_rewrite.c - rewriting keeps values, those of a rewritten graph too.
 *
 * Random loops over time (random_program.h), their gradients and tangents are rewritten as sessions
 * do it, and what comes of that again and again; the interpreter judges. RICCI_FUZZ: the number of
 * programs; RICCI_SEED: the first one's number, whatever its kind.
 */
#include "tests/tools/program_compare.h"
#include "tests/tools/program_file.h"

#ifdef __SANITIZE_ADDRESS__
enum { PROGRAMS = 40 };
#else
enum { PROGRAMS = 250 };
#endif
enum { TIMES = 3 };

/* Is now, rewritten so many times, root k? */
static bool values_kept(const Case *c, int k, Node *now, Text *why)
{
	/* constants of f32 are folded in it */
	return twin_agrees(c, k, now, fmax(1e-9, case_precision(c, k)), why);
}

static void case_rewrite(const Case *c)
{
	Ir *ir = &c->root[0]->g->ir;
	Node *root[ROOTS];
	IR_ENTER(ir, );
	for (int k = 0; k < c->nroot; k++)
		root[k] = c->root[k]->node;
	bool good = true;
	for (int times = 1; times <= TIMES && good; times++) {
		CHECK_INT(rewrite_graph(ir, c->nroot, root), 0);
		for (int k = 0; k < c->nroot && good; k++) {
			Text why = {0}, text = {0};
			good = values_kept(c, k, root[k], &why);
			program_print(&text, c->p);
			CHECK_REPORT(good, "program %llu, %s (root %d), rewritten %d times: %s\n%s",
				     (unsigned long long)c->p->number, root_kind(c, k), k, times,
				     why.s, text.s);
			text_free(&why);
			text_free(&text);
		}
	}
	IR_LEAVE(ir);
}

static void program_run(uint64_t number)
{
	RandomProgram p;
	Case c;
	Error err = {0};
	random_program(&p, number);
	ricci_graph *g = ricci_graph_new();
	CHECK_INT(case_open(&c, g, &p), 0);
	CHECK_GRAPH(g);
	CHECK_INT(case_judge(&c, &err), 0);
	CHECK_STR(err.text, "");
	case_rewrite(&c);
	case_close(&c);
	ricci_graph_free(g);
	program_free(&p);
}

int main(void)
{
	const char *count = getenv("RICCI_FUZZ"), *seed = getenv("RICCI_SEED");
	uint64_t n = count ? strtoull(count, NULL, 10) : PROGRAMS;
	uint64_t first = seed ? strtoull(seed, NULL, 10) : KIND;
	for (uint64_t k = 0; k < n && check_failed < 10; k++)
		program_run(first + k);
	return check_done();
}
