/* test_operands.c - how operands, results and indices are named: signatures, names from C, integers
 * that are bound like operands, and `...`. What a text means is checked against the same text
 * without these: equal computations are one tensor. Every refusal has its message. */
#include "core/core.h"
#include "tests/check.h"
#include "tests/memory_check.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

typedef struct Fixture {
	ricci_graph *g;
	ricci_tensor *x, *w, *v, *s, *t, *cube; /* x [4,5], w [3,5], v [5], s [], t [4] i32 */
} Fixture;

static Fixture fixture(void)
{
	Fixture f = {.g = ricci_graph_new()};
	f.x = ricci_input(f.g, "x", RICCI_F32, 2, SHAPE(4, 5));
	f.w = ricci_input(f.g, "w", RICCI_F32, 2, SHAPE(3, 5));
	f.v = ricci_input(f.g, "v", RICCI_F32, 1, SHAPE(5));
	f.s = ricci_input(f.g, "s", RICCI_F32, 0, NULL);
	f.t = ricci_input(f.g, "t", RICCI_I32, 1, SHAPE(4));
	f.cube = ricci_input(f.g, "cube", RICCI_F32, 3, SHAPE(2, 4, 5));
	return f;
}

/* Is every element this number, whatever the inputs are? */
static void check_all(const ricci_tensor *t, double want)
{
	double got[64];
	CHECK_INT(interp_tensor(t->node, 0, NULL, (RandomState){0}, got, NULL, NULL), 0);
	for (int64_t i = 0; i < tensor_size(t->node); i++)
		CHECK_NEAR(got[i], want, 0);
}

/* ---- dots ---- */

#define SAME(a, b)                                                                                 \
	do {                                                                                       \
		const ricci_tensor *same_ = (a);                                                   \
		CHECK(same_ &&same_ == (b));                                                       \
		CHECK_GRAPH(f.g);                                                                  \
	} while (0)

static void test_dots(void)
{
	Fixture f = fixture();
	ricci_graph *g = f.g;
	const char *relu = "Y[...] = X[...] > 0 ? X[...] : 0.0";
	SAME(ricci_op(g, relu, f.x), ricci_op(g, "Y[i,j] = X[i,j] > 0 ? X[i,j] : 0.0", f.x));
	SAME(ricci_op(g, relu, f.cube),
	     ricci_op(g, "Y[i,j,k] = X[i,j,k] > 0 ? X[i,j,k] : 0.0", f.cube));
	SAME(ricci_op(g, relu, f.s), ricci_op(g, "Y[] = X[] > 0 ? X[] : 0.0", f.s));
	SAME(ricci_op(g, "M[...] max= X[...,j]", f.cube),
	     ricci_op(g, "M[a,b] max= X[a,b,j]", f.cube));
	SAME(ricci_op(g, "M[...] max= X[...,j]", f.v), ricci_op(g, "M[] max= X[j]", f.v));
	SAME(ricci_op(g, "Y[...,n] += X[...,k]*W[n,k]", f.cube, f.w),
	     ricci_op(g, "Y[a,b,n] += X[a,b,k]*W[n,k]", f.cube, f.w));
	SAME(ricci_op(g, "Y[i,...,j] = X[j,...,i]", f.cube),
	     ricci_op(g, "Y[i,a,j] = X[j,a,i]", f.cube));
	SAME(ricci_op(g, "Y[i,...,j] = X[j,...,i]", f.x), ricci_op(g, "Y[i,j] = X[j,i]", f.x));
	SAME(ricci_op(g, "S[] += X[...]*X[...]", f.x), ricci_op(g, "S[] += X[i,j]*X[i,j]", f.x));
	SAME(ricci_op(g, "Y[i:4,...] = (X[i-1,...] else 0)", f.x),
	     ricci_op(g, "Y[i:4,j] = (X[i-1,j] else 0)", f.x));
	SAME(ricci_op(g, "Y[T[i]:9,...] += X[i,...]", f.t, f.x),
	     ricci_op(g, "Y[T[i]:9,j] += X[i,j]", f.t, f.x));
	SAME(ricci_op(g, "Y[...] = T[...] < 2 ? 1.0 : 0.0", f.t),
	     ricci_op(g, "Y[i] = T[i] < 2 ? 1.0 : 0.0", f.t));
	SAME(ricci_op(g, "d = X[i,...] - M[...]; V[...] += d*d", f.x, f.v),
	     ricci_op(g, "V[k] += (X[i,k] - M[k])*(X[i,k] - M[k])", f.x, f.v));
	/* Of each equation its own number. */
	SAME(ricci_op(g,
		      "M[...] max= X[...,j]; E[...] = exp(X[...] - 1); Y[...,j] = E[...,j]*M[...]",
		      f.cube),
	     ricci_op(g,
		      "M[a,b] max= X[a,b,j]; E[a,b,j] = exp(X[a,b,j] - 1); Y[a,b,j] = "
		      "E[a,b,j]*M[a,b]",
		      f.cube));
	ricci_graph_free(g);
}

/* ---- signatures ---- */

static void test_signatures(void)
{
	Fixture f = fixture();
	ricci_graph *g = f.g;
	ricci_tensor *y = ricci_op(g, "Y[b,n] += X[b,k]*W[n,k]", f.x, f.w);
	SAME(ricci_op(g, "X, W -> Y: Y[b,n] += X[b,k]*W[n,k]", f.x, f.w), y);
	SAME(ricci_op(g, "W, X -> Y: Y[b,n] += X[b,k]*W[n,k]", f.w, f.x), y);
	SAME(ricci_op(g, "-> Y: Y[i] = f32(i) where i < 3"),
	     ricci_op(g, "Y[i] = f32(i) where i < 3"));
	/* Intermediates are results, in the order of the signature. */
	ricci_tensor *out[3], *in[] = {f.x};
	int n = 3;
	CHECK_INT(ricci_ops(g, "X -> Y, M: M[i] += X[i,j]; Y[i,j] = X[i,j] - M[i]", 1, in, &n, out),
		  0);
	CHECK_INT(n, 2);
	CHECK_STR(ricci_name(out[0]), "Y");
	CHECK_STR(ricci_name(out[1]), "M");
	SAME(out[1], ricci_op(g, "M[i] += X[i,j]", f.x));
	SAME(out[0], ricci_op(g, "M[i] += X[i,j]; Y[i,j] = X[i,j] - M[i]", f.x));
	/* The same of gradients of the user's own. */
	n = 3;
	CHECK_INT(ricci_ops_custom(g, "X -> Y, M: M[i] += X[i,j]; Y[i,j] = X[i,j] - M[i]",
				   "dX[i,j] = dY[i,j] + 3*dM[i]", 1, in, &n, out),
		  0);
	CHECK_INT(n, 2);
	CHECK_STR(ricci_name(out[1]), "M");
	ricci_tensor *loss = ricci_op(g, "L[] += M[i]", out[1]), *dx;
	CHECK_INT(ricci_grad(g, loss, NULL, 1, &f.x, &dx), 0);
	check_all(dx, 3);
	ricci_graph_free(g);
}

/* ---- names from C ---- */

static void test_names(void)
{
	Fixture f = fixture();
	ricci_graph *g = f.g;
	const char *text = "Y[b,n] += X[b,k]*W[n,k]";
	ricci_tensor *y = ricci_op(g, text, f.x, f.w);
	SAME(ricci_op_named(g, text, "X", f.x, "W", f.w), y);
	SAME(ricci_op_named(g, text, "W", f.w, "X", f.x), y);
	SAME(ricci_op_named(g, "W, X -> Y: Y[b,n] += X[b,k]*W[n,k]", "X", f.x, "W", f.w), y);
	SAME(ricci_op_named(g, "Y[i] = 1.0 where i < 3"), ricci_op(g, "Y[i] = 1.0 where i < 3"));
	const char *const names[] = {"W", "X"};
	ricci_tensor *in[] = {f.w, f.x}, *out[2];
	int n = 2;
	CHECK_INT(ricci_ops_named(g, "Y[b,n] += X[b,k]*W[n,k]; Z[n] += W[n,k]", 2, names, in, &n,
				  out),
		  0);
	CHECK_INT(n, 2);
	SAME(out[0], y);
	SAME(out[1], ricci_op(g, "Z[n] += W[n,k]", f.w));
	CHECK(ricci_op_named(NULL, text, "X", f.x) == NULL);
	CHECK_INT(ricci_ops_named(NULL, text, 0, NULL, NULL, &n, out), RICCI_EINVAL);
	ricci_graph_free(g);
}

/* ---- integers ---- */

static void test_integers(void)
{
	Fixture f = fixture();
	ricci_graph *g = f.g;
	ricci_tensor *two = ricci_integer(g, 2), *three = ricci_integer(g, 3);
	CHECK(ricci_integer(g, 2) == two && ricci_integer(NULL, 2) == NULL);
	CHECK_INT(ricci_rank(two), 0);
	CHECK_INT(ricci_dtype(two), RICCI_I64);
	SAME(ricci_op(g, "Y[b,k] = X[b,k*G]", f.x, two), ricci_op(g, "Y[b,k] = X[b,k*2]", f.x));
	/* In conditions, ranges, extents, padded accesses, values; in the order of the text. */
	SAME(ricci_op(g, "Y[k] = k < G ? V[k] : 1.0 where k < G+2", three, f.v),
	     ricci_op(g, "Y[k] = k < 3 ? V[k] : 1.0 where k < 5", f.v));
	SAME(ricci_op(g, "Y[k:N] = V[k+A*N]/N", three, f.v, ricci_integer(g, 0)),
	     ricci_op(g, "Y[k:3] = V[k]/3", f.v));
	SAME(ricci_op(g, "Y[k] += (X[b,G*k+r-P] else 0) where k < 2, r < 3", f.x, two,
		      ricci_integer(g, -1)),
	     ricci_op(g, "Y[k] += (X[b,2*k+r+1] else 0) where k < 2, r < 3", f.x));
	SAME(ricci_op(g, "v = X[i,j]/G; Y[i,j] = G*v + G - 1/G", f.x, two),
	     ricci_op(g, "v = X[i,j]/2; Y[i,j] = 2*v + 2 - 1/2", f.x));
	SAME(ricci_op(g, "Y[k] = V[k] where k < X.size(1)/G", f.v, f.x, two),
	     ricci_op(g, "Y[k] = V[k] where k < 2", f.v));
	/* By a signature or by names it may stand anywhere. */
	SAME(ricci_op(g, "X, G -> Y: Y[b] += X[b,k*G]", f.x, two),
	     ricci_op(g, "Y[b] += X[b,k*2]", f.x));
	SAME(ricci_op(g, "G, X -> Y: Y[b] = X[b,G]", two, f.x), ricci_op(g, "Y[b] = X[b,2]", f.x));
	SAME(ricci_op_named(g, "Y[b] += X[b,k*G]", "G", two, "X", f.x),
	     ricci_op(g, "Y[b] += X[b,k*2]", f.x));
	SAME(ricci_op_named(g, "Y[b] = X[b,G] else 0", "G", two, "X", f.x),
	     ricci_op(g, "Y[b] = X[b,2]", f.x));
	/* With brackets it is a tensor; any equation of one number is an integer. */
	ricci_tensor *again = ricci_op(g, "Y[] = G[]", two);
	int64_t value;
	CHECK_INT(interp_tensor(again->node, 0, NULL, (RandomState){0}, &value, NULL, NULL), 0);
	CHECK_INT(value, 2);
	SAME(ricci_op(g, "X, G -> Y: Y[b] = X[b,G]", f.x, ricci_op(g, "N[] = i32(2)")),
	     ricci_op(g, "Y[b] = X[b,2]", f.x));
	ricci_graph_free(g);
}

/* In a gradient of the user's own the integers of its text have their names. */
static void test_custom(void)
{
	Fixture f = fixture();
	ricci_graph *g = f.g;
	ricci_tensor *y = ricci_op_custom(g, "X, G -> Y: Y[i] = G*X[i]", "dX[i] = G*dY[i] + G", f.v,
					  ricci_integer(g, 3));
	ricci_tensor *loss = ricci_op(g, "L[] += Y[i]", y), *dx;
	CHECK_GRAPH(g);
	CHECK_INT(ricci_grad(g, loss, NULL, 1, &f.v, &dx), 0);
	check_all(dx, 6);
	ricci_graph_free(g);
}

/* ---- refusals ---- */

#define REFUSALS                                                                                   \
	R(RICCI_ESHAPE,                                                                            \
	  "equation: ... stands for 2 dimensions of X, but for 1 of V\n"                           \
	  "  Y[...] = X[...] + V[...]\n"                                                           \
	  "             ^        ^",                                                               \
	  ricci_op(f.g, "Y[...] = X[...] + V[...]", f.x, f.v))                                     \
	R(RICCI_ESHAPE,                                                                            \
	  "equation: what ... stands for differs: dimension 0 of X has extent 4, dimension 0 of "  \
	  "W has extent 3\n"                                                                       \
	  "  Y[...] = X[...] + W[...]\n"                                                           \
	  "             ^        ^",                                                               \
	  ricci_op(f.g, "Y[...] = X[...] + W[...]", f.x, f.w))                                     \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: ... stands twice in the brackets of one tensor\n"                             \
	  "  Y[...] = X[...,i,...]\n"                                                              \
	  "             ^     ^",                                                                  \
	  ricci_op(f.g, "Y[...] = X[...,i,...]", f.cube))                                          \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: ... stands twice in the brackets of one tensor\n"                             \
	  "  Y[...,...] = X[...]\n"                                                                \
	  "    ^   ^",                                                                             \
	  ricci_op(f.g, "Y[...,...] = X[...]", f.cube))                                            \
	R(RICCI_ESHAPE,                                                                            \
	  "equation: V has 1 dimension, but 2 indices are given beside ...\n"                      \
	  "  Y[...] += V[...,i,j]\n"                                                               \
	  "            ^",                                                                         \
	  ricci_op(f.g, "Y[...] += V[...,i,j]", f.v))                                              \
	R(RICCI_ESHAPE,                                                                            \
	  "equation: ... stands on the left only, so nothing says which dimensions it is: it has " \
	  "to stand in what is read\n"                                                             \
	  "  Y[...] = V[2]\n"                                                                      \
	  "    ^",                                                                                 \
	  ricci_op(f.g, "Y[...] = V[2]", f.v))                                                     \
	R(RICCI_ESHAPE,                                                                            \
	  "equation: index ... is not on the left, and '=' reduces nothing: use +=, max= ..\n"     \
	  "  Y[] = V[...]\n"                                                                       \
	  "          ^",                                                                           \
	  ricci_op(f.g, "Y[] = V[...]", f.v))                                                      \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: expected a value, found '...'\n  Y[i] = exp(...)\n             ^",            \
	  ricci_op(f.g, "Y[i] = exp(...)"))                                                        \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: the operand W of the signature is never read\n"                               \
	  "  X, W -> Y: Y[i,j] = X[i,j]\n"                                                         \
	  "     ^",                                                                                \
	  ricci_op(f.g, "X, W -> Y: Y[i,j] = X[i,j]", f.x, f.w))                                   \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: W is read, but neither assigned nor an operand of the signature\n"            \
	  "  X -> Y: Y[i,j] = X[i,j]*W[0,j]\n"                                                     \
	  "                          ^",                                                           \
	  ricci_op(f.g, "X -> Y: Y[i,j] = X[i,j]*W[0,j]", f.x))                                    \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: the result Z of the signature is never assigned\n"                            \
	  "  X -> Y, Z: Y[i,j] = X[i,j]\n"                                                         \
	  "          ^",                                                                           \
	  ricci_op(f.g, "X -> Y, Z: Y[i,j] = X[i,j]", f.x))                                        \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: Z is assigned, but neither read nor a result of the signature\n"              \
	  "  X -> Y: Y[i,j] = X[i,j]; Z[i] += X[i,j]\n"                                            \
	  "                           ^",                                                          \
	  ricci_op(f.g, "X -> Y: Y[i,j] = X[i,j]; Z[i] += X[i,j]", f.x))                           \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: X stands twice in the signature\n"                                            \
	  "  X, X -> Y: Y[i,j] = X[i,j]\n"                                                         \
	  "  ^  ^",                                                                                \
	  ricci_op(f.g, "X, X -> Y: Y[i,j] = X[i,j]", f.x, f.x))                                   \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: Y stands twice in the signature\n"                                            \
	  "  X -> Y, Y: Y[i,j] = X[i,j]\n"                                                         \
	  "       ^  ^",                                                                           \
	  ricci_op(f.g, "X -> Y, Y: Y[i,j] = X[i,j]", f.x))                                        \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: Y is an operand by the signature, and assigned\n"                             \
	  "  X, Y -> Y: Y[i,j] = X[i,j]\n"                                                         \
	  "     ^       ^",                                                                        \
	  ricci_op(f.g, "X, Y -> Y: Y[i,j] = X[i,j]", f.x, f.x))                                   \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: v is a value of the program and can't be an operand\n"                        \
	  "  X, v -> Y: v = X[i,j]; Y[i,j] = v\n"                                                  \
	  "     ^",                                                                                \
	  ricci_op(f.g, "X, v -> Y: v = X[i,j]; Y[i,j] = v", f.x, f.v))                            \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: expected ',' or '->' after the name of an operand, found ':'\n"               \
	  "  X, W: Y[i,j] = X[i,j]\n"                                                              \
	  "      ^",                                                                               \
	  ricci_op(f.g, "X, W: Y[i,j] = X[i,j]", f.x))                                             \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: expected ',' or ':' after the name of a result, found '['\n"                  \
	  "  X -> Y[i,j] = X[i,j]\n"                                                               \
	  "        ^",                                                                             \
	  ricci_op(f.g, "X -> Y[i,j] = X[i,j]", f.x))                                              \
	R(RICCI_ESYNTAX,                                                                           \
	  "equation: expected the name of a result, but the text ends\n"                           \
	  "  X ->\n"                                                                               \
	  "      ^",                                                                               \
	  ricci_op(f.g, "X ->", f.x))                                                              \
	R(RICCI_EINVAL,                                                                            \
	  "equation: the program has more than 1 result: M is one of its signature\n"              \
	  "  X -> Y, M: M[i] += X[i,j]; Y[i,j] = X[i,j] - M[i]\n"                                  \
	  "             ^",                                                                        \
	  ricci_op(f.g, "X -> Y, M: M[i] += X[i,j]; Y[i,j] = X[i,j] - M[i]", f.x))                 \
	R(RICCI_EINVAL,                                                                            \
	  "equation: no operand is named Q: the program reads 1 (V)\n  Y[i] = V[i]\n  ^",          \
	  ricci_op_named(f.g, "Y[i] = V[i]", "V", f.v, "Q", f.v))                                  \
	R(RICCI_EINVAL, "equation: the operand V is given twice\n  Y[i] = V[i]\n         ^",       \
	  ricci_op_named(f.g, "Y[i] = V[i]", "V", f.v, "V", f.v))                                  \
	R(RICCI_EINVAL,                                                                            \
	  "equation: no tensor is given for W: the program reads 2 (V, W)\n"                       \
	  "  Y[i] = V[i]*W[0,i]\n"                                                                 \
	  "              ^",                                                                       \
	  ricci_op_named(f.g, "Y[i] = V[i]*W[0,i]", "V", f.v))                                     \
	R(RICCI_EINVAL, "equation: the name of operand 1 is NULL\n  Y[i] = V[i]\n  ^",             \
	  ricci_op_named(f.g, "Y[i] = V[i]", (const char *)NULL, f.v))                             \
	R(RICCI_EINVAL, "equation: the operand for V is NULL\n  Y[i] = V[i]\n         ^",          \
	  ricci_op_named(f.g, "Y[i] = V[i]", "V", (ricci_tensor *)NULL))                           \
	R(RICCI_EINVAL,                                                                            \
	  "ricci_op_named: behind the text stand 1 arguments; they are pairs, a name and its "     \
	  "operand",                                                                               \
	  ricci_op_named(f.g, "Y[i] = V[i]", "V"))                                                 \
	R(RICCI_EINVAL,                                                                            \
	  "equation: 1 integer is given, and 2 names could stand for it: k, G: say which by a "    \
	  "signature (X, G -> Y: ..) or by names (ricci_op_named)\n"                               \
	  "  Y[b] += X[b,k*G]\n"                                                                   \
	  "              ^",                                                                       \
	  ricci_op(f.g, "Y[b] += X[b,k*G]", f.x, ricci_integer(f.g, 2)))                           \
	R(RICCI_EINVAL,                                                                            \
	  "equation: 1 integer is given, and 0 names could stand for it: say which by a "          \
	  "signature (X, G -> Y: ..) or by names (ricci_op_named)\n"                               \
	  "  Y[b] = X[b,G]\n"                                                                      \
	  "  ^",                                                                                   \
	  ricci_op(f.g, "Y[b] = X[b,G]", f.x, ricci_integer(f.g, 2)))                              \
	R(RICCI_EINVAL,                                                                            \
	  "equation: G stands without brackets, so its operand must be a known integer "           \
	  "(ricci_integer), but it is f32 [5]\n"                                                   \
	  "  X, G -> Y: Y[b] = X[b,G]\n"                                                           \
	  "                        ^",                                                             \
	  ricci_op(f.g, "X, G -> Y: Y[b] = X[b,G]", f.x, f.v))                                     \
	R(RICCI_ESHAPE,                                                                            \
	  "equation: integers divide by positive constants only, not by -2\n"                      \
	  "  X, G -> Y: Y[b] = X[b,(b+8)/G]\n"                                                     \
	  "                              ^",                                                       \
	  ricci_op(f.g, "X, G -> Y: Y[b] = X[b,(b+8)/G]", f.x, ricci_integer(f.g, -2)))            \
	R(RICCI_ESHAPE,                                                                            \
	  "equation: G is a known integer and no index\n"                                          \
	  "  X, G -> Y: Y[b] = X[b,G] where G < 3\n"                                               \
	  "                                 ^",                                                    \
	  ricci_op(f.g, "X, G -> Y: Y[b] = X[b,G] where G < 3", f.x, ricci_integer(f.g, 2)))       \
	R(RICCI_EINVAL, "ricci_ops_named: operands, nresult and results must be given",            \
	  ricci_ops_named(f.g, "Y[i] = V[i]", 1, NULL, &f.v, &one, &r))

static void test_refusals(void)
{
	ricci_tensor *r;
	int one;
#define R(code, message, call)                                                                     \
	{                                                                                          \
		Fixture f = fixture();                                                             \
		one = 1;                                                                           \
		(void)(call);                                                                      \
		CHECK_INT(ricci_graph_error(f.g), code);                                           \
		CHECK_STR(ricci_error_message(), message);                                         \
		ricci_graph_free(f.g);                                                             \
	}
	REFUSALS
#undef R
}

static int build(void)
{
	ricci_graph *g = ricci_graph_new();
	if (!g)
		return RICCI_ENOMEM;
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 3, SHAPE(2, 4, 6));
	ricci_tensor *two = ricci_integer(g, 2);
	ricci_op(g, "X, G -> Y: Y[...,k] = training ? X[...,k*G] : 0.0", x, two);
	ricci_op_named(g, "Y[...] += X[...,k*G]", "G", two, "X", x);
	int code = ricci_graph_error(g);
	ricci_graph_free(g);
	return code;
}

int main(void)
{
	test_dots();
	test_signatures();
	test_names();
	test_integers();
	test_custom();
	test_refusals();
	check_memory(build);
	return check_done();
}
