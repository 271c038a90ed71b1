/* program.h - random programs: chains of equations made of nodes, over F64 inputs with data, and
 * what runs a test in an Ir of its own. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "tests/autodiff/harness.h"

static void fill(Bench *b, int k, double low, double high)
{
	int64_t n = tensor_size(b->bind[k].tensor);
	for (int64_t e = 0; e < n; e++)
		bench_data(b, k)[e] = draw_float(low, high);
}

static Node *filled(Bench *b, int rank, const int64_t *shape, double low, double high)
{
	const char *name = arena_printf(&b->ir.arena, "x%d", b->n);
	Node *t = bench_input(b, name, RICCI_F64, rank, shape);
	fill(b, b->n - 1, low, high);
	return t;
}

/* Runs f in an Ir of its own; false where a check failed. */
static bool in_bench(void (*f)(Bench *b, int which), int which)
{
	Bench b = {0};
	jmp_buf oom;
	int before = check_failed;
	ir_init(&b.ir);
	b.ir.arena.oom = &oom;
	if (setjmp(oom))
		CHECK_REPORT(false, "jump: %s", b.ir.err.text);
	else
		f(&b, which);
	ir_free(&b.ir);
	return check_failed == before;
}

/* ---- random programs: a chain of equations, made of nodes */

typedef struct Program {
	Bench *b;
	Ir *ir;
	int naxis, ntensor;
	Node *axes[5], *tensor[24];
} Program;

static Node *random_index(Program *p)
{
	Ir *ir = p->ir;
	Node *e = p->axes[draw(p->naxis)];
	if (draw(3) == 0)
		e = node_add(ir, node_scale(ir, e, 1 + draw(3)), p->axes[draw(p->naxis)]);
	if (draw(6) == 0)
		e = node_scale(ir, e, -1 - draw(2));
	if (draw(5) == 0)
		e = node_floordiv(ir, node_add(ir, e, node_int(ir, draw(4))), 2 + draw(3));
	else if (draw(5) == 0)
		e = node_floormod(ir, node_add(ir, e, node_int(ir, draw(4))), 2 + draw(3));
	return e;
}

/* A read of a new input, exactly as large as its indices need. */
static Node *read_new(Program *p)
{
	Node *index[4];
	int64_t shape[4];
	int rank = (int)draw(4);
	for (int d = 0; d < rank; d++) {
		Node *e = random_index(p);
		index[d] = node_add(p->ir, e, node_int(p->ir, -e->lo));
		shape[d] = index[d]->hi + 1;
	}
	Node *t = filled(p->b, rank, shape, 0.2, 1.4);
	p->tensor[p->ntensor++] = t;
	return node_read(p->ir, t, index);
}

/* An index out of a new integer tensor, of values -1..3. */
static Node *gathered(Program *p)
{
	Bench *b = p->b;
	Node *axis = p->axes[draw(p->naxis)];
	int64_t extent = axis_extent(axis);
	const char *name = arena_printf(&b->ir.arena, "t%d", b->n);
	Node *t = bench_input(b, name, RICCI_I64, 1, &extent);
	for (int64_t e = 0; e < extent; e++)
		((int64_t *)(uintptr_t)b->bind[b->n - 1].data)[e] = draw(5) - 1;
	return node_read(p->ir, t, &axis);
}

/* A read of a tensor that is there, padded where it can leave it. */
static Node *read_old(Program *p)
{
	Ir *ir = p->ir;
	Node *t = p->tensor[draw(p->ntensor)], *index[RICCI_MAX_RANK];
	Node *inside = node_const_int(ir, RICCI_BOOL, 1);
	for (int d = 0; d < tensor_rank(t); d++) {
		int64_t extent = tensor_extent(t, d);
		Node *e = random_index(p);
		index[d] = p->b->n < 20 && draw(8) == 0
				   ? gathered(p)
				   : node_add(ir, e, node_int(ir, draw(3) - 1 - e->lo));
		inside = node2(ir, OP_AND, inside, node2(ir, OP_LE, node_int(ir, 0), index[d]));
		inside =
			node2(ir, OP_AND, inside, node2(ir, OP_LT, index[d], node_int(ir, extent)));
	}
	return node_select(ir, inside, node_read(ir, t, index), node_const(ir, RICCI_F64, 0.7));
}

static Node *random_value(Program *p, int depth)
{
	static const Op unary[] = {OP_SIN, OP_TANH, OP_SIGMOID, OP_ABS, OP_NEG, OP_ERF, OP_COS};
	static const Op binary[] = {OP_ADD, OP_MUL, OP_SUB, OP_MAX, OP_MIN, OP_MUL, OP_ADD};
	Ir *ir = p->ir;
	if (depth == 0 || draw(6) == 0) {
		if (p->ntensor && draw(2))
			return read_old(p);
		if (p->ntensor < 12 && draw(8))
			return read_new(p);
		return node_const(ir, RICCI_F64, draw_float(0.3, 1.7));
	}
	Node *x = random_value(p, depth - 1), *y, *c;
	switch (draw(6)) {
	case 0:
		return node1(ir, unary[draw(COUNT(unary))], x);
	case 1:
		y = node_add(ir, node1(ir, OP_SIN, random_value(p, depth - 1)),
			     node_const(ir, RICCI_F64, 2.5));
		return node2(ir, OP_DIV, x, y);
	case 2:
		y = random_value(p, depth - 1);
		c = draw(2) ? node2(ir, OP_LT, random_index(p), node_int(ir, draw(4)))
			    : node2(ir, OP_LT, x, random_value(p, depth - 1));
		return node_select(ir, c, draw(2) ? node_mul(ir, x, y) : x, y);
	default:
		return node2(ir, binary[draw(COUNT(binary))], x, random_value(p, depth - 1));
	}
}

static Node *random_equation(Program *p)
{
	static const Reduce reduces[] = {RED_ADD, RED_ADD, RED_ADD, RED_MAX, RED_MIN, RED_MUL};
	Ir *ir = p->ir;
	Reduce red = reduces[draw(COUNT(reduces))];
	p->naxis = 1 + (int)draw(3);
	for (int k = 0; k < p->naxis; k++)
		p->axes[k] = node_axis(ir, k, 1 + draw(4));
	Node *body = random_value(p, 1 + (int)draw(3));
	int rank = (int)draw(p->naxis + 1);
	if (rank == p->naxis)
		red = RED_NONE;
	if (red == RED_ADD && draw(4) == 0) {
		Node *e = random_index(p), *at = node_add(ir, e, node_int(ir, -e->lo));
		int64_t extent = at->hi + 1;
		return comp_make(ir, red, 1, &extent, &at, p->naxis, p->axes, body);
	}
	return comp_dense(ir, red, rank, p->naxis, p->axes, body);
}

/* The last of a few equations over each other. */
static inline Node *random_chain(Bench *b)
{
	Program p = {.b = b, .ir = &b->ir};
	int n = 1 + (int)draw(3);
	Node *y = NULL;
	for (int k = 0; k < n; k++) {
		y = random_equation(&p);
		p.tensor[p.ntensor++] = y;
	}
	return y;
}

/* Is op a scalar operator that has a derivative to test? */
static inline bool program_differentiable(int op)
{
	bool scalar = op_info[op].form == FORM_CALL || op == OP_ADD || op == OP_SUB ||
		      op == OP_MUL || op == OP_DIV || op == OP_NEG;
	return scalar && op != OP_STOP && op != OP_TF32 && op != OP_RANDOM && op != OP_NORMAL;
}

#endif
