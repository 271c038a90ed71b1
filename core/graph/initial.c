/* initial.c - what parameters and states start from.
 * Input: an initialiser, and the tensor that it is for. Output: the initialiser as the graph keeps
 * it; runtime/program/draw.c makes numbers of it. Invariant: one that is kept fits its tensor, and values
 * are copies in the graph's memory. */
#include "core/graph/graph.h"

#include <math.h>
#include <string.h>

ricci_init ricci_constant(double value)
{
	return (ricci_init){.kind = INIT_CONSTANT, .a = value};
}

ricci_init ricci_normal(double deviation)
{
	return (ricci_init){.kind = INIT_NORMAL, .a = deviation};
}

ricci_init ricci_uniform(double low, double high)
{
	return (ricci_init){.kind = INIT_UNIFORM, .a = low, .b = high};
}

ricci_init ricci_truncated_normal(double deviation, double bound)
{
	return (ricci_init){.kind = INIT_TRUNCATED, .a = deviation, .b = bound};
}

ricci_init ricci_orthogonal(double gain)
{
	return (ricci_init){.kind = INIT_ORTHOGONAL, .a = gain};
}

ricci_init ricci_values(ricci_type type, int64_t count, const void *values)
{
	return (ricci_init){.kind = INIT_VALUES, .type = type, .count = count, .values = values};
}

ricci_init ricci_zero_row(ricci_init init, int64_t row)
{
	init.zero = row < 0 ? -1 : row + 1;
	return init;
}

/* The elements of a shape that check_shape has accepted. */
static int64_t elements(int rank, const int64_t *shape)
{
	int64_t n = 1;
	for (int d = 0; d < rank; d++)
		n *= shape[d];
	return n;
}

static int values_check(ricci_graph *g, const char *what, const char *name, Type type, int64_t n,
			const ricci_init *init)
{
	Error *e = &g->ir.err;
	if (!init->values)
		return error_set(e, RICCI_EINVAL, "%s %s: the initial values are NULL", what, name);
	if (init->type != (ricci_type)type)
		return error_set(e, RICCI_ETYPE, "%s %s: the initial values are %s, it is %s", what,
				 name, type_name((Type)init->type), type_name(type));
	if (init->count != n)
		return error_set(e, RICCI_ESHAPE,
				 "%s %s: %lld initial values are given, it has %lld elements", what,
				 name, (long long)init->count, (long long)n);
	return 0;
}

int init_check(ricci_graph *g, const char *what, const char *name, Type type, int rank,
	       const int64_t *shape, const ricci_init *init)
{
	Error *e = &g->ir.err;
	if (init->kind < 0 || init->kind >= INIT_COUNT || !isfinite(init->a) || !isfinite(init->b))
		return error_set(e, RICCI_EINVAL,
				 "%s %s: the initial value is none of ricci_constant, _normal, "
				 "_uniform, _truncated_normal, _orthogonal, _values",
				 what, name);
	if (init->kind == INIT_TRUNCATED && !(init->a > 0 && init->b >= 0.1 * init->a))
		return error_set(e, RICCI_EINVAL,
				 "%s %s: a truncated normal of deviation %g within %g; the "
				 "deviation must be positive, the bound at least a tenth of it",
				 what, name, init->a, init->b);
	if (init->kind == INIT_ORTHOGONAL && (rank < 2 || !type_is_float(type)))
		return error_set(e, RICCI_ESHAPE,
				 "%s %s: an orthogonal matrix is of floats and has 2 dimensions or "
				 "more, it is %s of %d",
				 what, name, type_name(type), rank);
	if (init->zero && (rank < 1 || init->zero < 0 || init->zero > shape[0]))
		return error_set(e, RICCI_ESHAPE, "%s %s: it has no row %lld to be zero", what,
				 name, (long long)init->zero - (init->zero > 0));
	if (init->kind == INIT_VALUES)
		return values_check(g, what, name, type, elements(rank, shape), init);
	return 0;
}

ricci_init init_kept(ricci_graph *g, const ricci_init *init)
{
	ricci_init kept = *init;
	if (init->kind == INIT_VALUES) {
		size_t bytes = (size_t)init->count * type_size((Type)init->type);
		void *values = arena_alloc(&g->ir.arena, bytes);
		memcpy(values, init->values, bytes);
		kept.values = values;
	}
	return kept;
}
