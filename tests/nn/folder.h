/* folder.h - a folder for the files that a test writes. */
#ifndef FOLDER_H
#define FOLDER_H

#include "tests/check.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];

/* Makes it, of that name and random letters. */
static inline bool folder_make(const char *name)
{
	snprintf(folder, sizeof folder, "/tmp/ricci-%s-XXXXXX", name);
	return mkdtemp(folder) != NULL;
}

/* A file's path there. It lasts for five more calls. */
static inline const char *in_folder(const char *name)
{
	static char path[6][400];
	static int k;
	k = (k + 1) % 6;
	snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
	return path[k];
}

/* Removes the n files that must be there, and the folder, which must be empty then. */
static inline void folder_close(int n, const char *const *name)
{
	for (int i = 0; i < n; i++)
		CHECK_INT(unlink(in_folder(name[i])), 0);
	CHECK_INT(rmdir(folder), 0);
}

/* Removes whatever is there, and the folder. */
static inline void folder_remove(void)
{
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));)
		unlink(in_folder(e->d_name));
	if (d)
		closedir(d);
	CHECK_INT(rmdir(folder), 0);
}

#endif
