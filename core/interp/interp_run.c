/* interp_run.c - the machine that runs a program's levels.
 *
 * Floats are doubles, rounded only by casts to f32, bf16 and f16; integers are int64, wrapped where
 * a narrower type's arithmetic would. The magnitude of a value bounds, to first order, how far
 * rounding the terms below by a relative eps may move it, divided by eps: sums add magnitudes, a
 * function multiplies by its derivative, and no magnitude is below a finite value's own, nor, where
 * a value is too small for kernels' numbers, below what they lose. It is infinite (lost) where
 * kernels' numbers end, or may differ as zero times an infinity and sums of infinities of both signs
 * do. A comparison of floats that are not equal, but nearer than their errors, is in doubt, and so
 * are integers that depend on it: their magnitude is infinite too, else of no meaning. A choice by
 * them has the magnitude of either choice. */
#include "core/interp/internal.h"

static int64_t float_to_integer(Type t, double v)
{
	int64_t lo, hi;
	type_range(t, &lo, &hi);
	if (v != v)
		return 0;
	return v <= (double)lo ? lo : v >= (double)hi ? hi : (int64_t)v;
}

static int64_t integer_saturate(Type t, int64_t v)
{
	int64_t lo, hi;
	type_range(t, &lo, &hi);
	return v < lo ? lo : v > hi ? hi : v;
}

static double float_round(Type t, double v)
{
	double room;
	if (t == RICCI_F32)
		return (float)v;
	type_store(t, &room, 0, v);
	return type_load(t, &room, 0);
}

/* What a number other than 0 that is too small for kernels' numbers loses: they may flush it to 0. */
static double underflow(double largest, double v)
{
	double least = largest >= DBL_MAX ? DBL_MIN : FLT_MIN;
	return v != 0 && fabs(v) < least ? magnitude_least(largest) : 0;
}

/* Is v zero, or so small that a kernel may have zero for it? */
static bool may_be_zero(double largest, double v)
{
	return v == 0 || underflow(largest, v) > 0;
}

/* |f'(x)|, r = f(x). Steps (floor, sign ..) count as flat. */
static double slope(Op op, double x, double r)
{
	switch (op) {
	case OP_EXP:
		return r;
	case OP_EXPM1:
		return r + 1;
	case OP_LOG:
		return 1 / fabs(x);
	case OP_LOG1P:
		return 1 / fabs(1 + x);
	case OP_SQRT:
		return 0.5 / r;
	case OP_RSQRT:
		return 0.5 * r / x;
	case OP_SIN:
		return fabs(cos(x));
	case OP_COS:
		return fabs(sin(x));
	case OP_TAN:
		return 1 + r * r;
	case OP_TANH:
		return 1 - r * r;
	case OP_SIGMOID:
		return r * (1 - r);
	case OP_ERF:
		return 1.1283791670955126 * exp(-x * x);
	case OP_ABS:
	case OP_TF32:
		return 1;
	default:
		return 0;
	}
}

static double larger(double a, double b) /* NaN where either is */
{
	return a > b || a != a ? a : b;
}

static double unary_magnitude(Op op, double x, double mx, double r)
{
	if (op == OP_SQRT && r == 0)
		return sqrt(mx);
	return mx > 0 ? larger(fabs(r), slope(op, x, r) * mx) : fabs(r);
}

/* Of POW, MIN and MAX; the choice between near values is no error. */
static double binary_magnitude(Op op, double a, double ma, double b, double mb, double r)
{
	if (op != OP_POW)
		return larger(ma, mb);
	double base = a != 0 ? fabs(r * b / a) * ma : 0, power = a > 0 ? fabs(r * log(a)) * mb : 0;
	return larger(fabs(r), larger(base, power));
}

static int check_failed(const Machine *m, const Instr *in, int64_t index)
{
	const Node *t = m->p->slot[in->c].tensor;
	const char *what = t->op == OP_INPUT ? t->u.s : "a local tensor";
	return error_set(m->err, RICCI_EVALUE,
			 "index %lld leaves dimension %d of %s, whose extent is %lld; 0 to %lld "
			 "would be right",
			 (long long)index, (int)in->b, what, (long long)in->imm.i,
			 (long long)in->imm.i - 1);
}

static int check(const Machine *m, const Instr *in)
{
	const Cell *a = m->r + in->a * LANES, *mask = m->r + in->mask * LANES;
	for (int i = 0; i < LANES; i++)
		if ((uint64_t)a[i].i >= (uint64_t)in->imm.i && (in->mask < 0 || mask[i].i))
			return check_failed(m, in, a[i].i);
	return 0;
}

static float draw(const Machine *m, Code code, int64_t key, int64_t element)
{
	uint32_t w[4];
	philox((uint64_t)element, (uint64_t)key, m->random.seed, m->random.step, w);
	return code == CODE_UNIFORM ? philox_uniform(w[0]) : philox_normal(w[0], w[1]);
}

/* Flat positions of a load. */
static void positions(const Machine *m, const Instr *in, int64_t *at)
{
	const Cell *a = m->r + in->a * LANES, *b = m->r + in->b * LANES;
	for (int i = 0; i < LANES; i++)
		at[i] = (int64_t)((uint64_t)a[i].i + (uint64_t)in->imm.i * (uint64_t)b[i].i);
	if (in->mask >= 0)
		for (int i = 0; i < LANES; i++)
			at[i] = m->r[in->mask * LANES + i].i ? at[i] : 0;
}

/* A choice in doubt may be off by what the two values differ. */
static void pick_magnitudes(const Machine *m, const Instr *in)
{
	const Cell *a = m->r + in->a * LANES, *b = m->r + in->b * LANES, *c = m->r + in->c * LANES;
	const double *ga = m->magnitude + in->a * LANES, *gb = m->magnitude + in->b * LANES;
	const double *gc = m->magnitude + in->c * LANES;
	double *g = m->magnitude + in->dst * LANES;
	for (int i = 0; i < LANES; i++) {
		g[i] = a[i].i ? gb[i] : gc[i];
		if (is_lost(ga[i])) /* equal values may have different magnitudes */
			g[i] = larger(gb[i], gc[i]);
		if (is_lost(ga[i]) && b[i].i != c[i].i)
			g[i] = in->limit > 0 ? g[i] + fabs(b[i].f - c[i].f) / in->limit : INFINITY;
	}
}

/* Of products, which there are most of: lanes one by one only where one of them may be lost. Zero
 * times what is no number is: kernels may leave out terms with a factor of zero. So is what numbers
 * give that is none: other factors first, and it were one. */
static void product_magnitudes(const Machine *m, const Instr *in)
{
	const Cell *restrict a = m->r + in->a * LANES, *restrict b = m->r + in->b * LANES;
	const Cell *restrict d = m->r + in->dst * LANES;
	const double *restrict ga = m->magnitude + in->a * LANES;
	const double *restrict gb = m->magnitude + in->b * LANES;
	double *restrict g = m->magnitude + in->dst * LANES, even = 0, odd = 0;
	bool small = false;
	for (int i = 0; i < LANES; i += 2) {
		double x = fabs(a[i].f) * gb[i], y = ga[i] * fabs(b[i].f);
		g[i] = x > y ? x : y;
		even += x + y;
		x = fabs(a[i + 1].f) * gb[i + 1], y = ga[i + 1] * fabs(b[i + 1].f);
		g[i + 1] = x > y ? x : y;
		odd += x + y;
	}
	for (int i = 0; i < LANES; i++)
		small |= (fabs(d[i].f) < FLT_MIN) & (d[i].f != 0);
	for (int i = 0; i < LANES && (small || !(even + odd <= in->limit)); i++) {
		double x = larger(fabs(a[i].f) * gb[i], ga[i] * fabs(b[i].f)) +
			   underflow(in->limit, d[i].f);
		bool lost = is_lost(ga[i]) || is_lost(gb[i]);
		bool by_zero = may_be_zero(in->limit, a[i].f) || may_be_zero(in->limit, b[i].f);
		bool too_large = is_finite(a[i].f) && is_finite(b[i].f);
		g[i] = is_finite(d[i].f) && !lost     ? magnitude_within(in->limit, d[i].f, x)
		       : lost || by_zero || too_large ? INFINITY
						      : 0;
	}
}

/* The magnitudes of float instruction in's results, which are computed already. */
static void magnitudes(const Machine *m, const Instr *in)
{
	const Cell *restrict a = m->r + in->a * LANES, *restrict b = m->r + in->b * LANES;
	const Cell *restrict d = m->r + in->dst * LANES;
	const double *restrict ga = m->magnitude + in->a * LANES;
	const double *restrict gb = m->magnitude + in->b * LANES;
	double *restrict g = m->magnitude + in->dst * LANES;
	switch (in->code) {
	case CODE_PICK:
		pick_magnitudes(m, in);
		return;
	case CODE_MOVE:
	case CODE_FNEG:
	case CODE_FROUND:
		for (int i = 0; i < LANES; i++)
			g[i] = ga[i];
		return;
	case CODE_FADD:
	case CODE_FSUB:
		for (int i = 0; i < LANES; i++)
			g[i] = ga[i] + gb[i];
		return;
	case CODE_FMUL:
		product_magnitudes(m, in);
		return;
	case CODE_INTTOF:
		for (int i = 0; i < LANES; i++)
			g[i] = is_lost(ga[i]) ? INFINITY : fabs(d[i].f);
		return;
	case CODE_FDIV:
		for (int i = 0; i < LANES; i++)
			g[i] = larger(ga[i] / fabs(b[i].f), fabs(d[i].f / b[i].f) * gb[i]);
		break;
	case CODE_FBINARY:
		for (int i = 0; i < LANES; i++)
			g[i] = binary_magnitude((Op)in->imm.i, a[i].f, ga[i], b[i].f, gb[i],
						d[i].f);
		break;
	case CODE_FUNARY:
		for (int i = 0; i < LANES; i++)
			g[i] = in->imm.i == OP_SIGN && underflow(in->limit, a[i].f) > 0
				       ? INFINITY /* it may be 0 */
				       : unary_magnitude((Op)in->imm.i, a[i].f, ga[i], d[i].f);
		break;
	default: /* exact: constants, draws */
		for (int i = 0; i < LANES; i++)
			g[i] = fabs(d[i].f);
	}
	for (int i = 0; i < LANES; i++) {
		double v = d[i].f, within = g[i] + underflow(in->limit, v);
		g[i] = is_lost(ga[i]) || is_lost(gb[i]) ? INFINITY
		       : is_finite(v)			? magnitude_within(in->limit, v, within)
							: 0;
	}
}

/* Whether lane i of an integer instruction, whose sources are in doubt or not, is in doubt. */
static bool in_doubt(const Instr *in, Cell a, Cell b, double ga, double gb)
{
	bool la = is_lost(ga), lb = is_lost(gb);
	switch (in->code) {
	case CODE_FLT:
	case CODE_FLE:
	case CODE_FEQ:
	case CODE_FNE:
		return la || lb || (a.f != b.f && fabs(a.f - b.f) <= in->limit * (ga + gb));
	case CODE_BAND: /* what is surely false decides */
		return (la || lb) && (la || a.i) && (lb || b.i);
	case CODE_BOR:
		return (la || lb) && (la || !a.i) && (lb || !b.i);
	default:
		return la || lb;
	}
}

/* The magnitudes of an integer instruction's results: 0 until a comparison is in doubt. */
static void doubts(Machine *m, const Instr *in)
{
	const Cell *restrict a = m->r + in->a * LANES, *restrict b = m->r + in->b * LANES;
	const double *restrict ga = m->magnitude + in->a * LANES;
	const double *restrict gb = m->magnitude + in->b * LANES;
	double *restrict g = m->magnitude + in->dst * LANES;
	const double limit = in->limit;
	int near = m->doubt;
	for (int i = 0; i < LANES && limit < 1; i++) /* a comparison of floats, NaN among them */
		near |= !(fabs(a[i].f - b[i].f) > limit * (ga[i] + gb[i]));
	for (int i = 0; i < LANES && near; i++) {
		g[i] = in_doubt(in, a[i], b[i], ga[i], gb[i]) ? INFINITY : 0;
		m->doubt |= is_lost(g[i]);
	}
}

/* Of values that were computed, and may be lost. */
static void computed_magnitudes(Machine *m, const Instr *in, const int64_t *at)
{
	const Slot *s = &m->p->slot[in->c];
	const Cell *d = m->r + in->dst * LANES;
	double *g = m->magnitude + in->dst * LANES;
	Type t = (Type)s->tensor->type;
	for (int i = 0; i < LANES; i++)
		if (type_is_float(t)) {
			bool fits = fabs(d[i].f) <= type_largest(t) || !is_finite(d[i].f);
			g[i] = fits ? s->magnitude[at[i]] : INFINITY;
		} else {
			g[i] = is_lost(s->magnitude[at[i]]) ? INFINITY : 0;
			m->doubt |= is_lost(g[i]);
		}
}

static void load_magnitudes(Machine *m, const Instr *in, const int64_t *at)
{
	const Cell *restrict d = m->r + in->dst * LANES;
	const double *restrict ga = m->magnitude + in->a * LANES;
	const double *restrict gb = m->magnitude + in->b * LANES;
	double *restrict g = m->magnitude + in->dst * LANES;
	bool real = in->code != CODE_LOAD_I64 && in->code != CODE_LOAD_INT;
	const double largest = type_largest(type_accumulator((Type)m->p->slot[in->c].tensor->type));
	if (m->p->slot[in->c].magnitude)
		computed_magnitudes(m, in, at);
	else
		for (int i = 0; i < LANES; i++)
			g[i] = real && is_finite(d[i].f) ? fabs(d[i].f) + underflow(largest, d[i].f)
							 : 0;
	const uint8_t *lost = m->p->slot[in->c].lost;
	for (int i = 0; i < LANES && lost; i++)
		if (lost[at[i]]) {
			g[i] = INFINITY;
			m->doubt |= !real;
		}
	for (int i = 0; i < LANES && m->doubt; i++)
		g[i] = is_lost(ga[i]) || is_lost(gb[i]) ? INFINITY : g[i];
}

/* One instruction over all lanes (no register is both read and written): F and I are its operands
 * in lane i, U integers that wrap. */
#define F(x) x[i].f
#define I(x) x[i].i
#define U(x) ((uint64_t)x[i].i)
#define EACH(result)                                                                               \
	for (int i = 0; i < LANES; i++)                                                            \
		result;                                                                            \
	break
#define FLOAT(value)   EACH(d[i].f = (value))
#define INTEGER(value) EACH(d[i].i = (int64_t)(value))
#define LOAD(type, member)                                                                         \
	positions(m, in, at);                                                                      \
	EACH(d[i].member = ((const type *)m->p->slot[in->c].data)[at[i]])

static void run_load(Machine *m, const Instr *in)
{
	const Slot *s = &m->p->slot[in->c];
	Cell *d = m->r + in->dst * LANES;
	int64_t at[LANES];
	switch (in->code) {
	case CODE_LOAD_F32:
		LOAD(float, f);
	case CODE_LOAD_F64:
		LOAD(double, f);
	case CODE_LOAD_I64:
		LOAD(int64_t, i);
	case CODE_LOAD_FLOAT:
		positions(m, in, at);
		FLOAT(type_load(s->stored, s->data, (size_t)at[i]));
	default:
		positions(m, in, at);
		INTEGER(type_load_int(s->stored, s->data, (size_t)at[i]));
	}
	if (m->magnitude)
		load_magnitudes(m, in, at);
}

static void run_float(const Machine *m, const Instr *in)
{
	const Cell *restrict a = m->r + in->a * LANES, *restrict b = m->r + in->b * LANES;
	Cell *restrict d = m->r + in->dst * LANES;
	switch (in->code) {
	case CODE_CONST:
		EACH(d[i] = in->imm);
	case CODE_MOVE:
		EACH(d[i] = a[i]);
	case CODE_PICK:
		EACH(d[i] = I(a) ? b[i] : m->r[in->c * LANES + i]);
	case CODE_FADD:
		FLOAT(F(a) + F(b));
	case CODE_FSUB:
		FLOAT(F(a) - F(b));
	case CODE_FMUL:
		FLOAT(F(a) * F(b));
	case CODE_FDIV:
		FLOAT(F(a) / F(b));
	case CODE_FNEG:
		FLOAT(-F(a));
	case CODE_FBINARY:
		FLOAT(scalar_binary((Op)in->imm.i, F(a), F(b)));
	case CODE_FUNARY:
		FLOAT(scalar_unary((Op)in->imm.i, F(a)));
	case CODE_FROUND:
		FLOAT(float_round((Type)in->imm.i, F(a)));
	case CODE_INTTOF:
		FLOAT((double)I(a));
	default: /* UNIFORM, NORMAL */
		FLOAT(draw(m, in->code, I(a), I(b)));
	}
	if (m->magnitude)
		magnitudes(m, in);
}

static void run_integer(Machine *m, const Instr *in)
{
	const Cell *restrict a = m->r + in->a * LANES, *restrict b = m->r + in->b * LANES;
	Cell *restrict d = m->r + in->dst * LANES;
	switch (in->code) {
	case CODE_STEP:
		INTEGER(U(a) + (uint64_t)in->imm.i * U(b));
	case CODE_FLT:
		INTEGER(F(a) < F(b));
	case CODE_FLE:
		INTEGER(F(a) <= F(b));
	case CODE_FEQ:
		INTEGER(F(a) == F(b));
	case CODE_FNE:
		INTEGER(F(a) != F(b));
	case CODE_FTOINT:
		INTEGER(float_to_integer((Type)in->imm.i, F(a)));
	case CODE_FTOBOOL:
		INTEGER(F(a) != 0);
	case CODE_ITOBOOL:
		INTEGER(I(a) != 0);
	case CODE_ISATURATE:
		INTEGER(integer_saturate((Type)in->imm.i, I(a)));
	case CODE_IWRAP:
		INTEGER(type_wrap((Type)in->imm.i, I(a)));
	case CODE_IADD:
		INTEGER(U(a) + U(b));
	case CODE_ISUB:
		INTEGER(U(a) - U(b));
	case CODE_IMUL:
		INTEGER(U(a) * U(b));
	case CODE_INEG:
		INTEGER(-U(a));
	case CODE_IDIV:
		INTEGER(int_floor_div(I(a), I(b)));
	case CODE_IMOD:
		INTEGER(int_floor_mod(I(a), I(b)));
	case CODE_IMIN:
		INTEGER(I(a) < I(b) ? I(a) : I(b));
	case CODE_IMAX:
		INTEGER(I(a) > I(b) ? I(a) : I(b));
	case CODE_IABS:
		INTEGER(I(a) < 0 ? -U(a) : U(a));
	case CODE_ISIGN:
		INTEGER((I(a) > 0) - (I(a) < 0));
	case CODE_ILT:
		INTEGER(I(a) < I(b));
	case CODE_ILE:
		INTEGER(I(a) <= I(b));
	case CODE_IEQ:
		INTEGER(I(a) == I(b));
	case CODE_INE:
		INTEGER(I(a) != I(b));
	case CODE_BAND:
		INTEGER(I(a) & I(b));
	case CODE_BOR:
		INTEGER(I(a) | I(b));
	case CODE_BANDNOT:
		INTEGER(I(a) & !I(b));
	default: /* BNOT */
		INTEGER(!I(a));
	}
	if (m->magnitude && (m->doubt || in->limit < 1))
		doubts(m, in);
}

typedef enum { PART_END, PART_CHECK, PART_LOAD, PART_FLOAT, PART_INTEGER } Part;

static const uint8_t part_of[] = {
#define CODE(name, part) [CODE_##name] = PART_##part,
	CODES(CODE)
#undef CODE
};

int machine_run(Machine *m, int level)
{
	for (const Instr *in = m->p->level[level].at;; in++)
		switch ((Part)part_of[in->code]) {
		case PART_END:
			return 0;
		case PART_CHECK: {
			int status = check(m, in);
			if (status)
				return status;
			break;
		}
		case PART_LOAD:
			run_load(m, in);
			break;
		case PART_FLOAT:
			run_float(m, in);
			break;
		case PART_INTEGER:
			run_integer(m, in);
			break;
		}
}
