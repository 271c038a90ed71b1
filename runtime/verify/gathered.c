/* gathered.c - a scatter that adds, as a sum of which single elements can be evaluated.
 *
 * Input: Y[lhs] += e. Output: Y[o] += lhs == o ? e : 0, dense. Axes that a dimension's equation lhs == o determines once
 * those that are summed are known stand there as what they are: of Y[4*j+k] with k < 4, j is o/4 and k the rest of
 * that, and nothing is summed; of Y[2*i+r] with r < 3, i is (o-r)/2 where 2 divides that.
 */
#include "runtime/verify/verify.h"

enum { OPEN = -1, SUMMED = -2 };

/* What determines an axis: of dimension dim, this factor's digit. */
typedef struct Digit {
	int dim; /* or OPEN, SUMMED */
	int64_t factor;
} Digit;

typedef struct Digits {
	int dim[RICCI_MAX_RANK]; /* the dimensions in the order in which they determine axes */
	Digit of[COMP_MAX_AXES];
} Digits;

/* By what n grows with the axis; false: not by the same everywhere. */
static bool grows_by(Node *n, Node *axis, int64_t *by)
{
	int64_t a, b;

	*by = n == axis;
	if (n == axis || !node_has(n, axis))
		return true;
	if (n->op != OP_ADD && n->op != OP_SUB && n->op != OP_MUL)
		return false;
	if (!grows_by(n->src[0], axis, &a) || !grows_by(n->src[1], axis, &b))
		return false;
	if (n->op == OP_MUL && !node_is_const(n->src[0]) && !node_is_const(n->src[1]))
		return false;
	if (n->op == OP_MUL)
		*by = node_is_const(n->src[0]) ? n->src[0]->u.i * b : a * n->src[1]->u.i;
	else
		*by = n->op == OP_ADD ? a + b : a - b;
	return true;
}

static int64_t extent_of(const Node *c, int a)
{
	return axis_extent(comp_axis(c, a));
}

/* Does each of dimension d's factors exceed what its smaller ones add up to? */
static bool are_digits(const Node *c, const Digits *s, int d)
{
	for (int a = 0; a < comp_naxis(c); a++) {
		int64_t below = 0;

		for (int b = 0; b < comp_naxis(c); b++)
			if (b != a && s->of[b].dim == d && s->of[b].factor <= s->of[a].factor)
				below += s->of[b].factor * (extent_of(c, b) - 1);
		if (s->of[a].dim == d && below >= s->of[a].factor)
			return false;
	}
	return true;
}

/* The longest axis that is open and of which dimension d has an even multiple; < 0: none. */
static int longest_open(const Node *c, const Digits *s, int d, int64_t *factor)
{
	int longest = -1;
	int64_t k;

	for (int a = 0; a < comp_naxis(c); a++)
		if (s->of[a].dim == OPEN && extent_of(c, a) > 1 &&
		    (longest < 0 || extent_of(c, a) > extent_of(c, longest)) &&
		    grows_by(comp_lhs(c, d), comp_axis(c, a), &k) && k > 0) {
			longest = a;
			*factor = k;
		}
	return longest;
}

/* Which axes dimension d determines; the others in it are summed. */
static void digits_of_dimension(const Node *c, Digits *s, int d)
{
	int64_t factor = 0;

	for (int a; (a = longest_open(c, s, d, &factor)) >= 0;) {
		s->of[a] = (Digit){d, factor};
		if (!are_digits(c, s, d))
			s->of[a].dim = SUMMED;
	}
	for (int a = 0; a < comp_naxis(c); a++)
		if (s->of[a].dim == OPEN && node_has(comp_lhs(c, d), comp_axis(c, a)))
			s->of[a].dim = SUMMED;
}

/* First by dimensions that are an axis. */
static void digits_find(const Node *c, Digits *s)
{
	int n = 0;

	for (int a = 0; a < comp_naxis(c); a++)
		s->of[a] = (Digit){OPEN, 0};
	for (int plain = 1; plain >= 0; plain--)
		for (int d = 0; d < tensor_rank(c); d++)
			if ((comp_lhs(c, d)->op == OP_AXIS) == plain) {
				s->dim[n++] = d;
				digits_of_dimension(c, s, d);
			}
}

double scatter_terms(const Node *c)
{
	Digits s;
	double n = 1;

	digits_find(c, &s);
	for (int a = 0; a < comp_naxis(c); a++)
		n *= s.of[a].dim < 0 ? (double)extent_of(c, a) : 1;
	return n;
}

/* The axis of dimension d with the greatest factor below another; < 0: none. */
static int next_digit(const Node *c, const Digits *s, int d, int64_t below)
{
	int next = -1;

	for (int a = 0; a < comp_naxis(c); a++)
		if (s->of[a].dim == d && s->of[a].factor < below &&
		    (next < 0 || s->of[a].factor > s->of[next].factor))
			next = a;
	return next;
}

/* Takes from `rest` the digits of dimension d, the greatest first, which to[] then tells; 1 where they are in range and
 * nothing is left. */
static Node *digits_take(Ir *ir, Node *c, const Digits *s, int d, Node *rest, Node **to)
{
	Node *meets = node_const_int(ir, RICCI_BOOL, 1), *zero = node_int(ir, 0);
	int64_t below = INT64_MAX;

	for (int a; (a = next_digit(c, s, d, below)) >= 0; below = s->of[a].factor) {
		Node *factor = node_int(ir, s->of[a].factor);

		to[a] = node2(ir, OP_FLOORDIV, rest, factor);
		rest = node2(ir, OP_SUB, rest, node2(ir, OP_MUL, factor, to[a]));
		meets = node2(ir, OP_AND, meets, node2(ir, OP_LE, zero, to[a]));
		meets = node2(ir, OP_AND, meets,
			      node2(ir, OP_LT, to[a], node_int(ir, extent_of(c, a))));
	}
	return node2(ir, OP_AND, meets, node2(ir, OP_EQ, rest, zero));
}

Node *scatter_gathered(Ir *ir, Node *c)
{
	int rank = tensor_rank(c), n = comp_naxis(c), naxis = rank;
	Node *axes[RICCI_MAX_RANK + COMP_MAX_AXES], *to[COMP_MAX_AXES];
	Node *meets = node_const_int(ir, RICCI_BOOL, 1), *body;
	Digits s;

	digits_find(c, &s);
	for (int d = 0; d < rank; d++)
		axes[d] = node_axis(ir, d, tensor_extent(c, d));
	for (int a = 0; a < n; a++) {
		to[a] = node_int(ir, 0); /* until its digit is taken */
		if (s.of[a].dim < 0)
			to[a] = axes[naxis] = node_axis(ir, naxis, extent_of(c, a)), naxis++;
	}
	for (int i = 0; i < rank; i++) {
		int d = s.dim[i];
		Node *known = node_replace(ir, comp_lhs(c, d), n, c->src, to);

		meets = node2(ir, OP_AND, meets,
			      digits_take(ir, c, &s, d, node2(ir, OP_SUB, axes[d], known), to));
	}
	body = node_replace(ir, comp_body(c), n, c->src, to);
	body = node_select(ir, meets, body,
			   type_is_float((Type)c->type) ? node_const(ir, (Type)c->type, 0)
							: node_const_int(ir, (Type)c->type, 0));
	return comp_dense(ir, RED_ADD, rank, naxis, axes, body);
}
