#include "report/object_key.h"

#include <time.h>

#include "base/clock.h"

enum { BASE = 57, SHORTEST_ID = 13 };

static const char ALPHABET[BASE + 1] = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/* Divides a big-endian number in place and returns the remainder. */
static unsigned divide(uint8_t number[REPORT_UUID_BYTES], unsigned divisor)
{
	unsigned rest = 0;

	for (size_t i = 0; i < REPORT_UUID_BYTES; i++) {
		rest = rest * 256 + number[i];
		number[i] = (uint8_t)(rest / divisor);
		rest %= divisor;
	}
	return rest;
}

static bool is_zero(const uint8_t number[REPORT_UUID_BYTES])
{
	for (size_t i = 0; i < REPORT_UUID_BYTES; i++)
		if (number[i] != 0)
			return false;
	return true;
}

void report_id_from_uuid(const uint8_t uuid[REPORT_UUID_BYTES], char ret_id[REPORT_ID_BYTES])
{
	uint8_t number[REPORT_UUID_BYTES];
	size_t length = 0;

	for (size_t i = 0; i < REPORT_UUID_BYTES; i++)
		number[i] = uuid[i];
	/* 57^22 is over 2^128: 22 digits at most. */
	while (!is_zero(number) && length < REPORT_ID_BYTES - 1)
		ret_id[length++] = ALPHABET[divide(number, BASE)];
	while (length < SHORTEST_ID)
		ret_id[length++] = ALPHABET[0];
	ret_id[length] = '\0';
}

bool report_uuid_make(struct loop *loop, uint8_t ret_uuid[REPORT_UUID_BYTES], struct error *err)
{
	if (!loop_random(loop, ret_uuid, REPORT_UUID_BYTES))
		return error_set(err, ERROR_SYSTEM, "the system has no random bytes");
	ret_uuid[6] = (uint8_t)((ret_uuid[6] & 0x0f) | 0x40); /* version 4 */
	ret_uuid[8] = (uint8_t)((ret_uuid[8] & 0x3f) | 0x80); /* variant of RFC 9562 */
	return true;
}

bool report_id_make(struct loop *loop, char ret_id[REPORT_ID_BYTES], struct error *err)
{
	uint8_t uuid[REPORT_UUID_BYTES];

	if (!report_uuid_make(loop, uuid, err))
		return false;
	report_id_from_uuid(uuid, ret_id);
	return true;
}

static time_t whole_seconds(int64_t wall_ns)
{
	int64_t seconds = wall_ns / NS_PER_S;

	return (time_t)(wall_ns % NS_PER_S < 0 ? seconds - 1 : seconds);
}

/* K2: local time, though a Z stands behind it. */
static void append_billing(struct buffer *key, struct slice prefix, time_t when, const char *id)
{
	struct tm date = { 0 };

	(void)localtime_r(&when, &date);
	if (prefix.length > 0) {
		while (prefix.length > 0 && prefix.data[prefix.length - 1] == '/')
			prefix.length--;
		buffer_append_slice(key, prefix);
		buffer_append_char(key, '/');
	}
	buffer_append_format(key, "year=%d/month=%02d/day=%02d/hour=%02d/%02d:%02d:%02dZ_%s.ndjson.gz",
	                     date.tm_year + 1900, date.tm_mon + 1, date.tm_mday, date.tm_hour, date.tm_hour,
	                     date.tm_min, date.tm_sec, id);
}

static void append_scaling(struct buffer *key, struct slice prefix, time_t when, const char *id)
{
	struct tm date = { 0 };

	(void)gmtime_r(&when, &date);
	buffer_append_slice(key, prefix);
	buffer_append_format(key, "/%d/%02d/%02d/%02d/events_%s.ndjson.gz", date.tm_year + 1900, date.tm_mon + 1,
	                     date.tm_mday, date.tm_hour, id);
}

void report_key_append(struct buffer *key, const struct report_key_layout *layout, int64_t wall_ns, const char *id)
{
	if (layout->kind == REPORT_KEY_BILLING)
		append_billing(key, layout->prefix, whole_seconds(wall_ns), id);
	else
		append_scaling(key, layout->prefix, whole_seconds(wall_ns), id);
}
