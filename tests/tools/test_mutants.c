/* test_mutants.c - does validation refuse kernels with one mistake planted in them?
 *
 * Kernels of the operators of operators.def are lowered for tcc and cc, and their text is changed
 * at one place: a constant, an index, a comparison, a start value, a loop's end, a lost condition,
 * a swapped operand, a lost tail, an overlapping store. verify_kernel must refuse all of these
 * mutants that can be told from the kernel: one that passes runs on further draws of all kinds, and
 * where its results never differ in a bit from the kernel's, it counts as equivalent. (Compilers
 * round differently where a text differs, so such a mutant's kernel is known to be equal, not
 * nearly so.) RICCI_MUTANTS: how many; RICCI_TABLE: a file for what passed.
 */
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/usual_device.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Operator {
	const char *text, *operands;
} Operator;
static const Operator operators[] = {
#define OPERATOR(text, operands) {text, operands},
#include "tests/tools/operators.def"
#undef OPERATOR
};

#ifdef __SANITIZE_ADDRESS__
enum { MUTANTS = 61 };
#else
enum { MUTANTS = 244 };
#endif
enum { MOST_PLACES = 4000, COMPARISONS = 12, BY_CC = 4 };

/* ---- mistakes: each is a replacement of text[from..to) ---- */
#define MISTAKES(X)                                                                                \
	X(CONSTANT, "a constant")                                                                  \
	X(INDEX, "an index offset")                                                                \
	X(COMPARISON, "a comparison")                                                              \
	X(START, "a start value")                                                                  \
	X(END, "a loop's end")                                                                     \
	X(CONDITION, "a lost condition")                                                           \
	X(OPERAND, "a swapped operand")                                                            \
	X(TAIL, "a lost tail")                                                                     \
	X(STORE, "an overlapping store")
typedef enum Mistake {
#define MISTAKE(name, text) name,
	MISTAKES(MISTAKE)
#undef MISTAKE
		NMISTAKES
} Mistake;
static const char *const mistake_text[] = {
#define MISTAKE(name, text) text,
	MISTAKES(MISTAKE)
#undef MISTAKE
};

typedef struct Place {
	Mistake what;
	const char *from, *to;
	char with[240];
} Place;

typedef struct Places {
	int n;
	Place *at;
} Places;

static void place_add(Places *p, Mistake what, const char *from, const char *to, const char *format,
		      const char *a, int na, const char *b, int nb)
{
	Place *at = &p->at[p->n];

	if (p->n == MOST_PLACES || na + nb > 200)
		return;
	*at = (Place){what, from, to, ""};
	snprintf(at->with, sizeof at->with, format, na, a, nb, b);
	p->n++;
}

static bool word(int c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The operand that ends before s, or begins at s: a name, a number or what brackets hold. */
static const char *operand_before(const char *s, const char *least)
{
	int depth = 0;

	while (s > least && (depth > 0 || word(s[-1]) || s[-1] == ')' || s[-1] == ']')) {
		depth += s[-1] == ')' || s[-1] == ']';
		depth -= s[-1] == '(' || s[-1] == '[';
		s--;
	}
	return depth ? NULL : s;
}

static const char *operand_after(const char *s)
{
	int depth = 0;

	while (*s && (depth > 0 || word(*s) || *s == '(' || *s == '[')) {
		depth += *s == '(' || *s == '[';
		depth -= *s == ')' || *s == ']';
		s++;
	}
	return depth ? NULL : s;
}

static void operator_places(Places *p, const char *line, const char *s)
{
	const char *from = operand_before(s, line), *to = operand_after(s + 3);

	if (!from || !to || from == s || to == s + 3)
		return;
	if (s[1] == '-' || s[1] == '/')
		place_add(p, OPERAND, from, to, s[1] == '-' ? "%.*s - %.*s" : "%.*s / %.*s", s + 3,
			  (int)(to - s - 3), from, (int)(s - from));
	/* a < b ? a : b is a minimum: <= would be the same */
	bool least = !strncmp(line, "const int64_t n", 15) ||
		     (!strncmp(to, " ? ", 3) && (!strncmp(to + 3, from, (size_t)(s - from)) ||
						 !strncmp(to + 3, s + 3, (size_t)(to - s - 3))));
	if (s[1] == '<' || s[1] == '>')
		place_add(p, COMPARISON, s, s + 3, "%.*s%.*s",
			  s[1] == '<' ? (least ? " > " : " <= ") : (least ? " < " : " >= "),
			  least ? 3 : 4, "", 0);
	if (s[1] == '?')
		place_add(p, CONDITION, from, s, "%.*s%.*s", "(1)", 3, "", 0);
}

/* "<= " and "== " and their like. */
static void comparison_places(Places *p, const char *s)
{
	if (!strncmp(s, " <= ", 4))
		place_add(p, COMPARISON, s, s + 4, "%.*s%.*s", " < ", 3, "", 0);
	else if (!strncmp(s, " == ", 4))
		place_add(p, COMPARISON, s, s + 4, "%.*s%.*s", " != ", 4, "", 0);
	else if (!strncmp(s, " != ", 4))
		place_add(p, COMPARISON, s, s + 4, "%.*s%.*s", " == ", 4, "", 0);
}

static void number_places(Places *p, const char *s)
{
	char *end;
	double v = strtod(s, &end);
	char with[64];

	if (end == s || !memchr(s, '.', (size_t)(end - s)) || (*end != 'f' && word(*end)))
		return;
	snprintf(with, sizeof with, "%.9g", fabs(v) >= 1 ? v + 1 : v == 0 ? 1 : v * 1.25);
	if (!strpbrk(with, ".e"))
		strcat(with, ".0");
	place_add(p, CONSTANT, s, end, "%.*s%.*s", with, (int)strlen(with), "", 0);
}

static void index_places(Places *p, const char *s, bool stored)
{
	const char *to = operand_after(s);

	if (!to || to - s < 3)
		return;
	place_add(p, INDEX, s + 1, to - 1, "%.*s + 1%.*s", s + 1, (int)(to - s - 2), "", 0);
	if (stored)
		place_add(p, STORE, s + 1, to - 1, "(%.*s) - ((%.*s) %% 32 == 31)", s + 1,
			  (int)(to - s - 2), s + 1, (int)(to - s - 2));
}

/* for (int64_t i = FROM; i < TO; i++) { */
static void loop_places(Places *p, const char *line, const char *end)
{
	const char *from = strchr(line, '='), *semi = strchr(line, ';'), *less = strchr(line, '<');
	const char *close = less ? strchr(less, ';') : NULL;

	if (!from || !semi || !less || !close || close > end)
		return;
	place_add(p, START, from + 2, semi, "%.*s + 1%.*s", from + 2, (int)(semi - from - 2), "",
		  0);
	place_add(p, END, less + 2, close, "%.*s - 1%.*s", less + 2, (int)(close - less - 2), "",
		  0);
	place_add(p, END, less + 2, close, "%.*s + 1%.*s", less + 2, (int)(close - less - 2), "",
		  0);
	place_add(p, TAIL, less + 2, close, "(%.*s) / 8 * 8%.*s", less + 2, (int)(close - less - 2),
		  "", 0);
}

static void line_places(Places *p, const char *line, const char *end)
{
	const char *text = line + strspn(line, " "), *store = strstr(line, "] = ");
	bool stores = store && store < end && *text == 'y';

	if (!strncmp(text, "for (", 5)) {
		loop_places(p, text, end);
		return;
	}
	if (end[-2] == ']' && !memchr(text, '=', (size_t)(end - text))) /* an array */
		return;
	for (const char *s = text; s < end; s++) {
		if (s[0] == ' ' && s[1] && s[2] == ' ' && strchr("-/<>?", s[1]))
			operator_places(p, text, s);
		comparison_places(p, s);
		if (isdigit((unsigned char)*s) && !word(s[-1]))
			number_places(p, s);
		if (*s == '[' && word(s[-1]))
			index_places(p, s, stores && s < store);
	}
}

static void source_places(Places *p, const char *source)
{
	const char *s = strstr(source, "\nvoid kernel_0(");

	/* not the declarations of the seed and of buffers */
	for (s = s ? s + 1 : NULL; s && *s;) {
		const char *end = strchr(s, '\n');

		if (!end)
			break;
		if (s[0] == ' ' && !strstr(s, "= buf[") && strncmp(s, " const uint64_t seed", 20))
			line_places(p, s, end);
		else if (s[0] == ' ' && strstr(s, "= buf[") > end)
			line_places(p, s, end);
		s = end + 1;
	}
}

/* ---- kernels ---- */
static Node *operand_node(Ir *ir, const char *operands, const char *name)
{
	size_t n = strlen(name);
	const char *s = operands;
	int64_t shape[8];
	int rank = 0;
	Type type = RICCI_F32;
	char *end, of[8];

	while (s && (strncmp(s, name, n) || s[n] != '='))
		s = strchr(s, ' ') ? strchr(s, ' ') + 1 : NULL;
	if (!s)
		return NULL;
	for (s += n; *s == '=' || *s == 'x'; s = end)
		shape[rank++] = strtoll(s + 1, &end, 10);
	snprintf(of, sizeof of, "%.*s", *s == ':' ? (int)strcspn(s + 1, " ") : 0, s + 1);
	if (*of)
		type_parse(of, &type);
	return node_input(ir, name, type, rank, shape);
}

/* Tasks of an operator's kernels; how many. */
static int operator_tasks(const Operator *o, Ir *ir, int room, Task **task)
{
	const char **name;
	Node *in[8], *result[8];
	Subgraph *subs = NULL;
	int n = notation_operands(ir, o->text, &name), nresult = COUNT(result), nsub = 0, m = 0;

	IR_ENTER(ir, 0);
	for (int i = 0; i < n && i < COUNT(in); i++)
		in[i] = operand_node(ir, o->operands, name[i]);
	if (!notation_elaborate(ir, o->text, n, in, &nresult, result, COUNT(result)) &&
	    !rewrite_graph(ir, nresult, result))
		fuse_partition(ir, nresult, result, &usual_device, &nsub, &subs);
	IR_LEAVE(ir);
	CHECK_REPORT(nsub > 0, "%s: %s", o->text, ir->err.text);
	for (int i = 0; i < nsub && m < room; i++)
		if ((task[m] = task_new(&subs[i], NULL)))
			m++;
	return m;
}

static Kernel *mutant_new(const Task *t, const Schedule *s, const Backend *b, const char *source,
			  const Place *at)
{
	Kernel *k = kernel_lower(t, s, b, target_host(), NULL);
	Text text = {0};

	if (!k)
		return NULL;
	if (at) {
		text_put(&text, source, (size_t)(at->from - source));
		text_add(&text, "%s%s", at->with, at->to);
		mem_free(k->source);
		k->source = text.s;
	}
	if (b->compile(b, 1, &k, NULL, NULL)) {
		kernel_unref(k);
		return NULL;
	}
	return k;
}

/* ---- are a mutant's results ever others than the kernel's? ---- */
static void kernel_launch(const Kernel *k, void *const *buf)
{
	KernelEnv env = {
		7, 3,	buffer_new(k->shape.scratch + 4096), buffer_new(k->shape.shared + 4096),
		k, NULL};

	int64_t begin, end;

	/* in ranges, as launches do */
	for (int phase = 0; kernel_phase(k, phase, &begin, &end); phase++) {
		int64_t n = 1 + (end - begin) / 7;
		for (; begin < end; begin += n)
			k->run(buf, &env, begin, begin + n < end ? begin + n : end);
	}
	buffer_free(env.scratch);
	buffer_free(env.shared);
}

static bool data_equal(const Task *t, const Kernel *k, const Kernel *mutant, int number)
{
	TaskData a = {0}, b = {0};
	bool equal = true;
	DrawKind kind = (DrawKind)(number % (DRAW_WIDE + 1));

	if (task_data_new(t, 1, &a, NULL) || task_data_new(t, 1, &b, NULL))
		return false;
	task_draw(t, 100 + (uint64_t)number, kind, a.buf, NULL);
	task_draw(t, 100 + (uint64_t)number, kind, b.buf, NULL);
	kernel_launch(k, a.buf);
	kernel_launch(mutant, b.buf);
	for (int i = t->sub.ninput; i < a.nbuf; i++)
		equal = equal && !memcmp(a.buf[i], b.buf[i], tensor_bytes(task_tensor(t, i)));
	task_data_free(&a);
	task_data_free(&b);
	return equal;
}

static bool kernels_equal(const Task *t, const Kernel *k, const Kernel *mutant)
{
	int status = 1;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < COMPARISONS; i++)
			if (!data_equal(t, k, mutant, i))
				_exit(1);
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* ---- the count ---- */
typedef struct Count {
	int made, refused, equal, passed;
} Count;
static Count of[NMISTAKES];
static FILE *table;

static void mutant_report(const Task *t, const Kernel *k, const char *source, const Place *at,
			  const char *how)
{
	const char *line = at->from, *end = strchr(at->from, '\n');
	const char *task = strchr(t->text, '\n');

	while (line > source && line[-1] != '\n')
		line--;
	while (task && !strncmp(task + 1, "input", 5))
		task = strchr(task + 1, '\n');
	fprintf(table, "%s (%s, %s)\n  %.300s\n  %.*s\n  %.*s ==> %s\n\n", how,
		mistake_text[at->what], k->backend->name, task ? task + 1 : t->text,
		(int)(end - line), line, (int)(at->to - at->from), at->from, at->with);
}

static void mutant_try(const Task *t, const Schedule *s, const Kernel *k, const char *source,
		       const Place *at)
{
	Count *c = &of[at->what];
	Kernel *mutant = mutant_new(t, s, k->backend, source, at);

	if (!mutant) /* no C */
		return;
	c->made++;
	if (verify_within(t, mutant, NULL, true, 2, NULL)) {
		c->refused++;
	} else if (kernels_equal(t, k, mutant)) {
		c->equal++;
		mutant_report(t, k, source, at, "equivalent");
	} else {
		c->passed++;
		mutant_report(t, k, source, at, "PASSED");
	}
	kernel_unref(mutant);
}

/* About `n` mutants of one kernel, of each kind of mistake as many. */
static void kernel_mutants(const Task *t, const Backend *b, int n, uint64_t *state)
{
	Places p = {0, mem_alloc(MOST_PLACES * sizeof *p.at)};
	Schedule s;
	Error err = {0};
	Kernel *k;

	if (schedule_offers(t, target_host(), 1, &s) < 1)
		s.n = 0;
	k = kernel_make(t, &s, b, target_host(), &err);
	CHECK_REPORT(k && !verify_kernel(t, k, true, &err), "%s\n%s", err.text, t->text);
	if (k && k->source && p.at)
		source_places(&p, k->source);
	for (int i = 0; i < n && p.n > 0; i++) {
		uint64_t at = random_below(state, (uint64_t)p.n);

		/* the next place of the kind whose turn it is */
		for (int j = 0; j < p.n && (int)p.at[at].what != i % NMISTAKES; j++)
			at = (at + 1) % (uint64_t)p.n;
		if (p.at[at].what != NMISTAKES)
			mutant_try(t, &s, k, k->source, &p.at[at]);
		p.at[at].what = NMISTAKES; /* once */
	}
	mem_free(p.at);
	kernel_unref(k);
}

static void operators_run(int mutants, const Backend *cc)
{
	uint64_t state = 12345;

	for (int o = 0; o < COUNT(operators); o++) {
		Ir ir;
		Task *task[8];
		int n, each;

		ir_init(&ir);
		n = operator_tasks(&operators[o], &ir, COUNT(task), task);
		each = (mutants + COUNT(operators) - 1) / COUNT(operators);
		for (int i = 0; i < n; i++) {
			int many = (each + n - 1) / n, slow = (many + o % BY_CC) / BY_CC;

			kernel_mutants(task[i], backend_find("tcc"), many - (cc ? slow : 0),
				       &state);
			if (cc && slow)
				kernel_mutants(task[i], cc, slow, &state);
			task_free(task[i]);
		}
		ir_free(&ir);
	}
}

int main(void)
{
	const char *count = getenv("RICCI_MUTANTS"), *name = getenv("RICCI_TABLE");
	const Backend *cc = backend_find("cc");
	Count all = {0};
	char why[256];

	setenv("RICCI_CACHE", "off", 1);
	table = fopen(name ? name : "/dev/null", "w");
	CHECK(table != NULL);
	if (!table)
		return check_done();
	if (!cc->available(why, sizeof why)) {
		CHECK_SKIP(why);
		cc = NULL;
	}
	operators_run(count ? atoi(count) : MUTANTS, cc);
	for (int i = 0; i < NMISTAKES; i++) {
		fprintf(table, "%-22s %5d mutants, %5d refused, %4d equivalent, %4d passed\n",
			mistake_text[i], of[i].made, of[i].refused, of[i].equal, of[i].passed);
		all.made += of[i].made;
		all.refused += of[i].refused;
		all.equal += of[i].equal;
		all.passed += of[i].passed;
	}
	CHECK_REPORT(all.made > 0 && all.refused >= 0.995 * (all.made - all.equal),
		     "of %d mutants that are not equivalent %d pass", all.made - all.equal,
		     all.passed);
	fprintf(table, "%d mutants, %d refused, %d equivalent, %d passed\n", all.made, all.refused,
		all.equal, all.passed);
	fclose(table);
	return check_done();
}
