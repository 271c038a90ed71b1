/* test_evaluate.c - evaluating once: every backend against the interpreter, chains of equations
 * that share memory, results that are inputs, repeated runs, errors. */
#include "runtime/session.h"
#include "tests/check.h"
#include <stdlib.h>
#include <string.h>

static const char *const program[] = {
	"Y[i,j] += A[i,k] * B[k,j]",
	"Y[i] += A[i,k] * A[i,k]; Z[i,k] = A[i,k] / sqrt(Y[i] + 1.0)",
	("p[i,j] += A[i,k]*B[k,j]; q[i] max= p[i,j]; r[i,j] = exp(p[i,j]-q[i]); s[i] += r[i,j]; "
	 "t[i,j] = r[i,j]/s[i]; u[j] += t[i,j]; Y[k] += u[j]*B[k,j]"),
	"Y[i,k] = A[i,k] > 0.0 ? A[i,k] : 0.1*A[i,k]; Z[k,i] = Y[i,k] * 2.0; W[k] += Z[k,i]",
	"Y[i,j] += A[i+r,j+s] else 0.0 where i<10, j<9, r in -1..2, s in -1..2",
	"Y[2*i:23,k] += A[i,k]",
	"Y[i,k] = random(3) + A[i,k]",
	"c[i] = i32(i % 3) where i<30; Y[i,k] = A[c[i],k]; Z[i] = i32(i*2) where i<5",
	"Y[] += A[i,k]; Z[] = Y[] * 2.0",
	("c[k,j] = k < 23 ? A[0,k]*0.0 + B[k,j]*0.0 + 1.0 : 0.0; Y[i,j] += k < i ? "
	 "A[i,k]*log(c[k,j]) : 0.0; "
	 "Z[i,j] += k < i ? A[i,k]*(B[k,j]/c[k,j]) : 0.0"),
};

/* One program by one backend against the interpreter's own evaluation. */
static void test_program(const char *text, const Backend *b, int repeat)
{
	static const RandomState numbers = {4, 9};
	enum { ROOM = 8 };
	Ir ir;
	Node *in[2], *result[ROOM];
	const char **name;
	static float data[2][24 * 24];
	Binding bind[2];
	void *out[ROOM] = {0}, *want[ROOM] = {0};
	Evaluation e = {.backend = b, .threads = 2, .seed = 4, .step = 9, .repeat = repeat};
	Error err = {0};
	int n, nresult = ROOM;

	ir_init(&ir);
	{
		IR_ENTER(&ir, );
		in[0] = node_input(&ir, "A", RICCI_F32, 2, (int64_t[]){12, 24});
		in[1] = node_input(&ir, "B", RICCI_F32, 2, (int64_t[]){24, 7});
		IR_LEAVE(&ir);
	}
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 24 * 24; k++)
			data[i][k] = (float)((k * 37 + i * 11) % 101) / 50 - 1;
		bind[i] = (Binding){in[i], data[i]};
	}
	n = notation_operands(&ir, text, &name);
	CHECK_INT(notation_elaborate(&ir, text, n, in, &nresult, result, ROOM), 0);
	CHECK_STR(ir.err.text, "");
	if (ir.err.code)
		nresult = 0;
	for (int i = 0; i < nresult; i++) {
		out[i] = mem_zalloc(tensor_bytes(result[i]));
		want[i] = mem_zalloc((size_t)tensor_size(result[i]) * 8);
		CHECK_INT(interp_tensor(result[i], 2, bind, numbers, want[i], NULL, &err), 0);
	}
	CHECK_INT(evaluate(&ir, nresult, result, 2, bind, out, &e, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(e.median_seconds > 0);
	for (int i = 0; i < nresult && !err.code; i++) {
		int wrong = 0;

		for (int64_t k = 0; k < tensor_size(result[i]); k++)
			if (type_is_float((Type)result[i]->type)) {
				double w = ((double *)want[i])[k];

				wrong += !(fabs(type_load(RICCI_F32, out[i], (size_t)k) - w) <=
					   1e-5 * (1 + fabs(w)));
			} else {
				wrong += type_load_int((Type)result[i]->type, out[i], (size_t)k) !=
					 ((int64_t *)want[i])[k];
			}
		CHECK_INT(wrong, 0);
		if (wrong)
			fprintf(stderr, "result %d of %s\n", i, text);
	}
	for (int i = 0; i < nresult; i++) {
		mem_free(out[i]);
		mem_free(want[i]);
	}
	ir_free(&ir);
}

/* An equation may read as many tensors as it can be written with. */
static void test_many_operands(const Backend *b)
{
	enum { MANY = 300 };
	Ir ir;
	Node *in[MANY], *y;
	float data[MANY][4], out[4];
	Binding bind[MANY];
	Evaluation e = {.backend = b, .threads = 1, .repeat = 1};
	Error err = {0};
	Text text = {0};
	int n = 1;

	ir_init(&ir);
	{
		IR_ENTER(&ir, );
		for (int k = 0; k < MANY; k++) {
			in[k] = node_input(&ir, arena_printf(&ir.arena, "A%d", k), RICCI_F32, 1,
					   (int64_t[]){4});
			bind[k] = (Binding){in[k], data[k]};
			for (int i = 0; i < 4; i++)
				data[k][i] = (float)(k * i);
			text_add(&text, "%sA%d[i]", k ? " + " : "Y[i] = ", k);
		}
		IR_LEAVE(&ir);
	}
	CHECK_INT(notation_elaborate(&ir, text.s, MANY, in, &n, &y, 1), 0);
	CHECK_INT(evaluate(&ir, 1, &y, MANY, bind, (void *[]){out}, &e, &err), 0);
	CHECK_STR(err.text, "");
	for (int i = 0; i < 4; i++)
		CHECK(out[i] == (float)(i * (MANY * (MANY - 1) / 2)));
	text_free(&text);
	ir_free(&ir);
}

/* Right kernels that another order of operations leads to other results of than the interpreter's: a
 * product that underflows step by step, a sum that is divided once.
 */
static void test_orders(const Backend *b)
{
	static const struct {
		const char *text;
		float from;
	} order[] = {{"Y[i] = A[i]*1.5*0.2627", 0x1p-149f},
		     {"Y[i] += j < i ? A[j]/(A[i]*0.0) : 0.0", 1},
		     {"Y[i] += j < i ? (A[j] - 1.0)/(A[i] - A[0]) : 0.0", 1}};

	for (int k = 0; k < COUNT(order); k++) {
		enum { N = 64 };
		Ir ir;
		Node *a, *y;
		float data[N], out[N];
		int n = 1;
		Evaluation e = {.backend = b, .threads = 1, .repeat = 1};
		Error err = {0};

		ir_init(&ir);
		{
			IR_ENTER(&ir, );
			a = node_input(&ir, "A", RICCI_F32, 1, (int64_t[]){N});
			IR_LEAVE(&ir);
		}
		for (int i = 0; i < N; i++)
			data[i] = order[k].from * (float)(1 + i % 3);
		CHECK_INT(notation_elaborate(&ir, order[k].text, 1, &a, &n, &y, 1), 0);
		CHECK_INT(evaluate(&ir, 1, &y, 1, &(Binding){a, data}, (void *[]){out}, &e, &err),
			  0);
		CHECK_STR(err.text, "");
		error_clear(&err);
		ir_free(&ir);
	}
}

static void test_errors(void)
{
	Ir ir;
	Node *a, *y;
	float data[4] = {1, 2, 3, 4}, out[4];
	int n = 1;
	Evaluation e = {.backend = backend_find("tcc")};
	Error err = {0};

	ir_init(&ir);
	{
		IR_ENTER(&ir, );
		a = node_input(&ir, "A", RICCI_F32, 1, (int64_t[]){4});
		IR_LEAVE(&ir);
	}
	CHECK_INT(notation_elaborate(&ir, "Y[i] = A[i]*2.0", 1, &a, &n, &y, 1), 0);
	CHECK_INT(evaluate(&ir, 1, &y, 0, NULL, (void *[]){out}, &e, &err), RICCI_EINVAL);
	CHECK_STR(err.text, "the graph reads 'A', which has no data (a loop's variable has none "
			    "outside of its loop)");
	error_clear(&err);
	CHECK_INT(evaluate(&ir, 1, &y, 1, &(Binding){y, data}, (void *[]){out}, &e, &err),
		  RICCI_EUNSUPPORTED);
	error_clear(&err);
	/* A result that is an input is copied. */
	CHECK_INT(evaluate(&ir, 1, &a, 1, &(Binding){a, data}, (void *[]){out}, &e, &err), 0);
	CHECK(!memcmp(out, data, sizeof out));
	ir_free(&ir);
}

int main(void)
{
	static const char *const names[] = {"interp", "tcc", "cc"};
	char why[256];

	setenv("RICCI_CACHE", "off", 1);
	setenv("RICCI_DEVICE", "2e10,5e10,3e-6", 1);
	for (int b = 0; b < COUNT(names); b++) {
		if (!backend_find(names[b])->available(why, sizeof why)) {
			CHECK_SKIP(why);
			continue;
		}
		for (int i = 0; i < COUNT(program); i++)
			test_program(program[i], backend_find(names[b]), 1 + b);
		test_many_operands(backend_find(names[b]));
		test_orders(backend_find(names[b]));
	}
	test_program(program[2], NULL, 5);
	test_errors();
	CHECK_INT(mem_live(), 0);
	return check_done();
}
