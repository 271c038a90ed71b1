/* sequence.h - for the tests of sequence layers: a graph whose operands have the values of
 * vectors.py's sequences(), and the comparison of results and gradients with those in vectors.txt, by
 * the interpreter in f64 and f32 and by kernels. */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include "nn/nn.h"
#include "tests/nn/vectors.h"

enum { ROOM = 40 };

typedef struct Case {
	ricci_graph *g;
	ricci_type type;
	int n, nbind;
	ricci_tensor *x[ROOM]; /* float operands, in the order of the numbers */
	ricci_tensor *bound[ROOM];
	Binding bind[ROOM];
} Case;

static double value_at(int64_t i, int64_t k)
{
	return (double)((i * 7919 + k * 31) % 101) / 101 - 0.5;
}

/* Data of t, in its type. */
static void *values_of(const ricci_tensor *t, int64_t k)
{
	int64_t n = tensor_size(t->node);
	void *data = malloc(ricci_bytes(t) + 1);
	for (int64_t i = 0; i < n; i++)
		if (ricci_dtype(t) == RICCI_F64)
			((double *)data)[i] = value_at(i, k);
		else
			((float *)data)[i] = (float)value_at(i, k);
	return data;
}

static void bind(Case *c, ricci_tensor *t, void *data)
{
	CHECK(c->nbind < ROOM);
	c->bound[c->nbind] = t;
	c->bind[c->nbind++] = (Binding){t->node, data};
}

static void take(Case *c, ricci_tensor *t)
{
	CHECK(c->n < ROOM);
	bind(c, t, values_of(t, c->n));
	c->x[c->n++] = t;
}

static ricci_tensor *operand(Case *c, int rank, const int64_t *shape)
{
	char name[16];
	snprintf(name, sizeof name, "x%d", c->n);
	ricci_tensor *t = ricci_input(c->g, name, c->type, rank, shape);
	take(c, t);
	return t;
}

/* An operand without a gradient. */
__attribute__((unused)) static ricci_tensor *fixed(Case *c, const char *name, ricci_type type,
						   int rank, const int64_t *shape, const void *v)
{
	ricci_tensor *t = ricci_input(c->g, name, type, rank, shape);
	void *data = malloc(ricci_bytes(t) + 1);
	memcpy(data, v, ricci_bytes(t));
	bind(c, t, data);
	return t;
}

/* The parameters that a layer has made, in their order. */
__attribute__((unused)) static void take_parameters(Case *c)
{
	for (int i = 0; i < ricci_param_count(c->g); i++)
		take(c, ricci_param_at(c->g, i, NULL));
}

/* Compares n numbers. */
static bool agree(const char *name, const char *how, const char *what, const double *got, int64_t n,
		  const double *want, double tolerance)
{
	for (int64_t i = 0; i < n; i++)
		if (!check_near(got[i], want[i], tolerance * (1 + fabs(want[i])))) {
			CHECK_REPORT(false, "%s, %s: %s at %lld is %.12g, should be %.12g", name,
				     how, what, (long long)i, got[i], want[i]);
			return false;
		}
	CHECK(true);
	return true;
}

static void fetch(ricci_session *s, const ricci_tensor *t, double *out)
{
	int64_t n = tensor_size(t->node);
	float *f = malloc(ricci_bytes(t) + 1);
	bool wide = ricci_dtype(t) == RICCI_F64;
	CHECK_INT(ricci_fetch(s, t, wide ? (void *)out : f, ricci_bytes(t)), 0);
	for (int64_t i = 0; i < n && !wide; i++)
		out[i] = (double)f[i];
	free(f);
}

/* Results and gradients against those of the case "sequences/name". */
static void compare(Case *c, const char *name, int ny, ricci_tensor *const *y)
{
	ricci_graph *g = c->g;
	ricci_tensor *all[2 * ROOM];
	CHECK_GRAPH(g);
	double *got;
	bool wide = c->type == RICCI_F64;
	ricci_tensor *sum = NULL;
	for (int k = 0; k < ny && !ricci_graph_error(g); k++) {
		char seed[16];
		snprintf(seed, sizeof seed, "seed%d", k);
		int64_t shape[RICCI_MAX_RANK];
		for (int d = 0; d < ricci_rank(y[k]); d++)
			shape[d] = ricci_extent(y[k], d);
		ricci_tensor *s = ricci_input(g, seed, c->type, ricci_rank(y[k]), shape);
		bind(c, s, values_of(s, k + 50));
		ricci_tensor *part = ricci_op(g, "Y, S -> L: L[] += Y[...] * S[...]", y[k], s);
		sum = sum ? ricci_op(g, "C[] = A[] + B[]", sum, part) : part;
		all[k] = y[k];
	}
	CHECK_INT(ricci_grad(g, sum, NULL, c->n, c->x, all + ny), 0);
	CHECK_GRAPH(g);
	char path[64];
	int n = 0;
	snprintf(path, sizeof path, "sequences/%s", name);
	const Vector *want = ricci_graph_error(g) ? NULL : vectors_of(path, &n);
	CHECK_INT(n, ny + c->n);
	for (int way = 0; way < 2 && n == ny + c->n; way++) {
		const char *how = way ? "kernels" : wide ? "interpreter" : "interpreter, f32";
		ricci_session *s =
			way ? ricci_session_new(
				      g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1),
				      0, ny + c->n, all)
			    : NULL;
		CHECK_REPORT(!way || s, "%s: %s", name, ricci_error_message());
		for (int k = 0; k < c->nbind && s; k++)
			ricci_feed(s, c->bound[k], c->bind[k].data, ricci_bytes(c->bound[k]));
		CHECK(!s || !ricci_step(s));
		for (int k = 0; k < ny + c->n && (s || !way); k++) {
			Error e = {0};
			int64_t size = tensor_size(all[k]->node);
			char what[64];
			snprintf(what, sizeof what, "%s %d", k < ny ? "result" : "gradient",
				 k < ny ? k : k - ny);
			got = calloc((size_t)size + 1, sizeof *got);
			if (s)
				fetch(s, all[k], got);
			else
				CHECK_INT(interp_tensor(all[k]->node, c->nbind, c->bind,
							(RandomState){1, 0}, got, NULL, &e),
					  0);
			CHECK_STR(e.text, "");
			CHECK_INT(size, want[k].size);
			if (size == want[k].size)
				agree(name, how, what, got, size, want[k].value,
				      wide  ? 1e-9
				      : way ? 1e-5
					    : 1e-6);
			free(got);
		}
		ricci_session_free(s);
	}
}

static void case_open(Case *c, ricci_type type)
{
	*c = (Case){.g = ricci_graph_new(), .type = type};
}

static void case_close(Case *c)
{
	for (int k = 0; k < c->nbind; k++)
		free((void *)c->bind[k].data);
	ricci_graph_free(c->g);
}

#endif
