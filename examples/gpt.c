/* gpt.c - a decoder that continues a text, character by character, and then writes one.
 * Radford, Narasimhan, Salimans, Sutskever 2018, "Improving language understanding by generative
 * pre-training", with the norms in front as in GPT-2 (2019) and rotary positions (Su et al. 2021).
 * Training sees all places of a sample at once. Writing is a loop over time whose states are the
 * keys and values of the places before: ricci_scan, over a length that is given when it runs. Both
 * are one network: a block reads its own keys or, with a cache, those. */
#include "examples/example.h"

#include <stdlib.h>
#include <string.h>

enum { LAYERS = 64, MOST = 1 << 20 };

/* What a step of writing knows: for layer i, cache 2i are the keys, 2i+1 the values, [1,context,w]
 * with place p in row p % context. */
typedef struct {
	int layer;
	ricci_tensor *position; /* of the character, I32 [] */
	ricci_tensor *before[2 * LAYERS], *after[2 * LAYERS];
} Cache;

static ricci_tensor *linear(ricci_tensor *x, const char *name, int64_t out)
{
	ricci_init init = ricci_normal(0.02);
	return ricci_linear_layer(x, name, &RICCI_LINEAR(.out = out, .init = &init));
}

static ricci_tensor *norm(ricci_tensor *x, const char *name)
{
	return ricci_norm_layer(x, name, &RICCI_NORM(.kind = RICCI_LAYER_NORM));
}

static ricci_tensor *sum(ricci_tensor *x, ricci_tensor *y)
{
	return ricci_op(ricci_graph_of(x), "Z[b,t,k] = X[b,t,k] + Y[b,t,k]", x, y);
}

/* The cache with x [1,1,w] as the row of its place: the oldest one makes room. */
static ricci_tensor *remember(Cache *c, int i, ricci_tensor *x)
{
	ricci_graph *g = ricci_graph_of(x);
	return c->after[i] =
		       ricci_op(g, "C, X, P, N -> Y: Y[b,t,k] = t == P[] % N ? X[b,0,k] : C[b,t,k]",
				c->before[i], x, c->position,
				ricci_integer(g, ricci_extent(c->before[i], 1)));
}

/* x [b,t,w] plus what attention finds, plus what a layer of four times the width makes of it. */
static ricci_tensor *block(ricci_tensor *x, int heads, Cache *c)
{
	int64_t w = ricci_extent(x, 2);
	ricci_tensor *at = c ? c->position : NULL;
	ricci_rotary_options turn = RICCI_ROTARY(.heads = heads, .position = at);
	ricci_tensor *all = linear(norm(x, "norm1"), "qkv", 3 * w);
	ricci_tensor *q = ricci_rotary(ricci_slice_axis(all, 2, 0, w, 1), &turn);
	ricci_tensor *k = ricci_rotary(ricci_slice_axis(all, 2, w, w, 1), &turn);
	ricci_tensor *v = ricci_slice_axis(all, 2, 2 * w, w, 1);
	if (c) {
		k = remember(c, 2 * c->layer, k);
		v = remember(c, 2 * c->layer++ + 1, v);
	}
	ricci_tensor *a = ricci_attention(
		q, k, v, &RICCI_ATTENTION(.heads = heads, .causal = 1, .position = at));
	x = sum(x, linear(a, "proj", w));
	return sum(x, linear(ricci_gelu(linear(norm(x, "norm2"), "up", 4 * w)), "down", w));
}

/* x [b,t,w] -> [b,t,vocabulary]: how likely each character is to come next. */
static ricci_tensor *decoder(const example *e, ricci_tensor *x, Cache *c)
{
	int layers = example_size(e, "layers", 6), heads = example_size(e, "heads", 6);
	for (int i = 0; i < layers; i++) {
		char name[16];
		snprintf(name, sizeof name, "block%d", i);
		ricci_scope_begin(ricci_graph_of(x), name);
		x = block(x, heads, c);
		ricci_scope_end(ricci_graph_of(x));
	}
	return linear(norm(x, "norm"), "head", example_vocabulary(e));
}

static void network(example *e)
{
	ricci_group plain[] = {{.names = "*.bias", .decay = RICCI_NONE},
			       {.names = "*norm*", .decay = RICCI_NONE}};
	ricci_tensor *x = example_characters(e, example_size(e, "length", 256),
					     example_size(e, "width", 384));
	example_predict(e, decoder(e, x, NULL));
	example_optimise(e, RICCI_OPTIMISER(.rule = RICCI_ADAMW, .beta2 = 0.99, .decay = 0.1,
					    .clip_norm = 1, .ngroup = 2, .group = plain));
}

/* ---- writing */

/* The loop: from the first character on, given ones (0 or more in `given` [MOST]) and drawn ones, as
 * many as `length` says. A character is drawn with probability exp(score / temperature): the
 * greatest of score - temperature * log(-log(u)), u uniform. */
static ricci_tensor *writer(const example *e, ricci_tensor *first, ricci_tensor *given,
			    ricci_tensor *length, ricci_tensor *temperature)
{
	ricci_graph *g = ricci_graph_of(first);
	int layers = example_size(e, "layers", 0), width = example_size(e, "width", 0);
	Cache c = {.position = ricci_input(g, "position", RICCI_I32, 0, NULL)};
	ricci_carry carry[2 * LAYERS + 2];
	for (int i = 0; i < 2 * layers; i++) {
		char name[16];
		snprintf(name, sizeof name, "cache%d", i);
		c.before[i] =
			ricci_input(g, name, e->type, DIMS(1, example_size(e, "length", 0), width));
	}
	ricci_tensor *now = ricci_input(g, "character", RICCI_I32, 0, NULL);
	ricci_tensor *forced = ricci_input(g, "forced", RICCI_I32, 0, NULL);
	ricci_tensor *w = ricci_param(g, "embedding.weight", e->type,
				      DIMS(example_vocabulary(e), width), ricci_constant(0));
	ricci_tensor *x = ricci_op(g,
				   "C, W -> X: X[b,t,k] = W[min(max(C[], 0), W.size(0)-1),k] where "
				   "b < 1, t < 1",
				   now, w);
	ricci_tensor *next =
		ricci_op(g,
			 "Y, F, T -> N: S[v] = f32(Y[0,0,v]) - T[]*log(0 - log(random(1)));"
			 "M[] max= S[v]; A[] min= S[v] == M[] ? i32(v) : i32(Y.size(2)-1);"
			 "N[] = F[] < 0 ? A[] : F[]",
			 decoder(e, x, &c), forced, temperature);
	for (int i = 0; i < 2 * layers; i++)
		carry[i] = (ricci_carry){c.before[i], NULL, c.after[i]};
	carry[2 * layers] = (ricci_carry){now, first, next};
	carry[2 * layers + 1] =
		(ricci_carry){c.position, NULL, ricci_op(g, "Q[] = P[] + 1", c.position)};
	ricci_tensor *all;
	ricci_scan(g,
		   &RICCI_LOOP(.steps = MOST, .length = length, .nslice = 1,
			       .slice = (ricci_slice[]){{forced, given}}, .ncarry = 2 * layers + 2,
			       .carry = carry, .nout = 1, .out = &next),
		   NULL, &all);
	return all;
}

static void character_print(uint32_t c)
{
	if (c >= 0x80) { /* UTF-8 */
		int n = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
		putchar((int)((0xf80u >> n & 0xff) | c >> 6 * n));
		while (n > 1)
			n--, putchar((int)(0x80 | (c >> 6 * n & 0x3f)));
		c = 0x80 | (c & 0x3f);
	}
	putchar((int)c);
}

/* token: the prompt of n characters, then room; written by a session over g. */
static int tokens_write(const example *e, ricci_graph *g, const char *weights, int32_t *token,
			int64_t n, int32_t length)
{
	float temperature = (float)example_option_of(e, "temperature")->value;
	ricci_tensor *first = ricci_input(g, "first", RICCI_I32, 0, NULL);
	ricci_tensor *given = ricci_input(g, "given", RICCI_I32, DIMS(MOST));
	ricci_tensor *steps = ricci_input(g, "steps", RICCI_I32, 0, NULL);
	ricci_tensor *heat = ricci_input(g, "temperature", RICCI_F32, 0, NULL);
	ricci_tensor *all = writer(e, first, given, steps, heat);
	ricci_session *s = ricci_session_new(g, &e->options, 0, 1, &all);
	int status = s ? ricci_load(s, all, weights, 1, NULL) : RICCI_EINVAL;
	for (int64_t i = n; i <= MOST; i++)
		token[i] = -1;
	if (!status)
		status = ricci_feed(s, first, token, sizeof *token);
	if (!status)
		status = ricci_feed(s, given, token + 1, MOST * sizeof *token);
	if (!status)
		status = ricci_feed(s, steps, &length, sizeof length);
	if (!status)
		status = ricci_feed(s, heat, &temperature, sizeof temperature);
	if (!status)
		status = ricci_step(s);
	if (!status)
		status = ricci_fetch(s, all, token + 1, MOST * sizeof *token);
	ricci_session_free(s);
	return status;
}

/* Continues the prompt by --generate characters with these weights. 0, or the exit status. */
static int write_text(example *e, const char *weights)
{
	const char *prompt = example_option_of(e, "prompt")->text;
	const uint32_t *alphabet = ricci_text_alphabet(e->training.train, NULL);
	int64_t more = (int64_t)example_option_of(e, "generate")->value;
	int64_t n = prompt ? (int64_t)strlen(prompt) : 1;
	if (n < 1 || n + more > MOST) {
		fprintf(stderr, "gpt: prompt and text have 1 to %d characters together, not %lld\n",
			MOST, (long long)(n < 1 ? n : n + more));
		return 2;
	}
	int32_t *token = calloc(MOST + 1, sizeof *token);
	ricci_graph *g = ricci_graph_new();
	int status = token && g ? 0 : RICCI_ENOMEM;
	if (!status && prompt) {
		n = ricci_text_encode(e->training.train, prompt, token, n);
		status = n < 0 ? (int)n : 0;
	}
	if (!status)
		status = tokens_write(e, g, weights, token, n, (int32_t)(n - 1 + more));
	for (int64_t i = 0; i < n + more && !status; i++)
		character_print(alphabet[token[i]]);
	if (!status)
		puts("");
	ricci_graph_free(g);
	free(token);
	if (status)
		fprintf(stderr, "gpt: %s\n", ricci_error_message());
	return status || fflush(stdout) ? 1 : 0;
}

/* --generate: after the training, or of a checkpoint without one. */
static int act(example *e, int *done)
{
	if (example_size(e, "layers", 0) > LAYERS)
		return fprintf(stderr, "gpt: --layers: at most %d\n", LAYERS), 2;
	if (!example_option_of(e, "generate")->text || e->training.checkpoint)
		return 0;
	if (!e->training.resume) {
		fprintf(stderr, "gpt: --generate: this needs --checkpoint, to train first, or "
				"--resume, to write with those weights\n");
		return 2;
	}
	*done = 1;
	return write_text(e, e->training.resume);
}

static int finish(example *e)
{
	return example_option_of(e, "generate")->text ? write_text(e, e->training.checkpoint) : 0;
}

int main(int argc, char **argv)
{
	example_option own[] = {
		{"generate", "N",
		 "write so many characters: after the training, from --checkpoint, or without one, "
		 "from --resume",
		 NULL, 'n', 1, 0, NULL},
		{"prompt", "TEXT", "what they continue", NULL, 0, 0, 0, NULL},
		{"temperature", "X", "0: always the likeliest character", NULL, 'x', 0, 0.8, NULL},
		{"layers", "N", "blocks", NULL, 'n', 1, 4, NULL},
		{"width", "N", "numbers of a character", NULL, 'n', 2, 128, NULL},
		{"heads", "N", "of attention", NULL, 'n', 1, 4, NULL},
		{"length", "N", "characters of a sample, and of the memory", NULL, 'n', 1, 64,
		 NULL},
		{0}};
	return example_main(
		argc, argv,
		&(example){.name = "gpt",
			   .about = "Trains a decoder to continue a text, and writes one.",
			   .data = "a text, plain or .gz; without it: sums in words",
			   .batch = 16,
			   .bench_batch = 8,
			   .epochs = 3,
			   .lr = 0.001,
			   .option = own,
			   .load = example_text,
			   .network = network,
			   .act = act,
			   .finish = finish});
}
