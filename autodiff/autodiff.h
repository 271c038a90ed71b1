/* autodiff.h - gradients of equations and graphs. Gradients are equations too, so they
 * differentiate again. */
#ifndef AUTODIFF_H
#define AUTODIFF_H

#include "core/core.h"

/* Reverse mode (docs/design.md section 3): grads[i] = d(sum seed*y)/d wrt[i], as tensors in ir;
 * seed NULL stands for ones. Tensors that y does not depend on get zeros. Runs under the caller's
 * IR_ENTER. 0 or an error in ir->err. */
int autodiff_reverse(Ir *ir, Node *y, Node *seed, int n, Node *const *wrt, Node **grads);

/* Forward mode: the tangent of y where those of x[0..n-1] are tangent[]; an x keeps what flows into
 * it from the others. As above. */
int autodiff_forward(Ir *ir, Node *y, int n, Node *const *x, Node *const *tangent, Node **out);

#endif
