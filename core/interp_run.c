/* interp_run.c - the machine that runs a program's levels.
 *
 * Floats are doubles, rounded only by casts to f32, bf16 and f16; integers are int64, wrapped where
 * a narrower type's arithmetic would. The magnitude of a value bounds, to first order, how far
 * rounding the terms below by a relative eps may move it, divided by eps: sums add magnitudes, a
 * function multiplies by its derivative, and no magnitude is below the value's own. */
#include "core/interp.h"

#include <math.h>

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

static int64_t floor_divide(int64_t a, int64_t c)
{
	return a / c - (a % c < 0);
}

/* By squaring; a negative exponent gives the truncated value of 1/a^|b|. */
static int64_t integer_power(int64_t a, int64_t b)
{
	uint64_t base = (uint64_t)a, out = 1;
	if (b < 0)
		return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
	for (; b; b >>= 1, base *= base)
		if (b & 1)
			out *= base;
	return (int64_t)out;
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
		return 1;
	default:
		return 0;
	}
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double unary_magnitude(Op op, double x, double mx, double r)
{
	if (op == OP_SQRT && r == 0)
		return sqrt(mx);
	return mx > 0 ? larger(fabs(r), slope(op, x, r) * mx) : fabs(r);
}

static double binary_magnitude(Op op, double a, double ma, double b, double mb, double r)
{
	switch (op) {
	case OP_MUL:
		return larger(fabs(a) * mb, ma * fabs(b));
	case OP_DIV:
		return larger(ma / fabs(b), fabs(r / b) * mb);
	case OP_POW:
		return larger(fabs(r), larger(a != 0 ? fabs(r * b / a) * ma : 0,
					      a > 0 ? fabs(r * log(a)) * mb : 0));
	case OP_MIN:
	case OP_MAX:
		return larger(ma, mb);
	default:
		return ma + mb;
	}
}

static int check_failed(const Machine *m, const Instr *in)
{
	const Node *t = m->p->slot[in->c].tensor;
	const char *what = t->op == OP_INPUT ? t->u.s : "a local tensor";
	return error_set(m->err, RICCI_EVALUE,
			 "index %lld leaves dimension %d of %s, whose extent is %lld; 0 to %lld "
			 "would be right",
			 (long long)m->r[in->a].i, (int)in->b, what, (long long)in->imm.i,
			 (long long)in->imm.i - 1);
}

static float draw(const Machine *m, const Instr *in)
{
	uint32_t w[4];
	philox((uint64_t)m->r[in->b].i, (uint64_t)m->r[in->a].i, m->random.seed, m->random.step, w);
	return in->code == CODE_UNIFORM ? philox_uniform(w[0]) : philox_normal(w[0], w[1]);
}

/* What a load brings along: the exactly known value's own size, or what was computed with it. */
static double load_magnitude(const Slot *s, int64_t at, double v)
{
	return s->magnitude ? s->magnitude[at] : fabs(v);
}

#define F(x) r[in->x].f
#define I(x) r[in->x].i
#define U(x) ((uint64_t)r[in->x].i)
#define FLOAT(value, size)                                                                         \
	{                                                                                          \
		double v_ = (value);                                                               \
		if (magnitudes)                                                                    \
			g[in->dst] = (size);                                                       \
		r[in->dst].f = v_;                                                                 \
		break;                                                                             \
	}
#define INTEGER(value)                                                                             \
	{                                                                                          \
		r[in->dst].i = (int64_t)(value);                                                   \
		break;                                                                             \
	}
#define BINARY(op, value) FLOAT(value, binary_magnitude(op, F(a), g[in->a], F(b), g[in->b], v_))
#define LOAD(value)                                                                                \
	{                                                                                          \
		const Slot *s = &m->p->slot[in->c];                                                \
		int64_t at = (int64_t)(U(a) + (uint64_t)in->imm.i * U(b));                         \
		FLOAT(value, load_magnitude(s, at, v_))                                            \
	}

static inline __attribute__((always_inline)) int run(Machine *m, int level, bool magnitudes)
{
	const Instr *code = m->p->level[level].at;
	Cell *r = m->r;
	double *g = m->magnitude;
	for (const Instr *in = code;; in++)
		switch ((Code)in->code) {
		case CODE_END:
			return 0;
		case CODE_CONST:
			if (magnitudes)
				g[in->dst] = fabs(in->imm.f);
			r[in->dst] = in->imm;
			break;
		case CODE_MOVE:
			if (magnitudes)
				g[in->dst] = g[in->a];
			r[in->dst] = r[in->a];
			break;
		case CODE_JUMP:
			in = code + in->imm.i - 1;
			break;
		case CODE_UNLESS:
			if (!I(a))
				in = code + in->imm.i - 1;
			break;
		case CODE_WHEN:
			if (I(a))
				in = code + in->imm.i - 1;
			break;
		case CODE_PICK:
			if (magnitudes)
				g[in->dst] = I(a) ? g[in->b] : g[in->c];
			r[in->dst] = I(a) ? r[in->b] : r[in->c];
			break;
		case CODE_STEP:
			INTEGER(U(a) + (uint64_t)in->imm.i * U(b))
		case CODE_CHECK:
			if (U(a) >= (uint64_t)in->imm.i)
				return check_failed(m, in);
			break;
		case CODE_LOAD_F32:
			LOAD(((const float *)s->data)[at])
		case CODE_LOAD_F64:
			LOAD(((const double *)s->data)[at])
		case CODE_LOAD_FLOAT:
			LOAD(type_load(s->stored, s->data, (size_t)at))
		case CODE_LOAD_I64:
			INTEGER(((const int64_t *)m->p->slot[in->c]
					 .data)[U(a) + (uint64_t)in->imm.i * U(b)])
		case CODE_LOAD_INT:
			INTEGER(type_load_int(m->p->slot[in->c].stored, m->p->slot[in->c].data,
					      U(a) + (uint64_t)in->imm.i * U(b)))
		case CODE_FADD:
			BINARY(OP_ADD, F(a) + F(b))
		case CODE_FSUB:
			BINARY(OP_SUB, F(a) - F(b))
		case CODE_FMUL:
			BINARY(OP_MUL, F(a) * F(b))
		case CODE_FDIV:
			BINARY(OP_DIV, F(a) / F(b))
		case CODE_FNEG:
			FLOAT(-F(a), g[in->a])
		case CODE_FBINARY:
			BINARY((Op)in->imm.i, scalar_binary((Op)in->imm.i, F(a), F(b)))
		case CODE_FUNARY:
			FLOAT(scalar_unary((Op)in->imm.i, F(a)),
			      unary_magnitude((Op)in->imm.i, F(a), g[in->a], v_))
		case CODE_FLT:
			INTEGER(F(a) < F(b))
		case CODE_FLE:
			INTEGER(F(a) <= F(b))
		case CODE_FEQ:
			INTEGER(F(a) == F(b))
		case CODE_FNE:
			INTEGER(F(a) != F(b))
		case CODE_FROUND:
			FLOAT(float_round((Type)in->imm.i, F(a)), g[in->a])
		case CODE_FTOINT:
			INTEGER(float_to_integer((Type)in->imm.i, F(a)))
		case CODE_FTOBOOL:
			INTEGER(F(a) != 0)
		case CODE_INTTOF:
			FLOAT((double)I(a), fabs(v_))
		case CODE_ITOBOOL:
			INTEGER(I(a) != 0)
		case CODE_ISATURATE:
			INTEGER(integer_saturate((Type)in->imm.i, I(a)))
		case CODE_IWRAP:
			INTEGER(type_wrap((Type)in->imm.i, I(a)))
		case CODE_IADD:
			INTEGER(U(a) + U(b))
		case CODE_ISUB:
			INTEGER(U(a) - U(b))
		case CODE_IMUL:
			INTEGER(U(a) * U(b))
		case CODE_INEG:
			INTEGER(-U(a))
		case CODE_IDIV:
			INTEGER(floor_divide(I(a), I(b)))
		case CODE_IMOD:
			INTEGER(I(a) % I(b) + (I(a) % I(b) < 0 ? I(b) : 0))
		case CODE_IMIN:
			INTEGER(I(a) < I(b) ? I(a) : I(b))
		case CODE_IMAX:
			INTEGER(I(a) > I(b) ? I(a) : I(b))
		case CODE_IPOW:
			INTEGER(integer_power(I(a), I(b)))
		case CODE_IABS:
			INTEGER(I(a) < 0 ? -U(a) : U(a))
		case CODE_ISIGN:
			INTEGER((I(a) > 0) - (I(a) < 0))
		case CODE_ILT:
			INTEGER(I(a) < I(b))
		case CODE_ILE:
			INTEGER(I(a) <= I(b))
		case CODE_IEQ:
			INTEGER(I(a) == I(b))
		case CODE_INE:
			INTEGER(I(a) != I(b))
		case CODE_BAND:
			INTEGER(I(a) & I(b))
		case CODE_BOR:
			INTEGER(I(a) | I(b))
		case CODE_BNOT:
			INTEGER(!I(a))
		case CODE_UNIFORM:
		case CODE_NORMAL:
			FLOAT(draw(m, in), fabs(v_))
		}
}

int machine_run(Machine *m, int level)
{
	return m->magnitude ? run(m, level, true) : run(m, level, false);
}
