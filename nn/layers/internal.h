/* internal.h - what the files of nn/layers/ share: texts of equations made from templates, and
 * windows that slide over images. */
#ifndef LAYERS_INTERNAL_H
#define LAYERS_INTERNAL_H

#include "nn/nn.h"

/* ---- texts (build.c)
 * Appends a template: {..} stands for its content once for each of `dims` dimensions, with # as its
 * number. A comma behind "[" is left out. E.g. of two dimensions:
 *	"Y[{p#,}...] += X[...{,2*p#+r#}]"  ->  "Y[p0,p1,...] += X[...,2*p0+r0,2*p1+r1]" */
void layer_text(Text *t, int dims, const char *template);
/* Appends the value "name = v; ", which is left out again where no equation reads it; one for each dimension: "name0 = v[0]; name1 = v[1]; ". */
void layer_integer(Text *t, const char *name, int64_t v);
void layer_integers(Text *t, const char *name, int dims, const int64_t *v);
void layer_real(Text *t, const char *name, double v);
/* One template, without numbers of its own, as a layer. */
ricci_tensor *layer_of(int dims, const char *template, int n, ricci_tensor *const *operands);
/* Adds the text's equations, which have so many results; frees the text. */
void layer_results(Text *text, int n, ricci_tensor *const *operands, int nresult,
		   ricci_tensor **results);
/* Has t this shape? Otherwise the graph of x gets an error that names `who` and `what`. */
bool layer_shape(ricci_tensor *x, const char *who, const char *what, const ricci_tensor *t,
		 int rank, const int64_t *shape);

/* ---- layers that make their parameters (parameter.c) */
/* A layer that makes its parameters: "<name>.<part>", or "<part>" where name is "". */
typedef struct Layer {
	const char *call, *name; /* call: the function, for errors */
	ricci_tensor *x;
	ricci_type type; /* of the parameters: x's */
	bool share;	 /* they are there, by an earlier layer */
} Layer;
/* Sets x and type, after l->call and l->name. Are x, a name and options given? */
bool layer_begin(Layer *l, const Operand *x, void *to, size_t size, const void *options,
		 const char *type);
/* Is the number 1 or more? */
bool layer_positive(const Layer *l, const char *what, int64_t n);
ricci_tensor *layer_parameter(const Layer *l, const char *part, int rank, const int64_t *shape,
			      ricci_init init);
ricci_tensor *layer_state(const Layer *l, const char *part, int rank, const int64_t *shape,
			  ricci_init init);

/* ---- positions (positions.c) of the first rows of sequences: i32 [], or [batch], one a sample */
/* Is it one of these, or NULL? Otherwise the graph of x gets an error. */
bool layer_position(const char *who, ricci_tensor *x, const ricci_tensor *position);
/* What is added to the row i of sample b, " + P[b]" say. */
const char *layer_position_of(const ricci_tensor *position);

/* ---- windows (window.c) over the dimensions of x from the third on */
typedef struct Window {
	int dims;
	int64_t extent[RICCI_MAX_RANK], size[RICCI_MAX_RANK], stride[RICCI_MAX_RANK];
	int64_t pad[RICCI_MAX_RANK], dilation[RICCI_MAX_RANK], outputs[RICCI_MAX_RANK];
	bool partial; /* the last window may reach beyond the padding: outputs are rounded up */
} Window;
/* Numbers as a user gives them: one for all dimensions, or an array of them. */
typedef struct Given {
	int all;
	const int *each;
} Given;
/* Fills w for x; false with an error. The usual stride and dilation are 1. */
bool window_make(Window *w, const char *who, ricci_tensor *x, Given size, Given stride, Given pad,
		 Given dilation);
/* The same for an image of such extents; x: the tensor whose graph gets the error. */
bool window_over(Window *w, const char *who, ricci_tensor *x, int dims, const int64_t *extent,
		 Given size, Given stride, Given pad, Given dilation);
/* Are its numbers in their ranges? Otherwise the graph of x gets an error. */
bool window_check(const Window *w, const char *who, ricci_tensor *x);
/* Checks sizes, finds the number of outputs along each dimension; false with an error. */
bool window_outputs(Window *w, const char *who, ricci_tensor *x);
/* Appends the values s# stride, d# dilation, a# padding, z# size, P# outputs, N# extent. */
void window_numbers(Text *t, const Window *w);
/* The element of x that a window reads, after `lead`, "X[b,c" say; zero outside the image or, for max
 * pooling, -inf. */
void window_read(Text *t, const Window *w, const char *lead, const char *outside);

#endif
