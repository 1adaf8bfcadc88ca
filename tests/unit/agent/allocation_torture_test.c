/*
 * Configuration, a VM's runner and the state dump, while the n-th allocation fails, for every n.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/config.h"
#include "agent/supervisor.h"
#include "gen/state_dump.gen.h"
#include "tests/support/failing_calls.h"
#include "tests/unit/agent/fake_node.h"

enum { DUMP_BYTES = 1024 * 1024 };

/* ---- configuration ---- */

static bool load_config(void *context)
{
	struct agent_config config;
	struct slice text = SLICE("");
	struct arena arena;
	struct error err;
	bool ok;

	(void)context;
	torture_arm();
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	ok = agent_config_load(TESTS_DIR "/data/agent/config-b.json", &arena, &config, &text, &err);
	assert_true(ok || text.length > 0);
	arena_destroy(&arena);
	torture_disarm();
	return ok;
}

static void a_configuration_is_read_or_refused(void **state)
{
	(void)state;
	assert_true(torture_allocations(load_config, NULL) >= 3);
}

/* ---- a VM, and the dump of it ---- */

static void send_event(struct supervisor *supervisor, struct vm_info *vm, enum vm_event_kind kind)
{
	const struct vm_event event = {
		.kind = kind,
		.vm_info = vm,
		.pod_name = SLICE("some-pod"),
		.pod_ip = SLICE("127.0.0.1"),
		.endpoint_id = SLICE("ep-some"),
	};

	supervisor_handle_event(supervisor, &event);
}

static bool write_dump(const struct supervisor *supervisor, struct buffer *text)
{
	struct state_dump_dump message;
	struct arena arena;
	struct error err;
	bool ok;

	arena_init(&arena, DUMP_BYTES);
	ok = supervisor_dump(supervisor, &arena, &message, &err) && state_dump_dump_to_json(&message, text, &err);
	assert_true(ok || err.code == ERROR_NO_MEMORY);
	arena_destroy(&arena);
	return ok;
}

/* The whole of it: a supervisor gets a VM, tells its state, loses it. */
static bool run_a_vm(void *context)
{
	struct fake_node node;
	struct supervisor *supervisor;
	struct buffer text;
	struct vm_info vm = fixture_vm();
	struct error err;
	bool ok = false;

	(void)context;
	fake_node_begin(&node);
	buffer_init(&text, DUMP_BYTES);
	torture_arm();
	supervisor = supervisor_create(&node.environment, &err);
	if (supervisor != NULL) {
		send_event(supervisor, &vm, VM_EVENT_ADDED);
		ok = write_dump(supervisor, &text) && slice_contains(buffer_slice(&text), SLICE("some-pod"));
		send_event(supervisor, &vm, VM_EVENT_DELETED);
	}
	torture_disarm();
	if (supervisor != NULL)
		supervisor_destroy(supervisor);
	buffer_destroy(&text);
	fake_node_end(&node);
	return ok;
}

static void a_vm_and_the_dump_of_it_survive(void **state)
{
	(void)state;
	unsigned long count = torture_allocations(run_a_vm, NULL);

	print_message("%lu failing allocations\n", count);
	assert_true(count >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_configuration_is_read_or_refused),
		cmocka_unit_test(a_vm_and_the_dump_of_it_survive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
