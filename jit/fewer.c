/* fewer.c - a kernel for a smaller batch from one that was made for a larger one.
 *
 * Input: a kernel, and a task that differs from its own in one batch alone. Output: a kernel of more phases. The
 * first copies the inputs that have the batch into memory that all threads share, and adds the rows that are
 * absent; then the kernel runs there, without the parts that would compute only such; the last copies the
 * results that are wanted to where they belong. Nothing is asked of its code, however it was lowered.
 * Invariant: of the task's tensors no row is touched that is absent. */
#include "jit/backend/backend.h"

#include <string.h>

enum { FEWER_BUFFERS = 96, COPY_BYTES = 1 << 16, MOST_FILLED = 4 };

typedef struct Copied { /* a tensor with the batch */
	int buf;
	bool out;
	size_t row, at; /* bytes of an index of the batch; where it is in the shared memory */
	size_t outer;	/* elements of the dimensions before the batch: each has all the rows */
	int64_t parts;	/* that copy it */
} Copied;

typedef struct Fewer {
	const Kernel *whole;
	size_t rows, all; /* that there are, that it was made for */
	size_t filled;	  /* that it may read: those which are absent are zeros, */
	bool zeros;	  /* or they repeat the last one */
	int nbuf, ncopied;
	int64_t begin, end; /* the parts that are the whole kernel's */
	Copied copied[];
} Fewer;

/* Bytes at..end-1 of the copy. */
static void copy_in(const Fewer *f, const Copied *c, const char *tensor, char *to, size_t at,
		    size_t end)
{
	size_t row = c->row, there = f->rows * row, all = f->all * row;
	while (at < end) {
		size_t in = at % all, stop = in < there ? there : in - in % row + row;
		size_t n = stop - in < end - at ? stop - in : end - at;
		const char *rows = tensor + at / all * there;
		if (in < there)
			memcpy(to + at, rows + in, n);
		else if (f->zeros)
			memset(to + at, 0, n);
		else
			memcpy(to + at, rows + (there - row) + in % row, n);
		at += n;
	}
}

/* Bytes at..end-1 of the tensor. */
static void copy_out(const Fewer *f, const Copied *c, char *tensor, const char *from, size_t at,
		     size_t end)
{
	size_t there = f->rows * c->row, all = f->all * c->row;
	while (at < end) {
		size_t in = at % there, n = there - in < end - at ? there - in : end - at;
		memcpy(tensor + at, from + at / there * all + in, n);
		at += n;
	}
}

/* Bytes of the tensor's (out), or of what is filled of the copy; nothing else is where the batch is not outermost. */
static size_t copied_bytes(const Fewer *f, const Copied *c)
{
	return c->outer * c->row * (c->out ? f->rows : c->outer > 1 ? f->all : f->filled);
}

/* Part number `part` of those that copy in (out: copy out). */
static void copy_part(const Fewer *f, void *const *buf, const KernelEnv *env, bool out,
		      int64_t part)
{
	const Copied *c = f->copied;
	for (; c->out != out || part >= c->parts; c++)
		part -= c->out == out ? c->parts : 0;
	size_t bytes = copied_bytes(f, c), at = (size_t)part * COPY_BYTES;
	size_t end = at + COPY_BYTES < bytes ? at + COPY_BYTES : bytes;
	char *own = (char *)env->shared + c->at;
	if (out)
		copy_out(f, c, buf[c->buf], own, at, end);
	else
		copy_in(f, c, buf[c->buf], own, at, end);
}

static void run_whole(const Fewer *f, void *const *buf, const KernelEnv *env, int64_t begin,
		      int64_t end)
{
	KernelEnv inner = *env;
	void *own[FEWER_BUFFERS];
	memcpy(own, buf, (size_t)f->nbuf * sizeof *own);
	for (int k = 0; k < f->ncopied; k++)
		own[f->copied[k].buf] = (char *)env->shared + f->copied[k].at;
	inner.kernel = f->whole;
	f->whole->run(own, &inner, begin, end);
}

static void fewer_run(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)
{
	const Fewer *f = env->kernel->fewer;
	for (int64_t k = begin; k < end && k < f->begin; k++)
		copy_part(f, buf, env, false, k);
	int64_t from = begin > f->begin ? begin : f->begin, to = end < f->end ? end : f->end;
	if (from < to)
		run_whole(f, buf, env, from - f->begin, to - f->begin);
	for (int64_t k = begin > f->end ? begin : f->end; k < end; k++)
		copy_part(f, buf, env, true, k - f->end);
}

/* Of dimension d of t; -1: none. */
static void fewer_add(Fewer *f, KernelShape *s, const Node *t, int d, int buf, bool out)
{
	if (d < 0)
		return;
	Copied *c = &f->copied[f->ncopied++];
	*c = (Copied){.buf = buf, .out = out, .outer = 1, .at = (s->shared + 63) & ~(size_t)63};
	for (int k = 0; k < d; k++)
		c->outer *= (size_t)tensor_extent(t, k);
	c->row = tensor_bytes(t) / c->outer / f->rows;
	c->parts = (int64_t)((copied_bytes(f, c) + COPY_BYTES - 1) / COPY_BYTES);
	s->shared =
		c->at + c->outer * f->all * c->row + 128; /* a vector may be read behind the end */
}

static void fewer_copies(Fewer *f, KernelShape *s, const Task *t, const TaskBatch *batch)
{
	const Subgraph *sub = &t->sub;
	f->nbuf = sub->ninput;
	for (int k = 0; k < sub->ninput; k++)
		fewer_add(f, s, sub->input[k], batch->input[k], k, false);
	for (int k = 0; k < sub->nmember; k++)
		if (sub->stored[k])
			fewer_add(f, s, sub->member[k], batch->member[k], f->nbuf++, true);
}

/* Where the last phase goes along the rows, each member's first dimension, it ends behind those that there are, and
 * (a single phase) reads few more. A block begins less than two of them before its share of the rows, and has no more
 * than it would if there were one less. Returns the parts of that phase. */
static int64_t fewer_parts(Fewer *f, const Task *t, const TaskBatch *batch, int64_t parts,
			   bool single)
{
	size_t blocks = (size_t)f->whole->shape.blocks;
	size_t wanted = (f->rows * blocks + f->all - 1) / f->all + 2;
	bool first = !f->zeros;
	for (int k = 0; k < t->sub.nmember; k++)
		first &= batch->member[k] == 0;
	f->filled = f->all;
	if (!blocks || !first || wanted >= blocks)
		return parts;
	size_t last = (wanted * f->all + blocks - 2) / (blocks - 1);
	if (single && last < f->all)
		f->filled = last;
	return parts / (int64_t)blocks * (int64_t)wanted;
}

/* The whole kernel's phases between those that copy. */
static void fewer_phases(Fewer *f, KernelShape *s, const Task *t, const TaskBatch *batch)
{
	const KernelShape *whole = &f->whole->shape;
	int n = 0, last = kernel_phases(f->whole) - 1;
	int64_t copies[2] = {0}, begin = last ? whole->later[last - 1] : 0;
	f->end = begin + fewer_parts(f, t, batch, whole->parts - begin, !last);
	fewer_copies(f, s, t, batch);
	for (int k = 0; k < f->ncopied; k++)
		copies[f->copied[k].out] += f->copied[k].parts;
	f->begin = copies[0];
	f->end += f->begin;
	memset(s->later, 0, sizeof s->later);
	if (copies[0])
		s->later[n++] = f->begin;
	for (int k = 0; k < last; k++)
		s->later[n++] = f->begin + whole->later[k];
	if (copies[1])
		s->later[n++] = f->end;
	s->parts = f->end + copies[1];
}

static Kernel *fewer_make(Kernel *k, const Task *t, const TaskBatch *batch, int64_t all, Error *err)
{
	size_t nbuf = (size_t)(t->sub.ninput + t->sub.nmember);
	Kernel *own = kernel_new(k->backend, err);
	Fewer *f = own ? mem_zalloc(sizeof *f + nbuf * sizeof f->copied[0]) : NULL;
	if (!f) {
		kernel_unref(own);
		error_set(err, RICCI_ENOMEM, "out of memory");
		return NULL;
	}
	*f = (Fewer){.whole = k, .rows = (size_t)batch->extent, .all = (size_t)all};
	f->zeros = batch->zeros;
	own->run = fewer_run;
	own->whole = kernel_ref(k);
	own->fewer = f;
	own->schedule = k->schedule;
	own->shape = k->shape;
	own->shape.blocks = 0;
	fewer_phases(f, &own->shape, t, batch);
	return own;
}

Kernel *kernel_fewer(Kernel *k, const Task *t, int b, int64_t all, Error *err)
{
	bool fits = t->batch[b].extent < all && !k->fewer &&
		    t->sub.ninput + t->sub.nmember <= FEWER_BUFFERS &&
		    kernel_phases(k) + 2 < KERNEL_PHASES;
	Kernel *own = fits ? fewer_make(k, t, &t->batch[b], all, err) : NULL;
	if (own && own->fewer->filled <= MOST_FILLED * own->fewer->rows)
		return own;
	if (own || !fits)
		error_set(err, RICCI_EUNSUPPORTED, "the kernel is for too many rows");
	kernel_unref(own);
	return NULL;
}
