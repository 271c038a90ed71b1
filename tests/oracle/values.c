/* values.c - an expression's value at one point of the domain, with its magnitude. Lazy as the
 * notation is: what isn't chosen is not looked at. Whatever rounding, or data that aren't known,
 * decides is lost: its magnitude is infinite, its value of no meaning.
 *
 * Magnitudes: a sum has that of its terms together; a function is tried at both ends of what its
 * arguments' errors allow. Jumps and comparisons want exact arguments, or clear ones. */
#include "tests/oracle/internal.h"

#include <float.h>

bool is_lost(OracleValue v)
{
	return !(v.magnitude < INFINITY);
}

static OracleValue lost(void)
{
	return (OracleValue){.magnitude = INFINITY};
}

static OracleValue whole(int64_t i)
{
	return (OracleValue){.i = i, .exact = true};
}

/* A float of a type by its magnitude; infinities and NaN that are no sums have none. */
static OracleValue real(Kind type, double f, double magnitude, bool exact)
{
	if (isnan(magnitude) || magnitude > largest_of(type))
		return lost();
	magnitude = fmax(fabs(f), magnitude);
	return (OracleValue){.f = f, .magnitude = isfinite(f) ? magnitude : 0, .exact = exact};
}

/* The relative error of one operation, generously. */
static double unit(Kind type)
{
	return type == F64 ? 1e-12 : type == F32 ? 1e-6 : type == F16 ? 4e-3 : 3e-2;
}

/* Is f zero, or so small that a kernel may have zero for it? */
static bool may_be_zero(Kind type, double f)
{
	return fabs(f) < (type == F64 ? DBL_MIN : FLT_MIN);
}

static double error_of(Kind type, OracleValue v)
{
	double error = v.exact ? 0 : unit(type) * v.magnitude;
	return may_be_zero(type, v.f) ? fmax(error, fabs(v.f)) : error;
}

/* Is f, which an operation gave with this rounding error, that operation's exact value also where
 * floats of the type are all there is? */
static bool stays_exact(Kind type, double f, double rounding)
{
	return rounding == 0 &&
	       (type == F64 ? fabs(f) > 0x1p-900 || f == 0 : round_float(type, f) == f);
}

static OracleValue add(Kind type, OracleValue a, OracleValue b)
{
	double f = a.f + b.f, a1 = f - b.f, rounding = (a.f - a1) + (b.f - (f - a1));
	bool exact = a.exact && b.exact && (!isfinite(f) || stays_exact(type, f, rounding));
	OracleValue v = real(type, f, a.magnitude + b.magnitude, exact);
	/* An infinity keeps that of the other terms: added first, they may overflow to the other
	 * infinity. */
	v.magnitude = fmax(v.magnitude, a.magnitude + b.magnitude);
	return v;
}

/* Zero times an infinity is NaN, but a product whose factor is zero may be left out. */
static OracleValue multiply(Kind type, OracleValue a, OracleValue b)
{
	double f = a.f * b.f;
	bool finite = isfinite(a.f) && isfinite(b.f);
	if (!isfinite(f) && (finite || may_be_zero(type, a.f) || may_be_zero(type, b.f)))
		return lost();
	if (!isfinite(f))
		return real(type, f, 0, a.exact && b.exact);
	bool exact = a.exact && b.exact && stays_exact(type, f, fma(a.f, b.f, -f));
	return real(type, f, fabs(a.f) * b.magnitude + fabs(b.f) * a.magnitude, exact);
}

static double quotient(int i, double a, double b)
{
	return i < 0 ? a / b : function_float(i, a, b);
}

/* The quotient (i < 0) or function i, tried where the arguments may be. */
static OracleValue apply(Kind type, int i, OracleValue a, OracleValue b)
{
	double f = quotient(i, a.f, b.f), da = error_of(type, a), db = error_of(type, b), most = 0;
	if (i >= 0 && function_turns(i) && (da > 0.5 || (type != F64 && fabs(a.f) > 0x1p28)))
		return lost(); /* of any angle; docs/speed.md */
	for (int k = 0; k < 4 && (da > 0 || db > 0); k++) {
		double g = quotient(i, a.f + (k & 1 ? da : -da), b.f + (k & 2 ? db : -db));
		if (isfinite(f) ? !isfinite(g) : !(f == g || (isnan(f) && isnan(g))))
			return lost();
		most = isfinite(f) ? fmax(most, fabs(g - f)) : 0;
	}
	if (i >= 0 && function_jumps(i) && most > 0)
		return lost();
	if (isinf(f) && isfinite(a.f) && isfinite(b.f) && !(i < 0 && b.f == 0) && f > 0)
		return lost(); /* overflow */
	bool exact = i < 0 ? a.exact && b.exact && stays_exact(type, f, fma(f, b.f, -a.f))
			   : function_jumps(i);
	return real(type, f, most / unit(type), exact);
}

/* abs, min, max, and what a choice gives keep exact values exact. */
static OracleValue keep(Kind type, int i, OracleValue a, OracleValue b)
{
	return real(type, function_float(i, a.f, b.f), fmax(a.magnitude, b.magnitude),
		    a.exact && b.exact);
}

static OracleValue call(const Expr *e, OracleValue a, OracleValue b)
{
	int i = (int)e->i;
	if (is_lost(a) || is_lost(b))
		return lost();
	if (!is_float(e->type))
		return whole(wrap(e->type, function_whole(i, a.i, b.i)));
	bool keeps = !function_of_floats(i) && !function_jumps(i);
	return keeps ? keep(e->type, i, a, b) : apply(e->type, i, a, b);
}

static OracleValue convert(Kind from, Kind to, OracleValue v)
{
	if (is_lost(v) || from == to)
		return v;
	if (!is_float(from))
		return is_float(to)
			       ? real(to, to == F32 ? (float)v.i : round_float(to, (double)v.i), 0,
				      true)
		       : to == BOOL ? whole(v.i != 0)
				    : whole(clip_whole(to, v.i));
	if (is_float(to)) {
		double f = round_float(to, v.f);
		return isinf(f) && isfinite(v.f) ? lost() : real(to, f, v.magnitude, v.exact);
	}
	double error = error_of(from, v);
	int64_t low = clip_float(to, v.f - error), high = clip_float(to, v.f + error);
	if (to == BOOL)
		return !v.exact && v.f != 0 && fabs(v.f) <= error ? lost() : whole(v.f != 0);
	return low != high ? lost() : whole(clip_float(to, v.f));
}

/* Values of f32 are compared as f32; others that are not equal, but nearer than their errors, are
 * lost. */
static OracleValue compare(Form form, Kind type, OracleValue a, OracleValue b)
{
	double order = 0;
	if (is_lost(a) || is_lost(b))
		return lost();
	if (is_float(type)) {
		double x = type == F32 ? (float)a.f : a.f, y = type == F32 ? (float)b.f : b.f;
		double error = error_of(type, a) + error_of(type, b);
		if (x != y && fabs(x - y) <= error)
			return lost();
		if (isnan(x) || isnan(y))
			return whole(form == X_NE);
		order = (x > y) - (x < y);
	} else {
		order = (a.i > b.i) - (a.i < b.i);
	}
	return whole(form == X_EQ   ? order == 0
		     : form == X_NE ? order != 0
		     : form == X_LT ? order < 0
		     : form == X_LE ? order <= 0
		     : form == X_GT ? order > 0
				    : order >= 0);
}

static OracleValue float_arithmetic(const Expr *e, OracleValue a, OracleValue b)
{
	switch (e->form) {
	case X_SUB:
		b.f = -b.f; /* fall through */
	case X_ADD:
		return add(e->type, a, b);
	case X_MUL:
		return multiply(e->type, a, b);
	default:
		return apply(e->type, -1, a, b);
	}
}

static OracleValue whole_arithmetic(Oracle *o, const Expr *e, __int128 a, __int128 b)
{
	if (e->form >= X_DIV && b <= 0)
		fail(o, e->at, "integers divide by positive constants only");
	__int128 rest = e->form >= X_DIV ? (a % b + b) % b : 0;
	__int128 v = e->form == X_ADD	? a + b
		     : e->form == X_SUB ? a - b
		     : e->form == X_MUL ? a * b
		     : e->form == X_DIV ? (a - rest) / b
					: rest;
	if (e->kind == NUMBER && v != wrap(I64, v))
		fail(o, e->at, "the number does not fit 64 bits");
	return whole(wrap(e->type, v));
}

static OracleValue arithmetic(Oracle *o, const Expr *e)
{
	OracleValue a = value_of(o, e->arg[0]), b = value_of(o, e->arg[1]);
	if (is_lost(a) || is_lost(b))
		return lost();
	return is_float(e->type) ? float_arithmetic(e, a, b) : whole_arithmetic(o, e, a.i, b.i);
}

/* The place that a read's indices name; -1: outside, -2: lost. */
static int64_t place_of(Oracle *o, const Expr *e, int *dimension, int64_t *index)
{
	int64_t at = 0, outside = 0;
	for (int d = 0; d < e->n; d++) {
		OracleValue v = value_of(o, e->arg[d]);
		if (is_lost(v))
			return -2;
		int64_t extent = e->tensor->shape[d];
		if ((v.i < 0 || v.i >= extent) && !outside)
			outside = -1, *dimension = d, *index = v.i;
		at = at * extent + (outside ? 0 : v.i);
	}
	return outside ? outside : at;
}

static OracleValue read(Oracle *o, const Expr *e)
{
	int d;
	int64_t index, at = o->inferring ? -2 : place_of(o, e, &d, &index);
	if (at == -1)
		fail(o, e->at, "index %lld leaves dimension %d of %s, of extent %lld",
		     (long long)index, d, e->name, (long long)e->tensor->shape[d]);
	return at < 0 ? lost() : e->tensor->at[at];
}

/* Inside, the element in this type; nothing is lost by an index of another dimension. */
static OracleValue padded(Oracle *o, const Expr *e)
{
	int d;
	int64_t index;
	const Expr *r = e->arg[0];
	while (r->form == X_CONVERT)
		r = r->arg[0];
	int64_t at = place_of(o, r, &d, &index);
	return at == -1 ? value_of(o, e->arg[1]) : at == -2 ? lost() : value_of(o, e->arg[0]);
}

/* While ranges are looked for, a lost part says nothing, but the other one may decide. */
static OracleValue logic(Oracle *o, const Expr *e)
{
	OracleValue a = value_of(o, e->arg[0]);
	bool decides = e->form == X_OR;
	if (!is_lost(a) && a.i == decides)
		return a;
	if (is_lost(a) && !o->inferring)
		return lost();
	OracleValue b = value_of(o, e->arg[1]);
	return is_lost(a) && (is_lost(b) || b.i != decides) ? lost() : b;
}

static OracleValue negative(const Expr *e, OracleValue v)
{
	if (is_lost(v))
		return v;
	if (!is_float(e->type))
		return whole(wrap(e->type, -(__int128)v.i));
	v.f = -v.f;
	return v;
}

static OracleValue random_draw(Oracle *o, const Expr *e)
{
	OracleValue key = value_of(o, e->arg[0]);
	OracleValue element = e->n > 1 ? value_of(o, e->arg[1]) : whole(o->element);
	if (is_lost(key) || is_lost(element) || o->inferring)
		return lost();
	float f = draw(e->name[0] == 'n', key.i, element.i, o->seed);
	return real(F32, f, 0, e->name[0] != 'n');
}

/* Computed once at a point. */
static OracleValue instance_value(Oracle *o, Instance *i)
{
	if (o->inferring || i->point != o->point)
		i->value = value_of(o, i->root);
	i->point = o->inferring ? 0 : o->point;
	return i->value;
}

OracleValue value_of(Oracle *o, const Expr *e)
{
	OracleValue v;
	step(o, 1);
	switch (e->form) {
	case X_WHOLE:
		return whole(e->i);
	case X_REAL:
		return real(e->type, round_float(e->type, e->f), 0, true);
	case X_SIZE:
		return whole(e->tensor->shape[e->i]);
	case X_TRAINING:
		return whole(o->training);
	case X_INDEX:
		return o->eq->index[e->i].known ? whole(o->eq->index[e->i].value) : lost();
	case X_VALUE:
		return instance_value(o, e->instance);
	case X_READ:
		return read(o, e);
	case X_PADDED:
		return padded(o, e);
	case X_CAST:
		return value_of(o, e->arg[0]);
	case X_CONVERT:
		return convert(e->arg[0]->type, e->type, value_of(o, e->arg[0]));
	case X_DRAW:
		return random_draw(o, e);
	case X_CALL:
		v = value_of(o, e->arg[0]);
		return call(e, v, e->n > 1 ? value_of(o, e->arg[1]) : v);
	case X_NEG:
		return negative(e, value_of(o, e->arg[0]));
	case X_NOT:
		v = value_of(o, e->arg[0]);
		return is_lost(v) ? v : whole(!v.i);
	case X_CHOICE:
		v = value_of(o, e->arg[0]);
		return is_lost(v) ? v : value_of(o, e->arg[v.i ? 1 : 2]);
	case X_OR:
	case X_AND:
		return logic(o, e);
	case X_ADD:
	case X_SUB:
	case X_MUL:
	case X_DIV:
	case X_MOD:
		return arithmetic(o, e);
	default:
		v = value_of(o, e->arg[0]);
		return compare(e->form, e->arg[0]->type, v, value_of(o, e->arg[1]));
	}
}

/* ---- reductions */

OracleValue reduce_start(Assign how, Kind type)
{
	int64_t least, most;
	if (is_float(type))
		return (OracleValue){.f = how == PRODUCT    ? 1
					  : how == GREATEST ? -INFINITY
					  : how == LEAST    ? INFINITY
							    : 0,
				     .exact = true};
	range_of(type, &least, &most);
	return whole(how == PRODUCT ? 1 : how == GREATEST ? least : how == LEAST ? most : 0);
}

/* *most: 0 where v is the start, which has no rounding of its own; then the greatest product that
 * some of the factors have. Kernels may add and multiply in any order. */
OracleValue reduce(Assign how, Kind type, OracleValue v, OracleValue x, double *most)
{
	bool first = *most == 0;
	*most = fmax(1, *most) * (is_float(type) ? fmax(1, fabs(x.f)) : 1);
	if (how == SET)
		return x;
	if (is_lost(v) || is_lost(x))
		return lost();
	if (!is_float(type)) {
		bool second = how == GREATEST ? x.i > v.i : x.i < v.i;
		return whole(how == SUM	      ? wrap(type, (__int128)v.i + x.i)
			     : how == PRODUCT ? wrap(type, (__int128)v.i * x.i)
			     : second	      ? x.i
					      : v.i);
	}
	if (how == GREATEST || how == LEAST)
		return keep(type, function_find(how == GREATEST ? "max" : "min"), v, x);
	if (first) {
		x.f = how == SUM ? 0 + x.f : x.f;
		return x;
	}
	if (how == PRODUCT && isfinite(x.f) && *most > largest_of(type))
		return lost();
	bool numbers = !isnan(v.f) && !isnan(x.f);
	v = how == SUM ? add(type, v, x) : multiply(type, v, x);
	v.exact = false;
	return isnan(v.f) && numbers ? lost() : v; /* common factors may be taken out of a sum */
}
