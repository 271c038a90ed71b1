/* test_cublaslt.c - contractions on CUDA devices by cuBLASLt's product: layouts, types, batches, what is a call
 * of its own, members; which are left alone; each call failing in turn; a library that is missing or too old;
 * what is written on disk. On a stand-in for the library (fake_cublaslt.c) that checks what it is given. */
#include "jit/backend/backend.h"
#include "jit/device/device.h"
#include "jit/library/library.h"
#include "tests/child.h"
#include "tests/jit/library_harness.h"

enum { CUBLASLT = 2 };

static const LibraryCase plain[] = {
	{{"Y[i,j] += A[i,k]*B[k,j]", "A=30x21 B=21x17"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,j] += A[k,i]*B[k,j]", "A=21x30 B=21x17"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,j] += A[i,k]*B[j,k]", "A=30x21 B=17x21"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,j] += A[k,i]*B[j,k]", "A=21x30 B=17x21"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[j,i] += A[i,k]*B[k,j]", "A=30x21 B=21x17"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[j,i] += A[k,i]*B[j,k]", "A=21x30 B=17x21"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,j] += A[i,k]*B[k,j]", "A=12x9:f64 B=9x8:f64"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[j,i] += A[k,i]*B[k,j]", "A=9x12:f64 B=9x8:f64"}, CALL_PRODUCT, 1, 1, 0},
	/* 16 bits: sums of f32, rounded once where the result has them, too */
	{{"Y[i,j] += A[i,k]*B[k,j]", "A=24x40:bf16 B=40x16:bf16"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[j,i] += A[k,i]*B[j,k]", "A=21x30:f16 B=17x21:f16"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,j] += f32(A[i,k])*f32(B[j,k])", "A=30x21:bf16 B=17x21:bf16"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,j] += f32(A[k,i])*f32(B[k,j])", "A=21x30:f16 B=21x17:f16"}, CALL_PRODUCT, 1, 1, 0},
	/* batches; several axes that are one */
	{{"Y[b,i,j] += A[b,i,k]*B[b,k,j]", "A=3x10x11 B=3x11x12"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[b,j,i] += A[b,k,i]*B[b,k,j]", "A=3x11x10:f16 B=3x11x12:f16"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,b,j] += A[i,b,k]*B[b,k,j]", "A=10x3x11 B=3x11x12"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,b,j] += A[i,b,k]*B[k,j]", "A=6x5x7 B=7x9"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,j] += A[i,b,k]*B[b,k,j]", "A=10x3x11 B=3x11x12"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,c,j] += A[i,k]*B[k,c,j]", "A=10x11 B=11x3x12"}, CALL_PRODUCT, 1, 1, 0},
	{{"Y[i,j] += A[i,k/4,k%4]*B[k,j]", "A=6x5x4 B=20x9"}, CALL_PRODUCT, 1, 1, 0},
	/* parts of larger tensors */
	{{"Y[i,j] += A[i+2,k+3]*B[2*k+1,j+4] where i<8, k<9, j<7", "A=11x13 B=20x12"},
	 CALL_PRODUCT,
	 1,
	 1,
	 0},
	{{"Y[p,q,k] += X[p,q+1,c]*W[c,k] where q<6", "X=4x8x5 W=5x7"}, CALL_PRODUCT, 1, 1, 0},
	/* heads of attention: what does not merge is a call of its own */
	{{"S[b,h,i,j] += Q[b,i,h,k]*K[b,j,h,k]", "Q=2x9x4x5 K=2x7x4x5"}, CALL_PRODUCT, 1, 2, 0},
	{{"O[b,i,h,k] += P[b,h,i,j]*V[b,j,h,k]", "P=2x4x9x7 V=2x7x4x5"}, CALL_PRODUCT, 1, 2, 0},
	/* sums of products, added up */
	{{"Y[i,j] += A[b,i,k]*B[k,b,j]", "A=3x10x11 B=11x3x12"}, CALL_PRODUCT, 1, 3, 0},
	{{"Y[b,p,q,k] += X[b,p+r,q+s,c]*W[r,s,c,k]", "X=2x5x6x5 W=3x2x5x6"}, CALL_PRODUCT, 1, 6, 0},
};
static const LibraryCase stored[] = {
	/* sums of several calls must not be rounded between them */
	{{"Y[i,j] += A[b,i,k]*B[k,b,j]", "A=3x10x11:f16 B=11x3x12:f16"}, CALL_PRODUCT, 2, 3, 0},
	/* in no order that a product could write */
	{{"Y[i,c,j,d] += A[c,i,k]*B[k,d,j]", "A=3x8x9 B=9x4x7"}, CALL_PRODUCT, 2, 1, 0},
};
static const LibraryCase fused[] = {
	{{"Z[i,j] += A[i,k]*B[k,j]; Y[i,j] = max(Z[i,j] + C[j], 0)", "A=30x21 B=21x17 C=17"},
	 CALL_PRODUCT,
	 2,
	 1,
	 0},
	{{"Z[i,j] += A[i,k]*B[k,j]; Y[i,j] = Z[i,j]*Z[i,j]; V[i,j] = Y[i,j] - Z[i,j]",
	  "A=13x21 B=21x19"},
	 CALL_PRODUCT,
	 2,
	 1,
	 0},
	{{"Z[i,j] += A[i,k]*B[k,j]; Y[i,j] = tanh(Z[i,j])", "A=20x24:bf16 B=24x16:bf16"},
	 CALL_PRODUCT,
	 2,
	 1,
	 0},
	{{"Z[b,i,j] += A[b,i,k]*B[b,j,k]; Y[b,i,j] = 0.5*Z[b,i,j] + C[b,j,i]",
	  "A=3x8x9 B=3x7x9 C=3x7x8"},
	 CALL_PRODUCT,
	 2,
	 1,
	 0},
};
/* Operands that are no tensors as they lie: expressions, padding, gathers, other types, windows. */
static const LibraryCase copied[] = {
	{{"Y[i,j] += exp(A[i,k])*B[k,j]", "A=9x8 B=8x7"}, CALL_PRODUCT, 2, 1, 1},
	{{"Y[i,j] += A[i,k]*tanh(B[j,k]+C[k])", "A=30x21 B=17x21 C=21"}, CALL_PRODUCT, 2, 1, 2},
	{{"Y[i,j] += (A[i,k]*S[k])*(1-B[k,j]*B[k,j])", "A=9x8 S=8 B=8x7"}, CALL_PRODUCT, 2, 1, 3},
	{{"Y[i,j] += f32(bf16(A[i,k]))*f32(bf16(B[k,j]))", "A=30x20 B=20x16"},
	 CALL_PRODUCT,
	 2,
	 1,
	 3},
	{{"Y[i,j] += f32(f16(A[k,i]))*f32(B[k,j])", "A=20x30 B=20x16:f16"}, CALL_PRODUCT, 2, 1, 1},
	{{"Y[i,j] += f32(A[i,k])*B[k,j]", "A=9x8:bf16 B=8x7"}, CALL_PRODUCT, 2, 1, 1},
	{{"Y[i,j] += A[T[i],k]*B[k,j]", "A=9x8 T=5:i32 B=8x7"}, CALL_PRODUCT, 2, 1, 1},
	{{"Y[i,j] += A[8-i,k]*B[k,2*j]", "A=9x8 B=8x14"}, CALL_PRODUCT, 2, 1, 3},
	{{"Y[p,j] += A[p+k]*B[k,j]", "A=12 B=5x7"}, CALL_PRODUCT, 2, 1, 1}, /* lines meet */
	{{"Y[p,k] += (X[p+r-1,c] else 0)*W[r,c,k] where p<9", "X=9x8 W=3x8x7"},
	 CALL_PRODUCT,
	 2,
	 1,
	 1},
	{{"Y[n,k,p,q] += (X[n,c,2*p+r-1,2*q+s-1] else 0)*W[k,c,r,s] where p<5, q<6",
	  "X=2x3x9x11 W=7x3x3x3"},
	 CALL_PRODUCT,
	 2,
	 1,
	 2},
	{{"V[b,k,p,i,j] += P[b,c,2*p+r,i,t]*W[k,c,r,t,j]", "P=2x3x9x4x4 W=5x3x3x4x4"},
	 CALL_PRODUCT,
	 3,
	 1,
	 3},
	{{"Z[b,i,j] += exp(A[b,i,k])*B[b,j,k]; Y[b,i,j] = 0.5*Z[b,i,j] + C[b,j,i]",
	  "A=3x8x9 B=3x7x9 C=3x7x8"},
	 CALL_PRODUCT,
	 3,
	 1,
	 1},
};
static const Case others[] = {
	{"Y[i,j] += exp(A[i,k])*B[k,j]", "A=9x8 B=8x7"},
	{"Y[i,j] += A[i,2*k]*B[k,j]", "A=9x16 B=8x7"},
	{"Y[p,k] += (X[p+r-1,c] else 0)*W[r,c,k] where p<9", "X=9x8 W=3x8x7"},
	{"Y[i,j] += A[T[i],k]*B[k,j]", "A=9x8 T=5:i32 B=8x7"},
	{"Y[i,j] += A[8-i,k]*B[k,j] where i<9", "A=9x8 B=8x7"},
	{"Y[p,j] += A[p+k]*B[k,j]", "A=12 B=5x7"}, /* lines meet */
	{"Y[i,j] max= A[i,k]*B[k,j]", "A=9x8 B=8x7"},
	{"Y[i] += A[i,k]*B[k]", "A=9x8 B=8"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=9x8:i32 B=8x7:i32"},
	{"Y[i,j] += f32(A[i,k])*B[k,j]", "A=9x8:bf16 B=8x7"},
};

static void test_refusals(void)
{
	const Backend *nvrtc = backend_find("nvrtc"), *opencl = backend_find("opencl");
	const Trial *t = harness_trials(&plain[0].c, false, NULL);
	for (int i = 0; i < COUNT(others); i++)
		check_refused(
			harness_trials(&others[i], false, NULL), "library 2; threads 64", nvrtc,
			"schedule: on a grid library needs a sum of products of two tensors of one "
			"type, or copies of them, whose places grow evenly along all indices, each "
			"contiguous along an index of its own or a reduced one");
	check_refused(t, "library 2; block 0 8; threads 64", nvrtc,
		      "schedule: step 2 does not fit a library's call");
	check_refused(t, "library 2; threads 2048", nvrtc,
		      "schedule: step 2 does not fit a library's call");
	check_refused(t, "library 9; threads 64", nvrtc, "schedule: there is no such library");
	check_refused(t, "library 0; threads 64", nvrtc,
		      "schedule: OpenBLAS has no calls for devices");
	if (opencl)
		check_refused(t, "library 2; threads 64", opencl,
			      "schedule: this device has no library's calls");
	check_refused(t, "library 2", backend_find("tcc"),
		      "schedule: cuBLASLt has no product of f32");
}

/* Worth a call: offered behind the first. Too small, too many calls, nothing for it: not offered. */
static void test_offers(int there)
{
	Schedule s[16];
	int n = offers_of("Y[i,j] += A[i,k]*B[k,j]", "A=64x64 B=64x64", COUNT(s), s);
	CHECK_INT(library_count(s, n), there);
	CHECK_INT(s[1].step[0].kind == STEP_LIBRARY, there);
	n = offers_of("Y[i,j] += A[i,k]*B[k,j]", "A=64x64 B=64x64", 1, s);
	CHECK_INT(library_count(s, n), 0);
	n = offers_of("Y[i,j] += A[i,k]*B[k,j]", "A=16x16 B=16x16", COUNT(s), s);
	CHECK_INT(library_count(s, n), 0);
	n = offers_of("Y[h,b,i,j] += A[b,i,h,k]*B[b,j,h,k]", "A=70x32x2x64 B=70x32x2x64", COUNT(s),
		      s);
	CHECK_INT(library_count(s, n), 2 * there); /* 2 calls of 70; or of copies 1 */
	n = offers_of("Y[i,j] += exp(A[i,k])*B[k,j]", "A=64x64 B=64x64", COUNT(s), s);
	CHECK_INT(library_count(s, n), there);
	CHECK(!there || (s[1].step[1].kind == STEP_SHARE && s[1].step[1].arg >= 1));
	/* Lines along K meet along p, which is the batch then. */
	n = offers_of("Y[b,p,k] += X[b,p+r,c]*W[r,c,k]", "X=40x74x64 W=3x64x64", COUNT(s), s);
	CHECK_INT(library_count(s, n), there);
	n = offers_of("Y[i,j] max= A[i,k]*B[k,j]", "A=64x64 B=64x64", COUNT(s), s);
	CHECK_INT(library_count(s, n), 0);
}

/* Searches change threads only, and don't cross products with others. */
static void test_search(void)
{
	const Trial *t = harness_trials(&fused[0].c, true, NULL);
	Schedule s, tiles;
	Error err = {0};
	uint64_t state = 5;
	CHECK_INT(schedule_parse("library 2; threads 64", &s, &err), 0);
	CHECK_INT(schedule_parse("tensorise 0; block 0 32; block 1 32; block 2 8; tile 0 4; "
				 "tile 1 4; threads 64",
				 &tiles, &err),
		  0);
	for (int i = 0; i < 20; i++) {
		schedule_mutate(&s, schedule_axes(&t->task), &state);
		schedule_cross(&s, &tiles, &state);
		Kernel *k =
			kernel_lower(&t->task, &s, backend_find("nvrtc"), target_grid(true), &err);
		CHECK_REPORT(k && k->shape.call.kind, "%s", err.text);
		kernel_unref(k);
		schedule_cross(&tiles, &s, &state);
		CHECK_INT(tiles.step[0].kind, STEP_TENSORISE);
	}
}

/* ---- on the device itself: addresses that are multiples of an element's bytes alone; another kernel's memory */

static void device_put(Device *d, char *at, const void *from, size_t n)
{
	Error err = {0};
	CHECK_INT(device_copy(d, COPY_IN, at, from, n, &err), 0);
}

static void test_addresses(Device *d)
{
	const Trial *t = harness_trials(&fused[0].c, true, NULL);
	const Subgraph *sub = &t->task.sub;
	Error err = {0};
	Kernel *k = lower(t, &err);
	CHECK(k && k->backend->compile(k->backend, 1, &k, NULL, &err) == 0);
	for (int shift = 0; shift <= 16 && k; shift += 4) {
		void *block[8] = {0}, *buf[8];
		float got[30 * 17];
		for (int i = 0; i < k->nbuf; i++) {
			block[i] =
				device_alloc(d, k->bytes[i] + 16, MEMORY_KERNELS, "a test", &err);
			buf[i] = (char *)block[i] + shift;
			if (i < sub->ninput)
				device_put(d, buf[i], t->in[i], k->bytes[i]);
		}
		CHECK_INT(device_launch(d, k, k->nbuf, buf, (RandomState){0, 0}, &err), 0);
		CHECK_INT(device_copy(d, COPY_OUT, got, buf[sub->ninput], sizeof got, &err), 0);
		CHECK_STR(err.text, "");
		harness_compare(t, k, "at odd addresses", 0, (unsigned char *)got);
		for (int i = 0; i < k->nbuf; i++)
			device_free(d, block[i]);
	}
	kernel_unref(k);
}

/* ---- what is kept */

static void test_object(void)
{
	const Backend *b = backend_find("nvrtc");
	const Trial *t[] = {harness_trials(&plain[0].c, false, NULL),
			    harness_trials(&fused[0].c, true, NULL)};
	Kernel *made[2], *again[2];
	Text object = {0};
	Error err = {0};
	for (int i = 0; i < 2; i++) {
		made[i] = lower(t[i], &err);
		CHECK(made[i]);
		again[i] = kernel_new(b, &err);
		again[i]->shape = made[i]->shape;
		CHECK_INT(kernel_sizes(again[i], &t[i]->task.sub, &err), 0);
	}
	CHECK_INT(b->compile(b, 2, made, &object, &err), 0);
	CHECK_INT(b->load(b, 2, again, object.s, object.n, &err), 0);
	for (int i = 0; i < 2; i++) {
		harness_run(t[i], again[i]);
		kernel_unref(made[i]);
		kernel_unref(again[i]);
	}
	/* One that has phases of code needs some; the product's numbers are judged. */
	Kernel *bad = kernel_new(b, &err);
	bad->shape.threads = 64;
	CHECK_INT(kernel_sizes(bad, &t[0]->task.sub, &err), 0);
	CHECK_INT(b->load(b, 1, &bad, object.s, 8, &err), 0); /* the first has no bytes */
	float out[30 * 17];
	void *buf[] = {t[0]->in[0], t[0]->in[1], out};
	KernelEnv env = {.kernel = bad, .err = &err};
	bad->run(buf, &env, 0, 1);
	CHECK_STR(err.text, "a kept kernel has no code");
	kernel_unref(bad);
	text_free(&object);
}

static void test_failures(Device *d)
{
	static const struct {
		const char *call, *message;
	} fail[] = {
		{"lt_product", "cuBLASLt: describing a product failed: no memory (error 3)"},
		{"lt_product_set",
		 "cuBLASLt: describing a product failed: an internal error (error 14)"},
		{"lt_layout", "cuBLASLt: describing a matrix failed: no memory (error 3)"},
		{"lt_layout:2", "cuBLASLt: describing a matrix failed: no memory (error 3)"},
		{"lt_layout:3", "cuBLASLt: describing a matrix failed: no memory (error 3)"},
		{"lt_layout_set",
		 "cuBLASLt: describing a matrix failed: an internal error (error 14)"},
		{"lt_layout_set:6",
		 "cuBLASLt: describing a matrix failed: an internal error (error 14)"},
		{"lt_wish", "cuBLASLt: asking for an algorithm failed: no memory (error 3)"},
		{"lt_wish:2", "cuBLASLt: asking for an algorithm failed: no memory (error 3)"},
		{"lt_wish_set",
		 "cuBLASLt: asking for an algorithm failed: an internal error (error 14)"},
		{"lt_wish_set:6",
		 "cuBLASLt: asking for an algorithm failed: an internal error (error 14)"},
		{"lt_choose",
		 "cuBLASLt: choosing an algorithm failed: an internal error (error 14)"},
		{"lt_none", "cuBLASLt has no algorithm for a product of 11 x 10 x 12"},
		{"lt_multiply",
		 "cuBLASLt: starting a product failed: an internal error (error 14)"},
		{"lt_run", "cuBLASLt: starting a product failed: an internal error (error 14)"},
	};
	const Case c = {"Y[b,i,j] += A[b,k,i]*B[b,j,k]", "A=3x12x11 B=3x10x12"};
	const Trial *t = harness_trials(&c, false, NULL);
	for (int k = 0; k < COUNT(fail); k++)
		check_failure(d, t, fail[k].call, fail[k].message);
}

/* A device that can't be opened for it: before it was. */
static void test_handle(Device *d)
{
	const Trial *t = harness_trials(&plain[2].c, false, NULL);
	CHECK(!d->library[0]);
	check_failure(d, t, "lt_create",
		      "cuBLASLt: opening a device failed: not initialised (error 1)");
	CHECK(d->library[0]);
}

/* ---- without it: in processes of their own */

static void test_absences(void)
{
	static const Absence row[] = {
		{"RICCI_CUBLASLT", "off", "RICCI_CUBLASLT is off"},
		{"FAKE_CUBLASLT", "10", "cuBLASLt 10.1.0 is too old: 11.0 or newer is needed"},
		{"FAKE_CUDA_FAIL", "lt_property:2",
		 "cuBLASLt does not tell its version (error 14)"},
		{"RICCI_CUBLASLT", "libm.so.6", "libm.so.6 has no cublasLtGetProperty"},
	};
	check_absences(&plain[0].c, COUNT(row), row);
}

static int run_there(void)
{
	char why[256] = "";
	CHECK(library_available(CUBLASLT, why, sizeof why));
	CHECK_STR(library_version(CUBLASLT), "cuBLASLt 13.1.0");
	test_offers(1);
	return check_failed;
}

int main(void)
{
	char why[256] = "";
	Error err = {0};
	void *fake = cuda_stand_in();
	library_tested = CUBLASLT;
	CHECK_STR(library_name(CUBLASLT), "cuBLASLt");
	live = fake ? (int (*)(void))dlsym(fake, "fake_cuda_live") : NULL;
	computed = fake ? (int (*)(void))dlsym(fake, "fake_cublaslt_products") : NULL;
	CHECK_REPORT(live && computed, "the stand-in for CUDA isn't there: %s", dlerror());
	if (!live || !computed)
		return harness_done();
	harness_grid = true;
	if (!library_row(CUBLASLT)->available) {
		CHECK_SKIP("left out by ./configure");
		return harness_done();
	}
	test_absences();
	CHECK_INT(child(run_there), 0);
	CHECK_REPORT(library_available(CUBLASLT, why, sizeof why), "%s", why);
	Device *d = device_open(&device_cuda, 0, &err);
	CHECK_REPORT(d, "%s", err.text);
	if (!d)
		return harness_done();
	test_handle(d);
	test_calls(plain, COUNT(plain), false);
	test_calls(stored, COUNT(stored), false);
	test_calls(fused, COUNT(fused), true);
	test_calls(copied, COUNT(copied), true);
	test_refusals();
	test_offers(1);
	test_search();
	test_addresses(d);
	test_object();
	test_failures(d);
	return harness_done();
}
