/* ricci_nn.h - layers, losses, optimisers, data, checkpoints and the training loop of Ricci, all of
 * them made of what ricci.h offers. Errors, ownership and threads: as there. */
#ifndef RICCI_NN_H
#define RICCI_NN_H

#include <ricci.h>
#include <ricci/checkpoints.h>
#include <ricci/data.h>
#include <ricci/gradients.h>
#include <ricci/layers.h>
#include <ricci/losses.h>
#include <ricci/optimisers.h>
#include <ricci/serving.h>
#include <ricci/training.h>

#endif
