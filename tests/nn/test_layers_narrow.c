/* test_layers_narrow.c - layers and losses in bf16 and f16: values and gradients against those in
 * f64 of the same operands, which are rounded before, within an error bound that follows from the
 * type. */
#include "nn/nn.h"
#include "tests/nn/layer_cases.h"

/* Roundings, each of half an epsilon, that a result may show. */
enum { ROUNDINGS = 8 };

/* The operands rounded to 16 bits, in the session's type. */
static void feed(ricci_session *s, ricci_tensor *t, const Vector *r, ricci_type narrow)
{
	double room[VALUES];
	Type type = (Type)ricci_dtype(t);
	for (int64_t i = 0; i < r->size; i++)
		if (type_is_float(type)) {
			uint16_t bits;
			type_store((Type)narrow, &bits, 0, r->value[i]);
			type_store(type, room, (size_t)i, type_load((Type)narrow, &bits, 0));
		} else {
			type_store_int(type, room, (size_t)i, (int64_t)r->value[i]);
		}
	CHECK_INT(ricci_feed(s, t, room, ricci_bytes(t)), 0);
}

typedef struct Results {
	int n;
	int64_t size[5 * ROOM];
	double value[5 * ROOM][VALUES];
} Results;

static void take(Results *to, ricci_session *s, ricci_tensor *t)
{
	double room[VALUES];
	int64_t n = tensor_size(t->node);
	CHECK(n <= VALUES && to->n < 5 * ROOM);
	CHECK_INT(ricci_fetch(s, t, room, ricci_bytes(t)), 0);
	to->size[to->n] = n;
	for (int64_t i = 0; i < n; i++)
		to->value[to->n][i] = type_load((Type)ricci_dtype(t), room, (size_t)i);
	to->n++;
}

/* A graph's inputs and states, and what they hold. */
typedef struct Net {
	ricci_graph *g;
	ricci_type type, narrow;
	int n, nwrt;
	ricci_tensor *x[4 * ROOM], *wrt[4 * ROOM];
	Vector v[4 * ROOM];
} Net;

static void net_add(Net *n, ricci_tensor *t, const Vector *v, bool differentiated)
{
	CHECK(n->n < 4 * ROOM);
	n->v[n->n] = *v;
	n->x[n->n++] = t;
	if (differentiated)
		n->wrt[n->nwrt++] = t;
}

/* The result y, its gradients and the states after a step; frees the graph. false: it does not
 * work, as was reported. */
static bool results(Net *n, const char *name, ricci_tensor *y, const Vector *seed, int train,
		    ricci_backend backend, Results *to)
{
	ricci_tensor *out[4 * ROOM + 1] = {y}, *t;
	t = ricci_input(n->g, "seed", n->type, seed->rank, seed->shape);
	ricci_grad(n->g, y, t, n->nwrt, n->wrt, out + 1);
	net_add(n, t, seed, false);
	ricci_session *s = ricci_session_new(n->g, &RICCI_OPTIONS(.backend = backend, .threads = 1),
					     train, n->nwrt + 1, out);
	CHECK_REPORT(s, "%s, %s: %s", name, type_name((Type)n->type), ricci_error_message());
	to->n = 0;
	for (int k = 0; k < n->n && s; k++)
		feed(s, n->x[k], &n->v[k], n->narrow);
	CHECK(!s || !ricci_step(s));
	for (int k = 0; k <= n->nwrt && s; k++)
		take(to, s, out[k]);
	for (int k = 0; s && train && (t = ricci_param_at(n->g, k, NULL)); k++)
		take(to, s, t);
	CHECK_INT(ricci_dtype(y), n->type);
	ricci_session_free(s);
	ricci_graph_free(n->g);
	return s != NULL;
}

static bool recorded(const Case *c, int layer, ricci_type type, ricci_type narrow,
		     ricci_backend backend, Results *to)
{
	Net n = {.g = ricci_graph_new(), .type = type, .narrow = narrow};
	ricci_tensor *x[ROOM] = {0};
	for (int k = 0; k < c->n; k++) {
		x[k] = operand(n.g, c->in[k], k, type);
		net_add(&n, x[k], c->in[k], !strcmp(c->in[k]->array, "in"));
	}
	return results(&n, c->name, layers[layer].make(x), c->seed, c->train, backend, to);
}

/* The error of each array, as part of its largest element or 1. */
static void compare(const char *name, ricci_type type, const Results *want, const Results *got)
{
	double epsilon = type_epsilon(type);
	CHECK_INT(got->n, want->n);
	for (int k = 0; k < want->n && k < got->n; k++) {
		double most = 1, error = 0;
		for (int64_t i = 0; i < want->size[k]; i++) {
			double e = fabs(got->value[k][i] - want->value[k][i]);
			most = fmax(most, fabs(want->value[k][i]));
			error = e <= error ? error : e;
		}
		CHECK_REPORT(error <= ROUNDINGS * epsilon / 2 * most,
			     "%s, %s: array %d differs by %.1f roundings of its largest element",
			     name, type_name((Type)type), k, error / (epsilon / 2 * most));
	}
}

/* ---- sequences and losses: operands are made, integers are 0 to 3, no relu is as near to its kink
 * as a rounding */

static ricci_tensor *made(Net *n, ricci_type type, int rank, const int64_t *shape)
{
	static double room[8][VALUES];
	char name[16];
	snprintf(name, sizeof name, "x%d", n->n);
	ricci_tensor *t = ricci_input(n->g, name, type, rank, shape);
	Vector v = {.rank = rank, .size = 1, .value = room[n->n % 8]};
	for (int d = 0; d < rank; d++)
		v.size *= shape[d];
	CHECK(n->n < 8 && v.size <= VALUES);
	for (int64_t i = 0; i < v.size; i++)
		v.value[i] =
			type == RICCI_I32 ? (double)((i * i + 1) % 4) : sin(1.3 * (double)i + n->n);
	net_add(n, t, &v, type != RICCI_I32);
	return t;
}
#define X(...) made(n, n->type, SHAPE(__VA_ARGS__))
#define I(...) made(n, RICCI_I32, SHAPE(__VA_ARGS__))
#define CELL(function)                                                                             \
	ricci_recurrent(X(3, 2, 4), "r",                                                           \
			&RICCI_RECURRENT(.cell = function(), .hidden = 3, .context = 2,            \
					 .layers = 2, .bidirectional = 1, .lengths = I(2)))

#define OTHERS(F)                                                                                  \
	F(ricci_attention(X(2, 3, 4), X(2, 3, 4), X(2, 3, 4),                                      \
			  &RICCI_ATTENTION(.heads = 2, .causal = 1, .lengths = I(2))))             \
	F(ricci_multihead_attention(X(2, 3, 4), NULL, NULL, "a", &RICCI_ATTENTION(.heads = 2)))    \
	F(ricci_rotary(X(2, 3, 8), &RICCI_ROTARY(.heads = 2)))                                     \
	F(ricci_rotary(X(1, 2, 3, 6), &RICCI_ROTARY(.halves = 1, .dims = 4)))                      \
	F(ricci_sinusoidal_positions(X(2, 3, 5), NULL))                                            \
	F(ricci_learned_positions(X(2, 3, 4), X(5, 4), NULL))                                      \
	F(CELL(ricci_rnn))                                                                         \
	F(CELL(ricci_rnn_relu))                                                                    \
	F(CELL(ricci_lstm))                                                                        \
	F(CELL(ricci_gru))                                                                         \
	F(CELL(ricci_mi_lstm))                                                                     \
	F(CELL(ricci_mi_lstm_general))                                                             \
	F(CELL(ricci_scrn))                                                                        \
	F(CELL(ricci_sublstm))                                                                     \
	F(CELL(ricci_lltm))                                                                        \
	F(ricci_recurrent(X(3, 2, 4), "r",                                                         \
			  &RICCI_RECURRENT(.cell = ricci_lstm(), .hidden = 3, .projection = 2)))   \
	F(ricci_cross_entropy(X(2, 3, 4), I(2, 3)))                                                \
	F(ricci_cross_entropy_with(                                                                \
		X(2, 3, 4), I(2, 3),                                                               \
		&RICCI_CROSS_ENTROPY(.smoothing = .1, .ignored = &(int32_t){2}, .weights = X(4)))) \
	F(ricci_hinge_loss(X(6, 4), I(6), .75))                                                    \
	F(ricci_margin_loss(X(2, 4, 3), I(2)))                                                     \
	F(ricci_mean_squared_error(X(3, 4), X(3, 4)))                                              \
	F(ricci_mean_absolute_error(X(3, 4), X(3, 4)))                                             \
	F(ricci_huber_loss(X(3, 4), X(3, 4), .75))                                                 \
	F(ricci_smooth_l1_loss(X(3, 4), X(3, 4), .75))                                             \
	F(ricci_binary_cross_entropy(X(3, 4), ricci_sigmoid(X(3, 4))))                             \
	F(ricci_kl_divergence(X(3, 4), ricci_softmax(X(3, 4))))                                    \
	F(ricci_ctc_loss(X(8, 3, 5), I(3, 2), NULL, NULL, 4))                                      \
	F(ricci_perplexity(ricci_mean_squared_error(X(3, 4), X(3, 4))))                            \
	F(ricci_squash(X(3, 4), 1))                                                                \
	F(ricci_capsule_conv(X(1, 2, 3, 3, 2, 2), X(2, 2, 2, 2, 2, 2), 1))                         \
	F(ricci_routing(X(2, 3, 4, 2, 2), 2))

#define NAME(expression) #expression,
static const char *const others[] = {OTHERS(NAME)};
enum { NOTHER = sizeof others / sizeof *others };

static ricci_tensor *other(Net *n, int number)
{
	int k = 0;
#define TRY(expression)                                                                            \
	if (k++ == number)                                                                         \
		return expression;
	OTHERS(TRY)
	return NULL;
}

static bool other_results(int k, ricci_type type, ricci_type narrow, ricci_backend backend,
			  Results *to)
{
	static double room[4 * ROOM][VALUES];
	Net n = {.g = ricci_graph_new(), .type = type, .narrow = narrow};
	ricci_tensor *y = other(&n, k), *p;
	CHECK_REPORT(!ricci_graph_error(n.g), "%s, %s: %s", others[k], type_name((Type)type),
		     ricci_error_message());
	Vector seed = {.rank = ricci_rank(y), .size = 1, .value = room[0]};
	for (int i = 0; (p = ricci_param_at(n.g, i, NULL)); i++) {
		Vector v = {.size = tensor_size(p->node), .value = room[1 + i]};
		for (int64_t j = 0; j < v.size && j < VALUES; j++)
			v.value[j] = 0.6 * sin(0.8 * (double)j + 2 * i);
		net_add(&n, p, &v, true);
	}
	for (int d = 0; d < seed.rank; d++)
		seed.size *= seed.shape[d] = ricci_extent(y, d);
	for (int64_t j = 0; j < seed.size && j < VALUES; j++)
		seed.value[j] = cos(1.7 * (double)j);
	return results(&n, others[k], y, &seed, 0, backend, to);
}

int main(void)
{
	static Results want, got;
	const ricci_type types[] = {RICCI_BF16, RICCI_F16};
	Case c;
	for (int layer = 0; layer < NLAYER; layer++) {
		case_read(layers[layer].name, &c);
		for (int k = 0; k < 2 && c.value && c.seed; k++)
			if (recorded(&c, layer, RICCI_F64, types[k], RICCI_BACKEND_INTERP, &want) &&
			    recorded(&c, layer, types[k], types[k], RICCI_BACKEND_TCC, &got))
				compare(c.name, types[k], &want, &got);
	}
	for (int i = 0; i < NOTHER; i++)
		for (int k = 0; k < 2; k++)
			if (other_results(i, RICCI_F64, types[k], RICCI_BACKEND_INTERP, &want) &&
			    other_results(i, types[k], types[k], RICCI_BACKEND_TCC, &got))
				compare(others[i], types[k], &want, &got);
	return check_done();
}
