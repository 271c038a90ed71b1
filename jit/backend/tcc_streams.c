/* tcc_streams.c - the three variables of the C library that libtcc refers to directly. libricci.so
 * can't hold such references, so the build renames them in its copy of libtcc (Makefile.in, tcc.o)
 * to these hidden ones. Invariant: set when the library is loaded, before anything can call libtcc.
 */
#include <stdio.h>

extern char **environ;

FILE *ricci_tcc_stdout, *ricci_tcc_stderr;
char **ricci_tcc_environ;

__attribute__((constructor)) static void tcc_streams_set(void)
{
	ricci_tcc_stdout = stdout;
	ricci_tcc_stderr = stderr;
	ricci_tcc_environ = environ;
}
