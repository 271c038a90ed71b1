/* test_cuda_schedules.c - random schedules for a grid: whatever the blocks, threads, tiles and pieces, the
 * numbers stay, no thread races with another of its block, and all come to each barrier. What does not
 * fit is refused by name. On the stand-in for CUDA, whose threads take turns at barriers in random order. */
#include "tests/jit/cuda_stand_in.h"
#include "tests/jit/grid_cases.h"
#include "tests/jit/grid_schedules.h"

/* Schedules that cache reads; for tensor cores, of tf32, of groups of warps; with copies past the registers, of 16 bytes; that ask for memory. */
static int cached, fragments, words, groups, copies, vectors, large;

static void fill_offers(Trial *t, int wanted)
{
	uint64_t state = (uint64_t)(harness_random() * 0x1p62);
	Schedule offer = t->offer[0];
	t->noffer = 0;
	for (int k = 0; k < 2000 && t->noffer < wanted; k++) {
		Error err = {0};
		t->offer[t->noffer] = grid_schedule_random(&t->task, &offer, &state);
		Kernel *kernel = kernel_lower(&t->task, &t->offer[t->noffer], backend_find("nvrtc"),
					      target_grid(true), &err);
		CHECK_REPORT(kernel || (err.code == RICCI_EINVAL &&
					strncmp(err.text, "schedule: ", 10) == 0),
			     "%s: %s", t->text, err.text);
		/* Steps of a processor alone are the default. */
		bool mine = kernel && !memcmp(&kernel->schedule, &t->offer[t->noffer],
					      sizeof kernel->schedule);
		fragments += mine && strstr(kernel->source, "  ricci_mma_") != NULL;
		words += mine && strstr(kernel->source, "  ricci_mma_tf32(") != NULL;
		groups += mine && strstr(kernel->source, "  ricci_group_mma_") != NULL;
		cached += mine && schedule_find(&kernel->schedule, STEP_CACHE_READ) &&
			  strstr(kernel->source, "__syncthreads()") != NULL;
		copies += mine && strstr(kernel->source, "  ricci_copy(") != NULL;
		vectors += mine && strstr(kernel->source, ", 16, (") != NULL;
		large += mine && kernel->shape.block > 0;
		t->noffer += mine;
		kernel_unref(kernel);
	}
	CHECK(t->noffer > 0);
}

static void check_misfit(const Trial *t, const char *text, const char *message)
{
	Schedule s;
	Error err = {0};
	CHECK_INT(schedule_parse(text, &s, &err), 0);
	Kernel *k = kernel_lower(&t->task, &s, backend_find("nvrtc"), target_grid(true), &err);
	CHECK(k == NULL);
	CHECK_STR(err.text, message);
	kernel_unref(k);
}

/* On the product of 33x39 and 39x43. */
static void check_misfits(const Trial *t)
{
	check_misfit(t, "threads 2000", "schedule: blocks of 2000 threads are none of this nest");
	check_misfit(
		t, "threads 64; parallel 2; thread 0 0",
		"schedule: only reduced loops run along the threads of a block, and behind the "
		"parallel ones");
	check_misfit(t, "threads 32; parallel 2; thread 2 0",
		     "schedule: a block has too few threads for its thread loops");
	check_misfit(t, "threads 64; parallel 1; thread 2 0",
		     "schedule: where threads add up, all other loops of the results are parallel");
	check_misfit(t, "tensorise 0; threads 64",
		     "schedule: a contraction on a grid needs sizes of its blocks");
	check_misfit(
		t, "tensorise 0; block 0 32; block 1 32; block 2 8; tile 0 4; tile 1 4; threads 32",
		"schedule: a block has another number of threads than its tile");
	check_misfit(t, "threads 64; parallel 2; cache-read 1",
		     "schedule: on a grid reads are cached of the parallel loops that are the 64 "
		     "parts of "
		     "a block together, where nothing is reduced");
	check_misfit(t, "threads 64; atomic; parallel 2",
		     "schedule: nothing is combined by atomic instructions here");
	check_misfit(t,
		     "tensorise 0; block 0 256; block 1 256; block 2 32; tile 0 8; tile 1 8; "
		     "threads 1024",
		     "schedule: a tile has no room in registers or in the block's memory");
	check_misfit(t,
		     "tensorise 0; block 0 32; block 1 32; block 2 8; tile 0 4; tile 1 4; "
		     "rfactor 9; threads 64",
		     "schedule: K can't be cut into so many pieces");
}

/* Where results must have the same bits in every run, sums of floats are no atomic ones; what any order gives
 * alike may be. */
static void check_ordered(void)
{
	static const struct {
		Case scatter;
		bool any_order;
	} with[] = {
		{{"Y[T[i]:5,d] += X[i,d] where i<20", "T=20:i32 X=20x3"}, false},
		{{"Y[T[i]:5,d] += X[i,d] where i<20", "T=20:i32 X=20x3:bf16"}, false},
		{{"Y[T[i]:5,d] max= X[i,d] where i<20", "T=20:i32 X=20x3:f64"}, true},
		{{"Y[T[i]:5,d] += X[i,d] where i<20", "T=20:i32 X=20x3:i64"}, true},
	};
	for (int k = 0; k < COUNT(with); k++) {
		const Trial *t = harness_trials(&with[k].scatter, false, NULL);
		Schedule offer[8];
		int n = schedule_offers(&t->task, target_grid(true), COUNT(offer), offer),
		    with_atomics = 0;
		for (int i = 0; i < n; i++)
			with_atomics += schedule_find(&offer[i], STEP_ATOMIC) != NULL;
		CHECK(schedule_find(&offer[0], STEP_ATOMIC) && with_atomics < n);
		n = schedule_offers(&t->task, target_ordered(target_grid(true)), COUNT(offer),
				    offer);
		with_atomics = 0;
		for (int i = 0; i < n; i++)
			with_atomics += schedule_find(&offer[i], STEP_ATOMIC) != NULL;
		CHECK((with_atomics > 0) == with[k].any_order);
	}
}

/* What tensor cores multiply goes there, and nothing else; reads across lines go through the blocks' memory
 * where there are lines and blocks enough. */
static void check_first(void)
{
	static const struct {
		Case of;
		bool fragments, cached;
	} with[] = {
		{{"Y[i,j] += tf32(A[i,k])*tf32(B[k,j])", "A=256x256 B=256x256"}, true, false},
		{{"Y[i,j] += tf32(A[i,k])*f32(B[k,j])", "A=256x256 B=256x256:f16"}, true, false},
		{{"Y[i,j] += f32(A[i,k])*f32(B[k,j])", "A=256x256:bf16 B=256x256:bf16"},
		 true,
		 false},
		{{"Y[i,j] += tf32(A[i,k])*tf32(B[k,j])", "A=6000x64 B=64x6000"}, true, false},
		{{"Y[i,j] += tf32(A[i,k])*B[k,j]", "A=256x256 B=256x256"}, true, false},
		{{"Y[i,j] += A[i,k]*B[k,j]", "A=1000x300 B=300x1000"}, true, false},
		{{"Y[i,j] += tf32(A[i,k])*tf32(B[k,j])", "A=99x99:f64 B=99x99:f64"}, false, false},
		{{"Y[i,j] = A[j,i]", "A=2048x1000"}, false, true},
		{{"Y[b,i,j] = A[b,j,i]+B[b,i,j]", "A=64x63x63:i8 B=64x63x63:i8"}, false, false},
		{{"Y[n,c,p,q] = A[n,p,q,c]", "A=16x14x14x512:f64"}, false, true},
		{{"Y[i,j] = A[i,j]", "A=2048x1000"}, false, false},
		{{"Y[i,j] = A[j,i]", "A=40x30"}, false, false},
		{{"Y[] = A[]", "A="}, false, false},
		{{"Y[i,j] = A[j,i]", "A=3x2000000"}, false, false},
	};
	for (int k = 0; k < COUNT(with); k++) {
		const Trial *t = harness_trials(&with[k].of, false, NULL);
		Schedule first;
		CHECK_INT(schedule_offers(&t->task, target_grid(true), 1, &first), 1);
		const ScheduleStep *step = schedule_find(&first, STEP_TENSORISE);
		CHECK_REPORT((step && step->arg & TENSORISE_NARROW) == with[k].fragments, "%s",
			     t->text);
		CHECK_REPORT((schedule_find(&first, STEP_CACHE_READ) != NULL) == with[k].cached,
			     "%s", t->text);
	}
}

static bool fits(const Task *task, const Schedule *s)
{
	Error err = {0};
	Kernel *k = kernel_lower(task, s, backend_find("nvrtc"), target_groups(), &err);
	/* Steps of a processor alone are the default. */
	bool mine = k && !memcmp(&k->schedule, s, sizeof *s);
	kernel_unref(k);
	error_clear(&err);
	return mine;
}

/* Searches walk by changes of what is offered: most fit, and so does what is crossed of two contractions. */
static void check_changes(const Trial *t)
{
	enum { CHANGES = 60 };
	uint64_t state = 9;
	Schedule offer[8];
	int n = schedule_offers(&t->task, target_groups(), COUNT(offer), offer);
	int changed = 0, crossed = 0;
	for (int k = 0; k < CHANGES; k++) {
		Schedule s = offer[random_below(&state, (uint64_t)n)];
		const Schedule *other = &offer[random_below(&state, (uint64_t)n)];
		bool tiles = s.step[0].kind == STEP_TENSORISE;
		schedule_cross(&s, other, &state);
		crossed += !tiles || fits(&t->task, &s);
		schedule_mutate(&s, schedule_axes(&t->task), &state);
		changed += fits(&t->task, &s);
	}
	CHECK_REPORT(crossed == CHANGES, "%s: %d of %d crossed fit", t->text, crossed, CHANGES);
	CHECK_REPORT(changed > CHANGES / 3, "%s: %d of %d changes fit", t->text, changed, CHANGES);
}

int main(void)
{
	void *fake = cuda_stand_in();
	CHECK_REPORT(fake, "the stand-in for CUDA isn't there: %s", dlerror());
	if (!fake)
		return harness_done();
	harness_grid = true;
	harness_seed = (uint64_t)atoll(env_text("RICCI_SEED", "3"));
	int wanted = atoi(env_text("RICCI_SCHEDULES", "8"));
	wanted = wanted < HARNESS_OFFERS ? wanted : HARNESS_OFFERS - 1;
	harness_values = false;
	check_ordered();
	check_first();
	harness_values = true;
	Trial *list = grid_trials();
	check_misfits(list->next);
	for (Trial *t = list; t; t = t->next) {
		check_changes(t);
		fill_offers(t, wanted);
	}
	CHECK_REPORT(cached > 0 && fragments > words && words > 0 && groups > 0 && copies > 0 &&
			     vectors > 0 && large > 0,
		     "cached %d, fragments %d, of words %d, of groups %d, copies %d, vectors %d, "
		     "large %d",
		     cached, fragments, words, groups, copies, vectors, large);
	harness_check(list, backend_find("nvrtc"), 200);
	return harness_done();
}
