/* test_folder.c - who may put code into the cache's folder, and what the library takes out of it
 * and removes from it. Every step is a process of its own. */
#define _GNU_SOURCE
#include "runtime/host/folder.h"
#include "runtime/session.h"
#include "tests/check.h"
#include "tests/child.h"
#include "tests/runtime/cache_case.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STRANGER = 54321 }; /* a user who is nobody here */

static char top[100], error[2300];

static const char *place(const char *name)
{
	static char path[2][700];
	static int turn;

	turn ^= 1;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static void file_put(const char *path, const char *s)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(s, f) >= 0 && fclose(f) == 0);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? 0 : st.st_mode & 07777;
}

/* The name of a file that ends so and that the session's kernels come from: a search may have left
 * objects of slower ones. */
static const char *used(const char *suffix, const char *aside, int n)
{
	static char name[300];
	DIR *d = opendir(folder);
	struct dirent *e;

	*name = 0;
	while (d && !*name && (e = readdir(d))) {
		if (!has_suffix(e->d_name, suffix) || rename(place(e->d_name), aside))
			continue;
		if (child(run_at_once) < n)
			snprintf(name, sizeof name, "%s", e->d_name);
		CHECK(rename(aside, place(e->d_name)) == 0);
	}
	if (d)
		closedir(d);
	CHECK(*name);
	return name;
}

/* Does the library refuse the folder with these words? */
static const char *words;

static int run_refused(void)
{
	Error err = {0};
	CacheReport r;

	if (cache_folder() || !cache_check(&err) || strcmp(err.text, words)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	error_clear(&err);
	return !cache_verify(false, &r, &err) || strcmp(err.text, words);
}

static int run_broken(void)
{
	CacheReport r;

	return cache_verify(false, &r, NULL) ? 100 : r.broken;
}

static int run_repair(void)
{
	CacheReport r;

	return cache_verify(true, &r, NULL) ? 100 : r.broken;
}

static int run_clear(void)
{
	CacheReport r;

	return cache_clear(&r, NULL) ? 100 : r.entries;
}

static int run_fresh(void)
{
	umask(0);
	return folder_write("ricci-device-x", "1", 1) ? 0 : 1;
}

static void test_modes(void)
{
	char deep[200], was[200];

	memcpy(was, folder, sizeof was);
	snprintf(deep, sizeof deep, "%s/a/b", top);
	memcpy(folder, deep, sizeof folder);
	setenv("RICCI_CACHE", deep, 1);
	CHECK_INT(child(run_fresh), 0);
	CHECK_INT(mode_of(deep), 0700);
	CHECK_INT(mode_of(place("..")), 0700);
	CHECK_INT(mode_of(place("ricci-device-x")), 0600);
	CHECK(unlink(place("ricci-device-x")) == 0 && rmdir(deep) == 0);
	*strrchr(deep, '/') = 0;
	CHECK(rmdir(deep) == 0);
	memcpy(folder, was, sizeof folder);
	setenv("RICCI_CACHE", folder, 1);
}

/* Folders that others may write, or that belong to them. n: the kernels that are kept in it. */
static void test_owners(int n)
{
	static const mode_t open_to[] = {0777, 0770, 0702, 01777};

	words = error;
	for (int i = 0; i < COUNT(open_to); i++) {
		CHECK(chmod(folder, open_to[i]) == 0);
		snprintf(error, sizeof error,
			 "there is no cache folder: others may write to %s (mode %o): chmod go-w, "
			 "and clear it",
			 folder, (unsigned)open_to[i]);
		CHECK_INT(child(run_refused), 0);
		CHECK_INT(child(run_at_once), 0);
	}
	CHECK(chmod(folder, 0755) == 0);
	CHECK_INT(child(run_at_once), n);
	CHECK(chmod(folder, 0700) == 0);
	if (geteuid()) {
		CHECK_SKIP("files of another user: only root can make them");
		return;
	}
	CHECK(chown(folder, STRANGER, -1) == 0);
	snprintf(error, sizeof error, "there is no cache folder: %s belongs to another user (%d)",
		 folder, STRANGER);
	CHECK_INT(child(run_refused), 0);
	CHECK_INT(child(run_at_once), 0);
	CHECK(chown(folder, 0, -1) == 0);
	CHECK_INT(child(run_at_once), n);
}

/* Entries and objects that others made or may change; what is no file at all. */
static void test_files(int n)
{
	static const char *const suffix[] = {".entry", ".o"};
	char path[700], aside[700];

	snprintf(aside, sizeof aside, "%s/aside", top);
	for (int i = 0; i < COUNT(suffix); i++) {
		snprintf(path, sizeof path, "%s", place(used(suffix[i], aside, n)));
		CHECK(chmod(path, 0666) == 0);
		CHECK(child(run_at_once) < n);
		CHECK(child(run_broken) > 0);
		CHECK(chmod(path, 0644) == 0);
		CHECK_INT(child(run_at_once), n);
		if (geteuid() == 0) {
			CHECK(chown(path, STRANGER, -1) == 0);
			CHECK(child(run_at_once) < n);
			CHECK(child(run_broken) > 0);
			CHECK(chown(path, 0, -1) == 0);
		}
		CHECK(rename(path, aside) == 0 && symlink(aside, path) == 0);
		CHECK(child(run_at_once) < n);
		CHECK(child(run_broken) > 0);
		CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
		alarm(60); /* of whom reads a FIFO */
		CHECK(child(run_at_once) < n);
		CHECK(child(run_broken) > 0);
		CHECK(child(run_repair) > 0);
		CHECK(access(path, F_OK) != 0);
		alarm(0);
		CHECK(rename(aside, path) == 0);
	}
}

/* What others keep in the folder stays. */
static void test_foreign(void)
{
	static const char *const name[] = {"main.o",
					   "main.entry",
					   "x.tmp",
					   "device-x",
					   "ricci-main.o",
					   "0123456789abcdef0123456789abcdef.o",
					   "ricci-0123456789abcdef0123456789abcdef.o.c",
					   "ricci-0123456789ABCDEF0123456789ABCDEF.o"};

	for (int i = 0; i < COUNT(name); i++)
		file_put(place(name[i]), "x");
	file_put(place("ricci-0123456789abcdef0123456789abcdef.o"), "a half");
	CHECK_INT(child(run_broken), 1);
	setenv("RICCI_CACHE_MB", "0", 1);
	CHECK(child(run_settled) < 100); /* trims */
	unsetenv("RICCI_CACHE_MB");
	CHECK(child(run_clear) < 100);
	for (int i = 0; i < COUNT(name); i++)
		CHECK(unlink(place(name[i])) == 0);
	CHECK_INT(count_files(".o") + count_files(".entry"), 0);
}

/* A folder that can't be written is read. */
static int run_poor(void)
{
	if (geteuid() == 0 && setresuid(STRANGER, STRANGER, STRANGER))
		return 101;
	return folder_writable() ? 102 : run_at_once();
}

static void test_read_only(int n)
{
	bool root = geteuid() == 0;

	CHECK(chmod(top, 0755) == 0);
	CHECK(!root || system("chown -R 54321 \"$RICCI_CACHE\"") == 0);
	CHECK(chmod(folder, 0500) == 0);
	CHECK_INT(child(run_poor), n);
	CHECK(!root || system("chown -R 0 \"$RICCI_CACHE\"") == 0);
	CHECK(!root || system("chmod -R a+rX \"$RICCI_CACHE\"") == 0);
	CHECK(!root || child(run_poor) == n); /* root's own is as good */
	CHECK(chmod(folder, 0700) == 0);
}

/* The folder is opened once: another in its place changes nothing. */
static int run_swapped(void)
{
	char away[300];
	size_t n = 0;
	char *s;

	if (!folder_write("ricci-device-x", "mine", 4))
		return 1;
	snprintf(away, sizeof away, "%s/away", top);
	if (rename(folder, away) || mkdir(folder, 0777))
		return 2;
	file_put(place("ricci-device-x"), "planted");
	s = folder_read("ricci-device-x", &n);
	if (!s || strcmp(s, "mine"))
		return 3;
	mem_free(s);
	if (!folder_write("ricci-device-y", "mine", 4) ||
	    access(place("ricci-device-y"), F_OK) == 0)
		return 4;
	folder_remove("ricci-device-x");
	if (access(place("ricci-device-x"), F_OK))
		return 5;
	return unlink(place("ricci-device-x")) || rmdir(folder) || rename(away, folder) ? 6 : 0;
}

/* ---- what is left ---- */
static int run_killed(void)
{
	WorkFolder w;

	if (!folder_writable() || work_open(&w, -1, NULL) || work_write(&w, "k.c", "x", 1, NULL))
		return 1;
	kill(getpid(), SIGKILL);
	return 2;
}

static int run_looks(void)
{
	return cache_folder() == NULL;
}

/* A compiler that leaves its own files where it is told to, and is killed with its caller. */
static int run_compile(void)
{
	int ncc;

	alarm(1); /* ends the process while the compiler runs */
	return train(RICCI_BACKEND_CC, 0, 0, 1, &ncc);
}

static void test_left(void)
{
	static const char script[] = "#!/bin/sh\n"
				     "case $1 in --version) echo fake; exit 0;; esac\n"
				     "echo x >$TMPDIR/ccXXXX.s; sleep 3\n";
	char temp[200], cc[200];

	snprintf(temp, sizeof temp, "%s/temp", top);
	snprintf(cc, sizeof cc, "%s/cc.sh", top);
	CHECK(mkdir(temp, 0777) == 0);
	file_put(cc, script);
	CHECK(chmod(cc, 0700) == 0);
	setenv("TMPDIR", temp, 1);
	CHECK_INT(child(run_killed), -1);
	CHECK_INT(count_work(), 1);
	CHECK_INT(child(run_looks), 0);
	CHECK_INT(count_work(), 0);
	setenv("RICCI_CC", cc, 1);
	CHECK_INT(child(run_compile), -1);
	CHECK_INT(count_work(), 1);
	CHECK_INT(child(run_looks), 0);
	CHECK_INT(count_work(), 0);
	unsetenv("RICCI_CC");
	CHECK(child(run_settled) < 100);
	CHECK_INT(count_work(), 0);
	CHECK(rmdir(temp) == 0); /* it is empty */
	/* Without a cache the compiler works in $TMPDIR, which is swept, too. */
	CHECK(mkdir(temp, 0777) == 0);
	setenv("RICCI_CACHE", "off", 1);
	setenv("RICCI_CC", cc, 1);
	CHECK_INT(child(run_compile), -1);
	CHECK(rmdir(temp) != 0);
	unsetenv("RICCI_CC");
	CHECK(child(run_settled) < 100);
	CHECK(rmdir(temp) == 0);
	setenv("RICCI_CACHE", folder, 1);
	unsetenv("TMPDIR");
	unlink(cc);
}

/* ---- many processes ---- */
static int run_many(void)
{
	static char block[3000];
	uint64_t s = (uint64_t)getpid() * 2654435761u + 1;
	size_t n;

	for (int i = 0; i < 100; i++) {
		char name[NAME_ROOM], *got;

		s = s * 6364136223846793005u + 1442695040888963407u;
		folder_name(0, s >> 61, ".entry", name);
		memset(block, 'a' + (int)(s >> 40 & 15), sizeof block);
		if ((s >> 50 & 3) == 0 && !folder_write(name, block, sizeof block))
			return 1;
		if ((s >> 50 & 31) == 1)
			folder_remove(name);
		if ((s >> 50 & 31) == 2)
			folder_trim();
		got = folder_read(name, &n);
		for (size_t k = 0; got && k < n; k++)
			if (n != sizeof block || got[k] != *got)
				return 2;
		mem_free(got);
	}
	return 0;
}

static void test_many(void)
{
	enum { MANY = 100 };
	pid_t pid[MANY];
	int status, good = 0;

	for (int i = 0; i < MANY; i++)
		if ((pid[i] = fork()) == 0)
			exit(run_many());
	for (int i = 0; i < MANY; i++) {
		waitpid(pid[i], &status, 0);
		good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	CHECK_INT(good, MANY);
	CHECK_INT(count_work(), 0);
}

/* ---- rights that who starts a program does not have ---- */
static void test_secure(const char *self)
{
	char copy[200], command[700];

	if (geteuid()) {
		CHECK_SKIP("a program with the rights of another user: only root can make one");
		return;
	}
	if (getenv("RICCI_EMULATOR")) {
		CHECK_SKIP("an emulator runs programs with its own rights");
		return;
	}
#ifdef __SANITIZE_ADDRESS__
	CHECK_SKIP("the leak checker can't trace a program with its owner's rights");
	return;
#endif
	snprintf(copy, sizeof copy, "%s/program", top);
	snprintf(command, sizeof command, "cp %s %s && chown %d %s && chmod 4755 %s", self, copy,
		 STRANGER, copy, copy);
	CHECK(system(command) == 0);
	snprintf(command, sizeof command, "RICCI_CC=x %s --environment", copy);
	int status = system(command);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
		CHECK_SKIP("programs do not get their owner's rights here");
	else
		CHECK_INT(status, 0);
	unlink(copy);
}

static int say_environment(void)
{
	if (geteuid() != STRANGER)
		return 9;
	return env_text("RICCI_CC", NULL) || !getenv("RICCI_CC");
}

/* In a child: which compiler there is is decided once. */
static int run_compiler(void)
{
	char why[256];

	return !backend_find("cc")->available(why, sizeof why);
}

int main(int argc, char **argv)
{
	int n;

	if (argc > 1)
		return say_environment();
	snprintf(top, sizeof top, "%.60s/ricci-test-XXXXXX", env_text("TMPDIR", "/tmp"));
	if (!mkdtemp(top))
		return 1;
	snprintf(folder, sizeof folder, "%s/cache", top);
	setenv("RICCI_CACHE", folder, 1);
	setenv("RICCI_DEVICE", "2e10,5e10,3e-6", 1);
	test_modes();
	CHECK_INT(child(run_fresh), 0);
	CHECK_INT(child(run_swapped), 0);
	test_many();
	CHECK(child(run_clear) < 100);
	test_secure(argv[0]);
	if (child(run_compiler)) {
		CHECK_SKIP("no C compiler");
	} else {
		n = child(run_settled);
		CHECK(n > 0 && n < 10);
		test_owners(n);
		test_files(n);
		test_read_only(child(run_settled));
		test_foreign();
		test_left();
	}
	CHECK(child(run_clear) < 100);
	unlink(place("ricci-device-y"));
	CHECK(rmdir(folder) == 0);
	unlink(place("../aside"));
	CHECK(rmdir(top) == 0);
	return check_done();
}
