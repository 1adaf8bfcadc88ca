#include "report/secret.h"

#include <stdint.h>

#include <mbedtls/platform_util.h>

#include "base/memory.h"

bool secret_set(struct secret *secret, struct slice text, struct error *err)
{
	char *copy = NULL;

	if (text.length > 0) {
		copy = memory_copy_text(text.data, text.length);
		if (copy == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for a credential");
	}
	secret_clear(secret);
	secret->text = copy;
	secret->length = text.length;
	return true;
}

void secret_clear(struct secret *secret)
{
	if (secret->text != NULL)
		mbedtls_platform_zeroize(secret->text, secret->length);
	memory_release(secret->text);
	*secret = (struct secret){ 0 };
}

struct slice secret_slice(const struct secret *secret)
{
	return slice_from(secret->text, secret->length);
}

void secret_wipe_decoded(struct slice bytes, struct slice source)
{
	const uintptr_t at = (uintptr_t)bytes.data, from = (uintptr_t)source.data;

	if (bytes.length > 0 && (at < from || at >= from + source.length))
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): the cast drops const */
		mbedtls_platform_zeroize((void *)at, bytes.length);
}

bool secret_buffer_init(struct buffer *buffer, size_t limit_bytes, struct error *err)
{
	buffer_init_secret(buffer, limit_bytes);
	(void)buffer_reserve(buffer, limit_bytes);
	return buffer_check(buffer, "a text with credentials", err);
}
