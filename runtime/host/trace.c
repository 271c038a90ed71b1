/* trace.c - what the threads of this process do, over time, as a file that people look at.
 *
 * Input: spans and marks of any thread. Output: a JSON array of trace events ("Trace Event Format",
 * Google, 2016), which Perfetto and chrome://tracing open; both do without the closing bracket, if the
 * process crashed. Where no trace is written, a span costs the reading of one number.
 * Invariant: LOCK_TRACE guards all but `writing`, which is not 0 while a file is open. A forked child
 * inherits its parent's trace and leaves it alone.
 */
#define _GNU_SOURCE
#include "runtime/host/host.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BUFFERED = 1 << 18 };

static atomic_uint writing; /* the number of the trace; 0: none */
static struct {
	int fd, failed; /* failed: the first errno */
	Text text;	/* what was not written yet */
	char *path;	/* as the user has it */
	double began;
	unsigned number, generation;
} trace;

static _Thread_local const char *thread = "training";
static _Thread_local unsigned told; /* the number of the trace that knows the thread's name */

void trace_thread(const char *name)
{
	thread = name;
}

bool trace_on(void)
{
	return atomic_load_explicit(&writing, memory_order_relaxed) != 0;
}

static bool is_open(void)
{
	return trace_on() && trace.generation == fork_generation();
}

static void flush(void)
{
	const char *s = trace.text.s;
	size_t left = trace.text.n;

	while (left && !trace.failed) {
		ssize_t n = write(trace.fd, s, left);

		if (n < 0 && errno != EINTR)
			trace.failed = errno;
		s += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	trace.text.n = 0;
}

/* s as a string of JSON. */
static void put_string(const char *s)
{
	text_add(&trace.text, "\"");
	while (*s) {
		size_t n = strcspn(s, "\"\\\n");

		text_put(&trace.text, s, n);
		s += n;
		if (*s == '\n')
			text_put(&trace.text, "; ", 2);
		else if (*s)
			text_add(&trace.text, "\\%c", *s);
		s += *s != 0;
	}
	text_add(&trace.text, "\"");
}

/* The beginning of an event of this thread, up to its name. */
static void put_event(char phase, const char *name)
{
	text_add(&trace.text, ",\n{\"ph\":\"%c\",\"pid\":1,\"tid\":%ld,\"name\":", phase,
		 (long)syscall(SYS_gettid));
	put_string(name);
}

static void put_detail(const char *key, const char *value)
{
	text_add(&trace.text, ",\"args\":{\"%s\":", key);
	put_string(value);
	text_add(&trace.text, "}");
}

/* seconds < 0: a mark. */
static void put(const char *kind, const char *name, double from, double seconds, const char *detail)
{
	if (told != trace.number) {
		told = trace.number;
		put_event('M', "thread_name");
		put_detail("name", thread);
		text_add(&trace.text, "}");
	}
	put_event(seconds < 0 ? 'i' : 'X', name);
	text_add(&trace.text, ",\"cat\":\"%s\",\"ts\":%.3f", kind, 1e6 * (from - trace.began));
	if (seconds < 0)
		text_add(&trace.text, ",\"s\":\"t\"");
	else
		text_add(&trace.text, ",\"dur\":%.3f", 1e6 * seconds);
	if (*detail)
		put_detail("detail", detail);
	text_add(&trace.text, "}");
	if (trace.text.n >= BUFFERED)
		flush();
}

void trace_span(const char *kind, const char *name, double from, const char *detail)
{
	if (!trace_on())
		return;
	double to = clock_seconds();
	lock_take(LOCK_TRACE);
	if (is_open() && from >= trace.began)
		put(kind, name, from, to - from, detail);
	lock_leave(LOCK_TRACE);
}

void trace_mark(const char *kind, const char *name, const char *detail)
{
	if (!trace_on())
		return;
	lock_take(LOCK_TRACE);
	if (is_open())
		put(kind, name, clock_seconds(), -1, detail);
	lock_leave(LOCK_TRACE);
}

/* ---- public ---- */
static void trace_close(void)
{
	if (close(trace.fd) && !trace.failed)
		trace.failed = errno;
	text_free(&trace.text);
	mem_free(trace.path);
	trace.path = NULL;
}

static int trace_open(const char *path)
{
	char *copy = mem_strdup(path);
	int fd = copy ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;

	if (fd < 0) {
		int code = copy ? RICCI_EIO : RICCI_ENOMEM;

		mem_free(copy);
		return error_set(ERROR_TELL, code, "the trace %s can't be written: %s", path,
				 strerror(copy ? errno : ENOMEM));
	}
	if (trace.path) /* a parent's */
		trace_close();
	trace.fd = fd;
	trace.failed = 0;
	trace.path = copy;
	trace.began = clock_seconds();
	trace.number++;
	trace.generation = fork_generation();
	text_add(&trace.text,
		 "[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":"
		 "\"ricci\"}}");
	atomic_store(&writing, trace.number);
	return 0;
}

int ricci_trace_begin(const char *path)
{
	int code;

	if (!path)
		return error_set(ERROR_TELL, RICCI_EINVAL, "ricci_trace_begin: the path is NULL");
	lock_take(LOCK_TRACE);
	code = is_open()
		       ? error_set(ERROR_TELL, RICCI_EINVAL,
				   "a trace is being written to %s: end that one first", trace.path)
		       : trace_open(path);
	lock_leave(LOCK_TRACE);
	return code;
}

int ricci_trace_end(void)
{
	int code = 0;

	lock_take(LOCK_TRACE);
	if (is_open()) {
		char path[256];

		atomic_store(&writing, 0);
		text_add(&trace.text, "\n]\n");
		bool memory = trace.text.failed;
		flush();
		message_print(path, sizeof path, "%s", trace.path);
		trace_close();
		if (memory || trace.failed)
			code = error_set(ERROR_TELL, memory ? RICCI_ENOMEM : RICCI_EIO,
					 "the trace %s is not whole: %s", path,
					 memory ? "out of memory" : strerror(trace.failed));
	}
	lock_leave(LOCK_TRACE);
	return code;
}
