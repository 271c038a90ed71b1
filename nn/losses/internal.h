/* internal.h - what the files of nn/losses/ share. */
#ifndef LOSSES_INTERNAL_H
#define LOSSES_INTERNAL_H

#include "nn/nn.h"

/* Appends fmt with '@' as the indices 0..rank-1: of labels, or of both operands. '@,' is left out
 * with its comma when rank is 0. */
void loss_text(Text *t, int rank, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* scores [batch, ..., class] and labels [batch, ...] of one rank less; says what is wrong. */
bool loss_labelled(const char *who, ricci_tensor *scores, ricci_tensor *labels);
/* The product of the first n extents. */
double loss_count(const ricci_tensor *t, int n);

#endif
