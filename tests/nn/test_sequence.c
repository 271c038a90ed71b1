/* Attention and positions against PyTorch (vectors.py), in f64 and f32, and what they say to
 * wrong operands. */
#include "tests/nn/sequence.h"

enum { B = 2, H = 2, T = 3, S = 4, D = 2, E = H * D };

/* Scaled dot product attention; each case has a mask of its own. */
static void attention(ricci_type type, const char *name, ricci_attention_options o)
{
	Case c;
	case_open(&c, type);
	ricci_tensor *q = operand(&c, SHAPE(B, H, T, D)), *k = operand(&c, SHAPE(B, H, S, D));
	ricci_tensor *v = operand(&c, SHAPE(B, H, S, D));
	bool all = !strcmp(name, "combined");
	if (all || !strcmp(name, "position"))
		o.position = fixed(&c, "p", RICCI_I32, 0, NULL, &(int32_t){1});
	if (all || !strcmp(name, "lengths"))
		o.lengths = fixed(&c, "l", RICCI_I32, SHAPE(B), (int32_t[]){4, 2});
	if (!strcmp(name, "mask"))
		o.mask = operand(&c, SHAPE(T, S));
	if (!strcmp(name, "mask3"))
		o.mask = operand(&c, SHAPE(B, T, S));
	if (!strcmp(name, "mask4"))
		o.mask = operand(&c, SHAPE(B, H, T, S));
	if (all || !strcmp(name, "chosen")) {
		uint8_t seen[T * S];
		for (int i = 0; i < T * S; i++)
			seen[i] = (3 * (i / S) + i % S) % 4 < 2;
		o.mask = fixed(&c, "m", RICCI_BOOL, SHAPE(T, S), seen);
	}
	ricci_tensor *y = ricci_attention(q, k, v, &o);
	compare(&c, name, 1, &y);
	case_close(&c);
}

static void shapes(ricci_type type)
{
	Case c;
	case_open(&c, type);
	ricci_tensor *q = operand(&c, SHAPE(B, 4, T, D)), *k = operand(&c, SHAPE(B, 2, S, D));
	ricci_tensor *y = ricci_attention(q, k, operand(&c, SHAPE(B, 2, S, 3)), NULL);
	compare(&c, "grouped", 1, &y);
	case_close(&c);
	case_open(&c, type);
	q = operand(&c, SHAPE(B, T, E)), k = operand(&c, SHAPE(B, T, E));
	y = ricci_attention(q, k, operand(&c, SHAPE(B, T, E)),
			    &RICCI_ATTENTION(.heads = H, .causal = 1));
	compare(&c, "flat", 1, &y);
	case_close(&c);
}

static void module(ricci_type type, const char *name, int key, int value, int no_bias)
{
	Case c;
	case_open(&c, type);
	ricci_tensor *q = operand(&c, SHAPE(B, T, E)), *k = NULL, *v = NULL;
	if (key) {
		k = operand(&c, SHAPE(B, S, key));
		v = operand(&c, SHAPE(B, S, value));
	}
	ricci_attention_options o = RICCI_ATTENTION(.heads = H, .no_bias = no_bias);
	if (key || no_bias)
		o.lengths = fixed(&c, "l", RICCI_I32, SHAPE(B), (int32_t[]){key ? S : T, 2});
	ricci_tensor *y = ricci_multihead_attention(q, k, v, "", &o);
	take_parameters(&c);
	if (!no_bias)
		CHECK_STR(ricci_name(c.x[c.n - 1]), "out_proj.bias");
	CHECK_STR(ricci_name(c.x[key ? 3 : 1]),
		  key && key != E ? "q_proj_weight" : "in_proj_weight");
	compare(&c, name, 1, &y);
	case_close(&c);
}

/* Fewer heads of keys and values than of queries. */
static void grouped_module(ricci_type type)
{
	Case c;
	case_open(&c, type);
	ricci_tensor *y = ricci_multihead_attention(
		operand(&c, SHAPE(B, T, E)), NULL, NULL, "",
		&RICCI_ATTENTION(.heads = 2, .key_heads = 1, .causal = 1));
	take_parameters(&c);
	compare(&c, "grouped module", 1, &y);
	case_close(&c);
}

static void positions(ricci_type type)
{
	const struct {
		const char *name;
		ricci_rotary_options o;
		int at;
	} rotary[] = {{"rotary", RICCI_ROTARY(), 0},
		      {"rotary halves", RICCI_ROTARY(.halves = 1), 0},
		      {"rotary part", RICCI_ROTARY(.halves = 1, .dims = 4, .base = 500), 7},
		      {"rotary flat", RICCI_ROTARY(.heads = H), 0}};
	Case c;
	for (int i = 0; i < 4; i++) {
		ricci_rotary_options o = rotary[i].o;
		case_open(&c, type);
		ricci_tensor *x =
			o.heads ? operand(&c, SHAPE(B, T, H * 4)) : operand(&c, SHAPE(B, H, T, 6));
		if (rotary[i].at)
			o.position = fixed(&c, "p", RICCI_I32, 0, NULL, &(int32_t){rotary[i].at});
		ricci_tensor *y = ricci_rotary(x, &o);
		compare(&c, rotary[i].name, 1, &y);
		case_close(&c);
	}
	for (int odd = 0; odd < 2; odd++) {
		case_open(&c, type);
		ricci_tensor *x = operand(&c, SHAPE(B, T, odd ? 5 : 6)), *p = NULL;
		if (odd)
			p = fixed(&c, "p", RICCI_I32, 0, NULL, &(int32_t){9});
		ricci_tensor *y = ricci_sinusoidal_positions(x, p);
		compare(&c, odd ? "sinusoidal odd" : "sinusoidal", 1, &y);
		case_close(&c);
	}
	for (int at = 0; at < 2; at++) {
		case_open(&c, type);
		ricci_tensor *x = operand(&c, SHAPE(B, T, 4)), *w = operand(&c, SHAPE(5, 4)),
			     *p = NULL;
		if (at)
			p = fixed(&c, "p", RICCI_I32, 0, NULL, &(int32_t){2});
		ricci_tensor *y = ricci_learned_positions(x, w, p);
		compare(&c, at ? "learned at" : "learned", 1, &y);
		case_close(&c);
	}
}

/* A sample without keys: zeros, in the gradients too. */
static void no_keys(void)
{
	Case c;
	case_open(&c, RICCI_F64);
	ricci_tensor *q = operand(&c, SHAPE(1, 1, 2, 2)), *k = operand(&c, SHAPE(1, 1, 3, 2)),
		     *grad[3];
	ricci_tensor *l = fixed(&c, "l", RICCI_I32, SHAPE(1), (int32_t[]){0});
	ricci_tensor *y = ricci_attention(q, k, operand(&c, SHAPE(1, 1, 3, 2)),
					  &RICCI_ATTENTION(.lengths = l));
	CHECK_INT(ricci_grad(c.g, y, NULL, 3, c.x, grad), 0);
	for (int n = 0; n < 4; n++) {
		double out[6] = {1, 1, 1, 1, 1, 1};
		Error e = {0};
		ricci_tensor *t = n ? grad[n - 1] : y;
		CHECK_INT(
			interp_tensor(t->node, c.nbind, c.bind, (RandomState){1, 0}, out, NULL, &e),
			0);
		for (int i = 0; i < tensor_size(t->node); i++)
			CHECK_NEAR(out[i], 0, 0);
	}
	case_close(&c);
}

/* Weights are dropped in training sessions only, and as many as were asked for: with values of 1
 * the result is the sum of the weights that stay. */
static void dropout(void)
{
	enum { N = 64 };
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *w = ricci_state(g, "w", RICCI_F32, 0, NULL, ricci_constant(0));
	ricci_assign(g, w, w); /* something to train */
	ricci_tensor *q = ricci_input(g, "q", RICCI_F32, SHAPE(1, 1, N, 1));
	ricci_tensor *v = ricci_input(g, "v", RICCI_F32, SHAPE(1, 1, N, 1));
	ricci_tensor *y = ricci_attention(q, q, v, &RICCI_ATTENTION(.dropout = 0.25));
	CHECK_GRAPH(g);
	for (int train = 0; train < 2; train++) {
		float zero[N] = {0}, one[N], out[N];
		for (int i = 0; i < N; i++)
			one[i] = 1;
		ricci_session *s = ricci_session_new(
			g, &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1), train, 1,
			&y);
		CHECK_REPORT(s != NULL, "%s", ricci_error_message());
		CHECK_INT(ricci_feed(s, q, zero, sizeof zero), 0);
		CHECK_INT(ricci_feed(s, v, one, sizeof one), 0);
		CHECK_INT(ricci_step(s), 0);
		CHECK_INT(ricci_fetch(s, y, out, sizeof out), 0);
		double sum = 0, square = 0;
		for (int i = 0; i < N; i++) {
			sum += (double)out[i] / N;
			square += pow((double)out[i] - 1, 2);
		}
		CHECK_NEAR(sum, 1, train ? 0.05 : 1e-6);
		/* N weights of variance p / (1 - p) / N^2 each: N rows of them */
		CHECK_NEAR(square, train ? 0.25 / 0.75 : 0, train ? 0.2 : 1e-6);
		ricci_session_free(s);
	}
	ricci_graph_free(g);
}

#define WRONG(message, expression) WRONG_AS(RICCI_ESHAPE, message, expression)
#define WRONG_AS(code, message, expression)                                                        \
	do {                                                                                       \
		ricci_graph *g = ricci_graph_new();                                                \
		ricci_tensor *x2 = ricci_input(g, "x2", RICCI_F32, SHAPE(3, 4));                   \
		ricci_tensor *x3 = ricci_input(g, "x3", RICCI_F32, SHAPE(2, 5, 6));                \
		ricci_tensor *x4 = ricci_input(g, "x4", RICCI_F32, SHAPE(2, 6, 5, 3));             \
		ricci_tensor *w4 = ricci_input(g, "w4", RICCI_F32, SHAPE(2, 4, 7, 3));             \
		ricci_tensor *i1 = ricci_input(g, "i1", RICCI_I32, SHAPE(3));                      \
		(void)x2, (void)x3, (void)x4, (void)w4, (void)i1;                                  \
		CHECK((expression) == &g->nil);                                                    \
		CHECK_INT(ricci_graph_error(g), code);                                             \
		CHECK_STR(ricci_error_message(), message);                                         \
		ricci_graph_free(g);                                                               \
	} while (0)

static void wrong(void)
{
	WRONG("ricci_attention: q [batch, heads, time, size] or [batch, time, heads * size] "
	      "expected, 'x2' has 2 dimensions",
	      ricci_attention(x2, x2, x2, NULL));
	WRONG("ricci_attention: operands [batch, time, heads * size] need .heads, 1 or more",
	      ricci_attention(x3, x3, x3, NULL));
	WRONG("ricci_attention: q, k and v of 6, 6 and 6 columns are not 4, 4 and 4 heads",
	      ricci_attention(x3, x3, x3, &RICCI_ATTENTION(.heads = 4)));
	WRONG("ricci_attention: q has 4 dimensions, k has 3, v has 4",
	      ricci_attention(x4, x3, x4, NULL));
	WRONG("ricci_attention: 6 heads don't share 4 heads of keys evenly",
	      ricci_attention(x4, w4, w4, NULL));
	WRONG("ricci_attention: 5 keys, but 7 values", ricci_attention(x4, x4, w4, NULL));
	WRONG("ricci_attention: lengths must be i32 [2], one number for each sample",
	      ricci_attention(x4, x4, x4, &RICCI_ATTENTION(.lengths = i1)));
	WRONG("ricci_attention: mask must be [5,5], queries and keys, or have the batch or batch "
	      "and heads, [2,6], before them",
	      ricci_attention(x4, x4, x4, &RICCI_ATTENTION(.mask = x2)));
	WRONG("ricci_attention: dropout is 1, it must be 0 or more and less than 1",
	      ricci_attention(x4, x4, x4, &RICCI_ATTENTION(.dropout = 1)));
	WRONG("ricci_attention: position must be i32 [], or i32 [2], one for each sample",
	      ricci_attention(x4, x4, x4, &RICCI_ATTENTION(.causal = 1, .position = i1)));
	WRONG("ricci_multihead_attention: 6 columns can't be divided into 0 heads; give .heads",
	      ricci_multihead_attention(x3, NULL, NULL, "", &RICCI_ATTENTION()));
	WRONG_AS(RICCI_EINVAL, "ricci_multihead_attention: no name given",
		 ricci_multihead_attention(x3, NULL, NULL, NULL, &RICCI_ATTENTION(.heads = 2)));
	WRONG_AS(RICCI_EINVAL, "ricci_multihead_attention: no options given",
		 ricci_multihead_attention(x3, NULL, NULL, "a", NULL));
	WRONG("ricci_multihead_attention: query [batch, time, size] expected, 'x4' has 4 "
	      "dimensions",
	      ricci_multihead_attention(x4, NULL, NULL, "", &RICCI_ATTENTION(.heads = 2)));
	WRONG("ricci_rotary: 3 of 3 numbers are rotated, it must be an even part",
	      ricci_rotary(x4, NULL));
	WRONG("ricci_rotary: 6 columns can't be divided into 0 heads; give .heads",
	      ricci_rotary(x3, NULL));
	WRONG("ricci_sinusoidal_positions: position must be i32 [], or i32 [2], one for each "
	      "sample",
	      ricci_sinusoidal_positions(x3, i1));
	WRONG("ricci_learned_positions: table is [3,4], x needs [5 or more,6]",
	      ricci_learned_positions(x3, x2, NULL));
	CHECK(!ricci_attention(NULL, NULL, NULL, NULL));
}

/* What each function gives with a position for each sample, and, of sample b, with that of b for all.
 */
static ricci_tensor *with_position(int what, ricci_tensor *x, ricci_tensor *table, ricci_tensor *p)
{
	switch (what) {
	case 0:
		return ricci_rotary(x, &RICCI_ROTARY(.heads = 2, .position = p));
	case 1:
		return ricci_sinusoidal_positions(x, p);
	case 2:
		return ricci_learned_positions(x, table, p);
	default:
		return ricci_attention(x, x, x,
				       &RICCI_ATTENTION(.heads = 2, .causal = 1, .position = p));
	}
}

static void positions_of_samples(void)
{
	static const int32_t at[2] = {3, 1};
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_param(g, "x", RICCI_F32, 3, (int64_t[]){2, 5, 8}, ricci_normal(1));
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){9, 8}, ricci_normal(1));
	ricci_tensor *each = ricci_input(g, "each", RICCI_I32, 1, (int64_t[]){2}), *one[2], *y[8];
	one[0] = ricci_input(g, "first", RICCI_I32, 0, NULL);
	one[1] = ricci_input(g, "second", RICCI_I32, 0, NULL);
	for (int what = 0; what < 4; what++) {
		ricci_tensor *all = with_position(what, x, w, each);
		for (int b = 0; b < 2; b++) {
			ricci_tensor *alone = with_position(what, x, w, one[b]);
			y[2 * what + b] = ricci_op(g,
						   b ? "D[] max= abs(X[1,i,e] - Y[1,i,e])"
						     : "D[] max= abs(X[0,i,e] - Y[0,i,e])",
						   all, alone);
		}
	}
	CHECK_GRAPH(g);
	ricci_session *s = ricci_session_new(g, NULL, 0, 8, y);
	CHECK_REPORT(s != NULL, "%s", ricci_error_message());
	CHECK_INT(ricci_feed(s, each, at, sizeof at), 0);
	for (int b = 0; b < 2; b++)
		CHECK_INT(ricci_feed(s, one[b], &at[b], sizeof *at), 0);
	CHECK_INT(ricci_step(s), 0);
	for (int k = 0; k < 8; k++) {
		float apart = 1;
		CHECK_INT(ricci_fetch(s, y[k], &apart, sizeof apart), 0);
		CHECK_REPORT(apart <= 2e-6f, "function %d, sample %d: %g apart", k / 2, k % 2,
			     (double)apart);
	}
	ricci_session_free(s);
	ricci_graph_free(g);
}

int main(void)
{
	static const char *const name[] = {"plain", "lengths", "mask", "mask3", "mask4", "chosen"};
	for (int wide = 0; wide < 2; wide++) {
		ricci_type type = wide ? RICCI_F64 : RICCI_F32;
		for (int k = 0; k < COUNT(name); k++)
			attention(type, name[k], RICCI_ATTENTION());
		attention(type, "causal", RICCI_ATTENTION(.causal = 1));
		attention(type, "position", RICCI_ATTENTION(.causal = 1));
		attention(type, "combined", RICCI_ATTENTION(.causal = 1));
		attention(type, "scale", RICCI_ATTENTION(.scale = 0.3));
		shapes(type);
		module(type, "self", 0, 0, 0);
		module(type, "self no bias", 0, 0, 1);
		module(type, "cross", E, E, 0);
		module(type, "widths", 3, 2, 0);
		grouped_module(type);
		positions(type);
	}
	no_keys();
	dropout();
	wrong();
	positions_of_samples();
	return check_done();
}
