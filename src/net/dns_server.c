#include "net/dns_server.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DNS_PORT = 53, FILE_BYTES = 4096 };

static const char BLANKS[] = " \t\r";

static struct slice take_word(struct slice *line)
{
	struct slice word;
	size_t start = 0, end;

	while (start < line->length && strchr(BLANKS, line->data[start]) != NULL)
		start++;
	end = start;
	while (end < line->length && strchr(BLANKS, line->data[end]) == NULL)
		end++;
	word = slice_from(line->data + start, end - start);
	*line = slice_from_offset(*line, end);
	return word;
}

void dns_server_from(struct slice resolv_conf, char text[ADDRESS_TEXT_BYTES])
{
	struct address address = { .bytes = { 127, 0, 0, 1 }, .port = DNS_PORT };

	while (resolv_conf.length > 0) {
		struct slice line = slice_take_until(&resolv_conf, '\n');

		if (slice_equal_text(take_word(&line), "nameserver") &&
		    address_parse(take_word(&line), DNS_PORT, &address))
			break;
	}
	address_print(&address, text);
}

void dns_server_text(char text[ADDRESS_TEXT_BYTES])
{
	char content[FILE_BYTES];
	size_t length = 0;
	int descriptor = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);

	while (descriptor >= 0 && length < sizeof content) {
		ssize_t got = read(descriptor, content + length, sizeof content - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	if (descriptor >= 0)
		close(descriptor);
	dns_server_from(slice_from(content, length), text);
}
