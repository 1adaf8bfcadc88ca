#include "net/base64.h"

#include <mbedtls/base64.h>

bool base64_decode(struct slice text, struct buffer *out, struct error *err)
{
	size_t room = text.length / 4 * 3 + 3;
	size_t length = 0;
	char *bytes = buffer_reserve(out, room);

	if (bytes == NULL)
		return buffer_check(out, "base64", err);
	if (mbedtls_base64_decode((unsigned char *)bytes, room, &length, (const unsigned char *)text.data,
	                          text.length) != 0)
		return error_set(err, ERROR_SYNTAX, "this is no base64");
	buffer_advance(out, length);
	return true;
}
