/* cover.h - what the targets of coverage-guided fuzzing share. A target is one function of bytes,
 * which libFuzzer calls (make cover); tests/fuzz/test_cover.c calls it with the inputs kept in
 * tests/fuzz/seeds. What is wrong ends the process. */
#ifndef COVER_H
#define COVER_H

#include "core/core.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes that are taken one by one; zeros at the end. */
typedef struct Bytes {
	const uint8_t *at, *end;
} Bytes;

__attribute__((unused)) static int byte(Bytes *b)
{
	return b->at < b->end ? *b->at++ : 0;
}

__attribute__((noreturn, unused)) static void wrong(const char *what, const char *detail)
{
	fprintf(stderr, "%s\n%s\n", what, detail ? detail : "");
	abort();
}

#endif
