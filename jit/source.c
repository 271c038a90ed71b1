/* source.c - a task and a schedule become the source of a kernel.
 *
 *	task + schedule --lower_tree--> loop tree --emit--> text --backend--> kernel
 *
 * Everything happens in a scratch Ir that is dropped at the end, so that tasks are only read. */
#include "jit/backend/backend.h"
#include "jit/lower.h"

static void dump_schedule(const Task *t, const Schedule *s)
{
	if (!env_dump("sched"))
		return;
	Text text = {0};
	text_add(&text, "%s\n", t->text ? t->text : "");
	schedule_print(&text, s);
	text_add(&text, "\n");
	env_dump_text("sched", "schedule", text.s ? text.s : "");
	text_free(&text);
}

static void dump_tree(const Tree *tree)
{
	if (!env_dump("lower"))
		return;
	Text text = {0};
	tree_print(&text, tree);
	env_dump_text("lower", "loop tree", text.s ? text.s : "");
	text_free(&text);
}

/* Steps for a processor say nothing of a grid, and lines are joined for vectors under masks: the default is taken where
 * there are none. */
static const Schedule *fit_schedule(const Task *t, const Schedule *s, const Capabilities *caps,
				    Schedule *room)
{
	bool fits = caps->grid ? schedule_find(s, STEP_THREADS) != NULL
			       : caps->vectors || !schedule_find(s, STEP_JOIN);
	const Target *target =
		caps->grid ? target_ordered(target_grid(caps->fragments)) : target_unmasked();
	if (fits)
		return s;
	schedule_offers(t, target, 1, room);
	return room;
}

/* Emitter state lives in *texts so that nothing leaks when memory runs out. */
static int lower(Ir *ir, const Task *t, const Schedule *s, const Dialect *d, const Target *target,
		 Kernel *k, EmitTexts *texts, Text *out, Error *err)
{
	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	Tree *tree = lower_tree(ir, t, s, &d->caps, target, err);
	if (tree)
		dump_tree(tree);
	int code = tree ? emit_tree(out, texts, tree, d, "kernel_0", err) : err->code;
	if (tree)
		k->shape = tree->shape;
	IR_LEAVE(ir);
	return code;
}

static int tree_text(Ir *ir, const Task *t, const Schedule *s, const Capabilities *caps,
		     const Target *target, Text *out, Error *err)
{
	IR_ENTER(ir, error_set(err, RICCI_ENOMEM, "out of memory"));
	Tree *tree = lower_tree(ir, t, s, caps, target, err);
	if (tree)
		tree_print(out, tree);
	IR_LEAVE(ir);
	return tree ? 0 : err->code;
}

int kernel_tree(const Task *t, const Schedule *s, const Backend *b, const Target *target, Text *out,
		Error *err)
{
	Ir ir;
	Schedule room;
	const Capabilities *caps = &dialect_find(b->name)->caps;
	ir_init(&ir);
	int code = tree_text(&ir, t, fit_schedule(t, s, caps, &room), caps, target, out, err);
	ir_free(&ir);
	return code;
}

static int lower_source(Kernel *k, const Task *t, const Schedule *s, const Dialect *d,
			const Target *target, Error *err)
{
	Ir ir;
	EmitTexts *texts = mem_zalloc(sizeof *texts);
	Text out = {0};
	if (!texts)
		return error_set(err, RICCI_ENOMEM, "out of memory");
	ir_init(&ir);
	int code = lower(&ir, t, s, d, target, k, texts, &out, err);
	ir_free(&ir);
	for (int j = 0; j < COUNT(texts->scope); j++)
		text_free(&texts->scope[j]);
	mem_free(texts);
	if (code) {
		text_free(&out);
		return code;
	}
	env_dump_text("emit", d->backend, out.s);
	k->source = out.s;
	return 0;
}

Kernel *kernel_lower(const Task *t, const Schedule *s, const Backend *b, const Target *target,
		     Error *err)
{
	const Dialect *d = dialect_find(b->name);
	if (!d)
		return kernel_interp(t, err);
	Kernel *k = kernel_new(b, err);
	if (!k)
		return NULL;
	Schedule room;
	s = fit_schedule(t, s, &d->caps, &room);
	k->schedule = *s;
	dump_schedule(t, s);
	if (lower_source(k, t, s, d, target, err) ||
	    (d->caps.grid && kernel_sizes(k, &t->sub, err))) {
		kernel_unref(k);
		return NULL;
	}
	return k;
}

Kernel *kernel_make(const Task *t, const Schedule *s, const Backend *b, const Target *target,
		    Error *err)
{
	Kernel *k = kernel_lower(t, s, b, target, err);
	if (k && !k->run && b->compile(b, 1, &k, NULL, err)) {
		kernel_unref(k);
		return NULL;
	}
	return k;
}

Kernel *kernel_portable(const Task *t, Error *err)
{
	/* Vectors of 16 bytes: what every processor of today has. */
	static const Target target = {.vector_bytes = 16, .l1 = 32 << 10, .l2 = 512 << 10};
	static const Backend portable = {.name = "c99"};
	Schedule s;
	Error unfit = {0};
	schedule_direct(t, &target, true, &s);
	Kernel *k = kernel_lower(t, &s, &portable, &target, &unfit);
	if (k || unfit.code == RICCI_ENOMEM)
		return k ? k : (error_set(err, unfit.code, "%s", unfit.text), NULL);
	schedule_direct(t, &target, false, &s);
	return kernel_lower(t, &s, &portable, &target, err);
}
