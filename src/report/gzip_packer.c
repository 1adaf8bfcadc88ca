/*
 * A window of 8 KiB holds some thirty events, which are much alike: larger ones compress them hardly better, and a queue
 * has one of these open nearly always.
 *
 * What deflate has taken but not given out yet is bounded by its window, its symbols and its pending output; the room
 * made for each call covers that, the new bytes at their worst, and the end of the member.
 */
#include "report/gzip_packer.h"

#include <zlib.h>

#include "base/memory.h"

enum {
	WINDOW_BITS = 13,
	AS_GZIP = 16, /* added to the window bits */
	MEMORY_LEVEL = 6,
	/* Not given out yet: 4096 symbols of at most 6 bytes, 16 KiB of pending output, two windows as they are, ends. */
	HELD_BYTES = 64 * 1024,
	ROOM_MOST_BYTES = 1024 * 1024,
};

struct gzip_packer {
	z_stream stream;
};

static void *allocate(void *context, unsigned items, unsigned size)
{
	(void)context;
	return memory_allocate((size_t)items * size);
}

static void release(void *context, void *block)
{
	(void)context;
	memory_release(block);
}

struct gzip_packer *gzip_packer_create(struct error *err)
{
	struct gzip_packer *packer = memory_allocate(sizeof *packer);

	if (packer == NULL)
		goto no_memory;
	packer->stream.zalloc = allocate;
	packer->stream.zfree = release;
	if (deflateInit2(&packer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS + AS_GZIP, MEMORY_LEVEL,
	                 Z_DEFAULT_STRATEGY) != Z_OK)
		goto no_memory;
	return packer;
no_memory:
	memory_release(packer);
	(void)error_set(err, ERROR_NO_MEMORY, "no memory for compressing");
	return NULL;
}

static bool make_room(struct gzip_packer *packer, size_t room, struct buffer *out, struct error *err)
{
	char *to;

	if (room > ROOM_MOST_BYTES)
		return error_set(err, ERROR_LIMIT, "an event is too long to be compressed");
	to = buffer_reserve(out, room);
	if (to == NULL) {
		buffer_check(out, "compressed events", err);
		out->failed = out->no_memory = false; /* what is in it already is sound */
		return false;
	}
	packer->stream.next_out = (Bytef *)to;
	packer->stream.avail_out = (uInt)room;
	return true;
}

static bool pack(struct gzip_packer *packer, struct slice bytes, int flush, int expected, struct error *err)
{
	packer->stream.next_in = (z_const Bytef *)(bytes.length > 0 ? bytes.data : "");
	packer->stream.avail_in = (uInt)bytes.length;
	if (deflate(&packer->stream, flush) != expected || packer->stream.avail_in > 0)
		return error_set(err, ERROR_INVARIANT, "deflate needs more room than expected");
	return true;
}

bool gzip_packer_add(struct gzip_packer *packer, struct slice first, struct slice second, struct buffer *out,
                     struct error *err)
{
	const size_t length = first.length + second.length;
	uInt room;

	/* Twice what is held: once for what comes out now, once for the end. */
	if (!make_room(packer, 2 * HELD_BYTES + length + length / 8, out, err))
		return false;
	room = packer->stream.avail_out;
	/* With nothing to take, deflate reports that it made no progress. */
	if ((first.length > 0 && !pack(packer, first, Z_NO_FLUSH, Z_OK, err)) ||
	    (second.length > 0 && !pack(packer, second, Z_NO_FLUSH, Z_OK, err)))
		return false;
	buffer_advance(out, room - packer->stream.avail_out);
	return true;
}

bool gzip_packer_finish(struct gzip_packer *packer, struct buffer *out, struct error *err)
{
	uInt room;

	if (!make_room(packer, HELD_BYTES, out, err))
		return false;
	room = packer->stream.avail_out;
	if (!pack(packer, (struct slice){ 0 }, Z_FINISH, Z_STREAM_END, err))
		return false;
	buffer_advance(out, room - packer->stream.avail_out);
	return true;
}

void gzip_packer_destroy(struct gzip_packer *packer)
{
	if (packer == NULL)
		return;
	(void)deflateEnd(&packer->stream);
	memory_release(packer);
}
