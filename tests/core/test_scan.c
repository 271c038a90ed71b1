/* test_scan.c - loops: their values against the same equations written out, both directions, all
 * lengths, nested; that equal loops are one and constants leave the body; copies into other Irs;
 * every refusal with its message; running out of memory. */
#include "core/core.h"
#include "jit/rewrite/rewrite.h"
#include "tests/check.h"
#include "tests/memory_check.h"

#include <stdlib.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

typedef struct Data {
	ricci_graph *g;
	int n;
	Binding bind[16];
	double value[16][64];
} Data;

/* An F64 input filled with small numbers. */
static ricci_tensor *input(Data *d, const char *name, int rank, const int64_t *shape)
{
	ricci_tensor *t = ricci_input(d->g, name, RICCI_F64, rank, shape);
	if (!t || !t->node)
		return t;
	for (int64_t i = 0; i < tensor_size(t->node); i++)
		d->value[d->n][i] = sin(1.7 * (double)i + 3 * d->n) * .8;
	d->bind[d->n] = (Binding){t->node, d->value[d->n]};
	d->n++;
	return t;
}

static ricci_tensor *length_input(Data *d, const char *name, int64_t v)
{
	ricci_tensor *t = ricci_input(d->g, name, RICCI_I64, 0, NULL);
	memcpy(d->value[d->n], &v, sizeof v);
	d->bind[d->n] = (Binding){t->node, d->value[d->n]};
	d->n++;
	return t;
}

static int values(Data *d, Node *t, double *out)
{
	Error err = {0};
	int code = interp_tensor(t, d->n, d->bind, (RandomState){1, 1}, out, NULL, &err);
	CHECK_REPORT(code == 0, "%s", err.text);
	return code;
}

static void agree(Data *d, ricci_tensor *a, ricci_tensor *b)
{
	double x[64], y[64];
	CHECK_GRAPH(d->g);
	if (ricci_graph_error(d->g) || values(d, a->node, x) || values(d, b->node, y))
		return;
	CHECK_INT(tensor_size(a->node), tensor_size(b->node));
	for (int64_t i = 0; i < tensor_size(a->node); i++)
		CHECK_NEAR(x[i], y[i], 1e-14);
}

/* h' = tanh(W h + U x + b), stacked: 2 h'. */
static int cell_loop(Data *d, ricci_tensor *length, int backwards, ricci_tensor **final,
		     ricci_tensor **stacked)
{
	ricci_graph *g = d->g;
	ricci_tensor *x = input(d, "x", 2, SHAPE(4, 3)), *h0 = input(d, "h0", 1, SHAPE(2));
	ricci_tensor *w = input(d, "w", 2, SHAPE(2, 2)), *u = input(d, "u", 2, SHAPE(2, 3));
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F64, 1, SHAPE(3));
	ricci_tensor *h = ricci_input(g, "h", RICCI_F64, 1, SHAPE(2));
	ricci_tensor *wh = ricci_op(g, "A[i] += W[i,j]*H[j]", w, h);
	ricci_tensor *ux = ricci_op(g, "B[i] += U[i,j]*X[j]", u, xt);
	ricci_tensor *next = ricci_op(g, "N[i] = tanh(A[i] + B[i])", wh, ux);
	ricci_tensor *out = ricci_op(g, "Y[i] = 2*H[i]", next);
	ricci_loop loop = RICCI_LOOP(.steps = 4, .length = length, .backwards = backwards,
				     .nslice = 1, .slice = &(ricci_slice){xt, x}, .ncarry = 1,
				     .carry = &(ricci_carry){h, h0, next}, .nout = 1, .out = &out);
	return ricci_scan(g, &loop, final, stacked);
}

/* The same written out for `length` steps. */
static void cell_unrolled(Data *d, int64_t length, int backwards, ricci_tensor **final,
			  ricci_tensor **stacked)
{
	ricci_graph *g = d->g;
	ricci_tensor *x = graph_handle(g, d->bind[d->n - 4].tensor);
	ricci_tensor *h = graph_handle(g, d->bind[d->n - 3].tensor);
	ricci_tensor *w = graph_handle(g, d->bind[d->n - 2].tensor);
	ricci_tensor *u = graph_handle(g, d->bind[d->n - 1].tensor);
	*stacked = ricci_op(g, "S[t,i] = H[i]*0.0 where t<4", h);
	for (int64_t k = 0; k < length; k++) {
		char text[200];
		int t = (int)(backwards ? length - 1 - k : k);
		snprintf(text, sizeof text,
			 "A[i] += W[i,j]*H[j]; B[i] += U[i,j]*X[%d,j]; N[i] = tanh(A[i] + B[i])",
			 t);
		h = ricci_op(g, text, w, h, u, x);
		snprintf(text, sizeof text, "S[t,i] = t == %d ? 2*H[i] : P[t,i]", t);
		*stacked = ricci_op(g, text, h, *stacked);
	}
	*final = h;
}

static void test_values(void)
{
	for (int64_t length = -1; length <= 4; length++)
		for (int backwards = 0; backwards < 2; backwards++) {
			Data d = {.g = ricci_graph_new()};
			ricci_tensor *final, *stacked, *f, *s;
			ricci_tensor *l = length < 0 ? NULL : length_input(&d, "len", length);
			CHECK_INT(cell_loop(&d, l, backwards, &final, &stacked), 0);
			CHECK_INT(ricci_rank(stacked), 2);
			CHECK_INT(ricci_extent(stacked, 0), 4);
			cell_unrolled(&d, length < 0 ? 4 : length, backwards, &f, &s);
			agree(&d, final, f);
			agree(&d, stacked, s);
			ricci_graph_free(d.g);
		}
}

static void test_length(void)
{
	for (int64_t length = -1; length < 6; length += 6) {
		Data d = {.g = ricci_graph_new()};
		ricci_tensor *final, *stacked;
		double out[8];
		Error err = {0};
		char message[200];
		ricci_tensor *l = length_input(&d, "len", length);
		cell_loop(&d, l, 0, &final, &stacked);
		CHECK_INT(interp_tensor(final->node, d.n, d.bind, (RandomState){1, 1}, out, NULL,
					&err),
			  RICCI_EVALUE);
		snprintf(message, sizeof message,
			 "a loop of at most 4 steps was given the length %d; it must be in 0..4",
			 (int)length);
		CHECK_STR(err.text, message);
		ricci_graph_free(d.g);
	}
}

/* a, b = b, a + b: both from the values before the step; an integer state, and no slices. */
static void test_states(void)
{
	Data d = {.g = ricci_graph_new()};
	ricci_graph *g = d.g;
	ricci_tensor *a = ricci_input(g, "a", RICCI_I64, 0, NULL);
	ricci_tensor *b = ricci_input(g, "b", RICCI_I64, 0, NULL);
	ricci_tensor *zero = ricci_op(g, "Z[] = i64(0)"), *one = ricci_op(g, "O[] = i64(1)");
	ricci_tensor *sum = ricci_op(g, "S[] = A[] + B[]", a, b), *final[2], *stacked[2];
	ricci_tensor *out[] = {a, sum};
	ricci_loop loop = RICCI_LOOP(.steps = 10, .ncarry = 2,
				     .carry = (ricci_carry[]){{a, zero, b}, {b, one, sum}},
				     .nout = 2, .out = out);
	CHECK_INT(ricci_scan(g, &loop, final, stacked), 0);
	CHECK_GRAPH(g);
	int64_t v[10] = {0};
	values(&d, final[0]->node, (double *)v);
	CHECK_INT(v[0], 55);
	values(&d, final[1]->node, (double *)v);
	CHECK_INT(v[0], 89);
	values(&d, stacked[0]->node, (double *)v);
	CHECK_INT(v[9], 34);
	values(&d, stacked[1]->node, (double *)v);
	CHECK_INT(v[9], 89);
	ricci_graph_free(g);
}

/* Into another Ir, twice: the same node there. */
static void copied(const Data *d, Node *y, double last)
{
	Ir other = {0};
	jmp_buf oom;
	ir_init(&other);
	other.arena.oom = &oom;
	if (!setjmp(oom)) {
		Data there = *d;
		double got[3] = {0};
		Node *copy = node_import(&other, y, NULL, NULL);
		CHECK(copy == node_import(&other, y, NULL, NULL) && copy != y);
		CHECK_INT(copy->hash, y->hash);
		for (int i = 0; i < d->n; i++)
			there.bind[i].tensor = node_import(&other, d->bind[i].tensor, NULL, NULL);
		values(&there, copy, got);
		CHECK(check_near(got[2], last, 1e-14));
	}
	ir_free(&other);
}

/* Y[r] = product over c of (X[r,c] + K + r-th state): the inner loop reads the outer's variables,
 * and starts from its state. */
/* Without an initial value a state starts from zeros: the same loop as with a tensor of zeros. */
static void test_zeros(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *h = ricci_input(g, "h", RICCI_F64, 2, SHAPE(2, 3));
	ricci_tensor *n = ricci_input(g, "n", RICCI_I32, 0, NULL);
	ricci_tensor *h1 = ricci_op(g, "Y[...] = 2*H[...] + 1", h);
	ricci_tensor *n1 = ricci_op(g, "N[] = n[] + 3", n);
	ricci_tensor *h0 = ricci_op(g, "Z[i,j] = f64(0) where i < 2, j < 3");
	ricci_tensor *n0 = ricci_op(g, "Z[] = i32(0)"), *last[2], *same[2];
	ricci_carry none[] = {{h, NULL, h1}, {n, NULL, n1}}, zero[] = {{h, h0, h1}, {n, n0, n1}};
	CHECK_INT(ricci_scan(g, &RICCI_LOOP(.steps = 4, .ncarry = 2, .carry = none), last, NULL),
		  0);
	CHECK_INT(ricci_scan(g, &RICCI_LOOP(.steps = 4, .ncarry = 2, .carry = zero), same, NULL),
		  0);
	CHECK_GRAPH(g);
	CHECK(last[0] == same[0] && last[1] == same[1]);
	double got[6];
	int64_t count;
	CHECK_INT(interp_tensor(last[0]->node, 0, NULL, (RandomState){0}, got, NULL, NULL), 0);
	for (int i = 0; i < 6; i++)
		CHECK_NEAR(got[i], 15, 0);
	CHECK_INT(interp_tensor(last[1]->node, 0, NULL, (RandomState){0}, &count, NULL, NULL), 0);
	CHECK_INT(count, 12);
	ricci_graph_free(g);
}

static void test_nested(void)
{
	Data d = {.g = ricci_graph_new()};
	ricci_graph *g = d.g;
	ricci_tensor *x = input(&d, "x", 2, SHAPE(3, 4)), *k = input(&d, "k", 0, NULL);
	ricci_tensor *s0 = input(&d, "s0", 0, NULL);
	ricci_tensor *row = ricci_input(g, "row", RICCI_F64, 1, SHAPE(4));
	ricci_tensor *s = ricci_input(g, "s", RICCI_F64, 0, NULL);
	ricci_tensor *e = ricci_input(g, "e", RICCI_F64, 0, NULL);
	ricci_tensor *p = ricci_input(g, "p", RICCI_F64, 0, NULL);
	ricci_tensor *next = ricci_op(g, "N[] = P[]*(E[] + K[] + S[])", p, e, k, s), *product, *y;
	ricci_loop inner = RICCI_LOOP(.steps = 4, .nslice = 1, .slice = &(ricci_slice){e, row},
				      .ncarry = 1, .carry = &(ricci_carry){p, s, next});
	CHECK_INT(ricci_scan(g, &inner, &product, NULL), 0);
	ricci_loop outer =
		RICCI_LOOP(.steps = 3, .nslice = 1, .slice = &(ricci_slice){row, x}, .ncarry = 1,
			   .carry = &(ricci_carry){s, s0, product}, .nout = 1, .out = &product);
	ricci_tensor *last;
	CHECK_INT(ricci_scan(g, &outer, &last, &y), 0);
	double got[3], state = d.value[2][0];
	values(&d, y->node, got);
	for (int r = 0; r < 3; r++) {
		double was = state;
		for (int c = 0; c < 4; c++)
			state *= d.value[0][4 * r + c] + d.value[1][0] + was;
		CHECK_NEAR(got[r], state, 1e-14);
	}
	values(&d, last->node, got);
	CHECK_NEAR(got[0], state, 1e-14);
	copied(&d, y->node, state);
	ricci_graph_free(g);
}

/* Equal loops of different variables are one; what no variable reaches stands outside. */
static void test_closing(void)
{
	Data d = {.g = ricci_graph_new()};
	ricci_graph *g = d.g;
	ricci_tensor *x = input(&d, "x", 1, SHAPE(3)), *c = input(&d, "c", 0, NULL), *y[2];
	ricci_tensor *unused = input(&d, "unused", 1, SHAPE(3));
	for (int i = 0; i < 2; i++) {
		ricci_tensor *v = ricci_input(g, i ? "v" : "w", RICCI_F64, 0, NULL);
		ricci_tensor *u = ricci_input(g, i ? "u1" : "u2", RICCI_F64, 0, NULL);
		ricci_tensor *e = ricci_op(g, "E[] = exp(C[]*2)", c);
		ricci_tensor *out = ricci_op(g, "Y[] = V[]*E[]", v, e);
		ricci_loop l = RICCI_LOOP(.steps = 3, .nslice = 2,
					  .slice = (ricci_slice[]){{u, unused}, {v, x}}, .nout = 1,
					  .out = &out);
		CHECK_INT(ricci_scan(g, &l, NULL, &y[i]), 0);
	}
	CHECK(y[0] == y[1]);
	const Scan *scan = scan_of(y[0]->node);
	CHECK_INT(scan->nslice, 1);
	CHECK_INT(scan->nconst, 1);
	CHECK_INT(tensor_rank(scan_operands(y[0]->node)[1]), 0);
	CHECK_INT(scan_operands(y[0]->node)[1]->op, OP_COMP); /* exp is outside */
	/* a region's inner part stays inside, its result is not one of the graph's other tensors */
	ricci_tensor *z = ricci_op(g, "Z[i] = exp(sin(X[i]))", x), *r;
	CHECK_INT(ricci_recompute(g, 1, &x, 1, &z, &r), 0);
	CHECK(r != z);
	agree(&d, r, z);
	ricci_graph_free(g);
}

static void test_show(void)
{
	Data d = {.g = ricci_graph_new()};
	ricci_tensor *final, *stacked;
	cell_loop(&d, length_input(&d, "n", 3), 1, &final, &stacked);
	ricci_tensor *y = ricci_op(d.g, "Y[i] += S[t,i]*F[i]", stacked, final);
	char *text = ricci_show(y);
	CHECK_STR(text, "loop 4, n of them, backwards {\n"
			"\tslice V1 = x;\n"
			"\tstate V2 = h0;\n"
			"\tconstant V3 = w;\n"
			"\tconstant V4 = u;\n"
			"\tT3[i] += V3[i,j]*V2[j];\n"
			"\tT4[i] += V4[i,j]*V1[j];\n"
			"\tT5[i] = tanh(T3[i] + T4[i]);\n"
			"\tT6[i] = 2*T5[i];\n"
			"\tnext V2 = T5;\n"
			"\tfinal T1 = V2;\n"
			"\tstack T2 = T6;\n"
			"}\n"
			"Y[i] += T2[j,i]*T1[i];\n");
	ricci_free_text(text);
	text = ricci_show(stacked);
	CHECK(strstr(text, "stack t") != NULL);
	ricci_free_text(text);
	ricci_graph_free(d.g);
}

/* a depends on b, c on both and nobody asks for it; k never changes. */
static void test_shrink(void)
{
	Data d = {.g = ricci_graph_new()};
	ricci_graph *g = d.g;
	ricci_tensor *x = input(&d, "x", 1, SHAPE(3)), *y = input(&d, "y", 1, SHAPE(3)), *v[6];
	const char *names[] = {"a", "b", "c", "k", "xt", "yt"};
	ricci_tensor *start = input(&d, "start", 0, NULL), *final[4], *stacked[2];
	for (int k = 0; k < 6; k++)
		v[k] = ricci_input(g, names[k], RICCI_F64, 0, NULL);
	ricci_tensor *a = ricci_op(g, "N[] = A[]*B[] + K[]", v[0], v[1], v[3]);
	ricci_tensor *b = ricci_op(g, "N[] = B[] + X[]", v[1], v[4]);
	ricci_tensor *c = ricci_op(g, "N[] = C[] + Y[]*A[]*B[]", v[2], v[5], v[0], v[1]);
	ricci_carry carry[] = {
		{v[0], start, a}, {v[1], start, b}, {v[2], start, c}, {v[3], start, v[3]}};
	ricci_loop l = RICCI_LOOP(.steps = 3, .nslice = 2,
				  .slice = (ricci_slice[]){{v[4], x}, {v[5], y}}, .ncarry = 4,
				  .carry = carry, .nout = 2, .out = (ricci_tensor *[]){c, v[0]});
	CHECK_INT(ricci_scan(g, &l, final, stacked), 0);
	CHECK_GRAPH(g);
	jmp_buf oom;
	Node *root[] = {final[0]->node, stacked[1]->node, final[3]->node};
	g->ir.arena.oom = &oom;
	if (setjmp(oom))
		return;
	scans_shrink(&g->ir, 3, root);
	const Scan *s = scan_of(root[0]);
	CHECK(s->nslice == 1 && s->nstate == 2 && s->nconst == 1);
	CHECK(scan_same_run(root[0], root[1]));
	CHECK(root[2] == start->node);
	agree(&d, final[0], graph_handle(g, root[0]));
	agree(&d, stacked[1], graph_handle(g, root[1]));
	Node *again = root[0];
	scans_shrink(&g->ir, 1, &again);
	CHECK(again == root[0]);
	ricci_graph_free(g);
}

/* A state that adds up a step's product of two vectors: the product leaves the loop where only the last sum is
 * asked for, and not where all sums are. */
static void test_sums(bool all)
{
	Data d = {.g = ricci_graph_new()};
	ricci_graph *g = d.g;
	ricci_tensor *x = input(&d, "x", 2, SHAPE(17, 3)), *y = input(&d, "y", 2, SHAPE(17, 1));
	ricci_tensor *start = input(&d, "start", 2, SHAPE(3, 1)), *final;
	ricci_tensor *xt = ricci_input(g, "xt", RICCI_F64, 1, SHAPE(3));
	ricci_tensor *yt = ricci_input(g, "yt", RICCI_F64, 1, SHAPE(1));
	ricci_tensor *sum = ricci_input(g, "sum", RICCI_F64, 2, SHAPE(3, 1));
	ricci_carry carry = {sum, start, ricci_op(g, "N[i,j] = S[i,j] + X[i]*Y[j]", sum, xt, yt)};
	ricci_loop l =
		RICCI_LOOP(.steps = 17, .nslice = 2, .slice = (ricci_slice[]){{xt, x}, {yt, y}},
			   .ncarry = 1, .carry = &carry);
	CHECK_INT(ricci_scan(g, &l, &final, NULL), 0);
	jmp_buf oom;
	g->ir.arena.oom = &oom;
	if (setjmp(oom))
		return;
	ScanCall call = {(Scan *)scan_of(final->node), (Node **)scan_operands(final->node), NULL};
	Node *root[] = {final->node, all ? scan_ends(&g->ir, &call, 0) : final->node};
	ricci_tensor *ends = graph_handle(g, root[1]);
	rewrite_scans(&g->ir, 2, root);
	CHECK_INT(root[0]->op == OP_SCAN, all);
	agree(&d, final, graph_handle(g, root[0]));
	agree(&d, ends, graph_handle(g, root[1]));
	ricci_graph_free(g);
}

/* A loop that looks up a table of five lines by a step's element of some labels. */
typedef struct Contract {
	Data d;
	ricci_tensor *table, *ids, *id, *out, *y;
} Contract;

static void contract_new(Contract *c)
{
	*c = (Contract){.d = {.g = ricci_graph_new()}};
	c->table = input(&c->d, "table", 2, SHAPE(5, 2));
	c->ids = ricci_input(c->d.g, "ids", RICCI_I32, 1, SHAPE(3));
	c->id = ricci_input(c->d.g, "id", RICCI_I32, 0, NULL);
	c->out = ricci_op(c->d.g, "Y[j] = T[I[],j]", c->table, c->id);
}

static int contract_scan(Contract *c, ricci_tensor *labels)
{
	ricci_loop l = RICCI_LOOP(.steps = 3, .nslice = 1, .slice = &(ricci_slice){c->id, labels},
				  .nout = 1, .out = &c->out);

	return ricci_scan(c->d.g, &l, NULL, &c->y);
}

/* Labels that are reversed in time are data, too; what is computed of them is not. */
static void test_moved_contract(void)
{
	Contract c;
	contract_new(&c);
	ricci_graph *g = c.d.g;
	ricci_tensor *back = ricci_op(g, "Y[t] = I[2-t]", c.ids),
		     *more = ricci_op(g, "Y[t] = I[t]+1", c.ids);
	CHECK_INT(contract_scan(&c, back), 0);
	CHECK_INT(c.ids->need_lo, 0);
	CHECK_INT(c.ids->need_hi, 4);
	CHECK(ricci_op(g, "Y[t,j] = T[I[t]+1,j]", c.table, back) != NULL);
	CHECK_INT(c.ids->need_hi, 3);
	CHECK_GRAPH(g);
	CHECK_INT(contract_scan(&c, more), RICCI_ESHAPE);
	CHECK_STR(
		ricci_error_message(),
		"ricci_scan: id is computed, so nothing checks that its values stay in 0..4 where "
		"it indexes; write else there, or clamp with min and max");
	ricci_graph_free(g);
}

static void test_contract(void)
{
	Contract c;
	contract_new(&c);
	ricci_graph *g = c.d.g;
	CHECK_INT(contract_scan(&c, c.ids), 0);
	CHECK_GRAPH(g);
	CHECK_INT(c.ids->need_lo, 0);
	CHECK_INT(c.ids->need_hi, 4);
	ricci_tensor *zero = ricci_op(g, "Z[] = i32(0)");
	ricci_loop l =
		RICCI_LOOP(.steps = 3, .ncarry = 1, .carry = &(ricci_carry){c.id, zero, c.id},
			   .nout = 1, .out = &c.out);
	CHECK_INT(ricci_scan(g, &l, NULL, &c.y), RICCI_ESHAPE);
	CHECK_STR(ricci_error_message(),
		  "ricci_scan: id is carried, so nothing checks that its values stay in 0..4 where "
		  "it indexes; write else there, or clamp with min and max");
	ricci_graph_free(g);
}

typedef struct Parts {
	ricci_graph *g;
	ricci_tensor *x, *h0, *xt, *h, *next, *other, *final[2], *stacked[2];
	ricci_slice slice[2];
	ricci_carry carry[2];
	ricci_tensor *out[2];
	ricci_loop loop;
} Parts;

static void parts_new(Parts *p)
{
	*p = (Parts){.g = ricci_graph_new()};
	p->x = ricci_input(p->g, "x", RICCI_F32, 2, SHAPE(4, 3));
	p->h0 = ricci_input(p->g, "h0", RICCI_F32, 1, SHAPE(3));
	p->xt = ricci_input(p->g, "xt", RICCI_F32, 1, SHAPE(3));
	p->h = ricci_input(p->g, "h", RICCI_F32, 1, SHAPE(3));
	p->next = ricci_op(p->g, "N[i] = H[i] + X[i]", p->h, p->xt);
	p->other = ricci_input(p->g, "other", RICCI_F32, 1, SHAPE(5));
	p->slice[0] = (ricci_slice){p->xt, p->x};
	p->carry[0] = (ricci_carry){p->h, p->h0, p->next};
	p->out[0] = p->next;
	p->loop = RICCI_LOOP(.steps = 4, .nslice = 1, .slice = p->slice, .ncarry = 1,
			     .carry = p->carry, .nout = 1, .out = p->out);
}

#define REFUSED(change, code, message)                                                             \
	do {                                                                                       \
		Parts p;                                                                           \
		parts_new(&p);                                                                     \
		change;                                                                            \
		CHECK_INT(ricci_scan(p.g, &p.loop, p.final, p.stacked), code);                     \
		CHECK_STR(ricci_error_message(), message);                                         \
		CHECK(p.stacked[0] == &p.g->nil && p.final[0] == &p.g->nil);                       \
		ricci_graph_free(p.g);                                                             \
	} while (0)

static void test_refusals(void)
{
	REFUSED(p.loop.steps = 0, RICCI_EINVAL,
		"ricci_scan: the number of steps is 0, it must be 1 or more");
	REFUSED(p.loop.segment = -2, RICCI_EINVAL,
		"ricci_scan: segment is -2; 0 keeps the states of all steps");
	REFUSED(p.loop.steps = 5, RICCI_ESHAPE,
		"ricci_scan: x is f32 4x3, but a tensor that is sliced has as many rows as the "
		"loop "
		"has steps, 5");
	REFUSED(p.slice[0].variable = p.other, RICCI_ESHAPE,
		"ricci_scan: the variable other is f32 5, but a slice of x is f32 3");
	REFUSED(p.slice[0].variable = ricci_input(p.g, "d", RICCI_F64, 1, SHAPE(3)), RICCI_ETYPE,
		"ricci_scan: the variable d is f64 3, but a slice of x is f32 3");
	REFUSED(p.slice[0].variable = p.next, RICCI_EINVAL,
		"ricci_scan: N is no input, so it can't stand for a step's value; make the "
		"variable "
		"by ricci_input");
	REFUSED(p.slice[0].tensor = NULL, RICCI_EINVAL,
		"ricci_scan: the tensor of slice 0 is not a tensor of this graph");
	REFUSED(p.carry[0].variable = p.other, RICCI_ESHAPE,
		"ricci_scan: the variable other is f32 5, but its initial value h0 is f32 3");
	REFUSED(p.carry[0].next = p.other, RICCI_ESHAPE,
		"ricci_scan: the variable h is f32 3, but its next value other is f32 5");
	REFUSED(p.carry[0].variable = p.xt, RICCI_EINVAL,
		"ricci_scan: xt is the variable of two parts of the loop");
	REFUSED(p.loop.length = p.h0, RICCI_ETYPE,
		"ricci_scan: the length h0 is f32 3; a scalar i32 or i64 would be right");
	REFUSED(p.loop.length = ricci_input(p.g, "n", RICCI_U8, 0, NULL), RICCI_ETYPE,
		"ricci_scan: the length n is u8 scalar; a scalar i32 or i64 would be right");
	REFUSED(p.out[0] = NULL, RICCI_EINVAL, "ricci_scan: out 0 is not a tensor of this graph");
	REFUSED(p.loop.steps = INT64_C(1) << 39; p.slice[0].tensor = p.loop.nslice-- ? p.x : NULL;
		p.out[0] = ricci_input(p.g, "big", RICCI_F64, 2, SHAPE(1 << 20, 1 << 20)),
		RICCI_ESHAPE,
		"ricci_scan: the size of 549755813888 steps of big overflows 64 bits");
	REFUSED(p.out[0] = ricci_input(p.g, "r", RICCI_F32, 16,
				       SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)),
		RICCI_ESHAPE,
		"ricci_scan: r has rank 16, so its steps can't be stacked: 15 is the most");
	ricci_graph *frozen = NULL;
	REFUSED((graph_ref(p.g), frozen = p.g), RICCI_EINVAL,
		"ricci_scan: the graph has sessions and can't change any more");
	ricci_graph_free(frozen); /* lives as long as its last session */
	CHECK_INT(ricci_scan(NULL, NULL, NULL, NULL), RICCI_EINVAL);
	CHECK_INT(ricci_recompute(NULL, 0, NULL, 0, NULL, NULL), RICCI_EINVAL);
	Parts p;
	parts_new(&p);
	CHECK_INT(ricci_recompute(p.g, 1, NULL, 0, NULL, NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "ricci_recompute: from, y and results must be given");
	ricci_graph_free(p.g);
}

static int build(void)
{
	ricci_graph *g = ricci_graph_new();
	if (!g)
		return RICCI_ENOMEM;
	Data d = {.g = g};
	ricci_tensor *final, *stacked;
	cell_loop(&d, NULL, 1, &final, &stacked);
	int code = ricci_graph_error(g);
	double out[8];
	Error err = {0};
	if (!code)
		code = interp_tensor(stacked->node, d.n, d.bind, (RandomState){1, 1}, out, NULL,
				     &err);
	ricci_graph_free(g);
	return code;
}

int main(void)
{
	test_values();
	test_length();
	test_states();
	test_zeros();
	test_nested();
	test_closing();
	test_show();
	test_shrink();
	test_sums(false);
	test_sums(true);
	test_contract();
	test_moved_contract();
	test_refusals();
	check_memory(build);
	return check_done();
}
