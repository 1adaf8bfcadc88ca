#include "report/retry_after.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

enum { DATE_BYTES = 64, MOST_S = 1000 * 1000 };

static bool read_number(struct slice value, uint64_t unit_ns, uint64_t *ret_wait_ns)
{
	uint64_t number;

	if (!slice_to_u64(value, &number))
		return false;
	if (number > (uint64_t)MOST_S * NS_PER_S / unit_ns)
		number = (uint64_t)MOST_S * NS_PER_S / unit_ns;
	*ret_wait_ns = number * unit_ns;
	return true;
}

/* "Fri, 07 Mar 2025 09:05:04 GMT" */
static bool read_date(struct slice value, int64_t wall_ns, uint64_t *ret_wait_ns)
{
	char text[DATE_BYTES];
	struct tm date = { 0 };
	const char *end;
	int64_t wait_s;

	if (value.length == 0 || value.length >= sizeof text)
		return false;
	(void)snprintf(text, sizeof text, "%.*s", SLICE_ARGS(value));
	end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
	if (end == NULL || *end != '\0')
		return false;
	wait_s = (int64_t)timegm(&date) - wall_ns / NS_PER_S;
	if (wait_s > MOST_S)
		wait_s = MOST_S;
	*ret_wait_ns = wait_s > 0 ? (uint64_t)wait_s * NS_PER_S : 0;
	return true;
}

bool retry_after_read(struct http_fields fields, int64_t wall_ns, uint64_t *ret_wait_ns)
{
	struct slice value = http_fields_find(fields, "retry-after");

	return read_number(http_fields_find(fields, "retry-after-ms"), NS_PER_MS, ret_wait_ns) ||
	       read_number(http_fields_find(fields, "x-ms-retry-after-ms"), NS_PER_MS, ret_wait_ns) ||
	       read_number(value, NS_PER_S, ret_wait_ns) || read_date(value, wall_ns, ret_wait_ns);
}
