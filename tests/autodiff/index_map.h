/* index_map.h - index maps judged by counting: values of index nodes at points, and whether the
 * inverse of a map meets each point of its domain exactly once. */
#ifndef INDEX_MAP_H
#define INDEX_MAP_H

#include "autodiff/internal.h"

#include <stdlib.h>
#include <string.h>

static int64_t index_value(const Node *n, const int64_t *axis)
{
	int64_t a, b;
	switch (n->op) {
	case OP_CONST:
		return n->u.i;
	case OP_AXIS:
		return axis[n->u.i];
	default:
		break;
	}
	a = index_value(n->src[0], axis);
	if (n->op == OP_AND && !a)
		return 0;
	if (n->op == OP_OR && a)
		return 1;
	if (n->op == OP_NOT)
		return !a;
	if (n->op == OP_ABS)
		return a < 0 ? -a : a;
	if (n->op == OP_SELECT)
		return index_value(n->src[a ? 1 : 2], axis);
	b = index_value(n->src[1], axis);
	switch (n->op) {
	case OP_ADD:
		return a + b;
	case OP_MUL:
		return a * b;
	case OP_FLOORDIV:
		return a / b - (a % b < 0);
	case OP_FLOORMOD:
		return a % b + (a % b < 0 ? b : 0);
	case OP_LT:
		return a < b;
	case OP_LE:
		return a <= b;
	case OP_EQ:
		return a == b;
	case OP_NE:
		return a != b;
	case OP_AND:
	case OP_OR:
		return b != 0;
	case OP_MIN:
		return a < b ? a : b;
	case OP_MAX:
		return a > b ? a : b;
	default:
		abort(); /* not an operator of indices */
	}
}

static bool next_point(int n, const int64_t *extent, int64_t *at)
{
	for (int k = n - 1; k >= 0; k--) {
		if (++at[k] < extent[k])
			return true;
		at[k] = 0;
	}
	return false;
}

typedef struct Map {
	int naxis, rank;
	Node *axes[6], *index[4], *z[4];
	int64_t extent[6], shape[4];
	int64_t low[4]; /* least value of the index, made 0 by a shift */
} Map;

/* What is wrong with an inverse of the map, or NULL. */
static const char *inverse_wrong(Map *m, const Inverse *inv)
{
	int64_t total = 1, v[6] = {0}, axis[COMP_MAX_AXES] = {0}, extent[COMP_MAX_AXES];
	const char *wrong = NULL;
	for (int k = 0; k < m->naxis; k++)
		total *= m->extent[k];
	int *met = calloc((size_t)total, sizeof *met);
	for (int d = 0; d < m->rank; d++)
		extent[d] = m->shape[d];
	for (int k = 0; k < inv->nfree; k++)
		extent[m->rank + k] = axis_extent(inv->free[k]);
	do {
		bool holds = true;
		int64_t flat = 0;
		for (int k = 0; k < inv->ncond && holds; k++)
			holds = index_value(inv->cond[k], axis);
		for (int k = 0; k < m->naxis && holds && !wrong; k++) {
			v[k] = index_value(inv->value[k], axis);
			if (v[k] < 0 || v[k] >= m->extent[k])
				wrong = "a solution outside the domain";
			flat = flat * m->extent[k] + v[k];
		}
		for (int d = 0; d < m->rank && holds && !wrong; d++)
			if (index_value(m->index[d], v) != axis[d])
				wrong = "a solution that is none";
		if (holds && !wrong)
			met[flat]++;
	} while (!wrong && next_point(m->rank + inv->nfree, extent, axis));
	int64_t flat = 0;
	memset(v, 0, sizeof v);
	do {
		bool inside = true;
		for (int d = 0; d < m->rank; d++) {
			int64_t at = index_value(m->index[d], v);
			inside &= at >= 0 && at < m->shape[d];
		}
		if (!wrong && met[flat] != inside)
			wrong = met[flat] ? "a solution twice" : "a solution is missing";
		flat++;
	} while (next_point(m->naxis, m->extent, v));
	free(met);
	return wrong;
}

#endif
