#include "tests/unit/kube/kube_fixture.h"

#include "agent/vm_patch.h"
#include "base/memory.h"
#include "kube/client.h"

static int set_up(void **state)
{
	*state = fixture_create();
	return 0;
}

static int tear_down(void **state)
{
	fixture_destroy(*state);
	return 0;
}

struct outcome {
	bool done;
	bool failed;
	char label[1024];
	struct error err;
};

static void on_done(void *context, const char *label, const struct error *err)
{
	struct outcome *outcome = context;

	assert_false(outcome->done);
	outcome->done = true;
	outcome->failed = err != NULL;
	(void)snprintf(outcome->label, sizeof outcome->label, "%s", label);
	if (err != NULL)
		outcome->err = *err;
}

static struct vm_patch_request request_for(const char *name)
{
	return (struct vm_patch_request){
		.namespace = SLICE("apps"),
		.name = slice_of(name),
		.target = { .cpu_milli = 2000, .mem_bytes = UINT64_C(5) << 30 },
		.slot_bytes = UINT64_C(1) << 30,
		.target_revision = { .revision = { .value = 7, .flags = REVISION_DOWNSCALE },
		                     .updated_at_ns = INT64_C(1741064767) * NS_PER_S },
	};
}

static struct vm_patch *send_patch(struct kube_fixture *fixture, const char *name, struct outcome *outcome)
{
	struct vm_patch_request request = request_for(name);
	struct error err;
	struct vm_patch *patch;

	*outcome = (struct outcome){ 0 };
	patch = vm_patch_send(fixture->client, NULL, &request, (uint64_t)10 * NS_PER_S, on_done, outcome, &err);
	if (patch == NULL)
		fail_msg("vm_patch_send: %s", err.text);
	assert_false(outcome->done);
	return patch;
}

static void expect_label(struct kube_fixture *fixture, struct outcome *outcome, const char *label)
{
	test_loop_until(fixture->loop, &outcome->done);
	assert_string_equal(outcome->label, label);
}

/* ---- the body ---- */

static void take_row(struct slice line)
{
	struct vm_patch_request request = { 0 };
	uint64_t numbers[6];
	struct buffer body;
	struct error err;

	for (int i = 0; i < 6; i++)
		assert_true(slice_to_u64(slice_take_until(&line, '\t'), &numbers[i]));
	request.target.cpu_milli = (uint32_t)numbers[0];
	request.target.mem_bytes = numbers[1];
	request.slot_bytes = numbers[2];
	request.target_revision.revision.value = (int64_t)numbers[3];
	request.target_revision.revision.flags = numbers[4];
	/* With a fraction of a second, which is cut off. */
	request.target_revision.updated_at_ns = (int64_t)numbers[5] * NS_PER_S + 999999999;
	buffer_init(&body, 4096);
	assert_true(vm_patch_append_body(&request, &body, &err));
	if (!slice_equal(buffer_slice(&body), line))
		fail_msg("%.*s instead of %.*s", SLICE_ARGS(buffer_slice(&body)), SLICE_ARGS(line));
	buffer_destroy(&body);
}

static void bodies_have_exactly_these_bytes(void **state)
{
	size_t length;
	char *file = test_file_read("vectors/kube_vm_patches.tsv", &length);
	struct slice rest = slice_from(file, length);
	unsigned rows = 0;

	(void)state;
	while (rest.length > 0) {
		struct slice line = slice_take_until(&rest, '\n');

		if (line.length == 0 || line.data[0] == '#')
			continue;
		take_row(line);
		rows++;
	}
	assert_int_equal(rows, 5);
	free(file);
}

static void m7_without_a_revision_there_are_two_operations(void **state)
{
	struct vm_patch_request request = request_for("vm-a");
	struct buffer body;
	struct error err;

	(void)state;
	request.target.mem_bytes = UINT64_C(8) << 30;
	request.without_revision = true;
	buffer_init(&body, 4096);
	assert_true(vm_patch_append_body(&request, &body, &err));
	assert_true(slice_equal_text(buffer_slice(&body),
	                             "[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":\"2\"},"
	                             "{\"op\":\"replace\",\"path\":\"/spec/guest/memorySlots/use\",\"value\":8}]"));
	buffer_destroy(&body);
}

static void without_a_slot_size_there_is_no_patch(void **state)
{
	struct kube_fixture *fixture = *state;
	struct vm_patch_request request = request_for("vm-a");
	struct outcome outcome = { 0 };
	struct error err;

	request.slot_bytes = 0;
	assert_null(vm_patch_send(fixture->client, NULL, &request, 0, on_done, &outcome, &err));
	assert_string_equal(err.text, "the memory slot size is 0");
}

/* ---- the call ---- */

static void a_patch_goes_to_the_vm_and_its_answer_is_not_looked_at(void **state)
{
	struct kube_fixture *fixture = *state;
	struct scripted_request *request;
	struct outcome outcome;

	(void)send_patch(fixture, "vm-a", &outcome);
	request = scripted_api_wait(fixture->api, 1);
	expect_slice(request->method, "PATCH");
	expect_slice(request->target, "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines/vm-a");
	expect_slice(scripted_field(request, "Content-Type"), "application/json-patch+json");
	expect_slice(
		request->body,
		"[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":\"2\"},{\"op\":\"replace\",\"path\":"
		"\"/spec/guest/memorySlots/use\",\"value\":5},{\"op\":\"replace\",\"path\":\"/spec/targetRevision\",\"value\":"
		"{\"revision\":{\"value\":7,\"flags\":2},\"updatedAt\":\"2025-03-04T05:06:07Z\"}}]");
	scripted_reply(request, 200, "", "this isn't even JSON");
	expect_label(fixture, &outcome, "ok");
	assert_false(outcome.failed);
}

static void names_cannot_leave_their_place_in_the_path(void **state)
{
	struct kube_fixture *fixture = *state;
	struct outcome outcome;

	(void)send_patch(fixture, "a/../b?c", &outcome);
	expect_slice(scripted_api_wait(fixture->api, 1)->target,
	             "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines/a%2F..%2Fb%3Fc");
	scripted_reply(scripted_api_request(fixture->api, 0), 200, "", "");
	expect_label(fixture, &outcome, "ok");
}

/* P55. */
static void the_vm_s_name_is_taken_out_of_the_label(void **state)
{
	struct kube_fixture *fixture = *state;
	struct outcome outcome;

	(void)send_patch(fixture, "vm-a", &outcome);
	scripted_reply(
		scripted_api_wait(fixture->api, 1), 404, "",
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
		"\"virtualmachines.vm.neon.tech \\\"vm-a\\\" not found\",\"reason\":\"NotFound\",\"code\":404}\n");
	expect_label(fixture, &outcome, "[error: virtualmachines.vm.neon.tech \"<name>\" not found]");
	assert_true(outcome.failed);
	assert_string_equal(outcome.err.text,
	                    "error making VM patch request: virtualmachines.vm.neon.tech \"vm-a\" not found");
	assert_string_equal(error_root(&outcome.err), "virtualmachines.vm.neon.tech \"vm-a\" not found");
}

/* P56. */
static void without_a_status_the_sentence_is_the_label(void **state)
{
	struct kube_fixture *fixture = *state;
	struct outcome outcome;

	(void)send_patch(fixture, "vm-a", &outcome);
	scripted_reply(scripted_api_wait(fixture->api, 1), 503, "", "");
	expect_label(
		fixture, &outcome,
		"[error: the server is currently unable to handle the request (patch virtualmachines.vm.neon.tech <name>)]");
}

static void transport_errors_are_labelled_by_their_root(void **state)
{
	struct kube_fixture *fixture = *state;
	struct outcome outcome;

	(void)send_patch(fixture, "vm-a", &outcome);
	scripted_reset(scripted_api_wait(fixture->api, 1));
	expect_label(fixture, &outcome, "[error: connection reset by peer]");
	(void)send_patch(fixture, "vm-a", &outcome);
	scripted_api_wait(fixture->api, 2);
	test_clock_skip((uint64_t)10 * NS_PER_S);
	expect_label(fixture, &outcome, "[error: context deadline exceeded]");
}

static void every_occurrence_of_the_name_is_replaced(void **state)
{
	static const struct {
		const char *root;
		const char *name;
		const char *label;
	} rows[] = {
		{ "a says a", "a", "[error: <name> s<name>ys <name>]" },
		{ "vm-avm-a", "vm-a", "[error: <name><name>]" },
		{ "nothing of it", "vm-a", "[error: nothing of it]" },
		{ "vm-", "vm-a", "[error: vm-]" },
		{ "", "vm-a", "[error: ]" },
		{ "aaa", "aa", "[error: <name>a]" },
		{ "unnamed", "", "[error: unnamed]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buffer label;
		struct error err;

		(void)error_set(&err, ERROR_REFUSED, "%s", rows[i].root);
		(void)error_wrap(&err, "context with %s", rows[i].name);
		buffer_init(&label, 1024);
		vm_patch_append_label(&err, slice_of(rows[i].name), &label);
		expect_slice(buffer_slice(&label), rows[i].label);
		buffer_destroy(&label);
	}
}

static void the_deadline_covers_waiting_for_the_limiter(void **state)
{
	struct kube_fixture *fixture = *state;
	struct vm_patch_request request = request_for("vm-a");
	struct token_bucket bucket;
	struct outcome outcome = { 0 };
	struct error err;

	assert_true(token_bucket_init(&bucket, 1, 1, loop_now_ns(fixture->loop), &err));
	(void)token_bucket_take(&bucket, loop_now_ns(fixture->loop));
	assert_non_null(vm_patch_send(fixture->client, &bucket, &request, NS_PER_S / 2, on_done, &outcome, &err));
	expect_label(fixture, &outcome, "[error: rate: Wait(n=1) would exceed context deadline]");
	assert_int_equal(scripted_api_request_count(fixture->api), 0);
}

static void a_cancelled_patch_says_nothing(void **state)
{
	struct kube_fixture *fixture = *state;
	struct outcome outcome;
	struct vm_patch *patch = send_patch(fixture, "vm-a", &outcome);

	scripted_api_wait(fixture->api, 1);
	vm_patch_cancel(patch);
	vm_patch_cancel(NULL);
	test_loop_spin(fixture->loop, 20);
	assert_false(outcome.done);
	assert_true(scripted_api_request(fixture->api, 0)->gone);
}

static void each_failing_allocation_is_an_error(void **state)
{
	struct kube_fixture *fixture = *state;
	unsigned failures = 0;
	bool sent = false;

	while (!sent) {
		struct vm_patch_request request = request_for("vm-a");
		struct outcome outcome = { 0 };
		struct vm_patch *patch;
		struct error err;

		memory_fail_at(failures + 1);
		patch = vm_patch_send(fixture->client, NULL, &request, 0, on_done, &outcome, &err);
		sent = memory_allocation_count() <= failures;
		memory_fail_at(0);
		assert_int_equal(patch != NULL, sent);
		if (!sent)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		vm_patch_cancel(patch);
		failures += !sent;
	}
	assert_true(failures >= 5);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_have_exactly_these_bytes),
		WITH_FIXTURE(m7_without_a_revision_there_are_two_operations),
		WITH_FIXTURE(without_a_slot_size_there_is_no_patch),
		WITH_FIXTURE(a_patch_goes_to_the_vm_and_its_answer_is_not_looked_at),
		WITH_FIXTURE(names_cannot_leave_their_place_in_the_path),
		WITH_FIXTURE(the_vm_s_name_is_taken_out_of_the_label),
		WITH_FIXTURE(without_a_status_the_sentence_is_the_label),
		WITH_FIXTURE(transport_errors_are_labelled_by_their_root),
		cmocka_unit_test(every_occurrence_of_the_name_is_replaced),
		WITH_FIXTURE(the_deadline_covers_waiting_for_the_limiter),
		WITH_FIXTURE(a_cancelled_patch_says_nothing),
		WITH_FIXTURE(each_failing_allocation_is_an_error),
	};

	return cmocka_run_group_tests_name("vm_patch", tests, NULL, NULL);
}
