/* graph.c - the public builder: graphs, tensors as handles, operators from text. Input: what users
 * give, so every argument is checked. Output: handles over nodes of the graph's Ir. Invariant: the
 * first error stays in ir.err, and from then on nothing changes and every maker returns the inert
 * tensor `nil`. */
#include "core/graph/graph.h"
#include "core/notation/internal.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

const char *ricci_version(void)
{
	return RICCI_VERSION;
}

ricci_graph *ricci_graph_new(void)
{
	ricci_graph *g = mem_zalloc(sizeof *g);

	if (!g)
		return NULL;
	ir_init(&g->ir);
	g->ir.err.tell = true;
	g->nil = (ricci_tensor){.g = g, .name = ""};
	g->refs = 1;
	return g;
}

void graph_ref(ricci_graph *g)
{
	__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
}

void ricci_graph_free(ricci_graph *g)
{
	if (!g || __atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL))
		return;
	ir_free(&g->ir);
	mem_free(g);
}

bool graph_frozen(const ricci_graph *g)
{
	return __atomic_load_n(&g->refs, __ATOMIC_ACQUIRE) > 1;
}

int ricci_graph_error(const ricci_graph *g)
{
	return g ? error_tell(&g->ir.err) : graph_missing("ricci_graph_error");
}

/* ---- handles ---- */

static bool is_kept(const ricci_tensor *t)
{
	return t->role == ROLE_PARAM || t->role == ROLE_STATE;
}

static void kept_add(ricci_graph *g, ricci_tensor *t)
{
	g->kept = arena_grow(&g->ir.arena, g->kept, g->nkept, &g->kept_room, sizeof *g->kept);
	g->kept[g->nkept++] = t;
}

static ricci_tensor *handle_new(ricci_graph *g, Node *n, const char *name, Role role)
{
	ricci_tensor *t = arena_alloc(&g->ir.arena, sizeof *t);

	*t = (ricci_tensor){.g = g, .node = n, .role = role};
	t->name = arena_strdup(&g->ir.arena, name);
	if (!type_is_float((Type)n->type))
		type_range((Type)n->type, &t->need_lo, &t->need_hi);
	node_map_put(&g->ir, &g->handle, n, t);
	if (role != ROLE_COMP)
		names_add(g, t);
	if (is_kept(t))
		kept_add(g, t);
	if (g->last)
		g->last->next = t;
	else
		g->first = t;
	g->last = t;
	g->ntensor++;
	return t;
}

ricci_tensor *graph_handle(ricci_graph *g, Node *n)
{
	ricci_tensor *t = node_map_get(&g->handle, n);

	if (t)
		return t;
	return handle_new(
		g, n, n->op == OP_INPUT ? n->u.s : arena_printf(&g->ir.arena, "t%d", g->ntensor),
		n->op == OP_INPUT ? ROLE_INPUT : ROLE_COMP);
}

int graph_missing(const char *call)
{
	return error_set(ERROR_TELL, RICCI_EINVAL, "%s: the graph is NULL", call);
}

bool graph_open(ricci_graph *g, const char *what)
{
	error_tell(&g->ir.err);
	if (graph_frozen(g) && !g->ir.err.code)
		error_set(&g->ir.err, RICCI_EINVAL,
			  "%s: the graph has sessions and can't change any more", what);
	return !g->ir.err.code;
}

ricci_tensor *graph_result(ricci_graph *g, Node *n, const char *name)
{
	ricci_tensor *t = node_map_get(&g->handle, n);

	return t ? t : handle_new(g, n, name, ROLE_COMP);
}

/* ---- inputs, parameters, states ---- */

static int check_shape(ricci_graph *g, const char *what, const char *name, Type type, int rank,
		       const int64_t *shape)
{
	Error *e = &g->ir.err;
	int64_t bytes;

	if (!name || !*name)
		return error_set(e, RICCI_EINVAL, "%s: a tensor needs a name", what);
	if (*name == '%')
		return error_set(e, RICCI_EINVAL,
				 "%s %s: names that begin with %% are those of variables in loops",
				 what, name);
	if (scope_check(g, what, name))
		return e->code;
	if ((int)type < 0 || type >= RICCI_NTYPES)
		return error_set(e, RICCI_ETYPE, "%s %s: unknown type %d", what, name, (int)type);
	if (rank < 0 || rank > RICCI_MAX_RANK)
		return error_set(e, RICCI_ESHAPE, "%s %s: rank %d is not in 0..%d", what, name,
				 rank, RICCI_MAX_RANK);
	if (rank && !shape)
		return error_set(e, RICCI_EINVAL, "%s %s: the shape is NULL", what, name);
	bytes = (int64_t)type_size(type);
	for (int d = 0; d < rank; d++) {
		if (shape[d] < 1)
			return error_set(
				e, RICCI_ESHAPE,
				"%s %s: dimension %d has extent %lld, it must be 1 or more", what,
				name, d, (long long)shape[d]);
		if (shape[d] > RANGE_MAX || __builtin_mul_overflow(bytes, shape[d], &bytes))
			return error_set(e, RICCI_ESHAPE, "%s %s: the size overflows 64 bits", what,
					 name);
	}
	return 0;
}

static ricci_tensor *add_tensor(ricci_graph *g, const char *what, const char *name, Type type,
				int rank, const int64_t *shape, Role role, ricci_init init)
{
	if (!g)
		return graph_missing(what), NULL;
	if (!graph_open(g, what) || check_shape(g, what, name, type, rank, shape))
		return &g->nil;
	if (init_check(g, what, name, type, rank, shape, &init))
		return &g->nil;
	IR_ENTER(&g->ir, &g->nil);
	name = scope_name(g, name);
	ricci_init kept = init_kept(g, &init);
	ricci_tensor *t = handle_new(g, node_input(&g->ir, name, type, rank, shape), name, role);
	t->init = kept;
	IR_LEAVE(&g->ir);
	return t;
}

ricci_tensor *ricci_input(ricci_graph *g, const char *name, ricci_type type, int rank,
			  const int64_t *shape)
{
	return add_tensor(g, "ricci_input", name, type, rank, shape, ROLE_INPUT, ricci_constant(0));
}

ricci_tensor *ricci_param(ricci_graph *g, const char *name, ricci_type type, int rank,
			  const int64_t *shape, ricci_init init)
{
	if (g && !g->ir.err.code && !type_is_float(type)) {
		error_set(&g->ir.err, RICCI_ETYPE,
			  "ricci_param %s: parameters are trained, so they are floats; "
			  "ricci_state keeps other types",
			  name ? name : "");
		return &g->nil;
	}
	return add_tensor(g, "ricci_param", name, type, rank, shape, ROLE_PARAM, init);
}

ricci_tensor *ricci_state(ricci_graph *g, const char *name, ricci_type type, int rank,
			  const int64_t *shape, ricci_init init)
{
	return add_tensor(g, "ricci_state", name, type, rank, shape, ROLE_STATE, init);
}

int ricci_set_init(ricci_tensor *t, ricci_init init)
{
	const char *what = "ricci_set_init";
	if (!t)
		return graph_missing(what);
	ricci_graph *g = t->g;
	if (!graph_open(g, what))
		return g->ir.err.code;
	if (t->role != ROLE_PARAM && t->role != ROLE_STATE)
		return error_set(&g->ir.err, RICCI_EINVAL, "%s: '%s' is no parameter and no state",
				 what, t->name ? t->name : "");
	int64_t shape[RICCI_MAX_RANK];
	for (int d = 0; d < ricci_rank(t); d++)
		shape[d] = ricci_extent(t, d);
	if (init_check(g, what, t->name, (Type)t->node->type, ricci_rank(t), shape, &init))
		return g->ir.err.code;
	IR_ENTER(&g->ir, g->ir.err.code);
	t->init = init_kept(g, &init);
	IR_LEAVE(&g->ir);
	return 0;
}

/* ---- what gathers need of data ---- */

/* The tensors that gathers index with get their contract; a state's data can't be checked. */
int graph_needs(ricci_graph *g)
{
	for (Need *n = g->ir.need; n; n = n->next) {
		ricci_tensor *t = graph_handle(g, n->input);
		if (t->role == ROLE_VARIABLE) /* ricci_scan passes it on */
			continue;
		if (t->role != ROLE_INPUT)
			return error_set(&g->ir.err, RICCI_ESHAPE,
					 "ricci_op: %s is a state, so nothing checks that its "
					 "values stay in %lld..%lld where it indexes; write else "
					 "there, or clamp with min and max",
					 t->name, (long long)n->lo, (long long)n->hi);
		t->need_lo = n->lo;
		t->need_hi = n->hi;
	}
	return 0;
}

int ricci_assign(ricci_graph *g, ricci_tensor *state, ricci_tensor *value)
{
	if (!g)
		return graph_missing("ricci_assign");
	if (!graph_open(g, "ricci_assign"))
		return g->ir.err.code;
	Error *e = &g->ir.err;
	if (!state || !value)
		return error_set(e, RICCI_EINVAL, "ricci_assign: a tensor is NULL");
	if (state->g != g || value->g != g)
		return error_set(e, RICCI_EINVAL, "ricci_assign: %s belongs to another graph",
				 state->g != g ? state->name : value->name);
	if (state->role != ROLE_PARAM && state->role != ROLE_STATE)
		return error_set(e, RICCI_EINVAL,
				 "ricci_assign: %s is no parameter or state, so it keeps nothing",
				 state->name);
	if (state->assign)
		return error_set(e, RICCI_EINVAL, "ricci_assign: %s has a new value already",
				 state->name);
	if (state->node->type != value->node->type)
		return error_set(e, RICCI_ETYPE, "ricci_assign: %s is %s, the value is %s",
				 state->name, type_name((Type)state->node->type),
				 type_name((Type)value->node->type));
	int rank = tensor_rank(state->node);
	if (rank != tensor_rank(value->node))
		return error_set(e, RICCI_ESHAPE, "ricci_assign: %s has rank %d, the value %d",
				 state->name, rank, tensor_rank(value->node));
	for (int d = 0; d < rank; d++) {
		int64_t a = tensor_extent(state->node, d), b = tensor_extent(value->node, d);
		if (a != b)
			return error_set(e, RICCI_ESHAPE,
					 "ricci_assign: dimension %d of %s is %lld, of the value "
					 "%lld",
					 d, state->name, (long long)a, (long long)b);
	}
	state->assign = value;
	return 0;
}

const char *precision_name(Type t)
{
	bool known = t == RICCI_F32 || t == RICCI_BF16 || t == RICCI_F16;
	return t == RICCI_TF32 ? "tf32" : known ? type_name(t) : NULL;
}

int ricci_precision(ricci_graph *g, ricci_type type)
{
	if (!g || !graph_open(g, "ricci_precision"))
		return g ? g->ir.err.code : graph_missing("ricci_precision");
	if (!precision_name(type))
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_precision: factors are f32, or rounded to bf16, f16 or "
				 "tf32; %s is none of these",
				 (unsigned)type < RICCI_NTYPES ? type_name(type) : "this");
	g->precision = type;
	return 0;
}

int ricci_rounding(ricci_graph *g, ricci_rounding_mode mode)
{
	if (!g || !graph_open(g, "ricci_rounding"))
		return g ? g->ir.err.code : graph_missing("ricci_rounding");
	if (mode != RICCI_NEAREST && mode != RICCI_STOCHASTIC)
		return error_set(&g->ir.err, RICCI_EINVAL,
				 "ricci_rounding: the mode is %d; RICCI_NEAREST and "
				 "RICCI_STOCHASTIC are those that there are",
				 (int)mode);
	g->rounding = mode;
	return 0;
}

int ricci_memory_limit(ricci_graph *g, size_t bytes)
{
	if (!g || !graph_open(g, "ricci_memory_limit"))
		return g ? g->ir.err.code : graph_missing("ricci_memory_limit");
	g->memory_limit = bytes;
	return 0;
}

/* ---- asking ---- */

const char *ricci_name(const ricci_tensor *t)
{
	return t ? t->name : "";
}

ricci_type ricci_dtype(const ricci_tensor *t)
{
	return t && t->node ? (ricci_type)t->node->type : RICCI_F32;
}

int ricci_rank(const ricci_tensor *t)
{
	return t && t->node ? tensor_rank(t->node) : 0;
}

int64_t ricci_extent(const ricci_tensor *t, int d)
{
	return t && t->node && d >= 0 && d < tensor_rank(t->node) ? tensor_extent(t->node, d) : 0;
}

size_t ricci_bytes(const ricci_tensor *t)
{
	return t && t->node ? tensor_bytes(t->node) : 0;
}

ricci_graph *ricci_graph_of(const ricci_tensor *t)
{
	return t ? t->g : NULL;
}

int ricci_param_count(const ricci_graph *g)
{
	return g ? g->nkept : 0;
}

ricci_tensor *ricci_param_at(const ricci_graph *g, int i, int *trained)
{
	if (!g || i < 0 || i >= g->nkept)
		return NULL;
	if (trained)
		*trained = g->kept[i]->role == ROLE_PARAM;
	return g->kept[i];
}

static int show(Ir *ir, const ricci_tensor *t, Text *out)
{
	IR_ENTER(ir, RICCI_ENOMEM);
	if (t->node->op == OP_INPUT)
		print_equation(out, ir, t->node, NULL, NULL);
	else
		print_program(out, ir, 1, &t->node, &t->name);
	IR_LEAVE(ir);
	return out->failed ? RICCI_ENOMEM : 0;
}

char *ricci_show(const ricci_tensor *t)
{
	Text out = {0};

	if (!t || !t->node)
		return mem_strdup("");
	lock_take(LOCK_GRAPHS);	     /* another thread may make a session */
	Error before = t->g->ir.err; /* a text that found no memory does not spoil the graph */
	int failed = show(&t->g->ir, t, &out);

	t->g->ir.err = before;
	lock_leave(LOCK_GRAPHS);
	if (failed) {
		text_free(&out);
		return NULL;
	}
	return out.s ? out.s : mem_strdup("");
}

void ricci_free_text(char *text)
{
	mem_free(text);
}
