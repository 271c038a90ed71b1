/* test_schedules.c - random schedules of random tasks: whatever lowering lets through is right.
 *
 * Random programs (random_program.h, and every fourth a large contraction), their gradients and
 * tangents are fused into tasks, those of loops' bodies too, and each task gets schedules: offers
 * of the scheduler, changed at random as searches change them. Kernels are compiled by tcc, those
 * of some programs by cc, and verified as in training, in a process of their own. RICCI_FUZZ: the
 * number of programs, to which an eighth with loops comes; RICCI_SEED: the first one's number, of
 * those of its kind. A program's schedules and its compiler are functions of its number, so that
 * one that fails can be run alone.
 */
#include "tests/check.h"
#include "tests/usual_device.h"
#include "tests/tools/program_case.h"

#ifdef __SANITIZE_ADDRESS__
enum { PROGRAMS = 20 };
#else
enum { PROGRAMS = 100 };
#endif
enum { OFFERS = 12, MOST_KERNELS = 512, MOST_TASKS = 256, EACH = 6 };
enum { BY_CC = 41 }; /* by which each kind of programs comes to cc in time */

typedef struct Batch {
	int n;
	Kernel *kernel[MOST_KERNELS];
	const Task *task[MOST_KERNELS];
	int nmade;
	Task *made[MOST_TASKS];
} Batch;

static void failure_print(uint64_t number, const Task *t, const Kernel *k, const char *message)
{
	Text schedule = {0};
	schedule_print(&schedule, &k->schedule);
	CHECK_REPORT(false, "program %llu, %s, schedule \"%s\": %s\n%s", (unsigned long long)number,
		     k->backend->name, schedule.s ? schedule.s : "", message, t->text);
	text_free(&schedule);
}

static void task_lower(Batch *all, const Task *t, const Backend *b, uint64_t *state)
{
	Schedule offer[OFFERS];
	int n = schedule_offers(t, target_host(), OFFERS, offer);
	for (int k = 0; k < EACH && all->n < MOST_KERNELS && n > 0; k++) {
		Error err = {0};
		Schedule s = offer[random_below(state, (uint64_t)n)];
		if (random_below(state, 4) == 0)
			schedule_cross(&s, &offer[random_below(state, (uint64_t)n)], state);
		for (uint64_t m = random_below(state, 5); m > 0; m--)
			schedule_mutate(&s, schedule_axes(t), state);
		Kernel *made = kernel_lower(t, &s, b, target_host(), &err);
		if (!made)
			continue;
		all->task[all->n] = t;
		all->kernel[all->n++] = made;
	}
}

static void batch_verify(Batch *all, const Backend *b, uint64_t number)
{
	Error err = {0};
	bool made = !all->n || !b->compile(b, all->n, all->kernel, NULL, &err);
	if (!made)
		failure_print(number, all->task[0], all->kernel[0], err.text);
	for (int k = 0; k < all->n; k++) {
		err = (Error){0};
		if (made && verify_kernel(all->task[k], all->kernel[k], true, &err))
			failure_print(number, all->task[k], all->kernel[k], err.text);
		check_passed += made && !err.code;
		kernel_unref(all->kernel[k]);
	}
	all->n = 0;
}

static Operand *operand_shaped(RandomProgram *p, Type type, int rank, const int64_t *shape)
{
	Operand *x = operand_new(p, type, rank);
	memcpy(x->shape, shape, (size_t)rank * sizeof *shape);
	return x;
}

/* Types of two factors, and what they are cast to. */
typedef struct Factors {
	Type a, b;
	const char *as;
} Factors;

static Factors random_factors(RandomProgram *p)
{
	static const Factors narrow[] = {
		{RICCI_BF16, RICCI_BF16, ""},	{RICCI_BF16, RICCI_BF16, "f32"},
		{RICCI_I8, RICCI_I8, "i32"},	{RICCI_U8, RICCI_I8, "i32"},
		{RICCI_I8, RICCI_U8, "i32"},	{RICCI_U8, RICCI_U8, "i32"},
		{RICCI_BF16, RICCI_F32, "f32"}, {RICCI_F32, RICCI_I8, "f32"},
		{RICCI_F16, RICCI_F16, "f32"},	{RICCI_I8, RICCI_I8, ""},
	};
	if (draw(p, 5) < 2)
		return narrow[draw(p, COUNT(narrow))];
	p->type = draw(p, 4) ? RICCI_F32 : RICCI_F64;
	return (Factors){p->type, p->type, ""};
}

/* Contractions of sizes that fill panels and blocks and leave a rest: products of matrices, and
 * windows with stride, padding and dilation. */
static void program_large(RandomProgram *p, uint64_t number)
{
	*p = (RandomProgram){.number = number, .state = mix(number), .type = RICCI_F32};
	Factors f = random_factors(p);
	if (draw(p, 3) == 0) {
		static const int most[] = {400, 90, 20};
		int of = most[draw(p, 3)], m = 1 + draw(p, of), n = 1 + draw(p, of);
		int k = 1 + draw(p, 40000 / of), h = 1 + draw(p, 3), swap = draw(p, 2);
		operand_shaped(p, f.a, 3, swap ? (int64_t[]){h, k, m} : (int64_t[]){h, m, k});
		operand_shaped(p, f.b, 3, (int64_t[]){h, k, n});
		text_add(&p->text, "Y[h,i,j] += %s(A[h,%s]) * %s(B[h,k,j])", f.as,
			 swap ? "k,i" : "i,k", f.as);
		return;
	}
	int c = 1 + draw(p, 40), o = 1 + draw(p, 70), side = 8 + draw(p, 24), taps = 1 + draw(p, 4);
	int stride = 1 + draw(p, 3), step = 1 + draw(p, 2), pad = draw(p, taps + 1);
	int places = (side + 2 * pad - step * (taps - 1) - 1) / stride + 1;
	operand_shaped(p, f.a, 4, (int64_t[]){1 + draw(p, 3), c, side, side});
	operand_shaped(p, f.b, 4, (int64_t[]){o, c, taps, taps});
	text_add(&p->text,
		 "Y[b,k,p,q] += %s(A[b,c,%d*p+%d*r-%d,%d*q+%d*s-%d] else 0) * %s(B[k,c,r,s]) "
		 "where p<%d, q<%d",
		 f.as, stride, step, pad, stride, step, pad, f.as, places, places);
}

static void tasks_make(Batch *all, Ir *ir, int nroot, Node **root);

/* Those of a loop's body. */
static void tasks_inside(Batch *all, Ir *ir, const Subgraph *loop)
{
	const Scan *s = scan_of(loop->member[0]);
	int n = 0;
	Node **root = arena_alloc(&ir->arena, (size_t)(s->nstate + loop->nmember) * sizeof *root);
	for (int k = 0; k < s->nstate + loop->nmember; k++) {
		Node *t = k < s->nstate ? s->next[k] : loop->member[k - s->nstate]->u.result->value;
		if (t->op != OP_INPUT)
			root[n++] = t;
	}
	tasks_make(all, ir, n, root);
}

/* What the rewritten roots are cut into. */
static void tasks_make(Batch *all, Ir *ir, int nroot, Node **root)
{
	Subgraph *subs = NULL;
	int n = 0;
	if (fuse_partition(ir, nroot, root, &usual_device, &n, &subs))
		return;
	for (int k = 0; k < n && all->nmade < MOST_TASKS; k++) {
		Error err = {0};
		Task *t = NULL;
		if (subs[k].member[0]->op == OP_SCAN)
			tasks_inside(all, ir, &subs[k]);
		else
			t = task_new(&subs[k], &err);
		if (t)
			all->made[all->nmade++] = t;
	}
}

static void case_tasks(Batch *all, Ir *ir, const Case *c)
{
	Node *root[ROOTS];
	for (int k = 0; k < c->nroot; k++)
		root[k] = c->root[k]->node;
	IR_ENTER(ir, );
	if (!rewrite_graph(ir, c->nroot, root))
		tasks_make(all, ir, c->nroot, root);
	IR_LEAVE(ir);
}

static void program_run(uint64_t number, const Backend *b)
{
	RandomProgram p;
	Case c;
	Batch all = {0};
	uint64_t state = number;
	(number % 4 || number >= KIND ? random_program : program_large)(&p, number);
	ricci_graph *g = ricci_graph_new();
	if (g && !case_open(&c, g, &p))
		case_tasks(&all, &g->ir, &c);
	for (int k = 0; k < all.nmade; k++)
		task_lower(&all, all.made[k], b, &state);
	batch_verify(&all, b, number);
	for (int k = 0; k < all.nmade; k++)
		task_free(all.made[k]);
	case_close(&c);
	ricci_graph_free(g);
	program_free(&p);
}

static void numbers_run(uint64_t first, uint64_t n, const Backend *tcc, const Backend *cc)
{
	for (uint64_t k = first; k < first + n && check_failed < 10; k++)
		program_run(k, k % BY_CC == BY_CC / 2 ? cc : tcc);
}

int main(void)
{
	const char *count = getenv("RICCI_FUZZ"), *seed = getenv("RICCI_SEED");
	uint64_t n = count ? strtoull(count, NULL, 10) : PROGRAMS;
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	const Backend *tcc = backend_find("tcc"), *cc = backend_find("cc");
	char why[256];
	if (!cc->available(why, sizeof why)) {
		CHECK_SKIP(why);
		cc = tcc;
	}
	numbers_run(first, n, tcc, cc);
	if (!seed)
		numbers_run(KIND, n / 8, tcc, cc);
	return check_done();
}
