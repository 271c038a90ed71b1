/* tcc.c - C text to code in memory through libtcc: fractions of a millisecond, plain code.
 *
 * Input: sources that define kernel_0 and include nothing; -nostdlib keeps tcc from opening any
 * file. Output: the machine code alone, in one Code; the compiler's state is gone when compile
 * returns (tcc_host.c).
 */
#include "jit/backend/backend.h"
#include "jit/backend/tcc_host.h"
#include "jit/symbols.h"
#include <ctype.h>
#include <libtcc.h>
#include <string.h>

static bool tcc_available(char *why, size_t n)
{
	(void)why, (void)n;
	return true;
}

static void tcc_message(void *user, const char *text)
{
	error_set(user, RICCI_ECOMPILE, "tcc: %s", text);
}

/* Offers the outside functions whose names stand in the source. (All of them would cost more than
 * the compilation.) */
static void symbols_add(TCCState *tcc, const char *s)
{
	char name[64];
	while (*s) {
		if (!isalpha((unsigned char)*s) && *s != '_') {
			s++;
			continue;
		}
		const char *from = s;
		while (isalnum((unsigned char)*s) || *s == '_')
			s++;
		size_t n = s - from;
		if (n < 6 || n >= sizeof name)
			continue;
		memcpy(name, from, n);
		name[n] = 0;
		const void *address = jit_symbol(name);
		if (address)
			tcc_add_symbol(tcc, name, address);
	}
}

static void helpers_add(TCCState *tcc)
{
	const char *name;
	for (int i = 0; (name = jit_helper(i)); i++)
		tcc_add_symbol(tcc, name, jit_symbol(name));
}

typedef struct Build {
	int n;
	Kernel **kernels;
	Text text; /* of the source that is being compiled */
	Code *code;
	Error *err;
} Build;

static int source_add(Build *b, TCCState *tcc, int i)
{
	const char *source = b->kernels[i]->source;
	text_free(&b->text);
	text_add(&b->text, "#define kernel_0 kernel_%d\n#line 1 \"kernel\"\n", i);
	text_put(&b->text, source, strlen(source));
	if (b->text.failed)
		return error_set(b->err, RICCI_ENOMEM, "out of memory");
	symbols_add(tcc, source);
	if (tcc_compile_string(tcc, b->text.s))
		return error_set(b->err, RICCI_ECOMPILE,
				 "tcc did not accept the source of a kernel");
	return 0;
}

static int code_place(Build *b, TCCState *tcc)
{
	int size = tcc_relocate(tcc, NULL);
	b->code = size < 0 ? NULL : code_new(size, b->err);
	if (!b->code || tcc_relocate(tcc, b->code->base) < 0 ||
	    code_seal(b->code, b->code->bytes, b->err))
		return error_set(b->err, RICCI_ECOMPILE, "tcc could not place a kernel in memory");
	return 0;
}

static int kernels_find(Build *b, TCCState *tcc)
{
	for (int i = 0; i < b->n; i++) {
		char name[32];
		snprintf(name, sizeof name, "kernel_%d", i);
		b->kernels[i]->run = (KernelFn *)tcc_get_symbol(tcc, name);
		if (!b->kernels[i]->run)
			return error_set(b->err, RICCI_ECOMPILE,
					 "the source of a kernel does not define kernel_0");
	}
	return 0;
}

static void tcc_build(void *user)
{
	Build *b = user;
	TCCState *tcc = tcc_new();
	tcc_set_error_func(tcc, b->err, tcc_message);
	tcc_set_options(tcc, "-nostdlib");
	if (tcc_set_output_type(tcc, TCC_OUTPUT_MEMORY)) {
		error_set(b->err, RICCI_ECOMPILE, "tcc does not work");
		return;
	}
	helpers_add(tcc);
	for (int i = 0; i < b->n; i++)
		if (source_add(b, tcc, i))
			return;
	if (!code_place(b, tcc) && !kernels_find(b, tcc))
		error_clear(b->err); /* of warnings */
}

static int tcc_compile(const Backend *backend, int n, Kernel **kernels, Text *object, Error *err)
{
	(void)backend, (void)object; /* compiling again is as fast as loading */
	Error own = {0};
	Build b = {.n = n, .kernels = kernels, .err = &own};
	tcc_run_work(tcc_build, &b, &own);
	text_free(&b.text);
	for (int i = 0; i < n; i++) {
		kernels[i]->module = own.code ? NULL : b.code;
		if (own.code)
			kernels[i]->run = NULL;
	}
	if (own.code) {
		code_release(b.code);
		return error_set(err, own.code, "%s", own.text);
	}
	b.code->refs = n;
	return 0;
}

static char *tcc_version(void)
{
	static char version[] = "tcc 0.9.27 -nostdlib";
	return version;
}

const Backend backend_tcc = {
	.name = "tcc",
	.available = tcc_available,
	.compile = tcc_compile,
	.release = code_release,
	.version = tcc_version,
};
