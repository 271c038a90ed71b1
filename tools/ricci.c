/* ricci.c - the program `ricci`: reads the command line and hands over to a command.
 * Output: what is asked for on standard output, messages on standard error; exit status 0, 1 for a
 * wrong program or data, 2 for wrong usage. Invariant: after an error nothing has been written. */
#include "tools/tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
	"usage: ricci COMMAND ...\n"
	"\n"
	"  ricci show EXPR [OPERAND]...            the equations with domains, types, sizes\n"
	"  ricci grad EXPR OPERAND...              the gradient equations, and with data their "
	"values\n"
	"             [--wrt NAME]...              only for these operands [all floats]\n"
	"             [--seed RESULT=FILE.npy]...  the gradient of a result [ones]\n"
	"             [--order 2]                  the Hessian (summed over results by the seeds) "
	"times v\n"
	"             [--along OPERAND=FILE.npy]... the operand's part of v [ones]\n"
	"             [-o OPERAND=FILE.npy]...     where an operand's gradient goes\n"
	"  ricci run  EXPR OPERAND...              evaluates; prints small results\n"
	"             [-o RESULT=FILE.npy]...      where a result goes\n"
	"  ricci code EXPR OPERAND...              the source that is emitted\n"
	"             [--grad NAME]                for the gradient of that operand\n"
	"  ricci tune EXPR OPERAND...              searches schedules for its kernels; the fastest "
	"stay in\n"
	"                                          the cache, for every program of these "
	"equations\n"
	"             [--grad NAME]...             for the gradient of that operand\n"
	"             [--seconds S]                time for the search [10]\n"
	"             [--strategy NAME]            genetic or random [genetic]\n"
	"             [--picture FILE.svg]         draws the best times so far\n"
	"  ricci export CHECKPOINT -o NET.c        a trained net as C99 that needs libm only, and "
	"its "
	"header\n"
	"             [--weights FILE]             the weights beside, not in the source\n"
	"  ricci export CHECKPOINT --module FILE   a trained net with its compiled kernels, for "
	"programs that\n"
	"                                          link the library and have no compiler\n"
	"  ricci info                              this machine, the backends, the cache\n"
	"  ricci cache list|verify|clear           the kernels kept on disk\n"
	"\n"
	"  OPERAND: NAME=SHAPE[:TYPE] or NAME=FILE.npy. SHAPE: 2x3x4, or `scalar`.\n"
	"  TYPE: f32 (if none is given) f64 bf16 f16 i8 u8 i32 i64 bool.\n"
	"  --backend interp|tcc|cc   what makes the kernels [the best there is]\n"
	"  --threads N               [as many as the process may run on]\n"
	"  --time                    run, grad: prints the median time as JSON; a SHAPE then "
	"stands\n"
	"                            for random data\n"
	"  --time --roofline         and what bounds each kernel: a table, and in the JSON\n"
	"  --time --profile          and where the time goes: each kernel's equations, median "
	"time,\n"
	"                            GFLOP/s, GB/s, and the loop it runs in\n"
	"  --help, --version\n"
	"\n"
	"  ricci run \"Y[i,j] += A[i,k]*B[k,j]\" A=a.npy B=b.npy -o Y=y.npy\n"
	"\n"
	"Exit status: 0, 1 for a wrong program or data, 2 for wrong usage.\n";

void die(int status, const char *fmt, ...)
{
	va_list ap;
	output_forget();
	fputs("ricci: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(status == STATUS_USAGE ? "\nricci --help tells the usage\n" : "\n", stderr);
	exit(status);
}

void *take(void *p)
{
	if (!p)
		die(STATUS_WRONG, "out of memory");
	return p;
}

void *take_data(const char *name, const Node *t)
{
	void *p = buffer_new(tensor_bytes(t));
	if (!p)
		die(STATUS_WRONG, "out of memory: '%s' has %zu bytes", name, tensor_bytes(t));
	return p;
}

void check(int code, const Error *e)
{
	if (code)
		die(STATUS_WRONG, "%s", e->text);
}

/* What each command takes. */
enum {
	TAKES_EXPR = 1,
	TAKES_OUTPUT = 2,
	TAKES_GRAD = 4,
	TAKES_CODE = 8,
	TAKES_TIME = 16,
	TAKES_TUNE = 32,
	TAKES_EXPORT = 64
};
static const struct Command {
	const char *name;
	int (*run)(const Options *o);
	int takes;
} commands[] = {
	{"show", command_show, TAKES_EXPR},
	{"grad", command_grad, TAKES_EXPR | TAKES_OUTPUT | TAKES_GRAD | TAKES_TIME},
	{"run", command_run, TAKES_EXPR | TAKES_OUTPUT | TAKES_TIME},
	{"code", command_code, TAKES_EXPR | TAKES_CODE},
	{"tune", command_tune, TAKES_EXPR | TAKES_CODE | TAKES_TUNE},
	{"export", command_export, TAKES_EXPORT},
	{"info", command_info, 0},
	{"cache", command_cache, 0},
};

static void list_add(List *l, const char *name, const char *value)
{
	for (int k = 0; name && k < l->n; k++)
		if (!strcmp(l->item[k].name, name))
			die(STATUS_USAGE, "'%s' is given twice", name);
	l->item = take(mem_realloc(l->item, (size_t)(l->n + 1) * sizeof *l->item));
	l->item[l->n++] = (Named){name, value};
}

/* NAME=VALUE, split in place. */
static void list_add_named(List *l, char *arg, const char *what)
{
	char *equal = strchr(arg, '=');
	size_t n = equal ? (size_t)(equal - arg) : 0;
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	if (!n || strspn(arg, letters) != n || !equal[1])
		die(STATUS_USAGE, "'%s' should be %s", arg, what);
	*equal = 0;
	list_add(l, arg, equal + 1);
}

static void option_backend(Options *o, const char *value)
{
	o->backend = backend_find(value);
	if (o->backend)
		return;
	char all[128] = "";
	for (int k = 0; backends[k]; k++) {
		strncat(all, " ", sizeof all - strlen(all) - 1);
		strncat(all, backends[k]->name, sizeof all - strlen(all) - 1);
	}
	die(STATUS_USAGE, "there is no backend '%s'; there are:%s", value, all);
}

static void option_threads(Options *o, const char *value)
{
	char *end;
	long n = strtol(value, &end, 10);
	if (end == value || *end || n < 1 || n > 1024)
		die(STATUS_USAGE, "--threads takes a number from 1 to 1024, not '%s'", value);
	o->threads = (int)n;
}

static void option_order(Options *o, const char *value)
{
	if (strcmp(value, "1") && strcmp(value, "2"))
		die(STATUS_USAGE, "--order takes 1 or 2, not '%s'", value);
	o->order = value[0] - '0';
}

static void option_seconds(Options *o, const char *value)
{
	char *end;
	o->seconds = strtod(value, &end);
	if (end == value || *end || !(o->seconds > 0 && o->seconds <= 1e6))
		die(STATUS_USAGE, "--seconds takes a number above 0, not '%s'", value);
}

static void option_strategy(Options *o, const char *value)
{
	char all[128] = "";
	for (o->strategy = strategies; o->strategy->name; o->strategy++) {
		if (!strcmp(o->strategy->name, value))
			return;
		strncat(all, " ", sizeof all - strlen(all) - 1);
		strncat(all, o->strategy->name, sizeof all - strlen(all) - 1);
	}
	die(STATUS_USAGE, "there is no strategy '%s'; there are:%s", value, all);
}

/* Is argv[*i] the option `name`? Then *value is its value, from the same word or the next. */
static bool option_is(const char *name, int argc, char **argv, int *i, char **value)
{
	char *arg = argv[*i];
	size_t n = strlen(name);
	if (strncmp(arg, name, n))
		return false;
	if (arg[n] == '=' && n > 2)
		*value = arg + n + 1;
	else if (arg[n] && n == 2)
		*value = arg + n;
	else if (arg[n])
		return false;
	else if (*i + 1 == argc)
		die(STATUS_USAGE, "%s lacks its value", name);
	else
		*value = argv[++*i];
	return true;
}

static void options_read(Options *o, const struct Command *c, int argc, char **argv)
{
	int takes = c->takes;
	char *value;
	for (int i = 2; i < argc; i++) {
		char *arg = argv[i];
		if (arg[0] != '-' && takes & TAKES_EXPR) {
			if (!o->expr)
				o->expr = arg;
			else
				list_add_named(&o->operand, arg,
					       "NAME=SHAPE, NAME=SHAPE:TYPE or NAME=FILE.npy");
		} else if (arg[0] != '-') {
			list_add(&o->operand, NULL, arg);
		} else if (takes & TAKES_EXPORT && option_is("-o", argc, argv, &i, &value)) {
			list_add(&o->output, value, NULL);
		} else if (takes & TAKES_EXPORT && option_is("--weights", argc, argv, &i, &value)) {
			o->weights = value;
		} else if (takes & TAKES_EXPORT && option_is("--module", argc, argv, &i, &value)) {
			o->module = value;
		} else if (takes & TAKES_OUTPUT && option_is("-o", argc, argv, &i, &value)) {
			list_add_named(&o->output, value, "-o NAME=FILE.npy");
		} else if (takes & TAKES_GRAD && option_is("--wrt", argc, argv, &i, &value)) {
			list_add(&o->wrt, value, NULL);
		} else if (takes & TAKES_GRAD && option_is("--seed", argc, argv, &i, &value)) {
			list_add_named(&o->seed, value, "--seed RESULT=FILE.npy");
		} else if (takes & TAKES_GRAD && option_is("--order", argc, argv, &i, &value)) {
			option_order(o, value);
		} else if (takes & TAKES_GRAD && option_is("--along", argc, argv, &i, &value)) {
			list_add_named(&o->along, value, "--along OPERAND=FILE.npy");
		} else if (takes & TAKES_CODE && option_is("--grad", argc, argv, &i, &value)) {
			list_add(&o->grad, value, NULL);
		} else if (takes & TAKES_TUNE && option_is("--seconds", argc, argv, &i, &value)) {
			option_seconds(o, value);
		} else if (takes & TAKES_TUNE && option_is("--strategy", argc, argv, &i, &value)) {
			option_strategy(o, value);
		} else if (takes & TAKES_TUNE && option_is("--picture", argc, argv, &i, &value)) {
			o->picture = value;
		} else if (option_is("--backend", argc, argv, &i, &value)) {
			option_backend(o, value);
		} else if (option_is("--threads", argc, argv, &i, &value)) {
			option_threads(o, value);
		} else if (takes & TAKES_TIME && !strcmp(arg, "--time")) {
			o->time = true;
		} else if (takes & TAKES_TIME && !strcmp(arg, "--roofline")) {
			o->roofline = true;
		} else if (takes & TAKES_TIME && !strcmp(arg, "--profile")) {
			o->profile = true;
		} else {
			die(STATUS_USAGE, "ricci %s has no option '%s'", c->name, arg);
		}
	}
	if (o->roofline && !o->time)
		die(STATUS_USAGE, "--roofline belongs to --time");
	if (o->profile && !o->time)
		die(STATUS_USAGE, "--profile belongs to --time");
	if (takes & TAKES_EXPR && !o->expr)
		die(STATUS_USAGE, "ricci %s needs an expression", c->name);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || (i == 1 && !strcmp(argv[i], "-h")))
			return fputs(help_text, stdout) < 0 || fflush(stdout);
	if (argc < 2)
		die(STATUS_USAGE, "a command is needed");
	if (!strcmp(argv[1], "--version"))
		return printf("ricci %s\n", ricci_version()) < 0 || fflush(stdout);
	for (int k = 0; k < COUNT(commands); k++) {
		if (strcmp(commands[k].name, argv[1]))
			continue;
		Options o = {.seconds = 10, .strategy = strategies};
		options_read(&o, &commands[k], argc, argv);
		int status = commands[k].run(&o);
		mem_free(o.operand.item);
		mem_free(o.output.item);
		mem_free(o.seed.item);
		mem_free(o.along.item);
		mem_free(o.wrt.item);
		mem_free(o.grad.item);
		return status;
	}
	die(STATUS_USAGE, "there is no command '%s'", argv[1]);
}
