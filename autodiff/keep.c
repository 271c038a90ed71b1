/* keep.c - which tensors of a step the gradient of a loop finds in stacks, and which it computes
 * again.
 *
 * Input: the tensors of a step, and the roots of a graph that reads some of them. Sums and inner
 * loops are not computed again; elementwise equations are, since they cost little beside the
 * reading of what they are made of. So whatever leads from a sum to a reader must be kept somewhere
 * on its way, in as few bytes as possible: a minimum cut between the sums and the readers, each
 * tensor weighing its bytes, found by augmenting paths (Ford and Fulkerson 1956). Output: its
 * tensors; of several cuts the one next to the readers, which leaves the least to compute.
 */
#include "autodiff/internal.h"

#define ENDLESS 1e30

typedef struct Edge {
	int to, next; /* next: of the same vertex; -1: none. Edge k ^ 1 goes back. */
	double room;
} Edge;

/* Vertices 2k and 2k + 1: into and out of tensor k; then the source and the sink. */
typedef struct Net {
	Ir *ir;
	int n, nedge, edges;
	Edge *edge;
	int *first, *from; /* by vertex: its first edge; the edge that a search came by, -1: none */
	int *number;	   /* by id: of the step's tensors, from 1 */
} Net;

static void link_half(Net *net, int from, int to, double room)
{
	if (net->nedge == net->edges) {
		Edge *old = net->edge;
		net->edges = 2 * net->edges + 64;
		net->edge = arena_alloc(&net->ir->arena, sizeof *old * (size_t)net->edges);
		for (int k = 0; k < net->nedge; k++)
			net->edge[k] = old[k];
	}
	net->edge[net->nedge] = (Edge){to, net->first[from], room};
	net->first[from] = net->nedge++;
}

static void link_edge(Net *net, int from, int to, double room)
{
	link_half(net, from, to, room);
	link_half(net, to, from, 0);
}

/* Breadth first from `start` along edges with room, or, when back, against them; marks in from[].
 */
static void search(Net *net, int start, bool back, int *queue)
{
	int n = 0;
	for (int v = 0; v < 2 * net->n + 2; v++)
		net->from[v] = -1;
	net->from[start] = -2;
	queue[n++] = start;
	for (int i = 0; i < n; i++)
		for (int e = net->first[queue[i]]; e >= 0; e = net->edge[e].next) {
			int to = net->edge[e].to;
			if (net->from[to] != -1 || net->edge[back ? e ^ 1 : e].room <= 0)
				continue;
			net->from[to] = e;
			queue[n++] = to;
		}
}

/* Fills the net from source to sink. */
static void fill(Net *net, int source, int sink, int *queue)
{
	for (search(net, source, false, queue); net->from[sink] >= 0;
	     search(net, source, false, queue)) {
		double room = ENDLESS;
		for (int v = sink; v != source; v = net->edge[net->from[v] ^ 1].to)
			room = net->edge[net->from[v]].room < room ? net->edge[net->from[v]].room
								   : room;
		for (int v = sink; v != source; v = net->edge[net->from[v] ^ 1].to) {
			net->edge[net->from[v]].room -= room;
			net->edge[net->from[v] ^ 1].room += room;
		}
	}
}

static bool costs(const Node *t)
{
	bool sum = t->op == OP_COMP && comp_reduce(t) != RED_NONE;
	return (sum || t->op == OP_SCAN) && tensor_rank(t) < RICCI_MAX_RANK;
}

static void link_reads(Net *net, const Node *t, int to)
{
	Node **reads;
	int n = comp_reads(net->ir, t, &reads);
	for (int k = 0; k < n; k++)
		if (net->number[reads[k]->id])
			link_edge(net, 2 * net->number[reads[k]->id] - 1, to, ENDLESS);
}

int keep_tensors(Ir *ir, int n, Node *const *step, const bool *stacked, int nroot,
		 Node *const *root, Node **kept)
{
	Arena *a = &ir->arena;
	Net net = {.ir = ir, .n = n};
	int source = 2 * n, sink = 2 * n + 1, nkept = 0;
	size_t vertices = 2 * (size_t)n + 2;
	int *queue = arena_alloc(a, sizeof *queue * vertices);
	net.first = arena_alloc(a, sizeof *net.first * vertices);
	net.from = arena_alloc(a, sizeof *net.from * vertices);
	net.number = arena_alloc(a, sizeof *net.number * ir->count);
	for (int v = 0; v < 2 * n + 2; v++)
		net.first[v] = -1;
	for (int k = 0; k < n; k++)
		net.number[step[k]->id] = k + 1;
	for (int k = 0; k < n; k++) {
		bool keeps = tensor_rank(step[k]) < RICCI_MAX_RANK;
		double bytes = stacked[k] ? 0 : (double)tensor_bytes(step[k]);
		link_edge(&net, 2 * k, 2 * k + 1, keeps ? bytes : ENDLESS);
		if (costs(step[k]))
			link_edge(&net, source, 2 * k, ENDLESS);
		else
			link_reads(&net, step[k], 2 * k);
	}
	Node **order;
	int norder = graph_order(ir, nroot, root, &order);
	for (int k = 0; k < norder; k++)
		if (!net.number[order[k]->id])
			link_reads(&net, order[k], sink);
	for (int k = 0; k < nroot; k++)
		if (net.number[root[k]->id])
			link_edge(&net, 2 * net.number[root[k]->id] - 1, sink, ENDLESS);
	fill(&net, source, sink, queue);
	search(&net, sink, true, queue);
	for (int k = 0; k < n; k++)
		if (net.from[2 * k] == -1 && net.from[2 * k + 1] != -1)
			kept[nkept++] = step[k];
	return nkept;
}
