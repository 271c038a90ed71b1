/* positions.c - what tells attention where in a sequence a row stands.
 * Input: a tensor with a dimension of time, the position of its first row. Output: a tensor of the
 * same shape. Invariant: plain equations; angles are computed in f64, so that they are right to the
 * last digit at any position. */
#include "nn/layers/internal.h"

#include <math.h>

bool layer_position(const char *who, ricci_tensor *x, const ricci_tensor *position)
{
	int rank = position ? ricci_rank(position) : 0;
	if (position && (ricci_dtype(position) != RICCI_I32 || rank > 1 ||
			 (rank == 1 && ricci_extent(position, 0) != ricci_extent(x, 0))))
		layer_fail(x, "%s: position must be i32 [], or i32 [%lld], one for each sample",
			   who, (long long)ricci_extent(x, 0));
	return !ricci_graph_error(ricci_graph_of(x));
}

const char *layer_position_of(const ricci_tensor *position)
{
	return !position ? "" : ricci_rank(position) ? " + P[b]" : " + P[]";
}

/* Indices of what depends on the position: the row, or sample and row. */
static const char *row_of(const ricci_tensor *position)
{
	return position && ricci_rank(position) ? "b,i" : "i";
}

/* U[row,k] = the position of a row times exp(k * rate). */
static void angles_text(Text *t, int64_t steps, int64_t pairs, double rate,
			const ricci_tensor *position)
{
	text_add(t, "steps = %lld; pairs = %lld; rate = %.17g; ", (long long)steps,
		 (long long)pairs, rate);
	text_add(t, "U[%s,k] = f64(i%s)*exp(f64(k)*rate) where i < steps, k < pairs; ",
		 row_of(position), layer_position_of(position));
}

ricci_tensor *ricci_rotary(ricci_tensor *x, const ricci_rotary_options *options)
{
	const char *who = "ricci_rotary";
	const Operand need[] = {
		{x, 3, 4, "x [batch, heads, time, size] or [batch, time, heads * size]"}};
	ricci_rotary_options o = RICCI_ROTARY();
	if (!layer_check(who, 1, need) ||
	    !layer_options(x, &o, sizeof o, options, "ricci_rotary_options") ||
	    !layer_position(who, x, o.position))
		return layer_nil(x);
	bool flat = ricci_rank(x) == 3;
	int64_t last = ricci_extent(x, ricci_rank(x) - 1);
	if (flat && (o.heads < 1 || last % o.heads))
		return layer_fail(x, "%s: %lld columns can't be divided into %d heads; give .heads",
				  who, (long long)last, o.heads);
	int64_t size = flat ? last / o.heads : last, rotated = o.dims ? o.dims : size;
	if (rotated < 2 || rotated % 2 || rotated > size)
		return layer_fail(x,
				  "%s: %lld of %lld numbers are rotated, it must be an even part",
				  who, (long long)rotated, (long long)size);
	double base = o.base != 0 ? o.base : 10000;
	if (!(base > 0))
		return layer_fail(x, "%s: base is %g, it must be more than 0", who, base);
	Text t = {0};
	const char *type = type_name((Type)ricci_dtype(x)), *row = row_of(o.position);
	angles_text(&t, ricci_extent(x, flat ? 1 : 2), rotated / 2,
		    -log(base) / (double)(rotated / 2), o.position);
	text_add(&t, "C[%s,k] = %s(cos(U[%s,k])); S[%s,k] = %s(sin(U[%s,k])); ", row, type, row,
		 row, type, row);
	text_add(&t, "heads = %lld; size = %lld; ",
		 (long long)(flat ? o.heads : ricci_extent(x, 1)), (long long)size);
	/* X at e and at its partner */
	const char *at = flat ? "X[b,i,h*size+e%s]" : "X[b,h,i,e%s]",
		   *half = o.halves ? "pairs" : "1";
	char here[64], next[64], before[64], step[16];
	message_print(here, sizeof here, at, "");
	message_print(step, sizeof step, "+%s", half);
	message_print(next, sizeof next, at, step);
	message_print(step, sizeof step, "-%s", half);
	message_print(before, sizeof before, at, step);
	const char *pair = o.halves ? "e%pairs" : "e/2";
	text_add(&t, "Y[b,h,i,e] = ");
	if (rotated < size)
		text_add(&t, "e < 2*pairs ? ");
	text_add(&t, "%s*C[%s,%s] + (%s ? -%s : %s)*S[%s,%s]", here, row, pair,
		 o.halves ? "e < pairs" : "e%2 == 0", next, before, row, pair);
	if (rotated < size)
		text_add(&t, " : %s", here);
	text_add(&t, " where h < heads, e < size");
	if (flat)
		text_add(&t, "; O[b,i,n] = Y[b,n/size,i,n%%size] where n < heads*size");
	ricci_tensor *operand[] = {o.position ? o.position : x, x};
	return layer_build(&t, o.position ? 2 : 1, operand);
}

ricci_tensor *ricci_sinusoidal_positions(ricci_tensor *x, ricci_tensor *position)
{
	const char *who = "ricci_sinusoidal_positions";
	const Operand need[] = {{x, 3, 3, "x [batch, time, size]"}};
	if (!layer_check(who, 1, need) || !layer_position(who, x, position))
		return layer_nil(x);
	int64_t size = ricci_extent(x, 2);
	const char *row = row_of(position);
	Text t = {0};
	/* pairs of an odd size: as if it had one number more */
	angles_text(&t, ricci_extent(x, 1), (size + 1) / 2, -2 * log(10000) / (double)size,
		    position);
	text_add(&t, "Y[b,i,e] = X[b,i,e] + %s(e%%2 == 0 ? sin(U[%s,e/2]) : cos(U[%s,e/2]))",
		 type_name((Type)ricci_dtype(x)), row, row);
	return layer_build(&t, position ? 2 : 1, (ricci_tensor *[]){position ? position : x, x});
}

ricci_tensor *ricci_learned_positions(ricci_tensor *x, ricci_tensor *table, ricci_tensor *position)
{
	const char *who = "ricci_learned_positions";
	const Operand need[] = {{x, 3, 3, "x [batch, time, size]"},
				{table, 2, 2, "table [positions, size]"}};
	if (!layer_check(who, 2, need) || !layer_position(who, x, position))
		return layer_nil(x);
	if (ricci_extent(table, 1) != ricci_extent(x, 2) ||
	    ricci_extent(table, 0) < ricci_extent(x, 1))
		return layer_fail(x, "%s: table is [%lld,%lld], x needs [%lld or more,%lld]", who,
				  (long long)ricci_extent(table, 0),
				  (long long)ricci_extent(table, 1), (long long)ricci_extent(x, 1),
				  (long long)ricci_extent(x, 2));
	Text t = {0};
	if (position)
		text_add(&t, "Y[b,i,e] = X[b,i,e] + W[min(max(i%s, 0), W.size(0)-1), e]",
			 layer_position_of(position));
	else
		text_add(&t, "Y[b,i,e] = X[b,i,e] + W[i,e] where i < X.size(1)");
	return layer_build(&t, position ? 3 : 2, (ricci_tensor *[]){x, table, position});
}
