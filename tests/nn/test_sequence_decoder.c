/* A decoder that writes text: a step reads its last token, attends to the keys and values of the
 * steps before, which the loop carries as a cache, and chooses the next token, as often as is said at
 * run time. It must give the numbers that causal attention over the whole text gives. */
#include "nn/nn.h"
#include "tests/check.h"

#define SHAPE(...)                                                                                 \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
enum { B = 2, LONG = 7, TOKENS = 11, HEADS = 2, SIZE = 4, WIDTH = HEADS * SIZE };

typedef struct Decoder {
	ricci_graph *g;
	ricci_tensor *embedding, *table, *wq, *wk, *wv;
} Decoder;

static ricci_tensor *weight(Decoder *d, const char *name, int64_t rows)
{
	return ricci_param(d->g, name, RICCI_F32, SHAPE(rows, WIDTH), ricci_normal(0.7));
}

/* [b,t,WIDTH] as heads, turned by their positions. */
static ricci_tensor *heads(ricci_tensor *x, ricci_tensor *w, ricci_tensor *position, bool turn)
{
	ricci_tensor *y = ricci_op(ricci_graph_of(x),
				   "X, W -> Y: P[b,t,n] += X[b,t,k]*W[n,k];"
				   "Y[b,h,t,d] = P[b,t,h*4+d] where h < 2, d < 4",
				   x, w);
	return turn ? ricci_rotary(y, &RICCI_ROTARY(.position = position)) : y;
}

/* From what attention gives [b,h,t,d] to scores of tokens [b,t,v]. */
static ricci_tensor *scores(Decoder *d, ricci_tensor *x, ricci_tensor *y)
{
	return ricci_op(d->g,
			"X, Y, E -> S: R[b,t,n] = X[b,t,n] + Y[b,n/4,t,n%4];"
			"S[b,t,v] += R[b,t,n]*E[v,n]",
			x, y, d->embedding);
}

/* tokens [b,LONG] -> the scores of what comes behind each. */
static ricci_tensor *whole(Decoder *d, ricci_tensor *tokens)
{
	ricci_tensor *x = ricci_op(d->g, "T, E -> X: X[b,t,n] = E[T[b,t],n]", tokens, d->embedding);
	x = ricci_learned_positions(x, d->table, NULL);
	ricci_tensor *q = heads(x, d->wq, NULL, true), *k = heads(x, d->wk, NULL, true);
	ricci_tensor *v = heads(x, d->wv, NULL, false);
	return scores(d, x, ricci_attention(q, k, v, &RICCI_ATTENTION(.causal = 1)));
}

/* The cache with a row at the position. */
static ricci_tensor *written(ricci_tensor *cache, ricci_tensor *row, ricci_tensor *position)
{
	return ricci_op(ricci_graph_of(cache),
			"C, R, P -> N: N[b,h,j,d] = j == P[] ? R[b,h,0,d] : C[b,h,j,d]", cache, row,
			position);
}

/* first [b]: the first token; length: how many steps. out: the tokens read and the scores of all
 * steps. */
static void generate(Decoder *d, ricci_tensor *first, ricci_tensor *length, ricci_tensor **out)
{
	ricci_graph *g = d->g;
	ricci_tensor *token = ricci_input(g, "token", RICCI_I32, SHAPE(B));
	ricci_tensor *at = ricci_input(g, "at", RICCI_I32, 0, NULL);
	ricci_tensor *keys = ricci_input(g, "keys", RICCI_F32, SHAPE(B, HEADS, LONG, SIZE));
	ricci_tensor *values = ricci_input(g, "values", RICCI_F32, SHAPE(B, HEADS, LONG, SIZE));
	ricci_tensor *x =
		ricci_op(g, "T, E -> X: X[b,t,n] = E[min(max(T[b], 0), E.size(0)-1),n] where t < 1",
			 token, d->embedding);
	x = ricci_learned_positions(x, d->table, at);
	ricci_tensor *k = written(keys, heads(x, d->wk, at, true), at);
	ricci_tensor *v = written(values, heads(x, d->wv, at, false), at);
	ricci_tensor *y = ricci_attention(heads(x, d->wq, at, true), k, v,
					  &RICCI_ATTENTION(.causal = 1, .position = at));
	ricci_tensor *s = scores(d, x, y);
	ricci_tensor *next = ricci_op(g,
				      "S -> T: M[b] max= S[b,0,v];"
				      "T[b] min= i32(S[b,0,v] >= M[b] ? v : S.size(2))",
				      s);
	ricci_tensor *later = ricci_op(g, "P -> N: N[] = P[] + 1", at);
	ricci_carry carry[] = {
		{token, first, next}, {at, NULL, later}, {keys, NULL, k}, {values, NULL, v}};
	ricci_tensor *stack[] = {token, s};
	ricci_loop loop = RICCI_LOOP(.steps = LONG, .length = length, .ncarry = 4, .carry = carry,
				     .nout = 2, .out = stack);
	ricci_scan(g, &loop, NULL, out);
}

static void decoder(ricci_backend backend)
{
	Decoder d = {.g = ricci_graph_new()};
	d.embedding = weight(&d, "embedding", TOKENS);
	d.table = weight(&d, "positions", LONG);
	d.wq = weight(&d, "q", WIDTH);
	d.wk = weight(&d, "k", WIDTH);
	d.wv = weight(&d, "v", WIDTH);
	ricci_tensor *first = ricci_input(d.g, "first", RICCI_I32, SHAPE(B));
	ricci_tensor *length = ricci_input(d.g, "length", RICCI_I32, 0, NULL);
	ricci_tensor *tokens = ricci_input(d.g, "tokens", RICCI_I32, SHAPE(B, LONG));
	ricci_tensor *out[3] = {0};
	generate(&d, first, length, out);
	out[2] = whole(&d, tokens);
	CHECK_GRAPH(d.g);
	ricci_options o = RICCI_OPTIONS(.backend = backend, .threads = 1);
	ricci_session *write = ricci_session_new(d.g, &o, 0, 2, out);
	ricci_session *read = write ? ricci_session_share(write, 0, 1, out + 2) : NULL;
	CHECK_REPORT(read != NULL, "%s", ricci_error_message());
	int32_t start[B] = {3, 8}, chosen[LONG][B], text[B][LONG];
	float step[LONG][B][TOKENS], all[B][LONG][TOKENS];
	CHECK_INT(ricci_feed(write, first, start, sizeof start), 0);
	for (int n = 1; n <= LONG; n += 3) {
		CHECK_INT(ricci_feed(write, length, &n, sizeof n), 0);
		CHECK_INT(ricci_step(write), 0);
		CHECK_INT(ricci_fetch(write, out[0], chosen, sizeof chosen), 0);
		CHECK_INT(ricci_fetch(write, out[1], step, sizeof step), 0);
		for (int b = 0; b < B; b++)
			for (int t = 0; t < LONG; t++)
				text[b][t] = chosen[t][b];
		CHECK_INT(ricci_feed(read, tokens, text, sizeof text), 0);
		CHECK_INT(ricci_step(read), 0);
		CHECK_INT(ricci_fetch(read, out[2], all, sizeof all), 0);
		for (int b = 0; b < B; b++)
			for (int t = 0; t < n; t++) {
				int best = 0;
				for (int v = 0; v < TOKENS; v++) {
					CHECK_NEAR(step[t][b][v], all[b][t][v], 2e-5);
					if (all[b][t][v] > all[b][t][best])
						best = v;
				}
				if (t + 1 < n)
					CHECK_INT(text[b][t + 1], best);
			}
		CHECK_INT(text[0][0], 3);
		CHECK(text[0][1] != text[1][1] || n == 1);
	}
	ricci_session_free(read);
	ricci_session_free(write);
	ricci_graph_free(d.g);
}

int main(void)
{
	decoder(RICCI_BACKEND_INTERP);
	decoder(RICCI_BACKEND_TCC);
	return check_done();
}
