/* oclgrind.h - kernels in OpenCL C on Oclgrind, a simulator of OpenCL devices: it reports data races, accesses
 * outside of buffers, reads of what was never written, and barriers that not all threads of a block come
 * to. For tests that start themselves again under it (oclgrind_start).
 *
 * It has OpenCL 1.2, so buffers are the driver's objects here, where jit/device/opencl.c needs shared virtual
 * memory. Each is as long as its tensor, and what a kernel writes holds nothing before its first run.
 * Input: kernels lowered for `backend_oclgrind`. Output: their results; what Oclgrind has reported since it was
 * last asked (oclgrind_said). */
#ifndef TESTS_OCLGRIND_H
#define TESTS_OCLGRIND_H

#include "jit/device/device.h"
#include "tests/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define OCLGRIND_CALLS(CALL)                                                                       \
	CALL(int, GetPlatformIDs, (unsigned, void **, unsigned *))                                 \
	CALL(int, GetDeviceIDs, (void *, uint64_t, unsigned, void **, unsigned *))                 \
	CALL(void *, CreateContext, (void *, unsigned, void *const *, void *, void *, int *))      \
	CALL(int, ReleaseContext, (void *))                                                        \
	CALL(void *, CreateCommandQueue, (void *, void *, uint64_t, int *))                        \
	CALL(int, ReleaseCommandQueue, (void *))                                                   \
	CALL(void *, CreateProgramWithSource,                                                      \
	     (void *, unsigned, const char **, const size_t *, int *))                             \
	CALL(int, BuildProgram, (void *, unsigned, void *const *, const char *, void *, void *))   \
	CALL(int, GetProgramBuildInfo, (void *, void *, unsigned, size_t, void *, size_t *))       \
	CALL(int, ReleaseProgram, (void *))                                                        \
	CALL(void *, CreateKernel, (void *, const char *, int *))                                  \
	CALL(int, ReleaseKernel, (void *))                                                         \
	CALL(int, SetKernelArg, (void *, unsigned, size_t, const void *))                          \
	CALL(void *, CreateBuffer, (void *, uint64_t, size_t, void *, int *))                      \
	CALL(int, ReleaseMemObject, (void *))                                                      \
	CALL(int, EnqueueWriteBuffer,                                                              \
	     (void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *, void *))   \
	CALL(int, EnqueueReadBuffer,                                                               \
	     (void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *))         \
	CALL(int, EnqueueNDRangeKernel,                                                            \
	     (void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned,  \
	      void *, void *))                                                                     \
	CALL(int, Finish, (void *))

static struct {
#define CALL(result, name, parameters) result(*name) parameters;
	OCLGRIND_CALLS(CALL)
#undef CALL
	void *device;
	const char *log; /* of the last context */
	int status;	 /* of the first call that failed */
} oclgrind;

/* For tests of the tests: so many bytes at the end of the first input are left out; it holds nothing. */
static size_t oclgrind_shorter;
static bool oclgrind_empty;

/* What Kernel.module is. With one context for all kernels, Oclgrind 21.10 forgets now and then what was
 * written. */
typedef struct Simulated {
	void *context, *queue, *program, *function[KERNEL_PHASES];
	bool ran;
} Simulated;

/* ---- starting */

static bool oclgrind_open(const char *log)
{
	bool bound = true;
	void *platform = NULL;
	int status = 0;
	/* The calls are those of the library that `oclgrind` puts before all others. */
#define CALL(result, name, parameters)                                                             \
	bound &= (oclgrind.name = dlsym(RTLD_DEFAULT, "cl" #name)) != NULL;
	OCLGRIND_CALLS(CALL)
#undef CALL
	if (bound)
		status = oclgrind.GetPlatformIDs(1, &platform, NULL);
	if (bound && !status)
		status = oclgrind.GetDeviceIDs(platform, 0xffffffffu, 1, &oclgrind.device, NULL);
	oclgrind.log = log;
	CHECK_REPORT(bound && !status, "Oclgrind does not start: error %d", status);
	return bound && !status;
}

/* True in a process under Oclgrind. This one becomes such a process; false: it can't. */
static bool oclgrind_start(int argc, char **argv)
{
	const char *folder = getenv("TMPDIR");
	char log[1000], self[1000];
	if (argc == 3 && !strcmp(argv[1], "--under-oclgrind"))
		return oclgrind_open(argv[2]);
#ifdef __SANITIZE_ADDRESS__
	CHECK_SKIP("Oclgrind does not run beside AddressSanitizer");
	return false;
#endif
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n < 0 ? 0 : n] = 0;
	snprintf(log, sizeof log, "%s/ricci_oclgrind_XXXXXX", folder ? folder : "/tmp");
	int file = mkstemp(log);
	if (file >= 0)
		close(file);
	execlp("oclgrind", "oclgrind", "--data-races", "--uniform-writes", "--uninitialized",
	       "--num-threads", "1", "--max-errors", "1000000", "--local-mem-size", "65536",
	       "--log", log, self, "--under-oclgrind", log, NULL);
	CHECK_SKIP(errno == ENOENT ? "no Oclgrind; on Debian: apt-get install oclgrind"
				   : strerror(errno));
	unlink(log);
	return false;
}

static void oclgrind_done(void)
{
	unlink(oclgrind.log);
}

/* ---- what it says */

/* All that it has reported of the kernel that was compiled last; "": nothing. To be freed. */
static char *oclgrind_said(void)
{
	Text t = {0};
	char line[1000];
	FILE *log = fopen(oclgrind.log, "r");
	while (log && fgets(line, sizeof line, log))
		text_add(&t, "%s", line);
	if (log)
		fclose(log);
	text_add(&t, "%s", "");
	return t.s;
}

/* Counts a kernel that ran, and reports what was wrong with it. */
static bool oclgrind_check(const char *what, const Kernel *k)
{
	enum { SHOWN = 1500 };
	Text schedule = {0};
	char *said = oclgrind_said();
	bool clean = !oclgrind.status && (!said || strspn(said, " \n\t") == strlen(said));
	schedule_print(&schedule, &k->schedule);
	CHECK_REPORT(clean, "%s [%s]: error %d\n%.*s", what, schedule.s ? schedule.s : "",
		     oclgrind.status, SHOWN, said ? said : "");
	text_free(&schedule);
	mem_free(said);
	oclgrind.status = 0;
	return clean;
}

/* ---- the backend */

static void oclgrind_must(int status)
{
	if (status && !oclgrind.status)
		oclgrind.status = status;
}

static int oclgrind_one(Kernel *k, Error *err)
{
	const char *source = k->source;
	char log[2000] = "";
	int status = 0;
	Simulated *m = k->module = mem_zalloc(sizeof *m);
	m->context = oclgrind.CreateContext(NULL, 1, &oclgrind.device, NULL, NULL, &status);
	if (!status)
		m->queue = oclgrind.CreateCommandQueue(m->context, oclgrind.device, 0, &status);
	if (!status)
		m->program =
			oclgrind.CreateProgramWithSource(m->context, 1, &source, NULL, &status);
	if (!status && (status = oclgrind.BuildProgram(m->program, 1, &oclgrind.device,
						       "-cl-opt-disable", NULL, NULL)))
		oclgrind.GetProgramBuildInfo(m->program, oclgrind.device, 0x1183, sizeof log - 1,
					     log, NULL);
	for (int phase = 0; phase < kernel_phases(k) && !status; phase++) {
		char name[32];
		phase_name(phase, name);
		m->function[phase] = oclgrind.CreateKernel(m->program, name, &status);
	}
	return status ? error_set(err, RICCI_ECOMPILE, "Oclgrind: error %d: %s", status, log) : 0;
}

static void oclgrind_release(void *module)
{
	Simulated *m = module;
	for (int i = 0; i < KERNEL_PHASES; i++)
		if (m->function[i])
			oclgrind.ReleaseKernel(m->function[i]);
	if (m->program)
		oclgrind.ReleaseProgram(m->program);
	if (m->queue)
		oclgrind.ReleaseCommandQueue(m->queue);
	if (m->context)
		oclgrind.ReleaseContext(m->context);
	mem_free(m);
}

static void *oclgrind_buffer(const Simulated *m, size_t bytes, const void *from)
{
	int status = 0;
	void *b = oclgrind.CreateBuffer(m->context, 1, bytes ? bytes : 1, NULL, &status);
	if (!status && from && bytes)
		status = oclgrind.EnqueueWriteBuffer(m->queue, b, 1, 0, bytes, from, 0, NULL, NULL);
	oclgrind_must(status);
	return b;
}

static void oclgrind_phase(const Kernel *k, int phase, int narg, void *const *arg, uint64_t seed)
{
	const Simulated *m = k->module;
	const KernelGrid g = kernel_grid(k, phase);
	size_t block = g.threads[0], all = block * g.blocks[0];
	for (int i = 0; i < narg; i++)
		oclgrind_must(oclgrind.SetKernelArg(m->function[phase], (unsigned)i, sizeof *arg,
						    &arg[i]));
	oclgrind_must(
		oclgrind.SetKernelArg(m->function[phase], (unsigned)narg, sizeof seed, &seed));
	oclgrind_must(oclgrind.EnqueueNDRangeKernel(m->queue, m->function[phase], 1, NULL, &all,
						    &block, 0, NULL, NULL));
}

/* known: results hold what the caller's hold, else nothing. */
static void oclgrind_launch(void *const *buf, const KernelEnv *env, bool known)
{
	const Kernel *k = env->kernel;
	const Simulated *m = k->module;
	int n = 0;
	void *arg[128];
	for (int i = 0; i < k->nbuf; i++) {
		bool input = i < k->ninput;
		size_t bytes = k->bytes[i] - (i ? 0 : oclgrind_shorter);
		bool holds = input ? i > 0 || !oclgrind_empty : known;
		arg[n++] = oclgrind_buffer(m, bytes, holds ? buf[i] : NULL);
	}
	if (k->shape.shared)
		arg[n++] = oclgrind_buffer(m, k->shape.shared, NULL);
	arg[n++] = oclgrind_buffer(m, sizeof env->step, &env->step);
	for (int phase = 0; phase < kernel_phases(k); phase++)
		oclgrind_phase(k, phase, n, arg, env->seed);
	oclgrind_must(oclgrind.Finish(m->queue));
	for (int i = k->ninput; i < k->nbuf; i++)
		oclgrind_must(oclgrind.EnqueueReadBuffer(m->queue, arg[i], 1, 0, k->bytes[i],
							 buf[i], 0, NULL, NULL));
	for (int i = 0; i < n; i++)
		oclgrind_must(oclgrind.ReleaseMemObject(arg[i]));
}

/* The first time a result that is read before it is written shows in Oclgrind's report, later in values. */
static void oclgrind_run(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	Simulated *m = env->kernel->module;
	if (begin != 0 || end <= begin)
		return;
	oclgrind_launch(buf, env, m->ran);
	m->ran = true;
}

static int oclgrind_compile(const Backend *b, int n, Kernel **kernels, Text *object, Error *err)
{
	(void)b, (void)object;
	for (int i = 0; i < n; i++) {
		if (oclgrind_one(kernels[i], err))
			return err->code;
		kernels[i]->run = oclgrind_run;
	}
	return 0;
}

/* Lowering takes it for OpenCL's. */
static const Backend backend_oclgrind = {
	.name = "opencl",
	.compile = oclgrind_compile,
	.release = oclgrind_release,
};

#endif
