/* hessian.c - second order through the public interface: the curvature of a small network's loss
 * along a direction, and the direction of greatest curvature.
 *
 * h(v) = H v is the tangent of the gradient along v, so no Hessian is ever stored. Power iteration
 * v = h / |h| brings v to the eigenvector of the eigenvalue of largest magnitude. */
#include "examples/example.h"

#include <math.h>

enum { BATCH = 32, IN = 8, HIDDEN = 16, SIZE = HIDDEN * IN };

static double norm(const float *a)
{
	double sum = 0;
	for (int k = 0; k < SIZE; k++)
		sum += (double)a[k] * a[k];
	return sqrt(sum);
}

static int program(example *e)
{
	static float x[BATCH * IN], v[SIZE], h[SIZE];
	static const int64_t shape_x[] = {BATCH, IN}, shape_w[] = {HIDDEN, IN};

	ricci_graph *g = ricci_graph_new();
	ricci_tensor *in = ricci_input(g, "x", RICCI_F32, 2, shape_x);
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, shape_w, ricci_normal(0.4));
	ricci_tensor *along = ricci_input(g, "v", RICCI_F32, 2, shape_w), *gradient, *product;
	ricci_tensor *loss = ricci_op(g,
				      "a[b,h] += X[b,k] * W[h,k]; y[b] += tanh(a[b,h]);"
				      "L[] += (y[b] - sin(X[b,0])) * (y[b] - sin(X[b,0])) / 32.0",
				      in, w);
	ricci_grad(g, loss, NULL, 1, &w, &gradient);
	ricci_jvp(g, gradient, 1, &w, &along, &product);
	if (ricci_graph_error(g)) {
		fprintf(stderr, "hessian: %s\n", ricci_error_message());
		return 1;
	}

	ricci_session *s = ricci_session_new(g, &e->options, 0, 1, &product);
	for (int k = 0; k < BATCH * IN; k++)
		x[k] = (float)sin(0.7 * k * k);
	for (int k = 0; k < SIZE; k++)
		v[k] = (float)cos(k);
	int code = s ? ricci_feed(s, in, x, ricci_bytes(in)) : RICCI_EINVAL;
	for (int round = 0; round < 100 && !code; round++) {
		double length = norm(v), curvature = 0;
		for (int k = 0; k < SIZE; k++)
			v[k] = (float)(v[k] / length);
		code = ricci_feed(s, along, v, ricci_bytes(along));
		code = code ? code : ricci_step(s);
		code = code ? code : ricci_fetch(s, product, h, ricci_bytes(product));
		for (int k = 0; k < SIZE; k++) {
			curvature += (double)v[k] * h[k];
			v[k] = h[k];
		}
		if (round % 20 == 19)
			printf("round %d: curvature %.4f, |Hv - cv| %.4f\n", round + 1, curvature,
			       sqrt(fabs(norm(h) * norm(h) - curvature * curvature)));
	}
	if (code)
		fprintf(stderr, "hessian: %s\n", ricci_error_message());
	ricci_session_free(s);
	ricci_graph_free(g);
	return code != 0;
}

int main(int argc, char **argv)
{
	return example_main(
		argc, argv,
		&(example){.name = "hessian",
			   .about = "Finds the direction of a loss's greatest curvature.",
			   .common = " seed threads backend device static help ",
			   .program = program});
}
