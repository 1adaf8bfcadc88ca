/*
 * Token bucket: limits how often something happens while allowing bursts.
 *
 * A full bucket holds `burst` tokens; it gains `rate_per_s` tokens a second. The caller passes the monotonic time, so
 * the bucket needs no timer and behaves the same in simulated time. A caller learns how long it must wait, and its
 * token is then already reserved (as in client-go's limiter).
 */
#ifndef BALLAST_BASE_TOKEN_BUCKET_H
#define BALLAST_BASE_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct token_bucket {
	uint64_t ns_per_token;
	uint64_t burst_ns;   /* time it takes to fill an empty bucket */
	uint64_t full_at_ns; /* the later this instant, the emptier the bucket; see token_bucket.c */
};

/*
 * Prepares a full bucket at now_ns (monotonic, nanoseconds). rate_per_s and burst must be 1 … 1,000,000, else
 * ERROR_LIMIT and *ret_bucket is untouched. Owns nothing; there is no destroy.
 */
bool token_bucket_init(struct token_bucket *ret_bucket, uint32_t rate_per_s, uint32_t burst, uint64_t now_ns,
                       struct error *err);

/*
 * Takes one token and returns how long the caller must wait before acting, in nanoseconds (0 = now). The token is taken
 * even if the wait is long: a caller that won't wait asks token_bucket_wait first. Time that goes backwards gives
 * nothing.
 */
uint64_t token_bucket_take(struct token_bucket *bucket, uint64_t now_ns);

/* What token_bucket_take would return at now_ns, taking nothing. */
uint64_t token_bucket_wait(const struct token_bucket *bucket, uint64_t now_ns);

#endif
