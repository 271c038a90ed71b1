/* test_cuda_code.c - the CUDA C of every default schedule compiles with NVRTC to code for sm_80 and sm_90,
 * and spills no register. Needs NVRTC, no GPU. */
#include "jit/device/device.h"
#include "tests/jit/lower_cases.h"

#include <dlfcn.h>

#define COMPILER(X)                                                                                \
	X(nvrtcCreateProgram,                                                                      \
	  (void **, const char *, const char *, int, const char *const *, const char *const *))    \
	X(nvrtcCompileProgram, (void *, int, const char *const *))                                 \
	X(nvrtcDestroyProgram, (void **))                                                          \
	X(nvrtcGetProgramLogSize, (void *, size_t *))                                              \
	X(nvrtcGetProgramLog, (void *, char *))
static struct {
#define CALL(name, parameters) int(*name) parameters;
	COMPILER(CALL)
#undef CALL
} nvrtc;

enum { OFFERS = 8 };
static int with_groups, with_wide;

/* Of sizes that full tiles are for. */
static const Case large[] = {
	{"Y[i,j] += A[i,k]*B[k,j]", "A=4096x4096 B=4096x4096"},
	{"Y[i,j] += A[k,i]*B[j,k]", "A=1000x3001 B=2999x1000"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=512x4096:bf16 B=4096x512:bf16"},
	{"Y[i,j] += A[i,k]*B[j,k]", "A=4096x4096:bf16 B=4096x4096:bf16"},
	{"Y[i,j] += f32(f16(A[i,k]))*f32(f16(B[j,k]))", "A=4096x4096 B=4096x4096"},
	{"Y[i,j] += tf32(A[i,k])*tf32(B[j,k])", "A=4096x4096 B=4096x4096"},
	{"Y[i,j] += tf32(A[k,i])*tf32(B[k,j])", "A=4096x4096 B=4096x4096"},
	{"Y[b,k,p,q] += (0<p+r && p+r<29 && 0<q+s && q+s<29 ? tf32(X[b,c,p+r-1,q+s-1]) : "
	 "0)*tf32(W[k,c,r,s]) where p<28, q<28",
	 "X=64x256x28x28 W=256x256x3x3"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=64x65536 B=65536x64"},
	{"Y[i,j] += A[i,k]*B[k,j]", "A=1024x1024:f64 B=1024x1024:f64"},
	{"Y[b,i,j] += A[b,i,k]*B[b,j,k]; Z[b,i,j] = max(Y[b,i,j] + C[j], 0)",
	 "A=64x256x64 B=64x256x64 C=256"},
	{"Y[b,k,p,q] += (X[b,c,p+r-1,q+s-1] else 0)*W[k,c,r,s] where p<28, q<28",
	 "X=64x256x28x28 W=256x256x3x3"},
	{"W[k,c,r,s] += D[b,k,p,q]*(X[b,c,p+r-1,q+s-1] else 0) where r<3, s<3",
	 "D=64x256x28x28 X=64x256x28x28"},
	{"V[b,k,p,q,i,j] += P[b,c,2*p+r,2*q+s,i,t]*W[k,c,r,s,t,j]",
	 "P=8x32x29x29x4x4 W=32x32x3x3x4x4"},
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 "X=8192x1024"},
	{"m[i] max= X[i,j]; e[i,j] = exp(X[i,j]-m[i]); s[i] += e[i,j]; Y[i,j] = e[i,j]/s[i]",
	 "X=64x50257"},
	{"M[i] += X[i,j]/96; Y[i,j] = X[i,j]-M[i]; g[j] += D[i,j]*(X[i,j]-M[i]); b[j] += D[i,j]",
	 "X=8192x768 D=8192x768"},
	{"c[j] += X[i,j]", "X=8192x1024"},
	{"s[] += X[i,j]*X[i,j]", "X=8192x8192"},
	{"Y[i] = A[i]*2 + B[i]", "A=67108864 B=67108864"},
	{"Y[i,j] = X[j,i]", "X=3000x8192:bf16"},
	{"Y[i,j] = max(X[j,i] + Z[i,j], 0)", "X=8192x8192 Z=8192x8192"},
	{"Y[n,c,p,q] = X[n,p,q,c]", "X=64x28x28x256:f64"},
	{"Y[n,c,p,q] max= (X[n,c,2*p+r-1,2*q+s-1] else -inf) where p<56, q<56, r<3, s<3",
	 "X=64x64x112x112"},
	{"Y[T[i]:50000,d] += X[i,d]", "T=4096:i32 X=4096x512"},
};

static bool nvrtc_open(void)
{
	static const char *const name[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
	const char *folder[] = {env_text("RICCI_CUDA", ""), "/usr/local/cuda", ""};
	void *library = NULL;
	for (int d = 0; d < COUNT(folder); d++)
		for (int k = 0; k < COUNT(name) && !library; k++) {
			char path[1024];
			snprintf(path, sizeof path, "%.900s%s%s", folder[d],
				 *folder[d] ? "/lib64/" : "", name[k]);
			library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		}
	bool all = library;
#define CALL(name, parameters) all = all && (nvrtc.name = dlsym(library, #name));
	COMPILER(CALL)
#undef CALL
	return all;
}

/* What the compiler says: its errors, or of each function how many bytes it spills. */
static bool code_log(const char *source, int arch, char *log, size_t room)
{
	char text_of[CUDA_OPTION_ROOM];
	const char *option[CUDA_OPTIONS + 1] = {[CUDA_OPTIONS] = "--ptxas-options=-v"};
	cuda_options(arch, text_of, option);
	void *program = NULL;
	size_t n = 0;
	*log = 0;
	if (nvrtc.nvrtcCreateProgram(&program, source, "kernel.cu", 0, NULL, NULL))
		return false;
	bool good = !nvrtc.nvrtcCompileProgram(program, COUNT(option), option);
	if (!nvrtc.nvrtcGetProgramLogSize(program, &n) && n < room)
		nvrtc.nvrtcGetProgramLog(program, log);
	nvrtc.nvrtcDestroyProgram(&program);
	return good;
}

static bool spills(const char *log)
{
	for (const char *s = log; (s = strstr(s, " bytes spill stores")); s++)
		if (s[-1] != '0' || s[-2] != ' ')
			return true;
	return false;
}

static void check_code(const char *text, const Kernel *k, int arch)
{
	static char log[1 << 16];
	Text s = {0};
	schedule_print(&s, &k->schedule);
	CHECK_REPORT(code_log(k->source, arch, log, sizeof log), "%s [%s] sm_%d: %s", text, s.s,
		     arch, log);
	CHECK_REPORT(strstr(log, "bytes spill stores"), "%s: nothing is said of registers:\n%s",
		     text, log);
	CHECK_REPORT(!strstr(log, "serialized"), "%s [%s] sm_%d: products wait for each other:\n%s",
		     text, s.s, arch, log);
	with_wide += strstr(k->source, "*(Wide_") != NULL;
	CHECK_REPORT(!spills(log), "%s [%s] sm_%d spills:\n%s", text, s.s, arch, log);
	if (getenv("RICCI_CODE_LOG"))
		fprintf(stderr, "%s [%s] sm_%d\n%s\n", text, s.s, arch, log);
	text_free(&s);
}

/* The first schedule that is offered, or the first for groups of warps, where there is one. */
static void check_schedule(const char *text, const Task *t, const Target *target, int arch,
			   bool groups)
{
	Error err = {0};
	Schedule offer[OFFERS];
	int n = schedule_offers(t, target, OFFERS, offer);
	for (int k = 0; k < n; k++) {
		const ScheduleStep *step = schedule_find(&offer[k], STEP_TENSORISE);
		if (groups && !(step && step->arg & TENSORISE_GROUPS))
			continue;
		Kernel *kernel = kernel_lower(t, &offer[k], backend_find("nvrtc"), target, &err);
		CHECK_REPORT(kernel, "%s: %s", text, err.text);
		if (kernel)
			check_code(text, kernel, arch);
		with_groups += groups;
		kernel_unref(kernel);
		return;
	}
}

/* The first schedule of each subgraph, for one kind of device or (arch 0) both. */
static void check_subgraph(const char *text, const Subgraph *sub, int arch)
{
	Error err = {0};
	Task *t = task_new(sub, &err);
	CHECK_REPORT(t, "%s: %s", text, err.text);
	if (!t)
		return;
	if (arch != 90)
		check_schedule(text, t, target_grid(true), 80, false);
	if (arch != 80) {
		check_schedule(text, t, target_groups(), 90, false);
		check_schedule(text, t, target_groups(), 90, true);
	}
	task_free(t);
}

static int partition(Ir *ir, const Case *c, int *nsub, Subgraph **subs)
{
	Node *operand[HARNESS_MAX_OPERANDS], *result[8];
	const char *s = c->operands;
	int n = 0, nresult = 8;
	while ((s = harness_operand(ir, s, &operand[n])))
		n++;
	int code = notation_elaborate(ir, c->text, n, operand, &nresult, result, 8);
	return code ? code : fuse_partition(ir, nresult, result, &device_cuda.model, nsub, subs);
}

static void check_case(const Case *c, int arch)
{
	Ir ir;
	int nsub = 0;
	Subgraph *subs;
	ir_init(&ir);
	IR_ENTER(&ir, );
	CHECK_REPORT(partition(&ir, c, &nsub, &subs) == 0, "%s: %s", c->text, ir.err.text);
	IR_LEAVE(&ir);
	for (int k = 0; k < nsub; k++)
		check_subgraph(c->text, &subs[k], arch);
	ir_free(&ir);
}

int main(void)
{
	if (!nvrtc_open()) {
		CHECK_SKIP("no NVRTC");
		return harness_done();
	}
	for (int k = 0; k < COUNT(large); k++)
		check_case(&large[k], 0);
	for (int k = 0; k < COUNT(lower_equations); k++)
		check_case(&lower_equations[k], k % 2 ? 80 : 90);
	for (int k = 0; k < COUNT(lower_programs); k++)
		check_case(&lower_programs[k], k % 2 ? 90 : 80);
	CHECK(with_groups > 0);
	CHECK(with_wide > 0); /* kernels that store neighbours at once */
	return harness_done();
}
