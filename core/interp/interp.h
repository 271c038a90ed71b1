/* interp.h - the reference interpreter, the judge of every kernel. */
#ifndef CORE_INTERP_H
#define CORE_INTERP_H

#include "core/algebra/algebra.h"

/* ---- interpreter (interp.c): the judge ---- */
typedef struct Binding {
	Node *tensor;	  /* INPUT, or a COMP whose values are already known */
	const void *data; /* dense, C order, the tensor's type */
} Binding;
/* Evaluates tensor t from its definition, floats in f64, integers in int64, into out (doubles or,
 * for integer types and BOOL, int64_t; tensor_size(t) of them). Tensors that t needs are evaluated
 * on the way. magnitude (NULL or the same size) receives for floats the sum of the absolute values
 * of all terms that met in the element, the scale of its rounding error: 0 where the value is no
 * finite number, INFINITY where something on the way, or some product of factors of a `*=`, is
 * larger than the numbers of its accumulator's type, or zero is multiplied by no finite number, so
 * that other arithmetic may give anything; of integers INFINITY where rounding decides a comparison
 * that they depend on. An index that leaves its tensor (a gather on bad data) is RICCI_EVALUE. */
int interp_tensor(Node *t, int nbind, const Binding *bind, RandomState rs, void *out,
		  double *magnitude, Error *err);
/* Only the elements at flat positions at[0..count-1] of the dense COMP c, whose read tensors are
 * all bound. lost: NULL, or for each binding NULL or a mark for each of its elements: where it is
 * not 0 the element may be anything, as if its magnitude were infinite. */
int interp_elements(Node *c, int nbind, const Binding *bind, const uint8_t *const *lost,
		    RandomState rs, int count, const int64_t *at, void *out, double *magnitude,
		    Error *err);

#endif
