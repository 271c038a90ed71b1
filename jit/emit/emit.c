/* emit.c - prints a loop tree as the text of one kernel function.
 *
 * Input: a Tree whose root is its PARALLEL loop, and a dialect. Output: a complete translation unit
 * with the function `name`. Each open loop has its own text, so that an expression met deep inside
 * can still put a local variable in front of the loops that do not change it. */
#include "jit/emit/internal.h"

#include <math.h>
#include <string.h>

static void block(Emit *e, const Stmt *s);

static bool has_long_step(Ir *ir, Node *value, Node *axis)
{
	enum { LONG_STEP = 32 };
	Node **read;
	bool any = false;
	for (int k = node_collect(ir, value, OP_READ, &read) - 1; k >= 0; k--) {
		int64_t step = affine_stride(ir, read[k]->src[1], axis);
		any |= step != INT64_MIN && (step >= LONG_STEP || step <= -LONG_STEP);
	}
	return any;
}

/* Is the loop one for a compiler's vectors? Not with reads under conditions, or of elements far
 * apart: gcc 12 loads what lies between or beyond them, too. */
static bool suits_compiler(Emit *e, Node *axis, const Stmt *s)
{
	for (; s; s = s->next) {
		if (s->kind == STMT_STORE && ((emit_reads(e, s->value) & READS_GUARDED) ||
					      has_long_step(e->ir, s->value, axis)))
			return false;
		if (!suits_compiler(e, axis, s->body) || !suits_compiler(e, axis, s->otherwise))
			return false;
	}
	return true;
}

/* The lines that open a loop belong to its own text: what its body needs from outside is put in
 * front of them. */
static void loop_head(Emit *e, const Stmt *s, const char *lo, const char *hi)
{
	int number = (int)s->axis->u.i;
	if (s->how == HOW_BLOCK || s->how == HOW_THREAD) {
		emit_line(e, s->how == HOW_BLOCK ? e->d->block : e->d->thread, number);
		emit_line(e, "{");
		return;
	}
	if (s->how == HOW_PARALLEL)
		lo = "begin", hi = "end";
	if (s->how == HOW_VECTOR && *e->d->vector && suits_compiler(e, s->axis, s->body))
		emit_line(e, "%s", e->d->vector);
	if (s->how == HOW_VECTOR && e->d->few_lanes && node_is_const(s->hi) && s->hi->u.i <= 4)
		emit_line(e, "%s", e->d->few_lanes);
	if (s->how == HOW_UNROLL && *e->d->unroll && node_is_const(s->hi)) {
		char text[64];
		snprintf(text, sizeof text, e->d->unroll, (int)(s->hi->u.i <= 64 ? s->hi->u.i : 8));
		emit_line(e, "%s", text);
	}
	emit_line(e, "for (%s i%d = %s; i%d < %s; i%d++) {", emit_ctype(e, s->axis), number, lo,
		  number, hi, number);
}

static void loop(Emit *e, const Stmt *s)
{
	emit_statement(e);
	emit_count(e, s->lo);
	emit_count(e, s->hi);
	const char *lo = emit_value(e, s->lo, false), *hi = emit_value(e, s->hi, false);
	if (e->d->caps.chunk && (s->how == HOW_VECTOR ? emit_vector(e, s) : emit_box(e, s)))
		return;
	bool wide = emit_wide_begin(e, s);
	emit_open(e, s->axis, s->maybe);
	e->scope[e->depth].body = s->body;
	e->scope[e->depth].lanes = s->how == HOW_VECTOR && e->d->caps.vectors;
	loop_head(e, s, lo, hi);
	block(e, s->body);
	emit_line(e, "}");
	emit_close(e);
	if (wide)
		emit_wide_end(e, s);
}

static void branch(Emit *e, const Stmt *s)
{
	emit_statement(e);
	emit_count(e, s->cond);
	const char *cond = emit_value(e, s->cond, false);
	emit_open(e, NULL, true);
	emit_line(e, "if (%s) {", cond);
	block(e, s->body);
	emit_line(e, "}");
	emit_close(e);
	if (!s->otherwise)
		return;
	emit_open(e, NULL, true);
	emit_line(e, "if (!(%s)) {", cond);
	block(e, s->otherwise);
	emit_line(e, "}");
	emit_close(e);
}

/* The bits of an element that is only moved, perhaps under conditions, or 0; NULL: it is computed. */
static const char *moved(Emit *e, Node *value, bool lazy)
{
	if (value->op == OP_CONST)
		return value->u.f == 0 && !signbit(value->u.f) ? "0" : NULL;
	if (value->op == OP_READ)
		return emit_place(e, value->src[0], value->src[1], lazy);
	const char *a = value->op == OP_SELECT ? moved(e, value->src[1], true) : NULL;
	const char *b = a ? moved(e, value->src[2], true) : NULL;
	return b ? arena_printf(&e->ir->arena, "(%s ? %s : %s)", emit_value(e, value->src[0], lazy),
				a, b)
		 : NULL;
}

/* How a value of type `from` is written into an element of type `to`. */
static const char *stored(Emit *e, Type to, Node *value, Reduce red)
{
	/* The store rounds: a cast in front of it would do so twice. */
	bool rounds = (to == RICCI_BF16 || to == RICCI_F16) && value->op == OP_CAST &&
		      type_is_float(value->src[0]->type);
	value = rounds ? value->src[0] : value;
	Arena *m = &e->ir->arena;
	bool half = to == RICCI_BF16 || to == RICCI_F16;
	const char *bits = half && e->d->caps.grid && value->type == to && red == RED_NONE
				   ? moved(e, value, false)
				   : NULL;
	if (bits)
		return bits;
	const char *v = red == RED_ADD ? emit_term(e, value) : emit_value(e, value, false);
	if (to == RICCI_BF16 || to == RICCI_F16) {
		e->uses_math = true;
		return arena_printf(m, "ricci_%s_of_f32(%s)", type_name(to), v);
	}
	if (to != RICCI_I8 && to != RICCI_U8)
		return v;
	int64_t lo, hi;
	type_range(to, &lo, &hi);
	return value->lo >= lo && value->hi <= hi
		       ? v
		       : arena_printf(m, "rk_%s_of_int(%s)", type_name(to), v);
}

static bool changing(const Emit *e, const Stmt *s)
{
	const Buffer *b = tree_find(e->tree, s->buffer);
	return !b || b->space != SPACE_PARAM;
}

/* Sums and products of integers wrap; C's do so without signs only. */
static const char *unsigned_text(Type t, Reduce red, Arena *m, const char *v)
{
	if ((red != RED_ADD && red != RED_MUL) || (t != RICCI_I32 && t != RICCI_I64))
		return v;
	return arena_printf(m, "(%s)%s", t == RICCI_I32 ? "unsigned" : "uint64_t", v);
}

static void store(Emit *e, const Stmt *s, const char *v)
{
	Type t = (Type)s->buffer->type;
	const char *place = e->nwide ? emit_wide_place(e, s, e->scope[e->depth].axis) : NULL;
	if (!place)
		place = emit_place(e, s->buffer, s->index, false);
	if (s->atomic) {
		static const char *const name[RED_COUNT] = {
			[RED_ADD] = "add", [RED_MAX] = "max", [RED_MIN] = "min"};
		e->atomics = true;
		emit_line(e, "ricci_atomic_%s_%s(&%s, %s);", name[s->red], emit_suffix(t), place,
			  v);
		return;
	}
	if (s->red == RED_MAX || s->red == RED_MIN) {
		v = arena_printf(&e->ir->arena, "rk_%s_%s(%s, %s)",
				 s->red == RED_MAX ? "max" : "min", emit_suffix(t), place, v);
	}
	static const char *const assign[RED_COUNT] = {"=", "+=", "*=", "=", "="};
	emit_line(e, "%s %s %s;", place, assign[s->red],
		  unsigned_text(t, s->red, &e->ir->arena, v));
}

/* May the store share what it computes with those around it? Sums in local variables have too many
 * around them. */
static bool shares(const Emit *e, const Stmt *s)
{
	const Buffer *b = tree_find(e->tree, s->buffer);
	return !changing(e, s) || (b && b->space == SPACE_SHARED) ||
	       (s->red == RED_NONE && tensor_size(s->buffer) > 1);
}

/* Does `next` read what the stores from s on, before it, write? */
static bool reads_stored(const Stmt *s, const Stmt *next)
{
	for (const Stmt *i = s; i != next; i = i->next)
		if (store_reads(next, i->buffer))
			return true;
	return false;
}

/* Stores to outputs that follow each other share what they compute. All values come first: an
 * output may take the place of an input that dies here. */
static const Stmt *stores(Emit *e, const Stmt *s)
{
	const Stmt *end = s;
	int n = 0;
	emit_statement(e);
	do {
		emit_count(e, end->index);
		emit_count(e, end->value);
		end = end->next;
		n++;
	} while (end && end->kind == STMT_STORE && shares(e, s) && shares(e, end) &&
		 !reads_stored(s, end));
	const char **value = arena_alloc(&e->ir->arena, (size_t)n * sizeof *value);
	int k = 0;
	for (const Stmt *i = s; i != end; i = i->next, k++) {
		value[k] = stored(e, (Type)i->buffer->type, i->value, i->red);
		if (n == 1)
			break;
		const char *name = arena_printf(&e->ir->arena, "t%d", e->nname++);
		emit_line(e, "const %s %s = %s;", dialect_ctype[i->buffer->type], name, value[k]);
		value[k] = name;
	}
	k = 0;
	for (; s != end; s = s->next)
		store(e, s, value[k++]);
	emit_forget_changing(e);
	return end;
}

static void alloc(Emit *e, const Stmt *s)
{
	Node *b = s->buffer;
	const Buffer *info = tree_find(e->tree, b);
	if (!info || !buffer_is_local(info)) /* a block's memory stands where its kernel begins */
		return;
	if (info->space == SPACE_LANES)
		emit_line(e, "%s %s = {0};", emit_vector_type(e, (Type)b->type, tensor_size(b)),
			  b->u.s);
	else if (tensor_size(b) == 1)
		emit_line(e, "%s %s;", dialect_ctype[b->type], b->u.s);
	else
		emit_line(e, "%s %s[%lld]%s;", dialect_ctype[b->type], b->u.s,
			  (long long)tensor_size(b), e->d->align);
	if (e->d->strict)
		emit_line(e, "(void)%s;", b->u.s);
}

static void call(Emit *e, const Stmt *s)
{
	e->calls = true;
	emit_statement(e);
	for (int k = 0; k < s->narg; k++)
		emit_count(e, s->arg[k].value);
	const char *args = "";
	for (int k = 0; k < s->narg; k++) {
		const CallArg *a = &s->arg[k];
		args = arena_printf(&e->ir->arena, "%s%s%s", args, k ? ", " : "",
				    a->buffer ? emit_address(e, a->buffer, a->value)
					      : emit_value(e, a->value, false));
	}
	emit_line(e, "%s(%s);", s->symbol, args);
	emit_forget_changing(e);
}

static void prefetch(Emit *e, const Stmt *s)
{
	emit_statement(e);
	emit_count(e, s->index);
	/* to read, into L2: rows and blocks are more than L1 holds */
	emit_line(e, "%s(%s, 0, 2);", e->d->prefetch, emit_address(e, s->buffer, s->index));
}

static void block(Emit *e, const Stmt *s)
{
	while (s && !e->ir->err.code) {
		const Stmt *next = s->next;
		switch (s->kind) {
		case STMT_LOOP:
			(s->how == HOW_LANES ? emit_lanes : loop)(e, s);
			break;
		case STMT_IF:
			branch(e, s);
			break;
		case STMT_STORE:
			next = stores(e, s);
			break;
		case STMT_ALLOC:
			alloc(e, s);
			break;
		case STMT_CALL:
			call(e, s);
			break;
		case STMT_SYNC:
			emit_line(e, "%s", e->d->sync);
			emit_forget_changing(e);
			break;
		case STMT_PREFETCH:
			prefetch(e, s);
			break;
		}
		s = next;
	}
}

/* ---- the function ---- */

static void calls_declare(Text *out, const Stmt *s)
{
	for (; s; s = s->next) {
		if (s->kind == STMT_CALL) {
			text_add(out, "void %s(", s->symbol);
			for (int k = 0; k < s->narg; k++)
				text_add(out, "%s%s", k ? ", " : "",
					 s->arg[k].buffer ? "const void *" : "int64_t");
			text_add(out, ");\n");
		}
		if (s->kind == STMT_LOOP || s->kind == STMT_IF)
			calls_declare(out, s->body);
		if (s->kind == STMT_IF)
			calls_declare(out, s->otherwise);
	}
}

static void signature_host(Text *out, const Emit *e, const char *name)
{
	const Tree *t = e->tree;
	text_add(
		out,
		"void %s(void *const *buf, const KernelEnv *env, int64_t begin, int64_t end)\n{\n"
		" const uint64_t seed = env->seed, step = env->step;\n (void)seed;\n (void)step;\n",
		name);
	for (int k = 0; k < t->nbuffer; k++) {
		const Buffer *b = &t->buffer[k];
		const char *type = dialect_ctype[b->node->type];
		if (b->space == SPACE_PARAM)
			text_add(out, " %s%s *%s %s = buf[%d];\n", b->output ? "" : "const ", type,
				 e->d->restrict_, b->node->u.s, b->param);
		else if (b->space != SPACE_LOCAL)
			text_add(out, " %s *%s %s = (%s *)((char *)env->%s + %zu);\n", type,
				 e->d->restrict_, b->node->u.s, type,
				 b->space == SPACE_SHARED ? "shared" : "scratch", b->offset);
	}
}

/* The buffers in Subgraph order, the memory that all blocks have, the random numbers' step, which is in
 * memory, and their seed: a recorded launch has the same arguments in every step. */
static void signature_grid(Text *out, const Emit *e, const char *name)
{
	const Tree *t = e->tree;
	const char *bounds = arena_printf(&e->ir->arena, e->d->bounds, t->shape.threads);
	text_add(out, e->d->kernel, arena_printf(&e->ir->arena, "%s%s", bounds, name));
	for (int k = 0; k < t->nbuffer; k++) {
		const Buffer *b = &t->buffer[k];
		if (b->space == SPACE_SCRATCH || b->space == SPACE_TABLE)
			error_set(&e->ir->err, RICCI_EUNSUPPORTED,
				  "this kernel needs scratch memory, which %s kernels do not have",
				  e->d->backend);
		/* What a thread writes others may read behind a barrier, which compilers move the reads of
		 * a restricted pointer across. */
		if (b->space == SPACE_PARAM)
			text_add(out, "%s%s%s *%s %s, ", emit_memory(e), b->output ? "" : "const ",
				 dialect_ctype[b->node->type], b->output ? "" : e->d->restrict_,
				 b->node->u.s);
	}
	if (t->shape.shared)
		text_add(out, "%schar *shared, ", emit_memory(e));
	text_add(out, "%sconst uint64_t *%s step_at, uint64_t seed)\n{\n", emit_memory(e),
		 e->d->restrict_);
	text_add(out, " const uint64_t step = *step_at;\n");
}

/* What the buffers of all blocks and of a block are called where they are used below s. */
static void memory_grid(Text *out, const Emit *e, const Stmt *s)
{
	const Tree *t = e->tree;
	size_t at = 0;
	if (t->shape.block)
		text_add(out, " %s\n", e->d->block_arrays);
	for (int k = 0; k < t->nbuffer; k++) {
		const Buffer *b = &t->buffer[k];
		const char *type = dialect_ctype[b->node->type];
		if ((b->space != SPACE_SHARED && b->space != SPACE_BLOCK) ||
		    !stmt_uses(s, NULL, b->node))
			continue;
		if (b->space == SPACE_BLOCK && t->shape.block) {
			text_add(out, " %s *%s = (%s *)(block_memory + %zu);\n", type, b->node->u.s,
				 type, at);
			at += (tensor_bytes(b->node) + 15) & ~(size_t)15;
		} else if (b->space == SPACE_BLOCK)
			text_add(out, " %s%s %s[%lld];\n", e->d->block_memory, type, b->node->u.s,
				 (long long)tensor_size(b->node));
		else
			text_add(out, " %s%s *%s = (%s%s *)(shared + %zu);\n", emit_memory(e), type,
				 b->node->u.s, emit_memory(e), type, b->offset);
	}
}

/* Each phase is a kernel of its own. */
static void kernels_grid(Text *out, Emit *e, const char *name)
{
	int phase = 0;
	Text *body = e->scope[0].text;
	for (Stmt *s = e->tree->root; s && !e->ir->err.code; s = s->next, phase++) {
		Stmt one = *s;
		if (s->kind == STMT_CALL) {
			text_add(out, "/* phase %d: ", phase);
			call_print(out, &e->tree->shape.call);
			text_add(out, " */\n");
			continue;
		}
		one.next = NULL;
		body->n = 0;
		emit_forget(e, 0, false);
		block(e, &one);
		signature_grid(out, e,
			       phase ? arena_printf(&e->ir->arena, "%s_phase%d", name, phase)
				     : name);
		memory_grid(out, e, &one);
		text_put(out, body->s, body->n);
		text_add(out, "}\n");
	}
}

static Emit *emit_new(EmitTexts *texts, const Tree *t, const Dialect *d)
{
	Emit *e = arena_alloc(&t->ir->arena, sizeof *e);
	e->tree = t;
	e->ir = t->ir;
	e->d = d;
	e->scopes = 1;
	for (int k = 0; k < EMIT_MAX_SCOPES; k++)
		e->scope[k].text = &texts->scope[k];
	texts->scope[0].n = 0;
	return e;
}

/* The statements; NULL where a chunk would need more temporaries than there are. */
static Emit *emit_body(EmitTexts *texts, const Tree *t, const Dialect *d)
{
	Emit *e = emit_new(texts, t, d);
	block(e, t->root);
	return e->too_large ? NULL : e;
}

static void prelude(Text *out, const Emit *e)
{
	const Dialect *d = e->d;
	text_add(out, "%s", d->prelude);
	if (e->uses_math)
		text_add(out, "%s%s%s", d->before_math ? d->before_math : "", d->math,
			 d->after_math ? d->after_math : "");
}

static void declarations(Text *out, const Emit *e)
{
	for (int k = 0; k < e->ncall; k++)
		text_add(out, "%s\n", e->call[k]);
}

static int emit_grid(Text *out, EmitTexts *texts, const Tree *t, const Dialect *d, const char *name,
		     Error *err)
{
	Text *kernels = &texts->scope[EMIT_MAX_SCOPES];
	Emit *e = emit_new(texts, t, d);
	kernels->n = 0;
	kernels_grid(kernels, e, name);
	prelude(out, e);
	if (e->calls && d->calls)
		text_add(out, "%s", d->calls);
	if (e->atomics)
		text_add(out, "%s", d->atomics);
	declarations(out, e);
	if (kernels->n)
		text_put(out, kernels->s, kernels->n);
	if (out->failed || kernels->failed || texts->scope[0].failed)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	return error_set(err, t->ir->err.code, "%s", t->ir->err.text);
}

int emit_tree(Text *out, EmitTexts *texts, const Tree *t, const Dialect *d, const char *name,
	      Error *err)
{
	if (d->caps.grid)
		return emit_grid(out, texts, t, d, name, err);
	Text *body = &texts->scope[0];
	Emit *e = emit_body(texts, t, d);
	if (!e) {
		Dialect plain = *d;
		plain.caps.chunk = 0;
		return emit_tree(out, texts, t, &plain, name, err);
	}
	prelude(out, e);
	if (e->uses_lanes)
		text_add(out, "%s", d->lanes);
	calls_declare(out, t->root);
	declarations(out, e);
	signature_host(out, e, name);
	static const char *const temp[CHUNK_KINDS] = {"float vf", "double vd", "unsigned char vb",
						      "unsigned short vh"};
	for (int kind = 0; kind < CHUNK_KINDS; kind++)
		for (int k = 0; k < e->ntemp[kind]; k++)
			text_add(out, " %s%d[%d];\n", temp[kind], k, d->caps.chunk);
	if (body->n)
		text_put(out, body->s, body->n);
	text_add(out, "}\n");
	if (out->failed || body->failed)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	return error_set(err, t->ir->err.code, "%s", t->ir->err.text);
}
