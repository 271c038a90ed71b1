/* test_program_races.c - random programs with random schedules for a grid, on Oclgrind (tests/jit/oclgrind.h):
 * no data race, no access outside of a buffer, no read of what was never written, no barrier that some
 * threads don't come to, and the interpreter's values.
 *
 * Programs, their gradients and tangents are fused into tasks, and each of these that is small gets one
 * schedule. RICCI_FUZZ: the number of programs, to which an eighth with loops comes; RICCI_SEED: the
 * first one's number, of those of its kind. A program's schedules are functions of its number. */
#include "tests/jit/grid_schedules.h"
#include "tests/jit/oclgrind.h"
#include "tests/tools/program_tasks.h"

/* Of a task, that the simulator runs in tenths of a second; tries of a schedule that fits. */
enum { PROGRAMS = 16, POINTS_MOST = 2000, OFFERS = 12, TRIES = 20, FAILURES = 10 };

static bool task_small(const Task *t)
{
	int64_t points = 0;
	for (int m = 0; m < t->sub.nmember; m++)
		points += comp_points(t->sub.member[m]);
	return points <= POINTS_MOST;
}

/* A kernel with a random schedule that fits. */
static Kernel *task_kernel(const Task *t, uint64_t *state)
{
	const Target *target = target_grid(false);
	Schedule offer[OFFERS], s;
	int n = schedule_offers(t, target, OFFERS, offer);
	for (int k = 0; k < TRIES && n > 0; k++) {
		Error err = {0};
		s = grid_schedule_random(t, &offer[random_below(state, (uint64_t)n)], state);
		Kernel *made = kernel_lower(t, &s, &backend_oclgrind, target, &err);
		if (made && !memcmp(&made->schedule, &s, sizeof s))
			return made;
		kernel_unref(made);
	}
	return NULL;
}

/* With nothing in its results before. */
static void kernel_first(const Task *t, const Kernel *k)
{
	TaskData data = {0};
	Error err = {0};
	KernelEnv env = {.seed = 7, .step = 3, .kernel = k, .err = &err};
	CHECK_INT(task_data_new(t, 1, &data, &err), 0);
	if (data.nbuf)
		k->run(data.buf, &env, 0, k->shape.parts);
	task_data_free(&data);
}

static void kernel_check(uint64_t number, const Task *t, Kernel *k)
{
	Error err = {0};
	char what[100];
	Text schedule = {0};
	snprintf(what, sizeof what, "program %llu", (unsigned long long)number);
	if (!oclgrind_compile(k->backend, 1, &k, NULL, &err)) {
		kernel_first(t, k);
		verify_kernel(t, k, true, &err);
	}
	bool clean = oclgrind_check(what, k);
	if (strstr(err.text, "a kernel takes more than")) /* as it may, here */
		err.code = 0;
	schedule_print(&schedule, &k->schedule);
	CHECK_REPORT(!err.code, "%s [%s]: %s", what, schedule.s, err.text);
	if (!clean || err.code)
		fprintf(stderr, "%s\n", t->text);
	text_free(&schedule);
}

static int nkernel;
static void program_run(uint64_t number)
{
	RandomProgram p;
	Case c;
	TaskList all = {0};
	uint64_t state = number;
	random_program(&p, number);
	ricci_graph *g = ricci_graph_new();
	if (g && !case_open(&c, g, &p))
		case_tasks(&all, &g->ir, &c);
	for (int k = 0; k < all.n; k++) {
		Kernel *made = task_small(all.task[k]) ? task_kernel(all.task[k], &state) : NULL;
		if (made)
			kernel_check(number, all.task[k], made);
		nkernel += made != NULL;
		kernel_unref(made);
	}
	tasks_free(&all);
	case_close(&c);
	ricci_graph_free(g);
	program_free(&p);
}

static void numbers_run(uint64_t first, uint64_t n)
{
	for (uint64_t k = first; k < first + n && check_failed < FAILURES; k++)
		program_run(k);
}

int main(int argc, char **argv)
{
	const char *count = getenv("RICCI_FUZZ"), *seed = getenv("RICCI_SEED");
	uint64_t n = count ? strtoull(count, NULL, 10) : PROGRAMS;
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	if (!oclgrind_start(argc, argv))
		return check_done();
	numbers_run(first, n);
	if (!seed)
		numbers_run(KIND, n / 8);
	CHECK_REPORT(nkernel > 0, "no kernel was made");
	fprintf(stderr, "%d kernels\n", nkernel);
	oclgrind_done();
	return check_done();
}
