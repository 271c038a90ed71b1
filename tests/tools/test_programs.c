/* test_programs.c - a thousand random programs and their gradients: what the kernels of tcc and cc
 * compute is what the interpreter computes, and gradients are those of finite differences in f64.
 * Many programs are one graph, so that the compiler starts once for all of their kernels. A program
 * that fails is made smaller while it fails, and printed.
 * RICCI_FUZZ: the number of programs; RICCI_SEED: the first one's number. */
#include "core/core.h"
#include "runtime/runtime.h"
#include "tests/check.h"
#include "tests/tools/random_program.h"

#include <float.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
enum { PROGRAMS = 160 };
#else
enum { PROGRAMS = 1000 };
#endif
enum { BATCH = 40, RESULTS = 16, ROOTS = RESULTS + 12 };

/* A program in a graph, with its data and what it must give. */
typedef struct Case {
	const RandomProgram *p;
	int nbind, nroot, nresult, nwrt;
	ricci_tensor *operand[12], *root[ROOTS]; /* roots: results, then gradients of the last */
	Binding bind[13];
	int seed; /* its place in bind, or -1 */
	double *want[ROOTS], *magnitude[ROOTS];
	void *got[ROOTS];
} Case;

static const RandomProgram *current; /* for the message of a crash */

static const char *operand_list(const RandomProgram *p)
{
	static char list[1000];
	int n = 0;
	for (int k = 0; k < p->n; k++) {
		const Operand *x = &p->tensor[k];
		if (x->local)
			continue;
		n += snprintf(list + n, sizeof list - (size_t)n, " %s=", x->name);
		for (int d = 0; d < x->rank; d++)
			n += snprintf(list + n, sizeof list - (size_t)n, d ? "x%lld" : "%lld",
				      (long long)x->shape[d]);
		n += snprintf(list + n, sizeof list - (size_t)n, "%s:%s", x->rank ? "" : "scalar",
			      type_name(x->type));
	}
	return list;
}

static void on_crash(int sig)
{
	fprintf(stderr, "signal %d near program %llu: '%s'%s\n", sig,
		(unsigned long long)(current ? current->number : 0), current ? current->text.s : "",
		current ? operand_list(current) : "");
	_exit(1);
}

/* ---- a program becomes a case */

static void bind_add(Case *c, ricci_tensor *t, const Operand *x)
{
	void *data = calloc(1, ricci_bytes(t) + 64);
	operand_fill(x, c->p->number, tensor_size(t->node), data);
	c->operand[c->nbind] = t;
	c->bind[c->nbind++] = (Binding){t->node, data};
}

static const Operand *operand_named(const RandomProgram *p, const char *name)
{
	for (int k = 0; k < p->n; k++)
		if (!p->tensor[k].local && !strcmp(p->tensor[k].name, name))
			return &p->tensor[k];
	return NULL;
}

static void case_gradients(Case *c, ricci_graph *g)
{
	ricci_tensor *y = c->root[c->nresult - 1], *seed = NULL, *wrt[12];
	char name[40];
	if (!type_is_float(y->node->type))
		return;
	for (int k = 0; k < c->nbind; k++)
		if (type_is_float(c->operand[k]->node->type))
			wrt[c->nwrt++] = c->operand[k];
	if (!c->nwrt)
		return;
	if (c->p->number & 1) {
		Operand x = {.name = "seed", .type = y->node->type};
		int64_t shape[RICCI_MAX_RANK];
		for (int d = 0; d < ricci_rank(y); d++)
			shape[d] = ricci_extent(y, d);
		snprintf(name, sizeof name, "seed_%llu", (unsigned long long)c->p->number);
		seed = ricci_input(g, name, x.type, ricci_rank(y), shape);
		c->seed = c->nbind;
		bind_add(c, seed, &x);
	}
	ricci_grad(g, y, seed, c->nwrt, wrt, c->root + c->nresult);
	c->nroot += c->nwrt;
}

static int case_open(Case *c, ricci_graph *g, const RandomProgram *p)
{
	const char **names;
	char name[40];
	*c = (Case){.p = p, .seed = -1, .nresult = RESULTS};
	IR_ENTER(&g->ir, RICCI_ENOMEM);
	int n = notation_operands(&g->ir, p->text.s, &names);
	for (int k = 0; k < n; k++) {
		const Operand *x = operand_named(p, names[k]);
		if (!x)
			n = -1;
		else {
			snprintf(name, sizeof name, "%s_%llu", x->name,
				 (unsigned long long)p->number);
			bind_add(c, ricci_input(g, name, x->type, x->rank, x->shape), x);
		}
	}
	IR_LEAVE(&g->ir);
	if (n < 0)
		return RICCI_ESYNTAX;
	if (ricci_ops(g, p->text.s, n, c->operand, &c->nresult, c->root))
		return ricci_graph_error(g);
	c->nroot = c->nresult;
	case_gradients(c, g);
	return ricci_graph_error(g);
}

static void case_close(Case *c)
{
	for (int k = 0; k < c->nbind; k++)
		free((void *)(uintptr_t)c->bind[k].data);
	for (int k = 0; k < c->nroot; k++) {
		free(c->want[k]);
		free(c->magnitude[k]);
		free(c->got[k]);
	}
}

static int case_judge(Case *c, Error *err)
{
	int code = 0;
	for (int k = 0; k < c->nroot && !code; k++) {
		Node *t = c->root[k]->node;
		size_t n = (size_t)tensor_size(t);
		c->want[k] = calloc(n, 8);
		c->magnitude[k] = calloc(n, 8);
		c->got[k] = malloc(tensor_bytes(t) + 64);
		code = interp_tensor(&c->root[0]->g->ir, t, c->nbind, c->bind, (RandomState){0, 0},
				     c->want[k], type_is_float(t->type) ? c->magnitude[k] : NULL,
				     err);
	}
	return code;
}

/* ---- comparing */

static double precision(Type t)
{
	return t == RICCI_F64 ? 1e-12 : t == RICCI_F32 ? 1e-5 : t == RICCI_F16 ? 4e-3 : 3e-2;
}

static bool root_agrees(const Case *c, int k, bool report)
{
	Node *t = c->root[k]->node;
	int64_t n = tensor_size(t);
	double scale = 0, eps = precision(t->type);
	double largest = t->type == RICCI_F64 ? DBL_MAX : t->type == RICCI_F16 ? 65504 : FLT_MAX;
	for (int64_t i = 0; i < n && type_is_float(t->type); i++) {
		double a = fabs(c->want[k][i]);
		scale = isfinite(a) && a > scale ? a : scale;
	}
	for (int64_t i = 0; i < n; i++) {
		double got, want = c->want[k][i], size = c->magnitude[k][i];
		double tol = eps * ((isfinite(size) ? size : 0) + scale + 1);
		bool ok;
		if (type_is_float(t->type)) {
			got = type_load(t->type, c->got[k], (size_t)i);
			/* out of the type's range on the way, or nearly: anything large */
			ok = check_near(got, want, tol) ||
			     (fabs(want) + tol > largest &&
			      (!isfinite(got) || fabs(got) > largest / 4));
		} else {
			int64_t x = type_load_int(t->type, c->got[k], (size_t)i);
			int64_t y = ((int64_t *)c->want[k])[i];
			ok = x == y, got = (double)x, want = (double)y, tol = 0;
		}
		if (!ok && report)
			fprintf(stderr, "%s %d, element %lld: %.9g, should be %.9g within %.2g\n",
				k < c->nresult ? "result" : "gradient",
				k < c->nresult ? k : k - c->nresult, (long long)i, got, want, tol);
		if (!ok)
			return false;
	}
	return true;
}

static int evaluate_cases(ricci_graph *g, int n, Case *c, const char *backend, Error *err)
{
	int nroot = 0, nbind = 0;
	Node **root = calloc((size_t)n * ROOTS, sizeof *root);
	void **out = calloc((size_t)n * ROOTS, sizeof *out);
	Binding *bind = calloc((size_t)n * 13, sizeof *bind);
	Evaluation e = {.backend = backend_find(backend), .threads = 2, .repeat = 1};
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < c[i].nroot; k++) {
			root[nroot] = c[i].root[k]->node;
			out[nroot++] = c[i].got[k];
		}
		for (int k = 0; k < c[i].nbind; k++)
			bind[nbind++] = c[i].bind[k];
	}
	int code = evaluate(&g->ir, nroot, root, nbind, bind, out, &e, err);
	free(root);
	free(out);
	free(bind);
	return code;
}

/* ---- finite differences: along one random direction, from the interpreter */

static double loss(Case *c, double **base, double by, Error *err)
{
	Node *y = c->root[c->nresult - 1]->node;
	size_t n = (size_t)tensor_size(y);
	double *v = malloc(n * sizeof *v), sum = 0;
	for (int k = 0; k < c->nbind; k++) {
		double *x = (double *)(uintptr_t)c->bind[k].data;
		if (base[k] && k != c->seed)
			for (int64_t i = 0; i < tensor_size(c->bind[k].tensor); i++)
				x[i] = base[k][i] +
				       by * (double)(mix((uint64_t)(k * 9999 + i)) % 1000) / 1000;
	}
	if (interp_tensor(&c->root[0]->g->ir, y, c->nbind, c->bind, (RandomState){0, 0}, v, NULL,
			  err))
		sum = NAN;
	for (size_t i = 0; i < n; i++)
		sum += v[i] * (c->seed < 0 ? 1 : ((const double *)c->bind[c->seed].data)[i]);
	free(v);
	return sum;
}

/* Where the slopes on both sides differ there is a kink, and nothing is to be said. */
static bool differences_agree(Case *c, bool report)
{
	double *base[13] = {0}, slope = 0, size = 0, h = 1e-6;
	int g = c->nresult;
	Error err = {0};
	if (c->p->type != RICCI_F64 || !c->nwrt)
		return true;
	for (int k = 0; k < c->nbind; k++) {
		int64_t n = tensor_size(c->bind[k].tensor);
		if (c->bind[k].tensor->type != RICCI_F64)
			continue;
		base[k] = malloc((size_t)n * 8);
		memcpy(base[k], c->bind[k].data, (size_t)n * 8);
		for (int64_t i = 0; i < n && k != c->seed; i++) {
			double d = (double)(mix((uint64_t)(k * 9999 + i)) % 1000) / 1000;
			slope += d * c->want[g][i];
			size += fabs(d * c->want[g][i]);
		}
		g += k != c->seed;
	}
	double up = loss(c, base, h, &err), down = loss(c, base, -h, &err);
	double here = loss(c, base, 0, &err), found = (up - down) / (2 * h);
	double bend = fabs(up - 2 * here + down) / h, noise = 1e-7 * (fabs(up) + fabs(down));
	for (int k = 0; k < c->nbind; k++)
		free(base[k]);
	bool ok = !isfinite(found) || bend > 1e-4 * (1 + size) ||
		  fabs(found - slope) <= 1e-4 * (1 + size) + noise;
	if (!ok && report)
		fprintf(stderr, "slope %.10g, differences say %.10g\n", slope, found);
	return ok;
}

/* ---- one program alone: what is wrong with it? */

typedef enum { GOOD, INVALID, WRONG_RESULT, WRONG_GRADIENT, NO_RESULT, NO_GRADIENT } Verdict;

static Verdict program_verdict(const RandomProgram *p, const char *backend, bool report)
{
	ricci_graph *g = ricci_graph_new();
	Verdict verdict = GOOD;
	Case c;
	Error err = {0};
	current = p;
	if (case_open(&c, g, p)) {
		verdict = c.nwrt ? NO_GRADIENT : INVALID;
		if (report)
			fprintf(stderr, "%s\n", ricci_error_message(g));
	} else if (case_judge(&c, &err) || evaluate_cases(g, 1, &c, backend, &err)) {
		verdict = NO_RESULT;
		if (report)
			fprintf(stderr, "%s\n", err.text);
	} else {
		for (int k = 0; k < c.nroot && verdict == GOOD; k++)
			if (!root_agrees(&c, k, report))
				verdict = WRONG_RESULT;
		if (verdict == GOOD && !differences_agree(&c, report))
			verdict = WRONG_GRADIENT;
	}
	case_close(&c);
	ricci_graph_free(g);
	return verdict;
}

/* ---- making a failing text smaller */

/* Takes out what stands in where for names that appear nowhere else. */
static void text_unused(char *s)
{
	for (char *w = s; (w = strstr(w, " where ")); w++) {
		char *begin = w, *end = w + strcspn(w, ";");
		while (begin > s && begin[-1] != ';')
			begin--;
		for (char *range = w + 7; range < end;) {
			char *next = range + strcspn(range, ",;");
			bool used = false;
			for (char *u = begin; u < w; u++)
				used |= *u == *range &&
					(u == begin ||
					 !strchr("abcdefghijklmnopqrstuvwxyz", u[-1])) &&
					!strchr("abcdefghijklmnopqrstuvwxyz(0123456789",
						u[1] ? u[1] : 'a');
			if (used) {
				range = next + (*next == ',' ? 2 : 0);
				if (*next != ',')
					break;
				continue;
			}
			char *from = *next == ',' ? range : range - 2;
			char *to = *next == ',' ? next + 2 : next;
			if (*next != ',' && range == w + 7)
				from = w;
			memmove(from, to, strlen(to) + 1);
			end -= to - from;
			if (*next != ',')
				break;
		}
	}
}

/* The end of the operand, call or parenthesis that begins at s, or NULL. */
static const char *text_piece(const char *s)
{
	const char *t = s;
	int depth = 0;
	while ((*t >= 'a' && *t <= 'z') || (*t >= 'A' && *t <= 'Z') ||
	       (t > s && *t >= '0' && *t <= '9'))
		t++;
	if (*t != '(' && *t != '[')
		return NULL;
	for (; *t; t++) {
		depth += *t == '(' || *t == '[';
		depth -= *t == ')' || *t == ']';
		if (*t == ';')
			return NULL;
		if (!depth)
			return t + 1;
	}
	return NULL;
}

static bool text_try(RandomProgram *p, const char *backend, Verdict verdict, const char *from,
		     const char *to, const char *by)
{
	Text old = p->text, text = {0};
	text_put(&text, old.s, (size_t)(from - old.s));
	text_add(&text, "%s%s", by, to);
	text_unused(text.s);
	p->text = text;
	if (strlen(text.s) < strlen(old.s) && program_verdict(p, backend, false) == verdict) {
		text_free(&old);
		return true;
	}
	text_free(&text);
	p->text = old;
	return false;
}

static bool text_smaller(RandomProgram *p, const char *backend, Verdict verdict)
{
	const char *s = p->text.s;
	for (const char *e = s; e; e = strchr(e + 1, ';')) { /* without an equation */
		const char *to = strchr(e + 1, ';');
		const char *from = e == s ? s : e;
		if (text_try(p, backend, verdict, from, to ? to + (e == s ? 2 : 0) : strchr(e, 0),
			     ""))
			return true;
	}
	for (const char *at = s; *at; at++) {
		const char *to = text_piece(at);
		if (!to || (at > s && strchr("abcdefghijklmnopqrstuvwxyz", at[-1])))
			continue;
		if (text_try(p, backend, verdict, at, to, "0.5") ||
		    text_try(p, backend, verdict, at, to, "1"))
			return true;
		if (*at == '(') { /* one of the pieces inside */
			for (const char *in = at + 1; in < to; in++) {
				const char *end = text_piece(in);
				char piece[1000];
				if (!end || end > to || end - in >= (long)sizeof piece)
					continue;
				memcpy(piece, in, (size_t)(end - in));
				piece[end - in] = 0;
				if (text_try(p, backend, verdict, at, to, piece))
					return true;
				in = end;
			}
		}
	}
	return false;
}

static void shrink(RandomProgram *p, const char *backend)
{
	Verdict verdict = program_verdict(p, backend, true);
	if (verdict == GOOD) {
		CHECK_REPORT(false, "program %llu fails by %s among others, not alone: '%s'%s",
			     (unsigned long long)p->number, backend, p->text.s, operand_list(p));
		return;
	}
	fprintf(stderr, "program %llu: '%s'%s\n", (unsigned long long)p->number, p->text.s,
		operand_list(p));
	for (int k = 0; k < 60 && verdict != INVALID && text_smaller(p, backend, verdict); k++)
		;
	program_verdict(p, backend, true);
	CHECK_REPORT(false, "program %llu by %s, made smaller: '%s'%s",
		     (unsigned long long)p->number, backend, p->text.s, operand_list(p));
}

/* ---- a batch */

static void batch_alone(int n, RandomProgram *p, const char *backend)
{
	int before = check_failed;
	for (int i = 0; i < n && check_failed < before + 3; i++)
		if (program_verdict(&p[i], backend, false) != GOOD)
			shrink(&p[i], backend);
	CHECK_REPORT(check_failed > before, "programs from %llu on fail by %s together, not alone",
		     (unsigned long long)p->number, backend);
}

static void batch_run(int n, RandomProgram *p, bool with_cc)
{
	static Case c[BATCH];
	ricci_graph *g = ricci_graph_new();
	bool ok = true;
	int opened = 0;
	Error err = {0};
	while (ok && opened < n)
		ok = !case_open(&c[opened], g, current = &p[opened]), opened++;
	for (int i = 0; i < n && ok; i++)
		ok = !case_judge(&c[i], &err) && differences_agree(&c[i], false);
	if (!ok)
		batch_alone(n, p, "interp");
	for (int b = 0; b < 1 + with_cc && ok; b++) {
		const char *backend = b ? "cc" : "tcc";
		current = p;
		if (evaluate_cases(g, n, c, backend, &err)) {
			fprintf(stderr, "%s\n", err.text);
			batch_alone(n, p, backend);
			break;
		}
		for (int i = 0; i < n; i++) {
			bool good = true;
			for (int k = 0; k < c[i].nroot && good; k++)
				good = root_agrees(&c[i], k, false);
			CHECK_REPORT(good, "program %llu by %s", (unsigned long long)p[i].number,
				     backend);
			if (!good)
				shrink(&p[i], backend);
		}
	}
	for (int i = 0; i < opened; i++)
		case_close(&c[i]);
	ricci_graph_free(g);
}

int main(void)
{
	static RandomProgram p[BATCH];
	char why[256];
	const char *count = getenv("RICCI_FUZZ"), *first = getenv("RICCI_SEED");
	const char *verbose = getenv("RICCI_SHOW");
	uint64_t number = first ? strtoull(first, NULL, 10) : 1;
	uint64_t end = number + (count ? strtoull(count, NULL, 10) : PROGRAMS);
	int batch = 0;
	bool with_cc = backend_find("cc")->available(why, sizeof why);
	if (!with_cc)
		CHECK_SKIP(why);
	signal(SIGSEGV, on_crash);
	signal(SIGBUS, on_crash);
	signal(SIGFPE, on_crash);
	while (number < end && check_failed < 10) {
		int n = 0;
		for (; n < BATCH && number < end; number++) {
			random_program(&p[n], number);
			if (verbose)
				printf("%llu: %s%s\n", (unsigned long long)number, p[n].text.s,
				       operand_list(&p[n]));
			n++;
		}
		/* cc takes most of the time: by default it has every fourth batch */
		batch_run(n, p, with_cc && (count || batch++ % 4 == 0));
		for (int i = 0; i < n; i++)
			text_free(&p[i].text);
	}
	return check_done();
}
