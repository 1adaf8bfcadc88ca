/*
 * One call of the client at a time, sent and judged.
 */
#ifndef BALLAST_TESTS_CLIENT_FIXTURE_H
#define BALLAST_TESTS_CLIENT_FIXTURE_H

#include "kube_fixture.h"

#include "kube/client.h"

static const uint64_t SECOND = NS_PER_S;

UNUSED_HERE static int client_set_up(void **state)
{
	*state = fixture_create();
	return 0;
}

UNUSED_HERE static int client_tear_down(void **state)
{
	fixture_destroy(*state);
	return 0;
}

UNUSED_HERE static struct kube_request get_pods(void)
{
	return (struct kube_request){
		.method = SLICE("GET"),
		.path = SLICE("/api/v1/pods"),
		.max_body_bytes = 4096,
		.verb = "get",
		.resource = "pods",
	};
}

UNUSED_HERE static struct kube_request patch_vm(void)
{
	return (struct kube_request){
		.method = SLICE("PATCH"),
		.path = SLICE("/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines/vm-a"),
		.content_type = SLICE("application/json-patch+json"),
		.body = SLICE("[]"),
		.max_body_bytes = 4096,
		.verb = "patch",
		.resource = "virtualmachines.vm.neon.tech",
		.name = SLICE("vm-a"),
	};
}

UNUSED_HERE static void send_with(struct kube_fixture *fixture, const struct kube_request *request,
                                  const struct kube_handler *handler, struct fixture_outcome *outcome)
{
	struct error err;

	outcome->call = kube_client_send(fixture->client, request, handler, outcome, &err);
	if (outcome->call == NULL)
		fail_msg("kube_client_send: %s", err.text);
	assert_false(outcome->done);
}

UNUSED_HERE static struct fixture_outcome *outcome_create(void)
{
	return calloc(1, sizeof(struct fixture_outcome));
}

UNUSED_HERE static struct fixture_outcome *send_request(struct kube_fixture *fixture,
                                                        const struct kube_request *request)
{
	struct fixture_outcome *outcome = outcome_create();

	send_with(fixture, request, &FIXTURE_COLLECT, outcome);
	return outcome;
}

UNUSED_HERE static void expect_success(struct kube_fixture *fixture, struct fixture_outcome *outcome, const char *body)
{
	test_loop_until(fixture->loop, &outcome->done);
	if (outcome->failed)
		fail_msg("%s", outcome->err.text);
	expect_slice(slice_from(outcome->body, outcome->body_length), body);
	free(outcome);
}

UNUSED_HERE static void expect_failure(struct kube_fixture *fixture, struct fixture_outcome *outcome, int status,
                                       const char *root)
{
	test_loop_until(fixture->loop, &outcome->done);
	assert_true(outcome->failed);
	assert_int_equal(outcome->status, status);
	assert_string_equal(error_root(&outcome->err), root);
	assert_int_equal(outcome->body_length, 0);
	free(outcome);
}

UNUSED_HERE static void expect_no_more(struct kube_fixture *fixture, size_t requests)
{
	test_loop_spin(fixture->loop, 30);
	assert_int_equal(scripted_api_request_count(fixture->api), requests);
}

#endif
