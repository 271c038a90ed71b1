/* cover_solver.c - index maps and conditions made of any bytes: the inverse of a map meets each
 * point of a small domain exactly once, a polyhedron claims nothing that is false at a point; large
 * numbers overflow nowhere. */
#include "tests/autodiff/index_map.h"
#include "tests/fuzz/cover.h"

enum { STACK = 8, POINTS = 3000 };

static int64_t number(Bytes *b)
{
	static const int64_t large[] = {63,	   100,	      1000,	     1 << 20,
					INT32_MAX, 1LL << 40, INT64_MAX / 8, INT64_MAX - 1};
	int v = byte(b);
	return v < 240 ? v % 32 - 8 : large[v % 8];
}

static int64_t positive(Bytes *b)
{
	int64_t v = number(b);
	return v < 1 ? 1 - v : v;
}

/* An expression in postfix order: what is on top of the stack at the end. */
static Node *expression(Ir *ir, Bytes *b, int naxis, Node *const *axes, bool affine)
{
	Node *stack[STACK] = {axes[byte(b) % naxis]};
	int n = 1;
	for (int k = 0; k < 16; k++) {
		Node **top = &stack[n - 1];
		int op = byte(b) % (affine ? 10 : 14);
		if (op == 0)
			break;
		if (op <= 2 && n < STACK)
			stack[n++] = axes[byte(b) % naxis];
		else if (op == 3)
			*top = node_add(ir, *top, node_int(ir, number(b)));
		else if (op == 4)
			*top = node_scale(ir, *top, number(b));
		else if (op <= 6)
			*top = node_floordiv(ir, *top, positive(b));
		else if (op <= 8)
			*top = node_floormod(ir, *top, positive(b));
		else if (n > 1 && op == 9)
			top[-1] = node_add(ir, top[-1], *top), n--;
		else if (n > 1 && op <= 11)
			top[-1] = node2(ir, op == 10 ? OP_MIN : OP_MAX, top[-1], *top), n--;
		else if (n > 1 && op == 12)
			top[-1] = node_mul(ir, top[-1], *top), n--;
		else if (op == 13)
			*top = node1(ir, OP_ABS, *top);
	}
	return stack[n - 1];
}

/* Far from the ends of int64, so that values can be computed here. */
static bool moderate(const Node *e)
{
	for (int k = 0; k < e->nsrc; k++)
		if (!moderate(e->src[k]))
			return false;
	return e->type != RICCI_I64 || (e->lo > -(1LL << 31) && e->hi < 1LL << 31);
}

static void invert(Ir *ir, Bytes *b, Map *m, bool small)
{
	Inverse inv;
	double points = 1, domain = 1;
	m->rank = byte(b) % 4;
	for (int d = 0; d < m->rank; d++) {
		Node *e = expression(ir, b, m->naxis, m->axes, true);
		small = small && moderate(e);
		int64_t span = moderate(e) ? e->hi - e->lo : 1000, shift = byte(b) % 4;
		m->index[d] = moderate(e) ? node_add(ir, e, node_int(ir, shift - e->lo)) : e;
		m->shape[d] = 1 + span + byte(b) % 4 - 1;
		m->shape[d] = m->shape[d] < 1 ? 1 : m->shape[d];
		m->z[d] = node_axis(ir, d, m->shape[d]);
		points *= (double)m->shape[d];
	}
	if (!index_invert(ir, m->naxis, m->axes, m->rank, m->index, m->z, m->rank, &inv))
		return;
	for (int k = 0; k < inv.nfree; k++)
		points *= (double)axis_extent(inv.free[k]);
	for (int k = 0; k < m->naxis; k++)
		domain *= (double)m->extent[k];
	for (int k = 0; k < inv.ncond; k++)
		small = small && moderate(inv.cond[k]);
	for (int k = 0; k < m->naxis; k++)
		small = small && moderate(inv.value[k]);
	const char *what =
		small && points <= POINTS && domain <= POINTS ? inverse_wrong(m, &inv) : NULL;
	if (what)
		wrong("index_invert", what);
}

static Node *condition(Ir *ir, Bytes *b, const Map *m)
{
	static const Op ops[] = {OP_LE, OP_LT, OP_EQ, OP_NE};
	int how = byte(b);
	Node *x = expression(ir, b, m->naxis, m->axes, false);
	Node *y = how & 4 ? node_int(ir, number(b)) : expression(ir, b, m->naxis, m->axes, false);
	Node *c = node2(ir, ops[how % 4], x, y);
	if (how >= 240)
		return node_not(ir, c);
	return how < 200 ? c
			 : node2(ir, how & 8 ? OP_AND : OP_OR, c,
				 node2(ir, ops[how / 4 % 4], y, node_int(ir, number(b))));
}

/* Questions to a polyhedron, and what is true at all points. */
static void ask(Ir *ir, Bytes *b, Map *m, bool small)
{
	Node *given[3], *asked, *e;
	Polyhedron *p = poly_new(ir);
	int n = byte(b) % 4;
	int64_t v[6] = {0}, lo, hi;
	double domain = 1;
	for (int k = 0; k < n; k++)
		poly_assume(p, given[k] = condition(ir, b, m));
	asked = condition(ir, b, m);
	e = expression(ir, b, m->naxis, m->axes, false);
	bool empty = poly_is_empty(poly_copy(p)), implied = poly_implies(p, asked);
	poly_bounds(p, e, &lo, &hi);
	Node *simple = poly_simplify(p, asked);
	for (int k = 0; k < m->naxis; k++)
		domain *= (double)m->extent[k];
	small = small && moderate(asked) && moderate(e) && moderate(simple);
	for (int k = 0; k < n; k++)
		small = small && moderate(given[k]);
	if (!small || domain > POINTS)
		return;
	do {
		bool inside = true;
		for (int k = 0; k < n && inside; k++)
			inside = index_value(given[k], v);
		int64_t x = index_value(e, v), truth = index_value(asked, v);
		if (x < e->lo || x > e->hi)
			wrong("node", "bounds");
		if (!inside)
			continue;
		if (empty)
			wrong("polyhedron", "not empty");
		if (implied && !truth)
			wrong("polyhedron", "not implied");
		if (x < lo || x > hi)
			wrong("polyhedron", "bounds");
		if (index_value(simple, v) != truth)
			wrong("polyhedron", "simplified to something else");
	} while (next_point(m->naxis, m->extent, v));
}

/* The map's domain; is it small enough for counting? */
static bool domain_new(Ir *ir, Bytes *b, Map *m, int naxis)
{
	bool small = true;
	m->naxis = naxis;
	for (int k = 0; k < naxis; k++) {
		m->extent[k] = positive(b);
		m->axes[k] = node_axis(ir, k, m->extent[k]);
		small = small && m->extent[k] < 100;
	}
	return small;
}

static void bytes_judge(Ir *ir, Bytes *b)
{
	Map m = {0};
	int what = byte(b);
	bool small = domain_new(ir, b, &m, 1 + what / 2 % 4);
	(what % 2 ? invert : ask)(ir, b, &m, small);
}

static int guarded_judge(Ir *ir, Bytes *b)
{
	IR_ENTER(ir, 0);
	bytes_judge(ir, b);
	IR_LEAVE(ir);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Bytes b = {data, data + size};
	Ir ir;
	long live = mem_live();
	ir_init(&ir);
	guarded_judge(&ir, &b);
	ir_free(&ir);
	if (mem_live() != live)
		wrong("memory", "is kept");
	return 0;
}
