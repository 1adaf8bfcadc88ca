#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16 * 1024 };

static bool fail(const char *call, const char *path, int errno_value, struct error *err)
{
	char what[PATH_MAX];

	snprintf(what, sizeof what, "%s %s", call, path);
	return error_set_errno(err, errno_value, what);
}

static int open_with(const char *path, int more_flags, struct error *err)
{
	int descriptor;

	do
		descriptor = open(path, O_RDONLY | O_CLOEXEC | more_flags);
	while (descriptor < 0 && errno == EINTR);
	if (descriptor < 0)
		fail("open", path, errno, err);
	return descriptor;
}

int file_open(const char *path, struct error *err)
{
	return open_with(path, 0, err);
}

bool file_read_and_close(int descriptor, const char *path, struct buffer *content, struct error *err)
{
	char chunk[CHUNK_BYTES];
	ssize_t length;

	do {
		length = read(descriptor, chunk, sizeof chunk);
		if (length > 0)
			buffer_append(content, chunk, (size_t)length);
	} while ((length > 0 && !content->failed) || (length < 0 && errno == EINTR));

	int errno_value = errno;

	close(descriptor);
	explicit_bzero(chunk, sizeof chunk); /* it may have been a key */
	return length < 0 ? fail("read", path, errno_value, err) : buffer_check(content, path, err);
}

bool file_read(const char *path, struct buffer *content, struct error *err)
{
	int descriptor = open_with(path, O_NONBLOCK, err);

	return descriptor >= 0 && file_read_and_close(descriptor, path, content, err);
}
