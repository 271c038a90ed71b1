/* order.c - kernels that compute a state's next value run after those that read its present one.
 *
 * Input: subgraphs in an order in which they can run. Output: such an order again, in which the next
 * value can be written over the old one more often (place.c), so that it needs no memory of its own:
 * the gradient by a weight comes with its update, and just before the gradient by the layer's input,
 * which reads the weight. A subgraph moves back as far as the last of those readers, unless one on
 * the way reads its results. Invariant: whatever moves, no subgraph runs before one that it reads.
 */
#include "runtime/program/program.h"
#include <string.h>

enum { ROUNDS = 4 }; /* what moves may itself be a reader of a state */

typedef struct Reader { /* of a list; the next one's number, -1: its end */
	int sub, next;
} Reader;

typedef struct Order {
	const ProgramSpec *spec;
	int n;
	const Subgraph *sub;
	int *at, *place; /* by number: its place in the order; by place: the number */
	int *writer;	 /* by node: the subgraph that computes it, -1: none */
	int *first;	 /* by node: of its readers, -1: none */
	Reader *reader;
	Arena arena;
} Order;

static void find_readers(Order *o)
{
	size_t nodes = o->spec->ir->count + 1, n = 1;
	int count = 0;

	for (int i = 0; i < o->n; i++)
		n += (size_t)o->sub[i].ninput;
	o->at = arena_alloc(&o->arena, ((size_t)o->n + 1) * sizeof *o->at);
	o->place = arena_alloc(&o->arena, ((size_t)o->n + 1) * sizeof *o->place);
	o->writer = arena_alloc(&o->arena, nodes * sizeof *o->writer);
	o->first = arena_alloc(&o->arena, nodes * sizeof *o->first);
	o->reader = arena_alloc(&o->arena, n * sizeof *o->reader);
	memset(o->writer, -1, nodes * sizeof *o->writer);
	memset(o->first, -1, nodes * sizeof *o->first);
	for (int i = 0; i < o->n; i++) {
		const Subgraph *s = &o->sub[i];

		o->at[i] = o->place[i] = i;
		for (int k = 0; k < s->nmember; k++)
			o->writer[s->member[k]->id] = i;
		for (int k = 0; k < s->ninput; k++) {
			o->reader[count] = (Reader){i, o->first[s->input[k]->id]};
			o->first[s->input[k]->id] = count++;
		}
	}
}

/* May it be a view, whose readers read what it reads? */
static bool may_view(const Subgraph *s)
{
	const Node *c = s->member[0];

	return s->nmember == 1 && c->op == OP_COMP && comp_reduce(c) == RED_NONE &&
	       comp_body(c)->op == OP_READ;
}

/* The place of the last subgraph but `but` that reads t. */
static int last_reader(const Order *o, const Node *t, int but)
{
	int last = -1;

	for (int k = o->first[t->id]; k >= 0; k = o->reader[k].next) {
		int sub = o->reader[k].sub, at = sub == but ? -1 : o->at[sub];

		if (may_view(&o->sub[sub])) {
			int behind = last_reader(o, o->sub[sub].member[0], but);
			at = behind > at ? behind : at;
		}
		last = at > last ? at : last;
	}
	return last;
}

/* Does none of its results have a reader up to that place? */
static bool may_move(const Order *o, int sub, int to)
{
	const Subgraph *s = &o->sub[sub];

	for (int m = 0; m < s->nmember; m++)
		for (int k = o->first[s->member[m]->id]; k >= 0; k = o->reader[k].next)
			if (o->at[o->reader[k].sub] <= to)
				return false;
	return true;
}

static void move(Order *o, int sub, int to)
{
	for (int i = o->at[sub]; i < to; i++) {
		o->place[i] = o->place[i + 1];
		o->at[o->place[i]] = i;
	}
	o->place[to] = sub;
	o->at[sub] = to;
}

static bool order_round(Order *o)
{
	const ProgramSpec *s = o->spec;
	bool moved = false;

	for (int a = 0; a < s->nassign; a++) {
		const Node *next = s->root[s->noutput + a];
		int sub = next->op == OP_COMP ? o->writer[next->id] : -1;
		int to = sub < 0 || s->assigned[a]->kept
				 ? -1
				 : last_reader(o, s->assigned[a]->node, sub);

		if (to < 0 || to < o->at[sub] || !may_move(o, sub, to))
			continue;
		move(o, sub, to);
		moved = true;
	}
	return moved;
}

int program_order(const ProgramSpec *spec, int nsub, Subgraph *sub, Error *err)
{
	Order o = {.spec = spec, .n = nsub, .sub = sub};
	Subgraph *old;
	jmp_buf oom;

	if (!spec->nassign)
		return 0;
	if (setjmp(oom)) {
		arena_free(&o.arena);
		return error_set(err, RICCI_ENOMEM, "out of memory");
	}
	o.arena.oom = &oom;
	find_readers(&o);
	for (int k = 0; k < ROUNDS && order_round(&o); k++)
		;
	old = arena_alloc(&o.arena, ((size_t)nsub + 1) * sizeof *old);
	memcpy(old, sub, (size_t)nsub * sizeof *old);
	for (int i = 0; i < nsub; i++)
		sub[i] = old[o.place[i]];
	arena_free(&o.arena);
	return 0;
}
