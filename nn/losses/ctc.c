/* ctc.c - connectionist temporal classification (Graves, Fernandez, Gomez, Schmidhuber 2006).
 * Input: logits of each step, labels, and how many of both count. Output: the mean loss.
 * The forward variables of equations 5 to 8 are two states of a loop over time, logarithms:
 * A[b,s] of the paths that end in the blank before label s, B[b,s] of those that end in label s.
 * Invariant: what is impossible is -1e30, so that no infinity is subtracted from another; a
 * logarithm of a sum of exponentials is shifted by floor(max), which has no gradient to compute. */
#include "nn/nn.h"

#include <stdarg.h>

typedef struct Ctc {
	ricci_graph *g;
	ricci_tensor *labels, *steps, *lengths;
	long long batch, time, room; /* room: labels of a sample, at most */
	const char *type;
	int blank;
} Ctc;

/* One equation or several, with numbers in it. */
static ricci_tensor *add(Ctc *c, int n, ricci_tensor *const *operands, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static ricci_tensor *add(Ctc *c, int n, ricci_tensor *const *operands, const char *fmt, ...)
{
	char text[1024];
	ricci_tensor *y = &c->g->nil;
	va_list ap;
	va_start(ap, fmt);
	message_vprint(text, sizeof text, fmt, ap);
	va_end(ap);
	return ricci_ops(c->g, text, n, operands, &(int){1}, &y) ? &c->g->nil : y;
}
#define OPERANDS(...)                                                                              \
	(int)(sizeof((ricci_tensor *[]){__VA_ARGS__}) / sizeof(ricci_tensor *)),                   \
		(ricci_tensor *[])                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* An input that stands for a step's value; no other tensor of the graph has its name. */
static ricci_tensor *variable(Ctc *c, const char *name, const ricci_tensor *like, int from)
{
	char full[64];
	int64_t shape[RICCI_MAX_RANK];
	for (int d = from; d < ricci_rank(like); d++)
		shape[d - from] = ricci_extent(like, d);
	snprintf(full, sizeof full, "ctc.%s%d", name, c->g->ntensor);
	return ricci_input(c->g, full, ricci_dtype(like), ricci_rank(like) - from, shape);
}

/* The loop; final[0] and final[1] are the forward variables after each sample's last step. */
static void forward(Ctc *c, ricci_tensor *log_p, ricci_tensor **final)
{
	ricci_tensor *blanks = add(c, OPERANDS(log_p), "Y[t,b] = P[t,b,%d]", c->blank);
	ricci_tensor *marks = add(c, OPERANDS(log_p, c->labels), "Y[t,b,s] = P[t,b,T[b,s]]");
	ricci_tensor *skip = add(c, OPERANDS(c->labels), "Y[b,s] = s > 0 && T[b,s] != T[b,s-1]");
	ricci_tensor *times = add(c, 0, NULL, "Y[t:%lld] = i32(t)", c->time);
	ricci_tensor *a0 = add(c, 0, NULL, "Y[b:%lld,s:%lld] = %s(s == 0 ? 0.0 : -1e30)", c->batch,
			       c->room + 1, c->type);
	ricci_tensor *b0 =
		add(c, 0, NULL, "Y[b:%lld,s:%lld] = %s(-1e30)", c->batch, c->room, c->type);
	if (ricci_graph_error(c->g))
		return;
	ricci_tensor *e = variable(c, "e", blanks, 1), *f = variable(c, "f", marks, 1);
	ricci_tensor *t = variable(c, "t", times, 1);
	ricci_tensor *a = variable(c, "a", a0, 0), *b = variable(c, "b", b0, 0);
	ricci_tensor *a1 = add(c, OPERANDS(a, b, e),
			       "M[b,s] = floor(max(A[b,s], B[b,s-1] else (-1e30)));"
			       "Y[b,s] = E[b] + M[b,s] + log(exp(A[b,s] - M[b,s])"
			       " + exp((B[b,s-1] else (-1e30)) - M[b,s]))");
	ricci_tensor *b1 = add(c, OPERANDS(skip, b, a, f),
			       "before = S[b,s] ? (B[b,s-1] else (-1e30)) : -1e30;"
			       "M[b,s:%lld] = floor(max(max(B[b,s], A[b,s]), before));"
			       "Y[b,s:%lld] = F[b,s] + M[b,s] + log(exp(B[b,s] - M[b,s])"
			       " + exp(A[b,s] - M[b,s]) + exp(before - M[b,s]))",
			       c->room, c->room);
	if (c->steps) {
		const char *kept = "Y[b,s] = T[] < N[b] ? X[b,s] : O[b,s]";
		a1 = add(c, OPERANDS(t, c->steps, a1, a), "%s", kept);
		b1 = add(c, OPERANDS(t, c->steps, b1, b), "%s", kept);
	}
	ricci_loop loop =
		RICCI_LOOP(.steps = c->time, .nslice = 3,
			   .slice = (ricci_slice[]){{e, blanks}, {f, marks}, {t, times}},
			   .ncarry = 2, .carry = (ricci_carry[]){{a, a0, a1}, {b, b0, b1}});
	ricci_scan(c->g, &loop, final, NULL);
}

/* The paths that end in the last label, or in the blank after it. */
static ricci_tensor *mean(Ctc *c, ricci_tensor *a, ricci_tensor *b)
{
	ricci_tensor *u, *w, *n = c->lengths;
	if (!n)
		n = add(c, 0, NULL, "Y[b:%lld] = i32(%lld)", c->batch, c->room);
	if (c->lengths) {
		u = add(c, OPERANDS(a, n), "Y[b] = A[b,N[b]]");
		w = add(c, OPERANDS(b, n), "Y[b] = B[b,N[b]-1] else (-1e30)");
	} else {
		u = add(c, OPERANDS(a), "Y[b] = A[b,%lld]", c->room);
		w = add(c, OPERANDS(b), "Y[b] = B[b,%lld]", c->room - 1);
	}
	return add(c, OPERANDS(u, w, n),
		   "M[b] = floor(max(U[b], W[b]));"
		   "L[b] = M[b] < -1e29 ? inf : -M[b] - log(exp(U[b] - M[b]) + exp(W[b] - M[b]));"
		   "Y[] += L[b] / (%s(max(N[b], 1)) * %lld.0)",
		   c->type, c->batch);
}

static ricci_tensor *loss(ricci_tensor *logits, ricci_tensor *labels, ricci_tensor *steps,
			  ricci_tensor *lengths, int blank)
{
	Ctc c = {.g = ricci_graph_of(logits),
		 .labels = labels,
		 .lengths = lengths,
		 .time = ricci_extent(logits, 0),
		 .batch = ricci_extent(logits, 1),
		 .room = ricci_extent(labels, 1),
		 .type = type_name(ricci_dtype(logits)),
		 .blank = blank};
	/* read from a table, so that their range is checked when they are fed */
	if (steps)
		c.steps =
			add(&c, OPERANDS(steps), "C[t:%lld] = i32(t); Y[b] = C[N[b]]", c.time + 1);
	ricci_tensor *log_p = add(&c, OPERANDS(logits),
				  "M[t,b] max= X[t,b,m]; H[t,b,m] = X[t,b,m] - floor(M[t,b]);"
				  "Z[t,b] += exp(H[t,b,m]); Y[t,b,m] = H[t,b,m] - log(Z[t,b])");
	ricci_tensor *final[2] = {layer_nil(logits), layer_nil(logits)};
	forward(&c, log_p, final);
	return ricci_graph_error(c.g) ? layer_nil(logits) : mean(&c, final[0], final[1]);
}

ricci_tensor *ricci_ctc_loss(ricci_tensor *logits, ricci_tensor *labels, ricci_tensor *steps,
			     ricci_tensor *lengths, int blank)
{
	const char *who = "ricci_ctc_loss";
	const Operand o[] = {{logits, 3, 3, "logits [step, batch, class]"},
			     {labels, 2, 2, "labels [batch, position]"}};
	const Operand counts[] = {{logits, 3, 3, "logits [step, batch, class]"},
				  {steps, 1, 1, "steps [batch]"},
				  {lengths, 1, 1, "lengths [batch]"}};
	if (!layer_check(who, 2, o) || (steps && !layer_check(who, 2, counts)) ||
	    (lengths && !layer_check(who, 2, (Operand[]){counts[0], counts[2]})))
		return layer_nil(logits);
	if (blank < 0 || blank >= ricci_extent(logits, 2))
		return layer_fail(logits, "%s: the blank is class %d, there are %lld classes", who,
				  blank, (long long)ricci_extent(logits, 2));
	/* 16 bits hold neither -1e30 nor a sum over many steps */
	ricci_type type = ricci_dtype(logits);
	if (type != RICCI_BF16 && type != RICCI_F16)
		return loss(logits, labels, steps, lengths, blank);
	ricci_tensor *wide = ricci_op(ricci_graph_of(logits), "Y[...] = f32(X[...])", logits);
	wide = loss(wide, labels, steps, lengths, blank);
	return ricci_op(ricci_graph_of(logits),
			type == RICCI_F16 ? "Y[] = f16(X[])" : "Y[] = bf16(X[])", wide);
}
