/* test_graph.c - the public builder: what it makes, every refusal with its message, the sticky
 * error, and that running out of memory anywhere leaves nothing behind. */
#include "core/core.h"
#include "tests/check.h"
#include "tests/memory_check.h"

#include <pthread.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

static void test_builds(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, SHAPE(32, 784));
	ricci_tensor *w = ricci_param(g, "fc.w", RICCI_F32, 2, SHAPE(784, 10), ricci_normal(0.05));
	ricci_tensor *m = ricci_state(g, "m", RICCI_F32, 2, SHAPE(784, 10), ricci_constant(0));
	ricci_tensor *y = ricci_op(g, "Y[b,n] += X[b,k] * W[k,n]", x, w);
	int trained = 7;

	CHECK_GRAPH(g);
	CHECK_INT(ricci_graph_error(g), 0);
	CHECK_STR(ricci_name(y), "Y");
	CHECK_STR(ricci_name(w), "fc.w");
	CHECK_INT(ricci_rank(y), 2);
	CHECK_INT(ricci_extent(y, 0), 32);
	CHECK_INT(ricci_extent(y, 1), 10);
	CHECK_INT(ricci_extent(y, 2), 0);
	CHECK_INT(ricci_extent(y, -1), 0);
	CHECK_INT(ricci_bytes(y), 32 * 10 * 4);
	CHECK_INT(ricci_dtype(y), RICCI_F32);
	CHECK(ricci_graph_of(y) == g);
	/* Equal computations are one tensor. */
	CHECK(ricci_op(g, "Z[i,j] += A[i,k] * B[k,j]", x, w) == y);
	CHECK_INT(ricci_param_count(g), 2);
	CHECK(ricci_param_at(g, 0, &trained) == w && trained == 1);
	CHECK(ricci_param_at(g, 1, &trained) == m && trained == 0);
	CHECK(ricci_param_at(g, 2, NULL) == NULL && ricci_param_at(g, -1, NULL) == NULL);
	CHECK_INT(ricci_assign(g, m, ricci_op(g, "N[i,j] = M[i,j] + 1", m)), 0);

	char *text = ricci_show(y);
	CHECK_STR(text, "Y[i,j] += x[i,k]*fc_w[k,j];\n");
	ricci_free_text(text);
	text = ricci_show(x);
	CHECK_STR(text, "x=32x784:f32");
	ricci_free_text(text);

	ricci_tensor *both[2], *in[] = {y};
	int n = 2;
	CHECK_INT(ricci_ops(g, "m[i] max= Y[i,j]; s[i] += exp(Y[i,j])", 1, in, &n, both), 0);
	CHECK_INT(n, 2);
	CHECK_STR(ricci_name(both[0]), "m");
	CHECK_STR(ricci_name(both[1]), "s");
	CHECK_GRAPH(g);

	ricci_tensor *label = ricci_input(g, "label", RICCI_U8, 1, SHAPE(32));
	ricci_tensor *loss = ricci_op(g, "L[] += -log(S[b,T[b]])", y, label);
	CHECK_GRAPH(g);
	CHECK_INT(ricci_rank(loss), 0);
	CHECK_INT(label->need_lo, 0);
	CHECK_INT(label->need_hi, 9);
	ricci_graph_free(g);
	CHECK_STR(ricci_version(), RICCI_VERSION);
}

static void test_scopes(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "w", RICCI_F32, 1, SHAPE(3));
	CHECK_INT(ricci_scope_begin(g, "stage1"), 0);
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 1, SHAPE(3), ricci_constant(0));
	CHECK_INT(ricci_scope_begin(g, "block0"), 0);
	ricci_tensor *v = ricci_param(g, "w", RICCI_F32, 1, SHAPE(3), ricci_constant(0));
	CHECK_INT(ricci_scope_end(g), 0);
	ricci_tensor *s = ricci_state(g, "s", RICCI_I32, 0, NULL, ricci_constant(0));
	ricci_tensor *i = ricci_input(g, "i", RICCI_F32, 1, SHAPE(3));
	CHECK_INT(ricci_scope_end(g), 0);
	ricci_tensor *plain = ricci_param(g, "s", RICCI_F32, 0, NULL, ricci_constant(0));
	CHECK_GRAPH(g);
	CHECK_STR(ricci_name(x), "w");
	CHECK_STR(ricci_name(w), "stage1.w");
	CHECK_STR(ricci_name(v), "stage1.block0.w");
	CHECK_STR(ricci_name(s), "stage1.s");
	CHECK_STR(ricci_name(i), "stage1.i");
	CHECK(ricci_param_find(g, "stage1.block0.w") == v);
	CHECK(ricci_param_find(g, "stage1.s") == s && ricci_param_find(g, "s") == plain);
	CHECK(!ricci_param_find(g, "w") && !ricci_param_find(g, "stage1.i"));
	CHECK(!ricci_param_find(g, "block0.w") && !ricci_param_find(g, ""));
	CHECK(!ricci_param_find(g, NULL) && !ricci_param_find(NULL, "w"));
	CHECK_INT(ricci_scope_begin(NULL, "a"), RICCI_EINVAL);
	CHECK_INT(ricci_scope_end(NULL), RICCI_EINVAL);
	/* The same full name in two ways. */
	CHECK(ricci_param(g, "stage1.w", RICCI_F32, 0, NULL, ricci_constant(0)) == &g->nil);
	CHECK_STR(g->ir.err.text, "ricci_param: the graph has a tensor named stage1.w already");
	ricci_graph_free(g);
}

/* ---- refusals: each on a fresh graph with x [4,5] f32, t [4] i32, w a parameter, s a state ----
 */

typedef struct Fixture {
	ricci_graph *g;
	ricci_tensor *x, *t, *w, *s, *si, *other;
} Fixture;

static ricci_tensor *r;
static int one;
static char long_name[251]; /* 250 letters */

#define REFUSALS                                                                                   \
	R(RICCI_EINVAL, "ricci_input: a tensor needs a name",                                      \
	  ricci_input(f.g, "", RICCI_F32, 1, SHAPE(3)))                                            \
	R(RICCI_EINVAL, "ricci_input: a tensor needs a name",                                      \
	  ricci_input(f.g, NULL, RICCI_F32, 1, SHAPE(3)))                                          \
	R(RICCI_EINVAL, "ricci_input %0: names that begin with % are those of variables in loops", \
	  ricci_input(f.g, "%0", RICCI_F32, 1, SHAPE(3)))                                          \
	R(RICCI_EINVAL, "ricci_param: the graph has a tensor named x already",                     \
	  ricci_param(f.g, "x", RICCI_F32, 1, SHAPE(3), ricci_constant(0)))                        \
	R(RICCI_ETYPE, "ricci_input y: unknown type 17",                                           \
	  ricci_input(f.g, "y", (ricci_type)17, 1, SHAPE(3)))                                      \
	R(RICCI_ESHAPE, "ricci_input y: rank 17 is not in 0..16",                                  \
	  ricci_input(f.g, "y", RICCI_F32, 17, SHAPE(3)))                                          \
	R(RICCI_ESHAPE, "ricci_input y: rank -1 is not in 0..16",                                  \
	  ricci_input(f.g, "y", RICCI_F32, -1, SHAPE(3)))                                          \
	R(RICCI_EINVAL, "ricci_input y: the shape is NULL",                                        \
	  ricci_input(f.g, "y", RICCI_F32, 1, NULL))                                               \
	R(RICCI_ESHAPE, "ricci_input y: dimension 1 has extent 0, it must be 1 or more",           \
	  ricci_input(f.g, "y", RICCI_F32, 2, SHAPE(3, 0)))                                        \
	R(RICCI_ESHAPE, "ricci_input y: the size overflows 64 bits",                               \
	  ricci_input(f.g, "y", RICCI_F64, 2, SHAPE(1ll << 30, 1ll << 31)))                        \
	R(RICCI_ETYPE,                                                                             \
	  "ricci_param y: parameters are trained, so they are floats; ricci_state keeps other "    \
	  "types",                                                                                 \
	  ricci_param(f.g, "y", RICCI_I32, 1, SHAPE(3), ricci_constant(0)))                        \
	R(RICCI_EINVAL,                                                                            \
	  "ricci_param y: the initial value is none of ricci_constant, _normal, _uniform, "        \
	  "_truncated_normal, _orthogonal, _values",                                               \
	  ricci_param(f.g, "y", RICCI_F32, 1, SHAPE(3), ((ricci_init){.kind = 9})))                \
	R(RICCI_EINVAL,                                                                            \
	  "equation: the operand for B is NULL\n  Y[i,j] = A[i,j] + B[i,j]\n"                      \
	  "                    ^",                                                                 \
	  ricci_op(f.g, "Y[i,j] = A[i,j] + B[i,j]", f.x, (ricci_tensor *)NULL))                    \
	R(RICCI_EINVAL, "ricci_op: operand 1 (x) belongs to another graph, in: Y[i] = A[i,0]",     \
	  ricci_op(f.g, "Y[i] = A[i,0]", f.other))                                                 \
	R(RICCI_ESYNTAX, "equation: the program is empty\n  \n  ^", ricci_op(f.g, NULL))           \
	R(RICCI_EINVAL,                                                                            \
	  "equation: the program has more than 1 result: Z is not read\n"                          \
	  "  Y[i] = A[i,0]; Z[i] = A[i,1]\n                 ^",                                    \
	  ricci_op(f.g, "Y[i] = A[i,0]; Z[i] = A[i,1]", f.x))                                      \
	R(RICCI_ESHAPE,                                                                            \
	  "ricci_op: si is a state, so nothing checks that its values stay in 0..3 where it "      \
	  "indexes; write else there, or clamp with min and max",                                  \
	  ricci_op(f.g, "Y[i] = A[S[i],0]", f.x, f.si))                                            \
	R(RICCI_EINVAL, "ricci_ops: operands, nresult and results must be given",                  \
	  ricci_ops(f.g, "Y[i] = A[i,0]", 1, NULL, &one, &r))                                      \
	R(RICCI_EINVAL, "ricci_assign: a tensor is NULL", ricci_assign(f.g, f.w, NULL))            \
	R(RICCI_EINVAL, "ricci_assign: x is no parameter or state, so it keeps nothing",           \
	  ricci_assign(f.g, f.x, f.x))                                                             \
	R(RICCI_EINVAL, "ricci_assign: x belongs to another graph",                                \
	  ricci_assign(f.g, f.w, f.other))                                                         \
	R(RICCI_ETYPE, "ricci_assign: si is i32, the value is f32", ricci_assign(f.g, f.si, f.x))  \
	R(RICCI_ESHAPE, "ricci_assign: w has rank 2, the value 1",                                 \
	  ricci_assign(f.g, f.w, ricci_op(f.g, "Y[i] = A[i,0]", f.x)))                             \
	R(RICCI_ESHAPE, "ricci_assign: dimension 0 of w is 5, of the value 4",                     \
	  ricci_assign(f.g, f.w, f.x))                                                             \
	R(RICCI_EINVAL, "ricci_assign: s has a new value already",                                 \
	  (ricci_assign(f.g, f.s, f.x), ricci_assign(f.g, f.s, f.x)))                              \
	R(RICCI_EINVAL, "ricci_param: the graph has a tensor named a.b.w already",                 \
	  (ricci_scope_begin(f.g, "a.b"),                                                          \
	   ricci_param(f.g, "w", RICCI_F32, 0, NULL, ricci_constant(0)), ricci_scope_end(f.g),     \
	   ricci_scope_begin(f.g, "a"),                                                            \
	   ricci_param(f.g, "b.w", RICCI_F32, 0, NULL, ricci_constant(0))))                        \
	R(RICCI_EINVAL,                                                                            \
	  "ricci_scope_end: no scope is open: each end belongs to a ricci_scope_begin before it",  \
	  (ricci_scope_begin(f.g, "a"), ricci_scope_end(f.g), ricci_scope_end(f.g)))               \
	R(RICCI_EINVAL, "ricci_scope_begin: a scope needs a name", ricci_scope_begin(f.g, ""))     \
	R(RICCI_EINVAL, "ricci_scope_begin: a scope needs a name", ricci_scope_begin(f.g, NULL))   \
	R(RICCI_EINVAL,                                                                            \
	  "ricci_scope_begin %a: names that begin with % are those of variables in loops",         \
	  ricci_scope_begin(f.g, "%a"))                                                            \
	R(RICCI_EINVAL,                                                                            \
	  "ricci_input: a name has at most 255 characters, those of its scopes included",          \
	  (ricci_scope_begin(f.g, long_name), ricci_input(f.g, "abcdef", RICCI_F32, 0, NULL)))     \
	R(RICCI_EINVAL,                                                                            \
	  "ricci_scope_begin: a name has at most 255 characters, those of its scopes included",    \
	  (ricci_scope_begin(f.g, "ab"), ricci_scope_begin(f.g, "cd"),                             \
	   ricci_scope_begin(f.g, long_name)))                                                     \
	R(RICCI_EINVAL, "ricci_scope_begin: the graph has sessions and can't change any more",     \
	  (graph_ref(f.g), ricci_scope_begin(f.g, "a"), ricci_graph_free(f.g)))                    \
	R(RICCI_EINVAL, "ricci_input: the graph has sessions and can't change any more",           \
	  (graph_ref(f.g), ricci_input(f.g, "late", RICCI_F32, 0, NULL), ricci_graph_free(f.g)))

static Fixture fixture(ricci_graph *other)
{
	Fixture f = {.g = ricci_graph_new()};

	f.x = ricci_input(f.g, "x", RICCI_F32, 2, SHAPE(4, 5));
	f.t = ricci_input(f.g, "t", RICCI_I32, 1, SHAPE(4));
	f.w = ricci_param(f.g, "w", RICCI_F32, 2, SHAPE(5, 5), ricci_uniform(-1, 1));
	f.s = ricci_state(f.g, "s", RICCI_F32, 2, SHAPE(4, 5), ricci_constant(0));
	f.si = ricci_state(f.g, "si", RICCI_I32, 1, SHAPE(3), ricci_constant(0));
	f.other = other ? other->first : NULL;
	return f;
}

/* After an error every call does nothing and gives the inert tensor. */
static void check_sticky(Fixture f)
{
	char first[2048];

	strcpy(first, ricci_error_message());
	int count = f.g->ntensor;
	ricci_tensor *nil = ricci_op(f.g, "Y[i] = A[i,0]", f.x);
	CHECK(nil == &f.g->nil && ricci_rank(nil) == 0 && ricci_bytes(nil) == 0);
	CHECK(ricci_input(f.g, "fresh", RICCI_F32, 0, NULL) == nil);
	CHECK(ricci_op(f.g, "Z[] = Y[]", nil) == nil);
	CHECK(ricci_assign(f.g, f.s, f.x) == ricci_graph_error(f.g));
	CHECK_STR(ricci_error_message(), first);
	CHECK_INT(f.g->ntensor, count);
}

static void test_refusals(void)
{
	Fixture away = fixture(NULL);

	one = 1;
	memset(long_name, 'a', sizeof long_name - 1);
#define R(code, message, call)                                                                     \
	{                                                                                          \
		Fixture f = fixture(away.g);                                                       \
		(void)(call);                                                                      \
		CHECK_INT(ricci_graph_error(f.g), code);                                           \
		CHECK_STR(ricci_error_message(), message);                                         \
		check_sticky(f);                                                                   \
		ricci_graph_free(f.g);                                                             \
	}
	REFUSALS
#undef R
	ricci_graph_free(away.g);
}

/* NULL is answered, not followed. */
static void test_null(void)
{
	CHECK(ricci_input(NULL, "x", RICCI_F32, 0, NULL) == NULL);
	CHECK(ricci_op(NULL, "Y[] = 1") == NULL);
	CHECK_INT(ricci_ops(NULL, "Y[] = 1", 0, NULL, &one, &r), RICCI_EINVAL);
	CHECK_INT(ricci_assign(NULL, NULL, NULL), RICCI_EINVAL);
	CHECK_INT(ricci_graph_error(NULL), RICCI_EINVAL);
	CHECK_INT(ricci_rank(NULL), 0);
	CHECK_INT(ricci_extent(NULL, 0), 0);
	CHECK_INT(ricci_param_count(NULL), 0);
	CHECK(ricci_param_at(NULL, 0, NULL) == NULL);
	CHECK_STR(ricci_name(NULL), "");
	char *text = ricci_show(NULL);
	CHECK_STR(text, "");
	ricci_free_text(text);
	ricci_free_text(NULL);
	ricci_graph_free(NULL);
}

static int build(void)
{
	ricci_graph *g = ricci_graph_new();
	if (!g)
		return RICCI_ENOMEM;
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, SHAPE(6, 50));
	ricci_scope_begin(g, "net");
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, SHAPE(50, 7), ricci_normal(1));
	ricci_scope_end(g);
	ricci_tensor *y = ricci_op(g, "Y[i,j] += X[i,k] * W[k,j]", x, w);
	for (int i = 0; i < 30; i++)
		y = ricci_op(g,
			     "s[i] += exp(Y[i,j]); Z[i,j] = (Y[i,j+1] else Y[i,0]) - Y[i,j] / s[i]",
			     y);
	char *text = ricci_show(y);
	int code = ricci_graph_error(g);
	if (!code && !text)
		code = RICCI_ENOMEM;
	ricci_free_text(text);
	ricci_graph_free(g);
	return code;
}

/* ricci_op counts its operands; structs say how large they are; each thread has its message. */
static void *fail_beside(void *unused)
{
	CHECK_STR(ricci_error_message(), "");
	CHECK(!ricci_op(NULL, "Y[] = 1"));
	CHECK_STR(ricci_error_message(), "ricci_op: the graph is NULL");
	return unused;
}

static void test_calls(void)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, SHAPE(3));
	CHECK(ricci_op(g, "Y[i] = 1.0 where i<4"));
	CHECK_GRAPH(g);
	ricci_op(g, "Y[i] = A[i] * B[i]", x);
	CHECK_INT(ricci_graph_error(g), RICCI_EINVAL);
	CHECK(strstr(ricci_error_message(),
		     "no tensor is given for B: the program reads 2 (A, B), 1 given"));
	ricci_graph_free(g);

	g = ricci_graph_new();
	x = ricci_input(g, "x", RICCI_F32, 1, SHAPE(3));
	ricci_op(g, "Y[i] = A[i]", x, x);
	CHECK(strstr(ricci_error_message(), "operand 2 is not used: the program reads 1 (A), 2 "
					    "given"));
	pthread_t other;
	CHECK_INT(pthread_create(&other, NULL, fail_beside, NULL), 0);
	pthread_join(other, NULL);
	CHECK(strstr(ricci_error_message(), "operand 2 is not used"));
	ricci_graph_free(g);

	g = ricci_graph_new();
	x = ricci_input(g, "x", RICCI_F32, 1, SHAPE(3));
	ricci_op_custom(g, "Y[i] = A[i] * B[i]", "dA[i] = dY[i]", x);
	CHECK_STR(ricci_error_message(), "ricci_ops_custom: the text has 2 operands, 1 are given");
	ricci_graph_free(g);

	g = ricci_graph_new();
	ricci_loop none = RICCI_LOOP();
	none.size = 0;
	CHECK_INT(ricci_scan(g, &none, NULL, NULL), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(),
		  "ricci_loop.size is 0, not sizeof(ricci_loop): begin with RICCI_LOOP()");
	ricci_graph_free(g);

	struct {
		ricci_loop known;
		int unknown;
	} later = {RICCI_LOOP(.steps = 1), 0};
	ricci_loop own;
	Error e = {0};
	later.known.size = sizeof later;
	CHECK_INT(struct_take(&own, sizeof own, &later, "ricci_loop", &e), 0);
	CHECK_INT(own.steps, 1);
	CHECK_INT(own.size, sizeof own);
	later.unknown = 1;
	CHECK_INT(struct_take(&own, sizeof own, &later, "ricci_loop", &e), RICCI_EINVAL);
	CHECK_STR(e.text, "ricci_loop: a field is set that this version of Ricci (" RICCI_VERSION
			  ") does not know");
	later.known.size = sizeof(size_t) + sizeof(int64_t); /* an older program's struct */
	CHECK_INT(struct_take(&own, sizeof own, &later, "ricci_loop", NULL), 0);
	CHECK(own.steps == 1 && !own.length);
	struct_give(&later, &RICCI_LOOP(.steps = 9), sizeof own);
	CHECK(later.known.steps == 9 && later.known.size == sizeof(size_t) + sizeof(int64_t));

	CHECK_STR(ricci_strerror(RICCI_EVALUE),
		  "data outside the range that the graph needs of it");
	for (int code = RICCI_EDEVICE; code <= RICCI_OK; code++)
		CHECK(*ricci_strerror(code));
	CHECK_STR(ricci_strerror(1), "no error of Ricci's");
	CHECK_STR(ricci_strerror(RICCI_EDEVICE - 1), "no error of Ricci's");
}

int main(void)
{
	test_calls();
	test_builds();
	test_scopes();
	test_refusals();
	test_null();
	check_memory(build);
	return check_done();
}
