/* test_trace.c - traces: whole events of every thread, steps and kernels by name, swaps with their gain;
 * bad paths, a full disk, two threads, a forked child, memory that ends. */
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/memory_check.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name)
{
	static char path[2][128];
	static int at;
	char *s = path[at ^= 1];

	snprintf(s, sizeof *path, "%s/%s", folder, name);
	return s;
}

static Text read_all(const char *path)
{
	Text t = {0};
	Error err = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && !file_take(fd, &t, &err) && t.s);
	if (fd >= 0)
		close(fd);
	return t;
}

static int occurs(const char *s, const char *what)
{
	int n = 0;

	for (; s && (s = strstr(s, what)); s += strlen(what))
		n++;
	return n;
}

/* Is each line but the brackets one object, with brackets that match and strings that end? */
static bool is_whole(const char *s)
{
	int depth = 0;
	bool in_string = false;

	if (!s || *s != '[' || strcmp(s + strlen(s) - 3, "\n]\n") != 0)
		return false;
	for (; *s; s++) {
		if (in_string) {
			if ((unsigned char)*s < ' ')
				return false;
			s += *s == '\\';
			in_string = *s != '"' || s[-1] == '\\';
			continue;
		}
		in_string = *s == '"';
		depth += (*s == '[' || *s == '{') - (*s == ']' || *s == '}');
		if (depth < 0 || (*s == '\n' && depth > 1))
			return false;
	}
	return depth == 0 && !in_string;
}

typedef struct Net {
	ricci_graph *g;
	ricci_session *s;
} Net;

/* w is trained on random numbers by steepest descent. */
static Net net_new(void)
{
	Net n = {.g = ricci_graph_new()};
	ricci_tensor *w = ricci_param(n.g, "layer \"1\".w", RICCI_F32, 2, (int64_t[]){96, 80},
				      ricci_normal(0.1));
	ricci_tensor *y = ricci_op(
		n.g, "z[i,j] += random(7, 96*i+k)*w[k,j] where i<64; y[i,j] = tanh(z[i,j])", w);
	ricci_tensor *loss = ricci_op(n.g, "l[] += y[i,j]*y[i,j]", y), *d;

	ricci_grad(n.g, loss, NULL, 1, &w, &d);
	ricci_assign(n.g, w, ricci_op(n.g, "v[i,j] = w[i,j] - 0.01*d[i,j]", w, d));
	n.s = ricci_session_new(n.g, NULL, 1, 1, &loss);
	CHECK_GRAPH(n.g);
	CHECK(n.s);
	return n;
}

static void net_steps(const Net *n, int steps)
{
	for (int i = 0; i < steps && n->s; i++)
		CHECK_INT(ricci_step(n->s), 0);
}

static void net_free(Net *n)
{
	ricci_session_free(n->s);
	ricci_graph_free(n->g);
}

static void test_events(void)
{
	Net n = net_new();

	net_steps(&n, 3);
	CHECK_INT(ricci_trace_begin(in_folder("a.json")), 0);
	net_steps(&n, 20);
	CHECK_INT(ricci_settle(n.s), 0);
	net_steps(&n, 20);
	Net other = net_new();
	net_steps(&other, 1);
	CHECK_INT(ricci_trace_end(), 0);
	CHECK_INT(ricci_trace_end(), 0);
	net_steps(&n, 5); /* in no trace */

	Text t = read_all(in_folder("a.json"));
	CHECK(is_whole(t.s));
	CHECK_INT(occurs(t.s, "\"name\":\"a training step\""), 41);
	CHECK_INT(occurs(t.s, "\"cat\":\"session\",\"ts\""), occurs(t.s, "\"cat\":\"session\""));
	CHECK(occurs(t.s, "\"cat\":\"session\"") > 2);
	CHECK(occurs(t.s, "\"cat\":\"kernel\"") >= 41);
	CHECK(occurs(t.s, "*layer \\\"1\\\".w[k,j]") >= 41);
	CHECK(occurs(t.s, "\"args\":{\"name\":\"training\"}") == 1);
	if (backend_find("cc")->available((char[64]){0}, 64)) {
		CHECK(occurs(t.s, "\"args\":{\"name\":\"makes kernels\"}") >= 1);
		CHECK(occurs(t.s, "\"name\":\"cc compiles ") >= 1);
		CHECK(occurs(t.s, "\"cat\":\"verify\"") >= 1);
		CHECK(occurs(t.s, "\"cat\":\"swap\"") >= 1);
		CHECK(occurs(t.s, "\"cat\":\"gain\"") >= 1);
	}
	text_free(&t);
	net_free(&other);
	net_free(&n);
}

static void test_errors(void)
{
	CHECK_INT(ricci_trace_begin(NULL), RICCI_EINVAL);
	CHECK_INT(ricci_trace_begin(in_folder("none/a.json")), RICCI_EIO);
	CHECK(strstr(ricci_error_message(), "none/a.json can't be written: No such file"));
	CHECK_INT(ricci_trace_begin(in_folder("b.json")), 0);
	CHECK_INT(ricci_trace_begin(in_folder("c.json")), RICCI_EINVAL);
	CHECK(strstr(ricci_error_message(), "b.json: end that one first"));
	CHECK(access(in_folder("c.json"), F_OK) != 0);
	CHECK_INT(ricci_trace_end(), 0);
	if (ricci_trace_begin("/dev/full") == 0) {
		CHECK_INT(ricci_trace_end(), RICCI_EIO);
		CHECK(strstr(ricci_error_message(), "/dev/full is not whole: No space"));
	}
}

/* A child neither writes into its parent's trace nor ends it, and may write its own. */
static void test_fork(void)
{
	CHECK_INT(ricci_trace_begin(in_folder("d.json")), 0);
	trace_mark("test", "before", "");
	pid_t child = fork();
	if (child == 0) {
		trace_mark("test", "in the child", "");
		int bad = ricci_trace_end() || ricci_trace_begin(in_folder("e.json"));
		trace_mark("test", "of its own", "");
		exit(bad || ricci_trace_end());
	}
	int status = -1;
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_INT(status, 0);
	trace_mark("test", "behind", "a\nb");
	CHECK_INT(ricci_trace_end(), 0);
	Text parent = read_all(in_folder("d.json")), own = read_all(in_folder("e.json"));
	CHECK(is_whole(parent.s) && is_whole(own.s));
	CHECK_INT(occurs(parent.s, "\"cat\":\"test\""), 2);
	CHECK_INT(occurs(own.s, "\"cat\":\"test\""), 1);
	CHECK_INT(occurs(parent.s, "\"detail\":\"a; b\""), 1);
	text_free(&parent);
	text_free(&own);
}

static void *mark_often(void *none)
{
	trace_thread("marks");
	for (int i = 0; i < 3000; i++)
		trace_span("test", "from a thread", clock_seconds(),
			   "some words, so that it is long");
	return none;
}

static void test_threads(void)
{
	pthread_t t[4];

	CHECK_INT(ricci_trace_begin(in_folder("f.json")), 0);
	for (int i = 0; i < COUNT(t); i++)
		CHECK_INT(thread_start(&t[i], mark_often, NULL), 0);
	for (int i = 0; i < COUNT(t); i++)
		pthread_join(t[i], NULL);
	CHECK_INT(ricci_trace_end(), 0);
	Text all = read_all(in_folder("f.json"));
	CHECK(is_whole(all.s));
	CHECK_INT(occurs(all.s, "from a thread"), COUNT(t) * 3000);
	CHECK_INT(occurs(all.s, "thread_name"), COUNT(t));
	text_free(&all);
}

/* Memory that ends makes the trace an error, or nothing. */
static int trace_short(void)
{
	int code = ricci_trace_begin(in_folder("g.json"));

	if (code)
		return code;
	char words[3000];
	memset(words, 'w', sizeof words);
	words[sizeof words - 1] = 0;
	trace_mark("test", "a mark", words);
	return ricci_trace_end();
}

int main(void)
{
	setenv("RICCI_CACHE", "off", 1);
	snprintf(folder, sizeof folder, "/tmp/ricci-trace-XXXXXX");
	CHECK(mkdtemp(folder));
	test_events();
	test_errors();
	test_fork();
	test_threads();
	check_memory(trace_short);
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_INT(system(command), 0);
	return check_done();
}
