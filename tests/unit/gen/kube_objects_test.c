/* Kubernetes objects: real captures of an API server, and the forms of spec protocols 6, 7, 9 and surroundings 5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/json_splitter.h"
#include "gen/kube.gen.h"
#include "gen/pod.gen.h"
#include "gen/scaling.gen.h"
#include "gen/vm.gen.h"

enum { MAX_BYTES = 4 * 1024 * 1024 };

static struct arena arena;
static struct buffer buffer;
static struct buffer file_text;
static struct error err;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, MAX_BYTES);
	buffer_init(&buffer, MAX_BYTES);
	buffer_init(&file_text, MAX_BYTES);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_destroy(&arena);
	buffer_destroy(&buffer);
	buffer_destroy(&file_text);
	return 0;
}

static struct slice capture(const char *name)
{
	char path[512];
	FILE *file;
	char *room;

	snprintf(path, sizeof path, TESTS_DIR "/data/%s", name);
	file = fopen(path, "rb");
	if (file == NULL)
		fail_msg("%s is missing", path);
	buffer_clear(&file_text);
	room = buffer_reserve(&file_text, MAX_BYTES / 2);
	assert_non_null(room);
	buffer_advance(&file_text, fread(room, 1, MAX_BYTES / 2, file));
	fclose(file);
	return buffer_slice(&file_text);
}

static void assert_buffer(const char *expected)
{
	buffer_append_char(&buffer, '\0');
	assert_string_equal(buffer.data, expected);
	buffer_clear(&buffer);
}

static void a_real_list_of_vms_is_read(void **state)
{
	struct vm_virtual_machine_list list;
	const struct vm_virtual_machine *vm;

	(void)state;
	if (!vm_virtual_machine_list_from_json(capture("kube/vm-list.json"), &arena, &list, &err))
		fail_msg("%s", err.text);
	assert_int_equal(list.items_count, 3);
	assert_true(slice_equal_text(list.metadata.resource_version, "381"));
	vm = &list.items[0];
	assert_true(slice_equal_text(vm->metadata.name, "example"));
	assert_true(slice_equal_text(vm->metadata.uid, "18d2af69-12ea-48d5-8c65-4b75dacab671"));
	assert_true(slice_equal_text(vm->metadata.resource_version, "240"));
	assert_true(vm->metadata.creation_timestamp_ns == 1795970501000000000);
	assert_true(vm->metadata.deletion_timestamp_ns == RFC3339_ZERO);
	assert_int_equal(vm->metadata.annotations_count, 1);
	assert_true(slice_starts_with(vm->metadata.annotations[0].value, SLICE("{\"apiVersion\":\"vm.neon.tech/v1\"")));
	assert_int_equal(vm->spec.guest.cpus.min_milli, 1000);
	assert_int_equal(vm->spec.guest.cpus.max_milli, 4000);
	assert_int_equal(vm->spec.guest.memory_slots.use, 2);
	assert_true(vm->spec.guest.memory_slot_size_bytes == 1073741824);
	assert_true(slice_equal_text(vm->status.phase, "Running"));
	assert_true(slice_equal_text(vm->status.pod_ip, "10.1.0.7"));
	assert_true(vm->status.has_cpus_milli);
	assert_int_equal(vm->status.cpus_milli, 250);
	assert_true(vm->status.memory_size_bytes == 2147483648);
	assert_false(vm->status.has_current_revision);
	/* The last one has no status at all. */
	assert_false(list.items[2].status.has_cpus_milli);
	assert_int_equal(list.items[2].status.phase.length, 0);
	assert_int_equal(list.items[2].spec.guest.cpus.max_milli, 1250);
}

static bool check_event(void *context, struct slice value, struct error *error)
{
	size_t *count = context;
	struct kube_watch_event event;
	struct vm_virtual_machine vm;
	struct kube_bookmark bookmark;

	if (!kube_watch_event_from_json(value, &arena, &event, error))
		return false;
	if (!kube_bookmark_from_json(event.object, &arena, &bookmark, error))
		return false;
	assert_true(bookmark.metadata.resource_version.length > 0);
	if (!slice_equal_text(event.type, "BOOKMARK")) {
		if (!vm_virtual_machine_from_json(event.object, &arena, &vm, error))
			return false;
		assert_true(vm.metadata.uid.length > 0);
	}
	++*count;
	return true;
}

static void a_real_watch_is_read_event_by_event(void **state)
{
	struct json_splitter splitter;
	struct slice rest;
	size_t count = 0;

	(void)state;
	json_splitter_init(&splitter, JSON_SPLITTER_VALUES, SLICE(""), MAX_BYTES, 0, check_event, &count);
	if (!json_splitter_feed(&splitter, capture("kube/vm-watch.ndjson"), &err) ||
	    !json_splitter_finish(&splitter, &rest, &err))
		fail_msg("%s", err.text);
	assert_int_equal(count, 8);
	json_splitter_destroy(&splitter);
}

static void an_empty_list_may_be_null(void **state)
{
	struct kube_list list;

	(void)state;
	assert_true(kube_list_from_json(
		SLICE("{\"items\":null,\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"abc\","
	              "\"remainingItemCount\":2}}"),
		&arena, &list, &err));
	assert_int_equal(list.items_count, 0);
	assert_true(slice_equal_text(list.metadata.continue_token, "abc"));
	assert_int_equal(list.metadata.remaining_item_count, 2);
}

static void real_pods_are_read(void **state)
{
	struct kube_list list;
	struct pod_pod pod;

	(void)state;
	assert_true(kube_list_from_json(capture("objects/pod-list.json"), &arena, &list, &err));
	assert_true(list.items_count > 0);
	for (size_t i = 0; i < list.items_count; i++) {
		if (!pod_pod_from_json(list.items[i], &arena, &pod, &err))
			fail_msg("%s", err.text);
		assert_true(pod.metadata.uid.length > 0);
		assert_true(pod.metadata.creation_timestamp_ns > 0);
	}
}

/* Spec surroundings 6: the scheduler's pod, ready. */
static void a_scheduler_pod_has_its_conditions(void **state)
{
	static const char TEXT[] =
		"{\"metadata\":{\"name\":\"autoscale-scheduler-6f7d9c5b8-q2w3e\",\"namespace\":\"kube-system\",\"uid\":\"b10b\","
		"\"resourceVersion\":\"462\",\"creationTimestamp\":\"2026-03-04T05:00:00Z\",\"labels\":{\"component\":\"scheduler\","
		"\"name\":\"autoscale-scheduler\"}},\"spec\":{\"nodeName\":\"node-a\"},\"status\":{\"phase\":\"Running\","
		"\"podIP\":\"127.9.1.1\",\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"},{\"type\":\"Ready\","
		"\"status\":\"True\",\"lastTransitionTime\":\"2026-03-04T05:00:09Z\"}]}}";
	struct pod_pod pod;

	(void)state;
	assert_true(pod_pod_from_json(slice_of(TEXT), &arena, &pod, &err));
	assert_true(slice_equal_text(pod.status.pod_ip, "127.9.1.1"));
	assert_int_equal(pod.status.conditions_count, 2);
	assert_true(slice_equal_text(pod.status.conditions[1].type, "Ready"));
	assert_true(slice_equal_text(pod.status.conditions[1].status, "True"));
	assert_true(slice_equal_text(*json_pairs_find(pod.metadata.labels, pod.metadata.labels_count, SLICE("name")),
	                             "autoscale-scheduler"));
}

static void real_statuses_are_read(void **state)
{
	static const struct {
		const char *file;
		int32_t code;
		const char *reason;
	} CASES[] = {
		{ "kube/status-401.json", 401, "Unauthorized" },
		{ "kube/status-403.json", 403, "Forbidden" },
		{ "kube/status-404.json", 404, "NotFound" },
		{ "kube/status-409-conflict.json", 409, "Conflict" },
		{ "kube/status-415.json", 415, "UnsupportedMediaType" },
		{ "kube/status-422.json", 422, "Invalid" },
		{ "kube/status-504-rv-too-large.json", 504, "Timeout" },
		{ "kube/vm-list-410-continue.json", 410, "Expired" },
	};
	struct kube_status status;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		if (!kube_status_from_json(capture(CASES[i].file), &arena, &status, &err))
			fail_msg("%s: %s", CASES[i].file, err.text);
		assert_true(slice_equal_text(status.kind, "Status"));
		assert_int_equal(status.code, CASES[i].code);
		assert_true(slice_equal_text(status.reason, CASES[i].reason));
		assert_true(status.message.length > 0);
	}
	assert_true(status.metadata.continue_token.length > 0);
	assert_true(kube_status_from_json(capture("kube/status-504-rv-too-large.json"), &arena, &status, &err));
	assert_int_equal(status.details.retry_after_seconds, 1);
}

static void keys_of_kubernetes_objects_are_exact(void **state)
{
	struct vm_virtual_machine vm;

	(void)state;
	assert_true(vm_virtual_machine_from_json(SLICE("{\"Metadata\":{\"name\":\"x\"},\"status\":{\"podip\":\"1\"}}"),
	                                         &arena, &vm, &err));
	assert_int_equal(vm.metadata.name.length, 0);
	assert_int_equal(vm.status.pod_ip.length, 0);
}

static void a_field_of_a_wrong_type_fails_the_object_and_is_named(void **state)
{
	struct vm_virtual_machine_list list;

	(void)state;
	assert_false(vm_virtual_machine_list_from_json(SLICE("{\"items\":[{},{\"status\":{\"restartCount\":\"1\"}}]}"),
	                                               &arena, &list, &err));
	assert_string_equal(err.text, "line 1: field \"items[1].status.restartCount\": expected int32, found string");
}

static void a_revision_comes_with_the_status(void **state)
{
	struct vm_virtual_machine vm;

	(void)state;
	assert_true(vm_virtual_machine_from_json(
		SLICE("{\"status\":{\"currentRevision\":{\"revision\":{\"value\":41,\"flags\":1},"
	              "\"updatedAt\":\"2025-03-04T05:06:07Z\"}}}"),
		&arena, &vm, &err));
	assert_true(vm.status.has_current_revision);
	assert_true(vm.status.current_revision.revision.value == 41);
	assert_true(vm.status.current_revision.updated_at_ns == 1741064767000000000);
	assert_true(vm_virtual_machine_from_json(
		SLICE("{\"status\":{\"currentRevision\":{\"revision\":{\"value\":41},\"updatedAt\":null}}}"), &arena,
		&vm, &err));
	assert_true(vm.status.current_revision.updated_at_ns == RFC3339_ZERO);
}

/* Spec protocols 9.2.3, P36. */
static void a_patch_is_written_as_in_the_spec(void **state)
{
	struct vm_cpu_patch cpu = { .op = SLICE("replace"),
		                    .path = SLICE("/spec/guest/cpus/use"),
		                    .value_milli = 2000 };
	struct vm_slots_patch slots = { .op = SLICE("replace"),
		                        .path = SLICE("/spec/guest/memorySlots/use"),
		                        .value = 5 };
	struct vm_revision_patch revision = {
		.op = SLICE("replace"),
		.path = SLICE("/spec/targetRevision"),
		.value = { .revision = { .value = 7, .flags = 2 }, .updated_at_ns = 1741064767500000000 },
	};
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &buffer);
	json_writer_array_begin(&writer);
	vm_cpu_patch_encode(&writer, &cpu);
	vm_slots_patch_encode(&writer, &slots);
	vm_revision_patch_encode(&writer, &revision);
	json_writer_array_end(&writer);
	assert_true(json_writer_check(&writer, "the patch", &err));
	assert_buffer(
		"[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":\"2\"},"
		"{\"op\":\"replace\",\"path\":\"/spec/guest/memorySlots/use\",\"value\":5},"
		"{\"op\":\"replace\",\"path\":\"/spec/targetRevision\",\"value\":{\"revision\":{\"value\":7,\"flags\":2},"
		"\"updatedAt\":\"2025-03-04T05:06:07Z\"}}]");
}

static void a_patch_operation_keeps_a_null_value_apart_from_none(void **state)
{
	struct kube_json_patch_operation operation;

	(void)state;
	assert_true(kube_json_patch_operation_from_json(SLICE("{\"op\":\"add\",\"path\":\"/a\",\"value\":null}"),
	                                                &arena, &operation, &err));
	assert_true(slice_equal_text(operation.value, "null"));
	assert_true(kube_json_patch_operation_to_json(&operation, &buffer, &err));
	assert_buffer("{\"op\":\"add\",\"path\":\"/a\",\"value\":null}");
	assert_true(kube_json_patch_operation_from_json(SLICE("{\"op\":\"remove\",\"path\":\"/a\"}"), &arena,
	                                                &operation, &err));
	assert_int_equal(operation.value.length, 0);
	assert_false(kube_json_patch_operation_from_json(SLICE("{\"op\":\"remove\"}"), &arena, &operation, &err));
}

/* Spec protocols 7.6. */
static void a_vm_info_is_written_as_in_the_spec(void **state)
{
	static const char EXPECTED[] =
		"{\"name\":\"vm-a\",\"namespace\":\"apps\",\"cpu\":{\"min\":\"250m\",\"max\":2,\"use\":\"500m\"},"
		"\"mem\":{\"min\":1,\"max\":8,\"use\":2,\"slotSize\":\"1Gi\"},"
		"\"config\":{\"autoMigrationEnabled\":false,\"alwaysMigrate\":false,\"scalingEnabled\":true,"
		"\"scalingConfig\":{\"memoryUsageFractionTarget\":0.6}},"
		"\"currentRevision\":{\"revision\":{\"value\":41,\"flags\":1},\"updatedAt\":\"2025-03-04T05:06:07Z\"}}";
	struct scaling_vm_info info;

	(void)state;
	assert_true(scaling_vm_info_from_json(slice_of(EXPECTED), &arena, &info, &err));
	assert_true(info.config.has_scaling_config);
	assert_false(info.config.scaling_config.has_enable_lfc_metrics);
	assert_true(scaling_vm_info_to_json(&info, &buffer, &err));
	assert_buffer(EXPECTED);
	info.config.has_scaling_config = false;
	info.has_current_revision = false;
	assert_true(scaling_vm_info_to_json(&info, &buffer, &err));
	assert_non_null(strstr(buffer.data, "\"scalingEnabled\":true}}"));
}

static void annotations_are_read_loosely(void **state)
{
	struct scaling_bounds bounds;
	struct scaling_scaling_config config;
	struct json_reader reader;
	char words[256];

	(void)state;
	assert_true(scaling_bounds_from_json(
		SLICE("{\"min\":{\"cpu\":\"0.5\",\"mem\":\"2Gi\"},\"max\":{\"CPU\":4,\"mem\":\"16Gi\"}}"), &arena,
		&bounds, &err)); /* P39 */
	assert_int_equal(bounds.min.cpu_milli, 500);
	assert_int_equal(bounds.max.cpu_milli, 4000);
	assert_true(scaling_bounds_from_json(SLICE("null"), &arena, &bounds, &err));
	assert_int_equal(bounds.max.cpu_milli, 0);
	assert_true(scaling_bounds_from_json(SLICE("{\"min\":{\"mem\":-1}}"), &arena, &bounds, &err));
	assert_true((int64_t)bounds.min.mem_bytes == -1);
	assert_false(json_reader_open(&reader, SLICE("[]"), &arena, &err) &&
	             scaling_bounds_decode(&reader, &bounds, &err)); /* P46 */
	json_problem_reference_text(&reader.problem, false, words, sizeof words);
	assert_non_null(strstr(words, "cannot unmarshal array"));
	assert_true(scaling_scaling_config_from_json(SLICE("{\"memoryUsageFractionTarget\":0.6,\"foo\":1}"), &arena,
	                                             &config, &err)); /* P48 */
	assert_true(config.has_memory_usage_fraction_target);
	assert_false(config.has_load_average_fraction_target);
	assert_false(scaling_scaling_config_from_json(SLICE("{\"enableLFCMetrics\":\"yes\"}"), &arena, &config,
	                                              &err)); /* P50 */
	assert_true(scaling_scaling_config_from_json(SLICE("{\"enableLFCMetrics\":null}"), &arena, &config, &err));
	assert_false(config.has_enable_lfc_metrics);
}

static void failing_memory_anywhere_in_a_real_object_is_an_error(void **state)
{
	struct slice text = capture("objects/vm-get.json");
	struct vm_virtual_machine vm = { .spec = { .guest = { .memory_slots = { .use = 77 } } } };
	unsigned long failures = 0;

	(void)state;
	for (;; failures++) {
		bool ok;

		arena_destroy(&arena);
		arena_init(&arena, MAX_BYTES);
		memory_fail_at(failures + 1);
		ok = vm_virtual_machine_from_json(text, &arena, &vm, &err);
		memory_fail_at(0);
		if (ok)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		assert_int_equal(vm.spec.guest.memory_slots.use, 77);
	}
	assert_true(failures > 0);
	assert_int_not_equal(vm.spec.guest.memory_slots.use, 77);
}

static void an_arena_that_fills_up_anywhere_is_an_error(void **state)
{
	struct slice text = capture("objects/vm-get.json");
	struct vm_virtual_machine vm;
	size_t limit = 0;
	bool ok = false;

	(void)state;
	for (; !ok && limit < MAX_BYTES; limit += 8) {
		arena_destroy(&arena);
		arena_init(&arena, limit);
		ok = vm_virtual_machine_from_json(text, &arena, &vm, &err);
		if (!ok)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
	}
	assert_true(ok);
	assert_true(limit < 16 * text.length); /* as json_reader.h promises */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_real_list_of_vms_is_read),
		TEST(a_real_watch_is_read_event_by_event),
		TEST(an_empty_list_may_be_null),
		TEST(real_pods_are_read),
		TEST(a_scheduler_pod_has_its_conditions),
		TEST(real_statuses_are_read),
		TEST(keys_of_kubernetes_objects_are_exact),
		TEST(a_field_of_a_wrong_type_fails_the_object_and_is_named),
		TEST(a_revision_comes_with_the_status),
		TEST(a_patch_is_written_as_in_the_spec),
		TEST(a_patch_operation_keeps_a_null_value_apart_from_none),
		TEST(a_vm_info_is_written_as_in_the_spec),
		TEST(annotations_are_read_loosely),
		TEST(failing_memory_anywhere_in_a_real_object_is_an_error),
		TEST(an_arena_that_fills_up_anywhere_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
