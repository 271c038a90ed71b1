/* fuzz_programs.c - random programs without end: through the parser, the solver, both modes of
 * differentiation, the interpreter, the kernels of tcc and of cc (program_judge.h); a third of
 * them loops over time, a quarter of integers near the ends of their types, a sixth rounded by
 * chance.
 *
 * usage: fuzz_programs [--seconds N] [--count N] [--from N | --first NUMBER] [--cc SHARE] [--text]
 *                      [--keep FOLDER] [FILE..]
 *
 * Input: the numbers of programs of all kinds (--from: but for the first ones), those of one kind
 * from --first on, or kept files (--here: in this process, for a debugger). Every SHARE-th batch
 * goes through cc (0: none); --text judges only what is printed, which is forty times as fast.
 * Output: a line for each failure with the program made smaller and the command that reproduces it
 * from the file kept; a progress line on a terminal; the totals. */
#include "tests/tools/program_shrink.h"

#include <sys/stat.h>

enum { BATCH = 8 }; /* in a process, from which their kernels' verification forks */

typedef struct Fuzz {
	double seconds, start;
	uint64_t count, first, done, by_cc;
	int cc, failed, partly, ranges, unsteady;
	bool here, list, text, given; /* given: --first */
	const char *keep, *self;
} Fuzz;

static const char *const compilers[] = {"tcc", "cc"};

static void progress(const Fuzz *f, bool end)
{
	double t = clock_seconds() - f->start;
	if (!isatty(2))
		return;
	fprintf(stderr, "\r%llu programs, %llu by cc, %d failed, %.0f/s, %.0f s %s ",
		(unsigned long long)f->done, (unsigned long long)f->by_cc, f->failed,
		(double)f->done / (t > 0 ? t : 1), t, end ? "\n" : "");
}

static void failure_keep(Fuzz *f, const RandomProgram *p, int nbackend, Verdict v, const char *why)
{
	char path[1000];
	Text text = {0};
	snprintf(path, sizeof path, "%s/%llu.program", f->keep, (unsigned long long)p->number);
	mkdir(f->keep, 0777);
	FILE *out = fopen(path, "w");
	if (out) {
		program_write(out, p, nbackend > 1 ? "cc" : nbackend > 0 ? "tcc" : "the judges");
		fclose(out);
	}
	program_print(&text, p);
	fprintf(stderr, "%sprogram %llu: %s\n%s\t%s\n\t%s %s\n", isatty(2) ? "\n" : "",
		(unsigned long long)p->number, verdict_text[v], why ? why : "", text.s, f->self,
		path);
	text_free(&text);
	f->failed++;
}

/* Which backends it takes, then smaller. False where nothing is wrong with it. */
static bool program_alone(Fuzz *f, RandomProgram *p, int nbackend)
{
	for (int n = nbackend < 0 ? nbackend : 0; n <= nbackend; n++) {
		Text why = {0}, once = {0};
		Verdict first = verdict_apart(1, p, n, compilers, &once), v = first;
		if (first != GOOD)
			v = program_shrink(p, n, compilers, &why);
		if (v != GOOD)
			failure_keep(f, p, n, v, why.s);
		else if (first != GOOD) { /* stopped for longer than a program may take? */
			f->unsteady++;
			fprintf(stderr, "program %llu: %s, once and not again\n%s",
				(unsigned long long)p->number, verdict_text[first],
				once.s ? once.s : "");
		}
		text_free(&why);
		text_free(&once);
		if (first != GOOD)
			return true;
	}
	return false;
}

static int count_of(const char *s, const char *what)
{
	int n = 0;
	for (; s && (s = strstr(s, what)); s++)
		n++;
	return n;
}

static void batch_run(Fuzz *f, int n, RandomProgram *p, int nbackend)
{
	Text why = {0};
	bool found = false;
	Verdict v = verdict_apart(n, p, nbackend, compilers, &why);
	f->partly += v == GOOD ? count_of(why.s, PARTLY) : 0;
	f->ranges += v == GOOD ? count_of(why.s, OTHER_RANGES) : 0;
	for (int i = 0; i < n && v != GOOD; i++)
		found |= program_alone(f, &p[i], nbackend);
	if (v != GOOD && !found) {
		f->failed++;
		fprintf(stderr, "programs from %llu on fail together, not alone: %s\n%s",
			(unsigned long long)p->number, verdict_text[v], why.s ? why.s : "");
	}
	f->done += (uint64_t)n;
	f->by_cc += nbackend > 1 ? (uint64_t)n : 0;
	for (int i = 0; i < n; i++)
		program_free(&p[i]);
	text_free(&why);
	progress(f, false);
}

static void run_file(Fuzz *f, const char *path)
{
	RandomProgram p;
	FILE *in = fopen(path, "r");
	if (!in) {
		fprintf(stderr, "%s can't be read\n", path);
		f->failed++;
		f->done++;
		return;
	}
	while (program_read(in, &p)) {
		Text why = {0};
		Verdict v = f->here ? programs_verdict(1, &p, 2, compilers, &why)
				    : verdict_apart(1, &p, 2, compilers, &why);
		printf("program %llu: %s\n%s", (unsigned long long)p.number, verdict_text[v],
		       why.s ? why.s : "");
		f->failed += v != GOOD;
		f->done++;
		text_free(&why);
		program_free(&p);
	}
	fclose(in);
}

static void list_numbers(const Fuzz *f)
{
	for (uint64_t k = 0; k < f->count; k++) {
		RandomProgram p;
		random_program(&p, f->first + k);
		program_write(stdout, &p, "nobody");
		program_free(&p);
	}
}

/* All kinds in turns, the plain ones most; where a number is given, its kind alone. */
static void run_numbers(Fuzz *f)
{
	static const uint64_t kinds[] = {0, 8, 1, 4, 0, 2, 8, 0, 6, 7, 1, 4, 8, 3, 0, 5};
	static RandomProgram p[BATCH];
	for (uint64_t number = f->first, batch = 0; f->failed < 20; batch++) {
		/* each kind comes at each place among the SHARE in time */
		uint64_t turn = (batch + batch / COUNT(kinds)) % COUNT(kinds);
		uint64_t kind = f->given ? 0 : kinds[turn];
		uint64_t left = f->count - f->done;
		int n = left < BATCH ? (int)left : BATCH;
		if (!n || (f->seconds > 0 && clock_seconds() - f->start > f->seconds))
			break;
		for (int i = 0; i < n; i++)
			random_program(&p[i], kind * KIND + number++);
		batch_run(f, n, p,
			  f->text				  ? TEXT_ONLY
			  : f->cc && batch % (uint64_t)f->cc == 0 ? 2
								  : 1);
	}
	progress(f, true);
}

static int usage(const char *self, const char *option)
{
	bool help = !strcmp(option, "--help");
	if (!help)
		fprintf(stderr, "%s has no option %s\n", self, option);
	fprintf(help ? stdout : stderr,
		"usage: %s [--seconds N] [--count N] [--from N | --first NUMBER] [--cc SHARE]\n"
		"       [--text] [--here] [--list] [--keep FOLDER] [FILE..]\n",
		self);
	return help ? 0 : 2;
}

int main(int argc, char **argv)
{
	Fuzz f = {.start = clock_seconds(),
		  .count = UINT64_MAX,
		  .first = 1,
		  .cc = 8,
		  .keep = "fuzz-kept",
		  .self = argv[0]};
	bool files = false;
	char why[256];
	setenv("RICCI_CHECK", "trees", 0);
	if (!backend_find("cc")->available(why, sizeof why))
		f.cc = 0;
	for (int k = 1; k < argc; k++) {
		const char *value = k + 1 < argc ? argv[k + 1] : "";
		if (!strcmp(argv[k], "--seconds"))
			f.seconds = atof(value), k++;
		else if (!strcmp(argv[k], "--count"))
			f.count = strtoull(value, NULL, 10), k++;
		else if (!strcmp(argv[k], "--first"))
			f.first = strtoull(value, NULL, 10), f.given = true, k++;
		else if (!strcmp(argv[k], "--from"))
			f.first = strtoull(value, NULL, 10), k++;
		else if (!strcmp(argv[k], "--cc"))
			f.cc = f.cc ? atoi(value) : 0, k++;
		else if (!strcmp(argv[k], "--keep"))
			f.keep = value, k++;
		else if (!strcmp(argv[k], "--here"))
			f.here = true;
		else if (!strcmp(argv[k], "--list"))
			f.list = true;
		else if (!strcmp(argv[k], "--text"))
			f.text = true;
		else if (argv[k][0] == '-')
			return usage(argv[0], argv[k]);
		else
			run_file(&f, argv[k]), files = true;
	}
	if (f.list) {
		list_numbers(&f);
		return 0;
	}
	if (!files)
		run_numbers(&f);
	printf("%llu programs, %llu of them by cc, in %.0f s\n", (unsigned long long)f.done,
	       (unsigned long long)f.by_cc, clock_seconds() - f.start);
	printf("compared in part: %d that overflow, or where rounding decides\n", f.partly);
	if (f.ranges)
		printf("inferred ranges that the oracle finds otherwise: %d\n", f.ranges);
	if (f.unsteady)
		printf("failed once, not again: %d\n", f.unsteady);
	printf("%llu passed, %d failed\n", (unsigned long long)f.done - (unsigned)f.failed,
	       f.failed);
	return f.failed != 0;
}
