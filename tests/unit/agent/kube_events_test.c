/*
 * Kubernetes Events: bodies, limits of their rate, and what becomes of those that aren't sent or don't arrive.
 */
#include "tests/unit/kube/kube_fixture.h"

#include "agent/kube_event_body.h"
#include "agent/kube_events.h"
#include "agent/limits.h"
#include "base/memory.h"

static const char CREATED[] = "{\"kind\":\"Event\"}";
static const char FORBIDDEN[] =
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
	"\"events is forbidden: User \\\"system:serviceaccount:kube-system:autoscaler-agent\\\" cannot create resource "
	"\\\"events\\\" in API group \\\"\\\" in the namespace \\\"apps\\\"\",\"reason\":\"Forbidden\",\"details\":"
	"{\"kind\":\"events\"},\"code\":403}";
static const char TERMINATING[] =
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"events \\\"vm-0.1\\\" "
	"is forbidden: unable to create new content in namespace apps because it is being terminated\",\"reason\":"
	"\"Forbidden\",\"details\":{\"name\":\"vm-0.1\",\"kind\":\"events\",\"causes\":[{\"reason\":\"NamespaceTerminating\","
	"\"message\":\"namespace apps is being terminated\",\"field\":\"metadata.namespace\"}]},\"code\":403}";
static const char SERVER_ERROR[] = "{\"kind\":\"Status\",\"message\":\"etcd is on fire\",\"code\":500}";

struct world {
	struct kube_fixture *fixture;
	const char *uid; /* of all VMs but "unknown" */
	struct kube_events *events;
	size_t answered;
};

static struct slice uid_of(void *context, struct slice namespace, struct slice name)
{
	const struct world *world = context;

	assert_true(slice_equal_text(namespace, "apps"));
	return slice_equal_text(name, "unknown") ? SLICE("") : slice_of(world->uid);
}

static struct kube_events *create(struct world *world, struct error *err)
{
	const struct kube_events_options options = {
		.loop = world->fixture->loop,
		.client = world->fixture->client,
		.node_name = "node-a",
		.uid_of = uid_of,
		.context = world,
		.logger = fixture_logger(world->fixture),
	};

	return kube_events_create(&options, err);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	world->fixture = fixture_create();
	world->uid = "uid-1";
	world->events = create(world, &err);
	assert_non_null(world->events);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	kube_events_destroy(world->events);
	fixture_destroy(world->fixture);
	free(world);
	return 0;
}

static void submit(struct world *world, const char *name, enum kube_event_reason reason)
{
	const struct kube_event_sink *sink = kube_events_sink(world->events);
	const struct kube_event event = {
		.reason = reason,
		.namespace = SLICE("apps"),
		.name = slice_of(name),
		.message = SLICE("It happened"),
	};

	sink->submit(sink->context, &event);
}

static void submit_numbered(struct world *world, unsigned number)
{
	char name[32];

	(void)snprintf(name, sizeof name, "vm-%u", number);
	submit(world, name, KUBE_EVENT_SCALED);
}

/* The next request, which is answered. */
static struct scripted_request *answer(struct world *world, int status, const char *body)
{
	struct scripted_request *request = scripted_api_wait(world->fixture->api, world->answered + 1);

	world->answered++;
	scripted_reply(request, status, "", body);
	test_loop_spin(world->fixture->loop, 10);
	return request;
}

static void expect_body_part(const struct scripted_request *request, const char *part)
{
	if (!slice_contains(request->body, slice_of(part)))
		fail_msg("no %s in %.*s", part, SLICE_ARGS(request->body));
}

static void expect_no_more(struct world *world)
{
	test_loop_spin(world->fixture->loop, 30);
	assert_int_equal(scripted_api_request_count(world->fixture->api), world->answered);
}

static int count_in_log(struct world *world, const char *text)
{
	return fixture_logged(world->fixture, text);
}

/* ---- bodies ---- */

static void take_row(struct slice line)
{
	struct kube_event event = { .namespace = SLICE("apps") };
	struct kube_event_facts facts = { .event = &event };
	uint64_t numbers[5];
	struct buffer body;
	struct error err;

	for (size_t i = 0; i < 5; i++)
		assert_true(slice_to_u64(slice_take_until(&line, '\t'), &numbers[i]));
	event.reason = (enum kube_event_reason)numbers[0];
	facts.count = (uint32_t)numbers[1];
	facts.first_ns = (int64_t)numbers[2];
	facts.last_ns = (int64_t)numbers[3];
	facts.name_suffix = numbers[4];
	event.name = slice_take_until(&line, '\t');
	facts.uid = slice_take_until(&line, '\t');
	facts.node_name = slice_take_until(&line, '\t');
	event.message = slice_take_until(&line, '\t');
	buffer_init(&body, 65536);
	assert_true(kube_event_append_body(&facts, &body, &err));
	if (!slice_equal(buffer_slice(&body), line))
		fail_msg("%.*s instead of %.*s", SLICE_ARGS(buffer_slice(&body)), SLICE_ARGS(line));
	buffer_destroy(&body);
}

static void bodies_have_exactly_these_bytes(void **state)
{
	size_t length;
	char *file = test_file_read("vectors/kube_event_bodies.tsv", &length);
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
	assert_int_equal(rows, 9);
	free(file);
}

/* The server refuses longer messages, longer instances, and names that aren't DNS subdomains. */
static void long_texts_are_cut_where_the_server_would_refuse_them(void **state)
{
	char name[254] = "", node[201] = "", message[1026] = "";
	const struct kube_event event = {
		.reason = KUBE_EVENT_SCALED,
		.namespace = SLICE("apps"),
		.name = slice_from(name, 253),
		.message = slice_from(message, 1025),
	};
	const struct kube_event_facts facts = {
		.event = &event,
		.node_name = slice_from(node, 200),
		.count = 1,
		.name_suffix = UINT64_MAX,
	};
	struct buffer body;
	struct error err;
	char expected[2048];

	(void)state;
	memset(name, 'v', 253);
	name[234] = '-';
	name[235] = '.';
	memset(node, 'n', 200);
	memset(message, 'm', 1023);
	memcpy(message + 1023, "\xc3\xa4", 2);
	buffer_init(&body, 65536);
	assert_true(kube_event_append_body(&facts, &body, &err));
	(void)snprintf(expected, sizeof expected, "\"metadata\":{\"name\":\"%.234s.ffffffffffffffff\",", name);
	assert_true(slice_contains(buffer_slice(&body), slice_of(expected)));
	(void)snprintf(expected, sizeof expected, "\"message\":\"%.1023s\",", message);
	assert_true(slice_contains(buffer_slice(&body), slice_of(expected)));
	(void)snprintf(expected, sizeof expected, "\"reportingInstance\":\"%.128s\"}", node);
	assert_true(slice_contains(buffer_slice(&body), slice_of(expected)));
	buffer_destroy(&body);
}

static void an_event_is_posted_to_the_vm_s_namespace(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	submit(world, "vm-a", KUBE_EVENT_STUCK);
	request = answer(world, 201, CREATED);
	expect_slice(request->method, "POST");
	expect_slice(request->target, "/api/v1/namespaces/apps/events");
	expect_slice(scripted_field(request, "Content-Type"), "application/json");
	expect_body_part(request, "\"involvedObject\":{\"kind\":\"VirtualMachine\",\"namespace\":\"apps\",\"name\":"
	                          "\"vm-a\",\"uid\":\"uid-1\",\"apiVersion\":\"vm.neon.tech/v1\"}");
	expect_body_part(request, "\"reason\":\"Stuck\",\"message\":\"It happened\"");
	expect_body_part(request, "\"count\":1,\"type\":\"Warning\"");
	expect_no_more(world);
}

static void a_vm_without_a_known_uid_has_events_too(void **state)
{
	struct world *world = *state;

	submit(world, "unknown", KUBE_EVENT_SCALED);
	expect_body_part(answer(world, 201, CREATED), "\"name\":\"unknown\",\"apiVersion\"");
}

/* ---- rates ---- */

static void repeats_within_a_minute_are_counted_and_told_with_the_next(void **state)
{
	struct world *world = *state;

	submit(world, "vm-a", KUBE_EVENT_SCALED);
	expect_body_part(answer(world, 201, CREATED), "\"count\":1,");
	for (int i = 0; i < 3; i++)
		submit(world, "vm-a", KUBE_EVENT_SCALED);
	test_clock_skip((uint64_t)59 * NS_PER_S);
	submit(world, "vm-a", KUBE_EVENT_SCALED);
	expect_no_more(world);
	test_clock_skip((uint64_t)2 * NS_PER_S);
	submit(world, "vm-a", KUBE_EVENT_SCALED);
	expect_body_part(answer(world, 201, CREATED), "\"count\":5,");
	test_clock_skip((uint64_t)61 * NS_PER_S);
	submit(world, "vm-a", KUBE_EVENT_SCALED);
	expect_body_part(answer(world, 201, CREATED), "\"count\":1,");
}

static void a_vm_made_anew_under_the_same_name_starts_at_one(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	for (int i = 0; i < 3; i++)
		submit(world, "vm-a", KUBE_EVENT_SCALED);
	expect_body_part(answer(world, 201, CREATED), "\"count\":1,");
	world->uid = "uid-2";
	submit(world, "vm-a", KUBE_EVENT_SCALED);
	request = answer(world, 201, CREATED);
	expect_body_part(request, "\"uid\":\"uid-2\"");
	expect_body_part(request, "\"count\":1,");
}

static void other_reasons_and_other_vms_have_minutes_of_their_own(void **state)
{
	struct world *world = *state;

	submit(world, "vm-a", KUBE_EVENT_SCALED);
	submit(world, "vm-a", KUBE_EVENT_SCALING_FAILED);
	submit(world, "vm-b", KUBE_EVENT_SCALED);
	for (int i = 0; i < 3; i++)
		(void)answer(world, 201, CREATED);
	expect_no_more(world);
}

static void at_most_25_at_once_and_one_a_second(void **state)
{
	struct world *world = *state;

	for (unsigned i = 0; i < 30; i++)
		submit_numbered(world, i);
	for (int i = 0; i < 25; i++)
		(void)answer(world, 201, CREATED);
	expect_no_more(world);
	test_clock_skip(NS_PER_S + NS_PER_S / 10);
	for (unsigned i = 25; i < 30; i++)
		submit_numbered(world, i);
	expect_body_part(answer(world, 201, CREATED), "\"count\":2,");
	expect_no_more(world);
}

static void no_more_than_four_are_under_way(void **state)
{
	struct world *world = *state;

	for (unsigned i = 0; i < 10; i++)
		submit_numbered(world, i);
	(void)scripted_api_wait(world->fixture->api, AGENT_KUBE_EVENTS_UNDER_WAY);
	test_loop_spin(world->fixture->loop, 30);
	assert_int_equal(scripted_api_request_count(world->fixture->api), AGENT_KUBE_EVENTS_UNDER_WAY);
	for (int i = 0; i < 10; i++)
		(void)answer(world, 201, CREATED);
	expect_no_more(world);
}

static void the_table_is_bounded(void **state)
{
	struct world *world = *state;
	unsigned long before = memory_block_count();

	for (unsigned i = 0; i < AGENT_KUBE_EVENT_TALLIES + 100; i++)
		submit_numbered(world, i);
	/* A tally and its key each; some more for those that wait. */
	assert_true(memory_block_count() - before < 2 * AGENT_KUBE_EVENT_TALLIES + 500);
	for (int i = 0; i < 25; i++)
		(void)answer(world, 201, CREATED);
	/* The oldest were forgotten: what is told of them begins anew. The latest weren't. */
	test_clock_skip((uint64_t)61 * NS_PER_S);
	submit_numbered(world, 0);
	submit_numbered(world, AGENT_KUBE_EVENT_TALLIES + 99);
	expect_body_part(answer(world, 201, CREATED), "\"count\":1,");
	expect_body_part(answer(world, 201, CREATED), "\"count\":2,");
}

static void what_says_nothing_any_more_makes_room_first(void **state)
{
	struct world *world = *state;

	/* The oldest of all wasn't told of; the next 24 were. */
	submit_numbered(world, 0);
	(void)answer(world, 500, SERVER_ERROR);
	for (unsigned i = 1; i < 25; i++)
		submit_numbered(world, i);
	for (int i = 1; i < 25; i++)
		(void)answer(world, 201, CREATED);
	test_clock_skip((uint64_t)61 * NS_PER_S);
	for (unsigned i = 25; i < AGENT_KUBE_EVENT_TALLIES + 20; i++)
		submit_numbered(world, i);
	for (int i = 0; i < 25; i++)
		(void)answer(world, 201, CREATED);
	test_clock_skip((uint64_t)2 * NS_PER_S);
	submit_numbered(world, 0);
	expect_body_part(answer(world, 201, CREATED), "\"count\":2,");
}

/* ---- failures ---- */

static void what_did_not_arrive_is_told_with_the_next(void **state)
{
	struct world *world = *state;

	submit(world, "vm-a", KUBE_EVENT_SCALED);
	(void)answer(world, 500, SERVER_ERROR);
	submit(world, "vm-a", KUBE_EVENT_SCALED);
	expect_no_more(world);
	test_clock_skip((uint64_t)61 * NS_PER_S);
	submit(world, "vm-a", KUBE_EVENT_SCALED);
	expect_body_part(answer(world, 201, CREATED), "\"count\":3,");
}

static void failures_are_logged_once_a_minute(void **state)
{
	struct world *world = *state;

	for (unsigned i = 0; i < 3; i++) {
		submit_numbered(world, i);
		(void)answer(world, 500, SERVER_ERROR);
	}
	assert_int_equal(count_in_log(world, "Failed to write a Kubernetes Event"), 1);
	assert_int_equal(count_in_log(world, "etcd is on fire"), 1);
	test_clock_skip((uint64_t)61 * NS_PER_S);
	submit_numbered(world, 3);
	(void)answer(world, 500, SERVER_ERROR);
	assert_int_equal(count_in_log(world, "Failed to write a Kubernetes Event"), 2);
	assert_int_equal(count_in_log(world, "\"failuresNotLogged\":2"), 1);
}

static void a_403_names_the_missing_rule_and_ends_the_attempts_for_ten_minutes(void **state)
{
	struct world *world = *state;

	/* Two are still under way, and six wait. */
	for (unsigned i = 0; i < 10; i++)
		submit_numbered(world, i);
	for (int i = 0; i < AGENT_KUBE_EVENTS_UNDER_WAY; i++)
		(void)answer(world, 403, FORBIDDEN);
	expect_no_more(world);
	assert_int_equal(count_in_log(world, "apiGroups: [\\\"\\\"], resources: [events], verbs: [create]"), 1);
	assert_int_equal(count_in_log(world, "cannot create resource"), 1);
	test_clock_skip((uint64_t)599 * NS_PER_S);
	submit_numbered(world, 9);
	expect_no_more(world);
	test_clock_skip((uint64_t)2 * NS_PER_S);
	submit_numbered(world, 9);
	expect_body_part(answer(world, 403, FORBIDDEN), "\"count\":3,");
	assert_int_equal(count_in_log(world, "verbs: [create]"), 2);
	test_clock_skip((uint64_t)601 * NS_PER_S);
	submit_numbered(world, 9);
	expect_body_part(answer(world, 201, CREATED), "\"count\":4,");
	assert_int_equal(count_in_log(world, "Failed to write a Kubernetes Event"), 0);
}

static void a_namespace_that_is_being_deleted_lacks_no_rule(void **state)
{
	struct world *world = *state;

	submit_numbered(world, 0);
	(void)answer(world, 403, TERMINATING);
	assert_int_equal(count_in_log(world, "verbs: [create]"), 0);
	assert_int_equal(count_in_log(world, "Failed to write a Kubernetes Event"), 1);
	submit_numbered(world, 1);
	(void)answer(world, 201, CREATED);
}

static void silence_of_the_server_ends_after_ten_seconds(void **state)
{
	struct world *world = *state;

	submit_numbered(world, 0);
	(void)scripted_api_wait(world->fixture->api, 1);
	world->answered++;
	test_clock_skip((uint64_t)11 * NS_PER_S);
	test_loop_spin(world->fixture->loop, 30);
	assert_int_equal(count_in_log(world, "Failed to write a Kubernetes Event"), 1);
	assert_true(scripted_api_request(world->fixture->api, 0)->gone);
}

static void the_end_cancels_what_is_under_way_and_what_waits(void **state)
{
	struct world *world = *state;

	for (unsigned i = 0; i < 10; i++)
		submit_numbered(world, i);
	(void)scripted_api_wait(world->fixture->api, AGENT_KUBE_EVENTS_UNDER_WAY);
	kube_events_destroy(world->events);
	world->events = NULL;
	kube_events_destroy(NULL);
	test_loop_spin(world->fixture->loop, 30);
	for (size_t i = 0; i < AGENT_KUBE_EVENTS_UNDER_WAY; i++)
		assert_true(scripted_api_request(world->fixture->api, i)->gone);
	assert_int_equal(scripted_api_request_count(world->fixture->api), AGENT_KUBE_EVENTS_UNDER_WAY);
}

/* Each time another VM's event finds no memory: nothing of it is sent, nothing is lost, and it is told later. */
static void each_failing_allocation_is_logged_and_survived(void **state)
{
	struct world *world = *state;
	unsigned failures = 0;
	bool all_well = false;

	while (!all_well) {
		test_clock_skip((uint64_t)61 * NS_PER_S);
		memory_fail_at(failures + 1);
		submit_numbered(world, failures);
		all_well = memory_allocation_count() <= failures;
		memory_fail_at(0);
		test_loop_spin(world->fixture->loop, 10);
		if (scripted_api_request_count(world->fixture->api) > world->answered)
			(void)answer(world, 201, CREATED);
		failures += !all_well;
	}
	assert_true(failures >= 5);
	assert_true(count_in_log(world, "Failed to write a Kubernetes Event") >= 5);
	submit_numbered(world, failures + 1);
	expect_body_part(answer(world, 201, CREATED), "\"count\":1,");
}

static void without_memory_there_are_none(void **state)
{
	struct world *world = *state;
	struct error err;

	memory_fail_at(1);
	assert_null(create(world, &err));
	memory_fail_at(0);
	assert_int_equal(err.code, ERROR_NO_MEMORY);
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_have_exactly_these_bytes),
		cmocka_unit_test(long_texts_are_cut_where_the_server_would_refuse_them),
		WITH_WORLD(an_event_is_posted_to_the_vm_s_namespace),
		WITH_WORLD(a_vm_without_a_known_uid_has_events_too),
		WITH_WORLD(repeats_within_a_minute_are_counted_and_told_with_the_next),
		WITH_WORLD(a_vm_made_anew_under_the_same_name_starts_at_one),
		WITH_WORLD(other_reasons_and_other_vms_have_minutes_of_their_own),
		WITH_WORLD(at_most_25_at_once_and_one_a_second),
		WITH_WORLD(no_more_than_four_are_under_way),
		WITH_WORLD(the_table_is_bounded),
		WITH_WORLD(what_says_nothing_any_more_makes_room_first),
		WITH_WORLD(what_did_not_arrive_is_told_with_the_next),
		WITH_WORLD(failures_are_logged_once_a_minute),
		WITH_WORLD(a_403_names_the_missing_rule_and_ends_the_attempts_for_ten_minutes),
		WITH_WORLD(a_namespace_that_is_being_deleted_lacks_no_rule),
		WITH_WORLD(silence_of_the_server_ends_after_ten_seconds),
		WITH_WORLD(the_end_cancels_what_is_under_way_and_what_waits),
		WITH_WORLD(each_failing_allocation_is_logged_and_survived),
		WITH_WORLD(without_memory_there_are_none),
	};

	return cmocka_run_group_tests_name("kube_events", tests, NULL, NULL);
}
