/*
 * Puts batches into an S3 bucket, one object each (spec reporting section 9): client "s3", format REPORT_GZIP_LINES.
 *
 * Credentials come from the environment (aws_credentials.h), for the first time with the first push. The cause of every
 * failure is "S3 error".
 */
#ifndef BALLAST_REPORT_S3_PUT_H
#define BALLAST_REPORT_S3_PUT_H

#include "base/error.h"
#include "base/slice.h"
#include "report/object_key.h"
#include "report/report_client.h"
#include "report/report_transport.h"

/* Copied. */
struct s3_put_options {
	struct slice bucket;
	struct slice region;
	struct slice endpoint; /* empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the region's own (P3) */
	struct report_key_layout layout;
};

/*
 * NULL with *err when the environment asks for something that can't be (P11: a web identity without a role), or when
 * memory is short. A bad endpoint fails each push instead.
 */
struct report_client *s3_put_create(struct report_transport *transport, const struct s3_put_options *options,
                                    struct error *err);

#endif
