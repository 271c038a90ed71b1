/* type.c - data types: sizes, names, and single elements in and out of memory.
 * Rounding to a narrower float is to nearest even; integers saturate; NaN becomes 0 in an integer.
 */
#include "core/base/base.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const struct {
	const char *name;
	uint8_t size;
	bool is_float;
	int64_t lo, hi; /* of integers */
	double largest, epsilon;
} types[RICCI_NTYPES] = {
	[RICCI_F32] = {"f32", 4, true, 0, 0, FLT_MAX, FLT_EPSILON},
	[RICCI_F64] = {"f64", 8, true, 0, 0, DBL_MAX, DBL_EPSILON},
	[RICCI_BF16] = {"bf16", 2, true, 0, 0, 0xffp120, 0x1p-7},
	[RICCI_F16] = {"f16", 2, true, 0, 0, 65504, 0x1p-10},
	[RICCI_I8] = {"i8", 1, false, INT8_MIN, INT8_MAX, FLT_MAX, 0},
	[RICCI_U8] = {"u8", 1, false, 0, UINT8_MAX, FLT_MAX, 0},
	[RICCI_I32] = {"i32", 4, false, INT32_MIN, INT32_MAX, FLT_MAX, 0},
	[RICCI_I64] = {"i64", 8, false, INT64_MIN, INT64_MAX, FLT_MAX, 0},
	[RICCI_BOOL] = {"bool", 1, false, 0, 1, FLT_MAX, 0},
};

size_t type_size(Type t)
{
	return types[t].size;
}

const char *type_name(Type t)
{
	return types[t].name;
}

bool type_parse(const char *name, Type *out)
{
	for (int t = 0; t < RICCI_NTYPES; t++)
		if (!strcmp(types[t].name, name)) {
			*out = (Type)t;
			return true;
		}
	return false;
}

bool type_is_float(Type t)
{
	return types[t].is_float;
}

bool type_is_int(Type t)
{
	return !types[t].is_float && t != RICCI_BOOL;
}

void type_range(Type t, int64_t *lo, int64_t *hi)
{
	*lo = types[t].lo;
	*hi = types[t].hi;
}

Type type_accumulator(Type t)
{
	if (t == RICCI_BF16 || t == RICCI_F16)
		return RICCI_F32;
	if (t == RICCI_I8 || t == RICCI_U8)
		return RICCI_I32;
	return t;
}

int64_t type_wrap(Type t, int64_t v)
{
	switch (t) {
	case RICCI_I8:
		return (int8_t)v;
	case RICCI_U8:
		return (uint8_t)v;
	case RICCI_I32:
		return (int32_t)v;
	case RICCI_BOOL:
		return v != 0;
	default:
		return v;
	}
}

static float bits_float(uint32_t u)
{
	float f;
	memcpy(&f, &u, 4);
	return f;
}

static uint32_t float_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

static float half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
	if (e == 31)
		return bits_float(sign | 0x7f800000 | m << 13);
	if (e == 0)
		return bits_float(sign | float_bits((float)m * 0x1p-24f));
	return bits_float(sign | (e + 112) << 23 | m << 13);
}

static uint64_t double_bits(double v)
{
	uint64_t u;
	memcpy(&u, &v, 8);
	return u;
}

/* A double to the nearest float of `bits` significant bits with least normal number `least` and
 * largest finite `max`; of two as near the even one. */
static double round_to(double v, int bits, double least, double max)
{
	int drop = 53 - bits;
	if (!isfinite(v))
		return v;
	if (fabs(v) < least) { /* sums with `unit` end where such numbers do */
		double unit = 0x1.8p53 * ldexp(least, -bits);
		return copysign(fabs(v) + unit - unit, v);
	}
	uint64_t u = double_bits(v);
	u += ((uint64_t)1 << (drop - 1)) - 1 + (u >> drop & 1);
	u = u >> drop << drop;
	memcpy(&v, &u, 8);
	return fabs(v) > max ? copysign(INFINITY, v) : v;
}

double type_tf32(double v)
{
	const uint64_t dropped = ((uint64_t)1 << 42) - 1; /* of 53 bits */
	uint64_t u = (double_bits(v) + dropped / 2 + 1) & ~dropped;
	if (fabs(v) < 0x1p-126)
		return copysign(floor(fabs(v) * 0x1p136 + 0.5) * 0x1p-136, v);
	if (isfinite(v))
		memcpy(&v, &u, 8);
	return fabs(v) > 0x1.ffcp127 ? copysign(INFINITY, v) : v;
}

static uint16_t double_to_half(double v)
{
	v = round_to(v, 11, 0x1p-14, 65504.0);
	uint16_t sign = signbit(v) ? 0x8000 : 0;
	v = fabs(v);
	if (isnan(v))
		return sign | 0x7e00;
	if (isinf(v))
		return sign | 0x7c00;
	if (v < 0x1p-14)
		return sign | (uint16_t)(v * 0x1p24);
	return sign | (uint16_t)((double_bits(v) >> 42) - ((1023 - 15) << 10));
}

static uint16_t double_to_bf16(double v)
{
	float f = (float)round_to(v, 8, 0x1p-126, 0x1.fep127);
	return (uint16_t)(float_bits(f) >> 16 | (isnan(v) ? 0x40 : 0));
}

double type_load(Type t, const void *p, size_t i)
{
	switch (t) {
	case RICCI_F32:
		return ((const float *)p)[i];
	case RICCI_F64:
		return ((const double *)p)[i];
	case RICCI_BF16:
		return bits_float((uint32_t)((const uint16_t *)p)[i] << 16);
	case RICCI_F16:
		return half_to_float(((const uint16_t *)p)[i]);
	default:
		return (double)type_load_int(t, p, i);
	}
}

int64_t type_load_int(Type t, const void *p, size_t i)
{
	switch (t) {
	case RICCI_I8:
		return ((const int8_t *)p)[i];
	case RICCI_U8:
		return ((const uint8_t *)p)[i];
	case RICCI_I32:
		return ((const int32_t *)p)[i];
	case RICCI_I64:
		return ((const int64_t *)p)[i];
	case RICCI_BOOL:
		return ((const uint8_t *)p)[i] != 0;
	default:
		return (int64_t)type_load(t, p, i);
	}
}

double type_largest(Type t)
{
	return types[t].largest;
}

double type_epsilon(Type t)
{
	return types[t].epsilon;
}

void type_store(Type t, void *p, size_t i, double v)
{
	switch (t) {
	case RICCI_F32:
		((float *)p)[i] = (float)v;
		break;
	case RICCI_F64:
		((double *)p)[i] = v;
		break;
	case RICCI_BF16:
		((uint16_t *)p)[i] = double_to_bf16(v);
		break;
	case RICCI_F16:
		((uint16_t *)p)[i] = double_to_half(v);
		break;
	case RICCI_BOOL:
		((uint8_t *)p)[i] = v != 0;
		break;
	default:
		if (isnan(v))
			v = 0;
		type_store_int(t, p, i,
			       v >= 0x1p63    ? INT64_MAX
			       : v <= -0x1p63 ? INT64_MIN
					      : (int64_t)v);
	}
}

void type_store_int(Type t, void *p, size_t i, int64_t v)
{
	if (types[t].is_float) {
		type_store(t, p, i, (double)v);
		return;
	}
	if (t == RICCI_BOOL)
		v = v != 0;
	v = v < types[t].lo ? types[t].lo : v > types[t].hi ? types[t].hi : v;
	switch (t) {
	case RICCI_I8:
		((int8_t *)p)[i] = (int8_t)v;
		break;
	case RICCI_U8:
	case RICCI_BOOL:
		((uint8_t *)p)[i] = (uint8_t)v;
		break;
	case RICCI_I32:
		((int32_t *)p)[i] = (int32_t)v;
		break;
	default:
		((int64_t *)p)[i] = v;
	}
}
