/* test_memory.c - a whole training life with the n-th allocation failing, for every n: graph,
 * gradients, optimiser, session with tcc, steps, a checkpoint written and read, a loop, evaluate().
 * Each ends well or with RICCI_ENOMEM, and leaves no block behind. RICCI_FUZZ: how many n are
 * tried. */
#include "runtime/session.h"
#include <ricci_nn.h>
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

typedef struct Network {
	ricci_graph *g;
	ricci_tensor *x, *labels, *loss;
} Network;

/* A dense layer, a maximum, a gather: the kinds of kernels that there are. */
static int model_build(Network *m)
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
static int code_of(const char *said)
{
	return strstr(said, "memory") ? RICCI_ENOMEM : RICCI_EINTERNAL;
}

static int session_use(Network *m, ricci_session *s)
{
	float x[24], loss;
	int32_t labels[4] = {0, 2, 1, 2};
	for (int i = 0; i < 24; i++)
		x[i] = (float)(i % 7) - 3;
	int code = ricci_feed(s, m->x, x, ricci_bytes(m->x));
	if (!code)
		code = ricci_feed(s, m->labels, labels, ricci_bytes(m->labels));
	for (int k = 0; k < 2 && !code; k++)
		code = ricci_step(s);
	if (!code)
		code = ricci_fetch(s, m->loss, &loss, ricci_bytes(m->loss));
	if (code)
		return code;
	code = ricci_save(s, m->loss, path, NULL, 1);
	return code ? code : ricci_load(s, m->loss, path, 0, NULL);
}

static int train_once(int frozen)
{
	Network m = {0};
	int code = model_build(&m);
	if (!code) {
		ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1,
						.static_mode = frozen, .seed = 3);
		ricci_session *s = ricci_session_new(m.g, &o, 1, 1, &m.loss);
		code = s ? session_use(&m, s) : code_of(ricci_error_message());
		ricci_session_free(s);
	}
	ricci_graph_free(m.g);
	return code;
}

static int train_static(void)
{
	return train_once(1);
}

static int train_dynamic(void)
{
	return train_once(0);
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
	ricci_loop loop = RICCI_LOOP(.steps = 5, .length = *length, .nslice = 1,
				     .slice = &(ricci_slice){xt, *x}, .ncarry = 1,
				     .carry = &(ricci_carry){h, zero, next});
	ricci_scan(g, &loop, &last, NULL);
	*loss = ricci_op(g, "L[] += H[b,j] * H[b,j]", last);
	ricci_tensor *rate = ricci_learning_rate(g, 0.01);
	if (*loss && rate)
		ricci_sgd(*loss, rate);
	return ricci_graph_error(g);
}

static int train_loop(void)
{
	float data[60] = {1, 2, 3};
	ricci_tensor *x, *length, *loss;
	ricci_graph *g = ricci_graph_new();
	if (!g)
		return RICCI_ENOMEM;
	int code = loop_build(g, &x, &length, &loss);
	ricci_options o = RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1,
					.static_mode = 0, .seed = 3);
	ricci_session *s = code ? NULL : ricci_session_new(g, &o, 1, 1, &loss);
	if (!code && !s)
		code = code_of(ricci_error_message());
	for (int32_t n = 4; n < 6 && !code; n++) {
		code = ricci_feed(s, x, data, ricci_bytes(x));
		code = code ? code : ricci_feed(s, length, &n, ricci_bytes(length));
		code = code ? code : ricci_step(s);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
	return code;
}

static int program_evaluate(void)
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
	if (!code) {
		Error e = {.tell = true};
		Node *root[] = {t->node, grad->node};
		Binding bind = {x->node, a};
		void *out[] = {y, d};
		Evaluation how = {.backend = backend_find("tcc"), .threads = 1, .repeat = 1};
		code = evaluate(&g->ir, 2, root, 1, &bind, out, &how, &e);
	}
	ricci_graph_free(g);
	return code;
}

/* Every n up to `most`, then ever fewer, until nothing fails; RICCI_SEED: the first. */
static void check(const char *what, int (*run)(void), long most)
{
	CHECK_REPORT(run() == 0, "%s: %s", what, ricci_error_message());
	const char *first = getenv("RICCI_SEED");
	long live = mem_live(), n = first ? atol(first) : 1;
	for (int code = -1; code && check_failed < 10; n += n < most ? 1 : 1 + n / 20) {
		mem_fail_at(n);
		code = run();
		mem_fail_at(0);
		CHECK_REPORT(code == 0 || code == RICCI_ENOMEM, "%s, allocation %ld: code %d: %s",
			     what, n, code, ricci_error_message());
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
