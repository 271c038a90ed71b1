/* test_verify.c - verification admits right kernels and refuses wrong ones of every kind. */
#include "runtime/session.h"
#include "runtime/verify/trial.h"
#include "tests/check.h"
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 100, K = 50, SCRATCH_BYTES = 40 };

/* y[i] = sum_k a[i,k] * b[k] by hand, with faults to choose from. */
static int fault;
enum {
	RIGHT,
	OFF_BY_ONE,
	ONE_WRONG,
	UNWRITTEN,
	NANS,
	BEHIND,
	BEFORE,
	FAR,
	SCRATCH,
	INPUT,
	CRASH,
	HANG,
	LEAVE,
	ORDER,
	NEIGHBOUR,
	SHARES,
	SLEEPS, /* as one that others keep from running: no fault */
	TOLD	/* to end, as all processes of a group are: no fault */
};

static void product(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	static int64_t last = -1;
	const float *a = buf[0], *b = buf[1];
	float *y = buf[2];

	for (int64_t i = begin; i < end; i++) {
		float s = 0;

		for (int k = 0; k < K - (fault == OFF_BY_ONE); k++)
			s += a[i * K + k] * b[k];
		if (fault == ONE_WRONG && i == N - 1)
			s += 1e-3f;
		if (fault == NANS && i == 17)
			s = NAN;
		if (fault == UNWRITTEN && i == 40)
			continue;
		y[i] = s;
		if (fault == ORDER && last != i - 1)
			y[i] = 0;
		last = i;
		if (fault == TOLD && i == 7) {
			raise(SIGTERM);
			raise(SIGINT);
			raise(SIGHUP);
		}
		if (fault == NEIGHBOUR && i == 7)
			y[8] = 0; /* part 8 writes it after this */
		if (fault == SHARES) {
			*(volatile float *)env->shared = s;
			y[i] = *(volatile float *)env->shared;
		}
	}
	if (fault == SLEEPS)
		usleep(8000);
	if (fault == BEHIND && end == N)
		y[N] = 0;
	if (fault == BEFORE && begin == 0)
		((volatile float *)y)[-1] = 0;
	if (fault == FAR)
		((volatile float *)y)[N + 100] = 0;
	if (fault == SCRATCH)
		((char *)env->scratch)[SCRATCH_BYTES] = 0;
	if (fault == INPUT)
		((float *)buf[0])[3] = 0;
	if (fault == CRASH)
		__builtin_trap();
	while (fault == HANG)
		*(volatile int *)&fault = HANG;
	if (fault == LEAVE)
		_exit(0);
}

static Task *task_of(const char *text, int n, Node *const *in, Ir *ir)
{
	Node *result[4];
	int nresult = 4, nsub;
	Subgraph *subs;
	Error err = {0};
	Task *t;

	CHECK_INT(notation_elaborate(ir, text, n, in, &nresult, result, 4), 0);
	CHECK_STR(ir->err.text, "");
	IR_ENTER(ir, NULL);
	fuse_partition(ir, nresult, result, device_nominal(), &nsub, &subs);
	IR_LEAVE(ir);
	CHECK_INT(nsub, 1);
	t = task_new(&subs[0], &err);
	CHECK_STR(err.text, "");
	return t;
}

static Node *input(Ir *ir, const char *name, Type type, int64_t a, int64_t b)
{
	IR_ENTER(ir, NULL);
	Node *n = node_input(ir, name, type, b ? 2 : 1, (int64_t[]){a, b});
	IR_LEAVE(ir);
	return n;
}

static void test_faults(void)
{
	static const char *const says[] = {
		[RIGHT] = "",
		[OFF_BY_ONE] = "a kernel computes a wrong value: element [",
		[ONE_WRONG] = "a kernel computes a wrong value: element [99]",
		[UNWRITTEN] = "a kernel never writes element 40 of result 0",
		[NANS] = "a kernel computes a wrong value: element [17] of result 0 is nan",
		[BEHIND] = "a kernel writes outside its tensors, near buffer 2",
		[BEFORE] = "a kernel writes outside its tensors, near buffer 2",
		[FAR] = "a kernel reads or writes outside its tensors (signal 11)",
		[SCRATCH] = "a kernel writes outside its scratch memory",
		[INPUT] = "a kernel reads or writes outside its tensors (signal 11)",
		[CRASH] = "a kernel crashes (signal ",
		[HANG] = "a kernel has not finished after 0.3 seconds",
		[LEAVE] = "a kernel ends its process",
		[ORDER] = "a kernel computes a wrong value: element [",
		[NEIGHBOUR] = "a kernel's parts write or read what others write: element 8 of "
			      "result 0 depends",
		[SHARES] = "a kernel's parts write or read what others write: byte 0 of what they "
			   "share",
		[SLEEPS] = "",
		[TOLD] = "",
	};
	Ir ir;
	Kernel k = {.run = product,
		    .shape.parts = N,
		    .shape.scratch = SCRATCH_BYTES,
		    .shape.shared = 4,
		    .refs = 1};
	Task *t;

	ir_init(&ir);
	t = task_of("Y[i] += A[i,k] * B[k]", 2,
		    (Node *[]){input(&ir, "a", RICCI_F32, N, K), input(&ir, "b", RICCI_F32, K, 0)},
		    &ir);
	for (fault = 0; t && fault < COUNT(says); fault++) {
		Error err = {0};
		int code = verify_within(t, &k, NULL, true, 0.3, &err);

		CHECK_INT(code, *says[fault] ? RICCI_ECOMPILE : 0);
		CHECK(!strncmp(err.text, says[fault], strlen(says[fault])));
		if (strncmp(err.text, says[fault], strlen(says[fault])))
			fprintf(stderr, "fault %d says: %s\n", fault, err.text);
	}
	fault = RIGHT;
	CHECK_INT(verify_kernel(t, &k, false, NULL), 0);
	task_free(t);
	ir_free(&ir);
}

/* y[i,j] = x[i,j] / sum_j x[i,j]: rows are judged whole, what is not stored is followed through. */
static void shares(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const float *x = buf[0];
	float *y = buf[1];

	(void)env;
	for (int64_t i = begin; i < end; i++) {
		float s = 0;

		for (int k = fault == OFF_BY_ONE; k < K * 2; k++)
			s += x[i * K * 2 + k];
		for (int k = 0; k < K * 2; k++)
			y[i * K * 2 + k] = x[i * K * 2 + k] / s;
	}
	if (fault == ONE_WRONG && end == N)
		y[N * K * 2 - 1] *= 1.001f;
}

static void test_rows(void)
{
	static const char *const says[] = {
		[RIGHT] = "",
		[OFF_BY_ONE] = "a kernel computes a wrong value: element [",
		[ONE_WRONG] = "a kernel computes a wrong value: element [99,99]",
	};
	Ir ir;
	Kernel k = {.run = shares, .shape.parts = N, .refs = 1};
	Task *t;

	ir_init(&ir);
	t = task_of("S[i] += X[i,j]; Y[i,j] = X[i,j] / S[i]", 1,
		    (Node *[]){input(&ir, "x", RICCI_F32, N, K * 2)}, &ir);
	CHECK_INT(t->sub.rows, 1);
	for (fault = 0; t && fault < COUNT(says); fault++) {
		Error err = {0};

		CHECK_INT(verify_within(t, &k, NULL, true, 10, &err), fault ? RICCI_ECOMPILE : 0);
		CHECK(!strncmp(err.text, says[fault], strlen(says[fault])));
	}
	fault = RIGHT;
	task_free(t);
	ir_free(&ir);
}

/* Errors of factors add up, also where one is positive and one negative: moved up together, the
 * factors' changes cancel in the product. */
static void test_opposite(void)
{
	static float x[N * K * 2];
	const void *in[] = {x};
	Ir ir;
	Sample s = {0};
	Error err = {0};

	for (int i = 0; i < N * K * 2; i++)
		x[i] = 0.5f;
	ir_init(&ir);
	Task *t = task_of("S[i] += X[i,j]; T[i] += -2 * X[i,j]; Y[i,j] = S[i] * T[i] * X[i,j]", 1,
			  (Node *[]){input(&ir, "X", RICCI_F32, N, K * 2)}, &ir);
	CHECK_INT(t ? t->sub.nmember : 0, 3);
	Checking how = {{0}, 1e6, 1e9, 100, 0, NULL, 1, NULL, false};
	CHECK_INT(sample_expect(t, (void *const *)in, &how, &s, &err), 0);
	CHECK_STR(err.text, "");
	for (int i = 0; s.nmember == 3 && i < s.count[2]; i++)
		CHECK(s.bound[2][i] / fabs(s.value[2][i]) >
		      1.9 * s.bound[0][0] / fabs(s.value[0][0]));
	sample_free(&s);
	task_free(t);
	ir_free(&ir);
}

/* Several threads expect what one does, bit by bit; also more than there are elements. */
static void test_expecting_threads(void)
{
	static const int threads[] = {1, 3, 100};
	static float x[64 * 3000];
	const void *in[] = {x};
	Sample s[COUNT(threads)] = {{0}};
	Ir ir;

	for (int i = 0; i < COUNT(x); i++)
		x[i] = (float)(i % 101) / 101;
	ir_init(&ir);
	Task *t = task_of("M[i] max= X[i,j]; E[i,j] = exp(X[i,j]-M[i]); S[i] += E[i,j]; "
			  "Y[i,j] = E[i,j]/S[i]; C[i] = i32(100*S[i])",
			  1, (Node *[]){input(&ir, "X", RICCI_F32, 64, 3000)}, &ir);
	CHECK(t && t->sub.nmember == 5);
	for (int k = 0; t && k < COUNT(threads); k++) {
		Checking how = {{0}, 60e3, 1e9, 100, 0, NULL, threads[k], NULL, false};
		Error err = {0};

		CHECK_INT(sample_expect(t, (void *const *)in, &how, &s[k], &err), 0);
		for (int m = 0; m < s[k].nmember; m++) {
			size_t bytes = (size_t)s[k].count[m] * sizeof(double);

			CHECK(bytes && s[k].count[m] == s[0].count[m]);
			CHECK(!memcmp(s[k].value[m], s[0].value[m], bytes));
			CHECK(!memcmp(s[k].bound[m], s[0].bound[m], bytes));
		}
	}
	for (int k = 0; k < COUNT(threads); k++)
		sample_free(&s[k]);
	task_free(t);
	ir_free(&ir);
}

/* A sum over the rows, of which each needs all rows. */
static void folds(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const float *x = buf[0];
	float *y = buf[1], *c = buf[2];

	(void)env;
	for (int64_t i = 0; begin == 0 && i < N; i++) {
		double s = 0;

		for (int64_t j = 0; j < K * 2; j++)
			s += x[i * K * 2 + j];
		for (int64_t j = 0; j < K * 2; j++) {
			double d = x[i * K * 2 + j] - (float)s;

			y[i * K * 2 + j] = (float)d;
			c[j] = (i ? c[j] : 0) + (fault && i == N / 2 ? 0 : (float)d);
		}
	}
	(void)end;
}

static void test_folds(void)
{
	Ir ir;
	Kernel k = {.run = folds, .shape.parts = 1, .refs = 1};
	Task *t;

	ir_init(&ir);
	t = task_of("S[i] += X[i,j]; Y[i,j] = X[i,j] - S[i]; C[j] += X[i,j] - S[i]", 1,
		    (Node *[]){input(&ir, "x", RICCI_F32, N, K * 2)}, &ir);
	CHECK(t->sub.rows == 1 && t->sub.nmember == 3 && t->sub.fold[2]);
	for (fault = 0; t && fault < 2; fault++) {
		Error err = {0};

		CHECK_INT(verify_within(t, &k, NULL, true, 10, &err), fault ? RICCI_ECOMPILE : 0);
		CHECK(!fault || strstr(err.text, "of result 1 is"));
	}
	fault = RIGHT;
	task_free(t);
	ir_free(&ir);
}

/* A sum of an intermediate whose error bound is beyond its type: no bound for the sum either. L is
 * 6779349.988, which f32 rounds up to the next integer: exp(L - floor(M)) jumps. */
static void test_overflowing_bound(void)
{
	enum { ROWS = 16384, WIDE = 10, TERMS = 16 };
	static float a[ROWS * WIDE * TERMS] = {6779349.5f, 0.488f}, b[WIDE * TERMS] = {1, 1};
	static float c[ROWS * WIDE];
	const void *in[] = {a, b, c};
	Ir ir;
	Sample s = {0};
	Error err = {0};

	ir_init(&ir);
	Task *t = task_of("D[i,j] += A[i,16*j+k] * B[j,k]; L[i,j] = C[i,j] + D[i,j]; "
			  "M[i] max= L[i,j]; E[i,j] = exp(L[i,j] - floor(M[i])); Z[i] += E[i,j]; "
			  "Y[i,j] = E[i,j] / Z[i]",
			  3,
			  (Node *[]){input(&ir, "A", RICCI_F32, ROWS, WIDE * TERMS),
				     input(&ir, "B", RICCI_F32, WIDE, TERMS),
				     input(&ir, "C", RICCI_F32, ROWS, WIDE)},
			  &ir);
	CHECK_INT(t ? t->sub.nmember : 0, 5);
	Checking how = {{0}, 1e6, 1e9, 100, 0, NULL, 1, NULL, false};
	CHECK_INT(sample_expect(t, (void *const *)in, &how, &s, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(isinf(s.bound[2][0]) || s.bound[2][0] > 0x1p128);
	CHECK(isinf(s.bound[3][0]) && isinf(s.bound[4][0]));
	sample_free(&s);
	task_free(t);
	ir_free(&ir);
}

/* Numbers whose product f32 rounds up to an integer that it does not reach. */
static void products_below(int n, float *a, float *b)
{
	uint32_t state = 1;

	for (int i = 0; i < n;) {
		state = state * 1664525u + 1013904223u;
		a[i] = (float)(state >> 8) * 0x1p-17f;
		b[i] = 1 + (float)(state >> 20 & 15) / 3;
		i += floorf(a[i] * b[i]) > floor((double)a[i] * (double)b[i]);
	}
}

/* What rounding decides is not held against a kernel, in a value or in the place of a scatter; what is wrong is. */
static void test_decided_by_rounding(const char *text, bool scatters)
{
	enum { N = 64, PLACES = 1009 };
	static float a[N], b[N], c[N], y[PLACES];
	const void *in[] = {a, b, c}, *out[] = {y};
	int ny = scatters ? PLACES : N;
	Ir ir;
	Sample s = {0};
	Error err = {0}, wrong = {0};

	ir_init(&ir);
	memset(y, 0, sizeof y);
	products_below(N, a, b);
	for (int i = 0; i < N; i++) {
		int at = (int)floorf(a[i] * b[i]);

		c[i] = 1 + (float)i / 7;
		y[scatters ? at % PLACES : i] += scatters ? c[i] : (float)at * c[i];
	}
	Task *t = task_of(text, 3,
			  (Node *[]){input(&ir, "A", RICCI_F32, N, 0),
				     input(&ir, "B", RICCI_F32, N, 0),
				     input(&ir, "C", RICCI_F32, N, 0)},
			  &ir);
	Checking how = {{0}, 1e6, 1e9, ny, 0, NULL, 1, NULL, false};
	CHECK_INT(sample_expect(t, (void *const *)in, &how, &s, &err), 0);
	CHECK(sample_check(t, &s, (void *const *)out, NULL) != 0);
	CHECK_INT(
		sample_validate(t, (void *const *)in, how.rs, &s, (void *const *)out, &wrong, &err),
		0);
	CHECK_STR(wrong.text, "");
	CHECK_STR(err.text, "");
	for (int i = 0; i < ny; i++)
		y[i] += 1000;
	CHECK_INT(
		sample_validate(t, (void *const *)in, how.rs, &s, (void *const *)out, &wrong, &err),
		0);
	CHECK_INT(wrong.code, RICCI_ECOMPILE);
	sample_free(&s);
	task_free(t);
	ir_free(&ir);
}

/* Some order of P's factors overflows, so P has no bound: nor has what chooses it, though another choice comes with
 * M's bound, and what P decides may be either. */
static void test_chosen_without_bound(void)
{
	static float a[2 * N];
	const void *in[] = {a};
	Ir ir;
	Sample s = {0};
	Error err = {0};

	for (int i = 0; i < 2 * N; i++)
		a[i] = i % 2 ? 3 : 160;
	ir_init(&ir);
	Task *t = task_of("M[i] max= A[i,j]; P[i] *= k < 41 ? 0.5 : M[i] where k < 64; "
			  "Y[i,j] = A[i,j] < M[i] ? 1 : P[i]; Z[i,j] = P[i] < 1e37 ? A[i,j] : 1; "
			  "Q[i] = P[i] > 1e37 ? 0 : min(P[i], 0)",
			  1, (Node *[]){input(&ir, "A", RICCI_F32, N, 2)}, &ir);
	CHECK_INT(t ? t->sub.nmember : 0, 5);
	Checking how = {{0}, 1e6, 1e9, 100, 0, NULL, 1, NULL, false};
	CHECK_INT(sample_expect(t, (void *const *)in, &how, &s, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(s.count[2] > 0 && s.count[3] > 0);
	for (int i = 0; i < s.count[2]; i++)
		CHECK(isinf(s.bound[2][i]) == (s.at[2][i] % 2 == 0));
	for (int i = 0; i < s.count[3]; i++)
		CHECK(s.bound[3][i] > (s.at[3][i] % 2 ? 1.9 : 158));
	CHECK(s.count[4] > 0);
	for (int i = 0; i < s.count[4]; i++)
		CHECK(isinf(s.bound[4][i]));
	sample_free(&s);
	task_free(t);
	ir_free(&ir);
}

/* An index that rounding decides is not moved out of the range that its equation gives it: codes' row of the
 * nearest of them, whose memory ends at both sides. */
static void test_index_that_rounding_decides(void)
{
	enum { ROWS = 64, CODES = 1024, PAGE = 4096 };
	static float x[ROWS];
	float *codes = pages_map(3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
	CHECK(codes && !mprotect((char *)codes + PAGE, PAGE, PROT_READ | PROT_WRITE));
	const void *in[] = {x, (char *)codes + PAGE};
	Sample s = {0};
	Error err = {0};
	Checking how = {{0}, 1e6, 1e9, 100, 0, NULL, 1, NULL, false};
	Task *t = task_parse("ricci-task 1\ninput f32 64\ninput f32 1024\n"
			     "keep m0[i] min= abs(a0[i] - a1[j]) where i<64, j<1024\n"
			     "keep m1[i] min= abs(a0[i] - a1[j]) == m0[i] ? i32(j) : 1023 "
			     "where i<64, j<1024\n"
			     "keep m2[i] = a1[m1[i]] where i<64\n",
			     &err);

	CHECK_STR(err.text, "");
	for (int i = 0; i < CODES; i++)
		((float *)in[1])[i] = (float)i / 7;
	for (int i = 0; i < ROWS; i++)
		x[i] = (float)(i * 29 % CODES) / 7 + 0.05f;
	CHECK_INT(sample_expect(t, (void *const *)in, &how, &s, &err), 0);
	for (int i = 0; i < s.count[1]; i++)
		CHECK_INT((int)s.value[1][i], (int)s.at[1][i] * 29 % CODES);
	sample_free(&s);
	task_free(t);
	pages_unmap(codes, 3 * PAGE);
}

/* A member that is read under a condition, by a longer one: no element beyond its end is needed. */
static void test_needs(void)
{
	static const char task[] =
		"ricci-task 1\ninput f32 8x64x128\ninput f32 8x64x128\n"
		"local m0[i,j,k] = a0[i,j,k]*2 + (k == 0 ? 1 : 0) where i<8, j<64, k<128\n"
		"keep m1[i,j,k] = (a1[i,j,k-128] else 0) + (k <= 127 ? m0[i,j,k] : 0) where i<8, "
		"j<64, k<256\n"
		"keep m2[i] += m1[j,k,i] where i<256, j<8, k<64\n";
	Schedule none = {0};
	Error err = {0};
	Task *t = task_parse(task, &err);

	CHECK_STR(err.text, "");
	Kernel *k = kernel_make(t, &none, backend_find("interp"), target_host(), &err);
	CHECK_INT(t->sub.rows, 2);
	CHECK_REPORT(k && !verify_kernel(t, k, false, &err), "%s", err.text);
	kernel_unref(k);
	task_free(t);
}

/* Of a row only what the checked elements read is computed, by the indices at which they do. */
static void test_needed_places(void)
{
	enum { ROWS = 8, N = 4096 };
	static const char task[] =
		"ricci-task 1\ninput f32 8x4096\nlocal m0[i,j] = a0[i,j]*2 + 1 where i<8, j<4096\n"
		"keep m1[i,j] += m0[i,16*j+k] where i<8, j<256, k<16\n"
		"keep m2[i,j] = m0[i,4095-j] where i<8, j<4096\n"
		"keep m3[i,j] = m0[i,(j+1)%4096] where i<8, j<4096\n"
		"keep m4[i,j] = m0[i,j/3+j%3] where i<8, j<4096\n"
		"keep m5[i,j] += j<4000 ? m0[i,96*(j/96)+95-k] : 0 where i<8, j<4096, k<3\n";
	static float a[ROWS][N], y1[ROWS][N / 16], y[4][ROWS][N];
	const void *in[] = {a};
	void *stored[] = {y1, y[0], y[1], y[2], y[3]};
	Error err = {0};
	Sample s = {0};
	Task *t = task_parse(task, &err);
	Checking how = {{0}, 3000, 100e3, 24, 0, NULL, 1, NULL, false};

	CHECK_STR(err.text, "");
	CHECK_INT(t ? t->sub.rows : 0, 1);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (float)(i * N + j) / N;
#define M(j) (a[i][j] * 2 + 1)
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < N; j++) {
			y1[i][j / 16] += M(j);
			y[0][i][j] = M(N - 1 - j);
			y[1][i][j] = M((j + 1) % N);
			y[2][i][j] = M(j / 3 + j % 3);
			for (int k = 0; k < 3 && j < 4000; k++)
				y[3][i][j] += M(96 * (j / 96) + 95 - k);
		}
#undef M
	CHECK_INT(sample_expect(t, (void *const *)in, &how, &s, &err), 0);
	CHECK_REPORT(!sample_check(t, &s, stored, &err), "%s", err.text);
	for (int k = 1; k < s.nmember; k++)
		CHECK_REPORT(s.count[k] > 12 && s.count[k] <= 48, "%d: %d", k, s.count[k]);
	CHECK_REPORT(s.count[0] <= 48 * (16 + 1 + 1 + 1 + 3), "%d", s.count[0]);
	for (int e = 0; e < s.count[3]; e++) /* and wrong ones are found */
		y[1][s.at[3][e] / N][s.at[3][e] % N] += 1;
	CHECK_INT(sample_check(t, &s, stored, NULL), RICCI_ECOMPILE);
	sample_free(&s);
	task_free(t);
}

/* Results are held against what follows from those that were stored before them. */
static void test_given(void)
{
	enum { ROWS = 4, N = 512 };
	static const char *const text[] = {
		"ricci-task 1\ninput f32 4x512\nkeep m0[i,j] = a0[i,j]*2 where i<4, j<512\n"
		"keep m1[i] += m0[i,j] where i<4, j<512\n"
		"keep m2[i,j] = m0[i,j]/m1[i] where i<4, j<512\n",
		"ricci-task 1\ninput f32 4x512\nkeep m0[i,j] = bf16(a0[i,j]*2) where i<4, "
		"j<512\n"
		"keep m1[i] += f32(m0[i,j]) where i<4, j<512\n"};
	static float a[ROWS][N], m0[ROWS][N], m1[ROWS], m2[ROWS][N];
	const void *in[] = {a};
	void *stored[] = {m0, m1, m2};
	Error err = {0};
	Sample s = {0};
	Task *t = task_parse(text[0], &err), *narrow = task_parse(text[1], &err);
	Checking all = {{0}, 600, 100e3, 24, 0, NULL, 1, NULL, false}, follows = all;

	CHECK_STR(err.text, "");
	follows.stored = stored;
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = 1 + (float)j / N;
			m0[i][j] = 2 * a[i][j] + (j == 300); /* which is no checked place */
			m1[i] += m0[i][j];
		}
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < N; j++)
			m2[i][j] = m0[i][j] / m1[i];
	CHECK_INT(sample_expect(t, (void *const *)in, &all, &s, &err), 0);
	CHECK_INT(sample_check(t, &s, stored, NULL), RICCI_ECOMPILE);
	CHECK_INT(s.count[0], 2 * N);
	sample_free(&s);
	CHECK_INT(sample_expect(t, (void *const *)in, &follows, &s, &err), 0);
	CHECK_REPORT(!sample_check(t, &s, stored, &err), "%s", err.text);
	CHECK(s.count[0] > 10 && s.count[0] <= 48 && s.count[1] == 2);
	m1[ROWS - 1] *= 1.0001f;
	CHECK_INT(sample_check(t, &s, stored, NULL), RICCI_ECOMPILE);
	sample_free(&s);
	CHECK(checking_given(&follows, t, 0) == m0 && checking_given(&follows, t, 2) == m2);
	CHECK(!checking_given(&all, t, 0) && narrow && !checking_given(&follows, narrow, 0));
	task_free(t);
	task_free(narrow);
}

/* The NaN that exp makes of sqrt(-1) has the bits of a poison. */
static void nans(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	static const uint8_t bits[] = {0xff, 0xa5, 0x5b, 0xff};
	const float *a = buf[0];

	(void)env;
	for (int64_t i = begin; i < end; i++)
		if (a[i] < 0)
			memset((float *)buf[1] + i, bits[0], 4);
		else
			((float *)buf[1])[i] = sqrtf(a[i]);
}

/* Y = min(max(A, 0), 6), the bound lies beyond what is drawn for tight bounds. */
static void clipped(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++)
		((float *)buf[1])[i] = fminf(fmaxf(((float *)buf[0])[i], 0), fault ? 7 : 6);
}

/* Is 12 added where T is 1000? */
static void chosen(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++) {
		int32_t t = ((int32_t *)buf[0])[i];

		((int32_t *)buf[1])[i] = t + (t == 1000 + fault ? 12 : 0);
	}
}

/* What a part computes lies in memory that all share: right as long as one runs after the other. */
static void racing(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	volatile float *y = buf[1], *shared = env->shared;

	for (int64_t i = begin; i < end; i++) {
		if (fault)
			*shared = ((float *)buf[0])[i];
		y[i] = fault ? *shared : ((float *)buf[0])[i];
	}
}

/* The sum of all but `fault` of A's elements; which one is left out: the last, the middle. */
static int64_t terms;

static void summed(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const float *a = buf[0], *b = buf[1];
	float s[16] = {0}, all = 0;

	(void)env, (void)begin, (void)end;
	for (int64_t i = 0; i < terms - (fault == 1); i++)
		if (fault != 2 || i != 1)
			s[i % 16] += a[i] * b[i];
	for (int i = 0; i < 16; i++)
		all += s[i];
	*(float *)buf[2] = all;
}

static void check_hand(const char *text, Type type, int64_t n, KernelFn *run, int faults)
{
	Ir ir;
	const char **name;
	Node *in[2];
	Kernel k = {.run = run, .shape.parts = n == terms ? 1 : n, .shape.shared = 64, .refs = 1};

	ir_init(&ir);
	int nin = notation_operands(&ir, text, &name);
	for (int i = 0; i < nin && i < 2; i++)
		in[i] = input(&ir, name[i], type, n, 0);
	Task *t = task_of(text, nin, in, &ir);
	for (fault = 0; t && fault <= faults; fault++) {
		Error err = {0};
		int code = verify_within(t, &k, NULL, true, 30, &err);

		CHECK_REPORT(code == (fault ? RICCI_ECOMPILE : 0), "%s, fault %d: %s", text, fault,
			     err.text);
	}
	fault = RIGHT;
	task_free(t);
	ir_free(&ir);
}

/* A - (A + 1) is -1 in any numbers that hold A + 1, which f32 rounds. */
static void cancels(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++) {
		volatile float a = ((float *)buf[0])[i], s = a + 1, d = a - s;

		((float *)buf[1])[i] = d == -1 ? 0.5f + (float)fault : 1;
	}
}

/* What is subnormal on the way may be 0 (kernel_run). */
static void underflows(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++)
		((float *)buf[1])[i] = fault ? 1e-10f : 0;
}

static void test_data(void)
{
	check_hand("Y[i] = sqrt(exp(-90 - 0.01*abs(A[i])))", RICCI_F32, N, underflows, 1);
	check_hand("Y[i] = sqrt(A[i])", RICCI_F32, N, nans, 0);
	check_hand("Y[i] = min(max(A[i], 0), 6)", RICCI_F32, N, clipped, 1);
	check_hand("Y[i] = A[i] + (A[i] == 1000 ? 12 : 0)", RICCI_I32, N, chosen, 1);
	check_hand("Y[i] = A[i] - (A[i] + 1) == -1 ? 0.5 : 1", RICCI_F32, N, cancels, 1);
	check_hand("Y[i] = A[i]", RICCI_F32, 20000, racing, 1);
	static const int64_t length[] = {1000, 40001, 100000, 20000000};
	for (int i = 0; i < COUNT(length); i++) {
		terms = length[i];
		check_hand("Y[] += A[i] * B[i]", RICCI_F32, terms, summed, 2);
	}
}

/* Sums of what is more than half: is it more, or as much? */
static void halves(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++) {
		float s = 0;

		for (int k = 0; k < K; k++) {
			float x = ((float *)buf[0])[i * K + k];

			s += (fault ? 0.5f <= x : 0.5f < x) ? x : 0;
		}
		((float *)buf[1])[i] = s;
	}
}

static void test_border(void)
{
	Ir ir;
	Kernel k = {.run = halves, .shape.parts = N, .refs = 1};

	ir_init(&ir);
	Task *t = task_of("Y[i] += 0.5 < A[i,k] ? A[i,k] : 0", 1,
			  (Node *[]){input(&ir, "A", RICCI_F32, N, K)}, &ir);
	for (fault = 0; t && fault < 2; fault++)
		CHECK_INT(verify_within(t, &k, NULL, true, 10, NULL), fault ? RICCI_ECOMPILE : 0);
	fault = RIGHT;
	task_free(t);
	ir_free(&ir);
}

/* A kernel that is wrong where no element is sampled, beside one that is right; and a right kernel
 * beside one that is wrong. */
static void mostly(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++)
		((float *)buf[1])[i] = 3 * ((float *)buf[0])[i] + (fault && i == 54321 ? 0.01f : 0);
}

static void rightly(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	(void)env;
	for (int64_t i = begin; i < end; i++)
		((float *)buf[1])[i] = 3 * ((float *)buf[0])[i];
}

static void test_reference(void)
{
	enum { MANY = 100000 };
	Ir ir;
	Kernel one = {.run = mostly, .shape.parts = MANY, .refs = 1};
	Kernel other = {.run = rightly, .shape.parts = MANY, .refs = 1};
	Error err = {0};

	ir_init(&ir);
	Task *t =
		task_of("Y[i] = 3 * A[i]", 1, (Node *[]){input(&ir, "A", RICCI_F32, MANY, 0)}, &ir);
	fault = 1;
	CHECK_INT(verify_within(t, &one, NULL, true, 10, NULL), 0); /* not sampled */
	CHECK_INT(verify_within(t, &one, &other, true, 10, &err), RICCI_ECOMPILE);
	CHECK_REPORT(strstr(err.text, "a kernel computes a wrong value: element [54321]"), "%s",
		     err.text);
	CHECK_INT(verify_within(t, &other, &one, true, 10, NULL), 0);
	fault = RIGHT;
	task_free(t);
	ir_free(&ir);
}

/* Of tensors larger than a bound only what is judged has memory of its own. */
enum { LARGE = 1 << 22, LARGE_FAULTS = 5 };

static void scaled(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	static const int64_t wrong[] = {-1, 0, LARGE - 1};
	float *y = buf[1];

	(void)env;
	for (int64_t part = begin; part < end; part++)
		for (int64_t i = part * (LARGE / 64); i < (part + 1) * (LARGE / 64); i++)
			if (fault < COUNT(wrong))
				y[i] = 3 * ((float *)buf[0])[i] + (i == wrong[fault] ? 1 : 0);
			else if (fault == 3) /* a lost quarter */
				y[i] = part < 48 ? 3 * ((float *)buf[0])[i] : 0;
			else /* as if lines were shorter */
				y[i] = 3 * ((float *)buf[0])[i & (LARGE / 2 - 1)];
	if (fault == LARGE_FAULTS && end == 64)
		y[LARGE] = 0;
}

static size_t trial_memory(const Task *t, const Kernel *k)
{
	Checking how = {{7, 3}, 50e3, INFINITY, 500, 0, NULL, 1, NULL, false};
	Sample s = {0};
	Trial v = {0};
	size_t own = 0;

	CHECK(sample_choose(t, &how, &s));
	CHECK_INT(trial_new(&v, t, k, false, &s, NULL, NULL), 0);
	for (int i = 0; i < v.nfence; i++)
		own += v.fence[i].own;
	trial_free(&v);
	sample_free(&s);
	return own;
}

static void test_large(void)
{
	size_t room = trial_room;
	Kernel k = {.run = scaled, .shape.parts = 64, .refs = 1};
	Ir ir;

	ir_init(&ir);
	Task *t = task_of("Y[i] = 3 * A[i]", 1, (Node *[]){input(&ir, "A", RICCI_F32, LARGE, 0)},
			  &ir);
	trial_room = 1 << 20;
	for (fault = 0; t && fault <= LARGE_FAULTS; fault++) {
		Error err = {0};
		int code = verify_within(t, &k, NULL, true, 30, &err);

		CHECK_REPORT(code == (fault ? RICCI_ECOMPILE : 0), "fault %d: %s", fault, err.text);
	}
	fault = RIGHT;
	CHECK_INT(verify_within(t, &k, &k, true, 30, NULL), 0); /* only windows are compared */
	task_free(t);
	t = task_of("Y[i,j] = 3 * A[i,j]", 1,
		    (Node *[]){input(&ir, "A", RICCI_F32, 1 << 16, 1 << 16)}, &ir);
	trial_room = room;
	CHECK(trial_memory(t, &k) < (size_t)64 << 20); /* of 32 GB */
	task_free(t);
	ir_free(&ir);
}

/* Right kernels of many kinds pass; the interpreter's own and the generated ones. */
static void test_right(size_t room)
{
	size_t was = trial_room;
	static const char *const text[] = {
		"Y[i,d] = E[T[i],d] where d<4",
		"Y[i,d] = E[T[(i+3)%7],d] * 2.0 where i<7, d<4",
		"Y[T[i]:9,d] += E[i,d] where i<7, d<4",
		"Y[i] += log(E[i,d])",
		"Y[i] max= E[i,d]; Z[i] = exp(Y[i]) * 2.0 - Y[i]",
		"Y[i] max= S[i,d]*S[d,i]",
		"Y[i] += E[i,d] else 0.0 where d<9, i<7",
		"Y[i,d] = sqrt(E[i,d])",
		"Y[i,d] = 1.0/(E[i,d]*E[i,d] - 0.25)",
		"Y[i] *= E[i,d] + 1.0",
		"Y[] *= i < 2 ? 1e-30 : i > 3 ? 1e30 : E[i,d]",
		"Y[i] = T[i] * 3 + 1",
		"Y[i,d] = normal(1) + E[i,d]",
		"Y[i,d] = exp(sqrt(E[i,d]))",
		"Y[i,d] = -pow(1.0 - E[i,d], 2.0) * log(E[i,d])",
		"Y[i,d] = E[i,d] < 100.0 ? sin(E[i,d]) : tanh(E[i,d] - 100.0)",
	};
	static const char *const names[] = {"interp", "tcc", "cc"};
	Schedule s;
	char why[256];

	trial_room = room;
	for (int i = 0; i < COUNT(text); i++)
		for (int b = 0; b < COUNT(names); b++) {
			const char **name;
			Ir ir;
			Node *in[2];
			Error err = {0};
			Task *t;
			Kernel *k;
			int n;

			ir_init(&ir);
			n = notation_operands(&ir, text[i], &name);
			for (int o = 0; o < n && o < 2; o++)
				in[o] = *name[o] == 'T'	  ? input(&ir, "t", RICCI_I32, 7, 0)
					: *name[o] == 'S' ? input(&ir, "s", RICCI_F32, 48, 48)
							  : input(&ir, "e", RICCI_F32, 7, 4);
			t = task_of(text[i], n, in, &ir);
			if (!t) {
				ir_free(&ir);
				continue;
			}
			if (schedule_offers(t, target_host(), 1, &s) < 1)
				s.n = 0;
			if (!backend_find(names[b])->available(why, sizeof why))
				k = NULL;
			else
				k = kernel_make(t, &s, backend_find(names[b]), target_host(), &err);
			CHECK_STR(err.text, "");
			if (k)
				CHECK_INT(verify_kernel(t, k, b > 0, &err), 0);
			CHECK_STR(err.text, "");
			if (err.code)
				fprintf(stderr, "%s on %s\n", text[i], names[b]);
			if (k)
				kernel_unref(k);
			task_free(t);
			ir_free(&ir);
		}
	trial_room = was;
}

/* Lanes at a tensor's end that ask before they read: with AVX-512, gcc 12.2 read whole vectors. */
static void check_end(const char *task)
{
	const Backend *cc = backend_find("cc");
	char why[256];
	Error err = {0};
	Schedule s;

	if (!cc->available(why, sizeof why)) {
		CHECK_SKIP(why);
		return;
	}
	Task *t = task_parse(task, &err);
	CHECK_STR(err.text, "");
	CHECK(schedule_offers(t, target_host(), 1, &s) == 1);
	Kernel *k = kernel_make(t, &s, cc, target_host(), &err);
	CHECK(k != NULL);
	if (k)
		CHECK_INT(verify_kernel(t, k, true, &err), 0);
	CHECK_STR(err.text, "");
	if (k)
		kernel_unref(k);
	task_free(t);
}

static void test_ends(void)
{
	check_end("ricci-task 1\ninput f64 3x4x2x1x4\n"
		  "keep m0[i,j,k,l] = k%4 <= 1 && l <= 1 ? a0[i,j,k/4,0,l+2*(k%4)] : 0 "
		  "where i<3, j<4, k<7, l<5\n");
	/* only the last of the statements that share the condition needs it */
	check_end("ricci-task 1\ninput i32 1x2x2x8\n"
		  "keep m0[i,j] max= a0[0,l,2*i+k,j+1] else 0 where i<2, j<8, k<2, l<2\n");
}

/* Equations row by row that are all kept: one stores what the next reads. */
static void test_rows_kept(void)
{
	static const char text[] =
		"ricci-task 1\ninput f32 8x64x10x4x4\n"
		"keep m0[i,j,k,l] += a0[i,m,j,k,l] where i<8, j<10, k<4, l<4, m<64\n"
		"keep m1[i,j] += m0[i,j,k,l]*m0[i,j,k,l] where i<8, j<10, k<4, l<4\n"
		"keep m2[i,j] = m1[i,j]/(m1[i,j] + 1) where i<8, j<10\n"
		"keep m3[i,j,k,l] = m0[i,j,k,l]*m2[i,j] where i<8, j<10, k<4, l<4\n";
	static const char *const backend[] = {"tcc", "cc"};
	Schedule offer[12];
	Error err = {0};
	char why[256];
	Task *t = task_parse(text, &err);

	CHECK_REPORT(t, "%s", err.text);
	int n = t ? schedule_offers(t, target_host(), COUNT(offer), offer) : 0;
	for (int k = 0; k < COUNT(backend) * n; k++) {
		const Backend *b = backend_find(backend[k / n]);
		if (!b->available(why, sizeof why))
			continue;
		Kernel *made = kernel_make(t, &offer[k % n], b, target_host(), &err);
		CHECK_REPORT(made, "%s", err.text);
		if (made)
			CHECK_REPORT(!verify_kernel(t, made, true, &err), "%s", err.text);
		kernel_unref(made);
	}
	task_free(t);
}

/* Convolutions by fewer products: a result at a border has few terms, and the roundings of its tile, whose other
 * results have more and, of wide data, larger ones. */
static void test_staged(void)
{
	static const char *const text[] = {
		"ricci-task 1\ninput f32 1x31x18x18\ninput f32 39x31x3x3\n"
		"keep m0[i,j,k,l] += (a0[i,o,k+m-1,l+n-1] else 0)*a1[j,o,m,n] "
		"where i<1, j<39, k<18, l<18, m<3, n<3, o<31\n",
		"ricci-task 1\ninput f32 1x31x30x30\ninput f32 39x31x3x3\n"
		"keep m0[i,j,k,l] += (a0[i,o,2*k+2*m-3,2*l+2*n-3] else 0)*a1[j,o,m,n] "
		"where i<1, j<39, k<16, l<16, m<3, n<3, o<31\n"};
	const Backend *tcc = backend_find("tcc");
	char why[256];

	if (!tcc->available(why, sizeof why)) {
		CHECK_SKIP(why);
		return;
	}
	for (int k = 0; k < COUNT(text); k++) {
		Error err = {0};
		Schedule s = {0};
		Task *t = task_parse(text[k], &err);

		CHECK_INT(schedule_parse("winograd; stage 0; parallel 0; stage 1; parallel 0; "
					 "stage 2; tensorise 0; stage 3; parallel 0",
					 &s, &err),
			  0);
		CHECK(schedule_staged(&s));
		Kernel *made = kernel_make(t, &s, tcc, backend_target(tcc), &err);
		CHECK_REPORT(made && !verify_kernel(t, made, true, &err), "%s", err.text);
		kernel_unref(made);
		task_free(t);
	}
}

int main(void)
{
	setenv("RICCI_CACHE", "off", 1);
	test_faults();
	test_rows();
	test_opposite();
	test_expecting_threads();
	test_overflowing_bound();
	test_decided_by_rounding("Y[i] = floor(A[i]*B[i])*C[i]", false);
	test_decided_by_rounding("Y[i32(floor(A[i]*B[i]))%1009:1009] += C[i]", true);
	test_chosen_without_bound();
	test_index_that_rounding_decides();
	test_folds();
	test_needs();
	test_needed_places();
	test_given();
	test_data();
	test_border();
	test_reference();
	test_right(trial_room);
	if (getenv("RICCI_EMULATOR")) {
		CHECK_SKIP("qemu maps no memory a second time");
	} else {
		test_large();
		test_right(0);
	}
	test_ends();
	test_staged();
	CHECK_INT(mem_live(), 0);
	test_rows_kept();
	return check_done();
}
