/* test_random.c - `ricci run` and `ricci grad` on random programs: every backend gives what the
 * interpreter gives, and the gradients are those of finite differences (f64 programs).
 * RICCI_FUZZ: the number of programs; RICCI_SEED: the first one's number. */
#include "tests/tools/shell.h"
#include "tools/npy.c"

enum { MAX_OPERANDS = 4, MAX_INDICES = 6, MAX_DIMS = 3 };

static uint64_t state;

static int draw(int n) /* 0 .. n-1; splitmix64 */
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (int)((z ^ (z >> 31)) >> 33) % n;
}

static double draw_real(void)
{
	return draw(20001) / 10000.0 - 1;
}

/* ---- a program: text, operands with data, name of its result ---- */

typedef struct Tensor {
	char name[4];
	Type type;
	int rank;
	int64_t shape[MAX_DIMS];
	double data[4096]; /* operands: the numbers, in the type's precision */
} Tensor;

typedef struct Random {
	Type type;	  /* of all floats */
	int nindex, left; /* indices of the equation at hand; the first `left` stand on the left */
	int64_t extent[MAX_INDICES];
	bool used[MAX_INDICES];
	int ntensor, noperand; /* operands and locals so far; operands alone */
	Tensor tensor[MAX_OPERANDS + 3];
	bool operand[MAX_OPERANDS + 3];
	Text text;
} Random;

static char index_letter(int k)
{
	return "ijkpqr"[k];
}

/* An index expression over the equation's indices with values 0 .. *most. */
static void random_index(Random *r, Text *t, int64_t *most)
{
	int k = draw(r->nindex), j = draw(r->nindex), c = draw(3);
	char a = index_letter(k), b = index_letter(j);
	int64_t x = r->extent[k] - 1, y = r->extent[j] - 1;
	r->used[k] = true;
	switch (draw(10)) {
	case 0:
		text_add(t, "%c+%d", a, c);
		*most = x + c;
		break;
	case 1:
		text_add(t, "2*%c+%c", a, b);
		r->used[j] = true;
		*most = 2 * x + y;
		break;
	case 2:
		text_add(t, "%c/%d", a, c + 1);
		*most = x / (c + 1);
		break;
	case 3:
		text_add(t, "%c%%%d", a, c + 1);
		*most = x < c ? x : c;
		break;
	case 4:
		text_add(t, "%lld-%c", (long long)x, a);
		*most = x;
		break;
	case 5:
		text_add(t, "(%c+3*%c)/2", a, b);
		r->used[j] = true;
		*most = (x + 3 * y) / 2;
		break;
	default:
		text_add(t, "%c", a);
		*most = x;
	}
}

/* A read of a new operand whose shape fits, or, by a padded read, of one that is there. */
static void random_read(Random *r, Text *t)
{
	int64_t most;
	if (r->ntensor && (r->noperand == MAX_OPERANDS || draw(3) == 0)) {
		const Tensor *x = &r->tensor[draw(r->ntensor)];
		text_add(t, "(%s[", x->name);
		for (int d = 0; d < x->rank; d++) {
			text_add(t, d ? "," : "");
			random_index(r, t, &most);
			text_add(t, "%s", draw(2) ? "" : "-1");
		}
		text_add(t, "] else %s)", draw(2) ? "0.0" : "0.5");
		return;
	}
	Tensor *x = &r->tensor[r->ntensor];
	*x = (Tensor){.type = r->type, .rank = draw(MAX_DIMS + 1)};
	snprintf(x->name, sizeof x->name, "%c", "ABCD"[r->noperand++]);
	r->operand[r->ntensor++] = true;
	text_add(t, "%s[", x->name);
	for (int d = 0; d < x->rank; d++) {
		text_add(t, d ? "," : "");
		random_index(r, t, &most);
		x->shape[d] = most + 1 + (draw(4) == 0);
	}
	text_add(t, "]");
}

static void random_expr(Random *r, Text *t, int depth)
{
	static const char *const calls[] = {"tanh(", "sigmoid(",      "sin(",	    "exp(0.5*",
					    "erf(",  "sqrt(1.5+0.1*", "log(9.0+",   "rsqrt(9.0+",
					    "cos(",  "log1p(0.05*",   "expm1(0.3*", "abs("};
	static const char *const infix[] = {" + ", " - ", " * ", " * ", " / (4.5 + "};
	int how = depth > 0 ? draw(12) : 9 + draw(2);
	if (how < 5) {
		text_add(t, "(");
		random_expr(r, t, depth - 1);
		text_add(t, "%s", infix[how]);
		random_expr(r, t, depth - 1);
		text_add(t, how == 4 ? "))" : ")");
	} else if (how < 7) {
		text_add(t, "%s", calls[draw(COUNT(calls))]);
		random_expr(r, t, depth - 1);
		text_add(t, ")");
	} else if (how == 7) {
		text_add(t, draw(2) ? "min(" : "max(");
		random_expr(r, t, depth - 1);
		text_add(t, ", ");
		random_expr(r, t, depth - 1);
		text_add(t, ")");
	} else if (how == 8) {
		int k = draw(r->nindex);
		r->used[k] = true;
		text_add(t, "(%c%s%d ? ", index_letter(k), draw(2) ? " < " : " % 2 == ", draw(2));
		random_expr(r, t, depth - 1);
		text_add(t, " : ");
		random_expr(r, t, depth - 1);
		text_add(t, ")");
	} else if (how == 9 && draw(2)) {
		text_add(t, "%.2f", draw_real());
	} else {
		random_read(r, t);
	}
}

/* A local that nobody reads would be a result of its own: the last equation reads its first
 * element. */
static void read_locals(Random *r, Text *body)
{
	for (int k = 0; k < r->ntensor; k++) {
		const Tensor *x = &r->tensor[k];
		char access[8];
		snprintf(access, sizeof access, "%s[", x->name);
		const char *first = r->operand[k] ? NULL : strstr(r->text.s, access);
		if (first && !strstr(first + 1, access) && !strstr(body->s, access))
			text_add(body, " + 0.5*%s%s]", access,
				 &"0,0,0"[x->rank ? 6 - 2 * x->rank : 5]);
	}
}

/* One more equation; its tensor becomes readable by the next. */
static void random_equation(Random *r, bool last)
{
	static const char *const signs[] = {"+=", "+=", "max=", "min=", "*="};
	Text body = {0};
	r->left = draw(MAX_DIMS + 1);
	r->nindex = r->left + (draw(4) ? 1 + draw(2) : 0);
	r->nindex += !r->nindex;
	memset(r->used, 0, sizeof r->used);
	for (int k = 0; k < r->nindex; k++)
		r->extent[k] = 1 + draw(4);
	random_expr(r, &body, 3);
	if (last)
		read_locals(r, &body);
	int reduced = 0;
	for (int k = r->left; k < r->nindex; k++)
		reduced += r->used[k];
	Tensor *y = &r->tensor[r->ntensor];
	*y = (Tensor){.type = r->type, .rank = r->left};
	snprintf(y->name, sizeof y->name, last ? "Y" : "L%d", r->ntensor);
	text_add(&r->text, "%s[", y->name);
	for (int k = 0; k < r->left; k++) {
		text_add(&r->text, k ? ",%c" : "%c", index_letter(k));
		y->shape[k] = r->extent[k];
	}
	/* a number alone would be f32 */
	text_add(&r->text, "] %s %s(%s)", reduced ? signs[draw(COUNT(signs))] : "=",
		 type_name(r->type), body.s);
	const char *before = " where ";
	for (int k = 0; k < r->nindex; k++)
		if (k < r->left || r->used[k]) {
			text_add(&r->text, "%s%c<%lld", before, index_letter(k),
				 (long long)r->extent[k]);
			before = ", ";
		}
	text_add(&r->text, last ? "" : "; ");
	text_free(&body);
	r->ntensor++;
}

static void random_program(Random *r, uint64_t number)
{
	memset(r, 0, sizeof *r);
	state = number * 77 + 1;
	r->type = draw(2) ? RICCI_F32 : RICCI_F64;
	int n = 1 + draw(3);
	for (int k = 0; k < n; k++)
		random_equation(r, k == n - 1);
	for (int k = 0; k < r->ntensor; k++) {
		Tensor *x = &r->tensor[k];
		for (int i = 0; i < COUNT(x->data) && r->operand[k]; i++)
			x->data[i] = r->type == RICCI_F32 ? (float)draw_real() : draw_real();
	}
}

/* ---- files and runs ---- */

static int64_t size_of(const Tensor *x)
{
	int64_t n = 1;
	for (int d = 0; d < x->rank; d++)
		n *= x->shape[d];
	return n;
}

static void tensor_write(const Tensor *x)
{
	char name[20];
	double data[COUNT(x->data)];
	Error e = {0};
	for (int64_t i = 0; i < size_of(x); i++)
		type_store(x->type, data, (size_t)i, x->data[i]);
	snprintf(name, sizeof name, "%s.npy", x->name);
	CHECK_INT(npy_write(name, x->type, x->rank, x->shape, data, &e), 0);
}

/* Reads NAME.npy back; false when it isn't there. */
static bool values_read(const char *file, int64_t room, double *v, int64_t *n)
{
	Npy a;
	Error e = {0};
	if (npy_read(file, &a, &e))
		return false;
	*n = (int64_t)(a.bytes / type_size(a.type));
	for (int64_t i = 0; i < *n && i < room; i++)
		v[i] = type_load(a.type, a.data, (size_t)i);
	buffer_free(a.data);
	return *n <= room;
}

/* ricci COMMAND TEXT A=A.npy ... --backend B -o NAME=OUT.npy for each of `names`. */
static bool run(const Random *r, const char *command, const char *backend, int nout,
		const char *const *names)
{
	static char word[16][32];
	const char *words[40] = {command, r->text.s, "--backend", backend};
	int n = 4, w = 0;
	for (int k = 0; k < r->ntensor; k++)
		if (r->operand[k]) {
			snprintf(word[w], sizeof word[w], "%s=%s.npy", r->tensor[k].name,
				 r->tensor[k].name);
			words[n++] = word[w++];
		}
	for (int k = 0; k < nout; k++) {
		snprintf(word[w], sizeof word[w], "-o%s=%s.out.npy", names[k], names[k]);
		words[n++] = word[w++];
	}
	words[n] = NULL;
	ricci(words);
	return status == 0;
}

static void complain(const Random *r, const char *command, const char *backend, uint64_t number)
{
	fprintf(stderr, "program %llu, %s, %s: %s\n%s", (unsigned long long)number, command,
		backend, r->text.s, err);
	for (int k = 0; k < r->ntensor; k++)
		if (r->operand[k]) {
			fprintf(stderr, " %s=", r->tensor[k].name);
			for (int d = 0; d < r->tensor[k].rank; d++)
				fprintf(stderr, d ? "x%lld" : "%lld",
					(long long)r->tensor[k].shape[d]);
			fprintf(stderr, "%s:%s", r->tensor[k].rank ? "" : "scalar",
				type_name(r->type));
		}
	fprintf(stderr, "\n");
}

/* The same up to rounding, relative to the greatest value; one that is not a number must be none.
 */
static bool agree(int64_t n, const double *a, const double *b, double tol)
{
	double scale = 1e-30;
	for (int64_t i = 0; i < n; i++)
		scale = isfinite(b[i]) && fabs(b[i]) > scale ? fabs(b[i]) : scale;
	for (int64_t i = 0; i < n; i++)
		if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) ||
		      fabs(a[i] - b[i]) <= tol * scale))
			return false;
	return true;
}

static double want[8][4096], got[4096];
static int64_t nwant[8];

/* All backends against the interpreter; the interpreter's values stay in want. */
static bool compare(const Random *r, const char *command, int nout, const char *const *names,
		    uint64_t number)
{
	static const char *const with[] = {"interp", "tcc", "cc"};
	double tol = r->type == RICCI_F32 ? 3e-5 : 1e-11;
	for (int b = 0; b < 2 + shell_has_cc(); b++) {
		bool ok = run(r, command, with[b], nout, names);
		for (int k = 0; k < nout && ok; k++) {
			char file[20];
			int64_t n;
			snprintf(file, sizeof file, "%s.out.npy", names[k]);
			if (!b) {
				ok = values_read(file, 4096, want[k], &nwant[k]);
				continue;
			}
			ok = values_read(file, 4096, got, &n) && n == nwant[k] &&
			     agree(n, got, want[k], tol);
		}
		CHECK(ok);
		if (!ok) {
			complain(r, command, with[b], number);
			return false;
		}
	}
	return true;
}

/* The sum of the result as a function of one element of operand x, by the interpreter. */
static double total(Random *r, Tensor *x, int64_t at, double by)
{
	static const char *const result[] = {"Y"};
	double old = x->data[at], sum = NAN;
	int64_t n;
	x->data[at] += by;
	tensor_write(x);
	x->data[at] = old;
	if (run(r, "run", "interp", 1, result) && values_read("Y.out.npy", 4096, got, &n)) {
		sum = 0;
		for (int64_t i = 0; i < n; i++)
			sum += got[i];
	}
	tensor_write(x);
	return sum;
}

/* One element of each gradient in want against finite differences. Where the two one-sided ones
 * disagree there is a kink, and nothing is to be said. */
static void differences(Random *r, uint64_t number)
{
	int g = 0;
	for (int k = 0; k < r->ntensor; k++) {
		if (!r->operand[k])
			continue;
		Tensor *x = &r->tensor[k];
		int64_t at = draw((int)size_of(x));
		double h = 1e-5, up = total(r, x, at, h), down = total(r, x, at, -h);
		double here = total(r, x, at, 0), slope = (up - down) / (2 * h);
		double bend = fabs(up - 2 * here + down) / h;
		bool ok = bend > 1e-2 * (1 + fabs(slope)) ||
			  fabs(slope - want[g][at]) <= 1e-3 * (1 + fabs(slope));
		CHECK(ok);
		if (!ok) {
			fprintf(stderr, "d%s[%lld] is %.10g, differences say %.10g\n", x->name,
				(long long)at, want[g][at], slope);
			complain(r, "grad", "interp", number);
		}
		g++;
	}
}

int main(int argc, char **argv)
{
	static Random r;
	static const char *const result[] = {"Y"};
	(void)argc;
	shell_open(argv[0]);
	const char *count = getenv("RICCI_FUZZ"), *first = getenv("RICCI_SEED");
	uint64_t number = first ? strtoull(first, NULL, 10) : 1;
	for (uint64_t end = number + (count ? strtoull(count, NULL, 10) : 10); number < end;
	     number++) {
		const char *operand[MAX_OPERANDS];
		int n = 0;
		random_program(&r, number);
		for (int k = 0; k < r.ntensor; k++)
			if (r.operand[k]) {
				tensor_write(&r.tensor[k]);
				operand[n++] = r.tensor[k].name;
			}
		if (compare(&r, "run", 1, result, number) && n &&
		    compare(&r, "grad", n, operand, number) && r.type == RICCI_F64)
			differences(&r, number);
		text_free(&r.text);
	}
	shell_close();
	return check_done();
}
