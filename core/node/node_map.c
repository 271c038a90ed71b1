/* node_map.c - maps from nodes: open addressing by the nodes' hashes, at most half full.
 */
#include "core/node/internal.h"

static size_t slot(const NodeMap *m, const Node *key)
{
	size_t at = key->hash & (m->room - 1);
	while (m->key[at] && m->key[at] != key)
		at = (at + 1) & (m->room - 1);
	return at;
}

void *node_map_get(const NodeMap *m, const Node *key)
{
	return m->room ? m->value[slot(m, key)] : NULL;
}

static void grow(Ir *ir, NodeMap *m)
{
	NodeMap old = *m;
	m->room = old.room ? 2 * old.room : 32;
	m->key = arena_alloc(&ir->arena, m->room * sizeof *m->key);
	m->value = arena_alloc(&ir->arena, m->room * sizeof *m->value);
	for (size_t i = 0; i < old.room; i++)
		if (old.key[i]) {
			size_t at = slot(m, old.key[i]);
			m->key[at] = old.key[i];
			m->value[at] = old.value[i];
		}
}

void node_map_put(Ir *ir, NodeMap *m, Node *key, void *value)
{
	if (m->count * 2 >= m->room)
		grow(ir, m);
	size_t at = slot(m, key);
	m->count += !m->key[at];
	m->key[at] = key;
	m->value[at] = value;
}

uint32_t map_oldest(const NodeMap *m)
{
	uint32_t oldest = UINT32_MAX;
	for (size_t k = 0; k < m->room; k++)
		if (m->key[k] && m->key[k]->id < oldest)
			oldest = m->key[k]->id;
	return oldest;
}
