/* internal.h - what the files of nn/losses/ share. */
#ifndef LOSSES_INTERNAL_H
#define LOSSES_INTERNAL_H

#include "nn/nn.h"

/* scores [batch, ..., class] and labels [batch, ...] of one rank less; says what is wrong. */
bool loss_labelled(const char *who, ricci_tensor *scores, ricci_tensor *labels);
/* a and b have one shape of `least` dimensions or more; `names` says what they are. */
bool loss_same_shape(const char *who, ricci_tensor *a, ricci_tensor *b, int least,
		     const char *names);
/* The product of the first n extents. */
double loss_count(const ricci_tensor *t, int n);

#endif
