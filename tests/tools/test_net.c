/* test_net.c - nets as text: random programs with their gradients, and loops, keep their values to the
 * bit through text and back, and the text is the same again; declarations; `training` is 0; every line
 * that is wrong is named. */
#include "tests/tools/program_case.h"
#include "tests/check.h"

static const Binding *bind_named(const Case *c, const char *name)
{
	for (int k = 0; k < c->nbind; k++)
		if (!strcmp(c->bind[k].tensor->u.s, name))
			return &c->bind[k];
	return NULL;
}

/* Both graphs' values of the k-th root. */
static void root_compare(const Case *c, const ReadNet *m, int k)
{
	Binding bind[BINDS];
	int n = 0;
	Node *a = c->root[k]->node, *b = m->output[k]->node;
	for (const ricci_tensor *t = m->g->first; t; t = t->next) {
		const Binding *from = t->role == ROLE_INPUT ? bind_named(c, t->name) : NULL;
		if (from)
			bind[n++] = (Binding){t->node, from->data};
	}
	size_t bytes = (size_t)tensor_size(a) * sizeof(double);
	double *x = calloc(1, bytes), *y = calloc(1, bytes);
	Error err = {0};
	CHECK_INT(tensor_bytes(b), tensor_bytes(a));
	int code = interp_tensor(a, c->nbind, c->bind, (RandomState){1, 2}, x, NULL, &err);
	int again = interp_tensor(b, n, bind, (RandomState){1, 2}, y, NULL, &err);
	CHECK_REPORT(code == again, "program %llu: %s", (unsigned long long)c->p->number, err.text);
	CHECK_REPORT(code || again || !memcmp(x, y, bytes), "program %llu, root %d",
		     (unsigned long long)c->p->number, k);
	free(x);
	free(y);
}

static void program_round(uint64_t number)
{
	RandomProgram p;
	Case c;
	ReadNet m;
	Text text = {0}, again = {0};
	Error err = {0};
	ricci_graph *g = ricci_graph_new();
	random_program(&p, number);
	CHECK_INT(case_open(&c, g, &p), 0);
	CHECK_REPORT(!net_print(&text, c.nroot, c.root, NULL, &err), "%s", err.text);
	int code = net_read(&m, text.s, &err);
	CHECK_REPORT(!code, "program %llu: %s\n%s", (unsigned long long)number, err.text, text.s);
	if (!code) {
		CHECK_INT(m.noutput, c.nroot);
		for (int k = 0; k < c.nroot && m.noutput == c.nroot; k++)
			root_compare(&c, &m, k);
		CHECK_INT(net_print(&again, m.noutput, m.output, m.name, &err), 0);
		ricci_graph_free(m.g);
	}
	text_free(&text);
	text_free(&again);
	case_close(&c);
	ricci_graph_free(g);
	program_free(&p);
}

static void declarations(void)
{
	ricci_graph *g = ricci_graph_new();
	Text text = {0}, again = {0};
	Error err = {0};
	ReadNet m;
	ricci_scope_begin(g, "a\"\\b");
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){5, 3}, ricci_constant(1));
	ricci_tensor *s = ricci_state(g, "s", RICCI_F64, 0, NULL, ricci_constant(2));
	ricci_scope_end(g);
	ricci_tensor *x = ricci_input(g, "in", RICCI_I32, 1, (int64_t[]){4});
	ricci_tensor *y = ricci_op(g,
				   "Y[i,j] = W[X[i],j] + f32(S[])"
				   " + (training ? random(i) : 0)",
				   w, x, s);
	ricci_tensor *outs[] = {y, w};
	CHECK_GRAPH(g);
	CHECK_INT(net_print(&text, 2, outs, (const char *[]){"y", "the weights"}, &err), 0);
	CHECK_STR(text.s, "ricci net 1\n"
			  "param a__b_w f32 5x3 \"a\\042\\134b.w\"\n"
			  "state a__b_s f64 scalar \"a\\042\\134b.s\"\n"
			  "input in_ i32 4 0..4 \"in\"\n"
			  "y[i,j] = a__b_w[in_[i],j] + f32(a__b_s[]) where i<4, j<3;\n"
			  "output y \"y\"\n"
			  "output a__b_w \"the weights\"\n");
	CHECK_REPORT(!net_read(&m, text.s, &err), "%s", err.text);
	ricci_tensor *v = ricci_param_find(m.g, "a\"\\b.w");
	CHECK(v && v == m.output[1] && v->role == ROLE_PARAM);
	CHECK_STR(m.name[1], "the weights");
	CHECK_INT(graph_find(m.g, "in")->need_hi, 4);
	CHECK_INT(net_print(&again, 2, m.output, m.name, &err), 0);
	CHECK_STR(again.s, text.s);
	ricci_graph_free(m.g);
	text_free(&text);
	text_free(&again);
	ricci_graph_free(g);
}

/* What factors are rounded to, and how, stays with the net. */
static void precisions(void)
{
	static const ricci_type type[] = {RICCI_F32, RICCI_BF16, RICCI_F16, RICCI_TF32};
	for (int k = 0; k < 2 * COUNT(type); k++) {
		ricci_graph *g = ricci_graph_new();
		Text text = {0};
		Error err = {0};
		ReadNet m;
		ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 1, (int64_t[]){4});
		ricci_tensor *y = ricci_op(g, "Y[] += X[i]", x);
		CHECK_INT(ricci_precision(g, type[k / 2]), 0);
		CHECK_INT(ricci_rounding(g, k % 2 ? RICCI_STOCHASTIC : RICCI_NEAREST), 0);
		CHECK_INT(net_print(&text, 1, &y, NULL, &err), 0);
		CHECK_REPORT(!net_read(&m, text.s, &err), "%s", err.text);
		CHECK_INT(m.g->precision, type[k / 2]);
		CHECK_INT(m.g->rounding, k % 2 ? RICCI_STOCHASTIC : RICCI_NEAREST);
		ricci_graph_free(m.g);
		text_free(&text);
		ricci_graph_free(g);
	}
}

/* Lines that are wrong. */
static void refusals(void)
{
	static const struct {
		const char *text, *message;
	} row[] = {
		{"", "line 0 of the net: it is not the text of a net of this version"},
		{"ricci net 2\n", "line 1 of the net: it is not the text of a net of this version"},
		{"ricci net 1\n", "line 1 of the net: the net has no output"},
		{"ricci net 1\ninput x f31 2 \"x\"\n",
		 "line 2 of the net: an unknown data type: f31"},
		{"ricci net 1\ninput x f32 2y \"x\"\n", "line 2 of the net: a wrong shape: 2y"},
		{"ricci net 1\ninput x f32 0 \"x\"\n", "line 2 of the net: a number is wrong: 0"},
		{"ricci net 1\ninput x f32 2 \"x\n",
		 "line 2 of the net: a name's quotes are not closed"},
		{"ricci net 1\ninput x i32 2 3 \"x\"\n", "line 2 of the net: a wrong range: 3"},
		{"ricci net 1\nY[i] = X[i] where i<2;\n",
		 "line 2 of the net: there is no tensor X"},
		{"ricci net 1\noutput y \"y\"\n", "line 2 of the net: there is no tensor y"},
		{"ricci net 1\nloop 3 {\n", "line 2 of the net: a loop is not closed"},
		{"ricci net 1\nloop 3, fast {\n",
		 "line 2 of the net: a loop's head is wrong: fast {"},
		{"ricci net 1\ninput x f32 2 \"x\"\nloop 3 {\n\tslice V1 = x;\n}\n",
		 "line 4 of the net: a slice has not as many rows as the loop has steps: V1"},
	};
	for (int k = 0; k < COUNT(row); k++) {
		Error err = {0};
		ReadNet m;
		CHECK_INT(net_read(&m, row[k].text, &err), RICCI_EFORMAT);
		CHECK_STR(err.text, row[k].message);
		CHECK(!m.g);
	}
}

int main(void)
{
	for (uint64_t k = 0; k < 60; k++) {
		program_round(100 + k);
		program_round(KIND + 100 + k);
	}
	declarations();
	precisions();
	refusals();
	return check_done();
}
