/* child.h - a step of a test in a process of its own: what a process decides once is decided anew.
 */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs f in a child; what it returns (0..255), or -1 when it crashed. */
static int child(int (*f)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		exit(f());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
