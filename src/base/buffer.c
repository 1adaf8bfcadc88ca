/*
 * The block always has one byte more than `capacity`: vsnprintf can then fill a buffer to its last byte and put its NUL
 * behind it.
 */
#include "base/buffer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_CAPACITY_BYTES = 255 };

void buffer_init(struct buffer *buffer, size_t limit_bytes)
{
	static const size_t MOST = SIZE_MAX / 4; /* so that doubling can't overflow */

	*buffer = (struct buffer){ .limit_bytes = limit_bytes < MOST ? limit_bytes : MOST };
}

void buffer_init_secret(struct buffer *buffer, size_t limit_bytes)
{
	buffer_init(buffer, limit_bytes);
	buffer->secret = true;
}

/* Overwrites everything behind the first length bytes, if that is what it is for. */
static void wipe_from(struct buffer *buffer, size_t length)
{
	if (buffer->secret && buffer->data != NULL && buffer->length > length)
		explicit_bzero(buffer->data + length, buffer->length - length);
}

void buffer_destroy(struct buffer *buffer)
{
	if (buffer->secret && buffer->data != NULL)
		explicit_bzero(buffer->data, buffer->capacity);
	memory_release(buffer->data);
	*buffer = (struct buffer){ 0 };
}

/* As memory_resize to a larger size; a secret isn't left behind where it was. */
static char *grow(struct buffer *buffer, size_t size)
{
	char *data;

	if (!buffer->secret)
		return memory_resize(buffer->data, size);
	data = memory_resize(NULL, size);
	if (data != NULL && buffer->data != NULL) {
		memcpy(data, buffer->data, buffer->length);
		explicit_bzero(buffer->data, buffer->capacity);
		memory_release(buffer->data);
	}
	return data;
}

/* Makes room for length more bytes, or notes why there is none. */
static bool make_room(struct buffer *buffer, size_t length)
{
	if (buffer->failed)
		return false;
	if (length > buffer->limit_bytes - buffer->length) {
		buffer->failed = true;
		return false;
	}

	size_t needed = buffer->length + length;

	if (buffer->data != NULL && needed <= buffer->capacity)
		return true;

	size_t capacity = buffer->capacity > 0 ? 2 * buffer->capacity + 1 : FIRST_CAPACITY_BYTES;

	if (capacity < needed)
		capacity = needed;
	if (capacity > buffer->limit_bytes)
		capacity = buffer->limit_bytes;

	char *data = grow(buffer, capacity + 1);

	if (data == NULL) {
		buffer->failed = true;
		buffer->no_memory = true;
		return false;
	}
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

/*
 * Most appends are a few bytes, and musl's memcpy takes longer to start than they take to copy. Copies of a constant
 * length are single instructions; those that overlap write the same bytes twice.
 */
static void copy_bytes(char *to, const char *from, size_t length)
{
	enum { WORD = 8, HALF = 4, SHORT = 64 };
	size_t i = 0;

	if (length > SHORT) {
		memcpy(to, from, length);
	} else if (length >= WORD) {
		for (; i + WORD < length; i += WORD)
			memcpy(to + i, from + i, WORD);
		memcpy(to + length - WORD, from + length - WORD, WORD);
	} else if (length >= HALF) {
		memcpy(to, from, HALF);
		memcpy(to + length - HALF, from + length - HALF, HALF);
	} else {
		to[0] = from[0];
		to[length / 2] = from[length / 2];
		to[length - 1] = from[length - 1];
	}
}

void buffer_append(struct buffer *buffer, const void *data, size_t length)
{
	if (length == 0 || !make_room(buffer, length))
		return;
	copy_bytes(buffer->data + buffer->length, data, length);
	buffer->length += length;
}

void buffer_share_failure(struct buffer *buffer, const struct buffer *part)
{
	if (!part->failed || buffer->failed)
		return;
	buffer->failed = true;
	buffer->no_memory = part->no_memory;
}

void buffer_append_slice(struct buffer *buffer, struct slice text)
{
	buffer_append(buffer, text.data, text.length);
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
}

void buffer_append_char(struct buffer *buffer, char c)
{
	if (!make_room(buffer, 1))
		return;
	buffer->data[buffer->length++] = c;
}

/* Tries in the room there is; only when that is too small, makes room for the length that vsnprintf reported. */
void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
	va_list arguments;

	if (!make_room(buffer, 0))
		return;

	size_t room = buffer->capacity - buffer->length;

	va_start(arguments, format);
	int length = vsnprintf(buffer->data + buffer->length, room + 1, format, arguments);
	va_end(arguments);

	if (length > 0 && (size_t)length > room) {
		if (!make_room(buffer, (size_t)length))
			return;
		va_start(arguments, format);
		length = vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, arguments);
		va_end(arguments);
	}
	if (length < 0)
		buffer->failed = true; /* a format the C library refuses, or a text over 2 GiB */
	else
		buffer->length += (size_t)length;
}

char *buffer_reserve(struct buffer *buffer, size_t length)
{
	return make_room(buffer, length) ? buffer->data + buffer->length : NULL;
}

void buffer_advance(struct buffer *buffer, size_t length)
{
	buffer->length += length;
}

void buffer_consume(struct buffer *buffer, size_t length)
{
	if (length >= buffer->length) {
		wipe_from(buffer, 0);
		buffer->length = 0;
		return;
	}
	if (length > 0)
		memmove(buffer->data, buffer->data + length, buffer->length - length);
	wipe_from(buffer, buffer->length - length);
	buffer->length -= length;
}

void buffer_clear(struct buffer *buffer)
{
	wipe_from(buffer, 0);
	buffer->length = 0;
	buffer->failed = false;
	buffer->no_memory = false;
}

void buffer_release(struct buffer *buffer)
{
	size_t limit_bytes = buffer->limit_bytes;
	bool secret = buffer->secret;

	buffer_destroy(buffer);
	buffer_init(buffer, limit_bytes);
	buffer->secret = secret;
}

struct slice buffer_slice(const struct buffer *buffer)
{
	return slice_from(buffer->data, buffer->length);
}

bool buffer_check(const struct buffer *buffer, const char *what, struct error *err)
{
	if (!buffer->failed)
		return true;
	if (buffer->no_memory)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %s", what);
	return error_set(err, ERROR_LIMIT, "%s is over %zu bytes", what, buffer->limit_bytes);
}
