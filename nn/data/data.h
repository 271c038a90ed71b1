/* data.h - what the files of nn/data/ share: random numbers, data sets and where their fields come
 * from. A data set is a list of fields; a field is a source that copies samples by their numbers. */
#ifndef NN_DATA_H
#define NN_DATA_H

#include "core/core.h"

#include <ricci_nn.h>

/* ---- random numbers (random.c): SplitMix64 (Steele, Lea, Flood 2014). The same everywhere. */
typedef struct Rng {
	uint64_t s;
} Rng;
Rng rng_make(uint64_t seed, uint64_t stream);
uint64_t rng_next(Rng *r);
uint64_t rng_below(Rng *r, uint64_t n);		   /* 0 .. n-1, unbiased */
double rng_range(Rng *r, double low, double high); /* uniform */
/* The order of n samples in an epoch: a permutation that depends on seed and epoch only. block > 1:
 * samples of a block stay close together (they are read together), see random.c. */
void rng_order(uint64_t seed, uint64_t epoch, int64_t n, int64_t block, uint32_t *order);
enum { ORDER_POOL = 8 }; /* blocks whose samples are mixed */

/* ---- sources of fields. Loaders of several threads may use one at the same time. */
typedef struct Source {
	/* Copies samples index[0..n-1] to out, one behind the other. 0 or an error. */
	int (*read)(void *source, const uint32_t *index, int64_t n, void *out, Error *err);
	/* Begins to prefetch those that will be read next, in that order. NULL: nothing to do. */
	void (*prefetch)(void *source, const uint32_t *index, int64_t n);
	void (*free)(void *source);
	void *source;
	int64_t block; /* samples that are read together; 0 and 1: each alone */
} Source;

/* ---- data sets (dataset.c) */
enum { DATA_FIELDS = 16 };
typedef struct Field {
	char *name;
	Type type;
	int rank;
	int64_t shape[RICCI_MAX_RANK]; /* of a sample */
	int64_t size, bytes;	       /* of a sample: elements, bytes */
	Source source;
} Field;
struct ricci_data {
	int64_t count; /* samples; 0: no field yet */
	int nfield;
	Field field[DATA_FIELDS];
	int streams;	    /* of a text in streams: the batch that they make up; else 0 */
	uint32_t *alphabet; /* of a text: the character of each token; else NULL */
	int nalphabet;
	bool bytes;	     /* its tokens are bytes */
	unsigned generation; /* of forks: the process that made it */
	Error err;	     /* the first error wins */
};
/* An error that d keeps, and tells. d may be NULL: then it is only told. Returns the code. */
#define DATA_FAIL(d, code, ...) error_set((d) ? &(d)->err : ERROR_TELL, code, __VA_ARGS__)
/* May a field of this name be added? 0, or the error (an earlier one, too). */
int data_admits(ricci_data *d, const char *name);
/* Adds a field of `count` samples: f's name (copied), type, rank, shape, source. Takes the source
 * over, also on failure. */
int data_add(ricci_data *d, int64_t count, const Field *f);
const Field *data_find(const ricci_data *d, const char *name); /* NULL: there is none */
/* d, or NULL after freeing it when it has an error (or `status` says so). */
ricci_data *data_finish(ricci_data *d, int status);
/* Elements of a shape; -1 when an extent is less than 1 or the product leaves 2^48. */
int64_t shape_size(int rank, const int64_t *shape);
/* The path of `name` in a folder (NULL: the present one), or of name.gz when only that is there. 0 or
 * RICCI_EINVAL. */
int data_path(char *out, size_t room, const char *folder, const char *name, Error *err);

/* ---- samples in memory, filled in the background (filled.c) */
typedef struct Filler {
	/* Makes samples from..from+n-1, in this order over all calls. 0 or an error. */
	int (*fill)(void *filler, void *out, int64_t from, int64_t n, Error *err);
	void (*free)(void *filler); /* when everything is filled, or nothing more is wanted */
	void *filler;
} Filler;
/* A source of count samples of `bytes` each. Takes the filler over, also on failure. all: they are
 * filled now, before it returns. */
int filled_source(int64_t count, int64_t bytes, Filler filler, bool all, Source *out, Error *err);

/* ---- arrays in files (raw.c) */
typedef struct RawFile {
	const char *path;
	int64_t count; /* records in it; -1: as many as there are */
} RawFile;
typedef struct RecordLayout {
	int64_t offset, record; /* bytes before the first record, and of each */
	int64_t within;		/* where a sample begins in its record */
} RecordLayout;
/* Adds a field that lies in n files, one behind the other: f's name, type and shape. */
int raw_add(ricci_data *d, const Field *f, int n, const RawFile *file, RecordLayout at);

/* ---- conversion of elements (convert.c) */
/* Is there one? unit: bytes become 0..1. */
bool convert_possible(Type from, Type to, bool unit);
/* n elements. -1, or the first that the other type can't hold. */
int64_t convert(Type from, const void *x, Type to, void *y, int64_t n, bool unit);

#endif
