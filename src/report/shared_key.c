#include "report/shared_key.h"

#include <time.h>

#include "base/clock.h"
#include "report/digest.h"
#include "report/limits.h"

void shared_key_time(int64_t wall_ns, char ret_time[SHARED_KEY_TIME_BYTES])
{
	time_t when = (time_t)(wall_ns / NS_PER_S);
	struct tm date = { 0 };

	(void)gmtime_r(&when, &date);
	/* Names are English: no locale is ever set. */
	if (strftime(ret_time, SHARED_KEY_TIME_BYTES, "%a, %d %b %Y %H:%M:%S GMT", &date) == 0)
		ret_time[0] = '\0';
}

void shared_key_append_string(struct buffer *out, const struct shared_key_request *request, struct slice account)
{
	buffer_append_slice(out, request->method);
	buffer_append_text(out, "\n\n\n"); /* no encoding, no language */
	if (request->content_length > 0)
		buffer_append_format(out, "%zu", request->content_length);
	buffer_append_text(out, "\n\n"); /* no MD5 */
	buffer_append_slice(out, request->content_type);
	buffer_append_text(out, "\n\n\n\n\n\n\n"); /* neither date nor conditions nor range */
	for (size_t i = 0; i < request->service_fields.count; i++) {
		buffer_append_slice(out, request->service_fields.items[i].name);
		buffer_append_char(out, ':');
		buffer_append_slice(out, slice_trim(request->service_fields.items[i].value));
		buffer_append_char(out, '\n');
	}
	buffer_append_char(out, '/');
	buffer_append_slice(out, account);
	buffer_append_slice(out, request->path);
}

bool shared_key_append_authorization(struct buffer *out, const struct shared_key_request *request, struct slice account,
                                     struct slice key, struct error *err)
{
	struct buffer text;
	uint8_t signature[DIGEST_BYTES];
	bool done;

	buffer_init(&text, 4 * REPORT_URL_BYTES);
	shared_key_append_string(&text, request, account);
	done = buffer_check(&text, "the text to sign", err) &&
	       digest_hmac_sha256(key, buffer_slice(&text), signature, err);
	buffer_destroy(&text);
	if (!done)
		return false;
	buffer_append_format(out, "SharedKey %.*s:", SLICE_ARGS(account));
	digest_append_base64(out, slice_from(signature, sizeof signature));
	return buffer_check(out, "the signature", err);
}
