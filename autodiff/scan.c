/* scan.c - gradients and tangents of loops, which are loops.
 *
 * The steps of a loop compute (next, value) = f(slices, states, constants). Reverse mode is a loop
 * the other way whose states are the adjoints of the states; a step of it is reverse mode of f's
 * graph, at the variables that the step had:
 *	d state, d slice, d constant = f'(..) applied to (d next, d value)
 * Gradients of slices are stacked, those of constants added up by further states, that of an
 * initial state is its adjoint after the last step. Forward mode is a loop the same way over the
 * tangents. What the steps had: states from the stacks of their values before each step; of the
 * rest of a step so much that neither sums nor inner loops are computed again (keep.c), or, in a
 * loop that is to save memory (recompute), nothing. Invariant: loops made here are over the steps of
 * the given one, with its length; so a number drawn in step t is drawn again.
 */
#include "autodiff/internal.h"

typedef enum { SLICE, STATE, CONSTANT, NKIND } Kind;

typedef struct Variable {
	Node *var, *operand, *next;
} Variable;

typedef struct List {
	int n, room;
	Variable *at;
} List;

/* A loop around the steps of another one. */
typedef struct Around {
	Ir *ir;
	Node *scan; /* a result of the other one */
	const Scan *of;
	Node *const *operand; /* of its variables */
	int nvar, nresult;
	Node *const *result;
	bool *reads; /* of next[k], then of the results' values: one of each variable (find_reads) */
	List list[NKIND];
	int nstacked;
	Node **stacked;
	ScanCall call;
} Around;

static Around around_new(Ir *ir, int nresult, Node *const *result)
{
	const Scan *of = scan_of(result[0]);
	Around a = {.ir = ir, .scan = result[0], .of = of, .nresult = nresult, .result = result};
	a.operand = scan_operands(a.scan) + of->has_length;
	a.nvar = of->nslice + of->nstate + of->nconst;
	a.stacked = arena_alloc(&ir->arena, sizeof *a.stacked * (size_t)(nresult + a.nvar + 1));
	return a;
}

/* Returns the variable's number among its kind. */
static int add(Around *a, Kind kind, Node *var, Node *operand, Node *next)
{
	List *l = &a->list[kind];
	l->at = arena_grow(&a->ir->arena, l->at, l->n, &l->room, sizeof *l->at);
	l->at[l->n] = (Variable){var, operand, next};
	return l->n++;
}

/* A variable like t, of this type, by a name that no body has. */
static Node *fresh(Ir *ir, char letter, int k, const Node *t, Type type)
{
	return tensor_variable(ir, arena_printf(&ir->arena, "%%%c%d", letter, k), type, t);
}

/* Has t no rank left for the steps? */
static bool is_full(const Node *t)
{
	return tensor_rank(t) == RICCI_MAX_RANK;
}

/* What the other loop's steps had, as variables of this one: those that nothing reads are left out
 * when it is closed. Full states are sums of gradients, which are added to and not read. */
static void add_steps(Around *a)
{
	const Scan *of = a->of;
	ScanCall call = {(Scan *)of, (Node **)scan_operands(a->scan), NULL};
	for (int k = 0; k < a->nvar; k++)
		if (k < of->nslice)
			add(a, SLICE, of->var[k], a->operand[k], NULL);
		else if (k < of->nslice + of->nstate && !is_full(of->var[k]))
			add(a, SLICE, of->var[k], scan_stack(a->ir, &call, of->var[k]), NULL);
		else if (k >= of->nslice + of->nstate)
			add(a, CONSTANT, of->var[k], a->operand[k], NULL);
}

/* What is kept of a step beside its variables, for what this loop computes by now. */
static void add_kept(Around *a)
{
	const Scan *of = a->of;
	const List *states = &a->list[STATE];
	ScanCall call = {(Scan *)of, (Node **)scan_operands(a->scan), NULL};
	Arena *arena = &a->ir->arena;
	size_t room = (size_t)(of->nstate + a->nresult + states->n + a->nstacked + 1);
	Node **root = arena_alloc(arena, sizeof *root * room), **step;
	int n = 0, nstep = 0, nroot = 0;
	if (of->recompute)
		return;
	for (int k = 0; k < of->nstate; k++)
		root[n++] = of->next[k];
	for (int k = 0; k < a->nresult; k++)
		root[n++] = a->result[k]->u.result->value;
	n = graph_order(a->ir, n, root, &step);
	bool *stacked = arena_alloc(arena, (size_t)n + 1);
	for (int k = 0; k < n; k++) {
		if (step[k]->op == OP_INPUT)
			continue;
		for (int i = 0; i < a->nresult; i++)
			stacked[nstep] |= a->result[i]->u.result->final < 0 &&
					  a->result[i]->u.result->value == step[k];
		step[nstep++] = step[k];
	}
	for (int k = 0; k < states->n; k++)
		root[nroot++] = states->at[k].next;
	for (int k = 0; k < a->nstacked; k++)
		root[nroot++] = a->stacked[k];
	Node **kept = arena_alloc(arena, sizeof *kept * ((size_t)nstep + 1));
	n = keep_tensors(a->ir, nstep, step, stacked, nroot, root, kept);
	for (int k = 0; k < n; k++)
		add(a, SLICE, kept[k], scan_stack(a->ir, &call, kept[k]), NULL);
}

/* Which variables each root reads, or read in earlier steps by way of states: float ones, since
 * nothing flows through others. */
static void find_reads(Around *a)
{
	int nroot = a->of->nstate + a->nresult, nslice = a->of->nslice;
	a->reads = arena_alloc(&a->ir->arena, (size_t)(nroot * a->nvar + 1));
	for (int k = 0; k < nroot; k++) {
		Node **order, *root = k < a->of->nstate
					      ? a->of->next[k]
					      : a->result[k - a->of->nstate]->u.result->value;
		int n = graph_order_hidden(a->ir, 1, &root, &order);
		for (int i = 0; i < n; i++)
			for (int v = 0; v < a->nvar && order[i]->op == OP_INPUT; v++)
				a->reads[k * a->nvar + v] |= order[i] == a->of->var[v];
	}
	/* The transitive closure (Warshall 1962): way by way through one more state. */
	for (int s = 0; s < a->of->nstate; s++)
		for (int k = 0; k < nroot && type_is_float((Type)a->of->next[s]->type); k++)
			for (int v = 0; v < a->nvar && a->reads[k * a->nvar + nslice + s]; v++)
				a->reads[k * a->nvar + v] |= a->reads[s * a->nvar + v];
}

/* Marks the float states into which what is marked flows. */
static void spread(const Around *a, bool *var)
{
	for (int k = 0; k < a->of->nstate; k++)
		for (int v = 0; v < a->nvar && type_is_float((Type)a->of->next[k]->type); v++)
			var[a->of->nslice + k] |= a->reads[k * a->nvar + v] && var[v];
}

static void close_around(Around *a, bool backwards)
{
	add_kept(a);
	Arena *arena = &a->ir->arena;
	size_t room = 2;
	for (int kind = 0; kind < NKIND; kind++)
		room += (size_t)a->list[kind].n;
	Scan spec = {.bound = a->of->bound,
		     .given = a->of->given,
		     .backwards = backwards,
		     .has_length = a->of->has_length,
		     .recompute = a->of->recompute,
		     .nslice = a->list[SLICE].n,
		     .nstate = a->list[STATE].n,
		     .nconst = a->list[CONSTANT].n,
		     .var = arena_alloc(arena, sizeof(Node *) * room),
		     .next = arena_alloc(arena, sizeof(Node *) * room)};
	Node **operand = arena_alloc(arena, sizeof *operand * room);
	int n = 0;
	if (spec.has_length)
		operand[0] = scan_operands(a->scan)[0];
	for (int kind = 0; kind < NKIND; kind++)
		for (int k = 0; k < a->list[kind].n; k++) {
			const Variable *v = &a->list[kind].at[k];
			operand[spec.has_length + n] = v->operand;
			spec.var[n++] = v->var;
			if (kind == STATE)
				spec.next[k] = v->next;
		}
	a->call = scan_close(a->ir, &spec, operand, a->nstacked, a->stacked, true);
}

/* Returns its number among the stacks. */
static int add_stack(Around *a, Node *value)
{
	a->stacked[a->nstacked] = value;
	return a->nstacked++;
}

static Node *stacked_at(Around *a, int k)
{
	return scan_stack(a->ir, &a->call, a->call.result[k]);
}

/* ---- reverse mode ---- */

typedef struct Back {
	Around a;
	const bool *wanted; /* of the variables' operands */
	bool *carried;	    /* variables that are states with an adjoint */
	Node **start;	    /* by variable: the gradient of the state's last value; NULL: zero */
	int nroot, nwrt;
	Node **root, **seed, **wrt, **grad;
	int *at, *place; /* by wrt: the variable, and what holds its gradient among its kind */
} Back;

static Back back_new(Ir *ir, int nresult, Node *const *result, const bool *wanted)
{
	Arena *arena = &ir->arena;
	Back b = {.a = around_new(ir, nresult, result)};
	size_t nvar = (size_t)b.a.nvar + 1, room = (nvar + (size_t)nresult) * sizeof(Node *);
	b.wanted = wanted + b.a.of->has_length;
	b.carried = arena_alloc(arena, nvar);
	b.start = arena_alloc(arena, room);
	b.root = arena_alloc(arena, room);
	b.seed = arena_alloc(arena, room);
	b.wrt = arena_alloc(arena, room);
	b.grad = arena_alloc(arena, room);
	b.at = arena_alloc(arena, sizeof *b.at * nvar);
	b.place = arena_alloc(arena, sizeof *b.place * nvar);
	find_reads(&b.a);
	return b;
}

/* A state has an adjoint when a wanted operand flows into it, and it into a given gradient. */
static void find_carried(Back *b, Node *const *dresult)
{
	const Scan *of = b->a.of;
	bool *into = arena_alloc(&b->a.ir->arena, (size_t)b->a.nvar + 1);
	for (int v = 0; v < b->a.nvar; v++)
		into[v] = b->wanted[v];
	spread(&b->a, into);
	for (int k = 0; k < b->a.nresult; k++) {
		int final = b->a.result[k]->u.result->final, root = of->nstate + k;
		if (final >= 0) {
			b->start[of->nslice + final] = dresult[k];
			b->carried[of->nslice + final] = true;
			root = final;
		}
		for (int v = of->nslice; v < of->nslice + of->nstate; v++)
			b->carried[v] |= b->a.reads[root * b->a.nvar + v];
	}
	for (int v = of->nslice; v < of->nslice + of->nstate; v++)
		b->carried[v] &= into[v] && type_is_float((Type)of->var[v]->type);
}

static void add_root(Back *b, Node *root, Node *seed)
{
	b->root[b->nroot] = root;
	b->seed[b->nroot++] = seed;
}

/* The step's roots with their adjoints, which are variables, and what it is differentiated by. */
static void set_step(Back *b, Node *const *dresult)
{
	Around *a = &b->a;
	const Scan *of = a->of;
	for (int k = 0; k < of->nstate; k++)
		if (b->carried[of->nslice + k])
			add_root(b, of->next[k],
				 fresh(a->ir, 'g', k, of->next[k], (Type)of->next[k]->type));
	for (int k = 0; k < a->nresult; k++) {
		Node *value = a->result[k]->u.result->value, *seed = dresult[k];
		if (a->result[k]->u.result->final >= 0)
			continue;
		if (!node_is_const(seed)) {
			seed = fresh(a->ir, 'y', k, value, (Type)value->type);
			add(a, SLICE, seed, dresult[k], NULL);
		}
		add_root(b, value, seed);
	}
	for (int v = 0; v < a->nvar; v++) {
		bool state = v >= of->nslice && v < of->nslice + of->nstate;
		if (!type_is_float((Type)of->var[v]->type) ||
		    !(state ? b->carried[v] : b->wanted[v]))
			continue;
		b->at[b->nwrt] = v;
		b->wrt[b->nwrt++] = of->var[v];
	}
}

/* t, which can be a CONST, element by element in another type; plus `more` of that type, if given.
 */
static Node *sum_typed(Ir *ir, const Node *like, Node *t, Type type, Node *more)
{
	Node *axes[RICCI_MAX_RANK];
	int rank = tensor_rank(like);
	tensor_axes(ir, like, axes);
	Node *body = node_cast(ir, type, tensor_read(ir, t, axes));
	if (more)
		body = node_add(ir, node_read(ir, more, axes), body);
	return comp_dense(ir, RED_NONE, rank, rank, axes, body);
}

/* Is the gradient of variable v a sum over the steps in a state? Else it is a row of a stack. */
static bool is_summed(const Scan *of, int v)
{
	return v >= of->nslice && (of->bound > 1 || is_full(of->var[v]));
}

/* Where the gradient of wrt[i] goes. */
static void set_gradient(Back *b, int i)
{
	Around *a = &b->a;
	const Scan *of = a->of;
	int v = b->at[i], state = v - of->nslice;
	Node *var = of->var[v], *grad = b->grad[i];
	if (state >= 0 && state < of->nstate) {
		b->place[i] = add(a, STATE, fresh(a->ir, 'g', state, var, (Type)var->type),
				  gradient_tensor(a->ir, var, b->start[v]),
				  gradient_tensor(a->ir, var, grad));
	} else if (grad && !is_summed(of, v)) {
		b->place[i] = add_stack(a, gradient_tensor(a->ir, var, grad));
	} else if (grad) {
		Type type = type_accumulator((Type)var->type);
		Node *sum = fresh(a->ir, 'c', v, var, type);
		b->place[i] = add(a, STATE, sum, tensor_fill(a->ir, sum, 0),
				  sum_typed(a->ir, var, grad, type, sum));
	}
}

static Node *take_gradient(Back *b, int i)
{
	Around *a = &b->a;
	int v = b->at[i], state = v - a->of->nslice;
	if (state >= 0 && state < a->of->nstate)
		return b->wanted[v] ? scan_final(a->ir, &a->call, b->place[i]) : NULL;
	if (!b->grad[i])
		return NULL;
	if (state < 0)
		return stacked_at(a, b->place[i]);
	if (!is_summed(a->of, v))
		return scan_only(a->ir, &a->call, a->call.result[b->place[i]]);
	Node *sum = scan_final(a->ir, &a->call, b->place[i]), *var = a->of->var[v];
	return sum->type == var->type ? sum : sum_typed(a->ir, var, sum, (Type)var->type, NULL);
}

void scan_gradients(Ir *ir, int nresult, Node *const *result, Node *const *gradient,
		    const bool *wanted, Node **doperand)
{
	Node **some = arena_alloc(&ir->arena, sizeof *some * (size_t)nresult);
	Node **dresult = arena_alloc(&ir->arena, sizeof *dresult * (size_t)nresult);
	int n = 0;
	for (int k = 0; k < nresult; k++)
		if (gradient[k]) {
			some[n] = result[k];
			dresult[n++] = gradient[k];
		}
	Back b = back_new(ir, n, some, wanted);
	find_carried(&b, dresult);
	add_steps(&b.a);
	set_step(&b, dresult);
	reverse_graph(ir, b.nroot, b.root, b.seed, b.nwrt, b.wrt, b.grad);
	for (int i = 0; i < b.nwrt; i++)
		set_gradient(&b, i);
	close_around(&b.a, !b.a.of->backwards);
	for (int i = 0; i < b.nwrt; i++)
		doperand[b.a.of->has_length + b.at[i]] = take_gradient(&b, i);
}

/* ---- forward mode ---- */

int scan_tangents(Ir *ir, int nresult, Node *const *result, Node *const *toperand, Node **tresult)
{
	Around a = around_new(ir, nresult, result);
	const Scan *of = a.of;
	size_t room = ((size_t)a.nvar + (size_t)nresult + 1) * sizeof(Node *);
	Node **x = arena_alloc(&ir->arena, room), **tx = arena_alloc(&ir->arena, room);
	Node **root = arena_alloc(&ir->arena, room), **troot = arena_alloc(&ir->arena, room);
	bool *moves = arena_alloc(&ir->arena, (size_t)a.nvar + 1);
	int n = 0, nroot = of->nstate + nresult, state = 0;
	toperand += of->has_length;
	find_reads(&a);
	for (int v = 0; v < a.nvar; v++)
		moves[v] = toperand[v] != NULL;
	spread(&a, moves);
	for (int v = 0; v < a.nvar; v++)
		if (moves[v]) {
			x[n] = of->var[v];
			tx[n++] = fresh(ir, 'x', v, of->var[v], (Type)of->var[v]->type);
		}
	for (int k = 0; k < nroot; k++)
		root[k] = k < of->nstate ? of->next[k] : result[k - of->nstate]->u.result->value;
	add_steps(&a);
	if (forward_graph(ir, nroot, root, n, x, tx, troot))
		return ir->err.code;
	for (int v = 0; v < a.nvar; v++) {
		Node *var = fresh(ir, 'x', v, of->var[v], (Type)of->var[v]->type);
		int k = v - of->nslice;
		if (!moves[v])
			continue;
		if (k >= 0 && k < of->nstate)
			add(&a, STATE, var, gradient_tensor(ir, of->var[v], toperand[v]),
			    gradient_tensor(ir, of->var[v], troot[k]));
		else
			add(&a, k < 0 ? SLICE : CONSTANT, var, toperand[v], NULL);
	}
	for (int k = 0; k < nresult; k++)
		if (result[k]->u.result->final < 0 && troot[of->nstate + k])
			add_stack(&a, troot[of->nstate + k]);
	close_around(&a, of->backwards);
	int *number = arena_alloc(&ir->arena, sizeof *number * ((size_t)of->nstate + 1));
	for (int k = 0; k < of->nstate; k++)
		number[k] = moves[of->nslice + k] ? state++ : -1;
	for (int k = 0, stacked = 0; k < nresult; k++) {
		int final = result[k]->u.result->final;
		if (final >= 0 ? number[final] < 0 : !troot[of->nstate + k])
			continue;
		tresult[k] = final >= 0 ? scan_final(ir, &a.call, number[final])
					: stacked_at(&a, stacked++);
	}
	return ir->err.code;
}
