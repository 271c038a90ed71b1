/* random_equation.h - random equations, one or several at a time, that join a program: elementwise
 * expressions, reductions of every kind, contractions and convolutions up to those that are tiled,
 * windows under conditions and casts, softmax, equations that share their rows, scatters. What they
 * read is of random_value.h. Invariant: every equation is valid. */
#ifndef RANDOM_EQUATION_H
#define RANDOM_EQUATION_H

#include "tests/tools/random_value.h"

static Operand *local_new(RandomProgram *r, int rank, const int64_t *shape)
{
	Operand *y = &r->tensor[r->n];
	*y = (Operand){.type = r->type, .rank = rank, .local = true};
	snprintf(y->name, sizeof y->name, "t%d", r->n++);
	memcpy(y->shape, shape, (size_t)rank * sizeof *shape);
	return y;
}

enum { LONG = 100 };

static void axes_new(RandomProgram *r, int left, int n, int most)
{
	r->left = left;
	r->naxis = n;
	memset(r->used, 0, sizeof r->used);
	for (int k = 0; k < n; k++) {
		r->first[k] = k >= left && draw(r, 10) == 0 ? draw(r, 5) - 2 : 0;
		r->extent[k] = 1 + draw(r, most);
	}
	if (r->lengthy && n)
		r->extent[draw(r, n)] = 1 + draw(r, LONG);
}

/* The range of axis k by a size where there is a tensor that has it. */
static bool add_size(RandomProgram *r, int k)
{
	for (int j = 0; j < r->n && draw(r, 3) == 0; j++)
		for (int d = 0; d < r->tensor[j].rank && !r->tensor[j].local; d++)
			if (r->tensor[j].shape[d] == r->extent[k]) {
				text_add(&r->text, "%c<%s.size(%d)", letter(k), r->tensor[j].name,
					 d);
				return true;
			}
	return false;
}

/* An axis that is reduced may be cut by one on the left: k < i+1. */
static void add_where(RandomProgram *r)
{
	const char *before = " where ";
	for (int k = 0; k < r->naxis; k++) {
		long long first = r->first[k], extent = r->extent[k];
		if (k >= r->left && !r->used[k])
			continue;
		text_add(&r->text, "%s", before);
		before = ", ";
		if (first)
			text_add(&r->text, "%c in %lld..%lld", letter(k), first, first + extent);
		else if (k >= r->left && r->left && extent == r->extent[0] && draw(r, 3) == 0)
			text_add(&r->text, "%c<%c+1", letter(k), letter(0));
		else if (!add_size(r, k))
			text_add(&r->text, "%c<%lld", letter(k), extent);
	}
}

static void add_left(RandomProgram *r, const Operand *y)
{
	text_add(&r->text, "%s%s[", r->text.n ? "; " : "", y->name);
	for (int k = 0; k < r->left; k++)
		text_add(&r->text, k ? ",%c" : "%c", letter(k));
	text_add(&r->text, "]");
}

static const char *random_reduce(RandomProgram *r)
{
	static const char *const signs[] = {"+=", "+=", "max=", "min=", "*="};
	return r->type == RICCI_BOOL ? signs[2 + draw(r, 2)] : signs[draw(r, COUNT(signs))];
}

/* Any expression over up to five axes. */
static void equation_any(RandomProgram *r)
{
	Text body = {0};
	int left = draw(r, 4), more = draw(r, 4) ? 1 + draw(r, 2) : 0;
	axes_new(r, left, left + more + !(left + more), draw(r, 8) ? 4 : 20);
	random_value(r, &body, 1 + draw(r, 3));
	int reduced = 0;
	for (int k = left; k < r->naxis; k++)
		reduced += r->used[k];
	Operand *y = local_new(r, left, r->extent);
	add_left(r, y);
	/* a number alone would be f32 */
	text_add(&r->text, " %s %s(%s)", reduced ? random_reduce(r) : "=", type_name(r->type),
		 body.s);
	add_where(r);
	text_free(&body);
}

/* A value at places that operands or index expressions name, with other dimensions as they are. */
static void equation_scatter(RandomProgram *r)
{
	static const char *const signs[] = {"+=", "+=", "max=", "min="};
	Text body = {0}, at = {0};
	int64_t shape[2], most;
	int rank = 1 + draw(r, 2);
	axes_new(r, 0, 1 + draw(r, 3), 5);
	random_value(r, &body, draw(r, 3));
	for (int d = 0; d < rank; d++) {
		text_add(&at, d ? "," : "");
		if (draw(r, 2) && operand_room(r)) {
			shape[d] = 1 + draw(r, 6);
			random_table(r, &at, 0, shape[d] - 1);
		} else {
			random_place(r, &at, &most);
			shape[d] = most + 1 + draw(r, 2);
		}
		text_add(&at, ":%lld", (long long)shape[d]);
	}
	const char *sign = r->type == RICCI_BOOL ? "max=" : signs[draw(r, 4)];
	Operand *y = local_new(r, rank, shape);
	text_add(&r->text, "%s%s[%s] %s %s(%s)", r->text.n ? "; " : "", y->name, at.s, sign,
		 type_name(r->type), body.s);
	add_where(r);
	text_free(&body);
	text_free(&at);
}

/* Axes of a product, each in the left side, the first and the second operand, or some of them
 * (role, bits: 1 first, 2 second, 4 left). Some are as large as contractions that are tiled. */
static void product_axes(RandomProgram *r, int *role)
{
	static const int small[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};
	static const int large[] = {6, 12, 25, 31, 40, 64, 65, 97, 130, 300, 1100};
	static const int roles[] = {5, 6, 3, 7, 5, 6, 3};
	bool tiled = draw(r, 5) == 0 && !r->loop.steps;
	int left = 0, n = tiled ? 3 + draw(r, 2) : 2 + draw(r, 4);
	int64_t points = 1, most = !tiled ? 20000 : draw(r, 4) ? 100000 : 400000;
	for (int pass = 4; pass >= 0; pass -= 4) /* the left ones first */
		for (int k = 0; k < n; k++) {
			int what = roles[tiled ? k
					       : (int)(mix(r->state + (uint64_t)k) % COUNT(roles))];
			if ((what & 4) == pass && left < PROGRAM_DIMS - 1)
				role[left++] = what;
		}
	r->naxis = left;
	for (r->left = 0; r->left < left && role[r->left] & 4; r->left++)
		;
	for (int k = 0; k < r->naxis; k++) {
		int size = (tiled ? large : small)[draw(r, COUNT(small))];
		r->extent[k] = points * size > most ? 2 : size;
		points *= r->extent[k];
		r->used[k] = true;
		r->first[k] = 0;
	}
}

/* A product's operand, read at the axes that have its bit; back: in reverse order. True where one
 * is moved, and the read padded. */
static bool product_operand(RandomProgram *r, Text *t, const int *role, int bit, bool back)
{
	int moved = draw(r, 24);
	bool padded = moved < r->naxis && role[moved] & bit;
	Operand *x = operand_new(r, type_narrow(r), 0);
	text_add(t, x->type == r->type ? "(" : "%s(", type_name(r->type));
	text_add(t, "%s[", x->name);
	for (int j = 0; j < r->naxis; j++) {
		int k = back ? r->naxis - 1 - j : j;
		if (!(role[k] & bit))
			continue;
		text_add(t, x->rank ? ",%c" : "%c", letter(k));
		text_add(t, padded && k == moved ? "-1" : "");
		x->shape[x->rank++] = r->extent[k];
	}
	text_add(t, padded ? "] else %s)" : "])", number_of(r, x->type));
	return padded;
}

/* One or two products over the same axes, which share their first operand. */
static void equation_contraction(RandomProgram *r)
{
	static const char *const forms[] = {" %s %s*%s", " %s %s*%s", " %s max(%s, 0)*%s",
					    " %s %s*(%s + 1)"};
	int role[PROGRAM_AXES];
	int64_t shape[PROGRAM_DIMS];
	Text first = {0};
	product_axes(r, role);
	memcpy(shape, r->extent, sizeof shape);
	bool padded = product_operand(r, &first, role, 1, false);
	for (int twins = 1 + (draw(r, 5) == 0); twins > 0; twins--) {
		Text second = {0};
		padded |= product_operand(r, &second, role, 2, draw(r, 3) == 0);
		add_left(r, local_new(r, r->left, shape));
		const char *sign = r->left == r->naxis ? "=" : draw(r, 6) ? "+=" : random_reduce(r);
		text_add(&r->text, forms[draw(r, 4)], sign, first.s, second.s);
		if (padded || draw(r, 3)) /* else every range is inferred */
			add_where(r);
		text_free(&second);
	}
	text_free(&first);
}

/* What a window does in one dimension. */
typedef struct Window {
	int stride, dilation, pad, size, inside, out;
} Window;

static Window window_new(RandomProgram *r, bool padded, int most)
{
	Window w = {.stride = 1 + draw(r, 4), .dilation = 1 + (draw(r, 3) == 0)};
	w.size = 1 + draw(r, 3) + (draw(r, 8) == 0);
	w.pad = padded ? draw(r, 3) : 0;
	int span = w.dilation * (w.size - 1) + 1;
	w.inside = span + draw(r, r->lengthy ? LONG / 2 : most);
	w.out = (w.inside + 2 * w.pad - span) / w.stride + 1;
	return w;
}

/* A condition on the indices of a window, or nothing: parts of its sum are left out. */
static bool window_guard(RandomProgram *r, Text *t, int dims)
{
	static const char *const guards[] = {"(p+r < %d ? ", "(r <= p%%%d ? ",
					     "((p+2*r)%%%d != 0 ? ", "(i < %d && r > 0 ? "};
	static const char *const plane[] = {"(r+s < %d ? ", "(q+s >= p%%%d ? "};
	int how = draw(r, 18);
	if (how < COUNT(guards))
		text_add(t, guards[how], 1 + draw(r, 5));
	else if (dims > 1 && how < COUNT(guards) + COUNT(plane))
		text_add(t, plane[how - COUNT(guards)], 1 + draw(r, 5));
	else
		return false;
	return true;
}

/* Windows in one or two dimensions: a convolution, grouped at times, or a reduction over the window
 * alone. */
static void equation_window(RandomProgram *r)
{
	bool large = draw(r, 8) == 0 && !r->loop.steps, filter = draw(r, 4), padded = draw(r, 2);
	int dims = 1 + draw(r, 2), batch = 1 + draw(r, 3), groups = draw(r, 4) ? 1 : 2;
	int in = 1 + draw(r, 9), filters = 1 + draw(r, draw(r, 3) ? 9 : 20);
	int most = !large ? 7 : dims > 1 ? 12 : 60;
	Text index = {0}, range = {0};
	Operand *x = operand_new(r, type_narrow(r), 2 + dims);
	Operand *w = filter ? operand_new(r, type_narrow(r), 2 + dims) : NULL;
	int64_t shape[4] = {batch, filter ? groups * filters : groups * in};
	x->shape[0] = batch;
	x->shape[1] = groups * in;
	for (int d = 0; d < dims; d++) {
		Window v = window_new(r, padded, most);
		text_add(&index, ",%d*%c+%d*%c-%d", v.stride, "pq"[d], v.dilation, "rs"[d], v.pad);
		text_add(&range, ", %c<%d, %c<%d", "pq"[d], v.out, "rs"[d], v.size);
		x->shape[2 + d] = v.inside;
		shape[2 + d] = v.out;
		if (w)
			w->shape[2 + d] = v.size;
	}
	text_add(&r->text, "%s%s[i,j,%s] %s ", r->text.n ? "; " : "",
		 local_new(r, 2 + dims, shape)->name, dims == 1 ? "p" : "p,q",
		 filter ? "+=" : random_reduce(r));
	bool guard = window_guard(r, &r->text, dims);
	text_add(&r->text, "%s(%s[i,", type_name(r->type), x->name);
	if (!filter)
		text_add(&r->text, "j");
	else if (groups == 1)
		text_add(&r->text, "k");
	else
		text_add(&r->text, "j/%d*%d+k", filters, in);
	text_add(&r->text, padded ? "%s] else %s)" : "%s])", index.s, number_of(r, x->type));
	if (w) {
		w->shape[0] = shape[1];
		w->shape[1] = in;
		text_add(&r->text, "*%s(%s[j,k,%s])", type_name(r->type), w->name,
			 dims == 1 ? "r" : "r,s");
	}
	if (guard)
		text_add(&r->text, " : %s)", random_number(r));
	text_add(&r->text, " where i<%d, j<%lld%s", batch, (long long)shape[1], range.s);
	if (w)
		text_add(&r->text, ", k<%d", in);
	text_free(&index);
	text_free(&range);
}

/* Equations over all dimensions of a tensor but a named one: elementwise, reduced, a product with a
 * matrix, moved. */
static void equation_dots(RandomProgram *r)
{
	static const char *const forms[] = {"%s[...] = max(%s[...], %s[...])",
					    "%s[...] %s %s[...,i]", "%s[...,j] %s %s[...,i]",
					    "%s[i,...] = %s[...,i]", "%s[] %s %s[...]"};
	const Operand *x = tensor_any(r);
	bool same = x && x->rank < PROGRAM_DIMS - 1 && draw(r, 2);
	if (!same) {
		Operand *own = operand_new(r, r->type, 1 + draw(r, 3));
		for (int d = 0; d < own->rank; d++)
			own->shape[d] = 1 + draw(r, r->lengthy && d == own->rank - 1 ? LONG : 5);
		x = own;
	}
	int64_t shape[PROGRAM_DIMS];
	int how = draw(r, COUNT(forms)), rank = x->rank;
	how = r->type == RICCI_BOOL && how == 0 ? 3 : how;
	memcpy(shape, x->shape, sizeof shape);
	const char *sign = r->type == RICCI_BOOL || draw(r, 2) ? "max=" : "+=";
	text_add(&r->text, "%s", r->text.n ? "; " : "");
	if (how == 0 || how == 3) {
		if (how == 3) {
			shape[0] = x->shape[rank - 1];
			memcpy(shape + 1, x->shape, sizeof *shape * (size_t)(rank - 1));
		}
		Operand *y = local_new(r, rank, shape);
		text_add(&r->text, forms[how], y->name, x->name, x->name);
		return;
	}
	Operand *w = how == 2 ? operand_new(r, r->type, 2) : NULL;
	if (w) {
		w->shape[0] = shape[rank - 1];
		w->shape[1] = shape[rank - 1] = 1 + draw(r, 5);
	}
	Operand *y = local_new(r, how == 4 ? 0 : rank - (how == 1), shape);
	text_add(&r->text, forms[how], y->name, sign, x->name);
	if (w)
		text_add(&r->text, "%s%s[i,j]", r->type == RICCI_BOOL ? " && " : "*", w->name);
}

/* Four equations over one operand or local: a softmax over its last dimension. */
static void equation_softmax(RandomProgram *r)
{
	int64_t rows = 1 + draw(r, 9), columns = 1 + draw(r, r->lengthy ? LONG : 20);
	Operand *x = operand_new(r, r->type, 2), *m, *e, *s, *y;
	x->shape[0] = rows;
	x->shape[1] = columns;
	m = local_new(r, 1, &rows);
	e = local_new(r, 2, x->shape);
	s = local_new(r, 1, &rows);
	y = local_new(r, 2, x->shape);
	text_add(&r->text,
		 "%s%s[i] max= %s[i,j]; %s[i,j] = exp(%s[i,j]-%s[i]); %s[i] += %s[i,j]; "
		 "%s[i,j] = %s[i,j]/%s[i]",
		 r->text.n ? "; " : "", m->name, x->name, e->name, x->name, m->name, s->name,
		 e->name, y->name, e->name, s->name);
}

/* A read in row i: of an operand or local that has these rows, at an own place within the row. */
static void row_read(RandomProgram *r, Text *t, const Operand *x)
{
	static const char *const inside[] = {"j",	   "j",	   "j",	  "min(j+2,%d)",
					     "max(j-1,0)", "%d-j", "j/2", "j-j%%4"};
	static const char *const outside[] = {"j-1", "j+3", "2*j", "j-%d"};
	bool cast = x->type != r->type, padded = x->rank > 1 && draw(r, 6) == 0;
	text_add(t, cast ? "%s(" : "(", type_name(r->type));
	text_add(t, "%s[i", x->name);
	if (x->rank > 1) {
		text_add(t, ",");
		text_add(t,
			 padded ? outside[draw(r, COUNT(outside))] : inside[draw(r, COUNT(inside))],
			 (int)x->shape[1] - 1);
	}
	text_add(t, "]");
	if (padded)
		text_add(t, " else %s", number_of(r, x->type));
	text_add(t, ")");
}

static void row_value(RandomProgram *r, Text *t, int first, int depth)
{
	static const char *const forms[][3] = {{"(", " + ", ")"},
					       {"(", " - ", ")"},
					       {"(", " * ", ")"},
					       {"max(", ", ", ")"},
					       {"(", " / (2.5 + sin(", ")))"},
					       {"tanh(", " * ", ")"},
					       {"exp(min(1.0, ", " - ", "))"},
					       {"(j < 50 ? ", " : ", ")"},
					       {"((i+j)%3 == 1 ? ", " : ", ")"},
					       {"f32(bf16(", "))*abs(", ")"}};
	if (!depth) {
		row_read(r, t, &r->tensor[first + draw(r, r->n - first)]);
		return;
	}
	const char *const *form =
		forms[draw(r, r->type == RICCI_F32 ? COUNT(forms) : COUNT(forms) - 1)];
	text_add(t, "%s", form[0]);
	row_value(r, t, first, depth - 1);
	text_add(t, "%s", form[1]);
	row_value(r, t, first, draw(r, depth));
	text_add(t, "%s", form[2]);
}

/* Equations that read each other in their own row only, some of them sums of it: many enough to run
 * row by row in one kernel. */
static void equation_rows(RandomProgram *r)
{
	int64_t shape[2] = {64 + draw(r, 3) * draw(r, 20), 64 + draw(r, 4) * draw(r, 10)};
	int first = r->n;
	for (int k = 1 + draw(r, 3); k > 0; k--) {
		Operand *x = operand_new(r, type_narrow(r), 1 + (k > 1 || draw(r, 3) > 0));
		memcpy(x->shape, shape, sizeof shape);
	}
	for (int k = 2 + draw(r, 4); k > 0; k--) {
		Text body = {0};
		row_value(r, &body, first, 1 + draw(r, 2));
		bool sum = strchr(body.s, 'j') && draw(r, 3) == 0;
		Operand *y = local_new(r, sum ? 1 : 2, shape);
		text_add(&r->text, "%s%s[i%s] %s %s where i<%lld, j<%lld", r->text.n ? "; " : "",
			 y->name, sum ? "" : ",j", sum ? random_reduce(r) : "=", body.s,
			 (long long)shape[0], (long long)shape[1]);
		text_free(&body);
	}
}

#endif
