/* tcc.c - C text to code in memory through libtcc: fractions of a millisecond, plain code.
 *
 * Input: sources that define kernel_0 and include nothing; -nostdlib keeps tcc from opening any
 * file. Output: the machine code alone, in one Code; the compiler's state is gone when compile
 * returns. libtcc keeps its state in variables of the process: one lock around it.
 */
#include "jit/backend/backend.h"
#include "jit/symbols.h"
#include <ctype.h>
#include <libtcc.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t tcc_lock = PTHREAD_MUTEX_INITIALIZER;

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

/* The functions that tcc calls without being asked to. */
static void helpers_add(TCCState *tcc)
{
	static const char *const name[] = {"memset",	    "memcpy",	     "memmove",
					   "__floatundisf", "__floatundidf", "__fixunssfdi",
					   "__fixunsdfdi"};
	for (int i = 0; i < COUNT(name); i++)
		tcc_add_symbol(tcc, name[i], jit_symbol(name[i]));
}

static int source_add(TCCState *tcc, int i, const char *source, Error *err)
{
	Text text = {0};
	text_add(&text, "#define kernel_0 kernel_%d\n#line 1 \"kernel\"\n", i);
	text_put(&text, source, strlen(source));
	int bad = text.failed ? error_set(err, RICCI_ENOMEM, "out of memory") : 0;
	if (!bad) {
		symbols_add(tcc, source);
		if (tcc_compile_string(tcc, text.s))
			bad = error_set(err, RICCI_ECOMPILE,
					"tcc did not accept the source of a kernel");
	}
	text_free(&text);
	return bad;
}

static Code *tcc_place(TCCState *tcc, Error *err)
{
	int size = tcc_relocate(tcc, NULL);
	Code *c = size < 0 ? NULL : code_new(size, err);
	if (c && (tcc_relocate(tcc, c->base) < 0 || code_seal(c, c->bytes, err))) {
		code_release(c);
		c = NULL;
	}
	if (!c)
		error_set(err, RICCI_ECOMPILE, "tcc could not place a kernel in memory");
	return c;
}

static Code *tcc_build(TCCState *tcc, int n, Kernel **kernels, Error *err)
{
	tcc_set_error_func(tcc, err, tcc_message);
	tcc_set_options(tcc, "-nostdlib");
	if (tcc_set_output_type(tcc, TCC_OUTPUT_MEMORY)) {
		error_set(err, RICCI_ECOMPILE, "tcc does not work");
		return NULL;
	}
	helpers_add(tcc);
	for (int i = 0; i < n; i++)
		if (source_add(tcc, i, kernels[i]->source, err))
			return NULL;
	Code *c = tcc_place(tcc, err);
	for (int i = 0; c && i < n; i++) {
		char name[32];
		snprintf(name, sizeof name, "kernel_%d", i);
		kernels[i]->run = (KernelFn *)tcc_get_symbol(tcc, name);
		if (!kernels[i]->run) {
			error_set(err, RICCI_ECOMPILE,
				  "the source of a kernel does not define kernel_0");
			code_release(c);
			c = NULL;
		}
	}
	return c;
}

static int tcc_compile(const Backend *b, int n, Kernel **kernels, const char *object, Error *err)
{
	(void)b, (void)object; /* compiling again is as fast as loading */
	Error own = {0};
	pthread_mutex_lock(&tcc_lock);
	TCCState *tcc = tcc_new();
	Code *c = tcc ? tcc_build(tcc, n, kernels, &own) : NULL;
	if (!tcc)
		error_set(&own, RICCI_ENOMEM, "out of memory");
	else
		tcc_delete(tcc);
	pthread_mutex_unlock(&tcc_lock);
	if (!c)
		return error_set(err, own.code, "%s", own.text);
	for (int i = 0; i < n; i++)
		kernels[i]->module = c;
	c->refs = n;
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
