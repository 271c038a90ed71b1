/* Random expressions, evaluated twice: straight from an unfolded tree by the definitions in
 * ops.def, and as folded nodes by the interpreter. Folding, replacement, import and single elements
 * keep the value at every point, and a node's lo, hi and mul hold for it. */
#include "tests/check.h"
#include "tests/core/integer_value.h"

#include <stdlib.h>

enum { AXES = 3, ROWS = 6, NODES = 400 };

/* ---- trees ---- */

/* GUARDED: src[0] read of table at index src[0] where inside, else src[1]. */
enum { TREE_TABLE = OP_COUNT, TREE_GUARDED };

typedef union Value {
	double f;
	int64_t i;
} Value;

typedef struct Tree Tree;
struct Tree {
	int op;
	Type type;
	Value u; /* CONST: value; AXIS, TABLE: the axis */
	Tree *src[3];
	Node *node; /* as node_make folds it */
};

static bool parts; /* check every part of the tree too: to find which one is wrong */
static Tree pool[NODES];
static int used;
static Ir *ir;
static Node *axis[AXES], *table[RICCI_NTYPES];
static double data[RICCI_NTYPES][ROWS]; /* room for ROWS elements of any type */
static int64_t at[AXES];

static Tree *tree(int op, Type type, Tree *a, Tree *b, Tree *c)
{
	Tree *t = &pool[used++];
	*t = (Tree){.op = op, .type = type, .src = {a, b, c}};
	return t;
}

static int64_t clamp(Type t, int64_t v)
{
	int64_t lo, hi;
	type_range(t, &lo, &hi);
	return v < lo ? lo : v > hi ? hi : v;
}

static Value table_value(Type t, int64_t row)
{
	Value v;
	if (type_is_float(t))
		v.f = type_load(t, data[t], (size_t)row);
	else
		v.i = type_load_int(t, data[t], (size_t)row);
	return v;
}

static Value evaluate(const Tree *t);

static Value cast(const Tree *t, Value a)
{
	Type from = t->src[0]->type;
	Value v;
	if (type_is_float(t->type))
		v.f = type_is_float(from) ? a.f : (double)a.i;
	else if (t->type == RICCI_BOOL)
		v.i = type_is_float(from) ? a.f != 0 : a.i != 0;
	else if (!type_is_float(from))
		v.i = clamp(t->type, a.i);
	else
		v.i = a.f != a.f       ? 0
		      : a.f >= 0x1p62  ? clamp(t->type, INT64_MAX)
		      : a.f <= -0x1p62 ? clamp(t->type, INT64_MIN)
				       : clamp(t->type, (int64_t)a.f);
	return v;
}

static double float_unary(int op, double x)
{
	switch (op) {
	case OP_NEG:
		return -x;
	case OP_EXP:
		return exp(x);
	case OP_SQRT:
		return sqrt(x);
	case OP_SIN:
		return sin(x);
	case OP_TANH:
		return tanh(x);
	case OP_ABS:
		return fabs(x);
	case OP_SIGN:
		return isnan(x) ? x : (x > 0) - (x < 0);
	default:
		return floor(x);
	}
}

static Value float_value(const Tree *t, double a, double b)
{
	double nan = isnan(a) || isnan(b) ? NAN : 0;
	Value v = {0};
	switch (t->op) {
	case OP_ADD:
		v.f = a + b;
		break;
	case OP_SUB:
		v.f = a - b;
		break;
	case OP_MUL:
		v.f = a * b;
		break;
	case OP_DIV:
		v.f = a / b;
		break;
	case OP_POW:
		v.f = pow(a, b);
		break;
	case OP_MIN:
		v.f = isnan(nan) ? nan : a < b ? a : b;
		break;
	case OP_MAX:
		v.f = isnan(nan) ? nan : a > b ? a : b;
		break;
	case OP_LT:
		v.i = a < b;
		break;
	case OP_LE:
		v.i = a <= b;
		break;
	case OP_EQ:
		v.i = a == b;
		break;
	case OP_NE:
		v.i = a != b;
		break;
	default:
		v.f = float_unary(t->op, a);
	}
	return v;
}

static Value evaluate(const Tree *t)
{
	Value a, b = {0}, v;
	switch (t->op) {
	case OP_CONST:
		return t->u;
	case OP_AXIS:
		v.i = at[t->u.i];
		return v;
	case TREE_TABLE:
		return table_value(t->type, at[t->u.i]);
	case TREE_GUARDED:
		a = evaluate(t->src[0]);
		return a.i >= 0 && a.i < ROWS ? table_value(t->type, a.i) : evaluate(t->src[1]);
	case OP_SELECT:
		return evaluate(t->src[evaluate(t->src[0]).i ? 1 : 2]);
	case OP_AND:
	case OP_OR:
		a = evaluate(t->src[0]);
		return (a.i != 0) == (t->op == OP_AND) ? evaluate(t->src[1]) : a;
	case OP_CAST:
		return cast(t, evaluate(t->src[0]));
	default:
		a = evaluate(t->src[0]);
		if (t->src[1])
			b = evaluate(t->src[1]);
		if (type_is_float(t->src[0]->type))
			return float_value(t, a.f, b.f);
		v.i = integer_value(t->op, t->type, a.i, b.i);
		return v;
	}
}

/* ---- random trees ---- */

static const Type int_types[] = {RICCI_I64, RICCI_I64, RICCI_I64, RICCI_I32, RICCI_I8, RICCI_U8};

static Tree *random_tree(Type type, int depth);

static Tree *random_leaf(Type type)
{
	Tree *t = tree(OP_CONST, type, NULL, NULL, NULL);
	int what = draw(4);
	if (what == 0 && type_is_int(type) && draw(4) == 0) {
		t->u.i = number_near_end(type);
		return t;
	}
	if (what == 0) {
		if (type_is_float(type))
			t->u.f = (draw(9) - 4) * 0.5;
		else if (type == RICCI_BOOL)
			t->u.i = draw(2);
		else
			t->u.i = draw(12) - (type == RICCI_U8 ? 0 : 5);
	} else if (what < 3 && type == RICCI_I64) {
		t->op = OP_AXIS;
		t->u.i = draw(AXES);
	} else {
		t->op = TREE_TABLE;
		t->u.i = draw(AXES);
	}
	return t;
}

static Tree *random_logic(int depth)
{
	static const Op compares[] = {OP_LT, OP_LE, OP_EQ, OP_NE};
	Tree *a;
	switch (draw(9)) {
	case 0:
		a = random_tree(RICCI_BOOL, depth - 1);
		return tree(OP_AND, RICCI_BOOL, a, random_tree(RICCI_BOOL, depth - 1), NULL);
	case 1:
		a = random_tree(RICCI_BOOL, depth - 1);
		return tree(OP_OR, RICCI_BOOL, a, random_tree(RICCI_BOOL, depth - 1), NULL);
	case 2:
		return tree(OP_NOT, RICCI_BOOL, random_tree(RICCI_BOOL, depth - 1), NULL, NULL);
	case 3:
		a = random_tree(draw(2) ? RICCI_I64 : RICCI_F64, depth - 1);
		return tree(OP_CAST, RICCI_BOOL, a, NULL, NULL);
	case 4:
		a = random_tree(RICCI_F64, depth - 1);
		return tree(compares[draw(4)], RICCI_BOOL, a, random_tree(RICCI_F64, depth - 1),
			    NULL);
	default: {
		Type t = draw(8) ? int_types[draw(COUNT(int_types))] : RICCI_BOOL;
		a = random_tree(t, depth - 1);
		return tree(compares[draw(4)], RICCI_BOOL, a, random_tree(t, depth - 1), NULL);
	}
	}
}

static Tree *random_integer(Type type, int depth)
{
	static const Op binary[] = {OP_ADD, OP_ADD, OP_ADD, OP_SUB, OP_SUB, OP_MUL, OP_MIN, OP_MAX};
	static const Op unary[] = {OP_NEG, OP_ABS, OP_SIGN};
	Tree *a = random_tree(type, depth - 1), *b;
	switch (draw(8)) {
	case 0:
		return tree(unary[draw(3)], type, a, NULL, NULL);
	case 1:
	case 2:
		b = tree(OP_CONST, type, NULL, NULL, NULL);
		b->u.i = 1 + draw(6);
		if (draw(6) == 0) {
			int64_t v = number_near_end(type);
			b->u.i = v > 0 ? v : v < -1 ? -(v + 1) : 1;
		}
		return tree(draw(2) ? OP_FLOORDIV : OP_FLOORMOD, type, a, b, NULL);
	case 3:
		b = tree(OP_CONST, type, NULL, NULL, NULL);
		b->u.i = draw(8) ? draw(9) - (type == RICCI_U8 ? 0 : 4) : number_near_end(type);
		return tree(OP_MUL, type, a, b, NULL);
	default:
		return tree(binary[draw(COUNT(binary))], type, a, random_tree(type, depth - 1),
			    NULL);
	}
}

static Tree *random_float(int depth)
{
	static const Op binary[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MIN, OP_MAX, OP_POW};
	static const Op unary[] = {OP_NEG,  OP_EXP, OP_SQRT, OP_SIN,
				   OP_TANH, OP_ABS, OP_SIGN, OP_FLOOR};
	Tree *a = random_tree(RICCI_F64, depth - 1);
	if (draw(3) == 0)
		return tree(unary[draw(COUNT(unary))], RICCI_F64, a, NULL, NULL);
	return tree(binary[draw(COUNT(binary))], RICCI_F64, a, random_tree(RICCI_F64, depth - 1),
		    NULL);
}

static Tree *random_tree(Type type, int depth)
{
	if (depth <= 0 || used > NODES / 2)
		return random_leaf(type);
	Tree *a, *b;
	switch (draw(10)) {
	case 0:
		a = random_tree(RICCI_BOOL, depth - 1);
		b = random_tree(type, depth - 1);
		return tree(OP_SELECT, type, a, b, random_tree(type, depth - 1));
	case 1:
		if (type == RICCI_BOOL)
			break;
		a = random_tree(draw(5)	  ? int_types[draw(COUNT(int_types))]
				: draw(2) ? RICCI_BOOL
					  : RICCI_F64,
				depth - 1);
		return a->type == type ? a : tree(OP_CAST, type, a, NULL, NULL);
	case 2:
		a = random_tree(RICCI_I64, depth - 1);
		return tree(TREE_GUARDED, type, a, random_tree(type, depth - 1), NULL);
	default:
		break;
	}
	return type == RICCI_BOOL    ? random_logic(depth)
	       : type_is_float(type) ? random_float(depth)
				     : random_integer(type, depth);
}

static void print_tree(const Tree *t)
{
	const char *name = t->op == TREE_TABLE	   ? "table"
			   : t->op == TREE_GUARDED ? "guarded"
						   : op_info[t->op].name;
	if (t->op == OP_CONST && type_is_float(t->type)) {
		fprintf(stderr, "%g", t->u.f);
	} else if (t->op == OP_CONST) {
		fprintf(stderr, "%lld", (long long)t->u.i);
	} else {
		fprintf(stderr, "%s.%s", name, type_name(t->type));
		if (!t->src[0])
			fprintf(stderr, "%lld", (long long)t->u.i);
	}
	for (int k = 0; k < 3 && t->src[k]; k++) {
		fputs(k ? ", " : "(", stderr);
		print_tree(t->src[k]);
	}
	fputs(t->src[0] ? ")" : "", stderr);
}

/* ---- trees as nodes ---- */

static Node *build(Tree *t)
{
	Node *src[3];
	int n = 0;
	for (; n < 3 && t->src[n]; n++)
		src[n] = build(t->src[n]);
	switch (t->op) {
	case OP_CONST:
		t->node = type_is_float(t->type) ? node_const(ir, t->type, t->u.f)
						 : node_const_int(ir, t->type, t->u.i);
		break;
	case OP_AXIS:
		t->node = axis[t->u.i];
		break;
	case TREE_TABLE:
		t->node = node_read(ir, table[t->type], &axis[t->u.i]);
		break;
	case TREE_GUARDED: {
		Node *inside = node2(ir, OP_AND, node2(ir, OP_LE, node_int(ir, 0), src[0]),
				     node2(ir, OP_LT, src[0], node_int(ir, ROWS)));
		t->node = node_select(ir, inside, node_read(ir, table[t->type], src), src[1]);
		break;
	}
	default:
		t->node = node_make(ir, (Op)t->op, t->type, n, src, 0);
	}
	return t->node;
}

static void check_bounds(const Tree *t, Value v)
{
	int before = check_failed;
	const Node *n = t->node;
	if (type_is_float(t->type))
		return;
	CHECK_REPORT(v.i >= n->lo && v.i <= n->hi, "%s: %lld is not in %lld..%lld",
		     op_info[n->op].name, (long long)v.i, (long long)n->lo, (long long)n->hi);
	if (t->type != RICCI_BOOL)
		CHECK_REPORT(n->mul ? v.i % n->mul == 0 : v.i == 0,
			     "%s: %lld is no multiple of %lld", op_info[n->op].name, (long long)v.i,
			     (long long)n->mul);
	if (check_failed > before && parts) {
		print_tree(t);
		fputc('\n', stderr);
	}
}

static bool same(Type t, Value a, Value b)
{
	return type_is_float(t) ? check_near(a.f, b.f, 1e-12 * fabs(a.f)) : a.i == b.i;
}

static bool next_point(void)
{
	for (int k = AXES - 1; k >= 0; k--) {
		if (++at[k] < axis_extent(axis[k]))
			return true;
		at[k] = 0;
	}
	return false;
}

/* The values of node e (over axis[]) at all points are those of t where move() has put at[]. */
static void check_values(const char *what, const Tree *t, Ir *in, Node *const *axes, Node *e,
			 const Binding *bind, void (*move)(int64_t *))
{
	Value out[ROWS * ROWS * ROWS], one;
	Error err = {0};
	Node *c = comp_dense(in, RED_NONE, AXES, AXES, axes, e);
	CHECK_INT(interp_tensor(c, RICCI_NTYPES, bind, (RandomState){0, 0}, out, NULL, &err), 0);
	CHECK_STR(err.text, "");
	int64_t k = 0, size = tensor_size(c), some = draw((int)size);
	CHECK_INT(interp_elements(c, RICCI_NTYPES, bind, NULL, (RandomState){0, 0}, 1, &some, &one,
				  NULL, &err),
		  0);
	CHECK_REPORT(same(t->type, one, out[some]), "%s: a single element differs", what);
	at[0] = at[1] = at[2] = 0;
	do {
		int64_t saved[AXES] = {at[0], at[1], at[2]};
		if (move)
			move(at);
		Value v = evaluate(t);
		CHECK_REPORT(same(t->type, v, out[k]),
			     "%s: %s gives %lld = %g, should be %lld = %g", what,
			     type_name(t->type), (long long)out[k].i, out[k].f, (long long)v.i,
			     v.f);
		k++;
		for (int d = 0; d < AXES; d++)
			at[d] = saved[d];
	} while (next_point());
}

/* Axis 0 mirrored, axes 1 and 2 swapped (they have one extent). */
static void move(int64_t *p)
{
	int64_t y = p[1];
	p[0] = axis_extent(axis[0]) - 1 - p[0];
	p[1] = p[2];
	p[2] = y;
}

static Node *copy_tensor(void *user, Node *t)
{
	(void)user;
	return node_input(user, t->u.s, (Type)t->type, 1, (int64_t[]){ROWS});
}

static void fill_tables(Binding *bind)
{
	static const int64_t wild[] = {
		127,	   -128,      255,	     2147483647,	-2147483648,
		INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX / 2 + 1, INT64_MIN / 3};
	for (int k = 0; k < RICCI_NTYPES; k++) {
		table[k] = node_input(ir, type_name((Type)k), (Type)k, 1, (int64_t[]){ROWS});
		bind[k] = (Binding){table[k], data[k]};
		for (int row = 0; row < ROWS; row++) {
			int64_t v = draw(5) ? draw(21) - 10 : wild[draw(COUNT(wild))];
			if (type_is_float((Type)k))
				type_store((Type)k, data[k], (size_t)row, (draw(21) - 10) * 0.25);
			else
				type_store_int((Type)k, data[k], (size_t)row, v);
		}
	}
}

static int random_case(Ir *here, const Tree **result)
{
	static const Type types[] = {RICCI_I64, RICCI_I64, RICCI_F64, RICCI_BOOL,
				     RICCI_I32, RICCI_I8,  RICCI_U8};
	IR_ENTER(here, -1);
	Binding bind[RICCI_NTYPES];
	ir = here;
	used = 0;
	fill_tables(bind);
	int shape[AXES] = {1 + draw(ROWS), 1 + draw(ROWS)};
	shape[2] = shape[1];
	for (int k = 0; k < AXES; k++)
		axis[k] = node_axis(ir, k, shape[k]);
	Tree *t = random_tree(types[draw(COUNT(types))], 1 + draw(5));
	Node *e = build(t);
	at[0] = at[1] = at[2] = 0;
	do
		for (int k = 0; k < used; k++)
			if (pool[k].node)
				check_bounds(&pool[k], evaluate(&pool[k]));
	while (next_point());
	for (int k = 0; k < used && parts; k++) {
		int before = check_failed;
		check_values("part", &pool[k], ir, axis, pool[k].node, bind, NULL);
		if (check_failed > before) {
			print_tree(&pool[k]);
			fputc('\n', stderr);
		}
	}
	check_values("folded", t, ir, axis, e, bind, NULL);
	check_values("simplified", t, ir, axis, poly_simplify(poly_new(ir), e), bind, NULL);
	Node *to[AXES] = {node_sub(ir, node_int(ir, shape[0] - 1), axis[0]), axis[2], axis[1]};
	check_values("replaced", t, ir, axis, node_replace(ir, e, AXES, axis, to), bind, move);
	*result = t;
	IR_LEAVE(here);
	return 0;
}

static int import_case(Ir *other, const Tree *t)
{
	IR_ENTER(other, -1);
	Binding there[RICCI_NTYPES];
	Node *axes[AXES], *copy = node_import(other, t->node, copy_tensor, other);
	for (int k = 0; k < AXES; k++)
		axes[k] = node_axis(other, k, axis_extent(axis[k]));
	for (int k = 0; k < RICCI_NTYPES; k++)
		there[k] = (Binding){copy_tensor(other, table[k]), data[k]};
	check_values("imported", t, other, axes, copy, there, NULL);
	IR_LEAVE(other);
	return 0;
}

int main(int argc, char **argv)
{
	int first = argc > 1 ? atoi(argv[1]) : 0, last = argc > 2   ? atoi(argv[2])
							 : argc > 1 ? first + 1
								    : 4000;
	parts = argc == 2;
	for (int k = first; k < last; k++) {
		Ir a, b;
		ir_init(&a);
		ir_init(&b);
		int before = check_failed;
		state = (uint64_t)k * 0x9e3779b97f4a7c15u + 1;
		const Tree *t = NULL;
		CHECK_INT(random_case(&a, &t), 0);
		if (t)
			CHECK_INT(import_case(&b, t), 0);
		if (t && check_failed > before) {
			fprintf(stderr, "case %d, extents %d %d: ", k, (int)axis_extent(axis[0]),
				(int)axis_extent(axis[1]));
			print_tree(t);
			fputc('\n', stderr);
		}
		ir_free(&a);
		ir_free(&b);
		if (check_failed > 50)
			break;
	}
	return check_done();
}
