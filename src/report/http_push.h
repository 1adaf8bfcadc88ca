/*
 * Posts batches to an HTTP receiver (spec reporting section 8): client "http", format REPORT_JSON_ARRAY.
 *
 * Causes of failures: "HTTP code N", or why the request failed, from a closed set of texts; names and addresses in them
 * are the configured ones.
 */
#ifndef BALLAST_REPORT_HTTP_PUSH_H
#define BALLAST_REPORT_HTTP_PUSH_H

#include "base/error.h"
#include "base/slice.h"
#include "report/report_client.h"
#include "report/report_transport.h"

struct http_push_options {
	struct slice url; /* "/usage_events" is put behind it; copied. One that can't be used fails each push. */
};

struct report_client *http_push_create(struct report_transport *transport, const struct http_push_options *options,
                                       struct error *err);

#endif
