/* folder.h - the cache's folder as files: what disk.c, folder.c and upkeep.c share. */
#ifndef RUNTIME_FOLDER_H
#define RUNTIME_FOLDER_H

#include "runtime/runtime.h"
#include <sys/stat.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
/* The whole file, NUL-terminated; NULL when it can't be read. Caller frees. */
char *folder_read(const char *path, size_t *n);
/* Beside its place first, then renamed. */
bool folder_write(const char *path, const char *s, size_t n);
bool folder_temp(const char *suffix, char *path, size_t n);
/* Removes the oldest files when the folder has grown beyond its bound. */
void folder_trim(void);
bool object_sound(const char *name); /* its contents have its name */
typedef struct File {
	char path[4200];
	const char *name;
	struct stat st;
} File;
bool has_suffix(const char *s, const char *suffix);
/* Calls f on every file of ours; stops when it returns false. */
int folder_each(bool (*f)(void *user, const File *file), void *user, Error *err);
/* disk.c: checks an entry's last line and cuts it off. */
bool entry_sound(char *s, size_t n);

#endif
