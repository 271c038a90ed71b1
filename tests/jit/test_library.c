/* test_library.c - contractions by a library's matrix product: whichever operands are turned, with
 * loops around it, in blocks that don't fit evenly, with members; and which are left alone. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "jit/library/library.h"
#include "tests/child.h"
#include "tests/jit/lower_harness.h"

#include <dirent.h>
#include <sched.h>

static const char *const blocks[] = {"", "; block 0 7; block 1 5", "; block 0 1; block 1 1000"};

static const Case products[] = {
	{"Y[i,j] += A[i,k] * B[k,j]", "A=30x21 B=21x17"},
	{"Y[i,j] += A[k,i] * B[k,j]", "A=21x30 B=21x17"},
	{"Y[i,j] += A[i,k] * B[j,k]", "A=30x21 B=17x21"},
	{"Y[i,j] += A[k,i] * B[j,k]", "A=21x30 B=17x21"},
	{"Y[j,i] += A[i,k] * B[k,j]", "A=30x21 B=21x17"}, /* the result turned: operands swap */
	{"Y[i,j] += A[i,k] * B[k,j]", "A=12x9:f64 B=9x8:f64"},
	{"Y[b,i,j] += A[b,i,k] * B[b,k,j]", "A=3x10x11 B=3x11x12"},
	{"Y[i,j] += A[b,i,k] * B[k,b,j]", "A=3x10x11 B=11x3x12"}, /* two reduced: one is a loop */
	{"Y[i,b,j] += A[i,b,k] * B[k,j]", "A=6x5x7 B=7x9"},
	/* channels last: each place of the kernel is a product */
	{"Y[b,p,q,k] += X[b,2*p+r,q+s,c] * W[r,s,c,k]", "X=2x9x8x5 W=3x3x5x6"},
	/* the result is in no order that a product could write: a block is copied */
	{"Y[i,c,j,d] += A[c,i,k] * B[k,d,j]", "A=3x8x9 B=9x4x7"},
};
static const Case fused[] = {
	{"Z[i,j] += A[i,k] * B[k,j]; Y[i,j] = max(Z[i,j] + C[j], 0)", "A=30x21 B=21x17 C=17"},
	{"Z[i,j] += A[i,k] * B[k,j]; Y[i,j] = Z[i,j] * Z[i,j]; V[i,j] = Y[i,j] - Z[i,j]",
	 "A=13x21 B=21x19"},
};
static const Case others[] = {
	{"Y[i,j] += exp(A[i,k]) * B[k,j]", "A=9x8 B=8x7"},
	{"Y[i,j] += A[i,2*k] * B[k,j]", "A=9x16 B=8x7"},
	{"Y[p,k] += (X[p+r-1,c] else 0) * W[r,c,k] where p<9", "X=9x8 W=3x8x7"},
	{"Y[i,j] max= A[i,k] * B[k,j]", "A=9x8 B=8x7"},
	{"Y[i] += A[i,k] * B[k]", "A=9x8 B=8"},
	{"Y[i,j] += A[i,k] * B[k,j]", "A=9x8:bf16 B=8x7:bf16"},
	{"Y[i,j] += A[i,k] * B[k,j]", "A=9x8:i32 B=8x7:i32"},
};

static void test_product(const Trial *t, int library, const Backend *b)
{
	const char *function = library_row(library)->product[t->task.sub.member[0]->type];
	for (int k = 0; k < COUNT(blocks); k++) {
		Schedule s;
		Text text = {0};
		Error err = {0};
		text_add(&text, "library %d%s", library, blocks[k]);
		CHECK_INT(schedule_parse(text.s, &s, &err), 0);
		Kernel *made = kernel_make(&t->task, &s, b, target_host(), &err);
		if (function)
			CHECK_REPORT(made && made->source && strstr(made->source, function),
				     "%s [%s]: %s", t->text, text.s, err.text);
		else
			CHECK(!made && strstr(err.text, " has no product of f64"));
		if (made)
			harness_run(t, made);
		kernel_unref(made);
		text_free(&text);
	}
}

static void test_products(int library, const Case *c, int n, bool fuse)
{
	char why[200];
	for (int k = 0; k < n; k++) {
		Trial *t = harness_trials(&c[k], fuse, NULL);
		test_product(t, library, backend_find("tcc"));
		if (k % 4 == 0 && backend_find("cc")->available(why, sizeof why))
			test_product(t, library, backend_find("cc"));
	}
}

static void test_others(int library)
{
	for (int k = 0; k < COUNT(others); k++) {
		Trial *t = harness_trials(&others[k], false, NULL);
		Schedule s = {0};
		Error err = {0};
		schedule_add(&s, STEP_LIBRARY, 0, library);
		CHECK(!kernel_lower(&t->task, &s, backend_find("tcc"), target_host(), &err));
		CHECK_STR(err.text,
			  "schedule: library needs a sum of products of two tensors, each "
			  "contiguous along an index of its own or a reduced one");
	}
}

static int library_count(const Trial *t)
{
	int n = 0;
	for (int k = 0; k < t->noffer; k++)
		n += t->offer[k].step[0].kind == STEP_LIBRARY;
	return n;
}

/* Worth a call: offered by each library that is there, and never as the first. Too small, or
 * nothing for it: not offered. */
static void test_offers(int there)
{
	const Case large = {"Y[i,j] += A[i,k] * B[k,j]", "A=128x16 B=16x128"};
	const Case small = {"Y[b,i,j] += A[b,i,k] * B[b,k,j]", "A=64x4x4 B=64x4x4"};
	Trial *t = harness_trials(&large, false, NULL);
	CHECK_INT(library_count(t), 2 * there);
	CHECK(t->offer[0].step[0].kind != STEP_LIBRARY);
	CHECK_INT(library_count(harness_trials(&small, false, NULL)), 0);
	CHECK_INT(library_count(harness_trials(&others[2], false, NULL)), 0);
}

/* Those are test_cublaslt's and test_cudnn's. */
static bool on_devices(int library)
{
	return library_row(library)->calls;
}

static int thread_count(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

/* A library that is opened starts no threads of its own, which may be more than the process is
 * allowed, and leaves its caller the processors that it had. */
static int open_all(void)
{
	cpu_set_t before, after;
	int threads = thread_count();
	sched_getaffinity(0, sizeof before, &before);
	for (int n = 0; library_name(n); n++)
		if (!on_devices(n))
			library_available(n, NULL, 0);
	sched_getaffinity(0, sizeof after, &after);
	return !CPU_EQUAL(&before, &after) || thread_count() != threads;
}

int main(void)
{
	Schedule none = {0}, unknown = {0};
	int there = 0, n = 0;
	CHECK_INT(child(open_all), 0);
	for (; library_name(n); n++) {
		char why[256];
		Schedule s = {0};
		if (on_devices(n))
			continue;
		schedule_add(&s, STEP_LIBRARY, 0, n);
		CHECK_INT(schedule_available(&s), library_available(n, why, sizeof why));
		if (!library_available(n, why, sizeof why)) {
			CHECK_SKIP(why);
			continue;
		}
		test_products(n, products, COUNT(products), false);
		test_products(n, fused, COUNT(fused), true);
		test_others(n);
		there++;
	}
	test_offers(there);
	CHECK(schedule_available(&none));
	schedule_add(&unknown, STEP_LIBRARY, 0, n);
	CHECK(!schedule_available(&unknown));
	return harness_done();
}
