/* test_layers_torch.c - values and gradients of the layers of nn/layers/ against numbers that PyTorch
 * recorded (vectors.py): in f64 by the interpreter, in f32 by compiled kernels, in
 * training sessions and others, and the states after a training step. */
#include "tests/nn/layer_cases.h"

static void feed(ricci_session *s, ricci_tensor *t, const Vector *r)
{
	union {
		float f[VALUES];
		double d[VALUES];
		int64_t i[VALUES];
	} v;
	for (int64_t i = 0; i < r->size; i++)
		if (ricci_dtype(t) == RICCI_F32)
			v.f[i] = (float)r->value[i];
		else if (ricci_dtype(t) == RICCI_F64)
			v.d[i] = r->value[i];
		else
			v.i[i] = (int64_t)r->value[i];
	CHECK_INT(ricci_feed(s, t, &v, ricci_bytes(t)), 0);
}

static void agree(ricci_session *s, const Case *c, const char *what, int k, ricci_tensor *t,
		  const Vector *want)
{
	union {
		float f[VALUES];
		double d[VALUES];
	} v;
	bool single = ricci_dtype(t) == RICCI_F32;
	double most = 0, tol = single ? 2e-5 : 1e-11;
	CHECK_INT(ricci_rank(t), want->rank);
	for (int d = 0; d < want->rank; d++)
		CHECK_INT(ricci_extent(t, d), want->shape[d]);
	if (ricci_bytes(t) != (size_t)want->size * (single ? 4 : 8))
		return;
	CHECK_INT(ricci_fetch(s, t, &v, ricci_bytes(t)), 0);
	for (int64_t i = 0; i < want->size; i++) {
		double got = single ? (double)v.f[i] : v.d[i];
		double error = fabs(got - want->value[i]) / (1 + fabs(want->value[i]));
		most = error <= most ? most : error;
	}
	CHECK_REPORT(most <= tol, "%s, %s: %s %d differs by %g, more than %g", c->name,
		     single ? "f32" : "f64", what, k, most, tol);
}

static void case_run(const Case *c, int layer, ricci_type type, ricci_backend backend)
{
	ricci_tensor *x[ROOM] = {0}, *wrt[ROOM], *out[ROOM + 1];
	ricci_graph *g = ricci_graph_new();
	int n = 0, nstate = 0;
	for (int k = 0; k < c->n; k++) {
		x[k] = operand(g, c->in[k], k, type);
		if (!strcmp(c->in[k]->array, "in"))
			wrt[n++] = x[k];
	}
	out[0] = layers[layer].make(x);
	ricci_tensor *seed = ricci_input(g, "seed", type, c->seed->rank, c->seed->shape);
	ricci_grad(g, out[0], seed, n, wrt, out + 1);
	CHECK_REPORT(!ricci_graph_error(g), "%s: %s", c->name, ricci_error_message());
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.backend = backend, .threads = 1),
					     c->train, n + 1, out);
	if (s) {
		for (int k = 0; k < c->n; k++)
			feed(s, x[k], c->in[k]);
		feed(s, seed, c->seed);
		CHECK_INT(ricci_step(s), 0);
		agree(s, c, "value", 0, out[0], c->value);
		for (int k = 0; k < n; k++)
			agree(s, c, "gradient", k, out[k + 1], c->grad[k]);
		for (int k = 0; k < c->n; k++)
			if (!strcmp(c->in[k]->array, "state"))
				agree(s, c, "state", k, x[k],
				      c->nafter ? c->after[nstate++] : c->in[k]);
		CHECK_INT(nstate, c->nafter);
	}
	CHECK_REPORT(s, "%s: %s", c->name, ricci_error_message());
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* Is there a layer for each case of the file? */
static void all_there(void)
{
	int n, layer = 0;
	const Vector *v = vectors(&n);
	for (int k = 0; k < n; k++) {
		if (strncmp(v[k].name, "layers/", 7) || strcmp(v[k].array, "value"))
			continue;
		size_t length = (size_t)(v[k].array - v[k].name) - 8;
		for (layer = 0; layer < NLAYER; layer++)
			if (strlen(layers[layer].name) == length &&
			    !memcmp(layers[layer].name, v[k].name + 7, length))
				break;
		CHECK_REPORT(layer < NLAYER, "no layer for the case %s", v[k].name);
	}
}

int main(void)
{
	Case c;
	for (int layer = 0; layer < NLAYER; layer++) {
		case_read(layers[layer].name, &c);
		if (!c.value || !c.seed)
			continue;
		case_run(&c, layer, RICCI_F64, RICCI_BACKEND_INTERP);
		case_run(&c, layer, RICCI_F32, RICCI_BACKEND_TCC);
	}
	all_there();
	return check_done();
}
