/* cost.c - what a kernel costs, read off its loop tree: cycles of one core, for all of its parts.
 *
 * Input: a loop tree. Output: cycles; schedules of a task are compared by them before any is run. A
 * kernel takes the longer of two times, and a share of the shorter: its operators, loads and stores, of
 * all lanes at once in a vector loop; and the lines of the cache that come from farther than the
 * first level (accesses.c). In a body operators run beside loads and stores, and a product that is added is no
 * operator of its own. Invariant: sizes, strides and the target decide, never a measurement or the
 * number of threads, so that a schedule chosen by it is the same in every run. */
#include "jit/tree/cost.h"
#include "jit/tree/accesses.h"

#include <math.h>
#include <string.h>

/* HELD: vectors of an array that a compiler keeps as variables, if not in registers all of them. UNROLLED: statements,
 * of all iterations together, of a loop that it unrolls. */
enum { HELD = 24, SUMS_SEEN = 32, UNROLLED = 32 };

/* Cycles: an operator or a load on one of two ports, an element that is transposed, a store, an element that is gathered
 * or scattered; until a sum may be added to again; what all lanes of a vector combined take; an iteration of a loop,
 * beginning one; a part. */
static const double OPERATE = 0.5, TRANSPOSE = 0.75, STORE = 1, TILE = 1.5, GUARD = 4, GATHER = 1.5,
		    LATENCY = 4, FOLD = 8, TURN = 1, BEGIN = 6, PART = 10;
/* Cycles of a kernel that one thread runs: no other is worth waking. */
static const double ALONE = 30000;
/* How much of the shorter of both times is not hidden behind the longer. */
static const double EXPOSED = 0.25;

typedef struct Cost {
	const Tree *tree;
	Ir *ir;
	const Target *target;
	int nloop;
	Around loop[LOOPS_DEEP];
	/* Vectors that each loop adds to, once they were counted; 0: not yet. */
	double sums[LOOPS_DEEP];
	double times;		 /* that what is open runs */
	double cycles;		 /* of bodies that are done, and of loops */
	double operators, moves; /* cycles of the body that is open; moves: loads and stores */
	bool calls;		 /* functions, whose cost is not known */
	Accesses accesses;
} Cost;

/* Lanes of a vector of so many bytes an element. */
static double width_of(const Cost *c, Type type)
{
	size_t size = type_size(type);
	return (double)c->target->vector_bytes / (double)(size < 4 ? 4 : size);
}

/* Vectors that do n iterations: whole ones, half ones, single elements. */
static double vectors_of(double n, double width)
{
	double whole = (double)(int64_t)(n / width), left = n - whole * width;
	for (double half = width / 2; half >= 4 && left > 0; half /= 2)
		if (left >= half) {
			left -= half;
			whole++;
		}
	return whole + left;
}

static const Around *lanes_of(const Cost *c)
{
	for (int k = c->nloop - 1; k >= 0; k--)
		if (is_vector(c->loop[k].loop))
			return &c->loop[k];
	return NULL;
}

/* ---- operators ---- */

/* How often n is computed: in the loops that it depends on, and those around them. */
static double times_of(const Cost *c, Node *n)
{
	double times = 1, all = 1;
	for (int k = 0; k < c->nloop; k++) {
		all *= c->loop[k].trips;
		if (node_has(n, c->loop[k].axis))
			times = all;
	}
	return times;
}

static bool is_local(const Cost *c, const Node *buffer)
{
	const Buffer *b = tree_find(c->tree, buffer);
	return b && buffer_is_local(b);
}

static bool in_registers(const Cost *c, const Node *buffer)
{
	return !c->target->spills &&
	       (double)tensor_size(buffer) <= HELD * width_of(c, (Type)buffer->type);
}

static double registers_of(const Target *t)
{
	return t->isa & (ISA_AVX512 | ISA_NEON) ? 32 : 16;
}

/* Cycles of a load or a store of an element for each lane. */
static double move_cycles(const Cost *c, Node *index, Type type, double cycles)
{
	const Around *lanes = lanes_of(c);
	int64_t stride = lanes ? affine_stride(c->ir, index, lanes->axis) : 0;
	double reversed = stride < 0 ? cycles : 0;
	if (stride >= -1 && stride <= 1)
		return cycles + reversed;
	if (stride == 2 || stride == -2)
		return 3 * cycles + reversed;
	return GATHER * width_of(c, type);
}

/* Is something stored there, from s on? */
static bool is_stored(const Stmt *s, const Node *buffer)
{
	bool stored = false;
	for (; s && !stored; s = s->next)
		stored = s->kind == STMT_STORE
				 ? s->buffer == buffer
				 : is_stored(s->body, buffer) || is_stored(s->otherwise, buffer);
	return stored;
}

/* Is it a local variable that the innermost loop stores to? Others are only read there, as parameters are. */
static bool is_tile(const Cost *c, const Node *buffer)
{
	int k = c->nloop - 1;
	while (k > 0 && is_vector(c->loop[k].loop))
		k--;
	return is_local(c, buffer) && (k < 0 || is_stored(c->loop[k].loop->body, buffer));
}

static void read_value(Cost *c, Node *n)
{
	bool local = is_tile(c, n->src[0]);
	double each = local ? TILE : OPERATE;
	bool loads =
		local ? !in_registers(c, n->src[0])
		      : access_add(&c->accesses, c->nloop, c->loop, n->src[0], n->src[1], false);
	if (loads)
		c->moves += times_of(c, n) * move_cycles(c, n->src[1], (Type)n->type, each);
}

/* Does a compiler have to load under a condition that it evaluates for each lane? */
static bool guards_lanes(const Cost *c, Node *select)
{
	const Around *lanes = lanes_of(c);
	return lanes && lanes->loop->how == HOW_VECTOR && node_has(select->src[0], lanes->axis) &&
	       select->src[1]->op == OP_READ && !read_inside(select->src[1]);
}

/* Does it only say which lanes a mask has? */
static bool lists_lanes(const Cost *c, Node *n)
{
	const Around *lanes = lanes_of(c);
	return lanes && lanes->loop->how == HOW_LANES && node_has(n, lanes->axis);
}

/* Does the choice only say which lanes of a vector there are? */
static bool is_mask(const Cost *c, const Node *n)
{
	const Around *lanes = lanes_of(c);
	return n->op == OP_SELECT && lanes && lanes->loop->how == HOW_LANES &&
	       !node_reads(c->ir, n->src[0]);
}

/* Is n a product that is added, or taken away, in one operator? */
static bool joins_sum(const Node *n)
{
	return n->op == OP_MUL && type_is_float((Type)n->type);
}

/* What n takes, where the statements of the body, which share it, have not computed it yet; added: to another. */
static void value(Cost *c, NodeMap *known, Node *n, bool added)
{
	if (node_is_tensor(n) || node_map_get(known, n))
		return;
	node_map_put(c->ir, known, n, n);
	bool adds = n->op == OP_ADD || n->op == OP_SUB, both = n->nsrc > 1 && joins_sum(n->src[0]);
	bool mask = is_mask(c, n);
	for (int k = mask ? 1 : 0; k < n->nsrc; k++)
		value(c, known, n->src[k], adds && (k == 0 || !both));
	if (mask)
		return;
	if (n->op == OP_READ)
		read_value(c, n);
	else if (n->op == OP_SELECT && guards_lanes(c, n))
		c->operators += GUARD * times_of(c, n);
	else if (n->op == OP_FLOORDIV || n->op == OP_FLOORMOD)
		c->operators += lists_lanes(c, n) ? 0 : 2 * times_of(c, n);
	else if (n->type != RICCI_I64 && !(added && joins_sum(n)))
		c->operators += OPERATE * node_flops(n) * times_of(c, n);
}

/* Of the loops around, the innermost along which the store adds to the same elements; NULL: none. */
static const Around *reduced_loop(const Cost *c, const Stmt *s)
{
	for (int k = c->nloop - 1; k >= 0 && s->red != RED_NONE; k--)
		if (!node_has(s->index, c->loop[k].axis))
			return &c->loop[k];
	return NULL;
}

typedef struct Sums { /* to which a loop's iteration adds: they need not wait for each other */
	const Cost *c;
	double n, enough; /* vectors; so many are enough */
	int nopen;
	const Stmt *open[LOOPS_DEEP]; /* loops inside that one */
	int nseen;
	const Stmt *seen[SUMS_SEEN];
} Sums;

static double iterations(const Cost *c, const Stmt *s)
{
	const Node *n = node_sub(c->ir, s->hi, s->lo);
	double most = (double)n->hi, least = n->lo < 0 ? 0 : (double)n->lo;
	return most > 2 * least ? (most + least) / 2 : most;
}

/* Vectors, or numbers, that n iterations of the loop compute. */
static double trips_of(const Cost *c, const Stmt *loop, Type type, double n)
{
	return loop->how == HOW_LANES	 ? 1
	       : loop->how == HOW_VECTOR ? vectors_of(n, width_of(c, type))
					 : n;
}

static void sum_count(Sums *x, const Stmt *s)
{
	double n = 1;
	for (int k = 0; k < x->nseen; k++)
		if (x->seen[k]->buffer == s->buffer && x->seen[k]->index == s->index)
			return;
	for (int k = 0; k < x->nopen; k++)
		if (node_has(s->index, x->open[k]->axis))
			n *= trips_of(x->c, x->open[k], (Type)s->buffer->type,
				      iterations(x->c, x->open[k]));
	x->seen[x->nseen++] = s;
	x->n += n > 1 ? n : 1;
}

static void sums_find(Sums *x, const Stmt *s)
{
	for (; s && x->n < x->enough && x->nopen < LOOPS_DEEP && x->nseen < SUMS_SEEN; s = s->next)
		if (s->kind == STMT_STORE && s->red != RED_NONE) {
			sum_count(x, s);
		} else if (s->kind == STMT_LOOP) {
			x->open[x->nopen++] = s;
			sums_find(x, s->body);
			x->nopen--;
		} else if (s->kind == STMT_IF) {
			sums_find(x, s->body);
			sums_find(x, s->otherwise);
		}
}

static double sums_beside(const Cost *c, const Around *reduced, const Stmt *s)
{
	const Around *lanes = lanes_of(c);
	Sums x = {.c = c, .enough = LATENCY / OPERATE}; /* they keep operators busy */
	sums_find(&x, reduced->loop->body);
	return lanes && lanes < reduced && node_has(s->index, lanes->axis) ? x.n * lanes->trips
									   : x.n;
}

/* The part of what the innermost serial loop adds to for which there is no register beside those of two factors. */
static double spilled(Cost *c)
{
	enum { FACTORS = 2 };
	int k = c->nloop - 1;
	while (k >= 0 && (is_vector(c->loop[k].loop) || c->loop[k].loop->how == HOW_UNROLL))
		k--;
	if (k < 0)
		return 0;
	Sums x = {.c = c, .enough = 2 * HELD};
	if (c->sums[k] == 0) {
		sums_find(&x, c->loop[k].loop->body);
		c->sums[k] = x.n;
	}
	double over = c->sums[k] + FACTORS - registers_of(c->target);
	return over > 0 ? over / c->sums[k] : 0;
}

/* How many sums that begin anew in each vector, with all of their terms written out, a processor adds up at a time: as
 * many as its window has room for. 0: s adds to none such. */
static double sums_ahead(const Cost *c, const Stmt *s)
{
	enum { WINDOW = 256, TERM = 3 }; /* instructions */
	const Around *lanes = lanes_of(c);
	double terms = 0;
	if (!lanes || !lanes_own(lanes->loop, s->buffer))
		return 0;
	for (const Stmt *i = lanes->loop->body; i; i = i->next)
		terms += i->kind == STMT_STORE && i->buffer == s->buffer;
	return fmax(1, WINDOW / (TERM * terms));
}

/* Do all lanes meet in one element? */
static bool folds_lanes(const Cost *c, const Stmt *s)
{
	const Around *lanes = lanes_of(c);
	return lanes && s->red != RED_NONE && !node_has(s->index, lanes->axis) &&
	       !lanes_own(lanes->loop, s->buffer);
}

static void store(Cost *c, NodeMap *known, const Stmt *s)
{
	double times = 1, ahead = sums_ahead(c, s);
	const Around *reduced = ahead > 0 ? NULL : reduced_loop(c, s);
	double beside = reduced	    ? sums_beside(c, reduced, s)
			: ahead > 0 ? ahead
				    : LATENCY / OPERATE;
	for (int k = 0; k < c->nloop; k++)
		times *= c->loop[k].trips;
	value(c, known, s->value, s->red == RED_ADD);
	bool local = is_local(c, s->buffer), held = local && in_registers(c, s->buffer);
	double each = move_cycles(c, s->index, (Type)s->buffer->type, local ? TILE : STORE);
	c->moves += held ? 0 : times * each;
	if (s->red != RED_NONE && held)
		c->moves += times * spilled(c) * (TILE + OPERATE);
	bool folds = folds_lanes(c, s);
	if (s->red != RED_NONE && !folds)
		c->operators += times * fmax(OPERATE, LATENCY / beside);
	if (s->red != RED_NONE && !held)
		c->moves += times * OPERATE; /* it is loaded, too */
	if (folds)
		c->operators += times / lanes_of(c)->trips * FOLD;
	if (!local)
		access_add(&c->accesses, c->nloop, c->loop, s->buffer, s->index, true);
}

/* ---- statements ---- */

static void visit(Cost *c, const Stmt *s);

static const Stmt *first_store(const Stmt *s)
{
	const Stmt *found = NULL;
	for (; s && !found; s = s->next)
		found = s->kind == STMT_STORE ? s : first_store(s->body);
	return found;
}

/* Loads and stores of a body run beside its operators. */
static void body_done(Cost *c)
{
	c->cycles += fmax(c->operators, c->moves);
	c->operators = c->moves = 0;
}

/* Does a compiler unroll the loop, so that iterations cost nothing of their own? */
static bool is_unrolled(const Cost *c, const Stmt *s, double trips)
{
	double n = 0;
	for (const Stmt *i = s->body; i; i = i->next)
		n += i->kind == STMT_STORE || i->how == HOW_LANES ? 1 : INFINITY;
	return s->how == HOW_UNROLL || (!c->target->spills && trips * n <= UNROLLED);
}

static void loop(Cost *c, const Stmt *s)
{
	if (c->nloop == LOOPS_DEEP)
		return;
	Around *a = &c->loop[c->nloop];
	double count = iterations(c, s);
	*a = (Around){s, s->axis, count, count};
	c->sums[c->nloop] = 0;
	if (a->count <= 0)
		return;
	double before = c->times;
	const Stmt *first = s->how == HOW_VECTOR ? first_store(s->body) : NULL;
	if (s->how == HOW_LANES || first)
		a->trips = trips_of(c, s, first ? (Type)first->buffer->type : RICCI_F32, a->count);
	c->times *= a->trips;
	if (s->how == HOW_PARALLEL)
		c->cycles += PART * c->times;
	else if (a->trips > 1 && !is_unrolled(c, s, a->trips))
		c->cycles += BEGIN * before + TURN * c->times;
	c->nloop++;
	visit(c, s->body);
	if (s->how != HOW_LANES)
		body_done(c);
	c->nloop--;
	c->times = before;
}

/* The part of the iterations around for which the condition holds, as far as it is a range of a loop that is
 * open. */
static double share_of(const Cost *c, Node *cond)
{
	for (int k = c->nloop - 1; k >= 0; k--) {
		Node *lo = node_int(c->ir, 0), *hi = node_int(c->ir, axis_extent(c->loop[k].axis));
		if (!node_has(cond, c->loop[k].axis) ||
		    !cond_interval(c->ir, cond, c->loop[k].axis, &lo, &hi))
			continue;
		double share = (double)(hi->hi + hi->lo - lo->hi - lo->lo) / 2 /
			       (double)axis_extent(c->loop[k].axis);
		return share < 0 ? 0 : share > 1 ? 1 : share;
	}
	return 1;
}

static void visit_share(Cost *c, const Stmt *s, double share)
{
	body_done(c);
	double cycles = c->cycles;
	int first = c->accesses.n;
	visit(c, s);
	body_done(c);
	c->cycles = cycles + share * (c->cycles - cycles);
	accesses_share(&c->accesses, first, share);
}

/* Transposing is known: of so many lines and columns, the last two arguments. */
static void call(Cost *c, const Stmt *s)
{
	if (!stmt_transposes(s)) {
		c->calls = true;
		return;
	}
	const CallArg *size = s->arg + s->narg - 2;
	c->moves += c->times * TRANSPOSE * (double)size[0].value->hi * (double)size[1].value->hi;
}

static void visit(Cost *c, const Stmt *s)
{
	NodeMap known = {0};
	for (; s && !c->ir->err.code; s = s->next)
		if (s->kind == STMT_LOOP) {
			loop(c, s);
		} else if (s->kind == STMT_STORE) {
			store(c, &known, s);
		} else if (s->kind == STMT_CALL) {
			call(c, s);
		} else if (s->kind == STMT_IF) {
			double share = share_of(c, s->cond);
			visit_share(c, s->body, share);
			visit_share(c, s->otherwise, 1 - share);
		}
}

double cost_imbalance(double parts)
{
	double sum = 0;
	for (int threads = 2; threads <= 8; threads *= 2)
		sum += (double)((int64_t)(parts + threads - 1) / threads) * threads / parts;
	return sum / 3 + 0.5 / parts;
}

double tree_cost(const Tree *t, const Target *target, bool *calls)
{
	Cost *c = arena_alloc(&t->ir->arena, sizeof *c);
	*c = (Cost){
		.tree = t, .ir = t->ir, .accesses = {.ir = t->ir}, .target = target, .times = 1};
	visit(c, t->root);
	body_done(c);
	*calls = c->calls;
	double memory = accesses_cycles(&c->accesses, target);
	double longer = c->cycles > memory ? c->cycles : memory;
	double shorter = c->cycles > memory ? memory : c->cycles;
	int64_t parts = t->shape.later[0] ? t->shape.later[0] : t->shape.parts;
	double cycles = longer + EXPOSED * shorter, shared = cycles > ALONE ? cycles - ALONE : 0;
	return cycles + shared * (cost_imbalance((double)parts) - 1);
}
