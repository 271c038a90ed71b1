/* test_cover.c - the targets of coverage-guided fuzzing on the inputs kept in tests/fuzz/seeds:
 * their seeds, and what once went wrong. */
#define LLVMFuzzerTestOneInput notation_target
#include "tests/fuzz/cover_notation.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput solver_target
#include "tests/fuzz/cover_solver.c"

#include "tests/check.h"

#include <dirent.h>

int solver_target(const uint8_t *data, size_t size);

static void run_file(int (*target)(const uint8_t *, size_t), const char *path)
{
	static uint8_t data[1 << 20];
	FILE *in = fopen(path, "rb");
	CHECK(in != NULL);
	if (!in)
		return;
	size_t n = fread(data, 1, sizeof data, in);
	fclose(in);
	fprintf(stderr, "%s\n", path); /* an input that fails ends the process */
	CHECK_INT(target(data, n), 0);
}

static void run_folder(int (*target)(const uint8_t *, size_t), const char *folder)
{
	DIR *d = opendir(folder);
	char path[1000];
	CHECK(d != NULL);
	for (struct dirent *e; d && (e = readdir(d));) {
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.')
			run_file(target, path);
	}
	if (d)
		closedir(d);
}

int main(void)
{
	run_folder(notation_target, "tests/fuzz/seeds/cover_notation");
	run_folder(solver_target, "tests/fuzz/seeds/cover_solver");
	return check_done();
}
