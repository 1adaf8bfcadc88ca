/*
 * Any bytes as the reply of whoever issues credentials, or as an error of S3: each reader either takes it or says why not,
 * and leaves nothing behind. The first byte chooses the reader.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "gen/report.gen.h"
#include "report/aws_internal.h"
#include "report/retry_after.h"
#include "report/xml_text.h"

enum { OUT_BYTES = 512, ARENA_BYTES = 1 << 20 };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void find_text(struct slice document, const char *path)
{
	struct buffer out;
	struct error err = { .code = ERROR_NONE };

	buffer_init(&out, OUT_BYTES);
	buffer_append_text(&out, "kept");
	if (xml_find_text(document, path, &out, &err))
		require(out.length >= 4 && out.length <= 4 + document.length);
	else
		require(out.length == 4 && err.code != ERROR_NONE);
	require(memcmp(out.data, "kept", 4) == 0);
	buffer_destroy(&out);
}

static void read_credentials(struct slice text, bool xml)
{
	struct aws_credentials credentials;
	struct error err;

	if (!(xml ? aws_read_sts_reply(text, 0, 1, &credentials, &err)
	          : aws_read_credentials(text, 0, 1, &credentials, &err)))
		return;
	require(credentials.key_id.length > 0 && credentials.secret_key.length > 0);
	require(!credentials.expire || credentials.expire_ns >= 1);
	aws_credentials_clear(&credentials);
}

static void read_azure(struct slice text)
{
	struct report_azure_token token;
	struct report_azure_error refusal;
	struct arena arena;
	struct error err;

	arena_init(&arena, ARENA_BYTES);
	(void)report_azure_token_from_json(text, &arena, &token, &err);
	(void)report_azure_error_from_json(text, &arena, &refusal, &err);
	arena_destroy(&arena);
}

static void read_wait(struct slice text)
{
	const struct http_field field = { SLICE("Retry-After"), text };
	uint64_t wait_ns = 0;

	(void)retry_after_read((struct http_fields){ &field, 1 }, 0, &wait_ns);
	require(wait_ns <= 2 * 1000000 * (uint64_t)1000000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text;

	if (size == 0)
		return 0;
	text = slice_from(data + 1, size - 1);
	switch (data[0]) {
	case 'x':
		find_text(text, "Error/Code");
		find_text(text, "Error");
		find_text(text, "a/b/c");
		break;
	case 's':
		read_credentials(text, true);
		break;
	case 'j':
		read_credentials(text, false);
		break;
	case 'a':
		read_azure(text);
		break;
	default:
		read_wait(text);
		break;
	}
	return 0;
}
