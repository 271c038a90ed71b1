/* test_math.c - the functions of the notation as kernels compute them, tcc's chunks and cc's
 * vectors: within 2 units in the last place of libm in f64, at floats of every exponent and sign
 * and at the special ones. What kernels compute in a way of their own beside these is rounded as by
 * the processor: quotients by constants and by what is read, the greater and the less of a
 * constant, casts to integers. The smallest results may be off by twice the least
 * normal number: what is subnormal on the way is 0.
 * RICCI_FUZZ: how many floats of each exponent (8388608: all); then what was measured is printed.
 */
#include "runtime/runtime.h"
#include "tests/check.h"
#include "tests/ulps.h"

#include <float.h>
#include <stdlib.h>

enum { PART = 1 << 18 };

static double by_3(double x)
{
	return x / 3;
}
static double by_49(double x)
{
	return x / 49;
}
static double by_nearly_2(double x) /* no place of the divisor is 0 */
{
	return x / 0x1.fffffep0;
}
static double by_large(double x)
{
	return x / 0x1.234566p40;
}
static double least(double x)
{
	return x < -1.5 ? -1.5 : x;
}
static double most(double x)
{
	return x > 1.5 ? 1.5 : x;
}
static double clip(double x, double low, double high)
{
	return isnan(x) ? 0 : x < low ? low : x > high ? high : trunc(x) + 0.0;
}
static double to_i8(double x)
{
	return clip(x, -128, 127);
}
static double to_u8(double x)
{
	return clip(x, 0, 255);
}
static double to_i32(double x)
{
	return (float)clip(x, -2147483648., 2147483647.);
}

static const struct {
	const char *name; /* a function, or an expression of X[i] that is rounded once */
	double (*f)(double);
	double limit; /* of |x|: what lies beyond is not judged */
} row[] = {{"exp", exp, INFINITY},
	   {"expm1", expm1, INFINITY},
	   {"log", log, INFINITY},
	   {"log1p", log1p, INFINITY},
	   {"sqrt", sqrt, INFINITY},
	   {"rsqrt", rsqrt, INFINITY},
	   {"sin", sin, 0x1p28},
	   {"cos", cos, 0x1p28},
	   {"tan", tan, 0x1p28},
	   {"tanh", tanh, INFINITY},
	   {"erf", erf, INFINITY},
	   {"abs", fabs, INFINITY},
	   {"sigmoid", sigmoid, INFINITY},
	   {"sign", sign, INFINITY},
	   {"floor", floor, INFINITY},
	   {"ceil", ceil, INFINITY},
	   {"round", rint, INFINITY},
	   {"tf32", type_tf32, INFINITY},
	   {"X[i] / 3", by_3, INFINITY},
	   {"X[i] / 49", by_49, INFINITY},
	   {"X[i] / 1.99999988079071044921875", by_nearly_2, INFINITY},
	   {"X[i] / 1250999795712", by_large, INFINITY},
	   {"max(X[i], -1.5)", least, INFINITY},
	   {"min(1.5, X[i])", most, INFINITY},
	   {"f32(i8(X[i]))", to_i8, INFINITY},
	   {"f32(u8(X[i]))", to_u8, INFINITY},
	   {"f32(i32(X[i]))", to_i32, INFINITY}};

/* The divisors D of X[i] / D[], behind the rows: kernels invert one that they read where it is near
 * 1. */
static const float divisor[] = {0.1f,	      -3,     0x1.fffffep-1f, 0x1p-100f, 7e28f,
				0x1.234p101f, 1e-38f, INFINITY,	      NAN};
enum { ROWS = COUNT(row), ALL = ROWS + COUNT(divisor) };

static const char *name(int r)
{
	return r < ROWS ? row[r].name : "X[i] / D[]";
}

static double wanted(int r, double x)
{
	return r < ROWS ? row[r].f(x) : x / divisor[r - ROWS];
}

static bool is_exact(int r)
{
	return strstr(name(r), "X[i]") != NULL;
}

/* The worst of one call of the kernel. */
static void check_part(Ir *ir, Node *y, const Binding *bind, const Backend *b, int r, double *worst,
		       float *at)
{
	static float out[PART];
	Evaluation e = {.backend = b, .threads = 1, .repeat = 1};
	const float *in = bind->data;
	void *result[] = {out};
	Error err = {0};
	CHECK_INT(evaluate(ir, 1, &y, r < ROWS ? 1 : 2, bind, result, &e, &err), 0);
	CHECK_STR(err.text, "");
	for (int i = 0; i < PART && !err.code; i++) {
		double want = wanted(r, in[i]);
		bool any = r < ROWS && fabs(in[i]) > row[r].limit && isfinite(in[i]);
		bool flushed = fabs(want) < 0x1p-120 && fabs(out[i] - want) < 2 * FLT_MIN;
		double off = any || flushed ? 0 : ulps(out[i], want);
		if (is_exact(r) && !isnan(want) && !signbit(want) != !signbit(out[i]))
			off = INFINITY;
		/* what a quotient leaves is subnormal: 0 */
		bool small = fabs(in[i]) < 0x1p-102 || fabs(want) < 0x1p-100;
		if (is_exact(r) && small && off < 1.5)
			off = 0;
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
	char text[96];
	double worst = 0;
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){PART});
	snprintf(text, sizeof text, is_exact(r) ? "Y[i] = %s" : "Y[i] = %s(X[i])", name(r));
	ricci_tensor *d = r < ROWS ? NULL : ricci_input(g, "d", RICCI_F32, 0, NULL);
	ricci_tensor *y = d ? ricci_op(g, text, x, d) : ricci_op(g, text, x);
	CHECK_GRAPH(g);
	float by = r < ROWS ? 1 : divisor[r - ROWS];
	Binding bind[] = {{x->node, in}, {d ? d->node : NULL, &by}};
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
		check_part(&g->ir, y->node, bind, b, r, &worst, at);
		n = 0;
	}
	ricci_graph_free(g);
	return worst;
}

/* ---- f64: numbers of every exponent and sign, and as many of usual sizes */

static const struct {
	const char *name;
	long double (*f)(long double);
} wide[] = {{"exp", expl},     {"expm1", expm1l}, {"log", logl},
	    {"log1p", log1pl}, {"tanh", tanhl},	  {"sigmoid", sigmoidl}};

static double wide_number(int i)
{
	uint64_t bits = (uint64_t)(i / 32) << 52 | (uint64_t)(i % 32) * 0x210842108421;
	double x;
	memcpy(&x, &bits, 8);
	return i < PART / 2 ? x : (i - PART * 3 / 4) * (i % 2 ? 0x1.6f1p-8 : 0x1.37p-15);
}

static double check_wide(const Backend *b, int r, double *at)
{
	static double in[PART], out[PART];
	char text[96];
	double worst = 0;
	Evaluation e = {.backend = b, .threads = 1, .repeat = 1};
	Error err = {0};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F64, 1, (int64_t[]){PART});
	snprintf(text, sizeof text, "Y[i] = %s(X[i])", wide[r].name);
	ricci_tensor *y = ricci_op(g, text, x);
	CHECK_GRAPH(g);
	for (int i = 0; i < PART; i++)
		in[i] = wide_number(i);
	CHECK_INT(
		evaluate(&g->ir, 1, &y->node, 1, &(Binding){x->node, in}, &(void *){out}, &e, &err),
		0);
	CHECK_STR(err.text, "");
	for (int i = 0; i < PART && !err.code; i++) {
		long double want = wide[r].f(in[i]);
		bool flushed = fabsl(want) < 0x1p-1016L && fabsl(out[i] - want) < 2 * DBL_MIN;
		double off = flushed ? 0 : ulps_f64(out[i], want);
		if (off > worst) {
			worst = off;
			*at = in[i];
		}
	}
	ricci_graph_free(g);
	return worst;
}

static void check_all_wide(const Backend *b, bool print)
{
	double at = 0;
	for (int r = 0; r < COUNT(wide); r++) {
		double worst = check_wide(b, r, &at);
		CHECK_REPORT(worst <= 2, "%s of f64 by %s is wrong by %.3f units at %a",
			     wide[r].name, b->name, worst, at);
		if (print)
			printf("%s of f64 by %s %.3f\n", wide[r].name, b->name, worst);
	}
}

/* A cast there and back of one number between -1 and 1: +0, not what truncation leaves. */
static void check_scalar_casts(const Backend *b)
{
	static const char *const casts[] = {"f32(i8(X))", "f32(u8(X))", "f32(i32(X))",
					    "f32(i64(X))", "f32(i32(f64(X)))"};
	float in = -0.5f, out = 0;
	Evaluation e = {.backend = b, .threads = 1, .repeat = 1};
	for (int c = 0; c < COUNT(casts); c++) {
		char text[96];
		Error err = {0};
		ricci_graph *g = ricci_graph_new();
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 0, NULL);
		snprintf(text, sizeof text, "Y[] = %.*s[]%s", (int)strcspn(casts[c], "X") + 1,
			 casts[c], strchr(casts[c], 'X') + 1);
		ricci_tensor *y = ricci_op(g, text, x);
		CHECK_GRAPH(g);
		CHECK_INT(evaluate(&g->ir, 1, &y->node, 1, &(Binding){x->node, &in},
				   &(void *){&out}, &e, &err),
			  0);
		CHECK_STR(err.text, "");
		CHECK_REPORT(out == 0 && !signbit(out), "%s by %s is %g", text, b->name, out);
		ricci_graph_free(g);
	}
}

int main(void)
{
	const char *fuzz = getenv("RICCI_FUZZ"), *const names[] = {"tcc", "cc"};
	char why[256];
	for (int r = 0; r < ALL; r++) {
		if (fuzz)
			printf("%-8s", name(r));
		for (int k = 0; k < COUNT(names); k++) {
			const Backend *b = backend_find(names[k]);
			float at = 0;
			if (!b->available(why, sizeof why))
				continue;
			double worst = check_function(b, r, fuzz ? atol(fuzz) : 1023, &at);
			CHECK_REPORT(worst <= (is_exact(r) ? 0.5 : 2),
				     "%s, row %d, by %s is wrong by %.3f units at %a", name(r), r,
				     names[k], worst, at);
			if (fuzz)
				printf("  %s %.3f", names[k], worst);
		}
		if (fuzz)
			printf("\n");
	}
	for (int k = 0; k < COUNT(names); k++)
		if (backend_find(names[k])->available(why, sizeof why)) {
			check_all_wide(backend_find(names[k]), fuzz != NULL);
			check_scalar_casts(backend_find(names[k]));
		}
	return check_done();
}
