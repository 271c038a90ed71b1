/* symbols.c - what generated code may call by name.
 *
 * Output: one sorted table, made once, of the micro-kernels that this processor runs, the
 * mathematics, and the few functions that compilers call on their own (memcpy; conversions that tcc
 * does not inline). Nothing else of the process can be reached from a kernel.
 */
#include "jit/symbols.h"
#include "jit/builtin/vectorlib.h"
#include "jit/library/library.h"
#include "jit/micro/micro.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* tcc calls these by the names of libgcc. */
static float float_of_u64(uint64_t x)
{
	return (float)x;
}
static double double_of_u64(uint64_t x)
{
	return (double)x;
}
static uint64_t u64_of_float(float x)
{
	return (uint64_t)x;
}
static uint64_t u64_of_double(double x)
{
	return (uint64_t)x;
}

static const JitSymbol fixed[] = {
	{"memset", (const void *)memset},
	{"memcpy", (const void *)memcpy},
	{"memmove", (const void *)memmove},
	{"__floatundisf", (const void *)float_of_u64},
	{"__floatundidf", (const void *)double_of_u64},
	{"__fixunssfdi", (const void *)u64_of_float},
	{"__fixunsdfdi", (const void *)u64_of_double},
};

const char *jit_helper(int i)
{
	return i < COUNT(fixed) ? fixed[i].name : NULL;
}

static JitSymbol table[512];
static int ntable;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* The widest that the target runs. */
static const JitSymbol *vector_symbols(const Target *t)
{
	static const JitSymbol none[] = {{NULL, NULL}};
	(void)t;
#if defined(__x86_64__)
	if (t->isa & ISA_AVX512)
		return vector_symbols_avx512;
	if (t->isa & ISA_AVX2 && t->isa & ISA_FMA)
		return vector_symbols_avx2;
	return vector_symbols_sse2;
#elif defined(__aarch64__)
	return vector_symbols_neon;
#endif
	return none;
}

enum { PACK_TABLES = 4 };

/* Packing, of panels and of narrow factors, moving blocks of memory, running sums. */
static const JitSymbol *const *pack_tables(const Target *t)
{
	static const JitSymbol *const plain[PACK_TABLES] = {
		panel_symbols_plain, pack_narrow_plain, move_symbols_plain, prefix_symbols_plain};
#if defined(__x86_64__)
	static const JitSymbol *const avx2[PACK_TABLES] = {panel_symbols_avx2, pack_narrow_avx2,
							   move_symbols_avx2, prefix_symbols_avx2};
	static const JitSymbol *const avx512[PACK_TABLES] = {
		panel_symbols_avx512, pack_narrow_avx512, move_symbols_avx2, prefix_symbols_avx512};
	if (t->isa & ISA_AVX512)
		return avx512;
	if (t->isa & ISA_AVX2)
		return avx2;
#endif
	(void)t;
	return plain;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const JitSymbol *)a)->name, ((const JitSymbol *)b)->name);
}

static void table_put(JitSymbol s)
{
	assert(ntable < COUNT(table));
	table[ntable++] = s;
}

static void table_add(const JitSymbol *s)
{
	for (; s->name; s++)
		table_put(*s);
}

/* Several micro-kernels may share one. */
static void table_finish(const PanelForm *f)
{
	bool known = !f->finish_symbol;
	for (int i = 0; i < ntable && !known; i++)
		known = table[i].address == (const void *)f->finish;
	if (!known)
		table_put((JitSymbol){f->finish_symbol, (const void *)f->finish});
}

static void table_make(void)
{
	for (int i = 0; i < COUNT(fixed); i++)
		table_put(fixed[i]);
	table_add(math_symbols);
	table_add(pack_symbols);
	table_add(micro_state_symbols);
	const Library *library;
	for (int i = 0; (library = library_row(i)); i++)
		if (library->symbols)
			table_add(library->symbols);
	const Target *t = target_host();
	for (int i = 0; i < PACK_TABLES; i++)
		table_add(pack_tables(t)[i]);
	table_add(vector_symbols(t));
	const Micro *m;
	for (int i = 0; (m = micro_at(i)); i++)
		if ((m->isa & t->isa) == m->isa) {
			table_put((JitSymbol){m->symbol, (const void *)m->fn});
			table_finish(&m->a);
			table_finish(&m->b);
			if (!m->placed)
				continue;
			table_put((JitSymbol){m->placed_symbol, (const void *)m->placed});
			if (m->both)
				table_put((JitSymbol){m->both_symbol, (const void *)m->both});
			table_put((JitSymbol){m->listed_symbol, (const void *)m->listed});
		}
	qsort(table, ntable, sizeof *table, by_name);
}

static const JitSymbol *jit_symbols(int *count)
{
	pthread_once(&table_once, table_make);
	*count = ntable;
	return table;
}

const void *jit_symbol(const char *name)
{
	int n;
	const JitSymbol key = {name, NULL}, *all = jit_symbols(&n);
	const JitSymbol *found = bsearch(&key, all, n, sizeof key, by_name);
	return found ? found->address : NULL;
}
