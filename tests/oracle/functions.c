/* functions.c - numbers: what each type holds, the functions of the notation, random draws. */
#include "tests/oracle/internal.h"

#include <float.h>
#include <string.h>

/* ---- types */

static const struct {
	const char *name;
	int bits, least; /* floats: significant bits, the exponent of the least normal number */
	double largest;	 /* floats: finite */
	int64_t lo, hi;
} types[TYPES] = {
	[F32] = {"f32", 24, -126, FLT_MAX, 0, 0},
	[F64] = {"f64", 53, -1022, DBL_MAX, 0, 0},
	[BF16] = {"bf16", 8, -126, 0x1.fep127, 0, 0},
	[F16] = {"f16", 11, -14, 65504, 0, 0},
	[I8] = {"i8", 0, 0, 0, INT8_MIN, INT8_MAX},
	[U8] = {"u8", 0, 0, 0, 0, UINT8_MAX},
	[I32] = {"i32", 0, 0, 0, INT32_MIN, INT32_MAX},
	[I64] = {"i64", 0, 0, 0, INT64_MIN, INT64_MAX},
	[BOOL] = {"bool", 0, 0, 0, 0, 1},
};

int oracle_type(const char *name)
{
	for (int t = 0; t < TYPES; t++)
		if (!strcmp(types[t].name, name))
			return t;
	return -1;
}

bool is_float(Kind type)
{
	return type < TYPES && types[type].bits;
}

bool oracle_is_float(int type)
{
	return is_float((Kind)type);
}

void range_of(Kind type, int64_t *least, int64_t *greatest)
{
	*least = types[type].lo;
	*greatest = types[type].hi;
}

double largest_of(Kind type)
{
	return type == F64 ? DBL_MAX : FLT_MAX;
}

/* To a multiple of the last place at v, ties to even: rint does that to v in units of the place. */
double round_float(Kind type, double v)
{
	int exponent;
	if (type == F64 || !isfinite(v) || v == 0)
		return v;
	frexp(v, &exponent); /* |v| = 0.5 .. 1 by 2^exponent */
	int place = (exponent - 1 > types[type].least ? exponent - 1 : types[type].least) -
		    (types[type].bits - 1);
	double rounded = copysign(ldexp(rint(ldexp(v, -place)), place), v);
	return fabs(rounded) > types[type].largest ? copysign(INFINITY, v) : rounded;
}

int64_t clip_whole(Kind type, int64_t v)
{
	return v < types[type].lo ? types[type].lo : v > types[type].hi ? types[type].hi : v;
}

int64_t clip_float(Kind type, double v)
{
	if (isnan(v))
		return 0;
	int64_t whole = v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
	return clip_whole(type, whole);
}

/* The only value of the type that differs from v by a multiple of its number of values. */
int64_t wrap(Kind type, __int128 v)
{
	__int128 lo = types[type].lo, n = (__int128)types[type].hi - lo + 1, r = (v - lo) % n;
	return (int64_t)(lo + r + (r < 0 ? n : 0));
}

/* ---- functions */

static double rsqrt(double a)
{
	return 1 / sqrt(a);
}

static double sigmoid(double a)
{
	return 1 / (1 + exp(-a));
}

static double sign(double a)
{
	return a > 0 ? 1 : a < 0 ? -1 : a; /* NaN and both zeros are their own */
}

static double tf32(double a)
{
	int e;
	frexp(a, &e);
	e = e < -125 ? -125 : e;
	double b = isfinite(a) ? ldexp(round(ldexp(a, 11 - e)), e - 11) : a;
	return fabs(b) < 0x1p128 ? b : a + copysign(INFINITY, a);
}

static double same(double a)
{
	return a;
}

static double greater(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static double lesser(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}

static const struct {
	const char *name;
	double (*one)(double);
	double (*two)(double, double);
	bool floats, jumps, turns; /* turns: by the argument's remainder */
} functions[] = {
	{"exp", exp, NULL, true, false, false},
	{"log", log, NULL, true, false, false},
	{"log1p", log1p, NULL, true, false, false},
	{"expm1", expm1, NULL, true, false, false},
	{"sqrt", sqrt, NULL, true, false, false},
	{"rsqrt", rsqrt, NULL, true, false, false},
	{"sin", sin, NULL, true, false, true},
	{"cos", cos, NULL, true, false, true},
	{"tan", tan, NULL, true, false, true},
	{"tanh", tanh, NULL, true, false, false},
	{"sigmoid", sigmoid, NULL, true, false, false},
	{"erf", erf, NULL, true, false, false},
	{"pow", NULL, pow, true, false, false},
	{"abs", fabs, NULL, false, false, false},
	{"sign", sign, NULL, false, true, false},
	{"floor", floor, NULL, false, true, false},
	{"ceil", ceil, NULL, false, true, false},
	{"round", rint, NULL, false, true, false},
	{"tf32", tf32, NULL, true, true, false},
	{"stop_gradient", same, NULL, false, false, false},
	{"min", NULL, lesser, false, false, false},
	{"max", NULL, greater, false, false, false},
};

int function_find(const char *name)
{
	for (int i = 0; i < COUNT_OF(functions); i++)
		if (!strcmp(functions[i].name, name))
			return i;
	return -1;
}

int function_arguments(int i)
{
	return functions[i].two ? 2 : 1;
}

bool function_of_floats(int i)
{
	return functions[i].floats;
}

bool function_jumps(int i)
{
	return functions[i].jumps;
}

bool function_turns(int i)
{
	return functions[i].turns;
}

double function_float(int i, double a, double b)
{
	return functions[i].two ? functions[i].two(a, b) : functions[i].one(a);
}

__int128 function_whole(int i, __int128 a, __int128 b)
{
	if (functions[i].two)
		return (functions[i].two == greater) == (a > b) ? a : b;
	return functions[i].one == fabs	  ? (a < 0 ? -a : a)
	       : functions[i].one == sign ? (a > 0) - (a < 0)
					  : a; /* whole numbers are their own floor */
}

/* ---- random numbers (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011) */

static void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
	uint64_t a = (uint64_t)c[0] * 0xD2511F53, b = (uint64_t)c[2] * 0xCD9E8D57;
	uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b,
			    (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
	memcpy(c, next, sizeof next);
}

float draw(bool normal, int64_t key, int64_t element, uint64_t seed)
{
	uint32_t c[4] = {(uint32_t)element, (uint32_t)((uint64_t)element >> 32), (uint32_t)key,
			 (uint32_t)((uint64_t)key >> 32)};
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
	for (int round = 0; round < 10; round++)
		philox_round(c, k0 + (uint32_t)round * 0x9E3779B9,
			     k1 + (uint32_t)round * 0xBB67AE85);
	float first = (float)(c[0] >> 8), second = (float)(c[1] >> 8) * 0x1p-24f;
	if (!normal)
		return first * 0x1p-24f;
	return sqrtf(-2 * logf((first + 1) * 0x1p-24f)) * cosf(6.28318530717958648f * second);
}

/* Steps of loops draw numbers of their own: the seed moves along SplitMix64's stream and is mixed
 * by the finaliser of MurmurHash3. */
uint64_t seed_of_step(uint64_t seed, int64_t t)
{
	uint64_t x = seed + ((uint64_t)t + 1) * 0x9e3779b97f4a7c15;
	x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
	return x ^ x >> 33;
}
