/*
 * How long a server asks its clients to wait (spec reporting A5, RFC 9110 10.2.3).
 */
#ifndef BALLAST_REPORT_RETRY_AFTER_H
#define BALLAST_REPORT_RETRY_AFTER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/http_message.h"

/*
 * Reads retry-after-ms, x-ms-retry-after-ms or Retry-After (seconds, or a date to compare with wall_ns), whichever of
 * them is found first. False if there is none that can be read: *ret_wait_ns stays.
 */
bool retry_after_read(struct http_fields fields, int64_t wall_ns, uint64_t *ret_wait_ns);

#endif
