/* test_backend.c - hand-written kernels through tcc and cc: they run, errors come back as text,
 * objects survive a round trip through a file and damage to it, and compilers that misbehave do no
 * harm. */
#include "jit/backend/backend.h"
#include "tests/check.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TYPES                                                                                      \
	"#ifndef TYPES\n#define TYPES\ntypedef long int64_t; typedef unsigned long uint64_t;\n"    \
	"typedef struct KernelEnv { uint64_t seed, step; void *scratch, *shared; } "               \
	"KernelEnv;\n#endif\n"
#define HEAD                                                                                       \
	"void kernel_0(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)\n{\n"   \
	" const float *a = buf[0]; float *o = buf[1];\n"

static const char scale[] = TYPES HEAD
	" for (int64_t i = begin; i < end; i++) o[i] = a[i] * 3 + (float)env->seed;\n}\n";
static const char math[] = TYPES
	"float ricci_exp_f32(float); double ricci_pow_f64(double, double);\n" HEAD
	" for (int64_t i = begin; i < end; i++)\n"
	"  o[i] = ricci_exp_f32(a[i]) + (float)ricci_pow_f64(2, a[i]) + (float)(uint64_t)i;\n}\n";
/* A table wider than any vector, a variable that is written, a helper called out of line. */
static const char table[] = TYPES
	"static const float t[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};\n"
	"static int64_t calls;\n"
	"__attribute__((noinline)) static float pick(int64_t i) { return t[i & 15]; }\n" HEAD
	" calls++;\n for (int64_t i = begin; i < end; i++) o[i] = pick(i) + t[15 - (i & 15)] * "
	"(float)calls;\n"
	" for (int64_t i = begin; i + 16 <= end; i += 16)\n"
	"  for (int64_t j = 0; j < 16; j++) o[i + j] += a[i + j] * (float)(j * j + 1);\n}\n";
static const char wrong[] = TYPES HEAD " o[0] = nowhere;\n}\n";
static const char outside[] =
	TYPES "int system(const char *);\n" HEAD " o[0] = a[0] + system(0);\n}\n";

static Kernel *kernel_of(const Backend *b, const char *source)
{
	Kernel *k = kernel_new(b, NULL);
	k->source = mem_strdup(source);
	return k;
}

static void run_one(const Kernel *k, const float *a, float *o, int64_t n)
{
	void *buf[] = {(void *)a, o};
	KernelEnv env = {5, 1, NULL, NULL, k, NULL};
	k->run(buf, &env, 0, n);
}

enum { N = 64 };
static float in[N], out[N];

static void check_scale(const Kernel *k)
{
	int bad = 0;
	memset(out, 0, sizeof out);
	run_one(k, in, out, N);
	for (int i = 0; i < N; i++)
		bad += out[i] != in[i] * 3 + 5;
	CHECK_INT(bad, 0);
}

static void check_math(const Kernel *k)
{
	run_one(k, in, out, N);
	for (int i = 0; i < N; i++)
		CHECK_NEAR(out[i], exp(in[i]) + exp2(in[i]) + i, 1e-5 * fabs(out[i]));
}

static void check_table(const Kernel *k)
{
	run_one(k, in, out, N);
	run_one(k, in, out, N);
	for (int i = 0; i < N; i++) {
		int j = i & 15;
		CHECK_NEAR(out[i], j + 1 + 2 * (16 - j) + in[i] * (j * j + 1), 1e-5 * fabs(out[i]));
	}
}

/* Compiles the one source, expecting an error with `part` in its text. */
static void check_refused(const Backend *b, const char *source, const char *part)
{
	Error err = {0};
	Kernel *k = kernel_of(b, source);
	CHECK_INT(b->compile(b, 1, &k, NULL, &err), RICCI_ECOMPILE);
	CHECK_INT(err.code, RICCI_ECOMPILE);
	CHECK_REPORT(strstr(err.text, part), "\"%s\" is not in \"%s\"", part, err.text);
	CHECK(!k->run && !k->module);
	kernel_unref(k);
}

static void check_one(const Backend *b, const char *source, void (*check)(const Kernel *))
{
	Error err = {0};
	Kernel *k = kernel_of(b, source);
	CHECK_INT(b->compile(b, 1, &k, NULL, &err), 0);
	CHECK_STR(err.text, "");
	if (k->run)
		check(k);
	kernel_unref(kernel_ref(k));
	kernel_unref(k);
}

static void check_together(const Backend *b)
{
	const char *source[] = {scale, math, scale};
	Kernel *k[COUNT(source)];
	Error err = {0};
	for (int i = 0; i < COUNT(source); i++)
		k[i] = kernel_of(b, source[i]);
	CHECK_INT(b->compile(b, COUNT(source), k, NULL, &err), 0);
	CHECK_STR(err.text, "");
	kernel_unref(k[0]); /* the others keep the code */
	if (k[1]->run)
		check_math(k[1]);
	kernel_unref(k[1]);
	if (k[2]->run)
		check_scale(k[2]);
	kernel_unref(k[2]);
}

/* One wrong source among good ones; two that define the same name. */
static void check_mixed(const Backend *b)
{
	const char *set[][2] = {{scale, wrong}, {table, table}};
	for (int s = 0; s < COUNT(set); s++) {
		Kernel *k[2];
		Error err = {0};
		for (int i = 0; i < 2; i++)
			k[i] = kernel_of(b, set[s][i]);
		int bad = b->compile(b, 2, k, NULL, &err);
		CHECK_INT(bad, s ? 0 : RICCI_ECOMPILE);
		for (int i = 0; i < 2; i++) {
			if (s && k[i]->run)
				check_table(k[i]);
			CHECK(s || (!k[i]->run && !k[i]->module));
			kernel_unref(k[i]);
		}
	}
}

static void check_infinite(const Backend *b)
{
	Error err = {0};
	Kernel *k = kernel_of(b, TYPES HEAD " for (int64_t i = begin; i < end; i++) o[i] = (a[i] - "
					    "a[i]) + 0 * a[i] + a[i];\n}\n");
	float a[] = {INFINITY, -INFINITY, NAN, 1}, o[4];
	CHECK_INT(b->compile(b, 1, &k, NULL, &err), 0);
	if (k->run) {
		run_one(k, a, o, 4);
		CHECK(isnan(o[0]) && isnan(o[1]) && isnan(o[2]) && o[3] == 1);
	}
	kernel_unref(k);
}

/* ---- objects in files */

static char folder[] = "/tmp/ricci-test-XXXXXX";

static const char *place(const char *name)
{
	static char path[2][128];
	static int turn;
	turn ^= 1;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static void file_put(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

static int load_again(const Backend *b, const void *bytes, size_t n, const char *const *source,
		      int count, Kernel **k)
{
	Error err = {0};
	for (int i = 0; i < count; i++)
		k[i] = kernel_of(b, source[i]);
	int bad = b->load(b, count, k, bytes, n, &err);
	CHECK(!bad == !err.text[0] && bad == err.code);
	return bad;
}

/* Cut or changed anywhere: an error, or code that nobody runs here; never a crash. */
static void check_damage(const Backend *b, const Text *good)
{
	static char copy[1 << 16];
	const char *source[] = {table};
	size_t n = good->n;
	uint64_t s = 7;
	Kernel *k[1];
	CHECK(n > 500 && n < sizeof copy);
	for (size_t cut = 0; cut < n; cut += n / 61 + 1) {
		CHECK(load_again(b, good->s, cut, source, 1, k) < 0);
		kernel_unref(k[0]);
	}
	for (int round = 0; round < 400; round++) {
		memcpy(copy, good->s, n);
		for (int hits = 0; hits < 1 + round % 8; hits++) {
			s = s * 6364136223846793005u + 1442695040888963407u;
			/* the header and the tables behind the code are the parts that steer the
			 * loader */
			size_t at = s >> 33 & 1 ? (s >> 34) % 64 : n - 1 - (s >> 34) % (n / 2);
			copy[at] ^= 1 << (s >> 20 & 7);
		}
		load_again(b, copy, n, source, 1, k);
		kernel_unref(k[0]);
	}
}

static void check_objects(const Backend *b)
{
	const char *one[] = {table}, *two[] = {scale, math};
	Kernel *k[2];
	Text object[2] = {{0}};
	Error err = {0};
	k[0] = kernel_of(b, table);
	CHECK_INT(b->compile(b, 1, k, &object[0], &err), 0);
	kernel_unref(k[0]);
	for (int i = 0; i < 2; i++)
		k[i] = kernel_of(b, two[i]);
	CHECK_INT(b->compile(b, 2, k, &object[1], &err), 0);
	CHECK_STR(err.text, "");
	kernel_unref(k[0]);
	kernel_unref(k[1]);
	CHECK_INT(load_again(b, object[0].s, object[0].n, one, 1, k), 0);
	if (k[0]->run)
		check_table(k[0]);
	kernel_unref(k[0]);
	CHECK_INT(load_again(b, object[1].s, object[1].n, two, 2, k), 0);
	if (k[0]->run && k[1]->run) {
		check_scale(k[0]);
		check_math(k[1]);
	}
	kernel_unref(k[0]);
	kernel_unref(k[1]);
	CHECK_INT(load_again(b, object[0].s, object[0].n, two, 2, k),
		  RICCI_EFORMAT); /* kernel_1 is missing */
	kernel_unref(k[0]);
	kernel_unref(k[1]);
	CHECK_INT(load_again(b, "", 0, one, 1, k), RICCI_EFORMAT);
	kernel_unref(k[0]);
	check_damage(b, &object[0]);
	text_free(&object[0]);
	text_free(&object[1]);
}

/* ---- other compilers: shell scripts in place of cc, each in a process of its own */

/* part: of what is said when it refuses; NULL: it compiles. */
static int with_compiler(const char *script, const char *part)
{
	pid_t child;
	int status = -1;
	if (script) {
		file_put(place("cc.sh"), script, strlen(script));
		chmod(place("cc.sh"), 0700);
	}
	fflush(NULL);
	child = fork();
	if (child == 0) {
		check_passed = check_failed = 0;
		setenv("RICCI_CC", script ? place("cc.sh") : "/nowhere/cc", 1);
		setenv("RICCI_CC_TIMEOUT", part ? "1" : "120", 1);
		if (part)
			check_refused(&backend_cc, scale, part);
		else
			check_one(&backend_cc, scale, check_scale);
		_exit(check_failed != 0);
	}
	waitpid(child, &status, 0);
	return status;
}

/* Every one answers --version, as a compiler would. */
#define FAKE "#!/bin/sh\ncase \"$1\" in --version) echo fake 1.0; exit 0;; esac\n"

/* Refuses what is gcc's own, as clang does. */
#define CLANG                                                                                      \
	"#!/bin/sh\nfor a; do case $a in -fno-tree-vectorize) ;; -fno-tree-*|--param*) "           \
	"echo \"unknown argument: $a\"; exit 1;; esac; done\nexec cc \"$@\"\n"

static void check_other_compilers(void)
{
	CHECK_INT(with_compiler(CLANG, NULL), 0);
	CHECK_INT(with_compiler(NULL, "RICCI_CC names /nowhere/cc, which does not run"), 0);
	CHECK_INT(with_compiler("#!/bin/sh\nexit 3\n", "cc.sh --version: exit status 3"), 0);
	CHECK_INT(with_compiler("#!/bin/sh\n", "cc.sh --version says nothing"), 0);
	CHECK_INT(with_compiler("#!/bin/sh\nprintf '%02000d\\n' 1\n",
				"cc.sh --version: its first line is too long"),
		  0);
	CHECK_INT(with_compiler("#!/bin/sh\nkill -SEGV $$\n", "RICCI_CC: "), 0);
	CHECK_INT(with_compiler(FAKE "echo 'internal compiler error'; exit 4\n",
				"exit status 4):\ninternal compiler error"),
		  0);
	CHECK_INT(with_compiler(FAKE "kill -SEGV $$\n", "crashed"), 0);
	CHECK_INT(with_compiler(FAKE "sleep 30\n", "took longer than 1 seconds"), 0);
	CHECK_INT(with_compiler(FAKE "exit 0\n", "refuses a kernel"), 0);
	/* nobody may be left to stop it */
	CHECK_INT(with_compiler(FAKE "sleep 0.1; echo limit $(ulimit -t); exit 1\n", "limit 2"), 0);
	CHECK_INT(
		with_compiler(FAKE "head -c 3000000 /dev/zero | tr '\\0' x; exit 1\n", "xxxxxxxx"),
		0);
}

static int arrived;
static void on_signal(int number)
{
	(void)number;
	arrived++;
}

/* The host's handlers stay, and a host that ignores its children can compile. */
static void check_signals(void)
{
	struct sigaction own = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN}, old,
			 now;
	sigaction(SIGCHLD, &own, &old);
	check_one(&backend_cc, scale, check_scale);
	sigaction(SIGCHLD, &ignore, &now);
	CHECK(now.sa_handler == on_signal);
	check_one(&backend_cc, scale, check_scale);
	check_refused(&backend_cc, wrong, "nowhere");
	sigaction(SIGCHLD, &old, NULL);
	sigaction(SIGINT, NULL, &now);
	CHECK(now.sa_handler == SIG_DFL);
}

static void check_backend(const Backend *b)
{
	check_one(b, scale, check_scale);
	check_one(b, math, check_math);
	check_together(b);
	check_infinite(b);
	check_refused(b, wrong, "nowhere");
	check_refused(b, outside, "system");
	check_refused(b, "int x;\nvoid kernel_1(void) {}\n", "kernel_0");
	CHECK(backend_find(b->name) == b && *b->version());
}

static void check_nvrtc(void)
{
	char why[256] = "";
	Error err = {0};
	bool runs = backend_nvrtc.available(why, sizeof why);
	CHECK(runs == !*why);
	if (!*backend_nvrtc.version()) {
		CHECK_SKIP(why);
		check_refused(&backend_nvrtc, "x", "libnvrtc");
		return;
	}
	Kernel *k = kernel_of(
		&backend_nvrtc,
		"extern \"C\" __global__ void kernel_0(const float *a, float *o, unsigned long "
		"seed, unsigned long step)\n{\n long i = blockIdx.x * (long)blockDim.x + "
		"threadIdx.x;\n if (i < 64) o[i] = a[i] * 3 + seed;\n}\n");
	CHECK_INT(backend_nvrtc.compile(&backend_nvrtc, 1, &k, NULL, &err), 0);
	CHECK_STR(err.text, "");
	k->shape.parts = N;
	k->ninput = 1;
	k->nbuf = 2;
	k->bytes = mem_alloc(2 * sizeof *k->bytes);
	k->bytes[0] = k->bytes[1] = sizeof in;
	if (k->run && runs) {
		check_scale(k);
	} else if (k->run) {
		void *buf[] = {in, out};
		KernelEnv env = {5, 1, NULL, NULL, k, &err};
		k->run(buf, &env, 0, N);
		CHECK_INT(err.code, RICCI_EINVAL);
		CHECK_SKIP(why);
	}
	kernel_unref(k);
	check_refused(&backend_nvrtc, "nonsense", "kernel.cu(1)");
}

int main(void)
{
	char why[256] = "";
	for (int i = 0; i < N; i++)
		in[i] = (float)(i - 20) * 0.125f;
	if (!mkdtemp(folder))
		return 1;
	check_other_compilers(); /* first: this process has not looked for a compiler yet */
	check_backend(&backend_tcc);
	if (backend_cc.available(why, sizeof why)) {
		check_backend(&backend_cc);
		check_one(&backend_cc, table, check_table);
		check_mixed(&backend_cc);
		check_objects(&backend_cc);
		check_signals();
	} else {
		CHECK_SKIP(why);
	}
	check_nvrtc();
	CHECK_INT(mem_live(), 0);
	static const char *const left[] = {"one.o", "two.o", "cut.o", "hit.o", "cc.sh"};
	for (int i = 0; i < COUNT(left); i++)
		unlink(place(left[i]));
	CHECK_INT(rmdir(folder), 0); /* nothing else was left there */
	return check_done();
}
