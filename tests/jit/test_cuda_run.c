/* test_cuda_run.c - what CUDA kernels compute, and the way to the device and back, without a GPU.
 *
 * A stand-in for NVRTC and the driver (fake_cuda.c) lies beside this program and runs the threads
 * of a grid on the host. Where a driver answers, test_lower_cuda runs the same
 * on it.
 */
#include "jit/backend/backend.h"
#include "jit/device/device.h"
#include "tests/child.h"
#include "tests/jit/cuda_stand_in.h"
#include "tests/jit/lower_cases.h"

#include <math.h>

/* What is live when the device's pool is empty. */
static int live_now(int (*live)(void))
{
	Device *d = device_open(&device_cuda, 0, NULL);
	if (d)
		device_trim(d);
	return live();
}

/* Runs one kernel while `call` of the driver fails: the error says what failed, nothing stays. */
static void check_failure(const Trial *t, const char *call, const char *want, int (*live)(void))
{
	const Backend *b = backend_find("nvrtc");
	Error err = {0};
	int before = live_now(live);
	setenv("FAKE_CUDA_FAIL", call, 1);
	Kernel *k = kernel_lower(&t->task, &t->offer[0], b, target_host(), &err);
	CHECK(k);
	if (b->compile(b, 1, &k, NULL, &err) == 0) {
		float out[64];
		void *buf[8] = {t->in[0], out};
		KernelEnv env = {.kernel = k, .err = &err};
		k->run(buf, &env, 0, k->shape.parts);
	}
	unsetenv("FAKE_CUDA_FAIL");
	CHECK_REPORT(err.code && strstr(err.text, want), "%s fails, and the error is: %s", call,
		     err.text);
	kernel_unref(k);
	CHECK(live_now(live) == before);
}

static void test_failures(int (*live)(void))
{
	static const struct {
		const char *call, *message;
	} fail[] = {
		{"create", "nvrtc does not work"},
		{"compile", "nvrtc refuses a kernel:\nthe fake does not like it"},
		{"crash", "nvrtc crashed (Killed)"},
		{"cubin", "nvrtc made no code for sm_90"},
		{"current", "CUDA: choosing the device failed: the fake was told to (error 1)"},
		{"load", "CUDA: loading a kernel failed: the fake was told to (error 1)"},
		{"function", "CUDA: finding a kernel failed: the fake was told to (error 1)"},
		{"alloc", "cuda:0 has no 712 bytes left for a kernel's test data (1000000000 of "
			  "2000000000 are "
			  "free); this process holds there 0 bytes for parameters, states and "
			  "inputs, 0 bytes for tensors of steps, 0 bytes for outputs, 0 bytes of "
			  "kernels' own"},
		{"to_device", "CUDA: copying to the device failed: the fake was told to (error 1)"},
		{"launch", "CUDA: starting a kernel failed: the fake was told to (error 1)"},
		{"event", "CUDA: making an event failed: the fake was told to (error 1)"},
		{"event_record", "CUDA: setting an event failed: the fake was told to (error 1)"},
		{"event_wait", "CUDA: a kernel failed: the fake was told to (error 1)"},
		{"finish", "CUDA: a kernel or a copy failed: the fake was told to (error 1)"},
		{"to_host", "CUDA: copying from the device failed: the fake was told to (error 1)"},
	};
	Trial *t = harness_trials(&(Case){"Y[i] = A[i]*2", "A=50"}, false, NULL);
	for (int k = 0; k < COUNT(fail); k++)
		check_failure(t, fail[k].call, fail[k].message, live);
}

/* In a forked child CUDA is neither used nor closed: kernels are refused, and freeing one that the
 * parent made and ran unloads nothing (the stand-in counts what is live). */
static Kernel *inherited;
static int (*live_count)(void);

static int child_work(void)
{
	char why[256] = "";
	Error err = {0};
	Kernel *own = kernel_new(backend_find("nvrtc"), &err), *list[] = {own};
	int before = live_count();
	if (backend_find("nvrtc")->available(why, sizeof why) ||
	    strcmp(why, "it was opened before this process was forked"))
		return 1;
	if (!backend_find("nvrtc")->compile(own->backend, 1, list, NULL, &err) ||
	    strcmp(err.text, "no CUDA compiler: it was opened before this process was forked"))
		return 2;
	kernel_unref(own);
	kernel_unref(inherited);
	return live_count() == before ? 0 : 3;
}

static void test_fork(int (*live)(void))
{
	Trial *t = harness_trials(&(Case){"Y[i] = A[i]*3", "A=50"}, false, NULL);
	Schedule none = {0};
	Error err = {0};
	live_count = live;
	inherited = kernel_make(&t->task, &none, backend_find("nvrtc"), target_host(), &err);
	CHECK_STR(err.text, "");
	if (!inherited)
		return;
	harness_run(t, inherited);
	CHECK_INT(child(child_work), 0);
	kernel_unref(inherited);
}

/* Products of f32 by tensor cores in parts are as near to those of f64 as f32 is: 11 bits of each factor alone
 * would be 1e-5 off. */
static void test_parts(void)
{
	enum { M = 70, N = 72, K = 96 };
	static const char *const way =
		"tensorise 2; block 0 64; block 1 64; block 2 32; tile 0 4; tile 1 8; threads 128";
	static float a[M * K], b[K * N], y[M * N];
	Trial *t =
		harness_trials(&(Case){"Y[i,j] += A[i,k]*B[k,j]", "A=70x96 B=96x72"}, false, NULL);
	uint64_t state = 5;
	double worst = 0;
	Error err = {0};
	Schedule s;
	for (int i = 0; i < M * K; i++)
		a[i] = 1 + (float)random_below(&state, 1 << 23) * 0x1p-23f;
	for (int i = 0; i < K * N; i++)
		b[i] = 1 + (float)random_below(&state, 1 << 23) * 0x1p-23f;
	CHECK_INT(schedule_parse(way, &s, &err), 0);
	Kernel *k = kernel_make(&t->task, &s, backend_find("nvrtc"), target_groups(), &err);
	CHECK_STR(err.text, "");
	if (!k)
		return;
	void *buf[] = {a, b, y};
	KernelEnv env = {.kernel = k, .err = &err};
	k->run(buf, &env, 0, k->shape.parts);
	CHECK_STR(err.text, "");
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int d = 0; d < K; d++)
				sum += (double)a[i * K + d] * (double)b[d * N + j];
			worst = fmax(worst, fabs((double)y[i * N + j] / sum - 1));
		}
	CHECK_REPORT(worst < 5e-7, "%g of a sum is lost", worst);
	kernel_unref(k);
}

int main(void)
{
	void *fake = cuda_stand_in();
	int (*live)(void) = fake ? (int (*)(void))dlsym(fake, "fake_cuda_live") : NULL;
	CHECK_REPORT(live, "the stand-in for CUDA isn't there: %s", dlerror());
	if (live) {
		harness_grid = true;
		harness_check(lower_cases(), backend_find("nvrtc"), 100);
		CHECK(live_now(live) == 0);
		test_failures(live);
		test_parts();
		test_fork(live);
	}
	return harness_done();
}
