/* cc.c - the system's C compiler: slow to answer (tens of milliseconds), fast code.
 *
 * Input: sources that define kernel_0. Output: the object that the compiler wrote, loaded by
 * elf_object.c and, where asked, handed to the cache. Several sources go into one file, because
 * starting the compiler costs as much as a kernel; if they do not fit together, each is compiled
 * alone. The compiler is $RICCI_CC, or the first of cc, gcc, clang that exists; process.c runs it
 * without a shell.
 */
#include "jit/backend/backend.h"
#include "jit/backend/process.h"
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* The same sums in the same order as written, but no promises about errno and exceptions; NaN,
 * signed zeros and infinities stay. (Reductions vectorise by `omp simd`, which asks for it where it
 * is wanted; the mathematics needs its order.) */
static const char *const cc_flag[] = {
	"-std=gnu11",
	"-O3",
	"-fPIC",
	"-w",
	"-fno-math-errno",
	"-fno-trapping-math",
	"-ffp-contract=fast",
	"-fopenmp-simd",
	/* which loop is one of vectors is decided in the tree */
	"-fno-tree-vectorize",
	"-fno-asynchronous-unwind-tables",
	"-fno-stack-protector",
	"-fno-ident",
};

/* What others, clang among them, refuse. */
static const char *const gcc_flag[] = {
	/* a choice in a loop of vectors becomes no branch */
	"-fno-tree-pre",
	/* a short line that is filled or copied is no call, and no `rep stos` */
	"-fno-tree-loop-distribute-patterns",
	/* nor are some of its elements done one by one so that the rest is aligned */
	"--param=vect-max-peeling-for-alignment=0",
};

static char cc_program[4096], cc_text[1024]; /* the path; what version() says */
static char cc_reason[300];		     /* why one that was found is not used */
static int cc_gcc_flags;		     /* how many of them it takes: all or none */
static pthread_once_t cc_once = PTHREAD_ONCE_INIT;

/* What the compiler at path says of itself, asked with so many of gcc's flags. Its exit status, or
 * an error. */
static int cc_ask(const char *path, int flags, Text *said, Error *err)
{
	const char *ask[COUNT(gcc_flag) + 3] = {path, "--version"};
	for (int i = 0; i < flags; i++)
		ask[2 + i] = gcc_flag[i];
	text_free(said);
	int status = process_run(path, ask, -1, 10, said, err);
	if (!status && !said->s)
		return error_set(err, RICCI_ECOMPILE, "%s --version says nothing", path);
	return status;
}

static void flags_describe(Text *text, int n, const char *const *flag)
{
	for (int i = 0; i < n; i++)
		text_add(text, " %s", flag[i]);
}

static bool cc_try(const char *name)
{
	Text said = {0}, text = {0};
	Error err = {0};
	char path[sizeof cc_program];
	int flags = COUNT(gcc_flag), bad;
	if (!process_find(name, path, sizeof path))
		return false;
	bad = cc_ask(path, flags, &said, &err);
	if (bad > 0)
		bad = cc_ask(path, flags = 0, &said, &err);
	if (bad > 0)
		error_set(&err, RICCI_ECOMPILE, "%s --version: exit status %d", path, bad);
	if (!bad) {
		text_add(&text, "%.*s", (int)strcspn(said.s, "\n"), said.s);
		flags_describe(&text, COUNT(cc_flag), cc_flag);
		flags_describe(&text, flags, gcc_flag);
		if (text.failed)
			bad = error_set(&err, RICCI_ENOMEM, "out of memory");
		else if (text.n >= sizeof cc_text) /* part of what identifies a kernel: never cut */
			bad = error_set(&err, RICCI_ECOMPILE,
					"%s --version: its first line is too long", path);
	}
	if (bad) {
		message_print(cc_reason, sizeof cc_reason, "%s", err.text);
	} else {
		strcpy(cc_program, path);
		strcpy(cc_text, text.s);
		cc_gcc_flags = flags;
	}
	text_free(&said);
	text_free(&text);
	return !bad;
}

static void cc_search(void)
{
	static const char *const usual[] = {"cc", "gcc", "clang"};
	const char *own = env_text("RICCI_CC", "");
	if (*own) {
		cc_try(own);
		return;
	}
	for (int i = 0; i < COUNT(usual); i++)
		if (cc_try(usual[i]))
			return;
}

static bool cc_available(char *why, size_t n)
{
	pthread_once(&cc_once, cc_search);
	const char *own = env_text("RICCI_CC", "");
	if (!*cc_program && *cc_reason)
		message_print(why, n, "%s%s", *own ? "RICCI_CC: " : "", cc_reason);
	else if (!*cc_program && *own)
		message_print(why, n, "RICCI_CC names %s, which does not run", own);
	else if (!*cc_program)
		snprintf(why, n, "none of cc, gcc, clang is on the PATH");
	return *cc_program;
}

static char *cc_version(void)
{
	pthread_once(&cc_once, cc_search);
	return cc_text;
}

/* ---- one run of the compiler */

enum { CC_ARGUMENTS = 64 };

/* The compiler's arguments; target's flags are split in `room` at their spaces. */
static void arguments(const char **arg, char *room, const char *object, const char *source)
{
	int n = 0;
	arg[n++] = cc_program;
	for (int i = 0; i < COUNT(cc_flag); i++)
		arg[n++] = cc_flag[i];
	for (int i = 0; i < cc_gcc_flags; i++)
		arg[n++] = gcc_flag[i];
	for (char *save, *f = strtok_r(room, " ", &save); f && n < CC_ARGUMENTS - 6;
	     f = strtok_r(NULL, " ", &save))
		arg[n++] = f;
	arg[n++] = "-c";
	arg[n++] = "-o";
	arg[n++] = object;
	arg[n++] = source;
	arg[n] = NULL;
}

/* Compiles text in a private folder, where the compiler's temporary files are, too. */
static int cc_run(const WorkFolder *w, const Text *text, Text *object, Error *err)
{
	char flags[sizeof target_host()->flags];
	const char *arg[CC_ARGUMENTS];
	Text said = {0};
	memcpy(flags, target_host()->flags, sizeof flags);
	if (work_write(w, "k.c", text->s, text->n, err))
		return err ? err->code : RICCI_EIO;
	arguments(arg, flags, "k.o", "k.c");
	int bad =
		process_run(cc_program, arg, w->fd, env_long("RICCI_CC_TIMEOUT", 120), &said, err);
	if (bad > 0 || (bad == 0 && faccessat(w->fd, "k.o", R_OK, 0)))
		bad = error_set(err, RICCI_ECOMPILE, "%s refuses a kernel (exit status %d):\n%s",
				cc_program, bad, said.s ? said.s : "it said nothing");
	if (!bad)
		bad = work_read(w, "k.o", object, err);
	text_free(&said);
	return bad;
}

static int cc_text_compile(const Text *text, Text *object, Error *err)
{
	WorkFolder w;
	if (text->failed)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	int bad = work_open(&w, -1, err);
	if (bad)
		return bad;
	bad = cc_run(&w, text, object, err);
	work_close(&w);
	return bad;
}

/* ---- kernels */

static void source_append(Text *text, int i, const char *source)
{
	text_add(text, "#define kernel_0 kernel_%d\n#line 1 \"kernel %d\"\n", i, i);
	text_put(text, source, strlen(source));
	text_add(text, "\n#undef kernel_0\n");
}

static int object_use(int n, Kernel **kernels, const void *bytes, size_t size, Error *err)
{
	char *room = mem_alloc((size_t)n * 24);
	const char **name = mem_alloc((size_t)n * sizeof *name);
	void **find = mem_alloc((size_t)n * sizeof *find);
	int bad = room && name && find ? 0 : error_set(err, RICCI_ENOMEM, "out of memory");
	for (int i = 0; i < n && !bad; i++) {
		name[i] = room + i * 24;
		snprintf(room + i * 24, 24, "kernel_%d", i);
	}
	if (!bad) {
		Error own = {0};
		Code *c = elf_load(bytes, size, n, name, find, &own);
		if (!c)
			bad = error_set(err, own.code, "%s", own.text);
		for (int i = 0; i < n && c; i++) {
			kernels[i]->run = (KernelFn *)find[i];
			kernels[i]->module = c;
		}
		if (c)
			c->refs = n;
	}
	mem_free(room);
	mem_free(name);
	mem_free(find);
	return bad;
}

static int cc_compile_file(int n, Kernel **kernels, Text *keep, Error *err)
{
	Text text = {0}, object = {0};
	Error own = {0};
	for (int i = 0; i < n; i++)
		source_append(&text, i, kernels[i]->source);
	int bad = cc_text_compile(&text, &object, err);
	if (!bad && object_use(n, kernels, object.s, object.n, &own))
		bad = error_set(err, own.code == RICCI_EFORMAT ? RICCI_ECOMPILE : own.code, "%s",
				own.text);
	text_free(&text);
	if (!bad && keep)
		*keep = object;
	else
		text_free(&object);
	return bad;
}

static int cc_compile(const Backend *b, int n, Kernel **kernels, Text *object, Error *err)
{
	(void)b;
	char why[256];
	Error own = {0};
	if (!cc_available(why, sizeof why))
		return error_set(err, RICCI_ECOMPILE, "no C compiler: %s", why);
	int bad = cc_compile_file(n, kernels, object, &own);
	if (bad && (n == 1 || own.code == RICCI_ENOMEM || object))
		return error_set(err, own.code, "%s", own.text);
	int done = 0;
	for (; bad && done < n; done++)
		if (cc_compile_file(1, kernels + done, NULL, err))
			break;
	if (!bad || done == n)
		return 0;
	for (int i = 0; i < done; i++) {
		code_release(kernels[i]->module);
		kernels[i]->module = NULL;
		kernels[i]->run = NULL;
	}
	return err ? err->code : RICCI_ECOMPILE;
}

static int cc_load(const Backend *b, int n, Kernel **kernels, const void *object, size_t size,
		   Error *err)
{
	(void)b;
	return object_use(n, kernels, object, size, err);
}

const Backend backend_cc = {
	.name = "cc",
	.available = cc_available,
	.compile = cc_compile,
	.load = cc_load,
	.release = code_release,
	.version = cc_version,
};
