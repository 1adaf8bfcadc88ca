#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/vm_watch_events.h"
#include "base/memory.h"
#include "tests/unit/agent/vm_objects.h"

#define BAD_BOUNDS "[]"
#define GOOD_BOUNDS \
	"{\\\"min\\\":{\\\"cpu\\\":1,\\\"mem\\\":\\\"2Gi\\\"},\\\"max\\\":{\\\"cpu\\\":3,\\\"mem\\\":\\\"4Gi\\\"}}"

struct world {
	struct vm_watch_events events;
	struct vm_watch_filter filter;
	struct arena arena;
	struct event_record record;
	struct log_sink *sink;
	FILE *log;
	char log_text[16384];
	struct watched_vm *known; /* what the store would hold */
};

static bool deliver(void *context, const struct vm_event *event)
{
	struct world *world = context;

	event_record_add(&world->record, event);
	return true;
}

static int64_t no_time(void *context)
{
	(void)context;
	return 0;
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	world->log = tmpfile();
	world->sink = log_sink_create(fileno(world->log), LOG_FORMAT_JSON, LOG_DEBUG, 1 << 20, no_time, NULL, &err);
	world->filter = (struct vm_watch_filter){ SLICE("n1"), SLICE("autoscale-scheduler"), AGENT_GENERATION_B };
	world->events = (struct vm_watch_events){
		.delivering = true,
		.vm_metrics = vm_metrics_create(&err),
		.deliver = deliver,
		.context = world,
		.logger = { .sink = world->sink, .name = "autoscaler-agent.vm-watch", .context_json = "" },
	};
	arena_init(&world->arena, 1 << 20);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	watched_vm_release(world->known);
	vm_metrics_destroy(world->events.vm_metrics);
	log_sink_destroy(world->sink, 0);
	fclose(world->log);
	arena_destroy(&world->arena);
	free(world);
	return 0;
}

static struct watched_vm *decode(struct world *world, const struct vm_object *object)
{
	char text[VM_OBJECT_BYTES];
	struct slice name;
	struct error err;
	struct watched_vm *vm;

	vm_object_print(object, text);
	vm = watched_vm_decode(slice_of(text), &world->filter, &world->arena, &name, &err);
	if (vm == NULL)
		fail_msg("watched_vm_decode: %s", err.text);
	assert_true(slice_equal_text(name, object->name));
	return vm;
}

static void add(struct world *world, const struct vm_object *object)
{
	world->known = decode(world, object);
	vm_watch_events_add(&world->events, world->known);
}

static void update(struct world *world, const struct vm_object *object)
{
	struct watched_vm *before = world->known;

	world->known = decode(world, object);
	vm_watch_events_update(&world->events, before, world->known);
	watched_vm_release(before);
}

static void leave(struct world *world)
{
	vm_watch_events_delete(&world->events, world->known);
	watched_vm_release(world->known);
	world->known = NULL;
}

static const char *logged(struct world *world)
{
	ssize_t length;

	log_flush(world->sink);
	length = pread(fileno(world->log), world->log_text, sizeof world->log_text - 1, 0);
	assert_true(length >= 0);
	world->log_text[length] = '\0';
	assert_int_equal(ftruncate(fileno(world->log), 0), 0);
	rewind(world->log);
	return world->log_text;
}

static bool shown(struct world *world, const char *part)
{
	struct buffer page;
	struct error err;
	bool found;

	buffer_init(&page, 1 << 20);
	assert_true(vm_metrics_print(world->events.vm_metrics, &page, &err));
	found = slice_contains(buffer_slice(&page), slice_of(part));
	buffer_destroy(&page);
	return found;
}

/* ---- what is ours ---- */

static void an_event_carries_what_is_known_of_the_vm(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	vm.bounds = GOOD_BOUNDS;
	vm.use = "1500m";
	add(world, &vm);
	assert_string_equal(world->record.text, "added apps/vm-a p1 10.0.0.5 ep-1 1000/3000/1500\n");
}

static void only_living_enabled_vms_with_an_address_of_our_scheduler_are_ours(void **state)
{
	static const struct {
		const char *phase;
		bool ours;
	} phases[] = { { "Running", true },  { "PreMigrating", true }, { "Scaling", true }, { "Migrating", false },
		       { "Pending", false }, { "Succeeded", false },   { "Failed", false }, { "", false },
		       { "running", false } };
	struct world *world = *state;
	struct vm_object vm;

	for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
		vm = vm_object_base();
		vm.phase = phases[i].phase;
		add(world, &vm);
		assert_events(&world->record, phases[i].ours ? "added" : "");
		leave(world);
		assert_events(&world->record, phases[i].ours ? "deleted" : "");
	}
	/* T21 and its like. */
	for (int i = 0; i < 5; i++) {
		vm = vm_object_base();
		if (i == 0)
			vm.enabled = "True";
		else if (i == 1)
			vm.pod_ip = "";
		else if (i == 2)
			vm.scheduler = "default-scheduler";
		else if (i == 3)
			vm.node = "n2";
		else
			vm.node = "";
		add(world, &vm);
		leave(world);
		assert_events(&world->record, "");
	}
}

/* ---- changes ---- */

static void a_vm_of_ours_that_changes_is_updated_whatever_changed(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	add(world, &vm);
	update(world, &vm); /* T24, T20 */
	vm.endpoint_id = "ep-2";
	update(world, &vm);
	assert_string_equal(world->record.text, "added apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n"
	                                        "updated apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n"
	                                        "updated apps/vm-a p1 10.0.0.5 ep-2 250/2000/500\n");
}

static void t18_and_t19_migrating_away_deletes_as_it_was(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	add(world, &vm);
	assert_events(&world->record, "added");
	vm.phase = "Migrating";
	vm.pod_name = "p2";
	vm.pod_ip = "10.0.0.6";
	update(world, &vm);
	assert_string_equal(world->record.text, "deleted apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n");
	assert_events(&world->record, "deleted");
	vm.phase = "Running";
	vm.node = "n2";
	update(world, &vm);
	assert_events(&world->record, "");
	assert_false(shown(world, "vm-a"));
	vm.node = "n1";
	update(world, &vm);
	assert_string_equal(world->record.text, "added apps/vm-a p2 10.0.0.6 ep-1 250/2000/500\n");
	assert_true(shown(world, "vm-a"));
}

/* T22, T23: the store updates to the last state and then deletes it. */
static void deletion_after_a_last_state(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	add(world, &vm);
	update(world, &vm);
	leave(world);
	assert_events(&world->record, "added updated deleted");
	add(world, &vm);
	vm.phase = "Failed";
	update(world, &vm);
	leave(world);
	assert_events(&world->record, "added deleted");
}

/* ---- annotations that can't be used (5.5, our way) ---- */

static void a_vm_is_added_once_its_annotation_is_fixed(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();
	const char *log;

	vm.bounds = BAD_BOUNDS;
	add(world, &vm);
	assert_events(&world->record, "");
	log = logged(world);
	assert_non_null(strstr(log, "{\"level\":\"error\",\"ts\":"));
	assert_non_null(strstr(log,
	                       "\"msg\":\"Failed to create vmEvent for added VM\","
	                       "\"virtualmachine\":{\"namespace\":\"apps\",\"name\":\"vm-a\"},"
	                       "\"pod\":{\"namespace\":\"apps\",\"name\":\"p1\"},\"error\":\"error extracting VM info: "
	                       "error extracting VM info: error unmarshaling annotation "
	                       "\\\"autoscaling.neon.tech/bounds\\\": json: cannot unmarshal array"));
	vm.bounds = NULL;
	update(world, &vm);
	assert_events(&world->record, "added");
	update(world, &vm);
	leave(world);
	assert_events(&world->record, "updated deleted");
}

static void a_vm_that_never_could_be_read_leaves_without_a_word(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	vm.bounds = BAD_BOUNDS;
	add(world, &vm);
	update(world, &vm);
	leave(world);
	assert_events(&world->record, "");
}

static void a_vm_whose_annotation_breaks_keeps_its_runner_until_it_leaves(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	vm.bounds = GOOD_BOUNDS;
	add(world, &vm);
	assert_events(&world->record, "added");
	vm.bounds = BAD_BOUNDS;
	vm.endpoint_id = "ep-2";
	update(world, &vm);
	update(world, &vm);
	assert_events(&world->record, "");
	assert_non_null(strstr(logged(world), "\"msg\":\"Failed to create vmEvent for updated VM\""));
	vm.phase = "Succeeded";
	update(world, &vm);
	assert_string_equal(world->record.text, "deleted apps/vm-a p1 10.0.0.5 ep-1 1000/3000/500\n");
	leave(world);
	assert_events(&world->record, "deleted");
}

static void a_vm_whose_annotation_breaks_and_is_fixed_is_updated(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	add(world, &vm);
	vm.bounds = BAD_BOUNDS;
	update(world, &vm);
	vm.bounds = GOOD_BOUNDS;
	update(world, &vm);
	leave(world);
	assert_string_equal(world->record.text, "added apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n"
	                                        "updated apps/vm-a p1 10.0.0.5 ep-1 1000/3000/500\n"
	                                        "deleted apps/vm-a p1 10.0.0.5 ep-1 1000/3000/500\n");
}

static void use_outside_of_the_bounds_is_a_warning(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	vm.bounds = GOOD_BOUNDS;
	add(world, &vm);
	assert_events(&world->record, "added");
	assert_non_null(strstr(logged(world), "\"msg\":\"Current usage has field less than minimum\","
	                                      "\"virtualmachine\":{\"namespace\":\"apps\",\"name\":\"vm-a\"},"
	                                      "\"pod\":{\"namespace\":\"apps\",\"name\":\"p1\"},"
	                                      "\"using\":{\"vCPU\":\"0.5\",\"mem\":\"2Gi\"},"
	                                      "\"min\":{\"vCPU\":\"1\",\"mem\":\"2Gi\"}}"));
	vm.bounds = NULL;
	vm.use = "3";
	update(world, &vm);
	assert_non_null(strstr(logged(world), "\"msg\":\"Current usage has field greater than maximum\","));
}

/* ---- before the main loop ---- */

static void what_comes_before_delivery_is_announced_later(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	world->events.delivering = false;
	add(world, &vm);
	vm.endpoint_id = "ep-2";
	update(world, &vm);
	assert_events(&world->record, "");
	assert_true(shown(world, "vm-a"));
	world->events.delivering = true;
	vm_watch_events_announce(&world->events, world->known);
	vm_watch_events_announce(&world->events, world->known);
	assert_string_equal(world->record.text, "added apps/vm-a p1 10.0.0.5 ep-2 250/2000/500\n");
}

static void what_goes_before_delivery_is_never_told(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	world->events.delivering = false;
	add(world, &vm);
	leave(world);
	world->events.delivering = true;
	assert_events(&world->record, "");
}

/* ---- gauges ---- */

#define LABELS "endpoint_id=\"ep-1\",project_id=\"pr-1\","

static void every_vm_of_the_node_has_gauges(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	vm.enabled = "false";
	vm.phase = "Pending";
	vm.status = ",\"cpus\":\"500m\",\"memorySize\":\"2Gi\",\"extraNetIP\":\"10.100.0.1\"";
	vm.bounds = "{\\\"max\\\":{\\\"cpu\\\":3}}"; /* no check of values */
	add(world, &vm);
	assert_events(&world->record, "");
	assert_true(shown(world, "autoscaling_vm_cpu_cores{" LABELS "value=\"spec_use\","));
	assert_true(shown(world, "autoscaling_vm_cpu_cores{" LABELS "value=\"autoscaling_max\",vm_name=\"vm-a\","
	                         "vm_namespace=\"apps\"} 3\n"));
	assert_true(shown(world, "autoscaling_vm_memory_bytes{" LABELS "value=\"autoscaling_min\",vm_name=\"vm-a\","
	                         "vm_namespace=\"apps\"} 0\n"));
	assert_true(shown(world, "autoscaling_vm_memory_bytes{" LABELS "value=\"status_use\",vm_name=\"vm-a\","
	                         "vm_namespace=\"apps\"} 2147483648\n"));
	assert_true(shown(world, "autoscaling_vm_memory_bytes{" LABELS "value=\"spec_max\",vm_name=\"vm-a\","
	                         "vm_namespace=\"apps\"} 8589934592\n"));
	assert_true(shown(world, "autoscaling_vm_cpu_cores{" LABELS "value=\"status_use\",vm_name=\"vm-a\","
	                         "vm_namespace=\"apps\"} 0.5\n"));
	assert_true(shown(world, "autoscaling_vm_restart_count{" LABELS "vm_name=\"vm-a\",vm_namespace=\"apps\"} 1\n"));
	assert_true(shown(world, "autoscaling_vm_extra_ip{" LABELS "vm_name=\"vm-a\",vm_namespace=\"apps\"} 1\n"));
	vm.bounds = BAD_BOUNDS;
	update(world, &vm);
	assert_false(shown(world, "autoscaling_max"));
	leave(world);
	assert_false(shown(world, "vm-a"));
}

static void a_vm_of_another_node_has_none_and_keeps_only_its_uid(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	vm.node = "n2";
	add(world, &vm);
	assert_null(world->known->here);
	assert_true(slice_equal_text(world->known->uid, "u1"));
	assert_false(shown(world, "vm-a"));
}

/* ---- decoding ---- */

static void objects_without_uid_or_of_the_wrong_types_are_refused(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();
	char text[VM_OBJECT_BYTES];
	struct slice name;
	struct error err;

	vm.uid = "";
	vm_object_print(&vm, text);
	assert_null(watched_vm_decode(slice_of(text), &world->filter, &world->arena, &name, &err));
	assert_string_equal(err.text, "a VirtualMachine without uid");
	vm.uid = "u1";
	vm.use = "lots";
	vm_object_print(&vm, text);
	assert_null(watched_vm_decode(slice_of(text), &world->filter, &world->arena, &name, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
}

static void decoding_fails_cleanly_when_memory_is_short(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();
	char text[VM_OBJECT_BYTES];
	struct watched_vm *decoded = NULL;
	unsigned long step = 0;
	struct slice name;

	vm.bounds = BAD_BOUNDS;
	for (int round = 0; round < 2; round++, vm.bounds = NULL, step = 0) {
		vm_object_print(&vm, text);
		while (decoded == NULL) {
			struct error err = { 0 };

			arena_destroy(&world->arena);
			arena_init(&world->arena, 1 << 20);
			memory_fail_at(++step);
			decoded = watched_vm_decode(slice_of(text), &world->filter, &world->arena, &name, &err);
			if (decoded == NULL)
				assert_int_equal(err.code, ERROR_NO_MEMORY);
			memory_fail_at(0);
			assert_true(step < 100);
		}
		assert_true(step > 3);
		watched_vm_release(decoded);
		decoded = NULL;
	}
}

/* What lay between was missed, as before a relist: the runner of the old pod must not live on. */
static void a_vm_in_another_pod_is_another_vm(void **state)
{
	struct world *world = *state;
	struct vm_object vm = vm_object_base();

	add(world, &vm);
	vm.pod_name = "p2";
	vm.pod_ip = "10.0.0.6";
	update(world, &vm);
	assert_string_equal(world->record.text, "added apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n"
	                                        "deleted apps/vm-a p1 10.0.0.5 ep-1 250/2000/500\n"
	                                        "added apps/vm-a p2 10.0.0.6 ep-1 250/2000/500\n");
	vm.pod_ip = "10.0.0.7";
	update(world, &vm);
	assert_events(&world->record, "added deleted added deleted added");
	update(world, &vm);
	assert_events(&world->record, "updated");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_event_carries_what_is_known_of_the_vm),
		TEST(a_vm_in_another_pod_is_another_vm),
		TEST(only_living_enabled_vms_with_an_address_of_our_scheduler_are_ours),
		TEST(a_vm_of_ours_that_changes_is_updated_whatever_changed),
		TEST(t18_and_t19_migrating_away_deletes_as_it_was),
		TEST(deletion_after_a_last_state),
		TEST(a_vm_is_added_once_its_annotation_is_fixed),
		TEST(a_vm_that_never_could_be_read_leaves_without_a_word),
		TEST(a_vm_whose_annotation_breaks_keeps_its_runner_until_it_leaves),
		TEST(a_vm_whose_annotation_breaks_and_is_fixed_is_updated),
		TEST(use_outside_of_the_bounds_is_a_warning),
		TEST(what_comes_before_delivery_is_announced_later),
		TEST(what_goes_before_delivery_is_never_told),
		TEST(every_vm_of_the_node_has_gauges),
		TEST(a_vm_of_another_node_has_none_and_keeps_only_its_uid),
		TEST(objects_without_uid_or_of_the_wrong_types_are_refused),
		TEST(decoding_fails_cleanly_when_memory_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
