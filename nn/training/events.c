/* events.c - the numbers of a training as an event file of TensorBoard.
 * Input: rows. Output: records of TFRecord files, each with an Event of protocol buffers:
 *	u64 length, u32 masked CRC-32C of it, the Event, u32 masked CRC-32C of that; little-endian
 *	Event: wall_time = 1 (double), step = 2 (varint), file_version = 3 (string), summary = 5
 *	Summary: value = 1; Value: tag = 1 (string), simple_value = 2 (float)
 * (tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto,
 * tensorflow/core/framework/summary.proto). The mask is that of tensorflow/core/lib/hash/crc32c.h.
 * Invariant: steps never fall from record to record. */
#include "nn/training/internal.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { HEAD = 12, FOOT = 4 };

/* CRC-32C (Castagnoli), reflected polynomial 0x82f63b78, bit by bit: records are short. */
static uint32_t crc32c_masked(const void *data, size_t n)
{
	uint32_t crc = ~0u;
	for (const unsigned char *p = data; n--; p++) {
		crc ^= *p;
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	crc = ~crc;
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(Text *t, uint64_t v, int bytes)
{
	char s[8];
	for (int i = 0; i < bytes; i++)
		s[i] = (char)(v >> 8 * i & 255);
	text_put(t, s, (size_t)bytes);
}

static uint64_t get_little(const char *s, int bytes)
{
	uint64_t v = 0;
	for (int i = bytes; i--;)
		v = v << 8 | (unsigned char)s[i];
	return v;
}

static void put_varint(Text *t, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		put_little(t, (v & 127) | 128, 1);
	put_little(t, v, 1);
}

/* A field of bytes. */
static void put_bytes(Text *t, int field, const char *s, size_t n)
{
	put_varint(t, (uint64_t)field << 3 | 2);
	put_varint(t, n);
	text_put(t, s, n);
}

static void put_double(Text *t, int field, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	put_varint(t, (uint64_t)field << 3 | 1);
	put_little(t, bits, 8);
}

static void put_record(Text *t, const Text *event)
{
	char head[8];
	for (int i = 0; i < 8; i++)
		head[i] = (char)(event->n >> 8 * i & 255);
	text_put(t, head, 8);
	put_little(t, crc32c_masked(head, 8), 4);
	text_put(t, event->s, event->n);
	put_little(t, crc32c_masked(event->s, event->n), 4);
	t->failed |= event->failed;
}

static void event_begin(Text *event, uint64_t step)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	put_double(event, 1, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
	put_varint(event, 2 << 3);
	put_varint(event, step);
}

static void put_scalar(Text *summary, const char *tag, double value)
{
	Text one = {0};
	float v = (float)value;
	uint32_t bits;
	memcpy(&bits, &v, sizeof bits);
	put_bytes(&one, 1, tag, strlen(tag));
	put_varint(&one, 2 << 3 | 5);
	put_little(&one, bits, 4);
	put_bytes(summary, 1, one.s, one.n);
	summary->failed |= one.failed;
	text_free(&one);
}

/* The step of a record that events_add or events_open made; false: it is no whole one. */
static bool record_read(const char *s, size_t n, size_t *size, uint64_t *step)
{
	if (n < HEAD + FOOT || get_little(s + 8, 4) != crc32c_masked(s, 8))
		return false;
	uint64_t length = get_little(s, 8);
	if (length > n - HEAD - FOOT)
		return false;
	const char *event = s + HEAD, *at = event + 9, *end = event + length;
	if (get_little(end, 4) != crc32c_masked(event, length))
		return false;
	*size = HEAD + (size_t)length + FOOT;
	*step = 0;
	if (length < 11 || *at++ != 2 << 3)
		return true; /* the file's version, of step 0 */
	for (int shift = 0; at < end && shift < 64; shift += 7, at++) {
		*step |= (uint64_t)(*at & 127) << shift;
		if (!(*at & 128))
			break;
	}
	return true;
}

static int64_t events_cut(const char *data, size_t n, const void *user, uint64_t step, Error *err)
{
	(void)user;
	(void)err;
	size_t kept = 0, size;
	uint64_t at;
	while (kept < n && record_read(data + kept, n - kept, &size, &at) && at <= step)
		kept += size;
	return (int64_t)kept;
}

int events_open(Log *l, const char *path, bool resumed, uint64_t step, Error *err)
{
	Text version = {0}, head = {0};
	event_begin(&version, 0);
	put_bytes(&version, 3, "brain.Event:2", 13);
	put_record(&head, &version);
	int status = head.failed ? error_set(err, RICCI_ENOMEM, "out of memory")
				 : log_open(l, path, resumed, step, events_cut, NULL, &head, err);
	text_free(&version);
	text_free(&head);
	return status;
}

void events_add(Log *l, const History *h, const Entry *e)
{
	char tag[COLUMN_NAME + 32];
	Text summary = {0}, event = {0};
	for (int i = 0; i < h->ncolumn; i++) {
		if (isnan(e->value[i]))
			continue;
		snprintf(tag, sizeof tag, "%s/%s", e->of, h->column[i]);
		put_scalar(&summary, tag, e->value[i]);
	}
	if (!isnan(e->seconds))
		put_scalar(&summary, "step/seconds", e->seconds);
	event_begin(&event, e->step);
	put_bytes(&event, 5, summary.s, summary.n);
	event.failed |= summary.failed;
	put_record(&l->pending, &event);
	text_free(&summary);
	text_free(&event);
}
