#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/vm_info_extract.h"
#include "base/memory.h"

enum { ARENA_BYTES = 1 << 20 };

static const char OBJECT[] =
	"{\"apiVersion\":\"vm.neon.tech/v1\",\"kind\":\"VirtualMachine\",\"metadata\":{\"name\":\"vm-a\","
	"\"namespace\":\"apps\",\"uid\":\"u1\",\"labels\":{\"autoscaling.neon.tech/enabled\":\"true\","
	"\"autoscaling.neon.tech/auto-migration-enabled\":\"True\","
	"\"autoscaling.neon.tech/testing-only-always-migrate\":\"true\",\"neon/endpoint-id\":\"ep-1\"},"
	"\"annotations\":{\"autoscaling.neon.tech/billing-endpoint-id\":\"\","
	"\"autoscaling.neon.tech/config\":\"{\\\"memoryUsageFractionTarget\\\":0.6,\\\"ENABLElfcMETRICS\\\":true}\"}},"
	"\"spec\":{\"schedulerName\":\"autoscale-scheduler\",\"guest\":{\"cpus\":{\"min\":\"250m\",\"max\":2,"
	"\"use\":0.5},\"memorySlotSize\":\"1Gi\",\"memorySlots\":{\"min\":1,\"max\":70000,\"use\":2}}},"
	"\"status\":{\"currentRevision\":{\"revision\":{\"value\":41,\"flags\":1},"
	"\"updatedAt\":\"1970-01-01T00:00:07Z\"}}}";

static void every_field_of_the_object_arrives(void **state)
{
	struct arena arena;
	struct vm_virtual_machine vm;
	struct vm_info info;
	enum vm_info_oddity oddity;
	struct error err;

	(void)state;
	arena_init(&arena, ARENA_BYTES);
	assert_true(vm_virtual_machine_from_json(slice_of(OBJECT), &arena, &vm, &err));
	assert_true(vm_info_extract(&vm, AGENT_GENERATION_B, &arena, &info, &oddity, &err));
	arena_destroy(&arena); /* the info owns nothing of it */
	assert_string_equal(info.name, "vm-a");
	assert_string_equal(info.namespace, "apps");
	assert_int_equal(info.cpu.min_milli, 250);
	assert_int_equal(info.cpu.max_milli, 2000);
	assert_int_equal(info.cpu.use_milli, 500);
	assert_int_equal(info.mem.max_slots, 70000 - 65536);
	assert_int_equal(info.mem.slot_bytes, 1 << 30);
	assert_true(info.scaling_enabled);
	assert_false(info.auto_migration_enabled);
	assert_true(info.always_migrate);
	assert_true(info.has_scaling_config);
	assert_true(info.scaling_config.has_memory_usage_fraction_target);
	assert_true(info.scaling_config.memory_usage_fraction_target == 0.6);
	assert_true(info.scaling_config.has_enable_lfc_metrics && info.scaling_config.enable_lfc_metrics);
	assert_false(info.scaling_config.has_load_average_fraction_target);
	assert_true(info.has_current_revision);
	assert_int_equal(info.current_revision.revision.value, 41);
	assert_int_equal(info.current_revision.revision.flags, 1);
	assert_int_equal(info.current_revision.updated_at_ns, 7000000000);
}

static void labels_and_annotations_are_told_from_absent_ones(void **state)
{
	struct arena arena;
	struct vm_virtual_machine vm;
	struct error err;

	(void)state;
	arena_init(&arena, ARENA_BYTES);
	assert_true(vm_virtual_machine_from_json(slice_of(OBJECT), &arena, &vm, &err));
	assert_true(slice_equal_text(vm_label(&vm, VM_LABEL_ENDPOINT_ID), "ep-1"));
	assert_int_equal(vm_label(&vm, VM_LABEL_PROJECT_ID).length, 0);
	assert_non_null(vm_annotation(&vm, VM_ANNOTATION_BILLING_ENDPOINT_ID));
	assert_int_equal(vm_annotation(&vm, VM_ANNOTATION_BILLING_ENDPOINT_ID)->length, 0);
	assert_null(vm_annotation(&vm, VM_ANNOTATION_BOUNDS));
	arena_destroy(&arena);
}

static void too_long_a_name_is_an_error(void **state)
{
	struct arena arena;
	struct vm_virtual_machine vm;
	struct vm_info info;
	enum vm_info_oddity oddity;
	struct error err;
	char name[300];

	(void)state;
	memset(name, 'x', sizeof name);
	arena_init(&arena, ARENA_BYTES);
	assert_true(vm_virtual_machine_from_json(slice_of(OBJECT), &arena, &vm, &err));
	vm.metadata.name = slice_from(name, sizeof name);
	assert_false(vm_info_extract(&vm, AGENT_GENERATION_B, &arena, &info, &oddity, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "error extracting VM info: VM name of 300 bytes is longer than 253");
	arena_destroy(&arena);
}

static void bounds_are_read_without_further_checks(void **state)
{
	struct json_pair annotation = { .key = SLICE_INIT(VM_ANNOTATION_BOUNDS),
		                        .value = SLICE_INIT("{\"min\":{\"mem\":-5},\"max\":{\"cpu\":\"1500m\"}}") };
	struct vm_virtual_machine vm = { .metadata = { .annotations = &annotation, .annotations_count = 1 } };
	struct arena arena;
	struct vm_bounds bounds;
	struct error err;

	(void)state;
	arena_init(&arena, ARENA_BYTES);
	assert_true(vm_bounds_read(&vm, AGENT_GENERATION_B, &arena, &bounds, &err));
	assert_true(bounds.present);
	assert_int_equal(bounds.min_cpu_milli, 0);
	assert_int_equal(bounds.min_mem_bytes, -5);
	assert_int_equal(bounds.max_cpu_milli, 1500);
	assert_int_equal(bounds.max_mem_bytes, 0);
	vm.metadata.annotations_count = 0;
	assert_true(vm_bounds_read(&vm, AGENT_GENERATION_B, &arena, &bounds, &err));
	assert_false(bounds.present);
	arena_destroy(&arena);
}

static void running_out_of_memory_is_an_error(void **state)
{
	struct arena arena;
	struct arena little;
	struct vm_virtual_machine vm;
	struct vm_info info;
	enum vm_info_oddity oddity;
	struct error err;

	(void)state;
	arena_init(&arena, ARENA_BYTES);
	assert_true(vm_virtual_machine_from_json(slice_of(OBJECT), &arena, &vm, &err));
	arena_init(&little, ARENA_BYTES);
	memory_fail_at(1);
	assert_false(vm_info_extract(&vm, AGENT_GENERATION_B, &little, &info, &oddity, &err));
	memory_fail_at(0);
	assert_int_equal(err.code, ERROR_NO_MEMORY);
	arena_destroy(&little);
	arena_destroy(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_of_the_object_arrives),
		cmocka_unit_test(labels_and_annotations_are_told_from_absent_ones),
		cmocka_unit_test(too_long_a_name_is_an_error),
		cmocka_unit_test(bounds_are_read_without_further_checks),
		cmocka_unit_test(running_out_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
