/* partition.c - one subgraph per equation, then greedy fusion by the reward R = dT/Pd + dC/Pc +
 * dK*L (NeoFlow, eq. 4). In: roots of a cleaned graph. Out: subgraphs in an order that can run;
 * roots updated.
 *
 * Four decisions, all properties of index functions. Forward and backward are one graph here, so
 * each sees both.
 *
 * Siblings (siblings.c, sums.c): contractions of the same form that share an operand become one equation with
 * an axis more, and what reads them with them; sums of contractions of the same form become one contraction.
 *
 * Inlining (inline.c): a dense "=" equation is substituted into all its readers and disappears.
 * Always legal; R weighs the traffic and the launch saved against what is computed again.
 *
 * Dimensions, factors and short lines (dimensions.c, factors.c, short_lines.c): what sums of products are stored like, and
 * what leaves them; what is read from copies.
 *
 * Epilogue fusion (group.c): a dense "=" equation becomes a member of an earlier kernel over the same
 * space, when it reads that kernel's members at its own element only, or shares inputs with it, and
 * no path leads from the kernel around to it.
 *
 * Outer-axis fusion (group.c): a dense equation, reductions too, also those over the rows, joins a kernel
 * that will run row by row (rows.c), so that what they share is loaded once and what only they need
 * is never stored. A loop is a subgraph of its own, of all its results that are needed; its body is
 * partitioned apart. */
#include "jit/fuse/internal.h"

#include <assert.h>

double graph_bytes(Ir *ir, int nroot, Node **roots)
{
	Node **order;
	double bytes = 0;
	int n = graph_order(ir, nroot, roots, &order);
	for (int k = 0; k < n; k++)
		bytes += (double)tensor_bytes(order[k]);
	return bytes;
}

int fuse_partition(Ir *ir, int nroot, Node **roots, const DeviceModel *dev, int *nsub,
		   Subgraph **subs)
{
	Fuse f = {.ir = ir,
		  .dev = dev,
		  .siblings = !env_unfused("sibling"),
		  .inlines = !env_unfused("register"),
		  .tiles = !env_unfused("tile"),
		  .axes = !env_unfused("axis"),
		  .dumping = env_dump("fuse")};
	/* Where all tensors together leave the cache, each is read from memory again, small ones too. */
	f.pd = graph_bytes(ir, nroot, roots) > dev->near ? dev->pd_far : dev->pd;
	assert(f.pd > 0 && dev->pd_core > 0 && dev->threads > 0); /* R is a number */
	fuse_siblings(&f, nroot, roots);
	fuse_inline(&f, nroot, roots);
	if (f.tiles) {
		fuse_dimensions(&f, nroot, roots);
		fuse_factors(&f, nroot, roots);
		fuse_short_lines(&f, nroot, roots);
	}
	fuse_group(&f, nroot, roots, nsub, subs);
	env_dump_text("fuse", "decisions", f.dump.s);
	text_free(&f.dump);
	return ir->err.code;
}
