/* core.h - all of core for the layers above. Its rooms include each other one way: base <- node <-
 * algebra <- notation <- graph, and algebra <- interp. A room has one header, and internal.h for
 * itself. */
#ifndef CORE_H
#define CORE_H

#include "core/graph/graph.h"
#include "core/interp/interp.h"

#endif
