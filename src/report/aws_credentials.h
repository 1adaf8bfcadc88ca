/*
 * Credentials for AWS from what the environment offers (spec reporting 9.4): fixed keys, a web identity exchanged at
 * STS, a container's endpoint, or the instance's metadata. The first that is configured is used for good; nothing is
 * asked before credentials are wanted, and then once until they are about to expire.
 */
#ifndef BALLAST_REPORT_AWS_CREDENTIALS_H
#define BALLAST_REPORT_AWS_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "report/report_transport.h"
#include "report/secret.h"

struct aws_credentials {
	struct secret key_id;
	struct secret secret_key;
	struct secret session_token; /* empty: none */
	bool expire;
	uint64_t expire_ns; /* monotonic: wall clocks may jump */
};

/* credentials NULL: *err tells why there are none. Both are valid during the callback. */
typedef void aws_credentials_done(void *context, const struct aws_credentials *credentials, const struct error *err);

struct aws_provider;

/*
 * Reads the environment. NULL with *err if it asks for the impossible: AWS_WEB_IDENTITY_TOKEN_FILE without AWS_ROLE_ARN;
 * or when memory is short. No source at all is an error of each aws_provider_get.
 */
struct aws_provider *aws_provider_create(struct report_transport *transport, struct slice region, struct error *err);
/* done comes exactly once, never from inside, unless cancelled first. There must be no other one under way. */
void aws_provider_get(struct aws_provider *provider, aws_credentials_done *done, void *context);
void aws_provider_cancel(struct aws_provider *provider); /* no-op without one under way */
/* The receiver doesn't take these any more: the next call asks anew. Fixed keys stay. */
void aws_provider_forget(struct aws_provider *provider);
void aws_provider_destroy(struct aws_provider *provider); /* NULL is fine */

#endif
