/* convert.c - elements of one type as another, as batches are made.
 * Integers keep their values (what does not fit is reported, not clipped), floats are rounded to the
 * nearest, and bytes become 0..1 where asked for. Invariant: same type in and out copies bytes. */
#include "nn/data/data.h"

#include <string.h>

bool convert_possible(Type from, Type to, bool unit)
{
	if (unit)
		return from == RICCI_U8 && type_is_float(to);
	if (from == to)
		return true;
	return type_is_float(to) || (type_is_int(to) && !type_is_float(from));
}

static int64_t convert_integers(Type from, const void *x, Type to, void *y, int64_t n)
{
	int64_t low, high;
	type_range(to, &low, &high);
	for (int64_t i = 0; i < n; i++) {
		int64_t v = type_load_int(from, x, (size_t)i);
		if (v < low || v > high)
			return i;
		type_store_int(to, y, (size_t)i, v);
	}
	return -1;
}

int64_t convert(Type from, const void *x, Type to, void *y, int64_t n, bool unit)
{
	const uint8_t *bytes = x;
	if (from == to) {
		memcpy(y, x, (size_t)n * type_size(to));
	} else if (from == RICCI_U8 && to == RICCI_F32) {
		float *out = y, factor = unit ? 1.0f / 255 : 1;
		for (int64_t i = 0; i < n; i++)
			out[i] = (float)bytes[i] * factor;
	} else if (from == RICCI_U8 && to == RICCI_I32) {
		for (int64_t i = 0; i < n; i++)
			((int32_t *)y)[i] = bytes[i];
	} else if (!type_is_float(to)) {
		return convert_integers(from, x, to, y, n);
	} else {
		double factor = unit ? 1.0 / 255 : 1;
		for (int64_t i = 0; i < n; i++) {
			double v = type_is_float(from) ? type_load(from, x, (size_t)i)
						       : (double)type_load_int(from, x, (size_t)i);
			type_store(to, y, (size_t)i, v * factor);
		}
	}
	return -1;
}
