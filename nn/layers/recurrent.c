/* recurrent.c - recurrent layers: loops over time around a cell.
 * Input: a sequence, a description of a cell (cells.c, or a user's). Output: the outputs of all steps,
 * the last states, parameters. Invariant: a layer in one direction is one
 * ricci_scan; a step of a sample behind its length leaves its states as they are. */
#include "nn/layers/internal.h"

#include <stdlib.h>
#include <string.h>

enum { STATES = 8, PARAMETERS = 16, NAME = 64 };

typedef struct Recurrent {
	ricci_graph *g;
	ricci_tensor *x; /* what the user gave: errors go to its graph */
	Layer layer;
	ricci_recurrent_options o;
	ricci_cell cell;
	int nstate;
	int64_t width[STATES];
	ricci_tensor *clock; /* I32 [t], with lengths */
	int64_t steps, batch;
} Recurrent;

/* One layer in one direction. */
typedef struct Direction {
	int number, backwards; /* number: layer * directions + direction */
	char suffix[NAME];     /* "_l0", "_l0_reverse": ends the names of what it makes */
	ricci_tensor *final[STATES], *stack[STATES];
} Direction;

static bool failed(const Recurrent *r)
{
	return ricci_graph_error(r->g) != 0;
}

/* ---- what a cell's texts say ---- */

/* The columns of the first state where the cell lets it be projected. */
static int64_t output_width(const Recurrent *r)
{
	return r->o.projection ? r->o.projection : r->o.hidden;
}

/* A size, such as "4h": *s moves behind it. 0: none is there. */
static int64_t size_read(const Recurrent *r, const char **s, int64_t inputs)
{
	char *end;
	int64_t v = strtol(*s, &end, 10);
	bool number = end != *s;
	const char letter = *end;
	int64_t unit = letter == 'n'   ? inputs
		       : letter == 'h' ? r->o.hidden
		       : letter == 'p' ? output_width(r)
				       : r->o.context;
	if (letter && strchr("nhpc", letter)) {
		v = number ? v * unit : unit;
		end++;
	}
	*s = end;
	return v > 0 ? v : 0;
}

static void cell_fail(const Recurrent *r, const char *what, const char *s)
{
	layer_fail(r->x, "ricci_recurrent: cell %s: %s, at '%s'", r->cell.name ? r->cell.name : "",
		   what, s);
}

static bool states_read(Recurrent *r)
{
	const char *s = r->cell.states;
	for (s += strspn(s, " "); *s && !failed(r); s += strspn(s, " ")) {
		const char *at = s;
		int64_t width = *s == 'n' ? 0 : size_read(r, &s, 0);
		if (r->nstate == STATES)
			cell_fail(r, "more than 8 states", at);
		else if (*at == 'c' && r->o.context < 1)
			layer_fail(r->x, "ricci_recurrent: cell %s needs .context, the size of 'c'",
				   r->cell.name ? r->cell.name : "");
		else if (!r->nstate && r->o.projection && *at != 'p')
			layer_fail(r->x,
				   "ricci_recurrent: cell %s has no projection: its first state "
				   "must be of size p",
				   r->cell.name ? r->cell.name : "");
		else if (!width || (*s && *s != ' '))
			cell_fail(r, "a state's size is a number, h, p or c, such as 2h", at);
		else
			r->width[r->nstate++] = width;
	}
	if (!failed(r) && !r->nstate)
		cell_fail(r, "it has no state", r->cell.states);
	return !failed(r);
}

/* The parameter at *s, "name[sizes]=init", which moves behind it. */
static ricci_tensor *parameter_read(Recurrent *r, const Direction *d, const char **s,
				    int64_t inputs)
{
	static const char form[] =
		"a parameter is name[size,..] or name[size,..]=value, a size is a "
		"number, n, h, p or c, such as 4h";
	const char *at = *s;
	char name[2 * NAME];
	int64_t shape[RICCI_MAX_RANK];
	int length = (int)strcspn(at, "[ "), rank = 0;
	ricci_init init = ricci_uniform_fan_in(r->o.hidden);
	const char *p = at + length;
	if (!length || length >= NAME || *p != '[')
		return cell_fail(r, form, at), NULL;
	do {
		p++;
		if (rank == RICCI_MAX_RANK || !(shape[rank++] = size_read(r, &p, inputs)))
			return cell_fail(r, form, at), NULL;
	} while (*p == ',');
	if (*p++ != ']')
		return cell_fail(r, form, at), NULL;
	if (*p == '=') {
		char *end;
		init = ricci_constant(strtod(p + 1, &end));
		if (end == p + 1)
			return cell_fail(r, form, at), NULL;
		p = end;
	}
	if (*p && *p != ' ')
		return cell_fail(r, form, at), NULL;
	*s = p;
	message_print(name, sizeof name, "%.*s%s", length, at, d->suffix);
	return layer_parameter(&r->layer, name, rank, shape, init);
}

static int parameters_read(Recurrent *r, const Direction *d, int64_t inputs, ricci_tensor **out)
{
	const char *s = r->cell.parameters ? r->cell.parameters : "";
	int n = 0;
	for (s += strspn(s, " "); *s && !failed(r); s += strspn(s, " ")) {
		if (n == PARAMETERS)
			cell_fail(r, "more than 16 parameters", s);
		else
			out[n++] = parameter_read(r, d, &s, inputs);
	}
	return n;
}

/* ---- a layer in one direction ---- */

static ricci_tensor *variable(Recurrent *r, const Direction *d, const char *name, int k,
			      ricci_type type, int64_t width)
{
	char all[2 * NAME];
	/* the layer's parameters may be shared: then the names would be, too */
	message_print(all, sizeof all, "%s%d%s_%d", name, k, d->suffix, r->g->ntensor);
	return ricci_input(r->g, all, type, width ? 2 : 0, (int64_t[]){r->batch, width});
}

/* The output h of a step, W h, with a parameter of its own. */
static ricci_tensor *projected(Recurrent *r, const Direction *d, ricci_tensor *h)
{
	char name[2 * NAME];
	message_print(name, sizeof name, "weight_hr%s", d->suffix);
	ricci_tensor *w =
		layer_parameter(&r->layer, name, 2, (int64_t[]){r->o.projection, r->o.hidden},
				ricci_uniform_fan_in(r->o.hidden));
	return ricci_op(r->g, "H, W -> N: N[b,j] += H[b,k]*W[j,k]", h, w);
}

/* The states after a step over x. */
static void cell_step(Recurrent *r, const Direction *d, ricci_tensor *x, ricci_tensor *const *state,
		      ricci_tensor **next)
{
	ricci_tensor *operand[1 + STATES + PARAMETERS] = {x}, **parameter = operand + 1 + r->nstate;
	memcpy(operand + 1, state, sizeof *state * (size_t)r->nstate);
	int n = parameters_read(r, d, ricci_extent(x, 1), parameter), result = r->nstate;
	if (!failed(r) && r->cell.text)
		ricci_ops(r->g, r->cell.text, 1 + r->nstate + n, operand, &result, next);
	else if (!failed(r) && r->cell.step(r->g, x, state, parameter, next, r->cell.user) &&
		 !failed(r))
		layer_fail(r->x, "ricci_recurrent: the step of cell %s has failed",
			   r->cell.name ? r->cell.name : "");
	for (int k = 0; k < r->nstate && !failed(r); k++) {
		int64_t width = k || !r->o.projection ? r->width[k] : r->o.hidden;
		if (k >= result || !next[k])
			layer_fail(r->x,
				   "ricci_recurrent: cell %s has %d states, its step gives %d",
				   r->cell.name ? r->cell.name : "", r->nstate,
				   k < result ? k : result);
		else if (ricci_rank(next[k]) != 2 || ricci_extent(next[k], 0) != r->batch ||
			 ricci_extent(next[k], 1) != width)
			layer_fail(r->x,
				   "ricci_recurrent: cell %s: state %d must be [%lld,%lld], its "
				   "step gives another shape",
				   r->cell.name ? r->cell.name : "", k, (long long)r->batch,
				   (long long)width);
	}
	if (r->o.projection && !failed(r))
		next[0] = projected(r, d, next[0]);
}

static ricci_tensor *initial(Recurrent *r, const Direction *d, int k)
{
	if (!r->o.initial || !r->o.initial[k])
		return NULL;
	return ricci_op(r->g, "I, D -> S: S[b,j] = I[D,b,j]", r->o.initial[k],
			ricci_integer(r->g, d->number));
}

static void run(Recurrent *r, Direction *d, ricci_tensor *rows)
{
	bool ragged = r->o.lengths != NULL;
	ricci_tensor *x = variable(r, d, "input", 0, ricci_dtype(r->x), ricci_extent(rows, 2));
	ricci_tensor *now = ragged ? variable(r, d, "time", 0, RICCI_I32, 0) : NULL;
	ricci_tensor *state[STATES], *next[STATES] = {0}, *out[STATES];
	for (int k = 0; k < r->nstate; k++)
		state[k] = variable(r, d, "state", k, ricci_dtype(r->x), r->width[k]);
	cell_step(r, d, x, state, next);
	ricci_carry carry[STATES];
	for (int k = 0; k < r->nstate && !failed(r); k++) {
		out[k] = next[k];
		if (ragged) {
			out[k] = ricci_op(r->g, "T, L, N -> Y: Y[b,j] = T[] < L[b] ? N[b,j] : 0.0",
					  now, r->o.lengths, next[k]);
			next[k] = ricci_op(r->g,
					   "T, L, N, S -> Y: Y[b,j] = T[] < L[b] ? N[b,j] : S[b,j]",
					   now, r->o.lengths, next[k], state[k]);
		}
		carry[k] = (ricci_carry){state[k], initial(r, d, k), next[k]};
	}
	ricci_slice slice[] = {{x, rows}, {now, r->clock}};
	ricci_loop loop =
		RICCI_LOOP(.steps = r->steps, .length = r->o.length, .backwards = d->backwards,
			   .nslice = ragged ? 2 : 1, .slice = slice, .ncarry = r->nstate,
			   .carry = carry, .nout = r->o.states ? r->nstate : 1, .out = out,
			   .recompute = r->o.recompute, .segment = r->o.segment);
	if (!failed(r))
		ricci_scan(r->g, &loop, d->final, d->stack);
}

/* ---- layers ---- */

/* Stack k of both directions, concatenated along their last dimension. */
static ricci_tensor *concatenated(Recurrent *r, const Direction *d, int k)
{
	if (!r->o.bidirectional)
		return d[0].stack[k];
	return ricci_op(
		r->g,
		"F, B -> Y: s = F.size(2); Y[t,b,j] = j < s ? F[t,b,j] : B[t,b,j-s] where j "
		"< 2*s",
		d[0].stack[k], d[1].stack[k]);
}

/* State k of all layers: [layers*directions,b,size]. */
static ricci_tensor *all_final(Recurrent *r, const Direction *d, int n, int k)
{
	Text t = {0};
	ricci_tensor **operand = mem_alloc((size_t)n * sizeof *operand);
	text_add(&t, "Y[l,b,j] = ");
	for (int i = 0; i < n && operand; i++) {
		operand[i] = d[i].final[k];
		if (i < n - 1)
			text_add(&t, "l == %d ? ", i);
		text_add(&t, "S%d[b,j]%s", i, i < n - 1 ? " : " : "");
	}
	text_add(&t, " where l < %d", n);
	t.failed |= !operand;
	ricci_tensor *y = layer_build(&t, n, operand ? operand : &r->x);
	mem_free(operand);
	return y;
}

/* With batch_first the first two dimensions of x, or of a result, are exchanged. */
static ricci_tensor *transposed(Recurrent *r, ricci_tensor *x)
{
	return r->o.batch_first ? ricci_op(r->g, "Y[t,b,...] = X[b,t,...]", x) : x;
}

static bool check(Recurrent *r)
{
	ricci_recurrent_options *o = &r->o;
	const char *who = "ricci_recurrent";
	ricci_tensor *l = o->lengths;
	r->steps = ricci_extent(r->x, o->batch_first ? 1 : 0);
	r->batch = ricci_extent(r->x, o->batch_first ? 0 : 1);
	o->layers = o->layers ? o->layers : 1;
	if (!o->cell)
		layer_fail(r->x, "%s: no .cell, such as ricci_lstm()", who);
	else if (struct_take(&r->cell, sizeof r->cell, o->cell, "ricci_cell", &r->g->ir.err))
		return false;
	else if (!r->cell.states || !r->cell.text == !r->cell.step)
		layer_fail(r->x, "%s: cell %s must have .states, and .text or .step", who,
			   r->cell.name ? r->cell.name : "");
	else if (o->hidden < 1)
		layer_fail(r->x, "%s: .hidden is %lld, it must be 1 or more", who,
			   (long long)o->hidden);
	else if (o->context < 0)
		layer_fail(r->x, "%s: .context is %lld, it must be 0 (none) or more", who,
			   (long long)o->context);
	else if (o->projection < 0)
		layer_fail(r->x, "%s: .projection is %lld, it must be 0 (none) or more", who,
			   (long long)o->projection);
	else if (o->layers < 1)
		layer_fail(r->x, "%s: .layers is %d, it must be 1 or more", who, o->layers);
	else if (!(o->dropout >= 0 && o->dropout < 1))
		layer_fail(r->x, "%s: dropout is %g, it must be 0 or more and less than 1", who,
			   o->dropout);
	else if (l && (ricci_rank(l) != 1 || ricci_extent(l, 0) != r->batch ||
		       ricci_dtype(l) != RICCI_I32))
		layer_fail(r->x, "%s: lengths must be i32 [%lld], one number for each sample", who,
			   (long long)r->batch);
	return !failed(r) && states_read(r);
}

static bool initial_check(Recurrent *r, int n)
{
	for (int k = 0; k < r->nstate && r->o.initial; k++) {
		const ricci_tensor *t = r->o.initial[k];
		if (t && (ricci_rank(t) != 3 || ricci_extent(t, 0) != n ||
			  ricci_extent(t, 1) != r->batch || ricci_extent(t, 2) != r->width[k]))
			layer_fail(r->x,
				   "ricci_recurrent: initial state %d must be [%d,%lld,%lld]: "
				   "layers times directions, batch, size",
				   k, n, (long long)r->batch, (long long)r->width[k]);
	}
	return !failed(r);
}

/* All layers; d: of all layers and directions, the last layer's stacks are the results. */
static ricci_tensor *layers(Recurrent *r, Direction *d, int directions)
{
	ricci_tensor *rows = transposed(r, r->x);
	if (r->o.lengths)
		r->clock = ricci_op(r->g, "N -> T: T[t] = i32(t) where t < N",
				    ricci_integer(r->g, r->steps));
	for (int layer = 0; layer < r->o.layers && !failed(r); layer++) {
		Direction *here = d + (ptrdiff_t)layer * directions;
		if (layer)
			rows = concatenated(r, here - directions, 0);
		if (layer && r->o.dropout > 0)
			rows = ricci_dropout(rows, r->o.dropout);
		for (int k = 0; k < directions; k++) {
			here[k] = (Direction){.number = layer * directions + k, .backwards = k};
			message_print(here[k].suffix, NAME, "_l%d%s", layer, k ? "_reverse" : "");
			run(r, &here[k], rows);
		}
	}
	Direction *last = d + (ptrdiff_t)(r->o.layers - 1) * directions;
	for (int k = 0; k < r->nstate && !failed(r); k++) {
		if (r->o.final)
			r->o.final[k] = all_final(r, d, r->o.layers * directions, k);
		if (r->o.states)
			r->o.states[k] = transposed(r, concatenated(r, last, k));
	}
	return failed(r) ? layer_nil(r->x) : transposed(r, concatenated(r, last, 0));
}

ricci_tensor *ricci_recurrent(ricci_tensor *x, const char *name,
			      const ricci_recurrent_options *options)
{
	Recurrent r = {.x = x,
		       .layer = {.call = "ricci_recurrent", .name = name},
		       .o = RICCI_RECURRENT(),
		       .cell = RICCI_CELL()};
	if (!layer_begin(&r.layer,
			 &(Operand){x, 3, 3, "x [time, batch, size] or [batch, time, size]"}, &r.o,
			 sizeof r.o, options, "ricci_recurrent_options"))
		return layer_nil(x);
	r.g = ricci_graph_of(x);
	r.layer.share = r.o.share != 0;
	if (!check(&r))
		return layer_nil(x);
	int directions = r.o.bidirectional ? 2 : 1;
	for (int k = 0; k < r.nstate; k++) {
		if (r.o.final)
			r.o.final[k] = layer_nil(x);
		if (r.o.states)
			r.o.states[k] = layer_nil(x);
	}
	if (!initial_check(&r, r.o.layers * directions))
		return layer_nil(x);
	Direction *d = mem_zalloc((size_t)r.o.layers * (size_t)directions * sizeof *d);
	if (!d) {
		error_set(&r.g->ir.err, RICCI_ENOMEM, "out of memory");
		return layer_nil(x);
	}
	ricci_tensor *y = layers(&r, d, directions);
	mem_free(d);
	return y;
}
