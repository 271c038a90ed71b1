/* trained_net.h - a small net that was trained, for the tests of serving: gathers, a loop, dropout. */
#ifndef TRAINED_NET_H
#define TRAINED_NET_H

#include "tests/check.h"
#include <math.h>
#include <ricci_nn.h>

enum { BATCH = 4, STEPS = 5, WIDTH = 6, HIDDEN = 9, CLASSES = 3 };
typedef struct Trained {
	ricci_graph *g;
	ricci_tensor *x, *ids, *y;
	ricci_session *train, *infer;
	float in[BATCH * STEPS * WIDTH], want[BATCH * CLASSES];
	int32_t id[BATCH];
} Trained;

/* An embedding that starts a recurrent loop, dropout, and a linear layer of its last state. */
static void trained_net(Trained *n)
{
	ricci_graph *g = n->g = ricci_graph_new();
	n->x = ricci_input(g, "x", RICCI_F32, 3, (int64_t[]){STEPS, BATCH, WIDTH});
	n->ids = ricci_input(g, "int", RICCI_I32, 1, (int64_t[]){BATCH});
	ricci_scope_begin(g, "cell");
	ricci_tensor *w =
		ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){HIDDEN, WIDTH}, ricci_normal(.4));
	ricci_tensor *u =
		ricci_param(g, "u", RICCI_F32, 2, (int64_t[]){HIDDEN, HIDDEN}, ricci_normal(.3));
	ricci_scope_end(g);
	ricci_tensor *e =
		ricci_param(g, "e", RICCI_F32, 2, (int64_t[]){7, HIDDEN}, ricci_normal(1));
	ricci_tensor *out =
		ricci_param(g, "out", RICCI_F32, 2, (int64_t[]){CLASSES, HIDDEN}, ricci_normal(.5));
	ricci_tensor *h0 = ricci_op(g, "Y[b,j] = E[I[b],j]", e, n->ids);
	ricci_tensor *row = ricci_input(g, "row", RICCI_F32, 2, (int64_t[]){BATCH, WIDTH});
	ricci_tensor *h = ricci_input(g, "h", RICCI_F32, 2, (int64_t[]){BATCH, HIDDEN});
	ricci_tensor *next = ricci_op(g,
				      "A[b,j] += X[b,i]*W[j,i]; R[b,j] += H[b,k]*U[j,k];"
				      "Y[b,j] = tanh(A[b,j] + R[b,j])",
				      row, w, h, u);
	ricci_tensor *last;
	ricci_loop loop =
		RICCI_LOOP(.steps = STEPS, .nslice = 1, .slice = (ricci_slice[]){{row, n->x}},
			   .ncarry = 1, .carry = (ricci_carry[]){{h, h0, next}});
	ricci_scan(g, &loop, &last, NULL);
	last = ricci_op(g, "Y[b,j] = training && random(j) < .5 ? 0 : H[b,j]", last);
	n->y = ricci_linear(last, out, NULL);
	ricci_tensor *loss = ricci_op(g, "L[] += Y[b,k] * Y[b,k]", n->y);
	ricci_sgd(loss, ricci_learning_rate(g, .01));
	CHECK_GRAPH(g);
	n->train = ricci_session_new(g, &RICCI_OPTIONS(.threads = 1, .seed = 3), 1, 1, &loss);
	n->infer = ricci_session_share(n->train, 0, 1, &n->y);
	CHECK_REPORT(n->train && n->infer, "%s", ricci_error_message());
	for (int k = 0; k < COUNT(n->in); k++)
		n->in[k] = (float)sin(1.3 * k);
	for (int k = 0; k < BATCH; k++)
		n->id[k] = k * 2;
	for (int k = 0; k < 3; k++) {
		ricci_session *s = k < 2 ? n->train : n->infer;
		CHECK_INT(ricci_feed(s, n->x, n->in, sizeof n->in), 0);
		CHECK_INT(ricci_feed(s, n->ids, n->id, sizeof n->id), 0);
		CHECK_INT(ricci_step(s), 0);
	}
	CHECK_INT(ricci_fetch(n->infer, n->y, n->want, sizeof n->want), 0);
}

static void trained_free(Trained *n)
{
	ricci_session_free(n->infer);
	ricci_session_free(n->train);
	ricci_graph_free(n->g);
}

#endif
