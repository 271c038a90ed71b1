/* test_cost.c - prices of loop trees: what must be cheaper than what, and that offers go by them. */
#include "jit/lower.h"
#include "tests/check.h"

#include <math.h>

static double price_on(const Target *target, const char *task, const char *schedule)
{
	Error err = {0};
	Schedule s;
	Task *t = task_parse(task, &err);
	CHECK_REPORT(t && schedule_parse(schedule, &s, &err) == 0, "%s", err.text);
	double cycles = t ? lower_price(t, &s, target) : 0;
	if (t)
		task_free(t);
	return cycles;
}

/* The host's vectors, and caches that don't depend on it. */
static const Target *vectors_of(const Target *host)
{
	static Target target;
	target = *host;
	target.l1 = (size_t)48 << 10;
	target.l2 = (size_t)2 << 20;
	target.l3 = (size_t)32 << 20;
	return &target;
}

static double price(const char *task, const char *schedule)
{
	return price_on(vectors_of(target_host()), task, schedule);
}

#define SCALE(n)                                                                                   \
	"ricci-task 1\ninput f32 " #n "x64\ninput f32 64\n"                                        \
	"keep m0[i,j] = a0[i,j]*a1[j] where i<" #n ", j<64\n"

static void check_order(void)
{
	static const char *const gather = "move 0 1; vectorise 0; parallel 1";
	double lanes = price(SCALE(64), "vectorise 1; parallel 1");
	CHECK(lanes > 0 && isfinite(lanes));
	CHECK(price(SCALE(64), gather) > 2 * lanes);
	CHECK(price(SCALE(64), "parallel 1") > 2 * lanes);
	double fewer = price(SCALE(32), "vectorise 1; parallel 1"); /* all in the first cache */
	CHECK(lanes > 1.8 * fewer && lanes < 2.2 * fewer);
}

/* The same number of sums, in lines of the nearest cache and in lines from memory. */
static void check_memory(void)
{
	static const char *const near = "ricci-task 1\ninput f32 64x64\nkeep m0[i,k] += a0[i,j] "
					"where i<64, k<65536, j<64\n";
	static const char *const far = "ricci-task 1\ninput f32 4194304x64\n"
				       "keep m0[i] += a0[i,j] where i<4194304, j<64\n";
	CHECK(price(far, "vectorise 1; parallel 1") > 1.5 * price(near, "vectorise 2; parallel 1"));
}

#define CLASSES(apart)                                                                             \
	"ricci-task 1\ninput i32 33\ninput f32 33x64\n"                                            \
	"keep m0[i,a0[k]:" #apart "] += a1[k,i] where i<64, k<33\n"

/* Lines of few sets of a cache that are stored to again and again are written back each time. */
static void check_sets(void)
{
	static const char *const lanes = "move 0 1; vectorise 0";
	CHECK(price(CLASSES(512), lanes) > 4 * price(CLASSES(528), lanes));
}

#define DEEP_LINES(n, apart)                                                                       \
	"ricci-task 1\ninput f32 " #n "x" #apart "\ninput f32 " #n "x8\n"                          \
	"keep m0[i,j] += a0[k,j]*a1[k,i] where i<8, j<" #apart ", k<" #n "\n"

/* Lines of pages that no prefetcher keeps up with cost more than as many elements in lines of a page; backwards
 * costs little. */
static void check_places(void)
{
	static const char *const tile = "split 0 4; split 1 16; move 1 1; move 2 2; vectorise 4; "
					"unroll 3; parallel 2";
	static const char *const both = "ricci-task 1\ninput f32 1024\ninput f32 64x2048\n"
					"keep m0[i,j] += a0[k]*a1[i,%sj+k+%d] "
					"where i<64, j<512, k<1024\n";
	CHECK(price(DEEP_LINES(8192, 1024), tile) > 1.2 * price(DEEP_LINES(16384, 512), tile));
	char ahead[200], back[200];
	snprintf(ahead, sizeof ahead, both, "", 0);
	snprintf(back, sizeof back, both, "-", 1023);
	double forwards = price(ahead, "split 1 64; move 3 3; move 1 1; vectorise 3; parallel 2");
	double backwards = price(back, "split 1 64; move 3 3; move 1 1; vectorise 3; parallel 2");
	CHECK(backwards > forwards && backwards < 2.5 * forwards);
}

/* Places of a tile that overlap from one iteration to the next are read once. */
static void check_overlap(void)
{
	static const char *const task =
		"ricci-task 1\ninput f32 512x4x128\ninput f32 4x512x128\n"
		"keep m0[i,j] += i + k <= 511 ? a0[k,l,j]*a1[l,i+k,j] : 0 where i<512, j<128, "
		"k<512, l<4\n";
	static const char *const tile = "split 0 8; split 1 32; move 1 1; move 2 2; move 3 3; "
					"vectorise 5; unroll 4; parallel 1";
	CHECK(price(task, tile) < price(task, "move 1 3; vectorise 1; parallel 1"));
}

/* Lines that were read in the iteration before, but not in the last few, come again: each row of the result
 * reads all of the second matrix. */
static void check_again(void)
{
	static const char *const task =
		"ricci-task 1\ninput f32 256x256\ninput f32 128x256\n"
		"keep m0[i,j] += a1[i,k]*a0[k,j] where i<128, j<256, k<256\n";
	static const char *const tile = "split 0 8; split 1 32; move 1 1; move 2 2; vectorise 4; "
					"unroll 3; parallel 2";
	CHECK(price(task, tile) < price(task, "move 1 2; vectorise 1; parallel 1"));
}

/* Parts are four rows by 16 columns: what eight of them read, all columns, is near for the next four rows. */
static void check_period(void)
{
	static const char *const task =
		"ricci-task 1\ninput f32 512x128\ninput f32 64x512\n"
		"keep m0[i,j] += a1[i,k]*a0[k,j] where i<64, j<128, k<512\n";
	static const char *const tile = "split 0 4; split 1 16; move 1 1; move 2 2; vectorise 4; "
					"unroll 3; parallel 2";
	Target small = *vectors_of(target_host());
	small.l2 = (size_t)512 << 10;
	double near = price_on(&small, task, tile);
	small.l2 = (size_t)256 << 10;
	CHECK(near < 0.8 * price_on(&small, task, tile));
}

#define HALVES(n)                                                                                  \
	"ricci-task 1\ninput f32 1048576x" #n "\nkeep m0[j] += a0[k,j] where j<32, k<1048576\n"

/* Half of each line of 32 numbers is a line of the cache, each second one: that is as good as all of them. */
static void check_second_lines(void)
{
	static const char *const halves = "split 0 16; move 1 1; vectorise 2; parallel 1";
	CHECK(1.5 * price(HALVES(32), halves) < price(HALVES(64), halves));
}

/* Five results share what they read; products are added as they are made, while others are loaded. */
static void check_shared(void)
{
	static const char *const task =
		"ricci-task 1\ninput f32 10x1x5x5\ninput f32 64x1x28x12\n"
		"keep m0[i,j,k,l] += a1[i,0,k+m,l+n]*a0[j,0,m,n] where i<64, j<10, k<24, l<8, "
		"m<5, n<5\n";
	static const char *const five = "split 1 5; move 2 2; move 4 3; move 5 4; vectorise 3; "
					"unroll 6; parallel 1";
	CHECK(1.5 * price(task, five) < price(task, "move 3 5; vectorise 3; parallel 1"));
}

#define COLUMNS(n)                                                                                 \
	"ricci-task 1\ninput f32 128x" #n "\n"                                                     \
	"keep m0[i] += a0[k,i]*a0[k,i] where i<1024, k<128\n"

/* Lines that are a power of two apart share few places of a cache: they are gone before their neighbours are read. */
static void check_crowded(void)
{
	static const char *const columns = "split 1 64; vectorise 2; parallel 1";
	CHECK(price(COLUMNS(1024), columns) > 1.03 * price(COLUMNS(1040), columns));
}

/* The first step of a kind, for that axis, of the schedule that is offered first; a zeroed one: there is none. */
static ScheduleStep first_step(const char *task, StepKind kind, int axis)
{
	Error err = {0};
	Schedule s = {0};
	ScheduleStep found = {0};
	Task *t = task_parse(task, &err);
	CHECK_REPORT(t && schedule_offers(t, vectors_of(target_host()), 1, &s) == 1, "%s",
		     err.text);
	for (int k = s.n - 1; k >= 0; k--)
		if ((StepKind)s.step[k].kind == kind && s.step[k].axis == axis)
			found = s.step[k];
	if (t)
		task_free(t);
	return found;
}

#define WINDOW(value)                                                                              \
	"ricci-task 1\ninput f32 16x68x68\n"                                                       \
	"keep m0[i,j,k] += " value " where i<16, j<64, k<64, l<5, m<5\n"

#define FEW_ROWS(m, n)                                                                             \
	"ricci-task 1\ninput f32 " #m "x3072\ninput f32 3072x" #n "\n"                             \
	"keep m0[i,j] += a0[i,k]*a1[k,j] where i<" #m ", j<" #n ", k<3072\n"

/* So do short runs in L2: a second tile of rows reads a strip of columns from farther. And such products are offered
 * in panels of few rows of B first, each of which is read along a block of columns; but AVX2's panels of six rows would
 * have them from L2 for each but the first, so that B is packed for several. */
static void check_few_rows(void)
{
	enum { DEEP = 2, ROWS = 32 };
	static const char *const tile = "split 0 4; split 1 16; move 1 1; move 2 2; vectorise 4; "
					"unroll 3; parallel 2";
	if (target_host()->vector_bytes < 32) /* products take longer than the lines do */
		return;
	CHECK(price(FEW_ROWS(16, 1024), tile) > 1.3 * price(FEW_ROWS(16, 1040), tile));
	ScheduleStep deep = first_step(FEW_ROWS(6, 1024), STEP_BLOCK, DEEP);
	CHECK(deep.kind == STEP_BLOCK && deep.arg <= ROWS);
	deep = first_step(FEW_ROWS(16, 1024), STEP_BLOCK, DEEP);
	CHECK(deep.kind == STEP_BLOCK);
	CHECK_INT(deep.arg <= ROWS, target_host()->vector_bytes >= 64);
}

/* The gradient of a layer's weights, whose rows along K lie a power of two apart: panels of an operand in place drive
 * each other from L1, and results are not stored across. */
static void check_weight_gradient(void)
{
	static const char *const task = "ricci-task 1\ninput f32 256x512\ninput f32 256x1024\n"
					"keep m0[i,j] += a1[k,i]*a0[k,j] "
					"where i<1024, j<512, k<256\n";
	if (target_host()->vector_bytes < 64)
		return;
	const ScheduleStep way = first_step(task, STEP_TENSORISE, 0);
	CHECK(way.kind == STEP_TENSORISE);
	CHECK_INT(way.arg, 0);
	CHECK_INT(first_step(task, STEP_UNPACKED, 0).arg, 0);
}

/* Functions are not written out at each point of a window. */
static void check_windows(void)
{
	/* Of a depthwise convolution's 25 products each waits for the one before. */
	if (target_host()->vector_bytes == 32)
		CHECK(first_step("ricci-task 1\ninput f32 4x96x56x56\ninput f32 96x5x5\n"
				 "keep m0[i,j,k,l] += (a0[i,j,k+m-2,l+n-2] else 0)*a1[j,m,n] "
				 "where i<4, j<96, k<56, l<56, m<5, n<5\n",
				 STEP_UNROLL, 4)
			      .kind != STEP_UNROLL);
	/* And of its weights' gradient, channels in lanes, those of a line share what they are multiplied by. */
	if (target_host()->vector_bytes >= 32)
		CHECK_INT(first_step("ricci-task 1\ninput f32 4x28x28x128\ninput f32 4x28x28x128\n"
				     "keep m0[i,j,k] += a1[l,m,n,k]*(a0[l,i+m-3,j+n-3,k] else 0) "
				     "where i<7, j<7, k<128, l<4, m<28, n<28\n",
				     STEP_UNROLL, 1)
				  .kind,
			  STEP_UNROLL);
	if (target_host()->vector_bytes < 64) /* others are not offered such windows first */
		return;
	CHECK_INT(first_step(WINDOW("a0[i,j+l,k+m]"), STEP_UNROLL, 3).kind, STEP_UNROLL);
	CHECK(first_step(WINDOW("exp(a0[i,j+l,k+m])"), STEP_UNROLL, 3).kind != STEP_UNROLL);
}

/* A tile of sums is worth little where the compiler has vectors in memory between operations. */
static void check_spills(void)
{
	static const char *const task =
		"ricci-task 1\ninput f32 64x64x3x3\ninput f32 16x64x8x8\n"
		"keep m0[i,j,k,l] += (a1[i,o,k+m-1,l+n-1] else 0)*a0[j,o,m,n] "
		"where i<16, j<64, k<8, l<8, m<3, n<3, o<64\n";
	static const char *const tile = "split 1 8; move 2 2; move 4 3; move 5 4; move 6 5; "
					"vectorise 3; unroll 7; parallel 2";
	static const char *const plain = "move 3 6; vectorise 3; parallel 2";
	const double spilt = price_on(vectors_of(target_unmasked()), task, tile);
	CHECK(spilt > 2 * price(task, tile));
	CHECK(price_on(vectors_of(target_unmasked()), task, plain) / spilt <
	      price(task, plain) / price(task, tile) / 1.5);
}

/* 18 vectors of sums: all in registers where there are 32, but not where there are 16. */
static void check_registers(void)
{
	static const char *const task = "ricci-task 1\ninput f32 8x16x16x16\ninput f32 8x16x18x18\n"
					"keep m0[i,j,k,l] += a0[m,i,n,o]*a1[m,j,k+n,l+o] "
					"where i<16, j<16, k<3, l<3, m<8, n<16, o<16\n";
	static const char *const taps = "move 4 2; move 5 3; move 6 4; vectorise 6; unroll 2; "
					"unroll 3; parallel 2";
	Target few = *vectors_of(target_host());
	few.isa &= ~(unsigned)(ISA_AVX512 | ISA_NEON);
	few.vector_bytes = 32;
	Target many = few;
	many.isa |= ISA_AVX512;
	CHECK(price_on(&few, task, taps) > 1.2 * price_on(&many, task, taps));
}

/* A function that a kernel calls has no price. */
static void check_calls(void)
{
	CHECK(!isfinite(price("ricci-task 1\ninput f32 64x512\n"
			      "keep m0[i,j] += a0[i,k] where k<j+1, i<64, j<512\n",
			      "carry 1; move 2 1; vectorise 1; parallel 1")));
	CHECK(!isfinite(price(SCALE(64), "split 7 3")));
}

static bool begins_with_stages(const char *task)
{
	Error err = {0};
	Schedule s[8];
	Task *t = task_parse(task, &err);
	CHECK_REPORT(t != NULL, "%s", err.text);
	int n = t ? schedule_offers(t, vectors_of(target_host()), COUNT(s), s) : 0;
	CHECK(n > 0);
	if (t)
		task_free(t);
	return n > 0 && s[0].step[0].kind == STEP_WINOGRAD;
}

/* Stages whose products are fewer come first; but not where what moves elements between them has two lanes, and each a
 * condition of its own: a phase of a strided convolution's gradient, of 6 x 6 places. */
static void check_stages(void)
{
	CHECK(begins_with_stages("ricci-task 1\ninput f32 16x128x16x16\ninput f32 128x128x3x3\n"
				 "keep m0[i,j,k,l] += (a0[i,o,k+m-1,l+n-1] else 0)*a1[j,o,m,n] "
				 "where i<16, j<128, k<16, l<16, m<3, n<3\n"));
	CHECK(!begins_with_stages(
		"ricci-task 1\ninput f32 8x16x32x6x6\ninput f32 8x32x64x9x9\n"
		"keep m0[i,j,k,l] += 0 <= k-m && k-m <= 5 && 0 <= l-n && l-n <= 5 ? "
		"a0[o,i,p,k-m,l-n]*a1[o,p,j,2*m,2*n] : 0 where i<16, j<64, k<10, l<10, m<5, "
		"n<5\n"));
}

/* The first offer is near the cheapest, and none is hopeless. */
static void check_offers(void)
{
	static const char *const task[] = {
		SCALE(64),
		"ricci-task 1\ninput f32 64x48\nkeep m0[i,j] = a0[j,i] where i<48, j<64\n",
		"ricci-task 1\ninput f32 256x300\nkeep m0[j] += a0[i,j] where i<256, j<300\n",
		"ricci-task 1\ninput f32 8x96x96\ninput f32 8x3x3\n"
		"keep m0[c,p,q] += (a0[c,p+r-1,q+s-1] else 0)*a1[c,r,s] where p<96, q<96\n",
		/* a place of the result that two indices make */
		"ricci-task 1\ninput f32 32x32x4x4x4x4\ninput f32 32x512x10x4x4\n"
		"keep m0[16*l+m:512,i,j,k] += a1[n,16*l+m,i,o,k]*a0[n,l,m/4,m%4,o,j] "
		"where i<10, j<4, k<4, l<32, m<16, n<32, o<4\n",
		/* rows, of few places each */
		"ricci-task 1\ninput f32 32x512x10\n"
		"local m0[i,j] max= a0[i,j,k] where i<32, j<512, k<10\n"
		"local m1[i,j,k] = exp(a0[i,j,k] - m0[i,j]) where i<32, j<512, k<10\n"
		"local m2[i,j] += m1[i,j,k] where i<32, j<512, k<10\n"
		"keep m3[i,j,k] = m1[i,j,k]/m2[i,j] where i<32, j<512, k<10\n",
	};
	for (int k = 0; k < COUNT(task); k++) {
		Error err = {0};
		Schedule s[8];
		double cycles[8], least = INFINITY;
		Task *t = task_parse(task[k], &err);
		CHECK_REPORT(t != NULL, "%s", err.text);
		int n = t ? schedule_offers(t, vectors_of(target_host()), COUNT(s), s) : 0;
		CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			cycles[i] = lower_price(t, &s[i], vectors_of(target_host()));
			least = fmin(least, cycles[i]);
		}
		CHECK_REPORT(!isfinite(cycles[0]) || cycles[0] <= 1.25 * least, "task %d", k);
		for (int i = 0; i < n; i++)
			CHECK(!isfinite(cycles[i]) || cycles[i] <= 4 * least);
		if (t)
			task_free(t);
	}
}

int main(void)
{
	check_order();
	check_memory();
	check_places();
	check_sets();
	check_registers();
	check_overlap();
	check_again();
	check_period();
	check_second_lines();
	check_shared();
	check_crowded();
	check_few_rows();
	check_weight_gradient();
	check_windows();
	check_spills();
	check_calls();
	check_stages();
	check_offers();
	return check_done();
}
