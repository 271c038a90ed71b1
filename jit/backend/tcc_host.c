/* tcc_host.c - what libtcc gets in place of the C library's streams, memory and exit.
 *
 * libtcc prints and ends the process where memory ends, and an assertion of it aborts. The build
 * renames those calls in its copy of libtcc (Makefile.in, tcc.o) to the hidden functions below:
 * memory is noted in a list, and whatever would end the process goes back to tcc_run instead.
 * Invariant: between two runs nothing of libtcc is left. All of its memory is freed, and its
 * variables (the sections ricci_tcc_data and ricci_tcc_bss) have their first values again; so a run
 * may be abandoned anywhere.
 */
#include "jit/backend/tcc_host.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* libricci.so can't hold direct references to the C library's variables. They are set when the
 * library is loaded, before anything can call libtcc. */
extern char **environ;
FILE *ricci_tcc_stdout, *ricci_tcc_stderr;
char **ricci_tcc_environ;

__attribute__((constructor)) static void tcc_streams_set(void)
{
	ricci_tcc_stdout = stdout;
	ricci_tcc_stderr = stderr;
	ricci_tcc_environ = environ;
}

enum { ENDED_MEMORY = 1, ENDED_ITSELF };

/* Under LOCK_TCC, as libtcc itself. */
static jmp_buf ended;

/* ---- for libtcc */

typedef struct Block { /* before each piece of memory */
	struct Block *next, *last;
	size_t n;
	_Alignas(16) char data[];
} Block;
static Block blocks = {&blocks, &blocks, 0}; /* a ring of all that libtcc has */

static Block *block_of(void *p)
{
	return (Block *)((char *)p - offsetof(Block, data));
}

static void block_free(Block *b)
{
	b->last->next = b->next;
	b->next->last = b->last;
	mem_free(b);
}

void *ricci_tcc_malloc(size_t n)
{
	Block *b = n < PTRDIFF_MAX / 2 ? mem_alloc(sizeof *b + n) : NULL;
	if (!b)
		longjmp(ended, ENDED_MEMORY);
	*b = (Block){blocks.next, &blocks, n};
	blocks.next = b->next->last = b;
	return b->data;
}

void *ricci_tcc_calloc(size_t n, size_t each)
{
	size_t all = each && n > PTRDIFF_MAX / each ? PTRDIFF_MAX : n * each;
	return memset(ricci_tcc_malloc(all), 0, all);
}

void ricci_tcc_free(void *p)
{
	if (p)
		block_free(block_of(p));
}

void *ricci_tcc_realloc(void *old, size_t n)
{
	if (old && n <= block_of(old)->n)
		return old;
	void *p = ricci_tcc_malloc(n);
	if (old) {
		memcpy(p, old, block_of(old)->n);
		ricci_tcc_free(old);
	}
	return p;
}

_Noreturn void ricci_tcc_exit(int status)
{
	(void)status;
	longjmp(ended, ENDED_ITSELF);
}

_Noreturn void ricci_tcc_assert(const char *what, const char *file, unsigned line, const char *in)
{
	(void)what, (void)file, (void)line, (void)in;
	longjmp(ended, ENDED_ITSELF);
}

/* ---- for tcc.c */

extern char __start_ricci_tcc_data[], __stop_ricci_tcc_data[];
extern char __start_ricci_tcc_bss[], __stop_ricci_tcc_bss[];

/* setjmp in a function that has no variables of its own to lose. */
static int attempt(void (*work)(void *user), void *user)
{
	int how = setjmp(ended);
	if (!how)
		work(user);
	return how;
}

static int run_locked(void (*work)(void *user), void *user, Error *err)
{
	size_t ndata = __stop_ricci_tcc_data - __start_ricci_tcc_data;
	size_t nbss = __stop_ricci_tcc_bss - __start_ricci_tcc_bss;
	char *first = mem_alloc(ndata);
	if (!first)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	memcpy(first, __start_ricci_tcc_data, ndata);
	int how = attempt(work, user);
	memcpy(__start_ricci_tcc_data, first, ndata);
	memset(__start_ricci_tcc_bss, 0, nbss);
	mem_free(first);
	while (blocks.next != &blocks)
		block_free(blocks.next);
	if (!how)
		return 0;
	error_clear(err); /* of warnings */
	return how == ENDED_MEMORY ? error_set(err, RICCI_ENOMEM, "out of memory for tcc")
				   : error_set(err, RICCI_ECOMPILE, "tcc gave up on a kernel");
}

int tcc_run_work(void (*work)(void *user), void *user, Error *err)
{
	lock_take(LOCK_TCC);
	int code = run_locked(work, user, err);
	lock_leave(LOCK_TCC);
	return code;
}
