/* test_cuda_schedules.c - random schedules for a grid: whatever the blocks, threads, tiles and pieces, the
 * numbers stay, no thread races with another of its block, and all come to each barrier. What does not
 * fit is refused by name. On the stand-in for CUDA, whose threads take turns at barriers in random order. */
#include "tests/jit/cuda_stand_in.h"
#include "tests/jit/lower_harness.h"

static const Case cases[] = {
	{"Y[i,j] = A[j,i] + B[i]", "A=33x17 B=17"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=33x39 B=39x43"},
	{"Y[b,i,j] += A[b,k,i]*B[j,k]", "A=2x37x20:f16 B=33x37:f16"},
	{"Y[n,k,p,q] += (X[n,c,2*p+r-1,2*q+s-1] else 0)*W[k,c,r,s] where p<5, q<6",
	 "X=2x3x9x11 W=7x3x3x3"},
	{"Y[i,j] += f32(A[i,k])*f32(B[j,k])", "A=37x50:bf16 B=41x50:bf16"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=40x72:bf16 B=72x136:bf16"},
	{"Y[i,j] += f32(A[i,k])*f32(B[k,j])", "A=40x72:f16 B=72x136:f16"},
	{"Y[b,i,j] += A[b,k,i]*B[j,k]", "A=2x40x24 B=33x40"},
	{"Y[n,k,p,q] += f32(bf16(X[n,c,p+r-1,q+s-1] else 0))*f32(W[k,c,r,s]) where p<5, q<6",
	 "X=2x3x5x6 W=7x3x3x3:bf16"},
	{"Y[n,k,p,q] += f32(f16(X[n,c,p+r-1,q+s-1] else 0))*f32(W[k,c,r,s]) where p<5, q<6",
	 "X=2x3x5x6 W=7x3x3x3:f16"},
	{"Y[i] += T[j]*A[i,j/3]", "T=31 A=9x11"},
	{"Y[i] max= A[i,j,k] - B[j]", "A=7x13x10 B=13"},
	{"Y[k] += A[i,j,k]; Z[k] = Y[k] + k", "A=23x11x5:f64"},
	{"Y[] += A[i,j]*A[i,j]", "A=31x45"},
	{"Y[] *= 1 + A[i]/64", "A=70"},
	{"Y[T[i]:5,d] += X[i,d] where i<20, d<19", "T=20:i32 X=20x19:bf16"},
	{"Y[i,j] += f32(A[i,k])*B[j,k]", "A=20x33:i8 B=19x33"},
	{"V[b,k,p,i,j] += P[b,c,2*p+r,i,t]*W[k,c,r,t,j]", "P=2x3x9x4x4 W=5x3x3x4x4"},
};

static const Case rows[] = {
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 "X=9x50"},
	{"M[i] += X[i,j]/96; Y[i,j] = X[i,j]-M[i]; g[j] += D[i,j]*(X[i,j]-M[i]); b[j] += D[i,j]",
	 "X=37x96 D=37x96"},
	{"s[h,i] += X[h,i,j]; Y[h,i,j] = X[h,i,j]*s[h,i]; c[j] += X[h,i,j]-s[h,i]; p[] *= "
	 "1+0.001*s[h,i]",
	 "X=5x7x20"},
	{"t[h,i,j] = exp(X[h,i,j]); Y[h,i,j] = t[h,i,j]+t[h,i,29-j]; c[j] += t[h,i,j]; Z[h,i,j] = "
	 "t[h,i,j]*W[j]",
	 "X=3x5x30:bf16 W=30:bf16"},
};

static int below(int n)
{
	return (int)(harness_random() * n);
}

/* Loops of a nest of n: split, moved, along threads. */
static void add_loops(Schedule *s, int n)
{
	int loops = n;
	for (int steps = below(6); steps > 0; steps--) {
		int axis = below(loops), what = below(5);
		if (what < 2) {
			schedule_add(s, STEP_SPLIT, axis, 1 + below(what ? 9 : 32));
			loops++;
		} else if (what == 2) {
			schedule_add(s, STEP_MOVE, axis, below(loops));
		} else if (what == 3) {
			schedule_add(s, STEP_UNROLL, axis, 0);
		} else {
			schedule_add(s, STEP_MOVE, axis, loops - 1);
			schedule_add(s, STEP_THREAD, axis, below(2));
		}
	}
	if (below(4) == 0) {
		schedule_add(s, STEP_MOVE, below(loops), 0);
		schedule_add(s, STEP_RFACTOR, 0, 1);
	}
	schedule_add(s, STEP_PARALLEL, 0, below(loops + 1));
}

static Schedule random_nest(int n)
{
	Schedule s = {0};
	schedule_add(&s, STEP_THREADS, 0, below(2) ? 1 << below(9) : 1 + below(100));
	if (below(4) == 0)
		schedule_add(&s, STEP_TILE, 0, 1 + below(5));
	add_loops(&s, n);
	return s;
}

static Schedule random_tiles(void)
{
	Schedule s = {0};
	int size[2], own[2];
	bool fragments = below(2);
	for (int d = 0; d < 2; d++) {
		own[d] = 1 << below(5);
		size[d] = fragments ? own[d] * (d ? 4 : 8) << below(3) : 4 << below(5);
	}
	schedule_add(&s, STEP_TENSORISE, 0, below(2) + (fragments ? TENSORISE_NARROW : 0));
	for (int d = 0; d < 2; d++) {
		schedule_add(&s, STEP_BLOCK, d, size[d]);
		schedule_add(&s, STEP_TILE, d, own[d]);
	}
	schedule_add(&s, STEP_BLOCK, 2, fragments ? 16 << below(2) : 4 << below(4));
	if (below(2))
		schedule_add(&s, STEP_RFACTOR, 0, 1 + below(4));
	schedule_add(&s, STEP_THREADS, 0, size[0] / own[0] * (size[1] / own[1]));
	return s;
}

/* Of a kernel that runs row by row: a block for each, mostly. */
static Schedule random_rows(const Task *t)
{
	Schedule s = {0};
	schedule_add(&s, STEP_ROWS, 0, 1 + below(t->sub.rows));
	schedule_add(&s, STEP_THREADS, 0, below(2) ? 1 << below(8) : 1 + below(70));
	if (below(4) == 0)
		schedule_add(&s, STEP_PARALLEL, 0, 1);
	const RowLoops *loops = &t->sub.loops[s.step[0].arg - 1];
	for (int k = 0; k < t->sub.nmember; k = loops->end[k])
		if (below(3)) {
			schedule_add(&s, STEP_MEMBER, k, 0);
			add_loops(&s, comp_naxis(t->sub.member[k]) - (int)s.step[0].arg);
		}
	return s;
}

/* Random ones instead of those offered, or changes of these. */
static Schedule random_schedule(const Trial *t, const Schedule *offer)
{
	uint64_t state = (uint64_t)(harness_random() * 0x1p62);
	Schedule s = *offer;
	if (below(3) == 0) {
		for (int k = 1 + below(3); k > 0; k--)
			schedule_mutate(&s, schedule_axes(&t->task), &state);
		return s;
	}
	if (t->task.sub.rows)
		return random_rows(&t->task);
	return below(2) ? random_nest(schedule_axes(&t->task)) : random_tiles();
}

/* Schedules for tensor cores; with copies past the registers, of 16 bytes; that ask for memory. */
static int fragments, copies, vectors, large;

static void fill_offers(Trial *t, int wanted)
{
	Schedule offer = t->offer[0];
	t->noffer = 0;
	for (int k = 0; k < 2000 && t->noffer < wanted; k++) {
		Error err = {0};
		t->offer[t->noffer] = random_schedule(t, &offer);
		Kernel *kernel = kernel_lower(&t->task, &t->offer[t->noffer], backend_find("nvrtc"),
					      target_grid(true), &err);
		CHECK_REPORT(kernel || (err.code == RICCI_EINVAL &&
					strncmp(err.text, "schedule: ", 10) == 0),
			     "%s: %s", t->text, err.text);
		/* Steps of a processor alone are the default. */
		bool mine = kernel && !memcmp(&kernel->schedule, &t->offer[t->noffer],
					      sizeof kernel->schedule);
		fragments += mine && strstr(kernel->source, "ricci_mma_") != NULL;
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
	check_misfit(t,
		     "tensorise 0; block 0 256; block 1 256; block 2 32; tile 0 8; tile 1 8; "
		     "threads 1024",
		     "schedule: a tile has no room in registers or in the block's memory");
	check_misfit(t,
		     "tensorise 0; block 0 32; block 1 32; block 2 8; tile 0 4; tile 1 4; "
		     "rfactor 9; threads 64",
		     "schedule: K can't be cut into so many pieces");
}

static bool fits(const Task *task, const Schedule *s)
{
	Error err = {0};
	Kernel *k = kernel_lower(task, s, backend_find("nvrtc"), target_grid(true), &err);
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
	int n = schedule_offers(&t->task, target_grid(true), COUNT(offer), offer);
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
	Trial *list = NULL;
	void *fake = cuda_stand_in();
	CHECK_REPORT(fake, "the stand-in for CUDA isn't there: %s", dlerror());
	if (!fake)
		return harness_done();
	harness_grid = true;
	harness_seed = (uint64_t)atoll(env_text("RICCI_SEED", "2"));
	int wanted = atoi(env_text("RICCI_SCHEDULES", "8"));
	wanted = wanted < HARNESS_OFFERS ? wanted : HARNESS_OFFERS - 1;
	for (int k = COUNT(cases) - 1; k >= 0; k--)
		list = harness_trials(&cases[k], false, list);
	check_misfits(list->next);
	for (int k = 0; k < COUNT(rows); k++) {
		Trial *t = harness_rows(&rows[k]);
		t->next = list;
		list = t;
	}
	for (Trial *t = list; t; t = t->next) {
		check_changes(t);
		fill_offers(t, wanted);
	}
	CHECK_REPORT(fragments > 0 && copies > 0 && vectors > 0 && large > 0,
		     "fragments %d, copies %d, vectors %d, large %d", fragments, copies, vectors,
		     large);
	harness_check(list, backend_find("nvrtc"), 200);
	return harness_done();
}
