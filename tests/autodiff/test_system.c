/* test_system.c - inverse index maps against enumeration: for random quasi-affine maps every point
 * of the domain is met exactly once by (z, free axes) under the conditions, and nothing else is.
 * Shapes of the results where a dense one is expected. */
#include "tests/autodiff/index_map.h"
#include "tests/check.h"

static uint64_t random_state = 88172645463325252u;

static int64_t draw(int64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (int64_t)(random_state >> 11) % n;
}

static double points(int n, Node *const *axes)
{
	double p = 1;
	for (int k = 0; k < n; k++)
		p *= (double)axis_extent(axes[k]);
	return p;
}

static void check_inverse(Ir *ir, Map *m)
{
	Inverse inv;
	bool ok = index_invert(ir, m->naxis, m->axes, m->rank, m->index, m->z, m->rank, &inv);
	const char *wrong = ok ? inverse_wrong(m, &inv) : "no inverse";
	CHECK_REPORT(!wrong, "%s", wrong);
}

static Node *random_index(Ir *ir, Map *m, int depth)
{
	Node *e = m->axes[draw(m->naxis)];
	if (depth > 0) {
		int64_t k = draw(3) ? 1 + draw(4) : -1 - draw(3);
		e = node_scale(ir, random_index(ir, m, depth - 1), k);
		if (draw(2))
			e = node_add(ir, e, random_index(ir, m, depth - 1));
		e = node_add(ir, e, node_int(ir, draw(7) - 3));
	}
	switch (draw(5)) {
	case 0:
		return node_floordiv(ir, e, 1 + draw(6));
	case 1:
		return node_floormod(ir, e, 1 + draw(6));
	default:
		return e;
	}
}

static void random_map(Ir *ir, Map *m)
{
	m->naxis = 1 + (int)draw(4);
	m->rank = (int)draw(4);
	for (int k = 0; k < m->naxis; k++) {
		m->extent[k] = 1 + draw(9);
		m->axes[k] = node_axis(ir, k, m->extent[k]);
	}
	for (int d = 0; d < m->rank; d++) {
		Node *e = random_index(ir, m, (int)draw(3));
		int64_t span = e->hi - e->lo;
		e = node_add(ir, e, node_int(ir, -e->lo - (draw(4) ? 0 : draw(span + 1))));
		m->index[d] = e;
		m->shape[d] = 1 + (draw(3) ? span : draw(span + 3));
		if (m->shape[d] > 60)
			m->shape[d] = 60;
		m->z[d] = node_axis(ir, d, m->shape[d]);
	}
}

/* One random map in an Ir of its own; false where a check failed. */
static bool random_round(void)
{
	Ir ir;
	Map m = {0};
	jmp_buf oom;
	int before = check_failed;
	ir_init(&ir);
	ir.arena.oom = &oom;
	if (setjmp(oom)) {
		CHECK(false);
	} else {
		random_map(&ir, &m);
		check_inverse(&ir, &m);
	}
	ir_free(&ir);
	return check_failed == before;
}

static void test_random(void)
{
	for (int round = 0; round < 3000; round++)
		if (!random_round()) {
			fprintf(stderr, "in round %d\n", round);
			return;
		}
}

static void map_start(Ir *ir, Map *m, int naxis, const int64_t *extent)
{
	*m = (Map){.naxis = naxis};
	for (int k = 0; k < naxis; k++) {
		m->extent[k] = extent[k];
		m->axes[k] = node_axis(ir, k, extent[k]);
	}
}

static void map_index(Ir *ir, Map *m, Node *e)
{
	int d = m->rank++;
	m->index[d] = e;
	m->shape[d] = e->hi + 1;
	m->z[d] = node_axis(ir, d, e->hi + 1);
}

static void check_shape(Ir *ir, Map *m, double free_points, int nconditions)
{
	Inverse inv;
	check_inverse(ir, m);
	CHECK(index_invert(ir, m->naxis, m->axes, m->rank, m->index, m->z, m->rank, &inv));
	CHECK_INT(points(inv.nfree, inv.free), free_points);
	CHECK_INT(inv.ncond, nconditions);
}

static void test_shapes(void)
{
	Ir ir;
	Map m;
	jmp_buf oom;
	ir_init(&ir);
	ir.arena.oom = &oom;
	if (setjmp(oom)) {
		CHECK(false);
		return;
	}
	Node *i, *j;
	/* mixed radix: P[n/16, n/4%4, n%4] is one to one */
	map_start(&ir, &m, 1, (int64_t[]){64});
	map_index(&ir, &m, node_floordiv(&ir, m.axes[0], 16));
	map_index(&ir, &m, node_floormod(&ir, node_floordiv(&ir, m.axes[0], 4), 4));
	map_index(&ir, &m, node_floormod(&ir, m.axes[0], 4));
	check_shape(&ir, &m, 1, 0);
	/* A[n%4] with 32 n: eight for each */
	map_start(&ir, &m, 1, (int64_t[]){32});
	map_index(&ir, &m, node_floormod(&ir, m.axes[0], 4));
	check_shape(&ir, &m, 8, 0);
	/* A[4*i + j], j < 4: no free axis, no condition */
	map_start(&ir, &m, 2, (int64_t[]){5, 4});
	i = m.axes[0], j = m.axes[1];
	map_index(&ir, &m, node_add(&ir, node_scale(&ir, i, 4), j));
	check_shape(&ir, &m, 1, 0);
	/* convolution X[p + r]: three taps, p checked from both sides */
	map_start(&ir, &m, 2, (int64_t[]){12, 3});
	i = m.axes[0], j = m.axes[1];
	map_index(&ir, &m, node_add(&ir, i, j));
	check_shape(&ir, &m, 3, 2);
	/* stride 2, X[2*p + r], 3 taps: at most two of them meet an element */
	map_start(&ir, &m, 2, (int64_t[]){12, 3});
	i = m.axes[0], j = m.axes[1];
	map_index(&ir, &m, node_add(&ir, node_scale(&ir, i, 2), j));
	check_shape(&ir, &m, 2, 3);
	/* diagonal */
	map_start(&ir, &m, 1, (int64_t[]){7});
	map_index(&ir, &m, m.axes[0]);
	map_index(&ir, &m, m.axes[0]);
	check_shape(&ir, &m, 1, 1);
	/* flip A[6 - i] and broadcast over j */
	map_start(&ir, &m, 2, (int64_t[]){7, 5});
	map_index(&ir, &m, node_sub(&ir, node_int(&ir, 6), m.axes[0]));
	check_shape(&ir, &m, 5, 0);
	/* a product of axes is no quasi-affine index */
	Inverse inv;
	Node *square = node_mul(&ir, m.axes[0], m.axes[1]);
	CHECK(!index_invert(&ir, 2, m.axes, 1, &square, m.z, 1, &inv));
	ir_free(&ir);
}

static void test_hermite(void)
{
	for (int round = 0; round < 2000; round++) {
		int m = 1 + (int)draw(4), n = 1 + (int)draw(5), pivot[8];
		int64_t a[32], h[64] = {0}, *u = h + m * n;
		for (int k = 0; k < m * n; k++)
			h[k] = a[k] = draw(3) ? draw(9) - 4 : 0;
		for (int k = 0; k < n; k++)
			u[k * n + k] = 1;
		int rank = hermite_columns(m, n, n, h, pivot), wrong = 0;
		CHECK(rank >= 0 && rank <= m && rank <= n);
		for (int i = 0; i < m; i++)
			for (int j = 0; j < n; j++) {
				int64_t sum = 0;
				for (int k = 0; k < n; k++)
					sum += a[i * n + k] * u[k * n + j];
				wrong += sum != h[i * n + j];
				wrong += j >= rank && h[i * n + j] != 0;
				wrong += j < rank && i < pivot[j] && h[i * n + j] != 0;
				wrong += j < rank && i == pivot[j] && h[i * n + j] <= 0;
			}
		CHECK_INT(wrong, 0);
	}
	int64_t wild[8] = {(int64_t)1 << 39, 3, 5, ((int64_t)1 << 39) - 1, 1, 0, 0, 1};
	int pivot[2];
	CHECK_INT(hermite_columns(2, 2, 2, wild, pivot), -1);
}

int main(void)
{
	test_hermite();
	test_shapes();
	test_random();
	return check_done();
}
