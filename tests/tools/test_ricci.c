/* test_ricci.c - the program `ricci` as a shell sees it: exit status, standard output and error,
 * files. Runs the tool of the same build (../../tools/ricci from this program) in a folder of its
 * own. */
#include "tests/tools/shell.h"

#include <sys/stat.h>

/* A wrong call: this status, nothing on standard output, this in the message. */
#define WRONG(want, message, ...)                                                                  \
	do {                                                                                       \
		RICCI(__VA_ARGS__);                                                                \
		CHECK_INT(status, want);                                                           \
		CHECK_STR(out, "");                                                                \
		CHECK_REPORT(strstr(err, message), "'%s' is not in the message\n%s", message,      \
			     err);                                                                 \
	} while (0)
#define RIGHT(...)                                                                                 \
	do {                                                                                       \
		RICCI(__VA_ARGS__);                                                                \
		CHECK_REPORT(status == 0, "exit status %d: %s", status, err);                      \
		CHECK_STR(err, "");                                                                \
	} while (0)
#define SAYS(text) CHECK_REPORT(strstr(out, text), "'%s' is not in the output\n%s", text, out)

/* ---- .npy by hand: C order ---- */

static void npy_of(const char *file, const char *descr, const char *shape, size_t bytes,
		   const void *v)
{
	char header[118];
	FILE *f = fopen(file, "wb");
	snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
		 descr, shape);
	if (!f || fwrite("\x93NUMPY\1\0\x76\0", 1, 10, f) != 10 ||
	    fprintf(f, "%-117s\n", header) != 118 || fwrite(v, 1, bytes, f) != bytes || fclose(f))
		perror(file);
}

static void npy(const char *file, const char *shape, int n, const float *v)
{
	npy_of(file, "<f4", shape, 4 * (size_t)n, v);
}

/* The floats of a file whose header holds `shape`; NaN when it is something else. */
static void npy_values(const char *file, const char *shape, int n, float *v)
{
	char text[4096] = "";
	FILE *f = fopen(file, "rb");
	size_t got = f ? fread(text, 1, sizeof text - 1, f) : 0;
	if (f)
		fclose(f);
	size_t start = 10 + (unsigned char)text[8] + 256u * (unsigned char)text[9];
	char want[100];
	snprintf(want, sizeof want, "'descr': '<f4', 'fortran_order': False, 'shape': %s", shape);
	bool ok = got == start + 4 * (size_t)n && start % 64 == 0 && strstr(text + 10, want);
	for (int k = 0; k < n; k++) {
		if (ok)
			memcpy(&v[k], text + start + 4 * k, 4);
		else
			v[k] = NAN;
	}
}

static const char matmul[] = "Y[i,j] += A[i,k]*B[k,j]";
static const float a_data[] = {1, 2, 3, 4, 5, 6}, b_data[] = {1, 0, 2, 1, 3, -1},
		   y_data[] = {14, -1, 32, -1};

static void test_usage(void)
{
	RIGHT("--help");
	SAYS("usage: ricci COMMAND");
	RIGHT("run", "--help");
	SAYS("usage: ricci COMMAND");
	RIGHT("--version");
	SAYS("ricci 0.");
	ricci((const char *const[]){NULL});
	CHECK_INT(status, 2);
	CHECK_STR(out, "");
	WRONG(2, "there is no command 'trains'", "trains");
	WRONG(2, "needs an expression", "show");
	WRONG(2, "no option '--fast'", "run", matmul, "--fast");
	WRONG(2, "no option '-o'", "show", matmul, "-o", "Y=y.npy");
	WRONG(2, "-o lacks its value", "run", matmul, "-o");
	WRONG(2, "should be -o NAME=FILE.npy", "run", matmul, "-o", "y.npy");
	WRONG(2, "'A' should be NAME=SHAPE", "run", matmul, "A");
	WRONG(2, "'A' is given twice", "show", matmul, "A=2x3", "A=2x3");
	WRONG(2, "neither a shape", "show", matmul, "A=2x", "B=3x2");
	WRONG(2,
	      "A=0x3: neither a shape (2x3x4, 2x3x4:f64, scalar; at most 16 sizes, none 0) nor a "
	      ".npy file",
	      "show", matmul, "A=0x3", "B=3x2");
	WRONG(2, "neither a shape", "show", matmul, "A=2x3:f33", "B=3x2");
	WRONG(2, "neither a shape", "show", matmul, "A=99999999999999999999", "B=3x2");
	WRONG(2, "there is no backend 'gpu'", "run", matmul, "--backend", "gpu");
	WRONG(2, "--threads takes a number", "run", matmul, "--threads", "0");
	WRONG(2, "--threads takes a number", "run", matmul, "--threads=2x");
	WRONG(2, "--profile belongs to --time", "run", matmul, "A=2x3", "B=3x2", "--profile");
	WRONG(2, "--roofline belongs to --time", "run", matmul, "A=2x3", "B=3x2", "--roofline");
	WRONG(2, "has a shape and no data", "run", matmul, "A=2x3", "B=3x2");
	WRONG(2, "can't both go to y.npy", "run", "Y[i]=A[i]; Z[i]=A[i]*2.0", "A=a1.npy", "-o",
	      "Y=y.npy", "-o", "Z=y.npy");
	WRONG(2, "ricci cache takes", "cache");
	WRONG(2, "ricci cache takes", "cache", "wipe");
	WRONG(2, "ricci info takes no 'x'", "info", "x");
	WRONG(2, "ricci export takes one checkpoint", "export", "-o", "n.c");
	WRONG(2, "ricci export needs -o NET.c or --module FILE", "export", "n.h5");
	WRONG(2, "--module FILE holds everything: -o belongs to C", "export", "n.h5", "--module",
	      "m", "-o", "n.c");
	WRONG(2, "--module FILE holds everything: --weights belongs to C", "export", "n.h5",
	      "--module", "m", "--weights", "w");
	WRONG(2, "--module lacks its value", "export", "n.h5", "--module");
	WRONG(1, "nowhere.h5", "export", "nowhere.h5", "-o", "n.c");
	WRONG(1, "nowhere.h5", "export", "nowhere.h5", "--module", "m");
	WRONG(2, "has no source", "code", matmul, "A=2x3", "B=3x2", "--backend", "interp");
}

static void test_show(void)
{
	RIGHT("show", matmul, "A=2x3", "B=3x4:f32");
	CHECK_STR(out, "A is f32 [2,3], 24 bytes\n"
		       "B is f32 [3,4], 48 bytes\n"
		       "Y[i,j] += A[i,k]*B[k,j]\n"
		       "\tis f32 [2,4], 32 bytes; domain 2x4x3 = 24 points\n");
	RIGHT("show", "m[i] max= X[i,j]; Y[i] = m[i]+1.0; Z[] += m[i]", "X=a.npy");
	SAYS("X is f32 [2,3], 24 bytes\n");
	SAYS("\tis f32 [2], 8 bytes; domain 2 = 2 points\n");
	SAYS("\nZ[] += ");
	RIGHT("show", "Y[i] = T[i] < 2 ? X[i] : 0.0", "T=5:i32", "X=5:f64");
	SAYS("is f64 [5], 40 bytes");
	RIGHT("show", "Y[] = X[] * 2.0", "X=scalar");
	SAYS("X is f32 [], 4 bytes\n");
	SAYS("1 point\n");
}

static void test_run(const char *backend)
{
	float v[4];
	unlink("y.npy");
	RIGHT("run", matmul, "A=a.npy", "B=b.npy", "-o", "Y=y.npy", "--backend", backend);
	CHECK_STR(out, "");
	npy_values("y.npy", "(2, 2,)", 4, v);
	for (int k = 0; k < 4; k++)
		CHECK_NEAR(v[k], y_data[k], 1e-5);
	RIGHT("run", matmul, "A=a.npy", "B=b.npy", "--backend", backend, "--threads", "2");
	CHECK_STR(out, "Y is f32 [2,2]\n[[14 -1]\n [32 -1]]\n");
	RIGHT("run", "m[i] max= X[i,j]; Y[i] = m[i]+0.25; Z[] += m[i]", "X=a.npy", "-o", "Z=z.npy",
	      "-oY=y.npy", "--backend", backend);
	npy_values("y.npy", "(2,)", 2, v);
	CHECK_NEAR(v[0], 3.25, 1e-6);
	CHECK_NEAR(v[1], 6.25, 1e-6);
	npy_values("z.npy", "()", 1, v);
	CHECK_NEAR(v[0], 9, 1e-6);
	RIGHT("run", matmul, "A=32x48", "B=48x16", "--time", "--backend", backend);
	SAYS("{\"median_ms\": ");
	SAYS(", \"gflops\": ");
	CHECK(strchr(out, '\n') && !strchr(out, '\n')[1]);
	RIGHT("run", matmul, "A=32x48", "B=48x16", "--time", "--profile", "--backend", backend);
	SAYS("a step takes ");
	SAYS("\n row  share        ms  launches   us/launch   GFLOP/s     GB/s  made by");
	SAYS("\n     T1[i,j] += A[i,k]*B[k,j]\n{\"median_ms\": ");
	/* The table, then the same as JSON in the last line. */
	RIGHT("run", matmul, "A=32x48", "B=48x16", "--time", "--roofline", "--backend", backend);
	SAYS("kernel   launches ");
	SAYS(" GFLOP/s f32, ");
	SAYS("\n\tkeep m0[i,j] += a0[i,k]*a1[k,j]");
	SAYS("\n{\"median_ms\": ");
	SAYS("\"kernels\": [{\"equations\": \"keep m0[i,j] += a0[i,k]*a1[k,j]");
	SAYS("\"launches\": 1, ");
	SAYS("\"flops\": 49152, \"read\": 9216, \"written\": 2048, ");
	SAYS("\"machine\": [{\"threads\": ");
	SAYS("}]}\n");
}

static void test_grad(const char *backend)
{
	const float seed[] = {1, 0, 0, 2};
	float v[6];
	RIGHT("grad", matmul, "A=2x3", "B=3x2");
	SAYS("dA[");
	SAYS("dB[");
	RIGHT("grad", "Y[i] += X[T[i]]*X[i*j]*X[max(i-1,0)] where i<3, j<3", "X=9", "T=3:i32");
	SAYS("# dX: scatter, because index 0 is read from a tensor\n");
	SAYS("# dX: scatter, because index 0 is a product of indices\n");
	CHECK(!strstr(out, "chosen"));
	RIGHT("grad", matmul, "A=2x3", "B=3x2", "--wrt", "B");
	SAYS("dB[");
	CHECK(!strstr(out, "dA["));
	unlink("ga.npy");
	RIGHT("grad", matmul, "A=a.npy", "B=b.npy", "-o", "A=ga.npy", "--backend", backend);
	npy_values("ga.npy", "(2, 3,)", 6, v);
	for (int k = 0; k < 6; k++)
		CHECK_NEAR(v[k], b_data[k % 3 * 2] + b_data[k % 3 * 2 + 1], 1e-5);
	npy("seed.npy", "(2, 2)", 4, seed);
	RIGHT("grad", matmul, "A=a.npy", "B=b.npy", "--wrt=B", "--seed", "Y=seed.npy", "-o",
	      "B=gb.npy", "--backend", backend);
	npy_values("gb.npy", "(3, 2,)", 6, v);
	for (int k = 0; k < 6; k++)
		CHECK_NEAR(v[k], a_data[k / 2] * seed[k % 2] + a_data[3 + k / 2] * seed[2 + k % 2],
			   1e-5);
	/* Two results: their gradients add up. */
	RIGHT("grad", "Y[i,j] = A[i,j]*A[i,j]; Z[i] += A[i,j]*3.0", "A=a.npy", "--backend",
	      backend);
	SAYS("dA is f32 [2,3]\n[[5 7 9]\n [11 13 15]]\n");
	/* And flow through what both read once. */
	RIGHT("grad", "T[i] += A[i,k]*B[k]; Y[i] = exp(T[i]); Z[i] = sin(T[i])", "A=2x3", "B=3");
	SAYS("dB[i] += T3[j]*A[j,i]\n");
	/* The Hessian of the sum of A*A*A times ones, then times A; mixed terms; a name in use. */
	RIGHT("grad", "Y[] += A[i,j]*A[i,j]*A[i,j]", "A=a.npy", "--order", "2", "--backend",
	      backend);
	SAYS("ddA is f32 [2,3]\n[[6 12 18]\n [24 30 36]]\n");
	RIGHT("grad", "Y[] += A[i,j]*A[i,j]*A[i,j]", "A=a.npy", "--order=2", "--along", "A=a.npy",
	      "--backend", backend);
	SAYS("ddA is f32 [2,3]\n[[6 24 54]\n [96 150 216]]\n");
	RIGHT("grad", "Y[] += A[i,j]*A[i,j]*vA[i,j]", "A=a.npy", "vA=a.npy", "--wrt", "A",
	      "--order=2", "--backend", backend);
	SAYS("vvA[i,j]");
	SAYS("ddA is f32 [2,3]\n[[2 4 6]\n [8 10 12]]\n");
}

/* Kernels believe the integers that index: those of a file are checked before one runs. */
static void test_indices(const char *backend)
{
	const float x[] = {1, 2, 3};
	const int32_t far[] = {0, 100000000, -1}, near[] = {2, 0, 2};
	static const char message[] =
		"'T': element 1 is 100000000, but the graph indexes with it and needs 0..2";
	npy("x.npy", "(3,)", 3, x);
	npy_of("far.npy", "<i4", "(3,)", sizeof far, far);
	npy_of("near.npy", "<i4", "(3,)", sizeof near, near);
	RIGHT("run", "Y[i] = X[T[i]]", "X=x.npy", "T=near.npy", "--backend", backend);
	CHECK_STR(out, "Y is f32 [3]\n[3 1 3]\n");
	WRONG(1, message, "run", "Y[i] = X[T[i]]", "X=x.npy", "T=far.npy", "--backend", backend);
	WRONG(1, message, "run", "Y[T[i]:3] += X[i]", "X=x.npy", "T=far.npy", "--backend", backend);
	WRONG(1, message, "run", "Y[i] = X[T[i]]", "X=x.npy", "T=far.npy", "--time", "--backend",
	      backend);
	WRONG(1, message, "grad", "Y[i] = X[T[i]]", "X=x.npy", "T=far.npy", "--backend", backend);
}

static void test_wrong(void)
{
	const float one[] = {1};
	char before[300] = "", after[300] = "";
	WRONG(1, "", "show", "Y[i,j] += A[i,k]*B[k,j", "A=2x3", "B=3x2");
	WRONG(1, "^", "show", "Y[i,j] += A[i,k]*B[k,j", "A=2x3", "B=3x2");
	WRONG(1, "operand 'B' is missing: give B=SHAPE", "show", matmul, "A=2x3");
	WRONG(1, "'C' is no operand of the program; its operands are: A, B", "show", matmul,
	      "A=2x3", "B=3x2", "C=1");
	WRONG(1, "B", "show", matmul, "A=2x3", "B=2x3x4");
	WRONG(1, "no.npy: No such file", "run", matmul, "A=no.npy", "B=b.npy");
	WRONG(1, "text.npy: not a .npy file", "run", matmul, "A=text.npy", "B=b.npy");
	WRONG(1, "cut short", "run", matmul, "A=short.npy", "B=b.npy");
	WRONG(1, "-o Q: there is no result of that name; there are: Y", "run", matmul, "A=a.npy",
	      "B=b.npy", "-o", "Q=q.npy");
	WRONG(1, "nowhere/y.npy", "run", matmul, "A=a.npy", "B=b.npy", "-o", "Y=nowhere/y.npy");
	WRONG(1, "'Q' is no operand", "grad", matmul, "A=2x3", "B=3x2", "--wrt", "Q");
	WRONG(1, "only floats have a gradient", "grad", "Y[i] = X[i]*2.0; Z[i]=T[i]+1", "X=3",
	      "T=3:i32", "--wrt", "T");
	npy("seed1.npy", "(1,)", 1, one);
	WRONG(1, "not of the type and shape", "grad", matmul, "A=a.npy", "B=b.npy", "--seed",
	      "Y=seed1.npy");
	WRONG(1, "no result of that name", "grad", matmul, "A=a.npy", "B=b.npy", "--seed",
	      "Q=seed1.npy");
	WRONG(2, "--order takes 1 or 2", "grad", matmul, "A=2x3", "B=3x2", "--order", "3");
	WRONG(2, "--along belongs to --order 2", "grad", matmul, "A=a.npy", "B=b.npy", "--along",
	      "A=a.npy");
	WRONG(1, "--along Q: there is no operand", "grad", matmul, "A=a.npy", "B=b.npy",
	      "--order=2", "--along", "Q=a.npy");
	WRONG(1, "not of the type and shape of the operand 'A'", "grad", matmul, "A=a.npy",
	      "B=b.npy", "--order=2", "--along", "A=seed1.npy");
	/* All of several results or none, and what was there stays. */
	npy("keep.npy", "(1,)", 1, one);
	slurp("keep.npy", before, sizeof before);
	WRONG(1, "nowhere/z.npy", "run", "Y[i,j]=A[i,j]; Z[i,j]=A[i,j]*2.0", "A=a.npy", "-o",
	      "Y=keep.npy", "-o", "Z=nowhere/z.npy");
	slurp("keep.npy", after, sizeof after);
	CHECK(!memcmp(before, after, sizeof before));
	CHECK(system("ls | grep -q part") != 0);
	if (!access("/dev/full", W_OK))
		WRONG(1, "No space left", "run", matmul, "A=a.npy", "B=b.npy", "-o", "Y=/dev/full");
}

static void test_code(void)
{
	RIGHT("code", matmul, "A=64x64", "B=64x64", "--backend", "tcc");
	SAYS("kernel_0");
	SAYS("schedule: ");
	RIGHT("code", matmul, "A=64x64", "B=64x64", "--grad", "A", "--backend", "cc");
	SAYS("kernel_0");
}

/* The first schedule offered is in stages, whose rounding isn't that of the elements' own products: the next one is
 * taken. */
static void test_refused(void)
{
	RIGHT("run",
	      "L[b,k,u,v,h,i] += (X[b,c,u-r,v-q] else 0)*W[c,k,2*r+h,2*q+i] where u<9, v<9, h<2, "
	      "i<2, r<2, q<2",
	      "X=32x128x8x8", "W=128x64x4x4", "--backend", "cc", "--time");
	SAYS("\"backend\": \"cc\"");
}

/* The schedule of the kernel that times 64 x 64 by so many columns; s has room for it. */
static void schedule_of(const char *columns, size_t room, char *s)
{
	RIGHT("run", matmul, "A=64x64", columns, "--time", "--roofline", "--backend", "cc");
	const char *at = strstr(out, "\"schedule\": \"");
	CHECK(at != NULL);
	snprintf(s, room, "%.*s", at ? (int)strcspn(at + 13, "\"") : 0, at ? at + 13 : "");
}

/* What is timed is a kernel of its own, not that of more columns, which the cache's folder has. */
static void test_lent(void)
{
	char before[500], large[500], own[500], cache[500];
	snprintf(cache, sizeof cache, "%s", getenv("RICCI_CACHE"));
	setenv("RICCI_CACHE", "first.cache", 1);
	schedule_of("B=64x8", sizeof before, before);
	setenv("RICCI_CACHE", "second.cache", 1);
	schedule_of("B=64x32", sizeof large, large);
	schedule_of("B=64x8", sizeof own, own);
	CHECK_STR(own, before);
	CHECK(strcmp(own, large));
	setenv("RICCI_CACHE", cache, 1);
}

/* What is found stays in the cache, where runs find it. */
static void test_tune(void)
{
	RIGHT("tune", matmul, "A=24x32", "B=32x40", "--seconds", "0.3", "--backend", "tcc",
	      "--strategy", "random", "--picture", "tune.svg");
	SAYS("kernel 1 of 1, 100% of the time: ");
	SAYS(" schedules, ");
	FILE *f = fopen("tune.svg", "r");
	char head[5] = "";
	CHECK(f && fgets(head, sizeof head, f) && !strcmp(head, "<svg"));
	if (f)
		fclose(f);
	RIGHT("cache", "list");
	SAYS("(tcc dynamic)");
	RIGHT("tune", matmul, "A=24x32", "B=32x40", "--seconds", "0.2", "--backend", "tcc",
	      "--grad", "B");
	SAYS("kernel 1 of 1");
	RIGHT("tune", matmul, "A=2x3", "B=3x2", "--backend", "interp");
	SAYS("nothing to search");
	WRONG(2, "--seconds takes a number above 0, not '-1'", "tune", matmul, "--seconds", "-1");
	WRONG(2, "there is no strategy 'best'; there are: genetic random", "tune", matmul,
	      "--strategy", "best");
	WRONG(2, "no option '--picture'", "run", matmul, "--picture", "x.svg");
	WRONG(1, "none/x.svg: No such file or directory", "tune", matmul, "A=2x3", "B=3x2",
	      "--seconds", "0.05", "--backend", "tcc", "--picture", "none/x.svg");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature) /* clang */
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/* Memory that isn't there: whose. */
static void test_memory(void)
{
#if SANITIZED
	CHECK_SKIP("sanitizers need the address space that the test takes away");
#else
	char command[2 * PATH_MAX];
	snprintf(command, sizeof command,
		 "ulimit -v 400000; %s run 'Y[i,j] = A[i,j]' A=20000x20000 --time 2>err.txt", tool);
	CHECK(system(command) != 0);
	slurp("err.txt", err, sizeof err);
	CHECK_STR(err, "ricci: out of memory: 'A' has 1600000000 bytes\n");
#endif
}

/* A search that finds nothing, or in vain, says so. */
static void test_tune_remarks(void)
{
	static const char *const tune[] = {"tune", "Y[i] = A[i]*2.0", "A=64", "--seconds", "0.05",
					   NULL};
	char cache[PATH_MAX];
	snprintf(cache, sizeof cache, "%s", getenv("RICCI_CACHE"));
	setenv("RICCI_CC", "/nowhere/cc", 1);
	ricci(tune);
	CHECK_INT(status, 0);
	CHECK_STR(err, "ricci: backend cc, whose kernels are the fastest, can't be used: RICCI_CC "
		       "names /nowhere/cc, which does not run\n");
	CHECK(!strstr(out, "none could be used"));
	CHECK(system("echo '#!/bin/sh\necho fake' >cc.sh; chmod 700 cc.sh") == 0);
	setenv("RICCI_CC", "./cc.sh", 1);
	ricci(tune);
	CHECK_INT(status, 0);
	CHECK_STR(err, "");
	SAYS("\tnone could be used, the first because: ./cc.sh refuses a kernel (exit status 0)");
	unsetenv("RICCI_CC");
	setenv("RICCI_CACHE", "/dev/null", 1);
	RICCI("tune", "Y[i] = A[i]*2.0", "A=64", "--seconds", "0.05", "--backend", "tcc");
	CHECK_INT(status, 0);
	CHECK_STR(err, "ricci: what was found is not kept: there is no cache folder: RICCI_CACHE "
		       "names /dev/null, which can't be written to\n");
	WRONG(1, "RICCI_CACHE names /dev/null", "cache", "list");
	setenv("RICCI_CACHE", "off", 1);
	WRONG(1, "there is no cache folder: RICCI_CACHE is off", "cache", "verify");
	setenv("RICCI_CACHE", cache, 1);
}

static void test_info(void)
{
	RIGHT("info");
	SAYS("ricci: 0.");
	SAYS("backend tcc: ");
	SAYS("cache: ");
	RIGHT("cache", "list");
	RIGHT("cache", "verify");
	SAYS(" 0 broken");
	RIGHT("cache", "clear");
	RIGHT("cache", "verify");
	SAYS("0 kernels");
}

int main(int argc, char **argv)
{
	(void)argc;
	char cache[PATH_MAX] = ""; /* listed: without what other programs leave in theirs */
	shell_open(argv[0]);
	CHECK(getcwd(cache, sizeof cache - 10) && !mkdir(strcat(cache, "/cache"), 0700));
	setenv("RICCI_CACHE", cache, 1);
	npy("a.npy", "(2, 3)", 6, a_data);
	npy("b.npy", "(3, 2)", 6, b_data);
	npy("short.npy", "(2, 3)", 5, a_data);
	npy("a1.npy", "(6,)", 6, a_data);
	CHECK(system("echo hello >text.npy") == 0);

	test_usage();
	test_show();
	test_wrong();
	test_indices("interp");
	test_indices("tcc");
	test_run("interp");
	test_run("tcc");
	test_grad("interp");
	test_grad("tcc");
	if (shell_has_cc()) {
		test_indices("cc");
		test_run("cc");
		test_grad("cc");
		test_refused();
		test_lent();
	} else {
		CHECK_SKIP("no C compiler for the backend cc");
	}
	test_code();
	test_tune();
	test_tune_remarks();
	test_memory();
	test_info();

	shell_close();
	return check_done();
}
