/* test_backend_math.c - the mathematics of kernels against libm in f64: a sweep over all magnitudes
 * (every 4099th float), bounds in units of the last place, and the special values. */
#include "jit/backend/backend.h"
#include "jit/symbols.h"
#include "tests/check.h"
#include "tests/ulps.h"

static const struct {
	const char *name;
	double (*f)(double);
	double ulp;
	float lo, hi; /* outside the result is known and tested with the special values */
} row[] = {
	{"exp", exp, 1.1, -200, 200},
	{"expm1", expm1, 1.7, -200, 200},
	{"log", log, 1, -1, INFINITY},
	{"log1p", log1p, 1, -2, INFINITY},
	{"sqrt", sqrt, 0.5, -1, INFINITY},
	{"rsqrt", rsqrt, 1.5, -1, INFINITY},
	{"sin", sin, 1.6, -0x1p28f, 0x1p28f},
	{"cos", cos, 1.6, -0x1p28f, 0x1p28f},
	{"tan", tan, 0.6, -0x1p28f, 0x1p28f},
	{"tanh", tanh, 1.2, -INFINITY, INFINITY},
	{"sigmoid", sigmoid, 1.8, -INFINITY, INFINITY},
	{"erf", erf, 2, -INFINITY, INFINITY},
	{"abs", fabs, 0, -INFINITY, INFINITY},
	{"sign", sign, 0, -INFINITY, INFINITY},
	{"floor", floor, 0, -INFINITY, INFINITY},
	{"ceil", ceil, 0, -INFINITY, INFINITY},
	{"round", rint, 0, -INFINITY, INFINITY},
	{"tf32", type_tf32, 0, -INFINITY, INFINITY},
};

static const float special[] = {
	0,	   -0.0f,      1,	    -1,	   2,	   -2,	     3,		-3,
	0.5f,	   -0.5f,      1.5f,	    -1.5f, 2.5f,   INFINITY, -INFINITY, NAN,
	0x1p-149f, -0x1p-149f, 0x1p-126f,   88.7f, 88.8f,  -87.4f,   -103.9f,	-104.1f,
	8388609,   16777215,   -8388607.5f, 1e30f, -1e30f, 3.4e38f,  0.22348f,	-NAN};

static const void *find(const char *name, const char *type)
{
	char full[64];
	snprintf(full, sizeof full, "ricci_%s_%s", name, type);
	const void *f = jit_symbol(full);
	CHECK_REPORT(f != NULL, "%s is missing", full);
	return f;
}

static void check_sweep(int r)
{
	float (*f)(float) = (float (*)(float))find(row[r].name, "f32"), at = 0;
	double worst = 0;
	for (uint64_t u = 0; f && u < 1ull << 32; u += 4099) {
		uint32_t bits = (uint32_t)u;
		float x;
		memcpy(&x, &bits, 4);
		if (!(x >= row[r].lo && x <= row[r].hi))
			continue;
		double e = ulps(f(x), row[r].f(x));
		if (e > worst)
			worst = e, at = x;
	}
	CHECK_REPORT(worst <= row[r].ulp,
		     "%s(%a) is wrong by %.3f units in the last place, at most %.1f", row[r].name,
		     at, worst, row[r].ulp);
}

static void check_special(int r)
{
	float (*f)(float) = (float (*)(float))find(row[r].name, "f32");
	double (*d)(double) = (double (*)(double))find(row[r].name, "f64");
	for (int i = 0; f && d && i < COUNT(special); i++) {
		float x = special[i];
		double want = row[r].f(x), wide = d(x);
		bool same = want == wide || (isnan(want) && isnan(wide)) ||
			    fabs(wide - want) <= 1e-15 * fabs(want);
		CHECK_REPORT(same, "%s_f64(%g) is %g, should be %g", row[r].name, x, wide, want);
		if (!(x >= row[r].lo && x <= row[r].hi) && isfinite(x)) {
			bool wave = fabs(want) <= 1 &&
				    fabsf(f(x)) <= 1; /* sin and cos of huge numbers */
			CHECK_REPORT(wave || ulps(f(x), want) <= row[r].ulp ||
					     !strcmp(row[r].name, "tan"),
				     "%s(%g) is %g", row[r].name, x, f(x));
			continue;
		}
		CHECK_REPORT(ulps(f(x), want) <= row[r].ulp, "%s(%g) is %g, should be %g",
			     row[r].name, x, f(x), want);
		CHECK_REPORT(isnan(want) || !signbit(f(x)) == !signbit(want),
			     "%s(%g) has the wrong sign", row[r].name, x);
	}
}

static uint64_t noise(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	return *s ^= *s << 17;
}

static void check_pow(void)
{
	float (*f)(float, float) = (float (*)(float, float))find("pow", "f32"), ax = 0, ay = 0;
	double worst = 0;
	uint64_t s = 88172645463325252u;
	for (long k = 0; f && k < 2000000; k++) {
		uint64_t w = noise(&s);
		uint32_t a = (uint32_t)w, b = (uint32_t)(w >> 32);
		float x, y;
		memcpy(&x, &a, 4);
		memcpy(&y, &b, 4);
		if (k & 1) { /* usual sizes */
			x = ldexpf((float)(a >> 8) * 0x1p-24f + 0.5f, (int)(k / 2 % 40) - 20);
			y = (float)(int)b * 0x1p-28f;
		}
		if (k % 4 == 3) {
			x = -x;
			y = rintf(y);
		}
		double e = ulps(f(x, y), pow(x, y));
		if (e > worst)
			worst = e, ax = x, ay = y;
	}
	CHECK_REPORT(worst <= 0.6, "pow(%a, %a) is wrong by %.3f units in the last place", ax, ay,
		     worst);
	for (int i = 0; f && i < COUNT(special); i++)
		for (int j = 0; j < COUNT(special); j++) {
			float x = special[i], y = special[j], got = f(x, y), want = powf(x, y);
			CHECK_REPORT(ulps(got, want) <= 1 &&
					     (isnan(want) || !signbit(got) == !signbit(want)),
				     "pow(%g, %g) is %g, should be %g", x, y, got, want);
		}
}

static void check_draws(void)
{
	typedef float Draw(uint64_t, uint64_t, uint64_t, uint64_t);
	Draw *uniform = (Draw *)jit_symbol("ricci_random"),
	     *normal = (Draw *)jit_symbol("ricci_normal");
	CHECK(uniform && normal);
	uint64_t s = 1;
	for (int k = 0; uniform && normal && k < 10000; k++) {
		uint64_t element = noise(&s) >> (k % 64), key = noise(&s), seed = noise(&s),
			 step = k;
		uint32_t w[4];
		philox(element, key, seed, step, w);
		CHECK(uniform(element, key, seed, step) == philox_uniform(w[0]));
		CHECK_NEAR(normal(element, key, seed, step), philox_normal(w[0], w[1]), 4e-6);
	}
}

static void check_halves(void)
{
	static const struct {
		Type type;
		const char *load, *store, *round;
	} half[] = {{RICCI_F16, "ricci_f32_of_f16", "ricci_f16_of_f32", "ricci_round_f16"},
		    {RICCI_BF16, "ricci_f32_of_bf16", "ricci_bf16_of_f32", "ricci_round_bf16"}};
	for (int h = 0; h < COUNT(half); h++) {
		float (*load)(unsigned short) = (float (*)(unsigned short))jit_symbol(half[h].load);
		unsigned short (*store)(float) =
			(unsigned short (*)(float))jit_symbol(half[h].store);
		float (*round)(float) = (float (*)(float))jit_symbol(half[h].round);
		CHECK(load && store && round);
		int wrong = 0;
		for (uint32_t u = 0; load && u < 65536; u++) {
			uint16_t w = (uint16_t)u;
			double want = type_load(half[h].type, &w, 0);
			wrong += !(load(w) == want || (isnan(want) && isnan(load(w))));
		}
		CHECK_INT(wrong, 0);
		for (uint64_t u = 0; store && u < 1ull << 32; u += 4099) {
			uint32_t bits = (uint32_t)u;
			float x;
			uint16_t want;
			memcpy(&x, &bits, 4);
			type_store(half[h].type, &want, 0, x);
			wrong += isnan(x) ? !isnan(load(store(x))) : store(x) != want;
			wrong += isnan(x) ? !isnan(round(x)) : round(x) != load(want);
		}
		CHECK_INT(wrong, 0);
	}
}

int main(void)
{
	for (int r = 0; r < COUNT(row); r++) {
		check_sweep(r);
		check_special(r);
	}
	check_pow();
	check_draws();
	check_halves();
	return check_done();
}
