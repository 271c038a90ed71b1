/* bert.c - an encoder that guesses the characters that are hidden in a text.
 * Devlin, Chang, Lee, Toutanova 2019, "BERT: pre-training of deep bidirectional transformers for
 * language understanding", section 3.1, task 1, with characters for word pieces; the encoder is that
 * of Vaswani et al. 2017. Of the characters 15% are chosen, when the text is prepared, as there:
 * eight in ten of them are hidden, one is another character, one stays; the net says which they
 * were. */
#include "examples/example.h"

static const int32_t not_chosen = -1;

/* ---- the net */

static ricci_tensor *linear(ricci_tensor *x, const char *name, int64_t out)
{
	ricci_init init = ricci_truncated_normal(0.02, 0.04);
	return ricci_linear_layer(x, name, &RICCI_LINEAR(.out = out, .init = &init));
}

static ricci_tensor *sum_norm(ricci_tensor *x, ricci_tensor *y, const char *name)
{
	x = ricci_op(ricci_graph_of(x), "Z[b,t,k] = X[b,t,k] + Y[b,t,k]", x, y);
	return ricci_norm_layer(x, name, &RICCI_NORM(.kind = RICCI_LAYER_NORM));
}

/* x [b,t,w], which attends to all of its places; then each place by itself. */
static ricci_tensor *layer(ricci_tensor *x, int heads)
{
	int64_t w = ricci_extent(x, 2);
	ricci_tensor *all = linear(x, "qkv", 3 * w);
	ricci_tensor *a = ricci_attention(
		ricci_slice_axis(all, 2, 0, w, 1), ricci_slice_axis(all, 2, w, w, 1),
		ricci_slice_axis(all, 2, 2 * w, w, 1), &RICCI_ATTENTION(.heads = heads));
	x = sum_norm(x, linear(a, "proj", w), "norm1");
	a = linear(ricci_gelu(linear(x, "up", 4 * w)), "down", w);
	return sum_norm(x, a, "norm2");
}

static ricci_tensor *encoder(ricci_tensor *x, int layers, int heads)
{
	for (int i = 0; i < layers; i++) {
		char name[24];
		snprintf(name, sizeof name, "layer%d", i);
		ricci_scope_begin(ricci_graph_of(x), name);
		x = layer(x, heads);
		ricci_scope_end(ricci_graph_of(x));
	}
	return x;
}

/* The shape: small (Turc et al. 2019), or base, or what the options say. */
static int size(const example *e, const char *option, int base)
{
	const example_option *o = example_option_of(e, option);
	return example_option_of(e, "base")->text && !o->text ? base : (int)o->value;
}

static void network(example *e)
{
	static ricci_fed input[2];
	static ricci_metric bits[1];
	ricci_graph *g = e->graph;
	ricci_training *t = &e->training;
	int width = size(e, "width", 768), length = (int)example_option_of(e, "length")->value;
	int layers = size(e, "layers", 12), heads = size(e, "heads", 12);
	if (e->bench) { /* the encoder alone, of vectors */
		e->output = encoder(example_sequence(e, length, width), layers, heads);
		example_predict_sequence(e, e->output);
		example_optimise(e, RICCI_OPTIMISER());
		return;
	}
	int known = example_vocabulary(e); /* and one that says: hidden */
	ricci_init small = ricci_truncated_normal(0.02, 0.04);
	input[0] = (ricci_fed){ricci_input(g, "characters", RICCI_I32, DIMS(e->batch, length)),
			       "hidden"};
	input[1] =
		(ricci_fed){ricci_input(g, "chosen", RICCI_I32, DIMS(e->batch, length)), "chosen"};
	ricci_tensor *x = ricci_embedding_layer(input[0].tensor, "embedding",
						&RICCI_EMBEDDING(.count = known + 1, .out = width,
								 .type = e->type, .init = &small));
	ricci_tensor *places = ricci_param(g, "positions", e->type, DIMS(length, width), small);
	x = ricci_norm_layer(ricci_learned_positions(x, places, NULL), "norm",
			     &RICCI_NORM(.kind = RICCI_LAYER_NORM));
	e->output = linear(encoder(x, layers, heads), "head", known);

	t->ninput = 2;
	t->input = input;
	t->loss = ricci_cross_entropy_with(e->output, input[1].tensor,
					   &RICCI_CROSS_ENTROPY(.ignored = &not_chosen));
	*bits = (ricci_metric){"bits", t->loss, RICCI_BITS_PER_CHARACTER};
	t->nmetric = 1;
	t->metric = bits;
	ricci_group plain[] = {{.names = "*.bias", .decay = RICCI_NONE},
			       {.names = "*norm*", .decay = RICCI_NONE}};
	example_optimise(e, RICCI_OPTIMISER(.rule = RICCI_ADAMW, .clip_norm = 1, .ngroup = 2,
					    .group = plain));
}

/* ---- data */

/* Hides characters of n windows: x becomes what the net sees, label what it is to guess. */
static void hide(int32_t *x, int32_t *label, int64_t n, int known, uint32_t seed)
{
	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		uint32_t chance = (seed >> 8) % 1000;
		label[i] = chance < 150 ? x[i] : not_chosen;
		seed = seed * 1664525u + 1013904223u;
		if (chance < 120)
			x[i] = known;
		else if (chance < 135)
			x[i] = (int32_t)((seed >> 8) % (uint32_t)known);
	}
}

/* Two more fields of a text: what the net sees, and what it is to guess. */
static int hidden_add(example *e, ricci_data *text, uint32_t seed)
{
	int64_t n = ricci_data_count(text), length = (int)example_option_of(e, "length")->value;
	size_t bytes = (size_t)length * sizeof(int32_t);
	int32_t *x = example_own(e, (size_t)n * bytes), *label = example_own(e, (size_t)n * bytes);
	int status = x && label ? 0 : RICCI_ENOMEM;
	for (int64_t i = 0; i < n && !status; i++)
		status = ricci_data_get(text, "samples", i, x + i * length, bytes);
	if (!status)
		hide(x, label, n * length, example_vocabulary(e), seed);
	if (!status)
		status = ricci_data_array(text, "hidden", RICCI_I32, DIMS(n, length), x);
	return status ? status
		      : ricci_data_array(text, "chosen", RICCI_I32, DIMS(n, length), label);
}

static int load(example *e)
{
	int status = example_text(e);
	if (!status)
		status = hidden_add(e, e->training.train, 1);
	return status ? status : hidden_add(e, e->training.test, 2);
}

int main(int argc, char **argv)
{
	example_option own[] = {
		{"base", NULL, "12 layers of 768 numbers and 12 heads", NULL, 0, 0, 0, NULL},
		{"layers", "N", "of the encoder", NULL, 'n', 1, 4, NULL},
		{"width", "N", "numbers of a character", NULL, 'n', 1, 512, NULL},
		{"heads", "N", "of attention", NULL, 'n', 1, 8, NULL},
		{"length", "N", "characters of a sample", NULL, 'n', 1, 128, NULL},
		{0}};
	return example_main(
		argc, argv,
		&(example){.name = "bert",
			   .about = "Trains an encoder to guess hidden characters of a text.",
			   .data = "a text, plain or .gz; without it: sums in words",
			   .batch = 16,
			   .bench_batch = 4,
			   .epochs = 3,
			   .lr = 0.0003,
			   .option = own,
			   .load = load,
			   .network = network});
}
