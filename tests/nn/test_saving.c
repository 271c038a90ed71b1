/* test_saving.c - what is kept of a training that is interrupted, killed while it saves, or
 * diverges; and of a file that is replaced: its permissions, links to it, the one before it.
 * RICCI_SIGNALS and RICCI_KILLS: how often. */
#include "nn/nn.h"
#include "tests/check.h"
#include "tests/nn/folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { BATCH = 20 };

/* One linear layer that is trained for long, saved in `name`. */
static int train(const char *name, double rate, uint64_t steps, int overwrite,
		 const volatile sig_atomic_t *stop, FILE *lines, ricci_report *report)
{
	ricci_graph *g = ricci_graph_new();
	ricci_tensor *x = ricci_input(g, "x", RICCI_F32, 2, (int64_t[]){BATCH, 784});
	ricci_tensor *y = ricci_input(g, "y", RICCI_I32, 1, (int64_t[]){BATCH});
	ricci_tensor *w = ricci_param(g, "w", RICCI_F32, 2, (int64_t[]){10, 784}, ricci_lecun(784));
	ricci_tensor *z = ricci_linear(x, w, NULL);
	ricci_training t = RICCI_TRAINING(.samples = x, .labels = y,
					  .misclassified = ricci_misclassified(z, y));
	t.loss = ricci_cross_entropy(z, y);
	if (rate > 1) /* no parameter is finite after the first step; the loss before it is */
		t.loss = ricci_op(g, "Y[] = L[] * 1000.0", t.loss);
	ricci_sgd(t.loss, ricci_learning_rate(g, rate));
	t.train = ricci_digits(400, 1);
	t.test = ricci_digits(2000, 2);
	t.options = &RICCI_OPTIONS(.backend = RICCI_BACKEND_TCC, .threads = 1, .static_mode = 1,
				   .seed = 42);
	t.checkpoint = name;
	t.steps = steps;
	t.epochs = steps ? 0 : 1000000;
	t.overwrite = overwrite;
	t.stop = stop;
	t.lines = lines;
	int status = ricci_train(&t, report);
	ricci_data_free(t.train);
	ricci_data_free(t.test);
	ricci_graph_free(g);
	return status;
}

static uint64_t step_of(const char *path)
{
	ricci_position p = RICCI_POSITION();
	CHECK_REPORT(!ricci_peek(path, &p), "%s", ricci_error_message());
	return p.step;
}

static void nap(double seconds)
{
	nanosleep(&(struct timespec){(time_t)seconds, (long)(1e9 * (seconds - (int)seconds))},
		  NULL);
}

/* A child that runs f, which says through the pipe when the parent may go on. */
static pid_t child_start(int (*f)(int ready))
{
	int ends[2];
	char byte;
	if (pipe(ends))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		alarm(60);
		_exit(f(ends[1]));
	}
	close(ends[1]);
	CHECK_INT(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return pid;
}

static bool tell(int ready)
{
	return write(ready, "", 1) == 1 && !close(ready);
}

/* ---- signals */
static int train_until(int ready)
{
	ricci_report report = RICCI_REPORT();
	const volatile sig_atomic_t *stop = ricci_interrupted();
	if (!tell(ready) || train(in_folder("signal.h5"), 0.01, 0, 1, stop, NULL, &report))
		return 1;
	return 128 + report.stopped;
}

/* The parent goes on after the first epoch. */
static int train_epochs(int ready)
{
	ricci_report report = RICCI_REPORT();
	const volatile sig_atomic_t *stop = ricci_interrupted();
	signal(SIGPIPE, SIG_IGN);
	if (train(in_folder("signal.h5"), 0.01, 0, 1, stop, fdopen(ready, "w"), &report))
		return 1;
	return 128 + report.stopped;
}

/* Wherever it comes, even in the midst of a test pass: what was learnt is saved. */
static void signals(int times)
{
	static const int number[] = {SIGTERM, SIGINT, SIGTERM, SIGHUP};
	for (int i = 0; i < times; i++) {
		int status = 0, s = number[i % COUNT(number)];
		bool late = i % 2;
		pid_t pid = child_start(late ? train_epochs : train_until);
		nap(0.037 * (i % 9));
		kill(pid, s);
		waitpid(pid, &status, 0);
		CHECK_REPORT(WIFEXITED(status) && WEXITSTATUS(status) == 128 + s,
			     "signal %d: status %x", s, (unsigned)status);
		uint64_t step = step_of(in_folder("signal.h5"));
		CHECK(!late || step >= 20);
	}
}

static int wait_long(int ready)
{
	const volatile sig_atomic_t *stop = ricci_interrupted();
	if (!tell(ready))
		return 1;
	while (!*stop)
		nap(0.001);
	for (int i = 0; i < 2000; i++)
		nap(0.01);
	return 0;
}

/* A second signal, of another kind too, ends the process at once. */
static void second_signal(void)
{
	int status = 0;
	pid_t pid = child_start(wait_long);
	kill(pid, SIGTERM);
	nap(0.1);
	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	ricci_interrupted();
	raise(SIGTERM);
	CHECK_INT(*ricci_interrupted(), 0); /* another training begins anew */
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

/* ---- kills */
typedef struct Saver {
	ricci_graph *g;
	ricci_tensor *w;
	ricci_session *s;
} Saver;

static Saver saver_new(void)
{
	Saver a = {.g = ricci_graph_new()};
	a.w = ricci_param(a.g, "w", RICCI_F32, 2, (int64_t[]){200, 300}, ricci_normal(1));
	a.s = ricci_session_new(a.g,
				&RICCI_OPTIONS(.backend = RICCI_BACKEND_INTERP, .threads = 1,
					       .static_mode = 1, .seed = 1),
				0, 1, &a.w);
	CHECK_REPORT(a.s != NULL, "%s", ricci_error_message());
	return a;
}

static int saver_save(const Saver *a, const char *path)
{
	return ricci_save(a->s, a->w, path, NULL, 0);
}

static void saver_free(Saver *a)
{
	ricci_session_free(a->s);
	ricci_graph_free(a->g);
}

static int save_always(int ready)
{
	Saver a = saver_new();
	for (uint64_t n = 1;; n++) {
		ricci_set_step(a.s, n);
		if (saver_save(&a, in_folder("kill.h5")) || (n == 1 && !tell(ready)))
			return 1;
	}
}

/* Files in the folder whose names end so. */
static int files_with(const char *end)
{
	DIR *d = opendir(folder);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));) {
		size_t a = strlen(e->d_name), b = strlen(end);
		n += a >= b && !strcmp(e->d_name + a - b, end);
	}
	if (d)
		closedir(d);
	return n;
}

static void kills(int times)
{
	for (int i = 0; i < times; i++) {
		int status;
		pid_t pid = child_start(save_always);
		nap(0.0007 * (i % 23));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		CHECK(WIFSIGNALED(status));
		CHECK(step_of(in_folder("kill.h5")) > 0);
		if (i > 0 || !access(in_folder("kill.h5.prev"), F_OK))
			CHECK(step_of(in_folder("kill.h5.prev")) > 0);
		CHECK(files_with(".tmp") <= 2);
	}
	Saver a = saver_new();
	CHECK_INT(saver_save(&a, in_folder("kill.h5")), 0);
	CHECK_INT(files_with(".tmp"), 0);
	saver_free(&a);
}

/* ---- the file */
static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0);
	if (f)
		fclose(f);
}

static void replaced(void)
{
	struct stat st;
	Saver a = saver_new();
	const char *real = in_folder("real.h5");
	write_text(in_folder("real.h5.17-abc.tmp"), "what a killed process left");
	write_text(in_folder("real.h5.bak.tmp"), "a user's file");
	ricci_set_step(a.s, 1);
	CHECK_INT(saver_save(&a, real), 0);
	CHECK(access(in_folder("real.h5.17-abc.tmp"), F_OK) != 0);
	CHECK_INT(access(in_folder("real.h5.bak.tmp"), F_OK), 0);
	CHECK(access(in_folder("real.h5.prev"), F_OK) != 0);
	CHECK_INT(chmod(real, 0640), 0);
	CHECK_INT(symlink("real.h5", in_folder("link.h5")), 0);
	ricci_set_step(a.s, 2);
	CHECK_INT(saver_save(&a, in_folder("link.h5")), 0);
	CHECK(!lstat(in_folder("link.h5"), &st) && S_ISLNK(st.st_mode));
	CHECK(!stat(real, &st) && (st.st_mode & 07777) == 0640);
	CHECK_INT(step_of(real), 2);
	CHECK_INT(step_of(in_folder("real.h5.prev")), 1);
	CHECK_INT(symlink(in_folder("later.h5"), in_folder("dangling.h5")), 0);
	CHECK_INT(saver_save(&a, in_folder("dangling.h5")), 0);
	CHECK_INT(step_of(in_folder("later.h5")), 2);
	CHECK_INT(ricci_save(a.s, a.w, real, NULL, 99), RICCI_EINVAL);
	CHECK_STR(ricci_error_message(), "compress is a level of gzip, 0..9, not 99");
	saver_free(&a);
}

/* ---- the training */
static void overwriting(void)
{
	char want[400];
	const char *path = in_folder("train.h5");
	CHECK_INT(train(path, 0.01, 60, 0, NULL, NULL, NULL), 0);
	CHECK_INT(train(path, 0.01, 5, 0, NULL, NULL, NULL), RICCI_EINVAL);
	snprintf(want, sizeof want,
		 "%s exists: resume from it, or overwrite it (the option of that name), or save "
		 "elsewhere",
		 path);
	CHECK_STR(ricci_error_message(), want);
	CHECK_INT(step_of(path), 60);
	CHECK_INT(train(path, 0.01, 5, 1, NULL, NULL, NULL), 0);
	CHECK_INT(step_of(path), 5);
	CHECK_INT(step_of(in_folder("train.h5.prev")), 60);
}

/* The loss of the last step is still a number, the parameters are none: nothing is saved. */
static void diverging(void)
{
	const char *path = in_folder("train.h5");
	CHECK_INT(train(path, 3e38, 100, 1, NULL, NULL, NULL), RICCI_EVALUE);
	CHECK(strstr(ricci_error_message(), "the training diverged") != NULL);
	CHECK_INT(train(path, 3e38, 1, 1, NULL, NULL, NULL), RICCI_EVALUE);
	CHECK(strstr(ricci_error_message(), "after step 1: the training diverged") != NULL);
	CHECK(strstr(ricci_error_message(), "train.h5 stays as it was") != NULL);
	CHECK_INT(step_of(path), 5);
	CHECK_INT(step_of(in_folder("train.h5.prev")), 60);
}

int main(void)
{
	if (!folder_make("saving"))
		return 1;
	signals((int)env_long("RICCI_SIGNALS", 6));
	second_signal();
	kills((int)env_long("RICCI_KILLS", 20));
	replaced();
	overwriting();
	diverging();
	folder_remove();
	return check_done();
}
