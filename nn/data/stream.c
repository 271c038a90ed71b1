/* stream.c - fields from HDF5 datasets that may be larger than memory.
 * A child process (nn/hdf5) reads and unpacks blocks of samples into memory that it shares with this
 * one; a loader says which samples come next, and their blocks are requested while earlier ones are
 * used. Memory: SLOTS blocks, each of whole chunks where these are small. Invariant: a slot that is
 * `ready` holds its block; only slots that are not requested are given to another block. */
#include "nn/data/data.h"
#include "nn/hdf5/hdf5.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum {
	SLOTS = 2 * ORDER_POOL + 2,
	LEAST = 1 << 20, /* bytes of a block, if chunks are smaller */
	MOST = 8 << 20,	 /* if chunks are larger */
	AHEAD = 4	 /* requests that wait at the same time */
};

typedef struct Request { /* and its answer */
	int slot, code;
	int64_t from, n;
	char why[400];
} Request;

typedef struct Block {
	int64_t number; /* -1: none */
	bool requested, ready;
	uint64_t used;
} Block;

typedef struct Stream {
	pthread_mutex_t lock;
	H5Server server;
	bool serving;
	char *path, *dataset;
	H5Dataset what;
	int64_t count, bytes, block; /* samples, bytes of one, samples of a block */
	uint8_t *memory;
	size_t room; /* bytes of memory */
	Block slot[SLOTS];
	int waiting; /* requests */
	uint64_t clock;
	Error err; /* ends it */
	unsigned generation;
} Stream;

/* ---- in the child */

static hid_t stream_file(const Stream *s, Error *err)
{
	char why[160];
	hid_t file = h5.Fopen(s->path, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (file < 0)
		error_set(err, RICCI_EFORMAT, "%s is not an HDF5 file, or damaged: %s", s->path,
			  h5_reason(why));
	return file;
}

static int describe_work(void *user, int out, Error *err)
{
	Stream *s = user;
	hid_t file = stream_file(s, err);
	int status =
		file < 0 ? err->code : h5_data_describe(file, s->path, s->dataset, &s->what, err);
	return status ? status : h5_put(out, &s->what, sizeof s->what, err);
}

static int serve_work(void *user, int channel, Error *err)
{
	Stream *s = user;
	Request r;
	hid_t file = stream_file(s, err);
	while (file >= 0 && recv(channel, &r, sizeof r, 0) == sizeof r) {
		Error own = {0};
		r.code = h5_data_rows(file, s->path, s->dataset, s->what.type, (hsize_t)r.from,
				      (hsize_t)r.n, s->memory + r.slot * s->block * s->bytes, &own);
		message_print(r.why, sizeof r.why, "%s", own.text);
		if (send(channel, &r, sizeof r, MSG_NOSIGNAL) != sizeof r)
			break;
	}
	return file < 0 ? err->code : 0;
}

/* ---- requests, under the lock */

static int stream_lost(Stream *s)
{
	Error *err = &s->err;
	s->serving = false;
	if (!h5_serve_end(&s->server, err))
		error_set(err, RICCI_EIO, "the process that reads %s has ended", s->path);
	return err->code;
}

/* Waits for one answer. */
static int stream_receive(Stream *s)
{
	Request r;
	ssize_t n;
	do
		n = recv(s->server.channel, &r, sizeof r, 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof r)
		return stream_lost(s);
	s->waiting--;
	s->slot[r.slot].requested = false;
	s->slot[r.slot].ready = !r.code;
	return r.code ? error_set(&s->err, r.code, "%s", r.why) : 0;
}

static int stream_find(const Stream *s, int64_t block)
{
	for (int k = 0; k < SLOTS; k++)
		if (s->slot[k].number == block)
			return k;
	return -1;
}

/* Requests a block into the slot that was used longest ago: its number, or an error. */
static int stream_request(Stream *s, int64_t block)
{
	int k = -1;
	for (int i = 0; i < SLOTS; i++)
		if (!s->slot[i].requested && (k < 0 || s->slot[i].used < s->slot[k].used))
			k = i;
	int64_t from = block * s->block, left = s->count - from;
	Request r = {.slot = k, .from = from, .n = left < s->block ? left : s->block};
	s->slot[k] = (Block){.number = block, .requested = true, .used = ++s->clock};
	s->waiting++;
	if (send(s->server.channel, &r, sizeof r, MSG_NOSIGNAL) != sizeof r)
		return stream_lost(s);
	return k;
}

static int stream_need(Stream *s, int64_t block)
{
	int k = stream_find(s, block);
	while (k < 0 && s->waiting >= AHEAD)
		if (stream_receive(s))
			return s->err.code;
	if (k < 0)
		k = stream_request(s, block);
	while (k >= 0 && !s->slot[k].ready)
		if (stream_receive(s))
			return s->err.code;
	if (k >= 0)
		s->slot[k].used = ++s->clock;
	return k;
}

/* ---- the source */

static int stream_copy(Stream *s, const uint32_t *index, int64_t n, uint8_t *out)
{
	for (int64_t i = 0; i < n && !s->err.code; i++, out += s->bytes) {
		int k = stream_need(s, index[i] / s->block);
		if (k >= 0)
			memcpy(out, s->memory + (k * s->block + index[i] % s->block) * s->bytes,
			       (size_t)s->bytes);
	}
	return s->err.code;
}

static int stream_read(void *source, const uint32_t *index, int64_t n, void *out, Error *err)
{
	Stream *s = source;
	if (s->generation != fork_generation())
		return error_set(err, RICCI_EUNSUPPORTED,
				 "the data set belongs to the process that this one was forked "
				 "from: a child opens one of its own");
	pthread_mutex_lock(&s->lock);
	int status = stream_copy(s, index, n, out);
	if (status)
		error_set(err, status, "%s", s->err.text);
	pthread_mutex_unlock(&s->lock);
	return status;
}

static void stream_prefetch(void *source, const uint32_t *index, int64_t n)
{
	Stream *s = source;
	if (s->generation != fork_generation())
		return;
	pthread_mutex_lock(&s->lock);
	uint64_t begin = s->clock;
	int64_t last = -1;
	for (int64_t i = 0, blocks = 0; i < n && blocks < SLOTS - AHEAD && !s->err.code; i++) {
		int64_t block = index[i] / s->block;
		int k = block == last ? -2 : stream_find(s, block);
		last = block;
		if (k == -2 || (k >= 0 && s->slot[k].used > begin))
			continue;
		if (k < 0 && s->waiting >= AHEAD)
			break;
		blocks++;
		if (k < 0)
			stream_request(s, block);
		else
			s->slot[k].used = ++s->clock;
	}
	pthread_mutex_unlock(&s->lock);
}

static void stream_free(void *source)
{
	Stream *s = source;
	if (s->serving)
		h5_serve_end(&s->server, NULL);
	if (s->memory)
		munmap(s->memory, s->room);
	pthread_mutex_destroy(&s->lock);
	mem_free(s->path);
	mem_free(s->dataset);
	mem_free(s);
}

/* Whole chunks, as many as make LEAST bytes; parts of chunks beyond MOST. */
static int64_t stream_block(const Stream *s)
{
	int64_t rows = (int64_t)s->what.rows, most = MOST / s->bytes;
	if (rows * s->bytes < LEAST)
		rows *= LEAST / (rows * s->bytes);
	if (rows > most)
		rows = most ? most : 1;
	return rows < s->count ? rows : s->count;
}

static int stream_open(Stream *s, Field *f, Error *err)
{
	H5Result r;
	FILE *there = fopen(s->path, "rbe");
	if (!there)
		return error_set(err, RICCI_EIO, "cannot open %s: %s", s->path, strerror(errno));
	fclose(there);
	if (h5_run(describe_work, s, &r, err))
		return err->code;
	s->what = *(H5Dataset *)r.data;
	h5_result_free(&r);
	int64_t shape[H5S_MAX_RANK], size;
	for (int k = 0; k < s->what.rank; k++)
		shape[k] = (int64_t)s->what.shape[k];
	if (s->what.rank < 1 || s->what.rank > RICCI_MAX_RANK ||
	    (size = shape_size(s->what.rank, shape)) < 1)
		return error_set(err, RICCI_EFORMAT,
				 "%s: %s needs 1 to %d dimensions, the samples first, and extents "
				 "of 1 or more",
				 s->path, s->dataset, RICCI_MAX_RANK);
	f->type = s->what.type;
	f->rank = s->what.rank - 1;
	memcpy(f->shape, shape + 1, (size_t)f->rank * sizeof *shape);
	s->count = shape[0];
	s->bytes = size / s->count * (int64_t)type_size(f->type);
	s->block = stream_block(s);
	s->room = (size_t)(SLOTS * s->block * s->bytes);
	s->memory = mmap(NULL, s->room, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->memory == MAP_FAILED) {
		s->memory = NULL;
		return error_set(err, RICCI_ENOMEM, "out of memory for blocks of %s", s->path);
	}
	s->serving = !h5_serve(serve_work, s, &s->server, err);
	return err->code;
}

int ricci_data_hdf5(ricci_data *d, const char *field, const char *path, const char *dataset)
{
	if (data_admits(d, field))
		return d ? d->err.code : RICCI_EINVAL;
	if (!path || !dataset)
		return DATA_FAIL(d, RICCI_EINVAL, "field '%s': no path or no dataset given", field);
	Field f = {.name = (char *)field};
	Stream *s = mem_zalloc(sizeof *s);
	if (!s)
		return DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	s->path = mem_strdup(path);
	s->dataset = mem_strdup(dataset);
	s->generation = fork_generation();
	for (int k = 0; k < SLOTS; k++)
		s->slot[k].number = -1;
	int status = s->path && s->dataset ? stream_open(s, &f, &d->err)
					   : DATA_FAIL(d, RICCI_ENOMEM, "out of memory");
	if (status) {
		stream_free(s);
		return status;
	}
	f.source = (Source){stream_read, stream_prefetch, stream_free, s, s->block};
	return data_add(d, s->count, &f);
}
