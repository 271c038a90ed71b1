/* attention.c - scaled dot product attention, and the layer of several heads around it.
 * Input: queries, keys and values of one graph, what masks them. Output: one tensor, and the
 * layer's parameters. Invariant: plain equations; a query that attends to no key gets zeros, in the
 * result and in the gradients. */
#include "nn/layers/internal.h"

#include <math.h>

/* What the operands' shapes say. */
typedef struct Heads {
	int64_t batch, queries, keys, heads, key_heads, size, value_size;
	bool flat; /* [b,t,heads*d], not [b,heads,t,d] */
} Heads;

static bool heads_find(Heads *n, ricci_tensor *q, ricci_tensor *k, ricci_tensor *v,
		       const ricci_attention_options *o)
{
	const char *who = "ricci_attention";
	n->flat = ricci_rank(q) == 3;
	int time = n->flat ? 1 : 2;
	n->heads = n->flat ? o->heads : ricci_extent(q, 1);
	n->key_heads = !n->flat ? ricci_extent(k, 1) : o->key_heads ? o->key_heads : n->heads;
	n->batch = ricci_extent(q, 0);
	n->queries = ricci_extent(q, time);
	n->keys = ricci_extent(k, time);
	if (ricci_rank(k) != ricci_rank(q) || ricci_rank(v) != ricci_rank(q))
		layer_fail(q, "%s: q has %d dimensions, k has %d, v has %d", who, ricci_rank(q),
			   ricci_rank(k), ricci_rank(v));
	else if (n->flat && (o->heads < 1 || o->key_heads < 0))
		layer_fail(q, "%s: operands [batch, time, heads * size] need .heads, 1 or more",
			   who);
	else if (n->heads % n->key_heads)
		layer_fail(q, "%s: %lld heads don't share %lld heads of keys evenly", who,
			   (long long)n->heads, (long long)n->key_heads);
	else if (n->flat && (ricci_extent(q, 2) % n->heads || ricci_extent(k, 2) % n->key_heads ||
			     ricci_extent(v, 2) % n->key_heads))
		layer_fail(q,
			   "%s: q, k and v of %lld, %lld and %lld columns are not %lld, %lld "
			   "and %lld heads",
			   who, (long long)ricci_extent(q, 2), (long long)ricci_extent(k, 2),
			   (long long)ricci_extent(v, 2), (long long)n->heads,
			   (long long)n->key_heads, (long long)n->key_heads);
	if (ricci_graph_error(ricci_graph_of(q)))
		return false;
	n->size = n->flat ? ricci_extent(q, 2) / n->heads : ricci_extent(q, 3);
	n->value_size = n->flat ? ricci_extent(v, 2) / n->key_heads : ricci_extent(v, 3);
	int64_t key_size = n->flat ? ricci_extent(k, 2) / n->key_heads : ricci_extent(k, 3);
	if (key_size != n->size)
		layer_fail(q, "%s: a head of q has %lld numbers, of k %lld", who,
			   (long long)n->size, (long long)key_size);
	else if (ricci_extent(v, time) != n->keys)
		layer_fail(q, "%s: %lld keys, but %lld values", who, (long long)n->keys,
			   (long long)ricci_extent(v, time));
	else if (ricci_extent(k, 0) != n->batch || ricci_extent(v, 0) != n->batch)
		layer_fail(q, "%s: q, k and v have %lld, %lld and %lld samples", who,
			   (long long)n->batch, (long long)ricci_extent(k, 0),
			   (long long)ricci_extent(v, 0));
	else if (!n->flat && ricci_extent(v, 1) != n->key_heads)
		layer_fail(q, "%s: k has %lld heads, v has %lld", who, (long long)n->key_heads,
			   (long long)ricci_extent(v, 1));
	return !ricci_graph_error(ricci_graph_of(q));
}

static bool options_check(ricci_tensor *q, const Heads *n, const ricci_attention_options *o)
{
	const char *who = "ricci_attention";
	ricci_tensor *l = o->lengths, *m = o->mask;
	int rank = m ? ricci_rank(m) : 0;
	if (l &&
	    (ricci_rank(l) != 1 || ricci_extent(l, 0) != n->batch || ricci_dtype(l) != RICCI_I32))
		layer_fail(q, "%s: lengths must be i32 [%lld], one number for each sample", who,
			   (long long)n->batch);
	else if (!layer_position(who, q, o->position))
		return false;
	else if (o->position && !o->causal)
		layer_fail(q, "%s: position is of causal attention, .causal is 0", who);
	else if (!(o->dropout >= 0 && o->dropout < 1))
		layer_fail(q, "%s: dropout is %g, it must be 0 or more and less than 1", who,
			   o->dropout);
	else if (m && (rank < 2 || rank > 4 || ricci_extent(m, rank - 1) != n->keys ||
		       ricci_extent(m, rank - 2) != n->queries ||
		       (rank > 2 && ricci_extent(m, 0) != n->batch) ||
		       (rank > 3 && ricci_extent(m, 1) != n->heads)))
		layer_fail(q,
			   "%s: mask must be [%lld,%lld], queries and keys, or have the batch or "
			   "batch and heads, [%lld,%lld], before them",
			   who, (long long)n->queries, (long long)n->keys, (long long)n->batch,
			   (long long)n->heads);
	return !ricci_graph_error(ricci_graph_of(q));
}

/* Does the mask say which keys count? Otherwise it is added to the scores. */
static bool mask_chooses(const ricci_tensor *m)
{
	return m && ricci_dtype(m) == RICCI_BOOL;
}

static const char *mask_access(const ricci_tensor *m)
{
	return ricci_rank(m) == 2 ? "M[i,j]" : ricci_rank(m) == 3 ? "M[b,i,j]" : "M[b,h,i,j]";
}

/* A = the scores, -inf where a query doesn't attend to the key. Takes the masks as operands. */
static void scores_text(Text *t, const ricci_attention_options *o, ricci_tensor **operand, int *n)
{
	bool chooses = mask_chooses(o->mask), any = o->causal || o->lengths || chooses;
	text_add(t, "; A[b,h,i,j] = ");
	if (o->causal)
		text_add(t, "j <= i%s%s", layer_position_of(o->position),
			 o->lengths || chooses ? " && " : "");
	if (o->lengths)
		text_add(t, "j < L[b]%s", chooses ? " && " : "");
	if (chooses)
		text_add(t, "%s", mask_access(o->mask));
	if (o->causal && o->position)
		operand[(*n)++] = o->position;
	if (o->lengths)
		operand[(*n)++] = o->lengths;
	if (o->mask)
		operand[(*n)++] = o->mask;
	text_add(t, "%s S[b,h,i,j]*scale", any ? " ?" : "");
	if (o->mask && !chooses)
		text_add(t, " + %s", mask_access(o->mask));
	text_add(t, "%s", any ? " : -inf" : "");
}

/* F = the weights of the values. The greatest score is rounded down: it only keeps the exponents
 * small, and has no gradient so. Where no key counts it is -inf, and the sum of the weights 0. */
static void weights_text(Text *t, const ricci_attention_options *o)
{
	bool empty = o->lengths || o->mask || o->position;
	text_add(t, "; T[b,h,i] max= A[b,h,i,j]");
	text_add(t, empty ? "; E[b,h,i,j] = exp(A[b,h,i,j] - max(floor(T[b,h,i]), -3.4028234e38))"
			  : "; E[b,h,i,j] = exp(A[b,h,i,j] - floor(T[b,h,i]))");
	text_add(t, "; Z[b,h,i] += E[b,h,i,j]");
	text_add(t, empty ? "; F[b,h,i,j] = E[b,h,i,j] / (Z[b,h,i] > 0 ? Z[b,h,i] : 1)"
			  : "; F[b,h,i,j] = E[b,h,i,j] / Z[b,h,i]");
}

ricci_tensor *ricci_attention(ricci_tensor *q, ricci_tensor *k, ricci_tensor *v,
			      const ricci_attention_options *options)
{
	const char *layout[] = {"q [batch, heads, time, size] or [batch, time, heads * size]",
				"k [batch, heads, time, size] or [batch, time, heads * size]",
				"v [batch, heads, time, size] or [batch, time, heads * size]"};
	const Operand need[] = {{q, 3, 4, layout[0]}, {k, 3, 4, layout[1]}, {v, 3, 4, layout[2]}};
	ricci_attention_options o = RICCI_ATTENTION();
	Heads n;
	if (!layer_check("ricci_attention", 3, need) ||
	    !layer_options(q, &o, sizeof o, options, "ricci_attention_options") ||
	    !heads_find(&n, q, k, v, &o) || !options_check(q, &n, &o))
		return layer_nil(q);
	ricci_tensor *operand[6] = {q, k};
	int noperand = 2;
	Text t = {0};
	text_add(&t, "heads = %lld; size = %lld; group = %lld; scale = %.17g; ", (long long)n.heads,
		 (long long)n.size, (long long)(n.heads / n.key_heads),
		 o.scale != 0 ? o.scale : 1 / sqrt((double)n.size));
	text_add(&t, "S[b,h,i,j] += %s * %s where h < heads, d < size",
		 n.flat ? "Q[b,i,h*size+d]" : "Q[b,h,i,d]",
		 n.flat ? "K[b,j,h/group*size+d]" : "K[b,h/group,j,d]");
	scores_text(&t, &o, operand, &noperand);
	weights_text(&t, &o);
	operand[0] = layer_build(&t, noperand, operand);
	if (o.dropout > 0)
		operand[0] = ricci_dropout(operand[0], o.dropout);
	operand[1] = v;
	text_add(&t, "group = %lld; size = %lld; ", (long long)(n.heads / n.key_heads),
		 (long long)n.value_size);
	text_add(&t, "Y[b,h,i,d] += F[b,h,i,j] * %s where d < size",
		 n.flat ? "V[b,j,h/group*size+d]" : "V[b,h/group,j,d]");
	if (n.flat)
		text_add(&t,
			 "; heads = %lld; O[b,i,n] = Y[b,n/size,i,n%%size] where n < heads*size",
			 (long long)n.heads);
	return layer_build(&t, 2, operand);
}

/* ---- several heads, with parameters ---- */

typedef struct Projection {
	ricci_tensor *weight, *bias; /* bias may be NULL */
	int64_t from, rows;	     /* which rows of the weight, and elements of the bias */
	int64_t bias_from;
} Projection;

/* [b,t,rows]: x times these rows, plus the bias. */
static ricci_tensor *project(ricci_tensor *x, const Projection *p)
{
	Text t = {0};
	text_add(&t, "first = %lld; count = %lld; ", (long long)p->from, (long long)p->rows);
	text_add(&t, "L[b,t,n] += X[b,t,k] * W[n+first,k] where n < count");
	if (p->bias)
		text_add(&t, "; start = %lld; Y[b,t,n] = L[b,t,n] + B[n+start] where n < count",
			 (long long)p->bias_from);
	return layer_build(&t, p->bias ? 3 : 2, (ricci_tensor *[]){x, p->weight, p->bias});
}

static ricci_tensor *matrix(const Layer *l, const char *part, int64_t rows, int64_t columns,
			    ricci_init init)
{
	return layer_parameter(l, part, 2, (int64_t[]){rows, columns}, init);
}

/* NULL with no_bias. */
static ricci_tensor *bias(const Layer *l, const char *part, int64_t n,
			  const ricci_attention_options *o)
{
	return o->no_bias ? NULL : layer_parameter(l, part, 1, &n, ricci_constant(0));
}

/* The layer's input projections: with one width of all three they are rows of one weight. */
static void projections(Projection *p, const Layer *l, ricci_tensor *const *x,
			const ricci_attention_options *o)
{
	static const char *const part[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
	int64_t size = ricci_extent(x[0], 2), sum = 0;
	int64_t narrow = o->key_heads ? size / o->heads * o->key_heads : size;
	bool packed =
		narrow == size && ricci_extent(x[1], 2) == size && ricci_extent(x[2], 2) == size;
	ricci_tensor *all =
		packed ? matrix(l, "in_proj_weight", 3 * size, size, ricci_glorot(size, 3 * size))
		       : NULL;
	for (int k = 0; k < 3; k++) {
		int64_t rows = k ? narrow : size, in = ricci_extent(x[k], 2);
		p[k] = (Projection){.rows = rows, .from = packed ? sum : 0, .bias_from = sum};
		p[k].weight = packed ? all : matrix(l, part[k], rows, in, ricci_glorot(in, rows));
		sum += rows;
	}
	p[0].bias = p[1].bias = p[2].bias = bias(l, "in_proj_bias", sum, o);
}

/* Of one tensor that is query, key and value: one product, then its parts. */
static void project_once(ricci_tensor *x, const Projection *p, ricci_tensor **out)
{
	Projection whole = {.weight = p[0].weight, .rows = 3 * p[0].rows};
	ricci_tensor *all = project(x, &whole);
	for (int k = 0; k < 3; k++) {
		Text t = {0};
		text_add(&t, "first = %lld; count = %lld; ", (long long)p[k].from,
			 (long long)p[k].rows);
		text_add(&t, "Y[b,t,n] = X[b,t,n+first]%s where n < count",
			 p[k].bias ? " + B[n+first]" : "");
		out[k] = layer_build(&t, p[k].bias ? 2 : 1, (ricci_tensor *[]){all, p[k].bias});
	}
}

ricci_tensor *ricci_multihead_attention(ricci_tensor *query, ricci_tensor *key, ricci_tensor *value,
					const char *name, const ricci_attention_options *options)
{
	Layer l = {.call = "ricci_multihead_attention", .name = name};
	ricci_tensor *x[3] = {query, key ? key : query, value ? value : key ? key : query}, *y[3];
	const Operand need[] = {{x[0], 3, 3, "query [batch, time, size]"},
				{x[1], 3, 3, "key [batch, time, size]"},
				{x[2], 3, 3, "value [batch, time, size]"}};
	ricci_attention_options o = RICCI_ATTENTION();
	if (!layer_check(l.call, 3, need) ||
	    !layer_begin(&l, need, &o, sizeof o, options, "ricci_attention_options"))
		return layer_nil(query);
	l.share = o.share != 0;
	int64_t size = ricci_extent(query, 2);
	if (o.heads < 1 || size % o.heads)
		return layer_fail(query,
				  "%s: %lld columns can't be divided into %d heads; give .heads",
				  l.call, (long long)size, o.heads);
	if (o.key_heads < 0 || (o.key_heads && o.heads % o.key_heads))
		return layer_fail(query, "%s: %d heads don't share %d heads of keys evenly", l.call,
				  o.heads, o.key_heads);
	Projection p[3], out = {.rows = size};
	projections(p, &l, x, &o);
	if (x[0] == x[1] && x[0] == x[2] && p[0].weight == p[1].weight)
		project_once(query, p, y);
	else
		for (int k = 0; k < 3; k++)
			y[k] = project(x[k], &p[k]);
	ricci_tensor *heads = ricci_attention(y[0], y[1], y[2], &o);
	out.weight = matrix(&l, "out_proj.weight", size, size, ricci_uniform_fan_in(size));
	out.bias = bias(&l, "out_proj.bias", size, &o);
	return project(heads, &out);
}
