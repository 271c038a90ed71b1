/* test_math.c - the functions of the notation as kernels compute them, tcc's chunks and cc's
 * vectors: within 2 units in the last place of libm in f64, at floats of every exponent and sign
 * and at the special ones. RICCI_FUZZ: how many floats of each exponent (8388608: all); then what
 * was measured is printed. */
#include "runtime/runtime.h"
#include "tests/check.h"
#include "tests/ulps.h"

#include <stdlib.h>

enum { PART = 1 << 18 };

static const struct {
	const char *name;
	double (*f)(double);
	double limit; /* of |x|: what lies beyond is not judged */
} row[] = {{"exp", exp, INFINITY},	   {"expm1", expm1, INFINITY}, {"log", log, INFINITY},
	   {"log1p", log1p, INFINITY},	   {"sqrt", sqrt, INFINITY},   {"rsqrt", rsqrt, INFINITY},
	   {"sin", sin, 0x1p28},	   {"cos", cos, 0x1p28},       {"tan", tan, 0x1p28},
	   {"tanh", tanh, INFINITY},	   {"erf", erf, INFINITY},     {"abs", fabs, INFINITY},
	   {"sigmoid", sigmoid, INFINITY}, {"sign", sign, INFINITY},   {"floor", floor, INFINITY},
	   {"ceil", ceil, INFINITY},	   {"round", rint, INFINITY}};

/* The worst of one call of the kernel. */
static void check_part(Ir *ir, Node *y, Node *x, const Backend *b, int r, float *in, double *worst,
		       float *at)
{
	static float out[PART];
	Evaluation e = {.backend = b, .threads = 1, .repeat = 1};
	Binding bind = {x, in};
	void *result[] = {out};
	Error err = {0};
	CHECK_INT(evaluate(ir, 1, &y, 1, &bind, result, &e, &err), 0);
	CHECK_STR(err.text, "");
	for (int i = 0; i < PART && !err.code; i++) {
		double off = fabs(in[i]) > row[r].limit && isfinite(in[i])
				     ? 0
				     : ulps(out[i], row[r].f(in[i]));
		if (off > *worst) {
			*worst = off;
			*at = in[i];
		}
	}
}

/* `each` floats of every exponent and sign, spread over it, its first and its last among them. */
static double check_function(const Backend *b, int r, int64_t each, float *at)
{
	static float in[PART];
	char text[64];
	double worst = 0;
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){PART});
	snprintf(text, sizeof text, "Y[i] = %s(X[i])", row[r].name);
	ricci_tensor *y = ricci_op(g, text, x);
	CHECK_STR(ricci_error_message(g), "");
	int n = 0;
	for (int64_t k = 0; k < 512 * each; k++) {
		uint64_t fraction =
			each > 1 ? (uint64_t)(k % each) * 0x7fffff / (uint64_t)(each - 1) : 0;
		uint32_t bits = (uint32_t)((uint64_t)(k / each) << 23 | fraction);
		memcpy(&in[n++], &bits, 4);
		if (n < PART && k + 1 < 512 * each)
			continue;
		while (n < PART)
			in[n++] = 0;
		check_part(&g->ir, y->node, x->node, b, r, in, &worst, at);
		n = 0;
	}
	ricci_graph_free(g);
	return worst;
}

int main(void)
{
	const char *fuzz = getenv("RICCI_FUZZ"), *const names[] = {"tcc", "cc"};
	char why[256];
	for (int r = 0; r < COUNT(row); r++) {
		if (fuzz)
			printf("%-8s", row[r].name);
		for (int k = 0; k < COUNT(names); k++) {
			const Backend *b = backend_find(names[k]);
			float at = 0;
			if (!b->available(why, sizeof why))
				continue;
			double worst = check_function(b, r, fuzz ? atol(fuzz) : 1023, &at);
			CHECK_REPORT(worst <= 2, "%s by %s is wrong by %.3f units at %a",
				     row[r].name, names[k], worst, at);
			if (fuzz)
				printf("  %s %.3f", names[k], worst);
		}
		if (fuzz)
			printf("\n");
	}
	return check_done();
}
