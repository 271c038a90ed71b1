/* base.h - what everything stands on: memory, texts, errors, data types, integers, random numbers,
 * environment variables. Knows no nodes. */
#ifndef CORE_BASE_H
#define CORE_BASE_H

#include <pthread.h>
#include <ricci.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* ---- memory (memory.c) ----
 * Every allocation of the library goes through mem_*, so that a test can make the n-th one fail.
 * An arena with `oom` set jumps there when memory runs out; without it arena_alloc gives NULL. Code
 * that runs under such a jump owns nothing but arena memory, so nothing leaks. */
void *mem_alloc(size_t n); /* NULL when out of memory; never for n = 0 */
void *mem_zalloc(size_t n);
void *mem_realloc(void *p, size_t n);
/* Room for one item more in a block: see arena_grow. NULL when out of memory, and the block stays. */
void *mem_grow(void *items, int n, int *room, size_t size);
void mem_free(void *p);
/* Zeroed pages (n > 0), for large blocks: freed, they are the system's at once. malloc keeps large blocks for
 * the next ones, and more and larger ones the more it has seen. */
void *mem_map(size_t n);
void mem_unmap(void *p, size_t n); /* all of it */
char *mem_strdup(const char *s);
/* The n-th allocation from now fails (1: the next), and all after it; 0 turns it off. */
void mem_fail_at(long n);
long mem_live(void); /* blocks allocated and not freed */

typedef struct ArenaChunk ArenaChunk;
typedef struct Arena {
	ArenaChunk *head;
	size_t bytes;
	jmp_buf *oom;
} Arena;
void *arena_alloc(Arena *a, size_t n); /* zeroed, 16-byte aligned */
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for one item more behind items[0..n-1], of which *room fit: items itself, or a copy with twice
 * the room. Like arena_alloc where memory runs out. */
void *arena_grow(Arena *a, void *items, int n, int *room, size_t size);
void arena_free(Arena *a); /* everything at once; the arena is empty and usable afterwards */

/* A growing text. Failure to grow sets `failed` and later appends do nothing. */
typedef struct Text {
	char *s; /* NUL-terminated, or NULL while empty */
	size_t n, room;
	bool failed;
} Text;
void text_add(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_put(Text *t, const char *s, size_t n);
void text_free(Text *t);
/* The string of a text that is not empty, for the caller to free; NULL with an error told where memory ran
 * out. */
char *text_take(Text *t);

/* ---- errors (error.c): values; the first one wins ---- */
enum { ERROR_TEXT = 2048 };
typedef struct Error {
	int code;  /* 0 or a ricci_error */
	bool tell; /* of a public call: its text is this thread's ricci_error_message(), too */
	char text[ERROR_TEXT];
} Error;
/* Sets e (may be NULL) unless it holds an error already; returns the code it was given. The place
 * for a breakpoint. */
int error_set(Error *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void error_clear(Error *e);
/* A message into s[0..room-1]; one that is cut ends with "...". Never for what identifies. */
void message_print(char *s, size_t room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void message_vprint(char *s, size_t room, const char *fmt, va_list ap);
/* A public call without an object that keeps an error: error_set(ERROR_TELL, ..). */
#define ERROR_TELL (&(Error){.tell = true})
/* Makes e's text, if e holds an error, this thread's ricci_error_message(). Returns its code. */
int error_tell(const Error *e);
/* Copies a struct of a user's, which begins with its size, into to[0..size-1]; fields that the user's
 * program does not know are 0, fields that this library does not know must be. type: its name. */
int struct_take(void *to, size_t size, const void *from, const char *type, Error *e);
/* The same the other way; what the user's program does not know is left out. */
void struct_give(void *to, const void *from, size_t size);

/* ---- types (type.c) ---- */
typedef ricci_type Type;
size_t type_size(Type t);
const char *type_name(Type t);		      /* "f32" */
bool type_parse(const char *name, Type *out); /* by that name */
bool type_is_float(Type t);
bool type_is_int(Type t);			   /* I8..I64, not BOOL */
void type_range(Type t, int64_t *lo, int64_t *hi); /* of an integer type or BOOL */
int64_t type_wrap(Type t, int64_t v); /* the low bits of v, as integer arithmetic in t keeps them */
Type type_accumulator(Type t);	      /* F32 for F16 and BF16, I32 for I8 and U8, else t */
double type_largest(Type t);	      /* the largest number of a float type */
double type_epsilon(Type t);	      /* the distance of 1 to the next number; 0 for integers */
/* The nearest number of 11 significant bits and f32's exponents, of two as near the larger one (PTX: cvt.rna.tf32);
 * its epsilon. */
double type_tf32(double v);
#define TF32_EPSILON 0x1p-10
/* One element as double (floats) or int64 (integers), and back with rounding to nearest even /
 * saturation. */
double type_load(Type t, const void *p, size_t i);
int64_t type_load_int(Type t, const void *p, size_t i);
void type_store(Type t, void *p, size_t i, double v);
void type_store_int(Type t, void *p, size_t i, int64_t v);

/* ---- integers (integer.c) ---- */
/* a / b rounded down, b not 0. */
static inline int64_t int_floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t int_floor_mod(int64_t a, int64_t b) /* b > 0 */
{
	return a % b + (a % b < 0 ? b : 0);
}
int64_t int_gcd(int64_t a, int64_t b); /* never negative */

/* ---- random numbers (philox.c) ---- */
typedef struct RandomState {
	uint64_t seed, step;
} RandomState;
/* Philox 4x32-10: the 4 words of counter (element, key), key (seed ^ step mixed); every backend
 * does exactly this. */
void philox(uint64_t element, uint64_t key, uint64_t seed, uint64_t step, uint32_t out[4]);
/* What random() draws with in step t of a loop of so many steps whose surroundings draw with rs: each step draws
 * numbers of its own, the same ones when another loop computes it again. A loop of one step
 * (ricci_recompute) draws as its surroundings. */
RandomState random_step(RandomState rs, int64_t steps, int64_t t);
float philox_uniform(uint32_t w);	     /* [0,1), 24 bits */
float philox_normal(uint32_t a, uint32_t b); /* Box-Muller */

/* How many levels an expression may have for the stack of the present thread (stack.c). */
int stack_levels(void);
enum { STACK_DEPTH_ANY = 32 }; /* it is never less */

/* ---- forks (fork.c): the locks of the whole process, in the order in which they are taken */
typedef enum {
	LOCK_GRAPHS, /* graphs, while sessions are made over them */
	LOCK_CACHE,  /* the table of the function cache */
	LOCK_TCC,    /* libtcc */
	LOCK_TRACE,  /* the trace's file */
	/* A fork waits for those above. What follows may be held for long and guards no data: a
	 * child just begins with it free. */
	LOCK_FILL,    /* the first kernels of lines, made by one session at a time */
	LOCK_DEVICES, /* the list of opened devices */
	NLOCKS,
	LOCK_ORDER = LOCK_FILL
} GlobalLock;
void lock_take(GlobalLock l);
void lock_leave(GlobalLock l);
unsigned fork_generation(void); /* other in a forked child than in its parent */
/* fork() without handlers, ours and those of others: the child may only compute and _exit. */
pid_t fork_bare(void);

/* ---- threads, and those that stand back (front.c) ---- */
/* A thread that no signal of the host's handlers runs on. 0 or an errno. */
int thread_start(pthread_t *t, void *(*main)(void *), void *arg);
/* A thread of the caller's priority that makes calls for those that stand back. False: it could not be
 * started. It is ended when those have ended. */
typedef struct Front {
	pthread_t thread;
	sem_t free, asked, done;
	bool quit;
	void (*call)(void *arg);
	void *arg;
	int error; /* errno behind the call */
} Front;
bool front_start(Front *f);
void front_end(Front *f);
/* From now on this thread, and the processes that it starts, run where nothing else would, and f
 * (NULL: this thread) makes its calls. There is no way back. */
void thread_stand_back(Front *f);
bool thread_stands_back(void);
/* Has the thread's front make a call, and waits for its end; errno is the call's. */
void front_call(void (*call)(void *arg), void *arg);
/* Pages of no file, by the thread's front: mmap (NULL: none), mprotect, munmap. */
void *pages_map(size_t n, int protect, int flags);
int pages_protect(void *at, size_t n, int protect);
int pages_unmap(void *at, size_t n);

/* ---- private folders (work.c) for a compiler's files, and files that are being made ---- */
typedef struct WorkFolder {
	int base, fd; /* the folder around it, and it; descriptors */
	char name[40];
} WorkFolder;
/* Where compilers work from now on: within this folder, or (-1) within $TMPDIR, else /tmp. */
void work_within(int folder);
/* A fresh folder that only its owner may enter; base: a descriptor, or -1 for what work_within
 * said. */
int work_open(WorkFolder *w, int base, Error *err);
void work_close(WorkFolder *w); /* removes it with what is in it */
/* A new file in it. */
int work_write(const WorkFolder *w, const char *name, const void *s, size_t n, Error *err);
/* Appends a file of it to out. */
int work_read(const WorkFolder *w, const char *name, Text *out, Error *err);
/* Removes the folders within base that nobody works in any more. */
void work_sweep(int base);

/* Reads what is left of an open file. */
int file_take(int fd, Text *out, Error *err);

/* ---- environment (env.c): RICCI_* variables, one place ---- */
const char *env_text(const char *name, const char *otherwise);
long env_long(const char *name, long otherwise);
/* Is pass in RICCI_DUMP=parse,grad,rewrite,fuse,sched,lower,emit ? */
bool env_dump(const char *pass);
bool env_check(const char *what);    /* RICCI_CHECK names it */
bool env_unfused(const char *depth); /* RICCI_UNFUSED names it, or all */
/* Writes to stderr where env_dump(pass). */
void env_dump_text(const char *pass, const char *title, const char *text);
double clock_seconds(void);	       /* monotonic */
double process_seconds(pid_t process); /* of the processor's time that it has had; -1: not known */

#endif
