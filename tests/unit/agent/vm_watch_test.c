#include "tests/unit/kube/kube_fixture.h"

#include "agent/vm_watch.h"
#include "base/memory.h"
#include "base/token_bucket.h"
#include "tests/support/agent_metrics_recorder.h"
#include "tests/unit/agent/vm_objects.h"

#define VMS "/apis/vm.neon.tech/v1/virtualmachines"

struct fixture {
	struct kube_fixture *kube;
	struct agent_metrics *metrics;
	struct vm_metrics *vm_metrics;
	struct token_bucket limiter;
	struct vm_watch *watch;
	struct event_record record;
	bool started;
	bool start_failed;
	struct error err;
	size_t seen;
	unsigned refusals; /* added events that there is no memory for */
};

static bool on_event(void *context, const struct vm_event *event)
{
	struct fixture *fixture = context;

	if (event->kind == VM_EVENT_ADDED && fixture->refusals > 0) {
		fixture->refusals--;
		return false;
	}
	event_record_add(&fixture->record, event);
	return true;
}

static void on_started(void *context)
{
	struct fixture *fixture = context;

	fixture->started = true;
}

static void on_start_failed(void *context, const struct error *err)
{
	struct fixture *fixture = context;

	fixture->start_failed = true;
	fixture->err = *err;
}

static int set_up(void **state)
{
	static const struct vm_watch_handler handler = { .on_event = on_event,
		                                         .on_started = on_started,
		                                         .on_start_failed = on_start_failed };
	struct fixture *fixture = calloc(1, sizeof *fixture);
	struct vm_watch_options options;
	struct error err;

	fixture->kube = fixture_create();
	fixture->metrics = agent_metrics_recorder_create();
	fixture->vm_metrics = vm_metrics_create(&err);
	assert_true(token_bucket_init(&fixture->limiter, 50, 100, loop_now_ns(fixture->kube->loop), &err));
	options = (struct vm_watch_options){
		.loop = fixture->kube->loop,
		.client = fixture->kube->client,
		.node_name = "n1",
		.scheduler_name = "autoscale-scheduler",
		.limiter = &fixture->limiter,
		.metrics = fixture->metrics,
		.vm_metrics = fixture->vm_metrics,
		.log_sink = fixture->kube->sink,
	};
	for (unsigned long step = 1; step <= 2; step++) {
		memory_fail_at(step);
		assert_null(vm_watch_start(&options, &handler, fixture, &err));
		assert_int_equal(err.code, ERROR_NO_MEMORY);
	}
	memory_fail_at(0);
	fixture->watch = vm_watch_start(&options, &handler, fixture, &err);
	if (fixture->watch == NULL)
		fail_msg("vm_watch_start: %s", err.text);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	vm_watch_stop(fixture->watch);
	vm_metrics_destroy(fixture->vm_metrics);
	agent_metrics_recorder_destroy(fixture->metrics);
	fixture_destroy(fixture->kube);
	free(fixture);
	return 0;
}

static struct scripted_request *next_request(struct fixture *fixture)
{
	return scripted_api_wait(fixture->kube->api, ++fixture->seen);
}

/* Answers a list with up to two VMs (NULL: none). */
static void answer_list(struct fixture *fixture, const struct vm_object *first, const struct vm_object *second)
{
	char one[VM_OBJECT_BYTES] = "";
	char two[VM_OBJECT_BYTES] = "";
	char json[3 * VM_OBJECT_BYTES];

	if (first != NULL)
		vm_object_print(first, one);
	if (second != NULL)
		vm_object_print(second, two);
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"vm.neon.tech/v1\",\"items\":[%s%s%s],\"kind\":\"VirtualMachineList\","
	         "\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"10\"}}",
	         one, second != NULL ? "," : "", two);
	scripted_reply(next_request(fixture), 200, "", json);
}

static struct scripted_request *open_watch(struct fixture *fixture)
{
	struct scripted_request *watch = next_request(fixture);

	scripted_begin(watch, 200, "");
	test_loop_spin(fixture->kube->loop, 20);
	return watch;
}

/* Everything up to the main loop. */
static struct scripted_request *start_with(struct fixture *fixture, const struct vm_object *first,
                                           const struct vm_object *second)
{
	struct scripted_request *watch;

	answer_list(fixture, first, second);
	watch = open_watch(fixture);
	test_loop_until(fixture->kube->loop, &fixture->started);
	vm_watch_deliver(fixture->watch);
	assert_events(&fixture->record, "");
	test_loop_spin(fixture->kube->loop, 5);
	return watch;
}

static void send_event(struct fixture *fixture, struct scripted_request *watch, const char *type,
                       const struct vm_object *vm)
{
	char object[VM_OBJECT_BYTES];
	char json[VM_OBJECT_BYTES + 64];

	vm_object_print(vm, object);
	snprintf(json, sizeof json, "{\"type\":\"%s\",\"object\":%s}\n", type, object);
	scripted_chunk_text(watch, json);
	test_loop_spin(fixture->kube->loop, 20);
}

static double metric(struct fixture *fixture, const char *series)
{
	return agent_metrics_recorder_value(fixture->metrics, series);
}

/* ---- */

static void t17_a_listed_vm_is_added(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct vm_object other = vm_object_base();

	other.uid = "u2";
	other.name = "vm-b";
	other.node = "n2";
	start_with(fixture, &vm, &other);
	assert_string_equal(fixture->record.text, "added apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n");
	expect_slice(scripted_api_request(fixture->kube->api, 0)->target, VMS "?limit=500");
	assert_true(slice_starts_with(scripted_api_request(fixture->kube->api, 1)->target,
	                              SLICE(VMS "?allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=")));
	assert_true(metric(fixture,
	                   "watchers_client_calls_total{watcher_instance=\"VirtualMachines\",method=\"List\"}") == 1);
	assert_true(metric(fixture,
	                   "watchers_client_calls_total{watcher_instance=\"VirtualMachines\",method=\"Watch\"}") == 1);
	assert_true(metric(fixture, "watchers_alive_current{watcher_instance=\"VirtualMachines\"}") == 1);
	assert_true(metric(fixture, "watchers_failing_current{watcher_instance=\"VirtualMachines\"}") == 0);
}

static void t18_to_t20_changes(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct scripted_request *watch = start_with(fixture, &vm, NULL);

	send_event(fixture, watch, "MODIFIED", &vm);
	assert_events(&fixture->record, "added updated");
	vm.phase = "Migrating";
	send_event(fixture, watch, "MODIFIED", &vm);
	assert_events(&fixture->record, "deleted");
	vm.phase = "Running";
	vm.node = "n2";
	send_event(fixture, watch, "MODIFIED", &vm);
	assert_events(&fixture->record, "");
	assert_true(metric(fixture, "watchers_events_total{watcher_instance=\"VirtualMachines\",type=\"MODIFIED\"}") ==
	            3);
}

static void t21_a_label_that_is_not_exactly_true(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct scripted_request *watch;

	vm.enabled = "True";
	watch = start_with(fixture, &vm, NULL);
	send_event(fixture, watch, "MODIFIED", &vm);
	assert_events(&fixture->record, "");
}

static void t22_deleted_while_running(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct scripted_request *watch = start_with(fixture, &vm, NULL);

	send_event(fixture, watch, "DELETED", &vm);
	assert_events(&fixture->record, "added updated deleted");
}

static void t23_deleted_after_a_failure(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct scripted_request *watch = start_with(fixture, &vm, NULL);

	vm.phase = "Failed";
	send_event(fixture, watch, "DELETED", &vm);
	assert_string_equal(fixture->record.text, "added apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n"
	                                          "deleted apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n");
}

static void relist(struct fixture *fixture, struct scripted_request *watch)
{
	scripted_chunk_text(watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\","
	                           "\"message\":\"too old\",\"reason\":\"Expired\",\"code\":410}}\n");
	test_loop_spin(fixture->kube->loop, 20);
}

static void t24_and_t25_a_relist_updates_and_deletes(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct vm_object other = vm_object_base();
	struct scripted_request *watch;

	other.uid = "u2";
	other.name = "vm-b";
	watch = start_with(fixture, &vm, &other);
	assert_events(&fixture->record, "added added");
	relist(fixture, watch);
	answer_list(fixture, &vm, NULL);
	open_watch(fixture);
	assert_string_equal(fixture->record.text, "deleted apps/vm-b p1 10.0.0.5 ep-1 250/2000/500\n"
	                                          "updated apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n");
	assert_true(metric(fixture,
	                   "watchers_errors_total{watcher_instance=\"VirtualMachines\",source=\"Watch.Event\"}") == 1);
}

static void t26_added_twice_is_a_relist(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct scripted_request *watch = start_with(fixture, NULL, NULL);

	send_event(fixture, watch, "ADDED", &vm);
	assert_events(&fixture->record, "added");
	send_event(fixture, watch, "ADDED", &vm);
	assert_events(&fixture->record, "");
	assert_int_equal(fixture_logged(fixture->kube,
	                                "\"logger\":\"autoscaler-agent.vm-watch.watch\",\"msg\":\"failed to "
	                                "handle event\",\"UID\":\"u1\",\"name\":\"vm-a\",\"error\":\"received "
	                                "add event for object we already have\""),
	                 1);
	answer_list(fixture, &vm, NULL);
	open_watch(fixture);
	assert_events(&fixture->record, "updated");
}

static void a_mismatch_names_the_vm_whichever_node_has_it(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct scripted_request *watch;

	vm.node = "n2";
	vm.uid = "u2";
	vm.name = "vm-b";
	watch = start_with(fixture, &vm, NULL);
	send_event(fixture, watch, "ADDED", &vm);
	assert_int_equal(fixture_logged(fixture->kube, "\"msg\":\"failed to handle event\",\"UID\":\"u2\",\"name\":"
	                                               "\"vm-b\","),
	                 1);
}

static void events_wait_for_the_main_loop(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct vm_object gone = vm_object_base();
	struct scripted_request *watch;

	gone.uid = "u2";
	gone.name = "vm-b";
	answer_list(fixture, &vm, &gone);
	watch = open_watch(fixture);
	test_loop_until(fixture->kube->loop, &fixture->started);
	vm.endpoint_id = "ep-2";
	send_event(fixture, watch, "MODIFIED", &vm);
	send_event(fixture, watch, "DELETED", &gone);
	assert_events(&fixture->record, "");
	vm_watch_deliver(fixture->watch);
	test_loop_spin(fixture->kube->loop, 5);
	assert_string_equal(fixture->record.text, "added apps/vm-a p1 10.0.0.5 ep-2 250/2000/500\n");
}

/* A second later, when there may be memory again. */
static void a_vm_that_there_was_no_memory_for_is_told_again(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct vm_object other = vm_object_base();
	struct scripted_request *watch;

	other.uid = "u2";
	other.name = "vm-b";
	fixture->refusals = 1;
	watch = start_with(fixture, &vm, NULL);
	assert_events(&fixture->record, "");
	test_loop_spin(fixture->kube->loop, 1100);
	assert_string_equal(fixture->record.text, "added apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n");
	assert_events(&fixture->record, "added");
	/* One that changes meanwhile is told of as it is then. */
	fixture->refusals = 1;
	send_event(fixture, watch, "ADDED", &other);
	assert_events(&fixture->record, "");
	send_event(fixture, watch, "MODIFIED", &other);
	assert_events(&fixture->record, "added");
	test_loop_spin(fixture->kube->loop, 1100);
	assert_events(&fixture->record, "");
}

enum { MANY_VMS = 30 };

static void print_numbered_vm(int number, struct vm_object *vm, char uid[16], char name[16])
{
	*vm = vm_object_base();
	(void)snprintf(uid, 16, "u%d", number);
	(void)snprintf(name, 16, "vm-%d", number);
	vm->uid = uid;
	vm->name = name;
}

/* Up to the main loop, with so many VMs. */
static struct scripted_request *list_many(struct fixture *fixture)
{
	char *json = malloc((MANY_VMS + 1) * (size_t)VM_OBJECT_BYTES);
	char *end = json + sprintf(json, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[");
	struct scripted_request *watch;

	for (int i = 0; i < MANY_VMS; i++) {
		struct vm_object vm;
		char uid[16], name[16];

		print_numbered_vm(i, &vm, uid, name);
		if (i > 0)
			*end++ = ',';
		vm_object_print(&vm, end);
		end += strlen(end);
	}
	(void)strcpy(end, "]}");
	scripted_reply(next_request(fixture), 200, "", json);
	free(json);
	watch = open_watch(fixture);
	test_loop_until(fixture->kube->loop, &fixture->started);
	return watch;
}

static int count_events(const struct fixture *fixture)
{
	int count = 0;

	for (const char *at = fixture->record.text; *at != '\0'; at++)
		count += *at == '\n';
	return count;
}

static void keep_loop_awake(void *context)
{
	(void)context;
}

/* A turn that doesn't wait. */
static void turn_once(struct fixture *fixture)
{
	struct loop_task task = { 0 };
	struct error err;

	loop_run_soon(fixture->kube->loop, &task, keep_loop_awake, NULL);
	assert_true(loop_turn(fixture->kube->loop, &err));
	loop_task_cancel(fixture->kube->loop, &task);
}

static void many_vms_are_announced_a_few_per_turn_in_their_order(void **state)
{
	struct fixture *fixture = *state;
	const char *at = fixture->record.text;
	int before = 0, turns = 0;

	list_many(fixture);
	vm_watch_deliver(fixture->watch);
	for (; before < MANY_VMS; turns++) {
		int now;

		assert_true(turns < MANY_VMS);
		turn_once(fixture);
		now = count_events(fixture);
		assert_in_range(now - before, 0, 4);
		before = now;
	}
	assert_true(turns >= MANY_VMS / 4);
	for (int i = 0; i < MANY_VMS; i++) {
		char expected[64];

		(void)snprintf(expected, sizeof expected, "added apps/vm-%d p1 ", i);
		assert_memory_equal(at, expected, strlen(expected));
		at = strchr(at, '\n') + 1;
	}
	test_loop_spin(fixture->kube->loop, 5);
	assert_int_equal(count_events(fixture), MANY_VMS);
}

static void what_changes_while_vms_are_announced_is_told_once_and_as_it_is(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = list_many(fixture);
	struct vm_object changed, gone, new;
	char uids[3][16], names[3][16];
	char object[VM_OBJECT_BYTES], json[3 * (VM_OBJECT_BYTES + 64)];
	int length;

	print_numbered_vm(MANY_VMS - 1, &changed, uids[0], names[0]);
	print_numbered_vm(MANY_VMS - 2, &gone, uids[1], names[1]);
	print_numbered_vm(MANY_VMS, &new, uids[2], names[2]);
	changed.endpoint_id = "ep-2";
	vm_watch_deliver(fixture->watch);
	/* These three are read in the turns in which the first VMs are announced. */
	vm_object_print(&changed, object);
	length = sprintf(json, "{\"type\":\"MODIFIED\",\"object\":%s}\n", object);
	vm_object_print(&gone, object);
	length += sprintf(json + length, "{\"type\":\"DELETED\",\"object\":%s}\n", object);
	vm_object_print(&new, object);
	(void)sprintf(json + length, "{\"type\":\"ADDED\",\"object\":%s}\n", object);
	scripted_chunk_text(watch, json);
	test_loop_spin(fixture->kube->loop, 50);
	assert_non_null(strstr(fixture->record.text, "added apps/vm-29 p1 10.0.0.5 ep-2 "));
	assert_null(strstr(strstr(fixture->record.text, "apps/vm-29 ") + 1, "apps/vm-29 "));
	assert_non_null(strstr(fixture->record.text, "added apps/vm-30 p1 "));
	assert_null(strstr(strstr(fixture->record.text, "apps/vm-30 ") + 1, "apps/vm-30 "));
	/* Told and taken back, or never told, but not told twice. */
	if (strstr(fixture->record.text, "added apps/vm-28 ") != NULL)
		assert_non_null(strstr(fixture->record.text, "deleted apps/vm-28 "));
	for (int i = 0; i < MANY_VMS - 2; i++) {
		char expected[64];

		(void)snprintf(expected, sizeof expected, "added apps/vm-%d p1 ", i);
		assert_non_null(strstr(fixture->record.text, expected));
		assert_null(strstr(strstr(fixture->record.text, expected) + 1, expected));
	}
}

static void stopping_between_two_lots_is_fine(void **state)
{
	struct fixture *fixture = *state;

	list_many(fixture);
	vm_watch_deliver(fixture->watch);
	turn_once(fixture);
	turn_once(fixture);
	assert_in_range(count_events(fixture), 1, 8);
	fixture->record.text[0] = '\0';
	vm_watch_stop(fixture->watch);
	fixture->watch = NULL;
	test_loop_spin(fixture->kube->loop, 20);
	assert_int_equal(count_events(fixture), 0);
}

static void a_failed_first_list_is_told(void **state)
{
	struct fixture *fixture = *state;

	scripted_reply(next_request(fixture), 403, "Content-Type: text/plain\r\n", "you may not");
	test_loop_until(fixture->kube->loop, &fixture->start_failed);
	assert_true(slice_starts_with(slice_of(fixture->err.text), SLICE("initial list failed: ")));
	assert_false(fixture->started);
}

static void billing_sees_all_vms_of_the_node(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();
	struct vm_object other = vm_object_base();
	struct scripted_request *watch;
	struct vm_watch_vm seen;
	size_t position = 0;

	vm.enabled = "false";
	vm.phase = "Migrating";
	vm.status = ",\"cpus\":\"1500m\"";
	vm.annotations = ",\"autoscaling.neon.tech/billing-endpoint-id\":\"\"";
	other.uid = "u2";
	other.node = "n2";
	watch = start_with(fixture, &vm, &other);
	assert_true(vm_watch_next(fixture->watch, &position, &seen));
	assert_true(slice_equal_text(seen.uid, "u1"));
	assert_true(slice_equal_text(seen.phase, "Migrating"));
	assert_false(seen.autoscaling_enabled);
	assert_true(seen.has_status_cpu);
	assert_int_equal(seen.status_cpu_milli, 1500);
	assert_true(seen.has_billing_endpoint_id);
	assert_int_equal(seen.billing_endpoint_id.length, 0);
	assert_false(vm_watch_next(fixture->watch, &position, &seen));
	other.node = "n1";
	other.annotations = ",\"autoscaling.neon.tech/billing-endpoint-id\":\"ep-9\"";
	send_event(fixture, watch, "MODIFIED", &other);
	position = 0;
	assert_true(vm_watch_next(fixture->watch, &position, &seen));
	assert_true(vm_watch_next(fixture->watch, &position, &seen));
	assert_true(slice_equal_text(seen.billing_endpoint_id, "ep-9"));
	assert_false(seen.has_status_cpu);
	assert_false(vm_watch_failing(fixture->watch));
	relist(fixture, watch);
	scripted_reply(next_request(fixture), 503, "", "");
	test_loop_spin(fixture->kube->loop, 50);
	assert_true(vm_watch_failing(fixture->watch));
	assert_true(metric(fixture, "watchers_failing_current{watcher_instance=\"VirtualMachines\"}") == 1);
}

static void stopping_ends_the_watch(void **state)
{
	struct fixture *fixture = *state;
	struct vm_object vm = vm_object_base();

	start_with(fixture, &vm, NULL);
	vm_watch_stop(fixture->watch);
	fixture->watch = NULL;
	assert_true(metric(fixture, "watchers_alive_current{watcher_instance=\"VirtualMachines\"}") == 0);
	assert_events(&fixture->record, "added");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(t17_a_listed_vm_is_added),
		TEST(a_vm_that_there_was_no_memory_for_is_told_again),
		TEST(t18_to_t20_changes),
		TEST(t21_a_label_that_is_not_exactly_true),
		TEST(t22_deleted_while_running),
		TEST(t23_deleted_after_a_failure),
		TEST(t24_and_t25_a_relist_updates_and_deletes),
		TEST(t26_added_twice_is_a_relist),
		TEST(a_mismatch_names_the_vm_whichever_node_has_it),
		TEST(events_wait_for_the_main_loop),
		TEST(many_vms_are_announced_a_few_per_turn_in_their_order),
		TEST(what_changes_while_vms_are_announced_is_told_once_and_as_it_is),
		TEST(stopping_between_two_lots_is_fine),
		TEST(a_failed_first_list_is_told),
		TEST(billing_sees_all_vms_of_the_node),
		TEST(stopping_ends_the_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
