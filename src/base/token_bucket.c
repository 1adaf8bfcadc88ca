/*
 * The whole state is one instant. It lies burst_ns in the past when the bucket is full, is now when the bucket is
 * empty, and in the future when tokens are owed. Taking a token moves it later by one token's time; time passing does
 * the rest.
 */
#include "base/token_bucket.h"

enum { LIMIT = 1000000 };

static const uint64_t NS_PER_S = 1000000000;

bool token_bucket_init(struct token_bucket *ret_bucket, uint32_t rate_per_s, uint32_t burst, uint64_t now_ns,
                       struct error *err)
{
	if (rate_per_s == 0 || rate_per_s > LIMIT)
		return error_set(err, ERROR_LIMIT, "rate %u per second is not within 1 and %d", rate_per_s, LIMIT);
	if (burst == 0 || burst > LIMIT)
		return error_set(err, ERROR_LIMIT, "burst %u is not within 1 and %d", burst, LIMIT);

	uint64_t ns_per_token = NS_PER_S / rate_per_s;
	uint64_t burst_ns = ns_per_token * burst;

	*ret_bucket = (struct token_bucket){
		.ns_per_token = ns_per_token,
		.burst_ns = burst_ns,
		.empty_at_ns = now_ns > burst_ns ? now_ns - burst_ns : 0,
	};
	return true;
}

/* Where the instant would be after one more token; a bucket never holds more than its burst. */
static uint64_t empty_after_take(const struct token_bucket *bucket, uint64_t now_ns)
{
	uint64_t fullest = now_ns > bucket->burst_ns ? now_ns - bucket->burst_ns : 0;
	uint64_t empty_at = bucket->empty_at_ns > fullest ? bucket->empty_at_ns : fullest;

	return empty_at + bucket->ns_per_token;
}

uint64_t token_bucket_wait(const struct token_bucket *bucket, uint64_t now_ns)
{
	uint64_t empty_at = empty_after_take(bucket, now_ns);

	return empty_at > now_ns ? empty_at - now_ns : 0;
}

uint64_t token_bucket_take(struct token_bucket *bucket, uint64_t now_ns)
{
	uint64_t wait_ns = token_bucket_wait(bucket, now_ns);

	bucket->empty_at_ns = empty_after_take(bucket, now_ns);
	return wait_ns;
}
