/* test_resume.c - a training that was stopped anywhere, within passes too, or killed, ends with the
 * same files as one that never was: checkpoints, the best and the last n, CSV, events. And files
 * that can't grow for a while, or are another training's; and memory that ends. */
#define _GNU_SOURCE
#include "nn/hdf5/hdf5.h"
#include "tests/nn/training_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

/* ---- stopping and resuming */
static volatile sig_atomic_t stop_flag;
static void stop_now(int number)
{
	stop_flag = number;
}

static void run_features(Case *c, const char *stem)
{
	char name[5][64];
	static const char *const end[] = {".h5", ".csv", ".tfevents", ".svg"};
	static char path[4][500];
	for (int i = 0; i < 4; i++) {
		snprintf(name[i], sizeof name[i], "%s%s", stem, end[i]);
		snprintf(path[i], sizeof path[i], "%s", in_folder(name[i]));
	}
	c->t.epochs = 4;
	c->t.validation = ricci_digits(TEST, 3);
	c->t.validate_every = 9;
	c->t.patience = 100;
	c->t.keep_best = 1;
	c->t.keep = 2;
	c->t.watch = "validation_right";
	c->t.watch_greatest = 1;
	c->t.checkpoint = path[0];
	c->t.csv = path[1];
	c->t.events = path[2];
	c->t.picture = path[3];
}

/* The CSV without the last column, which has times. */
static char *csv_text(const char *name)
{
	size_t n;
	char *data = file_text(name, &n), *to = data;
	for (char *s = data; *s;) {
		char *end = strchr(s, '\n'), *last = end;
		CHECK(end != NULL);
		if (!end)
			break;
		while (last > s && *last != ',')
			last--;
		memmove(to, s, (size_t)(last - s));
		to += last - s;
		*to++ = '\n';
		s = end + 1;
	}
	*to = 0;
	return data;
}

/* CRC-32C by a table, masked as TFRecord files have it. */
static uint32_t crc32c(const void *data, size_t n)
{
	static uint32_t table[256];
	uint32_t crc = 0xffffffff;
	for (uint32_t i = 0; i < 256 && !table[255]; i++) {
		table[i] = i;
		for (int k = 0; k < 8; k++)
			table[i] = table[i] & 1 ? table[i] >> 1 ^ 0x82f63b78 : table[i] >> 1;
	}
	for (size_t i = 0; i < n; i++)
		crc = table[(crc ^ ((const uint8_t *)data)[i]) & 255] ^ crc >> 8;
	return ~crc;
}

static bool sealed(const char *data, size_t n)
{
	uint32_t is, crc = crc32c(data, n);
	memcpy(&is, data + n, 4);
	return is == (crc >> 15 | crc << 17) + 0xa282ead8;
}

/* The event file as text, wall times left out, by another decoder than the library's. */
static char *events_text(const char *name)
{
	size_t n, at = 0;
	char *data = file_text(name, &n);
	Text t = {0};
	while (at + 16 <= n) {
		uint64_t size, step = 0;
		memcpy(&size, data + at, 8);
		const unsigned char *e = (unsigned char *)data + at + 12, *end = e + size;
		CHECK(at + 16 + size <= n && e[0] == 9 && e[9] == 16);
		CHECK(sealed(data + at, 8) && sealed(data + at + 12, size));
		for (e += 10; e < end; e++) {
			step = step * 128 + (*e & 127);
			if (*e < 128)
				break;
			CHECK(e[1] < 128); /* two bytes: below 16384 */
			step = (e[0] & 127) + 128 * (uint64_t)e[1];
			e++;
			break;
		}
		text_add(&t, "%d:", (int)step);
		for (e++; e < end; e++)
			text_add(&t, "%02x", *e);
		text_add(&t, "\n");
		at += 16 + size;
	}
	CHECK_INT(at, n);
	mem_free(data);
	return t.s;
}

/* Without what tells of seconds, which differ. */
static void same_events(const char *a, const char *b)
{
	char *x = events_text(a), *y = events_text(b), *p = x, *q = y;
	int n = 0;
	for (; *p && *q; n++) {
		size_t i = strcspn(p, "\n"), k = strcspn(q, "\n");
		char *time = strstr(p, "7365636f6e6473"); /* "seconds" */
		size_t same = time && time < p + i ? (size_t)(time - p) : i;
		if (i != k || memcmp(p, q, same)) {
			CHECK_REPORT(false, "event %d: %.*s, should be %.*s", n, (int)i, p, (int)k,
				     q);
			break;
		}
		p += i + 1;
		q += k + 1;
	}
	CHECK(!*p && !*q);
	CHECK(n > 4 * PER_EPOCH);
	mem_free(x);
	mem_free(y);
}

/* The tensorboard package reads what the CSV holds. */
static void tensorboard(void)
{
	char command[700], line[800];
	snprintf(command, sizeof command, "${PYTHON:-python3} tests/nn/events.py %s 2>/dev/null",
		 in_folder("whole.tfevents"));
	FILE *f = popen(command, "r");
	size_t n;
	char *csv = file_text("whole.csv", &n), *name[COLUMNS], *row = csv;
	int ncolumn = 0, numbers = 0;
	char *head = strsep(&row, "\n");
	while (head && ncolumn < COLUMNS)
		name[ncolumn++] = strsep(&head, ",");
	name[ncolumn - 1] = "seconds";
	bool more = f && fgets(line, sizeof line, f);
	for (char *r; more && row && (r = strsep(&row, "\n"));) {
		const char *of = strsep(&r, ",");
		for (int i = 1, step = 0; r && i < ncolumn; i++) {
			const char *value = strsep(&r, ",");
			char tag[100], want[100];
			int at;
			double is = NAN;
			step = i == 2 ? atoi(value) : step;
			if (i < 3 || !*value)
				continue;
			snprintf(want, sizeof want, "%s/%s", of, name[i]);
			CHECK(more && sscanf(line, "%d %99s %lf", &at, tag, &is) == 3);
			CHECK_INT(at, step);
			CHECK_STR(tag, want);
			CHECK_NEAR(is, atof(value), 2e-5 * fabs(is));
			numbers++;
			more = fgets(line, sizeof line, f);
		}
	}
	int status = f ? pclose(f) : -1;
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127))
		CHECK_SKIP("no tensorboard package");
	else
		CHECK(status == 0 && !more && numbers > 4 * PER_EPOCH * 3);
	mem_free(csv);
}

static void same_bytes(const char *a, const char *b)
{
	size_t n, m;
	char *x = file_text(a, &n), *y = file_text(b, &m);
	CHECK_REPORT(n == m && !memcmp(x, y, n), "%s and %s differ", a, b);
	mem_free(x);
	mem_free(y);
}

static void same_files(const char *stem)
{
	static const char *const end[] = {".h5", ".h5.best", ".h5.step60", ".h5.step80"};
	char a[64], b[64];
	for (int i = 0; i < COUNT(end); i++) {
		snprintf(a, sizeof a, "whole%s", end[i]);
		snprintf(b, sizeof b, "%s%s", stem, end[i]);
		same_bytes(b, a);
	}
	snprintf(b, sizeof b, "%s.h5.step40", stem);
	CHECK(access(in_folder(b), F_OK) != 0);
	snprintf(b, sizeof b, "%s.csv", stem);
	char *want = csv_text("whole.csv"), *is = csv_text(b);
	CHECK_STR(is, want);
	mem_free(want);
	mem_free(is);
	snprintf(b, sizeof b, "%s.tfevents", stem);
	same_events(b, "whole.tfevents");
}

static void whole(void)
{
	Case c = case_new(0.9);
	run_features(&c, "whole");
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	CHECK_INT(c.report.step, 4 * PER_EPOCH);
	size_t n;
	char *svg = file_text("whole.svg", &n), *csv = csv_text("whole.csv");
	static const char *const title[] = {">loss<",	       ">errors<",	   ">right<",
					    ">mistakes<",      ">perplexity<",	   ">bits<",
					    ">learning rate<", ">time of a step<", ">step<"};
	for (int i = 0; i < COUNT(title); i++)
		CHECK_REPORT(strstr(svg, title[i]) != NULL, "no %s", title[i]);
	CHECK(!strstr(svg, "nan") && !strstr(svg, "inf"));
	int rows = 0;
	for (const char *s = csv; (s = strchr(s, '\n')); s++)
		rows++;
	CHECK_INT(rows, 1 + 4 * PER_EPOCH + 4 + 4 * PER_EPOCH / 9);
	mem_free(svg);
	mem_free(csv);
	case_free(&c);
}

/* Stopped at steps, and by a timer wherever that comes. */
static void resumed(void)
{
	signal(SIGALRM, stop_now);
	int stops = 0;
	for (int i = 0; i < 40; i++) {
		Case c = case_new(0.9);
		run_features(&c, "part");
		if (i)
			c.t.resume = c.t.checkpoint;
		stop_flag = 0;
		c.t.stop = &stop_flag;
		if (i % 2 == 0 && i < 8)
			c.t.steps = (uint64_t[]){5, 9, 20, 47}[i / 2];
		else if (i < 30)
			setitimer(ITIMER_REAL,
				  &(struct itimerval){.it_value.tv_usec = 20000 + 15000 * i}, NULL);
		int status = case_run(&c);
		setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
		CHECK_REPORT(!status, "%s", ricci_error_message());
		stops += c.report.stopped != 0;
		bool end = !c.report.stopped && !c.t.steps;
		case_free(&c);
		if (end || status)
			break;
	}
	CHECK(stops > 0);
	same_files("part");
}

static void copy(const char *from, const char *to, size_t cut)
{
	size_t n;
	char *data = file_text(from, &n);
	Error err = {0};
	CHECK_INT(file_replace(in_folder(to), false, &(Bytes){data, n - cut}, 1, &err), 0);
	mem_free(data);
}

/* As after kill -9: files of numbers that are ahead of the checkpoint, with a torn end; kept
 * checkpoints of a future that comes again. */
static void killed(void)
{
	Case c = case_new(0.9);
	run_features(&c, "torn");
	c.t.steps = 20;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	case_free(&c);
	copy("whole.csv", "torn.csv", 17);
	copy("whole.tfevents", "torn.tfevents", 9);
	copy("whole.h5.step80", "torn.h5.step80", 0);
	copy("whole.h5", "torn.h5.step77", 0);
	c = case_new(0.9);
	run_features(&c, "torn");
	c.t.resume = c.t.checkpoint;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	case_free(&c);
	same_files("torn");
	CHECK(access(in_folder("torn.h5.step77"), F_OK) != 0);
}

/* The initial state alone, and a training that begins with it. */
static void begun(void)
{
	Case c = case_new(0.9);
	ricci_position at = RICCI_POSITION();
	run_features(&c, "begun");
	c.t.initial = 1;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	CHECK_INT(ricci_peek(in_folder("begun.h5"), &at), 0);
	CHECK(at.step == 0 && at.epoch == 0 && at.index == 0);
	CHECK(access(in_folder("begun.h5.step0"), F_OK) != 0);
	case_free(&c);
	c = case_new(0.9);
	run_features(&c, "begun");
	c.t.resume = c.t.checkpoint;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	case_free(&c);
	same_files("begun");
}

/* Saved within epochs too: of the end, and before that in step 15 of 17. */
static void saved_within(void)
{
	Case c = case_new(0);
	ricci_position at = RICCI_POSITION();
	c.t.checkpoint = in_folder("within.h5");
	c.t.checkpoint_every = 5;
	c.t.steps = 17;
	CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
	CHECK_INT(ricci_peek(in_folder("within.h5"), &at), 0);
	CHECK_INT(at.step, 17);
	CHECK_INT(ricci_peek(in_folder("within.h5.prev"), &at), 0);
	CHECK(at.step == 15 && at.epoch == 0 && at.index == 15 * BATCH);
	case_free(&c);
}

/* Saved behind the validation that is due in the same step: a run that resumes there does it no
 * second time. */
static void saved_and_validated(void)
{
	char *text[2];
	for (int again = 0; again < 2; again++) {
		Case c = case_new(0);
		c.t.validation = ricci_digits(TEST, 3);
		c.t.validate_every = c.t.checkpoint_every = 5;
		c.t.steps = 17;
		c.t.checkpoint = in_folder("both.h5");
		c.t.csv = in_folder("both.csv");
		c.t.resume = again ? in_folder("both.h5.prev") : NULL;
		c.t.overwrite = 1;
		CHECK_REPORT(!case_run(&c), "%s", ricci_error_message());
		case_free(&c);
		text[again] = csv_text("both.csv");
	}
	CHECK_STR(text[1], text[0]);
	mem_free(text[0]);
	mem_free(text[1]);
}

/* Processes that are killed, later and later, until one comes to the end. */
static void killed_anywhere(void)
{
	int status = 0, kills = 0;
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			Case c = case_new(0.9);
			run_features(&c, "dead");
			c.t.overwrite = 1;
			c.t.checkpoint_every = 7;
			if (!access(c.t.checkpoint, F_OK))
				c.t.resume = c.t.checkpoint;
			_exit(case_run(&c) ? 1 : 0);
		}
		if (i < 30) {
			long ns = 20000000 + 9000000L * i;
			nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
			kill(pid, SIGKILL);
		}
		waitpid(pid, &status, 0);
		kills += WIFSIGNALED(status);
		if (WIFEXITED(status))
			break;
	}
	CHECK(kills > 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	same_files("dead");
}

/* ---- a process that writes a file, and waits for a lock that nobody in it holds */
static int stalls;

static void stall(void)
{
	if (stalls > 0)
		pause();
}

/* (One fork a line of h5_run: the parent counts.) */
static void stall_count(void)
{
	stalls--;
}

static int write_little(void *user, int out, Error *err)
{
	(void)user;
	return h5_put(out, "done", 4, err);
}

static void stalled(void)
{
	double usual[COUNT(h5_patience)];
	Error e = {0};
	H5Result r;
	memcpy(usual, h5_patience, sizeof usual);
	for (int k = 0; k < COUNT(h5_patience); k++)
		h5_patience[k] = 0.3;
	pthread_atfork(NULL, stall_count, stall);
	stalls = 2;
	CHECK_INT(h5_run(write_little, NULL, &r, &e), 0);
	CHECK(r.n == 4 && !memcmp(r.data, "done", 4) && !e.code);
	h5_result_free(&r);
	stalls = 100;
	CHECK_INT(h5_run(write_little, NULL, &r, &e), RICCI_EIO);
	CHECK_REPORT(strstr(e.text, "stood still"), "said: %s", e.text);
	stalls = 0;
	memcpy(h5_patience, usual, sizeof usual);
}

/* ---- a process that writes a file, and whose parent is gone: before it could ask to be told */
static int write_forever(void *user, int out, Error *err)
{
	static char line[4096];
	prctl(PR_SET_PDEATHSIG, 0);
	*(volatile pid_t *)user = getpid();
	while (!h5_put(out, line, sizeof line, err))
		;
	return err->code;
}

static void orphaned(void)
{
	volatile pid_t *writer = mmap(NULL, sizeof *writer, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t parent = fork();
	if (parent == 0) {
		H5Result r;
		h5_run(write_forever, (void *)writer, &r, NULL);
		_exit(1);
	}
	while (!*writer)
		usleep(1000);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	int waited = 0;
	while (waitpid(*writer, NULL, WNOHANG) == 0 && waited++ < 5000)
		usleep(1000);
	CHECK(waited < 5000);
	if (waited >= 5000)
		kill(*writer, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	munmap((void *)writer, sizeof *writer);
}

/* ---- a file that can't grow for a while */
static void full_disk(void)
{
	Log log = {.fd = -1};
	Error err = {0};
	History *h = mem_zalloc(sizeof *h);
	history_start(h);
	h->ncolumn = 1;
	snprintf(h->column[0], COLUMN_NAME, "loss");
	const char *path = in_folder("full.csv");
	CHECK_INT(csv_open(&log, path, false, 0, h, &err), 0);
	struct rlimit old, low;
	getrlimit(RLIMIT_FSIZE, &old);
	low = old;
	low.rlim_cur = 120;
	for (int step = 1; step <= 9; step++) {
		double value = step;
		if (step == 4)
			setrlimit(RLIMIT_FSIZE, &low);
		if (step == 8)
			setrlimit(RLIMIT_FSIZE, &old);
		csv_add(&log, h, &(Entry){"step", 1, (uint64_t)step, &value, 0.5});
		int status = log_flush(&log, true, &err);
		size_t n;
		char *text = file_text("full.csv", &n);
		CHECK(n && text[n - 1] == '\n');
		mem_free(text);
		if (step == 6) { /* the first that does not fit: told once */
			CHECK_INT(status, RICCI_EIO);
			CHECK(strstr(err.text, "full.csv: File too large") != NULL);
			error_clear(&err);
		} else {
			CHECK_INT(status, 0);
		}
	}
	log_close(&log);
	size_t n;
	char *text = file_text("full.csv", &n);
	CHECK_STR(text, "of,epoch,step,loss,seconds_per_step\n"
			"step,1,1,1,0.5\nstep,1,2,2,0.5\nstep,1,3,3,0.5\nstep,1,4,4,0.5\n"
			"step,1,5,5,0.5\nstep,1,6,6,0.5\nstep,1,7,7,0.5\nstep,1,8,8,0.5\n"
			"step,1,9,9,0.5\n");
	mem_free(text);
	history_free(h);
	mem_free(h);
}

/* ---- files that are there */
static void refuse(Case *c, int code, const char *message)
{
	CHECK_INT(case_run(c), code);
	CHECK_STR(ricci_error_message(), message);
}

static void mistakes(void)
{
	char want[700];
	Case c = case_new(0);
	c.t.epochs = 1;
	c.t.csv = in_folder("whole.csv");
	snprintf(want, sizeof want,
		 "%s exists: resume from it, or overwrite it (the option of that name), or save "
		 "elsewhere",
		 c.t.csv);
	refuse(&c, RICCI_EINVAL, want);
	case_free(&c);
	Case d = case_new(0.9);
	run_features(&d, "whole");
	d.t.resume = d.t.checkpoint;
	d.t.nmetric = 3;
	d.t.epochs = 5;
	snprintf(want, sizeof want,
		 "%s has other columns than this training: it cannot be continued; choose another "
		 "path",
		 d.t.csv);
	refuse(&d, RICCI_EFORMAT, want);
	case_free(&d);
}

/* Memory runs out anywhere: an error, nothing kept. */
static void no_memory(void)
{
	int status = -1, tries = 0;
	for (long n = 1; status && n < 1000000; n += 1 + n / 8, tries++) {
		long before = mem_live();
		Case c = case_new(0);
		run_features(&c, "memory");
		c.t.overwrite = 1;
		c.t.steps = 10;
		mem_fail_at(n);
		status = case_run(&c);
		mem_fail_at(0);
		CHECK(status == 0 || *ricci_error_message());
		case_free(&c);
		CHECK_INT(mem_live(), before);
	}
	CHECK_INT(status, 0);
	CHECK(tries > 30);
}

int main(void)
{
	if (!folder_make("resume"))
		return 1;
	CHECK_INT(crc32c("123456789", 9), 0xe3069283);
	whole();
	tensorboard();
	resumed();
	killed();
	killed_anywhere();
	stalled();
	orphaned();
	begun();
	saved_within();
	saved_and_validated();
	full_disk();
	mistakes();
	no_memory();
	folder_remove();
	return check_done();
}
