/* test_schedules.c - random schedules of random tasks: whatever lowering lets through is right.
 *
 * Random programs (random_program.h, and every fourth a large contraction), their gradients and
 * tangents are fused into tasks, those of loops' bodies too, and each task gets schedules: offers
 * of the scheduler, changed at random as searches change them. Kernels are compiled by tcc, those
 * of some programs by cc, and verified as in training, in a process of their own. Some programs get
 * schedules of a grid, and run on the first OpenCL device. RICCI_FUZZ: the number of programs, to
 * which an eighth with loops comes; RICCI_SEED: the first one's number, of those of its kind;
 * RICCI_BACKEND: one for all. A program's schedules and its compiler are functions of its number, so
 * that one that fails can be run alone.
 */
#include "tests/check.h"
#include "tests/jit/grid_schedules.h"
#include "tests/tools/program_tasks.h"

#ifdef __SANITIZE_ADDRESS__
enum { PROGRAMS = 20 };
#else
enum { PROGRAMS = 100 };
#endif
enum { OFFERS = 12, MOST_KERNELS = 512, EACH = 6 };
/* By which each kind of programs comes to these in time; kernels of a program on a grid, of which a
 * compiler makes few a second. */
enum { BY_CC = 41, BY_OPENCL = 49, MOST_GRIDS = 3 };

typedef struct Batch {
	int n;
	Kernel *kernel[MOST_KERNELS];
	const Task *task[MOST_KERNELS];
	TaskList made;
} Batch;

static void failure_print(uint64_t number, const Task *t, const Kernel *k, const char *message)
{
	Text schedule = {0};
	schedule_print(&schedule, &k->schedule);
	CHECK_REPORT(false, "program %llu, %s, schedule \"%s\": %s\n%s", (unsigned long long)number,
		     k->backend->name, schedule.s ? schedule.s : "", message, t->text);
	text_free(&schedule);
}

static Schedule task_schedule(const Task *t, bool grid, int n, const Schedule *offer,
			      uint64_t *state)
{
	Schedule s = offer[random_below(state, (uint64_t)n)];
	if (grid)
		return grid_schedule_random(t, &s, state);
	if (random_below(state, 4) == 0)
		schedule_cross(&s, &offer[random_below(state, (uint64_t)n)], state);
	for (uint64_t m = random_below(state, 5); m > 0; m--)
		schedule_mutate(&s, schedule_axes(t), state);
	return s;
}

static void task_lower(Batch *all, const Task *t, const Backend *b, uint64_t *state)
{
	Schedule offer[OFFERS];
	bool grid = backend_grid(b);
	int n = schedule_offers(t, backend_target(b), OFFERS, offer);
	int most = grid ? MOST_GRIDS : MOST_KERNELS;
	for (int k = 0; k < EACH && all->n < most && n > 0; k++) {
		Error err = {0};
		Schedule s = task_schedule(t, grid, n, offer, state);
		Kernel *made = kernel_lower(t, &s, b, backend_target(b), &err);
		if (!made)
			continue;
		all->task[all->n] = t;
		all->kernel[all->n++] = made;
		if (grid)
			break;
	}
}

/* Kernels of a grid are timed by the clock, and other processes may have had the processor. */
static int kernel_verify(const Task *t, const Kernel *k, Error *err)
{
	int code = verify_kernel(t, k, true, err);
	if (!code || !backend_grid(k->backend) || !strstr(err->text, "a kernel takes more than"))
		return code;
	*err = (Error){0};
	return verify_kernel(t, k, true, err);
}

static void batch_verify(Batch *all, const Backend *b, uint64_t number)
{
	Error err = {0};
	bool made = !all->n || !b->compile(b, all->n, all->kernel, NULL, &err);
	if (!made)
		failure_print(number, all->task[0], all->kernel[0], err.text);
	for (int k = 0; k < all->n; k++) {
		err = (Error){0};
		if (made && kernel_verify(all->task[k], all->kernel[k], &err))
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

static void program_run(uint64_t number, const Backend *b)
{
	RandomProgram p;
	Case c;
	Batch all = {0};
	uint64_t state = number;
	(number % 4 || number >= KIND ? random_program : program_large)(&p, number);
	ricci_graph *g = ricci_graph_new();
	if (g && !case_open(&c, g, &p))
		case_tasks(&all.made, &g->ir, &c);
	int first = all.made.n ? (int)random_below(&state, (uint64_t)all.made.n) : 0;
	for (int k = 0; k < all.made.n; k++)
		task_lower(&all, all.made.task[(first + k) % all.made.n], b, &state);
	batch_verify(&all, b, number);
	tasks_free(&all.made);
	case_close(&c);
	ricci_graph_free(g);
	program_free(&p);
}

/* What compiles; NULL: it isn't there. */
static const Backend *backend_there(const char *name)
{
	const Backend *b = backend_find(name);
	char why[256];
	if (b->available(why, sizeof why))
		return b;
	CHECK_SKIP(why);
	return NULL;
}

typedef struct Backends {
	const Backend *tcc, *cc, *opencl, *only;
} Backends;

static const Backend *number_backend(uint64_t k, const Backends *b)
{
	if (b->only)
		return b->only;
	if (b->cc && k % BY_CC == BY_CC / 2)
		return b->cc;
	return b->opencl && k % BY_OPENCL == BY_OPENCL / 3 ? b->opencl : b->tcc;
}

static void numbers_run(uint64_t first, uint64_t n, const Backends *b)
{
	for (uint64_t k = first; k < first + n && check_failed < 10; k++)
		program_run(k, number_backend(k, b));
}

int main(void)
{
	const char *count = getenv("RICCI_FUZZ"), *seed = getenv("RICCI_SEED");
	const char *only = getenv("RICCI_BACKEND");
	uint64_t n = count ? strtoull(count, NULL, 10) : PROGRAMS;
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	Backends b = {.tcc = backend_find("tcc")};
	/* Of loops whose ends differ between threads PoCL 3.1 makes wrong code when it optimises. */
	setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
	if (only && !(b.only = backend_there(only)))
		return check_done();
	if (!only) {
		b.cc = backend_there("cc");
		b.opencl = backend_there("opencl");
	}
	numbers_run(first, n, &b);
	if (!seed)
		numbers_run(KIND, n / 8, &b);
	return check_done();
}
