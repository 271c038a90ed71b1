/* test_races.c - kernels for a grid on Oclgrind: no two threads race, none reads what nobody wrote or what
 * is outside of a buffer, all come to each barrier, and the values are the interpreter's. The small cases
 * of lowering with the schedule that is offered first and the last; the cases of grids with random schedules
 * (RICCI_SCHEDULES: how many of each; RICCI_SEED). And kernels with a mistake planted in them, which must
 * be reported. */
#include "tests/jit/grid_cases.h"
#include "tests/jit/grid_schedules.h"
#include "tests/jit/lower_cases.h"
#include "tests/jit/oclgrind.h"

static const Case small[] = {
	{"Y[i,j] = A[j,i] + B[i]", "A=13x17 B=17"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=17x9 B=9x21"},
	{"Y[b,i,j] += A[b,k,i]*B[j,k]", "A=2x9x10:f16 B=13x9:f16"},
	{"Y[n,k,p,q] += (X[n,c,2*p+r-1,2*q+s-1] else 0)*W[k,c,r,s] where p<3, q<2",
	 "X=2x2x5x4 W=5x2x3x3"},
	{"Y[i,j] += f32(A[i,k])*B[j,k]", "A=11x12:i8 B=13x12"},
	{"V[b,k,p,i,j] += P[b,c,2*p+r,i,t]*W[k,c,r,t,j]", "P=2x2x5x2x3 W=3x2x3x3x2"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=5x19:f64 B=19x6:f64"},
	{"Y[j] max= A[i,j]", "A=61x9"},
	{"Y[T[i]:6,d] += X[i,d]", "T=40:i32 X=40x5"},
	{"Y[T[i]:4] += X[i,j]*X[i,j]", "T=30:i64 X=30x7:f16"},
	{"Y[T[i]:4,d] max= X[i,d]", "T=50:i32 X=50x3"},
	{"Y[2*i+j:30] += A[i,j]", "A=13x4:i32"},
	{"Y[T[i]:4] min= X[i]", "T=50:i32 X=50:i32"},
	{"Y[i,k] += A[j,i,k]*B[j]", "A=90x2x3 B=90"},
};

/* Points of a task that the simulator runs in tenths of a second. */
enum { POINTS_MOST = 6000, TRIES = 100 };

static bool trial_small(const Trial *t)
{
	int64_t points = 0;
	for (int m = 0; m < t->task.sub.nmember; m++)
		points += comp_points(t->task.sub.member[m]);
	return points <= POINTS_MOST;
}

/* NULL: the schedule does not fit. */
static Kernel *kernel_simulated(const Trial *t, const Schedule *s)
{
	Error err = {0};
	Kernel *k = kernel_lower(&t->task, s, &backend_oclgrind, harness_target(), &err);
	bool fits = k && !memcmp(&k->schedule, s, sizeof *s);
	CHECK_REPORT(k || (err.code == RICCI_EINVAL && !strncmp(err.text, "schedule: ", 10)),
		     "%s: %s", t->text, err.text);
	if (k && !fits)
		kernel_unref(k);
	return fits ? k : NULL;
}

static bool kernel_build(const Trial *t, Kernel *k)
{
	Error err = {0};
	bool built = !oclgrind_compile(k->backend, 1, &k, NULL, &err);
	CHECK_REPORT(built, "%s: %s", t->text, err.text);
	return built;
}

static void kernel_check(const Trial *t, Kernel *k)
{
	if (kernel_build(t, k)) {
		harness_run(t, k);
		oclgrind_check(t->text, k);
	}
	kernel_unref(k);
}

static void check_offers(const Trial *t)
{
	for (int k = 0; k<t->noffer; k += t->noffer> 1 ? t->noffer - 1 : 1) {
		Kernel *made = kernel_simulated(t, &t->offer[k]);
		CHECK_REPORT(made, "%s: an offer does not fit", t->text);
		if (made)
			kernel_check(t, made);
	}
}

static void check_random(const Trial *t, int wanted, uint64_t *state)
{
	for (int k = TRIES * wanted; k > 0 && wanted > 0; k--) {
		Schedule s = grid_schedule_random(&t->task, &t->offer[0], state);
		Kernel *made = kernel_simulated(t, &s);
		wanted -= made != NULL;
		if (made)
			kernel_check(t, made);
	}
	CHECK_REPORT(!wanted, "%s: few random schedules fit", t->text);
}

/* ---- planted mistakes */

static const char barrier[] = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);";

/* A copy of the source with `with` for the n-th barrier; NULL: there are not so many. */
static char *barrier_replace(const char *source, int n, const char *with)
{
	Text t = {0};
	const char *at = source;
	for (int k = 0; at && k <= n; k++)
		at = strstr(k ? at + 1 : at, barrier);
	if (!at)
		return NULL;
	text_add(&t, "%.*s%s%s", (int)(at - source), source, with, at + strlen(barrier));
	return t.s;
}

/* Runs it once with that source: does Oclgrind report such a thing? */
static bool reports(const Trial *t, Kernel *k, const char *source, const char *report)
{
	char *own = k->source;
	bool seen = false;
	k->source = (char *)source;
	if (kernel_build(t, k)) {
		float out[4096];
		void *buf[8];
		KernelEnv env = {.kernel = k};
		memcpy(buf, t->in, sizeof(void *) * (size_t)t->task.sub.ninput);
		buf[t->task.sub.ninput] = out;
		k->run(buf, &env, 0, k->shape.parts);
		char *said = oclgrind_said();
		seen = said && strstr(said, report);
		mem_free(said);
	}
	oclgrind_release(k->module);
	oclgrind.status = 0;
	k->module = NULL;
	k->source = own;
	return seen;
}

static bool barrier_missed(const Trial *t, Kernel *k, int n)
{
	char *without = barrier_replace(k->source, n, "");
	bool seen = reports(t, k, without, "data race");
	mem_free(without);
	return seen;
}

/* Each barrier is missed but `spare`: before the first part of a block, and behind its last. */
static void check_barriers(const Trial *t, Kernel *k, int spare)
{
	int n = 0, missed = 0;
	for (char *s; (s = barrier_replace(k->source, n, "")); mem_free(s))
		missed += barrier_missed(t, k, n++);
	CHECK_REPORT(missed > 0 && missed == n - spare, "%s: %d of %d barriers are missed\n%s",
		     t->text, missed, n, strstr(k->source, "__kernel"));
	char *few = barrier_replace(k->source, 0, "if (get_local_id(0) < 3) barrier(3);");
	CHECK(reports(t, k, few, "divergence"));
	mem_free(few);
}

static void check_reads(const Trial *t, Kernel *k)
{
	CHECK(!reports(t, k, k->source, "Invalid read") &&
	      !reports(t, k, k->source, "Uninitialized"));
	oclgrind_shorter = 4;
	CHECK(reports(t, k, k->source, "Invalid read"));
	oclgrind_shorter = 0;
	oclgrind_empty = true;
	CHECK(reports(t, k, k->source, "Uninitialized"));
	oclgrind_empty = false;
}

/* Without atomic instructions the parts of a scatter race. */
static void check_atomics(void)
{
	static const Case scatter = {"Y[T[i]:3,d] += X[i,d]", "T=20:i32 X=20x4"};
	static const char plain[] = "#define ricci_atomic_add_f32(at, v) (*(at) += (v))\n";
	Trial *t = harness_trials(&scatter, false, NULL);
	Kernel *k = kernel_simulated(t, &t->offer[0]);
	Text source = {0};
	CHECK(k && strstr(k->source, "ricci_atomic_add_f32(&"));
	if (k) {
		const char *at = strstr(k->source, "__kernel void");
		text_add(&source, "%.*s%s%s", (int)(at - k->source), k->source, plain, at);
		CHECK(!reports(t, k, k->source, "race"));
		CHECK(reports(t, k, source.s, "data race"));
	}
	text_free(&source);
	kernel_unref(k);
}

static void check_mistakes(void)
{
	static const char *const tiles[] = {
		"tensorise 0; block 0 8; block 1 8; block 2 4; tile 0 2; tile 1 2; threads 16",
		"tensorise 1; block 0 8; block 1 8; block 2 4; tile 0 2; tile 1 2; threads 16",
	};
	static const Case sums = {"Y[i] += A[i,j]", "A=5x70"},
			  product = {"Y[i,j] += A[i,k]*B[k,j]", "A=9x20 B=20x11"},
			  row = {"s[i] += X[i,j]; Y[i,j] = X[i,j]/s[i]", "X=5x40"};
	const struct {
		Trial *trial;
		const char *schedule;
		int spare;
	} with[] = {
		{harness_trials(&sums, false, NULL),
		 "threads 64; parallel 1; split 1 16; thread 2 0", 1},
		{harness_trials(&sums, false, NULL),
		 "threads 64; parallel 1; split 1 8; thread 2 1", 1},
		{harness_trials(&product, false, NULL), tiles[0], 0},
		{harness_trials(&product, false, NULL), tiles[1], 0},
		{harness_rows(&row),
		 "rows 1; threads 16; member 0; split 0 8; thread 1 0; member 1; parallel 1", 2},
	};
	check_atomics();
	for (int i = 0; i < COUNT(with); i++) {
		Schedule s;
		Error err = {0};
		CHECK_INT(schedule_parse(with[i].schedule, &s, &err), 0);
		Kernel *k = kernel_simulated(with[i].trial, &s);
		CHECK_REPORT(k, "%s does not fit", with[i].schedule);
		if (k) {
			check_barriers(with[i].trial, k, with[i].spare);
			check_reads(with[i].trial, k);
		}
		kernel_unref(k);
	}
}

int main(int argc, char **argv)
{
	uint64_t state = strtoull(env_text("RICCI_SEED", "1"), NULL, 10);
	int wanted = atoi(env_text("RICCI_SCHEDULES", "3"));
	if (!oclgrind_start(argc, argv))
		return check_done();
	harness_grid = true;
	harness_backend = "opencl";
	check_mistakes();
	for (Trial *t = lower_cases(); t; t = t->next)
		if (trial_small(t))
			check_offers(t);
	Trial *list = grid_trials();
	for (int k = 0; k < COUNT(small); k++)
		list = harness_trials(&small[k], false, list);
	for (const Trial *t = list; t; t = t->next)
		if (trial_small(t)) {
			check_offers(t);
			check_random(t, wanted, &state);
		}
	oclgrind_done();
	return harness_done();
}
