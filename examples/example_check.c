/* example_check.c - are the gradients right?
 * Input: an example's graph in f64, fed with random data. Output: a line for each parameter w: the
 * derivative of the loss along a random direction d, by the gradient and by the difference
 * (loss(w + h d) - loss(w - h d)) / 2h. Invariant: status 1 when they differ by more than TOLERANCE
 * of the greater one and by more than rounding of the loss explains. A relu or a maximum that h
 * moves over its corner makes the difference wrong, not the gradient; h is so small that few do. */
#include "examples/example.h"

#include <math.h>
#include <stdlib.h>

static const double STEP = 1e-8, TOLERANCE = 1e-4, ROUNDING = 1e-14;

/* The session of the gradients made one step; that of the loss, which shares the parameters, makes
 * the steps with moved ones. */
typedef struct {
	ricci_session *gradients, *s;
	const ricci_tensor *loss;
	double *value, *moved, *direction; /* room for the largest parameter each */
	uint32_t seed;
	double worst;
} Check;

/* The direction: +h or -h for each element, h in proportion to the parameter's size. */
static double direction_draw(Check *c, size_t n)
{
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += c->value[i] * c->value[i];
	double h = STEP * (squares > 0 ? sqrt(squares / (double)n) : 1);
	for (size_t i = 0; i < n; i++) {
		c->seed = c->seed * 1664525u + 1013904223u;
		c->direction[i] = c->seed >> 31 ? h : -h;
	}
	return h;
}

/* The loss with the parameter moved along the direction, forwards or backwards. */
static int loss_moved(Check *c, const ricci_tensor *w, size_t n, double way, double *loss)
{
	for (size_t i = 0; i < n; i++)
		c->moved[i] = c->value[i] + way * c->direction[i];
	ricci_set_step(c->s, 0); /* the same random numbers in every step */
	int status = ricci_feed(c->s, w, c->moved, n * sizeof *c->moved);
	if (!status)
		status = ricci_step(c->s);
	return status ? status : ricci_fetch(c->s, c->loss, loss, sizeof *loss);
}

static int parameter_check(Check *c, const ricci_tensor *w, const ricci_tensor *gradient)
{
	size_t bytes = ricci_bytes(w), n = bytes / sizeof(double);
	double slope = 0, up = 0, down = 0;
	int status = ricci_fetch(c->s, w, c->value, bytes);
	double h = direction_draw(c, n);
	if (!status)
		status = loss_moved(c, w, n, 1, &up);
	if (!status)
		status = loss_moved(c, w, n, -1, &down);
	if (!status)
		status = ricci_feed(c->s, w, c->value, bytes);
	if (!status)
		status = ricci_fetch(c->gradients, gradient, c->moved, bytes);
	for (size_t i = 0; i < n && !status; i++)
		slope += c->moved[i] * c->direction[i] / h;
	double difference = (up - down) / (2 * h), error = fabs(difference - slope);
	double rounding = ROUNDING * fabs(up) / h;
	double part = error <= rounding ? 0 : error / fmax(fabs(difference), fabs(slope));
	if (!status)
		printf("%-40s gradient %12.6g difference %12.6g%s\n", ricci_name(w), slope,
		       difference, part <= TOLERANCE ? "" : " DIFFERENT");
	c->worst = part <= c->worst ? c->worst : part; /* also when it is NaN */
	return status;
}

/* Training sessions have an assignment at least, in nets without running statistics this one. */
static int check_assign(example *e)
{
	ricci_tensor *none = ricci_state(e->graph, "none", RICCI_F64, 0, NULL, ricci_constant(0));
	return ricci_assign(e->graph, none, none);
}

/* Sessions and room. */
static int check_open(Check *c, example *e, int n, ricci_tensor **outputs)
{
	size_t most = 0;
	for (int k = 1; k <= n; k++)
		most = ricci_bytes(outputs[k]) > most ? ricci_bytes(outputs[k]) : most;
	c->value = example_own(e, most);
	c->moved = example_own(e, most);
	c->direction = example_own(e, most);
	c->gradients = ricci_session_new(e->graph, &e->options, 1, n + 1, outputs);
	c->s = c->gradients ? ricci_session_share(c->gradients, 1, 1, outputs) : NULL;
	if (!c->s || !c->value || !c->moved || !c->direction)
		return RICCI_ENOMEM;
	int status = example_fill(e, c->gradients);
	if (!status)
		status = ricci_step(c->gradients);
	return status ? status : example_fill(e, c->s);
}

int example_check(example *e)
{
	int count = ricci_param_count(e->graph), n = 0, trained = 0;
	ricci_tensor **w = example_own(e, (size_t)(2 * count + 1) * sizeof *w);
	ricci_tensor **outputs = w ? w + count : NULL;
	Check c = {.loss = e->training.loss, .seed = 1};
	for (int i = 0; i < count && w; i++) {
		w[n] = ricci_param_at(e->graph, i, &trained);
		n += trained;
	}
	int status = w ? 0 : RICCI_ENOMEM;
	if (!status) {
		outputs[0] = e->training.loss;
		status = ricci_grad(e->graph, outputs[0], NULL, n, w, outputs + 1);
	}
	if (!status)
		status = check_assign(e);
	if (!status)
		status = check_open(&c, e, n, outputs);
	for (int k = 0; k < n && !status; k++)
		status = parameter_check(&c, w[k], outputs[k + 1]);
	ricci_session_free(c.s);
	ricci_session_free(c.gradients);
	if (status)
		return fprintf(stderr, "%s: %s\n", e->name, ricci_error_message()), 1;
	printf("%d parameters, greatest difference %.2g\n", n, c.worst);
	return !(c.worst <= TOLERANCE);
}
