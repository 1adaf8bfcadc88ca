#include "net/tls_roots.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "net/limits.h"

/* Reads the open file to its end. */
static bool read_all(int descriptor, struct buffer *content, struct error *err)
{
	enum { CHUNK_BYTES = 32 * 1024 };

	for (;;) {
		char *room = buffer_reserve(content, CHUNK_BYTES);

		if (room == NULL)
			return buffer_check(content, "the file of root certificates", err);

		ssize_t length = read(descriptor, room, CHUNK_BYTES);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return error_set_errno(err, errno, "read");
		if (length == 0)
			return true;
		buffer_advance(content, (size_t)length);
	}
}

bool tls_roots_read_file(const char *path, struct buffer *ret_pem, struct error *err)
{
	struct buffer content;
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);

	if (descriptor < 0)
		return error_set_errno(err, errno, path);
	buffer_init(&content, NET_CA_FILE_BYTES);

	bool done = read_all(descriptor, &content, err);

	close(descriptor);
	if (!done) {
		buffer_destroy(&content);
		return error_wrap(err, "%s", path);
	}
	*ret_pem = content;
	return true;
}

bool tls_roots_read(struct buffer *ret_pem, struct error *err)
{
	return tls_roots_read_file("/etc/ssl/certs/ca-certificates.crt", ret_pem, err);
}
