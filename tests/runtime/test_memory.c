/* test_memory.c - a whole training life with the n-th allocation failing, for every n: graph,
 * gradients, optimiser, session with tcc, steps, a checkpoint written and read, a loop, evaluate().
 * Each ends well or with RICCI_ENOMEM, and leaves no block behind. RICCI_FUZZ: how many n are
 * tried. */
#include "runtime/internal.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__ /* ten times slower */
enum { MOST = 40 };
#else
enum { MOST = 2000 };
#endif

static char path[64];

typedef struct Model {
	ricci_graph *g;
	ricci_tensor *x, *labels, *loss;
} Model;

/* A dense layer, a maximum, a gather: the kinds of kernels that there are. */
static int model_build(Model *m)
{
	int64_t batch[] = {4, 6}, labels[] = {4}, w1[] = {5, 6}, w2[] = {3, 5};
	m->g = ricci_graph_new();
	if (!m->g)
		return RICCI_ENOMEM;
	m->x = ricci_input(m->g, "x", RICCI_F32, 2, batch);
	m->labels = ricci_input(m->g, "labels", RICCI_I32, 1, labels);
	ricci_tensor *a = ricci_param(m->g, "a", RICCI_F32, 2, w1, ricci_normal(0.3));
	ricci_tensor *b = ricci_param(m->g, "b", RICCI_F32, 2, w2, ricci_normal(0.3));
	ricci_tensor *h = ricci_relu(ricci_linear(m->x, a, NULL));
	ricci_tensor *y = h ? ricci_linear(h, b, NULL) : NULL;
	m->loss = y ? ricci_cross_entropy(y, m->labels) : NULL;
	ricci_tensor *rate = ricci_learning_rate(m->g, 0.01);
	if (m->loss && rate)
		ricci_adam(m->loss, rate, .9, .999, 1e-8);
	return m->loss && rate ? ricci_graph_error(m->g) : RICCI_ENOMEM;
}

/* What went wrong by the message, where a function gives no code. */
static int code_of(const char *err)
{
	return strstr(err, "memory") ? RICCI_ENOMEM : RICCI_EINTERNAL;
}

static int session_use(Model *m, ricci_session *s, char *err, size_t nerr)
{
	float x[24], loss;
	int32_t labels[4] = {0, 2, 1, 2};
	for (int i = 0; i < 24; i++)
		x[i] = (float)(i % 7) - 3;
	int code = ricci_feed(s, m->x, x);
	if (!code)
		code = ricci_feed(s, m->labels, labels);
	for (int k = 0; k < 2 && !code; k++)
		code = ricci_step(s);
	if (!code)
		code = ricci_fetch(s, m->loss, &loss);
	if (code) {
		snprintf(err, nerr, "%s", ricci_session_error(s));
		return code;
	}
	code = ricci_save(s, m->loss, path, NULL, 1, err, nerr);
	return code ? code : ricci_load(s, m->loss, path, 0, NULL, err, nerr);
}

static int train_once(int frozen, char *err, size_t nerr)
{
	Model m = {0};
	int code = model_build(&m);
	if (code && m.g)
		snprintf(err, nerr, "%s", ricci_error_message(m.g));
	if (!code) {
		ricci_options o = {RICCI_BACKEND_TCC, 1, frozen, 3};
		ricci_session *s = ricci_session_new(m.g, &o, 1, 1, &m.loss, err, nerr);
		code = s ? session_use(&m, s, err, nerr) : code_of(err);
		ricci_session_free(s);
	}
	ricci_graph_free(m.g);
	return code;
}

static int train_static(char *err, size_t nerr)
{
	return train_once(1, err, nerr);
}

static int train_dynamic(char *err, size_t nerr)
{
	return train_once(0, err, nerr);
}

/* The gradient of a loop with a length, trained for two steps. */
static int loop_build(ricci_graph *g, ricci_tensor **x, ricci_tensor **length, ricci_tensor **loss)
{
	int64_t rows[] = {5, 3, 4}, cell[] = {3, 4}, square[] = {4, 4};
	*x = ricci_input(g, "x", RICCI_F32, 3, rows);
	*length = ricci_input(g, "length", RICCI_I32, 0, NULL);
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, square, ricci_normal(0.3));
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F32, 2, cell);
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, 2, cell), *last = NULL;
	ricci_tensor *next =
		ricci_op(g, "A[b,j] += H[b,k] * W[k,j]; Y[b,j] = tanh(A[b,j] + X[b,j])", h, w, xt);
	ricci_tensor *zero = ricci_op(g, "Z[b,j] = 0.0 where b<3, j<4");
	ricci_loop loop = {.steps = 5,
			   .length = *length,
			   .nslice = 1,
			   .slice = &(ricci_slice){xt, *x},
			   .ncarry = 1,
			   .carry = &(ricci_carry){h, zero, next}};
	ricci_scan(g, &loop, &last, NULL);
	*loss = ricci_op(g, "L[] += H[b,j] * H[b,j]", last);
	ricci_tensor *rate = ricci_learning_rate(g, 0.01);
	if (*loss && rate)
		ricci_sgd(*loss, rate);
	return ricci_graph_error(g);
}

static int train_loop(char *err, size_t nerr)
{
	float data[60] = {1, 2, 3};
	ricci_tensor *x, *length, *loss;
	ricci_graph *g = ricci_graph_new();
	if (!g)
		return RICCI_ENOMEM;
	int code = loop_build(g, &x, &length, &loss);
	snprintf(err, nerr, "%s", ricci_error_message(g));
	ricci_options o = {RICCI_BACKEND_TCC, 1, 0, 3};
	ricci_session *s = code ? NULL : ricci_session_new(g, &o, 1, 1, &loss, err, nerr);
	if (!code && !s)
		code = code_of(err);
	for (int32_t n = 4; n < 6 && !code; n++) {
		code = ricci_feed(s, x, data);
		code = code ? code : ricci_feed(s, length, &n);
		code = code ? code : ricci_step(s);
		if (code)
			snprintf(err, nerr, "%s", ricci_session_error(s));
	}
	ricci_session_free(s);
	ricci_graph_free(g);
	return code;
}

static int program_evaluate(char *err, size_t nerr)
{
	static const char text[] = "m[i] max= A[i,j]; e[i,j] = exp(A[i,j]-m[i]); s[i] += e[i,j]; "
				   "Y[i,j] = e[i,j]/s[i]";
	float a[12] = {1, 2, 3, 4, 5, 4, 3, 2, 1, 0, 1, 2}, y[12], d[12];
	int64_t shape[] = {3, 4};
	ricci_tensor *x, *t, *grad = NULL;
	ricci_graph *g = ricci_graph_new();
	if (!g)
		return RICCI_ENOMEM;
	x = ricci_input(g, "A", RICCI_F32, 2, shape);
	t = ricci_op(g, text, x);
	int code = ricci_grad(g, t, NULL, 1, &x, &grad);
	if (code) {
		snprintf(err, nerr, "%s", ricci_error_message(g));
	} else {
		Error e = {0};
		Node *root[] = {t->node, grad->node};
		Binding bind = {x->node, a};
		void *out[] = {y, d};
		Evaluation how = {.backend = backend_find("tcc"), .threads = 1, .repeat = 1};
		code = evaluate(&g->ir, 2, root, 1, &bind, out, &how, &e);
		snprintf(err, nerr, "%s", e.text);
	}
	ricci_graph_free(g);
	return code;
}

/* Every n up to `most`, then ever fewer, until nothing fails; RICCI_SEED: the first. */
static void check(const char *what, int (*run)(char *err, size_t nerr), long most)
{
	char err[2048] = "";
	CHECK_REPORT(run(err, sizeof err) == 0, "%s: %s", what, err);
	const char *first = getenv("RICCI_SEED");
	long live = mem_live(), n = first ? atol(first) : 1;
	for (int code = -1; code && check_failed < 10; n += n < most ? 1 : 1 + n / 20) {
		err[0] = 0;
		mem_fail_at(n);
		code = run(err, sizeof err);
		mem_fail_at(0);
		CHECK_REPORT(code == 0 || code == RICCI_ENOMEM, "%s, allocation %ld: code %d: %s",
			     what, n, code, err);
		CHECK_REPORT(mem_live() == live, "%s, allocation %ld: %ld blocks left", what, n,
			     mem_live() - live);
		live = mem_live();
	}
	if (getenv("RICCI_SHOW"))
		fprintf(stderr, "%s: %ld allocations\n", what, n);
}

int main(void)
{
	const char *count = getenv("RICCI_FUZZ");
	long most = count ? atol(count) : MOST;
	const char *tmp = getenv("TMPDIR");
	snprintf(path, sizeof path, "%.30s/ricci-memory-%ld.h5", tmp ? tmp : "/tmp",
		 (long)getpid());
	check("training, static", train_static, most);
	check("training, dynamic", train_dynamic, most);
	check("a loop", train_loop, most);
	check("evaluate", program_evaluate, most);
	unlink(path);
	return check_done();
}
