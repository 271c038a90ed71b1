/* folder.h - the cache's folder as files: what disk.c, device.c, folder.c and upkeep.c share. Files
 * are named within it. */
#ifndef RUNTIME_FOLDER_H
#define RUNTIME_FOLDER_H

#include "runtime/runtime.h"
#include <sys/stat.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
/* The name of an entry or an object: of 32 hexadecimal digits. */
enum { NAME_ROOM = 48 };
void folder_name(uint64_t a, uint64_t b, const char *suffix, char name[NAME_ROOM]);
/* Can files be added? */
bool folder_writable(void);
/* The whole file, NUL-terminated; NULL when it can't be read, or when others may have written it.
 * Caller frees. */
char *folder_read(const char *name, size_t *n);
/* Made elsewhere, then renamed: nobody sees a half. */
bool folder_write(const char *name, const char *s, size_t n);
void folder_remove(const char *name);
/* Removes the oldest files when the folder has grown beyond its bound, and what killed processes
 * left. */
void folder_trim(void);
void folder_sweep(void); /* the latter only */
typedef struct File {
	const char *name;
	struct stat st; /* of a link: its own */
} File;
bool has_suffix(const char *s, const char *suffix);
/* Calls f on all that has a name of ours; stops when it returns false. */
int folder_each(bool (*f)(void *user, const File *file), void *user, Error *err);
/* disk.c: checks an entry's last line and cuts it off. */
bool entry_undamaged(char *s, size_t n);
/* An object whose contents have its name; NULL: there is none. Caller frees. */
char *object_read(const char *name, size_t *n);

#endif
