/* test_isl.c - isl as the judge of solution sets and bounds, symbolically, so that extents are as
 * large as in use: for thousands of random quasi-affine maps and systems
 * - the inverse of a map (index_invert) meets exactly the points of its domain, each once;
 * - what a polyhedron claims (empty, implied, bounds) is so; and how often it finds
 *   what isl finds.
 * isl's explosions are stopped by a limit on its operations; such cases are counted apart.
 * RICCI_FUZZ: the number of maps and of systems; RICCI_SEED: other ones. */
#include "autodiff/internal.h"
#include "tests/check.h"

#ifdef RICCI_ISL

#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/ilp.h>
#include <isl/local_space.h>
#include <isl/map.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/val.h>

#include <stdlib.h>
#include <string.h>

enum { OPERATIONS = 400000 };

static isl_ctx *ctx;
static int hard; /* stopped by the limit */

static uint64_t random_state = 88172645463325252u;

static int64_t draw(int64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (int64_t)(random_state >> 11) % n;
}

/* ---- nodes in isl's language */

typedef const char *(*AxisName)(const Node *axis);

static void put(Text *t, const Node *n, AxisName name);

static void put_two(Text *t, const Node *n, AxisName name, const char *between)
{
	text_add(t, "(");
	put(t, n->src[0], name);
	text_add(t, "%s", between);
	put(t, n->src[1], name);
	text_add(t, ")");
}

static void put(Text *t, const Node *n, AxisName name)
{
	static const char *const infix[OP_COUNT] = {
		[OP_ADD] = " + ",   [OP_MUL] = "*",   [OP_LT] = " < ",
		[OP_LE] = " <= ",   [OP_EQ] = " = ",  [OP_NE] = " != ",
		[OP_AND] = " and ", [OP_OR] = " or ", [OP_FLOORMOD] = " mod "};
	if (n->op == OP_CONST && n->type == RICCI_BOOL)
		text_add(t, n->u.i ? "0 = 0" : "0 = 1");
	else if (n->op == OP_CONST)
		text_add(t, "%lld", (long long)n->u.i);
	else if (n->op == OP_AXIS)
		text_add(t, "%s", name(n));
	else if (n->op == OP_FLOORDIV) {
		text_add(t, "floor(");
		put_two(t, n, name, "/");
		text_add(t, ")");
	} else if (n->op == OP_NOT) {
		text_add(t, "not (");
		put(t, n->src[0], name);
		text_add(t, ")");
	} else {
		CHECK_REPORT(infix[n->op] != NULL, "%s in an index", op_info[n->op].name);
		put_two(t, n, name, infix[n->op] ? infix[n->op] : " + ");
	}
}

static const char *number_name(const char *letter, int64_t k)
{
	static char name[8][8];
	static int at;
	at = (at + 1) % 8;
	snprintf(name[at], sizeof name[at], "%s%d", letter, (int)k);
	return name[at];
}

static const char *domain_name(const Node *axis)
{
	return number_name("v", axis->u.i);
}

static const char *solution_name(const Node *axis)
{
	return number_name("z", axis->u.i);
}

static void put_names(Text *t, const char *letter, int n)
{
	text_add(t, "[");
	for (int k = 0; k < n; k++)
		text_add(t, k ? ",%s%d" : "%s%d", letter, k);
	text_add(t, "]");
}

static void put_box(Text *t, const char *letter, int n, Node *const *axes)
{
	for (int k = 0; k < n; k++)
		text_add(t, " and 0 <= %s%d < %lld", letter, (int)axes[k]->u.i,
			 (long long)axis_extent(axes[k]));
}

/* ---- isl's answers: true, false, or too hard */

typedef enum { NO, YES, HARD } Answer;

static Answer answer(isl_bool b)
{
	if (b != isl_bool_error)
		return b == isl_bool_true ? YES : NO;
	isl_ctx_reset_error(ctx);
	isl_ctx_reset_operations(ctx);
	hard++;
	return HARD;
}

static isl_set *set_read(const Text *t)
{
	isl_set *s = isl_set_read_from_str(ctx, t->s);
	bool parse = !s && isl_ctx_last_error(ctx) == isl_error_invalid;
	CHECK_REPORT(!parse, "isl can't read %s", t->s);
	return s;
}

static Answer sets_equal(isl_set *a, isl_set *b)
{
	return a && b ? answer(isl_set_is_equal(a, b)) : answer(isl_bool_error);
}

/* ---- index_invert */

typedef struct Map {
	int naxis, rank;
	Node *axes[6], *index[4], *z[4];
} Map;

static Node *random_index(Ir *ir, int naxis, Node *const *axes, int depth)
{
	Node *e = axes[draw(naxis)];
	if (depth > 0) {
		int64_t k = draw(3) ? 1 + draw(4) : -1 - draw(3);
		e = node_scale(ir, random_index(ir, naxis, axes, depth - 1), k);
		if (draw(2))
			e = node_add(ir, e, random_index(ir, naxis, axes, depth - 1));
		e = node_add(ir, e, node_int(ir, draw(7) - 3));
	}
	switch (draw(6)) {
	case 0:
		return node_floordiv(ir, e, 1 + draw(draw(2) ? 6 : 40));
	case 1:
		return node_floormod(ir, e, 1 + draw(draw(2) ? 6 : 40));
	default:
		return e;
	}
}

static void random_axes(Ir *ir, int n, Node **axes)
{
	for (int k = 0; k < n; k++)
		axes[k] = node_axis(ir, k, 1 + draw(draw(2) ? 9 : draw(3) ? 60 : 2000));
}

static void random_map(Ir *ir, Map *m)
{
	m->naxis = 1 + (int)draw(4);
	m->rank = 1 + (int)draw(3);
	random_axes(ir, m->naxis, m->axes);
	for (int d = 0; d < m->rank; d++) {
		Node *e = random_index(ir, m->naxis, m->axes, (int)draw(3));
		int64_t span = e->hi - e->lo;
		e = node_add(ir, e, node_int(ir, -e->lo - (draw(4) ? 0 : draw(span + 1))));
		m->index[d] = e;
		m->z[d] = node_axis(ir, d, 1 + (draw(3) ? span : draw(span + 3)));
	}
}

/* { v : all indices inside } */
static isl_set *map_domain(const Map *m)
{
	Text t = {0};
	text_add(&t, "{ ");
	put_names(&t, "v", m->naxis);
	text_add(&t, " : 0 = 0");
	put_box(&t, "v", m->naxis, m->axes);
	for (int d = 0; d < m->rank; d++) {
		text_add(&t, " and 0 <= ");
		put(&t, m->index[d], domain_name);
		text_add(&t, " < %lld", (long long)axis_extent(m->z[d]));
	}
	text_add(&t, " }");
	isl_set *s = set_read(&t);
	text_free(&t);
	return s;
}

/* { (z, free) -> v } as the inverse says; with `index`, only where also index(v) = z. */
static isl_map *map_inverse(const Map *m, const Inverse *inv, bool index)
{
	Text t = {0};
	text_add(&t, "{ ");
	put_names(&t, "z", m->rank + inv->nfree);
	text_add(&t, " -> ");
	put_names(&t, "v", m->naxis);
	text_add(&t, " : 0 = 0");
	put_box(&t, "z", m->rank, m->z);
	put_box(&t, "z", inv->nfree, inv->free);
	for (int k = 0; k < inv->ncond; k++) {
		text_add(&t, " and ");
		put(&t, inv->cond[k], solution_name);
	}
	for (int k = 0; k < m->naxis; k++) {
		text_add(&t, " and v%d = ", k);
		put(&t, inv->value[k], solution_name);
	}
	for (int d = 0; d < m->rank && index; d++) {
		text_add(&t, " and z%d = ", d);
		put(&t, m->index[d], domain_name);
	}
	text_add(&t, " }");
	isl_map *s = isl_map_read_from_str(ctx, t.s);
	CHECK_REPORT(s || isl_ctx_last_error(ctx) != isl_error_invalid, "isl can't read %s", t.s);
	text_free(&t);
	return s;
}

static void map_report(Ir *ir, const Map *m, const char *what)
{
	Text t = {0};
	put_box(&t, "v", m->naxis, m->axes);
	for (int d = 0; d < m->rank; d++) {
		text_add(&t, "; z%d < %lld is ", d, (long long)axis_extent(m->z[d]));
		put(&t, m->index[d], domain_name);
	}
	(void)ir;
	CHECK_REPORT(false, "%s: %s", what, t.s);
	text_free(&t);
}

static int judge_map(Ir *ir, int *exact)
{
	Map m = {0};
	Inverse inv;
	IR_ENTER(ir, -1);
	random_map(ir, &m);
	if (!index_invert(ir, m.naxis, m.axes, m.rank, m.index, m.z, m.rank, &inv)) {
		map_report(ir, &m, "no inverse");
		IR_LEAVE(ir);
		return 0;
	}
	isl_set *domain = map_domain(&m);
	isl_map *ours = map_inverse(&m, &inv, false), *right = map_inverse(&m, &inv, true);
	isl_set *met = isl_map_range(isl_map_copy(ours));
	Answer all = sets_equal(met, domain);
	Answer once = ours ? answer(isl_map_is_injective(ours)) : HARD;
	Answer solves = ours && right ? answer(isl_map_is_equal(ours, right)) : HARD;
	if (all == NO)
		map_report(ir, &m, "solutions are missing, or outside the domain");
	if (once == NO)
		map_report(ir, &m, "a solution twice");
	if (solves == NO)
		map_report(ir, &m, "a solution that is none");
	*exact += all == YES && once == YES && solves == YES;
	isl_set_free(domain);
	isl_set_free(met);
	isl_map_free(ours);
	isl_map_free(right);
	IR_LEAVE(ir);
	return 0;
}

/* ---- polyhedra */

enum { AXES = 3 };

static Node *random_condition(Ir *ir, Node *const *axes, int depth)
{
	static const Op compares[] = {OP_LE, OP_LT, OP_EQ, OP_NE, OP_LE};
	if (depth > 1 && draw(3) == 0) {
		Node *a = random_condition(ir, axes, depth - 1);
		return draw(3) ? node2(ir, draw(2) ? OP_AND : OP_OR, a,
				       random_condition(ir, axes, depth - 1))
			       : node_not(ir, a);
	}
	Node *a = random_index(ir, AXES, axes, (int)draw(3)), *b = node_int(ir, draw(60) - 10);
	if (draw(2))
		b = random_index(ir, AXES, axes, (int)draw(2));
	return node2(ir, compares[draw(COUNT(compares))], a, b);
}

/* { v : given and more }, with one more dimension that equals e where e is not NULL */
static isl_set *system_set(Node *const *axes, int n, Node *const *given, const Node *more,
			   const Node *e)
{
	Text t = {0};
	text_add(&t, "{ ");
	put_names(&t, "v", AXES + (e != NULL));
	text_add(&t, " : 0 = 0");
	put_box(&t, "v", AXES, axes);
	for (int k = 0; k < n; k++) {
		text_add(&t, " and (");
		put(&t, given[k], domain_name);
		text_add(&t, ")");
	}
	if (more) {
		text_add(&t, " and (");
		put(&t, more, domain_name);
		text_add(&t, ")");
	}
	if (e) {
		text_add(&t, " and v%d = ", AXES);
		put(&t, e, domain_name);
	}
	text_add(&t, " }");
	isl_set *s = set_read(&t);
	text_free(&t);
	return s;
}

static const char *const what_text[] = {"empty", "implied", "bounds"};
static int could[3], found[3];

static void count(int what, Answer truth, bool claim)
{
	CHECK_REPORT(truth != NO || !claim, "%s: claimed, and isl says no", what_text[what]);
	could[what] += truth == YES;
	found[what] += truth == YES && claim;
}

static Answer set_empty(isl_set *s)
{
	Answer a = s ? answer(isl_set_is_empty(s)) : answer(isl_bool_error);
	isl_set_free(s);
	return a;
}

static void judge_bounds(Ir *ir, Polyhedron *p, Node *const *axes, int n, Node *const *given)
{
	Node *e = random_index(ir, AXES, axes, (int)draw(3));
	isl_set *s = system_set(axes, n, given, NULL, e);
	int64_t lo, hi;
	isl_local_space *space = s ? isl_local_space_from_space(isl_set_get_space(s)) : NULL;
	isl_aff *last = space ? isl_aff_var_on_domain(space, isl_dim_set, AXES) : NULL;
	isl_val *least = last ? isl_set_min_val(s, last) : NULL;
	isl_val *most = last ? isl_set_max_val(s, last) : NULL;
	poly_bounds(p, e, &lo, &hi);
	if (least && most && isl_val_is_int(least) && isl_val_is_int(most)) {
		int64_t l = isl_val_get_num_si(least), h = isl_val_get_num_si(most);
		CHECK_REPORT(lo <= l && hi >= h, "bounds %lld..%lld, isl says %lld..%lld",
			     (long long)lo, (long long)hi, (long long)l, (long long)h);
		could[2]++;
		found[2] += lo == l && hi == h;
	} else if (!least || !most) {
		answer(isl_bool_error);
	}
	isl_aff_free(last);
	isl_val_free(least);
	isl_val_free(most);
	isl_set_free(s);
}

static int judge_system(Ir *ir)
{
	Node *axes[AXES], *given[4], *asked;
	int n = (int)draw(4);
	IR_ENTER(ir, -1);
	random_axes(ir, AXES, axes);
	Polyhedron *p = poly_new(ir);
	for (int k = 0; k < n; k++)
		poly_assume(p, given[k] = random_condition(ir, axes, 2));
	asked = random_condition(ir, axes, 3);
	Answer empty = set_empty(system_set(axes, n, given, NULL, NULL));
	count(0, empty, poly_is_empty(poly_copy(p)));
	Answer implied = set_empty(system_set(axes, n, given, node_not(ir, asked), NULL));
	count(1, implied, poly_implies(p, asked));
	if (empty == NO)
		judge_bounds(ir, p, axes, n, given);
	IR_LEAVE(ir);
	return 0;
}

static void repeat(int rounds, int (*judge)(Ir *ir), const char *what)
{
	for (int k = 0; k < rounds && check_failed < 10; k++) {
		int before = check_failed;
		Ir ir;
		ir_init(&ir);
		isl_ctx_reset_operations(ctx);
		CHECK_INT(judge(&ir), 0);
		ir_free(&ir);
		if (check_failed > before)
			fprintf(stderr, "%s %d\n", what, k);
	}
}

static int exact_maps;

static int judge_any_map(Ir *ir)
{
	return judge_map(ir, &exact_maps);
}

int main(void)
{
	const char *rounds = getenv("RICCI_FUZZ"), *seed = getenv("RICCI_SEED");
	int n = rounds ? atoi(rounds) : 100;
	random_state ^= seed ? strtoull(seed, NULL, 10) << 17 : 0;
	ctx = isl_ctx_alloc();
	isl_options_set_on_error(ctx, ISL_ON_ERROR_CONTINUE);
	isl_ctx_set_max_operations(ctx, OPERATIONS);
	repeat(n, judge_any_map, "map");
	fprintf(stderr, "maps: %d of %d judged right, others too hard for isl\n", exact_maps, n);
	CHECK(exact_maps > n / 2);
	repeat(n, judge_system, "system");
	for (int k = 0; k < COUNT(could); k++) {
		fprintf(stderr, "%s: %d of isl's %d found\n", what_text[k], found[k], could[k]);
		CHECK(found[k] * 2 >= could[k]);
	}
	fprintf(stderr, "%d questions too hard for isl\n", hard);
	isl_ctx_free(ctx);
	CHECK_INT(mem_live(), 0);
	return check_done();
}

#else

int main(void)
{
	CHECK_SKIP("configure found no isl (on Debian: apt-get install libisl-dev)");
	return check_done();
}

#endif
