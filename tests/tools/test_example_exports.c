/* test_example_exports.c - the examples' nets as C: each is trained for two steps in small, its checkpoint is exported by
 * the tool, built as C99 by `cc -O2` and nothing else, and gives the library's results.
 * $RICCI_BUILD: the build folder. */
#include "nn/nn.h"
#include "tests/nn/folder.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

typedef int RunFn(void *const *in, void *const *out, void *scratch);
typedef size_t SizeFn(void);
typedef struct Example {
	const char *name, *options;
} Example;

static const Example examples[] = {
	{"capsnet", "--batch 2"},
	{"lstm", "--hidden 24 --batch 3"},
	{"resnet", "--width 8 --batch 2"},
	{"mobilenet_v2", "--width 0.2 --batch 2"},
	{"shufflenet", "--width 36 --batch 2"},
	{"mi_lstm", "--data text.txt --hidden 20 --length 9 --batch 2"},
	{"scrn", "--data text.txt --hidden 20 --context 8 --length 9 --batch 2"},
	{"sublstm", "--data text.txt --hidden 20 --length 9 --batch 2"},
	{"lltm", "--data text.txt --hidden 20 --length 9 --batch 2"},
	{"gpt", "--data text.txt --layers 2 --width 32 --heads 4 --length 12 --batch 2"},
	{"bert", "--data text.txt --layers 2 --width 32 --heads 4 --length 12 --batch 2"},
};
enum { EXAMPLES = sizeof examples / sizeof *examples, MOST = 4 };

/* A command in the folder; its output is shown where it fails. */
static bool command(const char *fmt, const char *a, const char *b)
{
	char text[1200], line[400];
	int n = snprintf(text, sizeof text, "cd %s && { ", folder);
	n += snprintf(text + n, sizeof text - (size_t)n, fmt, a, b);
	snprintf(text + n, sizeof text - (size_t)n, "; } >log 2>&1");
	if (system(text) == 0)
		return true;
	FILE *f = fopen(in_folder("log"), "r");
	while (f && fgets(line, sizeof line, f))
		fputs(line, stderr);
	if (f)
		fclose(f);
	return false;
}

/* Numbers that the input may hold: those of an index are in its range. */
static void draw(const ricci_tensor *t, void *data)
{
	uint64_t state = 88172645463325252u;
	size_t n = ricci_bytes(t) / type_size(ricci_dtype(t));
	for (size_t i = 0; i < n; i++) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		int64_t low = t->need_lo > 0 ? t->need_lo : 0;
		int64_t high = t->need_hi < low + 60 ? t->need_hi : low + 60;
		if (ricci_dtype(t) == RICCI_F32)
			((float *)data)[i] = (float)(state >> 40) / (1 << 24);
		else if (ricci_dtype(t) == RICCI_I32)
			((int32_t *)data)[i] =
				(int32_t)(low + (int64_t)(state >> 33) % (high - low + 1));
		else
			CHECK_REPORT(false, "an input of type %s", type_name(ricci_dtype(t)));
	}
}

/* A model's inputs, in the order of the exported struct, with numbers. */
static int inputs_make(const ReadNet *m, ricci_tensor **in, void **data)
{
	int n = 0;
	for (ricci_tensor *t = m->g->first; t; t = t->next)
		if (t->role == ROLE_INPUT && n < MOST) {
			in[n] = t;
			data[n] = malloc(ricci_bytes(t));
			draw(t, data[n++]);
		}
	return n;
}

/* The library's output for these inputs. */
static float *expected(ReadNet *m, void **weights, int n, ricci_tensor **in, void **data)
{
	ricci_session *s = ricci_session_new(
		m->g, &RICCI_OPTIONS(.threads = 1, .backend = RICCI_BACKEND_TCC), 0, 1, m->output);
	float *want = malloc(ricci_bytes(m->output[0]));
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int k = 0; s && k < ricci_param_count(m->g); k++) {
		const ricci_tensor *t = ricci_param_at(m->g, k, NULL);
		CHECK_INT(ricci_feed(s, t, weights[k], ricci_bytes(t)), 0);
	}
	for (int k = 0; s && k < n; k++)
		CHECK_INT(ricci_feed(s, in[k], data[k], ricci_bytes(in[k])), 0);
	CHECK_INT(s ? ricci_step(s) : 0, 0);
	CHECK_INT(s ? ricci_fetch(s, m->output[0], want, ricci_bytes(m->output[0])) : 0, 0);
	ricci_session_free(s);
	return want;
}

static void compare(const char *name, const float *got, const float *want, size_t n)
{
	double most = 0, apart = 0;
	for (size_t i = 0; i < n; i++) {
		most = fmax(most, fabs(want[i]));
		apart = fmax(apart, isfinite(got[i]) ? fabs(got[i] - want[i]) : INFINITY);
	}
	CHECK_REPORT(most > 1e-3 && apart <= 1e-5 * most, "%s: %g apart, the greatest result is %g",
		     name, apart, most);
}

/* Runs net.so on what the checkpoint's net is run on. */
static void check_results(const char *name)
{
	ReadNet m;
	Error err = {0};
	void **weights, *data[MOST] = {NULL};
	ricci_tensor *in[MOST];
	void *lib = dlopen(in_folder("net.so"), RTLD_NOW | RTLD_LOCAL);
	RunFn *run = lib ? (RunFn *)(uintptr_t)dlsym(lib, "net_run") : NULL;
	SizeFn *size = lib ? (SizeFn *)(uintptr_t)dlsym(lib, "net_size") : NULL;
	CHECK_REPORT(run && size, "%s: %s", name, run ? "no net_size" : dlerror());
	CHECK_REPORT(!checkpoint_model(in_folder("net.h5"), &m, &weights, &err), "%s", err.text);
	if (run && size && m.g) {
		int n = inputs_make(&m, in, data);
		float *want = expected(&m, weights, n, in, data),
		      *got = malloc(ricci_bytes(m.output[0]));
		void *scratch = malloc(size());
		CHECK(ricci_dtype(m.output[0]) == RICCI_F32);
		CHECK_INT(run(data, (void *const[]){got}, scratch), 0);
		compare(name, got, want, ricci_bytes(m.output[0]) / sizeof *got);
		free(scratch);
		free(want);
		free(got);
		for (int k = 0; k < n; k++)
			free(data[k]);
	}
	checkpoint_model_free(&m, m.g ? weights : NULL);
	if (lib)
		dlclose(lib);
}

int main(void)
{
	const char *build = getenv("RICCI_BUILD");
	char program[500];
	CHECK(build && folder_make("exports"));
	CHECK(command("seq 3000 | tr 0-9 '\\na-i' >%s%s", "text.txt", ""));
	for (int k = 0; k < EXAMPLES && build; k++) {
		snprintf(program, sizeof program, "%s/examples/%s", build, examples[k].name);
		bool made = command(
			"rm -f net.h5 net.so && %s %s --static --backend tcc --threads 1 --steps 2 "
			"--checkpoint net.h5",
			program, examples[k].options);
		made = made && command("%s/tools/ricci export net.h5 -o net.c%s", build, "");
		made = made && command("cc -std=c99 -O2 -Wall -Wextra -pedantic -Werror -shared "
				       "-fPIC -Wl,-z,defs "
				       "-o net.so net.c -lm%s%s",
				       "", "");
		CHECK_REPORT(made, "%s is not exported", examples[k].name);
		if (made)
			check_results(examples[k].name);
	}
	folder_remove();
	return check_done();
}
