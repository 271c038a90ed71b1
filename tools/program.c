/* program.c - the expression of the command line: its operands from shapes and files, its results,
 * their gradients. Input: Options. Output: a graph and handles of what matters in it. */
#include "core/notation/internal.h"
#include "tools/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void graph_check(const ricci_graph *g)
{
	if (ricci_graph_error(g))
		die(STATUS_WRONG, "%s", ricci_error_message());
}

/* ---- operands ---- */

/* "2x3x4", "2x3:f64", "scalar:i32"; false when text is something else. */
static bool shape_parse(const char *text, Npy *out)
{
	Npy a = {.type = RICCI_F32};
	const char *p = text;
	if (!strncmp(p, "scalar", 6) && (!p[6] || p[6] == ':')) {
		p += 6;
	} else {
		for (;;) {
			char *end;
			errno = 0;
			if (*p < '1' || *p > '9' || a.rank == RICCI_MAX_RANK)
				return false;
			a.shape[a.rank++] = strtoll(p, &end, 10);
			if (errno)
				return false;
			p = end;
			if (*p != 'x')
				break;
			p++;
		}
	}
	if (*p && (*p != ':' || !type_parse(p + 1, &a.type)))
		return false;
	*out = a;
	return true;
}

static void operand_read(Operand *op, const char *value)
{
	Error e = {0};
	if (shape_parse(value, &op->array))
		return;
	size_t n = strlen(value);
	if ((n < 4 || strcmp(value + n - 4, ".npy")) && access(value, F_OK))
		die(STATUS_USAGE,
		    "%s=%s: neither a shape (2x3x4, 2x3x4:f64, scalar; at most %d sizes, none 0) "
		    "nor a .npy file",
		    op->name, value, RICCI_MAX_RANK);
	check(npy_read(value, &op->array, &e), &e);
}

const char *name_list(int n, const char *const *names)
{
	Text t = {0};
	for (int k = 0; k < n; k++)
		text_add(&t, k ? ", %s" : "%s", names[k]);
	return t.s ? t.s : "none";
}

ricci_tensor *tensor_input(ricci_graph *g, const char *name, const Npy *like)
{
	return ricci_input(g, name, like->type, like->rank, like->shape);
}

static void job_bind(Job *j, const Options *o, const char *const *names)
{
	for (int i = 0; i < o->operand.n; i++) {
		bool used = false;
		for (int k = 0; k < j->noperand; k++)
			used |= !strcmp(names[k], o->operand.item[i].name);
		if (!used)
			die(STATUS_WRONG, "'%s' is no operand of the program; its operands are: %s",
			    o->operand.item[i].name, name_list(j->noperand, names));
	}
	for (int k = 0; k < j->noperand; k++) {
		const char *value = NULL;
		for (int i = 0; i < o->operand.n; i++)
			if (!strcmp(names[k], o->operand.item[i].name))
				value = o->operand.item[i].value;
		if (!value)
			die(STATUS_WRONG,
			    "operand '%s' is missing: give %s=SHAPE[:TYPE] or %s=FILE.npy",
			    names[k], names[k], names[k]);
		j->operand[k].name = names[k];
		operand_read(&j->operand[k], value);
		j->operand[k].tensor = tensor_input(j->g, names[k], &j->operand[k].array);
	}
	graph_check(j->g);
}

/* ---- the program and its results ---- */

/* Names that are assigned and not read; at most room. */
static int result_names(Ir *ir, const char *text, const char **name, int room)
{
	IR_ENTER(ir, -1);
	Program *p = program_parse(ir, text);
	int n = 0;
	for (int k = 0; k < p->nequation; k++)
		if (p->equation[k]->name->first_read < 0 && n < room)
			name[n++] = arena_printf(&ir->arena, "%.*s", p->equation[k]->name->len,
						 p->equation[k]->name->s);
	IR_LEAVE(ir);
	return n;
}

void job_open(Job *j, const Options *o)
{
	*j = (Job){.g = take(ricci_graph_new())};
	const char **names;
	j->noperand = notation_operands(&j->g->ir, o->expr, &names);
	if (j->noperand < 0)
		die(STATUS_WRONG, "%s", j->g->ir.err.text);
	j->operand = take(mem_zalloc((size_t)j->noperand * sizeof *j->operand));
	job_bind(j, o, names);

	int room = 1;
	for (const char *p = o->expr; *p; p++)
		room += *p == ';';
	ricci_tensor **operand = take(mem_zalloc((size_t)j->noperand * sizeof *operand));
	for (int k = 0; k < j->noperand; k++)
		operand[k] = j->operand[k].tensor;
	j->result = take(mem_zalloc((size_t)room * sizeof *j->result));
	j->name = take(mem_zalloc((size_t)room * sizeof *j->name));
	j->nresult = room;
	ricci_ops(j->g, o->expr, j->noperand, operand, &j->nresult, j->result);
	mem_free(operand);
	graph_check(j->g);
	if (result_names(&j->g->ir, o->expr, j->name, room) != j->nresult)
		die(STATUS_WRONG, "the results of the program can't be named");
}

void job_close(Job *j)
{
	for (int k = 0; k < j->noperand; k++)
		buffer_free(j->operand[k].array.data);
	mem_free(j->operand);
	mem_free(j->result);
	mem_free(j->name);
	ricci_graph_free(j->g);
}

Operand *job_operand(Job *j, const char *name)
{
	for (int k = 0; k < j->noperand; k++)
		if (!strcmp(j->operand[k].name, name))
			return &j->operand[k];
	return NULL;
}

int job_result(Job *j, const char *name)
{
	for (int k = 0; k < j->nresult; k++)
		if (!strcmp(j->name[k], name))
			return k;
	return -1;
}

bool job_has_data(const Job *j)
{
	for (int k = 0; k < j->noperand; k++)
		if (!j->operand[k].array.data)
			return false;
	return true;
}

/* ---- random data ---- */

/* Floats from [-1,1); integers that index from the range the program needs, others small. */
static void operand_draw(Operand *op, uint64_t key)
{
	Npy *a = &op->array;
	int64_t lo = 0, hi = 0, n = tensor_size(op->tensor->node);
	if (!type_is_float(a->type)) {
		type_range(a->type, &lo, &hi);
		bool indexes = op->tensor->need_lo > lo || op->tensor->need_hi < hi;
		int64_t least = indexes ? op->tensor->need_lo : -4;
		int64_t most = indexes ? op->tensor->need_hi : 4;
		lo = least > lo ? least : lo;
		hi = most < hi ? most : hi;
	}
	a->bytes = tensor_bytes(op->tensor->node);
	a->data = take_data(op->name, op->tensor->node);
	for (int64_t i = 0; i < n; i += 4) {
		uint32_t word[4];
		philox((uint64_t)i, key, 0, 0, word);
		for (int64_t k = i; k < n && k < i + 4; k++) {
			if (type_is_float(a->type))
				type_store(a->type, a->data, (size_t)k,
					   2.0 * philox_uniform(word[k - i]) - 1);
			else
				type_store_int(
					a->type, a->data, (size_t)k,
					lo + (int64_t)(word[k - i] % ((uint64_t)(hi - lo) + 1)));
		}
	}
}

void job_draw(Job *j)
{
	for (int k = 0; k < j->noperand; k++)
		if (!j->operand[k].array.data)
			operand_draw(&j->operand[k], (uint64_t)k);
}

/* ---- gradients ---- */

/* first + name, with the first letter once more as long as the graph or the program has that name
 * already; in the graph's arena. */
static const char *free_name(Job *j, const char *first, const char *name)
{
	Text t = {0};
	text_add(&t, "%s%s", first, name);
	while (!t.failed && (job_operand(j, t.s) || job_result(j, t.s) >= 0)) {
		Text longer = {0};
		text_add(&longer, "%c%s", first[0], t.s);
		text_free(&t);
		t = longer;
	}
	if (t.failed)
		take(NULL);
	const char *s = take(arena_strdup(&j->g->ir.arena, t.s));
	text_free(&t);
	return s;
}

static ricci_tensor *input_like(Job *j, const char *name, const ricci_tensor *t)
{
	Npy like = {.type = ricci_dtype(t), .rank = ricci_rank(t)};
	for (int i = 0; i < like.rank; i++)
		like.shape[i] = ricci_extent(t, i);
	return tensor_input(j->g, name, &like);
}

/* loss + the sum of y's elements times seed's; loss: NULL for 0. */
static ricci_tensor *loss_add(ricci_tensor *loss, ricci_tensor *y, ricci_tensor *seed)
{
	ricci_graph *g = ricci_graph_of(y);
	ricci_tensor *part = ricci_op(g, "L[] += D[...] * Y[...]", seed, y);
	return loss ? ricci_op(g, "L[] = f64(A[]) + f64(B[])", loss, part) : part;
}

static void gradient_choose(Gradient *d, Job *j, const List *wrt)
{
	d->wrt = take(mem_zalloc((size_t)(j->noperand + wrt->n) * sizeof *d->wrt));
	for (int k = 0; k < wrt->n; k++) {
		Operand *op = job_operand(j, wrt->item[k].name);
		if (!op)
			die(STATUS_WRONG, "'%s' is no operand of the program", wrt->item[k].name);
		if (!type_is_float(op->array.type))
			die(STATUS_WRONG, "operand '%s' is %s; only floats have a gradient",
			    op->name, type_name(op->array.type));
		d->wrt[d->n++] = op;
	}
	for (int k = 0; k < j->noperand && !wrt->n; k++)
		if (type_is_float(j->operand[k].array.type))
			d->wrt[d->n++] = &j->operand[k];
	if (!d->n)
		die(STATUS_WRONG, "no operand is a float, so there is no gradient");
}

void gradient_open(Gradient *d, Job *j, const List *wrt)
{
	*d = (Gradient){0};
	gradient_choose(d, j, wrt);
	size_t room = (size_t)d->n * sizeof(ricci_tensor *);
	ricci_tensor **tensor = take(mem_zalloc(room)), *loss = NULL;
	d->value = take(mem_zalloc(room));
	d->name = take(mem_zalloc(room));
	d->seed = take(mem_zalloc((size_t)j->nresult * sizeof *d->seed));
	for (int k = 0; k < d->n; k++) {
		tensor[k] = d->wrt[k]->tensor;
		d->name[k] = free_name(j, "d", d->wrt[k]->name);
	}
	for (int r = 0; r < j->nresult; r++) {
		ricci_tensor *y = j->result[r];
		if (!type_is_float(ricci_dtype(y)))
			continue;
		d->seed[r] = input_like(j, free_name(j, "d", j->name[r]), y);
		loss = loss_add(loss, y, d->seed[r]);
		graph_check(j->g);
	}
	if (!loss)
		die(STATUS_WRONG, "no result is a float, so there is no gradient");
	ricci_grad(j->g, loss, NULL, d->n, tensor, d->value);
	graph_check(j->g);
	mem_free(tensor);
}

void gradient_along(Gradient *d, Job *j)
{
	size_t room = (size_t)d->n * sizeof(ricci_tensor *);
	ricci_tensor **tensor = take(mem_zalloc(room));
	d->along = take(mem_zalloc(room));
	for (int k = 0; k < d->n; k++) {
		tensor[k] = d->wrt[k]->tensor;
		d->along[k] = input_like(j, free_name(j, "v", d->wrt[k]->name), tensor[k]);
		d->name[k] = free_name(j, "dd", d->wrt[k]->name);
	}
	graph_check(j->g);
	for (int k = 0; k < d->n; k++)
		ricci_jvp(j->g, d->value[k], d->n, tensor, d->along, &d->value[k]);
	graph_check(j->g);
	mem_free(tensor);
}

void gradient_close(Gradient *d)
{
	mem_free(d->wrt);
	mem_free(d->value);
	mem_free(d->seed);
	mem_free(d->along);
	mem_free(d->name);
}
