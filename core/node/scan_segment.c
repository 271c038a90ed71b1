/* scan_segment.c - a loop of many steps as a loop of segments, each of which is a loop. Input: what
 * scan_close takes. Output: the same results. The outer loop is one that is computed again in the
 * backward pass, so gradients find the states between segments, and those within one segment at a
 * time: of n steps in segments of k that is n/k + k instead of n, for a second forward pass (Chen,
 * Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost").
 */
#include "core/node/node.h"

typedef struct Segments {
	Ir *ir;
	const Scan *spec;
	Node *const *operand;
	int64_t count, steps; /* segments, and the steps of one */
	Node *length;	      /* I64 scalar, or NULL: all steps of all segments */
	Node *number;	      /* variable of the outer body: which segment */
	Node **outer;	      /* its variables for slices and states */
	ScanCall inner;
} Segments;

static Node *scalar(Ir *ir, Node *body)
{
	return comp_dense(ir, RED_NONE, 0, 0, NULL, body);
}

static Node *variable(Ir *ir, char letter, int k, const Node *like, int64_t rows)
{
	int64_t shape[RICCI_MAX_RANK];
	int rank = tensor_rank(like);
	for (int d = 0; d < rank; d++)
		shape[d] = d == 0 && rows ? rows : tensor_extent(like, d);
	return node_input(ir, arena_printf(&ir->arena, "%%%c%d", letter, k), (Type)like->type, rank,
			  shape);
}

/* The steps of a segment: length - number * steps, within 0..steps. */
static Node *segment_length(const Segments *s)
{
	Ir *ir = s->ir;
	Node *start = node_scale(ir, node_read(ir, s->number, NULL), s->steps);
	Node *left = node_sub(ir, node_read(ir, s->length, NULL), start);
	left = node2(ir, OP_MIN, left, node_int(ir, s->steps));
	return scalar(ir, node2(ir, OP_MAX, left, node_int(ir, 0)));
}

/* How many segments there are; a length outside 0..bound is one as far outside 0..count, from which
 * scan_length_check finds it again. */
static Node *segment_count(const Segments *s)
{
	Ir *ir = s->ir;
	Node *n = node_read(ir, s->length, NULL), *zero = node_int(ir, 0);
	Node *up = node_floordiv(ir, node_add(ir, n, node_int(ir, s->steps - 1)), s->steps);
	Node *high = node2(ir, OP_LT, node_int(ir, s->spec->bound), n);
	Node *beyond = node_sub(ir, n, node_int(ir, s->spec->bound - s->count));
	Node *count = node_select(ir, high, beyond, up);
	return scalar(ir, node_select(ir, node2(ir, OP_LT, n, zero), n, count));
}

/* X[t, ..] as [segment, step, ..], with zeros behind its end. */
static Node *split_rows(const Segments *s, Node *x)
{
	Ir *ir = s->ir;
	Node *axes[RICCI_MAX_RANK + 1], *index[RICCI_MAX_RANK];
	int rank = tensor_rank(x);
	axes[0] = node_axis(ir, 0, s->count);
	axes[1] = node_axis(ir, 1, s->steps);
	index[0] = node_add(ir, node_scale(ir, axes[0], s->steps), axes[1]);
	for (int d = 1; d < rank; d++)
		index[d] = axes[d + 1] = node_axis(ir, d + 1, tensor_extent(x, d));
	Node *inside = node2(ir, OP_LT, index[0], node_int(ir, tensor_extent(x, 0)));
	Node *zero = node_const(ir, (Type)x->type, 0);
	return comp_dense(ir, RED_NONE, rank + 1, rank + 1, axes,
			  node_select(ir, inside, node_read(ir, x, index), zero));
}

/* And back. */
static Node *join_rows(const Segments *s, Node *x)
{
	Ir *ir = s->ir;
	Node *axes[RICCI_MAX_RANK], *index[RICCI_MAX_RANK];
	int rank = tensor_rank(x) - 1;
	axes[0] = node_axis(ir, 0, s->spec->bound);
	index[0] = node_floordiv(ir, axes[0], s->steps);
	index[1] = node_floormod(ir, axes[0], s->steps);
	for (int d = 1; d < rank; d++)
		index[d + 1] = axes[d] = node_axis(ir, d, tensor_extent(x, d + 1));
	return comp_dense(ir, RED_NONE, rank, rank, axes, node_read(ir, x, index));
}

static void inner_loop(Segments *s, int nstacked, Node *const *stacked)
{
	const Scan *spec = s->spec;
	int nvar = spec->nslice + spec->nstate;
	Scan inner = *spec;
	inner.bound = s->steps;
	inner.given = 0;
	inner.has_length = s->length != NULL;
	Node **given = arena_alloc(&s->ir->arena, sizeof *given * ((size_t)nvar + 2));
	if (s->length)
		given[0] = segment_length(s);
	for (int k = 0; k < nvar; k++) {
		bool slice = k < spec->nslice;
		s->outer[k] = variable(s->ir, slice ? 's' : 'h', k,
				       s->operand[spec->has_length + k], slice ? s->steps : 0);
		given[inner.has_length + k] = s->outer[k];
	}
	s->inner = scan_close(s->ir, &inner, given, nstacked, stacked, false);
}

static ScanCall outer_loop(Segments *s, int nstacked)
{
	Ir *ir = s->ir;
	const Scan *spec = s->spec;
	size_t room = (size_t)(spec->nslice + spec->nstate + nstacked + 3) * sizeof(Node *);
	Scan outer = {.bound = s->count,
		      .given = spec->bound,
		      .backwards = spec->backwards,
		      .has_length = s->length != NULL,
		      .recompute = true,
		      .nslice = spec->nslice + 1,
		      .nstate = spec->nstate,
		      .var = arena_alloc(&ir->arena, room),
		      .next = arena_alloc(&ir->arena, room)};
	Node **given = arena_alloc(&ir->arena, room), **out = arena_alloc(&ir->arena, room);
	Node *axis = node_axis(ir, 0, s->count);
	if (s->length)
		given[0] = segment_count(s);
	Node **operand = given + outer.has_length;
	outer.var[0] = s->number;
	operand[0] = comp_dense(ir, RED_NONE, 1, 1, &axis, axis);
	for (int k = 0; k < spec->nslice + spec->nstate; k++) {
		Node *x = s->operand[spec->has_length + k];
		outer.var[k + 1] = s->outer[k];
		operand[k + 1] = k < spec->nslice ? split_rows(s, x) : x;
	}
	for (int k = 0; k < spec->nstate; k++)
		outer.next[k] = scan_final(ir, &s->inner, k);
	for (int k = 0; k < nstacked; k++)
		out[k] = scan_stack(ir, &s->inner, s->inner.result[k]);
	return scan_close(ir, &outer, given, nstacked, out, false);
}

int scan_length_check(const Scan *l, int64_t n, const char *name, Error *err)
{
	int64_t bound = l->given ? l->given : l->bound;
	if (n >= 0 && n <= l->bound)
		return 0;
	return error_set(err, RICCI_EVALUE,
			 "a loop of at most %lld steps was given the length %lld%s%s%s; it must be "
			 "in 0..%lld",
			 (long long)bound, (long long)(n < 0 ? n : n + (bound - l->bound)),
			 name ? " by '" : "", name ? name : "", name ? "'" : "", (long long)bound);
}

void scan_segments(Ir *ir, const Scan *spec, int64_t steps, Node *const *operand, int nstacked,
		   Node *const *stacked, Node **final, Node **out)
{
	Segments s = {.ir = ir, .spec = spec, .operand = operand, .steps = steps};
	s.count = (spec->bound + steps - 1) / steps;
	s.number = node_input(ir, "%n", RICCI_I64, 0, NULL);
	s.outer = arena_alloc(&ir->arena,
			      sizeof *s.outer * (size_t)(spec->nslice + spec->nstate + 1));
	if (spec->has_length)
		s.length = scalar(ir, node_cast(ir, RICCI_I64, node_read(ir, operand[0], NULL)));
	else if (spec->bound % steps)
		s.length = scalar(ir, node_int(ir, spec->bound));
	inner_loop(&s, nstacked, stacked);
	ScanCall outer = outer_loop(&s, nstacked);
	for (int k = 0; k < spec->nstate; k++)
		final[k] = scan_final(ir, &outer, k);
	for (int k = 0; k < nstacked; k++)
		out[k] = join_rows(&s, scan_stack(ir, &outer, outer.result[k]));
}
