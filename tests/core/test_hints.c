/* test_hints.c - names and signs of other notations: what to write instead stands behind the error,
 * and is accepted. */
#include "core/graph/graph.h"
#include "core/notation/internal.h"
#include "tests/check.h"

static const char *error_of(const char *text, char *out, size_t n)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *a = ricci_input(g, "a", RICCI_F32, 1, (int64_t[]){4});

	ricci_op(g, text, a);
	snprintf(out, n, "%s", ricci_error_message());
	out[strcspn(out, "\n")] = 0;
	ricci_graph_free(g);
	return out;
}

static void test_messages(void)
{
	static const char *const cases[][2] = {
		{"Y[i] = relu(A[i])", "equation: unknown function relu; write max(x, 0)"},
		{"Y[i] = argmax(A[i])",
		 "equation: unknown function argmax; write M[i] max= X[i,j]; Y[i] min= X[i,j] == "
		 "M[i] ? j : X.size(1)"},
		{"Y[i] = A[i]^2", "equation: unknown character '^'; write pow(x, y), or x * x"},
		{"Y[i] = A[i] ** 2",
		 "equation: expected a value, found '*'; write pow(x, y), or x * x"},
		{"Y[i] = A[i] & 1", "equation: unknown character '&'; write a && b"},
		{"Y[i] = sinh(A[i])", "equation: unknown function sinh"},
	};
	char is[300];

	for (int i = 0; i < COUNT(cases); i++)
		CHECK_STR(error_of(cases[i][0], is, sizeof is), cases[i][1]);
}

/* The text over as many of both as it reads. */
static void add(ricci_graph *g, const char *text, ricci_tensor *x, ricci_tensor *y)
{
	ricci_tensor *operands[] = {x, y}, *results[4];
	const char **names;
	int n = notation_operands(&g->ir, text, &names), room = COUNT(results);

	CHECK(n >= 0 && n <= 2 && !ricci_ops(g, text, n, operands, &room, results));
}

/* Those that are an expression of x and y, and those that are equations. */
static void test_accepted(void)
{
	for (int i = 0; hint_row(i); i++) {
		const char *h = hint_row(i)->text;
		bool program = strstr(h, "= ") != NULL && strchr(h, '[') != NULL;
		ricci_graph *g = ricci_graph_new();
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){4, 5});
		ricci_tensor *y = ricci_input(g, "y", RICCI_F32, 2, (int64_t[]){5, 4});
		char text[400];

		CHECK(!call_find(hint_row(i)->name));
		snprintf(text, sizeof text,
			 "x = A[i,j]; y = A[i,j] + 1.0; Y[i,j] = f32(%s) * y + x", h);
		if (program)
			snprintf(text, sizeof text, "%.*s", (int)strcspn(h, ":"), h);
		if (strstr(h, "key") || strstr(h, "condition") || strstr(h, "low") ||
		    strstr(h, ", or") || strchr("!a", *h) || strstr(h, "T[") || strchr(h, ':'))
			CHECK(*h != 0);
		else if (!strstr(h, "[k]") && !strstr(h, "X[j]"))
			add(g, text, x, y);
		CHECK_REPORT(!ricci_graph_error(g), "%s: %s", text, ricci_error_message());
		ricci_graph_free(g);
	}
}

int main(void)
{
	test_messages();
	test_accepted();
	return check_done();
}
