/* test_cache.c - the function cache: background tuning, kernels kept for the next process, entries
 * that are broken, many processes in one folder. Every step is a process of its own. */
#include "runtime/host/folder.h"
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/runtime/cache_case.h"
#include "tests/child.h"
#include <dirent.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_static(void)
{
	int ncc, bad = train(RICCI_BACKEND_AUTO, 1, 0, 2, &ncc);

	return bad || mem_live() ? 100 : ncc;
}

static int run_alone(void)
{
	int ncc, bad;

	setenv("RICCI_CC_TIMEOUT", "0", 1);
	bad = train(RICCI_BACKEND_AUTO, 0, 0, 1, &ncc);
	return bad ? 100 : ncc;
}

static int run_list(void)
{
	char text[4096] = "";
	FILE *f = fmemopen(text, sizeof text, "w");
	CacheReport r;
	Error err = {0};
	int lines = 0, timed = 0;

	if (!f || cache_list(f, &err) || cache_verify(false, &r, &err))
		return 100;
	fclose(f);
	for (char *s = text, *end; (end = strchr(s, '\n')); s = end + 1, lines++) {
		double us = -1; /* 0: was never on trial */
		if (sscanf(s, "%*s %*s %lf us (", &us) != 1 || us < 0 || us > 1e5)
			return 100;
		timed += us > 0;
	}
	return timed && lines == r.entries && r.broken == 0 && r.bytes > 1000 ? lines : 100;
}

static int run_verify(void)
{
	CacheReport r;

	return cache_verify(true, &r, NULL) ? 100 : r.broken;
}

static int run_clear(void)
{
	CacheReport r;

	return cache_clear(&r, NULL) ? 100 : r.entries;
}

static void damage(const char *suffix, int how)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[600];
		size_t a = strlen(e->d_name), b = strlen(suffix);
		FILE *f;

		if (a <= b || strcmp(e->d_name + a - b, suffix))
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (how == 0 && truncate(path, 40))
			perror(path);
		if (how == 1 && (f = fopen(path, "r+"))) {
			fseek(f, 300, SEEK_SET);
			fputc('#', f);
			fclose(f);
		}
		if (how == 2)
			unlink(path);
	}
	if (d)
		closedir(d);
}

static void test_crowd(void)
{
	pid_t pid[4];
	int status;

	for (int i = 0; i < 4; i++)
		if ((pid[i] = fork()) == 0)
			exit(run_settled());
	for (int i = 0; i < 4; i++) {
		waitpid(pid[i], &status, 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) > 0 && WEXITSTATUS(status) < 100);
	}
}

/* The bound on the folder's size holds after many entries. */
static int run_trim(void)
{
	char name[NAME_ROOM], block[4096] = "x";

	setenv("RICCI_CACHE_MB", "1", 1);
	if (!cache_folder())
		return 100;
	for (int i = 0; i < 1000; i++) {
		folder_name(0, (uint64_t)i, ".entry", name);
		if (!folder_write(name, block, sizeof block))
			return 100;
	}
	folder_trim();
	return count_files(".entry") > 0 && count_files(".entry") * 4096 <= 1 << 20 ? 0 : 1;
}

int main(void)
{
	char why[256];
	int n;

	snprintf(folder, sizeof folder, "%s/ricci-test-XXXXXX", env_text("TMPDIR", "/tmp"));
	if (!mkdtemp(folder) || setenv("RICCI_CACHE", folder, 1))
		return 1;
	setenv("RICCI_DEVICE", "2e10,5e10,3e-6", 1);
	if (!backend_find("cc")->available(why, sizeof why)) {
		CHECK_SKIP(why);
	} else {
		CHECK_INT(child(run_at_once), 0);
		n = child(run_settled);
		CHECK(n > 0 && n < 10);
		CHECK(count_files(".entry") >= n);
		CHECK_INT(child(run_at_once), n);
		CHECK_INT(child(run_list), count_files(".entry"));
		for (int how = 0; how < 3; how++) {
			damage(".o", how);
			CHECK_INT(child(run_at_once), 0); /* found out, not loaded */
			CHECK_INT(child(run_settled), n);
			damage(".entry", how);
			CHECK_INT(child(run_at_once), 0);
			CHECK_INT(child(run_verify) >= n, how != 2);
			CHECK_INT(child(run_verify), 0);
			CHECK_INT(child(run_settled), n);
			CHECK_INT(child(run_at_once), n);
		}
		CHECK_INT(child(run_static), n);
		CHECK_INT(child(run_static), n);
		CHECK_INT(child(run_alone), 0); /* what two threads were tuned for is not for one */
		CHECK_INT(child(run_at_once), n);
		CHECK(child(run_clear) >= n);
		CHECK_INT(count_files(".o"), 0);
		test_crowd();
		CHECK_INT(child(run_verify), 0);
		CHECK_INT(count_work(), 0);
	}
	CHECK_INT(child(run_trim), 0);
	CHECK(child(run_clear) > 0);
	damage("", 2);
	rmdir(folder);
	return check_done();
}
