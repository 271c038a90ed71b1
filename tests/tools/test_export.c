/* test_export.c - nets as C: random programs with their gradients, and loops, are exported, compiled as
 * C99 without a warning, and compute what the interpreter does; a trained net from its checkpoint and from
 * its session, weights inside and beside; what can't be exported says so. */
#include <ricci_nn.h>
#include "nn/serve/serve.h"
#include "tests/nn/folder.h"
#include "tests/tools/program_compare.h"
#include "tests/tools/trained_net.h"

#include <dlfcn.h>

typedef int RunFn(void *const *in, void *const *out, void *scratch);
typedef int RunWithFn(const void *weights, void *const *in, void *const *out, void *scratch);
typedef size_t SizeFn(void);

/* All C files of the folder as one library; NULL: they don't compile. */
static void *compile(const char *flags)
{
	char command[800];
	const char *library = in_folder("all.so");
	unlink(library);
	snprintf(command, sizeof command,
		 "cc -std=c99 -O2 -Wall -Wextra -pedantic -Werror %s -shared -fPIC -Wl,-z,defs -o "
		 "%s %s/*.c -lm",
		 flags, library, folder);
	CHECK_INT(system(command), 0);
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	CHECK_REPORT(lib != NULL, "%s", dlerror());
	return lib;
}

static void *symbol(void *lib, const char *format, int number)
{
	char name[64];
	snprintf(name, sizeof name, format, number);
	void *f = lib ? dlsym(lib, name) : NULL;
	CHECK_REPORT(f != NULL, "no %s", name);
	return f;
}

static void file_put(const char *name, const Text *t)
{
	FILE *f = fopen(in_folder(name), "w");
	CHECK(f && fwrite(t->s, 1, t->n, f) == t->n);
	if (f)
		fclose(f);
}

/* ---- random programs */

enum { PROGRAMS = 24 };
typedef struct Exported {
	RandomProgram p;
	Case c;
	ricci_graph *g;
	int ninput;
	bool refused;
	const void *input[BINDS]; /* in the order of the struct */
} Exported;

static void program_export(Exported *x, int k, uint64_t number)
{
	char prefix[16], c_name[16], h_name[16];
	Text text = {0}, c = {0}, h = {0};
	Error err = {0};
	ReadNet m;
	ServePlan plan = {0};
	x->g = ricci_graph_new();
	random_program(&x->p, number);
	CHECK_INT(case_open(&x->c, x->g, &x->p), 0);
	CHECK_REPORT(!case_judge(&x->c, (RandomState){0, 0}, &err), "%s", err.text);
	snprintf(prefix, sizeof prefix, "p%d", k);
	snprintf(c_name, sizeof c_name, "p%d.c", k);
	snprintf(h_name, sizeof h_name, "p%d.h", k);
	CHECK_INT(net_print(&text, x->c.nroot, x->c.root, NULL, &err), 0);
	CHECK_REPORT(!net_read(&m, text.s, &err), "%s", err.text);
	ServeText how = {.prefix = prefix, .header = h_name};
	/* Some draw random numbers. */
	x->refused = serve_plan(&plan, &m, &err) == RICCI_EUNSUPPORTED;
	CHECK_REPORT(x->refused == (strstr(text.s, "random(") || strstr(text.s, "normal(")) &&
			     (x->refused || !err.code),
		     "program %llu: %s", (unsigned long long)number, err.text);
	if (!x->refused)
		CHECK_INT(serve_source(&plan, &how, &c, &h, &err), 0);
	for (int i = 0; !x->refused && i < plan.ninput; i++)
		for (int b = 0; b < x->c.nbind; b++)
			if (!strcmp(x->c.bind[b].tensor->u.s, plan.input[i].name))
				x->input[x->ninput++] = x->c.bind[b].data;
	if (!x->refused) {
		CHECK_INT(x->ninput, plan.ninput);
		file_put(c_name, &c);
		file_put(h_name, &h);
	}
	serve_plan_free(&plan);
	ricci_graph_free(m.g);
	text_free(&text);
	text_free(&c);
	text_free(&h);
}

static void program_run_exported(Exported *x, void *lib, int k)
{
	RunFn *run = x->refused ? NULL : (RunFn *)symbol(lib, "p%d_run", k);
	SizeFn *size = x->refused ? NULL : (SizeFn *)symbol(lib, "p%d_size", k);
	if (run && size) {
		void *scratch = malloc(size());
		memset(scratch, 0xab, size());
		CHECK_INT(run((void *const *)x->input, x->c.got, scratch), 0);
		free(scratch);
		for (int r = 0; r < x->c.nroot; r++) {
			Text why = {0};
			CHECK_REPORT(root_agrees(&x->c, r, &why), "program %llu, %s %d: %s",
				     (unsigned long long)x->p.number, root_kind(&x->c, r), r,
				     why.s ? why.s : "");
			text_free(&why);
		}
	}
	case_close(&x->c);
	ricci_graph_free(x->g);
	program_free(&x->p);
}

static void programs(uint64_t first)
{
	static Exported x[PROGRAMS];
	memset(x, 0, sizeof x);
	CHECK(folder_make("export"));
	for (int k = 0; k < PROGRAMS; k++)
		program_export(&x[k], k, first + (uint64_t)k);
	void *lib = compile("");
	for (int k = 0; k < PROGRAMS; k++)
		program_run_exported(&x[k], lib, k);
	if (lib)
		dlclose(lib);
	folder_remove();
}

/* ---- a trained net */

static void trained_check(const Trained *n, void *lib, const char *prefix, const char *weights)
{
	char name[3][40];
	snprintf(name[0], 40, "%s_run", prefix);
	snprintf(name[1], 40, "%s_size", prefix);
	snprintf(name[2], 40, "%s_load", prefix);
	void *run = symbol(lib, name[0], 0), *size = symbol(lib, name[1], 0);
	if (!run || !size)
		return;
	float got[BATCH * CLASSES];
	void *scratch = malloc(((SizeFn *)size)()), *out[] = {got};
	int32_t id[BATCH] = {0, 2, 4, 6};
	const void *in[] = {n->in, id};
	static char held[1 << 16];
	for (int bad = 0; bad < 2; bad++) {
		memset(got, 0, sizeof got);
		id[1] = bad ? 7 : 2;
		if (weights) {
			int (*load)(void *, const char *) =
				(int (*)(void *, const char *))symbol(lib, name[2], 0);
			CHECK_INT(load(held, weights), 0);
			CHECK_INT(load(held, "/nowhere"), -2);
			CHECK_INT(load(held, in_folder("a.c")), -3);
			CHECK_INT(((RunWithFn *)run)(held, (void *const *)in, out, scratch),
				  bad ? -1 : 0);
		} else {
			CHECK_INT(((RunFn *)run)((void *const *)in, out, scratch), bad ? -1 : 0);
		}
		for (int k = 0; k < COUNT(got) && !bad; k++)
			CHECK_NEAR(got[k], n->want[k], 1e-5);
	}
	free(scratch);
}

static void trained(void)
{
	Trained n = {0};
	trained_net(&n);
	CHECK(folder_make("export"));
	const char *checkpoint = in_folder("n.h5"), *name = "y";
	CHECK_INT(ricci_save(n.train, n.y, checkpoint, NULL, 0), 0);
	CHECK_REPORT(!ricci_export_checkpoint(checkpoint, in_folder("a.c"), NULL), "%s",
		     ricci_error_message());
	CHECK_REPORT(!ricci_export(n.infer, 1, &n.y, &name, in_folder("b-2.c"), in_folder("b.bin")),
		     "%s", ricci_error_message());
	void *lib = compile("");
	trained_check(&n, lib, "a", NULL);
	trained_check(&n, lib, "b_2", in_folder("b.bin"));
	if (lib)
		dlclose(lib);

	CHECK_INT(ricci_export(n.infer, 1, &n.y, &name, "net.txt", NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "net.txt should be a file name that ends with .c");
	CHECK_INT(ricci_export(NULL, 1, &n.y, &name, "net.c", NULL), RICCI_EINVAL);
	CHECK_INT(ricci_export_checkpoint(in_folder("a.c"), "net.c", NULL), RICCI_EFORMAT);
	folder_remove();
	trained_free(&n);
}

/* Convolutions, capsules and routing, as in examples/capsnet.c. */
static void capsnet(void)
{
	enum { N = 2, POSES = N * 10 * 4 * 4, PIXELS = N * 28 * 28 };
	static float image[PIXELS], want[POSES], got[POSES];
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *in = ricci_input(g, "image", RICCI_F32, 4, (int64_t[]){N, 1, 28, 28});
	ricci_tensor *stem =
		ricci_param(g, "stem.weight", RICCI_F32, 4, (int64_t[]){16, 1, 5, 5}, ricci_he(25));
	ricci_tensor *primary = ricci_param(g, "primary.weight", RICCI_F32, 4,
					    (int64_t[]){64, 16, 1, 1}, ricci_lecun(16));
	ricci_tensor *caps = ricci_param(g, "caps.weight", RICCI_F32, 6,
					 (int64_t[]){4, 4, 3, 3, 4, 4}, ricci_lecun(36));
	ricci_tensor *votes = ricci_param(g, "votes", RICCI_F32, 4,
					  (int64_t[]){4 * 6 * 6, 10, 4, 4}, ricci_lecun(4));
	ricci_tensor *x = ricci_relu(ricci_conv2d(in, stem, NULL, 2, 2));
	x = ricci_capsules(ricci_conv2d(x, primary, NULL, 1, 0), 4, 4);
	x = ricci_squash(ricci_capsule_conv(x, caps, 2), 2);
	x = ricci_routing(ricci_votes(x, votes), 3);
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.threads = 1), 0, 1, &x);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int k = 0; k < PIXELS; k++)
		image[k] = (float)(.5 + .5 * sin(.7 * k));
	CHECK_INT(ricci_feed(s, in, image, sizeof image), 0);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, x, want, sizeof want), 0);
	CHECK(folder_make("export"));
	CHECK_INT(ricci_export(s, 1, &x, NULL, in_folder("caps.c"), NULL), 0);
	void *lib = compile("");
	RunFn *run = (RunFn *)symbol(lib, "caps_run", 0);
	SizeFn *size = (SizeFn *)symbol(lib, "caps_size", 0);
	void *scratch = size ? malloc(size()) : NULL;
	if (run)
		CHECK_INT(run((void *const[]){image}, (void *const[]){got}, scratch), 0);
	double most = 0;
	for (int k = 0; k < POSES; k++)
		most = fmax(most, fabs(want[k]));
	CHECK(most > 1e-3);
	for (int k = 0; k < POSES; k++)
		CHECK_NEAR(got[k], want[k], 1e-5);
	free(scratch);
	if (lib)
		dlclose(lib);
	folder_remove();
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* Transposes, running sums from either end, products and maxima: what kernels have functions for. */
static void calls(void)
{
	enum { N = 700, OUTS = 6 };
	static float x[N], f[OUTS][N * 64], want[OUTS][N * 64];
	static const char *const text[OUTS] = {
		"Y[i] += X[j] where i<700, j<i+1",     "Y[i] += X[j] where i<700, j in i..700",
		"Y[i] max= X[j] where i<700, j<i+1",   "Y[i] *= 1 + X[j] / 700 where i<700, j<i+1",
		"Y[j,i] = X[i*10+j] where i<64, j<64", "Y[j,i] = X[i*9+j] * 2 where i<64, j<100"};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *in = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){N}), *y[OUTS];
	for (int k = 0; k < OUTS; k++)
		y[k] = ricci_op(g, text[k], in);
	CHECK_GRAPH(g);
	for (int k = 0; k < N; k++)
		x[k] = (float)sin(.3 * k);
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.threads = 1), 0, OUTS, y);
	CHECK_INT(ricci_feed(s, in, x, sizeof x), 0);
	CHECK_INT(ricci_step(s), 0);
	for (int k = 0; k < OUTS; k++)
		CHECK_INT(ricci_fetch(s, y[k], want[k], ricci_bytes(y[k])), 0);
	CHECK(folder_make("export"));
	CHECK_INT(ricci_export(s, OUTS, y, NULL, in_folder("calls.c"), NULL), 0);
	void *lib = compile("");
	RunFn *run = (RunFn *)symbol(lib, "calls_run", 0);
	SizeFn *size = (SizeFn *)symbol(lib, "calls_size", 0);
	void *scratch = size ? malloc(size()) : NULL;
	void *out[OUTS] = {f[0], f[1], f[2], f[3], f[4], f[5]};
	if (run)
		CHECK_INT(run((void *const[]){x}, out, scratch), 0);
	for (int k = 0; k < OUTS; k++)
		for (size_t i = 0; i < ricci_bytes(y[k]) / 4; i++)
			CHECK_NEAR(f[k][i], want[k][i], 1e-5);
	free(scratch);
	if (lib)
		dlclose(lib);
	folder_remove();
	ricci_session_free(s);
	ricci_graph_free(g);
}

static void refused(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){4});
	ricci_tensor *y = ricci_op(g, "Y[i] = X[i] + random(i)", x);
	ricci_session *s = ricci_session_new(g, NULL, 0, 1, &y);
	CHECK_INT(ricci_export(s, 1, &y, NULL, "net.c", NULL), RICCI_EUNSUPPORTED);
	CHECK(strstr(ricci_error_message(), "the net draws random numbers where `training` is 0"));
	ricci_session_free(s);
	ricci_graph_free(g);
}

int main(void)
{
	trained();
	capsnet();
	calls();
	refused();
	programs(100);
	programs(KIND + 100);
	return check_done();
}
