/* zero_blocks.c - elements of K at which a panel has nothing but the padding of a copy.
 *
 * Input: the conditions that became padding (padded.c). Output: statements that list,
 * for an unpacked panel of A, the elements of K at which all of them hold for any of its rows; and
 * what that saves. Rows of a panel mostly lie in one line, so a window that reaches over an edge
 * across lines is zero for all of them. Invariant: what is not listed adds nothing but zeros. */
#include "jit/contract/internal.h"

enum { MOST_TAPS = 1 << 10 }; /* of an axis */
/* Below this share of the products lists cost more than they leave out. */
static const double LEAST_SHARE = 0.01;
_Static_assert(ZERO_BLOCKS_CONDITIONS > CONTRACT_MAX_GUARDS, "each condition has room");

/* The axis of the group that e = c + k*axis moves with; NULL: another such expression. */
static Node *sole_axis(const Contract *c, const IndexGroup *s, Node *e, int64_t *k)
{
	Affine a = affine_of(c->ir, e);
	for (int j = 0; j < s->naxis && a.n == 1; j++)
		if (s->axis[j] == a.atom[0]) {
			*k = a.k[0];
			return a.atom[0];
		}
	return NULL;
}

/* Of a line of `size` rows those that panels hold which lie within it, on average. */
static double within(const Contract *c, int64_t size)
{
	int64_t mr = c->mr;
	return size % mr == 0 ? 1 : size < mr ? 0 : (double)(size - mr) / (double)size;
}

/* At how many x < extent is k*x + e negative? */
static int64_t negative(int64_t extent, int64_t k, int64_t e)
{
	if (k < 0) { /* counted from the other end */
		e += k * (extent - 1);
		k = -k;
	}
	int64_t n = e >= 0 ? 0 : (k - 1 - e) / k;
	return n < extent ? n : extent;
}

/* How much of the products a condition e >= 0, of one axis of M and one of K, leaves out; at the
 * ends of what the batch adds, on average. */
static double share_of(const Contract *c, Node *in_m, Node *in_k, Node *rest)
{
	int64_t km = 0, kk = 0, fails = 0, below = 1;
	Node *m = sole_axis(c, &c->m, in_m, &km), *k = sole_axis(c, &c->k, in_k, &kk);
	if (!m || !k || axis_extent(k) > MOST_TAPS)
		return 0;
	int64_t lines = axis_extent(m), taps = axis_extent(k);
	for (int j = c->m.naxis - 1; c->m.axis[j] != m; j--)
		below *= axis_extent(c->m.axis[j]);
	for (int64_t x = 0; x < taps; x++)
		fails += negative(lines, km, kk * x + rest->lo) +
			 negative(lines, km, kk * x + rest->hi);
	return (double)fails / (double)(2 * lines * taps) * within(c, below);
}

/* What share of the products all conditions leave out; which do (bits). */
static double shares(Contract *c, uint64_t *which)
{
	Parted r = {0};
	double sum = 0;
	*which = 0;
	if (c->k.compact || !contract_part(c, c->a.npadded, c->a.padded, &c->m, &r))
		return 0;
	for (int g = 0; g < r.n; g++) {
		double share = share_of(c, r.s[g], r.k[g], r.rest[g]);
		*which |= (uint64_t)(share > 0) << g;
		sum += share;
	}
	return sum < LEAST_SHARE ? 0 : sum;
}

double zero_blocks_share(Contract *c)
{
	uint64_t which;
	return shares(c, &which);
}

bool zero_blocks_make(Contract *c, int64_t deep, ZeroBlocks *t)
{
	if (shares(c, &t->which) == 0)
		return false;
	t->a = tree_buffer(c->t, SPACE_SCRATCH, "la", RICCI_I64, deep + 1);
	t->b = tree_buffer(c->t, SPACE_SCRATCH, "lb", RICCI_I64, deep + 1);
	t->state = tree_buffer(c->t, SPACE_SCRATCH, "zeros", RICCI_I64,
			       ZERO_BLOCKS_STATE + __builtin_popcountll(t->which));
	return true;
}

Stmt *zero_blocks_begin(Contract *c, const ZeroBlocks *t)
{
	Node *listed = contract_int(c, ZERO_BLOCKS_STATE - 1);
	return stmt_store(c->t, t->state, listed, contract_int(c, -1), RED_NONE);
}

Stmt *zero_blocks_panel(Contract *c, const ZeroBlocks *t, Node *seq, Node *at, Node *rows,
			Node *depth)
{
	Parted r = {0};
	Node *es, *ek, *base, *zero = contract_int(c, 0), *rest[2 * COUNT(r.rest)];
	int n = 0, count = __builtin_popcountll(t->which);
	if (!contract_split(c, contract_read(&c->a)->src[1], &c->m, &c->k, &es, &ek, &base) ||
	    !contract_part(c, c->a.npadded, c->a.padded, &c->m, &r))
		return NULL;
	for (int g = 0; g < r.n; g++)
		if (t->which >> g & 1) {
			r.s[n] = r.s[g];
			r.k[n] = r.k[g];
			rest[n] = r.rest[g];
			rest[count + n++] = contract_int(c, -r.k[g]->lo);
		}
	Table *ts = contract_table(c, &c->m, n, r.s), *tk = contract_table(c, &c->k, n, r.k),
	      *place = contract_table(c, &c->k, 1, &ek);
	if (!ts || !tk || !place)
		return NULL;
	CallArg arg[] = {{ts->buffer, table_index(c, ts, at)},
			 {NULL, contract_int(c, ts->stride)},
			 {tk->buffer, table_index(c, tk, zero)},
			 {NULL, contract_int(c, tk->stride)},
			 {NULL, contract_int(c, n)},
			 {contract_rest(c, 2 * n, rest), zero},
			 {NULL, rows},
			 {NULL, c->k.origin},
			 {NULL, depth},
			 {place->buffer, table_index(c, place, zero)},
			 {seq, zero},
			 {t->a, zero},
			 {t->b, zero},
			 {t->state, zero}};
	return stmt_call(c->t, "ricci_zero_blocks", COUNT(arg), arg);
}
