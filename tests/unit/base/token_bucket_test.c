#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/token_bucket.h"

static const uint64_t START_NS = 5000000000000; /* any instant well after zero */
static const uint64_t SECOND = 1000000000;

static struct token_bucket bucket_of(uint32_t rate_per_s, uint32_t burst)
{
	struct token_bucket bucket;
	struct error err;

	assert_true(token_bucket_init(&bucket, rate_per_s, burst, START_NS, &err));
	return bucket;
}

static void a_full_bucket_lets_a_burst_pass_and_then_paces(void **state)
{
	(void)state;
	struct token_bucket bucket = bucket_of(5, 10);

	for (int i = 0; i < 10; i++)
		assert_int_equal(token_bucket_take(&bucket, START_NS), 0);
	assert_int_equal(token_bucket_take(&bucket, START_NS), SECOND / 5);
	assert_int_equal(token_bucket_take(&bucket, START_NS), 2 * SECOND / 5);
}

static void an_idle_bucket_fills_up_to_its_burst_only(void **state)
{
	(void)state;
	struct token_bucket bucket = bucket_of(5, 2);

	for (int i = 0; i < 2; i++)
		assert_int_equal(token_bucket_take(&bucket, START_NS + 3600 * SECOND), 0);
	assert_int_equal(token_bucket_take(&bucket, START_NS + 3600 * SECOND), SECOND / 5);
}

static void asking_takes_nothing(void **state)
{
	(void)state;
	struct token_bucket bucket = bucket_of(1, 1);

	assert_int_equal(token_bucket_wait(&bucket, START_NS), 0);
	assert_int_equal(token_bucket_wait(&bucket, START_NS), 0);
	assert_int_equal(token_bucket_take(&bucket, START_NS), 0);
	assert_int_equal(token_bucket_wait(&bucket, START_NS), SECOND);
}

static void time_that_goes_backwards_gives_no_tokens(void **state)
{
	(void)state;
	struct token_bucket bucket = bucket_of(1, 1);

	assert_int_equal(token_bucket_take(&bucket, START_NS), 0);
	assert_int_equal(token_bucket_take(&bucket, START_NS - 10 * SECOND), 11 * SECOND);
}

static void a_bucket_made_at_time_zero_is_full(void **state)
{
	(void)state;
	struct token_bucket bucket;
	struct error err;

	assert_true(token_bucket_init(&bucket, 1, 2, 0, &err));
	assert_int_equal(token_bucket_take(&bucket, 0), 0);
	assert_int_equal(token_bucket_take(&bucket, 0), 0);
	assert_int_equal(token_bucket_take(&bucket, 0), SECOND);
}

static void a_rate_of_zero_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	struct token_bucket bucket = bucket_of(1, 1);
	struct token_bucket before = bucket;
	struct error err;

	assert_false(token_bucket_init(&bucket, 0, 1, START_NS, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "rate 0 per second is not within 1 and 1000000");
	assert_memory_equal(&bucket, &before, sizeof bucket);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_bucket_lets_a_burst_pass_and_then_paces),
		cmocka_unit_test(an_idle_bucket_fills_up_to_its_burst_only),
		cmocka_unit_test(asking_takes_nothing),
		cmocka_unit_test(time_that_goes_backwards_gives_no_tokens),
		cmocka_unit_test(a_bucket_made_at_time_zero_is_full),
		cmocka_unit_test(a_rate_of_zero_is_refused_and_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
