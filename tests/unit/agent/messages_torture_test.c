/*
 * What the agent reads and writes: its configuration, VirtualMachines, messages of its peers, events; while each allocation
 * and each system call for files fails once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/billing_slices.h"
#include "agent/config.h"
#include "agent/event_json.h"
#include "agent/kube_event_body.h"
#include "agent/monitor_messages.h"
#include "agent/plugin_messages.h"
#include "agent/vm_patch.h"
#include "agent/vm_watch_object.h"
#include "base/clock.h"
#include "tests/support/failing_files.h"
#include "tests/support/vector_file.h"

enum { OUT_BYTES = 1024 * 1024, VMS = 40 };

static const char *const CONFIGS[] = { TESTS_DIR "/data/agent/config-a.json", TESTS_DIR "/data/agent/config-b.json" };

/* ---- configuration ---- */

static bool load_config(const char *path, struct error *err)
{
	struct agent_config config;
	struct slice text = { 0 };
	struct arena arena;
	bool ok;

	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	torture_mark(&config, sizeof config);
	ok = agent_config_load(path, &arena, &config, &text, err);
	if (!ok)
		assert_true(text.length > 0 && torture_untouched(&config, sizeof config));
	arena_destroy(&arena);
	return ok;
}

static bool load_config_a(void *context, struct error *err)
{
	(void)context;
	return load_config(CONFIGS[0], err);
}

static bool load_config_b(void *context, struct error *err)
{
	(void)context;
	return load_config(CONFIGS[1], err);
}

/* With something wrong, so that there are findings. */
static bool check_config(void *context, struct error *err)
{
	static size_t usual_count;
	struct agent_config_report report;
	struct arena arena;
	bool ok;

	(void)context;
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	ok = agent_config_check_text(
		SLICE("{\"scaling\":{\"computeUnit\":{\"mem\":0}},\n\"monitor\":7,\"x\":\"\\u00e4\"}"), &arena, &report,
		err);
	if (ok && usual_count == 0)
		usual_count = report.count;
	if (ok)
		assert_true(report.count > 3 && report.count == usual_count);
	arena_destroy(&arena);
	return ok;
}

/* ---- VMs ---- */

static bool read_vm(void *context, struct error *err)
{
	const struct vm_watch_filter filter = { .node_name = SLICE("a-node"), .scheduler_name = SLICE("s") };
	struct watched_vm *vm;
	struct slice name;
	struct arena arena;

	arena_init(&arena, OUT_BYTES);
	vm = watched_vm_decode(slice_of(context), &filter, &arena, &name, err);
	if (vm != NULL)
		assert_true(vm->uid.length > 0 && name.length > 0);
	watched_vm_release(vm);
	arena_destroy(&arena);
	return vm != NULL;
}

static char BAD_VM_JSON[] =
	"{\"apiVersion\":\"vm.neon.tech/v1\",\"kind\":\"VirtualMachine\",\"metadata\":{\"name\":\"v\",\"namespace\":\"n\","
	"\"uid\":\"u\",\"labels\":{\"autoscaling.neon.tech/enabled\":\"true\"},\"annotations\":{"
	"\"autoscaling.neon.tech/bounds\":\"{\\\"min\\\":{\\\"cpu\\\":0,\\\"mem\\\":\\\"1Gi\\\"},"
	"\\\"max\\\":{\\\"cpu\\\":1,\\\"mem\\\":\\\"1Gi\\\"}}\"}},\"spec\":{\"schedulerName\":\"s\",\"guest\":{"
	"\"cpus\":{\"min\":\"250m\",\"max\":2,\"use\":1},\"memorySlotSize\":\"1Gi\","
	"\"memorySlots\":{\"min\":1,\"max\":8,\"use\":2}}},\"status\":{\"phase\":\"Running\",\"node\":\"n1\"}}";

/* What is wrong with a VM is kept with it; but not that there was no memory, which would last until its next change. */
static bool read_bad_vm(void *context, struct error *err)
{
	const struct vm_watch_filter filter = { .node_name = SLICE("n1"), .scheduler_name = SLICE("s") };
	struct watched_vm *vm;
	struct slice name;
	struct arena arena;

	arena_init(&arena, OUT_BYTES);
	vm = watched_vm_decode(slice_of(context), &filter, &arena, &name, err);
	if (vm != NULL) {
		assert_true(vm->here != NULL && vm->here->problem != NULL);
		if (strstr(vm->here->problem->text, "must be set to a non-zero value") == NULL)
			fail_msg("%s", vm->here->problem->text);
	}
	watched_vm_release(vm);
	arena_destroy(&arena);
	return vm != NULL;
}

/* ---- peers ---- */

static bool talk_to_plugin(void *context, struct error *err)
{
	const struct plugin_message_context about = { .version = PLUGIN_PROTOCOL_5_0,
		                                      .namespace = "n",
		                                      .pod_name = "p",
		                                      .slot_bytes = 1 << 30,
		                                      .compute_unit = { 250, 1 << 30 } };
	const struct core_plugin_request request = { .target = { 500, UINT64_C(2) << 30 }, .has_metrics = true };
	struct plugin_reply reply;
	struct buffer body, form;
	bool ok;

	(void)context;
	buffer_init(&body, OUT_BYTES);
	buffer_init(&form, OUT_BYTES);
	torture_mark(&reply, sizeof reply);
	ok = plugin_request_write(&about, &request, &body, err);
	if (ok &&
	    !plugin_reply_read(&about, SLICE("{\"permit\":{\"vCPUs\":\"500m\",\"mem\":2147483648},\"migrate\":null}"),
	                       &reply, &form, err)) {
		assert_true(torture_untouched(&reply, sizeof reply));
		ok = false;
	}
	if (ok)
		assert_int_equal(reply.permit.cpu_milli, 500);
	buffer_destroy(&body);
	buffer_destroy(&form);
	return ok;
}

static bool talk_to_monitor(void *context, struct error *err)
{
	struct monitor_message message;
	struct arena arena;
	struct buffer out;
	bool ok;

	(void)context;
	arena_init(&arena, MONITOR_ARENA_BYTES);
	buffer_init(&out, OUT_BYTES);
	monitor_write_protocol_range(&out);
	monitor_write_downscale_request(&out, 1, (struct resources){ 500, 1 << 30 });
	monitor_write_invalid_message(&out, 2, SLICE("a \"text\""));
	ok = buffer_check(&out, "messages", err) &&
	     monitor_read_message(
		     SLICE("{\"type\":\"DownscaleResult\",\"id\":1,\"ok\":true,\"status\":\"w\\u00e4ll\"}"), &arena,
		     &message, err) == MONITOR_READ &&
	     monitor_read_protocol_response(SLICE("{\"version\":1}"), &arena, err);
	buffer_destroy(&out);
	arena_destroy(&arena);
	return ok;
}

static bool write_patch(void *context, struct error *err)
{
	const struct vm_patch_request request = {
		.namespace = SLICE("n"), .name = SLICE("v"), .target = { 500, UINT64_C(1) << 31 }, .slot_bytes = 1 << 30
	};
	struct error failure = { .code = ERROR_REFUSED, .text = "v is in the way of v" };
	struct buffer body, label;
	bool ok;

	(void)context;
	buffer_init(&body, OUT_BYTES);
	buffer_init(&label, OUT_BYTES);
	vm_patch_append_label(&failure, SLICE("v"), &label);
	ok = vm_patch_append_body(&request, &body, err) && buffer_check(&label, "the label", err);
	buffer_destroy(&body);
	buffer_destroy(&label);
	return ok;
}

/* ---- events ---- */

static bool print_events(void *context, struct error *err)
{
	const struct billing_event billing = { .stop_wall_ns = INT64_C(1700000000) * NS_PER_S,
		                               .host_name = SLICE("h"),
		                               .number = 1,
		                               .count = 2,
		                               .metric = SLICE("m"),
		                               .endpoint_id = SLICE("e"),
		                               .value = 3 };
	const struct scaling_event scaling = { .wall_ns = 1, .endpoint_id = SLICE("e"), .current_milli_cu = 250 };
	const struct kube_event kube = { KUBE_EVENT_SCALED, SLICE("n"), SLICE("v"), SLICE("It \"grew\".") };
	const struct kube_event_facts facts = { .event = &kube, .node_name = SLICE("a-node"), .count = 1 };
	struct buffer out;
	bool ok;

	(void)context;
	buffer_init(&out, OUT_BYTES);
	ok = billing_event_print_json(&billing, &out, err) &&
	     scaling_event_print_json(&scaling, SLICE("here"), &out, err) && kube_event_append_body(&facts, &out, err);
	buffer_destroy(&out);
	return ok;
}

static void count_usage(void *context, const struct billing_usage *usage)
{
	uint64_t *seconds = context;

	*seconds += usage->cpu_seconds;
}

/* A VM for which memory is short isn't seen, in that collection; others are billed as always. */
static bool bill(void *context, struct error *err)
{
	struct billing_slices slices;
	uint64_t seconds = 0;
	unsigned unseen = 0;

	(void)context;
	billing_slices_init(&slices);
	for (unsigned collection = 0; collection < 3; collection++) {
		billing_slices_begin(&slices, (uint64_t)(collection + 1) * 10 * NS_PER_S);
		for (unsigned i = 0; i < VMS; i++) {
			char uid[16];

			(void)snprintf(uid, sizeof uid, "uid-%u", i);
			unseen += billing_slices_see(&slices, slice_of(uid), SLICE("e"), 1000, err) ? 0 : 1;
		}
	}
	billing_slices_drain(&slices, count_usage, &seconds);
	assert_true(unseen <= 1 && seconds <= VMS * 20 && seconds >= VMS * 20 - 20);
	billing_slices_destroy(&slices);
	return unseen == 0;
}

static void each_failed_allocation_is_an_error(void **state)
{
	static const struct torture_case CASES[] = {
		{ "configuration A", load_config_a, 9 },
		{ "configuration B", load_config_b, 9 },
		{ "configuration with findings", check_config, 5 },
		{ "plugin", talk_to_plugin, 3 },
		{ "monitor", talk_to_monitor, 3 },
		{ "patch", write_patch, 2 },
		{ "events", print_events, 2 },
		{ "billing", bill, VMS },
	};
	static const struct torture_case VM = { "VirtualMachine", read_vm, 4 };
	static const struct torture_case BAD_VM = { "VirtualMachine with bad bounds", read_bad_vm, 5 };
	size_t length;
	char *json = vector_read_file("data/objects/vm-get.json", &length);

	(void)state;
	torture_each_case(CASES, sizeof CASES / sizeof CASES[0], NULL);
	torture_each_case(&VM, 1, json);
	torture_each_case(&BAD_VM, 1, BAD_VM_JSON);
	memory_release(json);
}

static bool load_over_calls(void *context)
{
	struct error err = { .text = "" };
	bool ok = load_config(CONFIGS[1], &err);

	(void)context;
	assert_true(ok || (err.code != ERROR_NONE && strstr(err.text, CONFIGS[1]) != NULL));
	return ok;
}

static void each_failed_call_names_the_file(void **state)
{
	static const struct torture_fault FAULTS[] = {
		{ TORTURE_OPEN, EINTR, true }, { TORTURE_OPEN, EMFILE, false },       { TORTURE_OPEN, EACCES, false },
		{ TORTURE_READ, EINTR, true }, { TORTURE_READ, TORTURE_SHORT, true }, { TORTURE_READ, EIO, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++)
		assert_true(torture_calls(&FAULTS[i], load_over_calls, NULL) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failed_allocation_is_an_error),
		cmocka_unit_test(each_failed_call_names_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
