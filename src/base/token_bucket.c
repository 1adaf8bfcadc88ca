/*
 * The whole state is one instant: when the bucket will be full again. It is past when the bucket is full, burst_ns
 * ahead when the bucket is empty, and further ahead when tokens are owed. Taking a token moves it later by one token's
 * time; time passing does the rest.
 */
#include "base/token_bucket.h"

#include "base/clock.h"

enum { LIMIT = 1000000 };

bool token_bucket_init(struct token_bucket *ret_bucket, uint32_t rate_per_s, uint32_t burst, uint64_t now_ns,
                       struct error *err)
{
	if (rate_per_s == 0 || rate_per_s > LIMIT)
		return error_set(err, ERROR_LIMIT, "rate %u per second is not within 1 and %d", rate_per_s, LIMIT);
	if (burst == 0 || burst > LIMIT)
		return error_set(err, ERROR_LIMIT, "burst %u is not within 1 and %d", burst, LIMIT);

	uint64_t ns_per_token = NS_PER_S / rate_per_s;

	*ret_bucket = (struct token_bucket){
		.ns_per_token = ns_per_token,
		.burst_ns = ns_per_token * burst,
		.full_at_ns = now_ns,
	};
	return true;
}

/* Where the instant would be after one more token; a bucket never holds more than its burst. */
static uint64_t full_after_take(const struct token_bucket *bucket, uint64_t now_ns)
{
	return (bucket->full_at_ns > now_ns ? bucket->full_at_ns : now_ns) + bucket->ns_per_token;
}

uint64_t token_bucket_wait(const struct token_bucket *bucket, uint64_t now_ns)
{
	uint64_t to_full_ns = full_after_take(bucket, now_ns) - now_ns;

	return to_full_ns > bucket->burst_ns ? to_full_ns - bucket->burst_ns : 0;
}

uint64_t token_bucket_take(struct token_bucket *bucket, uint64_t now_ns)
{
	uint64_t wait_ns = token_bucket_wait(bucket, now_ns);

	bucket->full_at_ns = full_after_take(bucket, now_ns);
	return wait_ns;
}
