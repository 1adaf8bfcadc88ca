#include "sandbox/gunzip.h"

#include <limits.h>
#include <zlib.h>

#include "base/memory.h"

enum { WINDOW_BITS = 15, GZIP_ONLY = 16 /* added to the window bits */, STEP_BYTES = 16 * 1024 };

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

static bool unpack(z_stream *stream, struct buffer *out, struct error *err)
{
	int status = Z_OK;

	while (status == Z_OK) {
		char *room = buffer_reserve(out, STEP_BYTES);

		if (room == NULL)
			return buffer_check(out, "unpacked data", err);
		stream->next_out = (Bytef *)room;
		stream->avail_out = STEP_BYTES;
		status = inflate(stream, Z_NO_FLUSH);
		buffer_advance(out, STEP_BYTES - stream->avail_out);
	}
	if (status == Z_MEM_ERROR)
		return error_set(err, ERROR_NO_MEMORY, "no memory to unpack");
	if (status != Z_STREAM_END)
		return error_set(err, ERROR_SYNTAX, "not gzip data, or not all of it: %s",
		                 stream->msg != NULL ? stream->msg : "it ends too early");
	if (stream->avail_in > 0)
		return error_set(err, ERROR_SYNTAX, "%u bytes behind the gzip data", stream->avail_in);
	return true;
}

bool gunzip(struct slice packed, struct buffer *out, struct error *err)
{
	z_stream stream = { .zalloc = allocate, .zfree = release };
	bool ok;

	if (packed.length > UINT_MAX)
		return error_set(err, ERROR_LIMIT, "%zu bytes are too many to unpack", packed.length);
	stream.next_in = (z_const Bytef *)(packed.length > 0 ? packed.data : "");
	stream.avail_in = (uInt)packed.length;
	if (inflateInit2(&stream, WINDOW_BITS + GZIP_ONLY) != Z_OK)
		return error_set(err, ERROR_NO_MEMORY, "no memory to unpack");
	ok = unpack(&stream, out, err);
	(void)inflateEnd(&stream);
	return ok;
}
