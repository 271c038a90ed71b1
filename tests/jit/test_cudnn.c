/* test_cudnn.c - contractions on CUDA devices by cuDNN's convolutions: forward, gradients of data and of weights; any
 * order of dimensions, strides, dilations, padding, groups, one to three dimensions; which are left alone; which engine
 * is taken; each call failing in turn; a library that is missing or too old; what is written on disk. On a stand-in
 * for the library (fake_cudnn.c) that checks what it is given and has engines that compute wrongly. */
#include "tests/child.h"
#include "tests/jit/library_harness.h"

enum { CUDNN = 3 };
/* Engines of the stand-in. */
enum { TENSOR_CORES = 0, ANY_ORDER = 6, EXACT = 7 };

static int (*engine)(void), (*handles)(void);

#define X2 "X=2x3x9x8 "
static const LibraryCase forward[] = {
	{{"Y[b,k,p,q] += X[b,c,p+r,q+s]*W[k,c,r,s]", X2 "W=4x3x3x2"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[b,k,p,q] += X[b,c,2*p+r,3*q+s]*W[k,c,r,s]", X2 "W=4x3x3x2"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[b,k,p,q] += X[b,c,p+2*r,q+3*s]*W[k,c,r,s]", X2 "W=4x3x3x2"}, CALL_FORWARD, 1, 1, 0},
	/* padding: the same on both sides, on one, more than is reached */
	{{"Y[b,k,p,q] += (X[b,c,p+r-1,q+s-1] else 0)*W[k,c,r,s] where p<9, q<8", X2 "W=4x3x3x3"},
	 CALL_FORWARD,
	 1,
	 1,
	 0},
	{{"Y[b,k,p,q] += (X[b,c,2*p+r-1,2*q+s-1] else 0)*W[k,c,r,s] where p<5, q<4",
	  X2 "W=4x3x3x3"},
	 CALL_FORWARD,
	 1,
	 1,
	 0},
	{{"Y[b,k,p,q] += (X[b,c,p+r,q+s-2] else 0)*W[k,c,r,s] where p<9, q<8", X2 "W=4x3x3x3"},
	 CALL_FORWARD,
	 1,
	 1,
	 0},
	{{"Y[b,k,p,q] += (X[b,c,p+2*r-2,q+s-1] else 0)*W[k,c,r,s] where p<9, q<5", X2 "W=4x3x3x3"},
	 CALL_FORWARD,
	 1,
	 1,
	 0},
	{{"Y[b,k,p,q] += X[b,c,p+r+2,q+s+1]*W[k,c,r,s] where p<4, q<5", X2 "W=4x3x3x2"},
	 CALL_FORWARD,
	 1,
	 1,
	 0},
	/* orders of dimensions */
	{{"Y[b,p,q,k] += X[b,p+r,q+s,c]*W[k,r,s,c]", "X=2x9x8x3 W=4x3x2x3"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[k,p,b,q] += X[q+s,c,b,p+r]*W[s,r,c,k]", "X=8x3x2x9 W=2x3x3x4"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[b,q,p,k] += X[b,p+r,q+s,c]*W[r,s,c,k]", "X=2x9x8x3 W=3x2x3x4"}, CALL_FORWARD, 1, 1, 0},
	/* one and three dimensions, one of two, no batch, no channels */
	{{"Y[b,k,p] += X[b,c,2*p+r]*W[k,c,r]", "X=2x3x19 W=4x3x3"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[b,k,o,p,q] += X[b,c,o+t,p+r,2*q+s]*W[k,c,t,r,s]", "X=2x3x5x6x7 W=4x3x2x2x3"},
	 CALL_FORWARD,
	 1,
	 1,
	 0},
	{{"Y[b,k,p,q] += X[b,c,p,q+s]*W[k,c,s]", X2 "W=4x3x3"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[k,p,q] += X[c,p+r,q+s]*W[k,c,r,s]", "X=3x9x8 W=4x3x3x2"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[b,k,p,q] += X[b,p+r,q+s]*W[k,r,s]", "X=2x9x8 W=4x3x2"}, CALL_FORWARD, 1, 1, 0},
	/* groups; axes that are one */
	{{"Y[b,g,k,p] += X[b,g,c,p+r]*W[g,k,c,r]", "X=2x3x4x9 W=3x5x4x3"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[b,p,g,k] += X[b,p+r,g,c]*W[g,k,r,c]", "X=2x9x3x4 W=3x5x3x4"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[b,g,k,p] += X[b,g,p+r]*W[g,k,r]", "X=2x3x9 W=3x5x3"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[a,b,k,p] += X[a,b,c,d,p+r]*W[k,c,d,r]", "X=2x3x2x2x9 W=4x2x2x3"},
	 CALL_FORWARD,
	 1,
	 1,
	 0},
	/* types: one rounding of the result */
	{{"Y[b,k,p] += X[b,c,p+r]*W[k,c,r]", "X=2x3x19:f16 W=4x3x3:f16"}, CALL_FORWARD, 1, 1, 0},
	{{"Y[b,p,k] += X[b,2*p+r,c]*W[k,r,c]", "X=2x19x3:bf16 W=4x3x3:bf16"},
	 CALL_FORWARD,
	 1,
	 1,
	 0},
	{{"Y[b,k,p] += X[b,c,p+r]*W[k,c,r]", "X=2x3x19:f64 W=4x3x3:f64"}, CALL_FORWARD, 1, 1, 0},
};
static const LibraryCase gradients[] = {
	/* of the weights */
	{{"D[k,c,r,s] += X[b,c,p+r,q+s]*G[b,k,p,q]", X2 "G=2x4x7x7"}, CALL_WEIGHTS, 1, 1, 0},
	{{"D[k,c,r,s] += G[b,k,p,q]*(X[b,c,2*p+r-1,2*q+s-1] else 0) where r<3, s<3",
	  X2 "G=2x4x5x4"},
	 CALL_WEIGHTS,
	 1,
	 1,
	 0},
	{{"D[k,r,s,c] += X[b,p+2*r,q+s,c]*G[b,p,q,k]", "X=2x9x8x3 G=2x5x7x4"},
	 CALL_WEIGHTS,
	 1,
	 1,
	 0},
	{{"D[g,k,c,r] += X[b,g,c,p+r]*G[b,g,k,p]", "X=2x3x4x9 G=2x3x5x7"}, CALL_WEIGHTS, 1, 1, 0},
	{{"D[k,c,s] += X[b,c,p,q+s]*G[b,k,p,q]", X2 "G=2x4x9x6"}, CALL_WEIGHTS, 1, 1, 0},
	{{"D[k,c,r] += X[b,c,p+r]*G[b,k,p]", "X=2x3x19:f16 G=2x4x17:f16"}, CALL_WEIGHTS, 1, 1, 0},
	/* of the data: as autodiff has it, without padding, in other orders, a true convolution */
	{{"D[b,c,h,w] += 0<=h-r+1 && h-r+1<=8 && 0<=w-s+1 && w-s+1<=7 ? "
	  "G[b,k,h-r+1,w-s+1]*W[k,c,r,s] : 0 where h<9, w<8",
	  "G=2x4x9x8 W=4x3x3x3"},
	 CALL_DATA,
	 1,
	 1,
	 0},
	{{"D[b,c,h] += (G[b,k,h-r] else 0)*W[k,c,r] where h<11", "G=2x4x9 W=4x3x3"},
	 CALL_DATA,
	 1,
	 1,
	 0},
	{{"D[b,h,c] += (G[b,h-2*r+1,k] else 0)*W[k,r,c] where h<12", "G=2x9x4 W=4x3x3"},
	 CALL_DATA,
	 1,
	 1,
	 0},
	{{"D[b,g,c,h] += (G[b,g,k,h-r] else 0)*W[g,k,c,r] where h<11", "G=2x3x4x9 W=3x4x5x3"},
	 CALL_DATA,
	 1,
	 1,
	 0},
	{{"D[b,k,p] += X[b,c,p-r+2]*W[k,c,r] where p<7", "X=2x3x9 W=4x3x3"}, CALL_DATA, 1, 1, 0},
};
static const LibraryCase fused[] = {
	{{"Z[b,k,p] += X[b,c,p+r]*W[k,c,r]; Y[b,k,p] = max(Z[b,k,p] + B[k], 0)",
	  "X=2x3x19 W=4x3x3 B=4"},
	 CALL_FORWARD,
	 2,
	 1,
	 0},
	{{"Z[b,p,k] += X[b,p+r,c]*W[k,r,c]; Y[b,p,k] = tanh(Z[b,p,k])", "X=2x19x3 W=4x3x3"},
	 CALL_FORWARD,
	 2,
	 1,
	 0},
	/* copied: values, other types, padding that sees more, windows that no tensor has; matrices in the middle */
	{{"Y[b,k,p] += exp(X[b,c,p+r])*W[k,c,r]", "X=2x3x19 W=4x3x3"}, CALL_FORWARD, 2, 1, 2},
	{{"Y[b,k,p,q] += (0<=2*p+r-1 && 2*p+r-1<9 && 0<=2*q+s-1 ? "
	  "max(X[b,c,2*p+r-1,2*q+s-1]*S[c],0) : "
	  "0)*W[k,c,r,s] where p<5, q<4",
	  X2 "S=3 W=4x3x3x3"},
	 CALL_FORWARD,
	 2,
	 1,
	 2},
	{{"Y[b,k,p] += X[b,c,p+r]*tanh(W[k,c,r])", "X=2x3x19 W=4x3x3"}, CALL_FORWARD, 2, 1, 1},
	{{"Y[b,k,p] += f32(X[b,c,p+r])*W[k,c,r]", "X=2x3x19:bf16 W=4x3x3"}, CALL_FORWARD, 2, 1, 2},
	{{"Y[b,k,p] += f32(bf16(X[b,c,p+r]))*f32(bf16(W[k,c,r]))", "X=2x3x19 W=4x3x3"},
	 CALL_FORWARD,
	 2,
	 1,
	 3},
	{{"D[k,c,r] += f32(f16(X[b,c,p+r]))*f32(G[b,k,p])", "X=2x3x19 G=2x4x17:f16"},
	 CALL_WEIGHTS,
	 2,
	 1,
	 3},
	{{"Y[b,k,p] += X[T[b],c,p+r]*W[k,c,r]", "X=3x3x19 T=2:i32 W=4x3x3"}, CALL_FORWARD, 2, 1, 2},
	{{"V[b,k,p,i,j] += P[b,c,2*p+r,i,t]*W[k,c,r,t,j]", "P=2x3x9x4x4 W=5x3x3x4x4"},
	 CALL_FORWARD,
	 3,
	 1,
	 3},
	{{"D[b,c,h] += 0<=h-r && h-r<9 ? G[b,k,h-r]*E[b,k,h-r]*W[k,c,r] : 0 where h<11",
	  "G=2x4x9 E=2x4x9 W=4x3x3"},
	 CALL_DATA,
	 2,
	 1,
	 2},
	/* a phase of a strided gradient, with steps of two through weights that have to be without gaps */
	{{"D[b,c,u] += (G[b,k,u-r+1] else 0)*W[k,c,2*r+1] where u<6, r<2", "G=2x4x6 W=4x3x5"},
	 CALL_DATA,
	 2,
	 1,
	 1},
	{{"D[b,c,u] += 0<=u-r+1 && u-r+1<6 ? f32(bf16(G[b,k,u-r+1]))*f32(bf16(W[k,c,r])) : 0 where "
	  "u<6",
	  "G=2x4x6 W=4x3x3"},
	 CALL_DATA,
	 2,
	 1,
	 3},
	{{"Z[b,k,p] += X[b,c,p+r]*W[k,c,r]; Y[b,k,p] = max(Z[b,k,p], 0)",
	  "X=2x3x19:f16 W=4x3x3:f16"},
	 CALL_FORWARD,
	 3,
	 1,
	 3},
};
static const Case others[] = {
	{"Y[i,j] += A[i,k]*B[k,j]", "A=30x21 B=21x17"}, /* no windows */
	{"D[b,c,u] += (G[b,k,u-r+1] else 0)*W[k,c,2*r+1] where u<6, r<2", "G=2x4x6 W=4x3x5"},
	{"Y[b,k,p] += exp(X[b,c,p+r])*W[k,c,r]", "X=2x3x19 W=4x3x3"},
	{"Y[b,k,p] += X[b,c,2*p+3*r]*W[k,c,r]", "X=2x3x19 W=4x3x3"},
	{"Y[b,k,p] += X[b,c,p*p+r]*W[k,c,r] where p<3", "X=2x3x19 W=4x3x3"},
	{"Y[b,k,p] += X[b,c,p+r+t]*W[k,c,r,t]", "X=2x3x19 W=4x3x3x2"},
	{"Y[b,k,p] += X[b,c,p+r]*X[b,k,p-r+2] where p<9, r<3", "X=2x3x20"},
	{"Y[b,k,p] += (p<c+4 ? X[b,c,p+r] : 0)*W[k,c,r] where p<17", "X=2x3x19 W=4x3x3"},
	{"Y[b,k,p] += (r<p+1 ? X[b,c,p+r] : 0)*W[k,c,r] where p<17", "X=2x3x19 W=4x3x3"},
	{"Y[b,k,p,i,j] += P[b,c,2*p+r,i,t]*W[k,c,r,t,j]", "P=2x3x9x4x4 W=5x3x3x4x4"},
	{"Y[b,k,p] += X[b,c,p+r]*W[k,c,r]", "X=2x3x19:i32 W=4x3x3:i32"},
	{"Y[b,k,p] += f32(X[b,c,p+r])*f32(W[k,c,r])", "X=2x3x19:f16 W=4x3x3:f16"},
};

/* Values and conditions that see more of a window than its coordinate: no copy helps. */
static const Case uneven[] = {
	{"Y[b,k,p] += X[b,c,p+r]*M[p]*W[k,c,r]", "X=2x3x19 M=17 W=4x3x3"},
	{"Y[b,k,p] += (r<p+1 ? X[b,c,p+r] : 0)*W[k,c,r] where p<17", "X=2x3x19 W=4x3x3"},
	{"D[k,c,r] += X[b,c,p+r]*exp(M[r])*G[b,k,p]", "X=2x3x19 M=3 G=2x4x17"},
};

static void test_refusals(void)
{
	const Backend *nvrtc = backend_find("nvrtc");
	const char *none = "schedule: on a grid library needs a sum of products of two tensors, "
			   "or copies, one read in windows of up to three dimensions, an index "
			   "of the result and a reduced one each; all others are one image, "
			   "channel, result channel and group";
	const Trial *t = harness_trials(&forward[0].c, false, NULL);
	for (int i = 0; i < COUNT(others); i++)
		check_refused(harness_trials(&others[i], false, NULL), "library 3; threads 64",
			      nvrtc, none);
	for (int i = 0; i < COUNT(uneven); i++)
		check_refused(harness_trials(&uneven[i], false, NULL),
			      "library 3; share 3; threads 64", nvrtc, none);
	check_refused(t, "library 3", backend_find("tcc"), "schedule: cuDNN has no product of f32");
}

/* Its numbers are those of no convolution. */
static void test_numbers(void)
{
	Error err = {0};
	const Trial *t = harness_trials(&forward[16].c, false, NULL); /* groups */
	Kernel *k = lower_copied(t, 0, &err);
	CHECK_REPORT(k, "%s", err.text);
	if (!k)
		return;
	KernelCall c = k->shape.call;
	check_number(k, &c, &c.kind, CALL_PRODUCT); /* the library has none */
	check_number(k, &c, &c.windows, 0);
	check_number(k, &c, &c.windows, CALL_WINDOWS + 1);
	check_number(k, &c, &c.loop[2], 2);
	check_number(k, &c, &c.window[0].stride, 0);
	check_number(k, &c, &c.window[0].dilation, 0);
	check_number(k, &c, &c.window[0].before, 1);
	check_number(k, &c, &c.window[0].after, -1);
	check_number(k, &c, &c.window[0].after, INT64_MAX);
	check_number(k, &c, &c.tensor[CALL_B].extent[1], 5);
	check_number(k, &c, &c.tensor[CALL_D].extent[1], 3);
	kernel_unref(k);
}

/* f32 is multiplied as it is; what was rounded to 16 bits may go to tensor cores; bits that have to be the same in
 * every run don't depend on the order in which threads come. */
static void check_engine(const LibraryCase *c, const Target *target, int want)
{
	const Trial *t = harness_trials(&c->c, true, NULL);
	Schedule s;
	Error err = {0};
	char text[60];
	snprintf(text, sizeof text, "library 3; share %d; threads 64", c->copies);
	CHECK_INT(schedule_parse(text, &s, &err), 0);
	Kernel *k = kernel_lower(&t->task, &s, backend_find("nvrtc"), target, &err);
	CHECK(k && k->backend->compile(k->backend, 1, &k, NULL, &err) == 0);
	harness_run(t, k);
	CHECK_INT(engine(), want);
	kernel_unref(k);
}

static void test_engines(Device *d)
{
	const Target *any = target_grid(true), *ordered = target_ordered(any);
	check_engine(&forward[0], any, ANY_ORDER);
	check_engine(&forward[0], ordered, EXACT);
	check_engine(&forward[22], any, TENSOR_CORES); /* f64 */
	check_engine(&forward[20], ordered, TENSOR_CORES);
	check_engine(&fused[6], any, TENSOR_CORES);
	check_engine(&fused[5], any, ANY_ORDER);
	setenv("FAKE_CUDA_FAIL", "dnn_few", 1);
	check_engine(&forward[0], ordered, EXACT);
	unsetenv("FAKE_CUDA_FAIL");
	device_trim(d);
}

/* Worth a call: offered behind the first. Too small, nothing for it: not offered. Copies where they are needed. */
static void test_offers(int there)
{
	Schedule s[16];
	int n = offers_of("Y[b,k,p,q] += X[b,c,p+r,q+s]*W[k,c,r,s]", "X=2x8x18x18 W=8x8x3x3",
			  COUNT(s), s);
	CHECK_INT(library_count(s, n), there);
	n = offers_of("Y[b,k,p,q] += X[b,c,p+r,q+s]*W[k,c,r,s]", "X=2x8x18x18 W=8x8x3x3", 1, s);
	CHECK_INT(library_count(s, n), 0);
	n = offers_of("Y[b,k,p] += X[b,c,p+r]*W[k,c,r]", "X=2x3x19 W=4x3x3", COUNT(s), s);
	CHECK_INT(library_count(s, n), 0);
	n = offers_of("Y[b,k,p,i,j] += P[b,c,2*p+r,i,t]*W[k,c,r,t,j]", "P=4x8x19x4x4 W=8x8x3x4x4",
		      COUNT(s), s);
	CHECK_INT(library_count(s, n), there);
	n = offers_of("Y[i,j] += A[i,k]*B[k,j]", "A=64x64 B=64x64", COUNT(s), s);
	CHECK_INT(library_count(s, n), 0);
}

/* At addresses that are multiples of an element's bytes alone. */
static void test_addresses(Device *d)
{
	const Trial *t = harness_trials(&forward[3].c, false, NULL);
	Error err = {0};
	Kernel *k = lower_copied(t, 0, &err);
	CHECK(k && k->backend->compile(k->backend, 1, &k, NULL, &err) == 0);
	for (int shift = 0; shift <= 16 && k; shift += 4) {
		void *block[3], *buf[3];
		float got[2 * 4 * 9 * 8];
		for (int i = 0; i < 3; i++) {
			block[i] =
				device_alloc(d, k->bytes[i] + 16, MEMORY_KERNELS, "a test", &err);
			buf[i] = (char *)block[i] + shift;
			if (i < 2)
				CHECK_INT(device_copy(d, COPY_IN, buf[i], t->in[i], k->bytes[i],
						      &err),
					  0);
		}
		CHECK_INT(device_launch(d, k, k->nbuf, buf, (RandomState){0, 0}, &err), 0);
		CHECK_INT(device_copy(d, COPY_OUT, got, buf[2], sizeof got, &err), 0);
		CHECK_STR(err.text, "");
		harness_compare(t, k, "at odd addresses", 0, (unsigned char *)got);
		for (int i = 0; i < 3; i++)
			device_free(d, block[i]);
	}
	kernel_unref(k);
}

#define BAD_CALL "failed: CUDNN_STATUS_INTERNAL_ERROR (error 4000)"

static void test_failures(Device *d)
{
	static const struct {
		const char *call, *message;
	} fail[] = {
		{"dnn_create", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_create:6", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_create:7", "cuDNN: choosing an engine " BAD_CALL},
		{"dnn_create:60", "cuDNN: choosing an engine " BAD_CALL},
		{"dnn_set", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_set:20", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_set:31", "cuDNN: choosing an engine " BAD_CALL},
		{"dnn_convolution", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_convolution:2", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_tensor", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_tensor:6", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_operation", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_graph", "cuDNN: describing a convolution " BAD_CALL},
		{"dnn_heuristic", "cuDNN: choosing an engine " BAD_CALL},
		{"dnn_choose", "cuDNN: choosing an engine " BAD_CALL},
		{"dnn_plan", "cuDNN: choosing an engine " BAD_CALL},
		{"dnn_none", "cuDNN has no exact engine for a convolution"},
		{"dnn_pack", "cuDNN: starting a convolution " BAD_CALL},
		{"dnn_execute", "cuDNN: starting a convolution " BAD_CALL},
		{"dnn_run", "cuDNN: starting a convolution " BAD_CALL},
	};
	const Trial *t = harness_trials(&forward[3].c, false, NULL);
	for (int k = 0; k < COUNT(fail); k++)
		check_failure(d, t, fail[k].call, fail[k].message);
}

/* A device that can't be opened for it, before it was; nothing stays. */
static void test_handle(Device *d)
{
	const Trial *t = harness_trials(&forward[0].c, false, NULL);
	CHECK(!d->library[1]);
	check_failure(d, t, "dnn_open",
		      "cuDNN: opening a device failed: CUDNN_STATUS_BAD_PARAM (error 1001)");
	CHECK(d->library[1] && !d->library[0]);
	CHECK_INT(handles(), 1);
}

static void test_stream(Device *d)
{
	const Trial *t = harness_trials(&forward[0].c, false, NULL);
	check_failure(d, t, "dnn_stream", "cuDNN: opening a device " BAD_CALL);
	CHECK_INT(handles(), 1);
}

/* ---- without it: in processes of their own */

static void test_absences(void)
{
	static const Absence row[] = {
		{"RICCI_CUDNN", "off", "RICCI_CUDNN is off"},
		{"FAKE_CUDNN", "8", "cuDNN 8.19.0 is too old: 9.0 or newer is needed"},
		{"FAKE_CUDA_FAIL", "dnn_property:2",
		 "cuDNN does not tell its version (error 4000)"},
		{"RICCI_CUDNN", "libm.so.6", "libm.so.6 has no cudnnGetProperty"},
	};
	check_absences(&forward[0].c, COUNT(row), row);
}

static int run_stream(void)
{
	Device *d = device_open(&device_cuda, 0, NULL);
	CHECK(d);
	if (d)
		test_stream(d);
	return check_failed;
}

static int run_there(void)
{
	char why[256] = "";
	CHECK(library_available(CUDNN, why, sizeof why));
	CHECK_STR(library_version(CUDNN), "cuDNN 9.19.0");
	test_offers(1);
	return check_failed;
}

int main(void)
{
	Error err = {0};
	void *fake = cuda_stand_in();
	library_tested = CUDNN;
	CHECK_STR(library_name(CUDNN), "cuDNN");
	live = fake ? (int (*)(void))dlsym(fake, "fake_cuda_live") : NULL;
	computed = fake ? (int (*)(void))dlsym(fake, "fake_cudnn_convolutions") : NULL;
	engine = fake ? (int (*)(void))dlsym(fake, "fake_cudnn_engine") : NULL;
	handles = fake ? (int (*)(void))dlsym(fake, "fake_cudnn_handles") : NULL;
	CHECK_REPORT(live && computed && engine && handles, "the stand-in for CUDA isn't there: %s",
		     dlerror());
	if (!live || !computed || !engine || !handles)
		return harness_done();
	harness_grid = true;
	if (!library_row(CUDNN)->available) {
		CHECK_SKIP("left out by ./configure");
		return harness_done();
	}
	test_absences();
	CHECK_INT(child(run_there), 0);
	CHECK_INT(child(run_stream), 0);
	Device *d = device_open(&device_cuda, 0, &err);
	CHECK_REPORT(d, "%s", err.text);
	if (!d)
		return harness_done();
	test_handle(d);
	test_calls(forward, COUNT(forward), false);
	test_calls(gradients, COUNT(gradients), false);
	test_calls(fused, COUNT(fused), true);
	test_refusals();
	test_numbers();
	test_engines(d);
	test_offers(1);
	test_addresses(d);
	test_failures(d);
	return harness_done();
}
