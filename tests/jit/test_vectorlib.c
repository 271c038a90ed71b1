/* test_vectorlib.c - operations over chunks against one element at a time: all rows, strides 0, 1
 * and others, lengths around the vector and the chunk, in place. */
#include "jit/builtin/vectorlib.h"
#include "jit/symbols.h"
#include "tests/check.h"

#include <stdlib.h>

enum { ROOM = 1200 };

typedef float Unary32(float);
typedef double Unary64(double);

static double value(int i)
{
	static const double edge[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 1e-40, 3, 2.5};
	return i % 7 == 3 ? edge[i / 7 % COUNT(edge)] : (i * 37 % 101 - 50) * 0.171;
}

static bool same(double a, double b, double tolerance)
{
	return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance + 1e-44;
}

static double load(const char *t, const void *p, int64_t i)
{
	if (!strcmp(t, "f32"))
		return ((const float *)p)[i];
	if (!strcmp(t, "f64"))
		return ((const double *)p)[i];
	if (!strcmp(t, "i64"))
		return (double)((const int64_t *)p)[i];
	return ((const unsigned char *)p)[i];
}

static void store(const char *t, void *p, int64_t i, double v)
{
	if (!strcmp(t, "f32"))
		((float *)p)[i] = (float)v;
	else if (!strcmp(t, "f64"))
		((double *)p)[i] = v;
	else if (!strcmp(t, "i64"))
		((int64_t *)p)[i] = isfinite(v) ? (int64_t)v : 7;
	else
		((unsigned char *)p)[i] = isfinite(v) && v > 0;
}

static double apply(const char *op, const char *t, double x, double y, double old)
{
	char name[64];
	bool single = !strcmp(t, "f32");
#define IS(s) (!strcmp(op, s))
	if (IS("add"))
		return x + y;
	if (IS("sub"))
		return x - y;
	if (IS("mul"))
		return x * y;
	if (IS("div"))
		return x / y;
	if (IS("max"))
		return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
	if (IS("min"))
		return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
	if (IS("lt"))
		return x < y;
	if (IS("le"))
		return x <= y;
	if (IS("eq"))
		return x == y;
	if (IS("ne"))
		return x != y;
	if (IS("and"))
		return x && y;
	if (IS("or"))
		return x || y;
	if (IS("not"))
		return !x;
	if (IS("neg"))
		return -x;
	if (IS("copy"))
		return x;
	if (IS("fma"))
		return old + x * y;
	snprintf(name, sizeof name, "ricci_%s_%s", op, t);
	const void *f = jit_symbol(name);
	CHECK_REPORT(f, "%s is missing", name);
	if (IS("pow"))
		return ((float (*)(float, float))f)((float)x, (float)y);
	return single ? ((Unary32 *)f)((float)x) : ((Unary64 *)f)(x);
}

static const void *vector(const char *op, const char *t)
{
	char name[64];
	snprintf(name, sizeof name, "ricci_v_%s_%s", op, t);
	const void *f = jit_symbol(name);
	CHECK_REPORT(f, "%s is missing", name);
	return f;
}

static const int lengths[] = {0, 1, 7, 33, 255, 256, 300};
static const int strides[][2] = {{1, 1}, {1, 0}, {0, 1}, {0, 0}, {3, 1}, {1, 2}, {3, 4}};

typedef void UnaryV(int64_t, void *, const void *, int64_t);
typedef void BinaryV(int64_t, void *, const void *, int64_t, const void *, int64_t);

static void check_row(const char *op, const char *t, const char *result, bool binary)
{
	static double a[ROOM], b[ROOM], out[ROOM + 8], old[ROOM];
	const void *f = vector(op, t);
	for (int i = 0; f && i < ROOM; i++) {
		store(t, a, i, value(i));
		store(t, b, i, value(i * 3 + 1));
	}
	for (int l = 0; f && l < COUNT(lengths); l++)
		for (int s = 0; s < COUNT(strides); s++) {
			int n = lengths[l], sa = strides[s][0], sb = strides[s][1], wrong = 0;
			for (int i = 0; i < n + 1; i++) {
				store(result, out, i, i % 5);
				old[i] = load(result, out, i);
			}
			if (binary)
				((BinaryV *)f)(n, out, a, sa, b, sb);
			else
				((UnaryV *)f)(n, out, a, sa);
			for (int i = 0; i < n; i++) {
				double x = load(t, a, i * sa), y = load(t, b, i * sb);
				double want = apply(op, t, x, y, old[i]);
				/* fma may or may not round its product; its terms may cancel */
				double size =
					strcmp(op, "fma") ? fabs(want) : fabs(old[i]) + fabs(x * y);
				if (!strcmp(t, "f32"))
					want = (float)want;
				wrong += !same(load(result, out, i), want,
					       (strcmp(t, "f32") ? 1e-15 : 1e-6) * size);
			}
			wrong += load(result, out, n) != old[n]; /* not one too many */
			CHECK_REPORT(!wrong, "%s_%s: %d of %d wrong at strides %d, %d", op, t,
				     wrong, n, sa, sb);
		}
}

/* dst is the first operand. */
static void check_in_place(void)
{
	float a[300], b[300], want[300];
	BinaryV *add = (BinaryV *)vector("add", "f32");
	UnaryV *exponential = (UnaryV *)vector("exp", "f32");
	int wrong = 0;
	for (int i = 0; i < 300; i++) {
		a[i] = (float)i * 0.01f;
		b[i] = (float)i;
		want[i] = ((Unary32 *)jit_symbol("ricci_exp_f32"))(a[i] + b[i] * 0.25f);
		b[i] *= 0.25f;
	}
	add(300, a, a, 1, b, 1);
	exponential(300, a, a, 1);
	for (int i = 0; i < 300; i++)
		wrong += !same(a[i], want[i], 1e-6 * want[i]);
	CHECK_INT(wrong, 0);
}

static void check_reductions(const char *t, double rel)
{
	static const char *const op[] = {"hsum", "hprod", "hmax", "hmin"};
	static double a[ROOM], b[ROOM];
	for (int k = 0; k < 5; k++)
		for (int l = 0; l < COUNT(lengths); l++)
			for (int s = 0; s < 4; s++) {
				int n = lengths[l], stride = s == 3 ? 0 : s + 1;
				double want = k == 1   ? 1
					      : k == 2 ? -INFINITY
					      : k == 3 ? INFINITY
						       : 0,
				       got, size = 0;
				for (int i = 0; i < ROOM; i++) {
					store(t, a, i, 1 + (i * 29 % 31 - 15) * 0.002);
					store(t, b, i, (i * 7 % 11 - 5) * 0.3);
				}
				if (s == 2 && n > 5)
					store(t, a, 5 * stride, NAN);
				for (int i = 0; i < n; i++) {
					double x = load(t, a, i * stride), y = load(t, b, i);
					want = k == 0	? want + x
					       : k == 1 ? want * x
					       : k == 2 ? (isnan(want) || isnan(x) ? NAN
										   : fmax(want, x))
					       : k == 3 ? (isnan(want) || isnan(x) ? NAN
										   : fmin(want, x))
							: want + x * y;
					size += fabs(x * y);
				}
				const void *f = vector(k == 4 ? "dot" : op[k], t);
				if (!strcmp(t, "f32"))
					got = k == 4 ? ((float (*)(int64_t, const void *, int64_t,
								   const void *, int64_t))f)(
							       n, a, stride, b, 1)
						     : ((float (*)(int64_t, const void *,
								   int64_t))f)(n, a, stride);
				else
					got = k == 4 ? ((double (*)(int64_t, const void *, int64_t,
								    const void *, int64_t))f)(
							       n, a, stride, b, 1)
						     : ((double (*)(int64_t, const void *,
								    int64_t))f)(n, a, stride);
				CHECK_NEAR(got, want, rel * (fabs(want) * 16 + size));
			}
}

static void check_select(void)
{
	typedef void Select(int64_t, float *, const unsigned char *, int64_t, const float *,
			    int64_t, const float *, int64_t);
	typedef void Store(int64_t, float *, int64_t, const float *);
	float a[ROOM], b[ROOM], out[ROOM] = {0};
	unsigned char c[ROOM];
	Select *f = (Select *)vector("select", "f32");
	Store *put = (Store *)vector("store", "f32");
	int wrong = 0;
	for (int i = 0; i < ROOM; i++) {
		a[i] = (float)i;
		b[i] = (float)-i;
		c[i] = i % 3 == 0;
	}
	for (int s = 0; s < COUNT(strides); s++) {
		f(300, out, c, 1, a, strides[s][0], b, strides[s][1]);
		for (int i = 0; i < 300; i++)
			wrong += out[i] != (c[i] ? a[i * strides[s][0]] : b[i * strides[s][1]]);
	}
	put(300, out, 4, a);
	for (int i = 0; i < 300; i++)
		wrong += out[i * 4] != a[i];
	CHECK_INT(wrong, 0);
}

static void check_casts(void)
{
	static const char *const from[] = {"f32", "f64", "i64", "i32", "i8", "u8"};
	float in[300], out[300];
	double wide[300];
	unsigned char small[300];
	for (int i = 0; i < 300; i++) {
		in[i] = (float)value(i);
		small[i] = (unsigned char)i;
	}
	((UnaryV *)vector("f64_of", "f32"))(300, wide, in, 1);
	((UnaryV *)vector("f32_of", from[1]))(300, out, wide, 1);
	int wrong = 0;
	for (int i = 0; i < 300; i++)
		wrong += !same(out[i], in[i], 0);
	((UnaryV *)vector("f32_of", from[5]))(300, out, small, 1);
	for (int i = 0; i < 300; i++)
		wrong += out[i] != small[i];
	CHECK_INT(wrong, 0);
	for (int h = 0; h < 2; h++) {
		const char *t = h ? "bf16" : "f16";
		char name[16];
		unsigned short half[300];
		snprintf(name, sizeof name, "%s_of", t);
		((UnaryV *)vector(name, "f32"))(300, half, in, 1);
		((UnaryV *)vector("f32_of", t))(300, out, half, 1);
		for (int i = 0; i < 300; i++)
			wrong += !same(out[i], in[i], (h ? 0.01 : 0.001) * fabsf(in[i]) + 1e-7);
	}
	CHECK_INT(wrong, 0);
}

/* Boxes of rows: each function at widths around those that it knows, all strides, and rows in one place. */
static void check_boxes(const char *t)
{
	typedef void Box(int64_t, int64_t, void *, const void *, int64_t, int64_t);
	typedef void Store(int64_t, int64_t, void *, int64_t, int64_t, const void *);
	typedef void Products(int64_t, int64_t, void *, int64_t, const void *, int64_t, int64_t,
			      const void *, int64_t, int64_t);
	typedef void Pad(int64_t, int64_t, void *, const void *, int64_t, int64_t, const void *,
			 int64_t, int64_t, int64_t, int64_t);
	static const int64_t step[][2] = {{0, 1}, {1, 0}, {1, 1}, {3, 1}, {0, 2},
					  {0, 0}, {2, 0}, {1, 2}, {2, 1}, {2, 2}};
	static const int widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 32, 37};
	static double a[ROOM], b[ROOM], out[ROOM], want[ROOM];
	double rel = strcmp(t, "f32") ? 1e-14 : 1e-5;
	for (int i = 0; i < ROOM; i++) {
		store(t, a, i, (i * 29 % 31 - 15) * 0.3);
		store(t, b, i, (i * 7 % 11 - 5) * 0.3);
	}
	for (int k = 0; k < 4 * COUNT(widths) * COUNT(step); k++) {
		int64_t width = widths[k % COUNT(widths)], rows = 1 + k / COUNT(widths) % 4 * 2;
		const int64_t *by = step[k / (4 * COUNT(widths))];
		int64_t sa = by[0], sb = by[1], la = width * 2 + 1, lb = k % 3 * width;
		int64_t top = k % 3 ? 0 : rows / 2, bottom = rows - k % 2;
		int64_t left = k % 4 * width / 4, right = width - k % 4 / 2;
		right = right < left ? left : right;
		bottom = bottom < top ? top : bottom;
		for (int kind = 0; kind < 6; kind++) {
			/* fma to rows apart, fma to one, dot of each row, dot of all, box and back, the same
			 * with padding around a part */
			int64_t ld = kind == 0 ? width + 2 : kind == 2 ? 2 : 0, sd = 1 + k % 2;
			for (int i = 0; i < ROOM; i++) {
				want[i] = i % 5;
				store(t, out, i, want[i]);
			}
			for (int64_t r = 0; r < rows; r++)
				for (int64_t i = 0; i < width; i++) {
					double x = load(t, a, r * la + i * sa),
					       y = load(t, b, r * lb + i * sb);
					bool in = r >= top && r < bottom && i >= left && i < right;
					if (kind < 4)
						want[r * ld + (kind < 2) * i] += x * y;
					else
						want[r * (2 * width) + sd * i] =
							kind == 4 || in ? x : load(t, b, 0);
				}
			if (kind < 4)
				((Products *)vector(kind < 2 ? "fma_box" : "dot_box", t))(
					rows, width, out, ld, a, la, sa, b, lb, sb);
			else {
				static double flat[ROOM];
				if (kind == 4)
					((Box *)vector("box", t))(rows, width, flat, a, la, sa);
				else
					((Pad *)vector("pad", t))(rows, width, flat, a, la, sa, b,
								  top, bottom, left, right);
				((Store *)vector("store_box", t))(rows, width, out, 2 * width, sd,
								  flat);
			}
			int wrong = 0;
			for (int i = 0; i < ROOM; i++)
				wrong += !same(load(t, out, i), want[i], rel * 1000);
			CHECK_REPORT(!wrong,
				     "box %d of %s: %d wrong, %d rows of %d at strides %d, %d",
				     kind, t, wrong, (int)rows, (int)width, (int)sa, (int)sb);
		}
	}
}

/* Rows combined to one element each, among them one without a number. */
static void check_row_totals(const char *t)
{
	typedef void Totals(int64_t, int64_t, void *, int64_t, const void *, int64_t, int64_t);
	static const char *const total[] = {"hsum_box", "hprod_box", "hmax_box", "hmin_box"};
	static const int64_t widths[] = {1, 3, 4, 10, 15, 16, 17, 40};
	static double a[ROOM], out[ROOM];
	for (int i = 0; i < ROOM; i++)
		store(t, a, i, i == 90 ? NAN : 0.5 + i * 29 % 31 * 0.03125);
	for (int k = 0; k < COUNT(total) * COUNT(widths) * 3; k++) {
		int of = k % COUNT(total), wrong = 0;
		int64_t width = widths[k / COUNT(total) % COUNT(widths)];
		int64_t sa = k / (COUNT(total) * COUNT(widths)), la = 2 * width + 3, rows = 11,
			ld = 3;
		double want[40];
		for (int i = 0; i < 40; i++) {
			want[i] = 1 + i % 3 * 0.125;
			store(t, out, i, want[i]);
		}
		for (int64_t r = 0; r < rows; r++)
			for (int64_t i = 0; i < width; i++) {
				double x = load(t, a, r * la + i * sa), *w = &want[r * ld];
				*w = of == 0   ? *w + x
				     : of == 1 ? *w * x
					       : apply(of == 2 ? "max" : "min", t, *w, x, 0);
			}
		((Totals *)vector(total[of], t))(rows, width, out, ld, a, la, sa);
		for (int i = 0; i < 40; i++)
			wrong += !same(load(t, out, i), want[i],
				       (strcmp(t, "f32") ? 1e-13 : 1e-5) * fabs(want[i]));
		CHECK_REPORT(!wrong, "%s of %s: %d wrong, rows of %d at stride %d", total[of], t,
			     wrong, (int)width, (int)sa);
	}
}

int main(void)
{
	static const char *const binary[] = {"add", "sub", "mul", "div", "max", "min", "fma"};
	static const char *const compare[] = {"lt", "le", "eq", "ne"};
	static const char *const unary[] = {"neg",   "abs",   "sign",  "sqrt",	"rsqrt",
					    "exp",   "expm1", "log",   "log1p", "sin",
					    "cos",   "tan",   "tanh",  "erf",	"sigmoid",
					    "floor", "ceil",  "round", "tf32",	"copy"};
	if (!jit_symbol("ricci_v_add_f32")) {
		CHECK_SKIP("no operations over chunks for this processor");
		return check_done();
	}
	for (int i = 0; i < COUNT(binary); i++) {
		check_row(binary[i], "f32", "f32", true);
		check_row(binary[i], "f64", "f64", true);
	}
	check_row("pow", "f32", "f32", true);
	for (int i = 0; i < COUNT(compare); i++) {
		check_row(compare[i], "f32", "u8", true);
		check_row(compare[i], "f64", "u8", true);
		check_row(compare[i], "i64", "u8", true);
	}
	check_row("and", "u8", "u8", true);
	check_row("or", "u8", "u8", true);
	check_row("not", "u8", "u8", false);
	for (int i = 0; i < COUNT(unary); i++)
		check_row(unary[i], "f32", "f32", false);
	check_row("neg", "f64", "f64", false);
	check_row("abs", "f64", "f64", false);
	check_row("sqrt", "f64", "f64", false);
	check_in_place();
	check_reductions("f32", 1e-6);
	check_reductions("f64", 1e-14);
	check_select();
	check_boxes("f32");
	check_boxes("f64");
	check_row_totals("f32");
	check_row_totals("f64");
	check_casts();
	return check_done();
}
