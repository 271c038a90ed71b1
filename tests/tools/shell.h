/* shell.h - runs the program `ricci` of the same build (../../tools/ricci from the test's own
 * program) as a shell does, in a folder of its own that shell_close removes. */
#ifndef SHELL_H
#define SHELL_H

#include "tests/check.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char tool[PATH_MAX + 32];
static char out[1 << 16], err[1 << 16];
static int status;

static void slurp(const char *file, char *text, size_t room)
{
	FILE *f = fopen(file, "rb");
	size_t n = f ? fread(text, 1, room - 1, f) : 0;
	text[n] = 0;
	if (f)
		fclose(f);
}

static void redirect(int fd, const char *file)
{
	int to = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (to < 0 || dup2(to, fd) < 0)
		_exit(99);
	close(to);
}

/* Runs the tool with the words up to NULL; fills status, out and err. */
static void ricci(const char *const *words)
{
	const char *argv[40] = {tool};
	for (int n = 0; words[n] && n < 38; n++)
		argv[n + 1] = words[n];
	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		redirect(1, "out.txt");
		redirect(2, "err.txt");
		execv(tool, (char *const *)argv);
		_exit(98);
	}
	int how = 0;
	waitpid(pid, &how, 0);
	status = WIFEXITED(how) ? WEXITSTATUS(how) : 1000 + WTERMSIG(how);
	slurp("out.txt", out, sizeof out);
	slurp("err.txt", err, sizeof err);
}
#define RICCI(...) ricci((const char *const[]){__VA_ARGS__, NULL})

/* A folder for this test's files and the tool to run. */
static void shell_open(const char *argv0)
{
	char here[PATH_MAX];
	static char folder[] = "/tmp/ricci-tool-XXXXXX";
	if (!realpath(argv0, here) || !mkdtemp(folder) || chdir(folder)) {
		perror(argv0);
		exit(1);
	}
	snprintf(tool, sizeof tool, "%s/../../tools/ricci", dirname(here));
	setenv("RICCI_CACHE", "cache", 0);
}

static void shell_close(void)
{
	char folder[PATH_MAX], command[PATH_MAX + 10];
	if (!getcwd(folder, sizeof folder) || strncmp(folder, "/tmp/ricci-tool-", 16))
		return;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	CHECK(chdir("/") == 0 && system(command) == 0);
}

static bool shell_has_cc(void)
{
	return !system("command -v cc >/dev/null || command -v gcc >/dev/null || "
		       "command -v clang >/dev/null");
}

#endif
