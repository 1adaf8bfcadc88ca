/*
 * Faults of the stand-in API server.
 */
#include "api_fixture.h"

#include "sandbox/faults.h"

enum { BATCH = 40, REQUESTS = 5 * BATCH };

/* What came of many requests: by status, and without an answer. */
struct sums {
	unsigned ok, too_many, failed, conflicts, none, others;
};

static void add_up(const struct reply *reply, struct sums *sums)
{
	sums->none += reply->failed;
	if (reply->failed)
		return;
	sums->ok += reply->status == 200;
	sums->too_many += reply->status == 429;
	sums->failed += reply->status == 500;
	sums->conflicts += reply->status == 409;
	sums->others += reply->status != 200 && reply->status != 429 && reply->status != 500 && reply->status != 409;
}

static struct sums send_many(struct plane_fixture *fixture, const char *method, const char *target, const char *body)
{
	struct sums sums = { 0 };

	for (unsigned i = 0; i < REQUESTS; i += BATCH) {
		static struct reply replies[BATCH];

		/* Side by side, since some are slow. */
		for (unsigned j = 0; j < BATCH; j++)
			fixture_start(fixture,
			              &(struct ask){ .token = ADMIN_TOKEN,
			                             .method = method,
			                             .target = target,
			                             .type = body != NULL ? MERGE_PATCH : NULL,
			                             .body = body },
			              &replies[j]);
		for (unsigned j = 0; j < BATCH; j++) {
			fixture_wait(fixture, &replies[j]);
			add_up(&replies[j], &sums);
		}
	}
	return sums;
}

static void requests_meet_what_is_drawn_for_them(void **state)
{
	struct plane_fixture *fixture = *state;
	struct faults faults;
	struct sums sums;

	faults_init(&faults, FAULTS_HEAVY, 1);
	control_plane_set_faults(fixture->plane, &faults);
	sums = send_many(fixture, "GET", SYSTEM_PODS, NULL);
	assert_int_equal(sums.too_many, faults.counts[FAULT_API_TOO_MANY]);
	assert_int_equal(sums.failed, faults.counts[FAULT_API_ERROR]);
	assert_int_equal(sums.conflicts, 0);
	assert_int_equal(sums.others, 0);
	assert_true(sums.too_many > 0 && sums.failed > 0 && faults.counts[FAULT_API_SLOW] > 0);
	/* A GET may be sent once more by the client when its connection was cut. */
	assert_true(faults.counts[FAULT_API_CLOSED] > 0);
	assert_true(sums.none <= faults.counts[FAULT_API_CLOSED]);
	assert_int_equal(sums.ok + sums.too_many + sums.failed + sums.none, REQUESTS);
	control_plane_set_faults(fixture->plane, NULL);
	assert_int_equal(send_many(fixture, "GET", SYSTEM_PODS, NULL).ok, REQUESTS);
}

static void patches_meet_conflicts_too(void **state)
{
	struct plane_fixture *fixture = *state;
	struct faults faults;
	struct sums sums;

	put(fixture, POD("p", "{}"));
	faults_init(&faults, FAULTS_HEAVY, 3);
	control_plane_set_faults(fixture->plane, &faults);
	sums = send_many(fixture, "PATCH", SYSTEM_PODS "/p", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	assert_true(sums.conflicts > 0);
	assert_int_equal(sums.conflicts, faults.counts[FAULT_API_CONFLICT]);
	assert_true(sums.ok > REQUESTS / 2);
	control_plane_set_faults(fixture->plane, NULL);
}

static void a_slow_request_is_answered_in_the_end_or_forgotten_with_the_server(void **state)
{
	(void)state;
	struct plane_fixture *fixture = plane_fixture_create(1, 0);
	struct faults faults;
	struct reply reply;

	faults_init(&faults, FAULTS_HEAVY, 1);
	control_plane_set_faults(fixture->plane, &faults);
	do {
		fixture_start(fixture, &(struct ask){ .target = SYSTEM_PODS }, &reply);
		for (unsigned i = 0; i < 20 && !reply.done; i++)
			fixture_turn(fixture);
		if (faults.counts[FAULT_API_SLOW] == 0)
			fixture_wait(fixture, &reply);
	} while (faults.counts[FAULT_API_SLOW] == 0);
	assert_false(reply.done);
	buffer_destroy(&reply.body);
	plane_fixture_destroy(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(requests_meet_what_is_drawn_for_them, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(patches_meet_conflicts_too, plane_set_up, plane_tear_down),
		cmocka_unit_test(a_slow_request_is_answered_in_the_end_or_forgotten_with_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
