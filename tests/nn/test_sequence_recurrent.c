/* Recurrent layers against PyTorch (vectors.py), in f64 and f32; cells of a user's; products
 * of the input are outside of the loop; what wrong cells and operands get to hear. */
#include "tests/memory_check.h"
#include "tests/nn/sequence.h"

enum { B = 2, T = 3, N = 3, C = 2, STEPS = 6 };

static ricci_tensor *state_of(Case *c, int n, int64_t width)
{
	return operand(c, SHAPE(n, B, width));
}

/* One layer, or several, from given states; results: the outputs, the last states. */
static void layer(ricci_type type, const char *name, const ricci_cell *cell, int layers,
		  int context, int projection)
{
	Case c;
	case_open(&c, type);
	ricci_tensor *x = operand(&c, SHAPE(T, B, N)), *start[2], *y[3];
	int n = strchr(cell->states, ' ') ? 2 : 1;
	for (int k = 0; k < n; k++)
		start[k] = state_of(&c, layers,
				    k && context       ? context
				    : !k && projection ? projection
						       : C);
	y[0] = ricci_recurrent(x, "",
			       &RICCI_RECURRENT(.cell = cell, .hidden = C, .context = context,
						.layers = layers, .projection = projection,
						.initial = start, .final = y + 1));
	take_parameters(&c);
	CHECK_STR(ricci_name(ricci_param_at(c.g, 0, NULL)), "weight_ih_l0");
	if (projection)
		CHECK_STR(ricci_name(ricci_param_at(c.g, 4, NULL)), "weight_hr_l0");
	compare(&c, name, 1 + n, y);
	case_close(&c);
}

/* Two layers in both directions, samples of 3 and 1 steps. */
static void ragged(ricci_type type, int projection)
{
	Case c;
	case_open(&c, type);
	ricci_tensor *x = operand(&c, SHAPE(B, T, N)), *start[2], *y[3];
	start[0] = state_of(&c, 4, projection ? projection : C);
	start[1] = state_of(&c, 4, C);
	ricci_tensor *lengths = fixed(&c, "lengths", RICCI_I32, SHAPE(B), (int32_t[]){3, 1});
	y[0] = ricci_recurrent(x, "",
			       &RICCI_RECURRENT(.cell = ricci_lstm(), .hidden = C, .layers = 2,
						.bidirectional = 1, .batch_first = 1,
						.projection = projection, .lengths = lengths,
						.initial = start, .final = y + 1));
	take_parameters(&c);
	CHECK_STR(ricci_name(ricci_param_at(c.g, projection ? 19 : 15, NULL)),
		  projection ? "weight_hr_l1_reverse" : "bias_hh_l1_reverse");
	compare(&c, projection ? "lstm layers lengths projection" : "lstm layers lengths", 3, y);
	case_close(&c);
}

static int my_step(ricci_graph *g, ricci_tensor *x, ricci_tensor *const *state,
		   ricci_tensor *const *parameter, ricci_tensor **next, void *user)
{
	*(int *)user += 1;
	next[0] =
		ricci_op(g,
			 "X, H, W, U, B, D -> N: A[b,j] += X[b,k]*W[j,k]; R[b,j] += H[b,k]*U[j,k];"
			 "N[b,j] = tanh(A[b,j] + B[j] + R[b,j] + D[j])",
			 x, state[0], parameter[0], parameter[1], parameter[2], parameter[3]);
	return 0;
}

/* A user's cell, as a function and as a text. */
static void own_cell(void)
{
	int calls = 0;
	ricci_cell cell = *ricci_rnn();
	cell.text = NULL;
	cell.step = my_step;
	cell.user = &calls;
	layer(RICCI_F64, "rnn", &cell, 1, 0, 0);
	CHECK_INT(calls, 1);

	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(4, 1, 2)), *last, *all;
	cell = RICCI_CELL(.name = "decay", .states = "h", .parameters = "keep[h]=0.5",
			  .text = "X, H, K -> N: N[b,j] = K[j]*H[b,j] + X[b,j]");
	ricci_recurrent(
		x, "",
		&RICCI_RECURRENT(.cell = &cell, .hidden = 2, .final = &last, .states = &all));
	CHECK_GRAPH(g);
	ricci_tensor *out[] = {last, all};
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.threads = 1), 0, 2, out);
	float in[8] = {1, 2, 0, 0, 4, 0, 0, 8}, y[8], end[2];
	const float want[8] = {1, 2, .5, 1, 4.25, .5, 2.125, 8.25};
	CHECK_INT(ricci_feed(s, x, in, sizeof in), 0);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, all, y, sizeof y), 0);
	CHECK_INT(ricci_fetch(s, last, end, sizeof end), 0);
	for (int i = 0; i < 8; i++)
		CHECK_NEAR(y[i], want[i], 0);
	CHECK_NEAR(end[0], want[6], 0);
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* Every cell whose first state is of size p makes outputs of that many columns. */
static void projections(void)
{
	const ricci_cell *const cells[] = {ricci_rnn(),
					   ricci_rnn_relu(),
					   ricci_lstm(),
					   ricci_mi_lstm(),
					   ricci_mi_lstm_general(),
					   ricci_scrn(),
					   ricci_sublstm(),
					   ricci_lltm()};
	for (int k = 0; k < COUNT(cells); k++) {
		ricci_graph *g = ricci_graph_new();
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(T, B, N)), *last[2], *w;
		ricci_tensor *y = ricci_recurrent(x, "",
						  &RICCI_RECURRENT(.cell = cells[k], .hidden = 5,
								   .context = 4, .projection = 3,
								   .layers = 2, .final = last));
		CHECK_GRAPH(g);
		CHECK_INT(ricci_extent(y, 2), 3);
		CHECK_INT(ricci_extent(last[0], 2), 3);
		CHECK((w = ricci_param_find(g, "weight_hr_l1")) != NULL);
		CHECK_INT(ricci_extent(w, 0), 3);
		CHECK_INT(ricci_extent(w, 1), 5);
		ricci_graph_free(g);
	}
}

/* As many steps as are said at run time; what lies behind them is 0. */
static void run_time_length(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(4, 1, 1));
	ricci_tensor *n = ricci_input(g, "n", RICCI_I32, 0, NULL);
	ricci_cell cell = RICCI_CELL(.states = "h", .text = "X, H -> N: N[b,j] = H[b,j] + X[b,j]");
	ricci_tensor *y = ricci_recurrent(
		x, "",
		&RICCI_RECURRENT(.cell = &cell, .hidden = 1, .bidirectional = 1, .length = n));
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.threads = 1), 0, 1, &y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	for (int length = 0; length <= 4; length++) {
		float in[4] = {1, 2, 4, 8}, out[8];
		CHECK_INT(ricci_feed(s, x, in, sizeof in), 0);
		CHECK_INT(ricci_feed(s, n, &length, sizeof length), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, y, out, sizeof out), 0);
		for (int t = 0; t < 4; t++) {
			int before = (1 << (t + 1)) - 1, after = (1 << length) - (1 << t);
			CHECK_NEAR(out[2 * t], t < length ? before : 0, 0);
			CHECK_NEAR(out[2 * t + 1], t < length ? after : 0, 0);
		}
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* The kernels that read the input's weights run once a step of the session, those of the state's
 * once a step of the loop. */
static void outside(const ricci_cell *cell)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(STEPS, 8, 16));
	ricci_tensor *y =
		ricci_recurrent(x, "", &RICCI_RECURRENT(.cell = cell, .hidden = 16, .context = 16));
	ricci_session *s = ricci_session_new(
		g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1), 0, 1, &y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	float in[STEPS * 8 * 16] = {0};
	CHECK_INT(ricci_feed(s, x, in, sizeof in), 0);
	CHECK_INT(ricci_time_kernels(s, 1), 0);
	for (int k = 0; k < 3; k++)
		CHECK_INT(ricci_step(s), 0);
	ricci_profile *p = ricci_profile_new(s);
	CHECK_REPORT(p != NULL, "%s", ricci_error_message());
	int seen[2] = {0};
	for (int k = 0; p && k < ricci_profile_count(p); k++) {
		const ricci_kernel_time *row = ricci_profile_at(p, k);
		for (int t = 0; t < row->ntensor && !row->is_loop; t++)
			for (int of = 0; of < 2; of++)
				if (!strcmp(row->tensor[t], of ? "weight_hh_l0" : "weight_ih_l0")) {
					CHECK_NEAR(row->launches, of ? STEPS : 1, 0);
					seen[of]++;
				}
	}
	CHECK_REPORT(seen[0] && seen[1], "%s: no kernel reads the weights", cell->name);
	ricci_profile_free(p);
	ricci_session_free(s);
	ricci_graph_free(g);
}

#define WRONG(code, message, ...)                                                                  \
	do {                                                                                       \
		ricci_graph *g = ricci_graph_new();                                                \
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(3, 4, 5));                  \
		ricci_tensor *i1 = ricci_input(g, "i1", RICCI_I32, SHAPE(3));                      \
		ricci_tensor *h = ricci_input(g, "h", RICCI_F32, SHAPE(1, 4, 3));                  \
		ricci_cell cell = RICCI_CELL(.name = "mine", .states = "h", .text = "X, H -> H");  \
		(void)i1, (void)h, (void)cell;                                                     \
		CHECK(ricci_recurrent(x, "", &RICCI_RECURRENT(__VA_ARGS__)) == &g->nil);           \
		CHECK_INT(ricci_graph_error(g), code);                                             \
		CHECK_STR(ricci_error_message(), message);                                         \
		ricci_graph_free(g);                                                               \
	} while (0)
#define MINE(...) .hidden = 2, .cell = &RICCI_CELL(.name = "mine", __VA_ARGS__)

static void wrong(void)
{
	WRONG(RICCI_ESHAPE, "ricci_recurrent: no .cell, such as ricci_lstm()", .hidden = 2);
	WRONG(RICCI_ESHAPE, "ricci_recurrent: .hidden is 0, it must be 1 or more",
	      .cell = ricci_lstm());
	WRONG(RICCI_ESHAPE, "ricci_recurrent: .layers is -1, it must be 1 or more",
	      .cell = ricci_lstm(), .hidden = 2, .layers = -1);
	WRONG(RICCI_ESHAPE, "ricci_recurrent: dropout is 1, it must be 0 or more and less than 1",
	      .cell = ricci_lstm(), .hidden = 2, .dropout = 1);
	WRONG(RICCI_ESHAPE, "ricci_recurrent: lengths must be i32 [4], one number for each sample",
	      .cell = ricci_lstm(), .hidden = 2, .lengths = i1);
	WRONG(RICCI_ESHAPE,
	      "ricci_recurrent: initial state 1 must be [1,4,2]: layers times directions, batch, "
	      "size",
	      .cell = ricci_lstm(), .hidden = 2, .initial = ((ricci_tensor *[]){NULL, h}));
	WRONG(RICCI_ESHAPE, "ricci_recurrent: cell ricci_scrn needs .context, the size of 'c'",
	      .cell = ricci_scrn(), .hidden = 2);
	WRONG(RICCI_ESHAPE, "ricci_recurrent: .context is -1, it must be 0 (none) or more",
	      .cell = ricci_scrn(), .hidden = 2, .context = -1);
	WRONG(RICCI_ESHAPE, "ricci_recurrent: .projection is -1, it must be 0 (none) or more",
	      .cell = ricci_lstm(), .hidden = 2, .projection = -1);
	WRONG(RICCI_ESHAPE,
	      "ricci_recurrent: cell ricci_gru has no projection: its first state must be of size "
	      "p",
	      .cell = ricci_gru(), .hidden = 2, .projection = 1);
	WRONG(RICCI_ESHAPE,
	      "ricci_recurrent: initial state 0 must be [1,4,2]: layers times directions, batch, "
	      "size",
	      .cell = ricci_lstm(), .hidden = 4, .projection = 2,
	      .initial = ((ricci_tensor *[]){h, NULL}));
	WRONG(RICCI_ESHAPE, "ricci_recurrent: cell mine must have .states, and .text or .step",
	      MINE(.states = "h"));
	WRONG(RICCI_ESHAPE,
	      "ricci_recurrent: cell mine: a state's size is a number, h, p or c, such as 2h, at "
	      "'q'",
	      MINE(.states = "q", .text = "X -> X"));
	WRONG(RICCI_ESHAPE, "ricci_recurrent: cell mine: it has no state, at ''",
	      MINE(.states = "", .text = "X -> X"));
	WRONG(RICCI_ESHAPE,
	      "ricci_recurrent: cell mine: a parameter is name[size,..] or name[size,..]=value, a "
	      "size is a number, n, h, p or c, such as 4h, at 'w[h;n]'",
	      MINE(.states = "h", .parameters = "w[h;n]", .text = "X -> X"));
	WRONG(RICCI_ESHAPE, "ricci_recurrent: cell mine has 2 states, its step gives 1",
	      MINE(.states = "h h", .text = "X, H, C -> N: N[b,j] = H[b,j] + C[b,j] + X[b,0]"));
	WRONG(RICCI_ESHAPE,
	      "ricci_recurrent: cell mine: state 0 must be [4,2], its step gives another shape",
	      MINE(.states = "h", .text = "X, H -> N: N[b,j] = X[b,j] + H[b,0]"));
	WRONG(RICCI_ESHAPE,
	      "ricci_recurrent: nothing to share: the graph has no parameter weight_ih_l0",
	      .cell = ricci_lstm(), .hidden = 2, .share = 1);
	WRONG(RICCI_EINVAL,
	      "equation: no tensor is given for W: the program reads 3 (X, H, W), 2 given\n"
	      "  X, H, W -> N: N[b,j] = W[j]*H[b,j] + X[b,j]\n"
	      "                         ^",
	      MINE(.states = "h", .text = "X, H, W -> N: N[b,j] = W[j]*H[b,j] + X[b,j]"));
}

/* A loop of the user's around a layer of one step, which is how a text is written. */
static ricci_tensor *stepped(ricci_graph *g, ricci_tensor *x, ricci_recurrent_options o)
{
	ricci_tensor *row = ricci_input(g, "row", RICCI_F32, SHAPE(2, 3)), *state[2], *next[2],
		     *all;
	state[0] = ricci_input(g, "h", RICCI_F32, SHAPE(1, 2, 4));
	state[1] = ricci_input(g, "c", RICCI_F32, SHAPE(1, 2, 4));
	o.initial = state;
	o.final = next;
	ricci_tensor *y =
		ricci_recurrent(ricci_op(g, "Y[t,...] = X[...] where t < 1", row), "r", &o);
	y = ricci_op(g, "Z[...] = Y[0,...]", y);
	ricci_carry carry[] = {{state[0], NULL, next[0]}, {state[1], NULL, next[1]}};
	ricci_loop loop = RICCI_LOOP(.steps = STEPS, .nslice = 1, .slice = &(ricci_slice){row, x},
				     .ncarry = 2, .carry = carry, .nout = 1, .out = &y);
	ricci_scan(g, &loop, NULL, &all);
	return all;
}

/* Layers with the same parameters: half of a sequence each, or a step each, gives what one gives at
 * once. */
static void shared(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(STEPS, 2, 3)), *last[2];
	ricci_tensor *first = ricci_op(g, "Y[t,...] = X[t,...] where t < 3", x);
	ricci_tensor *second = ricci_op(g, "Y[t,...] = X[t+3,...]", x), *y[4];
	ricci_recurrent_options o = RICCI_RECURRENT(.cell = ricci_lstm(), .hidden = 4);
	y[0] = ricci_recurrent(x, "r", &o);
	o.share = 1;
	o.final = last;
	y[1] = ricci_recurrent(first, "r", &o);
	o.final = NULL;
	o.initial = last;
	y[2] = ricci_recurrent(second, "r", &o);
	y[3] = stepped(g, x, o);
	CHECK_GRAPH(g);
	CHECK_INT(ricci_param_count(g), 4);
	CHECK(ricci_param_find(g, "r.weight_hh_l0") != NULL);
	ricci_session *s = ricci_session_new(g, &RICCI_OPTIONS(.threads = 1), 0, 4, y);
	float in[STEPS * 6], all[STEPS * 8], part[STEPS * 8], step[STEPS * 8];
	for (int i = 0; i < STEPS * 6; i++)
		in[i] = (float)value_at(i, 0);
	CHECK_INT(ricci_feed(s, x, in, sizeof in), 0);
	CHECK_INT(ricci_step(s), 0);
	CHECK_INT(ricci_fetch(s, y[0], all, sizeof all), 0);
	CHECK_INT(ricci_fetch(s, y[1], part, sizeof part / 2), 0);
	CHECK_INT(ricci_fetch(s, y[2], part + STEPS * 4, sizeof part / 2), 0);
	CHECK_INT(ricci_fetch(s, y[3], step, sizeof step), 0);
	for (int i = 0; i < STEPS * 8; i++) {
		CHECK_NEAR(part[i], all[i], 1e-6);
		CHECK_NEAR(step[i], all[i], 1e-6);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

/* Where memory ends in the middle of it. */
static int build(void)
{
	ricci_graph *g = ricci_graph_new();
	if (!g)
		return RICCI_ENOMEM;
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, SHAPE(2, 3, 4)), *last[2];
	ricci_tensor *y = ricci_recurrent(x, "",
					  &RICCI_RECURRENT(.cell = ricci_lstm(), .hidden = 3,
							   .layers = 2, .bidirectional = 1,
							   .dropout = 0.5, .final = last));
	y = ricci_multihead_attention(y, NULL, NULL, "a",
				      &RICCI_ATTENTION(.heads = 2, .causal = 1));
	ricci_rotary(y, &RICCI_ROTARY(.heads = 3));
	ricci_sinusoidal_positions(y, NULL);
	int code = ricci_graph_error(g);
	ricci_graph_free(g);
	return code;
}

int main(void)
{
	for (int wide = 0; wide < 2; wide++) {
		ricci_type type = wide ? RICCI_F64 : RICCI_F32;
		layer(type, "rnn", ricci_rnn(), 1, 0, 0);
		layer(type, "rnn relu", ricci_rnn_relu(), 1, 0, 0);
		layer(type, "gru", ricci_gru(), 1, 0, 0);
		layer(type, "lstm", ricci_lstm(), 1, 0, 0);
		layer(type, "gru layers", ricci_gru(), 2, 0, 0);
		layer(type, "mi_lstm", ricci_mi_lstm(), 1, 0, 0);
		layer(type, "mi_lstm general", ricci_mi_lstm_general(), 1, 0, 0);
		layer(type, "sublstm", ricci_sublstm(), 1, 0, 0);
		layer(type, "lltm", ricci_lltm(), 1, 0, 0);
		layer(type, "scrn", ricci_scrn(), 1, 3, 0);
		layer(type, "lstm projection", ricci_lstm(), 1, 0, 1);
		layer(type, "rnn projection", ricci_rnn(), 1, 0, 1);
		ragged(type, 0);
		ragged(type, 1);
	}
	own_cell();
	projections();
	shared();
	run_time_length();
	const ricci_cell *const cells[] = {ricci_rnn(),	    ricci_lstm(), ricci_gru(),
					   ricci_mi_lstm(), ricci_scrn(), ricci_sublstm(),
					   ricci_lltm()};
	for (int k = 0; k < COUNT(cells); k++)
		outside(cells[k]);
	wrong();
	check_memory(build);
	return check_done();
}
