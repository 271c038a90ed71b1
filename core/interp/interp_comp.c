/* interp_comp.c - the interpreter runs one equation: its program over its whole domain, or over
 * some elements of a dense one. Input: a program whose slots have data. Output: cells, and the
 * magnitudes of what met in them. */
#include "core/interp/internal.h"

static Sum sum_first(const Node *comp)
{
	Sum s = {.most = 1};
	Type t = (Type)comp->type;
	if (type_is_float(t))
		s.v.f = reduce_identity(comp_reduce(comp), t);
	else
		s.v.i = reduce_identity_int(comp_reduce(comp), t);
	return s;
}

/* Where infinities of both signs meet, a kernel that takes a common factor out of the sum may have
 * either of them. */
static inline void sum_add(Sum *s, double v, double magnitude)
{
	double old = s->v.f;
	s->v.f += v;
	s->magnitude += isnan(s->v.f) && !isnan(old) && !isnan(v) ? INFINITY : magnitude;
}

static void sum_float(Sum *s, Reduce red, const Sum *x)
{
	double old = s->v.f, v = x->v.f, magnitude = x->magnitude;
	switch (red) {
	case RED_ADD:
		sum_add(s, v, magnitude);
		break;
	case RED_MUL:
		s->v.f *= v;
		/* The identity has no magnitude of its own; a factor of 0 leaves none. */
		s->magnitude = s->magnitude == 0 && old == 1
				       ? magnitude
				       : (old ? fabs(old) * magnitude : 0) +
						 (v ? s->magnitude * fabs(v) : 0);
		s->most *= x->most;
		break;
	case RED_MAX:
	case RED_MIN:
		s->v.f = scalar_binary(red == RED_MAX ? OP_MAX : OP_MIN, old, v);
		s->magnitude = fmax(s->magnitude, magnitude);
		break;
	default:
		s->v.f = v;
		s->magnitude = magnitude;
	}
}

static void sum_integer(Sum *s, Reduce red, const Sum *x)
{
	int64_t old = s->v.i, v = x->v.i;
	if (is_lost(x->magnitude))
		s->magnitude = INFINITY;
	switch (red) {
	case RED_ADD:
		s->v.i = (int64_t)((uint64_t)old + (uint64_t)v);
		break;
	case RED_MUL:
		s->v.i = (int64_t)((uint64_t)old * (uint64_t)v);
		break;
	case RED_MAX:
		s->v.i = v > old ? v : old;
		break;
	case RED_MIN:
		s->v.i = v < old ? v : old;
		break;
	default:
		s->v.i = v;
	}
}

/* Adds what another accumulator of the same element holds. */
static void sum_take(Sum *s, const Node *comp, const Sum *x)
{
	if (type_is_float((Type)comp->type))
		sum_float(s, comp_reduce(comp), x);
	else
		sum_integer(s, comp_reduce(comp), x);
}

/* The body's present values to each lane's accumulator. */
static void lanes_take(const Machine *m, Sum *sum)
{
	const Node *comp = m->p->comp;
	const Cell *v = m->r + m->p->body * LANES;
	const double *g = m->magnitude ? m->magnitude + m->p->body * LANES : NULL;
	if (type_is_float((Type)comp->type) && comp_reduce(comp) == RED_ADD) {
		for (int i = 0; i < LANES && !g; i++)
			sum[i].v.f += v[i].f;
		for (int i = 0; i < LANES && g; i++)
			sum_add(&sum[i], v[i].f, g[i]);
		return;
	}
	bool product = comp_reduce(comp) == RED_MUL;
	for (int i = 0; i < LANES; i++) {
		Sum x = {v[i], g ? g[i] : 0, g && product ? fmax(1, g[i]) : 1};
		sum_take(&sum[i], comp, &x);
	}
}

/* Products of factors may also be too small for numbers and lose what the others make large again.
 */
static double sum_magnitude(const Sum *s, const Node *comp)
{
	Type t = type_accumulator((Type)comp->type);
	double largest = type_largest(t), magnitude = s->magnitude;
	if (comp_reduce(comp) == RED_MUL && !(s->most <= largest))
		magnitude = INFINITY;
	else if (comp_reduce(comp) == RED_MUL)
		magnitude += s->most * magnitude_least(largest);
	return magnitude_within(largest, s->v.f, magnitude);
}

static void sum_store(const Sum *s, const Node *comp, Cell *out, double *magnitude)
{
	Type t = (Type)comp->type;
	if (type_is_float(t)) {
		out->f = s->v.f;
		if (magnitude)
			*magnitude = sum_magnitude(s, comp);
	} else {
		out->i = type_wrap(t, s->v.i);
		if (magnitude)
			*magnitude = is_lost(s->magnitude) ? INFINITY : fabs((double)out->i);
	}
}

/* ---- lanes ---- */

static void axis_set(Machine *m, int axis, int64_t v)
{
	Cell *r = m->r + axis * LANES;
	for (int i = 0; i < LANES; i++)
		r[i].i = v;
}

/* Puts the loop axes from j on at 0 and runs their levels. */
static int loop_first(Machine *m, int j, int64_t *at)
{
	int status = 0;
	for (; j < m->p->nloop && !status; j++) {
		at[j] = 0;
		axis_set(m, m->p->loop[j], 0);
		status = machine_run(m, 2 + j);
	}
	return status;
}

/* The next point of the loop axes, the last one fastest: 1, or 0 at the end, or an error. */
static int loop_next(Machine *m, int64_t *at)
{
	for (int j = m->p->nloop - 1; j >= 0; j--) {
		int axis = m->p->loop[j];
		if (++at[j] >= axis_extent(comp_axis(m->p->comp, axis)))
			continue;
		axis_set(m, axis, at[j]);
		int status = machine_run(m, 2 + j);
		if (!status)
			status = loop_first(m, j + 1, at);
		return status ? status : 1;
	}
	return 0;
}

/* Sums over the loop axes for all lanes, whose axes are set. */
static int lanes_run(Machine *m, Sum *sum)
{
	int64_t at[COMP_MAX_AXES];
	for (int i = 0; i < LANES; i++)
		sum[i] = sum_first(m->p->comp);
	int status = machine_run(m, 1);
	if (!status)
		status = loop_first(m, 0, at);
	while (!status) {
		lanes_take(m, sum);
		status = loop_next(m, at);
		if (status == 0)
			break;
		status = status < 0 ? status : 0;
	}
	return status;
}

/* Sets lane i's axes from `from` to `to` (exclusive, in the order of p->lane) to the digits of v.
 */
static void lane_set(Machine *m, int i, int from, int to, int64_t v)
{
	for (int k = to - 1; k >= from; k--) {
		int axis = m->p->lane[k];
		int64_t extent = axis_extent(comp_axis(m->p->comp, axis));
		m->r[axis * LANES + i].i = v % extent;
		v /= extent;
	}
}

/* The product of the extents of lane axes from..to-1. */
static int64_t lane_points(const Program *p, int from, int to)
{
	int64_t n = 1;
	for (int k = from; k < to; k++)
		n *= axis_extent(comp_axis(p->comp, p->lane[k]));
	return n;
}

/* A lane is an element, or, where these are few, a part of one: the lanes of an element are
 * neighbours. Lanes past the end repeat the last one. */
int machine_dense(Machine *m, int64_t count, const int64_t *at, Cell *out, double *magnitude)
{
	const Program *p = m->p;
	int64_t parts = lane_points(p, p->rank, p->nlane), end = count * parts;
	Sum sum[LANES], whole = sum_first(p->comp);
	int status = machine_run(m, 0);
	for (int64_t t = 0; t < end && !status; t += LANES) {
		for (int i = 0; i < LANES; i++) {
			int64_t lane = t + i < end ? t + i : end - 1, e = lane / parts;
			lane_set(m, i, 0, p->rank, at ? at[e] : e);
			lane_set(m, i, p->rank, p->nlane, lane % parts);
		}
		status = lanes_run(m, sum);
		for (int i = 0; i < LANES && t + i < end; i++) {
			int64_t e = (t + i) / parts;
			sum_take(&whole, p->comp, &sum[i]);
			if ((t + i + 1) % parts)
				continue;
			sum_store(&whole, p->comp, out + e, magnitude ? magnitude + e : NULL);
			whole = sum_first(p->comp);
		}
	}
	return status;
}

/* The flat position that lane i's left indices name; an error when they leave the result. */
static int scatter_position(const Machine *m, int i, int64_t *at)
{
	const Program *p = m->p;
	*at = 0;
	for (int d = 0; d < p->rank; d++) {
		int64_t index = m->r[p->lhs[d] * LANES + i].i, extent = tensor_extent(p->comp, d);
		if (index < 0 || index >= extent)
			return error_set(m->err, RICCI_EVALUE,
					 "index %lld leaves dimension %d of the result, whose "
					 "extent is %lld; 0 to %lld would be right",
					 (long long)index, d, (long long)extent,
					 (long long)extent - 1);
		*at = *at * extent + index;
	}
	return 0;
}

int machine_scatter(Machine *m, Cell *out, double *magnitude)
{
	const Program *p = m->p;
	int64_t size = tensor_size(p->comp), end = lane_points(p, 0, p->nlane), at;
	Sum *whole = m->whole, sum[LANES];
	for (int64_t i = 0; i < size; i++)
		whole[i] = sum_first(p->comp);
	int status = machine_run(m, 0);
	for (int64_t t = 0; t < end && !status; t += LANES) {
		for (int i = 0; i < LANES; i++)
			lane_set(m, i, 0, p->nlane, t + i < end ? t + i : end - 1);
		status = lanes_run(m, sum);
		for (int i = 0; i < LANES && t + i < end && !status; i++) {
			status = scatter_position(m, i, &at);
			if (!status)
				sum_take(&whole[at], p->comp, &sum[i]);
		}
	}
	for (int64_t i = 0; i < size && !status; i++)
		sum_store(&whole[i], p->comp, out + i, magnitude ? magnitude + i : NULL);
	return status;
}
