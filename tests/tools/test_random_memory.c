/* test_random_memory.c - random programs and their gradients in as little memory as can be: what is
 * computed again changes no bit. Several programs are one graph, whose kernels alternate. RICCI_FUZZ:
 * how many programs. */
#include "tests/tools/program_judge.h"

enum { TOGETHER = 8 };

/* All results of the cases, one behind the other; *again: launches that computed again. */
static int evaluated(ricci_graph *g, int n, Case *c, bool least, char *got, int *again)
{
	static Node *root[TOGETHER * ROOTS];
	static Binding bind[TOGETHER * BINDS];
	static void *out[TOGETHER * ROOTS];
	int nroot = 0, nbind = 0, code;
	Evaluation e = {
		.backend = backend_find("tcc"), .threads = 1, .repeat = 1, .least_memory = least};
	Error err = {0};

	for (int i = 0; i < n; i++) {
		for (int k = 0; k < c[i].nroot; k++) {
			root[nroot] = c[i].root[k]->node;
			out[nroot++] = got;
			got += tensor_bytes(c[i].root[k]->node);
		}
		for (int k = 0; k < c[i].nbind; k++)
			bind[nbind++] = c[i].bind[k];
	}
	code = evaluate(&g->ir, nroot, root, nbind, bind, out, &e, &err);
	CHECK_REPORT(!code, "programs from %llu on: %s", (unsigned long long)c->p->number,
		     err.text);
	*again += e.again;
	return code;
}

static void compare(ricci_graph *g, int n, Case *c, int *again)
{
	size_t bytes = 1, at = 0;

	for (int i = 0; i < n; i++)
		for (int k = 0; k < c[i].nroot; k++)
			bytes += tensor_bytes(c[i].root[k]->node);
	char *kept = calloc(2, bytes), *some = kept + bytes;
	if (!evaluated(g, n, c, false, kept, again) && !evaluated(g, n, c, true, some, again))
		for (int i = 0; i < n; i++)
			for (int k = 0; k < c[i].nroot; k++) {
				size_t size = tensor_bytes(c[i].root[k]->node);

				CHECK_REPORT(!memcmp(kept + at, some + at, size),
					     "program %llu, %s (root %d)",
					     (unsigned long long)c[i].p->number,
					     root_kind(&c[i], k), k);
				at += size;
			}
	free(kept);
}

static void together(uint64_t first, int *again)
{
	static RandomProgram p[TOGETHER];
	static Case c[TOGETHER];
	ricci_graph *g = ricci_graph_new();
	int n = 0;
	bool good = true;

	for (int i = 0; i < TOGETHER; i++)
		random_program(&p[i], first + (uint64_t)i);
	for (; n < TOGETHER && good; n++) {
		c[n] = (Case){0};
		good = !case_open(&c[n], g, &p[n]);
	}
	CHECK_REPORT(good, "%s", ricci_error_message());
	if (good)
		compare(g, n, c, again);
	for (int i = 0; i < n; i++)
		case_close(&c[i]);
	ricci_graph_free(g);
	for (int i = 0; i < TOGETHER; i++)
		program_free(&p[i]);
}

int main(void)
{
	long n = env_long("RICCI_FUZZ", 160);
	int again = 0;

	for (long k = 0; k < n; k += TOGETHER)
		together((uint64_t)k, &again);
	CHECK_REPORT(again > n / 20, "%d launches in %ld programs compute again", again, n);
	return check_done();
}
